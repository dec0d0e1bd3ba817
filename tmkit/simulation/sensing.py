"""Sensing in a simulation: a camera that detects objects, with what real ones do wrong.

A detection says where an object is, with the covariance of the look. A simulated camera measures
with noise of that covariance, sees nothing of what is hidden or out of view. It misses some of what
it could see, and now and then reports an object where there is none. Which part of an object is
hidden is judged by the boxes around shapes, as for views (:mod:`tmkit.simulation.camera`).

:func:`depth_points` is a depth camera: the points that are seen, with noise along the rays.

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

_OFF = 0.1  # metres by which a false detection is off, in every direction along a level


@dataclass(frozen=True)
class Detection:
    """Where a sensor says that an object is.

    Attributes:
        frame: the object; None where the sensor cannot tell objects of a kind apart.
        pose: root_from_frame as measured.
        covariance: (6, 6) of its error, [rho, theta] in the axes of the frame, metres and radians.
        classes: of the object, as far as known; one without a name is looked for among the objects
            that have them.
        shapes: of the object, in its axes, where the sensor sees them: then one that nobody knew of
            can be believed.
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
        covariance: (6, 6) of the error of a detection, [rho, theta] in the axes of the object [m,
            rad].
        misses: the probability that an object in view is not reported, in [0, 1).
        false_rate: the probability that an object is reported in a wrong place, in [0, 1).

    Raises:
        SimulationError: if a probability is outside its range.
    """

    covariance: ArrayLike
    misses: float = 0.0
    false_rate: float = 0.0

    def __post_init__(self) -> None:
        _require_share("misses", self.misses)
        _require_share("false_rate", self.false_rate)


class SimulatedCamera:
    """A camera in a simulation that detects movable objects.

    Args:
        simulation: what it looks at.
        camera: where it stands.
        noise: the errors of detections.
        visible: the share of an object that must be in view and not hidden.
        is_naming: whether detections name their objects; otherwise they have none.
        period: simulated seconds that a look takes, in which the arms stand still.
        seed: of all random numbers.

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
        _require_share("visible", visible)
        self.simulation, self.camera, self.visible = simulation, camera, visible
        self._covariance = check_covariance(
            noise.covariance, 6, what="the covariance of a detection"
        )
        self._root = covariance_root(self._covariance)
        self._noise, self._is_naming = noise, is_naming
        self._steps = round(period / simulation.settings.time_step)
        self._random = np.random.default_rng(seed)

    def look(self) -> tuple[Detection, ...]:
        """Return what it detects now."""
        found, random = [], self._random
        self.simulation.step(self._steps)
        for name, share in visible_shares(self.simulation, self.camera).items():
            numbers = random.random(2)
            if share < self.visible or numbers[0] < self._noise.misses:
                continue
            pose = self.simulation.pose(name) @ Pose.exp(
                self._root @ random.normal(size=self._root.shape[1])
            )
            if numbers[1] < self._noise.false_rate:
                pose = Pose([*random.uniform(-_OFF, _OFF, 2), 0.0]) @ pose
            known, scene = name if self._is_naming else None, self.simulation.scene
            found.append(
                Detection(known, pose, self._covariance, scene.classes(name), scene.shapes(name))
            )
        return tuple(found)

    def in_view(self, scene: SceneGraph, q: ArrayLike) -> frozenset[str]:
        """Return the objects that it would see if the world were as a scene says, with a margin for what it misses.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        shares = visible_shares(StillScene(scene, q), self.camera)
        return frozenset(
            name for name, share in shares.items() if share >= 0.5 * (1.0 + self.visible)
        )


def _require_share(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise SimulationError(f"{name} must be at least 0 and below 1, not {value}")


def visible_shares(world: Posed, camera: Camera) -> dict[str, float]:
    """Return of each movable object the share that is in view of a camera and not hidden by anything else.

    Args:
        world: a simulation, or a scene at a configuration (:class:`StillScene`).
        camera: the camera.
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
    # which object, else none
    of = np.array([objects.get(name, -1 - number) for number, name in enumerate(names)])
    root_from_box, box = np.array(poses), np.array(bounds)
    turns, places, own = root_from_box[:, :3, :3], root_from_box[:, :3, 3], of >= 0
    local = box[own].mean(axis=1)[:, None] + SAMPLES * (box[own, 1] - box[own, 0])[:, None]
    points = (local @ turns[own].transpose(0, 2, 1) + places[own][:, None]).reshape(-1, 3)
    owner = np.repeat(of[own], len(SAMPLES))
    eye, half = np.asarray(camera.position), math.tan(camera.field_of_view / 2.0)
    right, up, back = ((points - eye) @ camera.axes()).T
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = (
            (back < 0.0)
            & (np.abs(up / back) < half)
            & (np.abs(right / back) < half * camera.width / camera.height)
        )
    eyes = np.einsum("mji,mj->mi", turns, eye - places)[:, None]
    ends = eyes + (points - eye) @ turns
    hides = crosses_box(eyes, ends, box[:, :1], box[:, 1:]) & (of[:, None] != owner)
    seen &= ~hides.any(axis=0)
    shares = np.bincount(owner, seen) / np.maximum(np.bincount(owner), 1)
    return {name: float(shares[number]) for name, number in objects.items()}


@functools.lru_cache(maxsize=1024)
def _visible_boxes(
    shapes: tuple[AttachedShape, ...],
) -> tuple[tuple[Pose, NDArray[np.float64]], ...]:
    """Return frame_from_shape and bounds (2, 3) of what is visible of a frame."""
    # which has no bounds
    solid = [part for part in shapes if part.visual and part.shape.kind != "plane"]
    return tuple((part.pose, np.array(part.shape.bounds, dtype=float)) for part in solid)


def depth_points(
    simulation: Simulation, camera: Camera, *, noise: float = 0.0, seed: int = 0
) -> NDArray[np.float64]:
    """Return the points (n, 3) that a depth camera sees, metres in its axes: right, up and backwards.

    Points beyond 10 m are not seen.

    Args:
        simulation: what it looks at.
        camera: where it stands; a pixel is a point.
        noise: standard deviation of the distance along the optical axis, metres.
        seed: of the noise.

    Raises:
        SimulationError: a noise that is no number of at least 0.
    """
    if not 0.0 <= noise < math.inf:
        raise SimulationError(f"noise is at least 0, not {noise}")
    bullet, near, far = simulation.bullet, 0.05, 10.0
    image = bullet.getCameraImage(
        camera.width,
        camera.height,
        viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
        projectionMatrix=bullet.computeProjectionMatrixFOV(
            math.degrees(camera.field_of_view), camera.width / camera.height, near, far
        ),
        renderer=bullet.ER_TINY_RENDERER,
        physicsClientId=simulation.client,
    )
    buffer = np.asarray(image[3], dtype=float).reshape(camera.height, camera.width)
    depth = far * near / (far - (far - near) * buffer)
    is_seen = depth < 0.999 * far
    depth = depth + noise * np.random.default_rng(seed).normal(size=depth.shape)
    half = math.tan(camera.field_of_view / 2.0)
    # This renderer looks through the lower left corners of its pixels.
    right = (
        (2.0 * np.arange(camera.width) / camera.width - 1.0) * half * camera.width / camera.height
    )
    up = (1.0 - 2.0 * np.arange(1, camera.height + 1) / camera.height) * half
    rays = np.stack(np.broadcast_arrays(right[None, :], up[:, None], np.float64(-1.0)), axis=-1)
    points: NDArray[np.float64] = (depth[..., None] * rays)[is_seen]
    return points
