"""Pose graphs solved by gtsam, which is not needed for anything else: the extra ``gtsam``.

A :class:`~tmkit.estimation.PoseGraph` becomes a ``gtsam.NonlinearFactorGraph`` of ``PriorFactorPose3`` (to the root)
and ``BetweenFactorPose3``, its poses the initial ``gtsam.Values``; variable k has the key k. gtsam's errors are on the
right as ours, with the rotation first: covariances are turned by :func:`tmkit.spatial.swap_linear_angular` on the way
out and back. Whoever runs another optimiser of gtsam's on the graph takes its values back by ``solution_from_gtsam``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import MissingExtraError, SceneError
from tmkit.estimation.pose_graph import ROOT, PoseGraph, PoseGraphSolution
from tmkit.spatial import Pose, swap_linear_angular

if TYPE_CHECKING:
    from types import ModuleType

Array = NDArray[np.float64]


def _gtsam() -> ModuleType:
    try:
        import gtsam
    except ImportError:
        raise MissingExtraError.of("pose graphs of gtsam need", "gtsam", "gtsam") from None
    module: ModuleType = gtsam
    return module


def to_gtsam_graph(graph: PoseGraph) -> tuple[Any, Any]:
    """Return ``gtsam.NonlinearFactorGraph`` and the initial ``gtsam.Values`` of a pose graph; variable k has the key k.

    Raises:
        MissingExtraError: gtsam is not installed.
    """
    gtsam = _gtsam()
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for factor in graph.factors:
        pose, covariance, first, second = factor.pose.mean, factor.pose.covariance, factor.first, factor.second
        if second == ROOT:  # gtsam's priors are of a variable relative to the root
            inverse = factor.pose.inverse()
            pose, covariance, first, second = inverse.mean, inverse.covariance, ROOT, first
        noise = gtsam.noiseModel.Gaussian.Covariance(swap_linear_angular(covariance))
        at = gtsam.Pose3(pose.as_matrix())
        if first == ROOT:
            factors.add(gtsam.PriorFactorPose3(second, at, noise))
        else:
            factors.add(gtsam.BetweenFactorPose3(first, second, at, noise))
    for k, pose in enumerate(graph.poses):
        values.insert(k, gtsam.Pose3(pose.as_matrix()))
    return factors, values


def solution_from_gtsam(graph: PoseGraph, factors: Any, values: Any, *, iterations: int = 0) -> PoseGraphSolution:
    """Return what gtsam found, with the joint covariance of all variables.

    Args:
        graph: the pose graph.
        factors: ``gtsam.NonlinearFactorGraph``, as :func:`to_gtsam_graph` made it.
        values: ``gtsam.Values`` of an optimiser.
        iterations: how many it took, for the record.

    Raises:
        MissingExtraError: gtsam is not installed.
        SceneError: the values are not those of the graph.
    """
    gtsam = _gtsam()
    if values.size() != len(graph.frames):
        raise SceneError(f"the graph has {len(graph.frames)} variables, the values of gtsam {values.size()}")
    keys = list(range(len(graph.frames)))
    joint = gtsam.Marginals(factors, values).jointMarginalCovariance(gtsam.KeyVector(keys))
    covariance = np.block([[swap_linear_angular(joint.at(a, b)) for b in keys] for a in keys])
    poses = tuple(Pose.from_matrix(values.atPose3(k).matrix()) for k in keys)
    even = 0.5 * (covariance + covariance.T)
    return PoseGraphSolution(graph, poses, even, float(factors.error(values)), iterations, is_converged=True)


def solve_with_gtsam(graph: PoseGraph, *, max_iterations: int = 100) -> PoseGraphSolution:
    """Return the most probable poses of a graph, computed by gtsam's Levenberg-Marquardt optimizer.

    Args:
        graph: the pose graph.
        max_iterations: maximal number of iterations.

    Raises:
        MissingExtraError: gtsam is not installed.
    """
    gtsam = _gtsam()
    factors, initial = to_gtsam_graph(graph)
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(max_iterations)
    parameters.setRelativeErrorTol(1e-15)
    parameters.setAbsoluteErrorTol(1e-15)
    optimizer = gtsam.LevenbergMarquardtOptimizer(factors, initial, parameters)
    values = optimizer.optimize()
    return solution_from_gtsam(graph, factors, values, iterations=int(optimizer.iterations()))
