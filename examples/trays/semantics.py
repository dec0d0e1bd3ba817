"""Semantics of the trays domain in a scene.

An object (PDDL type ``item``) is a frame of class ``movable``; a *tray* is one of class ``tray``.
An object is in the tray that is its parent. Both are single boxes, centred on their frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Pick, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics

SPACING = 0.07
"""Metres between neighbouring places in a tray."""


class Semantics(DomainSemantics):
    """The meaning of the trays domain for one arm.

    Args:
        robot: the arm that moves the objects.
    """

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and trays by name; the names must be lower-case PDDL names."""
        return dict.fromkeys(movable_frames(scene), "item") | dict.fromkeys(
            scene.frames_of_class("tray"), "tray"
        )

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is.

        Raises:
            SceneError: if an object is in no tray and not in the hand.
        """
        del q
        facts: list[Fact] = []
        for object in movable_frames(scene):
            parent = scene.parent(object)
            if parent == self.robot.tip:
                facts.append(Fact.of("holding", object))
            elif parent is not None and objects.get(parent) == "tray":
                facts.append(Fact.of("in", object, parent))
            else:
                raise SceneError(
                    f"'{object}' has parent '{parent}', which is no tray and not the hand",
                    frame=object,
                )
        if not any(fact.predicate == "holding" for fact in facts):
            facts.append(Fact.of("handempty"))
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the object, or places for it in the tray, from the middle outwards."""
        object, tray = action.arguments
        if action.name == "take":
            for grasp in context.grasps(object):
                yield Pick(object, grasp)
            return
        (box,), (carton,) = context.scene.shapes(tray), context.scene.shapes(object)
        height = (box.shape.dimensions[2] + carton.shape.dimensions[2]) / 2
        places = [(SPACING * i, SPACING * j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        for x, y in sorted(places, key=lambda place: place[0] ** 2 + place[1] ** 2):
            yield Place(object, tray, Pose([x, y, height]))
