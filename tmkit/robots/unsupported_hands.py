"""Hands that are recognised and not supported, and parts of a robot beside a hand.

Supported are two fingers that close on each other, one jaw against a fixed finger, and one suction
cup. A third finger would collide with an object between the other two. An array of cups holds an
object only where all of its cups seal, so it is not one cup of the size of the array.

All heights are along the z axis of the tool, which points away from the hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norm, norms
from tmkit.graph import AttachedShape, SceneGraph, Shape
from tmkit.robots.hands import InferredHand, shape_points
from tmkit.robots.mechanisms import rigid_frames
from tmkit.spatial import Pose

Array = NDArray[np.float64]

_FINGERTIP_DEPTH = 0.005
"""Distance behind the tool up to which a part of a hand reaches as far as its fingertips [m]."""

_FOOT_THICKNESS = 0.002
"""Height of the part of a suction gripper that touches a flat face [m]."""

_CUP_DISTANCE = 0.01
"""Smallest distance between the middles of two cups of an array [m]."""

_MAX_RADIUS = 0.15
"""Distance from the tool's axis within which parts are beside a hand [m]."""


def other_fingers(scene: SceneGraph, tip: str, hand: InferredHand) -> tuple[str, ...]:
    """Return the moving parts of a hand that reach as far as its two fingers.

    Args:
        scene: scene with the robot.
        tip: frame of the hand.
        hand: inferred hand.

    Returns:
        The frame of each further finger that is the farthest from the palm.
    """
    fingers = {frame for finger in hand.fingers for frame in finger}
    roots = [
        child
        for frame in rigid_frames(scene, tip)
        for child in scene.children(frame)
        if scene.joint(child).type != "fixed" and fingers.isdisjoint(scene.subtree(child))
    ]
    q, tip_to_tool = scene.configuration(hand.closed), hand.tool.inverse()
    result = []
    for root in roots:
        heights = {
            frame: float(tip_to_tool.apply(shape_points(scene, [frame], tip, q))[:, 2].max())
            for frame in _frames_with_shapes(scene, scene.subtree(root))
        }
        if heights and max(heights.values()) > -_FINGERTIP_DEPTH:
            result.append(max(heights, key=lambda frame: heights[frame]))
    return tuple(result)


def has_several_cups(scene: SceneGraph, cups: Sequence[str], tool: str) -> bool:
    """Return whether a suction gripper has several cups, in several links or in one mesh.

    Several cups are parts of the gripper's foot that are not connected and whose middles differ,
    unlike the inner and the outer rim of one cup.

    Args:
        scene: scene with the robot.
        cups: frames of the gripper, with shapes.
        tool: frame of the tool.
    """
    q = scene.configuration({})
    clouds = [
        (part.shape, _part_points(part, scene.pose(frame, relative_to=tool, q=q)))
        for frame in cups
        for part in _drawn_parts(scene, frame)
    ]
    foot = max(float(points[:, 2].max()) for _, points in clouds) - _FOOT_THICKNESS
    middles: list[Array] = []
    for shape, points in clouds:
        for middle in _foot_middles(shape, points, foot):
            if any(norm(middle - other) >= _CUP_DISTANCE for other in middles):
                return True
            middles.append(middle)
    return False


def parts_beside(
    scene: SceneGraph, root: str, tool: str, *, hand_frames: Collection[str], depth: float
) -> dict[str, float]:
    """Return the parts of a robot beside a hand, with their distance in front of the tool [m].

    Args:
        scene: scene with the robot.
        root: frame that the last joint of the arm moves.
        tool: frame of the tool.
        hand_frames: frames of the hand.
        depth: distance behind the tool beyond which parts are not beside it [m].

    Returns:
        Distances by frame, negative behind the tool.
    """
    q, result = scene.configuration({}), {}
    carriers = {*hand_frames, *scene.ancestors(tool)}
    for frame in _frames_with_shapes(scene, scene.subtree(root)):
        if frame in carriers:
            continue
        points = shape_points(scene, [frame], tool, q)
        points = points[norms(points[:, :2]) < _MAX_RADIUS]
        distance = float(points[:, 2].max()) if len(points) else -np.inf
        if distance > -depth:
            result[frame] = distance
    return result


def _frames_with_shapes(scene: SceneGraph, frames: Iterable[str]) -> list[str]:
    """Return the frames with a collision shape."""
    return [frame for frame in frames if any(part.collision for part in scene.shapes(frame))]


def _drawn_parts(scene: SceneGraph, frame: str) -> list[AttachedShape]:
    """Return the shapes of a frame that are drawn, or all of a frame of which none is.

    The collision shape of an array of cups is often their convex hull.
    """
    parts = list(scene.shapes(frame))
    return [part for part in parts if part.visual] or parts


def _part_points(part: AttachedShape, pose: Pose) -> Array:
    """Return the corners (n, 3) of a shape, for a mesh its vertices, in other axes [m].

    Args:
        part: shape of a frame.
        pose: pose of the frame in these axes.
    """
    is_mesh = part.shape.kind == "mesh"
    bounds = zip(*part.shape.bounds, strict=True)
    corners = part.shape.vertices if is_mesh else [*itertools.product(*bounds)]
    points: Array = (pose @ part.pose).apply(np.asarray(corners))
    return points


def _foot_middles(shape: Shape, points: Array, foot: float) -> list[Array]:
    """Return the middles (3,) of the parts of a shape that reach a height, in tool axes [m].

    Args:
        shape: shape of a suction gripper.
        points: (n, 3) corners of the shape, for a mesh its vertices.
        foot: least height of the foot [m].
    """
    in_foot = np.flatnonzero(points[:, 2] >= foot)
    if not len(in_foot):
        return []
    if shape.kind != "mesh":
        return [_middle(points[in_foot])]

    # Connect the vertices of the foot along the edges of the mesh.
    labels = np.arange(len(points))
    faces = np.asarray(shape.faces)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[np.isin(edges, in_foot).all(axis=1)]
    while True:
        lowest = labels.copy()
        np.minimum.at(lowest, edges[:, 0], labels[edges[:, 1]])
        np.minimum.at(lowest, edges[:, 1], labels[edges[:, 0]])
        if np.array_equal(lowest, labels):
            break
        labels = lowest
    labels = labels[in_foot]
    return [_middle(points[in_foot[labels == label]]) for label in np.unique(labels)]


def _middle(points: Array) -> Array:
    """Return the middle (3,) of the box around points (n, 3)."""
    middle: Array = 0.5 * (points.min(axis=0) + points.max(axis=0))
    return middle
