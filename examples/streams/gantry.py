"""Gantry with a suction cup above a line of blocks, which two examples share."""

from collections.abc import Iterator, Mapping

import numpy as np

import tmkit as tk
from tmkit.manipulation import Grasp
from tmkit.tamp.streams import SceneView, stream

SIZE = 0.04
"""Edge length of a block [m]."""

ROBOT = tk.Manipulator(
    "gantry",
    base="world",
    tip="cup",
    tool="cup",
    joints=("along", "up"),
    ready={"along": 0.0, "up": 0.2},
    gripper_kind="suction",
    contact_links=("cup",),
)
"""Robot that moves along the line and up."""


def make_line(positions: Mapping[str, float]) -> tk.SceneGraph:
    """Return the gantry above the line.

    Args:
        positions: position of each block on the line [m].
    """
    rail = tk.AttachedShape(tk.Box([1.2, 0.1, 0.02]), pose=tk.Pose([0.0, 0.0, -0.01]))
    cup = tk.AttachedShape(tk.Cylinder(0.01, 0.02), pose=tk.Pose([0.0, 0.0, -0.01]))
    cube = tk.AttachedShape(tk.Box([SIZE, SIZE, SIZE]))
    along = tk.Prismatic([1, 0, 0], lower=-0.6, upper=0.6, name="along")
    up = tk.Prismatic([0, 0, 1], lower=0.0, upper=0.3, name="up")
    down = tk.Pose.from_rpy([0.0, 0.0, 0.0], [np.pi, 0.0, 0.0])
    scene = tk.SceneGraph().add_frame("line", "world", shapes=[rail])
    scene = scene.add_frame("carriage", "world", joint=along).add_frame("rod", "carriage", joint=up)
    scene = scene.add_frame("cup", "rod", pose=down, shapes=[cup])
    for block, x in positions.items():
        pose = tk.Pose([x, 0.0, SIZE / 2])
        scene = scene.add_frame(block, "line", pose=pose, shapes=[cube], classes=["movable"])
    return scene


@stream("?b - block", gives="?g - grasp", certifies="(grasp ?b ?g)")
def top_grasp(view: SceneView, b: str) -> Iterator[Grasp]:
    """Yield the only grasp: the cup on top of the block."""
    del view, b
    yield Grasp(tk.Pose.from_rpy([0.0, 0.0, SIZE / 2], [np.pi, 0.0, 0.0]), 0.0, "on top")
