"""Meshes with known properties."""

from __future__ import annotations

import numpy as np

from tmkit.graph import Mesh, Shape


def l_mesh(length: float = 0.12, thickness: float = 0.04) -> Shape:
    """Return a closed L in the x-z plane with its corner at the origin, as thick as its arms."""
    long, thin = length, thickness
    outline = np.array([[0, 0], [long, 0], [long, thin], [thin, thin], [thin, long], [0, long]])
    front = np.column_stack([outline[:, 0], np.zeros(6), outline[:, 1]])
    vertices = np.concatenate([front, front + np.array([0.0, thin, 0.0])])
    triangles = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]
    faces = [*triangles, *([a + 6, c + 6, b + 6] for a, b, c in triangles)]
    for i in range(6):
        j = (i + 1) % 6
        faces += [[i, i + 6, j], [j, i + 6, j + 6]]
    return Mesh(vertices, faces)


def tetrahedron(side: float) -> Shape:
    """Return a regular tetrahedron about the origin."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * side / np.sqrt(8.0)
    return Mesh(corners, [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])


def cup_mesh(
    radius: float = 0.045, height: float = 0.08, wall: float = 0.004, sides: int = 24
) -> Shape:
    """Return a cup that stands on the origin, its bottom as thick as its wall, closed."""
    angles = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(sides)])
    levels = [(radius, 0.0), (radius, height), (radius - wall, height), (radius - wall, wall)]
    rings = [r * ring + np.array([0.0, 0.0, z]) for r, z in levels]
    vertices = np.concatenate([*rings, [[0.0, 0.0, 0.0], [0.0, 0.0, wall]]])
    faces, first, last = [], 4 * sides, 4 * sides + 1
    for i in range(sides):
        j = (i + 1) % sides
        faces += [[first, j, i], [last, 3 * sides + i, 3 * sides + j]]
        for k in range(3):
            a, b, c, d = k * sides + i, k * sides + j, (k + 1) * sides + i, (k + 1) * sides + j
            faces += [[a, b, d], [a, d, c]]
    return Mesh(vertices, faces)


def tub_mesh(outer: np.ndarray, inner: np.ndarray, *, height: float, floor: float) -> Shape:
    """Return a closed vessel that stands on the origin.

    Args:
        outer: (n, 2) outline of the outside, counter-clockwise [m].
        inner: (n, 2) outline of the cavity, likewise [m].
        height: height of the wall [m].
        floor: height of the bottom of the cavity [m].
    """
    count = len(outer)
    rings = [
        np.column_stack([ring, np.full(count, z)])
        for ring, z in ((outer, 0.0), (outer, height), (inner, height), (inner, floor))
    ]
    middles = np.array([[*outer.mean(axis=0), 0.0], [*inner.mean(axis=0), floor]])
    faces = []
    for i in range(count):
        j = (i + 1) % count
        faces += [[4 * count, j, i], [4 * count + 1, 3 * count + i, 3 * count + j]]
        for k in range(0, 3 * count, count):
            faces += [[k + i, k + j, k + count + j], [k + i, k + count + j, k + count + i]]
    return Mesh(np.concatenate([*rings, middles]), faces)


def circle_outline(radius: float, sides: int = 24) -> np.ndarray:
    """Return the outline (sides, 2) of a circle about the origin, from direction (-1, -1) on."""
    angles = 2.0 * np.pi * np.arange(sides) / sides - 0.75 * np.pi
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def square_outline(side: float, sides: int = 24) -> np.ndarray:
    """Return the outline (sides, 2) of a square about the origin, including its corners."""
    quarter = sides // 4
    steps = side * (np.arange(quarter) / quarter - 0.5)
    half = np.full(quarter, side / 2.0)
    return np.concatenate(
        [
            np.column_stack(edge)
            for edge in ((steps, -half), (half, steps), (-steps, half), (-half, -steps))
        ]
    )


def join_meshes(*meshes: Shape) -> Shape:
    """Return one mesh with the triangles of several."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [np.asarray(mesh.faces) + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(
        np.concatenate([np.asarray(mesh.vertices) for mesh in meshes]), np.concatenate(faces)
    )


def bowl_mesh(radius: float = 0.06, wall: float = 0.005, sides: int = 24) -> Shape:
    """Return half a hollow ball that stands on the origin, closed."""
    angles = np.pi / 2.0 * np.arange(1, 7) / 6.0
    profile = [
        (r * np.sin(a), radius - r * np.cos(a))
        for r, row in ((radius, angles), (radius - wall, angles[::-1]))
        for a in row
    ]
    ring = circle_outline(1.0, sides)
    rings = [np.column_stack([r * ring, np.full(sides, z)]) for r, z in profile]
    last = len(rings) * sides
    faces = []
    for i in range(sides):
        j = (i + 1) % sides
        faces += [[last, j, i], [last + 1, last - sides + i, last - sides + j]]
        for k in range(0, last - sides, sides):
            faces += [[k + i, k + j, k + sides + j], [k + i, k + sides + j, k + sides + i]]
    return Mesh(np.concatenate([*rings, [[0.0, 0.0, 0.0], [0.0, 0.0, wall]]]), faces)


def handle_mesh(radius: float = 0.022, thickness: float = 0.005) -> Shape:
    """Return a closed upright ring beside the cup of :func:`cup_mesh` that enters its wall."""
    ring = circle_outline(1.0)
    section = circle_outline(thickness, 12)
    reach = radius + section[:, 0]
    points = np.stack(
        [
            0.062 + ring[:, :1] * reach,
            np.broadcast_to(section[:, 1], (24, 12)),
            0.04 + ring[:, 1:] * reach,
        ],
        axis=2,
    )
    index = np.arange(24 * 12).reshape(24, 12)
    a, b = index, np.roll(index, -1, axis=0)
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    faces = np.concatenate(
        [np.stack(corners, axis=2).reshape(-1, 3) for corners in ((a, c, b), (a, d, c))]
    )
    return Mesh(points.reshape(-1, 3), faces)


CONCAVE_MESHES = {
    "cup": cup_mesh,
    "mug": lambda: join_meshes(cup_mesh(), handle_mesh()),
    "bowl": bowl_mesh,
    "brick": lambda: tub_mesh(square_outline(0.1), circle_outline(0.03), height=0.06, floor=0.02),
    "box": lambda: tub_mesh(square_outline(0.12), square_outline(0.112), height=0.06, floor=0.004),
    "l": lambda: l_mesh(0.16, 0.05),
}
"""Objects whose hull is wider than the hand of a Panda, or fills a recess: makers by name."""
