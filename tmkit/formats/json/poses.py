"""Poses in JSON scenes, the stamped poses of edges, and the errors of poses.

A pose is seven numbers, x y z and the quaternion's x y z w, which read back to the same bits. Stamped poses are listed
by ascending stamp, with the bounds of their history; a window without end is null.

A document lists its noise sources once, under ``noise_sources``, each with its dimension and label; a frame whose pose
is not exact has ``noise``: the covariance, and for each source its number in that list and the map, row by row. So
errors that are correlated in the scene are correlated in what is read back. A source that is read is a new one: files
have nothing in common with scenes that are in memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmkit._support.source_location import reported
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import EdgeNoise, NoiseSource, StampedPoses
from tmkit.spatial import Pose

_UNIT_TOLERANCE = 1e-3  # how far the length of a quaternion may be from 1: numbers rounded to three digits are fine
_LARGEST = 100_000  # dimensions of a source: tmkit writes no more


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
    with reported(node):
        return StampedPoses(times, poses, capacity=int(capacity), window=node.get("window").limit(math.inf))


class SourceList:
    """Numbers the noise sources of a scene in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[NoiseSource, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def noise_to_dict(self, noise: EdgeNoise) -> dict[str, Any]:
        """Return the error of an edge as JSON values."""
        numbers = {source: self._numbers.setdefault(source, len(self._numbers)) for source in noise.sources}
        terms = [{"map": numbers_to_list(noise.map(source)), "source": number} for source, number in numbers.items()]
        return {"covariance": numbers_to_list(noise.covariance), "terms": terms}

    def to_list(self) -> list[dict[str, Any]]:
        """Return the sources as JSON values."""
        return [{"dimension": source.dimension, "label": source.label} for source in self._numbers]


def sources_from_dict(node: JsonNode) -> list[NoiseSource]:
    """Return the noise sources that a document lists.

    Raises:
        FileFormatError: something else stands there.
    """
    sources = []
    for item in node.items():
        item.only("dimension", "label")
        dimension = item.get("dimension").integer()
        if not 1 <= dimension <= _LARGEST:
            raise item.get("dimension").error(f"expected a number from 1 to {_LARGEST}, received {dimension}")
        sources.append(NoiseSource(dimension, item.get("label").text()))
    return sources


def noise_from_dict(node: JsonNode, sources: list[NoiseSource]) -> EdgeNoise:
    """Return the noise of an edge.

    Args:
        node: its JSON object.
        sources: noise sources of the file, in its order.

    Raises:
        FileFormatError: a source that is not listed, a map of another size, or a covariance that is none.
    """
    node.only("covariance", "terms")
    maps: dict[NoiseSource, Any] = {}
    for term in node.get("terms").items():
        term.only("map", "source")
        number = term.get("source").integer()
        if not 0 <= number < len(sources):
            raise term.get("source").error(f"expected the number of a noise source, 0 to {len(sources) - 1}")
        if sources[number] in maps:
            raise term.get("source").error(f"noise source {number} is given twice")
        dimension = sources[number].dimension
        maps[sources[number]] = np.reshape(term.get("map").numbers(6 * dimension), (6, dimension))
    covariance = np.reshape(node.get("covariance").numbers(36), (6, 6))
    with reported(node):
        return EdgeNoise(maps, covariance=covariance)
