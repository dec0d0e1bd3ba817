"""Poses, models, includes, joints, shapes, notes and errors of SDF files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pybullet_data
import pytest
import trimesh
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation
from support.effort import scaled_examples

from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError, MeshError, TmkitError
from tmkit.formats import ReadingOptions, load_scene, scene_from_dict, scene_to_dict
from tmkit.graph import SceneGraph

TIP = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
INERTIA = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"


def model(content: str, *, version: str = "1.9", name: str = "m", more: str = "") -> str:
    """Return the text of a file with one model, whose tag has ``more`` attributes."""
    return f'<sdf version="{version}">\n<model name="{name}" {more}>\n{content}\n</model></sdf>'


def joint(kind: str, parent: str, child: str, content: str = "<axis/>", *, name: str = "j") -> str:
    """Return the text of a joint."""
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{content}</joint>'


def read(folder: Path, text: str, *, file: str = "main.sdf") -> tuple[SceneGraph, list[str]]:
    """Return the scene of a text, and the notes about it."""
    (folder / file).write_text(text)
    notes: list[str] = []
    scene = load_scene(
        folder / file, on_note=lambda note: notes.append(f"{note.line}: {note.text}")
    )
    return scene, notes


# --- poses

_numbers = st.floats(-2, 2)
_axes = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)


def matrix(position: tuple[float, ...], turn: Rotation) -> np.ndarray:
    """Return a rigid transform (4, 4)."""
    transform = np.eye(4)
    transform[:3, :3], transform[:3, 3] = turn.as_matrix(), position
    return transform


@st.composite
def poses(draw: st.DrawFn, relative_to: str) -> tuple[str, np.ndarray]:
    """Draw a ``<pose>`` in one of the three notations, with its transform."""
    position = draw(st.tuples(*[_numbers] * 3))
    attribute = f'relative_to="{relative_to}"' if relative_to else ""
    words = " ".join(map(repr, position))
    angles = draw(st.tuples(*[_numbers] * 3))
    kind = draw(st.sampled_from(["", 'degrees="true"', 'rotation_format="quat_xyzw"']))
    turn = Rotation.from_euler("xyz", angles, degrees="degrees" in kind)
    values = turn.as_quat().tolist() if "quat" in kind else angles
    return f"<pose {attribute} {kind}>{words} {' '.join(map(repr, values))}</pose>", matrix(
        position, turn
    )


@st.composite
def models(
    draw: st.DrawFn,
) -> tuple[str, dict[str, np.ndarray], list[tuple[str, str, str, np.ndarray, np.ndarray]]]:
    """Draw a model as its text, the poses of its links, and its joints as tuples.

    Frames are relative to others that are declared before or after them; joints join links that are
    children already.
    """
    count = draw(st.integers(2, 5))
    links = [f"l{number}" for number in range(count)]
    order = draw(st.permutations([*links, "f0", "f1"]))
    placed: dict[str, np.ndarray] = {}
    text: dict[str, str] = {}
    for number, name in enumerate(order):
        base = draw(st.sampled_from(["", "__model__", *order[:number]]))
        pose, transform = draw(poses(base))
        placed[name] = placed[base] @ transform if base in placed else transform
        tag = "link" if name in links else "frame"
        text[name] = f'<{tag} name="{name}">{pose}</{tag}>'
    joints = []
    for number in range(1, count):
        ends = draw(st.permutations([links[number], draw(st.sampled_from(links[:number]))]))
        base = draw(st.sampled_from(["", *order]))
        text_of_pose, transform = draw(poses(base))
        pose = placed[base or ends[1]] @ transform
        kind, axis = draw(st.sampled_from(["fixed", "revolute", "prismatic", "ball"])), draw(_axes)
        expressed_in = draw(st.sampled_from(["", *order]))
        turn = placed[expressed_in] if expressed_in else pose
        attribute = f'expressed_in="{expressed_in}"' if expressed_in else ""
        element = f"{text_of_pose}<axis><xyz {attribute}>{' '.join(map(str, axis))}</xyz></axis>"
        text[f"j{number}"] = joint(kind, *ends, element, name=f"j{number}")
        direction = turn[:3, :3] @ np.array(axis) / np.linalg.norm(axis)
        joints.append((kind, *ends, pose, pose[:3, :3].T @ direction))
    return model("\n".join(draw(st.permutations([*text.values()])))), placed, joints


def motion(kind: str, axis: np.ndarray, values: list[float]) -> np.ndarray:
    """Return the transform of a joint."""
    if kind == "prismatic":
        return matrix(tuple(values[0] * axis), Rotation.identity())
    if kind == "ball":
        return matrix((0, 0, 0), Rotation.from_euler("XYZ", values))
    return matrix(
        (0, 0, 0),
        Rotation.from_rotvec(values[0] * axis) if kind == "revolute" else Rotation.identity(),
    )


@given(models(), st.lists(_numbers, min_size=12, max_size=12))
@settings(max_examples=scaled_examples(0.3))
def test_poses_are_those_of_a_plain_model(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[str, dict[str, np.ndarray], list[tuple[str, str, str, np.ndarray, np.ndarray]]],
    numbers: list[float],
) -> None:
    """Poses do not depend on the order of declarations or the direction of joints."""
    text, placed, joints = drawn
    scene, _ = read(tmp_path_factory.mktemp("sdf"), text)
    q = numbers[: len(scene.joint_names)]
    named = dict(zip(scene.joint_names, q, strict=True))
    for index, (kind, parent, child, pose, axis) in enumerate(joints, start=1):
        keys = [f"j{index}/{letter}" for letter in "xyz"] if kind == "ball" else [f"j{index}"]
        moved = motion(kind, axis, [named[key] for key in keys if key in named])
        between = np.linalg.inv(placed[parent]) @ pose @ moved @ np.linalg.inv(pose) @ placed[child]
        np.testing.assert_allclose(
            scene.pose(child, relative_to=parent, q=q).as_matrix(), between, atol=1e-9
        )
    roots = [name for name in scene.children("world") if name.startswith("l")]
    assert [scene.joint(name).type for name in roots] == ["free"]
    for name, transform in placed.items():
        np.testing.assert_allclose(
            scene.pose(name, q=[0] * len(q)).as_matrix(), transform, atol=1e-9
        )


def test_models_of_pybullet_load() -> None:
    """Each SDF file of pybullet_data loads, or raises the expected error."""
    files = sorted(Path(pybullet_data.getDataPath()).rglob("*.sdf"))
    errors = {}
    for file in files:
        try:
            scene = load_scene(
                file,
                reading=ReadingOptions(
                    meshes="available" if file.name == "kuka_world.sdf" else "load"
                ),
            )
        except TmkitError as error:
            errors[file.name] = str(error)
            continue
        if file.name.startswith(("kuka_w", "model")) and "kuka_iiwa" in str(file):
            assert len(scene.joint_names) >= 7
    assert len(files) >= 15
    assert [*errors] == ["model2.sdf"]
    assert "410: the name 'lbr_iiwa' is already declared" in errors["model2.sdf"]


def test_kuka_of_pybullet() -> None:
    """Forward kinematics at zero, limits and masses are those of the file."""
    scene = load_scene(Path(pybullet_data.getDataPath()) / "kuka_iiwa" / "model.sdf")
    assert scene.joint_names == tuple(f"lbr_iiwa_joint_{number}" for number in range(1, 8))
    assert scene.joint_limits[0] == pytest.approx([-2.96706, 2.96706])
    assert scene.pose("lbr_iiwa_link_7", q=[0] * 7).translation == pytest.approx(
        [0, -2.3, 0.7 + 1.261], abs=1e-5
    )
    inertia = scene.inertia("lbr_iiwa_link_1")
    assert inertia is not None
    assert (inertia.mass, inertia.matrix[1, 1]) == (4, pytest.approx(0.09))
    assert scene.inertia("lbr_iiwa_link_0") is None  # of mass 0
    assert scene.is_allowed("lbr_iiwa_link_2", "lbr_iiwa_link_3")


# --- models, worlds and includes


def test_nested_models_have_names_and_frames_of_their_own(tmp_path: Path) -> None:
    """``__model__`` is the inner model; a joint to a model or frame is one to its link."""
    inner = (
        '<model name="in" placement_frame="grip"><pose relative_to="top">0 0 1 0 0 0</pose><link'
        ' name="a"/><link name="b"><pose>1 0 0 0 0 0</pose></link><frame name="grip"'
        ' attached_to="b"><pose>0 0 0.5 0 0 0</pose></frame></model>'
    )
    outer = '<link name="a"/><frame name="top"><pose>0 0 2 0 0 0</pose></frame>'
    scene, notes = read(tmp_path, model(inner + outer + joint("fixed", "top", "in::grip")))
    assert notes == []
    assert set(scene.frame_names) == {"world", "a", "top", "in::a", "in::b", "in::grip"}
    assert scene.pose("in::grip").translation.tolist() == [0, 0, 3]
    assert scene.pose("in::a").translation == pytest.approx([-1, 0, 2.5])
    assert (scene.parent("in::b"), scene.parent("in::grip"), scene.parent("in::a")) == (
        "a",
        "in::b",
        "world",
    )
    assert (scene.joint("in::b").type, scene.joint("in::a").type) == ("fixed", "free")


def test_names_of_several_models_have_a_prefix(tmp_path: Path) -> None:
    """Names have a prefix if the file has several models."""
    text = '<model name="{}"><link name="l"/></model>'
    frame = '<frame name="f" attached_to="{}"><pose>0 0 1 0 0 0</pose></frame>'
    scene, _ = read(
        tmp_path,
        f'<sdf version="1.8"><world name="w">{text.format("a")}{frame.format("a")}</world></sdf>',
    )
    assert scene.frame_names == ("world", "l", "f")
    both = text.format("a") + text.format("b") + frame.format("b::l")
    scene, _ = read(
        tmp_path, f'<sdf version="1.8"><world name="w">{both}</world></sdf>', file="x.world"
    )
    assert scene.frame_names == ("world", "a::l", "b::l", "f")
    assert scene.parent("f") == "b::l"


def test_static_models_do_not_move(tmp_path: Path) -> None:
    """Static models, their nested models and their joints do not move."""
    text = (
        "<static>true</static><link name='a'/><link name='b'/><model name='in'><link"
        " name='c'/></model>"
    )
    scene, _ = read(tmp_path, model(text + joint("revolute", "a", "b")))
    assert {scene.joint(name).type for name in ("a", "b", "in::c")} == {"fixed"}
    assert scene.joint_names == ()


def wheel(folder: Path) -> None:
    """Write a model ``wheel`` whose folder has a ``model.config`` of two versions."""
    (folder / "wheel").mkdir()
    config = '<model><sdf version="1.4">old.sdf</sdf><sdf version="1.9">new.sdf</sdf></model>'
    (folder / "wheel" / "model.config").write_text(config)
    mesh = (
        "<visual"
        " name='v'><geometry><mesh><uri>model://wheel/tip.obj</uri></mesh></geometry></visual>"
    )
    (folder / "wheel" / "new.sdf").write_text(
        model(f"<pose>9 9 9 0 0 0</pose><link name='rim'>{mesh}</link>")
    )
    (folder / "wheel" / "tip.obj").write_text(TIP)


def test_includes_are_found_by_the_configuration_of_their_folder(tmp_path: Path) -> None:
    """The newest version counts; name, pose and placement of the include take precedence."""
    wheel(tmp_path)
    (tmp_path / "car").mkdir()
    left = "<include><uri>model://wheel</uri><name>left</name><pose>0 1 0 0 0 0</pose></include>"
    right = "<include><uri>../wheel</uri><name>right</name><static>true</static></include>"
    merged = (
        '<include merge="true"><uri>model://wheel/new.sdf</uri><pose relative_to="a">0 0 1 0 0'
        " 0</pose></include>"
    )
    scene, _ = read(tmp_path / "car", model("<link name='a'/>" + left + right + merged))
    assert set(scene.frame_names) == {"world", "a", "left::rim", "right::rim", "rim"}
    assert scene.pose("left::rim").translation.tolist() == [0, 1, 0]
    assert scene.pose("right::rim").translation.tolist() == [9, 9, 9]
    assert scene.pose("rim").translation.tolist() == [0, 0, 1]
    assert (scene.joint("left::rim").type, scene.joint("right::rim").type) == ("free", "fixed")
    assert scene.shapes("rim")[0].shape.kind == "mesh"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("model://whel", "there is no file 'package://whel/model.config'"),
        ("https://fuel.example/wheel", "nothing is read from the network"),
        ("model://wheel/robot.urdf", "is a URDF; only SDF is included: load it beside this file"),
        ("model://wheel/two.sdf", "has 2 models; expected one"),
        ("model://../wheel", "leads out|there is no file"),
        ("/etc", "there is no file '/etc/model.config'"),
        ("../../../far/x.sdf", "outside the folders that this scene may read|there is no file"),
        ("main.sdf", "main.sdf:3: 'main.sdf' includes itself"),
    ],
)
def test_bad_includes(tmp_path: Path, uri: str, message: str) -> None:
    """Each error is rejected at its line."""
    wheel(tmp_path)
    (tmp_path / "wheel" / "robot.urdf").write_text("<robot name='r'><link name='l'/></robot>")
    (tmp_path / "wheel" / "two.sdf").write_text(
        '<sdf version="1.9"><model name="a"/><model name="b"/></sdf>'
    )
    with pytest.raises(FileFormatError, match=message) as caught:
        read(tmp_path, model(f"<include><uri>{uri}</uri></include>"))
    assert caught.value.data["line"] == 3


@pytest.mark.parametrize(
    "config", ["<model/>", "<model><sdf version='9.9'>new.sdf</sdf></model>", "<robot/>", "<model"]
)
def test_bad_configurations_of_models(tmp_path: Path, config: str) -> None:
    """An invalid ``model.config`` is rejected with its name."""
    wheel(tmp_path)
    (tmp_path / "wheel" / "model.config").write_text(config)
    with pytest.raises(FileFormatError, match=r"model.config:1"):
        read(tmp_path, model("<include><uri>model://wheel</uri></include>"))


# --- joints


def pair(content: str, kind: str = "revolute", *, version: str = "1.9") -> str:
    """Return a model with a joint between two links, the second rotated by pi about x."""
    links = '<link name="a"/><link name="b"><pose>0 0 1 3.141592653589793 0 0</pose></link>'
    return model(links + "\n" + joint(kind, "a", "b", content), version=version)


def test_limits_and_dynamics(tmp_path: Path) -> None:
    """1e16 and negative efforts mean no limit; a spring is omitted."""
    limit = "<lower>-1</lower><upper>2</upper><effort>-1</effort><velocity>3</velocity>"
    dynamics = (
        "<damping>0.1</damping><friction>0.2</friction><spring_stiffness>5</spring_stiffness>"
    )
    scene, notes = read(
        tmp_path, pair(f"<axis><limit>{limit}</limit><dynamics>{dynamics}</dynamics></axis>")
    )
    spec = scene.joint("b")
    assert (spec.lower, spec.upper, spec.velocity, spec.effort) == (-1, 2, 3, np.inf)
    assert (spec.damping, spec.friction) == (0.1, 0.2)
    assert notes == ["4: the spring of the joint 'j' is omitted"]
    free, _ = read(
        tmp_path, pair("<axis><limit><lower>-1e16</lower><upper>1e16</upper></limit></axis>")
    )
    assert free.joint("b").type == "continuous"


@pytest.mark.parametrize(
    ("version", "content", "direction"),
    [
        ("1.4", "<axis><xyz>0 0 1</xyz></axis>", [0, 0, 1]),  # in the model's frame
        (
            "1.6",
            "<axis><xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>",
            [0, 0, 1],
        ),
        ("1.6", "<axis><xyz>0 0 1</xyz></axis>", [0, 0, -1]),  # in the joint's
        ("1.9", '<axis><xyz expressed_in="a">0 0 1</xyz></axis>', [0, 0, 1]),
    ],
)
def test_frames_of_axes(tmp_path: Path, version: str, content: str, direction: list[float]) -> None:
    """The frame of an axis depends on the version and on the file."""
    scene, _ = read(tmp_path, pair(content, version=version))
    assert scene.pose("b", q=[0]).rotation @ scene.joint("b").axis == pytest.approx(
        direction, abs=1e-9
    )


def test_a_screw_slides_as_it_turns(tmp_path: Path) -> None:
    """The slide has the pitch [m per revolution]; the older element has [rad/m]."""
    for pitch in (
        "<screw_thread_pitch>0.5</screw_thread_pitch>",
        f"<thread_pitch>{-4 * np.pi}</thread_pitch>",
    ):
        scene, _ = read(tmp_path, pair(f"<axis/>{pitch}", "screw"))
        assert scene.joint_names == ("j",)
        pose = scene.pose("b", q=[np.pi / 2])
        # along the child's z, which is down
        assert pose.translation == pytest.approx([0, 0, 1 - 0.125])
        assert pose.apply([1, 0, 0]) == pytest.approx([0, -1, 0.875])


def test_universal_joints_turn_about_two_axes(tmp_path: Path) -> None:
    """The first axis of a universal joint is fixed in the parent."""
    scene, _ = read(
        tmp_path, pair("<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>", "universal")
    )
    assert scene.joint_names == ("j/axis", "j/axis2")
    turn = Rotation.from_euler("x", np.pi) * Rotation.from_euler("XY", [0.3, 0.4])
    assert scene.pose("b", q=[0.3, 0.4]).rotation == pytest.approx(turn.as_matrix())


def test_mimicking_joints(tmp_path: Path) -> None:
    """The rule is ``multiplier * (leader - reference) + offset``; a leader must move."""
    rule = "<multiplier>2</multiplier><offset>0.1</offset><reference>0.3</reference>"
    rule = f'<axis><mimic joint="{{}}">{rule}</mimic></axis>'
    links = "".join(f"<link name='{name}'/>" for name in "abcd")
    lead = joint("prismatic", "a", "b", name="lead") + joint("fixed", "a", "d", name="still")
    scene, _ = read(
        tmp_path, model(links + lead + joint("revolute", "a", "c", rule.format("lead")))
    )
    mimic = scene.joint("c").mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("lead", 2, pytest.approx(0.1 - 0.6))
    scene, notes = read(
        tmp_path, model(links + lead + joint("revolute", "a", "c", rule.format("still")))
    )
    assert scene.joint("c").mimic is None
    assert "the joint to mimic, 'still', is not a joint that moves" in notes[0]


def test_joints_that_close_loops_are_left_out(tmp_path: Path) -> None:
    """The last joint of a loop is omitted, and its links may touch."""
    ball = (
        "<collision name='c'><geometry><sphere><radius>{}</radius></sphere></geometry></collision>"
    )
    links = "".join(f"<link name='{name}'>{ball.format(1)}</link>" for name in "abcd")
    ends = (
        ("revolute", "a", "b"),
        ("revolute", "c", "b"),
        ("revolute", "c", "d"),
        ("revolute", "d", "a"),
    )
    joints = "\n".join(joint(*three, name=f"j{number}") for number, three in enumerate(ends))
    scene, notes = read(tmp_path, model(f"{links}\n{joints}"))
    assert [(name, scene.parent(name)) for name in "abcd"] == [
        ("a", "b"),
        ("b", "c"),
        ("c", "world"),
        ("d", "c"),
    ]
    assert notes[:2] == [
        "4: the joint 'j0' is reversed: its child is above",
        "7: the joint 'j3' closes a loop, and is omitted",
    ]
    assert all(scene.is_allowed(first, other) for first, other in ("ab", "bc", "cd", "da"))


# --- shapes and masses


def test_shapes_of_links(tmp_path: Path) -> None:
    """Equal visual and collision shapes are merged; unsupported shapes are omitted."""
    (tmp_path / "tip.obj").write_text(TIP)
    look = "<transparency>0.5</transparency><material><diffuse>1 0 0 1</diffuse></material>"
    rough = "<surface><friction><ode><mu>0.7</mu></ode></friction></surface>"
    shapes = {
        "box": "<size>1 2 3</size>",
        "sphere": "<radius>1</radius>",
        "cone": "<radius>1</radius><length>2</length>",
        "cylinder": "<radius>1</radius><length>2</length>",
        "capsule": "<radius>1</radius><length>2</length>",
        "ellipsoid": "<radii>1 2 3</radii>",
        "plane": "<normal>0 0 1</normal><size>1 1</size>",
        "mesh": "<uri>tip.obj</uri><scale>2 2 2</scale>",
        "heightmap": "<uri>ground.png</uri>",
        "empty": "",
    }
    texts = [
        f"<visual name='v{number}'><geometry><{kind}>{content}</{kind}></geometry>{look}</visual>\n"
        f"<collision name='c{number}'><geometry><{kind}>{content}</{kind}></geometry>"
        f"{rough}</collision>\n"
        for number, (kind, content) in enumerate(shapes.items())
    ]
    scene, notes = read(tmp_path, model(f"<link name='l'>\n{''.join(texts)}</link>"))
    parts = scene.shapes("l")
    kinds = ["box", "sphere", "cone", "cylinder", "capsule", "mesh", "plane", "mesh"]
    assert [part.shape.kind for part in parts] == kinds
    assert all(part.visual and part.collision and part.friction == 0.7 for part in parts)
    assert {part.color for part in parts} == {(1, 0, 0, 0.5)}
    assert parts[0].shape.dimensions == (1, 2, 3)
    assert parts[5].shape.bounds[1] == pytest.approx([1, 2, 3], rel=0.02)
    assert parts[7].shape.bounds[1].tolist() == [2, 2, 2]
    assert [note.split(", and")[0] for note in notes] == [
        "20: <heightmap> has no part in a scene",
        "14: the ellipsoid is read as a mesh of 320 triangles",
        "15: the ellipsoid is read as a mesh of 320 triangles",
    ]


def test_parts_of_mesh_files(tmp_path: Path) -> None:
    """A submesh is read at its position or centred; an unknown name is rejected."""
    parts: Any = trimesh.Scene()
    parts.add_geometry(trimesh.creation.box([1, 1, 1]), geom_name="lid", node_name="lid")
    distant_box = trimesh.creation.box([1, 2, 3]).apply_translation([5, 6, 7])
    parts.add_geometry(distant_box, geom_name="body", node_name="body")
    parts.export(tmp_path / "jar.glb")
    mesh = "<mesh><uri>jar.glb</uri><submesh><name>{}</name><center>{}</center></submesh></mesh>"
    text = f"<link name='l'><collision name='c'><geometry>{mesh}</geometry></collision></link>"
    scene, _ = read(tmp_path, model(text.format("body", 0)))
    assert scene.shapes("l")[0].shape.bounds == pytest.approx(
        np.array([[4.5, 5, 5.5], [5.5, 7, 8.5]])
    )
    scene, _ = read(tmp_path, model(text.format("body", 1)))
    assert scene.shapes("l")[0].shape.bounds[1] == pytest.approx([0.5, 1, 1.5])
    assert scene_from_dict(scene_to_dict(scene)) == scene
    with pytest.raises(MeshError, match="the mesh has no part 'boddy'"):
        read(tmp_path, model(text.format("boddy", 0)))


def test_masses_of_shapes(tmp_path: Path) -> None:
    """An ``auto`` mass has the density of the link, or that of water."""
    box = (
        "<collision name='c'><pose>0 0 1 0 0 0</pose><geometry><box><size>1 1"
        " 2</size></box></geometry></collision>"
    )
    for density, mass in (("", 2000), ("<density>3</density>", 6)):
        text = f"<link name='l'>{box}<inertial auto='true'>{density}</inertial></link>"
        scene, notes = read(tmp_path, model(text))
        inertia = scene.inertia("l")
        assert inertia is not None
        assert (inertia.mass, inertia.center.tolist()) == (mass, [0, 0, 1])
        assert len(notes) == 1


def test_gearboxes_are_turns(tmp_path: Path) -> None:
    """A gearbox is read as a revolute joint, with a note."""
    content = "<gearbox_ratio>2</gearbox_ratio><axis><xyz>0 0 1</xyz></axis>"
    scene, notes = read(tmp_path, pair(content, "gearbox"))
    assert scene.joint("b").type == "continuous"
    assert "its reference body does not drive it" in notes[0]


def test_poses_of_parts_may_be_relative_to_frames(tmp_path: Path) -> None:
    """Poses of shapes and inertias may be relative to other frames and rotated."""
    shape = "<geometry><sphere><radius>1</radius></sphere></geometry>"
    part = f'<collision name="c"><pose relative_to="b">0 0 1 0 0 0</pose>{shape}</collision>'
    inertia = "<ixx>1</ixx><iyy>2</iyy><izz>2.5</izz>"
    inertial = (
        "<inertial><pose>1 0 0 0 0"
        f" {np.pi / 2}</pose><mass>3</mass><inertia>{inertia}</inertia></inertial>"
    )
    links = (
        f'<link name="a">{part}{inertial}</link><link name="b"><pose>0 1 0 {np.pi / 2} 0'
        " 0</pose></link>"
    )
    scene, _ = read(tmp_path, model(links))
    assert scene.shapes("a")[0].pose.translation == pytest.approx([0, 0, 0], abs=1e-12)
    inertia = scene.inertia("a")
    assert inertia is not None
    assert (inertia.mass, inertia.center.tolist()) == (3, [1, 0, 0])
    assert np.diag(inertia.matrix) == pytest.approx([2, 1, 2.5])


def test_inertias_that_no_solid_has_are_those_of_points(tmp_path: Path) -> None:
    """An impossible inertia becomes that of a point mass, with a note."""
    moments = "<inertia><ixx>-1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
    bad = f"<inertial><mass>2</mass>{moments}</inertial>"
    scene, notes = read(tmp_path, model(f"<link name='l'>{bad}</link>"))
    inertia = scene.inertia("l")
    assert inertia is not None
    assert (inertia.mass, inertia.matrix.any()) == (2, False)
    reason = "invalid inertia: the inertia matrix must be positive semi-definite"
    assert notes == [f"3: 'l': {reason}; it is taken as that of a point mass"]


def test_what_is_no_part_of_a_scene_is_noted(tmp_path: Path) -> None:
    """Omitted elements are noted with a count, and unknown ones with the nearest name."""
    text = (
        "<link name='l'><sensor name='s' type='ray'/><sensor name='t'"
        " type='ray'/><colision/></link><plugin name='p'/>"
    )
    _, notes = read(tmp_path, model(text))
    assert notes == [
        "3: <sensor> has no part in a scene, and is omitted (2 in all)",
        "3: <plugin> has no part in a scene, and is omitted (1 in all)",
        "3: <colision> of <link> is not read; did you mean 'collision'?",
    ]


# --- bad files

LINKS = "<link name='upper'/>\n<link name='lower'/>\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<sdf version='2.1'/>", 1, r"unknown version of SDF '2.1', expected 1.3 to 1.12"),
        ("<sdf/>", 1, "<sdf> needs the attribute 'version'"),
        ("<sdf version='1.9'/>", 1, "has neither a world nor a model"),
        ("<robot/>", 1, "expected <sdf> as the outermost element"),
        (
            model(LINKS + joint("revolute", "uper", "lower")),
            5,
            "no frame 'uper' in this model; did you mean 'upper'",
        ),
        (
            model(LINKS + joint("revolut", "upper", "lower")),
            5,
            "unknown type 'revolut'; did you mean 'revolute'",
        ),
        (
            model(LINKS + joint("fixed", "upper", "lower", "<pose relative_to='lowr'/>")),
            5,
            "did you mean 'lower'",
        ),
        (
            model(LINKS + "<joint name='j' type='fixed'><parent>upper</parent></joint>"),
            5,
            "<joint> needs <child>",
        ),
        (model(LINKS + "<link name='upper'/>"), 5, "the name 'upper' is already declared at .*:3"),
        (model(LINKS + "<frame name='upper'/>"), 5, "the name 'upper' is already declared at .*:3"),
        (model(LINKS + "<link name='__a__'/>"), 5, "the name '__a__' is reserved"),
        (model(LINKS + "<link/>"), 5, "<link> needs the attribute 'name'"),
        (model("<link name='a'><pose>1 2</pose></link>"), 3, "expected 6 numbers, received '1 2'"),
        (model("<link name='a'><pose rotation_format='quat'/></link>"), 3, None),
        (
            model("<link name='a'><pose rotation_format='quat'>0</pose></link>"),
            3,
            "unknown rotation format 'quat'",
        ),
        (
            model("<link name='a'><pose rotation_format='quat_xyzw'>0 0 0 0 0 0 0</pose></link>"),
            3,
            "is zero",
        ),
        (
            model("<link name='a'><pose degrees='yes'>0 0 0 0 0 0</pose></link>"),
            3,
            "expected true or false",
        ),
        (
            model(
                "<frame name='a'><pose relative_to='b'/></frame>\n<frame name='b'><pose"
                " relative_to='a'/></frame>"
            ),
            None,
            "frames are placed in a cycle: [ab] -> [ab] -> [ab]",
        ),
        (
            model("<link name='l'/><frame name='a' attached_to='a'/>"),
            3,
            "frames are attached in a cycle: a -> a",
        ),
        (
            model(LINKS + joint("revolute", "upper", "lower", "<axis><xyz>0 0 0</xyz></axis>")),
            5,
            "received zeros",
        ),
        (
            model(LINKS + joint("screw", "upper", "lower", "<thread_pitch>0</thread_pitch>")),
            5,
            "other than 0",
        ),
        (
            model(
                "<link name='l'><collision name='c'><geometry><bx/></geometry></collision></link>"
            ),
            3,
            "expected one of .*, received <bx>; did you mean 'box'",
        ),
        (
            model(
                "<link name='l'><collision name='c'><geometry><ellipsoid><radii>1 0"
                " 1</radii></ellipsoid></geometry></collision></link>"
            ),
            3,
            "expected numbers above 0",
        ),
        (
            model(
                "<link name='l'><collision"
                " name='c'><geometry><mesh><uri>no.obj</uri></mesh></geometry></collision></link>"
            ),
            3,
            "there is no file 'no.obj'",
        ),
    ],
)
def test_bad_files_are_refused(
    tmp_path: Path, text: str, line: int | None, message: str | None
) -> None:
    """Errors have the line, the expected value and the nearest name."""
    if message is None:  # an empty pose is the identity in any frame
        read(tmp_path, text)
        return
    with pytest.raises(FileFormatError, match=message) as caught:
        read(tmp_path, text)
    if line is not None:
        assert caught.value.data["line"] == line


def test_names_of_old_versions(tmp_path: Path) -> None:
    """A link and a joint may share a name; a link ``world`` without a shape is the world."""
    text = "<link name='world'/><link name='a'/>" + joint("revolute", "world", "a", name="a")
    scene, notes = read(tmp_path, model(text, version="1.6"))
    assert (scene.parent("a"), scene.joint("a").type) == ("world", "continuous")
    assert notes == ["3: the name 'world' is reserved in SDF; this link is taken as the world"]
    with pytest.raises(FileFormatError, match="reserved"):
        read(tmp_path, model(text))


def test_files_that_would_grow_are_refused(tmp_path: Path) -> None:
    """Exponential includes and endless nesting are rejected."""
    for number in range(30):
        twice = "".join(
            f"<include><uri>m{number + 1}.sdf</uri><name>{n}</name></include>" for n in "ab"
        )
        (tmp_path / f"m{number}.sdf").write_text(model(twice))
    (tmp_path / "m30.sdf").write_text(model("<link name='l'/>"))
    with pytest.raises(FileFormatError, match="more than 5000 frames"):
        load_scene(tmp_path / "m0.sdf", reading=ReadingOptions(limits=ReadingLimits(frames=5000)))
    deep = (
        "".join(f"<model name='m{n}'>" for n in range(100)) + "<link name='l'/>" + "</model>" * 100
    )
    with pytest.raises(FileFormatError, match="models are nested more than 64 deep"):
        read(tmp_path, model(deep))


def test_long_chains_of_frames(tmp_path: Path) -> None:
    """The depth of relative frames has no limit."""
    chain = (
        f"<frame name='f{n}' attached_to='f{n + 1}'><pose>0 0 0.5 0 0 0</pose></frame>"
        for n in range(3000)
    )
    scene, _ = read(
        tmp_path,
        model("<link name='l'/>" + "".join(itertools.chain(chain, ["<frame name='f3000'/>"]))),
    )
    assert scene.pose("f0").translation.tolist() == [0, 0, 1500]
