"""Flat patches of meshes: connected triangles in one plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.graph import Shape

Vectors = NDArray[np.float64]

_LARGE = 20_000  # triangles above which the hull is sampled
_COPLANAR = 1e-3  # radians between triangles of one patch


def closed_triangles(shape: Shape) -> Vectors:
    """Return the triangles (n, 3, 3) of a mesh, looking outwards, those without area omitted."""
    vertices, faces = np.asarray(shape.vertices, dtype=float), np.asarray(shape.outward_faces)
    if len(faces) > _LARGE:
        import trimesh

        hull = trimesh.convex.convex_hull(vertices)
        vertices, faces = np.asarray(hull.vertices), np.asarray(hull.faces)
    corners = vertices[faces]
    middle = vertices.mean(axis=0)
    a, b, c = (corners[:, k] - middle for k in range(3))
    if np.einsum("ij,ij->i", a, np.cross(b, c)).sum() < 0.0:
        corners = corners[:, ::-1]
    areas = norms(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])) / 2
    return np.asarray(corners[areas > 1e-14])


def triangle_normals(triangles: Vectors) -> Vectors:
    """Return the unit normals (n, 3) of triangles (n, 3, 3) that have an area."""
    crosses = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return np.asarray(crosses / norms(crosses)[:, None])


def triangle_areas(triangles: Vectors) -> NDArray[np.float64]:
    """Return the areas (n,) of triangles (n, 3, 3)."""
    crosses = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return np.asarray(norms(crosses) / 2)


def flat_patches(
    triangles: Vectors, *, least_area: float = 0.0, most: int | None = None
) -> list[tuple[NDArray[np.intp], Vectors]]:
    """Return for the flat patches of triangles (n, 3, 3), the largest first, indices of triangles and sides (k, 2, 3).

    Args:
        triangles: metres, without any that has no area.
        least_area: square metres of a patch.
        most: how many patches; None for all.
    """
    import trimesh
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    corners, faces = np.unique(np.round(triangles.reshape(-1, 3), 9), axis=0, return_inverse=True)
    mesh = trimesh.Trimesh(corners, np.asarray(faces).reshape(-1, 3), process=False, validate=False)
    pairs = mesh.face_adjacency[mesh.face_adjacency_angles <= _COPLANAR]
    joined = coo_matrix(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(mesh.faces),) * 2
    )
    labels = np.asarray(connected_components(joined, directed=False)[1])
    areas = np.bincount(labels, weights=triangle_areas(triangles))
    largest = np.argsort(-np.round(areas, 12), kind="stable")[:most]
    found = []
    for label in largest[areas[largest] >= least_area].tolist():
        patch = np.flatnonzero(labels == label)
        sides = np.sort(np.asarray(mesh.faces)[patch][:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        outline, counts = np.unique(sides, axis=0, return_counts=True)
        found.append((patch, corners[outline[counts == 1]]))
    return found
