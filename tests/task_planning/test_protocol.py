"""The protocol of task planners: a planner of one's own is three methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from support.task_problems import load, shortest_steps

from tmkit.pddl import Fact, GroundAction, Problem, State, parse_goal, validate_task_plan
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.protocol import PreparedTask, UnsolvabilityTask


@dataclass(frozen=True)
class ConstrainedTask:
    """A prepared task with the problem and its forbidden actions."""

    problem: Problem
    forbidden: tuple[tuple[GroundAction, frozenset[Fact]], ...] = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> ConstrainedTask:
        """Return the task with one more constraint."""
        return replace(self, forbidden=(*self.forbidden, (action, frozenset(context))))

    def allows(self, state: State, action: GroundAction) -> bool:
        """Return whether no constraint forbids an action in a state."""
        return not any(
            action == forbidden and context <= state.facts for forbidden, context in self.forbidden
        )


class BreadthFirst(TaskPlanner[ConstrainedTask]):
    """Planner by breadth-first search."""

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> ConstrainedTask:
        """Return the problem, without constraints."""
        del time_limit
        return ConstrainedTask(problem)

    def search(self, task: ConstrainedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search all states breadth-first."""
        del time_limit
        steps = shortest_steps(task.problem, allowed=task.allows)
        status = TaskPlanStatus.UNSOLVABLE if steps is None else TaskPlanStatus.SOLVED
        return TaskPlanResult(status, steps or (), float(len(steps or ())))


def test_a_custom_planner_inherits_solve() -> None:
    """A planner with ``prepare`` and ``search`` gets ``solve`` from the protocol."""
    problem = load("places")
    result = BreadthFirst().solve(problem, time_limit=600.0)
    assert result.is_solved
    assert validate_task_plan(problem, result.steps).is_valid
    assert len(result.steps) == len(FastDownward().solve(problem, time_limit=600.0).steps)


@pytest.mark.parametrize("planner", [BreadthFirst(), FastDownward()])
def test_forbidding_makes_a_new_task(planner: TaskPlanner[PreparedTask]) -> None:
    """A forbidden action is absent from plans of the new task; the old task is unchanged."""
    problem = load("places")
    task = planner.prepare(problem, time_limit=600.0)
    first = planner.search(task, time_limit=600.0)
    changed = task.forbid(first.steps[0], problem.init)
    assert planner.search(changed, time_limit=600.0).steps[0] != first.steps[0]
    assert planner.search(task, time_limit=600.0).steps == first.steps


def test_some_prepared_tasks_can_prove_without_a_search() -> None:
    """Proofs of unsolvability are optional for the task of a user's planner."""
    whole = load("places")
    goal = parse_goal("(and (held a) (held b))", whole.domain, objects=whole.objects)
    problem = Problem("p", whole.domain, objects=whole.objects, init=whole.init, goal=goal)
    task = FastDownward().prepare(problem)
    assert isinstance(task, UnsolvabilityTask)
    assert task.is_goal_impossible()
    assert not FastDownward().prepare(whole).is_goal_impossible()
    assert not isinstance(ConstrainedTask(problem), UnsolvabilityTask)
