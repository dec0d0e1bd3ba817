"""Domain semantics: what the words of a PDDL domain mean in a scene.

A domain is a PDDL file and a file ``semantics.py`` (:mod:`tmkit.planner.domains` loads them). The latter defines a
class ``Semantics`` with the four members of :class:`DomainSemantics`: which objects a scene has, which facts hold in
it, which objects a task plan should speak of, and how an action may be carried out. The last is a lazy sequence of
*candidates*: :class:`Pick` with a grasp, :class:`Place` with a resting place, :class:`MoveTo` with a configuration,
:class:`Change` with classes of frames, or anything else that can :meth:`Candidate.refine` itself. It may have the
member of :class:`GoalSemantics` too, which says what a scene means that is a goal, that of
:class:`ConfiguredSemantics`, when facts depend on where the arm is, and that of :class:`ProvingSemantics`, when it can
prove that a goal is impossible.

The PDDL state is always derived from the scene, never kept beside it. After each action the planner derives the state
of the new version and compares it with what PDDL predicts; a difference is an error in the domain, and it is named.

Invariants: a semantics has no state of its own but its arms; equal scenes give equal objects, states and candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.planner.arm_motion import ArmMotion, Refinement
from tmkit.planner.class_changes import ClassChange, with_class_changes
from tmkit.planner.failures import FailureKind, MotionFailure
from tmkit.planner.grasps import Grasp
from tmkit.planner.placements import Placement
from tmkit.planner.refutations import Refutation
from tmkit.planner.samplers import Samplers, Sampling
from tmkit.planner.values import Configuration
from tmkit.spatial import Pose
from tmkit.tasks import Fact, GroundAction, State

__all__ = [
    "ActionContext",
    "Candidate",
    "Change",
    "ConfiguredSemantics",
    "DomainSemantics",
    "GoalSemantics",
    "Impossible",
    "MoveTo",
    "Pick",
    "Place",
    "PlacementSemantics",
    "ProvingSemantics",
    "pddl_name",
]


@dataclass(frozen=True, eq=False)
class ActionContext:
    """Where an action is to be carried out.

    Attributes:
        scene: the version before the action.
        q: (n_joints,) configuration before the action.
        rng: random generator for sampled choices, seeded for this visit.
        sampling: the samplers of the planning run; None outside one.
        arms: works out the motions of each arm, by name; the first is the one that acts when nobody says which.
        asked: objects and supports for which placements were asked for so far, in this visit.
    """

    scene: SceneGraph
    q: Configuration
    rng: np.random.Generator
    sampling: Sampling | None = None
    arms: Mapping[str, ArmMotion] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def samplers(self) -> Samplers:
        """Which sampler is asked for which object."""
        return self._sampling().samplers

    def grasps(self, item: str, *, robot: str | None = None) -> tuple[Grasp, ...]:
        """Return the grasps of an object by an arm, the first unless another is named; see :meth:`Sampling.grasps`."""
        arm = None if robot is None else self.arm(robot).manipulator
        return self._sampling().grasps(self.scene, item, manipulator=arm)

    def placements(self, item: str, support: str, *, robot: str | None = None) -> Iterator[Placement]:
        """Yield placements of an object on a surface, in a region or on an object; see :meth:`Sampling.placements`."""
        self.asked.append((item, support))
        arm = None if robot is None else self.arm(robot).manipulator
        return self._sampling().placements(self.scene, item, support, q=self.q, rng=self.rng, manipulator=arm)

    def _sampling(self) -> Sampling:
        if self.sampling is None:
            raise ConfigurationError("this context was made without 'sampling', so it knows no grasps and placements")
        return self.sampling

    def arm(self, name: str) -> ArmMotion:
        """Return what works out the motions of an arm.

        Raises:
            UnknownNameError: no such arm takes part.
        """
        if name not in self.arms:
            raise UnknownNameError.of("arm", name, self.arms)
        return self.arms[name]


class Candidate(Protocol):
    """One way of carrying out an action."""

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between.

        Args:
            arm: works out the motions of the plan's first arm.
            context: where the action is to be carried out; its ``arms`` has all arms.
            seed: seed of all searches.
        """
        ...


@dataclass(frozen=True)
class Pick:
    """Pick an object with one grasp.

    Attributes:
        item: frame of the object.
        grasp: how to hold it.
        robot: name of the arm; the first when left out.
    """

    item: str
    grasp: Grasp
    robot: str | None = None

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between."""
        arm = arm if self.robot is None else context.arm(self.robot)
        return arm.pick(context.scene, context.q, item=self.item, grasp=self.grasp, seed=seed)


@dataclass(frozen=True)
class Place:
    """Place the held object at rest on a support.

    Attributes:
        item: frame of the object.
        support: frame that it comes to rest on.
        pose: support_from_item.
        robot: name of the arm; the first when left out.
    """

    item: str
    support: str
    pose: Pose
    robot: str | None = None

    @classmethod
    def at(cls, item: str, placement: Placement, *, robot: str | None = None) -> Place:
        """Return the candidate that puts an object where a placement says, with the first arm or a named one."""
        return cls(item, placement.support, placement.support_from_item, robot)

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between."""
        arm = arm if self.robot is None else context.arm(self.robot)
        return arm.place(context.scene, context.q, item=self.item, support=self.support, pose=self.pose, seed=seed)


@dataclass(frozen=True)
class MoveTo:
    """Move an arm to a configuration, with what the hand holds.

    Attributes:
        joints: where to go, radians or metres by joint of the arm; joints that are not named stay.
        name: what to call the place, for the plan and for failures.
        robot: name of the arm; the first when left out.
    """

    joints: Mapping[str, float]
    name: str
    robot: str | None = None

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield the motion to it, or why there is none."""
        arm = arm if self.robot is None else context.arm(self.robot)
        return arm.move(context.scene, context.q, joints=self.joints, name=self.name, seed=seed)


@dataclass(frozen=True)
class Change:
    """Change what frames are and move nothing: washing, cooking, switching on.

    Attributes:
        changes: the classes that frames gain and lose.
        choice: what was chosen, in words, for the plan.
    """

    changes: tuple[ClassChange, ...]
    choice: str = ""

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield the one way to do it.

        Raises:
            SceneError: a class that is added though it is there, or removed though it is not.
        """
        del arm, seed
        yield Refinement((), with_class_changes(context.scene, self.changes), context.q, self.choice, self.changes)


@dataclass(frozen=True)
class Impossible:
    """No way to carry out an action, in any state: yield it as the only candidate, and no plan uses the action again.

    Attributes:
        cause: why, in words, for the explanation; the same cause has the same words.
    """

    cause: str

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield the failure."""
        del arm, context, seed
        yield MotionFailure("choosing", self.cause, is_final=True, kind=FailureKind.NO_CHOICE)


@runtime_checkable
class DomainSemantics(Protocol):
    """What the words of a domain mean; constructed with the arms: ``Semantics(manipulator, *others)``."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the PDDL objects of a scene with their types."""
        ...

    def state(self, scene: SceneGraph, objects: Mapping[str, str]) -> State:
        """Return the basic facts that hold in a scene.

        Raises:
            SceneError: the scene cannot be told in the words of the domain; the message names the frame.
        """
        ...

    def useful_objects(self, scene: SceneGraph, q: Configuration) -> frozenset[str]:
        """Return the objects that a task plan should speak of; the others are tried only when these do not do."""
        ...

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first."""
        ...


@runtime_checkable
class GoalSemantics(Protocol):
    """What a goal scene means: a member that a semantics may have besides those of :class:`DomainSemantics`.

    Without it a goal is all facts of the goal scene's state that speak of a frame which the goal states.
    """

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterable[Fact]:
        """Return what is wanted.

        Args:
            scene: the goal scene. A frame that it does not state may hang off the root, wherever that is.
            objects: the PDDL objects of the start scene with their types.
            stated: the movable frames whose place the goal states, in its order.

        Raises:
            SceneError: the goal scene cannot be told in the words of the domain; the message names the frame.
        """
        ...


@runtime_checkable
class ConfiguredSemantics(Protocol):
    """Facts that depend on where the arm is: a member that a semantics may have besides those above.

    Where it is there, it is asked in the place of :meth:`DomainSemantics.state` whenever a configuration is known.
    """

    def state_at(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the basic facts that hold in a scene at a configuration (n_joints,).

        Raises:
            SceneError: the scene cannot be told in the words of the domain; the message names the frame.
        """
        ...


@runtime_checkable
class PlacementSemantics(Protocol):
    """Which facts tell where things are: a member that a semantics may have besides those of :class:`DomainSemantics`.

    Without it they are found by the rule of :mod:`tmkit.planner.causes`.
    """

    def placement_facts(self, frames: frozenset[str], state: State, scene: SceneGraph) -> Iterable[Fact]:
        """Return the facts of a state that tell where frames are.

        Args:
            frames: frames that a motion failure speaks of, those of the robot and of the still world included.
            state: the facts that hold.
            scene: the version.
        """
        ...


@runtime_checkable
class ProvingSemantics(Protocol):
    """Goals that are impossible whatever the motions: a member that a semantics may have besides those above."""

    def refutations(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterable[Refutation]:
        """Return proofs that no state with certain facts can be reached from a scene.

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: the scene at the start.

        Returns:
            Refutations, each sufficient alone, the one that tells most first; none when the domain knows no reason.
            :mod:`tmkit.planner.refutations` has arguments that hold in any domain.
        """
        ...


def pddl_name(frame: str) -> str:
    """Return a frame's name as PDDL can say it: lower case, other characters than letters, digits, - and _ replaced."""
    name = re.sub(r"[^a-z0-9_-]", "_", frame.lower())
    return name if name[0].isalpha() else f"o{name}"
