"""Node that sends goals to controllers and receives joint states.

rclpy and control_msgs are those of the ROS 2 installation of the user, and are imported when a
connection is made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.world.execution.checks import REST_PERIOD, position_fault
from tmkit.world.execution.controllers import Controller
from tmkit.world.execution.goals import GripperGoal, TrajectoryGoal
from tmkit.world.ros2.controllers import ControllerSettings
from tmkit.world.ros2.node import Delivery, RosNode, import_ros
from tmkit.world.ros2.suction import SuctionDriver

_POLL_PERIOD = 0.005
"""Time between two polls of a reply or of joint states [s]."""

_REST_DISTANCE = 1e-3
"""Motion of a joint in this time that counts as rest [rad or m]."""


class RosConnection:
    """Action clients of controllers and the latest joint states.

    Args:
        settings: controllers and topics.

    Attributes:
        suction: drivers of suction grippers, by the name of the arm.

    Raises:
        ConfigurationError: if the type of a suction gripper is unknown, or has other fields.
        MissingExtraError: if rclpy or control_msgs cannot be imported.
    """

    def __init__(self, settings: ControllerSettings) -> None:
        action = import_ros("control_msgs.action")
        action_client = import_ros("rclpy.action").ActionClient
        self._settings = settings
        self._ros = RosNode("tmkit_execute")
        self._node = self._ros.node
        self._clients = {
            entry.name: action_client(self._node, getattr(action, entry.type), entry.action)
            for entry in settings.controllers
        }
        try:
            self.suction = {
                gripper.arm: SuctionDriver(self._node, gripper) for gripper in settings.suction
            }
        except ConfigurationError:
            self._ros.close()
            raise
        self._states: dict[str, tuple[float, float]] = {}
        self._references: dict[str, float] = {}
        self._turns: dict[str, float] = {}
        self._ros.subscribe(
            "sensor_msgs.msg.JointState",
            settings.joint_states,
            self._receive,
            delivery=Delivery.SENSOR,
        )
        self._is_stopped: bool | None = None
        # The second one receives the last message of a publisher that stores it.
        self._stored = import_ros("rclpy.qos").DurabilityPolicy.TRANSIENT_LOCAL
        for delivery in (Delivery.SENSOR, Delivery.LATCHED) if settings.stop else ():
            self._ros.subscribe(
                "std_msgs.msg.Bool", settings.stop, self._receive_stop, delivery=delivery
            )
        self._ros.start()

    def close(self) -> None:
        """End the thread and the node."""
        self._ros.stop()
        for client in self._clients.values():
            client.destroy()
        self._ros.close()

    def send(
        self,
        controller: Controller,
        goal: TrajectoryGoal | GripperGoal,
        on_feedback: Callable[[Any], None],
    ) -> Any:
        """Send a goal, and return the future of its handle."""
        message = (
            _trajectory_message(goal, self._settings, self._turns)
            if isinstance(goal, TrajectoryGoal)
            else _gripper_message(goal, self._settings)
        )
        client = self._clients[controller.name]
        return client.send_goal_async(message, feedback_callback=on_feedback)

    def server_fault(self, controller: Controller) -> str:
        """Return why the action server of a controller cannot be used; empty if it can.

        Waits for the server at most ``server_time``.
        """
        action = controller.action
        if not self._clients[controller.name].wait_for_server(self._settings.server_time):
            return f"no action server '{action}' within {self._settings.server_time:g} s"
        # Each action server publishes the status of its goals.
        count = len(self._node.get_publishers_info_by_topic(f"{action}/_action/status"))
        return f"{count} action servers have the name '{action}'" if count > 1 else ""

    def suction_fault(self, arm: str) -> str:
        """Return why the vacuum of an arm cannot be switched; empty if it can.

        Waits for the service or subscriber, and for a message of the sensor, at most
        ``server_time``.
        """
        driver = self.suction[arm]
        return await_no_fault(
            lambda: driver.server_fault() or driver.silence(), self._settings.server_time
        )

    def stop_fault(self) -> str:
        """Return that the topic for stops is true; empty if it is false, or was never sent."""
        return f"topic '{self._settings.stop}' is true" if self._is_stopped else ""

    def await_stop_fault(self) -> str:
        """Return :meth:`stop_fault` after the message that a publisher stores, if one does.

        Waits for the message at most ``server_time``.
        """

        def is_pending() -> bool:
            if not self._settings.stop or self._is_stopped is not None:
                return False
            publishers = self._node.get_publishers_info_by_topic(self._settings.stop)
            return any(entry.qos_profile.durability == self._stored for entry in publishers)

        await_no_fault(lambda: "pending" * is_pending(), self._settings.server_time)
        return self.stop_fault()

    def positions(self, joints: Iterable[str]) -> NDArray[np.float64]:
        """Return the latest values of joints by their names in the scene, NaN if unknown."""
        names = self._settings.robot_names(joints)
        return np.array([self._states.get(name, (np.nan, 0.0))[0] for name in names])

    def state_fault(self, joints: Iterable[str]) -> str:
        """Return why the joint states of joints cannot be used; empty if they can."""
        names = self._settings.robot_names(joints)
        topic, now = self._settings.joint_states, time.monotonic()
        missing = [f"'{name}'" for name in names if name not in self._states]
        if missing:
            return f"topic '{topic}' has no state of {', '.join(missing)}"
        age = max(now - self._states[name][1] for name in names)
        if age > self._settings.state_age:
            limit = self._settings.state_age
            return f"topic '{topic}' is {age:.2f} s old, more than {limit:g} s"
        return ""

    def await_states(self, joints: tuple[str, ...]) -> str:
        """Wait for fresh states of joints; return the fault after ``server_time``, or empty."""
        return await_no_fault(lambda: self.state_fault(joints), self._settings.server_time)

    def count_turns(self, joints: Iterable[str], values: Iterable[float]) -> None:
        """Count the whole turns of continuous joints from planned values.

        From then on, their positions are continuous, also if the robot publishes them modulo a
        turn, and goals are shifted to the values that the robot publishes.

        Args:
            joints: continuous joints, by their names in the scene.
            values: planned values, to which the present positions are nearest [rad].
        """
        turns, self._turns = self._turns, {}
        self._references = dict(zip(self._settings.robot_names(joints), values, strict=True))
        for name in self._references:
            if name in self._states:
                position, stamp = self._states[name]
                self._store(name, position + turns.get(name, 0.0), stamp)

    def without_turns(self, names: Iterable[str], differences: NDArray[Any]) -> NDArray[Any]:
        """Return differences of joints, those of continuous joints without whole turns.

        Args:
            names: n joints, by their ROS names.
            differences: (n,) differences [rad or m].
        """
        is_turning = np.array([name in self._references for name in names])
        turn = 2.0 * np.pi
        return np.asarray(differences - turn * np.round(differences / turn) * is_turning)

    def await_positions(
        self,
        joints: tuple[str, ...],
        target: NDArray[np.float64],
        tolerances: NDArray[np.float64],
        *,
        seconds: float,
    ) -> str:
        """Wait until joints are at a target; return the fault after a time, or empty.

        Args:
            joints: n joints, by their names in the scene.
            target: (n,) values [rad or m].
            tolerances: (n,) largest differences [rad or m].
            seconds: longest wait [s].
        """

        def fault() -> str:
            if reason := self.state_fault(joints):
                return reason
            return position_fault(joints, self.positions(joints), target, tolerances)

        return await_no_fault(fault, seconds)

    def await_rest(self, joints: tuple[str, ...]) -> bool:
        """Return whether joints come to rest within ``server_time``, by fresh joint states."""
        end = time.monotonic() + self._settings.server_time
        while time.monotonic() < end:
            before = self.positions(joints)
            time.sleep(REST_PERIOD)
            if self.state_fault(joints):
                continue
            if np.max(np.abs(self.positions(joints) - before)) < _REST_DISTANCE:
                return True
        return False

    def _receive_stop(self, message: Any) -> None:
        """Store whether the topic for stops is true."""
        self._is_stopped = bool(message.data)

    def _receive(self, message: Any) -> None:
        """Store the joint values of a message."""
        now = time.monotonic()
        for name, position in zip(message.name, message.position, strict=False):
            self._store(name, position, now)

    def _store(self, name: str, position: float, stamp: float) -> None:
        """Store a published value; for a continuous joint, its turns since the last one."""
        reference = self._references.get(name)
        if reference is not None:
            value = reference + math.remainder(position - reference, 2.0 * math.pi)
            self._turns[name] = position - value
            self._references[name] = position = value
        self._states[name] = (position, stamp)


class Reply(Protocol):
    """Future of a reply."""

    def done(self) -> bool:
        """Return whether the reply has arrived."""
        ...


def await_reply(reply: Reply, seconds: float) -> bool:
    """Return whether a reply arrives within a time [s]."""
    return not await_no_fault(lambda: "" if reply.done() else "pending", seconds)


def await_no_fault(fault: Callable[[], str], seconds: float) -> str:
    """Wait until a fault is empty; return the fault after a time [s]."""
    end = time.monotonic() + seconds
    while reason := fault():
        if time.monotonic() > end:
            return reason
        time.sleep(_POLL_PERIOD)
    return ""


def _trajectory_message(
    goal: TrajectoryGoal, settings: ControllerSettings, turns: Mapping[str, float]
) -> Any:
    """Return the goal message of a trajectory, whose stamp of zero is a start at once.

    Args:
        goal: the goal.
        settings: tolerances.
        turns: whole turns to add, by joint [rad].
    """
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    names = goal.controller.joints
    shift = np.array([turns.get(name, 0.0) for name in names])
    # Without its first row: a point at time 0 is a jump for controllers.
    points = [
        JointTrajectoryPoint(
            positions=(position + shift).tolist(),
            velocities=velocity.tolist(),
            accelerations=acceleration.tolist(),
            time_from_start=_duration(time_from_start),
        )
        for time_from_start, position, velocity, acceleration in zip(
            goal.times[1:].tolist(),
            goal.positions[1:],
            goal.velocities[1:],
            goal.accelerations[1:],
            strict=True,
        )
    ]
    path, end = settings.path_tolerance, settings.goal_tolerance
    return FollowJointTrajectory.Goal(
        trajectory=JointTrajectory(joint_names=list(names), points=points),
        path_tolerance=[JointTolerance(name=name, position=path) for name in names],
        goal_tolerance=[JointTolerance(name=name, position=end) for name in names],
        goal_time_tolerance=_duration(settings.goal_margin),
    )


def _gripper_message(goal: GripperGoal, settings: ControllerSettings) -> Any:
    """Return the goal message of a hand."""
    from control_msgs import action, msg
    from sensor_msgs.msg import JointState

    commands = [goal.command(joint) for joint in goal.values]
    if goal.controller.type == "GripperCommand":
        command = msg.GripperCommand(position=commands[0], max_effort=goal.force)
    else:
        names = list(settings.robot_names(goal.values))
        command = JointState(name=names, position=commands, effort=[goal.force] * len(names))
    return getattr(action, goal.controller.type).Goal(command=command)


def _duration(seconds: float) -> Any:
    """Return a duration message."""
    from builtin_interfaces.msg import Duration

    nanoseconds = round(seconds * 1e9)
    return Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
