"""Timing: from a checked path to a motion within limits of speed, acceleration and jerk, with rounded corners.

A trajectory that cuts a corner of the path has not been checked for collisions. So how far it may
leave the polyline is an argument, for each point of its own; at a point where that is 0, the arm
stops. Between, corners are rounded and run through as fast as the limits allow
(:mod:`tmkit.motion.blending`).

Invariants: no joint exceeds a limit at any time. The motion is never further from the polyline than
it may be at the nearer of the two points beside it. The first and last positions are the ends of
the path, at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.motion.blending import BlendedMotion, blended_motion, rounded_path, timed_motion
from tmkit.motion.dynamics import TorqueLimits
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]

DEVIATION = 0.02
"""Radians or metres, Euclidean over the joints, by which a motion may leave its path by default."""

_LEAST_LIMIT = 1e-50
"""Smallest limit of velocity, acceleration or jerk [SI units]."""
_GREATEST_LIMIT = 1e50
"""Greatest limit of velocity, acceleration or jerk [SI units]."""
JERK_TIME = 0.1
"""Seconds in which the acceleration may build up by default."""

_SHORTEST_PIECE = 1e-9  # pieces below this length are one point said twice
_LONGEST = 1e5  # seconds of a motion that is read
_WIDEST = 0.3  # radians or metres from a corner at which its rounding may begin
_NARROWEST = 1e-4
_TORQUE_PERIOD = 0.04  # seconds between samples at which torques are first looked at
_DEVIATION_PERIOD = 0.004  # seconds between samples at which the deviation is measured
_ROUNDING_ATTEMPTS = 8  # to keep the deviation by narrower roundings, before the arm stops


@dataclass(frozen=True, eq=False)
class TimedPath:
    """Samples of a motion at equal times.

    Attributes:
        positions: (m, n) radians or metres; the first and last rows are the ends of the path.
        velocities: (m, n) rad/s or m/s.
        accelerations: (m, n) rad/s^2 or m/s^2.
        period: seconds between samples.
    """

    positions: _Array
    velocities: _Array
    accelerations: _Array
    period: float

    @property
    def times(self) -> _Array:
        """(m,) seconds since the first sample."""
        return np.arange(len(self.positions), dtype=float) * self.period

    @property
    def duration(self) -> float:
        """Seconds from the first sample to the last."""
        return (len(self.positions) - 1) * self.period

    def __repr__(self) -> str:
        return f"TimedPath({len(self.positions)} samples, {self.duration:.2f} s)"


@dataclass(frozen=True, eq=False)
class BlendedPath:
    """A motion as a function of time: parts from rest to rest.

    Attributes:
        polyline: (k, n) path without points that are said twice.
        distances: (k,) of its points along it.
        parts: the motions; none for a path that does not move.
        begins: when each begins, and when the last ends, in seconds.
        rows: the point at which each begins.
    """

    polyline: _Array
    distances: _Array
    parts: tuple[BlendedMotion, ...]
    begins: _Array
    rows: tuple[int, ...]

    @classmethod
    def of(cls, polyline: _Array, parts: Sequence[tuple[int, BlendedMotion]]) -> BlendedPath:
        """Return parts, with the points at which they begin, as one motion."""
        distances = np.concatenate([[0.0], np.cumsum(norms(np.diff(polyline, axis=0)))])
        begins = np.concatenate([[0.0], np.cumsum([part.duration for _, part in parts])])
        return cls(
            polyline,
            distances,
            tuple(part for _, part in parts),
            begins,
            tuple(row for row, _ in parts),
        )

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.begins[-1])

    def sample(self, times: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return positions, velocities and accelerations (m, n), and the distances (m,) along the polyline."""
        width = self.polyline.shape[1]
        result = np.zeros((3, len(times), width))
        result[0], distances = self.polyline[-1], np.full(len(times), self.distances[-1])
        owner = np.searchsorted(self.begins, times, side="right") - 1
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(owner == number)
            if not len(rows):
                continue
            result[0, rows], result[1, rows], result[2, rows], along = part.sample(
                times[rows] - self.begins[number]
            )
            distances[rows] = along + self.distances[self.rows[number]]
        return result[0], result[1], result[2], distances

    def torque_share(self, torques: TorqueLimits) -> float:
        """Return a bound of the largest part of the torque limits that is taken, from samples and their differences."""
        times = np.linspace(0.0, self.duration, max(3, int(self.duration / _TORQUE_PERIOD)))
        needed = torques.torques(*self.sample(times)[:3])
        steps = np.abs(np.diff(needed, axis=0)).max(axis=0, initial=0.0)
        return float(np.max((np.abs(needed).max(axis=0) + steps) / torques.limits))

    def timed(self, rate: float) -> TimedPath:
        """Return samples at equal times; the last is at or after the end."""
        if not 0.0 < rate < np.inf:
            raise ConfigurationError(f"rate must be positive and finite, not {rate}")
        count = int(np.ceil(self.duration * rate - 1e-9)) + 1
        q, v, a, _ = self.sample(np.arange(count) / rate)
        q[0], v[0], q[-1], v[-1], a[-1] = self.polyline[0], 0.0, self.polyline[-1], 0.0, 0.0
        return TimedPath(q, v, a, 1.0 / rate)


def time_path(
    path: ArrayLike,
    velocity_limits: ArrayLike,
    *,
    acceleration_limits: ArrayLike,
    rate: float,
    jerk_limits: ArrayLike | None = None,
    deviation: ArrayLike = DEVIATION,
    torques: TorqueLimits | None = None,
) -> TimedPath:
    """Time a polyline of configurations with rounded corners.

    Args:
        path: (k, n) configurations, k at least 1.
        velocity_limits: (n,) largest speeds, rad/s or m/s.
        acceleration_limits: (n,) largest accelerations, rad/s^2 or m/s^2.
        rate: samples per second.
        jerk_limits: (n,) largest jerks, rad/s^3 or m/s^3; by default those that reach full
            acceleration in 0.1 s.
        deviation: how far the motion may be from the polyline, in radians or metres, Euclidean over
            the joints. It is one number, or one for each of the k points, of which the nearer
            counts at which the arm does not stop. It stops where that is 0.
        torques: what the motors of an arm give, whose joints are the first columns; no limit by
            default.

    Returns:
        Samples from rest to rest; a single one when the path does not move.

    Raises:
        ConfigurationError: shapes that do not fit, or a limit or rate that is not positive and
            finite, or gravity alone exceeds a torque limit.
    """
    return blend_path(
        path,
        velocity_limits,
        acceleration_limits=acceleration_limits,
        jerk_limits=jerk_limits,
        deviation=deviation,
        torques=torques,
    ).timed(rate)


def blend_path(
    path: ArrayLike,
    velocity_limits: ArrayLike,
    *,
    acceleration_limits: ArrayLike,
    jerk_limits: ArrayLike | None = None,
    deviation: ArrayLike = DEVIATION,
    torques: TorqueLimits | None = None,
) -> BlendedPath:
    """Return the motion that :func:`time_path` samples. O(k m + m n^2) for k points and m of a grid, 1,200 at most.

    Args:
        path, velocity_limits, acceleration_limits, jerk_limits, deviation, torques: as for
            :func:`time_path`.

    Raises:
        ConfigurationError: as for :func:`time_path`.
    """
    points, speeds = (
        np.atleast_2d(plain_numbers(path, "path")),
        plain_numbers(velocity_limits, "velocity_limits"),
    )
    accelerations = plain_numbers(acceleration_limits, "acceleration_limits")
    with np.errstate(over="ignore"):  # what is infinite is rejected below
        jerks = (
            accelerations / JERK_TIME
            if jerk_limits is None
            else plain_numbers(jerk_limits, "jerk_limits")
        )
    if points.ndim != 2 or points.size == 0 or not np.all(np.isfinite(points)):
        raise ConfigurationError(
            "a path needs at least one finite configuration, shape (k, n)", received=points.shape
        )
    k, n = points.shape
    for name, limits in (
        ("velocity_limits", speeds),
        ("acceleration_limits", accelerations),
        ("jerk_limits", jerks),
    ):
        if limits.shape != (n,) or not np.all(np.isfinite(limits) & (limits > 0.0)):
            raise ConfigurationError(
                f"{name} must be {n} positive finite numbers, not {limits}", expected=n
            )
        # their products would overflow
        if not np.all((limits > _LEAST_LIMIT) & (limits < _GREATEST_LIMIT)):
            bounds = f"between {_LEAST_LIMIT:g} and {_GREATEST_LIMIT:g}"
            raise ConfigurationError(
                f"{name} must be {n} numbers {bounds}, not {limits}", expected=n
            )
    if torques is not None and n < len(torques.manipulator.joints):
        joints = len(torques.manipulator.joints)
        raise ConfigurationError(
            f"torques are of an arm with {joints} joints, the path has {n} columns", expected=joints
        )
    allowed = plain_numbers(deviation, "deviation")
    if allowed.shape not in ((), (k,)) or not np.all(allowed >= 0.0):
        raise ConfigurationError(
            f"deviation must be one number of at least 0, or {k} of them, not {allowed}"
        )
    kept = _distinct(points)
    allowed = np.array(np.broadcast_to(allowed, k)[kept], dtype=float)
    points = points[kept]
    stops = [0, *(int(i) + 1 for i in np.flatnonzero(allowed[1:-1] <= 0.0)), len(points) - 1]

    def blended(torques: TorqueLimits | None) -> BlendedPath:
        parts: list[tuple[int, BlendedMotion]] = []
        for first, last in pairwise(stops) if len(points) > 1 else ():
            parts += _within(
                points, allowed, (speeds, accelerations, jerks), torques, first=first, last=last
            )
        return BlendedPath.of(points, parts)

    result = blended(None)
    if torques is None or result.torque_share(torques) <= 1.0:
        return result
    if (fault := torques.gravity_fault(points)) is not None:
        raise ConfigurationError(fault)
    return blended(torques)


@np.errstate(all="ignore")  # a file may have any numbers
def restored_path(path: _Array, parts: Sequence[tuple[int, _Array, _Array, float]]) -> BlendedPath:
    """Return a motion along a path (k, n) as :func:`blend_path` returned it.

    Args:
        path: the path.
        parts: of each the point at which it begins, the widths of its roundings, the speeds along
            it, and its mean.

    Raises:
        ConfigurationError: they do not fit the path.
    """
    points = path[_distinct(path)]
    last = [*(row for row, *_ in parts[1:]), len(points) - 1]
    if [row for row, *_ in parts[:1]] != [0][: len(points) - 1]:
        raise ConfigurationError("its motion does not begin where its path does")
    made = []
    for (row, widths, speeds, mean), end in zip(parts, last, strict=bool(parts)):
        own = points[row : end + 1]
        if not (
            0 <= row < end < len(points)
            and widths.shape == (len(own),)
            and np.all(widths > 0.0)
            and mean > 0.0
        ):
            raise ConfigurationError(
                f"from point {row} on, expected a positive width for each and a positive mean"
            )
        rounded = rounded_path(own, widths)
        if (
            not np.all(np.isfinite(rounded[1]))
            or len(speeds) != len(rounded[0])
            or speeds[[0, -1]].any()
            or not (np.all(speeds >= 0.0) and np.all(speeds[1:] + speeds[:-1] > 0.0))
        ):
            raise ConfigurationError(
                f"expected {len(rounded[0])} speeds, 0 at both ends and never twice in a row"
            )
        made.append((row, timed_motion(own, widths, rounded, speeds, mean)))
    result = BlendedPath.of(points, made)
    if not result.duration <= _LONGEST:
        raise ConfigurationError(f"its motion takes {result.duration:.3g} s")
    return result


def _distinct(points: _Array) -> NDArray[np.bool_]:
    """Return which points (k,) are not the one before said again."""
    return np.concatenate([[True], norms(np.diff(points, axis=0)) > _SHORTEST_PIECE])


def _within(
    points: _Array,
    allowed: _Array,
    limits: tuple[_Array, _Array, _Array],
    torques: TorqueLimits | None,
    *,
    first: int,
    last: int,
) -> list[tuple[int, BlendedMotion]]:
    """Return motions, with the points at which they begin, that stay as near to the polyline as they must.

    Roundings from which a motion strays too far become narrower; in the end the arm stops at the
    worst.
    """
    own, most = points[first : last + 1], allowed[first : last + 1].copy()
    # where it rests, only the rounding of the next corner is left to stray
    most[[0, -1]] = most[[1, -2]]
    directions = np.diff(own, axis=0)
    directions /= norms(directions)[:, None]
    turns = np.concatenate([[1.0], norms(np.diff(directions, axis=0)), [1.0]])
    # a corner that is run through at v = sqrt(a w / (0.75 turn)) strays by turn (3 w + 2 v T) / 16,
    # T being 2 a / j
    a, turns = float(np.mean(limits[1])), turns.clip(1e-9)
    b = 0.25 * a / float(np.min(limits[2] / limits[1] * a)) * np.sqrt(a / (0.75 * turns)) * turns
    roots = (np.sqrt(b**2 + 0.75 * turns * most) - b) / (0.375 * turns)
    widths = (roots**2).clip(_NARROWEST, _WIDEST)
    worst = 0
    for _ in range(_ROUNDING_ATTEMPTS):
        motion = blended_motion(own, *limits, widths=widths, torques=torques)
        at, strays = deviations(motion)
        nearest = np.abs(motion.vertices[:, None] - at).argmin(axis=0)
        excess = np.zeros(len(own))
        np.maximum.at(excess, nearest, strays / np.maximum(most[nearest], 1e-12))
        worst = 1 + int(np.argmax(excess[1:-1])) if len(own) > 2 else 0
        if not len(own) > 2 or np.max(excess) <= 1.0:
            return [(first, motion)]
        reach = np.maximum(
            excess, np.maximum(np.append(excess[1:], 0.0), np.append(0.0, excess[:-1]))
        )
        part = np.clip(reach, 1.1, 10.0)
        narrower = np.where(reach > 1.0, (widths / (part * np.sqrt(part))).clip(_NARROWEST), widths)
        if np.array_equal(narrower, widths):
            break
        widths = narrower
    middle = first + worst
    return [
        *_within(points, allowed, limits, torques, first=first, last=middle),
        *_within(points, allowed, limits, torques, first=middle, last=last),
    ]


def deviations(motion: BlendedMotion) -> tuple[_Array, _Array]:
    """Return distances (m,) along the polyline and bounds of how far the motion is from it there.

    The bound is the distance to the point that is as far along the polyline as the motion. It has
    kinks where that is a corner, so the times at which it is one are among the samples.
    """
    times = np.linspace(0.0, motion.duration, max(3, int(motion.duration / _DEVIATION_PERIOD)))
    along = motion.sample(times)[3]
    times = np.sort(np.concatenate([times, np.interp(motion.vertices[1:-1], along, times)]))
    q, _, _, along = motion.sample(times)
    on_line = np.stack(
        [np.interp(along, motion.vertices, column) for column in motion.polyline.T], axis=1
    )
    return along, norms(q - on_line)
