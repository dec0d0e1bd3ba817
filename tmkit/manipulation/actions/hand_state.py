"""Conditions of actions on the contents of the hands.

A pick, push or operation needs an empty hand; a place, pour or handover needs its object in the
hand. An action in another scene fails at once, with the contents of the hand in the message.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmkit.graph import SceneGraph
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import MOVABLE_CLASSES, held_object, is_movable


def empty_hand_failure(
    scene: SceneGraph, arm: Manipulator, *, frame: str, phase: str
) -> MotionFailure | None:
    """Return the failure if the hand of an arm is not empty, or None.

    Args:
        scene: scene before the action.
        arm: arm that acts.
        frame: frame of the object or handle for which the hand must be empty.
        phase: name of the action in the failure.
    """
    held = held_object(scene, arm)
    if held is None:
        return None
    cause = f"'{frame}' needs an empty hand, but that of '{arm.name}' holds '{held}'"
    return MotionFailure(phase, cause, kind=FailureKind.HAND)


def free_object_failure(
    scene: SceneGraph, arms: Sequence[Manipulator], *, object: str, phase: str
) -> MotionFailure | None:
    """Return the failure if an arm cannot take or push an object from its support, or None.

    The hand of the arm must be empty, and the object movable and in no other hand.

    Args:
        scene: scene before the action.
        arms: all arms, the acting one first.
        object: frame of the object.
        phase: name of the action in the failure.
    """
    failure = empty_hand_failure(scene, arms[0], frame=object, phase=phase)
    if failure is not None:
        return failure
    parent = scene.parent(object)
    if not is_movable(scene, object):
        classes = " or ".join(f"'{name}'" for name in MOVABLE_CLASSES)
        cause = f"'{object}' is not a movable object, which has the class {classes}"
        return MotionFailure(phase, cause, kind=FailureKind.HAND)
    for arm in arms[1:]:
        if parent == arm.tip:
            cause = (
                f"'{object}' is in the hand of '{arm.name}', from which only a handover takes it"
            )
            return MotionFailure(phase, cause, kind=FailureKind.HAND)
    return None


def held_object_failure(
    scene: SceneGraph, arm: Manipulator, *, object: str, phase: str
) -> MotionFailure | None:
    """Return the failure if the hand of an arm does not hold an object, or None.

    Args:
        scene: scene before the action.
        arm: arm that acts.
        object: frame of the object.
        phase: name of the action in the failure.
    """
    held = held_object(scene, arm)
    if held == object:
        return None
    contents = "nothing" if held is None else f"'{held}'"
    cause = f"'{object}' is not in the hand of '{arm.name}', which holds {contents}"
    return MotionFailure(phase, cause, kind=FailureKind.HAND)
