"""Lower bound of the distance from a pose to the reach of an arm.

The distance of the tool from the first moving joint of a chain is at most the total length of the
links, with prismatic joints at their longest. A target beyond this length is out of reach in every
configuration for any limits of revolute joints. By this proof inverse kinematics returns
``OUT_OF_REACH``; this module computes the distance.

The height of the tool is bounded in the same way. Prismatic joints, and revolute joints with a
vertical axis, do not change the heights of the links after them. The bound of an arm on rails is
therefore the length of the rails, and that of other arms almost the distance above.

Invariants: the result is a lower bound, so a positive excess is a proof. An excess of 0 proves
nothing. O(frames on the chain).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.graph.traversal import leading_joint
from tmkit.robots.manipulator import Manipulator
from tmkit.spatial import Pose

_PARALLEL_TOLERANCE = 1e-9
"""Largest difference from 1 of the cosine between directions that count as parallel."""


@dataclass(frozen=True, eq=False)
class ReachHeights:
    """Bounds of the height of a tool in every configuration of its arm.

    Attributes:
        lowest, highest: bounds along z of the root frame [m].
        up: (3,) direction of the root's z axis in the tool frame if no joint of the arm changes it,
            otherwise None.
    """

    lowest: float
    highest: float
    up: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class WristBound:
    """Ball that contains the wrist of an arm, the origin of its last joint, in every configuration.

    Attributes:
        center: (3,) center in the root frame [m].
        radius: radius [m].
        wrist_from_tool: pose of the tool relative to the frame that the last joint moves.
    """

    center: NDArray[np.float64]
    radius: float
    wrist_from_tool: Pose

    def excess(self, root_from_tool: Pose) -> float:
        """Return the distance of the wrist from the ball for a pose of the tool in the root [m]."""
        wrist = (root_from_tool @ self.wrist_from_tool.inverse()).translation
        return max(0.0, norm(wrist - self.center) - self.radius)


def wrist_bound(scene: SceneGraph, robot: Manipulator, *, q: ArrayLike) -> WristBound:
    """Return a ball that contains the wrist of an arm in every configuration.

    Args:
        scene: the scene.
        robot: the arm.
        q: (n_joints,) configuration, whose values of joints outside the arm are used.
    """
    tool, mobile = robot.tool, _mobile_frames(scene, robot)
    if not mobile:
        return WristBound(np.zeros(3), np.inf, Pose())
    center = _edge(scene, mobile[0], scene.root(tool), q).translation
    radius = sum(_longest_slide(scene, frame) for frame in mobile)
    for last, frame in itertools.pairwise(mobile):
        radius += norm(_edge(scene, frame, last, q).translation)
    return WristBound(center, radius, scene.pose(tool, relative_to=mobile[-1], q=q))


def reach_excess(
    scene: SceneGraph, robot: Manipulator, *, root_from_tool: Pose, q: ArrayLike
) -> float:
    """Return a lower bound of the distance from a tool pose to the reach of an arm.

    Args:
        scene: the scene.
        robot: the arm.
        root_from_tool: target pose of the tool in the root frame.
        q: (n_joints,) configuration, whose values of joints outside the arm are used.

    Returns:
        distance, at least 0 [m]. The true distance is never smaller.
    """
    bound = wrist_bound(scene, robot, q=q)
    length = bound.radius + norm(bound.wrist_from_tool.translation)
    return max(0.0, norm(root_from_tool.translation - bound.center) - length)


def reach_heights(scene: SceneGraph, robot: Manipulator, *, q: ArrayLike) -> ReachHeights:
    """Return bounds of the height of an arm's tool in every configuration.

    Args:
        scene: the scene.
        robot: the arm.
        q: (n_joints,) configuration, whose values of joints outside the arm are used.
    """
    tool, mobile = robot.tool, _mobile_frames(scene, robot)
    lowest = highest = 0.0
    up: NDArray[np.float64] | None = np.array([0.0, 0.0, 1.0])
    last = scene.root(tool)
    for frame in [*mobile, None]:
        step = (
            scene.pose(tool, relative_to=last, q=q)
            if frame is None
            else _edge(scene, frame, last, q)
        )
        if up is None:
            lowest -= norm(step.translation)
            highest += norm(step.translation)
        else:
            lowest, highest = (height + dot(up, step.translation) for height in (lowest, highest))
            up = np.asarray(step.inverse().rotate(up))
        if frame is None:
            break
        joint = scene.joint(frame)
        cosine = 1.0 if up is None else abs(dot(up, joint.axis))
        slide = cosine * _longest_slide(scene, frame)
        if up is not None and joint.type == "prismatic" and joint.mimic is None:
            ends = [dot(up, joint.axis) * end for end in _range(scene, frame)]
            lowest, highest = lowest + min(ends), highest + max(ends)
        else:
            lowest, highest = lowest - slide, highest + slide
        if joint.type != "prismatic" and cosine < 1.0 - _PARALLEL_TOLERANCE:
            up = None
        last = frame
    return ReachHeights(lowest, highest, up)


def _mobile_frames(scene: SceneGraph, robot: Manipulator) -> list[str]:
    """Return the frames from the root to the tool that are children of the arm's joints."""
    chain = [*reversed(scene.ancestors(robot.tool)), robot.tool]
    return [frame for frame in chain if leading_joint(scene, frame) in robot.joints]


def _edge(scene: SceneGraph, frame: str, last: str, q: ArrayLike) -> Pose:
    """Return the pose of the child of a joint relative to an ancestor, at joint value 0."""
    parent = scene.parent(frame)
    assert parent is not None, "a joint has a parent"
    return scene.pose(parent, relative_to=last, q=q) @ scene.local_pose(frame)


def _longest_slide(scene: SceneGraph, frame: str) -> float:
    """Return the largest travel of a prismatic joint from 0 [m]; 0 for other joints."""
    return max(map(abs, _range(scene, frame))) if scene.joint(frame).type == "prismatic" else 0.0


def _range(scene: SceneGraph, frame: str) -> tuple[float, float]:
    """Return the limits of a joint; those of a mimic joint follow from its leader."""
    joint = scene.joint(frame)
    if joint.mimic is None:
        lower, upper = scene.joint_limits[scene.joint_names.index(joint.name)]
        return float(lower), float(upper)
    ends = _range(scene, scene.joint_frame(joint.mimic.joint))
    # With a multiplier of 0 the value is the offset, also if the leader is unlimited.
    multiplier, offset = joint.mimic.multiplier, joint.mimic.offset
    values = [multiplier * end + offset if multiplier else offset for end in ends]
    return min(values), max(values)
