"""Semantics of the sorting domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

An object (PDDL type ``item``) is a frame of class ``movable``. An *area* is a frame of class
``area``, with a shape on whose top objects stand. An object is in the area that is its parent if
its whole footprint is. An object belongs in the areas with which it shares a further class, such as
``red``; the scene defines these classes.

An object is placed where the hand has space to release it: at free points of a grid over the area,
nearest to the arm first. A minimum distance between the points distributes the first points over
the area. The domain does not state which objects obstruct the hand; the planner computes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, DeadEnd, Place
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial.elementary import norms
from tmkit.tamp import incremental, parts
from tmkit.tamp.domains import prove_oversized, shape_bounds, standing_pose, turns_nearest_first

WORDS = {"on": "in", "region": "area", "pick": "take", "place": "put"}

_ROLES = ("movable", "area", "surface")
"""Classes of the purpose of a frame, which are no kinds."""

_GRID_STEP = 0.01
"""Distance between the points of the grid [m]."""

_FINGER_CLEARANCE = 0.04
"""Distance between objects across the fingers [m]."""

_SIDE_CLEARANCE = 0.005
"""Distance between objects along the fingers [m]."""

_MAX_POINTS = 16
"""Largest number of points for one object."""

_POINT_DISTANCE = 0.04
"""Smallest distance between these points [m]."""


class Kinds(parts.Regions):
    """Objects and the areas of their kinds."""

    region_classes = ("area",)
    overhang = 1e-3
    place_predicates = frozenset({"sorted"})
    pddl: ClassVar[str] = """
    (:requirements :typing :conditional-effects)
    (:predicates
      (belongs ?x - item ?r - region)        ; ?x and ?r are of one kind
      (sorted ?x - item))                    ; ?x stands in an area of its kind
    (:extend (pick) :effect (not (sorted ?x)))
    (:extend (place) :effect (when (belongs ?x ?r) (sorted ?x)))
    """

    def facts_belongs(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield objects and areas of one kind."""
        for area in self.region_frames(scene):
            yield from ((object, area) for object in _objects_of_area(scene, area))

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Also yield whether an object is in an area of its kind."""
        yield from super().place_facts(scene, object)
        if scene.parent(object) in self.hands:
            return
        if object in _objects_of_area(scene, str(self.region_of(scene, object))):
            yield self.fact("sorted", object)

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield points of the area at which the object fits, best first."""
        scene = context.scene
        if not _has_room(scene, object, region):
            fact = self.fact("on", object, region)
            proof = prove_oversized(scene, region, object=object, fact=fact, overhang=self.overhang)
            yield DeadEnd(f"'{object}' is wider than area '{region}'", is_proved=proof is not None)
            return
        for point in self._free_points(context, arm, object, region):
            for turn in turns_nearest_first(context, object, region):
                pose = standing_pose(scene, object, region, point=point, turn=turn)
                yield Place(object, region, pose)

    def _free_points(
        self, context: ActionContext, arm: Manipulator, object: str, area: str
    ) -> list[tuple[float, float]]:
        """Return points (x, y) of an area with room for an object, nearest to the arm first."""
        scene = context.scene
        half = _half_width(scene, object)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, area))
        first, last = lower + half, upper - half
        counts = np.floor((last - first) / _GRID_STEP + 1e-9).astype(int) + 1
        axes = [first[axis] + _GRID_STEP * np.arange(counts[axis]) for axis in (0, 1)]
        grid = np.array(np.meshgrid(*axes)).reshape(2, -1).T
        neighbours = [
            other
            for other in movable_frames(scene)
            if scene.parent(other) == area and other != object
        ]
        is_free = np.ones(len(grid), dtype=bool)
        for other in neighbours:
            centre_distances = np.abs(grid - scene.local_pose(other).translation[:2])
            gaps = centre_distances - half - _half_width(scene, other)
            is_free &= np.any(gaps >= [_SIDE_CLEARANCE, _FINGER_CLEARANCE], axis=1)
        base = scene.pose(arm.base, relative_to=area, q=context.q).translation[:2]
        points = grid[is_free]
        distances = np.round(norms(points - base), 6)
        chosen: list[tuple[float, float]] = []
        for x, y in points[np.lexsort((points[:, 1], points[:, 0], distances))]:
            if all(math.hypot(x - a, y - b) >= _POINT_DISTANCE for a, b in chosen):
                chosen.append((float(x), float(y)))
        return chosen[:_MAX_POINTS]


@incremental
def _objects_of_area(scene: SceneGraph, area: str) -> dict[str, None]:
    """Return the objects of the kinds of an area."""
    kinds = _kinds(scene, area)
    return dict.fromkeys(
        object for object in movable_frames(scene) if not kinds.isdisjoint(_kinds(scene, object))
    )


def _kinds(scene: SceneGraph, frame: str) -> set[str]:
    return set(scene.classes(frame)).difference(_ROLES)


def _has_room(scene: SceneGraph, object: str, area: str) -> bool:
    """Return whether an object fits into an empty area."""
    lower, upper = shape_bounds(scene, area)
    return bool(np.all((upper - lower)[:2] >= 2.0 * _half_width(scene, object)))


def _half_width(scene: SceneGraph, object: str) -> float:
    """Return half the side of the smallest upright square around an object's frame [m]."""
    lower, upper = shape_bounds(scene, object)
    return float(np.max(np.abs([lower[:2], upper[:2]])))


Semantics = parts.compose_domain("sorting", [Kinds], words=WORDS).semantics
