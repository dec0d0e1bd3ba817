"""``tmkit object add``: a mesh becomes a scene file that plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trimesh
from support.commands import tmkit
from support.meshes import l_mesh

import tmkit as tk

pytest.importorskip("coacd")


def test_a_mesh_becomes_an_object(tmp_path: Path) -> None:
    """The file has pieces, mass and friction, stands on its most stable upright face, and a picture is drawn."""
    shape = l_mesh()
    lines = [f"v {x} {y} {z}" for x, y, z in 100.0 * shape.vertices]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in shape.faces]
    (tmp_path / "2 my part.obj").write_text("\n".join(lines), encoding="utf-8")
    cache = {"TMKIT_CACHE": str(tmp_path / "cache")}
    arguments = ["object", "add", "2 my part.obj", "--scale", "0.01", "--mass", "0.4", "--friction", "0.9"]
    outcome = tmkit(tmp_path, *arguments, "--picture", "part.png", "--json", **cache)
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told["size in mm"] == [120.0, 40.0, 120.0]
    assert told["mass in kg"] == 0.4
    assert told["grasps of panda"] > 20
    assert (tmp_path / "part.png").stat().st_size > 1000
    scene = tk.load_scene(tmp_path / "o2_my_part.json")
    pieces = [part for part in scene.shapes("o2_my_part") if part.collision]
    assert len(pieces) == told["convex pieces"] >= 2
    assert {part.friction for part in pieces} == {0.9}
    inertia = scene.inertia("o2_my_part")
    assert inertia is not None
    assert inertia.mass == pytest.approx(0.4)
    assert inertia.center == pytest.approx([0.044, 0.02, 0.044], abs=1e-3)
    assert scene.classes("o2_my_part") == ("movable",)


def test_an_object_may_have_the_name_of_a_frame_of_the_arms_scene(tmp_path: Path) -> None:
    """The scene in which grasps are counted has a ``table`` of its own."""
    trimesh.creation.box([0.05, 0.05, 0.05]).export(tmp_path / "table.stl")
    outcome = tmkit(tmp_path, "object", "add", "table.stl", "--json", TMKIT_CACHE=str(tmp_path / "cache"))
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["grasps of panda"] > 20
    assert "table" in tk.load_scene(tmp_path / "table.json")


def test_too_many_pieces_are_refused_with_what_to_change(tmp_path: Path) -> None:
    """An L is two boxes; one piece is too few within a millimetre."""
    trimesh.Trimesh(l_mesh().vertices, l_mesh().faces).export(tmp_path / "l.stl")
    arguments = ["object", "add", "l.stl", "--max-pieces", "1"]
    outcome = tmkit(tmp_path, *arguments, TMKIT_CACHE=str(tmp_path / "cache"))
    assert outcome.code == 2
    assert "needs more than 1 convex pieces to be right within 1 mm" in outcome.err
    assert "such as 2 mm, or more max_pieces" in outcome.err


def test_what_is_no_mesh_is_one_sentence(tmp_path: Path) -> None:
    """A file that is missing is named."""
    outcome = tmkit(tmp_path, "object", "add", "none.obj")
    assert outcome.code == 2
    assert "none.obj" in outcome.err
