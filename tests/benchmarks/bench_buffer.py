"""Speed of stamped poses and of the buffer, beside sorted lists of plain Python, in the same run.

Run by hand: ``pytest tests/benchmarks/bench_buffer.py --benchmark-enable --benchmark-only -s``. The
tree is that of tf2's own measurements: leaf to leaf over eight edges, each turned, seen 100 times a
second. The plain one keeps lists of stamps and poses by ``bisect``, and multiplies tuples; both
give the same numbers. Times are processor seconds.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tmkit._core import common_stamps
from tmkit.graph import SceneArrays, SceneGraph
from tmkit.spatial import Pose
from tmkit.world import Buffer, Header, Quaternion, Time, Transform, TransformStamped, Vector3

EDGES = [("map", "a0"), *((f"a{i}", f"a{i + 1}") for i in range(3)), ("map", "b0")]
EDGES += [(f"b{i}", f"b{i + 1}") for i in range(3)]
Plain = tuple[tuple[float, ...], tuple[float, ...]]


def least(call: Callable[[], object], number: int = 1000, rounds: int = 15) -> float:
    """Return the least processor time of one call, in microseconds."""
    best = math.inf
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(number):
            call()
        best = min(best, (time.process_time() - began) / number)
    return best * 1e6


def product(p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, ...]:
    """Return the product of two quaternions x, y, z, w."""
    (a, b, c, d), (e, f, g, h) = p, q
    return (
        d * e + a * h + b * g - c * f,
        d * f - a * g + b * h + c * e,
        d * g + a * f - b * e + c * h,
        d * h - a * e - b * f - c * g,
    )


def interpolate_turn(q: tuple[float, ...], v: tuple[float, ...]) -> tuple[float, ...]:
    """Return a vector turned by a quaternion."""
    return product(product(q, (*v, 0.0)), (-q[0], -q[1], -q[2], q[3]))[:3]


class PlainLists:
    """Histories as sorted lists."""

    def __init__(self, window: float) -> None:
        self.window = window
        self.stamps: dict[str, list[float]] = {}
        self.poses: dict[str, list[Plain]] = {}

    def insert(self, child: str, stamp: float, pose: Plain) -> None:
        """Insert a pose and drop expired ones."""
        stamps, poses = self.stamps.setdefault(child, []), self.poses.setdefault(child, [])
        index = bisect_left(stamps, stamp)
        stamps.insert(index, stamp)
        poses.insert(index, pose)
        first_kept = bisect_left(stamps, stamps[-1] - self.window)
        del stamps[:first_kept], poses[:first_kept]

    def at(self, child: str, stamp: float) -> Plain:
        """Return the pose between two stamps."""
        stamps, poses = self.stamps[child], self.poses[child]
        i = bisect_left(stamps, stamp)
        (t, p), (u, q) = poses[i - 1], poses[i]
        f = (stamp - stamps[i - 1]) / (stamps[i] - stamps[i - 1])
        cosine = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3]
        sign = 1.0 if cosine >= 0 else -1.0
        angle = math.acos(min(1.0, abs(cosine)))
        before, after = (
            (1 - f, f) if angle < 1e-6 else (math.sin((1 - f) * angle), math.sin(f * angle))
        )
        scale = 1.0 if angle < 1e-6 else math.sin(angle)
        turn = tuple((before * x + sign * after * y) / scale for x, y in zip(p, q, strict=True))
        return tuple(x + f * (y - x) for x, y in zip(t, u, strict=True)), turn

    def chain(self, leaf: str, stamp: float) -> Plain:
        """Return the pose of the last frame of a chain of four."""
        place, turn = self.at(f"{leaf}0", stamp)
        for i in range(1, 4):
            t, q = self.at(f"{leaf}{i}", stamp)
            moved = interpolate_turn(turn, t)
            place, turn = tuple(x + y for x, y in zip(place, moved, strict=True)), product(turn, q)
        return place, turn

    def between(self, stamp: float) -> Plain:
        """Return the pose of the last frame of chain a in that of chain b."""
        (t, p), (u, q) = self.chain("a", stamp), self.chain("b", stamp)
        back = (-q[0], -q[1], -q[2], q[3])
        return interpolate_turn(back, tuple(x - y for x, y in zip(t, u, strict=True))), product(
            back, p
        )


@pytest.mark.parametrize("window", [32, 100, 1000])
def test_insert_and_query(benchmark: BenchmarkFixture, window: int) -> None:
    """A pose in, and a query over eight edges: scene, arrays, buffer, plain lists."""
    rng = np.random.default_rng(0)
    scene, plain, buffer = (
        SceneGraph().add_frame("map", body="map"),
        PlainLists(10.0),
        Buffer(capacity=window),
    )
    for parent, child in EDGES:
        scene = scene.add_frame(child, parent)
    for k in range(window):
        for parent, child in EDGES:
            turn = np.array([0.3, -0.2, 0.1]) + k / 100  # a radian a second about each axis
            x, y, z, *q = Pose.from_rpy(rng.normal(size=3), turn).as_array().tolist()
            time_of = Time(*divmod(10_000_000 * k, 10**9))
            scene = scene.add_stamped_pose(
                child,
                Pose.from_array(np.array([x, y, z, *q])),
                stamp=k / 100,
                capacity=window,
                window=10.0,
            )
            plain.insert(child, k / 100, ((x, y, z), tuple(q)))
            message = TransformStamped(
                Header(time_of, parent), child, Transform(Vector3(x, y, z), Quaternion(*q))
            )
            assert buffer.set_transform(message)
    stamp = (window - 1) / 100 - 0.004
    arrays = SceneArrays(scene, capacity={"stamps": 8 * window + 8})
    place, turned_by = plain.between(stamp)
    ours = scene.pose("a3", relative_to="b3", stamp=stamp)
    assert np.allclose(ours.translation, place, atol=1e-9)
    assert abs(abs(float(ours.quat_xyzw @ np.array(turned_by))) - 1) < 1e-9
    now, pose = [window / 100] * 3, Pose([0.1, 0.2, 0.3])
    message = TransformStamped(
        Header(Time(), "map"), "seen", Transform(Vector3(0.1, 0.2, 0.3), Quaternion())
    )
    seen = scene.add_frame("seen", "map").set_stamped_poses("seen", scene.stamped_poses("a0"))

    def step(which: int) -> float:
        now[which] += 0.01
        return now[which]

    def set_transform() -> None:
        nanoseconds = round(step(2) * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
        buffer.set_transform(message)

    when = Time(*divmod(round(stamp * 1e9), 10**9))
    flat = ((0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0))
    rows = {
        "insert, plain lists": lambda: plain.insert("seen", step(0), flat),
        "insert, scene": lambda: seen.add_stamped_pose("seen", pose, stamp=window / 100),
        "insert, arrays": lambda: arrays.add_stamped_pose("a0", pose, stamp=step(1)),
        "insert, buffer and message": set_transform,
        "query, plain lists": lambda: plain.between(stamp),
        "query, scene": lambda: scene.pose("a3", relative_to="b3", stamp=stamp),
        "query, arrays": lambda: arrays.pose("a3", relative_to="b3", stamp=stamp),
        "query, scene, without a stamp": lambda: scene.pose("a3", relative_to="b3"),
        "query, buffer and message": lambda: buffer.lookup_transform("b3", "a3", when),
        "query, buffer, the latest": lambda: buffer.lookup_transform("b3", "a3"),
        "latest common time, scene": lambda: common_stamps(scene, "a3", "b3"),
    }
    queries = [name for name in rows if not name.startswith("insert")]
    results = {
        name: least(rows[name]) for name in [*queries, *(row for row in rows if row not in queries)]
    }
    for name in rows:
        base = results[f"{'insert' if name.startswith('insert') else 'query'}, plain lists"]
        print(
            f"{window:5d} kept  {name:32s} {results[name]:8.2f} us"
            f"  {results[name] / base:6.3f} of plain lists"
        )
        benchmark.extra_info[name] = results[name]
    benchmark(rows["query, scene"])
