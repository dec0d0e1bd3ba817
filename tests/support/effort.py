"""Number of hypothesis examples, relative to the profile of ``tests/conftest.py``."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

__all__ = ["in_long", "scaled_examples"]

_LONG = 1000  # examples of a profile that is for a night

_DEFAULT = 100
"""Examples of the profile ``default``."""

_FEWEST = 5
"""Examples below which a profile does not lower a test that has more by default."""


def scaled_examples(factor: float) -> int:
    """Return ``factor`` times the examples of the loaded profile, at least 1 and usually 5."""
    fewest = min(_FEWEST, round(_DEFAULT * factor))
    return max(1, fewest, round(settings().max_examples * factor))


def in_long(*values: Any) -> tuple[Any, ...]:
    """Return values that are too costly for a profile other than ``long``, else none."""
    return values if settings().max_examples >= _LONG else ()
