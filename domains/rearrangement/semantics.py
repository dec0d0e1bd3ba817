"""What the words of the rearrangement domain mean in a scene.

An *item* is a frame of class ``movable``, a *place* one of class ``place``, with a shape on whose top there is room for
one item. An item is at the place that is its parent. Which item keeps the arm from which other, the words do not say:
that is for the planner to find out.

Items are put down in the middle of a place, in quarter turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.motion import Manipulator, movable_frames
from tmkit.planner import ActionContext, Candidate, Impossible, Pick, Place, pddl_name
from tmkit.planner.domains.standing import (
    alike,
    grasps_steepest_first,
    held_object,
    pddl_names,
    require_standing,
    standing_pose,
    turns_nearest_first,
    why_no_grasp,
)
from tmkit.tasks import Fact, GroundAction, State


class Semantics:
    """The meaning of the rearrangement domain for one arm.

    Args:
        manipulator: the arm that moves the items.
    """

    def __init__(self, manipulator: Manipulator) -> None:
        self.manipulator = manipulator

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return items and places by PDDL name.

        Raises:
            SceneError: two things of one name in PDDL.
        """
        places = scene.frames_of_class("place")
        return {name: "place" if frame in places else "item" for name, frame in _frames(scene).items()}

    def state(self, scene: SceneGraph, objects: Mapping[str, str]) -> State:
        """Return where each item is, which places are free, and what is held.

        Raises:
            SceneError: an item at no place, two at one, two in the hand, or one that leans, floats, or stands beside
                its place.
        """
        del objects
        frames = _frames(scene)
        names = {frame: name for name, frame in frames.items()}
        items = movable_frames(scene)
        held = held_object(scene, items, manipulator=self.manipulator)
        facts = [Fact.of("handempty") if held is None else Fact.of("holding", names[held])]
        taken: dict[str, str] = {}
        for item in items:
            if item == held:
                continue
            place = self._place_of(scene, item)
            require_standing(scene, item)
            if place in taken:
                raise SceneError(f"items '{taken[place]}' and '{item}' are both at place '{place}'", frame=item)
            taken[place] = item
            facts.append(Fact.of("at", names[item], names[place]))
        facts.extend(Fact.of("free", names[place]) for place in scene.frames_of_class("place") if place not in taken)
        return State(facts)

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield where each stated item is to be, or that the hand is to hold it.

        Raises:
            SceneError: an item at no place.
        """
        del objects
        names = {frame: name for name, frame in _frames(scene).items()}
        for item in stated:
            if scene.parent(item) == self.manipulator.tip:
                yield Fact.of("holding", names[item])
            else:
                yield Fact.of("at", names[item], names[self._place_of(scene, item)])

    def useful_objects(self, scene: SceneGraph, q: np.ndarray) -> frozenset[str]:
        """Return all objects: there are few."""
        del q
        return frozenset(_frames(scene))

    def alike(self, scene: SceneGraph) -> list[list[str]]:
        """Return the items in groups of one shape: which of them stands at a place makes no difference to the arm."""
        return [[pddl_name(item) for item in group] for group in alike(scene, movable_frames(scene))]

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the item, or turns in which to put it down, best first."""
        frames = _frames(context.scene)
        item, place = (frames[name] for name in action.arguments)
        if action.name == "take":
            grasps = grasps_steepest_first(context, item, manipulator=self.manipulator)
            if not grasps:
                yield Impossible(why_no_grasp(item, self.manipulator))
            for grasp in grasps:
                yield Pick(item, grasp)
        else:
            for turn in turns_nearest_first(context, item, place):
                yield Place(item, place, standing_pose(context.scene, item, place, point=(0.0, 0.0), turn=turn))

    def _place_of(self, scene: SceneGraph, item: str) -> str:
        parent = scene.parent(item)
        if parent is None or "place" not in scene.classes(parent):
            places = ", ".join(scene.frames_of_class("place")) or "none"
            what = f"item '{item}' hangs off '{parent}', which is no place (class 'place': {places}) and not"
            raise SceneError(f"{what} the hand '{self.manipulator.tip}'", frame=item)
        return parent


def _frames(scene: SceneGraph) -> dict[str, str]:
    """Return the frames of items and places by PDDL name."""
    return pddl_names([*movable_frames(scene), *scene.frames_of_class("place")])
