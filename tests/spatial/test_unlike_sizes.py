"""Uncertain poses of very different sizes, with unknown and exact parts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

from tmkit._core import log_each
from tmkit.spatial import (
    GaussianPose,
    JointGaussianPose,
    Pose,
    PoseMeasurement,
    PositionMeasurement,
    compose,
    condition,
    covariance_root,
    fuse,
    sample,
)

Array = NDArray[np.float64]


def _links(reach: float, deviation: float) -> list[GaussianPose]:
    rng = np.random.default_rng(1)
    steps = [np.r_[rng.normal(size=3) * reach, rng.normal(size=3)] for _ in range(3)]
    return [GaussianPose(Pose.exp(step), deviation**2 * np.eye(6)) for step in steps]


@pytest.mark.parametrize("reach", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("deviation", [1e-2, 1e-4, 1e-6, 1e-9])
def test_conditioning_and_fusion_come_to_rest(reach: float, deviation: float) -> None:
    """The iteration ends at a step of the size of rounding, for errors of 0.1 mm."""
    links = _links(reach, deviation)
    rng = np.random.default_rng(2)
    seen = GaussianPose(
        compose(links).mean @ Pose.exp(rng.normal(size=6) * deviation), deviation**2 * np.eye(6)
    )
    found = condition(links, PoseMeasurement(seen))
    assert found.is_converged
    assert found.iterations < 20
    fused = fuse([compose(links), seen])
    assert fused.is_converged
    assert fused.iterations < 20
    off = np.array((fused.pose.mean.inverse() @ found.pose.mean).log())
    np.testing.assert_allclose(
        off, 0.0, atol=deviation * 0.5 * (1.0 + reach) * deviation + 1e-13 * reach
    )


def test_a_short_step_of_a_wide_error_is_not_the_last() -> None:
    """Only rounding ends the turns before the tolerance: with wide errors all of them are made."""
    links = _links(1.0, 0.3)
    seen = PoseMeasurement(
        GaussianPose(compose(links).mean @ Pose.exp([0.3, 0, 0, 0.5, 0, 0]), 0.01 * np.eye(6))
    )
    short, exact = (
        condition(links, seen),
        condition(links, seen, max_iterations=200, tolerance=1e-15),
    )
    assert short.is_converged
    np.testing.assert_allclose(short.correction, exact.correction, atol=1e-11)


@pytest.mark.parametrize("unknown", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("where", ["linear", "angular", "z, roll and pitch"])
def test_what_nobody_knows_does_not_hide_what_is_known(unknown: float, where: str) -> None:
    """A huge variance of an unknown part does not change the covariance of other parts."""
    places = {"linear": [0, 1, 2], "angular": [3, 4, 5], "z, roll and pitch": [2, 3, 4]}[where]
    variances = np.full(6, 1e-6)
    variances[places] = unknown
    root = covariance_root(np.diag(variances))
    assert root.shape == (6, 6)
    np.testing.assert_allclose(np.diag(root @ root.T), variances, rtol=1e-12)
    known = [k for k in range(6) if k not in places]
    prior, seen = (
        GaussianPose(Pose(), np.diag(variances)),
        GaussianPose(Pose.exp([0.001] * 6), 1e-6 * np.eye(6)),
    )
    found = condition([prior], PoseMeasurement(seen))
    covariance = np.linalg.inv(np.diag(1.0 / variances) + 1e6 * np.eye(6))
    np.testing.assert_allclose(np.diag(found.pose.covariance), np.diag(covariance), rtol=2e-3)
    np.testing.assert_allclose(found.correction[known], 0.0005, rtol=2e-3)
    np.testing.assert_allclose(found.correction[places], 0.001, rtol=2e-3)


def test_what_nobody_knows_is_drawn_beside_what_is_known() -> None:
    """Samples have the deviations of all parts."""
    variances = np.array([1e9, 1e9, 1e9, 1e-6, 1e-6, 1e-6])
    drawn = log_each(sample(GaussianPose(Pose(), np.diag(variances)), 2000, seed=0))
    np.testing.assert_allclose(drawn[:, 3:].std(axis=0), 1e-3, rtol=0.1)


def test_roots_of_unlike_variances_have_their_rank() -> None:
    """Correlated parts of very different sizes keep their rank."""
    vector = np.array([1e4, 2e4, 0.0, 1e-4, 0.0, -3e-4])
    assert covariance_root(np.outer(vector, vector)).shape == (6, 1)
    near_zero = np.diag([1e9, 1e-6, 1e-17, 0.0, 1.0, 1.0])
    root = covariance_root(near_zero)
    assert root.shape == (6, 4)
    np.testing.assert_allclose(root @ root.T, np.diag([1e9, 1e-6, 0, 0, 1, 1]), rtol=1e-12, atol=0)


def test_exactly_known_parts_beside_unknown_ones_are_contradicted() -> None:
    """A part that is known exactly stays so, however great the others are."""
    prior = GaussianPose(Pose(), np.diag([1e9, 1e9, 0.0, 0.0, 0.0, 1e-6]))
    with pytest.raises(ValueError, match="contradicts the exact prior"):
        condition([prior], PositionMeasurement([1.0, 2.0, 3.0], np.zeros((3, 3))))
    found = condition([prior], PositionMeasurement([1.0, 2.0, 0.0], np.zeros((3, 3))))
    np.testing.assert_allclose(found.pose.mean.translation, [1, 2, 0], atol=1e-9)


def test_a_pose_relative_to_itself_is_exact() -> None:
    """The error of a pose has all in common with itself."""
    poses = JointGaussianPose.independent(_links(1.0, 0.1))
    itself = poses.relative(1, relative_to=1)
    assert not itself.covariance.any()
    assert itself.mean.is_close(Pose())


def test_matrices_of_exponentials_are_poses() -> None:
    """Rounding in the last row is accepted as in the rotation; larger errors are rejected."""
    xi = np.array([0.3, -1.2, 0.7, 0.5, 0.4, -0.9])
    hat = np.zeros((4, 4))
    hat[:3, :3] = [[0, -xi[5], xi[4]], [xi[5], 0, -xi[3]], [-xi[4], xi[3], 0]]
    hat[:3, 3] = xi[:3]
    matrix = expm(hat)
    matrix[3] += [1e-16, -1e-15, 1e-14, 1e-15]
    assert Pose.from_matrix(matrix).is_close(
        Pose.exp(xi), translation_tolerance=1e-14, rotation_tolerance=1e-14
    )
    matrix[3, 0] = 1e-6
    with pytest.raises(ValueError, match="the last row of a rigid transform"):
        Pose.from_matrix(matrix)
