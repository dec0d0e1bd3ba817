"""Semantics of the handover domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

Arms pick objects from places and put them there, and hand them over to each other. An object may
rest on any of its stable faces, on whichever side the hand can come to from above.
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

_DOWNWARDS = -0.5  # z of the tool's axis below which a hand comes from above


class Faces(parts.TwoArms):
    """Objects are put down on any face, by hands that come from above."""

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield the grasps of an object: from above first."""
        del region
        root_from_object = context.scene.pose(
            object, relative_to=context.scene.root(object), q=context.q
        )

        def steepness(grasp: Grasp) -> float:
            return round(
                float((root_from_object @ grasp.object_from_tool).rotate([0.0, 0.0, 1.0])[2]), 3
            )

        grasps = sorted(context.grasps(object, arm=arm.name), key=steepness)
        if not grasps:
            yield no_grasp(context.scene, object, manipulator=arm)
        yield from (Pick(object, grasp, arm.name) for grasp in grasps)

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield where an object may rest, on whichever side the hand can come to from above."""
        scene, q = context.scene, context.q
        root_from_region = scene.pose(region, relative_to=scene.root(region), q=q)
        object_from_tool = scene.pose(arm.tool, relative_to=object, q=q)
        settings = PlacementSettings(is_packed=False, any_face=True)
        for placement in placements_on_surface(
            scene, object, region, q=q, rng=context.rng, manipulator=arm, settings=settings
        ):
            tool = root_from_region @ placement.support_from_object @ object_from_tool
            if float(tool.rotate([0.0, 0.0, 1.0])[2]) < _DOWNWARDS:
                yield Place.at(object, placement, arm=arm.name)


Semantics = parts.compose_domain("handover", [Faces], words=WORDS).semantics
