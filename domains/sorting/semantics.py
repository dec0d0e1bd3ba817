"""Semantics of the sorting domain in a scene.

An object (PDDL type ``item``) is a frame of class ``movable``, an *area* one of class ``area``, with a shape on whose
top objects stand. An object is in the area that is its parent if all of its footprint is. An object belongs in the
areas with which it shares a further class, such as ``red``; the scene defines these classes.

An object is put where the hand has room to release it: at free points of a grid over the area, nearest to the arm
first, each at some distance from those before, which spreads the first few over the area. The domain does not state
which object blocks the hand's way to which other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Impossible, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial.elementary import norms
from tmkit.tamp import incremental
from tmkit.tamp.domains import (
    TabletopSemantics,
    oversized,
    pick_candidates,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
)

_ROLES = ("movable", "area", "surface")  # classes that say what a frame is for, not of which kind it is
_GRID = 0.01  # metres between points that are looked at
_WIDE, _NARROW = 0.04, 0.005  # metres left free beside an object, across and along the fingers
_OVERHANG = 1e-3  # metres that a footprint may reach beyond its area
_MOST = 16  # points tried for one object
_APART = 0.04  # metres between them


class Semantics(TabletopSemantics):
    """The meaning of the sorting domain for one arm.

    Args:
        manipulator: the arm that moves the objects.
    """

    object_type, support_type, relation = "item", "area", "in"

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is, where it belongs, and what is held.

        Raises:
            SceneError: an object in no area, two in the hand, or one that leans, floats, or stands over the edge.
        """
        del objects, q
        names = {frame: name for name, frame in self.frames(scene).items()}
        areas = scene.frames_of_class("area")
        held, hand = self.held(scene)
        facts = [hand]
        for object in movable_frames(scene):
            belongs = [area for area in areas if _belongs(scene, object, area)]
            facts.extend(Fact.of("belongs", names[object], names[area]) for area in belongs)
            if object == held:
                continue
            area = self.checked_support_of(scene, object)
            facts.append(Fact.of("in", names[object], names[area]))
            if area in belongs:
                facts.append(Fact.of("sorted", names[object]))
        return State(facts)

    def require_placed(self, scene: SceneGraph, object: str, support: str) -> None:
        """Refuse an object that does not stand upright with all of its footprint in its area."""
        super().require_placed(scene, object, support)
        _require_inside(scene, object, support)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the object, or points of the area where it may stand, best first."""
        frames = self.frames(context.scene)
        object, area = (frames[name] for name in action.arguments)
        if action.name == "take":
            yield from pick_candidates(context, object, manipulator=self.manipulator)
        elif not _has_room(context.scene, object, area):
            fact = Fact("in", action.arguments)
            proof = oversized(context.scene, area, object=object, fact=fact, overhang=_OVERHANG)
            yield Impossible(f"'{object}' is wider than area '{area}'", is_proved=proof is not None)
        else:
            for point in self._free_points(context, object, area):
                for turn in turns_nearest_first(context, object, area):
                    yield Place(object, area, standing_pose(context.scene, object, area, point=point, turn=turn))

    def _free_points(self, context: ActionContext, object: str, area: str) -> list[tuple[float, float]]:
        """Return points (x, y) of an area with room for an object, nearest to the arm first."""
        scene = context.scene
        half = _half_width(scene, object)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, area))
        first, last = lower + half, upper - half
        counts = np.floor((last - first) / _GRID + 1e-9).astype(int) + 1
        axes = [first[axis] + _GRID * np.arange(counts[axis]) for axis in (0, 1)]
        grid = np.array(np.meshgrid(*axes)).reshape(2, -1).T
        others = [other for other in movable_frames(scene) if scene.parent(other) == area and other != object]
        free = np.ones(len(grid), dtype=bool)
        for other in others:
            apart = np.abs(grid - scene.local_pose(other).translation[:2]) - half - _half_width(scene, other)
            free &= np.any(apart >= [_NARROW, _WIDE], axis=1)
        base = scene.pose(self.manipulator.base, relative_to=area, q=context.q).translation[:2]
        found = grid[free]
        away = np.round(norms(found - base), 6)
        chosen: list[tuple[float, float]] = []
        for x, y in found[np.lexsort((found[:, 1], found[:, 0], away))]:
            if all(math.hypot(x - a, y - b) >= _APART for a, b in chosen):
                chosen.append((float(x), float(y)))
        return chosen[:_MOST]


@incremental
def _belongs(scene: SceneGraph, object: str, area: str) -> bool:
    return not _kinds(scene, object).isdisjoint(_kinds(scene, area))


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


def _require_inside(scene: SceneGraph, object: str, area: str) -> None:
    """Refuse an object whose footprint reaches beyond its area."""
    pose = scene.local_pose(object)
    low, high = shape_bounds(scene, object)
    corners = np.array([[x, y, low[2]] for x in (low[0], high[0]) for y in (low[1], high[1])])
    lower, upper = shape_bounds(scene, area)
    points = pose.apply(corners)[:, :2]
    over = max(float((lower[:2] - points).max()), float((points - upper[:2]).max()))
    if over > _OVERHANG:
        raise SceneError(
            f"object '{object}' stands {math.ceil(over * 1000)} mm over the edge of '{area}'", frame=object
        )
