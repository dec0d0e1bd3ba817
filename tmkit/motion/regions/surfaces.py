"""Support surfaces, which are level areas of a scene.

A box has its upper side, a cylinder its upper cap, and a mesh the highest level facet of its hull.
A mesh with the level ``exact`` has its level patches, each divided into convex pieces along edges
of its triangles. Other shapes have no support surface.

A *region* is part of a surface: a frame with a flat box, usually of class ``region``. A box with
collisions is a surface of the region, which is the parent of objects on it. A visual box marks part
of the surface of the nearest ancestor with collision shapes, which is the parent of objects on it.

Invariants: the z axis of a surface is within a degree of the root's z axis at the given
configuration. Its polygon lies completely on the supporting shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import cos, dot, norm, product
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.motion.regions.patches import flat_patches, outward_triangles
from tmkit.motion.regions.polygons import CACHE_SIZE, ConvexPolygon, inner_circle
from tmkit.motion.regions.solids import Solids, collision_solids, outline, solids_of
from tmkit.spatial import Pose

_LEVEL_COSINE = cos(math.radians(1.0))
"""Cosine of the largest angle between a level normal and the vertical."""

_TOP_DEPTH = 1e-4
"""Depth below the highest point of a mesh in which corners belong to its top [m]."""

_MIN_PATCH_AREA = 1e-4
"""Smallest area of a level patch of a mesh [m^2]."""

_MAX_PATCHES = 64
"""Largest number of level patches of a mesh."""

_AREA_SLACK = 1e-6
"""Fraction by which the area of a convex piece may exceed that of its triangles."""

_MARK_DISTANCE = 0.02
"""Largest height of a visual region above or below the marked surface [m]."""


@dataclass(frozen=True, eq=False)
class SupportSurface:
    """Level area that can support objects.

    Attributes:
        support: frame of the area, which is the parent of objects on it.
        support_from_surface: pose of the area, with z up and the origin in its plane.
        polygon: outline of the area, in its x and y [m].
    """

    support: str
    support_from_surface: Pose
    polygon: ConvexPolygon

    def intersection(self, polygon: ConvexPolygon) -> SupportSurface | None:
        """Return the part of the area in a polygon of its x and y, or None if it is empty."""
        part = self.polygon.intersection(polygon)
        if part is None:
            return None
        return SupportSurface(self.support, self.support_from_surface, part)

    def rectangle(self, lower: ArrayLike, upper: ArrayLike) -> SupportSurface:
        """Return a rectangle of this surface.

        Args:
            lower: (2,) corner in the surface's x and y [m].
            upper: (2,) opposite corner [m].

        Raises:
            SceneError: if the rectangle exceeds the surface.
        """
        rectangle = ConvexPolygon.rectangle(lower, upper)
        if not self.polygon.contains(rectangle):
            raise SceneError(
                f"the rectangle from {lower!r} to {upper!r} reaches beyond the surface of"
                f" '{self.support}'"
            )
        return SupportSurface(self.support, self.support_from_surface, rectangle)


def support_surfaces(
    scene: SceneGraph, support: str, *, q: ArrayLike | None
) -> tuple[SupportSurface, ...]:
    """Return the level areas on top of a frame's collision shapes, the highest first.

    Args:
        scene: the scene.
        support: the frame.
        q: (n_joints,) configuration. None if no joint is between the frame and its root.
    """
    up = scene.pose(support, relative_to=scene.root(support), q=q).inverse().rotate([0.0, 0.0, 1.0])
    surfaces = [
        surface
        for attached in solids_of(scene, support)
        for surface in _tops(attached, support, up)
    ]
    surfaces.sort(key=lambda surface: -dot(up, surface.support_from_surface.translation))
    return tuple(surfaces)


@lru_cache(maxsize=CACHE_SIZE)
def main_area(
    solids: Solids, frame: str, /
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the box around the largest level area on top of solids.

    It is the area of :func:`region_surface` if the z axis of the frame points up. The results are
    cached, since every version of a scene needs them.

    Args:
        solids: collision shapes of the frame.
        frame: the frame.

    Returns:
        (3,) lower and (3,) upper corner in the axes of the frame [m]; the arrays are read-only.
        None if no area is level.
    """
    tops = [top for attached in solids for top in _tops(attached, frame, np.array([0.0, 0.0, 1.0]))]
    tops.sort(key=lambda top: -float(top.support_from_surface.translation[2]))
    area = max(tops, key=lambda top: round(top.polygon.area, 9), default=None)
    if area is None:
        return None
    points = np.column_stack([area.polygon.vertices, np.zeros(len(area.polygon.vertices))])
    corners = area.support_from_surface.apply(points)
    lower, upper = corners.min(axis=0), corners.max(axis=0)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def region_surface(scene: SceneGraph, region: str, *, q: ArrayLike | None) -> SupportSurface:
    """Return the area of a region.

    Of several level tops the largest one is returned, such as the floor of an open box.

    Args:
        scene: the scene.
        region: frame with a box.
        q: (n_joints,) configuration. None if no joint is between the region and its root.

    Raises:
        SceneError: if the frame has no level box, or marks an area without a surface.
    """
    surfaces = support_surfaces(scene, region, q=q)
    if surfaces:
        return max(surfaces, key=lambda surface: round(surface.polygon.area, 9))
    up = scene.pose(region, relative_to=scene.root(region), q=q).inverse().rotate([0.0, 0.0, 1.0])
    marks = [mark for attached in scene.shapes(region) for mark in _tops(attached, region, up)]
    if not marks:
        raise SceneError(
            f"region '{region}' has no level box, which would define its size", frame=region
        )
    ancestor = next((frame for frame in scene.ancestors(region) if solids_of(scene, frame)), None)
    if ancestor is None:
        raise SceneError(
            f"region '{region}' has no collision shape and no ancestor with one, so nothing can"
            " rest on it",
            frame=region,
        )
    for surface in support_surfaces(scene, ancestor, q=q):
        surface_from_region = surface.support_from_surface.inverse() @ scene.pose(
            region, relative_to=ancestor, q=q
        )
        mark = marks[0]
        corners = np.column_stack([mark.polygon.vertices, np.zeros(len(mark.polygon.vertices))])
        outline_points = (surface_from_region @ mark.support_from_surface).apply(corners)
        if np.max(np.abs(outline_points[:, 2])) <= _MARK_DISTANCE:
            part = surface.intersection(ConvexPolygon.around(outline_points[:, :2]))
            if part is not None:
                return part
    raise SceneError(
        f"region '{region}' does not lie on a level top of its parent '{ancestor}'", frame=region
    )


def lies_in_region(
    scene: SceneGraph,
    object: str,
    region: str | SupportSurface,
    *,
    q: ArrayLike | None,
    tolerance: float = 0.001,
) -> bool:
    """Return whether an object rests in a region: by its parent frame and by its outline.

    Args:
        scene: the scene.
        object: frame of the object.
        region: frame with a flat box, or part of a surface.
        q: (n_joints,) configuration. None if no joint is between the frames.
        tolerance: largest distance of the outline beyond the region [m].
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    if scene.parent(object) != surface.support:
        return False
    surface_from_object = surface.support_from_surface.inverse() @ scene.local_pose(object)
    footprint = outline(collision_solids(scene, object, q), surface_from_object)
    return surface.polygon.contains(footprint, tolerance=tolerance)


def _tops(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> tuple[SupportSurface, ...]:
    """Return the level areas on top of one shape, for the upward direction in the frame."""
    return _tops_of(attached, frame, tuple(up.tolist()))


@lru_cache(maxsize=CACHE_SIZE)
def _tops_of(
    attached: AttachedShape, frame: str, up: tuple[float, ...]
) -> tuple[SupportSurface, ...]:
    return tuple(_generate_tops(attached, frame, np.array(up)))


def _generate_tops(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> Iterator[SupportSurface]:
    shape, local_up = attached.shape, attached.pose.inverse().rotate(up)
    if shape.kind == "box" or (shape.kind == "mesh" and attached.level == "box"):
        axis = int(np.argmax(np.abs(local_up)))
        side = 1 if local_up[axis] > 0.0 else 0
        corners = np.array(np.meshgrid(*np.array(shape.bounds).T)).reshape(3, -1).T
        top = corners[corners[:, axis] == shape.bounds[side][axis]]
        normal = np.zeros(3)
        normal[axis] = 1.0 if side else -1.0
    elif shape.kind == "cylinder" and abs(local_up[2]) >= _LEVEL_COSINE:
        radius, length = shape.dimensions
        normal = np.array([0.0, 0.0, math.copysign(1.0, local_up[2])])
        rim = inner_circle(radius).vertices
        top = np.column_stack([rim, np.full(len(rim), normal[2] * length / 2)])
    elif shape.kind == "mesh" and attached.level == "exact":
        yield from _patch_surfaces(attached, frame, up)
        return
    elif shape.kind == "mesh":
        heights = product(shape.vertices, local_up)
        top, normal = shape.vertices[heights >= heights.max() - _TOP_DEPTH], local_up
    else:
        return
    if dot(normal, local_up) < _LEVEL_COSINE:
        return
    normal = attached.pose.rotate(normal)
    surface_pose = _plane_frame(attached.pose.apply(top), normal)
    polygon = ConvexPolygon.around(surface_pose.inverse().apply(attached.pose.apply(top))[:, :2])
    if len(polygon.vertices) > 2:
        yield SupportSurface(frame, surface_pose, polygon)


def _patch_surfaces(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> Iterator[SupportSurface]:
    """Yield convex pieces of the level patches of a mesh, without small patches."""
    triangles = outward_triangles(attached.shape)
    local_up = attached.pose.inverse().rotate(up)
    for patch, _ in flat_patches(triangles, min_area=_MIN_PATCH_AREA, max_count=_MAX_PATCHES):
        first = triangles[patch[0]]
        normal = np.cross(first[1] - first[0], first[2] - first[0])
        normal /= norm(normal)
        if dot(normal, local_up) < _LEVEL_COSINE:
            continue
        corners = attached.pose.apply(triangles[patch].reshape(-1, 3))
        surface_pose = _plane_frame(corners, attached.pose.rotate(normal))
        flat = surface_pose.inverse().apply(corners)[:, :2].reshape(-1, 3, 2)
        for piece in _convex_pieces(flat):
            yield SupportSurface(frame, surface_pose, piece)


def _convex_pieces(triangles: NDArray[np.float64]) -> Iterator[ConvexPolygon]:
    """Yield convex polygons that cover triangles (n, 3, 2), grown from the largest ones."""
    polygons = [ConvexPolygon.around(corners) for corners in triangles]
    whole = ConvexPolygon.around(triangles)
    if whole.area <= sum(polygon.area for polygon in polygons) * (1.0 + _AREA_SLACK):
        yield whole
        return
    remaining = sorted(range(len(polygons)), key=lambda i: -round(polygons[i].area, 12))
    while remaining:
        piece, grows = polygons[remaining.pop(0)], True
        while grows:
            grows = False
            for i in remaining:
                union = ConvexPolygon.around(np.concatenate([piece.vertices, polygons[i].vertices]))
                if union.area <= (piece.area + polygons[i].area) * (1.0 + _AREA_SLACK):
                    piece, grows = union, True
                    remaining.remove(i)
                    break
        if piece.area >= _MIN_PATCH_AREA:
            yield piece


def _plane_frame(points: NDArray[np.float64], normal: NDArray[np.float64]) -> Pose:
    """Return the pose of a frame in the plane through points.

    Its z axis is the normal, and its x axis is as near to the previous x axis as possible. Its
    origin is the previous one, translated along the normal.
    """
    forward = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = forward - dot(forward, normal) * normal
    x /= norm(x)
    height = float(np.max(product(points, normal)))
    return Pose.from_rotation_matrix(
        height * normal, np.column_stack([x, np.cross(normal, x), normal])
    )
