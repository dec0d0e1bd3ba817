"""Distances of convex bodies against formulas and bounded least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import lsq_linear

from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightField,
    Mesh,
    Plane,
    PointCloud,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.graph.patterns import Above, RestsOn, Touching
from tmkit.graph.patterns.placed import PlacedScene
from tmkit.spatial import Pose

_coordinate = st.floats(-3.0, 3.0, width=32)
_poses = st.builds(
    lambda xyz, rpy: Pose.from_rpy(xyz, rpy),
    st.tuples(_coordinate, _coordinate, _coordinate),
    st.tuples(_coordinate, _coordinate, _coordinate),
)
_sizes = st.tuples(*[st.floats(0.0625, 2.0, width=32)] * 3)


def distance(first: Shape, second: Shape, pose: Pose) -> float:
    """Return the distance of a shape at a pose from another at the origin."""
    scene = SceneGraph().add_frame("a", "world", pose=pose, shapes=[AttachedShape(first)])
    scene = scene.add_frame("b", "world", shapes=[AttachedShape(second)])
    return PlacedScene(scene).distance("a", "b")


@given(_sizes, _sizes, _poses)
def test_boxes(a: tuple[float, ...], b: tuple[float, ...], pose: Pose) -> None:
    """Box distances equal bounded least squares of the difference of two points."""
    matrix = np.hstack([pose.rotation, -np.eye(3)])
    half = np.array([*a, *b]) / 2
    solved = lsq_linear(matrix, -pose.translation, bounds=(-half, half), method="bvls", tol=1e-14)
    expected = math.sqrt(max(0.0, 2 * float(solved.cost)))
    assert distance(Box(a), Box(b), pose) == pytest.approx(expected, abs=1e-7)


@given(_sizes, st.floats(0.05, 1.0), _poses)
def test_a_sphere_and_a_box(size: tuple[float, ...], radius: float, pose: Pose) -> None:
    """A sphere is as far as its middle from the nearest point of the box, but for its radius."""
    half = np.array(size) / 2
    middle = pose.translation
    expected = max(0.0, float(np.linalg.norm(middle - np.clip(middle, -half, half))) - radius)
    assert distance(Sphere(radius), Box(size), pose) == pytest.approx(expected, abs=1e-7)


@given(_poses, st.floats(0.05, 1.0), st.floats(0.05, 2.0))
def test_round_things_and_a_point(pose: Pose, radius: float, length: float) -> None:
    """A small sphere, as a point, against formulas in the axes of cylinder, cone and capsule."""
    dot = 1e-3
    x, y, z = pose.translation
    r = math.hypot(x, y)
    beside, over = max(0.0, r - radius), max(0.0, abs(z) - length / 2)
    expected = {
        Cylinder(radius, length): math.hypot(beside, over),
        Capsule(radius, length): max(0.0, math.hypot(r, over) - radius),
        Cone(radius, length): _distance_from_triangle(r, z, radius, length),
    }
    for shape, value in expected.items():
        assert distance(Sphere(dot), shape, pose) == pytest.approx(max(0.0, value - dot), abs=2e-5)


def _distance_from_triangle(r: float, z: float, radius: float, length: float) -> float:
    """Return the distance of (r, z) from the half cross-section of a cone; r is not negative."""
    base, tip = np.array([radius, -length / 2]), np.array([0.0, length / 2])
    side = tip - base
    point = np.array([r, z])
    if side[0] * (point - base)[1] - side[1] * (point - base)[0] >= 0 and z >= -length / 2:
        return 0.0
    along = np.clip((point - base) @ side / (side @ side), 0.0, 1.0)
    to_base = math.hypot(max(0.0, r - radius), z + length / 2)
    return min(float(np.linalg.norm(point - base - along * side)), to_base)


def test_a_mesh_counts_as_its_hull_and_a_frame_as_all_its_shapes() -> None:
    """A mesh is its hull, several shapes their union, and a bare frame a point."""
    corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    mesh = Mesh(corners, [[0, 1, 2], [5, 6, 7]])
    assert distance(Sphere(0.1), mesh, Pose([0.5, 0.5, 1.3])) == pytest.approx(0.2)
    shapes = [AttachedShape(Sphere(0.1), Pose([x, 0, 0])) for x in (0.0, 1.0, 2.0)]
    scene = (
        SceneGraph()
        .add_frame("a", "world", shapes=shapes)
        .add_frame("b", "world", pose=Pose([3, 0, 0]))
    )
    placed = PlacedScene(scene)
    assert placed.distance("a", "b") == pytest.approx(0.9)
    assert placed.distance("b", "a") == placed.distance("a", "b")
    assert placed.heights("a") == pytest.approx((-0.1, 0.1))
    assert placed.distance("a", "b", limit=0.5) > 0.5


def test_clouds_and_fields_count_as_their_hulls() -> None:
    """A cloud is the hull of its balls; a field reaches from its heights down to its floor."""
    cloud = PointCloud([[0, 0, 0], [1, 0, 0]], radius=0.1)
    assert distance(Sphere(0.1), cloud, Pose([0.5, 0.5, 0])) == pytest.approx(0.3)
    field = HeightField([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]], size=[2.0, 4.0], floor=-1.0)
    assert distance(Sphere(0.1), field, Pose([1.0, 0.0, 1.5])) == pytest.approx(0.4)
    assert distance(Sphere(0.1), field, Pose([-1.0, -3.0, 0.0])) == pytest.approx(0.9)
    assert distance(Sphere(0.1), field, Pose([0.0, 0.0, -1.5])) == pytest.approx(0.4)
    assert distance(Sphere(0.1), field, Pose([-2.0, 0.0, -0.5])) == pytest.approx(0.9)


def test_a_plane_is_all_behind_it() -> None:
    """Objects rest on a plane and touch a wall anywhere; a plane is unbounded."""
    scene = SceneGraph().add_frame(
        "floor", "world", pose=Pose([5, 5, 0.1]), shapes=[AttachedShape(Plane())]
    )
    wall = Pose.from_rpy([0, -1, 0], [-math.pi / 2, 0, 0])  # its normal is +y
    scene = scene.add_frame("wall", "world", pose=wall, shapes=[AttachedShape(Plane())])
    scene = scene.add_frame(
        "box", "world", pose=Pose([0, 0, 0.6]), shapes=[AttachedShape(Box([1, 1, 1]))]
    )
    scene = scene.add_frame(
        "ball", "world", pose=Pose([9, 9, 3]), shapes=[AttachedShape(Sphere(0.5))]
    )
    placed = PlacedScene(scene)
    assert placed.heights("floor") == (-math.inf, pytest.approx(0.1))
    assert placed.heights("wall") == (-math.inf, math.inf)
    assert placed.distance("box", "floor") == pytest.approx(0.0)
    assert placed.distance("ball", "floor") == pytest.approx(2.4)
    assert placed.distance("box", "wall") == pytest.approx(0.5)
    assert placed.distance("floor", "wall") == 0.0
    assert placed.horizontal_distance("ball", "floor") == 0.0
    assert placed.horizontal_distance("wall", "box") == pytest.approx(0.5)
    assert placed.horizontal_distance_of_center("ball", "floor") == 0.0
    assert placed.are_near("floor", ["ball", "box"], limit=0.0) == [True, True]
    assert RestsOn("a", "b").holds(placed, "box", "floor")
    assert not RestsOn("a", "b").holds(placed, "ball", "floor")
    assert Above("a", "b").holds(placed, "ball", "floor")
    assert Touching("a", "b").holds(placed, "floor", "box")
    opposite = scene.add_frame("ceiling", "world", pose=Pose.from_rpy([0, 0, 4], [math.pi, 0, 0]))
    opposite = opposite.set_shapes("ceiling", [AttachedShape(Plane())])
    assert PlacedScene(opposite).distance("floor", "ceiling") == pytest.approx(3.9)
    assert PlacedScene(opposite).heights("ceiling") == (pytest.approx(4.0), math.inf)


@given(_sizes, _sizes, _poses)
def test_shadows(a: tuple[float, ...], b: tuple[float, ...], pose: Pose) -> None:
    """Seen from above, distance is that of the boxes pressed flat, however high they are."""
    flat = np.diag([1.0, 1.0, 0.0])
    matrix = np.hstack([flat @ pose.rotation, -flat])
    half = np.array([*a, *b]) / 2
    solved = lsq_linear(
        matrix, -(flat @ pose.translation), bounds=(-half, half), method="bvls", tol=1e-14
    )
    scene = SceneGraph().add_frame("a", "world", pose=pose, shapes=[AttachedShape(Box(a))])
    scene = scene.add_frame("b", "world", shapes=[AttachedShape(Box(b))])
    expected = math.sqrt(max(0.0, 2 * float(solved.cost)))
    assert PlacedScene(scene).horizontal_distance("a", "b") == pytest.approx(expected, abs=1e-7)
