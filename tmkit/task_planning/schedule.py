"""A plan laid out in time: each action begins as soon as those before it let it.

The idea: of two actions, the later one waits for the earlier one's end if one of them changes what the other needs or
changes. All others may overlap. Conditions and effects count as they are written, whatever the state, so an action
waits rather too often than too seldom.

Invariants: actions that depend on each other keep their order; the schedule is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tmkit.pddl.formulas import (
    Action,
    Add,
    Atom,
    ChangeNumber,
    Delete,
    Effect,
    Formula,
    FunctionTerm,
    GroundAction,
)  # fmt: skip
from tmkit.pddl.model import Problem
from tmkit.pddl.schedules import SEPARATION, TimedAction, action_timing
from tmkit.pddl.substitution import subtrees

_Use = tuple[str, tuple[str | None, ...]]  # of a predicate or function; None stands for any object


def schedule(problem: Problem, steps: Sequence[GroundAction]) -> tuple[TimedAction, ...]:
    """Return the steps of a valid plan with times at which they may begin; O(n^2) for n steps.

    Args:
        problem: the task.
        steps: the plan. Actions without a duration take no time.

    Raises:
        TaskError: a step is no action of the domain, or its duration has no value or is below zero.
    """
    done: list[tuple[TimedAction, set[_Use], set[_Use]]] = []
    for step in steps:
        _, binding, duration = action_timing(problem, step)
        schema = problem.domain.action(step.name)
        needed, changed = _uses(problem, schema, binding)
        waits = (
            other.end + SEPARATION
            for other, needs, changes in done
            if _meet(changed, needs | changes) or _meet(needed, changes)
        )
        begins = max(waits, default=0.0)
        done.append((TimedAction(round(begins, 6), step, duration), needed, changed))
    return tuple(timed for timed, _, _ in done)


def makespan(timed: Iterable[TimedAction]) -> float:
    """Return the time at which the last action ends.

    Args:
        timed: the actions.
    """
    return max((action.end for action in timed), default=0.0)


def _uses(problem: Problem, schema: Action, binding: dict[str, str]) -> tuple[set[_Use], set[_Use]]:
    """Return what an action needs and what it changes."""
    timing = schema.timing
    conditions: tuple[Formula | Effect, ...] = (schema.precondition, schema.effect)
    if timing is not None:
        conditions = (timing.at_start, timing.over_all, timing.at_end, timing.start, timing.end)
    needed: set[_Use] = set()
    changed: set[_Use] = set()
    for tree in conditions:
        for part in subtrees(tree):
            if isinstance(part, Add | Delete):
                changed.add(_use(part.atom.predicate, part.atom.terms, binding))
            elif isinstance(part, ChangeNumber):
                changed.add(_use(part.term.name, part.term.terms, binding))
            elif isinstance(part, Atom):
                needed.add(_use(part.predicate, part.terms, binding))
            elif isinstance(part, FunctionTerm):
                needed.add(_use(part.name, part.terms, binding))
    if any(name in problem.domain.derived_predicates for name, _ in needed):  # follows from whatever there is
        needed |= {(one.name, (None,) * len(one.parameters)) for one in problem.domain.predicates}
    return needed, changed


def _use(name: str, terms: Sequence[str], binding: dict[str, str]) -> _Use:
    return name, tuple(binding.get(term) if term.startswith("?") else term for term in terms)


def _meet(some: set[_Use], others: set[_Use]) -> bool:
    if some & others:
        return True
    return any(
        name == other and all(a is None or b is None or a == b for a, b in zip(terms, other_terms, strict=True))
        for name, terms in some
        for other, other_terms in others
        if None in terms or None in other_terms
    )
