"""Convex pieces of concave meshes: error bound, cache, grasps of walls and handles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support.meshes import cup_mesh, l_mesh

import tmkit as tk
from tmkit.errors import FileFormatError, ShapeError
from tmkit.formats import in_pieces, scene_from_dict, scene_to_dict
from tmkit.formats.convex_pieces import convex_pieces
from tmkit.graph import AttachedShape, Box, Mesh, Shape
from tmkit.manipulation.grasps.sampling import grasps_of
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots.hands import pair_distance
from tmkit.simulation import Simulation
from tmkit.simulation.engines.mujoco.world import MujocoSimulation
from tmkit.spatial import Pose

pytest.importorskip("coacd")  # which not every platform has


@pytest.fixture(scope="module")
def cup(tmp_path_factory: pytest.TempPathFactory) -> tuple[AttachedShape, ...]:
    """Return a cup as it is drawn, and its pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMKIT_CACHE", str(tmp_path_factory.mktemp("pieces")))
        return in_pieces(AttachedShape(cup_mesh(), friction=0.8))


def _is_inside(pieces: tuple[Shape, ...], points: np.ndarray) -> np.ndarray:
    """Return whether points (n, 3) are in any of several convex meshes."""
    inside = np.zeros(len(points), dtype=bool)
    for piece in pieces:
        corners = np.asarray(piece.vertices)[np.asarray(piece.faces)]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        inside |= np.all(
            np.einsum("fi,pfi->pf", normals, points[:, None] - corners[:, 0]) <= 1e-7, axis=1
        )
    return inside


def test_pieces_of_an_l_are_its_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points in the L are in a piece, points a millimetre outside in none."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path))
    pieces = convex_pieces(l_mesh())
    assert 2 <= len(pieces) <= 4
    rng = np.random.default_rng(0)
    points = rng.uniform([-0.01, -0.01, -0.01], [0.13, 0.05, 0.13], (5000, 3))
    x, _, z = points.T

    def in_l(grown: float) -> np.ndarray:
        arms = np.minimum(x, z) < 0.04 + grown
        return arms & np.all(
            (points > -grown) & (points < np.array([0.12, 0.04, 0.12]) + grown), axis=1
        )

    inside = _is_inside(pieces, points)
    assert np.all(inside[in_l(-1e-6)])
    assert not np.any(inside[~in_l(0.00101)])
    entries = list(tmp_path.iterdir())
    assert len(entries) == 1
    assert convex_pieces(l_mesh()) == pieces
    assert list(tmp_path.iterdir()) == entries


def test_closed_convex_parts_stay_and_neighbours_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Convex parts stay as they are, and a row of boxes is merged, without CoACD."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")  # no program is started

    def mesh_of(*boxes: tuple[list[float], list[float]]) -> Shape:
        mesh = trimesh.util.concatenate(
            [trimesh.creation.box(size).apply_translation(offset) for size, offset in boxes]
        )
        return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))

    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.03)
    assert len(convex_pieces(Mesh(np.asarray(ball.vertices), np.asarray(ball.faces)))) == 1
    bridge = [
        ([0.2, 0.05, 0.02], [0.0, 0.0, 0.05]),
        *(([0.02, 0.05, 0.06], [x, 0.0, 0.02]) for x in (-0.08, 0.08)),
    ]
    assert len(convex_pieces(mesh_of(*bridge))) == 3
    row = [([0.02, 0.02, 0.02], [0.02 * k, 0.0, 0.0]) for k in range(6)]
    corner = ([0.02, 0.02, 0.08], [0.0, 0.0, 0.05])
    pieces = convex_pieces(mesh_of(*row, corner), max_pieces=2)
    assert len(pieces) == 2
    inside = np.array([[0.055, 0.0, 0.0], [0.0, 0.0, 0.08]])
    assert _is_inside(pieces, inside).all()
    assert not _is_inside(pieces, np.array([[0.05, 0.0, 0.03]])).any()


def test_parts_that_overlap_are_cut_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two crossing angles are two boxes each; with fewer pieces, the bound is doubled."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path))
    vertices, faces = np.asarray(l_mesh().vertices), np.asarray(l_mesh().faces)
    both = np.concatenate(
        [vertices, vertices[:, [1, 0, 2]] * [-1.0, 1.0, 1.0] + [0.03, -0.01, 0.011]]
    )
    assert len(convex_pieces(Mesh(both, np.concatenate([faces, faces + len(vertices)])))) == 4
    assert not caplog.records
    step = [
        trimesh.creation.box([0.02, 0.02, z]).apply_translation([x, 0.0, 0.5 * z])
        for x, z in ((0, 0.02), (0.02, 0.0216))
    ]
    mesh = trimesh.util.concatenate(step)
    for _ in range(2):  # cut, and remembered
        assert (
            len(
                convex_pieces(Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces)), max_pieces=1)
            )
            == 1
        )
    assert (
        len(
            [
                record
                for record in caplog.records
                if "is cut within 2 mm: 1 mm needs more" in record.message
            ]
        )
        == 2
    )


def test_walls_without_thickness_get_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box with a fin of two triangles is two solids, so its mass can be spread over it."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path))
    box = trimesh.creation.box([0.04, 0.04, 0.02])
    fin = np.array([[0.0, -0.02, 0.01], [0.0, 0.02, 0.01], [0.0, 0.02, 0.05], [0.0, -0.02, 0.05]])
    faces = np.concatenate([box.faces, [[8, 9, 10], [8, 10, 11]]])
    pieces = convex_pieces(Mesh(np.concatenate([box.vertices, fin]), faces))
    assert sorted(round(1e9 * piece.volume) for piece in pieces) == [160, 32000]


def test_a_json_scene_has_a_mesh_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may request ``pieces`` and a mesh file, other documents neither."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))
    boxes = [
        trimesh.creation.box([1, 1, 4]),
        trimesh.creation.box([4, 1, 1]).apply_translation([1.5, 0, 2.5]),
    ]
    trimesh.util.concatenate(boxes).export(tmp_path / "corner.obj")
    scene = tk.SceneGraph().add_frame(
        "a", "world", shapes=[AttachedShape(Box([1, 1, 1]), friction=0.4)]
    )
    document = scene_to_dict(scene)
    (part,) = next(frame for frame in document["frames"] if frame["name"] == "a")["shapes"]
    part |= {"level": "pieces", "shape": "corner"}
    document["shapes"] = {"corner": {"kind": "mesh", "file": "corner.obj", "scale": 0.01}}
    (tmp_path / "scene.json").write_text(json.dumps(document), encoding="utf-8")
    drawn, *pieces = tk.load_scene(tmp_path / "scene.json").shapes("a")
    assert (drawn.collision, len(pieces)) == (False, 2)
    assert {piece.friction for piece in pieces} == {0.4}
    assert np.ptp(drawn.shape.vertices, axis=0) == pytest.approx([0.04, 0.01, 0.05])
    with pytest.raises(FileFormatError, match="cannot refer to the file"):
        scene_from_dict(document)
    document["shapes"] = scene_to_dict(scene)["shapes"]
    part["shape"] = next(iter(document["shapes"]))
    with pytest.raises(FileFormatError, match="level"):
        scene_from_dict(document)


def test_limits_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many pieces or too much time is an error; only meshes are cut."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path))
    with pytest.raises(ShapeError, match="more than 1 convex pieces"):
        convex_pieces(l_mesh(), max_pieces=1)
    for seconds in (0.0, 0.02):  # before it is cut, and within the program that cuts
        with pytest.raises(ShapeError, match="took too long"):
            convex_pieces(l_mesh(), time_limit=seconds)
    with pytest.raises(ShapeError, match="only meshes"):
        convex_pieces(Box([1, 1, 1]))
    assert list(tmp_path.iterdir()) == []


def test_a_cup_keeps_its_cavity(cup: tuple[AttachedShape, ...]) -> None:
    """In planner and simulators, a small ball falls into the cup and lies on the bottom."""
    drawn, *pieces = cup
    assert (drawn.visual, drawn.collision) == (True, False)
    assert 16 < len(pieces) <= 64
    scene = tk.SceneGraph().add_frame("cup", "world", shapes=cup)
    ball = [AttachedShape(tk.Sphere(0.01))]
    scene = scene.add_frame(
        "ball", "world", pose=Pose([0.0, 0.0, 0.03]), joint=tk.Free(), classes=["movable"]
    )
    scene = scene.set_shapes("ball", ball)
    assert not CollisionWorld(scene).is_in_collision([])
    movable = scene.set_classes("cup", ["movable"]).set_joint("cup", tk.Free())
    movable = movable.add_frame(
        "floor", "world", pose=Pose([0, 0, -0.05]), shapes=[AttachedShape(Box([1, 1, 0.1]))]
    )
    for engine in (Simulation, MujocoSimulation):
        with engine.from_scene(movable) as simulation:
            simulation.step(400)
            assert simulation.pose("ball").translation == pytest.approx(
                [0.0, 0.0, 0.015], abs=0.002
            )
            assert simulation.pose("cup").translation == pytest.approx([0.0, 0.0, 0.0], abs=0.001)


def test_a_cup_is_held_by_its_wall(cup: tuple[AttachedShape, ...]) -> None:
    """A hand grasps the wall of 4 mm, although the hull of 90 mm is too wide."""
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame("cup", "table", pose=Pose([0, 0, 0.025]), joint=tk.Free(), shapes=cup)
    grasps = grasps_of(scene, "cup", robot=tk.load_manipulator("panda"))
    assert len(grasps) >= 8
    # Flat pads span a round wall, and the pieces are slightly thicker than the wall.
    assert all(grasp.width < 0.008 for grasp in grasps)
    assert all(grasp.name.startswith("between points") for grasp in grasps)


def test_closing_fingers_neither_push_nor_turn_a_cup(cup: tuple[AttachedShape, ...]) -> None:
    """Both fingers touch the wall at the same time, and do not touch the cup when open."""
    scene, arm = tk.load_scene("panda_table"), tk.load_manipulator("panda")
    scene = scene.add_frame("cup", "world", joint=tk.Free(), shapes=cup)
    q = arm.ready_configuration(scene)
    root_from_tool = scene.pose(arm.tool, relative_to="world", q=q)

    def gaps(object_from_tool: Pose, width: float) -> np.ndarray:
        held = scene.set_pose("cup", root_from_tool @ object_from_tool.inverse())
        q_held = held.configuration(arm.finger_values(width), base=q)
        return np.array(
            [pair_distance(held, q_held, frame_a=link, frame_b="cup") for link in arm.contact_links]
        )

    for grasp in grasps_of(scene, "cup", robot=arm)[::4]:
        pose, opening = grasp.object_from_tool, grasp.width + 0.004
        first, second = gaps(pose, opening)
        assert first == pytest.approx(second, abs=2e-4)
        assert first + second == pytest.approx(0.004, abs=4e-4)
        for angle in (0.02, -0.02):
            for axis in ([angle, 0.0, 0.0], [0.0, 0.0, angle]):
                turned = gaps(pose @ Pose.from_rpy([0.0, 0.0, 0.0], axis), opening)
                assert turned.sum() <= first + second + 5e-5
        assert gaps(pose, arm.width_open).min() >= PLANNING_MARGIN


def test_closing_fingers_do_not_slide_off_a_handle() -> None:
    """Friction keeps closing fingers from sliding off the handle of a mug."""
    scene, arm = tk.load_scene("panda_table", "dishes"), tk.load_manipulator("panda")
    scene = scene.reparent("mug", "world", pose=Pose()).set_joint("mug", tk.Free())
    q = arm.ready_configuration(scene)
    root_from_tool = scene.pose(arm.tool, relative_to="world", q=q)

    def thickness(object_from_tool: Pose, opening: float) -> float:
        held = scene.set_pose("mug", root_from_tool @ object_from_tool.inverse())
        q_held = held.configuration(arm.finger_values(opening), base=q)
        return opening - sum(
            pair_distance(held, q_held, frame_a=link, frame_b="mug") for link in arm.contact_links
        )

    grasps = [
        one
        for one in grasps_of(scene, "mug", robot=arm)
        if one.object_from_tool.translation[1] > 0.041
    ]
    assert len(grasps) >= 8
    for grasp in grasps:
        pose, opening = grasp.object_from_tool, grasp.width + 0.004
        least = min(
            thickness(pose @ Pose(by), opening)
            for by in np.vstack([np.eye(3), -np.eye(3)])[[0, 2, 3, 5]] * 0.002
        )
        assert thickness(pose, opening) - least <= 0.002  # 0.002 m on two wedges of slope 0.5
