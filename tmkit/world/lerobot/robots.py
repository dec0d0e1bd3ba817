"""Robots of LeRobot from their type and configuration."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tmkit._support.source_location import did_you_mean
from tmkit.errors import ConfigurationError, MissingExtraError
from tmkit.world.lerobot.motors import LeRobotRobot
from tmkit.world.lerobot.settings import LeRobotSettings

_KEEP_TORQUE = "disable_torque_on_disconnect"
"""Setting of LeRobot by which an arm falls at the end of the program. Its default is true."""


def make_robot(settings: LeRobotSettings) -> LeRobotRobot:
    """Construct the robot of a file, as the programs of LeRobot do with ``--robot.type``.

    Unless the file sets ``disable_torque_on_disconnect``, the motors keep their torque.

    Args:
        settings: settings whose ``robot`` has the type and configuration.

    Returns:
        Robot, which is not connected yet.

    Raises:
        ConfigurationError: if the settings have no robot, LeRobot has no such type, or rejects
            the configuration.
        MissingExtraError: if LeRobot cannot be imported.
    """
    kind = settings.robot.get("type")
    if kind is None:
        raise ConfigurationError(
            "the file of joints has no table [robot] with the type of the robot, such as"
            " 'so101_follower', and its port"
        )
    try:
        import draccus
        from lerobot import robots
    except ImportError as error:
        raise MissingExtraError(
            "execution on a robot of LeRobot needs lerobot with the library of its motors, and"
            f" {error.name or 'a library of it'} cannot be imported: pip install"
            " 'lerobot[feetech]' for an SO-101",
            extra=None,
            module=error.name,
        ) from error
    failures = _register_robots(robots)
    choices = robots.RobotConfig.get_known_choices()
    if kind not in choices:
        missing = f"; not imported: {'; '.join(failures)}" if failures else ""
        raise ConfigurationError(
            f"robot.type: LeRobot has no robot '{kind}'{did_you_mean(str(kind), choices)}"
            f" (known: {', '.join(sorted(choices))}{missing})"
        )
    table = dict(settings.robot)
    if _KEEP_TORQUE in robots.RobotConfig.get_choice_class(kind).__dataclass_fields__:
        table.setdefault(_KEEP_TORQUE, False)
    try:
        robot: LeRobotRobot = robots.make_robot_from_config(
            draccus.decode(robots.RobotConfig, table)
        )
    except Exception as error:
        raise ConfigurationError(f"robot: LeRobot rejects the configuration: {error}") from error
    return robot


@contextmanager
def connect_robot(settings: LeRobotSettings) -> Iterator[LeRobotRobot]:
    """Construct and connect the robot of a file, and disconnect it at the end.

    Args:
        settings: settings whose ``robot`` has the type and configuration.

    Raises:
        ConfigurationError: if the robot cannot be constructed or connected, or is not calibrated.
        MissingExtraError: if LeRobot cannot be imported.
    """
    robot: Any = make_robot(settings)
    try:
        robot.connect(calibrate=False)  # a calibration moves the arm and reads the terminal
    except Exception as error:
        raise ConfigurationError(f"robot: cannot be connected: {error}") from error
    try:
        if not robot.is_calibrated:
            raise ConfigurationError(
                "robot: is not calibrated under this 'id'; run lerobot-calibrate"
            )
        yield robot
    finally:
        robot.disconnect()


def _register_robots(robots: Any) -> list[str]:
    """Import the robots of LeRobot and of its plug-ins; return those without their libraries."""
    failures = []
    for module in pkgutil.iter_modules(robots.__path__, "lerobot.robots."):
        if module.ispkg:
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                failures.append(f"{module.name} ({error})")
    importlib.import_module("lerobot.utils.import_utils").register_third_party_plugins()
    return failures
