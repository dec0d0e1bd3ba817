"""Candidates: alternatives for the motion of one action, and their context.

For an action of the task plan, a domain returns a lazy sequence of *candidates*, best first. The
built-in classes are :class:`Pick` with a grasp, :class:`Place` with a placement, :class:`MoveTo`
with a configuration, :class:`ApplyEffects` with changes of classes, :class:`Sequence` with several
candidates, and :class:`DeadEnd` with a cause. A candidate is any object with the method
:meth:`Candidate.refine`, which computes motions in an :class:`ActionContext`: the scene version
before the action, the arms and the samplers.

Invariants: candidates are values. Each visit of a node gets a new context, so its random numbers
depend only on the path to that node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit._support.argument_errors import check_argument
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner, PickPlaceOptions
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import PathConstraint
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.observations import CovarianceRows
from tmkit.plans.values import Attachment, Configuration
from tmkit.spatial import Pose


@dataclass(frozen=True, eq=False)
class ActionContext:
    """Scene, configuration, samplers and arms before an action.

    Attributes:
        scene: version of the scene before the action.
        q: (n_joints,) configuration before the action.
        rng: random generator for sampled choices, seeded for this visit.
        sampling: samplers of the planning run. None outside a run.
        arms: motion planner of each arm, by name. The first arm acts by default.
        placement_requests: pairs of object and support whose placements were requested in this
            visit.
    """

    scene: SceneGraph
    q: Configuration
    rng: np.random.Generator
    sampling: SeededSamplers | None = None
    arms: Mapping[str, ArmMotionPlanner] = field(default_factory=dict)
    placement_requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def samplers(self) -> Samplers:
        """Samplers of grasps and placements by object."""
        return self._sampling().samplers

    def grasps(self, object: str, *, arm: str | None = None) -> tuple[Grasp, ...]:
        """Return the grasps of an object by an arm; see :meth:`SeededSamplers.grasps`.

        Args:
            object: frame of the object.
            arm: name of the arm. Defaults to the first arm.
        """
        robot = None if arm is None else self.arm(arm).robot
        return self._sampling().grasps(self.scene, object, robot=robot)

    def placements(
        self, object: str, support: str, *, arm: str | None = None
    ) -> Iterator[Placement]:
        """Yield placements of an object on a support; see :meth:`SeededSamplers.placements`.

        Args:
            object: frame of the object.
            support: frame of a surface, region or object.
            arm: name of the arm. Defaults to the first arm.
        """
        self.placement_requests.append((object, support))
        robot = None if arm is None else self.arm(arm).robot
        sampling = self._sampling()
        return sampling.placements(self.scene, object, support, q=self.q, rng=self.rng, robot=robot)

    def _sampling(self) -> SeededSamplers:
        """Return the samplers of the run.

        Raises:
            ConfigurationError: if the context has none.
        """
        if self.sampling is None:
            raise ConfigurationError(
                "this context was made without 'sampling', which computes grasps and placements"
            )
        return self.sampling

    def arm(self, name: str) -> ArmMotionPlanner:
        """Return the motion planner of an arm.

        Raises:
            UnknownNameError: if the context has no arm of this name.
        """
        if name not in self.arms:
            raise UnknownNameError.of("arm", name, self.arms)
        return self.arms[name]


@runtime_checkable
class Candidate(Protocol):
    """Protocol of an alternative for the motion of one action."""

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions of the action, and the failures of other attempts.

        Args:
            arm: motion planner of the plan's first arm.
            context: scene and configuration before the action, samplers, and all arms.
            seed: seed of all searches.
        """
        ...


class BuiltInCandidate(ABC):
    """Base class of the built-in candidates, which name their arm or use the first."""

    arm: str | None = None

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions of the action, and the failures of other attempts.

        Args:
            arm: motion planner of the first arm.
            context: scene and configuration before the action, samplers, and the other arms.
            seed: seed of all searches.
        """
        return self._motions(arm if self.arm is None else context.arm(self.arm), context, seed)

    @abstractmethod
    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]: ...


@dataclass(frozen=True)
class Pick(BuiltInCandidate):
    """Pick an object with one grasp.

    Attributes:
        object: frame of the object.
        grasp: pose of the tool relative to the object, and gripper widths.
        arm: name of the arm. Defaults to the first arm.
        motion: distances, finger opening and constraints.
        grasp_covariance: (6, 6) covariance that closing the hand adds to the object's pose, from
            :func:`tmkit.plans.observations.covariance_rows`. Defaults to none.
    """

    object: str
    grasp: Grasp
    arm: str | None = None
    motion: PickPlaceOptions = field(default_factory=PickPlaceOptions)
    grasp_covariance: CovarianceRows | None = None

    def __post_init__(self) -> None:
        check_argument(self.object, str, "object", function="Pick")
        check_argument(self.grasp, Grasp, "grasp", function="Pick")

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return arm.pick(
            context.scene,
            context.q,
            object=self.object,
            grasp=self.grasp,
            seed=seed,
            motion=self.motion,
            grasp_covariance=self.grasp_covariance,
        )


@dataclass(frozen=True)
class Place(BuiltInCandidate):
    """Place the held object at rest on a support.

    Attributes:
        object: frame of the object.
        support: frame of the support.
        pose: support_from_object.
        arm: name of the arm. Defaults to the first arm.
        motion: distances, finger opening and constraints.
        grasp_covariance: (6, 6) covariance that opening the hand adds to the object's pose, from
            :func:`tmkit.plans.observations.covariance_rows`. Defaults to none.
    """

    object: str
    support: str
    pose: Pose
    arm: str | None = None
    motion: PickPlaceOptions = field(default_factory=PickPlaceOptions)
    grasp_covariance: CovarianceRows | None = None

    def __post_init__(self) -> None:
        check_argument(self.object, str, "object", function="Place")
        check_argument(self.support, str, "support", function="Place")
        check_argument(self.pose, Pose, "pose", function="Place")

    @classmethod
    def at(cls, object: str, placement: Placement, *, arm: str | None = None) -> Place:
        """Return the candidate that puts an object at a placement.

        Args:
            object: frame of the object.
            placement: support, and pose of the object on it.
            arm: name of the arm. Defaults to the first arm.
        """
        return cls(object, placement.support, placement.support_from_object, arm)

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        change = Attachment(self.object, self.support, self.pose, self.grasp_covariance)
        return arm.place(context.scene, context.q, change=change, seed=seed, motion=self.motion)


@dataclass(frozen=True)
class MoveTo(BuiltInCandidate):
    """Move an arm to a configuration, with any held object.

    Attributes:
        joints: goal values by joint of the arm [rad or m]. Other joints keep their values.
        name: name of the goal in the plan and in failures.
        arm: name of the arm. Defaults to the first arm.
        constraints: path constraints.
    """

    joints: Mapping[str, float]
    name: str
    arm: str | None = None
    constraints: tuple[PathConstraint, ...] = ()

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return arm.move(
            context.scene,
            context.q,
            joints=self.joints,
            name=self.name,
            seed=seed,
            constraints=self.constraints,
        )


@dataclass(frozen=True)
class ApplyEffects(BuiltInCandidate):
    """Change classes of frames without motion: washing, cooking, switching on.

    Attributes:
        changes: classes that frames gain and lose. Task facts change by the action's effects, with
            or without an entry here.
        choice: description of the choice, for the plan.

    Raises:
        SceneError: if a frame already has an added class or lacks a removed one, when refined.
    """

    changes: tuple[ClassEffect | FactEffect, ...]
    choice: str = ""

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm, seed
        yield ActionMotion(
            (), apply_effects(context.scene, self.changes), context.q, self.choice, self.changes
        )


@dataclass(frozen=True)
class DeadEnd(BuiltInCandidate):
    """The only candidate of an action that is impossible in the current scene.

    Attributes:
        cause: message for the explanation. Equal causes have equal messages.
        is_proved: whether the action is proved impossible in every state, so that no plan uses it
            again. An argument from samples (as of grasps of meshes), from convex hulls or from the
            current poses is not such a proof, and the action is tried again.
    """

    cause: str
    is_proved: bool = False

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm, context, seed
        yield MotionFailure(
            "choosing", self.cause, is_proved=self.is_proved, kind=FailureKind.NO_CHOICE
        )


@dataclass(frozen=True)
class Sequence(BuiltInCandidate):
    """Execute several candidates in sequence, each in the scene after the one before it.

    The search is depth first: if a later candidate fails, the earlier ones yield their next motion.
    ``Sequence((Place(object, table, pose), Pick(object, other_grasp)))`` regrasps a held object.

    Attributes:
        candidates: candidates in order of execution, at least one.
        object: frame of the object of the action, if there is one. The planner assumes that
            failures depend on it.
    """

    candidates: tuple[Candidate, ...]
    object: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        start = ActionMotion((), context.scene, context.q, "")
        return self._extend(start, 0, arm, context, seed)

    def _extend(
        self,
        motion: ActionMotion,
        index: int,
        arm: ArmMotionPlanner,
        context: ActionContext,
        seed: int,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield a motion extended by the candidates from ``index`` on, and failures."""
        if index == len(self.candidates):
            yield motion
            return
        candidate_context = replace(context, scene=motion.scene, q=motion.q)
        candidate_seed = int(np.random.SeedSequence((seed, index)).generate_state(1)[0])
        attempts = self.candidates[index].refine(arm, candidate_context, seed=candidate_seed)
        for attempt in attempts:
            if isinstance(attempt, MotionFailure):
                yield attempt
            else:
                longer = _concatenate(motion, attempt)
                yield from self._extend(longer, index + 1, arm, context, seed)


def _concatenate(first: ActionMotion, second: ActionMotion) -> ActionMotion:
    """Return one motion made of two.

    Raises:
        ConfigurationError: if the second moves an arm after an observation of the first.
    """
    if first.observations and second.segments:
        frame = first.observations[0].frame
        raise ConfigurationError(
            f"a look at '{frame}' must end its sequence: motions after it are another action"
        )
    return ActionMotion(
        (*first.segments, *second.segments),
        second.scene,
        second.q,
        ", then ".join(choice for choice in (first.choice, second.choice) if choice),
        (*first.changes, *second.changes),
        (*first.observations, *second.observations),
    )
