r"""Basic motions of one arm: free motions, straight lines, touches and motions of the hand.

They are the building blocks of an action, like the stages of MoveIt Task Constructor. A press, for
example, consists of three of them::

    q --- move (searched path) ---> above                   above
                                       \  touch              ^  move_straight
                                        \ (guarded motion)  /   (retreat)
                                         v                 /
    ------------------------------- [ contact ] ---------------------------

Each method starts from a version of the scene and a configuration, and yields motions and the
failures of other attempts. It raises no exception for an infeasible motion.
:class:`tmkit.manipulation.Sequence` joins them, and plans straight parts before searched paths.

Contact is part of lines alone: the held object, or the fingers and tool of an empty hand, may touch
the frames that a line names, and no others. The touched frames keep their parents.

Invariants: results are deterministic in the arguments, including the seed. Every segment has passed
the checks that the plan validator repeats, with :func:`touch_faults` among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.elementary import norm
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.hand_state import free_object_failure
from tmkit.manipulation.actions.primitives import (
    CollisionContext,
    MotionPrimitives,
    MotionSettings,
    NearPairs,
)
from tmkit.manipulation.actions.timing_breakdown import StageClock
from tmkit.manipulation.grasps.sampling import grasp_contact_faults, payload_fault
from tmkit.manipulation.placements.support import support_fault
from tmkit.motion import CollisionRules, MotionPlanner, PathConstraint
from tmkit.motion.collision_rules import ALLOWED_PENETRATION, PLANNING_MARGIN
from tmkit.pddl import GroundAction
from tmkit.plans.class_changes import ClassEffect, FactEffect
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.observations import PlannedObservation
from tmkit.plans.values import Attachment, Configuration, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.hands import distance_world, reason_without_distance
from tmkit.robots.mechanisms import moved_frames
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers, read_only

CONFINED_RELEASE_TRAVEL = 0.005
"""Change of the gripper width at a release where the object blocks the fingers [m]."""

_CONTACT_GAP = 1e-4
"""Largest distance at the end of a touch without depth [m]."""

_MAX_ADVANCES = 100
"""Maximum number of steps towards a frame to touch."""

_MAX_ROTATION = 1e-6
"""Largest rotation of the pose of a translation [rad]."""

_MILLIMETRES = 1000.0
"""Number of millimetres in a metre, for messages."""

Goal = Mapping[str, float] | ArrayLike | Pose
"""Joint values by name, a configuration (n_joints,), or a pose."""


@dataclass(frozen=True, eq=False)
class ActionMotion:
    """A motion that carries out one action.

    Attributes:
        segments: path segments in order of execution.
        scene: scene after the motion, including ``changes`` and ``observations``.
        q: (n_joints,) configuration after the motion.
        choice: description of the selected grasp, placement or goal.
        changes: classes and task facts that frames gain or lose after the motion.
        observations: observations made after the motion.
        value_cost: cost of the values that were selected, at least 0.
    """

    segments: tuple[Segment, ...]
    scene: SceneGraph
    q: NDArray[np.float64]
    choice: str
    changes: tuple[ClassEffect | FactEffect, ...] = ()
    observations: tuple[PlannedObservation, ...] = ()
    value_cost: float = 0.0

    def step(self, action: GroundAction) -> PlanStep:
        """Return the plan step that carries out an action with this motion."""
        return PlanStep(
            action,
            self.segments,
            self.scene,
            self.q,
            self.choice,
            self.changes,
            observations=self.observations,
            value_cost=self.value_cost,
        )


def refine_contacts(
    contacts: Iterable[Configuration | MotionFailure],
    refine: Callable[[Configuration], ActionMotion],
) -> Iterator[ActionMotion | MotionFailure]:
    """Yield one motion or one failure for each contact configuration.

    Args:
        contacts: (n_joints,) configurations, and failures, which are passed on.
        refine: function that plans the motion through a configuration.
    """
    for contact in contacts:
        try:
            yield contact if isinstance(contact, MotionFailure) else refine(contact)
        except PrimitiveFailedError as error:
            yield error.failure


def gripper_failure(robot: Manipulator) -> MotionFailure:
    """Return the failure of an action that needs a gripper, which the arm does not have."""
    cause = f"the arm '{robot.name}' has no gripper"
    return MotionFailure("grasp", cause, kind=FailureKind.NO_CHOICE)


@with_keyword_hints
class BasicMotions:
    """Planner of the basic motions of one arm.

    Args:
        robot: name or description of the arm and gripper.
        budget: search limits and default line lengths. Defaults to :class:`MotionSettings`.
        rules: allowed contacts while this arm acts. Defaults to the rules for any plan start.
        clock: accumulates planning time by phase.
        motion_planner: path planner. Defaults to the RRT-Connect of the C++ core.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        budget: MotionSettings | None = None,
        rules: CollisionRules | None = None,
        clock: StageClock | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> None:
        self.robot = resolve_robot(robot, function="ArmMotionPlanner")
        self.primitives = MotionPrimitives(
            self.robot, budget=budget, rules=rules, clock=clock, motion_planner=motion_planner
        )

    # --- free motions

    def move(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        to: Goal,
        seed: int,
        name: str = "the goal",
        frame: str | None = None,
        constraints: tuple[PathConstraint, ...] = (),
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions along searched paths to a goal, with any held object, and failures.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion.
            to: goal; see :meth:`goal_configurations`. One motion for each configuration.
            seed: seed of inverse kinematics and of the path search.
            name: name of the goal in the plan and in failures.
            frame: frame whose pose ``to`` is; see :meth:`goal_configurations`.
            constraints: path constraints.

        Raises:
            UnknownNameError: if a joint does not belong to the arm.
            ConfigurationError: if the goal does not fit the arm.
        """
        goals = self.goal_configurations(scene, q, to=to, seed=seed, name=name, frame=frame)
        for goal in goals:
            if isinstance(goal, MotionFailure):
                yield goal
            else:
                yield self.connect(scene, q, goal, seed=seed, name=name, constraints=constraints)

    def goal_configurations(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        to: Goal,
        seed: int,
        name: str = "the goal",
        frame: str | None = None,
    ) -> Iterator[Configuration | MotionFailure]:
        """Yield the configurations (n_joints,) of a goal, and failures.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion, whose other joints keep their values.
            to: values by joint of the arm, a configuration (n_joints,), of which the arm's joints
                count [rad or m], or the pose of ``frame`` in the root.
            seed: seed of inverse kinematics.
            name: name of the goal in failures.
            frame: frame that moves with the hand, such as a held object. Defaults to the tool.

        Raises:
            UnknownNameError: if a joint does not belong to the arm.
            ConfigurationError: if the configuration has another length, a joint belongs to the
                hand, or ``frame`` does not move with it.
        """
        arm = self.robot
        if isinstance(to, Pose):
            phase = self._carrying_phase(scene, q)
            root_from_tool = to if frame is None else to @ self._frame_from_tool(scene, q, frame)
            yield from self.primitives.contacts(
                phase, root_from_tool, q=q, seed=seed, label=f"reaching {name}"
            )
            return
        if isinstance(to, Mapping):
            for joint in to:
                self._check_joint(joint)
            yield scene.configuration(dict(to), base=q)
            return
        values = np.asarray(to, dtype=float)
        if values.shape != (len(scene.joint_names),):
            raise ConfigurationError(
                f"the goal of '{arm.name}' has shape {values.shape}, expected"
                f" ({len(scene.joint_names)},): the values of all joints of the scene"
            )
        entries = arm.joint_indices(scene)
        goal = np.array(q, dtype=float)
        goal[entries] = values[entries]
        yield goal

    def connect(
        self,
        scene: SceneGraph,
        q: Configuration,
        goal: Configuration,
        *,
        seed: int,
        name: str = "the goal",
        constraints: tuple[PathConstraint, ...] = (),
    ) -> ActionMotion | MotionFailure:
        """Return the motion along a searched path to a configuration, or its failure.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion.
            goal: (n_joints,) configuration after the motion, with the fingers as in ``q``.
            seed: seed of the path search.
            name: name of the goal in the plan and in failures.
            constraints: path constraints.
        """
        primitives, label = self.primitives, f"to {name}"
        held = primitives.rules.held_object(scene)
        phase = self._carrying_phase(scene, q, constraints)
        try:
            path = primitives.plan_path(phase, q, goal[None], seed=seed, label=label)
            self._require_forces(phase, path, label=label)
        except PrimitiveFailedError as error:
            return error.failure
        kind = SegmentKind.TRANSIT if held is None else SegmentKind.TRANSFER
        segment = self.segment(kind, path, q=q, held=held, phase=phase)
        return ActionMotion((segment,), scene, path[-1], label)

    # --- straight lines and contact

    def move_straight(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        by: ArrayLike | Pose | None = None,
        to: Pose | None = None,
        touching: Sequence[str] = (),
        constraints: tuple[PathConstraint, ...] = (),
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the motion of the tool along a straight line, or its failure.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion.
            by: (3,) translation in root axes [m], or pose of the tool at the end relative to the
                tool at the start.
            to: pose of the tool at the end in the root, instead of ``by``.
            touching: frames that the held object, or the fingers and tool of an empty hand, touch.
                From all others they keep the planning margin of 1 mm.
            constraints: path constraints.

        Raises:
            ConfigurationError: if not exactly one of ``by`` and ``to`` is given.
            UnknownNameError: if a touched frame is unknown.
        """
        if (by is None) == (to is None):
            raise ConfigurationError("move_straight() needs either 'by' or 'to'")
        check_argument(touching, (tuple, list), "touching", function="move_straight")
        start = self._tool_pose(scene, q)
        target = start if to is None else to
        if isinstance(by, Pose):
            target = start @ by
        elif by is not None:
            target = Pose(start.translation + plain_numbers(by, "by", "m"), start.quat_xyzw)
        try:
            phase = self._line_phase(scene, q, touching, constraints)
            yield self._line(phase, q, target, tuple(touching), "straight line")
        except PrimitiveFailedError as error:
            yield error.failure

    def touch(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        frame: str,
        by: ArrayLike | Pose,
        depth: float = 0.0,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the straight motion of the tool up to the contact with a frame, or its failure.

        It is a guarded motion, whose length follows from the geometry: the held object, or the
        fingers and tool of an empty hand, stop within 0.1 mm of the frame.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion, without contact.
            frame: frame to touch.
            by: longest motion: (3,) translation in root axes [m], or a translation relative to the
                tool, as a pose without rotation.
            depth: length of the motion after the first contact [m], such as the travel of a button.

        Raises:
            UnknownNameError: if the frame is unknown.
            ConfigurationError: if the depth is negative or more than the contact rules allow, or
                the motion has no length or rotates the tool.
        """
        held = self.primitives.rules.held_object(scene)
        limit = self.robot.contact_tolerance if held is None else ALLOWED_PENETRATION
        if not 0.0 <= depth <= limit:
            raise ConfigurationError(
                f"touching '{frame}' with a depth of {depth:g} m: expected 0 to {limit:g} m",
                frame=frame,
            )
        if isinstance(by, Pose) and by.distance(Pose())[1] > _MAX_ROTATION:
            raise ConfigurationError(
                f"touching '{frame}': 'by' is a translation, but its pose rotates the tool",
                frame=frame,
            )
        start = self._tool_pose(scene, q)
        translation = (
            start.rotate(by.translation) if isinstance(by, Pose) else plain_numbers(by, "by", "m")
        )
        length = norm(translation)
        if not length > 0.0:
            raise ConfigurationError(f"touching '{frame}': the motion has no length", frame=frame)
        direction, label = translation / length, f"touching {frame}"
        try:
            phase = self._line_phase(scene, q, (frame,))
            distance = self._distance_to_contact(phase, q, frame, direction, length)
            target = Pose(start.translation + (distance + depth) * direction, start.quat_xyzw)
            yield self._line(phase, q, target, (frame,), label)
        except PrimitiveFailedError as error:
            yield error.failure

    # --- motions of the hand

    def close(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        object: str | None = None,
        width: float | None = None,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the motion that closes the hand while the arm is at rest, or its failure.

        Args:
            scene: scene before the motion, in which the hand is empty.
            q: (n_joints,) configuration before the motion.
            object: object that the hand grasps, which becomes its child. Defaults to none.
            width: gripper width after the motion [m]. Defaults to fully closed.

        Raises:
            RobotError: if the width is outside the range of the hand.
        """
        arm = self.robot
        if arm.gripper_kind == "none":
            yield gripper_failure(arm)
            return
        values = dict(arm.gripper_closed) if width is None else arm.finger_values(width)
        q_closed = scene.configuration(values, base=q)
        try:
            if object is None:
                yield self._move_fingers(scene, q, q_closed, label="closing the hand")
            else:
                yield self._grasp(scene, q, q_closed, object)
        except PrimitiveFailedError as error:
            yield error.failure

    def open(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        width: float | None = None,
        parent: str | None = None,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the motion that opens the hand while the arm is at rest, or its failure.

        Args:
            scene: scene before the motion.
            q: (n_joints,) configuration before the motion.
            width: gripper width after the motion [m]. Defaults to fully open, or less if the
                object blocks the fingers.
            parent: frame that supports the held object, which becomes its child at its pose.
                Required if the hand holds an object.

        Raises:
            RobotError: if the width is outside the range of the hand.
            UnknownNameError: if the parent is unknown.
        """
        if self.robot.gripper_kind == "none":
            yield gripper_failure(self.robot)
            return
        try:
            if parent is None:
                q_open = scene.configuration(self.robot.open_finger_values(width), base=q)
                yield self._move_fingers(scene, q, q_open, label="opening the hand")
            else:
                yield self._release(scene, q, width, parent)
        except PrimitiveFailedError as error:
            yield error.failure

    def open_fingers(
        self,
        phase: CollisionContext,
        q: Configuration,
        object: str,
        opening: float | None = None,
        *,
        travel: float | None = None,
    ) -> Configuration:
        """Return the configuration with the fingers opened around a held object.

        If the object itself blocks the fingers, they open by 5 mm instead.

        Args:
            phase: scene and collision rules while the hand holds the object.
            q: (n_joints,) configuration with the fingers closed.
            object: frame of the held object.
            opening: gripper width after the release [m]. Defaults to fully open.
            travel: largest change of the gripper width [m], instead of ``opening``.

        Returns:
            (n_joints,) configuration.

        Raises:
            PrimitiveFailedError: if the opening fingers collide.
        """
        fingers = self.robot.open_finger_values(opening)
        if travel is not None:
            fingers.update(
                self._open_partly(self.primitives.finger_values_of(q, phase.scene), travel)
            )
        q_open = phase.scene.configuration(fingers, base=q)
        try:
            self.primitives.require_free_fingers(phase, q, q_open, label="release")
        except PrimitiveFailedError as error:
            is_blocked_by_object = any(object in pair for pair in error.failure.pairs)
            if travel is not None or not is_blocked_by_object:
                raise
            return self.open_fingers(phase, q, object, travel=CONFINED_RELEASE_TRAVEL)
        return q_open

    # --- checks and segments

    def require_payload(
        self, phase: CollisionContext, path: Configuration, *, object: str, label: str
    ) -> None:
        """Check that the gripper supports the weight of an object along a path.

        Args:
            phase: scene and collision rules of the path.
            path: (k, n_joints) configurations.
            object: frame of the held object.
            label: name of the motion in the failure.

        Raises:
            PrimitiveFailedError: if the object is too heavy for this grasp.
        """
        fault = payload_fault(phase.scene, path, self.robot, object=object)
        if fault is not None:
            raise PrimitiveFailedError(label, fault, kind=FailureKind.GRIP, q=path[0])

    def segment(
        self,
        kind: SegmentKind,
        path: Configuration,
        *,
        q: Configuration,
        held: str | None,
        phase: CollisionContext,
        change: Attachment | None = None,
        mechanism: str | None = None,
    ) -> Segment:
        """Return a plan segment of this arm.

        Args:
            kind: kind of the segment.
            path: (k, n_joints) configurations.
            q: (n_joints,) configuration with the finger values at the end of the segment.
            held: frame of the object or handle in the hand.
            phase: scene and collision rules of the segment.
            change: change of the scene at the end of the segment.
            mechanism: joint that the hand moves by its handle.
        """
        arm, names = self.robot, phase.scene.joint_names
        joints = arm.joints if mechanism is None else (*arm.joints, mechanism)
        arm_path = read_only(np.array(path[:, [names.index(joint) for joint in joints]]))
        return Segment(
            kind=kind,
            arm=arm.name,
            joint_names=joints,
            path=arm_path,
            gripper=self.primitives.finger_values_of(q, phase.scene),
            held=held,
            allowed_contacts=phase.allowed_contacts,
            reparenting=change,
            constraints=phase.constraints,
        )

    def _require_forces(self, phase: CollisionContext, path: Configuration, *, label: str) -> None:
        """Check that arm and gripper are strong enough along a path (k, n_joints).

        Raises:
            PrimitiveFailedError: if a joint or the grasp of the held object is too weak.
        """
        self.primitives.require_torque_limits(phase, path, label=label)
        held = self.primitives.rules.held_object(phase.scene)
        if held is not None:
            self.require_payload(phase, path, object=held, label=label)

    def _tool_pose(self, scene: SceneGraph, q: Configuration) -> Pose:
        """Return root_from_tool at a configuration (n_joints,)."""
        tool = self.robot.tool
        return scene.pose(tool, relative_to=scene.root(tool), q=q)

    def _frame_from_tool(self, scene: SceneGraph, q: Configuration, frame: str) -> Pose:
        """Return the pose of the tool relative to a frame that moves with the hand.

        Raises:
            ConfigurationError: if the frame does not move with the hand.
        """
        tip, tool = self.robot.tip, self.robot.tool
        if tip not in (frame, *scene.ancestors(frame)):
            held = self.primitives.rules.held_object(scene)
            raise ConfigurationError(
                f"'{frame}' does not move with the hand '{tip}', which holds"
                f" {'nothing' if held is None else repr(held)}",
                frame=frame,
            )
        return scene.pose(tool, relative_to=frame, q=q)

    def _check_joint(self, joint: str) -> None:
        """Check that a joint belongs to the arm.

        Raises:
            ConfigurationError: if it belongs to the hand.
            UnknownNameError: if it belongs to neither.
        """
        arm = self.robot
        if joint in arm.gripper_joints:
            raise ConfigurationError(
                f"joint '{joint}' belongs to the hand of '{arm.name}': close() and open() move it",
                joint=joint,
            )
        if joint not in arm.joints:
            raise UnknownNameError.of("joint of the arm", joint, arm.joints)

    def _carrying_phase(
        self, scene: SceneGraph, q: Configuration, constraints: tuple[PathConstraint, ...] = ()
    ) -> CollisionContext:
        """Return the collision context of free motions from a configuration (n_joints,)."""
        held = self.primitives.rules.held_object(scene)
        near_pairs = self.primitives.near_pairs(scene, q)
        return self.primitives.phase(
            scene, near_pairs, contact_object=held, constraints=constraints
        )

    def _line_phase(
        self,
        scene: SceneGraph,
        q: Configuration,
        touching: Sequence[str],
        constraints: tuple[PathConstraint, ...] = (),
    ) -> CollisionContext:
        """Return the collision context of a line from a configuration (n_joints,).

        Raises:
            PrimitiveFailedError: if a frame cannot be touched.
        """
        rules = self.primitives.rules
        if fault := next(_frame_faults(scene, rules, touching), None):
            raise PrimitiveFailedError("touching", fault, kind=FailureKind.NO_CHOICE, q=q)
        contact_frames = {*rules.contact_frames(scene)}
        near_pairs: NearPairs = tuple(
            pair
            for pair in self.primitives.near_pairs(scene, q)
            if contact_frames.isdisjoint((pair.frame_a, pair.frame_b))
        )
        return self.primitives.phase(
            scene,
            near_pairs,
            contact_object=rules.held_object(scene),
            touching=touching,
            constraints=constraints,
        )

    def _line(
        self,
        phase: CollisionContext,
        q: Configuration,
        target: Pose,
        touching: tuple[str, ...],
        label: str,
    ) -> ActionMotion:
        """Return the motion along a straight line of the tool.

        Args:
            phase: scene and collision rules of the line.
            q: (n_joints,) configuration at the start.
            target: root_from_tool at the end.
            touching: frames that the line touches.
            label: name of the line in failures.

        Raises:
            PrimitiveFailedError: if the line is infeasible or does not touch a frame.
        """
        scene, rules = phase.scene, self.primitives.rules
        path = self.primitives.line_to(phase, q, target, label=label)
        self._require_forces(phase, path, label=label)
        if faults := touch_faults(scene, path, rules, touching=touching):
            raise PrimitiveFailedError(label, faults[0], kind=FailureKind.GRIP, q=path[-1])
        held = rules.held_object(scene)
        segment = self.segment(SegmentKind.LINE, path, q=q, held=held, phase=phase)
        choice = f"touch {', '.join(touching)}" if touching else ""
        return ActionMotion((replace(segment, touching=touching),), scene, path[-1], choice)

    def _distance_to_contact(
        self,
        phase: CollisionContext,
        q: Configuration,
        frame: str,
        direction: NDArray[np.float64],
        length: float,
    ) -> float:
        """Return the distance that the tool moves until the hand or its load touches a frame [m].

        The tool advances by the distance to the frame, which never passes the contact
        (conservative advancement).

        Args:
            phase: scene and collision rules of the line.
            q: (n_joints,) configuration at the start.
            frame: frame to touch.
            direction: (3,) unit vector in root axes.
            length: longest motion [m].

        Raises:
            PrimitiveFailedError: if there is no contact within the length, or the line to it is
                infeasible.
        """
        scene, label = phase.scene, f"touching {frame}"
        contact_frames = self.primitives.rules.contact_frames(scene)
        world = distance_world(scene, [(body, frame) for body in contact_frames])
        start, distance, row = self._tool_pose(scene, q), 0.0, q
        for _ in range(_MAX_ADVANCES):
            gap = float(world.distance(row))
            if math.isinf(gap):
                reason = reason_without_distance(scene, contact_frames[0], frame)
                raise PrimitiveFailedError(label, reason, kind=FailureKind.GRIP, q=row)
            if gap <= _CONTACT_GAP:
                if distance == 0.0:
                    raise PrimitiveFailedError(
                        label,
                        f"the motion starts in contact with '{frame}'",
                        kind=FailureKind.NO_CHOICE,
                        q=row,
                    )
                return distance
            distance += gap - _CONTACT_GAP / 2
            if distance > length:
                break
            target = Pose(start.translation + distance * direction, start.quat_xyzw)
            path = self.primitives.line_to(phase, q, target, label=label, fine_check=False)
            row = path[-1]
        raise PrimitiveFailedError(
            label,
            f"{_names(contact_frames)} does not meet '{frame}'"
            f" within {length * _MILLIMETRES:.0f} mm",
            kind=FailureKind.GRIP,
            q=row,
        )

    def _move_fingers(
        self, scene: SceneGraph, q: Configuration, q_end: Configuration, *, label: str
    ) -> ActionMotion:
        """Return the motion of the fingers of an empty hand to a configuration (n_joints,).

        Raises:
            PrimitiveFailedError: if the hand holds an object or the fingers collide.
        """
        held = self.primitives.rules.held_object(scene)
        if held is not None:
            cause = f"the hand holds '{held}': name the frame that it is released on"
            raise PrimitiveFailedError(label, cause, kind=FailureKind.HAND, q=q)
        if np.array_equal(q, q_end):
            return ActionMotion((), scene, q_end, "")
        phase = self._carrying_phase(scene, q)
        self.primitives.require_free_fingers(phase, q, q_end, label=label)
        segment = self.segment(SegmentKind.TRANSIT, q[None], q=q_end, held=None, phase=phase)
        return ActionMotion((segment,), scene, q_end, "")

    def _grasp(
        self, scene: SceneGraph, q: Configuration, q_closed: Configuration, object: str
    ) -> ActionMotion:
        """Return the motion that grasps an object with the fingers at ``q_closed`` (n_joints,).

        Raises:
            PrimitiveFailedError: if the hand is not empty or does not hold the object firmly.
        """
        primitives, arm = self.primitives, self.robot
        failure = free_object_failure(scene, primitives.rules.arms, object=object, phase="grasp")
        if failure is not None:
            raise PrimitiveFailedError(failure.phase, failure.cause, kind=failure.kind, q=q)
        phase = primitives.phase(
            scene,
            primitives.near_pairs(scene, q),
            contact_object=object,
            support=scene.parent(object),
        )
        primitives.require_free_fingers(phase, q, q_closed, label="grasp")
        if faults := grasp_contact_faults(scene, q_closed, arm, object=object):
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP, q=q_closed)
        change = Attachment(object, arm.tip, scene.pose(object, relative_to=arm.tip, q=q_closed))
        segment = self.segment(
            SegmentKind.GRASP, q[None], q=q_closed, held=object, phase=phase, change=change
        )
        after = change.apply(scene, q_closed)
        return ActionMotion((segment,), after, q_closed, f"grasp {object}")

    def _release(
        self, scene: SceneGraph, q: Configuration, width: float | None, parent: str
    ) -> ActionMotion:
        """Return the motion that releases the held object on a frame.

        Raises:
            PrimitiveFailedError: if the hand is empty or its fingers collide.
        """
        primitives = self.primitives
        held = primitives.rules.held_object(scene)
        if held is None:
            raise PrimitiveFailedError("release", "the hand is empty", kind=FailureKind.HAND, q=q)
        phase = primitives.phase(
            scene, primitives.near_pairs(scene, q), contact_object=held, support=parent
        )
        q_open = self.open_fingers(phase, q, held, width)
        change = Attachment(held, parent, scene.pose(held, relative_to=parent, q=q))
        after = change.apply(scene, q_open)
        fault = support_fault(after, q_open, object=held)
        if fault is not None:
            raise PrimitiveFailedError("release", fault, kind=FailureKind.GRIP, q=q)
        segment = self.segment(
            SegmentKind.RELEASE, q[None], q=q_open, held=held, phase=phase, change=change
        )
        return ActionMotion((segment,), after, q_open, f"on {parent}")

    def _open_partly(self, fingers: Mapping[str, float], travel: float) -> dict[str, float]:
        """Return finger joint values opened by a change of the gripper width, at most fully open.

        Args:
            fingers: current value by finger joint [rad or m].
            travel: change of the gripper width [m].
        """
        arm, open_values = self.robot, {}
        if arm.widths:
            return arm.finger_values(min(arm.finger_width(fingers) + travel, arm.width_open))
        fraction = travel / max(travel, arm.width_open - arm.width_closed)
        for joint, value in fingers.items():
            low, high = sorted((value, arm.gripper_open[joint]))
            step = fraction * (arm.gripper_open[joint] - arm.gripper_closed[joint])
            open_values[joint] = min(max(value + step, low), high)
        return open_values


def touch_faults(
    scene: SceneGraph, path: Configuration, rules: CollisionRules, *, touching: Sequence[str]
) -> list[str]:
    """Return the reasons why a line does not touch frames as it declares.

    A line touches a frame if the held object is within 1 mm of it at the start or at the end. For
    an empty hand, its fingers or tool count.

    Args:
        scene: scene during the line.
        path: (k, n_joints) configurations of the line.
        rules: contact rules of the acting arm.
        touching: frames that the line declares.

    Returns:
        One message for each fault. Empty if the contacts are as declared.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    faults = list(_frame_faults(scene, rules, touching))
    if faults:
        return faults
    contact_frames = rules.contact_frames(scene)
    for frame in touching:
        world = distance_world(scene, [(body, frame) for body in contact_frames])
        gap = min(float(world.distance(row)) for row in (path[0], path[-1]))
        if math.isinf(gap):
            faults.append(f"{_names(contact_frames)} has no distance to '{frame}'")
        elif gap > PLANNING_MARGIN:
            faults.append(
                f"{_names(contact_frames)} is {gap * _MILLIMETRES:.1f} mm from '{frame}',"
                " which the line should touch at its start or end"
            )
    return faults


def _frame_faults(
    scene: SceneGraph, rules: CollisionRules, touching: Sequence[str]
) -> Iterator[str]:
    """Yield the reasons why frames cannot be touched.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    if not touching:
        return
    if not rules.contact_frames(scene):
        yield f"the arm '{rules.robot.name}' has no contact links and no tool with a shape"
    arm_frames, movable = moved_frames(scene, *rules.arms), {*movable_frames(scene)}
    held = rules.held_object(scene)
    for frame in touching:
        ancestors = scene.ancestors(frame)
        if frame == held:
            yield f"'{frame}' is in the hand"
        elif frame in arm_frames and movable.isdisjoint((frame, *ancestors)):
            yield f"'{frame}' is a frame of an arm"
        elif not _has_shape(scene, frame):
            shaped = next((name for name in ancestors if _has_shape(scene, name)), None)
            hint = "" if shaped is None else f"; its ancestor '{shaped}' has one"
            yield f"'{frame}' has no collision shape to touch{hint}"


def _has_shape(scene: SceneGraph, frame: str) -> bool:
    """Return whether a frame has a collision shape."""
    return any(part.collision for part in scene.shapes(frame))


def _names(frames: Sequence[str]) -> str:
    """Return the names of frames for a message."""
    return " or ".join(f"'{frame}'" for frame in frames)
