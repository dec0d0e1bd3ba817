"""Observations of KinDER's environments as scenes.

A task is made of three sources, all of which an agent has: the observation, the fields of the
environment's configuration class with their defaults, and the model files of robot and laboratory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.motion.regions.surfaces import region_surface

_MASS = 0.05
"""Mass of an object [kg]."""

_ROUNDING = 1e-6
"""Largest error of observed sizes and positions, which are of single precision [m]."""

_MAX_SINKING = 0.005
"""Largest depth of an object in the support that it is assigned to [m]."""


@dataclass(frozen=True)
class Task:
    """A planning problem of one observation.

    Attributes:
        scene: scene of the observation.
        q: (n_joints,) observed configuration.
        domain: name of the domain.
        goal: goal in PDDL.
        robots: the arms, and the base if it drives.
    """

    scene: tk.SceneGraph
    q: NDArray[np.float64]
    domain: str
    goal: str
    robots: tuple[tk.Manipulator, ...]


class Observation:
    """Named access to the features of an object-centric state.

    Args:
        state: state of ``observation_space.devectorize``.
    """

    def __init__(self, state: Any) -> None:
        self._state = state
        self._objects = {item.name: item for item in state}

    def names(self, prefix: str) -> list[str]:
        """Return the objects whose names begin with a prefix, in the order of their names."""
        return sorted(name for name in self._objects if name.startswith(prefix))

    def values(self, name: str, *features: str) -> list[float]:
        """Return features of an object."""
        return [float(self._state.get(self._objects[name], feature)) for feature in features]

    def features(self, name: str) -> list[str]:
        """Return the features of an object."""
        return list(self._state.type_features[self._objects[name].type])

    def kind(self, name: str) -> str:
        """Return the name of the type of an object."""
        return str(self._objects[name].type.name)

    def pose(self, name: str) -> tk.Pose:
        """Return world_from_object."""
        x, y, z, *quat_xyzw = self.values(
            name, *(f"pose_{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
        )
        return tk.Pose([x, y, z], quat_xyzw=quat_xyzw)

    def half_extents(self, name: str) -> list[float]:
        """Return the half extents of a cuboid [m]."""
        return self.values(name, "half_extent_x", "half_extent_y", "half_extent_z")

    @property
    def base(self) -> list[float]:
        """x, y and yaw of the TidyBot's base [m, rad]."""
        return self.values("robot", "pos_base_x", "pos_base_y", "pos_base_rot")


def box(half_extents: Sequence[float], pose: tk.Pose | None = None) -> tk.AttachedShape:
    """Return a box of half extents (3,) [m] at frame_from_box."""
    return tk.AttachedShape(tk.Box([2.0 * size for size in half_extents]), pose or tk.Pose())


def hollow_box(half_extents: Sequence[float], wall: float) -> list[tk.AttachedShape]:
    """Return the bottom and the four walls of an open box."""
    x, y, z = half_extents
    half = wall / 2.0
    shapes = [box([x, y, half], tk.Pose([0.0, 0.0, half - z]))]
    for sign in (-1.0, 1.0):
        shapes.append(box([half, y, z], tk.Pose([sign * (x - half), 0.0, 0.0])))
        shapes.append(box([x, half, z], tk.Pose([0.0, sign * (y - half), 0.0])))
    return shapes


def prism(corners: Sequence[Sequence[float]], depth: float) -> tk.AttachedShape:
    """Return a prism on a convex polygon (n, 2), centred in z."""
    flat = np.asarray(corners)[:, :2]
    count = len(flat)
    vertices = np.vstack(
        [np.column_stack([flat, np.full(count, z)]) for z in (-depth / 2, depth / 2)]
    )
    faces = [[0, i + 1, i] for i in range(1, count - 1)]
    faces += [[count, count + i, count + i + 1] for i in range(1, count - 1)]
    for i in range(count):
        j = (i + 1) % count
        faces += [[i, j, count + j], [i, count + j, count + i]]
    return tk.AttachedShape(tk.Mesh(vertices, np.array(faces)))


class World:
    """Scene of an observation in the making.

    Args:
        scene: scene of the robot.
        observation: the observation.
        joint_values: observed values of the robot's joints [rad or m].
    """

    def __init__(
        self, scene: tk.SceneGraph, observation: Observation, joint_values: Mapping[str, float]
    ) -> None:
        self.scene, self.observation = scene, observation
        self._joint_values = dict(joint_values)
        self._supports: list[tuple[str, NDArray[np.float64], NDArray[np.float64]]] = []

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) observed configuration."""
        names = self.scene.joint_names
        values = {joint: value for joint, value in self._joint_values.items() if joint in names}
        return self.scene.configuration(values)

    def add_fixture(
        self,
        name: str,
        pose: tk.Pose,
        shapes: Iterable[tk.AttachedShape],
        *,
        classes: Sequence[str] = (),
        parent: str = "world",
    ) -> None:
        """Add a body at world_from_body that does not move; with classes it supports objects."""
        shapes = list(shapes)
        self.scene = self.scene.add_frame(name, "world", pose=pose, classes=classes, shapes=shapes)
        if parent != "world":
            self.scene = self.scene.reparent(name, parent, q=self.q)
        if classes:
            self._supports.append((name, *_world_bounds(pose, shapes)))

    def add_object(
        self,
        name: str,
        pose: tk.Pose,
        shapes: Sequence[tk.AttachedShape],
        *,
        hand: str = "",
        centre: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Add an object at world_from_object, on the support below it or in the hand.

        Args:
            name: name of the object.
            pose: world_from_object.
            shapes: shapes of the object.
            hand: frame of the hand that holds it, if any.
            centre: (3,) centre of mass in the axes of the object [m].
        """
        inertia = tk.Inertia(_MASS, list(centre), matrix=(1e-4 * np.eye(3)).tolist())
        self.scene = self.scene.add_frame(
            name, "world", pose=pose, classes=["movable"], shapes=shapes
        ).set_inertia(name, inertia)
        parent = hand or self._support_below(pose, shapes)
        self.scene = self.scene.reparent(name, parent, q=self.q)

    def add_support(self, name: str) -> None:
        """Let objects stand on the main surface of a body that is in the scene."""
        surface = region_surface(self.scene, name, q=self.q)
        corners = surface.polygon.vertices
        points = np.column_stack([corners, np.zeros(len(corners))])
        world_from_surface = (
            self.scene.pose(name, relative_to="world") @ surface.support_from_surface
        )
        points = world_from_surface.apply(points)
        self._supports.append((name, points.min(axis=0), points.max(axis=0)))

    def _support_below(self, pose: tk.Pose, shapes: Iterable[tk.AttachedShape]) -> str:
        """Return the highest support below an object; of several, the smallest below all of it."""
        lower, upper = _world_bounds(pose, shapes)
        below = []
        for name, low, high in self._supports:
            overlaps = np.all(lower[:2] < high[:2]) and np.all(upper[:2] > low[:2])
            if overlaps and high[2] <= lower[2] + _MAX_SINKING:
                is_whole = np.all(lower[:2] > low[:2] - _ROUNDING)
                is_whole &= np.all(upper[:2] < high[:2] + _ROUNDING)
                area = float(np.prod(high[:2] - low[:2]))
                below.append((round(float(high[2]), 6), bool(is_whole), -area, name))
        if not below:
            raise ValueError(f"no support below an object at {pose.translation}")
        return max(below)[-1]


def _world_bounds(
    pose: tk.Pose, shapes: Iterable[tk.AttachedShape]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of the box around shapes in the world [m]."""
    corners = []
    for attached in shapes:
        low, high = attached.shape.bounds
        points = np.array(
            [
                [x, y, z]
                for x in (low[0], high[0])
                for y in (low[1], high[1])
                for z in (low[2], high[2])
            ]
        )
        corners.append((pose @ attached.pose).apply(points))
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def planar_pose(x: float, y: float, yaw: float, z: float = 0.0) -> tk.Pose:
    """Return a pose in the plane."""
    return tk.Pose([x, y, z], quat_xyzw=[0.0, 0.0, math.sin(yaw / 2.0), math.cos(yaw / 2.0)])


def pose_of(value: Any) -> tk.Pose:
    """Return a pose of pybullet_helpers as one of tmkit."""
    return tk.Pose(list(value.position), quat_xyzw=list(value.orientation))
