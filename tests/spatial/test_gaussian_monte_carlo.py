"""Every closed form of uncertain poses beside samples, with the sampling floor stated.

A covariance of n samples is off by about ``sqrt((tr(S)^2 + tr(S^2)) / n) / |S|`` of its size
(``sampling_floor``): what is asked for is that the closed form lies within a few floors. The suite
takes 40,000 samples, a floor of about 1 %; ``TMKIT_MONTE_CARLO=1000000`` in the environment takes
as many as it says (0.2 %, a minute).
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from support.gaussian_poses import random_chain, random_gaussian_pose, relative_difference

from tmkit._core import compose_each, exp_each, log_each
from tmkit.errors import SceneError
from tmkit.spatial import (
    GaussianPose,
    GaussianTwist,
    JointGaussianPose,
    Pose,
    PoseMeasurement,
    PositionMeasurement,
    adjoint,
    compose,
    condition,
    fit_gaussian,
    fuse,
    nees,
    position_covariance,
    sample,
)
from tmkit.spatial.joint_gaussian import sample_chain, sample_jointly, sampling_floor

Array = NDArray[np.float64]

SAMPLES = int(os.environ.get("TMKIT_MONTE_CARLO", "40000"))


def assert_within_floors(
    covariance: Array, sampled: Array, *, floors: float = 3.0, more: float = 0.0
) -> None:
    """The closed form is within some sampling floors of the samples, plus its truncation error."""
    assert (
        relative_difference(covariance, sampled)
        < floors * sampling_floor(covariance, SAMPLES) + more
    )


def _inverses(poses: Array) -> Array:
    return exp_each(-log_each(poses))


def test_the_floor_is_what_samples_show() -> None:
    """Covariances of Gaussian samples are off by the floor, on average."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    covariance = root @ root.T
    off = []
    for _ in range(200):
        drawn = rng.standard_normal((500, 6)) @ root.T
        off.append(relative_difference(drawn.T @ drawn / 500, covariance) ** 2)
    assert np.sqrt(np.mean(off)) == pytest.approx(sampling_floor(covariance, 500), rel=0.1)
    assert sampling_floor(np.zeros((6, 6)), 10) == 0.0


def test_samples_have_the_mean_and_covariance_they_are_drawn_from() -> None:
    """A fit to samples recovers the distribution, its mean within four deviations."""
    pose = random_gaussian_pose(np.random.default_rng(1), linear=0.1, angular=0.2)
    fitted = fit_gaussian(sample(pose, SAMPLES, seed=1))
    error = (pose.mean.inverse() @ fitted.mean).log()
    assert (np.abs(error) < 4.0 * np.sqrt(np.diag(pose.covariance) / SAMPLES)).all()
    assert_within_floors(pose.covariance, fitted.covariance)
    known = fit_gaussian(sample(pose, SAMPLES, seed=1), mean=pose.mean)
    assert known.mean == pose.mean
    assert_within_floors(pose.covariance, known.covariance)


def test_composition_inverse_and_relative_pose() -> None:
    """Products, inverses and relative poses of small errors have the covariances of first order."""
    a, b = random_chain(2, linear=0.002, angular=0.004, seed=3)
    drawn_a, drawn_b = sample(a, SAMPLES, seed=1), sample(b, SAMPLES, seed=2)
    for closed, drawn in (
        (a @ b, compose_each(drawn_a, drawn_b)),
        (a.inverse(), _inverses(drawn_a)),
        (a.inverse() @ b, compose_each(_inverses(drawn_a), drawn_b)),
    ):
        assert_within_floors(closed.covariance, fit_gaussian(drawn, mean=closed.mean).covariance)


def test_fourth_order_is_nearer_than_first_where_errors_are_large() -> None:
    """For 0.1 rad a link, fourth order is within its sampling floors, first order is not."""
    links = random_chain(8, linear=0.03, angular=0.14, seed=4)
    first, fourth = compose(links), compose(links, order=4)
    sampled = fit_gaussian(sample_chain(links, SAMPLES, seed=5), mean=first.mean).covariance
    off = [relative_difference(pose.covariance, sampled) for pose in (first, fourth)]
    assert off[1] < 0.6 * off[0]
    assert_within_floors(fourth.covariance, sampled, more=0.01)


def test_leaves_that_share_an_edge() -> None:
    """Joint covariance and relative pose of branches equal those of samples."""
    common = random_chain(1, linear=0.003, angular=0.005, seed=6)[0]
    a, b = random_chain(2, linear=0.0003, angular=0.0005, seed=7)
    drawn = [sample(pose, SAMPLES, seed=i) for i, pose in enumerate((common, a, b))]
    leaves = [compose_each(drawn[0], drawn[1]), compose_each(drawn[0], drawn[2])]
    joint = JointGaussianPose.of_branches(common, [a, b])
    errors = np.hstack(
        [
            log_each(compose_each(mean.inverse().as_array()[None], leaf))
            for mean, leaf in zip(joint.means, leaves, strict=True)
        ]
    )
    assert_within_floors(np.array(joint.covariance), errors.T @ errors / SAMPLES)
    relative = joint.relative(1, relative_to=0)
    sampled = fit_gaussian(
        compose_each(_inverses(leaves[0]), leaves[1]), mean=relative.mean
    ).covariance
    assert_within_floors(relative.covariance, sampled)
    dropped = (joint.marginal(0).inverse() @ joint.marginal(1)).covariance
    assert np.trace(dropped) > 5.0 * np.trace(sampled)


def test_joint_samples_have_the_joint_covariance() -> None:
    """Joint samples have the cross-covariance, and equal seeds give equal samples."""
    joint = JointGaussianPose.of_branches(
        *_split(random_chain(3, linear=0.05, angular=0.05, seed=8))
    )
    drawn = sample_jointly(joint, SAMPLES, seed=3)
    errors = np.hstack(
        [
            log_each(compose_each(mean.inverse().as_array()[None], poses))
            for mean, poses in zip(joint.means, drawn, strict=True)
        ]
    )
    assert_within_floors(np.array(joint.covariance), errors.T @ errors / SAMPLES)
    again = sample_jointly(joint, SAMPLES, seed=np.random.default_rng(3))
    assert all(np.array_equal(one, other) for one, other in zip(drawn, again, strict=True))
    product = sample_chain(joint, SAMPLES, seed=3)
    np.testing.assert_allclose(product, compose_each(drawn[0], drawn[1]), atol=1e-14)


def _split(poses: list[GaussianPose]) -> tuple[GaussianPose, list[GaussianPose]]:
    return poses[0], poses[1:]


def test_fused_estimates_are_honest() -> None:
    """The mean squared distance of fused poses from the truth is in its chi-square band."""
    rng = np.random.default_rng(10)
    kinds = [random_gaussian_pose(rng, linear=0.05, angular=0.08) for _ in range(3)]
    kinds[2] = random_gaussian_pose(rng, linear=0.05, angular=0.08, rank=4)
    runs = []
    for _ in range(max(200, SAMPLES // 200)):
        true = Pose.exp(rng.normal(size=6))
        estimates = []
        for kind in kinds[:2]:
            drawn = Pose.from_array(sample(GaussianPose(Pose(), kind.covariance), 1, seed=rng)[0])
            estimates.append(GaussianPose(true @ drawn.inverse(), kind.covariance))
        runs.append((fuse(estimates).pose, true))
    result = nees(runs, probability=0.999)
    assert result.degrees == 6
    assert result.is_consistent, result


def test_conditioned_chains_are_honest() -> None:
    """Posterior covariances of conditioned links are consistent with their errors."""
    rng = np.random.default_rng(11)
    prior = random_chain(3, linear=0.02, angular=0.03, seed=12)
    noise = 1e-4 * np.eye(6)
    runs_path, runs_link = [], []
    for _ in range(max(200, SAMPLES // 200)):
        links = [Pose.from_array(sample(link, 1, seed=rng)[0]) for link in prior]
        whole = links[0] @ links[1] @ links[2]
        seen = whole @ Pose.exp(rng.multivariate_normal(np.zeros(6), noise))
        found = condition(prior, PoseMeasurement(GaussianPose(seen, noise)))
        assert found.is_converged
        runs_path.append((found.pose, whole))
        runs_link.append((found.links.marginal(1), links[1]))
    assert nees(runs_path, probability=0.999).is_consistent
    assert nees(runs_link, probability=0.999).is_consistent


def test_conditioning_is_the_moment_of_weighted_samples() -> None:
    """Prior samples weighted by likelihood have the mean and covariance of the posterior."""
    link = random_gaussian_pose(np.random.default_rng(13), linear=0.02, angular=0.02)
    point, noise = np.array([0.3, 0.0, 0.1]), 4e-4 * np.eye(3)
    seen = link.mean.apply(point) + np.array([0.01, -0.02, 0.015])
    found = condition([link], PositionMeasurement(seen, noise, point=point))
    drawn = sample(link, SAMPLES, seed=14)
    there = np.array([Pose.from_array(row).apply(point) for row in drawn])
    weights = np.exp(-0.5 * np.sum((there - seen) ** 2, axis=1) / 4e-4)
    weights /= weights.sum()
    effective = int(1.0 / np.sum(weights**2))
    errors = log_each(compose_each(found.pose.mean.inverse().as_array()[None], drawn))
    mean = weights @ errors
    covariance = (errors * weights[:, None]).T @ errors
    assert (
        np.abs(mean)
        < 5.0 * np.sqrt(np.diag(covariance) / effective) + 0.01 * np.sqrt(np.diag(covariance))
    ).all()
    floor = sampling_floor(found.pose.covariance, effective)
    assert relative_difference(found.pose.covariance, covariance) < 4.0 * floor + 0.005


def test_the_covariance_of_a_point() -> None:
    """A point of the child scatters in the parent as its covariance says."""
    pose = random_gaussian_pose(np.random.default_rng(15), linear=0.003, angular=0.004)
    point = np.array([0.5, -0.3, 0.2])
    drawn = np.array(
        [Pose.from_array(row).apply(point) for row in sample(pose, SAMPLES // 4, seed=16)]
    )
    scattered = drawn - pose.mean.apply(point)
    sampled = scattered.T @ scattered / len(drawn)
    closed = position_covariance(pose, point=point)
    assert relative_difference(closed, sampled) < 3.0 * sampling_floor(closed, len(drawn)) + 0.01


def test_integrated_twists() -> None:
    """Simulated bias and white noise have the covariances of the integration."""
    rng = np.random.default_rng(17)
    root = 0.01 * rng.normal(size=(6, 6))
    twist = GaussianTwist([0.5, 0.1, -0.2, 0.3, -0.4, 0.6], root @ root.T)
    duration, steps = 1.5, 60
    biased = exp_each(duration * (twist.mean + rng.standard_normal((SAMPLES, 6)) @ root.T))
    closed = twist.integrate(duration)
    assert_within_floors(closed.covariance, fit_gaussian(biased, mean=closed.mean).covariance)
    count, dt = SAMPLES // 8, duration / steps
    moved = exp_each(np.zeros((count, 6)))
    for _ in range(steps):
        moved = compose_each(
            moved,
            exp_each(dt * twist.mean + np.sqrt(dt) * rng.standard_normal((count, 6)) @ root.T),
        )
    closed = twist.integrate(duration, noise="white")
    sampled = fit_gaussian(moved, mean=closed.mean).covariance
    assert (
        relative_difference(closed.covariance, sampled)
        < 3.0 * sampling_floor(closed.covariance, count) + 0.01
    )


def test_transformed_twists() -> None:
    """A twist seen through an uncertain pose scatters as the closed form says."""
    rng = np.random.default_rng(18)
    root = 0.01 * rng.normal(size=(6, 6))
    twist = GaussianTwist([0.5, 0.1, -0.2, 0.3, -0.4, 0.6], root @ root.T)
    pose = random_gaussian_pose(rng, linear=0.01, angular=0.01)
    count = SAMPLES // 8
    drawn = sample(pose, count, seed=rng)
    body = twist.mean + rng.standard_normal((count, 6)) @ root.T
    seen = np.array(
        [adjoint(Pose.from_array(row)) @ one for row, one in zip(drawn, body, strict=True)]
    )
    closed = twist.transform(pose)
    off = seen - closed.mean
    sampled = off.T @ off / count
    assert (
        relative_difference(closed.covariance, sampled)
        < 3.0 * sampling_floor(closed.covariance, count) + 0.01
    )


def test_samples_of_degenerate_poses() -> None:
    """Samples of exact poses are equal; an invalid number or shape of samples is rejected."""
    exact = GaussianPose(Pose([1, 2, 3]))
    assert np.array_equal(sample(exact, 3), np.repeat(exact.mean.as_array()[None], 3, axis=0))
    assert sample(exact, 0).shape == (0, 7)
    assert fit_gaussian(sample(exact, 1)) == exact
    with pytest.raises(SceneError, match="-1"):
        sample(exact, -1)
    with pytest.raises(SceneError, match=r"shape \(n, 7\)"):
        fit_gaussian(np.zeros((0, 7)))
    wide = sample(GaussianPose(Pose(), np.diag([0, 0, 0, 100.0, 100.0, 100.0])), 50)
    with pytest.raises(SceneError, match="too scattered"):
        fit_gaussian(wide, max_iterations=5)
