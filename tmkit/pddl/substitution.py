"""What follows from the shape of a formula alone: substitution, free variables, and the atoms with their polarity.

No state and no domain is asked; :mod:`tmkit.pddl.evaluation` does that. Quantifiers bind: a variable inside hides one
of the same name outside, and only what is free is replaced.

Invariants: functions of their arguments, linear in the size of the formula; what is returned has the structure of what
was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tmkit.pddl.formulas import (
    And,
    Arithmetic,
    Atom,
    Comparison,
    Equals,
    Exists,
    Expression,
    Forall,
    Formula,
    FunctionTerm,
    Imply,
    Not,
    Number,
    Or,
    Parameter,
    is_variable,
)


def substitute(formula: Formula, binding: Mapping[str, str]) -> Formula:
    """Return a formula with free terms replaced.

    Variables of a quantifier hide those of the same name outside. Values must be objects, not variables, or variables
    that no quantifier of the formula binds.

    Args:
        formula: the formula.
        binding: new terms by old ones.
    """

    def terms(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([binding.get(term, term) for term in old])

    match formula:
        case Atom(predicate, arguments):
            return Atom(predicate, terms(arguments))
        case Equals(left, right):
            return Equals(*terms((left, right)))
        case Comparison(operator, left_value, right_value):
            return Comparison(operator, _in_expression(left_value, binding), _in_expression(right_value, binding))
        case Not(part):
            return Not(substitute(part, binding))
        case And(parts):
            return And(tuple(substitute(part, binding) for part in parts))
        case Or(parts):
            return Or(tuple(substitute(part, binding) for part in parts))
        case Imply(premise, conclusion):
            return Imply(substitute(premise, binding), substitute(conclusion, binding))
        case Exists(parameters, body):
            return Exists(parameters, substitute(body, _without(binding, parameters)))
        case Forall(parameters, body):
            return Forall(parameters, substitute(body, _without(binding, parameters)))


def _in_expression(expression: Expression, binding: Mapping[str, str]) -> Expression:
    match expression:
        case Number():
            return expression
        case FunctionTerm(name, terms):
            return FunctionTerm(name, tuple(binding.get(term, term) for term in terms))
        case Arithmetic(operator, parts):
            return Arithmetic(operator, tuple(_in_expression(part, binding) for part in parts))


def _without(binding: Mapping[str, str], parameters: tuple[Parameter, ...]) -> Mapping[str, str]:
    hidden = {parameter.name for parameter in parameters}
    return (
        {name: value for name, value in binding.items() if name not in hidden} if hidden & binding.keys() else binding
    )


def free_variables(formula: Formula) -> frozenset[str]:
    """Return the variables of ``formula`` that no quantifier of it binds."""
    match formula:
        case Atom(_, terms):
            return frozenset(filter(is_variable, terms))
        case Equals(left, right):
            return frozenset(filter(is_variable, (left, right)))
        case Comparison(_, left_value, right_value):
            return _variables(left_value) | _variables(right_value)
        case Not(part):
            return free_variables(part)
        case And(parts) | Or(parts):
            return frozenset().union(*map(free_variables, parts))
        case Imply(premise, conclusion):
            return free_variables(premise) | free_variables(conclusion)
        case Exists(parameters, body) | Forall(parameters, body):
            return free_variables(body) - {parameter.name for parameter in parameters}


def _variables(expression: Expression) -> frozenset[str]:
    match expression:
        case Number():
            return frozenset()
        case FunctionTerm(_, terms):
            return frozenset(filter(is_variable, terms))
        case Arithmetic(_, parts):
            return frozenset().union(*map(_variables, parts))


def atoms_of(formula: Formula, *, positive: bool = True) -> Iterator[tuple[Atom, bool]]:
    """Yield the atoms of ``formula``, each with its polarity: whether making it true can only help the formula hold.

    Args:
        formula: the formula.
        positive: the polarity of the formula itself.
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
