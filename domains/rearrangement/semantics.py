"""Semantics of the rearrangement domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

A *place* is a frame of class ``place``, with a shape on whose top there is room for one object. The domain does not
state which object blocks the arm's way to which other: the planner computes it.
"""

from __future__ import annotations

from tmkit.graph import SceneGraph
from tmkit.robots import movable_frames
from tmkit.tamp import parts, pddl_name
from tmkit.tamp.domains import equivalence_classes

WORDS = {"on": "at", "region": "place", "pick": "take", "place": "put"}


class Places(parts.Slots):
    """Places for one object each."""

    region_classes = ("place",)

    def equivalence_classes(self, scene: SceneGraph) -> list[list[str]]:
        """Return the objects in groups of one shape: which of them stands at a place makes no difference to the arm."""
        return [[pddl_name(object) for object in group] for group in equivalence_classes(scene, movable_frames(scene))]


Semantics = parts.compose_domain("rearrangement", [Places], words=WORDS).semantics
