"""Proving that a goal contradicts itself, without a search.

The idea: two facts that can never hold together are found by looking at pairs of facts instead of states. Beginning
with the pairs of the initial state, an action is taken as possible when all pairs of its preconditions are; it makes
the pairs among its effects possible, and each effect together with every fact that was possible beside its
preconditions and that it does not touch. What is not possible when nothing new comes up never is. This is the test that
the heuristic h2 would fail at the initial state [Haslum and Geffner, Admissible Heuristics for Optimal Planning, AIPS
2000].

Every state that can be reached has only possible pairs, but not the other way round, so the answer "impossible" is a
proof and the other answer is none. A search finds the same only after looking at every state, of which there are too
many as soon as a few blocks stand on a hundred places.

Invariants: derived variables are taken to have any value, which makes more possible, never less. O(rounds * operators *
facts) time, O(facts squared) space.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.tasks.formulas import Fact
from tmkit.tasks.sas import Pair, SasOperator, TranslatedTask

__all__ = ["find_conflict", "goal_is_impossible"]

Literal = tuple[Fact, bool]
"""A ground fact, and whether it is to hold or not to hold."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an operator, or one of its conditional effects, needs, adds, and touches: indices of facts."""

    needs: NDArray[np.intp]
    adds: NDArray[np.intp]
    untouched: NDArray[np.bool_]


def goal_is_impossible(task: TranslatedTask) -> bool:
    """Tell whether some two of the goal's facts can be proved never to hold together; False proves nothing.

    Args:
        task: the translated task, patched or not.
    """
    facts = _Facts(task)
    goal = facts.indices(task.goal)
    if not len(goal):
        return False
    possible, rules = facts.start(), facts.all_rules()
    while not possible[np.ix_(goal, goal)].all():
        if not _grow(possible, rules):
            return True
    return False


def find_conflict(task: TranslatedTask, literals: Iterable[Literal]) -> tuple[Literal, ...]:
    """Return one literal that is proved never to hold, or else two that never hold together; none proves nothing.

    Args:
        task: the translated task, whatever its goal; one whose goal is empty has all facts that can come up.
        literals: what is wanted, in order: the first that is impossible is returned. Derived facts are passed over.
    """
    if not task.complete:
        return ()
    facts = _Facts(task)
    possible, rules = facts.start(), facts.all_rules()
    while _grow(possible, rules):
        pass
    alone = possible.diagonal()
    ways: list[tuple[Literal, NDArray[np.intp]]] = []
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


class _Facts:
    """Numbers the values of the variables that are not derived."""

    def __init__(self, task: TranslatedTask) -> None:
        self._task = task
        self._first: list[int] = []
        self.count = 0
        for variable in task.variables:
            self._first.append(self.count if variable.layer < 0 else -1)
            self.count += len(variable.values) if variable.layer < 0 else 0
        self._sizes = [len(variable.values) for variable in task.variables]

    def start(self) -> NDArray[np.bool_]:
        """Return which pairs are possible at first: those of the initial state."""
        possible = np.zeros((self.count, self.count), dtype=np.bool_)
        held = self.indices(enumerate(self._task.init))
        possible[np.ix_(held, held)] = True
        return possible

    def all_rules(self) -> list[_Rule]:
        """Return all operators as rules."""
        return [rule for operator in self._task.operators for rule in self.rules(operator)]

    def ways(self, literal: Literal) -> NDArray[np.intp] | None:
        """Return the values that make a literal true; None when it is true always, or nothing is known of it.

        A fact without a variable never changes, so it holds in the initial state or never.
        """
        fact, wanted = literal
        task = self._task
        if fact.predicate in task.problem.domain.derived_predicates:
            return None
        pair = task.value_of(fact)
        if pair is None:
            return None if (fact in task.problem.init) == wanted else np.zeros(0, dtype=np.intp)
        variable, value = pair
        if wanted:
            return self.indices([pair])
        return self.indices((variable, other) for other in range(self._sizes[variable]) if other != value)

    def indices(self, pairs: Iterable[Pair]) -> NDArray[np.intp]:
        """Return the numbers of values, without those of derived variables."""
        found = {self._first[variable] + value for variable, value in pairs if self._first[variable] >= 0}
        return np.array(sorted(found), dtype=np.intp)

    def rules(self, operator: SasOperator) -> Iterator[_Rule]:
        """Yield the operator as a rule, then each of its conditional effects as one."""
        needs = {*operator.prevail, *((e.variable, e.before) for e in operator.effects if e.before >= 0)}
        always = [effect for effect in operator.effects if not effect.conditions]
        untouched = np.ones(self.count, dtype=np.bool_)
        for effect in always:
            self._touch(untouched, effect.variable)
        adds = [(effect.variable, effect.after) for effect in always]
        yield _Rule(self.indices(needs), self.indices(adds), untouched)
        for effect in operator.effects:
            if effect.conditions:
                kept = untouched.copy()
                self._touch(kept, effect.variable)
                more = self.indices([*adds, (effect.variable, effect.after)])
                yield _Rule(self.indices({*needs, *effect.conditions}), more, kept)

    def _touch(self, untouched: NDArray[np.bool_], variable: int) -> None:
        first = self._first[variable]
        if first >= 0:
            untouched[first : first + self._sizes[variable]] = False


def _grow(possible: NDArray[np.bool_], rules: list[_Rule]) -> bool:
    """Apply every rule once; tell whether a pair became possible."""
    has_grown = False
    for rule in rules:
        if len(rule.needs):
            rows = possible[rule.needs]
            if not rows[:, rule.needs].all():
                continue
            beside = rows.all(axis=0) & rule.untouched
        else:
            beside = possible.diagonal() & rule.untouched
        beside[rule.adds] = True
        if not possible[rule.adds][:, beside].all():
            has_grown = True
            for fact in rule.adds:
                possible[fact] |= beside
                possible[:, fact] |= beside
    return has_grown
