"""Domain parts for pushing and pouring."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence as FrameSequence
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
from tmkit.tamp.domains.semantics import ObjectToMove, RestFault
from tmkit.tamp.domains.tabletop import (
    footprint,
    pick_candidates,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
)
from tmkit.tamp.parts.regions import Arguments, Regions, filter_by_class

_MAX_OVERHANG = 2e-4
"""Largest distance by which a footprint extends beyond its region [m]."""

_EDGE_DISTANCE = 0.005
"""Distance of a pushed footprint from the edge of its region, if there is room [m]."""

_CENTRE_DISTANCE = 0.025
"""Distance of the centre of an overhanging object from the edge of its support [m]."""

_MIN_PUSH = 0.002
"""Smallest length of a push [m]."""

_N_POINTS = 12
"""Number of random goal points of pushes in a region."""

_MAX_GRASP_COSINE = 0.5
"""Largest cosine of the angle between the tool and the axis of a grasped filled vessel."""


class Pushing(Regions):
    """Objects that the hand cannot grasp where they lie are pushed from region to region.

    A region without collision shapes may extend beyond the edge of its parent, for objects that
    overhang the edge. An object is ``on`` the smallest region of its parent that contains its whole
    footprint, else on its parent. It is pushed along the axes of its frame in the plane. One push
    is tried first, then two pushes around a corner.
    """

    pddl: ClassVar[str] = """
    (:predicates (connected ?r - region ?s - region))   ; a push leads from ?r to ?s on one support
    (:action push
      :parameters (?arm - arm ?x - item ?from - region ?to - region)
      :precondition (and (on ?x ?from) (connected ?from ?to) (handempty ?arm))
      :effect (and (on ?x ?to) (not (on ?x ?from))))
    """

    def facts_connected(self, scene: SceneGraph) -> Arguments:
        """Yield the pairs of regions on one support."""
        supports = {region: _support(scene, region) for region in self.region_frames(scene)}
        pairs = itertools.permutations(supports, 2)
        yield from ((a, b) for a, b in pairs if supports[a] == supports[b])

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the smallest region that contains the footprint of an object, else its parent.

        Raises:
            SceneError: if there is no such region.
        """
        parent, regions = scene.parent(object), self.region_frames(scene)
        areas = {
            region: float(np.prod((upper - lower)[:2]))
            for region in regions
            if _support(scene, region) == parent
            for lower, upper in [_translation_bounds(scene, object, region)]
            if np.all(lower <= _MAX_OVERHANG) and np.all(upper >= -_MAX_OVERHANG)
        }
        if areas:
            return min(areas, key=lambda region: areas[region])
        if parent is None or parent not in regions:
            raise SceneError(
                f"object '{object}' is on no region (class region or surface) of '{parent}'",
                frame=object,
            )
        return parent

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return None: objects may overhang."""
        del scene, object
        return None

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield nothing: ungraspable objects are pushed, and regions extend beyond edges."""
        del goal_facts, scene
        yield from ()

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield nothing: no object must be picked."""
        del goal_facts, scene
        yield from ()

    def do_push(
        self, context: ActionContext, arm: Manipulator, object: str, start: str, region: str
    ) -> Iterator[Candidate]:
        """Yield pushes that lead to the region."""
        del arm, start
        scene = context.scene
        for pushes in _push_sequences(context, object, region):
            vectors = [push.distance * np.asarray(push.direction) for push in pushes]
            pose = scene.local_pose(object) @ Pose(np.sum(vectors, axis=0))
            if self._is_on(scene.set_pose(object, pose), object, region):
                yield Sequence(pushes, object=object)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places within a region, alternating with places at which the object overhangs.

        An overhang leaves space for a finger below the object.
        """
        del arm
        scene = context.scene
        inside = (Place.at(object, placement) for placement in context.placements(object, region))
        overhanging: list[Place] = []
        if _support(scene, region) == region:
            lower, upper = (bounds[:2] for bounds in shape_bounds(scene, region))
            centre, offsets = (lower + upper) / 2, np.diag((upper - lower) / 2 - _CENTRE_DISTANCE)
            points = [centre + sign * offset for offset in offsets for sign in (1.0, -1.0)]
            turns = turns_nearest_first(context, object, region)
            poses = [
                standing_pose(scene, object, region, point=point, turn=turn)
                for turn in turns
                for point in points
            ]
            overhanging = [Place(object, region, pose) for pose in poses]
        for pair in itertools.zip_longest(inside, overhanging):
            for place in filter(None, pair):
                placed_scene = scene.reparent(object, place.support, pose=place.pose)
                if self._is_on(placed_scene, object, region):
                    yield place

    def _is_on(self, scene: SceneGraph, object: str, region: str) -> bool:
        try:
            return self.region_of(scene, object) == region
        except SceneError:
            return False


class Pouring(Regions):
    """The content of a vessel is poured into another; filled vessels are carried upright.

    A vessel is an object that is upright with its z axis, such as a cup or a bowl. A vessel of
    class ``filled`` is filled, others are empty; pouring moves the class. A filled vessel is
    grasped from its side, so that the hand is not above its rim.
    """

    pddl: ClassVar[str] = """
    (:predicates (filled ?x - item) (empty ?x - item))
    (:action pour
      :parameters (?arm - arm ?x - item ?into - item)
      :precondition (and (holding ?arm ?x) (filled ?x) (empty ?into))
      :effect (and (filled ?into) (empty ?x) (not (filled ?x)) (not (empty ?into))))
    """

    def facts_filled(self, scene: SceneGraph) -> Arguments:
        """Yield the filled vessels."""
        yield from filter_by_class(scene, movable_frames(scene), "filled")

    def facts_empty(self, scene: SceneGraph) -> Arguments:
        """Yield the vessels that are not filled."""
        yield from (
            (frame,) for frame in movable_frames(scene) if "filled" not in scene.classes(frame)
        )

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: FrameSequence[str]
    ) -> Iterator[Fact]:
        """Also yield the stated vessels that are filled in the goal scene."""
        yield from super().goal_facts(scene, objects, goal_frames)
        vessels = (frame for frame in goal_frames if "filled" in scene.classes(frame))
        yield from (self.fact("filled", frame) for frame in vessels)

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, for a filled vessel those from its side."""
        if "filled" not in context.scene.classes(object):
            yield from super().do_pick(context, arm, object, region)
            return
        picks = pick_candidates(context, object, robot=arm)
        side = [pick for pick in picks if isinstance(pick, DeadEnd) or _is_side_grasp(pick.grasp)]
        reason = f"no grasp of '{object}' is by its side, and others are over its rim"
        yield from side or [DeadEnd(reason)]

    def do_pour(
        self, context: ActionContext, arm: Manipulator, object: str, into: str
    ) -> Iterator[Candidate]:
        """Yield pouring motions."""
        yield from pours(context, object, into, arm=arm.name)


def _is_side_grasp(grasp: Grasp) -> bool:
    """Return whether a hand holds a vessel from its side, with no part above the rim."""
    return bool(abs(grasp.object_from_tool.rotate([0.0, 0.0, 1.0])[2]) < _MAX_GRASP_COSINE)


def _push_sequences(context: ActionContext, item: str, region: str) -> Iterator[tuple[Push, ...]]:
    """Yield pushes of an object into a region: single ones first, then two around a corner."""
    lower, upper = _translation_bounds(context.scene, item, region)
    margin = np.minimum(_EDGE_DISTANCE, (upper - lower) / 2)
    lower, upper = lower + margin, upper - margin
    if np.any(lower > upper):
        return
    region_from_item = context.scene.pose(item, relative_to=region)
    axes = [region_from_item.rotate(axis)[:2] for axis in np.eye(3)[:2]]
    for index, axis in enumerate(axes):
        # Intersect the rectangle of translations with the line along the axis.
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = np.sort([lower / axis, upper / axis], axis=0)
        is_parallel = np.abs(axis) < 1e-9
        is_within = (lower <= 1e-9) & (upper >= -1e-9)
        low = np.max(np.where(is_parallel, np.where(is_within, -np.inf, np.inf), bounds[0]))
        high = np.min(np.where(is_parallel, np.inf, bounds[1]))
        if not np.isfinite([low, high]).all() or low > high:
            continue
        for distance in (low, (low + high) / 2, high):
            pushes = tuple(_push_along(item, index, float(distance)))
            if pushes:
                yield pushes
    points = [(lower + upper) / 2, *context.rng.uniform(lower, upper, (_N_POINTS, 2))]
    for point in points:
        distances = [dot(axis, np.asarray(point)) for axis in axes]
        for order in ((0, 1), (1, 0)):
            pushes = tuple(
                push for index in order for push in _push_along(item, index, distances[index])
            )
            if pushes:
                yield pushes


def _push_along(item: str, axis: int, distance: float) -> Iterator[Push]:
    """Yield the push along an axis of the object, if it is long enough.

    A negative distance is a push against the axis.
    """
    if abs(distance) >= _MIN_PUSH:
        sign = 1.0 if distance > 0.0 else -1.0
        yield Push(item, (sign * (axis == 0), sign * (axis == 1), 0.0), abs(distance))


def _translation_bounds(
    scene: SceneGraph, item: str, region: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the translations between which a footprint is inside a region.

    Returns:
        (2,) smallest and (2,) largest translation, in the axes of the region [m].
    """
    corners = footprint(scene, item, scene.pose(item, relative_to=region))
    lower, upper = shape_bounds(scene, region, only_solid=_support(scene, region) == region)
    return lower[:2] - corners.min(axis=0), upper[:2] - corners.max(axis=0)


def _support(scene: SceneGraph, region: str) -> str:
    """Return the frame on which objects on a region rest."""
    is_solid = any(part.collision for part in scene.shapes(region))
    return region if is_solid else str(scene.parent(region))
