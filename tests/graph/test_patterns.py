"""Pattern matching against exhaustive search, and its invariance under motions."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError, DuplicateNameError, SceneError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cylinder,
    FrameSpecification,
    Revolute,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.graph.patterns import (
    Above,
    AncestorOf,
    At,
    ChildOf,
    Distance,
    EqualDimensions,
    Parallel,
    Part,
    Pattern,
    Perpendicular,
    RestsOn,
    Touching,
)
from tmkit.graph.patterns.pattern import Relation, find_structure
from tmkit.graph.patterns.placed import PlacedScene
from tmkit.spatial import Pose

TABLE = Pattern(
    [
        Part("plate", shape="box", dimensions=[(0.4, 3.0), (0.4, 3.0), (0.01, 0.1)]),
        Part("leg", shape="box", dimensions=[(0.02, 0.15), (0.02, 0.15), (0.3, 1.2)], count=4),
    ],
    [
        Touching("plate", "leg"),
        Above("plate", "leg"),
        EqualDimensions("leg", "leg"),
        Parallel("leg", "leg"),
    ],
)


def with_table(scene: SceneGraph, name: str, pose: Pose, *, parent: str = "world") -> SceneGraph:
    """Add a table: a plate on four legs, each a frame of its own."""
    scene = scene.add_frame(
        f"{name}_top", parent, pose=pose, shapes=[AttachedShape(Box([1.2, 0.8, 0.04]))]
    )
    for number, (x, y) in enumerate(itertools.product((-0.5, 0.5), (-0.3, 0.3))):
        leg = AttachedShape(Box([0.06, 0.06, 0.7]))
        scene = scene.add_frame(
            f"{name}_leg{number}", f"{name}_top", pose=Pose([x, y, -0.37]), shapes=[leg]
        )
    return scene


def test_a_plate_with_four_legs_is_a_table() -> None:
    """Two tables are two matches, not 48, whatever else stands around; three legs are no table."""
    scene = with_table(SceneGraph(), "oak", Pose([0, 0, 0.72]))
    scene = with_table(scene, "elm", Pose.from_rpy([3, 1, 0.72], [0, 0, 0.7]))
    scene = scene.add_frame(
        "shelf", "world", pose=Pose([9, 0, 1]), shapes=[AttachedShape(Box([1.0, 0.5, 0.02]))]
    )
    found = find_structure(scene, TABLE)
    assert found == tuple(
        {"plate": f"{name}_top", **{f"leg_{i + 1}": f"{name}_leg{i}" for i in range(4)}}
        for name in ("oak", "elm")
    )
    assert find_structure(scene.remove_frame("oak_leg2"), TABLE) == found[1:]
    fallen = scene.set_pose("elm_top", Pose.from_rpy([3, 1, 0.72], [math.pi / 2, 0, 0]))
    assert find_structure(fallen, TABLE) == found[:1], "its legs are not below it any more"
    assert find_structure(fallen, TABLE, up=[0, -1, 0]) == found[1:]


# --- against trying everything


def symmetries(pattern: Pattern) -> list[tuple[int, ...]]:
    """Return all permutations of roles that preserve descriptions and conditions."""
    parts = [pattern.part_of(role) for role in pattern.roles]
    looks = [(p.classes, p.shape, p.dimensions, p.attributes, p.test) for p in parts]
    everyone = range(len(parts))
    said = {c.key(everyone) for c in pattern.conditions}
    return [
        permutation
        for permutation in itertools.permutations(everyone)
        if all(looks[i] == looks[permutation[i]] for i in everyone)
        and {c.key(permutation) for c in pattern.conditions} == said
    ]


def by_trying_everything(scene: SceneGraph, pattern: Pattern) -> set[frozenset[tuple[str, ...]]]:
    """Return every match as the set of all its names, from all choices of different frames."""
    placed = PlacedScene(scene)
    group = symmetries(pattern)
    found = set()
    for frames in itertools.permutations(scene.frame_names, len(pattern.roles)):
        if all(
            pattern.part_of(role).accepts(scene, frame)
            for role, frame in zip(pattern.roles, frames, strict=True)
        ) and all(c.relation.holds(placed, frames[c.a], frames[c.b]) for c in pattern.conditions):
            found.add(frozenset(tuple(frames[i] for i in symmetry) for symmetry in group))
    return found


def names_of_all(
    pattern: Pattern, matches: Iterable[Mapping[str, str]]
) -> list[frozenset[tuple[str, ...]]]:
    """Return each match as the set of all its names."""
    group = symmetries(pattern)
    frames = [tuple(match.values()) for match in matches]
    return [frozenset(tuple(match[i] for i in symmetry) for symmetry in group) for match in frames]


_SHAPES: tuple[Shape, ...] = (
    Box([1, 1, 1]),
    Box([1, 1, 2]),
    Sphere(0.5),
    Cylinder(0.5, 1.0),
    Capsule(0.25, 0.5),
)
_TURNS = ([0, 0, 0], [math.pi / 2, 0, 0], [0, math.pi / 2, 0], [0, 0, math.pi / 4])


@st.composite
def scenes(draw: st.DrawFn) -> SceneGraph:
    """Return a strategy of small scenes: shapes on a half-metre grid, rotated by right angles."""
    scene = SceneGraph()
    for number in range(draw(st.integers(3, 6))):
        coordinates = [draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])) for _ in range(3)]
        parent = draw(st.sampled_from(scene.frame_names))
        shapes = [
            AttachedShape(shape)
            for shape in draw(
                st.lists(st.sampled_from(_SHAPES), min_size=draw(st.integers(0, 1)), max_size=2)
            )
        ]
        classes = draw(st.sampled_from([[], [], ["movable"], ["movable", "surface"]]))
        pose = Pose.from_rpy(coordinates, draw(st.sampled_from(_TURNS)))
        scene = scene.add_frame(f"f{number}", parent, pose=pose, shapes=shapes, classes=classes)
    return scene


_RELATIONS: tuple[Callable[[str, str], Relation], ...] = (
    lambda a, b: Touching(a, b, tolerance=0.01),
    lambda a, b: Above(a, b, tolerance=0.01),
    lambda a, b: RestsOn(a, b, tolerance=0.01),
    lambda a, b: Distance(a, b, lower=0.2, upper=1.2),
    lambda a, b: Parallel(a, b, tolerance=0.1),
    lambda a, b: Perpendicular(a, b, axis_a=(1, 0, 0), tolerance=0.1),
    lambda a, b: EqualDimensions(a, b, tolerance=0.01),
    lambda a, b: At(a, b, Pose([0.5, 0, 0]), tolerance=0.01, rotation_tolerance=3.0),
    ChildOf,
    AncestorOf,
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Return a strategy of patterns of up to four roles."""
    part_names = "ab" if draw(st.booleans()) else "abc"
    parts, left = [], 4
    for name in part_names:
        count = draw(st.integers(1, max(1, min(3, left - len(part_names) + len(parts) + 1))))
        left -= count
        look = draw(
            st.sampled_from(
                [*[{}] * 5, {"classes": ["movable"]}, {"shape": "box"}, {"shape": "sphere"}]
            )
        )
        parts.append(Part(name, count=count, **look))
    counts = {part.name: part.count for part in parts}
    pairs = [(a, b) for a in part_names for b in part_names if a != b or counts[a] > 1]
    chosen = draw(
        st.lists(st.tuples(st.sampled_from(_RELATIONS), st.sampled_from(pairs)), max_size=2)
    )
    return Pattern(parts, [relation(*pair) for relation, pair in chosen])


@given(scenes(), patterns())
@settings(max_examples=scaled_examples(1.0))
def test_the_search_finds_what_trying_everything_finds(scene: SceneGraph, pattern: Pattern) -> None:
    """The same matches, each once modulo the symmetries of the pattern, in a defined order."""
    found = find_structure(scene, pattern)
    named = names_of_all(pattern, found)
    assert len(set(named)) == len(named), "a match twice"
    assert set(named) == by_trying_everything(scene, pattern)
    places = [tuple(scene.frame_names.index(frame) for frame in match.values()) for match in found]
    assert places == sorted(places)


_FLAT_TURN = Pose.from_rpy([3.0, -1.0, 0.5], [0, 0, 0.4])
_ANY_TURN = Pose.from_rpy([1.0, 2.0, -0.5], [0.7, -0.4, 1.1])


@given(scenes(), patterns(), st.sampled_from([_FLAT_TURN, _ANY_TURN]))
@settings(max_examples=scaled_examples(0.5))
def test_a_rigid_motion_of_the_world_changes_nothing(
    scene: SceneGraph, pattern: Pattern, motion: Pose
) -> None:
    """All that hangs off the root moves as one, and up with it: the same matches."""
    moved = scene
    for child in scene.children("world"):
        moved = moved.set_pose(child, motion @ scene.local_pose(child))
    others = scene.frame_names[1:]  # the root itself does not move
    kept = [m for m in find_structure(scene, pattern) if "world" not in m.values()]
    found = find_structure(moved, pattern, up=motion.rotate([0, 0, 1]))
    assert [m for m in found if set(m.values()) <= set(others)] == kept


@given(scenes(), patterns(), st.randoms(use_true_random=False))
@settings(max_examples=scaled_examples(0.5))
def test_the_order_of_insertion_changes_no_match(
    scene: SceneGraph, pattern: Pattern, random: object
) -> None:
    """The same frames told in another order make the same matches, by other names at most."""
    specifications = [scene.specification(name) for name in scene.frame_names]
    random.shuffle(specifications)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    again = SceneGraph.from_frames(specifications)
    expected = set(names_of_all(pattern, find_structure(scene, pattern)))
    assert set(names_of_all(pattern, find_structure(again, pattern))) == expected


# --- symmetries


def test_a_ring_is_one_match() -> None:
    """Symmetries other than exchanges of two parts count: a ring of four in a ring of four."""
    corners = [Pose([math.cos(a), math.sin(a), 0]) for a in np.arange(4) * math.pi / 2]
    scene = SceneGraph()
    for number, corner in enumerate(corners):
        scene = scene.add_frame(f"f{number}", "world", pose=corner, classes=["corner"])
    side = math.sqrt(2)
    ring = Pattern(
        [Part(name, ["corner"]) for name in "abcd"],
        [Distance(a, b, lower=side - 0.1, upper=side + 0.1) for a, b in ("ab", "bc", "cd", "da")],
    )
    assert find_structure(scene, ring) == ({"a": "f0", "b": "f1", "c": "f2", "d": "f3"},)


def test_many_equal_parts_are_quick() -> None:
    """Twelve interchangeable parts have 479,001,600 names: none but one is ever made."""
    scene = SceneGraph()
    for number in range(13):
        scene = scene.add_frame(
            f"f{number}", "world", pose=Pose([0.1 * number, 0, 0]), classes=["bead"]
        )
    beads = Pattern([Part("bead", ["bead"], count=12)], [Distance("bead", "bead", lower=0.05)])
    assert len(find_structure(scene, beads)) == 13


def test_roles_that_a_relation_tells_apart_are_two_matches() -> None:
    """Two equal parts of which one is to be above the other are not interchangeable."""
    scene = SceneGraph().add_frame("low", "world", shapes=[AttachedShape(Box([1, 1, 1]))])
    scene = scene.add_frame(
        "high", "low", pose=Pose([0, 0, 2]), shapes=[AttachedShape(Box([1, 1, 1]))]
    )
    stack = Pattern(
        [Part("top", shape="box"), Part("bottom", shape="box")], [Above("top", "bottom")]
    )
    assert find_structure(scene, stack) == ({"top": "high", "bottom": "low"},)
    pair = Pattern([Part("one", shape="box"), Part("other", shape="box")])
    assert find_structure(scene, pair) == ({"one": "low", "other": "high"},)


# --- relations


def holds(
    relation: Relation, first: AttachedShape | None, second: AttachedShape | None, pose: Pose
) -> bool:
    """Tell whether a relation holds between a first thing at a pose and a second at the origin."""
    scene = SceneGraph()
    for name, shape, place in (("a", first, pose), ("b", second, Pose())):
        scene = scene.add_frame(name, "world", pose=place, shapes=[] if shape is None else [shape])
    return relation.holds(PlacedScene(scene), "a", "b")


CUBE = AttachedShape(Box([1, 1, 1]))


@pytest.mark.parametrize(
    ("relation", "pose", "expected"),
    [
        (Touching("a", "b"), Pose([1.0, 0.9, 0]), True),
        (Touching("a", "b"), Pose([1.01, 0, 0]), False),
        (Touching("a", "b", tolerance=0.02), Pose([1.01, 0, 0]), True),
        (Touching("a", "b"), Pose([0.2, 0, 0]), True),
        (Above("a", "b"), Pose([0.9, 0, 7]), True),
        (Above("a", "b"), Pose([1.1, 0, 7]), False),
        (Above("a", "b"), Pose([0, 0, 0.9]), False),
        (Above("a", "b", tolerance=0.2), Pose([0, 0, 0.9]), True),
        (RestsOn("a", "b"), Pose([0.4, 0, 1]), True),
        (RestsOn("a", "b"), Pose([0.6, 0, 1]), False),
        (RestsOn("a", "b"), Pose([0, 0, 1.1]), False),
        (Distance("a", "b", lower=1, upper=2), Pose([0, 1.5, 0]), True),
        (Distance("a", "b", lower=1, upper=2), Pose([0, 2.5, 0]), False),
        (At("a", "b", Pose([1, 2, 3])), Pose([1, 2, 3.0005]), True),
        (At("a", "b", Pose([1, 2, 3])), Pose([1, 2, 3.01]), False),
        (At("a", "b", Pose()), Pose.from_rpy([0, 0, 0], [0, 0, 0.02]), False),
        (Parallel("a", "b"), Pose.from_rpy([5, 0, 0], [math.pi, 0, 1]), True),
        (Parallel("a", "b"), Pose.from_rpy([5, 0, 0], [0.02, 0, 1]), False),
        (Perpendicular("a", "b"), Pose.from_rpy([5, 0, 0], [math.pi / 2, 0, 1]), True),
        (Perpendicular("a", "b"), Pose.from_rpy([5, 0, 0], [math.pi / 2 - 0.02, 0, 0]), False),
    ],
)
def test_relations_of_places(relation: Relation, pose: Pose, *, expected: bool) -> None:
    """Each relation holds within its tolerance and not beyond, between two cubes of a metre."""
    assert holds(relation, CUBE, CUBE, pose) is expected


def test_relations_of_names_and_shapes() -> None:
    """Children, ancestors, and equal dimensions whichever way a box is turned."""
    scene = SceneGraph().add_frame("a", "world", shapes=[AttachedShape(Box([1, 2, 3]))])
    scene = scene.add_frame("b", "a", shapes=[AttachedShape(Box([3, 1, 2.0005]))])
    scene = scene.add_frame(
        "c", "b", shapes=[AttachedShape(Box([3, 1, 2])), AttachedShape(Sphere(1))]
    )
    placed = PlacedScene(scene)
    assert EqualDimensions("x", "y").holds(placed, "a", "b")
    assert not EqualDimensions("x", "y", tolerance=1e-4).holds(placed, "a", "b")
    assert not EqualDimensions("x", "y").holds(placed, "b", "c")
    assert (
        ChildOf("x", "y").holds(placed, "b", "a"),
        ChildOf("x", "y").holds(placed, "c", "a"),
    ) == (True, False)
    assert AncestorOf("x", "y").holds(placed, "a", "c")
    assert not AncestorOf("x", "y").holds(placed, "a", "a")


def test_frames_of_different_trees_are_not_related_by_place() -> None:
    """Geometric relations do not hold between trees; other relations still may."""
    scene = SceneGraph(root=None).add_root("here").add_root("there")
    two = [Part("a"), Part("b")]
    assert find_structure(scene, Pattern(two, [Touching("a", "b")])) == ()
    assert find_structure(scene, Pattern(two)) == ({"a": "here", "b": "there"},)


def test_a_scene_with_joints_needs_a_configuration_where_places_count() -> None:
    """The match depends on the configuration; without one, only patterns of names are answered."""
    scene = SceneGraph().add_frame("door", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("handle", "door", pose=Pose([1, 0, 0]), classes=["handle"])
    scene = scene.add_frame("latch", "world", pose=Pose([0, 1, 0]), classes=["latch"])
    closed = Pattern([Part("h", ["handle"]), Part("l", ["latch"])], [Touching("h", "l")])
    assert find_structure(scene, closed, q=[0.0]) == ()
    assert find_structure(scene, closed, q=[math.pi / 2]) == ({"h": "handle", "l": "latch"},)
    with pytest.raises(ConfigurationError, match="needs a configuration"):
        find_structure(scene, closed)
    assert (
        len(find_structure(scene, Pattern([Part("h", ["handle"]), Part("d")], [ChildOf("h", "d")])))
        == 1
    )


# --- values


def test_patterns_are_values() -> None:
    """Patterns compare by content, hash, have an evaluable repr, and can be pickled."""
    again = Pattern(TABLE.parts, TABLE.relations)
    assert again == TABLE
    assert hash(again) == hash(TABLE)
    assert again != Pattern(TABLE.parts, TABLE.relations[:-1])
    names = {c.__name__: c for c in (Part, Pattern, Touching, Above, EqualDimensions, Parallel)}
    assert eval(repr(TABLE), names) == TABLE
    loaded = pickle.loads(pickle.dumps(TABLE))
    assert (loaded, loaded.conditions) == (TABLE, TABLE.conditions)


def test_a_part_may_ask_anything() -> None:
    """A custom test gets scene and frame; a custom relation derives from Relation."""
    scene = with_table(SceneGraph(), "oak", Pose())

    def is_last(_scene: SceneGraph, frame: str) -> bool:
        return frame.endswith("3")

    class SameParent(Relation):
        def holds(self, placed: PlacedScene, a: str, b: str) -> bool:
            return placed.scene.parent(a) == placed.scene.parent(b)

    pattern = Pattern(
        [Part("last", test=is_last), Part("sibling")], [SameParent("last", "sibling")]
    )
    assert [match["sibling"] for match in find_structure(scene, pattern)] == [
        "oak_leg0",
        "oak_leg1",
        "oak_leg2",
    ]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Pattern([]), SceneError, "a pattern needs a part"),
        (
            lambda: Pattern([Part("a"), Part("a")]),
            DuplicateNameError,
            "two parts of the pattern are called 'a'",
        ),
        (lambda: Pattern([Part("a", count=2), Part("a_2")]), DuplicateNameError, "called 'a_2'"),
        (
            lambda: Pattern([Part("leg")], [Touching("leg", "lag")]),
            UnknownNameError,
            "'lag'; did you mean 'leg'",
        ),
        (
            lambda: Pattern([Part("a")], [Touching("a", "a")]),
            SceneError,
            "cannot have a relation to itself",
        ),
        (lambda: Part("a", "movable"), SceneError, r"such as \['movable'\]"),
        (
            lambda: Part("a", shape="cube"),
            SceneError,
            "unknown kind of shape 'cube'; expected one of box, sphere",
        ),
        (lambda: Part("a", dimensions=[(0, 1)]), SceneError, "so it needs a kind of shape"),
        (
            lambda: Part("a", shape="box", dimensions=[(0, 1)]),
            SceneError,
            "a box has 3 dimensions, not 1",
        ),
        (
            lambda: Part("a", shape="sphere", dimensions=[(1, 0)]),
            SceneError,
            r"\(smallest, largest\), not \(1, 0\)",
        ),
        (lambda: Part("a", count=0), SceneError, "count must be at least 1, not 0"),
        (
            lambda: Touching("a", "b", tolerance=-1.0),
            SceneError,
            "tolerance must be finite and at least 0, not -1.0",
        ),
        (
            lambda: At("a", "b", Pose(), rotation_tolerance=math.nan),
            SceneError,
            "rotation_tolerance",
        ),
        (lambda: Parallel("a", "b", axis_a=(0, 0, 0)), SceneError, "axis_a must be a direction"),
        (lambda: Distance("a", "b", lower=2, upper=1), SceneError, "not 2 to 1"),
        (
            lambda: find_structure(SceneGraph(), TABLE, up=[0, 0, 0]),
            SceneError,
            "up must be a direction",
        ),
        (
            lambda: TABLE.part_of("leg_5"),
            UnknownNameError,
            "unknown role 'leg_5'; did you mean 'leg_4'",
        ),
    ],
)
def test_invalid_patterns_raise_errors(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    """A pattern that could not mean anything is rejected when it is made."""
    with pytest.raises(error, match=message):
        make()


def test_a_part_may_ask_for_attributes() -> None:
    """A part requires all its attributes with equal values, including lists and mappings."""
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "world").add_frame("c", "world")
    scene = scene.set_attributes("a", {"owner": "ann", "sides": [1, {"x": 2}], "spare": None})
    scene = scene.set_attributes("b", {"owner": "ann"})
    assert find_structure(scene, Pattern([Part("p", attributes={"owner": "ann"})])) == (
        {"p": "a"},
        {"p": "b"},
    )
    pattern = Pattern([Part("p", attributes={"sides": [1, {"x": 2}], "owner": "ann"})])
    assert find_structure(scene, pattern) == ({"p": "a"},)
    assert eval(repr(pattern), {"Pattern": Pattern, "Part": Part}) == pattern
    assert hash(pattern) == hash(
        Pattern([Part("p", attributes={"owner": "ann", "sides": (1, {"x": 2})})])
    )
    assert find_structure(scene, Pattern([Part("p", attributes={"owner": "bob"})])) == ()


def test_the_same_frames_in_several_specifications() -> None:
    """A part may ask for several classes, and frames may carry more than is asked."""
    frames = [
        FrameSpecification("world", None),
        FrameSpecification("a", "world", classes=["movable", "red"]),
        FrameSpecification("b", "world", classes=["movable"]),
    ]
    pattern = Pattern([Part("thing", ["red", "movable"])])
    assert find_structure(SceneGraph.from_frames(frames), pattern) == ({"thing": "a"},)
