"""The distance between the collision shapes of two frames."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from tmkit._core import CollisionWorld
from tmkit.graph import SceneGraph
from tmkit.robots.movable import movable_frames


def pair_distance(scene: SceneGraph, q: ArrayLike, *, frame_a: str, frame_b: str) -> float:
    """Return the metres between the collision shapes of two frames; negative when they overlap.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        frame_a: one frame.
        frame_b: the other, also when the scene allows the two to touch.

    Returns:
        The signed distance; ``inf`` when one of them has no collision shape, or both move as one.
    """
    movable, scene = movable_frames(scene), scene.forbid_collision(frame_a, frame_b)
    every = CollisionWorld(scene, movable=movable).pairs
    others = {(i, j): -math.inf for i, j, _ in every if {i, j} != {frame_a, frame_b}}
    return float(CollisionWorld(scene, movable=movable, pair_margins=others).distance(q))
