"""Contact of an object at rest with its support."""

from __future__ import annotations

import math

from tmkit.graph import SceneGraph
from tmkit.plans.values import Configuration
from tmkit.robots.hands import pair_distance, reason_without_distance

SUPPORT_TOLERANCE = 0.002
"""Largest distance between a released object and its support [m]."""


def support_fault(scene: SceneGraph, q: Configuration, *, object: str) -> str | None:
    """Return the reason why an object does not touch its support, or None if it does.

    Overlaps are not faults here: the collision check finds them.

    Args:
        scene: scene after the release, in which the support is the parent of the object.
        q: (n_joints,) configuration.
        object: frame of the object.
    """
    support = str(scene.parent(object))
    distance = pair_distance(scene, q, frame_a=object, frame_b=support)
    if distance <= SUPPORT_TOLERANCE:
        return None
    position = f"{distance * 1000:.1f} mm off '{support}'"
    if math.isinf(distance):
        position = f"on '{support}': {reason_without_distance(scene, object, support)}"
    return f"'{object}' is released {position}"
