"""Planes, point clouds, height fields and levels of detail in collision worlds."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples

from tmkit.errors import ShapeError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Free,
    HeightField,
    Mesh,
    Plane,
    PointCloud,
    Prismatic,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose

Array = NDArray[np.float64]

SEEDS = st.integers(0, 2**31)
PRIMITIVES: dict[str, Shape] = {
    "box": Box([0.2, 0.3, 0.5]),
    "sphere": Sphere(0.2),
    "cylinder": Cylinder(0.15, 0.4),
    "cone": Cone(0.15, 0.4),
    "capsule": Capsule(0.1, 0.3),
}


def random_pose(rng: np.random.Generator, reach: float) -> Pose:
    """Return a pose with random rotation, translated by up to ``reach`` along each axis."""
    return Pose(rng.uniform(-reach, reach, 3), quat_xyzw=rng.normal(size=4))


def blob(rng: np.random.Generator, size: float) -> Shape:
    """Return a mesh that is not convex: a sphere of triangles with dents."""
    turns, rises = 12, 7
    vertices = [
        size
        * rng.uniform(0.5, 1.0)
        * np.array([math.cos(t) * math.cos(r), math.sin(t) * math.cos(r), math.sin(r)])
        for r in np.linspace(-0.5 * math.pi, 0.5 * math.pi, rises)
        for t in np.arange(turns) * (2 * math.pi / turns)
    ]
    faces = []
    for low, high in pairwise(range(0, turns * rises, turns)):
        for i in range(turns):
            j = (i + 1) % turns
            faces += [[low + i, low + j, high + j], [low + i, high + j, high + i]]
    return Mesh(vertices, faces)


def pair_world(a: AttachedShape, b: AttachedShape, **options: object) -> CollisionWorld:
    """Return a world with two shapes on frames without a fixed edge between them."""
    scene = SceneGraph().add_frame("a", "world", shapes=[a])
    scene = scene.add_frame("b", "world", joint=Free(), shapes=[b])
    return CollisionWorld(scene, **options)  # type: ignore[arg-type]


def signed_distance(kind: str, sizes: tuple[float, ...], points: Array) -> Array:
    """Return the signed distance of points (n, 3) from a primitive, by its formula."""
    x, y, z = points.T
    rho = np.hypot(x, y)
    if kind == "sphere":
        return np.linalg.norm(points, axis=1) - sizes[0]
    if kind == "capsule":
        beyond = np.maximum(np.abs(z) - 0.5 * sizes[1], 0.0)
        return np.hypot(rho, beyond) - sizes[0]
    if kind == "box":
        excess = np.abs(points) - 0.5 * np.array(sizes)
        return np.linalg.norm(np.maximum(excess, 0.0), axis=1) + np.minimum(excess.max(axis=1), 0.0)
    if kind == "cylinder":
        excess = np.column_stack([rho - sizes[0], np.abs(z) - 0.5 * sizes[1]])
        return np.linalg.norm(np.maximum(excess, 0.0), axis=1) + np.minimum(excess.max(axis=1), 0.0)
    radius, length = sizes  # a cone: the triangle of its profile
    profile = np.column_stack([rho, z])
    tip, rim, foot = (
        np.array([0, 0.5 * length]),
        np.array([radius, -0.5 * length]),
        np.array([0, -0.5 * length]),
    )
    to_edges = []
    for start, end in ((tip, rim), (rim, foot)):
        along = np.clip(
            (profile - start) @ (end - start) / np.dot(end - start, end - start), 0.0, 1.0
        )
        to_edges.append(np.linalg.norm(profile - start - along[:, None] * (end - start), axis=1))
    inside = (z > foot[1]) & (rho * length < radius * (tip[1] - z))
    return np.where(inside, -1.0, 1.0) * np.minimum(*to_edges)


def support(shape: Shape, direction: Array) -> float:
    """Return the largest projection of a shape on a unit vector, by its formula."""
    x, y, z = direction
    sizes, across = shape.dimensions, math.hypot(x, y)
    if shape.kind == "box":
        return float(np.abs(direction) @ np.array(sizes) / 2)
    if shape.kind == "sphere":
        return sizes[0]
    if shape.kind == "cylinder":
        return sizes[0] * across + 0.5 * sizes[1] * abs(z)
    if shape.kind == "cone":
        return max(0.5 * sizes[1] * z, sizes[0] * across - 0.5 * sizes[1] * z)
    if shape.kind == "capsule":
        return sizes[0] + 0.5 * sizes[1] * abs(z)
    if shape.kind == "mesh":
        return float((np.asarray(shape.vertices) @ direction).max())
    if shape.kind == "point_cloud":
        return float((np.asarray(shape.points) @ direction).max()) + sizes[0]
    return float((field_corners(shape) @ direction).max())


# --- point clouds
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(PRIMITIVES))
@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.6))
def test_cloud_against_primitives(kind: str, seed: int) -> None:
    """The distance of a cloud is the smallest of its points less the radius."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 400))
    points = rng.normal(size=(count, 3)) * rng.uniform(0.01, 0.5, 3)
    radius, margin = float(rng.uniform(0.001, 0.05)), float(rng.choice([0.0, 0.02, -0.004]))
    cloud, shape = PointCloud(points, radius=radius), PRIMITIVES[kind]
    world_from_cloud, world_from_shape = random_pose(rng, 0.4), random_pose(rng, 0.4)
    local = (world_from_shape.inverse() @ world_from_cloud).apply(points)
    expected = signed_distance(kind, shape.dimensions, local).min() - radius
    for first, second in ((0, 1), (1, 0)):
        parts = [AttachedShape(cloud, world_from_cloud), AttachedShape(shape, world_from_shape)]
        world = pair_world(parts[first], parts[second], margin=margin)
        assert world.distance([]) == pytest.approx(expected, abs=2e-4 if expected < 0 else 2e-5)
        if abs(expected - margin) > 3e-4:
            assert world.is_in_collision([]) == (expected < margin)


@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.4))
def test_cloud_against_meshes(seed: int) -> None:
    """A cloud and a mesh collide like each ball of the cloud and the mesh, at every level."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * 0.2
    mesh, pose = AttachedShape(blob(rng, 0.3), random_pose(rng, 0.2)), random_pose(rng, 0.3)
    cloud = AttachedShape(PointCloud(points, radius=0.01), pose)
    balls = [AttachedShape(Sphere(0.01), Pose(pose.apply(point))) for point in points]
    for level in ("exact", "hull"):
        world = pair_world(mesh, cloud, level=level)
        singles = [pair_world(mesh, ball, level=level) for ball in balls]
        assert world.distance([]) == pytest.approx(
            min(single.distance([]) for single in singles), abs=1e-6
        )
        assert world.is_in_collision([]) == any(single.is_in_collision([]) for single in singles)


@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.4))
def test_cloud_against_cloud(seed: int) -> None:
    """Two clouds collide like their balls."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(200, 3)) * 0.1, rng.normal(size=(100, 3)) * 0.1 + 0.2
    gaps = np.linalg.norm(a[:, None] - b[None], axis=2)
    expected = gaps.min() - 0.015
    world = pair_world(
        AttachedShape(PointCloud(a, radius=0.01)), AttachedShape(PointCloud(b, radius=0.005))
    )
    assert world.distance([]) == pytest.approx(expected, abs=1e-6)
    if abs(expected) > 1e-5:
        assert world.is_in_collision([]) == (expected < 0)


def test_contacts_with_a_cloud_are_in_the_root() -> None:
    """A contact with a rotated cloud has point, normal and distance in root axes."""
    cloud = AttachedShape(
        PointCloud([[0, 0, 0.5], [0, 0, -3]], radius=0.1), Pose.from_rpy([0, 0, 0], [0, math.pi, 0])
    )
    ball = AttachedShape(Sphere(0.2), Pose([0, 0, -1.0]))
    for parts, sign in (((cloud, ball), -1.0), ((ball, cloud), 1.0)):
        nearest = pair_world(*parts).nearest([])
        assert nearest is not None
        assert nearest.distance == pytest.approx(0.2, abs=1e-6)
        assert nearest.point == pytest.approx([0, 0, -0.7], abs=1e-6)
        assert nearest.normal == pytest.approx([0, 0, sign], abs=1e-6)
        (contact,) = pair_world(*parts, margin=0.3).contacts([])
        assert (contact.frame_a, contact.frame_b, contact.distance) == ("a", "b", nearest.distance)


def test_a_cloud_may_move() -> None:
    """A cloud on a prismatic joint collides with a box at the computed position."""
    box = AttachedShape(Box([1, 1, 0.2]), Pose([0, 0, -0.1]))
    scene = SceneGraph().add_frame("table", "world", shapes=[box])
    cloud = PointCloud(
        np.random.default_rng(0).uniform(-0.3, 0.3, (500, 3)) * [1, 1, 0], radius=0.01
    )
    scene = scene.add_frame("slide", "world", joint=Prismatic([0, 0, 1], lower=-1, upper=1))
    world = CollisionWorld(scene.add_frame("cloud", "slide", shapes=[AttachedShape(cloud)]))
    assert not world.is_in_collision([0.011])
    assert world.is_in_collision([0.009])
    assert world.is_edge_free([0.5], [0.02])
    collision = world.find_edge_collision([0.5], [-0.5], resolution=0.001)
    assert collision is not None
    assert collision.fraction == pytest.approx(0.49, abs=0.002)


def test_a_large_cloud_has_the_same_distances() -> None:
    """With 50,000 points, the tree of a cloud finds the nearest one."""
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (50_000, 3))
    cloud = AttachedShape(PointCloud(points, radius=0.002))
    for _ in range(50):
        pose, shape = random_pose(rng, 1.0), Box(rng.uniform(0.01, 0.08, 3))
        expected = (
            signed_distance("box", shape.dimensions, pose.inverse().apply(points)).min() - 0.002
        )
        world = pair_world(cloud, AttachedShape(shape, pose))
        assert world.distance([]) == pytest.approx(expected, abs=1e-4)
        if abs(expected) > 1e-4:
            assert world.is_in_collision([]) == (expected < 0)


# --- planes
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*PRIMITIVES, "mesh", "sheet", "point_cloud", "height_field"])
@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.4))
def test_planes_against_all_shapes(kind: str, seed: int) -> None:
    """The distance from a plane is the support of the shape along its normal, at every level."""
    rng = np.random.default_rng(seed)
    makers: dict[str, Callable[[], Shape]] = {
        "mesh": lambda: blob(rng, 0.3),
        "sheet": lambda: Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]),
        "point_cloud": lambda: PointCloud(rng.normal(size=(100, 3)), radius=0.05),
        "height_field": lambda: HeightField(rng.uniform(0, 0.3, (4, 5)), size=[0.8, 0.6]),
    }
    shape = makers.get(kind, lambda: PRIMITIVES[kind])()
    world_from_plane, world_from_shape = random_pose(rng, 0.5), random_pose(rng, 0.5)
    normal = world_from_plane.rotation[:, 2]
    reach = support(shape, -world_from_shape.rotation.T @ normal)
    expected = float(normal @ (world_from_shape.translation - world_from_plane.translation)) - reach
    margin = float(rng.choice([0.0, 0.05, -0.1]))
    for level in ("exact",) if kind == "sheet" else ("exact", "hull"):
        plane = AttachedShape(Plane(), world_from_plane)
        world = pair_world(
            plane, AttachedShape(shape, world_from_shape), level=level, margin=margin
        )
        assert world.distance([]) == pytest.approx(expected, abs=1e-6)
        if abs(expected - margin) > 1e-5:
            assert world.is_in_collision([]) == (expected < margin)
        nearest = world.nearest([])
        assert nearest is not None
        assert nearest.normal == pytest.approx(normal, abs=1e-9)


@pytest.mark.parametrize("turn", [0.0, 0.3, math.pi / 2, math.pi])
def test_a_plane_under_a_moving_ball(turn: float) -> None:
    """A fixed plane of any orientation collides with a ball on a slide at the computed position."""
    plane = AttachedShape(Plane(), Pose.from_rpy([0.1, 0, 0.2], [0, turn, 0]))
    scene = SceneGraph().add_frame(
        "floor", "world", shapes=[plane, AttachedShape(Sphere(0.01), Pose([0, 50, 0]))]
    )
    joint = Prismatic([1, 0, 1], lower=-2, upper=2)
    world = CollisionWorld(
        scene.add_frame("ball", "world", joint=joint, shapes=[AttachedShape(Sphere(0.1))])
    )
    for q in np.linspace(-1.5, 1.5, 31):
        center = np.array([1, 0, 1]) * q / math.sqrt(2)
        expected = float(plane.pose.rotation[:, 2] @ (center - plane.pose.translation)) - 0.1
        assert world.is_in_collision([q]) == (expected <= 0)
        assert world.distance([q]) == pytest.approx(expected, abs=1e-9)


def test_planes_do_not_collide() -> None:
    """Two planes have no contact and no distance."""
    world = pair_world(AttachedShape(Plane()), AttachedShape(Plane(), Pose([0, 0, 1])))
    assert not world.is_in_collision([])
    assert world.contacts([]) == []
    assert world.nearest([]) is None
    assert world.distance([]) == math.inf


# --- height fields
# -----------------------------------------------------------------------------------------------


def field_corners(field: Shape) -> Array:
    """Return the points of the surface of a field, row by row, then those of its floor."""
    heights = np.asarray(field.heights)
    (x, y, floor), (rows, columns) = field.dimensions, heights.shape
    across, along = np.meshgrid(
        np.linspace(-x / 2, x / 2, columns), np.linspace(-y / 2, y / 2, rows)
    )
    top = np.column_stack([across.ravel(), along.ravel(), heights.ravel()])
    return np.concatenate([top, np.column_stack([top[:, :2], np.full(len(top), floor)])])


def field_mesh(field: Shape) -> Shape:
    """Return the surface of a field as a closed mesh."""
    rows, columns = field.heights.shape
    count = rows * columns
    faces = []
    for row in range(rows - 1):
        for column in range(columns - 1):
            a = row * columns + column
            b, c, d = a + 1, a + columns, a + columns + 1
            for triangle in ([a, b, d], [a, d, c]):
                faces += [triangle, [count + k for k in triangle[::-1]]]
    rim = [*range(columns - 1), *range(columns - 1, count - 1, columns)]
    rim += [*range(count - 1, count - columns, -1), *range(count - columns, 0, -columns)]
    for a, b in zip(rim, [*rim[1:], rim[0]], strict=True):
        faces += [[b, a, count + a], [b, count + a, count + b]]
    return Mesh(field_corners(field), faces)


def is_below(field: Shape, point: Array) -> bool:
    """Return whether a point lies in the ground, by the plane of the triangle above it."""
    heights = np.asarray(field.heights)
    (x, y, floor), (rows, columns) = field.dimensions, heights.shape
    u, v = (point[0] / x + 0.5) * (columns - 1), (point[1] / y + 0.5) * (rows - 1)
    if not (0 <= u <= columns - 1 and 0 <= v <= rows - 1 and point[2] >= floor):
        return False
    i, j = min(int(u), columns - 2), min(int(v), rows - 2)
    u, v = u - i, v - j
    low, high = heights[j, i], heights[j + 1, i + 1]
    if u >= v:
        top = low + u * (heights[j, i + 1] - low) + v * (high - heights[j, i + 1])
    else:
        top = low + v * (heights[j + 1, i] - low) + u * (high - heights[j + 1, i])
    return bool(point[2] <= top)


def test_the_mesh_of_a_field_is_closed() -> None:
    """The mesh for the next test is closed and encloses the volume of the field."""
    field = HeightField(np.random.default_rng(1).uniform(0, 1, (4, 6)), size=[2, 3], floor=-0.5)
    assert field_mesh(field).volume == pytest.approx(field.volume)


@pytest.mark.parametrize("kind", [*PRIMITIVES, "mesh"])
@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.6))
def test_field_against_its_mesh(kind: str, seed: int) -> None:
    """Outside, a field has the distance of its surface. Inside, it is in contact."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 9, 2)
    field = HeightField(
        rng.uniform(0, 0.4, (rows, columns)), size=rng.uniform(0.5, 1.5, 2), floor=-0.2
    )
    shape = PRIMITIVES.get(kind) or blob(rng, 0.3)
    world_from_field, world_from_shape = random_pose(rng, 0.2), random_pose(rng, 0.8)
    other = AttachedShape(shape, world_from_shape)
    ground = pair_world(AttachedShape(field, world_from_field), other, level="hull")
    # The level is the other shape's: the skin must be triangles.
    skin = AttachedShape(field_mesh(field), world_from_field, level="exact")
    skin_world = pair_world(skin, other, level="hull")
    distance = skin_world.distance([])
    inside = is_below(field, (world_from_field.inverse() @ world_from_shape).translation)
    if distance > 1e-5 and not inside:
        assert ground.distance([]) == pytest.approx(distance, abs=1e-5)
        assert not ground.is_in_collision([])
    else:
        assert ground.distance([]) < 2e-5
    if abs(distance) > 1e-5:
        assert ground.is_in_collision([]) == (distance < 0 or inside)


@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.3))
def test_field_against_clouds_and_fields(seed: int) -> None:
    """A field and a cloud collide like the field and each ball, and two fields symmetrically."""
    rng = np.random.default_rng(seed)
    field = AttachedShape(
        HeightField(rng.uniform(0, 0.3, (5, 6)), size=[1, 1]), random_pose(rng, 0.2)
    )
    points, pose = rng.normal(size=(40, 3)) * 0.3, random_pose(rng, 0.4)
    cloud = AttachedShape(PointCloud(points, radius=0.02), pose)
    balls = [
        pair_world(field, AttachedShape(Sphere(0.02), Pose(pose.apply(point)))) for point in points
    ]
    world = pair_world(field, cloud)
    assert world.distance([]) == pytest.approx(min(ball.distance([]) for ball in balls), abs=1e-5)
    assert world.is_in_collision([]) == any(ball.is_in_collision([]) for ball in balls)
    other = AttachedShape(
        HeightField(rng.uniform(0, 0.3, (3, 3)), size=[0.5, 0.5]), random_pose(rng, 0.8)
    )
    forward, backward = pair_world(field, other), pair_world(other, field)
    assert (
        forward.is_in_collision([])
        == backward.is_in_collision([])
        == (forward.distance([]) <= 1e-6)
    )
    assert forward.distance([]) == pytest.approx(backward.distance([]), abs=1e-4)


def test_rows_of_a_field_run_along_y() -> None:
    """A peak in the last column of the first row has the largest x and the smallest y."""
    heights = np.zeros((3, 4))
    heights[0, 3] = 1.0
    field = AttachedShape(HeightField(heights, size=[3, 2]))

    def probe(x: float, y: float) -> bool:
        ball = AttachedShape(Sphere(0.05), Pose([x, y, 0.7]))
        return pair_world(field, ball).is_in_collision([])

    assert probe(1.45, -0.95)
    assert [probe(-1.45, -0.95), probe(-1.45, 0.95), probe(1.45, 0.95)] == [False] * 3


def test_depth_in_a_field() -> None:
    """A ball that overlaps the ground by 1 mm has this depth, and is free with that tolerance."""
    field = AttachedShape(HeightField(np.full((20, 20), 0.1), size=[2, 2]))
    ball = AttachedShape(Sphere(0.05), Pose([0.02, 0.01, 0.149]))
    assert pair_world(field, ball).distance([]) == pytest.approx(-0.001, abs=1e-5)
    assert pair_world(field, ball).is_in_collision([])
    assert not pair_world(field, ball, margin=-0.002).is_in_collision([])
    assert pair_world(field, ball, margin=-0.0005).is_in_collision([])


# --- levels
# ------------------------------------------------------------------------------------------------


@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.6))
def test_coarse_levels_enclose_finer_ones(seed: int) -> None:
    """The volumes satisfy box >= hull >= exact, for every kind with levels."""
    rng = np.random.default_rng(seed)
    makers = (
        lambda: blob(rng, 0.3),
        lambda: PointCloud(rng.normal(size=(100, 3)) * 0.1, radius=0.02),
        lambda: HeightField(rng.uniform(0, 0.3, (5, 4)), size=[0.5, 0.6]),
        lambda: PRIMITIVES[str(rng.choice(list(PRIMITIVES)))],
        Plane,
    )
    a, b = (
        AttachedShape(makers[k](), random_pose(rng, 0.5))
        for k in (rng.integers(0, 3), rng.integers(0, 5))
    )
    hits = [
        pair_world(a, b, level=level, margin=0.01).is_in_collision([])
        for level in ("box", "hull", "exact")
    ]
    assert hits == sorted(hits, reverse=True)


def test_the_box_of_a_mesh() -> None:
    """At the level box, a mesh is its bounding box in its own axes, wherever its origin is."""
    corner = Mesh(
        [[1, 0, 0], [3, 0, 0], [1, 1, 0], [1, 0, 0.5]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    )
    pose = Pose.from_rpy([0.2, 0.3, 0.4], [0.5, 0.6, 0.7])
    probe = AttachedShape(Sphere(0.01), pose @ Pose([2.9, 0.9, 0.4]))
    assert pair_world(AttachedShape(corner, pose), probe, level="box").is_in_collision([])
    assert not pair_world(AttachedShape(corner, pose), probe, level="hull").is_in_collision([])
    outside = AttachedShape(Sphere(0.01), pose @ Pose([3.1, 0.5, 0.25]))
    assert pair_world(AttachedShape(corner, pose), outside, level="box").distance(
        []
    ) == pytest.approx(0.09, abs=1e-6)


def test_a_flat_mesh_has_a_box() -> None:
    """A sheet, which has no hull, is a thin box at the level box."""
    sheet = AttachedShape(
        Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    )
    ball = AttachedShape(Sphere(0.1), Pose([0.5, 0.5, 0.2]))
    assert pair_world(sheet, ball, level="box").distance([]) == pytest.approx(0.1, abs=2e-6)
    with pytest.raises(ShapeError, match="no convex hull"):
        pair_world(sheet, ball)


def test_a_shape_may_have_its_own_level() -> None:
    """The level of an attached shape replaces the level of the world."""
    corner = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    )
    in_box, in_hull = Pose([0.9, 0.9, 0.9]), Pose([0.2, 0.2, 0.2])
    expected = {
        "box": (True, True),
        "hull": (False, True),
        "exact": (False, False),
        None: (False, True),
    }
    for level, (hits_box, hits_hull) in expected.items():
        part = AttachedShape(corner, level=level)
        assert pair_world(part, AttachedShape(Sphere(0.05), in_box)).is_in_collision([]) == hits_box
        assert (
            pair_world(part, AttachedShape(Sphere(0.05), in_hull)).is_in_collision([]) == hits_hull
        )
    world = pair_world(
        AttachedShape(corner, level="exact"), AttachedShape(corner, Pose([5, 0, 0])), level="box"
    )
    assert (world.level, repr(world)) == ("box", "CollisionWorld(1 pairs, margin=0, level='box')")


def test_unknown_levels_are_rejected() -> None:
    """An unknown level raises an error in a world and in a shape."""
    with pytest.raises(UnknownNameError, match="did you mean 'box'"):
        pair_world(AttachedShape(Sphere(1)), AttachedShape(Sphere(1)), level="boxes")
    with pytest.raises(UnknownNameError, match="did you mean 'exact'"):
        AttachedShape(Sphere(1), level="exakt")  # type: ignore[arg-type]  # that it fails is the test


def test_scenes_with_new_shapes_are_pickled() -> None:
    """A scene with all shapes and levels is equal after pickling."""
    shapes = [
        Plane(),
        PointCloud([[0, 0, 0]], radius=0.1),
        HeightField(np.zeros((2, 3)), size=[1, 2]),
    ]
    parts = [
        AttachedShape(shape, level=level)
        for shape, level in zip(shapes, ("box", "hull", None), strict=True)
    ]
    scene = SceneGraph().add_frame("all", "world", shapes=parts)
    assert pickle.loads(pickle.dumps(scene)) == scene
    assert pickle.loads(pickle.dumps(scene)).shapes("all") == tuple(parts)


@given(seed=SEEDS)
@settings(max_examples=scaled_examples(0.3))
def test_worlds_move_with_new_shapes(seed: int) -> None:
    """A world moved to a version with changed shapes or levels equals a new world."""
    rng = np.random.default_rng(seed)
    shapes = {
        "mesh": blob(rng, 0.3),
        "cloud": PointCloud(rng.normal(size=(50, 3)) * 0.1, radius=0.02),
        "field": HeightField(rng.uniform(0, 0.3, (4, 4)), size=[0.5, 0.6]),
        "plane": Plane(),
        "box": Box([0.2, 0.3, 0.1]),
    }
    scene = SceneGraph()
    for name, shape in shapes.items():
        scene = scene.add_frame(
            name, "world", pose=random_pose(rng, 0.6), shapes=[AttachedShape(shape)]
        )
    joint = Prismatic([0, 0, 1], lower=-1, upper=1)
    scene = scene.add_frame("probe", "world", joint=joint, shapes=[AttachedShape(Sphere(0.1))])
    world = CollisionWorld(scene, movable=list(shapes))
    for _ in range(6):
        name = str(rng.choice(list(shapes)))
        if rng.random() < 0.5:
            scene = scene.set_pose(name, random_pose(rng, 0.6))
        else:
            level = str(rng.choice(["box", "hull", "exact"]))
            scene = scene.set_shapes(name, [AttachedShape(shapes[name], level=level)])
        world, fresh = world.moved_to(scene), CollisionWorld(scene, movable=list(shapes))
        assert world.pairs == fresh.pairs
        for q in rng.uniform(-1, 1, (5, 1)):
            assert world.is_in_collision(q) == fresh.is_in_collision(q)
            assert world.distance(q) == pytest.approx(fresh.distance(q), abs=1e-6)
            assert [c.frame_b for c in world.contacts(q)] == [c.frame_b for c in fresh.contacts(q)]
