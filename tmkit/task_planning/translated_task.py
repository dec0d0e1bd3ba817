"""Translated task with learned constraints, and proofs that facts exclude each other.

A task is translated once (:mod:`tmkit.task_planning.sas`). Learned constraints, another initial
state (:meth:`TranslatedTask.at_state`) and one more object (:meth:`TranslatedTask.with_object`)
patch the translation. :meth:`TranslatedTask.forbid` adds one binary derived variable per context,
with the axiom ``context -> blocked``. The operators of the action get the precondition *not
blocked*. The search must support axioms.

For searches without axioms, such as optimal search with landmarks, operators are split instead.
"Not while c1, c2 and c3 hold" is the disjunction of "not c1", "c1 and not c2", and "c1, c2 and not
c3". These cases are disjoint. The operator is replaced by copies, one for each case and each other
value of the variable. A value that is mutex with a precondition of the operator needs no copy,
which excludes most copies.

Unreachability of a goal is proved by h^2: pairs of facts are examined instead of states. Initially,
the pairs of the initial state are possible. An action is possible if all pairs of its preconditions
are. It makes the pairs among its effects possible. It also makes each effect possible together with
every fact that is possible with all its preconditions and that it does not change. A pair that is
not possible at the fixed point never holds, which is a proof. A possible pair proves nothing. This
is the test of the heuristic h^2 at the initial state [Haslum and Geffner, Admissible Heuristics for
Optimal Planning, AIPS 2000]. All actions are applied at once, and a row of the table of pairs is a
bit set.

Guarantee: derived variables may have any value, which is conservative. Time is O(rounds *
(operators + facts) * facts / 64), space O(facts^2 + operators * facts).
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import FrozenMapping
from tmkit.pddl.state import State
from tmkit.pddl.vocabulary import derived_predicate_fault
from tmkit.task_planning.encoding import copy_of
from tmkit.task_planning.sas import (
    Pair,
    SasAxiom,
    SasOperator,
    SasTask,
    SasVariable,
    split_by_control,
)
from tmkit.task_planning.spare_objects import ABSENT, ARRIVE, spare_names

Literal = tuple[Fact, bool]
"""A ground fact and its truth value."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Preconditions, effects and changed ranges [first, end) of an operator, as fact numbers."""

    preconditions: list[int]
    adds: list[int]
    changed: list[Pair]


def is_goal_impossible(task: SasTask) -> bool:
    """Return whether two facts of the goal are proved to exclude each other.

    False proves nothing.
    """
    facts = _Facts(task)
    goal = facts.numbers(task.goal)
    if not goal:
        return False
    goal_pairs = np.ix_(goal, goal)
    possible, rules = facts.start(), facts.all_rules()
    while not possible[goal_pairs].all():
        check_time()
        next_possible = rules.apply(possible)
        if (next_possible == possible).all():
            return True
        possible = next_possible
    return False


def find_conflict(task: SasTask, literals: Iterable[Literal]) -> tuple[Literal, ...]:
    """Return one literal that never holds, or two that never hold together.

    Args:
        task: the translated task. Its goal is ignored; a task with an empty goal has all reachable
            facts.
        literals: the literals to check; the first impossible one is returned. Derived facts are
            skipped.

    Returns:
        One or two literals, for which this is proved. An empty result proves nothing.
    """
    if not task.is_complete:
        return ()
    facts = _Facts(task)
    next_possible, rules = facts.start(), facts.all_rules()
    possible = np.zeros_like(next_possible)
    while not (next_possible == possible).all():
        check_time()
        possible, next_possible = next_possible, rules.apply(next_possible)
    individually_possible = possible.diagonal()
    numbers: list[tuple[Literal, list[int]]] = []
    for literal in literals:
        values = facts.satisfying_numbers(literal)
        if values is None:
            continue
        if not individually_possible[values].any():
            return (literal,)
        numbers.append((literal, values))
    for (first, first_numbers), (second, second_numbers) in itertools.combinations(numbers, 2):
        if not possible[np.ix_(first_numbers, second_numbers)].any():
            return first, second
    return ()


_TRUE_FACT = 0
"""Number of a fact that holds in every state, which is a precondition of every rule."""


class _Facts:
    """Numbers of the values of basic variables, from 1."""

    def __init__(self, task: SasTask) -> None:
        self._task = task
        self._first: list[int] = []
        self.count = 1
        for variable in task.variables:
            self._first.append(self.count if variable.layer < 0 else 0)
            self.count += len(variable.values) if variable.layer < 0 else 0
        self._sizes = [len(variable.values) for variable in task.variables]

    def start(self) -> NDArray[np.bool_]:
        """Return the matrix (count, count) of the pairs that hold in the initial state."""
        possible = np.zeros((self.count, self.count), dtype=np.bool_)
        true_values = [_TRUE_FACT, *self.numbers(enumerate(self._task.init))]
        possible[np.ix_(true_values, true_values)] = True
        return possible

    def all_rules(self) -> _Rules:
        """Return all operators as rules."""
        return _Rules(
            [rule for operator in self._task.operators for rule in self.rules(operator)], self.count
        )

    def satisfying_numbers(self, literal: Literal) -> list[int] | None:
        """Return the values that satisfy a literal, or None if it always holds or is derived."""
        fact, is_wanted = literal
        task = self._task
        if fact.predicate in task.problem.domain.derived_predicates:
            return None
        pair = task.value_of(fact)
        if pair is None:
            return None if (fact in task.problem.init) == is_wanted else []
        variable, value = pair
        if is_wanted:
            return self.numbers([pair])
        return self.numbers(
            (variable, other) for other in range(self._sizes[variable]) if other != value
        )

    def numbers(self, pairs: Iterable[Pair]) -> list[int]:
        """Return the numbers of values, without those of derived variables."""
        return sorted(
            {self._first[variable] + value for variable, value in pairs if self._first[variable]}
        )

    def rules(self, operator: SasOperator) -> Iterator[_Rule]:
        """Yield the rule of an operator, then the rule of each conditional effect."""
        unconditional_effects = [effect for effect in operator.effects if not effect.conditions]
        changed = [self._values(effect.variable) for effect in unconditional_effects]
        adds = [(effect.variable, effect.after) for effect in unconditional_effects]
        yield _Rule(self.numbers(operator.preconditions), self.numbers(adds), changed)
        for effect in operator.effects:
            if effect.conditions:
                more = self.numbers([*adds, (effect.variable, effect.after)])
                needed = self.numbers({*operator.preconditions, *effect.conditions})
                yield _Rule(needed, more, [*changed, self._values(effect.variable)])

    def _values(self, variable: int) -> Pair:
        first = self._first[variable]
        return (first, first + self._sizes[variable]) if first else (0, 0)


class _Rules:
    """Preconditions, unchanged facts and effects of all rules, as arrays."""

    def __init__(self, rules: list[_Rule], count: int) -> None:
        self._count = count
        max_preconditions = max((len(rule.preconditions) for rule in rules), default=0) or 1
        padded = [
            rule.preconditions
            + (rule.preconditions[:1] or [_TRUE_FACT])
            * (max_preconditions - len(rule.preconditions))
            for rule in rules
        ]
        self._needs = np.array(padded, dtype=np.intp).reshape(len(rules), max_preconditions)
        is_unchanged = np.ones((len(rules), count), dtype=np.bool_)
        added = np.zeros((len(rules), count), dtype=np.bool_)
        rules_by_facts: dict[Pair, list[int]] = {}
        for number, rule in enumerate(rules):
            for facts in rule.changed:
                rules_by_facts.setdefault(facts, []).append(number)
        for (first, end), numbers in rules_by_facts.items():
            is_unchanged[numbers, first:end] = False
        adders = np.repeat(np.arange(len(rules)), [len(rule.adds) for rule in rules])
        facts_added = np.array([fact for rule in rules for fact in rule.adds], dtype=np.intp)
        added[adders, facts_added] = True
        self._untouched, self._added = _pack_bits(is_unchanged), _pack_bits(added)
        order = np.lexsort((adders, facts_added))
        self._adder = adders[order]
        self._fact, self._begin = np.unique(facts_added[order], return_index=True)

    def apply(self, possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the possible pairs (count, count) after one application of every possible rule."""
        if not len(self._adder):
            return possible
        rows = _pack_bits(possible)
        cooccurring = rows[self._needs[:, 0]]
        is_applied = np.ones(len(self._needs), dtype=np.bool_)
        for column in self._needs.T[1:]:
            cooccurring &= rows[column]
        for index, column in enumerate(self._needs.T):
            for other in self._needs.T[index:]:
                is_applied &= possible[column, other]
        cooccurring = (cooccurring & self._untouched) | self._added
        cooccurring[~is_applied] = 0
        rows[self._fact] |= np.bitwise_or.reduceat(cooccurring[self._adder], self._begin, axis=0)
        next_possible = np.unpackbits(rows.view(np.uint8), axis=1, count=self._count).astype(
            np.bool_
        )
        symmetric: NDArray[np.bool_] = next_possible | next_possible.T
        return symmetric


def _pack_bits(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of truth values as rows of bits."""
    width = -(-rows.shape[1] // 64) * 8
    packed = np.zeros((rows.shape[0], width), dtype=np.uint8)
    packed[:, : -(-rows.shape[1] // 8)] = np.packbits(rows, axis=1)
    return packed.view(np.uint64)


_NO_GROUPS: frozenset[int] = frozenset()
"""Groups of a value without mutexes."""

_MAX_COPIES = 2000
"""Largest number of copies of operators for one constraint, with the encoding ``"auto"``."""


@dataclass(frozen=True)
class TranslatedTask(SasTask):
    """A task in finite-domain variables with learned constraints.

    Attributes:
        blocked: derived variable of each context in which an action is forbidden.
        encoding: encoding of constraints: ``axioms``, ``split`` operators, or ``auto``, which
            splits if the result has few operators, since heuristics ignore axioms.
        spares: types of absent spare objects, by name.
        waiting: operators with an absent object.
        history: work limits of searches by their names, learned on the same task with fewer
            constraints; these tasks share it.
    """

    blocked: FrozenMapping[frozenset[Pair], int] = field(default_factory=FrozenMapping, repr=False)
    encoding: typing.Literal["auto", "axioms", "split"] = "auto"
    spares: FrozenMapping[str, str] = field(default_factory=FrozenMapping, repr=False)
    waiting: tuple[SasOperator, ...] = field(default=(), repr=False)
    history: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def is_goal_impossible(self) -> bool:
        """Return whether two goal facts are proved to exclude each other; False proves nothing."""
        return is_goal_impossible(self)

    def at_state(self, state: State) -> TranslatedTask | None:
        """Return the task with another initial state, or None if it must be translated again.

        No new translation is needed if each new fact has a variable and facts without a variable
        are unchanged. Facts that are unreachable from the old state are then unreachable from the
        new one. A mutex group remains valid if at most one of its facts holds, since no
        action increases this number. The time is linear in the facts of the state and the task.

        Args:
            state: the facts that hold.

        Raises:
            TaskError: if a fact is unknown to the problem or derived.
        """
        problem = copy_of(self.problem, init=state)
        absent = (Fact(ABSENT, (name,)) for name in self.spares)
        true = {pair for fact in (*state, *absent) if (pair := self._values.get(fact))}
        old, new = (
            {fact for fact in facts if fact not in self._values}
            for facts in (self.problem.init, state)
        )
        if not self.is_complete or old != new or state.values != self.problem.init.values:
            return None
        if any(sum(pair in true for pair in group) > 1 for group in self.mutexes):
            return None
        init = []
        for number, (variable, value) in enumerate(zip(self.variables, self.init, strict=True)):
            values = range(len(variable.values))
            fact_values = [v for v in values if variable.values[v].startswith("Atom ")]
            if variable.layer < 0:
                true_values = [v for v in fact_values if (number, v) in true] or [
                    v for v in values if v not in fact_values
                ]
                if len(true_values) != 1:
                    return None
                value = true_values[0]
            init.append(value)
        rerooted = replace(self, problem=problem, init=tuple(init), history={})
        if "search" in self.__dict__:  # operators and axioms are unchanged
            rerooted.__dict__["search"] = self.search
        return rerooted

    def with_spares(self, spare: Mapping[str, int]) -> TranslatedTask:
        """Return the task, translated from :func:`with_spare_objects`, with its objects absent.

        Args:
            spare: number of spare objects of each type.
        """
        spares = spare_names(spare)
        operators = (*self.operators, *self.uncontrollable)
        real = [operator for operator in operators if not operator.name.startswith(ARRIVE)]
        return replace(
            self, operators=(), uncontrollable=(), waiting=tuple(real), spares=FrozenMapping(spares)
        )._activate_operators()

    def with_object(self, name: str, kind: str, state: State) -> TranslatedTask | None:
        """Return the task with a spare object as a new object, and another initial state.

        The time is linear in the facts of the state and in the size of the task.

        Args:
            name: the object.
            kind: its type.
            state: the facts that hold, including those about the object.

        Returns:
            The task, or None if no spare object of the type is left or :meth:`at_state` returns
            None.

        Raises:
            TaskError: if the object exists, or a fact is unknown to the problem or derived.
        """
        if name in self.problem.all_objects:
            raise self.problem.error(f"object '{name}' already exists")
        spare = next((spare for spare, type_name in self.spares.items() if type_name == kind), None)
        if spare is None:
            return None
        problem = copy_of(self.problem, objects={**self.problem.objects, name: kind})
        remaining_spares = FrozenMapping(
            {other: type_name for other, type_name in self.spares.items() if other != spare}
        )
        names = FrozenMapping({**self.names, spare: name})
        return (
            replace(self, problem=problem, names=names, spares=remaining_spares)
            ._activate_operators()
            .at_state(state)
        )

    def _activate_operators(self) -> TranslatedTask:
        """Return the task with the waiting operators whose objects are all present."""
        waits = [
            not self.spares.keys().isdisjoint(operator.name.split()[1:])
            for operator in self.waiting
        ]
        ready = (operator for operator, wait in zip(self.waiting, waits, strict=True) if not wait)
        controllable, uncontrollable = split_by_control(self.problem, ready)
        return replace(
            self,
            operators=(*self.operators, *controllable),
            uncontrollable=(*self.uncontrollable, *uncontrollable),
            waiting=tuple(itertools.compress(self.waiting, waits)),
        )

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> TranslatedTask:
        """Return the task without ``action`` in states in which all facts of ``context`` hold.

        Args:
            action: the ground action. Without operators, the task is returned unchanged.
            context: basic facts; if empty, the action is always forbidden.

        Raises:
            TaskError: if the action or a fact is unknown to the problem, or a fact is derived.
        """
        self.problem.binding_of(action)
        literals = self._literals(context)
        if literals is None:
            return self
        name = self._operator_name(action)
        indices = [
            index for index, operator in enumerate(self.operators) if operator.name.rstrip() == name
        ]
        if not indices:
            return self
        if not literals:
            remaining_operators = (
                op for index, op in enumerate(self.operators) if index not in indices
            )
            return replace(self, operators=tuple(remaining_operators))
        copies = len(indices) * sum(
            len(self.variables[variable].values) - 1 for variable, _ in literals
        )
        if self.encoding == "split" or (self.encoding == "auto" and copies <= _MAX_COPIES):
            return self._split_operators(indices, literals)
        task, variable = self._add_blocking_variable(literals)
        operators = list(self.operators)
        for index in indices:
            guard = (variable, 1)
            if guard not in operators[index].prevail:
                operators[index] = replace(
                    operators[index], prevail=(*operators[index].prevail, guard)
                )
        return replace(task, operators=tuple(operators))

    def _split_operators(self, indices: Iterable[int], context: frozenset[Pair]) -> TranslatedTask:
        """Return the task with some operators split, such that none applies in the context."""
        members = set(indices)
        operators = (
            (
                _split_operators(
                    operator, context, variables=self.variables, excluding=self._excluding
                )
                if index in members
                else (operator,)
            )
            for index, operator in enumerate(self.operators)
        )
        return replace(self, operators=tuple(itertools.chain.from_iterable(operators)))

    @cached_property
    def _excluding(self) -> dict[Pair, frozenset[int]]:
        """Numbers of the mutex groups of each value."""
        groups: dict[Pair, set[int]] = {}
        for number, group in enumerate(self.mutexes):
            for pair in group:
                groups.setdefault(pair, set()).add(number)
        return {pair: frozenset(numbers) for pair, numbers in groups.items()}

    def _literals(self, context: Iterable[Fact]) -> frozenset[Pair] | None:
        """Return the values at which all facts hold, or None if they never hold together."""
        literals: dict[int, int] = {}
        for fact in context:
            vocabulary, derived = self.problem.vocabulary, self.problem.domain.derived_predicates
            fault = derived_predicate_fault(fact.predicate, derived) or vocabulary.atom_fault(
                fact.predicate, fact.arguments, {}
            )
            if fault is not None:
                raise self.problem.error(f"context {fact}: {fault.reason}")
            if fact in self._values:
                variable, value = self._values[fact]
                if literals.setdefault(variable, value) != value:
                    return None
            elif fact not in self.problem.init:
                return None
        return frozenset(literals.items())

    def _add_blocking_variable(self, literals: frozenset[Pair]) -> tuple[TranslatedTask, int]:
        """Return the task with a derived variable, and its number.

        The variable is 0 if and only if all ``literals`` hold.
        """
        if literals in self.blocked:
            return self, self.blocked[literals]
        number = len(self.variables)
        label = f"blocked--{len(self.blocked) + 1}()"
        variable = SasVariable(f"var{number}", 0, (f"Atom {label}", f"NegatedAtom {label}"))
        axiom = SasAxiom(tuple(sorted(literals)), number, 1, 0)
        task = replace(
            self,
            variables=(*self.variables, variable),
            init=(*self.init, 1),
            axioms=(*self.axioms, axiom),
            blocked=FrozenMapping({**self.blocked, literals: number}),
        )
        return task, number

    def _operator_name(self, action: GroundAction) -> str:
        """Return the operator name of an action.

        The translator appends a space to a name without arguments, which is omitted here.
        """
        spelling = {real: spelled for spelled, real in self.names.items()}
        return " ".join(
            (action.name, *(spelling.get(argument, argument) for argument in action.arguments))
        )


def _split_operators(
    operator: SasOperator,
    context: Iterable[Pair],
    *,
    variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> tuple[SasOperator, ...]:
    """Return copies of an operator that apply where at least one fact of a context is false."""
    preconditions = dict(operator.preconditions)
    open_pairs = []
    for variable, value in sorted(context):
        if variable not in preconditions:
            open_pairs.append((variable, value))
        elif preconditions[variable] != value:
            return (operator,)
    if any(_is_excluded(pair, preconditions, excluding) for pair in open_pairs):
        return (operator,)
    return tuple(_cases(operator, open_pairs, preconditions, variables, excluding))


def _cases(
    operator: SasOperator,
    context: list[Pair],
    preconditions: dict[int, int],
    variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> Iterator[SasOperator]:
    for variable, value in context:
        check_time()
        for other in range(len(variables[variable].values)):
            if other != value and not _is_excluded((variable, other), preconditions, excluding):
                yield _add_precondition(operator, (variable, other))
        preconditions = {**preconditions, variable: value}
        operator = _add_precondition(operator, (variable, value))


def _is_excluded(
    pair: Pair, preconditions: Mapping[int, int], excluding: Mapping[Pair, frozenset[int]]
) -> bool:
    """Return whether a value is mutex with a precondition."""
    groups = excluding.get(pair, _NO_GROUPS)
    return any(
        need != pair and groups & excluding.get(need, _NO_GROUPS) for need in preconditions.items()
    )


def _add_precondition(operator: SasOperator, pair: Pair) -> SasOperator:
    """Return the operator with one more precondition, in the effect on its variable if any."""
    variable, value = pair
    changed = [
        n for n, e in enumerate(operator.effects) if e.variable == variable and not e.conditions
    ]
    if not changed:
        return replace(operator, prevail=(*operator.prevail, pair))
    effects = list(operator.effects)
    effects[changed[0]] = effects[changed[0]]._replace(before=value)
    return replace(operator, effects=tuple(effects))
