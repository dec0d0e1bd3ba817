"""The base class of semantics of objects that stand on supports: names, goal scenes, what is held, and grasps.

In such domains every movable frame is an *object*, and the frames of one class are *supports*: discs on places, objects
in areas. The parent of an object is what it is on, or the hand that holds it. A semantics of this kind derives from
:class:`TabletopSemantics`, sets three attributes, and adds its own facts and candidates::

    class Semantics(TabletopSemantics):
        object_type, support_type, relation = "item", "area", "in"

Invariants: as for every semantics, no state but the arm; equal scenes give equal objects, states and candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.pddl import Fact
from tmkit.robots import movable_frames
from tmkit.tamp.domains.semantics import DomainSemantics
from tmkit.tamp.domains.tabletop import held_object, pddl_names, require_standing
from tmkit.tamp.domains.traced_scene import incremental


class TabletopSemantics(DomainSemantics):
    """The part of a semantics that is the same wherever objects stand on supports.

    A subclass sets the three attributes and defines :meth:`~tmkit.tamp.DomainSemantics.state` and
    :meth:`~tmkit.tamp.DomainSemantics.candidates`.

    Attributes:
        object_type: the PDDL type of movable frames.
        support_type: the PDDL type of supports, and the class of their frames.
        relation: the predicate ``(relation object support)`` that an object is on a support.

    Args:
        manipulator: the arm that moves the objects.
    """

    object_type: ClassVar[str]
    support_type: ClassVar[str]
    relation: ClassVar[str]
    is_incremental = True

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and supports by PDDL name.

        Raises:
            SceneError: two of them have the same name in PDDL.
        """
        supports, frames = scene.frames_of_class(self.support_type), self.frames(scene)
        return {name: self.support_type if frame in supports else self.object_type for name, frame in frames.items()}

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield the support of each stated object as a fact, or that the hand holds it.

        Args:
            scene: the goal scene.
            objects: the PDDL objects of the start scene with their types.
            stated: the frames whose places the goal states.

        Raises:
            SceneError: the parent of an object is neither a support nor the hand.
        """
        del objects
        names = {frame: name for name, frame in self.frames(scene).items()}
        for frame in stated:
            if scene.parent(frame) == self.manipulator.tip:
                yield Fact.of("holding", names[frame])
            else:
                yield Fact.of(self.relation, names[frame], names[self.support_of(scene, frame)])

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of objects and supports by PDDL name.

        Raises:
            SceneError: two of them have the same name in PDDL.
        """
        return _frames(scene, self.support_type)

    def held(self, scene: SceneGraph) -> tuple[str | None, Fact]:
        """Return the frame of the object in the hand, or None, with the fact ``(holding object)`` or ``(handempty)``.

        Raises:
            SceneError: there are two in the hand.
        """
        frame = held_object(scene, movable_frames(scene), manipulator=self.manipulator)
        if frame is None:
            return None, Fact.of("handempty")
        return frame, Fact.of("holding", next(name for name, known in self.frames(scene).items() if known == frame))

    def is_support(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether objects may stand on a frame; by default, whether it has the class of the supports.

        Args:
            scene: the scene.
            frame: the frame.
        """
        return self.support_type in scene.classes(frame)

    def support_of(self, scene: SceneGraph, object: str) -> str:
        """Return the frame that an object is on.

        Args:
            scene: the scene.
            object: frame of the object.

        Raises:
            SceneError: its parent is no support.
        """
        parent = scene.parent(object)
        if parent is None or not self.is_support(scene, parent):
            known = ", ".join(scene.frames_of_class(self.support_type)) or "none"
            raise SceneError(
                f"object '{object}' has parent '{parent}', which is no {self.support_type} (class "
                f"'{self.support_type}': {known}) and not the hand '{self.manipulator.tip}'",
                frame=object,
            )
        return parent

    def checked_support_of(self, scene: SceneGraph, object: str) -> str:
        """Return the frame that an object is on, after :meth:`require_placed`; incremental.

        Args:
            scene: the scene.
            object: frame of the object.

        Raises:
            SceneError: its parent is no support, or it leans, floats, or stands beside it.
        """
        return _checked_support(scene, object, self)

    def require_placed(self, scene: SceneGraph, object: str, support: str) -> None:
        """Refuse an object that does not stand on its support; by default by :func:`require_standing`.

        Args:
            scene: the scene.
            object: frame of the object.
            support: its support.

        Raises:
            SceneError: it does not stand there.
        """
        del support
        require_standing(scene, object)


@incremental
def _frames(scene: SceneGraph, support_type: str) -> dict[str, str]:
    return pddl_names([*movable_frames(scene), *scene.frames_of_class(support_type)])


@incremental
def _checked_support(scene: SceneGraph, object: str, semantics: TabletopSemantics) -> str:
    support = semantics.support_of(scene, object)
    semantics.require_placed(scene, object, support)
    return support
