"""Candidates: alternatives for the motion of one action, and their context.

For an action of the task plan, a domain returns a lazy sequence of *candidates*, best first. The
built-in classes are :class:`Pick` with a grasp, :class:`Place` with a placement,
:class:`ApplyEffects` with changes of classes, and :class:`DeadEnd` with a cause. The building
blocks of other actions are :class:`MoveTo`, :class:`MoveStraight`, :class:`Touch`,
:class:`CloseHand`, :class:`OpenHand` and :class:`Follow`; :class:`Sequence` joins them. A candidate
is any object with the method :meth:`Candidate.refine`, which computes motions in an
:class:`ActionContext`: the scene version before the action, the arms and the samplers.

Invariants: candidates are values. Each visit of a node gets a new context, so its random numbers
depend only on the path to that node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit._support.initialization import initialize
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph, diff
from tmkit.manipulation.actions.basic_motions import ActionMotion, Goal
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner, PickPlaceOptions
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import PathConstraint
from tmkit.pddl import GroundAction
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.observations import CovarianceRows
from tmkit.plans.values import Attachment, Configuration
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

_MAX_START_OFFSET = 1e-6
"""Largest offset of a joint from the start of a planned motion [rad or m]."""


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

    def __post_init__(self) -> None:
        check_argument(self.scene, SceneGraph, "scene", function="ActionContext")
        check_argument(
            self.sampling, (SeededSamplers, NoneType), "sampling", function="ActionContext"
        )
        hint = "write {robot.name: ArmMotionPlanner(robot)}"
        check_argument(self.arms, Mapping, "arms", function="ActionContext", hint=hint)
        for arm in self.arms.values():
            check_argument(arm, ArmMotionPlanner, "arms", function="ActionContext", hint=hint)

    @property
    def samplers(self) -> Samplers:
        """Samplers of grasps and placements by object."""
        return self.require_sampling().samplers

    def grasps(self, object: str, *, arm: str | None = None) -> tuple[Grasp, ...]:
        """Return the grasps of an object by an arm; see :meth:`SeededSamplers.grasps`.

        Args:
            object: frame of the object.
            arm: name of the arm. Defaults to the first arm.
        """
        robot = None if arm is None else self.arm(arm).robot
        return self.require_sampling().grasps(self.scene, object, robot=robot)

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
        sampling = self.require_sampling()
        return sampling.placements(self.scene, object, support, q=self.q, rng=self.rng, robot=robot)

    def require_sampling(self) -> SeededSamplers:
        """Return the samplers of the run.

        Raises:
            ConfigurationError: if the context has none.
        """
        if self.sampling is None:
            raise ConfigurationError(
                "this context was made without 'sampling', which computes grasps and placements;"
                " PlanningDomain.context makes one with it"
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
        check_argument(arm, ArmMotionPlanner, "arm", function="refine")
        check_argument(context, ActionContext, "context", function="refine")
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
        check_argument(placement, Placement, "placement", function="Place.at")
        return cls(object, placement.support, placement.support_from_object, arm)

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        change = Attachment(self.object, self.support, self.pose, self.grasp_covariance)
        return arm.place(context.scene, context.q, change=change, seed=seed, motion=self.motion)


@dataclass(frozen=True)
class MoveTo(BuiltInCandidate):
    """Move an arm to a configuration or pose along a searched path, with any held object.

    Attributes:
        to: values by joint of the arm, a configuration (n_joints,), of which the arm's joints count
            [rad or m], or the pose of ``frame`` in the root. Other joints keep their values.
        name: name of the goal in the plan and in failures.
        arm: name of the arm. Defaults to the first arm.
        constraints: path constraints.
        frame: frame that moves with the hand, such as a held object, whose pose is the goal.
            Defaults to the tool.
    """

    to: Goal
    name: str = "the goal"
    arm: str | None = None
    constraints: tuple[PathConstraint, ...] = ()
    frame: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.to, Pose | Mapping):
            initialize(self, to=tuple(plain_numbers(self.to, "to").tolist()))

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return arm.move(
            context.scene,
            context.q,
            to=self.to,
            seed=seed,
            name=self.name,
            frame=self.frame,
            constraints=self.constraints,
        )

    def goal_configurations(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[Configuration | MotionFailure]:
        """Yield the configurations (n_joints,) of the goal, and failures.

        Args:
            arm: motion planner of the first arm.
            context: scene and configuration before the motion, and the other arms.
            seed: seed of inverse kinematics.
        """
        arm = arm if self.arm is None else context.arm(self.arm)
        return arm.goal_configurations(
            context.scene, context.q, to=self.to, seed=seed, name=self.name, frame=self.frame
        )

    def connect(
        self, arm: ArmMotionPlanner, context: ActionContext, goal: Configuration, *, seed: int
    ) -> ActionMotion | MotionFailure:
        """Return the motion along a searched path to a configuration, or its failure.

        Args:
            arm: motion planner of the first arm.
            context: scene and configuration before the motion, and the other arms.
            goal: (n_joints,) configuration from :meth:`goal_configurations`.
            seed: seed of the path search.
        """
        arm = arm if self.arm is None else context.arm(self.arm)
        return arm.connect(
            context.scene, context.q, goal, seed=seed, name=self.name, constraints=self.constraints
        )


@dataclass(frozen=True)
class MoveStraight(BuiltInCandidate):
    """Move the tool along a straight line, in contact with the frames that it names.

    Attributes:
        by: (3,) translation in root axes [m], or pose of the tool at the end relative to the tool
            at the start.
        to: pose of the tool at the end in the root, instead of ``by``.
        touching: frames that the held object, or the fingers and tool of an empty hand, touch.
        arm: name of the arm. Defaults to the first arm.
        constraints: path constraints.

    Raises:
        ConfigurationError: if not exactly one of ``by`` and ``to`` is given, when refined.
    """

    by: ArrayLike | Pose | None = None
    to: Pose | None = None
    touching: tuple[str, ...] = ()
    arm: str | None = None
    constraints: tuple[PathConstraint, ...] = ()

    def __post_init__(self) -> None:
        check_argument(self.touching, tuple, "touching", function="MoveStraight")
        if self.by is not None and not isinstance(self.by, Pose):
            initialize(self, by=tuple(plain_numbers(self.by, "by", "m").tolist()))

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del seed
        return arm.move_straight(
            context.scene,
            context.q,
            by=self.by,
            to=self.to,
            touching=self.touching,
            constraints=self.constraints,
        )


@dataclass(frozen=True)
class Touch(BuiltInCandidate):
    """Move the tool along a straight line until the hand or its load touches a frame.

    Attributes:
        frame: frame to touch with the held object, or with the fingers and tool of an empty hand.
        by: longest motion: (3,) translation in root axes [m], or a translation relative to the
            tool, as a pose without rotation.
        depth: length of the motion after the first contact [m], such as the travel of a button.
        arm: name of the arm. Defaults to the first arm.

    Raises:
        ConfigurationError: if the depth is more than the contact rules allow, when refined.
    """

    frame: str
    by: ArrayLike | Pose
    depth: float = 0.0
    arm: str | None = None

    def __post_init__(self) -> None:
        check_argument(self.frame, str, "frame", function="Touch")
        if not isinstance(self.by, Pose):
            initialize(self, by=tuple(plain_numbers(self.by, "by", "m").tolist()))

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del seed
        return arm.touch(context.scene, context.q, frame=self.frame, by=self.by, depth=self.depth)


@dataclass(frozen=True)
class CloseHand(BuiltInCandidate):
    """Close the hand while the arm is at rest, and grasp an object if one is named.

    Attributes:
        object: object that becomes a child of the hand. Defaults to none.
        width: gripper width after the motion [m]. Defaults to fully closed.
        arm: name of the arm. Defaults to the first arm.
    """

    object: str | None = None
    width: float | None = None
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del seed
        return arm.close(context.scene, context.q, object=self.object, width=self.width)


@dataclass(frozen=True)
class OpenHand(BuiltInCandidate):
    """Open the hand while the arm is at rest, and release the held object on a frame.

    Attributes:
        parent: frame that supports the held object, which becomes its child. Required if the hand
            holds an object.
        width: gripper width after the motion [m]. Defaults to fully open, or less if the object
            blocks the fingers.
        arm: name of the arm. Defaults to the first arm.
    """

    parent: str | None = None
    width: float | None = None
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del seed
        return arm.open(context.scene, context.q, width=self.width, parent=self.parent)


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


@dataclass(frozen=True, eq=False)
class Follow(BuiltInCandidate):
    """Carry out a motion that is planned already, such as a value of a stream.

    Attributes:
        motion: motion that starts in the scene and at the configuration before the action. Its
            collisions are not checked again.

    Raises:
        ConfigurationError: if the motion starts elsewhere or in another scene, when refined.
    """

    motion: ActionMotion

    def __post_init__(self) -> None:
        check_argument(self.motion, ActionMotion, "motion", function="Follow")

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm, seed
        self._check_start(context)
        yield self.motion

    def _check_start(self, context: ActionContext) -> None:
        """Check that the motion leads from a context to its own scene and configuration.

        Raises:
            ConfigurationError: if it does not.
        """
        motion, label = self.motion, f"the motion '{self.motion.choice}'"
        for segment in motion.segments[:1]:
            entries = [context.scene.joint_names.index(joint) for joint in segment.joint_names]
            offsets = np.abs(segment.path[0] - np.asarray(context.q)[entries])
            if np.max(offsets) > _MAX_START_OFFSET:
                joint = segment.joint_names[int(np.argmax(offsets))]
                raise ConfigurationError(
                    f"{label} starts {np.max(offsets):.3g} rad or m from the configuration before"
                    f" the action, in joint '{joint}'",
                    joint=joint,
                )
        scene, _ = motion.step(GroundAction("follow", ())).end(context.scene, context.q)
        if scene != motion.scene:
            raise ConfigurationError(
                f"{label} was planned in another scene: {diff(scene, motion.scene)}"
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


_STRAIGHT_PARTS = (MoveStraight, Touch, CloseHand, OpenHand, ApplyEffects)
"""Candidates that need no path search."""


@dataclass(frozen=True)
class Sequence(BuiltInCandidate):
    """Execute several candidates in sequence, each in the scene after the one before it.

    The search is depth first: if a later candidate fails, the earlier ones yield their next motion.
    ``Sequence((Place(object, table, pose), Pick(object, other_grasp)))`` regrasps a held object.

    Straight lines and hand motions after a :class:`MoveTo` are planned from each configuration at
    its goal, before the path to it. A path search is the most expensive step and runs last, as in
    MoveIt Task Constructor.

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
        search = _SequenceSearch(self.candidates, arm, context, seed)
        return search.extend(start, 0, len(self.candidates))


@dataclass(frozen=True, eq=False)
class _SequenceSearch:
    """Depth-first search over the motions of candidates in sequence.

    Attributes:
        candidates: candidates in order of execution.
        arm: motion planner of the first arm.
        context: scene and configuration before the first candidate.
        seed: seed of all searches.
    """

    candidates: tuple[Candidate, ...]
    arm: ArmMotionPlanner
    context: ActionContext
    seed: int

    def extend(
        self, motion: ActionMotion, index: int, end: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield a motion extended by the candidates from ``index`` to ``end``, and failures."""
        if index == end:
            yield motion
            return
        candidate = self.candidates[index]
        last = self._end_of_straight_part(index)
        if isinstance(candidate, MoveTo) and last > index + 1:
            attempts = self._reach(candidate, motion, index, last)
        else:
            last = index + 1
            attempts = candidate.refine(
                self.arm, self._context_after(motion), seed=self._seed_of(index)
            )
        for attempt in attempts:
            if isinstance(attempt, MotionFailure):
                yield attempt
            else:
                yield from self.extend(_concatenate(motion, attempt), last, end)

    def _reach(
        self, candidate: MoveTo, motion: ActionMotion, index: int, last: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions to a goal and along the straight part that follows it, and failures.

        Args:
            candidate: free motion.
            motion: motion before it.
            index: index of the free motion.
            last: index after the straight part.
        """
        context, seed = self._context_after(motion), self._seed_of(index)
        for goal in candidate.goal_configurations(self.arm, context, seed=seed):
            if isinstance(goal, MotionFailure):
                yield goal
                continue
            for straight in self.extend(ActionMotion((), motion.scene, goal, ""), index + 1, last):
                if isinstance(straight, MotionFailure):
                    yield straight
                    continue
                path = candidate.connect(self.arm, context, goal, seed=seed)
                if isinstance(path, MotionFailure):
                    yield path
                    break
                yield _concatenate(path, straight)

    def _end_of_straight_part(self, index: int) -> int:
        """Return the index after the candidates without path search that follow ``index``."""
        end = index + 1
        while end < len(self.candidates) and isinstance(self.candidates[end], _STRAIGHT_PARTS):
            end += 1
        return end

    def _context_after(self, motion: ActionMotion) -> ActionContext:
        """Return the context after a motion."""
        return replace(self.context, scene=motion.scene, q=motion.q)

    def _seed_of(self, index: int) -> int:
        """Return the seed of a candidate."""
        return int(np.random.SeedSequence((self.seed, index)).generate_state(1)[0])


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
