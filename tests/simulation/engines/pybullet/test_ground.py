"""Planes, height fields, point clouds and levels of detail in simulation: balls are dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.gantry import gantry_scene

from tmkit.errors import SimulationError
from tmkit.formats.mesh.solids import mesh_of_cloud, mesh_of_field
from tmkit.graph import (
    AttachedShape,
    Box,
    Free,
    HeightField,
    Mesh,
    Plane,
    PointCloud,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.simulation import Simulation
from tmkit.simulation.camera import fit_camera
from tmkit.simulation.engines.pybullet.shapes import MAX_POINTS
from tmkit.spatial import Pose

RADIUS = 0.03


def with_ball(
    scene: SceneGraph, x: float, y: float, z: float, *, shape: Shape | None = None
) -> SceneGraph:
    """A ball, or another shape, that may fall."""
    part = AttachedShape(shape or Sphere(RADIUS), friction=1.0)
    return scene.add_frame(
        "ball", "world", pose=Pose([x, y, z]), joint=Free(), classes=["moveable"], shapes=[part]
    )


def ground(*shapes: AttachedShape) -> SceneGraph:
    """A scene with shapes that stand still, far from the machine."""
    return gantry_scene().add_frame("ground", "world", pose=Pose([3, 0, 0]), shapes=list(shapes))


def rest(scene: SceneGraph, steps: int = 900) -> list[float]:
    """Return the position of the ball after some seconds, relative to the ground."""
    with Simulation.from_scene(scene) as simulation:
        simulation.step(steps)
        return [float(value) for value in simulation.pose("ball", relative_to="ground").translation]


def test_a_ball_rests_on_a_plane() -> None:
    """A plane has its own pose, also beside another shape on one body."""
    scene = ground(
        AttachedShape(Plane(), Pose([0, 0, 0.2])),
        AttachedShape(Box([0.1, 0.1, 1]), Pose([1, 0, 0])),
    )
    x, y, z = rest(with_ball(scene, 3.3, 0.1, 0.24))
    assert (x, y, z) == pytest.approx((0.3, 0.1, 0.2 + RADIUS), abs=3e-4)


def test_a_ball_rolls_into_the_valley_of_a_field() -> None:
    """Columns run along x, rows along y, and heights are absolute: the ball ends at the lowest."""
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 21), np.linspace(-1.0, 1.0, 41))
    heights = 0.5 + 0.8 * np.abs(x - 0.2) + 0.6 * np.abs(y + 0.5)
    field = AttachedShape(HeightField(heights, size=[1, 2]), Pose([0, 0, 0.1]))
    position = rest(with_ball(ground(field), 3.1, -0.4, 1.0), steps=3000)
    assert position[:2] == pytest.approx([0.2, -0.5], abs=2e-3)
    slope = np.array([0.8, 0.6, 1.0])
    assert position[2] == pytest.approx(0.6 + RADIUS * float(np.linalg.norm(slope)), abs=2e-3)


def test_a_box_rests_on_a_cloud() -> None:
    """Something wide lies a radius above the points, and on all of them."""
    grid = np.array([[0.02 * i, 0.02 * j, 0.3] for i in range(-10, 11) for j in range(-10, 11)])
    cloud = AttachedShape(PointCloud(grid, radius=0.01))
    _, _, z = rest(with_ball(ground(cloud), 3.0, 0.0, 0.335, shape=Box([0.1, 0.1, 0.04])))
    assert z == pytest.approx(0.3 + 0.01 + 0.02, abs=5e-4)


def cup() -> Shape:
    """An open box of triangles, with walls without thickness."""
    lower, upper = np.array([-0.1, -0.1, 0.0]), np.array([0.1, 0.1, 0.2])
    vertices = [[(lower, upper)[i >> k & 1][k] for k in range(3)] for i in range(8)]
    quads = [[0, 1, 3, 2], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
    return Mesh(vertices, [[quad[0], quad[k], quad[k + 1]] for quad in quads for k in (1, 2)])


@pytest.mark.parametrize(
    ("level", "height"), [("exact", RADIUS), (None, 0.2 + RADIUS), ("box", 0.2 + RADIUS)]
)
def test_levels_of_meshes_that_stand_still(level: str | None, height: float) -> None:
    """A ball falls into a cup whose level is exact, and lies on its hull or its box otherwise."""
    _, _, z = rest(with_ball(ground(AttachedShape(cup(), level=level)), 3.0, 0.0, 0.24))
    assert z == pytest.approx(height, abs=1e-3)


def test_what_moves_is_a_hull() -> None:
    """A cloud that may fall lies on its hull."""
    corners = [[0.03 * (1 - 2 * (i >> k & 1)) for k in range(3)] for i in range(8)]
    scene = ground(AttachedShape(Plane()))
    _, _, z = rest(with_ball(scene, 3, 0, 0.05, shape=PointCloud(corners, radius=0.01)))
    assert z == pytest.approx(0.04, abs=1e-3)


def test_what_cannot_be_simulated_is_refused() -> None:
    """A moving plane and a cloud of too many points are errors; a box is accepted."""
    with pytest.raises(
        SimulationError, match="frame 'ball': a plane cannot be simulated on a body that moves"
    ):
        Simulation.from_scene(with_ball(gantry_scene(), 0, 0, 1, shape=Plane()))
    points = np.random.default_rng(0).uniform(-1, 0, (MAX_POINTS + 1, 3))
    with pytest.raises(
        SimulationError,
        match=r"frame 'ground': a cloud of 50001 points .* at most 50000; thin it out",
    ):
        Simulation.from_scene(ground(AttachedShape(PointCloud(points, radius=0.01), visual=False)))
    boxed = AttachedShape(PointCloud(points, radius=0.01), visual=False, level="box")
    assert rest(with_ball(ground(boxed), 2.5, -0.5, 0.05))[2] == pytest.approx(
        0.01 + RADIUS, abs=1e-3
    )


def test_pictures_look_at_what_has_an_end() -> None:
    """A plane does not move the camera away to infinity."""
    scene = with_ball(
        ground(AttachedShape(Plane()), AttachedShape(PointCloud([[0, 0, 1]], radius=0.1))),
        3,
        0,
        0.03,
    )
    with Simulation.from_scene(scene) as simulation:
        camera = fit_camera(simulation)
        assert all(
            math.isfinite(value) and abs(value) < 50 for value in (*camera.position, *camera.target)
        )


def test_skins_are_closed() -> None:
    """The meshes of a field and a cloud face outwards: volumes are those of field and cubes."""
    field = HeightField(np.random.default_rng(0).uniform(0, 1, (5, 4)), size=[2, 1], floor=-0.5)
    assert mesh_of_field(field).volume == pytest.approx(field.volume)
    assert [bound.tolist() for bound in mesh_of_field(field).bounds] == [
        bound.tolist() for bound in field.bounds
    ]
    cloud = PointCloud(np.arange(9).reshape(3, 3), radius=0.1)
    assert mesh_of_cloud(cloud).volume == pytest.approx(3 * 0.2**3)
    assert np.allclose(mesh_of_cloud(cloud).bounds, cloud.bounds)
