"""Assumptions of a valid plan: differences from the caller's scene and arms, allowed overlaps."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from support.gantry import GANTRY

from tmkit.graph import AttachedShape, Box, Prismatic, SceneGraph
from tmkit.plans import Plan, load_plan
from tmkit.spatial import Pose
from tmkit.tamp import validate_plan

PLAN = Path(__file__).parents[2] / "data" / "plans" / "version2.json"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan of the gantry that picks a block up."""
    return load_plan(PLAN)


def change_limits(scene: SceneGraph) -> SceneGraph:
    """Return the scene with other limits of a rail."""
    frame = next(name for name in scene.frame_names if scene.joint(name).name == "x")
    joint = scene.joint(frame)
    return scene.set_joint(
        frame, Prismatic(joint.axis, lower=joint.lower, upper=joint.upper + 1.0, name="x")
    )


CHANGES = {
    "the plan's frame 'table' differs from yours: pose (by 110 mm, 0 degrees)": lambda scene: (
        scene.set_pose("table", scene.local_pose("table") @ Pose([0.0, 0.0, 0.11]))
    ),
    "differs from yours: shapes": lambda scene: scene.set_shapes(
        "a", [AttachedShape(Box([0.06, 0.05, 0.05]))]
    ),
    "differs from yours: joint or its limits": change_limits,
    "the plan's scene has a frame 'a' that yours lacks": lambda scene: scene.remove_frame("a"),
    "the plan's scene lacks your frame 'more'": lambda scene: scene.add_frame("more", "table"),
    "your scene allows 'rail' and 'a' to overlap (reason 'user')": lambda scene: (
        scene.allow_collision("a", "rail")
    ),
}


@pytest.mark.parametrize("message", CHANGES)
def test_a_difference_from_ones_own_scene_is_a_problem(plan: Plan, message: str) -> None:
    """Poses, shapes, limits, frames and allowed pairs are compared; equal inputs do not differ."""
    assert (
        validate_plan(plan, scene=plan.scene, robot=GANTRY).problems == validate_plan(plan).problems
    )
    problems = validate_plan(plan, scene=CHANGES[message](plan.scene)).problems
    assert any(message in problem for problem in problems), problems


def test_another_arm_is_a_problem(plan: Plan) -> None:
    """An arm of the same name with another force is listed with the difference, or as missing."""
    stronger, other = replace(GANTRY, grip_force=99.0), replace(GANTRY, name="other")
    assert any(
        "arm 'gantry' differs from yours: gripper" in text or "grip_force" in text
        for text in validate_plan(plan, robot=stronger).problems
    )
    assert "the plan's arm 'gantry' is not among yours" in validate_plan(plan, robot=other).problems


def test_a_path_through_the_table_that_the_scene_allows_is_told(plan: Plan, tmp_path: Path) -> None:
    """If all pairs are allowed, the report lists the pairs that overlap, with their depth."""
    scene = plan.scene
    for first, second in combinations(scene.frame_names, 2):
        if scene.shapes(first) and scene.shapes(second):
            scene = scene.allow_collision(first, second)
    document = json.loads(PLAN.read_text(encoding="utf-8"))
    document["scene"]["allowed"] = [list(pair) for pair in scene.allowed_pairs]
    path = document["steps"][0]["segments"][0]["path"]
    path.insert(1, [0.0, 0.0, 0.77, 0.0])  # the rail goes down
    (tmp_path / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    report = validate_plan(load_plan(tmp_path / "plan.json"))
    overlaps = [text for text in report.assumptions if "'table'" in text and "mm in step 1" in text]
    assert overlaps, report.assumptions
    assert "allowed (reason 'user')" in overlaps[0]
    assert report.to_dict()["assumptions"] == list(report.assumptions)
    own = validate_plan(load_plan(tmp_path / "plan.json"), scene=plan.scene)
    assert any("overlap (reason 'user'), yours does not" in problem for problem in own.problems)


def test_a_plan_in_a_usual_scene_rests_on_its_scene_alone(plan: Plan) -> None:
    """Links next to each other are no news; a scene to compare with leaves nothing to assume."""
    (only,) = validate_plan(plan).assumptions
    assert "the validity depends on the plan's own scene of" in only
    assert validate_plan(plan, scene=plan.scene).assumptions == ()
