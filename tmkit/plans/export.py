"""Plans as functions of time for other programs: CSV tables, ROS 2 messages, LeRobot datasets.

:class:`RecordingExecutor` records the commands of a plan with their times. :func:`motion_table`
samples them at a constant rate, and :func:`export_plan` writes them. Datasets have version 3.0 of
the layout of https://github.com/huggingface/lerobot; :mod:`tmkit.plans.ros2_messages` describes the
messages.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tmkit._support.output import fill_new_folder, write_text
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.plans.execution import execute
from tmkit.plans.lerobot import LeRobotWriter
from tmkit.plans.ros2_messages import CommandTopics, command_messages, write_bag
from tmkit.plans.timed_commands import RecordingExecutor, TimedCommand
from tmkit.plans.values import Plan

EXPORT_FORMATS = ("csv", "ros2", "lerobot")
"""Names of the formats of :func:`export_plan`."""


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
    controllers: Mapping[str, str] | None = None,
) -> None:
    """Write a plan as a function of time, for other programs.

    Args:
        plan: plan, which is not validated; see :func:`tmkit.tamp.validate_plan`.
        path: a new file for ``"csv"``. For ``"ros2"`` a file that ends in ``.json``, or the new
            folder of a bag (MCAP). For ``"lerobot"`` a new folder.
        format: ``"csv"`` is a table with a row for each time. ``"ros2"`` is a ``JointTrajectory``
            for each motion of an arm from rest to rest, and a ``GripperCommand`` for each motion of
            a hand with fingers. The position of a hand is the value of its first joint (closed for
            a grasp). ``"lerobot"`` is a dataset of one episode, whose states and actions are joint
            values.
        rate: samples per second; a whole number for a dataset [Hz].
        gripper_seconds: time in which a hand opens or closes [s].
        controllers: for ``"ros2"``, names of controllers by the name of the arm, or by the tip
            frame of the arm for its hand. Others are ``NAME_controller``, with underscores for
            characters that ROS names do not have.

    Raises:
        UnknownNameError: if the format is unknown, or a controller is for no arm or hand.
        ConfigurationError: if the rate or the time is not positive and finite, or the rate of a
            dataset is not a whole number. Also if a controller has no ROS name, or two arms or two
            hands have the same one.
        OutputError: if the folder exists or the output cannot be written.
        MissingExtraError: if ``rosbags`` or ``pyarrow`` is missing.
    """
    target = Path(path)
    if format not in EXPORT_FORMATS:
        raise UnknownNameError.of("format", format, EXPORT_FORMATS)
    if format == "csv":
        table = motion_table(plan, rate=rate, gripper_seconds=gripper_seconds)
        write_text(target, _csv_text(table))
    elif format == "ros2":
        topics = CommandTopics(plan.robots, controllers or {})
        messages = command_messages(_record_plan(plan, rate, gripper_seconds).commands, topics)
        if target.suffix == ".json":
            rows = [message._asdict() for message in messages]
            write_text(target, json.dumps(rows, indent=1) + "\n")
        else:
            fill_new_folder(target, lambda folder: write_bag(folder, messages))
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
