"""The rules of each kind of segment, which hold before any collision check.

Contact is allowed in some segments and not in others, so a plan could call a stroke that sweeps
through an object an approach. Hence the rules here: what the hand holds, what changes at the end,
which kind comes before or after, and that those along which contact is allowed are straight.

An object goes from hand to hand without a support: the taking hand's grasp gives it its new parent,
and the giving hand's release, which must follow, changes nothing. So both hands touch it from the
taker's approach to the giver's retreat, and at no other time.

A handle moves a drawer or a door; nothing changes its parent. The hand, empty, approaches, grasps,
operates, releases and retreats, in this order and without a gap: contact with the handle is allowed
only where it is part of moving it. While it operates, the tool stays where it took the handle:
within 0.1 mm and 1 mrad, at the checker's fine steps.

Invariants: a function of the segment, its neighbours in the step, the scene version and the arms
    alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
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

_NEXT = {
    SegmentKind.APPROACH: (SegmentKind.GRASP, SegmentKind.PUSH),
    SegmentKind.LOWER: (SegmentKind.RELEASE,),
}
_PREVIOUS = {
    SegmentKind.LIFT: (SegmentKind.GRASP,),
    SegmentKind.RETREAT: (SegmentKind.RELEASE, SegmentKind.PUSH),
}
_NEXT_AT_HANDLE = {
    SegmentKind.APPROACH: (SegmentKind.GRASP,),
    SegmentKind.GRASP: (SegmentKind.OPERATE,),
    SegmentKind.OPERATE: (SegmentKind.RELEASE,),
}
_PREVIOUS_AT_HANDLE = {
    SegmentKind.OPERATE: (SegmentKind.GRASP,),
    SegmentKind.RELEASE: (SegmentKind.OPERATE,),
    SegmentKind.RETREAT: (SegmentKind.RELEASE,),
}
_LINE_TOLERANCE = 0.001  # metres that the tool may stray from a straight segment
_TURN_TOLERANCE = 0.02  # radians that the tool may turn along one


def segment_faults(
    segment: Segment,
    scene: SceneGraph,
    q: Configuration,
    *,
    rules: CollisionRules,
    before: Segment | None,
    after: Segment | None,
) -> Iterator[str]:
    """Yield what is wrong with a segment as one of its kind."""
    if is_at_handle(segment, scene):
        yield from _handle_faults(segment, scene, q, rules, before, after)
        if segment.kind in _NEXT or segment.kind in _PREVIOUS:
            yield from line_faults(segment.path, scene, q, rules.manipulator)
        return
    kind, in_hand = segment.kind, rules.held_object(scene)
    if kind is SegmentKind.OPERATE:
        yield "it names no handle that it moves"
    gives_way = _is_giving_way(segment, before)
    if kind is SegmentKind.TRANSIT and segment.held is not None:
        yield f"it handles '{segment.held}', which a transit does not"
    if kind is not SegmentKind.TRANSIT and segment.held is None:
        yield "it names no object that it handles"
    if (kind is SegmentKind.POUR) != (segment.into is not None):
        yield (
            "it names no container"
            if segment.into is None
            else f"it is no pour into '{segment.into}'"
        )
    if kind in LOADED and in_hand != segment.held and not gives_way:
        found = "nothing" if in_hand is None else f"'{in_hand}'"
        yield f"it is to carry '{segment.held}', but in the hand is {found}"
    if (kind not in LOADED or gives_way) and in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    if not gives_way:
        yield from _change_faults(segment, scene, rules, after)
    yield from _neighbour_faults(segment, before, after, followed=_NEXT, preceded=_PREVIOUS)
    if kind in _NEXT or kind in _PREVIOUS or kind is SegmentKind.PUSH:
        yield from line_faults(segment.path, scene, q, rules.manipulator)


def _neighbour_faults(
    segment: Segment,
    before: Segment | None,
    after: Segment | None,
    *,
    followed: Mapping[SegmentKind, tuple[SegmentKind, ...]],
    preceded: Mapping[SegmentKind, tuple[SegmentKind, ...]],
) -> Iterator[str]:
    """Yield which kind of the same handling should come next to a segment and does not."""
    for neighbour, rule, side in ((after, followed, "followed"), (before, preceded, "preceded")):
        wanted, handling = rule.get(segment.kind, ()), (segment.held, segment.arm)
        if wanted and not (
            neighbour is not None
            and neighbour.kind in wanted
            and (neighbour.held, neighbour.arm) == handling
        ):
            yield f"it is not {side} by the {' or '.join(wanted)} of '{segment.held}'"


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
        yield f"a handle is not what a {kind.value} handles"
    in_hand = rules.held_object(scene)
    if in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    if segment.reparenting is not None:
        yield f"it reparents '{segment.reparenting.frame}', though it handles the handle '{handle}'"
    yield from _neighbour_faults(
        segment, before, after, followed=_NEXT_AT_HANDLE, preceded=_PREVIOUS_AT_HANDLE
    )
    if kind is SegmentKind.OPERATE:
        yield from _operation_faults(segment, scene, q, rules, joint)


def _operation_faults(
    segment: Segment, scene: SceneGraph, q: Configuration, rules: CollisionRules, joint: str
) -> Iterator[str]:
    """The joint is the handle's, nothing that it moves may overlap, and the tool stays where it took the handle."""
    if segment.joint_names != (*rules.manipulator.joints, joint):
        yield f"it moves other joints than the arm's and '{joint}', which is the handle's"
        return
    moved = {*scene.subtree(scene.joint_frame(joint))}
    for parked in rules.start_overlaps:
        if {parked.frame_a, parked.frame_b} & moved:
            yield f"it moves what overlaps at the start: {parked}"
    entries = [scene.joint_names.index(name) for name in segment.joint_names]
    path = np.repeat(np.array(q)[None], len(segment.path), axis=0)
    path[:, entries] = segment.path
    longest = float(np.max(np.abs(np.diff(path, axis=0)), initial=0.0))
    # no joint moves by more in any
    steps = max(2, math.ceil(longest / min(CHECK_RESOLUTION, CHECK_TRAVEL)))
    metres, radians = closure_error(
        scene, path, tool=rules.manipulator.tool, handle=str(segment.held), steps=steps
    )
    if metres > CLOSURE_DISTANCE or radians > CLOSURE_ANGLE:
        strayed = f"{metres * 1000:.2f} mm and {math.degrees(radians):.3f} degrees"
        yield f"the tool strays by {strayed} from where it took the handle"


def is_at_handle(segment: Segment, scene: SceneGraph) -> bool:
    """Return whether a segment handles something that is not a movable object, thus a handle."""
    return segment.held is not None and segment.held not in movable_frames(scene)


def _is_giving_way(segment: Segment, before: Segment | None) -> bool:
    """Whether a hand lets go of what another hand has just taken from it: a release that changes no parent."""
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
    """Return, for each segment of a step, what its object is taken from or set down on; None where that is a hand."""
    parents: list[str | None] = []  # for grasp and release: parent of the object before, or after
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
        if segment.kind in _NEXT and index + 1 < len(segments):
            supports[index] = parents[index + 1]
        elif segment.kind in _PREVIOUS and index > 0:
            supports[index] = parents[index - 1]
    return tuple(supports)


def segment_allowed_contacts(
    segment: Segment, scene: SceneGraph, *, rules: CollisionRules, support: str | None
) -> tuple[AllowedContact, ...]:
    """Return what the rules let touch in a segment of its kind."""
    if segment.held is None or segment.kind is SegmentKind.TRANSIT:
        return rules.allowed_contacts(scene)
    if segment.kind in (SegmentKind.TRANSFER, SegmentKind.POUR):
        return rules.allowed_contacts(scene, contact_object=segment.held)
    return rules.allowed_contacts(scene, contact_object=segment.held, support=support)


def _change_faults(
    segment: Segment, scene: SceneGraph, rules: CollisionRules, after: Segment | None
) -> Iterator[str]:
    """A grasp and a release change the parent of what they handle, a push its pose; nothing else changes anything."""
    change, tip, others = (
        segment.reparenting,
        rules.manipulator.tip,
        [arm.tip for arm in rules.other_arms],
    )
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
    if (change.parent == tip) != (segment.kind is SegmentKind.GRASP) or change.parent in others:
        yield f"it gives '{change.frame}' to '{change.parent}'"
    if segment.kind is SegmentKind.GRASP:
        giver = next(
            (arm for arm in rules.other_arms if scene.parent(change.frame) == arm.tip), None
        )
        if giver is not None and not (
            after is not None and after.arm == giver.name and _is_giving_way(after, segment)
        ):
            yield (
                f"it takes '{change.frame}' from the arm '{giver.name}', which does not let go of"
                " it then"
            )


@np.errstate(over="ignore", invalid="ignore")  # a file may hold any number
def line_faults(
    path: Configuration, scene: SceneGraph, q: Configuration, manipulator: Manipulator
) -> list[str]:
    """Return that a path (k, n_arm) of the tool strays from a straight line or turns; nothing if it does neither."""
    root, arm = scene.root(manipulator.tool), manipulator.joint_indices(scene)
    between = (path[:-1] + path[1:]) / 2
    poses = []
    for row in (*path, *between):
        at = np.array(q)
        at[arm] = row
        poses.append(scene.pose(manipulator.tool, relative_to=root, q=at))
    first, last = poses[0], poses[len(path) - 1]
    along = last.translation - first.translation
    length = norm(along)
    direction = along / length if length > 0.0 else along
    for pose in poses:
        offset = pose.translation - first.translation
        share = min(max(dot(offset, direction), 0.0), length)
        stray = norm(offset - share * direction)
        # NaN is no line
        if not (stray <= _LINE_TOLERANCE and first.distance(pose)[1] <= _TURN_TOLERANCE):
            return [f"the tool strays from the straight line by {stray * 1000:.1f} mm or turns"]
    return []
