"""Task planners from engines of unified-planning, for numeric and temporal tasks.

Fast Downward supports neither. A search runs in a separate Python process, since engines may ignore
time limits, and some never return. Its start takes about a second, which is most of the time of a
small search.
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

_ACTION_PREFIX = "do--"
"""Prefix of the names of actions, which must differ from those of predicates."""

_MAKESPAN = "MAKESPAN"
"""Feature of problems that minimise the makespan, in unified-planning."""

_MAIN = "from tmkit.task_planning.unified.planner import main; main()"
"""Program of the search process."""

Forbidden: TypeAlias = tuple[tuple[GroundAction, tuple[Fact, ...]], ...]
"""Actions, each with the facts under which it is forbidden."""

Steps: TypeAlias = tuple[GroundAction, ...]
"""Plan without times."""


@dataclass(frozen=True)
class UnifiedTask:
    """A problem with forbidden actions.

    Attributes:
        problem: the problem.
        forbidden: actions, each with the facts under which it is forbidden.
    """

    problem: Problem
    forbidden: Forbidden = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> UnifiedTask:
        """Return the task without ``action`` in states in which all facts of ``context`` hold.

        Args:
            action: the ground action.
            context: basic facts; if empty, the action is always forbidden.

        Raises:
            TaskError: if the action or a fact is unknown to the problem, or a fact is derived.
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
    """Task planner that runs an engine of unified-planning.

    Args:
        engine: name of an installed engine, such as ``"tamer"`` (``pip install up-tamer``). The
            result for a task with durations is a schedule. Its actions may overlap, and its cost is
            the makespan.
    """

    engine: str

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> UnifiedTask:
        """Check that the engine is installed and supports the task.

        Args:
            problem: the task.
            time_limit: ignored; the check takes a few seconds.

        Raises:
            TaskPlannerError: if the engine is not installed, or lacks features of the task, which
                the message names.
            TaskError: if unified-planning does not support the task.
            MissingExtraError: if unified-planning is not installed.
        """
        del time_limit
        unified_problem = _convert_problem(problem)
        with _make_engine(self.engine, unified_problem) as engine:
            missing_features = sorted(
                set(unified_problem.kind.features)
                - set(engine.supported_kind().features)
                - {_MAKESPAN}
            )
        if missing_features:
            names = ", ".join(missing_features)
            raise _error(f"engine '{self.engine}' lacks {names}, which task '{problem.name}' needs")
        return UnifiedTask(problem)

    def search(self, task: UnifiedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan, or a proof that there is none, within the time limit.

        Args:
            task: the task, from :meth:`prepare`.
            time_limit: time limit, after which the engine is killed [s].

        Raises:
            TaskPlannerError: if the engine fails, or its plan does not reach the goal.
        """
        with temporary_folder("unified") as folder:
            task_file = folder / "task.pickle"
            task_file.write_bytes(pickle.dumps((self.engine, task)))
            with Program(
                [sys.executable, "-c", _MAIN],
                folder=folder,
                time_limit=time_limit,
                standard_input=task_file,
                environment=environment(
                    {"PYTHONHASHSEED": "0", "PYTHONPATH": ":".join(filter(None, sys.path))}
                ),
            ) as program:
                process_result = program.wait(seconds=time_limit)
            reply = folder / "answer.json"
            if process_result.code is None:
                return TaskPlanResult(
                    TaskPlanStatus.LIMIT, message="no plan was found within the time given"
                )
            if not reply.exists():
                raise process_result.error(
                    f"engine '{self.engine}' ended with exit code {process_result.code}"
                )
            status, steps = json.loads(reply.read_text(encoding="utf-8"))
        if steps is None:
            is_proved = status == "UNSOLVABLE_PROVEN"
            task_status = TaskPlanStatus.UNSOLVABLE if is_proved else TaskPlanStatus.LIMIT
            return TaskPlanResult(
                task_status, message=f"engine '{self.engine}' ended with {status}"
            )
        plan = tuple(GroundAction(name, tuple(arguments)) for _, _, name, *arguments in steps)
        if task.problem.domain.is_durative:
            return self._make_scheduled_result(
                task.problem, plan, [(float(start), float(length)) for start, length, *_ in steps]
            )
        validation = validate_task_plan(task.problem, plan)
        if not validation.is_valid:
            raise _error(f"engine '{self.engine}' gives a plan that is none: {validation.message}")
        return TaskPlanResult(
            TaskPlanStatus.SOLVED, plan, validation.cost, f"a plan was found by '{self.engine}'"
        )

    def _make_scheduled_result(
        self, problem: Problem, plan: Steps, times: Iterable[tuple[float, float]]
    ) -> TaskPlanResult:
        pairs = zip(plan, times, strict=True)
        timed = sorted(
            (TimedAction(start, step, length) for step, (start, length) in pairs),
            key=lambda action: action.start,
        )
        if fault := schedule_fault(problem, timed):
            raise _error(f"engine '{self.engine}' gives a schedule that is none: {fault}")
        steps = tuple(action.action for action in timed)
        message = f"a plan was found by '{self.engine}'"
        return TaskPlanResult(
            TaskPlanStatus.SOLVED, steps, makespan(timed), message, schedule=tuple(timed)
        )


def _error(message: str) -> TaskPlannerError:
    return TaskPlannerError(message, command=(), output="")


def _convert_problem(problem: Problem) -> Any:
    """Return the task in a new environment, with action names that differ from predicates."""
    environment = None
    # problem_to_unified raises a better error if the library is missing.
    with contextlib.suppress(ImportError):
        from unified_planning.environment import Environment

        environment = Environment()
        environment.credits_stream = None
    actions = tuple(
        replace(action, name=f"{_ACTION_PREFIX}{action.name}") for action in problem.domain.actions
    )
    domain = replace(problem.domain, actions=actions)
    renamed = replace(problem, domain=domain).with_source(problem.source)
    return problem_to_unified(renamed, environment)


def _make_engine(name: str, problem: Any) -> Any:
    from unified_planning.exceptions import UPNoRequestedEngineAvailableException

    factory = problem.environment.factory
    try:
        return factory.OneshotPlanner(name=name)
    except UPNoRequestedEngineAvailableException as error:
        installed = ", ".join(sorted(factory.engines))
        raise _error(
            f"unified-planning has no engine '{name}' here; install it (known: {installed})"
        ) from error


def main() -> None:
    """Search for a plan of the pickled task on standard input; write it to ``answer.json``."""
    name, task = pickle.load(sys.stdin.buffer)
    unified_problem = _convert_problem(task.problem)
    with _make_engine(name, unified_problem) as engine:
        # Such an engine returns some schedule.
        if _MAKESPAN not in engine.supported_kind().features:
            unified_problem.clear_quality_metrics()
        _forbid(
            unified_problem,
            task.forbidden,
            by_effects="CONDITIONAL_EFFECTS" in engine.supported_kind().features,
        )
        result = engine.solve(unified_problem)
    steps = None
    if result.plan is not None:
        plan = result.plan
        timed = (
            plan.timed_actions
            if hasattr(plan, "timed_actions")
            else [(0, step, None) for step in plan.actions]
        )
        steps = [
            [
                float(start),
                float(length or 0),
                step.action.name.removeprefix(_ACTION_PREFIX),
                *map(str, step.actual_parameters),
            ]
            for start, step, length in timed
        ]
    with open("answer.json", "w", encoding="utf-8") as file:
        json.dump([result.status.name, steps], file)


def _forbid(unified_problem: Any, forbidden: Forbidden, *, by_effects: bool) -> None:
    """Add forbidden actions as effects that make the goal unreachable, or as preconditions.

    Preconditions are the fallback: translators split a conjunction of negated conjunctions into as
    many actions as the product of their lengths.
    """
    from unified_planning.shortcuts import BoolType, StartTiming

    make = unified_problem.environment.expression_manager
    if by_effects and forbidden:
        broken = unified_problem.add_fluent("broken--", BoolType(), default_initial_value=False)
        unified_problem.add_goal(make.Not(broken()))
    for action, context in forbidden:
        schema = unified_problem.action(f"{_ACTION_PREFIX}{action.name}")
        pairs = zip(schema.parameters, action.arguments, strict=True)
        same = [
            make.Equals(parameter, unified_problem.object(argument))
            for parameter, argument in pairs
        ]
        case = make.And(
            *same,
            *(
                unified_problem.fluent(fact.predicate)(*map(unified_problem.object, fact.arguments))
                for fact in context
            ),
        )
        at_start = (StartTiming(),) if hasattr(schema, "duration") else ()
        if by_effects:
            schema.add_effect(*at_start, broken, True, case)
        elif at_start:
            schema.add_condition(*at_start, make.Not(case))
        else:
            schema.add_precondition(make.Not(case))
