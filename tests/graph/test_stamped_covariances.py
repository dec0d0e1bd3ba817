"""Covariances of stamped poses: their interpolation, growth, sources, copies and limits."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.gaussian_poses import covariances, poses
from support.stamped_model import Array, histories, model_of, times_in

from tmkit.errors import CapacityError, SceneError, StampError
from tmkit.graph import (
    Free,
    SceneArrays,
    SceneGraph,
    StampedPoses,
    When,
    at_stamp,
    contributions,
    diff,
    gaussian_pose,
)
from tmkit.spatial import GaussianPose, Pose, fit_gaussian, sample
from tmkit.spatial.joint_gaussian import sampling_floor

SMALL = np.diag([1e-4, 4e-4, 1e-4, 1e-4, 1e-4, 9e-4])
LARGE = 4.0 * SMALL[::-1, ::-1]
BETWEEN = st.sampled_from(["interpolated", "screw"])


def tracked(history: StampedPoses) -> SceneGraph:
    """Return a cup on a table, with the poses of a history added one by one."""
    scene = SceneGraph().add_frame("table", "world", pose=Pose.from_rpy([1, 0, 0], [0, 0, 0.5]))
    scene = scene.add_frame("cup", "table", joint=Free())
    for stamp, pose, own in zip(history.stamps, history.poses, history.covariances, strict=True):
        scene = scene.add_stamped_pose("cup", pose, stamp=stamp, covariance=own)
    return scene


# ------------------------------------------------------------------------------- interpolation


@settings(max_examples=scaled_examples(0.5))
@given(st.data(), histories(), BETWEEN, covariances)
def test_interpolation_is_that_of_the_numeric_derivatives(
    data: st.DataObject, history: StampedPoses, policy: str, of_edge: Array
) -> None:
    """At random times the answers are those of a plain model, also of mixed histories."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    scene = scene.set_stamped_poses("cup", history).set_covariance("cup", of_edge)
    for stamp in [*history.stamps.tolist(), data.draw(times_in(history))]:
        found = gaussian_pose(scene, "cup", stamp=When(stamp, policy))
        model_of(history, of_edge).check(found, stamp, policy)
        model_of(history).check(history.gaussian_at(stamp, policy=policy), stamp, policy)


@pytest.mark.parametrize("policy", ["interpolated", "screw"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_interpolation_is_that_of_samples(policy: str, share: float) -> None:
    """Interpolated samples of both ends have the covariance, within the sampling floor."""
    count = 5000
    start, end = Pose.from_rpy([0.2, -0.4, 1], [0.3, 1.1, -0.5]), Pose([1, 0.5, 0.8])
    ends = GaussianPose(start, SMALL / 9), GaussianPose(end, LARGE / 9)
    rows = zip(sample(ends[0], count, seed=1), sample(ends[1], count, seed=2), strict=True)
    drawn = [
        StampedPoses([0, 1], [*map(Pose.from_array, pair)]).at(share, policy=policy).as_array()
        for pair in rows
    ]
    own = [pose.covariance for pose in ends]
    history = StampedPoses([0, 1], [start, end], covariances=own)
    expected = history.gaussian_at(share, policy=policy)
    found = fit_gaussian(np.array(drawn), mean=expected.mean).covariance
    size = np.linalg.norm(expected.covariance)
    floor = sampling_floor(expected.covariance, count)
    assert np.linalg.norm(found - expected.covariance) / size < 2.5 * floor


@given(poses, poses, st.floats(0, 1), covariances)
def test_a_screw_carries_an_error_of_both_ends_unchanged(
    first: Pose, second: Pose, share: float, of_edge: Array
) -> None:
    """An error that all poses share, such as a calibration, is the same at all times."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    scene = scene.add_stamped_pose("cup", first, stamp=0).add_stamped_pose("cup", second, stamp=1)
    scene = scene.set_covariance("cup", of_edge)
    version = at_stamp(scene, When(share, "screw"))
    assert version.noise("cup") == scene.noise("cup")


def test_independent_errors_are_smallest_in_the_middle() -> None:
    """At rest the covariance is (1 - s)^2 S0 + s^2 S1: two errors average out."""
    history = StampedPoses([0, 4], [Pose(), Pose()], covariances=[SMALL, LARGE])
    for policy, stamp in itertools.product(("interpolated", "screw"), (0.0, 1.0, 2.0, 4.0)):
        s = stamp / 4
        found = history.gaussian_at(stamp, policy=policy).covariance
        np.testing.assert_allclose(found, (1 - s) ** 2 * SMALL + s**2 * LARGE, rtol=1e-12)


def test_policies_without_interpolation_take_one_covariance() -> None:
    """The closest, the preceding, or outside of the history the nearer end."""
    history = StampedPoses([0, 1], [Pose(), Pose([1, 0, 0])], covariances=[SMALL, LARGE])
    scene = tracked(history)
    for policy, stamp, expected in (
        ("closest", 0.4, SMALL),
        ("closest", 0.5, LARGE),
        ("preceding", 0.9, SMALL),
        ("preceding", 1.0, LARGE),
        ("clamped", -3.0, SMALL),
        ("clamped", 7.0, LARGE),
    ):
        found = gaussian_pose(scene, "cup", relative_to="table", stamp=When(stamp, policy))
        assert np.array_equal(found.covariance, expected)
        assert history.gaussian_at(stamp, policy=policy) == found
    with pytest.raises(StampError, match=r"has poses from 0 s to 1 s, so none at 1\.5 s is known"):
        history.gaussian_at(1.5)


# ------------------------------------------------------------------------- the edge and its error


@given(histories())
def test_the_edge_has_the_covariance_of_the_newest_pose_with_one(history: StampedPoses) -> None:
    """In whatever order poses come; a pose without a covariance changes no error."""
    own = [matrix for matrix in history.covariances if matrix is not None]
    expected = own[-1] if own else np.zeros((6, 6))
    assert np.array_equal(tracked(history).edge_covariance("cup"), expected)
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    rows = list(zip(history.stamps, history.poses, history.covariances, strict=True))
    newest, *others = reversed(rows)
    for stamp, pose, matrix in [newest, *others]:  # older ones come later, and change no edge
        scene = scene.add_stamped_pose("cup", pose, stamp=stamp, covariance=matrix)
    assert scene.stamped_poses("cup") == history
    expected = np.zeros((6, 6)) if newest[2] is None else newest[2]
    assert np.array_equal(scene.edge_covariance("cup"), expected)
    assert gaussian_pose(scene, "cup", stamp=newest[0]).covariance.tolist() == expected.tolist()


def test_the_newest_error_keeps_its_correlations() -> None:
    """The error of a hand cancels in the pose of the cup that it took, also at the newest stamp."""
    scene = SceneGraph().add_frame("hand", "world", joint=Free()).add_frame("cup", "world")
    scene = scene.add_stamped_pose("hand", Pose([0, 0, 1]), stamp=1.0, covariance=LARGE)
    scene = scene.add_stamped_pose("hand", Pose([0.5, 0, 1]), stamp=2.0, covariance=SMALL)
    held = scene.reparent("cup", "hand")
    found = gaussian_pose(held, "cup", stamp=2.0).covariance
    np.testing.assert_allclose(found, np.zeros((6, 6)), atol=1e-15)
    before = gaussian_pose(held, "cup", stamp=1.0).covariance  # another error of the hand
    assert np.trace(before) > np.trace(SMALL)
    [source] = contributions(at_stamp(scene, 1.0), "hand")
    assert source[0].label == "'hand' in 'world' at 1 s"


@given(histories(smallest=2, mixed=False), st.data())
def test_a_reversed_edge_has_the_inverse_poses(history: StampedPoses, data: st.DataObject) -> None:
    """Making the cup the root of its tree inverts each stamped pose and its covariance."""
    turned = tracked(history).make_root("cup")
    newest = at_stamp(turned, history.stamps[-1])
    assert newest.noise("table") == turned.noise("table")  # the edge still shares its error
    stamp = data.draw(st.sampled_from(history.stamps.tolist()))
    expected = history.gaussian_at(stamp).inverse()
    found = gaussian_pose(turned, "table", relative_to="cup", stamp=stamp)
    assert found.mean.is_close(expected.mean)
    size = max(np.abs(expected.covariance).max(), 1e-12)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-9 * size)


# -------------------------------------------------------------------------------------- growth


def test_extrapolation_grows_from_the_newest_covariance() -> None:
    """It is the newest covariance, that of the twist by the square of the time, and the noise."""
    scene = tracked(StampedPoses([0, 1], [Pose(), Pose()], covariances=[LARGE, SMALL]))
    scene = scene.set_twist("cup", np.zeros(6), relative_to_body="table", covariance=LARGE)
    scene = scene.set_covariance("cup", 9 * SMALL)  # of the present, not of the newest stamp
    when = When(3.0, extrapolate=2.0, acceleration_noise=(0.3, 0.6))
    found = gaussian_pose(scene, "cup", relative_to="table", stamp=when).covariance
    noise = np.diag(np.repeat([0.3, 0.6], 3)) * 2.0**3 / 3.0
    np.testing.assert_allclose(found, SMALL + 4.0 * LARGE + noise, rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_acceleration_noise_between_two_stamps_is_that_of_a_conditioned_motion(
    share: float,
) -> None:
    """A position driven by white acceleration, with unknown velocity, given both ends.

    The oracle is the joint Gaussian of (x(t), x(T)) of the doubly integrated white noise with a
    velocity of variance 1e6, conditioned on x(T).
    """
    duration, density, vague = 2.0, 0.7, 1e6
    t = share * duration

    def cross(a: float, b: float) -> float:
        early, late = min(a, b), max(a, b)
        return density * early**2 * (3 * late - early) / 6 + vague * a * b

    expected = cross(t, t) - cross(t, duration) ** 2 / cross(duration, duration)
    scene = tracked(StampedPoses([10, 10 + duration], [Pose(), Pose([1, 0, 0])]))
    for policy in ("interpolated", "screw", "clamped"):
        when = When(10 + t, policy, acceleration_noise=(density, 0.0))
        found = gaussian_pose(scene, "cup", relative_to="table", stamp=when).covariance
        np.testing.assert_allclose(np.diag(found), [*[expected] * 3, 0, 0, 0], atol=1e-4)
        assert np.trace(found) == pytest.approx(density * duration**3 * (share - share**2) ** 2)
    for policy in ("closest", "preceding"):
        when = When(10 + t, policy, acceleration_noise=(density, 0.0))
        assert not gaussian_pose(scene, "cup", stamp=when).covariance.any()


# ----------------------------------------------------------------------------- values and copies


@given(histories(), covariances)
def test_covariances_are_content(history: StampedPoses, of_edge: Array) -> None:
    """They count in equality, digest and differences, and survive every way of copying."""
    assert pickle.loads(pickle.dumps(history)) == history
    assert hash(pickle.loads(pickle.dumps(history))) == hash(history)
    scene = tracked(history).set_covariance("cup", of_edge)
    plain = StampedPoses(history.stamps.tolist(), history.poses)
    exact = scene.set_stamped_poses("cup", plain)
    has_own = any(matrix is not None for matrix in history.covariances)
    assert (exact != scene) == (exact.digest() != scene.digest()) == (plain != history) == has_own
    copies = [
        pickle.loads(pickle.dumps(scene)),
        exact.apply(diff(exact, scene)),
        SceneArrays(scene).freeze(),
        SceneGraph.from_frames([scene.specification(name) for name in scene.frame_names]),
    ]
    for copy in copies:
        assert copy == scene
        assert copy.digest() == scene.digest()
        assert copy.stamped_poses("cup") == history
        assert copy._defects() == ""
    moved = history.moved(Pose([1, 2, 3]))
    pairs = zip(moved.covariances, history.covariances, strict=True)
    assert all(np.array_equal(a, b) if b is not None else a is None for a, b in pairs)


@settings(max_examples=scaled_examples(0.5))
@given(st.data())
def test_arrays_keep_what_a_scene_keeps(data: st.DataObject) -> None:
    """Random poses with and without covariances, in any order, under small limits."""
    scene = (
        SceneGraph().add_frame("cup", "world", joint=Free()).add_frame("pot", "world", joint=Free())
    )
    arrays = SceneArrays(scene, capacity={"stamps": 12, "noise": 6})
    for _ in range(data.draw(st.integers(1, 12))):
        frame = data.draw(st.sampled_from(["cup", "pot"]))
        stamp, own = data.draw(st.integers(0, 9)), data.draw(st.none() | covariances)
        limits = {"capacity": data.draw(st.integers(1, 5)), "window": 6.0}
        pose = Pose([stamp, 0, 0])
        try:
            scene = scene.add_stamped_pose(frame, pose, stamp=stamp, covariance=own, **limits)
        except StampError:
            with pytest.raises(StampError):
                arrays.add_stamped_pose(frame, pose, stamp=stamp, covariance=own, **limits)
            continue
        arrays.add_stamped_pose(frame, pose, stamp=stamp, covariance=own, **limits)
        assert arrays.stamped_poses(frame) == scene.stamped_poses(frame)
        assert np.array_equal(arrays.edge_covariance(frame), scene.edge_covariance(frame))
        assert arrays._defects() == ""
    assert arrays.freeze().stamped_poses("cup") == scene.stamped_poses("cup")


def test_arrays_without_capacity_for_errors_reject_covariances() -> None:
    """The error names the capacity, and nothing changes."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    arrays = SceneArrays(scene)
    history = StampedPoses([1.0], [Pose()], covariances=[SMALL])
    for edit in (
        lambda: arrays.add_stamped_pose("cup", Pose([1, 0, 0]), stamp=1.0, covariance=SMALL),
        lambda: arrays.set_stamped_poses("cup", history),
    ):
        with pytest.raises(CapacityError, match=r"dimension of noise sources.*capacity 'noise'"):
            edit()
    assert arrays.freeze() == scene
    with pytest.raises(CapacityError, match="noise is 3, but the scene alone needs 6"):
        SceneArrays(tracked(history), capacity={"noise": 3})


def test_a_covariance_of_one_pose_is_replaced() -> None:
    """The others stay; there has to be a pose at the stamp."""
    history = StampedPoses([1, 2], [Pose(), Pose()]).with_covariance(2, SMALL)
    assert history.covariances[0] is None
    assert np.array_equal(history.covariances[1], SMALL)
    assert not history.covariances[1].flags.writeable
    with pytest.raises(StampError, match="the history has no pose at 3 s"):
        history.with_covariance(3, SMALL)


# --------------------------------------------------------------------------------- bad arguments

INVALID = {
    "shape": (np.eye(5), r"must have shape \(6, 6\), not \(5, 5\)"),
    "asymmetric": (np.triu(np.ones((6, 6))), "is not symmetric: two entries that should be equal"),
    "negative": (-np.eye(6), r"is not positive semi-definite: its eigenvalues are \[-1, -1"),
    "nan": (np.full((6, 6), math.nan), "holds nan; only finite numbers"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_covariances_are_named(case: str) -> None:
    """The message names the frame, or the stamp of a history; nothing changes."""
    matrix, message = INVALID[case]
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    arrays = SceneArrays(scene, capacity={"noise": 6})
    for target in (scene, arrays):
        with pytest.raises(SceneError, match=rf"the covariance of 'cup' at 2\.5 s {message}"):
            target.add_stamped_pose("cup", Pose(), stamp=2.5, covariance=matrix)
    assert arrays.freeze() == scene
    with pytest.raises(SceneError, match=f"the covariance at 2 s {message}"):
        StampedPoses([1, 2], [Pose(), Pose()], covariances=[None, matrix])
    with pytest.raises(SceneError, match=f"the covariance at 1 s {message}"):
        StampedPoses([1], [Pose()]).with_covariance(1, matrix)


def test_one_covariance_a_pose() -> None:
    """Fewer or more are an error."""
    with pytest.raises(StampError, match="1 covariances were given for 2 poses"):
        StampedPoses([1, 2], [Pose(), Pose()], covariances=[SMALL])
