"""Picking and placing with one arm, checked in the scene versions in which they happen.

To *pick*, the arm moves to a pose behind the grasp, approaches straight along the tool's z axis, closes the hand, and
lifts straight up. To *place*, it carries the object above the place, lowers it straight, opens the hand, and retreats
straight backwards. The straight pieces are computed from the contact outwards: inverse kinematics gives configurations
at the contact, the lines lead from there to free space, and only then is a path searched to their end. So a grasp that
cannot be left again costs no path search. To *move*, the arm goes to given joint values with the object in the hand.

Invariants: results depend on the arguments alone, seeds included. What is yielded as a :class:`Refinement` has passed,
in every segment, the recheck that a plan's checker will repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.primitives import MotionBudget, MotionPieces, NearPairs, Phase
from tmkit.manipulation.actions.timing_breakdown import PhaseClock, PlanningPhase
from tmkit.manipulation.grasps.sampling import Grasp, grip_faults, hold_fault
from tmkit.manipulation.racks import RACK, way_off
from tmkit.motion import CollisionRules, MotionPlanner, PathConstraint
from tmkit.pddl import GroundAction
from tmkit.plans.class_changes import ClassChange, FactChange
from tmkit.plans.failures import FailureKind, MotionFailure, PieceFailedError
from tmkit.plans.observations import CovarianceRows, PlannedObservation
from tmkit.plans.values import Configuration, PlanStep, Reparenting, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only


@dataclass(frozen=True)
class HandMotion:
    """How a hand comes to an object and leaves it; all lengths in metres.

    Attributes:
        approach: straight way of the tool along its z axis to the grasp, and backwards from the released object; by
            default that of the budget, 8 cm.
        lift: height by which the object is lifted straight up, or from which it is lowered; by default 6 cm. From a
            rack it goes the shortest way off, up or along a bar.
        departure: straight way of the tool backwards along its z axis with the object in the hand, after the lift and,
            reversed, before the lowering: out of a shelf and into it; 0 by default.
        opening: distance of the open fingers before the grasp and after the release; by default that of the grasp, and
            fully open, or where there is no room by a little.
        share: share of each of these straight ways, from 0 to 1, that will do where the rest is not free; 1 by default,
            and a tenth where it is the arm that cannot follow it.
        constraints: what frames keep while the object is in the hand.
    """

    approach: float | None = None
    lift: float | None = None
    departure: float = 0.0
    opening: float | None = None
    share: float = 1.0
    constraints: tuple[PathConstraint, ...] = ()


_USUAL = HandMotion()
_SHORT = 0.1  # share of a straight way that will do where the arm cannot follow the rest
_OF_LINES = (FailureKind.STRAIGHT_LINE, FailureKind.JOINT_LIMIT)
_LEVEL = 0.75  # sine of the slope of the line between the fingers over a rack, at most
_AJAR, _LITTLE = 0.012, 0.005  # metres by which fingers open on a rack, among bars, and in the hole of a ring
_ENDS = 3  # of one search to any, to which it is repeated where the rest of the motion fails


@dataclass(frozen=True, eq=False)
class Refinement:
    """An action made motion.

    Attributes:
        segments: the motion.
        scene: the scene version after it.
        q: (n_joints,) configuration after it.
        choice: what was chosen, in words.
        changes: the classes and task facts that are gained and lost after the motion; ``scene`` has them.
        observations: what is looked at after the motion; ``scene`` has what is expected of it.
    """

    segments: tuple[Segment, ...]
    scene: SceneGraph
    q: NDArray[np.float64]
    choice: str
    changes: tuple[ClassChange | FactChange, ...] = ()
    observations: tuple[PlannedObservation, ...] = ()

    def step(self, action: GroundAction) -> PlanStep:
        """Return the step of a plan that carries an action out so."""
        return PlanStep(
            action, self.segments, self.scene, self.q, self.choice, self.changes, observations=self.observations
        )


def motions_at(
    contacts: Iterable[Configuration | MotionFailure], made: Callable[[Configuration], Refinement]
) -> Iterator[Refinement | MotionFailure]:
    """Yield the motion made through each configuration (n_joints,) at a contact, and failures in between."""
    for contact in contacts:
        try:
            yield contact if isinstance(contact, MotionFailure) else made(contact)
        except PieceFailedError as failed:
            yield failed.failure


@dataclass(frozen=True, eq=False)
class _Way:
    """A motion to whose ``end`` a path is searched; ``completed`` computes the rest, which takes longer than that end.

    What it returns gives the whole for a path (k, n_joints).
    """

    phase: Phase
    start: Configuration
    end: Configuration
    what: str
    completed: Callable[[], Callable[[Configuration], Refinement]]


class ArmMotion:
    """Works out picks, places and moves of one arm.

    Args:
        manipulator: the arm.
        budget: how hard to try.
        rules: what may touch while this arm acts; by default those that hold wherever a plan starts.
        clock: where time is counted.
        motion_planner: what finds paths between configurations; the core's RRT-Connect by default.
    """

    def __init__(
        self,
        manipulator: Manipulator,
        *,
        budget: MotionBudget,
        rules: CollisionRules | None = None,
        clock: PhaseClock | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> None:
        self.manipulator = manipulator
        self.pieces = MotionPieces(manipulator, budget=budget, rules=rules, clock=clock, motion_planner=motion_planner)

    def pick(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        object: str,
        grasp: Grasp,
        seed: int,
        motion: HandMotion = _USUAL,
        slip: CovarianceRows | None = None,
    ) -> Iterator[Refinement | MotionFailure]:
        """Yield motions that pick an object with one grasp, one for each way to reach it, and failures in between.

        Args:
            scene: the scene before.
            q: (n_joints,) configuration before.
            object: frame of the object.
            grasp: how to hold it.
            seed: seed of all searches.
            motion: how the hand comes and leaves.
            slip: the covariance that the closing hand adds; none by default.
        """
        pieces = self.pieces
        opening = grasp.opening if motion.opening is None else motion.opening
        q_open = scene.configuration(self.manipulator.opened(opening), base=q)
        near = pieces.near_pairs(scene, q)
        before = pieces.phase(scene, near, touched=object, support=scene.parent(object))
        root_from_tool = scene.pose(object, relative_to=scene.root(object), q=q) @ grasp.object_from_tool
        contacts = pieces.contacts(before, root_from_tool, q=q_open, seed=seed, what="reaching the grasp")
        free = pieces.phase(scene, near)
        at = partial(self._pick_at, before, free, near, q, q_open, object=object, grasp=grasp, slip=slip)
        yield from self._along_ways(contacts, at, motion, seed=seed)

    def place(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        object: str,
        support: str,
        pose: Pose,
        seed: int,
        motion: HandMotion = _USUAL,
        slip: CovarianceRows | None = None,
    ) -> Iterator[Refinement | MotionFailure]:
        """Yield motions that place the held object, one for each way to reach the place, and failures in between.

        Args:
            scene: the scene before, in which the object is a child of the hand.
            q: (n_joints,) configuration before.
            object: frame of the object.
            support: frame that it settles on.
            pose: support_from_object, at rest.
            seed: seed of all searches.
            motion: how the hand comes and leaves.
            slip: the covariance that the opening hand adds; none by default.
        """
        arm, pieces = self.manipulator, self.pieces
        change = Reparenting(object, support, pose, slip)
        near = (*pieces.near_pairs(scene, q), *pieces.near_at_rest(scene, q, change))
        held = pieces.phase(scene, near, touched=object, support=support, constraints=motion.constraints)
        root_from_object = scene.pose(support, relative_to=scene.root(support), q=q) @ pose
        root_from_tool = root_from_object @ scene.pose(arm.tool, relative_to=object, q=q)
        if RACK in scene.classes(support) and abs(root_from_tool.rotation[2, 1]) > _LEVEL:
            what = f"one finger is above the other: '{support}' would press '{object}' on one of them"
            yield MotionFailure("lowering", what, kind=FailureKind.GRIP)
            return
        contacts = pieces.contacts(held, root_from_tool, q=q, seed=seed, what="reaching the place")
        carried = pieces.phase(scene, near, touched=object, constraints=motion.constraints)
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
    ) -> Iterator[Refinement | MotionFailure]:
        """Yield the motion to a configuration of the arm, with what the hand holds, or why there is none.

        Args:
            scene: the scene before.
            q: (n_joints,) configuration before.
            joints: where to go, radians or metres by joint of the arm; joints that are not named stay.
            name: what to call the place, for the plan and for failures.
            seed: seed of all searches.
            constraints: what frames keep along the path.

        Raises:
            UnknownNameError: a joint that is none of the arm's.
        """
        for joint in joints:
            if joint not in self.manipulator.joints:
                raise UnknownNameError.of("joint of the arm", joint, self.manipulator.joints)
        pieces = self.pieces
        held = pieces.rules.held(scene)
        phase = pieces.phase(scene, pieces.near_pairs(scene, q), touched=held, constraints=constraints)
        try:
            path = pieces.search(
                phase, q, scene.configuration(dict(joints), base=q)[None], seed=seed, what=f"to {name}"
            )
            pieces.require_effort(phase, path, what=f"to {name}")
            if held is not None:
                self.require_hold(phase, path, object=held, what=f"to {name}")
        except PieceFailedError as failed:
            yield failed.failure
            return
        kind = SegmentKind.TRANSIT if held is None else SegmentKind.TRANSFER
        segment = self.segment(kind, path, q=q, held=held, phase=phase)
        yield Refinement((segment,), scene, path[-1], f"to {name}")

    def _pick_at(
        self,
        before: Phase,
        free: Phase,
        near: NearPairs,
        q_before: Configuration,
        q: Configuration,
        q_grasp: Configuration,
        motion: HandMotion,
        *,
        object: str,
        grasp: Grasp,
        slip: CovarianceRows | None,
    ) -> _Way:
        arm, pieces, scene = self.manipulator, self.pieces, before.scene
        away = pieces.back(
            before, q_grasp, what="approach", length=motion.approach, share=motion.share, is_checked=False
        )

        def completed() -> Callable[[Configuration], Refinement]:
            q_held = scene.configuration(arm.gripper_values(grasp.width), base=q_grasp)
            with pieces.clock.phase(PlanningPhase.COLLISION):
                faults = grip_faults(scene, q_held, arm, object=object)
            if faults:
                raise PieceFailedError("grasp", faults[0], kind=FailureKind.GRIP)
            change = Reparenting(object, arm.tip, scene.pose(object, relative_to=arm.tip, q=q_held), slip)
            held_scene = change.applied(scene, q_held)
            support = scene.parent(object)
            held = pieces.phase(held_scene, near, touched=object, support=support, constraints=motion.constraints)
            pieces.check_hand(before, q_grasp, q_held, what="grasp")
            lift, out = self._off(motion, scene, q_held, Reparenting(object, str(support), scene.local_pose(object)))
            lifted = pieces.shift(held, q_held, lift, what="lift", share=motion.share, is_checked=False)
            self.require_hold(held, lifted, object=object, what="lift")
            departing = self._departure(held_scene, near, lifted[-1], object, motion, out, what="leaving")
            pieces.check_hand(free, q_before, q, what="opening the hand")
            pieces.require_checked(before, away, what="approach")
            pieces.require_checked(held, lifted, what="lift")
            segments = [
                self.segment(SegmentKind.APPROACH, away[::-1], q=q, held=object, phase=before),
                self.segment(SegmentKind.GRASP, q_grasp[None], q=q_held, held=object, phase=before, change=change),
                self.segment(SegmentKind.LIFT, lifted, q=q_held, held=object, phase=held),
            ]
            if departing is not None:
                phase, leaving = departing
                pieces.require_checked(phase, leaving, what="leaving")
                segments.append(self.segment(SegmentKind.TRANSFER, leaving, q=q_held, held=object, phase=phase))
            end = lifted if departing is None else departing[1]

            def finished(transit: Configuration) -> Refinement:
                pieces.require_effort(free, transit, away, what="transit")
                pieces.require_effort(held, end, what="lift")
                way = self.segment(SegmentKind.TRANSIT, transit, q=q, held=None, phase=free)
                return Refinement((way, *segments), held_scene, end[-1], f"grasp {grasp.name}")

            return finished

        return _Way(free, q, away[-1], "transit", completed)

    def _place_at(
        self,
        held: Phase,
        carried: Phase,
        near: NearPairs,
        q: Configuration,
        q_place: Configuration,
        motion: HandMotion,
        *,
        reparenting: Reparenting,
    ) -> _Way:
        pieces, object = self.pieces, reparenting.frame
        lift, out = self._off(motion, held.scene, q_place, reparenting)
        raised = pieces.shift(held, q_place, lift, what="lowering", share=motion.share, is_checked=False)
        entering = self._departure(held.scene, near, raised[-1], object, motion, out, what="entering")

        def completed() -> Callable[[Configuration], Refinement]:
            is_rack = motion.opening is None and RACK in held.scene.classes(reparenting.parent)
            q_open = self.released(held, q_place, object, motion.opening, by=_AJAR if is_rack else None)
            released_scene = reparenting.applied(held.scene, q_open)
            released = pieces.phase(released_scene, near, touched=object, support=reparenting.parent)
            self.require_hold(held, raised, object=object, what="lowering")
            away = pieces.back(
                released, q_open, what="retreat", length=motion.approach, share=motion.share, is_checked=False
            )
            pieces.require_checked(held, raised, what="lowering")
            pieces.require_checked(released, away, what="retreat")
            segments = []
            if entering is not None:
                phase, path = entering
                pieces.require_checked(phase, path, what="entering")
                segments.append(self.segment(SegmentKind.TRANSFER, path[::-1], q=q, held=object, phase=phase))
            segments += [
                self.segment(SegmentKind.LOWER, raised[::-1], q=q, held=object, phase=held),
                self.segment(SegmentKind.RELEASE, q_place[None], q=q_open, held=object, phase=held, change=reparenting),
                self.segment(SegmentKind.RETREAT, away, q=q_open, held=object, phase=released),
            ]
            place = ", ".join(f"{number:.3f}" for number in reparenting.pose.translation)

            def finished(transfer: Configuration) -> Refinement:
                pieces.require_effort(carried, transfer, raised, what="transfer")
                pieces.require_effort(released, away, what="retreat")
                self.require_hold(carried, transfer, object=object, what="transfer")
                way = self.segment(SegmentKind.TRANSFER, transfer, q=q, held=object, phase=carried)
                return Refinement((way, *segments), released_scene, away[-1], f"on {reparenting.parent} at ({place})")

            return finished

        return _Way(carried, q, raised[-1] if entering is None else entering[1][-1], "transfer", completed)

    def _along_ways(
        self,
        contacts: Iterator[Configuration | MotionFailure],
        way_to: Callable[[Configuration, HandMotion], _Way],
        motion: HandMotion,
        *,
        seed: int,
    ) -> Iterator[Refinement | MotionFailure]:
        """Yield motions through configurations at a contact: one after the other, or by one search to any of them.

        Where the arm cannot follow a straight way to its end, a part of it will do, once all else was tried.
        """
        ways: list[_Way] = []
        shorter: list[Configuration] = []
        failures: list[MotionFailure] = []  # of one search to any, which needs only one of its ends
        is_joint = self.pieces.budget.is_joint

        def attempts() -> Iterator[tuple[Configuration | MotionFailure, HandMotion]]:
            yield from ((contact, motion) for contact in contacts)
            yield from ((contact, replace(motion, share=_SHORT)) for contact in shorter)

        for contact, how in attempts():
            if isinstance(contact, MotionFailure):
                yield contact
                continue
            try:
                way = way_to(contact, how)
                if is_joint:
                    ways.append(way)
                    continue
                finished = way.completed()
            except PieceFailedError as failed:
                if how.share == 1.0 and failed.failure.kind in _OF_LINES:
                    shorter.append(contact)
                elif is_joint:
                    failures.append(failed.failure)
                else:
                    yield failed.failure
                continue
            try:
                yield finished(self.pieces.search(way.phase, way.start, way.end[None], seed=seed, what=way.what))
            except PieceFailedError as failed:
                yield failed.failure
        for _ in range(min(len(ways), _ENDS)):
            first, ends = ways[0], np.array([way.end for way in ways])
            try:
                path = self.pieces.search(first.phase, first.start, ends, seed=seed, what=first.what)
                way = ways.pop(int(np.argmin(np.max(np.abs(ends - path[-1]), axis=1))))
            except PieceFailedError as failed:
                yield failed.failure
                return
            try:
                yield way.completed()(path)
                return
            except PieceFailedError as failed:
                failures.append(failed.failure)
        yield from failures

    def released(
        self, held: Phase, q: Configuration, object: str, opening: float | None = None, *, by: float | None = None
    ) -> Configuration:
        """Return a configuration with the fingers apart; by a little only where the object has no room for more.

        Args:
            held: scene and collision rules while the hand holds.
            q: (n_joints,) configuration with the hand closed.
            object: what it holds.
            opening: metres between the fingers; fully open by default.
            by: metres by which they open at most.

        Raises:
            PieceFailedError: the opening fingers collide.
        """
        arm, values = self.manipulator, self.manipulator.opened(opening)
        if by is not None:
            share = by / max(by, arm.width_open - arm.width_closed)
            for joint, value in self.pieces.gripper_of(q, held.scene).items():
                low, high = sorted((value, arm.gripper_open[joint]))
                step = share * (arm.gripper_open[joint] - arm.gripper_closed[joint])
                values[joint] = min(max(value + step, low), high)
        q_open = held.scene.configuration(values, base=q)
        try:
            self.pieces.check_hand(held, q, q_open, what="release")
        except PieceFailedError as failed:
            if by is not None or not any(object in pair for pair in failed.failure.pairs):
                raise
            return self.released(held, q, object, by=_LITTLE)
        return q_open

    def _off(
        self, motion: HandMotion, scene: SceneGraph, q: Configuration, rest: Reparenting
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return by what (3,) an object is lifted from where it rests, and shifted then from a rack, in the root."""
        if RACK in scene.classes(rest.parent):
            ignored = moved_frames(scene, self.manipulator)
            return way_off(scene, rest.frame, rest.parent, rest.pose, q=q, ignored=ignored)
        return np.array([0.0, 0.0, self.pieces.budget.lift if motion.lift is None else motion.lift]), None

    def _departure(
        self,
        scene: SceneGraph,
        near: NearPairs,
        q: Configuration,
        object: str,
        motion: HandMotion,
        out: NDArray[np.float64] | None,
        *,
        what: str,
    ) -> tuple[Phase, Configuration] | None:
        """Return the straight path backwards, or ``out`` (3,), with an object, with the phase in which it is free."""
        if motion.departure <= 0.0 and out is None:
            return None
        phase = self.pieces.phase(scene, near, touched=object, constraints=motion.constraints)
        if out is not None:
            path = self.pieces.shift(phase, q, out, what=what, share=motion.share, is_checked=False)
        else:
            path = self.pieces.back(phase, q, what=what, length=motion.departure, share=motion.share, is_checked=False)
        self.require_hold(phase, path, object=object, what=what)
        return (phase, path) if len(path) > 1 else None

    def require_hold(self, phase: Phase, path: Configuration, *, object: str, what: str) -> None:
        """Check that the gripper bears the weight of an object along a path.

        Args:
            phase: scene and collision rules of the path.
            path: (k, n_joints) configurations.
            object: the held object.
            what: name of the motion, for the failure.

        Raises:
            PieceFailedError: the object is too heavy to be held like that.
        """
        fault = hold_fault(phase.scene, path, self.manipulator, object=object)
        if fault is not None:
            raise PieceFailedError(what, fault, kind=FailureKind.GRIP, q=path[0])

    def segment(
        self,
        kind: SegmentKind,
        path: Configuration,
        *,
        q: Configuration,
        held: str | None,
        phase: Phase,
        change: Reparenting | None = None,
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
        gripper = self.pieces.gripper_of(q, phase.scene)
        return Segment(kind, arm.name, joints, own_path, gripper, held, phase.exemptions, change, phase.constraints)


def arm_motions(
    manipulators: Sequence[Manipulator],
    *,
    budget: MotionBudget,
    rules: CollisionRules | None = None,
    clock: PhaseClock | None = None,
    motion_planner: MotionPlanner | None = None,
) -> dict[str, ArmMotion]:
    """Return the motions of several arms, by name and in their order; by default with rules for any start."""
    rules = CollisionRules(manipulators[0], others=tuple(manipulators[1:])) if rules is None else rules
    return {
        arm.name: ArmMotion(
            arm, budget=budget, rules=rules.acting(arm.name), clock=clock, motion_planner=motion_planner
        )
        for arm in manipulators
    }
