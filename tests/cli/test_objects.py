"""``tmkit object add``: scene files of meshes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import trimesh
from support.commands import tmkit
from support.meshes import l_mesh

import tmkit as tk

pytest.importorskip("coacd")


def test_a_mesh_becomes_an_object(tmp_path: Path) -> None:
    """The object has pieces, mass and friction, and stands on its most stable upright face."""
    shape = l_mesh()
    lines = [f"v {x} {y} {z}" for x, y, z in 100.0 * shape.vertices]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in shape.faces]
    (tmp_path / "2 my part.obj").write_text("\n".join(lines), encoding="utf-8")
    cache = {"TMKIT_CACHE": str(tmp_path / "cache")}
    arguments = [
        "object",
        "add",
        "2 my part.obj",
        "--scale",
        "0.01",
        "--mass",
        "0.4",
        "--friction",
        "0.9",
    ]
    outcome = tmkit(tmp_path, *arguments, "--picture", "part.png", "--json", **cache)
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["size in mm"] == [120.0, 40.0, 120.0]
    assert report["mass in kg"] == 0.4
    assert report["grasps of panda"] > 20
    assert (tmp_path / "part.png").stat().st_size > 1000
    scene = tk.load_scene(tmp_path / "o2_my_part.json")
    pieces = [part for part in scene.shapes("o2_my_part") if part.collision]
    assert len(pieces) == report["convex pieces"] >= 2
    assert {part.friction for part in pieces} == {0.9}
    inertia = scene.inertia("o2_my_part")
    assert inertia is not None
    assert inertia.mass == pytest.approx(0.4)
    assert inertia.center == pytest.approx([0.044, 0.02, 0.044], abs=1e-3)
    assert scene.classes("o2_my_part") == ("movable",)


def test_an_object_may_have_the_name_of_a_frame_of_the_arms_scene(tmp_path: Path) -> None:
    """The scene in which grasps are counted also has a frame ``table``."""
    trimesh.creation.box([0.05, 0.05, 0.05]).export(tmp_path / "table.stl")
    outcome = tmkit(
        tmp_path, "object", "add", "table.stl", "--json", TMKIT_CACHE=str(tmp_path / "cache")
    )
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["grasps of panda"] > 20
    assert "table" in tk.load_scene(tmp_path / "table.json")


def test_too_many_pieces_are_rejected_with_the_options(tmp_path: Path) -> None:
    """An L is two boxes; one piece exceeds four times the error limit."""
    trimesh.Trimesh(l_mesh().vertices, l_mesh().faces).export(tmp_path / "l.stl")
    arguments = ["object", "add", "l.stl", "--max-pieces", "1"]
    outcome = tmkit(tmp_path, *arguments, TMKIT_CACHE=str(tmp_path / "cache"))
    assert outcome.code == 2
    assert "needs more than 1 convex pieces to be right within 8 mm" in outcome.err
    assert "such as 16 mm, or more max_pieces" in outcome.err


def test_a_missing_mesh_is_one_sentence(tmp_path: Path) -> None:
    """The message names the missing file."""
    outcome = tmkit(tmp_path, "object", "add", "none.obj")
    assert outcome.code == 2
    assert "none.obj" in outcome.err


URDF = """<robot name="r"><link name="base"><contact><lateral_friction value="0.9"/></contact>
<inertial><mass value="0.2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><origin xyz="0.01 0 0" rpy="0 0 1.5707963"/>
<geometry><box size="0.1 0.04 0.03"/></geometry></collision>
</link>LIMB</robot>"""


def test_a_urdf_without_joints_becomes_an_object(tmp_path: Path) -> None:
    """Its mass is spread over its shapes, without the moments of the file; a joint is rejected."""
    (tmp_path / "bar.urdf").write_text(URDF.replace("LIMB", ""), encoding="utf-8")
    outcome = tmkit(tmp_path, "object", "add", "bar.urdf", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert (report["size in mm"], report["mass in kg"], report["convex pieces"]) == (
        [40.0, 100.0, 30.0],
        0.2,
        1,
    )
    scene = tk.load_scene(tmp_path / "bar.json")
    inertia = scene.inertia("bar")
    assert inertia is not None
    assert inertia.center == pytest.approx([0.01, 0.0, 0.0])
    assert inertia.matrix[2, 2] == pytest.approx(0.2 / 12.0 * (0.1**2 + 0.04**2), rel=1e-3)
    assert scene.local_pose("bar").translation[2] == pytest.approx(0.015)
    limb = (
        '<link name="limb"/><joint name="j" type="continuous"><parent link="base"/><child'
        ' link="limb"/></joint>'
    )
    (tmp_path / "bar.urdf").write_text(URDF.replace("LIMB", limb), encoding="utf-8")
    outcome = tmkit(tmp_path, "object", "add", "bar.urdf")
    assert outcome.code == 2
    assert "'limb' has a joint, and an object is one rigid body" in outcome.err


def test_an_object_that_the_hand_cannot_grasp_is_rejected_early(tmp_path: Path) -> None:
    """By its mass, with the size that shows a wrong unit, and by its width."""
    trimesh.creation.box([1.0, 1.0, 0.5]).export(tmp_path / "table.stl")
    outcome = tmkit(tmp_path, "object", "add", "table.stl")
    assert outcome.code == 2
    assert "'table', 1000 x 1000 x 500 mm, is not an object for arm 'panda'" in outcome.err
    assert "its volume times 500 kg/m^3 is 250 kg, and the arm carries 3 kg" in outcome.err
    outcome = tmkit(tmp_path, "object", "add", "table.stl", "--scale", "0.2", "--mass", "1")
    assert outcome.code == 2
    assert "no two opposite sides of it are at most" in outcome.err


def test_an_object_stands_where_the_hand_has_room(tmp_path: Path) -> None:
    """A disc wider than the hand stands on its edge, z up; one that is too round is rejected.

    A wide thin one lies flat on the table, so no grasp has room there.
    """
    for sides in (10, 180):
        trimesh.creation.cylinder(0.045, 0.02, sections=sides).export(tmp_path / f"disc{sides}.stl")
    outcome = tmkit(
        tmp_path, "object", "add", "disc10.stl", "--json", TMKIT_CACHE=str(tmp_path / "cache")
    )
    assert outcome.code == 0, outcome.err
    scene = tk.load_scene(tmp_path / "disc10.json")
    pose, inertia = scene.local_pose("disc10"), scene.inertia("disc10")
    assert inertia is not None
    assert pose.quat_xyzw == pytest.approx([0.0, 0.0, 0.0, 1.0])
    assert pose.translation[2] == pytest.approx(0.045 * math.cos(math.pi / 10), abs=1e-4)
    assert inertia.matrix[2, 2] < max(inertia.matrix[0, 0], inertia.matrix[1, 1])
    outcome = tmkit(tmp_path, "object", "add", "disc180.stl", TMKIT_CACHE=str(tmp_path / "cache"))
    assert outcome.code == 2
    assert (
        "in none of its 2 stable poses it can be taken from a table: with +z up, all" in outcome.err
    )
    assert "grasps of 'disc180' collide with 'table'" in outcome.err
