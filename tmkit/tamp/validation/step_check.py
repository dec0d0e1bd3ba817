"""Validation of one step of a plan, which the plan validator and the search share.

::

    (scene, q) --segment--> (scene, q) --segment--> (scene, q) --observations, effects--> scene
       the path starts at q,  free of collision,     objects keep their pose,      equals step.scene
       within joint limits    with allowed contacts  hands hold, supports touch    and step.q

In a valid step every segment starts where the last one ended, stays within limits and free of
collisions, and satisfies the conditions of its kind (:mod:`segment_rules`). The scene and the
configuration after the step are recomputed. A plan is valid if all its steps are valid and its
actions reach the goal in PDDL.

Invariants: faults depend only on the step, the scene and configuration before it, and the start of
the plan. The check has no margin, and steps of 0.003 rad and 1 mm of tool travel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tmkit._core import RecheckStatus
from tmkit.errors import ConfigurationError, TmkitError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pour import pour_faults
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.manipulation.actions.push import push_faults, scene_during_push
from tmkit.manipulation.grasps.sampling import grasp_contact_faults, payload_fault
from tmkit.manipulation.placements.support import support_fault
from tmkit.motion import CollisionRules, path_fault, recheck_path
from tmkit.motion.collision_rules import AllowedContact, ContactTrace
from tmkit.motion.dynamics import torque_fault
from tmkit.motion.path_constraints import carrying_constraints, interpolate_path
from tmkit.plans.class_changes import ClassEffect, apply_effects
from tmkit.plans.observations import CameraModel, apply_observations
from tmkit.plans.values import Attachment, Configuration, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import held_object
from tmkit.tamp.validation.segment_rules import (
    LOADED,
    handling_supports,
    is_at_handle,
    segment_allowed_contacts,
    segment_faults,
)

JOIN_TOLERANCE = 1e-9
"""Largest difference between the ends of consecutive segments [rad or m]."""

LONGEST_PATH = 1000.0
"""Largest length of a segment [rad or m]."""

_GRASP_TOLERANCE = 1e-5
"""Largest motion of an object at a grasp [m or rad]."""

_RELEASE_TOLERANCE = 1e-4
"""Largest motion of an object at a release, an error of inverse kinematics [m or rad]."""

_FIXED_FINGERS = (*LOADED - {SegmentKind.RELEASE}, SegmentKind.OPERATE, SegmentKind.PUSH)
"""Kinds of segments during which the fingers keep their values."""


class StepCheck:
    """Validation of steps of plans from one start.

    Args:
        rules: allowed contacts that follow from the start of the plan, while the first arm acts.
        valid_segments: segments of a valid plan with the same objects, whose joint torques and
            payloads are not checked again.

    Attributes:
        rules: allowed contacts while the first arm acts.
        segments: number of checked segments.
        configurations: number of configurations checked for collisions.
    """

    def __init__(self, rules: CollisionRules, valid_segments: Collection[Segment] = ()) -> None:
        self.rules = rules
        self.segments = self.configurations = 0
        self._valid_segments = frozenset(valid_segments)

    def first_fault(self, step: PlanStep, scene: SceneGraph, q: Configuration) -> str | None:
        """Return the first fault of a step with its action and segment, or None if it is valid.

        Args:
            step: step of a plan.
            scene: scene before the step.
            q: (n_joints,) configuration before the step.
        """
        where = str(step.action)
        try:
            return next(self.faults(step, scene, q, where=where), None)
        except TmkitError as error:  # a frame or joint is missing
            return f"{where}: {error}"

    def faults(
        self, step: PlanStep, scene: SceneGraph, q: Configuration, *, where: str
    ) -> Iterator[str]:
        """Yield the faults of a step, lazily.

        Args:
            step: step of a plan.
            scene: scene before the step.
            q: (n_joints,) configuration before the step.
            where: name of the step in the messages.

        Raises:
            TmkitError: if a frame, joint or arm is missing, or a path has another shape, so that
                further checks are impossible.
        """
        segments = step.segments
        trace = ContactTrace(self.rules.remaining_contacts(scene, q))
        supports = handling_supports(segments, scene, [arm.tip for arm in self.rules.arms])
        for index, (segment, support) in enumerate(zip(segments, supports, strict=True)):
            before = segments[index - 1] if index else None
            after = segments[index + 1] if index + 1 < len(segments) else None
            rules = self.rules.for_arm(segment.arm)
            _require_own_joints(segment, scene, rules.robot)
            name = f"{where}, {segment.kind.value}"
            for fault in segment_faults(segment, scene, q, rules=rules, before=before, after=after):
                yield f"{name}: {fault}"
            for fault in self._segment_faults(segment, scene, q, rules, support, trace):
                yield f"{name}: {fault}"
            scene, q = segment.end(scene, q)
        for fault in _effect_faults(step, scene, q):
            yield f"{where}: {fault}"
        scene = apply_effects(apply_observations(scene, step.observations, q=q), step.changes)
        contacts = trace.contacts
        yield from self.rest_faults(scene, q, where=f"after {where}", start_contacts=contacts)
        ends_at_q = step.q.shape == q.shape and bool(np.all(np.abs(step.q - q) <= JOIN_TOLERANCE))
        if step.scene != scene or not ends_at_q:
            yield f"{where}: its scene differs from the result of its motion"

    def rest_faults(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        where: str,
        start_contacts: Sequence[AllowedContact] = (),
    ) -> Iterator[str]:
        """Yield the collisions of a scene without margin, and the faults of the grasps.

        Args:
            scene: scene in which all arms are at rest.
            q: (n_joints,) configuration.
            where: place in the plan, for the messages.
            start_contacts: allowed overlaps that remain from the start of the plan.
        """
        held = self.rules.held_object(scene)
        contacts = (*self.rules.allowed_contacts(scene, contact_object=held), *start_contacts)
        for contact in self.rules.check_world(scene, contacts).contacts(q):
            yield f"{where}: '{contact.frame_a}' and '{contact.frame_b}' collide"
        for arm in self.rules.arms:
            held = held_object(scene, arm)
            if held is not None:
                for fault in grasp_contact_faults(scene, q, arm, object=held):
                    yield f"{where}: {fault} while the hand holds it"

    def _segment_faults(
        self,
        segment: Segment,
        scene: SceneGraph,
        q: Configuration,
        rules: CollisionRules,
        support: str | None,
        trace: ContactTrace,
    ) -> Iterator[str]:
        """Yield the faults of a segment beside the conditions of its kind.

        Args:
            segment: the segment.
            scene: scene before the segment.
            q: (n_joints,) configuration before the segment.
            rules: allowed contacts of the segment's arm.
            support: support of the handled object, or None.
            trace: overlaps that remain from the start of the plan when the step begins.
        """
        self.segments += 1
        path = _full_path(segment, scene, q)
        yield from _joint_faults(segment, path, q)
        if segment.kind is SegmentKind.PUSH and segment.held in movable_frames(scene):
            yield from push_faults(scene, path, rules.robot, object=segment.held)
            scene = scene_during_push(scene, path[0], rules.robot, object=segment.held)

        # Check contacts, limits and collisions along the path.
        contacts = segment_allowed_contacts(segment, scene, rules=rules, support=support)
        start_contacts = {*trace.contacts} & {*segment.allowed_contacts}
        allowed_contacts = tuple(sorted({*contacts, *start_contacts}))
        for contact in sorted(set(segment.allowed_contacts) ^ set(allowed_contacts)):
            is_excess = contact in segment.allowed_contacts
            difference = "it allows a contact that the rules do not allow"
            if not is_excess:
                difference = "it lacks an allowed contact"
            yield f"{difference}: {contact}"
        length = path_length(path)
        # A file may contain any number, and the computation time grows with the length.
        if not length <= LONGEST_PATH:
            yield f"its path of {length:.3g} rad or m is too long to be checked"
            return
        result = recheck_path(
            rules.check_world(scene, allowed_contacts),
            path,
            resolution=CHECK_RESOLUTION,
            tool_frame=rules.robot.tool,
            tool_travel=CHECK_TRAVEL,
        )
        self.configurations += result.checks
        if result.status is RecheckStatus.COLLISION and result.pair is not None:
            yield f"'{result.pair[0]}' and '{result.pair[1]}' collide"
        elif not result.is_ok:
            yield f"joint '{result.joint}' is outside its limits"
        elif trace.contacts:
            strict_world = rules.check_world(scene, contacts)
            pair = trace.overlap_again(strict_world, interpolate_path(path, CHECK_TRAVEL))
            if pair is not None:
                yield f"'{pair[0]}' and '{pair[1]}' overlap again after they have separated"

        # Check path constraints, forces, and the change at the end.
        yield from _constraint_faults(segment, scene, path, rules)
        if segment not in self._valid_segments:
            yield from _force_faults(segment, scene, path, rules)
        if segment.kind is SegmentKind.GRASP and is_at_handle(segment, scene):
            arm, handle = rules.robot, str(segment.held)
            for fault in grasp_contact_faults(scene, path[-1], arm, object=handle):
                yield f"{fault} after the grasp"
        if segment.reparenting is not None:
            yield from _attachment_faults(
                segment, segment.reparenting, scene, path[-1], rules.robot
            )


def path_length(path: Configuration) -> float:
    """Return the length of a path in the largest joint motion of each part [rad or m].

    Args:
        path: (k, n) configurations.
    """
    return float(np.sum(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0)))


def _require_own_joints(segment: Segment, scene: SceneGraph, arm: Manipulator) -> None:
    """Reject a segment with other joints than those of its arm and hand, or without a finite path.

    Raises:
        ConfigurationError: if the path is empty or not finite, or a joint is not one of the arm's.
        UnknownNameError: if the scene lacks the joint of the handle.
    """
    # The rules of the kind check the joint of the handle, which comes last.
    count = len(arm.joints) + (segment.kind is SegmentKind.OPERATE)
    names, path, kind = segment.joint_names, segment.path, segment.kind.value
    is_own = names[: len(arm.joints)] == arm.joints and len(names) == count
    if not is_own or path.shape[1:] != (count,):
        raise ConfigurationError(f"{kind}: it moves other joints than the arm's")
    if not len(path):
        raise ConfigurationError(f"{kind}: its path of shape {path.shape} has no configuration")
    if not np.all(np.isfinite(path)):
        raise ConfigurationError(f"{kind}: its path is not finite")
    if names[-1] not in scene.joint_names:
        raise UnknownNameError.of("joint", names[-1], scene.joint_names)
    for joint in segment.gripper:
        if joint not in arm.gripper_joints:
            raise ConfigurationError(
                f"{kind}: it moves '{joint}', which is not a joint of the hand"
            )


def _moves_fingers(segment: Segment) -> bool:
    """Return whether the fingers move at the end of a segment, while the arm is at rest."""
    return segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)


def _full_path(segment: Segment, scene: SceneGraph, q: Configuration) -> Configuration:
    """Return the (k, n_joints) path of a segment, in which fingers move while the arm is at rest.

    Args:
        segment: the segment.
        scene: scene before the segment.
        q: (n_joints,) configuration before the segment.
    """
    columns = [scene.joint_names.index(joint) for joint in segment.joint_names]
    rows = np.repeat(np.array(q)[None], len(segment.path), axis=0)
    rows[:, columns] = segment.path
    fingers = dict(segment.gripper)
    if _moves_fingers(segment):
        return np.vstack([rows, scene.configuration(fingers, base=rows[-1])])
    closed = scene.configuration(fingers, base=rows[0])
    moved = closed != rows[0]
    closed_rows = rows.copy()
    closed_rows[:, moved] = closed[moved]
    return np.vstack([rows[:1], closed_rows])


def _joint_faults(segment: Segment, path: Configuration, q: Configuration) -> Iterator[str]:
    """Yield the faults of the start of a path, and of the fingers along it.

    Args:
        segment: the segment.
        path: (k, n_joints) path of the segment, from :func:`_full_path`.
        q: (n_joints,) configuration before the segment.
    """
    if not np.all(np.abs(path[0] - q) <= JOIN_TOLERANCE):
        yield "it does not start at the configuration of the arm"
    if _moves_fingers(segment):
        if len(segment.path) > 1:
            yield "the arm moves while the hand does"
        return
    if np.any(np.abs(path[1] - path[0]) > JOIN_TOLERANCE):
        if segment.kind in _FIXED_FINGERS:
            yield f"the fingers move while the hand holds '{segment.held}'"
        elif segment.kind is SegmentKind.LINE:
            yield "the fingers move during a line"


def _force_faults(
    segment: Segment, scene: SceneGraph, path: Configuration, rules: CollisionRules
) -> Iterator[str]:
    """Yield the reasons why motors or fingers are too weak for a (k, n_joints) path."""
    arm, held = rules.robot, segment.held
    faults = [torque_fault(scene, path, arm)]
    is_loaded = segment.kind in (*LOADED, SegmentKind.LINE)
    if is_loaded and held is not None and held == rules.held_object(scene):
        faults.append(payload_fault(scene, path, arm, object=held))
    yield from (fault for fault in faults if fault is not None)


def _constraint_faults(
    segment: Segment, scene: SceneGraph, path: Configuration, rules: CollisionRules
) -> Iterator[str]:
    """Yield the path constraints that a (k, n_joints) path omits or violates."""
    is_pour = segment.kind is SegmentKind.POUR
    if is_pour and segment.held is not None and segment.into is not None:
        yield from pour_faults(scene, path, object=segment.held, into=segment.into)
    for constraint in () if is_pour else carrying_constraints(scene, rules.held_object(scene)):
        if constraint not in segment.constraints:
            yield f"it lacks the required path constraint: {constraint}"
    fault = path_fault(scene, path, segment.constraints, resolution=CHECK_RESOLUTION)
    if fault is not None:
        yield f"joint path leaves the constraint: {fault}"


def _attachment_faults(
    segment: Segment, change: Attachment, scene: SceneGraph, q: Configuration, arm: Manipulator
) -> Iterator[str]:
    """Yield the faults of a change of parent: a jump, a grasp without contact, no support.

    Args:
        segment: segment with the change at its end.
        change: the change.
        scene: scene before the change.
        q: (n_joints,) configuration at the end of the segment.
        arm: arm of the segment.
    """
    object, root = change.frame, scene.root(change.frame)
    after = scene.reparent(object, change.parent, pose=change.pose)
    metres, radians = scene.pose(object, relative_to=root, q=q).distance(
        after.pose(object, relative_to=root, q=q)
    )
    is_grasp = segment.kind is SegmentKind.GRASP
    limit = _GRASP_TOLERANCE if is_grasp else _RELEASE_TOLERANCE
    if not (metres <= limit and radians <= limit):
        motion = f"{metres * 1000:.2f} mm and {math.degrees(radians):.3f} degrees"
        yield f"'{object}' moves by {motion} when its parent changes"
    if is_grasp:
        for fault in grasp_contact_faults(scene, q, arm, object=object):
            yield f"{fault} after the grasp"
    elif (gap := support_fault(after, q, object=object)) is not None:
        yield gap


def _effect_faults(step: PlanStep, scene: SceneGraph, q: Configuration) -> Iterator[str]:
    """Yield the faults of observations and of classes that change without a pour.

    Args:
        step: step of a plan.
        scene: scene after the last segment.
        q: (n_joints,) configuration after the last segment.
    """
    for look in step.observations:
        fault = CameraModel.of(scene, look.camera).fault(scene, look.frame, q=q)
        if fault is not None:
            yield fault
    pours = [segment for segment in step.segments if segment.into is not None]
    vessels = {frame for pour in pours for frame in (pour.held, pour.into)}
    for change in step.changes:
        if vessels and isinstance(change, ClassEffect) and change.frame not in vessels:
            yield f"it pours nothing into '{change.frame}', whose classes change"
