"""A plan laid out in time: each action begins as soon as those before it let it.

The idea: of two actions, the later one waits for the earlier one's end if one of them changes what the other needs or
changes. All others may overlap. Conditions and effects count as they are written, whatever the state, so an action
waits rather too often than too seldom.

Invariants: actions that depend on each other keep their order; the schedule is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.partial_order import interference
from tmkit.pddl.schedules import SEPARATION, TimedAction, action_timing


def schedule(problem: Problem, steps: Sequence[GroundAction]) -> tuple[TimedAction, ...]:
    """Return the steps of a valid plan with times at which they may begin; O(n^2) for n steps.

    Args:
        problem: the task.
        steps: the plan. Actions without a duration take no time.

    Raises:
        TaskError: a step is no action of the domain, or its duration has no value or is below zero.
    """
    durations = [action_timing(problem, step)[2] for step in steps]
    done: list[TimedAction] = []
    for step, duration, before in zip(steps, durations, interference(problem.domain, steps), strict=True):
        begins = max((done[index].end + SEPARATION for index in before), default=0.0)
        done.append(TimedAction(round(begins, 6), step, duration))
    return tuple(done)


def makespan(timed: Iterable[TimedAction]) -> float:
    """Return the time at which the last action ends.

    Args:
        timed: the actions.
    """
    return max((action.end for action in timed), default=0.0)
