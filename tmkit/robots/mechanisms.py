"""What arms move: objects that can be carried, by their class, and mechanisms, by a handle.

A mechanism is a joint of a scene that belongs to no arm. A drawer is a frame on a prismatic joint, a door one on a
revolute joint; a *handle* is a frame rigidly joined to it. Their values are entries of the configuration like those of
the arms. The hand closes on the handle and the arm moves so that the tool keeps its pose relative to the handle while
the joint moves: a closed chain, though the scene is a tree. How well it is closed is measured here.

Invariants: which joint a handle moves is a function of the scene and the arms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import Manipulator
from tmkit.spatial import Pose

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
    """Return the joint that a handle moves, of those that are not the arms' own.

    Returns:
        The name of the joint, an entry of the configuration; None when the frame is, or is a child of, an object that
        may be carried, or no joint but those of arms carries it.
    """
    movable, own = {*movable_frames(scene)}, {joint for arm in arms for joint in (*arm.joints, *arm.gripper_joints)}
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
    """Return how far the tool strays from its pose at the handle along a path, in metres and radians.

    Args:
        path: (k, n_joints) configurations, straight in joint space between rows.
        steps: into how many parts each piece of the path is cut, at least 1.
    """
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
    return frozenset(below for mover in frames_on_joints(scene, own) for below in scene.subtree(mover))


def frames_on_joints(scene: SceneGraph, joints: Collection[str]) -> list[str]:
    """Return the frames whose edges are some joints, or joints that mimic them, in the scene's order."""
    found = []
    for frame in scene.frame_names:
        joint = scene.joint(frame)
        if joint.is_actuated and (joint.name in joints or (joint.mimic is not None and joint.mimic.joint in joints)):
            found.append(frame)
    return found


def held_by(scene: SceneGraph, manipulator: Manipulator) -> str | None:
    """Return the object that is a child of an arm's tip, or None."""
    return next((object for object in movable_frames(scene) if scene.parent(object) == manipulator.tip), None)
