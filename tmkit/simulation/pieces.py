"""Partition of a scene into frames that move together in a simulation.

A frame of the class ``movable`` starts an *object*. A frame on a moving joint makes its parent the
base of a *mechanism*, which contains all frames below. All other frames are *fixed*.

An object below a mechanism, such as a block in the hand, is a separate piece, because the hand can
release it. An object with joints, such as a box with a lid, is a mechanism with a free base.

Invariants: each frame of the scene is in exactly one piece, except that the fixed base of a
mechanism appears as its base. This module does not depend on pybullet.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.graph import SceneGraph
from tmkit.robots.mechanisms import is_movable

_MOVING_JOINTS = ("revolute", "continuous", "prismatic")
"""Types of joints of mechanisms."""


@dataclass(frozen=True)
class Piece:
    """Connected frames of a scene.

    Attributes:
        base: frame of which the pose is the piece's pose.
        frames: all its frames, parents before children, ``base`` first.
        moving: those of its frames that are on a moving joint. Empty for a rigid piece.
        excluded: frames below ``base`` at which other pieces begin.
    """

    base: str
    frames: tuple[str, ...]
    moving: tuple[str, ...]
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class Pieces:
    """Partition of a scene into pieces.

    Attributes:
        fixed: frames that never move, without the bases of the mechanisms.
        mechanisms: robots and furniture with joints. Their bases are fixed.
        objects: movable objects. An object is rigid, or with joints a mechanism with a free base.
    """

    fixed: tuple[str, ...]
    mechanisms: tuple[Piece, ...]
    objects: tuple[Piece, ...]


def partition(scene: SceneGraph) -> Pieces:
    """Return the pieces of a scene, in O(number of frames)."""
    owner: dict[str, str | None] = {}  # base of the piece of a frame, or None if it is fixed
    objects: list[str] = []
    mechanisms: list[str] = []
    order = [frame for root in scene.root_names for frame in scene.subtree(root)]
    for frame in order:
        parent = scene.parent(frame)
        parent_owner = owner[parent] if parent is not None else None
        if scene.joint(frame).type not in _MOVING_JOINTS and is_movable(scene, frame):
            objects.append(frame)
            owner[frame] = frame
        elif (
            parent is not None
            and parent_owner is None
            and scene.joint(frame).type in _MOVING_JOINTS
        ):
            if parent not in mechanisms:
                mechanisms.append(parent)
            owner[frame] = parent
        else:
            owner[frame] = parent_owner
    fixed = tuple(frame for frame in order if owner[frame] is None and frame not in mechanisms)
    return Pieces(
        fixed,
        tuple(_piece(scene, base, owner) for base in mechanisms),
        tuple(_piece(scene, base, owner) for base in objects),
    )


def _piece(scene: SceneGraph, base: str, owner: dict[str, str | None]) -> Piece:
    """Return the piece of a base, with the frames at which other pieces begin."""
    frames, excluded = [base], []
    pending = list(reversed(scene.children(base)))
    while pending:
        frame = pending.pop()
        if owner[frame] == base:
            frames.append(frame)
            pending.extend(reversed(scene.children(frame)))
        else:
            excluded.append(frame)
    moving = tuple(frame for frame in frames[1:] if scene.joint(frame).type in _MOVING_JOINTS)
    return Piece(base, tuple(frames), moving, tuple(excluded))
