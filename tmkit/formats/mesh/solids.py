"""Solids that a format has and another lacks, as meshes.

Mass properties of solids of uniform density. Used when a scene file gives only a mass. The formulas
are the textbook integrals over each solid. A capsule is a cylinder with two half balls, and a mesh
the sum of the signed tetrahedra between its faces and the origin. This is right when the mesh is
closed and its faces look outwards. Kilograms, metres, kg m^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import circle, dot, eigen, norms, product
from tmkit.errors import ShapeError
from tmkit.graph import Inertia, Mesh, Shape
from tmkit.spatial import Pose

THICKNESS = 1e-4  # metres that a mesh without any thickness gets
_FLAT = 1e-6  # thickness of a mesh, as a part of its length, below which it has no hull

SIDES = 64  # circles become polygons of so many corners


def frustum(bottom: float, top: float, height: float) -> Shape:
    """Return a cone, or one without its tip, centred along z, by radii and height in metres.

    The circles are inscribed polygons of :data:`SIDES` corners, which stand 0.12 % of the radius
    inside at most.
    """
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rim = np.column_stack([circle(angles), np.zeros(SIDES)])
    half = np.array([0.0, 0.0, 0.5 * height])
    here, after = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    low, tip = np.full(SIDES, SIDES), np.full(SIDES, SIDES + 1)
    vertices = [bottom * rim - half, [-half], [half]]
    faces = [np.stack([low, after, here], axis=1)]
    if top == 0.0:
        faces.append(np.stack([here, after, tip], axis=1))
    else:
        above, beyond = here + SIDES + 2, after + SIDES + 2
        vertices.append(top * rim + half)
        faces += [
            np.stack(corners, axis=1) for corners in ([here, after, beyond], [here, beyond, above])
        ]
        faces.append(np.stack([tip, above, beyond], axis=1))
    return Mesh(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


def mesh_of_field(field: Shape) -> Shape:
    """Return the skin of a height field, closed, of the same triangles."""
    heights, (x, y, floor) = field.heights, field.dimensions
    rows, columns = heights.shape
    across, along = np.meshgrid(
        np.linspace(-x / 2, x / 2, columns), np.linspace(-y / 2, y / 2, rows)
    )
    top = np.stack([across, along, heights], axis=-1).reshape(-1, 3)
    bottom = np.column_stack([top[:, :2], np.full(len(top), floor)])
    number = np.arange(len(top)).reshape(rows, columns)
    a, b, c, d = (
        part.reshape(-1)
        for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:])
    )
    surface = np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)])
    rim = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
    after = np.roll(rim, -1)
    below, beyond = rim + len(top), after + len(top)
    walls = np.concatenate(
        [np.stack([after, rim, below], axis=1), np.stack([after, below, beyond], axis=1)]
    )
    faces = np.concatenate([surface, surface[:, ::-1] + len(top), walls])
    return Mesh(np.concatenate([top, bottom]), faces.astype(np.int32), source=field.source)


def mesh_of_cloud(cloud: Shape) -> Shape:
    """Return a cube around each ball of a point cloud."""
    (radius,) = cloud.dimensions
    corners = radius * np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)]) * 2.0 - radius
    quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
    faces = np.array([[quad[0], quad[k], quad[k + 1]] for quad in quads for k in (1, 2)])
    starts = 8 * np.arange(len(cloud.points))
    vertices = (cloud.points[:, None] + corners).reshape(-1, 3)
    return Mesh(
        vertices,
        (starts[:, None, None] + faces).reshape(-1, 3).astype(np.int32),
        source=cloud.source,
    )


def thickened(mesh: Shape) -> Shape | None:
    """Return a flat mesh once on either side, :data:`THICKNESS` apart (a line on four), ``None`` if it is not flat."""
    points = np.asarray(mesh.vertices)
    offsets = points - points.mean(axis=0)
    offsets /= float(np.max(np.abs(offsets))) or 1.0
    axes = eigen(product(offsets.T, offsets))[1].T[::-1]  # the longest first
    spread = norms(product(axes, offsets.T))
    thin = [axis for axis, size in zip(axes, spread, strict=True) if size <= _FLAT * spread[0]]
    if not thin:
        return None
    corners, faces = points, np.asarray(mesh.faces)
    for axis in thin:
        half, count = 0.5 * THICKNESS * axis, len(corners)
        corners, faces = (
            np.concatenate([corners - half, corners + half]),
            np.concatenate([faces, faces + count]),
        )
    return Mesh(corners, faces.astype(np.int32), source=mesh.source)


def ellipsoid(radii: tuple[float, float, float]) -> Shape:
    """Return an ellipsoid along x, y and z as a mesh of 320 triangles, whose corners are on it."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    return Mesh(ball.vertices * radii, ball.faces)


def solid_triangles(
    shape: Shape, *, fineness: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) of a solid as drawn, balls' sides divided ``fineness`` times."""
    from trimesh import creation

    sizes = [float(size) for size in shape.dimensions]
    if shape.kind == "box":
        mesh = creation.box(sizes)
    elif shape.kind == "sphere":
        mesh = creation.icosphere(subdivisions=fineness, radius=sizes[0])
    elif shape.kind == "cylinder":
        mesh = creation.cylinder(radius=sizes[0], height=sizes[1], sections=16 * fineness)
    else:
        mesh = creation.capsule(
            height=sizes[1], radius=sizes[0], count=(8 * fineness, 8 * fineness)
        )
    vertices = np.asarray(mesh.vertices, dtype=float)
    return vertices - (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0, np.asarray(
        mesh.faces, dtype=np.int64
    )


Matrix = npt.NDArray[np.float64]


def solid_inertia(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    """Return the centre (3,) and the inertia about it (3, 3) of a uniform solid; one without volume is refused."""
    if shape.kind in ("plane", "point_cloud", "height_field"):
        raise ShapeError(
            f"a {shape.kind.replace('_', ' ')} has no mass of its own; give the frame an inertia"
        )
    if shape.kind == "mesh":
        return _mesh(shape, mass)
    center = np.zeros(3)
    if shape.kind == "box":
        squares = np.square(shape.dimensions)
        return center, np.diag(mass / 12.0 * (squares.sum() - squares))
    if shape.kind == "sphere":
        return center, np.diag([0.4 * mass * shape.dimensions[0] * shape.dimensions[0]] * 3)
    radius, length = shape.dimensions
    radius2, length2 = radius * radius, length * length
    if shape.kind == "cylinder":
        across, along = mass * (radius2 / 4.0 + length2 / 12.0), mass * radius2 / 2.0
    elif shape.kind == "cone":
        center = np.array([0.0, 0.0, -length / 4.0])
        across, along = mass * (0.15 * radius2 + 0.0375 * length2), 0.3 * mass * radius2
    else:
        across, along = _capsule(radius, length, mass)
    return center, np.diag([across, across, along])


def _capsule(radius: float, length: float, mass: float) -> tuple[float, float]:
    """Return the moments of a capsule across and along its axis."""
    radius2, length2 = radius * radius, length * length
    tube, ball = math.pi * radius2 * length, 4.0 / 3.0 * math.pi * radius2 * radius
    tube_mass, ball_mass = mass * tube / (tube + ball), mass * ball / (tube + ball)
    along = tube_mass * radius2 / 2.0 + 0.4 * ball_mass * radius2
    across = tube_mass * (radius2 / 4.0 + length2 / 12.0)
    across += ball_mass * (0.4 * radius2 + length2 / 4.0 + 0.375 * length * radius)
    return across, along


def _mesh(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    corners = shape.vertices[shape.outward_faces]
    # integrals about a point inside lose fewer digits
    middle = shape.vertices[np.unique(shape.faces)].mean(axis=0)
    a, b, c = (corners[:, k] - middle for k in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    lower, upper = shape.bounds
    if volume <= 1e-9 * float(np.prod(np.maximum(upper - lower, 1e-9))):
        raise ShapeError(
            "the mesh encloses no volume (it is open or flat), so a mass cannot be spread over it"
        )
    center = np.einsum("i,ij->j", volumes, a + b + c) / (4.0 * volume)
    total = a + b + c
    second = sum(np.einsum("i,ij,ik->jk", volumes, p, p) for p in (a, b, c, total)) / 20.0
    covariance = mass * (second / volume - np.outer(center, center))
    return center + middle, np.trace(covariance) * np.eye(3) - covariance


def united_inertia(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    """Return the inertia, in the frame, of uniform solids as one; parts have poses frame_from_shape and masses."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return _united(parts)
    except (FloatingPointError, OverflowError):
        raise ShapeError(
            "sizes and masses are so large that the inertia cannot be computed"
        ) from None


def _united(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    total = sum(mass for _, _, mass in parts)
    centers, matrices = [], []
    for shape, pose, mass in parts:
        center, matrix = solid_inertia(shape, mass)
        if not np.all(np.isfinite(matrix)):
            raise OverflowError
        centers.append(pose.apply(center))
        matrices.append(product(pose.rotation, matrix, pose.rotation.T))
    middle = (
        sum(
            (mass * center for center, (_, _, mass) in zip(centers, parts, strict=True)),
            np.zeros(3),
        )
        / total
    )
    moment = np.zeros((3, 3))
    for center, matrix, (_, _, mass) in zip(centers, matrices, parts, strict=True):
        offset = center - middle
        moment += matrix + mass * (dot(offset, offset) * np.eye(3) - np.outer(offset, offset))
    return Inertia(total, middle, matrix=0.5 * (moment + moment.T))
