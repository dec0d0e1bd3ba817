"""Looking at the states of a translated task one after another, nearest first.

When all states that can be reached have been looked at and the goal holds in none, there is no
plan; when all up to some distance have, no plan is that short. An :class:`Exploration` continues
where it stopped.

Invariants: states come in an order that depends on the task alone. Axioms are evaluated by layers,
each until nothing changes, a variable that no axiom sets having its initial value. O(states *
applicable operators).

How many actions a plan needs at least, without a search. It is the heuristic LM-cut, at the initial
state [Helmert and Domshlak, Landmarks, Critical Paths and Abstractions: What's the Difference
Anyway?, ICAPS 2009]. Landmarks (sets of actions of which every plan has one) that share no action
add up. They are cuts in the relaxed task, in which actions delete nothing. One thing that deletions
do is kept. A fact that holds at first and is wanted in the end has to be brought about again, when
all actions of some landmark delete it, as of a hand that comes home.

Invariants: the bound is never too high. Derived variables are taken to have any value and
conditional effects to happen always, which makes a task easier, never harder. Ties are broken by
the order of facts and operators: the bound depends on the task alone. O(cuts * size of the
operators * log facts).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tmkit._support.time_limits import check_time
from tmkit.task_planning.sas import Pair, SasAxiom, SasEffect, SasOperator, SasTask

SasState = tuple[int, ...]  # the value of each variable, derived ones included


class Exploration:
    """A breadth-first look at the reachable states of a translated task, patched or not, in portions.

    Attributes:
        depth: no state of the goal is nearer to the initial state than this many steps.
        found: whether a state of the goal has been seen; then it is ``depth`` steps away, and
            nothing is left to do.
        exhausted: whether every reachable state has been looked at.
    """

    def __init__(self, task: SasTask) -> None:
        self._goal = task.goal
        self._layers = _axiom_layers(task)
        self._derived = tuple(
            (n, task.init[n]) for n, variable in enumerate(task.variables) if variable.layer >= 0
        )
        self._always: list[_Move] = []
        self._keyed: dict[Pair, list[_Move]] = {}
        for operator in task.operators:
            needs = operator.needs
            move = (needs, operator.effects)
            (self._keyed.setdefault(needs[0], []) if needs else self._always).append(move)
        start = self._closed(list(task.init))
        self._seen = {start}
        self._layer = [start]
        self._next: list[SasState] = []
        self._at = 0
        self.depth = 0
        self.found = self._is_goal(start)
        self.exhausted = False

    def look(self, states: int) -> None:
        """Look at so many more states, unless the goal is found or none is left."""
        for _ in range(states):
            check_time()
            if self.found or self.exhausted:
                return
            if self._at == len(self._layer):
                self._deepen()
                continue
            for after in self._successors(self._layer[self._at]):
                if after not in self._seen:
                    self._seen.add(after)
                    self._next.append(after)
            self._at += 1

    def _deepen(self) -> None:
        self._layer, self._next, self._at = self._next, [], 0
        if not self._layer:
            self.exhausted = True
            return
        self.depth += 1
        self.found = any(map(self._is_goal, self._layer))

    def _is_goal(self, state: SasState) -> bool:
        return all(state[variable] == value for variable, value in self._goal)

    def _successors(self, state: SasState) -> Iterable[SasState]:
        for moves in (self._always, *(self._keyed.get(pair, ()) for pair in enumerate(state))):
            for needs, effects in moves:
                if all(state[variable] == value for variable, value in needs):
                    after = list(state)
                    for effect in effects:
                        if all(state[variable] == value for variable, value in effect.conditions):
                            after[effect.variable] = effect.after
                    yield self._closed(after)

    def _closed(self, state: list[int]) -> SasState:
        """Return the state with its derived variables computed."""
        for variable, value in self._derived:
            state[variable] = value
        for axioms in self._layers:
            is_changing = True
            while is_changing:
                is_changing = False
                for axiom in axioms:
                    is_new = state[axiom.variable] != axiom.after
                    if is_new and all(
                        state[variable] == value for variable, value in axiom.conditions
                    ):
                        state[axiom.variable] = axiom.after
                        is_changing = True
        return tuple(state)


_Move = tuple[tuple[Pair, ...], tuple[SasEffect, ...]]


def _axiom_layers(task: SasTask) -> list[list[SasAxiom]]:
    layers: dict[int, list[SasAxiom]] = {}
    for axiom in task.axioms:
        layers.setdefault(task.variables[axiom.variable].layer, []).append(axiom)
    return [layers[number] for number in sorted(layers)]


def least_steps(task: SasTask) -> int | None:
    """Return a number of actions that every plan has at least, ``None`` when it is proved that there is no plan."""
    return _Relaxed(task).bound([1] * len(task.operators))


class _Relaxed:
    """The task without deletions; facts are numbers, 0 is a fact that holds initially."""

    def __init__(self, task: SasTask) -> None:
        self._numbers: dict[Pair, int] = {}
        derived = {number for number, variable in enumerate(task.variables) if variable.layer >= 0}
        for number, variable in enumerate(task.variables):
            for value in range(len(variable.values)):
                self._numbers[number, value] = 0 if number in derived else len(self._numbers) + 1
        kept = [
            (number, value)
            for number, value in task.goal
            if number not in derived and task.init[number] == value
        ]
        self._again = {pair: len(self._numbers) + 1 + index for index, pair in enumerate(kept)}
        self._deleters = {pair: _deleters(task.operators, pair) for pair in kept}
        self._wanted = task.goal
        self.goal = len(self._numbers) + len(kept) + 1
        self.fact_count = self.goal + 1
        self.needs = [self._facts(operator.needs) or [0] for operator in task.operators]
        self.adds = [self._added(operator) for operator in task.operators]
        self.needs.append([])
        self.adds.append([self.goal])
        self.initial = sorted({0, *self._facts(enumerate(task.init))})
        self.needed_by: list[list[int]] = [[] for _ in range(self.fact_count)]
        self.added_by: list[list[int]] = [[] for _ in range(self.fact_count)]
        for number, (needs, adds) in enumerate(zip(self.needs, self.adds, strict=True)):
            for fact in needs:
                self.needed_by[fact].append(number)
            for fact in adds:
                self.added_by[fact].append(number)

    def _added(self, operator: SasOperator) -> list[int]:
        pairs = {(effect.variable, effect.after) for effect in operator.effects}
        return sorted(
            [*self._facts(pairs), *(self._again[pair] for pair in pairs if pair in self._again)]
        )

    def _want(self, restored: set[Pair]) -> None:
        """Set what the goal needs: some facts as they are, those restored once more."""
        goal_action = len(self.needs) - 1
        for fact in self.needs[goal_action]:
            self.needed_by[fact].remove(goal_action)
        plain = self._facts(pair for pair in self._wanted if pair not in restored)
        self.needs[goal_action] = sorted([*plain, *(self._again[pair] for pair in restored)]) or [0]
        for fact in self.needs[goal_action]:
            self.needed_by[fact].append(goal_action)

    def _facts(self, pairs: Iterable[Pair]) -> list[int]:
        return sorted({self._numbers[pair] for pair in pairs} - {0})

    def bound(self, costs: list[int]) -> int | None:
        """Return what the landmarks cost together; ``None`` when the goal cannot be reached at all."""
        restored: set[Pair] = set()
        while True:
            self._want(restored)
            cuts, total = self._landmarks(costs)
            if total is None:
                return None
            more = {
                pair
                for pair, deleters in self._deleters.items()
                if pair not in restored and any(deleters.issuperset(cut) for cut in cuts)
            }
            if not more:
                return total
            restored |= more

    def _landmarks(self, costs: list[int]) -> tuple[list[list[int]], int | None]:
        """Return landmarks until the goal is free, each a set of actions, and what they cost together."""
        left = [*costs, 0]
        total = 0
        cuts: list[list[int]] = []
        while True:
            check_time()
            values = self._values(left)
            worth = values[self.goal]
            if not worth:
                return cuts, None if worth is None else total
            cut = self._cut(left, values)
            cheapest = min(left[number] for number in cut)
            total += cheapest
            cuts.append(cut)
            for number in cut:
                left[number] -= cheapest

    def _values(self, costs: list[int]) -> list[int | None]:
        """Return h^max of each fact, ``None`` of those that cannot be had."""
        values: list[int | None] = [None] * self.fact_count
        missing = [len(needs) for needs in self.needs]
        waiting = [(0, fact) for fact in self.initial]
        while waiting:
            value, fact = heapq.heappop(waiting)
            if values[fact] is not None:
                continue
            values[fact] = value
            for number in self.needed_by[fact]:
                missing[number] -= 1
                # facts come in the order of their value, so this is the hardest of its needs
                if not missing[number]:
                    for added in self.adds[number]:
                        if values[added] is None:
                            heapq.heappush(waiting, (value + costs[number], added))
        return values

    def _cut(self, costs: list[int], values: list[int | None]) -> list[int]:
        """Return the actions across the border of the facts from which the goal is free."""
        # The first of the facts of the highest value, None when one of them cannot be had.
        hardest = [
            (
                None
                if any(values[fact] is None for fact in needs)
                else max(needs, key=lambda fact: values[fact] or 0)
            )
            for needs in self.needs
        ]
        free = {self.goal}
        pending = [self.goal]
        while pending:
            for number in self.added_by[pending.pop()]:
                needed = hardest[number]
                if needed is not None and costs[number] == 0 and needed not in free:
                    free.add(needed)
                    pending.append(needed)
        justified: list[list[int]] = [[] for _ in range(self.fact_count)]
        for number, needed in enumerate(hardest):
            if needed is not None:
                justified[needed].append(number)
        seen = set(self.initial) - free
        pending = sorted(seen)
        cut: set[int] = set()
        while pending:
            for number in justified[pending.pop()]:
                if any(added in free for added in self.adds[number]):
                    cut.add(number)
                for added in self.adds[number]:
                    if added not in seen and added not in free:
                        seen.add(added)
                        pending.append(added)
        return sorted(cut)


def _deleters(operators: Iterable[SasOperator], pair: Pair) -> frozenset[int]:
    """Return the operators that delete a value, whatever else holds."""
    variable, value = pair
    return frozenset(
        number
        for number, operator in enumerate(operators)
        if any(
            e.variable == variable and e.after != value and not e.conditions
            for e in operator.effects
        )
    )
