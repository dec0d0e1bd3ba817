"""Timing: from a checked path to a trajectory that stays exactly on it.

A trajectory that cuts a corner of the path has not been checked for collisions. So the arm moves along the polyline
itself: the distance along it is timed by ruckig (time-optimal under limits of speed, acceleration and jerk), and the
joints follow. Where the polyline turns sharply the arm stops; the many small steps of a straight tool motion, which
turn by a few degrees, are run through without a stop.

Invariants: every position lies on the polyline; the first and last are its ends, at rest; no joint exceeds its speed
limit, nor, along each straight piece, its acceleration limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import InputParameter, Result, Ruckig, Trajectory

from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers

_SHARP_TURN = 0.1  # radians between successive pieces above which the arm stops
_SHORTEST_PIECE = 1e-9  # pieces below this length are one point said twice
_JERK_TIME = 0.1  # seconds in which the acceleration may build up


@dataclass(frozen=True, eq=False)
class TimedPath:
    """Samples of a motion at equal times.

    Attributes:
        positions: (m, n) radians or metres; the first and last rows are the ends of the path.
        velocities: (m, n) rad/s or m/s.
        period: seconds between samples.
    """

    positions: NDArray[np.float64]
    velocities: NDArray[np.float64]
    period: float

    @property
    def duration(self) -> float:
        """Seconds from the first sample to the last."""
        return (len(self.positions) - 1) * self.period

    def __repr__(self) -> str:
        return f"TimedPath({len(self.positions)} samples, {self.duration:.2f} s)"


def time_path(path: ArrayLike, velocity_limits: ArrayLike, *, acceleration_limits: ArrayLike, rate: float) -> TimedPath:
    """Time a polyline of configurations without leaving it.

    Args:
        path: (k, n) configurations, k at least 1.
        velocity_limits: (n,) largest speeds, rad/s or m/s.
        acceleration_limits: (n,) largest accelerations along each straight piece, rad/s^2 or m/s^2.
        rate: samples per second.

    Returns:
        Samples from rest to rest; a single one when the path does not move.

    Raises:
        ConfigurationError: shapes that do not fit, or a limit or rate that is not positive and finite.
    """
    points, speeds, accelerations = _checked(path, velocity_limits, acceleration_limits, rate)
    positions: list[NDArray[np.float64]] = [points[:1]]
    velocities: list[NDArray[np.float64]] = [np.zeros((1, points.shape[1]))]
    for run in _smooth_runs(points):
        run_positions, run_velocities = _time_run(run, _trajectory(run, speeds, accelerations), rate)
        positions.append(run_positions)
        velocities.append(run_velocities)
    return TimedPath(np.concatenate(positions), np.concatenate(velocities), 1.0 / rate)


def path_duration(
    path: ArrayLike, velocity_limits: ArrayLike, *, acceleration_limits: ArrayLike, rate: float
) -> float:  # fmt: skip
    """Return the seconds that a polyline takes when :func:`time_path` times it, without computing its samples.

    Args:
        path: (k, n) configurations, k at least 1.
        velocity_limits: (n,) largest speeds, rad/s or m/s.
        acceleration_limits: (n,) largest accelerations along each straight piece, rad/s^2 or m/s^2.
        rate: samples per second; each motion from rest to rest takes a whole number of them.

    Raises:
        ConfigurationError: as for :func:`time_path`.
    """
    points, speeds, accelerations = _checked(path, velocity_limits, acceleration_limits, rate)
    return sum(_samples(_trajectory(run, speeds, accelerations), rate) for run in _smooth_runs(points)) / rate


def _checked(
    path: ArrayLike, velocity_limits: ArrayLike, acceleration_limits: ArrayLike, rate: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the path without points that are said twice, and the limits."""
    points = np.atleast_2d(plain_numbers(path, "path"))
    speeds = plain_numbers(velocity_limits, "velocity_limits")
    accelerations = plain_numbers(acceleration_limits, "acceleration_limits")
    if points.ndim != 2 or points.size == 0 or not np.all(np.isfinite(points)):
        raise ConfigurationError("a path needs at least one finite configuration, shape (k, n)", received=points.shape)
    n = points.shape[1]
    for name, limits in (("velocity_limits", speeds), ("acceleration_limits", accelerations)):
        if limits.shape != (n,) or not np.all(np.isfinite(limits) & (limits > 0.0)):
            raise ConfigurationError(f"{name} must be {n} positive finite numbers, not {limits}", expected=n)
    if not 0.0 < rate < np.inf:
        raise ConfigurationError(f"rate must be positive and finite, not {rate}")
    lengths = norms(np.diff(points, axis=0))
    return points[np.concatenate([[True], lengths > _SHORTEST_PIECE])], speeds, accelerations


def _smooth_runs(points: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Cut the polyline where it turns sharply, into pieces from rest to rest."""
    if len(points) < 2:
        return []
    pieces = np.diff(points, axis=0)
    directions = pieces / norms(pieces)[:, None]
    turns = np.arccos(np.clip(np.sum(directions[:-1] * directions[1:], axis=1), -1.0, 1.0))
    cuts = [0, *(int(i) + 1 for i in np.flatnonzero(turns > _SHARP_TURN)), len(points) - 1]
    return [points[first : last + 1] for first, last in pairwise(cuts)]


def _trajectory(
    points: NDArray[np.float64], speeds: NDArray[np.float64], accelerations: NDArray[np.float64]
) -> Trajectory:
    """Return the distance along one run in time, at rest at both ends, as fast as the limits allow."""
    pieces = np.diff(points, axis=0)
    lengths = norms(pieces)
    share = np.max(np.abs(pieces / lengths[:, None]), axis=0)  # of each joint in the parameter's speed, at most
    with np.errstate(divide="ignore"):
        speed = float(np.min(np.where(share > 0.0, speeds / share, np.inf)))
        acceleration = float(np.min(np.where(share > 0.0, accelerations / share, np.inf)))
    length = float(np.cumsum(lengths)[-1])
    inputs = InputParameter(1)
    inputs.current_position, inputs.target_position = [0.0], [length]
    inputs.max_velocity, inputs.max_acceleration = [speed], [acceleration]
    inputs.max_jerk = [acceleration / _JERK_TIME]
    trajectory = Trajectory(1)
    result = Ruckig(1).calculate(inputs, trajectory)
    if result not in (Result.Working, Result.Finished):
        raise ConfigurationError(f"no timing for a motion of length {length}: {result}")
    return trajectory


def _samples(trajectory: Trajectory, rate: float) -> int:
    """Return how many samples a run takes."""
    return max(1, int(np.ceil(trajectory.duration * rate - 1e-9)))


def _time_run(
    points: NDArray[np.float64], trajectory: Trajectory, rate: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sample one run from rest to rest; the samples start one period after its beginning."""
    pieces = np.diff(points, axis=0)
    lengths = norms(pieces)
    directions = pieces / lengths[:, None]
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    count = _samples(trajectory, rate)
    positions = np.empty((count, points.shape[1]))
    velocities = np.zeros_like(positions)
    for i in range(count - 1):
        at, slope, _ = trajectory.at_time((i + 1) / rate)
        distance = min(max(at[0], 0.0), float(ends[-1]))
        piece = min(int(np.searchsorted(ends, distance, side="right")) - 1, len(lengths) - 1)
        positions[i] = points[piece] + (distance - ends[piece]) * directions[piece]
        velocities[i] = slope[0] * directions[piece]
    positions[-1] = points[-1]
    return positions, velocities
