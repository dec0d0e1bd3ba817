"""The errors of poses in JSON documents of scenes.

A document lists its noise sources once, under ``noise_sources``, each with its dimension and label; a frame whose pose
is not exact has ``noise``: the covariance, and for each source its number in that list and the map, row by row. So
errors that are correlated in the scene are correlated in what is read back. A source that is read is a new one: files
have nothing in common with scenes that are in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmkit._support.source_location import reported
from tmkit.formats.json.poses import numbers_to_list
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import EdgeNoise, NoiseSource


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


_LARGEST = 100_000  # dimensions of a source: tmkit writes no more
