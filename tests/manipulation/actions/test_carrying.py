"""Path constraints while carrying: an upright cup, its validation, files and failures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import PlanFileError, SceneError
from tmkit.graph import AttachedShape, Box, Cylinder, Free, SceneGraph
from tmkit.manipulation import (
    ActionMotion,
    ArmMotionPlanner,
    MotionSettings,
    PickPlaceOptions,
    grasps_of,
)
from tmkit.motion import PathConstraint, path_fault
from tmkit.motion.path_constraints import carrying_constraints
from tmkit.plans import MotionFailure, Plan, Segment
from tmkit.plans.execution import execute
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.tamp import load_tmp_plan

UPRIGHT = PathConstraint("orientation", "cup", tolerance=math.radians(10.0))
GOAL = "(at cup right)"


def cup_scene(*classes: str, **attributes: float) -> SceneGraph:
    """Return a cup on one side of a wall, and room for it on the other."""
    scene = tk.load_scene("panda_table")
    for place, y in (("left", -0.3), ("right", 0.3)):
        plate = AttachedShape(Box([0.1, 0.1, 0.005]))
        scene = scene.add_frame(
            place, "table", pose=tk.Pose([-0.1, y, 0.0225]), classes=["place"], shapes=[plate]
        )
    scene = scene.add_frame(
        "wall",
        "table",
        pose=tk.Pose([-0.1, 0.0, 0.22]),
        shapes=[AttachedShape(Box([0.5, 0.04, 0.4]))],
    )
    scene = scene.add_frame(
        "cup",
        "left",
        pose=tk.Pose([0.0, 0.0, 0.0525]),
        joint=Free(),
        classes=["movable", *classes],
        shapes=[AttachedShape(Cylinder(0.03, 0.1))],
    )
    return scene.set_attributes("cup", attributes)


def make_plan(scene: SceneGraph, **options: Any) -> Plan:
    """Return the plan that brings the cup to the other side."""
    result = solve_with(scene, GOAL, domain="rearrangement", **options)
    assert result.plan is not None, result.explanation
    return result.plan


@pytest.fixture(scope="module")
def free() -> Plan:
    """The plan for an empty cup."""
    return make_plan(cup_scene())


@pytest.fixture(scope="module")
def upright() -> Plan:
    """The plan for a full one."""
    return make_plan(cup_scene("upright"))


def transfer(plan: Plan) -> Segment:
    """Return the segment that carries the cup to the other side."""
    return plan.steps[1].segments[0]


def tilt(plan: Plan) -> str | None:
    """Return how far the cup leaves the constraint in this segment."""
    scene, q = plan.steps[0].scene, plan.steps[0].q
    part = transfer(plan)
    rows = [
        scene.configuration(dict(zip(part.joint_names, row, strict=True)), base=q)
        for row in part.path.tolist()
    ]
    return path_fault(scene, np.array(rows), [UPRIGHT], resolution=0.001)


def edit_plan(plan: Plan, **changes: object) -> Plan:
    """Return the plan with another transfer."""
    step = plan.steps[1]
    segments = (replace(transfer(plan), **changes), *step.segments[1:])  # type: ignore[arg-type]  # any field
    return replace(plan, steps=(plan.steps[0], replace(step, segments=segments)))


def test_an_upright_object_is_carried_upright(free: Plan, upright: Plan) -> None:
    """An empty cup is tipped over the wall, a full one is not; both plans are valid."""
    assert "tilts by" in str(tilt(free))
    assert tilt(upright) is None
    for plan in (free, upright):
        assert tk.validate_plan(plan).is_valid
    carried = {
        segment.kind.value
        for step in upright.steps
        for segment in step.segments
        if segment.constraints
    }
    assert carried == {"lift", "transfer", "lower", "release"}
    assert transfer(upright).constraints == (UPRIGHT,)
    assert not any(segment.constraints for step in free.steps for segment in step.segments)


def test_the_checker_verifies_constraints(free: Plan, upright: Plan) -> None:
    """A path that tips the cup is rejected, and so is a plan without the constraint."""
    report = tk.validate_plan(edit_plan(free, constraints=(UPRIGHT,)))
    assert [problem.split(": ", 1)[1] for problem in report.problems] == [
        f"joint path leaves the constraint: {tilt(free)}"
    ]
    report = tk.validate_plan(edit_plan(upright, constraints=()))
    assert [problem.split(": ", 1)[1] for problem in report.problems] == [
        "it lacks the required path constraint: orientation of 'cup' within 10 degrees"
    ]
    line = replace(UPRIGHT, kind="line", tolerance=0.01)
    report = tk.validate_plan(edit_plan(upright, constraints=(UPRIGHT, line)))
    assert "mm off its line of 10 allowed" in report.problems[0]


def test_plan_files_hold_constraints(free: Plan, upright: Plan, tmp_path: Path) -> None:
    """Bit for bit; plans without constraints have no word of them."""
    document = plan_to_dict(upright)
    assert plan_to_dict(plan_from_dict(document)) == document
    assert "constraints" not in str(plan_to_dict(free))
    tk.save_plan(upright, tmp_path / "plan.json")
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).is_valid
    tk.save_plan(upright, tmp_path / "plan.tmp")
    read = load_tmp_plan(
        tmp_path / "plan.tmp", upright.scene, robot="panda", domain="rearrangement", goal=GOAL
    )
    assert tk.validate_plan(read).is_valid
    assert transfer(read).constraints == (UPRIGHT,)
    document["steps"][1]["segments"][0]["constraints"][0]["frame"] = "cap"
    with pytest.raises(
        PlanFileError, match=r"constraints\[0\].frame: 'cap' is not a frame of the scene"
    ):
        plan_from_dict(document)


def test_planning_is_repeatable_and_improvement_keeps_constraints(upright: Plan) -> None:
    """The same seed gives the same plan; a shorter path is upright, too."""
    assert plan_to_dict(make_plan(cup_scene("upright"))) == plan_to_dict(upright)
    better = make_plan(cup_scene("upright"), improve=3, max_iterations=5)
    assert better.path_length <= upright.path_length
    assert transfer(better).constraints == (UPRIGHT,)
    assert tk.validate_plan(better).is_valid


def test_a_constrained_motion_is_not_slow(free: Plan, upright: Plan) -> None:
    """The timed transfer takes less than twice as long."""

    class Clock:
        seconds = 0.0

        def follow(self, motion: Any) -> None:
            self.seconds += motion.timed.duration if motion.segment.kind == "transfer" else 0.0

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    clocks = [Clock(), Clock()]
    for plan, clock in zip((free, upright), clocks, strict=True):
        execute(plan, clock)
    assert 0.0 < clocks[1].seconds < 2.0 * clocks[0].seconds


def test_the_angle_is_an_attribute() -> None:
    """The angle is in radians; other values are rejected with the frame's name."""
    assert (
        carrying_constraints(cup_scene("upright", upright_tolerance=0.3), "cup")[0].tolerance == 0.3
    )
    assert carrying_constraints(cup_scene("upright"), None) == ()
    with pytest.raises(
        SceneError, match="attribute 'upright_tolerance' of 'cup': tolerance must be an angle"
    ):
        carrying_constraints(cup_scene("upright", upright_tolerance=-1.0), "cup")
    with pytest.raises(SceneError, match="attribute 'upright_tolerance' of 'cup'"):
        carrying_constraints(
            cup_scene("upright").set_attributes("cup", {"upright_tolerance": "5 deg"}), "cup"
        )


def picks(scene: SceneGraph, constraint: PathConstraint) -> list[ActionMotion | MotionFailure]:
    """Return the result of picking the cup with a constraint."""
    q = tk.load_manipulator("panda").ready_configuration(scene)
    arm = ArmMotionPlanner(tk.load_manipulator("panda"), budget=MotionSettings())
    grasp = grasps_of(scene, "cup", robot=arm.robot)[0]
    return list(
        arm.pick(
            scene,
            q,
            object="cup",
            grasp=grasp,
            seed=0,
            motion=PickPlaceOptions(constraints=(constraint,)),
        )
    )


def test_constraints_of_own_actions() -> None:
    """A pick lifts within them; a move follows a plane, or explains why it cannot start."""
    scene = cup_scene()
    line = PathConstraint("line", "cup", tolerance=0.001, point=(0.5, -0.3, 0.0))
    motions = [result for result in picks(scene, line) if isinstance(result, ActionMotion)]
    assert [segment.constraints for segment in motions[0].segments if segment.kind == "lift"] == [
        (line,)
    ]
    failed = picks(scene, replace(line, kind="plane", point=(0.0, 0.0, 0.05)))
    assert {failure.cause for failure in failed if isinstance(failure, MotionFailure)} >= {
        "the straight line violates a constraint: 'cup' is 60.0 mm off its plane of 1 allowed"
    }
    held, q, arm = (
        motions[0].scene,
        motions[0].q,
        ArmMotionPlanner(tk.load_manipulator("panda"), budget=MotionSettings()),
    )
    joints = {"panda_joint1": float(q[held.joint_names.index("panda_joint1")]) - 0.5}
    level = replace(line, kind="plane", point=tuple(held.pose("cup", q=q).translation))
    (moved,) = arm.move(held, q, to=joints, name="there", seed=0, constraints=(level, UPRIGHT))
    assert isinstance(moved, ActionMotion)
    assert moved.segments[0].constraints == (level, UPRIGHT)
    (refused,) = arm.move(
        held, q, to=joints, name="there", seed=0, constraints=(replace(level, point=(0, 0, 1)),)
    )
    assert isinstance(refused, MotionFailure)
    assert "its start violates a constraint: 'cup' is" in refused.cause
