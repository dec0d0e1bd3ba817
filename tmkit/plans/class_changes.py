"""Changes of a scene by an action besides poses: the classes of frames, and facts of the task alone.

The state is derived from the scene, so an action that moves nothing, as washing a block, gives
classes to frames, or takes them away: ``clean``. A plan's step carries the changes, and a consumer
applies them after the step's motion.

Invariants: a change never speaks of the classes by which the rules of contact know what may be
carried (:data:`tmkit.robots.mechanisms.MOVABLE_CLASSES`), so it changes no collision. It changes
something: what is added was not there, what is removed was. Facts of the task
(:func:`tmkit.graph.task_facts`) are changed likewise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tmkit._support.source_location import did_you_mean
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph, change_task_facts, task_facts
from tmkit.graph.task_facts import TaskFact
from tmkit.robots.mechanisms import MOVABLE_CLASSES


@dataclass(frozen=True)
class ClassEffect:
    """Classes that a frame gains and loses.

    Attributes:
        frame: the frame.
        added: classes that it gains, in this order behind those that it has.
        removed: classes that it loses.
    """

    frame: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"+{name}" for name in self.added] + [f"-{name}" for name in self.removed]
        return f"{self.frame} {' '.join(words)}"


@dataclass(frozen=True)
class FactEffect:
    """Facts of the task that an action adds and removes, each sorted."""

    added: tuple[TaskFact, ...] = ()
    removed: tuple[TaskFact, ...] = ()

    def __str__(self) -> str:
        signed = [("+", fact) for fact in self.added] + [("-", fact) for fact in self.removed]
        return " ".join(
            f"{sign}({' '.join((name, *arguments))})" for sign, (name, arguments) in signed
        )


def with_class_changes(
    scene: SceneGraph, changes: Iterable[ClassEffect | FactEffect]
) -> SceneGraph:
    """Return the scene after changes of classes and task facts, in order.

    Args:
        scene: the scene.
        changes: the changes.

    Raises:
        UnknownNameError: no such frame.
        SceneError: a class that is added though it is there, removed though it is not, or says what
            may be carried; or such a fact.
    """
    for change in changes:
        if isinstance(change, FactEffect):
            scene = _with_facts(scene, change)
            continue
        has = tuple(scene.classes(change.frame))
        named = (*change.added, *change.removed)
        if not named or len(set(named)) < len(named):
            raise SceneError(
                f"a change of classes of '{change.frame}' names none, or one twice",
                frame=change.frame,
            )
        for name in named:
            if name in MOVABLE_CLASSES:
                what = (
                    f"class '{name}' of '{change.frame}' marks a movable object, which no action"
                    " changes"
                )
                raise SceneError(what, frame=change.frame)
        for name in change.added:
            if name in has:
                raise SceneError(
                    f"'{change.frame}' has the class '{name}' already", frame=change.frame
                )
        for name in change.removed:
            if name not in has:
                near = did_you_mean(name, has)
                raise SceneError(
                    f"'{change.frame}' has no class '{name}' to lose{near}", frame=change.frame
                )
        kept = [name for name in has if name not in change.removed]
        scene = scene.set_classes(change.frame, [*kept, *change.added])
    return scene


def _with_facts(scene: SceneGraph, change: FactEffect) -> SceneGraph:
    held = task_facts(scene)
    for facts, wrong, what in (
        (change.added, True, "holds already"),
        (change.removed, False, "does not hold"),
    ):
        for fact in facts:
            if (fact in held) is wrong:
                raise SceneError(
                    f"a change of task facts: ({' '.join((fact[0], *fact[1]))}) {what}"
                )
    return change_task_facts(scene, change.added, change.removed)
