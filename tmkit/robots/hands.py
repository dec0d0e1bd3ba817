"""Contact links, inference and mounting of hands.

Fingers are the last frames with collision shapes below the joints of the hand and the joints that
mimic them. A suction cup has no joints. It consists of the frames rigidly fixed between tip and
tool.

To infer a hand, joints below the end of an arm are swept together between their limits, in all
combinations of directions. Candidates are all pairs of shapes on different branches. The fingers
are the pair that closes and opens widest, by 1 cm or more. The tool is between the fingertips, with
y along the motion of a closing fingertip and z from the finger's joints towards its tip. A joint
without such a pair is a jaw if its fingertip closes on the palm or a finger of it. The tool of a
jaw is on the surface of the fixed finger. Widths and depths are measured at the tool point
(:mod:`tmkit.robots.finger_gap`).

By convention the z axis of a hand's base points away from the arm. A mounted hand is at the end of
the arm: on the axis of the last joint, in front of the collision shapes of the last link. A frame
with a name like ``tool0`` and an aligned z axis replaces this pose.

Invariants: frames are in the order of the scene. A distance does not depend on the order of the
    fingers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import cos, dot, norm, norms, product
from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.robots.finger_gap import FingerGap, values_between
from tmkit.robots.mechanisms import frames_on_joints, movable_frames, rigid_frames
from tmkit.spatial import Pose

FINGER_WORDS = ("gripper", "finger", "jaw", "claw", "clamp", "knuckle", "pincher")
"""Words in the names of fingers and their joints."""

TOOL_NAMES = ("tcp", "grasp", "tool")
"""Words in the names of tool frames."""

MAX_JOINTS = 4
"""Largest number of joints of an inferred hand. Hands with more joints have many fingers."""

LEAST_STROKE = 0.01
"""Smallest difference between the open and the closed width [m]."""

_MAX_CLOSED_WIDTH = 0.02
"""Largest distance between closed fingers [m]."""

_SWEEP_STEPS = 9
"""Number of configurations of a sweep."""

_FINGERTIP_LENGTH = 0.01
"""Distance from the end of the fingers back to the tool [m]."""

_LAST_MOTION = 0.3
"""Motion of a joint before it is closed, from which the closing direction follows [rad or m]."""

_MIN_ROLL_COSINE = cos(math.radians(30.0))
"""Smallest cosine of the angle between a jaw's tool and the axis about which the hand turns."""

_MAX_DEPTH = 0.1
"""Largest depth of an object in a hand [m]."""

_PALM_CLEARANCE = 0.002
"""Distance of an object from the palm [m], more than the margin of a planner."""

_WIDTH_STEPS = 16
"""Number of steps of a table of widths, whose error is that of the hand divided by its square."""

_SCAN_STEPS = 96
"""Number of steps in which the range of a jaw is searched."""

_LEAST_WIDTH = 5e-5
"""Smallest width that is not 0, given the accuracy of the measurement [m]."""

_LINEAR_TOLERANCE = 3e-4
"""Largest error of a width that is linear in the joints [m]."""

_DEPTH_TOLERANCE = 0.004
"""Smallest change of the depth between open and closed that is worth a table [m]."""

MAX_TOOL_OFFSET = 0.002
"""Largest distance of a tool from the middle between the fingers, or from a fixed finger [m]."""

_THIN_OBJECT_WIDTH = 0.01
"""Width of a thin object, for the depth of a jaw [m]."""

_TIP_FRACTION = 0.8
"""Distance from the hinge, as a fraction of the farthest point's, beyond which is a fingertip."""

_TIP_POINTS = 100
"""Number of points of a fingertip whose distance to the palm is measured."""

_AXIS_DISTANCE = 0.05
"""Distance from the last axis within which shapes of the last link block a mounted hand [m]."""

Pair = tuple[str, str]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hand:
    """Hand with fingers, with the gripper attributes of a :class:`~tmkit.robots.Manipulator`.

    Attributes:
        joints: joints that open and close the hand.
        opened: values of the joints when open [rad or m].
        closed: values of the joints when closed [rad or m].
        width_open: distance between the open fingers [m].
        width_closed: distance between the closed fingers [m].
        contact_links: frames that may touch a grasped object.
        kind: ``parallel``, or ``jaw`` for one finger that moves against a fixed one.
        widths: distances at equal steps from closed to open [m]. Empty if linear in the joints.
        finger_depths: depths of an object in the hand at these steps [m]. Empty if equal.
    """

    joints: tuple[str, ...]
    opened: Mapping[str, float]
    closed: Mapping[str, float]
    width_open: float
    width_closed: float
    contact_links: tuple[str, ...]
    kind: str = field(default="parallel", kw_only=True)
    widths: tuple[float, ...] = field(default=(), kw_only=True)
    finger_depths: tuple[float, ...] = field(default=(), kw_only=True)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a :class:`~tmkit.robots.Manipulator` with this hand."""
        return {
            "gripper_kind": self.kind,
            "widths": self.widths,
            "finger_depths": self.finger_depths,
            "gripper_joints": self.joints,
            "gripper_open": self.opened,
            "gripper_closed": self.closed,
            "width_open": self.width_open,
            "width_closed": self.width_closed,
            "contact_links": self.contact_links,
        }


def finger_frames(scene: SceneGraph, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the frames with collision shapes below the last joints of a hand.

    Args:
        scene: scene with the hand.
        joints: joints of the hand. Joints that mimic them belong to the hand as well.
    """
    joint_frames = frames_on_joints(scene, joints)
    last_frames = [
        frame
        for frame in joint_frames
        if not any(
            descendant in scene.subtree(frame) for descendant in joint_frames if descendant != frame
        )
    ]
    fingers = {descendant for frame in last_frames for descendant in scene.subtree(frame)}
    return _with_shapes(scene, (frame for frame in scene.frame_names if frame in fingers))


def fingers_of(scene: SceneGraph, links: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return rigidly connected contact links in groups, in the order of their first links.

    Args:
        scene: scene with the links.
        links: contact links of a hand.
    """
    groups: dict[str, list[str]] = {}
    for link in links:
        groups.setdefault(_rigid_root(scene, link), []).append(link)
    return tuple(map(tuple, groups.values()))


def pair_distance(scene: SceneGraph, q: ArrayLike, *, frame_a: str, frame_b: str) -> float:
    """Return the signed distance between the collision shapes of two frames [m].

    The distance is also computed if the scene allows the two frames to touch.

    Args:
        scene: scene with both frames.
        q: (n_joints,) configuration.
        frame_a: first frame.
        frame_b: second frame.

    Returns:
        The distance, negative in case of overlap. ``inf`` if one frame has no collision shape, or
        both are rigidly connected.
    """
    movable = movable_frames(scene)
    contact = CollisionWorld(scene, movable=movable).distance(frame_a, frame_b, q)
    root_a, root_b = (_rigid_root(scene, frame, movable) for frame in (frame_a, frame_b))
    return math.inf if contact is None or root_a == root_b else contact.distance


def distance_world(scene: SceneGraph, pairs: Sequence[Pair]) -> CollisionWorld:
    """Return a collision world in which only some pairs of frames are checked.

    Args:
        scene: scene with the frames.
        pairs: pairs of frames, also those that the scene allows to touch.
    """
    edit, pair_sets = scene.edit(), {frozenset(pair) for pair in pairs}
    for pair in pairs:
        edit.forbid_collision(*pair)
    scene, movable = edit.finish(), movable_frames(scene)
    all_pairs = CollisionWorld(scene, movable=movable).pairs
    ignored = {(i, j): -math.inf for i, j, _ in all_pairs if frozenset((i, j)) not in pair_sets}
    return CollisionWorld(scene, movable=movable, pair_margins=ignored)


def reason_without_distance(scene: SceneGraph, frame_a: str, frame_b: str) -> str:
    """Return the reason for an infinite distance of two frames.

    Args:
        scene: scene with both frames.
        frame_a: first frame.
        frame_b: second frame.
    """
    without_shapes = [
        name
        for name in (frame_a, frame_b)
        if not any(part.collision for part in scene.shapes(name))
    ]
    if not without_shapes:
        return f"'{frame_a}' and '{frame_b}' move as one body, which has no distance to itself"
    verb = "has" if len(without_shapes) == 1 else "have"
    return f"{' and '.join(map(repr, without_shapes))} {verb} no collision shape"


def finger_distance(scene: SceneGraph, values: dict[str, float], fingers: Sequence[str]) -> float:
    """Return the distance between the fingers, rounded to 0.1 mm [m].

    Args:
        scene: scene with the hand.
        values: joint values by name [rad or m]. Other joints are at 0.
        fingers: frames of the fingers.

    Returns:
        The distance. ``inf`` for fewer than two fingers.
    """
    q = scene.configuration(values)
    pairs = combinations(fingers, 2)
    nearest = min(
        (pair_distance(scene, q, frame_a=a, frame_b=b) for a, b in pairs), default=math.inf
    )
    return nearest if math.isinf(nearest) else max(0.0, round(nearest, 4))


def cup_frames(scene: SceneGraph, tip: str, tool: str | None) -> tuple[str, ...]:
    """Return the frames of a suction cup: those with collision shapes between tip and tool.

    Args:
        scene: scene with the robot.
        tip: frame of the hand.
        tool: frame of the tool. If it is None or unknown, the tip alone is the cup.
    """
    frames = (tip,) if tool is None or tool not in scene else (tool, *scene.ancestors(tool))
    return _with_shapes(scene, (frame for frame in rigid_frames(scene, tip) if frame in frames))


@dataclass(frozen=True, slots=True)
class InferredHand(Hand):
    """Hand inferred from two shapes that close on each other.

    Attributes:
        tool: tip_from_tool.
        depth: distance from the tool back to the palm [m].
        evidence: reasons for the inference, as sentences.
        fingers: frames of both fingers, those at smaller y in tool axes first.
    """

    tool: Pose
    depth: float
    evidence: tuple[str, ...]
    fingers: tuple[tuple[str, ...], tuple[str, ...]]


def has_word(name: str, words: Sequence[str]) -> bool:
    """Return whether a name, in any case, contains one of some lower-case words."""
    return any(word in name.lower() for word in words)


def hand_joints(scene: SceneGraph, tip: str, arm: Sequence[str]) -> tuple[str, ...]:
    """Return the actuated joints with limits below a tip.

    Args:
        scene: scene with the robot.
        tip: frame of the hand.
        arm: joints of the arm, which are excluded.
    """
    descendants = set(scene.subtree(tip)) - {tip}
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    joints = [
        joint
        for joint in scene.joint_names
        if joint not in arm and scene.joint_frame(joint) in descendants
    ]
    return tuple(
        joint for joint in joints if -np.inf < limits[joint][0] < limits[joint][1] < np.inf
    )


def infer_hand(scene: SceneGraph, tip: str, arm: Sequence[str]) -> InferredHand | None:
    """Return the hand below a tip.

    Args:
        scene: scene with the robot.
        tip: frame at the end of the arm.
        arm: joints of the arm.

    Returns:
        The hand, or None if no two shapes close on each other, or the hand has too many joints.
    """
    joints = hand_joints(scene, tip, arm)
    if not 0 < len(joints) <= MAX_JOINTS:
        return None
    palm = rigid_frames(scene, tip)
    branch_roots = [
        child
        for frame in palm
        for child in scene.children(frame)
        if scene.joint(child).type != "fixed"
    ]
    subtrees = (_with_shapes(scene, scene.subtree(frame)) for frame in branch_roots)
    branches = [frames for frames in subtrees if frames]
    pairs = [
        pair
        for first, second in combinations(branches, 2)
        for pair in itertools.product(first, second)
    ]
    closing, kind = _find_closing_pair(scene, joints, pairs), "parallel"
    if closing is None and len(branches) == len(joints) == 1:
        closing, kind = _find_jaw(scene, tip, joints[0], branches[0]), "jaw"
    if closing is None:
        return None
    palm_frames = _with_shapes(scene, palm)
    roll_axis = _axis_of_last_joint(scene, tip, arm) if kind == "jaw" else None
    tool, depth = _tool(scene, tip, _last_motion(closing), palm_frames, roll_axis)
    fixed = palm_frames if kind == "jaw" else _finger(scene, closing.pair[0])
    fingers = fixed, _finger(scene, closing.pair[1])
    named_joints = [joint for joint in joints if has_word(joint, FINGER_WORDS)]
    hand = InferredHand(
        joints,
        closing.values_open,
        closing.values_closed,
        closing.width_open,
        closing.width_closed,
        tuple(dict.fromkeys((*fingers[0], *fingers[1]))),
        tool,
        depth,
        (f"called so: {', '.join(named_joints)}",) if named_joints else (),
        fingers,
        kind=kind,
    )
    measured = measure_hand(scene, tip, hand)
    if measured is None and kind == "jaw":
        return None
    hand = hand if measured is None else measured
    verb = "closes on" if kind == "parallel" else "is fixed, and closes with the jaw"
    widths = f"{1000 * hand.width_open:.0f} mm open, {1000 * hand.width_closed:.0f} mm closed"
    line = f"'{closing.pair[0]}' {verb} '{closing.pair[1]}': {widths}"
    return replace(hand, evidence=(line, *hand.evidence))


def measure_hand(
    scene: SceneGraph, tip: str, hand: InferredHand, *, tool: Pose | None = None
) -> InferredHand | None:
    """Return a hand with the widths and depths at its tool point, or None if they are none.

    The open and closed values become the ends of the range in which the width rises. Those of a
    jaw that turns are at most 60 degrees apart, since an object slips out of a wider wedge.

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        hand: fingers and joint values.
        tool: tip_from_tool. Defaults to that of the hand; a jaw's is moved to the fixed finger.
    """
    is_jaw = hand.kind == "jaw"
    pose = hand.tool if tool is None else tool
    if dot(pose.rotation[:, 1], hand.tool.rotation[:, 1]) < 0.0:
        # The y axis of a given tool points to the other of two moving fingers.
        hand = replace(hand, fingers=hand.fingers[::-1])
    gap = FingerGap(scene, tip=tip, tool=pose, fingers=hand.fingers, is_jaw=is_jaw)
    values = values_between(hand.closed, hand.opened, steps=_SCAN_STEPS if is_jaw else _WIDTH_STEPS)
    if is_jaw:
        surface = gap.find_fixed_finger(values[-1])
        if not math.isfinite(surface):
            return None
        if tool is None:
            pose = pose @ Pose([0.0, round(surface, 4), 0.0])
            gap = FingerGap(scene, tip=tip, tool=pose, fingers=hand.fingers, is_jaw=is_jaw)
        elif abs(surface) > MAX_TOOL_OFFSET:
            return None
        ends = _jaw_range(gap, values)
    else:
        ends = _rising_range(gap.widths(values))
    if ends is None:
        return None

    # Measure between the ends of the range.
    closed = values[ends[0]]
    if gap.widths(values[ends[0] : ends[0] + 2])[0] <= _LEAST_WIDTH:
        closed = gap.find_touch(closed, values[ends[0] + 1])
    values = values_between(closed, values[ends[1]], steps=_WIDTH_STEPS)
    widths = np.maximum.accumulate(gap.widths(values))
    if not np.isfinite(widths).all() or widths[-1] - widths[0] < LEAST_STROKE:
        return None
    if is_jaw:
        # The wedge of a jaw is narrower behind an object, so the depth is that of a thin one.
        depths = [gap.depth(values[-1], low=0.0, high=_THIN_OBJECT_WIDTH, most=_MAX_DEPTH)]
    else:
        depths = [
            gap.depth(row, low=-width / 2.0, high=width / 2.0, most=_MAX_DEPTH)
            for row, width in zip(values, widths.tolist(), strict=True)
        ]
        # Below the width of the thinnest object, the depth is that of this object.
        depths = [next(filter(math.isfinite, depths[index:])) for index in range(len(depths))]
    depths = [max(0.0, depth - _PALM_CLEARANCE) for depth in depths]
    steps = np.linspace(widths[0], widths[-1], len(widths))
    is_linear = float(np.max(np.abs(widths - steps))) <= _LINEAR_TOLERANCE
    has_depths = max(depths) - min(depths) > _DEPTH_TOLERANCE
    rounded = [round(float(width), 5) if width > _LEAST_WIDTH else 0.0 for width in widths]
    return replace(
        hand,
        opened=values[-1],
        closed=values[0],
        width_open=rounded[-1],
        width_closed=rounded[0],
        tool=pose,
        depth=round(max(depths) if has_depths else min(depths), 4),
        widths=() if is_linear and not has_depths else tuple(rounded),
        finger_depths=tuple(round(depth, 4) for depth in depths) if has_depths else (),
    )


def with_lever_widths(scene: SceneGraph, tip: str, tool: str, hand: Hand) -> Hand:
    """Return a hand with its widths at a tool, if they are not in proportion to the joints.

    The same hand is returned if its contact links are not two fingers below the tip, or the tool is
    not between them.

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        tool: frame between the fingertips, with y along the closing direction.
        hand: fingers and joint values.
    """
    fingers = fingers_of(scene, hand.contact_links)
    if len(fingers) != 2 or not {*hand.contact_links} <= {*scene.subtree(tip)}:
        return hand
    q = scene.configuration(hand.opened)
    pose = scene.pose(tool, relative_to=tip, q=q)
    centres = [shape_points(scene, finger, tool, q).mean(axis=0)[1] for finger in fingers]
    low, high = fingers if centres[0] < centres[1] else fingers[::-1]
    inferred = InferredHand(
        hand.joints,
        hand.opened,
        hand.closed,
        hand.width_open,
        hand.width_closed,
        hand.contact_links,
        pose,
        0.0,
        (),
        (low, high),
    )
    measured = measure_hand(scene, tip, inferred, tool=pose)
    if measured is None or not measured.widths:
        return hand
    return replace(
        hand,
        opened=measured.opened,
        closed=measured.closed,
        width_open=measured.width_open,
        width_closed=measured.width_closed,
        widths=measured.widths,
        finger_depths=measured.finger_depths,
    )


def _rising_range(widths: Sequence[float]) -> tuple[int, int] | None:
    """Return the first and the last index of the range in which finite widths rise, or None."""
    if not all(map(math.isfinite, widths)):
        return None
    last = int(np.argmax(widths))
    first = max(index for index in range(last + 1) if widths[index] <= min(widths[: last + 1]))
    return (first, last) if first < last else None


def _jaw_range(gap: FingerGap, values: Sequence[Mapping[str, float]]) -> tuple[int, int] | None:
    """Return the indices of the closed and the open jaw in a sweep, or None."""
    widths = gap.widths(values)
    (joint,) = values[0]
    closed = max((index for index, width in enumerate(widths) if width <= 1e-4), default=0)
    opened = closed
    for index in range(closed + 1, len(widths)):
        angle = abs(values[index][joint] - values[closed][joint])
        if not widths[opened] < widths[index] < math.inf or angle > gap.max_jaw_angle(joint):
            break
        opened = index
    return (closed, opened) if widths[opened] - max(0.0, widths[closed]) >= LEAST_STROKE else None


def _axis_of_last_joint(scene: SceneGraph, tip: str, arm: Sequence[str]) -> Array | None:
    """Return the axis (3,) of an arm's last joint in the axes of its tip, if that joint turns."""
    frame = scene.joint_frame(arm[-1])
    joint = scene.joint(frame)
    if joint.type not in ("revolute", "continuous"):
        return None
    pose = scene.pose(frame, relative_to=tip, q=scene.configuration({}))
    axis: Array = snap_to_axis(product(pose.rotation, joint.axis))
    return axis


def _last_motion(closing: _ClosingPair) -> _ClosingPair:
    """Return a closing pair from partly open to closed, where a finger moves straight."""
    opened, closed = closing.values_open, closing.values_closed
    values = {
        joint: closed[joint]
        + math.copysign(
            min(abs(opened[joint] - closed[joint]), _LAST_MOTION), opened[joint] - closed[joint]
        )
        for joint in closed
    }
    return replace(closing, values_open=values)


def _find_jaw(
    scene: SceneGraph, tip: str, joint: str, branch: Sequence[str]
) -> _ClosingPair | None:
    """Return the pair of the palm and a single moving finger, between the joint's limits.

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        joint: joint of the moving finger.
        branch: frames with shapes that the joint moves.
    """
    palm = _with_shapes(scene, rigid_frames(scene, tip))
    if not palm:
        return None
    lower, upper = np.asarray(scene.joint_limits)[scene.joint_names.index(joint)].tolist()
    palm_points = shape_points(scene, palm, tip, scene.configuration({}))
    zero = scene.configuration({})
    hinge = np.asarray(scene.pose(scene.joint_frame(joint), relative_to=tip, q=zero).translation)
    gaps = []
    for value in (lower, upper):
        points = shape_points(scene, branch, tip, scene.configuration({joint: value}))
        distances = norms(points - hinge)
        tips = points[distances >= _TIP_FRACTION * distances.max()]
        spread = palm_points[:, None] - tips[None, :: 1 + len(tips) // _TIP_POINTS]
        gaps.append(float(np.min(norms(spread.reshape(-1, 3)))))
    closed, opened = (lower, upper) if gaps[0] < gaps[1] else (upper, lower)
    if min(gaps) > 2.0 * _MAX_CLOSED_WIDTH:
        return None
    pair = palm[-1], branch[-1]
    return _ClosingPair(pair, {joint: opened}, {joint: closed}, max(gaps), min(gaps))


def _with_shapes(scene: SceneGraph, frames: Iterable[str]) -> tuple[str, ...]:
    """Return the frames with a collision shape."""
    return tuple(frame for frame in frames if any(part.collision for part in scene.shapes(frame)))


def _finger(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return the frames with shapes in the rigid group of a finger's frame."""
    return _with_shapes(scene, rigid_frames(scene, _rigid_root(scene, frame)))


@dataclass(frozen=True, slots=True)
class _ClosingPair:
    """Two frames that close on each other.

    Attributes:
        pair: names of the frames.
        values_open: joint values when open [rad or m].
        values_closed: joint values when closed [rad or m].
        width_open: distance when open, rounded to 0.1 mm [m].
        width_closed: distance when closed, rounded to 0.1 mm [m].
    """

    pair: Pair
    values_open: dict[str, float]
    values_closed: dict[str, float]
    width_open: float
    width_closed: float


def _find_closing_pair(
    scene: SceneGraph, joints: Sequence[str], pairs: Sequence[Pair]
) -> _ClosingPair | None:
    """Return the pair that closes and opens widest in a sweep of all joints.

    Args:
        scene: scene with the hand.
        joints: joints of the hand.
        pairs: candidate pairs of frames.
    """
    indices = [scene.joint_names.index(joint) for joint in joints]
    lower, upper = np.asarray(scene.joint_limits)[indices].T
    best, max_stroke = None, LEAST_STROKE
    for reversals in itertools.product((False, True), repeat=len(joints) - 1):
        sweep = []
        for fraction in np.linspace(0.0, 1.0, _SWEEP_STEPS):
            fractions = np.array(
                [
                    fraction,
                    *(1.0 - fraction if is_reversed else fraction for is_reversed in reversals),
                ]
            )
            values = lower + fractions * (upper - lower)
            sweep.append(dict(zip(joints, values.tolist(), strict=True)))
        for pair in pairs:
            distances = _distances(scene, pair, sweep)
            if not np.isfinite(distances).all():
                continue
            widest, narrowest = (
                int(np.argmax(distances)),
                int(np.argmin(np.maximum(distances, 0.0))),
            )
            width_open = float(distances[widest])
            width_closed = max(0.0, float(distances[narrowest]))
            stroke = width_open - width_closed
            if width_closed <= _MAX_CLOSED_WIDTH and stroke > max_stroke + 1e-6:
                max_stroke = stroke
                best = _ClosingPair(
                    pair,
                    sweep[widest],
                    sweep[narrowest],
                    round(width_open, 4),
                    round(width_closed, 4),
                )
    return best


def _distances(scene: SceneGraph, pair: Pair, sweep: Sequence[Mapping[str, float]]) -> Array:
    """Return the distance of two frames for each set of joint values in a sweep [m]."""
    pair_scene = scene.forbid_collision(*pair)
    pairs = CollisionWorld(pair_scene, level="exact").pairs
    ignored = {(i, j): -math.inf for i, j, _ in pairs if {i, j} != set(pair)}
    if len(ignored) == len(pairs):
        # Both frames are rigidly connected.
        return np.full(len(sweep), math.inf)
    world = CollisionWorld(pair_scene, pair_margins=ignored, level="exact")
    return np.array([world.distance(pair_scene.configuration(values)) for values in sweep])


def shape_points(scene: SceneGraph, frames: Sequence[str], tip: str, q: Array) -> Array:
    """Return the corners (n, 3) of collision shapes in the axes of the tip [m].

    Args:
        scene: scene with the robot.
        frames: frames with at least one collision shape.
        tip: frame of the hand.
        q: (n_joints,) configuration.
    """
    clouds = []
    for frame in frames:
        pose = scene.pose(frame, relative_to=tip, q=q)
        for part in scene.shapes(frame):
            if part.collision:
                bounds = zip(*part.shape.bounds, strict=True)
                is_mesh = part.shape.kind == "mesh"
                corners = part.shape.vertices if is_mesh else [*itertools.product(*bounds)]
                clouds.append((pose @ part.pose).apply(np.asarray(corners)))
    return np.concatenate(clouds)


def _tool(
    scene: SceneGraph, tip: str, closing: _ClosingPair, palm: Sequence[str], roll_axis: Array | None
) -> tuple[Pose, float]:
    """Return the tool of an inferred hand.

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        closing: fingers.
        palm: frames with collision shapes of the palm.
        roll_axis: (3,) axis of the arm's last joint in the axes of the tip, for a jaw, or None.

    Returns:
        tip_from_tool, and the distance from the tool back to the palm [m].
    """
    q_open = scene.configuration(closing.values_open)
    q_closed = scene.configuration(closing.values_closed)
    fingers = [_finger(scene, frame) for frame in closing.pair]
    points = [shape_points(scene, finger, tip, q_closed) for finger in fingers]

    # The axes of the tool.
    roots = [_rigid_root(scene, finger[0]) for finger in fingers]
    hinges = np.array(
        [np.asarray(scene.pose(root, relative_to=tip, q=q_closed).translation) for root in roots]
    )
    motions = (
        _fingertip_motion(scene, tip, finger, hinge, q_open, q_closed)
        for finger, hinge in zip(fingers, hinges, strict=False)
    )
    y = snap_to_axis(np.subtract(*motions))
    centre = np.mean([finger_points.mean(axis=0) for finger_points in points], axis=0)
    is_prismatic = scene.joint(roots[-1]).type == "prismatic"
    direction = centre - (np.zeros(3) if is_prismatic else hinges.mean(axis=0))
    direction -= dot(direction, y) * y
    if norm(direction) < 0.005:
        parent_pose = scene.pose(str(scene.parent(tip)), relative_to=tip, q=q_closed)
        direction = centre - np.asarray(parent_pose.translation)
        direction -= dot(direction, y) * y
    z = snap_to_axis(direction if norm(direction) > 1e-6 else np.cross(y, (0.3, 0.5, 0.8)))
    if roll_axis is not None and abs(dot(z, roll_axis)) > _MIN_ROLL_COSINE:
        # The fingertip of a jaw moves across its lever, which may be inclined to the fixed finger.
        z = math.copysign(1.0, dot(z, roll_axis)) * roll_axis
        y = _unit(y - dot(y, z) * z)
    z = _unit(z - dot(z, y) * y)
    x = np.cross(y, z)

    # The origin between the fingertips.
    height = min(float(product(cloud, z).max()) for cloud in points) - _FINGERTIP_LENGTH
    tips = [cloud[product(cloud, z) > height - 2 * _FINGERTIP_LENGTH] for cloud in points]
    y_sum = 0.0
    if len(tips[1]):
        y_sum = float(product(tips[0], y).max()) + float(product(tips[1], y).min())
    x_offset = float(np.mean([product(cloud, x).mean() for cloud in tips if len(cloud)]))
    origin = height * z + 0.5 * y_sum * y + x_offset * x

    # The distance to the palm.
    palm_points = shape_points(scene, palm, tip, q_closed) if palm else np.zeros((0, 3))
    is_behind = np.abs(product(palm_points, x) - x_offset) < 0.05
    palm_heights = product(palm_points[is_behind], z)
    depth = 0.03
    if len(palm_heights):
        depth = min(max(height - float(palm_heights.max()), 0.005), 0.1)
    matrix = np.vstack([np.column_stack([x, y, z, np.round(origin, 4)]), (0.0, 0.0, 0.0, 1.0)])
    return Pose.from_matrix(matrix), round(depth, 4)


def _rigid_root(scene: SceneGraph, frame: str, movable: Collection[str] = ()) -> str:
    """Return the last frame above a frame that moves by a joint or is movable, or else the root."""
    while (
        frame not in movable
        and scene.joint(frame).type == "fixed"
        and (parent := scene.parent(frame)) is not None
    ):
        frame = parent
    return frame


def _fingertip_motion(
    scene: SceneGraph, tip: str, finger: Sequence[str], hinge: Array, q_open: Array, q_closed: Array
) -> Array:
    """Return the motion (3,) of a fingertip from open to closed, in the axes of the tip [m].

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        finger: frames of the finger.
        hinge: (3,) position of the finger's joint [m].
        q_open: (n_joints,) configuration of the open hand.
        q_closed: (n_joints,) configuration of the closed hand.
    """
    points_open = shape_points(scene, finger, tip, q_open)
    points_closed = shape_points(scene, finger, tip, q_closed)
    distances = norms(points_closed - hinge)
    is_tip = distances >= 0.8 * distances.max()
    motion: Array = points_closed[is_tip].mean(axis=0) - points_open[is_tip].mean(axis=0)
    return motion


def _unit(vector: Array) -> Array:
    """Return the unit vector (3,) of a vector (3,)."""
    return vector / norm(vector)


def snap_to_axis(vector: Array) -> Array:
    """Return the unit vector (3,) of a vector, or an axis within 15 degrees of it.

    Args:
        vector: (3,) vector other than zero.
    """
    unit = _unit(vector)
    axis = int(np.argmax(np.abs(unit)))
    if abs(unit[axis]) < cos(math.radians(15.0)):
        return unit
    direction = np.zeros(3)
    direction[axis] = math.copysign(1.0, unit[axis])
    return direction


def mount_hand(
    scene: SceneGraph, hand: SceneGraph, *, tip: str, joints: Sequence[str]
) -> SceneGraph:
    """Return a robot with a hand mounted at the tip of an arm.

    Args:
        scene: scene with the robot.
        hand: scene with one frame below its root. Its names are prefixed by ``hand_`` if one of
            them is a name of the robot.
        tip: frame at the end of the arm.
        joints: joints of the arm from base to tip.

    Raises:
        RobotError: if the hand has several frames below its root.
    """
    bases = hand.children(hand.root_names[0])
    if len(bases) != 1:
        raise RobotError.at("hand", f"expected one frame below its root, received {len(bases)}")
    hand = hand.extract(bases[0])
    hand_names = {*hand.frame_names, *hand.joint_names}
    prefix = "hand_" if hand_names & {*scene.frame_names, *scene.joint_names} else ""
    end, q = _flange_pose(scene, tip, joints), scene.configuration({})
    for frame in rigid_frames(scene, tip):
        pose = scene.pose(frame, relative_to=tip, q=q)
        if has_word(frame, TOOL_NAMES) and dot(pose.rotation[:, 2], end.rotation[:, 2]) > 0.9:
            return scene.mount(hand, frame, prefix=prefix)
    return scene.mount(hand, tip, prefix=prefix, pose=end)


def _flange_pose(scene: SceneGraph, tip: str, joints: Sequence[str]) -> Pose:
    """Return tip_from_flange: in front of the last link's shapes, with z away from the arm.

    Args:
        scene: scene with the robot.
        tip: frame at the end of the arm.
        joints: joints of the arm from base to tip.
    """
    q = scene.configuration({})
    last, second_last = (
        scene.pose(scene.joint_frame(joint), relative_to=tip, q=q)
        for joint in (joints[-1], *joints[-2:][:1])
    )
    axis = product(last.rotation, scene.joint(scene.joint_frame(joints[-1])).axis)
    frames = _with_shapes(scene, rigid_frames(scene, tip))
    points: Array = shape_points(scene, frames, tip, q) if frames else np.zeros((1, 3))
    direction = points.mean(axis=0) - second_last.translation
    axial = dot(direction, axis)
    if 2.0 * abs(axial) >= norms(direction[None])[0]:
        direction = axis if axial > 0.0 else -axis
    z = snap_to_axis(direction)
    heights = product(points - last.translation, z)
    is_near = norms(points - last.translation - heights[:, None] * z) < _AXIS_DISTANCE
    height = max(0.0, float(heights[is_near].max() if is_near.any() else heights.max()))
    y = snap_to_axis(np.cross(z, (1.0, 0.0, 0.0) if abs(z[0]) < 0.7 else (0.0, 0.0, 1.0)))
    origin = np.round(last.translation + height * z, 4)
    matrix = np.vstack([np.column_stack([np.cross(y, z), y, z, origin]), (0.0, 0.0, 0.0, 1.0)])
    return Pose.from_matrix(matrix)
