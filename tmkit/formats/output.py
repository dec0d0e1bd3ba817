"""The names of :mod:`tmkit.files.output`, which is where they live."""

from tmkit.files.output import write_text

__all__ = ["write_text"]
