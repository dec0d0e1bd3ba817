"""How hard hypothesis tries, relative to the profile that ``tests/conftest.py`` has loaded."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["scaled_examples"]


def scaled_examples(factor: float) -> int:
    """Return the number of examples of the loaded profile times ``factor``, at least 1."""
    return max(1, round(settings().max_examples * factor))
