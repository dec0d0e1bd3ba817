"""Placements of an object on surfaces and in regions (docs/howto/samplers.md).

Candidates are computed lazily, in one of three orders. Packed order is for regions with many
objects: corners, positions at the edge and a neighbour, positions between two neighbours, a grid,
random positions. In each group, the farthest from the arm's base comes first. Near order is for
large surfaces: a grid, nearest to the object first, and the corners last. Scattered order takes
these groups in turn, in random order.

A :class:`Posture` is an object on one of its stable faces, at one of four rotations that align it
with the sides of an area. The feasible positions are a polygon without others: the positions with
the outline in the area, without those too near to an obstacle at the object's height. This is exact
for upright prisms. An overhanging obstacle is replaced by the prism of its outline, so positions
under it are missed, but no placement collides. Postures with equal outlines share these polygons.

Invariants: each placement's outline lies in the area. The exception is a frame without a large
enough surface. There the centre of mass of an object is over the centre of a surface, or of a rim
of several, if the object is stable. Equal arguments and generators in equal states return equal
sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.elementary import atan2, cos, norm, norms, sin
from tmkit.errors import ConfigurationError, SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.placements.stable_faces import LEAST_MARGIN, StableFace, stable_faces
from tmkit.motion.regions.polygons import (
    CACHE_SIZE,
    ConvexPolygon,
    collision_positions,
    containment_positions,
    crossings,
)
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
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose

_SURFACE_HEIGHT = 0.001
"""Height above a surface up to which a shape is not an obstacle, as part of the surface [m]."""

_RIM_TOLERANCE = 1e-4
"""Largest difference between the tops of a rim, in height [m] and slope."""

INSIDE_TOLERANCE = 1e-9
"""Distance by which points may be beyond an edge, for rounding [m]."""

_MAX_PARTS = 8
"""Maximum number of shapes of an object with separate outlines."""

_MIN_FILLED_FRACTION = 0.95
"""Fraction of a hull's area filled by shapes, from which the hull replaces them."""

_WITHOUT_OUTLINE = ("height_field", "point_cloud", "plane")
"""Shapes whose outlines are much larger than the shapes themselves."""

_MAX_GRID_POINTS = 24
"""Maximum number of grid points along the longer side of an area."""

_CORNERS = "in a corner"
_BESIDE_NEIGHBOUR = "beside a neighbour"
_BETWEEN_NEIGHBOURS = "between neighbours"
_GRID = "on the grid"
_GROUPS = (_CORNERS, _BESIDE_NEIGHBOUR, _BETWEEN_NEIGHBOURS, _GRID)
"""Groups of positions in packed order; the names are part of a placement's name."""

_Candidates = Iterator[tuple["Posture", NDArray[np.float64]]]
"""Postures with positions (2,) [m]."""


@dataclass(frozen=True)
class PlacementSettings:
    """Settings of the placement sampler.

    Attributes:
        spacing: distance between objects side by side [m]. The planner needs 1 mm.
        clearance: height above the support at which an object is released [m].
        grid: smallest distance between neighbouring points of the grid [m].
        samples: number of random placements at the end.
        is_packed: whether corners and edges come first, instead of positions near the object.
        is_random: whether the order is random.
        any_face: whether to use all stable faces. By default, an object with a stable upright face
            is placed upright.

    Raises:
        ConfigurationError: if a number is negative or not finite, or the grid is 0.
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
    """A stable orientation of an object on a surface, with its feasible positions.

    Attributes:
        rotation: surface_from_object without translation.
        height: height of the object's origin above the surface [m].
        name: description of the posture.
        fit: positions at which the outline lies in the area.
        blocks: positions at which the object is too near to an obstacle.
    """

    rotation: Pose
    height: float
    name: str
    fit: ConvexPolygon
    blocks: tuple[ConvexPolygon, ...]

    def at(self, point: ArrayLike) -> Pose:
        """Return surface_from_object at a position (2,) on the surface [m]."""
        x, y = np.asarray(point).tolist()
        return Pose([x, y, self.height]) @ self.rotation

    def feasible_points(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return those positions (k, 2) of ``points`` (n, 2) at which the object fits [m]."""
        is_feasible = self.fit.depth(points) >= -INSIDE_TOLERANCE
        for block in self.blocks:
            is_feasible &= block.depth(points) <= INSIDE_TOLERANCE
        return points[is_feasible]


@dataclass(frozen=True)
class Placement:
    """Pose of an object at rest on a support.

    Attributes:
        support: frame of the support, the object's new parent.
        support_from_object: pose of the object at rest.
        name: description of the placement.
    """

    support: str
    support_from_object: Pose
    name: str

    def __post_init__(self) -> None:
        check_argument(self.support, str, "support", function="Placement")
        check_argument(self.support_from_object, Pose, "support_from_object", function="Placement")


@with_keyword_hints
def placements_in_region(
    scene: SceneGraph,
    object: str,
    region: str | SupportSurface,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    robot: Robot | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield placements of an object in a region, by default packed beside other objects.

    Args:
        scene: scene with object and region. The object may have any parent.
        object: frame of the object.
        region: frame with a flat box, or part of a surface; see :func:`region_surface`.
        q: (n_joints,) configuration. May be None if no joint is between these frames.
        rng: random generator of the placements at the end.
        robot: name or description of the arm whose links are not obstacles. The region is filled
            from the side that is farthest from its base.
        settings: spacing and order. Defaults to :class:`PlacementSettings`.

    Raises:
        SceneError: if the frame is not a region, or the object has no stable face.
        UnknownNameError: if a frame is unknown.
    """
    _check_placing(scene, rng, settings, function="placements_in_region")
    if robot is not None:
        robot = resolve_robot(robot, scene, function="placements_in_region")
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    yield from _placements(
        scene, object, (surface,), q, rng, robot, settings or PlacementSettings()
    )


@with_keyword_hints
def placements_on_surface(
    scene: SceneGraph,
    object: str,
    support: str,
    *,
    q: ArrayLike | None,
    rng: np.random.Generator,
    robot: Robot | None = None,
    settings: PlacementSettings | None = None,
) -> Iterator[Placement]:
    """Yield placements of an object on the level tops of a frame, nearest to the object first.

    Args:
        scene: scene with object and support. The object may have any parent.
        object: frame of the object.
        support: frame with a level surface.
        q: (n_joints,) configuration. May be None if no joint is between these frames.
        rng: random generator of the placements at the end.
        robot: name or description of the arm whose links are not obstacles.
        settings: spacing and order. Defaults to near order.

    Raises:
        SceneError: if the support has no level top, or the object has no stable face.
        UnknownNameError: if a frame is unknown.
    """
    _check_placing(scene, rng, settings, function="placements_on_surface")
    if robot is not None:
        robot = resolve_robot(robot, scene, function="placements_on_surface")
    surfaces = support_surfaces(scene, support, q=q)
    if not surfaces:
        raise SceneError(f"'{support}' has no level top to place objects on", frame=support)
    yield from _placements(
        scene, object, surfaces, q, rng, robot, settings or PlacementSettings(is_packed=False)
    )


def placements_at_centre(
    scene: SceneGraph, object: str, region: str, *, q: ArrayLike | None
) -> Iterator[Placement]:
    """Yield placements with the centre of mass over the middle of a surface or region.

    The object is stable there, and may reach beyond the area. Other objects are ignored.

    Args:
        scene: scene with object and region. The object may have any parent.
        object: frame of the object.
        region: frame with a level area; see :func:`region_surface`.
        q: (n_joints,) configuration. May be None if no joint is between these frames.

    Raises:
        SceneError: if the frame has no level area, or the object no stable face.
    """
    surface = region_surface(scene, region, q=q)
    settings, parts = PlacementSettings(), (surface.polygon,)
    for posture in postures_on(scene, object, surface, q, None, settings, parts=parts):
        pose = surface.support_from_surface @ posture.at(posture.fit.vertices[0])
        yield Placement(surface.support, pose, f"at the centre of {region}, {posture.name}")


def _check_placing(scene: object, rng: object, settings: object, *, function: str) -> None:
    """Raise an ``ArgumentError`` unless arguments of placement functions have their types."""
    check_argument(scene, SceneGraph, "scene", function=function)
    hint = "write np.random.default_rng(seed)"
    check_argument(rng, np.random.Generator, "rng", function=function, hint=hint)
    check_argument(settings, (PlacementSettings, NoneType), "settings", function=function)


def _placements(
    scene: SceneGraph,
    object: str,
    surfaces: Sequence[SupportSurface],
    q: ArrayLike | None,
    rng: np.random.Generator,
    robot: Manipulator | None,
    settings: PlacementSettings,
) -> Iterator[Placement]:
    """Yield placements on surfaces, or over their centres if no surface is large enough.

    Args:
        scene: scene with object and support.
        object: frame of the object.
        surfaces: surfaces of one support.
        q: (n_joints,) configuration. May be None if no joint is between these frames.
        rng: random generator.
        robot: arm whose links are not obstacles.
        settings: spacing and order.
    """
    for may_overhang in (False, True):
        rows = []
        candidates = _rims(surfaces) if may_overhang else ((surface, ()) for surface in surfaces)
        for surface, parts in candidates:
            postures = list(postures_on(scene, object, surface, q, robot, settings, parts=parts))
            # Order placements by their distance from the object or from the arm's base.
            frame = object
            if settings.is_packed:
                frame = surface.support if robot is None else robot.base
            if scene.root(frame) != scene.root(surface.support):
                frame = surface.support
            support_from_frame = scene.pose(frame, relative_to=surface.support, q=q)
            origin = np.asarray(
                (surface.support_from_surface.inverse() @ support_from_frame).translation[:2]
            )
            if postures:
                rows.append(_surface_placements(surface, postures, origin, rng, settings))
        has_room = False
        # The surfaces, such as the boards of a shelf, take turns.
        while rows:
            next_placements = [(row, next(row, None)) for row in rows]
            yield from (placement for _, placement in next_placements if placement is not None)
            rows = [row for row, placement in next_placements if placement is not None]
            has_room |= bool(rows)
        if has_room or settings.is_packed:
            return


def _rims(
    surfaces: Sequence[SupportSurface],
) -> Iterator[tuple[SupportSurface, tuple[ConvexPolygon, ...]]]:
    """Yield the rim of several surfaces at the largest height, with its parts, and each surface."""
    rim_pose = surfaces[0].support_from_surface
    rim_parts = []
    for surface in surfaces:
        rim_from_surface = rim_pose.inverse() @ surface.support_from_surface
        slope_and_height = [*rim_from_surface.translation[2:], *rim_from_surface.rotation[2, :2]]
        if np.max(np.abs(slope_and_height)) <= _RIM_TOLERANCE:
            vertices = surface.polygon.vertices
            corners = np.column_stack([vertices, np.zeros(len(vertices))])
            rim_parts.append(rim_from_surface.apply(corners)[:, :2])
    if len(rim_parts) > 1:
        rim = ConvexPolygon.around(np.concatenate(rim_parts))
        parts = tuple(ConvexPolygon.around(part) for part in rim_parts)
        yield SupportSurface(surfaces[0].support, rim_pose, rim), parts
    yield from ((surface, (surface.polygon,)) for surface in surfaces)


def _surface_placements(
    surface: SupportSurface,
    postures: Sequence[Posture],
    origin: NDArray[np.float64],
    rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[Placement]:
    """Yield the placements on one surface.

    Args:
        surface: surface of the support.
        postures: postures on the surface.
        origin: (2,) position on the surface by whose distance placements are ordered [m].
        rng: random generator.
        settings: spacing and order.
    """
    for group, candidates in _position_groups(postures, origin, rng, settings):
        for posture, point in candidates:
            name = f"{group} at ({point[0]:.3f}, {point[1]:.3f}), {posture.name}"
            yield Placement(surface.support, surface.support_from_surface @ posture.at(point), name)


def _position_groups(
    postures: Sequence[Posture],
    origin: NDArray[np.float64],
    rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[tuple[str, _Candidates]]:
    """Yield groups of candidates, best group first, each with its name.

    Args:
        postures: postures on the surface.
        origin: (2,) position on the surface by whose distance candidates are ordered [m].
        rng: random generator.
        settings: spacing and order.
    """
    sign = -1.0 if settings.is_packed else 1.0
    if settings.is_random:
        pairs = [(posture, group) for posture in postures for group in _GROUPS]
        yield "anywhere", _shuffle_candidates(pairs, rng, settings)
        return
    for group in _GROUPS if settings.is_packed else reversed(_GROUPS):
        # Postures with equal outlines share polygons, and thus positions.
        points: dict[tuple[int, int], NDArray[np.float64]] = {}
        keys = [(id(posture.fit), id(posture.blocks)) for posture in postures]
        for posture, key in zip(postures, keys, strict=True):
            if key not in points:
                points[key] = _sort_points(_group_points(group, posture, settings), origin, sign)
        rows = [(posture, points[key]) for posture, key in zip(postures, keys, strict=True)]
        yield group, _merge_candidates(rows)
    yield "anywhere", _random_candidates(postures, rng, settings)


def _group_points(group: str, posture: Posture, settings: PlacementSettings) -> NDArray[np.float64]:
    """Return the feasible positions (n, 2) of a group on the surface [m]."""
    fit, blocks = posture.fit, posture.blocks
    if group == _GRID:
        return posture.feasible_points(_grid_points(fit, settings))
    arrays: list[NDArray[np.float64]]
    if group == _CORNERS:
        arrays = [fit.vertices]
    elif group == _BESIDE_NEIGHBOUR:
        arrays = [crossings(fit, block) for block in blocks]
    else:
        pairs = ((first, second) for i, first in enumerate(blocks) for second in blocks[:i])
        arrays = [block.vertices for block in blocks]
        arrays += [crossings(first, second) for first, second in pairs]
    points = np.concatenate([np.zeros((0, 2)), *arrays])
    return posture.feasible_points(np.unique(np.round(points, 9), axis=0))


def _grid_points(fit: ConvexPolygon, settings: PlacementSettings) -> NDArray[np.float64]:
    """Return the points (n, 2) of a grid over the bounding rectangle of a polygon [m]."""
    low, high = fit.vertices.min(axis=0), fit.vertices.max(axis=0)
    step = max(settings.grid, float(np.max(high - low)) / _MAX_GRID_POINTS)
    counts = np.floor((high - low) / step + INSIDE_TOLERANCE)
    axes = [
        (a + b) / 2 + step * (np.arange(n + 1) - n / 2)
        for a, b, n in zip(low, high, counts, strict=True)
    ]
    return np.round(np.array(np.meshgrid(*axes, indexing="ij")).reshape(2, -1).T, 9)


def _sort_points(
    points: NDArray[np.float64], origin: NDArray[np.float64], sign: float
) -> NDArray[np.float64]:
    """Return positions (n, 2) by their distance to a point (2,), ties by x, then y.

    The nearest comes first if ``sign`` is 1, the farthest if it is -1.
    """
    distances = sign * np.round(norms(points - origin), 6)
    return points[np.lexsort((points[:, 1], points[:, 0], distances))]


def _merge_candidates(rows: Sequence[tuple[Posture, NDArray[np.float64]]]) -> _Candidates:
    """Yield the positions (n, 2) of all postures by the sum of both ranks."""
    end = max((rank + len(points) for rank, (_, points) in enumerate(rows)), default=0)
    for total in range(end):
        for rank, (posture, points) in enumerate(rows):
            if 0 <= total - rank < len(points):
                yield posture, points[total - rank]


def _shuffle_candidates(
    pairs: Sequence[tuple[Posture, str]], rng: np.random.Generator, settings: PlacementSettings
) -> _Candidates:
    """Yield the positions of postures and groups in random order, one of each pair in turn."""
    rows = [(posture, _group_points(group, posture, settings)) for posture, group in pairs]
    rows = [(posture, rng.permutation(points)) for posture, points in rows if len(points)]
    rows = [rows[k] for k in rng.permutation(len(rows)).tolist()]
    for number in range(max((len(points) for _, points in rows), default=0)):
        yield from ((posture, points[number]) for posture, points in rows if number < len(points))


def _random_candidates(
    postures: Sequence[Posture], rng: np.random.Generator, settings: PlacementSettings
) -> _Candidates:
    """Yield feasible random positions."""
    if not postures:
        return
    for _ in range(settings.samples):
        posture = postures[int(rng.integers(len(postures)))]
        low, high = posture.fit.vertices.min(axis=0), posture.fit.vertices.max(axis=0)
        for point in posture.feasible_points(rng.uniform(low, high)[None]):
            yield posture, point


def postures_on(
    scene: SceneGraph,
    object: str,
    surface: SupportSurface,
    q: ArrayLike | None,
    robot: Manipulator | None,
    settings: PlacementSettings,
    *,
    parts: Sequence[ConvexPolygon],
) -> Iterator[Posture]:
    """Yield the stable orientations of an object on a surface, the smallest rotation first.

    Args:
        scene: scene with object and surface.
        object: frame of the object.
        surface: surface of the support.
        q: (n_joints,) configuration. May be None if no joint is between these frames.
        robot: arm whose links are not obstacles.
        settings: spacing and faces.
        parts: parts of the surface that support the object at its centre. If empty, the object's
            outline lies in the surface.
    """
    solids, faces = collision_solids(scene, object, q), stable_faces(scene, object, q=q)
    upright = [face for face in faces if face.is_upright]
    if upright and not settings.any_face:
        faces = tuple(upright)
    current_rotation = _current_rotation(scene, object, surface, q)
    polygons: dict[
        tuple[str, bytes | float], tuple[ConvexPolygon | None, tuple[ConvexPolygon, ...]]
    ] = {}
    for face in sorted(faces, key=lambda face: not face.is_upright):
        height = face.height + settings.clearance
        top = height + reach(solids, face.rotation.inverse().rotate([0.0, 0.0, 1.0]))
        obstacles = list(_obstacles(scene, object, surface, top, q, robot, settings.spacing))
        target = current_rotation @ face.rotation.inverse()
        angles = _alignment_angles(surface.polygon, outline(solids, face.rotation), target)
        for angle in angles:
            rotation = _yaw(angle) @ face.rotation
            footprint = outline(solids, rotation)
            fit = None if parts else containment_positions(surface.polygon, footprint)
            outline_parts = _outline_parts(solids, rotation, footprint)
            corners = np.round(np.concatenate([part.vertices for part in outline_parts]), 9)
            # Equal outlines share polygons, as those of a square at all four rotations.
            key = (face.name, corners.tobytes() if fit is not None else angle)
            if key not in polygons:
                fit = _equilibrium_position(surface, parts, face, angle) if parts else fit
                blocks = tuple(
                    collision_positions(obstacle, part, spacing=settings.spacing)
                    for obstacle in (obstacles if fit is not None else ())
                    for part in outline_parts
                )
                polygons[key] = fit, blocks
            fit, blocks = polygons[key]
            if fit is not None:
                name = f"{face.name}, turned by {math.degrees(angle):.0f} degrees"
                yield Posture(rotation, height, name, fit, blocks)


def _yaw(angle: float) -> Pose:
    """Return the rotation about z by an angle [rad]."""
    return Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(angle / 2), cos(angle / 2)])


def _outline_parts(
    solids: tuple[AttachedShape, ...], rotation: Pose, footprint: ConvexPolygon
) -> tuple[ConvexPolygon, ...]:
    """Return the outlines of an object's shapes, or their hull if the shapes fill most of it.

    Args:
        solids: collision shapes of the object.
        rotation: surface_from_object without translation.
        footprint: hull of the outlines.
    """
    if not 1 < len(solids) <= _MAX_PARTS:
        return (footprint,)
    parts = tuple(outlines(solids, rotation))
    area = sum(part.area for part in parts)
    return parts if area < _MIN_FILLED_FRACTION * footprint.area else (footprint,)


def _alignment_angles(area: ConvexPolygon, footprint: ConvexPolygon, target: Pose) -> list[float]:
    """Return the four angles that align an outline with the sides of an area.

    Args:
        area: outline of the area.
        footprint: outline of the object.
        target: rotation to which the first angle is nearest.

    Returns:
        Angles about z [rad].
    """
    aligned_angle = _side_angle(area) - _side_angle(footprint)
    rotation = target.rotation
    target_angle = atan2(rotation[1, 0] - rotation[0, 1], rotation[0, 0] + rotation[1, 1])
    angles = (math.remainder(aligned_angle + k * math.pi / 2, math.tau) for k in range(4))

    def rank(angle: float) -> tuple[float, float]:
        """Return the distance to the target angle, and the negative angle for ties."""
        return round(abs(math.remainder(angle - target_angle, math.tau)), 6), -angle

    return sorted(angles, key=rank)


def _equilibrium_position(
    surface: SupportSurface, parts: Sequence[ConvexPolygon], face: StableFace, angle: float
) -> ConvexPolygon | None:
    """Return the position with the centre of mass over the centre of a surface, as a polygon.

    Args:
        surface: surface of the support.
        parts: parts of the surface that support the object.
        face: stable face of the object.
        angle: rotation of the object about z [rad].

    Returns:
        The position, or None if the object would fall.
    """
    if face.is_rolling:
        return None
    centre = surface.polygon.centroid
    position = centre - _yaw(angle).apply([*face.centre, 0.0])[:2]
    face_outline = face.outline.rotate(angle).translate(position)
    contacts = [
        contact.vertices
        for part in parts
        if (contact := part.intersection(face_outline)) is not None
    ]
    if not contacts:
        return None
    support_polygon = ConvexPolygon.around(np.concatenate(contacts))
    if support_polygon.depth(centre)[0] < LEAST_MARGIN:
        return None
    return ConvexPolygon.around(position)


def _side_angle(polygon: ConvexPolygon) -> float:
    """Return the angle of the sides of a polygon's smallest bounding rectangle, modulo 90 degrees.

    Returns:
        Angle in [0, pi / 2) [rad].
    """
    sides = np.roll(polygon.vertices, -1, axis=0) - polygon.vertices
    quarter = math.pi / 2
    angles = np.array([atan2(y, x) for x, y in sides.tolist()]) % quarter
    angles = np.round(angles, 9) % round(quarter, 9)

    def rectangle_area(angle: float) -> float:
        """Return the area of the bounding rectangle at an angle."""
        vertices = polygon.rotate(-angle).vertices
        width, height = (vertices.max(axis=0) - vertices.min(axis=0)).tolist()
        return round(float(width) * float(height), 12)

    return float(min(sorted(set(angles.tolist())), key=rectangle_area))


def _current_rotation(
    scene: SceneGraph, object: str, surface: SupportSurface, q: ArrayLike | None
) -> Pose:
    """Return the current surface_from_object without translation."""
    if scene.root(object) != scene.root(surface.support):
        return Pose()
    support_from_object = scene.pose(object, relative_to=surface.support, q=q)
    surface_from_object = surface.support_from_surface.inverse() @ support_from_object
    return Pose([0.0, 0.0, 0.0], surface_from_object.quat_xyzw)


def _obstacles(
    scene: SceneGraph,
    object: str,
    surface: SupportSurface,
    height: float,
    q: ArrayLike | None,
    robot: Manipulator | None,
    spacing: float,
) -> Iterator[ConvexPolygon]:
    """Yield the outlines of the obstacles on and over a surface, in the surface's x and y [m].

    Args:
        scene: scene with object and surface.
        object: frame of the object, which is not an obstacle.
        surface: surface of the support.
        height: height of the object above the surface; obstacles above are omitted [m].
        q: (n_joints,) configuration. May be None if no joint is between these frames.
        robot: arm whose links are not obstacles.
        spacing: distance to obstacles [m].
    """
    ignored = set(scene.subtree(object))
    if robot is not None:
        ignored |= moved_frames(scene, robot)
    root = scene.root(surface.support)
    balls = (_ball(attached) for attached in solids_under(scene, object, q=q))
    distance = spacing + max(norm(centre) + radius for centre, radius in balls)
    for frame in scene.frame_names:
        solids = () if frame in ignored else solids_of(scene, frame)
        if not solids or scene.root(frame) != root:
            continue
        surface_from_frame = surface.support_from_surface.inverse() @ scene.pose(
            frame, relative_to=surface.support, q=q
        )
        up = surface_from_frame.inverse().rotate([0.0, 0.0, 1.0])
        frame_height = float(surface_from_frame.translation[2])
        for attached in solids:
            if attached.shape.kind in _WITHOUT_OUTLINE or attached.level == "exact":
                continue
            if not _is_near(attached, surface_from_frame, surface.polygon, distance):
                continue
            low = frame_height - reach((attached,), -up)
            high = frame_height + reach((attached,), up)
            # The spacing applies to shapes above the object as to shapes beside it.
            if high > _SURFACE_HEIGHT and low < height + spacing:
                yield outline((attached,), surface_from_frame)


def _is_near(
    attached: AttachedShape, surface_from_frame: Pose, polygon: ConvexPolygon, distance: float
) -> bool:
    """Return whether a shape may be within a distance of a polygon, seen from above.

    Args:
        attached: shape of a frame.
        surface_from_frame: pose of the frame.
        polygon: polygon in the surface's x and y.
        distance: largest distance [m].
    """
    centre, radius = _ball(attached)
    x, y, _ = surface_from_frame.apply(centre).tolist()
    (min_x, min_y), (max_x, max_y) = polygon.bounds
    margin = distance + radius
    is_near_x = min_x - margin <= x <= max_x + margin
    return bool(is_near_x and min_y - margin <= y <= max_y + margin)


@lru_cache(maxsize=CACHE_SIZE)
def _ball(attached: AttachedShape) -> tuple[NDArray[np.float64], float]:
    """Return centre (3,) and radius of a bounding ball of a shape, in its frame [m]."""
    lower, upper = attached.shape.bounds
    return np.asarray(attached.pose.apply((lower + upper) / 2)), norm(upper - lower) / 2
