"""Operations on formulas without a state: substitution, free variables, atoms with their polarity, conjuncts.

No state and no domain is asked; :mod:`tmkit.pddl.evaluation` does that. Quantifiers bind: a
variable inside hides one of the same name outside, and only what is free is replaced. For a query a
formula is taken apart: into conjuncts, into quantifiers made one, into groups without common
variables. What comes out holds exactly where the formula does.

Invariants: functions of their arguments, linear in the size of the formula; what is returned has
the structure of what was given.
"""

from __future__ import annotations

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
        formula: the formula.
        binding: new terms by old ones.
    """
    new: Any = formula
    match new:
        case Atom(name, terms) | FunctionTerm(name, terms):
            new = type(new)(name, tuple([binding.get(term, term) for term in terms]))
        case Equals(left, right):
            new = Equals(binding.get(left, left), binding.get(right, right))
        case Exists(parameters, body) | Forall(parameters, body):
            hidden = {parameter.name for parameter in parameters}
            new = type(new)(
                parameters, substitute(body, {k: v for k, v in binding.items() if k not in hidden})
            )
        case _:
            new = mapped(new, lambda part: substitute(part, binding))
    return cast(Formula, new)


def mapped(tree: _Tree, change: Callable[[Any], Any]) -> _Tree:
    """Return a formula, effect or expression with the trees directly in it changed; parameters are none."""

    def changed(part: object) -> object:
        return part if isinstance(part, str | float | Parameter) else change(part)

    kind: Any = type(tree)
    values = (getattr(tree, item.name) for item in fields(tree))
    return cast(
        _Tree,
        kind(*(tuple(map(changed, v)) if isinstance(v, tuple) else changed(v) for v in values)),
    )


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
    """Yield the atoms of ``formula``, each with its polarity: whether making it true can only help the formula hold."""
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
    """Yield the trees directly in a tree, parameters of quantifiers too, in the order of writing."""
    for item in fields(tree):
        value = getattr(tree, item.name)
        yield from (
            p
            for p in (value if isinstance(value, tuple) else (value,))
            if not isinstance(p, str | float)
        )


def subtrees(
    tree: Formula | Effect | Expression | Parameter,
) -> Iterator[Formula | Effect | Expression | Parameter]:
    """Yield a tree and all trees in it, parameters of quantifiers too, in the order of writing."""
    yield tree
    for part in parts_of(tree):
        yield from subtrees(part)


def conjuncts_of(formulas: Iterable[Formula]) -> Iterator[Formula]:
    """Yield the parts of which the conjunction of ``formulas`` consists."""
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


def merged_quantifiers(formula: Exists) -> tuple[Formula, tuple[Parameter, ...]]:
    """Return the body and variables of a formula with the quantifiers directly within it made one with it."""
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
    parts: Iterable[tuple[Formula, set[str]]], wanted: dict[str, tuple[str, ...]]
) -> list[tuple[list[Formula], dict[str, tuple[str, ...]]]]:
    """Return formulas in groups that have no wanted variable in common, each with its variables.

    Variables of which nothing is said are a group each. What can be solved alone is not tried again
    for each solution of something else: so a quantifier over many variables costs what its largest
    group does.
    """
    groups: list[tuple[list[Formula], set[str]]] = []
    for part, names in parts:
        met = [group for group in groups if not names.isdisjoint(group[1])]
        groups = [group for group in groups if names.isdisjoint(group[1])]
        groups.append(
            (
                [*(p for group in met for p in group[0]), part],
                names.union(*(group[1] for group in met)),
            )
        )
    said = {name for _, names in groups for name in names}
    groups += [([], {name}) for name in wanted if name not in said]
    return [
        (found, {name: wanted[name] for name in wanted if name in names}) for found, names in groups
    ]


def negation(formula: Formula) -> Formula:
    """Return the negation of a formula, without a double one."""
    return formula.part if isinstance(formula, Not) else Not(formula)
