"""Files written for the original TMKit are read as the original reads them, quirk by quirk."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from formats.conftest import Loader
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import FileFormatError
from tmkit.formats import load_scene
from tmkit.formats.json.scene import scene_dump
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

BOX = "shape box; dimension [0.1, 0.2, 0.3];"


def translation(scene: SceneGraph, name: str) -> list[float]:
    """Return where a frame stands in its parent."""
    return [float(value) for value in scene.local_pose(name).translation]


# --- precedence


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("isa one; isa two;", 1),
        ("isa two; isa one;", 2),
        ("isa one; translation [9, 0, 0];", 9),
        ("translation [9, 0, 0]; isa one;", 9),
        ("translation [8, 0, 0]; isa one; translation [9, 0, 0];", 9),
        ("isa empty; isa two; isa one;", 2),
        ("isa both;", 2),
        ("isa three; isa both;", 3),
    ],
)
def test_in_a_frame_its_own_attribute_then_the_first_class_wins(
    body: str, expected: float, load: Loader
) -> None:
    """Own statements have priority over classes, the last one first; then classes in order.

    A class inherits from *its* last class the attributes that it does not set itself.
    """
    classes = (
        "class empty { } class one { translation [1, 0, 0]; } class two { translation [2, 0, 0]; }"
        "class three { isa one; translation [3, 0, 0]; isa two; } class both { isa one; isa two; }"
    )
    assert translation(load(f"{classes} frame a {{ {body} }}"), "a") == [expected, 0, 0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("isa block; isa red;", (1, 0, 0)),
        ("isa red; isa block;", (0, 1, 0)),
        ("color [0, 0, 1]; isa block; isa red;", (0, 0, 1)),
        ("isa block; isa empty;", (0, 1, 0)),
        ("isa grandchild;", (1, 0, 0)),
        ("isa grandchild; isa block;", (0, 1, 0)),
    ],
)
def test_in_a_geometry_its_own_attribute_then_the_last_class_wins(
    body: str, expected: tuple[float, ...], load: Loader
) -> None:
    """Tags and attributes also come from classes of classes; absent attributes from others."""
    classes = (
        f"class empty {{}} class block {{ {BOX} color [0, 1, 0]; alpha 0.5; }} class red {{ color"
        " [1, 0, 0]; }class child { isa block; isa red; } class grandchild { isa child; }"
    )
    (shape,) = load(f"{classes} frame a {{ geometry {{ {body} }} }}").shapes("a")
    assert shape.color is not None
    assert shape.color[:3] == expected
    assert shape.color[3] == 0.5


def test_every_class_and_every_class_behind_it_is_a_tag(load: Loader) -> None:
    """Tags are transitive over several levels and several parents, each once."""
    text = (
        "class a {} class b { isa a; } class c { isa a; } class d { isa b; isa c; } "
        f"class e {{ {BOX} isa d; }} frame f {{ geometry {{ isa e; }} }}"
    )
    assert set(load(text).classes("f")) == set("abcde")


def test_a_class_knows_only_what_stands_before_it(load: Loader) -> None:
    """A class must be defined before its use, and only once."""
    for text in (
        "class b { isa a; } class a {}",
        "frame f { isa a; } class a {}",
        f"frame f {{ geometry {{ {BOX} isa a; }} }} class a {{}}",
    ):
        with pytest.raises(
            FileFormatError, match=r"main.robray:1:\d+: unknown class 'a'; define it first"
        ):
            load(text)
    with pytest.raises(FileFormatError, match="the class 'a' is already defined"):
        load("class a {} class a {}")


names = st.sampled_from("pqrs")
statements = st.lists(
    st.one_of(
        st.tuples(st.just("isa"), names),
        st.tuples(st.just("translation"), st.integers(1, 9)),
        st.tuples(st.just("rpy"), st.integers(1, 9)),
        st.tuples(st.just("quaternion"), st.integers(1, 9)),
        st.tuples(st.just("alpha"), st.integers(1, 9)),
    ),
    max_size=5,
)
VALUES = {
    "translation": "[{0}, 0, 0]",
    "rpy": "[0, 0, {0}]",
    "quaternion": "[0, 0, 1, {0}]",
    "alpha": "0.{0}",
}


def format_statements(body: list[tuple[str, object]], allowed: set[str]) -> str:
    """Return statements as text."""
    statements = [(name, value) for name, value in body if name in allowed]
    return " ".join(
        f"{name} {VALUES.get(name, '{0}').format(value)};" for name, value in statements
    )


@settings(max_examples=scaled_examples(0.6), deadline=None)
@given(st.lists(statements, min_size=4, max_size=4), statements, statements)
def test_inheritance_is_a_search_in_lists(
    tmp_path_factory: pytest.TempPathFactory,
    classes: list[list[tuple[str, object]]],
    frame: list[tuple[str, object]],
    geometry: list[tuple[str, object]],
) -> None:
    """Pose, transparency and tags equal those of a model of lists, whose first match counts.

    A list contains pairs of name and value. A class or geometry prepends each statement, then
    appends the lists of its classes, the last class first. A frame appends the lists of its classes
    in order.
    """
    defined: dict[str, list[tuple[str, object]]] = {}
    text = ""

    def flat(
        body: list[tuple[str, object]], backwards: bool, allowed: set[str]
    ) -> list[tuple[str, object]]:
        own = [pair for pair in reversed(body) if pair[0] in allowed]
        parents = [defined[str(value)] for name, value in body if name == "isa"]
        return own + [
            pair for parent in (reversed(parents) if backwards else parents) for pair in parent
        ]

    def known(body: list[tuple[str, object]]) -> list[tuple[str, object]]:
        return [pair for pair in body if pair[0] != "isa" or pair[1] in defined]

    def first(pairs: list[tuple[str, object]], name: str) -> object:
        return next((value for key, value in pairs if key == name), None)

    every = {"isa", *VALUES}
    for name, body in zip("pqrs", classes, strict=True):
        text += f"class {name} {{ {format_statements(known(body), every)} }}\n"
        defined[name] = flat(known(body), True, every)
    of_frame, of_geometry = every - {"alpha"}, {"isa", "alpha"}
    text += f"frame a {{ {format_statements(known(frame), of_frame)} "
    text += f"geometry {{ {BOX} {format_statements(known(geometry), of_geometry)} }} }}"
    path = tmp_path_factory.mktemp("model") / "main.robray"
    path.write_text(text)
    scene = load_scene(path)
    pairs = flat(known(frame), False, of_frame)
    x, yaw, w = (
        first(pairs, "translation") or 0,
        first(pairs, "rpy") or 0,
        first(pairs, "quaternion"),
    )
    half = math.atan2(1, float(str(w))) if w is not None else float(str(yaw)) / 2
    expected = Pose((float(str(x)), 0, 0), (0, 0, math.sin(half), math.cos(half)))
    assert scene.local_pose("a").is_close(expected)
    parts = flat(known(geometry), True, of_geometry)
    (shape,) = scene.shapes("a")
    alpha = first(parts, "alpha")
    assert (shape.color[3] if shape.color else None) == (
        None if alpha is None else pytest.approx(float(f"0.{alpha}"))
    )
    assert {str(value) for name, value in parts if name == "isa"} <= set(scene.classes("a"))


# --- what is left alone


def test_what_does_not_concern_a_fixed_frame_says_nothing(load: Loader) -> None:
    """Axis, offset and variable of a fixed frame are no error and no joint."""
    scene = load("frame a { axis [0, 0, 1]; offset 1; variable q; translation [1, 0, 0]; }")
    assert scene.joint_names == ()
    assert scene.local_pose("a") == Pose((1, 0, 0))


def test_what_does_not_concern_a_shape_says_nothing(load: Loader) -> None:
    """A box with a radius is a box; a shape beats a mesh."""
    (shape,) = load(
        f'frame a {{ geometry {{ {BOX} radius 3; height 2; mesh "nowhere.obj"; }} }}'
    ).shapes("a")
    assert shape.shape.kind == "box"


def test_commas_too_many_are_no_matter(load: Loader) -> None:
    """Empty places in an array are skipped."""
    assert translation(load("frame a { translation [1,, 2, 3,]; }"), "a") == [1, 2, 3]
    with pytest.raises(FileFormatError, match="expected an array of 3 numbers, received 2"):
        load("frame a { translation [,1, 2,]; }")


# --- parents and names


def test_the_root_is_called_world_and_may_be_named_by_an_empty_text(load: Loader) -> None:
    """Frames on the root of the original, which has an empty name, get the parent ``world``."""
    dump = scene_dump(load('frame a { } frame b { parent ""; } frame c { parent world; }'))[
        "frames"
    ]
    assert [(frame["name"], frame["parent"]) for frame in dump] == [
        ("world", None),
        ("a", "world"),
        ("b", "world"),
        ("c", "world"),
    ]


def test_a_nested_frame_names_no_parent_but_its_class_may(load: Loader) -> None:
    """``parent`` in a nested frame is an error; a parent from a class has priority over nesting."""
    with pytest.raises(
        FileFormatError, match=r"main.robray:1:28: a frame inside the frame 'a' is its child"
    ):
        load("frame a { frame b { parent a; } }")
    scene = load("class on_c { parent c; } frame c {} frame a { frame b { isa on_c; } frame d {} }")
    assert (scene.parent("b"), scene.parent("d")) == ("c", "a")


def test_names_in_quotes_are_names(load: Loader) -> None:
    """A quoted name equals the unquoted name, and may contain any character and several dashes."""
    scene = load(
        'frame "a" {} frame "link 1-visual" { parent a; } frame left-arm--2 { parent "link'
        ' 1-visual"; }class "k" {} frame b { parent "left-arm--2"; isa k; } allow_collision "a" b;'
    )
    assert scene.parent("left-arm--2") == "link 1-visual"
    assert scene.classes("b") == ("k",)
    assert scene.is_allowed("a", "b")


def test_a_parent_may_stand_later_or_in_another_file(tmp_path: Path) -> None:
    """Frames are tied together when all files of the load have been read, in either order."""
    (tmp_path / "grasp.robray").write_text("frame grasp { parent hand; translation [0, 0, .075]; }")
    (tmp_path / "arm.robray").write_text("frame hand { parent arm; } frame arm {}")
    for order in (("grasp", "arm"), ("arm", "grasp")):
        scene = load_scene(*(tmp_path / f"{name}.robray" for name in order))
        assert (scene.parent("grasp"), scene.parent("hand")) == ("hand", "arm")


# --- joints


def test_joints_without_limits_are_unlimited(load: Loader) -> None:
    """The language of the original has no limits: such joints keep their type and have none."""
    scene = load(
        "frame a { type revolute; axis [0, 0, 1]; } frame b { type prismatic; axis [1, 0, 0];"
        " variable slide; }"
    )
    a, b = scene_dump(scene)["frames"][1:]
    assert (a["type"], a["joint"]) == (
        "revolute",
        {"axis": [0, 0, 1], "lower": None, "upper": None, "name": "a"},
    )
    assert (b["type"], b["joint"]["name"]) == ("prismatic", "slide")


def test_the_dump_gives_the_pose_at_joint_value_zero(load: Loader) -> None:
    """An offset is part of the pose, which is given at joint value 0."""
    scene = load(
        "frame a { translation [1, 2, 3]; type revolute; axis [0, 0, 1]; offset pi/2; variable q; }"
    )
    frame = scene_dump(scene)["frames"][1]
    assert frame["translation"] == [1, 2, 3]
    np.testing.assert_allclose(
        frame["quat_xyzw"], [0, 0, math.sqrt(0.5), math.sqrt(0.5)], atol=1e-15
    )
    assert frame["joint"]["name"] == "q"


def test_frames_of_one_variable_move_together(load: Loader) -> None:
    """The first frame of a variable has the joint; others mimic it by the ratio of their axes."""
    scene = load(
        "frame left { type prismatic; axis [0, 1, 0]; variable grip; }"
        "frame right { type prismatic; axis [0, -1, 0]; variable grip; offset 0.5; }"
        "frame fast { type prismatic; axis [0, 0, 2]; variable grip; }"
        "frame grip { type prismatic; axis [1, 0, 0]; }"
    )
    assert scene.joint_names == ("grip",)
    moved = {
        name: scene.pose(name, relative_to="world", q=[0.1]).translation
        for name in ("left", "right", "fast", "grip")
    }
    np.testing.assert_allclose(moved["left"], [0, 0.1, 0], atol=1e-15)
    np.testing.assert_allclose(moved["right"], [0, -0.6, 0], atol=1e-15)
    np.testing.assert_allclose(moved["fast"], [0, 0, 0.2], atol=1e-15)
    np.testing.assert_allclose(moved["grip"], [0.1, 0, 0], atol=1e-15)


def test_a_quaternion_of_any_length_is_a_direction(load: Loader) -> None:
    """A quaternion is normalised, also if the original uses it unchanged."""
    assert (
        load("frame a { quaternion [0, 0, 3, 4]; }")
        .local_pose("a")
        .is_close(Pose((0, 0, 0), (0, 0, 0.6, 0.8)))
    )


# --- constants


def test_a_constant_holds_from_where_it_stands(load: Loader) -> None:
    """A definition is evaluated at once; a later one of the same name applies from its line on."""
    text = (
        "def x 1; def y 2*x; frame a { translation [x, y, 0]; } def x x + 4; frame b { translation"
        " [x, y, 0]; }"
    )
    scene = load(text)
    assert translation(scene, "a") == [1, 2, 0]
    assert translation(scene, "b") == [5, 2, 0]


def test_a_file_included_again_defines_again(load: Loader) -> None:
    """A repeated include evaluates the definitions again, but not its classes and frames."""
    scene = load(
        'include "c.robray" frame a { translation [x, 0, 0]; } def x 9; frame b { translation [x,'
        ' 0, 0]; }include "c.robray" frame c { translation [x, 0, 0]; isa k; }',
        c__robray="def x 1; class k {} frame shared {}",
    )
    assert [translation(scene, name)[0] for name in "abc"] == [1, 9, 1]


def test_files_that_include_each_other_without_end_are_refused(load: Loader) -> None:
    """Files that each include the next twice are rejected before millions of reads."""
    files = {
        f"f{i}__robray": f'include "f{i + 1}.robray" include "f{i + 1}.robray"' for i in range(40)
    }
    with pytest.raises(FileFormatError, match="more than 1000 files are included"):
        load('include "f0.robray"', f40__robray="def x 1;", **files)


# --- files


def test_a_mesh_is_found_beside_its_file_or_beside_the_file_that_includes_that(
    load: Loader, tmp_path: Path
) -> None:
    """The original looks beside the outermost file, we beside the naming file first."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "m.obj").write_text(
        "v 0 0 0\nv 2 0 0\nv 0 2 0\nv 0 0 2\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    (tmp_path / "sub" / "classes.robray").write_text(
        'class part { mesh "m.obj"; } frame a { geometry { isa part; } }'
    )
    main = 'include "sub/classes.robray"'
    assert load(main).shapes("a")[0].shape.vertices.max() == 2
    (tmp_path / "sub" / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    assert load(main).shapes("a")[0].shape.vertices.max() == 1


def test_comments_of_three_kinds_stand_anywhere(load: Loader) -> None:
    """Comments are allowed between any two tokens, may contain any sign, and do not nest."""
    scene = load(
        '/** x **/ /***/ /* a * b / c ** */ // "\n# /*\nframe /**/ a /*"*/ { // }\n translation #'
        " [\n [1, /* 2, */ 2, // 4\n 3 /****/ ]; } /* /* */ frame b {} // end"
    )
    assert scene.frame_names == ("world", "a", "b")
    assert translation(scene, "a") == [1, 2, 3]


def test_all_attributes_of_a_geometry_are_accepted(load: Loader) -> None:
    """Every attribute of the original is accepted, in a geometry and in a class."""
    common = "color [1, 0, 0]; alpha .5; specular [.1, .2, .3]; visual 1; collision 0; no-shadow 1;"
    shapes = [
        "shape box; dimension [1, 2, 3];",
        "shape sphere; radius 1;",
        "shape cylinder; radius 1; height 2;",
        "shape cone; start_radius 1; end_radius .5; height 2;",
        "shape cone; start-radius 1; end-radius 0; height 2;",
        "shape grid; dimension [1, 1]; delta [.1, .1]; thickness .01;",
    ]
    for shape in shapes:
        scene = load(
            f"frame a {{ geometry {{ {shape} {common} }} }} class k {{ {shape} {common} translation"
            " [1, 0, 0]; } frame b { isa k; geometry { isa k; specular 0.5; } }"
        )
        assert len(scene.shapes("a")) == len(scene.shapes("b")) == 1
        assert (scene.shapes("b")[0].visual, scene.shapes("b")[0].collision) == (True, False)
        assert translation(scene, "b") == [1, 0, 0]


# --- names of the original's robots

ARM = """<robot name="arm">
<link name="base"/>
<link name="upper"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<link name="hand"><collision><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry>
</collision></link>
<joint name="s0" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
</joint>
<joint name="endpoint" type="fixed"><parent link="upper"/><child link="hand"/>
<origin xyz="1 0 0"/></joint>
</robot>"""


def test_links_answer_to_the_names_that_the_original_gives_them(load: Loader) -> None:
    """A parent may be the frame of a link, by its name or by that of the joint above it."""
    scene = load(
        'include "arm.urdf" frame grasp { parent endpoint; translation [0, 0, 1]; } frame box {'
        ' }allow_collision "s0" box; allow_collision "hand-collision" "box"; allow_collision'
        ' upper-visual "endpoint";allow_collision "hand-visual" "hand-collision";',
        arm__urdf=ARM,
    )
    assert scene.parent("grasp") == "hand"
    assert all(
        scene.is_allowed(*pair) for pair in (("upper", "box"), ("hand", "box"), ("upper", "hand"))
    )


def test_the_name_of_a_frame_has_priority_over_an_alias(load: Loader) -> None:
    """The name of a frame has priority over the same name of a joint of another frame."""
    scene = load(
        'include "arm.urdf" frame endpoint {} frame grasp { parent endpoint; }', arm__urdf=ARM
    )
    assert scene.parent("grasp") == "endpoint"
    with pytest.raises(FileFormatError, match="unknown frame 'handy-collision'"):
        load('include "arm.urdf" allow_collision "handy-collision" base;', arm__urdf=ARM)
