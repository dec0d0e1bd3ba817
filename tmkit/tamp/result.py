"""Result of planning: a plan, a proof of infeasibility, or neither.

A result without a plan is not an error. :class:`PlanResult` describes it by a status, a text and
data (:class:`tmkit.tamp.Diagnosis`), and has statistics.

There is a plan if and only if the status is ``SOLVED``. Times are not part of equality, and no
other value depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tmkit._support.results import Displayed, Result
from tmkit.plans.values import Plan
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, PlanStatus
from tmkit.tamp.search_tree import SearchTree
from tmkit.tamp.streams.records import Trial


@dataclass(frozen=True)
class PlanStatistics(Displayed):
    """Counts and times of planning. Times are not part of equality.

    Attributes:
        skeletons: number of tried task plans from the start.
        attempts: number of tried motions of single actions, in refinement and in transfers.
        failures: failures as (action, cause, count), most frequent first.
        constraints: number of learned constraints.
        task_seconds: time of the task planner [s].
        motion_seconds: time of refinement [s].
        total_seconds: total time [s].
        phase_seconds: time by stage
            (:class:`tmkit.manipulation.actions.timing_breakdown.PlanningStage`), and
            ``bookkeeping`` for the remaining time [s].
        task_planner: name of the task planner.
        task_search: searches of the task planner that found task plans, if it has several,
            separated by commas: ``core, fast_downward``.
        makespan: end time of the last step of the schedule; 0 without ``arms_at_once`` [s].
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
    """Result of the planner.

    A result contains times, so it is equal only to itself. Its plan is compared by content.

    Attributes:
        status: planning outcome.
        plan: the plan, or None.
        explanation: text with the outcome, the attempts and the causes of failures.
        statistics: counts and times.
        diagnosis: failures with their counts and causes, proofs and suggestions, as data.
        search_trees: scene versions that the search reached, with the relevant objects and with all
            objects, if the option ``record_tree`` is set.
        trials: attempts with the values of streams (:mod:`tmkit.tamp.streams`), in order.
    """

    status: PlanStatus
    plan: Plan | None
    explanation: str
    statistics: PlanStatistics
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    search_trees: tuple[SearchTree, ...] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def is_solved(self) -> bool:
        """True if there is a plan."""
        return self.status is PlanStatus.SOLVED

    def to_dict(self) -> dict[str, Any]:
        """Return the result without the plan as plain values, for programs."""
        actions = () if self.plan is None else self.plan.actions
        document = {
            "status": self.status.value,
            "explanation": self.explanation,
            "actions": [str(action) for action in actions],
            **self.statistics.to_dict(),
            "diagnosis": self.diagnosis.to_dict(),
        }
        if self.search_trees:
            document["search_trees"] = [tree.to_dict() for tree in self.search_trees]
        return document

    def __repr__(self) -> str:
        steps = f", {len(self.plan.steps)} steps" if self.plan is not None else ""
        return f"PlanResult({self.status.value}{steps}, {self.statistics.attempts} attempts)"
