"""Looking: an uncertain scene is measured through a camera, and what is not sure becomes surer.

A camera that is fixed looks from where it is. One that an arm carries is brought to a view first:
above the object, looking down at it from one of a few distances and sides. Either way the step of
the plan ends with an :class:`tmkit.plans.PlannedObservation`, and its scene is the one that follows
when what is expected is measured.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; a look that does not see its object
is a failure, which says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.observations import CameraModel, PlannedObservation, with_observations
from tmkit.spatial import Pose

# shares of the way from the nearest to the farthest that a camera sees
_DISTANCES = (0.5, 0.8, 0.2)
_TILTS = (0.0, 0.35)  # radians by which the view may lean
_SIDES = 4


@dataclass(frozen=True)
class Look(BuiltInCandidate):
    """Look at an object through a camera.

    Attributes:
        object: frame of the object.
        camera: frame of class ``camera``.
        arm: name of the arm that carries the camera, should one do so; the first by default.

    Raises:
        SceneError: when refined, the frame is no camera, or does not say how well it sees.
    """

    object: str
    camera: str
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        scene = context.scene
        if arm.manipulator.tip not in (self.camera, *scene.ancestors(self.camera)):
            yield self._seen(ActionMotion((), scene, context.q, ""))
            return
        for root_from_camera in self._views(context):
            yield from self._from(root_from_camera, arm, context, seed)

    def _views(self, context: ActionContext) -> Iterator[Pose]:
        """Yield root_from_camera from where the object is seen, from straight above first."""
        scene = context.scene
        model = CameraModel.of(scene, self.camera)
        point = scene.pose(
            self.object, relative_to=scene.root(self.object), q=context.q
        ).translation
        down = Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
        for tilt in _TILTS:
            for share in _DISTANCES:
                distance = model.nearest + share * (model.farthest - model.nearest)
                for side in range(_SIDES):
                    turn = Pose.exp([0.0, 0.0, 0.0, 0.0, 0.0, side * math.tau / _SIDES])
                    lean = Pose.exp([0.0, 0.0, 0.0, tilt, 0.0, 0.0])
                    yield Pose(point) @ turn @ lean @ down @ Pose([0.0, 0.0, -distance])

    def _from(
        self, root_from_camera: Pose, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that bring the camera to a view, and look."""
        scene, q, primitives = context.scene, context.q, arm.primitives
        root_from_tool = root_from_camera @ scene.pose(
            arm.manipulator.tool, relative_to=self.camera, q=q
        )
        phase = primitives.phase(
            scene, primitives.near_pairs(scene, q), contact_object=primitives.rules.held(scene)
        )
        for found in primitives.contacts(
            phase, root_from_tool, q=q, seed=seed, label="reaching a view"
        ):
            if isinstance(found, MotionFailure):
                yield found
                continue
            there = dict(
                zip(
                    arm.manipulator.joints,
                    found[arm.manipulator.joint_indices(scene)].tolist(),
                    strict=True,
                )
            )
            for attempt in arm.move(
                scene, q, joints=there, name=f"a view of {self.object}", seed=seed
            ):
                yield attempt if isinstance(attempt, MotionFailure) else self._seen(attempt)

    def _seen(self, there: ActionMotion) -> ActionMotion | MotionFailure:
        """Return what a look from where the arm is now leads to, or why the object is not seen."""
        fault = CameraModel.of(there.scene, self.camera).fault(there.scene, self.object, q=there.q)
        if fault is not None:
            return MotionFailure("looking", fault, kind=FailureKind.NO_CHOICE)
        looked = (PlannedObservation(self.object, self.camera),)
        q = np.asarray(there.q)
        scene = with_observations(there.scene, looked, q=q)
        return replace(
            there, scene=scene, observations=looked, choice=f"{self.object} from {self.camera}"
        )
