"""Portfolio planning: several seeds and options for one problem, in several processes.

The entries are in order of preference. The result is that of the first entry *in order* with a plan
or a proof of infeasibility. It equals, byte for byte, the result of trying one entry after the
other (:mod:`tmkit._support.job_pool`).

Scenes are sent to the workers as pickles. The workers return only actions and segments, from which
the scene versions are computed, as for a plan file. A plan therefore shares its scenes with the
caller's problem.

Time limits apply to each entry, which ends as it would end alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tmkit._support.argument_errors import with_keyword_hints
from tmkit._support.job_pool import first_in_order
from tmkit._support.results import Result
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans.values import Plan, PlanStep
from tmkit.spatial.plain import read_only
from tmkit.tamp.diagnosis.diagnosis import PlanStatus
from tmkit.tamp.domains.loading import DomainSource, PythonDomain
from tmkit.tamp.domains.planning_domain import PlanningDomain
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
    """Result of a portfolio.

    Attributes:
        options: options of all entries, in order.
        results: results of the first entries, in order, up to the conclusive one; of all entries if
            none is conclusive. A result with a plan or a proof of infeasibility is conclusive.
    """

    options: tuple[PlanningOptions, ...]
    results: tuple[PlanResult, ...]

    @property
    def result(self) -> PlanResult:
        """Result of the conclusive entry, or of the last one."""
        return self.results[-1]

    @property
    def entry(self) -> int | None:
        """Index of the conclusive entry, from 0, or None."""
        return len(self.results) - 1 if _is_conclusive(self.result) else None

    @property
    def plan(self) -> Plan | None:
        """The plan, or None."""
        return self.result.plan

    @property
    def status(self) -> PlanStatus:
        """Planning outcome."""
        return self.result.status

    @property
    def statistics(self) -> PlanStatistics:
        """Counts and times of the entry."""
        return self.result.statistics

    @property
    def is_solved(self) -> bool:
        """True if there is a plan."""
        return self.result.is_solved

    @property
    def explanation(self) -> str:
        """Text with the outcome, the attempts and the causes of failures."""
        if self.entry is None and len(self.results) > 1:
            return (
                f"None of {len(self.results)} entries has a plan. Of the last:"
                f" {self.result.explanation}"
            )
        return self.result.explanation

    def to_dict(self) -> dict[str, Any]:
        """Return the result without the plan as plain values, for programs."""
        document = {**self.result.to_dict(), "explanation": self.explanation}
        entries = [
            {
                "seed": options.seed,
                "status": result.status.value,
                "seconds": result.statistics.total_seconds,
            }
            for options, result in zip(self.options, self.results, strict=False)
        ]
        return {**document, "entry": self.entry, "entries": entries}

    def __repr__(self) -> str:
        entry = "no entry" if self.entry is None else f"entry {self.entry}"
        return f"PortfolioResult({self.status.value}, {entry} of {len(self.options)})"


def _is_conclusive(result: PlanResult) -> bool:
    """Return whether a result has a plan or a proof of infeasibility."""
    return result.status is not PlanStatus.NO_PLAN_WITHIN_LIMITS


@with_keyword_hints
def plan_portfolio(
    problem: PlanningProblem,
    options: Sequence[PlanningOptions | int],
    *,
    workers: int = 2,
    on_progress: Callable[[PortfolioProgress], None] | None = None,
) -> PortfolioResult:
    """Plan a problem with several seeds and options in parallel.

    Args:
        problem: planning problem. The semantics of a domain built in Python must be a class of a
            module, which other processes can import.
        options: entries in order of preference. A number is a seed with default options. An entry
            with several seeds counts as several entries.
        workers: number of processes that run entries in parallel; 1 runs all in this process.
        on_progress: function that receives the progress of each entry, and each better plan as
            :class:`PortfolioImprovement`. An exception in it ends all entries and propagates.

    Returns:
        Result of the first entry, in order, with a plan or a proof of infeasibility. Without time
        limits, it does not depend on ``workers`` or on the load of the machine.

    Raises:
        ConfigurationError: if there are no options, less than one worker, or options that cannot be
            sent to another process.
        WorkerError: if a process is killed or breaks.
        TmkitError: if :func:`tmkit.plan` raises it for an entry, and no entry before is conclusive.
    """
    option_sets = (
        entry if isinstance(entry, PlanningOptions) else PlanningOptions(seed=entry)
        for entry in options
    )
    entries = tuple(entry for option_set in option_sets for entry in option_set.each_seed())
    if not entries:
        raise ConfigurationError("options must have at least one entry")
    is_remote = PlanningOptions(workers=workers).workers > 1 and len(entries) > 1
    if is_remote:
        _require_importable(problem.domain)
    problem = with_convex_meshes(problem)  # returned plans get the scene of this problem
    jobs = [_Entry(problem, entry, is_remote) for entry in entries]

    def report(number: int, progress: PlanningProgress) -> None:
        if on_progress is not None:
            on_progress(_entry_progress(progress, problem.scene, number, len(entries)))

    results = first_in_order(
        _plan_entry,
        jobs,
        decides=_is_conclusive,
        processes=workers,
        on_message=report,
        name=lambda number: f"entry {number} (seed {entries[number].seed})",
    )
    return PortfolioResult(entries, tuple(_restore(result, problem.scene) for result in results))


def _entry_progress(
    progress: PlanningProgress, scene: SceneGraph, entry: int, entries: int
) -> PortfolioProgress:
    """Return the progress of an entry, with the scenes of a plan.

    Args:
        progress: progress of the entry's planner.
        scene: scene of the problem.
        entry: index of the entry.
        entries: number of entries.
    """
    progress_type: type[PortfolioProgress] = PortfolioProgress
    if isinstance(progress, ImprovementProgress):
        progress_type = PortfolioImprovement
        progress = replace(progress, plan=_restore_scenes(progress.plan, scene))
    values = {field.name: getattr(progress, field.name) for field in fields(progress)}
    return progress_type(**values, entry=entry, entries=entries)


def _require_importable(domain: DomainSource) -> None:
    """Check that another process can load the domain.

    Raises:
        ConfigurationError: if the domain is loaded already, or its semantics are defined in the
            main script or in a function.
    """
    if isinstance(domain, PlanningDomain):
        raise ConfigurationError(
            f"the loaded domain '{domain.name}' cannot be sent to another process: give its name,"
            " or use one process"
        )
    if not isinstance(domain, PythonDomain):
        return
    name, module = domain.semantics.__qualname__, domain.semantics.__module__
    if module != "__main__" and "<locals>" not in name:
        return
    place = "in the main script" if module == "__main__" else "inside a function"
    raise ConfigurationError(
        f"the semantics '{name}' of domain '{domain.domain.name}' are defined {place}, where no"
        " other process finds them: put them into a module, or use one process"
    )


@dataclass(frozen=True, eq=False)
class _Entry:
    """Inputs of one entry.

    Attributes:
        problem: planning problem.
        options: options of a single seed.
        is_remote: whether another process runs the entry.
    """

    problem: PlanningProblem
    options: PlanningOptions
    is_remote: bool


def _plan_entry(entry: _Entry, report: Callable[[PlanningProgress], None]) -> PlanResult:
    """Plan one entry; return its result, which can be pickled if the entry is remote."""
    if not entry.is_remote:
        return run_seed(entry.problem, entry.options, on_progress=report)
    result = run_seed(
        entry.problem, entry.options, on_progress=lambda progress: report(_strip(progress))
    )
    result = replace(result, diagnosis=result.diagnosis.without_examples())
    return result if result.plan is None else replace(result, plan=_strip_scenes(result.plan))


def _strip(progress: PlanningProgress) -> PlanningProgress:
    """Return the progress without the scenes of its plan, if any."""
    if not isinstance(progress, ImprovementProgress):
        return progress
    return replace(progress, plan=_strip_scenes(progress.plan))


def _restore(result: PlanResult, scene: SceneGraph) -> PlanResult:
    """Return the result with the scenes of its plan, if any."""
    return (
        result if result.plan is None else replace(result, plan=_restore_scenes(result.plan, scene))
    )


_NO_SCENE = SceneGraph(root=None)
"""Scene in place of the scene versions of a plan from another process."""


def _strip_scenes(plan: Plan) -> Plan:
    """Return a plan without its scene versions, which follow from the first scene."""
    return replace(
        plan, scene=_NO_SCENE, steps=tuple(replace(step, scene=_NO_SCENE) for step in plan.steps)
    )


def _restore_scenes(plan: Plan, scene: SceneGraph) -> Plan:
    """Return the plan with the scene versions that follow from the first scene."""
    if plan.scene is scene:
        return plan
    steps: list[PlanStep] = []
    q_start = read_only(plan.q)
    step_scene, q = scene, q_start
    for step in plan.steps:
        segments = tuple(
            replace(segment, path=read_only(segment.path)) for segment in step.segments
        )
        step_scene, q = replace(step, segments=segments).end(step_scene, q)
        steps.append(replace(step, segments=segments, scene=step_scene, q=read_only(step.q)))
    return replace(plan, scene=scene, q=q_start, steps=tuple(steps))
