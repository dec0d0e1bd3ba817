"""A plan laid out in time: each action begins as soon as those before it let it.

The idea: of two actions, the later one waits for the earlier one's end if one of them changes what
the other needs or changes. All others may overlap. Conditions and effects count as they are
written, whatever the state, so an action waits rather too often than too seldom.

Invariants: actions that depend on each other keep their order; the schedule is deterministic.

Plans without actions that serve nothing. Each step costs a motion. Step by step from the front, an
action is omitted with all that can no longer be done without it. Where the goal is still reached,
they stay out (*action elimination*: Nakhost and Müller, "Action elimination and plan neighborhood
graph search", ICAPS 2010).

Invariants: what is returned is a subsequence of the plan, executable and reaching the goal; it is
the plan itself when nothing can be omitted. No action of it can be omitted with all that can no
longer be done without it. O(n^2) executions of actions a pass; passes go on until one removes
nothing, mostly the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.pddl.validation import SEPARATION, TimedAction, action_timing, interference


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
    for step, duration, before in zip(
        steps, durations, interference(problem.domain, steps), strict=True
    ):
        begins = max((done[index].end + SEPARATION for index in before), default=0.0)
        done.append(TimedAction(round(begins, 6), step, duration))
    return tuple(done)


def makespan(timed: Iterable[TimedAction]) -> float:
    """Return the time at which the last action ends.

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
    """Return a plan without the actions that its goal does not need; ``is_allowed`` has further constraints."""

    def executed(state: State, steps: Sequence[GroundAction]) -> tuple[GroundAction, ...] | None:
        """Return the steps that can be done one after the other, or None when they do not reach the goal."""
        done: list[GroundAction] = []
        for action in steps:
            if (is_allowed is None or is_allowed(action, state)) and not problem.why_not(
                state, action
            ):
                state = problem.apply(state, action)
                done.append(action)
        return tuple(done) if problem.holds(state, problem.goal) else None

    kept, left = tuple(steps), None
    while kept != left:
        left, state, index = kept, problem.init, 0
        while index < len(kept):
            shorter = executed(state, kept[index + 1 :])
            if shorter is not None:
                kept = (*kept[:index], *shorter)
            else:
                state = problem.apply(state, kept[index])
                index += 1
    return kept
