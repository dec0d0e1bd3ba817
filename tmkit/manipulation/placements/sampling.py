"""Placements: where an object may be put down.

A :class:`Placement` is a frame to rest on and the pose at which the object rests. Candidates come lazily, in two
orders. *Packed* is for regions that are to hold many things: first the corners of the region, then places that touch
its edge and a neighbour, then those that touch two neighbours, then a grid, then random ones. So things end up side by
side along the edges, where the hand still finds room, and eight blocks fit where four dropped anywhere would fill the
place. *Near* is for large surfaces: a grid, nearest to where the object is now first.

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

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.placements.order import ranked_places
from tmkit.manipulation.placements.postures import PlacementSettings as PlacementSettings, Posture, postures_on
from tmkit.motion.regions.solids import collision_solids
from tmkit.motion.regions.surfaces import SupportSurface, region_surface, support_surfaces
from tmkit.robots import Manipulator
from tmkit.spatial import Pose


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
    for where, found in ranked_places(postures, origin, rng, settings):
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
