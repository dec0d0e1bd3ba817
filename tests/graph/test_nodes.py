"""Frames and groups as nodes: walks, paths, attribute queries, ownership, UUIDs, remotes."""

from __future__ import annotations

import pickle
import re
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from pyrsistent import thaw

from tmkit.errors import PickledStateError, SceneError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    SceneArrays,
    SceneGraph,
    Stamped,
    collapse_fixed_frames,
    diff,
)
from tmkit.graph.nodes import (
    SceneNode,
    nodes_with_attributes,
    paths_to,
    remote_roots,
    remove_with_groups,
    uuid_of,
    walk_nodes,
)

Above = dict[SceneNode, list[SceneNode]]


def kitchen() -> SceneGraph:
    """Return a table with a setting below it, of a plate and of the drinks."""
    scene = (
        SceneGraph()
        .add_frame("table", "world")
        .add_frame("plate", "table")
        .add_frame("cup", "table")
    )
    return scene.set_group("drinks", frames=["cup"]).set_group(
        "setting",
        frames=["plate"],
        groups=["drinks"],
        parents=["table"],
        attributes={"name": "place 1"},
    )


@st.composite
def scenes(draw: st.DrawFn) -> SceneGraph:
    """Return a forest of frames with groups of any members and parents."""
    edit = SceneGraph().edit()
    frames = ["world"]
    for name in draw(st.lists(st.sampled_from("abcdef"), unique=True)):
        if draw(st.booleans()):
            edit.add_frame(name, draw(st.sampled_from(frames)))
        else:
            edit.add_root(name)
        frames.append(name)
    some = st.lists(st.sampled_from(frames), unique=True, max_size=2)
    groups: list[str] = []
    for name in draw(st.lists(st.sampled_from(["g", "h", "i", "world"]), unique=True)):
        inside = draw(st.lists(st.sampled_from(groups), unique=True, max_size=2)) if groups else []
        edit.set_group(name, frames=draw(some), groups=inside, parents=draw(some))
        groups.append(name)
    return edit.finish()


def what_is_above(scene: SceneGraph) -> Above:
    """Return the direct parents of each node, by the definition."""
    found: Above = {("frame", name): [] for name in scene.frame_names}
    for name in scene.group_names:
        found["group", name] = [("frame", parent) for parent in scene.group(name).parents]
    for name in scene.frame_names:
        if (parent := scene.parent(name)) is not None:
            found["frame", name].append(("frame", parent))
    for name in scene.group_names:
        for frame in scene.group(name).frames:
            found["frame", frame].append(("group", name))
        for group in scene.group(name).groups:
            found["group", group].append(("group", name))
    return found


def all_paths(
    scene: SceneGraph, node: SceneNode, above: Above, below: tuple[SceneNode, ...] = ()
) -> set[Any]:
    """Return all paths to a node by recursion."""
    if node in below:
        return set()
    path = (node, *below)
    is_root = scene.parent(node[1]) is None if node[0] == "frame" else not above[node]
    return {path if is_root else ()}.union(
        *(all_paths(scene, parent, above, path) for parent in above[node])
    ) - {()}


@given(scenes())
def test_paths_and_walks_agree_with_their_definitions(scene: SceneGraph) -> None:
    """Paths equal those of a recursive search; a walk visits the reachable nodes by level."""
    above = what_is_above(scene)
    for kind, name in above:
        found = paths_to(scene, (kind, name))
        assert len(found) == len(set(found))
        assert set(found) == all_paths(scene, (kind, name), above)
        walked = list(walk_nodes(scene, (kind, name)))
        level: list[SceneNode] = [(kind, name)]
        reached = {(kind, name): 0}
        for depth in range(1, len(above) + 1):
            level = [
                node for node in above if node not in reached and set(above[node]) & set(level)
            ]
            reached |= dict.fromkeys(level, depth)
        assert len(walked) == len(set(walked))
        assert set(walked) == set(reached)
        assert all(reached[a] <= reached[b] for a, b in pairwise(walked))
        assert set(walk_nodes(scene, (kind, name), depth=1)) == {
            node for node, d in reached.items() if d < 2
        }
        assert next(iter(walk_nodes(scene, (kind, name), until=lambda _: True))) == (kind, name)


@given(scenes(), st.data())
def test_groups_go_with_the_last_node_that_they_were_below(
    scene: SceneGraph, data: st.DataObject
) -> None:
    """Of all groups, those go that were below something, and of which all parents go."""
    kind, name = data.draw(st.sampled_from(sorted(what_is_above(scene))))
    above = what_is_above(scene)
    gone = {(kind, name)}
    if kind == "frame":
        gone |= {("frame", below) for below in scene.subtree(name)}
    while (
        more := {n for n in above if n[0] == "group" and above[n] and set(above[n]) <= gone} - gone
    ):
        gone |= more
    left = remove_with_groups(scene, (kind, name))
    assert set(what_is_above(left)) == set(above) - gone
    assert left._defects() == ""
    plain = scene.remove_frame(name, subtree=True) if kind == "frame" else scene.remove_group(name)
    assert set(scene.group_names) - set(plain.group_names) == ({name} if kind == "group" else set())


def test_paths_of_the_kitchen() -> None:
    """The cup is found through the table, and through the two groups that are below it."""
    scene = kitchen()
    assert paths_to(scene, "cup") == (
        (("frame", "world"), ("frame", "table"), ("frame", "cup")),
        (
            ("frame", "world"),
            ("frame", "table"),
            ("group", "setting"),
            ("group", "drinks"),
            ("frame", "cup"),
        ),
    )
    assert paths_to(scene.set_group("setting", parents=[]), ("group", "setting")) == (
        (("group", "setting"),),
    )
    assert scene.groups_of("cup") == ("drinks",)
    assert scene.groups_of("cup", nested=True) == ("drinks", "setting")
    assert remove_with_groups(scene, ("group", "setting")).group_names == ()
    assert scene.remove_group("setting").group_names == ("drinks",)


def test_too_many_paths_and_wrong_nodes_are_rejected() -> None:
    """2^20 paths by shared members raise an error, and so do unknown names and kinds."""
    edit = SceneGraph().edit()
    edit.set_group("0 a", frames=["world"])
    for level in range(1, 21):
        inside = [f"{level - 1} a"] if level == 1 else [f"{level - 1} a", f"{level - 1} b"]
        edit.set_group(f"{level} a", groups=inside)
        edit.set_group(f"{level} b", groups=inside)
    scene = edit.finish()
    with pytest.raises(
        SceneError,
        match="more than 1000 paths, or 42000 steps, lead to frame 'world'; increase the limit",
    ):
        paths_to(scene, "world")
    deep = SceneGraph().edit()
    for number in range(3000):
        deep.add_frame(f"f{number}", f"f{number - 1}" if number else "world")
    assert len(paths_to(deep.finish(), "f2999")[0]) == 3001  # nothing recurses
    for call in (paths_to, walk_nodes, uuid_of, remove_with_groups):
        with pytest.raises(UnknownNameError, match="unknown frame 'cap'; did you mean 'cup'"):
            call(kitchen(), "cap")
        with pytest.raises(UnknownNameError, match="unknown group 'drink'; did you mean 'drinks'"):
            call(kitchen(), ("group", "drink"))
        with pytest.raises(
            SceneError, match="the kind of a node must be 'frame' or 'group', not 'body'"
        ):
            call(kitchen(), ("body", "cup"))
    with pytest.raises(SceneError, match="number of levels, not -1"):
        walk_nodes(kitchen(), "cup", depth=-1)
    with pytest.raises(UnknownNameError, match="unknown frame 'cap'"):
        kitchen().set_group("x", parents=["cap"])


# --- attributes


@given(
    st.dictionaries(
        st.sampled_from(["name", "names", "kind", "n*"]),
        st.sampled_from(["cup", "cups", "c?p", 1, True]),
    ),
    st.sampled_from(["*", "name", "name*", "n?me", "[kn]*", "n[*]", "k*d", "zz"]),
    st.sampled_from(["*", "cup", "c?p", "c[u]p*", "x*", "c[?]p"]),
)
def test_wildcards_are_those_of_file_names(values: dict[str, Any], key: str, value: str) -> None:
    """Patterns match keys and texts as fnmatch does, for frames and groups, but no numbers."""
    scene = SceneGraph().set_attributes("world", values).set_group("g", attributes=values)
    meets = any(
        fnmatchcase(k, key) and isinstance(v, str) and fnmatchcase(v, value)
        for k, v in values.items()
    )
    assert nodes_with_attributes(scene, {key: value}) == (
        (("frame", "world"), ("group", "g")) if meets else ()
    )
    has_key = any(fnmatchcase(k, key) for k in values)
    assert bool(nodes_with_attributes(scene, {key: ...})) == has_key


def test_queries_of_several_patterns_and_of_keys_with_several_values() -> None:
    """All patterns must be met; a list is a key with several values, of which one is enough."""
    scene = kitchen().set_attributes("plate", {"affordance": ["pushable", "stackable"], "mass": 1})
    scene = scene.set_group_attribute("drinks", "affordance", "pourable").set_attribute(
        "cup", "mass", 1.0
    )
    assert nodes_with_attributes(scene, {"afford*": "*able"}) == (
        ("frame", "plate"),
        ("group", "drinks"),
    )
    assert nodes_with_attributes(scene, {"affordance": "push*", "mass": 1}) == (("frame", "plate"),)
    assert nodes_with_attributes(scene, {"affordance": ["pushable", "stackable"]}) == (
        ("frame", "plate"),
    )
    assert nodes_with_attributes(scene, {"affordance": ["pushable"]}) == ()
    assert nodes_with_attributes(scene, {"mass": True}) == ()
    heavy = nodes_with_attributes(
        scene, {"mass": lambda mass: isinstance(mass, float) and mass > 0.5}
    )
    assert heavy == (("frame", "cup"),)
    assert nodes_with_attributes(scene, {"name": re.compile(r"place \d").fullmatch}) == (
        ("group", "setting"),
    )
    assert len(nodes_with_attributes(scene, {})) == 6


def test_regular_expressions_end_whoever_wrote_them() -> None:
    """Expressions of a linear-time engine are accepted, those of Python are rejected."""
    re2: Any = pytest.importorskip("re2")
    scene = kitchen().set_attributes(
        "plate", {"affordance": ["pushable", "stackable"], "name": "a" * 5000 + "!"}
    )
    found = nodes_with_attributes(
        scene, {re2.compile("afford[a-z]+"): re2.compile("(push|pull)able")}
    )
    assert found == (("frame", "plate"),)
    assert nodes_with_attributes(scene, {"name": re2.compile("(a|aa|a+)+$")}) == ()
    for patterns in ({"name": re.compile("(a+)+$")}, {re.compile("(a+)+$"): ...}):
        with pytest.raises(
            SceneError, match=r"may take exponential time; compile it by re2\.compile of google-re2"
        ):
            nodes_with_attributes(scene, patterns)
    with pytest.raises(SceneError, match="attribute 'value' must be text, a finite number"):
        nodes_with_attributes(scene, {"mass": {1, 2}})
    long = scene.set_attribute("cup", "x", "a" * 5000)  # what a backtracking search does not finish
    assert nodes_with_attributes(long, {"x": "*a" * 30 + "b"}) == ()


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=3),
        st.sampled_from([1, "1", "@1", "a @1.5", [2, "@3"], None, 1e30]),
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.data(),
)
def test_stamps_of_attributes_are_part_of_the_version(
    values: dict[str, Any], stamp: float, data: st.DataObject
) -> None:
    """A stamp is returned bit by bit; a value set again without a stamp has none."""
    plain = SceneGraph().set_attributes("world", values).set_group("g", attributes=values)
    scene = plain
    if values:
        key = data.draw(st.sampled_from(sorted(values)))
        scene = scene.set_attribute("world", key, Stamped(values[key], stamp))
        scene = scene.set_group_attribute("g", key, Stamped(values[key], stamp))
        assert scene != plain
        assert scene.digest() != plain.digest()
        assert scene.attribute_stamps("world") == {key: stamp}
        assert scene.set_attribute("world", key, values[key]).attribute_stamps("world") == {}
    assert scene.attributes("world") == scene.group("g").attributes == values
    assert scene.attribute_stamps("world") == scene.group("g").attribute_stamps
    assert pickle.loads(pickle.dumps(scene)) == scene
    assert SceneArrays(scene).freeze() == scene
    assert plain.apply(diff(plain, scene)) == scene
    assert collapse_fixed_frames(scene) == scene


def test_stamps_must_be_finite() -> None:
    """Neither attributes nor shapes take a stamp that is no time."""
    for stamp in (float("nan"), float("inf"), "now", None):
        for edit in (
            SceneGraph().set_attribute,
            SceneGraph().set_group("world").set_group_attribute,
        ):
            with pytest.raises(
                SceneError,
                match=rf"attribute 'x' must be .*, not Stamped\(value=1, stamp={stamp!r}\)",
            ):
                edit("world", "x", Stamped(1, stamp))
    with pytest.raises(SceneError, match="attribute 'x' must be"):
        # a value in a list has no stamp of its own
        SceneGraph().set_attribute("world", "x", [Stamped(1, 2.0)])
    with pytest.raises(SceneError, match="the stamp of a shape is finite seconds, not inf"):
        AttachedShape(Box([1, 1, 1])).replace(stamp=float("inf"))
    with pytest.raises(UnknownNameError, match="unknown group 'h'"):
        SceneGraph().set_group("g").set_group_attribute("h", "x", 1)


def test_damaged_stamps_are_rejected() -> None:
    """A pickle whose attributes have another stamp than tmkit writes is rejected."""
    format_, shapes, frames, allowed, groups, *rest = (
        SceneGraph().set_group("g", attributes={"x": 1}).__getstate__()
    )
    for text in ("1@", "1@x", "1@01", "1@1", "1@-0", "1@1e999", "@1", '"a"@"b"', "1@@1", "1@true"):
        state = (format_, shapes, frames, allowed, [(*groups[0][:4], [("x", text)])], *rest)
        with pytest.raises(
            (SceneError, PickledStateError),
            match=r"is not kept as JSON|is damaged|must be text, a finite number",
        ):
            SceneGraph.__new__(SceneGraph).__setstate__(state)


def test_stamps_of_shapes_are_part_of_the_version() -> None:
    """The stamp of a shape stays with it, and two shapes that differ in it alone are two."""
    shape = AttachedShape(Box([1, 1, 1])).replace(stamp=2.5)
    scene = SceneGraph().set_shapes("world", [shape])
    other = SceneGraph().set_shapes("world", [Box([1, 1, 1])])
    assert (shape.stamp, shape.replace(pose=shape.pose).stamp, other.shapes("world")[0].stamp) == (
        2.5,
        2.5,
        None,
    )
    assert scene != other
    assert scene.digest() != other.digest()
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert pickle.loads(pickle.dumps(scene)) == scene
    assert SceneArrays(scene).freeze() == scene
    assert other.apply(diff(other, scene)) == scene


def test_scenes_without_new_primitives_have_the_digest_that_they_had() -> None:
    """The digest that the scene had before, as files and caches hold it."""
    parts = [
        AttachedShape(Box([1, 2, 3]), level="hull", friction=0.5, color=[1, 0, 0, 1]),
        Box([1, 1, 1]),
    ]
    scene = (
        SceneGraph()
        .add_frame("table", "world", shapes=parts)
        .add_frame("cup", "table", classes=["movable", "x"])
    )
    scene = scene.set_attributes("cup", {"a": 1, "b": ["x", {"y": None}]}).set_group(
        "g", frames=["cup"]
    )
    scene = (
        scene.set_group("h", frames=["table", "cup"], groups=["g"]).set_group("e").add_body("bare")
    )
    assert (
        scene.allow_collision("cup", "table").digest()
        == "32d6fa516fe7e95f49433efe8821d55ad91ec932321b6964721f0100a4432ff8"
    )


# --- whole scenes


def test_merged_mounted_extracted_and_folded_groups_keep_their_places() -> None:
    """Parents are united, prefixed, and kept as far as their frames are; attributes must agree."""
    scene = kitchen()
    other = (
        SceneGraph()
        .add_frame("lamp", "world")
        .set_group("setting", frames=["lamp"], parents=["lamp"])
    )
    merged = scene.merge(other)
    assert merged.group("setting").parents == ("table", "lamp")
    assert merged.group("setting").attributes == {"name": "place 1"}
    assert other.merge(scene).group("setting").attributes == {"name": "place 1"}
    with pytest.raises(
        SceneError, match="group 'setting' has other attributes in the scene to merge"
    ):
        scene.merge(other.set_group_attribute("setting", "name", "place 2"))
    mounted = SceneGraph().mount(scene, "world", prefix="left/").group("left/setting")
    assert (mounted.parents, mounted.frames, mounted.groups) == (
        ("left/table",),
        ("left/plate",),
        ("left/drinks",),
    )
    assert scene.extract("table").group("setting").parents == ("table",)
    assert scene.extract("plate").group("setting").parents == ()
    stamped = scene.set_group_attribute("drinks", "x", Stamped(1, 3)).set_attribute(
        "cup", "y", Stamped(2, 4)
    )
    folded = collapse_fixed_frames(stamped.add_frame("rim", "cup"))
    assert folded == stamped  # the table stays, since a group is below it
    assert thaw(folded.group("drinks").attribute_stamps) == {"x": 3}


@given(scenes(), scenes(), st.data())
def test_differences_of_groups_apply(a: SceneGraph, b: SceneGraph, data: st.DataObject) -> None:
    """Of versions made from one another, one that lost frames or whose groups changed."""
    name = data.draw(st.sampled_from(a.frame_names))
    changed = remove_with_groups(a, name)
    for group in b.group_names:
        parents = [frame for frame in b.group(group).parents if frame in changed]
        changed = changed.set_group(group, parents=parents, attributes={"n": len(parents)})
    difference = diff(a, changed)
    assert a.apply(difference) == changed
    assert changed.apply(difference.reversed()).group_names == a.group_names


# --- names


def test_uuids_are_derived_from_names() -> None:
    """They are version 5, known in advance, and the same in all scenes."""
    scene = kitchen().set_group("cup")
    assert uuid_of(scene, "cup") == UUID("007c08d0-6f23-555e-9c36-38c7cf077059")
    assert uuid_of(scene, "cup").version == 5
    assert uuid_of(scene, "cup") != uuid_of(scene, ("group", "cup"))
    assert uuid_of(scene.extract("cup"), "cup") == uuid_of(scene, "cup")


def test_remote_roots_are_named_with_their_addresses() -> None:
    """Roots with an attribute ``remote``; below a root it means nothing, and an address is text."""
    scene = (
        kitchen().add_root("robot 2").add_root("cellar").set_attribute("cup", "remote", "nowhere")
    )
    assert remote_roots(scene) == {}
    scene = scene.set_attribute("robot 2", "remote", "tcp://robot2:7000")
    assert remote_roots(scene) == {"robot 2": "tcp://robot2:7000"}
    with pytest.raises(
        SceneError, match="'remote' of root 'cellar' must be an address as text, not pvector"
    ):
        remote_roots(scene.set_attribute("cellar", "remote", [1]))
