"""Convex polygons in the plane: footprints of objects, support areas, and free positions.

The positions at which a footprint lies in an area form a polygon: the area with each edge moved
inwards by the extent of the footprint in that direction (:func:`containment_positions`). The
positions at which it overlaps another polygon are the Minkowski sum of that polygon and the
footprint rotated by 180 degrees (:func:`collision_positions`). The corners of these polygons and
their crossings are candidates of every dense packing.

Invariants: a :class:`ConvexPolygon` is immutable and counter-clockwise. It has no duplicate corner,
and none on a straight edge. It may be a segment or a point. :mod:`~tmkit.motion.regions.convex`
computes with arrays of corners.
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

Points = NDArray[np.float64]

_CIRCLE_SIDES = 32
"""Sides of polygons for circles: a multiple of 8 has sides across all axes and diagonals."""

_COORDINATE_DECIMALS = 10
"""Decimals of rounded coordinates [m]. Between nearly equal points, edges are arbitrary."""

_GRID_WIDTH = 1e-10
"""Width of the grid of rounded coordinates [m]."""

CACHE_SIZE = 4096
"""Number of cached sums and intersections of polygons. Most obstacles do not move."""

_MAX_COORDINATE = 1e290
"""Bound of coordinates [m]: larger ones cannot be rounded."""

_CORNER_ERROR = 2e-15
"""Rounding error of corners relative to the largest coordinate, for corners far from the origin."""


@dataclass(frozen=True, eq=False)
class ConvexPolygon:
    """A convex polygon.

    Attributes:
        vertices: (n, 2) corners, counter-clockwise and read-only [m].
    """

    vertices: Points

    @classmethod
    def around(cls, points: ArrayLike) -> ConvexPolygon:
        """Return the convex hull of points (n, 2), rounded to a tenth of a nanometre. O(n log n).

        Raises:
            ShapeError: if there are no points, or coordinates that are not finite.
        """
        corners = plain_numbers(points, "points", "m").reshape(-1, 2)
        if not len(corners) or not np.all(np.abs(corners) < _MAX_COORDINATE):
            raise ShapeError(
                f"a polygon needs points of finite numbers, not {np.asarray(points)!r}"
            )
        return cls(read_only(convex.hull(_round(corners))))

    @classmethod
    def rectangle(cls, lower: ArrayLike, upper: ArrayLike) -> ConvexPolygon:
        """Return the rectangle between two opposite corners (2,) [m]."""
        (x0, y0), (x1, y1) = plain_numbers(lower, "lower", "m"), plain_numbers(upper, "upper", "m")
        return cls.around([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])

    @cached_property
    def edges(self) -> tuple[Points, NDArray[np.float64]]:
        """Edges as half planes: outward unit normals (n, 2) and offsets (n,) [m].

        A point p is inside where ``normal @ p <= offset``. A segment has two sides and two ends. A
        single point has four half planes.
        """
        if len(self.vertices) < 3:
            return _degenerate_edges(self.vertices)
        edges = np.roll(self.vertices, -1, axis=0) - self.vertices
        normals = np.column_stack([edges[:, 1], -edges[:, 0]]) / norms(edges)[:, None]
        return normals, np.einsum("ij,ij->i", normals, self.vertices)

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Smallest and largest x and y [m]."""
        low, high = self.vertices.min(axis=0).tolist(), self.vertices.max(axis=0).tolist()
        return (low[0], low[1]), (high[0], high[1])

    @property
    def area(self) -> float:
        """Area [m^2]."""
        return convex.area(self.vertices)

    @property
    def centroid(self) -> NDArray[np.float64]:
        """Centroid (2,) of the area, or the middle of a segment [m]."""
        return convex.centroid(self.vertices)

    def depth(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the signed distances (n,) of points (n, 2) to the nearest edge [m].

        They are positive inside. Outside they are negative distances to the line of an edge, whose
        magnitude is at most the distance to the polygon.
        """
        normals, offsets = self.edges
        positions = plain_numbers(points, "points", "m").reshape(-1, 2)
        return np.asarray(np.min(offsets[:, None] - product(normals, positions.T), axis=0))

    def contains(self, other: ConvexPolygon, *, tolerance: float = 1e-9) -> bool:
        """Return whether another polygon is inside this one, up to a ``tolerance`` [m]."""
        return bool(np.all(self.depth(other.vertices) >= -tolerance))

    def rotate(self, angle: float) -> ConvexPolygon:
        """Return the polygon rotated about the origin, counter-clockwise by ``angle`` [rad]."""
        cosine, sine = circle([angle])[0]
        return ConvexPolygon(read_only(product(self.vertices, [[cosine, sine], [-sine, cosine]])))

    def translate(self, offset: ArrayLike) -> ConvexPolygon:
        """Return the polygon translated by ``offset`` (2,) [m]."""
        return ConvexPolygon(read_only(self.vertices + plain_numbers(offset, "offset", "m")))

    def minkowski_sum(self, other: ConvexPolygon) -> ConvexPolygon:
        """Return the Minkowski sum: all sums of one point of each polygon."""
        sums = self.vertices[:, None, :] + other.vertices[None, :, :]
        if len(self.vertices) < 3 or len(other.vertices) < 3:
            return ConvexPolygon.around(sums)
        first, second = (_from_lowest(polygon.vertices) for polygon in (self, other))
        edges = np.concatenate([np.roll(part, -1, axis=0) - part for part in (first, second)])
        angles = np.array([atan2(y, x) for x, y in edges.tolist()]) % math.tau
        order = np.argsort(angles, kind="stable")
        offsets = np.concatenate([np.zeros((1, 2)), np.cumsum(edges[order], axis=0)[:-1]])
        return ConvexPolygon.around(first[0] + second[0] + offsets)

    def intersection(self, other: ConvexPolygon) -> ConvexPolygon | None:
        """Return the intersection of two polygons, or None if it is empty or has no area."""
        part = _clip(_round(self.vertices), *ConvexPolygon(_round(other.vertices)).edges)
        return part if part is not None and part.area > 0.0 else None

    def __repr__(self) -> str:
        return f"ConvexPolygon({len(self.vertices)} corners, {self.area:.6g} m^2)"


def containment_positions(area: ConvexPolygon, footprint: ConvexPolygon) -> ConvexPolygon | None:
    """Return the positions of a footprint's origin at which an area contains it, or None.

    A footprint that fits exactly in one direction has a segment of positions, or a single one.
    """
    return _containment_positions(_corners(area), _corners(footprint))


@lru_cache(CACHE_SIZE)
def _containment_positions(area: bytes, footprint: bytes) -> ConvexPolygon | None:
    normals, offsets = _polygon(area).edges
    corners = _polygon(footprint).vertices
    return _clip(
        _polygon(area).vertices - corners[0],
        normals,
        offsets - np.max(product(normals, corners.T), axis=1),
    )


def collision_positions(
    obstacle: ConvexPolygon, footprint: ConvexPolygon, *, spacing: float = 0.0
) -> ConvexPolygon:
    """Return the positions of a footprint's origin at which it is too near to an obstacle.

    The distance at the edges of the result is the spacing. At its corners it is up to 8 % larger,
    since an octagon replaces the circle.

    Args:
        obstacle: the obstacle.
        footprint: polygon relative to its origin.
        spacing: smallest allowed distance [m].
    """
    return _collision_positions(_corners(obstacle), _corners(footprint), spacing)


@lru_cache(CACHE_SIZE)
def _collision_positions(obstacle: bytes, footprint: bytes, spacing: float) -> ConvexPolygon:
    reflection = ConvexPolygon(read_only(-_polygon(footprint).vertices))
    overlaps = _polygon(obstacle).minkowski_sum(reflection)
    if not spacing > 0.0:
        return overlaps
    return overlaps.minkowski_sum(_regular(8, spacing / cos(math.pi / 8)))


def crossings(first: ConvexPolygon, second: ConvexPolygon) -> Points:
    """Return crossings (k, 2) of two outlines, and the ends of overlaps of parallel edges [m]."""
    return _crossings(_corners(first), _corners(second))


@lru_cache(CACHE_SIZE)
def _crossings(first: bytes, second: bytes) -> Points:
    a, b = (ConvexPolygon(_round(_polygon(corners).vertices)) for corners in (first, second))
    contacts = [_corners_on_edges(a, b), _corners_on_edges(b, a)]
    points = np.concatenate([*contacts, convex.crossings([a.vertices, b.vertices])])
    return read_only(np.unique(_round(points), axis=0))


def _corners_on_edges(polygon: ConvexPolygon, other: ConvexPolygon) -> Points:
    """Return the corners (k, 2) of a polygon that lie on an edge of another one [m]."""
    corners = polygon.vertices
    return corners[np.abs(other.depth(corners)) <= _tolerance(corners)]


def _corners(polygon: ConvexPolygon) -> bytes:
    return polygon.vertices.tobytes()


@lru_cache(CACHE_SIZE)
def _polygon(corners: bytes) -> ConvexPolygon:
    return ConvexPolygon(np.frombuffer(corners).reshape(-1, 2))


def outer_circle(radius: float) -> ConvexPolygon:
    """Return a polygon around a circle about the origin, tight along axes and diagonals."""
    return _regular(_CIRCLE_SIDES, radius / cos(math.pi / _CIRCLE_SIDES))


def inner_circle(radius: float) -> ConvexPolygon:
    """Return a polygon inside a circle about the origin."""
    return _regular(_CIRCLE_SIDES, radius)


def _regular(sides: int, radius: float) -> ConvexPolygon:
    """Return a regular polygon with an edge perpendicular to the x axis."""
    angles = (np.arange(sides) + 0.5) * (math.tau / sides)
    return ConvexPolygon(read_only(radius * circle(angles)))


def _degenerate_edges(vertices: Points) -> tuple[Points, NDArray[np.float64]]:
    edge = vertices[-1] - vertices[0]
    length = norm(edge)
    axis = edge / length if length > 0.0 else np.array([1.0, 0.0])
    normal = np.array([axis[1], -axis[0]])
    normals = np.array([axis, normal, -axis, -normal])
    return normals, np.max(product(normals, vertices.T), axis=1)


def _from_lowest(vertices: Points) -> Points:
    """Return the corners from the lowest on, the leftmost of several; edge angles then increase."""
    first = int(np.lexsort((vertices[:, 0], vertices[:, 1]))[0])
    return np.asarray(np.roll(vertices, -first, axis=0))


def _clip(corners: Points, normals: Points, offsets: NDArray[np.float64]) -> ConvexPolygon | None:
    """Return the intersection of a polygon (n, 2) with half planes, or None; contact counts."""
    part = convex.clip(corners, normals, offsets, tolerance=_tolerance(corners))
    return ConvexPolygon.around(part) if len(part) else None


def _tolerance(points: Points) -> float:
    """Return the distance at which points count as on a line [m]."""
    return max(_GRID_WIDTH, _CORNER_ERROR * float(np.max(np.abs(points))))


def _round(points: Points) -> Points:
    """Return points rounded to a tenth of a nanometre."""
    return np.asarray(np.round(points, _COORDINATE_DECIMALS) + 0.0)
