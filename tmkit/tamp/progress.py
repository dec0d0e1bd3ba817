"""Progress of planning and validation; see :mod:`tmkit._support.progress`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmkit._support.progress import Progress

if TYPE_CHECKING:
    from tmkit.plans.values import Plan


@dataclass(frozen=True)
class PlanningProgress(Progress):
    """What the planner is doing.

    Attributes:
        phase: ``task`` while the task planner runs, ``motion`` while a skeleton is refined,
            ``suggestions`` while it is looked for what would help, when there is no plan.
        step: actions refined so far; it falls when the search goes back.
        steps: actions of the skeleton; 0 while the task planner runs. Of ``suggestions``, the most
            replans.
        skeleton: number of the skeleton, from 1.
        attempts: motions tried so far.
        best: the cost of the best plan so far, in words; empty before there is one.
    """

    skeleton: int = 0
    attempts: int = 0
    best: str = ""

    def __str__(self) -> str:
        if self.phase == "suggestions":
            return (
                f"planning, {self.seconds:.1f} s: no plan; looking for what would help,"
                f" {self.step}/{self.steps}"
            )
        doing = (
            "looking for actions" if self.phase == "task" else f"motion {self.step}/{self.steps}"
        )
        doing += f", attempt {self.attempts}" if self.attempts else ""
        best = f"; best {self.best}" if self.best else ""
        return f"planning, {self.seconds:.1f} s: task plan {self.skeleton}, {doing}{best}"


@dataclass(frozen=True)
class ImprovementProgress(PlanningProgress):
    """A plan was found, the first or a better one.

    Attributes:
        phase: ``improve``.
        step: iterations done.
        steps: how many there will be; 0 for as many as the time allows.
        cost: what the plan costs by the option ``cost``; by default what its actions cost.
        path_length: joint-space length of its motions, in radians.
        plan: the plan.
    """

    cost: float = 0.0
    path_length: float = 0.0
    plan: Plan = None  # type: ignore[assignment]  # always given; the fields before it have defaults

    def __str__(self) -> str:
        return f"improving, {self.seconds:.1f} s: best {self.best}, after {self.step} iterations"


@dataclass(frozen=True)
class ValidationProgress(Progress):
    """What the checker is doing.

    Attributes:
        phase: ``check``.
        step: actions checked so far.
        action: the action that is checked next; empty at the end.
    """

    action: str = ""

    def __str__(self) -> str:
        return (
            f"checking, {self.seconds:.1f} s: action {min(self.step + 1, self.steps)} of"
            f" {self.steps} {self.action}"
        )


@dataclass(frozen=True)
class PortfolioProgress(PlanningProgress):
    """What one entry of a portfolio is doing.

    Attributes:
        seconds: since the entry began.
        entry: the number of the entry, from 0.
        entries: how many there are.
    """

    entry: int = 0
    entries: int = 0

    def __str__(self) -> str:
        return f"entry {self.entry + 1} of {self.entries}: {super().__str__()}"


@dataclass(frozen=True)
class PortfolioImprovement(PortfolioProgress, ImprovementProgress):
    """An entry of a portfolio found a plan, the first or a better one."""
