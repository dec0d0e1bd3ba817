"""Convex polygons in the plane: footprints of objects, the areas that they rest on, and where one fits into the other.

Whether a footprint lies in an area, and where it would touch another, are questions about *positions* of the footprint,
and both have exact answers that are convex polygons again. All positions at which a footprint lies in an area are the
area with each edge moved inwards by as much as the footprint reaches beyond its origin that way (:func:`fitting`). All
positions at which it overlaps another polygon are the Minkowski sum of that polygon and the footprint turned by half a
turn (:func:`blocking`). The corners of these polygons, and the points where they cross, are the places where nothing
could be moved any nearer: candidates of every good packing.

Invariants: a :class:`ConvexPolygon` is immutable, counter-clockwise, has no corner twice and none on a straight edge;
it may be a segment or a point. Everything here costs a sort of the corners at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import atan2, circle, cos, dot, norm, norms, product
from tmkit.errors import ShapeError
from tmkit.spatial.plain import plain_numbers

__all__ = ["ConvexPolygon", "blocking", "circle_around", "circle_within", "crossings", "fitting"]

_SIDES = 32  # of the polygons that stand for circles; a multiple of 8, so that some are along the axes and diagonals
_FLAT = 1e-12  # square metres of a triangle that counts as flat
_DIGITS = 10  # decimals of a metre, far above rounding: nearly equal points would have sides of any direction

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConvexPolygon:
    """A convex polygon.

    Attributes:
        vertices: (n, 2) corners in metres, counter-clockwise, read-only.
    """

    vertices: Points

    @classmethod
    def around(cls, points: ArrayLike) -> ConvexPolygon:
        """Return the convex hull of points (n, 2), rounded to a tenth of a nanometre. O(n log n).

        Raises:
            ShapeError: no points, or numbers that are not finite.
        """
        given = plain_numbers(points, "points").reshape(-1, 2)
        if not len(given) or not np.all(np.isfinite(given)):
            raise ShapeError(f"a polygon needs points of finite numbers, not {np.asarray(points)!r}")
        ordered = sorted(set(map(tuple, (np.round(given, _DIGITS) + 0.0).tolist())))
        if len(ordered) > 2:
            ordered = [*_half_hull(ordered)[:-1], *_half_hull(ordered[::-1])[:-1]]
        return cls(_read_only(np.array(ordered)))

    @classmethod
    def rectangle(cls, lower: ArrayLike, upper: ArrayLike) -> ConvexPolygon:
        """Return the rectangle between two corners (2,).

        Args:
            lower: (2,) corner.
            upper: (2,) opposite corner.
        """
        (x0, y0), (x1, y1) = plain_numbers(lower, "lower"), plain_numbers(upper, "upper")
        return cls.around([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])

    @cached_property
    def edges(self) -> tuple[Points, NDArray[np.float64]]:
        """The edges as half planes: outward unit normals (n, 2) and offsets (n,), inside where ``n @ p <= offset``.

        A segment has its two long sides and its two ends; a point has four.
        """
        if len(self.vertices) < 3:
            return _edges_of_thin(self.vertices)
        along = np.roll(self.vertices, -1, axis=0) - self.vertices
        normals = np.column_stack([along[:, 1], -along[:, 0]]) / norms(along)[:, None]
        return normals, np.einsum("ij,ij->i", normals, self.vertices)

    @property
    def area(self) -> float:
        """Square metres."""
        x, y = self.vertices.T
        return 0.5 * (dot(x, np.roll(y, -1)) - dot(y, np.roll(x, -1)))

    @property
    def centroid(self) -> NDArray[np.float64]:
        """The centre (2,) of its area; of a segment its middle."""
        if self.area < _FLAT:
            return np.asarray(self.vertices.mean(axis=0))
        first = self.vertices - self.vertices[0]
        second = np.roll(first, -1, axis=0)
        crosses = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
        return np.asarray(self.vertices[0] + ((first + second) * crosses[:, None]).sum(axis=0) / (3.0 * crosses.sum()))

    def depth(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return for points (n, 2) the metres (n,) to the nearest edge: positive inside, negative outside.

        Outside it is the distance to the line of an edge, which is at most that to the polygon.
        """
        normals, offsets = self.edges
        given = plain_numbers(points, "points").reshape(-1, 2)
        return np.asarray(np.min(offsets - product(given, normals.T), axis=1))

    def holds(self, other: ConvexPolygon, *, tolerance: float = 1e-9) -> bool:
        """Return whether another polygon is inside this one.

        Args:
            other: the other polygon.
            tolerance: metres that it may extend beyond an edge.
        """
        return bool(np.all(self.depth(other.vertices) >= -tolerance))

    def separation(self, other: ConvexPolygon) -> float:
        """Return the widest gap in metres along a normal of an edge of either; negative when the two overlap."""
        gaps = [
            np.max(np.min(product(second.vertices, normals.T), axis=0) - offsets)
            for first, second in ((self, other), (other, self))
            for normals, offsets in (first.edges,)
        ]
        return float(max(gaps))

    def turned(self, angle: float) -> ConvexPolygon:
        """Return it turned about the origin, counter-clockwise, by radians."""
        cosine, sine = circle([angle])[0]
        return ConvexPolygon(_read_only(product(self.vertices, [[cosine, sine], [-sine, cosine]])))

    def moved(self, offset: ArrayLike) -> ConvexPolygon:
        """Return it moved by metres (2,)."""
        return ConvexPolygon(_read_only(self.vertices + plain_numbers(offset, "offset")))

    def widened(self, other: ConvexPolygon) -> ConvexPolygon:
        """Return the Minkowski sum of the two: all sums of a point of either."""
        sums = self.vertices[:, None, :] + other.vertices[None, :, :]
        if len(self.vertices) < 3 or len(other.vertices) < 3:
            return ConvexPolygon.around(sums)
        first, second = (_from_lowest(polygon.vertices) for polygon in (self, other))
        sides = np.concatenate([np.roll(part, -1, axis=0) - part for part in (first, second)])
        angles = np.array([atan2(y, x) for x, y in sides.tolist()]) % math.tau
        order = np.argsort(angles, kind="stable")
        corners = first[0] + second[0] + np.concatenate([np.zeros((1, 2)), np.cumsum(sides[order], axis=0)[:-1]])
        return ConvexPolygon.around(corners)

    def clipped(self, other: ConvexPolygon) -> ConvexPolygon | None:
        """Return what the two have in common, or None when that is nothing or has no area."""
        corners = self.vertices
        for normal, offset in zip(*other.edges, strict=True):
            corners = _cut(corners, normal, float(offset))
            if len(corners) < 3:
                return None
        found = ConvexPolygon.around(corners)
        return found if len(found.vertices) > 2 else None

    def __repr__(self) -> str:
        return f"ConvexPolygon({len(self.vertices)} corners, {self.area:.6g} m^2)"


def fitting(area: ConvexPolygon, footprint: ConvexPolygon) -> ConvexPolygon | None:
    """Return the positions of a footprint's origin with the footprint inside an area; None if there are none.

    A footprint that just fits one way has a segment of positions, or a single one.

    Args:
        area: the area.
        footprint: polygon relative to its origin.
    """
    normals, offsets = area.edges
    room = offsets - np.max(product(footprint.vertices, normals.T), axis=0)
    low, high = area.vertices.min(axis=0) - 1.0, area.vertices.max(axis=0) + 1.0
    reach = float(np.max(np.abs(footprint.vertices)))
    corners: Points = ConvexPolygon.rectangle(low - reach, high + reach).vertices
    for normal, offset in zip(normals, room, strict=True):
        corners = _cut(corners, normal, float(offset) + 1e-12)
        if not len(corners):
            return None
    return ConvexPolygon.around(corners)


def blocking(obstacle: ConvexPolygon, footprint: ConvexPolygon, *, spacing: float = 0.0) -> ConvexPolygon:
    """Return the positions of a footprint's origin at which it is nearer to an obstacle than a distance.

    On the polygon's edges it is that far away, at its corners up to 8 % farther: an octagon stands for the circle.

    Args:
        obstacle: the obstacle.
        footprint: polygon relative to its origin.
        spacing: distance in metres.
    """
    mirrored = ConvexPolygon(_read_only(-footprint.vertices))
    found = obstacle.widened(mirrored)
    return found.widened(_regular(8, spacing / cos(math.pi / 8))) if spacing > 0.0 else found


def crossings(first: ConvexPolygon, second: ConvexPolygon) -> Points:
    """Return the points (k, 2) where edges of two polygons intersect, without parallel edges.

    Args:
        first: a polygon.
        second: a polygon.
    """
    starts_a, starts_b = first.vertices, second.vertices
    along_a, along_b = (np.roll(part, -1, axis=0) - part for part in (starts_a, starts_b))
    between = starts_b[None, :, :] - starts_a[:, None, :]
    cross = along_a[:, None, 0] * along_b[None, :, 1] - along_a[:, None, 1] * along_b[None, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share_a = (between[..., 0] * along_b[None, :, 1] - between[..., 1] * along_b[None, :, 0]) / cross
        share_b = (between[..., 0] * along_a[:, None, 1] - between[..., 1] * along_a[:, None, 0]) / cross
    slack = 1e-9
    is_met = (np.abs(cross) > _FLAT) & (share_a >= -slack) & (share_a <= 1 + slack)
    is_met &= (share_b >= -slack) & (share_b <= 1 + slack)
    i, j = np.nonzero(is_met)
    return np.asarray(starts_a[i] + share_a[i, j][:, None] * along_a[i])


def circle_around(radius: float) -> ConvexPolygon:
    """Return a polygon that holds the circle about the origin and reaches as far along the axes and diagonals."""
    return _regular(_SIDES, radius / cos(math.pi / _SIDES))


def circle_within(radius: float) -> ConvexPolygon:
    """Return a polygon that lies in the circle about the origin."""
    return _regular(_SIDES, radius)


def _regular(sides: int, radius: float) -> ConvexPolygon:
    """Return a regular polygon with an edge across the x axis."""
    angles = (np.arange(sides) + 0.5) * (math.tau / sides)
    return ConvexPolygon(_read_only(radius * circle(angles)))


def _half_hull(ordered: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return the lower hull of points in lexicographic order, from left to right (the upper one of reversed points)."""
    hull: list[tuple[float, ...]] = []
    for point in ordered:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0.0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _edges_of_thin(vertices: Points) -> tuple[Points, NDArray[np.float64]]:
    along = vertices[-1] - vertices[0]
    length = norm(along)
    axis = along / length if length > 0.0 else np.array([1.0, 0.0])
    across = np.array([axis[1], -axis[0]])
    normals = np.array([axis, across, -axis, -across])
    return normals, np.max(product(normals, vertices.T), axis=1)


def _from_lowest(vertices: Points) -> Points:
    """Return the corners beginning with the lowest, of these the leftmost, from which the edges' angles grow."""
    return np.asarray(np.roll(vertices, -int(np.lexsort((vertices[:, 0], vertices[:, 1]))[0]), axis=0))


def _cut(corners: Points, normal: NDArray[np.float64], offset: float) -> Points:
    """Return what is left of an outline on the inner side of a line."""
    inside = offset - product(corners, normal)
    kept: list[NDArray[np.float64]] = []
    for i in range(len(corners)):
        here, after = inside[i], inside[(i + 1) % len(corners)]
        if here >= 0.0:
            kept.append(corners[i])
        if (here > 0.0 > after) or (here < 0.0 < after):
            kept.append(corners[i] + here / (here - after) * (corners[(i + 1) % len(corners)] - corners[i]))
    return np.array(kept).reshape(-1, 2)


def _read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values.flags.writeable = False
    return values
