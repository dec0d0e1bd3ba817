"""Round trips of scenes through URDF, and errors of the writer."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit.errors import OutputError, SceneError, UnknownNameError
from tmkit.formats import load_scene, write_urdf
from tmkit.formats.urdf.writer import roll_pitch_yaw, urdf_from_scene
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Free,
    HeightField,
    Inertia,
    Mesh,
    Mimic,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
)
from tmkit.spatial import Pose

CORNER = Mesh(
    [[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 1 / 3]],
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
)


def same_poses(first: SceneGraph, second: SceneGraph, root: str) -> None:
    """Check that the frames of two scenes have equal poses relative to the root."""
    assert first.joint_names == second.joint_names
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.uniform(-1, 1, len(first.joint_names))
        first_part, second_part = first.at(q), second.at(q)
        for frame in second.frame_names:
            if frame != "world":
                expected = first_part.pose(frame, relative_to=root).as_matrix()
                np.testing.assert_allclose(
                    second_part.pose(frame, relative_to=root).as_matrix(), expected, atol=1e-12
                )


def machine() -> SceneGraph:
    """Return a scene with all joints and shapes, a body of two frames, inertias and a load."""
    turned = Pose.from_rpy((0.1, -0.2, 0.3), (0.4, math.pi / 2, -0.6))
    shapes = [
        AttachedShape(Box([1, 2, 3]), turned, color=(0.1, 0.2, 0.3, 0.4)),
        AttachedShape(Sphere(0.5), visual=False),
        AttachedShape(Cylinder(0.5, 2), collision=False),
        AttachedShape(Capsule(0.5, 2)),
        AttachedShape(CORNER, turned),
    ]
    matrix = np.array([[2, 0.1, 0.2], [0.1, 3, 0.3], [0.2, 0.3, 4]])
    scene = SceneGraph()
    scene = scene.add_frame("base", "world", pose=turned, shapes=shapes)
    scene = scene.add_frame("plate", "base", pose=turned, body="base").set_inertia(
        "plate", Inertia(2, (1, 2, 3), matrix=matrix)
    )
    slide = Prismatic([0, 1, 0], lower=-0.1, upper=0.3, velocity=2, effort=5, name="slide").replace(
        damping=0.5, friction=0.25
    )
    scene = scene.add_frame("b", "plate", joint=slide, pose=turned)
    scene = scene.add_frame(
        "c", "b", joint=Revolute([1, 2, 3], lower=-1, upper=math.pi), pose=turned.inverse()
    )
    scene = scene.add_frame("d", "c", joint=Continuous([0, 0, 1], velocity=1.5), pose=turned)
    scene = scene.add_frame("e", "d", joint=Revolute([0, 0, 1]), shapes=[AttachedShape(Cone(1, 2))])
    follow = Mimic("slide", multiplier=-0.5, offset=0.125)
    scene = scene.add_frame(
        "f", "b", joint=Prismatic([1, 0, 0], lower=-1, upper=1, mimic=follow, name="follower")
    )
    scene = scene.add_frame("g", "f", joint=Free(), pose=turned)
    scene = scene.set_inertia("c", Inertia(1.5, (0, 0, 0.1), matrix=matrix / 7))
    scene = scene.add_frame("cargo", "e", shapes=[AttachedShape(Box([1, 1, 1]))]).add_frame(
        "label", "cargo"
    )
    return scene.add_frame("elsewhere", "world")


def test_round_trip(tmp_path: Path) -> None:
    """Kinematics, limits, inertias, shapes and colours read back; excluded frames do not."""
    scene = machine()
    path = write_urdf(scene, "base", tmp_path / "new" / "folder", name="machine", exclude=["cargo"])
    assert path == tmp_path / "new" / "folder" / "machine.urdf"
    back = load_scene(path)
    assert back.frame_names == ("world", "base", "plate", *"bcdefg")
    same_poses(scene, back, "base")
    np.testing.assert_array_equal(back.joint_limits, scene.joint_limits)
    np.testing.assert_array_equal(back.velocity_limits, scene.velocity_limits)
    np.testing.assert_array_equal(back.effort_limits, scene.effort_limits)
    for frame in "bcdfg":
        first_part, second_part = scene.joint(frame), back.joint(frame)
        assert (first_part.type, first_part.damping, first_part.friction, first_part.mimic) == (
            second_part.type,
            second_part.damping,
            second_part.friction,
            second_part.mimic,
        )
    assert back.joint("e").type == "continuous"
    for frame in ("base", "c"):
        expected, inertia = scene.inertia(frame), back.inertia(frame)
        assert expected is not None
        assert inertia is not None
        assert inertia.mass == expected.mass
        np.testing.assert_array_equal(inertia.center, expected.center)
        np.testing.assert_allclose(inertia.matrix, expected.matrix, atol=1e-15)
    assert back.inertia("plate") is None
    before, after = (
        sorted(some.shapes("base"), key=lambda part: part.shape.kind) for some in (scene, back)
    )
    for one_part, two_part in itertools.zip_longest(before, after):
        assert two_part.shape == one_part.shape
        assert two_part.pose.is_close(
            one_part.pose, translation_tolerance=1e-12, rotation_tolerance=1e-12
        )
        assert (two_part.visual, two_part.collision) == (one_part.visual, one_part.collision)
        assert two_part.color == (one_part.color if one_part.visual else None)


def test_a_cone_is_written_as_a_mesh(tmp_path: Path) -> None:
    """A cone is written as a mesh with its bounds and approximately its volume."""
    shape = load_scene(write_urdf(machine(), "e", tmp_path)).shapes("e")[0].shape
    cone = Cone(1, 2)
    assert shape.kind == "mesh"
    np.testing.assert_allclose(shape.bounds, cone.bounds, atol=1e-12)
    assert shape.volume == pytest.approx(cone.volume, rel=2e-3)


def test_planes_clouds_and_fields_are_written(tmp_path: Path) -> None:
    """A plane reads back equal; a field becomes its surface, and a cloud its cubes."""
    field = HeightField(np.arange(6).reshape(2, 3), size=[1, 2])
    shapes = [Plane(), field, PointCloud([[0, 0, 0], [1, 2, 3]], radius=0.1)]
    scene = SceneGraph().add_frame(
        "ground", "world", shapes=[AttachedShape(shape) for shape in shapes]
    )
    parts = load_scene(write_urdf(scene, "ground", tmp_path)).shapes("ground")
    back = [part.shape for part in parts if part.collision]
    assert back[0] == shapes[0]
    assert [shape.kind for shape in back[1:]] == ["mesh", "mesh"]
    assert [shape.volume for shape in back[1:]] == pytest.approx([field.volume, 2 * 0.2**3])


def test_a_subtree_has_its_own_root(tmp_path: Path) -> None:
    """The joint of the root and the frames above it are omitted."""
    back = load_scene(write_urdf(machine(), "c", tmp_path))
    assert back.frame_names == ("world", *"cde", "cargo", "label")
    assert back.joint("c").type == "fixed"
    assert back.joint_names == ("d", "e")


def test_text_and_meshes_without_files() -> None:
    """Meshes are named by content and written once; equal scenes have equal texts."""
    scene = SceneGraph()
    for name in "ab":
        scene = scene.add_frame(name, "world", shapes=[AttachedShape(CORNER)])
    written = urdf_from_scene(scene, "world", name="pair")
    assert list(written.meshes) == [f"mesh_{CORNER.digest}.obj"]
    assert written.text.count(f"mesh_{CORNER.digest}.obj") == 4
    assert '<robot name="pair">' in written.text
    assert urdf_from_scene(scene, "world", name="pair") == written


def test_joint_order_is_kept_after_reparenting(tmp_path: Path) -> None:
    """Joints keep the order of the scene, also if a frame is the child of a later frame."""
    scene = (
        SceneGraph()
        .add_frame("late", "world")
        .add_frame("j1", "world", joint=Continuous([0, 0, 1]))
    )
    scene = scene.add_frame("j2", "world", joint=Continuous([0, 0, 1])).reparent(
        "late", "j2", pose=Pose()
    )
    back = load_scene(write_urdf(scene, "world", tmp_path))
    assert back.joint_names == scene.joint_names == ("j1", "j2")


def test_names_that_need_escaping_and_names_that_clash(tmp_path: Path) -> None:
    """Names are escaped, and an edge without a name gets an unused name."""
    scene = (
        SceneGraph()
        .add_frame('a<"&">', "world")
        .add_frame("b", "world", joint=Continuous([0, 0, 1], name="c_joint"))
    )
    scene = scene.add_frame("c", "b")
    assert load_scene(write_urdf(scene, "world", tmp_path)).frame_names == (
        "world",
        'a<"&">',
        "b",
        "c",
    )


def test_unlimited_slides_are_kept(tmp_path: Path) -> None:
    """A prismatic joint with no limits, or with one, reads back equal."""
    scene = SceneGraph().add_frame("a", "world", joint=Prismatic([0, 0, 1]))
    scene = scene.add_frame("b", "a", joint=Revolute([0, 0, 1], lower=-1))
    back = load_scene(write_urdf(scene, "world", tmp_path))
    np.testing.assert_array_equal(back.joint_limits, [[-math.inf, math.inf], [-1, math.inf]])


def test_misuse_raises_an_error(tmp_path: Path) -> None:
    """Invalid arguments and names raise an error, and no file is written."""
    scene = machine()
    with pytest.raises(UnknownNameError, match="unknown frame 'bas'; did you mean 'base'"):
        write_urdf(scene, "bas", tmp_path)
    with pytest.raises(UnknownNameError, match="unknown frame 'x'"):
        write_urdf(scene, "base", tmp_path, exclude=["x"])
    with pytest.raises(SceneError, match="root 'base' of the robot is excluded"):
        write_urdf(scene, "base", tmp_path, exclude=["base"])
    with pytest.raises(
        SceneError, match="'follower' mimics 'slide', which is not part of the robot"
    ):
        write_urdf(_follower_alone(), "x", tmp_path)
    with pytest.raises(SceneError, match="does not fit into XML"):
        write_urdf(SceneGraph().add_frame("a\x01", "world"), "world", tmp_path)
    assert list(tmp_path.iterdir()) == []


def _follower_alone() -> SceneGraph:
    """Return a scene with a mimic joint in another subtree than its leader."""
    scene = (
        SceneGraph()
        .add_frame("lead", "world", joint=Prismatic([1, 0, 0], name="slide"))
        .add_frame("x", "world")
    )
    rule = Mimic("slide")
    return scene.add_frame("f", "x", joint=Prismatic([1, 0, 0], mimic=rule, name="follower"))


def test_unwritable_folder_is_an_output_error(tmp_path: Path) -> None:
    """The error of a folder that cannot be created has its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make the folder"):
        write_urdf(machine(), "base", tmp_path / "file" / "x")


def test_an_old_file_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing fails, the old file is unchanged, and no other file remains."""
    write_urdf(SceneGraph(), "world", tmp_path)
    before = (tmp_path / "robot.urdf").read_text()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match="No space left"):
        write_urdf(SceneGraph().add_frame("a", "world"), "world", tmp_path)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["robot.urdf"]
    assert (tmp_path / "robot.urdf").read_text() == before


angles = st.one_of(
    st.floats(-math.pi, math.pi), st.sampled_from([0.0, math.pi / 2, -math.pi / 2, math.pi])
)


@given(angles, angles, angles)
def test_angles_make_the_same_rotation(roll: float, pitch: float, yaw: float) -> None:
    """The angles of a rotation give this rotation, also where they are not unique."""
    rotation = Pose.from_rpy((0, 0, 0), (roll, pitch, yaw)).rotation
    again = Pose.from_rpy((0, 0, 0), roll_pitch_yaw(rotation)).rotation
    np.testing.assert_allclose(again, rotation, atol=1e-14)


def test_panda_round_trip(tmp_path: Path) -> None:
    """A real robot reads back with equal kinematics, limits, inertias and meshes."""
    scene = load_scene("panda_table")
    path = write_urdf(scene, "panda_link0", tmp_path)
    back = load_scene(path)
    same_poses(scene, back, "panda_link0")
    np.testing.assert_array_equal(back.joint_limits, scene.joint_limits)
    for frame in back.frame_names[1:]:
        assert back.inertia(frame) == scene.inertia(frame)
        assert [part.shape for part in back.shapes(frame)] == [
            part.shape for part in scene.shapes(frame)
        ]
