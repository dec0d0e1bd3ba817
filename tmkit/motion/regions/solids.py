"""Extents of objects: support functions of their shapes, and outlines from above.

For a placement, an object is a set of convex solids, one for each collision shape. A mesh counts as
its convex hull, as in the collision checker. With the level ``box`` it counts as its box. The
outline of an ``exact`` mesh from above is that of its hull. Each solid is the hull of points,
enlarged by a radius: a ball has one point, a capsule two, a point cloud many.

Invariants: :func:`reach` is exact for all kinds except height fields, which count as their box.
:func:`outline` contains the true outline, with polygons of 32 corners around circles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import dot, product
from tmkit.errors import SceneError, ShapeError
from tmkit.graph import AttachedShape, SceneGraph, Shape
from tmkit.motion.regions.polygons import CACHE_SIZE, ConvexPolygon, outer_circle
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

Solids = tuple[AttachedShape, ...]

_UPPER = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=bool)
"""(8, 3) whether a corner of a box has the upper bound in x, y and z."""


def solids_of(scene: SceneGraph, frame: str) -> Solids:
    """Return the collision shapes of a frame."""
    return tuple(attached for attached in scene.shapes(frame) if attached.collision)


def solids_under(scene: SceneGraph, frame: str, *, q: ArrayLike | None) -> Solids:
    """Return the collision shapes of a frame and its descendants, in the frame's coordinates.

    Args:
        scene: the scene.
        frame: the frame.
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    solids: list[AttachedShape] = []
    for descendant in scene.subtree(frame):
        shapes = solids_of(scene, descendant)
        if shapes and descendant != frame:
            pose = scene.pose(descendant, relative_to=frame, q=q)
            shapes = tuple(attached.replace(pose=pose @ attached.pose) for attached in shapes)
        solids.extend(shapes)
    return tuple(solids)


def collision_solids(scene: SceneGraph, object: str, q: ArrayLike | None) -> Solids:
    """Return the collision shapes of an object and its load; see :func:`solids_under`.

    Args:
        scene: the scene.
        object: frame of the object.
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        SceneError: if the object has no collision shape, or contains a plane.
    """
    solids = solids_under(scene, object, q=q)
    if not solids_of(scene, object):
        raise SceneError(
            f"object '{object}' has no collision shape, so it cannot rest on anything", frame=object
        )
    if any(attached.shape.kind == "plane" for attached in solids):
        raise SceneError(
            f"object '{object}' has a plane, which cannot be put anywhere", frame=object
        )
    return solids


def reach(solids: Solids, direction: ArrayLike) -> float:
    """Return the largest coordinate of solids along a unit direction (3,) [m]."""
    return _reach_of(tuple(solids), tuple(plain_numbers(direction, "direction", "1").tolist()))


@lru_cache(maxsize=CACHE_SIZE)
def _reach_of(solids: Solids, direction: tuple[float, ...]) -> float:
    vector = np.array(direction)
    return max(
        dot(vector, attached.pose.translation)
        + _reach(attached, attached.pose.inverse().rotate(vector))
        for attached in solids
    )


def outline(solids: Solids, plane_from_frame: Pose) -> ConvexPolygon:
    """Return the convex hull of the solids projected along z.

    Args:
        solids: the solids.
        plane_from_frame: pose of their frame relative to the plane of the polygon's x and y.

    Raises:
        ShapeError: if there are no solids.
    """
    if not solids:
        raise ShapeError(
            "a frame without collision shapes has no outline, so it cannot support or be placed"
        )
    return _outline_of(tuple(solids), plane_from_frame)


@lru_cache(maxsize=CACHE_SIZE)
def _outline_of(solids: Solids, plane_from_frame: Pose) -> ConvexPolygon:
    vertices = [polygon.vertices for polygon in outlines(solids, plane_from_frame)]
    return ConvexPolygon.around(vertices[0] if len(vertices) == 1 else np.concatenate(vertices))


def solid_points(attached: AttachedShape) -> NDArray[np.float64]:
    """Return points (n, 3) whose hull contains a solid, in the frame of its parent [m].

    The points are its corners. Circles count as polygons around them, and round ends as boxes.
    """
    points, radius = _points(attached)
    if radius > 0.0:
        corners = np.where(_UPPER, radius, -radius)
        points = (points[:, None] + corners).reshape(-1, 3)
    return attached.pose.apply(points)


def outlines(solids: Solids, plane_from_frame: Pose) -> Iterator[ConvexPolygon]:
    """Yield the outline of each solid, projected along z; see :func:`outline`."""
    for attached in solids:
        points, radius = _points(attached)
        flat = ConvexPolygon.around((plane_from_frame @ attached.pose).apply(points)[:, :2])
        yield flat.minkowski_sum(outer_circle(radius)) if radius > 0.0 else flat


def _reach(attached: AttachedShape, d: NDArray[np.float64]) -> float:
    """Return the support function of a shape in its own frame."""
    shape = attached.shape
    if _is_box(attached):
        return float(np.max(product(_box_corners(shape), d)))
    if shape.kind in ("cylinder", "cone"):
        radius, length = shape.dimensions
        rim = radius * math.hypot(d[0], d[1])
        if shape.kind == "cylinder":
            return abs(float(d[2])) * length / 2 + rim
        return max(float(d[2]) * length / 2, rim - float(d[2]) * length / 2)
    points, radius = _points(attached)
    return float(np.max(product(points, d))) + radius


def _points(attached: AttachedShape) -> tuple[NDArray[np.float64], float]:
    """Return points (n, 3) in the shape's frame, and the radius that enlarges their hull [m]."""
    shape = attached.shape
    if _is_box(attached):
        return _box_corners(shape), 0.0
    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=float), 0.0
    if shape.kind == "point_cloud":
        return np.asarray(shape.points, dtype=float), shape.dimensions[0]
    if shape.kind == "sphere":
        return np.zeros((1, 3)), shape.dimensions[0]
    radius, length = shape.dimensions
    if shape.kind == "capsule":
        return np.array([[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2]]), radius
    rim = outer_circle(radius).vertices
    low = np.column_stack([rim, np.full(len(rim), -length / 2)])
    high = (
        low * [1.0, 1.0, -1.0] if shape.kind == "cylinder" else np.array([[0.0, 0.0, length / 2]])
    )
    return np.concatenate([low, high]), 0.0


def _is_box(attached: AttachedShape) -> bool:
    kind = attached.shape.kind
    return kind in ("box", "height_field", "plane") or (kind == "mesh" and attached.level == "box")


def _box_corners(shape: Shape) -> NDArray[np.float64]:
    lower, upper = shape.bounds
    return np.where(_UPPER, upper, lower)
