"""Interface of task planners and their results.

A planner *prepares* a problem once and *searches* for a plan. If the motion planner finds that a
step has no motion, the step is *forbidden* in the prepared task, and the planner searches again.
The type of a prepared task is private to the planner. "No plan exists" and "no plan within the
limits" are results; only the failure of a planner is an error.

A planner must keep these invariants, which make plans repeatable:

* A prepared task is an immutable value; ``forbid`` returns a new one.
* The same prepared task gives the same plan, independent of other searches.
* Time limits only end a search.
* ``UNSOLVABLE`` means that unsolvability is proved.

The search for motions relies on them. :class:`CheckedTaskPlanner` therefore checks the results of a
user's planner. It raises :class:`~tmkit.errors.TaskPlannerError` if a plan does not reach the goal
or contains a forbidden action.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from tmkit._support.argument_errors import callable_name
from tmkit._support.results import Result
from tmkit.errors import TaskPlannerError, TmkitError
from tmkit.pddl import Fact, GroundAction, Problem, State, validate_task_plan
from tmkit.pddl.validation import TimedAction


class TaskPlanStatus(Enum):
    """End of a search for a task plan."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    """The problem has no plan; this is proved."""
    LIMIT = "limit"
    """No plan was found within the limits of time, memory or the planner; one may exist."""


@dataclass(frozen=True, slots=True)
class TaskPlanStatistics:
    """Statistics of a search; equality ignores the times, which differ between runs.

    Attributes:
        expanded: number of states whose successors were generated.
        evaluated: number of states whose heuristic was computed.
        operators: number of ground actions.
        facts: number of ground facts.
        translation_seconds: time of the conversion from PDDL to the planner's own form [s]; 0 for a
            task that is already prepared.
        search_seconds: time of the search [s].
        search: name of the search, if the planner has several: ``"core"`` or ``"fast_downward"``.
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
    """Result of a task planner.

    Attributes:
        status: end of the search.
        steps: the plan; empty without a plan, or with ``SOLVED`` if the goal already holds.
        cost: cost of the plan by the problem's metric.
        message: description of the end of the search.
        statistics: statistics of the search.
        schedule: steps with their times, from a temporal planner; they may overlap.
    """

    status: TaskPlanStatus
    steps: tuple[GroundAction, ...] = ()
    cost: float = 0.0
    message: str = ""
    statistics: TaskPlanStatistics = TaskPlanStatistics()
    schedule: tuple[TimedAction, ...] = ()

    @property
    def is_solved(self) -> bool:
        """The result has a plan."""
        return self.status is TaskPlanStatus.SOLVED

    def __repr__(self) -> str:
        plan = f", {len(self.steps)} steps, cost {self.cost:g}" if self.is_solved else ""
        return (
            f"TaskPlanResult({self.status.value}{plan}, {self.statistics.expanded} states expanded)"
        )


class PreparedTask(Protocol):
    """Immutable form of a problem for a planner, with learned constraints."""

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> Self:
        """Return the task without ``action`` in states in which all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; if empty, the action is always forbidden.

        Raises:
            TaskError: if the action or a fact is unknown to the problem, or a fact is derived.
        """
        ...


@runtime_checkable
class UnsolvabilityTask(Protocol):
    """Optional capability of a prepared task: proofs of unsolvability without a search."""

    def is_goal_impossible(self) -> bool:
        """Return whether the goal is proved unreachable; False proves nothing."""
        ...


@runtime_checkable
class RerootableTask(Protocol):
    """Optional capability of a prepared task: another initial state without preparation."""

    def at_state(self, state: State) -> PreparedTask | None:
        """Return the task with another initial state, or None if it must be prepared again.

        Args:
            state: the facts that hold.

        Raises:
            TaskError: if a fact is unknown to the problem or derived.
        """
        ...


Prepared = TypeVar("Prepared", bound=PreparedTask)


@runtime_checkable
class ExtensibleTask(Protocol):
    """Optional capability of a prepared task: additional objects without preparation."""

    def with_object(self, name: str, kind: str, state: State) -> PreparedTask | None:
        """Return the task with one more object and another initial state.

        Args:
            name: the object.
            kind: its type.
            state: the facts that hold, including those about the object.

        Returns:
            The task, or None if it must be prepared again.

        Raises:
            TaskError: if the object exists, or a fact is unknown to the problem or derived.
        """
        ...


class TaskPlanner(Protocol[Prepared]):
    """Planner of action sequences from the initial state of a problem to its goal.

    A planner that derives from this class inherits :meth:`solve`.
    """

    def prepare(self, problem: Problem, *, time_limit: float = ...) -> Prepared:
        """Convert a problem to the form that :meth:`search` takes.

        Args:
            problem: the task.
            time_limit: time limit [s]. At the limit, a task is returned that no search solves.

        Raises:
            TaskPlannerError: if the planner cannot be run, fails or does not support the problem.
        """
        ...

    def search(self, task: Prepared, *, time_limit: float = ...) -> TaskPlanResult:
        """Search for a plan, or a proof that there is none, within the limits.

        Args:
            task: result of :meth:`prepare` or of :meth:`PreparedTask.forbid`.
            time_limit: time limit [s].

        Raises:
            TaskPlannerError: if the planner cannot be run or fails.
        """
        ...

    def solve(self, problem: Problem, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Prepare a problem and search for a plan, or a proof that there is none.

        Args:
            problem: the task.
            time_limit: time limit for both together [s].

        Raises:
            TaskPlannerError: if the planner cannot be run, fails or does not support the problem.
        """
        start = time.monotonic()
        task = self.prepare(problem, time_limit=time_limit)
        seconds = time.monotonic() - start
        result = self.search(task, time_limit=time_limit - seconds)
        return replace(result, statistics=replace(result.statistics, translation_seconds=seconds))


class TaskPlans(Iterator[tuple[GroundAction, ...]]):
    """Iterator over plans of a problem, from which a caller excludes actions.

    ::

        skeletons = FastDownward().plans(problem)
        for skeleton in skeletons:
            result = tk.refine(scene, q, skeleton, domain)
            if result.is_solved:
                break
            skeletons.forbid(result.cause.action, result.cause.facts)

    If nothing is forbidden between two plans, the last action of the first one is forbidden in its
    state, so each plan differs from all earlier ones. Other plans that end with the same action in
    the same state are lost. The iterator ends without another plan.

    Args:
        planner: task planner, such as :class:`FastDownward`, which has a method for it.
        problem: the task.
        time_limit: time limit of the preparation, and of each search [s].

    Attributes:
        result: result of the latest search. At the end, its status is ``UNSOLVABLE`` only if the
            problem has no plan with nothing forbidden; ``LIMIT`` otherwise.
    """

    def __init__(
        self, planner: TaskPlanner[Any], problem: Problem, *, time_limit: float = 60.0
    ) -> None:
        self._planner, self._problem, self._time_limit = planner, problem, time_limit
        self._task: Any = planner.prepare(problem, time_limit=time_limit)
        self._latest_plan: tuple[GroundAction, ...] | None = None
        self._n_forbidden = self._n_forbidden_before = 0
        self.result = TaskPlanResult(TaskPlanStatus.LIMIT, message="no search has run")

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> None:
        """Forbid an action in all further plans while all facts of a context hold.

        Args:
            action: the ground action.
            context: basic facts; if empty, the action is always forbidden.

        Raises:
            TaskError: if the action or a fact is unknown to the problem, or a fact is derived.
        """
        self._task = self._task.forbid(action, context)
        self._n_forbidden += 1

    def __next__(self) -> tuple[GroundAction, ...]:
        latest_plan = self._latest_plan
        if latest_plan is not None and self._n_forbidden == self._n_forbidden_before:
            self._forbid_last_action(latest_plan)
        result = self._search()
        if result.is_solved and result.steps == latest_plan:
            # The excluded actions of the caller do not exclude the plan.
            self._forbid_last_action(latest_plan)
            result = self._search()
        self.result = result
        if not result.is_solved:
            raise StopIteration
        self._latest_plan, self._n_forbidden_before = result.steps, self._n_forbidden
        return result.steps

    def _forbid_last_action(self, plan: tuple[GroundAction, ...]) -> None:
        """Forbid the last action of a plan in its state.

        Raises:
            StopIteration: if the plan is empty, since the goal holds at the start.
        """
        if not plan:
            raise StopIteration
        self.forbid(plan[-1], validate_task_plan(self._problem, plan).states[-2])

    def _search(self) -> TaskPlanResult:
        result = self._planner.search(self._task, time_limit=self._time_limit)
        if result.status is TaskPlanStatus.UNSOLVABLE and self._n_forbidden:
            message = "there is no other plan with what is forbidden"
            return replace(result, status=TaskPlanStatus.LIMIT, message=message)
        return result


_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class CheckedTask:
    """A prepared task with its planner, its problem and its forbidden actions."""

    planner: CheckedTaskPlanner
    problem: Problem
    task: Any
    forbidden: tuple[tuple[GroundAction, frozenset[Fact]], ...] = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> CheckedTask:
        """Return the task without an action in states in which all basic facts hold."""
        facts = frozenset(context)
        task = self.planner.call_planner("forbid", lambda: self.task.forbid(action, sorted(facts)))
        return replace(self, task=task, forbidden=(*self.forbidden, (action, facts)))

    def is_goal_impossible(self) -> bool:
        """Return whether the planner's task proves that there is no plan."""
        if not isinstance(self.task, UnsolvabilityTask):
            return False
        return bool(self.planner.call_planner("is_goal_impossible", self.task.is_goal_impossible))


@dataclass(frozen=True, eq=False)
class CheckedTaskPlanner(TaskPlanner[CheckedTask]):
    """Wrapper of a planner that validates its plans.

    Attributes:
        planner: the other planner.
    """

    planner: TaskPlanner[Any]

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> CheckedTask:
        """Prepare a task.

        Args:
            problem: the task.
            time_limit: time limit [s].

        Raises:
            TaskPlannerError: if the planner fails, or returns an object without ``forbid``.
        """
        task = self.call_planner(
            "prepare", lambda: self.planner.prepare(problem, time_limit=time_limit)
        )
        if not callable(getattr(task, "forbid", None)):
            raise self.error(f"prepares {repr(task)[:60]}, which has no method 'forbid'")
        return CheckedTask(self, problem, task)

    def search(self, task: CheckedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan.

        Args:
            task: the task.
            time_limit: time limit [s].

        Raises:
            TaskPlannerError: if the planner fails, or returns no result or an invalid plan.
        """
        result = self.call_planner(
            "search", lambda: self.planner.search(task.task, time_limit=time_limit)
        )
        if not isinstance(result, TaskPlanResult):
            raise self.error(f"gives {repr(result)[:60]}, which is not a TaskPlanResult")
        if not isinstance(result.status, TaskPlanStatus):
            raise self.error(
                f"gives the status {repr(result.status)[:60]}, which is not a TaskPlanStatus"
            )
        if not result.is_solved:
            return result
        if not isinstance(result.steps, tuple) or not all(
            isinstance(step, GroundAction) for step in result.steps
        ):
            raise self.error(
                f"gives the steps {repr(result.steps)[:60]}, which are not a tuple of GroundAction"
            )
        validation = validate_task_plan(task.problem, result.steps)
        if not validation.is_valid:
            raise self.error(f"gives a plan that is none: {validation.message}")
        for step, state in zip(result.steps, validation.states, strict=False):
            if any(step == action and facts <= state.facts for action, facts in task.forbidden):
                raise self.error(f"gives a plan with {step}, which was forbidden")
        return replace(result, cost=validation.cost)

    def call_planner(self, method: str, call: Callable[[], _Value]) -> _Value:
        """Call a method of the planner and return its result.

        Args:
            method: name of the method, for messages.
            call: the call.

        Raises:
            TaskPlannerError: if the call raises an error that is not a :class:`TmkitError`.
        """
        try:
            return call()
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            raise self.error(f"fails in '{method}': {type(error).__name__}: {error}") from error

    def error(self, fault: str) -> TaskPlannerError:
        """Return an error that names the planner."""
        return TaskPlannerError(
            f"task planner '{callable_name(self.planner)}' {fault}", command=(), output=""
        )
