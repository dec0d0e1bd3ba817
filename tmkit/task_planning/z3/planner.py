"""Task planner for shortest plans with the SMT solver Z3.

"There is a plan of h steps" is a formula (:mod:`tmkit.task_planning.z3.clauses`). The horizon h
increases until the formula is satisfiable, starting at a lower bound
(:mod:`tmkit.task_planning.z3.step_bounds`). Proofs about short horizons remain valid under further
constraints. A learned constraint is a clause at every step.

Unsolvability is proved in three ways: the goal is unreachable in the relaxed task, two of its facts
exclude each other, or all reachable states have been explored. A part of the states is explored
after each horizon (:mod:`tmkit.task_planning.z3.step_bounds`).

Determinism: each horizon has a separate solver with fixed seeds and a limit of work, not of time.
The plan depends on the task alone. A time limit only ends the search.

Two objects are interchangeable if swapping their names does not change the task: types, initial
facts, goal and learned constraints. An example is forty free places on a table, until an action
fails at one of them. A planner needs to try only the first unused object of a group.

Guarantees: all permutations of a group are valid, since the relation is an equivalence. Objects of
the goal are omitted, which is conservative. O(facts + learned constraints * objects).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from tmkit._support import time_limits
from tmkit._support.extras import importing
from tmkit._support.time_limits import check_time
from tmkit.errors import TaskPlannerError, TimeLimitError
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.validation import validate_task_plan
from tmkit.task_planning.fast_downward import FastDownward
from tmkit.task_planning.protocol import (
    TaskPlanner,
    TaskPlanResult,
    TaskPlanStatistics,
    TaskPlanStatus,
)
from tmkit.task_planning.translated_task import TranslatedTask
from tmkit.task_planning.uncontrollable import require_controllable
from tmkit.task_planning.z3.clauses import StepClauses
from tmkit.task_planning.z3.step_bounds import Exploration, least_steps

ForbiddenAction = tuple[GroundAction, frozenset[Fact]]
"""An action and the facts under which it is forbidden."""

_SELF = "?"
"""Placeholder of an object in its own facts, which are compared with those of other objects."""


def interchangeable_objects(
    problem: Problem, constraints: Collection[ForbiddenAction] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of at least two interchangeable objects, in the order of the problem."""
    goal_names = set(re.findall(r"[^\s()]+", str(problem.goal)))
    uses: dict[str, set[tuple[str, ...]]] = {
        name: set() for name in problem.objects if name not in goal_names
    }
    for fact in problem.init:
        _record_use(uses, fact.predicate, fact.arguments)
    for term, value in problem.values.items():
        _record_use(uses, f"{term.predicate} {value}", term.arguments)
    equivalent: dict[tuple[object, ...], list[str]] = {}
    for name, facts in uses.items():
        equivalent.setdefault((problem.objects[name], frozenset(facts)), []).append(name)
    constraint_set = frozenset(constraints)
    groups = (group for names in equivalent.values() for group in _partition(names, constraint_set))
    return tuple(group for group in groups if len(group) > 1)


def _record_use(
    uses: dict[str, set[tuple[str, ...]]], label: str, arguments: tuple[str, ...]
) -> None:
    for name in dict.fromkeys(arguments):
        if name in uses:
            uses[name].add(
                (label, *(_SELF if argument == name else argument for argument in arguments))
            )


def _partition(
    names: Iterable[str], constraints: frozenset[ForbiddenAction]
) -> list[tuple[str, ...]]:
    """Return the objects in groups under whose permutations the constraints are invariant."""
    groups: list[list[str]] = []
    for name in names:
        check_time()
        for group in groups:
            if all(
                _exchange(constraint, group[0], name) in constraints for constraint in constraints
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return [tuple(group) for group in groups]


def _exchange(constraint: ForbiddenAction, first: str, second: str) -> ForbiddenAction:
    swap = {first: second, second: first}
    action, context = constraint

    def names(arguments: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(swap.get(argument, argument) for argument in arguments)

    return (
        GroundAction(action.name, names(action.arguments)),
        frozenset(Fact(fact.predicate, names(fact.arguments)) for fact in context),
    )


class _StepBound:
    """Proved lower bound of the number of steps, which saves work and changes no result."""

    def __init__(self, parent: _StepBound | None = None) -> None:
        self._parent = parent
        self._steps = -1

    @property
    def steps(self) -> int:
        """Largest number of steps for which the absence of plans is proved."""
        return self._steps if self._parent is None else max(self._steps, self._parent.steps)

    def raise_to(self, steps: int) -> None:
        """Raise the bound: no plan has ``steps`` or fewer steps."""
        self._steps = max(self._steps, steps)


@dataclass(frozen=True)
class SmtTask:
    """Prepared task of :class:`Z3Planner`.

    Attributes:
        translation: the translated task with its learned constraints.
        constraints: the forbidden actions, each with the facts under which it is forbidden.
    """

    translation: TranslatedTask
    constraints: tuple[ForbiddenAction, ...] = ()
    _step_bound: _StepBound = field(default_factory=_StepBound, compare=False, repr=False)

    @property
    def problem(self) -> Problem:
        """The original problem."""
        return self.translation.problem

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> SmtTask:
        """Return the task without ``action`` in states in which all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; if empty, the action is always forbidden.

        Raises:
            TaskError: if the action or a fact is unknown to the problem, or a fact is derived.
        """
        facts = frozenset(context)
        translation = self.translation.forbid(action, sorted(facts))
        return SmtTask(
            translation, (*self.constraints, (action, facts)), _StepBound(self._step_bound)
        )

    def is_goal_impossible(self) -> bool:
        """Return whether two goal facts are proved to exclude each other; False proves nothing."""
        return self.translation.is_goal_impossible()


@dataclass(frozen=True)
class Z3Planner(TaskPlanner[SmtTask]):
    """Planner of plans with the fewest steps by Z3; costs are ignored.

    Requires the extra ``planners``.

    Args:
        most_steps: largest horizon.
        work: work limit of the solver for each horizon, in its own unit (``rlimit``).
        states: number of states that are explored after each horizon without a plan, for a proof
            of unsolvability.
    """

    most_steps: int = 100
    work: int = 100_000_000
    states: int = 500

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> SmtTask:
        """Ground a problem with the translator of Fast Downward.

        Args:
            problem: the task.
            time_limit: time limit [s].

        Raises:
            MissingExtraError: if Z3 is not installed.
            TaskPlannerError: if the translator cannot be run, fails or does not support the
                problem.
        """
        _z3()
        require_controllable(problem, "Z3")
        return SmtTask(FastDownward().translate(problem, time_limit=time_limit))

    def search(self, task: SmtTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a shortest plan, or a proof that there is none, within the limits.

        Args:
            task: the task, from :meth:`prepare`, with learned constraints or without.
            time_limit: time limit [s].

        Raises:
            MissingExtraError: if Z3 is not installed.
            TaskPlannerError: if the plan does not reach the goal, which is a program error.
        """
        if not task.translation.is_complete:
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message="the translation ran out of time or memory"
            )
        search = _Search(self, task, time_limit)
        try:
            with time_limits.time_limit(time_limit):
                return search.result()
        except TimeLimitError:
            return search._result(TaskPlanStatus.LIMIT, "no plan was found within the time given")


class _Search:
    """Search over increasing horizons."""

    def __init__(self, planner: Z3Planner, task: SmtTask, time_limit: float) -> None:
        self._planner, self._task = planner, task
        self._start_time = time.monotonic()
        self._deadline = self._start_time + time_limit
        self._decisions = self._conflicts = 0

    def result(self) -> TaskPlanResult:
        translation, planner = self._task.translation, self._planner
        min_steps = least_steps(translation)
        if min_steps is None or self._task.is_goal_impossible():
            return self._result(
                TaskPlanStatus.UNSOLVABLE, "there is no plan: the goal is out of reach"
            )
        groups = interchangeable_objects(translation.problem, self._task.constraints)
        clauses = StepClauses(translation, interchangeable=groups)
        exploration = Exploration(translation)
        expanded = 0
        for steps in range(min_steps, planner.most_steps + 1):
            if steps <= self._task._step_bound.steps:
                continue
            state_limit = planner.states * (steps - min_steps)
            exploration.expand(state_limit - expanded)
            expanded = state_limit
            if exploration.is_exhausted:
                return self._result(
                    TaskPlanStatus.UNSOLVABLE,
                    "there is no plan: no reachable state is one of the goal",
                )
            if steps >= exploration.depth:
                result = self._solve_horizon(clauses, steps)
                if isinstance(result, TaskPlanResult):
                    return result
            self._task._step_bound.raise_to(steps)
        return self._result(TaskPlanStatus.LIMIT, f"no plan has up to {planner.most_steps} steps")

    def _solve_horizon(self, clauses: StepClauses, steps: int) -> TaskPlanResult | None:
        """Return the plan of a horizon or the limit that was reached, or None without a plan."""
        remaining_seconds = self._deadline - time.monotonic()
        if remaining_seconds <= 0.0:
            return self._result(TaskPlanStatus.LIMIT, "no plan was found within the time given")
        result = _SolverThread(_z3()).check(
            clauses.text(steps), work=self._planner.work, seconds=remaining_seconds
        )
        self._decisions += result.decisions
        self._conflicts += result.conflicts
        if result.is_satisfiable is False:
            return None
        if result.is_satisfiable is None:
            message = (
                "no plan was found within the limits, which were reached looking for one of"
                f" {steps} steps"
            )
            return self._result(TaskPlanStatus.LIMIT, message)
        operators = self._task.translation.operators
        plan = tuple(
            self._task.translation.action_of(operators[n].name)
            for n in clauses.find_operators(result.true, steps=steps)
        )
        validation = validate_task_plan(self._task.problem, plan)
        if not validation.is_valid:
            message = f"the plan of Z3 is not valid: {validation.message}"
            raise TaskPlannerError(message, command=(), output="\n".join(map(str, plan)))
        solved = self._result(TaskPlanStatus.SOLVED, "a plan was found; none has fewer steps")
        return replace(solved, steps=plan, cost=validation.cost)

    def _result(self, status: TaskPlanStatus, message: str) -> TaskPlanResult:
        statistics = TaskPlanStatistics(
            expanded=self._decisions,
            evaluated=self._conflicts,
            operators=len(self._task.translation.operators),
            facts=self._task.translation.fact_count,
            search_seconds=time.monotonic() - self._start_time,
        )
        return TaskPlanResult(status, message=message, statistics=statistics)


@dataclass(frozen=True)
class _SatResult:
    """Result of the solver.

    Attributes:
        is_satisfiable: whether the clauses are satisfiable; None if unknown.
        true: the variables that are true in the model.
        decisions: number of decisions.
        conflicts: number of conflicts.
    """

    is_satisfiable: bool | None
    true: tuple[int, ...]
    decisions: int
    conflicts: int


class _SolverThread:
    """Thread that creates and deletes all objects of Z3; the waiting caller can interrupt it."""

    def __init__(self, z3: Any) -> None:
        self._z3 = z3
        self._contexts: list[Any] = []

    def check(self, text: str, *, work: int, seconds: float) -> _SatResult:
        """Check the satisfiability of clauses in DIMACS format, within a time limit [s]."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self._check, text, work, max(1, int(min(1000 * seconds, 2**31))))
            try:
                return future.result()
            except BaseException:
                while not future.done():
                    for context in tuple(self._contexts):
                        context.interrupt()
                    time.sleep(0.01)
                raise

    def _check(self, text: str, work: int, milliseconds: int) -> _SatResult:
        z3 = self._z3
        context = z3.Context()
        self._contexts.append(context)
        solver = z3.SolverFor("QF_FD", ctx=context)
        for name, value in (
            ("ctrl_c", False),
            ("random_seed", 0),
            ("rlimit", work),
            ("timeout", milliseconds),
        ):
            solver.set(name, value)
        solver.from_string(text)
        result = solver.check()
        true: tuple[int, ...] = ()
        if result == z3.sat:
            model = solver.model()
            true = tuple(
                int(str(name.name())[2:]) for name in model.decls() if z3.is_true(model[name])
            )
        statistics = solver.statistics()
        counts = {name: statistics.get_key_value(name) for name in statistics.keys()}  # noqa: SIM118  not a mapping
        self._contexts.clear()
        is_satisfiable = None if result == z3.unknown else result == z3.sat
        return _SatResult(
            is_satisfiable, true, counts.get("sat decisions", 0), counts.get("sat conflicts", 0)
        )


def _z3() -> Any:
    """Import the module of Z3 on first use."""
    with importing("z3", "planners", "Z3Planner needs"):
        return import_module("z3")
