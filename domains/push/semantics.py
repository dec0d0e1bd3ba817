"""Semantics of the push domain in a scene.

An object (PDDL type ``item``) is a frame of class ``movable``, a *region* one of class ``region`` or ``surface``. A
region without collision shapes marks an area of its parent; it may reach beyond the edge of that, for objects that
overhang it. An object is ``on`` the smallest region of its parent that holds all of its footprint, else on its parent.

An object is pushed along the axes of its frame that lie in the plane: once where that leads to the region, else twice,
around a corner. The PDDL does not state what can be grasped where: the planner computes it, and pushes where needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Place, Push, Sequence
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.spatial.elementary import dot
from tmkit.tamp import pddl_name
from tmkit.tamp.domains import (
    TabletopSemantics,
    footprint,
    pddl_names,
    pick_candidates,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
)

_OVERHANG = 2e-4  # metres that a footprint may reach beyond its region
_INSIDE = 0.005  # metres that a pushed footprint keeps from the edge of its region, where there is room
_SEATED = 0.025  # metres from the edge of a support to the middle of an object that overhangs it
_LEAST = 0.002  # metres of a push worth making
_POINTS = 12  # random places in a region to push to


class Semantics(TabletopSemantics):
    """The meaning of the push domain for one arm.

    Args:
        manipulator: the arm.
    """

    object_type, support_type, relation = "item", "region", "on"

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of objects and regions by PDDL name."""
        return pddl_names([*movable_frames(scene), *_regions(scene)])

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and regions by PDDL name."""
        regions = _regions(scene)
        return {name: "region" if frame in regions else "item" for name, frame in self.frames(scene).items()}

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return on which region each object is, and what is held.

        Raises:
            SceneError: an object that is on no region and not in the hand, or two in the hand.
        """
        del objects, q
        held, hand = self.held(scene)
        standing = (item for item in movable_frames(scene) if item != held)
        facts = [Fact.of("on", pddl_name(item), pddl_name(self.support_of(scene, item))) for item in standing]
        regions = {region: _support(scene, region) for region in _regions(scene)}
        pairs = [pair for pair in itertools.permutations(regions, 2) if regions[pair[0]] == regions[pair[1]]]
        return State([hand, *facts, *(Fact.of("connected", pddl_name(a), pddl_name(b)) for a, b in pairs)])

    def support_of(self, scene: SceneGraph, object: str) -> str:
        """Return the smallest region that an object is on with all of its footprint, else its parent.

        Raises:
            SceneError: there is none.
        """
        parent = scene.parent(object)
        areas = {
            region: float(np.prod((upper - lower)[:2]))
            for region in _regions(scene)
            if _support(scene, region) == parent
            for lower, upper in [_room(scene, object, region)]
            if np.all(lower <= _OVERHANG) and np.all(upper >= -_OVERHANG)
        }
        if areas:
            return min(areas, key=lambda region: areas[region])
        if parent is None or parent not in _regions(scene):
            raise SceneError(f"object '{object}' is on no region (class region or surface) of '{parent}'", frame=object)
        return parent

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps, placements or pushes, best first."""
        scene = context.scene
        item, *regions = (self.frames(scene)[name] for name in action.arguments)
        if action.name == "pick":
            yield from pick_candidates(context, item, manipulator=self.manipulator)
        elif action.name == "place":
            for place in self._places(context, item, regions[0]):
                if self._is_on(scene.reparent(item, place.support, pose=place.pose), item, regions[0]):
                    yield place
        else:
            for pushes in _ways(context, item, regions[1]):
                way = np.sum([push.distance * np.asarray(push.direction) for push in pushes], axis=0)
                moved = scene.set_pose(item, scene.local_pose(item) @ Pose(way))
                if self._is_on(moved, item, regions[1]):
                    yield Sequence(pushes, object=item)

    def _places(self, context: ActionContext, item: str, region: str) -> Iterator[Place]:
        """Yield places within a region, in turn with those at which an object overhangs: room for a finger below."""
        scene = context.scene
        inside = (Place.at(item, placement) for placement in context.placements(item, region))
        overhanging: list[Place] = []
        if _support(scene, region) == region:
            lower, upper = (bounds[:2] for bounds in shape_bounds(scene, region))
            middle, ends = (lower + upper) / 2, np.diag((upper - lower) / 2 - _SEATED)
            points = [middle + sign * end for end in ends for sign in (1.0, -1.0)]
            turns = turns_nearest_first(context, item, region)
            poses = [standing_pose(scene, item, region, point=point, turn=turn) for turn in turns for point in points]
            overhanging = [Place(item, region, pose) for pose in poses]
        for pair in itertools.zip_longest(inside, overhanging):
            yield from (place for place in pair if place is not None)

    def _is_on(self, scene: SceneGraph, item: str, region: str) -> bool:
        try:
            return self.support_of(scene, item) == region
        except SceneError:
            return False


def _ways(context: ActionContext, item: str, region: str) -> Iterator[tuple[Push, ...]]:
    """Yield pushes of an object into a region: single ones first, then two around a corner."""
    lower, upper = _room(context.scene, item, region)
    inside = np.minimum(_INSIDE, (upper - lower) / 2)
    lower, upper = lower + inside, upper - inside
    if np.any(lower > upper):
        return
    region_from_item = context.scene.pose(item, relative_to=region)
    axes = [region_from_item.rotate(axis)[:2] for axis in np.eye(3)[:2]]
    for number, axis in enumerate(axes):  # through the rectangle of translations, along one axis
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = np.sort([lower / axis, upper / axis], axis=0)
        flat = np.abs(axis) < 1e-9
        low = np.max(np.where(flat, np.where((lower <= 1e-9) & (upper >= -1e-9), -np.inf, np.inf), bounds[0]))
        high = np.min(np.where(flat, np.inf, bounds[1]))
        for way in (low, (low + high) / 2, high) if np.isfinite([low, high]).all() and low <= high else ():
            if pushes := tuple(_push(item, number, float(way))):
                yield pushes
    points = [(lower + upper) / 2, *context.rng.uniform(lower, upper, (_POINTS, 2))]
    for point in points:
        ways = [dot(axis, np.asarray(point)) for axis in axes]
        for order in ((0, 1), (1, 0)):
            if pushes := tuple(push for number in order for push in _push(item, number, ways[number])):
                yield pushes


def _push(item: str, axis: int, distance: float) -> Iterator[Push]:
    """Yield the push along an axis of the object, against it for a negative distance; none for next to nothing."""
    if abs(distance) >= _LEAST:
        sign = 1.0 if distance > 0.0 else -1.0
        yield Push(item, (sign * (axis == 0), sign * (axis == 1), 0.0), abs(distance))


def _room(scene: SceneGraph, item: str, region: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and largest translation (2,), in the region's axes, that keep a footprint inside the region."""
    corners = footprint(scene, item, scene.pose(item, relative_to=region))
    lower, upper = shape_bounds(scene, region, only_solid=_support(scene, region) == region)
    return lower[:2] - corners.min(axis=0), upper[:2] - corners.max(axis=0)


def _regions(scene: SceneGraph) -> tuple[str, ...]:
    """Return the regions in insertion order."""
    found = {*scene.frames_of_class("region"), *scene.frames_of_class("surface")}
    return tuple(sorted(found, key=scene.frame_id))


def _support(scene: SceneGraph, region: str) -> str:
    """Return what objects on a region rest on."""
    return region if any(part.collision for part in scene.shapes(region)) else str(scene.parent(region))
