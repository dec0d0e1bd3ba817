"""Messages of ROS 2 controllers for the commands of a plan.

An arm has a ``joint_trajectory_controller``, which executes each ``JointTrajectory`` on its topic
``/CONTROLLER/joint_trajectory`` from the time of receipt, since the stamp is zero. A hand has a
gripper controller, which has the action ``/CONTROLLER/gripper_cmd`` and no topic. A
``GripperCommand`` on a topic of that name is the field ``command`` of the goal to send. Suction
cups have no standard interface and no message.

Invariants: a trajectory passes the checks of ``joint_trajectory_controller``. It has the joints of
one arm, strictly increasing times, positions, velocities and accelerations for each joint, no
effort, and zero velocity at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmkit._support.extras import importing
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.plans.timed_commands import TimedCommand
from tmkit.robots import Manipulator

_TRAJECTORY_TYPE = "trajectory_msgs/msg/JointTrajectory"
"""Message type of a motion of an arm."""

_GRIPPER_TYPE = "control_msgs/msg/GripperCommand"
"""Message type of a motion of a hand."""

_GRIPPER_DEFINITION = "float64 position\nfloat64 max_effort\n"
"""Definition of the gripper message, which the package for bags does not contain."""

_ROS_NAME = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
"""Name of a controller, with namespaces."""


class CommandMessage(NamedTuple):
    """Message of a command.

    Attributes:
        topic: topic of the controller.
        type: message type.
        time: time from the start of the plan [s].
        message: fields, in types of JSON.
    """

    topic: str
    type: str
    time: float
    message: dict[str, Any]


class CommandTopics:
    """Topics of the controllers of arms and hands.

    Args:
        arms: arms of a plan.
        controllers: names of controllers that differ from ``NAME_controller``, by the name of an
            arm, or by the tip frame of an arm for its hand.

    Attributes:
        arms: topics by the name of the arm.
        hands: topics of hands with fingers, by the name of the arm.

    Raises:
        UnknownNameError: if a controller is for no arm or hand.
        ConfigurationError: if the name of a controller is not a ROS name, or two arms or two hands
            have the same controller.
    """

    def __init__(self, arms: Sequence[Manipulator], controllers: Mapping[str, str]) -> None:
        arm_names = {arm.name: arm.name for arm in arms}
        hand_names = {arm.name: arm.tip for arm in arms if arm.gripper_joints}
        known_names = dict.fromkeys([*arm_names, *hand_names.values()])
        for name in controllers:
            if name not in known_names:
                raise UnknownNameError.of("arm or hand", name, known_names, where="controllers")
        names = {name: _controller_name(name, controllers.get(name)) for name in known_names}
        self.arms = {arm: f"/{names[name]}/joint_trajectory" for arm, name in arm_names.items()}
        self.hands = {arm: f"/{names[name]}/gripper_cmd" for arm, name in hand_names.items()}
        topics = Counter([*self.arms.values(), *self.hands.values()])
        for topic, count in topics.items():
            if count > 1:
                raise ConfigurationError(
                    f"controllers: {count} arms or hands have the topic {topic}; each needs a"
                    " controller of its own"
                )


def _controller_name(name: str, controller: str | None) -> str:
    """Return the name of the controller of an arm or hand, without a leading slash.

    Args:
        name: name of the arm, or tip frame of the hand.
        controller: name that the user gave, if any.
    """
    if controller is None:
        return re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name) + "_controller"
    if not _ROS_NAME.fullmatch(controller):
        raise ConfigurationError(
            f"controllers: '{controller}' of '{name}' is not the name of a controller: expected"
            " letters, digits and underscores, with / between namespaces"
        )
    return controller.removeprefix("/")


def command_messages(
    commands: Sequence[TimedCommand], topics: CommandTopics
) -> list[CommandMessage]:
    """Return the messages of recorded commands; motions from rest to rest are one message.

    Args:
        commands: consecutive commands of a plan.
        topics: topics of the arms and hands.
    """
    messages: list[CommandMessage] = []
    run: list[TimedCommand] = []
    for command in commands:
        arm = command.arm
        if command.motion is not None:
            run.append(command)
            if command.motion.is_stopping:
                fields = _trajectory_fields(run)
                messages.append(
                    CommandMessage(topics.arms[arm.name], _TRAJECTORY_TYPE, run[0].begin, fields)
                )
                run = []
        elif command.fingers:
            joint, position = next(iter(command.fingers.items()))
            if command.closes:  # the object stops the fingers
                position = arm.gripper_closed[joint]
            fields = {"position": float(position), "max_effort": float(arm.grip_force)}
            messages.append(
                CommandMessage(topics.hands[arm.name], _GRIPPER_TYPE, command.begin, fields)
            )
    return messages


def _trajectory_fields(run: Sequence[TimedCommand]) -> dict[str, Any]:
    """Return the fields of the ``JointTrajectory`` of motions without a rest between them."""
    arm = run[0].arm
    return {
        "header": {"stamp": _duration(0.0), "frame_id": ""},
        "joint_names": [*arm.joints],
        "points": [*_trajectory_points(run)],
    }


def _trajectory_points(run: Sequence[TimedCommand]) -> Iterator[dict[str, Any]]:
    """Yield the fields of each ``JointTrajectoryPoint`` of motions without a rest between them."""
    for command in run:
        assert command.motion is not None, "a run has motions of an arm only"
        timed, count = command.motion.timed, len(command.arm.joints)  # without a mechanism's joint
        for time, position, velocity, acceleration in zip(
            timed.times, timed.positions, timed.velocities, timed.accelerations, strict=True
        ):
            if time > 0.0 or command is run[0]:
                yield {
                    "positions": position[:count].tolist(),
                    "velocities": velocity[:count].tolist(),
                    "accelerations": acceleration[:count].tolist(),
                    "effort": [],
                    "time_from_start": _duration(command.begin - run[0].begin + time),
                }


def _duration(seconds: float) -> dict[str, int]:
    """Return a time as the fields of a ROS 2 time or duration."""
    nanoseconds = round(seconds * 1e9)
    return {"sec": nanoseconds // 1_000_000_000, "nanosec": nanoseconds % 1_000_000_000}


def write_bag(folder: Path, messages: Iterable[CommandMessage]) -> None:
    """Write messages to a bag (MCAP), in place of an empty folder.

    Raises:
        MissingExtraError: if ``rosbags`` is missing.
    """
    with importing("rosbags", "world", "bags need"):
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store: Any = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(_GRIPPER_DEFINITION, _GRIPPER_TYPE))
    folder.rmdir()  # the writer creates it
    connections: dict[str, Any] = {}
    with rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        for topic, type_name, time, fields in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, type_name, typestore=store)
            message = _make_message(store.types, type_name, fields)
            data = store.serialize_cdr(message, type_name)
            writer.write(connections[topic], round(time * 1e9), data)


def _make_message(types: Mapping[str, Any], type_name: str, fields: dict[str, Any]) -> Any:
    """Return a message of the package for bags.

    Args:
        types: message classes by name.
        type_name: type of the message.
        fields: fields of the message, in types of JSON.
    """
    if type_name == _GRIPPER_TYPE:
        return types[_GRIPPER_TYPE](**fields)
    make_duration = types["builtin_interfaces/msg/Duration"]
    make_time = types["builtin_interfaces/msg/Time"]
    make_point = types["trajectory_msgs/msg/JointTrajectoryPoint"]
    points = [
        make_point(
            **{
                name: np.array(point[name])
                for name in ("positions", "velocities", "accelerations", "effort")
            },
            time_from_start=make_duration(**point["time_from_start"]),
        )
        for point in fields["points"]
    ]
    stamp = make_time(**fields["header"]["stamp"])
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    return types[type_name](header=header, joint_names=fields["joint_names"], points=points)
