"""What the words of the rearrangement domain mean in a scene.

An *item* is a frame of class ``movable``, a *place* one of class ``place``, with a shape on whose top there is room for
one item. An item is at the place that is its parent. Which item keeps the arm from which other, the words do not say:
that is for the planner to find out.

Items are put down in the middle of a place, in quarter turns.
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
        manipulator: the arm that moves the items.
    """

    object_type, support_type, relation = "item", "place", "at"

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each item is, which places are free, and what is held.

        Raises:
            SceneError: an item at no place, two at one, two in the hand, or one that leans, floats, or stands beside
                its place.
        """
        del objects, q
        names = {frame: name for name, frame in self.frames(scene).items()}
        held, hand = self.held(scene)
        facts, taken = [hand], dict[str, str]()
        for item in movable_frames(scene):
            if item == held:
                continue
            place = self.checked_support_of(scene, item)
            if place in taken:
                raise SceneError(f"items '{taken[place]}' and '{item}' are both at place '{place}'", frame=item)
            taken[place] = item
            facts.append(Fact.of("at", names[item], names[place]))
        facts.extend(Fact.of("free", names[place]) for place in scene.frames_of_class("place") if place not in taken)
        return State(facts)

    def equivalence_classes(self, scene: SceneGraph) -> list[list[str]]:
        """Return the items in groups of one shape: which of them stands at a place makes no difference to the arm."""
        return [[pddl_name(item) for item in group] for group in equivalence_classes(scene, movable_frames(scene))]

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the item, or turns in which to put it down, best first."""
        frames = self.frames(context.scene)
        item, place = (frames[name] for name in action.arguments)
        if action.name == "take":
            yield from pick_candidates(context, item, manipulator=self.manipulator)
        else:
            for turn in turns_nearest_first(context, item, place):
                yield Place(item, place, standing_pose(context.scene, item, place, point=(0.0, 0.0), turn=turn))
