"""Which way up objects are: upright, or upside down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.manipulation.placements.sampling import PlacementSettings, placements_in_region, placements_on_surface
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.regions import Arguments, Regions

_UP = 0.9  # least z, in the region's axes, of the z axis of an object that is upright


class Orientation(Regions):
    """Objects at rest are upright or upside down, by their z axes; one that lies on its side is neither.

    ``place`` puts objects down upright, ``place-upside-down`` on another of their stable faces.
    """

    pddl: ClassVar[str] = """
    (:predicates (upright ?x - item) (upside-down ?x - item))
    (:action place-upside-down
      :parameters (?arm - arm ?x - item ?r - region)
      :precondition (holding ?arm ?x)
      :effect (and (on ?x ?r) (upside-down ?x) (handempty ?arm) (not (holding ?arm ?x))))
    (:extend (place stack cover) :effect (upright ?x))
    (:extend (pick unstack uncover) :effect (and (not (upright ?x)) (not (upside-down ?x))))
    """

    def facts_upright(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield what is upright."""
        yield from ((frame,) for frame, up in self._ways_up(scene, q) if up >= _UP)

    def facts_upside_down(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield what is upside down."""
        yield from ((frame,) for frame, up in self._ways_up(scene, q) if up <= -_UP)

    def _ways_up(self, scene: SceneGraph, q: Configuration) -> Iterator[tuple[str, float]]:
        """Yield the objects at rest, each with the z of its z axis in the axes of what it is on."""
        regions = {arguments[0]: arguments[1] for arguments in self.facts_on(scene, q)}
        held = self.held(scene).values()
        for frame in movable_frames(scene):
            if frame not in held:
                yield frame, _up(scene, frame, regions.get(frame, str(scene.parent(frame))))

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield also which way up each stated object is to be."""
        yield from super().goal_facts(scene, objects, stated)
        q = scene.zero_configuration()
        for word, facts in (("upright", self.facts_upright), ("upside-down", self.facts_upside_down)):
            yield from (self.fact(word, frame) for (frame,) in facts(scene, q) if frame in stated)

    def places(self, context: ActionContext, arm: Manipulator, object: str, region: str) -> Iterator[Place]:
        """Yield places at which an object is upright."""
        found = super().places(context, arm, object, region)
        yield from (place for place in found if _points_up(context.scene, place, region) >= _UP)

    def do_place_upside_down(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places at which an object is upside down."""
        is_region = "region" in context.scene.classes(region)
        found = (placements_in_region if is_region else placements_on_surface)(
            context.scene, object, region, q=context.q, rng=context.rng, manipulator=arm,
            settings=PlacementSettings(is_packed=is_region, any_face=True),
        )  # fmt: skip
        places = self.resting(context, arm, object, region, found)
        yield from (place for place in places if _points_up(context.scene, place, region) <= -_UP)


@incremental
def _up(scene: SceneGraph, object: str, below: str) -> float:
    return float(scene.pose(object, relative_to=below).rotate([0.0, 0.0, 1.0])[2])


def _points_up(scene: SceneGraph, place: Place, region: str) -> float:
    """Return the z of an object's z axis at a place, in the axes of its region."""
    region_from_support = Pose() if place.support == region else scene.pose(place.support, relative_to=region)
    return float((region_from_support @ place.pose).rotate([0.0, 0.0, 1.0])[2])
