"""Placements: where an object may be put down.

A :class:`Placement` is a frame to rest on and the pose at which the object rests. Candidates come lazily, in two
orders. *Packed* is for regions that are to hold many things: first the corners of the region, then places that touch
its edge and a neighbour, then those that touch two neighbours, then a grid, then random ones. So things end up side by
side along the edges, where the hand still finds room, and eight blocks fit where four dropped anywhere would fill the
place. *Near* is for large surfaces: a grid, nearest to where the object is now first.

Where an object fits is worked out by polygons (:mod:`tmkit.planner.placements_polygons`): its outline from above must
lie in the area, and keep away from the outlines of what stands at its height. That is exact for upright prisms; of an
overhanging neighbour it takes the outline for the whole, and so misses places under it, but gives none that collide.

An object is put down on a stable face (:mod:`tmkit.planner.stable_faces`): upright, where it stands so, else on any;
or on any in every case, when the settings ask for it.

Invariants: each placement's outline lies in the area (on a whole surface too small for it, the object is put down with
its centre of mass over the middle, if it stays there); equal arguments and generators in equal states give equal
sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import ConfigurationError, SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.motion import Manipulator
from tmkit.motion.collision_rules import moved_frames
from tmkit.planner.placements_polygons import ConvexPolygon, blocking, crossings, fitting
from tmkit.planner.placements_solids import outline, reach, solids_of, solids_under
from tmkit.planner.placements_surfaces import SupportSurface, region_surface, support_surfaces
from tmkit.planner.stable_faces import LEAST_MARGIN, StableFace, stable_faces
from tmkit.spatial import Pose

__all__ = [
    "Placement",
    "PlacementSettings",
    "lies_in_region",
    "placements_in_region",
    "placements_on_surface",
]

_ABOVE = 0.001  # metres above a surface up to which a thing is part of it and in nobody's way
_INSIDE = 1e-9  # metres that positions may be beyond an edge, for rounding
_GRID_POINTS = 24  # along the longer side of an area, at most
_WITHOUT_OUTLINE = ("height_field", "point_cloud", "plane")  # their outlines say nothing of where they are


@dataclass(frozen=True)
class Placement:
    """A place for an object.

    Attributes:
        support: frame that it comes to rest on, off which it will hang.
        support_from_item: pose of the object at rest.
        name: the place in words.
    """

    support: str
    support_from_item: Pose
    name: str


@dataclass(frozen=True)
class PlacementSettings:
    """How placements are sampled.

    Attributes:
        spacing: metres between objects side by side; the planner keeps 1 mm.
        clearance: metres above the support at which an object is let go.
        grid: metres between neighbouring points of the grid, at least.
        samples: random placements at the end.
        is_packed: corners and edges first; else near to where the object is.
        any_face: whether to put it down on any stable face; else upright, where it stands so.

    Raises:
        ConfigurationError: a number that is negative or not finite, or a grid of no width.
    """

    spacing: float = 0.002
    clearance: float = 1e-4
    grid: float = 0.02
    samples: int = 32
    is_packed: bool = True
    any_face: bool = False

    def __post_init__(self) -> None:
        for name in ("spacing", "clearance", "grid", "samples"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0) or (name == "grid" and value == 0.0):
                raise ConfigurationError(f"{name} of placements must be a finite number of at least 0, not {value}")


def placements_in_region(
    scene: SceneGraph,
    item: str,
    region: str | SupportSurface,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield places for an object in a region, packing it beside what is there.

    Args:
        scene: the scene; what the object hangs off does not matter.
        item: frame of the object.
        region: frame with a flat box, or part of a surface; see :func:`region_surface`.
        q: (n_joints,) configuration; None where no joint is between the frames asked about.
        rng: for the random placements at the end.
        manipulator: the arm, whose own links are in nobody's way, and which fills a region from its far side.
        settings: how to sample.

    Raises:
        SceneError: no such region, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    yield from _placements(scene, item, (surface,), q, rng, manipulator, settings or PlacementSettings())


def placements_on_surface(
    scene: SceneGraph,
    item: str,
    support: str,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield places for an object on the level tops of a frame, near to where it is first; see the function above.

    Raises:
        SceneError: the support has no level top, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surfaces = support_surfaces(scene, support, q=q)
    if not surfaces:
        raise SceneError(f"'{support}' has no level top that anything could rest on", frame=support)
    yield from _placements(scene, item, surfaces, q, rng, manipulator, settings or PlacementSettings(is_packed=False))


def lies_in_region(
    scene: SceneGraph, item: str, region: str | SupportSurface, *, q: ArrayLike | None, tolerance: float = 0.001
) -> bool:
    """Tell whether an object hangs off what a region belongs to, with its outline in the region.

    Args:
        scene: the scene.
        item: frame of the object.
        region: frame with a flat box, or part of a surface.
        q: (n_joints,) configuration; None where no joint is between the frames.
        tolerance: metres that the outline may reach beyond the region.
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    if scene.parent(item) != surface.support:
        return False
    surface_from_item = surface.support_from_surface.inverse() @ scene.local_pose(item)
    return surface.polygon.holds(outline(_solids(scene, item, q), surface_from_item), tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class _Posture:
    """An object turned as it could stand on a surface.

    Attributes:
        rotation: surface_from_item without translation.
        height: metres of the object's origin above the surface.
        name: in words.
        fit: positions at which the outline lies in the area.
        blocks: positions taken by neighbours.
    """

    rotation: Pose
    height: float
    name: str
    fit: ConvexPolygon
    blocks: tuple[ConvexPolygon, ...] = field(default=())

    def free(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions (k, 2) of given ones (n, 2) at which the object fits, in their order."""
        kept = self.fit.depth(points) >= -_INSIDE
        for block in self.blocks:
            kept &= block.depth(points) <= _INSIDE
        return points[kept]


def _placements(
    scene: SceneGraph,
    item: str,
    surfaces: Sequence[SupportSurface],
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None,
    settings: PlacementSettings,
) -> Iterator[Placement]:
    solids = _solids(scene, item, q)
    for surface in surfaces:
        postures = list(_postures(scene, item, surface, solids, q, manipulator, settings))
        origin = _origin(scene, item, surface, q, manipulator, settings)
        for where, found in _ranked(postures, surface, origin, rng, settings):
            for posture, point in found:
                pose = Pose([*point, posture.height]) @ posture.rotation
                name = f"{where} at ({point[0]:.3f}, {point[1]:.3f}), {posture.name}"
                yield Placement(surface.support, surface.support_from_surface @ pose, name)


def _solids(scene: SceneGraph, item: str, q: ArrayLike | None) -> tuple[AttachedShape, ...]:
    solids = solids_under(scene, item, q=q)
    if not solids_of(scene, item):
        raise SceneError(f"object '{item}' has no collision shape, so it cannot rest on anything", frame=item)
    if any(attached.shape.kind == "plane" for attached in solids):
        raise SceneError(f"object '{item}' has a plane, which cannot be put anywhere", frame=item)
    return solids


def _postures(
    scene: SceneGraph,
    item: str,
    surface: SupportSurface,
    solids: tuple[AttachedShape, ...],
    q: ArrayLike | None,
    manipulator: Manipulator | None,
    settings: PlacementSettings,
) -> Iterator[_Posture]:
    """Yield the object in its ways of resting, in quarter turns along the area's sides, the smallest turn first."""
    faces = stable_faces(scene, item, q=q)
    upright = [face for face in faces if face.is_upright]
    if upright and not settings.any_face:
        faces = tuple(upright)
    now = _rotation_now(scene, item, surface, q)
    known: dict[tuple[str, bytes | float], tuple[ConvexPolygon | None, tuple[ConvexPolygon, ...]]] = {}
    for face in sorted(faces, key=lambda face: not face.is_upright):
        height = face.height + settings.clearance
        top = height + reach(solids, face.rotation.inverse().rotate([0.0, 0.0, 1.0]))
        obstacles = list(_obstacles(scene, item, surface, top, q, manipulator, settings.spacing))
        for angle in _turns(surface.polygon, outline(solids, face.rotation), now @ face.rotation.inverse()):
            rotation = Pose([0.0, 0.0, 0.0], [0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)]) @ face.rotation
            footprint = outline(solids, rotation)
            fit = fitting(surface.polygon, footprint)
            key = (face.name, np.round(footprint.vertices, 9).tobytes() if fit is not None else angle)
            if key not in known:  # a square looks the same after a quarter turn
                fit = fit or _balanced(surface, face, angle, settings)
                near = obstacles if fit is not None else ()
                known[key] = fit, tuple(blocking(near_by, footprint, spacing=settings.spacing) for near_by in near)
            fit, blocks = known[key]
            if fit is not None:
                name = f"{face.name}, turned by {math.degrees(angle):.0f} degrees"
                yield _Posture(rotation, height, name, fit, blocks)


def _turns(area: ConvexPolygon, footprint: ConvexPolygon, wanted: Pose) -> list[float]:
    """Return quarter turns that lay an outline along the sides of an area, the nearest to a rotation first."""
    aligned = _side_angle(area) - _side_angle(footprint)
    now = math.atan2(wanted.rotation[1, 0] - wanted.rotation[0, 1], wanted.rotation[0, 0] + wanted.rotation[1, 1])
    quarters = (math.remainder(aligned + k * math.pi / 2, math.tau) for k in range(4))
    return sorted(quarters, key=lambda turn: (round(abs(math.remainder(turn - now, math.tau)), 6), -turn))


def _balanced(
    surface: SupportSurface, face: StableFace, angle: float, settings: PlacementSettings
) -> ConvexPolygon | None:
    """Return the position at which an object too large for a surface lies with its weight over the middle, if it stays.

    None in a region, which things must not overhang.
    """
    if settings.is_packed or face.rolls:
        return None
    middle = surface.polygon.centroid
    turn = Pose([0.0, 0.0, 0.0], [0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)])
    position = middle - turn.apply([*face.centre, 0.0])[:2]
    contact = surface.polygon.clipped(face.outline.turned(angle).moved(position))
    if contact is None or contact.depth(middle)[0] < LEAST_MARGIN:
        return None
    return ConvexPolygon.around(position)


def _side_angle(polygon: ConvexPolygon) -> float:
    """Return the direction, modulo a quarter turn, of the sides of the smallest rectangle around a polygon."""
    sides = np.roll(polygon.vertices, -1, axis=0) - polygon.vertices
    angles = np.round(np.arctan2(sides[:, 1], sides[:, 0]) % (math.pi / 2), 9) % round(math.pi / 2, 9)
    distinct: list[float] = sorted(set(angles.tolist()))
    return min(distinct, key=lambda angle: round(_rectangle_area(polygon.turned(-angle)), 12))


def _rectangle_area(polygon: ConvexPolygon) -> float:
    width, height = (polygon.vertices.max(axis=0) - polygon.vertices.min(axis=0)).tolist()
    return float(width) * float(height)


def _rotation_now(scene: SceneGraph, item: str, surface: SupportSurface, q: ArrayLike | None) -> Pose:
    """Return surface_from_item without translation, as the object is now."""
    if scene.root(item) != scene.root(surface.support):
        return Pose()
    now = surface.support_from_surface.inverse() @ scene.pose(item, surface.support, q=q)
    return Pose([0.0, 0.0, 0.0], now.quat_xyzw)


def _obstacles(
    scene: SceneGraph,
    item: str,
    surface: SupportSurface,
    height: float,
    q: ArrayLike | None,
    manipulator: Manipulator | None,
    spacing: float,
) -> Iterator[ConvexPolygon]:
    """Yield the outlines of what stands on or reaches over a surface, below ``height``, in the surface's x and y."""
    ignored = {surface.support, *scene.subtree(item)}
    if manipulator is not None:
        ignored |= moved_frames(scene, manipulator)
    root = scene.root(surface.support)
    balls = (_ball(attached) for attached in solids_under(scene, item, q=q))
    around = spacing + max(float(np.linalg.norm(middle)) + radius for middle, radius in balls)
    for frame in scene.frame_names:
        solids = () if frame in ignored else solids_of(scene, frame)
        if not solids or scene.root(frame) != root:
            continue
        surface_from_frame = surface.support_from_surface.inverse() @ scene.pose(frame, surface.support, q=q)
        up = surface_from_frame.inverse().rotate([0.0, 0.0, 1.0])
        lift = float(surface_from_frame.translation[2])
        for attached in solids:
            if attached.shape.kind in _WITHOUT_OUTLINE or attached.level == "exact":
                continue
            if not _is_near(attached, surface_from_frame, surface.polygon, around):
                continue
            low, high = lift - reach((attached,), -up), lift + reach((attached,), up)
            if high > _ABOVE and low < height:
                yield outline((attached,), surface_from_frame)


def _is_near(attached: AttachedShape, surface_from_frame: Pose, polygon: ConvexPolygon, distance: float) -> bool:
    """Tell whether a ball around a shape, seen from above, comes so near to the rectangle around a polygon."""
    middle, radius = _ball(attached)
    x, y, _ = surface_from_frame.apply(middle).tolist()
    (first_x, first_y), (last_x, last_y) = polygon.vertices.min(axis=0), polygon.vertices.max(axis=0)
    far = distance + radius
    return bool(first_x - far <= x <= last_x + far and first_y - far <= y <= last_y + far)


def _ball(attached: AttachedShape) -> tuple[NDArray[np.float64], float]:
    """Return middle (3,) and radius of a ball around a shape, in its frame."""
    lower, upper = attached.shape.bounds
    return np.asarray(attached.pose.apply((lower + upper) / 2)), float(np.linalg.norm(upper - lower)) / 2


def _origin(
    scene: SceneGraph,
    item: str,
    surface: SupportSurface,
    q: ArrayLike | None,
    manipulator: Manipulator | None,
    settings: PlacementSettings,
) -> NDArray[np.float64]:
    """Return the point (2,) that order is about: the arm's base for packing, else where the object is."""
    frame = item if not settings.is_packed else manipulator.base if manipulator is not None else surface.support
    if scene.root(frame) != scene.root(surface.support):
        frame = surface.support
    surface_from_frame = surface.support_from_surface.inverse() @ scene.pose(frame, surface.support, q=q)
    return np.asarray(surface_from_frame.translation[:2])


def _ranked(
    postures: Sequence[_Posture],
    surface: SupportSurface,
    origin: NDArray[np.float64],
    rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[tuple[str, Iterator[tuple[_Posture, NDArray[np.float64]]]]]:
    """Yield kinds of places in words with the places, best first; of each, far ones first when packing."""
    sign = -1.0 if settings.is_packed else 1.0
    kinds = ("in a corner", "beside a neighbour", "between neighbours", "on the grid")
    for kind in kinds if settings.is_packed else reversed(kinds):
        points: dict[int, NDArray[np.float64]] = {}  # by the polygon of positions, which alike postures share
        for posture in postures:
            if id(posture.fit) not in points:
                points[id(posture.fit)] = _sorted(_points(kind, posture, settings), origin, sign)
        yield kind, _merged([(posture, points[id(posture.fit)]) for posture in postures])
    yield "anywhere", _random(postures, surface, rng, settings)


def _points(kind: str, posture: _Posture, settings: PlacementSettings) -> NDArray[np.float64]:
    """Return the positions (n, 2) of a kind at which an object fits."""
    fit, blocks = posture.fit, posture.blocks
    found: list[NDArray[np.float64]]
    if kind == "in a corner":
        found = [fit.vertices]
    elif kind == "beside a neighbour":
        found = [crossings(fit, block) for block in blocks]
    elif kind == "between neighbours":
        pairs = ((first, second) for i, first in enumerate(blocks) for second in blocks[:i])
        found = [block.vertices for block in blocks] + [crossings(first, second) for first, second in pairs]
    else:
        low, high = fit.vertices.min(axis=0), fit.vertices.max(axis=0)
        step = max(settings.grid, float(np.max(high - low)) / _GRID_POINTS)
        counts = np.floor((high - low) / step + _INSIDE)
        axes = [(a + b) / 2 + step * (np.arange(n + 1) - n / 2) for a, b, n in zip(low, high, counts, strict=True)]
        found = [np.array(np.meshgrid(*axes)).reshape(2, -1).T]
    points = np.concatenate([np.zeros((0, 2)), *found])
    return posture.free(np.unique(np.round(points, 9), axis=0))


def _sorted(points: NDArray[np.float64], origin: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
    """Return positions by their distance to a point, the nearest first when ``sign`` is 1; ties by x, then y."""
    distances = sign * np.round(np.linalg.norm(points - origin, axis=1), 6)
    return points[np.lexsort((points[:, 1], points[:, 0], distances))]


def _merged(
    found: Sequence[tuple[_Posture, NDArray[np.float64]]],
) -> Iterator[tuple[_Posture, NDArray[np.float64]]]:
    """Yield the places of all postures, those first that come early in their posture's list and of an early posture."""
    last = max((rank + len(points) for rank, (_, points) in enumerate(found)), default=0)
    for total in range(last):
        for rank, (posture, points) in enumerate(found):
            if 0 <= total - rank < len(points):
                yield posture, points[total - rank]


def _random(
    postures: Sequence[_Posture], surface: SupportSurface, rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[_Posture, NDArray[np.float64]]]:
    """Yield random places at which the object fits."""
    del surface
    if not postures:
        return
    for _ in range(settings.samples):
        posture = postures[int(rng.integers(len(postures)))]
        low, high = posture.fit.vertices.min(axis=0), posture.fit.vertices.max(axis=0)
        for point in posture.free(rng.uniform(low, high)[None]):
            yield posture, point
