"""In which order the places for an object are tried.

*Packed*: first the corners of the area, then places that touch its edge and a neighbour, then those between
neighbours, then a grid, then random ones; of each kind the farthest from a point (the arm's base) first, where it does
not block the next placements. *Near*: the grid first, the nearest to a point (where the object is) first, and the
corners last. *Scattered*: places of all these kinds in turn, in random order.

Invariants: all that is yielded is free by :meth:`Posture.free`; only the random places depend on the generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.manipulation.placements.postures import PlacementSettings, Posture
from tmkit.motion.regions.polygons import crossings

_INSIDE = 1e-9  # metres that positions may be beyond an edge, for rounding
_GRID_POINTS = 24  # along the longer side of an area, at most


def ranked_places(
    postures: Sequence[Posture], origin: NDArray[np.float64], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[str, Iterator[tuple[Posture, NDArray[np.float64]]]]]:
    """Yield kinds of positions with their positions, best kind first.

    Args:
        postures: stable orientations of the object.
        origin: (2,) current position of the object.
        rng: generator of random positions.
        settings: packed or spread out.
    """
    sign = -1.0 if settings.is_packed else 1.0
    kinds = ("in a corner", "beside a neighbour", "between neighbours", "on the grid")
    if settings.is_scattered:
        yield "anywhere", _scattered([(posture, kind) for posture in postures for kind in kinds], rng, settings)
        return
    for kind in kinds if settings.is_packed else reversed(kinds):
        points: dict[int, NDArray[np.float64]] = {}  # by the polygon of positions, which alike postures share
        for posture in postures:
            if id(posture.fit) not in points:
                points[id(posture.fit)] = _sorted(_points(kind, posture, settings), origin, sign)
        yield kind, _merged([(posture, points[id(posture.fit)]) for posture in postures])
    yield "anywhere", _random(postures, rng, settings)


def _points(kind: str, posture: Posture, settings: PlacementSettings) -> NDArray[np.float64]:
    """Return the positions (n, 2) of a kind at which an object fits."""
    fit, blocks = posture.fit, posture.blocks
    found: list[NDArray[np.float64]]
    if kind == "in a corner":
        found = [fit.vertices]
    elif kind == "beside a neighbour":
        found = [crossings(fit, block) for block in blocks]
    elif kind == "between neighbours":
        pairs = ((first, second) for i, first in enumerate(blocks) for second in blocks[:i])
        found = [block.vertices for block in blocks] + [crossings(first, second) for first, second in pairs]
    else:
        low, high = fit.vertices.min(axis=0), fit.vertices.max(axis=0)
        step = max(settings.grid, float(np.max(high - low)) / _GRID_POINTS)
        counts = np.floor((high - low) / step + _INSIDE)
        axes = [(a + b) / 2 + step * (np.arange(n + 1) - n / 2) for a, b, n in zip(low, high, counts, strict=True)]
        found = [np.array(np.meshgrid(*axes)).reshape(2, -1).T]
    points = np.concatenate([np.zeros((0, 2)), *found])
    return posture.free(np.unique(np.round(points, 9), axis=0))


def _sorted(points: NDArray[np.float64], origin: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
    """Return positions by their distance to a point, the nearest first when ``sign`` is 1; ties by x, then y."""
    distances = sign * np.round(norms(points - origin), 6)
    return points[np.lexsort((points[:, 1], points[:, 0], distances))]


def _merged(found: Sequence[tuple[Posture, NDArray[np.float64]]]) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield the places of all postures, those first that come early in their posture's list and of an early posture."""
    last = max((rank + len(points) for rank, (_, points) in enumerate(found)), default=0)
    for total in range(last):
        for rank, (posture, points) in enumerate(found):
            if 0 <= total - rank < len(points):
                yield posture, points[total - rank]


def _scattered(
    found: Sequence[tuple[Posture, str]], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield all places in random order, those of each kind and posture in turn."""
    rows = [(posture, _points(kind, posture, settings)) for posture, kind in found]
    rows = [(posture, rng.permutation(points)) for posture, points in rows if len(points)]
    rows = [rows[k] for k in rng.permutation(len(rows)).tolist()]
    for number in range(max((len(points) for _, points in rows), default=0)):
        yield from ((posture, points[number]) for posture, points in rows if number < len(points))


def _random(
    postures: Sequence[Posture], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[Posture, NDArray[np.float64]]]:
    """Yield random places at which the object fits."""
    if not postures:
        return
    for _ in range(settings.samples):
        posture = postures[int(rng.integers(len(postures)))]
        low, high = posture.fit.vertices.min(axis=0), posture.fit.vertices.max(axis=0)
        for point in posture.free(rng.uniform(low, high)[None]):
            yield posture, point
