"""Simulated sensors: a camera that detects objects, and a depth camera, with realistic errors.

A detection is a measured pose of an object with its covariance. :class:`SimulatedCamera` measures
with noise of that covariance, and detects no objects that are hidden or out of view. It misses some
visible objects, and reports some objects in wrong places. The boxes around shapes determine the
hidden part of an object, as for views (:mod:`tmkit.simulation.camera`).

:func:`depth_points` is a depth camera: it returns the visible points, with noise along the rays.

Invariant: the same seed and calls give the same detections.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import AttachedShape, SceneGraph
from tmkit.errors import SimulationError
from tmkit.simulation.camera import SAMPLES, Camera, Posed, crosses_box
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.pieces import partition
from tmkit.simulation.rendering.studio import StillScene
from tmkit.spatial import Pose, covariance_root
from tmkit.spatial.covariances import check_covariance

_FALSE_DETECTION_OFFSET = 0.1
"""Largest offset of a false detection along each horizontal axis [m]."""

_NEAR_DISTANCE = 0.05
"""Smallest depth that the depth camera measures [m]."""

_FAR_DISTANCE = 10.0
"""Largest depth that the depth camera measures [m]."""


@dataclass(frozen=True)
class Detection:
    """Measured pose of an object.

    Attributes:
        frame: frame of the object. None if the sensor cannot distinguish objects of a class.
        pose: measured root_from_frame.
        covariance: (6, 6) covariance of the error, ordered [rho, theta], in the axes of the frame
            [m, rad].
        classes: classes of the object, as far as the sensor measures them. A detection without a
            frame is associated with an object of these classes.
        shapes: shapes of the object in its axes, if the sensor measures them. An object that the
            scene lacks can then be added.
    """

    frame: str | None
    pose: Pose
    covariance: NDArray[np.float64]
    classes: tuple[str, ...] = ()
    shapes: tuple[AttachedShape, ...] = ()


@dataclass(frozen=True)
class SensorNoise:
    """Errors of a sensor that detects objects.

    Args:
        covariance: (6, 6) covariance of the error of a detection, ordered [rho, theta], in the axes
            of the object [m, rad].
        misses: probability that an object in view is not reported, in [0, 1).
        false_rate: probability that an object is reported in a wrong place, in [0, 1).

    Raises:
        SimulationError: if a probability is outside its range.
    """

    covariance: ArrayLike
    misses: float = 0.0
    false_rate: float = 0.0

    def __post_init__(self) -> None:
        _require_fraction("misses", self.misses)
        _require_fraction("false_rate", self.false_rate)


class SimulatedCamera:
    """A camera in a simulation that detects movable objects.

    Args:
        simulation: simulation to measure.
        camera: pose and optics.
        noise: errors of detections.
        visible: smallest fraction of a detected object that is in view and not hidden, in [0, 1).
        is_naming: whether detections have the frame of their object.
        period: simulated duration of a measurement, in which the arms are at rest [s].
        seed: seed of all random numbers.

    Raises:
        SimulationError: if ``visible`` is outside its range.
        SceneError: if the noise has no valid covariance.
    """

    def __init__(
        self,
        simulation: Simulation,
        camera: Camera,
        *,
        noise: SensorNoise,
        visible: float = 0.3,
        is_naming: bool = True,
        period: float = 0.2,
        seed: int = 0,
    ) -> None:
        _require_fraction("visible", visible)
        self.simulation, self.camera, self.visible = simulation, camera, visible
        self._covariance = check_covariance(
            noise.covariance, 6, what="the covariance of a detection"
        )
        self._root = covariance_root(self._covariance)
        self._noise, self._is_naming = noise, is_naming
        self._steps = round(period / simulation.settings.time_step)
        self._random = np.random.default_rng(seed)

    def look(self) -> tuple[Detection, ...]:
        """Return the detections at the current time, after ``period``."""
        detections, random = [], self._random
        self.simulation.step(self._steps)
        for name, fraction in visible_fractions(self.simulation, self.camera).items():
            numbers = random.random(2)
            if fraction < self.visible or numbers[0] < self._noise.misses:
                continue
            pose = self.simulation.pose(name) @ Pose.exp(
                self._root @ random.normal(size=self._root.shape[1])
            )
            if numbers[1] < self._noise.false_rate:
                offset = random.uniform(-_FALSE_DETECTION_OFFSET, _FALSE_DETECTION_OFFSET, 2)
                pose = Pose([*offset, 0.0]) @ pose
            frame, scene = name if self._is_naming else None, self.simulation.scene
            detections.append(
                Detection(frame, pose, self._covariance, scene.classes(name), scene.shapes(name))
            )
        return tuple(detections)

    def in_view(self, scene: SceneGraph, q: ArrayLike) -> frozenset[str]:
        """Return the objects that the camera would detect in a scene.

        The visible fraction of such an object exceeds ``visible`` by half of the rest, as a margin
        for misses.

        Args:
            scene: scene to compare with the simulation.
            q: (n_joints,) configuration.
        """
        fractions = visible_fractions(StillScene(scene, q), self.camera)
        threshold = 0.5 * (1.0 + self.visible)
        return frozenset(name for name, fraction in fractions.items() if fraction >= threshold)


def _require_fraction(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise SimulationError(f"{name} must be at least 0 and below 1, got {value}")


def visible_fractions(world: Posed, camera: Camera) -> dict[str, float]:
    """Return the visible fraction of each movable object: in view of a camera and not hidden.

    Args:
        world: a simulation, or a scene at a configuration (:class:`StillScene`).
        camera: pose and optics.
    """
    pieces = partition(world.scene)
    owners = {
        frame: piece.base
        for piece in (*pieces.mechanisms, *pieces.objects)
        for frame in piece.frames
    }
    names, poses, bounds = [], [], []
    for frame in world.scene.frame_names:
        for part, box in _visible_boxes(world.scene.shapes(frame)):
            names.append(owners.get(frame, frame))
            poses.append((world.pose(frame) @ part).as_matrix())
            bounds.append(box)
    objects = {
        piece.base: number for number, piece in enumerate(pieces.objects) if piece.base in names
    }
    if not objects:
        return {}
    # The number of the object of each box, or a distinct negative number.
    box_owners = np.array([objects.get(name, -1 - number) for number, name in enumerate(names)])
    root_from_box, box = np.array(poses), np.array(bounds)
    rotations, origins = root_from_box[:, :3, :3], root_from_box[:, :3, 3]
    is_object = box_owners >= 0

    # Sample the boxes of objects.
    sizes = box[is_object, 1] - box[is_object, 0]
    local = box[is_object].mean(axis=1)[:, None] + SAMPLES * sizes[:, None]
    points = local @ rotations[is_object].transpose(0, 2, 1) + origins[is_object][:, None]
    points = points.reshape(-1, 3)
    owner = np.repeat(box_owners[is_object], len(SAMPLES))

    # Test the samples against the image, and against all boxes of other bodies.
    eye, half = np.asarray(camera.position), math.tan(camera.field_of_view / 2.0)
    right, up, back = ((points - eye) @ camera.axes()).T
    with np.errstate(divide="ignore", invalid="ignore"):
        is_visible = (
            (back < 0.0)
            & (np.abs(up / back) < half)
            & (np.abs(right / back) < half * camera.width / camera.height)
        )
    eyes = np.einsum("mji,mj->mi", rotations, eye - origins)[:, None]
    ends = eyes + (points - eye) @ rotations
    is_crossed = crosses_box(eyes, ends, box[:, :1], box[:, 1:])
    hides = is_crossed & (box_owners[:, None] != owner)
    is_visible &= ~hides.any(axis=0)
    fractions = np.bincount(owner, is_visible) / np.maximum(np.bincount(owner), 1)
    return {name: float(fractions[number]) for name, number in objects.items()}


@functools.lru_cache(maxsize=1024)
def _visible_boxes(
    shapes: tuple[AttachedShape, ...],
) -> tuple[tuple[Pose, NDArray[np.float64]], ...]:
    """Return frame_from_shape and bounds (2, 3) of each visible shape of a frame."""
    # A plane has no bounds.
    solid = [part for part in shapes if part.visual and part.shape.kind != "plane"]
    return tuple((part.pose, np.array(part.shape.bounds, dtype=float)) for part in solid)


def depth_points(
    simulation: Simulation, camera: Camera, *, noise: float = 0.0, seed: int = 0
) -> NDArray[np.float64]:
    """Return the points (n, 3) that a depth camera measures, in its axes right, up, backwards [m].

    Points beyond 10 m are omitted.

    Args:
        simulation: simulation to measure.
        camera: pose and optics. Each pixel is a point.
        noise: standard deviation of the distance along the optical axis [m].
        seed: seed of the noise.

    Raises:
        SimulationError: if ``noise`` is negative or not finite.
    """
    if not 0.0 <= noise < math.inf:
        raise SimulationError(f"noise must be finite and at least 0, got {noise}")
    bullet, near_plane, far_plane = simulation.bullet, _NEAR_DISTANCE, _FAR_DISTANCE
    image = bullet.getCameraImage(
        camera.width,
        camera.height,
        viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
        projectionMatrix=bullet.computeProjectionMatrixFOV(
            math.degrees(camera.field_of_view), camera.width / camera.height, near_plane, far_plane
        ),
        renderer=bullet.ER_TINY_RENDERER,
        physicsClientId=simulation.client,
    )
    buffer = np.asarray(image[3], dtype=float).reshape(camera.height, camera.width)
    depth = far_plane * near_plane / (far_plane - (far_plane - near_plane) * buffer)
    is_in_range = depth < 0.999 * far_plane
    depth = depth + noise * np.random.default_rng(seed).normal(size=depth.shape)
    half = math.tan(camera.field_of_view / 2.0)
    # The rays of this renderer pass through the lower left corners of its pixels.
    right = (
        (2.0 * np.arange(camera.width) / camera.width - 1.0) * half * camera.width / camera.height
    )
    up = (1.0 - 2.0 * np.arange(1, camera.height + 1) / camera.height) * half
    rays = np.stack(np.broadcast_arrays(right[None, :], up[:, None], np.float64(-1.0)), axis=-1)
    points: NDArray[np.float64] = (depth[..., None] * rays)[is_in_range]
    return points
