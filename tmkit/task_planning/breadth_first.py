"""Looking at the states of a translated task one after another, nearest first.

When all states that can be reached have been looked at and the goal holds in none, there is no plan; when all up to
some distance have, no plan is that short. An :class:`Exploration` continues where it stopped.

Invariants: states come in an order that depends on the task alone. Axioms are evaluated by layers, each until nothing
changes, a variable that no axiom sets having its initial value. O(states * applicable operators).
"""

from __future__ import annotations

from collections.abc import Iterable

from tmkit._support.time_limits import check_time
from tmkit.task_planning.sas import Pair, SasAxiom, SasEffect, SasTask

SasState = tuple[int, ...]
"""The value of each variable, derived ones included."""


class Exploration:
    """A breadth-first look at the reachable states of a translated task, patched or not, in portions.

    Attributes:
        depth: no state of the goal is nearer to the initial state than this many steps.
        found: whether a state of the goal has been seen; then it is ``depth`` steps away, and nothing is left to do.
        exhausted: whether every reachable state has been looked at.
    """

    def __init__(self, task: SasTask) -> None:
        self._goal = task.goal
        self._layers = _axiom_layers(task)
        self._derived = tuple((n, task.init[n]) for n, variable in enumerate(task.variables) if variable.layer >= 0)
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
                    if is_new and all(state[variable] == value for variable, value in axiom.conditions):
                        state[axiom.variable] = axiom.after
                        is_changing = True
        return tuple(state)


_Move = tuple[tuple[Pair, ...], tuple[SasEffect, ...]]


def _axiom_layers(task: SasTask) -> list[list[SasAxiom]]:
    layers: dict[int, list[SasAxiom]] = {}
    for axiom in task.axioms:
        layers.setdefault(task.variables[axiom.variable].layer, []).append(axiom)
    return [layers[number] for number in sorted(layers)]
