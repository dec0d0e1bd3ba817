"""The names of :mod:`tmkit.files.places`, which is where they live."""

from tmkit.files.places import Place, did_you_mean

__all__ = ["Place", "did_you_mean"]
