"""How probable it is that a Gaussian lies in an ellipse or ellipsoid.

The idea: in coordinates in which the ellipsoid is the unit ball, and whose axes are those of the errors, the question
is how probable a sum of squares of independent normal numbers is at most 1. Where all have one variance that is the
(noncentral) chi-square distribution; where all but one have, it is integrated along that one's axis, since what is cut
across it is a ball again; all else is sampled.

Invariants: those of :mod:`tmkit.tamp.uncertainty.probability`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import asin, cos, dot, eigen, exp, product, sin
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers
from tmkit.tamp.uncertainty.probability import (
    DEFAULT_SAMPLES,
    NOISE_FLOOR,
    REACH,
    Probability,
    Vector,
    checked_gaussian,
    integral,
    sampled_probability,
)


def inside_ellipsoid(
    mean: ArrayLike, covariance: ArrayLike, *, centre: ArrayLike, axes: ArrayLike, seed: int = 0,
    count: int = DEFAULT_SAMPLES,
) -> Probability:  # fmt: skip
    """Return the probability that a Gaussian point lies in an ellipse or ellipsoid.

    Args:
        mean: (n,) of the point.
        covariance: (n, n) of the point; it may be singular.
        centre: (n,) of the ellipsoid.
        axes: (n, n), its half axes as columns; orthogonal, of any length but zero. A ball of radius r has ``r * I``.
        seed: of the samples, should they be needed.
        count: of the samples.

    Raises:
        ConfigurationError: shapes that do not fit, or half axes that are not orthogonal.
    """
    point, spread = checked_gaussian(mean, covariance)
    half_axes = plain_numbers(axes, "axes")
    middle = plain_numbers(centre, "centre")
    if half_axes.shape != spread.shape or middle.shape != point.shape:
        raise ConfigurationError(
            f"an ellipsoid around {middle.shape} with axes {half_axes.shape} is not in {point.shape}"
        )
    products = product(half_axes.T, half_axes)
    squares = np.diag(products)
    if np.any(squares <= 0.0) or np.max(np.abs(products - np.diag(squares))) > 1e-9 * float(squares.max()):
        raise ConfigurationError("the half axes of an ellipsoid must be orthogonal and not zero")
    to_ball = half_axes.T / squares[:, None]  # the inverse, since the axes are orthogonal
    variances, directions = eigen(product(to_ball, spread, to_ball.T))
    offset = product(directions.T, to_ball, point - middle)
    variances = np.where(variances > NOISE_FLOOR * max(float(variances.max(initial=0.0)), 0.0), variances, 0.0)
    return _in_ball(offset, variances, seed=seed, count=count)


def _in_ball(offset: Vector, variances: Vector, *, seed: int, count: int) -> Probability:
    """Return the probability that independent normal numbers have a sum of squares of at most 1."""
    noisy = variances > 0.0
    room = 1.0 - float(np.sum(offset[~noisy] ** 2))
    mu, sigma2 = offset[noisy], variances[noisy]
    if room < 0.0 or not len(mu):
        return Probability(float(room >= 0.0))
    if np.ptp(sigma2) <= 1e-12 * float(sigma2.max()):
        return Probability(float(_chi_square(np.array(room), mu, float(sigma2[0]))))
    for alone in (0, len(mu) - 1):  # the eigenvalues are in order, so what differs from equal others is at an end
        others = np.delete(np.arange(len(mu), dtype=np.intp), alone)
        if np.ptp(sigma2[others]) <= 1e-12 * float(sigma2.max()):
            return _of_revolution(room, mu, sigma2, alone=alone, others=others)
    return sampled_probability(
        mu, np.diag(sigma2), lambda x: np.asarray(np.sum(x * x, axis=1) <= room), seed=seed, count=count
    )


def _of_revolution(room: float, mu: Vector, sigma2: Vector, *, alone: int, others: NDArray[np.intp]) -> Probability:
    """Integrate along the axis of revolution; across it the chi-square distribution is known."""
    deviation, radius = math.sqrt(float(sigma2[alone])), math.sqrt(room)
    centre = float(mu[alone])
    first, last = max(-radius, centre - REACH * deviation), min(radius, centre + REACH * deviation)
    if first >= last:
        return Probability(0.0)

    def density(angle: float) -> float:  # x = radius sin(angle): the root at the poles becomes smooth
        x = radius * sin(angle)
        across = float(_chi_square(np.array(room - x * x), mu[others], float(sigma2[others[0]])))
        scaled = (x - centre) / deviation
        return exp(-0.5 * scaled * scaled) / (deviation * math.sqrt(math.tau)) * across * radius * cos(angle)

    ends = [asin(max(-1.0, min(1.0, x / radius))) for x in (first, last)]
    turns = [asin(x / radius) for k in range(-8, 9) if abs(x := centre + k * deviation) < radius]
    return integral(density, ends[0], ends[1], turns=turns)


def _chi_square(room: Vector, mu: Vector, sigma2: float) -> Vector:
    """Return the probability that normal numbers of one variance have a sum of squares of at most ``room``."""
    from scipy.stats import chi2, ncx2

    at = np.maximum(room, 0.0) / sigma2
    excess = dot(mu, mu) / sigma2
    return np.asarray(ncx2.cdf(at, len(mu), excess) if excess > 1e-12 else chi2.cdf(at, len(mu)))
