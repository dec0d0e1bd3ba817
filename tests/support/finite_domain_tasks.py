"""Random tasks in finite-domain variables, and a plain-Python model of their states."""

from __future__ import annotations

import heapq
from typing import Any

from hypothesis import strategies as st

from tmkit._core import TaskSearch

__all__ = ["Model", "Pair", "compile_task", "random_tasks"]

Pair = tuple[int, int]
Effect = tuple[list[Pair], Pair]
Operator = tuple[list[Pair], list[Effect], int]


def compile_task(task: dict[str, Any]) -> TaskSearch:
    """Return a random task, compiled."""
    return TaskSearch(
        domains=task["domains"],
        layers=task["layers"],
        defaults=[value for _, value in task["init"]],
        mutexes=task.get("mutexes", []),
        operators=task["operators"],
        axioms=task["axioms"],
    )


@st.composite
def random_tasks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a task of 2 to 4 variables, up to 3 derived ones in layers, and conditional effects."""
    basic = draw(st.lists(st.integers(2, 3), min_size=2, max_size=4))
    layers = sorted(draw(st.lists(st.integers(0, 1), max_size=3)))
    domains = [*basic, *(2 for _ in layers)]
    numbers = range(len(domains))

    def facts(variables: range | list[int], most: int) -> list[Pair]:
        chosen = (
            draw(st.lists(st.sampled_from(list(variables)), max_size=most, unique=True))
            if variables
            else []
        )
        return [(variable, draw(st.integers(0, domains[variable] - 1))) for variable in chosen]

    def effect() -> Effect:
        variable = draw(st.integers(0, len(basic) - 1))
        return facts(numbers, 1), (variable, draw(st.integers(0, domains[variable] - 1)))

    def operator() -> Operator:
        effects = {
            change[1][0]: change for change in (effect() for _ in range(draw(st.integers(1, 2))))
        }
        return facts(numbers, 2), list(effects.values()), draw(st.integers(1, 4))

    axioms: list[Effect] = []
    for _ in range(draw(st.integers(0, 4)) if layers else 0):
        derived = draw(st.integers(0, len(layers) - 1))
        lower = [n for n in numbers if n < len(basic) or layers[n - len(basic)] < layers[derived]]
        conditions = facts(lower, 2)
        constraints = [
            n for n in numbers if n >= len(basic) and layers[n - len(basic)] == layers[derived]
        ]
        if draw(st.booleans()):  # recursion is positive
            conditions.append((draw(st.sampled_from(constraints)), 0))
        axioms.append((conditions, (len(basic) + derived, 0)))
    init = [draw(st.integers(0, size - 1)) for size in basic] + [1 for _ in layers]
    return {
        "domains": domains,
        "layers": [-1 for _ in basic] + layers,
        "init": list(enumerate(init)),
        "goal": facts(numbers, 3),
        "operators": [operator() for _ in range(draw(st.integers(1, 5)))],
        "axioms": axioms,
    }


class Model:
    """Semantics of a task by the format, and the least cost of a plan by Dijkstra's search."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.start = self._derived(dict(task["init"]))

    def _derived(self, state: dict[int, int]) -> tuple[int, ...]:
        first = dict(self.task["init"])
        layers = self.task["layers"]
        state = {v: first[v] if layers[v] >= 0 else value for v, value in state.items()}
        for layer in sorted({layer for layer in layers if layer >= 0}):
            rules = [rule for rule in self.task["axioms"] if layers[rule[1][0]] == layer]
            before: dict[int, int] = {}
            while state != before:
                before = dict(state)
                for conditions, (variable, value) in rules:
                    if all(state[v] == x for v, x in conditions):
                        state[variable] = value
        return tuple(state[v] for v in range(len(layers)))

    def holds(self, facts: list[Pair], state: tuple[int, ...]) -> bool:
        """Return whether facts are true."""
        return all(state[variable] == value for variable, value in facts)

    def after(self, state: tuple[int, ...], number: int) -> tuple[int, ...]:
        """Return the state after an operator."""
        new = dict(enumerate(state))
        for conditions, (variable, value) in self.task["operators"][number][1]:
            if self.holds(conditions, state):
                new[variable] = value
        return self._derived(new)

    def least_cost(self) -> int | None:
        """Return the least cost of a plan, None if there is none."""
        open_states, closed = [(0, self.start)], set[tuple[int, ...]]()
        while open_states:
            cost, state = heapq.heappop(open_states)
            if self.holds(self.task["goal"], state):
                return cost
            if state in closed:
                continue
            closed.add(state)
            for number, (needs, _, price) in enumerate(self.task["operators"]):
                if self.holds(needs, state):
                    heapq.heappush(open_states, (cost + price, self.after(state, number)))
        return None
