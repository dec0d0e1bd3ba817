"""Policies that reach the goal despite uncontrollable actions of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tmkit._support import time_limits
from tmkit._support.results import Result
from tmkit.errors import TaskPlannerError, TimeLimitError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.pddl.validation import validate_task_plan
from tmkit.task_planning.guide import TaskPlanSource
from tmkit.task_planning.protocol import (
    TaskPlanner,
    TaskPlanResult,
    TaskPlanStatistics,
    TaskPlanStatus,
)
from tmkit.task_planning.translated_task import TranslatedTask
from tmkit.task_planning.uncontrollable import Defeat


@dataclass(frozen=True)
class Policy(Result):
    """An action for each state that a plan and the uncontrollable actions lead to.

    From each of these states some execution reaches the goal (strong cyclic), so it is reached
    unless the world prevents it forever.

    Attributes:
        result: end of the search, with the plan for a world that does nothing.
        problem: the task.
        actions: action of each state in which the goal does not hold; empty without a policy.
        defeating: names of the uncontrollable actions that defeat every plan, if this is proved.
    """

    result: TaskPlanResult
    problem: Problem = field(repr=False)
    actions: Mapping[State, GroundAction] = field(default_factory=dict, repr=False)
    defeating: tuple[str, ...] = ()

    @property
    def status(self) -> TaskPlanStatus:
        """End of the search."""
        return self.result.status

    @property
    def is_solved(self) -> bool:
        """There is a policy."""
        return self.result.is_solved

    def action(self, state: State) -> GroundAction:
        """Return the action in a state.

        Args:
            state: the facts that hold, as they follow from the initial state, the policy and the
                uncontrollable actions.

        Raises:
            TaskError: if the policy does not lead to the state, or the goal holds in it.
        """
        try:
            return self.actions[state]
        except KeyError:
            reason = "the goal holds" if self.problem.holds(state, self.problem.goal) else ""
            raise self.problem.error(
                f"the policy has no action: {reason or 'it does not lead to this state'}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the result, and each state with its action, as plain values."""
        actions = [
            {"state": [str(fact) for fact in state], "action": str(action)}
            for state, action in self.actions.items()
        ]
        return self.result.to_dict() | {"defeating": [*self.defeating], "actions": actions}

    def __repr__(self) -> str:
        return f"Policy({self.result.status.value}, {len(self.actions)} states)"


def search_policy(
    task: TranslatedTask, *, work: float, fallback: TaskPlanner[TranslatedTask], time_limit: float
) -> Policy:
    """Search for a policy, or a proof that there is none.

    Args:
        task: the task.
        work: largest number of rule evaluations of the core's search for each plan.
        fallback: planner of tasks for which the core finds no plan.
        time_limit: time limit [s].

    Raises:
        TaskPlannerError: if the fallback cannot be run or fails, or a plan does not reach the goal.
    """
    if not task.is_complete:
        return _end(task, TaskPlanStatus.LIMIT, "the translation ran out of time or memory")
    try:
        with time_limits.time_limit(time_limit):
            return _search(task, work, fallback)
    except TimeLimitError:
        return _end(task, TaskPlanStatus.LIMIT, "no policy was found within the time given")


def _search(task: TranslatedTask, work: float, fallback: TaskPlanner[TranslatedTask]) -> Policy:
    source = TaskPlanSource(task, work=work, fallback=fallback)
    start = source.values(task.problem.init)
    plan = source.plan(start)
    if plan is not None:
        steps = tuple(source.actions[number] for number in plan)
        validation = validate_task_plan(task.problem, steps)
        if not validation.is_valid:
            message = f"the plan is not valid: {validation.message}"
            raise TaskPlannerError(message, command=(), output="")
        end = _end(task, TaskPlanStatus.SOLVED, "a plan was found")
        result = replace(end.result, steps=steps, cost=validation.cost)
        return replace(end, result=result, actions=source.policy(start, plan))
    if not source.is_unsolvable(start):
        return _end(task, TaskPlanStatus.LIMIT, "no policy was found within the work limits")
    if not source.defeats:
        return _end(task, TaskPlanStatus.UNSOLVABLE, "there is no plan")
    return _explain(task, source, work, fallback)


def _explain(
    task: TranslatedTask, source: TaskPlanSource, work: float, fallback: TaskPlanner[TranslatedTask]
) -> Policy:
    """Return the proof that the world defeats every plan, with the actions that do."""
    start = source.values(task.problem.init)

    def find_plan(names: Sequence[str]) -> tuple[TaskPlanSource, tuple[int, ...] | None]:
        operators = [op for op in task.uncontrollable if op.name.split()[0] in names]
        other = TaskPlanSource(
            replace(task, uncontrollable=tuple(operators)), work=work, fallback=fallback
        )
        return other, other.plan(start)

    names = tuple(dict.fromkeys(defeat.action.name for defeat in source.defeats))
    for name in names:
        other, plan = find_plan([name])
        if plan is None and other.is_unsolvable(start):
            names = (name,)
            break
    unhindered, plan = find_plan(())
    place = _find_defeat(unhindered, plan or (), source.defeats, names)
    listed = " and ".join(f"'{name}'" for name in names)
    subject = (
        f"the uncontrollable action {listed} defeats"
        if len(names) == 1
        else f"the uncontrollable actions {listed} defeat"
    )
    end = _end(task, TaskPlanStatus.UNSOLVABLE, f"{subject} every plan{place}")
    return replace(end, defeating=names)


def _find_defeat(
    source: TaskPlanSource, plan: Sequence[int], defeats: Sequence[Defeat], names: Sequence[str]
) -> str:
    """Return the first place of a plan where a defeat can happen, as the end of a sentence."""
    values, previous = source.values(source.task.problem.init), "at the start"
    for operator in plan:
        for defeat in defeats:
            if defeat.action.name in names and all(values[v] == x for v, x in defeat.context):
                return f"; {defeat.action} can happen {previous}, and there is no plan after it"
        values, previous = source.apply(operator, values), f"after {source.actions[operator]}"
    return ""


def _end(task: TranslatedTask, status: TaskPlanStatus, message: str) -> Policy:
    """Return a policy without actions."""
    statistics = TaskPlanStatistics(operators=len(task.operators), facts=task.fact_count)
    return Policy(TaskPlanResult(status, message=message, statistics=statistics), task.problem)
