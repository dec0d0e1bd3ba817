"""Joints of a scene as motors of a LeRobot robot, in a TOML file.

LeRobot commands and observes motors by *features*, such as ``shoulder_pan.pos``. Their values are
degrees from the middle of the calibrated range, or a percentage of this range, and not the joint
values of a model. Each joint has a linear conversion ::

    rate = 30.0

    [joints]
    shoulder_pan = { unit = "degrees", sign = -1, offset = 2.5 }
    gripper = { unit = "range_0_100", range = [-0.174533, 1.74533] }

    [robot]
    type = "so101_follower"
    port = "/dev/ttyACM0"

The feature of an angle is ``sign * q + offset``, in its unit. With ``range_0_100`` and
``range_m100_100``, ``range`` has the joint values at both ends of the range.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from tmkit._support.source_location import did_you_mean, first_repeated
from tmkit.errors import ConfigurationError
from tmkit.formats.json.reading import JsonNode
from tmkit.world.execution.controllers import Controller, SuctionGripper
from tmkit.world.execution.settings_file import read_positive, read_settings, require_keys

_ANGLES = {"degrees": math.degrees(1.0), "radians": 1.0}
"""Feature by joint value of units of angles [1/rad]."""

_RANGES = {"range_0_100": (0.0, 100.0), "range_m100_100": (-100.0, 100.0)}
"""Values of a feature at the ends of the range, by the unit. LeRobot clamps to them."""

_RANGE_TOLERANCE = 1e-3
"""Largest distance of a command past the end of a range, in units of the feature."""


@dataclass(frozen=True)
class LeRobotJoint:
    """Joint of a scene as a feature of a robot, which is ``scale * q + offset``.

    Attributes:
        feature: key of actions and observations, such as ``shoulder_pan.pos``.
        scale: feature by joint value [1/rad or 1/m]; negative if the motor turns the other way.
        offset: value of the feature at the joint value 0.
        lower: lowest value of the feature; -inf without one.
        upper: highest value of the feature; inf without one.
    """

    feature: str
    scale: float
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf


@dataclass(frozen=True)
class LeRobotSettings:
    """Joints of a LeRobot robot, with the tolerances and times of execution.

    Attributes:
        joints: features by the names of joints in the scene.
        robot: type and configuration of the robot, as LeRobot names them; for the command line.
        rate: actions per second [Hz].
        start_tolerance: largest difference of a joint from the start of a motion [rad or m].
        path_tolerance: largest difference of a joint from its recent path [rad or m].
        lag: time in the past from which this path begins [s]; a robot that follows later is late.
        goal_tolerance: largest difference of a joint from the end of a motion [rad or m].
        grasp_tolerance: largest difference of a finger joint from the planned grasp [rad or m].
        state_age: largest time between two observations [s].
        settling_time: longest wait for the start and the end of a motion, and for rest [s].
        closing_time: time in which the command of a hand moves to its end [s].
        gripper_time: time until a motion of a hand fails [s].
    """

    joints: Mapping[str, LeRobotJoint]
    robot: Mapping[str, object] = field(default_factory=dict)
    rate: float = 30.0
    start_tolerance: float = 0.05
    path_tolerance: float = 0.1
    lag: float = 0.3
    goal_tolerance: float = 0.05
    grasp_tolerance: float = 0.1
    state_age: float = 0.25
    settling_time: float = 1.0
    closing_time: float = 0.5
    gripper_time: float = 3.0

    @property
    def names(self) -> dict[str, str]:
        """Features by the names of joints in the scene."""
        return {joint: entry.feature for joint, entry in self.joints.items()}

    def robot_names(self, joints: Iterable[str]) -> tuple[str, ...]:
        """Return the features of joints of a scene; a joint without one keeps its name."""
        names = self.names
        return tuple(names.get(joint, joint) for joint in joints)

    def positions(self, observation: Mapping[str, object]) -> dict[str, float]:
        """Return the joint values of an observation.

        Args:
            observation: values by feature, from ``get_observation`` of the robot.

        Returns:
            Values by the names of joints in the scene [rad or m].

        Raises:
            ConfigurationError: if the observation has no number of a feature.
        """
        values = {}
        for joint, entry in self.joints.items():
            if entry.feature not in observation:
                hint = did_you_mean(entry.feature, observation)
                raise ConfigurationError(
                    f"joint '{joint}': the robot observes no '{entry.feature}'{hint}"
                )
            value = read_number(observation[entry.feature])
            if value is None:
                raise ConfigurationError(
                    f"joint '{joint}': the observed '{entry.feature}' is not a finite number"
                )
            values[joint] = (value - entry.offset) / entry.scale
        return values

    def action(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the action that moves joints to values.

        Args:
            positions: values by the names of joints in the scene [rad or m].

        Returns:
            Values by feature.

        Raises:
            ConfigurationError: if a joint has no feature, or a value is outside of its range,
                to which LeRobot clamps without an error.
        """
        action = {}
        for joint, position in positions.items():
            entry = self.joints.get(joint)
            if entry is None:
                hint = did_you_mean(joint, self.joints)
                raise ConfigurationError(f"joint '{joint}' has no feature{hint}")
            value = entry.scale * position + entry.offset
            if max(entry.lower - value, value - entry.upper) > _RANGE_TOLERANCE:
                raise ConfigurationError(
                    f"joint '{joint}' at {position:.4f} is '{entry.feature}' at {value:.1f},"
                    f" outside of {entry.lower:g} to {entry.upper:g}; its range does not contain"
                    " the motion"
                )
            action[entry.feature] = value
        return action

    def arm_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the features of an arm.

        Args:
            arm: name of the arm, for messages.
            joints: joints of the arm, by their names in the scene.

        Raises:
            ConfigurationError: if a joint has no feature.
        """
        wanted = tuple(joints)
        for joint in wanted:
            if joint not in self.joints:
                hint = did_you_mean(joint, self.joints)
                raise ConfigurationError(f"joint '{joint}' of arm '{arm}' has no feature{hint}")
        return Controller(arm, "LeRobot", arm, self.robot_names(wanted))

    def gripper_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the features of a hand, of which one joint or more have one.

        Args:
            arm: name of the arm of the hand, for messages.
            joints: joints of the hand, by their names in the scene.

        Raises:
            ConfigurationError: if no joint has a feature.
        """
        wanted = tuple(joints)
        entries = [self.joints[joint] for joint in wanted if joint in self.joints]
        if not entries:
            names = ", ".join(f"'{joint}'" for joint in wanted)
            hint = did_you_mean(wanted[0], self.joints)
            raise ConfigurationError(
                f"the hand of arm '{arm}' needs the feature of a joint of {names}{hint}"
            )
        return Controller(
            f"{arm} gripper",
            "LeRobot",
            f"{arm} gripper",
            tuple(entry.feature for entry in entries),
            scale=entries[0].scale,
            offset=entries[0].offset,
        )

    def suction_gripper(self, arm: str) -> SuctionGripper:
        """Raise an error, since LeRobot has no suction grippers.

        Args:
            arm: name of the arm.

        Raises:
            ConfigurationError: if an arm has a suction gripper, which is the case here.
        """
        raise ConfigurationError(
            f"the hand of arm '{arm}' is a suction gripper, which LeRobot has not"
        )


def load_lerobot(path: str | os.PathLike[str]) -> LeRobotSettings:
    """Read the joints of a LeRobot robot from a TOML file.

    Args:
        path: file with the tables ``joints`` and, for the command line, ``robot``.

    Raises:
        FileFormatError: if the file cannot be read, a key is missing or unknown, or a value has
            another type.
    """
    return read_settings(Path(path), "a file of the joints of a robot", read=_read)


def read_number(value: object) -> float | None:
    """Return a finite number of a robot, such as a numpy scalar; None for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _read(top: JsonNode) -> LeRobotSettings:
    """Return the settings of a document."""
    numbers = [entry.name for entry in fields(LeRobotSettings) if entry.type == "float"]
    require_keys(top, "joints", "robot", *numbers)
    table = top.get("joints")
    joints = {name: _read_joint(name, table.get(name)) for name in table.table()}
    if not joints:
        raise table.error("expected at least one joint")
    features = [entry.feature for entry in joints.values()]
    if (repeated := first_repeated(features)) is not None:
        raise table.error(f"two joints have the feature '{repeated}'")
    robot = top.get("robot").table() if "robot" in top.table() else {}
    values = {name: read_positive(top.get(name)) for name in numbers if name in top.table()}
    return LeRobotSettings(joints, robot, **values)


def _read_joint(name: str, node: JsonNode) -> LeRobotJoint:
    """Return the conversion of a joint."""
    feature = node.get("feature").name() if "feature" in node.table() else f"{name}.pos"
    unit = node.get("unit").one_of((*_ANGLES, *_RANGES))
    if unit in _ANGLES:
        require_keys(node, "feature", "unit", "sign", "offset")
        sign = node.get("sign").number() if "sign" in node.table() else 1.0
        if abs(sign) != 1.0:
            raise node.get("sign").error(f"expected 1 or -1, received {sign:g}")
        offset = node.get("offset").number() if "offset" in node.table() else 0.0
        return LeRobotJoint(feature, sign * _ANGLES[unit], offset)
    require_keys(node, "feature", "unit", "range")
    first, last = node.get("range").numbers(2)
    if first == last:
        raise node.get("range").error(f"expected two different joint values, received {first:g}")
    lower, upper = _RANGES[unit]
    scale = (upper - lower) / (last - first)
    return LeRobotJoint(feature, scale, lower - scale * first, lower, upper)
