"""Structures: trees of frames with the number of each, against trying every assignment."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import DuplicateNameError, SceneError, UnknownNameError
from tmkit.graph import SceneGraph, find_structure
from tmkit.graph.patterns import Part, Pattern, Structure
from tmkit.graph.patterns.structure import find_difference

TABLE = Structure(
    [Part("table", ["table"]), Part("leg", ["leg"]), Part("cup", ["cup"])],
    parents={"leg": "table", "cup": "table"},
    counts={"table": None, "leg": 4, "cup": None},
)


def tables(*legs: int, cups: int = 0) -> SceneGraph:
    """Return a scene with a table for each number of legs."""
    scene = SceneGraph()
    for number, count in enumerate(legs):
        scene = scene.add_frame(f"t{number}", "world", classes=["table"])
        for kind, n in (("leg", count), ("cup", cups)):
            for k in range(n):
                scene = scene.add_frame(f"t{number} {kind} {k}", f"t{number}", classes=[kind])
    return scene


@pytest.mark.parametrize(
    ("scene", "difference"),
    [
        (tables(), None),
        (tables(4), None),
        (tables(4, 4, cups=3), None),
        (tables(4, 3), "3 of 'leg' below 't1', expected 4"),
        (tables(5, 4), "5 of 'leg' below 't0', expected 4"),
        (tables(0, cups=1), "0 of 'leg' below 't0', expected 4"),
        (tables(4).add_frame("x", "world", classes=["cup"]), "frame 'x', expected 'table'"),
        (tables(4).add_frame("x", "t0"), "frame 'x' below 't0', expected 'leg' or 'cup'"),
        (tables(4).add_frame("x", "t0 leg 1"), "frame 'x' below 't0 leg 1', expected none"),
    ],
)
def test_differences(scene: SceneGraph, difference: str | None) -> None:
    """A table has four legs and any number of cups, and nothing else."""
    frames = [name for name in scene.frame_names if name != "world"]
    assert find_difference(scene, frames, [TABLE]) == difference


def test_frames_that_two_parts_accept() -> None:
    """Each is assigned to the part that lacks it."""
    both = SceneGraph()
    for name, classes in (("a", ["x"]), ("b", ["x", "y"]), ("c", ["x", "y"])):
        both = both.add_frame(name, "world", classes=classes)
    parts = [Part("p", ["x"]), Part("q", ["y"])]
    frames = ["b", "c", "a"]
    assert find_difference(both, frames, [Structure(parts, counts={"p": 2})]) is None
    assert find_difference(both, frames, [Structure(parts, counts={"q": 2})]) is None
    assert find_difference(both, frames, [Structure(parts, counts={"p": None, "q": 2})]) is None
    assert find_difference(both, frames, [Structure(parts, counts={"q": 3})]) is not None
    assert find_difference(both, frames, [Structure(parts)]) is not None


def exact(
    scene: SceneGraph, frames: Sequence[str], own: set[str], structure: Structure, parent: str
) -> bool:
    """Return whether some assignment of frames to the parts of a parent has the counts."""
    parents, counts = dict(structure.parents), dict(structure.counts)
    parts = [part for part in structure.nodes if parents.get(part.name, "") == parent]

    def fits(frame: str, part: Part) -> bool:
        children = [name for name in scene.children(frame) if name in own]
        return part.accepts(scene, frame) and exact(scene, children, own, structure, part.name)

    for choice in itertools.product(parts, repeat=len(frames)):
        found = Counter(part.name for part in choice)
        if all(counts.get(part.name, 1) in (None, found[part.name]) for part in parts) and all(
            map(fits, frames, choice)
        ):
            return True
    return False


_classes = st.sets(st.sampled_from("xy"))


@st.composite
def _structures(draw: st.DrawFn) -> Structure:
    names = "abcd"[: draw(st.integers(1, 4))]
    parents = {
        name: draw(st.sampled_from(names[:k]))
        for k, name in enumerate(names)
        if k and draw(st.booleans())
    }
    counts = {name: draw(st.sampled_from([None, 1, 2])) for name in names}
    return Structure([Part(name, draw(_classes)) for name in names], parents=parents, counts=counts)


@st.composite
def _forests(draw: st.DrawFn, structure: Structure) -> SceneGraph:
    """Frames of a structure in their numbers, of which some are removed or added."""
    scene, parents, counts = SceneGraph(), dict(structure.parents), dict(structure.counts)
    copies: dict[str, list[str]] = {"": ["world"]}
    for part in structure.nodes:
        copies[part.name] = []
        for parent in copies[parents.get(part.name, "")]:
            count = counts[part.name]
            for _ in range(draw(st.integers(0, 2)) if count is None else count):
                if len(scene) < 7:
                    name = f"f{len(scene)}"
                    scene = scene.add_frame(
                        name, parent, classes=sorted({*part.classes} | draw(_classes))
                    )
                    copies[part.name].append(name)
    if draw(st.booleans()) and len(scene) > 1:
        scene = scene.remove_frame(draw(st.sampled_from(scene.frame_names[1:])), subtree=True)
    if draw(st.booleans()):
        scene = scene.add_frame(
            "new", draw(st.sampled_from(scene.frame_names)), classes=sorted(draw(_classes))
        )
    return scene


@given(st.data())
@settings(max_examples=scaled_examples(2.0), deadline=None)
def test_differences_against_every_assignment(data: st.DataObject) -> None:
    """There is none exactly if an assignment of all frames has all counts."""
    structure = data.draw(_structures())
    scene = data.draw(_forests(structure))
    frames = data.draw(st.permutations(scene.frame_names[1:]))
    tops = [name for name in frames if scene.parent(name) == "world"]
    difference = find_difference(scene, frames, [structure])
    assert (difference is None) == exact(scene, tops, set(frames), structure, ""), difference


def test_many_frames_take_linear_time() -> None:
    """Of any number, and one too few of a large number."""
    scene = SceneGraph()
    with scene.edit() as edit:
        for number in range(3000):
            edit.add_frame(f"f{number}", "world")
    scene, frames = edit.finish(), [f"f{number}" for number in range(3000)]
    structure = Structure([Part("a"), Part("b")], counts={"a": None, "b": 90})
    assert find_difference(scene, frames, [structure]) is None
    (only,) = [Structure([Part("b")], counts={"b": 90})]
    assert find_difference(scene, frames, [only]) == "3000 of 'b', expected 90"


def test_as_a_pattern_it_has_copies() -> None:
    """Each copy of a parent has its own children."""
    pair = Structure(
        [Part("hand", ["hand"]), Part("finger", ["finger"])],
        parents={"finger": "hand"},
        counts={"hand": 2, "finger": 2},
    )
    assert pair.roles == (
        "hand_1",
        "finger_1_1",
        "finger_1_2",
        "hand_2",
        "finger_2_1",
        "finger_2_2",
    )
    scene = SceneGraph()
    for hand in "lr":
        scene = scene.add_frame(hand, "world", classes=["hand"])
        for finger in "ab":
            scene = scene.add_frame(f"{hand}{finger}", hand, classes=["finger"])
    assert find_structure(scene, pair) == (
        {
            "hand_1": "l",
            "finger_1_1": "la",
            "finger_1_2": "lb",
            "hand_2": "r",
            "finger_2_1": "ra",
            "finger_2_2": "rb",
        },
    )
    assert isinstance(pair, Pattern)
    assert eval(repr(pair)) == pair
    assert hash(pair) == hash(eval(repr(pair)))
    assert pair != Structure([Part("hand", ["hand"])])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"nodes": []}, SceneError, "a pattern needs a part"),
        ({"nodes": [Part("a", count=2)]}, SceneError, "'a': a structure has its number in counts"),
        ({"nodes": [Part("a")], "counts": {"a": 0}}, SceneError, "count must be at least 1, not 0"),
        ({"nodes": [Part("a")], "counts": {"b": 2}}, UnknownNameError, "unknown part 'b'"),
        ({"nodes": [Part("a")], "parents": {"b": "a"}}, UnknownNameError, "unknown part 'b'"),
        (
            {"nodes": [Part("a"), Part("b")], "parents": {"a": "b"}},
            UnknownNameError,
            "parent of 'a': unknown part 'b'",
        ),
        ({"nodes": [Part("a"), Part("a")]}, DuplicateNameError, "two parts .* called 'a'"),
        (
            {"nodes": [Part("a_1"), Part("a")], "counts": {"a": 2}},
            DuplicateNameError,
            "two parts .* called 'a_1'",
        ),
        (
            {"nodes": [Part("a"), Part("b")], "counts": {"a": 50, "b": 51}},
            SceneError,
            "at most 100 frames .* part 'b' exceeds them",
        ),
    ],
)
def test_invalid_structures(arguments: dict, error: type[Exception], message: str) -> None:  # type: ignore[type-arg]
    """Errors name the part."""
    with pytest.raises(error, match=message):
        Structure(**arguments)
