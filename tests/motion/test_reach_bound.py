"""Bound of the distance of poses from the workspace, compared with inverse kinematics."""

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
    """Return a gantry of slides and an arm of revolute joints."""
    return [(gantry_scene(), GANTRY), (tk.load_scene("panda_table"), tk.load_manipulator("panda"))]


@pytest.mark.parametrize("which", [0, 1])
def test_poses_with_an_excess_are_out_of_reach(which: int) -> None:
    """For random poses, a positive excess and the status OUT_OF_REACH are equivalent."""
    scene, arm = arms()[which]
    q = arm.ready_configuration(scene)
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(200):
        pose = Pose(rng.normal(size=3) * rng.uniform(0.3, 2.0), rng.normal(size=4))
        result = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=pose,
            joints=arm.joints,
            q=q,
            settings=IkSettings(restarts=0, max_iterations=1),
        )
        excess = reach_excess(scene, arm, root_from_tool=pose, q=q)
        seen.add(excess > 0.0)
        assert (excess > 1e-5) == (result.status is InverseKinematicsStatus.OUT_OF_REACH)
    assert seen == {True, False}


@pytest.mark.parametrize("which", [0, 1])
def test_reachable_poses_have_no_excess(which: int) -> None:
    """Poses of random configurations have no excess; moved by d, they have at most d."""
    scene, arm = arms()[which]
    limits, columns = scene.joint_limits, arm.joint_indices(scene)
    rng, wrist = np.random.default_rng(2), wrist_bound(scene, arm, q=arm.ready_configuration(scene))
    for _ in range(50):
        q = np.array(arm.ready_configuration(scene))
        q[columns] = rng.uniform(limits[columns, 0], limits[columns, 1])
        pose = scene.pose(arm.tool, relative_to=scene.root(arm.tool), q=q)
        assert reach_excess(scene, arm, root_from_tool=pose, q=q) == 0.0
        assert wrist.excess(pose) < 1e-12
        shift = rng.normal(size=3)
        moved = Pose(pose.translation + shift, pose.quat_xyzw)
        assert reach_excess(scene, arm, root_from_tool=moved, q=q) <= np.linalg.norm(shift)
        assert wrist.excess(moved) <= np.linalg.norm(shift) + 1e-12


def test_the_wrist_gives_a_tighter_bound_than_the_length_of_the_arm() -> None:
    """A tool that points down at 1 m is within the length of a Panda, but its wrist is not."""
    scene, arm = arms()[1]
    q = arm.ready_configuration(scene)
    base = scene.pose("panda_link1", relative_to="world", q=q).translation
    target = Pose(base + np.array([1.0, 0.0, -0.21]), [1.0, 0.0, 0.0, 0.0])
    assert reach_excess(scene, arm, root_from_tool=target, q=q) == 0.0
    assert wrist_bound(scene, arm, q=q).excess(target) > 0.1
    result = inverse_kinematics(
        scene,
        arm.tool,
        target_pose=target,
        joints=arm.joints,
        q=q,
        settings=IkSettings(restarts=20),
    )
    assert result.status is InverseKinematicsStatus.NOT_FOUND


def test_an_excess_grows_with_the_distance_of_the_pose() -> None:
    """The excess grows by one metre if the pose moves away by one metre."""
    scene, arm = arms()[1]
    q = arm.ready_configuration(scene)
    base = scene.pose("panda_link1", relative_to="world", q=q).translation
    poses = [Pose(base + np.array([x, 0.0, 0.0])) for x in (3.0, 4.0)]
    near_excess, far_excess = (reach_excess(scene, arm, root_from_tool=pose, q=q) for pose in poses)
    assert far_excess - near_excess == pytest.approx(1.0)
    assert near_excess > 1.0


@pytest.mark.parametrize("which", [0, 1])
def test_the_height_of_the_tool_has_bounds(which: int) -> None:
    """At random configurations, the height of the tool is within its bounds."""
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


def test_height_and_tilt_of_a_gantry_are_constant() -> None:
    """A gantry's tool has the height of its rails less the hand, and no tilt, unlike a Panda's."""
    gantry, panda = (
        reach_heights(scene, arm, q=arm.ready_configuration(scene)) for scene, arm in arms()
    )
    assert gantry.highest == pytest.approx(0.8 - 0.12)
    assert gantry.lowest == pytest.approx(-0.12)
    assert gantry.up is not None
    assert panda.up is None
    assert 1.1 < panda.highest < 1.5
