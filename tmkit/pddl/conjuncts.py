"""Taking formulas apart for a query: into conjuncts, into quantifiers made one, into groups without common variables.

All of it is rewriting: no facts are asked, and what comes out holds exactly where the formula does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tmkit.pddl.formulas import And, Exists, Forall, Formula, Imply, Not, Or, Parameter


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

    Variables of which nothing is said are a group each. What can be solved alone is not tried again for each solution
    of something else: so a quantifier over many variables costs what its largest group does.

    Args:
        parts: formulas, each with the wanted variables in it.
        wanted: types of the variables by name.
    """
    groups: list[tuple[list[Formula], set[str]]] = []
    for part, names in parts:
        met = [group for group in groups if not names.isdisjoint(group[1])]
        groups = [group for group in groups if names.isdisjoint(group[1])]
        groups.append(([*(p for group in met for p in group[0]), part], names.union(*(group[1] for group in met))))
    said = {name for _, names in groups for name in names}
    groups += [([], {name}) for name in wanted if name not in said]
    return [(found, {name: wanted[name] for name in wanted if name in names}) for found, names in groups]


def negation(formula: Formula) -> Formula:
    """Return the negation of a formula, without a double one."""
    return formula.part if isinstance(formula, Not) else Not(formula)
