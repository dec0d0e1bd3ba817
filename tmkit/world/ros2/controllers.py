"""Controllers of a robot, as in MoveIt's ``moveit_controllers.yaml`` or a TOML file.

A robot may have several files, such as that of MoveIt and one of its suction grippers
(:mod:`tmkit.world.ros2.suction`).

MoveIt's file lists controllers with their joints, in one of two forms. Both may be below
``/**: ros__parameters:``::

    moveit_simple_controller_manager:          controller_list:
      controller_names: [arm, hand]              - name: arm
      arm:                                         action_ns: follow_joint_trajectory
        action_ns: follow_joint_trajectory         type: FollowJointTrajectory
        type: FollowJointTrajectory                joints: [j1, j2]
        joints: [j1, j2]                       trajectory_execution:
                                                 allowed_start_tolerance: 0.01

A TOML file has the same keys in a table of each controller, and all settings::

    state_age = 0.25

    [controllers.arm]
    action_ns = "follow_joint_trajectory"
    type = "FollowJointTrajectory"
    joints = ["j1", "j2"]

    [names]
    panda_joint1 = "fr3_joint1"
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tmkit._support.source_location import did_you_mean, first_repeated
from tmkit._support.yaml_files import read_yaml
from tmkit.errors import ConfigurationError, FileFormatError
from tmkit.formats.json.reading import JsonNode
from tmkit.world.execution.controllers import Controller, SuctionGripper
from tmkit.world.execution.settings_file import read_positive, read_settings, require_keys
from tmkit.world.ros2.suction import read_suction

TRAJECTORY_TYPE = "FollowJointTrajectory"
"""Type of the controllers of arms."""

GRIPPER_TYPES = ("GripperCommand", "ParallelGripperCommand")
"""Types of the controllers of hands."""

_TOPICS = ("joint_states", "stop")
"""Settings that are names of topics."""

_MOVEIT_SETTINGS = {
    "allowed_start_tolerance": "start_tolerance",
    "allowed_execution_duration_scaling": "duration_scaling",
    "allowed_goal_duration_margin": "goal_margin",
}
"""Settings by the name of MoveIt's parameter below ``trajectory_execution``."""


@dataclass(frozen=True)
class ControllerSettings:
    """Controllers of a robot, with the tolerances and time limits of execution.

    Attributes:
        controllers: controllers of arms and hands.
        names: ROS names of joints by their names in the scene, where they differ.
        start_tolerance: largest difference of a joint from the start of a motion [rad or m].
        path_tolerance: largest difference of a joint from its path [rad or m].
        goal_tolerance: largest difference of a joint from the end of a motion [rad or m].
        grasp_tolerance: largest difference of a finger joint from the planned grasp [rad or m].
        schedule_tolerance: largest time by which an arm is behind another that acts at the same
            time, at the speed of the plan [s].
        state_age: largest age of the joint states [s].
        duration_scaling: largest duration of a motion relative to the planned one.
        goal_margin: time beyond this duration until the goal is cancelled [s].
        gripper_time: time until a motion of a hand is cancelled [s].
        server_time: longest wait for action servers, joint states and replies [s].
        discovery_time: time for which a second server of an action is looked for, before anything
            moves. Servers are discovered one after the other [s].
        joint_states: topic of the joint states.
        stop: topic of type ``std_msgs/Bool``; while it is true, nothing moves. Defaults to none.
        suction: suction grippers.
    """

    controllers: tuple[Controller, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    start_tolerance: float = 0.01
    path_tolerance: float = 0.1
    goal_tolerance: float = 0.01
    grasp_tolerance: float = 0.005
    schedule_tolerance: float = 0.25
    state_age: float = 0.25
    duration_scaling: float = 1.2
    goal_margin: float = 0.5
    gripper_time: float = 5.0
    server_time: float = 5.0
    discovery_time: float = 1.0
    joint_states: str = "/joint_states"
    stop: str = ""
    suction: tuple[SuctionGripper, ...] = ()

    def robot_names(self, joints: Iterable[str]) -> tuple[str, ...]:
        """Return the ROS names of joints of a scene."""
        return tuple(self.names.get(joint, joint) for joint in joints)

    def arm_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the trajectory controller of an arm, which has exactly the joints of the arm.

        Args:
            arm: name of the arm, for messages.
            joints: joints of the arm, by their names in the scene.

        Raises:
            ConfigurationError: if no controller or several have these joints.
        """
        wanted = set(self.robot_names(joints))
        candidates = [entry for entry in self.controllers if entry.type == TRAJECTORY_TYPE]
        return _choose(
            [entry for entry in candidates if set(entry.joints) == wanted],
            f"arm '{arm}' needs a {TRAJECTORY_TYPE} controller of exactly its joints"
            f" {_list(sorted(wanted))}",
            _differences(candidates, wanted),
        )

    def gripper_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the controller of a hand, whose joints are joints of the hand.

        Args:
            arm: name of the arm of the hand, for messages.
            joints: joints of the hand, by their names in the scene.

        Raises:
            ConfigurationError: if no controller or several have such joints.
        """
        wanted = set(self.robot_names(joints))
        candidates = [entry for entry in self.controllers if entry.type in GRIPPER_TYPES]
        return _choose(
            [entry for entry in candidates if wanted.intersection(entry.joints)],
            f"the hand of arm '{arm}' needs a {' or '.join(GRIPPER_TYPES)} controller of its joint"
            f" {_list(sorted(wanted))}",
            _differences(candidates, wanted),
        )

    def suction_gripper(self, arm: str) -> SuctionGripper:
        """Return the suction gripper of an arm.

        Args:
            arm: name of the arm.

        Raises:
            ConfigurationError: if the files have none.
        """
        for gripper in self.suction:
            if gripper.arm == arm:
                return gripper
        names = [gripper.arm for gripper in self.suction]
        hint = did_you_mean(arm, names) or (f"; the files have {_list(names)}" if names else "")
        raise ConfigurationError(
            f"the suction gripper of arm '{arm}' needs a table [suction.{arm}] in a TOML file of"
            f" the controllers, with the service or topic of its vacuum{hint}"
        )


def load_controllers(
    path: str | os.PathLike[str], *further: str | os.PathLike[str]
) -> ControllerSettings:
    """Read the controllers of a robot from one or several files.

    Args:
        path: ``moveit_controllers.yaml`` of a MoveIt configuration, or a TOML file.
        further: further files, whose controllers and settings replace those of the files before.

    Raises:
        FileFormatError: if a file cannot be read, a key is missing or unknown, or a value has
            another type. Also if no file has a controller, or the files contradict each other.
        MissingExtraError: if a file is YAML and PyYAML is not installed.
    """
    tables: dict[str, dict[str, Any]] = {"controllers": {}, "names": {}, "suction": {}}
    values: dict[str, Any] = {}
    for file in map(Path, (path, *further)):
        contents = _read_file(file)
        for key, table in tables.items():
            table.update(contents.pop(key, {}))
        values.update(contents)
    controllers = tuple(tables["controllers"].values())
    if not controllers:
        raise FileFormatError.at(
            path, f"has no controller of type {TRAJECTORY_TYPE} or {', '.join(GRIPPER_TYPES)}"
        )
    if (repeated := first_repeated([entry.action for entry in controllers])) is not None:
        raise FileFormatError.at(file, f"two controllers have the action '{repeated}'")
    if (repeated := first_repeated([*tables["names"].values()])) is not None:
        raise FileFormatError.at(file, f"two joints have the ROS name '{repeated}'")
    suction = tuple(tables["suction"].values())
    return ControllerSettings(controllers, tables["names"], suction=suction, **values)


def _read_file(file: Path) -> dict[str, Any]:
    """Return the values of a file by their name in :class:`ControllerSettings`.

    Controllers and suction grippers are by their name.
    """
    if file.suffix in (".yaml", ".yml"):
        documents = read_yaml(file)
        return _read_moveit(JsonNode(documents[0] if documents else None, str(file)))
    return read_settings(file, "a file of controllers", read=_read_settings)


def _read_moveit(top: JsonNode) -> dict[str, Any]:
    """Return the values of MoveIt's file, whose further keys MoveIt uses."""
    nodes = [JsonNode(value, top.path, key) for key, value in top.table().items()]
    for node in nodes:  # the parameters of a node, or of all by "/**"
        if isinstance(node.value, dict) and "ros__parameters" in node.value:
            top = node.get("ros__parameters")
    manager = top
    if "moveit_simple_controller_manager" in top.table():
        manager = top.get("moveit_simple_controller_manager")
    if "controller_list" in manager.table():
        entries = [
            (node.get("name").name(), node) for node in manager.get("controller_list").items()
        ]
    else:
        names = [node.name() for node in manager.get("controller_names").items()]
        entries = [(name, manager.get(name)) for name in names]
    if (repeated := first_repeated([name for name, _ in entries])) is not None:
        raise manager.error(f"two controllers have the name '{repeated}'")
    types = {TRAJECTORY_TYPE, *GRIPPER_TYPES}
    controllers = {
        name: _read_controller(name, node)
        for name, node in entries
        if node.get("type").name() in types  # MoveIt has further types, for bases and sensors
    }
    values: dict[str, Any] = {"controllers": controllers}
    if "trajectory_execution" in top.table():
        execution = top.get("trajectory_execution")
        for key, name in _MOVEIT_SETTINGS.items():
            if key in execution.table():
                values[name] = read_positive(execution.get(key))
    return values


def _read_settings(top: JsonNode) -> dict[str, Any]:
    """Return the values of a TOML file."""
    numbers = [entry.name for entry in fields(ControllerSettings) if entry.type == "float"]
    require_keys(top, "controllers", "names", "suction", *_TOPICS, *numbers)
    values: dict[str, Any] = {
        name: read_positive(top.get(name)) for name in numbers if name in top.table()
    }
    for key, read in (
        ("controllers", _read_own_controller),
        ("names", lambda _, node: node.name()),
        ("suction", read_suction),
    ):
        if key in top.table():
            tables = top.get(key)
            values[key] = {name: read(name, tables.get(name)) for name in tables.table()}
    values |= {name: top.get(name).name() for name in _TOPICS if name in top.table()}
    return values


def _read_own_controller(name: str, node: JsonNode) -> Controller:
    """Return the controller of a table of a TOML file."""
    require_keys(node, "action_ns", "type", "joints", "default", "scale", "offset")
    return _read_controller(name, node)


def _read_controller(name: str, node: JsonNode) -> Controller:
    """Return the controller of a table."""
    table = node.table()
    joints = tuple(item.name() for item in node.get("joints").items())
    if not joints:
        raise node.get("joints").error("expected at least one joint")
    if (repeated := first_repeated(joints)) is not None:
        raise node.get("joints").error(f"the joint '{repeated}' is named twice")
    namespace = node.get("action_ns").text() if "action_ns" in table else ""
    action = "/" + "/".join(part for part in f"{name}/{namespace}".split("/") if part)
    scale = node.get("scale").number() if "scale" in table else 1.0
    if scale == 0.0:
        raise node.get("scale").error("expected a number other than 0")
    return Controller(
        name,
        node.get("type").one_of((TRAJECTORY_TYPE, *GRIPPER_TYPES)),
        action,
        joints,
        is_default="default" in table and node.get("default").flag(),
        scale=scale,
        offset=node.get("offset").number() if "offset" in table else 0.0,
    )


def _choose(candidates: list[Controller], need: str, differences: str) -> Controller:
    """Return the only candidate, or the only default one among several.

    Raises:
        ConfigurationError: if there is none, or several are equally suitable.
    """
    defaults = [entry for entry in candidates if entry.is_default]
    chosen = candidates if len(candidates) == 1 else defaults
    if len(chosen) == 1:
        return chosen[0]
    if candidates:
        names = _list([entry.name for entry in candidates])
        raise ConfigurationError(f"{need}, and several have them: {names}; mark one as default")
    raise ConfigurationError(f"{need}; {differences}")


def _differences(controllers: list[Controller], wanted: set[str]) -> str:
    """Return how the joints of controllers differ from the wanted ones."""
    texts = []
    for entry in controllers:
        lacking, extra = wanted.difference(entry.joints), set(entry.joints).difference(wanted)
        parts = [f"lacks {_list(sorted(lacking))}"] * bool(lacking)
        if extra:
            hint = did_you_mean(min(extra), lacking)
            parts.append(f"has {_list(sorted(extra))}{hint}")
        texts.append(f"'{entry.name}' {' and '.join(parts)}")
    return ", ".join(texts) or "the file has none of this type"


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
