"""Violations of the rules of a relation or operation, and the error that lists them.

With disabled checks (:func:`checks_off`), results have the semantics that follow from valid
operands.

Invariants: checks are enabled unless a ``with checks_off():`` block of the thread or task is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tmkit.errors import TmkitError


@dataclass(frozen=True, slots=True)
class Violation:
    """Violated rule of a relation or operation.

    Attributes:
        rule: text of the rule.
        left: actual value on one side, e.g. ``point e|C``.
        right: actual value on the other side; empty if there is none.
        repair: suggested repair; may be empty.
    """

    rule: str
    left: str
    right: str = ""
    repair: str = ""

    def __str__(self) -> str:
        sides = f"{self.left} and {self.right}" if self.right else self.left
        repair = f"; {self.repair}" if self.repair else ""
        return f"{self.rule} ({sides}){repair}"


class SemanticError(TmkitError, ValueError):
    """Invalid operation or relation. Attributes: ``operation``, ``violations``."""

    operation: str
    violations: tuple[Violation, ...]

    @classmethod
    def of(cls, operation: str, violations: Sequence[Violation]) -> SemanticError:
        """Create the error of an operation that violates rules.

        Args:
            operation: operation with its operands, e.g. ``compose(Twist, Twist)``.
            violations: violated rules, at least one.
        """
        texts = ". ".join(
            f"({number}) {violation}" for number, violation in enumerate(violations, start=1)
        )
        summary = (
            f"{len(violations)} rules are broken: {texts}"
            if len(violations) > 1
            else str(violations[0])
        )
        return cls(f"{operation}: {summary}", operation=operation, violations=tuple(violations))


def rule_error(
    operation: str, rule: str, left: str, right: str = "", repair: str = ""
) -> SemanticError:
    """Return the error of an operation that violates one rule.

    Args:
        operation: operation with its operands.
        rule, left, right, repair: attributes of the :class:`Violation`.
    """
    return SemanticError.of(operation, [Violation(rule, left, right, repair)])


_checks: ContextVar[bool] = ContextVar("tmkit_relations_checks", default=True)
are_checked = _checks.get
"""Equivalent of :func:`checks_are_on` without a Python call."""


def checks_are_on() -> bool:
    """Return whether operations of this thread or task check their rules."""
    return _checks.get()


@contextmanager
def checks_off() -> Iterator[None]:
    """Disable the checks of this thread or task within a block, for verified code."""
    token = _checks.set(False)
    try:
        yield
    finally:
        _checks.reset(token)
