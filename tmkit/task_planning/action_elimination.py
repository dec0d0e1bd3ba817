"""Plans without actions that serve nothing.

Each step costs a motion. Step by step from the front, an action is omitted with all that can no longer be done without
it; where the goal is still reached, they stay out (*action elimination*: Nakhost and Müller, "Action elimination and
plan neighborhood graph search", ICAPS 2010).

Invariants: what is returned is a subsequence of the plan, executable and reaching the goal; it is the plan itself when
nothing can be omitted. No action of it can be omitted with all that can no longer be done without it. O(n^2)
executions of actions a pass; passes go on until one removes nothing, mostly the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State


def without_redundant_steps(
    problem: Problem, steps: Sequence[GroundAction], *, is_allowed: Callable[[GroundAction, State], bool] | None = None
) -> tuple[GroundAction, ...]:
    """Return a plan without the actions that its goal does not need.

    Args:
        is_allowed: tells whether an action may be done in a state, for constraints that the problem does not have; all
            may by default.
    """

    def executed(state: State, steps: Sequence[GroundAction]) -> tuple[GroundAction, ...] | None:
        """Return the steps that can be done one after the other, or None when they do not reach the goal."""
        done: list[GroundAction] = []
        for action in steps:
            if (is_allowed is None or is_allowed(action, state)) and not problem.why_not(state, action):
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
