"""Colours of materials from mesh files to shapes, JSON and pickles."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from formats.mesh.test_gltf import document, glb

import tmkit as tk
from tmkit.formats import load_scene, write_json_scene
from tmkit.formats.mesh.materials import MAX_COLORS, UNSPECIFIED, pack_color, unpack_color
from tmkit.formats.mesh.meshes import MeshLoader, read_mesh
from tmkit.formats.spec.parts import MeshSpec

RED = (0.8, 0.2, 0.0, 1.0)
BLUE = (0.0, 0.2, 1.0, 1.0)
OBJ = (
    "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nusemtl red\nf 1 3 2\nf 1 2 4\nusemtl blue\nf 1 4 3\nf 2"
    " 3 4\n"
)
MTL = "newmtl red\nKd 0.8 0.2 0.0\nnewmtl blue\nKd 0.0 0.2 1.0\nd 1.0\n"
URDF = """<robot name="r"><material name="green"><color rgba="0 1 0 1"/></material>
<link name="base"><visual><geometry><mesh filename="a.obj"/></geometry>{material}</visual>
<collision><geometry><mesh filename="a.obj"/></geometry></collision></link></robot>"""


def write(folder: Path, *, obj: str = OBJ, mtl: str = MTL, material: str = "") -> Path:
    """Write a robot of one mesh with its materials."""
    (folder / "a.obj").write_text("mtllib a.mtl\n" + obj)
    (folder / "a.mtl").write_text(mtl)
    (folder / "r.urdf").write_text(URDF.format(material=material))
    return folder / "r.urdf"


def colors(path: Path) -> list[tuple[float, ...]]:
    """Return the colours of a mesh file in the order of its faces."""
    return [unpack_color(color) for color in read_mesh(path).palette() if color != UNSPECIFIED]


@pytest.mark.parametrize("color", [RED, BLUE, (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 0.5)])
def test_colours_are_kept_to_a_byte(color: tuple[float, ...]) -> None:
    """Packed colours are exact to 1/255; linear light becomes sRGB by IEC 61966-2-1."""
    assert unpack_color(pack_color(color)) == pytest.approx(color, abs=0.5 / 255 + 1e-4)
    assert unpack_color(pack_color([0.2140, 0.0031308, 1.0], is_linear=True)) == pytest.approx(
        [0.5, 0.04045, 1.0, 1.0], abs=0.003
    )


@pytest.mark.parametrize(
    "wrong", [(1.0, 0.0), (0.1, "x", 0.2), (2.0, 0.0, 0.0), (float("nan"), 0.0, 0.0), (0, 0, 0, 0)]
)
def test_what_is_no_colour_leaves_it_open(wrong: tuple[object, ...]) -> None:
    """Too few numbers, words, numbers out of range and full transparency are no colours."""
    assert pack_color(wrong) == UNSPECIFIED


def test_a_mesh_of_two_colours_is_drawn_as_two_shapes_and_collides_as_one(tmp_path: Path) -> None:
    """Visual shapes have the file's colours, which override the robot's; the solid is one mesh."""
    for material in ("", '<material name="green"/>'):
        shapes = load_scene(write(tmp_path, material=material)).shapes("base")
        drawn, solid = [s for s in shapes if s.visual], [s for s in shapes if s.collision]
        assert {tuple(np.round(s.color, 3)) for s in drawn} == {RED, BLUE}
        assert [len(s.shape.faces) for s in drawn] == [2, 2]
        assert len(solid) == 1
        assert len(solid[0].shape.faces) == 4
        assert not any(s.collision for s in drawn)


def test_one_colour_of_a_file_gives_way_to_that_of_the_robot(tmp_path: Path) -> None:
    """A file of one colour stays one shape; its colour counts where the description has none."""
    one = OBJ.replace("usemtl blue\n", "")
    (alone,) = load_scene(write(tmp_path, obj=one)).shapes("base")
    assert alone.collision
    assert alone.color == pytest.approx(RED, abs=1e-4)
    (shape,) = load_scene(write(tmp_path, obj=one, material='<material name="green"/>')).shapes(
        "base"
    )
    assert shape.color == (0.0, 1.0, 0.0, 1.0)


def test_colours_survive_json_and_pickles(tmp_path: Path) -> None:
    """Written and pickled scenes have the same coloured shapes, including the Panda."""
    for scene in (load_scene(write(tmp_path)), tk.load_scene("panda_alone")):
        write_json_scene(scene, tmp_path / "scene.json")
        for again in (load_scene(tmp_path / "scene.json"), pickle.loads(pickle.dumps(scene))):
            assert again == scene
            for frame in scene.frame_names:
                assert [s.color for s in again.shapes(frame)] == [
                    s.color for s in scene.shapes(frame)
                ]
    text = json.dumps(json.loads((tmp_path / "scene.json").read_text()))
    assert "meshes/visual/link0.glb#part=1" in text  # by name, without arrays
    assert "vertices" not in text


def test_materials_of_collada_and_gltf(tmp_path: Path) -> None:
    """Plain colours of both are read; the UR5's wrist is black, grey and blue."""
    primitives = [
        {"attributes": {"POSITION": 0}, "indices": 1, "material": number} for number in (0, 1, 2, 7)
    ]
    looks = [
        {"pbrMetallicRoughness": {"baseColorFactor": [0.0, 0.0, 1.0, 1.0]}},
        {
            "pbrMetallicRoughness": {
                "baseColorFactor": [1.0, 0.0, 0.0, 1.0],
                "baseColorTexture": {"index": 0},
            }
        },
        {"pbrMetallicRoughness": {"baseColorFactor": [0.0, 0.2140, 0.0, 1.0]}},
    ]
    path = glb(tmp_path / "a.glb", document(meshes=[{"primitives": primitives}], materials=looks))
    assert colors(path) == [(0.0, 0.0, 1.0, 1.0), (0.0, 0.498, 0.0, 1.0)]
    wrist = MeshLoader().packages.find(
        "package://example-robot-data/robots/ur_description/meshes/ur5/visual/wrist1.dae"
    )
    assert wrist is not None
    expected = [(0.0512,) * 3, (0.14272,) * 3, (0.25088, 0.34752, 0.4096)]
    assert [color[:3] for color in colors(wrist)] == [
        pytest.approx(color, abs=0.003) for color in expected
    ]


def test_broken_materials_cost_no_triangle(tmp_path: Path) -> None:
    """A missing, invalid, textured or distant material leaves the mesh without a colour."""
    whole = read_mesh(write(tmp_path).with_name("a.obj"))
    (tmp_path / "inner").mkdir()
    for mtl in (
        "",
        "newmtl\nKd\n",
        "Kd 1 0 0\nnewmtl red\nKd a b c",
        MTL.replace("Kd", "map_Kd x.png\nKd"),
    ):
        mesh = read_mesh(write(tmp_path, mtl=mtl).with_name("a.obj"))
        assert np.array_equal(mesh.faces, whole.faces)
        assert np.array_equal(mesh.vertices, whole.vertices)
        assert mesh.palette() == [UNSPECIFIED]
    write(tmp_path)
    for file in ("../a.mtl", str(tmp_path / "a.mtl"), "../a.obj"):
        (tmp_path / "inner" / "a.obj").write_text(f"mtllib {file}\n{OBJ}")
        assert read_mesh(tmp_path / "inner" / "a.obj").palette() == [UNSPECIFIED]


def test_many_colours_become_few(tmp_path: Path) -> None:
    """Beyond the limit, the colours of fewest triangles become the nearest of the others."""
    count = MAX_COLORS + 1
    obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    for number in range(count):
        obj += f"usemtl m{number}\n" + "f 1 2 3\nf 1 2 4\n" * (1 if number == 0 else 2)
    mtl = "".join(f"newmtl m{number}\nKd {number / 10} 0 0\n" for number in range(count))
    mesh = read_mesh(write(tmp_path, obj=obj, mtl=mtl).with_name("a.obj"))
    assert len(mesh.palette()) == MAX_COLORS
    assert min(unpack_color(color)[0] for color in mesh.palette()) == pytest.approx(0.1, abs=0.003)
    assert len(mesh.faces) == 2 + 4 * (count - 1)


def test_a_part_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    """A part is a number of the file's colours."""
    write(tmp_path)
    with pytest.raises(tk.errors.MeshError, match="the mesh has 2 colours, so there is no part 2"):
        MeshLoader().load(MeshSpec(tmp_path / "a.obj", part=2))


def test_contained_descriptions_have_their_licences() -> None:
    """Each included description has its licence; the Panda is white with dark joints."""
    folders = [
        path for package in tk.data_path("scenes/packages").iterdir() for path in package.iterdir()
    ]
    assert folders
    for folder in folders:
        assert "Apache License" in (folder / "LICENSE.txt").read_text()
    scene = tk.load_scene("panda_alone")
    for frame in ("panda_link0", "panda_link6", "panda_link7", "panda_hand"):
        colors_of_frame = {
            tuple(np.round(part.color, 1)[:3]) for part in scene.shapes(frame) if part.visual
        }
        assert {(0.3, 0.3, 0.3), (1.0, 1.0, 1.0)} <= colors_of_frame, frame
