"""Semantics of the pour domain in a scene.

A *vessel* is a frame of class ``movable``, upright with its z axis: a cup, a bowl. A *surface* is a frame of class
``surface`` on which vessels stand. A vessel of class ``filled`` is filled, others are empty; what is filled is carried
upright. Pouring moves the class from one vessel to the other.

A filled vessel is taken by its side, so that the hand is not above its rim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Grasp, Impossible, Place, pours
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.tamp.domains import TabletopSemantics, pick_candidates

_STEEPEST = 0.5  # cosine of the angle between the tool and the axis of a filled vessel that it takes


class Semantics(TabletopSemantics):
    """The meaning of the pour domain for one arm.

    Args:
        manipulator: the arm that moves the vessels.
    """

    object_type, support_type, relation = "vessel", "surface", "on"

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return on which surface each vessel is, which are filled, and what is held.

        Raises:
            SceneError: a vessel on no surface, two in the hand, or one that leans or floats.
        """
        del objects, q
        names = {frame: name for name, frame in self.frames(scene).items()}
        held, hand = self.held(scene)
        facts = [hand]
        for vessel in movable_frames(scene):
            facts.append(Fact.of("filled" if "filled" in scene.classes(vessel) else "empty", names[vessel]))
            if vessel != held:
                facts.append(Fact.of("on", names[vessel], names[self.checked_support_of(scene, vessel)]))
        return State(facts)

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield where each stated vessel is to be, and that it is to be filled, if it is in the goal scene.

        Raises:
            SceneError: the parent of a vessel is neither a surface nor the hand.
        """
        yield from super().goal_facts(scene, objects, stated)
        names = {frame: name for name, frame in self.frames(scene).items()}
        yield from (Fact.of("filled", names[frame]) for frame in stated if "filled" in scene.classes(frame))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of a vessel, places for it, or ways to pour from it, best first."""
        frames = self.frames(context.scene)
        vessel, other = (frames[name] for name in action.arguments)
        if action.name == "pour":
            yield from pours(context, vessel, other, arm=self.manipulator.name)
        elif action.name == "put":
            for placement in context.placements(vessel, other):
                yield Place.at(vessel, placement)
        elif "filled" not in context.scene.classes(vessel):
            yield from pick_candidates(context, vessel, manipulator=self.manipulator)
        else:
            picks = pick_candidates(context, vessel, manipulator=self.manipulator)
            aside = [pick for pick in picks if isinstance(pick, Impossible) or _is_aside(pick.grasp)]
            yield from aside or [Impossible(f"no grasp of '{vessel}' is by its side, and others are over its rim")]


def _is_aside(grasp: Grasp) -> bool:
    """Whether a hand holds a vessel by its side, so that nothing of it is over the rim."""
    return bool(abs(grasp.object_from_tool.rotate([0.0, 0.0, 1.0])[2]) < _STEEPEST)
