"""Samples of streams are those of a fresh call in each scene version, and functions run once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tmkit as tk
from tmkit._support.time_limits import check_time, time_limit
from tmkit.errors import SamplerError, TimeLimitError
from tmkit.manipulation import ActionContext, ArmMotionPlanner, Samplers, SeededSamplers
from tmkit.spatial import Pose
from tmkit.tamp.streams import SceneView, stream
from tmkit.tamp.streams.declaration import Stream
from tmkit.tamp.streams.samples import SampleTable, Value

ROBOT = tk.load_manipulator("panda")
TABLE = tk.load_scene("panda_table", "blocks3")
Q = ROBOT.ready_configuration(TABLE)


def context_of(scene: tk.SceneGraph) -> ActionContext:
    """Return the context of a scene version at the ready configuration."""
    sampling = SeededSamplers(Samplers(), ROBOT, 0)
    return ActionContext(scene, Q, np.random.default_rng(0), sampling, {})


def moved(scene: tk.SceneGraph, block: str, step: int) -> tk.SceneGraph:
    """Return the scene with a block moved along x by a number of millimetres."""
    pose = scene.local_pose(block)
    x, y, z = pose.translation
    return scene.set_pose(block, Pose([x + 0.001 * step, y, z], pose.quat_xyzw))


def values_of(
    table: SampleTable, declared: Stream, inputs: tuple[Value, ...], scene: tk.SceneGraph, n: int
) -> list[object]:
    """Return the first values of a stream in a scene version."""
    samples = table.samples(declared, inputs, context_of(scene), {"number": float})
    return [sample.values for sample in islice(samples, n)]


def make_walk(reads: list[str]) -> tuple[Stream, list[str]]:
    """Return a stream that reads one block before each value, and the log of its calls."""
    calls: list[str] = []

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def walk(view: SceneView, o: str) -> Iterator[float]:
        calls.append(o)
        for block in reads:
            yield float(view.local_pose(block).translation[0] + view.rng.uniform())

    return walk, calls


@settings(deadline=None, max_examples=60)
@given(
    reads=st.lists(st.sampled_from(["b0", "b1", "b2"]), min_size=1, max_size=5),
    visits=st.lists(
        st.tuples(st.tuples(*(st.integers(0, 2) for _ in range(3))), st.integers(0, 6)),
        min_size=1,
        max_size=12,
    ),
)
def test_samples_are_those_of_a_fresh_table(
    reads: list[str], visits: list[tuple[tuple[int, int, int], int]]
) -> None:
    """A version gets the values of a table that has seen no other version."""
    blocks = list(TABLE.frames_of_class("movable"))[:3]
    names = dict(zip(("b0", "b1", "b2"), blocks, strict=True))
    walk, calls = make_walk([names[name] for name in reads])
    shared = SampleTable(0)
    versions = set()
    for steps, count in visits:
        scene = TABLE
        for block, step in zip(blocks, steps, strict=True):
            scene = moved(scene, block, step)
        versions.add(steps)
        inputs = (shared.object_value("a"),)
        fresh = SampleTable(0)
        expected = values_of(fresh, walk, (fresh.object_value("a"),), scene, count)
        n_calls = len(calls)
        assert values_of(shared, walk, inputs, scene, count) == expected
        assert len(calls) - n_calls <= 1
    read_values = {
        tuple(steps[int(name[1])] for name in dict.fromkeys(reads)) for steps in versions
    }
    # Versions with equal reads share a call.
    use = next(iter(shared.uses()), None)
    assert use is None or use.calls <= len(read_values)


def test_a_test_runs_once_for_all_versions_in_which_its_reads_are_equal() -> None:
    """Moving an object that a test does not read calls no function."""
    calls = []

    @stream("?o - item", certifies="(high ?o)")
    def high(view: SceneView, o: str) -> bool:
        calls.append(o)
        return bool(view.pose(o).translation[2] > 1.0)

    first, second, _ = TABLE.frames_of_class("movable")
    table = SampleTable(0)
    inputs = (table.object_value(first),)
    for step in range(5):
        assert values_of(table, high, inputs, moved(TABLE, second, step), 1) == []
    assert calls == [first]
    assert values_of(table, high, inputs, moved(TABLE, first, 1), 1) == []
    assert calls == [first, first]


def test_a_stream_that_reads_the_whole_scene_is_called_in_each_version() -> None:
    """Two versions share a sample only if they are equal."""
    calls = []

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def count(view: SceneView, o: str) -> Iterator[float]:
        calls.append(o)
        yield float(len(view.scene))

    block = TABLE.frames_of_class("movable")[0]
    table = SampleTable(0)
    inputs = (table.object_value(block),)
    values_of(table, count, inputs, TABLE, 1)
    values_of(table, count, inputs, TABLE.set_pose(block, TABLE.local_pose(block)), 1)
    assert len(calls) == 1
    values_of(table, count, inputs, moved(TABLE, block, 1), 1)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("text", r"stream 'wrong' gives 'text' for '\?v - number'; expected a float"),
        ((1.0, 2.0), r"stream 'wrong' gives \(1.0, 2.0\) for '\?v - number'"),
        (None, r"stream 'wrong' gives None"),
    ],
)
def test_values_of_a_wrong_type_are_rejected(result: object, message: str) -> None:
    """The message names the stream, the variable and the expected type."""

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def wrong(view: SceneView, o: str) -> Iterator[object]:
        yield result

    table = SampleTable(0)
    with pytest.raises(SamplerError, match=message):
        values_of(table, wrong, (table.object_value("a"),), TABLE, 1)


def test_an_error_of_a_stream_names_it_and_its_line() -> None:
    """The message has the stream, its inputs, the file and the line."""

    @stream("?o - item", certifies="(fine ?o)")
    def broken(view: SceneView, o: str) -> bool:
        return view.pose(o).translation[0] < 1 / 0

    table = SampleTable(0)
    with pytest.raises(
        SamplerError, match=r"stream 'broken' of \(a\) fails in .*test_samples.py:\d+: ZeroDivision"
    ):
        values_of(table, broken, (table.object_value("a"),), TABLE, 1)


@pytest.mark.parametrize("result", [1, None, "yes"])
def test_a_test_returns_a_bool(result: object) -> None:
    """Another result is an error rather than a truth value."""

    @stream("?o - item", certifies="(fine ?o)")
    def vague(view: SceneView, o: str) -> object:
        return result

    table = SampleTable(0)
    with pytest.raises(SamplerError, match=r"stream 'vague' returns .*, no bool"):
        values_of(table, vague, (table.object_value("a"),), TABLE, 1)


@pytest.mark.parametrize("result", [-1.0, float("nan"), float("inf"), True, "much"])
def test_a_cost_is_a_finite_number_of_at_least_zero(result: object) -> None:
    """Another result is an error that names the stream."""

    @stream("?o - item", cost="(price ?o)")
    def price(view: SceneView, o: str) -> object:
        return result

    table = SampleTable(0)
    with pytest.raises(SamplerError, match="stream 'price' returns"):
        values_of(table, price, (table.object_value("a"),), TABLE, 1)


def test_a_generator_that_a_time_limit_interrupts_continues_later() -> None:
    """Its later samples are those of an uninterrupted call, not an early end."""
    is_slow = [True]

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def slow(view: SceneView, o: str) -> Iterator[float]:
        for number in range(4):
            while number == 2 and is_slow:
                check_time()
            yield number + float(view.rng.uniform())

    table, fresh = SampleTable(0), SampleTable(0)
    inputs = (table.object_value("a"),)
    with pytest.raises(TimeLimitError), time_limit(0.05):
        values_of(table, slow, inputs, TABLE, 4)
    is_slow.clear()
    expected = values_of(fresh, slow, (fresh.object_value("a"),), TABLE, 4)
    assert values_of(table, slow, inputs, TABLE, 4) == expected
    assert len(expected) == 4


def test_a_time_limit_of_the_function_itself_is_its_error() -> None:
    """Only the time limit of the planning run ends the run without an error."""

    @stream("?o - item", certifies="(fine ?o)")
    def hasty(view: SceneView, o: str) -> bool:
        raise TimeLimitError("no answer of the service")

    table = SampleTable(0)
    with (
        pytest.raises(SamplerError, match=r"stream 'hasty' of .*no answer of the service"),
        time_limit(60.0),
    ):
        values_of(table, hasty, (table.object_value("a"),), TABLE, 1)


def test_an_array_that_a_generator_reuses_gives_distinct_values() -> None:
    """Values are read-only copies."""

    @stream("?o - item", gives="?m - path", certifies="(path ?o ?m)")
    def walk(view: SceneView, o: str) -> Iterator[np.ndarray]:
        points = np.zeros((2, 3))
        for _ in range(3):
            points += 1.0
            yield points

    table = SampleTable(0)
    values = values_of(table, walk, (table.object_value("a"),), TABLE, 3)
    paths = [value[0] for value in values]  # type: ignore[index]
    assert [path[0, 0] for path in paths] == [1.0, 2.0, 3.0]
    assert not paths[0].flags.writeable


def test_a_generator_returns_an_iterable() -> None:
    """A list serves as well as a generator; a single value or None is an error."""

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def listed(view: SceneView, o: str) -> list[float]:
        return [1.0, 2.0]

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def single(view: SceneView, o: str) -> float:
        return 1.0

    table = SampleTable(0)
    inputs = (table.object_value("a"),)
    assert values_of(table, listed, inputs, TABLE, 9) == [(1.0,), (2.0,)]
    with pytest.raises(SamplerError, match=r"stream 'single' returns 1\.0; expected an iterable"):
        values_of(table, single, inputs, TABLE, 1)


def test_the_frames_of_a_stream_are_those_of_all_its_runs() -> None:
    """A constraint that the search learns from a failure covers every frame that was read."""
    first, second, third = TABLE.frames_of_class("movable")

    @stream("?o - item", gives="?v - number", certifies="(value ?o ?v)")
    def walk(view: SceneView, o: str) -> Iterator[float]:
        yield 0.0
        x = view.local_pose(second).translation[0]
        if x > TABLE.local_pose(second).translation[0]:
            yield float(view.local_pose(third).translation[0])

    table = SampleTable(0)
    inputs = (table.object_value(first),)
    values_of(table, walk, inputs, TABLE, 5)
    scene = moved(TABLE, second, 1)
    assert len(values_of(table, walk, inputs, scene, 5)) == 2
    assert table.frames(walk, inputs, context_of(scene)) == {second, third}


def test_the_pose_of_a_held_object_depends_on_the_arm() -> None:
    """A failure that read it is not repeated at another configuration."""

    @stream("?o - item", certifies="(high ?o)")
    def high(view: SceneView, o: str) -> bool:
        return bool(view.pose(o).translation[2] > 5.0)

    @stream("?o - item", certifies="(fits ?o)")
    def fits(view: SceneView, o: str) -> bool:
        return bool(view.pose(o, relative_to=ROBOT.tip).translation[2] > 5.0)

    block = TABLE.frames_of_class("movable")[0]
    arms = {ROBOT.name: ArmMotionPlanner(ROBOT)}
    table = SampleTable(0)
    inputs = (table.object_value(block),)
    for scene, is_held in ((TABLE, False), (TABLE.reparent(block, ROBOT.tip, q=Q), True)):
        context = replace(context_of(scene), arms=arms)
        for declared in (high, fits):
            assert next(table.samples(declared, inputs, context, {}), None) is None
        assert table.reads_configuration(high, inputs, context) is is_held
        # The pose relative to the hand depends on the arm unless the hand holds the block.
        assert table.reads_configuration(fits, inputs, context) is not is_held
