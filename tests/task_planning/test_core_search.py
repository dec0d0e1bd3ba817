"""The core's search: random tasks against Dijkstra's search in plain Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.finite_domain_tasks import Model, compile_task, random_tasks
from support.task_problems import load

from tmkit._core import TaskSearch
from tmkit.errors import ConfigurationError
from tmkit.task_planning import FastDownward, TaskPlanStatus

PLENTY = 10**8


def search_task(task: dict[str, Any], work: int, improvement_work: int) -> Any:
    """Return the result of A* from the initial state."""
    values = [value for _, value in task["init"]]
    return compile_task(task).plan(
        values, task["goal"], work=work, improvement_work=improvement_work
    )


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
    """A search at its limit proves neither a plan nor unsolvability."""
    plan, is_unsolvable, _, _ = search_task(task, work=work, improvement_work=0)
    least = Model(task).least_cost()
    assert not (is_unsolvable and least is not None)
    assert not (plan is not None and least is None)
    assert search_task(task, work=work, improvement_work=0)[0] == plan


def test_a_wrong_number_is_an_error() -> None:
    """Variables, values and operators are checked before anything is read by their numbers."""
    task: dict[str, Any] = {
        "domains": [2],
        "layers": [-1],
        "defaults": [0],
        "mutexes": [],
        "operators": [([], [([], (0, 1))], 1)],
        "axioms": [],
    }
    search = TaskSearch(**task)
    for goal, message in (
        ([(0, 2)], "variable 0 has no value 2"),
        ([(1, 0)], "variable 1 has no value 0"),
    ):
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
    """The statistics name the search that found the plan."""
    problem = load(name)
    task = FastDownward().prepare(problem)
    ours, theirs = FastDownward().search(task), FastDownward(core_work=0).search(task)
    assert (ours.statistics.search, theirs.statistics.search) == ("core", "fast_downward")
    assert ours.cost <= theirs.cost
    assert len(ours.steps) == len(theirs.steps)


def test_fast_downward_searches_beyond_the_work_of_the_core() -> None:
    """A search at its work limit returns None."""
    task = FastDownward().prepare(load("places"))
    result = FastDownward(core_work=1).search(task)
    assert result.status is TaskPlanStatus.SOLVED
    assert result.statistics.search == "fast_downward"
