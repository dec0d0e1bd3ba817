"""Measurements, conditioning of chains and fusion: derivatives, laws, degenerate cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples
from support.gaussian_poses import poses, random_chain, random_gaussian_pose, relative_difference

from tmkit.errors import SceneError
from tmkit.spatial import (
    BearingMeasurement,
    GaussianPose,
    JointGaussianPose,
    Pose,
    PoseMeasurement,
    PositionMeasurement,
    RangeMeasurement,
    compose,
    condition,
    fuse,
)
from tmkit.spatial.conditioning import MeasurementModel

Array = NDArray[np.float64]

_points = st.tuples(*[st.floats(-1.0, 1.0)] * 3)
_kinds = st.sampled_from(["pose", "position", "bearing", "range"])


def _measurement(kind: str, pose: Pose, point: tuple[float, float, float]) -> MeasurementModel:
    """Return a measurement of what is at this pose, exactly where it is."""
    seen = pose.apply(point)
    if kind == "pose":
        return PoseMeasurement(GaussianPose(pose, 1e-4 * np.eye(6)))
    if kind == "position":
        return PositionMeasurement(seen, 1e-4 * np.eye(3), point=point)
    if kind == "bearing":
        return BearingMeasurement(seen, 1e-4, point=point)
    return RangeMeasurement(float(np.linalg.norm(seen)), 1e-4, point=point)


@given(_kinds, poses, poses, _points, st.integers(0, 5))
def test_derivatives_are_those_of_the_error(
    kind: str, seen: Pose, pose: Pose, point: tuple[float, float, float], axis: int
) -> None:
    """Moving the pose by a little changes the error as the derivative says."""
    assume(all(np.linalg.norm(there.apply(point)) > 0.2 for there in (seen, pose)))
    measurement = _measurement(kind, seen, point)
    if kind == "bearing":  # not near the opposite, where the turn is not determined
        directions = [
            there.apply(point) / np.linalg.norm(there.apply(point)) for there in (seen, pose)
        ]
        assume(directions[0] @ directions[1] > -0.95)
    if kind == "pose":
        assume(float(np.linalg.norm((seen.inverse() @ pose).log()[3:])) < 2.8)
    step = 1e-6 * np.eye(6)[axis]
    _, derivative = measurement.compare(pose)
    ahead, behind = (measurement.compare(pose @ Pose.exp(sign * step))[0] for sign in (1.0, -1.0))
    np.testing.assert_allclose((ahead - behind) / 2e-6, derivative[:, axis], atol=2e-7)


@given(_kinds, poses, _points)
def test_what_is_where_it_was_seen_has_no_error(
    kind: str, pose: Pose, point: tuple[float, float, float]
) -> None:
    """The error of the true pose is zero."""
    assume(np.linalg.norm(pose.apply(point)) > 0.2)
    measurement = _measurement(kind, pose, point)
    np.testing.assert_allclose(measurement.compare(pose)[0], 0.0, atol=1e-12)
    assert isinstance(measurement, MeasurementModel)


def test_a_bearing_is_the_angle_between_directions() -> None:
    """The two angles have the norm of the angle between the directions, along the axes."""
    measurement = BearingMeasurement([0, 0, 2.0], [[1e-4, 0], [0, 4e-4]])
    angles, _ = measurement.compare(Pose([0.0, 1.0, 1.0]))
    assert np.linalg.norm(angles) == pytest.approx(np.pi / 4)
    direction = angles @ measurement.axes / np.linalg.norm(angles)
    np.testing.assert_allclose(direction, [0, 1, 0], atol=1e-12)
    frame = np.vstack([measurement.axes, measurement.direction])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------- conditioning


@settings(max_examples=scaled_examples(0.3))
@given(_kinds, st.integers(0, 1000))
def test_a_measurement_never_makes_less_sure(kind: str, seed: int) -> None:
    """The covariance of the path shrinks, in every direction, and stays positive semi-definite."""
    links = random_chain(3, linear=0.01, angular=0.01, seed=seed)
    prior = compose(links)
    assume(np.linalg.norm(prior.mean.translation) > 0.3)
    found = condition(links, _measurement(kind, prior.mean, (0.0, 0.0, 0.0)))
    assert found.is_converged
    assert found.cost == pytest.approx(0.0, abs=1e-12)
    assert found.pose.mean.is_close(
        prior.mean, translation_tolerance=1e-10, rotation_tolerance=1e-10
    )
    values = np.linalg.eigvalsh(prior.covariance - found.pose.covariance)
    assert values[0] > -1e-12
    assert np.linalg.eigvalsh(found.links.covariance)[0] > -1e-15


def test_two_measurements_may_come_in_either_order() -> None:
    """Conditioning on two measurements does not depend on their order, to first order."""
    links = random_chain(3, linear=0.003, angular=0.003, seed=1)
    seen = compose(links).mean @ Pose.exp([0.002, -0.003, 0.001, 0.002, 0.001, -0.002])
    first, second = (
        _measurement("position", seen, (0.1, 0.0, 0.0)),
        _measurement("range", seen, (0.0, 0.2, 0.0)),
    )
    ends = [
        condition(condition(links, one).links, other).pose
        for one, other in itertools.permutations((first, second))
    ]
    assert ends[0].mean.is_close(ends[1].mean, translation_tolerance=1e-6, rotation_tolerance=1e-6)
    assert relative_difference(ends[0].covariance, ends[1].covariance) < 1e-2


def test_links_are_correlated_afterwards() -> None:
    """A measurement of the product correlates the links."""
    links = random_chain(3, linear=0.05, angular=0.05, seed=2)
    found = condition(links, PoseMeasurement(GaussianPose(compose(links).mean, 1e-8 * np.eye(6))))
    assert np.abs(found.links.cross(0, 1)).max() > 1e-4
    assert np.abs(found.pose.covariance).max() < 2e-8
    assert np.abs(compose(found.links.marginals()).covariance).max() > 1e-4
    assert (
        repr(found)
        == f"ConditionedChain(3 links, converged after {found.iterations}, cost {found.cost:.4g})"
    )


def test_one_turn_is_the_extended_kalman_filter() -> None:
    """One iteration is linear in the innovation; more iterations have a lower cost."""
    links = random_chain(3, linear=0.1, angular=0.2, seed=3)
    seen = PoseMeasurement(
        GaussianPose(
            compose(links).mean @ Pose.exp([0.2, 0.1, -0.1, 0.3, -0.2, 0.1]), 1e-3 * np.eye(6)
        )
    )
    once, often = condition(links, seen, max_iterations=1), condition(links, seen)
    assert (once.iterations, once.is_converged) == (1, False)
    assert often.is_converged
    assert often.cost < once.cost


def test_an_exact_measurement_is_met_exactly() -> None:
    """With zero noise the product equals the measurement, with zero covariance."""
    links = random_chain(2, linear=0.05, angular=0.05, seed=4)
    seen = compose(links).mean @ Pose.exp([0.02, 0.01, -0.01, 0.03, -0.02, 0.01])
    found = condition(links, PoseMeasurement(GaussianPose(seen)))
    assert found.is_converged
    assert found.pose.mean.is_close(seen, translation_tolerance=1e-10, rotation_tolerance=1e-10)
    assert np.abs(found.pose.covariance).max() < 1e-14
    # a root of rounding is what it can be off by
    again = condition(found.links, PoseMeasurement(GaussianPose(seen)))
    assert again.pose.mean.is_close(seen, translation_tolerance=1e-7, rotation_tolerance=1e-7)


def test_exact_links_do_not_move() -> None:
    """Exact links stay; a measurement moves only the uncertain ones."""
    exact, loose = (
        GaussianPose(Pose([1, 0, 0])),
        random_gaussian_pose(np.random.default_rng(5), linear=0.1, angular=0.1),
    )
    seen = exact.mean @ loose.mean @ Pose.exp([0.1, 0, 0, 0, 0.1, 0])
    found = condition([exact, loose], PoseMeasurement(GaussianPose(seen, 1e-10 * np.eye(6))))
    assert found.links.means[0] == exact.mean
    assert not found.links.marginal(0).covariance.any()
    assert found.pose.mean.is_close(seen, translation_tolerance=1e-4, rotation_tolerance=1e-4)


def test_exact_contradictions_are_rejected() -> None:
    """An exact measurement of what is exactly elsewhere has no answer; what agrees has one."""
    exact = GaussianPose(Pose([1, 0, 0]))
    with pytest.raises(SceneError, match=r"contradicts the exact prior by 0\.1"):
        condition([exact], PositionMeasurement([1.1, 0, 0], np.zeros((3, 3))))
    found = condition([exact], PositionMeasurement([1, 0, 0], np.zeros((3, 3))))
    assert found.pose == exact
    assert condition([exact], PositionMeasurement([1.1, 0, 0], np.eye(3))).pose == exact


def test_a_joint_prior_is_one_with_its_parts() -> None:
    """Independent links and their joint covariance, given as one, end the same."""
    links = random_chain(3, linear=0.05, angular=0.05, seed=6)
    seen = _measurement(
        "pose", compose(links).mean @ Pose.exp([0.02, 0.01, 0, 0, 0.03, 0.0]), (0, 0, 0)
    )
    one, other = condition(links, seen), condition(JointGaussianPose.independent(links), seen)
    assert relative_difference(one.links.covariance, other.links.covariance) < 1e-10
    np.testing.assert_allclose(one.correction, other.correction, atol=1e-12)


def test_measurements_without_a_sense_are_rejected() -> None:
    """Zero directions, negative variances, points at the origin, no links: each says what it is."""
    with pytest.raises(SceneError, match="must not be zero"):
        BearingMeasurement([0, 0, 0], 1e-4)
    with pytest.raises(SceneError, match=r"variance must be .* not -1"):
        RangeMeasurement(1.0, -1.0)
    with pytest.raises(SceneError, match=r"distance must be .* not nan"):
        RangeMeasurement(float("nan"), 1.0)
    with pytest.raises(SceneError, match="position must be three"):
        PositionMeasurement([0, 0], np.eye(3))
    with pytest.raises(SceneError, match="eigenvalues"):
        PositionMeasurement([0, 0, 0], -np.eye(3))
    with pytest.raises(SceneError, match="its direction is undefined"):
        BearingMeasurement([0, 0, 1], 1e-4).compare(Pose())
    with pytest.raises(SceneError, match="opposite"):
        BearingMeasurement([0, 0, 1], 1e-4).compare(Pose([0, 0, -1]))
    with pytest.raises(SceneError, match="derivative"):
        RangeMeasurement(1.0, 1.0).compare(Pose())
    with pytest.raises(SceneError, match="at least one link"):
        condition([], RangeMeasurement(1.0, 1.0))
    with pytest.raises(SceneError, match="one iteration, not 1 and 0"):
        condition([GaussianPose()], RangeMeasurement(1.0, 1.0), max_iterations=0)


# ------------------------------------------------------------------------------------------- fusion


@settings(max_examples=scaled_examples(0.3))
@given(
    st.integers(0, 1000),
    st.sampled_from([(6, 6, 6), (6, 6, 3), (2, 6, 6), (0, 6, 6), (4, 4, 6)]),
    st.permutations(range(3)),
)
def test_fusion_does_not_depend_on_the_order(
    seed: int, ranks: tuple[int, ...], order: list[int]
) -> None:
    """Pose, covariance and cost of a fusion do not depend on the order, also if some are exact."""
    rng = np.random.default_rng(seed)
    true = Pose.exp(rng.normal(size=6) * 0.5)
    estimates = []
    for rank in ranks:
        root = rng.normal(size=(6, rank)) * 0.03
        estimates.append(
            GaussianPose(
                true @ Pose.exp(root @ rng.normal(size=rank) * 0.5).inverse(), root @ root.T
            )
        )
    one, other = fuse(estimates), fuse([estimates[i] for i in order])
    assume(one.is_converged and other.is_converged)
    assert one.pose.mean.is_close(
        other.pose.mean, translation_tolerance=1e-7, rotation_tolerance=1e-7
    )
    np.testing.assert_allclose(one.pose.covariance, other.pose.covariance, atol=1e-8)


def test_fusing_one_estimate_twice_halves_its_covariance() -> None:
    """Two equal estimates say the same, twice as surely; one alone says what it says."""
    pose = random_gaussian_pose(np.random.default_rng(1), linear=0.1, angular=0.2)
    found = fuse([pose, pose])
    assert found.pose.mean.is_close(
        pose.mean, translation_tolerance=1e-14, rotation_tolerance=1e-14
    )
    np.testing.assert_allclose(found.pose.covariance, 0.5 * pose.covariance, atol=1e-15)
    assert found.cost == pytest.approx(0.0, abs=1e-20)
    assert found.is_converged
    alone = fuse([pose])
    assert (alone.pose, alone.iterations, alone.cost) == (pose, 0, 0.0)


def test_an_exact_estimate_wins() -> None:
    """Beside an exact estimate the others say nothing; two exact ones must agree."""
    exact, loose = (
        GaussianPose(Pose([1, 2, 3])),
        random_gaussian_pose(np.random.default_rng(2), linear=5.0, angular=0.3),
    )
    for estimates in ([exact, loose], [loose, exact]):
        found = fuse(estimates)
        assert found.pose == exact
        assert found.cost > 0.0
    with pytest.raises(SceneError, match="contradicts"):
        fuse([exact, GaussianPose(Pose([1, 2, 4]))])
    assert fuse([exact, exact]).pose == exact


def test_complementary_estimates_complete_each_other() -> None:
    """An exact position and an exact orientation fuse to an exact pose."""
    position = GaussianPose(Pose(), np.diag([1e-6] * 3 + [1.0] * 3))
    orientation = GaussianPose(Pose(), np.diag([1.0] * 3 + [1e-6] * 3))
    np.testing.assert_allclose(
        fuse([position, orientation]).pose.covariance, 1e-6 / (1 + 1e-6) * np.eye(6), atol=1e-15
    )


def test_fusion_of_nothing_is_rejected() -> None:
    """No estimates say nothing."""
    with pytest.raises(SceneError, match="at least one estimate"):
        fuse([])
    with pytest.raises(SceneError, match="one step"):
        fuse([GaussianPose()], max_iterations=0)
