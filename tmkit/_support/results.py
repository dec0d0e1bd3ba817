"""Base of all results, including those of the core, with a display and plain values.

A result is a value with an enum ``status``. ``if result:`` would be true for a failure too, so a
result has no truth value, and the error has the correct expression. :meth:`Result.to_dict` returns
values for :func:`json.dumps`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any

_SUCCESS_FLAGS = (
    "is_solved",
    "is_valid",
    "is_successful",
    "is_converged",
    "is_accepted",
    "is_consistent",
    "is_ok",
)
"""Attributes of results that are true after a success."""

_MAX_ROWS = 12
"""Largest number of rows of a table for notebooks."""

_MAX_PROBLEMS = 10
"""Largest number of problems in the text of a report."""

_MAX_TEXT_LENGTH = 200
"""Length of a text in a table at which it is cut [characters]."""

_MAX_ITEMS = 5
"""Largest number of list elements in a row."""


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
        """Raise a TypeError with the correct expression."""
        status: Any = type(self.status)  # type: ignore[attr-defined]  # each subclass has one
        flags = [f" or 'result.{name}'" for name in _SUCCESS_FLAGS if hasattr(self, name)]
        first = f"'result.status is {status.__name__}.{next(iter(status)).name}'"
        raise TypeError(f"{type(self).__name__} has no truth value; write {first}{''.join(flags)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the status and all fields as plain values, which :func:`json.dumps` takes."""
        return {"status": plain_values(self.status), **_members(self)}  # type: ignore[attr-defined]


class IteratedEstimate(Result):
    """Base of estimates from iterations that converge."""

    __slots__ = ()
    is_converged: bool

    @property
    def status(self) -> ConvergenceStatus:
        """Convergence of the iterations."""
        return (
            ConvergenceStatus.CONVERGED if self.is_converged else ConvergenceStatus.ITERATION_LIMIT
        )


class Report(Result):
    """Base of results that list problems as texts; valid if the list is empty."""

    __slots__ = ()
    problems: tuple[str, ...]

    @property
    def status(self) -> ValidationStatus:
        """Validity of the result."""
        return ValidationStatus.of(not self.problems)

    @property
    def is_valid(self) -> bool:
        """True if there is no problem."""
        return not self.problems

    @property
    def summary(self) -> str:
        """The word ``valid``, or the number of problems and the first ten, one a line."""
        return "\n".join([problem_count(self), *self._problem_lines()])

    def __str__(self) -> str:
        """Return the counts in one line, and the first ten problems, one a line."""
        return "\n".join([repr(self), *self._problem_lines()])

    def _problem_lines(self) -> Iterator[str]:
        yield from (f"  {problem}" for problem in self.problems[:_MAX_PROBLEMS])
        further = len(self.problems) - _MAX_PROBLEMS
        if further > 0:
            yield f"  and {further} more"

    def to_dict(self) -> dict[str, Any]:
        """Return status, validity (``ok``) and all fields as values for :func:`json.dumps`."""
        return {"ok": self.is_valid, **super().to_dict()}


def problem_count(report: Report) -> str:
    """Return the word ``valid``, or the number of problems of a report."""
    count = len(report.problems)
    return f"{count} problem{'s' if count > 1 else ''}" if count else "valid"


def _members(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or the properties of a core value as plain values."""
    if is_dataclass(value):
        names = [entry.name for entry in fields(value)]
    else:
        names = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
    return {name: plain_values(getattr(value, name)) for name in names}


def plain_values(value: Any) -> Any:
    """Return a value as JSON types.

    Enums become their values, arrays lists, and objects with ``to_dict`` its result. All other
    values become texts.
    """
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
    """Return a short table for notebooks, without mappings and empty values.

    All texts are escaped and cut to a maximum length.
    """
    from html import escape

    rows = [(name, text) for name, value in values.items() if (text := _format_value(value))]
    cells = (
        f"<tr><th>{escape(name)}</th><td>{escape(_cut(text))}</td></tr>"
        for name, text in rows[:_MAX_ROWS]
    )
    return f"<table><caption>{escape(_cut(title))}</caption>{''.join(cells)}</table>"


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        texts = [text for item in value[:_MAX_ITEMS] if (text := _format_value(item))]
        more = f", and {len(value) - _MAX_ITEMS} more" if len(value) > _MAX_ITEMS and texts else ""
        return "; ".join(texts) + more
    if value is None or isinstance(value, Mapping):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    short = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)
