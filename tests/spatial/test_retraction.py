"""Laws of the retraction: inverse, derivatives, other frames of the body, equality to exp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from tmkit._core import inverse_right_jacobian, right_jacobian
from tmkit.errors import SceneError
from tmkit.spatial import Pose, Retraction, adjoint

Array = NDArray[np.float64]

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([1e-2, 0.1, 0.3, 1.0, 1e3])


def covariance_of(random: np.random.Generator, deviations: list[float]) -> Array:
    """Return a covariance with correlated translation and rotation about random axes."""
    turn = Pose.exp([0, 0, 0, *random.normal(size=3)]).rotation
    angular = turn @ np.diag(np.square(deviations)) @ turn.T
    lever = random.normal(size=(3, 3)) * 0.2
    linear = lever @ angular @ lever.T + 1e-4 * np.eye(3)
    return np.block([[linear, lever @ angular], [angular @ lever.T, angular]])


@given(SEEDS, st.tuples(SIZES, SIZES, SIZES))
def test_residual_is_the_inverse(seed: int, deviations: tuple[float, float, float]) -> None:
    """The error of a pose moves the identity to it."""
    random = np.random.default_rng(seed)
    retraction = Retraction(covariance_of(random, list(deviations)))
    pose = Pose.exp(np.r_[random.normal(size=3), 0.5 * random.normal(size=3)])
    error, _ = retraction.residual(pose)
    assert retraction.pose(error).is_close(
        pose, translation_tolerance=1e-8, rotation_tolerance=1e-8
    )


@given(SEEDS, st.tuples(SIZES, SIZES, SIZES), st.integers(0, 5))
def test_derivatives_are_differences(
    seed: int, deviations: tuple[float, float, float], axis: int
) -> None:
    """The Jacobian is that of the pose, and its inverse the derivative of the residual."""
    random = np.random.default_rng(seed)
    retraction = Retraction(covariance_of(random, [1e-2, *deviations[1:]]))
    xi, step = 0.5 * random.normal(size=6), 1e-6 * np.eye(6)[axis]
    here = retraction.pose(xi)
    moved = (here.inverse() @ retraction.pose(xi + step)).log() / 1e-6
    np.testing.assert_allclose(moved, retraction.jacobian(xi)[:, axis], atol=2e-5)
    error, derivative = retraction.residual(here)
    other, _ = retraction.residual(here @ Pose.exp(step))
    np.testing.assert_allclose(
        (other - error) / 1e-6, derivative[:, axis], atol=1e-4 * max(1, np.abs(derivative).max())
    )


@given(SEEDS, st.tuples(SIZES, SIZES, SIZES))
def test_other_frames_of_the_body_move_alike(
    seed: int, deviations: tuple[float, float, float]
) -> None:
    """An error mapped by the adjoint to another frame of the body moves the body equally."""
    random = np.random.default_rng(seed)
    covariance, xi = covariance_of(random, list(deviations)), 0.3 * random.normal(size=6)
    there = Pose.exp(random.normal(size=6))
    carry = adjoint(there.inverse())
    other = carry @ covariance @ carry.T
    moved = there.inverse() @ Retraction(covariance).pose(xi) @ there
    again = Retraction(0.5 * (other + other.T)).pose(carry @ xi)
    assert again.is_close(moved, translation_tolerance=1e-7, rotation_tolerance=1e-7)


@given(SEEDS)
def test_known_orientations_and_single_turns_are_exponentials(seed: int) -> None:
    """The retraction is bitwise exp for a known orientation, or one error direction."""
    random = np.random.default_rng(seed)
    xi = random.normal(size=6)
    known = Retraction(covariance_of(random, [0.2, 0.1, 1e-3]))
    assert known.pose(xi) == Pose.exp(xi)
    np.testing.assert_array_equal(known.jacobian(xi), right_jacobian(xi))
    error, derivative = known.residual(Pose.exp(xi))
    np.testing.assert_array_equal(error, Pose.exp(xi).log())
    np.testing.assert_array_equal(derivative, inverse_right_jacobian(error))
    joint = Retraction(np.outer(xi, xi))
    assert joint.pose(0.7 * xi).is_close(
        Pose.exp(0.7 * xi), translation_tolerance=1e-12, rotation_tolerance=1e-12
    )
    np.testing.assert_allclose(joint.jacobian(0.7 * xi) @ xi, xi, atol=1e-12)


@given(SEEDS)
def test_an_unknown_orientation_has_no_part_in_the_shift(seed: int) -> None:
    """The residual is the translation in the measured axes and the log of the rotation."""
    random = np.random.default_rng(seed)
    pose = Pose.exp(np.r_[random.normal(size=3), 0.8 * random.normal(size=3)])
    error, derivative = Retraction(np.diag([1e-4] * 3 + [1e6] * 3)).residual(pose)
    np.testing.assert_allclose(error, np.r_[pose.translation, pose.log()[3:]], atol=1e-12)
    np.testing.assert_allclose(
        derivative[:3], np.hstack([pose.rotation, np.zeros((3, 3))]), atol=1e-12
    )


@given(SEEDS, st.floats(-3.0, 3.0))
def test_an_unknown_yaw_does_not_change_roll_and_pitch(seed: int, yaw: float) -> None:
    """Rotations about the unknown axis do not change the known parts of the residual."""
    random = np.random.default_rng(seed)
    retraction = Retraction(np.diag([1e-4] * 3 + [1e-4, 1e-4, 1e6]))
    pose = Pose.exp(0.05 * random.normal(size=6))
    error, derivative = retraction.residual(pose)
    turned, _ = retraction.residual(pose @ Pose.exp([0, 0, 0, 0, 0, yaw - error[5]]))
    np.testing.assert_allclose(turned[:5], error[:5], atol=1e-9)
    np.testing.assert_allclose(derivative[:5, 5], 0.0, atol=1e-12)


def test_half_a_turn_has_a_residual() -> None:
    """The residual of a rotation by half a turn about a poorly known axis is finite."""
    error, derivative = Retraction(np.diag([1e-4, 1e-4, 1e6, 1e6, 1e6, 1e-4])).residual(
        Pose.exp([0, 0, 0, np.pi, 0, 0])
    )
    assert np.isfinite(derivative).all()
    np.testing.assert_allclose(np.abs(error[3]), np.pi, atol=1e-12)


def test_what_is_no_covariance_is_rejected() -> None:
    """As for uncertain poses."""
    with pytest.raises(
        SceneError, match=r"covariance is not positive semi-definite: its eigenvalues are \[-1"
    ):
        Retraction(-np.eye(6))
    with pytest.raises(SceneError, match="xi must hold 6 numbers"):
        Retraction(np.eye(6)).pose([0.0, 1.0])
