"""Several arms in one scene: found by name, proved to be different, ready together.

Where one arm can be given, a sequence of arms can be too. The first is the one that acts by default.

Invariants: the arms have different names and no joint in common, so a segment's arm and a joint's mover are
unambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.robot_files import find_manipulator

Robots: TypeAlias = str | Path | Manipulator | Sequence[str | Path | Manipulator]
"""An arm or several: built-in names, files, or descriptions."""


def find_manipulators(robots: Robots, scene: SceneGraph) -> tuple[Manipulator, ...]:
    """Return the descriptions that ``robots`` are or name, proved to fit ``scene`` and each other.

    Args:
        robots: what :func:`tmkit.robots.find_manipulator` takes, or a sequence of it.
        scene: the scene that they are for.

    Raises:
        RobotError, MissingFileError: as :func:`tmkit.robots.find_manipulator`.
        RobotError: no arm at all, two arms of one name, or two that move one joint.
    """
    several = (robots,) if isinstance(robots, str | Path | Manipulator) else tuple(robots)
    found = tuple(find_manipulator(robot, scene) for robot in several)
    check_different(found)
    return found


def check_different(manipulators: Sequence[Manipulator]) -> None:
    """Check that arms can be told apart.

    Raises:
        RobotError: no arm at all, two of one name, or two that move one joint.
    """
    if not manipulators:
        raise RobotError.at("robot", "give at least one arm")
    movers: dict[str, str] = {}
    for number, arm in enumerate(manipulators):
        if any(arm.name == other.name for other in manipulators[:number]):
            raise RobotError.at("robot", f"two arms have the name '{arm.name}'; each needs a name of its own")
        for joint in (*arm.joints, *arm.gripper_joints):
            if joint in movers:
                raise RobotError.at("robot", f"the arms '{movers[joint]}' and '{arm.name}' both move joint '{joint}'")
            movers[joint] = arm.name


def carrying_joints(scene: SceneGraph, manipulators: Sequence[Manipulator]) -> frozenset[str]:
    """Return the frames on joints of one robot that carry another: those of a mobile base under an arm.

    Args:
        scene: the scene.
        manipulators: the robots.
    """
    bases = {arm.name: (arm.base, *scene.ancestors(arm.base)) for arm in manipulators}
    frames = ((arm.name, scene.joint_frame(joint)) for arm in manipulators for joint in arm.joints)
    return frozenset(
        frame for name, frame in frames if any(frame in above for other, above in bases.items() if other != name)
    )


def home_configuration(
    manipulators: Sequence[Manipulator], scene: SceneGraph, *, base: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) with all arms at ``ready`` and all grippers open.

    Args:
        manipulators: the arms.
        scene: the scene.
        base: (n_joints,) values of the other joints; 0 by default.
    """
    values = {joint: value for arm in manipulators for joint, value in {**arm.ready, **arm.gripper_open}.items()}
    return scene.configuration(values, base=base)
