"""Distances, gates, ellipsoids and NEES against chi-square tables and samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2
from support.gaussian_poses import random_gaussian_pose

from tmkit.errors import SceneError
from tmkit.spatial import (
    GaussianPose,
    Pose,
    PositionMeasurement,
    chi_square_quantile,
    gate,
    nees,
    nees_of_errors,
    position_covariance,
    position_ellipsoid,
    sample,
)
from tmkit.spatial.consistency import mahalanobis_distance, orientation_ellipsoid, pose_distance

Array = NDArray[np.float64]


@given(st.floats(0.001, 0.999), st.integers(1, 20_000))
def test_quantiles_are_those_of_the_chi_square_distribution(
    probability: float, degrees: int
) -> None:
    """They agree with scipy's distribution."""
    assert chi_square_quantile(probability, degrees) == pytest.approx(
        float(chi2.ppf(probability, degrees)), rel=1e-9
    )


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_distances_are_quadratic_forms(seed: int, rank: int) -> None:
    """The squared distance of a unit-variance error w, mapped by any root, is |w|^2."""
    rng = np.random.default_rng(seed)
    root, w = (
        rng.normal(size=(6, rank)) * np.array([1e3, 1, 1, 1, 1e-3, 1])[:, None],
        rng.normal(size=rank),
    )
    squared, degrees = mahalanobis_distance(root @ w, root @ root.T)
    assert degrees == rank
    assert squared == pytest.approx(float(w @ w), rel=1e-5)


def test_errors_where_there_is_no_variance_are_infinitely_far() -> None:
    """An exact direction admits no error; without one it does not count."""
    covariance = np.diag([1.0, 4.0, 0.0])
    assert mahalanobis_distance([1, 2, 0], covariance) == (2.0, 2)
    assert mahalanobis_distance([1, 2, 1e-3], covariance) == (float("inf"), 2)
    assert mahalanobis_distance(np.zeros(3), np.zeros((3, 3))) == (0.0, 0)
    with pytest.raises(SceneError, match=r"shape \(3,\), not \(2,\)"):
        mahalanobis_distance([1, 2], covariance)


def test_the_distance_of_a_pose_is_one_from_both_sides() -> None:
    """An exact pose gives the distance of its right error; covariances of two poses add."""
    rng = np.random.default_rng(1)
    estimate = random_gaussian_pose(rng, linear=0.1, angular=0.1)
    xi = rng.normal(size=6) * 0.1
    pose = estimate.mean @ Pose.exp(xi)
    assert pose_distance(estimate, pose)[0] == pytest.approx(
        float(xi @ np.linalg.solve(estimate.covariance, xi)), rel=1e-9
    )
    other = GaussianPose(pose, random_gaussian_pose(rng, linear=0.1, angular=0.1).covariance)
    there, back = pose_distance(estimate, other), pose_distance(other, estimate)
    assert there[1] == back[1] == 6
    assert there[0] == pytest.approx(back[0], rel=1e-9)
    assert there[0] < pose_distance(estimate, pose)[0]


def test_a_gate_lets_through_as_many_as_it_says() -> None:
    """The gate accepts its fraction of modelled measurements and rejects an outlier."""
    rng = np.random.default_rng(2)
    pose = random_gaussian_pose(rng, linear=0.01, angular=0.01)
    noise = 1e-4 * np.eye(3)
    accepted = 0
    for row in sample(pose, 2000, seed=3):
        seen = Pose.from_array(row).translation + rng.normal(size=3) * 1e-2
        accepted += gate(pose, PositionMeasurement(seen, noise), probability=0.9).is_accepted
    assert accepted / 2000 == pytest.approx(0.9, abs=0.02)
    outlier = gate(pose, PositionMeasurement(pose.mean.translation + np.array([1.0, 0, 0]), noise))
    assert not outlier.is_accepted
    assert outlier.degrees == 3
    assert outlier.threshold == pytest.approx(float(chi2.ppf(0.997, 3)))
    assert outlier.squared_distance > outlier.threshold


def test_gates_of_exact_things() -> None:
    """An exact measurement of an exact pose is accepted only if it is equal."""
    exact = GaussianPose(Pose([1, 0, 0]))
    assert gate(exact, PositionMeasurement([1, 0, 0], np.zeros((3, 3)))).is_accepted
    assert not gate(exact, PositionMeasurement([1, 0, 0.1], np.zeros((3, 3)))).is_accepted


# ------------------------------------------------------------------------------------------ regions


@pytest.mark.parametrize("probability", [0.5, 0.95])
def test_ellipsoids_hold_as_many_as_they_say(probability: float) -> None:
    """Of samples, the share that lies inside the ellipsoid is its probability."""
    pose = random_gaussian_pose(np.random.default_rng(4), linear=0.01, angular=0.01)
    point = np.array([0.2, 0.1, 0.0])
    drawn = [Pose.from_array(row) for row in sample(pose, 3000, seed=5)]
    position = position_ellipsoid(pose, probability=probability, point=point)
    inside = np.mean([position.contains(there.apply(point)) for there in drawn])
    assert inside == pytest.approx(probability, abs=0.03)
    orientation = orientation_ellipsoid(pose, probability=probability)
    inside = np.mean(
        [orientation.contains((pose.mean.inverse() @ there).log()[3:]) for there in drawn]
    )
    assert inside == pytest.approx(probability, abs=0.03)


def test_ellipsoids_are_axes_and_radii() -> None:
    """Axes are eigenvectors of the covariance, longest first, with scaled deviations as radii."""
    turn = Pose.from_rpy([1, 2, 3], [0, 0, np.pi / 2])
    pose = GaussianPose(turn, np.diag([4.0, 1.0, 0.25, 1e-2, 4e-2, 9e-2]))
    position = position_ellipsoid(pose, probability=0.9)
    np.testing.assert_allclose(position.center, [1, 2, 3])
    np.testing.assert_allclose(
        position.radii, np.sqrt(chi2.ppf(0.9, 3)) * np.array([2.0, 1.0, 0.5])
    )
    np.testing.assert_allclose(np.abs(position.axes[:, 0]), [0, 1, 0], atol=1e-12)
    assert np.linalg.det(position.axes) == pytest.approx(1.0)
    np.testing.assert_allclose(position_covariance(pose), np.diag([1.0, 4.0, 0.25]), atol=1e-12)
    np.testing.assert_allclose(
        orientation_ellipsoid(pose).radii, np.sqrt(chi2.ppf(0.95, 3)) * np.array([0.3, 0.2, 0.1])
    )


def test_flat_ellipsoids() -> None:
    """A region is flat in an exact direction, with the size of fewer degrees of freedom."""
    pose = GaussianPose(Pose(), np.diag([1.0, 1.0, 0, 0, 0, 0]))
    disc = position_ellipsoid(pose, probability=0.9)
    np.testing.assert_allclose(disc.radii, np.sqrt(chi2.ppf(0.9, 2)) * np.array([1.0, 1.0, 0.0]))
    assert disc.contains([1.0, 1.0, 0.0])
    assert not disc.contains([0.0, 0.0, 0.1])
    assert orientation_ellipsoid(pose).radii.tolist() == [0.0, 0.0, 0.0]
    assert orientation_ellipsoid(pose).contains(np.zeros(3))


# --------------------------------------------------------------------------------------------- NEES


def test_an_honest_estimator_is_in_its_band_and_a_boastful_one_is_not() -> None:
    """True covariances are consistent; half is overconfident and twice underconfident."""
    pose = random_gaussian_pose(np.random.default_rng(6), linear=0.1, angular=0.1)
    truths = [Pose.from_array(row) for row in sample(pose, 500, seed=7)]
    for factor, where in ((1.0, 0), (0.5, 1), (2.0, -1)):
        claimed = GaussianPose(pose.mean, factor * pose.covariance)
        result = nees([(claimed, truth) for truth in truths], probability=0.99)
        assert (result.runs, result.degrees) == (500, 6)
        assert result.lower < 6.0 < result.upper
        assert int(result.mean > result.upper) - int(result.mean < result.lower) == where
        assert result.status.value == ("consistent", "overconfident", "underconfident")[where]
        assert result.is_consistent == (where == 0)


def test_nees_of_any_numbers() -> None:
    """The band is the chi-square band of all runs; runs of unequal rank are rejected."""
    result = nees_of_errors([([1.0, 0.0], np.eye(2)), ([0.0, 2.0], np.eye(2))])
    assert result.mean == pytest.approx(2.5)
    assert (result.lower, result.upper) == pytest.approx(tuple(chi2.ppf([0.025, 0.975], 4) / 2))
    with pytest.raises(SceneError, match=r"not \[1, 2\]"):
        nees_of_errors([([1.0, 0.0], np.eye(2)), ([1.0], np.eye(1))])
    with pytest.raises(SceneError, match="equal, positive degrees"):
        nees([])
    with pytest.raises(SceneError, match="0 < probability < 1"):
        nees_of_errors([([1.0], np.eye(1))], probability=1.5)
