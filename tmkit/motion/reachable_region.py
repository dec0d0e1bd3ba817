"""Reachable region of an arm: positions and directions of its tool, from random configurations.

The joints of the arm have random values within their limits, and all others their ready values.
Configurations with collisions are dropped. The others contribute the position of the tool and its z
axis.

All results depend only on the scene, the arm and the seed. O(samples * pairs).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import circle, cos, sin
from tmkit._support.results import Displayed
from tmkit.errors import ConfigurationError
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.graph import SceneGraph, Shape
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial.plain import plain_numbers

_CIRCLE_CORNERS = 24
"""Number of corners of the polygons that approximate circles."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachableRegion(Displayed):
    """Sampled positions and directions of the tool of an arm.

    Attributes:
        arm: name of the arm.
        tool: frame of the tool.
        frame: frame of expression of all vectors, which is the root of the tool.
        samples: number of random configurations.
        positions: (n, 3) tool positions, one for each configuration without a collision [m].
        approaches: (n, 3) unit vectors of the tool's z axis at these positions.
        outline: points (m, 3) of each collision shape of the ready robot [m].
    """

    arm: str
    tool: str
    frame: str
    samples: int
    positions: NDArray[np.float64]
    approaches: NDArray[np.float64]
    outline: tuple[NDArray[np.float64], ...]

    def __repr__(self) -> str:
        return (
            f"ReachableRegion('{self.arm}', {len(self.positions)} of {self.samples} configurations"
            " free)"
        )

    def distance(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the distance of each point to the nearest sampled tool position.

        The samples have gaps. A distance below the size of the gaps means that the tool reaches the
        point. With a larger one, this is unlikely.

        Args:
            points: (..., 3) points, in the axes of ``positions`` [m].

        Returns:
            (...) distances [m], infinite if no configuration is free of collisions.

        Raises:
            ConfigurationError: if the points have another shape.
        """
        from scipy.spatial import cKDTree

        targets = plain_numbers(points, "points", "m")
        if targets.shape[-1:] != (3,):
            raise ConfigurationError(
                f"expected points of three numbers, received an array of shape {targets.shape}"
            )
        if not len(self.positions):
            return np.full(targets.shape[:-1], np.inf)
        return np.asarray(cKDTree(self.positions).query(targets)[0], dtype=np.float64)

    def directions_reached(self, cell: float = 0.1) -> NDArray[np.int64]:
        """Return the number (n,) of tool directions, 1 to 6, in the cube of each position.

        The six directions are those of the coordinate axes.

        Args:
            cell: edge length of the cubes [m].

        Raises:
            ConfigurationError: if the edge length is not positive.
        """
        if not cell > 0.0:
            raise ConfigurationError(
                f"expected a cube with a positive edge, received {cell}", received=cell
            )
        if not len(self.positions):
            return np.zeros(0, dtype=np.int64)
        cubes = np.floor(self.positions / cell).astype(np.int64)
        cube = np.unique(cubes, axis=0, return_inverse=True)[1].reshape(-1)
        axis = np.argmax(np.abs(self.approaches), axis=1)
        sign = np.take_along_axis(self.approaches, axis[:, None], axis=1)[:, 0] < 0.0
        has_direction = np.zeros((cube.max() + 1, 6), dtype=bool)
        has_direction[cube, 2 * axis + sign] = True
        return np.asarray(has_direction.sum(axis=1)[cube], dtype=np.int64)


def reachable_region(
    scene: SceneGraph, robot: Robot, *, samples: int = 20000, seed: int = 0
) -> ReachableRegion:
    """Sample the reachable region of the tool of an arm.

    Args:
        scene: the robot, alone or among obstacles.
        robot: name or description of the arm.
        samples: number of random configurations, uniform within the joint limits.
        seed: seed of the random configurations.

    Raises:
        RobotError: if the arm does not match the scene.
        MissingFileError: if there is no robot of the name.
        ConfigurationError: if there is less than one sample.
        ShapeError: if a collision mesh is flat and has no hull.
    """
    if samples < 1:
        raise ConfigurationError(
            f"expected at least one sample, received {samples}", received=samples
        )
    robot = resolve_robot(robot, scene, function="reachable_region")
    robot.check(scene)
    ready = robot.ready_configuration(scene)
    columns = [scene.joint_names.index(joint) for joint in robot.joints]
    configurations = np.tile(ready, (samples, 1))
    configurations[:, columns] = random_configurations(scene, samples, seed=seed)[:, columns]
    is_colliding = CollisionWorld(scene).in_collision_batch(configurations)
    free = configurations[~is_colliding]
    root = scene.root(robot.tool)
    poses = [scene.pose(robot.tool, relative_to=root, q=q) for q in free]
    kinematics = scene.at(ready)
    outline = tuple(
        (kinematics.pose(frame, relative_to=root) @ part.pose).apply(hull_points(part.shape))
        for frame in scene.subtree(robot.base)
        for part in scene.shapes(frame)
        if part.collision
    )
    return ReachableRegion(
        robot.name,
        robot.tool,
        root,
        samples,
        np.array([pose.translation for pose in poses]).reshape(-1, 3),
        np.array([pose.rotation[:, 2] for pose in poses]).reshape(-1, 3),
        outline,
    )


def hull_points(shape: Shape) -> NDArray[np.float64]:
    """Return points (n, 3) whose hull is that of a shape, with polygons for circles."""
    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=np.float64)
    lower, upper = (np.asarray(corner) for corner in shape.bounds)
    angles = np.linspace(0.0, 2.0 * np.pi, _CIRCLE_CORNERS, endpoint=False)
    rim = np.column_stack([circle(angles), np.zeros(_CIRCLE_CORNERS)])
    if shape.kind == "plane":
        return np.zeros((0, 3))
    if shape.kind in ("box", "point_cloud", "height_field"):
        return np.array(list(product(*zip(lower, upper, strict=True))))
    radius = upper[0]
    if shape.kind in ("sphere", "capsule"):
        latitudes = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _CIRCLE_CORNERS // 2 + 1)
        circles = [rim * cos(angle) + [0.0, 0.0, sin(angle)] for angle in latitudes]
        ball = np.concatenate(circles) * radius
        cap_offset = np.array([0.0, 0.0, upper[2] - radius])
        return np.concatenate([ball + cap_offset, ball - cap_offset])
    base = rim * radius + [0.0, 0.0, lower[2]]
    if shape.kind == "cone":
        return np.concatenate([base, [[0.0, 0.0, upper[2]]]])
    return np.concatenate([base, rim * radius + [0.0, 0.0, upper[2]]])
