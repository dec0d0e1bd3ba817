"""Explanations: the answer of the planner in words.

When there is no plan, the user learns what was tried, which action failed how often and why, and what that means: a
task without any sequence of actions is impossible by its words alone; one whose motions were not found may still be
possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tmkit.planner.refinement_tree import FailureLog
from tmkit.planner.refutations import Refutation
from tmkit.planner.values import Plan, PlanStatistics, PlanStatus

__all__ = ["explain"]

_MOST_CAUSES = 3


def explain(
    status: PlanStatus,
    statistics: PlanStatistics,
    log: FailureLog,
    *,
    goal: str,
    plan: Plan | None,
    refutations: Sequence[Refutation] = (),
) -> str:
    """Return the answer in a paragraph.

    Args:
        status: how planning ended.
        statistics: what it took.
        log: what failed.
        goal: the goal in PDDL.
        plan: the plan, when there is one.
        refutations: why the goal is impossible, when the domain proved it.
    """
    if status is PlanStatus.SOLVED and plan is not None:
        if not plan.steps:
            return f"The goal {goal} holds already, so the plan is empty."
        steps = len(plan.steps)
        found = f"{steps} actions with their motions" if steps != 1 else "1 action with its motions"
        tried = f"{statistics.skeletons} task plan{'s' if statistics.skeletons != 1 else ''}"
        return f"Found {found} for {goal}, after {tried}."
    if refutations:
        reasons = "; and ".join(refutation.cause for refutation in refutations[:_MOST_CAUSES])
        return f"No plan leads to {goal}, whatever the actions and motions: {reasons}."
    if status is PlanStatus.PROVED_UNSOLVABLE:
        return (
            f"No sequence of the domain's actions leads from the state of the scene to {goal}, whatever the motions: "
            "the goal contradicts itself, or asks for a fact that no action brings about."
        )
    if not statistics.skeletons:
        return f"The task planner found no sequence of actions for {goal} within the limits; there may be one."
    text = (
        f"{statistics.skeletons} task plan{'s were' if statistics.skeletons != 1 else ' was'} tried for {goal}, with "
        f"{statistics.attempts} attempt{'s' if statistics.attempts != 1 else ''} at motions, "
        "and none could be carried out. "
        "This is no proof that there is none."
    )
    causes = [
        f"{action} failed {count} time{'s' if count != 1 else ''}, {cause}"
        for action, cause, count in statistics.failures[:_MOST_CAUSES]
    ]
    if causes:
        text += " Most often " + "; ".join(causes) + "."
    blockers = [
        f"{action}: '{pair[0]}' and '{pair[1]}'"
        for action, pair in sorted(_most_in_the_way(log).items())[:_MOST_CAUSES]
    ]
    if blockers:
        text += f" Frames most in the way: {'; '.join(blockers)}."
    return text


def _most_in_the_way(log: FailureLog) -> dict[str, tuple[str, str]]:
    """Return by action the pair of frames that was most often the first in the way."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for (action, cause), record in log.records.items():
        if record.failure.pairs:
            counts.setdefault(action, Counter())[record.failure.pairs[0]] += log.counts[action, cause]
    return {action: counted.most_common(1)[0][0] for action, counted in counts.items()}
