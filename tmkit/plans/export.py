"""Plans as functions of time for other programs: CSV tables, ROS 2 messages, LeRobot datasets.

:class:`RecordingExecutor` records the commands of a plan with their times. :func:`motion_table`
samples them at a constant rate, and :func:`export_plan` writes them. Datasets have version 3.0 of
the layout of https://github.com/huggingface/lerobot. Messages are
``trajectory_msgs/JointTrajectory`` for arms and ``control_msgs/GripperCommand`` for hands.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit._support.output import fill_new_folder, write_text
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.plans.execution import Executor, TimedMotion, execute
from tmkit.plans.lerobot import LeRobotWriter
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator

EXPORT_FORMATS = ("csv", "ros2", "lerobot")
"""Names of the formats of :func:`export_plan`."""

_TRAJECTORY_TYPE = "trajectory_msgs/msg/JointTrajectory"
"""Message type of a motion of an arm."""

_GRIPPER_TYPE = "control_msgs/msg/GripperCommand"
"""Message type of a motion of a hand."""

_GRIPPER_DEFINITION = "float64 position\nfloat64 max_effort\n"
"""Definition of the gripper message, which the package for bags does not contain."""

_FINGER_TOLERANCE = 1e-9
"""Difference of finger joint values that count as equal [rad or m]."""


@dataclass(frozen=True, eq=False)
class TimedCommand:
    """Motion of an arm or of its hand.

    Attributes:
        begin: start, from the start of the plan [s].
        duration: duration [s].
        step: number of the action, from 1.
        arm: arm of the motion or of the hand.
        motion: motion of the arm; None for a motion of the hand.
        fingers: final finger joint values, by joint [rad or m].
        closes: whether the hand closes on an object, which stops the fingers.
        scene: scene during the motion, in which a pushed object is attached to the hand.
    """

    begin: float
    duration: float
    step: int
    arm: Manipulator
    motion: TimedMotion | None = None
    fingers: Mapping[str, float] = field(default_factory=dict)
    closes: bool = False
    scene: SceneGraph | None = None


class RecordingExecutor(Executor):
    """Executor that records the commands of a plan with their times.

    Args:
        gripper_seconds: time in which a hand opens or closes [s].

    Attributes:
        commands: consecutive commands, without gaps.
    """

    def __init__(self, *, gripper_seconds: float = 0.5) -> None:
        if not (gripper_seconds > 0.0 and math.isfinite(gripper_seconds)):
            raise ConfigurationError(
                f"gripper_seconds is positive and finite, not {gripper_seconds}"
            )
        self._gripper_seconds, self._step = gripper_seconds, 0
        self._fingers: dict[str, float] = {}
        self._held: dict[str, str] = {}
        self.commands: list[TimedCommand] = []

    @property
    def duration(self) -> float:
        """Duration of all commands [s]."""
        return self.commands[-1].begin + self.commands[-1].duration if self.commands else 0.0

    def begin(self, plan: Plan) -> None:
        """Store the state at the start of the plan."""
        self._state = plan.scene, np.asarray(plan.q)
        values = dict(zip(plan.scene.joint_names, plan.q, strict=True))
        fingers = [joint for arm in plan.robots for joint in arm.gripper_joints]
        self._fingers = {joint: float(values[joint]) for joint in fingers}

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Store the number of the action."""
        del step
        self._step = number

    def follow(self, motion: TimedMotion) -> None:
        """Record a motion, and one of an empty hand whose fingers change."""
        segment, (scene, q) = motion.segment, self._state
        if segment.kind is SegmentKind.PUSH and segment.held is not None:
            self._state = scene.reparent(segment.held, motion.arm.tip, q=q), q
        if motion.timed.duration > 0.0:
            self._add(motion.arm, motion.timed.duration, motion=motion)
        self._state = segment.end(*self._state)
        if motion.arm.name not in self._held:
            self._move_hand(motion.arm, motion.segment)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Record that a hand closes."""
        self._held[arm.name] = segment.held or ""
        self._move_hand(arm, segment, is_required=True, closes=True)
        self._state = segment.end(*self._state)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Record that a hand opens."""
        self._held.pop(arm.name, None)
        self._move_hand(arm, segment, is_required=True)
        self._state = segment.end(*self._state)

    def end_step(self, number: int, step: PlanStep) -> None:
        """Store the state after the action."""
        del number
        self._state = step.scene, np.asarray(step.q)

    def finish(self) -> None:
        """Do nothing."""

    def _move_hand(
        self, arm: Manipulator, segment: Segment, *, is_required: bool = False, closes: bool = False
    ) -> None:
        """Record a motion of the hand if it is required or the fingers change."""
        fingers = {
            joint: float(segment.gripper[joint])
            for joint in arm.gripper_joints
            if joint in segment.gripper
        }
        changes = [abs(value - self._fingers[joint]) for joint, value in fingers.items()]
        if is_required or any(change > _FINGER_TOLERANCE for change in changes):
            self._fingers.update(fingers)
            self._add(arm, self._gripper_seconds, fingers=fingers, closes=closes)

    def _add(self, arm: Manipulator, duration: float, **attributes: Any) -> None:
        """Append a command with some attributes of :class:`TimedCommand`."""
        scene, _ = self._state
        self.commands.append(
            TimedCommand(self.duration, duration, self._step, arm, scene=scene, **attributes)
        )


@dataclass(frozen=True, eq=False)
class MotionTable:
    """Joint values of a plan at a constant rate.

    Attributes:
        rate: number of rows per second [Hz].
        joint_names: n joints of the arms and hands, and of operated mechanisms.
        positions: (m, n) joint values; commanded values of fingers [rad or m].
        velocities: (m, n) joint velocities [rad/s or m/s].
        accelerations: (m, n) joint accelerations; 0 for fingers [rad/s^2 or m/s^2].
        steps: (m,) number of the action, from 1.
        actions: actions of the plan.
        scenes: (m,) scene at each time.
    """

    rate: float
    joint_names: tuple[str, ...]
    positions: NDArray[np.float64]
    velocities: NDArray[np.float64]
    accelerations: NDArray[np.float64]
    steps: NDArray[np.int64]
    actions: tuple[str, ...]
    scenes: tuple[SceneGraph, ...] = ()

    @property
    def times(self) -> NDArray[np.float64]:
        """(m,) times from the start of the plan [s]."""
        return np.arange(len(self.positions)) / self.rate


def motion_table(plan: Plan, *, rate: float = 50.0, gripper_seconds: float = 0.5) -> MotionTable:
    """Return the joint values of a plan at a constant rate.

    Args:
        plan: plan, which is not validated; see :func:`tmkit.tamp.validate_plan`.
        rate: number of rows per second; each motion has a whole number of rows [Hz].
        gripper_seconds: time in which a hand opens or closes [s].

    Raises:
        ConfigurationError: if the rate or the time is not positive and finite.
    """
    executor = _record_plan(plan, rate, gripper_seconds)
    names = _joint_columns(plan, executor.commands)
    columns = {name: index for index, name in enumerate(names)}
    start = dict(zip(plan.scene.joint_names, plan.q, strict=True))

    # Each block has positions, velocities and accelerations (3, k, n) of one command.
    blocks = [np.array([[[start[name] for name in names]], *np.zeros((2, 1, len(names)))])]
    steps, scenes = [np.ones(1, dtype=np.int64)], [plan.scene]
    for command in executor.commands:
        last_row = blocks[-1][0, -1]
        if command.motion is not None:
            moving_names, timed = command.motion.joint_names, command.motion.timed
            values = np.array([timed.positions, timed.velocities, timed.accelerations])[:, 1:]
        else:
            moving_names = tuple(command.fingers)
            start_values = last_row[[columns[name] for name in moving_names]]
            values = _finger_rows(command, start_values, rate=rate)
        moving_columns = [columns[name] for name in moving_names]
        block = np.zeros((3, values.shape[1], len(names)))
        block[0] = last_row
        block[:, :, moving_columns] = values
        blocks.append(block)
        steps.append(np.full(values.shape[1], command.step, dtype=np.int64))
        scenes += [command.scene or plan.scene] * values.shape[1]
    actions = tuple(str(step.action) for step in plan.steps)
    positions, velocities, accelerations = np.concatenate(blocks, axis=1)
    return MotionTable(
        rate,
        names,
        positions,
        velocities,
        accelerations,
        np.concatenate(steps),
        actions,
        tuple(scenes),
    )


def _joint_columns(plan: Plan, commands: Sequence[TimedCommand]) -> tuple[str, ...]:
    """Return the joints of the arms and hands, and then those of operated mechanisms."""
    names = [name for arm in plan.robots for name in (*arm.joints, *arm.gripper_joints)]
    for command in commands:
        if command.motion is not None:
            names += command.motion.joint_names
    return tuple(dict.fromkeys(names))


def _finger_rows(
    command: TimedCommand, start_values: NDArray[np.float64], *, rate: float
) -> NDArray[np.float64]:
    """Return positions, velocities and accelerations (3, k, n_fingers) of a motion of a hand.

    Args:
        command: motion of the hand.
        start_values: (n_fingers,) finger joint values before the motion [rad or m].
        rate: number of rows per second [Hz].
    """
    count = max(1, round(command.duration * rate))
    change = np.array([*command.fingers.values()]) - start_values
    values = np.zeros((3, count, len(command.fingers)))
    values[0] = start_values + np.linspace(0.0, 1.0, count + 1)[1:, None] * change
    values[1, :-1] = change * rate / count
    return values


def export_plan(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    format: str,
    rate: float = 50.0,
    gripper_seconds: float = 0.5,
) -> None:
    """Write a plan as a function of time, for other programs.

    Args:
        plan: plan, which is not validated; see :func:`tmkit.tamp.validate_plan`.
        path: a new file for ``"csv"``. For ``"ros2"`` a file that ends in ``.json``, or the new
            folder of a bag (MCAP). For ``"lerobot"`` a new folder.
        format: ``"csv"`` is a table with a row for each time. ``"ros2"`` is a ``JointTrajectory``
            for each motion of an arm from rest to rest, and a ``GripperCommand`` for each motion of
            a hand. The position of a hand is the value of its first joint (closed for a grasp).
            Each arm has its own topics. ``"lerobot"`` is a dataset of one episode, whose states and
            actions are joint values.
        rate: samples per second; a whole number for a dataset [Hz].
        gripper_seconds: time in which a hand opens or closes [s].

    Raises:
        UnknownNameError: if the format is unknown.
        ConfigurationError: if the rate or the time is not positive and finite, or the rate of a
            dataset is not a whole number.
        OutputError: if the folder exists or the output cannot be written.
        MissingExtraError: if ``rosbags`` or ``pyarrow`` is missing.
    """
    target = Path(path)
    if format not in EXPORT_FORMATS:
        raise UnknownNameError.of("format", format, EXPORT_FORMATS)
    if format == "csv":
        table = motion_table(plan, rate=rate, gripper_seconds=gripper_seconds)
        write_text(target, _csv_text(table))
    elif format == "ros2" and target.suffix == ".json":
        messages = [
            {"topic": topic, "type": type_name, "time": command.begin, "message": message}
            for topic, type_name, command, message in _messages(
                _record_plan(plan, rate, gripper_seconds)
            )
        ]
        write_text(target, json.dumps(messages, indent=1) + "\n")
    elif format == "ros2":
        fill_new_folder(
            target, lambda folder: _write_bag(folder, _record_plan(plan, rate, gripper_seconds))
        )
    else:
        fill_new_folder(target, lambda folder: _write_dataset(folder, plan, rate, gripper_seconds))


def _write_dataset(folder: Path, plan: Plan, rate: float, gripper_seconds: float) -> None:
    """Write a LeRobot dataset of one episode to an empty folder."""
    writer = LeRobotWriter(folder, robot=plan.robots[0].name, rate=rate)
    table = motion_table(plan, rate=rate, gripper_seconds=gripper_seconds)
    writer.add(
        table.positions,
        velocities=table.velocities,
        accelerations=table.accelerations,
        joint_names=table.joint_names,
        task=" ".join(str(plan.goal).split()),
    )
    writer.close()


def _record_plan(plan: Plan, rate: float, gripper_seconds: float) -> RecordingExecutor:
    """Return an executor with the commands of a plan."""
    executor = RecordingExecutor(gripper_seconds=gripper_seconds)
    execute(plan, executor, rate=rate)
    return executor


def _csv_text(table: MotionTable) -> str:
    """Return a table in CSV, with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [
        f"{name}.{quantity}"
        for quantity in ("position", "velocity", "acceleration")
        for name in table.joint_names
    ]
    writer.writerow(["time", "step", "action", *names])
    numbers = np.concatenate([table.positions, table.velocities, table.accelerations], axis=1)
    for time, step, row in zip(table.times, table.steps, numbers, strict=True):
        action = table.actions[step - 1] if table.actions else ""
        writer.writerow([f"{time:.9g}", step, action, *(f"{value:.9g}" for value in row)])
    return text.getvalue()


def _messages(
    executor: RecordingExecutor,
) -> Iterator[tuple[str, str, TimedCommand, dict[str, Any]]]:
    """Yield topic, type, command and fields of each message.

    Consecutive motions without a rest are one message.
    """
    points: list[dict[str, Any]] = []
    first_command = None
    for command in executor.commands:
        arm = command.arm
        if command.motion is None:
            if command.fingers:
                joint, position = next(iter(command.fingers.items()))
                if command.closes:  # the object stops the fingers
                    position = arm.gripper_closed[joint]
                gripper = {"position": float(position), "max_effort": float(arm.grip_force)}
                yield f"/{arm.name}/gripper_command", _GRIPPER_TYPE, command, gripper
            continue
        first_command = first_command or command
        timed, count = command.motion.timed, len(arm.joints)  # without the joint of a mechanism
        for time, position, velocity, acceleration in zip(
            timed.times, timed.positions, timed.velocities, timed.accelerations, strict=True
        ):
            if time > 0.0 or command is first_command:
                points.append(
                    {
                        "positions": position[:count].tolist(),
                        "velocities": velocity[:count].tolist(),
                        "accelerations": acceleration[:count].tolist(),
                        "effort": [],
                        "time_from_start": _stamp(command.begin - first_command.begin + time),
                    }
                )
        if command.motion.is_stopping:
            fields = {
                "header": {"stamp": _stamp(first_command.begin), "frame_id": ""},
                "joint_names": [*command.motion.joint_names[:count]],
                "points": points,
            }
            yield f"/{arm.name}/joint_trajectory", _TRAJECTORY_TYPE, first_command, fields
            points, first_command = [], None


def _stamp(seconds: float) -> dict[str, int]:
    """Return a time as the fields of a ROS 2 time."""
    nanoseconds = round(seconds * 1e9)
    return {"sec": nanoseconds // 1_000_000_000, "nanosec": nanoseconds % 1_000_000_000}


def _write_bag(folder: Path, executor: RecordingExecutor) -> None:
    """Write the messages of recorded commands to a bag, in place of an empty folder."""
    with importing("rosbags", "world", "bags need"):
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store: Any = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(_GRIPPER_DEFINITION, _GRIPPER_TYPE))
    folder.rmdir()  # the writer creates it
    topics: dict[str, Any] = {}
    with rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        for topic, type_name, command, fields in _messages(executor):
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, type_name, typestore=store)
            message = _make_message(store.types, type_name, fields)
            data = store.serialize_cdr(message, type_name)
            writer.write(topics[topic], round(command.begin * 1e9), data)


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
