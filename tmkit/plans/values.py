"""Plan value types: segments of motion, and steps with the scenes that they lead to.

A :class:`Plan` has its first scene, the arms' descriptions and the domain's text, and can be
checked, executed and stored anywhere. All values are immutable. The scene changes only between
segments, by one :class:`Attachment` at the end of a grasp, release or push. It also changes after
the last segment of a step, by the classes that the action gives to frames or takes from them
(:class:`tmkit.plans.ClassEffect`), and by what it looks at
(:class:`tmkit.plans.PlannedObservation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tmkit._support.content_equality import ContentEquality
from tmkit._support.elementary import norms
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion import PathConstraint
from tmkit.motion.collision_rules import AllowedContact
from tmkit.motion.timing import BlendedPath
from tmkit.pddl import Fact, GroundAction
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import ClassEffect, FactEffect, with_class_changes
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.plans.observations import CovarianceRows, PlannedObservation, with_observations
from tmkit.robots import Manipulator
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]
"""(n_joints,) values of all joints of a scene, or (k, n_joints) along a path; radians or metres."""


class SegmentKind(StrEnum):
    """What the arm does along a segment."""

    TRANSIT = "transit"
    """It moves with an empty hand."""
    APPROACH = "approach"
    """The open hand comes straight to the grasp."""
    GRASP = "grasp"
    """The arm stands still and the hand closes; then the object belongs to the hand."""
    LIFT = "lift"
    """The object is taken straight off its support."""
    TRANSFER = "transfer"
    """The arm carries the object."""
    POUR = "pour"
    """The arm tilts the object over a container, and back."""
    OPERATE = "operate"
    """The closed hand moves a handle, and with it a drawer or door."""
    PUSH = "push"
    """The closed hand slides an object along its support; then the object is at its new pose."""
    LOWER = "lower"
    """The object comes straight down on its support."""
    RELEASE = "release"
    """The arm stands still and the hand opens; then the object belongs to its support."""
    RETREAT = "retreat"
    """The open hand leaves straight backwards."""


@dataclass(frozen=True)
class Attachment:
    """A change of parent that keeps the world pose, and what is known of it.

    In a scene with covariances the object's errors go with it, source by source: what was
    correlated with it stays so, and to first order every relative pose keeps its distribution.

    Attributes:
        frame: the object.
        parent: its new parent.
        pose: parent_from_frame.
        grasp_covariance: the covariance that handling adds, [rho, theta] in the axes of the object;
            none by default.
    """

    frame: str
    parent: str
    pose: Pose
    grasp_covariance: CovarianceRows | None = None

    def applied(self, scene: SceneGraph, q: NDArray[np.float64]) -> SceneGraph:
        """Return the scene after the change.

        Args:
            scene: the scene before it.
            q: (n_joints,) configuration.
        """
        if self.grasp_covariance is None and not scene.noisy_frames:
            return scene.reparent(self.frame, self.parent, pose=self.pose)
        kept = scene.reparent(self.frame, self.parent, q=q, covariance=self.grasp_covariance)
        return kept.set_pose(self.frame, self.pose)


@dataclass(frozen=True, eq=False)
class Segment(ContentEquality):
    """One piece of a motion, in one version of the scene.

    One arm acts; all others stand still, and hold what they hold. Segments are equal if their
    contents are, paths bit by bit.

    Attributes:
        kind: what the arm does.
        arm: name of the arm.
        joint_names: the arm's joints; when it operates, also the joint that it moves by the handle,
            last.
        path: (k, n_arm) radians or metres; straight in joint space between rows; k is 1 when the
            arm stands still.
        gripper: values of the finger joints at the end; during grasp and release they move there,
            else they are held.
        held: the object that moves with the hand, or is being grasped or released; or the handle,
            likewise.
        allowed_contacts: what may touch meanwhile.
        reparenting: the change of the scene at the end, for grasp, release and push of an object.
            The hand that gives an object to another hand releases it without a change: the other's
            grasp was one.
        constraints: what frames keep along the path.
        into: the container into which is poured; else None.
    """

    kind: SegmentKind
    arm: str
    joint_names: tuple[str, ...]
    path: NDArray[np.float64]
    gripper: Mapping[str, float]
    held: str | None
    allowed_contacts: tuple[AllowedContact, ...]
    reparenting: Attachment | None = None
    constraints: tuple[PathConstraint, ...] = ()
    into: str | None = None

    def end(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> tuple[SceneGraph, NDArray[np.float64]]:
        """Return the scene version and the configuration (n_joints,) that this segment leads to.

        Args:
            scene: the version in which it happens.
            q: (n_joints,) configuration before; joints of neither arm nor hand keep their values.
        """
        arm = dict(zip(self.joint_names, (float(value) for value in self.path[-1]), strict=True))
        at_q = scene.configuration({**arm, **self.gripper}, base=q)
        change = self.reparenting
        return (scene if change is None else change.applied(scene, at_q)), at_q

    @property
    def path_length(self) -> float:
        """Joint-space length of the path: the sum of its steps, each Euclidean over the arm's joints, in radians."""
        return float(np.sum(norms(np.diff(self.path, axis=0))))

    def __repr__(self) -> str:
        return (
            f"Segment({self.kind.value}, {len(self.path)}"
            f" waypoints{f', {self.held}' if self.held else ''})"
        )


@dataclass(frozen=True, eq=False)
class PlanStep(ContentEquality):
    """One action with its motion and the world it leads to; equal to another of the same content.

    Attributes:
        action: the ground action.
        segments: its motion.
        scene: the scene version after the action.
        q: (n_joints,) configuration after the action.
        choice: the grasp or placement that was chosen, in words.
        changes: the classes and task facts that are gained and lost after the motion; most actions
            change none.
        cost: what the action costs by the problem's metric; 1 where it has none.
        observations: what is looked at after the motion, in an uncertain scene; ``scene`` takes it
            as expected.
    """

    action: GroundAction
    segments: tuple[Segment, ...]
    scene: SceneGraph
    q: NDArray[np.float64]
    choice: str = ""
    changes: tuple[ClassEffect | FactEffect, ...] = ()
    cost: float = 1.0
    observations: tuple[PlannedObservation, ...] = ()

    @property
    def path_length(self) -> float:
        """Joint-space length of all segments, in radians; see :attr:`Segment.path_length`."""
        return sum(segment.path_length for segment in self.segments)

    def end(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> tuple[SceneGraph, NDArray[np.float64]]:
        """Return the scene version and the configuration (n_joints,) that this step leads to.

        Args:
            scene: the version before it.
            q: (n_joints,) configuration before it.
        """
        for segment in self.segments:
            scene, q = segment.end(scene, q)
        return with_class_changes(with_observations(scene, self.observations, q=q), self.changes), q

    def __repr__(self) -> str:
        return f"PlanStep({self.action}, {len(self.segments)} segments)"


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A motion of a plan from rest to rest, across segments and steps.

    Attributes:
        segments: step and index, from 1, of each segment.
        blended: positions, velocities and accelerations as functions of time.
        ends: seconds at which each segment ends; of the last, the duration.
        straight: for each segment the seconds between which the tool moves within 1 mm of its
            straight line, since it is within 2 cm of a contact; None where it is not.
    """

    segments: tuple[tuple[int, int], ...]
    blended: BlendedPath
    ends: tuple[float, ...]
    straight: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True, eq=False)
class Plan(ContentEquality):
    """A task plan whose every step has a checked motion and the scene it leads to.

    Plans are equal if their contents are: those that :func:`~tmkit.plans.save_plan` writes to the
    same bytes. So a plan that is loaded equals the one that was saved. Equal plans have the same
    hash.

    Attributes:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start.
        robots: the arms.
        domain: name of the domain, or the path it was loaded from, without folders.
        domain_pddl: the text of the domain.
        domain_digest: 64 hexadecimal digits over the domain's text and its semantics.
        semantics: name of the semantics, without folders, when they were named apart from the
            domain; else empty.
        goal: the goal in PDDL.
        seed: the seed that the plan was made with.
        steps: the actions in order; none when the goal held at the start.
        continuous_goals: what is wanted besides the goal in PDDL.
        metric: what it was to have little of; None where that is what the domain alone says.
        values: the values of the problem's functions, on which costs depend; a problem file gives
            them.
        starts: when each step starts, in seconds, where arms act at once
            (:func:`tmkit.tamp.schedule_plan`); empty where one step follows the other.
        joined: for each step the number, from 1, of the step whose motion it continues without a
            rest, or 0; empty where there is none.
    """

    scene: SceneGraph
    q: NDArray[np.float64]
    robots: tuple[Manipulator, ...]
    domain: str
    domain_pddl: str
    domain_digest: str
    semantics: str
    goal: str
    seed: int
    steps: tuple[PlanStep, ...]
    continuous_goals: tuple[ContinuousGoal, ...] = ()
    metric: Metric | None = None
    values: Mapping[Fact, float] = field(default_factory=dict)
    starts: tuple[float, ...] = ()
    joined: tuple[int, ...] = ()
    _motions: dict[tuple[tuple[int, int], ...], PlannedMotion] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    # of its file's timing
    _misfits: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def _keep_timing(
        self,
        motions: Mapping[tuple[tuple[int, int], ...], PlannedMotion],
        misfits: Sequence[str] = (),
    ) -> None:
        """Keep planned motions, so that they are not planned again; the contents of the plan stay the same.

        Args:
            motions: motions from rest to rest, by their (step, segment) pairs.
            misfits: reasons for which the timing of the plan's file is not used.
        """
        self._motions.update(motions)
        self._misfits.extend(misfits)

    def __repr__(self) -> str:
        return f"Plan({len(self.steps)} steps for {self.goal})"

    @property
    def robot(self) -> Manipulator:
        """The first arm."""
        return self.robots[0]

    def arm(self, name: str) -> Manipulator:
        """Return the arm of a name, such as a segment's.

        Raises:
            UnknownNameError: the plan has no such arm.
        """
        for robot in self.robots:
            if robot.name == name:
                return robot
        raise UnknownNameError.of("arm", name, [robot.name for robot in self.robots])

    @property
    def actions(self) -> tuple[GroundAction, ...]:
        """The ground actions in order."""
        return tuple(step.action for step in self.steps)

    @property
    def cost(self) -> float:
        """The cost of the actions by the problem's metric; their number where it has none."""
        return sum(step.cost for step in self.steps)

    @property
    def path_length(self) -> float:
        """Joint-space length of all motions, in radians; a metre of a prismatic joint counts as a radian."""
        return sum(step.path_length for step in self.steps)

    @property
    def final_scene(self) -> SceneGraph:
        """The scene after the last step."""
        return self.steps[-1].scene if self.steps else self.scene

    @property
    def final_q(self) -> NDArray[np.float64]:
        """(n_joints,) configuration after the last step."""
        return self.steps[-1].q if self.steps else self.q
