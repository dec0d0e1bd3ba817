"""Domain parts for objects that stand upright in the middle of a region or of another object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, DeadEnd, Place
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import is_movable
from tmkit.tamp.domains.infeasibility import Infeasibility, prove_too_high, stays_upright
from tmkit.tamp.domains.semantics import ObjectToMove, RestFault
from tmkit.tamp.domains.tabletop import (
    STANDING_TOLERANCE,
    pddl_names,
    pick_candidates,
    require_above,
    shape_bounds,
    standing_fault,
    standing_pose,
    turns_nearest_first,
)
from tmkit.tamp.parts.regions import Arguments, Region, Regions, compute_regions

_MIN_TOWER_COSINE = 0.99
"""Smallest cosine of the lean of the lowest object of a tower, which leans as a whole."""


class Slots(Regions):
    """Regions for one object each, upright in the middle.

    The object may be wider than its region.
    """

    overhang = math.inf
    pddl: ClassVar[str] = """
    (:predicates (free ?r - region))         ; nothing stands on ?r
    (:extend (pick) :effect (free ?r))
    (:extend (place place-upside-down) :precondition (free ?r) :effect (not (free ?r)))
    """

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the region that is the parent of an object.

        Raises:
            SceneError: if the parent is not a region, or the object stands beside it.
        """
        parent = str(scene.parent(object))
        if parent not in self.region_frames(scene):
            return super().region_of(scene, object)
        require_above(scene, object, kind=self.words.get("item", ""))
        return parent

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why an object leans, floats, or is sunk in, or None."""
        if str(scene.parent(object)) not in self.region_frames(scene):
            return super().rest_fault(scene, object)
        return standing_fault(scene, object, kind=self.words.get("item", ""))

    def facts_free(self, scene: SceneGraph) -> Arguments:
        """Yield the regions."""
        yield from ((region,) for region in self.region_frames(scene))

    def false_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the fact that the region of an object is free."""
        yield from super().false_facts(scene, object)
        if scene.parent(object) in self.hands:
            return
        region = self.region_of(scene, object)
        if region is not None:
            yield self.fact("free", region)

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield objects that must be picked; their footprints need no space on regions."""
        moves = super().objects_to_move(goal_facts, scene)
        yield from (replace(move, regions=()) for move in moves)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield quarter turns in the middle of a region, smallest rotation of the object first."""
        yield from central_places(context, object, region, arm_name=self.arm_name(arm))


class Stacking(Regions):
    """Objects on objects, one on each.

    An object is ``stacked`` on the object that is its parent, upright on its top. It is placed in
    the middle.
    """

    place_predicates = frozenset({"stacked", "clear"})
    _other_supports = "a movable object, "
    pddl: ClassVar[str] = """
    (:predicates
      (stacked ?x - item ?y - item)          ; ?x stands on ?y
      (clear ?x - item))                     ; ?x is in no hand, and nothing stands on it
    (:action stack
      :parameters (?arm - arm ?x - item ?y - item)
      :precondition (and (holding ?arm ?x) (clear ?y))
      :effect (and (stacked ?x ?y) (clear ?x) (handempty ?arm)
                   (not (holding ?arm ?x)) (not (clear ?y))))
    (:action unstack
      :parameters (?arm - arm ?x - item ?y - item)
      :precondition (and (stacked ?x ?y) (clear ?x) (handempty ?arm))
      :effect (and (holding ?arm ?x) (clear ?y)
                   (not (stacked ?x ?y)) (not (clear ?x)) (not (handempty ?arm))))
    (:extend (pick uncover push) :precondition (clear ?x))
    (:extend (pick uncover) :effect (not (clear ?x)))
    (:extend (place place-upside-down cover) :effect (clear ?x))
    """

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the region that an object is on; None for a stacked object.

        Raises:
            SceneError: if the object is on no region, or beside the object that is its parent.
        """
        if not _is_stacked(scene, object):
            return super().region_of(scene, object)
        require_above(scene, object, kind=self.words.get("item", ""))
        return None

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why an object, or one below it, leans or floats, or None."""
        if not _is_stacked(scene, object):
            return super().rest_fault(scene, object)
        fault = standing_fault(scene, object, kind=self.words.get("item", ""))
        below = str(scene.parent(object))
        if fault is None and (fault_below := self.rest_fault(scene, below)) is not None:
            return RestFault(f"{self.label(object)} is on '{below}': {fault_below.text}")
        return fault

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Also yield the object below an object, and whether the object is clear.

        An object in a hand is not clear.
        """
        yield from super().place_facts(scene, object)
        if _is_stacked(scene, object):
            yield self.fact("stacked", object, str(scene.parent(object)))
        if scene.parent(object) not in self.hands:
            yield self.fact("clear", object)

    def false_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the fact that the object below an object is clear."""
        yield from super().false_facts(scene, object)
        if _is_stacked(scene, object):
            yield self.fact("clear", str(scene.parent(object)))

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Also yield the object on which each stated object should stand.

        The exact pose on that object does not count.
        """
        stacked = [frame for frame in goal_frames if _is_stacked(scene, frame)]
        yield from super().goal_facts(
            scene, objects, [frame for frame in goal_frames if frame not in stacked]
        )
        yield from (self.fact("stacked", frame, str(scene.parent(frame))) for frame in stacked)

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Also yield objects that should be on others, and are neither there nor in a hand."""
        facts, objects = tuple(goal_facts), pddl_names(movable_frames(scene))
        yield from super().objects_to_move(facts, scene)
        for fact in facts:
            if self.fragment_predicate(fact) == "stacked":
                object, below = (objects[name] for name in fact.arguments)
                if scene.parent(object) not in (below, *self.hands):
                    yield ObjectToMove(object, fact)

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Also yield the proof that an arm cannot reach the top of a tower.

        The proof is for the lowest object of which this holds.
        """
        facts, objects = tuple(goal_facts), pddl_names(movable_frames(scene))
        yield from super().infeasibilities(facts, scene)
        stacked = {
            fact.arguments[0]: fact for fact in facts if self.fragment_predicate(fact) == "stacked"
        }
        floors = [_min_floor_height(scene, region) for region in compute_regions(scene, self)]
        floor = min(floors, default=-math.inf)

        # Compute the height of the bottom of each object on a tower.
        towers: list[tuple[float, str, str]] = []
        for top, fact in stacked.items():
            name, below = top, list[str]()
            while name in stacked and len(below) < len(objects):
                name = stacked[name].arguments[1]
                below.append(objects[name])
            is_stacked_now = scene.parent(objects[fact.arguments[0]]) == below[0]
            if is_stacked_now or not _is_upright(scene, below[-1]):
                continue
            bounds = (shape_bounds(scene, frame) for frame in below)
            height = sum(float(upper[2] - lower[2]) - STANDING_TOLERANCE for lower, upper in bounds)
            towers.append((floor + height - STANDING_TOLERANCE, fact.arguments[0], below[-1]))

        # Prove that no arm reaches the lowest of these objects that is too high.
        for bottom, name, lowest in sorted(towers):
            object, fact = objects[name], stacked[name]
            proofs = [
                prove_too_high(scene, object, bottom=bottom, fact=fact, robot=arm)
                for arm in self.arms.values()
            ]
            if proofs[0] is not None and all(proofs):
                yield replace(proofs[0], upright=(lowest,))
                return

    def do_stack(
        self, context: ActionContext, arm: Manipulator, object: str, below: str
    ) -> Iterator[Candidate]:
        """Yield turns in which the object is placed on the other object, which must rest."""
        if (fault := self.rest_fault(context.scene, below)) is not None:
            yield DeadEnd(f"nothing can be placed on '{below}': {fault.text}")
            return
        yield from central_places(context, object, below, arm_name=self.arm_name(arm))

    def do_unstack(
        self, context: ActionContext, arm: Manipulator, object: str, below: str
    ) -> Iterator[Candidate]:
        """Yield grasps of the upper object."""
        del below
        yield from pick_candidates(context, object, robot=arm)


def central_places(
    context: ActionContext, object: str, support: str, *, arm_name: str | None
) -> Iterator[Place]:
    """Yield quarter turns in which an object stands in the middle of its support.

    Args:
        context: scene and configuration before the action.
        object: frame of the object.
        support: frame of the support.
        arm_name: name of the arm, or None if the domain has one arm.
    """
    for turn in turns_nearest_first(context, object, support):
        pose = standing_pose(context.scene, object, support, point=(0.0, 0.0), turn=turn)
        yield Place(object, support, pose, arm=arm_name)


def _min_floor_height(scene: SceneGraph, region: Region) -> float:
    """Return a lower bound of the height of objects on a region, in the root [m].

    The bound is -inf if joints move the region.
    """
    chain = (region.frame, *scene.ancestors(region.frame))
    if any(scene.joint(frame).is_actuated for frame in chain):
        return -math.inf
    height = (region.upper if "surface" in scene.classes(region.frame) else region.lower)[2]
    corners = [
        [x, y, height]
        for x in (region.lower[0], region.upper[0])
        for y in (region.lower[1], region.upper[1])
    ]
    q = scene.zero_configuration()
    root_from_region = scene.pose(region.frame, relative_to=scene.root(region.frame), q=q)
    return float(root_from_region.apply(corners)[:, 2].min())


def _is_upright(scene: SceneGraph, object: str) -> bool:
    """Return whether the lowest object of a tower is upright and stays upright.

    Facts require that the objects on it are upright.
    """
    q = scene.zero_configuration()
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    is_upright = bool(root_from_object.rotate([0.0, 0.0, 1.0])[2] > _MIN_TOWER_COSINE)
    return is_upright and stays_upright(scene, object)


def _is_stacked(scene: SceneGraph, object: str) -> bool:
    parent = scene.parent(object)
    return parent is not None and is_movable(scene, parent)
