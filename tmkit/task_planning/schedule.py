"""Schedules of plans with earliest start times, and removal of redundant actions.

Schedule: an action waits for the end of an earlier one if one of them changes a fact that the other
needs or changes. Other actions may overlap. Conditions and effects are compared as written,
independent of the state. An action may therefore wait longer than necessary, never shorter.

Guarantees: dependent actions keep their order; the schedule is deterministic.

Redundant actions: each step costs a motion. From the first step on, an action is omitted together
with all actions that are then inapplicable. They are removed if the goal is still reached (*action
elimination*: Nakhost and Müller, "Action elimination and plan neighborhood graph search", ICAPS
2010).

Guarantees: the result is an executable subsequence of the plan that reaches the goal. It is the
plan itself if it has no redundant action, and no action of the result is redundant. A pass takes
O(n^2) executions of actions. Passes are repeated until one removes nothing, which is usually the
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.pddl.validation import SEPARATION, TimedAction, action_timing, interference


def schedule(problem: Problem, steps: Sequence[GroundAction]) -> tuple[TimedAction, ...]:
    """Return the steps of a valid plan with their earliest start times; O(n^2) for n steps.

    Args:
        problem: the task.
        steps: the plan. Actions without a duration have the duration 0.

    Raises:
        TaskError: if a step is unknown to the domain, or its duration has no value or is negative.
    """
    durations = [action_timing(problem, step)[2] for step in steps]
    timed: list[TimedAction] = []
    for step, duration, before in zip(
        steps, durations, interference(problem.domain, steps), strict=True
    ):
        begins = max((timed[index].end + SEPARATION for index in before), default=0.0)
        timed.append(TimedAction(round(begins, 6), step, duration))
    return tuple(timed)


def makespan(timed: Iterable[TimedAction]) -> float:
    """Return the end time of the last action.

    Args:
        timed: the actions.
    """
    return max((action.end for action in timed), default=0.0)


def without_redundant_steps(
    problem: Problem,
    steps: Sequence[GroundAction],
    *,
    is_allowed: Callable[[GroundAction, State], bool] | None = None,
) -> tuple[GroundAction, ...]:
    """Return a plan without redundant actions; ``is_allowed`` adds further preconditions."""

    def filter_executable(
        state: State, steps: Sequence[GroundAction]
    ) -> tuple[GroundAction, ...] | None:
        """Return the steps that are applicable in turn, or None if they miss the goal."""
        executable: list[GroundAction] = []
        for action in steps:
            if (is_allowed is None or is_allowed(action, state)) and not problem.why_not(
                state, action
            ):
                state = problem.apply(state, action)
                executable.append(action)
        return tuple(executable) if problem.holds(state, problem.goal) else None

    plan, previous = tuple(steps), None
    while plan != previous:
        previous, state, index = plan, problem.init, 0
        while index < len(plan):
            shorter = filter_executable(state, plan[index + 1 :])
            if shorter is not None:
                plan = (*plan[:index], *shorter)
            else:
                state = problem.apply(state, plan[index])
                index += 1
    return plan
