"""Fields of immutable values during construction."""

from __future__ import annotations


def initialize(value: object, /, **fields: object) -> None:
    """Set fields of an immutable value; only constructors of its class may call this function."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)
