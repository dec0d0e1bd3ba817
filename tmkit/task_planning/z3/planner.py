"""Task planning with the solver Z3: shortest plans.

"There is a plan of h steps" is a formula (:mod:`tmkit.task_planning.z3.clauses`). The horizon h
grows until it can be satisfied, from a bound that needs no search
(:mod:`tmkit.task_planning.z3.step_bounds`); what was proved about short horizons stays true when
more is forbidden. A learned constraint is a clause at every step.

That there is *no* plan is said only when the goal is beyond reach even in a relaxed task, or when
two of its facts can never meet. It is also said when all reachable states have been looked at, some
of which is done after each horizon (:mod:`tmkit.task_planning.z3.step_bounds`).

Determinism: each horizon is solved by a solver of its own, with fixed seeds, and given up after an
amount of work, not of time. So the plan depends on the task alone. A time limit only stops.

Which objects of a problem are as good as each other. The idea: two objects are interchangeable when
the whole task stays the same after each is called by the other's name: its types, its initial
facts, its goal, and what has been forbidden. Of forty free places on a table all are, until one of
them is where something failed. A planner that may choose among them need not try them all; the
first that was not used yet does.

Invariants: objects in one group can be permuted at will, since being exchangeable is an
equivalence. Objects that the goal mentions are omitted, which is more than needed. O(facts +
learned constraints * objects).
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
from tmkit.task_planning.z3.clauses import StepClauses
from tmkit.task_planning.z3.step_bounds import Exploration, least_steps

# an action, and the facts in whose presence it is forbidden
ForbiddenAction = tuple[GroundAction, frozenset[Fact]]
_SELF = "?"  # stands for the object itself where its facts are compared with another's


def interchangeable_objects(
    problem: Problem, constraints: Collection[ForbiddenAction] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two and more interchangeable objects, each in the order of the problem."""
    mentioned = set(re.findall(r"[^\s()]+", str(problem.goal)))
    about: dict[str, set[tuple[str, ...]]] = {
        name: set() for name in problem.objects if name not in mentioned
    }
    for fact in problem.init:
        _tell(about, fact.predicate, fact.arguments)
    for term, value in problem.values.items():
        _tell(about, f"{term.predicate} {value}", term.arguments)
    equivalent: dict[tuple[object, ...], list[str]] = {}
    for name, facts in about.items():
        equivalent.setdefault((problem.objects[name], frozenset(facts)), []).append(name)
    known = frozenset(constraints)
    groups = (group for names in equivalent.values() for group in _parted(names, known))
    return tuple(group for group in groups if len(group) > 1)


def _tell(about: dict[str, set[tuple[str, ...]]], what: str, arguments: tuple[str, ...]) -> None:
    for name in dict.fromkeys(arguments):
        if name in about:
            about[name].add(
                (what, *(_SELF if argument == name else argument for argument in arguments))
            )


def _parted(names: Iterable[str], constraints: frozenset[ForbiddenAction]) -> list[tuple[str, ...]]:
    """Return the objects in groups within which the learned constraints make no difference."""
    groups: list[list[str]] = []
    for name in names:
        check_time()
        for group in groups:
            if all(
                _exchanged(constraint, group[0], name) in constraints for constraint in constraints
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return [tuple(group) for group in groups]


def _exchanged(constraint: ForbiddenAction, first: str, second: str) -> ForbiddenAction:
    other = {first: second, second: first}
    action, context = constraint

    def names(arguments: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other.get(argument, argument) for argument in arguments)

    return (
        GroundAction(action.name, names(action.arguments)),
        frozenset(Fact(fact.predicate, names(fact.arguments)) for fact in context),
    )


class _Proved:
    """What searches have proved, that no plan has so few steps; it saves work and changes no result."""

    def __init__(self, parent: _Proved | None = None) -> None:
        self._parent = parent
        self._steps = -1

    @property
    def steps(self) -> int:
        """No plan has this many steps or fewer."""
        return self._steps if self._parent is None else max(self._steps, self._parent.steps)

    def learn(self, steps: int) -> None:
        """Remember that no plan has this many steps or fewer."""
        self._steps = max(self._steps, steps)


@dataclass(frozen=True)
class SmtTask:
    """A translated task and what has been forbidden in it: what :class:`Z3Planner` searches.

    Attributes:
        translation: the task, with the learned constraints in it.
        constraints: the actions that are forbidden, each with the facts in whose presence it is.
    """

    translation: TranslatedTask
    constraints: tuple[ForbiddenAction, ...] = ()
    _proved: _Proved = field(default_factory=_Proved, compare=False, repr=False)

    @property
    def problem(self) -> Problem:
        """The problem that was prepared."""
        return self.translation.problem

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> SmtTask:
        """Return the task in which ``action`` is never done in a state where all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; with none the action is forbidden altogether.

        Raises:
            TaskError: an action or fact that the problem does not know, or a derived fact.
        """
        facts = frozenset(context)
        translation = self.translation.forbid(action, sorted(facts))
        return SmtTask(translation, (*self.constraints, (action, facts)), _Proved(self._proved))

    def is_goal_impossible(self) -> bool:
        """Return whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
        return self.translation.is_goal_impossible()


@dataclass(frozen=True)
class Z3Planner(TaskPlanner[SmtTask]):
    """Plans with Z3, as few steps as possible whatever they cost. Needs the extra ``planners``.

    Args:
        most_steps: the longest horizon that is tried.
        work: how much the solver may do for each horizon, in its own unit (``rlimit``).
        states: how many states are looked at after each horizon without a plan, for a proof that
            there is none.
    """

    most_steps: int = 100
    work: int = 100_000_000
    states: int = 500

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> SmtTask:
        """Ground a problem by the translator of Fast Downward.

        Args:
            problem: the task.
            time_limit: seconds after which to give up.

        Raises:
            MissingExtraError: Z3 is not installed.
            TaskPlannerError: the translator could not be run or broke, or the problem is beyond it.
        """
        _z3()
        return SmtTask(FastDownward().translate(problem, time_limit=time_limit))

    def search(self, task: SmtTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a shortest plan, or that there is none, within the limits.

        Args:
            task: the task, from :meth:`prepare`, with learned constraints or without.
            time_limit: seconds after which to give up.

        Raises:
            MissingExtraError: Z3 is not installed.
            TaskPlannerError: the plan does not reach the goal, which would be an error of a
                program.
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
    """One search: horizon after horizon."""

    def __init__(self, planner: Z3Planner, task: SmtTask, time_limit: float) -> None:
        self._planner, self._task = planner, task
        self._began = time.monotonic()
        self._deadline = self._began + time_limit
        self._decisions = self._conflicts = 0

    def result(self) -> TaskPlanResult:
        translation, planner = self._task.translation, self._planner
        least = least_steps(translation)
        if least is None or self._task.is_goal_impossible():
            return self._result(
                TaskPlanStatus.UNSOLVABLE, "there is no plan: the goal is out of reach"
            )
        groups = interchangeable_objects(translation.problem, self._task.constraints)
        clauses = StepClauses(translation, interchangeable=groups)
        exploration = Exploration(translation)
        looked = 0
        for steps in range(least, planner.most_steps + 1):
            if steps <= self._task._proved.steps:
                continue
            wanted = planner.states * (steps - least)
            exploration.look(wanted - looked)
            looked = wanted
            if exploration.exhausted:
                return self._result(
                    TaskPlanStatus.UNSOLVABLE,
                    "there is no plan: no reachable state is one of the goal",
                )
            if steps >= exploration.depth:
                found = self._solved(clauses, steps)
                if isinstance(found, TaskPlanResult):
                    return found
            self._task._proved.learn(steps)
        return self._result(TaskPlanStatus.LIMIT, f"no plan has up to {planner.most_steps} steps")

    def _solved(self, clauses: StepClauses, steps: int) -> TaskPlanResult | None:
        """Return the plan of so many steps, or that the limits are reached; ``None`` when there is no such plan."""
        left = self._deadline - time.monotonic()
        if left <= 0.0:
            return self._result(TaskPlanStatus.LIMIT, "no plan was found within the time given")
        result = _Beside(_z3()).check(clauses.text(steps), work=self._planner.work, seconds=left)
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
            for n in clauses.chosen(result.true, steps=steps)
        )
        validation = validate_task_plan(self._task.problem, plan)
        if not validation.is_valid:
            message = f"the plan that Z3 gave is not valid: {validation.message}"
            raise TaskPlannerError(message, command=(), output="\n".join(map(str, plan)))
        solved = self._result(TaskPlanStatus.SOLVED, "a plan was found; none has fewer steps")
        return replace(solved, steps=plan, cost=validation.cost)

    def _result(self, status: TaskPlanStatus, message: str) -> TaskPlanResult:
        statistics = TaskPlanStatistics(
            expanded=self._decisions,
            evaluated=self._conflicts,
            operators=len(self._task.translation.operators),
            facts=self._task.translation.fact_count,
            search_seconds=time.monotonic() - self._began,
        )
        return TaskPlanResult(status, message=message, statistics=statistics)


@dataclass(frozen=True)
class _SatResult:
    """Whether clauses can be satisfied (``None``: unknown), the variables that are true then, counts."""

    is_satisfiable: bool | None
    true: tuple[int, ...]
    decisions: int
    conflicts: int


class _Beside:
    """Runs Z3 in a thread, where all its objects live and die, so that the one that waits can be interrupted."""

    def __init__(self, z3: Any) -> None:
        self._z3 = z3
        self._contexts: list[Any] = []

    def check(self, text: str, *, work: int, seconds: float) -> _SatResult:
        """Set whether clauses in DIMACS format can be satisfied."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._check, text, work, max(1, int(min(1000 * seconds, 2**31))))
            try:
                return done.result()
            except BaseException:
                while not done.done():
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
        counts = {name: statistics.get_key_value(name) for name in statistics.keys()}  # noqa: SIM118  it is no mapping
        self._contexts.clear()
        is_satisfiable = None if result == z3.unknown else result == z3.sat
        return _SatResult(
            is_satisfiable, true, counts.get("sat decisions", 0), counts.get("sat conflicts", 0)
        )


def _z3() -> Any:
    """Return the module of Z3, which is loaded only when it is used."""
    with importing("z3", "planners", "Z3Planner needs"):
        return import_module("z3")
