"""Tasks of the TidyBot: observations as scenes, and goals in PDDL.

From the configuration of an environment come the sizes and poses that observations omit:

* ``table_pose``, ``table_half_extents``, ``rack_wall_thickness``, ``box_wall_thickness``
* ``shelf_width``, ``shelf_depth``, ``shelf_height``, ``shelf_spacing``, ``shelf_support_width``,
  ``shelf_num_layers``
* ``robot_base_z``, ``robot_base_home_pose``

Two properties are assumptions, since KinDER has no masses: an object weighs 50 g, and the arm's
ready configuration is that at the start of the episode, with the arm tucked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kinder.robots import CHASSIS_FROM_ARM, HAND, TidyBot
from benchmarks.kinder.worlds import (
    Observation,
    Task,
    World,
    box,
    hollow_box,
    planar_pose,
    pose_of,
    prism,
)

import tmkit as tk

_PEG = (0.01, 0.01, 0.025)
"""Half extents of the peg on a part of Packing3D, by pybullet_helpers [m]."""

_WORLD_SIZE = 5.0
"""Half of the side of the floor [m]."""


def standing_world(observation: Observation, robot: TidyBot, config: Any) -> World:
    """Return the world of an arm whose base does not move; KinDER does not check its chassis."""
    base = planar_pose(*observation.base, z=config.robot_base_z)
    scene = robot.scene.reparent("base_link", "world", pose=base @ CHASSIS_FROM_ARM)
    return World(scene, observation, robot.joint_values(observation))


def driving_world(observation: Observation, robot: TidyBot) -> tuple[World, tk.Manipulator]:
    """Return the world of an arm on its base, with a floor and a station at the start."""
    scene, base = robot.on_base(size=_WORLD_SIZE)
    world = World(scene, observation, robot.joint_values(observation))
    floor = box([_WORLD_SIZE, _WORLD_SIZE, 0.05], tk.Pose([0.0, 0.0, -0.05]))
    world.add_fixture("floor", tk.Pose(), [floor], classes=["surface"])
    world.scene = world.scene.allow_collision(base.tip, "floor")  # the chassis stands on it
    return world, base


def add_object(
    world: World,
    name: str,
    shapes: Sequence[tk.AttachedShape],
    *,
    centre: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Add an observed object, on the support below it or in the hand."""
    is_held = world.observation.values(name, "grasp_active")[0] > 0.5
    pose = world.observation.pose(name)
    world.add_object(name, pose, shapes, hand=HAND if is_held else "", centre=centre)


def add_boxes(world: World, prefix: str) -> list[str]:
    """Add the cuboids with a prefix, and return their names."""
    names = world.observation.names(prefix)
    for name in names:
        add_object(world, name, [box(world.observation.half_extents(name))])
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
    return Task(world.scene, world.q, "kitchen", "(on target_block target_region)", (robot.arm,))


def table_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to lift a cube from the table."""
    world = standing_world(observation, robot, config)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    cubes = add_boxes(world, "cube")
    holding = " ".join(f"(holding {name})" for name in cubes)
    goal = f"(and (or {holding}) (athome))"
    return Task(world.scene, world.q, "kitchen", goal, (robot.arm,))


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
        add_object(world, name, shapes, centre=middle.tolist())
    goal = f"(and {' '.join(f'(on {name} inside)' for name in parts)})"
    return Task(world.scene, world.q, "kitchen", goal, (robot.arm,))


def base_motion_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to drive to the target."""
    world, base = driving_world(observation, robot)
    x, y = observation.values("target", "x", "y")
    world.add_fixture("target", planar_pose(x, y, observation.base[2]), [], classes=())
    scene = world.scene.set_classes("target", ["station"])
    robots = (robot.arm, base)
    return Task(scene, world.q, "mobile_manipulation", "(at target)", robots)


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
    robots = (robot.arm, base)
    return Task(world.scene, world.q, "mobile_manipulation", goal, robots)


def cylinder_shelf_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry the cylinders to the shelf, here to its top layer."""
    world, base = driving_world(observation, robot)
    top = add_shelf(world, config)
    cylinders = observation.names("cylinder")
    for name in cylinders:
        x, _, z = observation.half_extents(name)
        shape = tk.AttachedShape(tk.Cylinder(x, 2.0 * z))
        add_object(world, name, [shape])
    goal = f"(and {' '.join(f'(on {name} {top})' for name in cylinders)})"
    robots = (robot.arm, base)
    return Task(world.scene, world.q, "mobile_manipulation", goal, robots)


def transport_task(observation: Observation, robot: TidyBot, config: Any) -> Task:
    """Return the task to carry cubes and box to the table, and to leave."""
    world, base = driving_world(observation, robot)
    world.add_fixture(
        "table", pose_of(config.table_pose), [box(config.table_half_extents)], classes=["surface"]
    )
    start = config.robot_base_home_pose
    world.add_fixture("start", planar_pose(start.x, start.y, start.rot), [])
    world.scene = world.scene.set_classes("start", ["station"])
    boxes, cubes = observation.names("box"), observation.names("cube")
    for name in boxes:
        shapes = hollow_box(observation.half_extents(name), config.box_wall_thickness)
        add_object(world, name, shapes)
    add_boxes(world, "cube")
    goals = " ".join(f"(on {name} table)" for name in (*cubes, *boxes))
    robots = (robot.arm, base)
    return Task(world.scene, world.q, "mobile_manipulation", f"(and {goals} (at start))", robots)


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
    robots = (robot.arm, base)
    return Task(world.scene, world.q, "mobile_manipulation", goal, robots)
