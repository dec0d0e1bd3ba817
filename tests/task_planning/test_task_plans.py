"""Iteration over the plans of a problem, from which callers exclude actions."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import blocks_world, load

from tmkit.errors import TaskError
from tmkit.pddl import GroundAction, Problem, parse_goal, validate_task_plan
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanStatus, Z3Planner
from tmkit.task_planning.protocol import TaskPlans

PLACES = load("places").domain


def random_problem(seed: int) -> Problem:
    """Return three blocks and four places."""
    return blocks_world(PLACES, blocks=3, places=4, seed=seed)


@pytest.mark.parametrize("planner", [FastDownward(), Z3Planner()], ids=["fast-downward", "z3"])
def test_plans_are_valid_and_differ(planner: TaskPlanner[Any]) -> None:
    """Each plan reaches the goal and no plan comes twice, for any planner."""
    problem = random_problem(3)
    plans = list(islice(TaskPlans(planner, problem), 5))
    assert len(set(plans)) == len(plans) == 5
    assert all(validate_task_plan(problem, plan).is_valid for plan in plans)


@settings(max_examples=scaled_examples(0.1))
@given(st.integers(0, 10**6), st.data())
def test_no_plan_does_what_is_forbidden(seed: int, data: st.DataObject) -> None:
    """After an action is forbidden in its state, no plan does it there."""
    problem = random_problem(seed)
    plans = FastDownward().plans(problem)
    forbidden: list[tuple[GroundAction, frozenset[Any]]] = []
    for plan in islice(plans, 5):
        states = validate_task_plan(problem, plan).states
        for action, state in zip(plan, states, strict=False):
            assert not any(action == other and facts <= state.facts for other, facts in forbidden)
        if not plan:
            break
        index = data.draw(st.integers(0, len(plan) - 1))
        forbidden.append((plan[index], states[index].facts))
        plans.forbid(*forbidden[-1])


def test_a_constraint_that_excludes_nothing_gives_another_plan() -> None:
    """A context that does not hold in the plan excludes nothing; the next plan differs anyway."""
    problem = random_problem(3)
    plans = FastDownward().plans(problem)
    first = next(plans)
    plans.forbid(first[0], [*problem.init][:1])
    plans.forbid(first[-1], validate_task_plan(problem, first).states[0])
    assert next(plans) != first


def test_the_end_is_proved_only_without_constraints() -> None:
    """An unsolvable problem is proved; a problem whose plans are all forbidden is not."""
    problem = random_problem(3)
    plans = FastDownward().plans(problem)
    for action in problem.applicable_actions(problem.init):
        plans.forbid(action, ())
    assert list(plans) == []
    assert plans.result.status is TaskPlanStatus.LIMIT
    assert plans.result.message == "there is no other plan with what is forbidden"
    text = "(and (on b0 b1) (on b1 b0))"
    goal = parse_goal(text, PLACES, objects=dict(problem.objects))
    impossible = FastDownward().plans(
        Problem("p", PLACES, objects=problem.objects, init=problem.init, goal=goal)
    )
    assert list(impossible) == []
    assert impossible.result.status is TaskPlanStatus.UNSOLVABLE


def test_a_goal_that_holds_has_the_empty_plan_alone() -> None:
    """The empty plan comes once."""
    problem = random_problem(3)
    goal = parse_goal("(empty)", PLACES, objects=dict(problem.objects))
    plans = FastDownward().plans(
        Problem("p", PLACES, objects=problem.objects, init=problem.init, goal=goal)
    )
    assert list(plans) == [()]


def test_an_unknown_action_is_an_error() -> None:
    """Forbidding an action that the problem lacks is an error that names it."""
    plans = FastDownward().plans(random_problem(3))
    with pytest.raises(TaskError, match="unknown action 'fly'"):
        plans.forbid(GroundAction("fly", ()), ())
