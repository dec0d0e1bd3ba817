"""How far a pose is out of reach: the distance that no configuration of an arm can bridge.

The tip of a chain is never farther from its first moving joint than the links together are long, slides at their
longest included; turning joints make it nearer, never farther. A target beyond that is out of reach for every
configuration, whatever the limits of turning joints. This is the proof by which inverse kinematics answers
``OUT_OF_REACH``; here it gives the number of metres.

Invariants: a lower bound, so a positive excess is a proof; 0 proves nothing. O(frames on the chain).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from tmkit.graph import SceneGraph
from tmkit.motion.manipulator import Manipulator
from tmkit.spatial import Pose

__all__ = ["reach_excess"]


def reach_excess(scene: SceneGraph, manipulator: Manipulator, *, root_from_tool: Pose, q: ArrayLike) -> float:
    """Return the metres by which a pose of the tool is certainly out of an arm's reach.

    Args:
        scene: the scene.
        manipulator: the arm.
        root_from_tool: the pose that the tool should have, in the root frame.
        q: (n_joints,) configuration; what it says of joints that are none of the arm's counts.

    Returns:
        At least 0. The true distance to what the arm reaches is never smaller.
    """
    tool, root = manipulator.tool, scene.root(manipulator.tool)
    own = set(manipulator.joints)
    chain = [*reversed(scene.ancestors(tool)), tool]
    moving = [frame for frame in chain if _leader(scene, frame) in own]
    if not moving:
        return 0.0
    before = scene.parent(moving[0])
    assert before is not None, "a joint has a parent"
    anchor = (scene.pose(before, root, q=q) @ scene.local_pose(moving[0])).translation
    length = sum(_longest_slide(scene, frame) for frame in moving)
    for last, frame in itertools.pairwise(moving):
        above = scene.parent(frame)
        assert above is not None, "a joint has a parent"
        length += float(np.linalg.norm((scene.pose(above, last, q=q) @ scene.local_pose(frame)).translation))
    length += float(np.linalg.norm(scene.pose(tool, moving[-1], q=q).translation))
    return max(0.0, float(np.linalg.norm(root_from_tool.translation - anchor)) - length)


def _leader(scene: SceneGraph, frame: str) -> str | None:
    """Return the name of the joint whose value moves a frame's edge."""
    joint = scene.joint(frame)
    if joint.mimic is not None:
        return joint.mimic.joint
    return joint.name if joint.is_actuated else None


def _longest_slide(scene: SceneGraph, frame: str) -> float:
    """Return the metres that a sliding edge is long at most; 0 for one that turns."""
    joint = scene.joint(frame)
    if joint.type != "prismatic":
        return 0.0
    if joint.mimic is None:
        return max(abs(joint.lower), abs(joint.upper))
    leader = scene.joint(scene.joint_frame(joint.mimic.joint))
    ends = (joint.mimic.multiplier * end + joint.mimic.offset for end in (leader.lower, leader.upper))
    return max(abs(end) for end in ends)
