"""Time parameterization of a checked path, within limits and with rounded corners.

The limits are those of velocity, acceleration and jerk of each joint. A trajectory that cuts a
corner of the path has not been checked for collisions. The allowed deviation from the polyline is
therefore an argument for each of its points. The arm stops at points without an allowed deviation.
Between them, corners are rounded and passed as fast as the limits allow
(:mod:`tmkit.motion.blending`).

Invariants: no joint exceeds a limit at any time. The deviation of the motion is at most that of the
nearer of the two neighbouring points. The first and last positions are the ends of the path, at
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.motion.blending import BlendedMotion, blend_polyline, round_corners
from tmkit.motion.dynamics import TorqueLimits
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]

DEVIATION = 0.02
"""Default of the allowed deviation from the path, Euclidean over the joints [rad or m]."""

_MIN_LIMIT = 1e-50
"""Smallest limit of velocity, acceleration or jerk [SI units]."""

_MAX_LIMIT = 1e50
"""Largest limit of velocity, acceleration or jerk [SI units]."""

JERK_TIME = 0.1
"""Default duration of the change from rest to full acceleration [s]."""

_MIN_PIECE_LENGTH = 1e-9
"""Length of a piece of a path up to which its ends are one point [rad or m]."""

_MAX_DURATION = 1e5
"""Longest duration of a stored motion [s]."""

_MAX_WIDTH = 0.3
"""Largest distance from a corner at which its rounding begins [rad or m]."""

_MIN_WIDTH = 1e-4
"""Smallest distance from a corner at which its rounding begins [rad or m]."""

_TORQUE_PERIOD = 0.04
"""Time between samples of the first torque check [s]."""

_DEVIATION_PERIOD = 0.004
"""Time between samples of the deviation [s]."""

_ROUNDING_ATTEMPTS = 8
"""Number of attempts with narrower roundings before the arm stops at a corner."""


@dataclass(frozen=True, eq=False)
class TimedPath:
    """Samples of a motion at equal times.

    Attributes:
        positions: (m, n) positions, whose first and last rows are the ends of the path [rad or m].
        velocities: (m, n) velocities [rad/s or m/s].
        accelerations: (m, n) accelerations [rad/s^2 or m/s^2].
        period: time between samples [s].
    """

    positions: _Array
    velocities: _Array
    accelerations: _Array
    period: float

    @property
    def times(self) -> _Array:
        """(m,) times since the first sample [s]."""
        return np.arange(len(self.positions), dtype=float) * self.period

    @property
    def duration(self) -> float:
        """Time from the first sample to the last [s]."""
        return (len(self.positions) - 1) * self.period

    def __repr__(self) -> str:
        return f"TimedPath({len(self.positions)} samples, {self.duration:.2f} s)"


@dataclass(frozen=True, eq=False)
class BlendedPath:
    """A motion as a function of time, in parts from rest to rest.

    Attributes:
        polyline: (k, n) path without duplicate points [rad or m].
        distances: (k,) distances of its points along it.
        parts: motions of the parts; none for a path that does not move.
        start_times: (p + 1,) start of each of the p parts, and end of the last [s].
        start_rows: index of the point at which each part starts.
    """

    polyline: _Array
    distances: _Array
    parts: tuple[BlendedMotion, ...]
    start_times: _Array
    start_rows: tuple[int, ...]

    @classmethod
    def of(cls, polyline: _Array, parts: Sequence[tuple[int, BlendedMotion]]) -> BlendedPath:
        """Return the motion of consecutive parts, each with the index of its first point."""
        distances = np.concatenate([[0.0], np.cumsum(norms(np.diff(polyline, axis=0)))])
        start_times = np.concatenate([[0.0], np.cumsum([part.duration for _, part in parts])])
        motions, rows = tuple(part for _, part in parts), tuple(row for row, _ in parts)
        return cls(polyline, distances, motions, start_times, rows)

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""
        return float(self.start_times[-1])

    def sample(self, times: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return the motion at given times.

        Args:
            times: (m,) times [s].

        Returns:
            (m, n) positions, velocities and accelerations, and the distances (m,) along the
            polyline.
        """
        width = self.polyline.shape[1]
        result = np.zeros((3, len(times), width))
        result[0], distances = self.polyline[-1], np.full(len(times), self.distances[-1])
        owner = np.searchsorted(self.start_times, times, side="right") - 1
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(owner == number)
            if not len(rows):
                continue
            *states, part_distances = part.sample(times[rows] - self.start_times[number])
            result[:, rows] = states
            distances[rows] = part_distances + self.distances[self.start_rows[number]]
        return result[0], result[1], result[2], distances

    def torque_ratio(self, torques: TorqueLimits) -> float:
        """Return a bound of the largest ratio of a torque to its limit, estimated from samples."""
        times = np.linspace(0.0, self.duration, max(3, int(self.duration / _TORQUE_PERIOD)))
        samples = torques.torques(*self.sample(times)[:3])
        steps = np.abs(np.diff(samples, axis=0)).max(axis=0, initial=0.0)
        return float(np.max((np.abs(samples).max(axis=0) + steps) / torques.limits))

    def sample_at_rate(self, rate: float) -> TimedPath:
        """Return samples at a ``rate`` [Hz], of which the last is at or after the end."""
        if not 0.0 < rate < np.inf:
            raise ConfigurationError(f"rate must be positive and finite, not {rate}")
        count = int(np.ceil(self.duration * rate - 1e-9)) + 1
        q, v, a, _ = self.sample(np.arange(count) / rate)
        q[0], q[-1] = self.polyline[0], self.polyline[-1]
        v[0] = v[-1] = a[-1] = 0.0
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
        velocity_limits: (n,) largest speeds [rad/s or m/s].
        acceleration_limits: (n,) largest accelerations [rad/s^2 or m/s^2].
        rate: samples per second [Hz].
        jerk_limits: (n,) largest jerks [rad/s^3 or m/s^3]. By default full acceleration takes
            0.1 s.
        deviation: allowed distance from the polyline, Euclidean over the joints [rad or m]. It is
            one number, or (k,) for the points. Between two points, the nearer one at which the arm
            does not stop counts. The arm stops at points with 0.
        torques: effort limits of an arm whose joints are the first columns. Defaults to no limits.

    Returns:
        Samples from rest to rest. A path that does not move has a single one.

    Raises:
        ConfigurationError: if shapes do not match, a limit or the rate is not positive and finite,
            or gravity alone exceeds an effort limit.
    """
    return blend_path(
        path,
        velocity_limits,
        acceleration_limits=acceleration_limits,
        jerk_limits=jerk_limits,
        deviation=deviation,
        torques=torques,
    ).sample_at_rate(rate)


def blend_path(
    path: ArrayLike,
    velocity_limits: ArrayLike,
    *,
    acceleration_limits: ArrayLike,
    jerk_limits: ArrayLike | None = None,
    deviation: ArrayLike = DEVIATION,
    torques: TorqueLimits | None = None,
) -> BlendedPath:
    """Return the motion that :func:`time_path` samples.

    O(k m + m n^2) for k points and a grid of m points, at most 1,200.

    Args:
        path, velocity_limits, acceleration_limits, jerk_limits, deviation, torques: as for
            :func:`time_path`.

    Raises:
        ConfigurationError: if :func:`time_path` raises it.
    """
    points = np.atleast_2d(plain_numbers(path, "path"))
    speeds = plain_numbers(velocity_limits, "velocity_limits")
    accelerations = plain_numbers(acceleration_limits, "acceleration_limits")
    # Infinite limits are rejected below.
    with np.errstate(over="ignore"):
        jerks = accelerations / JERK_TIME
    if jerk_limits is not None:
        jerks = plain_numbers(jerk_limits, "jerk_limits")
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
        # Products of larger limits would overflow.
        if not np.all((limits > _MIN_LIMIT) & (limits < _MAX_LIMIT)):
            bounds = f"between {_MIN_LIMIT:g} and {_MAX_LIMIT:g}"
            raise ConfigurationError(
                f"{name} must be {n} numbers {bounds}, not {limits}", expected=n
            )
    if torques is not None and n < len(torques.robot.joints):
        joints = len(torques.robot.joints)
        raise ConfigurationError(
            f"torques are of an arm with {joints} joints, the path has {n} columns", expected=joints
        )
    allowed = plain_numbers(deviation, "deviation")
    if allowed.shape not in ((), (k,)) or not np.all(allowed >= 0.0):
        raise ConfigurationError(
            f"deviation must be one number of at least 0, or {k} of them, not {allowed}"
        )
    is_distinct = _is_distinct(points)
    allowed = np.array(np.broadcast_to(allowed, k)[is_distinct], dtype=float)
    points = points[is_distinct]
    stops = [0, *(int(i) + 1 for i in np.flatnonzero(allowed[1:-1] <= 0.0)), len(points) - 1]

    pieces = [*pairwise(stops)] if len(points) > 1 else []
    joint_limits = (speeds, accelerations, jerks)

    def blend(torques: TorqueLimits | None) -> BlendedPath:
        parts: list[tuple[int, BlendedMotion]] = []
        for first, last in pieces:
            parts += _blend_piece(points, allowed, joint_limits, torques, first=first, last=last)
        return BlendedPath.of(points, parts)

    motion = blend(None)
    if torques is None or motion.torque_ratio(torques) <= 1.0:
        return motion
    if (fault := torques.gravity_fault(points)) is not None:
        raise ConfigurationError(fault)
    return blend(torques)


# Files may contain any numbers.
@np.errstate(all="ignore")
def restore_path(path: _Array, parts: Sequence[tuple[int, _Array, _Array, float]]) -> BlendedPath:
    """Return the motion of :func:`blend_path` from its stored parts.

    Args:
        path: (k, n) path.
        parts: for each part the index of its first point, the widths of its roundings, the speeds
            along it, and the duration of its mean [s].

    Raises:
        ConfigurationError: if the parts do not match the path.
    """
    points = path[_is_distinct(path)]
    last = [*(row for row, *_ in parts[1:]), len(points) - 1]
    if [row for row, *_ in parts[:1]] != [0][: len(points) - 1]:
        raise ConfigurationError("its motion does not begin where its path does")
    motions = []
    for (row, widths, speeds, mean), end in zip(parts, last, strict=bool(parts)):
        piece = points[row : end + 1]
        if not (
            0 <= row < end < len(points)
            and widths.shape == (len(piece),)
            and np.all(widths > 0.0)
            and mean > 0.0
        ):
            raise ConfigurationError(
                f"from point {row} on, expected a positive width for each and a positive mean"
            )
        rounded_path = round_corners(piece, widths)
        count = len(rounded_path.s)
        if (
            not np.all(np.isfinite(rounded_path.q))
            or len(speeds) != count
            or speeds[[0, -1]].any()
            or not (np.all(speeds >= 0.0) and np.all(speeds[1:] + speeds[:-1] > 0.0))
        ):
            raise ConfigurationError(
                f"expected {count} speeds, 0 at both ends and never twice in a row"
            )
        motions.append((row, rounded_path.motion(speeds, mean)))
    motion = BlendedPath.of(points, motions)
    if not motion.duration <= _MAX_DURATION:
        raise ConfigurationError(f"its motion takes {motion.duration:.3g} s")
    return motion


def _is_distinct(points: _Array) -> NDArray[np.bool_]:
    """Return whether each point (k,) differs from the previous one."""
    return np.concatenate([[True], norms(np.diff(points, axis=0)) > _MIN_PIECE_LENGTH])


def _blend_piece(
    points: _Array,
    allowed: _Array,
    limits: tuple[_Array, _Array, _Array],
    torques: TorqueLimits | None,
    *,
    first: int,
    last: int,
) -> list[tuple[int, BlendedMotion]]:
    """Return motions within the allowed deviations, each with the index of its first point.

    Roundings with too large a deviation become narrower. If this does not suffice, the arm stops at
    the corner with the largest one.

    Args:
        points: (k, n) points of the whole path.
        allowed: (k,) allowed deviations.
        limits: (n,) limits of velocity, acceleration and jerk.
        torques: effort limits, or None.
        first: index of the first point of the piece.
        last: index of the last point of the piece.
    """
    piece, tolerances = points[first : last + 1], allowed[first : last + 1].copy()
    # Near a stop, only the rounding of the next corner causes a deviation.
    tolerances[[0, -1]] = tolerances[[1, -2]]
    directions = np.diff(piece, axis=0)
    directions /= norms(directions)[:, None]
    turns = np.concatenate([[1.0], norms(np.diff(directions, axis=0)), [1.0]])
    # At a speed of v = sqrt(a w / (0.75 turn)) through a corner, the deviation is
    # turn (3 w + 2 v T) / 16, with T = 2 a / j.
    a, turns = float(np.mean(limits[1])), turns.clip(1e-9)
    b = 0.25 * a / float(np.min(limits[2] / limits[1] * a)) * np.sqrt(a / (0.75 * turns)) * turns
    roots = (np.sqrt(b**2 + 0.75 * turns * tolerances) - b) / (0.375 * turns)
    widths = (roots**2).clip(_MIN_WIDTH, _MAX_WIDTH)
    worst = 0
    for _ in range(_ROUNDING_ATTEMPTS):
        motion = blend_polyline(piece, *limits, widths=widths, torques=torques)
        distances, bounds = deviations(motion)
        nearest = np.abs(motion.vertices[:, None] - distances).argmin(axis=0)
        excess = np.zeros(len(piece))
        np.maximum.at(excess, nearest, bounds / np.maximum(tolerances[nearest], 1e-12))
        worst = 1 + int(np.argmax(excess[1:-1])) if len(piece) > 2 else 0
        if not len(piece) > 2 or np.max(excess) <= 1.0:
            return [(first, motion)]
        # A rounding also causes deviations near the neighbouring points.
        neighbour_excess = np.maximum(np.append(excess[1:], 0.0), np.append(0.0, excess[:-1]))
        excess = np.maximum(excess, neighbour_excess)
        factor = np.clip(excess, 1.1, 10.0)
        narrower = (widths / (factor * np.sqrt(factor))).clip(_MIN_WIDTH)
        narrower = np.where(excess > 1.0, narrower, widths)
        if np.array_equal(narrower, widths):
            break
        widths = narrower
    middle = first + worst
    return [
        *_blend_piece(points, allowed, limits, torques, first=first, last=middle),
        *_blend_piece(points, allowed, limits, torques, first=middle, last=last),
    ]


def deviations(motion: BlendedMotion) -> tuple[_Array, _Array]:
    """Return distances (m,) along the polyline, and bounds (m,) of the deviation from it there.

    The bound is the distance from the point of the polyline at the same distance along it. It has
    kinks at corners, so the times at the corners are among the samples.
    """
    times = np.linspace(0.0, motion.duration, max(3, int(motion.duration / _DEVIATION_PERIOD)))
    distances = motion.sample(times)[3]
    times = np.sort(np.concatenate([times, np.interp(motion.vertices[1:-1], distances, times)]))
    q, _, _, distances = motion.sample(times)
    columns = [np.interp(distances, motion.vertices, column) for column in motion.polyline.T]
    return distances, norms(q - np.stack(columns, axis=1))
