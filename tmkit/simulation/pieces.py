"""Which frames of a scene move together in a simulation, and what they weigh.

Physics knows rigid bodies and mechanisms, a scene graph knows frames. The translation is a walk down the tree. A frame
of the class ``movable`` starts an *object*; a frame on a moving joint makes its parent the base of a *mechanism*, to
which everything below belongs; what is left never moves and is *fixed*. An object below a mechanism (a block in the
hand) is a piece of its own all the same, because it can be let go; an object with joints of its own (a box with a lid)
is a mechanism with a free base.

Masses: what the scene says; where it is silent, volume times a density, and a bounding box for the moments of inertia.
Frames that only mark a place weigh next to nothing.

Invariants: each frame of the scene is in exactly one piece, except that the fixed base of a mechanism appears as its
base. This module knows nothing of pybullet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import Fixed, Inertia, SceneGraph
from tmkit.planner.sampling.stable_faces import solid_centre
from tmkit.spatial import Pose

__all__ = ["MARKER_MASS", "Piece", "Pieces", "is_movable", "lumped_inertia", "partition", "with_masses"]

MOVABLE_CLASSES = ("movable", "moveable")

_MOVING_JOINTS = ("revolute", "continuous", "prismatic")
MARKER_MASS = 1e-5  # kilograms of a frame that only marks a place
_DEFAULT_LINK_MASS = 0.1  # kilograms of a moving link of which nothing is known, not even a shape


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


def is_movable(scene: SceneGraph, frame: str) -> bool:
    """Say whether a frame is an object that may be carried: of the class, and not held by a moving joint."""
    return scene.joint(frame).type not in _MOVING_JOINTS and any(
        name in MOVABLE_CLASSES for name in scene.classes(frame)
    )


def partition(scene: SceneGraph) -> Pieces:
    """Cut a scene into the pieces that move as one. O(number of frames)."""
    owner: dict[str, str | None] = {}  # base of the piece that a frame belongs to; None is fixed
    objects: list[str] = []
    mechanisms: list[str] = []
    order = [frame for root in scene.root_names for frame in scene.subtree(root)]
    for frame in order:
        parent = scene.parent(frame)
        above = owner[parent] if parent is not None else None
        if is_movable(scene, frame):
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
                    frame, lumped_inertia(scene, group, density=density) if alone else _ball(MARKER_MASS, 0.01)
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


def _ball(mass: float, radius: float) -> Inertia:
    return Inertia(mass, matrix=0.4 * mass * radius**2 * np.eye(3))


def lumped_inertia(scene: SceneGraph, frames: Sequence[str], *, density: float) -> Inertia:
    """Return the inertia of rigidly joined frames as one body, in the axes of the first.

    Masses of the scene count; only when there are none at all do the collision shapes count with ``density`` (kg/m^3).

    Args:
        scene: the scene.
        frames: frames that no moving joint parts, the reference first.
        density: kg/m^3, for a body without masses.

    Returns:
        Mass, centre, and moments about the centre, in the axes of ``frames[0]``.
    """
    parts: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    bodies: set[str] = set()
    for frame in frames:
        inertia = scene.inertia(frame)
        if inertia is not None and inertia.mass > 0.0 and scene.body(frame) not in bodies:
            bodies.add(scene.body(frame))
            base_from_frame = scene.pose(frame, frames[0])
            rotation = base_from_frame.rotation
            matrix = _moments(inertia)
            parts.append((inertia.mass, base_from_frame.apply(inertia.center), rotation @ matrix @ rotation.T))
    if not parts:
        parts = _parts_of_shapes(scene, frames, density)
    if not parts:
        return _ball(_DEFAULT_LINK_MASS, 0.05)
    mass = sum(part[0] for part in parts)
    center = sum((part[0] * part[1] for part in parts), np.zeros(3)) / mass
    matrix = np.zeros((3, 3))
    for part_mass, part_center, part_matrix in parts:
        offset = part_center - center
        matrix += part_matrix + part_mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return Inertia(mass, center, matrix=matrix)


def _moments(inertia: Inertia) -> NDArray[np.float64]:
    """Return the moments (3, 3) of an inertia; those of a small ball when it is a point."""
    matrix = np.asarray(inertia.matrix, dtype=float)
    return matrix if np.trace(matrix) > 0.0 else 0.4 * inertia.mass * 0.02**2 * np.eye(3)


def _parts_of_shapes(
    scene: SceneGraph, frames: Sequence[str], density: float
) -> list[tuple[float, NDArray[np.float64], NDArray[np.float64]]]:
    """Return mass, centre and moments of each collision shape, taken as a box as large as its bounds.

    A mesh has its own centre of mass, for on that depends whether it stands.
    """
    parts = []
    for frame in frames:
        base_from_frame = scene.pose(frame, frames[0])
        for attached in scene.shapes(frame):
            if not attached.collision or attached.shape.kind in ("plane", "point_cloud"):  # no volume to weigh
                continue
            if not attached.shape.volume > 0.0:
                continue
            lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
            base_from_shape: Pose = base_from_frame @ attached.pose
            mass = density * attached.shape.volume
            squares = (upper - lower) ** 2
            moments = mass / 12.0 * np.diag([squares[1] + squares[2], squares[0] + squares[2], squares[0] + squares[1]])
            rotation = base_from_shape.rotation
            centre = solid_centre(attached.moved(base_from_shape))
            parts.append((mass, centre, rotation @ moments @ rotation.T))
    return parts
