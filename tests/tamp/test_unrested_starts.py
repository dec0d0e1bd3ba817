"""Objects that overhang, lean, float or are sunk in at the start."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene
from support.effort import scaled_examples
from support.gantry import GANTRY, gantry_scene, with_block

import tmkit as tk
from tmkit.errors import CollisionError, SceneError
from tmkit.graph import SceneGraph
from tmkit.motion import StartTolerances
from tmkit.plans import Plan, SegmentKind
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions
from tmkit.tamp.domains.tabletop import lowest_height

TABLE_TOP = 0.05
"""Height of the table's top above its frame [m]."""


def scene_with_block(
    x: float, y: float, *, gap: float = 0.0, tilt: float = 0.0, direction: float = 0.0
) -> SceneGraph:
    """Return a table of 1 m with a block, whose lowest point is ``gap`` [m] above its top."""
    scene = with_block(gantry_scene(), "a", [0.0, 0.0, 0.0])
    rpy = [tilt * math.cos(direction), tilt * math.sin(direction), 0.0]
    pose = Pose.from_rpy([x, y, 0.0], rpy)
    z = TABLE_TOP + gap - lowest_height(scene, "a", pose)
    return scene.set_pose("a", Pose([x, y, z], pose.quat_xyzw))


def solve(scene: SceneGraph, goal: str, domain: str = "kitchen", **tolerances: float) -> Plan:
    """Return the plan of the gantry, which must exist."""
    options = PlanningOptions(time_limit=60.0, **tolerances)
    result = tk.plan(scene, goal=goal, domain=domain, robot=GANTRY, options=options)
    assert result.plan is not None, result.explanation
    return result.plan


def with_plate(scene: SceneGraph) -> SceneGraph:
    """Return the scene with a second region on the table."""
    plate = tk.graph.AttachedShape(tk.graph.Box([0.2, 0.2, 0.01]))
    pose = Pose([0.2, 0.2, TABLE_TOP + 0.005])
    return scene.add_frame("plate", "table", pose=pose, classes=["surface"], shapes=[plate])


@given(st.floats(-0.003, 0.015), st.booleans())
@settings(max_examples=scaled_examples(0.1), deadline=None)
def test_objects_are_taken_as_they_stand_and_placed_at_rest(gap: float, is_at_edge: bool) -> None:
    """The plan is valid, and the object rests on the plate at its end."""
    scene = with_plate(scene_with_block(0.49 if is_at_edge else 0.3, -0.2, gap=gap))
    plan = solve(scene, "(on a plate)")
    assert [action.name for action in plan.actions] == ["pick", "place"]
    report = tk.validate_plan(plan)
    assert report.is_valid, report.problems
    height = lowest_height(plan.final_scene, "a", plan.final_scene.local_pose("a"))
    assert height == pytest.approx(0.005, abs=0.001)


@pytest.mark.parametrize("seed", range(2))
def test_leaning_objects_are_taken_and_placed_upright(seed: int) -> None:
    """A Panda takes blocks that lean and float at random; in the simulator they fall first."""
    rng = np.random.default_rng(seed)
    scene = tk.load_scene("panda_table")
    for name, y in (("a", 0.0), ("b", 0.15)):
        tilt, direction = rng.uniform([0.0, -math.pi], [math.radians(10), math.pi])
        scene = with_block(scene, name, [0.45, y, 0.0])
        rpy = [tilt * math.cos(direction), tilt * math.sin(direction), 0.0]
        pose = Pose.from_rpy(scene.local_pose(name).translation, rpy)
        height = 0.025 + rng.uniform(-0.003, 0.015) - lowest_height(scene, name, pose)
        scene = scene.set_pose(name, Pose([0.0, 0.0, height]) @ pose)
    plate = tk.graph.AttachedShape(tk.graph.Box([0.25, 0.25, 0.01]))
    pose = Pose([0.05, -0.3, 0.03])
    scene = scene.add_frame("plate", "table", pose=pose, classes=["surface"], shapes=[plate])
    goal = "(and (on a plate) (on b plate))"
    result = tk.plan(scene, domain="kitchen", goal=goal, options=PlanningOptions(time_limit=90.0))
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    for name in "ab":
        axes = np.abs(result.plan.final_scene.pose(name).rotation)
        assert axes[2].max() > math.cos(0.05)
    simulated = tk.simulate(result.plan)
    assert simulated.is_successful, simulated.notes
    assert any("under gravity" in str(note) for note in simulated.notes)


def test_the_note_has_the_difference(caplog: pytest.LogCaptureFixture) -> None:
    """Planner and validator name the object and what it does, which is not a problem."""
    plan = solve(scene_with_block(0.3, -0.2, gap=0.012), "(holding a)")
    note = (
        "at the start, object 'a' has its bottom 12 mm above the top of 'table', on which it should"
        " stand; it is accepted as it stands"
    )
    assert caplog.messages == [note]
    assert note in tk.validate_plan(plan).assumptions


def test_a_floating_object_beyond_the_tolerance_names_the_option() -> None:
    """The error has the option; with a larger one, planner and validator accept it."""
    scene = scene_with_block(0.3, -0.2, gap=0.03)
    with pytest.raises(
        SceneError,
        match=r"'a' has its bottom 30 mm above .*; a start may differ by up to start_floating = 0",
    ):
        solve(scene, "(holding a)")
    plan = solve(scene, "(holding a)", start_floating=0.04)
    assert not tk.validate_plan(plan).is_valid
    assert tk.validate_plan(plan, start_tolerances=StartTolerances(floating=0.04)).is_valid


def test_a_sunk_object_beyond_the_tolerance_names_the_option() -> None:
    """The collision with the support names the option."""
    scene = scene_with_block(0.3, -0.2, gap=-0.008)
    with pytest.raises(CollisionError, match=r"start_sinking = 0.005 m of an object in its supp"):
        solve(scene, "(holding a)")
    plan = solve(scene, "(holding a)", start_sinking=0.01)
    report = tk.validate_plan(plan, start_tolerances=StartTolerances(sinking=0.01))
    assert report.is_valid, report.problems


def test_an_object_beside_all_regions_is_rejected() -> None:
    """No region is below it."""
    with pytest.raises(SceneError, match="reaches 70 mm beyond the edge of 'table'"):
        solve(scene_with_block(0.545, -0.2), "(holding a)")


def test_blocks_of_towers_are_taken_as_they_stand() -> None:
    """A floating block is picked up; nothing is stacked on it before it rests."""
    scene = blocks_scene({"a": (0, 0), "b": (2, 0)}, table=0.4)
    floating = scene.set_pose("b", scene.local_pose("b") @ Pose([0.0, 0.0, 0.012]))
    assert [str(action) for action in solve(floating, "(holding b)", "blocks").actions] == [
        "(pick-up b table__2__0)"
    ]
    plan = solve(floating, "(on a b)", "blocks")
    assert tk.validate_plan(plan).is_valid
    assert [action.name for action in plan.actions][:2] == ["pick-up", "put-down"]
    assert plan.actions[0].arguments[0] == "b"


def test_the_validator_rejects_a_placement_that_does_not_rest() -> None:
    """A plan whose object is released 10 mm over the edge is invalid."""
    scene = scene_with_block(0.3, -0.2)
    plan = solve(with_plate(scene), "(on a plate)")
    step = plan.steps[1]
    release = next(s for s in step.segments if s.kind is SegmentKind.RELEASE)
    assert release.reparenting is not None
    pose = release.reparenting.pose
    moved = Pose([0.085, 0.0, pose.translation[2]])
    changed = replace(release, reparenting=replace(release.reparenting, pose=moved))
    segments = tuple(changed if s is release else s for s in step.segments)
    end = step.scene.set_pose("a", moved)
    forged = replace(plan, steps=(plan.steps[0], replace(step, segments=segments, scene=end)))
    problems = tk.validate_plan(forged).problems
    assert any("a placed object does not rest: " in problem for problem in problems)


def test_the_simulator_reports_the_fall() -> None:
    """The object falls before the plan begins, which is a note; the plan succeeds."""
    scene = with_plate(scene_with_block(0.3, -0.2, gap=0.01))
    report = tk.simulate(solve(scene, "(on a plate)"))
    assert report.is_successful, report.notes
    assert "before the plan: 'a' moved by 9" in str(report.notes[0]) or "10." in str(
        report.notes[0]
    )
