"""Tasks of the Vega, two arms of seven joints on a torso that stands still.

The robot file is that of prpl_kinematics. From the configuration of an environment come the sizes
that observations omit: ``table_x_bounds``, ``table_y_bounds``, ``table_height``,
``cube_half_size`` and ``target_half_extents``.

The environments move the joints of the arms alone. A hand holds an object near it with open
fingers, so the scenes have a copy of the open fingers on each hand, which the planned paths avoid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kinder.robots import Hand, Part, describe_arm, ready_at
from benchmarks.kinder.worlds import Observation, Task, World, box
from numpy.typing import NDArray

import tmkit as tk
from tmkit.motion import CollisionWorld, IkSettings, inverse_kinematics_solutions

SIDES = {"left": "L", "right": "R"}
"""Prefixes of the links of the arms, in the order of actions."""

_MARK = 0.001
"""Height of the mark of the target in the table [m]."""

_MARGIN = 0.001
"""Distance from obstacles at the goal of a motion [m]."""


@dataclass(frozen=True)
class Vega:
    """The Vega without a world.

    Attributes:
        scene: scene of the robot.
        arms: descriptions of both arms that ``tmkit new robot`` wrote, by side.
        home: values of all joints at home, by prpl_kinematics [rad or m].
        observed: objects in observations of the arms that move, by side.
    """

    scene: tk.SceneGraph
    arms: dict[str, tk.Manipulator]
    home: dict[str, float]
    observed: dict[str, str]

    @property
    def parts(self) -> dict[str, Part]:
        """Parts of an action, by side."""
        return {
            side: Part(self.arms[side].joints, slice(7 * number, 7 * number + 7))
            for number, side in enumerate(self.observed)
        }

    @property
    def hands(self) -> dict[str, Hand]:
        """Parts of an action that close and open hands, by arm; a single arm grasps nothing."""
        if len(self.observed) < len(SIDES):
            return {}
        return {
            side: Hand(14 + number, 1.0, -1.0, is_sustained=True)
            for number, side in enumerate(self.observed)
        }

    def at_home(self, observation: Observation) -> Vega:
        """Return the robot whose ready configuration is the observed one."""
        values = self.joint_values(observation)
        return replace(self, arms={side: ready_at(arm, values) for side, arm in self.arms.items()})

    def joint_values(self, observation: Observation) -> dict[str, float]:
        """Return the observed values of the joints, and those at home of the others [rad or m]."""
        values = dict(self.home)
        features = [f"joint_{number}" for number in range(1, 8)]
        for side, name in self.observed.items():
            arm = observation.values(name, *features)
            values |= zip(self.arms[side].joints, arm, strict=True)
        return values

    def is_holding(self, observation: Observation, arm: str) -> bool:
        """Return whether an arm holds the cube."""
        return observation.values(self.observed[arm], "grasping")[0] > 0.5


def make_vega(folder: Path, observed: dict[str, str]) -> Vega:
    """Return the Vega.

    Args:
        folder: folder for the files of the description.
        observed: objects in observations of the arms that move, by side.
    """
    from prpl_kinematics.robots import make_vega as make_model
    from prpl_kinematics.utils import get_assets_path

    file = get_assets_path() / "urdf" / "vega" / "vega_1u_gripper.urdf"
    arms = {}
    for side, prefix in SIDES.items():
        tip = ["--tip", f"{prefix}_arm_l7"]
        file, arms[side] = describe_arm(file, side, folder=folder, arguments=tip)
    scene = tk.load_scene(file)
    home = {
        joint: values[0]
        for joint, values in make_model().home.items()
        if joint in scene.joint_names
    }
    for prefix in SIDES.values():
        scene = add_open_fingers(scene, prefix, scene.configuration(home))
    return Vega(scene, arms, home, observed)


def add_open_fingers(scene: tk.SceneGraph, prefix: str, q: NDArray[np.float64]) -> tk.SceneGraph:
    """Return the scene with a copy of the fingers on the palm, where they are at ``q``."""
    palm = f"{prefix}_gripper_base"
    shapes = list(scene.shapes(palm))
    for finger in (f"{prefix}_gripper_l1", f"{prefix}_gripper_l2"):
        palm_from_finger = scene.pose(finger, relative_to=palm, q=q)
        shapes += [
            attached.replace(pose=palm_from_finger @ attached.pose)
            for attached in scene.shapes(finger)
        ]
    return scene.set_shapes(palm, shapes)


def pick_place_task(observation: Observation, robot: Vega, config: Any) -> Task:
    """Return the task to put the cube onto the target, by one arm or both."""
    holder = next((side for side in SIDES if robot.is_holding(observation, side)), "")
    values = robot.joint_values(observation)
    if holder:
        values |= robot.arms[holder].finger_values(2.0 * config.cube_half_size)
    world = World(robot.scene, observation, values)
    (x_low, x_high), (y_low, y_high) = config.table_x_bounds, config.table_y_bounds
    half = [(x_high - x_low) / 2.0, (y_high - y_low) / 2.0, config.table_height / 2.0]
    centre = tk.Pose([(x_low + x_high) / 2.0, (y_low + y_high) / 2.0, half[2]])
    world.add_fixture("table", centre, [box(half)], classes=["surface"])
    x, y = observation.values("target", "x", "y")
    mark = box([*config.target_half_extents, _MARK / 2.0], tk.Pose([0.0, 0.0, -_MARK / 2.0]))
    target = tk.Pose([x, y, config.table_height])
    world.add_fixture("target", target, [mark], classes=["region"], parent="table")
    world.add_object(
        "cube",
        tk.Pose(observation.values("cube", "x", "y", "z")),
        [box([config.cube_half_size] * 3)],
        hand=robot.arms[holder].tip if holder else "",
    )
    return Task(world.scene, world.q, "handover", "(at cube target)", tuple(robot.arms.values()))


def motion_task(observation: Observation, robot: Vega, config: Any) -> Task:
    """Return the task to move the tool of the right arm to the target."""
    del config
    scene, arm = robot.scene, robot.arms["right"]
    q = scene.configuration(robot.joint_values(observation))
    solutions = inverse_kinematics_solutions(
        CollisionWorld(scene, margin=_MARGIN),
        "R_ee",
        target_pose=tk.Pose(observation.values("target", "x", "y", "z")),
        joints=arm.joints,
        q=q,
        settings=IkSettings(rotation_tolerance=math.inf),
    )
    nearest = min(solutions, key=lambda goal: float(np.abs(goal - q).max()))
    goal = ready_at(arm, dict(zip(scene.joint_names, nearest.tolist(), strict=True)))
    return Task(scene, q, "kitchen", "(athome)", (goal,))
