"""What a hand is, out of its joints and shapes: which fingers close on what, how far, and where the tool is.

No file says which joints of a robot are its fingers. Joints below the end of an arm are swept together between their
limits, each either way; of all pairs of shapes on different branches, which move against each other, the
pair that opens widest and closes is the two fingers. Joints that mimic follow, so linkages are closed as they close.
The tool is then between the fingertips: y along the way that a fingertip moves when it closes, z from the finger's
joints towards its tip.

Invariants: an :class:`InferredHand` opens by at least a centimetre; everything is a function of scene and tip.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import cos, dot, norm, norms, product
from tmkit.graph import SceneGraph
from tmkit.robots.chains import rigid_frames
from tmkit.robots.fingers import Hand
from tmkit.spatial import Pose

FINGER_WORDS = ("gripper", "finger", "jaw", "claw", "clamp", "knuckle", "pincher")
SUCTION_WORDS = ("suction", "vacuum", "cup", "sucker", "epick")

MOST_JOINTS = 4
"""Joints of its own that a hand may have to be swept: more are a hand of many fingers."""

LEAST_STROKE = 0.01  # metres between open and closed
_CLOSED = 0.02  # metres between fingers that count as closed
_STEPS = 9
_FINGERTIP = 0.01  # metres from the end of the fingers back to the tool

Pair = tuple[str, str]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InferredHand(Hand):
    """Two fingers that close on each other.

    Attributes:
        tool: pose of the tool relative to the tip.
        depth: metres from the tool back to the palm.
        evidence: what speaks for it, for people.
    """

    tool: Pose
    depth: float
    evidence: tuple[str, ...]


def named_like(name: str, words: Sequence[str]) -> bool:
    """Return whether a name contains one of some words.

    Args:
        name: the name, in any case.
        words: in lower case.
    """
    return any(word in name.lower() for word in words)


def hand_joints(scene: SceneGraph, tip: str, arm: Sequence[str]) -> tuple[str, ...]:
    """Return the actuated joints with limits below a tip that are not the arm's.

    Args:
        scene: the scene.
        tip: frame at the end of the arm.
        arm: joints of the arm.
    """
    below = set(scene.subtree(tip)) - {tip}
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    return tuple(
        joint
        for joint in scene.joint_names
        if joint not in arm
        and scene.joint_frame(joint) in below
        and np.isfinite(limits[joint]).all()
        and limits[joint][0] < limits[joint][1]
    )


def infer_hand(scene: SceneGraph, tip: str, arm: Sequence[str]) -> InferredHand | None:
    """Return the hand below a tip; ``None`` if no two shapes close on each other, or there are too many joints.

    Args:
        scene: the scene.
        tip: frame at the end of the arm.
        arm: joints of the arm.
    """
    joints = hand_joints(scene, tip, arm)
    if not 0 < len(joints) <= MOST_JOINTS:
        return None
    palm = _solid(scene, rigid_frames(scene, tip))
    branches = [_solid(scene, scene.subtree(frame)) for frame in _moving_children(scene, tip)]
    branches = [branch for branch in branches if branch]
    pairs = [pair for first, second in combinations(branches, 2) for pair in itertools.product(first, second)]
    best = _widest(scene, joints, pairs)
    if best is None:
        return None
    pair, opened, closed, widths = best
    tool, depth = _tool(scene, tip, pair, opened, closed, palm)
    contact = dict.fromkeys(other for finger in pair for other in _finger_of(scene, finger))
    words = [joint for joint in joints if named_like(joint, FINGER_WORDS)]
    evidence = [f"'{pair[0]}' closes on '{pair[1]}': {1000 * widths[0]:.0f} mm open, {1000 * widths[1]:.0f} mm closed"]
    evidence += [f"called so: {', '.join(words)}"] if words else []
    return InferredHand(joints, opened, closed, *widths, tuple(contact), tool, depth, tuple(evidence))


def _solid(scene: SceneGraph, frames: Iterable[str]) -> tuple[str, ...]:
    return tuple(frame for frame in frames if any(part.collision for part in scene.shapes(frame)))


def _moving_children(scene: SceneGraph, tip: str) -> list[str]:
    """Return the frames that joints move directly against the palm."""
    rigid = rigid_frames(scene, tip)
    return [child for frame in rigid for child in scene.children(frame) if scene.joint(child).type != "fixed"]


def _finger_of(scene: SceneGraph, finger: str) -> tuple[str, ...]:
    """Return the frames with shapes that move as one with a finger."""
    return _solid(scene, rigid_frames(scene, _top(scene, finger)))


def _widest(
    scene: SceneGraph, joints: Sequence[str], pairs: Sequence[Pair]
) -> tuple[Pair, dict[str, float], dict[str, float], tuple[float, float]] | None:
    """Return the pair that opens widest and closes, with the values and distances at which it is open and closed."""
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    best, most = None, LEAST_STROKE
    for ways in itertools.product((False, True), repeat=len(joints) - 1):
        sweep = []
        for share in np.linspace(0.0, 1.0, _STEPS):
            shares = [share, *(1.0 - share if turned else share for turned in ways)]
            ends = [limits[joint] for joint in joints]
            sweep.append(
                {
                    joint: float(lower + part * (upper - lower))
                    for joint, (lower, upper), part in zip(joints, ends, shares, strict=True)
                }
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


def _points(scene: SceneGraph, frames: Sequence[str], tip: str, q: Array) -> Array:
    """Return corners (n, 3) of collision shapes, in the axes of the tip."""
    found = []
    for frame in frames:
        pose = scene.pose(frame, relative_to=tip, q=q)
        for part in scene.shapes(frame):
            if part.collision:
                mesh = part.shape.kind == "mesh"
                bounds = zip(*part.shape.bounds, strict=True)
                corners = np.asarray(part.shape.vertices if mesh else list(itertools.product(*bounds)))
                found.append((pose @ part.pose).apply(corners))
    return np.concatenate(found)


def _tool(
    scene: SceneGraph, tip: str, pair: Pair, opened: Mapping[str, float], closed: Mapping[str, float],
    palm: Sequence[str],
) -> tuple[Pose, float]:  # fmt: skip
    """Return the tool relative to the tip, and how far it is from there back to the palm."""
    q_open, q_closed = scene.configuration(opened), scene.configuration(closed)
    fingers = [_finger_of(scene, finger) for finger in pair]
    tops = [_top(scene, finger[0]) for finger in fingers]
    hinges = np.array([np.asarray(scene.pose(top, relative_to=tip, q=q_closed).translation) for top in tops])
    moves = [
        _end_motion(scene, tip, finger, hinge, q_open, q_closed) for finger, hinge in zip(fingers, hinges, strict=False)
    ]
    y = _snapped(moves[0] - moves[1])
    middle = np.mean([_points(scene, finger, tip, q_closed).mean(axis=0) for finger in fingers], axis=0)
    slides = scene.joint(tops[0]).type == "prismatic"
    reach = middle - (np.zeros(3) if slides else hinges.mean(axis=0))
    reach -= dot(reach, y) * y
    if norm(reach) < 0.005:
        reach = middle - np.asarray(scene.pose(str(scene.parent(tip)), relative_to=tip, q=q_closed).translation)
        reach -= dot(reach, y) * y
    z = _snapped(reach if norm(reach) > 1e-6 else np.cross(y, (0.3, 0.5, 0.8)))
    z = _unit(z - dot(z, y) * y)
    x = np.cross(y, z)
    ends = [_points(scene, finger, tip, q_closed) for finger in fingers]
    height = min(float(product(points, z).max()) for points in ends) - _FINGERTIP
    near = [points[product(points, z) > height - 2 * _FINGERTIP] for points in ends]
    inner = (float(product(near[0], y).max()), float(product(near[1], y).min())) if len(near[1]) else (0.0, 0.0)
    across = float(np.mean([product(points, x).mean() for points in near if len(points)]))
    origin = height * z + 0.5 * sum(inner) * y + across * x
    backs = [
        product(points[np.abs(product(points, x) - across) < 0.05], z)
        for points in ([_points(scene, palm, tip, q_closed)] if palm else [])
    ]
    below = [float(values.max()) for values in backs if len(values)]
    depth = min(max(height - below[0], 0.005), 0.1) if below else 0.03
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
    opened, closed = (_points(scene, finger, tip, q) for q in (q_open, q_closed))
    away = norms(closed - hinge)
    far = away >= 0.8 * away.max()
    move: Array = closed[far].mean(axis=0) - opened[far].mean(axis=0)
    return move


def _unit(vector: Array) -> Array:
    return vector / norm(vector)


def _snapped(vector: Array) -> Array:
    """Return a direction, along an axis where it is within 15 degrees of one."""
    unit = _unit(vector)
    axis = int(np.argmax(np.abs(unit)))
    if abs(unit[axis]) < cos(math.radians(15.0)):
        return unit
    snapped = np.zeros(3)
    snapped[axis] = math.copysign(1.0, unit[axis])
    return snapped
