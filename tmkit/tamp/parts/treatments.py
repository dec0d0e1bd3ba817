"""Domain parts for treatments of objects on regions: orientation, washing, cooking; and arms that go home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import (
    ActionContext,
    ApplyEffects,
    Candidate,
    MoveTo,
    Place,
)
from tmkit.manipulation.placements.sampling import (
    PlacementSettings,
    placements_in_region,
    placements_on_surface,
)
from tmkit.pddl import Fact
from tmkit.plans.class_changes import ClassEffect
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.regions import Arguments, Regions, class_facts

_RIGHT_WAY_UP = 0.9
"""Least cosine of the angle of an upright object to the z axis of its region: it only tells its sides apart."""


class Home(Regions):
    """Arms at their ready configurations: (athome), (move-home)."""

    pddl: ClassVar[str] = """
    (:predicates (athome ?arm - arm))        ; the arm is at its ready configuration
    (:action move-home :parameters (?arm - arm) :precondition (and) :effect (athome ?arm))
    (:extend
      (pick place place-upside-down stack unstack cover uncover open-drawer close-drawer open-door close-door pour push)
      :effect (not (athome ?arm)))
    (:extend-any (hand-over) :effect (and (not (athome ?giver)) (not (athome ?taker))))
    (:extend-any (drive) :effect (athome ?arm))
    """

    def facts_athome(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the arms at home."""
        yield from ((name,) for name in self.arms if self.is_ready(scene, q, name))

    def do_move_home(self, context: ActionContext, arm: Manipulator) -> Iterator[Candidate]:
        """Yield the motion to the ready configuration."""
        del context
        yield MoveTo(arm.ready, "home", arm=None if len(self.arms) == 1 else arm.name)


class Orientation(Regions):
    """Objects at rest are upright or upside down, by their z axes; one that lies on its side is neither.

    ``place`` puts objects down upright, ``place-upside-down`` on another of their stable faces.
    """

    place_predicates = frozenset({"upright", "upside-down"})
    pddl: ClassVar[str] = """
    (:predicates (upright ?x - item) (upside-down ?x - item))
    (:action place-upside-down
      :parameters (?arm - arm ?x - item ?r - region)
      :precondition (holding ?arm ?x)
      :effect (and (on ?x ?r) (upside-down ?x) (handempty ?arm) (not (holding ?arm ?x))))
    (:extend (place stack cover) :effect (upright ?x))
    (:extend-any (stack) :precondition (upright ?y))
    (:extend (pick unstack uncover) :effect (and (not (upright ?x)) (not (upside-down ?x))))
    """

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield also which way up an object is that is in no hand."""
        yield from super().place_facts(scene, object)
        yield from (self.fact(word, object) for word in self._ways_up(scene, object))

    def _ways_up(self, scene: SceneGraph, object: str) -> Iterator[str]:
        """Yield ``upright`` or ``upside-down``, by the z axis of an object in the axes of what it is on, if it is."""
        if (parent := str(scene.parent(object))) not in self.hands:
            up = _up(scene, object, self.region_of(scene, object) or parent)
            yield from ["upright"] * (up >= _RIGHT_WAY_UP) + ["upside-down"] * (
                up <= -_RIGHT_WAY_UP
            )

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Yield also which way up each stated object is to be."""
        yield from super().goal_facts(scene, objects, goal_frames)
        yield from (
            self.fact(word, frame) for frame in goal_frames for word in self._ways_up(scene, frame)
        )

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places at which an object is upright."""
        found = super().places(context, arm, object, region)
        yield from (
            p
            for p in found
            if _points_up(context.scene, p.support, p.pose, region) >= _RIGHT_WAY_UP
        )

    def do_place_upside_down(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places at which an object is upside down."""
        is_region = "region" in context.scene.classes(region)
        found = (placements_in_region if is_region else placements_on_surface)(
            context.scene,
            object,
            region,
            q=context.q,
            rng=context.rng,
            manipulator=arm,
            settings=PlacementSettings(is_packed=is_region, any_face=True),
        )
        down = (
            p
            for p in found
            if _points_up(context.scene, p.support, p.support_from_object, region) <= -_RIGHT_WAY_UP
        )
        yield from self.resting(context, arm, object, region, down)


class Treatment(Regions):
    """A base class of parts that give objects on some regions a class.

    Attributes:
        made_by: the classes of regions by the classes, and predicates, that objects gain there.
    """

    made_by: ClassVar[Mapping[str, str]] = {}

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return the regions on one of which an object must be for a fact about it to become true."""
        made_by = {
            word: kind
            for part in reversed(type(self).__mro__)
            for word, kind in _made_by(part).items()
        }
        kind = made_by.get(self.word(fact))
        if kind is None:
            return super().places_for(fact, scene)
        return tuple(
            region for region in self.region_frames(scene) if kind in scene.classes(region)
        )

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Yield also what each stated object is to be."""
        yield from super().goal_facts(scene, objects, goal_frames)
        words = dict.fromkeys(word for part in type(self).__mro__ for word in _made_by(part))
        yield from (
            self.fact(word, frame)
            for frame in goal_frames
            for word in words
            if word in scene.classes(frame)
        )


class Washing(Treatment):
    """Objects on regions of class ``sink`` can be cleaned: they get the class ``clean``."""

    made_by: ClassVar[Mapping[str, str]] = {"clean": "sink"}
    pddl: ClassVar[str] = """
    (:predicates
      (washes ?r - region)                   ; what stands on ?r can be cleaned
      (clean ?x - item))
    (:action clean
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (washes ?r))
      :effect (clean ?x))
    """

    facts_washes = class_facts("sink", of_regions=True)
    facts_clean = class_facts("clean")

    def do_clean(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        yield ApplyEffects(_gain(context.scene, object, "clean"), f"washed on {region}")


class Cooking(Treatment):
    """Clean objects on regions of class ``stove`` can be cooked: class ``cooked`` takes the place of ``clean``."""

    needs = (Washing,)
    made_by: ClassVar[Mapping[str, str]] = {"cooked": "stove"}
    pddl: ClassVar[str] = """
    (:predicates
      (heats ?r - region)                    ; what stands on ?r can be cooked
      (cooked ?x - item))
    (:action cook
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (heats ?r) (clean ?x))
      :effect (and (cooked ?x) (not (clean ?x))))
    """

    facts_heats = class_facts("stove", of_regions=True)
    facts_cooked = class_facts("cooked")

    def do_cook(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        gained = _gain(context.scene, object, "cooked")
        yield ApplyEffects(
            (*gained, ClassEffect(object, removed=("clean",))), f"cooked on {region}"
        )


def _made_by(part: type) -> Mapping[str, str]:
    found: Mapping[str, str] = vars(part).get("made_by", {})
    return found


def _gain(scene: SceneGraph, object: str, word: str) -> tuple[ClassEffect, ...]:
    return () if word in scene.classes(object) else (ClassEffect(object, added=(word,)),)


@incremental
def _up(scene: SceneGraph, object: str, below: str) -> float:
    return float(scene.pose(object, relative_to=below).rotate([0.0, 0.0, 1.0])[2])


def _points_up(scene: SceneGraph, support: str, pose: Pose, region: str) -> float:
    """Return the z of an object's z axis at a pose on a support, in the axes of its region."""
    region_from_support = Pose() if support == region else scene.pose(support, relative_to=region)
    return float((region_from_support @ pose).rotate([0.0, 0.0, 1.0])[2])
