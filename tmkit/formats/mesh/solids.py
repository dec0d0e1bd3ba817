"""Meshes and mass properties of solids.

Meshes replace solids that a file format does not support. Mass properties assume a uniform density,
for scene files that specify only a mass [kg]. The formulas are the textbook integrals over each
solid [kg m^2]. A capsule is a cylinder with two half balls. A mesh is the sum of the signed
tetrahedra between its faces and a point, which requires a closed mesh with outward faces.
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

THICKNESS = 1e-4
"""Thickness that a flat mesh gets [m]."""

_MAX_FLATNESS = 1e-6
"""Ratio of thickness and length of a mesh below which it is flat and has no hull."""

SIDES = 64
"""Number of corners of the polygons that replace circles."""

Matrix = npt.NDArray[np.float64]


def frustum(bottom: float, top: float, height: float) -> Shape:
    """Return a frustum along z, centred at the origin; a cone if ``top`` is 0.

    The circles are inscribed polygons of :data:`SIDES` corners, which lie at most 0.12 % of the
    radius inside.

    Args:
        bottom: radius at the bottom [m].
        top: radius at the top [m].
        height: height [m].
    """
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rim = np.column_stack([circle(angles), np.zeros(SIDES)])
    half_height = np.array([0.0, 0.0, 0.5 * height])
    index, next_index = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    bottom_center, top_center = np.full(SIDES, SIDES), np.full(SIDES, SIDES + 1)
    vertices = [bottom * rim - half_height, [-half_height], [half_height]]
    faces = [np.stack([bottom_center, next_index, index], axis=1)]
    if top == 0.0:
        faces.append(np.stack([index, next_index, top_center], axis=1))
    else:
        top_index, next_top_index = index + SIDES + 2, next_index + SIDES + 2
        vertices.append(top * rim + half_height)
        faces += [
            np.stack([index, next_index, next_top_index], axis=1),
            np.stack([index, next_top_index, top_index], axis=1),
            np.stack([top_center, top_index, next_top_index], axis=1),
        ]
    return Mesh(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


def mesh_of_field(field: Shape) -> Shape:
    """Return the closed surface of a height field, with the same triangles."""
    heights, (x, y, floor) = field.heights, field.dimensions
    rows, columns = heights.shape
    grid_x, grid_y = np.meshgrid(
        np.linspace(-x / 2, x / 2, columns), np.linspace(-y / 2, y / 2, rows)
    )
    top = np.stack([grid_x, grid_y, heights], axis=-1).reshape(-1, 3)
    bottom = np.column_stack([top[:, :2], np.full(len(top), floor)])
    number = np.arange(len(top)).reshape(rows, columns)
    a, b, c, d = (
        part.reshape(-1)
        for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:])
    )
    surface = np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)])
    rim = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
    next_rim = np.roll(rim, -1)
    floor_rim, next_floor_rim = rim + len(top), next_rim + len(top)
    walls = np.concatenate(
        [
            np.stack([next_rim, rim, floor_rim], axis=1),
            np.stack([next_rim, floor_rim, next_floor_rim], axis=1),
        ]
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


def thicken_flat_mesh(mesh: Shape) -> Shape | None:
    """Return two copies of a flat mesh at the distance :data:`THICKNESS`, or None if not flat.

    A line has four copies.
    """
    points = np.asarray(mesh.vertices)
    offsets = points - points.mean(axis=0)
    offsets /= float(np.max(np.abs(offsets))) or 1.0
    axes = eigen(product(offsets.T, offsets))[1].T[::-1]  # the longest first
    extents = norms(product(axes, offsets.T))
    thin_axes = [
        axis
        for axis, extent in zip(axes, extents, strict=True)
        if extent <= _MAX_FLATNESS * extents[0]
    ]
    if not thin_axes:
        return None
    corners, faces = points, np.asarray(mesh.faces)
    for axis in thin_axes:
        offset = 0.5 * THICKNESS * axis
        faces = np.concatenate([faces, faces + len(corners)])
        corners = np.concatenate([corners - offset, corners + offset])
    return Mesh(corners, faces.astype(np.int32), source=mesh.source)


def ellipsoid(radii: tuple[float, float, float]) -> Shape:
    """Return a mesh of 320 triangles, whose corners lie on an ellipsoid along x, y and z.

    Args:
        radii: radii along x, y and z [m].
    """
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    return Mesh(ball.vertices * radii, ball.faces)


def solid_triangles(
    shape: Shape, *, fineness: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return vertices (n, 3) [m] and faces (m, 3) of a box, sphere, cylinder or capsule.

    Args:
        shape: the solid.
        fineness: number of subdivisions of a sphere; factor of the sides of other solids.
    """
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
    center = (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0
    return vertices - center, np.asarray(mesh.faces, dtype=np.int64)


def solid_inertia(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    """Return the centre of mass (3,) [m] and the inertia about it (3, 3) [kg m^2] of a solid.

    Args:
        shape: solid of uniform density.
        mass: mass [kg].

    Raises:
        ShapeError: if the shape has no volume.
    """
    if shape.kind in ("plane", "point_cloud", "height_field"):
        raise ShapeError(
            f"a {shape.kind.replace('_', ' ')} has no volume for a mass; give the frame an inertia"
        )
    if shape.kind == "mesh":
        return _mesh_inertia(shape, mass)
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
        across, along = _capsule_inertia(radius, length, mass)
    return center, np.diag([across, across, along])


def _capsule_inertia(radius: float, length: float, mass: float) -> tuple[float, float]:
    """Return the moments of inertia of a capsule across and along its axis [kg m^2]."""
    radius2, length2 = radius * radius, length * length
    tube, ball = math.pi * radius2 * length, 4.0 / 3.0 * math.pi * radius2 * radius
    tube_mass, ball_mass = mass * tube / (tube + ball), mass * ball / (tube + ball)
    along = tube_mass * radius2 / 2.0 + 0.4 * ball_mass * radius2
    across = tube_mass * (radius2 / 4.0 + length2 / 12.0)
    across += ball_mass * (0.4 * radius2 + length2 / 4.0 + 0.375 * length * radius)
    return across, along


def _mesh_inertia(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    """Return the centre of mass (3,) [m] and the inertia (3, 3) [kg m^2] of a closed mesh.

    Raises:
        ShapeError: if the mesh has no volume.
    """
    corners = shape.vertices[shape.outward_faces]
    # The rounding error is smallest for integrals about a point inside.
    origin = shape.vertices[np.unique(shape.faces)].mean(axis=0)
    a, b, c = (corners[:, k] - origin for k in range(3))
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
    return center + origin, np.trace(covariance) * np.eye(3) - covariance


def combine_inertias(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    """Return the total inertia, in the frame, of uniform solids.

    Args:
        parts: shape, pose frame_from_shape and mass [kg] of each solid.

    Raises:
        ShapeError: if a solid has no volume, or the inertia overflows.
    """
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return _sum_inertias(parts)
    except (FloatingPointError, OverflowError):
        raise ShapeError(
            "sizes and masses are so large that the inertia cannot be computed"
        ) from None


def _sum_inertias(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    """Return the total inertia of solids; overflow raises an ArithmeticError."""
    total_mass = sum(mass for _, _, mass in parts)
    centers, matrices = [], []
    for shape, pose, mass in parts:
        center, matrix = solid_inertia(shape, mass)
        if not np.all(np.isfinite(matrix)):
            raise OverflowError
        centers.append(pose.apply(center))
        matrices.append(product(pose.rotation, matrix, pose.rotation.T))
    first_moment = np.zeros(3)
    for center, (_, _, mass) in zip(centers, parts, strict=True):
        first_moment = first_moment + mass * center
    center_of_mass = first_moment / total_mass
    inertia = np.zeros((3, 3))
    for center, matrix, (_, _, mass) in zip(centers, matrices, parts, strict=True):
        offset = center - center_of_mass
        inertia += matrix + mass * (dot(offset, offset) * np.eye(3) - np.outer(offset, offset))
    return Inertia(total_mass, center_of_mass, matrix=0.5 * (inertia + inertia.T))
