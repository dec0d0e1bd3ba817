"""Semantics of the towers of Hanoi in a scene, made of parts (:mod:`tmkit.tamp.parts`).

A *disc* is a frame of class ``movable``, a *place* one of class ``place``. The parent of a disc
says what it lies on: a place, another disc, or the hand. A disc fits on every place and on every
disc that is wider than itself; how wide it is, its collision shape says.

Discs are put down in the middle of what they come to lie on, in quarter turns, which is no
difference to a disc, but one to the arm.

Where something stands on a place that is no disc, it is a *rod*, and discs have holes: they are
lifted straight up until they are above it, and lowered straight down over it. A hand that comes
from above to the middle of a disc would meet the rod, so such grasps are tried last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    Candidate,
    DeadEnd,
    Grasp,
    Pick,
    PickPlaceOptions,
    Place,
)
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial.elementary import norm
from tmkit.tamp import incremental, parts
from tmkit.tamp.domains import pick_candidates, shape_bounds

WORDS = {
    "item": "disc",
    "rod": "place",
    "region": "object",
    "free": "clear",
    "pick": "take",
    "place": "put",
}

_WIDER = 1e-4  # metres that make a disc wider than another
_ABOVE_ROD = 0.015  # metres between a rod's top and the foot of a disc that is carried to it
_LEAST_LIFT = 0.06  # metres by which discs are lifted where there is no rod
_STEEP, _IN_THE_MIDDLE = -0.9, 0.01  # z of a direction from above; metres from a disc's axis


class Discs(parts.Slots):
    """Discs lie on rods and on wider discs."""

    region_classes = ("place",)
    pddl: ClassVar[str] = """
    (:types item rod - region)
    (:predicates (fits ?x - item ?r - region))   ; ?r is a rod, or a disc larger than ?x
    (:extend (pick) :precondition (free ?x) :effect (not (free ?x)))
    (:extend (place) :precondition (fits ?x ?r) :effect (free ?x))
    """

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield discs and rods."""
        yield "item", movable_frames(scene)
        yield "rod", scene.frames_of_class("place")

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return rods and discs."""
        return (*super().region_frames(scene), *movable_frames(scene))

    def facts_free(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the rods."""
        yield from ((rod,) for rod in scene.frames_of_class("place"))

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield also that discs can be put on a disc that is in no hand."""
        yield from super().place_facts(scene, object)
        if scene.parent(object) not in self.hands:
            yield self.fact("free", object)

    def facts_fits(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield on what each disc fits: every rod, and every disc that is wider."""
        for disc in movable_frames(scene):
            yield from ((disc, other) for other in _fitting(scene, disc))

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, those from above the rod last."""
        lift = self._lift(
            context.scene, object, context.scene.local_pose(object).translation[2], region
        )
        picks = list(pick_candidates(context, object, manipulator=arm))
        yield from (pick for pick in picks if isinstance(pick, DeadEnd))
        known = [
            replace(pick, motion=PickPlaceOptions(lift_distance=lift))
            for pick in picks
            if isinstance(pick, Pick)
        ]
        yield from sorted(known, key=lambda pick: _is_over_middle(context, object, pick.grasp))

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield quarter turns in which a disc is lowered over its rod."""
        for place in super().places(context, arm, object, region):
            lift = self._lift(context.scene, object, place.pose.translation[2], region)
            yield replace(place, motion=PickPlaceOptions(lift_distance=lift))

    def _lift(self, scene: SceneGraph, disc: str, height: float, below: str) -> float:
        """Return how far a disc at a height above what it lies on has to be lifted to come free of its rod."""
        place = next(
            (
                frame
                for frame in (below, *scene.ancestors(below))
                if "place" in scene.classes(frame)
            ),
            below,
        )
        foot = height + float(shape_bounds(scene, disc)[0][2])
        lifts = [_LEAST_LIFT]
        for rod in scene.children(place):
            if rod not in movable_frames(scene) and any(
                attached.collision for attached in scene.shapes(rod)
            ):
                top = scene.pose(rod, relative_to=below).apply(shape_bounds(scene, rod)[1])[2]
                lifts.append(float(top) - foot + _ABOVE_ROD)
        return max(lifts)


@incremental
def _fitting(scene: SceneGraph, disc: str) -> tuple[str, ...]:
    """Return on what a disc fits."""
    width = _width(scene, disc) + _WIDER
    wider = (other for other in movable_frames(scene) if _width(scene, other) > width)
    return (*scene.frames_of_class("place"), *wider)


def _is_over_middle(context: ActionContext, disc: str, grasp: Grasp) -> bool:
    """Return whether the hand comes from above to where the rod is."""
    scene = context.scene
    root_from_disc = scene.pose(disc, relative_to=scene.root(disc), q=context.q)
    is_steep = root_from_disc.rotate(grasp.object_from_tool.rotate([0.0, 0.0, 1.0]))[2] < _STEEP
    return bool(is_steep and norm(grasp.object_from_tool.translation[:2]) < _IN_THE_MIDDLE)


def _width(scene: SceneGraph, disc: str) -> float:
    lower, upper = shape_bounds(scene, disc)
    return float(upper[0] - lower[0])


Semantics = parts.compose_domain("hanoi", [Discs], words=WORDS).semantics
