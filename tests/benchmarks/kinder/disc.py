"""Tasks of the disc with an arm that extends and a vacuum, which moves in a plane.

::

    Motion2D, from above            Obstruction2D, from the side
      +------------|-------+          +--------------------+
      |  o-=    |     [  ] |          |      o             |
      |         |  |       |          |      |  [ ]  [    ]|
      +------------|-------+          +===[______]=========+

The plane is that of x and y of the world, or, from the side, of x and z, so that the table is below
the blocks. All bodies have the same depth across the plane. The joints of the disc are two slides,
a turn and the extension of the arm; the observation has all sizes. Seen from above, it also lifts
objects off the floor, by half of their height, so that none passes above another. From the
configuration of an environment come the borders ``world_min_x`` to ``world_max_y``, ``table_pose``,
``table_width`` and ``table_height``.

The vacuum holds what is in a zone from 0.5 to 1.5 widths of the gripper before its face, and
contact is a collision. So the scenes have a cup on the gripper, three quarters of its width high.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kinder.robots import Hand, Part, ready_at
from benchmarks.kinder.worlds import Observation, Task, World, box

import tmkit as tk

_DEPTH = 0.1
"""Size of all bodies across the plane [m]."""

_WALL = 0.1
"""Thickness of the walls at the borders [m]."""

_MARK = 1e-3
"""Thickness of the mark of a region in the floor [m]."""

JOINTS = ("x", "y", "theta", "arm_joint")
"""Joints of the disc, which are features of its observation in the order of actions."""

_EDGE = 1e-3
"""Distance of a placed block from the edge of its region, since observations are rounded [m]."""

LIFT = "lift"
"""Joint that lifts the disc, which no observation or action has."""


@dataclass(frozen=True)
class Disc:
    """The disc without a world.

    Attributes:
        is_upright: whether the plane is that of x and z.
        ready: values of the joints at the start of an episode [rad or m].
    """

    is_upright: bool
    ready: tuple[tuple[str, float], ...] = ()

    @property
    def parts(self) -> dict[str, Part]:
        """Parts of an action, and the lift."""
        parts = {"disc": Part(JOINTS, slice(0, 4))}
        return parts if self.is_upright else {**parts, "lift": Part((LIFT,), None)}

    @property
    def hands(self) -> dict[str, Hand]:
        """The vacuum."""
        return {"disc": Hand(4, 1.0, 0.0, is_sustained=True)}

    @property
    def arm(self) -> tk.Manipulator:
        """The disc as an arm with a suction cup."""
        return tk.Manipulator(
            "disc",
            base="plane",
            tip="gripper",
            tool="tool",
            joints=JOINTS if self.is_upright else (LIFT, *JOINTS),
            ready=dict(self.ready),
            gripper_kind="suction",
            grip_force=100.0,
            contact_links=("cup",),
        )

    def at_home(self, observation: Observation) -> Disc:
        """Return the robot whose ready configuration is the observed one."""
        return replace(self, ready=tuple(self.joint_values(observation).items()))

    def joint_values(self, observation: Observation) -> dict[str, float]:
        """Return the observed values of the joints [rad or m]."""
        values = dict(zip(JOINTS, observation.values("robot", *JOINTS), strict=True))
        return values if self.is_upright else {LIFT: 0.0, **values}

    def is_holding(self, observation: Observation, arm: str) -> bool:
        """Return whether the vacuum is on; observations lack the objects that it holds."""
        del arm
        return observation.values("robot", "vacuum")[0] > 0.5

    def pose(self, x: float, y: float, angle: float) -> tk.Pose:
        """Return world_from_object of an object in the plane."""
        sine, cosine = math.sin(angle / 2.0), math.cos(angle / 2.0)
        if self.is_upright:
            return tk.Pose([x, 0.0, y], quat_xyzw=[0.0, -sine, 0.0, cosine])
        return tk.Pose([x, y, 0.0], quat_xyzw=[0.0, 0.0, sine, cosine])

    def rectangle(self, width: float, height: float) -> tk.AttachedShape:
        """Return a box in the plane; sizes may be negative, as those of walls in Motion2D."""
        width, height = abs(width), abs(height)
        if self.is_upright:
            return box([width / 2.0, _DEPTH / 2.0, height / 2.0])
        return box([width / 2.0, height / 2.0, _DEPTH / 2.0])

    def scene(self, observation: Observation, config: Any) -> tk.SceneGraph:
        """Return the scene of the disc alone."""
        radius, length, height, width = observation.values(
            "robot", "base_radius", "arm_length", "gripper_height", "gripper_width"
        )
        up = [0.0, 0.0, 1.0] if self.is_upright else [0.0, 1.0, 0.0]
        across = [0.0, -1.0, 0.0] if self.is_upright else [0.0, 0.0, 1.0]
        quarter = math.sqrt(0.5)
        turned = tk.Pose([0.0] * 3, quat_xyzw=[quarter, 0.0, 0.0, quarter])
        upright = turned if self.is_upright else tk.Pose()
        along = tk.Pose([0.0] * 3, quat_xyzw=[0.0, quarter, 0.0, quarter])
        x = tk.Prismatic([1, 0, 0], lower=config.world_min_x, upper=config.world_max_x)
        y = tk.Prismatic(up, lower=config.world_min_y, upper=config.world_max_y)
        extend = tk.Prismatic([1, 0, 0], lower=radius, upper=length)
        disc = tk.AttachedShape(tk.Cylinder(radius, _DEPTH), upright)
        rod = self.rectangle(length - radius, width / 2.0)
        rod = rod.replace(pose=tk.Pose([-(length - radius) / 2.0, 0.0, 0.0]))
        cup = tk.AttachedShape(tk.Cylinder(0.5 * width, 0.75 * width), along)
        scene = tk.SceneGraph().add_frame("plane", "world")
        below = "plane"
        if not self.is_upright:
            below = LIFT
            lift = tk.Prismatic([0, 0, 1], lower=0.0, upper=_DEPTH / 2.0)
            scene = scene.add_frame(LIFT, "plane", joint=lift)
        scene = scene.add_frame("x", below, joint=x).add_frame("y", "x", joint=y)
        scene = scene.add_frame("theta", "y", joint=tk.Continuous(across), shapes=[disc])
        gripper = self.rectangle(width, height)
        scene = scene.add_frame("arm_joint", "theta", joint=extend, shapes=[rod])
        scene = scene.add_frame("gripper", "arm_joint", pose=tk.Pose(), shapes=[gripper])
        face = 0.5 * width
        scene = scene.add_frame(
            "cup", "gripper", pose=tk.Pose([face + 0.375 * width, 0.0, 0.0]), shapes=[cup]
        )
        scene = scene.add_frame(
            "tool", "gripper", pose=tk.Pose([face + 0.75 * width, 0.0, 0.0]) @ along
        )
        for part in ("arm_joint", "gripper", "cup"):
            scene = scene.allow_collision("theta", part)  # the arm is in the disc
        return scene

    def world(self, observation: Observation, config: Any) -> World:
        """Return the world of an observation within its borders."""
        world = World(self.scene(observation, config), observation, self.joint_values(observation))
        left, right = config.world_min_x, config.world_max_x
        bottom, top = config.world_min_y, config.world_max_y
        walls = {
            "left_wall": (left - _WALL / 2.0, (bottom + top) / 2.0, _WALL, top - bottom),
            "right_wall": (right + _WALL / 2.0, (bottom + top) / 2.0, _WALL, top - bottom),
            "bottom_wall": ((left + right) / 2.0, bottom - _WALL / 2.0, right - left, _WALL),
            "top_wall": ((left + right) / 2.0, top + _WALL / 2.0, right - left, _WALL),
        }
        for name, (x, y, width, height) in walls.items():
            world.add_fixture(name, self.pose(x, y, 0.0), [self.rectangle(width, height)])
        return world

    def observed(
        self, observation: Observation, name: str, *, edge: float = 0.0
    ) -> tuple[tk.Pose, tk.AttachedShape]:
        """Return world_from_rectangle of the middle of a rectangle, and its shape.

        Args:
            observation: the observation.
            name: name of the rectangle.
            edge: width of a strip that the shape lacks on both sides [m].
        """
        x, y, angle, width, height = observation.values(name, "x", "y", "theta", "width", "height")
        cosine, sine = math.cos(angle), math.sin(angle)
        middle = (
            x + (cosine * width - sine * height) / 2.0,
            y + (sine * width + cosine * height) / 2.0,
        )
        return self.pose(*middle, angle), self.rectangle(width - 2.0 * edge, height)


def make_disc(folder: Path, is_upright: bool) -> Disc:
    """Return the disc, which has no files."""
    del folder
    return Disc(is_upright)


def motion_task(observation: Observation, robot: Disc, config: Any) -> Task:
    """Return the task to move the middle of the disc into the target."""
    world = robot.world(observation, config)
    for name in observation.names("obstacle"):
        pose, shape = robot.observed(observation, name)
        world.add_fixture(name, pose, [shape])
    target, _ = robot.observed(observation, "target_region")
    x, y, _ = target.translation
    goal = ready_at(robot.arm, {**robot.joint_values(observation), "x": x, "y": y})
    return Task(world.scene, world.q, "kitchen", "(athome)", (goal,))


def obstruction_task(observation: Observation, robot: Disc, config: Any) -> Task:
    """Return the task to put the target block onto its region of the table."""
    world = robot.world(observation, config)
    width, height = config.table_width, config.table_height
    corner = config.table_pose
    table = robot.pose(corner.x + width / 2.0, corner.y + height / 2.0, 0.0)
    world.add_fixture("table", table, [robot.rectangle(width, height)], classes=["surface"])
    pose, shape = robot.observed(observation, "target_surface", edge=_EDGE)
    world.add_fixture("target_surface", pose, [shape], classes=["region"], parent="table")
    for name in ["target_block", *observation.names("obstruction")]:
        pose, shape = robot.observed(observation, name)
        world.add_object(name, pose, [shape])
    goal = "(on target_block target_surface)"
    return Task(world.scene, world.q, "kitchen", goal, (robot.arm,))


def add_floor(world: World, config: Any) -> None:
    """Add the floor below the objects."""
    x, y = config.world_max_x - config.world_min_x, config.world_max_y - config.world_min_y
    middle = [config.world_min_x + x / 2.0, config.world_min_y + y / 2.0, -(_DEPTH + _WALL) / 2.0]
    floor = box([x / 2.0, y / 2.0, _WALL / 2.0])
    world.add_fixture("floor", tk.Pose(middle), [floor], classes=["surface"])
    for part in ("theta", "arm_joint", "gripper", "cup"):
        world.scene = world.scene.allow_collision(part, "floor")


def add_mark(world: World, name: str, pose: tk.Pose, size: Sequence[float]) -> None:
    """Add a region of the floor."""
    x, y, _ = pose.translation
    centre = tk.Pose([x, y, -(_DEPTH + _MARK) / 2.0], quat_xyzw=pose.quat_xyzw)
    shape = box([size[0] / 2.0, size[1] / 2.0, _MARK / 2.0])
    world.add_fixture(name, centre, [shape], classes=["region"], parent="floor")


def retrieval_task(observation: Observation, robot: Disc, config: Any) -> Task:
    """Return the task to put the target block into its region of the floor."""
    world = robot.world(observation, config)
    add_floor(world, config)
    pose, _ = robot.observed(observation, "target_region")
    width, height = observation.values("target_region", "width", "height")
    add_mark(world, "target_region", pose, [width - 2.0 * _EDGE, height - 2.0 * _EDGE])
    for name in ["target_block", *observation.names("obstruction")]:
        pose, shape = robot.observed(observation, name)
        world.add_object(name, pose, [shape])
    goal = "(on target_block target_region)"
    return Task(world.scene, world.q, "kitchen", goal, (robot.arm,))


def storage_task(observation: Observation, robot: Disc, config: Any) -> Task:
    """Return the task to put the blocks into the shelf, which is between two walls."""
    world = robot.world(observation, config)
    add_floor(world, config)
    left, bottom, width, height = observation.values("shelf", "x", "y", "width", "height")
    inner, inner_width = observation.values("shelf", "x1", "width1")
    middle = bottom + height / 2.0
    walls = {"left_end": (left, inner), "right_end": (inner + inner_width, left + width)}
    for name, (start, end) in walls.items():
        if end - start > _EDGE:
            pose = robot.pose((start + end) / 2.0, middle, 0.0)
            world.add_fixture(name, pose, [robot.rectangle(end - start, height)])
    size = [inner_width - 2.0 * _EDGE, height - 2.0 * _EDGE]
    add_mark(world, "shelf", robot.pose(inner + inner_width / 2.0, middle, 0.0), size)
    blocks = observation.names("block")
    for name in blocks:
        pose, shape = robot.observed(observation, name)
        world.add_object(name, pose, [shape])
    goal = f"(and {' '.join(f'(on {name} shelf)' for name in blocks)})"
    return Task(world.scene, world.q, "kitchen", goal, (robot.arm,))
