"""Planners of unified-planning as task planners: for tasks with numbers or in time, which Fast Downward does not take.

A search runs in a Python of its own, since engines need not keep to time limits, and some never
return. Starting it takes about a second, which is most of a small search.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tmkit._support.signals import temporary_folder
from tmkit._support.subprocesses import Program
from tmkit.errors import TaskPlannerError
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.validation import TimedAction, schedule_fault, validate_task_plan
from tmkit.pddl.vocabulary import derived_predicate_fault
from tmkit.task_planning.fast_downward_process import environment
from tmkit.task_planning.protocol import TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.schedule import makespan
from tmkit.task_planning.unified.conversion import problem_to_unified

_ACTION, _MAKESPAN = "do--", "MAKESPAN"
_MAIN = "from tmkit.task_planning.unified.planner import main; main()"


Forbidden: TypeAlias = tuple[tuple[GroundAction, tuple[Fact, ...]], ...]
"""Actions, each with the facts in whose presence it is not done."""

Steps: TypeAlias = tuple[GroundAction, ...]


@dataclass(frozen=True)
class UnifiedTask:
    """A task with what is forbidden in it.

    Attributes:
        problem: the task.
        forbidden: actions, each with the facts in whose presence it is not done.
    """

    problem: Problem
    forbidden: Forbidden = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> UnifiedTask:
        """Return the task in which ``action`` is never done in a state where all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; with none the action is forbidden altogether.

        Raises:
            TaskError: an action or fact that the problem does not know.
        """
        self.problem.binding_of(action)
        facts = tuple(sorted(context))
        for fact in facts:
            derived, words = self.problem.domain.derived_predicates, self.problem.vocabulary
            fault = derived_predicate_fault(fact.predicate, derived) or words.atom_fault(
                fact.predicate, fact.arguments, {}
            )
            if fault is not None:
                raise self.problem.error(f"context {fact}: {fault.reason}")
        return replace(self, forbidden=(*self.forbidden, (action, facts)))


@dataclass(frozen=True)
class UnifiedPlanner(TaskPlanner[UnifiedTask]):
    """Plans with an engine of unified-planning.

    Args:
        engine: the name of an engine that is installed, as ``"tamer"`` (``pip install up-tamer``).
            Of a task with durations it makes a schedule, in which actions may overlap, and whose
            makespan is the cost.
    """

    engine: str

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> UnifiedTask:
        """Check that the engine is installed and takes the task.

        Args:
            problem: the task.
            time_limit: seconds; the check takes few.

        Raises:
            TaskPlannerError: the engine is not installed, or lacks features of the task, which are
                named.
            TaskError: unified-planning lacks something of the task.
            MissingExtraError: unified-planning is not installed.
        """
        del time_limit
        given = _unified(problem)
        with _engine(self.engine, given) as engine:
            lacking = sorted(
                set(given.kind.features) - set(engine.supported_kind().features) - {_MAKESPAN}
            )
        if lacking:
            raise _error(
                f"engine '{self.engine}' lacks {', '.join(lacking)}, which task '{problem.name}'"
                " needs"
            )
        return UnifiedTask(problem)

    def search(self, task: UnifiedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan, or a proof that there is none, within the time.

        Args:
            task: the task, from :meth:`prepare`.
            time_limit: seconds after which the engine is ended.

        Raises:
            TaskPlannerError: the engine broke, or its plan does not reach the goal.
        """
        with temporary_folder("unified") as folder:
            given = folder / "task.pickle"
            given.write_bytes(pickle.dumps((self.engine, task)))
            with Program(
                [sys.executable, "-c", _MAIN],
                folder=folder,
                time_limit=time_limit,
                standard_input=given,
                environment=environment(
                    {"PYTHONHASHSEED": "0", "PYTHONPATH": ":".join(filter(None, sys.path))}
                ),
            ) as program:
                finished = program.wait(seconds=time_limit)
            answer = folder / "answer.json"
            if finished.code is None:
                return TaskPlanResult(
                    TaskPlanStatus.LIMIT, message="no plan was found within the time given"
                )
            if not answer.exists():
                raise finished.error(f"engine '{self.engine}' ended with exit code {finished.code}")
            status, steps = json.loads(answer.read_text(encoding="utf-8"))
        if steps is None:
            is_proved = status == "UNSOLVABLE_PROVEN"
            ended = TaskPlanStatus.UNSOLVABLE if is_proved else TaskPlanStatus.LIMIT
            return TaskPlanResult(ended, message=f"engine '{self.engine}' ended with {status}")
        plan = tuple(GroundAction(name, tuple(arguments)) for _, _, name, *arguments in steps)
        if task.problem.domain.is_durative:
            return self._in_time(
                task.problem, plan, [(float(start), float(length)) for start, length, *_ in steps]
            )
        validation = validate_task_plan(task.problem, plan)
        if not validation.is_valid:
            raise _error(f"engine '{self.engine}' gives a plan that is none: {validation.message}")
        return TaskPlanResult(
            TaskPlanStatus.SOLVED, plan, validation.cost, f"a plan was found by '{self.engine}'"
        )

    def _in_time(
        self, problem: Problem, plan: Steps, times: Iterable[tuple[float, float]]
    ) -> TaskPlanResult:
        pairs = zip(plan, times, strict=True)
        timed = sorted(
            (TimedAction(start, step, length) for step, (start, length) in pairs),
            key=lambda one: one.start,
        )
        if fault := schedule_fault(problem, timed):
            raise _error(f"engine '{self.engine}' gives a schedule that is none: {fault}")
        steps, found = tuple(one.action for one in timed), f"a plan was found by '{self.engine}'"
        return TaskPlanResult(
            TaskPlanStatus.SOLVED, steps, makespan(timed), found, schedule=tuple(timed)
        )


def _error(what: str) -> TaskPlannerError:
    return TaskPlannerError(what, command=(), output="")


def _unified(problem: Problem) -> Any:
    """Return the task in an environment of its own, its actions called otherwise than its predicates."""
    environment = None
    with contextlib.suppress(ImportError):  # which is said better below
        from unified_planning.environment import Environment

        environment = Environment()
        environment.credits_stream = None
    actions = tuple(
        replace(action, name=f"{_ACTION}{action.name}") for action in problem.domain.actions
    )
    domain = replace(problem.domain, actions=actions)
    renamed = replace(problem, domain=domain).with_source(problem.source)
    return problem_to_unified(renamed, environment)


def _engine(name: str, problem: Any) -> Any:
    from unified_planning.exceptions import UPNoRequestedEngineAvailableException

    factory = problem.environment.factory
    try:
        return factory.OneshotPlanner(name=name)
    except UPNoRequestedEngineAvailableException as error:
        known = ", ".join(sorted(factory.engines))
        raise _error(
            f"unified-planning has no engine '{name}' here; install it (known: {known})"
        ) from error


def main() -> None:
    """Search for a plan of the pickled task on the standard input, and write the answer to ``answer.json``."""
    name, task = pickle.load(sys.stdin.buffer)
    given = _unified(task.problem)
    with _engine(name, given) as engine:
        if _MAKESPAN not in engine.supported_kind().features:  # then it finds some schedule
            given.clear_quality_metrics()
        _forbid(
            given,
            task.forbidden,
            by_effects="CONDITIONAL_EFFECTS" in engine.supported_kind().features,
        )
        found = engine.solve(given)
    steps = None
    if found.plan is not None:
        plan = found.plan
        timed = (
            plan.timed_actions
            if hasattr(plan, "timed_actions")
            else [(0, step, None) for step in plan.actions]
        )
        steps = [
            [
                float(start),
                float(length or 0),
                step.action.name.removeprefix(_ACTION),
                *map(str, step.actual_parameters),
            ]
            for start, step, length in timed
        ]
    with open("answer.json", "w", encoding="utf-8") as file:
        json.dump([found.status.name, steps], file)


def _forbid(given: Any, forbidden: Forbidden, *, by_effects: bool) -> None:
    """Add what is forbidden: as effects that make the goal unreachable, or as preconditions.

    Translators take a conjunction of negated conjunctions apart into as many actions as the product
    of their lengths.
    """
    from unified_planning.shortcuts import BoolType, StartTiming

    make = given.environment.expression_manager
    if by_effects and forbidden:
        broken = given.add_fluent("broken--", BoolType(), default_initial_value=False)
        given.add_goal(make.Not(broken()))
    for action, context in forbidden:
        schema = given.action(f"{_ACTION}{action.name}")
        pairs = zip(schema.parameters, action.arguments, strict=True)
        same = [make.Equals(parameter, given.object(argument)) for parameter, argument in pairs]
        case = make.And(
            *same,
            *(given.fluent(fact.predicate)(*map(given.object, fact.arguments)) for fact in context),
        )
        at_start = (StartTiming(),) if hasattr(schema, "duration") else ()
        if by_effects:
            schema.add_effect(*at_start, broken, True, case)
        elif at_start:
            schema.add_condition(*at_start, make.Not(case))
        else:
            schema.add_precondition(make.Not(case))
