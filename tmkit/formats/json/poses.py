"""Poses in JSON scenes, and the stamped poses of edges.

A pose is seven numbers, x y z and the quaternion's x y z w, which read back to the same bits. Stamped poses are listed
by ascending stamp, with the bounds of their history; a window without end is null.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmkit._support.source_location import reported
from tmkit.errors import TmkitError
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import StampedPoses
from tmkit.spatial import Pose

_UNIT_TOLERANCE = 1e-3  # how far the length of a quaternion may be from 1: numbers rounded to three digits are fine


def numbers_to_list(values: Any) -> list[float]:
    """Return an array as a list of Python floats."""
    return [float(value) for value in np.asarray(values).reshape(-1)]


def pose_from_dict(node: JsonNode) -> Pose:
    """Return the pose that seven numbers say.

    Raises:
        FileFormatError: other than seven finite numbers, or a quaternion far from length 1.
    """
    numbers = node.numbers(7)
    with reported(node):
        pose = Pose.from_array(numbers)
    length = math.hypot(*numbers[3:])
    if abs(length - 1.0) > _UNIT_TOLERANCE:
        raise node.error(f"expected a unit quaternion as the last four numbers, received one of length {length:g}")
    return pose


def stamps_to_dict(stamps: StampedPoses) -> dict[str, Any]:
    """Return the stamped poses of an edge as a JSON document."""
    rows = [
        {"pose": numbers_to_list(pose.as_array()), "stamp": stamp}
        for stamp, pose in zip(numbers_to_list(stamps.stamps), stamps.poses, strict=True)
    ]
    window = stamps.window if math.isfinite(stamps.window) else None
    return {"capacity": stamps.capacity, "poses": rows, "window": window}


def stamps_from_dict(node: JsonNode) -> StampedPoses:
    """Return the stamped poses that a document says.

    Raises:
        FileFormatError: what is no such document, or a history that cannot be.
    """
    node.only("capacity", "poses", "window")
    rows = list(node.get("poses").items())
    for row in rows:
        row.only("pose", "stamp")
    capacity = node.get("capacity").number()
    if capacity != int(capacity) or not 0 < capacity < 2**31:
        raise node.get("capacity").error(f"expected a whole number above 0, received {capacity:g}")
    times = [row.get("stamp").number() for row in rows]
    poses = [pose_from_dict(row.get("pose")) for row in rows]
    try:
        return StampedPoses(times, poses, capacity=int(capacity), window=node.get("window").limit(math.inf))
    except TmkitError as error:
        raise node.error(str(error)) from error
