"""Blended polylines: rounded corners, time-optimal speed, and an average over time.

The motion follows from three steps, each with its guarantee:

1. The path at distance ``s`` is the mean of the polyline over ``s - w(s)`` to ``s + w(s)`` with a
   parabolic weight. It is twice continuously differentiable and equals the polyline wherever no
   corner is within ``w``. It deviates by at most 3/16 of the sum of ``w |turn|`` over the corners
   within ``w``.
2. The squared speed along the path is as large as the limits of velocity and acceleration allow. A
   backward and a forward pass over a grid solve linear programs in two variables (H. Pham, Q.-C.
   Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
   T-RO 2018).
3. The motion is averaged over the last T seconds, and so takes T longer. A mean exceeds no limit
   that the original keeps. Its jerk is the difference of two accelerations divided by T, at most 2
   a / T.

Torques are limits of the second step, linear in the acceleration and the squared speed along the
path. The third step changes the torques, so they are computed again for its result. Where one is
too large, the limit of the second step is reduced.

Invariants: no joint exceeds a limit of velocity, acceleration, jerk or torque at any time. The
motion begins and ends at rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms, product
from tmkit.motion.dynamics import TorqueLimits

_Array = NDArray[np.float64]

_QUADRATURE_POINTS = np.array([-0.932469514203152, -0.6612093864662645, -0.2386191860831969])
_QUADRATURE_POINTS = np.concatenate([_QUADRATURE_POINTS, -_QUADRATURE_POINTS[::-1]])
"""(6,) nodes of Gauss-Legendre quadrature, exact for polynomials of degree 11.

They are constants, since the rounding of LAPACK depends on the CPU.
"""

_QUADRATURE_WEIGHTS = np.array([0.1713244923791704, 0.3607615730481386, 0.467913934572691])
_QUADRATURE_WEIGHTS = np.concatenate([_QUADRATURE_WEIGHTS, _QUADRATURE_WEIGHTS[::-1]])
"""(6,) weights of the nodes."""

_GRID_SPACING = 0.015
"""Largest distance between points of the grid [rad or m]."""

_MAX_GRID_INTERVALS = 1200
"""Largest number of intervals of a uniform grid."""

_MIN_GRID_INTERVALS = 40
"""Smallest number of intervals of a uniform grid."""

_WIDTH_SLOPE = 0.5
"""Asymptotic slope of the half width of the mean along the path."""

_WIDTH_SHARPNESS = 8.0
"""Exponent of the smooth minimum of half widths."""

_END_WIDTH = 1e-4
"""Half width at the ends of the path [rad or m]."""

_CHECKED_FRACTIONS = (0.15, 0.35, 0.5, 0.65, 0.85)
"""Fractions of an interval of the grid at which limits are checked."""

_SPEED_RESERVE = 1.0001
"""Factor of the squared speed that covers positions between checked ones."""

_SPEED_PASSES = 2
"""Number of computations of the speed, the later ones with corrected limits."""

_TORQUE_ATTEMPTS = 6
"""Number of corrections of torque limits before the whole motion becomes slower."""

_MAX_TORQUE_CORRECTION = 1.5
"""Largest factor by which one attempt reduces a torque limit."""

_MIN_TORQUE_FRACTION = 1e-4
"""Fraction of an effort limit for the motion where gravity uses all of it."""

_TORQUE_RESERVE = 2e-3
"""Fraction of an effort limit that covers times between samples."""

_TORQUE_PERIOD = 0.004
"""Time between samples of torques [s]."""

_FINE_TORQUE_PERIOD = 0.001
"""Time between samples of torques in the last check [s]."""

_RELEVANT_TORQUE_RATIO = 0.6
"""Ratio of a torque to its limit above which the second step includes the joint."""

_ACCELERATION_FRACTIONS = (1.0, 0.7, 0.45)
"""Candidate fractions of the acceleration limits. A smaller one needs a shorter mean over time."""


@dataclass(frozen=True, eq=False)
class BlendedMotion:
    """A motion from rest to rest as a function of time.

    Positions have n + 1 columns, of which the last is the distance along the polyline. Its mean is
    the distance of the motion along the polyline.

    Attributes:
        polyline: (k, n) points [rad or m].
        widths: (k,) half width of the mean along the path at each point.
        vertices: (k,) distance of each point along the polyline.
        s: (m,) grid of distances along the path.
        pieces: (m - 1, 6, n + 1) quintics of the position between the points of the grid.
        speed: (m,) speed along the path.
        slope: (m - 1,) acceleration along the path.
        times: (m,) times of the points of the grid, before the mean over time [s].
        mean: duration of the mean over time [s].
    """

    polyline: _Array
    widths: _Array
    vertices: _Array
    s: _Array
    pieces: _Array
    speed: _Array
    slope: _Array
    times: _Array
    mean: float

    @cached_property
    def integral(self) -> _Array:
        """(m, n + 1) integral of the position over time, at the points of the grid."""
        integral = np.zeros((len(self.s), self.pieces.shape[2]))
        integral[1:] = np.cumsum(_integrate(self, self.times[:-1], np.diff(self.times)), axis=0)
        return integral

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""
        return float(self.times[-1]) + self.mean

    def sample(self, times: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return the motion at given times.

        Args:
            times: (m,) times [s].

        Returns:
            (m, n) positions, velocities and accelerations, and the distances (m,) along the
            polyline.
        """
        begins = times - self.mean
        difference = self._integral(times) - self._integral(begins)
        (q, v), (q_begin, v_begin) = self._state(times), self._state(begins)
        mean = difference / self.mean
        return (
            mean[:, :-1],
            (q - q_begin)[:, :-1] / self.mean,
            (v - v_begin)[:, :-1] / self.mean,
            mean[:, -1],
        )

    def _progress(self, times: _Array) -> tuple[_Array, _Array, NDArray[np.intp]]:
        """Return distances and speeds along the path, and intervals of the grid, at times (m,)."""
        clipped = np.clip(times, 0.0, self.times[-1])
        i = np.clip(np.searchsorted(self.times, clipped, side="right") - 1, 0, len(self.slope) - 1)
        elapsed = clipped - self.times[i]
        s = self.s[i] + elapsed * (self.speed[i] + 0.5 * elapsed * self.slope[i])
        return s, np.maximum(self.speed[i] + elapsed * self.slope[i], 0.0), i

    def _state(self, times: _Array) -> tuple[_Array, _Array]:
        """Return positions and velocities before the mean over time."""
        s, speed, i = self._progress(times)
        c, x, h = self.pieces[i], self._fraction(s, i), (self.s[i + 1] - self.s[i])[:, None]
        is_moving = (times > 0.0) & (times < self.times[-1])
        return _value(c, x), _slope(c, x) / h * (speed * is_moving)[:, None]

    def _fraction(self, s: _Array, i: NDArray[np.intp]) -> _Array:
        """Return the fraction (m, 1) of the interval ``i`` (m,) up to each distance ``s`` (m,)."""
        return ((s - self.s[i]) / (self.s[i + 1] - self.s[i]))[:, None]

    def _integral(self, times: _Array) -> _Array:
        """Return the integral (m, n + 1) of the position over time, up to each time (m,)."""
        clipped = np.clip(times, 0.0, self.times[-1])
        _, _, i = self._progress(clipped)
        elapsed = clipped - self.times[i]
        inside = self.integral[i] + _integrate(self, self.times[i], elapsed)
        ends = self.pieces[0, 0], self.pieces[-1].sum(axis=0)
        rest_before = np.minimum(times, 0.0)[:, None] * ends[0]
        rest_after = (times - clipped).clip(0.0)[:, None] * ends[1]
        result: _Array = inside + (rest_before + rest_after)
        return result


def _integrate(motion: BlendedMotion, begin: _Array, length: _Array) -> _Array:
    """Return integrals (m, n + 1) of the position from ``begin`` (m,) for ``length`` (m,) [s]."""
    times = begin[:, None] + 0.5 * length[:, None] * (1.0 + _QUADRATURE_POINTS)
    s, _, i = motion._progress(times.ravel())
    values = _value(motion.pieces[i], motion._fraction(s, i)).reshape(
        len(begin), len(_QUADRATURE_POINTS), -1
    )
    total = sum(weight * values[:, node] for node, weight in enumerate(_QUADRATURE_WEIGHTS))
    result: _Array = total * (0.5 * length)[:, None]
    return result


def _quintics(grid: _Array, q: _Array) -> _Array:
    """Return the quintics that interpolate positions and two derivatives on a grid.

    Args:
        grid: (m,) distances.
        q: (3, m, n + 1) position and its two derivatives by the distance.

    Returns:
        (m - 1, 6, n + 1) coefficients, for an argument from 0 to 1 in each interval.
    """
    h = np.diff(grid)[:, None]
    p, v, a = q[0, :-1], q[1, :-1] * h, q[2, :-1] * h * h / 2.0
    end, v1, a1 = q[0, 1:] - p - v - a, q[1, 1:] * h - v - 2.0 * a, q[2, 1:] * h * h - 2.0 * a
    cubic = 10 * end - 4 * v1 + a1 / 2
    quartic = -15 * end + 7 * v1 - a1
    quintic = 6 * end - 3 * v1 + a1 / 2
    return np.stack([p, v, a, cubic, quartic, quintic], axis=1)


def _value(c: _Array, x: _Array) -> _Array:
    """Return the values of quintics."""
    result = c[:, 5]
    for order in (4, 3, 2, 1, 0):
        result = c[:, order] + x * result
    return result


def _slope(c: _Array, x: _Array | float) -> _Array:
    """Return the first derivatives of quintics."""
    return c[:, 1] + x * (2 * c[:, 2] + x * (3 * c[:, 3] + x * (4 * c[:, 4] + x * 5 * c[:, 5])))


def _curvature(c: _Array, x: _Array | float) -> _Array:
    """Return the second derivatives of quintics."""
    return 2 * c[:, 2] + x * (6 * c[:, 3] + x * (12 * c[:, 4] + x * 20 * c[:, 5]))


@dataclass(frozen=True, eq=False)
class RoundedPath:
    """A polyline with rounded corners.

    Attributes:
        polyline: (k, n) points [rad or m].
        widths: (k,) half width of the mean along the path at each point.
        vertices: (k,) distance of each point along the polyline.
        s: (m,) grid of distances along the path.
        q: (3, m, n + 1) position and its two derivatives by the distance. The last column is the
            distance along the polyline.
    """

    polyline: _Array
    widths: _Array
    vertices: _Array
    s: _Array
    q: _Array

    def motion(self, speed: _Array, mean: float) -> BlendedMotion:
        """Return the motion along the path.

        Args:
            speed: (m,) speed along the path at the grid.
            mean: duration of the mean over time [s].
        """
        durations = 2.0 * np.diff(self.s) / (speed[:-1] + speed[1:])
        return BlendedMotion(
            polyline=self.polyline,
            widths=self.widths,
            vertices=self.vertices,
            s=self.s,
            pieces=_quintics(self.s, self.q),
            speed=speed,
            slope=np.diff(speed) / durations,
            times=np.concatenate([[0.0], np.cumsum(durations)]),
            mean=mean,
        )


def blend_polyline(
    polyline: _Array,
    speeds: _Array,
    accelerations: _Array,
    jerks: _Array,
    *,
    widths: _Array,
    torques: TorqueLimits | None = None,
) -> BlendedMotion:
    """Return the fastest of several motions along a polyline with rounded corners.

    Args:
        polyline: (k, n) points, at least 2, without equal neighbours.
        speeds: (n,) velocity limits.
        accelerations: (n,) acceleration limits.
        jerks: (n,) jerk limits.
        widths: (k,) half width of the mean along the path at each point. The widths of the ends are
            ignored.
        torques: effort limits, or None.
    """
    path = round_corners(polyline, widths)
    s, q = path.s, path.q
    pieces, scale = _quintics(s, q), np.ones(len(s) - 1)
    rows = _TorqueRows(*(np.zeros((len(s), 0)),) * 4)

    def motion(fraction: float) -> BlendedMotion:
        allowed = np.broadcast_to(fraction * accelerations, (len(s) - 1, len(accelerations)))
        for _ in range(_SPEED_PASSES):
            squares = _max_squared_speeds(
                s, (q[1, :, :-1], q[2, :, :-1]), (speeds, allowed), rows, scale
            )
            excess = _excess(s, pieces[:, :, :-1], squares, speeds, fraction * accelerations)
            allowed = allowed / excess[:, None]
        speed = np.sqrt(squares / (_SPEED_RESERVE * np.max(excess)))
        return path.motion(speed, 2.0 * fraction * float(np.max(accelerations / jerks)))

    def fastest() -> tuple[BlendedMotion, float]:
        motions = ((motion(fraction), fraction) for fraction in _ACCELERATION_FRACTIONS)
        return min(motions, key=lambda candidate: candidate[0].duration)

    best, fraction = fastest()
    if torques is None:
        return best

    # Include the torques of joints that come near their limits.
    all_rows, is_included = _torque_rows(q[:, :, :-1], torques), np.zeros(len(torques.limits), bool)
    for attempt in range(_TORQUE_ATTEMPTS):
        times, excess, ratios = _torque_excess(best, torques, _TORQUE_PERIOD)
        if np.max(excess) <= 1.0:
            break
        is_included |= ratios > _RELEVANT_TORQUE_RATIO
        rows = all_rows.select(is_included)
        if attempt == 0:
            best, fraction = fastest()
            continue
        first, last = np.searchsorted(times, [best.times[:-1], best.times[1:] + best.mean])
        worst = [np.max(excess[a : b + 1], initial=1.0) for a, b in zip(first, last, strict=True)]
        scale = scale / np.minimum(worst, _MAX_TORQUE_CORRECTION)
        best = motion(fraction)

    # Slow down the whole motion by the remaining excess.
    slowdown = np.sqrt(np.max(_torque_excess(best, torques, _FINE_TORQUE_PERIOD)[1]))
    return path.motion(best.speed / slowdown, best.mean * slowdown)


@dataclass(frozen=True, eq=False)
class _TorqueRows:
    """Torque limits of the second step, at the points of the grid.

    The torque of a motion is ``inertial`` times the acceleration plus ``squared`` times the squared
    speed along the path, in addition to gravity.

    Attributes:
        inertial: (m, n) torque by acceleration along the path.
        squared: (m, n) torque by squared speed along the path.
        lower: (m, n) magnitudes of the negative limits after gravity.
        upper: (m, n) positive limits after gravity.
    """

    inertial: _Array
    squared: _Array
    lower: _Array
    upper: _Array

    def select(self, columns: NDArray[np.bool_]) -> _TorqueRows:
        """Return the limits of some joints."""
        return _TorqueRows(
            self.inertial[:, columns],
            self.squared[:, columns],
            self.lower[:, columns],
            self.upper[:, columns],
        )


def _torque_rows(q: _Array, torques: TorqueLimits) -> _TorqueRows:
    """Return the torque limits along a path, from its positions and two derivatives (3, m, n)."""
    position, first, second = q
    zero = np.zeros_like(first)
    gravity = torques.torques(position, zero, zero)
    smallest = _MIN_TORQUE_FRACTION * torques.limits
    return _TorqueRows(
        inertial=torques.torques(position, zero, first) - gravity,
        squared=torques.torques(position, first, second) - gravity,
        lower=np.maximum(torques.limits + gravity, smallest),
        upper=np.maximum(torques.limits - gravity, smallest),
    )


def _torque_excess(
    motion: BlendedMotion, torques: TorqueLimits, period: float
) -> tuple[_Array, _Array, _Array]:
    """Return the excess of torques of a motion over their limits.

    Returns:
        (m,) times [s], and at each the largest ratio of the torques of the motion to the limits
        after gravity, at least 1. Also the largest ratio (n,) of each total torque to its limit.
    """
    times = np.linspace(0.0, motion.duration, max(3, int(motion.duration / period)))
    q, v, a, _ = motion.sample(times)
    gravity = torques.torques(q, np.zeros_like(v), np.zeros_like(a))
    dynamic_torques = torques.torques(q, v, a) - gravity
    remaining = np.maximum(
        torques.limits - np.sign(dynamic_torques) * gravity, _MIN_TORQUE_FRACTION * torques.limits
    )
    reserved = np.maximum(remaining - _TORQUE_RESERVE * torques.limits, 0.5 * remaining)
    available = np.where(remaining < np.inf, reserved, np.inf)
    ratios = np.max(np.abs(gravity + dynamic_torques), axis=0) / torques.limits
    return times, np.maximum(np.max(np.abs(dynamic_torques) / available, axis=1), 1.0), ratios


def round_corners(polyline: _Array, widths: _Array) -> RoundedPath:
    """Return the mean along a polyline.

    Args:
        polyline: (k, n) points, at least 2, without equal neighbours.
        widths: (k,) half width of the mean at each point.
    """
    legs = np.diff(polyline, axis=0)
    lengths = norms(legs)
    directions = legs / lengths[:, None]
    turns = np.diff(directions, axis=0)
    vertices = np.concatenate([[0.0], np.cumsum(lengths)])
    total = float(vertices[-1])
    corners = vertices[1:-1]

    # Refine a uniform grid near the corners.
    spacing = min(_GRID_SPACING, max(total / _MIN_GRID_INTERVALS, 1e-9))
    count = int(np.clip(np.ceil(total / spacing), _MIN_GRID_INTERVALS, _MAX_GRID_INTERVALS))
    s = np.linspace(0.0, total, count + 1)
    point_widths = np.array(widths)
    point_widths[[0, -1]] = np.minimum(_END_WIDTH, 0.5 * lengths[[0, -1]])
    corner_widths = _width(corners, vertices, point_widths)[0]
    # Within this distance, the mean includes the corner.
    reach = corner_widths / np.sqrt(1.0 - _WIDTH_SLOPE**2)
    corner_grid = [corners + fraction * reach for fraction in np.linspace(-1.0, 1.0, 9)]
    s = np.unique(np.concatenate([s, *corner_grid]).clip(0.0, total))
    s = s[np.concatenate([[True], np.diff(s) > 1e-7 * total])]
    s[-1] = total

    # Evaluate the kernel 3/4 (1 - y^2), integrated once and twice.
    w, dw, ddw = _width(s, vertices, point_widths)
    y = (s[:, None] - corners) / w[:, None]
    inside = np.clip(y, -1.0, 1.0)
    square = np.square(inside)
    k = 0.75 * (1.0 - square)
    g1 = 0.5 + 0.75 * (inside - inside * square / 3.0)
    quartic = 3 / 16 + inside / 2 + 3 / 8 * square - square * square / 16
    g = np.where(y >= 1.0, y, np.where(y <= -1.0, 0.0, quartic))
    is_inside = (y > -1.0) & (y < 1.0)
    flat = g - y * g1 * is_inside - np.where(y >= 1.0, y, 0.0)
    f0 = w[:, None] * g
    f1 = g1 + dw[:, None] * flat
    f2 = ddw[:, None] * flat + k * (1.0 - y * dw[:, None]) ** 2 / w[:, None]
    f2 = np.where(is_inside, f2, 0.0)

    # Add the turn of each corner to the first line.
    n = polyline.shape[1]
    q = np.zeros((3, len(s), n + 1))
    q[0, :, :n] = polyline[0] + s[:, None] * directions[0] + product(f0, turns)
    q[1, :, :n] = directions[0] + product(f1, turns)
    q[2, :, :n] = product(f2, turns)
    q[0, 0, :n], q[0, -1, :n] = polyline[0], polyline[-1]
    q[0, :, n], q[1, :, n] = s, 1.0
    return RoundedPath(polyline, widths, vertices, s, q)


def _width(s: _Array, vertices: _Array, widths: _Array) -> tuple[_Array, _Array, _Array]:
    """Return the half width (m,) at each distance and its two derivatives.

    It is a smooth minimum of one hyperbola around each point.

    Args:
        s: (m,) distances along the polyline.
        vertices: (k,) distances of the points.
        widths: (k,) half width at each point.
    """
    offsets = _WIDTH_SLOPE * (s[:, None] - vertices)
    h = np.sqrt(widths**2 + offsets**2)
    dh, ddh = _WIDTH_SLOPE * offsets / h, (_WIDTH_SLOPE * widths) ** 2 / (h * h * h)
    p = _WIDTH_SHARPNESS
    # h to the power of -p
    r = 1.0 / np.square(np.square(h * h))
    dr, ddr = -p * r / h * dh, p * r / h * ((p + 1.0) * dh**2 / h - ddh)
    total, first, second = r.sum(axis=1), dr.sum(axis=1), ddr.sum(axis=1)
    w = 1.0 / np.sqrt(np.sqrt(np.sqrt(total)))
    dw = -w * first / (p * total)
    ddw = w / p * ((1.0 + 1.0 / p) * (first / total) ** 2 - second / total)
    return w, dw, ddw


def _excess(
    s: _Array, pieces: _Array, squares: _Array, speeds: _Array, accelerations: _Array
) -> _Array:
    """Return the ratios (m - 1,) of squared speeds within the intervals to limits, at least 1.

    Args:
        s: (m,) grid.
        pieces: (m - 1, 6, n) quintics of the position.
        squares: (m,) squared speeds along the path.
        speeds: (n,) velocity limits.
        accelerations: (n,) acceleration limits.
    """
    step, change = np.diff(s)[:, None], np.diff(squares)[:, None]
    result: _Array = np.ones(len(pieces))
    u = 0.5 * change / step
    for fraction in _CHECKED_FRACTIONS:
        first, second = _slope(pieces, fraction) / step, _curvature(pieces, fraction) / step**2
        x = squares[:-1, None] + fraction * change
        speed_ratios = first**2 * x / speeds**2
        acceleration_ratios = np.abs(first * u + second * x) / accelerations
        result = np.maximum(result, np.maximum(speed_ratios, acceleration_ratios).max(axis=1))
    return result


def _max_squared_speeds(
    s: _Array,
    derivatives: tuple[_Array, _Array],
    limits: tuple[_Array, _Array],
    rows: _TorqueRows,
    scale: _Array,
) -> _Array:
    """Return the largest squared speeds (m,) along the path, at rest at both ends.

    Let u be the acceleration and x the squared speed along the path. In each interval u is constant
    and x linear. At both ends of each interval, each joint keeps ``|d1 u + d2 x| <= a``. Torques
    are bounded in the same way.

    Args:
        s: (m,) grid.
        derivatives: (m, n) first and second derivative d1, d2 of the position by the distance.
        limits: (n,) velocity limits, and (m - 1, n) acceleration limits a.
        rows: torque limits.
        scale: (m - 1,) factor of the torque limits in each interval.
    """
    (d1, d2), (speeds, accelerations) = derivatives, limits
    step = 2.0 * np.diff(s)[:, None]
    a, b = np.concatenate([d1, rows.inertial], axis=1), np.concatenate([d2, rows.squared], axis=1)
    alpha = np.concatenate([a[:-1], a[1:] + step * b[1:]], axis=1)
    beta = np.concatenate([b[:-1], b[1:]], axis=1)
    low, high = (
        np.concatenate(
            [accelerations, bound[:-1] * scale[:, None], accelerations, bound[1:] * scale[:, None]],
            axis=1,
        )
        for bound in (rows.lower, rows.upper)
    )
    is_negative = alpha < 0.0
    sign = np.where(is_negative, -1.0, 1.0)
    alpha, beta = alpha * sign, beta * sign
    low, high = np.where(is_negative, high, low), np.where(is_negative, low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.min(np.where(d1 != 0.0, (speeds / d1) ** 2, np.inf), axis=1)
        cross = beta[:, None, :] * alpha[:, :, None] - beta[:, :, None] * alpha[:, None, :]
        reach = high[:, None, :] * alpha[:, :, None] + low[:, :, None] * alpha[:, None, :]
        pairs = np.min(np.where(cross > 0.0, reach / cross, np.inf), axis=(1, 2))
        bounds = np.where(beta < 0.0, low, high) / np.abs(beta)
        static = np.min(np.where(alpha < 1e-12, bounds, np.inf), axis=1)
        # x + step u >= 0
        slow = step * beta - alpha
        stopping = np.min(np.where(slow > 0.0, step * high / slow, np.inf), axis=1)
        top[:-1] = np.minimum(top[:-1], np.minimum(np.minimum(pairs, stopping), static))

        # Bound the speed at one end of an interval by that at its other end.
        backward_divisor = alpha - step * beta
        gain_b = np.where(backward_divisor > 0.0, alpha / backward_divisor, 0.0)
        base_b = np.where(backward_divisor > 0.0, step * low / backward_divisor, np.inf)
        gain_f = np.where(alpha > 0.0, 1.0 - step * beta / alpha, 0.0)
        base_f = np.where(alpha > 0.0, step * high / alpha, np.inf)
    # Propagate the bounds backward, then forward.
    top[0] = top[-1] = 0.0
    x = top.tolist()
    for i in range(len(x) - 2, -1, -1):
        x[i] = max(0.0, min(x[i], float((gain_b[i] * x[i + 1] + base_b[i]).min())))
    x[0] = 0.0
    for i in range(len(x) - 1):
        x[i + 1] = max(0.0, min(x[i + 1], float((gain_f[i] * x[i] + base_f[i]).min())))
    return np.array(x)
