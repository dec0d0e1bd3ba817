"""Objects that can be carried, by their class."""

from __future__ import annotations

from tmkit.graph import SceneGraph

MOVABLE_CLASSES = ("movable", "moveable")
"""Classes that mark a frame as an object that may be carried."""


def movable_frames(scene: SceneGraph) -> tuple[str, ...]:
    """Return the frames of an object class (``movable`` or ``moveable``) in insertion order."""
    found = {frame for name in MOVABLE_CLASSES for frame in scene.frames_of_class(name)}
    return tuple(sorted(found, key=scene.frame_id))  # ids grow with insertion


def is_movable(scene: SceneGraph, frame: str) -> bool:
    """Return whether a frame has an object class (``movable`` or ``moveable``).

    Args:
        scene: the scene.
        frame: name of the frame.
    """
    return not set(MOVABLE_CLASSES).isdisjoint(scene.classes(frame))
