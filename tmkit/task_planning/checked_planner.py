"""A task planner of the user whose answers are checked: what is no plan is an error that names the planner.

The search for motions relies on what :mod:`tmkit.task_planning.protocol` asks of a planner. A plan that does not reach
the goal, or does what was forbidden, would be taken for a solution or tried for ever; here it is a
:class:`~tmkit.errors.TaskPlannerError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tmkit._support.argument_errors import callable_name
from tmkit.errors import TaskPlannerError, TmkitError
from tmkit.pddl import Fact, GroundAction, Problem, validate_task_plan
from tmkit.task_planning.protocol import ProvingTask, TaskPlanner, TaskPlanResult, TaskPlanStatus

_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class CheckedTask:
    """A prepared task of a planner, with what it was made from."""

    planner: CheckedTaskPlanner
    problem: Problem
    task: Any
    forbidden: tuple[tuple[GroundAction, frozenset[Fact]], ...] = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> CheckedTask:
        """Return the task in which an action is not done while basic facts hold."""
        facts = frozenset(context)
        task = self.planner.called("forbid", lambda: self.task.forbid(action, sorted(facts)))
        return replace(self, task=task, forbidden=(*self.forbidden, (action, facts)))

    def is_goal_impossible(self) -> bool:
        """Return whether the task proves that there is no plan."""
        if not isinstance(self.task, ProvingTask):
            return False
        return bool(self.planner.called("is_goal_impossible", self.task.is_goal_impossible))


@dataclass(frozen=True, eq=False)
class CheckedTaskPlanner(TaskPlanner[CheckedTask]):
    """Finds task plans with another planner, and checks them.

    Attributes:
        planner: the other planner.
    """

    planner: TaskPlanner[Any]

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> CheckedTask:
        """Prepare a task.

        Args:
            problem: the task.
            time_limit: seconds after which to give up.

        Raises:
            TaskPlannerError: the planner fails, or gives what cannot be constrained.
        """
        task = self.called("prepare", lambda: self.planner.prepare(problem, time_limit=time_limit))
        if not callable(getattr(task, "forbid", None)):
            raise self.error(f"prepares {repr(task)[:60]}, which has no method 'forbid'")
        return CheckedTask(self, problem, task)

    def search(self, task: CheckedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan.

        Args:
            task: the task.
            time_limit: seconds after which to give up.

        Raises:
            TaskPlannerError: the planner fails, or its answer is no result or no plan of the task.
        """
        found = self.called("search", lambda: self.planner.search(task.task, time_limit=time_limit))
        if not isinstance(found, TaskPlanResult):
            raise self.error(f"gives {repr(found)[:60]}, which is no TaskPlanResult")
        if not isinstance(found.status, TaskPlanStatus):
            raise self.error(f"gives the status {repr(found.status)[:60]}, which is no TaskPlanStatus")
        if not found.is_solved:
            return found
        if not isinstance(found.steps, tuple) or not all(isinstance(step, GroundAction) for step in found.steps):
            raise self.error(f"gives the steps {repr(found.steps)[:60]}, which are no tuple of GroundAction")
        validation = validate_task_plan(task.problem, found.steps)
        if not validation.is_valid:
            raise self.error(f"gives a plan that is none: {validation.message}")
        for step, state in zip(found.steps, validation.states, strict=False):
            if any(step == action and facts <= state.facts for action, facts in task.forbidden):
                raise self.error(f"gives a plan with {step}, which was forbidden")
        return replace(found, cost=validation.cost)

    def called(self, method: str, call: Callable[[], _Value]) -> _Value:
        """Return what a call of the planner returns.

        Args:
            method: the method that is called.
            call: calls it.

        Raises:
            TaskPlannerError: it raises an error that is none of tmkit's.
        """
        try:
            return call()
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            raise self.error(f"fails in '{method}': {type(error).__name__}: {error}") from error

    def error(self, what: str) -> TaskPlannerError:
        """Return an error that names the planner."""
        return TaskPlannerError(f"task planner '{callable_name(self.planner)}' {what}", command=(), output="")
