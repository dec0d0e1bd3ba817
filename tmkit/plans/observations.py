"""Observations of an action in an uncertain scene: looks through cameras, and the errors that handling adds.

A *camera* is a frame of class ``camera`` that looks along its z axis; how well it sees is said by
attributes of the frame, so the scene has it and not the plan:

=========================  ==========================================================================================
``position_deviation``     metres: standard deviation of the measured position, along each axis
``turn_deviation``         radians: standard deviation of the measured turn, about each axis
``field_of_view``          radians: the full angle of the cone in which it sees
``nearest``, ``farthest``  metres between which it sees
=========================  ==========================================================================================

An :class:`PlannedObservation` is one look: the pose of a frame is measured from a camera. While
planning it is unknown what will be measured, so a plan takes what is expected: means stay where
they are, and covariances shrink as they would whatever is measured, to first order. So the scene
after a look is a function of the scene before it and nothing else.

Execution of a plan yields real measurements. They move the means too, and the rest is planned anew
from there.

Invariants: a look without errors to remove changes nothing; the expected measurement moves no mean.
What is in front of what is not asked.
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
"""A covariance (6, 6) of [rho, theta] as a value: six rows of six numbers."""


def covariance_rows(covariance: ArrayLike) -> CovarianceRows:
    """Return a covariance (6, 6) of [rho, theta], in metres and radians, as a value that can be compared and stored.

    Raises:
        SceneError: another shape, or entries that are not finite. Whether it is positive, the scene
            says.
    """
    matrix = plain_numbers(covariance, "covariance")
    if matrix.shape != (6, 6) or not np.all(np.isfinite(matrix)):
        raise SceneError(f"a covariance of a pose is (6, 6) and finite, not {matrix.shape}")
    return tuple(tuple(float(value) for value in row) for row in matrix)


@dataclass(frozen=True)
class CameraModel:
    """What a camera sees, and how well.

    Attributes:
        frame: its frame; it looks along z.
        position_deviation: metres along each axis.
        turn_deviation: radians about each axis.
        field_of_view: radians, the full angle of its cone.
        nearest: metres from which on it sees.
        farthest: metres up to which it sees.
    """

    frame: str
    position_deviation: float
    turn_deviation: float
    field_of_view: float
    nearest: float
    farthest: float

    @classmethod
    def of(cls, scene: SceneGraph, frame: str) -> CameraModel:
        """Return the model that a frame's attributes describe.

        Args:
            scene: the scene.
            frame: frame of the class ``camera``.

        Raises:
            SceneError: the frame is no camera, or an attribute is missing, negative or no number.
        """
        if "camera" not in scene.classes(frame):
            cameras = ", ".join(scene.frames_of_class("camera")) or "none"
            raise SceneError(
                f"frame '{frame}' is no camera (class 'camera': {cameras})", frame=frame
            )
        said = scene.attributes(frame)
        names = ("position_deviation", "turn_deviation", "field_of_view", "nearest", "farthest")
        for name in names:
            value = said.get(name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not (0.0 <= value < math.inf)
            ):
                what = (
                    f"camera '{frame}' needs the attribute '{name}', a number that is not negative"
                )
                raise SceneError(f"{what}, not {value!r}", frame=frame)
        return cls(frame, *(float(said[name]) for name in names))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(6, 6) of a measured pose, [rho, theta] in the axes of what is seen."""
        return np.diag(
            [self.position_deviation * self.position_deviation] * 3
            + [self.turn_deviation * self.turn_deviation] * 3
        )

    def fault(self, scene: SceneGraph, frame: str, *, q: NDArray[np.float64]) -> str | None:
        """Return why the origin of a frame is not visible; None if it is.

        Args:
            scene: the scene.
            frame: the frame.
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
            off = f"{math.degrees(angle):.0f} degrees off its axis"
            return f"'{frame}' is out of sight of camera '{self.frame}', {off}"
        return None


@dataclass(frozen=True)
class PlannedObservation:
    """One look: the pose of a frame is measured from a camera.

    Attributes:
        frame: the frame that is seen.
        camera: the frame of the camera.
    """

    frame: str
    camera: str

    def measurement(
        self, scene: SceneGraph, *, q: NDArray[np.float64], seen: Pose | None = None
    ) -> Measurement:
        """Return what the camera measures.

        Args:
            scene: the scene in which it looks.
            q: (n_joints,) configuration.
            seen: camera_from_frame as it was measured; what is expected by default.

        Raises:
            SceneError: no such camera, or none that says how well it sees.
        """
        model = CameraModel.of(scene, self.camera)
        pose = scene.pose(self.frame, relative_to=self.camera, q=q) if seen is None else seen
        return Measurement.of_pose(
            self.frame, pose, relative_to=self.camera, covariance=model.covariance
        )

    def taken(self, world: SceneGraph, *, q: NDArray[np.float64], seed: int) -> Pose:
        """Return camera_from_frame as a camera with its errors measures it in a world, for simulating looks.

        Args:
            world: the scene as it truly is.
            q: (n_joints,) configuration.
            seed: of the errors; the same seed gives the same ones.

        Raises:
            SceneError: no such camera, or none that says how well it sees.
        """
        model = CameraModel.of(world, self.camera)
        deviations = np.sqrt(np.diag(model.covariance))
        error = deviations * np.random.default_rng(seed).standard_normal(6)
        return world.pose(self.frame, relative_to=self.camera, q=q) @ Pose.exp(error)

    def expected(self, scene: SceneGraph, *, q: NDArray[np.float64]) -> SceneGraph:
        """Return the scene after this observation, if the expected pose is measured.

        Args:
            scene: the scene before it.
            q: (n_joints,) configuration.

        Raises:
            SceneError: no such camera, or none that says how well it sees.
        """
        model = CameraModel.of(scene, self.camera)
        if path_noise(scene, self.frame, relative_to=self.camera, q=q) is None:
            return scene
        if not (model.position_deviation > 0.0 and model.turn_deviation > 0.0):
            what = (
                f"camera '{self.camera}' has a deviation of zero, so what it measures could not be"
                " weighed"
            )
            raise SceneError(what, frame=self.camera)
        return scene.condition(self.measurement(scene, q=q), q=q, max_iterations=1)


def with_observations(
    scene: SceneGraph, observations: Iterable[PlannedObservation], *, q: NDArray[np.float64]
) -> SceneGraph:
    """Return the scene after observations, in order, if the expected poses are measured.

    Raises:
        SceneError: no such camera, or none that says how well it sees.
        UnknownNameError: no such frame.
    """
    for observation in observations:
        scene = observation.expected(scene, q=q)
    return scene
