"""Hull, common part, crossings, area and centroid of convex polygons in the plane.

A polygon is an (n, 2) array of corners [m], counter-clockwise; two corners are a segment and one is
a point, as for GEOS and CGAL. Orientations in hulls are exact. All results follow from sums,
products and quotients that IEEE 754 rounds in one way, so they have the same bits on every CPU.
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
"""Bound of the rounding error of an orientation, as a fraction of the sum of its two products (Shewchuk)."""

_SMALLEST_EXACT = 1e-290
"""Size of products [m^2] below which their errors are not relative, since they lose digits near the least float."""

_PARALLEL = 1e-12
"""Greatest sine of the angle between edges that count as parallel."""

_BEYOND = 1e-9
"""Distance of bounding boxes [m], and fraction of an edge, by which a crossing may lie beyond an edge, for rounding."""

_MANY_POINTS = 64
"""Number of points above which those well inside are dropped before a hull is computed."""


def hull(points: Points) -> Points:
    """Return the corners (m, 2) of the convex hull of points (n, 2), from the least x, and of these the least y.

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
    """Return the part (m, 2) of a polygon in half planes; none of its points if it lies outside (Sutherland-Hodgman).

    The corners of the part are in order, but may occur twice or lie on a straight edge. O(n k) for
    k half planes.

    Args:
        corners: (n, 2) polygon [m].
        normals: (k, 2) outward unit normals of the half planes.
        offsets: (k,) each half plane is where ``normal @ point <= offset`` [m].
        tolerance: distance beyond a line at which a corner counts as on it [m].
    """
    kept: list[Corner] = [(x, y) for x, y in corners.tolist()]
    for (across_x, across_y), offset in zip(normals.tolist(), offsets.tolist(), strict=True):
        excesses = [across_x * x + across_y * y - offset for x, y in kept]
        if max(excesses) > tolerance:
            kept = _clip_once(kept, excesses, tolerance)
        if not kept:
            break
    return np.array(kept).reshape(-1, 2)


def crossings(outlines: Sequence[Points]) -> Points:
    """Return the points (m, 2) where edges of different polygons cross; parallel edges have none.

    O(n^2) in the number of edges.

    Args:
        outlines: (n, 2) corners of each polygon [m].
    """
    starts = np.concatenate(outlines)
    ends = np.concatenate([np.roll(corners, -1, axis=0) for corners in outlines])
    owner = np.repeat(np.arange(len(outlines)), [len(corners) for corners in outlines])
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    is_near = np.all(
        (low[:, None] <= high[None] + _BEYOND) & (low[None] <= high[:, None] + _BEYOND), axis=2
    )
    first, second = np.nonzero(is_near & (owner[:, None] < owner[None]))

    along, other, offset = (
        (ends - starts)[first],
        (ends - starts)[second],
        starts[second] - starts[first],
    )
    cross = _cross(along, other)
    is_crossing = np.abs(cross) > _PARALLEL * norms(along) * norms(other)
    starts, along, other, offset, cross = (
        each[is_crossing] for each in (starts[first], along, other, offset, cross)
    )
    s, t = _cross(offset, other) / cross, _cross(offset, along) / cross
    is_inside = (s >= -_BEYOND) & (s <= 1.0 + _BEYOND) & (t >= -_BEYOND) & (t <= 1.0 + _BEYOND)
    return np.asarray(starts[is_inside] + s[is_inside, None] * along[is_inside])


def area(corners: Points) -> float:
    """Return the area of a polygon (n, 2) [m^2]: 0 for a segment or a point."""
    heights = np.roll(corners[:, 1], -1) - np.roll(corners[:, 1], 1)
    return 0.5 * dot(corners[:, 0] - corners[0, 0], heights)


def centroid(corners: Points) -> Points:
    """Return the centroid (2,) of a polygon (n, 2) [m]; of a segment the middle."""
    first, second = corners[1:-1] - corners[0], corners[2:] - corners[0]
    weights = _cross(first, second)  # twice the areas of the triangles at the first corner
    if len(corners) < 3 or not np.sum(weights) > 0.0:
        return np.asarray(np.mean(corners, axis=0))
    return np.asarray(
        corners[0] + np.einsum("i,ij->j", weights, first + second) / (3.0 * np.sum(weights))
    )


def _chain(corners: Iterable[Corner]) -> list[Corner]:
    """Return the corners, of points sorted along a direction, from whose edges none lies to the right."""
    chain: list[Corner] = []
    for corner in corners:
        while len(chain) > 1 and not _turns_left(chain[-2], chain[-1], corner):
            chain.pop()
        chain.append(corner)
    return chain


def _turns_left(first: Corner, second: Corner, third: Corner) -> bool:
    """Return whether the way over three points turns left, exactly."""
    left = (second[0] - first[0]) * (third[1] - first[1])
    right = (second[1] - first[1]) * (third[0] - first[0])
    size = abs(left) + abs(right)
    if abs(left - right) > _ORIENTATION_ERROR * size > _SMALLEST_EXACT:
        return left > right
    (x, y), (x1, y1), (x2, y2) = (tuple(map(Fraction, point)) for point in (first, second, third))
    return (x1 - x) * (y2 - y) > (y1 - y) * (x2 - x)


def _drop_inner(points: Points) -> Points:
    """Return the points that are not well inside the octagon of the farthest in eight directions (Akl, Toussaint)."""
    x, y = points.T
    farthest = [int(np.argmax(values)) for values in (x, x + y, y, y - x, -x, -x - y, -y, x - y)]
    octagon = points[[index for i, index in enumerate(farthest) if index != farthest[i - 1]]]
    if len(octagon) < 3:
        return points
    along = np.roll(octagon, -1, axis=0) - octagon
    offsets = points[None] - octagon[:, None]
    margins = _cross(along[:, None], offsets)
    slack = 1e-12 * (float(np.max(np.abs(along))) * float(np.max(np.abs(offsets))))
    return np.asarray(points[~np.all(margins > slack, axis=0)])


def _clip_once(corners: list[Corner], excesses: list[float], tolerance: float) -> list[Corner]:
    """Return the part of a polygon where the distance beyond a line, one a corner, is at most a tolerance."""
    kept: list[Corner] = []
    for i, ((x, y), excess) in enumerate(zip(corners, excesses, strict=True)):
        (last_x, last_y), last = corners[i - 1], excesses[i - 1]
        if min(last, excess) < -tolerance and max(last, excess) > tolerance:
            share = last / (last - excess)
            kept.append((last_x + share * (x - last_x), last_y + share * (y - last_y)))
        if excess <= tolerance:
            kept.append((x, y))
    return kept


def _cross(first: Points, second: Points) -> NDArray[np.float64]:
    """Return the z components (...) of the cross products of vectors (..., 2)."""
    return np.asarray(first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0])
