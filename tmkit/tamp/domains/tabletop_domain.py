"""What semantics of things that stand on supports begin with: names, goals shown by scenes, and grasps.

In such domains every movable frame is a *thing*, and the frames of one class are *supports*: discs on places, items in
areas. The parent of a thing says what it is on, or that the hand holds it. A semantics of this kind derives from
:class:`StandingThings`, says its words in three attributes, and adds what its own facts and places are::

    class Semantics(StandingThings):
        thing, support, relation = "item", "area", "in"

Invariants: as for every semantics, no state but the arm; equal scenes give equal answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Impossible, Pick
from tmkit.manipulation.grasps.sampling import all_grasps_are_known
from tmkit.pddl import Fact
from tmkit.robots import movable_frames
from tmkit.tamp.domains.semantics import DomainSemantics
from tmkit.tamp.domains.tabletop import grasps_steepest_first, held_object, pddl_names, require_standing, why_no_grasp
from tmkit.tamp.domains.traced_scene import incremental

__all__ = ["StandingThings"]


class StandingThings(DomainSemantics):
    """The part of a semantics that is the same wherever things stand on supports.

    Attributes:
        thing: the PDDL type of what is movable.
        support: the PDDL type, and the class of frames, of what it stands on.
        relation: the predicate ``(relation thing support)`` that says so.

    Args:
        manipulator: the arm that moves the things.
    """

    thing: ClassVar[str]
    support: ClassVar[str]
    relation: ClassVar[str]
    is_incremental = True

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return things and supports by PDDL name.

        Raises:
            SceneError: two of them have one name in PDDL.
        """
        supports = scene.frames_of_class(self.support)
        return {name: self.support if frame in supports else self.thing for name, frame in self.frames(scene).items()}

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield what each stated thing is to be on, or that the hand is to hold it.

        Args:
            scene: the goal scene.
            objects: type of each object.
            stated: frames of the objects in the goal.

        Raises:
            SceneError: a thing that hangs off nothing the domain knows.
        """
        del objects
        names = {frame: name for name, frame in self.frames(scene).items()}
        for item in stated:
            if scene.parent(item) == self.manipulator.tip:
                yield Fact.of("holding", names[item])
            else:
                yield Fact.of(self.relation, names[item], names[self.support_of(scene, item)])

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of things and supports by PDDL name."""
        return _frames(scene, self.support)

    def held(self, scene: SceneGraph) -> tuple[str | None, Fact]:
        """Return the thing in the hand, if any, and the fact that says so, or that the hand is empty.

        Raises:
            SceneError: there are two.
        """
        item = held_object(scene, movable_frames(scene), manipulator=self.manipulator)
        if item is None:
            return None, Fact.of("handempty")
        return item, Fact.of("holding", next(name for name, frame in self.frames(scene).items() if frame == item))

    def is_support(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether objects may stand on a frame: by default, whether it has the class of supports.

        Args:
            scene: the scene.
            frame: the frame.
        """
        return self.support in scene.classes(frame)

    def support_of(self, scene: SceneGraph, item: str) -> str:
        """Return the support of an object.

        Args:
            scene: the scene.
            item: the object.

        Raises:
            SceneError: it hangs off nothing the domain knows.
        """
        parent = scene.parent(item)
        if parent is None or not self.is_support(scene, parent):
            known = ", ".join(scene.frames_of_class(self.support)) or "none"
            what = f"{self.thing} '{item}' hangs off '{parent}', which is no {self.support} (class '{self.support}':"
            raise SceneError(f"{what} {known}) and not the hand '{self.manipulator.tip}'", frame=item)
        return parent

    def stands_on(self, scene: SceneGraph, item: str) -> str:
        """Return the support of an object, after checking that it stands on it upright.

        Args:
            scene: the scene.
            item: the object.

        Raises:
            SceneError: it hangs off nothing the domain knows, or leans, floats, or stands beside it.
        """
        return _checked_support(scene, item, self)

    def require_placed(self, scene: SceneGraph, item: str, support: str) -> None:
        """Check that an object stands on its support.

        Args:
            scene: the scene.
            item: the object.
            support: its support.
        """
        del support
        require_standing(scene, item)

    def picks(self, context: ActionContext, item: str) -> Iterator[Candidate]:
        """Yield the grasps of an object, from above first, or the candidate ``Impossible``.

        Args:
            context: scene and configuration.
            item: the object.
        """
        grasps = grasps_steepest_first(context, item, manipulator=self.manipulator)
        if not grasps:
            yield Impossible(why_no_grasp(item, self.manipulator), is_proved=all_grasps_are_known(context.scene, item))
        for grasp in grasps:
            yield Pick(item, grasp)


@incremental
def _frames(scene: SceneGraph, support: str) -> dict[str, str]:
    return pddl_names([*movable_frames(scene), *scene.frames_of_class(support)])


@incremental
def _checked_support(scene: SceneGraph, item: str, semantics: StandingThings) -> str:
    support = semantics.support_of(scene, item)
    semantics.require_placed(scene, item, support)
    return support
