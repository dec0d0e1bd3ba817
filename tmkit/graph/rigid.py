"""Frames that move as one: what is rigidly joined in a version of a scene.

Two frames move as one where the path of poses between them has only fixed edges over which no twist edge leads. So the
fixed links of a robot are one rigid group, with the tool in its hand and what it holds, until one of these edges
changes.

Invariants: functions of one version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import Inertia, SceneGraph
from tmkit.spatial import Pose


def rigid_frames(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return the frames that move as one with a frame, itself among them, in insertion order.

    O(r log n) for r such frames and their children, and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    moving = edges_of_twists(scene, frame)
    top = frame
    while (parent := scene.parent(top)) is not None and _is_still(scene, top, moving):
        top = parent
    found, waiting = [top], [top]
    while waiting:
        below = [child for child in scene.children(waiting.pop()) if _is_still(scene, child, moving)]
        found += below
        waiting += below
    return tuple(sorted(found, key=scene.frame_id))


def is_rigid(scene: SceneGraph, frame: str, other: str) -> bool:
    """Return whether two frames move as one. O(depth log n), and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: the one frame.
        other: the other.

    Raises:
        UnknownNameError: no such frame.
    """
    return loose_edge(scene, frame, other) is None


def loose_edge(scene: SceneGraph, frame: str, other: str) -> str | None:
    """Return the frame below the first edge between two frames that is not rigid; None where they move as one.

    Where no poses join them, it is ``frame``.
    """
    if scene.root(frame) != scene.root(other):
        return frame
    moving = edges_of_twists(scene, frame)
    up, down = ([end, *scene.ancestors(end)] for end in (frame, other))
    common = set(up).intersection(down)
    between = [at for at in (*up, *reversed(down)) if at not in common]
    return next((at for at in between if not _is_still(scene, at, moving)), None)


def rigid_inertia(scene: SceneGraph, frame: str) -> Inertia | None:
    """Return the mass properties of all bodies that move as one with a frame, in its axes; None where none has any.

    What a hand holds counts: of a gripper with an object this is the payload at the wrist.

    Args:
        scene: the scene; masses in kg.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    firsts = {scene.body(name): name for name in reversed(rigid_frames(scene, frame))}
    found = [(scene.pose(name, relative_to=frame), scene.inertia(name)) for name in firsts.values()]
    return joined_inertia([(at, own) for at, own in found if own is not None])


def joined_inertia(masses: Sequence[tuple[Pose, Inertia]]) -> Inertia | None:
    """Return the mass properties of rigidly joined bodies, from here_from_there of each (parallel axis theorem)."""
    if len(masses) < 2:
        return _in_axes(*masses[0]) if masses else None
    parts = [_in_axes(*part) for part in masses]
    mass = sum(part.mass for part in parts)
    center = sum((part.mass * part.center for part in parts), start=np.zeros(3)) / mass
    matrix: NDArray[np.float64] = np.zeros((3, 3))
    for part in parts:
        offset = part.center - center
        matrix += part.matrix + part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return Inertia(mass, center, matrix=(matrix + matrix.T) / 2)


def _in_axes(here_from_there: Pose, inertia: Inertia) -> Inertia:
    if here_from_there == Pose():
        return inertia
    rotation = here_from_there.rotation
    matrix = rotation @ inertia.matrix @ rotation.T
    return Inertia(inertia.mass, here_from_there.apply(inertia.center), matrix=(matrix + matrix.T) / 2)


def edges_of_twists(scene: SceneGraph, frame: str) -> set[str]:
    """Return the frames below edges of poses in the tree of a frame over which twist edges lead. O(t depth)."""
    core: Any = scene
    return set(core._edges_of_twists(frame))


def moving_edges(scene: SceneGraph) -> set[str]:
    """Return the same of all trees."""
    return set[str]().union(*(edges_of_twists(scene, root) for root in scene.root_names if scene.twist_frames))


def joint_values(scene: SceneGraph, values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return one number a joint; what they are is named where they are not that."""
    core: Any = scene
    return np.asarray(core._joint_values(values, what))


def _is_still(scene: SceneGraph, frame: str, moving: set[str]) -> bool:
    parent = scene.parent(frame)
    on_one_body = parent is not None and scene.body(parent) == scene.body(frame)
    return scene.joint(frame).type == "fixed" and (on_one_body or frame not in moving)
