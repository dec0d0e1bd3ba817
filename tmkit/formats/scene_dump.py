"""A scene as a plain table for other programs: what ``tmkit scene dump --json`` prints.

Unlike :mod:`tmkit.formats.json.scene` it is for other programs, not for reading back: it leaves out masses, colours and
mesh data.
"""

from __future__ import annotations

import math
from typing import Any

from tmkit.graph import AttachedShape, Joint, SceneGraph
from tmkit.spatial import Pose


def scene_dump(scene: SceneGraph) -> dict[str, Any]:
    """Return ``{"frames": [...]}``, one entry a frame in insertion order.

    Each has ``name``, ``parent`` (null for a root), ``body``, ``type`` (fixed, revolute, continuous, prismatic, free;
    fixed for a root), ``translation`` (metres) and ``quat_xyzw`` of parent_from_frame at joint value 0, ``joint``
    (null when nothing moves, else ``axis``, ``lower``, ``upper`` and ``name``; null for no limit), ``classes`` and
    ``geometry``: a list of ``shape``, ``dimensions`` and ``pose`` (``translation``, ``quat_xyzw`` of frame_from_shape).
    """
    return {"frames": [_frame(scene, name) for name in scene.frame_names]}


def _frame(scene: SceneGraph, name: str) -> dict[str, Any]:
    """Return the entry of a frame."""
    joint = scene.joint(name)
    return {
        "name": name,
        "parent": scene.parent(name),
        "body": scene.body(name),
        "type": joint.type,
        **_pose(scene.local_pose(name)),
        "joint": _joint(joint),
        "classes": list(scene.classes(name)),
        "geometry": [_shape(part) for part in scene.shapes(name)],
    }


def _pose(pose: Pose) -> dict[str, list[float]]:
    """Return a pose."""
    return {
        "translation": [float(value) for value in pose.translation],
        "quat_xyzw": [float(value) for value in pose.quat_xyzw],
    }


def _joint(joint: Joint) -> dict[str, Any] | None:
    """Return a joint that has a value."""
    if not joint.is_actuated:
        return None
    return {
        "axis": [float(value) for value in joint.axis],
        "lower": joint.lower if math.isfinite(joint.lower) else None,
        "upper": joint.upper if math.isfinite(joint.upper) else None,
        "name": joint.name,
    }


def _shape(part: AttachedShape) -> dict[str, Any]:
    """Return a shape."""
    return {"shape": part.shape.kind, "dimensions": list(part.shape.dimensions), "pose": _pose(part.pose)}
