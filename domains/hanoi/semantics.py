"""Semantics of the towers of Hanoi in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

A *disc* is a frame of class ``movable``, a *place* one of class ``place``. The parent of a disc is
its support: a place, another disc, or the hand. A disc fits on every place and on every wider disc.
Its collision shape defines its width.

Discs are placed in the middle of their support in quarter turns, which are equivalent for a disc
but not for the arm.

If another solid frame stands on a place, it is a *rod*, and discs have holes. Discs are lifted
straight up until they are above the rod, and lowered straight down over it. A hand that grasps the
middle of a disc from above would collide with the rod, so such grasps are tried last.
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

_MIN_WIDTH_DIFFERENCE = 1e-4
"""Smallest difference of width between discs that fit on each other [m]."""

_ROD_CLEARANCE = 0.015
"""Height of the bottom of a carried disc above the top of a rod [m]."""

_MIN_LIFT = 0.06
"""Height by which discs are lifted without a rod [m]."""

_MAX_STEEP_Z = -0.9
"""Largest z component of the tool axis of a grasp from above."""

_CENTRE_RADIUS = 0.01
"""Largest distance of a grasp in the middle from the axis of a disc [m]."""


class Discs(parts.Slots):
    """Discs on rods and on wider discs."""

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
        """Also yield that a disc in no hand is free."""
        yield from super().place_facts(scene, object)
        if scene.parent(object) not in self.hands:
            yield self.fact("free", object)

    def facts_fits(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the supports of each disc: every rod, and every wider disc."""
        for disc in movable_frames(scene):
            yield from ((disc, support) for support in _supports(scene, disc))

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, those from above the rod last."""
        height = context.scene.local_pose(object).translation[2]
        lift = self._lift_distance(context.scene, object, height, region)
        motion = PickPlaceOptions(lift_distance=lift)
        candidates = list(pick_candidates(context, object, robot=arm))
        yield from (end for end in candidates if isinstance(end, DeadEnd))
        picks = [replace(pick, motion=motion) for pick in candidates if isinstance(pick, Pick)]
        yield from sorted(picks, key=lambda pick: _is_over_middle(context, object, pick.grasp))

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield quarter turns in which a disc is lowered over its rod."""
        for place in super().places(context, arm, object, region):
            lift = self._lift_distance(context.scene, object, place.pose.translation[2], region)
            yield replace(place, motion=PickPlaceOptions(lift_distance=lift))

    def _lift_distance(self, scene: SceneGraph, disc: str, height: float, below: str) -> float:
        """Return the lift of a disc that is required to remove it from its rod [m].

        Args:
            scene: the scene.
            disc: frame of the disc.
            height: height of its frame above its support [m].
            below: frame of the support.
        """
        chain = (below, *scene.ancestors(below))
        place = next((frame for frame in chain if "place" in scene.classes(frame)), below)
        bottom = height + float(shape_bounds(scene, disc)[0][2])
        lifts = [_MIN_LIFT]
        for rod in scene.children(place):
            is_solid = any(attached.collision for attached in scene.shapes(rod))
            if is_solid and rod not in movable_frames(scene):
                top = scene.pose(rod, relative_to=below).apply(shape_bounds(scene, rod)[1])[2]
                lifts.append(float(top) - bottom + _ROD_CLEARANCE)
        return max(lifts)


@incremental
def _supports(scene: SceneGraph, disc: str) -> tuple[str, ...]:
    """Return the rods and discs on which a disc fits."""
    width = _width(scene, disc) + _MIN_WIDTH_DIFFERENCE
    wider = (other for other in movable_frames(scene) if _width(scene, other) > width)
    return (*scene.frames_of_class("place"), *wider)


def _is_over_middle(context: ActionContext, disc: str, grasp: Grasp) -> bool:
    """Return whether the hand grasps a disc from above at the position of the rod."""
    scene = context.scene
    root_from_disc = scene.pose(disc, relative_to=scene.root(disc), q=context.q)
    is_steep = (
        root_from_disc.rotate(grasp.object_from_tool.rotate([0.0, 0.0, 1.0]))[2] < _MAX_STEEP_Z
    )
    return bool(is_steep and norm(grasp.object_from_tool.translation[:2]) < _CENTRE_RADIUS)


def _width(scene: SceneGraph, disc: str) -> float:
    lower, upper = shape_bounds(scene, disc)
    return float(upper[0] - lower[0])


Semantics = parts.compose_domain("hanoi", [Discs], words=WORDS).semantics
