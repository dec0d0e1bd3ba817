"""Grasps of meshes: antipodal ones for parallel hands, flat patches for suction cups (docs/howto/samplers.md).

A pair is *antipodal* when the line between its points lies in the friction cones of both (Nguyen,
"Constructing force-closure grasps", 1988). A suction cup needs a flat patch with room for its rim:
triangles that lie in one plane and hang together; the places are the middle of its area and points
of a grid. Of meshes with more than 20,000 triangles the hull is sampled.

Invariants: finitely many grasps for a seed, best first: antipodal pairs whose normals are the most
opposite and that hold near the centre of mass, and patches whose line of pull passes near it.
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
    closed_triangles,
    flat_patches,
    triangle_areas,
    triangle_normals,
)

FRICTION = 0.5
"""Friction coefficient between fingers and objects that antipodal pairs rely on: lines within 27 degrees of normals.

It is below the default of a finger on an object, 0.7, so a sampled grasp has a reserve.
"""

_APPROACHES = 8  # directions around the line between two contacts
_SAMPLES = 640  # points on the surface
_ELSEWHERE, _APART = 12, 0.02  # pairs so many metres from all that are better
_FLAT_PARTS = 24  # middles of flat parts among them
_SAMPLED_PAIRS = 480
"""Most contact pairs of a mesh that are sampled, of which a hand uses few."""

_SAMPLED_PAIRS_OF_AXIS = 160
"""Most of these that are nearly parallel."""

# pairs nearer and more parallel than this are one
_NEAR, _PARALLEL = 0.008, cos(math.radians(12.0))
_RAYS_AT_ONCE = 1_000_000  # rays times triangles
_PATCH_POINTS = 6  # places kept on one patch
_TRIANGLE_TOLERANCE = 1e-9
"""Barycentric coordinate by which a ray may miss a triangle, for rounding."""
_STARTED = 1e-6  # metres from its start at which a ray may meet something

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class ContactPair:
    """Two points of a surface between which it can be held.

    Attributes:
        middle: (3,) point half way, metres.
        axis: (3,) unit vector from the first to the second.
        width: metres between them.
        alignment: the smaller cosine of the angles between the line and the two normals.
    """

    middle: Vectors
    axis: Vectors
    width: float
    alignment: float


@dataclass(frozen=True)
class SuctionPoint:
    """A place for a suction cup.

    Attributes:
        point: (3,) metres.
        normal: (3,) outward unit normal of the patch.
        tangent: (3,) unit vector along the longest side of the patch.
        room: metres to the edge of the patch.
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
    """Return pairs of contacts on a mesh with a centre of mass (3,), of widths in metres, best first.

    Those come last that lie deeper in the mesh's hull than fingers of a ``depth`` in metres reach,
    from every side.
    """
    triangles = closed_triangles(shape)
    if not len(triangles):
        return []
    normals = triangle_normals(triangles)
    points, inward = _samples(triangles, normals, rng)
    least = 1.0 / math.hypot(1.0, friction)  # the cosine of the friction cone's angle
    found = list(_pairs(triangles, normals, points, inward, widths, least))
    corners = np.unique(triangles.reshape(-1, 3), axis=0)
    size = norm(np.ptp(corners, axis=0))

    def badness(pair: ContactPair) -> tuple[bool, float, float, float, float, float]:
        offset = norm(np.cross(pair.middle - centre, pair.axis)) / size
        above = (
            np.einsum("ij,kj->ik", corners - pair.middle, -approaches(pair.axis))
            if depth < size
            else np.zeros(1)
        )
        is_deep = float(np.min(np.max(above, axis=0))) > depth
        badness = round(1.0 - pair.alignment + offset, 6)
        return (is_deep, badness, round(pair.width, 9), *np.round(pair.middle, 9).tolist())

    return distinct_pairs(
        sorted(found, key=badness), limit=_SAMPLED_PAIRS, of_axis=_SAMPLED_PAIRS_OF_AXIS
    )


def approaches(axis: Vectors) -> Vectors:
    """Return directions (k, 3) from which a hand closes along an axis (3,), from above first."""
    down = np.array([0.0, 0.0, -1.0]) if abs(axis[2]) < 0.9 else np.array([-1.0, 0.0, 0.0])
    first = down - dot(down, axis) * axis
    first /= norm(first)
    turns = circle(2.0 * math.pi * np.arange(_APPROACHES) / _APPROACHES)
    return turns[:, :1] * first + turns[:, 1:] * np.cross(axis, first)


def distinct_pairs(pairs: Iterable[ContactPair], *, limit: int, of_axis: int) -> list[ContactPair]:
    """Return pairs of contact points without near duplicates, then some where none of these is, as on a handle.

    Args:
        limit: maximal number of the former.
        of_axis: maximal number of them with nearly parallel axes.
    """
    kept, left = list[ContactPair](), list[ContactPair]()
    for pair in pairs:
        parallel = [other for other in kept if abs(dot(pair.axis, other.axis)) > _PARALLEL]
        is_new = all(norm(pair.middle - other.middle) >= _NEAR for other in parallel)
        (kept if is_new and len(parallel) < of_axis and len(kept) < limit else left).append(pair)
    most = len(kept) + _ELSEWHERE
    for pair in left:
        if len(kept) < most and all(norm(pair.middle - other.middle) >= _APART for other in kept):
            kept.append(pair)
    return kept


def suction_points(shape: Shape, *, centre: Vectors, rim: float) -> list[SuctionPoint]:
    """Return places for a suction cup of a rim radius on the flat patches of a mesh, best first, by its centre (3,)."""
    triangles = closed_triangles(shape)
    if not len(triangles):
        return []
    found = [
        place
        for patch, edges in flat_patches(triangles, least_area=math.pi * rim * rim)
        for place in _patch_points(triangles[patch], edges, rim, centre)
    ]

    def badness(place: SuctionPoint) -> tuple[float, ...]:
        lever = norm(np.cross(centre - place.point, place.normal))
        return (round(float(lever), 6), *np.round([*-place.normal[::-1], *place.point], 9).tolist())

    return sorted(found, key=badness)


def _samples(
    triangles: Vectors, normals: Vectors, rng: np.random.Generator
) -> tuple[Vectors, Vectors]:
    """Return points (n, 3) on the surface with their inward normals."""
    areas = triangle_areas(triangles)
    points, inward = [], []
    for patch, _ in flat_patches(triangles, most=_FLAT_PARTS):
        middles = triangles[patch].mean(axis=1)
        middle = (middles * areas[patch][:, None]).sum(axis=0) / areas[patch].sum()
        points.append(middle)
        inward.append(-normals[patch[0]])
    chosen = rng.choice(len(triangles), size=_SAMPLES, p=areas / areas.sum())
    u, v = rng.random((2, _SAMPLES))
    is_beyond = u + v > 1.0
    u[is_beyond], v[is_beyond] = 1.0 - u[is_beyond], 1.0 - v[is_beyond]
    a, b, c = (triangles[chosen, k] for k in range(3))
    spread = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    return np.concatenate([np.array(points).reshape(-1, 3), spread]), np.concatenate(
        [np.array(inward).reshape(-1, 3), -normals[chosen]]
    )


def _pairs(
    triangles: Vectors,
    normals: Vectors,
    points: Vectors,
    inward: Vectors,
    widths: tuple[float, float],
    least: float,
) -> Iterator[ContactPair]:
    """Yield the pairs that rays from points find, with both normals within the cone."""
    again: list[tuple[Vectors, Vectors, Vectors, float]] = []
    for start, own, hits in zip(points, inward, _rays(triangles, points, inward), strict=True):
        exits = _exits(hits, normals, own)
        for distance, index in dict.fromkeys(exits[:1] + exits[-1:]):
            alignment = dot(normals[index], own)
            if alignment >= least and widths[0] <= distance <= widths[1]:
                yield ContactPair(start + distance / 2 * own, own, distance, min(1.0, alignment))
            mean = own + normals[index]
            length = norm(mean)
            if 1e-9 < length < 2.0 - 1e-9:
                again.append((start, own, mean / length, distance))
    if not again:
        return
    starts, axes = (
        np.array([start for start, *_ in again]),
        np.array([axis for _, _, axis, _ in again]),
    )
    for (start, own, axis, near), hits in zip(again, _rays(triangles, starts, axes), strict=True):
        exits = _exits(hits, normals, axis)
        if exits:
            distance, index = min(exits, key=lambda hit: abs(hit[0] - near))
            alignment = min(dot(own, axis), dot(normals[index], axis))
            if alignment >= least and widths[0] <= distance <= widths[1]:
                yield ContactPair(start + distance / 2 * axis, axis, distance, min(1.0, alignment))


def _exits(
    hits: list[tuple[float, int]], normals: Vectors, axis: Vectors
) -> list[tuple[float, int]]:
    """Return the hits of a ray at which it leaves the object, nearest first."""
    return [
        (distance, index)
        for distance, index in hits
        if dot(normals[index], axis) > _TRIANGLE_TOLERANCE
    ]


def _rays(
    triangles: Vectors, starts: Vectors, directions: Vectors
) -> list[list[tuple[float, int]]]:
    """Return for each ray the distances and triangles that it meets beyond its start, nearest first.

    A triangle is looked at only when the ray's line passes through the ball around it, which matrix
    products tell. They are those of BLAS, whose last bits do not matter, since the balls are larger
    than rounding is by far.
    """
    middles = triangles.mean(axis=1)
    balls = norms(triangles - middles[:, None]).max(axis=1) + _STARTED
    at_once = max(1, _RAYS_AT_ONCE // len(triangles))
    found: list[list[tuple[float, int]]] = []
    for begin in range(0, len(starts), at_once):
        start, along = starts[begin : begin + at_once], directions[begin : begin + at_once]
        ahead = along @ middles.T - np.einsum("ij,ij->i", start, along)[:, None]
        squares = (
            (middles**2).sum(axis=1)[None]
            - 2.0 * start @ middles.T
            + (start**2).sum(axis=1)[:, None]
        )
        rows, indices = np.nonzero(squares - ahead**2 <= balls**2)
        distances = _distances(triangles[indices], start[rows], along[rows])
        hits: list[list[tuple[float, int]]] = [[] for _ in range(len(start))]
        for row, index, distance in zip(
            rows.tolist(), indices.tolist(), distances.tolist(), strict=True
        ):
            if distance > _STARTED:
                hits[row].append((distance, index))
        found += [sorted(of_ray) for of_ray in hits]
    return found


def _distances(triangles: Vectors, starts: Vectors, directions: Vectors) -> NDArray[np.float64]:
    """Return how far (n,) along each of n rays its triangle lies, -1 where it misses (Moller and Trumbore, 1997)."""
    a = triangles[:, 0]
    first, second = triangles[:, 1] - a, triangles[:, 2] - a
    across = np.cross(directions, second)
    volume = np.einsum("ij,ij->i", across, first)
    is_met = np.abs(volume) > 1e-15
    volume = np.where(is_met, volume, 1.0)
    offset = starts - a
    turned = np.cross(offset, first)
    u = np.einsum("ij,ij->i", across, offset) / volume
    v = np.einsum("ij,ij->i", directions, turned) / volume
    is_met &= (
        (u >= -_TRIANGLE_TOLERANCE)
        & (v >= -_TRIANGLE_TOLERANCE)
        & (u + v <= 1.0 + _TRIANGLE_TOLERANCE)
    )
    return np.where(is_met, np.einsum("ij,ij->i", second, turned) / volume, -1.0)


def _patch_points(
    triangles: Vectors, edges: Vectors, rim: float, centre: Vectors
) -> list[SuctionPoint]:
    """Return places on one patch with room for the rim, those nearest to the centre of mass first."""
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
    flat, outline = (
        np.einsum("...i,ij->...j", corners - origin, axes) for corners in (triangles, edges)
    )
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
    room = np.where(_is_in_any(points, flat), _distance_to_sides(points, outline), -1.0)
    order = np.lexsort((points[:, 1], points[:, 0], np.round(norms(points - target), 9)))
    kept: list[int] = []
    for i in order.tolist():
        is_new = all(norm(points[i] - points[j]) > max(rim, _NEAR) for j in kept)
        if room[i] >= max(rim, 1e-4) and is_new and len(kept) < _PATCH_POINTS:
            kept.append(i)
    return [
        SuctionPoint(origin + product(axes, points[i]), normal, tangent, float(room[i]))
        for i in kept
    ]


def _is_in_any(points: Vectors, triangles: Vectors) -> NDArray[np.bool_]:
    """Tell for points (n, 2) whether they are in any of some triangles (m, 3, 2), counter-clockwise."""
    inside = np.ones((len(points), len(triangles)), dtype=bool)
    for k in range(3):
        start, along = triangles[:, k], triangles[:, (k + 1) % 3] - triangles[:, k]
        offset = points[:, None] - start[None]
        inside &= along[None, :, 0] * offset[..., 1] - along[None, :, 1] * offset[..., 0] >= -1e-12
    return np.asarray(inside.any(axis=1))


def _distance_to_sides(points: Vectors, sides: Vectors) -> NDArray[np.float64]:
    """Return the distance (n,) of points (n, 2) to the nearest of some segments (m, 2, 2)."""
    start, along = sides[:, 0], sides[:, 1] - sides[:, 0]
    offset = points[:, None] - start[None]
    share = np.clip(
        np.einsum("ijk,jk->ij", offset, along) / np.einsum("jk,jk->j", along, along), 0.0, 1.0
    )
    return np.asarray(norms(offset - share[..., None] * along[None]).min(axis=1))
