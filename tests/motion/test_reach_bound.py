"""How far poses are out of reach: a proof, and the one that inverse kinematics gives."""

from __future__ import annotations

import numpy as np
import pytest
from support.gantry import GANTRY, gantry_scene

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.motion import IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit.motion.reach_bound import reach_excess, reach_heights, wrist_bound
from tmkit.robots import Manipulator
from tmkit.spatial import Pose


def arms() -> list[tuple[SceneGraph, Manipulator]]:
    """Return a gantry of slides and an arm of turns."""
    return [(gantry_scene(), GANTRY), (tk.load_scene("panda_table"), tk.load_manipulator("panda"))]


@pytest.mark.parametrize("which", [0, 1])
def test_an_excess_is_what_inverse_kinematics_calls_out_of_reach(which: int) -> None:
    """For random poses near and far, a positive excess and the status OUT_OF_REACH go together."""
    scene, arm = arms()[which]
    q = arm.ready_configuration(scene)
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(200):
        pose = Pose(rng.normal(size=3) * rng.uniform(0.3, 2.0), rng.normal(size=4))
        found = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=pose,
            joints=arm.joints,
            q=q,
            settings=IkSettings(restarts=0, max_iterations=1),
        )
        excess = reach_excess(scene, arm, root_from_tool=pose, q=q)
        seen.add(excess > 0.0)
        assert (excess > 1e-5) == (found.status is InverseKinematicsStatus.OUT_OF_REACH)
    assert seen == {True, False}


@pytest.mark.parametrize("which", [0, 1])
def test_where_the_tool_can_be_there_is_no_excess(which: int) -> None:
    """Poses that the tool has at random configurations are within reach; moved away by d, they exceed by d at most."""
    scene, arm = arms()[which]
    limits, columns = scene.joint_limits, arm.joint_indices(scene)
    rng, wrist = np.random.default_rng(2), wrist_bound(scene, arm, q=arm.ready_configuration(scene))
    for _ in range(50):
        q = np.array(arm.ready_configuration(scene))
        q[columns] = rng.uniform(limits[columns, 0], limits[columns, 1])
        pose = scene.pose(arm.tool, relative_to=scene.root(arm.tool), q=q)
        assert reach_excess(scene, arm, root_from_tool=pose, q=q) == 0.0
        assert wrist.excess(pose) < 1e-12
        away = rng.normal(size=3)
        moved = Pose(pose.translation + away, pose.quat_xyzw)
        assert reach_excess(scene, arm, root_from_tool=moved, q=q) <= np.linalg.norm(away)
        assert wrist.excess(moved) <= np.linalg.norm(away) + 1e-12


def test_the_wrist_proves_what_the_length_of_the_arm_does_not() -> None:
    """A tool that points down a metre away is within the length of a Panda, and its wrist is not."""
    scene, arm = arms()[1]
    q = arm.ready_configuration(scene)
    base = scene.pose("panda_link1", relative_to="world", q=q).translation
    target = Pose(base + np.array([1.0, 0.0, -0.21]), [1.0, 0.0, 0.0, 0.0])
    assert reach_excess(scene, arm, root_from_tool=target, q=q) == 0.0
    assert wrist_bound(scene, arm, q=q).excess(target) > 0.1
    found = inverse_kinematics(
        scene,
        arm.tool,
        target_pose=target,
        joints=arm.joints,
        q=q,
        settings=IkSettings(restarts=20),
    )
    assert found.status is InverseKinematicsStatus.NOT_FOUND


def test_an_excess_grows_by_what_the_pose_moves_away() -> None:
    """Straight away from the arm's base, each metre farther is a metre more out of reach."""
    scene, arm = arms()[1]
    q = arm.ready_configuration(scene)
    base = scene.pose("panda_link1", relative_to="world", q=q).translation
    poses = [Pose(base + np.array([x, 0.0, 0.0])) for x in (3.0, 4.0)]
    near, far = (reach_excess(scene, arm, root_from_tool=pose, q=q) for pose in poses)
    assert far - near == pytest.approx(1.0)
    assert near > 1.0


@pytest.mark.parametrize("which", [0, 1])
def test_the_tool_stays_between_its_heights(which: int) -> None:
    """At random configurations of the arm the tool is neither higher nor lower than its bounds."""
    scene, arm = arms()[which]
    heights = reach_heights(scene, arm, q=arm.ready_configuration(scene))
    limits, columns = scene.joint_limits, arm.joint_indices(scene)
    rng = np.random.default_rng(4)
    for _ in range(200):
        q = np.array(arm.ready_configuration(scene))
        q[columns] = rng.uniform(limits[columns, 0], limits[columns, 1])
        pose = scene.pose(arm.tool, relative_to=scene.root(arm.tool), q=q)
        assert heights.lowest - 1e-12 <= pose.translation[2] <= heights.highest + 1e-12
        if heights.up is not None:
            np.testing.assert_allclose(pose.rotate(heights.up), [0.0, 0.0, 1.0], atol=1e-12)


def test_rails_keep_heights_and_turns_about_the_vertical_do_too() -> None:
    """A gantry's tool is as high as its rails less the hand, and never leans; a Panda's may lean."""
    gantry, panda = (
        reach_heights(scene, arm, q=arm.ready_configuration(scene)) for scene, arm in arms()
    )
    assert gantry.highest == pytest.approx(0.8 - 0.12)
    assert gantry.lowest == pytest.approx(-0.12)
    assert gantry.up is not None
    assert panda.up is None
    assert 1.1 < panda.highest < 1.5
