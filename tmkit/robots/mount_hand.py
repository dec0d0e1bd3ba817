"""Mounting a hand at the end of an arm that has none.

By convention the z axis of a hand's base points away from the arm. It comes where the arm ends: on the axis of the last
joint, in front of the collision shapes of the last link, or on a frame with a name like ``tool0`` whose z axis agrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmkit._support.elementary import dot, norms, product
from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.robots.chains import rigid_frames
from tmkit.robots.infer_arm import Array, named_like, shape_points, snapped
from tmkit.robots.srdf_arms import TOOL_NAMES
from tmkit.spatial import Pose

_NEAR_AXIS = 0.05  # metres from the axis within which the shapes of the last link are in the hand's way


def mount_hand(scene: SceneGraph, hand: SceneGraph, *, tip: str, joints: Sequence[str]) -> SceneGraph:
    """Return the robot with a hand at the end of an arm; its names begin with ``hand_`` if they are taken otherwise.

    Args:
        hand: the hand: one frame below its root, which carries all others.
        tip: the frame at the end of the arm.
        joints: joints of the arm, from base to tip.

    Raises:
        RobotError: the scene of the hand has no frame below its root, or several.
    """
    bases = hand.children(hand.root_names[0])
    if len(bases) != 1:
        raise RobotError.at("hand", f"expected one frame below its root, received {len(bases)}")
    hand = hand.extract(bases[0])
    prefix = "hand_" if {*hand.frame_names, *hand.joint_names} & {*scene.frame_names, *scene.joint_names} else ""
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
        scene.pose(scene.joint_frame(joint), relative_to=tip, q=q) for joint in (joints[-1], *joints[-2:][:1])
    )
    axis = product(last.rotation, scene.joint(scene.joint_frame(joints[-1])).axis)
    frames = [frame for frame in rigid_frames(scene, tip) if any(part.collision for part in scene.shapes(frame))]
    points: Array = shape_points(scene, frames, tip, q) if frames else np.zeros((1, 3))
    way = points.mean(axis=0) - before.translation
    along = dot(way, axis)
    z = snapped(axis if along > 0.0 else -axis) if 2.0 * abs(along) >= norms(way[None])[0] else snapped(way)
    heights = product(points - last.translation, z)
    near = norms(points - last.translation - heights[:, None] * z) < _NEAR_AXIS
    end = max(0.0, float(heights[near].max() if near.any() else heights.max()))
    y = snapped(np.cross(z, (1.0, 0.0, 0.0) if abs(z[0]) < 0.7 else (0.0, 0.0, 1.0)))
    origin = np.round(last.translation + end * z, 4)
    matrix = np.vstack([np.column_stack([np.cross(y, z), y, z, origin]), (0.0, 0.0, 0.0, 1.0)])
    return Pose.from_matrix(matrix)
