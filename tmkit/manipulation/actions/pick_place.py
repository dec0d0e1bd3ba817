"""Picking and placing with one arm, checked in the scene versions in which they happen.

To *pick*, the arm moves to a pose behind the grasp, approaches straight along the tool's z axis,
closes the hand, and lifts straight up. To *place*, it carries the object above the place, lowers it
straight, opens the hand, and retreats straight backwards. The straight lines are computed from the
contact outwards: inverse kinematics gives configurations at the contact, the lines lead from there
to free space, and only then is a path searched to their end. So a grasp that cannot be left again
costs no path search. To *move*, the arm goes to given joint values with the object in the hand.

Invariants: results depend on the arguments alone, seeds included. What is yielded as a
:class:`ActionMotion` has passed, in every segment, the recheck that a plan's checker will repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.primitives import (
    CollisionContext,
    FramePairs,
    MotionPrimitives,
    MotionSettings,
)
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults, payload_fault
from tmkit.manipulation.racks import RACK, removal_translations
from tmkit.motion import CollisionRules, MotionPlanner, PathConstraint
from tmkit.pddl import GroundAction
from tmkit.plans.class_changes import ClassEffect, FactEffect
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.observations import CovarianceRows, PlannedObservation
from tmkit.plans.values import Attachment, Configuration, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial.plain import read_only


@dataclass(frozen=True)
class PickPlaceOptions:
    """How a hand comes to an object and leaves it; all lengths in metres.

    Attributes:
        approach_distance: straight way of the tool along its z axis to the grasp, and backwards
            from the released object; by default that of the budget, 8 cm.
        lift_distance: height by which the object is lifted straight up, or from which it is
            lowered; by default 6 cm. From a rack it goes the shortest way off, up or along a bar.
        post_grasp_retreat: straight way of the tool backwards along its z axis with the object in
            the hand, after the lift and, reversed, before the lowering: out of a shelf and into it;
            0 by default.
        gripper_opening: distance of the open fingers before the grasp and after the release; by
            default that of the grasp, and fully open, or where there is no room by a little.
        min_fraction: share of each of these straight ways, from 0 to 1, that will do where the rest
            is not free. The default is 1, and a tenth where it is the arm that cannot follow it.
        constraints: what frames keep while the object is in the hand.
    """

    approach_distance: float | None = None
    lift_distance: float | None = None
    post_grasp_retreat: float = 0.0
    gripper_opening: float | None = None
    min_fraction: float = 1.0
    constraints: tuple[PathConstraint, ...] = ()


_USUAL = PickPlaceOptions()
_SHORT = 0.1  # share of a straight way that will do where the arm cannot follow the rest
_OF_LINES = (FailureKind.STRAIGHT_LINE, FailureKind.JOINT_LIMIT)
_LEVEL = 0.75  # sine of the slope of the line between the fingers over a rack, at most
# metres by which fingers open on a rack, among bars, and in the hole of a ring
_AJAR, _LITTLE = 0.012, 0.005
_ENDS = 3  # of one search to any, to which it is repeated where the rest of the motion fails


@dataclass(frozen=True, eq=False)
class ActionMotion:
    """An action made motion.

    Attributes:
        segments: the motion.
        scene: the scene version after it.
        q: (n_joints,) configuration after it.
        choice: what was chosen, in words.
        changes: the classes and task facts that are gained and lost after the motion; ``scene`` has
            them.
        observations: what is looked at after the motion; ``scene`` has what is expected of it.
    """

    segments: tuple[Segment, ...]
    scene: SceneGraph
    q: NDArray[np.float64]
    choice: str
    changes: tuple[ClassEffect | FactEffect, ...] = ()
    observations: tuple[PlannedObservation, ...] = ()

    def step(self, action: GroundAction) -> PlanStep:
        """Return the step of a plan that carries an action out so."""
        return PlanStep(
            action,
            self.segments,
            self.scene,
            self.q,
            self.choice,
            self.changes,
            observations=self.observations,
        )


def motions_at(
    contacts: Iterable[Configuration | MotionFailure], made: Callable[[Configuration], ActionMotion]
) -> Iterator[ActionMotion | MotionFailure]:
    """Yield the motion made through each configuration (n_joints,) at a contact, and failures in between."""
    for contact in contacts:
        try:
            yield contact if isinstance(contact, MotionFailure) else made(contact)
        except PrimitiveFailedError as failed:
            yield failed.failure


@dataclass(frozen=True, eq=False)
class _Way:
    """A motion to whose ``end`` a path is searched; ``completed`` computes the rest, which takes longer than that end.

    What it returns gives the whole for a path (k, n_joints).
    """

    phase: CollisionContext
    start: Configuration
    end: Configuration
    label: str
    completed: Callable[[], Callable[[Configuration], ActionMotion]]


@dataclass(frozen=True)
class _Pick:
    """An object and a grasp of it, and the collision contexts of the motions.

    Attributes:
        before: collision context of the approach.
        free: collision context of the transit.
        near: pairs of frames that are near each other at the start.
        q: (n_joints,) configuration before.
        q_open: (n_joints,) the same with the hand open.
        object: frame of the object.
        grasp: the grasp.
        covariance: the covariance that the closing hand adds; None for none.
    """

    before: CollisionContext
    free: CollisionContext
    near: FramePairs
    q: Configuration
    q_open: Configuration
    object: str
    grasp: Grasp
    covariance: CovarianceRows | None


class ArmMotionPlanner:
    """Works out picks, places and moves of one arm.

    Args:
        manipulator: the arm.
        budget: how hard to try.
        rules: what may touch while this arm acts; by default those that hold wherever a plan
            starts.
        clock: where time is counted.
        motion_planner: what finds paths between configurations; the core's RRT-Connect by default.
    """

    def __init__(
        self,
        manipulator: Manipulator,
        *,
        budget: MotionSettings,
        rules: CollisionRules | None = None,
        clock: StageClock | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> None:
        self.manipulator = manipulator
        self.primitives = MotionPrimitives(
            manipulator, budget=budget, rules=rules, clock=clock, motion_planner=motion_planner
        )

    def pick(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        object: str,
        grasp: Grasp,
        seed: int,
        motion: PickPlaceOptions = _USUAL,
        grasp_covariance: CovarianceRows | None = None,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that pick an object with one grasp, one for each way to reach it, and failures in between.

        Args:
            scene: the scene before.
            q: (n_joints,) configuration before.
            object: frame of the object.
            grasp: how to hold it.
            seed: seed of all searches.
            motion: how the hand comes and leaves.
            grasp_covariance: the covariance that the closing hand adds; none by default.
        """
        primitives = self.primitives
        opening = grasp.opening if motion.gripper_opening is None else motion.gripper_opening
        q_open = scene.configuration(self.manipulator.opened(opening), base=q)
        near = primitives.near_pairs(scene, q)
        before = primitives.phase(scene, near, contact_object=object, support=scene.parent(object))
        root_from_tool = (
            scene.pose(object, relative_to=scene.root(object), q=q) @ grasp.object_from_tool
        )
        contacts = primitives.contacts(
            before, root_from_tool, q=q_open, seed=seed, label="reaching the grasp"
        )
        free = primitives.phase(scene, near)
        at = partial(
            self._pick_at, _Pick(before, free, near, q, q_open, object, grasp, grasp_covariance)
        )
        yield from self._along_ways(contacts, at, motion, seed=seed)

    def place(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        change: Attachment,
        seed: int,
        motion: PickPlaceOptions = _USUAL,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that place the held object, one for each way to reach the place, and failures in between.

        Args:
            scene: the scene before, in which the object is a child of the hand.
            q: (n_joints,) configuration before.
            change: the object, the support, support_from_object at rest, and the covariance that
                the opening hand adds.
            seed: seed of all searches.
            motion: how the hand comes and leaves.
        """
        arm, primitives = self.manipulator, self.primitives
        object, support, pose = change.frame, change.parent, change.pose
        near = (
            *primitives.near_pairs(scene, q),
            *primitives.reduced_margin_pairs_at_rest(scene, q, change),
        )
        held = primitives.phase(
            scene, near, contact_object=object, support=support, constraints=motion.constraints
        )
        root_from_object = scene.pose(support, relative_to=scene.root(support), q=q) @ pose
        root_from_tool = root_from_object @ scene.pose(arm.tool, relative_to=object, q=q)
        if RACK in scene.classes(support) and abs(root_from_tool.rotation[2, 1]) > _LEVEL:
            cause = (
                f"one finger is above the other: '{support}' would press '{object}' on one of them"
            )
            yield MotionFailure("lowering", cause, kind=FailureKind.GRIP)
            return
        contacts = primitives.contacts(
            held, root_from_tool, q=q, seed=seed, label="reaching the place"
        )
        carried = primitives.phase(
            scene, near, contact_object=object, constraints=motion.constraints
        )
        at = partial(self._place_at, held, carried, near, q, reparenting=change)
        yield from self._along_ways(contacts, at, motion, seed=seed)

    def move(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        joints: Mapping[str, float],
        name: str,
        seed: int,
        constraints: tuple[PathConstraint, ...] = (),
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the motion to a configuration of the arm, with what the hand holds, or why there is none.

        Args:
            scene: the scene before.
            q: (n_joints,) configuration before.
            joints: where to go, radians or metres by joint of the arm; joints that are not named
                stay.
            name: what to call the place, for the plan and for failures.
            seed: seed of all searches.
            constraints: what frames keep along the path.

        Raises:
            UnknownNameError: a joint that is none of the arm's.
        """
        for joint in joints:
            if joint not in self.manipulator.joints:
                raise UnknownNameError.of("joint of the arm", joint, self.manipulator.joints)
        primitives = self.primitives
        held = primitives.rules.held(scene)
        phase = primitives.phase(
            scene, primitives.near_pairs(scene, q), contact_object=held, constraints=constraints
        )
        try:
            path = primitives.plan_path(
                phase,
                q,
                scene.configuration(dict(joints), base=q)[None],
                seed=seed,
                label=f"to {name}",
            )
            primitives.require_torque_limits(phase, path, label=f"to {name}")
            if held is not None:
                self.require_payload(phase, path, object=held, label=f"to {name}")
        except PrimitiveFailedError as failed:
            yield failed.failure
            return
        kind = SegmentKind.TRANSIT if held is None else SegmentKind.TRANSFER
        segment = self.segment(kind, path, q=q, held=held, phase=phase)
        yield ActionMotion((segment,), scene, path[-1], f"to {name}")

    def _pick_at(self, pick: _Pick, q_grasp: Configuration, motion: PickPlaceOptions) -> _Way:
        before, free, near, q = pick.before, pick.free, pick.near, pick.q_open
        object, grasp = pick.object, pick.grasp
        arm, primitives, scene = self.manipulator, self.primitives, before.scene
        away = primitives.tool_line(
            before,
            q_grasp,
            label="approach",
            length=motion.approach_distance,
            min_fraction=motion.min_fraction,
            fine_check=False,
        )

        def completed() -> Callable[[Configuration], ActionMotion]:
            q_held = scene.configuration(arm.finger_values(grasp.width), base=q_grasp)
            with primitives.clock.phase(PlanningStage.COLLISION):
                faults = grasp_contact_faults(scene, q_held, arm, object=object)
            if faults:
                raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)
            change = Attachment(
                object, arm.tip, scene.pose(object, relative_to=arm.tip, q=q_held), pick.covariance
            )
            held_scene = change.applied(scene, q_held)
            support = scene.parent(object)
            held = primitives.phase(
                held_scene,
                near,
                contact_object=object,
                support=support,
                constraints=motion.constraints,
            )
            primitives.require_free_fingers(before, q_grasp, q_held, label="grasp")
            lift, out = self._off(
                motion, scene, q_held, Attachment(object, str(support), scene.local_pose(object))
            )
            lifted = primitives.translation(
                held, q_held, lift, label="lift", min_fraction=motion.min_fraction, fine_check=False
            )
            self.require_payload(held, lifted, object=object, label="lift")
            departing = self._departure(
                held_scene, near, lifted[-1], object, motion, out, label="leaving"
            )
            primitives.require_free_fingers(free, pick.q, q, label="opening the hand")
            primitives.require_valid_line(before, away, label="approach")
            primitives.require_valid_line(held, lifted, label="lift")
            segments = [
                self.segment(SegmentKind.APPROACH, away[::-1], q=q, held=object, phase=before),
                self.segment(
                    SegmentKind.GRASP,
                    q_grasp[None],
                    q=q_held,
                    held=object,
                    phase=before,
                    change=change,
                ),
                self.segment(SegmentKind.LIFT, lifted, q=q_held, held=object, phase=held),
            ]
            if departing is not None:
                phase, leaving = departing
                primitives.require_valid_line(phase, leaving, label="leaving")
                segments.append(
                    self.segment(SegmentKind.TRANSFER, leaving, q=q_held, held=object, phase=phase)
                )
            end = lifted if departing is None else departing[1]

            def finished(transit: Configuration) -> ActionMotion:
                primitives.require_torque_limits(free, transit, away, label="transit")
                primitives.require_torque_limits(held, end, label="lift")
                way = self.segment(SegmentKind.TRANSIT, transit, q=q, held=None, phase=free)
                return ActionMotion((way, *segments), held_scene, end[-1], f"grasp {grasp.name}")

            return finished

        return _Way(free, q, away[-1], "transit", completed)

    def _place_at(
        self,
        held: CollisionContext,
        carried: CollisionContext,
        near: FramePairs,
        q: Configuration,
        q_place: Configuration,
        motion: PickPlaceOptions,
        *,
        reparenting: Attachment,
    ) -> _Way:
        primitives, object = self.primitives, reparenting.frame
        lift, out = self._off(motion, held.scene, q_place, reparenting)
        raised = primitives.translation(
            held,
            q_place,
            lift,
            label="lowering",
            min_fraction=motion.min_fraction,
            fine_check=False,
        )
        entering = self._departure(
            held.scene, near, raised[-1], object, motion, out, label="entering"
        )

        def completed() -> Callable[[Configuration], ActionMotion]:
            is_rack = motion.gripper_opening is None and RACK in held.scene.classes(
                reparenting.parent
            )
            q_open = self.released(
                held, q_place, object, motion.gripper_opening, by=_AJAR if is_rack else None
            )
            released_scene = reparenting.applied(held.scene, q_open)
            released = primitives.phase(
                released_scene, near, contact_object=object, support=reparenting.parent
            )
            self.require_payload(held, raised, object=object, label="lowering")
            away = primitives.tool_line(
                released,
                q_open,
                label="retreat",
                length=motion.approach_distance,
                min_fraction=motion.min_fraction,
                fine_check=False,
            )
            primitives.require_valid_line(held, raised, label="lowering")
            primitives.require_valid_line(released, away, label="retreat")
            segments = []
            if entering is not None:
                phase, path = entering
                primitives.require_valid_line(phase, path, label="entering")
                segments.append(
                    self.segment(SegmentKind.TRANSFER, path[::-1], q=q, held=object, phase=phase)
                )
            segments += [
                self.segment(SegmentKind.LOWER, raised[::-1], q=q, held=object, phase=held),
                self.segment(
                    SegmentKind.RELEASE,
                    q_place[None],
                    q=q_open,
                    held=object,
                    phase=held,
                    change=reparenting,
                ),
                self.segment(SegmentKind.RETREAT, away, q=q_open, held=object, phase=released),
            ]
            place = ", ".join(f"{number:.3f}" for number in reparenting.pose.translation)

            def finished(transfer: Configuration) -> ActionMotion:
                primitives.require_torque_limits(carried, transfer, raised, label="transfer")
                primitives.require_torque_limits(released, away, label="retreat")
                self.require_payload(carried, transfer, object=object, label="transfer")
                way = self.segment(SegmentKind.TRANSFER, transfer, q=q, held=object, phase=carried)
                return ActionMotion(
                    (way, *segments),
                    released_scene,
                    away[-1],
                    f"on {reparenting.parent} at ({place})",
                )

            return finished

        return _Way(
            carried, q, raised[-1] if entering is None else entering[1][-1], "transfer", completed
        )

    def _along_ways(
        self,
        contacts: Iterator[Configuration | MotionFailure],
        way_to: Callable[[Configuration, PickPlaceOptions], _Way],
        motion: PickPlaceOptions,
        *,
        seed: int,
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions through configurations at a contact: one after the other, or by one search to any of them.

        Where the arm cannot follow a straight way to its end, a part of it will do, once all else
        was tried.
        """
        ways: list[_Way] = []
        shorter: list[Configuration] = []
        failures: list[MotionFailure] = []  # of one search to any, which needs only one of its ends
        is_multi_goal = self.primitives.budget.is_multi_goal

        def attempts() -> Iterator[tuple[Configuration | MotionFailure, PickPlaceOptions]]:
            yield from ((contact, motion) for contact in contacts)
            yield from ((contact, replace(motion, min_fraction=_SHORT)) for contact in shorter)

        for contact, how in attempts():
            if isinstance(contact, MotionFailure):
                yield contact
                continue
            try:
                way = way_to(contact, how)
                if is_multi_goal:
                    ways.append(way)
                    continue
                finished = way.completed()
            except PrimitiveFailedError as failed:
                if how.min_fraction == 1.0 and failed.failure.kind in _OF_LINES:
                    shorter.append(contact)
                elif is_multi_goal:
                    failures.append(failed.failure)
                else:
                    yield failed.failure
                continue
            try:
                yield finished(
                    self.primitives.plan_path(
                        way.phase, way.start, way.end[None], seed=seed, label=way.label
                    )
                )
            except PrimitiveFailedError as failed:
                yield failed.failure
        for _ in range(min(len(ways), _ENDS)):
            first, ends = ways[0], np.array([way.end for way in ways])
            try:
                path = self.primitives.plan_path(
                    first.phase, first.start, ends, seed=seed, label=first.label
                )
                way = ways.pop(int(np.argmin(np.max(np.abs(ends - path[-1]), axis=1))))
            except PrimitiveFailedError as failed:
                yield failed.failure
                return
            try:
                yield way.completed()(path)
                return
            except PrimitiveFailedError as failed:
                failures.append(failed.failure)
        yield from failures

    def released(
        self,
        held: CollisionContext,
        q: Configuration,
        object: str,
        opening: float | None = None,
        *,
        by: float | None = None,
    ) -> Configuration:
        """Return a configuration with the fingers apart; by a little only where the object has no room for more.

        Args:
            held: scene and collision rules while the hand holds.
            q: (n_joints,) configuration with the hand closed.
            object: what it holds.
            opening: metres between the fingers; fully open by default.
            by: metres by which they open at most.

        Raises:
            PrimitiveFailedError: the opening fingers collide.
        """
        arm, values = self.manipulator, self.manipulator.opened(opening)
        if by is not None:
            share = by / max(by, arm.width_open - arm.width_closed)
            for joint, value in self.primitives.finger_values_of(q, held.scene).items():
                low, high = sorted((value, arm.gripper_open[joint]))
                step = share * (arm.gripper_open[joint] - arm.gripper_closed[joint])
                values[joint] = min(max(value + step, low), high)
        q_open = held.scene.configuration(values, base=q)
        try:
            self.primitives.require_free_fingers(held, q, q_open, label="release")
        except PrimitiveFailedError as failed:
            if by is not None or not any(object in pair for pair in failed.failure.pairs):
                raise
            return self.released(held, q, object, by=_LITTLE)
        return q_open

    def _off(
        self, motion: PickPlaceOptions, scene: SceneGraph, q: Configuration, rest: Attachment
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return by what (3,) an object is lifted from where it rests, and shifted then from a rack, in the root."""
        if RACK in scene.classes(rest.parent):
            ignored = moved_frames(scene, self.manipulator)
            return removal_translations(
                scene, rest.frame, rest.parent, rest.pose, q=q, ignored=ignored
            )
        return (
            np.array(
                [
                    0.0,
                    0.0,
                    (
                        self.primitives.budget.lift_distance
                        if motion.lift_distance is None
                        else motion.lift_distance
                    ),
                ]
            ),
            None,
        )

    def _departure(
        self,
        scene: SceneGraph,
        near: FramePairs,
        q: Configuration,
        object: str,
        motion: PickPlaceOptions,
        out: NDArray[np.float64] | None,
        *,
        label: str,
    ) -> tuple[CollisionContext, Configuration] | None:
        """Return the straight path backwards, or ``out`` (3,), with an object, with the phase in which it is free."""
        if motion.post_grasp_retreat <= 0.0 and out is None:
            return None
        phase = self.primitives.phase(
            scene, near, contact_object=object, constraints=motion.constraints
        )
        if out is not None:
            path = self.primitives.translation(
                phase, q, out, label=label, min_fraction=motion.min_fraction, fine_check=False
            )
        else:
            path = self.primitives.tool_line(
                phase,
                q,
                label=label,
                length=motion.post_grasp_retreat,
                min_fraction=motion.min_fraction,
                fine_check=False,
            )
        self.require_payload(phase, path, object=object, label=label)
        return (phase, path) if len(path) > 1 else None

    def require_payload(
        self, phase: CollisionContext, path: Configuration, *, object: str, label: str
    ) -> None:
        """Check that the gripper bears the weight of an object along a path.

        Args:
            phase: scene and collision rules of the path.
            path: (k, n_joints) configurations.
            object: the held object.
            label: name of the motion, for the failure.

        Raises:
            PrimitiveFailedError: the object is too heavy to be held like that.
        """
        fault = payload_fault(phase.scene, path, self.manipulator, object=object)
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
        """Return a segment of this arm.

        Args:
            kind: what the arm does.
            path: (k, n_joints) configurations.
            q: (n_joints,) a configuration with the fingers as they are at its end.
            held: the object, or handle, that is handled.
            phase: the version in which it happens, with what may touch.
            change: the change of the scene at its end.
            mechanism: the joint that the hand moves by its handle.
        """
        arm, names = self.manipulator, phase.scene.joint_names
        joints = arm.joints if mechanism is None else (*arm.joints, mechanism)
        own_path = read_only(np.array(path[:, [names.index(joint) for joint in joints]]))
        gripper = self.primitives.finger_values_of(q, phase.scene)
        return Segment(
            kind,
            arm.name,
            joints,
            own_path,
            gripper,
            held,
            phase.allowed_contacts,
            change,
            phase.constraints,
        )


def arm_motion_planners(
    manipulators: Sequence[Manipulator],
    *,
    budget: MotionSettings,
    rules: CollisionRules | None = None,
    clock: StageClock | None = None,
    motion_planner: MotionPlanner | None = None,
) -> dict[str, ArmMotionPlanner]:
    """Return the motions of several arms, by name and in their order; by default with rules for any start."""
    rules = (
        CollisionRules(manipulators[0], others=tuple(manipulators[1:])) if rules is None else rules
    )
    return {
        arm.name: ArmMotionPlanner(
            arm,
            budget=budget,
            rules=rules.acting(arm.name),
            clock=clock,
            motion_planner=motion_planner,
        )
        for arm in manipulators
    }
