"""Scenes with hard motions: a Panda, ten blocks on a table, a wall, and a cubby behind the wall.

Each query leads from one side of the wall to the other. *Wall*: from a grasp from above to another
among the blocks, around a wall of 34 cm. *Cubby*: over the wall into a box that is open towards the
arm, grasping horizontally.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from support.pinocchio_oracle import add_boxes, robot_scene
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionWorld, IkSettings, inverse_kinematics_solutions
from tmkit.spatial import Pose

__all__ = ["ARM", "BOXES", "NEVER", "TIP", "Query", "blocks_scene", "cubby_query", "wall_query"]

ARM = [f"panda_joint{i}" for i in range(1, 8)]
TIP = "panda_grasptarget"
BOXES = {"table": ((0.8, 1.2, 0.04), (0.7, 0.0, -0.03))} | {
    f"block{i}": ((0.05, 0.05, 0.05), (0.4 + 0.1 * (i % 5), -0.3 + 0.6 * (i // 5), 0.025))
    for i in range(10)
}
WALL = {"wall": ((0.5, 0.04, 0.34), (0.55, 0.0, 0.17))}
CUBBY = {
    "cubby_bottom": ((0.24, 0.3, 0.02), (0.68, 0.25, 0.21)),
    "cubby_top": ((0.24, 0.3, 0.02), (0.68, 0.25, 0.51)),
    "cubby_left": ((0.24, 0.02, 0.28), (0.68, 0.39, 0.36)),
    "cubby_right": ((0.24, 0.02, 0.28), (0.68, 0.11, 0.36)),
    "cubby_back": ((0.02, 0.3, 0.32), (0.81, 0.25, 0.36)),
}
NEVER = {("panda_link0", name): -math.inf for name in (*BOXES, *WALL, *CUBBY)}
_DOWN = (1.0, 0.0, 0.0, 0.0)
_FORWARD = (0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


@dataclass(frozen=True)
class Query:
    """A motion to be found: full configurations (n_joints,) in a version of a scene."""

    name: str
    scene: SceneGraph
    start: NDArray[np.float64]
    goal: NDArray[np.float64]

    def world(self, margin: float) -> CollisionWorld:
        """Return the collision world with a margin; the arm's foot may touch its support."""
        margins = {pair: value for pair, value in NEVER.items() if pair[1] in self.scene}
        return CollisionWorld(self.scene, margin=margin, pair_margins=margins)


def blocks_scene() -> SceneGraph:
    """Return the arm, the table and ten blocks."""
    return add_boxes(robot_scene("panda"), BOXES)


def _query(name: str, scene: SceneGraph, start: Pose, goal: Pose) -> Query:
    """Find configurations of the arm, the fingers open, for both poses of the tip."""
    ready = scene.configuration(
        {"panda_joint4": -1.8, "panda_joint6": 1.8, "panda_finger_joint1": 0.04}
    )
    world = Query(name, scene, ready, ready).world(0.002)
    ends = [
        inverse_kinematics_solutions(
            world, TIP, target_pose=pose, joints=ARM, q=ready, settings=IkSettings(max_solutions=1)
        ).configurations
        for pose in (start, goal)
    ]
    return Query(name, scene, ends[0][0], ends[1][0])


def wall_query() -> Query:
    """Return the query around the wall."""
    scene = add_boxes(blocks_scene(), WALL)
    return _query("wall", scene, Pose([0.5, -0.3, 0.12], _DOWN), Pose([0.5, 0.3, 0.12], _DOWN))


def cubby_query() -> Query:
    """Return the query over the wall into the cubby."""
    scene = add_boxes(blocks_scene(), WALL | CUBBY)
    return _query("cubby", scene, Pose([0.5, -0.3, 0.12], _DOWN), Pose([0.7, 0.25, 0.36], _FORWARD))
