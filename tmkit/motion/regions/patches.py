"""Flat patches of meshes, which are connected triangles in one plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.graph import Shape

Vectors = NDArray[np.float64]

_MAX_TRIANGLES = 20_000
"""Number of triangles above which a mesh is replaced by its convex hull."""

_COPLANAR_ANGLE = 1e-3
"""Largest angle between neighbouring triangles of one patch [rad]."""

_MIN_TRIANGLE_AREA = 1e-14
"""Area up to which triangles are dropped [m^2]."""


def outward_triangles(shape: Shape) -> Vectors:
    """Return the triangles (n, 3, 3) of a mesh with outward normals, without degenerate ones."""
    vertices, faces = np.asarray(shape.vertices, dtype=float), np.asarray(shape.outward_faces)
    if len(faces) > _MAX_TRIANGLES:
        import trimesh

        hull = trimesh.convex.convex_hull(vertices)
        vertices, faces = np.asarray(hull.vertices), np.asarray(hull.faces)
    corners = vertices[faces]
    middle = vertices.mean(axis=0)
    a, b, c = (corners[:, k] - middle for k in range(3))
    if np.einsum("ij,ij->i", a, np.cross(b, c)).sum() < 0.0:
        corners = corners[:, ::-1]
    areas = norms(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])) / 2
    return np.asarray(corners[areas > _MIN_TRIANGLE_AREA])


def triangle_normals(triangles: Vectors) -> Vectors:
    """Return the unit normals (n, 3) of non-degenerate triangles (n, 3, 3)."""
    crosses = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return np.asarray(crosses / norms(crosses)[:, None])


def triangle_areas(triangles: Vectors) -> NDArray[np.float64]:
    """Return the areas (n,) of triangles (n, 3, 3)."""
    crosses = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return np.asarray(norms(crosses) / 2)


def flat_patches(
    triangles: Vectors, *, min_area: float = 0.0, max_count: int | None = None
) -> list[tuple[NDArray[np.intp], Vectors]]:
    """Return the flat patches of a triangle mesh, the largest first.

    Args:
        triangles: (n, 3, 3) corners of non-degenerate triangles [m].
        min_area: smallest area of a patch [m^2].
        max_count: largest number of patches. None for all.

    Returns:
        Indices of the triangles of each patch, and the edges (k, 2, 3) of its outline [m].
    """
    import trimesh
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    corners, faces = np.unique(np.round(triangles.reshape(-1, 3), 9), axis=0, return_inverse=True)
    mesh = trimesh.Trimesh(corners, np.asarray(faces).reshape(-1, 3), process=False, validate=False)
    pairs = mesh.face_adjacency[mesh.face_adjacency_angles <= _COPLANAR_ANGLE]
    adjacency = coo_matrix(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(mesh.faces),) * 2
    )
    labels = np.asarray(connected_components(adjacency, directed=False)[1])
    areas = np.bincount(labels, weights=triangle_areas(triangles))
    largest = np.argsort(-np.round(areas, 12), kind="stable")[:max_count]
    patches = []
    for label in largest[areas[largest] >= min_area].tolist():
        patch = np.flatnonzero(labels == label)
        edges = np.sort(np.asarray(mesh.faces)[patch][:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        outline, counts = np.unique(edges, axis=0, return_counts=True)
        patches.append((patch, corners[outline[counts == 1]]))
    return patches
