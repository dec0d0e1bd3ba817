"""Observations of KinDER's environments as scenes, and their goals in PDDL.

A task is made of three sources, all of which an agent has: the observation, the fields of the
environment's configuration class with their defaults, and the model files of robot and laboratory.
From the configuration come the sizes and poses that observations omit:

* ``table_pose``, ``table_half_extents``, ``rack_wall_thickness``, ``box_wall_thickness``
* ``shelf_width``, ``shelf_depth``, ``shelf_height``, ``shelf_spacing``, ``shelf_support_width``,
  ``shelf_num_layers``
* ``robot_base_z``, ``robot_base_home_pose``

Two properties are assumptions, since KinDER has no masses: an object weighs 50 g, and the arm's
ready configuration is that at the start of the episode, with the arm tucked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kinder.robots import ARM_JOINTS, CHASSIS_FROM_ARM, FINGER_JOINT, TidyBot
from numpy.typing import NDArray

import tmkit as tk
from tmkit.motion.regions.surfaces import region_surface

_MASS = 0.05
"""Mass of an object [kg]."""

_PEG = (0.01, 0.01, 0.025)
"""Half extents of the peg on a part of Packing3D, by pybullet_helpers [m]."""

_MAX_SINKING = 0.005
"""Largest depth of an object in the support that it is assigned to [m]."""

_WORLD_SIZE = 5.0
"""Half of the side of the floor [m]."""


@dataclass(frozen=True)
class Task:
    """A planning problem of one observation.

    Attributes:
        scene: scene of the observation.
        q: (n_joints,) observed configuration.
        domain: name of the domain.
        goal: goal in PDDL.
        robots: the arm, and the base if it drives.
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
        """x, y and yaw of the base [m, rad]."""
        return self.values("robot", "pos_base_x", "pos_base_y", "pos_base_rot")

    @property
    def arm(self) -> list[float]:
        """Values of the arm's joints [rad]."""
        return self.values("robot", *ARM_JOINTS)

    @property
    def fingers(self) -> float:
        """Value of the finger joint [rad]."""
        return self.values("robot", "finger_state")[0]

    @property
    def is_holding(self) -> bool:
        """Whether the hand holds an object."""
        return self.values("robot", "grasp_active")[0] > 0.5


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
    """

    def __init__(self, scene: tk.SceneGraph, observation: Observation) -> None:
        self.scene, self.observation = scene, observation
        self._supports: list[tuple[str, NDArray[np.float64], NDArray[np.float64]]] = []

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
            self.scene = self.scene.reparent(name, parent, q=self.scene.zero_configuration())
        if classes:
            self._supports.append((name, *_world_bounds(pose, shapes)))

    def add_object(
        self,
        name: str,
        pose: tk.Pose,
        shapes: Sequence[tk.AttachedShape],
        q: NDArray[np.float64],
        *,
        centre: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Add an object at world_from_object, on the support below it or in the hand.

        Args:
            name: name of the object.
            pose: world_from_object.
            shapes: shapes of the object.
            q: (n_joints,) observed configuration.
            centre: (3,) centre of mass in the axes of the object [m].
        """
        inertia = tk.Inertia(_MASS, list(centre), matrix=(1e-4 * np.eye(3)).tolist())
        self.scene = self.scene.add_frame(
            name, "world", pose=pose, classes=["movable"], shapes=shapes
        ).set_inertia(name, inertia)
        is_held = self.observation.values(name, "grasp_active")[0] > 0.5
        parent = "bracelet_link" if is_held else self._support_below(pose, shapes)
        self.scene = self.scene.reparent(name, parent, q=q)

    def add_support(self, name: str) -> None:
        """Let objects stand on the main surface of a body that is in the scene."""
        surface = region_surface(self.scene, name, q=self.scene.zero_configuration())
        corners = surface.polygon.vertices
        points = np.column_stack([corners, np.zeros(len(corners))])
        world_from_surface = (
            self.scene.pose(name, relative_to="world") @ surface.support_from_surface
        )
        points = world_from_surface.apply(points)
        self._supports.append((name, points.min(axis=0), points.max(axis=0)))

    def _support_below(self, pose: tk.Pose, shapes: Iterable[tk.AttachedShape]) -> str:
        """Return the highest support below an object."""
        lower, upper = _world_bounds(pose, shapes)
        below = []
        for name, low, high in self._supports:
            overlaps = np.all(lower[:2] < high[:2]) and np.all(upper[:2] > low[:2])
            if overlaps and high[2] <= lower[2] + _MAX_SINKING:
                below.append((float(high[2]), name))
        if not below:
            raise ValueError(f"no support below an object at {pose.translation}")
        return max(below)[1]


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


def standing_world(observation: Observation, robot: TidyBot, config: Any) -> World:
    """Return the world of an arm whose base does not move; KinDER does not check its chassis."""
    base = planar_pose(*observation.base, z=config.robot_base_z)
    scene = robot.scene.reparent("base_link", "world", pose=base @ CHASSIS_FROM_ARM)
    return World(scene, observation)


def driving_world(observation: Observation, robot: TidyBot) -> tuple[World, tk.Manipulator]:
    """Return the world of an arm on its base, with a floor and a station at the start."""
    scene, base = robot.on_base(size=_WORLD_SIZE)
    world = World(scene, observation)
    floor = box([_WORLD_SIZE, _WORLD_SIZE, 0.05], tk.Pose([0.0, 0.0, -0.05]))
    world.add_fixture("floor", tk.Pose(), [floor], classes=["surface"])
    world.scene = world.scene.allow_collision(base.tip, "floor")  # the chassis stands on it
    return world, base


def observed_q(scene: tk.SceneGraph, observation: Observation) -> NDArray[np.float64]:
    """Return the observed configuration."""
    values = dict(zip(ARM_JOINTS, observation.arm, strict=True))
    values[FINGER_JOINT] = observation.fingers
    if "base/x" in scene.joint_names:
        values |= dict(zip(("base/x", "base/y", "base/yaw"), observation.base, strict=True))
    return scene.configuration(values)


def add_boxes(world: World, prefix: str) -> list[str]:
    """Add the cuboids with a prefix, and return their names."""
    names = world.observation.names(prefix)
    q = observed_q(world.scene, world.observation)
    for name in names:
        shapes = [box(world.observation.half_extents(name))]
        world.add_object(name, world.observation.pose(name), shapes, q)
    return names


def obstruction_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to put the target block onto its region."""
    world = standing_world(observation, robot, config)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    world.add_fixture(
        "target_region",
        observation.pose("target_region"),
        [box(observation.half_extents("target_region"))],
        classes=["region"],
        parent="table",
    )
    add_boxes(world, "target_block")
    add_boxes(world, "obstruction")
    q = observed_q(world.scene, observation)
    return Task(world.scene, q, "kitchen", "(on target_block target_region)", (robot.arm,))


def table_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to lift a cube from the table."""
    world = standing_world(observation, robot, config)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    cubes = add_boxes(world, "cube")
    holding = " ".join(f"(holding {name})" for name in cubes)
    goal = f"(and (or {holding}) (athome))"
    return Task(world.scene, observed_q(world.scene, observation), "kitchen", goal, (robot.arm,))


def packing_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to put the parts into the rack, whose bottom is the region of the goal."""
    from pybullet_helpers.utils import get_triangle_vertices

    world = standing_world(observation, robot, config)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    x, y, z = observation.half_extents("rack")
    wall = config.rack_wall_thickness
    bottom, *walls = hollow_box([x, y, z], wall)
    rack = observation.pose("rack")
    world.add_fixture("rack", rack, walls, parent="table")
    inside = box([x - wall, y - wall, wall / 2.0])
    world.add_fixture("inside", rack @ bottom.pose, [inside], classes=["surface"], parent="rack")
    q = observed_q(world.scene, observation)
    parts = observation.names("part")
    for name in parts:
        if observation.kind(name).endswith("Triangle"):
            a, b, depth, kind = observation.values(
                name, "side_a", "side_b", "depth", "triangle_type"
            )
            corners = get_triangle_vertices("equilateral" if kind < 0.5 else "right", (a, b))
            shapes, height = [prism(corners, depth)], depth / 2.0
            middle = np.mean(corners, axis=0)
        else:
            half_extents = observation.half_extents(name)
            shapes, height, middle = [box(half_extents)], half_extents[2], np.zeros(3)
        peg = tk.Pose([float(middle[0]), float(middle[1]), height + _PEG[2]])
        shapes.append(box(_PEG, peg))
        world.add_object(name, observation.pose(name), shapes, q, centre=middle.tolist())
    goal = f"(and {' '.join(f'(on {name} inside)' for name in parts)})"
    return Task(world.scene, q, "kitchen", goal, (robot.arm,))


def base_motion_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to drive to the target."""
    world, base = driving_world(observation, robot)
    x, y = observation.values("target", "x", "y")
    world.add_fixture("target", planar_pose(x, y, observation.base[2]), [], classes=())
    scene = world.scene.set_classes("target", ["station"])
    robots = (robot.at_home(observation.arm), base)
    return Task(scene, observed_q(scene, observation), "mobile_manipulation", "(at target)", robots)


def add_shelf(world: World, config: Any) -> str:
    """Add the shelf, and return its top layer."""
    pose = world.observation.pose("shelf")
    width, depth, height = config.shelf_width, config.shelf_depth, config.shelf_height
    spacing, count = config.shelf_spacing, config.shelf_num_layers
    side = config.shelf_support_width
    size = (count - 1) * spacing + count * height
    sides = [
        box(
            [side / 2, depth / 2, size / 2],
            tk.Pose([sign * (width + side) / 2, 0.0, (size - height) / 2]),
        )
        for sign in (-1.0, 1.0)
    ]
    layers = [tk.Pose([0.0, 0.0, number * (spacing + height)]) for number in range(count)]
    board = [width / 2, depth / 2, height / 2]
    world.add_fixture("shelf", pose, sides + [box(board, layer) for layer in layers[:-1]])
    world.add_fixture("top", pose @ layers[-1], [box(board)], classes=["surface"], parent="shelf")
    return "top"


def shelf_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry the cubes to the shelf, here to its top layer."""
    world, base = driving_world(observation, robot)
    top = add_shelf(world, config)
    cubes = add_boxes(world, "cube")
    goal = f"(and {' '.join(f'(on {name} {top})' for name in cubes)})"
    robots = (robot.at_home(observation.arm), base)
    q = observed_q(world.scene, observation)
    return Task(world.scene, q, "mobile_manipulation", goal, robots)


def cylinder_shelf_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry the cylinders to the shelf, here to its top layer."""
    world, base = driving_world(observation, robot)
    top = add_shelf(world, config)
    cylinders = observation.names("cylinder")
    q = observed_q(world.scene, observation)
    for name in cylinders:
        x, _, z = observation.half_extents(name)
        shape = tk.AttachedShape(tk.Cylinder(x, 2.0 * z))
        world.add_object(name, observation.pose(name), [shape], q)
    goal = f"(and {' '.join(f'(on {name} {top})' for name in cylinders)})"
    robots = (robot.at_home(observation.arm), base)
    return Task(world.scene, q, "mobile_manipulation", goal, robots)


def transport_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry cubes and box to the table, and to leave."""
    world, base = driving_world(observation, robot)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    start = config.robot_base_home_pose
    world.add_fixture("start", planar_pose(start.x, start.y, start.rot), [])
    world.scene = world.scene.set_classes("start", ["station"])
    q = observed_q(world.scene, observation)
    boxes, cubes = observation.names("box"), observation.names("cube")
    for name in boxes:
        shapes = hollow_box(observation.half_extents(name), config.box_wall_thickness)
        world.add_object(name, observation.pose(name), shapes, q)
    add_boxes(world, "cube")
    goals = " ".join(f"(on {name} table)" for name in (*cubes, *boxes))
    robots = (robot.at_home(observation.arm), base)
    return Task(world.scene, q, "mobile_manipulation", f"(and {goals} (at start))", robots)


@cache
def laboratory() -> tk.SceneGraph:
    """Return the laboratory of KinDER's model files."""
    import kinder.envs.dynamic3d

    folder = Path(kinder.envs.dynamic3d.__path__[0]) / "models" / "assets" / "prpl_lab"
    return tk.load_scene(folder / "urdf" / "PRPL_lab_full_collision.urdf")


def laboratory_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry the cubes to the counter of the laboratory.

    The mesh of the counter has a lip at the back. The environment collides with its convex hull,
    so the cubes are released above that, which the environment accepts at any height.
    """
    world, base = driving_world(observation, robot)
    counter = "lab_Countertop1_link"
    pose = observation.pose("prpl_lab")
    scene = world.scene.mount(laboratory(), "world", prefix="lab_", pose=pose)
    exact = [attached.replace(level="exact") for attached in scene.shapes(counter)]
    world.scene = scene.set_shapes(counter, exact).set_classes(counter, ["surface"])
    world.add_support(counter)
    cubes = add_boxes(world, "cube")
    goal = f"(and {' '.join(f'(on {name} {counter.lower()})' for name in cubes)})"
    robots = (robot.at_home(observation.arm), base)
    q = observed_q(world.scene, observation)
    return Task(world.scene, q, "mobile_manipulation", goal, robots)


@dataclass(frozen=True)
class Family:
    """Environments of one class.

    Attributes:
        module: module of the class below ``kinder.envs``.
        config: name of the configuration class.
        make: function that makes the task of an observation.
        variants: names of the variants.
        place_gap: height above its support at which an object is released [m]. Contact is a
            collision in the environments.
    """

    module: str
    config: str
    make: Callable[[Observation, TidyBot, Any], Task]
    variants: tuple[str, ...] = ("",)
    place_gap: float = 0.002

    def configuration(self) -> Any:
        """Return the configuration with its defaults."""
        import importlib

        return getattr(importlib.import_module(f"kinder.envs.{self.module}"), self.config)()


FAMILIES = {
    "BaseMotion3D": Family("kinematic3d.base_motion3d", "BaseMotion3DEnvConfig", base_motion_task),
    "KinematicCylinderShelf3D": Family(
        "kinematic3d.cylinder_shelf3d",
        "CylinderShelf3DEnvConfig",
        cylinder_shelf_task,
        ("o1", "o2", "o3"),
    ),
    "KinematicShelf3D": Family(
        "kinematic3d.shelf3d", "Shelf3DEnvConfig", shelf_task, ("o1", "o2", "o3", "o5", "o10")
    ),
    "Obstruction3D": Family(
        "kinematic3d.obstruction3d",
        "Obstruction3DEnvConfig",
        obstruction_task,
        ("o0", "o1", "o2", "o3", "o4"),
    ),
    "Packing3D": Family(
        "kinematic3d.packing3d", "Packing3DEnvConfig", packing_task, ("p1", "p2", "p3")
    ),
    "PrplLab3D": Family(
        "kinematic3d.prpl3d", "PrplLab3DEnvConfig", laboratory_task, ("o1", "o2"), 0.055
    ),
    "Table3D": Family("kinematic3d.table3d", "Table3DEnvConfig", table_task, ("o1", "o2", "o3")),
    "Transport3D": Family(
        "kinematic3d.transport3d", "Transport3DEnvConfig", transport_task, ("o1", "o2")
    ),
}
"""Families of environments by the name of their class."""
