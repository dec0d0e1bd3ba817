"""Support surfaces: flat, level areas of a scene.

A box gives its upper side, whichever that is, a cylinder its upper cap, a mesh the highest level
facet of its hull. A mesh whose level is ``exact`` gives its level patches, each cut into convex
pieces along sides of its triangles. Nothing else is flat.

A *region* is part of a surface: a frame (of class ``region``, say) with a flat box. Where the box
takes part in collisions it is a surface of its own, and is the parent of objects that stand on it.
Where it is only drawn, surface and parent are that of the frame that it lies on, the nearest one
above it in the tree that has any.

Invariants: the z axis of a surface points along the root's z at the configuration asked about,
within a degree; its polygon lies wholly on what supports it.
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
from tmkit.motion.regions.patches import closed_triangles, flat_patches
from tmkit.motion.regions.polygons import REMEMBERED, ConvexPolygon, circle_within
from tmkit.motion.regions.solids import collision_solids, outline, solids_of
from tmkit.spatial import Pose

_LEVEL = cos(math.radians(1.0))
_TOP = 1e-4  # metres below its highest point that a corner of a mesh may be and belong to its top
_LEAST_PATCH, _MOST_PATCHES = 1e-4, 64  # square metres of a mesh's level patch, and how many count
_AREA_SLACK = 1e-6  # share by which a convex piece may be larger than its triangles
_MARKED = 0.02  # metres that a drawn region may lie above or below the surface that it marks


@dataclass(frozen=True, eq=False)
class SupportSurface:
    """A level area that objects can rest on.

    Attributes:
        support: frame that it belongs to, the parent of what rests on it.
        support_from_surface: pose of the area: z points up, the origin lies on it.
        polygon: the area, in its own x and y.
    """

    support: str
    support_from_surface: Pose
    polygon: ConvexPolygon

    def clipped(self, polygon: ConvexPolygon) -> SupportSurface | None:
        """Return the part of it that lies in a polygon of its own x and y, or None where that is nothing."""
        common = self.polygon.clipped(polygon)
        return (
            None
            if common is None
            else SupportSurface(self.support, self.support_from_surface, common)
        )

    def rectangle(self, lower: ArrayLike, upper: ArrayLike) -> SupportSurface:
        """Return a rectangle of this surface.

        Args:
            lower: (2,) corner in its own x and y, metres.
            upper: (2,) opposite corner.

        Raises:
            SceneError: the rectangle reaches beyond the surface.
        """
        wanted = ConvexPolygon.rectangle(lower, upper)
        if not self.polygon.holds(wanted):
            raise SceneError(
                f"the rectangle from {lower!r} to {upper!r} reaches beyond the surface of"
                f" '{self.support}'"
            )
        return SupportSurface(self.support, self.support_from_surface, wanted)


def support_surfaces(
    scene: SceneGraph, support: str, *, q: ArrayLike | None
) -> tuple[SupportSurface, ...]:
    """Return the level areas on top of a frame's collision shapes, the highest first.

    Args:
        scene: the scene.
        support: the frame.
        q: (n_joints,) configuration; None where no joint is between the frame and its root.
    """
    up = scene.pose(support, relative_to=scene.root(support), q=q).inverse().rotate([0.0, 0.0, 1.0])
    found = [
        surface
        for attached in solids_of(scene, support)
        for surface in _tops(attached, support, up)
    ]
    return tuple(
        sorted(found, key=lambda surface: -dot(up, surface.support_from_surface.translation))
    )


def region_surface(scene: SceneGraph, region: str, *, q: ArrayLike | None) -> SupportSurface:
    """Return the area that a region's frame marks: of several level tops the largest, as the floor of an open box.

    Args:
        scene: the scene.
        region: frame with a box.
        q: (n_joints,) configuration; None where no joint is between the region and its root.

    Raises:
        SceneError: the frame has no level box, or marks an area where there is no surface.
    """
    own = support_surfaces(scene, region, q=q)
    if own:
        return max(own, key=lambda surface: round(surface.polygon.area, 9))
    up = scene.pose(region, relative_to=scene.root(region), q=q).inverse().rotate([0.0, 0.0, 1.0])
    marks = [mark for attached in scene.shapes(region) for mark in _tops(attached, region, up)]
    if not marks:
        raise SceneError(
            f"region '{region}' has no level box, which would define its size", frame=region
        )
    below = next((frame for frame in scene.ancestors(region) if solids_of(scene, frame)), None)
    if below is None:
        raise SceneError(
            f"region '{region}' has no collision shape and no ancestor with one, so nothing can"
            " rest on it",
            frame=region,
        )
    for surface in support_surfaces(scene, below, q=q):
        surface_from_region = surface.support_from_surface.inverse() @ scene.pose(
            region, relative_to=below, q=q
        )
        mark = marks[0]
        corners = np.column_stack([mark.polygon.vertices, np.zeros(len(mark.polygon.vertices))])
        marked = (surface_from_region @ mark.support_from_surface).apply(corners)
        if np.max(np.abs(marked[:, 2])) <= _MARKED:
            found = surface.clipped(ConvexPolygon.around(marked[:, :2]))
            if found is not None:
                return found
    raise SceneError(
        f"region '{region}' does not lie on a level top of its parent '{below}'", frame=region
    )


def lies_in_region(
    scene: SceneGraph,
    object: str,
    region: str | SupportSurface,
    *,
    q: ArrayLike | None,
    tolerance: float = 0.001,
) -> bool:
    """Return whether an object is a child of what a region belongs to, with its outline in the region.

    Args:
        scene: the scene.
        object: frame of the object.
        region: frame with a flat box, or part of a surface.
        q: (n_joints,) configuration; None where no joint is between the frames.
        tolerance: metres that the outline may reach beyond the region.
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    if scene.parent(object) != surface.support:
        return False
    surface_from_object = surface.support_from_surface.inverse() @ scene.local_pose(object)
    return surface.polygon.holds(
        outline(collision_solids(scene, object, q), surface_from_object), tolerance=tolerance
    )


def _tops(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> tuple[SupportSurface, ...]:
    """Return the level areas on top of one shape; ``up`` is expressed in the frame."""
    return _tops_of(attached, frame, tuple(up.tolist()))


@lru_cache(maxsize=REMEMBERED)
def _tops_of(
    attached: AttachedShape, frame: str, up: tuple[float, ...]
) -> tuple[SupportSurface, ...]:
    return tuple(_found_tops(attached, frame, np.array(up)))


def _found_tops(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> Iterator[SupportSurface]:
    shape, own_up = attached.shape, attached.pose.inverse().rotate(up)
    if shape.kind == "box" or (shape.kind == "mesh" and attached.level == "box"):
        along = int(np.argmax(np.abs(own_up)))
        side = 1 if own_up[along] > 0.0 else 0
        corners = np.array(np.meshgrid(*np.array(shape.bounds).T)).reshape(3, -1).T
        top = corners[corners[:, along] == shape.bounds[side][along]]
        normal = np.zeros(3)
        normal[along] = 1.0 if side else -1.0
    elif shape.kind == "cylinder" and abs(own_up[2]) >= _LEVEL:
        radius, length = shape.dimensions
        normal = np.array([0.0, 0.0, math.copysign(1.0, own_up[2])])
        rim = circle_within(radius).vertices
        top = np.column_stack([rim, np.full(len(rim), normal[2] * length / 2)])
    elif shape.kind == "mesh" and attached.level == "exact":
        yield from _patches_of(attached, frame, up)
        return
    elif shape.kind == "mesh":
        heights = product(shape.vertices, own_up)
        top, normal = shape.vertices[heights >= heights.max() - _TOP], own_up
    else:
        return
    if dot(normal, own_up) < _LEVEL:
        return
    normal = attached.pose.rotate(normal)
    surface_pose = _on(attached.pose.apply(top), normal)
    polygon = ConvexPolygon.around(surface_pose.inverse().apply(attached.pose.apply(top))[:, :2])
    if len(polygon.vertices) > 2:
        yield SupportSurface(frame, surface_pose, polygon)


def _patches_of(
    attached: AttachedShape, frame: str, up: NDArray[np.float64]
) -> Iterator[SupportSurface]:
    """Yield the level patches of a mesh that are large enough to matter, in convex pieces."""
    triangles = closed_triangles(attached.shape)
    own_up = attached.pose.inverse().rotate(up)
    for patch, _ in flat_patches(triangles, least_area=_LEAST_PATCH, most=_MOST_PATCHES):
        first = triangles[patch[0]]
        normal = np.cross(first[1] - first[0], first[2] - first[0])
        normal /= norm(normal)
        if dot(normal, own_up) < _LEVEL:
            continue
        corners = attached.pose.apply(triangles[patch].reshape(-1, 3))
        surface_pose = _on(corners, attached.pose.rotate(normal))
        flat = surface_pose.inverse().apply(corners)[:, :2].reshape(-1, 3, 2)
        for piece in _convex_pieces(flat):
            yield SupportSurface(frame, surface_pose, piece)


def _convex_pieces(triangles: NDArray[np.float64]) -> Iterator[ConvexPolygon]:
    """Yield convex polygons that triangles (n, 3, 2) make together: each grows from the largest triangle left."""
    polygons = [ConvexPolygon.around(corners) for corners in triangles]
    whole = ConvexPolygon.around(triangles)
    if whole.area <= sum(polygon.area for polygon in polygons) * (1.0 + _AREA_SLACK):
        yield whole
        return
    left = sorted(range(len(polygons)), key=lambda i: -round(polygons[i].area, 12))
    while left:
        piece, grows = polygons[left.pop(0)], True
        while grows:
            grows = False
            for i in left:
                joined = ConvexPolygon.around(
                    np.concatenate([piece.vertices, polygons[i].vertices])
                )
                if joined.area <= (piece.area + polygons[i].area) * (1.0 + _AREA_SLACK):
                    piece, grows = joined, True
                    left.remove(i)
                    break
        if piece.area >= _LEAST_PATCH:
            yield piece


def _on(points: NDArray[np.float64], normal: NDArray[np.float64]) -> Pose:
    """Return a frame on the plane through points, its z axis along the normal and x as near to the old x as can be.

    Its origin is the old one, moved along the normal.
    """
    forward = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = forward - dot(forward, normal) * normal
    x /= norm(x)
    height = float(np.max(product(points, normal)))
    return Pose.from_rotation_matrix(
        height * normal, np.column_stack([x, np.cross(normal, x), normal])
    )
