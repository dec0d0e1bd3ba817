"""Spare objects of a translated task, which are named when they are needed.

A spare object is *absent*: no quantifier ranges over it, and no action has it as an argument. The
translator must keep the facts about it. The problem therefore gets an action that makes a spare
object present with arbitrary facts. This action is removed from the translation.
:meth:`~tmkit.task_planning.translated_task.TranslatedTask.with_object` has its effect: it names the
object and sets its facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from tmkit.errors import UnknownNameError
from tmkit.pddl.formulas import (
    Action,
    Add,
    And,
    Atom,
    Delete,
    Effect,
    EffectAnd,
    Exists,
    Fact,
    Forall,
    ForEach,
    Formula,
    Not,
    Or,
    Parameter,
)
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.pddl.substitution import map_parts
from tmkit.pddl.vocabulary import Predicate
from tmkit.task_planning.encoding import copy_of

_Tree = TypeVar("_Tree", bound=Formula | Effect)

ABSENT = "absent--"
"""Predicate of absent objects."""

ARRIVE = "arrive--"
"""Prefix of the action that makes an object of a type present."""


def spare_names(spare: Mapping[str, int]) -> dict[str, str]:
    """Return the names of spare objects, with their types.

    Args:
        spare: number of spare objects of each type.
    """
    return {
        f"spare--{kind}--{number}": kind
        for kind, count in spare.items()
        for number in range(1, count + 1)
    }


def with_spare_objects(problem: Problem, spare: Mapping[str, int]) -> Problem:
    """Return a problem with absent objects.

    Args:
        problem: the problem.
        spare: number of spare objects of each type.

    Raises:
        TaskError: if a type is unknown, or if the domain has a function of objects, which has no
            values for spare objects.
    """
    types = [*(declared.name for declared in problem.domain.types), "object"]
    for kind in spare:
        if kind not in types:
            raise problem.error(UnknownNameError.of("type of a spare object", kind, types).message)
    for function in problem.domain.functions:
        if function.parameters:
            raise problem.error(f"function '{function.name}' has no values for spare objects")
    names = spare_names(spare)
    extended = copy_of(problem, objects={**problem.objects, **names})
    absent = [
        parameter
        for parameter in types
        if not names.keys().isdisjoint(extended.objects_of(parameter))
    ]
    kinds = frozenset(absent)

    def exclude_absent(tree: _Tree) -> _Tree:
        return _exclude_absent(tree, kinds)

    domain = problem.domain
    arrivals = [_arrival(extended, kind) for kind in spare]
    domain = replace(
        domain,
        predicates=(*domain.predicates, Predicate(ABSENT, (Parameter("?x"),))),
        actions=(
            *(
                replace(
                    a, precondition=exclude_absent(a.precondition), effect=exclude_absent(a.effect)
                )
                for a in domain.actions
            ),
            *arrivals,
        ),
        axioms=tuple(
            replace(axiom, condition=exclude_absent(axiom.condition)) for axiom in domain.axioms
        ),
    )
    init = State({*problem.init, *(Fact(ABSENT, (name,)) for name in names)})
    return copy_of(extended, domain=domain, init=init, goal=exclude_absent(problem.goal))


def _exclude_absent(tree: _Tree, kinds: frozenset[str]) -> _Tree:
    """Return the tree with absent objects of some types excluded from its quantifiers."""
    match tree:
        case Forall(parameters, body) | Exists(parameters, body):
            guards = [Atom(ABSENT, (p.name,)) for p in parameters if not kinds.isdisjoint(p.types)]
            inner = _exclude_absent(body, kinds)
            if isinstance(tree, Forall):
                return type(tree)(parameters, Or((*guards, inner)))
            return type(tree)(parameters, And((*map(Not, guards), inner)))
        case _:
            excluded: _Tree = map_parts(tree, lambda part: _exclude_absent(part, kinds))
            return excluded


def _arrival(problem: Problem, kind: str) -> Action:
    """Return the action that makes an object of a type present with arbitrary facts."""
    effects: list[Effect] = [Delete(Atom(ABSENT, ("?new",)))]
    for predicate in problem.domain.predicates:
        if predicate.name in problem.domain.derived_predicates:
            continue
        parameters_of_fact = [
            replace(parameter, name=f"?p{k}") for k, parameter in enumerate(predicate.parameters)
        ]
        for k, parameter in enumerate(predicate.parameters):
            if set(problem.objects_of(kind)) & set(problem.objects_of(parameter.types)):
                terms = tuple(
                    "?new" if k == j else other.name for j, other in enumerate(parameters_of_fact)
                )
                effect: Effect = Add(Atom(predicate.name, terms))
                quantified = tuple(other for j, other in enumerate(parameters_of_fact) if j != k)
                effects.append(ForEach(quantified, effect) if quantified else effect)
    precondition = Atom(ABSENT, ("?new",))
    return Action(
        f"{ARRIVE}{kind}", (Parameter("?new", (kind,)),), precondition, EffectAnd(tuple(effects))
    )
