"""Result of planning: a plan, a proof that there is none, or neither.

That there is no plan is an answer, not an error. :class:`PlanResult` has it as a status, in words,
and as data (:class:`tmkit.tamp.Diagnosis`); what it took stands beside it.

Invariants: there is a plan just when the status is ``SOLVED``; times are no part of equality, and
nothing depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tmkit._support.results import Displayed, Result
from tmkit.plans.values import Plan
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, PlanStatus
from tmkit.tamp.search_tree import SearchTree


@dataclass(frozen=True)
class PlanStatistics(Displayed):
    """What planning took. Times are no part of equality.

    Attributes:
        skeletons: task plans from the start that were tried.
        attempts: motions of single actions that were tried, in refinement and in transfers.
        failures: how often each action failed and why: (action, cause, count), most frequent first.
        constraints: number of learned constraints.
        task_seconds: time of the task planner.
        motion_seconds: time of refinement.
        total_seconds: time of all.
        phase_seconds: the same by phase
            (:class:`tmkit.manipulation.actions.timing_breakdown.PlanningStage`), and
            ``bookkeeping``: the rest.
        task_planner: the name of the task planner.
        task_search: its searches that were used, where it has several, with a comma between:
            ``core, fast_downward``.
        makespan: seconds until the last step of a schedule ends; 0 without the option
            ``arms_at_once``.
    """

    skeletons: int = 0
    attempts: int = 0
    failures: tuple[tuple[str, str, int], ...] = ()
    constraints: int = 0
    task_seconds: float = field(default=0.0, compare=False)
    motion_seconds: float = field(default=0.0, compare=False)
    total_seconds: float = field(default=0.0, compare=False)
    phase_seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    task_planner: str = ""
    task_search: str = ""
    makespan: float = 0.0


@dataclass(frozen=True, eq=False)
class PlanResult(Result):
    """The answer of the planner. A result has times, so it equals itself only; its plan is compared by content.

    Attributes:
        status: how planning ended.
        plan: the plan, or None.
        explanation: the answer in words: what was tried, and why it failed where it did.
        statistics: what it took.
        diagnosis: what failed, how often and why, what is proved, and what would help, as data.
        search_trees: the versions of the scene that the search reached, with the useful objects and
            with all, if the option ``record_tree`` is set.
    """

    status: PlanStatus
    plan: Plan | None
    explanation: str
    statistics: PlanStatistics
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    search_trees: tuple[SearchTree, ...] = ()

    @property
    def is_solved(self) -> bool:
        """Whether there is a plan."""
        return self.status is PlanStatus.SOLVED

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the plan as plain values, for programs."""
        return {
            "status": self.status.value,
            "explanation": self.explanation,
            "actions": (
                [str(action) for action in self.plan.actions] if self.plan is not None else []
            ),
            **self.statistics.to_dict(),
            "diagnosis": self.diagnosis.to_dict(),
            **(
                {"search_trees": [tree.to_dict() for tree in self.search_trees]}
                if self.search_trees
                else {}
            ),
        }

    def __repr__(self) -> str:
        steps = f", {len(self.plan.steps)} steps" if self.plan is not None else ""
        return f"PlanResult({self.status.value}{steps}, {self.statistics.attempts} attempts)"
