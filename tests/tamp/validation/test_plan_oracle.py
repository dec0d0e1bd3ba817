"""A plan of the Panda against pinocchio, an independent kinematics, hull and loader."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.plans import Plan, Segment, SegmentKind

pinocchio = pytest.importorskip("pinocchio")
oracle_module = pytest.importorskip("support.pinocchio_oracle")

STEP = 0.03  # distance between tested configurations [rad]


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Three blocks of which two are stacked, and one is moved along the table."""
    goal = "(and (on a b) (ontable c table__0__-2))"
    result = tk.plan(tk.load_scene("panda_table", "blocks3"), goal=goal, seed=2)
    assert result.plan is not None
    return result.plan


def judge(segment: Segment, scene: SceneGraph, q: NDArray[np.float64]) -> int:
    """Assert that pinocchio finds no collision along a segment; return its configuration count."""
    boxes = {
        name: (
            scene.shapes(name)[0].shape.dimensions,
            scene.pose(name, relative_to="world", q=q).translation,
        )
        for name in ("table", "a", "b", "c")
    }
    exempt = {(e.frame_a, e.frame_b): -math.inf for e in segment.allowed_contacts}
    standing = oracle_module.add_boxes(oracle_module.robot_scene("panda"), boxes)
    oracle = oracle_module.PinocchioOracle(
        "panda", boxes, CollisionWorld(standing, pair_margins=exempt)
    )
    hand = oracle.model.frames[oracle.model.getFrameId("panda_hand")]
    for item in oracle.geometry.geometryObjects:
        if item.name not in boxes:
            continue
        is_held = scene.parent(item.name) == "panda_hand"
        pose = scene.pose(item.name, relative_to="panda_hand" if is_held else "world", q=q)
        item.placement = pinocchio.SE3(pose.rotation, pose.translation)
        if is_held:  # it moves with the hand
            item.parentJoint = hand.parentJoint
            item.placement = hand.placement * item.placement
    oracle.geometry_data = pinocchio.GeometryData(oracle.geometry)
    arm = [scene.joint_names.index(joint) for joint in segment.joint_names]
    count = 0
    for start, end in pairwise(
        segment.path if len(segment.path) > 1 else [*segment.path, *segment.path]
    ):
        for share in np.linspace(0.0, 1.0, max(2, math.ceil(np.max(np.abs(end - start)) / STEP))):
            configuration = np.array(scene.configuration(dict(segment.gripper), base=q))
            configuration[arm] = start + share * (end - start)
            assert not oracle.collides(configuration), (segment, configuration)
            count += 1
    return count


def test_pinocchio_finds_no_collision_along_a_plan(plan: Plan) -> None:
    """Arm, hand, table and blocks collide nowhere on the plan, except where contact is allowed."""
    assert tk.validate_plan(plan).is_valid
    scene, q, count = plan.scene, plan.q, 0
    for step in plan.steps:
        for segment in step.segments:
            count += judge(segment, scene, q)
            scene, q = segment.end(scene, q)
    assert count > 200


def test_pinocchio_finds_the_collision_of_a_falsified_plan(plan: Plan) -> None:
    """A detour through the table is a collision for the oracle too."""
    segment = plan.steps[0].segments[0]
    assert segment.kind is SegmentKind.TRANSIT
    arm = np.array(segment.path[0])
    arm[1] += 1.4
    wrong = replace(segment, path=arm[None], held=None, reparenting=None)
    with pytest.raises(AssertionError, match="transit"):
        judge(wrong, plan.scene, plan.q)
