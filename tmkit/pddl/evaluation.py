"""Evaluation of formulas in a state, and changes by effects.

The idea: an :class:`Interpretation` is a problem and the facts that hold, together with everything
that follows by the axioms. Formulas are judged on it; and, since axioms and quantifiers ask "for
which objects", it also answers a formula as a *query*: :meth:`Interpretation.solutions` yields the
bindings under which it holds. The query takes a conjunction apart and always continues with the
part that leaves the fewest choices. A part whose variables are all bound only filters, an equation
or a positive atom binds variables from the facts. Only if neither is left a variable runs over its
type. Parts that have no variable in common are solved apart. What still takes too long ends with
the block of :func:`~tmkit._support.time_limits.time_limit` around the call.

Axioms (derived predicates) are computed stratum by stratum, each to its least fixpoint, so negation
always speaks about predicates that are finished. The domain guarantees that such an order exists.

Semantics: closed world; no quantifier ranges over objects outside the problem; an undefined numeric
value makes every comparison with it false. Effects follow PDDL: all conditions refer to the state
before, and an atom that is both added and deleted is added.
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
    merged_quantifiers,
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


@dataclass(slots=True)
class StateChange:
    """What an effect does: facts to delete and to add, the cost, and numbers; ``None`` where one is undefined."""

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
        """Add to the cost; None makes it undefined."""
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def assign(self, term: Fact, value: float | None) -> None:
        """Give a function a value; None makes it undefined."""
        self.values[term] = value

    def undefined(self) -> Fact | None:
        """Return a function that would have no value, if any."""
        return next((term for term, value in self.values.items() if value is None), None)

    def applied(self, state: State) -> State:
        """Return the state after it; every number in it is defined."""
        values = {term: value for term, value in self.values.items() if value is not None}
        return state.change(add=self.added, delete=self.deleted, values=values)


def in_words(failure: Formula) -> str:
    """Say in words that a ground formula fails."""
    match failure:
        case Atom() | Equals() | Comparison():
            return f"{failure} does not hold"
        case Not(Atom() | Equals() | Comparison() as part):
            return f"{part} holds, but must not"
        case _:
            return f"{failure} is not satisfied"


class _Domain(Protocol):
    """What is asked of a domain: its axioms, in an order in which they can be computed."""

    @property
    def axioms(self) -> tuple[Axiom, ...]: ...
    @property
    def derived_predicates(self) -> frozenset[str]: ...
    @property
    def axiom_strata(self) -> tuple[tuple[str, ...], ...]: ...
    def axioms_for(self, predicate: str, /) -> tuple[Axiom, ...]: ...


class _Problem(Protocol):
    """The interface of a problem that this module evaluates: a :class:`~tmkit.pddl.model.Problem`."""

    @property
    def domain(self) -> _Domain: ...
    @property
    def values(self) -> Mapping[Fact, float]: ...
    def objects_of(self, types: tuple[str, ...], /) -> tuple[str, ...]: ...
    def members(self, types: tuple[str, ...], /) -> frozenset[str]: ...


class Interpretation:
    """A problem, the facts that hold, and what follows.

    Args:
        problem: supplies objects, types, axioms and the values of numeric functions.
        state: the basic facts, derived ones being computed when first asked for; and the numbers
            that have changed.
    """

    def __init__(self, problem: _Problem, state: State) -> None:
        check_time()
        self._problem, self._values = problem, state.values
        facts = state.facts
        self._known: dict[str, set[tuple[str, ...]]] = {}
        for predicate, arguments in facts:
            self._known.setdefault(predicate, set()).add(arguments)
        self._pending = bool(problem.domain.axioms)

    def holds(self, formula: Formula, binding: Binding | None = None) -> bool:
        """Return whether a formula holds.

        Args:
            formula: the formula.
            binding: values of its free variables.
        """
        bound: Binding = {} if binding is None else binding
        match formula:
            case Atom(predicate, terms):
                return self._lookup(predicate, tuple([bound.get(term, term) for term in terms]))
            case Equals(left, right):
                return bound.get(left, left) == bound.get(right, right)
            case Comparison(sign, left_value, right_value):
                left_number, right_number = (
                    self.value(left_value, bound),
                    self.value(right_value, bound),
                )
                return (
                    left_number is not None
                    and right_number is not None
                    and _COMPARE[sign](left_number, right_number)
                )
            case Not(part):
                return not self.holds(part, bound)
            case And(parts):
                return all(self.holds(part, bound) for part in parts)
            case Or(parts):
                return any(self.holds(part, bound) for part in parts)
            case Imply(premise, conclusion):
                return not self.holds(premise, bound) or self.holds(conclusion, bound)
            case Exists():
                return any(True for _ in self.solutions(*merged_quantifiers(formula), bound))
            case Forall(parameters, body):
                return not self.holds(Exists(parameters, negation(body)), bound)

    def failures(self, formula: Formula, binding: Binding | None = None) -> tuple[Formula, ...]:
        """Return the ground conjuncts that make a formula fail; none if it holds.

        Args:
            formula: the formula.
            binding: values of its free variables.
        """
        bound: Binding = {} if binding is None else binding
        if isinstance(formula, And):
            return tuple(
                itertools.chain.from_iterable(self.failures(part, bound) for part in formula.parts)
            )
        return () if self.holds(formula, bound) else (substitute(formula, bound),)

    def value(self, expression: Expression, binding: Binding) -> float | None:
        """Return the value of a numeric expression; ``None`` if a function has no value, or after a division by 0.

        Args:
            expression: the expression.
            binding: values of its free variables.
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
        return arguments in self._known.get(predicate, ())

    def change(self, effect: Effect, binding: Binding) -> StateChange:
        """Return the facts that an effect adds and deletes, and its cost.

        Args:
            effect: the effect.
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
                before = change.values.get(term, self._number(term))
                change.assign(term, _changed(sign, before, self.value(amount, binding)))
            case EffectAnd(parts):
                for part in parts:
                    self._collect(part, binding, change)
            case When(condition, inner):
                if self.holds(condition, binding):
                    self._collect(inner, binding, change)
            case ForEach(parameters, inner):
                for extended in self.solutions(And(), parameters, binding):
                    self._collect(inner, extended, change)

    def solutions(
        self, formula: Formula, parameters: Iterable[Parameter], binding: Binding | None = None
    ) -> Iterator[dict[str, str]]:
        """Yield the bindings of ``parameters`` under which ``formula`` holds.

        Args:
            formula: its free variables are parameters or bound.
            parameters: the variables to find values for; they hide values of the same name in
                ``binding``.
            binding: values of the other free variables.

        Yields:
            ``binding`` extended by a value for each parameter. The same binding may come more than
            once.
        """
        wanted = {parameter.name: parameter.types for parameter in parameters}
        bound = {name: value for name, value in (binding or {}).items() if name not in wanted}
        yield from self._solve([formula], wanted, bound)

    def _solve(
        self, conjuncts: list[Formula], wanted: dict[str, tuple[str, ...]], bound: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        check_time()
        # each with the wanted variables that it speaks of
        remaining: list[tuple[Formula, set[str]]] = []
        waiting = list(conjuncts_of(conjuncts))[::-1]
        while waiting:
            part = waiting.pop()
            open_names = wanted.keys() & free_variables(part)
            if not open_names:
                if not self.holds(part, bound):
                    return
            elif (
                isinstance(part, Or)
                and (fewer := self._open_choices(part, wanted, bound)) is not part
            ):
                waiting.extend(conjuncts_of([fewer]))
            else:
                remaining.append((part, open_names))
        groups = independent_groups(remaining, wanted)
        if len(groups) == 1:
            yield from self._solve_connected([part for part, _ in remaining], wanted, bound)
        elif all(
            any(True for _ in self._solve_connected(parts, names, bound)) for parts, names in groups
        ):
            yield from self._solve_groups(groups, bound)

    def _open_choices(
        self, part: Or, wanted: Mapping[str, tuple[str, ...]], bound: Binding
    ) -> Formula:
        """Return the disjunction without the choices that are decided; the same one when none is."""
        undecided = [
            choice for choice in part.parts if not wanted.keys().isdisjoint(free_variables(choice))
        ]
        if len(undecided) == len(part.parts):
            return part
        decided = (
            choice for choice in part.parts if wanted.keys().isdisjoint(free_variables(choice))
        )
        if any(self.holds(choice, bound) for choice in decided):
            return And()
        return undecided[0] if len(undecided) == 1 else Or(tuple(undecided))

    def _solve_groups(
        self, groups: list[tuple[list[Formula], dict[str, tuple[str, ...]]]], bound: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        """Yield each combination of the solutions of groups that have no variable in common."""
        if not groups:
            yield bound
            return
        (parts, wanted), *others = groups
        for found in self._solve_connected(parts, wanted, bound):
            yield from self._solve_groups(others, found)

    def _solve_connected(
        self, remaining: list[Formula], wanted: dict[str, tuple[str, ...]], bound: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        check_time()
        best = min(
            range(len(remaining)),
            key=lambda i: self._choices(remaining[i], wanted, bound),
            default=None,
        )
        if best is not None and (
            self._choices(remaining[best], wanted, bound) < _UNGUIDED
            or (len(remaining) == 1 and isinstance(remaining[best], Or))
        ):
            rest_of_parts = [*remaining[:best], *remaining[best + 1 :]]
            yield from self._follow(remaining[best], rest_of_parts, wanted, bound)
            return
        open_names = min(
            (free_variables(part) & wanted.keys() for part in remaining),
            key=len,
            default=wanted.keys(),
        )
        variable = next(name for name in wanted if name in open_names)
        rest = {name: types for name, types in wanted.items() if name != variable}
        for value in self._problem.objects_of(wanted[variable]):
            yield from self._solve(remaining, rest, {**bound, variable: value})

    def _choices(
        self, part: Formula, wanted: Mapping[str, tuple[str, ...]], bound: Binding
    ) -> float:
        """Estimate in how many ways ``part`` can bind variables; ``_UNGUIDED`` when it cannot."""
        match part:
            case Equals(left, right):
                return 1 if left not in wanted or right not in wanted else _UNGUIDED
            case Atom(predicate, terms):
                if self._pending and predicate in self._problem.domain.derived_predicates:
                    self._derive()
                unbound = sum(term in wanted for term in terms)
                return 2 + len(self._known.get(predicate, ())) * unbound / (len(terms) or 1)
            case And(parts):
                return min(
                    (self._choices(inner, wanted, bound) for inner in parts), default=_UNGUIDED
                )
            case Or(parts):
                return 2 + sum(self._choices(choice, wanted, bound) for choice in parts)
            case Exists(parameters, body) if wanted.keys().isdisjoint(p.name for p in parameters):
                return 2 + min(
                    (self._choices(inner, wanted, bound) for inner in conjuncts_of([body])),
                    default=_UNGUIDED,
                )
            case _:
                return _UNGUIDED

    def _follow(
        self,
        part: Formula,
        remaining: list[Formula],
        wanted: dict[str, tuple[str, ...]],
        bound: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        match part:
            case Equals(left, right):
                variable, value = (
                    (left, bound.get(right, right))
                    if left in wanted
                    else (right, bound.get(left, left))
                )
                yield from self._extend({variable: value}, remaining, wanted, bound)
            case Atom(predicate, terms):
                for arguments in sorted(self._known.get(predicate, ())):
                    found = _unify(terms, arguments, wanted, bound)
                    if found is not None:
                        yield from self._extend(found, remaining, wanted, bound)
            case Or(parts):
                for choice in parts:
                    yield from self._solve([choice, *remaining], wanted, bound)
            case Exists(parameters, body):
                inner = {parameter.name: parameter.types for parameter in parameters}
                names = free_variables(body) & wanted.keys()
                outer = {name: wanted[name] for name in wanted if name in names}
                hidden = {name: value for name, value in bound.items() if name not in inner}
                found_before: set[tuple[str, ...]] = set()
                for solution in self._solve([body], {**inner, **outer}, hidden):
                    values = tuple(solution[name] for name in outer)
                    if values not in found_before:
                        found_before.add(values)
                        yield from self._extend(
                            dict(zip(outer, values, strict=True)), remaining, wanted, bound
                        )

    def _extend(
        self,
        found: Binding,
        remaining: list[Formula],
        wanted: dict[str, tuple[str, ...]],
        bound: dict[str, str],
    ) -> Iterator[dict[str, str]]:
        """Continue with the variables ``found``, unless one of them has a value outside its type."""
        if all(value in self._problem.members(wanted[name]) for name, value in found.items()):
            rest = {name: types for name, types in wanted.items() if name not in found}
            yield from self._solve(remaining, rest, {**bound, **found})

    def derived_facts(self) -> Iterator[Fact]:
        """Yield the facts that follow by axioms, sorted."""
        if self._pending:
            self._derive()
        for predicate in sorted(self._problem.domain.derived_predicates):
            for arguments in sorted(self._known.get(predicate, ())):
                yield Fact(predicate, arguments)

    def _derive(self) -> None:
        self._pending = False
        for stratum in self._problem.domain.axiom_strata:
            while self._derive_once(stratum):
                pass

    def _derive_once(self, stratum: Iterable[str]) -> bool:
        grown = False
        for axiom in (axiom for name in stratum for axiom in self._problem.domain.axioms_for(name)):
            known = self._known.setdefault(axiom.predicate, set())
            names = [parameter.name for parameter in axiom.parameters]
            found = {
                tuple(solution[name] for name in names)
                for solution in self.solutions(axiom.condition, axiom.parameters)
            }
            if not found <= known:
                known |= found
                grown = True
        return grown


_UNGUIDED = float("inf")


def _unify(
    terms: tuple[str, ...],
    arguments: tuple[str, ...],
    wanted: Mapping[str, tuple[str, ...]],
    bound: Binding,
) -> dict[str, str] | None:
    """Return the values of the wanted variables that turn ``terms`` into ``arguments``, ``None`` when none do."""
    found: dict[str, str] = {}
    for term, argument in zip(terms, arguments, strict=True):
        if is_variable(term) and term in wanted:
            if found.setdefault(term, argument) != argument:
                return None
        elif bound.get(term, term) != argument:
            return None
    return found


def _changed(sign: str, before: float | None, amount: float | None) -> float | None:
    if sign == "assign" or before is None or amount is None:
        return amount if sign == "assign" else None
    return _calculate(
        {"increase": "+", "decrease": "-", "scale-up": "*", "scale-down": "/"}[sign],
        [before, amount],
    )


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
