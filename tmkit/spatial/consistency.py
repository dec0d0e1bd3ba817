"""Consistency tests and fusion of several estimates of one pose.

The squared *Mahalanobis distance* ``e^T S^-1 e`` of an error from zero is chi-square distributed
with rank(S) degrees of freedom, if the covariance S is right. The distance is infinite if the error
has a component in a direction without variance. A confidence region is flat there. Source:
Bar-Shalom, Li and Kirubarajan, "Estimation with applications to tracking and navigation", 2001,
section 5.4.

The fused pose minimises ``sum e_k^T S_k^-1 e_k / 2`` with ``e_k = log(T_k^-1 T)``. The Gauss-Newton
method with the exact derivatives ``J_r^-1(e_k)`` starts from the first estimate. Its result does
not depend on the order of the estimates. The fused covariance is the inverse of
``sum J_r^-T S_k^-1 J_r^-1`` there.

S_k has no inverse if an estimate is exact in some direction. Then the estimate with the fewest
uncertain directions is the prior, and the others are measurements of it
(:mod:`tmkit.spatial.conditioning`). The minimum is the same. Source: Barfoot and Furgale,
"Associating uncertainty with three-dimensional poses for use in estimation problems", 2014, section
IV, with left errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose
from tmkit._support.results import GateStatus, IteratedEstimate, Result
from tmkit.errors import SceneError
from tmkit.spatial.conditioning import MeasurementModel, PoseMeasurement, condition
from tmkit.spatial.covariances import (
    check_covariance,
    covariance_root,
    inverse_covariance,
    is_singular,
    rounding_distance,
    symmetric_part,
)
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]

_EXACT_FRACTION = 1e-13
"""Scaled eigenvalue, as a fraction of the greatest, below which a direction has no variance."""

_ROUNDING_FRACTION = 1e-12
"""Deviation, as a fraction of the greatest, that rounding leaves where there is no variance."""

_EXACT_ERROR_TOLERANCE = 1e-9
"""Largest scaled error in an exact direction that counts as rounding."""


def chi_square_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of the chi-square distribution.

    Args:
        probability: probability of a value below the quantile, in (0, 1).
        degrees: degrees of freedom, at least 1.

    Raises:
        SceneError: if the probability is not in (0, 1), or ``degrees`` is below 1.
    """
    from scipy.special import gammaincinv

    if not 0.0 < probability < 1.0 or degrees < 1:
        raise SceneError(
            "a quantile needs 0 < probability < 1 and a degree of freedom, not"
            f" {probability} and {degrees}"
        )
    return float(2.0 * gammaincinv(0.5 * degrees, probability))


def mahalanobis_distance(error: ArrayLike, covariance: ArrayLike) -> tuple[float, int]:
    """Return the squared Mahalanobis distance of an error from zero, and its degrees of freedom.

    The distance is infinite if there is an error in a direction without variance. The degrees of
    freedom are the rank of the covariance.

    Args:
        error: (n,) error.
        covariance: (n, n), symmetric positive semi-definite.

    Raises:
        SceneError: if the shapes do not match, or the matrix is not a covariance.
    """
    matrix = check_covariance(covariance)
    e = plain_numbers(error, "error")
    if e.shape != (len(matrix),):
        raise SceneError(f"error must have shape ({len(matrix)},), not {e.shape}")
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    is_exact = scale <= _ROUNDING_FRACTION * float(scale.max(initial=0.0))
    scale = np.where(is_exact, 1.0, scale)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    components = vectors.T @ (e / scale)
    has_variance = values > _EXACT_FRACTION * max(float(values[-1]), 0.0)
    rank = int(has_variance.sum())
    largest = max(1.0, float(np.abs(components).max(initial=0.0)))
    if (np.abs(components[~has_variance]) > _EXACT_ERROR_TOLERANCE * largest).any():
        return float("inf"), rank
    return float(np.sum(components[has_variance] ** 2 / values[has_variance])), rank


def pose_distance(estimate: GaussianPose, pose: Pose | GaussianPose) -> tuple[float, int]:
    """Return the squared Mahalanobis distance of a pose from an estimate, and degrees of freedom.

    The error is ``log(estimate.mean^-1 pose)``, see :func:`mahalanobis_distance`.

    Args:
        estimate: expected pose.
        pose: observed pose. If it is uncertain, its error is independent of the estimate's, and
            the covariance is that of the difference.
    """
    difference = estimate.inverse() @ (
        pose if isinstance(pose, GaussianPose) else GaussianPose(pose)
    )
    # The error is in the child's axes. log has the same norm about either end.
    return mahalanobis_distance(difference.mean.log(), difference.covariance)


@dataclass(frozen=True)
class Gate(Result):
    """Result of a consistency test of a measurement.

    Attributes:
        is_accepted: True if the squared distance is at most the threshold.
        squared_distance: squared Mahalanobis distance of the innovation from zero.
        threshold: quantile of the chi-square distribution.
        degrees: degrees of freedom of the distribution.
    """

    is_accepted: bool
    squared_distance: float
    threshold: float
    degrees: int

    @property
    def status(self) -> GateStatus:
        """Acceptance or rejection of the measurement."""
        return GateStatus.ACCEPTED if self.is_accepted else GateStatus.REJECTED


def gate(pose: GaussianPose, measurement: MeasurementModel, *, probability: float = 0.997) -> Gate:
    """Test whether a measurement of an uncertain pose is consistent with it.

    Args:
        pose: prior estimate, independent of the measurement's noise.
        measurement: measurement of the pose.
        probability: probability of acceptance if the model is right.

    Raises:
        SceneError: if the probability is not in (0, 1).
    """
    error, derivative = measurement.compare(pose.mean)
    innovation_covariance = derivative @ pose.covariance @ derivative.T + measurement.noise
    squared, degrees = mahalanobis_distance(error, symmetric_part(innovation_covariance))
    threshold = chi_square_quantile(probability, degrees) if degrees else 0.0
    return Gate(squared <= threshold, squared, threshold, degrees)


@dataclass(frozen=True, eq=False)
class ConfidenceEllipsoid:
    """Region that contains a three-dimensional Gaussian variable with a given probability.

    Attributes:
        center: (3,) centre.
        axes: (3, 3) right-handed; columns are unit vectors along the half-axes, longest first.
        radii: (3,) lengths of the half-axes; zero in directions without variance.
        probability: probability of a value inside.
    """

    center: Array
    axes: Array
    radii: Array
    probability: float

    def contains(self, point: ArrayLike) -> bool:
        """Return whether a point (3,) is inside, within 1e-12 in flat directions."""
        components = self.axes.T @ (plain_numbers(point, "point", "m") - self.center)
        is_flat = self.radii <= 0.0
        is_in_plane = not (np.abs(components[is_flat]) > 1e-12).any()
        size = np.sum((components[~is_flat] / self.radii[~is_flat]) ** 2)
        return bool(is_in_plane and size <= 1.0)


def _make_ellipsoid(center: Array, covariance: Array, probability: float) -> ConfidenceEllipsoid:
    """Return the confidence ellipsoid of a checked covariance (3, 3)."""
    values, vectors = np.linalg.eigh(symmetric_part(covariance))
    # Negative eigenvalues are rounding, since the covariance was checked.
    values, axes = np.maximum(values[::-1], 0.0), vectors[:, ::-1].copy()
    rank = int(np.sum(values > _EXACT_FRACTION * values[0])) if values[0] > 0.0 else 0
    values[rank:] = 0.0
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    size = chi_square_quantile(probability, max(rank, 1))
    return ConfidenceEllipsoid(center, axes, np.sqrt(size * values), probability)


def position_covariance(pose: GaussianPose, *, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Return the covariance (3, 3) of a point of the child, in the parent's axes [m^2].

    The covariance is exact to first order.

    Args:
        pose: uncertain parent_from_child.
        point: (3,) position in the child [m]; its origin by default. The effect of the orientation
            error grows with the distance from the origin.
    """
    x, y, z = plain_numbers(point, "point", "m")
    cross = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
    jacobian = pose.mean.rotation @ np.hstack([np.eye(3), cross])
    covariance: Array = jacobian @ pose.covariance @ jacobian.T
    return symmetric_part(covariance)


def position_ellipsoid(
    pose: GaussianPose, *, probability: float = 0.95, point: ArrayLike = (0.0, 0.0, 0.0)
) -> ConfidenceEllipsoid:
    """Return the confidence ellipsoid of a point of the child, in the parent [m].

    The ellipsoid is exact to first order.

    Args:
        pose: uncertain parent_from_child.
        probability: probability of a position inside.
        point: (3,) position in the child [m]; its origin by default.

    Raises:
        SceneError: if the probability is not in (0, 1).
    """
    position = plain_numbers(point, "point", "m")
    covariance = position_covariance(pose, point=position)
    return _make_ellipsoid(pose.mean.apply(position), covariance, probability)


def orientation_ellipsoid(pose: GaussianPose, *, probability: float = 0.95) -> ConfidenceEllipsoid:
    """Return the confidence ellipsoid of the orientation error, as rotation vectors [rad].

    The region is of theta, in the child's axes at the mean, with its centre at zero.

    Args:
        pose: uncertain parent_from_child.
        probability: probability of an error inside.

    Raises:
        SceneError: if the probability is not in (0, 1).
    """
    return _make_ellipsoid(np.zeros(3), np.array(pose.covariance[3:, 3:]), probability)


class NeesStatus(StrEnum):
    """Consistency of estimated covariances with the errors of many runs."""

    CONSISTENT = "consistent"
    OVERCONFIDENT = "overconfident"
    UNDERCONFIDENT = "underconfident"


@dataclass(frozen=True)
class Nees(Result):
    """Normalised estimation error squared (NEES) of many runs.

    Attributes:
        mean: mean squared Mahalanobis distance.
        lower: lower limit of the band; a smaller mean indicates covariances that are too large.
        upper: upper limit of the band; a larger mean indicates covariances that are too small.
        runs: number of runs.
        degrees: degrees of freedom of a run.
    """

    mean: float
    lower: float
    upper: float
    runs: int
    degrees: int

    @property
    def status(self) -> NeesStatus:
        """Position of the mean: in the band, above it (overconfident) or below it."""
        if self.mean < self.lower:
            return NeesStatus.UNDERCONFIDENT
        return NeesStatus.CONSISTENT if self.mean <= self.upper else NeesStatus.OVERCONFIDENT

    @property
    def is_consistent(self) -> bool:
        """True if the mean is in the band."""
        return self.status is NeesStatus.CONSISTENT


def nees(runs: Iterable[tuple[GaussianPose, Pose]], *, probability: float = 0.95) -> Nees:
    """Return the normalised estimation error squared of independent runs, with its chi-square band.

    Args:
        runs: pairs of an estimate and the true pose.
        probability: probability of a mean in the band if all covariances are right.

    Raises:
        SceneError: if there are no runs, their degrees of freedom differ, or the probability is
            not in (0, 1).
    """
    errors = (((claimed.mean.inverse() @ true).log(), claimed.covariance) for claimed, true in runs)
    return nees_of_errors(errors, probability=probability)


def nees_of_errors(
    runs: Iterable[tuple[ArrayLike, ArrayLike]], *, probability: float = 0.95
) -> Nees:
    """Return the normalised estimation error squared of runs with errors of any dimension.

    Joint errors of several poses are an example.

    Args:
        runs: pairs of an error (n,) and its covariance (n, n).
        probability: probability of a mean in the band if all covariances are right.

    Raises:
        SceneError: if there are no runs, their degrees of freedom differ, or the probability is
            not in (0, 1).
    """
    distances = [mahalanobis_distance(error, covariance) for error, covariance in runs]
    ranks = sorted({rank for _, rank in distances})
    if len(ranks) != 1 or ranks[0] == 0:
        raise SceneError(f"a mean needs runs of equal, positive degrees of freedom, not {ranks}")
    count, degrees = len(distances), ranks[0]
    tail = 0.5 * (1.0 - probability)
    lower, upper = (chi_square_quantile(p, count * degrees) / count for p in (tail, 1.0 - tail))
    return Nees(sum(squared for squared, _ in distances) / count, lower, upper, count, degrees)


_SHORT_FUSION_STEP = 1e-3
"""Length of a step [m or rad] below which it may be caused by rounding."""


@dataclass(frozen=True)
class Fusion(IteratedEstimate):
    """Fused estimate of one pose.

    Attributes:
        pose: most probable pose, with its covariance.
        iterations: number of steps.
        is_converged: True if the last step was shorter than the tolerance.
        cost: half of the sum of the squared Mahalanobis distances of the k estimates. Twice the
            cost is chi-square distributed with 6 (k - 1) degrees of freedom, if the estimates and
            their covariances are right.
    """

    pose: GaussianPose
    iterations: int
    is_converged: bool
    cost: float


def fuse(
    estimates: Sequence[GaussianPose], *, max_iterations: int = 50, tolerance: float = 1e-12
) -> Fusion:
    """Fuse independent estimates of one pose.

    The result has a flag for convergence; a fusion that does not converge raises no error.

    Args:
        estimates: at least one parent_from_child, all of the same two frames. Covariances may be
            rank-deficient.
        max_iterations: largest number of steps.
        tolerance: length of the last step [rho, theta], in [m] and [rad]. The iteration also ends
            at a step within the rounding error of the poses.

    Raises:
        SceneError: if there are no estimates or no steps, or exact parts of the estimates
            contradict each other.
    """
    if not estimates or max_iterations < 1:
        raise SceneError(
            f"fusion takes at least one estimate and one step, not {len(estimates)} and"
            f" {max_iterations}"
        )
    if len(estimates) == 1:
        return Fusion(estimates[0], 0, is_converged=True, cost=0.0)
    if any(is_singular(estimate.covariance) for estimate in estimates):
        return _fuse_with_exact(estimates, max_iterations, tolerance)
    weights = [inverse_covariance(estimate.covariance) for estimate in estimates]
    mean = estimates[0].mean
    steps, is_converged = 0, False
    information = np.zeros((6, 6))
    while steps < max_iterations and not is_converged:
        information, gradient = np.zeros((6, 6)), np.zeros(6)
        for estimate, weight in zip(estimates, weights, strict=True):
            error, derivative = PoseMeasurement(estimate).compare(mean)
            information += derivative.T @ weight @ derivative
            gradient += derivative.T @ weight @ error
        step = -np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        mean = mean @ Pose.exp(step)
        steps, length = steps + 1, float(np.linalg.norm(step))
        is_converged = length <= tolerance or (
            length < _SHORT_FUSION_STEP and _is_rounding(step, information, estimates)
        )
    errors = [PoseMeasurement(estimate).compare(mean)[0] for estimate in estimates]
    cost = 0.5 * sum(
        float(error @ weight @ error) for error, weight in zip(errors, weights, strict=True)
    )
    return Fusion(GaussianPose(mean, inverse_covariance(information)), steps, is_converged, cost)


def _is_rounding(step: Array, information: Array, estimates: Sequence[GaussianPose]) -> bool:
    """Return whether a step is within the rounding error of the poses, in standard deviations."""
    reach = 1.0 + max(float(np.abs(estimate.mean.translation).max()) for estimate in estimates)
    rounding = max(rounding_distance(estimate.covariance, reach) for estimate in estimates)
    return float(np.sqrt(step @ information @ step)) <= rounding


def _fuse_with_exact(
    estimates: Sequence[GaussianPose], max_iterations: int, tolerance: float
) -> Fusion:
    """Fuse by conditioning the most certain estimate on the others."""
    order = sorted(
        range(len(estimates)), key=lambda k: covariance_root(estimates[k].covariance).shape[1]
    )
    prior, rest = estimates[order[0]], [estimates[k] for k in order[1:]]
    measurement = _JointMeasurement(rest)
    chain = condition([prior], measurement, max_iterations=max_iterations, tolerance=tolerance)
    return Fusion(chain.pose, chain.iterations, chain.is_converged, chain.cost)


class _JointMeasurement:
    """Several independent measurements of one pose, stacked."""

    def __init__(self, estimates: Sequence[GaussianPose]) -> None:
        self._parts = [PoseMeasurement(estimate) for estimate in estimates]
        self.noise: Array = np.zeros((6 * len(estimates), 6 * len(estimates)))
        for i, part in enumerate(self._parts):
            self.noise[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = part.noise

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the stacked errors and their derivatives."""
        errors, derivatives = zip(*(part.compare(pose) for part in self._parts), strict=True)
        return np.concatenate(errors), np.vstack(derivatives)
