"""Look action: an observation through a camera that reduces pose uncertainty.

A fixed camera observes from its own pose. A camera on an arm is first moved to a view above the
object, at one of a few distances, tilts and sides. The step of the plan ends with a
:class:`tmkit.plans.PlannedObservation`. Its scene is the one after the expected measurement.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; a view without the object is a
failure with its cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.observations import CameraModel, PlannedObservation, apply_observations
from tmkit.spatial import Pose

_DISTANCE_FRACTIONS = (0.5, 0.8, 0.2)
"""Distances of a view, as fractions of the camera's range, in the order of trial."""

_TILTS = (0.0, 0.35)
"""Angles between the view and the vertical [rad]."""

_SIDE_COUNT = 4
"""Number of rotations of a view about the vertical."""


@dataclass(frozen=True)
class Look(BuiltInCandidate):
    """Look at an object through a camera.

    Attributes:
        object: frame of the object.
        camera: frame of class ``camera``.
        arm: name of the arm that carries the camera, if any. Defaults to the first arm.

    Raises:
        SceneError: if the frame is not a camera or has no noise model, when refined.
    """

    object: str
    camera: str
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        scene = context.scene
        if arm.robot.tip not in (self.camera, *scene.ancestors(self.camera)):
            yield self._observe(ActionMotion((), scene, context.q, ""))
            return
        for root_from_camera in self._views(context):
            yield from self._move_and_observe(root_from_camera, arm, context, seed)

    def _views(self, context: ActionContext) -> Iterator[Pose]:
        """Yield poses root_from_camera of views of the object, vertical views first."""
        scene = context.scene
        model = CameraModel.of(scene, self.camera)
        point = scene.pose(
            self.object, relative_to=scene.root(self.object), q=context.q
        ).translation
        down = Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
        for tilt in _TILTS:
            for fraction in _DISTANCE_FRACTIONS:
                distance = model.nearest + fraction * (model.farthest - model.nearest)
                for side in range(_SIDE_COUNT):
                    rotation = Pose.exp([0.0, 0.0, 0.0, 0.0, 0.0, side * math.tau / _SIDE_COUNT])
                    inclination = Pose.exp([0.0, 0.0, 0.0, tilt, 0.0, 0.0])
                    back = Pose([0.0, 0.0, -distance])
                    yield Pose(point) @ rotation @ inclination @ down @ back

    def _move_and_observe(
        self, root_from_camera: Pose, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions of the camera to a view that end with an observation, and failures.

        Args:
            root_from_camera: pose of the camera at the view.
            arm: planner of the arm that carries the camera.
            context: scene and configuration before the action.
            seed: seed of inverse kinematics and of the path searches.
        """
        name = f"a view of {self.object}"
        attempts = arm.move(
            context.scene, context.q, to=root_from_camera, seed=seed, name=name, frame=self.camera
        )
        for attempt in attempts:
            yield attempt if isinstance(attempt, MotionFailure) else self._observe(attempt)

    def _observe(self, motion: ActionMotion) -> ActionMotion | MotionFailure:
        """Return a motion extended by the observation at its end, or the failure to observe."""
        camera = CameraModel.of(motion.scene, self.camera)
        fault = camera.fault(motion.scene, self.object, q=motion.q)
        if fault is not None:
            return MotionFailure("looking", fault, kind=FailureKind.NO_CHOICE)
        observations = (PlannedObservation(self.object, self.camera),)
        scene = apply_observations(motion.scene, observations, q=np.asarray(motion.q))
        choice = f"{self.object} from {self.camera}"
        return replace(motion, scene=scene, observations=observations, choice=choice)
