"""Uncertain twists: linear maps of their covariances, and laws of integration."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from support.gaussian_poses import covariances, poses

from tmkit._core import right_jacobian
from tmkit.errors import SceneError
from tmkit.spatial import GaussianPose, GaussianTwist, Pose, adjoint

Array = NDArray[np.float64]

_means = st.tuples(*[st.floats(-2.0, 2.0)] * 6)
_twists = st.builds(GaussianTwist, _means, covariances)


def assert_same(a: GaussianTwist, b: GaussianTwist) -> None:
    """Both have one mean and one covariance, up to rounding."""
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)
    size = max(float(np.abs(a.covariance).max()), float(np.abs(b.covariance).max()))
    np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-12 * size + 1e-30)


@given(_twists, poses, poses)
def test_frames_may_change_in_one_step_or_two(twist: GaussianTwist, a: Pose, b: Pose) -> None:
    """Expressed through b and then a, or through a b: one twist; and back again."""
    assert_same(twist.transform(b).transform(a), twist.transform(a @ b))
    assert_same(twist.transform(a).transform(a.inverse()), twist)


@given(_twists, poses)
def test_a_frame_is_axes_and_a_point(twist: GaussianTwist, pose: Pose) -> None:
    """A change of frame is a rotation of the axes, then a shift of the point to the origin."""
    moved = twist.rotate(pose).shift(-pose.translation)
    assert_same(moved, twist.transform(pose))


@given(_twists, _twists)
def test_independent_twists_add(a: GaussianTwist, b: GaussianTwist) -> None:
    """Means and covariances add; the twist of the reference by the body is the negative."""
    total = a + b
    np.testing.assert_allclose(total.covariance, a.covariance + b.covariance, rtol=1e-12)
    assert np.array_equal((-a).mean, -a.mean)
    assert np.array_equal((-a).covariance, a.covariance)


def test_the_velocity_of_another_point() -> None:
    """A turn about z moves a point on x along y; its deviation grows with the distance."""
    twist = GaussianTwist([0, 0, 0, 0, 0, 1.0], np.diag([0, 0, 0, 0, 0, 0.01]))
    moved = twist.shift([2.0, 0, 0])
    np.testing.assert_allclose(moved.mean, [0, 2, 0, 0, 0, 1])
    np.testing.assert_allclose(np.diag(moved.covariance), [0, 0.04, 0, 0, 0, 0.01])


@given(_twists, st.floats(-2.0, 2.0))
def test_a_bias_is_integrated_by_the_right_jacobian(twist: GaussianTwist, duration: float) -> None:
    """The mean is the exponential; a small change of the twist moves it as the covariance says."""
    moved = twist.integrate(duration)
    assert moved.mean == Pose.exp(twist.mean * duration)
    maps = duration * right_jacobian(twist.mean * duration)
    size = float(np.abs(moved.covariance).max())
    np.testing.assert_allclose(
        moved.covariance, maps @ twist.covariance @ maps.T, atol=1e-12 * size + 1e-30
    )


@given(_twists, st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_white_noise_adds_up_over_time(twist: GaussianTwist, first: float, second: float) -> None:
    """Integrated over two stretches of time one after the other, or over both at once: the same."""
    whole = twist.integrate(first + second, noise="white")
    parts = twist.integrate(first, noise="white") @ twist.integrate(second, noise="white")
    assert whole.mean.is_close(parts.mean, translation_tolerance=1e-12, rotation_tolerance=1e-12)
    size = float(np.abs(whole.covariance).max())
    np.testing.assert_allclose(whole.covariance, parts.covariance, atol=1e-10 * size + 1e-30)


def test_for_a_short_time_bias_grows_with_the_square_and_white_noise_linearly() -> None:
    """To first order in time: S dt^2 and Q dt."""
    twist = GaussianTwist([1, 2, 3, 0.4, 0.5, 0.6], 0.01 * np.eye(6))
    np.testing.assert_allclose(twist.integrate(1e-6).covariance, 1e-14 * np.eye(6), atol=1e-18)
    np.testing.assert_allclose(
        twist.integrate(1e-6, noise="white").covariance, 1e-8 * np.eye(6), atol=1e-12
    )
    assert twist.integrate(0.0, noise="white") == GaussianPose()


@given(_twists, poses)
def test_an_exact_frame_and_one_of_zero_covariance_are_one(
    twist: GaussianTwist, pose: Pose
) -> None:
    """An uncertain frame without uncertainty changes nothing."""
    assert_same(twist.transform(GaussianPose(pose)), twist.transform(pose))
    exact = GaussianTwist(twist.mean).transform(pose)
    np.testing.assert_allclose(exact.mean, adjoint(pose) @ twist.mean, atol=1e-12)
    assert not exact.covariance.any()


def test_twists_are_values() -> None:
    """They compare by content, pickle, cannot be written, and show what they are."""
    twist = GaussianTwist([1, 0, 0, 0, 0, 0.5], 0.01 * np.eye(6))
    other = pickle.loads(pickle.dumps(twist))
    assert other == twist
    assert hash(other) == hash(twist)
    assert twist != GaussianTwist(twist.mean)
    assert twist != 3
    assert not twist.mean.flags.writeable
    assert not twist.covariance.flags.writeable
    assert repr(twist) == "GaussianTwist([1, 0, 0, 0, 0, 0.5], sigma 0.173 m/s, 0.173 rad/s)"


def test_what_is_no_twist_is_rejected() -> None:
    """Shapes, numbers and times that make no sense are named."""
    with pytest.raises(SceneError, match="six finite numbers"):
        GaussianTwist([1, 2, 3])
    with pytest.raises(SceneError, match="eigenvalues"):
        GaussianTwist(np.zeros(6), -np.eye(6))
    with pytest.raises(SceneError, match=r"not -1\.0 and white"):
        GaussianTwist(np.zeros(6)).integrate(-1.0, noise="white")
    with pytest.raises(SceneError, match="not inf and bias"):
        GaussianTwist(np.zeros(6)).integrate(float("inf"))
