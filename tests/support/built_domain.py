"""A meaning of the blocks domain in a class of a module, where other processes find it too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from support.gantry import GANTRY
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate
from tmkit.pddl import GroundAction, State
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.tamp import DomainSemantics, load_planning_domain

__all__ = ["OF_OURS", "Meaning"]

OF_OURS = load_planning_domain("blocks", robot=GANTRY).semantics


class Meaning(DomainSemantics):
    """The meaning of our blocks domain, under another name."""

    def __init__(self, robot: Manipulator) -> None:
        super().__init__(robot)
        self.same = type(OF_OURS)(robot)

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the objects."""
        return self.same.objects(scene)

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the true facts."""
        return self.same.state(scene, objects, q)

    def relevant_objects(self, scene: SceneGraph, q: Configuration) -> frozenset[str]:
        """Return the useful objects."""
        return self.same.relevant_objects(scene, q)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to do it."""
        return self.same.candidates(action, context)
