"""Semantics of the handover domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

Arms pick objects from places, place them on places, and hand them over to each other. An object may
rest on any of its stable faces that a hand from above can place.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.manipulation import (
    ActionContext,
    Candidate,
    Grasp,
    Pick,
    Place,
    PlacementSettings,
    placements_on_surface,
)
from tmkit.robots import Manipulator
from tmkit.tamp import parts
from tmkit.tamp.domains import no_grasp

WORDS = {"on": "at", "region": "place", "handempty": "empty"}

_MAX_DOWNWARD_Z = -0.5
"""Largest z component of the tool axis of a hand from above."""


class Faces(parts.TwoArms):
    """Objects are placed on any face, by hands from above."""

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield the grasps of an object, from above first."""
        del region
        scene = context.scene
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=context.q)

        def steepness(grasp: Grasp) -> float:
            root_from_tool = root_from_object @ grasp.object_from_tool
            return round(float(root_from_tool.rotate([0.0, 0.0, 1.0])[2]), 3)

        grasps = sorted(context.grasps(object, arm=arm.name), key=steepness)
        if not grasps:
            yield no_grasp(context.scene, object, robot=arm)
        yield from (Pick(object, grasp, arm.name) for grasp in grasps)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield placements on any stable face for which the hand is above the object."""
        scene, q = context.scene, context.q
        root_from_region = scene.pose(region, relative_to=scene.root(region), q=q)
        object_from_tool = scene.pose(arm.tool, relative_to=object, q=q)
        settings = PlacementSettings(is_packed=False, any_face=True)
        for placement in placements_on_surface(
            scene, object, region, q=q, rng=context.rng, robot=arm, settings=settings
        ):
            tool = root_from_region @ placement.support_from_object @ object_from_tool
            if float(tool.rotate([0.0, 0.0, 1.0])[2]) < _MAX_DOWNWARD_Z:
                yield Place.at(object, placement, arm=arm.name)


Semantics = parts.compose_domain("handover", [Faces], words=WORDS).semantics
