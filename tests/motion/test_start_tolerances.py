"""Measured starts that are slightly past joint limits."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import Mimic, Prismatic, Revolute, SceneGraph
from tmkit.motion import CollisionWorld, PathStatus, inverse_kinematics, search_path, straight_line
from tmkit.motion.start_tolerances import clamp_to_limits
from tmkit.spatial import Pose


def two_joints() -> SceneGraph:
    """Return a slide in [0, 0.3] m, and a joint in [-1, 1] rad that carries the tip."""
    slide = Prismatic([0, 0, 1], lower=0.0, upper=0.3)
    turn = Revolute([0, 0, 1], lower=-1.0, upper=1.0)
    scene = SceneGraph().add_frame("slide", "world", joint=slide)
    scene = scene.add_frame("turn", "slide", joint=turn)
    return scene.add_frame("tip", "turn", pose=Pose([1, 0, 0]))


@given(st.floats(-0.00009, 0.30009), st.floats(-1.0009, 1.0009))
@settings(max_examples=scaled_examples(0.3), deadline=None)
def test_a_start_within_the_tolerance_is_the_nearest_point_of_the_range(
    slide: float, turn: float
) -> None:
    """The result is the nearest configuration within the limits; it is its own result."""
    scene = two_joints()
    clamped = clamp_to_limits(scene, [slide, turn])
    assert clamped.tolist() == [min(max(slide, 0.0), 0.3), min(max(turn, -1.0), 1.0)]
    assert clamp_to_limits(scene, clamped).tolist() == clamped.tolist()


def test_only_changes_above_rounding_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The warning has the value, the limits and the distance."""
    with caplog.at_level(logging.WARNING):
        clamp_to_limits(two_joints(), [0.0, 1.0 + 1e-7])
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        clamp_to_limits(two_joints(), [-5e-5, 1.0])
    assert caplog.messages == [
        "joint 'slide' starts at -5e-05, outside its limits from 0 to 0.3 by 5e-05 m; it is moved"
        " to the limit"
    ]


def test_a_start_beyond_the_tolerance_names_the_limit_and_the_option() -> None:
    """The message has the value, the limits, the tolerance and its name; other joints are free."""
    scene = two_joints()
    with pytest.raises(
        ConfigurationError,
        match=r"'turn' starts at 1.002, outside its limits from -1 to 1 by 0.002 rad, more than"
        r" the tolerance of 0.001 rad \(start_limit_tolerance = 0.001\)",
    ):
        clamp_to_limits(scene, [0.0, 1.002])
    with pytest.raises(ConfigurationError, match=r"by 0.0002 m, more than the tolerance of 0.0001"):
        clamp_to_limits(scene, [-2e-4, 0.0])
    assert clamp_to_limits(scene, [-2e-4, 0.0], tolerance=0.003).tolist() == [0.0, 0.0]
    assert clamp_to_limits(scene, [-1.0, 2.0], joints=[]).tolist() == [-1.0, 2.0]
    with pytest.raises(UnknownNameError, match=r"'turm'; did you mean 'turn'"):
        clamp_to_limits(scene, [0.0, 0.0], joints=["turm"])


def test_the_limits_of_followers_count() -> None:
    """A leader is moved to the limit of the joint that mimics it."""
    rule = Mimic("turn", multiplier=2.0)
    follower = Revolute([0, 0, 1], lower=-1.0, upper=1.0, mimic=rule)
    scene = two_joints().add_frame("follower", "turn", joint=follower)
    assert clamp_to_limits(scene, [0.0, 0.5004]).tolist() == [0.0, 0.5]


def test_path_searches_start_at_the_limit() -> None:
    """The first row of the path is at the limit; beyond the tolerance the status has the joint."""
    world = CollisionWorld(two_joints())
    start, goal = [0.0, 1.0 + 3e-6], [0.2, -0.5]
    result = search_path(world, ["slide", "turn"], start=start, goals=goal)
    assert result.status is PathStatus.SOLVED
    assert result.path[0].tolist() == [0.0, 1.0]
    past = search_path(world, ["turn"], start=[0.0, 1.002], goals=goal)
    assert (past.status, past.joint) == (PathStatus.START_OUT_OF_LIMITS, "turn")


def test_lines_and_inverse_kinematics_start_at_the_limit() -> None:
    """A seed that is slightly past a limit is moved to the limit."""
    scene = two_joints()
    q, joints = [0.0, 1.0 + 3e-6], ["slide", "turn"]
    target = scene.pose("tip", q=[0.1, 1.0])
    line = straight_line(scene, "tip", start=q, target_pose=target, joints=joints)
    assert line.path[0].tolist() == [0.0, 1.0]
    assert line.fraction == 1.0
    result = inverse_kinematics(scene, "tip", target_pose=target, joints=joints, q=q)
    assert np.all(result.q <= [0.3, 1.0])
    with pytest.raises(ConfigurationError, match=r"outside its limits 0 to 0.3 by more than"):
        straight_line(scene, "tip", start=[-2e-4, 0.0], target_pose=target, joints=joints)


@pytest.mark.parametrize(("past", "status"), [(0.0009, "SOLVED"), (0.0011, "GOAL_OUT_OF_LIMITS")])
def test_a_goal_slightly_past_a_limit_is_moved_to_it(past: float, status: str) -> None:
    """The path ends at the limit, within the tolerance of a start; beyond it is a failure."""
    world = CollisionWorld(two_joints())
    result = search_path(world, ["slide", "turn"], start=[0.1, 0.5], goals=[0.2, -1.0 - past])
    assert result.status is PathStatus[status]
    assert [row[1] for row in result.path[-1:].tolist()] == [-1.0] * len(result.path[-1:])
