"""Objects on regions and in hands: base class of all other domain parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import acos
from tmkit.errors import RobotError, SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.placements.stable_faces import resting_height
from tmkit.manipulation.racks import RACK, rests
from tmkit.motion.regions.solids import solids_of
from tmkit.motion.regions.surfaces import main_area
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.robot_files import Robot
from tmkit.spatial import Pose
from tmkit.tamp.domains.infeasibility import (
    Infeasibility,
    prove_crowded,
    prove_oversized,
    prove_ungraspable,
)
from tmkit.tamp.domains.semantics import ObjectToMove, RestFault, pddl_name
from tmkit.tamp.domains.tabletop import (
    footprint,
    lowest_height,
    pddl_names,
    pick_candidates,
    shape_bounds,
)
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.composition import DomainPart

_IS_UPPER = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=bool)
"""(8, 3) whether a corner of a box has the upper bound of an axis."""

_STANDING_TOLERANCE = 0.005
"""Largest distance of an object from the top of its solid region [m]."""

_VISUAL_TOLERANCE = 0.025
"""The same for a region with visual shapes only, which may be above or below the surface [m]."""

_MAX_LEAN = 0.05
"""Largest lean of an object in a region, which also distinguishes its stable faces [rad]."""

_READY_TOLERANCE = 1e-6
"""Largest joint error in the ready configuration [rad or m]."""

_NEIGHBOUR_DISTANCE = 0.02
"""Horizontal distance below which objects are neighbours [m]."""

_LOWERING_CLEARANCE = 0.01
"""Height above its neighbours from which an object is lowered between them [m]."""

Arguments = Iterator[tuple[str, ...]]
"""The arguments of facts of one predicate: frames, or names of arms."""


@dataclass(frozen=True, eq=False)
class Region:
    """A region, with the rectangle in which objects stand.

    Attributes:
        frame: frame of the region.
        support: parent of the objects on the region.
        lower: (3,) lower corner of the box around the region, in its frame [m].
        upper: (3,) upper corner [m].
    """

    frame: str
    support: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def area(self) -> float:
        """Area of the rectangle [m^2]."""
        return float(np.prod((self.upper - self.lower)[:2]))

    def pose_of(self, scene: SceneGraph, object: str) -> Pose:
        """Return region_from_object of an object that is a child of the support.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        if self.support == self.frame:
            return scene.local_pose(object)
        return scene.pose(object, relative_to=self.frame)

    def overhang(self, scene: SceneGraph, object: str) -> float:
        """Return the distance by which a footprint extends beyond the region, negative inside [m].

        Args:
            scene: the scene.
            object: frame of the object.
        """
        pose, (low, high) = self.pose_of(scene, object), shape_bounds(scene, object)
        bound = self._excess(pose.apply(np.where(_IS_UPPER, high, low))[:, :2])
        return bound if bound <= 0.0 else self._excess(footprint(scene, object, pose))

    def is_below(self, scene: SceneGraph, object: str) -> bool:
        """Return whether a part of an object is above or below the rectangle.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        corners = footprint(scene, object, self.pose_of(scene, object))
        low, high = corners.min(axis=0), corners.max(axis=0)
        return bool(np.all(low < self.upper[:2]) and np.all(high > self.lower[:2]))

    def gap(self, scene: SceneGraph, object: str) -> float:
        """Return the height of an object above the region, negative below its top [m].

        It is 0 within the tolerance of a region with visual shapes only.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        gap = lowest_height(scene, object, self.pose_of(scene, object)) - float(self.upper[2])
        is_visual = self.support != self.frame
        return 0.0 if is_visual and abs(gap) <= _VISUAL_TOLERANCE else gap

    def _excess(self, corners: NDArray[np.float64]) -> float:
        """Return the largest distance of corners (n, 2) beyond the rectangle [m]."""
        return float(max(np.max(self.lower[:2] - corners), np.max(corners - self.upper[:2])))


def require_gripper(robot: Manipulator) -> None:
    """Reject an arm without a gripper, which cannot carry out the action ``pick``.

    Raises:
        RobotError: if the arm has no gripper.
    """
    if robot.gripper_kind == "none":
        reason = (
            "has no gripper (gripper kind 'none'), and the domain picks objects; describe the"
            " gripper, or use a domain that only moves the arm"
        )
        raise RobotError.at(f"robot '{robot.name}'", reason)


class Regions(DomainPart):
    """Objects on regions, picked and placed by arms.

    An object (type ``item``) is a frame of class ``movable``. A region is a frame of one of the
    classes in ``region_classes``, such as a table, a stove or a tray, with objects on its top. A
    region without collision shapes marks an area of its parent. An object is ``on`` the smallest
    region of its parent that contains its whole footprint, upright or on another of its stable
    faces. An object that leans, floats, or extends over the edge at the start is on the region
    below it, until it is taken; placed objects rest. On a region of class
    ``rack`` any stable contact counts, such as hung on a peg or put over a post. Placements come
    from the samplers of the planning run. The rectangles around the shapes of regions count.

    Attributes:
        region_classes: classes that mark a frame as a region.
        overhang: distance by which the footprint of an object may extend beyond its region [m].

    Args:
        robot: the arm.

    Raises:
        RobotError: if the arm has no gripper.
    """

    place_predicates = frozenset({"on", "holding"})
    region_classes: ClassVar[tuple[str, ...]] = ("region", "surface", RACK)
    overhang: ClassVar[float] = 2e-4
    _other_supports: ClassVar[str] = ""  # further supports, for messages
    pddl: ClassVar[str] = """
    (:types item region - object)
    (:predicates
      (on ?x - item ?r - region)             ; ?x stands on ?r with its whole footprint
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

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        require_gripper(self.robot)

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield objects and regions."""
        yield from super().kinds(scene)
        yield "item", movable_frames(scene)
        yield "region", self.region_frames(scene)

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of the regions in insertion order."""
        frames = {frame for name in self.region_classes for frame in scene.frames_of_class(name)}
        return tuple(sorted(frames, key=scene.frame_id))

    @cached_property
    def hands(self) -> dict[str, str]:
        """PDDL names of the arms by their tips, the parents of held objects."""
        return {arm.tip: name for name, arm in self.arms.items()}

    def label(self, object: str) -> str:
        """Return the name of an object with its type in the domain, for messages.

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
        entries, ready = _ready_values(scene, self, name)
        return bool(np.abs(np.asarray(q)[entries] - ready).max() <= _READY_TOLERANCE)

    def held(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the objects in hands."""
        return tuple(frame for frame in movable_frames(scene) if scene.parent(frame) in self.hands)

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the fact that an arm holds an object, or that it is on a region."""
        yield from super().place_facts(scene, object)
        if (arm := self.hands.get(str(scene.parent(object)))) is not None:
            yield self.fact("holding", arm, object)
        elif (region := self.region_of(scene, object)) is not None:
            yield self.fact("on", object, region)

    def false_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the fact that the hand of an arm is empty, which a held object makes false."""
        yield from super().false_facts(scene, object)
        if (arm := self.hands.get(str(scene.parent(object)))) is not None:
            yield self.fact("handempty", arm)

    def conflict_message(self, fact: Fact, first: str, second: str) -> str:
        """Return the message for two objects in one hand, or at one place."""
        if self.fragment_predicate(fact) != "handempty":
            return super().conflict_message(fact, first, second)
        arm = fact.arguments[0] if fact.arguments else self.robot.name
        return f"'{first}' and '{second}' are both in the hand of '{arm}', which holds one object"

    def facts_handempty(self, scene: SceneGraph) -> Arguments:
        """Yield the arms."""
        del scene
        yield from ((name,) for name in self.arms)

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the smallest region that an object is on, or None if another object supports it.

        It may lean, float, or extend over the edge: see :meth:`rest_fault`.

        Args:
            scene: the scene.
            object: frame of the object.

        Raises:
            SceneError: if no part of it is on a region.
        """
        parent, regions = scene.parent(object), compute_regions(scene, self)
        on_parent = [region for region in regions if region.support == parent]
        if on_parent and RACK in scene.classes(str(parent)):
            return parent
        if not on_parent:
            names = ", ".join(region.frame for region in regions) or "none"
            hands = "', '".join(arm.tip for arm in self.arms.values())
            classes = " or ".join(self.region_classes)
            raise SceneError(
                f"{self.label(object)} has parent '{parent}', expected"
                f" {self._other_supports}a frame of class {classes} ({names}) or the hand"
                f" '{hands}'",
                frame=object,
            )
        overhangs = {region.frame: region.overhang(scene, object) for region in on_parent}
        containing_regions = [r for r in on_parent if overhangs[r.frame] <= self.overhang]
        if containing_regions:
            return min(containing_regions, key=lambda region: region.area).frame
        nearest = min(on_parent, key=lambda region: overhangs[region.frame])
        if not any(region.is_below(scene, object) for region in on_parent):
            fault = self._overhang_text(object, nearest.frame, overhangs[nearest.frame])
            raise SceneError(fault, frame=object)
        below = [region for region in on_parent if region.is_below(scene, object)]
        return min(below, key=lambda region: overhangs[region.frame]).frame

    def _overhang_text(self, object: str, region: str, excess: float) -> str:
        """Return the message for an object that extends beyond a region [m]."""
        return (
            f"{self.label(object)} reaches {excess * 1000:.0f} mm beyond the edge of '{region}'; an"
            " object is on a region with all of its footprint"
        )

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why an object leans, floats, is sunk in or overhangs, or None."""
        parent = str(scene.parent(object))
        if parent in self.hands:
            return None
        name = self.region_of(scene, object)
        if name is not None and RACK in scene.classes(name):
            text = f"{self.label(object)} does not rest on '{parent}': it would fall off"
            return None if rests(scene, object) else RestFault(text)
        for region in compute_regions(scene, self):
            if region.frame == name and region.support == parent:
                excess = region.overhang(scene, object)
                if excess > self.overhang:
                    text = self._overhang_text(object, region.frame, excess)
                    return RestFault(text, region.gap(scene, object))
                return _standing_fault(scene, object, region)
        return None

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Yield the region of each stated object, or the fact that a hand holds it.

        Raises:
            SceneError: if an object is in no region of the start and in no hand.
        """
        for frame in goal_frames:
            if (tip := str(scene.parent(frame))) in self.hands:
                yield self.fact("holding", self.hands[tip], frame)
            elif (region := self.goal_region(scene, frame, objects)) is not None:
                yield self.fact("on", frame, region)

    def goal_region(self, scene: SceneGraph, object: str, objects: Mapping[str, str]) -> str | None:
        """Return the region of the start that an object of a goal scene is on.

        Args:
            scene: goal scene.
            object: frame of the object.
            objects: PDDL objects of the start with their types.

        Raises:
            SceneError: if the object is on no region, or does not rest.
        """
        for region in self.region_frames(scene):
            if pddl_name(region) not in objects:
                scene = scene.set_classes(region, ())
        if (fault := self.rest_fault(scene, object)) is not None:
            raise SceneError(fault.text, frame=object)
        return self.region_of(scene, object)

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, from above first."""
        del region
        yield from pick_candidates(context, object, robot=arm)

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
            context: scene and configuration before the action, samplers and arms.
            arm: the arm.
            object: frame of the object.
            region: frame of the region.
        """
        placements = context.placements(object, region, arm=self.arm_name(arm))
        yield from self.filter_placements(context, arm, object, region, placements)

    def arm_name(self, arm: Manipulator) -> str | None:
        """Return the name of an arm for candidates: None if the domain has one arm.

        Args:
            arm: the arm.
        """
        return None if len(self.arms) == 1 else arm.name

    def filter_placements(
        self,
        context: ActionContext,
        arm: Manipulator,
        object: str,
        region: str,
        placements: Iterable[Placement],
    ) -> Iterator[Place]:
        """Yield the placements at which an object is on a region, and on no smaller one.

        Args:
            context: scene and configuration before the action, samplers and arms.
            arm: the arm.
            object: frame of the object.
            region: frame of the region.
            placements: placements of the object.
        """
        scene = context.scene
        for placement in placements:
            placed_scene = scene.reparent(
                object, placement.support, pose=placement.support_from_object
            )
            try:
                actual_region = self.region_of(placed_scene, object)
            except SceneError:
                # The place is not a region of the domain, for example the lower board of a shelf.
                continue
            if actual_region == region and self.rest_fault(placed_scene, object) is None:
                motion = PickPlaceOptions(lift_distance=_lift_height(placed_scene, object))
                place = Place.at(object, placement, arm=self.arm_name(arm))
                yield replace(place, motion=motion)

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return the regions on one of which an object must be for a fact to become true.

        Args:
            fact: fact about the object.
            scene: the scene.
        """
        if self.fragment_predicate(fact) != "on":
            return ()
        return tuple(
            region for region in self.region_frames(scene) if pddl_name(region) == fact.arguments[1]
        )

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield proofs of too small regions and of objects that no hand can hold."""
        objects, facts = pddl_names(movable_frames(scene)), tuple(goal_facts)

        # Collect the objects of each region, and prove that an object is too large.
        objects_by_region: dict[str, dict[str, Fact]] = {}
        for fact in facts:
            regions = (r for r in self.places_for(fact, scene) if RACK not in scene.classes(r))
            region = next(regions, None)
            is_on = self.fragment_predicate(fact) == "on" and fact.arguments[0] in objects
            if is_on and region is not None:
                objects_by_region.setdefault(region, {})[objects[fact.arguments[0]]] = fact
        facts_by_object: dict[str, Fact] = {}
        for move in self.objects_to_move(facts, scene):
            facts_by_object.setdefault(move.object, move.fact)
            proof = self._prove_oversized(scene, move)
            if proof is not None:
                yield proof

        # Prove that objects together are too large.
        for region, group in objects_by_region.items():
            proof = prove_crowded(scene, region, objects=group, overhang=self.overhang)
            if proof is not None:
                yield proof

        # Prove that no arm can hold an object, once for equal objects.
        by_shapes = {
            tuple((attached.shape, attached.pose) for attached in scene.shapes(object)): object
            for object in facts_by_object
        }
        for object in by_shapes.values():
            fact = facts_by_object[object]
            proofs = [
                prove_ungraspable(scene, object, fact=fact, robot=arm) for arm in self.arms.values()
            ]
            if proofs[0] is not None and all(proofs):
                yield proofs[0]

    def _prove_oversized(self, scene: SceneGraph, move: ObjectToMove) -> Infeasibility | None:
        """Prove that an object is too large for each region on which it may be placed."""
        if any(RACK in scene.classes(region) for region in move.regions):
            return None
        proofs = [
            prove_oversized(
                scene, region, object=move.object, fact=move.fact, overhang=self.overhang
            )
            for region in move.regions
        ]
        if not proofs or proofs[0] is None or not all(proofs):
            return None
        return replace(proofs[0], frames=(move.object, *move.regions))

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield objects that are in no hand and on no region that a fact requires."""
        objects, held = pddl_names(movable_frames(scene)), self.held(scene)
        for fact in goal_facts:
            # The first argument of "holding" is an arm, in a domain for several arms.
            is_held = self.fragment_predicate(fact) == "holding"
            object = objects.get(fact.arguments[-1 if is_held else 0]) if fact.arguments else None
            if object is None or object in held or fact.predicate in scene.classes(object):
                continue
            places = self.places_for(fact, scene)
            if is_held or (places and self.region_of(scene, object) not in places):
                yield ObjectToMove(object, fact, places)


def filter_by_class(scene: SceneGraph, frames: Iterable[str], name: str) -> Arguments:
    """Yield the frames that have a class, as arguments of facts.

    Args:
        scene: the scene.
        frames: the frames.
        name: name of the class.
    """
    yield from ((frame,) for frame in frames if name in scene.classes(frame))


@incremental
def _ready_values(
    scene: SceneGraph, part: Regions, name: str
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the entries of an arm in the configuration, and their values when the arm is ready."""
    arm = part.arms[name]
    return arm.joint_indices(scene), np.array([arm.ready[joint] for joint in arm.joints])


@incremental
def compute_regions(scene: SceneGraph, part: Regions) -> tuple[Region, ...]:
    """Return the regions of a scene in insertion order; incremental.

    Raises:
        SceneError: if a region has no shape, or no support.
    """
    regions = []
    for frame in Regions.region_frames(part, scene):
        is_solid = any(attached.collision for attached in scene.shapes(frame))
        solid_ancestors = (
            other
            for other in scene.ancestors(frame)
            if any(attached.collision for attached in scene.shapes(other))
        )
        support = frame if is_solid else next(solid_ancestors, None)
        if support is None:
            fault = f"region '{frame}' has no collision shape, and no ancestor that has one"
            raise SceneError(f"{fault}, so nothing can rest on it", frame=frame)
        bounds = _solid_bounds(scene, frame) if is_solid else None
        bounds = bounds or shape_bounds(scene, frame, only_solid=is_solid)
        regions.append(Region(frame, support, *bounds))
    return tuple(regions)


def _solid_bounds(
    scene: SceneGraph, frame: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the corners of the box below the main surface of a solid region with a rim or lip.

    None for a region without one, whose box is that of its shapes.
    """
    area = main_area(solids_of(scene, frame), frame)
    if area is None:
        return None
    lower, upper = shape_bounds(scene, frame)
    low, high = area
    if float(upper[2] - high[2]) <= _STANDING_TOLERANCE:
        return None
    return np.array([low[0], low[1], lower[2]]), high


def _lift_height(scene: SceneGraph, object: str) -> float | None:
    """Return the height from which an object is lowered between several neighbours [m].

    Without it, a path through a gap of the size of the object would be required. None for the usual
    lift.
    """
    object_low, object_high = _extent(scene, object)
    tops = []
    for other in movable_frames(scene):
        if other != object and scene.parent(other) == scene.parent(object):
            low, high = _extent(scene, other)
            if np.all(np.maximum(low - object_high, object_low - high)[:2] < _NEIGHBOUR_DISTANCE):
                tops.append(float(high[2]))
    if len(tops) < 2:
        return None
    return max(tops) - float(object_low[2]) + _LOWERING_CLEARANCE


def _extent(scene: SceneGraph, object: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners (3,) of the upright box around an object, in its parent [m]."""
    low, high = shape_bounds(scene, object)
    corners = scene.local_pose(object).apply(np.where(_IS_UPPER, high, low))
    return corners.min(axis=0), corners.max(axis=0)


def _standing_fault(scene: SceneGraph, object: str, region: Region) -> RestFault | None:
    """Return the reason why an object leans, floats, or is sunk in, or None."""
    pose, height = region.pose_of(scene, object), -float(shape_bounds(scene, object)[0][2])
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _MAX_LEAN:
        lying = resting_height(
            scene, object, pose.inverse().rotate([0.0, 0.0, -1.0]), tolerance=_MAX_LEAN
        )
        if lying is None:
            text = (
                f"object '{object}' leans by {math.degrees(tilt):.0f} degrees on '{region.frame}';"
                " an object stands upright, or lies on one of its stable faces"
            )
            return RestFault(text, region.gap(scene, object))
        height = lying
    gap = float(pose.translation[2] - height - region.upper[2])
    if abs(gap) > (_STANDING_TOLERANCE if region.support == region.frame else _VISUAL_TOLERANCE):
        side = "above" if gap > 0.0 else "below"
        fault = f"its bottom {abs(gap) * 1000:.0f} mm {side} the top of '{region.frame}'"
        return RestFault(f"object '{object}' has {fault}, on which it should stand", gap)
    return None
