"""Grasps: where a hand may hold an object.

A :class:`Grasp` is the pose of the tool frame relative to the object, ``object_from_tool``, with the distance of the
fingers. The tool's z axis points at the object and a parallel hand closes along the tool's y axis.

A parallel hand takes a box by two opposite faces that fit the opening, coming along any third direction, and a cylinder
by its mantle, from an end or from the side. The tool point lies at the object's middle where the fingers are long
enough, else as deep as they reach. A suction cup takes a flat face from outside, when its whole rim finds room on it;
of shapes without flat faces it takes none.

Invariants: the grasps of an object are finitely many, in a fixed order; each is feasible for the hand alone (whether
the arm gets there is another question).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.motion import Manipulator, pair_distance
from tmkit.spatial import Pose

__all__ = ["FINGER_CLEARANCE", "Grasp", "cup_rim", "grasps_of", "grip_faults"]

FINGER_CLEARANCE = 0.004
"""Metres that must be free on either side between an object and the open fingers."""

_CYLINDER_ANGLES = 8
_RIM_POINTS = 8
_RIM_DEPTH = 0.002  # metres from the tool's plane within which the foot of a cup lies
_ROUND_KINDS = ("sphere", "capsule", "cone")  # on which no rim seals


@dataclass(frozen=True)
class Grasp:
    """A way of holding an object.

    Attributes:
        object_from_tool: pose of the tool frame relative to the object.
        width: metres between the fingers when they hold; 0 for suction.
        name: the grasp in words.
    """

    object_from_tool: Pose
    width: float
    name: str


def grasps_of(scene: SceneGraph, item: str, *, manipulator: Manipulator) -> tuple[Grasp, ...]:
    """Return the grasps of an object by one hand, in a fixed order.

    Args:
        scene: the scene with the object.
        item: frame of the object.
        manipulator: the arm whose hand grasps.

    Returns:
        Grasps; none when no pair of faces fits the hand.

    Raises:
        SceneError: the object has no collision shape to hold it by, or one without an end.
    """
    shapes = [attached for attached in scene.shapes(item) if attached.collision]
    if not shapes:
        raise SceneError(f"object '{item}' has no collision shape to grasp it by", frame=item)
    if any(attached.shape.kind == "plane" for attached in shapes):
        raise SceneError(f"object '{item}' has a plane, which no hand can grasp", frame=item)
    suction = manipulator.gripper_kind == "suction"
    rim = _rim_radius(scene, manipulator) if suction else 0.0
    if len(shapes) == 1 and shapes[0].shape.kind == "cylinder":
        radius, length = shapes[0].shape.dimensions
        found = _suction_caps(radius, length, rim) if suction else _cylinder(radius, length, manipulator)
        center = shapes[0].pose
    elif rim > 0.0 and len(shapes) == 1 and shapes[0].shape.kind in _ROUND_KINDS:
        return ()
    else:
        size, center = _box_around(shapes)
        found = _suction_faces(size, rim) if suction else _box(size, manipulator)
    return tuple(Grasp(center @ grasp.object_from_tool, grasp.width, grasp.name) for grasp in found)


def grip_faults(scene: SceneGraph, q: NDArray[np.float64], manipulator: Manipulator, *, item: str) -> tuple[str, ...]:
    """Return in words what is wrong with the way a closed hand holds an object; nothing when every finger is at it."""
    faults: list[str] = []
    for link in manipulator.contact_links:
        gap = pair_distance(scene, q, frame_a=link, frame_b=item)
        if gap > manipulator.contact_tolerance:
            faults.append(f"'{link}' is {gap * 1000:.1f} mm away from '{item}'")
        elif gap < -manipulator.contact_tolerance:
            faults.append(f"'{link}' overlaps with '{item}' by {-gap * 1000:.1f} mm")
    return tuple(faults)


def _box_around(shapes: list[AttachedShape]) -> tuple[NDArray[np.float64], Pose]:
    """Return side lengths and centre of a box around all shapes; a single shape keeps its own axes."""
    if len(shapes) == 1:
        lower, upper = shapes[0].shape.bounds
        return upper - lower, shapes[0].pose @ Pose((lower + upper) / 2)
    corners = []
    for attached in shapes:
        bounds = np.array(attached.shape.bounds)
        grid = np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T
        corners.append(attached.pose.apply(grid))
    points = np.concatenate(corners)
    lower, upper = points.min(axis=0), points.max(axis=0)
    return upper - lower, Pose((lower + upper) / 2)


def _tool(position: NDArray[np.float64], approach: NDArray[np.float64], closing: NDArray[np.float64]) -> Pose:
    """Return the tool frame at a position, with its z axis along ``approach`` and its y axis along ``closing``."""
    return Pose.from_rotation_matrix(position, np.column_stack([np.cross(closing, approach), closing, approach]))


def _fits(width: float, manipulator: Manipulator) -> bool:
    return manipulator.width_closed <= width <= manipulator.width_open - 2.0 * FINGER_CLEARANCE


def _depth(extent: float, manipulator: Manipulator) -> float:
    """Return how far from the object's centre, towards the hand, the tool point lies."""
    return max(0.0, extent / 2 - manipulator.finger_depth)


def _box(size: NDArray[np.float64], manipulator: Manipulator) -> Iterator[Grasp]:
    axes = np.eye(3)
    for along in (2, 0, 1):
        for side in (1.0, -1.0):
            approach = -side * axes[along]
            position = side * _depth(size[along], manipulator) * axes[along]
            for across in (i for i in range(3) if i != along):
                if not _fits(size[across], manipulator):
                    continue
                for turn in (1.0, -1.0):
                    name = f"from {'+-'[side < 0]}{'xyz'[along]}, closing along {'+-'[turn < 0]}{'xyz'[across]}"
                    yield Grasp(_tool(position, approach, turn * axes[across]), float(size[across]), name)


def _cylinder(radius: float, length: float, manipulator: Manipulator) -> Iterator[Grasp]:
    if not _fits(2.0 * radius, manipulator):
        return
    axis = np.array([0.0, 0.0, 1.0])
    for side in (1.0, -1.0):
        for k in range(_CYLINDER_ANGLES):
            angle = 2.0 * math.pi * k / _CYLINDER_ANGLES
            closing = np.array([math.cos(angle), math.sin(angle), 0.0])
            position = side * _depth(length, manipulator) * axis
            name = f"from {'+-'[side < 0]}z, turned {math.degrees(angle):.0f} degrees"
            yield Grasp(_tool(position, -side * axis, closing), 2.0 * radius, name)
    for k in range(_CYLINDER_ANGLES):
        angle = 2.0 * math.pi * k / _CYLINDER_ANGLES
        outward = np.array([math.cos(angle), math.sin(angle), 0.0])
        closing = np.cross(axis, outward)
        for turn in (1.0, -1.0):
            name = f"from the side at {math.degrees(angle):.0f} degrees{', turned over' if turn < 0 else ''}"
            position = _depth(2.0 * radius, manipulator) * outward
            yield Grasp(_tool(position, -outward, turn * closing), 2.0 * radius, name)


def cup_rim(scene: SceneGraph, manipulator: Manipulator) -> NDArray[np.float64]:
    """Return points (n, 3) of the foot of a suction cup, in the tool frame: its middle and its rim.

    The cup is what the contact links have in the tool's plane; where they have nothing there, it is the tool point.
    """
    radius = _rim_radius(scene, manipulator)
    turns = np.arange(_RIM_POINTS) * (2.0 * math.pi / _RIM_POINTS)
    rim = radius * np.column_stack([np.cos(turns), np.sin(turns), np.zeros(_RIM_POINTS)])
    return np.concatenate([np.zeros((1, 3)), rim]) if radius > 0.0 else np.zeros((1, 3))


def _rim_radius(scene: SceneGraph, manipulator: Manipulator) -> float:
    tool, radius = manipulator.tool, 0.0
    at = scene.at(scene.zero_configuration())
    for link in manipulator.contact_links:
        if link not in scene or tool not in scene:
            continue
        for attached in scene.shapes(link):
            points = at.pose(link, tool).apply(attached.pose.apply(_outline(attached)))
            foot = points[np.abs(points[:, 2]) <= _RIM_DEPTH]
            radius = max([radius, *np.linalg.norm(foot[:, :2], axis=1).tolist()])
    return radius


def _outline(attached: AttachedShape) -> NDArray[np.float64]:
    """Return points (n, 3) of a shape, in its own frame, that tell how wide it is at its ends."""
    shape = attached.shape
    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=float)
    lower, upper = shape.bounds
    if shape.kind in ("cylinder", "cone"):
        return np.array([[x, y, z] for z in (lower[2], upper[2]) for x, y in ((upper[0], 0.0), (0.0, upper[1]))])
    if shape.kind == "box":
        return np.array(np.meshgrid(*np.array([lower, upper]).T)).reshape(3, -1).T
    return np.zeros((0, 3))


def _suction_faces(size: NDArray[np.float64], rim: float) -> Iterator[Grasp]:
    axes = np.eye(3)
    for along in (2, 0, 1):
        if min(size[i] for i in range(3) if i != along) < 2.0 * rim:
            continue
        for side in (1.0, -1.0):
            for across in (i for i in range(3) if i != along):
                for turn in (1.0, -1.0):
                    tool = _tool(side * size[along] / 2 * axes[along], -side * axes[along], turn * axes[across])
                    yield Grasp(tool, 0.0, f"on the {'+-'[side < 0]}{'xyz'[along]} face")


def _suction_caps(radius: float, length: float, rim: float) -> Iterator[Grasp]:
    if radius < rim:
        return
    axis = np.array([0.0, 0.0, 1.0])
    for side in (1.0, -1.0):
        for k in range(_CYLINDER_ANGLES):
            angle = 2.0 * math.pi * k / _CYLINDER_ANGLES
            closing = np.array([math.cos(angle), math.sin(angle), 0.0])
            yield Grasp(_tool(side * length / 2 * axis, -side * axis, closing), 0.0, f"on the {'+-'[side < 0]}z cap")
