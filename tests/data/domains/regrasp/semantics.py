"""An object is taken from above and then by its other two sides, an action of two candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Grasp, Pick, Place, Sequence
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics


class Semantics(DomainSemantics):
    """The meaning for one arm."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the objects."""
        return dict.fromkeys(movable_frames(scene), "item")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return which object is held, and whether the fingers close across it."""
        del q
        held = [object for object in objects if scene.parent(object) == self.robot.tip]
        across = [
            object for object in held if _is_across(scene.pose(self.robot.tool, relative_to=object))
        ]
        return State(
            [
                *(Fact.of("held", object) for object in held),
                *(Fact.of("across", object) for object in across),
            ]
        )

    def relevant_objects(self, scene: SceneGraph, q: np.ndarray) -> frozenset[str]:
        """Return all."""
        del q
        return frozenset(self.objects(scene))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps from above, or putting down and taking again."""
        (object,) = action.arguments
        grasps = [grasp for grasp in context.grasps(object) if "from +z" in grasp.name]
        if action.name == "take":
            yield from (
                Pick(object, grasp) for grasp in grasps if not _is_across(grasp.object_from_tool)
            )
            return
        for placement in context.placements(object, "table"):
            for grasp in grasps:
                if _is_across(grasp.object_from_tool):
                    yield _again(object, grasp, placement.support_from_object)


def _again(object: str, grasp: Grasp, pose: Pose) -> Sequence:
    return Sequence((Place(object, "table", pose), Pick(object, grasp)), object=object)


def _is_across(object_from_tool: Pose) -> bool:
    return bool(abs(object_from_tool.rotate([0.0, 1.0, 0.0])[0]) > 0.9)
