"""Lower bound of the distance from a pose to the reach of an arm.

The tip of a chain is never farther from its first moving joint than the links together are long,
slides at their longest included; turning joints make it nearer, never farther. A target beyond that
is out of reach for every configuration, whatever the limits of turning joints. This is the proof by
which inverse kinematics answers ``OUT_OF_REACH``; here it gives the number of metres.

How high and low the tool gets is bounded in the same way, but joints that slide, or turn about the
vertical, keep the heights of what comes after them. So for arms on rails the bound is what the
rails are long, and for others nearly the distance above.

Invariants: a lower bound, so a positive excess is a proof; 0 proves nothing. O(frames on the
    chain).
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

_PARALLEL = 1e-9  # of the cosine between directions that count as parallel


@dataclass(frozen=True, eq=False)
class ReachHeights:
    """Between which heights a tool stays, whatever the configuration of its arm.

    Attributes:
        lowest, highest: metres along z of the root frame.
        up: (3,) direction of the root's z axis in the tool frame, where no joint of the arm changes
            it; else None.
    """

    lowest: float
    highest: float
    up: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class WristBound:
    """A ball in which the origin of an arm's last joint, its wrist, stays, whatever the configuration of its arm.

    Attributes:
        center: (3,) metres, in the root frame.
        radius: metres.
        wrist_from_tool: the pose of the tool in the frame that the last joint moves.
    """

    center: NDArray[np.float64]
    radius: float
    wrist_from_tool: Pose

    def excess(self, root_from_tool: Pose) -> float:
        """Return the metres by which the wrist would be outside, where the tool has a pose in the root frame."""
        wrist = (root_from_tool @ self.wrist_from_tool.inverse()).translation
        return max(0.0, norm(wrist - self.center) - self.radius)


def wrist_bound(scene: SceneGraph, manipulator: Manipulator, *, q: ArrayLike) -> WristBound:
    """Return where the wrist of an arm certainly stays.

    Args:
        scene: the scene.
        manipulator: the arm.
        q: (n_joints,) configuration; what it says of joints that are none of the arm's counts.
    """
    tool, moving = manipulator.tool, _moving(scene, manipulator)
    if not moving:
        return WristBound(np.zeros(3), np.inf, Pose())
    center = _edge(scene, moving[0], scene.root(tool), q).translation
    radius = sum(_longest_slide(scene, frame) for frame in moving)
    for last, frame in itertools.pairwise(moving):
        radius += norm(_edge(scene, frame, last, q).translation)
    return WristBound(center, radius, scene.pose(tool, relative_to=moving[-1], q=q))


def reach_excess(
    scene: SceneGraph, manipulator: Manipulator, *, root_from_tool: Pose, q: ArrayLike
) -> float:
    """Return the metres by which a pose of the tool is certainly out of an arm's reach.

    Args:
        scene: the scene.
        manipulator: the arm.
        root_from_tool: the pose that the tool should have, in the root frame.
        q: (n_joints,) configuration; what it says of joints that are none of the arm's counts.

    Returns:
        At least 0. The true distance to what the arm reaches is never smaller.
    """
    bound = wrist_bound(scene, manipulator, q=q)
    length = bound.radius + norm(bound.wrist_from_tool.translation)
    return max(0.0, norm(root_from_tool.translation - bound.center) - length)


def reach_heights(scene: SceneGraph, manipulator: Manipulator, *, q: ArrayLike) -> ReachHeights:
    """Return the heights between which the tool of an arm certainly stays.

    Args:
        scene: the scene.
        manipulator: the arm.
        q: (n_joints,) configuration; what it says of joints that are none of the arm's counts.
    """
    tool, moving = manipulator.tool, _moving(scene, manipulator)
    lowest = highest = 0.0
    up: NDArray[np.float64] | None = np.array([0.0, 0.0, 1.0])
    last = scene.root(tool)
    for frame in [*moving, None]:
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
        along = 1.0 if up is None else abs(dot(up, joint.axis))
        slide = along * _longest_slide(scene, frame)
        if up is not None and joint.type == "prismatic" and joint.mimic is None:
            ends = [dot(up, joint.axis) * end for end in _range(scene, frame)]
            lowest, highest = lowest + min(ends), highest + max(ends)
        else:
            lowest, highest = lowest - slide, highest + slide
        if joint.type != "prismatic" and along < 1.0 - _PARALLEL:
            up = None
        last = frame
    return ReachHeights(lowest, highest, up)


def _moving(scene: SceneGraph, manipulator: Manipulator) -> list[str]:
    """Return the frames on the way from the root to the tool whose edges the arm's joints move."""
    chain = [*reversed(scene.ancestors(manipulator.tool)), manipulator.tool]
    return [frame for frame in chain if leading_joint(scene, frame) in manipulator.joints]


def _edge(scene: SceneGraph, frame: str, last: str, q: ArrayLike) -> Pose:
    """Return the pose of a frame on a joint relative to one before it, at joint value 0."""
    above = scene.parent(frame)
    assert above is not None, "a joint has a parent"
    return scene.pose(above, relative_to=last, q=q) @ scene.local_pose(frame)


def _longest_slide(scene: SceneGraph, frame: str) -> float:
    """Return the metres that a sliding edge is long at most; 0 for one that turns."""
    return max(map(abs, _range(scene, frame))) if scene.joint(frame).type == "prismatic" else 0.0


def _range(scene: SceneGraph, frame: str) -> tuple[float, float]:
    """Return the smallest and largest value of a joint, as its leader allows."""
    joint = scene.joint(frame)
    if joint.mimic is None:
        lower, upper = scene.joint_limits[scene.joint_names.index(joint.name)]
        return float(lower), float(upper)
    ends = _range(scene, scene.joint_frame(joint.mimic.joint))
    # A multiplier of 0 has the offset for any value of the leader, unlimited ones too.
    turned = [
        (
            joint.mimic.multiplier * end + joint.mimic.offset
            if joint.mimic.multiplier
            else joint.mimic.offset
        )
        for end in ends
    ]
    return min(turned), max(turned)
