"""The reachable region of an arm: where its tool comes, and from how many sides, found by random configurations.

The joints of the arm are drawn at random within their limits while all others stay as they are when
ready; what collides is dropped. Of the rest the position of the tool and its z axis are kept.

Everything is a function of scene, arm and seed. O(samples * pairs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld
from tmkit._support.elementary import circle, cos, sin
from tmkit._support.results import Displayed
from tmkit.errors import ConfigurationError
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.graph import SceneGraph, Shape
from tmkit.robots.manipulator import Manipulator
from tmkit.spatial.plain import plain_numbers

_ROUND = 24
"""Corners by which a circle is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachableRegion(Displayed):
    """Where a tool comes.

    Attributes:
        arm: name of the arm.
        tool: the frame whose positions these are.
        frame: the frame in which everything is expressed: the root of the scene.
        samples: random configurations drawn.
        positions: (n, 3) metres, one for each configuration without a collision.
        approaches: (n, 3) unit vectors: the z axis of the tool there.
        outline: points (m, 3) in metres of each collision shape of the robot when it is ready.
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
        """Return for each point (..., 3), in the axes of ``positions``, the metres to the nearest position of the tool.

        Random configurations are never everywhere, so a small distance means that the tool comes
        there, and one larger than the gaps between positions that it hardly does; infinite where no
        configuration was free.

        Raises:
            ConfigurationError: points of another shape.
        """
        from scipy.spatial import cKDTree

        given = plain_numbers(points, "points")
        if given.shape[-1:] != (3,):
            raise ConfigurationError(
                f"expected points of three numbers, received an array of shape {given.shape}"
            )
        if not len(self.positions):
            return np.full(given.shape[:-1], np.inf)
        return np.asarray(cKDTree(self.positions).query(given)[0], dtype=np.float64)

    def directions_reached(self, cell: float = 0.1) -> NDArray[np.int64]:
        """Return for each position (n,) how many of six directions, 1 to 6, the tool has in its cube.

        Args:
            cell: edge of the cubes, metres.

        Raises:
            ConfigurationError: an edge that is not positive.
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
        seen = np.zeros((cube.max() + 1, 6), dtype=bool)
        seen[cube, 2 * axis + sign] = True
        return np.asarray(seen.sum(axis=1)[cube], dtype=np.int64)


def reachable_region(
    scene: SceneGraph, manipulator: Manipulator, *, samples: int = 20000, seed: int = 0
) -> ReachableRegion:
    """Find where the tool of an arm comes.

    Args:
        scene: the robot, alone or in its cell, whose obstacles hold.
        manipulator: the arm.
        samples: random configurations of the arm, uniform within its limits.
        seed: makes the answer repeatable.

    Raises:
        RobotError: the arm does not fit the scene.
        ConfigurationError: fewer than one sample.
        ShapeError: a collision mesh is flat and has no hull.
    """
    if samples < 1:
        raise ConfigurationError(
            f"expected at least one sample, received {samples}", received=samples
        )
    manipulator.check(scene)
    ready = manipulator.ready_configuration(scene)
    moving = [scene.joint_names.index(joint) for joint in manipulator.joints]
    drawn = np.tile(ready, (samples, 1))
    drawn[:, moving] = random_configurations(scene, samples, seed=seed)[:, moving]
    free = drawn[~CollisionWorld(scene).in_collision_batch(drawn)]
    root = scene.root(manipulator.tool)
    poses = [scene.pose(manipulator.tool, relative_to=root, q=q) for q in free]
    at = scene.at(ready)
    outline = tuple(
        (at.pose(frame, relative_to=root) @ part.pose).apply(hull_points(part.shape))
        for frame in scene.subtree(manipulator.base)
        for part in scene.shapes(frame)
        if part.collision
    )
    return ReachableRegion(
        manipulator.name,
        manipulator.tool,
        root,
        samples,
        np.array([pose.translation for pose in poses]).reshape(-1, 3),
        np.array([pose.rotation[:, 2] for pose in poses]).reshape(-1, 3),
        outline,
    )


def hull_points(shape: Shape) -> NDArray[np.float64]:
    """Return points (n, 3) whose hull is that of a shape, to within a chord of its circles."""
    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=np.float64)
    lower, upper = (np.asarray(corner) for corner in shape.bounds)
    turn = np.linspace(0.0, 2.0 * np.pi, _ROUND, endpoint=False)
    rim = np.column_stack([circle(turn), np.zeros(_ROUND)])
    if shape.kind == "plane":
        return np.zeros((0, 3))
    if shape.kind in ("box", "point_cloud", "height_field"):
        return np.array(
            [
                [x, y, z]
                for x in (lower[0], upper[0])
                for y in (lower[1], upper[1])
                for z in (lower[2], upper[2])
            ]
        )
    radius = upper[0]
    if shape.kind in ("sphere", "capsule"):
        rise = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _ROUND // 2 + 1)
        ball = (
            np.concatenate([rim * cos(angle) + [0.0, 0.0, sin(angle)] for angle in rise]) * radius
        )
        rise_of_cap = np.array([0.0, 0.0, upper[2] - radius])
        return np.concatenate([ball + rise_of_cap, ball - rise_of_cap])
    low = rim * radius + [0.0, 0.0, lower[2]]
    top = (
        np.array([[0.0, 0.0, upper[2]]])
        if shape.kind == "cone"
        else rim * radius + [0.0, 0.0, upper[2]]
    )
    return np.concatenate([low, top])
