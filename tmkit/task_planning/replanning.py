"""Actions with several outcomes: plan as if they could be chosen, act, and plan again when it came otherwise.

An action whose effect is ``oneof`` several is read as one action for each outcome (*all-outcomes determinisation*), so
a plan says which outcome it hopes for. After each action the state is asked for; where it is not the one that was hoped
for, the rest is planned anew from there (S. Yoon, A. Fern, R. Givan, "FF-Replan", ICAPS 2007).

It does not look ahead: where a hoped-for outcome stays out, the goal may be out of reach. That there is no plan is
proved: not even with the best of luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tmkit._support.results import Result
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.task_planning.encoding import copy_of
from tmkit.task_planning.fast_downward import FastDownward
from tmkit.task_planning.protocol import MovableTask, TaskPlanner, TaskPlanStatus


@dataclass(frozen=True)
class TaskExecution(Result):
    """What was done, and where it led.

    Attributes:
        status: ``SOLVED`` when the goal holds; ``UNSOLVABLE`` when it is proved that it cannot be reached any more.
        actions: what was done, by the names that the domain states.
        states: the first state, and that after each action.
        plans: how often was planned.
        message: why it ended, in words.
    """

    status: TaskPlanStatus
    actions: tuple[GroundAction, ...]
    states: tuple[State, ...]
    plans: int
    message: str

    def __repr__(self) -> str:
        return f"TaskExecution({self.status.value}, {len(self.actions)} actions, {self.plans} plans)"


def possible_states(problem: Problem, state: State, action: GroundAction) -> tuple[State, ...]:
    """Return the states to which an action may lead, without repetition, in the order of its outcomes.

    Args:
        problem: the task.
        state: the state before.
        action: an applicable action, or one of its outcomes.

    Raises:
        TaskError: the action is not applicable, or not one of the domain.
    """
    outcomes = (GroundAction(outcome.name, action.arguments) for outcome in problem.domain.outcomes(action.name))
    return tuple(dict.fromkeys(problem.apply(state, outcome) for outcome in outcomes))


def execute_with_replanning(
    problem: Problem, act: Callable[[State, GroundAction], State], *, planner: TaskPlanner[Any] | None = None,
    max_actions: int = 1000, time_limit: float = 60.0,
) -> TaskExecution:  # fmt: skip
    """Plan, act, and plan again when an outcome is not the one that was hoped for, until the goal holds.

    Args:
        problem: the task.
        act: does an action, by its stated name, in a state, and returns the state afterwards.
        planner: finds plans; :class:`FastDownward` by default.
        max_actions: after which to give up.
        time_limit: seconds for all plans together.

    Raises:
        TaskPlannerError: the planner broke.
        TaskError: a state has facts that the problem does not know.
    """
    deadline, domain = time.monotonic() + time_limit, problem.domain
    planner = planner or FastDownward()
    states, actions, plans = [problem.init], list[GroundAction](), 0

    def ended(status: TaskPlanStatus, message: str) -> TaskExecution:
        return TaskExecution(status, tuple(actions), tuple(states), plans, message)

    task: Any = None
    while True:
        moved = task.at_state(states[-1]) if isinstance(task, MovableTask) else None
        task = moved or planner.prepare(copy_of(problem, init=states[-1]), time_limit=deadline - time.monotonic())
        result = planner.search(task, time_limit=deadline - time.monotonic())
        plans += 1
        if not result.is_solved:
            return ended(result.status, result.message)
        for step in result.steps:
            if len(actions) >= max_actions:
                return ended(TaskPlanStatus.LIMIT, f"the goal does not hold after {max_actions} actions")
            hoped = problem.apply(states[-1], step)
            stated = GroundAction(domain.outcomes(step.name)[0].outcome_of or step.name, step.arguments)
            actions.append(stated)
            states.append(act(states[-1], stated))
            if states[-1] != hoped:
                break
        else:
            return ended(TaskPlanStatus.SOLVED, "the goal holds")
