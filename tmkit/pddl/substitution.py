"""Operations on formulas without a state: substitution, free variables, polarity, conjuncts.

No function needs a state or a domain, unlike those of :mod:`tmkit.pddl.evaluation`. A variable of a
quantifier hides an outer one of the same name, and only free terms are replaced. A query decomposes
a formula into conjuncts, merged quantifiers, and groups without common variables. The decomposition
is equivalent to the formula.

Invariants: pure functions, linear in the size of the formula, that keep its structure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from tmkit.pddl.formulas import (
    And,
    Atom,
    Comparison,
    Effect,
    Equals,
    Exists,
    Expression,
    Forall,
    Formula,
    FunctionTerm,
    Imply,
    Not,
    Or,
    Parameter,
    is_variable,
)

_Tree = TypeVar("_Tree", bound=Formula | Effect | Expression)


def substitute(formula: Formula, binding: Mapping[str, str]) -> Formula:
    """Return a formula with free terms replaced.

    Variables of a quantifier hide those of the same name outside. Values must be objects, not
    variables, or variables that no quantifier of the formula binds.

    Args:
        formula: formula to change.
        binding: new terms by old ones.
    """
    result: Any = formula
    match result:
        case Atom(name, terms) | FunctionTerm(name, terms):
            result = type(result)(name, tuple([binding.get(term, term) for term in terms]))
        case Equals(left, right):
            result = Equals(binding.get(left, left), binding.get(right, right))
        case Exists(parameters, body) | Forall(parameters, body):
            hidden = {parameter.name for parameter in parameters}
            free = {old: new for old, new in binding.items() if old not in hidden}
            result = type(result)(parameters, substitute(body, free))
        case _:
            result = map_parts(result, lambda part: substitute(part, binding))
    return cast(Formula, result)


def map_parts(tree: _Tree, change: Callable[[Any], Any]) -> _Tree:
    """Return a formula, effect or expression with ``change`` applied to its direct subtrees.

    Parameters of quantifiers are not changed.
    """

    def change_part(part: object) -> object:
        return part if isinstance(part, str | float | Parameter) else change(part)

    kind: Any = type(tree)
    values = []
    for item in fields(tree):
        value = getattr(tree, item.name)
        is_list = isinstance(value, tuple)
        values.append(tuple(map(change_part, value)) if is_list else change_part(value))
    return cast(_Tree, kind(*values))


def free_variables(formula: Formula | Expression) -> frozenset[str]:
    """Return the variables of ``formula`` that no quantifier of it binds."""
    match formula:
        case Atom(_, terms) | FunctionTerm(_, terms):
            return frozenset(filter(is_variable, terms))
        case Equals(left, right):
            return frozenset(filter(is_variable, (left, right)))
        case Not(part):
            return free_variables(part)
        case And(parts) | Or(parts):
            return frozenset().union(*map(free_variables, parts))
        case Exists(parameters, body) | Forall(parameters, body):
            return free_variables(body) - {parameter.name for parameter in parameters}
        case _:
            return frozenset().union(*map(free_variables, parts_of(formula)))


def atoms_of(formula: Formula, *, positive: bool = True) -> Iterator[tuple[Atom, bool]]:
    """Yield the atoms of ``formula``, each with its polarity.

    An atom is positive if the formula is monotonically increasing in it.
    """
    match formula:
        case Atom():
            yield formula, positive
        case Not(part):
            yield from atoms_of(part, positive=not positive)
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms_of(part, positive=positive)
        case Imply(premise, conclusion):
            yield from atoms_of(premise, positive=not positive)
            yield from atoms_of(conclusion, positive=positive)
        case Exists(_, body) | Forall(_, body):
            yield from atoms_of(body, positive=positive)
        case Equals() | Comparison():
            return


def parts_of(tree: Formula | Effect | Expression | Parameter) -> Iterator[Any]:
    """Yield the direct subtrees of a tree, with parameters of quantifiers, in written order."""
    for item in fields(tree):
        value = getattr(tree, item.name)
        for part in value if isinstance(value, tuple) else (value,):
            if not isinstance(part, str | float):
                yield part


def subtrees(
    tree: Formula | Effect | Expression | Parameter,
) -> Iterator[Formula | Effect | Expression | Parameter]:
    """Yield a tree and all its subtrees, with parameters of quantifiers, in written order."""
    yield tree
    for part in parts_of(tree):
        yield from subtrees(part)


def conjuncts_of(formulas: Iterable[Formula]) -> Iterator[Formula]:
    """Yield the conjuncts of the conjunction of ``formulas``."""
    for formula in formulas:
        match formula:
            case And(parts):
                yield from conjuncts_of(parts)
            case Not(Not(part)):
                yield from conjuncts_of([part])
            case Not(Or(parts)):
                yield from conjuncts_of(Not(part) for part in parts)
            case Not(Imply(premise, conclusion)):
                yield from conjuncts_of([premise, Not(conclusion)])
            case Not(Forall(parameters, body)):
                yield Exists(parameters, negation(body))
            case Not(And(parts)):
                yield from conjuncts_of([Or(tuple(map(negation, parts)))])
            case Imply(premise, conclusion):
                yield from conjuncts_of([Or((negation(premise), conclusion))])
            case Or((part,)):
                yield from conjuncts_of([part])
            case _:
                yield formula


def merge_quantifiers(formula: Exists) -> tuple[Formula, tuple[Parameter, ...]]:
    """Return the body and the variables of directly nested quantifiers as those of a single one."""
    parameters, body = formula.parameters, formula.body
    while True:
        inner = list(conjuncts_of([body]))
        if len(inner) != 1 or not isinstance(inner[0], Exists):
            return body, parameters
        names = {parameter.name for parameter in parameters}
        if not names.isdisjoint(parameter.name for parameter in inner[0].parameters):
            return body, parameters
        parameters, body = parameters + inner[0].parameters, inner[0].body


def independent_groups(
    parts: Iterable[tuple[Formula, set[str]]], variables: dict[str, tuple[str, ...]]
) -> list[tuple[list[Formula], dict[str, tuple[str, ...]]]]:
    """Return groups of formulas without a common variable, each with its variables.

    A variable in no formula is a group without formulas. The groups are solved independently, and
    so the cost of a quantifier over many variables is that of its largest group.

    Args:
        parts: formulas, each with its unbound variables.
        variables: types of the unbound variables.
    """
    groups: list[tuple[list[Formula], set[str]]] = []
    for part, names in parts:
        connected = [group for group in groups if not names.isdisjoint(group[1])]
        groups = [group for group in groups if names.isdisjoint(group[1])]
        formulas = [*itertools.chain.from_iterable(group[0] for group in connected), part]
        groups.append((formulas, names.union(*(group[1] for group in connected))))
    constrained = {name for _, names in groups for name in names}
    groups += [([], {name}) for name in variables if name not in constrained]
    return [
        (formulas, {name: types for name, types in variables.items() if name in names})
        for formulas, names in groups
    ]


def negation(formula: Formula) -> Formula:
    """Return the negation of a formula, without a double negation."""
    return formula.part if isinstance(formula, Not) else Not(formula)
