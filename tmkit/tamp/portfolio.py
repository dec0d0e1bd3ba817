"""Portfolios: several seeds and settings for one problem, over several processes.

The settings are in order of preference, and the answer is that of the first *in order* that has
one, be it a plan or a proof that there is none. This is what trying one after the other would give,
byte for byte (:mod:`tmkit._support.job_pool`). Scenes travel to the workers as pickles. Back come
only actions and segments, from which the scene versions follow as they do when a plan file is read;
so a plan shares its scenes with the one that the caller holds.

Invariants: time limits are those of single entries: an entry ends where it would end alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tmkit._support.job_pool import first_in_order
from tmkit._support.results import Result
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans.values import Plan, PlanStep
from tmkit.spatial.plain import read_only
from tmkit.tamp.diagnosis.diagnosis import PlanStatus
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.progress import (
    ImprovementProgress,
    PlanningProgress,
    PortfolioImprovement,
    PortfolioProgress,
)
from tmkit.tamp.result import PlanResult, PlanStatistics
from tmkit.tamp.seed_run import run_seed, with_convex_meshes


@dataclass(frozen=True, eq=False)
class PortfolioResult(Result):
    """The answer of a portfolio.

    Attributes:
        options: the options of all entries, in order.
        results: the answers of the first entries, in order, up to the one that decides; all when
            none does.
    """

    options: tuple[PlanningOptions, ...]
    results: tuple[PlanResult, ...]

    @property
    def result(self) -> PlanResult:
        """The answer: that of the entry that decides, or of the last one."""
        return self.results[-1]

    @property
    def entry(self) -> int | None:
        """The number of the entry that decides, from 0; None when none does."""
        return len(self.results) - 1 if _decides(self.result) else None

    @property
    def plan(self) -> Plan | None:
        """The plan, or None."""
        return self.result.plan

    @property
    def status(self) -> PlanStatus:
        """How planning ended."""
        return self.result.status

    @property
    def statistics(self) -> PlanStatistics:
        """What that entry took."""
        return self.result.statistics

    @property
    def is_solved(self) -> bool:
        """Whether there is a plan."""
        return self.result.is_solved

    @property
    def explanation(self) -> str:
        """The answer in words."""
        if self.entry is None and len(self.results) > 1:
            return (
                f"None of {len(self.results)} entries has a plan. Of the last:"
                f" {self.result.explanation}"
            )
        return self.result.explanation

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the plan as plain values, for programs."""
        answer = {**self.result.to_dict(), "explanation": self.explanation}
        entries = [
            {
                "seed": options.seed,
                "status": result.status.value,
                "seconds": result.statistics.total_seconds,
            }
            for options, result in zip(self.options, self.results, strict=False)
        ]
        return {**answer, "entry": self.entry, "entries": entries}

    def __repr__(self) -> str:
        decided = "none decides" if self.entry is None else f"entry {self.entry} decides"
        return f"PortfolioResult({self.status.value}, {decided} of {len(self.options)})"


def _decides(result: PlanResult) -> bool:
    return result.status is not PlanStatus.NO_PLAN_WITHIN_LIMITS


def plan_portfolio(
    problem: PlanningProblem,
    options: Sequence[PlanningOptions | int],
    *,
    workers: int = 2,
    on_progress: Callable[[PortfolioProgress], None] | None = None,
) -> PortfolioResult:
    """Plan with several seeds and options at a time.

    Args:
        problem: the problem; a domain built in Python needs its semantics in a module, where other
            processes find the class.
        options: the entries to try, best first; a number is the default options with that seed. An
            entry of several seeds counts as several entries.
        workers: processes that try entries at a time; with 1 all is done in this process.
        on_progress: called with the progress of each entry, and with its first plan and each better
            one (:class:`PortfolioImprovement`) if it improves them. What it raises ends all entries
            and reaches the caller.

    Returns:
        The result of the first entry, in order, that has a plan or a proof that there is none. It
        does not depend on ``workers``, nor on what runs beside, unless time limits do.

    Raises:
        ConfigurationError: no options, less than one worker, or options that cannot be sent to
            another process.
        WorkerError: a process was killed or broke.
        TmkitError: what :func:`tmkit.plan` raises, by an entry before which none decides.
    """
    wanted = (
        entry if isinstance(entry, PlanningOptions) else PlanningOptions(seed=entry)
        for entry in options
    )
    entries = tuple(single for entry in wanted for single in entry.each_seed())
    if not entries:
        raise ConfigurationError("options must have at least one entry")
    is_remote = PlanningOptions(workers=workers).workers > 1 and len(entries) > 1
    if is_remote and isinstance(problem.domain, PythonDomain):
        _require_in_module(problem.domain)
    problem = with_convex_meshes(problem)  # before plans that come back are given its scene
    jobs = [_Entry(problem, entry, is_remote) for entry in entries]

    def tell(number: int, progress: PlanningProgress) -> None:
        if on_progress is not None:
            kind = (
                PortfolioImprovement
                if isinstance(progress, ImprovementProgress)
                else PortfolioProgress
            )
            if isinstance(progress, ImprovementProgress):
                progress = replace(progress, plan=_with_scenes(progress.plan, problem.scene))
            told = {field.name: getattr(progress, field.name) for field in fields(progress)}
            on_progress(kind(**told, entry=number, entries=len(entries)))

    results = first_in_order(
        _plan_entry,
        jobs,
        decides=_decides,
        processes=workers,
        on_message=tell,
        name=lambda number: f"entry {number} (seed {entries[number].seed})",
    )
    made = (
        (
            result
            if result.plan is None
            else replace(result, plan=_with_scenes(result.plan, problem.scene))
        )
        for result in results
    )
    return PortfolioResult(entries, tuple(made))


def _require_in_module(domain: PythonDomain) -> None:
    """Refuse semantics that another process does not find by their name."""
    name, module = domain.semantics.__qualname__, domain.semantics.__module__
    where = "in the script that was started" if module == "__main__" else "inside a function"
    if module == "__main__" or "<locals>" in name:
        what = f"the semantics '{name}' of domain '{domain.domain.name}' are defined {where}"
        raise ConfigurationError(
            f"{what}, where no other process finds them: put them into a module, or use one process"
        )


@dataclass(frozen=True, eq=False)
class _Entry:
    """All that one entry needs."""

    problem: PlanningProblem
    options: PlanningOptions
    is_remote: bool


def _plan_entry(entry: _Entry, tell: Callable[[PlanningProgress], None]) -> PlanResult:
    if not entry.is_remote:
        return run_seed(entry.problem, entry.options, on_progress=tell)
    result = run_seed(
        entry.problem, entry.options, on_progress=lambda progress: tell(_portable(progress))
    )
    result = replace(result, diagnosis=result.diagnosis.without_examples())
    return result if result.plan is None else replace(result, plan=_without_scenes(result.plan))


def _portable(progress: PlanningProgress) -> PlanningProgress:
    if not isinstance(progress, ImprovementProgress):
        return progress
    return replace(progress, plan=_without_scenes(progress.plan))


_NO_SCENE = SceneGraph(root=None)


def _without_scenes(plan: Plan) -> Plan:
    """Return a plan without scenes, since they follow from the first."""
    return replace(
        plan, scene=_NO_SCENE, steps=tuple(replace(step, scene=_NO_SCENE) for step in plan.steps)
    )


def _with_scenes(plan: Plan, scene: SceneGraph) -> Plan:
    """Return the plan with the scene versions that follow from the first."""
    if plan.scene is scene:
        return plan
    steps: list[PlanStep] = []
    q = read_only(plan.q)
    at_scene, at_q = scene, q
    for step in plan.steps:
        segments = tuple(
            replace(segment, path=read_only(segment.path)) for segment in step.segments
        )
        at_scene, at_q = replace(step, segments=segments).end(at_scene, at_q)
        steps.append(replace(step, segments=segments, scene=at_scene, q=read_only(step.q)))
    return replace(plan, scene=scene, q=q, steps=tuple(steps))
