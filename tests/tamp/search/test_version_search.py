"""Search over versions: determinism, validity, soundness of proofs, bounds and restarts."""

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
"""Settings with restarts at the root after every few attempts at transfers."""


def plan_problem(problem: TampProblem, **options: object) -> PlanResult:
    """Return the result of planning; iterations limit the search."""
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
    """A search that restarts after every few attempts finds a valid plan."""
    restarts: list[int] = []
    restart = VersionSearch._restart

    def count_restart(search: VersionSearch) -> None:
        restarts.append(len(restarts))
        restart(search)

    monkeypatch.setattr(VersionSearch, "_restart", count_restart)
    check_plan(
        plan_problem(PROBLEMS[name](seed), seed=seed, search=FORCED_RESTARTS, max_iterations=6)
    )
    assert len(restarts) >= 2  # the second one restarts at the root


@pytest.mark.parametrize("family", ["clutter", "shelf", "blocked", "swaps"])
@pytest.mark.parametrize("seed", [3, 4])
def test_plans_of_families_are_valid(family: str, seed: int) -> None:
    """Plans of generated problems are valid."""
    result = plan_problem(generate(family, seed=seed, hardness=0.2), seed=seed, max_iterations=4)
    assert result.status is PlanStatus.SOLVED, result.explanation
    check_plan(result)


@pytest.mark.parametrize("name", ["regrasp", "blocked", "swap2"])
def test_results_do_not_depend_on_earlier_runs(name: str) -> None:
    """Plans, counts and explanations do not depend on earlier runs or on recording."""
    first_result = plan_problem(PROBLEMS[name](0))
    plan_problem(PROBLEMS["shelf1"](0), seed=5)
    repeated_result = plan_problem(PROBLEMS[name](0), record_tree=True)
    assert first_result.plan is not None
    assert repeated_result.plan is not None
    assert plan_to_dict(first_result.plan) == plan_to_dict(repeated_result.plan)
    assert first_result.diagnosis == repeated_result.diagnosis
    assert first_result.statistics == repeated_result.statistics


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    """Processes with other hash seeds return the same plan."""
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
    outputs = {
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
    assert len(outputs) == 1
    assert len(outputs.pop().strip()) == 64


def make_lid_scene() -> SceneGraph:
    """Return two blocks, of which one is under a fixed lid."""
    return with_box(
        blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4),
        "lid",
        (-0.05, -0.05, 0.08),
        (0.05, 0.05, 0.1),
    )


def make_island_scene() -> SceneGraph:
    """Return two blocks, of which one is beyond the rails."""
    scene = blocks_scene({"b": (0, 0)}, table=0.4)
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = scene.add_frame(
        "island", "world", pose=Pose([5.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    return with_block(scene, "a", [5.0, 0.0, BLOCK / 2], parent="island")


def make_stove_scene() -> SceneGraph:
    """Return a kitchen whose stove has room for a block or for the pot on it, not for both."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    return scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.05]), classes=["movable"], shapes=shapes
    )


WITHOUT_PLAN: dict[str, tuple[SceneGraph, dict[str, Any]]] = {
    "lid": (make_lid_scene(), {"domain": "blocks", "goal": "(on a b)", "robot": GANTRY}),
    "island": (make_island_scene(), {"domain": "blocks", "goal": "(on a b)", "robot": GANTRY}),
    "stove": (
        make_stove_scene(),
        {"domain": "kitchen", "goal": "(and (on b0 stove) (on pot stove))", "robot": KITCHEN_ROBOT},
    ),
}
"""Scenes with goals that have task plans but no motions."""


@pytest.mark.parametrize(
    ("name", "iterations"),
    [("lid", 1), ("lid", 2), ("lid", 4), ("island", 1), ("island", 4), ("stove", 1), ("stove", 2)],
)
def test_assumptions_prove_nothing_and_iterations_limit_the_search(
    name: str, iterations: int
) -> None:
    """Assumptions that leave no task plan prove nothing, and iterations bound the attempts."""
    scene, task = WITHOUT_PLAN[name]
    result = solve_with(scene, max_iterations=iterations, suggest=False, **task)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert result.diagnosis.constraints
    assert name == "island" or not any(
        constraint.is_proved for constraint in result.diagnosis.constraints
    )
    assert result.diagnosis.iterations <= iterations
    assert "Infeasibility is not proven." in result.explanation
    options, settings = PlanningOptions(), SearchSettings()
    budget = (1 << iterations) - 1  # of all iterations, in units of the first
    plans = options.skeletons_per_iteration * iterations
    assert result.statistics.skeletons <= plans
    attempts = options.samples_per_skeleton * plans + settings.transfers_per_round * 8
    assert result.statistics.attempts <= attempts * budget


def test_budgets_grow_until_a_plan_is_found() -> None:
    """If the budgets of the first iteration are too small, later iterations find the plan."""
    settings = replace(SearchSettings(), attempts_per_action_of_plan=1, transfers_per_round=1)
    problem = PROBLEMS["blocked"](0)
    result = plan_problem(
        problem,
        search=settings,
        max_iterations=12,
        samples_per_skeleton=1,
        attempts_per_action=1,
        skeletons_per_iteration=1,
    )
    check_plan(result)
    assert result.diagnosis.iterations > 1
