"""Timing of paths: the motion is near the checked polyline and within the limits."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.effort import scaled_examples
from support.motion_limits import limit_shares

from tmkit.errors import ConfigurationError
from tmkit.motion import time_path
from tmkit.motion.timing import TimedPath, blend_path, restore_path

Array = NDArray[np.float64]

finite = st.floats(-3.0, 3.0, allow_nan=False).map(lambda number: round(number, 4))


@st.composite
def paths(draw: st.DrawFn) -> tuple[Array, Array, Array]:
    """Draw a path (k, n), and speed and acceleration limits (n,) of its joints."""
    n = draw(st.integers(1, 4))
    path = draw(arrays(float, (draw(st.integers(1, 6)), n), elements=finite))
    limits = arrays(float, n, elements=st.floats(0.1, 5.0))
    return path, draw(limits), draw(limits)


def distance_to_polyline(point: Array, path: Array) -> float:
    """Return the distance of a point (n,) from the polyline through the rows of a path."""
    best = float(np.min(np.linalg.norm(path - point, axis=1)))
    for a, b in pairwise(path):
        length = float(np.dot(b - a, b - a))
        if length > 0.0:
            share = min(max(float(np.dot(point - a, b - a)) / length, 0.0), 1.0)
            best = min(best, float(np.linalg.norm(a + share * (b - a) - point)))
    return best


@settings(max_examples=scaled_examples(0.5))
@given(paths(), st.sampled_from([0.0, 1e-3, 0.02, 0.2]))
def test_samples_are_near_the_polyline(
    given_path: tuple[Array, Array, Array], deviation: float
) -> None:
    """Samples keep the largest deviation. Without deviation they are on the polyline."""
    path, speeds, accelerations = given_path
    timing = time_path(
        path, speeds, acceleration_limits=accelerations, rate=50.0, deviation=deviation
    )
    assert (
        max(distance_to_polyline(point, path) for point in timing.positions)
        <= deviation * 1.01 + 1e-9
    )


@settings(max_examples=scaled_examples(0.5))
@given(paths(), st.floats(0.02, 0.5), st.sampled_from([0.0, 0.02]))
@example((np.array([[0.0], [1.0], [0.0]]), np.ones(1), np.ones(1)), 0.5, 0.02)
def test_limits_hold(
    given_path: tuple[Array, Array, Array], jerk_time: float, deviation: float
) -> None:
    """Finite differences at 1 kHz keep the limits and agree with velocities and accelerations."""
    path, speeds, accelerations = given_path
    limits = {"acceleration_limits": accelerations, "jerk_limits": accelerations / jerk_time}
    timing = time_path(path, speeds, **limits, rate=1000.0, deviation=deviation)
    jerks = accelerations / jerk_time
    shares = limit_shares(
        timing.positions, 1000.0, speeds=speeds, accelerations=accelerations, jerks=jerks
    )
    assert max(shares) < 1.0 + 1e-4
    assert np.all(np.abs(timing.velocities) <= speeds * (1.0 + 1e-6))
    assert np.all(np.abs(timing.accelerations) <= accelerations * (1.0 + 1e-6))
    for rows, following in (
        (timing.positions, timing.velocities),
        (timing.velocities, timing.accelerations),
    ):
        means = (following[1:] + following[:-1]) / 2000.0
        assert np.allclose(np.diff(rows, axis=0), means, atol=1e-6 * np.max(jerks))


@settings(max_examples=scaled_examples(0.5))
@given(paths())
def test_a_motion_starts_and_ends_at_rest(given_path: tuple[Array, Array, Array]) -> None:
    """The first and last samples are the ends of the path, without velocity."""
    path, speeds, accelerations = given_path
    timing = time_path(path, speeds, acceleration_limits=accelerations, rate=50.0)
    np.testing.assert_array_equal(timing.positions[0], path[0])
    np.testing.assert_allclose(timing.positions[-1], path[-1], atol=1e-8)
    assert not timing.velocities[0].any()
    assert not timing.velocities[-1].any()


@given(paths())
@settings(max_examples=scaled_examples(0.2))
def test_timing_is_reproducible(given_path: tuple[Array, Array, Array]) -> None:
    """The same path has the same samples, bit for bit."""
    path, speeds, accelerations = given_path
    first, second = (
        time_path(path, speeds, acceleration_limits=accelerations, rate=50.0) for _ in range(2)
    )
    assert first.positions.tobytes() == second.positions.tobytes()
    assert first.velocities.tobytes() == second.velocities.tobytes()


@settings(max_examples=scaled_examples(0.3))
# which rests where it turns back
@example((np.array([[-0.125], [-0.75], [0.0]]), np.ones(1), np.full(1, 3.0)), 0.02)
@given(paths(), st.sampled_from([0.0, 0.02]))
def test_a_motion_is_restored_from_its_values(
    given_path: tuple[Array, Array, Array], deviation: float
) -> None:
    """Points, widths, speeds and means, stored as text, restore a motion bit for bit."""
    path, speeds, accelerations = given_path
    blended = blend_path(path, speeds, acceleration_limits=accelerations, deviation=deviation)
    parts = zip(blended.start_rows, blended.parts, strict=True)
    text = json.dumps(
        [(row, part.widths.tolist(), part.speed.tolist(), part.mean) for row, part in parts]
    )
    read = [
        (row, np.array(widths), np.array(speed), mean)
        for row, widths, speed, mean in json.loads(text)
    ]
    restored, times = restore_path(path, read), np.linspace(-0.1, blended.duration + 0.1, 200)
    for array, restored_array in zip(blended.sample(times), restored.sample(times), strict=True):
        assert array.tobytes() == restored_array.tobytes()


def compute_timing(path: Any, *, rate: float = 100.0, deviation: Any = 0.02) -> TimedPath:
    """Compute the timing of a path with limits of 1 and 2 for every joint."""
    n = np.shape(path)[-1]
    return time_path(path, [1.0] * n, acceleration_limits=[2.0] * n, rate=rate, deviation=deviation)


CORNER = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]


def test_a_corner_without_deviation_is_a_stop() -> None:
    """Without deviation, the motion stops at a corner of 90 degrees."""
    result = compute_timing(CORNER, deviation=[0.1, 0.0, 0.1])
    at_corner = np.all(np.abs(result.positions - [1.0, 0.0]) < 1e-4, axis=1)
    assert np.min(np.max(np.abs(result.velocities[at_corner]), axis=1)) < 0.02


def test_a_larger_deviation_allows_a_faster_motion() -> None:
    """Without deviation, the motion stops at the corner. At 0.1 m it keeps a third of the speed."""
    durations = [
        compute_timing(CORNER, deviation=deviation).duration
        for deviation in (0.0, 0.005, 0.01, 0.05, 0.1)
    ]
    assert durations[0] == pytest.approx(2.0 * compute_timing(CORNER[:2]).duration, abs=0.03)
    assert all(later < before for before, later in pairwise(durations))
    result = compute_timing(CORNER, deviation=0.1)
    middle = result.positions[len(result.positions) // 4 : -len(result.positions) // 4]
    speeds = np.linalg.norm(result.velocities[len(middle) // 2 : -len(middle) // 2], axis=1)
    assert speeds.min() > 0.33


def test_a_reversal_stays_within_the_path() -> None:
    """A path that reverses is followed up to the deviation, and not beyond its end."""
    result = compute_timing([[0.0], [1.0], [0.2]])
    assert 0.98 <= result.positions[:, 0].max() <= 1.0


def test_a_gentle_bend_needs_no_stop() -> None:
    """Turns of a few degrees, as in a straight tool motion, need no stop."""
    bend = [[math.sin(angle), 1.0 - math.cos(angle)] for angle in np.linspace(0.0, 1.5, 40)]
    result = compute_timing(bend)
    inside = np.linalg.norm(result.velocities[20:-20], axis=1)
    assert inside.min() > 0.19  # at the ends of the cut; a stop would be 0
    assert result.duration < 0.7 * sum(compute_timing([a, b]).duration for a, b in pairwise(bend))


def test_the_fastest_motion_of_one_joint() -> None:
    """A long motion takes length / speed + speed / acceleration + T."""
    result = compute_timing([[0.0], [10.0]], rate=1000.0)
    # of 0.2 s; 0.01 % is kept
    assert result.duration == pytest.approx(10.0 / 1.0 + 1.0 / 2.0 + 0.2, abs=2e-3)


@pytest.mark.parametrize("rate", [10.0, 60.0, 240.0])
def test_rate_sets_the_period(rate: float) -> None:
    """Samples are 1 / rate apart. The duration is that of the motion, plus a sample a stop."""
    result = compute_timing([[0.0, 0.0], [1.0, 0.5]], rate=rate)
    assert result.period == 1.0 / rate
    assert result.duration == pytest.approx(
        compute_timing([[0.0, 0.0], [1.0, 0.5]], rate=1000.0).duration, abs=1.0 / rate
    )


@pytest.mark.parametrize(
    "path", [[[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0 + 1e-12]]]
)
def test_a_path_that_does_not_move_is_one_sample(path: list[list[float]]) -> None:
    """A path without motion has no duration."""
    result = compute_timing(path)
    assert len(result.positions) == 1
    assert result.duration == 0.0


def test_repeated_waypoints_have_no_effect() -> None:
    """A repeated waypoint causes no stop and no other motion."""
    once, twice = (
        compute_timing([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]),
        compute_timing([[0.0, 0.0], [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]]),
    )
    np.testing.assert_array_equal(once.positions, twice.positions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": np.zeros((0, 2))}, "at least one finite configuration"),
        ({"path": []}, "at least one finite configuration"),
        ({"path": [[0.0, math.nan]]}, "at least one finite configuration"),
        ({"path": np.zeros((2, 2, 2))}, "at least one finite configuration"),
        ({"velocity_limits": [1.0]}, "velocity_limits must be 2 positive finite numbers"),
        ({"velocity_limits": [1.0, 0.0]}, "velocity_limits must be 2 positive finite numbers"),
        ({"velocity_limits": [1.0, math.inf]}, "velocity_limits must be 2 positive finite numbers"),
        (
            {"acceleration_limits": [1.0, -1.0]},
            "acceleration_limits must be 2 positive finite numbers",
        ),
        (
            {"acceleration_limits": [1.0, math.nan]},
            "acceleration_limits must be 2 positive finite numbers",
        ),
        ({"jerk_limits": [1.0, 0.0]}, "jerk_limits must be 2 positive finite numbers"),
        ({"deviation": -1.0}, "deviation must be one number of at least 0, or 2 of them"),
        ({"deviation": [0.1]}, "deviation must be one number of at least 0, or 2 of them"),
        ({"rate": 0.0}, "rate must be positive and finite, not 0.0"),
        ({"rate": math.nan}, "rate must be positive and finite, not nan"),
        ({"rate": math.inf}, "rate must be positive and finite, not inf"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    """Invalid arguments raise errors with their name."""
    good: dict[str, Any] = {
        "path": [[0.0, 0.0], [1.0, 1.0]],
        "velocity_limits": [1.0, 1.0],
        "acceleration_limits": [1.0, 1.0],
        "rate": 100.0,
    }
    given_arguments = {**good, **arguments}
    path, speeds = given_arguments.pop("path"), given_arguments.pop("velocity_limits")
    with pytest.raises(ConfigurationError, match=message):
        time_path(path, speeds, **given_arguments)
