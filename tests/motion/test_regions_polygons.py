"""Convex polygons: laws and known values of hulls, containment, sums and fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra.numpy import arrays
from support.polygons import separation

from tmkit.errors import ShapeError
from tmkit.motion.regions.polygons import (
    ConvexPolygon,
    collision_positions,
    containment_positions,
    crossings,
    inner_circle,
    outer_circle,
)

SQUARE = ConvexPolygon.rectangle([0.0, 0.0], [1.0, 1.0])
clouds = arrays(
    float, st.tuples(st.integers(3, 12), st.just(2)), elements=st.floats(-1.0, 1.0, width=32)
)


def polygon(points: np.ndarray) -> ConvexPolygon:
    """Return a polygon that is not nearly degenerate."""
    result = ConvexPolygon.around(points)
    assume(result.area > 1e-3)
    return result


@given(clouds)
def test_the_hull_contains_all_points_and_turns_left(points: np.ndarray) -> None:
    """Every point is inside, every corner is a point, and every corner turns left."""
    result = polygon(points)
    assert np.all(result.depth(points) >= -1e-9)
    given_points = {tuple(point) for point in (np.round(points, 10) + 0.0).tolist()}
    assert all(tuple(corner) in given_points for corner in result.vertices.tolist())
    sides = np.roll(result.vertices, -1, axis=0) - result.vertices
    following = np.roll(sides, -1, axis=0)
    assert np.all(sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0] > 0.0)


@given(clouds, clouds)
def test_the_sum_is_the_hull_of_all_sums(first: np.ndarray, second: np.ndarray) -> None:
    """The Minkowski sum by sorted edges equals the hull of all sums of corners."""
    a, b = polygon(first), polygon(second)
    slow = ConvexPolygon.around(a.vertices[:, None] + b.vertices[None])
    fast = a.minkowski_sum(b)
    assert fast.contains(slow, tolerance=1e-7)
    assert slow.contains(fast, tolerance=1e-7)


@given(clouds, clouds, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_fitting_positions_are_exact(
    first: np.ndarray, second: np.ndarray, u: float, v: float
) -> None:
    """A footprint lies in the area exactly at the fitting positions."""
    area, footprint = polygon(first), ConvexPolygon(polygon(second).vertices * 0.3)
    low, high = area.vertices.min(axis=0), area.vertices.max(axis=0)
    position = low + np.array([u, v]) * (high - low)
    fit = containment_positions(area, footprint)
    lies = area.contains(footprint.translate(position))
    depth = -1.0 if fit is None else float(fit.depth(position)[0])
    assume(abs(depth) > 1e-7)
    assert lies == (depth > 0.0)
    if fit is not None:
        assert all(
            area.contains(footprint.translate(corner), tolerance=1e-7) for corner in fit.vertices
        )


@given(clouds, clouds, arrays(float, 2, elements=st.floats(-3.0, 3.0)), st.sampled_from([0.0, 0.1]))
def test_blocked_positions_are_those_that_are_too_near(
    first: np.ndarray, second: np.ndarray, position: np.ndarray, spacing: float
) -> None:
    """Outside the blocked positions, the distance is the spacing; inside, below 1.09 of it."""
    obstacle, footprint = polygon(first), polygon(second)
    depth = float(collision_positions(obstacle, footprint, spacing=spacing).depth(position)[0])
    gap = _distance(obstacle, footprint.translate(position))
    if depth < -1e-7:
        assert gap >= spacing - 1e-7
    if depth > 1e-7:
        assert gap < 1.09 * spacing + 1e-7


def _distance(a: ConvexPolygon, b: ConvexPolygon) -> float:
    """Return the distance of two polygons by all pairs of corner and side; 0 if they overlap."""
    if separation(a, b) <= 0.0:
        return 0.0
    nearest = math.inf
    for first, second in ((a, b), (b, a)):
        ends = np.roll(first.vertices, -1, axis=0)
        for start, end in zip(first.vertices, ends, strict=True):
            along = end - start
            share = np.clip((second.vertices - start) @ along / (along @ along), 0.0, 1.0)
            gaps = np.linalg.norm(start + share[:, None] * along - second.vertices, axis=1)
            nearest = min(nearest, float(gaps.min()))
    return nearest


@given(clouds, clouds)
def test_the_intersection_lies_in_both(first: np.ndarray, second: np.ndarray) -> None:
    """The intersection of two polygons lies in both, and contains all common points."""
    a, b = polygon(first), polygon(second)
    common = a.intersection(b)
    grid = np.array(np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9))).reshape(2, -1).T
    in_both = np.minimum(a.depth(grid), b.depth(grid)) > 1e-7
    if common is None:
        assert not np.any(np.minimum(a.depth(grid), b.depth(grid)) > 1e-3)
        return
    assert a.contains(common, tolerance=1e-7)
    assert b.contains(common, tolerance=1e-7)
    assert np.all(common.depth(grid[in_both]) >= -1e-7)


def test_known_values() -> None:
    """Area, centre, depth and separation of squares and of the hull of an L are known."""
    assert SQUARE.area == 1.0
    np.testing.assert_allclose(SQUARE.centroid, [0.5, 0.5])
    np.testing.assert_allclose(SQUARE.depth([[0.5, 0.5], [0.1, 0.5], [1.2, 0.5]]), [0.5, 0.1, -0.2])
    assert separation(SQUARE, SQUARE.translate([1.25, 0.0])) == pytest.approx(0.25)
    assert separation(SQUARE, SQUARE.translate([0.9, 0.0])) == pytest.approx(-0.1)
    hull = ConvexPolygon.around([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2], [0, 1]])
    assert len(hull.vertices) == 5
    assert hull.area == pytest.approx(3.5)


def test_an_exact_fit_has_a_line_or_a_point_of_positions() -> None:
    """A footprint of the same width can slide along the area; an equal one has one position."""
    slide = containment_positions(SQUARE, ConvexPolygon.rectangle([-0.5, -0.25], [0.5, 0.25]))
    assert slide is not None
    np.testing.assert_allclose(slide.vertices, [[0.5, 0.25], [0.5, 0.75]], atol=1e-9)
    alone = containment_positions(SQUARE, ConvexPolygon.rectangle([-0.5, -0.5], [0.5, 0.5]))
    assert alone is not None
    np.testing.assert_allclose(alone.vertices, [[0.5, 0.5]], atol=1e-9)
    assert containment_positions(SQUARE, ConvexPolygon.rectangle([-0.5, -0.5], [0.51, 0.5])) is None


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5, 1e9])
def test_results_scale_with_the_size(size: float) -> None:
    """Polygons of 1 mm and 1e9 m have scaled intersections and fitting positions."""
    square = ConvexPolygon.rectangle([0.0, 0.0], [size, size]).rotate(0.3)
    other = square.translate([size / 2, size / 3])
    common, room = (
        square.intersection(other),
        containment_positions(square, ConvexPolygon.rectangle([-size / 8] * 2, [size / 8] * 2)),
    )
    assert common is not None
    assert room is not None
    assert common.area == pytest.approx(0.35148428 * size * size, rel=1e-6)
    assert room.area == pytest.approx(0.47236181 * size * size, rel=1e-6)
    assert len(crossings(square, other)) == 2


def test_thin_polygons_cross_and_fit() -> None:
    """A segment and a point have crossings with a square, and fitting positions."""
    segment, point = (
        ConvexPolygon.around([[0.0, 0.0], [1.0, 0.0]]),
        ConvexPolygon.around([0.5, 0.0]),
    )
    np.testing.assert_allclose(
        crossings(SQUARE, segment.translate([0.5, 0.5])), [[1.0, 0.5]], atol=1e-9
    )
    np.testing.assert_allclose(crossings(SQUARE, point), [[0.5, 0.0]], atol=1e-9)
    assert SQUARE.intersection(segment) is None
    room = containment_positions(segment, ConvexPolygon.around([[-0.25, 0.0], [0.25, 0.0]]))
    assert room is not None
    np.testing.assert_allclose(room.vertices, [[0.25, 0.0], [0.75, 0.0]], atol=1e-9)
    np.testing.assert_allclose(segment.centroid, [0.5, 0.0])


def test_polygons_bound_circles() -> None:
    """The outer polygon has the radius along the axes; the inner one lies in the circle."""
    outer, inner = outer_circle(2.0), inner_circle(2.0)
    np.testing.assert_allclose([outer.vertices.max(), outer.vertices.min()], [2.0, -2.0])
    assert outer.depth([0.0, 0.0])[0] == pytest.approx(2.0)
    assert np.linalg.norm(inner.vertices, axis=1).max() == pytest.approx(2.0)
    assert 0.99 < inner.area / (4.0 * math.pi) < 1.0 < outer.area / (4.0 * math.pi) < 1.01


def test_crossings_of_two_squares() -> None:
    """Two squares, one moved along the diagonal, cross at two points."""
    result = crossings(SQUARE, SQUARE.translate([0.5, 0.5]))
    assert sorted(map(tuple, np.round(result, 9).tolist())) == [(0.5, 1.0), (1.0, 0.5)]


def test_points_that_are_not_finite_are_rejected() -> None:
    """A polygon needs finite points."""
    with pytest.raises(ShapeError, match="points of finite numbers"):
        ConvexPolygon.around([])
    with pytest.raises(ShapeError, match="points of finite numbers"):
        ConvexPolygon.around([[0.0, math.nan]])
