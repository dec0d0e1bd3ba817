"""Objects are movable frames, spots are surfaces; the parent of an object is its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Pick, Place, grasps_of
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics


class Semantics(DomainSemantics):
    """The meaning of spots for one arm."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and spots."""
        objects = dict.fromkeys(movable_frames(scene), "item")
        return {**objects, **dict.fromkeys(scene.frames_of_class("surface"), "spot")}

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return where every object is."""
        del objects, q  # the state covers all frames of the scene
        facts = []
        for object in movable_frames(scene):
            parent = scene.parent(object) or ""
            facts.append(
                Fact.of("held", object)
                if parent == self.robot.tip
                else Fact.of("at", object, parent)
            )
        return State(
            [
                *facts,
                *([] if any(fact.predicate == "held" for fact in facts) else [Fact.of("free")]),
            ]
        )

    def relevant_objects(self, scene: SceneGraph, q: np.ndarray) -> frozenset[str]:
        """Return all objects."""
        del q
        return frozenset(self.objects(scene))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps, or places in the middle of a spot."""
        object, spot = action.arguments
        if action.name == "take":
            for grasp in grasps_of(context.scene, object, robot=self.robot):
                yield Pick(object, grasp)
        else:
            top, bottom = (context.scene.shapes(frame)[0].shape.bounds for frame in (spot, object))
            yield Place(object, spot, Pose([0.0, 0.0, float(top[1][2] - bottom[0][2])]))
