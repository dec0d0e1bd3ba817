"""A world of rigid bodies whose every relation is known, by two methods that share nothing.

Bodies have poses, constant twists, and push on each other. :func:`by_matrices` computes the numbers
of any coordinates from homogeneous matrices and cross products; :func:`by_motion` from pinocchio's
rigid transforms, and velocities from the positions of points and frames a moment before and
after. tmkit must agree with both.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pinocchio
from numpy.typing import NDArray
from scipy.linalg import expm

from tmkit import relations
from tmkit.relations.representations import RotationVector, VectorAndMatrix, VectorAndRotationVector
from tmkit.relations.semantic.base import SemanticRelation

__all__ = [
    "BODIES",
    "FRAMES",
    "JOINED",
    "RigidWorld",
    "by_matrices",
    "by_motion",
    "relation",
    "rigid_world",
]

Array = NDArray[np.float64]

FRAMES = {
    "C": ("a", "a2", "e", "e2", "g", "o"),
    "C2": ("c", "c2"),
    "D": ("b", "b2", "f", "f2", "h"),
    "D2": ("d", "d2"),
    "E": ("k", "k2", "m"),
    "X": ("r", "s"),
}
JOINED = {"C2": "C", "D2": "D"}  # bodies that are rigidly joined to others
BODIES = {frame: body for body, frames in FRAMES.items() for frame in frames}
STEP = 1e-5


class RigidWorld:
    """Poses of frames and bodies in the world, twists of bodies, and the wrenches between them.

    Attributes:
        frames: (4, 4) world_from_frame by frame.
        twists: (6,) by body, in the axes of the world: velocity of the point at its origin, then
            angular velocity.
        wrenches: (6,) by pair of bodies: force on the first, exerted by the second, then its moment
            about the world's origin.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.frames: dict[str, Array] = {}
        for frame in BODIES:
            self.frames[frame] = expm(_hat(rng.uniform(-1.2, 1.2, 6)))
        self.twists: dict[str, Array] = {body: rng.uniform(-1, 1, 6) for body in FRAMES}
        self.twists |= {body: self.twists[other] for body, other in JOINED.items()}
        self.wrenches: dict[tuple[str, str], Array] = {}
        for name in FRAMES:
            for other in FRAMES:
                if name < other:
                    self.wrenches[name, other] = rng.uniform(-5, 5, 6)
                    self.wrenches[other, name] = -self.wrenches[name, other]

    def at(self, frame: str, body: str, time: float) -> Array:
        """Return world_from_frame of a frame that goes along with a body, after a time."""
        result: Array = expm(_hat(self.twists[body]) * time) @ self.frames[frame]
        return result


@functools.cache
def rigid_world(seed: int) -> RigidWorld:
    """Return the world of a seed, made once: not to be changed."""
    return RigidWorld(seed)


def _hat(twist: Array) -> Array:
    v, w = twist[:3], twist[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]], v
    return matrix


def by_matrices(world: RigidWorld, c: Any) -> tuple[Array, ...]:
    """Return the numbers of coordinates, from homogeneous matrices and cross products."""
    axes = world.frames[c.coord][:3, :3].T
    numbers: list[Array] = []
    if c.relation in ("Position", "Pose"):
        numbers.append(axes @ (world.frames[c.point][:3, 3] - world.frames[c.ref_point][:3, 3]))
    if c.relation in ("Orientation", "Pose"):
        turned = world.frames[c.ori][:3, :3] @ world.frames[c.ref_ori][:3, :3].T
        numbers.append(axes @ turned @ axes.T)
    if c.relation in ("LinearVelocity", "AngularVelocity", "Twist"):
        v, w = np.split(world.twists[c.body] - world.twists[c.ref_body], 2)
        if c.relation != "AngularVelocity":
            numbers.append(axes @ (v + np.cross(w, world.frames[c.point][:3, 3])))
        if c.relation != "LinearVelocity":
            numbers.append(axes @ w)
    if c.relation in ("Force", "Torque", "Wrench"):
        f, t = np.split(world.wrenches[c.body, c.ref_body], 2)
        if c.relation != "Torque":
            numbers.append(axes @ f)
        if c.relation != "Force":
            numbers.append(axes @ (t - np.cross(world.frames[c.point][:3, 3], f)))
    return tuple(numbers)


def by_motion(world: RigidWorld, c: Any) -> tuple[Array, ...]:
    """Return the numbers of coordinates, by pinocchio's transforms and by differences in time."""
    axes = pinocchio.SE3(world.frames[c.coord])
    numbers: list[Array] = []
    if c.relation in ("Position", "Pose"):
        ends = [
            axes.actInv(pinocchio.SE3(world.frames[point]).translation)
            for point in (c.point, c.ref_point)
        ]
        numbers.append(ends[0] - ends[1])
    if c.relation in ("Orientation", "Pose"):
        ori, ref_ori = (pinocchio.SE3(world.frames[frame]).rotation for frame in (c.ori, c.ref_ori))
        # the axis, seen in the coordinate frame
        vector = axes.rotation.T @ ref_ori @ pinocchio.log3(ref_ori.T @ ori)
        numbers.append(pinocchio.exp3(vector))
    if c.relation in ("LinearVelocity", "AngularVelocity", "Twist"):
        numbers.extend(_differences(world, c))
    if c.relation in ("Force", "Torque", "Wrench"):
        wrench = axes.actInv(pinocchio.Force(world.wrenches[c.body, c.ref_body]))
        if c.relation != "Torque":
            numbers.append(wrench.linear)
        if c.relation != "Force":  # about the point: a pure translation in the same axes
            offset = axes.actInv(world.frames[c.point][:3, 3])
            numbers.append(pinocchio.SE3(np.eye(3), offset).actInv(wrench).angular)
    return tuple(numbers)


def _differences(world: RigidWorld, c: Any) -> list[Array]:
    """Return velocities as differences of the body's poses, relative to the reference body.

    The coordinate frame goes along with the reference body, so the result is in its
    axes.
    """
    point = getattr(c, "point", c.coord)
    before, after = (
        np.linalg.inv(world.at(c.coord, c.ref_body, time)) @ world.at(point, c.body, time)
        for time in (-STEP, STEP)
    )
    linear = (after[:3, 3] - before[:3, 3]) / (2 * STEP)
    angular = pinocchio.log3(after[:3, :3] @ before[:3, :3].T) / (2 * STEP)
    return {"LinearVelocity": [linear], "AngularVelocity": [angular], "Twist": [linear, angular]}[
        c.relation
    ]


def relation(world: RigidWorld, coord: Any) -> SemanticRelation:
    """Return coordinates with their numbers, in a representation of that kind."""
    numbers = by_matrices(world, coord)
    relation_class: type[SemanticRelation] = getattr(relations, f"Semantic{coord.relation}")
    if coord.relation == "Pose":
        fits = VectorAndMatrix if coord.coord == coord.ref_ori else VectorAndRotationVector
        return relation_class(coord, fits.of(numbers))
    if coord.relation == "Orientation" and coord.coord != coord.ref_ori:
        return relation_class(coord, RotationVector.of(numbers))
    return relation_class(coord, numbers[0] if len(numbers) == 1 else np.concatenate(numbers))
