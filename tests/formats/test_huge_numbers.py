"""Numbers near the ends of the range of floats: files are read or rejected, without a warning.

Every number of a file is replaced in turn, then all of them. No number of a scene is infinite.
Warnings are errors.
"""

from __future__ import annotations

import base64
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.processes import run_process

from tmkit.errors import TmkitError
from tmkit.formats import load_scene
from tmkit.graph import SceneGraph

NUMBER = re.compile(r"(?<![\w.\-])-?\d+\.\d+(?![\w.])")
VALUES = ("-1.7e308", "1e155", "1e-320")
OBJ = (
    "v 0.1 0.2 0.3\nv 1.5 0.2 0.3\nv 0.1 1.5 0.3\nv 0.1 0.2 1.5\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2"
    " 3 4\n"
)
FACES = bytes([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3])
BUFFER = base64.b64encode(struct.pack("<12f", 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1) + FACES).decode()
INERTIAL = """<inertial><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><mass value="1.5"/>
<inertia ixx="1.1" iyy="1.2" izz="1.3" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>"""
FILES = {
    "urdf": (
        f"""<robot name="r"><link name="a">{INERTIAL}
<visual><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry><box size="0.1 0.2 0.3"/></geometry>
<material name="m"><color rgba="0.1 0.2 0.3 0.4"/></material></visual>
<collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
<collision><geometry><mesh filename="t.obj" scale="1.1 1.2 1.3"/></geometry></collision></link>
<link name="b"/><link name="c"/><joint name="j" type="revolute">
<origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/>
<axis xyz="0.1 0.2 0.3"/><parent link="a"/><child link="b"/>
<limit lower="-1.5" upper="1.5" effort="10.5" velocity="2.5"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<joint name="k" type="prismatic"><axis xyz="1 0 0"/><parent link="b"/><child link="c"/>
<limit lower="-1.5" upper="1.5" effort="10.5" velocity="2.5"/>
<mimic joint="j" multiplier="1.5" offset="0.5"/></joint>
</robot>"""
    ),
    "sdf": (
        """<sdf version="1.9"><model name="m"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><link name="l">
<pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><inertial><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><mass>1.5</mass>
<inertia><ixx>1.1</ixx><iyy>1.2</iyy><izz>1.3</izz><ixy>0.01</ixy></inertia></inertial>
<visual name="v"><pose>0.1 0.2 0.3 0 0 0</pose><geometry><box><size>0.1 0.2 0.3</size></box>
</geometry></visual>
<collision name="c"><geometry><ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid></geometry>
<surface><friction><ode><mu>0.5</mu></ode></friction></surface></collision>
<collision name="d"><geometry><cone><radius>0.1</radius><length>0.2</length></cone></geometry>
</collision>
<collision name="p"><geometry><plane><normal>0.1 0.2 0.9</normal><size>1 1</size></plane>
</geometry></collision></link>
<link name="n"/><joint name="j" type="screw"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>
<parent>l</parent><child>n</child>
<screw_thread_pitch>0.5</screw_thread_pitch><axis><xyz>0.1 0.2 0.3</xyz><limit>
<lower>-1.5</lower><upper>1.5</upper>
<effort>1.5</effort><velocity>1.5</velocity></limit><dynamics><damping>0.5</damping></dynamics>
</axis></joint>
</model></sdf>"""
    ),
    "robray": (
        """frame a { translation [0.1, 0.2, 0.3]; rpy [0.1, 0.2, 0.3]; geometry { mesh "t.obj"; } }
frame b { parent a; quaternion [0.1, 0.2, 0.3, 0.4];
geometry { shape box; dimension [0.1, 0.2, 0.3]; color [0.1, 0.2, 0.3]; } }"""
    ),
    "xml": (
        """<mujoco><worldbody><body name="b" pos="0.1 0.2 0.3" quat="0.5 0.5 0.5 0.6">
<inertial pos="0.1 0.2 0.3" mass="1.5" diaginertia="1.1 1.2 1.3"/>
<joint name="j" type="hinge" axis="0.1 0.2 0.3" pos="0.1 0.2 0.3" range="-1.5 1.5"
limited="true" damping="0.5"/>
<geom type="box" size="0.1 0.2 0.3" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3" friction="0.5 0.1 0.1"/>
<geom type="capsule" size="0.1" fromto="0.1 0.2 0.3 0.4 0.5 0.6"/></body></worldbody></mujoco>"""
    ),
    "usda": (
        """#usda 1.0
(metersPerUnit = 0.01
 upAxis = "Y")
def Xform "m" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
 float physics:mass = 1.5
 float3 physics:diagonalInertia = (1.1, 1.2, 1.3)
 point3f physics:centerOfMass = (0.1, 0.2, 0.3)
 double3 xformOp:translate = (0.1, 0.2, 0.3)
 float3 xformOp:rotateXYZ = (10.5, 20.5, 30.5)
 float3 xformOp:scale = (1.1, 1.2, 1.3)
 uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]
 def Sphere "s" {
  double radius = 0.1
 }
 def Mesh "t" {
  point3f[] points = [(0.1, 0.2, 0.3), (1.5, 0.2, 0.3), (0.1, 1.5, 0.3), (0.1, 0.2, 1.5)]
  int[] faceVertexCounts = [3, 3, 3, 3]
  int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
 }
}
"""
    ),
    "gltf": """{"asset": {"version": "2"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [
{"name": "a", "children": [1], "matrix": [1.1, 0.1, 0.2, 0.0, 0.1, 1.2, 0.3, 0.0, 0.2, 0.3, 1.3,
0.0,
  0.5, 0.6, 0.7, 1]},
{"name": "b", "children": [2], "translation": [0.1, 0.2, 0.3], "rotation": [0.1, 0.2, 0.3, 0.9],
 "scale": [1.1, 1.2, 1.3]},
{"name": "c", "mesh": 0, "translation": [0.1, 0.2, 0.3]}],
"meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "material": 0}]}],
"materials": [{"pbrMetallicRoughness": {"baseColorFactor": [0.1, 0.2, 0.3, 0.4]}}],
"accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
{"bufferView": 1, "componentType": 5121, "count": 12, "type": "SCALAR"}],
"bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": 48},
{"buffer": 0, "byteOffset": 48, "byteLength": 12}],
"buffers": [{"byteLength": 60, "uri": "data:;base64,BUFFER"}]}""".replace("BUFFER", BUFFER),
    "rsg": (
        """root w
Group w { child t child c }
Transform t { child b transforms { RigidTransform r { value HomogeneousTransformationMatrix (
[1.0, 0.0, 0.0, 0.5 m], [0.0, 1.0, 0.0, 0.6 m], [0.0, 0.0, 1.0, 0.7 m], [0, 0, 0, 1]) } } }
GeometricNode b { geometry ball }
Sphere ball { radius 1.5 cm }
Node c { }
"""
    ),
    "json": (
        """{"allowed": [], "format": "tmkit-scene", "version": 1, "shapes": {}, "frames": [
{"body": "w", "classes": [], "inertia": null, "joint": {"type": "fixed"}, "name": "w",
"parent": null,
 "pose": [0, 0, 0, 0, 0, 0, 1], "shapes": []},
{"body": "a", "classes": [], "inertia": null, "joint": {"type": "revolute",
"axis": [0.1, 0.2, 0.3], "lower": -1.5,
 "upper": 1.5, "name": "j", "mimic": null, "damping": 0.0, "effort": null,
 "friction": 0.0, "velocity": null},
 "name": "a", "parent": "w", "pose": [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5], "shapes": []}]}"""
    ),
    "obj": OBJ,
    "ply": (
        "ply\nformat ascii 1\nelement vertex 4\nproperty float x\nproperty float y\nproperty float"
        " z\nelement face 4\nproperty list uchar int vertex_indices\nend_header\n0.1 0.2 0.3\n1.5"
        " 0.2 0.3\n0.1 1.5 0.3\n0.1 0.2 1.5\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"
    ),
    "dae": (
        """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1"><asset>
          <unit meter="0.01"/>
<up_axis>Y_UP</up_axis></asset><library_geometries><geometry id="g"><mesh><source id="s">
<float_array id="f" count="12">0.1 0.2 0.3 1.5 0.2 0.3 0.1 1.5 0.3 0.1 0.2 1.5</float_array>
<technique_common>
<accessor source="#f" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source><vertices id="v">
<input semantic="POSITION"
source="#s"/></vertices><triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes>
<visual_scene id="w"><node><matrix>1.1 0.1 0.2 0.5 0.1 1.2 0.3 0.6 0.2 0.3 1.3 0.7 0 0 0 1</matrix>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene>
<instance_visual_scene url="#w"/></scene></COLLADA>"""
    ),
}
NEEDS = {"xml": "mujoco", "usda": "pxr"}


def load(folder: Path, kind: str, text: str) -> SceneGraph:
    """Load a file of a kind, or a frame with a mesh of that kind."""
    (folder / f"x.{kind}").write_text(text, encoding="utf-8")
    if kind not in ("obj", "ply", "dae"):
        return load_scene(folder / f"x.{kind}")
    (folder / "m.robray").write_text(
        f'frame a {{ geometry {{ mesh "x.{kind}"; }} }}', encoding="utf-8"
    )
    return load_scene(folder / "m.robray")


def numbers_of(scene: SceneGraph) -> Iterator[float]:
    """Yield the numbers of poses, shapes and inertias."""
    for name in scene.frame_names:
        yield from scene.local_pose(name).as_array().tolist()
        inertia = scene.inertia(name)
        if inertia is not None:
            yield from (inertia.mass, *np.ravel(inertia.center), *np.ravel(inertia.matrix))
        for part in scene.shapes(name):
            yield from part.pose.as_array().tolist()
            yield from np.ravel(getattr(part.shape, "vertices", [])).tolist()


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", FILES)
def test_a_huge_number_is_read_or_rejected(tmp_path: Path, kind: str, value: str) -> None:
    """No warning is raised, errors name the file, and every number of a scene is finite."""
    pytest.importorskip(NEEDS.get(kind, "numpy"))
    (tmp_path / "t.obj").write_text(OBJ, encoding="ascii")
    text = FILES[kind]
    assert len(load(tmp_path, kind, text)) >= 2
    places = [
        match.span()
        for match in NUMBER.finditer(text)
        if "version" not in text[match.start() - 10 : match.start()]
    ]
    outcomes = []
    for chosen in [*([place] for place in places), places]:
        changed = text
        for begin, end in reversed(chosen):
            changed = changed[:begin] + value + changed[end:]
        try:
            scene = load(tmp_path, kind, changed)
        except TmkitError as error:
            assert f"x.{kind}" in str(error)  # noqa: PT017 - a value is as good
            outcomes.append("rejected")
        else:
            assert np.isfinite([*numbers_of(scene)]).all()
            outcomes.append("read")
    assert outcomes


def test_a_command_prints_no_warning(tmp_path: Path) -> None:
    """The standard error of a command has the error alone."""
    (tmp_path / "x.gltf").write_text(
        FILES["gltf"].replace("1.1, 0.1", "1e308, 0.1", 1), encoding="ascii"
    )
    command = [sys.executable, "-m", "tmkit", "scene", "dump", "./x.gltf"]
    ended = run_process(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: x.gltf")
    assert "Warning" not in ended.stderr


@pytest.mark.parametrize("value", VALUES)
def test_a_huge_place_of_a_goal_is_rejected_or_proved_impossible(
    tmp_path: Path, value: str
) -> None:
    """No warning, no internal error: exit code 1 or 2."""
    command = [
        sys.executable,
        "-m",
        "tmkit",
        "plan",
        "panda_table",
        "blocks1",
        "--time-limit",
        "5",
        "-o",
        "p.json",
    ]
    ended = run_process(
        [*command, f"--goal-at=a@table={value},0,0.1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode in (1, 2) if "e-" not in value else ended.returncode in (0, 1, 2), (
        ended.stderr
    )
    assert "Warning" not in ended.stderr
    assert "Traceback" not in ended.stderr
