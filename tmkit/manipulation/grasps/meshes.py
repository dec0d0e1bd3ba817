"""Contacts on meshes: antipodal pairs and suction points (docs/howto/samplers.md).

A pair is *antipodal* if the line between its points lies in the friction cones of both (Nguyen,
"Constructing force-closure grasps", 1988). A suction cup needs a flat patch with room for its rim:
connected triangles in one plane. Candidates are the centroid of the patch and points of a grid. A
mesh with more than 20,000 triangles is replaced by its hull.

Invariants: finitely many contacts for a seed, best first. The best pairs have opposite normals and
are near the centre of mass. The line of pull of the best suction points passes near it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import circle, cos, dot, norm, norms, product
from tmkit.graph import Shape
from tmkit.motion.regions.patches import (
    flat_patches,
    outward_triangles,
    triangle_areas,
    triangle_normals,
)

FRICTION = 0.5
"""Friction coefficient of antipodal pairs: the line is within 27 degrees of both normals.

It is below the default of a finger on an object, 0.7, so a sampled grasp has a reserve.
"""

_APPROACH_COUNT = 8
"""Number of approach directions around the line between two contacts."""

_SAMPLE_COUNT = 640
"""Number of random points on the surface."""

_MAX_DISTANT_PAIRS = 12
"""Maximum number of additional pairs far from all better ones."""

_DISTANT_PAIR_DISTANCE = 0.02
"""Smallest distance of an additional pair from all better ones [m]."""

_MAX_FLAT_PARTS = 24
"""Maximum number of flat parts whose centroids are sampled."""

_MAX_SAMPLED_PAIRS = 480
"""Maximum number of contact pairs of a mesh, of which a hand uses few."""

_MAX_PARALLEL_SAMPLES = 160
"""Maximum number of these that are nearly parallel."""

_DUPLICATE_DISTANCE = 0.008
"""Distance below which parallel pairs, or suction points, are duplicates [m]."""

_PARALLEL_COSINE = cos(math.radians(12.0))
"""Cosine between the axes of two pairs above which they are parallel."""

_MAX_RAY_TRIANGLES = 1_000_000
"""Number of combinations of rays and triangles in memory."""

_MAX_PATCH_POINTS = 6
"""Maximum number of suction points on one patch."""

_TRIANGLE_TOLERANCE = 1e-9
"""Barycentric coordinate by which a ray may miss a triangle, for rounding."""

_MIN_HIT_DISTANCE = 1e-6
"""Smallest distance between the start of a ray and a hit [m]."""

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class ContactPair:
    """Two points of a surface at which a parallel hand can grasp.

    Attributes:
        middle: (3,) midpoint [m].
        axis: (3,) unit vector from the first to the second point.
        width: distance between the points [m].
        alignment: smaller cosine of the angles between the line and the two normals.
    """

    middle: Vectors
    axis: Vectors
    width: float
    alignment: float


@dataclass(frozen=True)
class SuctionPoint:
    """Position for a suction cup.

    Attributes:
        point: (3,) position [m].
        normal: (3,) outward unit normal of the patch.
        tangent: (3,) unit vector along the longest side of the patch.
        room: distance to the edge of the patch [m].
    """

    point: Vectors
    normal: Vectors
    tangent: Vectors
    room: float


def antipodal_pairs(
    shape: Shape,
    *,
    centre: Vectors,
    widths: tuple[float, float],
    rng: np.random.Generator,
    friction: float = FRICTION,
    depth: float = math.inf,
) -> list[ContactPair]:
    """Return antipodal pairs on a mesh, best first.

    Args:
        shape: mesh.
        centre: (3,) centre of mass [m].
        widths: smallest and largest distance between the points of a pair [m].
        rng: random generator of the surface points.
        friction: friction coefficient of the contacts.
        depth: depth of the fingers [m]. Pairs deeper in the mesh's hull, from every side, come
            last.
    """
    triangles = outward_triangles(shape)
    if not len(triangles):
        return []
    normals = triangle_normals(triangles)
    points, directions = _sample_surface(triangles, normals, rng)
    cone_cosine = 1.0 / math.hypot(1.0, friction)
    pairs = list(_pairs(triangles, normals, points, directions, widths, cone_cosine))
    corners = np.unique(triangles.reshape(-1, 3), axis=0)
    size = norm(np.ptp(corners, axis=0))

    def cost(pair: ContactPair) -> tuple[bool, float, float, float, float, float]:
        """Return the sort key of a pair, with its position to break ties."""
        offset = norm(np.cross(pair.middle - centre, pair.axis)) / size
        depths = np.zeros(1)
        if depth < size:
            depths = np.einsum("ij,kj->ik", corners - pair.middle, -approaches(pair.axis))
        is_deep = float(np.min(np.max(depths, axis=0))) > depth
        misalignment = round(1.0 - pair.alignment + offset, 6)
        return (is_deep, misalignment, round(pair.width, 9), *np.round(pair.middle, 9).tolist())

    return distinct_pairs(
        sorted(pairs, key=cost), limit=_MAX_SAMPLED_PAIRS, of_axis=_MAX_PARALLEL_SAMPLES
    )


def approaches(axis: Vectors) -> Vectors:
    """Return approach directions (k, 3) of a hand that closes along an axis (3,), down first."""
    down = np.array([0.0, 0.0, -1.0]) if abs(axis[2]) < 0.9 else np.array([-1.0, 0.0, 0.0])
    first = down - dot(down, axis) * axis
    first /= norm(first)
    points = circle(2.0 * math.pi * np.arange(_APPROACH_COUNT) / _APPROACH_COUNT)
    return points[:, :1] * first + points[:, 1:] * np.cross(axis, first)


def distinct_pairs(pairs: Iterable[ContactPair], *, limit: int, of_axis: int) -> list[ContactPair]:
    """Return contact pairs without near duplicates, then some pairs far from all of these.

    The latter are needed for small graspable parts such as a handle.

    Args:
        pairs: contact pairs, best first.
        limit: maximum number of the former.
        of_axis: maximum number of the former with nearly parallel axes.
    """
    distinct, rest = list[ContactPair](), list[ContactPair]()
    for pair in pairs:
        parallel = [
            neighbour
            for neighbour in distinct
            if abs(dot(pair.axis, neighbour.axis)) > _PARALLEL_COSINE
        ]
        is_new = all(
            norm(pair.middle - neighbour.middle) >= _DUPLICATE_DISTANCE for neighbour in parallel
        )
        is_selected = is_new and len(parallel) < of_axis and len(distinct) < limit
        (distinct if is_selected else rest).append(pair)
    max_count = len(distinct) + _MAX_DISTANT_PAIRS
    for pair in rest:
        if len(distinct) < max_count and all(
            norm(pair.middle - neighbour.middle) >= _DISTANT_PAIR_DISTANCE for neighbour in distinct
        ):
            distinct.append(pair)
    return distinct


def suction_points(shape: Shape, *, centre: Vectors, rim: float) -> list[SuctionPoint]:
    """Return positions for a suction cup on the flat patches of a mesh, best first.

    Args:
        shape: mesh.
        centre: (3,) centre of mass [m].
        rim: radius of the cup [m].
    """
    triangles = outward_triangles(shape)
    if not len(triangles):
        return []
    contacts = [
        contact
        for patch, edges in flat_patches(triangles, min_area=math.pi * rim * rim)
        for contact in _patch_points(triangles[patch], edges, rim, centre)
    ]

    def cost(contact: SuctionPoint) -> tuple[float, ...]:
        """Return the sort key of a point: its lever arm, then its pose to break ties."""
        lever_arm = norm(np.cross(centre - contact.point, contact.normal))
        pose = np.round([*-contact.normal[::-1], *contact.point], 9)
        return (round(float(lever_arm), 6), *pose.tolist())

    return sorted(contacts, key=cost)


def _sample_surface(
    triangles: Vectors, normals: Vectors, rng: np.random.Generator
) -> tuple[Vectors, Vectors]:
    """Return points (n, 3) on the surface [m], with their inward unit normals (n, 3)."""
    areas = triangle_areas(triangles)

    # The centroids of flat parts.
    centroids, centroid_directions = [], []
    for patch, _ in flat_patches(triangles, max_count=_MAX_FLAT_PARTS):
        centres = triangles[patch].mean(axis=1)
        centroids.append((centres * areas[patch][:, None]).sum(axis=0) / areas[patch].sum())
        centroid_directions.append(-normals[patch[0]])

    # Random points, uniform in area.
    indices = rng.choice(len(triangles), size=_SAMPLE_COUNT, p=areas / areas.sum())
    u, v = rng.random((2, _SAMPLE_COUNT))
    is_beyond = u + v > 1.0
    u[is_beyond], v[is_beyond] = 1.0 - u[is_beyond], 1.0 - v[is_beyond]
    a, b, c = (triangles[indices, k] for k in range(3))
    random_points = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    points = np.concatenate([np.array(centroids).reshape(-1, 3), random_points])
    directions = [np.array(centroid_directions).reshape(-1, 3), -normals[indices]]
    return points, np.concatenate(directions)


def _pairs(
    triangles: Vectors,
    normals: Vectors,
    points: Vectors,
    directions: Vectors,
    widths: tuple[float, float],
    cone_cosine: float,
) -> Iterator[ContactPair]:
    """Yield contact pairs at the ends of rays, with both normals within the friction cone.

    A second ray from the same point, along the mean of both normals, is often better aligned.

    Args:
        triangles: (n, 3, 3) triangles of the mesh [m].
        normals: (n, 3) outward normals.
        points: (m, 3) points on the surface [m].
        directions: (m, 3) inward normals at the points.
        widths: smallest and largest distance between the points of a pair [m].
        cone_cosine: smallest cosine between the line and each normal.
    """
    second_rays: list[tuple[Vectors, Vectors, Vectors, float]] = []
    ray_hits = _cast_rays(triangles, points, directions)
    for start, direction, hits in zip(points, directions, ray_hits, strict=True):
        exits = _exits(hits, normals, direction)
        for distance, index in dict.fromkeys(exits[:1] + exits[-1:]):
            alignment = dot(normals[index], direction)
            if alignment >= cone_cosine and widths[0] <= distance <= widths[1]:
                middle = start + distance / 2 * direction
                yield ContactPair(middle, direction, distance, min(1.0, alignment))
            mean = direction + normals[index]
            length = norm(mean)
            if 1e-9 < length < 2.0 - 1e-9:
                second_rays.append((start, direction, mean / length, distance))
    if not second_rays:
        return
    starts = np.array([start for start, *_ in second_rays])
    axes = np.array([axis for _, _, axis, _ in second_rays])
    ray_hits = _cast_rays(triangles, starts, axes)
    for (start, direction, axis, first_distance), hits in zip(second_rays, ray_hits, strict=True):
        exits = _exits(hits, normals, axis)
        if exits:
            distance, index = min(exits, key=lambda hit: abs(hit[0] - first_distance))
            alignment = min(dot(direction, axis), dot(normals[index], axis))
            if alignment >= cone_cosine and widths[0] <= distance <= widths[1]:
                middle = start + distance / 2 * axis
                yield ContactPair(middle, axis, distance, min(1.0, alignment))


def _exits(
    hits: list[tuple[float, int]], normals: Vectors, axis: Vectors
) -> list[tuple[float, int]]:
    """Return the hits (distance, triangle) at which a ray leaves the object, nearest first."""
    return [
        (distance, index)
        for distance, index in hits
        if dot(normals[index], axis) > _TRIANGLE_TOLERANCE
    ]


def _cast_rays(
    triangles: Vectors, starts: Vectors, directions: Vectors
) -> list[list[tuple[float, int]]]:
    """Return for each ray its hits (distance, triangle) beyond its start, nearest first.

    Only triangles whose bounding balls intersect the line of the ray are checked exactly. BLAS
    computes this selection: its last bits do not matter, since the balls are enlarged by much more.

    Args:
        triangles: (n, 3, 3) triangles [m].
        starts: (m, 3) starts of the rays [m].
        directions: (m, 3) unit vectors along the rays.
    """
    centres = triangles.mean(axis=1)
    radii = norms(triangles - centres[:, None]).max(axis=1) + _MIN_HIT_DISTANCE
    chunk = max(1, _MAX_RAY_TRIANGLES // len(triangles))
    ray_hits: list[list[tuple[float, int]]] = []
    for first in range(0, len(starts), chunk):
        start, direction = starts[first : first + chunk], directions[first : first + chunk]
        projections = direction @ centres.T - np.einsum("ij,ij->i", start, direction)[:, None]
        squared_distances = (
            (centres**2).sum(axis=1)[None]
            - 2.0 * start @ centres.T
            + (start**2).sum(axis=1)[:, None]
        )
        rows, indices = np.nonzero(squared_distances - projections**2 <= radii**2)
        distances = _hit_distances(triangles[indices], start[rows], direction[rows])
        hits: list[list[tuple[float, int]]] = [[] for _ in range(len(start))]
        for row, index, distance in zip(
            rows.tolist(), indices.tolist(), distances.tolist(), strict=True
        ):
            if distance > _MIN_HIT_DISTANCE:
                hits[row].append((distance, index))
        ray_hits += [sorted(row_hits) for row_hits in hits]
    return ray_hits


def _hit_distances(triangles: Vectors, starts: Vectors, directions: Vectors) -> NDArray[np.float64]:
    """Return the distance along each ray to its triangle (Moller and Trumbore, 1997).

    Args:
        triangles: (n, 3, 3) triangles [m].
        starts: (n, 3) starts of the rays [m].
        directions: (n, 3) unit vectors along the rays.

    Returns:
        (n,) distances [m]. -1 for a ray that misses its triangle.
    """
    a = triangles[:, 0]
    edge_b, edge_c = triangles[:, 1] - a, triangles[:, 2] - a
    p = np.cross(directions, edge_c)
    determinant = np.einsum("ij,ij->i", p, edge_b)
    is_hit = np.abs(determinant) > 1e-15
    determinant = np.where(is_hit, determinant, 1.0)
    offset = starts - a
    q = np.cross(offset, edge_b)
    u = np.einsum("ij,ij->i", p, offset) / determinant
    v = np.einsum("ij,ij->i", directions, q) / determinant
    is_hit &= (u >= -_TRIANGLE_TOLERANCE) & (v >= -_TRIANGLE_TOLERANCE)
    is_hit &= u + v <= 1.0 + _TRIANGLE_TOLERANCE
    return np.where(is_hit, np.einsum("ij,ij->i", edge_c, q) / determinant, -1.0)


def _patch_points(
    triangles: Vectors, edges: Vectors, rim: float, centre: Vectors
) -> list[SuctionPoint]:
    """Return points of one patch with room for the rim, nearest to the centre of mass first.

    Args:
        triangles: (n, 3, 3) triangles of the patch [m].
        edges: (m, 2, 3) edges of its outline [m].
        rim: radius of the cup [m].
        centre: (3,) centre of mass [m].
    """
    areas = triangle_areas(triangles)
    if areas.sum() < math.pi * rim * rim or not len(edges):
        return []
    normal = np.einsum("ij,i->j", triangle_normals(triangles), areas)
    normal /= norm(normal)
    sides = edges[:, 1] - edges[:, 0]
    tangent = sides[int(np.argmax(np.round(norms(sides), 9)))]
    tangent = tangent - dot(tangent, normal) * normal
    tangent /= norm(tangent)
    axes = np.column_stack([tangent, np.cross(normal, tangent)])
    origin = (triangles.mean(axis=1) * areas[:, None]).sum(axis=0) / areas.sum()
    flat = np.einsum("...i,ij->...j", triangles - origin, axes)
    outline = np.einsum("...i,ij->...j", edges - origin, axes)
    target = product(centre - origin, axes)
    low, high = flat.reshape(-1, 2).min(axis=0), flat.reshape(-1, 2).max(axis=0)
    step = max(rim, float(np.max(high - low)) / 16, 1e-3)
    grid = [
        np.arange(math.ceil(a / step), math.floor(b / step) + 1) * step
        for a, b in zip(low, high, strict=True)
    ]
    points = np.concatenate(
        [np.zeros((1, 2)), target[None], np.array(np.meshgrid(*grid)).reshape(2, -1).T]
    )
    room = np.where(_are_inside(points, flat), _distance_to_sides(points, outline), -1.0)
    order = np.lexsort((points[:, 1], points[:, 0], np.round(norms(points - target), 9)))
    selected: list[int] = []
    min_distance = max(rim, _DUPLICATE_DISTANCE)
    for i in order.tolist():
        is_new = all(norm(points[i] - points[j]) > min_distance for j in selected)
        if room[i] >= max(rim, 1e-4) and is_new and len(selected) < _MAX_PATCH_POINTS:
            selected.append(i)
    return [
        SuctionPoint(origin + product(axes, points[i]), normal, tangent, float(room[i]))
        for i in selected
    ]


def _are_inside(points: Vectors, triangles: Vectors) -> NDArray[np.bool_]:
    """Return whether each point (n, 2) is in any counter-clockwise triangle (m, 3, 2)."""
    is_inside = np.ones((len(points), len(triangles)), dtype=bool)
    for k in range(3):
        start, side = triangles[:, k], triangles[:, (k + 1) % 3] - triangles[:, k]
        offset = points[:, None] - start[None]
        cross = side[None, :, 0] * offset[..., 1] - side[None, :, 1] * offset[..., 0]
        is_inside &= cross >= -1e-12
    return np.asarray(is_inside.any(axis=1))


def _distance_to_sides(points: Vectors, sides: Vectors) -> NDArray[np.float64]:
    """Return the distance (n,) of points (n, 2) to the nearest segment (m, 2, 2) [m]."""
    start, vector = sides[:, 0], sides[:, 1] - sides[:, 0]
    offset = points[:, None] - start[None]
    projection = np.einsum("ijk,jk->ij", offset, vector) / np.einsum("jk,jk->j", vector, vector)
    fraction = np.clip(projection, 0.0, 1.0)
    return np.asarray(norms(offset - fraction[..., None] * vector[None]).min(axis=1))
