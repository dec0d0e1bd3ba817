"""Grasps of boxes, cylinders, balls and capsules, by formulas (docs/howto/samplers.md).

The tool point is as near to the object's centre as the depth of the fingers allows. A suction cup
grasps a flat face from outside if its whole rim has room on it.

Invariants: the grasps of a shape are finitely many, in a fixed order: those along the shape's axes
first, tilted ones last. Poses are relative to the shape's frame.
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

_ANGLE_COUNT = 8
"""Number of directions around an axis."""

_MIN_EDGE_DISTANCE = 0.005
"""Smallest distance of the tool point from an edge of the object in a tilted grasp [m]."""

_DIAGONAL = math.sqrt(0.5)
"""Component of a unit vector along each of two axes, at 45 degrees to both."""

_Z = np.array([0.0, 0.0, 1.0])
"""(3,) z axis of the shape."""

Vector = NDArray[np.float64]


def fits(width: float, robot: Manipulator) -> bool:
    """Return whether an object fits between the open fingers, with clearance.

    Args:
        width: width of the object [m].
        robot: arm with the hand.
    """
    return robot.width_closed <= width <= robot.width_open - 2.0 * FINGER_CLEARANCE


def box_grasps(size: Vector, robot: Manipulator) -> Iterator[Grasp]:
    """Yield the grasps of a box by a parallel gripper.

    Args:
        size: (3,) side lengths [m].
        robot: arm with the hand.
    """
    axes = np.eye(3)
    # Grasps along an axis.
    for depth_axis in (2, 0, 1):
        width_axes = [i for i in range(3) if i != depth_axis and fits(size[i], robot)]
        for side in (1.0, -1.0):
            for width_axis, sign in itertools.product(width_axes, (1.0, -1.0)):
                depth = robot.depth(size[width_axis])
                position = side * _depth(size[depth_axis], depth) * axes[depth_axis]
                direction, closing = _axis_name(side, depth_axis), _axis_name(sign, width_axis)
                pose = tool_pose(position, -side * axes[depth_axis], sign * axes[width_axis])
                name = f"from {direction}, closing along {closing}"
                yield Grasp(pose, float(size[width_axis]), name)
    # Tilted grasps over an edge.
    for width_axis in (i for i in range(3) if fits(size[i], robot)):
        first, second = (i for i in (2, 0, 1) if i != width_axis)
        depth = robot.depth(size[width_axis])
        offset = _edge_offset(size[first] / 2, size[second] / 2, depth)
        if offset is None:
            continue
        for first_side, second_side in itertools.product((1.0, -1.0), repeat=2):
            sides = np.array([first_side * axes[first], second_side * axes[second]])
            position = product(np.array(offset), sides)
            edge = f"{_axis_name(first_side, first)}{_axis_name(second_side, second)}"
            for sign in (1.0, -1.0):
                name = f"tilted from {edge}, closing along {_axis_name(sign, width_axis)}"
                approach = -_DIAGONAL * sides.sum(axis=0)
                pose = tool_pose(position, approach, sign * axes[width_axis])
                yield Grasp(pose, float(size[width_axis]), name)


def cylinder_grasps(
    radius: float, length: float, robot: Manipulator, *, cap: float = 0.0
) -> Iterator[Grasp]:
    """Yield the grasps of a cylinder or capsule at its mantle by a parallel hand.

    Args:
        radius: radius of the mantle [m].
        length: length of the mantle [m].
        robot: arm with the hand.
        cap: height of the round caps beyond the mantle [m].
    """
    if not fits(2.0 * radius, robot):
        return
    depth = robot.depth(2.0 * radius)
    end = max(0.0, length / 2 + cap - depth)
    # Grasps from the ends, and from the side.
    if end <= length / 2:
        for side in (1.0, -1.0):
            for angle, closing in _directions():
                name = f"from {_axis_name(side, 2)}, turned {math.degrees(angle):.0f} degrees"
                yield Grasp(tool_pose(side * end * _Z, -side * _Z, closing), 2.0 * radius, name)
    for angle, outward in _directions():
        position = _depth(2.0 * radius, depth) * outward
        for sign, suffix in ((1.0, ""), (-1.0, ", turned over")):
            name = f"from the side at {math.degrees(angle):.0f} degrees{suffix}"
            pose = tool_pose(position, -outward, sign * np.cross(_Z, outward))
            yield Grasp(pose, 2.0 * radius, name)

    # Tilted grasps over the rim.
    height = max(0.0, length / 2 + cap - (depth / _DIAGONAL - radius))
    is_beyond_edge = height > length / 2 - min(_MIN_EDGE_DISTANCE, length / 2)
    if is_beyond_edge or _DIAGONAL * radius > depth:
        return
    for side in (1.0, -1.0):
        for angle, outward in _directions():
            approach = -_DIAGONAL * (side * _Z + outward)
            for sign, suffix in ((1.0, ""), (-1.0, ", turned over")):
                direction = f"{_axis_name(side, 2)} and the side at {math.degrees(angle):.0f}"
                pose = tool_pose(side * height * _Z, approach, sign * np.cross(_Z, outward))
                yield Grasp(pose, 2.0 * radius, f"tilted from {direction} degrees{suffix}")


def ball_grasps(radius: float, robot: Manipulator) -> Iterator[Grasp]:
    """Yield the grasps of a sphere by a parallel gripper: 18 directions with four rotations each.

    Args:
        radius: radius of the sphere [m].
        robot: arm with the hand.
    """
    if not fits(2.0 * radius, robot) or radius > robot.depth(2.0 * radius):
        return
    straight = [sign * axis for axis in np.eye(3)[[2, 0, 1]] for sign in (1.0, -1.0)]
    tilted = [
        _DIAGONAL * (a + b) for a, b in itertools.combinations(straight, 2) if abs(dot(a, b)) < 0.5
    ]
    for outward in (*straight, *tilted):
        first = np.cross(outward, np.roll(np.eye(3), 1, axis=0)[int(np.argmax(np.abs(outward)))])
        first /= norm(first)
        axis_names = [_axis_name(value, i) for i, value in enumerate(outward.tolist()) if value]
        prefix = "tilted from" if len(axis_names) > 1 else "from"
        for quarter, closing in enumerate(
            (first, np.cross(outward, first), -first, np.cross(first, outward))
        ):
            name = f"{prefix} {''.join(axis_names)}, turned {90 * quarter} degrees"
            yield Grasp(tool_pose(np.zeros(3), -outward, closing), 2.0 * radius, name)


def suction_faces(size: Vector, rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a box by a suction cup.

    Args:
        size: (3,) side lengths [m].
        rim: radius of the cup [m].
    """
    axes = np.eye(3)
    for normal_axis in (2, 0, 1):
        face_axes = [i for i in range(3) if i != normal_axis]
        if min(size[i] for i in face_axes) < 2.0 * rim:
            continue
        for side in (1.0, -1.0):
            position = side * size[normal_axis] / 2 * axes[normal_axis]
            for face_axis, sign in itertools.product(face_axes, (1.0, -1.0)):
                tool = tool_pose(position, -side * axes[normal_axis], sign * axes[face_axis])
                yield Grasp(tool, 0.0, f"on the {_axis_name(side, normal_axis)} face")


def suction_caps(radius: float, length: float, rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a cylinder by a suction cup.

    Args:
        radius: radius of the cylinder [m].
        length: length of the cylinder [m].
        rim: radius of the cup [m].
    """
    if radius < rim:
        return
    for side in (1.0, -1.0):
        for _, closing in _directions():
            tool = tool_pose(side * length / 2 * _Z, -side * _Z, closing)
            yield Grasp(tool, 0.0, f"on the {_axis_name(side, 2)} cap")


def _directions() -> Iterator[tuple[float, Vector]]:
    """Yield angles about z [rad], with the x axis (3,) rotated by them."""
    for k in range(_ANGLE_COUNT):
        angle = 2.0 * math.pi * k / _ANGLE_COUNT
        yield angle, np.array([cos(angle), sin(angle), 0.0])


def _depth(extent: float, depth: float) -> float:
    """Return the distance of the tool point from the object's centre, towards the hand [m]."""
    return max(0.0, extent / 2 - depth)


def _edge_offset(first: float, second: float, depth: float) -> tuple[float, float] | None:
    """Return the tool point of a tilted grasp over a corner of a rectangle, from its centre.

    Args:
        first: half of the first side [m].
        second: half of the second side [m].
        depth: depth of the object in the hand [m].

    Returns:
        Offsets along both sides [m], or None if the palm would touch the corner.
    """
    limits = [max(0.0, half - _MIN_EDGE_DISTANCE) for half in (first, second)]
    total = max(0.0, first + second - depth / _DIAGONAL)
    if total > sum(limits):
        return None
    first_offset = min(total / 2, limits[0])
    second_offset = min(total - first_offset, limits[1])
    return total - second_offset, second_offset


def _axis_name(sign: float, axis: int) -> str:
    """Return the name of a signed axis, such as ``+x``."""
    return f"{'+-'[sign < 0]}{'xyz'[axis]}"
