"""Placements: where an object may be put down.

A :class:`Placement` is a frame to rest on and the pose at which the object rests. Candidates come lazily, in one of
three orders. *Packed* is for regions that are to hold many things: first the corners of the region, then places that
touch its edge and a neighbour, then those between two neighbours, then a grid, then random ones; of each kind the
farthest from the arm's base first. So things end up side by side along the edges, where the hand still finds room, and
eight blocks fit where four dropped anywhere would fill the place. *Near* is for large surfaces: a grid, nearest to
where the object is now first, and the corners last. *Scattered* is all of these kinds in turn, in random order.

Where an object fits is computed with polygons (:mod:`tmkit.manipulation.placements.postures`): its outline from above
must lie in the area, and keep away from the outlines of what stands at its height. That is exact for upright prisms; of
an overhanging neighbour it takes the outline for the whole, and so misses places under it, but gives none that collide.

An object is put down on a stable face (:mod:`tmkit.manipulation.placements.stable_faces`): upright if that face is
stable, else on any; always on any, if the settings demand it.

Invariants: each placement's outline lies in the area. Only on a frame all of whose surfaces are too small for it, an
object is put down with its centre of mass over the middle of one, if it stays there. Equal arguments and generators in
equal states give equal sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import norms
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.placements.postures import PlacementSettings as PlacementSettings, Posture, postures_on
from tmkit.motion.regions.polygons import crossings
from tmkit.motion.regions.solids import collision_solids
from tmkit.motion.regions.surfaces import SupportSurface, region_surface, support_surfaces
from tmkit.robots import Manipulator
from tmkit.spatial import Pose

_INSIDE = 1e-9  # metres that positions may be beyond an edge, for rounding
_GRID_POINTS = 24  # along the longer side of an area, at most


@dataclass(frozen=True)
class Placement:
    """A place for an object.

    Attributes:
        support: frame that it settles on, its new parent.
        support_from_object: pose of the object at rest.
        name: the place in words.
    """

    support: str
    support_from_object: Pose
    name: str


def placements_in_region(
    scene: SceneGraph, object: str, region: str | SupportSurface, *, q: ArrayLike | None, rng: np.random.Generator,
    manipulator: Manipulator | None = None, settings: PlacementSettings | None = None,
) -> Iterator[Placement]:  # fmt: skip
    """Yield places for an object in a region, packing it beside what is there.

    Args:
        scene: the scene; the object's parent does not matter.
        object: frame of the object.
        region: frame with a flat box, or part of a surface; see :func:`region_surface`.
        q: (n_joints,) configuration; None where no joint is between the frames asked about.
        rng: for the random placements at the end.
        manipulator: the arm, whose links are no obstacles, and which fills a region from its far side.
        settings: how to sample.

    Raises:
        SceneError: no such region, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surface = region if isinstance(region, SupportSurface) else region_surface(scene, region, q=q)
    yield from _placements(scene, object, (surface,), q, rng, manipulator, settings or PlacementSettings())


def placements_on_surface(
    scene: SceneGraph, object: str, support: str, *, q: ArrayLike | None, rng: np.random.Generator,
    manipulator: Manipulator | None = None, settings: PlacementSettings | None = None,
) -> Iterator[Placement]:  # fmt: skip
    """Yield places for an object on the level tops of a frame, near to where it is first; see the function above.

    Args:
        scene: the scene.
        object: the object.
        support: frame with a level surface.
        q: (n_joints,) configuration; needed if the scene has joints.
        rng: generator of random positions.
        manipulator: the arm, whose parts do not block positions.
        settings: stability, spacing and order; defaults if omitted.

    Raises:
        SceneError: the support has no level top, or an object that cannot rest.
        UnknownNameError: no such frame.
    """
    surfaces = support_surfaces(scene, support, q=q)
    if not surfaces:
        raise SceneError(f"'{support}' has no level top that anything could rest on", frame=support)
    yield from _placements(scene, object, surfaces, q, rng, manipulator, settings or PlacementSettings(is_packed=False))


def _placements(
    scene: SceneGraph, object: str, surfaces: Sequence[SupportSurface], q: ArrayLike | None, rng: np.random.Generator,
    manipulator: Manipulator | None, settings: PlacementSettings,
) -> Iterator[Placement]:  # fmt: skip
    solids = collision_solids(scene, object, q)
    for may_overhang in (False, True):
        rows = []
        for surface in surfaces:
            postures = list(
                postures_on(scene, object, surface, solids, q, manipulator, settings, may_overhang=may_overhang)
            )
            origin = _origin(scene, object, surface, q, manipulator, settings)
            if postures:
                rows.append(_on_one(surface, postures, origin, rng, settings))
        if rows or settings.is_packed:
            break
    while rows:  # the boards of a shelf take turns
        found = [(row, next(row, None)) for row in rows]
        yield from (placement for _, placement in found if placement is not None)
        rows = [row for row, placement in found if placement is not None]


def _on_one(
    surface: SupportSurface, postures: Sequence[Posture], origin: NDArray[np.float64], rng: np.random.Generator,
    settings: PlacementSettings,
) -> Iterator[Placement]:  # fmt: skip
    """Yield the placements on one surface."""
    for where, found in _ranked_places(postures, origin, rng, settings):
        for posture, point in found:
            pose = Pose([*point, posture.height]) @ posture.rotation
            name = f"{where} at ({point[0]:.3f}, {point[1]:.3f}), {posture.name}"
            yield Placement(surface.support, surface.support_from_surface @ pose, name)


def _origin(
    scene: SceneGraph, object: str, surface: SupportSurface, q: ArrayLike | None, manipulator: Manipulator | None,
    settings: PlacementSettings,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the point (2,) that order is about: the arm's base for packing, else where the object is."""
    frame = object if not settings.is_packed else manipulator.base if manipulator is not None else surface.support
    if scene.root(frame) != scene.root(surface.support):
        frame = surface.support
    surface_from_frame = surface.support_from_surface.inverse() @ scene.pose(frame, relative_to=surface.support, q=q)
    return np.asarray(surface_from_frame.translation[:2])


def _ranked_places(
    postures: Sequence[Posture], origin: NDArray[np.float64], rng: np.random.Generator, settings: PlacementSettings
) -> Iterator[tuple[str, Iterator[tuple[Posture, NDArray[np.float64]]]]]:
    """Yield kinds of positions with their positions, best kind first, by their distance from ``origin`` (2,)."""
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
