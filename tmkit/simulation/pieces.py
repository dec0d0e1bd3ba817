"""Which frames of a scene move together in a simulation, and what they weigh.

A physics engine has rigid bodies and mechanisms, a scene graph has frames. The translation is a walk down the tree. A
frame of the class ``movable`` starts an *object*; a frame on a moving joint makes its parent the base of a *mechanism*,
to which everything below belongs; what is left never moves and is *fixed*. An object below a mechanism (a block in the
hand) is a piece of its own all the same, because it can be let go; an object with joints of its own (a box with a lid)
is a mechanism with a free base.

Masses are those of :mod:`tmkit.manipulation.masses`. Frames that only mark a place weigh next to nothing.

Invariants: each frame of the scene is in exactly one piece, except that the fixed base of a mechanism appears as its
base. This module does not depend on pybullet.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.graph import Fixed, SceneGraph
from tmkit.manipulation.masses import ball_inertia, lumped_inertia
from tmkit.robots import is_movable

_MOVING_JOINTS = ("revolute", "continuous", "prismatic")
MARKER_MASS = 1e-5  # kilograms of a frame that only marks a place


@dataclass(frozen=True)
class Piece:
    """Frames that hang together.

    Attributes:
        base: the frame whose pose is the piece's pose.
        frames: all its frames, parents before children, ``base`` first.
        moving: those of its frames that hang on a moving joint; empty for a rigid piece.
        excluded: frames below ``base`` where other pieces begin.
    """

    base: str
    frames: tuple[str, ...]
    moving: tuple[str, ...]
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class Pieces:
    """A scene cut into pieces.

    Attributes:
        fixed: frames that never move, without the bases of the mechanisms.
        mechanisms: robots and furniture with joints; their bases are fixed.
        objects: movable objects, each rigid or, if it has joints of its own, a mechanism with a free base.
    """

    fixed: tuple[str, ...]
    mechanisms: tuple[Piece, ...]
    objects: tuple[Piece, ...]


def is_free_object(scene: SceneGraph, frame: str) -> bool:
    """Return whether a frame is a movable object without an actuated joint.

    Args:
        scene: the scene.
        frame: the frame.
    """
    return scene.joint(frame).type not in _MOVING_JOINTS and is_movable(scene, frame)


def partition(scene: SceneGraph) -> Pieces:
    """Cut a scene into the pieces that move as one. O(number of frames)."""
    owner: dict[str, str | None] = {}  # base of the piece that a frame belongs to; None is fixed
    objects: list[str] = []
    mechanisms: list[str] = []
    order = [frame for root in scene.root_names for frame in scene.subtree(root)]
    for frame in order:
        parent = scene.parent(frame)
        above = owner[parent] if parent is not None else None
        if is_free_object(scene, frame):
            objects.append(frame)
            owner[frame] = frame
        elif parent is not None and above is None and scene.joint(frame).type in _MOVING_JOINTS:
            if parent not in mechanisms:
                mechanisms.append(parent)
            owner[frame] = parent
        else:
            owner[frame] = above
    fixed = tuple(frame for frame in order if owner[frame] is None and frame not in mechanisms)
    return Pieces(
        fixed,
        tuple(_piece(scene, base, owner) for base in mechanisms),
        tuple(_piece(scene, base, owner) for base in objects),
    )


def _piece(scene: SceneGraph, base: str, owner: dict[str, str | None]) -> Piece:
    """Collect the frames that ``base`` owns, and the heads of the subtrees that it does not."""
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


def with_masses(scene: SceneGraph, piece: Piece, *, density: float) -> SceneGraph:
    """Return the scene with an inertia on every body of a mechanism and no free edge in it, ready to be simulated.

    Args:
        scene: the scene.
        piece: a mechanism of it.
        density: kg/m^3 of links that have a shape but no mass.
    """
    with scene.edit() as edit:
        for frame in piece.frames[1:]:
            if scene.joint(frame).type == "free":
                edit.set_joint(frame, Fixed())
        for group in _rigid_groups(scene, piece):
            heavy = {scene.body(frame) for frame in group if _mass(scene, frame) > 0.0}
            done = set(heavy)
            for frame in group:
                if scene.body(frame) in done:
                    continue
                done.add(scene.body(frame))
                alone = not heavy and frame == group[0]
                edit.set_inertia(
                    frame, lumped_inertia(scene, group, density=density) if alone else ball_inertia(MARKER_MASS, 0.01)
                )
    return edit.finish()


def _rigid_groups(scene: SceneGraph, piece: Piece) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    head: dict[str, str] = {}
    for frame in piece.frames:
        parent = scene.parent(frame)
        head[frame] = frame if frame == piece.base or frame in piece.moving else head[str(parent)]
        groups.setdefault(head[frame], []).append(frame)
    return list(groups.values())


def _mass(scene: SceneGraph, frame: str) -> float:
    inertia = scene.inertia(frame)
    return 0.0 if inertia is None else inertia.mass
