"""Conditions on each kind of segment, checked before collisions.

Contact is allowed in some kinds of segments only, so a plan could declare a motion through an
object as an approach. These conditions prevent that. They cover the held object, the change at the
end, the neighbouring kinds, and the straightness of segments with allowed contact.

In a handover, the grasp of the receiving hand changes the parent of the object. The release of the
giving hand must follow, and changes no parent. Both hands may touch the object from the approach of
the receiver to the retreat of the giver, and at no other time.

A handle moves a drawer or a door, and keeps its parent. The empty hand approaches, grasps,
operates, releases and retreats, in this order without other segments. Contact with the handle is
allowed only in these segments. During the operation, the tool stays at its pose relative to the
handle, within 0.1 mm and 1 mrad, at the fine steps of the validation.

A line touches the frames that it names: with the held object, or with the fingers and tool of an
empty hand. It starts or ends within 1 mm of each of them, is straight, and changes no parent. No
other kind of segment names touched frames.

Invariants: faults depend only on the segment, its neighbours in the step, the scene version and the
arms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import touch_faults
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.motion import CollisionRules
from tmkit.motion.collision_rules import AllowedContact
from tmkit.plans.values import Configuration, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import CLOSURE_ANGLE, CLOSURE_DISTANCE, closure_error, mechanism_joint

LOADED = frozenset(
    {
        SegmentKind.LIFT,
        SegmentKind.TRANSFER,
        SegmentKind.POUR,
        SegmentKind.LOWER,
        SegmentKind.RELEASE,
    }
)
"""Kinds of segments during which the object is a child of the hand."""

_NEXT_KINDS = {
    SegmentKind.APPROACH: (SegmentKind.GRASP, SegmentKind.PUSH),
    SegmentKind.LOWER: (SegmentKind.RELEASE,),
}
"""Required kinds of the next segment, by kind."""

_PREVIOUS_KINDS = {
    SegmentKind.LIFT: (SegmentKind.GRASP,),
    SegmentKind.RETREAT: (SegmentKind.RELEASE, SegmentKind.PUSH),
}
"""Required kinds of the previous segment, by kind."""

_NEXT_AT_HANDLE = {
    SegmentKind.APPROACH: (SegmentKind.GRASP,),
    SegmentKind.GRASP: (SegmentKind.OPERATE,),
    SegmentKind.OPERATE: (SegmentKind.RELEASE,),
}
"""Required kinds of the next segment at a handle, by kind."""

_PREVIOUS_AT_HANDLE = {
    SegmentKind.OPERATE: (SegmentKind.GRASP,),
    SegmentKind.RELEASE: (SegmentKind.OPERATE,),
    SegmentKind.RETREAT: (SegmentKind.RELEASE,),
}
"""Required kinds of the previous segment at a handle, by kind."""

_GRIPPER_KINDS = (SegmentKind.GRASP, SegmentKind.OPERATE, SegmentKind.RELEASE)
"""Kinds of segments that need a gripper."""

_LINE_TOLERANCE = 0.001
"""Largest distance of the tool from a straight line [m]."""

_TURN_TOLERANCE = 0.02
"""Largest rotation of the tool along a straight line [rad]."""


def segment_faults(
    segment: Segment,
    scene: SceneGraph,
    q: Configuration,
    *,
    rules: CollisionRules,
    before: Segment | None,
    after: Segment | None,
) -> Iterator[str]:
    """Yield the violated conditions of a segment of its kind.

    Args:
        segment: segment.
        scene: scene before the segment.
        q: (n_joints,) configuration before the segment.
        rules: allowed contacts of the segment's arm.
        before: previous segment of the step, if any.
        after: next segment of the step, if any.
    """
    if segment.kind is SegmentKind.LINE:
        yield from _touching_line_faults(segment, scene, q, rules)
        return
    if segment.touching:
        yield f"it touches '{segment.touching[0]}', which only a line does"
    if segment.kind in _GRIPPER_KINDS and rules.robot.gripper_kind == "none":
        yield f"the arm '{rules.robot.name}' has no gripper"
    if is_at_handle(segment, scene):
        yield from _handle_faults(segment, scene, q, rules, before, after)
        if segment.kind in _NEXT_KINDS or segment.kind in _PREVIOUS_KINDS:
            yield from line_faults(segment.path, scene, q, rules.robot)
        return
    kind, in_hand = segment.kind, rules.held_object(scene)
    if kind is SegmentKind.OPERATE:
        yield "it has no handle"
    is_handover_release = _is_handover_release(segment, before)
    if kind is SegmentKind.TRANSIT and segment.held is not None:
        yield f"it handles '{segment.held}', but a transit handles no object"
    if kind is not SegmentKind.TRANSIT and segment.held is None:
        yield "it has no object"
    if (kind is SegmentKind.POUR) != (segment.into is not None):
        is_pour = kind is SegmentKind.POUR
        yield "it has no container" if is_pour else f"it is not a pour into '{segment.into}'"
    if kind in LOADED and in_hand != segment.held and not is_handover_release:
        content = "nothing" if in_hand is None else f"'{in_hand}'"
        yield f"it carries '{segment.held}', but the hand holds {content}"
    if (kind not in LOADED or is_handover_release) and in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    if not is_handover_release:
        yield from _change_faults(segment, scene, rules, after)
    yield from _neighbour_faults(
        segment, before, after, next_kinds=_NEXT_KINDS, previous_kinds=_PREVIOUS_KINDS
    )
    if kind in _NEXT_KINDS or kind in _PREVIOUS_KINDS or kind is SegmentKind.PUSH:
        yield from line_faults(segment.path, scene, q, rules.robot)


def _touching_line_faults(
    segment: Segment, scene: SceneGraph, q: Configuration, rules: CollisionRules
) -> Iterator[str]:
    """Yield the faults of a line: its load, changes, contacts and straightness."""
    in_hand = rules.held_object(scene)
    if segment.held != in_hand:
        expected, content = (
            "nothing" if name is None else f"'{name}'" for name in (segment.held, in_hand)
        )
        yield f"it is to carry {expected}, but in the hand is {content}"
    if segment.reparenting is not None:
        yield f"it reparents '{segment.reparenting.frame}', which a line does not"
    if segment.into is not None:
        yield f"it is not a pour into '{segment.into}'"
    entries = [scene.joint_names.index(name) for name in segment.joint_names]
    path = np.repeat(np.array(q)[None], len(segment.path), axis=0)
    path[:, entries] = segment.path
    yield from touch_faults(scene, path, rules, touching=segment.touching)
    yield from line_faults(segment.path, scene, q, rules.robot)


def _neighbour_faults(
    segment: Segment,
    before: Segment | None,
    after: Segment | None,
    *,
    next_kinds: Mapping[SegmentKind, tuple[SegmentKind, ...]],
    previous_kinds: Mapping[SegmentKind, tuple[SegmentKind, ...]],
) -> Iterator[str]:
    """Yield the required neighbours of the same object and arm that a segment lacks."""
    for neighbour, kinds_by_kind, side in (
        (after, next_kinds, "followed"),
        (before, previous_kinds, "preceded"),
    ):
        required = kinds_by_kind.get(segment.kind, ())
        is_valid = (
            neighbour is not None
            and neighbour.kind in required
            and (neighbour.held, neighbour.arm) == (segment.held, segment.arm)
        )
        if required and not is_valid:
            yield f"it is not {side} by the {' or '.join(required)} of '{segment.held}'"


def _handle_faults(
    segment: Segment,
    scene: SceneGraph,
    q: Configuration,
    rules: CollisionRules,
    before: Segment | None,
    after: Segment | None,
) -> Iterator[str]:
    """Yield the faults of a segment that moves a handle."""
    handle, kind = str(segment.held), segment.kind
    joint = mechanism_joint(scene, handle, arms=rules.arms)
    if joint is None:
        yield f"'{handle}' is neither a movable object nor a handle"
        return
    if kind not in (*_NEXT_AT_HANDLE, *_PREVIOUS_AT_HANDLE):
        yield f"a {kind.value} cannot handle the handle '{handle}'"
    in_hand = rules.held_object(scene)
    if in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    if segment.reparenting is not None:
        yield f"it reparents '{segment.reparenting.frame}', though it handles the handle '{handle}'"
    yield from _neighbour_faults(
        segment, before, after, next_kinds=_NEXT_AT_HANDLE, previous_kinds=_PREVIOUS_AT_HANDLE
    )
    if kind is SegmentKind.OPERATE:
        yield from _operation_faults(segment, scene, q, rules, joint)


def _operation_faults(
    segment: Segment, scene: SceneGraph, q: Configuration, rules: CollisionRules, joint: str
) -> Iterator[str]:
    """Yield the faults of an operation: other joints, moved overlaps, and motion of the grasp."""
    if segment.joint_names != (*rules.robot.joints, joint):
        yield f"it moves other joints than the arm's and '{joint}', which is the handle's"
        return
    operated_frames = {*scene.subtree(scene.joint_frame(joint))}
    for overlap in rules.start_overlaps:
        if {overlap.frame_a, overlap.frame_b} & operated_frames:
            yield f"it moves a frame that overlaps at the start: {overlap}"
    columns = [scene.joint_names.index(name) for name in segment.joint_names]
    path = np.repeat(np.array(q)[None], len(segment.path), axis=0)
    path[:, columns] = segment.path
    longest = float(np.max(np.abs(np.diff(path, axis=0)), initial=0.0))
    # No joint moves by more than the resolution in a step.
    steps = max(2, math.ceil(longest / min(CHECK_RESOLUTION, CHECK_TRAVEL)))
    distance, angle = closure_error(
        scene, path, tool=rules.robot.tool, handle=str(segment.held), steps=steps
    )
    if distance > CLOSURE_DISTANCE or angle > CLOSURE_ANGLE:
        error = f"{distance * 1000:.2f} mm and {math.degrees(angle):.3f} degrees"
        yield f"the tool moves by {error} relative to the handle"


def is_at_handle(segment: Segment, scene: SceneGraph) -> bool:
    """Return whether a segment handles a handle, which is not a movable object."""
    return segment.held is not None and segment.held not in movable_frames(scene)


def _is_handover_release(segment: Segment, before: Segment | None) -> bool:
    """Return whether a segment releases an object after another hand has grasped it."""
    return (
        segment.kind is SegmentKind.RELEASE
        and segment.reparenting is None
        and before is not None
        and before.kind is SegmentKind.GRASP
        and before.held == segment.held
        and before.arm != segment.arm
    )


def handling_supports(
    segments: Sequence[Segment], scene: SceneGraph, tips: Collection[str]
) -> tuple[str | None, ...]:
    """Return the support of the object for each segment of a step; None where it is a hand."""
    parents: list[str | None] = []  # parent of the object before a grasp, or after a release
    for segment in segments:
        change = segment.reparenting
        parent = None
        if change is not None:
            parent = (
                scene.parent(change.frame) if segment.kind is SegmentKind.GRASP else change.parent
            )
            scene = scene.reparent(change.frame, change.parent, pose=change.pose)
        parents.append(None if parent in tips else parent)
    supports = list(parents)
    for index, segment in enumerate(segments):
        if segment.kind in _NEXT_KINDS and index + 1 < len(segments):
            supports[index] = parents[index + 1]
        elif segment.kind in _PREVIOUS_KINDS and index > 0:
            supports[index] = parents[index - 1]
    return tuple(supports)


def segment_allowed_contacts(
    segment: Segment, scene: SceneGraph, *, rules: CollisionRules, support: str | None
) -> tuple[AllowedContact, ...]:
    """Return the contacts that the rules allow in a segment of its kind."""
    if segment.kind is SegmentKind.LINE:
        return rules.allowed_contacts(scene, contact_object=segment.held, touching=segment.touching)
    if segment.held is None or segment.kind is SegmentKind.TRANSIT:
        return rules.allowed_contacts(scene)
    if segment.kind in (SegmentKind.TRANSFER, SegmentKind.POUR):
        return rules.allowed_contacts(scene, contact_object=segment.held)
    return rules.allowed_contacts(scene, contact_object=segment.held, support=support)


def _change_faults(
    segment: Segment, scene: SceneGraph, rules: CollisionRules, after: Segment | None
) -> Iterator[str]:
    """Yield the faults of the change at the end of a segment.

    A grasp and a release change the parent of their object, and a push its pose. Other segments
    have no change.
    """
    change, tip = segment.reparenting, rules.robot.tip
    other_tips = [arm.tip for arm in rules.other_arms]
    if segment.kind not in (SegmentKind.GRASP, SegmentKind.RELEASE, SegmentKind.PUSH):
        if change is not None:
            yield f"it reparents '{change.frame}', which only a grasp, release or push does"
        return
    if change is None:
        yield f"'{segment.held}' does not change its parent"
        return
    if change.frame != segment.held:
        yield f"it handles '{segment.held}' but reparents '{change.frame}'"
    if segment.kind is SegmentKind.PUSH:
        if change.parent != scene.parent(change.frame):
            yield (
                f"it pushes '{change.frame}' from '{scene.parent(change.frame)}' to"
                f" '{change.parent}'"
            )
        return
    is_grasp = segment.kind is SegmentKind.GRASP
    if (change.parent == tip) != is_grasp or change.parent in other_tips:
        yield f"it gives '{change.frame}' to '{change.parent}'"
    if segment.kind is SegmentKind.GRASP:
        giver = next(
            (arm for arm in rules.other_arms if scene.parent(change.frame) == arm.tip), None
        )
        is_released = (
            giver is not None
            and after is not None
            and after.arm == giver.name
            and _is_handover_release(after, segment)
        )
        if giver is not None and not is_released:
            yield (
                f"it takes '{change.frame}' from the arm '{giver.name}', which does not release it"
                " next"
            )


@np.errstate(over="ignore", invalid="ignore")  # a file may contain any number
def line_faults(
    path: Configuration, scene: SceneGraph, q: Configuration, robot: Manipulator
) -> list[str]:
    """Return the deviation of a (k, n_arm) path of the tool from a straight line, if any."""
    root, arm = scene.root(robot.tool), robot.joint_indices(scene)
    midpoints = (path[:-1] + path[1:]) / 2
    poses = []
    for row in (*path, *midpoints):
        q_row = np.array(q)
        q_row[arm] = row
        poses.append(scene.pose(robot.tool, relative_to=root, q=q_row))
    first, last = poses[0], poses[len(path) - 1]
    along = last.translation - first.translation
    length = norm(along)
    direction = along / length if length > 0.0 else along
    for pose in poses:
        offset = pose.translation - first.translation
        projection = min(max(dot(offset, direction), 0.0), length)
        deviation = norm(offset - projection * direction)
        # The negation rejects NaN.
        if not (deviation <= _LINE_TOLERANCE and first.distance(pose)[1] <= _TURN_TOLERANCE):
            return [
                f"the tool deviates from the straight line by {deviation * 1000:.1f} mm or rotates"
            ]
    return []
