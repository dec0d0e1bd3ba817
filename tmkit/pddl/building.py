"""Construction of domains in Python instead of PDDL.

Parameters and types use the notation of PDDL, ``"?item - item ?tray - tray"``. A predicate is
called like a function, and the conditions and effects of an action are lists. The values of
:mod:`tmkit.pddl.formulas` cover the rest of PDDL: ``needs`` takes any formulas, and ``effects`` any
effects. The results equal those from a file and pass the same checks. Names keep their case; those
from files are lower case.

docs/howto/own_task_planner.md has an example.
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
        text: names, and their types after a dash: ``"?a ?b - block ?t - (either table tray)"``. A
            name without a type has the type ``object``.

    Raises:
        TaskError: if a name begins with a dash, or a dash has no names before it or no type after
            it.
    """
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    parameters: list[Parameter] = []
    names: list[str] = []
    while words:
        word = words.pop(0)
        if word != "-":
            if word.startswith("-"):
                reason = f"'{word}' is not a name; a type is written '- {word[1:]}'"
                raise TaskError.at(f"parameters '{text}'", reason)
            names.append(word)
            continue
        types = _take_types(words)
        if not names or not types or {"(", ")"} & {*names, *types}:
            raise TaskError.at(
                f"parameters '{text}'", "expected names, '-' and a type, or '(either ...)' of types"
            )
        parameters += [Parameter(name, types) for name in names]
        names = []
    if {"(", ")"} & set(names):
        raise TaskError.at(f"parameters '{text}'", "unexpected parenthesis")
    return (*parameters, *(Parameter(name) for name in names))


def _take_types(words: list[str]) -> tuple[str, ...]:
    """Remove one type, or those of ``(either ...)``, from the front of ``words``, and return it."""
    if words[:2] == ["(", "either"] and ")" in words:
        end = words.index(")")
        types = tuple(words[2:end])
        del words[: end + 1]
        return types
    return (words.pop(0),) if words else ()


def make_predicate(name: str, parameters: str = "") -> Predicate:
    """Return a predicate, which is called with terms to make an atom.

    Args:
        name: name of the predicate.
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
        name: name of the action.
        parameters: a typed list of variables.
        needs: conditions before the action.
        adds: atoms that hold after the action.
        deletes: atoms that do not hold after the action, except those in ``adds``.
        effects: effects of other kinds.
    """
    changes = (*map(Add, adds), *map(Delete, deletes), *effects)
    return Action(name, make_parameters(parameters), And(tuple(needs)), EffectAnd(changes))


def make_axiom(predicate: Predicate, condition: Formula) -> Axiom:
    """Return the axiom of a derived predicate.

    Args:
        predicate: derived predicate.
        condition: formula in the parameters of the predicate.
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
        name: name of the domain.
        types: a typed list of types, each with its parent: ``"cup plate - dish dish tray"``.
        constants: a typed list of objects that every problem has.
        predicates: all predicates, including the derived ones.
        actions: action schemas.
        axioms: rules for derived predicates.

    Raises:
        TaskError: if a name is unknown or declared twice, or arguments have a wrong number or type.
            Also if an action changes a derived predicate, or one depends on its own negation.
    """
    return Domain(
        name,
        types=tuple(Type(kind.name, kind.types) for kind in make_parameters(types)),
        constants=make_parameters(constants),
        predicates=tuple(predicates),
        actions=tuple(actions),
        axioms=tuple(axioms),
    )
