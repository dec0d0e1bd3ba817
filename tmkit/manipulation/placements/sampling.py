"""Placements: where an object may be put down (docs/howto/samplers.md).

Candidates come lazily, in one of three orders. Packed order is for regions that are to hold many
things. It has the corners, then places that touch the edge and a neighbour, then those between two
neighbours, then a grid, then random ones. Of each kind, the farthest from the arm's base comes
first. Near order is for large surfaces. It has a grid, nearest to the object first, and the corners
last. Scattered order has all of these kinds in turn, in random order.

A :class:`Posture` is an object on one of its stable faces, in one of the quarter turns that lay it
along the sides of an area. The positions at which it fits are polygons: where the outline lies in
the area, less where it would come too near to something that stands at its height. That is exact
for upright prisms; of an overhanging neighbour it takes the outline for the whole, and so misses
places under it, but gives none that collide. Postures that look alike from above share these
polygons.

Invariants: each placement's outline lies in the area. A frame none of whose surfaces has room is
the exception. On it the centre of mass of an object is over the middle of a surface, or of a rim of
several, if the object stays there. Equal arguments and generators in equal states give equal
sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import atan2, cos, norm, norms, sin
from tmkit.errors import ConfigurationError, SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.placements.stable_faces import LEAST_MARGIN, StableFace, stable_faces
from tmkit.motion.regions.polygons import REMEMBERED, ConvexPolygon, blocking, crossings, fitting
from tmkit.motion.regions.solids import (
    collision_solids,
    outline,
    outlines,
    reach,
    solids_of,
    solids_under,
)
from tmkit.motion.regions.surfaces import SupportSurface, region_surface, support_surfaces
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose

_ABOVE = 0.001  # metres above a surface up to which a shape is part of it and no obstacle
_LEVEL = 1e-4  # metres and radians by which the tops of a rim may differ
INSIDE_TOLERANCE = 1e-9
"""Distance by which points may be beyond an edge, for rounding [m]."""

_MOST_PARTS = 8  # shapes of an object that count each by itself
_FULL = 0.95  # of the area of a hull that shapes fill where the hull stands for them
# their outlines say nothing of where they are
_WITHOUT_OUTLINE = ("height_field", "point_cloud", "plane")
_GRID_POINTS = 24  # along the longer side of an area, at most


@dataclass(frozen=True)
class PlacementSettings:
    """How placements are sampled.

    Attributes:
        spacing: metres between objects side by side; the planner keeps 1 mm.
        clearance: metres above the support at which an object is let go.
        grid: metres between neighbouring points of the grid, at least.
        samples: random placements at the end.
        is_packed: corners and edges first; else near to where the object is.
        is_random: all of these in random order instead.
        any_face: whether to put it down on any stable face; else upright, if its upright face is
            stable.

    Raises:
        ConfigurationError: a number that is negative or not finite, or a grid of no width.
    """

    spacing: float = 0.002
    clearance: float = 1e-4
    grid: float = 0.02
    samples: int = 32
    is_packed: bool = True
    is_random: bool = False
    any_face: bool = False

    def __post_init__(self) -> None:
        for name in ("spacing", "clearance", "grid", "samples"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0) or (name == "grid" and value == 0.0):
                raise ConfigurationError(
                    f"{name} of placements must be a finite number of at least 0, not {value}"
                )


@dataclass(frozen=True, eq=False)
class Posture:
    """An object turned as it could stand on a surface.

    Attributes:
        rotation: surface_from_object without translation.
        height: metres of the object's origin above the surface.
        fit: positions at which the outline lies in the area.
        blocks: positions taken by neighbours.
    """

    rotation: Pose
    height: float
    name: str
    fit: ConvexPolygon
    blocks: tuple[ConvexPolygon, ...]

    def at(self, point: ArrayLike) -> Pose:
        """Return surface_from_object at a position (2,)."""
        x, y = np.asarray(point).tolist()
        return Pose([x, y, self.height]) @ self.rotation

    def free(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions (k, 2) of given ones (n, 2) at which the object fits, in their order."""
        kept = self.fit.depth(points) >= -INSIDE_TOLERANCE
        for block in self.blocks:
            kept &= block.depth(points) <= INSIDE_TOLERANCE
        return points[kept]


@dataclass(frozen=True)
class Placement:
    """A place for an object.

    Attributes:
        support: frame that it settles on, its new parent.
        support_from_object: pose of the object at rest.
        name: the place in words.
    """

    support: str
    support_from_object: Pose
    name: str


def placements_in_region(
    scene: SceneGraph,
    object: str,
    region: str | SupportSurface,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield places for an object in a region, packing it beside what is there.

    Args:
        scene: the scene; the object's parent does not matter.
        object: frame of the object.
        region: frame with a flat box, or part of a surface; see :func:`region_surface`.
        q: (n_joints,) configuration; None where no joint is between the frames asked about.
        rng: for the random placements at the end.
        manipulator: the arm, whose links are no obstacles, and which fills a region from its far
            side.
        settings: how to sample.

    Raises:
        SceneError: no such region, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    yield from _placements(
        scene, object, (surface,), q, rng, manipulator, settings or PlacementSettings()
    )


def placements_on_surface(
    scene: SceneGraph,
    object: str,
    support: str,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield places for an object on the level tops of a frame, near to where it is first; see the function above.

    Args:
        scene: the scene.
        object: the object.
        support: frame with a level surface.
        q: (n_joints,) configuration; needed if the scene has joints.
        rng: generator of random positions.
        manipulator: the arm, whose parts do not block positions.
        settings: stability, spacing and order; defaults if omitted.

    Raises:
        SceneError: the support has no level top, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surfaces = support_surfaces(scene, support, q=q)
    if not surfaces:
        raise SceneError(f"'{support}' has no level top that anything could rest on", frame=support)
    yield from _placements(
        scene, object, surfaces, q, rng, manipulator, settings or PlacementSettings(is_packed=False)
    )


def _placements(
    scene: SceneGraph,
    object: str,
    surfaces: Sequence[SupportSurface],
    q: ArrayLike | None,
    rng: np.random.Generator,
    manipulator: Manipulator | None,
    settings: PlacementSettings,
) -> Iterator[Placement]:
    for may_overhang in (False, True):
        rows = []
        for surface, parts in (
            ((surface, ()) for surface in surfaces) if not may_overhang else _rims(surfaces)
        ):
            postures = list(
                postures_on(scene, object, surface, q, manipulator, settings, parts=parts)
            )
            frame = (
                object
                if not settings.is_packed
                else surface.support
                if manipulator is None
                else manipulator.base
            )
            if scene.root(frame) != scene.root(surface.support):
                frame = surface.support
            support_from_frame = scene.pose(frame, relative_to=surface.support, q=q)
            origin = np.asarray(
                (surface.support_from_surface.inverse() @ support_from_frame).translation[:2]
            )
            if postures:
                rows.append(_on_one(surface, postures, origin, rng, settings))
        has_room = False
        while rows:  # the boards of a shelf take turns
            found = [(row, next(row, None)) for row in rows]
            yield from (placement for _, placement in found if placement is not None)
            rows = [row for row, placement in found if placement is not None]
            has_room |= bool(rows)
        if has_room or settings.is_packed:
            return


def _rims(
    surfaces: Sequence[SupportSurface],
) -> Iterator[tuple[SupportSurface, tuple[ConvexPolygon, ...]]]:
    """Yield what the highest surfaces of one height lie around, as a rim, with its parts; then each surface, as one."""
    axes = surfaces[0].support_from_surface
    tops = [axes.inverse() @ surface.support_from_surface for surface in surfaces]
    level = [
        i
        for i, top in enumerate(tops)
        if np.max(np.abs([*top.translation[2:], *top.rotation[2, :2]])) <= _LEVEL
    ]
    flat = [
        top.apply(
            np.column_stack([surface.polygon.vertices, np.zeros(len(surface.polygon.vertices))])
        )[:, :2]
        for top, surface in zip(tops, surfaces, strict=True)
    ]
    if len(level) > 1:
        around = ConvexPolygon.around(np.concatenate([flat[i] for i in level]))
        parts = tuple(ConvexPolygon.around(flat[i]) for i in level)
        yield SupportSurface(surfaces[0].support, axes, around), parts
    yield from ((surface, (surface.polygon,)) for surface in surfaces)


def _on_one(
    surface: SupportSurface,
    postures: Sequence[Posture],
    origin: NDArray[np.float64],
    rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[Placement]:
    """Yield the placements on one surface."""
    for where, found in _ranked_places(postures, origin, rng, settings):
        for posture, point in found:
            name = f"{where} at ({point[0]:.3f}, {point[1]:.3f}), {posture.name}"
            yield Placement(surface.support, surface.support_from_surface @ posture.at(point), name)


def _ranked_places(
    postures: Sequence[Posture],
    origin: NDArray[np.float64],
    rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[tuple[str, Iterator[tuple[Posture, NDArray[np.float64]]]]]:
    """Yield kinds of positions with their positions, best kind first, by their distance from ``origin`` (2,)."""
    sign = -1.0 if settings.is_packed else 1.0
    kinds = ("in a corner", "beside a neighbour", "between neighbours", "on the grid")
    if settings.is_random:
        yield (
            "anywhere",
            _scattered([(posture, kind) for posture in postures for kind in kinds], rng, settings),
        )
        return
    for kind in kinds if settings.is_packed else reversed(kinds):
        # by the polygons, which alike postures share
        points: dict[tuple[int, int], NDArray[np.float64]] = {}
        keys = [(id(posture.fit), id(posture.blocks)) for posture in postures]
        for posture, key in zip(postures, keys, strict=True):
            if key not in points:
                points[key] = _sorted(_points(kind, posture, settings), origin, sign)
        yield (
            kind,
            _merged([(posture, points[key]) for posture, key in zip(postures, keys, strict=True)]),
        )
    yield "anywhere", _random(postures, rng, settings)


def _points(kind: str, posture: Posture, settings: PlacementSettings) -> NDArray[np.float64]:
    """Return the positions (n, 2) of a kind at which an object fits."""
    fit, blocks = posture.fit, posture.blocks
    found: list[NDArray[np.float64]]
    if kind == "in a corner":
        found = [fit.vertices]
    elif kind == "beside a neighbour":
        found = [crossings(fit, block) for block in blocks]
    elif kind == "between neighbours":
        pairs = ((first, second) for i, first in enumerate(blocks) for second in blocks[:i])
        found = [block.vertices for block in blocks] + [
            crossings(first, second) for first, second in pairs
        ]
    else:
        low, high = fit.vertices.min(axis=0), fit.vertices.max(axis=0)
        step = max(settings.grid, float(np.max(high - low)) / _GRID_POINTS)
        counts = np.floor((high - low) / step + INSIDE_TOLERANCE)
        axes = [
            (a + b) / 2 + step * (np.arange(n + 1) - n / 2)
            for a, b, n in zip(low, high, counts, strict=True)
        ]
        return posture.free(
            np.round(np.array(np.meshgrid(*axes, indexing="ij")).reshape(2, -1).T, 9)
        )
    points = np.concatenate([np.zeros((0, 2)), *found])
    return posture.free(np.unique(np.round(points, 9), axis=0))


def _sorted(
    points: NDArray[np.float64], origin: NDArray[np.float64], sign: float
) -> NDArray[np.float64]:
    """Return positions by their distance to a point, the nearest first when ``sign`` is 1; ties by x, then y."""
    distances = sign * np.round(norms(points - origin), 6)
    return points[np.lexsort((points[:, 1], points[:, 0], distances))]


def _merged(
    found: Sequence[tuple[Posture, NDArray[np.float64]]],
) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield the places of all postures, those first that come early in their posture's list and of an early posture."""
    last = max((rank + len(points) for rank, (_, points) in enumerate(found)), default=0)
    for total in range(last):
        for rank, (posture, points) in enumerate(found):
            if 0 <= total - rank < len(points):
                yield posture, points[total - rank]


def _scattered(
    found: Sequence[tuple[Posture, str]], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield all places in random order, those of each kind and posture in turn."""
    rows = [(posture, _points(kind, posture, settings)) for posture, kind in found]
    rows = [(posture, rng.permutation(points)) for posture, points in rows if len(points)]
    rows = [rows[k] for k in rng.permutation(len(rows)).tolist()]
    for number in range(max((len(points) for _, points in rows), default=0)):
        yield from ((posture, points[number]) for posture, points in rows if number < len(points))


def _random(
    postures: Sequence[Posture], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield random places at which the object fits."""
    if not postures:
        return
    for _ in range(settings.samples):
        posture = postures[int(rng.integers(len(postures)))]
        low, high = posture.fit.vertices.min(axis=0), posture.fit.vertices.max(axis=0)
        for point in posture.free(rng.uniform(low, high)[None]):
            yield posture, point


# --- postures
# ---------------------------------------------------------------------------------------------------------


def postures_on(
    scene: SceneGraph,
    object: str,
    surface: SupportSurface,
    q: ArrayLike | None,
    manipulator: Manipulator | None,
    settings: PlacementSettings,
    *,
    parts: Sequence[ConvexPolygon],
) -> Iterator[Posture]:
    """Yield the stable orientations of an object on a surface, by quarter turns, the smallest rotation first.

    Where the surface has ``parts``, the object lies on these, over the middle of the surface.
    """
    solids, faces = collision_solids(scene, object, q), stable_faces(scene, object, q=q)
    upright = [face for face in faces if face.is_upright]
    if upright and not settings.any_face:
        faces = tuple(upright)
    now = _rotation_now(scene, object, surface, q)
    known: dict[
        tuple[str, bytes | float], tuple[ConvexPolygon | None, tuple[ConvexPolygon, ...]]
    ] = {}
    for face in sorted(faces, key=lambda face: not face.is_upright):
        height = face.height + settings.clearance
        top = height + reach(solids, face.rotation.inverse().rotate([0.0, 0.0, 1.0]))
        obstacles = list(_obstacles(scene, object, surface, top, q, manipulator, settings.spacing))
        for angle in _turns(
            surface.polygon, outline(solids, face.rotation), now @ face.rotation.inverse()
        ):
            rotation = (
                Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(angle / 2), cos(angle / 2)]) @ face.rotation
            )
            footprint = outline(solids, rotation)
            fit = None if parts else fitting(surface.polygon, footprint)
            sides = _parts(solids, rotation, footprint)
            corners = np.round(np.concatenate([side.vertices for side in sides]), 9)
            key = (face.name, corners.tobytes() if fit is not None else angle)
            if key not in known:  # a square looks the same after a quarter turn
                fit = _balanced(surface, parts, face, angle) if parts else fit
                near = obstacles if fit is not None else ()
                known[key] = (
                    fit,
                    tuple(
                        blocking(near_by, side, spacing=settings.spacing)
                        for near_by in near
                        for side in sides
                    ),
                )
            fit, blocks = known[key]
            if fit is not None:
                name = f"{face.name}, turned by {math.degrees(angle):.0f} degrees"
                yield Posture(rotation, height, name, fit, blocks)


def _parts(
    solids: tuple[AttachedShape, ...], rotation: Pose, footprint: ConvexPolygon
) -> tuple[ConvexPolygon, ...]:
    """Return the outlines of an object's shapes if the hull around them is much larger, as of an L; else the hull."""
    if not 1 < len(solids) <= _MOST_PARTS:
        return (footprint,)
    parts = tuple(outlines(solids, rotation))
    return parts if sum(part.area for part in parts) < _FULL * footprint.area else (footprint,)


def _turns(area: ConvexPolygon, footprint: ConvexPolygon, wanted: Pose) -> list[float]:
    """Return quarter turns that lay an outline along the sides of an area, the nearest to a rotation first."""
    aligned = _side_angle(area) - _side_angle(footprint)
    now = atan2(
        wanted.rotation[1, 0] - wanted.rotation[0, 1], wanted.rotation[0, 0] + wanted.rotation[1, 1]
    )
    quarters = (math.remainder(aligned + k * math.pi / 2, math.tau) for k in range(4))
    return sorted(
        quarters, key=lambda turn: (round(abs(math.remainder(turn - now, math.tau)), 6), -turn)
    )


def _balanced(
    surface: SupportSurface, parts: Sequence[ConvexPolygon], face: StableFace, angle: float
) -> ConvexPolygon | None:
    """Return where an object lies on parts of a surface with its weight over the middle; None if it would fall."""
    if face.is_rolling:
        return None
    middle = surface.polygon.centroid
    turn = Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(angle / 2), cos(angle / 2)])
    position = middle - turn.apply([*face.centre, 0.0])[:2]
    under = face.outline.turned(angle).moved(position)
    contacts = [contact.vertices for part in parts if (contact := part.clipped(under)) is not None]
    if (
        not contacts
        or ConvexPolygon.around(np.concatenate(contacts)).depth(middle)[0] < LEAST_MARGIN
    ):
        return None
    return ConvexPolygon.around(position)


def _side_angle(polygon: ConvexPolygon) -> float:
    """Return the direction, modulo a quarter turn, of the sides of the smallest rectangle around a polygon."""
    sides = np.roll(polygon.vertices, -1, axis=0) - polygon.vertices
    angles = np.round(
        np.array([atan2(y, x) for x, y in sides.tolist()]) % (math.pi / 2), 9
    ) % round(math.pi / 2, 9)

    def area_around(angle: float) -> float:
        vertices = polygon.turned(-angle).vertices
        width, height = (vertices.max(axis=0) - vertices.min(axis=0)).tolist()
        return round(float(width) * float(height), 12)

    return float(min(sorted(set(angles.tolist())), key=area_around))


def _rotation_now(
    scene: SceneGraph, object: str, surface: SupportSurface, q: ArrayLike | None
) -> Pose:
    """Return surface_from_object without translation, as the object is now."""
    if scene.root(object) != scene.root(surface.support):
        return Pose()
    now = surface.support_from_surface.inverse() @ scene.pose(
        object, relative_to=surface.support, q=q
    )
    return Pose([0.0, 0.0, 0.0], now.quat_xyzw)


def _obstacles(
    scene: SceneGraph,
    object: str,
    surface: SupportSurface,
    height: float,
    q: ArrayLike | None,
    manipulator: Manipulator | None,
    spacing: float,
) -> Iterator[ConvexPolygon]:
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
            # what hangs just above comes as near as what stands beside
            if high > _ABOVE and low < height + spacing:
                yield outline((attached,), surface_from_frame)


def _is_near(
    attached: AttachedShape, surface_from_frame: Pose, polygon: ConvexPolygon, distance: float
) -> bool:
    """Return whether a ball around a shape, seen from above, comes so near to the rectangle around a polygon."""
    middle, radius = _ball(attached)
    x, y, _ = surface_from_frame.apply(middle).tolist()
    (first_x, first_y), (last_x, last_y) = polygon.bounds
    far = distance + radius
    return bool(first_x - far <= x <= last_x + far and first_y - far <= y <= last_y + far)


@lru_cache(maxsize=REMEMBERED)
def _ball(attached: AttachedShape) -> tuple[NDArray[np.float64], float]:
    """Return middle (3,) and radius of a ball around a shape, in its frame."""
    lower, upper = attached.shape.bounds
    return np.asarray(attached.pose.apply((lower + upper) / 2)), norm(upper - lower) / 2
