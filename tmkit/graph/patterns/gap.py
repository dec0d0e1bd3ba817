"""The distance between two convex bodies that are known by their farthest points alone.

A *support function* gives the farthest point of a body along a direction; those of two bodies give that of their
difference, whose distance from the origin is that of the bodies. The method of Gilbert, Johnson and Keerthi keeps a few
points of the difference (a simplex), takes the point of their hull that is nearest to the origin, takes the farthest
point the other way, and goes on until that brings the hull no nearer.

The nearest point of a simplex of at most four points is found by trying every subset: that of the subset's plane, when
it lies inside. Fifteen small systems are more than cleverness would need, and have no special cases; degenerate subsets
are omitted. Source: Gilbert, Johnson, Keerthi, "A fast procedure for computing the distance between complex objects in
three-dimensional space", IEEE J. Robotics and Automation 4(2), 1988.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Support = Callable[[Vector], Vector]
"""The farthest point (3,) of a body along a direction (3,), which need not be a unit vector."""

_ITERATIONS = 100
_PRECISION = 1e-9  # metres: bodies nearer than this touch; relative to their distance otherwise


def gap(a: Support, b: Support) -> float:
    """Return the distance of two convex bodies in metres, 0 where they touch or overlap.

    Exact to about a nanometre for bodies with corners; what is round converges to within a micrometre.
    """

    def support(direction: Vector) -> Vector:
        return a(direction) - b(-direction)

    simplex = [support(np.array([1.0, 0.0, 0.0]))]
    nearest = simplex[0]
    for _ in range(_ITERATIONS):
        squared = float(nearest @ nearest)
        if squared <= _PRECISION**2:
            return 0.0
        farther = support(-nearest)
        if squared - float(nearest @ farther) <= _PRECISION * max(squared, np.sqrt(squared)):
            return float(np.sqrt(squared))
        nearest, simplex = _nearest_to_origin([*simplex, farther])
    return float(np.linalg.norm(nearest))


def _nearest_to_origin(points: list[Vector]) -> tuple[Vector, list[Vector]]:
    """Return the point nearest to the origin of the hull of up to four points, and the points that it lies between."""
    best, best_squared, between = points[0], np.inf, points[:1]
    for size in range(1, len(points) + 1):
        for subset in itertools.combinations(points, size):
            candidate = _foot(subset)
            if candidate is not None and (squared := float(candidate @ candidate)) < best_squared:
                best, best_squared, between = candidate, squared, list(subset)
    return best, between


def _foot(points: tuple[Vector, ...]) -> Vector | None:
    """Return the foot of the perpendicular from the origin to the plane of points, None where it lies outside them."""
    if len(points) == 1:
        return points[0]
    edges = np.array(points[1:]) - points[0]
    gram = edges @ edges.T
    scale = float(np.prod(np.diag(gram)))
    if abs(float(np.linalg.det(gram))) <= 1e-14 * scale:
        return None
    weights = np.linalg.solve(gram, -edges @ points[0])
    if np.any(weights < 0.0) or float(weights.sum()) > 1.0:
        return None
    foot: Vector = points[0] + weights @ edges
    return foot
