"""``tmkit object add``: a mesh becomes a scene file that plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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


def test_what_is_no_mesh_is_one_sentence(tmp_path: Path) -> None:
    """A file that is missing is named."""
    outcome = tmkit(tmp_path, "object", "add", "none.obj")
    assert outcome.code == 2
    assert "none.obj" in outcome.err
