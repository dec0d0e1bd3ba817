"""The buffer in any order of messages against plain sorted lists, and from several threads."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, insort
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.effort import scaled_examples

from tmkit.graph import SceneGraph
from tmkit.spatial import Pose
from tmkit.world import (
    Buffer,
    ExtrapolationException,
    Header,
    LookupException,
    Quaternion,
    Transform,
    TransformException,
    TransformStamped,
    Vector3,
)
from tmkit.world.messages import TimeoutException

CAPACITY, WINDOW = 5, 3.0
FRAMES = {"b": "a", "c": "b", "d": "a"}
stamps = st.integers(1, 40).map(lambda tenths: tenths / 4)
places = st.integers(-8, 8).map(float)
frames = st.sampled_from(sorted(FRAMES))


def message(child: str, stamp: float, x: float, parent: str | None = None) -> TransformStamped:
    """Return a transform along x."""
    header = Header(stamp, FRAMES[child] if parent is None else parent)  # type: ignore[arg-type]
    return TransformStamped(header, child, Transform(Vector3(x, 0.0, 0.0), Quaternion()))


class Model(RuleBasedStateMachine):
    """Histories as sorted lists of pairs (stamp, x), None for a static frame."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(WINDOW, capacity=CAPACITY)
        self.histories: dict[str, list[tuple[float, float]] | None] = {}
        self.static: dict[str, float] = {}

    @rule(child=frames, stamp=stamps, x=places)
    def insert(self, child: str, stamp: float, x: float) -> None:
        """Insert a transform; the model predicts whether it is accepted."""
        history = list(self.histories.get(child) or [])
        same = [place for when, place in history if when == stamp]
        newest = max((when for when, _ in history), default=-math.inf)
        is_old = stamp < newest - WINDOW or (len(history) == CAPACITY and stamp < history[0][0])
        is_taken = same == [x] if same else not is_old
        assert self.buffer.set_transform(message(child, stamp, x)) == is_taken
        if is_taken and not same:
            insort(history, (stamp, x))
            last = history[-1][0]
            self.histories[child] = [pair for pair in history if pair[0] >= last - WINDOW][
                -CAPACITY:
            ]
            self.static.pop(child, None)

    @rule(child=frames, x=places)
    def insert_static(self, child: str, x: float) -> None:
        """Insert a static transform."""
        assert self.buffer.set_transform_static(message(child, 0.0, x))
        self.histories[child], self.static[child] = None, x

    @rule()
    def clear(self) -> None:
        """Forget moving transforms."""
        self.buffer.clear()
        self.histories = {
            child: None if history is None else [] for child, history in self.histories.items()
        }

    def _place(self, child: str, stamp: float | None) -> float | None:
        """Return x at a time by the model; None where it is not known."""
        history = self.histories[child]
        if history is None:
            return self.static[child]
        times = [when for when, _ in history]
        if stamp is None or not times or not times[0] <= stamp <= times[-1]:
            return None
        at = bisect_left(times, stamp)
        if times[at] == stamp:
            return history[at][1]
        (before, x), (after, y) = history[at - 1], history[at]
        return x + (y - x) * (stamp - before) / (after - before)

    @rule(into=st.sampled_from("abcd"), source=st.sampled_from("abcd"), stamp=st.none() | stamps)
    def look_up(self, into: str, source: str, stamp: float | None) -> None:
        """Look up a transform, or the latest (None)."""
        target = into
        if target == source:
            return
        known = (
            {"a", *self.histories} if {"b", "d"} & self.histories.keys() else set(self.histories)
        )
        known |= {FRAMES[child] for child in self.histories}
        asked = 0 if stamp is None else stamp
        if target not in known or source not in known:
            with pytest.raises(LookupException):
                self.buffer.lookup_transform(target, source, asked)
            return
        ways: dict[str, list[str]] = {"a": [], "b": ["b"], "c": ["b", "c"], "d": ["d"]}
        if "b" not in self.histories:  # b is a root of its own
            ways |= {"b": [], "c": ["c"]}
            if {target, source} & {"b", "c"} and {target, source} & {"a", "d"}:
                assert not self.buffer.can_transform(target, source, asked)
                return
        edges = [(child, 1) for child in ways[source]] + [(child, -1) for child in ways[target]]
        edges = [(child, sign) for child, sign in edges if (child, -sign) not in edges]
        moving = [self.histories[child] for child, _ in edges if self.histories[child] is not None]
        if stamp is None and all(moving):
            stamp = min((history[-1][0] for history in moving), default=0.0)  # type: ignore[index]
        found = [self._place(child, stamp) for child, _ in edges]
        if None in found:
            with pytest.raises(ExtrapolationException):
                self.buffer.lookup_transform(target, source, asked)
            return
        expected = sum(sign * x for (_, sign), x in zip(edges, found, strict=True))  # type: ignore[operator]
        answer = self.buffer.lookup_transform(target, source, asked)
        assert answer.transform.translation.x == pytest.approx(expected, abs=1e-12)
        assert answer.header.stamp.sec + answer.header.stamp.nanosec / 1e9 == stamp

    @invariant()
    def histories_are_equal(self) -> None:
        """The scene has the lists of the model."""
        for child, history in self.histories.items():
            known = self.buffer.scene.stamped_poses(child)
            assert (known is None) == (history is None)
            if known is not None and history is not None:
                assert known.stamps.tolist() == [when for when, _ in history]
                assert [pose.translation[0] for pose in known.poses] == [x for _, x in history]


Model.TestCase.settings = settings(
    max_examples=scaled_examples(0.6), stateful_step_count=40, deadline=None
)
TestModel = Model.TestCase


def test_readers_see_whole_versions() -> None:
    """No reader observes one of two frames that one edit moves without the other."""
    buffer, count = Buffer(capacity=50), 400
    for child in ("b", "d"):
        buffer.set_transform(message(child, 0.0, 0.0))
    is_done = threading.Event()

    def edit(step: int, scene: SceneGraph) -> SceneGraph:
        for child, sign in (("b", 1), ("d", -1)):
            scene = scene.add_stamped_pose(child, Pose([sign * step, 0, 0]), stamp=step / 100)
        return scene

    def write() -> None:
        for step in range(1, count):
            buffer.update(lambda scene, step=step: edit(step, scene))  # type: ignore[misc]
        is_done.set()

    def read() -> int:
        seen = set()
        while not is_done.is_set() or not seen:
            scene = buffer.scene
            one, other = (scene.local_pose(child).translation[0] for child in ("b", "d"))
            assert one == -other
            latest = buffer.lookup_transform("b", "d")
            stamp = latest.header.stamp.sec + latest.header.stamp.nanosec / 1e9
            assert latest.transform.translation.x == pytest.approx(-2 * stamp * 100)
            seen.add(one)
        return len(seen)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result()
        assert all(reader.result() >= 1 for reader in readers)
    assert buffer.scene.local_pose("b").translation[0] == count - 1


def test_writers_lose_nothing() -> None:
    """Transforms of several threads are all in the histories."""
    buffer = Buffer(1e6, capacity=1000)

    def write(part: int) -> None:
        for step in range(100):
            assert buffer.set_transform(message("b", 1 + part + 4 * step, float(step)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert buffer.scene.stamped_poses("b").stamps.tolist() == list(range(1, 401))  # type: ignore[union-attr]


def test_waiting_ends_with_the_transform() -> None:
    """Threads that wait for a transform resume when it is available."""
    buffer = Buffer()
    with ThreadPoolExecutor(8) as pool:
        waiting = [
            pool.submit(buffer.lookup_transform, "a", "c", 2.0, 600.0),
            pool.submit(buffer.can_transform, "a", "c", 2.0, 600.0),
            pool.submit(buffer.lookup_transform_full, "a", 1.0, "c", 2.0, "b", 600.0),
            pool.submit(buffer.wait_for_transform, "c", "a", 2.0, 600.0),
        ]
        for stamp in (1.0, 3.0):
            buffer.set_transform(message("b", stamp, stamp))
            assert not buffer.can_transform("a", "c", 2.0)
        buffer.set_transform_static(message("c", 0.0, 1.0))
        found = [future.result() for future in waiting]
    assert found[0].transform.translation.x == 3.0
    assert found[1] is True
    assert found[2].transform.translation.x == 2.0
    assert found[3].transform.translation.x == -3.0


def test_waiting_ends_in_time() -> None:
    """A lookup after a timeout raises the error of a lookup without waiting."""
    buffer = Buffer()
    buffer.set_transform(message("b", 1.0, 0.0))
    with pytest.raises(LookupException, match="'c'"):
        buffer.lookup_transform("a", "c", 1.0, 1e-6)
    with pytest.raises(ExtrapolationException, match="future"):
        buffer.lookup_transform("a", "b", 2.0, 1e-6)
    assert not buffer.can_transform("a", "b", 2.0, 1e-6)
    with pytest.raises(
        TimeoutException, match=r"no transform from 'b' to 'a' in 1e-06 s: .* future"
    ):
        buffer.wait_for_transform("a", "b", 2.0, 1e-6)
    with pytest.raises(TransformException, match="finite number of seconds"):
        buffer.lookup_transform("a", "b", 2.0, math.nan)


def test_a_waiting_thread_sleeps_until_a_transform_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting thread looks once at each version, without polling."""
    from tmkit.world import buffer as module

    looks, is_waiting = [], threading.Event()
    find = module._find

    def counted(*arguments: object) -> object:
        looks.append(arguments)
        is_waiting.set()
        return find(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_find", counted)
    buffer = Buffer()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(buffer.can_transform, "a", "b", 5.0, 600.0)
        assert is_waiting.wait(600)
        for stamp in (1.0, 2.0, 5.0):
            buffer.set_transform(message("b", stamp, 0.0))
        assert future.result()
    assert 2 <= len(looks) <= 4
