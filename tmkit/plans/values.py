"""Plan value types: segments of motion, and steps with the scenes that result from them.

A :class:`Plan` contains its first scene, the descriptions of the arms and the text of the domain.
It can be validated, executed and stored without other files. All values are immutable.

The scene changes only between segments, by one :class:`Attachment` at the end of a grasp, release
or push. After the last segment of a step, class changes (:class:`tmkit.plans.ClassEffect`) and
observations (:class:`tmkit.plans.PlannedObservation`) follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument
from tmkit._support.content_equality import ContentEquality
from tmkit._support.elementary import norms
from tmkit._support.initialization import initialize
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion import PathConstraint
from tmkit.motion.collision_rules import AllowedContact
from tmkit.motion.timing import BlendedPath
from tmkit.pddl import Fact, GroundAction
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.plans.observations import CovarianceRows, PlannedObservation, apply_observations
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import resolve_robots
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]
"""(n_joints,) values of all joints of a scene, or (k, n_joints) along a path [rad or m]."""


class SegmentKind(StrEnum):
    """Kinds of segments."""

    TRANSIT = "transit"
    """The arm moves with an empty hand."""
    APPROACH = "approach"
    """The open hand moves in a straight line to the grasp."""
    GRASP = "grasp"
    """The arm is at rest and the hand closes; then the object is attached to the hand."""
    LIFT = "lift"
    """The object moves in a straight line off its support."""
    TRANSFER = "transfer"
    """The arm carries the object."""
    POUR = "pour"
    """The arm tilts the object over a container and back."""
    OPERATE = "operate"
    """The closed hand moves the handle of a drawer or door."""
    PUSH = "push"
    """The closed hand slides an object along its support; then the object is at its new pose."""
    LOWER = "lower"
    """The object moves in a straight line down to its support."""
    RELEASE = "release"
    """The arm is at rest and the hand opens; then the object is attached to its support."""
    RETREAT = "retreat"
    """The open hand moves backwards in a straight line."""
    LINE = "line"
    """The tool moves in a straight line, and may touch the frames that the segment names."""


@dataclass(frozen=True)
class Attachment:
    """A change of parent that keeps the world pose and its uncertainty.

    In a scene with covariances the object keeps its error sources. Correlations stay unchanged, and
    to first order every relative pose keeps its distribution.

    Attributes:
        frame: frame of the object.
        parent: new parent.
        pose: parent_from_frame.
        grasp_covariance: (6, 6) covariance that the grasp adds, [rho, theta] in the axes of the
            object. Defaults to none.
    """

    frame: str
    parent: str
    pose: Pose
    grasp_covariance: CovarianceRows | None = None

    def __post_init__(self) -> None:
        check_argument(self.pose, Pose, "pose", function="Attachment")

    def apply(self, scene: SceneGraph, q: NDArray[np.float64]) -> SceneGraph:
        """Return the scene after the change.

        Args:
            scene: scene before the change.
            q: (n_joints,) configuration.
        """
        if self.grasp_covariance is None and not scene.noisy_frames:
            return scene.reparent(self.frame, self.parent, pose=self.pose)
        scene = scene.reparent(self.frame, self.parent, q=q, covariance=self.grasp_covariance)
        return scene.set_pose(self.frame, self.pose)


@dataclass(frozen=True, eq=False)
class Segment(ContentEquality):
    """Motion of one arm in one version of the scene.

    All other arms are at rest and keep their objects. Segments with equal contents are equal; paths
    are compared bit by bit.

    Attributes:
        kind: kind of the segment.
        arm: name of the arm.
        joint_names: joints of the arm. The joint of an operated handle comes last.
        path: (k, n_arm) joint values, linear between rows; k is 1 without motion [rad or m].
        gripper: finger joint values at the end, by joint. The fingers move during a grasp or
            release, and are constant otherwise.
        held: object or handle in the hand, including one that is grasped or released.
        allowed_contacts: exceptions of the collision check.
        reparenting: change of the scene at the end of a grasp, release or push of an object. A
            release in a handover has none, since the other hand's grasp was the change.
        constraints: path constraints.
        into: container into which the arm pours, or None.
        touching: frames that the held object, or the fingers and tool of an empty hand, touch
            during a line. Their parents stay the same.
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
    touching: tuple[str, ...] = ()

    def end(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> tuple[SceneGraph, NDArray[np.float64]]:
        """Return the scene and the configuration (n_joints,) after the segment.

        Args:
            scene: scene during the segment.
            q: (n_joints,) configuration before the segment; joints of neither arm nor hand keep
                their values.
        """
        arm = dict(zip(self.joint_names, (float(value) for value in self.path[-1]), strict=True))
        end_q = scene.configuration({**arm, **self.gripper}, base=q)
        change = self.reparenting
        return (scene if change is None else change.apply(scene, end_q)), end_q

    @property
    def path_length(self) -> float:
        """Joint-space length of the path: sum of the Euclidean distances between rows [rad]."""
        return float(np.sum(norms(np.diff(self.path, axis=0))))

    def __repr__(self) -> str:
        held = f", {self.held}" if self.held else ""
        return f"Segment({self.kind.value}, {len(self.path)} waypoints{held})"


@dataclass(frozen=True, eq=False)
class PlanStep(ContentEquality):
    """An action with its motion and the resulting scene.

    Two steps are equal if their contents are equal.

    Attributes:
        action: ground action.
        segments: motion of the action.
        scene: scene after the action.
        q: (n_joints,) configuration after the action.
        choice: description of the grasp or placement.
        changes: changes of classes and task facts after the motion.
        cost: cost of the action by the metric of the problem; 1 without a metric.
        value_cost: cost of the values of the action, such as its grasp, by the streams of the
            domain (:mod:`tmkit.tamp.streams`).
        observations: observations after the motion, in an uncertain scene; their expected results
            are part of ``scene``.
    """

    action: GroundAction
    segments: tuple[Segment, ...]
    scene: SceneGraph
    q: NDArray[np.float64]
    choice: str = ""
    changes: tuple[ClassEffect | FactEffect, ...] = ()
    cost: float = 1.0
    observations: tuple[PlannedObservation, ...] = ()
    value_cost: float = 0.0

    @property
    def path_length(self) -> float:
        """Joint-space length of all segments [rad]; see :attr:`Segment.path_length`."""
        return sum(segment.path_length for segment in self.segments)

    def end(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> tuple[SceneGraph, NDArray[np.float64]]:
        """Return the scene and the configuration (n_joints,) after the step.

        Args:
            scene: scene before the step.
            q: (n_joints,) configuration before the step.
        """
        for segment in self.segments:
            scene, q = segment.end(scene, q)
        scene = apply_observations(scene, self.observations, q=q)
        return apply_effects(scene, self.changes), q

    def __repr__(self) -> str:
        return f"PlanStep({self.action}, {len(self.segments)} segments)"


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A motion of a plan from rest to rest, across segments and steps.

    Attributes:
        segments: step and index, from 1, of each segment.
        blended: positions, velocities and accelerations as functions of time.
        ends: end of each segment [s]; the last one is the duration.
        straight: start and end of the interval of each segment within 2 cm of a contact [s], or
            None. In it the tool stays within 1 mm of its straight line.
    """

    segments: tuple[tuple[int, int], ...]
    blended: BlendedPath
    ends: tuple[float, ...]
    straight: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True, eq=False)
class Plan(ContentEquality):
    """A task plan with a checked motion and the resulting scene for each step.

    Plans with equal contents are equal and have the same hash. Such plans have the same bytes in a
    file (:func:`~tmkit.plans.save_plan`), so a loaded plan equals the saved one.
    ``PlanningDomain.plan`` makes a plan of steps that another planner computed.

    Attributes:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        robots: descriptions of the arms. The constructor also accepts names.
        domain: name of the domain, or of its file or folder.
        domain_pddl: text of the domain.
        domain_digest: 64 hexadecimal digits, a hash of the domain's text and semantics.
        semantics: name of semantics that replace those of the domain, without folders, or empty.
        goal: goal in PDDL.
        seed: seed of the planner.
        steps: actions in order; empty if the goal holds at the start.
        continuous_goals: goals beside the goal in PDDL.
        metric: metric of the problem; None if only the domain defines it.
        values: values of the functions of the problem file, on which costs depend.
        starts: start of each step [s] if arms act at the same time
            (:func:`tmkit.tamp.schedule_plan`); empty for consecutive steps.
        joined: for each step the number, from 1, of the step whose motion it continues without a
            rest, or 0; empty without such a step.
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
    _misfits: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        initialize(self, robots=resolve_robots(self.robots, function="Plan", name="robots"))

    def _store_timing(
        self,
        motions: Mapping[tuple[tuple[int, int], ...], PlannedMotion],
        misfits: Sequence[str] = (),
    ) -> None:
        """Store motions that are computed or read; they are not part of the contents.

        Args:
            motions: motions from rest to rest, by their (step, segment) pairs.
            misfits: reasons why the timing of the plan's file is not used.
        """
        self._motions.update(motions)
        self._misfits.extend(misfits)

    def __repr__(self) -> str:
        return f"Plan({len(self.steps)} steps for {self.goal})"

    @property
    def robot(self) -> Manipulator:
        """First arm."""
        return self.robots[0]

    def arm(self, name: str) -> Manipulator:
        """Return the arm of a name.

        Raises:
            UnknownNameError: if the plan has no such arm.
        """
        for robot in self.robots:
            if robot.name == name:
                return robot
        raise UnknownNameError.of("arm", name, [robot.name for robot in self.robots])

    @property
    def actions(self) -> tuple[GroundAction, ...]:
        """Ground actions in order."""
        return tuple(step.action for step in self.steps)

    @property
    def cost(self) -> float:
        """Cost of the actions by the metric, or their number without one, and of their values."""
        return sum(step.cost + step.value_cost for step in self.steps)

    @property
    def path_length(self) -> float:
        """Joint-space length of all motions [rad]; 1 m of a prismatic joint counts as 1 rad."""
        return sum(step.path_length for step in self.steps)

    @property
    def final_scene(self) -> SceneGraph:
        """Scene after the last step."""
        return self.steps[-1].scene if self.steps else self.scene

    @property
    def final_q(self) -> NDArray[np.float64]:
        """(n_joints,) configuration after the last step."""
        return self.steps[-1].q if self.steps else self.q
