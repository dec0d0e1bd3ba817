"""The task in finite-domain variables, for guidance: which actions are applicable, and a relaxed plan for what is left.

A relaxed plan ignores what actions delete. Its length estimates the remaining cost, and its actions are those that
help (Hoffmann and Nebel, "The FF planning system", 2001; supporters are chosen by the additive heuristic).

Invariants: functions of the task and the values alone, ties broken by the order of the task's operators.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tmkit.pddl import GroundAction, State
from tmkit.task_planning.sas import Pair, SasTask

Values = tuple[int, ...]
"""The value of each variable."""


@dataclass(frozen=True)
class RelaxedPlan:
    """What is left to do, ignoring what actions delete.

    Attributes:
        cost: number of its actions.
        actions: indices of its operators, those that others build on first.
    """

    cost: int
    actions: tuple[int, ...]


@dataclass(frozen=True)
class _Rule:
    """If all conditions hold, a value is reached; by an operator, or by an axiom (-1) at no cost."""

    conditions: tuple[Pair, ...]
    reached: Pair
    operator: int


class GroundTask:
    """A translated task with the tables that guidance needs."""

    def __init__(self, task: SasTask) -> None:
        self.task = task
        self.actions: tuple[GroundAction, ...] = tuple(task.action_of(operator.name) for operator in task.operators)
        self._preconditions = [
            (*operator.prevail, *{(e.variable, e.before) for e in operator.effects if e.before >= 0})
            for operator in task.operators
        ]
        self._rules: list[_Rule] = []
        for index, operator in enumerate(task.operators):
            needs = self._preconditions[index]
            for effect in operator.effects:
                conditions = tuple(dict.fromkeys((*needs, *effect.conditions)))
                self._rules.append(_Rule(conditions, (effect.variable, effect.after), index))
        for axiom in task.axioms:
            conditions = tuple(dict.fromkeys((*axiom.conditions, (axiom.variable, axiom.before))))
            self._rules.append(_Rule(conditions, (axiom.variable, axiom.after), -1))
        self._needing: dict[Pair, list[int]] = defaultdict(list)
        for number, rule in enumerate(self._rules):
            for pair in rule.conditions:
                self._needing[pair].append(number)
        self._otherwise = [
            next((k for k, meaning in enumerate(variable.values) if not meaning.startswith("Atom ")), -1)
            for variable in task.variables
        ]

    def values(self, state: State) -> Values:
        """Return the values of a state of basic facts; -1 for a variable of which the state has no value."""
        found = list(self._otherwise)
        for fact in state:
            pair = self.task.value_of(fact)
            if pair is not None:
                found[pair[0]] = pair[1]
        return self._derived(found)

    def _derived(self, values: list[int]) -> Values:
        """Return values with those of the derived variables, layer by layer."""
        task = self.task
        for number, variable in enumerate(task.variables):
            if variable.layer >= 0:
                values[number] = task.init[number]
        for layer in sorted({task.variables[axiom.variable].layer for axiom in task.axioms}):
            axioms = [axiom for axiom in task.axioms if task.variables[axiom.variable].layer == layer]
            has_changed = True
            while has_changed:
                has_changed = False
                for axiom in axioms:
                    holds = all(values[variable] == value for variable, value in axiom.conditions)
                    if values[axiom.variable] == axiom.before and holds:
                        values[axiom.variable], has_changed = axiom.after, True
        return tuple(values)

    def is_goal(self, values: Values) -> bool:
        """Return whether the goal holds."""
        return all(values[variable] == value for variable, value in self.task.goal)

    def is_applicable(self, index: int, values: Values) -> bool:
        """Return whether an operator can be applied."""
        return all(values[variable] == value for variable, value in self._preconditions[index])

    def applicable(self, values: Values, among: Iterable[int] | None = None) -> list[int]:
        """Return the indices of the operators that can be applied, of ``among`` if given."""
        indices = range(len(self.actions)) if among is None else among
        return [index for index in indices if self.is_applicable(index, values)]

    def apply(self, index: int, values: Values) -> Values:
        """Return the values after an operator."""
        after = list(values)
        for effect in self.task.operators[index].effects:
            if all(values[variable] == value for variable, value in effect.conditions):
                after[effect.variable] = effect.after
        return self._derived(after)

    def relaxed_plan(self, values: Values) -> RelaxedPlan | None:
        """Return a relaxed plan to the goal; None where even that does not exist, so that no plan does.

        O(rules log rules).
        """
        costs: dict[Pair, int] = dict.fromkeys(enumerate(values), 0)
        supporters: dict[Pair, int] = {}
        missing = [len(rule.conditions) for rule in self._rules]
        sums = [0] * len(self._rules)
        queue: list[tuple[int, Pair]] = [(0, pair) for pair in costs]
        done: set[Pair] = set()
        waiting = {pair for pair in self.task.goal if pair not in costs}
        for number, rule in enumerate(self._rules):
            if not rule.conditions:
                self._reach(number, 0, costs, supporters, queue)
        heapq.heapify(queue)
        while queue and waiting:
            cost, pair = heapq.heappop(queue)
            if pair in done or cost > costs[pair]:
                continue
            done.add(pair)
            waiting.discard(pair)
            for number in self._needing.get(pair, ()):
                missing[number] -= 1
                sums[number] += cost
                if not missing[number]:
                    self._reach(number, sums[number], costs, supporters, queue)
        if waiting:
            return None
        return self._extracted(supporters, values)

    def _reach(
        self, number: int, cost: int, costs: dict[Pair, int], supporters: dict[Pair, int], queue: list[tuple[int, Pair]]
    ) -> None:
        rule = self._rules[number]
        total = cost + (rule.operator >= 0)
        if total < costs.get(rule.reached, total + 1):
            costs[rule.reached], supporters[rule.reached] = total, number
            heapq.heappush(queue, (total, rule.reached))

    def _extracted(self, supporters: dict[Pair, int], values: Values) -> RelaxedPlan:
        order: dict[int, None] = {}
        seen: set[Pair] = set()

        def support(pairs: Sequence[Pair]) -> None:
            stack = [(pair, False) for pair in reversed(pairs)]
            while stack:
                pair, is_after = stack.pop()
                number = supporters.get(pair)
                if number is None or values[pair[0]] == pair[1]:
                    continue
                rule = self._rules[number]
                if is_after:
                    if rule.operator >= 0:
                        order.setdefault(rule.operator)
                    continue
                if pair in seen:
                    continue
                seen.add(pair)
                stack.append((pair, True))
                stack.extend((below, False) for below in reversed(rule.conditions))

        support(self.task.goal)
        return RelaxedPlan(len(order), tuple(order))
