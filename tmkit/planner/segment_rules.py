"""What each kind of segment must be, before anybody asks whether it collides.

Contact is allowed in some segments and not in others, so a plan could call a stroke that sweeps through an object an
approach. Hence the rules here: what the hand holds, what changes at the end, which kind comes before or after, and that
those along which contact is allowed are straight.

Invariants: a function of the segment, its neighbours in the step, and the scene version alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules, Manipulator
from tmkit.planner.values import Configuration, Segment, SegmentKind

__all__ = ["LOADED", "is_straight", "segment_faults"]

LOADED = frozenset({SegmentKind.LIFT, SegmentKind.TRANSFER, SegmentKind.LOWER, SegmentKind.RELEASE})
"""Kinds during which the object hangs off the hand."""

_NEXT = {SegmentKind.APPROACH: SegmentKind.GRASP, SegmentKind.LOWER: SegmentKind.RELEASE}
_PREVIOUS = {SegmentKind.LIFT: SegmentKind.GRASP, SegmentKind.RETREAT: SegmentKind.RELEASE}
_LINE_TOLERANCE = 0.001  # metres that the tool may stray from a straight segment
_TURN_TOLERANCE = 0.02  # radians that the tool may turn along one


def segment_faults(
    segment: Segment,
    scene: SceneGraph,
    q: Configuration,
    *,
    manipulator: Manipulator,
    before: Segment | None,
    after: Segment | None,
) -> Iterator[str]:
    """Yield in words what is wrong with a segment as one of its kind.

    Args:
        segment: the segment.
        scene: the version in which it happens.
        q: (n_joints,) configuration before it.
        manipulator: the arm.
        before: the segment before it in the same step, if any.
        after: the segment after it in the same step, if any.
    """
    kind, in_hand = segment.kind, CollisionRules(manipulator).held(scene)
    if kind is SegmentKind.TRANSIT and segment.held is not None:
        yield f"it handles '{segment.held}', which a transit does not"
    if kind is not SegmentKind.TRANSIT and segment.held is None:
        yield "it names no object that it handles"
    if kind in LOADED and in_hand != segment.held:
        yield f"it is to carry '{segment.held}', but in the hand is {_named(in_hand)}"
    if kind not in LOADED and in_hand is not None:
        yield f"the hand is not empty, it holds '{in_hand}'"
    yield from _change_faults(segment, manipulator)
    for neighbour, rule, side in ((after, _NEXT, "followed"), (before, _PREVIOUS, "preceded")):
        wanted = rule.get(kind)
        if wanted and (neighbour is None or neighbour.kind is not wanted or neighbour.held != segment.held):
            yield f"it is not {side} by the {wanted.value} of '{segment.held}'"
    if kind in _NEXT or kind in _PREVIOUS:
        yield from _line_faults(segment.path, scene, q, manipulator)


def _change_faults(segment: Segment, manipulator: Manipulator) -> Iterator[str]:
    """A grasp and a release change the parent of what they handle; nothing else changes anything."""
    change = segment.reparenting
    if segment.kind not in (SegmentKind.GRASP, SegmentKind.RELEASE):
        if change is not None:
            yield f"it reparents '{change.frame}', which only a grasp or release does"
    elif change is None:
        yield f"'{segment.held}' does not change its parent"
    else:
        if change.frame != segment.held:
            yield f"it handles '{segment.held}' but reparents '{change.frame}'"
        if (change.parent == manipulator.tip) != (segment.kind is SegmentKind.GRASP):
            yield f"it gives '{change.frame}' to '{change.parent}'"


def is_straight(path: Configuration, scene: SceneGraph, q: Configuration, *, manipulator: Manipulator) -> bool:
    """Whether the tool moves along a straight line and does not turn.

    Args:
        path: (k, n_arm) configurations of the arm.
        scene: the version in which it moves.
        q: (n_joints,) configuration before it.
        manipulator: the arm.
    """
    return next(_line_faults(path, scene, q, manipulator), None) is None


def _line_faults(path: Configuration, scene: SceneGraph, q: Configuration, manipulator: Manipulator) -> Iterator[str]:
    """The tool moves along a straight line and does not turn."""
    root, arm = scene.root(manipulator.tool), manipulator.joint_indices(scene)
    between = (path[:-1] + path[1:]) / 2
    poses = []
    for row in (*path, *between):
        at = np.array(q)
        at[arm] = row
        poses.append(scene.pose(manipulator.tool, root, q=at))
    first, last = poses[0], poses[len(path) - 1]
    along = last.translation - first.translation
    length = float(np.linalg.norm(along))
    direction = along / length if length > 0.0 else along
    for pose in poses:
        offset = pose.translation - first.translation
        share = min(max(float(offset @ direction), 0.0), length)
        stray = float(np.linalg.norm(offset - share * direction))
        if stray > _LINE_TOLERANCE or first.distance(pose)[1] > _TURN_TOLERANCE:
            yield f"the tool strays from the straight line by {stray * 1000:.1f} mm or turns"
            return


def _named(item: str | None) -> str:
    return "nothing" if item is None else f"'{item}'"
