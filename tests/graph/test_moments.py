"""Scenes at a stamp: relations, errors, motion, extrapolation and time travel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit._core import StampedPoses, common_stamps
from tmkit.errors import ConfigurationError, SceneError, StampError, UnknownNameError
from tmkit.graph import (
    Expression,
    Free,
    NoiseSource,
    Prismatic,
    Revolute,
    SceneGraph,
    When,
    at_stamp,
    configuration,
    gaussian_pose,
    gaussian_twist,
    integrate,
    joint_velocities,
    relate,
    twist,
)
from tmkit.graph.moments import add_joint_values, pose_through
from tmkit.relations import (
    AngularVelocityCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    TwistCoord,
)
from tmkit.spatial import Pose


def random_pose(rng: np.random.Generator) -> Pose:
    """Return a pose less than half a turn from all others of its kind."""
    return Pose.from_rpy(rng.uniform(-1, 1, 3), rng.uniform(-0.7, 0.7, 3))


def tracked(seed: int = 0) -> SceneGraph:
    """Return a base with a camera, and a cup on a table, with separate stamped poses."""
    rng = np.random.default_rng(seed)
    scene = (
        SceneGraph().add_frame("base", "world").add_frame("camera", "base", pose=random_pose(rng))
    )
    scene = scene.add_frame("table", "world", pose=random_pose(rng)).add_frame(
        "cup", "table", joint=Free()
    )
    scene = scene.add_frame("handle", "cup", pose=random_pose(rng), body="cup")
    for frame, stamps in (("base", (0.0, 1.0, 2.0)), ("cup", (0.2, 1.1, 1.9))):
        for stamp in stamps:
            scene = scene.add_stamped_pose(frame, random_pose(rng), stamp=stamp)
    return scene


@pytest.mark.parametrize("policy", ["interpolated", "screw", "closest", "preceding"])
def test_a_version_of_the_moment(policy: str) -> None:
    """Poses, relations and errors at a stamp equal those of the version at that time."""
    scene = tracked().set_covariance("table", 1e-4 * np.eye(6))
    at = at_stamp(scene, When(1.3, policy=policy))
    for frame in scene.frame_names:
        assert at.pose(frame) == scene.pose(frame, stamp=1.3, policy=policy)
    coord = PoseCoord("{handle}|cup", "{camera}|camera", "[world]")
    for one, other in zip(
        relate(scene, coord, stamp=When(1.3, policy=policy)).numbers,
        relate(at, coord).numbers,
        strict=True,
    ):
        assert np.array_equal(one, other)
    found = gaussian_pose(scene, "handle", relative_to="camera", stamp=When(1.3, policy=policy))
    assert found.mean == at.gaussian_pose("handle", relative_to="camera").mean
    assert np.array_equal(
        found.covariance, at.gaussian_pose("handle", relative_to="camera").covariance
    )


def test_edges_off_the_way_need_no_pose() -> None:
    """Only the path between the frames requires stamped poses at the stamp."""
    scene = tracked().add_frame("lost", "world").set_stamped_poses("lost", StampedPoses())
    found = relate(scene, PositionCoord("handle|cup", "cup|cup", "[cup]"), stamp=99.0).numbers[0]
    assert np.array_equal(found, scene.pose("handle", relative_to="cup").translation)
    assert np.isfinite(twist(scene, "cup", relative_to="camera", stamp=1.0).numbers).all()
    with pytest.raises(StampError, match="frame 'lost' has no stamped pose yet"):
        at_stamp(scene, 1.0)
    with pytest.raises(
        StampError, match=r"frame 'cup' has poses from 0.2 s to 1.9 s, so none at 1.95 s is known"
    ):
        relate(scene, PoseCoord("{cup}|cup", "{base}|base", "[base]"), stamp=1.95)
    with pytest.raises(UnknownNameError, match="cop"):
        relate(scene, PoseCoord("{cop}|cup", "{base}|base", "[base]"), stamp=1.0)
    with pytest.raises(UnknownNameError, match="interpolate"):
        relate(
            scene,
            PoseCoord("{cup}|cup", "{base}|base", "[base]"),
            stamp=When(1.0, policy="interpolate"),
        )


def test_common_stamps() -> None:
    """The interval in which all stamped edges of a way have poses."""
    scene = tracked()
    assert common_stamps(scene, "cup", "camera") == (0.2, 1.9)
    assert common_stamps(scene, "camera", "world") == (0.0, 2.0)
    assert common_stamps(scene, "handle", "cup") is None
    late = scene.add_frame("late", "base").add_stamped_pose("late", Pose(), stamp=5.0)
    assert common_stamps(late, "late", "cup") == (5.0, 1.9)
    empty = scene.set_stamped_poses("cup", StampedPoses())
    assert common_stamps(empty, "cup", "base") == (math.inf, -math.inf)
    with pytest.raises(UnknownNameError, match="cap"):
        common_stamps(scene, "cap", "base")


@pytest.mark.parametrize("policy", ["interpolated", "screw"])
@pytest.mark.parametrize("seed", range(8))
def test_motion_at_a_stamp_is_the_derivative_of_the_pose(policy: str, seed: int) -> None:
    """Twists at a stamp, at any point and in any axes, equal finite differences of poses."""
    scene, stamp, h = tracked(seed), 1.45, 1e-5
    there = [
        scene.pose("handle", relative_to="camera", stamp=stamp + step, policy=policy)
        for step in (-h, 0, h)
    ]
    linear = (there[2].translation - there[0].translation) / (2 * h)
    angular = there[1].rotate(np.array((there[0].inverse() @ there[2]).log())[3:] / (2 * h))
    found = twist(scene, "handle", relative_to="camera", stamp=When(stamp, policy=policy))
    assert np.concatenate(found.numbers) == pytest.approx(
        np.concatenate([linear, angular]), abs=1e-7
    )
    same = relate(
        scene, TwistCoord("handle|cup", "camera", "[camera]"), stamp=When(stamp, policy=policy)
    )
    assert np.allclose(np.concatenate(same.numbers), np.concatenate(found.numbers), atol=1e-12)
    only = relate(
        scene, AngularVelocityCoord("cup", "camera", "[camera]"), stamp=When(stamp, policy=policy)
    )
    assert np.allclose(only.numbers[0], angular, atol=1e-7)
    certain = gaussian_twist(
        scene, TwistCoord("handle|cup", "camera", "[camera]"), stamp=When(stamp, policy=policy)
    )
    assert not certain.covariance.any()


def test_twist_edges_go_before_differences() -> None:
    """A twist edge gives the motion of an edge; a history of one pose gives none."""
    scene = SceneGraph().add_frame("box", "world")
    for stamp, x in ((0.0, 0.0), (1.0, 1.0)):
        scene = scene.add_stamped_pose("box", Pose([x, 0, 0]), stamp=stamp)
    assert twist(scene, "box", stamp=1.0).numbers[0].tolist() == [1, 0, 0]
    said = scene.set_twist("box", [3, 0, 0, 0, 0, 0], relative_to_body="world")
    assert twist(said, "box", stamp=0.5).numbers[0].tolist() == [3, 0, 0]
    one = scene.set_stamped_poses("box", StampedPoses([1.0], [Pose()]))
    with pytest.raises(
        StampError, match="frame 'box' has 1 stamped poses and no twist edge: its motion needs two"
    ):
        twist(one, "box", stamp=1.0)


def test_clamped_poses_stand_still() -> None:
    """Outside of a history the pose at its end, at rest; joints likewise."""
    scene = tracked()
    found = gaussian_pose(scene, "cup", relative_to="table", stamp=When(50.0, policy="clamped"))
    assert found.mean.is_close(scene.local_pose("cup"))
    assert not np.any(
        twist(scene, "cup", relative_to="camera", stamp=When(50.0, policy="clamped")).numbers
    )
    arm = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], name="j"))
    for stamp in (1.0, 2.0):
        arm = add_joint_values(arm, {"j": stamp}, stamp=stamp)
    assert configuration(arm, 9.0, policy="clamped") == joint_velocities(arm, 1.5) * 2.0
    assert joint_velocities(arm, 9.0, policy="clamped") == 0.0
    assert not np.any(twist(arm, "a", stamp=When(9.0, policy="clamped")).numbers)


def belt(*, twist_covariance: float = 0.0, pose_covariance: float = 0.0) -> SceneGraph:
    """Return a box that was last seen at 1 s on a belt, and turns as it goes."""
    scene = (
        SceneGraph()
        .add_frame("box", "world")
        .set_twist("box", [0.5, 0, 0, 0, 0, 0.8], relative_to_body="world")
    )
    scene = scene.add_stamped_pose("box", Pose(), stamp=0.0).add_stamped_pose(
        "box", Pose([1, 0, 0]), stamp=1.0
    )
    if twist_covariance:
        scene = scene.set_twist_noise(
            "box", {NoiseSource(6): math.sqrt(twist_covariance) * np.eye(6)}
        )
    return scene.set_covariance("box", pose_covariance * np.eye(6)) if pose_covariance else scene


def test_after_the_newest_by_twist_edges() -> None:
    """Extrapolation equals integration from the newest pose, up to the given time."""
    scene = belt(twist_covariance=1e-4, pose_covariance=1e-6)
    found = gaussian_pose(scene, "box", stamp=When(1.5, extrapolate=0.5))
    moved = integrate(scene, 0.5).gaussian_pose("box")
    assert found.mean.distance(moved.mean)[0] < 1e-15
    assert np.allclose(found.covariance, moved.covariance, rtol=1e-12, atol=0)
    for stamp, limit in ((1.5, 0.0), (1.5, 0.49), (-0.1, 5.0)):
        with pytest.raises(StampError, match="frame 'box' has poses from 0 s to 1 s"):
            gaussian_pose(scene, "box", stamp=When(stamp, extrapolate=limit))
    still = scene.remove_twist("box")
    with pytest.raises(
        StampError, match=r"no twist edge leads over frame 'box'.* add one with set_twist"
    ):
        gaussian_pose(still, "box", stamp=When(1.5, extrapolate=1.0))
    by_stamps = still.set_twist(
        "box", still.twist_from_stamps("box", first=0, second=1), relative_to_body="world"
    )
    assert gaussian_pose(by_stamps, "box", stamp=When(1.5, extrapolate=1.0)).mean.is_close(
        Pose([1.5, 0, 0])
    )
    for wrong in (
        {"extrapolate": -1.0},
        {"extrapolate": math.nan},
        {"acceleration_noise": (0.0, -1.0)},
    ):
        with pytest.raises(SceneError, match="finite numbers of at least 0"):
            When(1.0, **wrong)  # type: ignore[arg-type]


def test_noise_of_acceleration() -> None:
    """The covariance equals that of a thousand simulated paths with white acceleration noise."""
    scene, dt, steps, density = belt(), 0.3, 100, (0.02, 0.05)
    found = gaussian_pose(
        scene, "box", stamp=When(1.0 + dt, extrapolate=1.0, acceleration_noise=density)
    )
    assert np.allclose(np.diag(found.covariance), np.repeat(density, 3) * dt**3 / 3, rtol=1e-12)
    rng = np.random.default_rng(5)
    h, errors = dt / steps, []
    for _ in range(1000):
        pose, speed = Pose([1, 0, 0]), np.array([0.5, 0, 0, 0, 0, 0.8])
        for _ in range(steps):
            pose = pose @ Pose.exp(speed * h)
            speed = speed + np.sqrt(np.repeat(density, 3) * h) * rng.normal(size=6)
        errors.append(np.array((found.mean.inverse() @ pose).log()))
    ratios = np.mean(np.square(errors), axis=0) / np.diag(found.covariance)
    assert np.all((ratios > 0.85) & (ratios < 1.15))  # 0.15 is 3.4 standard deviations
    before = gaussian_pose(
        scene, "box", stamp=When(1.0, extrapolate=1.0, acceleration_noise=density)
    )
    assert not before.covariance.any()


def test_time_travel() -> None:
    """A pose between two times is the product of both poses through a fixed frame."""
    scene = tracked()
    found = pose_through(
        scene, "cup", stamp=0.5, relative_to="camera", relative_stamp=1.5, fixed="world"
    )
    one = scene.pose("world", relative_to="camera", stamp=1.5)
    assert found == one @ scene.pose("cup", relative_to="world", stamp=0.5)
    with pytest.raises(StampError, match="frame 'cup'"):
        pose_through(
            scene, "cup", stamp=0.1, relative_to="camera", relative_stamp=1.5, fixed="world"
        )


# ------------------------------------------------------------------------ integration with joints


def mobile_arm() -> SceneGraph:
    """Return a base that a twist moves, and an arm of two joints on it."""
    scene = (
        SceneGraph()
        .add_frame("base", "world")
        .set_twist("base", [1, 0, 0, 0, 0, 0.5], relative_to_body="world")
    )
    scene = scene.add_frame(
        "arm", "base", pose=Pose([0, 0, 1]), joint=Revolute([0, 0, 1], name="turn")
    )
    return scene.add_frame(
        "hand", "arm", pose=Pose([0.5, 0, 0]), joint=Prismatic([1, 0, 0], name="reach")
    )


@given(st.floats(-2, 2), st.lists(st.floats(-2, 2), min_size=4, max_size=4))
def test_joints_and_twists_move_together(dt: float, numbers: list[float]) -> None:
    """The base by its twist, the joints at their speed; two steps are one of both times."""
    scene, q, qd = mobile_arm(), numbers[:2], numbers[2:]
    after, there = integrate(scene, dt, q=q, qd=qd)
    assert there == pytest.approx(np.add(q, np.multiply(dt, qd)), abs=1e-12)
    assert after == integrate(scene, dt)
    half, between = integrate(scene, dt / 2, q=q, qd=qd)
    again, there_again = integrate(half, dt / 2, q=between, qd=qd)
    assert there_again == pytest.approx(there, abs=1e-12)
    assert again.pose("hand", q=there_again).distance(after.pose("hand", q=there))[0] < 1e-9


def test_the_motion_is_that_of_the_twist_query() -> None:
    """A small step goes along the twist that the scene has at q and qd."""
    scene, q, qd, h = mobile_arm(), [0.3, 0.2], [0.7, -0.4], 1e-6
    after, there = integrate(scene, h, q=q, qd=qd)
    motion = np.array((scene.pose("hand", q=q).inverse() @ after.pose("hand", q=there)).log()) / h
    found = twist(
        scene, "hand", relative_to="world", q=q, qd=qd, expression=Expression(axes="hand")
    )
    assert motion == pytest.approx(np.concatenate(found.numbers), abs=1e-5)


def test_a_twist_edge_over_a_joint_moves_the_joint() -> None:
    """The joint moves by the twist edge; impossible twists and incomplete states raise errors."""
    scene = SceneGraph().add_frame(
        "door", "world", pose=Pose([1, 0, 0]), joint=Revolute([0, 0, 2], name="hinge")
    )
    scene = scene.set_twist("door", [0, 0, 0, 0, 0, 0.5], relative_to_body="world")
    after, q = integrate(scene, 2.0, q=[0.1], qd=[9.0])
    assert q == pytest.approx([1.1])
    assert after == scene
    torn = scene.set_twist("door", [0.1, 0, 0, 0, 0, 0.5], relative_to_body="world")
    with pytest.raises(
        SemanticError, match="the twist of frame 'door' is one of its joint 'hinge'"
    ):
        integrate(torn, 2.0, q=[0.1], qd=[9.0])
    with pytest.raises(ConfigurationError, match="both q and qd"):
        integrate(scene, 2.0, q=[0.1])  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match=r"2|1"):
        integrate(scene, 2.0, q=[0.1], qd=[1.0, 2.0])
    free = SceneGraph().add_frame("door", "world", joint=Revolute([0, 0, 1], name="hinge"))
    assert integrate(free, 2.0, q=[0.1], qd=[0.5])[1] == pytest.approx([1.1])


def test_motion_at_a_stamp_by_twists_in_both_directions() -> None:
    """A tray without a twist moves by the gripper's twist and the cart's."""
    scene = (
        SceneGraph()
        .add_frame("cart", "world")
        .add_frame("tray", "world")
        .add_frame("gripper", "cart", body="cart")
    )
    scene = scene.set_twist("cart", [1, 0, 0, 0, 0, 1], relative_to_body="world")
    scene = scene.set_twist("gripper", [0, 0, 0, 0, 0, 0.5], relative_to_body="tray")
    for stamp in (0.0, 1.0):
        scene = scene.add_stamped_pose(
            "cart", Pose.from_rpy([stamp, 0, 0], [0, 0, stamp]), stamp=stamp
        )
        scene = scene.add_stamped_pose("tray", Pose([3, stamp, 0]), stamp=stamp)
    for frame, other in (("tray", "world"), ("gripper", "tray"), ("tray", "cart")):
        found = twist(scene, frame, relative_to=other, stamp=0.5)
        expected = twist(at_stamp(scene, 0.5), frame, relative_to=other)
        np.testing.assert_allclose(
            np.concatenate(found.numbers), np.concatenate(expected.numbers), atol=1e-12
        )
    later = at_stamp(scene, When(1.1, extrapolate=0.2)).pose("tray")
    motion = twist(scene, "tray", stamp=1.0, expression=Expression(axes="tray"))
    expected_pose = Pose([3, 1, 0]) @ Pose.exp(0.1 * np.concatenate(motion.numbers))
    assert later.is_close(expected_pose)
