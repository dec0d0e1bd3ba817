"""The robots of KinDER's environments, from their files.

A robot relates the joints of its scene to observations and actions. Arms are described by ``tmkit
new robot`` from their URDF, without an edit of the result.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from benchmarks.kinder.worlds import Observation

import tmkit as tk
from tmkit.robots import mount_on_base

ARM_JOINTS = tuple(f"joint_{number}" for number in range(1, 8))
"""Joints of the TidyBot's arm, in the order of observations and actions."""

BASE_JOINTS = ("base/x", "base/y", "base/yaw")
"""Joints of the TidyBot's base, in the order of observations and actions."""

HAND = "bracelet_link"
"""Frame of the TidyBot's hand."""

CHASSIS_FROM_ARM = tk.Pose([0.1199, 0.0, 0.3948])
"""Pose of the arm on the chassis, by pybullet_helpers' class TidyBotKinova."""


@dataclass(frozen=True)
class Part:
    """A part of an action that changes joint values.

    Attributes:
        joints: n joints in the order of the action.
        columns: n columns of the action, or None for joints that the environment lacks.
    """

    joints: tuple[str, ...]
    columns: slice | None


@dataclass(frozen=True)
class Hand:
    """The part of an action that closes and opens a hand.

    Attributes:
        column: column of the action.
        closing: value that grasps.
        opening: value that releases.
        is_sustained: whether each action repeats the last value; otherwise it is 0 in between.
    """

    column: int
    closing: float
    opening: float
    is_sustained: bool = False


class Robot(Protocol):
    """Interface of a robot.

    Attributes:
        parts: parts of an action, by name.
        hands: parts of an action that close and open hands, by arm.
    """

    parts: Mapping[str, Part]
    hands: Mapping[str, Hand]

    def at_home(self, observation: Observation) -> Robot:
        """Return the robot whose ready configuration is the observed one."""

    def joint_values(self, observation: Observation) -> dict[str, float]:
        """Return the observed values of the joints [rad or m]."""

    def is_holding(self, observation: Observation, arm: str) -> bool:
        """Return whether an arm holds an object."""


@dataclass(frozen=True)
class TidyBot:
    """A Kinova Gen3 with a Robotiq 2F-85 on a mobile base, without a world.

    Attributes:
        scene: scene of the arm and its hand alone.
        arm: the description that ``tmkit new robot`` wrote.
        chassis: scene of the mobile base.
    """

    scene: tk.SceneGraph
    arm: tk.Manipulator
    chassis: tk.SceneGraph

    @property
    def parts(self) -> dict[str, Part]:
        """Parts of an action, by name."""
        return {"base": Part(BASE_JOINTS, slice(0, 3)), "arm": Part(ARM_JOINTS, slice(3, 10))}

    @property
    def hands(self) -> dict[str, Hand]:
        """Parts of an action that close and open hands, by arm."""
        return {self.arm.name: Hand(10, -1.0, 1.0)}

    def at_home(self, observation: Observation) -> TidyBot:
        """Return the robot whose ready configuration is the observed one."""
        return replace(self, arm=ready_at(self.arm, self.joint_values(observation)))

    def joint_values(self, observation: Observation) -> dict[str, float]:
        """Return the observed values of the joints [rad or m]."""
        joints = (*ARM_JOINTS, "finger_joint", *BASE_JOINTS)
        values = observation.values("robot", *ARM_JOINTS, "finger_state") + observation.base
        return dict(zip(joints, values, strict=True))

    def is_holding(self, observation: Observation, arm: str) -> bool:
        """Return whether the hand holds an object."""
        del arm
        return observation.values("robot", "grasp_active")[0] > 0.5

    def on_base(self, *, size: float) -> tuple[tk.SceneGraph, tk.Manipulator]:
        """Return the scene with the arm on the base, and the base.

        Args:
            size: half of the side of the square in which the base drives [m].
        """
        area = [[-size, -size], [size, size]]
        return mount_on_base(self.scene, self.arm, self.chassis, pose=CHASSIS_FROM_ARM, area=area)


def ready_at(arm: tk.Manipulator, joint_values: Mapping[str, float]) -> tk.Manipulator:
    """Return an arm with another ready configuration."""
    return replace(arm, ready={joint: joint_values[joint] for joint in arm.joints})


def describe_arm(
    file: Path, name: str, *, folder: Path, arguments: Sequence[str] = ()
) -> tuple[Path, tk.Manipulator]:
    """Describe an arm by the command of a user.

    Args:
        file: file of the robot.
        name: name of the description.
        folder: folder for the files of the command.
        arguments: further arguments of the command.

    Returns:
        the file of the robot with what was added to it, and the description.
    """
    command = [sys.executable, "-m", "tmkit", "new", "robot", str(file), "--yes", *arguments]
    subprocess.run(
        [*command, "--out", f"{name}.toml"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return folder / f"{name}.json", tk.load_manipulator(folder / f"{name}.toml")


def make_tidybot(folder: Path) -> TidyBot:
    """Return the TidyBot.

    Args:
        folder: folder for the files of the description.
    """
    from pybullet_helpers.utils import get_assets_path

    files = get_assets_path() / "urdf"
    urdf = files / "kortex_description" / "gen3_7dof.urdf"
    file, arm = describe_arm(urdf, "gen3", folder=folder)
    chassis = tk.load_scene(files / "tidybot" / "tidybot_base.urdf")
    return TidyBot(tk.load_scene(file), arm, chassis)
