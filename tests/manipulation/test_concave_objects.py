"""Convex decomposition of concave meshes in planning, validation and simulation."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support.meshes import CONCAVE_MESHES, circle_outline, l_mesh, square_outline, tub_mesh

import tmkit as tk
from tmkit.formats import quick_pieces as module
from tmkit.manipulation import placements_in_region, with_convex_pieces
from tmkit.spatial import Pose

TOP = 0.025
"""Height of the table top over the table's frame [m]."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))


def _scene(thing: tk.AttachedShape, *, tray: tk.AttachedShape | None = None) -> tk.SceneGraph:
    """Return the Panda with an object that stands on the table, and a tray."""
    tray = (
        tk.AttachedShape(tk.Box([0.25, 0.25, 0.01]), Pose([0.0, 0.0, 0.005]))
        if tray is None
        else tray
    )
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame(
        "tray", "table", pose=Pose([-0.1, 0.3, TOP]), classes=["region"], shapes=[tray]
    )
    pose = Pose([-0.1, -0.2, TOP - float(thing.shape.bounds[0][2]) + 1e-4])
    return scene.add_frame(
        "thing", "table", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[thing]
    )


@pytest.mark.parametrize(("name", "suffix"), [("mug", "obj"), ("brick", "stl")])
def test_a_concave_object_is_planned_validated_and_simulated(
    name: str, suffix: str, tmp_path: Path
) -> None:
    """An object with a wide hull is carried by a wall or handle, in both engines."""
    mesh = CONCAVE_MESHES[name]()
    trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.faces)).export(
        tmp_path / f"thing.{suffix}"
    )
    (tmp_path / "thing.robray").write_text(
        f'frame thing {{ geometry {{ mesh "thing.{suffix}"; }} }}'
    )
    (part,) = tk.load_scene(tmp_path / "thing.robray").shapes("thing")
    scene = _scene(tk.AttachedShape(part.shape, friction=0.8))
    result = tk.plan(scene, domain="kitchen", goal="(on thing tray)")
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan, scene=scene)
    assert report.is_valid, report.problems
    for engine in ("pybullet", "mujoco"):
        played = tk.simulate(result.plan, options=tk.SimulationOptions(world=scene, engine=engine))
        assert played.is_successful, played


def test_places_in_an_open_box_are_on_its_floor() -> None:
    """A box of one mesh has placements on top as a hull, and on its floor in pieces."""
    tray = tub_mesh(square_outline(0.26), square_outline(0.248), height=0.05, floor=0.006)
    scene = _scene(tk.AttachedShape(tk.Box([0.04, 0.04, 0.08])), tray=tk.AttachedShape(tray))
    arm = tk.load_manipulator("panda")
    q = arm.ready_configuration(scene)
    for changed, height in ((scene, 0.09), (with_convex_pieces(scene), 0.046)):
        placements = placements_in_region(
            changed, "thing", "tray", q=q, rng=np.random.default_rng(0), robot=arm
        )
        heights = [
            placement.support_from_object.translation[2]
            for placement in itertools.islice(placements, 20)
        ]
        assert len(heights) == 20
        assert heights == pytest.approx([height] * 20, abs=5e-4)


def test_equal_seeds_give_equal_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces from the disk and with pieces cut anew, the plan has the same bytes."""
    scene = _scene(tk.AttachedShape(CONCAVE_MESHES["brick"](), friction=0.8))
    texts = []
    for cache in ("kept", "kept", "off"):
        monkeypatch.setenv("TMKIT_CACHE", cache if cache == "off" else str(tmp_path / cache))
        result = tk.plan(scene, domain="kitchen", goal="(on thing tray)", seed=2)
        assert result.plan is not None
        tk.save_plan(result.plan, tmp_path / "plan.json")
        texts.append((tmp_path / "plan.json").read_bytes())
    assert texts[0] == texts[1] == texts[2]


def test_a_hull_by_choice_stays_and_is_the_cause() -> None:
    """The level 'hull' keeps the hull, and the explanation has the mesh and the remedy."""
    scene = _scene(tk.AttachedShape(CONCAVE_MESHES["cup"](), level="hull"))
    assert with_convex_pieces(scene) is scene
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(on thing tray)",
        options=tk.PlanningOptions(max_iterations=1),
    )
    assert result.plan is None
    assert (
        "the mesh of 'thing' is concave and collides as its convex hull: remove its level 'hull'"
        in str(result.explanation)
    )


def test_too_many_pieces_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mesh that cannot be cut stays its hull, with a warning and a cause that name the extra."""
    monkeypatch.setattr(module, "MAX_PIECES", 1)
    monkeypatch.setattr(module, "_MAX_BOUND_FACTOR", 1)
    scene = _scene(
        tk.AttachedShape(
            tub_mesh(square_outline(0.12), circle_outline(0.05), height=0.09, floor=0.005)
        )
    )
    assert with_convex_pieces(scene) is scene
    assert "the mesh of 'thing' needs too many convex pieces" in caplog.text
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(on thing tray)",
        options=tk.PlanningOptions(max_iterations=1),
    )
    assert "`tmkit object add` (extra 'formats')" in str(result.explanation)


def test_only_objects_and_supports_are_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """A frame without a class keeps its hull, and a second call has no effect."""
    caplog.set_level(logging.INFO)
    corner = tk.AttachedShape(l_mesh(0.16, 0.05), friction=0.3, color=[1.0, 0.0, 0.0, 1.0])
    scene = _scene(corner, tray=corner).add_frame("link", "world", shapes=[corner])
    scene = scene.add_frame(
        "inside", "thing", shapes=[tk.AttachedShape(corner.shape, visual=False)]
    )
    changed = with_convex_pieces(scene)
    assert changed.shapes("link") == scene.shapes("link")
    assert with_convex_pieces(changed) is changed
    for frame in ("thing", "tray", "inside"):
        mesh, *pieces = changed.shapes(frame)
        assert (mesh.shape, mesh.collision, mesh.visual) == (corner.shape, False, frame != "inside")
        assert [(piece.level, piece.visual) for piece in pieces] == [("hull", False)] * 2
        assert {piece.friction for piece in pieces} == {None if frame == "inside" else 0.3}
    assert "the mesh of 'thing' collides in 2 convex pieces" in caplog.text
