"""Domain parts for orientation, washing and cooking of objects, and for arms that move home."""

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
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.regions import Arguments, Regions, filter_by_class

_MIN_UPRIGHT_COSINE = 0.9
"""Smallest cosine between the z axes of an upright object and of its region."""


class Home(Regions):
    """Arms at their ready configurations: (athome), (move-home)."""

    pddl: ClassVar[str] = """
    (:predicates (athome ?arm - arm))        ; the arm is at its ready configuration
    (:action move-home :parameters (?arm - arm) :precondition (and) :effect (athome ?arm))
    (:extend
      (pick place place-upside-down stack unstack cover uncover
       open-drawer close-drawer open-door close-door pour push)
      :effect (not (athome ?arm)))
    (:extend-any (hand-over) :effect (and (not (athome ?giver)) (not (athome ?taker))))
    (:extend-any (drive) :effect (athome ?arm))
    """

    def facts_athome(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the arms at their ready configurations."""
        yield from ((name,) for name in self.arms if self.is_ready(scene, q, name))

    def do_move_home(self, context: ActionContext, arm: Manipulator) -> Iterator[Candidate]:
        """Yield the motion to the ready configuration."""
        del context
        yield MoveTo(arm.ready, "home", arm=self.arm_name(arm))


class Orientation(Regions):
    """Orientation of objects at rest: upright or upside down, by their z axes.

    An object that lies on its side is neither. ``place`` places objects upright,
    ``place-upside-down`` on another of their stable faces.
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
        """Also yield the orientation of an object that is in no hand."""
        yield from super().place_facts(scene, object)
        yield from (self.fact(name, object) for name in self._orientations(scene, object))

    def _orientations(self, scene: SceneGraph, object: str) -> Iterator[str]:
        """Yield ``upright`` or ``upside-down``, if an object in no hand has that orientation.

        The orientation is the direction of its z axis in the axes of its support.
        """
        parent = str(scene.parent(object))
        if parent in self.hands:
            return
        alignment = _z_alignment(scene, object, self.region_of(scene, object) or parent)
        if alignment >= _MIN_UPRIGHT_COSINE:
            yield "upright"
        elif alignment <= -_MIN_UPRIGHT_COSINE:
            yield "upside-down"

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Also yield the goal orientation of each stated object."""
        yield from super().goal_facts(scene, objects, goal_frames)
        for frame in goal_frames:
            yield from (self.fact(name, frame) for name in self._orientations(scene, frame))

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places at which an object is upright."""
        for place in super().places(context, arm, object, region):
            alignment = _z_alignment_at(context.scene, place.support, place.pose, region)
            if alignment >= _MIN_UPRIGHT_COSINE:
                yield place

    def do_place_upside_down(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places at which an object is upside down."""
        scene = context.scene
        is_region = "region" in scene.classes(region)
        sample = placements_in_region if is_region else placements_on_surface
        placements = sample(
            scene,
            object,
            region,
            q=context.q,
            rng=context.rng,
            robot=arm,
            settings=PlacementSettings(is_packed=is_region, any_face=True),
        )
        inverted = (
            p
            for p in placements
            if _z_alignment_at(scene, p.support, p.support_from_object, region)
            <= -_MIN_UPRIGHT_COSINE
        )
        yield from self.filter_placements(context, arm, object, region, inverted)


class Treatment(Regions):
    """Base class of parts that add a class to objects on some regions.

    Attributes:
        region_class_by_result: class of the required region by the class, and predicate, that
            objects receive there.
    """

    region_class_by_result: ClassVar[Mapping[str, str]] = {}

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return the regions on one of which a fact about an object can become true."""
        region_classes: dict[str, str] = {}
        for part in reversed(type(self).__mro__):
            region_classes.update(_own_region_classes(part))
        kind = region_classes.get(self.fragment_predicate(fact))
        if kind is None:
            return super().places_for(fact, scene)
        regions = self.region_frames(scene)
        return tuple(region for region in regions if kind in scene.classes(region))

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterator[Fact]:
        """Also yield the goal classes of each stated object."""
        yield from super().goal_facts(scene, objects, goal_frames)
        parts = type(self).__mro__
        results = dict.fromkeys(name for part in parts for name in _own_region_classes(part))
        for frame in goal_frames:
            classes = scene.classes(frame)
            yield from (self.fact(name, frame) for name in results if name in classes)


class Washing(Treatment):
    """Objects on regions of class ``sink`` can be cleaned: they receive the class ``clean``."""

    region_class_by_result: ClassVar[Mapping[str, str]] = {"clean": "sink"}
    pddl: ClassVar[str] = """
    (:predicates
      (washes ?r - region)                   ; objects on ?r can be cleaned
      (clean ?x - item))
    (:action clean
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (washes ?r))
      :effect (clean ?x))
    """

    def facts_washes(self, scene: SceneGraph) -> Arguments:
        """Yield the regions of class ``sink``."""
        yield from filter_by_class(scene, self.region_frames(scene), "sink")

    def facts_clean(self, scene: SceneGraph) -> Arguments:
        """Yield the clean objects."""
        yield from filter_by_class(scene, movable_frames(scene), "clean")

    def do_clean(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        yield ApplyEffects(_class_effects(context.scene, object, "clean"), f"washed on {region}")


class Cooking(Treatment):
    """Clean objects on regions of class ``stove`` can be cooked: ``cooked`` replaces ``clean``."""

    needs = (Washing,)
    region_class_by_result: ClassVar[Mapping[str, str]] = {"cooked": "stove"}
    pddl: ClassVar[str] = """
    (:predicates
      (heats ?r - region)                    ; objects on ?r can be cooked
      (cooked ?x - item))
    (:action cook
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (heats ?r) (clean ?x))
      :effect (and (cooked ?x) (not (clean ?x))))
    """

    def facts_heats(self, scene: SceneGraph) -> Arguments:
        """Yield the regions of class ``stove``."""
        yield from filter_by_class(scene, self.region_frames(scene), "stove")

    def facts_cooked(self, scene: SceneGraph) -> Arguments:
        """Yield the cooked objects."""
        yield from filter_by_class(scene, movable_frames(scene), "cooked")

    def do_cook(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        effects = _class_effects(context.scene, object, "cooked")
        removal = ClassEffect(object, removed=("clean",))
        yield ApplyEffects((*effects, removal), f"cooked on {region}")


def _own_region_classes(part: type) -> Mapping[str, str]:
    region_classes: Mapping[str, str] = vars(part).get("region_class_by_result", {})
    return region_classes


def _class_effects(scene: SceneGraph, object: str, name: str) -> tuple[ClassEffect, ...]:
    return () if name in scene.classes(object) else (ClassEffect(object, added=(name,)),)


@incremental
def _z_alignment(scene: SceneGraph, object: str, below: str) -> float:
    return float(scene.pose(object, relative_to=below).rotate([0.0, 0.0, 1.0])[2])


def _z_alignment_at(scene: SceneGraph, support: str, pose: Pose, region: str) -> float:
    """Return the cosine between the z axes of a region and of an object at a pose on a support."""
    region_from_support = Pose() if support == region else scene.pose(support, relative_to=region)
    return float((region_from_support @ pose).rotate([0.0, 0.0, 1.0])[2])
