"""Probability that a Gaussian vector lies in a set, for numbers without frames.

A domain that plans under uncertainty uses probabilities: of a block on another, of a point inside a
region, of a clearance between a hand and its surroundings. For a Gaussian and the sets that occur,
most of them have a closed form, and most others are an integral over one variable:

=====================================  ============================================================
set                                    method
=====================================  ============================================================
interval, half space, slab             closed form: the normal distribution function
box, errors of its axes independent    closed form: a product
two slabs, errors correlated           quadrature over the first, the second given the first
ball, sphere-shaped errors             closed form: the (noncentral) chi-square distribution
ellipse; ellipsoid of revolution with  quadrature along one axis
errors of the same axis
anything else                          sampling, seeded
=====================================  ============================================================

Directions of zero variance are valid, and are eliminated first. All other cases are sampled. Each
result is a :class:`Probability` with its method and standard error.

An ellipsoid is mapped to the unit ball, in the principal axes of the errors. The probability is
then that of a sum of squares of independent normal numbers of at most 1. For equal variances, it
is given by the (noncentral) chi-square distribution. If all variances but one are equal, it is
integrated along the axis of that one, since cross-sections are balls. All other cases are sampled.

Invariants: equal arguments give bitwise equal results; the value lies in [0, 1].
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
"""Default number of samples."""

_NOISE_FLOOR = 1e-14
"""Fraction of the greatest variance below which a direction counts as exact."""

_INTEGRATION_BOUND = 9.0
"""Bound of integrals [standard deviations]; the probability beyond it is 2e-19."""

_NODE_COUNT = 24
"""Number of Gauss-Legendre nodes on each interval of an integral."""

_MIN_CORRELATION = 1e-13
"""Correlation up to which errors count as independent."""

Vector = NDArray[np.float64]


class ProbabilityMethod(StrEnum):
    """Method that computed a probability."""

    CLOSED_FORM = "closed form"
    """Closed form, exact to rounding."""
    QUADRATURE = "quadrature"
    """Integral over one variable."""
    SAMPLED = "sampled"
    """Fraction of seeded samples."""


@dataclass(frozen=True)
class Probability:
    """Probability with its method and standard error.

    Attributes:
        value: probability, in [0, 1].
        method: method that computed it.
        standard_error: standard error of the value: zero for closed forms, an estimate of the
            quadrature error, or the sampling error, which is at least 1 / number of samples.
    """

    value: float
    method: ProbabilityMethod = ProbabilityMethod.CLOSED_FORM
    standard_error: float = 0.0

    def is_at_least(self, threshold: float) -> bool:
        """Return whether the value is at least a threshold, regardless of its standard error."""
        return self.value >= threshold

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        error = f" +- {self.standard_error:.1g}" if self.method is ProbabilityMethod.SAMPLED else ""
        return f"{self.value:.4g}{error}"


def inside_box(
    mean: ArrayLike, covariance: ArrayLike, *, lower: ArrayLike, upper: ArrayLike
) -> Probability:
    """Return the probability that a Gaussian vector lies in a box along its axes.

    Args:
        mean: (n,) mean of the vector, in any unit.
        covariance: (n, n) covariance of the vector; it may be singular.
        lower: (n,) lower corner; entries may be minus infinity.
        upper: (n,) upper corner; entries may be infinity.

    Raises:
        ConfigurationError: if shapes do not fit, or a lower bound exceeds its upper bound.
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
        mean: (n,) mean of x.
        covariance: (n, n) covariance of x; it may be singular.
        normals: (m, n) outward normals, of any length.
        offsets: (m,) upper bounds.
        seed: seed of the samples, if any.

    Raises:
        ConfigurationError: if shapes do not fit.
    """
    rows = np.atleast_2d(plain_numbers(normals, "normals"))
    lower = np.full(len(rows), -math.inf)
    return inside_slabs(mean, covariance, directions=rows, lower=lower, upper=offsets, seed=seed)


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

    Independent slabs are factors, and correlated pairs are integrated. Groups of three or more
    correlated slabs are sampled.

    Args:
        mean: (n,) mean of x.
        covariance: (n, n) covariance of x; it may be singular.
        directions: (m, n) directions of any length.
        lower: (m,) lower bounds; entries may be minus infinity.
        upper: (m,) upper bounds; entries may be infinity.
        seed: seed of the samples, if any.
        count: number of samples.

    Raises:
        ConfigurationError: if shapes do not fit, or a lower bound exceeds its upper bound.
    """
    centre, spread = _gaussian_arrays(mean, covariance)
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
    """Return the probability of a box, as a product over groups of correlated axes."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    floor = math.sqrt(_NOISE_FLOOR) * float(deviations.max(initial=0.0))
    exact = deviations <= floor
    if np.any((mean[exact] < low[exact]) | (mean[exact] > high[exact])):
        return Probability(0.0)
    remaining = [int(i) for i in np.flatnonzero(~exact)]
    scale = deviations[:, None] * deviations[None, :]
    correlation = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0.0)
    first, last = (
        np.divide(bound - mean, deviations, out=np.zeros_like(mean), where=deviations > 0.0)
        for bound in (low, high)
    )
    total = Probability(1.0)
    while remaining:
        group = _correlated_group(remaining, correlation)
        remaining = [i for i in remaining if i not in group]
        if len(group) == 1:
            part = Probability(_interval_probability(float(first[group[0]]), float(last[group[0]])))
        elif len(group) == 2:
            i, j = group
            part = _pair(float(correlation[i, j]), (first[i], last[i]), (first[j], last[j]))
        else:
            block = correlation[np.ix_(group, group)]
            inside = functools.partial(_is_inside, first[group], last[group])
            part = sampled_probability(np.zeros(len(group)), block, inside, seed=seed, count=count)
        total = _multiply(total, part)
    return total


def _is_inside(lower: Vector, upper: Vector, samples: Vector) -> NDArray[np.bool_]:
    return np.asarray(((samples >= lower) & (samples <= upper)).all(axis=1))


def _correlated_group(indices: list[int], correlation: Vector) -> list[int]:
    """Return the sorted indices that are correlated with the first, directly or indirectly."""
    group, queue = {indices[0]}, [indices[0]]
    while queue:
        i = queue.pop()
        for j in indices:
            if j not in group and abs(float(correlation[i, j])) > _MIN_CORRELATION:
                group.add(j)
                queue.append(j)
    return sorted(group)


def _multiply(a: Probability, b: Probability) -> Probability:
    """Return the probability of two independent events."""
    order = list(ProbabilityMethod)
    method = max(a.method, b.method, key=order.index)
    error = math.hypot(a.value * b.standard_error, b.value * a.standard_error)
    return Probability(a.value * b.value, method, error)


def _interval_probability(first: float, last: float) -> float:
    """Return the probability of an interval of a standard normal number; exact in both tails."""
    if first > 0.0:
        first, last = -last, -first
    root = math.sqrt(2.0)
    if last <= 0.0:
        return max(0.0, 0.5 * (erfc(-last / root) - erfc(-first / root)))
    return 0.5 * (erf(last / root) - erf(first / root))


def _pair(rho: float, range_a: tuple[float, float], range_b: tuple[float, float]) -> Probability:
    """Return the probability that two correlated standard normal numbers lie in two intervals."""
    deviation = math.sqrt(max(0.0, (1.0 - rho) * (1.0 + rho)))
    first = max(float(range_a[0]), -_INTEGRATION_BOUND)
    last = min(float(range_a[1]), _INTEGRATION_BOUND)
    if first >= last:
        return Probability(0.0)
    if deviation < 1e-7:  # the numbers are proportional: the intervals intersect on a line
        a, b = sorted((float(range_b[0]) / rho, float(range_b[1]) / rho))
        if a >= range_a[1] or b <= range_a[0]:
            return Probability(0.0)
        return Probability(
            _interval_probability(max(a, float(range_a[0])), min(b, float(range_a[1])))
        )

    def density(u: float) -> float:
        lower, upper = ((bound - rho * u) / deviation for bound in range_b)
        return exp(-0.5 * u * u) / math.sqrt(math.tau) * _interval_probability(lower, upper)

    edges = [edge / rho for edge in range_b if math.isfinite(edge)]
    width = deviation / abs(rho)
    breaks = [edge + k * width for edge in edges for k in (-6, -2, 0, 2, 6)]
    return _integral(density, first, last, breaks=breaks)


def _integral(
    density: Callable[[float], float], first: float, last: float, *, breaks: list[float]
) -> Probability:
    """Return an integral by Gauss-Legendre quadrature, in intervals of at most one unit.

    ``breaks`` are points at which the integrand is not smooth.
    """
    points = [first, *(point for point in breaks if first < point < last), last]
    points += list(np.arange(math.ceil(first), last))
    edges = np.unique(np.clip(points, first, last))

    def total(nodes: int) -> float:
        abscissae, weights = _gauss_legendre(nodes)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        points = (middle[:, None] + half[:, None] * abscissae).ravel().tolist()
        values = [density(x) for x in points]
        return dot(half, product(np.reshape(values, (len(half), nodes)), weights))

    value = total(_NODE_COUNT)
    error = max(abs(value - total(_NODE_COUNT // 2)), 1e-15)
    return Probability(min(1.0, max(0.0, value)), ProbabilityMethod.QUADRATURE, error)


@functools.cache
def _gauss_legendre(count: int) -> tuple[Vector, Vector]:
    """Return the (count,) nodes and (count,) weights of Gauss-Legendre quadrature on [-1, 1].

    Those of numpy come from LAPACK, and are not reproducible.
    """
    nodes = -circle((np.arange(count) + 0.75) * math.pi / (count + 0.5))[:, 0]
    for _ in range(6):  # Newton steps on the polynomial, by its recurrence
        last, value = np.ones(count), nodes
        for n in range(2, count + 1):
            last, value = value, ((2 * n - 1) * nodes * value - (n - 1) * last) / n
        slope = count * (nodes * value - last) / (nodes * nodes - 1.0)
        nodes = nodes - value / slope
    return nodes, 2.0 / ((1.0 - nodes * nodes) * slope * slope)


def angle_within(variance: float, limit: float, *, mean: float = 0.0) -> Probability:
    """Return the probability that an angle lies in [-limit, limit]; closed form.

    Args:
        variance: variance of the angle [rad^2].
        limit: largest absolute angle, at least 0 [rad].
        mean: mean of the angle [rad].

    Raises:
        ConfigurationError: if the variance or the limit is negative.
    """
    if not variance >= 0.0 or not limit >= 0.0:
        raise ConfigurationError(
            f"a variance and a limit must not be negative, not {variance} and {limit}"
        )
    return inside_box([mean], [[variance]], lower=[-limit], upper=[limit])


def clearance_at_least(distance: float, variance: float, *, margin: float = 0.0) -> Probability:
    """Return the probability that two bodies keep a margin, to first order; closed form.

    Args:
        distance: distance of the bodies at their mean poses, negative if they overlap [m].
        variance: variance of the distance, from the relative error along the normal at the nearest
            points [m^2].
        margin: smallest accepted distance [m].

    Raises:
        ConfigurationError: if the variance is negative.
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
    """Return the fraction of samples of a Gaussian that satisfy a condition.

    Args:
        mean: (n,) mean.
        covariance: (n, n) symmetric positive semi-definite covariance.
        holds: function that returns (count,) booleans for (count, n) samples.
        seed: seed of the samples; equal seeds give equal results.
        count: number of samples, at least 1.

    Raises:
        ConfigurationError: if shapes do not fit, or ``count`` is below 1.
    """
    centre, spread = _gaussian_arrays(mean, covariance)
    if count < 1:
        raise ConfigurationError(f"count must be at least 1, not {count}")
    variances, directions = eigen(spread)
    root = directions * np.sqrt(np.maximum(variances, 0.0))
    samples = centre + product(
        standard_normals(seed, count * len(centre)).reshape(count, -1), root.T
    )
    return share_of(holds(samples))


def share_of(holds: NDArray[np.bool_]) -> Probability:
    """Return the fraction of true values in (count,) booleans as a sampled probability."""
    count = len(holds)
    value = float(np.count_nonzero(holds)) / count
    error = max(math.sqrt(value * (1.0 - value) / count), 1.0 / count)
    return Probability(value, ProbabilityMethod.SAMPLED, error)


def _gaussian_arrays(mean: ArrayLike, covariance: ArrayLike) -> tuple[Vector, Vector]:
    """Return an (n,) mean and an (n, n) symmetric covariance as arrays.

    Raises:
        ConfigurationError: if shapes do not fit, entries are not finite, or the covariance is not
            symmetric positive semi-definite.
    """
    centre = np.atleast_1d(plain_numbers(mean, "mean"))
    spread = np.atleast_2d(plain_numbers(covariance, "covariance"))
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
        mean: (n,) mean of the point.
        covariance: (n, n) covariance of the point; it may be singular.
        centre: (n,) centre of the ellipsoid.
        axes: (n, n) half axes as columns, orthogonal and not zero; ``r * I`` for a ball of
            radius r.
        seed: seed of the samples, if any.
        count: number of samples.

    Raises:
        ConfigurationError: if shapes do not fit, or half axes are zero or not orthogonal.
    """
    point, spread = _gaussian_arrays(mean, covariance)
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
    # The eigenvalues are sorted, so the one that differs from equal others is the first or last.
    for axis in (0, len(mu) - 1):
        equal_axes = np.delete(np.arange(len(mu), dtype=np.intp), axis)
        if np.ptp(sigma2[equal_axes]) <= 1e-12 * float(sigma2.max()):
            return _in_spheroid(room, mu, sigma2, axis=axis, equal_axes=equal_axes)
    return sampled_probability(
        mu,
        np.diag(sigma2),
        lambda x: np.asarray(np.sum(x * x, axis=1) <= room),
        seed=seed,
        count=count,
    )


def _in_spheroid(
    room: float, mu: Vector, sigma2: Vector, *, axis: int, equal_axes: NDArray[np.intp]
) -> Probability:
    """Integrate the chi-square distribution of cross-sections along the axis of revolution."""
    deviation, radius = math.sqrt(float(sigma2[axis])), math.sqrt(room)
    centre = float(mu[axis])
    first = max(-radius, centre - _INTEGRATION_BOUND * deviation)
    last = min(radius, centre + _INTEGRATION_BOUND * deviation)
    if first >= last:
        return Probability(0.0)
    cross_mu, cross_variance = mu[equal_axes], float(sigma2[equal_axes[0]])

    # The substitution x = radius sin(angle) makes the integrand smooth at the poles.
    def density(angle: float) -> float:
        x = radius * sin(angle)
        across = float(_chi_square(np.array(room - x * x), cross_mu, cross_variance))
        scaled = (x - centre) / deviation
        normal = exp(-0.5 * scaled * scaled) / (deviation * math.sqrt(math.tau))
        return normal * across * radius * cos(angle)

    ends = [asin(max(-1.0, min(1.0, x / radius))) for x in (first, last)]
    breaks = [asin(x / radius) for k in range(-8, 9) if abs(x := centre + k * deviation) < radius]
    return _integral(density, ends[0], ends[1], breaks=breaks)


def _chi_square(room: Vector, mu: Vector, sigma2: float) -> Vector:
    """Return the probability of a sum of squares of at most ``room``, for one variance."""
    from scipy.stats import chi2, ncx2

    bound = np.maximum(room, 0.0) / sigma2
    excess = dot(mu, mu) / sigma2
    if excess > 1e-12:
        return np.asarray(ncx2.cdf(bound, len(mu), excess))
    return np.asarray(chi2.cdf(bound, len(mu)))
