"""Violations of the rules of a relation or operation, and the error that carries all of them.

With the checks off (:func:`checks_off`), what a number means is carried on as if every rule held.

Invariants: checks are on unless a ``with checks_off():`` block of the same thread or task is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tmkit.errors import TmkitError


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold.

    Attributes:
        rule: the rule, in words.
        left: what the one side is, e.g. ``point e|C``.
        right: what the other side is; empty where there is no other.
        repair: how to repair it.
    """

    rule: str
    left: str
    right: str = ""
    repair: str = ""

    def __str__(self) -> str:
        sides = f"{self.left} and {self.right}" if self.right else self.left
        mended = f"; {self.repair}" if self.repair else ""
        return f"{self.rule} ({sides}){mended}"


class SemanticError(TmkitError, ValueError):
    """An operation or relation that has no meaning. Attributes: ``operation``, ``violations``."""

    operation: str
    violations: tuple[Violation, ...]

    @classmethod
    def of(cls, operation: str, violations: Sequence[Violation]) -> SemanticError:
        """Create the error of an operation that breaks rules.

        Args:
            operation: the operation with its operands, e.g. ``compose(Twist, Twist)``.
            violations: the broken rules, at least one.
        """
        listed = ". ".join(
            f"({number}) {violation}" for number, violation in enumerate(violations, start=1)
        )
        many = (
            f"{len(violations)} rules are broken: {listed}"
            if len(violations) > 1
            else str(violations[0])
        )
        return cls(f"{operation}: {many}", operation=operation, violations=tuple(violations))


def rule_error(
    operation: str, rule: str, left: str, right: str = "", repair: str = ""
) -> SemanticError:
    """Return the error of an operation that breaks one rule; for the arguments see :class:`Violation`."""
    return SemanticError.of(operation, [Violation(rule, left, right, repair)])


_checks: ContextVar[bool] = ContextVar("tmkit_relations_checks", default=True)
are_checked = _checks.get  # the same as checks_are_on, without a call of Python


def checks_are_on() -> bool:
    """Whether operations check their rules here."""
    return _checks.get()


@contextmanager
def checks_off() -> Iterator[None]:
    """Switch the checks of this thread or task off within a block, for code that was verified with them."""
    token = _checks.set(False)
    try:
        yield
    finally:
        _checks.reset(token)
