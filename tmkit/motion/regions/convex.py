"""Hull, intersection, crossings, area and centroid of convex polygons in the plane.

A polygon is an (n, 2) array of corners [m], counter-clockwise. As in GEOS and CGAL, two corners are
a segment and one is a point. Orientations in hulls are exact. All results follow from sums,
products and quotients with the rounding of IEEE 754, so they are bitwise equal on every CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norms

Points = NDArray[np.float64]
Corner = tuple[float, float]

_ORIENTATION_ERROR = 4e-16
"""Bound of the rounding error of an orientation, relative to its two products (Shewchuk)."""

_SMALLEST_EXACT = 1e-290
"""Sum of products [m^2] below which the error bound fails, since tiny floats have fewer digits."""

_PARALLEL_SINE = 1e-12
"""Largest sine of the angle between edges that count as parallel."""

_CROSSING_TOLERANCE = 1e-9
"""Rounding tolerance of crossings: distance of bounding boxes [m], and fraction of an edge."""

_MANY_POINTS = 64
"""Number of points above which clearly inner ones are dropped before a hull is computed."""


def hull(points: Points) -> Points:
    """Return the corners (m, 2) of the convex hull of points (n, 2), from the smallest (x, y) on.

    Monotone chain (Andrew 1979): O(n log n). No corner occurs twice or lies on a straight edge.
    """
    if len(points) > _MANY_POINTS:
        points = _drop_inner(points)
    corners = sorted(set(map(tuple, points.tolist())))
    if len(corners) < 3:
        return np.array(corners)
    lower, upper = _chain(corners), _chain(reversed(corners))
    return np.array(lower[:-1] + upper[:-1])


def clip(
    corners: Points, normals: Points, offsets: NDArray[np.float64], *, tolerance: float
) -> Points:
    """Return the intersection (m, 2) of a polygon with half planes (Sutherland-Hodgman).

    An empty intersection has no corners. Corners are in order, but may occur twice or lie on a
    straight edge. O(n k) for k half planes.

    Args:
        corners: (n, 2) polygon [m].
        normals: (k, 2) outward unit normals of the half planes.
        offsets: (k,) each half plane is where ``normal @ point <= offset`` [m].
        tolerance: distance beyond a line at which a corner counts as on it [m].
    """
    part: list[Corner] = [(x, y) for x, y in corners.tolist()]
    for (normal_x, normal_y), offset in zip(normals.tolist(), offsets.tolist(), strict=True):
        excesses = [normal_x * x + normal_y * y - offset for x, y in part]
        if max(excesses) > tolerance:
            part = _clip_once(part, excesses, tolerance)
        if not part:
            break
    return np.array(part).reshape(-1, 2)


def crossings(outlines: Sequence[Points]) -> Points:
    """Return the points (m, 2) where edges of different polygons cross, except for parallel edges.

    O(n^2) in the number of edges.

    Args:
        outlines: (n, 2) corners of each polygon [m].
    """
    starts = np.concatenate(outlines)
    ends = np.concatenate([np.roll(corners, -1, axis=0) for corners in outlines])
    owner = np.repeat(np.arange(len(outlines)), [len(corners) for corners in outlines])
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    is_near = np.all(
        (low[:, None] <= high[None] + _CROSSING_TOLERANCE)
        & (low[None] <= high[:, None] + _CROSSING_TOLERANCE),
        axis=2,
    )
    first, second = np.nonzero(is_near & (owner[:, None] < owner[None]))

    # Drop pairs of parallel edges.
    edges = ends - starts
    sines = np.abs(_cross(edges[first], edges[second]))
    is_crossing = sines > _PARALLEL_SINE * norms(edges[first]) * norms(edges[second])
    first, second = first[is_crossing], second[is_crossing]

    # Keep crossings that lie on both edges.
    origins, first_edges, second_edges = starts[first], edges[first], edges[second]
    offsets, cross = starts[second] - origins, _cross(first_edges, second_edges)
    s, t = _cross(offsets, second_edges) / cross, _cross(offsets, first_edges) / cross
    lower, upper = -_CROSSING_TOLERANCE, 1.0 + _CROSSING_TOLERANCE
    is_inside = (s >= lower) & (s <= upper) & (t >= lower) & (t <= upper)
    return np.asarray(origins[is_inside] + s[is_inside, None] * first_edges[is_inside])


def area(corners: Points) -> float:
    """Return the area of a polygon (n, 2) [m^2]: 0 for a segment or a point."""
    heights = np.roll(corners[:, 1], -1) - np.roll(corners[:, 1], 1)
    return 0.5 * dot(corners[:, 0] - corners[0, 0], heights)


def centroid(corners: Points) -> Points:
    """Return the centroid (2,) of a polygon (n, 2), or the middle of a segment [m]."""
    first, second = corners[1:-1] - corners[0], corners[2:] - corners[0]
    weights = _cross(first, second)  # twice the areas of the triangles at the first corner
    if len(corners) < 3 or not np.sum(weights) > 0.0:
        return np.asarray(np.mean(corners, axis=0))
    return np.asarray(
        corners[0] + np.einsum("i,ij->j", weights, first + second) / (3.0 * np.sum(weights))
    )


def _chain(corners: Iterable[Corner]) -> list[Corner]:
    """Return one half of the hull of sorted points: the chain without a point to its right."""
    chain: list[Corner] = []
    for corner in corners:
        while len(chain) > 1 and not _turns_left(chain[-2], chain[-1], corner):
            chain.pop()
        chain.append(corner)
    return chain


def _turns_left(first: Corner, second: Corner, third: Corner) -> bool:
    """Return whether three points form a left turn, exactly."""
    left = (second[0] - first[0]) * (third[1] - first[1])
    right = (second[1] - first[1]) * (third[0] - first[0])
    size = abs(left) + abs(right)
    if abs(left - right) > _ORIENTATION_ERROR * size > _SMALLEST_EXACT:
        return left > right
    (x, y), (x1, y1), (x2, y2) = (tuple(map(Fraction, point)) for point in (first, second, third))
    return (x1 - x) * (y2 - y) > (y1 - y) * (x2 - x)


def _drop_inner(points: Points) -> Points:
    """Drop points clearly inside the octagon of extreme points (Akl, Toussaint)."""
    x, y = points.T
    farthest = [int(np.argmax(values)) for values in (x, x + y, y, y - x, -x, -x - y, -y, x - y)]
    octagon = points[[index for i, index in enumerate(farthest) if index != farthest[i - 1]]]
    if len(octagon) < 3:
        return points
    edges = np.roll(octagon, -1, axis=0) - octagon
    offsets = points[None] - octagon[:, None]
    margins = _cross(edges[:, None], offsets)
    slack = 1e-12 * (float(np.max(np.abs(edges))) * float(np.max(np.abs(offsets))))
    return np.asarray(points[~np.all(margins > slack, axis=0)])


def _clip_once(corners: list[Corner], excesses: list[float], tolerance: float) -> list[Corner]:
    """Return the part of a polygon whose distance beyond a line is at most a tolerance [m].

    Args:
        corners: corners of the polygon.
        excesses: distance of each corner beyond the line [m].
        tolerance: allowed distance [m].
    """
    part: list[Corner] = []
    for i, ((x, y), excess) in enumerate(zip(corners, excesses, strict=True)):
        (last_x, last_y), last_excess = corners[i - 1], excesses[i - 1]
        if min(last_excess, excess) < -tolerance and max(last_excess, excess) > tolerance:
            fraction = last_excess / (last_excess - excess)
            part.append((last_x + fraction * (x - last_x), last_y + fraction * (y - last_y)))
        if excess <= tolerance:
            part.append((x, y))
    return part


def _cross(first: Points, second: Points) -> NDArray[np.float64]:
    """Return the z components (...) of the cross products of vectors (..., 2)."""
    return np.asarray(first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0])
