"""The TidyBot of KinDER, a Kinova Gen3 with a Robotiq 2F-85 on a mobile base, from its files.

The arm is described by ``tmkit new robot`` from its URDF, without an edit of the result. The base
is its URDF below :func:`tmkit.robots.mount_on_base`.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import tmkit as tk
from tmkit.robots import mount_on_base

ARM_JOINTS = tuple(f"joint_{number}" for number in range(1, 8))
"""Joints of the arm, in the order of observations and actions."""

FINGER_JOINT = "finger_joint"
"""Joint of the hand, whose value is the finger state of observations."""

CHASSIS_FROM_ARM = tk.Pose([0.1199, 0.0, 0.3948])
"""Pose of the arm on the chassis, by pybullet_helpers' class TidyBotKinova."""


@dataclass(frozen=True)
class TidyBot:
    """The robot without a world.

    Attributes:
        scene: scene of the arm and its hand alone.
        arm: the description that ``tmkit new robot`` wrote.
        chassis: scene of the mobile base.
    """

    scene: tk.SceneGraph
    arm: tk.Manipulator
    chassis: tk.SceneGraph

    def at_home(self, joints: list[float]) -> tk.Manipulator:
        """Return the arm whose ready configuration is that at the start of an episode."""
        return replace(self.arm, ready=dict(zip(ARM_JOINTS, joints, strict=True)))

    def on_base(self, *, size: float) -> tuple[tk.SceneGraph, tk.Manipulator]:
        """Return the scene with the arm on the base, and the base.

        Args:
            size: half of the side of the square in which the base drives [m].
        """
        area = [[-size, -size], [size, size]]
        return mount_on_base(self.scene, self.arm, self.chassis, pose=CHASSIS_FROM_ARM, area=area)


def make_tidybot(folder: Path) -> TidyBot:
    """Describe the robot by the command of a user.

    Args:
        folder: folder for the files of the command.
    """
    from pybullet_helpers.utils import get_assets_path

    files = get_assets_path() / "urdf"
    urdf = files / "kortex_description" / "gen3_7dof.urdf"
    command = [sys.executable, "-m", "tmkit", "new", "robot", str(urdf), "--yes"]
    subprocess.run(
        [*command, "--out", "gen3.toml"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return TidyBot(
        tk.load_scene(folder / "gen3.json"),
        tk.load_manipulator(folder / "gen3.toml"),
        tk.load_scene(files / "tidybot" / "tidybot_base.urdf"),
    )
