"""Room for objects that come later: a task is translated with spare ones, which get their names when they are needed.

A spare object is *absent*: no quantifier ranges over it, and no action is done with it. Translation
must not drop what is about it, so the problem gets an action that makes a spare object present with
any facts whatever; it is taken out of the translation.
:meth:`~tmkit.task_planning.translated_task.TranslatedTask.with_object` does what it would: names
the object, and lets its facts hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
    Not,
    Or,
    Parameter,
)
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.pddl.substitution import map_parts
from tmkit.pddl.vocabulary import Predicate
from tmkit.task_planning.encoding import copy_of

ABSENT = "absent--"  # a predicate
ARRIVE = "arrive--"  # an action of each type


def spare_names(spare: Mapping[str, int]) -> dict[str, str]:
    """Return the names of spare objects, with their types.

    Args:
        spare: how many there are of each type.
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
        spare: how many there are of each type.

    Raises:
        TaskError: an unknown type, or a function of objects, which spare ones have no values of.
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

    def guarded(tree: Any) -> Any:
        if not isinstance(tree, Forall | Exists):
            return map_parts(tree, guarded)
        missing = [
            Atom(ABSENT, (p.name,)) for p in tree.parameters if not kinds.isdisjoint(p.types)
        ]
        body = guarded(tree.body)
        if isinstance(tree, Forall):
            return Forall(tree.parameters, Or((*missing, body)))
        return Exists(tree.parameters, And((*map(Not, missing), body)))

    domain = problem.domain
    arrivals = [_arrival(extended, kind) for kind in spare]
    domain = replace(
        domain,
        predicates=(*domain.predicates, Predicate(ABSENT, (Parameter("?x"),))),
        actions=(
            *(
                replace(a, precondition=guarded(a.precondition), effect=guarded(a.effect))
                for a in domain.actions
            ),
            *arrivals,
        ),
        axioms=tuple(replace(axiom, condition=guarded(axiom.condition)) for axiom in domain.axioms),
    )
    init = State({*problem.init, *(Fact(ABSENT, (name,)) for name in names)})
    return copy_of(extended, domain=domain, init=init, goal=guarded(problem.goal))


def _arrival(problem: Problem, kind: str) -> Action:
    """Return the action after which an object of a type is present and any facts about it hold."""
    effects: list[Effect] = [Delete(Atom(ABSENT, ("?new",)))]
    for predicate in problem.domain.predicates:
        if predicate.name in problem.domain.derived_predicates:
            continue
        others = [
            replace(parameter, name=f"?p{k}") for k, parameter in enumerate(predicate.parameters)
        ]
        for k, parameter in enumerate(predicate.parameters):
            if set(problem.objects_of(kind)) & set(problem.objects_of(parameter.types)):
                terms = tuple("?new" if k == j else other.name for j, other in enumerate(others))
                added: Effect = Add(Atom(predicate.name, terms))
                rest = tuple(other for j, other in enumerate(others) if j != k)
                effects.append(ForEach(rest, added) if rest else added)
    needed = Atom(ABSENT, ("?new",))
    return Action(
        f"{ARRIVE}{kind}", (Parameter("?new", (kind,)),), needed, EffectAnd(tuple(effects))
    )
