"""Candidates: the ways of carrying out an action, and what they are told.

A domain answers an action of the task plan with a lazy sequence of *candidates*, best first. They
are :class:`Pick` with a grasp, :class:`Place` with a resting place, :class:`MoveTo` with a
configuration, :class:`ApplyEffects` with classes of frames, :class:`Sequence` with several of
these, or :class:`DeadEnd` with a reason. A candidate is anything that can :meth:`Candidate.refine`
itself into motions, given an :class:`ActionContext`: the scene version in which it happens, the
arms, and the samplers.

Invariants: candidates are values; a context is made anew for each visit of a node, so its random
numbers depend on the way to that node and on nothing else.
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
from tmkit.plans.class_changes import ClassEffect, FactEffect, with_class_changes
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.observations import CovarianceRows
from tmkit.plans.values import Attachment, Configuration
from tmkit.spatial import Pose


@dataclass(frozen=True, eq=False)
class ActionContext:
    """Where an action is to be carried out.

    Attributes:
        scene: the version before the action.
        q: (n_joints,) configuration before the action.
        rng: random generator for sampled choices, seeded for this visit.
        sampling: the samplers of the planning run; None outside one.
        arms: computes the motions of each arm, by name; the first acts by default.
        asked: objects and supports for which placements were asked for so far, in this visit.
    """

    scene: SceneGraph
    q: Configuration
    rng: np.random.Generator
    sampling: SeededSamplers | None = None
    arms: Mapping[str, ArmMotionPlanner] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def samplers(self) -> Samplers:
        """Which sampler is asked for which object."""
        return self._sampling().samplers

    def grasps(self, object: str, *, arm: str | None = None) -> tuple[Grasp, ...]:
        """Return the grasps of an object by an arm; see :meth:`Sampling.grasps`.

        Args:
            object: the object.
            arm: name of the arm; the first by default.
        """
        manipulator = None if arm is None else self.arm(arm).manipulator
        return self._sampling().grasps(self.scene, object, manipulator=manipulator)

    def placements(
        self, object: str, support: str, *, arm: str | None = None
    ) -> Iterator[Placement]:
        """Yield placements of an object on a surface, in a region or on an object; see :meth:`Sampling.placements`.

        Args:
            object: the object.
            support: the surface, region or object.
            arm: name of the arm; the first by default.
        """
        self.asked.append((object, support))
        manipulator = None if arm is None else self.arm(arm).manipulator
        sampling = self._sampling()
        return sampling.placements(
            self.scene, object, support, q=self.q, rng=self.rng, manipulator=manipulator
        )

    def _sampling(self) -> SeededSamplers:
        if self.sampling is None:
            raise ConfigurationError(
                "this context was made without 'sampling', which computes grasps and placements"
            )
        return self.sampling

    def arm(self, name: str) -> ArmMotionPlanner:
        """Return the object that computes the motions of an arm.

        Raises:
            UnknownNameError: no such arm takes part.
        """
        if name not in self.arms:
            raise UnknownNameError.of("arm", name, self.arms)
        return self.arms[name]


@runtime_checkable
class Candidate(Protocol):
    """One way of carrying out an action."""

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions for it, and failures in between.

        Args:
            arm: computes the motions of the plan's first arm.
            context: where the action is to be carried out; its ``arms`` has all arms.
            seed: seed of all searches.
        """
        ...


class BuiltInCandidate(ABC):
    """A candidate of this package: carried out by the arm that it names, or by the first."""

    arm: str | None = None

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions of the action, and failures in between.

        Args:
            arm: computes motions of the first arm.
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
        grasp: how to hold it.
        arm: name of the arm; the first by default.
        motion: how the hand comes and leaves.
        grasp_covariance: the covariance that the closing hand adds, as
            :func:`tmkit.plans.observations.covariance_rows` gives it.
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
        support: frame that it settles on.
        pose: support_from_object.
        arm: name of the arm; the first by default.
        motion: how the hand comes and leaves.
        grasp_covariance: the covariance that the opening hand adds, as
            :func:`tmkit.plans.observations.covariance_rows` gives it.
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
            object: the object.
            placement: support, and pose relative to it.
            arm: name of the arm; the first by default.
        """
        return cls(object, placement.support, placement.support_from_object, arm)

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        change = Attachment(self.object, self.support, self.pose, self.grasp_covariance)
        return arm.place(context.scene, context.q, change=change, seed=seed, motion=self.motion)


@dataclass(frozen=True)
class MoveTo(BuiltInCandidate):
    """Move an arm to a configuration, with what the hand holds.

    Attributes:
        joints: where to go, radians or metres by joint of the arm; joints that are not named stay.
        name: what to call the place, for the plan and for failures.
        arm: name of the arm; the first by default.
        constraints: what frames keep along the path.
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
    """Change what frames are and move nothing: washing, cooking, switching on.

    Attributes:
        changes: the classes that frames gain and lose; task facts change as the action's effects
            state anyway.
        choice: what was chosen, in words, for the plan.

    Raises:
        SceneError: when refined, a class that is added though it is there, or removed though it is
            not.
    """

    changes: tuple[ClassEffect | FactEffect, ...]
    choice: str = ""

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm, seed
        yield ActionMotion(
            (),
            with_class_changes(context.scene, self.changes),
            context.q,
            self.choice,
            self.changes,
        )


@dataclass(frozen=True)
class DeadEnd(BuiltInCandidate):
    """An action is impossible in the current scene: yield this as the only candidate.

    Attributes:
        cause: why, in words, for the explanation; the same cause has the same words.
        is_proved: whether it is proved for every state; then no plan uses the action again. What
            rests on samples, as grasps of meshes do, on convex hulls, or on where things stand now
            is no such proof, and is tried again.
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
    """Carry out several candidates one after the other, each in the scene version that the one before it left.

    The search is depth first: when a later one fails, the earlier ones go on to their next motion.

    ``Sequence((Place(object, table, pose), Pick(object, other_grasp)))`` regrasps an object that is
    in the hand.

    Attributes:
        candidates: what to do, in order; at least one.
        object: frame of the object that it is about, if it is about one; failures are taken to
            depend on it.
    """

    candidates: tuple[Candidate, ...]
    object: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return self._after(ActionMotion((), context.scene, context.q, ""), 0, arm, context, seed)

    def _after(
        self,
        done: ActionMotion,
        index: int,
        arm: ArmMotionPlanner,
        context: ActionContext,
        seed: int,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions for the candidates from ``index`` on, behind what is done."""
        if index == len(self.candidates):
            yield done
            return
        here = replace(context, scene=done.scene, q=done.q)
        own_seed = int(np.random.SeedSequence((seed, index)).generate_state(1)[0])
        for attempt in self.candidates[index].refine(arm, here, seed=own_seed):
            if isinstance(attempt, MotionFailure):
                yield attempt
            else:
                yield from self._after(_joined(done, attempt), index + 1, arm, context, seed)


def _joined(first: ActionMotion, second: ActionMotion) -> ActionMotion:
    if first.observations and second.segments:
        looked = first.observations[0].frame
        raise ConfigurationError(
            f"a look at '{looked}' must end its sequence: what comes after it is another action"
        )
    return ActionMotion(
        (*first.segments, *second.segments),
        second.scene,
        second.q,
        ", then ".join(choice for choice in (first.choice, second.choice) if choice),
        (*first.changes, *second.changes),
        (*first.observations, *second.observations),
    )
