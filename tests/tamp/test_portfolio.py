"""Portfolios: the answer is that of the first entry in order, byte for byte, however many processes there are."""

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


def two() -> SceneGraph:
    """Return two blocks on a small table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def portfolio(
    entries: list[PlanningOptions | int], *, processes: int, **given: Any
) -> PortfolioResult:
    """Plan with the gantry; other processes have the default time limit, so entries there get one on iterations."""
    if processes > 1:
        entries = [
            PlanningOptions(seed=s, max_iterations=8) if isinstance(s, int) else s for s in entries
        ]
    goal, on_progress = given.pop("goal", "(on a b)"), given.pop("on_progress", None)
    problem = PlanningProblem(given.pop("scene", None) or two(), goal=goal, robots=GANTRY, **given)
    return plan_portfolio(problem, entries, workers=processes, on_progress=on_progress)


@contextmanager
def load() -> Iterator[None]:
    """Keep every processor busy meanwhile."""
    busy = [Process([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


HOPELESS = PlanningOptions(seed=9, max_iterations=1, motion_planner=Lost())


def bytes_of(result: PortfolioResult, path: Path) -> bytes:
    """Return the file of a plan that passes its check."""
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    tk.save_plan(result.plan, path)
    return path.read_bytes()


def test_any_number_of_processes_gives_the_same_bytes(tmp_path: Path) -> None:
    """The first entry that has a plan decides, on a busy machine too; its plan is the one that it makes alone."""
    entries: list[PlanningOptions | int] = [HOPELESS, 4, 5]
    one = portfolio(entries, processes=1)
    with load():
        both = portfolio(entries, processes=2)
    assert (one.entry, both.entry) == (1, 1)
    assert [result.status for result in both.results] == [
        PlanStatus.NO_PLAN_WITHIN_LIMITS,
        PlanStatus.SOLVED,
    ]
    first = bytes_of(one, tmp_path / "one.json")
    assert bytes_of(both, tmp_path / "two.json") == first
    alone = tk.plan(two(), goal="(on a b)", robot=GANTRY, seed=4)
    assert alone.plan is not None
    tk.save_plan(alone.plan, tmp_path / "alone.json")
    assert (tmp_path / "alone.json").read_bytes() == first
    assert repr(both) == "PortfolioResult(solved, entry 1 of 3)"
    assert both.to_dict()["entry"] == 1
    assert [entry["seed"] for entry in both.to_dict()["entries"]] == [9, 4]


def test_a_plan_from_another_process_shares_the_scene_of_the_caller() -> None:
    """Its versions follow from the scene that was given, and are what one's own would be."""
    scene = two()
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


def test_a_proof_decides_as_well() -> None:
    """What the first entry proves needs no further seeds."""
    result = portfolio(
        [0, 1], processes=2, goal="(and (on a b) (on b a) (not (clear table__0__0)))"
    )
    assert (result.status, result.entry, len(result.results)) == (
        PlanStatus.PROVED_UNSOLVABLE,
        0,
        1,
    )


def test_without_a_plan_all_entries_are_told() -> None:
    """When no entry decides, the explanation is that of the last, and says so."""
    result = portfolio([HOPELESS, HOPELESS], processes=2)
    assert not result.is_solved
    assert result.entry is None
    assert result.explanation.startswith("None of 2 entries has a plan. Of the last: ")
    assert len(result.results) == 2


def test_progress_says_which_entry_it_is_of() -> None:
    """Every entry tells; the words name it."""
    told: list[PortfolioProgress] = []
    assert portfolio([HOPELESS, 0], processes=1, on_progress=told.append).is_solved
    assert {progress.entry for progress in told} == {0, 1}
    assert {progress.entries for progress in told} == {2}
    assert str(told[-1]).startswith("entry 2 of 2: planning, ")


@pytest.mark.parametrize("processes", [1, 2])
def test_every_plan_is_delivered_while_entries_improve(processes: int) -> None:
    """The first plan of an entry and each better one, as whole plans; the last of the first entry is the result."""
    told: dict[int, list[PortfolioImprovement]] = {}

    def tell(progress: PortfolioProgress) -> None:
        if isinstance(progress, PortfolioImprovement):
            told.setdefault(progress.entry, []).append(progress)

    entries = [PlanningOptions(seed=seed, improve=3, cost="duration") for seed in (0, 1)]
    result = portfolio(entries, processes=processes, on_progress=tell)
    assert result.plan is not None
    assert plan_to_dict(told[0][-1].plan) == plan_to_dict(result.plan)
    for improvements in told.values():
        costs = [progress.cost for progress in improvements]
        assert costs == sorted(costs, reverse=True)
        assert costs == pytest.approx(
            [plan_cost(progress.plan, "duration") for progress in improvements]
        )
        assert all(tk.validate_plan(progress.plan).is_valid for progress in improvements)
    assert str(told[0][0]).startswith("entry 1 of 2: improving, ")


class EnoughError(Exception):
    """What a caller raises to end planning."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_caller_stops_planning_and_keeps_the_best_plan(workers: int) -> None:
    """What the callback raises ends all workers and reaches the caller, who has every plan so far."""
    best: list[ImprovementProgress] = []

    def tell(progress: PlanningProgress) -> None:
        if isinstance(progress, ImprovementProgress):
            best.append(progress)
            raise EnoughError

    options = PlanningOptions(workers=workers, improve=None, time_limit=math.inf)
    with pytest.raises(EnoughError):
        tk.solve(PlanningProblem(two(), goal="(on a b)", robots=GANTRY), options, on_progress=tell)
    assert tk.validate_plan(best[0].plan).is_valid


def test_wrong_arguments_are_refused() -> None:
    """What :func:`tmkit.plan` refuses is refused, also in another process; so is an empty portfolio."""
    with pytest.raises(ConfigurationError, match="options must have at least one entry"):
        portfolio([], processes=2)
    with pytest.raises(TaskError, match="unknown object 'zebra'"):
        portfolio([0, 1], processes=2, goal="(on a zebra)")

    class Local:
        def search(self, query: PathQuery) -> Any:
            return query.unsolved()

    with pytest.raises(
        ConfigurationError, match=r"entry 0 \(seed 0\) cannot be sent to another process"
    ):
        portfolio([PlanningOptions(motion_planner=Local()), 1], processes=2)


def test_domains_built_in_python_travel_too() -> None:
    """The words and the class of the meaning reach the workers; the plan is that of one process."""
    domain = PythonDomain(load_domain(tk.data_path("domains/blocks") / "domain.pddl"), Meaning)
    plans = [portfolio([0, 1], processes=processes, domain=domain).plan for processes in (1, 2)]
    assert all(
        plan is not None and tk.validate_plan(plan, domain=domain).is_valid for plan in plans
    )
    assert plan_to_dict(plans[0]) == plan_to_dict(plans[1])


def test_semantics_that_no_other_process_finds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a script and those inside a function: the message says what to do; one process needs nothing."""

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
