"""Laws of the search over versions: determinism, validity, honesty of its proofs, bounds and restarts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, with_block
from support.kitchen import ROBOT as KITCHEN_ROBOT, kitchen
from support.planning import solve_with
from support.processes import run_process
from support.tamp_problems import PROBLEMS, TampProblem

import tmkit as tk
from tmkit.batch.generators import generate
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans.plan_file import plan_to_dict
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanResult, PlanStatus, SearchSettings
from tmkit.tamp.search.version_search import VersionSearch

FORCED_RESTARTS = SearchSettings(restart_after=1, restart_growth=1.2)
"""Settings under which the search begins anew at the root after the second attempt at a transfer, and so on."""


def planned(problem: TampProblem, **options: object) -> PlanResult:
    """Return the result of planning, ended by rounds."""
    return solve_with(
        problem.scene,
        problem.goal,
        domain=problem.domain,
        robot=problem.robot,
        **{"max_iterations": 3, "suggest": False, **options},
    )


def check_plan(result: PlanResult) -> None:
    """Check that there is a plan and that it is valid."""
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems


@pytest.mark.parametrize("name", ["regrasp", "blocked", "swap4", "tetromino"])
@pytest.mark.parametrize("seed", [0, 1])
def test_restarts_lose_no_plan(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that begins anew after every few attempts, with other random numbers, finds a valid plan."""
    turns: list[int] = []
    restart = VersionSearch._restart

    def counted(search: VersionSearch) -> None:
        turns.append(len(turns))
        restart(search)

    monkeypatch.setattr(VersionSearch, "_restart", counted)
    check_plan(planned(PROBLEMS[name](seed), seed=seed, search=FORCED_RESTARTS, max_iterations=6))
    assert len(turns) >= 2  # at the second one the search begins anew


@pytest.mark.parametrize("family", ["clutter", "shelf", "blocked", "swaps"])
@pytest.mark.parametrize("seed", [3, 4])
def test_plans_of_families_are_valid(family: str, seed: int) -> None:
    """Whatever the generated problem, what is returned as solved passes the checker."""
    result = planned(generate(family, seed=seed, hardness=0.2), seed=seed, max_iterations=4)
    assert result.status is PlanStatus.SOLVED, result.explanation
    check_plan(result)


@pytest.mark.parametrize("name", ["regrasp", "blocked", "swap2"])
def test_equal_runs_are_equal_whatever_ran_before(name: str) -> None:
    """Neither plans, nor counts, nor explanations depend on other runs in the process, or on recording."""
    first = planned(PROBLEMS[name](0))
    planned(PROBLEMS["shelf1"](0), seed=5)
    again = planned(PROBLEMS[name](0), record_tree=True)
    assert first.plan is not None
    assert again.plan is not None
    assert plan_to_dict(first.plan) == plan_to_dict(again.plan)
    assert first.diagnosis == again.diagnosis
    assert first.statistics == again.statistics


def test_equal_runs_are_equal_whatever_the_hash_seed() -> None:
    """No order depends on hashing: processes with other hash seeds return the same plan."""
    program = (
        "import hashlib, json\n"
        "import tmkit as tk\n"
        "from support.tamp_problems import PROBLEMS\n"
        "from tmkit.plans.plan_file import plan_to_dict\n"
        "problem = PROBLEMS['blocked'](1)\n"
        "options = tk.PlanningOptions(max_iterations=3)\n"
        "result = tk.plan(problem.scene, domain=problem.domain, goal=problem.goal,"
        " options=options)\n"
        "print(hashlib.sha256(json.dumps(plan_to_dict(result.plan)).encode()).hexdigest())\n"
    )
    tests = Path(__file__).parents[2]
    printed = {
        run_process(
            [sys.executable, "-c", program],
            cwd=tests,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tests), "PATH": ""},
            capture_output=True,
            check=True,
            timeout=300.0,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1
    assert len(printed.pop().strip()) == 64


def under_lid() -> SceneGraph:
    """Return two blocks, of which one is under a lid that never moves."""
    return with_box(
        blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4),
        "lid",
        (-0.05, -0.05, 0.08),
        (0.05, 0.05, 0.1),
    )


def on_island() -> SceneGraph:
    """Return two blocks, of which one is beyond the rails."""
    scene = blocks_scene({"b": (0, 0)}, table=0.4)
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = scene.add_frame(
        "island", "world", pose=Pose([5.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    return with_block(scene, "a", [5.0, 0.0, BLOCK / 2], parent="island")


def on_small_stove() -> SceneGraph:
    """Return a kitchen whose stove has room for a block or for the pot that is there, and not for both."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    return scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.05]), classes=["movable"], shapes=shapes
    )


WITHOUT_PLAN: dict[str, tuple[SceneGraph, dict[str, Any]]] = {
    "lid": (under_lid(), {"domain": "blocks", "goal": "(on a b)", "robot": GANTRY}),
    "island": (on_island(), {"domain": "blocks", "goal": "(on a b)", "robot": GANTRY}),
    "stove": (
        on_small_stove(),
        {"domain": "kitchen", "goal": "(and (on b0 stove) (on pot stove))", "robot": KITCHEN_ROBOT},
    ),
}
"""Scenes with goals that PDDL allows and motions do not."""


@pytest.mark.parametrize(
    ("name", "rounds"),
    [("lid", 1), ("lid", 2), ("lid", 4), ("island", 1), ("island", 4), ("stove", 1), ("stove", 2)],
)
def test_lessons_prove_nothing_and_rounds_end_the_search(name: str, rounds: int) -> None:
    """Assumptions from samples leave no task plan, and yet nothing is proved; the work is bounded by the rounds."""
    scene, task = WITHOUT_PLAN[name]
    result = solve_with(scene, max_iterations=rounds, suggest=False, **task)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert result.diagnosis.constraints
    assert name == "island" or not any(
        constraint.is_proved for constraint in result.diagnosis.constraints
    )
    assert result.diagnosis.iterations <= rounds
    assert "Infeasibility is not proven." in result.explanation
    options, settings = PlanningOptions(), SearchSettings()
    budget = (1 << rounds) - 1  # of all rounds, in those of the first
    plans = options.skeletons_per_iteration * rounds
    assert result.statistics.skeletons <= plans
    attempts = options.samples_per_skeleton * plans + settings.transfers_per_round * 8
    assert result.statistics.attempts <= attempts * budget


def test_rounds_grow_until_there_is_a_plan() -> None:
    """With budgets that are far too small for the first round, later rounds find the plan."""
    settings = replace(SearchSettings(), attempts_per_action_of_plan=1, transfers_per_round=1)
    problem = PROBLEMS["blocked"](0)
    result = planned(
        problem,
        search=settings,
        max_iterations=12,
        samples_per_skeleton=1,
        attempts_per_action=1,
        skeletons_per_iteration=1,
    )
    check_plan(result)
    assert result.diagnosis.iterations > 1
