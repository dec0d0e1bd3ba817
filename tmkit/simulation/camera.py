"""Cameras, and views that show what a picture is about.

:func:`fit_camera` finds a view: it looks from in front and above, on the side from which no wall
hides the objects, from as near as shows the mechanisms, the objects and what they stand on. Of
larger things (a wall, a floor) only the neighbourhood counts. Of several directions it takes the
one from which the fewest points of objects and of robots are hidden, by a wall, a robot or another
object.
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
from tmkit.spatial.plain import plain_numbers

# towards the light: right, back to the camera and up in the picture, over the left shoulder
_LIGHT = (-0.6, 0.95, 1.8)
# metres around mechanisms and objects within which fixed things are part of the picture
_NEIGHBOURHOOD = 0.5
_MARGIN = 1.1  # how much wider the view is than what it must show
# degrees from straight ahead, best first
_VIEWS = (-40.0, 40.0, -65.0, 65.0, -20.0, 20.0, -90.0, 90.0, 150.0, -150.0)
# share of hidden points that a view from behind the robot must save: it shows the robot's back
_BEHIND_COSTS = 0.15
_ELEVATION = math.radians(27.0)
_ROBOT_COUNTS = 0.5  # of a point of a mechanism that is hidden, where one of an object counts 1
_FOCUS_COUNTS = 2.0  # of a point of a frame in focus
SAMPLES = 0.4 * np.array(
    [[0, 0, 0], *([x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))], dtype=float
)


class Posed(Protocol):
    """What a picture shows: a simulation, or a scene at a configuration."""

    @property
    def scene(self) -> SceneGraph:
        """The scene, with the shapes that are drawn."""
        ...

    def pose(self, frame: str) -> Pose:
        """Return root_from_frame as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class Camera:
    """Where a picture is taken from. Poses are those of the root frame.

    Attributes:
        position: the eye, metres.
        target: the point in the middle of the picture, metres.
        up: the direction that is up in the picture.
        field_of_view: vertical opening angle, radians.
        width: pixels.
        height: pixels.
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    field_of_view: float = math.radians(40.0)
    width: int = 1280
    height: int = 960

    def __post_init__(self) -> None:
        eye, target, up = (
            plain_numbers(v, "vectors of a camera") for v in (self.position, self.target, self.up)
        )
        if not all(
            vector.shape == (3,) and np.all(np.isfinite(vector)) for vector in (eye, target, up)
        ):
            raise SimulationError(
                "a camera needs position, target and up of three finite numbers each"
            )
        if np.linalg.norm(np.cross(target - eye, up)) < 1e-9:
            raise SimulationError(
                "a camera must look somewhere, and not along its own up direction"
            )
        if not 0.0 < self.field_of_view < math.pi:
            raise SimulationError(
                f"field_of_view must be between 0 and pi radians, not {self.field_of_view}"
            )
        if not (1 <= self.width <= 4096 and 1 <= self.height <= 4096):
            raise SimulationError(
                f"a picture is 1 to 4096 pixels wide and high, not {self.width} x {self.height}"
            )

    def resized(self, width: int, height: int) -> Camera:
        """Return the same view with another size of the picture.

        Args:
            width: pixels.
            height: pixels.
        """
        return Camera(self.position, self.target, self.up, self.field_of_view, width, height)

    def axes(self) -> NDArray[np.float64]:
        """Return root_from_camera as rotation (3, 3): columns right, up and backwards."""
        back = np.subtract(self.position, self.target, dtype=float)
        back /= np.linalg.norm(back)
        right = np.cross(np.asarray(self.up, dtype=float), back)
        right /= np.linalg.norm(right)
        return np.column_stack([right, np.cross(back, right), back])


def towards_light(camera: Camera) -> list[float]:
    """Return the direction from a scene to the light, which stands behind the camera and lights the visible sides."""
    axes = camera.axes()
    level = np.array([[0.0, 0.0, 1.0]]).T
    right = axes[:, :1] - level * axes[2, 0]
    back = np.cross(right, level, axis=0)
    light = np.column_stack([right, back, level]) @ _LIGHT
    return [float(value) for value in light]


def surroundings(world: Posed) -> tuple[NDArray[np.float64], float, float]:
    """Return the middle (2,) of a scene, a height below everything, and its radius; metres in the root frame."""
    points = _interesting_points(world, partition(world.scene))
    lower, upper = points.min(axis=0), points.max(axis=0)
    radius = max(1.0, 0.65 * float(np.linalg.norm(upper[:2] - lower[:2])))
    heights = [
        float((world.pose(frame) @ part.pose).translation[2])
        for frame in world.scene.frame_names
        for part in world.scene.shapes(frame)
        if part.visual and part.shape.kind == "plane"
    ]
    return (lower[:2] + upper[:2]) / 2.0, min([float(lower[2]), *heights]) - 0.001, radius


def _interesting_points(world: Posed, pieces: Pieces) -> NDArray[np.float64]:
    """Return corners (n, 3) of boxes around what a picture should show."""
    moving = [frame for piece in (*pieces.mechanisms, *pieces.objects) for frame in piece.frames]
    clouds = [cloud for frame in moving for cloud, *_ in _boxes(world, frame)]
    fixed = [cloud for frame in pieces.fixed for cloud, *_ in _boxes(world, frame)]
    if clouds:
        near = np.concatenate(clouds)
        low, high = near.min(axis=0) - _NEIGHBOURHOOD, near.max(axis=0) + _NEIGHBOURHOOD
        fixed = [
            np.clip(cloud, low, high)
            for cloud in fixed
            if np.all(cloud.min(axis=0) <= high) and np.all(cloud.max(axis=0) >= low)
        ]
    clouds += fixed
    return np.concatenate(clouds) if clouds else np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])


def _boxes(world: Posed, frame: str) -> list[tuple[NDArray[np.float64], Pose, NDArray[np.float64]]]:
    """Return the boxes around the visible shapes of a frame: corners (8, 3) in the root, pose and bounds (2, 3)."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    result = []
    for attached in world.scene.shapes(frame):
        if attached.visual and attached.shape.kind != "plane":  # which has no corners
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
    """Return a view that shows mechanisms, objects and surfaces well, none behind another.

    Args:
        world: a simulation, or a scene with its configuration (:class:`StillScene`).
        include: (n, 3) further points that are to be in view, metres in the root frame.
        focus: frames that matter most; they should be hidden by nothing else.
        later: the same scene at other moments of a film, in which as little should be hidden.
        width: pixels of the picture.
        height: pixels of the picture.
    """
    pieces = partition(world.scene)
    further = np.reshape(plain_numbers(include, "include"), (-1, 3))
    points = np.concatenate([_interesting_points(world, pieces), further])
    ahead = _direction_of_work(world, pieces)
    cameras = [_framing(points, ahead + math.radians(turn), width, height) for turn in _VIEWS]
    eyes = [camera.position for camera in cameras]
    hidden = [
        _hidden_shares(one, partition(one.scene), set(focus), eyes) for one in (world, *later)
    ]
    return cameras[
        int(
            np.argmin(
                np.round(np.mean(hidden, axis=0), 2) + _BEHIND_COSTS * (np.abs(_VIEWS) > 90.0)
            )
        )
    ]


def _direction_of_work(world: Posed, pieces: Pieces) -> float:
    """Return the direction, an angle about z, from the mechanisms to the objects."""
    bases = [world.pose(piece.base).translation for piece in pieces.mechanisms]
    goals = [world.pose(piece.base).translation for piece in pieces.objects]
    if not bases or not goals:
        return 0.0
    offset = np.mean(goals, axis=0) - np.mean(bases, axis=0)
    return math.atan2(offset[1], offset[0]) if np.linalg.norm(offset[:2]) > 1e-3 else 0.0


def _framing(points: ArrayLike, azimuth: float, width: int, height: int) -> Camera:
    """Return the nearest camera in a direction that sees all points, with the middle of them in its middle."""
    cloud = plain_numbers(points, "points")
    target = (cloud.min(axis=0) + cloud.max(axis=0)) / 2.0
    direction = np.array(
        [
            math.cos(_ELEVATION) * math.cos(azimuth),
            math.cos(_ELEVATION) * math.sin(azimuth),
            math.sin(_ELEVATION),
        ]
    )
    camera = Camera(_triple(target + direction), _triple(target), width=width, height=height)
    axes, half = camera.axes(), math.tan(camera.field_of_view / 2.0)
    halves = np.array([half * width / height, half]) / _MARGIN
    distance = 1.0
    for _ in range(8):
        x, y, back = ((cloud - target) @ axes).T
        distance = float(np.max([np.abs(x) / halves[0] + back, np.abs(y) / halves[1] + back]))
        seen = np.column_stack([x, y]) / (distance - back)[:, None]
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2.0
        target = target + distance * (middle[0] * axes[:, 0] + middle[1] * axes[:, 1])
    return Camera(
        _triple(target + distance * direction), _triple(target), width=width, height=height
    )


def _hidden_shares(
    world: Posed, pieces: Pieces, focus: set[str], eyes: list[tuple[float, float, float]]
) -> NDArray[np.float64]:
    """Return for each eye the share of points of objects, mechanisms and frames in focus that something hides.

    What may hide are the boxes around the visible shapes of other pieces; of frames in focus, of
    all other frames.
    """
    groups: list[tuple[tuple[str, ...], float]] = [((frame,), 0.0) for frame in pieces.fixed]
    groups += [(piece.frames, _ROBOT_COUNTS) for piece in pieces.mechanisms]
    groups += [(piece.frames, 1.0) for piece in pieces.objects]
    points, owners, weights, blockers = [], [], [], []
    for number, (frames, weight) in enumerate(groups):
        found = [
            (frame, pose, bounds) for frame in frames for _, pose, bounds in _boxes(world, frame)
        ]
        for frame, pose, bounds in found:
            blockers.append((number, frame, pose.inverse(), bounds))
            counts = _FOCUS_COUNTS if frame in focus else weight / len(found)
            if counts:
                points.append(
                    np.asarray(pose.apply(bounds.mean(axis=0) + SAMPLES * (bounds[1] - bounds[0])))
                )
                owners += [(number, frame)] * len(SAMPLES)
                weights += [counts] * len(SAMPLES)
    if not points:
        return np.zeros(len(eyes))
    goals, counts_of = np.concatenate(points), np.array(weights)
    hidden = np.zeros((len(eyes), len(goals)), dtype=bool)
    for number, frame, shape_from_root, (lower, upper) in blockers:
        kinds = {part.shape.kind for part in world.scene.shapes(frame)}
        if kinds & {"point_cloud", "height_field"}:  # their boxes hide too much
            continue
        ends = np.asarray(shape_from_root.apply(goals), dtype=float)
        other = np.array([frame != of if of in focus else number != piece for piece, of in owners])
        for row, eye in enumerate(eyes):
            hidden[row] |= other & crosses_box(
                np.asarray(shape_from_root.apply(eye)), ends, lower, upper
            )
    return np.asarray(hidden @ counts_of / counts_of.sum(), dtype=float)


def crosses_box(
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Say of each segment whether it meets the box between two corners.

    Args:
        start: (3,) where all begin; it and the corners may have further axes in front, for several
            boxes.
        ends: (n, 3) where they end.
        lower: (3,) the one corner.
        upper: (3,) the other.
    """
    along = np.where(np.abs(ends - start) < 1e-12, 1e-12, ends - start)
    first, second = (lower - start) / along, (upper - start) / along
    enter = np.minimum(first, second).max(axis=-1)
    leave = np.maximum(first, second).min(axis=-1)
    meets: NDArray[np.bool_] = (enter <= leave) & (leave >= 0.0) & (enter <= 1.0)
    return meets


def _triple(vector: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])
