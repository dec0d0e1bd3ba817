"""Portfolios: the first conclusive entry gives the result, for each number of processes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks_scene
from support.built_domain import Meaning
from support.gantry import GANTRY
from support.processes import Process
from support.worker_jobs import Lost

import tmkit as tk
from tmkit.errors import ConfigurationError, TaskError
from tmkit.graph import SceneGraph
from tmkit.motion import PathQuery
from tmkit.pddl import load_domain
from tmkit.plans.plan_file import plan_to_dict
from tmkit.tamp import (
    ImprovementProgress,
    PlanningOptions,
    PlanningProblem,
    PlanningProgress,
    PlanStatus,
    PythonDomain,
    plan_cost,
    plan_portfolio,
)
from tmkit.tamp.portfolio import PortfolioResult
from tmkit.tamp.progress import PortfolioImprovement, PortfolioProgress


def two_blocks() -> SceneGraph:
    """Return two blocks on a small table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def portfolio(
    entries: list[PlanningOptions | int], *, processes: int, **arguments: Any
) -> PortfolioResult:
    """Plan with the gantry and an iteration limit, since workers have the default time limit."""
    if processes > 1:
        entries = [
            PlanningOptions(seed=s, max_iterations=8) if isinstance(s, int) else s for s in entries
        ]
    goal, on_progress = arguments.pop("goal", "(on a b)"), arguments.pop("on_progress", None)
    problem = PlanningProblem(
        arguments.pop("scene", None) or two_blocks(), goal=goal, robots=GANTRY, **arguments
    )
    return plan_portfolio(problem, entries, workers=processes, on_progress=on_progress)


@contextmanager
def load() -> Iterator[None]:
    """Keep every processor busy during a test."""
    busy = [Process([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


HOPELESS = PlanningOptions(seed=9, max_iterations=1, motion_planner=Lost())


def bytes_of(result: PortfolioResult, path: Path) -> bytes:
    """Return the bytes of the file of a valid plan."""
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    tk.save_plan(result.plan, path)
    return path.read_bytes()


def test_any_number_of_processes_gives_the_same_bytes(tmp_path: Path) -> None:
    """The plan is that of the first entry with a plan, also on a busy machine."""
    entries: list[PlanningOptions | int] = [HOPELESS, 4, 5]
    sequential = portfolio(entries, processes=1)
    with load():
        parallel = portfolio(entries, processes=2)
    assert (sequential.entry, parallel.entry) == (1, 1)
    assert [result.status for result in parallel.results] == [
        PlanStatus.NO_PLAN_WITHIN_LIMITS,
        PlanStatus.SOLVED,
    ]
    first = bytes_of(sequential, tmp_path / "one.json")
    assert bytes_of(parallel, tmp_path / "two.json") == first
    alone = tk.plan(two_blocks(), goal="(on a b)", robot=GANTRY, seed=4)
    assert alone.plan is not None
    tk.save_plan(alone.plan, tmp_path / "alone.json")
    assert (tmp_path / "alone.json").read_bytes() == first
    assert repr(parallel) == "PortfolioResult(solved, entry 1 of 3)"
    assert parallel.to_dict()["entry"] == 1
    assert [entry["seed"] for entry in parallel.to_dict()["entries"]] == [9, 4]


def test_a_plan_from_another_process_shares_the_scene_of_the_caller() -> None:
    """Its scene versions are computed from the scene of the caller."""
    scene = two_blocks()
    result = portfolio([0, 1], processes=2, scene=scene)
    assert result.plan is not None
    assert result.plan.scene is scene
    alone = portfolio([0], processes=1, scene=scene).plan
    assert alone is not None
    for step, other in zip(result.plan.steps, alone.steps, strict=True):
        assert step.scene == other.scene
        assert step.q.tobytes() == other.q.tobytes()
        assert not step.q.flags.writeable
        assert not any(segment.path.flags.writeable for segment in step.segments)


def test_a_proof_is_conclusive() -> None:
    """After a proof by the first entry no other entry is needed."""
    result = portfolio(
        [0, 1], processes=2, goal="(and (on a b) (on b a) (not (clear table__0__0)))"
    )
    assert (result.status, result.entry, len(result.results)) == (
        PlanStatus.PROVED_UNSOLVABLE,
        0,
        1,
    )


def test_without_a_plan_all_entries_are_returned() -> None:
    """The explanation is that of the last entry, with the number of entries."""
    result = portfolio([HOPELESS, HOPELESS], processes=2)
    assert not result.is_solved
    assert result.entry is None
    assert result.explanation.startswith("None of 2 entries has a plan. Of the last: ")
    assert len(result.results) == 2


def test_progress_names_its_entry() -> None:
    """Every entry reports progress; its text has the entry."""
    reports: list[PortfolioProgress] = []
    assert portfolio([HOPELESS, 0], processes=1, on_progress=reports.append).is_solved
    assert {progress.entry for progress in reports} == {0, 1}
    assert {progress.entries for progress in reports} == {2}
    assert str(reports[-1]).startswith("entry 2 of 2: planning, ")


@pytest.mark.parametrize("processes", [1, 2])
def test_every_plan_is_delivered_while_entries_improve(processes: int) -> None:
    """The first plan of an entry and each better one are reported, with their scenes."""
    reports: dict[int, list[PortfolioImprovement]] = {}

    def record(progress: PortfolioProgress) -> None:
        if isinstance(progress, PortfolioImprovement):
            reports.setdefault(progress.entry, []).append(progress)

    entries = [PlanningOptions(seed=seed, improve=3, cost="duration") for seed in (0, 1)]
    result = portfolio(entries, processes=processes, on_progress=record)
    assert result.plan is not None
    assert plan_to_dict(reports[0][-1].plan) == plan_to_dict(result.plan)
    for improvements in reports.values():
        costs = [progress.cost for progress in improvements]
        assert costs == sorted(costs, reverse=True)
        assert costs == pytest.approx(
            [plan_cost(progress.plan, "duration") for progress in improvements]
        )
        assert all(tk.validate_plan(progress.plan).is_valid for progress in improvements)
    assert str(reports[0][0]).startswith("entry 1 of 2: improving, ")


class EnoughError(Exception):
    """Error by which a caller ends planning."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_caller_stops_planning_and_keeps_the_best_plan(workers: int) -> None:
    """An error in the callback ends all workers and propagates."""
    best: list[ImprovementProgress] = []

    def record(progress: PlanningProgress) -> None:
        if isinstance(progress, ImprovementProgress):
            best.append(progress)
            raise EnoughError

    options = PlanningOptions(workers=workers, improve=None, time_limit=math.inf)
    with pytest.raises(EnoughError):
        tk.solve(
            PlanningProblem(two_blocks(), goal="(on a b)", robots=GANTRY),
            options,
            on_progress=record,
        )
    assert tk.validate_plan(best[0].plan).is_valid


def test_invalid_arguments_are_rejected() -> None:
    """Errors of :func:`tmkit.plan` are the same in another process."""
    with pytest.raises(ConfigurationError, match="options must have at least one entry"):
        portfolio([], processes=2)
    with pytest.raises(TaskError, match="unknown object 'zebra'"):
        portfolio([0, 1], processes=2, goal="(on a zebra)")

    class Local:
        def search(self, query: PathQuery) -> Any:
            return query.no_path_result()

    with pytest.raises(
        ConfigurationError, match=r"entry 0 \(seed 0\) cannot be sent to another process"
    ):
        portfolio([PlanningOptions(motion_planner=Local()), 1], processes=2)


def test_domains_built_in_python_are_sent_to_workers() -> None:
    """The plan is that of a single process."""
    domain = PythonDomain(load_domain(tk.data_path("domains/blocks") / "domain.pddl"), Meaning)
    plans = [portfolio([0, 1], processes=processes, domain=domain).plan for processes in (1, 2)]
    assert all(
        plan is not None and tk.validate_plan(plan, domain=domain).is_valid for plan in plans
    )
    assert plan_to_dict(plans[0]) == plan_to_dict(plans[1])


def test_semantics_outside_a_module_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the remedy; a single process accepts them."""

    class Inner(Meaning):
        pass

    words = load_domain(tk.data_path("domains/blocks") / "domain.pddl")
    with pytest.raises(
        ConfigurationError, match=r"Inner' of domain 'blocks' are defined inside a function.*module"
    ):
        portfolio([0, 1], processes=2, domain=PythonDomain(words, Inner))
    assert portfolio([0], processes=2, domain=PythonDomain(words, Inner)).is_solved
    monkeypatch.setattr(Inner, "__module__", "__main__")
    with pytest.raises(ConfigurationError, match=r"in the main script.*or use one process"):
        portfolio([0, 1], processes=2, domain=PythonDomain(words, Inner))
