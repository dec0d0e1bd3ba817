"""Differential kinematics: Jacobians against pinocchio and finite motion, and limits."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.urdf_comparison import example_robot_data

import tmkit as tk
from tmkit.errors import ConfigurationError, DisconnectedError, UnknownNameError
from tmkit.graph import Expression, Free, Revolute, SceneGraph, joints_between, twist
from tmkit.motion import twist_jacobian, velocity_ik
from tmkit.motion.velocity_ik import VelocityIkStatus
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.spatial import Pose

SEEDS = st.integers(0, 2**32 - 1)
ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "baxter": ("baxter_description/urdf/baxter.urdf", "left_gripper"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "gripper_left_base_link"),
}


@pytest.mark.parametrize("robot", ROBOTS)
def test_jacobians_and_twists_agree_with_pinocchio(robot: str) -> None:
    """Frames of the robot agree to 1e-10, local, in world axes and about the world's origin."""
    file, tip = ROBOTS[robot]
    path = str(example_robot_data() / file)
    scene = tk.load_scene(path, reading=tk.ReadingOptions(meshes="skip"))
    model = pinocchio.buildModelFromUrdf(path)
    data, rng = model.createData(), np.random.default_rng(1)
    # those that mimic are independent there
    order = [name for name in model.names[1:] if name in scene.joint_names]
    index = [scene.joint_names.index(name) for name in order]
    root = scene.root(tip)
    for _ in range(4):
        q = rng.uniform(-1.0, 1.0, len(scene.joint_names))
        qd = rng.normal(size=len(q))
        theirs = pinocchio.neutral(model)
        for name, value in zip(order, q[index], strict=True):
            joint = model.joints[model.getJointId(name)]
            theirs[joint.idx_q : joint.idx_q + joint.nq] = (
                [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
            )
        speeds = [model.joints[model.getJointId(name)].idx_v for name in order]
        velocity = np.zeros(model.nv)
        velocity[speeds] = qd[index]
        pinocchio.forwardKinematics(model, data, theirs, velocity)
        pinocchio.computeJointJacobians(model, data, theirs)
        pinocchio.updateFramePlacements(model, data)
        for frame in (tip, *(str(f) for f in rng.choice(scene.frame_names, 6))):
            is_mimicking = not set(order).issuperset(joints_between(scene, root, frame))
            if is_mimicking or not model.existFrame(frame, pinocchio.FrameType.BODY):
                continue
            number = model.getFrameId(frame, pinocchio.FrameType.BODY)
            for kind, at, axes in (
                (pinocchio.LOCAL, frame, frame),
                (pinocchio.LOCAL_WORLD_ALIGNED, frame, root),
                (pinocchio.WORLD, root, root),
            ):
                result = twist_jacobian(scene, frame, q=q, at=at, axes=axes)
                expected = pinocchio.getFrameJacobian(model, data, number, kind)[:, speeds]
                np.testing.assert_allclose(result.matrix[:, index], expected, atol=1e-10)
                moved = pinocchio.getFrameVelocity(model, data, number, kind).vector
                np.testing.assert_allclose(
                    np.concatenate(result.twist(qd).numbers), moved, atol=1e-10
                )
                same = twist(scene, frame, q=q, qd=qd, expression=Expression(at=at, axes=axes))
                assert same.coord == result.coord
                np.testing.assert_allclose(np.concatenate(same.numbers), moved, atol=1e-10)


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_limits_and_direction_are_kept(seed: int) -> None:
    """Any twist of the Panda's hand keeps limits and direction, with the certified scale."""
    rng = np.random.default_rng(seed)
    scene = tk.load_scene("panda_table")
    arm = tk.load_manipulator("panda")
    columns = arm.joint_indices(scene)
    lower, upper = scene.joint_limits[columns].T
    q = scene.configuration(dict(zip(arm.joints, rng.uniform(lower, upper), strict=True)))
    coord = TwistCoord(
        "panda_grasptarget|panda_grasptarget",
        "world",
        str(rng.choice(["[world]", "[panda_grasptarget]"])),
    )
    wanted = SemanticTwist(coord, rng.normal(size=6) * 10.0 ** rng.uniform(-3, 1))
    dt = None if rng.random() < 0.5 else 0.1
    result = velocity_ik(scene, wanted, q=q, joints=arm.joints, dt=dt)
    assert 0.0 <= result.fraction <= 1.0
    other_columns = np.setdiff1d(np.arange(len(q)), columns)
    assert not result.qd[other_columns].any()
    limits = scene.velocity_limits[columns]
    assert np.all(np.abs(result.qd[columns]) <= limits)
    if dt is not None:
        assert np.all(q[columns] + dt * result.qd[columns] <= upper + 1e-12)
        assert np.all(q[columns] + dt * result.qd[columns] >= lower - 1e-12)
    given_twist = twist(
        scene, "panda_grasptarget", q=q, qd=result.qd, expression=Expression(axes=coord.coord)
    )
    vector = np.concatenate(wanted.numbers)
    np.testing.assert_allclose(
        np.concatenate(given_twist.numbers),
        result.fraction * vector,
        atol=2e-7 * max(1.0, np.abs(vector).max()),
    )
    if result.fraction < 0.999:  # a joint is at a limit, or the arm is singular
        at_limit = np.isclose(np.abs(result.qd[columns]), limits, rtol=1e-5)
        room = (
            np.zeros(7, dtype=bool)
            if dt is None
            else np.isclose(q[columns] + dt * result.qd[columns], lower)
            | np.isclose(q[columns] + dt * result.qd[columns], upper)
        )
        jacobian = twist_jacobian(
            scene, "panda_grasptarget", q=q, axes=coord.coord, joints=arm.joints
        ).matrix
        assert at_limit.any() or room.any() or np.linalg.svd(jacobian)[1][-1] < 1e-3


def test_a_straight_line_at_constant_speed() -> None:
    """The Panda's tool follows a line of 20 cm in 2 s without rotation, with joints near rest."""
    scene = tk.load_scene("panda_table")
    arm = tk.load_manipulator("panda")
    q, dt = arm.ready_configuration(scene), 0.01
    start = scene.pose(arm.tool, relative_to="world", q=q)
    line = SemanticTwist(
        TwistCoord(f"{arm.tool}|{scene.body(arm.tool)}", "world", "[world]"), [0.0, 0.1, 0, 0, 0, 0]
    )
    for _ in range(200):
        result = velocity_ik(scene, line, q=q, joints=arm.joints, dt=dt)
        assert result.status is VelocityIkStatus.SOLVED
        q = q + dt * result.qd
    end = scene.pose(arm.tool, relative_to="world", q=q)
    np.testing.assert_allclose(end.translation - start.translation, [0, 0.2, 0], atol=5e-4)
    assert start.distance(Pose(start.translation, end.quat_xyzw))[1] < 1e-3


def test_a_redundant_arm_follows_a_secondary_velocity() -> None:
    """The self-motion of seven joints follows the given velocity, and the tool does not move."""
    scene = tk.load_scene("panda_table")
    arm = tk.load_manipulator("panda")
    q, columns = arm.ready_configuration(scene), arm.joint_indices(scene)
    still = SemanticTwist(TwistCoord("panda_hand|panda_hand", "world", "[world]"), np.zeros(6))
    jacobian = twist_jacobian(scene, "panda_hand", q=q, joints=arm.joints).matrix
    null = np.linalg.svd(jacobian)[2][-1]
    wish = np.zeros(len(q))
    wish[columns] = 0.3 * null
    result = velocity_ik(scene, still, q=q, joints=arm.joints, nominal_qd=wish)
    np.testing.assert_allclose(result.qd[columns], 0.3 * null, atol=1e-6)
    assert result.status is VelocityIkStatus.SOLVED


def test_a_moving_base_is_compensated() -> None:
    """The hand is at rest in the world while the base drives, by opposite joint velocities."""
    scene = SceneGraph("world").add_frame("base", "world", joint=Free())
    for k, axis in enumerate(([0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1])):
        scene = scene.add_frame(
            f"l{k}", f"l{k - 1}" if k else "base", pose=Pose([0.2, 0, 0.3]), joint=Revolute(axis)
        )
    scene = scene.set_twist("base", [0.1, 0, 0, 0, 0, 0.05], relative_to_body="world")
    q = np.array([0.3, 0.5, -0.4, 0.2, 0.6, -0.1])
    result = velocity_ik(
        scene, SemanticTwist(TwistCoord("l5|l5", "world", "[world]"), np.zeros(6)), q=q
    )
    assert result.status is VelocityIkStatus.SOLVED
    assert np.abs(result.qd).max() > 0.01
    np.testing.assert_allclose(
        np.concatenate(twist(scene, "l5", q=q, qd=result.qd).numbers), np.zeros(6), atol=1e-6
    )


def test_two_arms_relative_to_each_other() -> None:
    """The Jacobian of one hand relative to the other agrees with finite motion of both arms."""
    scene = tk.load_scene("baxter_trays")
    rng = np.random.default_rng(4)
    q, qd, step = (
        rng.uniform(-0.5, 0.5, len(scene.joint_names)),
        rng.normal(size=len(scene.joint_names)),
        1e-6,
    )
    result = twist_jacobian(scene, "left_gripper", relative_to="right_gripper", q=q).twist(qd)
    before, after = (
        scene.pose("left_gripper", relative_to="right_gripper", q=q + s * step * qd).translation
        for s in (-1, 1)
    )
    np.testing.assert_allclose(result.numbers[0], (after - before) / (2 * step), atol=1e-6)


def test_invalid_arguments_are_rejected() -> None:
    """Unknown names, other trees and a zero time step raise errors."""
    scene = tk.load_scene("panda_table").add_body("Moon").add_root("moon", body="Moon")
    q = scene.zero_configuration()
    line = SemanticTwist(TwistCoord("panda_hand|panda_hand", "world", "[world]"), np.ones(6))
    with pytest.raises(ConfigurationError, match="a positive time, not 0 s"):
        velocity_ik(scene, line, q=q, dt=0)
    with pytest.raises(UnknownNameError, match="did you mean 'panda_joint"):
        velocity_ik(scene, line, q=q, joints=["panda_joint"])
    with pytest.raises(UnknownNameError, match="unknown body 'wrld'"):
        velocity_ik(
            scene,
            SemanticTwist(TwistCoord("panda_hand|panda_hand", "wrld", "[world]"), np.ones(6)),
            q=q,
        )
    with pytest.raises(
        DisconnectedError, match="no frame of body 'Moon' is joined to 'panda_hand'"
    ):
        velocity_ik(
            scene,
            SemanticTwist(TwistCoord("panda_hand|panda_hand", "Moon", "[world]"), np.ones(6)),
            q=q,
        )
    with pytest.raises(DisconnectedError, match="no poses join 'moon' to 'panda_hand'"):
        twist_jacobian(scene, "panda_hand", relative_to="moon", q=q)
