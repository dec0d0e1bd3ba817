"""Requests to a task planner and its results.

It *prepares* a problem once; then the search for motions has it *search* for a plan, learns that a
step has no motion, *forbids* that step, and searches again. What a prepared task is, is the
planner's own business. That there is no plan, or that none was found within the limits, is an
answer; only a planner that breaks is an error.

Invariants that a planner must keep, because plans are repeatable by them: a prepared task is a
value, so forbidding leaves the old one as it was. The same prepared task gives the same plan,
whatever was searched before or runs beside. Time limits only stop. ``UNSOLVABLE`` means proved,
because results are trusted.

The search for motions relies on these, so :class:`CheckedTaskPlanner` checks the answers of a
user's planner: a plan that does not reach the goal, or does what was forbidden, is a
:class:`~tmkit.errors.TaskPlannerError` that names it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from tmkit._support.argument_errors import callable_name
from tmkit._support.results import Result
from tmkit.errors import TaskPlannerError, TmkitError
from tmkit.pddl import Fact, GroundAction, Problem, State, validate_task_plan
from tmkit.pddl.validation import TimedAction


class TaskPlanStatus(Enum):
    """How a search for a task plan ended."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    """It is proved that there is no plan."""
    LIMIT = "limit"
    """No plan was found within the time or memory that was given, or the planner gave up; there may be one."""


@dataclass(frozen=True, slots=True)
class TaskPlanStatistics:
    """What a search took. Times are in seconds and no part of equality, since they differ from run to run.

    Attributes:
        expanded: states whose successors were looked at.
        evaluated: states that were judged.
        operators: ground actions that the search chose from.
        facts: ground facts that the search distinguished.
        translation_seconds: time for turning PDDL into the planner's own form; 0 when it was there
            already.
        search_seconds: time for searching.
        search: what searched, where the planner has several: ``"core"`` or ``"fast_downward"``.
    """

    expanded: int = 0
    evaluated: int = 0
    operators: int = 0
    facts: int = 0
    translation_seconds: float = field(default=0.0, compare=False)
    search_seconds: float = field(default=0.0, compare=False)
    search: str = ""


@dataclass(frozen=True, slots=True)
class TaskPlanResult(Result):
    """The answer of a task planner.

    Attributes:
        status: how the search ended.
        steps: the plan; empty when there is none (and when the goal holds already, then ``status``
            is ``SOLVED``).
        cost: the cost of the plan by the problem's metric.
        message: the end of the search in words.
        statistics: what it took.
        schedule: the steps with their times, from a planner that plans in time; then they may
            overlap.
    """

    status: TaskPlanStatus
    steps: tuple[GroundAction, ...] = ()
    cost: float = 0.0
    message: str = ""
    statistics: TaskPlanStatistics = TaskPlanStatistics()
    schedule: tuple[TimedAction, ...] = ()

    @property
    def is_solved(self) -> bool:
        """Whether there is a plan."""
        return self.status is TaskPlanStatus.SOLVED

    def __repr__(self) -> str:
        found = f", {len(self.steps)} steps, cost {self.cost:g}" if self.is_solved else ""
        return (
            f"TaskPlanResult({self.status.value}{found}, {self.statistics.expanded} states"
            " expanded)"
        )


class PreparedTask(Protocol):
    """A problem in the form in which a planner searches it, with what has been learned about it: a value."""

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> Self:
        """Return the task in which ``action`` is never done in a state where all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; with none the action is forbidden altogether.

        Raises:
            TaskError: an action or fact that the problem does not know, or a derived fact.
        """
        ...


@runtime_checkable
class UnsolvabilityTask(Protocol):
    """A prepared task that can sometimes tell without a search that there is no plan. Not every one can."""

    def is_goal_impossible(self) -> bool:
        """Return whether it is proved that the goal holds in no reachable state; False proves nothing."""
        ...


@runtime_checkable
class RerootableTask(Protocol):
    """A prepared task that can mostly begin in another state without being prepared anew. Not every one can."""

    def at_state(self, state: State) -> PreparedTask | None:
        """Return the task that begins in another state, None where it has to be prepared anew.

        Args:
            state: the facts that hold.

        Raises:
            TaskError: a fact that the problem does not know, or a derived one.
        """
        ...


Prepared = TypeVar("Prepared", bound=PreparedTask)


@runtime_checkable
class ExtensibleTask(Protocol):
    """A prepared task that can have more objects without being prepared anew. Not every one can."""

    def with_object(self, name: str, kind: str, state: State) -> PreparedTask | None:
        """Return the task with one more object that begins in another state, None where it has to be prepared anew.

        Args:
            name: the object.
            kind: its type.
            state: the facts that hold, those about the object too.

        Raises:
            TaskError: there is such an object, or a fact that the problem does not know, or a
                derived one.
        """
        ...


class TaskPlanner(Protocol[Prepared]):
    """Finds a sequence of actions that leads from the initial state of a problem to its goal.

    A planner that derives from this class has :meth:`solve` for nothing.
    """

    def prepare(self, problem: Problem, *, time_limit: float = ...) -> Prepared:
        """Bring a problem into the form in which it is searched.

        Args:
            problem: the task.
            time_limit: seconds after which to give up; what is returned then, no search solves.

        Raises:
            TaskPlannerError: the planner could not be run, or broke, or the problem is beyond it.
        """
        ...

    def search(self, task: Prepared, *, time_limit: float = ...) -> TaskPlanResult:
        """Search for a plan, or that there is none, within the limits.

        Args:
            task: what :meth:`prepare` gave, or :meth:`PreparedTask.forbid` made of it.
            time_limit: seconds after which to give up.

        Raises:
            TaskPlannerError: the planner could not be run, or broke.
        """
        ...

    def solve(self, problem: Problem, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Prepare a problem and search for a plan, or that there is none, within the limits.

        Args:
            problem: the task.
            time_limit: seconds for both together.

        Raises:
            TaskPlannerError: the planner could not be run, or broke, or the problem is beyond it.
        """
        started = time.monotonic()
        task = self.prepare(problem, time_limit=time_limit)
        seconds = time.monotonic() - started
        result = self.search(task, time_limit=time_limit - seconds)
        return replace(result, statistics=replace(result.statistics, translation_seconds=seconds))


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
        if not isinstance(self.task, UnsolvabilityTask):
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
            raise self.error(
                f"gives the status {repr(found.status)[:60]}, which is no TaskPlanStatus"
            )
        if not found.is_solved:
            return found
        if not isinstance(found.steps, tuple) or not all(
            isinstance(step, GroundAction) for step in found.steps
        ):
            raise self.error(
                f"gives the steps {repr(found.steps)[:60]}, which are no tuple of GroundAction"
            )
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
        return TaskPlannerError(
            f"task planner '{callable_name(self.planner)}' {what}", command=(), output=""
        )
