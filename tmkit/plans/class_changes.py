"""Changes of classes of frames and of task facts by an action.

The symbolic state is derived from the scene. An action without motion, such as washing a block,
adds classes to frames or removes them: ``clean``. A step of a plan stores the changes, which are
applied after its motion.

Invariants: no change adds or removes a class that marks movable objects
(:data:`tmkit.robots.mechanisms.MOVABLE_CLASSES`), so collision checks stay the same. Added classes
are new, and removed classes exist. The same holds for task facts (:func:`tmkit.graph.task_facts`).
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
        added: new classes, appended in this order.
        removed: classes to remove.
    """

    frame: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        changes = [f"+{name}" for name in self.added] + [f"-{name}" for name in self.removed]
        return f"{self.frame} {' '.join(changes)}"


@dataclass(frozen=True)
class FactEffect:
    """Task facts that an action adds and removes, each sorted."""

    added: tuple[TaskFact, ...] = ()
    removed: tuple[TaskFact, ...] = ()

    def __str__(self) -> str:
        added = [f"+{_fact_text(fact)}" for fact in self.added]
        removed = [f"-{_fact_text(fact)}" for fact in self.removed]
        return " ".join(added + removed)


def apply_effects(scene: SceneGraph, changes: Iterable[ClassEffect | FactEffect]) -> SceneGraph:
    """Return the scene after changes of classes and task facts.

    Args:
        scene: scene before the changes.
        changes: changes in order.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if an added class or fact exists, a removed one is missing, or a class marks
            movable objects.
    """
    for change in changes:
        if isinstance(change, FactEffect):
            scene = _apply_fact_effect(scene, change)
        else:
            scene = _apply_class_effect(scene, change)
    return scene


def _apply_class_effect(scene: SceneGraph, change: ClassEffect) -> SceneGraph:
    """Return the scene after a change of classes.

    Raises:
        UnknownNameError: if the frame is unknown.
        SceneError: if the change is invalid.
    """
    frame = change.frame
    classes = tuple(scene.classes(frame))
    changed_classes = (*change.added, *change.removed)
    if not changed_classes or len(set(changed_classes)) < len(changed_classes):
        raise SceneError(f"a change of classes of '{frame}' names none, or one twice", frame=frame)
    for name in changed_classes:
        if name in MOVABLE_CLASSES:
            reason = f"class '{name}' of '{frame}' marks a movable object, which no action changes"
            raise SceneError(reason, frame=frame)
    for name in change.added:
        if name in classes:
            raise SceneError(f"'{frame}' has the class '{name}' already", frame=frame)
    for name in change.removed:
        if name not in classes:
            hint = did_you_mean(name, classes)
            raise SceneError(f"'{frame}' has no class '{name}' to lose{hint}", frame=frame)
    remaining = [name for name in classes if name not in change.removed]
    return scene.set_classes(frame, [*remaining, *change.added])


def _apply_fact_effect(scene: SceneGraph, change: FactEffect) -> SceneGraph:
    """Return the scene after a change of task facts.

    Raises:
        SceneError: if an added fact holds or a removed fact does not hold.
    """
    true_facts = task_facts(scene)
    for fact in change.added:
        if fact in true_facts:
            raise SceneError(f"a change of task facts: {_fact_text(fact)} holds already")
    for fact in change.removed:
        if fact not in true_facts:
            raise SceneError(f"a change of task facts: {_fact_text(fact)} does not hold")
    return change_task_facts(scene, change.added, change.removed)


def _fact_text(fact: TaskFact) -> str:
    """Return a fact in PDDL."""
    name, arguments = fact
    return f"({' '.join((name, *arguments))})"
