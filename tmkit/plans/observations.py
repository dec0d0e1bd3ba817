"""Observations of an action in an uncertain scene, by cameras with measurement errors.

A *camera* is a frame of class ``camera`` that looks along its z axis. Attributes of the frame
describe its errors and its field of view:

* ``position_deviation``: standard deviation of the measured position along each axis [m].
* ``turn_deviation``: standard deviation of the measured rotation about each axis [rad].
* ``field_of_view``: full angle of the visible cone [rad].
* ``nearest``, ``farthest``: smallest and largest visible distance [m].

A :class:`PlannedObservation` measures the pose of a frame from a camera. The planner assumes the
expected measurement: means stay the same, and covariances shrink as for any measurement, to first
order. So the scene after an observation depends only on the scene before it.

The execution of a plan yields real measurements, which also move the means. The rest of the plan is
then replanned.

Invariants: an observation without errors to reduce changes nothing, and the expected measurement
moves no mean. Occlusion is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import path_noise
from tmkit._support.elementary import atan2
from tmkit.errors import SceneError
from tmkit.graph import Measurement, SceneGraph
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

CovarianceRows = tuple[tuple[float, ...], ...]
"""Rows of a covariance (6, 6) of [rho, theta]."""


def covariance_rows(covariance: ArrayLike) -> CovarianceRows:
    """Return the rows of a covariance, which can be compared and stored.

    Args:
        covariance: (6, 6) covariance of [rho, theta], in [m] and [rad]. The scene checks whether it
            is positive.

    Raises:
        SceneError: if the shape is another one, or an entry is not finite.
    """
    matrix = plain_numbers(covariance, "covariance")
    if matrix.shape != (6, 6) or not np.all(np.isfinite(matrix)):
        raise SceneError(f"a covariance of a pose is (6, 6) and finite, not {matrix.shape}")
    return tuple(tuple(float(value) for value in row) for row in matrix)


@dataclass(frozen=True)
class CameraModel:
    """Errors and field of view of a camera.

    Attributes:
        frame: frame of the camera, which looks along its z axis.
        position_deviation: standard deviation of the position along each axis [m].
        turn_deviation: standard deviation of the rotation about each axis [rad].
        field_of_view: full angle of the visible cone [rad].
        nearest: smallest visible distance [m].
        farthest: largest visible distance [m].
    """

    frame: str
    position_deviation: float
    turn_deviation: float
    field_of_view: float
    nearest: float
    farthest: float

    @classmethod
    def of(cls, scene: SceneGraph, frame: str) -> CameraModel:
        """Return the model of a camera by the attributes of its frame.

        Args:
            scene: scene with the camera.
            frame: frame of class ``camera``.

        Raises:
            SceneError: if the frame is not a camera, or an attribute is missing, negative or not a
                number.
        """
        if "camera" not in scene.classes(frame):
            cameras = ", ".join(scene.frames_of_class("camera")) or "none"
            raise SceneError(
                f"frame '{frame}' is not a camera (class 'camera': {cameras})", frame=frame
            )
        attributes = scene.attributes(frame)
        names = ("position_deviation", "turn_deviation", "field_of_view", "nearest", "farthest")
        for name in names:
            value = attributes.get(name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not (0.0 <= value < math.inf)
            ):
                reason = (
                    f"camera '{frame}' needs the attribute '{name}', a number that is not negative"
                )
                raise SceneError(f"{reason}, not {value!r}", frame=frame)
        return cls(frame, *(float(attributes[name]) for name in names))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(6, 6) covariance of a measured pose, [rho, theta] in the axes of the measured frame."""
        return np.diag(
            [self.position_deviation * self.position_deviation] * 3
            + [self.turn_deviation * self.turn_deviation] * 3
        )

    def fault(self, scene: SceneGraph, frame: str, *, q: NDArray[np.float64]) -> str | None:
        """Return the reason why the origin of a frame is not visible, or None if it is visible.

        Args:
            scene: scene with the camera.
            frame: frame to observe.
            q: (n_joints,) configuration.
        """
        x, y, z = scene.pose(frame, relative_to=self.frame, q=q).translation
        distance, angle = math.hypot(x, y, z), atan2(math.hypot(x, y), z)
        if not self.nearest <= distance <= self.farthest:
            span = f"from {self.nearest:g} to {self.farthest:g} m"
            return (
                f"'{frame}' is {distance:.2f} m away from camera '{self.frame}', which sees {span}"
            )
        if angle > self.field_of_view / 2:
            direction = f"{math.degrees(angle):.0f} degrees off its axis"
            return f"'{frame}' is out of sight of camera '{self.frame}', {direction}"
        return None


@dataclass(frozen=True)
class PlannedObservation:
    """Measurement of the pose of a frame from a camera.

    Attributes:
        frame: observed frame.
        camera: frame of the camera.
    """

    frame: str
    camera: str

    def measurement(
        self, scene: SceneGraph, *, q: NDArray[np.float64], measured_pose: Pose | None = None
    ) -> Measurement:
        """Return the measurement of the camera.

        Args:
            scene: scene before the observation.
            q: (n_joints,) configuration.
            measured_pose: camera_from_frame. Defaults to the expected pose.

        Raises:
            SceneError: if the camera is missing or an attribute is invalid.
        """
        model = CameraModel.of(scene, self.camera)
        pose = measured_pose
        if pose is None:
            pose = scene.pose(self.frame, relative_to=self.camera, q=q)
        return Measurement.of_pose(
            self.frame, pose, relative_to=self.camera, covariance=model.covariance
        )

    def simulate(self, world: SceneGraph, *, q: NDArray[np.float64], seed: int) -> Pose:
        """Return a simulated measurement of camera_from_frame, with random errors.

        Args:
            world: scene with the true poses.
            q: (n_joints,) configuration.
            seed: seed of the errors.

        Raises:
            SceneError: if the camera is missing or an attribute is invalid.
        """
        model = CameraModel.of(world, self.camera)
        deviations = np.sqrt(np.diag(model.covariance))
        error = deviations * np.random.default_rng(seed).standard_normal(6)
        return world.pose(self.frame, relative_to=self.camera, q=q) @ Pose.exp(error)

    def apply(self, scene: SceneGraph, *, q: NDArray[np.float64]) -> SceneGraph:
        """Return the scene after this observation with the expected measurement.

        Args:
            scene: scene before the observation.
            q: (n_joints,) configuration.

        Raises:
            SceneError: if the camera is missing, an attribute is invalid or a deviation is zero.
        """
        model = CameraModel.of(scene, self.camera)
        if path_noise(scene, self.frame, relative_to=self.camera, q=q) is None:
            return scene
        if not (model.position_deviation > 0.0 and model.turn_deviation > 0.0):
            reason = (
                f"camera '{self.camera}' has a deviation of zero, so its measurements have no"
                " finite weight"
            )
            raise SceneError(reason, frame=self.camera)
        return scene.condition(self.measurement(scene, q=q), q=q, max_iterations=1)


def apply_observations(
    scene: SceneGraph, observations: Iterable[PlannedObservation], *, q: NDArray[np.float64]
) -> SceneGraph:
    """Return the scene after observations, in order, with the expected measurements.

    Raises:
        SceneError: if a camera is missing or an attribute is invalid.
        UnknownNameError: if a frame is unknown.
    """
    for observation in observations:
        scene = observation.apply(scene, q=q)
    return scene
