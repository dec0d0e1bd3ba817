"""Convex polygons against shapely (GEOS), for random, degenerate, tiny and huge inputs."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from tmkit.motion.regions import convex
from tmkit.motion.regions.polygons import ConvexPolygon, containment_positions, crossings

shapely = pytest.importorskip("shapely")

# of sizes about 1 m: rounding to a grid of 1e-10 m moves crossings of edges at small angles farther
NEAR = 2e-9

Exact = tuple[Fraction, ...]

counts = st.tuples(st.integers(1, 12), st.just(2))
random_clouds = arrays(float, counts, elements=st.floats(-1.0, 1.0, width=32))
# many on one line, many equal
grid_clouds = arrays(float, counts, elements=st.integers(-3, 3).map(lambda i: i / 3))
clouds = random_clouds | grid_clouds
# GEOS divides by zero at denormal numbers
turns = st.floats(0.0, math.tau).map(lambda angle: round(angle, 9))


def geometry(polygon: ConvexPolygon) -> Any:
    """Return a polygon, a segment or a point of shapely."""
    return shapely.convex_hull(shapely.multipoints(polygon.vertices))


def outline(polygon: ConvexPolygon) -> Any:
    """Return the boundary of a polygon, or a segment or point itself."""
    return geometry(polygon).boundary if len(polygon.vertices) > 2 else geometry(polygon)


def corners(shape: Any) -> set[tuple[float, ...]]:
    """Return the points of a geometry."""
    return set(map(tuple, shapely.get_coordinates(shape).tolist()))


def orientation(first: Exact, second: Exact, third: Exact) -> Fraction:
    """Return twice the area of a triangle, positive if its corners turn left."""
    (x, y), (x1, y1), (x2, y2) = first, second, third
    return (x1 - x) * (y2 - y) - (y1 - y) * (x2 - x)


@given(clouds, st.sampled_from([1e-9, 1.0, 1e6]), turns, st.booleans())
def test_hulls_are_exact_and_close_to_those_of_geos(
    points: np.ndarray, size: float, angle: float, is_crowd: bool
) -> None:
    """In exact fractions, corners turn left and no point is outside. GEOS agrees up to rounding.

    A crowd lies on the lines between the points but for rounding, where an inexact orientation goes
    wrong.
    """
    cosine, sine = math.cos(angle), math.sin(angle)
    cloud = points @ [[cosine, sine], [-sine, cosine]] * size
    if is_crowd:
        pairs = cloud[np.random.default_rng(7).integers(len(cloud), size=(90, 2))]
        cloud = np.concatenate(
            [cloud, pairs.mean(axis=1), pairs[:, 0] + (pairs[:, 1] - pairs[:, 0]) / 3]
        )
    hull = convex.hull(cloud)
    hull_corners = [tuple(map(Fraction, corner)) for corner in hull.tolist()]
    exact = {tuple(map(Fraction, point)) for point in cloud.tolist()}
    assert len(set(hull_corners)) == len(hull_corners)
    assert exact.issuperset(hull_corners)
    assert hull_corners[0] == min(exact)
    edges = list(zip(hull_corners, hull_corners[1:] + hull_corners[:1], strict=True))
    if len(hull_corners) > 2:
        assert all(
            orientation(*edge, third) > 0
            for edge, third in zip(edges, hull_corners[2:] + hull_corners[:2], strict=True)
        )
    assert all(orientation(*edge, point) >= 0 for edge in edges for point in exact)
    expected = shapely.convex_hull(shapely.multipoints(cloud))
    assert (
        shapely.hausdorff_distance(shapely.convex_hull(shapely.multipoints(hull)), expected)
        <= 1e-15 * size
    )


@given(clouds)
def test_areas_and_centroids_equal_those_of_geos(points: np.ndarray) -> None:
    """Area and centroid are right for polygons, segments and points."""
    polygon = ConvexPolygon.around(points)
    expected = geometry(polygon)
    assert polygon.area == pytest.approx(expected.area, abs=1e-12)
    if expected.area > 1e-6 or len(polygon.vertices) < 3:
        np.testing.assert_allclose(polygon.centroid, corners(expected.centroid).pop(), atol=1e-9)


@given(clouds, clouds, st.sampled_from([1e-3, 1.0, 1e6]), turns)
def test_intersections_equal_those_of_geos(
    first: np.ndarray, second: np.ndarray, size: float, angle: float
) -> None:
    """The intersection of two polygons has the area and position of that of GEOS."""
    a, b = ConvexPolygon.around(first * size), ConvexPolygon.around(second * size).rotate(angle)
    expected = geometry(a).intersection(geometry(b), grid_size=1e-10 * max(1.0, size))
    result = a.intersection(b)
    slack = NEAR * max(1.0, size)
    if result is None:
        assert expected.area <= slack * 4.0 * size
        return
    assert result.area == pytest.approx(expected.area, abs=slack * 8.0 * size)
    assert geometry(a).buffer(slack).covers(geometry(result))
    assert geometry(b).buffer(slack).covers(geometry(result))


@given(clouds, clouds, turns)
def test_crossings_equal_those_of_geos(first: np.ndarray, second: np.ndarray, angle: float) -> None:
    """Crossings are on both outlines, and include all intersections of outlines of GEOS."""
    a, b = ConvexPolygon.around(first), ConvexPolygon.around(second).rotate(angle)
    result = shapely.points(crossings(a, b))
    assert np.all(shapely.distance(result, outline(a)) < NEAR)
    assert np.all(shapely.distance(result, outline(b)) < NEAR)
    common_points = outline(a).intersection(outline(b))
    # long where edges are nearly parallel
    places = outline(a).buffer(NEAR).intersection(outline(b).buffer(NEAR))
    for place in shapely.get_parts(places):
        if shapely.distance(place, common_points) == 0.0:
            assert np.min(shapely.distance(result, place), initial=math.inf) < NEAR


@given(clouds, clouds, turns)
def test_fitting_positions_equal_those_of_geos(
    first: np.ndarray, second: np.ndarray, angle: float
) -> None:
    """The fitting positions are the intersection of the areas moved by the footprint's corners."""
    area, footprint = ConvexPolygon.around(first), ConvexPolygon.around(second * 0.3).rotate(angle)
    moved = [geometry(area.translate(-corner)) for corner in footprint.vertices]
    expected = reduce(lambda a, b: a.intersection(b, grid_size=1e-10).convex_hull, moved)
    result = containment_positions(area, footprint)
    if result is None:
        assert expected.area < NEAR
        return
    assert result.area == pytest.approx(expected.area, abs=NEAR * 8.0)
    assert all(
        area.contains(footprint.translate(corner), tolerance=NEAR) for corner in result.vertices
    )


@given(clouds, turns, st.floats(-5.0, 5.0))
def test_an_exact_fit_has_a_position_at_every_angle(
    points: np.ndarray, angle: float, shift: float
) -> None:
    """An area contains its own outline at the origin, rotated and translated in any way."""
    footprint = ConvexPolygon.around(points).rotate(angle)
    area = footprint.translate([shift, -shift])
    result = containment_positions(area, footprint)
    assert result is not None
    assert np.min(np.linalg.norm(result.vertices - [shift, -shift], axis=1)) < 1e-6


def test_hulls_of_thousands_of_points_have_the_corners_of_geos() -> None:
    """A circle, a square lattice and a cloud of 20,000 points have the corners of GEOS."""
    rng = np.random.default_rng(3)
    angles = rng.uniform(0.0, math.tau, 20_000)
    lattice = np.array(np.meshgrid(np.arange(120) / 10, np.arange(120) / 7)).reshape(2, -1).T
    for cloud in (
        np.column_stack([np.cos(angles), np.sin(angles)]),
        lattice,
        rng.normal(size=(20_000, 2)),
    ):
        rounded = np.round(cloud, 10)
        assert set(map(tuple, convex.hull(rounded).tolist())) == corners(
            shapely.convex_hull(shapely.multipoints(rounded))
        )
