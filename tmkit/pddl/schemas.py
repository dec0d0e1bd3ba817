"""Actions and axioms: what a domain says about change and about what follows, and single steps of plans.

They are plain values that nothing has checked; a :class:`~tmkit.pddl.model.Domain` checks those that it is made of.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.pddl.formulas import ALWAYS, NO_EFFECT, Effect, Formula, Parameter


@dataclass(frozen=True, slots=True)
class Action:
    """An action schema: ``parameters`` in order, the condition that must hold before it, and what it does."""

    name: str
    parameters: tuple[Parameter, ...] = ()
    precondition: Formula = ALWAYS
    effect: Effect = NO_EFFECT


@dataclass(frozen=True, slots=True)
class Axiom:
    """A rule for a derived predicate: it holds of all ``parameters`` that satisfy the condition."""

    predicate: str
    parameters: tuple[Parameter, ...]
    condition: Formula


@dataclass(frozen=True, slots=True, order=True)
class GroundAction:
    """One step of a task plan: the name of an action and the objects it is done with. ``str`` is ``(stack a b)``."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.name, *self.arguments))})"
