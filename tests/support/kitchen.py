"""Kitchens with an iiwa between stove and sink, and blocks in a circle around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tmkit as tk
from tmkit._support.elementary import circle
from tmkit.graph import AttachedShape, Box, Inertia, SceneGraph
from tmkit.spatial import Pose

__all__ = ["ANGLES", "BLOCK_SIZE", "ROBOT", "block_names", "cook_goal", "kitchen", "stove_goal"]

ROBOT = "iiwa_flange"
BLOCK_SIZE = (0.06, 0.06, 0.2)
ANGLES = (90, -90, 70, -70, 110, -110, 50, -50)
"""Degrees around the arm at which the blocks stand, on a circle of 0.5 m."""

_RADIUS = 0.5
_MASS = 0.2
_COLORS = (
    (0.84, 0.25, 0.24),
    (0.22, 0.47, 0.75),
    (0.33, 0.64, 0.36),
    (0.95, 0.76, 0.26),
    (0.56, 0.38, 0.66),
)


def block_names(blocks: int) -> tuple[str, ...]:
    """Return the names of the first blocks."""
    return tuple(f"b{number}" for number in range(blocks))


def kitchen(blocks: int, *, angles: Sequence[float] = ANGLES) -> SceneGraph:
    """Return the kitchen with so many blocks of 0.06 m x 0.06 m x 0.2 m on the floor."""
    scene = tk.load_scene("iiwa_kitchen")
    floor = scene.pose("floor", relative_to="world")
    inertia = Inertia(_MASS)
    around = circle(np.radians(angles)).tolist()
    for name, (x, y) in zip(block_names(blocks), around, strict=False):
        centre = [_RADIUS * x, _RADIUS * y, BLOCK_SIZE[2] / 2]
        color = (*_COLORS[int(name[1:]) % len(_COLORS)], 1.0)
        scene = scene.add_frame(
            name,
            "floor",
            pose=floor.inverse() @ Pose(centre),
            classes=["movable"],
            shapes=[AttachedShape(Box(BLOCK_SIZE), color=color)],
        ).set_inertia(name, inertia)
    return scene


def stove_goal(blocks: int) -> str:
    """Return the goal: all blocks on the stove and the arm at home."""
    return f"(and {' '.join(f'(on {name} stove)' for name in block_names(blocks))} (athome))"


def cook_goal(blocks: int) -> str:
    """Return the goal: all blocks cooked and the arm at home."""
    return f"(and {' '.join(f'(cooked {name})' for name in block_names(blocks))} (athome))"
