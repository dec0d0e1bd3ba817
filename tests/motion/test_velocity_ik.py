"""Differential kinematics: Jacobians against pinocchio and finite motion, limits by what holds at the largest share."""

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
def test_jacobians_and_twists_are_those_of_pinocchio(robot: str) -> None:
    """Of frames all over the robot, local, in the world's axes, and about the world's origin; to 1e-10."""
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
                found = twist_jacobian(scene, frame, q=q, at=at, axes=axes)
                expected = pinocchio.getFrameJacobian(model, data, number, kind)[:, speeds]
                np.testing.assert_allclose(found.matrix[:, index], expected, atol=1e-10)
                moved = pinocchio.getFrameVelocity(model, data, number, kind).vector
                np.testing.assert_allclose(
                    np.concatenate(found.twist(qd).numbers), moved, atol=1e-10
                )
                same = twist(scene, frame, q=q, qd=qd, expression=Expression(at=at, axes=axes))
                assert same.coord == found.coord
                np.testing.assert_allclose(np.concatenate(same.numbers), moved, atol=1e-10)


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_limits_hold_and_the_direction_is_kept(seed: int) -> None:
    """Any twist of the Panda's hand: within limits, along the twist, as fast as certified, as far as dt allows."""
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
    found = velocity_ik(scene, wanted, q=q, joints=arm.joints, dt=dt)
    assert 0.0 <= found.fraction <= 1.0
    others = np.setdiff1d(np.arange(len(q)), columns)
    assert not found.qd[others].any()
    limits = scene.velocity_limits[columns]
    assert np.all(np.abs(found.qd[columns]) <= limits)
    if dt is not None:
        assert np.all(q[columns] + dt * found.qd[columns] <= upper + 1e-12)
        assert np.all(q[columns] + dt * found.qd[columns] >= lower - 1e-12)
    given_twist = twist(
        scene, "panda_grasptarget", q=q, qd=found.qd, expression=Expression(axes=coord.coord)
    )
    vector = np.concatenate(wanted.numbers)
    np.testing.assert_allclose(
        np.concatenate(given_twist.numbers),
        found.fraction * vector,
        atol=2e-7 * max(1.0, np.abs(vector).max()),
    )
    if found.fraction < 0.999:  # a joint is at a limit, or the arm is singular
        at_limit = np.isclose(np.abs(found.qd[columns]), limits, rtol=1e-5)
        room = (
            np.zeros(7, dtype=bool)
            if dt is None
            else np.isclose(q[columns] + dt * found.qd[columns], lower)
            | np.isclose(q[columns] + dt * found.qd[columns], upper)
        )
        jacobian = twist_jacobian(
            scene, "panda_grasptarget", q=q, axes=coord.coord, joints=arm.joints
        ).matrix
        assert at_limit.any() or room.any() or np.linalg.svd(jacobian)[1][-1] < 1e-3


def test_a_straight_line_at_constant_speed() -> None:
    """The Panda's tool follows a line of 20 cm in 2 s, without turning; its joints stay near rest otherwise."""
    scene = tk.load_scene("panda_table")
    arm = tk.load_manipulator("panda")
    q, dt = arm.ready_configuration(scene), 0.01
    start = scene.pose(arm.tool, relative_to="world", q=q)
    line = SemanticTwist(
        TwistCoord(f"{arm.tool}|{scene.body(arm.tool)}", "world", "[world]"), [0.0, 0.1, 0, 0, 0, 0]
    )
    for _ in range(200):
        found = velocity_ik(scene, line, q=q, joints=arm.joints, dt=dt)
        assert found.status is VelocityIkStatus.SOLVED
        q = q + dt * found.qd
    end = scene.pose(arm.tool, relative_to="world", q=q)
    np.testing.assert_allclose(end.translation - start.translation, [0, 0.2, 0], atol=5e-4)
    assert start.distance(Pose(start.translation, end.quat_xyzw))[1] < 1e-3


def test_a_redundant_arm_moves_as_wished() -> None:
    """With a wish, the self-motion of the seven joints follows it; the tool does not notice."""
    scene = tk.load_scene("panda_table")
    arm = tk.load_manipulator("panda")
    q, columns = arm.ready_configuration(scene), arm.joint_indices(scene)
    still = SemanticTwist(TwistCoord("panda_hand|panda_hand", "world", "[world]"), np.zeros(6))
    jacobian = twist_jacobian(scene, "panda_hand", q=q, joints=arm.joints).matrix
    null = np.linalg.svd(jacobian)[2][-1]
    wish = np.zeros(len(q))
    wish[columns] = 0.3 * null
    found = velocity_ik(scene, still, q=q, joints=arm.joints, nominal_qd=wish)
    np.testing.assert_allclose(found.qd[columns], 0.3 * null, atol=1e-6)
    assert found.status is VelocityIkStatus.SOLVED


def test_a_moving_base_is_made_up_for() -> None:
    """The hand stands still in the world although the base drives: the joints move against it."""
    scene = SceneGraph("world").add_frame("base", "world", joint=Free())
    for k, axis in enumerate(([0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1])):
        scene = scene.add_frame(
            f"l{k}", f"l{k - 1}" if k else "base", pose=Pose([0.2, 0, 0.3]), joint=Revolute(axis)
        )
    scene = scene.set_twist("base", [0.1, 0, 0, 0, 0, 0.05], relative_to_body="world")
    q = np.array([0.3, 0.5, -0.4, 0.2, 0.6, -0.1])
    found = velocity_ik(
        scene, SemanticTwist(TwistCoord("l5|l5", "world", "[world]"), np.zeros(6)), q=q
    )
    assert found.status is VelocityIkStatus.SOLVED
    assert np.abs(found.qd).max() > 0.01
    np.testing.assert_allclose(
        np.concatenate(twist(scene, "l5", q=q, qd=found.qd).numbers), np.zeros(6), atol=1e-6
    )


def test_two_arms_relative_to_each_other() -> None:
    """The Jacobian of one hand relative to the other is that of both arms, by finite motion."""
    scene = tk.load_scene("baxter_trays")
    rng = np.random.default_rng(4)
    q, qd, step = (
        rng.uniform(-0.5, 0.5, len(scene.joint_names)),
        rng.normal(size=len(scene.joint_names)),
        1e-6,
    )
    found = twist_jacobian(scene, "left_gripper", relative_to="right_gripper", q=q).twist(qd)
    before, after = (
        scene.pose("left_gripper", relative_to="right_gripper", q=q + s * step * qd).translation
        for s in (-1, 1)
    )
    np.testing.assert_allclose(found.numbers[0], (after - before) / (2 * step), atol=1e-6)


def test_what_cannot_be_asked() -> None:
    """Unknown names, other trees, and no time at all."""
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
