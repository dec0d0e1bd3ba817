"""Uncertain poses against gtsam and pytransform3d, to 1e-9, through the converters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.gaussian_poses import random_chain, random_gaussian_pose, relative_difference

from tmkit.spatial import (
    BearingMeasurement,
    GaussianPose,
    JointGaussianPose,
    Pose,
    PoseMeasurement,
    PositionMeasurement,
    RangeMeasurement,
    adjoint,
    compose,
    condition,
    fuse,
    sample,
)
from tmkit.spatial.conditioning import MeasurementModel
from tmkit.spatial.converters import from_gtsam, from_pytransform3d, to_gtsam, to_pytransform3d

Array = NDArray[np.float64]


# ------------------------------------------------------------------------------------ pytransform3d


def test_fourth_order_is_that_of_pytransform3d() -> None:
    """Chains composed to fourth order, in its left and angular-first way, agree."""
    uncertainty = pytest.importorskip("pytransform3d.uncertainty")
    links = random_chain(6, linear=0.03, angular=0.08, seed=2)
    mean, covariance = to_pytransform3d(links[0])
    for link in links[1:]:  # its second argument stands on the left
        mean, covariance = uncertainty.concat_globally_uncertain_transforms(
            *to_pytransform3d(link), mean, covariance
        )
    expected = from_pytransform3d(mean, covariance)
    found = compose(links, order=4)
    assert found.mean.is_close(expected.mean, translation_tolerance=1e-12, rotation_tolerance=1e-12)
    assert relative_difference(found.covariance, expected.covariance) < 1e-9
    assert relative_difference(compose(links).covariance, expected.covariance) > 1e-4


def test_inverses_are_those_of_pytransform3d() -> None:
    """The inverse of an uncertain pose agrees."""
    uncertainty = pytest.importorskip("pytransform3d.uncertainty")
    pose = random_chain(1, linear=0.1, angular=0.2)[0]
    expected = from_pytransform3d(*uncertainty.invert_uncertain_transform(*to_pytransform3d(pose)))
    assert relative_difference(pose.inverse().covariance, expected.covariance) < 1e-12


@pytest.mark.parametrize("count", [2, 3, 5])
def test_fusion_is_that_of_pytransform3d(count: int) -> None:
    """Mean, covariance and cost of fused estimates agree."""
    uncertainty = pytest.importorskip("pytransform3d.uncertainty")
    rng = np.random.default_rng(count)
    true = random_gaussian_pose(rng, linear=0.05, angular=0.1)
    estimates = [
        GaussianPose(
            Pose.from_array(sample(GaussianPose(true.mean, true.covariance), 1, seed=rng)[0]),
            random_gaussian_pose(rng, linear=0.05, angular=0.1).covariance,
        )
        for _ in range(count)
    ]
    found = fuse(estimates)
    means, covariances = zip(*map(to_pytransform3d, estimates), strict=True)
    mean, covariance, cost = uncertainty.pose_fusion(means, covariances)
    expected = from_pytransform3d(mean, 0.5 * (covariance + covariance.T))
    assert found.is_converged
    assert found.pose.mean.is_close(
        expected.mean, translation_tolerance=1e-10, rotation_tolerance=1e-10
    )
    assert relative_difference(found.pose.covariance, expected.covariance) < 1e-9
    assert found.cost == pytest.approx(cost, rel=1e-9)


# -------------------------------------------------------------------------------------------- gtsam


def _model(gtsam: Any, covariance: Array) -> Any:
    return gtsam.noiseModel.Gaussian.Covariance(covariance)


def _factor(gtsam: Any, key: int, measurement: MeasurementModel, pose: Pose) -> Any:
    """Return a gtsam factor of a measurement, with gtsam's own error if it has one."""
    if isinstance(measurement, PoseMeasurement):
        matrix, covariance = to_gtsam(measurement.pose)
        return gtsam.PriorFactorPose3(key, gtsam.Pose3(matrix), _model(gtsam, covariance))
    del pose

    def error(_: Any, values: Any, jacobians: Any) -> Array:
        there = Pose.from_matrix(values.atPose3(key).matrix())
        found, derivative = measurement.compare(there)
        if jacobians is not None:
            jacobians[0] = np.asfortranarray(derivative[:, [3, 4, 5, 0, 1, 2]])
        return np.array(found)

    return gtsam.CustomFactor(_model(gtsam, np.array(measurement.noise)), [key], error)


def _solved(
    gtsam: Any, links: list[GaussianPose], measurement: MeasurementModel
) -> tuple[Any, Any, float]:
    """Return the most probable poses along a chain, the marginals there, and the cost."""
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    there = Pose()
    for i, link in enumerate(links):
        matrix, covariance = to_gtsam(link)
        there = there @ link.mean
        values.insert(i, gtsam.Pose3(there.as_matrix()))
        if i == 0:
            graph.add(gtsam.PriorFactorPose3(0, gtsam.Pose3(matrix), _model(gtsam, covariance)))
        else:
            graph.add(
                gtsam.BetweenFactorPose3(i - 1, i, gtsam.Pose3(matrix), _model(gtsam, covariance))
            )
    graph.add(_factor(gtsam, len(links) - 1, measurement, there))
    parameters = gtsam.GaussNewtonParams()
    parameters.setMaxIterations(60)
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(0.0)
    solved = gtsam.GaussNewtonOptimizer(graph, values, parameters).optimize()
    return solved, gtsam.Marginals(graph, solved), graph.error(solved)


def _measurements(pose: Pose) -> dict[str, MeasurementModel]:
    """Return measurements of a pose that is near this one."""
    near = pose @ Pose.exp([0.05, -0.08, 0.03, 0.1, -0.06, 0.08])
    point = np.array([0.1, 0.2, -0.1])
    seen = near.apply(point)
    return {
        "pose": PoseMeasurement(GaussianPose(near, np.diag([1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 1e-3]))),
        "position": PositionMeasurement(seen, 1e-3 * np.eye(3) + 2e-4, point=point),
        "bearing": BearingMeasurement(seen, 1e-3, point=point),
        "range": RangeMeasurement(float(np.linalg.norm(seen)), 1e-3, point=point),
    }


@pytest.mark.parametrize("kind", ["pose", "position", "bearing", "range"])
def test_conditioning_ends_where_gtsam_does(kind: str) -> None:
    """Most probable poses, their covariances and the cost agree with a factor graph, solved."""
    gtsam = pytest.importorskip("gtsam")
    links = random_chain(5, linear=0.05, angular=0.05, seed=7)
    measurement = _measurements(compose(links).mean)[kind]
    found = condition(links, measurement)
    solved, marginals, cost = _solved(gtsam, links, measurement)
    assert found.is_converged
    expected = from_gtsam(solved.atPose3(4), marginals.marginalCovariance(4))
    assert found.pose.mean.is_close(
        expected.mean, translation_tolerance=1e-9, rotation_tolerance=1e-9
    )
    assert relative_difference(found.pose.covariance, expected.covariance) < 1e-9
    assert found.cost == pytest.approx(cost, rel=1e-9)
    along = compose([GaussianPose(mean) for mean in found.links.means[:3]]).mean
    assert along.is_close(Pose.from_matrix(solved.atPose3(2).matrix()), translation_tolerance=1e-9)


def test_joint_covariances_are_the_marginals_of_gtsam() -> None:
    """Joint covariance and relative pose of two leaves with a common edge agree."""
    gtsam = pytest.importorskip("gtsam")
    common, a, b = random_chain(3, linear=0.02, angular=0.03, seed=9)
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    matrix, covariance = to_gtsam(common)
    graph.add(gtsam.PriorFactorPose3(0, gtsam.Pose3(matrix), _model(gtsam, covariance)))
    values.insert(0, gtsam.Pose3(matrix))
    for key, branch in ((1, a), (2, b)):
        matrix, covariance = to_gtsam(branch)
        graph.add(gtsam.BetweenFactorPose3(0, key, gtsam.Pose3(matrix), _model(gtsam, covariance)))
        values.insert(key, gtsam.Pose3((common.mean @ branch.mean).as_matrix()))
    keys = gtsam.KeyVector([1, 2]) if hasattr(gtsam, "KeyVector") else [1, 2]
    joint = gtsam.Marginals(graph, values).jointMarginalCovariance(keys).fullMatrix()
    order = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
    found = JointGaussianPose.of_branches(common, [a, b])
    assert relative_difference(found.covariance, joint[np.ix_(order, order)]) < 1e-9
    maps = np.hstack([-adjoint(found.relative(1, relative_to=0).mean.inverse()), np.eye(6)])
    expected = maps @ joint[np.ix_(order, order)] @ maps.T
    assert relative_difference(found.relative(1, relative_to=0).covariance, expected) < 1e-7
