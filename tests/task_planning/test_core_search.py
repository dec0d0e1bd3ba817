"""The core's search: random tasks against Dijkstra's search in plain Python."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import load

from tmkit._core import TaskSearch
from tmkit.errors import ConfigurationError
from tmkit.task_planning import FastDownward, TaskPlanStatus

Pair = tuple[int, int]
Effect = tuple[list[Pair], Pair]
Operator = tuple[list[Pair], list[Effect], int]
PLENTY = 10**8


def compiled(task: dict[str, Any]) -> TaskSearch:
    """Return a random task, compiled."""
    return TaskSearch(
        domains=task["domains"],
        layers=task["layers"],
        defaults=[value for _, value in task["init"]],
        mutexes=[],
        operators=task["operators"],
        axioms=task["axioms"],
    )


def search_task(task: dict[str, Any], work: int, improvement_work: int) -> Any:
    """Return what A* finds from the initial state."""
    values = [value for _, value in task["init"]]
    return compiled(task).plan(values, task["goal"], work=work, improvement_work=improvement_work)


@st.composite
def random_tasks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a task of two to four variables, up to three derived ones in layers, and conditional effects."""
    basic = draw(st.lists(st.integers(2, 3), min_size=2, max_size=4))
    layers = sorted(draw(st.lists(st.integers(0, 1), max_size=3)))
    domains = [*basic, *(2 for _ in layers)]
    numbers = range(len(domains))

    def facts(variables: range | list[int], most: int) -> list[Pair]:
        chosen = draw(st.lists(st.sampled_from(list(variables)), max_size=most, unique=True)) if variables else []
        return [(variable, draw(st.integers(0, domains[variable] - 1))) for variable in chosen]

    def effect() -> Effect:
        variable = draw(st.integers(0, len(basic) - 1))
        return facts(numbers, 1), (variable, draw(st.integers(0, domains[variable] - 1)))

    def operator() -> Operator:
        effects = {found[1][0]: found for found in (effect() for _ in range(draw(st.integers(1, 2))))}
        return facts(numbers, 2), list(effects.values()), draw(st.integers(1, 4))

    axioms: list[Effect] = []
    for _ in range(draw(st.integers(0, 4)) if layers else 0):
        derived = draw(st.integers(0, len(layers) - 1))
        lower = [n for n in numbers if n < len(basic) or layers[n - len(basic)] < layers[derived]]
        conditions = facts(lower, 2)
        beside = [n for n in numbers if n >= len(basic) and layers[n - len(basic)] == layers[derived]]
        if draw(st.booleans()):  # recursion is positive
            conditions.append((draw(st.sampled_from(beside)), 0))
        axioms.append((conditions, (len(basic) + derived, 0)))
    init = [draw(st.integers(0, size - 1)) for size in basic] + [1 for _ in layers]
    return {
        "domains": domains, "layers": [-1 for _ in basic] + layers, "init": list(enumerate(init)),
        "goal": facts(numbers, 3), "operators": [operator() for _ in range(draw(st.integers(1, 5)))], "axioms": axioms,
    }  # fmt: skip


class Model:
    """What the format says of a task, and the least cost of a plan by Dijkstra's search."""

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
        """Tell whether facts hold."""
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


@settings(max_examples=scaled_examples(4), deadline=None)
@given(random_tasks())
def test_plans_are_the_cheapest_and_proofs_are_true(task: dict[str, Any]) -> None:
    """With work enough, every state is looked at that could lead to a cheaper plan."""
    model = Model(task)
    plan, is_unsolvable, _, evaluated = search_task(task, work=PLENTY, improvement_work=PLENTY)
    least = model.least_cost()
    assert is_unsolvable == (least is None)
    assert (plan is None) == (least is None)
    assert evaluated >= 0
    if plan is None:
        return
    state = model.start
    for number in plan:
        assert model.holds(task["operators"][number][0], state)
        state = model.after(state, number)
    assert model.holds(task["goal"], state)
    assert sum(task["operators"][number][2] for number in plan) == least


@settings(max_examples=scaled_examples(1), deadline=None)
@given(random_tasks(), st.integers(0, 200))
def test_little_work_gives_no_wrong_answer(task: dict[str, Any], work: int) -> None:
    """A search that gives up says neither that there is a plan nor that there is none."""
    plan, is_unsolvable, _, _ = search_task(task, work=work, improvement_work=0)
    least = Model(task).least_cost()
    assert not (is_unsolvable and least is not None)
    assert not (plan is not None and least is None)
    assert search_task(task, work=work, improvement_work=0)[0] == plan


def test_a_wrong_number_is_an_error() -> None:
    """Variables, values and operators are checked before anything is read by their numbers."""
    task: dict[str, Any] = {
        "domains": [2], "layers": [-1], "defaults": [0], "mutexes": [], "operators": [([], [([], (0, 1))], 1)],
        "axioms": [],
    }  # fmt: skip
    search = TaskSearch(**task)
    for goal, message in (([(0, 2)], "variable 0 has no value 2"), ([(1, 0)], "variable 1 has no value 0")):
        with pytest.raises(ConfigurationError, match=message):
            search.plan([0], goal, 1, 0)
    with pytest.raises(ConfigurationError, match="the task has 1 variables, not 2"):
        search.plan([0, 0], [], 1, 0)
    for values in ([2], [-2]):
        with pytest.raises(ConfigurationError, match=f"variable 0 has no value {values[0]}"):
            search.applicable(values)
    for number in (-1, 1):
        with pytest.raises(ConfigurationError, match=f"there is no operator {number} of 1"):
            search.apply(number, [0])
        with pytest.raises(ConfigurationError, match=f"there is no operator {number} of 1"):
            search.with_constraints([([], -1, [number])])
        with pytest.raises(ConfigurationError, match=f"there is no operator {number} of 1"):
            search.follow([0], [], [number])
    for name, value, message in (
        ("layers", [-1, -1], "one layer and one default"),
        ("axioms", [([], (0, 0))], "variable 0 is not derived"),
        ("mutexes", [[(0, 0), (0, 2)]], "variable 0 has no value 2"),
        ("operators", [([], [], 0)], "an operator costs at least 1, not 0"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            TaskSearch(**{**task, name: value})
    derived = TaskSearch(**{**task, "layers": [0], "operators": []})
    with pytest.raises(ConfigurationError, match="counts facts of derived variable 0"):
        derived.with_constraints([([(0, 1)], 0, [])])


@pytest.mark.parametrize("name", ["places", "gripper", "rooms", "lamps"])
def test_plans_are_as_good_as_those_of_fast_downward(name: str) -> None:
    """The statistics say which of the two searched."""
    problem = load(name)
    task = FastDownward().prepare(problem)
    ours, theirs = FastDownward().search(task), FastDownward(core_work=0).search(task)
    assert (ours.statistics.search, theirs.statistics.search) == ("core", "fast_downward")
    assert ours.cost <= theirs.cost
    assert len(ours.steps) == len(theirs.steps)


def test_what_is_too_much_for_the_core_is_left_to_fast_downward() -> None:
    """No answer is made up when the work is used up."""
    task = FastDownward().prepare(load("places"))
    result = FastDownward(core_work=1).search(task)
    assert result.status is TaskPlanStatus.SOLVED
    assert result.statistics.search == "fast_downward"
