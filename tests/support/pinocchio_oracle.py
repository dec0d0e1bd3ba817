"""Collision results of pinocchio as an oracle: a robot of pybullet_data and static boxes.

The oracle reads the URDF itself (its own parser, its own mesh loader, its own convex hulls by
qhull) and tests all pairs one by one, so that only the geometry is shared with the tested code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import coal
import numpy as np
import pinocchio
import pybullet_data
from numpy.typing import NDArray

from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose

__all__ = ["ROBOTS", "PinocchioOracle", "add_boxes", "robot_scene"]

ROBOTS = {"panda": "franka_panda/panda.urdf", "iiwa": "kuka_iiwa/model.urdf"}

Boxes = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def robot_path(robot: str) -> Path:
    """Return the URDF file of a robot of pybullet_data."""
    return Path(pybullet_data.getDataPath()) / ROBOTS[robot]


def robot_scene(robot: str) -> SceneGraph:
    """Load a robot of pybullet_data, and allow contact of links whose hulls always overlap."""
    scene = load_scene(robot_path(robot))
    if robot == "panda":
        scene = scene.allow_collision("panda_link5", "panda_link7", reason="hulls overlap")
    return scene


def add_boxes(scene: SceneGraph, boxes: Boxes) -> SceneGraph:
    """Put boxes (size, centre) on the world."""
    for name, (size, center) in boxes.items():
        scene = scene.add_frame(name, "world", pose=Pose(center), shapes=[AttachedShape(Box(size))])
    return scene


class PinocchioOracle:
    """The robot and boxes in pinocchio, with exactly the pairs and margins of a collision world."""

    def __init__(self, robot: str, boxes: Boxes, world: CollisionWorld) -> None:
        """Load the robot, make hulls, and enable the pairs of ``world``."""
        path = str(robot_path(robot))
        folder = str(Path(path).parent)
        self.model = pinocchio.buildModelFromUrdf(path)
        self.geometry = pinocchio.buildGeomFromUrdf(
            self.model,
            path,
            pinocchio.GeometryType.COLLISION,
            package_dirs=[pybullet_data.getDataPath(), folder],
        )
        frames: dict[str, list[int]] = {}
        for index, item in enumerate(self.geometry.geometryObjects):
            if hasattr(item.geometry, "buildConvexHull"):
                item.geometry.buildConvexHull(True, "Qt")
                item.geometry = item.geometry.convex
            frames.setdefault(self.model.frames[item.parentFrame].name, []).append(index)
        for name, (size, center) in boxes.items():
            placement = pinocchio.SE3(np.eye(3), np.array(center, dtype=float))
            shape = coal.Box(*map(float, size))
            frames[name] = [
                self.geometry.addGeometryObject(
                    pinocchio.GeometryObject(name, 0, 0, placement, shape)
                )
            ]
        margins: list[float] = []
        for frame_a, frame_b, margin in world.pairs:
            for a in frames[frame_a]:
                for b in frames[frame_b]:
                    self.geometry.addCollisionPair(pinocchio.CollisionPair(a, b))
                    margins.append(margin)
        self.data = self.model.createData()
        self.geometry_data = pinocchio.GeometryData(self.geometry)
        for request, margin in zip(self.geometry_data.collisionRequests, margins, strict=True):
            request.security_margin = margin
        self.joint_names = world.scene.joint_names

    def configuration(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return pinocchio's configuration, in which a mimic joint follows its leader."""
        values = dict(zip(self.joint_names, q, strict=True))
        full = np.zeros(self.model.nq)
        for joint in range(1, len(self.model.names)):
            name = self.model.names[joint].replace("finger_joint2", "finger_joint1")
            full[self.model.joints[joint].idx_q] = values[name]
        return full

    def collides(self, q: NDArray[np.float64]) -> bool:
        """Test all pairs."""
        return bool(
            pinocchio.computeCollisions(
                self.model,
                self.data,
                self.geometry,
                self.geometry_data,
                self.configuration(q),
                True,
            )
        )

    def broad_phase(self) -> pinocchio.BroadPhaseManager_DynamicAABBTreeCollisionManager:
        """Return pinocchio's fastest checker for ``computeCollisions``."""
        return pinocchio.BroadPhaseManager_DynamicAABBTreeCollisionManager(
            self.model, self.geometry, self.geometry_data
        )
