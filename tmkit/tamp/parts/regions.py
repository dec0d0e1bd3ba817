"""Objects on regions, in hands: the part that every other one builds on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import acos
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.placements.stable_faces import resting_height
from tmkit.manipulation.racks import RACK, rests
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.infeasibility import (
    Infeasibility,
    prove_crowded,
    prove_oversized,
    prove_ungraspable,
)
from tmkit.tamp.domains.semantics import ObjectToMove, pddl_name
from tmkit.tamp.domains.tabletop import footprint, pddl_names, pick_candidates, shape_bounds
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.composition import DomainPart

# which bounds a corner has
_SIDES = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=bool)
_STANDS = 0.005  # metres that an object may be above or below the top of its region
_MARKED = 0.025  # the same for a region that only marks an area, and may be drawn above or below it
_REGION_LEAN = 0.05
"""Angle by which an object may lean in a region, where stable faces are told apart by it [rad]."""

_READY = 1e-6  # radians or metres by which a joint may miss its value in the ready configuration
_BESIDE = 0.02  # metres between neighbours, from above
_OVER = 0.01  # metres above its neighbours from which an object is lowered between them

Arguments = Iterator[tuple[str, ...]]
"""The arguments of facts of one predicate: frames, or names of arms."""


@dataclass(frozen=True, eq=False)
class Region:
    """A region: the parent of objects on it, and the rectangle that they stand in, in the region's frame."""

    frame: str
    support: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def area(self) -> float:
        """Square metres."""
        return float(np.prod((self.upper - self.lower)[:2]))

    def pose_of(self, scene: SceneGraph, object: str) -> Pose:
        """Return the pose of an object that is a child of the support, in the region's frame.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        return (
            scene.local_pose(object)
            if self.support == self.frame
            else scene.pose(object, relative_to=self.frame)
        )

    def overhang(self, scene: SceneGraph, object: str) -> float:
        """Return by how many metres the footprint of an object reaches beyond the region; negative inside.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        pose, (low, high) = self.pose_of(scene, object), shape_bounds(scene, object)
        around = self._beyond(pose.apply(np.where(_SIDES, high, low))[:, :2])
        return around if around <= 0.0 else self._beyond(footprint(scene, object, pose))

    def _beyond(self, corners: NDArray[np.float64]) -> float:
        return float(max(np.max(self.lower[:2] - corners), np.max(corners - self.upper[:2])))


class Regions(DomainPart):
    """Objects on regions, picked and placed by arms.

    An object (type ``item``) is a frame of class ``movable``, a region one of the classes in
    ``region_classes``: a table, a stove, a tray, on whose top objects stand. A region without
    collision shapes marks an area of its parent. An object is ``on`` the smallest region of its
    parent that holds all of its footprint, upright or on another of its stable faces; one that
    leans, floats, or stands over the edge is refused. On a region of class ``rack`` it is in
    whatever way it rests there: hung on a peg, put over a post. Placements come from the samplers
    of the planning run. Regions count with the rectangles around their shapes.

    Attributes:
        region_classes: classes that mark a frame as a region.
        overhang: metres by which the footprint of an object may reach beyond its region.
    """

    place_predicates = frozenset({"on", "holding"})
    region_classes: ClassVar[tuple[str, ...]] = ("region", "surface", RACK)
    overhang: ClassVar[float] = 2e-4
    _also_on: ClassVar[str] = ""
    pddl: ClassVar[str] = """
    (:types item region - object)
    (:predicates
      (on ?x - item ?r - region)             ; ?x stands on ?r, all of its footprint
      (holding ?arm - arm ?x - item)
      (handempty ?arm - arm))
    (:action pick
      :parameters (?arm - arm ?x - item ?r - region)
      :precondition (and (on ?x ?r) (handempty ?arm))
      :effect (and (holding ?arm ?x) (not (on ?x ?r)) (not (handempty ?arm))))
    (:action place
      :parameters (?arm - arm ?x - item ?r - region)
      :precondition (holding ?arm ?x)
      :effect (and (on ?x ?r) (handempty ?arm) (not (holding ?arm ?x))))
    """

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield objects and regions."""
        yield from super().kinds(scene)
        yield "item", movable_frames(scene)
        yield "region", self.region_frames(scene)

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of the regions in insertion order."""
        found = {frame for name in self.region_classes for frame in scene.frames_of_class(name)}
        return tuple(sorted(found, key=scene.frame_id))

    @cached_property
    def hands(self) -> dict[str, str]:
        """The PDDL names of the arms by their tips, the parents of what they hold."""
        return {arm.tip: name for name, arm in self.arms.items()}

    def named(self, object: str) -> str:
        """Return an object with its type in the domain, for messages.

        Args:
            object: frame of the object.
        """
        return f"{self.words.get('item', 'object')} '{object}'"

    def is_ready(self, scene: SceneGraph, q: Configuration, name: str) -> bool:
        """Return whether an arm is at its ready configuration.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
            name: PDDL name of the arm.
        """
        entries, ready = _ready(scene, self, name)
        return bool(np.abs(np.asarray(q)[entries] - ready).max() <= _READY)

    def held(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the objects that are in hands."""
        return tuple(frame for frame in movable_frames(scene) if scene.parent(frame) in self.hands)

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield by which arm an object is held, or on which region it is."""
        yield from super().place_facts(scene, object)
        if (arm := self.hands.get(str(scene.parent(object)))) is not None:
            yield self.fact("holding", arm, object)
        elif (region := self.region_of(scene, object)) is not None:
            yield self.fact("on", object, region)

    def taken_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield that the hand of an arm is not empty."""
        yield from super().taken_facts(scene, object)
        if (arm := self.hands.get(str(scene.parent(object)))) is not None:
            yield self.fact("handempty", arm)

    def taken_twice(self, fact: Fact, first: str, second: str) -> str:
        """Return the message for two objects in one hand, or at one place."""
        if self.word(fact) != "handempty":
            return super().taken_twice(fact, first, second)
        arm = fact.arguments[0] if fact.arguments else self.manipulator.name
        return f"'{first}' and '{second}' are both in the hand of '{arm}', which holds one object"

    def facts_handempty(self, scene: SceneGraph) -> Arguments:
        """Yield the arms."""
        del scene
        yield from ((name,) for name in self.arms)

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the smallest region that an object is on, or None for one that stands on something else.

        Args:
            scene: the scene.
            object: frame of the object.

        Raises:
            SceneError: it is on none, or does not stand as it should.
        """
        parent, regions = scene.parent(object), kept_regions(scene, self)
        on_parent = [region for region in regions if region.support == parent]
        if on_parent and RACK in scene.classes(str(parent)):
            if not rests(scene, object):
                raise SceneError(
                    f"{self.named(object)} does not rest on '{parent}': it would fall off",
                    frame=object,
                )
            return parent
        if not on_parent:
            known = ", ".join(region.frame for region in regions) or "none"
            hands = "', '".join(arm.tip for arm in self.arms.values())
            raise SceneError(
                f"{self.named(object)} has parent '{parent}', which is no"
                f" {self._also_on}{self.region_classes[0]} (class"
                f" {' or '.join(self.region_classes)}: {known}) and not the hand '{hands}'",
                frame=object,
            )
        beyond = {region.frame: region.overhang(scene, object) for region in on_parent}
        holding = [region for region in on_parent if beyond[region.frame] <= self.overhang]
        if not holding:
            nearest = min(on_parent, key=lambda region: beyond[region.frame]).frame
            what = (
                f"{self.named(object)} reaches {beyond[nearest] * 1000:.0f} mm beyond the edge of"
                f" '{nearest}'"
            )
            raise SceneError(
                f"{what}; an object is on a region with all of its footprint", frame=object
            )
        found = min(holding, key=lambda region: region.area)
        _require_standing(scene, object, found)
        return found.frame

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Yield on which region each stated object is to be, or that a hand is to hold it.

        Raises:
            SceneError: an object that is in no region of the start and not in a hand.
        """
        for frame in goal_frames:
            if (tip := str(scene.parent(frame))) in self.hands:
                yield self.fact("holding", self.hands[tip], frame)
            elif (region := self.goal_region(scene, frame, objects)) is not None:
                yield self.fact("on", frame, region)

    def goal_region(self, scene: SceneGraph, object: str, objects: Mapping[str, str]) -> str | None:
        """Return the region of the start that an object of a goal scene is on, as by :meth:`region_of`.

        Args:
            scene: the scene.
            object: frame of the object.
            objects: the PDDL objects of the start with their types.
        """
        if all(pddl_name(region) in objects for region in self.region_frames(scene)):
            return self.region_of(scene, object)
        for region in self.region_frames(scene):
            if pddl_name(region) not in objects:
                scene = scene.set_classes(region, ())
        return self.region_of(scene, object)

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, from above first."""
        del region
        yield from pick_candidates(context, object, manipulator=arm)

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places at which an object is on a region, and on no smaller one."""
        yield from self.places(context, arm, object, region)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places at which an object is on a region, and on no smaller one.

        Args:
            context: where the action is to be carried out.
            arm: the arm.
            object: frame of the object.
            region: frame of the region.
        """
        named = None if len(self.arms) == 1 else arm.name
        yield from self.resting(
            context, arm, object, region, context.placements(object, region, arm=named)
        )

    def resting(
        self,
        context: ActionContext,
        arm: Manipulator,
        object: str,
        region: str,
        placements: Iterable[Placement],
    ) -> Iterator[Place]:
        """Yield those of some placements at which an object is on a region, and on no smaller one.

        Args:
            context: where the action is to be carried out.
            arm: the arm.
            object: frame of the object.
            region: frame of the region.
            placements: the placements.
        """
        scene, named = context.scene, None if len(self.arms) == 1 else arm.name
        for placement in placements:
            resting = scene.reparent(object, placement.support, pose=placement.support_from_object)
            try:
                found = self.region_of(resting, object)
            except SceneError:
                # a place of which the domain has no words, as the lower board of a shelf
                continue
            if found == region:
                motion = PickPlaceOptions(lift_distance=_lift_among(resting, object))
                yield replace(Place.at(object, placement, arm=named), motion=motion)

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return the regions on one of which an object must be for a fact about it to become true.

        Args:
            fact: the fact.
            scene: the scene.
        """
        if self.word(fact) != "on":
            return ()
        return tuple(
            region for region in self.region_frames(scene) if pddl_name(region) == fact.arguments[1]
        )

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield proofs that a goal is impossible: regions too small for their objects, objects no hand can hold."""
        objects, facts = pddl_names(movable_frames(scene)), tuple(goal_facts)
        together: dict[str, dict[str, Fact]] = {}
        for fact in facts:
            level = [
                place for place in self.places_for(fact, scene) if RACK not in scene.classes(place)
            ]
            if self.word(fact) == "on" and fact.arguments[0] in objects and level:
                together.setdefault(level[0], {})[objects[fact.arguments[0]]] = fact
        moved: dict[str, Fact] = {}
        for one in self.objects_to_move(facts, scene):
            object, fact, places = one.object, one.fact, one.regions
            moved.setdefault(object, fact)
            if any(RACK in scene.classes(place) for place in places):
                continue
            misfits = [
                prove_oversized(scene, place, object=object, fact=fact, overhang=self.overhang)
                for place in places
            ]
            if misfits and all(misfits):
                yield from (
                    replace(proof, frames=(object, *places))
                    for proof in misfits[:1]
                    if proof is not None
                )
        crowds = (
            prove_crowded(scene, region, objects=group, overhang=self.overhang)
            for region, group in together.items()
        )
        alike = {
            tuple((a.shape, a.pose) for a in scene.shapes(object)): (object, f)
            for object, f in moved.items()
        }
        held = (
            [
                prove_ungraspable(scene, object, fact=fact, manipulator=arm)
                for arm in self.arms.values()
            ]
            for object, fact in alike.values()
        )
        yield from filter(None, (*crowds, *(proofs[0] for proofs in held if all(proofs))))

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield objects that are on no region where a fact wants them, and in no hand."""
        objects, held = pddl_names(movable_frames(scene)), self.held(scene)
        for fact in goal_facts:
            is_held = self.word(fact) == "holding"  # of an arm, in a domain of several
            object = objects.get(fact.arguments[-1 if is_held else 0]) if fact.arguments else None
            if object is None or object in held or fact.predicate in scene.classes(object):
                continue
            places = self.places_for(fact, scene)
            if is_held or (places and self.region_of(scene, object) not in places):
                yield ObjectToMove(object, fact, places)


def class_facts(
    name: str, *, of_regions: bool = False
) -> Callable[[Regions, SceneGraph], Arguments]:
    """Return the method of a part that yields the objects of a class, or the regions."""

    def facts(self: Regions, scene: SceneGraph) -> Arguments:
        frames = self.region_frames(scene) if of_regions else movable_frames(scene)
        yield from ((frame,) for frame in frames if name in scene.classes(frame))

    return facts


@incremental
def _ready(
    scene: SceneGraph, part: Regions, name: str
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the entries of an arm in the configuration, and their values when it is ready."""
    arm = part.arms[name]
    return arm.joint_indices(scene), np.array([arm.ready[joint] for joint in arm.joints])


@incremental
def kept_regions(scene: SceneGraph, part: Regions) -> tuple[Region, ...]:
    """Return the regions of a scene in insertion order; incremental.

    Raises:
        SceneError: a region that marks an area of nothing, or has no shape.
    """
    found = []
    for frame in Regions.region_frames(part, scene):
        is_solid = any(attached.collision for attached in scene.shapes(frame))
        above = (
            other
            for other in scene.ancestors(frame)
            if any(attached.collision for attached in scene.shapes(other))
        )
        support = frame if is_solid else next(above, None)
        if support is None:
            what = f"region '{frame}' has no collision shape, and no ancestor that has one"
            raise SceneError(f"{what}, so nothing can rest on it", frame=frame)
        found.append(Region(frame, support, *shape_bounds(scene, frame, only_solid=is_solid)))
    return tuple(found)


def _lift_among(scene: SceneGraph, object: str) -> float | None:
    """Return how far above its place an object is when it is lowered: above its neighbours where it has several.

    Between them a path would have to be found through a gap of its own size. None for the usual
    lift.
    """
    own_low, own_high = _extent(scene, object)
    tops = []
    for other in movable_frames(scene):
        if other != object and scene.parent(other) == scene.parent(object):
            low, high = _extent(scene, other)
            if np.all(np.maximum(low - own_high, own_low - high)[:2] < _BESIDE):
                tops.append(float(high[2]))
    return max(tops) - float(own_low[2]) + _OVER if len(tops) > 1 else None


def _extent(scene: SceneGraph, object: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners (3,) of the upright box around an object, in its parent."""
    low, high = shape_bounds(scene, object)
    corners = scene.local_pose(object).apply(np.where(_SIDES, high, low))
    return corners.min(axis=0), corners.max(axis=0)


def _require_standing(scene: SceneGraph, object: str, region: Region) -> None:
    """Refuse an object that leans, floats, or is sunk in."""
    pose, height = region.pose_of(scene, object), -float(shape_bounds(scene, object)[0][2])
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _REGION_LEAN:
        lying = resting_height(
            scene, object, pose.inverse().rotate([0.0, 0.0, -1.0]), tolerance=_REGION_LEAN
        )
        if lying is None:
            what = (
                f"object '{object}' leans by {math.degrees(tilt):.0f} degrees on '{region.frame}'"
            )
            raise SceneError(
                f"{what}; an object stands upright, or lies on one of its stable faces",
                frame=object,
            )
        height = lying
    gap = float(pose.translation[2] - height - region.upper[2])
    if abs(gap) > (_STANDS if region.support == region.frame else _MARKED):
        where = (
            f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'} the top of"
            f" '{region.frame}'"
        )
        raise SceneError(
            f"object '{object}' has its bottom {where}, on which it should stand", frame=object
        )
