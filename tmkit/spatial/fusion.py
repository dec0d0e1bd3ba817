"""One pose out of several independent estimates of it: the most probable one.

The fused pose minimises ``sum e_k^T S_k^-1 e_k / 2`` with ``e_k = log(T_k^-1 T)``; Gauss and Newton's method with the
exact derivatives ``J_r^-1(e_k)`` starts from the first estimate and ends where all orders of the estimates end. Its
covariance is the inverse of ``sum J_r^-T S_k^-1 J_r^-1`` there.

Where an estimate is exact in some direction, S_k has no inverse: then the estimate with the fewest uncertain directions
is taken for what is known and the others are measurements of it (:mod:`tmkit.spatial.conditioning`), which has the same
minimum.

Source: Barfoot and Furgale, "Associating uncertainty with three-dimensional poses for use in estimation problems",
2014, section IV; there with left errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._core import GaussianPose, Pose, inverse_right_jacobian
from tmkit._support.results import IteratedEstimate
from tmkit.errors import SceneError
from tmkit.spatial.conditioning import condition
from tmkit.spatial.covariances import covariance_root, inverse_covariance, is_singular, whitened_rounding
from tmkit.spatial.measurement import PoseMeasurement

Array = NDArray[np.float64]

_SHORT = 1e-3  # metres or radians: a step that may be one of rounding


@dataclass(frozen=True)
class Fusion(IteratedEstimate):
    """What several estimates say together.

    Attributes:
        pose: the most probable pose, and its covariance.
        iterations: how many steps were made.
        is_converged: whether the last step was shorter than the tolerance.
        cost: half of the sum of the squared Mahalanobis distances of the estimates; twice the cost is chi-square
            distributed with 6 (k - 1) degrees of freedom when the k estimates and their covariances are right.
    """

    pose: GaussianPose
    iterations: int
    is_converged: bool
    cost: float


def fuse(estimates: Sequence[GaussianPose], *, max_iterations: int = 50, tolerance: float = 1e-12) -> Fusion:
    """Return what independent estimates of one pose say together; whether it converged is part of the answer.

    Args:
        estimates: at least one; all parent_from_child of the same two frames. Rank-deficient covariances are ordinary.
        max_iterations: the most steps.
        tolerance: on the length of the last step [rho, theta], metres and radians. A step that is no longer than what
            rounding of the poses makes of it is the last as well.

    Raises:
        SceneError: no estimates, no steps, or estimates that contradict each other in what they know exactly.
    """
    if not estimates or max_iterations < 1:
        raise SceneError(f"fusion takes at least one estimate and one step, not {len(estimates)} and {max_iterations}")
    if len(estimates) == 1:
        return Fusion(estimates[0], 0, is_converged=True, cost=0.0)
    if any(is_singular(estimate.covariance) for estimate in estimates):
        return _fused_with_exact(estimates, max_iterations, tolerance)
    weights = [inverse_covariance(estimate.covariance) for estimate in estimates]
    mean, steps, converged = estimates[0].mean, 0, False
    information = np.zeros((6, 6))
    while steps < max_iterations and not converged:
        information, gradient = np.zeros((6, 6)), np.zeros(6)
        for estimate, weight in zip(estimates, weights, strict=True):
            error = (estimate.mean.inverse() @ mean).log()
            derivative = inverse_right_jacobian(error)
            information += derivative.T @ weight @ derivative
            gradient += derivative.T @ weight @ error
        step = -np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        mean = mean @ Pose.exp(step)
        steps, length = steps + 1, float(np.linalg.norm(step))
        converged = length <= tolerance or (length < _SHORT and _is_rounding(step, information, estimates))
    errors = [(estimate.mean.inverse() @ mean).log() for estimate in estimates]
    cost = 0.5 * sum(float(error @ weight @ error) for error, weight in zip(errors, weights, strict=True))
    return Fusion(GaussianPose(mean, inverse_covariance(information)), steps, converged, cost)


def _is_rounding(step: Array, information: Array, estimates: Sequence[GaussianPose]) -> bool:
    """Return whether a step is no longer, in standard deviations, than what rounding of the poses makes of it."""
    reach = 1.0 + max(float(np.abs(estimate.mean.translation).max()) for estimate in estimates)
    rounding = max(whitened_rounding(estimate.covariance, reach) for estimate in estimates)
    return float(np.sqrt(step @ information @ step)) <= rounding


def _fused_with_exact(estimates: Sequence[GaussianPose], max_iterations: int, tolerance: float) -> Fusion:
    """Fuse by conditioning the most certain estimate on the others, one after the other, until none moves it."""
    order = sorted(range(len(estimates)), key=lambda k: covariance_root(estimates[k].covariance).shape[1])
    most_certain, others = estimates[order[0]], [estimates[k] for k in order[1:]]
    chain = condition([most_certain], _Together(others), max_iterations=max_iterations, tolerance=tolerance)
    return Fusion(chain.pose, chain.iterations, chain.is_converged, chain.cost)


class _Together:
    """Several measurements of one pose, independent of each other."""

    def __init__(self, estimates: Sequence[GaussianPose]) -> None:
        self._parts = [PoseMeasurement(estimate) for estimate in estimates]
        self.noise: Array = np.zeros((6 * len(estimates), 6 * len(estimates)))
        for i, part in enumerate(self._parts):
            self.noise[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = part.noise

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return all errors and their derivatives."""
        errors, derivatives = zip(*(part.compared(pose) for part in self._parts), strict=True)
        return np.concatenate(errors), np.vstack(derivatives)
