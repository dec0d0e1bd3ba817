"""Grasps of boxes, cylinders, balls and capsules, by formulas (docs/howto/samplers.md).

The tool point lies as near to the object's middle as the fingers reach. A suction cup takes a flat
face from outside, when its whole rim finds room on it.

Invariants: the grasps of a shape are finitely many, in a fixed order: those along the shape's axes
first, tilted ones last. Poses are relative to the shape's own frame.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import cos, dot, norm, product, sin
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE, Grasp, tool_pose
from tmkit.robots import Manipulator

_ANGLES = 8  # directions around an axis
_GRIPPED = 0.005  # metres from the edge of an object at which the tool point may be, when tilted
_DIAGONAL = math.sqrt(0.5)
_Z = np.array([0.0, 0.0, 1.0])

Vector = NDArray[np.float64]


def fits(width: float, manipulator: Manipulator) -> bool:
    """Return whether a width in metres fits between the fingers, with clearance when the gripper is open."""
    return manipulator.width_closed <= width <= manipulator.width_open - 2.0 * FINGER_CLEARANCE


def box_grasps(size: Vector, manipulator: Manipulator) -> Iterator[Grasp]:
    """Yield the grasps of a box, of sides (3,) in metres, by a parallel gripper."""
    axes = np.eye(3)
    for along in (2, 0, 1):
        for side in (1.0, -1.0):
            position = side * _depth(size[along], manipulator) * axes[along]
            for across in (i for i in range(3) if i != along and fits(size[i], manipulator)):
                for turn in (1.0, -1.0):
                    name = f"from {_side(side, along)}, closing along {_side(turn, across)}"
                    pose = tool_pose(position, -side * axes[along], turn * axes[across])
                    yield Grasp(pose, float(size[across]), name)
    for across in (i for i in range(3) if fits(size[i], manipulator)):
        first, second = (i for i in (2, 0, 1) if i != across)
        back = _back_towards_edge(size[first] / 2, size[second] / 2, manipulator)
        for side, other in itertools.product((1.0, -1.0), repeat=2) if back else ():
            towards = np.array([side * axes[first], other * axes[second]])
            for turn in (1.0, -1.0):
                where = f"{_side(side, first)}{_side(other, second)}"
                name = f"tilted from {where}, closing along {_side(turn, across)}"
                pose = tool_pose(
                    product(np.array(back), towards),
                    -_DIAGONAL * towards.sum(axis=0),
                    turn * axes[across],
                )
                yield Grasp(pose, float(size[across]), name)


def cylinder_grasps(
    radius: float, length: float, manipulator: Manipulator, *, cap: float = 0.0
) -> Iterator[Grasp]:
    """Yield the grasps of a cylinder, or of a capsule, by its mantle by a parallel hand.

    Args:
        radius: metres.
        length: metres between the ends of the mantle.
        cap: metres by which round caps reach beyond the mantle.
    """
    if not fits(2.0 * radius, manipulator):
        return
    end = max(0.0, length / 2 + cap - manipulator.finger_depth)
    if end <= length / 2:
        for side in (1.0, -1.0):
            for angle, closing in _directions():
                name = f"from {_side(side, 2)}, turned {math.degrees(angle):.0f} degrees"
                yield Grasp(tool_pose(side * end * _Z, -side * _Z, closing), 2.0 * radius, name)
    for angle, outward in _directions():
        for turn in (1.0, -1.0):
            name = (
                f"from the side at {math.degrees(angle):.0f}"
                f" degrees{', turned over' if turn < 0 else ''}"
            )
            position = _depth(2.0 * radius, manipulator) * outward
            yield Grasp(
                tool_pose(position, -outward, turn * np.cross(_Z, outward)), 2.0 * radius, name
            )
    tilted = max(0.0, length / 2 + cap - (manipulator.finger_depth / _DIAGONAL - radius))
    if (
        tilted > length / 2 - min(_GRIPPED, length / 2)
        or _DIAGONAL * radius > manipulator.finger_depth
    ):
        return
    for side in (1.0, -1.0):
        for angle, outward in _directions():
            for turn in (1.0, -1.0):
                over = ", turned over" if turn < 0 else ""
                name = (
                    f"tilted from {_side(side, 2)} and the side at {math.degrees(angle):.0f}"
                    f" degrees{over}"
                )
                approach = -_DIAGONAL * (side * _Z + outward)
                pose = tool_pose(side * tilted * _Z, approach, turn * np.cross(_Z, outward))
                yield Grasp(pose, 2.0 * radius, name)


def ball_grasps(radius: float, manipulator: Manipulator) -> Iterator[Grasp]:
    """Yield the grasps of a sphere (radius in metres) by a parallel gripper: from 18 directions, in four rotations."""
    if not fits(2.0 * radius, manipulator) or radius > manipulator.finger_depth:
        return
    straight = [sign * axis for axis in np.eye(3)[[2, 0, 1]] for sign in (1.0, -1.0)]
    tilted = [
        _DIAGONAL * (a + b) for a, b in itertools.combinations(straight, 2) if abs(dot(a, b)) < 0.5
    ]
    for outward in (*straight, *tilted):
        first = np.cross(outward, np.roll(np.eye(3), 1, axis=0)[int(np.argmax(np.abs(outward)))])
        first /= norm(first)
        where = "".join(_side(number, i) for i, number in enumerate(outward.tolist()) if number)
        for quarter, closing in enumerate(
            (first, np.cross(outward, first), -first, np.cross(first, outward))
        ):
            name = (
                f"{'tilted ' if len(where) > 2 else ''}from {where}, turned {90 * quarter} degrees"
            )
            yield Grasp(tool_pose(np.zeros(3), -outward, closing), 2.0 * radius, name)


def suction_faces(size: Vector, rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a box of sides (3,) by a suction cup of a rim radius, metres."""
    axes = np.eye(3)
    for along in (2, 0, 1):
        if min(size[i] for i in range(3) if i != along) < 2.0 * rim:
            continue
        for side in (1.0, -1.0):
            for across in (i for i in range(3) if i != along):
                for turn in (1.0, -1.0):
                    tool = tool_pose(
                        side * size[along] / 2 * axes[along],
                        -side * axes[along],
                        turn * axes[across],
                    )
                    yield Grasp(tool, 0.0, f"on the {_side(side, along)} face")


def suction_caps(radius: float, length: float, rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a cylinder of a radius and a length by a suction cup of a rim radius, metres."""
    if radius < rim:
        return
    for side in (1.0, -1.0):
        for _, closing in _directions():
            tool = tool_pose(side * length / 2 * _Z, -side * _Z, closing)
            yield Grasp(tool, 0.0, f"on the {_side(side, 2)} cap")


def _directions() -> Iterator[tuple[float, Vector]]:
    """Yield angles about z and the directions (3,) that they give from x."""
    for k in range(_ANGLES):
        angle = 2.0 * math.pi * k / _ANGLES
        yield angle, np.array([cos(angle), sin(angle), 0.0])


def _depth(extent: float, manipulator: Manipulator) -> float:
    """Return how far from the object's centre, towards the hand, the tool point lies."""
    return max(0.0, extent / 2 - manipulator.finger_depth)


def _back_towards_edge(
    first: float, second: float, manipulator: Manipulator
) -> tuple[float, float] | None:
    """Return how far from the middle of a rectangle, towards a corner, the tool point lies when coming over it.

    Given are half the sides, in metres. None when the fingers are so short that the palm would
    touch the corner.
    """
    limits = [max(0.0, half - _GRIPPED) for half in (first, second)]
    needed = max(0.0, first + second - manipulator.finger_depth / _DIAGONAL)
    if needed > sum(limits):
        return None
    one = min(needed / 2, limits[0])
    other = min(needed - one, limits[1])
    return needed - other, other


def _side(sign: float, axis: int) -> str:
    return f"{'+-'[sign < 0]}{'xyz'[axis]}"
