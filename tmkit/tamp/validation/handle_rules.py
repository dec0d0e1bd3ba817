"""What each kind of segment must be when the hand is at a handle instead of an object.

A handle moves a drawer or a door; nothing changes its parent. The hand, empty, approaches, grasps, operates, releases
and retreats, in this order and without a gap: contact with the handle is allowed only where it is part of moving it.
While it operates, the tool stays where it took the handle: within 0.1 mm and 1 mrad, at the checker's fine steps.

Invariants: a function of the segment, its neighbours in the step, the scene version and the arms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.motion import CollisionRules
from tmkit.plans.values import Configuration, Segment, SegmentKind
from tmkit.robots.mechanisms import CLOSURE_ANGLE, CLOSURE_DISTANCE, closure_error, frames_moved_by, mechanism_joint

_NEXT = {
    SegmentKind.APPROACH: SegmentKind.GRASP,
    SegmentKind.GRASP: SegmentKind.OPERATE,
    SegmentKind.OPERATE: SegmentKind.RELEASE,
}
_PREVIOUS = {
    SegmentKind.OPERATE: SegmentKind.GRASP,
    SegmentKind.RELEASE: SegmentKind.OPERATE,
    SegmentKind.RETREAT: SegmentKind.RELEASE,
}


def handle_faults(
    segment: Segment, scene: SceneGraph, q: Configuration, *, rules: CollisionRules, before: Segment | None,
    after: Segment | None,
) -> Iterator[str]:  # fmt: skip
    """Yield the faults of a segment that moves a handle; see :func:`segment_rules.segment_faults`.

    Args:
        segment: the segment.
        scene: the scene before it.
        q: (n_joints,) configuration before it.
        rules: collision rules.
        before: the previous segment.
        after: the next segment.
    """
    handle, kind = str(segment.held), segment.kind
    joint = mechanism_joint(scene, handle, arms=rules.arms)
    if joint is None:
        yield f"'{handle}' is neither a movable object nor a handle"
        return
    if kind not in (*_NEXT, *_PREVIOUS):
        yield f"a handle is not what a {kind.value} handles"
    in_hand = rules.held(scene)
    if in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    if segment.reparenting is not None:
        yield f"it reparents '{segment.reparenting.frame}', though it handles the handle '{handle}'"
    for neighbour, rule, side in ((after, _NEXT, "followed"), (before, _PREVIOUS, "preceded")):
        wanted = rule.get(kind)
        if wanted and not (
            neighbour is not None
            and neighbour.kind is wanted
            and neighbour.held == segment.held
            and neighbour.arm == segment.arm
        ):
            yield f"it is not {side} by the {wanted.value} of '{handle}'"
    if kind is SegmentKind.OPERATE:
        yield from _operation_faults(segment, scene, q, rules, joint)


def _operation_faults(
    segment: Segment, scene: SceneGraph, q: Configuration, rules: CollisionRules, joint: str
) -> Iterator[str]:
    """The joint is the handle's, nothing that it moves may overlap, and the tool stays where it took the handle."""
    if segment.joint_names != (*rules.manipulator.joints, joint):
        yield f"it moves other joints than the arm's and '{joint}', which is the handle's"
        return
    moved = frames_moved_by(scene, joint)
    for parked in rules.parked:
        if {parked.frame_a, parked.frame_b} & moved:
            yield f"it moves what overlaps at the start: {parked}"
    entries = [scene.joint_names.index(name) for name in segment.joint_names]
    path = np.repeat(np.array(q)[None], len(segment.path), axis=0)
    path[:, entries] = segment.path
    steps = _fine_steps(path)
    metres, radians = closure_error(scene, path, tool=rules.manipulator.tool, handle=str(segment.held), steps=steps)
    if metres > CLOSURE_DISTANCE or radians > CLOSURE_ANGLE:
        strayed = f"{metres * 1000:.2f} mm and {math.degrees(radians):.3f} degrees"
        yield f"the tool strays by {strayed} from where it took the handle"


def _fine_steps(path: Configuration) -> int:
    """Return into how many parts each piece of a path is cut: no joint moves by more than a fine step in any."""
    longest = float(np.max(np.abs(np.diff(path, axis=0)), initial=0.0))
    return max(2, math.ceil(longest / min(CHECK_RESOLUTION, CHECK_TRAVEL)))
