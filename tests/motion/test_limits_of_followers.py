"""Limits of mimic joints in solutions, paths, checks, velocities and efforts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit._core import RecheckStatus
from tmkit.errors import ConfigurationError
from tmkit.graph import Continuous, Mimic, Prismatic, Revolute, SceneGraph
from tmkit.motion import (
    CollisionWorld,
    InverseKinematicsStatus,
    PathStatus,
    inverse_kinematics,
    recheck_path,
    search_path,
    twist_jacobian,
    velocity_ik,
)
from tmkit.motion.velocity_ik import VelocityIkStatus
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.robots.mechanisms import frames_on_joints
from tmkit.spatial import Pose

RULE = Mimic("lead", multiplier=2.0, offset=0.2)


def arm(leader: str) -> SceneGraph:
    """Return two links of 1 m about z, of which the second is at 2 lead + 0.2 in [-1, 1]."""
    joint = (
        Continuous([0, 0, 1], name="lead")
        if leader == "continuous"
        else Revolute([0, 0, 1], lower=-3, upper=3)
    )
    scene = SceneGraph().add_frame("lead", "world", joint=joint)
    bent = Revolute([0, 0, 1], lower=-1, upper=1, mimic=RULE)
    scene = scene.add_frame("elbow", "lead", pose=Pose([1, 0, 0]), joint=bent)
    return scene.add_frame("tip", "elbow", pose=Pose([1, 0, 0]))


@pytest.mark.parametrize("leader", ["revolute", "continuous"])
@given(st.floats(-3, 3))
@settings(max_examples=scaled_examples(0.3), deadline=None)
def test_solutions_of_inverse_kinematics(leader: str, value: float) -> None:
    """Solutions are those within the limits of both joints, also after whole turns."""
    scene = arm(leader)
    target = scene.pose("tip", q=[value])
    result = inverse_kinematics(scene, "tip", target_pose=target, joints=["lead"], q=[0.1])
    if -0.6 <= value <= 0.4:
        assert result.status is InverseKinematicsStatus.SOLVED
    if result.status is InverseKinematicsStatus.SOLVED:
        assert -0.6 - 1e-6 <= result.q[0] <= 0.4 + 1e-6
        assert scene.pose("tip", q=result.q).is_close(
            target, translation_tolerance=1e-4, rotation_tolerance=1e-4
        )
    with pytest.raises(
        ConfigurationError, match=r"'lead' is at 0\.5, outside its limits -0\.6 to 0\.4"
    ):
        inverse_kinematics(scene, "tip", target_pose=target, joints=["lead"], q=[0.5])


@pytest.mark.parametrize("leader", ["revolute", "continuous"])
def test_paths_and_their_checks(leader: str) -> None:
    """Starts, goals and waypoints beyond the limits of the follower are rejected."""
    world = CollisionWorld(arm(leader))
    inside = search_path(world, ["lead"], start=[-0.5], goals=[[0.3]])
    assert inside.status is PathStatus.SOLVED
    assert np.all((inside.path >= -0.6) & (inside.path <= 0.4))
    for goal in (0.5, 2 * math.pi, -0.7):
        assert (
            search_path(world, ["lead"], start=[0.0], goals=[[goal]]).status
            is PathStatus.GOAL_OUT_OF_LIMITS
        )
        assert recheck_path(world, [[0.0], [goal]]).status is RecheckStatus.OUT_OF_LIMITS
    assert (
        search_path(world, ["lead"], start=[0.5], goals=[[0.0]]).status
        is PathStatus.START_OUT_OF_LIMITS
    )


@given(st.floats(-4, 4), st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0, 5))
@settings(max_examples=scaled_examples(0.3), deadline=None)
def test_velocities_keep_the_limits_of_followers(
    multiplier: float, of_leader: float, of_follower: float, wanted: float
) -> None:
    """The velocity limit of the leader is min(own, limit of the follower / multiplier)."""
    scene = SceneGraph().add_frame("lead", "world", joint=Prismatic([0, 0, 1], velocity=of_leader))
    rule = Mimic("lead", multiplier=multiplier)
    scene = scene.add_frame(
        "follow", "lead", joint=Revolute([0, 0, 1], velocity=of_follower, mimic=rule)
    )
    most = of_leader if multiplier == 0.0 else min(of_leader, of_follower / abs(multiplier))
    assert scene.velocity_limits.tolist() == pytest.approx([most])
    coord = TwistCoord.from_names(point="follow", body="follow", ref_body="world", coord="world")
    twist = np.asarray(twist_jacobian(scene, "follow", q=[0]).matrix)[:, 0] * wanted
    result = velocity_ik(scene, SemanticTwist(coord, twist), q=[0])
    assert abs(result.qd[0]) <= of_leader * (1 + 1e-9)
    assert abs(multiplier * result.qd[0]) <= of_follower * (1 + 1e-9)
    assert result.qd[0] == pytest.approx(min(wanted, most), abs=1e-6)
    slowed = wanted > most * (1 + 1e-6)
    if abs(wanted - most) > 1e-5:
        assert (result.status is VelocityIkStatus.SLOWED) == slowed


def test_efforts_keep_the_limits_of_followers() -> None:
    """By virtual work, a torque T of the leader is T / |multiplier| of the follower."""
    scene = SceneGraph().add_frame(
        "lead", "world", joint=Revolute([0, 0, 1], effort=9.0, velocity=0.0)
    )
    for name, multiplier, effort, velocity in (
        ("a", -2.0, 3.0, 5.0),
        ("b", 0.5, 0.0, 0.0),
        ("c", 0.0, 1.0, 1.0),
    ):
        rule = Mimic("lead", multiplier=multiplier)
        joint = Revolute([0, 0, 1], effort=effort, velocity=velocity, mimic=rule)
        scene = scene.add_frame(name, "lead", joint=joint)
    assert scene.effort_limits.tolist() == [6.0]
    assert scene.velocity_limits.tolist() == [2.5]


def test_followers_of_followers_move_with_their_leader() -> None:
    """Frames below followers of followers move with the leader."""
    scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("b", "world", joint=Revolute([0, 0, 1], mimic=Mimic("a")))
    scene = scene.add_frame("c", "world", joint=Revolute([0, 0, 1], mimic=Mimic("b")))
    assert frames_on_joints(scene, ["a"]) == ["a", "b", "c"]
    assert frames_on_joints(scene, ["b"]) == ["b"]
