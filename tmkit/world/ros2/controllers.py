"""Controllers of a robot, as in MoveIt's ``moveit_controllers.yaml`` or a TOML file.

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

from tmkit._support.source_location import did_you_mean, first_repeated
from tmkit._support.yaml_files import read_yaml
from tmkit.errors import ConfigurationError
from tmkit.formats.json.reading import JsonNode
from tmkit.world.execution.controllers import Controller
from tmkit.world.execution.settings_file import read_positive, read_settings, require_keys

TRAJECTORY_TYPE = "FollowJointTrajectory"
"""Type of the controllers of arms."""

GRIPPER_TYPES = ("GripperCommand", "ParallelGripperCommand")
"""Types of the controllers of hands."""

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
        state_age: largest age of the joint states [s].
        duration_scaling: largest duration of a motion relative to the planned one.
        goal_margin: time beyond this duration until the goal is cancelled [s].
        gripper_time: time until a motion of a hand is cancelled [s].
        server_time: longest wait for action servers, joint states and replies [s].
        joint_states: topic of the joint states.
    """

    controllers: tuple[Controller, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    start_tolerance: float = 0.01
    path_tolerance: float = 0.1
    goal_tolerance: float = 0.01
    grasp_tolerance: float = 0.005
    state_age: float = 0.25
    duration_scaling: float = 1.2
    goal_margin: float = 0.5
    gripper_time: float = 5.0
    server_time: float = 5.0
    joint_states: str = "/joint_states"

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


def load_controllers(path: str | os.PathLike[str]) -> ControllerSettings:
    """Read the controllers of a robot from a file.

    Args:
        path: ``moveit_controllers.yaml`` of a MoveIt configuration, or a TOML file.

    Raises:
        FileFormatError: if the file cannot be read, a key is missing or unknown, or a value has
            another type.
        MissingExtraError: if the file is YAML and PyYAML is not installed.
    """
    file = Path(path)
    if file.suffix in (".yaml", ".yml"):
        documents = read_yaml(file)
        return _read_moveit(JsonNode(documents[0] if documents else None, str(file)))
    return read_settings(file, "a file of controllers", read=_read_settings)


def _read_moveit(top: JsonNode) -> ControllerSettings:
    """Return the settings of MoveIt's file, whose further keys MoveIt uses."""
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
    types = {TRAJECTORY_TYPE, *GRIPPER_TYPES}
    controllers = [
        _read_controller(name, node)
        for name, node in entries
        if node.get("type").name() in types  # MoveIt has further types, for bases and sensors
    ]
    values = {}
    if "trajectory_execution" in top.table():
        execution = top.get("trajectory_execution")
        for key, name in _MOVEIT_SETTINGS.items():
            if key in execution.table():
                values[name] = read_positive(execution.get(key))
    return _make_settings(top, controllers, {}, values, {})


def _read_settings(top: JsonNode) -> ControllerSettings:
    """Return the settings of a TOML file."""
    numbers = [entry.name for entry in fields(ControllerSettings) if entry.type == "float"]
    require_keys(top, "controllers", "names", "joint_states", *numbers)
    tables = top.get("controllers")
    controllers = []
    for name in tables.table():
        node = tables.get(name)
        require_keys(node, "action_ns", "type", "joints", "default", "scale", "offset")
        controllers.append(_read_controller(name, node))
    names = {}
    if "names" in top.table():
        names = {joint: top.get("names").get(joint).name() for joint in top.get("names").table()}
    values = {name: read_positive(top.get(name)) for name in numbers if name in top.table()}
    topic = (
        {"joint_states": top.get("joint_states").name()} if "joint_states" in top.table() else {}
    )
    return _make_settings(top, controllers, names, values, topic)


def _make_settings(
    top: JsonNode,
    controllers: list[Controller],
    names: dict[str, str],
    values: dict[str, float],
    topic: dict[str, str],
) -> ControllerSettings:
    """Return settings after a check of the names of controllers and actions."""
    if not controllers:
        raise top.error(
            f"has no controller of type {TRAJECTORY_TYPE} or {', '.join(GRIPPER_TYPES)}"
        )
    if (repeated := first_repeated([entry.action for entry in controllers])) is not None:
        raise top.error(f"two controllers have the action '{repeated}'")
    if (repeated := first_repeated([*names.values()])) is not None:
        raise top.error(f"two joints have the ROS name '{repeated}'")
    return ControllerSettings(tuple(controllers), names, **values, **topic)  # type: ignore[arg-type]


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
