"""Executor of plans on ROS 2 controllers, with checks before and during each motion.

Each goal runs in a thread, so a signal does not interrupt its cancellation::

    start check, send, accepted
    every 5 ms: stop? stale? late? off the path? --> cancel, wait for the end
    result

Before the first goal, :meth:`Ros2Executor.begin` checks servers, joint states and the start.
Nothing is retried, and after a failure nothing more is sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from tmkit.errors import ExecutionError
from tmkit.plans import Plan, Schedule
from tmkit.plans.execution_report import ExecutionStatus
from tmkit.robots.mechanisms import held_object, turning_joints
from tmkit.world.execution.checks import path_fault
from tmkit.world.execution.controllers import Controller
from tmkit.world.execution.goal_run import FailedGoalError, GoalRun
from tmkit.world.execution.goals import Goal, GripperGoal, SegmentTime, SuctionGoal, TrajectoryGoal
from tmkit.world.execution.parallel import ScheduleRun, place_goals, require_free_delays
from tmkit.world.execution.reporting import ReportingExecutor
from tmkit.world.ros2.connection import RosConnection, await_no_fault, await_reply
from tmkit.world.ros2.controllers import ControllerSettings

_SETTLE_SECONDS = 1.0
"""Longest wait until an arm is at the start or end of a motion [s]."""

_DISCOVERY_PERIOD = 0.05
"""Time between two counts of action servers [s]."""

_MONITOR_PERIOD = 0.005
"""Time between two checks of a motion [s]."""

_STATUS_SUCCEEDED = 4
"""Status of a goal that succeeded, by action_msgs/GoalStatus."""

_STATUS_CANCELED = 5
"""Status of a goal that was cancelled, by action_msgs/GoalStatus."""

_STATUS_ABORTED = 6
"""Status of a goal that the server aborted, by action_msgs/GoalStatus."""

_ERROR_NAMES = {
    -1: "INVALID_GOAL",
    -2: "INVALID_JOINTS",
    -3: "OLD_HEADER_TIMESTAMP",
    -4: "PATH_TOLERANCE_VIOLATED",
    -5: "GOAL_TOLERANCE_VIOLATED",
}
"""Names of the error codes of FollowJointTrajectory."""


class Ros2Executor(ReportingExecutor):
    """Executor of a plan on trajectory and gripper controllers, and suction grippers.

    Use it as a context manager, or call :meth:`close`, and pass it to
    :func:`tmkit.plans.execute`. A failed motion raises an :class:`~tmkit.errors.ExecutionError`
    after the arm was stopped.

    Args:
        settings: controllers of the robot, from :func:`load_controllers`.
        speed: speed relative to the plan, above 0 and at most 1.
        first: number of the first step of the plan, if it is a part of a longer one.
        first_segment: number of the first segment of this step.

    Attributes:
        failure: report of a failure or an interruption, or None.

    Raises:
        ConfigurationError: if the speed is outside of its range, or the message type of a suction
            gripper is unknown or has other fields.
        MissingExtraError: if rclpy or control_msgs of ROS 2 cannot be imported.
    """

    settings: ControllerSettings

    def __init__(
        self,
        settings: ControllerSettings,
        *,
        speed: float = 1.0,
        first: int = 1,
        first_segment: int = 1,
    ) -> None:
        super().__init__(settings, speed=speed, first=first, first_segment=first_segment)
        self._held: dict[str, str] = {}
        self._connection = RosConnection(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. A motion is stopped first by :meth:`stop`."""
        self._connection.close()

    def begin(self, plan: Plan) -> None:
        """Check controllers, joint states and the start of a plan, before anything moves.

        Args:
            plan: plan to execute.

        Raises:
            ConfigurationError: if an arm or hand has no controller.
            ExecutionError: if a server is missing or present twice, a joint state is missing or
                old, or a joint is not at its start.
        """
        super().begin(plan)
        self._held = {
            arm.name: name
            for arm in plan.robots
            if arm.name in self._connection.suction
            and (name := held_object(plan.scene, arm)) is not None
        }
        moving = {*self._arms, *self._hands, *self._cups}
        arms = [arm for arm in plan.robots if arm.name in moving]
        self._arm_joints = tuple(joint for arm in arms for joint in arm.joints)
        hands = tuple(joint for arm in arms for joint in self._hand_joints(arm.name))
        joints = self._joints = (*self._arm_joints, *hands)
        controllers = [*self._arms.values(), *self._hands.values()]
        problems = [(ExecutionStatus.SERVER, reason) for reason in self._await_servers(controllers)]
        for arm in dict.fromkeys([*self._cups, *self._held]):
            if reason := self._connection.suction_fault(arm):
                problems.append((ExecutionStatus.SERVER, reason))
            elif reason := self._connection.suction[arm].sensor_fault(is_on=arm in self._held):
                held = self._held.get(arm, "nothing")
                reason = f"start of the plan: arm '{arm}' holds {held}, but {reason}"
                problems.append((ExecutionStatus.START, reason))
        names = plan.scene.joint_names
        turning = [joint for joint in joints if joint in turning_joints(plan.scene)]
        self._connection.count_turns(turning, [plan.q[names.index(joint)] for joint in turning])
        if reason := self._connection.await_states(joints):
            problems.append((ExecutionStatus.STATE, reason))
        else:
            start = np.array([plan.q[names.index(joint)] for joint in joints])
            tolerances = np.array(
                [self.settings.start_tolerance] * len(self._arm_joints)
                + [self.settings.grasp_tolerance] * len(hands)
            )
            if reason := self._connection.await_positions(
                joints, start, tolerances, seconds=_SETTLE_SECONDS
            ):
                problems.append((ExecutionStatus.START, f"start of the plan: {reason}"))
        if reason := self._connection.await_stop_fault():
            problems.append((ExecutionStatus.STOPPED, reason))
        if problems:
            fault = problems[0][0]
            raise self._error(fault, "; ".join(reason for _, reason in problems))

    def _await_servers(self, controllers: Sequence[Controller]) -> list[str]:
        """Wait for the action servers, and then for a second one of a name; return the faults."""
        faults: list[str] = []

        def has_fault() -> bool:
            reasons = map(self._connection.server_fault, controllers)
            faults[:] = [reason for reason in reasons if reason]
            return bool(faults)

        if not has_fault():
            end = time.monotonic() + self.settings.discovery_time
            while not has_fault() and time.monotonic() < end:
                if self._stop.wait(_DISCOVERY_PERIOD):
                    break
        return faults

    def send(self, goal: Goal) -> None:
        """Execute a goal to its end.

        Args:
            goal: next goal.

        Raises:
            ExecutionError: if it fails. The arm was stopped.
        """
        self._complete(self._make_run(goal, self._stop))

    def follow_schedule(self, schedule: Schedule, *, rate: float) -> None:
        """Execute a schedule, whose arms act at the same time.

        Args:
            schedule: schedule of the plan.
            rate: samples of each motion per second [Hz].

        Raises:
            ConfigurationError: if the arms would collide if one was late by less than the
                ``schedule_tolerance``.
            ExecutionError: if a goal fails, or an arm is late. All arms were stopped.
        """
        require_free_delays(schedule, self.settings.schedule_tolerance)
        entries = place_goals(schedule, partial(self.make_goals, rate=rate), first=self._first)
        if entries:
            run = ScheduleRun(
                entries,
                self._make_run,
                self._connection.positions,
                speed=self.speed,
                tolerance=self.settings.schedule_tolerance,
                stop=self._stop,
            )
            self._complete(run)

    def _make_run(self, goal: Goal, stop: threading.Event) -> _GoalRun:
        """Return the execution of a goal, which an event cancels."""
        return _GoalRun(goal, self._connection, self.settings, stop, self._held)

    def measure(self, plan: Plan) -> dict[str, float]:
        """Return the present values of the joints of the arms and hands that a plan moves.

        Args:
            plan: plan, which need not have begun.

        Returns:
            Joint values by the names in the scene [rad or m]. Finger joints without a joint state
            are omitted.

        Raises:
            ExecutionError: if a joint state of an arm is missing or old.
        """
        names = {segment.arm for step in plan.steps for segment in step.segments}
        arms = [arm for arm in plan.robots if arm.name in names]
        joints = tuple(joint for arm in arms for joint in arm.joints)
        if reason := self._connection.await_states(joints):
            raise ExecutionError(reason)
        return self._positions((*joints, *(joint for arm in arms for joint in arm.gripper_joints)))

    def _hand_joints(self, arm: str) -> tuple[str, ...]:
        """Return the joints of a hand that its controller has, by their names in the scene."""
        if arm not in self._hands:
            return ()
        joints, names = self._plan.arm(arm).gripper_joints, self.settings.names
        own = self._hands[arm].joints
        return tuple(joint for joint in joints if names.get(joint, joint) in own)

    def _measure(self) -> tuple[Mapping[str, float], bool]:
        """Return the measured joint values of the arms by name, and whether they are at rest."""
        is_at_rest = self._connection.await_rest(self._arm_joints)
        return self._positions(self._joints), is_at_rest

    def _positions(self, joints: tuple[str, ...]) -> dict[str, float]:
        """Return the latest values of those joints that have a state, by name."""
        values = self._connection.positions(joints).tolist()
        return {
            joint: value for joint, value in zip(joints, values, strict=True) if not np.isnan(value)
        }


class _GoalRun(GoalRun):
    """Execution of a goal by controllers, from its start check to its result."""

    def __init__(
        self,
        goal: Goal,
        connection: RosConnection,
        settings: ControllerSettings,
        stop: threading.Event,
        held: dict[str, str],
    ) -> None:
        super().__init__()
        self._goal, self._connection, self._settings = goal, connection, settings
        self._stop, self._held = stop, held
        self._name = goal.controller.name
        self._feedback: Any = None
        self._begin: float | None = None
        self._seconds = 0.0

    def place(self) -> tuple[SegmentTime, float]:
        """Return the segment at the end, and the time since its start [s]."""
        if isinstance(self._goal, TrajectoryGoal):
            return self._goal.locate(self._seconds)
        return self._goal.place, self._seconds

    def execute(self) -> None:
        """Execute the goal.

        Raises:
            FailedGoalError: if it fails.
        """
        if isinstance(self._goal, TrajectoryGoal):
            self._follow(self._goal)
        elif isinstance(self._goal, GripperGoal):
            self._move_hand(self._goal)
        else:
            self._switch_vacuum(self._goal)

    def _follow(self, goal: TrajectoryGoal) -> None:
        """Execute a trajectory.

        Raises:
            FailedGoalError: if it fails.
        """
        settings = self._settings
        self._check_positions(goal, 0, settings.start_tolerance, ExecutionStatus.START)
        limit = goal.duration * settings.duration_scaling + settings.goal_margin
        status, result = self._call(goal, limit)
        if status != _STATUS_SUCCEEDED or result.error_code != 0:
            code = _ERROR_NAMES.get(result.error_code, f"error code {result.error_code}")
            detail = f": {result.error_string}" if result.error_string else ""
            raise self._abort(status, f", {code}{detail}")
        self._seconds = goal.duration
        self._check_positions(goal, -1, settings.goal_tolerance, ExecutionStatus.DEVIATION)

    def _abort(self, status: int, detail: str = "") -> FailedGoalError:
        """Return the failure of a goal that the controller ended; all own ones raise earlier."""
        if status == _STATUS_CANCELED:
            return FailedGoalError(
                ExecutionStatus.PREEMPTED,
                f"another client cancelled or replaced the goal of controller '{self._name}'"
                + detail,
            )
        return FailedGoalError(
            ExecutionStatus.ABORTED,
            f"controller '{self._name}' ended with {_status_name(status)}{detail}",
        )

    def _stop_fault(self) -> str:
        """Return why nothing may move; empty if it may."""
        return "stopped" if self._stop.is_set() else self._connection.stop_fault()

    def _check_positions(
        self, goal: TrajectoryGoal, row: int, tolerance: float, fault: ExecutionStatus
    ) -> None:
        """Check that an arm is at one end of its motion.

        Raises:
            FailedGoalError: if it is not.
        """
        reason = self._connection.await_positions(
            goal.joints,
            goal.positions[row],
            np.full(len(goal.joints), tolerance),
            seconds=_SETTLE_SECONDS,
        )
        if reason:
            place = "start" if row == 0 else "end"
            raise FailedGoalError(fault, f"{place} of the motion: {reason}")

    def _move_hand(self, goal: GripperGoal) -> None:
        """Execute the motion of a hand.

        Controllers abort a goal whose fingers stall, which is the purpose of a grasp.

        Raises:
            FailedGoalError: if it fails.
        """
        status, result = self._call(goal, self._settings.gripper_time)
        is_stalled = bool(result.stalled)
        is_stalled_abort = status == _STATUS_ABORTED and is_stalled
        if status != _STATUS_SUCCEEDED and not is_stalled_abort:
            raise self._abort(status)
        positions = self._finger_values(goal, result)
        tolerance = self._settings.grasp_tolerance
        if reason := goal.fault(positions, tolerance, is_stalled=is_stalled):
            raise FailedGoalError(ExecutionStatus.GRASP, reason)

    def _switch_vacuum(self, goal: SuctionGoal) -> None:
        """Switch a vacuum, and wait until it is there or gone.

        Raises:
            FailedGoalError: if it fails.
        """
        gripper, driver = goal.controller, self._connection.suction[goal.arm]
        if reason := driver.server_fault():
            raise FailedGoalError(ExecutionStatus.SERVER, reason)
        if reason := self._stop_fault():
            raise FailedGoalError(ExecutionStatus.STOPPED, f"{reason}, before the switch")
        self._held.pop(goal.arm, None)
        self._begin = time.monotonic()
        reply = driver.switch(is_on=goal.is_on)
        if gripper.is_service:
            server_time = self._settings.server_time
            if self._await(lambda: "" if reply.done() else "no reply", server_time):
                reason = f"service '{gripper.name}' did not reply in {server_time:g} s"
                raise FailedGoalError(ExecutionStatus.SERVER, reason)
            if reason := driver.reply_fault(reply.result()):
                raise FailedGoalError(ExecutionStatus.REJECTED, reason)
        self._await(lambda: "settling", gripper.settling_time)
        reason = self._await(
            lambda: driver.sensor_fault(is_on=goal.is_on, since=self._begin or 0.0),
            self._settings.gripper_time,
        )
        self._seconds = time.monotonic() - self._begin
        if reason:
            purpose = "closed on nothing, not on" if goal.is_on else "did not release"
            raise FailedGoalError(
                ExecutionStatus.GRASP, f"the suction gripper {purpose} '{goal.held}': {reason}"
            )
        if goal.is_on:
            self._held[goal.arm] = str(goal.held)

    def _await(self, fault: Callable[[], str], seconds: float) -> str:
        """Wait until a fault is empty; return the fault after a time [s].

        Raises:
            FailedGoalError: if the goal is stopped.
        """
        reason = await_no_fault(lambda: "" if self._stop_fault() else fault(), seconds)
        if stop := self._stop_fault():
            raise FailedGoalError(ExecutionStatus.STOPPED, stop)
        return reason

    def _finger_values(self, goal: GripperGoal, result: Any) -> Mapping[str, float]:
        """Return the finger joint values of a result, by the names in the scene."""
        scale, offset = goal.controller.scale, goal.controller.offset
        if goal.controller.type == "GripperCommand":
            commands = [result.position]
        else:
            by_name = dict(zip(result.state.name, result.state.position, strict=False))
            names = self._settings.robot_names(goal.values)
            commands = [by_name.get(name, np.nan) for name in names]
            if any(np.isnan(commands)):  # some drivers return the position without a name
                commands = list(result.state.position)
        return {
            joint: (command - offset) / scale
            for joint, command in zip(goal.values, commands, strict=False)
        }

    def _call(self, goal: TrajectoryGoal | GripperGoal, limit: float) -> tuple[int, Any]:
        """Send a goal and return its status and result; cancel it after a fault.

        Args:
            goal: goal of this run.
            limit: time from its acceptance until it is cancelled [s].

        Raises:
            FailedGoalError: if it has no result, or was cancelled.
        """
        if reason := self._connection.server_fault(goal.controller):
            raise FailedGoalError(ExecutionStatus.SERVER, reason)
        if reason := self._stop_fault():
            raise FailedGoalError(ExecutionStatus.STOPPED, f"{reason}, before the motion")
        server_time = self._settings.server_time
        sent = self._connection.send(goal.controller, goal, self._receive)
        if not await_reply(sent, server_time):
            sent.add_done_callback(_cancel_late)
            raise FailedGoalError(
                ExecutionStatus.SERVER,
                f"controller '{self._name}' did not accept or reject the goal in {server_time:g} s",
            )
        handle = sent.result()
        if not handle.accepted:
            raise FailedGoalError(
                ExecutionStatus.REJECTED,
                f"controller '{self._name}' rejected the goal; its log has the reason",
            )
        self._begin = time.monotonic()
        ended = handle.get_result_async()
        while not ended.done():
            time.sleep(_MONITOR_PERIOD)
            self._seconds = self._trajectory_time()
            failure = self._monitor(goal, limit)
            if failure is None:
                continue
            cancelled = handle.cancel_goal_async()
            if await_reply(cancelled, server_time) and await_reply(ended, server_time):
                raise failure
            raise FailedGoalError(
                failure.fault,
                f"{failure.reason}; controller '{self._name}' did not confirm the cancellation",
            )
        response = ended.result()
        return response.status, response.result

    def _monitor(self, goal: TrajectoryGoal | GripperGoal, limit: float) -> FailedGoalError | None:
        """Return the fault of the present state, or None."""
        settings = self._settings
        joints = tuple(goal.values) if isinstance(goal, GripperGoal) else goal.joints
        if reason := self._stop_fault():
            return FailedGoalError(ExecutionStatus.STOPPED, reason)
        if reason := self._connection.state_fault(joints):
            return FailedGoalError(ExecutionStatus.STATE, reason)
        for arm, name in tuple(self._held.items()):  # other goals change it
            driver = self._connection.suction[arm]
            if reason := driver.silence():
                return FailedGoalError(ExecutionStatus.STATE, reason)
            if reason := driver.sensor_fault(is_on=True):
                reason = f"arm '{arm}' lost '{name}': {reason}"
                return FailedGoalError(ExecutionStatus.GRASP, reason)
        if self._begin is not None and time.monotonic() - self._begin > limit:
            reason = f"controller '{self._name}' did not end within {limit:.2f} s"
            return FailedGoalError(ExecutionStatus.TIMEOUT, reason)
        if isinstance(goal, GripperGoal):
            return None
        distances = goal.distance(self._connection.positions(joints))
        feedback = self._feedback
        if feedback is not None and len(feedback.actual.positions) == len(joints):
            names = list(feedback.joint_names)
            errors = np.subtract(feedback.actual.positions, feedback.desired.positions)
            errors = np.abs(self._connection.without_turns(names, errors))
            order = [names.index(name) for name in goal.controller.joints if name in names]
            if len(order) == len(joints):
                distances = np.maximum(distances, errors[order])
        if reason := path_fault(joints, distances, settings.path_tolerance):
            return FailedGoalError(ExecutionStatus.DEVIATION, reason)
        return None

    def _trajectory_time(self) -> float:
        """Return the time in the trajectory, by the feedback if it has one [s]."""
        feedback = self._feedback
        if feedback is not None:
            stamp = feedback.desired.time_from_start
            seconds = stamp.sec + stamp.nanosec * 1e-9
            if seconds > 0.0:
                return float(seconds)
        return 0.0 if self._begin is None else time.monotonic() - self._begin

    def _receive(self, message: Any) -> None:
        """Store the feedback of a trajectory."""
        if isinstance(self._goal, TrajectoryGoal):
            self._feedback = message.feedback


def _cancel_late(future: Any) -> None:
    """Cancel a goal that was accepted after the wait for it had ended."""
    handle = future.result()
    if handle is not None and handle.accepted:
        handle.cancel_goal_async()


def _status_name(status: int) -> str:
    """Return the name of a status of action_msgs/GoalStatus."""
    names = {
        _STATUS_SUCCEEDED: "SUCCEEDED",
        _STATUS_CANCELED: "CANCELED",
        _STATUS_ABORTED: "ABORTED",
    }
    return names.get(status, f"status {status}")
