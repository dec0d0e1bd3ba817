"""Kinematics, notes and errors of MuJoCo models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import FileFormatError
from tmkit.formats import load_scene
from tmkit.graph import SceneGraph

mujoco = pytest.importorskip("mujoco")

ARM = """
<mujoco model="arm">
  <compiler angle="degree" meshdir="parts"/>
  <default><geom rgba="1 0 0 1"/><joint damping="0.5"/></default>
  <asset>
    <mesh file="tip.obj" scale="0.1 0.1 0.1"/>
    <texture name="t" type="2d" builtin="flat" width="2" height="2"/>
    <material name="blue" rgba="0 0 1 0.5" texture="t"/>
    <hfield name="ground" nrow="2" ncol="3" size="1 1 0.5 0.1" elevation="0 0 0 1 1 1"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <geom type="hfield" hfield="ground" pos="5 0 0"/>
    <body name="base" pos="0 0 0.5" euler="10 20 30">
      <inertial pos="0.1 0 0" quat="0 1 0 0" mass="2" diaginertia="0.1 0.2 0.25"/>
      <geom type="cylinder" size="0.1 0.2" group="3"/>
      <geom type="box" size="0.1 0.2 0.3" contype="0" conaffinity="0"
        material="blue" rgba=".5 .5 .5 1"/>
      <body name="arm" pos="0 0 0.3">
        <joint name="turn" axis="0 0 2" range="-90 45" ref="10" frictionloss="0.3"/>
        <joint name="tilt" axis="0 1 0" pos="0.1 0.2 0.3" limited="false"/>
        <joint name="slide" type="slide" axis="1 0 1" range="0 0.5"/>
        <geom type="capsule" size="0.05 0.4" friction="0.8 0.1 0.1"/>
        <body name="tip" pos="1 0 0" quat="0.5 0.5 0.5 0.5">
          <joint name="last" pos="0 0 0.2" range="-10 10"/>
          <geom type="mesh" mesh="tip"/>
          <site name="tool" pos="0 0 0.1" euler="0 90 0"/>
        </body>
      </body>
    </body>
    <body name="ball" pos="1 1 1"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
  </worldbody>
  <contact><exclude body1="base" body2="tip"/></contact>
  <equality><joint joint1="last" joint2="turn" polycoef="0.1 0.5 0 0 0"/>
    <weld body1="ball" body2="tip"/></equality>
  <actuator><motor joint="turn"/><motor joint="tilt"/></actuator>
</mujoco>
"""
TIP = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def arm(folder: Path) -> tuple[SceneGraph, list[str]]:
    """Return the arm and the notes about it."""
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "tip.obj").write_text(TIP)
    (folder / "arm.xml").write_text(ARM)
    notes: list[str] = []
    return (
        load_scene(
            folder / "arm.xml", on_note=lambda note: notes.append(f"{note.line}: {note.text}")
        ),
        notes,
    )


@given(st.floats(-1.5, 0.7), st.floats(-6, 6), st.floats(0, 0.5))
@settings(max_examples=scaled_examples(0.1))
def test_kinematics_are_mujocos(
    tmp_path_factory: pytest.TempPathFactory, turn: float, tilt: float, slide: float
) -> None:
    """Several joints of a body, away from its origin, and a mimic joint agree with MuJoCo."""
    folder = tmp_path_factory.mktemp("mjcf")
    scene, _ = arm(folder)
    model = mujoco.MjModel.from_xml_path(str(folder / "arm.xml"))
    data = mujoco.MjData(model)
    joint = scene.joint(scene.joint_frame("last"))
    assert joint.mimic is not None
    values = {"turn": turn, "tilt": tilt, "slide": slide}
    values["last"] = joint.mimic.multiplier * turn + joint.mimic.offset
    # the polynomial is in the deviation from ref
    assert values["last"] == pytest.approx(0.1 + 0.5 * (turn - np.deg2rad(10)))
    for name, value in values.items():
        data.qpos[model.joint(name).qposadr] = value
    mujoco.mj_kinematics(model, data)
    q = [values[name] for name in scene.joint_names]
    for body in ("base", "arm", "tip", "ball"):
        pose = scene.pose(body, q=q)
        assert pose.translation == pytest.approx(data.body(body).xpos, abs=1e-9)
        assert pose.rotation == pytest.approx(data.body(body).xmat.reshape(3, 3), abs=1e-9)
    assert scene.pose("tool", q=q).translation == pytest.approx(data.site("tool").xpos, abs=1e-9)


def test_the_content_of_a_model(tmp_path: Path) -> None:
    """Limits, shapes, masses and allowed pairs are read, with a note for each omitted tag."""
    scene, notes = arm(tmp_path)
    assert scene.joint_names == ("turn", "tilt", "slide")
    # "last" is within 10 degrees at 0.1 + 0.5 (turn - 10 degrees).
    ends = [2 * (np.deg2rad(degrees) - 0.1) + np.deg2rad(10) for degrees in (-10, 10)]
    assert scene.joint_limits.tolist() == [pytest.approx(ends), [-np.inf, np.inf], [0, 0.5]]
    own = scene.joint(scene.joint_frame("turn"))
    assert (own.lower, own.upper) == pytest.approx((-np.pi / 2, np.pi / 4))
    turn = scene.joint(scene.joint_frame("turn"))
    assert (turn.damping, turn.friction) == (0.5, 0.3)
    assert scene.joint(scene.joint_frame("tilt")).type == "continuous"
    assert [part.shape.kind for part in scene.shapes("world")] == ["plane", "height_field"]
    solid, drawn = scene.shapes("base")
    assert (solid.shape.dimensions, solid.visual, solid.collision) == ((0.1, 0.4), False, True)
    assert (drawn.shape.dimensions, drawn.visual, drawn.collision) == ((0.2, 0.4, 0.6), True, False)
    assert drawn.color == (0, 0, 1, 0.5)
    (mesh,) = scene.shapes("tip")
    assert (mesh.shape.kind, mesh.level) == ("mesh", "hull")
    inertia = scene.inertia("base")
    assert inertia is not None
    assert inertia.mass == 2
    assert np.diag(inertia.matrix) == pytest.approx([0.1, 0.2, 0.25])
    assert scene.joint("ball").type == "free"
    assert ("base", "tip", "excluded") in scene.allowed_pairs or (
        "tip",
        "base",
        "excluded",
    ) in scene.allowed_pairs
    assert scene.is_allowed("base", "arm")
    assert not scene.is_allowed("ball", "arm")
    assert [note.split(",")[0] for note in notes] == [
        "7: <texture> has no part in a scene",
        "12: <light> has no part in a scene",
        "37: <actuator> has no part in a scene",
        "36: <equality> has no part in a scene",
        "2: the ellipsoid 'geom_6' is read as a mesh of 320 triangles",
    ]


def test_models_include_others(tmp_path: Path) -> None:
    """Includes are relative to the model, and errors name the included file."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "body.xml").write_text(
        '<mujocoinclude><body name="b"><geom type="sphere" size="0.1"/></body></mujocoinclude>'
    )
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="sub/body.xml"/></worldbody></mujoco>')
    assert load_scene(main).shapes("b")[0].shape.kind == "sphere"
    (tmp_path / "sub" / "body.xml").write_text(
        '<mujocoinclude><include file="main.xml"/></mujocoinclude>'
    )
    with pytest.raises(FileFormatError, match=r"body.xml:1: 'main.xml' includes itself"):
        load_scene(main)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<geom type="sphere" size="-1"/>', "MuJoCo rejects the model"),
        ('<geom type="mesh" mesh="no"/>', "MuJoCo rejects the model: .*no"),
        (
            '<replicate count="100000" offset="1 0 0"><geom type="sphere" size="1"/></replicate>',
            "more than 10000",
        ),
        ('<include file="/etc/passwd"/>', "outside the folders|not well-formed|there is no file"),
        ('<include file="gone.xml"/>', "there is no file 'gone.xml'"),
        ("<unknown/>", "rejects the model: .*unrecognized element"),
    ],
)
def test_bad_models_are_rejected(tmp_path: Path, body: str, message: str) -> None:
    """Errors have the name of the file; files outside the allowed folders are not read."""
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco><worldbody><body>{body}</body></worldbody></mujoco>")
    with pytest.raises(FileFormatError, match=message):
        load_scene(path)


def test_meshes_outside_are_not_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files outside the allowed folders are not read through the mesh folder."""
    inner, tmp_path = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("other")
    (tmp_path / "secret.obj").write_text(TIP)
    inner = inner / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "model.xml").write_text(
        f'<mujoco><compiler meshdir="{tmp_path}"/><asset><mesh name="m"'
        ' file="secret.obj"/></asset><worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
    )
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_scene(inner / "model.xml")


def test_inactive_equalities_and_forces(tmp_path: Path) -> None:
    """An inactive equality is omitted; the total effort of actuators is the limit."""
    body = '<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="{}"{}/></body>'
    bodies = body.format("a", ' actuatorfrcrange="-2 3"') + body.format("b", "")
    equality = '<equality><joint joint1="b" joint2="a" active="false"/></equality>'
    path = tmp_path / "r.xml"
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody>{equality}</mujoco>")
    notes: list[str] = []
    scene = load_scene(path, on_note=lambda note: notes.append(note.text))
    assert scene.joint_names == ("a", "b")
    assert scene.effort_limits.tolist() == [3.0, np.inf]
    assert notes == ["the equality by which 'b' follows another, which is not active, is omitted"]
