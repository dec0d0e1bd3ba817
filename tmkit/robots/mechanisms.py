"""Chains of joints that may be arms, and what arms move: objects that can be carried, by their class, and mechanisms.

What is written about a robot often ends at its joints: nothing says which of them make the arm, and
which the hand. A chain is a path from the root along which joints move; the longest is a good
guess.

A mechanism is a joint of a scene that belongs to no arm. A drawer is a frame on a prismatic joint,
a door one on a revolute joint; a *handle* is a frame rigidly joined to it. Their values are entries
of the configuration like those of the arms. The hand closes on the handle and the arm moves so that
the tool keeps its pose relative to the handle while the joint moves: a closed chain, though the
scene is a tree. How well it is closed is measured here.

Invariants: which joint a handle moves is a function of the scene and the arms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.graph.traversal import leading_joint
from tmkit.robots.manipulator import Manipulator
from tmkit.spatial import Pose

ARM_JOINTS = 3
"""Joints that an arm has at least: what branches earlier is a body with several arms."""


@dataclass(frozen=True, slots=True)
class JointChain:
    """Joints that may be an arm: from the frame that carries the first to the frame that the last one moves."""

    base: str
    tip: str
    joints: tuple[str, ...]


def joint_chains(scene: SceneGraph) -> tuple[JointChain, ...]:
    """Return the chains of moving joints that no longer one contains, the longest first."""
    moved = {joint: scene.joint_frame(joint) for joint in scene.joint_names}
    inner = {above for frame in moved.values() for above in scene.ancestors(frame)}
    ends = [last for last in moved.values() if last not in inner]
    found = [
        _chain(scene, _moving(scene, (*reversed(scene.ancestors(last)), last)), last)
        for last in ends
    ]
    return tuple(sorted(found, key=lambda chain: -len(chain.joints)))


def chain_between(scene: SceneGraph, base: str | None, tip: str) -> JointChain:
    """Return the joints that move between a base (None: below the first joint) and a tip; RobotError if none do."""
    above = (*reversed(scene.ancestors(tip)), tip)
    if base is not None and base not in above:
        raise RobotError.at("robot", f"the tip '{tip}' is not below the base '{base}'")
    path = _moving(scene, above[above.index(base) + 1 :] if base is not None else above)
    if not path:
        raise RobotError.at(
            "robot",
            f"no joint moves between '{base if base is not None else above[0]}' and '{tip}'",
        )
    chain = _chain(scene, path, tip)
    return chain if base is None else JointChain(base, tip, chain.joints)


def rigid_frames(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return a frame and those below it that are connected to it by fixed joints, parents first."""
    found = [frame]
    for current in found:
        found += [child for child in scene.children(current) if scene.joint(child).type == "fixed"]
    return tuple(found)


def _moving(scene: SceneGraph, frames: Sequence[str]) -> list[str]:
    names = set(scene.joint_names)
    return [
        frame
        for frame in frames
        if scene.joint(frame).name in names and scene.joint(frame).is_actuated
    ]


def _chain(scene: SceneGraph, path: Sequence[str], tip: str) -> JointChain:
    return JointChain(
        str(scene.parent(path[0])), tip, tuple(scene.joint(frame).name for frame in path)
    )


CLOSURE_DISTANCE = 1e-4
"""Metres that the tool may be from its place at the handle while it moves it."""

CLOSURE_ANGLE = 1e-3
"""Radians that the tool may turn at the handle while it moves it."""

MOVABLE_CLASSES = ("movable", "moveable")
"""Classes that mark a frame as an object that may be carried."""


def movable_frames(scene: SceneGraph) -> tuple[str, ...]:
    """Return the frames of an object class (``movable`` or ``moveable``) in insertion order."""
    found = {frame for name in MOVABLE_CLASSES for frame in scene.frames_of_class(name)}
    return tuple(sorted(found, key=scene.frame_id))  # ids grow with insertion


def is_movable(scene: SceneGraph, frame: str) -> bool:
    """Return whether a frame has an object class (``movable`` or ``moveable``).

    Args:
        scene: the scene.
        frame: name of the frame.
    """
    return not set(MOVABLE_CLASSES).isdisjoint(scene.classes(frame))


def mechanism_joint(scene: SceneGraph, handle: str, *, arms: Sequence[Manipulator]) -> str | None:
    """Return the joint that a handle moves, None where that is an arm's own or an object may be carried."""
    movable, own = (
        {*movable_frames(scene)},
        {joint for arm in arms for joint in (*arm.joints, *arm.gripper_joints)},
    )
    frame: str | None = handle
    while frame is not None and frame not in movable:
        joint = scene.joint(frame)
        if joint.type != "fixed":
            return joint.name if joint.name in scene.joint_names and joint.name not in own else None
        frame = scene.parent(frame)
    return None


def closure_error(
    scene: SceneGraph, path: NDArray[np.float64], *, tool: str, handle: str, steps: int
) -> tuple[float, float]:
    """Return metres and radians that the tool strays from the handle along a path (k, n_joints), cut in ``steps``."""
    handle_from_tool: Pose = scene.pose(tool, relative_to=handle, q=path[0])
    metres = radians = 0.0
    for start, end in pairwise(path):
        for share in np.arange(1, steps + 1) / steps:
            at = scene.pose(tool, relative_to=handle, q=start + share * (end - start))
            strayed = handle_from_tool.distance(at)
            metres, radians = max(metres, float(strayed[0])), max(radians, float(strayed[1]))
    return metres, radians


def moved_frames(scene: SceneGraph, *manipulators: Manipulator) -> frozenset[str]:
    """Return the frames that the joints of arms and their grippers move."""
    own = {joint for arm in manipulators for joint in (*arm.joints, *arm.gripper_joints)}
    return frozenset(
        below for mover in frames_on_joints(scene, own) for below in scene.subtree(mover)
    )


def frames_on_joints(scene: SceneGraph, joints: Collection[str]) -> list[str]:
    """Return the frames whose edges are some joints, or joints that mimic them, in the scene's order."""
    return [
        frame
        for frame in scene.frame_names
        if (joint := scene.joint(frame)).is_actuated
        and (joint.name in joints or leading_joint(scene, frame) in joints)
    ]


def held_by(scene: SceneGraph, manipulator: Manipulator) -> str | None:
    """Return the object that is a child of an arm's tip, or None."""
    return next(
        (object for object in movable_frames(scene) if scene.parent(object) == manipulator.tip),
        None,
    )
