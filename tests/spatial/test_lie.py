"""Adjoint, Jacobians of the exponential and arrays of poses against power series and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm

from tmkit._core import (
    compose_each,
    exp_each,
    inverse_left_jacobian,
    inverse_right_jacobian,
    left_jacobian,
    log_each,
    right_jacobian,
)
from tmkit.errors import SceneError
from tmkit.spatial import Pose, adjoint

Array = NDArray[np.float64]

# Angles near 0, near 1 (where series end) and near pi as often as in between.
_angles = st.one_of(
    st.floats(0.0, 3.1),
    st.floats(0.0, 2e-3),
    st.sampled_from([0.0, 1e-12, 1e-8, 1e-4, 0.999e-3, 1e-3, 0.999999, 1.0, 1.000001, math.pi]),
    st.floats(1e-9, 1e-3).map(lambda d: math.pi - d),
)
_directions = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: math.hypot(*v) > 0.1)
_linear = st.tuples(*[st.floats(-5.0, 5.0)] * 3)


def _six(
    rho: tuple[float, float, float], direction: tuple[float, float, float], angle: float
) -> Array:
    return np.concatenate([rho, np.asarray(direction) / math.hypot(*direction) * angle])


_xis = st.builds(_six, _linear, _directions, _angles)
_poses = st.builds(Pose.exp, _xis)


def small_adjoint(xi: Array) -> Array:
    """Return the (6, 6) matrix of the bracket with xi."""

    def hat(v: Array) -> Array:
        return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

    return np.block([[hat(xi[3:]), hat(xi[:3])], [np.zeros((3, 3)), hat(xi[3:])]])


@given(_xis)
def test_the_left_jacobian_is_its_power_series(xi: Array) -> None:
    """The left Jacobian is the sum of powers of the bracket over (k+1)!, for every angle."""
    expected, term = np.zeros((6, 6)), np.eye(6)
    for k in range(40):
        expected += term
        term = term @ small_adjoint(xi) / (k + 2)
    np.testing.assert_allclose(left_jacobian(xi), expected, atol=2e-14)


@given(_xis)
def test_jacobians_and_their_inverses_cancel(xi: Array) -> None:
    """Jacobians have their inverses, and the right one at xi is the left one at -xi."""
    np.testing.assert_allclose(left_jacobian(xi) @ inverse_left_jacobian(xi), np.eye(6), atol=1e-13)
    np.testing.assert_allclose(
        right_jacobian(xi) @ inverse_right_jacobian(xi), np.eye(6), atol=1e-13
    )
    assert np.array_equal(right_jacobian(xi), left_jacobian(-xi))


@given(_xis)
def test_the_left_jacobian_is_the_adjoint_times_the_right_one(xi: Array) -> None:
    """A change on the left is a change on the right carried over by the adjoint."""
    np.testing.assert_allclose(
        left_jacobian(xi), adjoint(Pose.exp(xi)) @ right_jacobian(xi), atol=1e-13
    )


@given(_xis, _directions, _directions)
def test_jacobians_are_derivatives_of_exp(
    xi: Array, linear: tuple[float, ...], angular: tuple[float, ...]
) -> None:
    """Jacobians predict the effect of a small change on exp, to second order."""
    change = 1e-6 * np.concatenate([linear, angular])
    changed, start = Pose.exp(xi + change), Pose.exp(xi)
    np.testing.assert_allclose(
        (start.inverse() @ changed).log(), right_jacobian(xi) @ change, atol=3e-11
    )
    np.testing.assert_allclose(
        (changed @ start.inverse()).log(), left_jacobian(xi) @ change, atol=3e-11
    )


@given(_poses, _xis)
def test_the_adjoint_carries_errors_over(pose: Pose, xi: Array) -> None:
    """T exp(xi) is exp(Ad(T) xi) T."""
    other = Pose.exp(adjoint(pose) @ xi) @ pose
    assert (pose @ Pose.exp(xi)).is_close(
        other, translation_tolerance=1e-11, rotation_tolerance=1e-12
    )
    np.testing.assert_allclose(adjoint(pose.inverse()) @ adjoint(pose), np.eye(6), atol=1e-12)


@given(_xis)
def test_exp_and_log_hold_near_zero_and_near_pi(xi: Array) -> None:
    """Exp agrees with the exponential of a matrix, and log undoes it, at every angle up to pi."""
    hat = np.zeros((4, 4))
    hat[:3, :3], hat[:3, 3] = small_adjoint(xi)[:3, :3], xi[:3]
    np.testing.assert_allclose(Pose.exp(xi).as_matrix(), expm(hat), atol=1e-13)
    back = Pose.exp(Pose.exp(xi).log())
    assert back.is_close(Pose.exp(xi), translation_tolerance=1e-13, rotation_tolerance=1e-14)
    if np.linalg.norm(xi[3:]) < math.pi - 1e-6:
        np.testing.assert_allclose(Pose.exp(xi).log(), xi, atol=1e-13)


def test_many_poses_are_single_poses() -> None:
    """Rows go through exp, log and products like single poses, bit for bit; one row serves all."""
    rng = np.random.default_rng(3)
    xi = rng.normal(size=(50, 6))
    poses = exp_each(xi)
    singles = [Pose.exp(row) for row in xi]
    assert np.array_equal(poses, [pose.as_array() for pose in singles])
    assert np.array_equal(log_each(poses), [pose.log() for pose in singles])
    first = Pose.exp([1, 2, 3, 0.1, 0.2, 0.3])
    row = first.as_array()[None]
    assert np.array_equal(compose_each(row, poses), [(first @ pose).as_array() for pose in singles])
    assert np.array_equal(compose_each(poses, row), [(pose @ first).as_array() for pose in singles])
    assert np.array_equal(
        compose_each(poses, poses[::-1]),
        [(a @ b).as_array() for a, b in zip(singles, singles[::-1], strict=True)],
    )
    assert compose_each(poses[:0], row).shape == (0, 7)
    assert not poses.flags.writeable


def test_what_is_no_six_vector_is_rejected() -> None:
    """Shapes and numbers that are not finite are named."""
    with pytest.raises(SceneError, match="xi"):
        left_jacobian([1.0, 2.0])
    with pytest.raises(SceneError, match="finite"):
        right_jacobian([0, 0, 0, math.nan, 0, 0])
    with pytest.raises(SceneError, match=r"shape \(m, 6\)"):
        exp_each(np.zeros((2, 5)))
    with pytest.raises(SceneError, match="as many rows"):
        compose_each(exp_each(np.zeros((2, 6))), exp_each(np.zeros((3, 6))))
