"""Displays of scenes: text, HTML and SVG, bounded in size, with escaped names."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st
from lxml import etree
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Continuous,
    Cylinder,
    Free,
    HeightField,
    Mesh,
    Mimic,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
    graph_svg,
    tree_svg,
    tree_text,
)
from tmkit.graph.display.html import tree_html
from tmkit.graph.nodes import uuid_of
from tmkit.spatial import Pose


def kitchen() -> SceneGraph:
    """Return a scene with one of everything that is shown."""
    mesh = AttachedShape(Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3]]))
    scene = SceneGraph()
    scene = scene.add_frame(
        "table", "world", classes=["surface"], shapes=[AttachedShape(Box([0.8, 1.2, 0.05]))]
    )
    cup = [AttachedShape(Cylinder(0.04, 0.1)), AttachedShape(Sphere(0.02))]
    scene = scene.add_frame(
        "cup", "table", pose=Pose([0.1, 0, 0.05]), classes=["movable", "red"], shapes=cup
    )
    scene = scene.add_frame("ball", "table", joint=Free(), shapes=[mesh, mesh])
    scene = scene.add_frame(
        "rail", "world", joint=Prismatic([1, 0, 0], lower=0, upper=0.5, name="slide")
    )
    scene = scene.add_body("rotor").add_frame(
        "wheel", "rail", pose=Pose([0, 1, 0]), joint=Continuous([0, 0, 1]), body="rotor"
    )
    twice = Mimic("slide", 2.0, 0.1)
    return scene.add_frame(
        "door", "rail", joint=Revolute([0, 0, 1], lower=0, upper=1.5, mimic=twice)
    )


def chain_of(count: int) -> SceneGraph:
    """Return a scene as deep as it is large."""
    with SceneGraph().edit() as edit:
        for number in range(count):
            edit.add_frame(
                f"f{number}", f"f{number - 1}" if number else "world", joint=Continuous([0, 0, 1])
            )
    return edit.finish()


def star_of(count: int) -> SceneGraph:
    """Return a scene as wide as it is large."""
    with SceneGraph().edit() as edit:
        for number in range(count):
            edit.add_frame(f"f{number}", "world", joint=Continuous([0, 0, 1]))
    return edit.finish()


def test_the_tree_as_text() -> None:
    """Names, joints with limits, classes, bodies of another name, and shapes, one line a frame."""
    assert (
        tree_text(kitchen()) == "world\n"
        "├─ table (surface): box 0.8×1.2×0.05\n"
        "│  ├─ cup (movable, red): cylinder r 0.04 h 0.1, sphere r 0.02\n"
        "│  └─ ball [free]: mesh (2x)\n"
        "└─ rail [prismatic slide 0 to 0.5 m]\n"
        "   ├─ wheel [continuous] on rotor\n"
        "   └─ door [revolute mimics slide]"
    )


def test_parts_of_the_tree() -> None:
    """From a frame on, to a depth, with places and joint values at a configuration."""
    scene = kitchen()
    assert tree_text(scene, depth=0) == "world\n└─ ... and 6 more frames"
    assert tree_text(scene, max_children=1).splitlines()[-1] == "└─ ... and 3 more frames"
    assert (
        tree_text(scene, max_frames=2)
        == "world\n├─ table (surface): box 0.8×1.2×0.05\n│  └─ ... and 2 more frames\n└─ ... and 3"
        " more frames"
    )
    assert (
        tree_text(scene, frame="rail", q=[0.25, 1.0])
        == "rail [prismatic slide 0 to 0.5 m = 0.25] at (0.25, 0, 0)\n"
        "├─ wheel [continuous = 1] on rotor at (0.25, 1, 0)\n"
        "└─ door [revolute mimics slide = 0.6] at (0.25, 0, 0)"
    )
    assert tree_text(SceneGraph(root=None)) == "(no frames)"
    ground = [
        Plane(),
        PointCloud([[0, 0, 0]], radius=0.1),
        HeightField([[0, 0], [0, 1]], size=[2, 3]),
    ]
    seen = SceneGraph().set_shapes("world", [AttachedShape(shape) for shape in ground])
    assert tree_text(seen) == "world: plane, cloud of 1 point, height field 2×3"
    assert tree_text(SceneGraph(root=None).add_root("a").add_root("b")) == "a\nb"


@pytest.mark.parametrize("make", [chain_of, star_of])
def test_large_scenes_are_shown_in_short(make: Callable[[int], SceneGraph]) -> None:
    """A hundred thousand frames, wide or deep, give a few hundred lines, without recursion."""
    count = 100_000
    scene = make(count)
    text, html, svg = tree_text(scene), tree_html(scene), tree_svg(scene)
    assert len(text.splitlines()) < 300
    assert max(map(len, text.splitlines())) < 200
    left = sum(
        int(number.replace(",", "")) for number in re.findall(r"and ([\d,]+) more frame", text)
    )
    assert text.count("[continuous") + left == count
    assert len(html) < 200_000
    assert "more frames" in html
    assert "... and 99,900 more joints" in html
    assert len(svg) < 200_000
    assert re.search(r"and 99,\d+ more", svg)


def test_many_roots_are_counted_too() -> None:
    """A forest of more trees than are shown says how many are left."""
    with SceneGraph(root=None).edit() as edit:
        for number in range(50):
            edit.add_root(f"r{number}")
    assert tree_text(edit.finish()).splitlines()[-1] == "... and 10 more frames"
    assert "... and 10 more" in tree_svg(edit.finish())


_names = st.one_of(
    st.text(min_size=1, max_size=20),
    st.sampled_from(
        [
            "</details><script>alert(1)</script>",
            '" onclick="x',
            "a&amp;b",
            "\x1b[2J",
            "a\nb",
            "\u202eevil",
            "]]>",
            "x" * 999,
        ]
    ),
)


@given(st.lists(_names, min_size=1, max_size=8, unique=True), st.data())
@settings(max_examples=scaled_examples(0.5))
def test_names_are_shown_and_never_obeyed(names: list[str], data: st.DataObject) -> None:
    """Any names give one line for each frame, and markup that parses without foreign elements."""
    scene = SceneGraph(root=None)
    try:
        scene = scene.add_root(names[0])
        for name in names[1:]:
            parent = data.draw(st.sampled_from(scene.frame_names))
            other = data.draw(_names)
            joint = Revolute([0, 0, 1], name=other)
            if other in scene.joint_names or other in scene.body_names or other in names:
                continue
            scene = scene.add_body(other).add_frame(
                name, parent, joint=joint, body=other, classes=[data.draw(_names)]
            )
    except SceneError:
        return  # a name that no scene takes
    text = tree_text(scene)
    assert len(text.split("\n")) == len(scene)
    assert all(line.isprintable() for line in text.split("\n"))
    page = etree.fromstring(
        tree_html(scene, max_children=3).replace("<details open>", '<details open="">')
    )
    ours = {"div", "b", "i", "details", "summary", "ul", "li", "span", "table", "tr", "th", "td"}
    drawing = {"svg", "rect", "path", "g", "title", "text", "line"}
    assert {etree.QName(element).localname for element in page.iter()} <= ours | drawing
    assert not [
        key for element in page.iter() for key in element.attrib if str(key).startswith("on")
    ]
    assert etree.QName(etree.fromstring(tree_svg(scene))).localname == "svg"


def test_what_a_notebook_shows() -> None:
    """HTML has counts, the tree, joints with limits and units, a drawing, and values at q."""
    html = kitchen()._repr_html_()
    assert html == tree_html(kitchen())
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "SceneGraph : 7 frames, 2 joints, 7 bodies, 1 movable" in text
    assert (
        "0 slide prismatic rail 0 m 0.5 m inf m/s 1 wheel continuous wheel -inf rad inf rad inf"
        " rad/s" in text
    )
    assert "value" not in text
    assert html.count("<svg") == 1
    assert "0.25 m" in tree_html(kitchen(), q=[0.25, 0.0])
    assert SceneGraph(root=None)._repr_html_().count("0 frames") == 1


def test_the_drawing_places_boxes_without_overlap() -> None:
    """No two boxes overlap, every child is right of its parent, and all is inside the picture."""
    scene = kitchen()
    for number in range(12):
        scene = scene.add_frame(
            f"plate{number}",
            "cup" if number % 3 else "table",
            shapes=[AttachedShape(Capsule(0.1, 0.2))],
        )
    root = etree.fromstring(tree_svg(scene))
    space = {"s": "http://www.w3.org/2000/svg"}
    boxes = {}
    for group in root.findall("s:g", space):
        title, rectangle = group.find("s:title", space), group.find("s:rect", space)
        if title is not None and title.text and rectangle is not None:
            boxes[re.split("; ", title.text)[0]] = [
                float(rectangle.get(k, "")) for k in ("x", "y", "width", "height")
            ]
    assert set(boxes) == set(scene.frame_names)
    for a, (x, y, w, h) in boxes.items():
        assert 0 < x < x + w < float(root.get("width", ""))
        assert 0 < y < y + h < float(root.get("height", ""))
        parent = scene.parent(a)
        assert parent is None or boxes[parent][0] + boxes[parent][2] < x
        for b, (u, v, p, q) in boxes.items():
            assert a == b or x + w < u or u + p < x or y + h < v or v + q < y


def test_colours_tell_joints_and_classes() -> None:
    """The legend names what occurs, and only that."""
    drawn = re.findall(r">(\w+)</text>", tree_svg(kitchen()).split("<g transform")[1])
    assert drawn == ["fixed", "revolute", "continuous", "prismatic", "free", "movable", "surface"]
    assert re.findall(r">(\w+)</text>", tree_svg(SceneGraph()).split("<g transform")[1]) == []


def furnished() -> SceneGraph:
    """A table as a group of groups, beside a tree of frames; two groups share a frame."""
    scene = (
        kitchen()
        .set_attribute("cup", "color", ["red", "blue"])
        .set_group("set", frames=["cup"], parents=["table"])
    )
    scene = scene.set_group(
        "laid", groups=["set"], parents=["world"], attributes={"for": 2, "name": "dinner"}
    )
    return scene.set_group("loose", frames=["cup"]).add_stamped_pose(
        "table", Pose([1.5, 0, 0.25]), stamp=3.0
    )


def test_the_graph_has_frames_and_groups_with_what_they_hold() -> None:
    """Each node is drawn once, with its ID, attributes, translation, history and dashed edges."""
    scene = furnished()
    root = etree.fromstring(graph_svg(scene))
    boxes = {}
    for group in root.findall("{*}g"):
        title = group.findtext("{*}title")
        if title is not None:
            boxes[title.split("; ")[0]] = [text.text for text in group.findall("{*}text")]
    assert set(boxes) == {*scene.frame_names, "group set", "group laid", "group loose"}
    assert boxes["cup"][:4] == [
        "cup",
        f"[{str(uuid_of(scene, 'cup'))[:8]}]",
        "(color = red)",
        "(color = blue)",
    ]
    assert boxes["table"][-2:] == ["T = (1.5, 0, 0.25)", "Updates: 1"]
    assert boxes["group laid"] == [
        "laid",
        f"[{str(uuid_of(scene, ('group', 'laid')))[:8]}]",
        "(for = 2)",
        "(name = dinner)",
    ]
    lines = [
        path.get("stroke-dasharray") is not None and path.get("stroke") == "#6b7280"
        for path in root.findall("{*}path")
    ]
    # Roots: world and loose. The cup hangs on the set, the set on what is laid; dashed: table-set
    # and loose-cup.
    assert len(lines) == len(boxes) - 2 + 2
    assert sum(lines) == 2
    small = etree.fromstring(graph_svg(scene, max_nodes=3))
    assert (
        sum(
            title.text.startswith(("group", *scene.frame_names))
            for title in small.findall("{*}g/{*}title")
        )
        == 3
    )
    below = etree.fromstring(graph_svg(scene, start=("group", "laid")))
    assert [title.text.split("; ")[0] for title in below.findall("{*}g/{*}title")][:2] == [
        "group laid",
        "group set",
    ]
    with pytest.raises(UnknownNameError, match="unknown group 'lad'; did you mean 'laid'"):
        graph_svg(scene, start=("group", "lad"))
    with pytest.raises(SceneError, match="max_nodes must be at least 1, not 0"):
        graph_svg(scene, max_nodes=0)


def test_shows_of_the_same_scene_are_the_same() -> None:
    """No clock, no address, no order of a hash: equal scenes give equal bytes."""
    for show in (tree_text, tree_html, tree_svg, graph_svg):
        assert show(kitchen()) == show(kitchen())


def test_invalid_arguments_of_displays_raise_errors() -> None:
    """Unknown frames, limits that show nothing, and configurations of the wrong length."""
    scene = kitchen()
    with pytest.raises(UnknownNameError, match="unknown frame 'tabel'; did you mean 'table'"):
        tree_text(scene, frame="tabel")
    with pytest.raises(SceneError, match="depth must be a number of levels, not -1"):
        tree_text(scene, depth=-1)
    with pytest.raises(SceneError, match="max_children must be at least 1, not 0"):
        tree_svg(scene, max_children=0)
    with pytest.raises(ConfigurationError):
        tree_text(scene, q=[1.0])
