"""Convex polygons in the plane: footprints of objects, the areas that they rest on, and where one fits into the other.

All positions at which a footprint lies in an area are the area with each edge moved inwards by as
much as the footprint reaches beyond its origin that way (:func:`fitting`). All positions at which
it overlaps another polygon are the Minkowski sum of that polygon and the footprint turned by half a
turn (:func:`blocking`). The corners of these polygons, and the points where they cross, are
candidates of every good packing.

Invariants: a :class:`ConvexPolygon` is immutable, counter-clockwise, has no corner twice and none
on a straight edge; it may be a segment or a point. :mod:`~tmkit.motion.regions.convex` computes
with bare corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import atan2, circle, cos, norm, norms, product
from tmkit.errors import ShapeError
from tmkit.motion.regions import convex
from tmkit.spatial.plain import plain_numbers, read_only

# of the polygons that stand for circles; a multiple of 8: some are along the axes and diagonals
_SIDES = 32
_FLAT = 1e-12  # square metres of a triangle that counts as flat
# decimals of a metre, far above rounding: nearly equal points would have sides of any direction
_DIGITS = 10
_GRID = 1e-10  # metres, for the same reason: of the corners of intersections
# sums and intersections of polygons that are not computed again: most obstacles stand still
REMEMBERED = 4096

Points = NDArray[np.float64]

_GREATEST = 1e290
"""Bound of coordinates [m]: greater ones cannot be rounded."""

_ULPS = 2e-15
"""Rounding error of corners, as a fraction of the greatest coordinate: above a grid's width far from the origin."""


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
        if not len(given) or not np.all(np.abs(given) < _GREATEST):
            raise ShapeError(
                f"a polygon needs points of finite numbers, not {np.asarray(points)!r}"
            )
        return cls(read_only(convex.hull(_round(given))))

    @classmethod
    def rectangle(cls, lower: ArrayLike, upper: ArrayLike) -> ConvexPolygon:
        """Return the rectangle between two corners (2,)."""
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

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The least and the greatest x and y, metres."""
        low, high = self.vertices.min(axis=0).tolist(), self.vertices.max(axis=0).tolist()
        return (low[0], low[1]), (high[0], high[1])

    @property
    def area(self) -> float:
        """Square metres."""
        return convex.area(self.vertices)

    @property
    def centroid(self) -> NDArray[np.float64]:
        """The centre (2,) of its area; of a segment its middle."""
        return convex.centroid(self.vertices)

    def depth(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return for points (n, 2) the metres (n,) to the nearest edge: positive inside, negative outside.

        Outside it is the distance to the line of an edge, which is at most that to the polygon.
        """
        normals, offsets = self.edges
        given = plain_numbers(points, "points").reshape(-1, 2)
        return np.asarray(np.min(offsets[:, None] - product(normals, given.T), axis=0))

    def holds(self, other: ConvexPolygon, *, tolerance: float = 1e-9) -> bool:
        """Return whether another polygon is inside this one, but for ``tolerance`` metres beyond an edge."""
        return bool(np.all(self.depth(other.vertices) >= -tolerance))

    def turned(self, angle: float) -> ConvexPolygon:
        """Return it turned about the origin, counter-clockwise, by radians."""
        cosine, sine = circle([angle])[0]
        return ConvexPolygon(read_only(product(self.vertices, [[cosine, sine], [-sine, cosine]])))

    def moved(self, offset: ArrayLike) -> ConvexPolygon:
        """Return it moved by metres (2,)."""
        return ConvexPolygon(read_only(self.vertices + plain_numbers(offset, "offset")))

    def widened(self, other: ConvexPolygon) -> ConvexPolygon:
        """Return the Minkowski sum of the two: all sums of a point of either."""
        sums = self.vertices[:, None, :] + other.vertices[None, :, :]
        if len(self.vertices) < 3 or len(other.vertices) < 3:
            return ConvexPolygon.around(sums)
        first, second = (_from_lowest(polygon.vertices) for polygon in (self, other))
        sides = np.concatenate([np.roll(part, -1, axis=0) - part for part in (first, second)])
        angles = np.array([atan2(y, x) for x, y in sides.tolist()]) % math.tau
        order = np.argsort(angles, kind="stable")
        corners = (
            first[0]
            + second[0]
            + np.concatenate([np.zeros((1, 2)), np.cumsum(sides[order], axis=0)[:-1]])
        )
        return ConvexPolygon.around(corners)

    def clipped(self, other: ConvexPolygon) -> ConvexPolygon | None:
        """Return what the two have in common, or None when that is nothing or has no area."""
        common = _common(self, other)
        return common if common is not None and common.area > 0.0 else None

    def __repr__(self) -> str:
        return f"ConvexPolygon({len(self.vertices)} corners, {self.area:.6g} m^2)"


def fitting(area: ConvexPolygon, footprint: ConvexPolygon) -> ConvexPolygon | None:
    """Return the positions of a footprint's origin with it inside an area, both polygons; None if there are none.

    A footprint that just fits one way has a segment of positions, or a single one.
    """
    return _fitting(_corners(area), _corners(footprint))


@lru_cache(REMEMBERED)
def _fitting(area: bytes, footprint: bytes) -> ConvexPolygon | None:
    normals, offsets = _polygon(area).edges
    corners = _polygon(footprint).vertices
    return _clip(
        _polygon(area).vertices - corners[0],
        normals,
        offsets - np.max(product(normals, corners.T), axis=1),
    )


def blocking(
    obstacle: ConvexPolygon, footprint: ConvexPolygon, *, spacing: float = 0.0
) -> ConvexPolygon:
    """Return the positions of a footprint's origin at which it is nearer to an obstacle than a distance.

    On the polygon's edges it is that far away, at its corners up to 8 % farther: an octagon stands
    for the circle.

    Args:
        footprint: polygon relative to its origin.
        spacing: distance in metres.
    """
    return _blocking(_corners(obstacle), _corners(footprint), spacing)


@lru_cache(REMEMBERED)
def _blocking(obstacle: bytes, footprint: bytes, spacing: float) -> ConvexPolygon:
    found = _polygon(obstacle).widened(ConvexPolygon(read_only(-_polygon(footprint).vertices)))
    return found.widened(_regular(8, spacing / cos(math.pi / 8))) if spacing > 0.0 else found


def crossings(first: ConvexPolygon, second: ConvexPolygon) -> Points:
    """Return the points (k, 2) where edges of two polygons intersect; of parallel edges the ends of their overlap."""
    return _crossings(_corners(first), _corners(second))


@lru_cache(REMEMBERED)
def _crossings(first: bytes, second: bytes) -> Points:
    one, other = (ConvexPolygon(_round(_polygon(corners).vertices)) for corners in (first, second))
    touching = [
        polygon.vertices[np.abs(beside.depth(polygon.vertices)) <= _tolerance(polygon.vertices)]
        for polygon, beside in ((one, other), (other, one))
    ]
    crossing = convex.crossings([one.vertices, other.vertices])
    return read_only(np.unique(_round(np.concatenate([*touching, crossing])), axis=0))


def _corners(polygon: ConvexPolygon) -> bytes:
    return polygon.vertices.tobytes()


@lru_cache(REMEMBERED)
def _polygon(corners: bytes) -> ConvexPolygon:
    return ConvexPolygon(np.frombuffer(corners).reshape(-1, 2))


def circle_around(radius: float) -> ConvexPolygon:
    """Return a polygon that holds the circle about the origin and reaches as far along the axes and diagonals."""
    return _regular(_SIDES, radius / cos(math.pi / _SIDES))


def circle_within(radius: float) -> ConvexPolygon:
    """Return a polygon that lies in the circle about the origin."""
    return _regular(_SIDES, radius)


def _regular(sides: int, radius: float) -> ConvexPolygon:
    """Return a regular polygon with an edge across the x axis."""
    angles = (np.arange(sides) + 0.5) * (math.tau / sides)
    return ConvexPolygon(read_only(radius * circle(angles)))


def _edges_of_thin(vertices: Points) -> tuple[Points, NDArray[np.float64]]:
    along = vertices[-1] - vertices[0]
    length = norm(along)
    axis = along / length if length > 0.0 else np.array([1.0, 0.0])
    across = np.array([axis[1], -axis[0]])
    normals = np.array([axis, across, -axis, -across])
    return normals, np.max(product(normals, vertices.T), axis=1)


def _from_lowest(vertices: Points) -> Points:
    """Return the corners beginning with the lowest, of these the leftmost, from which the edges' angles grow."""
    return np.asarray(
        np.roll(vertices, -int(np.lexsort((vertices[:, 0], vertices[:, 1]))[0]), axis=0)
    )


def _common(first: ConvexPolygon, second: ConvexPolygon) -> ConvexPolygon | None:
    return _clip(_round(first.vertices), *ConvexPolygon(_round(second.vertices)).edges)


def _clip(corners: Points, normals: Points, offsets: NDArray[np.float64]) -> ConvexPolygon | None:
    """Return the part of a polygon (n, 2) in half planes, where what touches but for rounding touches."""
    part = convex.clip(corners, normals, offsets, tolerance=_tolerance(corners))
    return ConvexPolygon.around(part) if len(part) else None


def _tolerance(points: Points) -> float:
    """Return the distance at which points count as on a line [m]."""
    return max(_GRID, _ULPS * float(np.max(np.abs(points))))


def _round(points: Points) -> Points:
    """Return points on the grid of a tenth of a nanometre."""
    return np.asarray(np.round(points, _DIGITS) + 0.0)
