r"""Pick and place actions of one arm.

A pick consists of one searched path, straight lines and a grasp::

    q --- searched path ---> pre-grasp             lifted ---> retracted
                                   \                 ^   post-grasp retreat
                          approach  \                |   (tool -z, optional)
                      (tool z axis)  \               |  lift (root z axis)
                                      v              |
                                   [ grasp: fingers close ]
    ------------------------------ support ------------------------------

A place is the mirror image: searched path, entry, lowering, release, retreat.

The planner works outwards from the contact, like MoveIt Task Constructor. Inverse kinematics
generates contact configurations, straight lines propagate from them into free space, and a path
search connects the current configuration to the free end of the lines. The search is the most
expensive step, so it runs only where the lines are free of collisions.

All results are deterministic in the arguments, including the seed. Every segment of a
:class:`ActionMotion` has passed the checks that the plan validator repeats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion, BasicMotions, gripper_failure
from tmkit.manipulation.actions.hand_state import free_object_failure, held_object_failure
from tmkit.manipulation.actions.primitives import CollisionContext, MotionSettings
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults
from tmkit.manipulation.placements.support import support_fault
from tmkit.manipulation.racks import RACK, removal_translations
from tmkit.motion import CollisionRules, MotionPlanner, PathConstraint
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.observations import CovarianceRows
from tmkit.plans.values import Attachment, Configuration, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames

_FALLBACK_SHARE = 0.1
"""Fraction of a straight line that suffices when the arm cannot follow the whole line."""

_ARM_FAILURES = (FailureKind.STRAIGHT_LINE, FailureKind.JOINT_LIMIT)
"""Failures of a straight line for which a shorter line is tried."""

_MAX_FINGER_SLOPE = 0.75
"""Largest sine of the angle between the horizontal and the line through both fingers, on a rack."""

_RACK_RELEASE_TRAVEL = 0.012
"""Change of the gripper width at a release on a rack [m]."""

_MAX_MULTI_GOAL_SEARCHES = 3
"""Number of path searches to any of several contacts before a pick or place fails."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class PickPlaceOptions:
    """Distances, finger opening and constraints of a pick or place.

    Attributes:
        approach_distance: length of the approach along the tool's z axis, and of the retreat after
            a release [m]. Defaults to :attr:`MotionSettings.approach_distance`.
        lift_distance: height of the lift and of the lowering, along the root's z axis [m]. Defaults
            to :attr:`MotionSettings.lift_distance`. Ignored on a rack, where
            :func:`~tmkit.manipulation.racks.removal_translations` gives the lift.
        post_grasp_retreat: length of the post-grasp retreat along the tool's negative z axis, with
            the object in the hand [m]. The entry of a place is its reverse.
        gripper_opening: gripper width before a grasp and after a release [m]. A grasp defaults to
            :attr:`Grasp.opening`. A release defaults to fully open, or less if there is no room.
        min_fraction: smallest fraction of each straight line that suffices, in [0, 1]. If 1, a
            fraction of 0.1 also suffices where the arm cannot follow the whole line.
        constraints: path constraints while the hand holds the object.
    """

    approach_distance: float | None = None
    lift_distance: float | None = None
    post_grasp_retreat: float = 0.0
    gripper_opening: float | None = None
    min_fraction: float = 1.0
    constraints: tuple[PathConstraint, ...] = ()


_DEFAULT_MOTION = PickPlaceOptions()


class ArmMotionPlanner(BasicMotions):
    """Planner of pick and place actions and of the basic motions of one arm.

    An arm without a gripper moves; its picks are failures.

    Args:
        robot: name or description of the arm and gripper.
        budget: search limits and default line lengths. Defaults to :class:`MotionSettings`.
        rules: allowed contacts while this arm acts. Defaults to the rules for any plan start.
        clock: accumulates planning time by phase.
        motion_planner: path planner. Defaults to the RRT-Connect of the C++ core.
    """

    def pick(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        object: str,
        grasp: Grasp,
        seed: int,
        motion: PickPlaceOptions = _DEFAULT_MOTION,
        grasp_covariance: CovarianceRows | None = None,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that pick an object with one grasp, and the failures of other attempts.

        If the hand is not empty or the object is in another hand, the only result is a failure.

        Args:
            scene: scene before the pick, in which the hand is empty.
            q: (n_joints,) configuration before the pick.
            object: frame of the object.
            grasp: pose of the tool relative to the object, and gripper widths.
            seed: seed of inverse kinematics and of the path searches.
            motion: line lengths, finger opening and path constraints.
            grasp_covariance: (6, 6) covariance that closing the hand adds to the object's pose,
                ordered [rho, theta], in the object's axes. Defaults to none.
        """
        check_argument(scene, SceneGraph, "scene", function="pick")
        check_argument(grasp, Grasp, "grasp", function="pick")
        check_argument(motion, PickPlaceOptions, "motion", function="pick")
        if self.robot.gripper_kind == "none":
            yield gripper_failure(self.robot)
            return
        primitives = self.primitives
        arms = primitives.rules.arms
        failure = free_object_failure(scene, arms, object=object, phase="picking")
        if failure is not None:
            yield failure
            return
        opening = grasp.opening if motion.gripper_opening is None else motion.gripper_opening
        near_pairs = primitives.near_pairs(scene, q)
        free_phase = primitives.phase(scene, near_pairs)
        contact_phase = primitives.phase(
            scene, near_pairs, contact_object=object, support=scene.parent(object)
        )

        # Leave bodies beside the fingers, such as an object that an earlier grasp has missed.
        opened_fingers, leaving = self.robot.open_finger_values(opening), tuple[Segment, ...]()
        q_open = scene.configuration(opened_fingers, base=q)
        try:
            primitives.require_free_fingers(free_phase, q, q_open, label="opening the hand")
        except PrimitiveFailedError:
            fraction, kind = motion.min_fraction, SegmentKind.TRANSIT
            with suppress(PrimitiveFailedError):
                path = primitives.tool_line(free_phase, q, label="leaving", min_fraction=fraction)
                leaving = (self.segment(kind, path, q=q, held=None, phase=free_phase),)
                q = path[-1]
                q_open = scene.configuration(opened_fingers, base=q)
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
        root_from_tool = root_from_object @ grasp.object_from_tool
        contacts = primitives.contacts(
            contact_phase, root_from_tool, q=q_open, seed=seed, label="reaching the grasp"
        )
        transit = _SearchedPath(free_phase, q_open, first_segments=leaving)
        task = _PickTask(self, transit, contact_phase, q, object, grasp, grasp_covariance)
        yield from self._refinements(contacts, partial(_PickAttempt, task), transit, motion, seed)

    def place(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        change: Attachment,
        seed: int,
        motion: PickPlaceOptions = _DEFAULT_MOTION,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that place the held object, and the failures of other attempts.

        If the hand does not hold the object, the only result is a failure.

        Args:
            scene: scene before the place, in which the object is a child of the hand.
            q: (n_joints,) configuration before the place.
            change: object, support, support_from_object at rest, and the covariance that opening
                the hand adds.
            seed: seed of inverse kinematics and of the path searches.
            motion: line lengths, finger opening and path constraints.
        """
        check_argument(scene, SceneGraph, "scene", function="place")
        check_argument(change, Attachment, "change", function="place")
        check_argument(motion, PickPlaceOptions, "motion", function="place")
        primitives, constraints = self.primitives, motion.constraints
        object, support = change.frame, change.parent
        failure = held_object_failure(scene, self.robot, object=object, phase="placing")
        if failure is not None:
            yield failure
            return
        near_pairs = (
            *primitives.near_pairs(scene, q),
            *primitives.reduced_margin_pairs_at_rest(scene, q, change),
        )
        contact_phase = primitives.phase(
            scene, near_pairs, contact_object=object, support=support, constraints=constraints
        )
        root_from_support = scene.pose(support, relative_to=scene.root(support), q=q)
        object_from_tool = scene.pose(self.robot.tool, relative_to=object, q=q)
        root_from_tool = root_from_support @ change.pose @ object_from_tool
        on_rack = RACK in scene.classes(support)
        if on_rack and abs(root_from_tool.rotation[2, 1]) > _MAX_FINGER_SLOPE:
            cause = (
                f"one finger is above the other: '{support}' would press '{object}' on one of them"
            )
            yield MotionFailure("lowering", cause, kind=FailureKind.GRIP)
            return
        contacts = primitives.contacts(
            contact_phase, root_from_tool, q=q, seed=seed, label="reaching the place"
        )
        carried = primitives.phase(
            scene, near_pairs, contact_object=object, constraints=constraints
        )
        transfer = _SearchedPath(carried, q, object)
        task = _PlaceTask(self, transfer, contact_phase, change)
        yield from self._refinements(contacts, partial(_PlaceAttempt, task), transfer, motion, seed)

    def _refinements(
        self,
        contacts: Iterator[Configuration | MotionFailure],
        attempt_at: Callable[[Configuration, PickPlaceOptions], _Attempt],
        searched: _SearchedPath,
        motion: PickPlaceOptions,
        seed: int,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions through contacts, with one path search each or one for all contacts.

        :attr:`MotionSettings.is_multi_goal` selects one search for all contacts.
        """
        if self.primitives.budget.is_multi_goal:
            attempts = list(_with_shorter_lines(contacts, attempt_at, motion))
            yield from self._refine_multi_goal(attempts, searched, seed)
            return

        def straight_part_at(contact: Configuration, motion: PickPlaceOptions) -> _StraightPart:
            return attempt_at(contact, motion).straight_part()

        for straight in _with_shorter_lines(contacts, straight_part_at, motion):
            if isinstance(straight, MotionFailure):
                yield straight
                continue
            try:
                path = self._search(searched, straight.goal[None], seed)
                yield self._refinement(searched, path, straight)
            except PrimitiveFailedError as error:
                yield error.failure

    def _refine_multi_goal(
        self, attempts: list[_Attempt | MotionFailure], searched: _SearchedPath, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield one motion found by searches to the goals of all attempts, or the failures."""
        failures = [attempt for attempt in attempts if isinstance(attempt, MotionFailure)]
        candidates = [attempt for attempt in attempts if not isinstance(attempt, MotionFailure)]
        for _ in range(min(len(candidates), _MAX_MULTI_GOAL_SEARCHES)):
            goals = np.array([attempt.goal for attempt in candidates])
            try:
                path = self._search(searched, goals, seed)
            except PrimitiveFailedError as error:
                yield error.failure
                return
            reached = int(np.argmin(np.max(np.abs(goals - path[-1]), axis=1)))
            try:
                yield self._refinement(searched, path, candidates.pop(reached).straight_part())
                return
            except PrimitiveFailedError as error:
                failures.append(error.failure)
        yield from failures

    def _search(self, searched: _SearchedPath, goals: Configuration, seed: int) -> Configuration:
        """Return a path (k, n_joints) to one of the goals (m, n_joints)."""
        return self.primitives.plan_path(
            searched.phase, searched.start, goals, seed=seed, label=searched.kind.value
        )

    def _refinement(
        self, searched: _SearchedPath, path: Configuration, straight: _StraightPart
    ) -> ActionMotion:
        """Return the motion along a searched path (k, n_joints) and the straight part after it.

        Raises:
            PrimitiveFailedError: if the arm or the gripper is too weak.
        """
        primitives, phase, kind = self.primitives, searched.phase, searched.kind
        primitives.require_torque_limits(phase, path, straight.first_line, label=kind.value)
        last = straight.last_line
        primitives.require_torque_limits(last.phase, last.path, label=last.name)
        if searched.held is not None:
            self.require_payload(phase, path, object=searched.held, label=kind.value)
        first = self.segment(kind, path, q=searched.start, held=searched.held, phase=phase)
        q_end = last.path[-1]
        segments = (*searched.first_segments, first, *straight.segments)
        return ActionMotion(segments, straight.scene, q_end, straight.choice)


def arm_motion_planners(
    robots: Sequence[Manipulator],
    *,
    budget: MotionSettings,
    rules: CollisionRules | None = None,
    clock: StageClock | None = None,
    motion_planner: MotionPlanner | None = None,
) -> dict[str, ArmMotionPlanner]:
    """Return one planner for each arm, by name and in the given order.

    Args:
        robots: arms of the scene.
        budget: search limits and default line lengths.
        rules: allowed contacts. Defaults to the rules for any plan start.
        clock: accumulates planning time by phase.
        motion_planner: path planner. Defaults to the RRT-Connect of the C++ core.
    """
    if rules is None:
        rules = CollisionRules(robots[0], other_arms=tuple(robots[1:]))
    return {
        arm.name: ArmMotionPlanner(
            arm,
            budget=budget,
            rules=rules.for_arm(arm.name),
            clock=clock,
            motion_planner=motion_planner,
        )
        for arm in robots
    }


@dataclass(frozen=True, eq=False)
class _Line:
    """A straight line of the tool, as a path (k, n_joints) that starts at the contact."""

    name: str
    phase: CollisionContext
    path: Configuration


@dataclass(frozen=True, eq=False)
class _SearchedPath:
    """The query for the path that leads to the straight lines.

    Attributes:
        phase: scene and collision rules.
        start: (n_joints,) configuration.
        held: frame of the object in the hand, or None.
        first_segments: segments that lead to the start.
    """

    phase: CollisionContext
    start: Configuration
    held: str | None = None
    first_segments: tuple[Segment, ...] = ()

    @property
    def kind(self) -> SegmentKind:
        """Kind of the segment along the path."""
        return SegmentKind.TRANSIT if self.held is None else SegmentKind.TRANSFER


@dataclass(frozen=True, eq=False)
class _StraightPart:
    """The checked segments that follow the searched path.

    Attributes:
        goal: (n_joints,) configuration at which the searched path ends.
        segments: segments in order of execution.
        first_line: (k, n_joints) line before the contact, whose effort is not yet checked.
        last_line: line at whose end the motion ends, whose effort is not yet checked.
        scene: scene after the motion.
        choice: description of the grasp or placement.
    """

    goal: Configuration
    segments: tuple[Segment, ...]
    first_line: Configuration
    last_line: _Line
    scene: SceneGraph
    choice: str


class _Attempt(ABC):
    """A pick or place through one contact configuration.

    Attributes:
        goal: (n_joints,) configuration at which the searched path ends.
    """

    goal: Configuration

    def __init__(self, arm: ArmMotionPlanner, motion: PickPlaceOptions) -> None:
        self._arm, self._primitives, self._motion = arm, arm.primitives, motion

    @abstractmethod
    def straight_part(self) -> _StraightPart:
        """Compute and check everything that follows the searched path.

        Fine collision checks come last because they cost most.

        Raises:
            PrimitiveFailedError: if a line, the grasp or the release is infeasible.
        """

    def _tool_line(
        self, name: str, phase: CollisionContext, start: Configuration, length: float | None
    ) -> _Line:
        """Return the line from ``start`` (n_joints,) along the negative z axis of the tool."""
        min_fraction = self._motion.min_fraction
        path = self._primitives.tool_line(
            phase, start, label=name, length=length, min_fraction=min_fraction, fine_check=False
        )
        return _Line(name, phase, path)

    def _translation(
        self, name: str, phase: CollisionContext, start: Configuration, by: NDArray[np.float64]
    ) -> _Line:
        """Return the line from ``start`` (n_joints,) by ``by`` (3,) in root axes [m]."""
        min_fraction = self._motion.min_fraction
        path = self._primitives.translation(
            phase, start, by, label=name, min_fraction=min_fraction, fine_check=False
        )
        return _Line(name, phase, path)

    def _lift(
        self, scene: SceneGraph, q: Configuration, rest: Attachment
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the translations that remove an object from its support.

        Args:
            scene: scene in which the hand is at the contact.
            q: (n_joints,) configuration at the contact.
            rest: pose of the object on its support.

        Returns:
            (3,) lift, and on a rack the (3,) translation that follows it, in root axes [m].
        """
        if RACK in scene.classes(rest.parent):
            ignored = moved_frames(scene, self._arm.robot)
            return removal_translations(
                scene, rest.frame, rest.parent, rest.pose, q=q, ignored=ignored
            )
        lift = self._motion.lift_distance
        return np.array(
            [0.0, 0.0, self._primitives.budget.lift_distance if lift is None else lift]
        ), None

    def _post_grasp_retreat(
        self, name: str, lifted: _Line, object: str, off_rack: NDArray[np.float64] | None
    ) -> _Line | None:
        """Return the line with the object in the hand that follows the lift, or None.

        Args:
            name: name of the line in failures.
            lifted: lift of the object off its support.
            object: frame of the object.
            off_rack: (3,) translation off a rack in root axes [m].
        """
        motion, start = self._motion, lifted.path[-1]
        if motion.post_grasp_retreat <= 0.0 and off_rack is None:
            return None
        phase = self._primitives.phase(
            lifted.phase.scene,
            lifted.phase.near_pairs,
            contact_object=object,
            constraints=motion.constraints,
        )
        if off_rack is None:
            line = self._tool_line(name, phase, start, motion.post_grasp_retreat)
        else:
            line = self._translation(name, phase, start, off_rack)
        self._arm.require_payload(phase, line.path, object=object, label=name)
        return line if len(line.path) > 1 else None

    def _require_checked(self, line: _Line) -> None:
        """Check a line at the resolution of the plan validator."""
        self._primitives.require_valid_line(line.phase, line.path, label=line.name)


@dataclass(frozen=True, eq=False)
class _PickTask:
    """Inputs shared by all attempts at one pick.

    Attributes:
        transit: query of the searched path, with the fingers open.
        contact_phase: scene before the grasp, in which the hand may touch the object.
        q: (n_joints,) configuration before the fingers open.
        object: frame of the object.
        grasp: pose of the tool relative to the object, and gripper widths.
        grasp_covariance: covariance that closing the hand adds.
    """

    arm: ArmMotionPlanner
    transit: _SearchedPath
    contact_phase: CollisionContext
    q: Configuration
    object: str
    grasp: Grasp
    grasp_covariance: CovarianceRows | None


class _PickAttempt(_Attempt):
    """A pick through one contact configuration (n_joints,)."""

    def __init__(self, task: _PickTask, q_grasp: Configuration, motion: PickPlaceOptions) -> None:
        super().__init__(task.arm, motion)
        self._task, self._q_grasp = task, q_grasp
        self._approach = self._tool_line(
            "approach", task.contact_phase, q_grasp, motion.approach_distance
        )
        self.goal = self._approach.path[-1]

    def straight_part(self) -> _StraightPart:
        task, arm, primitives = self._task, self._arm, self._primitives
        phase, object = task.contact_phase, task.object
        scene, support = phase.scene, phase.scene.parent(object)
        q_open, q_closed = task.transit.start, self._close_fingers()

        # Attach the object to the hand.
        tip = arm.robot.tip
        tip_from_object = scene.pose(object, relative_to=tip, q=q_closed)
        attachment = Attachment(object, tip, tip_from_object, task.grasp_covariance)
        held_phase = primitives.phase(
            attachment.apply(scene, q_closed),
            phase.near_pairs,
            contact_object=object,
            support=support,
            constraints=self._motion.constraints,
        )
        primitives.require_free_fingers(phase, self._q_grasp, q_closed, label="grasp")

        # Compute the lines after the grasp, and check all lines.
        rest = Attachment(object, str(support), scene.local_pose(object))
        up, off_rack = self._lift(scene, q_closed, rest)
        lift = self._translation("lift", held_phase, q_closed, up)
        arm.require_payload(held_phase, lift.path, object=object, label="lift")
        retreat = self._post_grasp_retreat("leaving", lift, object, off_rack)
        primitives.require_free_fingers(
            task.transit.phase, task.q, q_open, label="opening the hand"
        )
        self._require_checked(self._approach)
        self._require_checked(lift)

        # Collect the segments in order of execution.
        segment = partial(arm.segment, held=object)
        approach, at_grasp = self._approach.path[::-1], self._q_grasp[None]
        segments = [
            segment(SegmentKind.APPROACH, approach, q=q_open, phase=phase),
            segment(SegmentKind.GRASP, at_grasp, q=q_closed, phase=phase, change=attachment),
            segment(SegmentKind.LIFT, lift.path, q=q_closed, phase=held_phase),
        ]
        last = lift
        if retreat is not None:
            self._require_checked(retreat)
            transfer = SegmentKind.TRANSFER
            segments.append(segment(transfer, retreat.path, q=q_closed, phase=retreat.phase))
            last = replace(lift, path=retreat.path)
        choice = f"grasp {task.grasp.name}"
        first = self._approach.path
        return _StraightPart(self.goal, tuple(segments), first, last, held_phase.scene, choice)

    def _close_fingers(self) -> Configuration:
        """Return the configuration (n_joints,) with the fingers closed on the object.

        Raises:
            PrimitiveFailedError: if a contact link does not touch the object.
        """
        task, arm, scene = self._task, self._arm.robot, self._task.contact_phase.scene
        q_closed = scene.configuration(arm.finger_values(task.grasp.width), base=self._q_grasp)
        with self._primitives.clock.phase(PlanningStage.COLLISION):
            faults = grasp_contact_faults(scene, q_closed, arm, object=task.object)
        if faults:
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)
        return q_closed


@dataclass(frozen=True, eq=False)
class _PlaceTask:
    """Inputs shared by all attempts at one place.

    Attributes:
        transfer: query of the searched path, with the object in the hand.
        contact_phase: scene before the release, in which the object may touch its support.
        attachment: change of the object's parent from the hand to the support.
    """

    arm: ArmMotionPlanner
    transfer: _SearchedPath
    contact_phase: CollisionContext
    attachment: Attachment


class _PlaceAttempt(_Attempt):
    """A place through one contact configuration (n_joints,)."""

    def __init__(self, task: _PlaceTask, q_place: Configuration, motion: PickPlaceOptions) -> None:
        super().__init__(task.arm, motion)
        self._task, self._q_place = task, q_place
        phase, object = task.contact_phase, task.attachment.frame
        up, off_rack = self._lift(phase.scene, q_place, task.attachment)
        self._lowering = self._translation("lowering", phase, q_place, up)
        self._entry = self._post_grasp_retreat("entering", self._lowering, object, off_rack)
        outermost = self._lowering if self._entry is None else self._entry
        self.goal = outermost.path[-1]

    def straight_part(self) -> _StraightPart:
        task, arm, motion = self._task, self._arm, self._motion
        phase, attachment = task.contact_phase, task.attachment
        object, support = attachment.frame, attachment.parent
        q, q_place = task.transfer.start, self._q_place

        # Attach the object to its support.
        on_rack = motion.gripper_opening is None and RACK in phase.scene.classes(support)
        travel = _RACK_RELEASE_TRAVEL if on_rack else None
        q_open = arm.open_fingers(phase, q_place, object, motion.gripper_opening, travel=travel)
        scene = attachment.apply(phase.scene, q_open)
        fault = support_fault(scene, q_open, object=object)
        if fault is not None:
            raise PrimitiveFailedError("release", fault, kind=FailureKind.GRIP)
        retreat_phase = self._primitives.phase(
            scene, phase.near_pairs, contact_object=object, support=support
        )

        # Compute the line after the release, and check all lines.
        arm.require_payload(phase, self._lowering.path, object=object, label="lowering")
        retreat = self._tool_line("retreat", retreat_phase, q_open, motion.approach_distance)
        self._require_checked(self._lowering)
        self._require_checked(retreat)

        # Collect the segments in order of execution.
        segment = partial(arm.segment, held=object)
        segments = []
        if self._entry is not None:
            self._require_checked(self._entry)
            entry = self._entry.path[::-1]
            segments.append(segment(SegmentKind.TRANSFER, entry, q=q, phase=self._entry.phase))
        lowering, at_place = self._lowering.path[::-1], q_place[None]
        segments += [
            segment(SegmentKind.LOWER, lowering, q=q, phase=phase),
            segment(SegmentKind.RELEASE, at_place, q=q_open, phase=phase, change=attachment),
            segment(SegmentKind.RETREAT, retreat.path, q=q_open, phase=retreat_phase),
        ]
        position = ", ".join(f"{value:.3f}" for value in attachment.pose.translation)
        choice = f"on {support} at ({position})"
        first = self._lowering.path
        return _StraightPart(self.goal, tuple(segments), first, retreat, scene, choice)


def _with_shorter_lines(
    contacts: Iterator[Configuration | MotionFailure],
    attempt_at: Callable[[Configuration, PickPlaceOptions], _T],
    motion: PickPlaceOptions,
) -> Iterator[_T | MotionFailure]:
    """Yield an attempt or failure for each contact, and retry shorter lines last.

    A retry follows where the arm, not an obstacle, prevents a whole line.
    """
    retries: list[Configuration] = []
    for contact in contacts:
        if isinstance(contact, MotionFailure):
            yield contact
            continue
        try:
            yield attempt_at(contact, motion)
        except PrimitiveFailedError as error:
            if motion.min_fraction == 1.0 and error.failure.kind in _ARM_FAILURES:
                retries.append(contact)
            else:
                yield error.failure
    if retries:
        shorter = replace(motion, min_fraction=_FALLBACK_SHARE)
        yield from _with_shorter_lines(iter(retries), attempt_at, shorter)
