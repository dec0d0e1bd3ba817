"""Proving that a goal contradicts itself, without a search.

Two facts that can never hold together are found by looking at pairs of facts instead of states. Beginning with the
pairs of the initial state, an action is taken as possible when all pairs of its preconditions are; it makes the pairs
among its effects possible, and each effect together with every fact that was possible beside its preconditions and that
it does not touch. What is not possible when nothing new comes up never is: a proof; the other answer is none. This is
the test that the heuristic h2 would fail at the initial state [Haslum and Geffner, Admissible Heuristics for Optimal
Planning, AIPS 2000]. All actions are tried at once; a row of the table, "what is possible beside this fact", is bits.

Invariants: derived variables are taken to have any value, which makes more possible, never less. O(rounds * (operators
+ facts) * facts) time over 64, O(facts squared + operators * facts) space.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import Fact
from tmkit.task_planning.sas import Pair, SasOperator, SasTask

Literal = tuple[Fact, bool]
"""A ground fact, and whether it is to hold or not to hold."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an operator, or one of its conditional effects, needs, adds, and touches: numbers of facts.

    It touches all facts of a variable: the first, and the one after the last.
    """

    needs: list[int]
    adds: list[int]
    touched: list[Pair]


def is_goal_impossible(task: SasTask) -> bool:
    """Return whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
    facts = _Facts(task)
    goal = facts.numbers(task.goal)
    if not goal:
        return False
    wanted = np.ix_(goal, goal)
    possible, rules = facts.start(), facts.all_rules()
    while not possible[wanted].all():
        check_time()
        grown = rules.applied(possible)
        if (grown == possible).all():
            return True
        possible = grown
    return False


def find_conflict(task: SasTask, literals: Iterable[Literal]) -> tuple[Literal, ...]:
    """Return one literal that is proved never to hold, or else two that never hold together; none proves nothing.

    Args:
        task: the translated task, whatever its goal; one whose goal is empty has all facts that can come up.
        literals: what is wanted, in order: the first that is impossible is returned. Derived facts are passed over.
    """
    if not task.is_complete:
        return ()
    facts = _Facts(task)
    grown, rules = facts.start(), facts.all_rules()
    possible = np.zeros_like(grown)
    while not (grown == possible).all():
        check_time()
        possible, grown = grown, rules.applied(grown)
    alone = possible.diagonal()
    ways: list[tuple[Literal, list[int]]] = []
    for literal in literals:
        values = facts.ways(literal)
        if values is None:
            continue
        if not alone[values].any():
            return (literal,)
        ways.append((literal, values))
    for (first, ways_of_first), (second, ways_of_second) in itertools.combinations(ways, 2):
        if not possible[np.ix_(ways_of_first, ways_of_second)].any():
            return first, second
    return ()


_ALWAYS = 0  # a fact that holds in every state: every rule has a precondition


class _Facts:
    """Numbers the values of the variables that are not derived, from 1."""

    def __init__(self, task: SasTask) -> None:
        self._task = task
        self._first: list[int] = []
        self.count = 1
        for variable in task.variables:
            self._first.append(self.count if variable.layer < 0 else 0)
            self.count += len(variable.values) if variable.layer < 0 else 0
        self._sizes = [len(variable.values) for variable in task.variables]

    def start(self) -> NDArray[np.bool_]:
        """Return which pairs are possible at first: those of the initial state."""
        possible = np.zeros((self.count, self.count), dtype=np.bool_)
        held = [_ALWAYS, *self.numbers(enumerate(self._task.init))]
        possible[np.ix_(held, held)] = True
        return possible

    def all_rules(self) -> _Rules:
        """Return all operators as rules."""
        return _Rules([rule for operator in self._task.operators for rule in self.rules(operator)], self.count)

    def ways(self, literal: Literal) -> list[int] | None:
        """Return the values that make a literal true; None when it is true always, or nothing is known of it.

        A fact without a variable never changes, so it holds in the initial state or never.
        """
        fact, wanted = literal
        task = self._task
        if fact.predicate in task.problem.domain.derived_predicates:
            return None
        pair = task.value_of(fact)
        if pair is None:
            return None if (fact in task.problem.init) == wanted else []
        variable, value = pair
        if wanted:
            return self.numbers([pair])
        return self.numbers((variable, other) for other in range(self._sizes[variable]) if other != value)

    def numbers(self, pairs: Iterable[Pair]) -> list[int]:
        """Return the numbers of values, without those of derived variables."""
        return sorted({self._first[variable] + value for variable, value in pairs if self._first[variable]})

    def rules(self, operator: SasOperator) -> Iterator[_Rule]:
        """Yield the operator as a rule, then each of its conditional effects as one."""
        always = [effect for effect in operator.effects if not effect.conditions]
        touched = [self._values(effect.variable) for effect in always]
        adds = [(effect.variable, effect.after) for effect in always]
        yield _Rule(self.numbers(operator.needs), self.numbers(adds), touched)
        for effect in operator.effects:
            if effect.conditions:
                more = self.numbers([*adds, (effect.variable, effect.after)])
                needed = self.numbers({*operator.needs, *effect.conditions})
                yield _Rule(needed, more, [*touched, self._values(effect.variable)])

    def _values(self, variable: int) -> Pair:
        first = self._first[variable]
        return (first, first + self._sizes[variable]) if first else (0, 0)


class _Rules:
    """All rules, in arrays: what each needs, what it leaves as it is, what it adds."""

    def __init__(self, rules: list[_Rule], count: int) -> None:
        self._count = count
        most = max((len(rule.needs) for rule in rules), default=0) or 1
        padded = [rule.needs + (rule.needs[:1] or [_ALWAYS]) * (most - len(rule.needs)) for rule in rules]
        self._needs = np.array(padded, dtype=np.intp).reshape(len(rules), most)
        untouched = np.ones((len(rules), count), dtype=np.bool_)
        added = np.zeros((len(rules), count), dtype=np.bool_)
        touching: dict[Pair, list[int]] = {}
        for number, rule in enumerate(rules):
            for facts in rule.touched:
                touching.setdefault(facts, []).append(number)
        for (first, end), numbers in touching.items():
            untouched[numbers, first:end] = False
        adders = np.repeat(np.arange(len(rules)), [len(rule.adds) for rule in rules])
        facts_added = np.array([fact for rule in rules for fact in rule.adds], dtype=np.intp)
        added[adders, facts_added] = True
        self._untouched, self._added = _packed(untouched), _packed(added)
        order = np.lexsort((adders, facts_added))
        self._adder = adders[order]
        self._fact, self._begin = np.unique(facts_added[order], return_index=True)

    def applied(self, possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the pairs (count, count) that are possible after every rule whose needs are has been applied once."""
        if not len(self._adder):
            return possible
        rows = _packed(possible)
        beside = rows[self._needs[:, 0]]
        is_applied = np.ones(len(self._needs), dtype=np.bool_)
        for column in self._needs.T[1:]:
            beside &= rows[column]
        for index, column in enumerate(self._needs.T):
            for other in self._needs.T[index:]:
                is_applied &= possible[column, other]
        beside = (beside & self._untouched) | self._added
        beside[~is_applied] = 0
        rows[self._fact] |= np.bitwise_or.reduceat(beside[self._adder], self._begin, axis=0)
        grown = np.unpackbits(rows.view(np.uint8), axis=1, count=self._count).astype(np.bool_)
        together: NDArray[np.bool_] = grown | grown.T
        return together


def _packed(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of truth values as rows of bits."""
    width = -(-rows.shape[1] // 64) * 8
    packed = np.zeros((rows.shape[0], width), dtype=np.uint8)
    packed[:, : -(-rows.shape[1] // 8)] = np.packbits(rows, axis=1)
    return packed.view(np.uint64)
