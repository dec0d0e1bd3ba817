"""Semantics of the sorting domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

An object (PDDL type ``item``) is a frame of class ``movable``, an *area* one of class ``area``,
with a shape on whose top objects stand. An object is in the area that is its parent if all of its
footprint is. An object belongs in the areas with which it shares a further class, such as ``red``;
the scene defines these classes.

An object is put where the hand has room to release it: at free points of a grid over the area,
nearest to the arm first, each at some distance from those before, which spreads the first few over
the area. The domain does not state which object blocks the hand's way to which other.
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

# classes that say what a frame is for, not of which kind it is
_ROLES = ("movable", "area", "surface")
_GRID = 0.01  # metres between points that are looked at
_WIDE, _NARROW = 0.04, 0.005  # metres left free beside an object, across and along the fingers
_MOST = 16  # points tried for one object
_APART = 0.04  # metres between them


class Kinds(parts.Regions):
    """Objects belong to areas of their kinds."""

    region_classes = ("area",)
    overhang = 1e-3
    place_predicates = frozenset({"sorted"})
    pddl: ClassVar[str] = """
    (:requirements :typing :conditional-effects)
    (:predicates
      (belongs ?x - item ?r - region)        ; ?x and ?r are of one kind
      (sorted ?x - item))                    ; ?x stands where it belongs
    (:extend (pick) :effect (not (sorted ?x)))
    (:extend (place) :effect (when (belongs ?x ?r) (sorted ?x)))
    """

    def facts_belongs(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield objects and areas of one kind."""
        for area in self.region_frames(scene):
            yield from ((object, area) for object in _belonging(scene, area))

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield also whether an object is where it belongs."""
        yield from super().place_facts(scene, object)
        if scene.parent(object) not in self.hands and object in _belonging(
            scene, str(self.region_of(scene, object))
        ):
            yield self.fact("sorted", object)

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield points of the area where the object may stand, best first."""
        scene = context.scene
        if not _has_room(scene, object, region):
            fact = self.fact("on", object, region)
            proof = prove_oversized(scene, region, object=object, fact=fact, overhang=self.overhang)
            yield DeadEnd(f"'{object}' is wider than area '{region}'", is_proved=proof is not None)
            return
        for point in self._free_points(context, arm, object, region):
            for turn in turns_nearest_first(context, object, region):
                yield Place(
                    object, region, standing_pose(scene, object, region, point=point, turn=turn)
                )

    def _free_points(
        self, context: ActionContext, arm: Manipulator, object: str, area: str
    ) -> list[tuple[float, float]]:
        """Return points (x, y) of an area with room for an object, nearest to the arm first."""
        scene = context.scene
        half = _half_width(scene, object)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, area))
        first, last = lower + half, upper - half
        counts = np.floor((last - first) / _GRID + 1e-9).astype(int) + 1
        axes = [first[axis] + _GRID * np.arange(counts[axis]) for axis in (0, 1)]
        grid = np.array(np.meshgrid(*axes)).reshape(2, -1).T
        others = [
            other
            for other in movable_frames(scene)
            if scene.parent(other) == area and other != object
        ]
        free = np.ones(len(grid), dtype=bool)
        for other in others:
            apart = (
                np.abs(grid - scene.local_pose(other).translation[:2])
                - half
                - _half_width(scene, other)
            )
            free &= np.any(apart >= [_NARROW, _WIDE], axis=1)
        base = scene.pose(arm.base, relative_to=area, q=context.q).translation[:2]
        found = grid[free]
        away = np.round(norms(found - base), 6)
        chosen: list[tuple[float, float]] = []
        for x, y in found[np.lexsort((found[:, 1], found[:, 0], away))]:
            if all(math.hypot(x - a, y - b) >= _APART for a, b in chosen):
                chosen.append((float(x), float(y)))
        return chosen[:_MOST]


@incremental
def _belonging(scene: SceneGraph, area: str) -> dict[str, None]:
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
    """Return half the side of the smallest upright square around an object's frame, in metres."""
    lower, upper = shape_bounds(scene, object)
    return float(np.max(np.abs([lower[:2], upper[:2]])))


Semantics = parts.compose_domain("sorting", [Kinds], words=WORDS).semantics
