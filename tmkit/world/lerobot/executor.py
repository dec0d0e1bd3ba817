"""Executor of plans on LeRobot robots, with checks before and during each motion.

A robot of LeRobot follows single positions. Each period, the joints are observed and compared with
their commanded path of the last time ``lag``. Then the next position is sent.
::

    observed          o o  o   o   o   o          path from "lag" ago until now
    commanded       |------------------| c        distance to it > path_tolerance: stop
                    now - lag        now

A stalled joint leaves this part of the path, and so does one that is pushed away. A late period
delays the rest of the motion and is never made up for. To stop, the arm is commanded to its present
position, while the hand keeps its command and an object its grasp.

Nothing is retried but a read or write with a connection error, and after a failure nothing more is
sent.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.plans import Plan, SegmentKind
from tmkit.plans.execution_report import ExecutionStatus
from tmkit.world.execution.checks import nearest_distances, path_fault, position_fault
from tmkit.world.execution.goal_run import FailedGoalError, GoalRun
from tmkit.world.execution.goals import Goal, GripperGoal, SegmentTime, SuctionGoal, TrajectoryGoal
from tmkit.world.execution.reporting import ReportingExecutor
from tmkit.world.lerobot.motors import Clock, LeRobotRobot, Motors
from tmkit.world.lerobot.settings import LeRobotSettings

_Array = NDArray[np.float64]


class LeRobotExecutor(ReportingExecutor):
    """Executor of a plan on a robot with the interface of LeRobot.

    Pass it to :func:`tmkit.plans.execute`. A failed motion raises an
    :class:`~tmkit.errors.ExecutionError` after the arm was commanded to its present position.

    Args:
        robot: connected robot, such as ``lerobot.robots.so_follower.SO101Follower``. The executor
            neither connects nor disconnects it.
        settings: joints of the robot, from :func:`load_lerobot`.
        speed: speed relative to the plan, above 0 and at most 1.
        first: number of the first step of the plan, if it is a part of a longer one.
        first_segment: number of the first segment of this step.
        clock: source of time with ``monotonic`` and ``sleep``.

    Attributes:
        failure: report of a failure or an interruption, or None.

    Raises:
        ConfigurationError: if the speed is outside of its range, or the robot has not the features
            of the joints.
    """

    settings: LeRobotSettings

    def __init__(
        self,
        robot: LeRobotRobot,
        settings: LeRobotSettings,
        *,
        speed: float = 1.0,
        first: int = 1,
        first_segment: int = 1,
        clock: Clock = time,
    ) -> None:
        super().__init__(settings, speed=speed, first=first, first_segment=first_segment)
        self._robot = robot
        self._motors = Motors(robot, settings, clock)
        self._motors.check_features()
        self._held: dict[str, GripperGoal] = {}

    def begin(self, plan: Plan) -> None:
        """Check the joints, their ranges and the start of a plan, before anything moves.

        Args:
            plan: plan to execute.

        Raises:
            ConfigurationError: if a joint has no feature, or the plan leaves its range.
            ExecutionError: if the robot does not reply, or a joint is not at its start.
        """
        super().begin(plan)
        check_ranges(plan, self.settings)
        arms = [arm for arm in plan.robots if arm.name in {*self._arms, *self._hands}]
        self._arm_joints = tuple(joint for arm in arms for joint in arm.joints)
        self._held = {}
        motors, settings = self._motors, self.settings
        hands = tuple(
            joint
            for arm in arms
            for joint in arm.gripper_joints
            if arm.name in self._hands and joint in settings.joints
        )
        joints = (*self._arm_joints, *hands)
        names = plan.scene.joint_names
        start = np.array([plan.q[names.index(joint)] for joint in joints])
        tolerances = [settings.start_tolerance] * len(self._arm_joints)
        tolerances += [settings.grasp_tolerance] * len(hands)
        try:
            if not self._robot.is_connected:
                raise FailedGoalError(ExecutionStatus.STATE, "the robot is not connected")
            motors.await_positions(joints, start, tolerances)
        except FailedGoalError as failure:
            reason = failure.reason
            if failure.fault is ExecutionStatus.START:
                pairs = zip(joints, motors.positions(joints), strict=True)
                measured = ",".join(f"{joint}={value:.4f}" for joint, value in pairs)
                reason = f"start of the plan: {reason}; measured: {measured}"
            raise self._error(failure.fault, reason) from failure.__cause__
        motors.hold_all()
        for arm in arms:
            if is_holding(plan, arm.name):
                closed = arm.gripper_closed.items()
                motors.set_command({joint: q for joint, q in closed if joint in settings.joints})

    def send(self, goal: Goal) -> None:
        """Execute a goal to its end.

        Args:
            goal: next goal.

        Raises:
            ExecutionError: if it fails. The arm was commanded to its present position.
        """
        assert not isinstance(goal, SuctionGoal)  # rejected by the settings
        arm_joints = self._plan.arm(goal.arm).joints
        run = _GoalRun(goal, self._motors, self.settings, self._stop, self._held, arm_joints)
        self._complete(run)

    def _measure(self) -> tuple[Mapping[str, float], bool]:
        """Return the measured joint values of the arms by name, and whether they are at rest."""
        motors, is_at_rest = self._motors, False
        motors.restart_clock()
        for _ in range(math.ceil(self.settings.settling_time * self.settings.rate)):
            motors.wait()
            try:
                motors.observe()
            except FailedGoalError:
                break
            if is_at_rest := motors.is_at_rest(self._arm_joints):
                break
        values = motors.positions(self._arm_joints).tolist()
        pairs = zip(self._arm_joints, values, strict=True)
        return {joint: value for joint, value in pairs if not math.isnan(value)}, is_at_rest


class _GoalRun(GoalRun):
    """Execution of a goal on motors, from its start check to its end."""

    def __init__(
        self,
        goal: TrajectoryGoal | GripperGoal,
        motors: Motors,
        settings: LeRobotSettings,
        stop: threading.Event,
        held: dict[str, GripperGoal],
        arm_joints: tuple[str, ...],
    ) -> None:
        super().__init__()
        self._goal, self._motors, self._settings = goal, motors, settings
        self._stop, self._held, self._arm_joints = stop, held, arm_joints
        self._seconds = 0.0

    def place(self) -> tuple[SegmentTime, float]:
        """Return the segment at the end, and the time since its start [s]."""
        if isinstance(self._goal, GripperGoal):
            return self._goal.place, self._seconds
        return self._goal.locate(self._seconds)

    def execute(self) -> None:
        """Execute the goal.

        Raises:
            FailedGoalError: if it fails. The arm was commanded to its present position.
        """
        goal, motors, settings = self._goal, self._motors, self._settings
        if self._stop.is_set():
            raise FailedGoalError(ExecutionStatus.STOPPED, "stopped before the motion")
        motors.restart_clock()
        if isinstance(goal, TrajectoryGoal):
            tolerances = [settings.start_tolerance] * len(goal.joints)
            try:
                motors.await_positions(goal.joints, goal.positions[0], tolerances)
            except FailedGoalError as failure:
                reason = f"start of the motion: {failure.reason}"
                raise FailedGoalError(failure.fault, reason) from failure
        try:
            if isinstance(goal, TrajectoryGoal):
                self._follow(goal)
            else:
                self._move_hand(goal)
        except Exception as error:
            is_held = motors.hold(self._arm_joints)
            if isinstance(error, FailedGoalError) and not is_held:
                reason = "the robot did not take the command to hold its position"
                raise FailedGoalError(error.fault, f"{error.reason}; {reason}") from error
            raise

    def _follow(self, goal: TrajectoryGoal) -> None:
        """Send the positions of a trajectory until the arm is at rest at its end.

        Raises:
            FailedGoalError: if it fails.
        """
        settings = self._settings
        times, rows = _sample(goal, settings.rate)
        waiting = math.ceil(settings.settling_time * settings.rate)
        padded = np.concatenate([rows, np.repeat(rows[-1:], waiting, axis=0)])
        row = 1
        while row < len(padded):
            begin = max(0, row - 1 - math.ceil(settings.lag * settings.rate))
            if not self._observe(goal.joints, padded[begin:row]):
                continue
            at_end = row >= len(rows) and self._motors.is_at_rest(goal.joints)
            if at_end and not self._end_fault(goal):
                return
            if self._motors.send(dict(zip(goal.joints, padded[row].tolist(), strict=True))):
                self._seconds = float(times[min(row, len(times) - 1)])
                row += 1
        reason = self._end_fault(goal) or "the arm does not come to rest"
        raise FailedGoalError(ExecutionStatus.DEVIATION, f"end of the motion: {reason}")

    def _end_fault(self, goal: TrajectoryGoal) -> str:
        """Return why an arm is not at the end of its motion; empty if it is."""
        tolerances = [self._settings.goal_tolerance] * len(goal.joints)
        positions = self._motors.positions(goal.joints)
        return position_fault(goal.joints, positions, goal.positions[-1], tolerances)

    def _move_hand(self, goal: GripperGoal) -> None:
        """Move the command of a hand to its end, and wait until its fingers are at rest.

        Raises:
            FailedGoalError: if the fingers do not come to rest, or not where the plan has them.
        """
        settings, motors = self._settings, self._motors
        self._held.pop(goal.arm, None)
        start = {joint: motors.command(joint) for joint in goal.values}
        path = np.array([[motors.command(joint) for joint in self._arm_joints]])
        closing = max(1, math.ceil(settings.closing_time * settings.rate))
        for count in range(1, math.ceil(settings.gripper_time * settings.rate) + 1):
            if not self._observe(self._arm_joints, path):
                continue
            if count > closing and motors.is_at_rest(goal.values):
                break
            fraction = min(1.0, count / closing)
            command = {
                joint: start[joint] + fraction * (value - start[joint])
                for joint, value in goal.values.items()
            }
            # The object or a limit of the robot stops the fingers.
            motors.send(command, allow_clipping=True)
            self._seconds = count / settings.rate
        else:
            limit = settings.gripper_time
            reason = f"the hand did not come to rest within {limit:g} s"
            raise FailedGoalError(ExecutionStatus.TIMEOUT, reason)
        joints = tuple(goal.values)
        fingers = dict(zip(joints, motors.positions(joints).tolist(), strict=True))
        if reason := goal.fault(fingers, settings.grasp_tolerance, is_stalled=True):
            raise FailedGoalError(ExecutionStatus.GRASP, reason)
        if goal.held is not None:
            self._held[goal.arm] = goal

    def _observe(self, joints: tuple[str, ...], path: _Array) -> bool:
        """Wait for the next period and check the robot; return false if it did not reply.

        Args:
            joints: n joints of an arm.
            path: (k, n) recent commands of the arm, or its only one [rad or m].

        Raises:
            FailedGoalError: if the execution was stopped, the arm is not at its path, or an object
                was lost.
        """
        motors, settings = self._motors, self._settings
        motors.wait()
        if self._stop.is_set():
            raise FailedGoalError(ExecutionStatus.STOPPED, "stopped")
        if not motors.observe():
            return False
        distances = nearest_distances(path, motors.positions(joints))
        if reason := path_fault(joints, distances, settings.path_tolerance):
            raise FailedGoalError(ExecutionStatus.DEVIATION, reason)
        for held in self._held.values():
            fingers = tuple(held.values)
            planned = np.array([held.planned[joint] for joint in fingers])
            tolerances = [settings.grasp_tolerance] * len(fingers)
            values = motors.positions(fingers)
            if reason := position_fault(fingers, values, planned, tolerances):
                raise FailedGoalError(ExecutionStatus.GRASP, f"'{held.held}' was lost: {reason}")
        return True


def check_ranges(plan: Plan, settings: LeRobotSettings) -> None:
    """Check that a plan is within the ranges of the features.

    Args:
        plan: plan to execute.
        settings: joints of the robot.

    Raises:
        ConfigurationError: if a joint leaves the range of its feature.
    """
    for number, step in enumerate(plan.steps, start=1):
        for segment in step.segments:
            values = dict(zip(segment.joint_names, segment.path.T, strict=True))
            values |= {joint: np.array([value]) for joint, value in segment.gripper.items()}
            if segment.kind is SegmentKind.GRASP:
                closed = plan.arm(segment.arm).gripper_closed
                values |= {joint: np.array([value]) for joint, value in closed.items()}
            for joint, column in values.items():
                if joint not in settings.joints:
                    continue  # a drawer, or a finger that follows another one
                for value in (float(column.min()), float(column.max())):
                    try:
                        settings.action({joint: value})
                    except ConfigurationError as error:
                        place = f"step {number}, {segment.kind.value}"
                        raise ConfigurationError(f"{place}: {error}") from None


def is_holding(plan: Plan, arm: str) -> bool:
    """Return whether a hand with fingers holds an object at the start of a plan."""
    segments = (segment for step in plan.steps for segment in step.segments if segment.arm == arm)
    first = next(segments, None)
    return (
        first is not None
        and first.held is not None
        and first.kind not in (SegmentKind.GRASP, SegmentKind.PUSH)
    )


def _sample(goal: TrajectoryGoal, rate: float) -> tuple[_Array, _Array]:
    """Return times (k,) and joint values (k, n) of a trajectory at a rate, or just above it.

    A longer interval between two actions than here makes the motion slower, never faster.
    """
    times = np.linspace(0.0, goal.duration, max(1, math.ceil(goal.duration * rate)) + 1)
    columns = [np.interp(times, goal.times, column) for column in goal.positions.T]
    return times, np.column_stack(columns)
