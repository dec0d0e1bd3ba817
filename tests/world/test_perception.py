"""Planes, segments and tables in point clouds, synthetic and of a simulated camera."""

from __future__ import annotations

import math
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from tmkit.errors import BlockError, SceneError, SimulationError
from tmkit.graph import Box, PointCloud, Revolute, SceneGraph
from tmkit.graph.moments import add_joint_values
from tmkit.simulation import Camera, Simulation, depth_points
from tmkit.spatial import Pose
from tmkit.world import LiveScene, PlaneSegmentation, TableRecognition, run_block

Array = NDArray[np.float64]


def plane(
    rng: np.random.Generator, count: int, pose: Pose, size: tuple[float, float], noise: float
) -> Array:
    """Return noisy points of a rectangle in the xy plane of a pose."""
    flat = np.column_stack([rng.uniform(-0.5, 0.5, (count, 2)) * size, np.zeros(count)])
    return np.asarray(pose.apply(flat)) + noise * rng.normal(size=(count, 3))


def blob(rng: np.random.Generator, count: int, middle: list[float], size: list[float]) -> Array:
    """Return points in a box."""
    made: Array = np.array(middle) + rng.uniform(-0.5, 0.5, (count, 3)) * size
    return made


def seen(points: Array, *, at: Pose | None = None) -> SceneGraph:
    """Return a scene in which a camera, 1.5 m high, has a cloud; the axes of both are level."""
    scene = SceneGraph().add_frame("camera", "world", pose=at or Pose([0.0, 0.0, 1.5]))
    return scene.add_frame(
        "cloud", "camera", classes=["cloud"], shapes=[PointCloud(points, radius=0.005)]
    )


_TILTED = Pose.from_rpy([0.2, -0.1, -1.0], [0.3, -0.2, 0.7])


def test_a_plane_with_known_normal_and_noise() -> None:
    """Errors over 80 clouds match the covariance, with given and with estimated noise."""
    for noise, block in (
        (0.002, PlaneSegmentation("p", "camera", noise=0.002, gap=0.2)),
        (0.001, PlaneSegmentation("p", "camera", gap=0.2)),
    ):
        errors = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            scene = run_block(LiveScene(seen(plane(rng, 600, _TILTED, (0.9, 0.5), noise))), block)
            found = scene.local_pose("p plane 1")
            truth = _TILTED.inverse() @ found  # its height over the true plane, and the two slopes
            normal = truth.rotate([0.0, 0.0, 1.0])
            slopes = found.inverse().rotate(_TILTED.rotate([0.0, 0.0, 1.0]))
            assert normal[2] > 0.999
            e = np.array([truth.translation[2], slopes[0], slopes[1]])
            covariance = scene.edge_covariance("p plane 1")[np.ix_([2, 3, 4], [2, 3, 4])]
            # a rotation about x is a slope along -y
            turn = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
            errors.append(e @ np.linalg.solve(turn @ covariance @ turn.T, e))
        low, high = chi2.ppf([0.001, 0.999], 3 * len(errors))
        assert low < sum(errors) < high


def test_axes_of_a_plane() -> None:
    """Z towards the camera, x along the longer side, the origin in the middle."""
    rng = np.random.default_rng(1)
    scene = run_block(
        LiveScene(seen(plane(rng, 4000, _TILTED, (0.9, 0.4), 0.0))),
        PlaneSegmentation("p", "camera", gap=0.05),
    )
    found = _TILTED.inverse() @ scene.local_pose("p plane 1")
    assert abs(found.rotate([1.0, 0.0, 0.0])[0]) > math.cos(0.01)
    assert found.rotate([0.0, 0.0, 1.0])[2] > 1.0 - 1e-9
    assert np.abs(found.translation).max() < 0.01
    assert len(scene.shapes("p plane 1")[0].shape.points) == 4000
    away = run_block(
        LiveScene(seen(plane(rng, 900, Pose([0.0, 0.0, 1.0]), (0.9, 0.4), 0.0))),
        PlaneSegmentation("p", "camera", gap=0.1),
    )
    assert away.local_pose("p plane 1").rotate([0.0, 0.0, 1.0])[2] < -0.999  # a ceiling


def room(rng: np.random.Generator, *, height: float = 0.7, objects: int = 2) -> Array:
    """Return a floor, a table and things on it as the camera sees them."""
    parts = [
        plane(rng, 3000, Pose([0.8, 0.0, -1.5]), (2.5, 2.5), 0.001),
        plane(rng, 2500, Pose([0.8, 0.0, height - 1.5]), (0.8, 1.2), 0.001),
        blob(rng, 200, [0.2, 0.9, -1.3], [0.2, 0.2, 0.3]),  # on the floor
        blob(rng, 60, [0.9, 0.0, height - 0.9], [0.05, 0.05, 0.1]),  # in the air
    ]
    parts += [
        blob(rng, 150, [0.7, 0.4 * k - 0.2, height - 1.43], [0.06, 0.06, 0.1])
        for k in range(objects)
    ]
    return np.concatenate(parts)


def test_parts_of_a_room() -> None:
    """Every point is in one part; the largest parts come first; the same seed gives the same."""
    points = room(np.random.default_rng(2))
    block = PlaneSegmentation("p", "camera", gap=0.06)
    scene = run_block(LiveScene(seen(points)), block)
    assert scene.frames_of_class("plane") == ("p plane 1", "p plane 2")
    assert scene.local_pose("p plane 2").translation[2] == pytest.approx(-0.8, abs=1e-3)
    assert len(scene.frames_of_class("segment")) == 4
    parts = [
        scene.local_pose(f).apply(scene.shapes(f)[0].shape.points) for f in scene.children("cloud")
    ]
    assert np.sort(np.concatenate(parts), axis=0) == pytest.approx(
        np.sort(points, axis=0), abs=1e-9
    )
    assert run_block(LiveScene(seen(points)), block).fingerprint == scene.fingerprint
    few = run_block(LiveScene(seen(points)), replace(block, min_segment=100))
    assert len(few.frames_of_class("segment")) == 3


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0), st.floats(-1.0, 1.0), st.floats(0.3, 1.2))
def test_tables_stay_tables_when_the_camera_moves(
    seed: int, yaw: float, tilt: float, height: float
) -> None:
    """Wherever the camera is, the same table is found at the same height, with what is on it."""
    at = Pose.from_rpy([0.3, 0.2, 1.6], [tilt, 0.3, yaw])
    points = np.asarray(
        (at.inverse() @ Pose([0.0, 0.0, 1.5])).apply(
            room(np.random.default_rng(seed), height=height)
        )
    )
    world = LiveScene(seen(points, at=at))
    run_block(world, PlaneSegmentation("p", "camera", gap=0.06, seed=seed))
    scene = run_block(world, TableRecognition("t", "camera", height=(0.2, 1.3)))
    assert scene.frames_of_class("table") == ("t 1",)
    assert scene.attributes("t 1")["height"] == pytest.approx(height, abs=2e-3)
    assert len(scene.attributes("t 1")["objects"]) == 2
    assert sorted(scene.shapes("t 1")[0].shape.dimensions) == pytest.approx(
        [0.02, 0.8, 1.2], abs=0.02
    )
    assert run_block(world, TableRecognition("t", "camera", height=(0.2, 1.3))) is scene


def test_what_is_no_table() -> None:
    """Too high, too small, too large, too steep, with too little on it."""
    world = LiveScene(seen(room(np.random.default_rng(3))))
    planes = run_block(world, PlaneSegmentation("p", "camera", gap=0.06))
    table = TableRecognition("t", "camera")
    assert run_block(LiveScene(planes), table).frames_of_class("table") == ("t 1",)
    for block in (
        replace(table, height=(0.8, 1.2)),
        replace(table, size=(0.9, 3.0)),
        replace(table, size=(0.3, 1.0)),
        replace(table, min_objects=3),
        replace(table, up=(0.2, 0.0, 1.0)),
    ):
        assert run_block(LiveScene(planes), block).frames_of_class("table") == ()
    no_objects = LiveScene(seen(room(np.random.default_rng(3), objects=0)))
    run_block(no_objects, PlaneSegmentation("p", "camera", gap=0.06))
    assert run_block(no_objects, table).frames_of_class("table") == ()
    assert run_block(no_objects, replace(table, min_objects=0)).frames_of_class("table") == ("t 1",)


def test_a_table_seen_by_a_camera_on_a_joint() -> None:
    """Its height is that at the newest values of the joints."""
    scene = SceneGraph().add_frame(
        "mast", "world", joint=Revolute([0, 1, 0], lower=-2.0, upper=2.0)
    )
    scene = scene.add_frame("camera", "mast", pose=Pose([0.0, 0.0, 1.5]))
    points = room(np.random.default_rng(3))
    scene = scene.add_frame(
        "cloud", "camera", classes=["cloud"], shapes=[PointCloud(points, radius=0.005)]
    )
    world = LiveScene(
        add_joint_values(
            add_joint_values(scene, {"mast": 0.0}, stamp=1.0), {"mast": 1.0}, stamp=0.5
        )
    )
    run_block(world, PlaneSegmentation("p", "camera", gap=0.06))
    assert run_block(world, TableRecognition("t", "camera")).frames_of_class("table") == ("t 1",)
    world.update(lambda scene: add_joint_values(scene, {"mast": 0.5}, stamp=2.0))
    assert run_block(world, TableRecognition("t", "camera")).frames_of_class("table") == ()
    without = LiveScene(scene)
    run_block(without, PlaneSegmentation("p", "camera", gap=0.06))
    with pytest.raises(BlockError, match=r"'t' failed: .*joint"):
        run_block(without, TableRecognition("t", "camera"))


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 3)), np.zeros((500, 3)), np.outer(np.linspace(0.0, 1.0, 500), [1.0, 2.0, 3.0])],
    ids=["few", "one point", "a line"],
)
def test_clouds_without_planes(points: Array) -> None:
    """A line is in many planes, and is none."""
    scene = run_block(LiveScene(seen(points)), PlaneSegmentation("p", "camera"))
    assert scene.frames_of_class("plane") == ()
    assert len(scene.frames_of_class("segment")) == (1 if len(points) > 30 else 0)


def test_several_clouds_and_shapes() -> None:
    """Two cameras; a frame with two clouds, of which one is turned."""
    rng = np.random.default_rng(4)
    flat = plane(rng, 500, Pose(), (1.0, 1.0), 0.0)
    scene = seen(flat - [0.0, 0.0, 1.0])
    turned = PointCloud(flat, radius=0.005)
    scene = scene.add_frame("second", "camera", classes=["cloud"], shapes=[turned, Box([1, 1, 1])])
    scene = run_block(LiveScene(scene), PlaneSegmentation("p", "camera", gap=0.2))
    assert [scene.parent(frame) for frame in scene.frames_of_class("plane")] == ["cloud", "second"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("distance", 0.0),
        ("distance", math.nan),
        ("min_points", 3),
        ("noise", -1.0),
        ("gap", math.inf),
        ("iterations", 0),
    ],
)
def test_wrong_configurations_are_rejected(name: str, value: float) -> None:
    """With the block's name and that of the number."""
    with pytest.raises(SceneError, match=f"function block 'p': {name} is out of range: {value}"):
        PlaneSegmentation("p", "camera", **{name: value})  # type: ignore[arg-type]


def test_a_depth_camera_sees_surfaces_where_they_are() -> None:
    """Points of a box are on its faces to 0.1 mm; noise is along the optical axis."""
    scene = SceneGraph().add_frame(
        "floor", "world", pose=Pose([0.0, 0.0, -0.05]), shapes=[Box([4.0, 4.0, 0.1])]
    )
    scene = scene.add_frame(
        "box", "world", pose=Pose([0.0, 0.0, 0.2]), shapes=[Box([0.6, 0.8, 0.4])]
    )
    camera = Camera((1.5, -1.0, 1.4), (0.0, 0.0, 0.3), width=160, height=120)
    with Simulation.from_scene(scene) as simulation:
        points = depth_points(simulation, camera)
        noisy = depth_points(simulation, camera, noise=0.01, seed=1)
        assert np.array_equal(noisy, depth_points(simulation, camera, noise=0.01, seed=1))
        with pytest.raises(SimulationError, match="noise must be finite and at least 0, got -1"):
            depth_points(simulation, camera, noise=-1.0)
    rooted = points @ camera.axes().T + np.array(camera.position)
    faces = np.stack([rooted[:, 2], rooted[:, 2] - 0.4, rooted[:, 0] - 0.3, rooted[:, 1] + 0.4])
    assert np.quantile(np.abs(faces).min(axis=0), 0.99) < 2e-4
    assert all((np.abs(face) < 2e-4).sum() > 200 for face in faces)
    assert np.std(noisy[:, 2] - points[:, 2]) == pytest.approx(0.01, rel=0.05)


def test_the_example_finds_the_table_and_what_is_on_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its size, its height to a millimetre, and the four objects where they are."""
    monkeypatch.setattr(sys, "argv", ["segment_table", "--out", str(tmp_path)])
    runpy.run_path(
        str(Path(__file__).parents[2] / "examples" / "segment_table.py"), run_name="__main__"
    )
    printed = capsys.readouterr().out
    assert "tables 1: 0.81 x 1.20 m, 0.720 m high, with 4 objects" in printed
    found = [
        line.split(" at ")[1].split(", ")
        for line in printed.split("\n")
        if line.startswith("    parts segment")
    ]
    # the camera sees their near sides
    truth = [(0.1, 0.25), (0.2, -0.05), (-0.1, -0.3), (0.15, -0.4)]
    assert len(found) == 4
    for x, y in truth:
        assert any(math.dist((x, y), map(float, place)) < 0.05 for place in found)
    assert (tmp_path / "segment_table.png").stat().st_size > 10_000
