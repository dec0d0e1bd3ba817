"""Probability that a Gaussian lies in a region: numbers only, without frames.

A domain that plans under uncertainty uses probabilities: that a block stands on another, that a
point lies inside a region, that a hand keeps clear of what is near. For a Gaussian and the sets
that occur, most of them are known in closed form, and most others are an integral over one
variable:

=====================================  ====================================================================
set                                    method
=====================================  ====================================================================
interval, half space, slab             closed form: the normal distribution function
box, errors of its axes independent    closed form: a product
two slabs, errors correlated           quadrature over the first, the second given the first
ball, sphere-shaped errors             closed form: the (noncentral) chi-square distribution function
ellipse; ellipsoid of revolution with  quadrature along one axis
errors of the same axis
anything else                          sampling, seeded
=====================================  ====================================================================

Errors that do not reach a set's boundary in some direction (a variance of zero) are ordinary: they
are taken out first. What has no closed form and no single integral is sampled. Each answer is a
:class:`Probability`, which says how it was found and how far it may be off.

The idea for ellipsoids is a change of coordinates, in which one is the unit ball and the axes are
those of the errors. The question then is how probable a sum of squares of independent normal
numbers is at most 1. Where all have one variance that is the (noncentral) chi-square distribution.
Where all but one have, it is integrated along that one's axis, since what is cut across it is a
ball again. All else is sampled.

Invariants: the same arguments give the same bits; the value lies in [0, 1].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import (
    asin,
    circle,
    cos,
    dot,
    eigen,
    erf,
    erfc,
    exp,
    product,
    sin,
    standard_normals,
)
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers

DEFAULT_SAMPLES = 20_000
_NOISE_FLOOR = 1e-14  # share of the greatest variance below which a direction counts as exact
_REACH = 9.0  # standard deviations beyond which nothing is integrated: 2e-19 lies there
_NODES = 24  # of Gauss and Legendre on each piece of an integral
_UNCORRELATED = 1e-13  # correlation below which errors count as independent

Vector = NDArray[np.float64]


class ProbabilityMethod(StrEnum):
    """How a probability was found."""

    CLOSED_FORM = "closed form"
    """Evaluated to rounding."""
    QUADRATURE = "quadrature"
    """An integral over one variable."""
    SAMPLED = "sampled"
    """The share of seeded samples."""


@dataclass(frozen=True)
class Probability:
    """A probability, how it was found, and how far it may be off.

    Attributes:
        value: from 0 to 1.
        method: how it was found.
        standard_error: of the value: zero for closed forms, an estimate of the quadrature's error,
            or that of sampling, which is never below one over the number of samples.
    """

    value: float
    method: ProbabilityMethod = ProbabilityMethod.CLOSED_FORM
    standard_error: float = 0.0

    def is_at_least(self, asked: float) -> bool:
        """Return whether the value is at least ``asked``; the error is not counted in anybody's favour."""
        return self.value >= asked

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        off = f" +- {self.standard_error:.1g}" if self.method is ProbabilityMethod.SAMPLED else ""
        return f"{self.value:.4g}{off}"


def inside_box(
    mean: ArrayLike, covariance: ArrayLike, *, lower: ArrayLike, upper: ArrayLike
) -> Probability:
    """Return the probability that a Gaussian vector lies in a box along its axes.

    Args:
        mean: (n,) metres, or any unit.
        covariance: (n, n) of the vector; it may be singular.
        lower: (n,) lower corner; entries may be minus infinity.
        upper: (n,) upper corner; entries may be infinity.

    Raises:
        ConfigurationError: shapes that do not fit, or a corner that is not below the other.
    """
    centre = np.atleast_1d(plain_numbers(mean, "mean"))
    return inside_slabs(
        centre, covariance, directions=np.eye(len(centre)), lower=lower, upper=upper
    )


def inside_half_spaces(
    mean: ArrayLike, covariance: ArrayLike, *, normals: ArrayLike, offsets: ArrayLike, seed: int = 0
) -> Probability:
    """Return the probability that ``normals @ x <= offsets`` in every row.

    Args:
        mean: (n,) of x.
        covariance: (n, n) of x; it may be singular.
        normals: (m, n) outward normals, of any length.
        offsets: (m,).
        seed: of the samples, should they be needed.

    Raises:
        ConfigurationError: shapes that do not fit.
    """
    rows = np.atleast_2d(plain_numbers(normals, "normals"))
    nothing = np.full(len(rows), -math.inf)
    return inside_slabs(mean, covariance, directions=rows, lower=nothing, upper=offsets, seed=seed)


def inside_slabs(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    directions: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    seed: int = 0,
    count: int = DEFAULT_SAMPLES,
) -> Probability:
    """Return the probability that ``lower <= directions @ x <= upper`` in every row.

    Slabs whose numbers are independent of all others give factors, pairs that are correlated a
    quadrature; three and more that are correlated with each other are sampled.

    Args:
        mean: (n,) of x.
        covariance: (n, n) of x; it may be singular.
        directions: (m, n) of any length.
        lower: (m,); entries may be minus infinity.
        upper: (m,); entries may be infinity.
        seed: of the samples, should they be needed.
        count: of the samples.

    Raises:
        ConfigurationError: shapes that do not fit, or a lower bound above its upper one.
    """
    centre, spread = _checked_gaussian(mean, covariance)
    rows = plain_numbers(directions, "directions")
    low, high = (np.atleast_1d(plain_numbers(bound, "bounds")) for bound in (lower, upper))
    if (
        rows.ndim != 2
        or rows.shape[1] != len(centre)
        or low.shape != (len(rows),)
        or high.shape != low.shape
    ):
        shapes = f"{rows.shape}, {low.shape} and {high.shape}"
        raise ConfigurationError(
            f"directions and bounds of a vector of {len(centre)} numbers have shapes {shapes}"
        )
    if np.any(low > high) or np.any(np.isnan(low)) or np.any(np.isnan(high)):
        raise ConfigurationError(
            f"each lower bound must be at most its upper one, not {low.tolist()}, {high.tolist()}"
        )
    return _slabs(
        product(rows, centre), product(rows, spread, rows.T), low, high, seed=seed, count=count
    )


def _slabs(
    mean: Vector, covariance: Vector, low: Vector, high: Vector, *, seed: int, count: int
) -> Probability:
    """Return the probability of a box, axes taken apart where nothing couples them."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    floor = math.sqrt(_NOISE_FLOOR) * float(deviations.max(initial=0.0))
    exact = deviations <= floor
    if np.any((mean[exact] < low[exact]) | (mean[exact] > high[exact])):
        return Probability(0.0)
    left = [int(i) for i in np.flatnonzero(~exact)]
    scale = deviations[:, None] * deviations[None, :]
    correlation = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0.0)
    first, last = (
        np.divide(bound - mean, deviations, out=np.zeros_like(mean), where=deviations > 0.0)
        for bound in (low, high)
    )
    found = Probability(1.0)
    while left:
        group = _coupled(left, correlation)
        left = [i for i in left if i not in group]
        if len(group) == 1:
            part = Probability(_between(float(first[group[0]]), float(last[group[0]])))
        elif len(group) == 2:
            i, j = group
            part = _pair(float(correlation[i, j]), (first[i], last[i]), (first[j], last[j]))
        else:
            own = correlation[np.ix_(group, group)]
            inside = functools.partial(_all_between, first[group], last[group])
            part = sampled_probability(np.zeros(len(group)), own, inside, seed=seed, count=count)
        found = _both(found, part)
    return found


def _all_between(lower: Vector, upper: Vector, samples: Vector) -> NDArray[np.bool_]:
    return np.asarray(((samples >= lower) & (samples <= upper)).all(axis=1))


def _coupled(left: list[int], correlation: Vector) -> list[int]:
    """Return the indices that are correlated with the first of those left, through others too; sorted."""
    group, waiting = {left[0]}, [left[0]]
    while waiting:
        i = waiting.pop()
        for j in left:
            if j not in group and abs(float(correlation[i, j])) > _UNCORRELATED:
                group.add(j)
                waiting.append(j)
    return sorted(group)


def _both(a: Probability, b: Probability) -> Probability:
    """Return the probability of two independent events."""
    order = list(ProbabilityMethod)
    method = max(a.method, b.method, key=order.index)
    error = math.hypot(a.value * b.standard_error, b.value * a.standard_error)
    return Probability(a.value * b.value, method, error)


def _between(first: float, last: float) -> float:
    """Return the probability that a standard normal number lies between two; exact in both tails."""
    if first > 0.0:
        first, last = -last, -first
    root = math.sqrt(2.0)
    if last <= 0.0:
        return max(0.0, 0.5 * (erfc(-last / root) - erfc(-first / root)))
    return 0.5 * (erf(last / root) - erf(first / root))


def _pair(rho: float, one: tuple[float, float], two: tuple[float, float]) -> Probability:
    """Return the probability that two standard normal numbers of a correlation lie in two intervals."""
    rest = math.sqrt(max(0.0, (1.0 - rho) * (1.0 + rho)))
    first, last = max(float(one[0]), -_REACH), min(float(one[1]), _REACH)
    if first >= last:
        return Probability(0.0)
    if rest < 1e-7:  # one number in two scales: the intervals meet on a line
        a, b = sorted((float(two[0]) / rho, float(two[1]) / rho))
        return Probability(
            _between(max(a, float(one[0])), min(b, float(one[1])))
            if a < one[1] and b > one[0]
            else 0.0
        )

    def density(u: float) -> float:
        return (
            exp(-0.5 * u * u)
            / math.sqrt(math.tau)
            * _between((two[0] - rho * u) / rest, (two[1] - rho * u) / rest)
        )

    edges = [edge / rho for edge in two if math.isfinite(edge)]
    width = rest / abs(rho)
    return _integral(
        density, first, last, turns=[edge + k * width for edge in edges for k in (-6, -2, 0, 2, 6)]
    )


def _integral(
    density: Callable[[float], float], first: float, last: float, *, turns: list[float]
) -> Probability:
    """Return an integral by Gauss-Legendre quadrature, in intervals of at most one unit.

    ``turns`` are points at which the integrand is not smooth.
    """
    points = [first, *(turn for turn in turns if first < turn < last), last]
    points += list(np.arange(math.ceil(first), last))
    edges = np.unique(np.clip(points, first, last))

    def total(nodes: int) -> float:
        at, weights = _gauss_legendre(nodes)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        values = [density(x) for x in (middle[:, None] + half[:, None] * at).ravel().tolist()]
        return dot(half, product(np.reshape(values, (len(half), nodes)), weights))

    value = total(_NODES)
    error = max(abs(value - total(_NODES // 2)), 1e-15)
    return Probability(min(1.0, max(0.0, value)), ProbabilityMethod.QUADRATURE, error)


@functools.cache
def _gauss_legendre(count: int) -> tuple[Vector, Vector]:
    """Return the nodes (count,) and weights (count,) of Gauss and Legendre on [-1, 1]; numpy's come from LAPACK."""
    at = -circle((np.arange(count) + 0.75) * math.pi / (count + 0.5))[:, 0]
    for _ in range(6):  # Newton's steps on the polynomial, by its recurrence
        last, value = np.ones(count), at
        for n in range(2, count + 1):
            last, value = value, ((2 * n - 1) * at * value - (n - 1) * last) / n
        slope = count * (at * value - last) / (at * at - 1.0)
        at = at - value / slope
    return at, 2.0 / ((1.0 - at * at) * slope * slope)


def angle_within(variance: float, limit: float, *, mean: float = 0.0) -> Probability:
    """Return the probability that a turn about a fixed axis is at most ``limit`` either way; closed form.

    Args:
        variance: of the angle, rad^2.
        limit: radians, not negative.
        mean: radians.

    Raises:
        ConfigurationError: a negative variance or limit.
    """
    if not variance >= 0.0 or not limit >= 0.0:
        raise ConfigurationError(
            f"a variance and a limit must not be negative, not {variance} and {limit}"
        )
    return inside_box([mean], [[variance]], lower=[-limit], upper=[limit])


def clearance_at_least(distance: float, variance: float, *, margin: float = 0.0) -> Probability:
    """Return the probability that two bodies keep a margin, to first order; closed form.

    Args:
        distance: metres between the bodies where both are expected, negative when they overlap.
        variance: m^2 of the distance: that of the relative error along the normal at the nearest
            points.
        margin: metres that are to be kept.

    Raises:
        ConfigurationError: a negative variance.
    """
    if not variance >= 0.0:
        raise ConfigurationError(f"a variance must not be negative, not {variance}")
    return inside_box([distance], [[variance]], lower=[margin], upper=[math.inf])


def sampled_probability(
    mean: ArrayLike,
    covariance: ArrayLike,
    holds: Callable[[Vector], NDArray[np.bool_]],
    *,
    seed: int,
    count: int = DEFAULT_SAMPLES,
) -> Probability:
    """Return the share of samples of a Gaussian for which something holds.

    Args:
        mean: (n,).
        covariance: (n, n), symmetric positive semi-definite.
        holds: told (count, n) samples, answers (count,) booleans.
        seed: of the samples; the same seed gives the same answer.
        count: number of samples, at least 1.

    Raises:
        ConfigurationError: shapes that do not fit, or no samples.
    """
    centre, spread = _checked_gaussian(mean, covariance)
    if count < 1:
        raise ConfigurationError(f"count must be at least 1, not {count}")
    variances, directions = eigen(spread)
    root = directions * np.sqrt(np.maximum(variances, 0.0))
    samples = centre + product(
        standard_normals(seed, count * len(centre)).reshape(count, -1), root.T
    )
    return share_of(holds(samples))


def share_of(holds: NDArray[np.bool_]) -> Probability:
    """Return the share of true values (count,) as a sampled probability."""
    count = len(holds)
    value = float(np.count_nonzero(holds)) / count
    error = max(math.sqrt(value * (1.0 - value) / count), 1.0 / count)
    return Probability(value, ProbabilityMethod.SAMPLED, error)


def _checked_gaussian(mean: ArrayLike, covariance: ArrayLike) -> tuple[Vector, Vector]:
    """Return a mean (n,) and a covariance (n, n) as arrays, the covariance symmetric; refuse what is none."""
    centre, spread = (
        np.atleast_1d(plain_numbers(mean, "mean")),
        np.atleast_2d(plain_numbers(covariance, "covariance")),
    )
    if centre.ndim != 1 or spread.shape != (len(centre), len(centre)):
        raise ConfigurationError(
            f"a mean of shape {centre.shape} has no covariance of shape {spread.shape}"
        )
    if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(spread))):
        raise ConfigurationError("a mean or covariance has entries that are not finite")
    values, _ = eigen((spread + spread.T) / 2)
    if np.max(np.abs(spread - spread.T)) > 1e-9 * (1e-300 + np.max(np.abs(spread))) or values[
        0
    ] < -1e-9 * abs(values[-1]):
        raise ConfigurationError(
            f"a covariance is not symmetric positive semi-definite; eigenvalues {values.tolist()}"
        )
    return centre, (spread + spread.T) / 2


def inside_ellipsoid(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    centre: ArrayLike,
    axes: ArrayLike,
    seed: int = 0,
    count: int = DEFAULT_SAMPLES,
) -> Probability:
    """Return the probability that a Gaussian point lies in an ellipse or ellipsoid.

    Args:
        mean: (n,) of the point.
        covariance: (n, n) of the point; it may be singular.
        centre: (n,) of the ellipsoid.
        axes: (n, n), its half axes as columns; orthogonal, of any length but zero. A ball of radius
            r has ``r * I``.
        seed: of the samples, should they be needed.
        count: of the samples.

    Raises:
        ConfigurationError: shapes that do not fit, or half axes that are not orthogonal.
    """
    point, spread = _checked_gaussian(mean, covariance)
    half_axes = plain_numbers(axes, "axes")
    middle = plain_numbers(centre, "centre")
    if half_axes.shape != spread.shape or middle.shape != point.shape:
        raise ConfigurationError(
            f"an ellipsoid around {middle.shape} with axes {half_axes.shape} is not in"
            f" {point.shape}"
        )
    products = product(half_axes.T, half_axes)
    squares = np.diag(products)
    if np.any(squares <= 0.0) or np.max(np.abs(products - np.diag(squares))) > 1e-9 * float(
        squares.max()
    ):
        raise ConfigurationError("the half axes of an ellipsoid must be orthogonal and not zero")
    to_ball = half_axes.T / squares[:, None]  # the inverse, since the axes are orthogonal
    variances, directions = eigen(product(to_ball, spread, to_ball.T))
    offset = product(directions.T, to_ball, point - middle)
    variances = np.where(
        variances > _NOISE_FLOOR * max(float(variances.max(initial=0.0)), 0.0), variances, 0.0
    )
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
    # the eigenvalues are in order, so what differs from equal others is at an end
    for alone in (0, len(mu) - 1):
        others = np.delete(np.arange(len(mu), dtype=np.intp), alone)
        if np.ptp(sigma2[others]) <= 1e-12 * float(sigma2.max()):
            return _of_revolution(room, mu, sigma2, alone=alone, others=others)
    return sampled_probability(
        mu,
        np.diag(sigma2),
        lambda x: np.asarray(np.sum(x * x, axis=1) <= room),
        seed=seed,
        count=count,
    )


def _of_revolution(
    room: float, mu: Vector, sigma2: Vector, *, alone: int, others: NDArray[np.intp]
) -> Probability:
    """Integrate along the axis of revolution; across it the chi-square distribution is known."""
    deviation, radius = math.sqrt(float(sigma2[alone])), math.sqrt(room)
    centre = float(mu[alone])
    first, last = (
        max(-radius, centre - _REACH * deviation),
        min(radius, centre + _REACH * deviation),
    )
    if first >= last:
        return Probability(0.0)

    # x = radius sin(angle): the root at the poles becomes smooth
    def density(angle: float) -> float:
        x = radius * sin(angle)
        across = float(_chi_square(np.array(room - x * x), mu[others], float(sigma2[others[0]])))
        scaled = (x - centre) / deviation
        return (
            exp(-0.5 * scaled * scaled)
            / (deviation * math.sqrt(math.tau))
            * across
            * radius
            * cos(angle)
        )

    ends = [asin(max(-1.0, min(1.0, x / radius))) for x in (first, last)]
    turns = [asin(x / radius) for k in range(-8, 9) if abs(x := centre + k * deviation) < radius]
    return _integral(density, ends[0], ends[1], turns=turns)


def _chi_square(room: Vector, mu: Vector, sigma2: float) -> Vector:
    """Return the probability that normal numbers of one variance have a sum of squares of at most ``room``."""
    from scipy.stats import chi2, ncx2

    at = np.maximum(room, 0.0) / sigma2
    excess = dot(mu, mu) / sigma2
    return np.asarray(ncx2.cdf(at, len(mu), excess) if excess > 1e-12 else chi2.cdf(at, len(mu)))
