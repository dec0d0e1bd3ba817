"""Domains written in Python instead of PDDL: docs/howto/own_task_planner.md has an example.

Parameters and types are written as PDDL writes them, ``"?item - item ?tray - tray"``; a predicate
is called like a function, and what an action needs, adds and deletes are lists. Anything else that
PDDL can say is said by the values of :mod:`tmkit.pddl.formulas`: ``needs`` takes any formulas, and
``effects`` any effects. What comes out are the same values as from a file, checked in the same way.
Names are kept as they are given; those from files are lower case.
"""

from __future__ import annotations

from collections.abc import Iterable

from tmkit.errors import TaskError
from tmkit.pddl.formulas import (
    Action,
    Add,
    And,
    Atom,
    Axiom,
    Delete,
    Effect,
    EffectAnd,
    Formula,
    Parameter,
)
from tmkit.pddl.model import Domain
from tmkit.pddl.vocabulary import Predicate, Type


def make_parameters(text: str) -> tuple[Parameter, ...]:
    """Return the names in a typed list, each with its types.

    Args:
        text: names, types behind a dash: ``"?a ?b - block ?t - (either table tray)"``. Without one,
            any object.

    Raises:
        TaskError: if a name begins with a dash, or a dash has no names before it or no type behind
            it.
    """
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    found: list[Parameter] = []
    waiting: list[str] = []
    while words:
        word = words.pop(0)
        if word != "-":
            if word.startswith("-"):
                reason = f"'{word}' is no name; a type is written '- {word[1:]}'"
                raise TaskError.at(f"parameters '{text}'", reason)
            waiting.append(word)
            continue
        types = _types(words)
        if not waiting or not types or {"(", ")"} & {*waiting, *types}:
            raise TaskError.at(
                f"parameters '{text}'", "expected names, '-' and a type, or '(either ...)' of types"
            )
        found += [Parameter(name, types) for name in waiting]
        waiting = []
    if {"(", ")"} & set(waiting):
        raise TaskError.at(f"parameters '{text}'", "unexpected parenthesis")
    return (*found, *(Parameter(name) for name in waiting))


def _types(words: list[str]) -> tuple[str, ...]:
    """Take one type, or several within ``(either ...)``, off the front of ``words``; none when there is none."""
    if words[:2] == ["(", "either"] and ")" in words:
        end = words.index(")")
        types = tuple(words[2:end])
        del words[: end + 1]
        return types
    return (words.pop(0),) if words else ()


def make_predicate(name: str, parameters: str = "") -> Predicate:
    """Return a predicate; calling it gives an atom.

    Args:
        name: what it is called.
        parameters: a typed list of variables.
    """
    return Predicate(name, make_parameters(parameters))


def make_action(
    name: str,
    parameters: str = "",
    *,
    needs: Iterable[Formula] = (),
    adds: Iterable[Atom] = (),
    deletes: Iterable[Atom] = (),
    effects: Iterable[Effect] = (),
) -> Action:
    """Return an action schema.

    Args:
        name: what it is called.
        parameters: a typed list of variables.
        needs: what must hold before it.
        adds: what holds after it.
        deletes: what no longer holds after it; an atom that is added too, holds.
        effects: effects of other kinds.
    """
    changes = (*map(Add, adds), *map(Delete, deletes), *effects)
    return Action(name, make_parameters(parameters), And(tuple(needs)), EffectAnd(changes))


def make_axiom(predicate: Predicate, condition: Formula) -> Axiom:
    """Return the axiom of a derived predicate.

    Args:
        predicate: the predicate.
        condition: formula in its parameters.
    """
    return Axiom(predicate.name, predicate.parameters, condition)


def make_domain(
    name: str,
    *,
    types: str = "",
    constants: str = "",
    predicates: Iterable[Predicate],
    actions: Iterable[Action],
    axioms: Iterable[Axiom] = (),
) -> Domain:
    """Return a domain.

    Args:
        name: what it is called.
        types: a typed list of types, each with that above it: ``"cup plate - dish dish tray"``.
        constants: a typed list of objects that every problem has.
        predicates: all predicates, the derived ones too.
        actions: the action schemas.
        axioms: the rules for derived predicates.

    Raises:
        TaskError: a double name, an unknown name, a wrong number or type of arguments, a derived
            predicate that is changed by an action or depends on its own negation.
    """
    return Domain(
        name,
        types=tuple(Type(kind.name, kind.types) for kind in make_parameters(types)),
        constants=make_parameters(constants),
        predicates=tuple(predicates),
        actions=tuple(actions),
        axioms=tuple(axioms),
    )
