"""Several estimates of one pose: how far off one is, by what was expected, and what they say together.

The squared *Mahalanobis distance* ``e^T S^-1 e`` of an error from zero is chi-square distributed
with as many degrees of freedom as S has rank, if the covariance is right. An error in a direction
that is known exactly is infinitely far off; a region is flat there. Source: Bar-Shalom, Li and
Kirubarajan, "Estimation with applications to tracking and navigation", 2001, section 5.4.

The fused pose minimises ``sum e_k^T S_k^-1 e_k / 2`` with ``e_k = log(T_k^-1 T)``; Gauss and
Newton's method with the exact derivatives ``J_r^-1(e_k)`` starts from the first estimate and ends
where all orders of the estimates end. Its covariance is the inverse of ``sum J_r^-T S_k^-1 J_r^-1``
there. Where an estimate is exact in some direction, S_k has no inverse. Then the estimate with the
fewest uncertain directions is taken for what is known and the others are measurements of it
(:mod:`tmkit.spatial.conditioning`), which has the same minimum. Source: Barfoot and Furgale,
"Associating uncertainty with three-dimensional poses for use in estimation problems", 2014, section
IV; there with left errors.
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
    checked_covariance,
    covariance_root,
    even,
    inverse_covariance,
    is_singular,
    whitened_rounding,
)
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]

_EXACT = 1e-13  # of the greatest eigenvalue, scaled: a direction without variance
# of the greatest deviation: what covariances that were carried about leave where there is none
_ROUNDING = 1e-12
_OFF = 1e-9  # scaled likewise: an error there that is more than rounding


def chi_square_quantile(probability: float, degrees: int) -> float:
    """Return the value below which a chi-square variable lies with a probability.

    Args:
        probability: between 0 and 1, exclusive.
        degrees: degrees of freedom, at least 1.

    Raises:
        SceneError: a probability that is not between 0 and 1, or no degree of freedom.
    """
    from scipy.special import gammaincinv

    if not 0.0 < probability < 1.0 or degrees < 1:
        given = f"{probability} and {degrees}"
        raise SceneError(
            f"a quantile needs 0 < probability < 1 and a degree of freedom, not {given}"
        )
    return float(2.0 * gammaincinv(0.5 * degrees, probability))


def mahalanobis_distance(error: ArrayLike, covariance: ArrayLike) -> tuple[float, int]:
    """Return the squared Mahalanobis distance of an error from zero, and its degrees of freedom, the rank.

    It is infinite when there is an error in a direction without variance.

    Args:
        error: (n,).
        covariance: (n, n), symmetric positive semi-definite.

    Raises:
        SceneError: shapes that do not fit, or a matrix that is no covariance.
    """
    matrix = checked_covariance(covariance)
    e = plain_numbers(error, "error")
    if e.shape != (len(matrix),):
        raise SceneError(f"error must have shape ({len(matrix)},), not {e.shape}")
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    known = scale <= _ROUNDING * float(scale.max(initial=0.0))
    scale = np.where(known, 1.0, scale)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    along = vectors.T @ (e / scale)
    free = values > _EXACT * max(float(values[-1]), 0.0)
    if (np.abs(along[~free]) > _OFF * max(1.0, float(np.abs(along).max(initial=0.0)))).any():
        return float("inf"), int(free.sum())
    return float(np.sum(along[free] ** 2 / values[free])), int(free.sum())


def pose_distance(estimate: GaussianPose, pose: Pose | GaussianPose) -> tuple[float, int]:
    """Return the squared Mahalanobis distance of a pose from an estimate of it, and its degrees of freedom.

    It is that of the error ``log(estimate.mean^-1 pose)``, see :func:`mahalanobis_distance`.

    Args:
        estimate: what was expected.
        pose: what came. If it is uncertain itself, and independent, the covariance is that of the
            difference.
    """
    difference = estimate.inverse() @ (
        pose if isinstance(pose, GaussianPose) else GaussianPose(pose)
    )
    # The error of the difference in its own axes; log has the same size about either end.
    return mahalanobis_distance(difference.mean.log(), difference.covariance)


@dataclass(frozen=True)
class Gate(Result):
    """Whether a measurement is consistent.

    Attributes:
        is_accepted: whether the squared distance is at most the threshold.
        squared_distance: of the innovation from zero.
        threshold: the quantile of the chi-square distribution.
        degrees: its degrees of freedom.
    """

    is_accepted: bool
    squared_distance: float
    threshold: float
    degrees: int

    @property
    def status(self) -> GateStatus:
        """Whether the measurement is accepted."""
        return GateStatus.ACCEPTED if self.is_accepted else GateStatus.REJECTED


def gate(pose: GaussianPose, measurement: MeasurementModel, *, probability: float = 0.997) -> Gate:
    """Return whether a measurement of an uncertain pose is within what was to be expected.

    Args:
        pose: what is known, independent of the measurement's noise.
        measurement: what was measured.
        probability: of accepting a measurement when all is as modelled.

    Raises:
        SceneError: a probability that is not between 0 and 1.
    """
    error, derivative = measurement.compared(pose.mean)
    spread = derivative @ pose.covariance @ derivative.T + measurement.noise
    squared, degrees = mahalanobis_distance(error, even(spread))
    threshold = chi_square_quantile(probability, degrees) if degrees else 0.0
    return Gate(squared <= threshold, squared, threshold, degrees)


@dataclass(frozen=True, eq=False)
class ConfidenceEllipsoid:
    """The region in which three numbers lie with a probability.

    Attributes:
        center: (3,).
        axes: (3, 3), its columns are unit vectors along the half-axes, the longest first;
            right-handed.
        radii: (3,) lengths of the half-axes; zero where there is no variance.
        probability: of lying inside.
    """

    center: Array
    axes: Array
    radii: Array
    probability: float

    def contains(self, point: ArrayLike) -> bool:
        """Return whether a point (3,) lies inside or on the boundary (of flat ones within 1e-12)."""
        along, flat = self.axes.T @ (plain_numbers(point, "point") - self.center), self.radii <= 0.0
        is_in_plane = not (np.abs(along[flat]) > 1e-12).any()
        return bool(is_in_plane and np.sum((along[~flat] / self.radii[~flat]) ** 2) <= 1.0)


def _ellipsoid(center: Array, covariance: Array, probability: float) -> ConfidenceEllipsoid:
    values, vectors = np.linalg.eigh(even(covariance))
    # below zero is rounding: it was checked
    values, axes = np.maximum(values[::-1], 0.0), vectors[:, ::-1].copy()
    rank = int(np.sum(values > _EXACT * values[0])) if values[0] > 0.0 else 0
    values[rank:] = 0.0
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    size = chi_square_quantile(probability, max(rank, 1))
    return ConfidenceEllipsoid(center, axes, np.sqrt(size * values), probability)


def position_covariance(pose: GaussianPose, *, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Return the covariance (3, 3), m^2, of a point of the child, in the parent's axes, to first order.

    Args:
        pose: parent_from_child.
        point: (3,) metres, in the child; its origin by default. Far from the origin small turns
            move it far.
    """
    x, y, z = plain_numbers(point, "point")
    moved = pose.mean.rotation @ np.hstack([np.eye(3), [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]])
    covariance: Array = moved @ pose.covariance @ moved.T
    return even(covariance)


def position_ellipsoid(
    pose: GaussianPose, *, probability: float = 0.95, point: ArrayLike = (0.0, 0.0, 0.0)
) -> ConfidenceEllipsoid:
    """Return where a point of the child is with a probability: metres, in the parent, to first order.

    Args:
        pose: parent_from_child.
        probability: of lying inside.
        point: (3,) metres, in the child; its origin by default.

    Raises:
        SceneError: a probability that is not between 0 and 1.
    """
    at = plain_numbers(point, "point")
    return _ellipsoid(pose.mean.apply(at), position_covariance(pose, point=at), probability)


def orientation_ellipsoid(pose: GaussianPose, *, probability: float = 0.95) -> ConfidenceEllipsoid:
    """Return which small turns from the mean orientation happen with a probability: rotation vectors, radians.

    The region is of theta, in the child's axes at the mean; its centre is zero.

    Args:
        pose: parent_from_child.
        probability: of lying inside.

    Raises:
        SceneError: a probability that is not between 0 and 1.
    """
    return _ellipsoid(np.zeros(3), np.array(pose.covariance[3:, 3:]), probability)


class NeesStatus(StrEnum):
    """What the errors of many runs say about the covariances that were claimed."""

    CONSISTENT = "consistent"
    OVERCONFIDENT = "overconfident"
    UNDERCONFIDENT = "underconfident"


@dataclass(frozen=True)
class Nees(Result):
    """How the errors of many runs compare with what was claimed.

    Attributes:
        mean: the mean squared Mahalanobis distance.
        lower: below this an estimator claims to know less than it does.
        upper: above this it claims to know more.
        runs: how many runs.
        degrees: degrees of freedom of a run.
    """

    mean: float
    lower: float
    upper: float
    runs: int
    degrees: int

    @property
    def status(self) -> NeesStatus:
        """Whether the mean lies in the band, above it (overconfident) or below it."""
        if self.mean < self.lower:
            return NeesStatus.UNDERCONFIDENT
        return NeesStatus.CONSISTENT if self.mean <= self.upper else NeesStatus.OVERCONFIDENT

    @property
    def is_consistent(self) -> bool:
        """Whether the mean lies in the band."""
        return self.status is NeesStatus.CONSISTENT


def nees(runs: Iterable[tuple[GaussianPose, Pose]], *, probability: float = 0.95) -> Nees:
    """Return the normalised estimation error squared of independent runs, with its chi-square band.

    Args:
        runs: pairs of an estimate and the truth.
        probability: that the mean lies in the band when all covariances are right.

    Raises:
        SceneError: no runs, runs of different degrees of freedom, or a probability that is not
            between 0 and 1.
    """
    errors = (((claimed.mean.inverse() @ true).log(), claimed.covariance) for claimed, true in runs)
    return nees_of_errors(errors, probability=probability)


def nees_of_errors(
    runs: Iterable[tuple[ArrayLike, ArrayLike]], *, probability: float = 0.95
) -> Nees:
    """Return the normalised estimation error squared of runs that estimate any numbers, as several poses jointly.

    Args:
        runs: pairs of an error (n,) and its covariance (n, n).
        probability: that the mean lies in the band when all covariances are right.

    Raises:
        SceneError: no runs, runs of different degrees of freedom, or a probability that is not
            between 0 and 1.
    """
    distances = [mahalanobis_distance(error, covariance) for error, covariance in runs]
    ranks = sorted({rank for _, rank in distances})
    if len(ranks) != 1 or ranks[0] == 0:
        raise SceneError(f"a mean needs runs of equal, positive degrees of freedom, not {ranks}")
    count, degrees = len(distances), ranks[0]
    tail = 0.5 * (1.0 - probability)
    lower, upper = (chi_square_quantile(p, count * degrees) / count for p in (tail, 1.0 - tail))
    return Nees(sum(squared for squared, _ in distances) / count, lower, upper, count, degrees)


_SHORT_MOTION = 1e-3  # metres or radians: a step that may be one of rounding


@dataclass(frozen=True)
class Fusion(IteratedEstimate):
    """What several estimates say together.

    Attributes:
        pose: the most probable pose, and its covariance.
        iterations: how many steps were made.
        is_converged: whether the last step was shorter than the tolerance.
        cost: half of the sum of the squared Mahalanobis distances of the estimates; twice the cost
            is chi-square distributed with 6 (k - 1) degrees of freedom when the k estimates and
            their covariances are right.
    """

    pose: GaussianPose
    iterations: int
    is_converged: bool
    cost: float


def fuse(
    estimates: Sequence[GaussianPose], *, max_iterations: int = 50, tolerance: float = 1e-12
) -> Fusion:
    """Return what independent estimates of one pose say together; whether it converged is part of the answer.

    Args:
        estimates: at least one; all parent_from_child of the same two frames. Rank-deficient
            covariances are ordinary.
        max_iterations: the most steps.
        tolerance: on the length of the last step [rho, theta], metres and radians. A step that is
            no longer than what rounding of the poses makes of it is the last as well.

    Raises:
        SceneError: no estimates, no steps, or estimates that contradict each other in what they
            know exactly.
    """
    if not estimates or max_iterations < 1:
        raise SceneError(
            f"fusion takes at least one estimate and one step, not {len(estimates)} and"
            f" {max_iterations}"
        )
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
            error, derivative = PoseMeasurement(estimate).compared(mean)
            information += derivative.T @ weight @ derivative
            gradient += derivative.T @ weight @ error
        step = -np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        mean = mean @ Pose.exp(step)
        steps, length = steps + 1, float(np.linalg.norm(step))
        converged = length <= tolerance or (
            length < _SHORT_MOTION and _is_rounding(step, information, estimates)
        )
    errors = [PoseMeasurement(estimate).compared(mean)[0] for estimate in estimates]
    cost = 0.5 * sum(
        float(error @ weight @ error) for error, weight in zip(errors, weights, strict=True)
    )
    return Fusion(GaussianPose(mean, inverse_covariance(information)), steps, converged, cost)


def _is_rounding(step: Array, information: Array, estimates: Sequence[GaussianPose]) -> bool:
    """Return whether a step is no longer, in standard deviations, than what rounding of the poses makes of it."""
    reach = 1.0 + max(float(np.abs(estimate.mean.translation).max()) for estimate in estimates)
    rounding = max(whitened_rounding(estimate.covariance, reach) for estimate in estimates)
    return float(np.sqrt(step @ information @ step)) <= rounding


def _fused_with_exact(
    estimates: Sequence[GaussianPose], max_iterations: int, tolerance: float
) -> Fusion:
    """Fuse by conditioning the most certain estimate on the others, one after the other, until none moves it."""
    order = sorted(
        range(len(estimates)), key=lambda k: covariance_root(estimates[k].covariance).shape[1]
    )
    most_certain, others = estimates[order[0]], [estimates[k] for k in order[1:]]
    chain = condition(
        [most_certain], _Together(others), max_iterations=max_iterations, tolerance=tolerance
    )
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
