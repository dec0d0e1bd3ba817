"""A description of an arm where there is none yet: inferred from the joints, to be corrected by hand.

The chain is the longest, or the one between two given frames. Joints below its tip are the hand, if their limits open
and close fingers between which there is a distance; otherwise the arm gets a suction cup at its tip. The middle of the
limits is ready, or, where that collides, the free one of some random configurations that is nearest to it.

The names are right; what no file says is guessed: ready, the tool, and the force of the hand. So the description is a
start, and :func:`~tmkit.robots.write_manipulator` says in the file what to look at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import norms
from tmkit.formats.urdf.self_collisions import random_configurations
from tmkit.graph import SceneGraph
from tmkit.robots.chains import JointChain, chain_between, rigid_frames
from tmkit.robots.fingers import Hand, cup_frames, finger_distance, finger_frames
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.srdf_arms import TOOL_NAMES

_TRIES = 500
_DIGITS = 6


def guess_manipulator(
    scene: SceneGraph, *, base: str | None = None, tip: str | None = None, name: str = "robot", seed: int = 0
) -> Manipulator:
    """Guess the arm of a robot.

    Args:
        scene: the robot, best without anything else that moves.
        base: the frame that the arm stands on; by default the one that carries the first joint.
        tip: the frame of its hand; by default the end of the longest chain, without its fingers.
        name: of the description.
        seed: of the random configurations, which matter only when the middle of the limits collides.

    Raises:
        UnknownNameError: no such frame.
        RobotError: no joint moves between the frames.
        ShapeError: a collision mesh is flat and has no hull.
    """
    chain = chain_between(scene, base, tip)
    tool = _tool(scene, chain.tip)
    hand = _hand(scene, chain)
    ready = ready_values(scene, chain, hand.opened if hand else {}, seed)
    cup = {"gripper_kind": "suction", "contact_links": cup_frames(scene, chain.tip, tool)}
    own: dict[str, Any] = hand.attributes() if hand else cup
    return Manipulator(name, chain.base, chain.tip, tool, chain.joints, ready, **own)


def _tool(scene: SceneGraph, tip: str) -> str:
    """Return the first frame at the tip that is called a tool, else the tip."""
    named = [frame for frame in rigid_frames(scene, tip) if any(word in frame.lower() for word in TOOL_NAMES)]
    return named[0] if named else tip


def _hand(scene: SceneGraph, chain: JointChain) -> Hand | None:
    """Return the hand below the tip of a chain, ``None`` when there is none."""
    below = set(scene.subtree(chain.tip)) - {chain.tip}
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    joints = [name for name in scene.joint_names if scene.joint_frame(name) in below and name not in chain.joints]
    if not joints or not all(np.isfinite(limits[joint]).all() for joint in joints):
        return None
    fingers = finger_frames(scene, joints)
    ends = [{joint: float(limits[joint][end]) for joint in joints} for end in (1, 0)]
    widths = [finger_distance(scene, values, fingers) for values in ends]
    if widths[0] < widths[1]:
        ends, widths = ends[::-1], widths[::-1]
    if not math.isfinite(widths[0]) or widths[0] == widths[1]:
        return None
    return Hand(tuple(joints), ends[0], ends[1], widths[0], widths[1], fingers)


def ready_values(scene: SceneGraph, chain: JointChain, opened: Mapping[str, float], seed: int) -> dict[str, float]:
    """Return a collision-free configuration near the middle of the joint limits, by joint.

    Args:
        scene: the scene.
        chain: the joints of the arm.
        opened: joint values of the open hand.
        seed: seed of the sampled configurations.
    """
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    middle = np.where(np.isfinite(limits).all(axis=1, keepdims=True), limits, 0.0).mean(axis=1)
    middle = np.clip(middle, limits[:, 0], limits[:, 1])
    moving = [scene.joint_names.index(joint) for joint in chain.joints]
    start = scene.configuration(opened)
    others = np.tile(start, (_TRIES, 1))
    drawn = random_configurations(scene, _TRIES, seed=seed)
    nearest = np.argsort(norms((drawn - middle)[:, moving]), kind="stable")
    others[:, moving] = np.vstack([middle, drawn[nearest]])[:_TRIES][:, moving]
    rounded = np.clip(np.round(others, _DIGITS), limits[:, 0], limits[:, 1])
    free = ~CollisionWorld(scene).in_collision_batch(rounded)
    chosen: NDArray[np.float64] = rounded[int(np.argmax(free))]  # the middle itself when none is free
    return {joint: float(chosen[entry]) for joint, entry in zip(chain.joints, moving, strict=True)}
