"""Extents of objects: the support function of shapes, and their outlines from above.

For a placement an object is a set of convex solids, one for each collision shape. As the collision
checker sees it, a mesh is its convex hull unless its level says ``box`` or ``exact`` (whose outline
from above is that of the hull, too). Each is a hull of points, widened by a radius: a ball is one
point, a capsule two, a cloud many.

Invariants: :func:`reach` is exact for all kinds but height fields, of which it takes the box;
:func:`outline` holds the true outline, and has circles as polygons of 32 corners around them.
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
from tmkit.motion.regions.polygons import REMEMBERED, ConvexPolygon, circle_around
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

Solids = tuple[AttachedShape, ...]
# which bounds a corner has
_UPPER = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=bool)


def solids_of(scene: SceneGraph, frame: str) -> Solids:
    """Return the collision shapes of a frame."""
    return tuple(attached for attached in scene.shapes(frame) if attached.collision)


def solids_under(scene: SceneGraph, frame: str, *, q: ArrayLike | None) -> Solids:
    """Return the collision shapes of a frame and its descendants, in the frame's coordinates.

    Args:
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    found: list[AttachedShape] = []
    for below in scene.subtree(frame):
        here = solids_of(scene, below)
        if here and below != frame:
            frame_from_below = scene.pose(below, relative_to=frame, q=q)
            here = tuple(
                attached.replace(pose=frame_from_below @ attached.pose) for attached in here
            )
        found.extend(here)
    return tuple(found)


def collision_solids(scene: SceneGraph, object: str, q: ArrayLike | None) -> Solids:
    """Return the collision shapes of an object and what is on it; see :func:`solids_under`.

    Args:
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        SceneError: the object has no collision shape, or is a plane.
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
    """Return the largest coordinate of one or more solids along a unit direction (3,), metres."""
    return _reach_of(tuple(solids), tuple(plain_numbers(direction, "direction").tolist()))


@lru_cache(maxsize=REMEMBERED)
def _reach_of(solids: Solids, direction: tuple[float, ...]) -> float:
    along = np.array(direction)
    return max(
        dot(along, attached.pose.translation)
        + _reach(attached, attached.pose.inverse().rotate(along))
        for attached in solids
    )


def outline(solids: Solids, plane_from_frame: Pose) -> ConvexPolygon:
    """Return the convex hull of the solids projected along z.

    Args:
        plane_from_frame: pose of that frame relative to the plane, whose x and y the polygon is in.

    Raises:
        ShapeError: no solids.
    """
    if not solids:
        raise ShapeError(
            "what has no collision shape has no outline, so nothing can rest on it or be put down"
        )
    return _outline_of(tuple(solids), plane_from_frame)


@lru_cache(maxsize=REMEMBERED)
def _outline_of(solids: Solids, plane_from_frame: Pose) -> ConvexPolygon:
    found = [polygon.vertices for polygon in outlines(solids, plane_from_frame)]
    return ConvexPolygon.around(found[0] if len(found) == 1 else np.concatenate(found))


def solid_points(attached: AttachedShape) -> NDArray[np.float64]:
    """Return points (n, 3) whose hull holds a solid, in the frame that it is attached to.

    They are its corners; circles count as polygons around them, and round ends as the boxes around
    them.
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
        yield flat.widened(circle_around(radius)) if radius > 0.0 else flat


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
    """Return points (n, 3) of a shape's own frame and the radius by which their hull is to be widened."""
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
    rim = circle_around(radius).vertices
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
