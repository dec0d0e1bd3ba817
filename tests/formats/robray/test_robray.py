"""Semantics of the statements of the robray language."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from formats.conftest import Loader
from support.meshes import l_mesh

import tmkit as tk
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats import convert_scene
from tmkit.formats.urdf.writer import obj_text
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

BOX = "shape box; dimension [0.1, 0.2, 0.3];"


# --- frames


def test_frame_without_parent_is_a_child_of_the_world(load: Loader) -> None:
    """The root is ``world``; a frame without attributes is a fixed child of the root."""
    scene = load("frame a {}")
    assert scene.frame_names == ("world", "a")
    assert scene.parent("a") == "world"
    assert scene.local_pose("a") == Pose()
    assert scene.joint("a").type == "fixed"
    assert scene.body("a") == "a"


def test_an_empty_file_is_the_empty_world(load: Loader) -> None:
    """A file without frames is a scene that holds only ``world``."""
    assert load("// nothing").frame_names == ("world",)


def test_quaternion_is_xyzw_and_rpy_is_fixed_axis(load: Loader) -> None:
    """Angles are roll, pitch, yaw about fixed axes; a quaternion is xyzw, of any length."""
    scene = load(
        "frame a { rpy [0.1, 0.2, 0.3]; translation [1, 2, 3]; } frame b { quaternion [0, 0, 2,"
        " 2]; }"
    )

    def turn(axis: int, angle: float) -> np.ndarray:
        c, s = math.cos(angle), math.sin(angle)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        matrix = np.eye(3)
        matrix[i, i] = matrix[j, j] = c
        matrix[j, i], matrix[i, j] = s, -s
        return matrix

    np.testing.assert_allclose(
        scene.local_pose("a").rotation, turn(2, 0.3) @ turn(1, 0.2) @ turn(0, 0.1), atol=1e-15
    )
    assert scene.local_pose("a").translation.tolist() == [1, 2, 3]
    np.testing.assert_allclose(scene.local_pose("b").rotation, turn(2, math.pi / 2), atol=1e-15)


def test_nested_frames_are_children(load: Loader) -> None:
    """A frame inside a frame is its child, at any depth, and comes after it."""
    scene = load("frame a { frame b { frame c {} } frame d {} translation [1, 0, 0]; }")
    assert scene.frame_names == ("world", "a", "b", "c", "d")
    assert [scene.parent(name) for name in "abcd"] == ["world", "a", "b", "a"]


def test_parents_may_be_declared_later(load: Loader) -> None:
    """A frame waits for its parent; otherwise the order of declaration is kept."""
    scene = load("frame c { parent b; } frame x {} frame b { parent a; } frame a {}")
    assert scene.frame_names == ("world", "a", "b", "c", "x")


def test_revolute_and_prismatic_joints(load: Loader) -> None:
    """Type, axis, name and limits define a joint, by default unlimited and named as its frame."""
    scene = load(
        "frame a { type revolute; axis [0, 0, 2]; lower -90*deg; upper 1; variable shoulder; }"
        "frame b { parent a; type prismatic; axis [1, 0, 0]; }"
    )
    assert scene.joint_names == ("shoulder", "b")
    np.testing.assert_array_equal(scene.joint_limits, [[-math.pi / 2, 1.0], [-math.inf, math.inf]])
    assert scene.joint("a").axis.tolist() == [0, 0, 1]
    q = scene.configuration({"shoulder": 0.5, "b": 2.0})
    expected = Pose((0, 0, 0), (0, 0, math.sin(0.25), math.cos(0.25))) @ Pose((2, 0, 0))
    assert scene.pose("b", relative_to="world", q=q).is_close(expected)


@pytest.mark.parametrize(
    ("kind", "expected"), [("revolute", (0, 0, 0, 0.3 + 1.5)), ("prismatic", (0, 0, 1.8, 0.0))]
)
def test_offset_is_added_to_the_joint_value(
    kind: str, expected: tuple[float, ...], load: Loader
) -> None:
    """The pose at joint value v is that at v + offset without an offset; limits bound v.

    An axis is a direction; the offset, as in the original, is multiplied by its length.
    """
    scene = load(
        f"frame a {{ translation [1, 0, 0]; type {kind}; axis [0, 0, 3]; offset 0.5; lower -1;"
        " upper 1; }"
    )
    pose = scene.pose("a", relative_to="world", q=[0.3])
    turn = expected[3]
    assert pose.is_close(Pose((1, 0, expected[2]), (0, 0, math.sin(turn / 2), math.cos(turn / 2))))
    np.testing.assert_array_equal(scene.joint_limits, [[-1, 1]])


def test_world_itself_may_carry_shapes(load: Loader) -> None:
    """A frame called ``world`` is the root; it may have geometry and classes, not a pose."""
    scene = load(f"frame world {{ isa surface; geometry {{ {BOX} }} }}")
    assert scene.frame_names == ("world",)
    assert len(scene.shapes("world")) == 1
    with pytest.raises(FileFormatError, match="root"):
        load("frame world { translation [1, 0, 0]; }")
    with pytest.raises(FileFormatError, match="root"):
        load("frame a {} frame world { parent a; }")


def test_allow_collision(load: Loader) -> None:
    """Allowed pairs may name frames that come later, with quotes or without."""
    scene = load('allow_collision a "b c"; frame a {} frame "b c" {}')
    assert scene.is_allowed("a", "b c")
    assert list(scene.allowed_pairs) == [("a", "b c", "user")]


# --- geometry


@pytest.mark.parametrize(
    ("geometry", "kind", "dimensions", "lower", "upper"),
    [
        (BOX, "box", (0.1, 0.2, 0.3), (-0.05, -0.1, -0.15), (0.05, 0.1, 0.15)),
        ("shape sphere; radius 2;", "sphere", (2,), (-2, -2, -2), (2, 2, 2)),
        ("shape cylinder; radius 1; height 4;", "cylinder", (1, 4), (-1, -1, 0), (1, 1, 4)),
        (
            "shape cone; start_radius 1; end_radius 0; height 4;",
            "cone",
            (1, 4),
            (-1, -1, 0),
            (1, 1, 4),
        ),
        ("shape cone; start-radius 1; height 4;", "cone", (1, 4), (-1, -1, 0), (1, 1, 4)),
        (
            "shape cone; start_radius 0; end_radius 1; height 4;",
            "cone",
            (1, 4),
            (-1, -1, 0),
            (1, 1, 4),
        ),
        (
            "shape cone; start_radius 1; end_radius 1; height 4;",
            "cylinder",
            (1, 4),
            (-1, -1, 0),
            (1, 1, 4),
        ),
        ("shape cone; start_radius 1; end_radius 2; height 4;", "mesh", (), (-2, -2, 0), (2, 2, 4)),
        ("shape cylinder; radius 1; height -4;", "cylinder", (1, 4), (-1, -1, -4), (1, 1, 0)),
        ("shape cone; start_radius 1; height -4;", "cone", (1, 4), (-1, -1, -4), (1, 1, 0)),
        (
            "shape cone; start_radius 1; end_radius 2; height -4;",
            "mesh",
            (),
            (-2, -2, -4),
            (2, 2, 0),
        ),
        (
            "shape grid; dimension [2, 3]; delta [0.1, 0.1]; thickness 0.01;",
            "box",
            (2, 3, 0.01),
            None,
            None,
        ),
    ],
)
def test_shapes(
    geometry: str,
    kind: str,
    dimensions: tuple[float, ...],
    lower: tuple[float, ...] | None,
    upper: tuple[float, ...] | None,
    load: Loader,
) -> None:
    """Each shape has its size and pose; the origin of a cylinder or cone is the base centre."""
    (attached,) = load(f"frame a {{ geometry {{ {geometry} }} }}").shapes("a")
    assert attached.shape.kind == kind
    assert attached.shape.dimensions == dimensions
    if lower is not None and upper is not None:
        corners = [attached.pose.apply(corner) for corner in attached.shape.bounds]
        np.testing.assert_allclose(np.minimum(*corners), lower, atol=1e-12)
        np.testing.assert_allclose(np.maximum(*corners), upper, atol=1e-12)


def test_cones_point_where_they_say(load: Loader) -> None:
    """The wide end of a cone has the larger radius; a cone with its tip at the base is inverted."""
    up, down = (
        load(
            f"frame a {{ geometry {{ shape cone; height 2; start_radius {a}; end_radius {b}; }} }}"
        ).shapes("a")[0]
        for a, b in ((1, 0), (0, 1))
    )
    np.testing.assert_allclose(up.pose.apply([0, 0, 1]), [0, 0, 2], atol=1e-12)
    np.testing.assert_allclose(down.pose.apply([0, 0, 1]), [0, 0, 0], atol=1e-12)


def test_cones_of_negative_height_point_the_other_way(load: Loader) -> None:
    """The tip of a cone, or second end of a frustum, is at its height, also if that is negative."""
    tip_down, tip_up = (
        load(
            f"frame a {{ geometry {{ shape cone; height -2; start_radius {a}; end_radius {b}; }} }}"
        ).shapes("a")[0]
        for a, b in ((1, 0), (0, 1))
    )
    np.testing.assert_allclose(tip_down.pose.apply([0, 0, 1]), [0, 0, -2], atol=1e-12)
    np.testing.assert_allclose(tip_up.pose.apply([0, 0, 1]), [0, 0, 0], atol=1e-12)
    (frustum,) = load(
        "frame a { geometry { shape cone; height -2; start_radius 1; end_radius 3; } }"
    ).shapes("a")
    low = [point for point in map(frustum.pose.apply, frustum.shape.vertices) if point[2] < -1]
    assert max(np.hypot(x, y) for x, y, _ in low) == pytest.approx(3.0)


def test_frustum_is_a_closed_mesh_that_faces_outwards(load: Loader) -> None:
    """The volume of a frustum is that of the polygon prismatoid, just below the round one."""
    (attached,) = load(
        "frame a { geometry { shape cone; start_radius 1; end_radius 2; height 3; } }"
    ).shapes("a")
    round_volume = math.pi * 3 / 3 * (1 + 2 + 4)
    assert attached.shape.volume == pytest.approx(
        round_volume * math.sin(2 * math.pi / 64) / (2 * math.pi / 64)
    )


def test_a_geometry_may_have_a_pose_of_its_own(load: Loader) -> None:
    """A pose in a geometry block moves the shape; the pose of a class applies to frames."""
    scene = load("""class there { translation [9, 9, 9]; shape box; dimension [1, 2, 3]; }
        frame a {
            geometry { isa there; }
            geometry { isa there; translation [1, 0, 0]; rpy [0, 0, 90*deg]; }
            geometry { shape cylinder; radius 1; height 2; rpy [90*deg, 0, 0]; }
        }""")
    plain, moved, lying = scene.shapes("a")
    assert plain.pose == Pose()
    assert moved.pose == Pose.from_rpy([1, 0, 0], [0, 0, np.pi / 2])
    np.testing.assert_allclose(lying.pose.translation, [0, -1, 0], atol=1e-15)
    np.testing.assert_allclose(lying.pose.rotate([0, 0, 1]), [0, -1, 0], atol=1e-15)


def test_colors_and_purposes(load: Loader) -> None:
    """Colour and alpha give four numbers, or None without either; purposes are switches."""
    scene = load(
        f"frame a {{ geometry {{ {BOX} color [255/255, 0.5, 0]; alpha .25; visual 0; }}"
        f"geometry {{ {BOX} color [0, 0, 1]; collision false; specular [2, 2, 2]; no-shadow 1; }}"
        f"geometry {{ {BOX} }} }}"
    )
    first, second, third = scene.shapes("a")
    assert first.color == (1.0, 0.5, 0.0, 0.25)
    assert (first.visual, first.collision) == (False, True)
    assert second.color == (0.0, 0.0, 1.0, 1.0)
    assert (second.visual, second.collision) == (True, False)
    assert third.color is None


def test_a_grid_is_visual_by_default(load: Loader) -> None:
    """A grid collides only with ``collision 1``."""
    grid = "shape grid; dimension [1, 1];"
    scene = load(f"frame a {{ geometry {{ {grid} }} geometry {{ {grid} collision 1; }} }}")
    assert [shape.collision for shape in scene.shapes("a")] == [False, True]


def test_meshes_are_relative_to_the_file_that_names_them(load: Loader, tmp_path: Path) -> None:
    """A mesh of a class in an included file is searched in the folder of that file."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "parts" / "classes.robray").write_text('class part { mesh "m.obj"; scale 2; }')
    scene = load(
        'include "parts/classes.robray" frame a { geometry { isa part; } geometry { isa part; } }'
    )
    first, second = scene.shapes("a")
    assert first.shape.vertices.max() == 2.0
    assert first.shape == second.shape
    with pytest.raises(MeshError, match=r"main.robray:1:27: there is no file 'n.obj'"):
        load('frame a { geometry { mesh "n.obj"; } }')


# --- classes


def color_of(scene: SceneGraph) -> tuple[float, ...]:
    """Return the colour of the only shape of frame a."""
    color = scene.shapes("a")[0].color
    assert color is not None
    return tuple(color[:3])


CLASSES = (
    f"class block {{ {BOX} color [0, 1, 0]; }} class red {{ color [1, 0, 0]; }} class blue {{ color"
    " [0, 0, 1]; }"
)


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ("isa block; isa red;", (1, 0, 0)),
        ("isa red; isa block;", (0, 1, 0)),
        ("isa block; isa red; isa blue;", (0, 0, 1)),
        ("color [0, 0, 1]; isa block; isa red;", (0, 0, 1)),
        ("isa block; color [1, 1, 1]; color [0.5, 0.5, 0.5];", (0.5, 0.5, 0.5)),
    ],
)
def test_in_geometry_the_last_class_wins_and_ones_own_attribute_beats_all(
    geometry: str, expected: tuple[float, ...], load: Loader
) -> None:
    """In a geometry block, own attributes have priority, then classes, the last one first."""
    assert color_of(load(f"{CLASSES} frame a {{ geometry {{ {geometry} }} }}")) == expected


def test_in_a_class_the_last_class_wins(load: Loader) -> None:
    """A class inherits like a geometry: own attributes first, then the last ``isa``."""
    text = CLASSES + "class c { isa block; isa red; isa blue; } class d { color [1, 1, 0]; isa c; }"
    assert color_of(load(text + "frame a { geometry { isa c; } }")) == (0, 0, 1)
    assert color_of(load(text + "frame a { geometry { isa d; } }")) == (1, 1, 0)


def test_in_a_frame_the_first_class_wins(load: Loader) -> None:
    """Frame attributes come from the frame itself, then from the first class that has them."""
    text = (
        "class one { translation [1, 0, 0]; } class two { translation [2, 0, 0]; rpy [0, 0, pi]; }"
    )
    scene = load(text + "frame a { isa one; isa two; } frame b { isa one; translation [3, 0, 0]; }")
    assert scene.local_pose("a").is_close(Pose((1, 0, 0), (0, 0, 1, 0)))
    assert scene.local_pose("b") == Pose((3, 0, 0))


def test_a_quaternion_beats_angles_wherever_it_comes_from(load: Loader) -> None:
    """A frame with both has the quaternion, be it that of a class and the angles its own."""
    scene = load(
        "class turned { quaternion [1, 0, 0, 0]; } frame a { isa turned; rpy [0, 0, 1]; } frame b {"
        " isa turned; }frame c { quaternion [0, 1, 0, 0]; rpy [0, 0, 1]; }"
    )
    assert scene.local_pose("a") == scene.local_pose("b") == Pose((0, 0, 0), (1, 0, 0, 0))
    assert scene.local_pose("c") == Pose((0, 0, 0), (0, 1, 0, 0))


def test_classes_of_frame_and_geometry_become_tags(load: Loader) -> None:
    """Every direct and inherited class tags the frame once, in order of mention."""
    text = (
        f"class thing {{}} class moveable {{ isa thing; }} class block {{ {BOX} isa moveable; }}"
        " class red {}"
    )
    scene = load(text + "frame a { isa red; isa movable; geometry { isa block; isa red; } }")
    assert scene.classes("a") == ("red", "movable", "block", "moveable", "thing")


def test_a_class_does_not_change_with_later_definitions(load: Loader) -> None:
    """A class uses the constants at its own line; a constant may be redefined later."""
    text = (
        "def size 1; class c { shape box; dimension [size, size, size]; } def size 2; frame a {"
        " geometry { isa c; } }"
    )
    assert load(text).shapes("a")[0].shape.dimensions == (1, 1, 1)


# --- mass


def test_mass_is_spread_evenly(load: Loader) -> None:
    """A frame's mass makes the inertia of its solid, of uniform density."""
    inertia = load(f"frame a {{ mass 12; geometry {{ {BOX} }} }}").inertia("a")
    assert inertia is not None
    assert inertia.mass == 12
    np.testing.assert_allclose(
        inertia.matrix, np.diag([0.04 + 0.09, 0.01 + 0.09, 0.01 + 0.04]), rtol=1e-14
    )


def test_mass_of_a_class_reaches_the_frame(load: Loader) -> None:
    """A mass may come from a class of the frame or its geometry; an own mass has priority."""
    text = f"class block {{ {BOX} mass 2; friction 0.5; }}"
    for frame, mass in [
        ("geometry { isa block; }", 2.0),
        ("isa block; geometry { isa block; }", 2.0),
        ("geometry { isa block; } geometry { isa block; }", 4.0),
    ]:
        inertia = load(f"{text} frame a {{ {frame} }}").inertia("a")
        assert inertia is not None
        assert inertia.mass == mass
    with pytest.raises(FileFormatError, match="give one of them"):
        load(f"{text} frame a {{ mass 3; geometry {{ isa block; }} }}")


def test_cylinder_with_mass_has_its_centre_above_the_base(load: Loader) -> None:
    """The centre of mass is where the solid is, not where the frame is."""
    inertia = load("frame a { mass 1; geometry { shape cylinder; radius 1; height 4; } }").inertia(
        "a"
    )
    assert inertia is not None
    np.testing.assert_allclose(inertia.center, [0, 0, 2])


# --- includes


def test_include_shares_constants_and_classes(load: Loader) -> None:
    """Definitions of an included file apply from there on; a file is read once."""
    scene = load(
        'include "one.robray" include "two.robray" frame a { geometry { isa block; } translation'
        " [cm, 0, 0]; }",
        one__robray='include "two.robray" class block { shape box; dimension [cm, cm, cm]; }',
        two__robray="def cm 1e-2; frame shared {}",
    )
    assert scene.frame_names == ("world", "shared", "a")
    assert scene.local_pose("a").translation.tolist() == [0.01, 0, 0]


def test_include_is_relative_to_the_including_file(load: Loader, tmp_path: Path) -> None:
    """A path in a file is relative to that file's folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.robray").write_text('include "two.robray"')
    (tmp_path / "sub" / "two.robray").write_text("frame deep {}")
    assert "deep" in load('include "sub/one.robray"')


def test_include_takes_any_scene_file(load: Loader) -> None:
    """A robot description is included from a package or a path; its links may be parents."""
    scene = load(
        'include "package://pybullet_data/cube_small.urdf"\ninclude "r.urdf"\nframe tool { parent'
        " hand; }",
        r__urdf='<robot name="r"><link name="hand"/></robot>',
    )
    assert scene.parent("tool") == "hand"
    assert "baseLink" in scene


@pytest.mark.parametrize("name", ["missing.robray", "package://nothing/x.robray"])
def test_missing_include_is_refused_at_its_place(name: str, load: Loader) -> None:
    """An include that leads nowhere is reported where it stands."""
    with pytest.raises(FileFormatError, match=r"main.robray:2:9: there is no file"):
        load(f'\ninclude "{name}"')


def test_include_of_unknown_format_is_refused(load: Loader) -> None:
    """An included file must be a scene file."""
    with pytest.raises(FileFormatError, match=r"unknown scene format '.txt'"):
        load('include "a.txt"', a__txt="")


def test_cyclic_include_names_the_cycle(load: Loader) -> None:
    """Files that include each other are rejected, and the message lists the cycle."""
    names = "main.robray -> .*one.robray -> .*two.robray -> .*main.robray"
    match = f"two.robray:1:9: the includes form a cycle: .*{names}"
    with pytest.raises(FileFormatError, match=match):
        load(
            'include "one.robray"',
            one__robray='include "two.robray"',
            two__robray='include "main.robray"',
        )


def test_error_in_an_included_file_names_that_file(load: Loader) -> None:
    """The place of an error is in the file where it was written."""
    with pytest.raises(FileFormatError, match=r"one.robray:2:7: unexpected ';'"):
        load('include "one.robray"', one__robray="\nframe ;")


# --- what is refused


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("frame a { colour [1, 1, 1]; }", "1:11", "unknown attribute 'colour' in frame 'a'"),
        (
            "frame a { paren b; }",
            "1:11",
            "unknown attribute 'paren' in frame 'a'; did you mean 'parent'",
        ),
        (
            "frame a { geometry { colour 1; } }",
            "1:22",
            "unknown attribute 'colour' .*; did you mean 'color'",
        ),
        (
            "frame a { geometry { parent b; } }",
            "1:22",
            "unknown attribute 'parent' in the geometry of frame 'a'",
        ),
        (
            "class a { colour 1; }",
            "1:11",
            "unknown attribute 'colour' in class 'a'; did you mean 'color'",
        ),
        ("class a {}\nclass a {}", "2:7", "the class 'a' is already defined at .*main.robray:1:7"),
        (
            "frame a { isa block; } class block {}",
            "1:15",
            "unknown class 'block'; define it first: class block { }",
        ),
        (
            "class block {} frame a { isa blok; }",
            "1:30",
            "unknown class 'blok'; did you mean 'block'",
        ),
        ("class a { isa a; }", "1:15", "unknown class 'a'"),
        ("frame a { isa 3; }", "1:15", "expected the name of a class"),
        ("frame a {}\nframe a {}", "2:7", "the frame 'a' is already declared at .*main.robray:1:7"),
        ("frame a { frame a {} }", "1:17", "the frame 'a' is already declared"),
        (
            "frame table {}\nframe a {\n parent tabel; }",
            "3:9",
            "the parent 'tabel', .*did you mean 'table'",
        ),
        (
            "frame a { parent b; } frame b { parent a; }",
            "1:18",
            "the parents form a cycle: a -> b -> a",
        ),
        ("frame a { parent a; }", "1:18", "the parents form a cycle: a -> a"),
        (
            "frame a { frame b { parent c; } }",
            "1:28",
            "inside the frame 'a' is its child; it cannot name a parent",
        ),
        ("frame a { translation [1, 2]; }", "1:23", "expected an array of 3 numbers, received 2"),
        ("frame a { translation 1; }", "1:23", "expected an array of 3 numbers"),
        ("frame a { quaternion [0, 0, 0]; }", "1:22", "expected an array of 4 numbers, received 3"),
        ("frame a { quaternion [0, 0, 1-1, 0]; }", "1:22", "not all zero"),
        ("frame a { rpy [0, 0, 1/0]; }", "1:23", "division by zero"),
        ("frame a { rpy [0, 0, 1e999]; }", "1:22", "not finite"),
        (
            "frame a { type planar; axis [0, 0, 1]; }",
            "1:16",
            "unknown word 'planar'.*fixed, revolute, prismatic",
        ),
        ("frame a { type revolut; }", "1:16", "unknown word 'revolut'; did you mean 'revolute'"),
        ("frame a { type revolute; }", "1:16", "the revolute frame 'a' needs an axis"),
        ("frame a { lower 1; }", "1:17", "'lower' has no meaning for a fixed frame"),
        ("frame a { type revolute; axis [0, 0, 0]; }", "1:31", "not all zero"),
        (
            "frame a { type revolute; axis [0, 0, 1]; lower 1; upper 0; }",
            "1:57",
            "upper limit 0 is below .* 1",
        ),
        ("frame a { type [1]; }", "1:16", "expected one of fixed, revolute, prismatic"),
        ("frame a { offset [1]; }", "1:18", "expected a number, not an array"),
        ("frame a { mass 0; }", "1:16", "expected a number above 0, received 0"),
        ("frame a { mass 1; }", "1:16", "this frame has none"),
        ("frame a { friction -1; }", "1:20", "expected a number at least 0, received -1"),
        ("frame a { geometry { } }", "1:11", "a geometry needs a shape or a mesh"),
        (
            "frame a { geometry { shape torus; } }",
            "1:28",
            "unknown word 'torus' .*box, sphere, cylinder, cone, grid",
        ),
        ("frame a { geometry { shape box; } }", "1:11", "a box needs 'dimension'"),
        ("frame a { geometry { shape sphere; } }", "1:11", "a sphere needs 'radius'"),
        ("frame a { geometry { shape cylinder; radius 1; } }", "1:11", "a cylinder needs 'height'"),
        (
            "frame a { geometry { shape box; dimension [1, 1]; } }",
            "1:43",
            "a box has 3 dimensions, received 2",
        ),
        (
            "frame a { geometry { shape box; dimension [1, -1, 1]; } }",
            "1:47",
            "above 0, received -1",
        ),
        ("frame a { geometry { shape sphere; radius 0; } }", "1:43", "above 0, received 0"),
        (
            "frame a { geometry { shape cone; height 1; start_radius 0; } }",
            "1:57",
            "a radius above 0 at one end",
        ),
        (
            "frame a { geometry { shape cone; height 0; start_radius 1; } }",
            "1:41",
            "a number other than 0",
        ),
        ("frame a { geometry { mesh m; } }", "1:27", "there is no file 'm'"),
        (
            "frame a { geometry { shape sphere; radius 1; color [2, 0, 0]; } }",
            "1:53",
            "from 0 to 1, received 2",
        ),
        (
            "frame a { geometry { shape sphere; radius 1; visual maybe; } }",
            "1:53",
            "expected 0, 1, true or false",
        ),
        ("allow_collision a b; frame a {}", "1:19", "allow_collision names the unknown frame 'b'"),
        ("allow_collision a a; frame a {}", "1:17", "."),
        ("def pi 3;", "1:5", "the constant 'pi' cannot be redefined"),
        ('frame "" {}', "1:7", "a frame needs a name"),
        (
            'frame a { type revolute; axis [0, 0, 1]; variable ""; }',
            "1:51",
            "a name cannot be empty",
        ),
    ],
)
def test_mistakes_are_refused_with_place_and_hint(
    text: str, place: str, reason: str, load: Loader
) -> None:
    """Every error has file, line, column, the text of the line and the expected value."""
    with pytest.raises(FileFormatError, match=rf"main.robray:{place}: .*{reason}") as caught:
        load(text)
    line = int(place.split(":")[0])
    assert f"\n    {text.splitlines()[line - 1]}\n" in str(caught.value)


def test_deep_nesting_is_refused(load: Loader) -> None:
    """Frames nested beyond reason are an error, not a crash."""
    depth = 300
    with pytest.raises(FileFormatError, match="nested more than 200 deep"):
        load("".join(f"frame f{i} {{" for i in range(depth)) + "}" * depth)


def test_long_chains_of_parents_are_fine(load: Loader) -> None:
    """A chain declared from its end is built without recursion."""
    text = "".join(f"frame f{i} {{ parent f{i + 1}; }}" for i in range(2000)) + "frame f2000 {}"
    assert len(load(text)) == 2002


def test_a_scene_in_the_style_of_the_original(load: Loader) -> None:
    """Demo scenes of the original load: units, stacks, class tags, a grasp frame on a robot."""
    scene = load(
        """
        include "class.robray"
        frame front { rpy [0, 0, -45*deg];
            geometry { isa table; dimension [.75, .75, table_size]; } }
        frame block_a { parent front; translation [0, 0, table_stack];
            geometry { isa block; isa red; } }
        frame block_b { parent block_a; translation [0, -.25, block_stack];
            geometry { isa block; } }
        frame right_endpoint { }
        """,
        class__robray="""
        def mm 1e-3; def cm 1e-2;
        def block_size 10*cm; def table_size 1*cm;
        class moveable { } class stackable { }
        class red { color [1,0,0]; }
        class table { shape box; isa surface; color [.6, .3, .6]; alpha 0.5; }
        class block { shape box; isa moveable; isa stackable; color [0, 1, 0]; alpha 0.5;
                      dimension [block_size, block_size, block_size]; }
        def table_stack (block_size + table_size)/2 + .1*mm;
        def block_stack block_size + .1*mm;
        frame grasp { parent right_endpoint; quaternion [0,1,0,0]; translation [0,0,.075]; }
        """,
    )
    assert scene.frame_names == ("world", "right_endpoint", "grasp", "front", "block_a", "block_b")
    assert scene.classes("front") == ("table", "surface")
    assert scene.classes("block_a") == ("block", "moveable", "stackable", "red")
    assert scene.shapes("block_a")[0].color == (1, 0, 0, 0.5)
    np.testing.assert_allclose(scene.local_pose("block_a").translation, [0, 0, 0.0551], atol=1e-15)
    np.testing.assert_allclose(
        scene.local_pose("block_b").translation, [0, -0.25, 0.1001], atol=1e-15
    )
    assert scene.local_pose("grasp") == Pose((0, 0, 0.075), (0, 1, 0, 0))


def test_frames_of_an_included_file_get_a_place_and_say_what_they_are(tmp_path: Path) -> None:
    """A block of the same name changes pose, classes, mass, friction and level of a URDF frame."""
    urdf = (
        '<robot name="cup"><link name="cup"><inertial><mass value="9"/><inertia ixx="9" iyy="9"'
        ' izz="9" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.1 0.1'
        ' 0.2"/></geometry></collision></link></robot>'
    )
    (tmp_path / "cup.urdf").write_text(urdf)
    text = 'class thing {{ friction 0.4; }} include "cup.urdf" frame shelf {{ }} frame cup {{ {} }}'
    scene_file = tmp_path / "scene.robray"
    scene_file.write_text(
        text.format(
            "parent shelf; translation [0, 0, 1]; isa thing; isa movable; mass 0.3; level box;"
        )
    )
    scene = tk.load_scene(str(scene_file))
    assert (scene.parent("cup"), scene.classes("cup")) == ("shelf", ("thing", "movable"))
    np.testing.assert_array_equal(scene.local_pose("cup").translation, [0.0, 0.0, 1.0])
    (solid,) = scene.shapes("cup")
    assert (solid.friction, solid.level) == (0.4, "box")
    inertia = scene.inertia("cup")
    assert inertia is not None
    assert inertia.mass == 0.3
    assert inertia.matrix[2, 2] == pytest.approx(0.3 * (0.1**2 + 0.1**2) / 12.0)
    for wrong, reason in (
        ("type revolute; axis [0, 0, 1];", "'type' cannot be given here"),
        (
            "geometry { shape sphere; radius 1; }",
            "geometry and frames inside it cannot be given here",
        ),
    ):
        scene_file.write_text(text.format(wrong))
        with pytest.raises(
            FileFormatError, match=f"the frame 'cup' comes from .*cup.urdf.*: {reason}"
        ):
            tk.load_scene(str(scene_file))


def test_an_included_mesh_is_a_frame_that_is_completed(tmp_path: Path) -> None:
    """An included mesh is a frame with the name of its file, which a block may change."""
    pytest.importorskip("coacd")
    (tmp_path / "l.obj").write_bytes(obj_text(l_mesh()).encode())
    text = (
        'include "l.obj" frame shelf {{ }} frame l {{ parent shelf; isa movable; mass 0.3; friction'
        " 0.4; {} }}"
    )
    file = tmp_path / "scene.robray"
    file.write_text(text.format("level pieces;"))
    scene = tk.load_scene(str(file))
    assert (scene.parent("l"), scene.classes("l")) == ("shelf", ("movable",))
    inertia = scene.inertia("l")
    assert inertia is not None
    assert inertia.mass == pytest.approx(0.3)
    drawn, *pieces = scene.shapes("l")
    assert (drawn.collision, len(pieces), {part.friction for part in pieces}) == (False, 2, {0.4})
    file.write_text('include "l.obj"')
    assert [part.collision for part in tk.load_scene(str(file)).shapes("l")] == [True]


def test_levels_of_detail_are_those_of_the_geometry_or_else_of_the_frame(tmp_path: Path) -> None:
    """A written scene reads back; a mesh in pieces is visual as a whole and collides in pieces."""
    pytest.importorskip("coacd")
    (tmp_path / "l.obj").write_bytes(obj_text(l_mesh()).encode())
    file = tmp_path / "scene.robray"
    file.write_text(
        'frame a { level exact; geometry { mesh "l.obj"; } geometry { mesh "l.obj"; level box; } }'
    )
    scene = tk.load_scene(str(file))
    assert [part.level for part in scene.shapes("a")] == ["exact", "box"]
    convert_scene(scene, tmp_path / "again.robray")
    assert [part.level for part in tk.load_scene(str(tmp_path / "again.robray")).shapes("a")] == [
        "exact",
        "box",
    ]
    file.write_text('frame a { geometry { mesh "l.obj"; level pieces; } }')
    drawn, *pieces = tk.load_scene(str(file)).shapes("a")
    assert drawn.visual
    assert not drawn.collision
    assert len(pieces) == 2
    assert all(piece.collision and not piece.visual for piece in pieces)
