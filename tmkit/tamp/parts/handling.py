"""Domain parts for pushing and pouring."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence as Frames
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, DeadEnd, Place, Sequence
from tmkit.manipulation.actions.pour import pours
from tmkit.manipulation.actions.push import Push
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.infeasibility import Infeasibility
from tmkit.tamp.domains.semantics import ObjectToMove
from tmkit.tamp.domains.tabletop import (
    footprint,
    pick_candidates,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
)
from tmkit.tamp.parts.regions import Arguments, Regions, class_facts

_OVERHANG = 2e-4  # metres that a footprint may reach beyond its region
# metres that a pushed footprint keeps from the edge of its region, where there is room
_INSIDE = 0.005
_SEATED = 0.025  # metres from the edge of a support to the middle of an object that overhangs it
_LEAST = 0.002  # metres of a push worth making
_POINTS = 12  # random places in a region to push to
# cosine of the angle between the tool and the axis of a filled vessel that it takes
_STEEPEST = 0.5


class Pushing(Regions):
    """Objects that the hand cannot grasp where they lie are pushed from region to region.

    A region without collision shapes may reach beyond the edge of its parent, for objects that
    overhang it. An object is ``on`` the smallest region of its parent that holds all of its
    footprint, else on its parent. It is pushed along the axes of its frame that lie in the plane:
    once where that leads to the region, else twice, around a corner.
    """

    pddl: ClassVar[str] = """
    (:predicates (connected ?r - region ?s - region))   ; they lie on one support: a push leads from one to the other
    (:action push
      :parameters (?arm - arm ?x - item ?from - region ?to - region)
      :precondition (and (on ?x ?from) (connected ?from ?to) (handempty ?arm))
      :effect (and (on ?x ?to) (not (on ?x ?from))))
    """

    def facts_connected(self, scene: SceneGraph) -> Arguments:
        """Yield the pairs of regions on one support."""
        supports = {region: _support(scene, region) for region in self.region_frames(scene)}
        yield from (
            (a, b) for a, b in itertools.permutations(supports, 2) if supports[a] == supports[b]
        )

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the smallest region that an object is on with all of its footprint, else its parent.

        Raises:
            SceneError: there is none.
        """
        parent, regions = scene.parent(object), self.region_frames(scene)
        areas = {
            region: float(np.prod((upper - lower)[:2]))
            for region in regions
            if _support(scene, region) == parent
            for lower, upper in [_room(scene, object, region)]
            if np.all(lower <= _OVERHANG) and np.all(upper >= -_OVERHANG)
        }
        if areas:
            return min(areas, key=lambda region: areas[region])
        if parent is None or parent not in regions:
            raise SceneError(
                f"object '{object}' is on no region (class region or surface) of '{parent}'",
                frame=object,
            )
        return parent

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield nothing: what no hand holds is pushed, and regions reach beyond edges."""
        del goal_facts, scene
        yield from ()

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield nothing: no object has to be picked."""
        del goal_facts, scene
        yield from ()

    def do_push(
        self, context: ActionContext, arm: Manipulator, object: str, start: str, region: str
    ) -> Iterator[Candidate]:
        """Yield pushes that lead to the region."""
        del arm, start
        scene = context.scene
        for pushes in _ways(context, object, region):
            way = np.sum([push.distance * np.asarray(push.direction) for push in pushes], axis=0)
            if self._is_on(
                scene.set_pose(object, scene.local_pose(object) @ Pose(way)), object, region
            ):
                yield Sequence(pushes, object=object)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places within a region, in turn with those at which an object overhangs: room for a finger below."""
        del arm
        scene = context.scene
        inside = (Place.at(object, placement) for placement in context.placements(object, region))
        overhanging: list[Place] = []
        if _support(scene, region) == region:
            lower, upper = (bounds[:2] for bounds in shape_bounds(scene, region))
            middle, ends = (lower + upper) / 2, np.diag((upper - lower) / 2 - _SEATED)
            points = [middle + sign * end for end in ends for sign in (1.0, -1.0)]
            turns = turns_nearest_first(context, object, region)
            poses = [
                standing_pose(scene, object, region, point=point, turn=turn)
                for turn in turns
                for point in points
            ]
            overhanging = [Place(object, region, pose) for pose in poses]
        for pair in itertools.zip_longest(inside, overhanging):
            for place in pair:
                if place is not None and self._is_on(
                    scene.reparent(object, place.support, pose=place.pose), object, region
                ):
                    yield place

    def _is_on(self, scene: SceneGraph, object: str, region: str) -> bool:
        try:
            return self.region_of(scene, object) == region
        except SceneError:
            return False


class Pouring(Regions):
    """What is in one vessel is poured into another; what is filled is carried upright.

    A vessel is an object that is upright with its z axis: a cup, a bowl. One of class ``filled`` is
    filled, others are empty; pouring moves the class. A filled vessel is taken by its side, so that
    the hand is not above its rim.
    """

    pddl: ClassVar[str] = """
    (:predicates (filled ?x - item) (empty ?x - item))
    (:action pour
      :parameters (?arm - arm ?x - item ?into - item)
      :precondition (and (holding ?arm ?x) (filled ?x) (empty ?into))
      :effect (and (filled ?into) (empty ?x) (not (filled ?x)) (not (empty ?into))))
    """

    facts_filled = class_facts("filled")

    def facts_empty(self, scene: SceneGraph) -> Arguments:
        """Yield what is not."""
        yield from (
            (frame,) for frame in movable_frames(scene) if "filled" not in scene.classes(frame)
        )

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Frames[str]
    ) -> Iterator[Fact]:
        """Yield also that a stated vessel is to be filled, if it is in the goal scene."""
        yield from super().goal_facts(scene, objects, goal_frames)
        yield from (
            self.fact("filled", frame) for frame in goal_frames if "filled" in scene.classes(frame)
        )

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, of a filled vessel those by its side."""
        if "filled" not in context.scene.classes(object):
            yield from super().do_pick(context, arm, object, region)
            return
        picks = pick_candidates(context, object, manipulator=arm)
        aside = [pick for pick in picks if isinstance(pick, DeadEnd) or _is_aside(pick.grasp)]
        yield from aside or [
            DeadEnd(f"no grasp of '{object}' is by its side, and others are over its rim")
        ]

    def do_pour(
        self, context: ActionContext, arm: Manipulator, object: str, into: str
    ) -> Iterator[Candidate]:
        """Yield ways to pour."""
        yield from pours(context, object, into, arm=arm.name)


def _is_aside(grasp: Grasp) -> bool:
    """Whether a hand holds a vessel by its side, so that nothing of it is over the rim."""
    return bool(abs(grasp.object_from_tool.rotate([0.0, 0.0, 1.0])[2]) < _STEEPEST)


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
        low = np.max(
            np.where(flat, np.where((lower <= 1e-9) & (upper >= -1e-9), -np.inf, np.inf), bounds[0])
        )
        high = np.min(np.where(flat, np.inf, bounds[1]))
        for way in (
            (low, (low + high) / 2, high) if np.isfinite([low, high]).all() and low <= high else ()
        ):
            if pushes := tuple(_push(item, number, float(way))):
                yield pushes
    points = [(lower + upper) / 2, *context.rng.uniform(lower, upper, (_POINTS, 2))]
    for point in points:
        ways = [dot(axis, np.asarray(point)) for axis in axes]
        for order in ((0, 1), (1, 0)):
            if pushes := tuple(
                push for number in order for push in _push(item, number, ways[number])
            ):
                yield pushes


def _push(item: str, axis: int, distance: float) -> Iterator[Push]:
    """Yield the push along an axis of the object, against it for a negative distance; none for next to nothing."""
    if abs(distance) >= _LEAST:
        sign = 1.0 if distance > 0.0 else -1.0
        yield Push(item, (sign * (axis == 0), sign * (axis == 1), 0.0), abs(distance))


def _room(
    scene: SceneGraph, item: str, region: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and largest translation (2,), in the region's axes, that keep a footprint inside the region."""
    corners = footprint(scene, item, scene.pose(item, relative_to=region))
    lower, upper = shape_bounds(scene, region, only_solid=_support(scene, region) == region)
    return lower[:2] - corners.min(axis=0), upper[:2] - corners.max(axis=0)


def _support(scene: SceneGraph, region: str) -> str:
    """Return what objects on a region rest on."""
    return (
        region
        if any(part.collision for part in scene.shapes(region))
        else str(scene.parent(region))
    )
