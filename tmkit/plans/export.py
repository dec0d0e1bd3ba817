"""Plans in time, for other programs: tables in CSV, messages of ROS 2, datasets in the layout of LeRobot.

:class:`RecordingExecutor` writes down what an executor is told, and when; :func:`motion_table`
samples that at equal times, and :func:`export_plan` writes it. The layout of LeRobot's datasets is
version 3.0 of https://github.com/huggingface/lerobot; messages are
``trajectory_msgs/JointTrajectory``, and for hands ``control_msgs/GripperCommand``.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit._support.output import in_new_folder, write_text
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.plans.execution import Executor, TimedMotion, execute
from tmkit.plans.lerobot import LeRobotWriter
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator

EXPORT_FORMATS = ("csv", "ros2", "lerobot")
_TRAJECTORY, _GRIPPER = "trajectory_msgs/msg/JointTrajectory", "control_msgs/msg/GripperCommand"
_GRIPPER_DEFINITION = "float64 position\nfloat64 max_effort\n"


@dataclass(frozen=True, eq=False)
class TimedCommand:
    """A motion of an arm, or one of its hand.

    Attributes:
        begin: seconds since the plan began.
        duration: seconds.
        step: number of the action, from 1.
        arm: the arm.
        motion: the motion of the arm; None where the hand moves.
        fingers: values of the finger joints that the hand comes to, by joint.
        closes: whether it closes on an object, which stops it there.
        scene: the scene version meanwhile; what is pushed moves with the hand in it.
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
    """Writes down the commands of a plan with their times; moves nothing.

    Args:
        gripper_seconds: how long a hand takes to open or close.

    Attributes:
        commands: one after the other, without gaps.
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
        """Seconds of all commands."""
        return self.commands[-1].begin + self.commands[-1].duration if self.commands else 0.0

    def begin(self, plan: Plan) -> None:
        """Take the values of the fingers at the begin."""
        self._at = plan.scene, np.asarray(plan.q)
        values = dict(zip(plan.scene.joint_names, plan.q, strict=True))
        fingers = [joint for arm in plan.robots for joint in arm.gripper_joints]
        self._fingers = {joint: float(values[joint]) for joint in fingers}

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Note the number of the action."""
        del step
        self._step = number

    def follow(self, motion: TimedMotion) -> None:
        """Write down a motion, and one of the hand if it holds nothing and is to stand otherwise afterwards."""
        segment, (scene, q) = motion.segment, self._at
        if segment.kind is SegmentKind.PUSH and segment.held is not None:
            self._at = scene.reparent(segment.held, motion.arm.tip, q=q), q
        if motion.timed.duration > 0.0:
            self._add(motion.arm, motion.timed.duration, motion=motion)
        self._at = segment.end(*self._at)
        if motion.arm.name not in self._held:
            self._move_hand(motion.arm, motion.segment)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Write down that a hand closes."""
        self._held[arm.name] = segment.held or ""
        self._move_hand(arm, segment, always=True, closes=True)
        self._at = segment.end(*self._at)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Write down that a hand opens."""
        self._held.pop(arm.name, None)
        self._move_hand(arm, segment, always=True)
        self._at = segment.end(*self._at)

    def end_step(self, number: int, step: PlanStep) -> None:
        """Take the scene and the configuration after the action."""
        del number
        self._at = step.scene, np.asarray(step.q)

    def finish(self) -> None:
        """Do nothing."""

    def _move_hand(
        self, arm: Manipulator, segment: Segment, *, always: bool = False, closes: bool = False
    ) -> None:
        fingers = {
            joint: float(segment.gripper[joint])
            for joint in arm.gripper_joints
            if joint in segment.gripper
        }
        if always or any(
            abs(value - self._fingers[joint]) > 1e-9 for joint, value in fingers.items()
        ):
            self._fingers.update(fingers)
            self._add(arm, self._gripper_seconds, fingers=fingers, closes=closes)

    def _add(self, arm: Manipulator, duration: float, **what: Any) -> None:
        self.commands.append(
            TimedCommand(self.duration, duration, self._step, arm, scene=self._at[0], **what)
        )


@dataclass(frozen=True, eq=False)
class MotionTable:
    """What moves during a plan, at equal times.

    Attributes:
        rate: rows a second.
        joint_names: the n joints of the arms and hands, and those that hands move.
        positions: (m, n) radians or metres; fingers as they are commanded.
        velocities: (m, n) rad/s or m/s.
        accelerations: (m, n) rad/s^2 or m/s^2; none of fingers.
        steps: (m,) number of the action, from 1.
        actions: the actions.
        scenes: (m,) the scene version at each time.
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
        """(m,) seconds since the begin."""
        return np.arange(len(self.positions)) / self.rate


def motion_table(plan: Plan, *, rate: float = 50.0, gripper_seconds: float = 0.5) -> MotionTable:
    """Return what moves during a plan, at equal times.

    Args:
        plan: the plan; it is not checked, see :func:`tmkit.tamp.validate_plan`.
        rate: rows a second; each motion takes a whole number of them.
        gripper_seconds: how long a hand takes to open or close.

    Raises:
        ConfigurationError: a rate or time that is not positive and finite.
    """
    executor = _recorded(plan, rate, gripper_seconds)
    others = [
        name
        for command in executor.commands
        if command.motion
        for name in command.motion.joint_names
    ]
    own = [name for arm in plan.robots for name in (*arm.joints, *arm.gripper_joints)]
    names = tuple(dict.fromkeys([*own, *others]))
    column = {name: at for at, name in enumerate(names)}
    start = dict(zip(plan.scene.joint_names, plan.q, strict=True))
    rows = [np.array([[[start[name] for name in names]], *np.zeros((2, 1, len(names)))])]
    steps, scenes = [np.ones(1, dtype=np.int64)], [plan.scene]
    for command in executor.commands:
        if command.motion is not None:
            moving, timed = command.motion.joint_names, command.motion.timed
            values = np.array([timed.positions, timed.velocities, timed.accelerations])[:, 1:]
        else:
            moving, count = tuple(command.fingers), max(1, round(command.duration * rate))
            before = rows[-1][0, -1, [column[name] for name in moving]]
            change = np.array([*command.fingers.values()]) - before
            values = np.zeros((3, count, len(moving)))
            values[0] = before + np.linspace(0.0, 1.0, count + 1)[1:, None] * change
            values[1, :-1] = change * rate / count
        place = [column[name] for name in moving]
        rows.append(np.zeros((3, values.shape[1], len(names))))
        rows[-1][0] = rows[-2][0, -1]
        rows[-1][:, :, place] = values
        steps.append(np.full(values.shape[1], command.step, dtype=np.int64))
        scenes += [command.scene or plan.scene] * values.shape[1]
    actions = tuple(str(step.action) for step in plan.steps)
    x, v, a = np.concatenate(rows, axis=1)
    return MotionTable(rate, names, x, v, a, np.concatenate(steps), actions, tuple(scenes))


def export_plan(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    format: str,
    rate: float = 50.0,
    gripper_seconds: float = 0.5,
) -> None:
    """Write a plan in time, for other programs.

    Args:
        plan: the plan; it is not checked, see :func:`tmkit.tamp.validate_plan`.
        path: a file for ``"csv"``; for ``"ros2"`` a file that ends in ``.json``, or the folder of a
            bag (MCAP), which is made; for ``"lerobot"`` a folder, which is made.
        format: ``"csv"``: a row for each time. ``"ros2"``: a ``JointTrajectory`` for each motion of
            an arm from rest to rest, and a ``GripperCommand`` for each of a hand. The position of a
            hand is the value of its first joint (closed where it is to hold something). Each arm
            has topics of its own. ``"lerobot"``: a dataset of one episode, whose state and action
            are positions of joints.
        rate: samples a second; of a dataset a whole number.
        gripper_seconds: how long a hand takes to open or close.

    Raises:
        UnknownNameError: no such format.
        ConfigurationError: a rate or time that is not positive and finite, or for a dataset no
            whole number.
        OutputError: the folder is there already, or nothing can be written.
        MissingExtraError: ``rosbags`` or ``pyarrow`` is needed.
    """
    target = Path(path)
    if format not in EXPORT_FORMATS:
        raise UnknownNameError.of("format", format, EXPORT_FORMATS)
    if format == "csv":
        write_text(target, _csv(motion_table(plan, rate=rate, gripper_seconds=gripper_seconds)))
    elif format == "ros2" and target.suffix == ".json":
        messages = [
            {"topic": topic, "type": kind, "time": command.begin, "message": message}
            for topic, kind, command, message in _messages(_recorded(plan, rate, gripper_seconds))
        ]
        write_text(target, json.dumps(messages, indent=1) + "\n")
    elif format == "ros2":
        in_new_folder(
            target, lambda folder: _write_bag(folder, _recorded(plan, rate, gripper_seconds))
        )
    else:

        def write(folder: Path) -> None:
            writer = LeRobotWriter(folder, robot=plan.robots[0].name, rate=rate)
            motion = motion_table(plan, rate=rate, gripper_seconds=gripper_seconds)
            writer.add(
                motion.positions,
                velocities=motion.velocities,
                accelerations=motion.accelerations,
                joint_names=motion.joint_names,
                task=" ".join(str(plan.goal).split()),
            )
            writer.close()

        in_new_folder(target, write)


def _recorded(plan: Plan, rate: float, gripper_seconds: float) -> RecordingExecutor:
    executor = RecordingExecutor(gripper_seconds=gripper_seconds)
    execute(plan, executor, rate=rate)
    return executor


def _csv(table: MotionTable) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [
        f"{name}.{what}"
        for what in ("position", "velocity", "acceleration")
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
    """Yield topic, type, command and fields of each message; motions that go on without a stop are one."""
    points: list[dict[str, Any]] = []
    begun = None
    for command in executor.commands:
        arm = command.arm
        if command.motion is None:
            if command.fingers:
                joint, position = next(iter(command.fingers.items()))
                # what is held stops the hand
                wanted = arm.gripper_closed[joint] if command.closes else position
                effort = {"position": float(wanted), "max_effort": float(arm.grip_force)}
                yield f"/{arm.name}/gripper_command", _GRIPPER, command, effort
            continue
        # what a handle moves follows by itself
        timed, count = command.motion.timed, len(arm.joints)
        begun = begun or command
        points += [
            {
                "positions": x[:count].tolist(),
                "velocities": v[:count].tolist(),
                "accelerations": a[:count].tolist(),
                "effort": [],
                "time_from_start": _stamp(command.begin - begun.begin + time),
            }
            for time, x, v, a in zip(
                timed.times, timed.positions, timed.velocities, timed.accelerations, strict=True
            )
            if time > 0.0 or command is begun
        ]
        if command.motion.is_stopping:
            header = {"stamp": _stamp(begun.begin), "frame_id": ""}
            fields = {
                "header": header,
                "joint_names": [*command.motion.joint_names[:count]],
                "points": points,
            }
            yield f"/{arm.name}/joint_trajectory", _TRAJECTORY, begun, fields
            points, begun = [], None


def _stamp(seconds: float) -> dict[str, int]:
    nanoseconds = round(seconds * 1e9)
    return {"sec": nanoseconds // 1_000_000_000, "nanosec": nanoseconds % 1_000_000_000}


def _write_bag(folder: Path, executor: RecordingExecutor) -> None:
    with importing("rosbags", "world", "bags need"):
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store: Any = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(_GRIPPER_DEFINITION, _GRIPPER))
    types = store.types
    arrays = ("positions", "velocities", "accelerations", "effort")

    def made(kind: str, fields: dict[str, Any]) -> Any:
        if kind == _GRIPPER:
            return types[_GRIPPER](**fields)
        duration, time = (
            types["builtin_interfaces/msg/Duration"],
            types["builtin_interfaces/msg/Time"],
        )
        points = [
            types["trajectory_msgs/msg/JointTrajectoryPoint"](
                **{name: np.array(point[name]) for name in arrays},
                time_from_start=duration(**point["time_from_start"]),
            )
            for point in fields["points"]
        ]
        header = types["std_msgs/msg/Header"](stamp=time(**fields["header"]["stamp"]), frame_id="")
        return types[kind](header=header, joint_names=fields["joint_names"], points=points)

    folder.rmdir()  # the writer makes it
    topics: dict[str, Any] = {}
    with rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        for topic, kind, command, fields in _messages(executor):
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=store)
            raw = store.serialize_cdr(made(kind, fields), kind)
            writer.write(topics[topic], round(command.begin * 1e9), raw)
