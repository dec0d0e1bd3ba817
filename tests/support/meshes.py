"""Meshes whose answers are known by hand."""

from __future__ import annotations

import numpy as np

from tmkit.graph import Mesh, Shape


def l_mesh(length: float = 0.12, thickness: float = 0.04) -> Shape:
    """Return an L in the x-z plane with its corner at the origin, as thick along y as its arms are, closed."""
    long, thin = length, thickness
    outline = np.array([[0, 0], [long, 0], [long, thin], [thin, thin], [thin, long], [0, long]])
    near = np.column_stack([outline[:, 0], np.zeros(6), outline[:, 1]])
    vertices = np.concatenate([near, near + np.array([0.0, thin, 0.0])])
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


def cup_mesh(radius: float = 0.045, height: float = 0.08, wall: float = 0.004, sides: int = 24) -> Shape:
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
