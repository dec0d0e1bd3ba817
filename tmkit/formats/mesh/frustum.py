"""Solids that a format has and another lacks, as meshes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import circle, eigen, norms, product
from tmkit.graph import Mesh, Shape

THICKNESS = 1e-4
"""Metres that a mesh without any thickness gets."""

_FLAT = 1e-6  # thickness of a mesh, as a part of its length, below which it has no hull

SIDES = 64  # circles become polygons of so many corners


def frustum(bottom: float, top: float, height: float) -> Shape:
    """Return a cone, or a cone without its tip, centred along z.

    The circles are inscribed polygons of :data:`SIDES` corners, which stand 0.12 % of the radius inside at most.

    Args:
        bottom: radius at ``-height / 2`` in metres, above 0.
        top: radius at ``+height / 2``, 0 for a pointed cone.
        height: metres.
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
        faces += [np.stack(corners, axis=1) for corners in ([here, after, beyond], [here, beyond, above])]
        faces.append(np.stack([tip, above, beyond], axis=1))
    return Mesh(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


def mesh_of_field(field: Shape) -> Shape:
    """Return the skin of a height field, closed, of the same triangles."""
    heights, (x, y, floor) = field.heights, field.dimensions
    rows, columns = heights.shape
    across, along = np.meshgrid(np.linspace(-x / 2, x / 2, columns), np.linspace(-y / 2, y / 2, rows))
    top = np.stack([across, along, heights], axis=-1).reshape(-1, 3)
    bottom = np.column_stack([top[:, :2], np.full(len(top), floor)])
    number = np.arange(len(top)).reshape(rows, columns)
    a, b, c, d = (part.reshape(-1) for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]))
    surface = np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)])
    rim = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
    after = np.roll(rim, -1)
    below, beyond = rim + len(top), after + len(top)
    walls = np.concatenate([np.stack([after, rim, below], axis=1), np.stack([after, below, beyond], axis=1)])
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
    return Mesh(vertices, (starts[:, None, None] + faces).reshape(-1, 3).astype(np.int32), source=cloud.source)


def thickened(mesh: Shape) -> Shape | None:
    """Return a flat mesh with a thickness of :data:`THICKNESS`, which has a hull; ``None`` if it is not flat.

    The mesh is there once on either side of where it was; one whose points lie on a line, on four sides.
    """
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
        corners, faces = np.concatenate([corners - half, corners + half]), np.concatenate([faces, faces + count])
    return Mesh(corners, faces.astype(np.int32), source=mesh.source)


def ellipsoid(radii: tuple[float, float, float]) -> Shape:
    """Return an ellipsoid along x, y and z as a mesh of 320 triangles, whose corners are on it."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    return Mesh(ball.vertices * radii, ball.faces)


def solid_triangles(shape: Shape, *, fineness: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) of a box, sphere, cylinder or capsule as it is drawn.

    Args:
        fineness: how often the sides of balls are divided; others that are round are as fine.
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
        mesh = creation.capsule(height=sizes[1], radius=sizes[0], count=(8 * fineness, 8 * fineness))
    vertices = np.asarray(mesh.vertices, dtype=float)
    return vertices - (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0, np.asarray(mesh.faces, dtype=np.int64)
