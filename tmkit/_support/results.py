"""Base of all results, those of the core included: no truth value, a display for notebooks, plain values.

A result is a value with an enum ``status``. ``if result:`` would be true of a failure too, so a
result has no truth value: the error says what to write. :meth:`Result.to_dict` has what
:func:`json.dumps` takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any

_SUCCESS = (
    "is_solved",
    "is_valid",
    "is_successful",
    "is_converged",
    "is_accepted",
    "is_consistent",
    "is_ok",
)
"""Booleans that say of a result what its name promises."""

_MOST_ROWS = 12
_MOST_LETTERS = 200
_MOST_ITEMS = 5


class ValidationStatus(StrEnum):
    """Outcome of a validation or check."""

    VALID = "valid"
    INVALID = "invalid"

    @classmethod
    def of(cls, is_valid: bool, /) -> ValidationStatus:
        """Return the status of a truth value."""
        return cls.VALID if is_valid else cls.INVALID


class ConvergenceStatus(StrEnum):
    """Outcome of an iterative estimation."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"


class GateStatus(StrEnum):
    """Outcome of a gate test."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Displayed:
    """Base of dataclasses with plain values and a display for notebooks."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, which :func:`json.dumps` takes."""
        return _members(self)

    def _repr_html_(self) -> str:
        return to_html(repr(self), self.to_dict())


class Result(Displayed):
    """Base of results, which are dataclasses with a ``status``."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Refuse a truth value by a TypeError that has what to write."""
        status: Any = type(self.status)  # type: ignore[attr-defined]  # each subclass has one
        flags = [f" or 'result.{name}'" for name in _SUCCESS if hasattr(self, name)]
        first = f"'result.status is {status.__name__}.{next(iter(status)).name}'"
        raise TypeError(f"{type(self).__name__} has no truth value; write {first}{''.join(flags)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the status and all fields as plain values, which :func:`json.dumps` takes."""
        return {"status": plain_values(self.status), **_members(self)}  # type: ignore[attr-defined]


class IteratedEstimate(Result):
    """Base of estimates that iterations converge to."""

    __slots__ = ()
    is_converged: bool

    @property
    def status(self) -> ConvergenceStatus:
        """Whether the iterations converged."""
        return (
            ConvergenceStatus.CONVERGED if self.is_converged else ConvergenceStatus.ITERATION_LIMIT
        )


class Report(Result):
    """Base of results that list problems in words: valid without any."""

    __slots__ = ()
    problems: tuple[str, ...]

    @property
    def status(self) -> ValidationStatus:
        """Whether there is no problem."""
        return ValidationStatus.of(not self.problems)

    @property
    def is_valid(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def summary(self) -> str:
        """The word ``valid``, or the number of problems."""
        count = len(self.problems)
        return f"{count} problem{'s' if count > 1 else ''}" if count else "valid"

    def to_dict(self) -> dict[str, Any]:
        """Return status, validity (``ok``) and all fields as plain values, which :func:`json.dumps` takes."""
        return {"ok": self.is_valid, **super().to_dict()}


def _members(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, or the properties of what the core made, as plain values."""
    if is_dataclass(value):
        names = [entry.name for entry in fields(value)]
    else:
        names = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
    return {name: plain_values(getattr(value, name)) for name in names}


def plain_values(value: Any) -> Any:
    """Return a value as JSON has it: enums as values, arrays as lists, what has ``to_dict`` as that, else a text."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name.lower()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return plain_values(value.tolist())
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if "__str__" in vars(type(value)):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _members(value)
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if hasattr(value, "as_array"):
        return plain_values(value.as_array())
    if isinstance(value, Sequence | set | frozenset):
        return [plain_values(item) for item in value]
    return str(value)


def to_html(title: str, values: Mapping[str, Any]) -> str:
    """Return a short table for notebooks, without tables within and what is empty; all texts are escaped and cut."""
    from html import escape

    rows = [(name, shown) for name, value in values.items() if (shown := _shown(value))]
    cells = (
        f"<tr><th>{escape(name)}</th><td>{escape(_cut(shown))}</td></tr>"
        for name, shown in rows[:_MOST_ROWS]
    )
    return f"<table><caption>{escape(_cut(title))}</caption>{''.join(cells)}</table>"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        texts = [shown for item in value[:_MOST_ITEMS] if (shown := _shown(item))]
        more = (
            f", and {len(value) - _MOST_ITEMS} more" if len(value) > _MOST_ITEMS and texts else ""
        )
        return "; ".join(texts) + more
    if value is None or isinstance(value, Mapping):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    shown = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in shown)
