"""Chains of joints, movable objects and mechanisms of a scene.

A robot file often does not define which joints belong to the arm and which to the hand. A chain is
a path from the root along actuated joints. The longest chain is a good candidate for the arm.

A mechanism is a joint of a scene that belongs to no arm. A drawer is a frame on a prismatic joint,
a door a frame on a revolute joint. A *handle* is a frame rigidly fixed to it. Values of mechanism
joints are part of the configuration, as those of the arms. While the hand holds the handle, the
tool keeps its pose relative to the handle: a closed chain, although the scene is a tree.
:func:`closure_error` measures the error of this closure.

Invariants: the joint of a handle depends on the scene and the arms alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.graph.traversal import leading_joint
from tmkit.robots.manipulator import Manipulator
from tmkit.spatial import Pose

ARM_JOINTS = 3
"""Smallest number of joints of an arm. A chain that branches earlier belongs to several arms."""


@dataclass(frozen=True, slots=True)
class JointChain:
    """Chain of joints that may be an arm.

    Attributes:
        base: parent of the first joint's frame.
        tip: frame that the last joint moves.
        joints: names of the joints from base to tip.
    """

    base: str
    tip: str
    joints: tuple[str, ...]


def joint_chains(scene: SceneGraph) -> tuple[JointChain, ...]:
    """Return the maximal chains of actuated joints, the longest first."""
    joint_frames = [scene.joint_frame(joint) for joint in scene.joint_names]
    inner = {ancestor for frame in joint_frames for ancestor in scene.ancestors(frame)}
    chains = []
    for end in joint_frames:
        if end not in inner:
            path = (*reversed(scene.ancestors(end)), end)
            chains.append(_chain(scene, _actuated_frames(scene, path), end))
    return tuple(sorted(chains, key=lambda chain: -len(chain.joints)))


def chain_between(scene: SceneGraph, base: str | None, tip: str) -> JointChain:
    """Return the chain of actuated joints between a base and a tip.

    Args:
        scene: scene with the robot.
        base: frame at the base. None for the parent of the first joint's frame.
        tip: frame at the tip.

    Raises:
        RobotError: if the tip is not below the base, or no joint moves between them.
    """
    ancestors = (*reversed(scene.ancestors(tip)), tip)
    if base is not None and base not in ancestors:
        raise RobotError.at("robot", f"the tip '{tip}' is not below the base '{base}'")
    start = 0 if base is None else ancestors.index(base) + 1
    path = _actuated_frames(scene, ancestors[start:])
    if not path:
        first = ancestors[0] if base is None else base
        raise RobotError.at("robot", f"no joint moves between '{first}' and '{tip}'")
    chain = _chain(scene, path, tip)
    return chain if base is None else JointChain(base, tip, chain.joints)


def rigid_frames(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return a frame and its descendants connected by fixed joints, parents first."""
    frames = [frame]
    for parent in frames:
        frames += [child for child in scene.children(parent) if scene.joint(child).type == "fixed"]
    return tuple(frames)


def _actuated_frames(scene: SceneGraph, frames: Sequence[str]) -> list[str]:
    """Return the frames whose joint is an actuated joint of the configuration."""
    names = set(scene.joint_names)
    return [
        frame
        for frame in frames
        if scene.joint(frame).name in names and scene.joint(frame).is_actuated
    ]


def _chain(scene: SceneGraph, path: Sequence[str], tip: str) -> JointChain:
    """Return the chain of the joints of some frames."""
    joints = tuple(scene.joint(frame).name for frame in path)
    return JointChain(str(scene.parent(path[0])), tip, joints)


CLOSURE_DISTANCE = 1e-4
"""Largest position error of the tool at the handle while the mechanism moves [m]."""

CLOSURE_ANGLE = 1e-3
"""Largest rotation error of the tool at the handle while the mechanism moves [rad]."""

MOVABLE_CLASSES = ("movable", "moveable")
"""Classes that mark a frame as an object that may be carried."""


def movable_frames(scene: SceneGraph) -> tuple[str, ...]:
    """Return the frames of an object class (``movable`` or ``moveable``) in insertion order."""
    frames = {frame for name in MOVABLE_CLASSES for frame in scene.frames_of_class(name)}
    # Ids increase with insertion.
    return tuple(sorted(frames, key=scene.frame_id))


def is_movable(scene: SceneGraph, frame: str) -> bool:
    """Return whether a frame has an object class (``movable`` or ``moveable``).

    Args:
        scene: scene with the frame.
        frame: name of the frame.
    """
    return not set(MOVABLE_CLASSES).isdisjoint(scene.classes(frame))


def remove_movable(scene: SceneGraph, *, keep: Collection[str] = ()) -> SceneGraph:
    """Return a scene without its movable objects and the frames that they carry.

    Args:
        scene: the scene.
        keep: movable frames that stay. Those on a removed object are removed with it.
    """
    for frame in movable_frames(scene):
        if frame not in keep and frame in scene:
            scene = scene.remove_frame(frame, subtree=True)
    return scene


def mechanism_joint(scene: SceneGraph, handle: str, *, arms: Sequence[Manipulator]) -> str | None:
    """Return the joint that a handle moves.

    Args:
        scene: scene with the mechanism.
        handle: frame of the handle.
        arms: arms of the scene.

    Returns:
        Name of the joint. None for the joint of an arm, or if the handle belongs to a movable
        object.
    """
    movable = {*movable_frames(scene)}
    arm_joints = {joint for arm in arms for joint in (*arm.joints, *arm.gripper_joints)}
    frame: str | None = handle
    while frame is not None and frame not in movable:
        joint = scene.joint(frame)
        if joint.type != "fixed":
            is_mechanism = joint.name in scene.joint_names and joint.name not in arm_joints
            return joint.name if is_mechanism else None
        frame = scene.parent(frame)
    return None


def closure_error(
    scene: SceneGraph, path: NDArray[np.float64], *, tool: str, handle: str, steps: int
) -> tuple[float, float]:
    """Return the largest error of the tool's pose at the handle along a path.

    Args:
        scene: scene with the mechanism.
        path: (k, n_joints) configurations.
        tool: frame of the tool.
        handle: frame of the handle.
        steps: number of steps between two configurations.

    Returns:
        Position error [m] and rotation error [rad].
    """
    handle_from_tool: Pose = scene.pose(tool, relative_to=handle, q=path[0])
    max_distance = max_angle = 0.0
    for start, end in pairwise(path):
        for fraction in np.arange(1, steps + 1) / steps:
            pose = scene.pose(tool, relative_to=handle, q=start + fraction * (end - start))
            distance, angle = handle_from_tool.distance(pose)
            max_distance = max(max_distance, float(distance))
            max_angle = max(max_angle, float(angle))
    return max_distance, max_angle


def moved_frames(scene: SceneGraph, *robots: Manipulator) -> frozenset[str]:
    """Return the frames that the joints of arms and their grippers move."""
    joints = {joint for arm in robots for joint in (*arm.joints, *arm.gripper_joints)}
    roots = frames_on_joints(scene, joints)
    return frozenset(frame for root in roots for frame in scene.subtree(root))


def frames_on_joints(scene: SceneGraph, joints: Collection[str]) -> list[str]:
    """Return the frames of some joints and of joints that mimic them, in the scene's order."""
    return [
        frame
        for frame in scene.frame_names
        if (joint := scene.joint(frame)).is_actuated
        and (joint.name in joints or leading_joint(scene, frame) in joints)
    ]


def held_object(scene: SceneGraph, robot: Manipulator) -> str | None:
    """Return the object that is a child of an arm's tip, or None."""
    return next(
        (object for object in movable_frames(scene) if scene.parent(object) == robot.tip), None
    )


def turning_joints(scene: SceneGraph) -> frozenset[str]:
    """Return the continuous joints, whose values a whole turn apart are the same position."""
    return frozenset(
        name
        for name in scene.joint_names
        if scene.joint(scene.joint_frame(name)).type == "continuous"
    )


def without_turns(
    scene: SceneGraph, values: ArrayLike, reference: ArrayLike
) -> NDArray[np.float64]:
    """Return joint values whose continuous joints are within half a turn of a reference.

    Args:
        scene: scene of the joints.
        values: (n_joints,) values [rad or m].
        reference: (n_joints,) values [rad or m].
    """
    shifted = np.array(values, dtype=float)
    expected = np.asarray(reference, dtype=float)
    turning = turning_joints(scene)
    columns = [index for index, name in enumerate(scene.joint_names) if name in turning]
    turns = np.round((shifted[columns] - expected[columns]) / (2.0 * np.pi))
    shifted[columns] -= 2.0 * np.pi * turns
    return shifted
