"""Evaluation of formulas in a state, and changes by effects.

An :class:`Interpretation` consists of a problem, the facts that hold, and all facts that follow by
the axioms. It evaluates formulas. For axioms and quantifiers it also solves them as *queries*, like
a conjunctive query of a database: :meth:`Interpretation.solutions` yields the bindings under which
a formula holds.

A query splits a conjunction and continues with the part that has the fewest choices. A part without
unbound variables only filters. An equation or a positive atom binds variables from the facts. If
neither is left, a variable iterates over the objects of its type. Parts without common variables
are solved independently. A :func:`~tmkit._support.time_limits.time_limit` block around the call
ends long queries.

Axioms (derived predicates) are computed stratum by stratum, each to its least fixpoint. A negated
predicate is therefore complete when it is read. The domain guarantees that such an order exists.

Semantics: closed world; quantifiers range over the objects of the problem; a comparison with an
undefined numeric value is false. Effects follow PDDL: all conditions refer to the state before, and
an atom that is both added and deleted is added.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import (
    Add,
    And,
    Arithmetic,
    Atom,
    Axiom,
    ChangeNumber,
    Comparison,
    Delete,
    Effect,
    EffectAnd,
    Equals,
    Exists,
    Expression,
    Fact,
    Forall,
    ForEach,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Not,
    Number,
    Or,
    Parameter,
    When,
    is_variable,
)
from tmkit.pddl.state import State
from tmkit.pddl.substitution import (
    conjuncts_of,
    free_variables,
    independent_groups,
    merge_quantifiers,
    negation,
    substitute,
)

Binding = Mapping[str, str]

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}

_ARITHMETIC_SIGNS = {"increase": "+", "decrease": "-", "scale-up": "*", "scale-down": "/"}
"""Arithmetic signs by the operator of a numeric effect."""


@dataclass(slots=True)
class StateChange:
    """Result of an effect.

    Attributes:
        added: facts to add.
        deleted: facts to delete.
        cost: increase of the total cost, ``None`` if undefined.
        values: new values of functions by ground term, ``None`` for an undefined value.
    """

    added: set[Fact] = field(default_factory=set)
    deleted: set[Fact] = field(default_factory=set)
    cost: float | None = 0.0
    values: dict[Fact, float | None] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        """Add a fact."""
        self.added.add(fact)

    def delete(self, fact: Fact) -> None:
        """Delete a fact."""
        self.deleted.add(fact)

    def charge(self, cost: float | None) -> None:
        """Increase the cost; ``None`` makes it undefined."""
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def assign(self, term: Fact, value: float | None) -> None:
        """Set the value of a function; ``None`` makes it undefined."""
        self.values[term] = value

    def find_undefined(self) -> Fact | None:
        """Return the first function term with an undefined value, ``None`` if all are defined."""
        return next((term for term, value in self.values.items() if value is None), None)

    def apply_to(self, state: State) -> State:
        """Return the state after this change, whose values must all be defined."""
        values = {term: value for term, value in self.values.items() if value is not None}
        return state.change(add=self.added, delete=self.deleted, values=values)


def describe_failure(failure: Formula) -> str:
    """Return the message for a ground formula that does not hold."""
    match failure:
        case Atom() | Equals() | Comparison():
            return f"{failure} does not hold"
        case Not(Atom() | Equals() | Comparison() as part):
            return f"{part} holds, but must not"
        case _:
            return f"{failure} is not satisfied"


class _Domain(Protocol):
    """Interface of a domain: its axioms, and the order in which they are computed."""

    @property
    def axioms(self) -> tuple[Axiom, ...]: ...
    @property
    def derived_predicates(self) -> frozenset[str]: ...
    @property
    def axiom_strata(self) -> tuple[tuple[str, ...], ...]: ...
    def axioms_for(self, predicate: str, /) -> tuple[Axiom, ...]: ...


class _Problem(Protocol):
    """Interface of a problem, as of :class:`~tmkit.pddl.model.Problem`."""

    @property
    def domain(self) -> _Domain: ...
    @property
    def values(self) -> Mapping[Fact, float]: ...
    def objects_of(self, types: tuple[str, ...], /) -> tuple[str, ...]: ...
    def members(self, types: tuple[str, ...], /) -> frozenset[str]: ...


class Interpretation:
    """A problem with the facts of a state and their consequences.

    Args:
        problem: objects, types, axioms and the values of numeric functions.
        state: basic facts, and numbers that have changed. Derived facts are computed on first use.
    """

    def __init__(self, problem: _Problem, state: State) -> None:
        check_time()
        self._problem, self._values = problem, state.values
        self._tuples: dict[str, set[tuple[str, ...]]] = {}
        for predicate, arguments in state.facts:
            self._tuples.setdefault(predicate, set()).add(arguments)
        self._pending = bool(problem.domain.axioms)

    def holds(self, formula: Formula, binding: Binding | None = None) -> bool:
        """Return whether a formula holds.

        Args:
            formula: formula to evaluate.
            binding: values of its free variables.
        """
        assignment: Binding = {} if binding is None else binding
        match formula:
            case Atom(predicate, terms):
                return self._lookup(
                    predicate, tuple([assignment.get(term, term) for term in terms])
                )
            case Equals(left, right):
                return assignment.get(left, left) == assignment.get(right, right)
            case Comparison(sign, left_value, right_value):
                left_number = self.value(left_value, assignment)
                right_number = self.value(right_value, assignment)
                if left_number is None or right_number is None:
                    return False
                return _COMPARE[sign](left_number, right_number)
            case Not(part):
                return not self.holds(part, assignment)
            case And(parts):
                return all(self.holds(part, assignment) for part in parts)
            case Or(parts):
                return any(self.holds(part, assignment) for part in parts)
            case Imply(premise, conclusion):
                return not self.holds(premise, assignment) or self.holds(conclusion, assignment)
            case Exists():
                return any(True for _ in self.solutions(*merge_quantifiers(formula), assignment))
            case Forall(parameters, body):
                return not self.holds(Exists(parameters, negation(body)), assignment)

    def failures(self, formula: Formula, binding: Binding | None = None) -> tuple[Formula, ...]:
        """Return the ground conjuncts of a formula that do not hold, none if it holds.

        Args:
            formula: formula to evaluate.
            binding: values of its free variables.
        """
        assignment: Binding = {} if binding is None else binding
        if isinstance(formula, And):
            return tuple(
                itertools.chain.from_iterable(
                    self.failures(part, assignment) for part in formula.parts
                )
            )
        return () if self.holds(formula, assignment) else (substitute(formula, assignment),)

    def value(self, expression: Expression, binding: Binding) -> float | None:
        """Return the value of a numeric expression.

        Args:
            expression: expression to evaluate.
            binding: values of its free variables.

        Returns:
            The value, or ``None`` if a function has no value or a divisor is 0.
        """
        match expression:
            case Number(number):
                return number
            case FunctionTerm(name, terms):
                return self._number(Fact(name, tuple([binding.get(term, term) for term in terms])))
            case Arithmetic(sign, parts):
                numbers = [self.value(part, binding) for part in parts]
                defined = [number for number in numbers if number is not None]
                return _calculate(sign, defined) if len(defined) == len(numbers) else None

    def _number(self, term: Fact) -> float | None:
        return self._values.get(term, self._problem.values.get(term))

    def _lookup(self, predicate: str, arguments: tuple[str, ...]) -> bool:
        if self._pending and predicate in self._problem.domain.derived_predicates:
            self._derive()
        return arguments in self._tuples.get(predicate, ())

    def change(self, effect: Effect, binding: Binding) -> StateChange:
        """Return the facts that an effect adds and deletes, its cost and its new values.

        Args:
            effect: effect to evaluate.
            binding: values of its free variables.
        """
        change = StateChange()
        self._collect(effect, binding, change)
        return change

    def _collect(self, effect: Effect, binding: Binding, change: StateChange) -> None:
        match effect:
            case Add(atom):
                change.add(atom.ground(binding))
            case Delete(atom):
                change.delete(atom.ground(binding))
            case IncreaseCost(amount):
                change.charge(self.value(amount, binding))
            case ChangeNumber(sign, FunctionTerm(name, terms), amount):
                term = Fact(name, tuple([binding.get(term, term) for term in terms]))
                previous = change.values.get(term, self._number(term))
                change.assign(term, _apply_operator(sign, previous, self.value(amount, binding)))
            case EffectAnd(parts):
                for part in parts:
                    self._collect(part, binding, change)
            case When(condition, inner):
                if self.holds(condition, binding):
                    self._collect(inner, binding, change)
            case ForEach(parameters, inner):
                for extension in self.solutions(And(), parameters, binding):
                    self._collect(inner, extension, change)

    def solutions(
        self, formula: Formula, parameters: Iterable[Parameter], binding: Binding | None = None
    ) -> Iterator[dict[str, str]]:
        """Yield the bindings of ``parameters`` under which ``formula`` holds.

        Args:
            formula: formula whose free variables are in ``parameters`` or ``binding``.
            parameters: variables to solve for. They hide values of the same name in ``binding``.
            binding: values of the other free variables.

        Yields:
            ``binding`` extended by a value for each parameter, possibly with repetitions.
        """
        variables = {parameter.name: parameter.types for parameter in parameters}
        assignment = {
            name: value for name, value in (binding or {}).items() if name not in variables
        }
        yield from self._solve([formula], variables, assignment)

    def _solve(
        self,
        conjuncts: list[Formula],
        variables: dict[str, tuple[str, ...]],
        assignment: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        check_time()
        # conjuncts, each with its unbound variables
        remaining: list[tuple[Formula, set[str]]] = []
        pending = list(conjuncts_of(conjuncts))[::-1]
        while pending:
            part = pending.pop()
            names = variables.keys() & free_variables(part)
            if not names:
                if not self.holds(part, assignment):
                    return
                continue
            if isinstance(part, Or):
                simplified = self._drop_decided(part, variables, assignment)
                if simplified is not part:
                    pending.extend(conjuncts_of([simplified]))
                    continue
            remaining.append((part, names))
        groups = independent_groups(remaining, variables)
        if len(groups) == 1:
            yield from self._solve_connected([part for part, _ in remaining], variables, assignment)
        elif all(
            any(True for _ in self._solve_connected(parts, names, assignment))
            for parts, names in groups
        ):
            yield from self._solve_groups(groups, assignment)

    def _drop_decided(
        self, part: Or, variables: Mapping[str, tuple[str, ...]], assignment: Binding
    ) -> Formula:
        """Return the disjunction without its ground choices, or the same object if it has none."""
        undecided = [
            choice
            for choice in part.parts
            if not variables.keys().isdisjoint(free_variables(choice))
        ]
        if len(undecided) == len(part.parts):
            return part
        decided = (
            choice for choice in part.parts if variables.keys().isdisjoint(free_variables(choice))
        )
        if any(self.holds(choice, assignment) for choice in decided):
            return And()
        return undecided[0] if len(undecided) == 1 else Or(tuple(undecided))

    def _solve_groups(
        self,
        groups: list[tuple[list[Formula], dict[str, tuple[str, ...]]]],
        assignment: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        """Yield each combination of the solutions of groups that have no variable in common."""
        if not groups:
            yield assignment
            return
        (parts, variables), *remaining_groups = groups
        for solution in self._solve_connected(parts, variables, assignment):
            yield from self._solve_groups(remaining_groups, solution)

    def _solve_connected(
        self,
        remaining: list[Formula],
        variables: dict[str, tuple[str, ...]],
        assignment: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        check_time()
        best = min(
            range(len(remaining)),
            key=lambda i: self._estimate_choices(remaining[i], variables, assignment),
            default=None,
        )
        if best is not None and (
            self._estimate_choices(remaining[best], variables, assignment) < _UNRESTRICTED
            or (len(remaining) == 1 and isinstance(remaining[best], Or))
        ):
            other_parts = [*remaining[:best], *remaining[best + 1 :]]
            yield from self._follow(remaining[best], other_parts, variables, assignment)
            return
        names = min(
            (free_variables(part) & variables.keys() for part in remaining),
            key=len,
            default=variables.keys(),
        )
        variable = next(name for name in variables if name in names)
        unbound = {name: types for name, types in variables.items() if name != variable}
        for value in self._problem.objects_of(variables[variable]):
            yield from self._solve(remaining, unbound, {**assignment, variable: value})

    def _estimate_choices(
        self, part: Formula, variables: Mapping[str, tuple[str, ...]], assignment: Binding
    ) -> float:
        """Estimate the number of bindings by a part, ``_UNRESTRICTED`` if it binds no variable."""
        match part:
            case Equals(left, right):
                return 1 if left not in variables or right not in variables else _UNRESTRICTED
            case Atom(predicate, terms):
                if self._pending and predicate in self._problem.domain.derived_predicates:
                    self._derive()
                unbound = sum(term in variables for term in terms)
                return 2 + len(self._tuples.get(predicate, ())) * unbound / (len(terms) or 1)
            case And(parts):
                return min(
                    (self._estimate_choices(inner, variables, assignment) for inner in parts),
                    default=_UNRESTRICTED,
                )
            case Or(parts):
                return 2 + sum(
                    self._estimate_choices(choice, variables, assignment) for choice in parts
                )
            case Exists(parameters, body) if variables.keys().isdisjoint(
                p.name for p in parameters
            ):
                return 2 + min(
                    (
                        self._estimate_choices(inner, variables, assignment)
                        for inner in conjuncts_of([body])
                    ),
                    default=_UNRESTRICTED,
                )
            case _:
                return _UNRESTRICTED

    def _follow(
        self,
        part: Formula,
        remaining: list[Formula],
        variables: dict[str, tuple[str, ...]],
        assignment: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        match part:
            case Equals(left, right):
                variable, other = (left, right) if left in variables else (right, left)
                value = assignment.get(other, other)
                yield from self._extend({variable: value}, remaining, variables, assignment)
            case Atom(predicate, terms):
                for arguments in sorted(self._tuples.get(predicate, ())):
                    unifier = _unify(terms, arguments, variables, assignment)
                    if unifier is not None:
                        yield from self._extend(unifier, remaining, variables, assignment)
            case Or(parts):
                for choice in parts:
                    yield from self._solve([choice, *remaining], variables, assignment)
            case Exists(parameters, body):
                inner = {parameter.name: parameter.types for parameter in parameters}
                names = free_variables(body) & variables.keys()
                outer = {name: variables[name] for name in variables if name in names}
                outer_values = {
                    name: value for name, value in assignment.items() if name not in inner
                }
                seen: set[tuple[str, ...]] = set()
                for solution in self._solve([body], {**inner, **outer}, outer_values):
                    values = tuple(solution[name] for name in outer)
                    if values not in seen:
                        seen.add(values)
                        yield from self._extend(
                            dict(zip(outer, values, strict=True)), remaining, variables, assignment
                        )

    def _extend(
        self,
        values: Binding,
        remaining: list[Formula],
        variables: dict[str, tuple[str, ...]],
        assignment: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        """Yield the solutions with some variables bound, none if a value is outside its type."""
        if all(value in self._problem.members(variables[name]) for name, value in values.items()):
            unbound = {name: types for name, types in variables.items() if name not in values}
            yield from self._solve(remaining, unbound, {**assignment, **values})

    def derive_facts(self) -> Iterator[Fact]:
        """Yield the facts that follow by axioms, sorted."""
        if self._pending:
            self._derive()
        for predicate in sorted(self._problem.domain.derived_predicates):
            for arguments in sorted(self._tuples.get(predicate, ())):
                yield Fact(predicate, arguments)

    def _derive(self) -> None:
        self._pending = False
        for stratum in self._problem.domain.axiom_strata:
            while self._derive_once(stratum):
                pass

    def _derive_once(self, stratum: Iterable[str]) -> bool:
        has_grown = False
        for axiom in (axiom for name in stratum for axiom in self._problem.domain.axioms_for(name)):
            tuples = self._tuples.setdefault(axiom.predicate, set())
            names = [parameter.name for parameter in axiom.parameters]
            derived = {
                tuple(solution[name] for name in names)
                for solution in self.solutions(axiom.condition, axiom.parameters)
            }
            if not derived <= tuples:
                tuples |= derived
                has_grown = True
        return has_grown


_UNRESTRICTED = float("inf")
"""Estimated number of bindings by a part that cannot bind variables."""


def _unify(
    terms: tuple[str, ...],
    arguments: tuple[str, ...],
    variables: Mapping[str, tuple[str, ...]],
    assignment: Binding,
) -> dict[str, str] | None:
    """Return the values of variables that turn ``terms`` into ``arguments``, ``None`` if none."""
    unifier: dict[str, str] = {}
    for term, argument in zip(terms, arguments, strict=True):
        if is_variable(term) and term in variables:
            if unifier.setdefault(term, argument) != argument:
                return None
        elif assignment.get(term, term) != argument:
            return None
    return unifier


def _apply_operator(sign: str, previous: float | None, amount: float | None) -> float | None:
    if sign == "assign":
        return amount
    if previous is None or amount is None:
        return None
    return _calculate(_ARITHMETIC_SIGNS[sign], [previous, amount])


def _calculate(sign: str, numbers: list[float]) -> float | None:
    if len(numbers) == 1:
        return -numbers[0]
    left, right = numbers
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right if right else None
