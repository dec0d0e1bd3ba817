"""Which objects of a problem are as good as each other.

The idea: two objects are interchangeable when the whole task stays the same after each is called by the other's name:
its types, its initial facts, its goal, and what has been forbidden. Of forty free places on a table all are, until one
of them is where something failed. A planner that may choose among them need not try them all; the first that was not
used yet does.

Invariants: objects in one group can be permuted at will, since being exchangeable is an equivalence. Objects that the
goal mentions are omitted, which is more than needed. O(facts + learned constraints * objects).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import Problem

ForbiddenAction = tuple[GroundAction, frozenset[Fact]]
"""An action, and the facts in whose presence it is forbidden."""

_SELF = "?"  # stands for the object itself where its facts are compared with another's


def interchangeable_objects(
    problem: Problem, constraints: Collection[ForbiddenAction] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two and more interchangeable objects, each in the order of the problem."""
    mentioned = set(re.findall(r"[^\s()]+", str(problem.goal)))
    about: dict[str, set[tuple[str, ...]]] = {name: set() for name in problem.objects if name not in mentioned}
    for fact in problem.init:
        _tell(about, fact.predicate, fact.arguments)
    for term, value in problem.values.items():
        _tell(about, f"{term.predicate} {value}", term.arguments)
    equivalent: dict[tuple[object, ...], list[str]] = {}
    for name, facts in about.items():
        equivalent.setdefault((problem.objects[name], frozenset(facts)), []).append(name)
    known = frozenset(constraints)
    groups = (group for names in equivalent.values() for group in _parted(names, known))
    return tuple(group for group in groups if len(group) > 1)


def _tell(about: dict[str, set[tuple[str, ...]]], what: str, arguments: tuple[str, ...]) -> None:
    for name in dict.fromkeys(arguments):
        if name in about:
            about[name].add((what, *(_SELF if argument == name else argument for argument in arguments)))


def _parted(names: Iterable[str], constraints: frozenset[ForbiddenAction]) -> list[tuple[str, ...]]:
    """Return the objects in groups within which the learned constraints make no difference."""
    groups: list[list[str]] = []
    for name in names:
        check_time()
        for group in groups:
            if all(_exchanged(constraint, group[0], name) in constraints for constraint in constraints):
                group.append(name)
                break
        else:
            groups.append([name])
    return [tuple(group) for group in groups]


def _exchanged(constraint: ForbiddenAction, first: str, second: str) -> ForbiddenAction:
    other = {first: second, second: first}
    action, context = constraint

    def names(arguments: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other.get(argument, argument) for argument in arguments)

    return (
        GroundAction(action.name, names(action.arguments)),
        frozenset(Fact(fact.predicate, names(fact.arguments)) for fact in context),
    )
