"""Hands: what of one touches what it holds, inferring one from links and joints, and mounting one at the end of an arm.

Fingers are where the joints of the hand end: of all frames that these joints move, and those that
mimic them, the last ones that have collision shapes. A cup has no joints; it is what is rigidly
joined between tip and tool.

To infer a hand, joints below the end of an arm are swept together between their limits, each either
way. Of all pairs of shapes on different branches, which move against each other, the pair that
opens widest, by a centimetre at least, and closes is the two fingers. The tool is then between the
fingertips: y along the way that a fingertip moves when it closes, z from the finger's joints
towards its tip.

By convention the z axis of a hand's base points away from the arm. A mounted hand is at the end of
the arm: on the axis of the last joint, in front of the collision shapes of the last link. A frame
with a name like ``tool0`` whose z axis agrees replaces this place.

Invariants: frames come in the order of the scene; a distance does not depend on which finger is
    named first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import cos, dot, norm, norms, product
from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.robots.mechanisms import frames_on_joints, movable_frames, rigid_frames
from tmkit.spatial import Pose

FINGER_WORDS = ("gripper", "finger", "jaw", "claw", "clamp", "knuckle", "pincher")
TOOL_NAMES = ("tcp", "grasp", "tool")

MOST_JOINTS = 4
"""Joints of its own that a hand may have to be swept: more are a hand of many fingers."""

LEAST_STROKE = 0.01  # metres between open and closed
_CLOSED = 0.02  # metres between fingers that count as closed
_CLOSING_STEPS = 9
_FINGERTIP = 0.01  # metres from the end of the fingers back to the tool
# metres from the axis within which the shapes of the last link are in a mounted hand's way
_NEAR_AXIS = 0.05

Pair = tuple[str, str]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hand:
    """Fingers that open and close; the attributes of a :class:`~tmkit.robots.Manipulator` of this meaning."""

    joints: tuple[str, ...]
    opened: Mapping[str, float]
    closed: Mapping[str, float]
    width_open: float
    width_closed: float
    contact_links: tuple[str, ...]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a :class:`~tmkit.robots.Manipulator` with this hand."""
        return {
            "gripper_joints": self.joints,
            "gripper_open": self.opened,
            "gripper_closed": self.closed,
            "width_open": self.width_open,
            "width_closed": self.width_closed,
            "contact_links": self.contact_links,
        }


def finger_frames(scene: SceneGraph, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the frames with collision shapes below the last joints of a hand, and joints that mimic them."""
    moved = frames_on_joints(scene, joints)
    last = [
        frame
        for frame in moved
        if not any(other in scene.subtree(frame) for other in moved if other != frame)
    ]
    found = {below for frame in last for below in scene.subtree(frame)}
    return _solid(scene, (frame for frame in scene.frame_names if frame in found))


def pair_distance(scene: SceneGraph, q: ArrayLike, *, frame_a: str, frame_b: str) -> float:
    """Return the metres between the collision shapes of two frames; negative when they overlap.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        frame_a: one frame.
        frame_b: the other, also when the scene allows the two to touch.

    Returns:
        The signed distance; ``inf`` when one of them has no collision shape, or both move as one.
    """
    movable, scene = movable_frames(scene), scene.forbid_collision(frame_a, frame_b)
    every = CollisionWorld(scene, movable=movable).pairs
    others = {(i, j): -math.inf for i, j, _ in every if {i, j} != {frame_a, frame_b}}
    return float(CollisionWorld(scene, movable=movable, pair_margins=others).distance(q))


def reason_without_distance(scene: SceneGraph, frame_a: str, frame_b: str) -> str:
    """Return why the distance of two frames is infinite.

    Args:
        scene: the scene.
        frame_a: one frame.
        frame_b: the other.
    """
    bare = [
        name
        for name in (frame_a, frame_b)
        if not any(part.collision for part in scene.shapes(name))
    ]
    if not bare:
        return f"'{frame_a}' and '{frame_b}' move as one body, which has no distance to itself"
    return (
        f"{' and '.join(repr(name) for name in bare)} {'has' if len(bare) == 1 else 'have'} no"
        " collision shape"
    )


def finger_distance(scene: SceneGraph, values: dict[str, float], fingers: Sequence[str]) -> float:
    """Return the metres between the fingers, rounded to 0.1 mm, ``inf`` if fewer than two; other joints at 0."""
    q = scene.configuration(values)
    pairs = combinations(fingers, 2)
    nearest = min(
        (pair_distance(scene, q, frame_a=a, frame_b=b) for a, b in pairs), default=math.inf
    )
    return nearest if math.isinf(nearest) else max(0.0, round(nearest, 4))


def cup_frames(scene: SceneGraph, tip: str, tool: str | None) -> tuple[str, ...]:
    """Return the frames with collision shapes between a tip and a tool, else of the tip: what a suction cup holds."""
    frames = (tip,) if tool is None or tool not in scene else (tool, *scene.ancestors(tool))
    return _solid(scene, (frame for frame in rigid_frames(scene, tip) if frame in frames))


@dataclass(frozen=True, slots=True)
class InferredHand(Hand):
    """Two fingers that close on each other."""

    tool: Pose  # relative to the tip
    depth: float  # metres from the tool back to the palm
    evidence: tuple[str, ...]  # what speaks for it, for people


def named_like(name: str, words: Sequence[str]) -> bool:
    """Return whether a name, in any case, contains one of some words in lower case."""
    return any(word in name.lower() for word in words)


def hand_joints(scene: SceneGraph, tip: str, arm: Sequence[str]) -> tuple[str, ...]:
    """Return the actuated joints with limits below a tip that are not the arm's."""
    below = set(scene.subtree(tip)) - {tip}
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    moving = [
        joint
        for joint in scene.joint_names
        if joint not in arm and scene.joint_frame(joint) in below
    ]
    return tuple(
        joint for joint in moving if -np.inf < limits[joint][0] < limits[joint][1] < np.inf
    )


def infer_hand(scene: SceneGraph, tip: str, arm: Sequence[str]) -> InferredHand | None:
    """Return the hand below a tip; ``None`` if no two shapes close on each other, or there are too many joints."""
    joints = hand_joints(scene, tip, arm)
    if not 0 < len(joints) <= MOST_JOINTS:
        return None
    rigid = rigid_frames(scene, tip)
    moving = [
        child
        for frame in rigid
        for child in scene.children(frame)
        if scene.joint(child).type != "fixed"
    ]
    branches = list(filter(None, (_solid(scene, scene.subtree(frame)) for frame in moving)))
    pairs = [
        pair
        for first, second in combinations(branches, 2)
        for pair in itertools.product(first, second)
    ]
    best = _widest(scene, joints, pairs)
    if best is None:
        return None
    pair, opened, closed, widths = best
    tool, depth = _tool(scene, tip, pair, opened, closed, _solid(scene, rigid))
    contact = dict.fromkeys(other for finger in pair for other in _finger_of(scene, finger))
    words = [joint for joint in joints if named_like(joint, FINGER_WORDS)]
    evidence = [
        f"'{pair[0]}' closes on '{pair[1]}': {1000 * widths[0]:.0f} mm open, {1000 * widths[1]:.0f}"
        " mm closed"
    ]
    evidence += [f"called so: {', '.join(words)}"] if words else []
    return InferredHand(
        joints, opened, closed, *widths, tuple(contact), tool, depth, tuple(evidence)
    )


def _solid(scene: SceneGraph, frames: Iterable[str]) -> tuple[str, ...]:
    return tuple(frame for frame in frames if any(part.collision for part in scene.shapes(frame)))


def _finger_of(scene: SceneGraph, finger: str) -> tuple[str, ...]:
    """Return the frames with shapes that move as one with a finger."""
    return _solid(scene, rigid_frames(scene, _top(scene, finger)))


def _widest(
    scene: SceneGraph, joints: Sequence[str], pairs: Sequence[Pair]
) -> tuple[Pair, dict[str, float], dict[str, float], tuple[float, float]] | None:
    """Return the pair that opens widest and closes, with the values and distances at which it is open and closed."""
    lower, upper = np.asarray(scene.joint_limits)[
        [scene.joint_names.index(joint) for joint in joints]
    ].T
    best, most = None, LEAST_STROKE
    for ways in itertools.product((False, True), repeat=len(joints) - 1):
        sweep = []
        for share in np.linspace(0.0, 1.0, _CLOSING_STEPS):
            shares = np.array([share, *(1.0 - share if turned else share for turned in ways)])
            sweep.append(
                dict(zip(joints, (lower + shares * (upper - lower)).tolist(), strict=True))
            )
        for pair in pairs:
            distances = _distances(scene, pair, sweep)
            if not np.isfinite(distances).all():
                continue
            wide, narrow = int(np.argmax(distances)), int(np.argmin(np.maximum(distances, 0.0)))
            widths = float(distances[wide]), max(0.0, float(distances[narrow]))
            if widths[1] <= _CLOSED and widths[0] - widths[1] > most + 1e-6:
                rounded = round(widths[0], 4), round(widths[1], 4)
                best, most = (pair, sweep[wide], sweep[narrow], rounded), widths[0] - widths[1]
    return best


def _distances(scene: SceneGraph, pair: Pair, sweep: Sequence[Mapping[str, float]]) -> Array:
    """Return the metres between two frames at each of some values of joints."""
    free = scene.forbid_collision(*pair)
    every = CollisionWorld(free, level="exact").pairs
    others = {(i, j): -math.inf for i, j, _ in every if {i, j} != set(pair)}
    if len(others) == len(every):
        return np.full(len(sweep), math.inf)  # both move as one
    world = CollisionWorld(free, pair_margins=others, level="exact")
    return np.array([world.distance(free.configuration(values)) for values in sweep])


def shape_points(scene: SceneGraph, frames: Sequence[str], tip: str, q: Array) -> Array:
    """Return corners (n, 3) of the collision shapes, at least one, of some frames, in the axes of the tip."""
    found = []
    for frame in frames:
        pose = scene.pose(frame, relative_to=tip, q=q)
        for part in scene.shapes(frame):
            if part.collision:
                mesh = part.shape.kind == "mesh"
                bounds = zip(*part.shape.bounds, strict=True)
                corners = np.asarray(
                    part.shape.vertices if mesh else list(itertools.product(*bounds))
                )
                found.append((pose @ part.pose).apply(corners))
    return np.concatenate(found)


def _tool(
    scene: SceneGraph,
    tip: str,
    pair: Pair,
    opened: Mapping[str, float],
    closed: Mapping[str, float],
    palm: Sequence[str],
) -> tuple[Pose, float]:
    """Return the tool relative to the tip, and how far it is from there back to the palm."""
    q_open, q_closed = scene.configuration(opened), scene.configuration(closed)
    fingers = [_finger_of(scene, finger) for finger in pair]
    tops = [_top(scene, finger[0]) for finger in fingers]
    hinges = np.array(
        [np.asarray(scene.pose(top, relative_to=tip, q=q_closed).translation) for top in tops]
    )
    moves = (
        _end_motion(scene, tip, *end, q_open, q_closed)
        for end in zip(fingers, hinges, strict=False)
    )
    y = snapped(np.subtract(*moves))
    middle = np.mean(
        [shape_points(scene, finger, tip, q_closed).mean(axis=0) for finger in fingers], axis=0
    )
    slides = scene.joint(tops[0]).type == "prismatic"
    reach = middle - (np.zeros(3) if slides else hinges.mean(axis=0))
    reach -= dot(reach, y) * y
    if norm(reach) < 0.005:
        reach = middle - np.asarray(
            scene.pose(str(scene.parent(tip)), relative_to=tip, q=q_closed).translation
        )
        reach -= dot(reach, y) * y
    z = snapped(reach if norm(reach) > 1e-6 else np.cross(y, (0.3, 0.5, 0.8)))
    z = _unit(z - dot(z, y) * y)
    x = np.cross(y, z)
    ends = [shape_points(scene, finger, tip, q_closed) for finger in fingers]
    height = min(float(product(points, z).max()) for points in ends) - _FINGERTIP
    near = [points[product(points, z) > height - 2 * _FINGERTIP] for points in ends]
    inner = (
        (float(product(near[0], y).max()), float(product(near[1], y).min()))
        if len(near[1])
        else (0.0, 0.0)
    )
    across = float(np.mean([product(points, x).mean() for points in near if len(points)]))
    origin = height * z + 0.5 * sum(inner) * y + across * x
    points = shape_points(scene, palm, tip, q_closed) if palm else np.zeros((0, 3))
    back = product(points[np.abs(product(points, x) - across) < 0.05], z)
    depth = min(max(height - float(back.max()), 0.005), 0.1) if len(back) else 0.03
    matrix = np.vstack([np.column_stack([x, y, z, np.round(origin, 4)]), (0.0, 0.0, 0.0, 1.0)])
    return Pose.from_matrix(matrix), round(depth, 4)


def _top(scene: SceneGraph, frame: str) -> str:
    """Return the frame of the joint that moves a finger last."""
    while scene.joint(frame).type == "fixed":
        frame = str(scene.parent(frame))
    return frame


def _end_motion(
    scene: SceneGraph, tip: str, finger: Sequence[str], hinge: Array, q_open: Array, q_closed: Array
) -> Array:
    """Return how the end of a finger moves when it closes."""
    opened, closed = (shape_points(scene, finger, tip, q) for q in (q_open, q_closed))
    away = norms(closed - hinge)
    far = away >= 0.8 * away.max()
    move: Array = closed[far].mean(axis=0) - opened[far].mean(axis=0)
    return move


def _unit(vector: Array) -> Array:
    return vector / norm(vector)


def snapped(vector: Array) -> Array:
    """Return a unit direction (3,) of a vector that is not zero, along an axis where it is within 15 degrees of one."""
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
    """Return the robot with a hand, one frame below its root, at the tip of an arm; ``hand_`` is put before names."""
    bases = hand.children(hand.root_names[0])
    if len(bases) != 1:
        raise RobotError.at("hand", f"expected one frame below its root, received {len(bases)}")
    hand = hand.extract(bases[0])
    prefix = (
        "hand_"
        if {*hand.frame_names, *hand.joint_names} & {*scene.frame_names, *scene.joint_names}
        else ""
    )
    end, q = _end(scene, tip, joints), scene.configuration({})
    for frame in rigid_frames(scene, tip):
        at = scene.pose(frame, relative_to=tip, q=q)
        if named_like(frame, TOOL_NAMES) and dot(at.rotation[:, 2], end.rotation[:, 2]) > 0.9:
            return scene.mount(hand, frame, prefix=prefix)
    return scene.mount(hand, tip, prefix=prefix, pose=end)


def _end(scene: SceneGraph, tip: str, joints: Sequence[str]) -> Pose:
    """Return where the arm ends, in the axes of the tip: z away from it, before the shapes of its last link."""
    q = scene.configuration({})
    last, before = (
        scene.pose(scene.joint_frame(joint), relative_to=tip, q=q)
        for joint in (joints[-1], *joints[-2:][:1])
    )
    axis = product(last.rotation, scene.joint(scene.joint_frame(joints[-1])).axis)
    frames = _solid(scene, rigid_frames(scene, tip))
    points: Array = shape_points(scene, frames, tip, q) if frames else np.zeros((1, 3))
    way = points.mean(axis=0) - before.translation
    along = dot(way, axis)
    z = (
        snapped(axis if along > 0.0 else -axis)
        if 2.0 * abs(along) >= norms(way[None])[0]
        else snapped(way)
    )
    heights = product(points - last.translation, z)
    near = norms(points - last.translation - heights[:, None] * z) < _NEAR_AXIS
    end = max(0.0, float(heights[near].max() if near.any() else heights.max()))
    y = snapped(np.cross(z, (1.0, 0.0, 0.0) if abs(z[0]) < 0.7 else (0.0, 0.0, 1.0)))
    origin = np.round(last.translation + end * z, 4)
    matrix = np.vstack([np.column_stack([np.cross(y, z), y, z, origin]), (0.0, 0.0, 0.0, 1.0)])
    return Pose.from_matrix(matrix)
