"""Cameras, and views that fit the content of a scene.

:func:`fit_camera` selects the view of a scene. The camera looks from in front and above, from the
side on which no wall hides the objects. It is as near as possible with all mechanisms, objects and
their supports in view. Of larger bodies (a wall, a floor) only the neighbourhood counts.

Of several directions, it selects the one with the fewest hidden points of objects and robots. A
wall, a robot or another object can hide a point.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SimulationError
from tmkit.graph import SceneGraph
from tmkit.simulation.pieces import Pieces, partition
from tmkit.spatial import Pose
from tmkit.spatial.plain import convert_fields, plain_numbers

_LIGHT_DIRECTION = (-0.9, 0.15, 1.7)
"""(3,) direction to the light: right, backwards and up. Shadows fall to the right, onto tables."""

NEIGHBOURHOOD = 0.2
"""Distance from mechanisms and objects within which fixed bodies are part of the picture [m]."""

_VIEW_MARGIN = 1.1
"""Ratio of the width of the view to the width of its content."""

_VIEW_AZIMUTHS = (-40.0, 40.0, -65.0, 65.0, -20.0, 20.0, -90.0, 90.0, 150.0, -150.0)
"""Azimuths of the candidate views relative to the direction of work, preferred first [deg]."""

_REAR_VIEW_PENALTY = 0.15
"""Penalty of a view from behind the robot, in fractions of hidden points."""

_VIEW_ELEVATION = math.radians(27.0)
"""Elevation of the camera above the horizontal [rad]."""

_ROBOT_WEIGHT = 0.5
"""Weight of a hidden point of a mechanism. A point of an object has the weight 1."""

_FOCUS_WEIGHT = 2.0
"""Weight of a hidden point of a frame in focus."""

_MAX_REAR_AZIMUTH = 90.0
"""Largest azimuth of a view that is not from behind the robot [deg]."""

NEAR_PLANE = 0.02
"""Distance of the near clipping plane of renderers [m]."""

SAMPLES = 0.4 * np.array(
    [[0, 0, 0], *([x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))], dtype=float
)
"""(9, 3) sample points of a box, relative to its centre, in units of its size."""


class Posed(Protocol):
    """Content of a picture: a simulation, or a scene at a configuration."""

    @property
    def scene(self) -> SceneGraph:
        """Scene with the shapes to draw."""
        ...

    def pose(self, frame: str) -> Pose:
        """Return the current root_from_frame."""
        ...


@dataclass(frozen=True, slots=True)
class Camera:
    """Pinhole camera, with its pose relative to the root frame.

    Attributes:
        position: (3,) optical centre [m].
        target: (3,) point in the middle of the picture [m].
        up: (3,) direction that is up in the picture.
        field_of_view: vertical opening angle [rad].
        width: width of the picture [pixels].
        height: height of the picture [pixels].
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    field_of_view: float = math.radians(40.0)
    width: int = 1280
    height: int = 960

    def __post_init__(self) -> None:
        units = {"position": "m", "target": "m", "up": "1", "field_of_view": "rad"}
        convert_fields(self, units)
        eye, target, up = (
            plain_numbers(v, "vectors of a camera") for v in (self.position, self.target, self.up)
        )
        if not all(
            vector.shape == (3,) and np.all(np.isfinite(vector)) for vector in (eye, target, up)
        ):
            raise SimulationError(
                "position, target and up of a camera must be three finite numbers each"
            )
        if np.linalg.norm(np.cross(target - eye, up)) < 1e-9:
            raise SimulationError(
                "the view direction of a camera must not be zero or parallel to its up direction"
            )
        if not 0.0 < self.field_of_view < math.pi:
            raise SimulationError(
                f"field_of_view must be between 0 and pi [rad], got {self.field_of_view}"
            )
        if not (1 <= self.width <= 4096 and 1 <= self.height <= 4096):
            raise SimulationError(
                f"a picture is 1 to 4096 pixels wide and high, got {self.width} x {self.height}"
            )

    def with_size(self, width: int, height: int) -> Camera:
        """Return the same view with another size of the picture.

        Args:
            width: width of the picture [pixels].
            height: height of the picture [pixels].
        """
        return Camera(self.position, self.target, self.up, self.field_of_view, width, height)

    def axes(self) -> NDArray[np.float64]:
        """Return root_from_camera as rotation (3, 3), with columns right, up and backwards."""
        back = np.subtract(self.position, self.target, dtype=float)
        back /= np.linalg.norm(back)
        right = np.cross(np.asarray(self.up, dtype=float), back)
        right /= np.linalg.norm(right)
        return np.column_stack([right, np.cross(back, right), back])


def towards_light(camera: Camera) -> list[float]:
    """Return the (3,) direction from a scene to the light, behind and above the camera."""
    axes = camera.axes()
    level = np.array([[0.0, 0.0, 1.0]]).T
    right = axes[:, :1] - level * axes[2, 0]
    back = np.cross(right, level, axis=0)
    light = np.column_stack([right, back, level]) @ _LIGHT_DIRECTION
    return [float(value) for value in light]


def surroundings(world: Posed) -> tuple[NDArray[np.float64], float, float]:
    """Return the middle (2,), a height below all shapes and the radius of a scene [m]."""
    points = _interesting_points(world, partition(world.scene))
    lower, upper = points.min(axis=0), points.max(axis=0)
    radius = max(1.0, 0.65 * float(np.linalg.norm(upper[:2] - lower[:2])))
    heights = [float(lower[2])]
    for frame in world.scene.frame_names:
        heights += [float(corners[:, 2].min()) for corners, *_ in _boxes(world, frame)]
        heights += [
            float((world.pose(frame) @ part.pose).translation[2])
            for part in world.scene.shapes(frame)
            if part.visual and part.shape.kind == "plane"
        ]
    return (lower[:2] + upper[:2]) / 2.0, min(heights) - 0.001, radius


def _interesting_points(world: Posed, pieces: Pieces) -> NDArray[np.float64]:
    """Return corners (n, 3) of boxes around the content of a picture, in the root frame [m]."""
    moving = [frame for piece in (*pieces.mechanisms, *pieces.objects) for frame in piece.frames]
    clouds = [cloud for frame in moving for cloud, *_ in _boxes(world, frame)]
    fixed = [cloud for frame in pieces.fixed for cloud, *_ in _boxes(world, frame)]
    if clouds:
        cloud = np.concatenate(clouds)
        low, high = cloud.min(axis=0) - NEIGHBOURHOOD, cloud.max(axis=0) + NEIGHBOURHOOD
        fixed = [
            np.clip(cloud, low, high)
            for cloud in fixed
            if np.all(cloud.min(axis=0) <= high) and np.all(cloud.max(axis=0) >= low)
        ]
    clouds += fixed
    return np.concatenate(clouds) if clouds else np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])


def _boxes(world: Posed, frame: str) -> list[tuple[NDArray[np.float64], Pose, NDArray[np.float64]]]:
    """Return corners (8, 3) in the root, pose and bounds (2, 3) of each visible shape."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    result = []
    for attached in world.scene.shapes(frame):
        if attached.visual and attached.shape.kind != "plane":  # A plane has no corners.
            lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
            pose = world.pose(frame) @ attached.pose
            cloud = np.asarray(pose.apply(lower + corners * (upper - lower)), dtype=float)
            result.append((cloud, pose, np.stack([lower, upper])))
    return result


def fit_camera(
    world: Posed,
    *,
    include: ArrayLike = (),
    focus: Collection[str] = (),
    later: Sequence[Posed] = (),
    width: int = 1280,
    height: int = 960,
) -> Camera:
    """Return a view that shows mechanisms, objects and surfaces with few points hidden.

    Args:
        world: a simulation, or a scene with its configuration (:class:`StillScene`).
        include: (n, 3) further points to show, in the root frame [m].
        focus: frames of which hidden points count most. Any other frame can hide them.
        later: the same scene at other times of a film. Points hidden there count as much.
        width: width of the picture [pixels].
        height: height of the picture [pixels].
    """
    pieces = partition(world.scene)
    extra_points = np.reshape(plain_numbers(include, "include", "m"), (-1, 3))
    points = np.concatenate([_interesting_points(world, pieces), extra_points])
    front = _direction_of_work(world, pieces)
    cameras = [
        _frame_points(points, front + math.radians(azimuth), width, height)
        for azimuth in _VIEW_AZIMUTHS
    ]
    eyes = [camera.position for camera in cameras]
    hidden = [
        _hidden_fractions(state, partition(state.scene), set(focus), eyes)
        for state in (world, *later)
    ]
    is_rear = np.abs(_VIEW_AZIMUTHS) > _MAX_REAR_AZIMUTH
    costs = np.round(np.mean(hidden, axis=0), 2) + _REAR_VIEW_PENALTY * is_rear
    return cameras[int(np.argmin(costs))]


def _direction_of_work(world: Posed, pieces: Pieces) -> float:
    """Return the direction from the mechanisms to the objects, as an angle about z [rad]."""
    bases = [world.pose(piece.base).translation for piece in pieces.mechanisms]
    goals = [world.pose(piece.base).translation for piece in pieces.objects]
    if not bases or not goals:
        return 0.0
    offset = np.mean(goals, axis=0) - np.mean(bases, axis=0)
    return math.atan2(offset[1], offset[0]) if np.linalg.norm(offset[:2]) > 1e-3 else 0.0


def _frame_points(points: ArrayLike, azimuth: float, width: int, height: int) -> Camera:
    """Return the nearest camera in a direction with all points in view and centred."""
    cloud = plain_numbers(points, "points", "m")
    target = (cloud.min(axis=0) + cloud.max(axis=0)) / 2.0
    direction = np.array(
        [
            math.cos(_VIEW_ELEVATION) * math.cos(azimuth),
            math.cos(_VIEW_ELEVATION) * math.sin(azimuth),
            math.sin(_VIEW_ELEVATION),
        ]
    )
    camera = Camera(_triple(target + direction), _triple(target), width=width, height=height)
    axes, half = camera.axes(), math.tan(camera.field_of_view / 2.0)
    halves = np.array([half * width / height, half]) / _VIEW_MARGIN
    distance = 1.0
    for _ in range(8):
        x, y, back = ((cloud - target) @ axes).T
        distance = float(np.max([np.abs(x) / halves[0] + back, np.abs(y) / halves[1] + back]))
        projections = np.column_stack([x, y]) / (distance - back)[:, None]
        middle = (projections.min(axis=0) + projections.max(axis=0)) / 2.0
        target = target + distance * (middle[0] * axes[:, 0] + middle[1] * axes[:, 1])
    return Camera(
        _triple(target + distance * direction), _triple(target), width=width, height=height
    )


def _hidden_fractions(
    world: Posed, pieces: Pieces, focus: set[str], eyes: list[tuple[float, float, float]]
) -> NDArray[np.float64]:
    """Return for each eye the weighted fraction of hidden points of objects and mechanisms.

    The boxes around the visible shapes of other pieces can hide a point. The boxes of all other
    frames can hide a point of a frame in focus.
    """
    groups: list[tuple[tuple[str, ...], float]] = [((frame,), 0.0) for frame in pieces.fixed]
    groups += [(piece.frames, _ROBOT_WEIGHT) for piece in pieces.mechanisms]
    groups += [(piece.frames, 1.0) for piece in pieces.objects]
    points, blockers = [], []
    owners: list[tuple[int, str]] = []
    point_weights: list[float] = []
    for number, (frames, group_weight) in enumerate(groups):
        boxes = [
            (frame, pose, bounds) for frame in frames for _, pose, bounds in _boxes(world, frame)
        ]
        for frame, pose, bounds in boxes:
            blockers.append((number, frame, pose.inverse(), bounds))
            weight = _FOCUS_WEIGHT if frame in focus else group_weight / len(boxes)
            if weight:
                samples = bounds.mean(axis=0) + SAMPLES * (bounds[1] - bounds[0])
                points.append(np.asarray(pose.apply(samples)))
                owners += [(number, frame)] * len(SAMPLES)
                point_weights += [weight] * len(SAMPLES)
    if not points:
        return np.zeros(len(eyes))
    goals, weights = np.concatenate(points), np.array(point_weights)
    hidden = np.zeros((len(eyes), len(goals)), dtype=bool)
    for number, frame, shape_from_root, (lower, upper) in blockers:
        kinds = {part.shape.kind for part in world.scene.shapes(frame)}
        if kinds & {"point_cloud", "height_field"}:  # The box of such a shape is mostly empty.
            continue
        ends = np.asarray(shape_from_root.apply(goals), dtype=float)
        can_hide = np.array(
            [frame != owner if owner in focus else number != group for group, owner in owners]
        )
        for row, eye in enumerate(eyes):
            eye_in_shape = np.asarray(shape_from_root.apply(eye))
            hidden[row] |= can_hide & crosses_box(eye_in_shape, ends, lower, upper)
    return np.asarray(hidden @ weights / weights.sum(), dtype=float)


def crosses_box(
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return for each segment whether it crosses an axis-aligned box.

    Args:
        start: (..., 3) common start of the segments. Leading axes enumerate boxes.
        ends: (n, 3) ends of the segments.
        lower: (..., 3) lower corner of the box.
        upper: (..., 3) upper corner of the box.
    """
    direction = np.where(np.abs(ends - start) < 1e-12, 1e-12, ends - start)
    first, second = (lower - start) / direction, (upper - start) / direction
    entry = np.minimum(first, second).max(axis=-1)
    exit = np.maximum(first, second).min(axis=-1)
    is_crossed: NDArray[np.bool_] = (entry <= exit) & (exit >= 0.0) & (entry <= 1.0)
    return is_crossed


def _triple(vector: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])
