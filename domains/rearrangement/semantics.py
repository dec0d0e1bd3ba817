"""Semantics of the rearrangement domain in a scene.

An object (PDDL type ``item``) is a frame of class ``movable``, a *place* one of class ``place``, with a shape on whose
top there is room for one object. An object is at the place that is its parent. The domain does not state which object
blocks the arm's way to which other: the planner computes it.

Objects are put down in the middle of a place, in quarter turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.tamp import pddl_name
from tmkit.tamp.domains import (
    TabletopSemantics,
    equivalence_classes,
    pick_candidates,
    standing_pose,
    turns_nearest_first,
)


class Semantics(TabletopSemantics):
    """The meaning of the rearrangement domain for one arm.

    Args:
        manipulator: the arm that moves the objects.
    """

    object_type, support_type, relation = "item", "place", "at"

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is, which places are free, and what is held.

        Raises:
            SceneError: an object at no place, two at one, two in the hand, or one that leans, floats, or stands beside
                its place.
        """
        del objects, q
        names = {frame: name for name, frame in self.frames(scene).items()}
        held, hand = self.held(scene)
        facts, taken = [hand], dict[str, str]()
        for object in movable_frames(scene):
            if object == held:
                continue
            place = self.checked_support_of(scene, object)
            if place in taken:
                raise SceneError(f"objects '{taken[place]}' and '{object}' are both at place '{place}'", frame=object)
            taken[place] = object
            facts.append(Fact.of("at", names[object], names[place]))
        facts.extend(Fact.of("free", names[place]) for place in scene.frames_of_class("place") if place not in taken)
        return State(facts)

    def equivalence_classes(self, scene: SceneGraph) -> list[list[str]]:
        """Return the objects in groups of one shape: which of them stands at a place makes no difference to the arm."""
        return [[pddl_name(object) for object in group] for group in equivalence_classes(scene, movable_frames(scene))]

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the object, or turns in which to put it down, best first."""
        frames = self.frames(context.scene)
        object, place = (frames[name] for name in action.arguments)
        if action.name == "take":
            yield from pick_candidates(context, object, manipulator=self.manipulator)
        else:
            for turn in turns_nearest_first(context, object, place):
                yield Place(object, place, standing_pose(context.scene, object, place, point=(0.0, 0.0), turn=turn))
