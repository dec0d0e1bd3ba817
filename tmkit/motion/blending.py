"""Blended polylines: corners rounded by a mean along the path, the fastest speed along it, and a mean over time.

Three steps, each with an argument for what it guarantees:

1. The path at distance ``s`` is the mean of the polyline over ``s - w(s)`` to ``s + w(s)`` with a
   parabolic weight. It is twice continuously differentiable, equals the polyline wherever no corner
   is within ``w``, and leaves it by at most 3/16 of the sum of ``w |turn|`` over the corners that
   are.
2. The squared speed along it is as large as limits of speed and acceleration allow: a backward and
   a forward pass over a grid, each a linear program in two variables (H. Pham, Q.-C. Pham, "A new
   approach to time-optimal path parameterization based on reachability analysis", IEEE T-RO 2018).
3. The motion is averaged over the last T seconds. A mean exceeds no limit that what it is a mean of
   keeps, and its jerk is the difference of two accelerations by T, at most 2 a / T. It takes T
   longer.

Torques are limits of the second step, linear in the acceleration and the squared speed along the
path. The third changes them, so they are computed again for its result, and where one is too large
less of it is left to the second.

Invariants: no joint exceeds a limit of speed, acceleration, jerk or torque at any time; the motion
begins and ends at rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms, product
from tmkit.motion.dynamics import TorqueLimits

_Array = NDArray[np.float64]

# of Gauss and Legendre, exact for polynomials of degree 11; written down, as LAPACK rounds by the
# CPU
_GAUSS = np.array([-0.932469514203152, -0.6612093864662645, -0.2386191860831969])
_GAUSS = np.concatenate([_GAUSS, -_GAUSS[::-1]])
_WEIGHTS = np.array([0.1713244923791704, 0.3607615730481386, 0.467913934572691])
_WEIGHTS = np.concatenate([_WEIGHTS, _WEIGHTS[::-1]])
_SPACING = 0.015  # radians or metres between points of the grid, at most
_MOST, _LEAST = 1200, 40  # points of a grid
_SLOPE = 0.5  # of the half width of the mean along the path
_SHARPNESS = 8.0  # of the smooth minimum
_END = 1e-4  # half width at the ends
_BETWEEN = (0.15, 0.35, 0.5, 0.65, 0.85)  # of an interval of the grid, where limits are checked
_RESERVE = 1.0001  # by which they are kept there, for what is between
_PASSES = 2
# of torques, before the whole motion becomes slower; a factor for each
_TIGHTENINGS, _MOST_TIGHTENED = 6, 1.5
_LEAST_LEFT = 1e-4  # of a limit, for motion where gravity takes all of it
_TORQUE_RESERVE = 2e-3  # of a limit, for what is between samples
_PERIOD, _FINE_PERIOD = 0.004, 0.001  # seconds between these, at first and in the end
_WATCHED = 0.6  # share of a limit that a torque takes, from which the second step looks at it
# of the acceleration limits that are tried: less needs a shorter mean over time
_SHARES = (1.0, 0.7, 0.45)


@dataclass(frozen=True, eq=False)
class BlendedMotion:
    """A motion from rest to rest as a function of time.

    The last column of ``q`` is the distance along the polyline, of which the mean says where on it
    the motion is.
    """

    polyline: _Array
    widths: _Array  # (k,) half width of the mean along the path at each point
    vertices: _Array  # (k,) distance along the polyline
    s: _Array  # (m,) grid
    pieces: _Array  # (m - 1, 6, n + 1) quintics of the position between the points of the grid
    speed: _Array  # (m,) along the path
    slope: _Array  # (m - 1,) acceleration along the path
    times: _Array  # (m,)
    mean: float  # seconds

    @cached_property
    def integral(self) -> _Array:
        """(m, n + 1) of the position by time."""
        integral = np.zeros((len(self.s), self.pieces.shape[2]))
        integral[1:] = np.cumsum(_gauss(self, self.times[:-1], np.diff(self.times)), axis=0)
        return integral

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.times[-1]) + self.mean

    def sample(self, times: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return positions, velocities, accelerations (m, n) and the distances (m,) along the polyline."""
        now, before = times, times - self.mean
        difference = self._integral(now) - self._integral(before)
        (q, v), (q_before, v_before) = self._state(now), self._state(before)
        mean = difference / self.mean
        return (
            mean[:, :-1],
            (q - q_before)[:, :-1] / self.mean,
            (v - v_before)[:, :-1] / self.mean,
            mean[:, -1],
        )

    def _along(self, times: _Array) -> tuple[_Array, _Array, NDArray[np.intp]]:
        """Return distance and speed along the path, and the interval of the grid."""
        at = np.clip(times, 0.0, self.times[-1])
        i = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, len(self.slope) - 1)
        after = at - self.times[i]
        s = self.s[i] + after * (self.speed[i] + 0.5 * after * self.slope[i])
        return s, np.maximum(self.speed[i] + after * self.slope[i], 0.0), i

    def _state(self, times: _Array) -> tuple[_Array, _Array]:
        """Return position and velocity of what is averaged."""
        s, speed, i = self._along(times)
        c, x, h = self.pieces[i], self._part(s, i), (self.s[i + 1] - self.s[i])[:, None]
        return (
            _value(c, x),
            _slope(c, x) / h * (speed * ((times > 0.0) & (times < self.times[-1])))[:, None],
        )

    def _part(self, s: _Array, i: NDArray[np.intp]) -> _Array:
        """Return which part of its interval is before each distance, as a column."""
        return ((s - self.s[i]) / (self.s[i + 1] - self.s[i]))[:, None]

    def _integral(self, times: _Array) -> _Array:
        at = np.clip(times, 0.0, self.times[-1])
        _, _, i = self._along(at)
        part = at - self.times[i]
        inside = self.integral[i] + _gauss(self, self.times[i], part)
        ends = self.pieces[0, 0], self.pieces[-1].sum(axis=0)
        outside = (
            np.minimum(times, 0.0)[:, None] * ends[0] + (times - at).clip(0.0)[:, None] * ends[1]
        )
        result: _Array = inside + outside
        return result


def _gauss(motion: BlendedMotion, begin: _Array, length: _Array) -> _Array:
    """Return the integral (m, n + 1) of the position from ``begin`` (m,) on."""
    at = begin[:, None] + 0.5 * length[:, None] * (1.0 + _GAUSS)
    s, _, i = motion._along(at.ravel())
    values = _value(motion.pieces[i], motion._part(s, i)).reshape(len(begin), len(_GAUSS), -1)
    result: _Array = (
        sum(weight * values[:, g] for g, weight in enumerate(_WEIGHTS)) * (0.5 * length)[:, None]
    )
    return result


def _quintics(grid: _Array, q: _Array) -> _Array:
    """Return the coefficients (m - 1, 6, n + 1) of quintics through values and two derivatives at the grid.

    Their argument runs from 0 to 1 in each interval.
    """
    h = np.diff(grid)[:, None]
    p, v, a = q[0, :-1], q[1, :-1] * h, q[2, :-1] * h * h / 2.0
    end, v1, a1 = q[0, 1:] - p - v - a, q[1, 1:] * h - v - 2.0 * a, q[2, 1:] * h * h - 2.0 * a
    cubic, quartic, quintic = (
        10 * end - 4 * v1 + a1 / 2,
        -15 * end + 7 * v1 - a1,
        6 * end - 3 * v1 + a1 / 2,
    )
    return np.stack([p, v, a, cubic, quartic, quintic], axis=1)


def _value(c: _Array, x: _Array) -> _Array:
    result = c[:, 5]
    for order in (4, 3, 2, 1, 0):
        result = c[:, order] + x * result
    return result


def _slope(c: _Array, x: _Array | float) -> _Array:
    return c[:, 1] + x * (2 * c[:, 2] + x * (3 * c[:, 3] + x * (4 * c[:, 4] + x * 5 * c[:, 5])))


def _bend(c: _Array, x: _Array | float) -> _Array:
    return 2 * c[:, 2] + x * (6 * c[:, 3] + x * (12 * c[:, 4] + x * 20 * c[:, 5]))


def blended_motion(
    polyline: _Array,
    speeds: _Array,
    accelerations: _Array,
    jerks: _Array,
    *,
    widths: _Array,
    torques: TorqueLimits | None = None,
) -> BlendedMotion:
    """Return the fastest motion of those that are tried.

    Args:
        polyline: (k, n) points, none twice in a row, at least 2.
        speeds: (n,) limits; likewise ``accelerations`` and ``jerks``.
        widths: (k,) half width of the mean along the path at each point; those of the ends do not
            count.
        torques: what the motors give besides.
    """
    path = rounded_path(polyline, widths)
    s, q, _ = path
    pieces, scale = _quintics(s, q), np.ones(len(s) - 1)
    rows: tuple[_Array, ...] = (np.zeros((len(s), 0)),) * 4

    def motion(share: float) -> BlendedMotion:
        allowed = np.broadcast_to(share * accelerations, (len(s) - 1, len(accelerations)))
        for _ in range(_PASSES):
            squares = _fastest(s, q[1, :, :-1], q[2, :, :-1], speeds, allowed, rows, scale)
            excess = _excess(s, pieces[:, :, :-1], squares, speeds, share * accelerations)
            allowed = allowed / excess[:, None]
        speed = np.sqrt(squares / (_RESERVE * np.max(excess)))
        return timed_motion(
            polyline, widths, path, speed, 2.0 * share * float(np.max(accelerations / jerks))
        )

    def fastest() -> tuple[BlendedMotion, float]:
        return min(
            ((motion(share), share) for share in _SHARES), key=lambda tried: tried[0].duration
        )

    best, share = fastest()
    if torques is None:
        return best
    of_all, joints = _torque_rows(q[:, :, :-1], torques), np.zeros(len(torques.limits), dtype=bool)
    for attempt in range(_TIGHTENINGS):
        times, excess, taken = _torque_excess(best, torques, _PERIOD)
        if np.max(excess) <= 1.0:
            break
        joints |= taken > _WATCHED
        rows = tuple(part[:, joints] for part in of_all)
        if attempt == 0:
            best, share = fastest()
            continue
        first, last = np.searchsorted(times, [best.times[:-1], best.times[1:] + best.mean])
        worst = [np.max(excess[a : b + 1], initial=1.0) for a, b in zip(first, last, strict=True)]
        scale = scale / np.minimum(worst, _MOST_TIGHTENED)
        best = motion(share)
    slower = np.sqrt(np.max(_torque_excess(best, torques, _FINE_PERIOD)[1]))
    return timed_motion(polyline, widths, path, best.speed / slower, best.mean * slower)


def timed_motion(
    polyline: _Array,
    widths: _Array,
    path: tuple[_Array, _Array, _Array],
    speed: _Array,
    mean: float,
) -> BlendedMotion:
    """Return the motion along a rounded path with a speed (m,) along it and a mean over seconds."""
    s, q, vertices = path
    steps = 2.0 * np.diff(s) / (speed[:-1] + speed[1:])
    times = np.concatenate([[0.0], np.cumsum(steps)])
    return BlendedMotion(
        polyline, widths, vertices, s, _quintics(s, q), speed, np.diff(speed) / steps, times, mean
    )


def _torque_rows(q: _Array, torques: TorqueLimits) -> tuple[_Array, ...]:
    """Return coefficients (m, n) of acceleration and squared speed along a path, and what torques leave both ways."""
    position, first, second = q
    still = np.zeros_like(first)
    rest = torques.torques(position, still, still)
    inertial, squared = (
        torques.torques(position, still, first) - rest,
        torques.torques(position, first, second) - rest,
    )
    least = _LEAST_LEFT * torques.limits
    return (
        inertial,
        squared,
        np.maximum(torques.limits + rest, least),
        np.maximum(torques.limits - rest, least),
    )


def _torque_excess(
    motion: BlendedMotion, torques: TorqueLimits, period: float
) -> tuple[_Array, _Array, _Array]:
    """Return times (m,), by which factor what acceleration and speed add to gravity is too large, and shares (n,)."""
    times = np.linspace(0.0, motion.duration, max(3, int(motion.duration / period)))
    q, v, a, _ = motion.sample(times)
    rest = torques.torques(q, np.zeros_like(v), np.zeros_like(a))
    added = torques.torques(q, v, a) - rest
    left = np.maximum(torques.limits - np.sign(added) * rest, _LEAST_LEFT * torques.limits)
    kept = np.where(
        left < np.inf, np.maximum(left - _TORQUE_RESERVE * torques.limits, 0.5 * left), np.inf
    )
    shares = np.max(np.abs(rest + added), axis=0) / torques.limits
    return times, np.maximum(np.max(np.abs(added) / kept, axis=1), 1.0), shares


def rounded_path(polyline: _Array, widths: _Array) -> tuple[_Array, _Array, _Array]:
    """Return a grid, position and two derivatives of the mean along the path at it, and the distances of the points."""
    legs = np.diff(polyline, axis=0)
    lengths = norms(legs)
    directions = legs / lengths[:, None]
    turns = np.diff(directions, axis=0)
    vertices = np.concatenate([[0.0], np.cumsum(lengths)])
    total = float(vertices[-1])
    corners = vertices[1:-1]
    fine = min(_SPACING, max(total / _LEAST, 1e-9))
    count = int(np.clip(np.ceil(total / fine), _LEAST, _MOST))
    s = np.linspace(0.0, total, count + 1)
    widths = np.array(widths)
    widths[[0, -1]] = np.minimum(_END, 0.5 * lengths[[0, -1]])
    own = _width(corners, vertices, widths)[0]
    reach = own / np.sqrt(1.0 - _SLOPE**2)  # from where on the mean holds the corner
    near = [corners + share * reach for share in np.linspace(-1.0, 1.0, 9)]
    s = np.unique(np.concatenate([s, *near]).clip(0.0, total))
    s = s[np.concatenate([[True], np.diff(s) > 1e-7 * total])]
    s[-1] = total
    w, dw, ddw = _width(s, vertices, widths)
    y = (s[:, None] - corners) / w[:, None]
    inside = np.clip(y, -1.0, 1.0)
    # the kernel 3/4 (1 - y^2), integrated once and twice
    square = np.square(inside)
    k = 0.75 * (1.0 - square)
    g1 = 0.5 + 0.75 * (inside - inside * square / 3.0)
    g = np.where(
        y >= 1.0,
        y,
        np.where(y <= -1.0, 0.0, 3 / 16 + inside / 2 + 3 / 8 * square - square * square / 16),
    )
    own = (y > -1.0) & (y < 1.0)
    flat = g - y * g1 * own - np.where(y >= 1.0, y, 0.0)
    f0 = w[:, None] * g
    f1 = g1 + dw[:, None] * flat
    f2 = np.where(own, ddw[:, None] * flat + k * (1.0 - y * dw[:, None]) ** 2 / w[:, None], 0.0)
    n = polyline.shape[1]
    q = np.zeros((3, len(s), n + 1))
    q[0, :, :n] = polyline[0] + s[:, None] * directions[0] + product(f0, turns)
    q[1, :, :n] = directions[0] + product(f1, turns)
    q[2, :, :n] = product(f2, turns)
    q[0, 0, :n], q[0, -1, :n] = polyline[0], polyline[-1]
    q[0, :, n], q[1, :, n] = s, 1.0
    return s, q, vertices


def _width(s: _Array, vertices: _Array, widths: _Array) -> tuple[_Array, _Array, _Array]:
    """Return the half width at each distance and its derivatives: a smooth minimum of a hyperbola around each point."""
    away = _SLOPE * (s[:, None] - vertices)
    h = np.sqrt(widths**2 + away**2)
    dh, ddh = _SLOPE * away / h, (_SLOPE * widths) ** 2 / (h * h * h)
    p = _SHARPNESS
    r = 1.0 / np.square(np.square(h * h))  # h to the power of -p
    dr, ddr = -p * r / h * dh, p * r / h * ((p + 1.0) * dh**2 / h - ddh)
    total, first, second = r.sum(axis=1), dr.sum(axis=1), ddr.sum(axis=1)
    w = 1.0 / np.sqrt(np.sqrt(np.sqrt(total)))
    return (
        w,
        -w * first / (p * total),
        w / p * ((1.0 + 1.0 / p) * (first / total) ** 2 - second / total),
    )


def _excess(
    s: _Array, pieces: _Array, squares: _Array, speeds: _Array, accelerations: _Array
) -> _Array:
    """Return by which part squared speeds are too large within each interval (m - 1,) of the grid, at least 1."""
    step, change = np.diff(s)[:, None], np.diff(squares)[:, None]
    result: _Array = np.ones(len(pieces))
    u = 0.5 * change / step
    for part in _BETWEEN:
        first, second = _slope(pieces, part) / step, _bend(pieces, part) / step**2
        x = squares[:-1, None] + part * change
        share = np.maximum(first**2 * x / speeds**2, np.abs(first * u + second * x) / accelerations)
        result = np.maximum(result, share.max(axis=1))
    return result


def _fastest(
    s: _Array,
    d1: _Array,
    d2: _Array,
    speeds: _Array,
    accelerations: _Array,
    torque_rows: tuple[_Array, ...],
    scale: _Array,
) -> _Array:
    """Return the largest squared speeds (m,) along the path, at rest at both ends.

    With u = acceleration and x = squared speed along the path, each joint keeps |d1 u + d2 x| <= a
    (m - 1, n) at both ends of each interval, along which u is constant and x linear. Torques are
    bounded likewise, of which a scale (m - 1,) is left.
    """
    step = 2.0 * np.diff(s)[:, None]
    inertial, squared, *left = torque_rows
    a, b = np.concatenate([d1, inertial], axis=1), np.concatenate([d2, squared], axis=1)
    alpha = np.concatenate([a[:-1], a[1:] + step * b[1:]], axis=1)
    beta = np.concatenate([b[:-1], b[1:]], axis=1)
    low, high = (
        np.concatenate(
            [accelerations, part[:-1] * scale[:, None], accelerations, part[1:] * scale[:, None]],
            axis=1,
        )
        for part in left
    )
    is_turned = alpha < 0.0
    sign = np.where(is_turned, -1.0, 1.0)
    alpha, beta = alpha * sign, beta * sign
    low, high = np.where(is_turned, high, low), np.where(is_turned, low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.min(np.where(d1 != 0.0, (speeds / d1) ** 2, np.inf), axis=1)
        cross = beta[:, None, :] * alpha[:, :, None] - beta[:, :, None] * alpha[:, None, :]
        reach = high[:, None, :] * alpha[:, :, None] + low[:, :, None] * alpha[:, None, :]
        pairs = np.min(np.where(cross > 0.0, reach / cross, np.inf), axis=(1, 2))
        stuck = np.min(
            np.where(alpha < 1e-12, np.where(beta < 0.0, low, high) / np.abs(beta), np.inf), axis=1
        )
        slow = step * beta - alpha  # x + step u >= 0
        kept = np.min(np.where(slow > 0.0, step * high / slow, np.inf), axis=1)
        top[:-1] = np.minimum(top[:-1], np.minimum(np.minimum(pairs, kept), stuck))
        back = alpha - step * beta
        gain_b = np.where(back > 0.0, alpha / back, 0.0)
        base_b = np.where(back > 0.0, step * low / back, np.inf)
        gain_f = np.where(alpha > 0.0, 1.0 - step * beta / alpha, 0.0)
        base_f = np.where(alpha > 0.0, step * high / alpha, np.inf)
    top[0] = top[-1] = 0.0
    x = top.tolist()
    for i in range(len(x) - 2, -1, -1):
        x[i] = max(0.0, min(x[i], float((gain_b[i] * x[i + 1] + base_b[i]).min())))
    x[0] = 0.0
    for i in range(len(x) - 1):
        x[i + 1] = max(0.0, min(x[i + 1], float((gain_f[i] * x[i] + base_f[i]).min())))
    return np.array(x)
