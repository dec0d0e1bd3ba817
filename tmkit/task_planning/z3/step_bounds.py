"""Lower bounds of the length of plans, by breadth-first exploration and by LM-cut.

Exploration visits the states of a translated task by increasing distance. If all reachable states
were explored and none satisfies the goal, there is no plan. If all states up to some distance were
explored, no plan is that short. An :class:`Exploration` can be continued.

Guarantees: the order of states depends on the task alone. Axioms are evaluated by layers, each
until nothing changes; a variable that no axiom sets has its initial value. O(states * applicable
operators).

The number of steps is also bounded without a search, by the heuristic LM-cut at the initial state.
It is from Helmert and Domshlak, "Landmarks, Critical Paths and Abstractions: What's the Difference
Anyway?", ICAPS 2009. A landmark is a set of actions of which every plan contains one. The costs of
disjoint landmarks add up. Landmarks are cuts in the delete relaxation. One effect of deletions is
taken into account. An initial fact of the goal must be restored if all actions of some landmark
delete it. An example is the home position of a hand.

Guarantees: the bound is admissible. Derived variables may have any value and conditional effects
always occur, which relaxes the task. Ties are broken by the order of facts and operators, hence the
bound depends on the task alone. O(cuts * size of the operators * log facts).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tmkit._support.time_limits import check_time
from tmkit.task_planning.sas import Pair, SasAxiom, SasEffect, SasOperator, SasTask

SasState = tuple[int, ...]
"""Value of each variable, including derived ones."""


class Exploration:
    """Breadth-first exploration of the reachable states of a translated task, in portions.

    Attributes:
        depth: lower bound of the distance from the initial state to a goal state, in steps.
        is_goal_reached: whether a goal state was found, ``depth`` steps away; nothing more is
            explored.
        is_exhausted: whether every reachable state was explored.
    """

    def __init__(self, task: SasTask) -> None:
        self._goal = task.goal
        self._layers = _axiom_layers(task)
        self._derived = tuple(
            (n, task.init[n]) for n, variable in enumerate(task.variables) if variable.layer >= 0
        )
        self._unconditional_moves: list[_Move] = []
        self._keyed: dict[Pair, list[_Move]] = {}
        for operator in task.operators:
            needs = operator.preconditions
            move = (needs, operator.effects)
            (self._keyed.setdefault(needs[0], []) if needs else self._unconditional_moves).append(
                move
            )
        start = self._derive_values(list(task.init))
        self._seen = {start}
        self._layer = [start]
        self._next: list[SasState] = []
        self._position = 0
        self.depth = 0
        self.is_goal_reached = self._is_goal(start)
        self.is_exhausted = False

    def expand(self, states: int) -> None:
        """Expand further states, at most ``states``, until a goal state is reached."""
        for _ in range(states):
            check_time()
            if self.is_goal_reached or self.is_exhausted:
                return
            if self._position == len(self._layer):
                self._advance_layer()
                continue
            for after in self._successors(self._layer[self._position]):
                if after not in self._seen:
                    self._seen.add(after)
                    self._next.append(after)
            self._position += 1

    def _advance_layer(self) -> None:
        self._layer, self._next, self._position = self._next, [], 0
        if not self._layer:
            self.is_exhausted = True
            return
        self.depth += 1
        self.is_goal_reached = any(map(self._is_goal, self._layer))

    def _is_goal(self, state: SasState) -> bool:
        return all(state[variable] == value for variable, value in self._goal)

    def _successors(self, state: SasState) -> Iterable[SasState]:
        for moves in (
            self._unconditional_moves,
            *(self._keyed.get(pair, ()) for pair in enumerate(state)),
        ):
            for needs, effects in moves:
                if all(state[variable] == value for variable, value in needs):
                    after = list(state)
                    for effect in effects:
                        if all(state[variable] == value for variable, value in effect.conditions):
                            after[effect.variable] = effect.after
                    yield self._derive_values(after)

    def _derive_values(self, state: list[int]) -> SasState:
        """Return the state with its derived variables."""
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
    """Return a lower bound of the number of actions, or None if unsolvability is proved."""
    return _Relaxed(task).bound([1] * len(task.operators))


class _Relaxed:
    """Delete relaxation of a task; facts are numbers, and fact 0 holds initially."""

    def __init__(self, task: SasTask) -> None:
        self._numbers: dict[Pair, int] = {}
        derived = {number for number, variable in enumerate(task.variables) if variable.layer >= 0}
        for number, variable in enumerate(task.variables):
            for value in range(len(variable.values)):
                self._numbers[number, value] = 0 if number in derived else len(self._numbers) + 1
        kept_goal_pairs = [
            (number, value)
            for number, value in task.goal
            if number not in derived and task.init[number] == value
        ]
        self._restored_facts = {
            pair: len(self._numbers) + 1 + index for index, pair in enumerate(kept_goal_pairs)
        }
        self._deleters = {pair: _deleters(task.operators, pair) for pair in kept_goal_pairs}
        self._goal_pairs = task.goal
        self.goal = len(self._numbers) + len(kept_goal_pairs) + 1
        self.fact_count = self.goal + 1
        self.needs = [self._facts(operator.preconditions) or [0] for operator in task.operators]
        self.adds = [self._find_added(operator) for operator in task.operators]
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

    def _find_added(self, operator: SasOperator) -> list[int]:
        pairs = {(effect.variable, effect.after) for effect in operator.effects}
        return sorted(
            [
                *self._facts(pairs),
                *(self._restored_facts[pair] for pair in pairs if pair in self._restored_facts),
            ]
        )

    def _set_goal_needs(self, restored_pairs: set[Pair]) -> None:
        """Set the preconditions of the goal: some facts must be restored, others only hold."""
        goal_action = len(self.needs) - 1
        for fact in self.needs[goal_action]:
            self.needed_by[fact].remove(goal_action)
        plain = self._facts(pair for pair in self._goal_pairs if pair not in restored_pairs)
        self.needs[goal_action] = sorted(
            [*plain, *(self._restored_facts[pair] for pair in restored_pairs)]
        ) or [0]
        for fact in self.needs[goal_action]:
            self.needed_by[fact].append(goal_action)

    def _facts(self, pairs: Iterable[Pair]) -> list[int]:
        return sorted({self._numbers[pair] for pair in pairs} - {0})

    def bound(self, costs: list[int]) -> int | None:
        """Return the total cost of the landmarks, or None if the goal is unreachable."""
        restored_pairs: set[Pair] = set()
        while True:
            self._set_goal_needs(restored_pairs)
            cuts, total = self._landmarks(costs)
            if total is None:
                return None
            additions = {
                pair
                for pair, deleters in self._deleters.items()
                if pair not in restored_pairs and any(deleters.issuperset(cut) for cut in cuts)
            }
            if not additions:
                return total
            restored_pairs |= additions

    def _landmarks(self, costs: list[int]) -> tuple[list[list[int]], int | None]:
        """Return landmarks (sets of actions) until the goal costs nothing, and their total cost."""
        remaining_costs = [*costs, 0]
        total = 0
        cuts: list[list[int]] = []
        while True:
            check_time()
            values = self._values(remaining_costs)
            goal_value = values[self.goal]
            if not goal_value:
                return cuts, None if goal_value is None else total
            cut = self._cut(remaining_costs, values)
            cheapest = min(remaining_costs[number] for number in cut)
            total += cheapest
            cuts.append(cut)
            for number in cut:
                remaining_costs[number] -= cheapest

    def _values(self, costs: list[int]) -> list[int | None]:
        """Return h^max of each fact, or None for unreachable facts."""
        values: list[int | None] = [None] * self.fact_count
        missing_counts = [len(needs) for needs in self.needs]
        queue = [(0, fact) for fact in self.initial]
        while queue:
            value, fact = heapq.heappop(queue)
            if values[fact] is not None:
                continue
            values[fact] = value
            for number in self.needed_by[fact]:
                missing_counts[number] -= 1
                # Facts are popped by increasing value, so this precondition has the largest one.
                if not missing_counts[number]:
                    for added in self.adds[number]:
                        if values[added] is None:
                            heapq.heappush(queue, (value + costs[number], added))
        return values

    def _cut(self, costs: list[int], values: list[int | None]) -> list[int]:
        """Return the actions that lead into the facts from which the goal costs nothing."""
        # First precondition with the largest value, or None if a precondition is unreachable.
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
                hardest_need = hardest[number]
                if hardest_need is not None and costs[number] == 0 and hardest_need not in free:
                    free.add(hardest_need)
                    pending.append(hardest_need)
        justified: list[list[int]] = [[] for _ in range(self.fact_count)]
        for number, hardest_need in enumerate(hardest):
            if hardest_need is not None:
                justified[hardest_need].append(number)
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
    """Return the operators that delete a value unconditionally."""
    variable, value = pair
    return frozenset(
        number
        for number, operator in enumerate(operators)
        if any(
            e.variable == variable and e.after != value and not e.conditions
            for e in operator.effects
        )
    )
