"""Walks and ways against a plain model: dicts of parents, and lists."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import DisconnectedError, SceneError, UnknownNameError
from tmkit.graph import (
    Fixed,
    Free,
    Mimic,
    Revolute,
    SceneGraph,
    common_ancestor,
    joints_between,
    walk,
)
from tmkit.graph.traversal import chain

Parents = dict[str, str | None]


@st.composite
def forests(draw: st.DrawFn) -> Parents:
    """Return a strategy of forests of a few frames: the parent of each, None for a root."""
    parents: Parents = {}
    for number in range(draw(st.integers(1, 14))):
        parents[f"f{number}"] = draw(st.sampled_from([None, *parents])) if number else None
    return parents


def scene_of(parents: Parents) -> SceneGraph:
    """Return the scene of a forest; every third edge turns, every fourth is free."""
    scene = SceneGraph(root=None)
    for number, (name, parent) in enumerate(parents.items()):
        if parent is None:
            scene = scene.add_root(name)
        else:
            kind = (
                Revolute([0, 0, 1], name=f"j{number}")
                if number % 3 == 0
                else Free()
                if number % 4 == 0
                else Fixed()
            )
            scene = scene.add_frame(name, parent, joint=kind)
    return scene


def upwards(parents: Parents, name: str) -> list[str]:
    """Return a frame and its ancestors."""
    up = [name]
    while (above := parents[up[-1]]) is not None:
        up.append(above)
    return up


@given(forests(), st.data())
def test_a_walk_meets_each_frame_of_the_subtree_once(parents: Parents, data: st.DataObject) -> None:
    """Both orders yield the frames of the subtree down to the depth, in the right order."""
    scene = scene_of(parents)
    start = data.draw(st.sampled_from(list(parents)))
    depth = data.draw(st.one_of(st.none(), st.integers(0, 4)))
    stops = data.draw(st.sets(st.sampled_from(list(parents))))

    def recursion(frame: str, left: float) -> list[str]:
        below = [name for name, parent in parents.items() if parent == frame]
        goes_on = left > 0 and frame not in stops
        return [frame] + [name for child in below if goes_on for name in recursion(child, left - 1)]

    expected = recursion(start, float("inf") if depth is None else depth)
    asked: list[str] = []

    def until(frame: str) -> bool:
        asked.append(frame)
        return frame in stops

    assert list(walk(scene, start, depth=depth, until=until)) == expected
    assert asked == expected
    breadth = list(walk(scene, start, depth=depth, until=stops.__contains__, order="breadth"))
    level = {name: len(upwards(parents, name)) for name in parents}
    assert breadth == sorted(expected, key=lambda name: level[name])


@given(forests(), st.data())
def test_ways_between_frames(parents: Parents, data: st.DataObject) -> None:
    """A path joins neighbours, turns at the common ancestor, and names its joints."""
    scene = scene_of(parents)
    a, b = data.draw(st.sampled_from(list(parents))), data.draw(st.sampled_from(list(parents)))
    common = [name for name in upwards(parents, a) if name in upwards(parents, b)]
    if not common:
        for ask in (partial(common_ancestor, scene), scene.path, partial(joints_between, scene)):
            with pytest.raises(DisconnectedError, match="different trees"):
                ask(a, b)
        return
    way = scene.path(a, b)
    assert common_ancestor(scene, a, b) == common[0]
    assert (way[0], way[-1]) == (a, b)
    assert len(set(way)) == len(way)
    assert common[0] in way
    assert all(parents[x] == y or parents[y] == x for x, y in itertools.pairwise(way))
    assert scene.path(b, a) == way[::-1]
    edges = [x if parents[x] == y else y for x, y in itertools.pairwise(way)]
    names = tuple(f"j{frame[1:]}" for frame in edges if int(frame[1:]) % 3 == 0)
    assert joints_between(scene, a, b) == names
    assert joints_between(scene, b, a) == names[::-1]
    if common[0] == a:
        assert chain(scene, a, b) == way
    else:
        with pytest.raises(SceneError, match=f"frame '{b}' is not a descendant of '{a}'"):
            chain(scene, a, b)


def test_a_joint_that_mimics_is_on_the_way() -> None:
    """A mimic joint on the path is listed by its own name."""
    scene = SceneGraph().add_frame("left", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("right", "world", joint=Revolute([0, 0, 1], mimic=Mimic("left")))
    assert joints_between(scene, "left", "right") == ("left", "right")


def test_a_chain_of_a_hundred_thousand_frames_is_walked() -> None:
    """Nothing recurses: depth costs time, no stack."""
    count = 100_000
    with SceneGraph().edit() as edit:
        for number in range(count):
            edit.add_frame(f"f{number}", f"f{number - 1}" if number else "world")
    scene = edit.finish()
    assert sum(1 for _ in walk(scene, "world")) == count + 1
    assert list(walk(scene, "world", depth=2, order="breadth")) == ["world", "f0", "f1"]
    assert len(scene.path(f"f{count - 1}", "world")) == count + 1
    assert chain(scene, "world", "f1") == ("world", "f0", "f1")


def test_invalid_walks_raise_errors() -> None:
    """Bad arguments are rejected at the call, before the first frame is asked for."""
    scene = SceneGraph()
    with pytest.raises(UnknownNameError, match="unknown frame 'wrld'; did you mean 'world'"):
        walk(scene, "wrld")
    with pytest.raises(SceneError, match="number of edges, not -1"):
        walk(scene, "world", depth=-1)
    with pytest.raises(SceneError, match="'depth' or 'breadth', not 'up'"):
        walk(scene, "world", order="up")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(UnknownNameError, match="unknown frame"):
        chain(scene, "nowhere", "world")
