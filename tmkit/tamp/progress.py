"""Progress of planning and validation; see :mod:`tmkit._support.progress`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmkit._support.progress import Progress

if TYPE_CHECKING:
    from tmkit.plans.values import Plan


@dataclass(frozen=True)
class PlanningProgress(Progress):
    """Progress of planning.

    Attributes:
        phase: ``task`` while the task planner runs, ``motion`` while a skeleton is refined, or
            ``suggestions`` while changes of a problem without a plan are tried.
        step: number of refined actions, which decreases on backtracking. In ``suggestions``, the
            number of replans.
        steps: number of actions of the skeleton; 0 while the task planner runs. In
            ``suggestions``, the largest number of replans.
        skeleton: number of the skeleton, from 1.
        attempts: number of tried motions.
        best: cost of the best plan, as text; empty without a plan.
    """

    skeleton: int = 0
    attempts: int = 0
    best: str = ""

    def __str__(self) -> str:
        if self.phase == "suggestions":
            activity = f"no plan; trying suggestions, {self.step}/{self.steps}"
            return f"planning, {self.seconds:.1f} s: {activity}"
        activity = f"motion {self.step}/{self.steps}"
        if self.phase == "task":
            activity = "searching for actions"
        if self.attempts:
            activity += f", attempt {self.attempts}"
        best = f"; best {self.best}" if self.best else ""
        return f"planning, {self.seconds:.1f} s: task plan {self.skeleton}, {activity}{best}"


@dataclass(frozen=True)
class ImprovementProgress(PlanningProgress):
    """The first plan, or a better one.

    Attributes:
        phase: ``improve``.
        step: number of completed iterations.
        steps: total number of iterations; 0 if only the time limits them.
        cost: cost of the plan by the option ``cost``.
        path_length: joint-space length of its motions [rad].
        plan: the plan.
    """

    cost: float = 0.0
    path_length: float = 0.0
    plan: Plan = None  # type: ignore[assignment]  # always given; the fields before it have defaults

    def __str__(self) -> str:
        return f"improving, {self.seconds:.1f} s: best {self.best}, after {self.step} iterations"


@dataclass(frozen=True)
class ValidationProgress(Progress):
    """Progress of plan validation.

    Attributes:
        phase: ``check``.
        step: number of checked actions.
        action: action that is checked next; empty at the end.
    """

    action: str = ""

    def __str__(self) -> str:
        return (
            f"checking, {self.seconds:.1f} s: action {min(self.step + 1, self.steps)} of"
            f" {self.steps} {self.action}"
        )


@dataclass(frozen=True)
class PortfolioProgress(PlanningProgress):
    """Progress of one entry of a portfolio.

    Attributes:
        seconds: time since the start of the entry [s].
        entry: index of the entry, from 0.
        entries: number of entries.
    """

    entry: int = 0
    entries: int = 0

    def __str__(self) -> str:
        return f"entry {self.entry + 1} of {self.entries}: {super().__str__()}"


@dataclass(frozen=True)
class PortfolioImprovement(PortfolioProgress, ImprovementProgress):
    """The first plan of a portfolio entry, or a better one."""
