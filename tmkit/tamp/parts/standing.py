"""Objects that stand upright on the middle of what is below them: one on a region, one on another object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import is_movable
from tmkit.tamp.domains.infeasibility import Infeasibility, prove_too_high, stays_upright
from tmkit.tamp.domains.semantics import ObjectToMove
from tmkit.tamp.domains.tabletop import (
    STANDING_TOLERANCE,
    pddl_names,
    pick_candidates,
    require_standing,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
)
from tmkit.tamp.parts.regions import Arguments, Region, Regions, kept_regions

_TOWER_UPRIGHT = 0.99
"""Least cosine of the angle by which the lowest object of a tower leans: what stands on it leans as well."""


class Slots(Regions):
    """Regions have room for one object each, upright in the middle; it may be wider than its region."""

    overhang = math.inf
    pddl: ClassVar[str] = """
    (:predicates (free ?r - region))         ; nothing stands on ?r
    (:extend (pick) :effect (free ?r))
    (:extend (place place-upside-down) :precondition (free ?r) :effect (not (free ?r)))
    """

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the region that is the parent of an object.

        Raises:
            SceneError: there is none, or it leans, floats, or stands beside it.
        """
        parent = str(scene.parent(object))
        if parent not in self.region_frames(scene):
            return super().region_of(scene, object)
        require_standing(scene, object, kind=self.words.get("item", ""))
        return parent

    def facts_free(self, scene: SceneGraph) -> Arguments:
        """Yield the regions."""
        yield from ((region,) for region in self.region_frames(scene))

    def taken_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield that the region on which an object stands is not free."""
        yield from super().taken_facts(scene, object)
        if (
            scene.parent(object) not in self.hands
            and (region := self.region_of(scene, object)) is not None
        ):
            yield self.fact("free", region)

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield objects that have to be picked; their footprints need no room on regions."""
        yield from (replace(one, regions=()) for one in super().objects_to_move(goal_facts, scene))

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield quarter turns in the middle of a region, the one that turns the object least first."""
        yield from in_the_middle(context, object, region, arm=arm if len(self.arms) > 1 else None)


class Stacking(Regions):
    """Objects stand on objects, one on one.

    An object is ``stacked`` on the object that is its parent, upright on its top; it is put there
    in the middle.
    """

    place_predicates = frozenset({"stacked", "clear"})
    _also_on = "movable object, no "
    pddl: ClassVar[str] = """
    (:predicates
      (stacked ?x - item ?y - item)          ; ?x stands on ?y
      (clear ?x - item))                     ; ?x is in no hand, and nothing stands on it
    (:action stack
      :parameters (?arm - arm ?x - item ?y - item)
      :precondition (and (holding ?arm ?x) (clear ?y))
      :effect (and (stacked ?x ?y) (clear ?x) (handempty ?arm) (not (holding ?arm ?x)) (not (clear ?y))))
    (:action unstack
      :parameters (?arm - arm ?x - item ?y - item)
      :precondition (and (stacked ?x ?y) (clear ?x) (handempty ?arm))
      :effect (and (holding ?arm ?x) (clear ?y) (not (stacked ?x ?y)) (not (clear ?x)) (not (handempty ?arm))))
    (:extend (pick uncover push) :precondition (clear ?x))
    (:extend (pick uncover) :effect (not (clear ?x)))
    (:extend (place place-upside-down cover) :effect (clear ?x))
    """

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the region that an object is on; None for one that is stacked.

        Raises:
            SceneError: it is on none, or does not stand as it should.
        """
        if not _is_stacked(scene, object):
            return super().region_of(scene, object)
        require_standing(scene, object, kind=self.words.get("item", ""))
        return None

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield also on which object an object stands, and that a hand may take it from there."""
        yield from super().place_facts(scene, object)
        if _is_stacked(scene, object):
            yield self.fact("stacked", object, str(scene.parent(object)))
        if scene.parent(object) not in self.hands:
            yield self.fact("clear", object)

    def taken_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield that nothing else can be put on the object on which an object stands."""
        yield from super().taken_facts(scene, object)
        if _is_stacked(scene, object):
            yield self.fact("clear", str(scene.parent(object)))

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Yield also on which object each stated one is to stand; where on it, and whether well, does not count."""
        stacked = [frame for frame in goal_frames if _is_stacked(scene, frame)]
        yield from super().goal_facts(
            scene, objects, [frame for frame in goal_frames if frame not in stacked]
        )
        yield from (self.fact("stacked", frame, str(scene.parent(frame))) for frame in stacked)

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield also objects that are to be on others, and are neither there nor in a hand."""
        facts, objects = tuple(goal_facts), pddl_names(movable_frames(scene))
        yield from super().objects_to_move(facts, scene)
        for fact in facts:
            if self.word(fact) == "stacked":
                object, below = (objects[name] for name in fact.arguments)
                if scene.parent(object) not in (below, *self.hands):
                    yield ObjectToMove(object, fact)

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield also that a tower is higher than the arms reach, for the lowest object that is."""
        facts, objects = tuple(goal_facts), pddl_names(movable_frames(scene))
        yield from super().infeasibilities(facts, scene)
        wanted = {fact.arguments[0]: fact for fact in facts if self.word(fact) == "stacked"}
        floor = min(
            (_floor(scene, region) for region in kept_regions(scene, self)), default=-math.inf
        )
        towers: list[tuple[float, str, str]] = []
        for name, fact in wanted.items():
            under: list[str] = []
            while name in wanted and len(under) < len(objects):
                name = wanted[name].arguments[1]
                under.append(objects[name])
            if scene.parent(objects[fact.arguments[0]]) != under[0] and _is_upright(
                scene, under[-1]
            ):
                bounds = (shape_bounds(scene, frame) for frame in under)
                height = sum(
                    float(upper[2] - lower[2]) - STANDING_TOLERANCE for lower, upper in bounds
                )
                towers.append((floor + height - STANDING_TOLERANCE, fact.arguments[0], under[-1]))
        for bottom, name, lowest in sorted(towers):
            arms, fact = self.arms.values(), wanted[name]
            found = [
                prove_too_high(scene, objects[name], bottom=bottom, fact=fact, manipulator=arm)
                for arm in arms
            ]
            if all(found):
                yield from (
                    replace(proof, upright=(lowest,)) for proof in found[:1] if proof is not None
                )
                return

    def do_stack(
        self, context: ActionContext, arm: Manipulator, object: str, below: str
    ) -> Iterator[Candidate]:
        """Yield turns in which the object is put on the other."""
        yield from in_the_middle(context, object, below, arm=arm if len(self.arms) > 1 else None)

    def do_unstack(
        self, context: ActionContext, arm: Manipulator, object: str, below: str
    ) -> Iterator[Candidate]:
        """Yield grasps."""
        del below
        yield from pick_candidates(context, object, manipulator=arm)


def in_the_middle(
    context: ActionContext, object: str, below: str, *, arm: Manipulator | None
) -> Iterator[Place]:
    """Yield quarter turns in which an object stands in the middle of what is below it; an arm is named of several."""
    for turn in turns_nearest_first(context, object, below):
        pose = standing_pose(context.scene, object, below, point=(0.0, 0.0), turn=turn)
        yield Place(object, below, pose, arm=arm.name if arm else None)


def _floor(scene: SceneGraph, region: Region) -> float:
    """Return the height in the root at or above which objects are on a region; -inf when joints move it."""
    if any(
        scene.joint(frame).is_actuated for frame in (region.frame, *scene.ancestors(region.frame))
    ):
        return -math.inf
    height = (region.upper if "surface" in scene.classes(region.frame) else region.lower)[2]
    corners = [
        [x, y, height]
        for x in (region.lower[0], region.upper[0])
        for y in (region.lower[1], region.upper[1])
    ]
    q = scene.zero_configuration()
    return float(
        scene.pose(region.frame, relative_to=scene.root(region.frame), q=q)
        .apply(corners)[:, 2]
        .min()
    )


def _is_upright(scene: SceneGraph, object: str) -> bool:
    """Return whether the lowest object of a tower is upright, and will be: what stands on it must be, by its facts."""
    root_from_object = scene.pose(
        object, relative_to=scene.root(object), q=scene.zero_configuration()
    )
    return bool(root_from_object.rotate([0.0, 0.0, 1.0])[2] > _TOWER_UPRIGHT) and stays_upright(
        scene, object
    )


def _is_stacked(scene: SceneGraph, object: str) -> bool:
    parent = scene.parent(object)
    return parent is not None and is_movable(scene, parent)
