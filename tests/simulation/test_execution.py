"""Execution of plans in simulation, and the causes in reports of misses."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.gantry import (
    BLOCK,
    GANTRY,
    SUCKER,
    PlanWriter,
    gantry_scene,
    stacking_plan,
    two_blocks,
    with_block,
)
from support.processes import Process

from tmkit.errors import SimulationError
from tmkit.graph import AttachedShape, Box, Cylinder, Inertia, Mimic, Prismatic
from tmkit.plans.values import Plan
from tmkit.simulation import SimulationOptions, SimulationReport, simulate
from tmkit.simulation.report import SimulationProgress
from tmkit.spatial import Pose

HALF = BLOCK / 2


@pytest.fixture(scope="module")
def stacking_report() -> SimulationReport:
    """Return the report of a block put onto another with real fingers."""
    return simulate(stacking_plan())


def test_real_fingers_stack_a_block(stacking_report: SimulationReport) -> None:
    """A block carried by friction alone ends within 3 mm and 1 degree, without a note."""
    assert stacking_report.is_successful
    assert stacking_report.worst_position < 0.003
    assert stacking_report.worst_rotation < math.radians(1.0)
    assert stacking_report.notes == ()
    assert list(stacking_report.errors) == ["red", "green"]
    assert [(slip.step, slip.object, slip.lost) for slip in stacking_report.slips] == [
        (1, "red", None)
    ]
    assert stacking_report.slips[0].position < 0.003


def test_the_arm_follows_its_path(stacking_report: SimulationReport) -> None:
    """The arm reaches its set points to 0.1 mm."""
    assert list(stacking_report.tracking) == list(GANTRY.joints)
    assert max(stacking_report.tracking.values()) < 1e-4


def test_same_plan_same_report_also_beside_another_process(
    stacking_report: SimulationReport,
) -> None:
    """Two runs agree to the last bit, here and in another process with other hashes."""
    program = (
        "import json\n"
        "from support.gantry import stacking_plan\n"
        "from tmkit.simulation import simulate\n"
        "print(json.dumps(simulate(stacking_plan()).to_dict()), end='')\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "PYTHONHASHSEED": "7",
    }
    command = [sys.executable, "-c", program]
    with Process(command, stdout=subprocess.PIPE, text=True, env=environment) as other:
        again = simulate(stacking_plan())
        output, _ = other.communicate(timeout=600)
    assert again == stacking_report
    assert json.dumps(again.to_dict()) == json.dumps(stacking_report.to_dict()) == output


def test_several_steps_with_progress() -> None:
    """Blocks are moved in turn, the second onto the first, and each step is announced."""
    writer = PlanWriter(two_blocks())
    writer.move("green", [0.15, -0.1, HALF], turn=0.5)
    writer.move("red", [0.15, -0.1, HALF + BLOCK], turn=0.5, parent="green")
    events: list[SimulationProgress] = []
    report = simulate(writer.plan(), on_progress=events.append)
    assert report.is_successful
    assert report.worst_position < 0.003
    stages = list(dict.fromkeys((now.phase, now.step, now.action) for now in events))
    steps = [("simulate", 0, "(move green table)"), ("simulate", 1, "(move red green)")]
    assert stages == [("build", 0, ""), *steps, ("settle", 2, "")]
    assert {now.steps for now in events} == {2}
    times = [now.simulated_seconds for now in events]
    assert times == sorted(times)
    assert max(np.diff(times)) < 0.26  # seconds of simulated time: nothing stands still
    second = next(now for now in events if now.step == 1)
    assert re.fullmatch(
        r"simulating, .* s: step 2 of 2: \(move red green\), .* s simulated", str(second)
    )


def test_cylinder_is_carried_between_flat_fingers() -> None:
    """Not only boxes can be held."""
    scene = with_block(gantry_scene(), "can", [0.1, 0.0, 0.04], shape=Cylinder(0.025, 0.08))
    writer = PlanWriter(scene)
    writer.move("can", [-0.1, 0.1, 0.04], turn=0.0)
    report = simulate(writer.plan())
    assert report.errors["can"].position < 0.005


def test_heavy_object_is_carried() -> None:
    """Friction of both fingers holds half a kilogram at a grip force of 30 N."""
    scene = two_blocks().set_inertia("red", Inertia(0.5, matrix=0.5 * BLOCK**2 / 6.0 * np.eye(3)))
    writer = PlanWriter(scene)
    writer.move("red", [0.1, -0.1, HALF])
    assert simulate(writer.plan()).worst_position < 0.003


def test_independent_fingers_are_driven_as_one() -> None:
    """Two finger joints of which neither mimics the other hold as well as two of which one does."""
    scene = two_blocks().set_joint(
        "right_finger", Prismatic([0, -1, 0], lower=0.0, upper=0.04, effort=40.0, name="other")
    )
    robot = replace(
        GANTRY,
        gripper_joints=("finger", "other"),
        gripper_open={"finger": 0.04, "other": 0.04},
        gripper_closed={"finger": 0.0, "other": 0.0},
    )
    writer = PlanWriter(scene, robot=robot)
    writer.move("red", [-0.1, -0.1, HALF])
    assert simulate(writer.plan()).worst_position < 0.003


def test_mimic_with_a_shift_and_a_sign() -> None:
    """A finger that mimics with another sign and an offset closes on the object like the other."""
    scene = two_blocks()
    scene = scene.set_pose("right_finger", Pose([0.0, -0.045, -0.1]))
    mimic = Mimic("finger", -1.0, 0.04)
    scene = scene.set_joint(
        "right_finger",
        Prismatic([0, 1, 0], lower=0.0, upper=0.04, effort=40.0, name="other", mimic=mimic),
    )
    writer = PlanWriter(scene)
    writer.move("red", [-0.1, -0.1, HALF])
    assert simulate(writer.plan()).worst_position < 0.003


def test_grasp_by_constraint() -> None:
    """Fixing the object to the hand is an explicit choice, and also ends in place."""
    report = simulate(stacking_plan(), options=SimulationOptions(grasp="constraint"))
    assert report.is_successful
    assert report.worst_position < 0.003


def test_suction_needs_no_fingers() -> None:
    """A hand without fingers lifts from above, where the grasp is by constraint."""
    scene = two_blocks()
    for finger in ("left_finger", "right_finger"):
        scene = scene.set_shapes(finger, [])
    writer = PlanWriter(scene, robot=SUCKER)
    writer.move("red", [-0.1, 0.15, HALF + BLOCK], parent="green")
    report = simulate(writer.plan(), options=SimulationOptions(grasp="constraint"))
    assert report.is_successful
    assert report.worst_position < 0.003


def test_object_held_from_the_start_stays_in_the_hand() -> None:
    """A plan may start with something in the hand."""
    scene = with_block(gantry_scene(), "red", [0.0, -0.3, HALF])
    writer = PlanWriter(scene)
    writer.move("red", [0.1, 0.1, HALF])
    plan = writer.plan()
    grasped, rest = plan.steps[0].segments[2], plan.steps[0].segments[3:]
    q = scene.configuration(
        {**dict(zip(GANTRY.joints, grasped.path[0], strict=True)), **grasped.gripper}
    )
    held = scene.reparent("red", "hand", q=q)
    report = simulate(
        replace(plan, scene=held, q=q, steps=(replace(plan.steps[0], segments=rest),))
    )
    assert report.is_successful
    assert report.worst_position < 0.003


def test_empty_plan_compares_the_scene_with_itself() -> None:
    """A plan without steps is played too: nothing moves."""
    plan = PlanWriter(two_blocks()).plan()
    report = simulate(plan)
    assert report.is_successful
    assert report.worst_position < 5e-4
    assert "0 steps" in repr(report)


def displace_claim(plan: Plan, offset: tuple[float, float, float], turn: float = 0.0) -> Plan:
    """Return the plan with another claim about where its last step leaves the green block."""
    last = plan.steps[-1]
    moved = last.scene.local_pose("green") @ Pose.from_rpy(offset, [0.0, 0.0, turn])
    scene = last.scene.reparent("red", "table", q=last.q).set_pose("green", moved)
    return replace(plan, steps=(*plan.steps[:-1], replace(last, scene=scene)))


def test_known_displacement_is_reported() -> None:
    """An object's error is its distance and angle from its planned pose, with a tolerance."""
    report = simulate(displace_claim(stacking_plan(), (0.03, 0.04, 0.0), 0.2))
    assert report.errors["green"].position == pytest.approx(0.05, abs=1e-3)
    assert report.errors["green"].rotation == pytest.approx(0.2, abs=0.01)
    assert not report.is_successful
    assert report.missed == ("green",)
    assert [str(note)[:30] for note in report.notes] == ["step 1: 'green' is 50.0 mm, 11"]
    assert "missed: green" in repr(report)
    lenient = simulate(
        displace_claim(stacking_plan(), (0.03, 0.04, 0.0)),
        options=SimulationOptions(position_tolerance=0.06),
    )
    assert lenient.is_successful


def test_object_out_of_reach_of_the_fingers_is_explained() -> None:
    """A hand that closes beside the object is reported, in the text and by step."""
    plan = stacking_plan()
    moved = plan.scene.set_pose("red", plan.scene.local_pose("red") @ Pose([0.1, 0.0, 0.0]))
    report = simulate(replace(plan, scene=moved))
    texts = [str(note) for note in report.notes]
    assert not report.is_successful
    assert texts[0].startswith("step 1: the hand closed on nothing: 'red' is ")
    assert texts[1] == "step 1: 'red' was lost during grasp ((move red green))"
    assert report.slips[0].lost == "grasp"


def with_wall(plan: Plan, top: float) -> Plan:
    """Return the plan played where an unplanned wall of a given height stands across the way."""
    size = [0.02, 0.3, top]
    pose = Pose([0.0, 0.13, 0.05 + 0.5 * top])
    return replace(
        plan,
        scene=plan.scene.add_frame("wall", "table", pose=pose, shapes=[AttachedShape(Box(size))]),
    )


def test_load_that_strikes_an_obstacle_is_explained() -> None:
    """An obstacle that turns the load in the hand shows up in the notes of that step."""
    report = simulate(with_wall(stacking_plan(), 0.105))
    texts = [str(note) for note in report.notes]
    assert texts[0] == "step 1: the carried 'red' touched 'wall' during transfer"
    assert texts[1].startswith("step 1: 'red' slipped in the hand by ")
    assert not report.is_successful


def test_object_lost_on_the_way_is_explained() -> None:
    """An object too heavy for the grip is lost, and the notes have the time."""
    plan = stacking_plan()
    heavy = plan.scene.set_inertia("red", Inertia(8.0, matrix=8.0 * BLOCK**2 / 6.0 * np.eye(3)))
    report = simulate(replace(plan, scene=heavy))
    assert "step 1: 'red' was lost during lift ((move red green))" in [
        str(note) for note in report.notes
    ]
    assert report.slips[0].lost == "lift"
    assert not report.is_successful


def test_arm_that_is_held_back_is_explained() -> None:
    """A collision of the whole hand with a wall is reported as such."""
    report = simulate(with_wall(stacking_plan(), 0.22))
    texts = [str(note) for note in report.notes]
    assert "step 1: the arm was held back during transfer: joint 'x' could not follow" in texts
    assert any(text.startswith("step 1: the arm ('left_finger') touched 'wall'") for text in texts)
    assert report.tracking["x"] > 0.02


def test_unsupported_object_is_noted_before_the_plan() -> None:
    """An unsupported object falls before the plan starts, and the report notes it."""
    scene = with_block(gantry_scene(), "red", [0.1, 0.1, 0.04])
    report = simulate(PlanWriter(scene).plan())
    assert [note.step for note in report.notes] == [0]
    assert "moved by 15.0 mm" in str(report.notes[0])
    assert str(report.notes[0]).startswith("before the plan: ")


def test_report_as_json(stacking_report: SimulationReport) -> None:
    """The JSON contains the whole report in SI units."""
    document = stacking_report.to_dict()
    assert document["ok"] is True
    assert document["errors"]["red"]["position"] == stacking_report.errors["red"].position
    assert document["slips"][0]["object"] == "red"
    assert document["tracking"]["x"] == stacking_report.tracking["x"]
    assert document["steps"] == 1
    assert document["duration"] == stacking_report.duration
    assert "\n" not in repr(stacking_report)


def test_misuse_is_refused() -> None:
    """Unknown ways of grasping and negative tolerances are errors before anything starts."""
    plan = stacking_plan()
    with pytest.raises(
        SimulationError, match="grasp must be 'contact' or 'constraint', got 'glue'"
    ):
        simulate(plan, options=SimulationOptions(grasp="glue"))  # type: ignore[arg-type]  # the mistake is the test
    with pytest.raises(SimulationError, match="position_tolerance must not be negative"):
        simulate(plan, options=SimulationOptions(position_tolerance=-1.0))
