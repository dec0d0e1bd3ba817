"""Tasks of the TidyBot in MuJoCo: objects and hand move by contact and friction.

Regions and fixtures are not observed. They come from the file of the environment's task, which is
part of the package: ``regions`` with their ``target`` and ``ranges``, and ``goal_state``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kinder.robots import ARM_JOINTS, BASE_JOINTS, HAND, Hand, TidyBot, make_tidybot
from benchmarks.kinder.tasks import driving_world
from benchmarks.kinder.worlds import Observation, Task, box

import tmkit as tk

_MARK = 1e-3
"""Thickness of the mark of a region in the floor [m]."""

_EDGE = 0.01
"""Distance of a placed object from the edge of its region [m]."""

_REACH = 0.05
"""Largest distance of a held object's middle from the tool [m]."""


@dataclass(frozen=True)
class DynamicTidyBot(TidyBot):
    """The TidyBot whose hand is commanded to a position in each action."""

    @property
    def hands(self) -> dict[str, Hand]:
        """Part of an action that closes and opens the hand."""
        return {self.arm.name: Hand(10, 1.0, 0.0, is_sustained=True)}

    def joint_values(self, observation: Observation) -> dict[str, float]:
        """Return the observed values of the joints; those of the fingers are not observed."""
        features = [f"pos_arm_joint{number}" for number in range(1, 8)]
        values = observation.values("robot", *features) + observation.base
        return dict(zip((*ARM_JOINTS, *BASE_JOINTS), values, strict=True))

    def is_holding(self, observation: Observation, arm: str) -> bool:
        """Return whether the hand is commanded to close, and an object is at the tool."""
        del arm
        return bool(self.held(observation))

    def held(self, observation: Observation) -> str:
        """Return the object in the closed hand, or an empty text."""
        if observation.values("robot", "pos_gripper")[0] < 0.5:
            return ""
        scene, _ = self.on_base(size=1.0)
        q = scene.configuration(self.joint_values(observation))
        tool = scene.pose(self.arm.tool or self.arm.tip, relative_to="world", q=q).translation
        for name in observation.names("cube"):
            if math.dist(tool, observation.values(name, "x", "y", "z")) < _REACH:
                return name
        return ""


def make_dynamic_tidybot(folder: Path) -> DynamicTidyBot:
    """Return the TidyBot."""
    robot = make_tidybot(folder)
    return DynamicTidyBot(robot.scene, robot.arm, robot.chassis)


def task_file(name: str) -> dict[str, Any]:
    """Return the file of a task.

    Args:
        name: name of the environment, as ``PickPlace3D-o1``.
    """
    import kinder.envs.dynamic3d

    folder = Path(kinder.envs.dynamic3d.__path__[0]) / "tasks" / name.split("-")[0]
    return json.loads((folder / f"{name}.json").read_text())


def ground_task(observation: Observation, robot: DynamicTidyBot, config: Any) -> Task:
    """Return the task to put objects into regions of the floor."""
    world, base = driving_world(observation, robot)
    goals = []
    for relation, name, region in config["goal_state"]:
        assert relation == "on"
        assert config["regions"][region]["target"] == "ground"
        left, front, right, back = config["regions"][region]["ranges"][0]
        middle = tk.Pose([(left + right) / 2.0, (front + back) / 2.0, -_MARK / 2.0])
        size = [(right - left) / 2.0 - _EDGE, (back - front) / 2.0 - _EDGE, _MARK / 2.0]
        area = box(size).replace(collision=False)  # no floor of its own
        if region not in world.scene:
            world.add_fixture(region, middle, [area], classes=["region"], parent="floor")
        goals.append(f"(on {name} {region})")
    held = robot.held(observation)
    for name in observation.names("cube"):
        x, y, z, *quat_xyzw = observation.values(name, "x", "y", "z", "qx", "qy", "qz", "qw")
        half_extents = [size / 2.0 for size in observation.values(name, "bb_x", "bb_y", "bb_z")]
        pose = tk.Pose([x, y, z], quat_xyzw=quat_xyzw)
        world.add_object(name, pose, [box(half_extents)], hand=HAND if name == held else "")
    goal = f"(and {' '.join(goals)})"
    return Task(world.scene, world.q, "mobile_manipulation", goal, (robot.arm, base))
