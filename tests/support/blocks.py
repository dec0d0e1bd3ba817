"""Small blocks worlds under the gantry, in which planning is quick, for tests of the planner."""

from __future__ import annotations

from collections.abc import Mapping

from support.gantry import BLOCK, gantry_scene, with_block
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.spatial import Pose

__all__ = ["SUSSMAN", "blocks_scene", "with_box"]

SUSSMAN = "(and (on a b) (on b c))"
"""The goal of the Sussman anomaly, from ``blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})``."""


def blocks_scene(
    places: Mapping[str, tuple[float, float] | str], *, table: float = 0.6
) -> SceneGraph:
    """Return blocks of 5 cm under the gantry.

    Args:
        places: for each block its location on the table, in cells of 0.1 m that need not be whole,
            or the block below.
        table: length and width of the table [m].
    """
    scene = gantry_scene()
    scene = scene.set_shapes("table", [AttachedShape(Box([table, table, 0.1]))])
    for name, place in places.items():
        if isinstance(place, str):
            x, y, z = scene.pose(place, relative_to="world").translation
            scene = with_block(scene, name, [x, y, z + BLOCK], parent=place)
        else:
            scene = with_block(scene, name, [0.1 * place[0], 0.1 * place[1], BLOCK / 2])
    return scene


def with_box(
    scene: SceneGraph, name: str, lower: tuple[float, ...], upper: tuple[float, ...]
) -> SceneGraph:
    """Return the scene with a fixed box between two corners in the world [m]."""
    size = [high - low for low, high in zip(lower, upper, strict=True)]
    middle = [(high + low) / 2 for low, high in zip(lower, upper, strict=True)]
    return scene.add_frame(name, "world", pose=Pose(middle), shapes=[AttachedShape(Box(size))])
