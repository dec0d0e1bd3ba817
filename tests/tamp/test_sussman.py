"""Sussman anomaly with a goal scene, in robray and in files of the original TMKit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tmkit as tk
from tmkit.errors import MissingFileError
from tmkit.formats import load_goal_scene
from tmkit.tamp import PlanResult


def require_simulated(result: PlanResult) -> None:
    """Check that a plan is valid and succeeds in simulation."""
    assert result.plan is not None, result.explanation
    assert result.plan.goal.startswith("(and (on ")
    checked = tk.validate_plan(result.plan)
    assert checked.is_valid, checked.problems
    report = tk.simulate(result.plan)
    assert report.is_successful, report.notes


def test_a_goal_scene_for_the_panda() -> None:
    """The plan of the Panda for the goal scene is valid and succeeds in simulation."""
    scene = tk.load_scene("panda_table", "sussman_start")
    require_simulated(tk.plan(scene, goal=load_goal_scene(scene, "sussman_goal")))


@pytest.mark.parametrize("parked", [True, False], ids=["as-it-is", "left-arm-at-zero"])
def test_files_of_the_original_with_a_baxter(parked: bool) -> None:
    """Original scenes, domain and start work unchanged, with the curtain around the left arm."""
    if not (folder := os.environ.get("TMKIT_SAMPLES")):
        pytest.skip("TMKIT_SAMPLES names no folder with the scenes of the original")
    robray, words = Path(folder) / "robray", Path(folder) / "pddl" / "tm-blocks.pddl"
    try:
        scene = tk.load_scene("baxter", robray / "sussman-0.robray")
    except MissingFileError as error:
        if "example-robot-data" not in str(error):
            raise
        pytest.skip("example-robot-data, which has the Baxter, is not installed")
    lines = (robray / "q0.tmp").read_text(encoding="utf-8").splitlines()
    values = dict(zip(lines[0].split()[1:], map(float, lines[1].split()[1:]), strict=True))
    q = scene.configuration(
        {name: value for name, value in values.items() if parked or name.startswith("right")}
    )
    goal = load_goal_scene(scene, robray / "sussman-1.robray")
    result = tk.solve(
        tk.PlanningProblem(scene, q, domain=words, semantics="blocks", goal=goal, robots="baxter")
    )
    require_simulated(result)
