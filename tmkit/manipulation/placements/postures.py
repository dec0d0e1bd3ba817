"""How an object can stand on a surface, and where it then fits.

A :class:`Posture` is an object on one of its stable faces, in one of the quarter turns that lay it along the sides of
an area. Its outline from above is one polygon, or several that leave gaps, as of an L, and so the positions at which it
fits are polygons too: ``fit``, where the outline lies in the area, less ``blocks``, where it would come too near to
something that stands at its height.

Invariants: ``free`` keeps exactly the positions in ``fit`` that are inside no block. Postures that look alike from
above share these polygons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import atan2, cos, norm, sin
from tmkit.errors import ConfigurationError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.placements.stable_faces import LEAST_MARGIN, StableFace, stable_faces
from tmkit.motion.regions.polygons import ConvexPolygon, blocking, fitting
from tmkit.motion.regions.solids import outline, outlines, reach, solids_of, solids_under
from tmkit.motion.regions.surfaces import SupportSurface
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose

_ABOVE = 0.001  # metres above a surface up to which a shape is part of it and no obstacle
_INSIDE = 1e-9  # metres that positions may be beyond an edge, for rounding
_MOST_PARTS = 8  # shapes of an object that count each by itself
_FULL = 0.95  # of the area of a hull that shapes fill where the hull stands for them
_WITHOUT_OUTLINE = ("height_field", "point_cloud", "plane")  # their outlines say nothing of where they are


@dataclass(frozen=True)
class PlacementSettings:
    """How placements are sampled.

    Attributes:
        spacing: metres between objects side by side; the planner keeps 1 mm.
        clearance: metres above the support at which an object is let go.
        grid: metres between neighbouring points of the grid, at least.
        samples: random placements at the end.
        is_packed: corners and edges first; else near to where the object is.
        is_scattered: all of these in random order instead.
        any_face: whether to put it down on any stable face; else upright, if its upright face is stable.

    Raises:
        ConfigurationError: a number that is negative or not finite, or a grid of no width.
    """

    spacing: float = 0.002
    clearance: float = 1e-4
    grid: float = 0.02
    samples: int = 32
    is_packed: bool = True
    is_scattered: bool = False
    any_face: bool = False

    def __post_init__(self) -> None:
        for name in ("spacing", "clearance", "grid", "samples"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0) or (name == "grid" and value == 0.0):
                raise ConfigurationError(f"{name} of placements must be a finite number of at least 0, not {value}")


@dataclass(frozen=True, eq=False)
class Posture:
    """An object turned as it could stand on a surface.

    Attributes:
        rotation: surface_from_object without translation.
        height: metres of the object's origin above the surface.
        name: in words.
        fit: positions at which the outline lies in the area.
        blocks: positions taken by neighbours.
    """

    rotation: Pose
    height: float
    name: str
    fit: ConvexPolygon
    blocks: tuple[ConvexPolygon, ...]

    def free(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions (k, 2) of given ones (n, 2) at which the object fits, in their order."""
        kept = self.fit.depth(points) >= -_INSIDE
        for block in self.blocks:
            kept &= block.depth(points) <= _INSIDE
        return points[kept]


def postures_on(
    scene: SceneGraph, object: str, surface: SupportSurface, solids: tuple[AttachedShape, ...], q: ArrayLike | None,
    manipulator: Manipulator | None, settings: PlacementSettings, *, may_overhang: bool,
) -> Iterator[Posture]:  # fmt: skip
    """Yield the stable orientations of an object on a surface, by quarter turns, the smallest rotation first.

    Args:
        scene: the scene.
        object: the object.
        surface: the support surface.
        solids: collision shapes of the object.
        q: (n_joints,) configuration; needed if the scene has joints.
        manipulator: the arm, whose parts do not block positions; None if there is none.
        settings: stability and spacing.
        may_overhang: whether the object may extend beyond the surface.
    """
    faces = stable_faces(scene, object, q=q)
    upright = [face for face in faces if face.is_upright]
    if upright and not settings.any_face:
        faces = tuple(upright)
    now = _rotation_now(scene, object, surface, q)
    known: dict[tuple[str, bytes | float], tuple[ConvexPolygon | None, tuple[ConvexPolygon, ...]]] = {}
    for face in sorted(faces, key=lambda face: not face.is_upright):
        height = face.height + settings.clearance
        top = height + reach(solids, face.rotation.inverse().rotate([0.0, 0.0, 1.0]))
        obstacles = list(_obstacles(scene, object, surface, top, q, manipulator, settings.spacing))
        for angle in _turns(surface.polygon, outline(solids, face.rotation), now @ face.rotation.inverse()):
            rotation = Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(angle / 2), cos(angle / 2)]) @ face.rotation
            footprint = outline(solids, rotation)
            fit = fitting(surface.polygon, footprint)
            parts = _parts(solids, rotation, footprint)
            corners = np.round(np.concatenate([part.vertices for part in parts]), 9)
            key = (face.name, corners.tobytes() if fit is not None else angle)
            if key not in known:  # a square looks the same after a quarter turn
                fit = _balanced(surface, face, angle) if fit is None and may_overhang else fit
                near = obstacles if fit is not None else ()
                known[key] = (
                    fit,
                    tuple(blocking(near_by, part, spacing=settings.spacing) for near_by in near for part in parts),
                )
            fit, blocks = known[key]
            if fit is not None:
                name = f"{face.name}, turned by {math.degrees(angle):.0f} degrees"
                yield Posture(rotation, height, name, fit, blocks)


def _parts(solids: tuple[AttachedShape, ...], rotation: Pose, footprint: ConvexPolygon) -> tuple[ConvexPolygon, ...]:
    """Return the outlines of an object's shapes if the hull around them is much larger, as of an L; else the hull."""
    if not 1 < len(solids) <= _MOST_PARTS:
        return (footprint,)
    parts = tuple(outlines(solids, rotation))
    return parts if sum(part.area for part in parts) < _FULL * footprint.area else (footprint,)


def _turns(area: ConvexPolygon, footprint: ConvexPolygon, wanted: Pose) -> list[float]:
    """Return quarter turns that lay an outline along the sides of an area, the nearest to a rotation first."""
    aligned = _side_angle(area) - _side_angle(footprint)
    now = atan2(wanted.rotation[1, 0] - wanted.rotation[0, 1], wanted.rotation[0, 0] + wanted.rotation[1, 1])
    quarters = (math.remainder(aligned + k * math.pi / 2, math.tau) for k in range(4))
    return sorted(quarters, key=lambda turn: (round(abs(math.remainder(turn - now, math.tau)), 6), -turn))


def _balanced(surface: SupportSurface, face: StableFace, angle: float) -> ConvexPolygon | None:
    """Return where an object too large for a surface lies with its weight over the middle; None if it would fall."""
    if face.is_rolling:
        return None
    middle = surface.polygon.centroid
    turn = Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(angle / 2), cos(angle / 2)])
    position = middle - turn.apply([*face.centre, 0.0])[:2]
    contact = surface.polygon.clipped(face.outline.turned(angle).moved(position))
    if contact is None or contact.depth(middle)[0] < LEAST_MARGIN:
        return None
    return ConvexPolygon.around(position)


def _side_angle(polygon: ConvexPolygon) -> float:
    """Return the direction, modulo a quarter turn, of the sides of the smallest rectangle around a polygon."""
    sides = np.roll(polygon.vertices, -1, axis=0) - polygon.vertices
    angles = np.round(np.array([atan2(y, x) for x, y in sides.tolist()]) % (math.pi / 2), 9) % round(math.pi / 2, 9)
    distinct: list[float] = sorted(set(angles.tolist()))
    return min(distinct, key=lambda angle: round(_rectangle_area(polygon.turned(-angle)), 12))


def _rectangle_area(polygon: ConvexPolygon) -> float:
    width, height = (polygon.vertices.max(axis=0) - polygon.vertices.min(axis=0)).tolist()
    return float(width) * float(height)


def _rotation_now(scene: SceneGraph, object: str, surface: SupportSurface, q: ArrayLike | None) -> Pose:
    """Return surface_from_object without translation, as the object is now."""
    if scene.root(object) != scene.root(surface.support):
        return Pose()
    now = surface.support_from_surface.inverse() @ scene.pose(object, relative_to=surface.support, q=q)
    return Pose([0.0, 0.0, 0.0], now.quat_xyzw)


def _obstacles(
    scene: SceneGraph, object: str, surface: SupportSurface, height: float, q: ArrayLike | None,
    manipulator: Manipulator | None, spacing: float,
) -> Iterator[ConvexPolygon]:  # fmt: skip
    """Yield the outlines of what stands on or reaches over a surface, below ``height``, in the surface's x and y."""
    ignored = set(scene.subtree(object))
    if manipulator is not None:
        ignored |= moved_frames(scene, manipulator)
    root = scene.root(surface.support)
    balls = (_ball(attached) for attached in solids_under(scene, object, q=q))
    around = spacing + max(norm(middle) + radius for middle, radius in balls)
    for frame in scene.frame_names:
        solids = () if frame in ignored else solids_of(scene, frame)
        if not solids or scene.root(frame) != root:
            continue
        surface_from_frame = surface.support_from_surface.inverse() @ scene.pose(
            frame, relative_to=surface.support, q=q
        )
        up = surface_from_frame.inverse().rotate([0.0, 0.0, 1.0])
        lift = float(surface_from_frame.translation[2])
        for attached in solids:
            if attached.shape.kind in _WITHOUT_OUTLINE or attached.level == "exact":
                continue
            if not _is_near(attached, surface_from_frame, surface.polygon, around):
                continue
            low, high = lift - reach((attached,), -up), lift + reach((attached,), up)
            if high > _ABOVE and low < height + spacing:  # what hangs just above comes as near as what stands beside
                yield outline((attached,), surface_from_frame)


def _is_near(attached: AttachedShape, surface_from_frame: Pose, polygon: ConvexPolygon, distance: float) -> bool:
    """Return whether a ball around a shape, seen from above, comes so near to the rectangle around a polygon."""
    middle, radius = _ball(attached)
    x, y, _ = surface_from_frame.apply(middle).tolist()
    (first_x, first_y), (last_x, last_y) = polygon.vertices.min(axis=0), polygon.vertices.max(axis=0)
    far = distance + radius
    return bool(first_x - far <= x <= last_x + far and first_y - far <= y <= last_y + far)


def _ball(attached: AttachedShape) -> tuple[NDArray[np.float64], float]:
    """Return middle (3,) and radius of a ball around a shape, in its frame."""
    lower, upper = attached.shape.bounds
    return np.asarray(attached.pose.apply((lower + upper) / 2)), norm(upper - lower) / 2
