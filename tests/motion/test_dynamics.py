"""Gravity torques: known values, pinocchio, and the checks of planner and validator."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.gantry import GANTRY, gantry_scene, with_block
from support.motion_limits import torque_shares
from support.pinocchio_oracle import robot_path, robot_scene

import tmkit as tk
from tmkit.errors import ConfigurationError, RobotError
from tmkit.graph import Inertia, Prismatic, Revolute, SceneGraph
from tmkit.motion.dynamics import (
    TorqueLimits,
    effort_faults,
    gravity_torques,
    inverse_dynamics,
    torque_fault,
)
from tmkit.motion.timing import time_path
from tmkit.robots import Manipulator, load_manipulator
from tmkit.spatial import Pose

BENCHES = {"panda": ("panda_table", "blocks1"), "iiwa": ("iiwa_table", "blocks1")}
PENDULUM = Manipulator(
    "pendulum", "post", "rod", "rod", ("swing",), {"swing": 0.0}, gripper_kind="suction"
)


def pendulum(effort: float, mass: float = 2.0) -> SceneGraph:
    """Return a rod with its mass at x = 0.5 m, whose joint lifts it about the -y axis."""
    scene = (
        SceneGraph()
        .add_frame("post", "world")
        .add_frame(
            "rod",
            "post",
            joint=Revolute([0.0, -1.0, 0.0], lower=-3.0, upper=3.0, effort=effort, name="swing"),
        )
    )
    return scene.set_inertia("rod", Inertia(mass, [0.5, 0.0, 0.0]))


def test_a_pendulum_has_the_torque_m_g_l_cosine() -> None:
    """The torque of a pendulum is known, with the sign of lifting."""
    angles = np.linspace(-1.5, 1.5, 7)[:, None]
    torques = gravity_torques(pendulum(100.0), angles, PENDULUM)
    np.testing.assert_allclose(torques, 2.0 * 9.81 * 0.5 * np.cos(angles), atol=1e-12)


def test_a_prismatic_joint_supports_the_weights_above_it() -> None:
    """The column of a gantry supports column, hand, fingers and a held block."""
    scene = gantry_scene()
    q = GANTRY.ready_configuration(scene)[None]
    forces = gravity_torques(scene, q, GANTRY)[0]
    # z of this joint points down
    np.testing.assert_allclose(forces, [0.0, 0.0, -9.81 * 3.2, 0.0], atol=1e-12)
    held = with_block(scene, "red", [0.0, 0.0, 0.1]).reparent(
        "red", "hand", pose=Pose([0.0, 0.0, -0.12])
    )
    assert gravity_torques(held, q, GANTRY, is_loaded=False)[0, 2] == forces[2]
    assert gravity_torques(held, q, GANTRY)[0, 2] == pytest.approx(
        forces[2] - 9.81 * 500.0 * 0.05**3
    )
    assert gravity_torques(held.set_inertia("red", Inertia(2.0)), q, GANTRY)[0, 2] == pytest.approx(
        -9.81 * 5.2
    )


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
def test_torques_agree_with_pinocchio(robot: str) -> None:
    """Pinocchio reads the same URDF. Inertias of links without mass are ignored."""
    text = re.sub(
        r'(?s)<inertial>((?!</inertial>).)*mass value="0(\.0*)?"/>.*?</inertial>',
        "",
        robot_path(robot).read_text(),
    )
    scene, model = robot_scene(robot), pinocchio.buildModelFromXML(text)
    data = model.createData()
    joints = tuple(name for name in scene.joint_names if "finger" not in name)
    tip = scene.joint_frame(joints[-1])
    arm = Manipulator(
        robot, scene.root(tip), tip, tip, joints, dict.fromkeys(joints, 0.0), gripper_kind="suction"
    )
    lower, upper = np.array(scene.joint_limits).T
    for q in lower + (upper - lower) * np.random.default_rng(1).random((50, len(lower))):
        # the finger that mimics the other has the last joint's value, too
        values = np.full(model.nq, q[-1])
        for name, value in zip(scene.joint_names, q, strict=True):
            values[model.joints[model.getJointId(name)].idx_q] = value
        expected = pinocchio.computeGeneralizedGravity(model, data, values)
        columns = [model.joints[model.getJointId(name)].idx_v for name in joints]
        np.testing.assert_allclose(
            gravity_torques(scene, q[None], arm)[0], expected[columns], atol=1e-11
        )
        speeds, accelerations = np.random.default_rng(2).normal(size=(2, len(joints)))
        rates = np.zeros((2, model.nv))
        rates[:, columns] = speeds, accelerations
        expected = pinocchio.rnea(model, data, values, *rates)[columns]
        torques = inverse_dynamics(scene, q[None], speeds[None], accelerations[None], arm)[0]
        np.testing.assert_allclose(torques, expected, atol=1e-11)


@pytest.mark.parametrize("robot", ["panda", "iiwa", "gantry"])
def test_no_configuration_exceeds_the_torque_bound(robot: str) -> None:
    """The bound detects limits just below the torques of random configurations, with any load."""
    scene = gantry_scene() if robot == "gantry" else tk.load_scene(*BENCHES[robot])
    arm = GANTRY if robot == "gantry" else load_manipulator(robot)
    scene = with_block(scene, "load", [0.0, 0.0, 0.1]).set_inertia(
        "load", Inertia(2.0, [0.1, 0.0, 0.2])
    )
    lower, upper = np.array(scene.joint_limits).T
    q = lower + (upper - lower) * np.random.default_rng(2).random((500, len(lower)))
    for version in (scene, scene.reparent("load", arm.tip, pose=Pose([0.0, 0.1, 0.1]))):
        most = np.max(np.abs(gravity_torques(version, q, arm)), axis=0)
        ready = np.abs(
            gravity_torques(version, arm.ready_configuration(version)[None], arm, is_loaded=False)[
                0
            ]
        )
        for joint, needed, at_rest in zip(arm.joints, most, ready, strict=True):
            if needed > 1.01 * at_rest and needed > 1e-6:
                weak = replace(
                    arm, effort={**dict.fromkeys(arm.joints, 1e6), joint: 0.999 * needed}
                )
                assert any(fault is not None for fault in effort_faults(version, q, weak)), joint


@settings(max_examples=scaled_examples(0.3))
@given(
    st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=4),
    st.floats(0.5, 4.0),
    st.floats(1.02, 2.5),
    st.floats(0.5, 8.0),
    st.floats(0.0, 0.3),
)
def test_a_timed_pendulum_keeps_its_torque_limit(
    angles: list[float], mass: float, margin: float, acceleration: float, moment: float
) -> None:
    """Finite differences of positions at 1 kHz, in the pendulum equation, keep the limit."""
    path, gravity = np.array(angles)[:, None], 9.81 * 0.5 * mass
    scene = pendulum(margin * gravity).set_inertia(
        "rod", Inertia(mass, [0.5, 0.0, 0.0], matrix=moment * np.eye(3))
    )
    torques = TorqueLimits(scene, PENDULUM, np.zeros(1))
    timed = time_path(path, [3.0], acceleration_limits=[acceleration], rate=1000.0, torques=torques)
    rows = timed.positions
    padded = np.concatenate([rows[:1], rows, rows[-1:]])
    second = np.diff(padded, n=2, axis=0) * 1e6
    needed = (0.25 * mass + moment) * second + gravity * np.cos(rows)
    assert np.max(np.abs(needed)) <= margin * gravity
    free = time_path(path, [3.0], acceleration_limits=[acceleration], rate=1000.0)
    assert timed.duration >= free.duration - 1e-9
    (taken,) = torque_shares(
        scene, np.zeros(1), PENDULUM, free.positions, 1000.0, limits=torques.limits
    )
    assert (taken <= 1.0) == (timed.duration == free.duration) or 0.9 < taken < 1.0


def test_lifting_a_mass_takes_the_time_of_its_force() -> None:
    """A slide with 1.1 of its weight as force accelerates at 0.981 and brakes by gravity."""
    scene = (
        SceneGraph()
        .add_frame("rail", "world")
        .add_frame(
            "car",
            "rail",
            joint=Prismatic(
                [0.0, 0.0, 1.0], lower=0.0, upper=9.0, effort=1.1 * 9.81 * 2.0, name="lift"
            ),
        )
    )
    car = Manipulator("car", "rail", "car", "car", ("lift",), {"lift": 0.0}, gripper_kind="suction")
    torques = TorqueLimits(scene.set_inertia("car", Inertia(2.0)), car, np.zeros(1))
    limits: dict[str, Any] = {"acceleration_limits": [5.0], "jerk_limits": [1000.0]}
    for path, most in (([[0.0], [3.0]], 0.981), ([[3.0], [0.0]], 0.981)):
        timed = time_path(path, [9.0], **limits, torques=torques, rate=1000.0)
        up, down = (0.981, 5.0) if path[1][0] > 0.0 else (5.0, 0.981)
        peak = np.sqrt(6.0 / (1.0 / up + 1.0 / down))
        assert timed.duration == pytest.approx(peak / up + peak / down, rel=0.03)
        assert np.max(timed.accelerations) == pytest.approx(most, rel=0.05)


def test_paths_without_a_feasible_timing_are_rejected() -> None:
    """Gravity torques above a limit, and too few columns, raise errors."""
    torques = TorqueLimits(pendulum(9.0), replace(PENDULUM, ready={"swing": 1.2}), np.zeros(1))
    limits: dict[str, Any] = {"acceleration_limits": [1.0], "rate": 100.0}
    with pytest.raises(
        ConfigurationError, match=r"gravity requires 9\.\d+ N m of joint 'swing', whose effort"
    ):
        time_path([[-1.2], [1.2]], [1.0], **limits, torques=torques)
    torques = TorqueLimits(gantry_scene(), GANTRY, GANTRY.ready_configuration(gantry_scene()))
    with pytest.raises(ConfigurationError, match="of an arm with 4 joints, the path has 1 columns"):
        time_path([[-1.2], [1.2]], [1.0], **limits, torques=torques)


def test_the_torque_fault_has_the_worst_configuration() -> None:
    """The torque exceeds the limit between two feasible waypoints; a fraction lowers the limit."""
    path = np.array([[-1.2], [1.2]])
    scene = pendulum(9.0)
    arm = replace(PENDULUM, ready={"swing": 1.2})
    assert torque_fault(scene, path[:1], arm) is None
    match = re.fullmatch(
        r"gravity requires (9\.\d*) N m of joint 'swing', whose effort limit is 9 N m",
        str(torque_fault(scene, path, arm)),
    )
    assert match is not None
    assert 9.0 < float(match[1]) <= 9.81
    assert torque_fault(scene, path, replace(arm, effort={"swing": 10.0})) is None
    assert (
        torque_fault(scene, path, replace(arm, effort={"swing": 10.0}), fraction=0.95) is not None
    )


def test_a_limit_below_the_torque_of_the_empty_arm_is_ignored() -> None:
    """Limits in robot files may be invalid. A load in the hand does not invalidate a limit."""
    assert torque_fault(pendulum(9.0), np.array([[0.0]]), PENDULUM) is None
    assert torque_fault(pendulum(0.0), np.array([[0.0]]), PENDULUM) is None  # no limit is known


def test_infeasible_torques_are_rejected_by_validator_and_planner() -> None:
    """A plan of a strong arm is invalid with the limits of a weak arm, which has no plan."""
    scene, arm = tk.load_scene("panda_table", "blocks2"), load_manipulator("panda")
    strong = tk.plan(
        scene,
        domain="blocks",
        goal="(on a b)",
        robot=arm,
        options=tk.PlanningOptions(suggest=False),
    )
    assert strong.plan is not None
    assert tk.validate_plan(strong.plan).is_valid
    ready = np.abs(gravity_torques(scene, arm.ready_configuration(scene)[None], arm)[0])
    weak = replace(arm, effort={"panda_joint2": 1.05 * ready[1]})
    report = tk.validate_plan(replace(strong.plan, robots=(weak,)))
    assert any(
        "of joint 'panda_joint2', whose effort limit is" in problem for problem in report.problems
    )
    result = tk.plan(
        scene,
        domain="blocks",
        goal="(on a b)",
        robot=weak,
        options=tk.PlanningOptions(max_iterations=3),
    )
    assert result.plan is None
    assert "of joint 'panda_joint2', whose effort limit is" in result.explanation


def test_efforts_of_a_robot_file_are_checked() -> None:
    """Unknown joints and invalid limits raise errors. Without efforts, digests do not change."""
    arm = load_manipulator("panda")
    assert "effort" not in arm.to_dict()
    with pytest.raises(
        RobotError, match=r"effort of joint 'panda_joint1' must be positive, not -1\.0"
    ):
        replace(arm, effort={"panda_joint1": -1.0})
    with pytest.raises(
        RobotError, match="effort names joint 'panda_joint9', which is not one of its joints"
    ):
        replace(arm, effort={"panda_joint9": 1.0})
    strong = replace(arm, effort={"panda_joint1": 200.0})
    assert Manipulator.from_dict(strong.to_dict()) == strong
    limits = strong.effort_limits(tk.load_scene("panda_table"))
    np.testing.assert_array_equal(limits, [200.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
