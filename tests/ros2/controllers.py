"""Stand-in for controllers of ros2_control, for tests: arms, hands and joint states.

It follows the rules of joint_trajectory_controller, by the documentation and behaviour of ROS 2
Jazzy: a goal has exactly the joints of the controller, strictly increasing times from its start,
complete points and no speed at its end; a stamp of zero starts at once. A new goal replaces the
old one. Between points the reference is a quintic spline. A joint off the path by more than the
tolerance of the goal aborts it, as does a joint off the end after the time of the goal. After a
cancellation, abort or preemption, the arm holds its position. The hands follow
gripper_controllers: fingers stall on an object, and the goal is aborted unless stalling is allowed.
Suction cups are switched by a service or a topic, and a sensor reports the vacuum.

Time passes in ticks: a slow machine slows the arm, and no result depends on its speed. Faults begin
at a time of a goal of an arm, or at a goal of a hand. Each event is a line on the standard output::

    python controllers.py SETTINGS.json

    {"factor": 4.0, "ticks": 100000, "lag": 0.01, "tolerances": true,
     "arms": [{"name": "arm", "joints": {"j1": 0.0}}],
     "hands": [{"name": "hand", "type": "GripperCommand", "joint": "f1", "position": 0.04,
                "closed": 0.0, "speed": 0.1, "objects": [0.025], "allow_stalling": false}],
     "cups": [{"name": "/vacuum", "type": "std_srvs/srv/SetBool", "sensor": "/vacuum_present",
               "objects": [true]}],
     "faults": [{"kind": "stall", "goal": 1, "time": 0.5}]}
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import rclpy
from control_msgs import action
from interference import KINDS, Interference, end_as_replaced
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory

PERIOD = 0.01
"""Time between two ticks of the clock of the machine [s]."""

BUMP = 0.3
"""Displacement of the first joint by a bump [rad]."""

CLOSED_DISTANCE = 1e-8
"""Distance of a target from the closed position at which the hand closes [rad or m]."""


class Reference:
    """Quintic spline through the points of a trajectory, from the position at its start."""

    def __init__(self, start: np.ndarray, points: list[Any], order: list[int]) -> None:
        still = np.zeros(len(start))
        rows = [(0.0, start, still, still)]
        for point in points:
            time = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
            values = (point.positions, point.velocities, point.accelerations)
            full = (np.array(value)[order] if len(value) else still for value in values)
            rows.append((time, *full))
        self.times = np.array([row[0] for row in rows])
        self.states = np.array([row[1:] for row in rows])  # (k, 3, n)

    def at(self, time: float) -> np.ndarray:
        """Return the joint values at a time."""
        if time >= self.times[-1]:
            return self.states[-1, 0]
        index = int(np.searchsorted(self.times, time, side="right")) - 1
        span = self.times[index + 1] - self.times[index]
        fraction = (time - self.times[index]) / span
        ends = []
        for position, velocity, acceleration in self.states[index : index + 2]:
            ends += [position, velocity * span, acceleration * span**2]
        conditions = [
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 2, 0, 0, 0],
            [1, 1, 1, 1, 1, 1],
            [0, 1, 2, 3, 4, 5],
            [0, 0, 2, 6, 12, 20],
        ]
        coefficients = np.linalg.solve(np.array(conditions, dtype=float), np.array(ends))
        return fraction ** np.arange(6) @ coefficients


class Goal:
    """An accepted goal of any controller, whose result ends its coroutine."""

    def __init__(self, handle: Any, result: Any) -> None:
        self.handle, self.result, self.future = handle, result, Future()
        self.time = 0.0

    def end(self, outcome: str) -> None:
        """Set the status of the goal: succeed, abort or canceled."""
        getattr(self.handle, outcome)()
        self.future.set_result(self.result)


class Arm:
    """A trajectory controller and the joints that follow it with a lag."""

    def __init__(self, node: StandIn, settings: dict[str, Any]) -> None:
        self.node, self.name = node, settings["name"]
        self.joints = list(settings["joints"])
        self.positions = np.array([*settings["joints"].values()], dtype=float)
        self.reference_positions = self.positions.copy()
        self.reference: Reference | None = None
        self.goal: Goal | None = None
        self.number = 0
        self.is_stalled = False
        ActionServer(
            node,
            action.FollowJointTrajectory,
            f"/{self.name}/follow_joint_trajectory",
            execute_callback=self._execute,
            goal_callback=self._accept,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )
        topic = f"/{self.name}/joint_trajectory"
        node.create_subscription(JointTrajectory, topic, self._receive, 10)

    def _receive(self, trajectory: Any) -> None:
        """Check a trajectory of the topic of the controller."""
        reason = self._trajectory_fault(trajectory)
        self.node.say(f"trajectory {self.name}" + f" rejected: {reason}" * bool(reason))

    def _accept(self, request: Any) -> GoalResponse:
        self.node.goals += 1
        self.number = self.node.goals
        reason = self._rejection(request)
        if self.node.begins("reject", self.node.goals, 0.0):
            reason = "the controller is not active"
        self.node.say(f"goal {self.node.goals} {self.name}" + f" rejected: {reason}" * bool(reason))
        return GoalResponse.REJECT if reason else GoalResponse.ACCEPT

    def _rejection(self, request: Any) -> str:
        """Return why a goal is rejected, or an empty text."""
        known = {tolerance.name for tolerance in (*request.path_tolerance, *request.goal_tolerance)}
        if known - set(self.joints):
            return f"tolerances of other joints: {known}"
        return self._trajectory_fault(request.trajectory)

    def _trajectory_fault(self, trajectory: Any) -> str:
        """Return why a trajectory is rejected, or an empty text."""
        times = [
            p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in trajectory.points
        ]
        names = sorted(trajectory.joint_names)
        if names != sorted(self.joints):
            return f"joints {names} are not {sorted(self.joints)}"
        if not times:
            return "no points"
        if times[0] < 0.0 or any(second <= first for first, second in pairwise(times)):
            return "times do not increase strictly"
        stamp = trajectory.header.stamp.sec + 1e-9 * trajectory.header.stamp.nanosec
        now = 1e-9 * self.node.get_clock().now().nanoseconds
        if stamp != 0.0 and stamp + times[-1] < now:
            return "the trajectory ends in the past"
        for point in trajectory.points:
            count = len(self.joints)
            if len(point.positions) != count or len(point.effort):
                return "a point has other values than positions, velocities and accelerations"
            if {len(point.velocities), len(point.accelerations)} - {0, count}:
                return "a point has velocities or accelerations of some joints only"
        if any(abs(value) > 1e-6 for value in trajectory.points[-1].velocities):
            return "the velocity at the end is not zero"
        return ""

    async def _execute(self, handle: Any) -> Any:
        if self.goal is not None:
            goal = self.goal
            goal.result.error_code = action.FollowJointTrajectory.Result.INVALID_GOAL
            goal.result.error_string = "Current goal cancelled due to new incoming action."
            self.node.say(f"replaced {self.name}")
            end_as_replaced(goal.handle)
            goal.future.set_result(goal.result)
        self.goal = Goal(handle, action.FollowJointTrajectory.Result())
        points = list(handle.request.trajectory.points)
        names = list(handle.request.trajectory.joint_names)
        order = [names.index(joint) for joint in self.joints]
        self.reference = Reference(self.reference_positions, points, order)
        return await self.goal.future

    def _hold(self) -> None:
        self.reference, self.goal = None, None
        self.reference_positions = self.positions.copy()

    def _abort(self, code: str, reason: str) -> None:
        goal = self.goal
        goal.result.error_code = getattr(action.FollowJointTrajectory.Result, code)
        goal.result.error_string = reason
        self.node.say(f"aborted {self.name}: {code}")
        self._hold()
        goal.end("abort")

    def advance(self, seconds: float) -> None:
        """Advance reference and joints by a time."""
        if self.goal is not None and self.goal.handle.is_cancel_requested:
            goal = self.goal
            self._hold()
            self.node.say(f"cancelled {self.name}")
            goal.end("canceled")
        if self.goal is not None:
            goal = self.goal
            goal.time += seconds
            self.reference_positions = self.reference.at(goal.time)
            number = self.number
            self.is_stalled |= self.node.begins("stall", number, goal.time)
            if self.node.begins("bump", number, goal.time):
                self.positions[0] += BUMP
            if self.node.begins("silence", number, goal.time):
                self.node.is_silent = True
            self.node.is_lost |= self.node.begins("lose", number, goal.time)
            self.node.is_mute |= self.node.begins("mute sensor", number, goal.time)
            for kind in KINDS if self.node.interference else ():
                is_possible = kind != "stop" or self.node.interference.is_ready
                if is_possible and self.node.begins(kind, number, goal.time):
                    positions = self.positions.tolist()
                    self.node.interference.begin(kind, self.joints, positions)
            if self.node.begins("mark", number, goal.time):
                self.node.say("mark")
        if not self.is_stalled:
            share = 1.0 - np.exp(-seconds / self.node.lag)
            self.positions += share * (self.reference_positions - self.positions)
        if self.goal is not None:
            self._check()

    def _check(self) -> None:
        """Publish the feedback of the goal, and end it if it is complete or out of tolerance."""
        goal, request = self.goal, self.goal.handle.request
        errors = self.reference_positions - self.positions
        is_over = goal.time >= self.reference.times[-1]
        tolerances = request.goal_tolerance if is_over else request.path_tolerance
        limits = {tolerance.name: tolerance.position for tolerance in tolerances}
        off = [
            f"{joint} is off by {error:.4f}"
            for joint, error in zip(self.joints, errors, strict=True)
            if limits.get(joint, 0.0) > 0.0 and abs(error) > limits[joint]
        ]
        if off and not is_over and self.node.has_tolerances:
            self._abort("PATH_TOLERANCE_VIOLATED", ", ".join(off))
            return
        if is_over and not off:
            self.reference, self.goal = None, None
            goal.result.error_code = action.FollowJointTrajectory.Result.SUCCESSFUL
            self.node.say(f"succeeded {self.name}")
            goal.end("succeed")
            return
        extra = request.goal_time_tolerance.sec + 1e-9 * request.goal_time_tolerance.nanosec
        if is_over and extra > 0.0 and goal.time > self.reference.times[-1] + extra:
            self._abort("GOAL_TOLERANCE_VIOLATED", ", ".join(off))
            return
        feedback = action.FollowJointTrajectory.Feedback()
        feedback.joint_names = self.joints
        feedback.desired.positions = self.reference_positions.tolist()
        feedback.desired.time_from_start.sec = int(goal.time)
        feedback.desired.time_from_start.nanosec = int(1e9 * (goal.time % 1.0))
        feedback.actual.positions = self.positions.tolist()
        feedback.error.positions = errors.tolist()
        goal.handle.publish_feedback(feedback)


class Hand:
    """A gripper controller, whose fingers stall on the next object of a list."""

    def __init__(self, node: StandIn, settings: dict[str, Any]) -> None:
        self.node, self.name, self.joint = node, settings["name"], settings["joint"]
        self.type = getattr(action, settings["type"])
        self.is_parallel = settings["type"] == "ParallelGripperCommand"
        self.position, self.speed = settings["position"], settings.get("speed", 0.2)
        self.objects = list(settings.get("objects", ()))
        self.closed = settings["closed"]
        self.can_stall = settings.get("allow_stalling", False)
        self.scale, self.offset = settings.get("scale", 1.0), settings.get("offset", 0.0)
        self.target = self.stop = self.position
        self.is_slow = False
        self.goal: Goal | None = None
        ActionServer(
            node,
            self.type,
            f"/{self.name}/gripper_cmd",
            execute_callback=self._execute,
            goal_callback=lambda _: GoalResponse.ACCEPT,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    async def _execute(self, handle: Any) -> Any:
        command = handle.request.command
        value = float(command.position[0] if self.is_parallel else command.position)
        effort = [*command.effort] if self.is_parallel else [command.max_effort]
        self.target = round((value - self.offset) / self.scale, 9)
        self.stop = self.target
        if abs(self.target - self.closed) < CLOSED_DISTANCE and self.objects:
            width = self.objects.pop(0)
            self.stop = self.target if width is None else width
        self.goal, self.is_slow = Goal(handle, self.type.Result()), False
        self.node.hand_goals += 1
        self.node.say(f"hand {self.node.hand_goals} {self.name} to {value:.4f}")
        self.node.say(f"effort {effort}")
        if self.node.begins("jam", self.node.hand_goals, 0.0):
            self.stop = (self.position + self.target) / 2
        return await self.goal.future

    def advance(self, seconds: float) -> None:
        """Advance the fingers by a time."""
        goal = self.goal
        if goal is None:
            return
        if self.node.begins("slow", self.node.hand_goals, 0.0):
            self.is_slow = True
        if goal.handle.is_cancel_requested:
            self.goal = None
            self.node.say(f"cancelled {self.name}")
            goal.end("canceled")
            return
        step = (1e-9 if self.is_slow else self.speed) * seconds
        self.position += float(np.clip(self.stop - self.position, -step, step))
        if self.position != self.stop:
            return
        is_stalled = self.stop != self.target
        value = self.scale * self.position + self.offset
        goal.result.stalled, goal.result.reached_goal = is_stalled, not is_stalled
        if self.is_parallel:
            goal.result.state.name, goal.result.state.position = [self.joint], [value]
        else:
            goal.result.position = value
        self.goal = None
        goal.end("abort" if is_stalled and not self.can_stall else "succeed")


class Cup:
    """A suction cup, which has a vacuum while it is on and an object closes it."""

    def __init__(self, node: StandIn, settings: dict[str, Any]) -> None:
        self.node, self.name = node, settings["name"]
        self.objects = list(settings.get("objects", ()))
        self.is_on = self.is_closed = settings.get("holds", False)
        package, kind, name = settings["type"].split("/")
        message = getattr(importlib.import_module(f"{package}.{kind}"), name)
        if kind == "srv":
            group = ReentrantCallbackGroup()  # a reply that never comes holds up nothing else
            node.create_service(message, self.name, self._reply, callback_group=group)
        else:
            node.create_subscription(message, self.name, self._switch, 10)
        self.publisher = node.create_publisher(Bool, settings.get("sensor", "/vacuum"), 10)

    async def _reply(self, request: Any, response: Any) -> Any:
        self._switch(request)
        number = self.node.switches
        if self.node.begins("mute", number, 0.0):
            await Future()
        response.success = not self.node.begins("refuse", number, 0.0)
        if hasattr(response, "message"):
            response.message = "" if response.success else "the pump is off"
        return response

    def _switch(self, message: Any) -> None:
        self.node.switches += 1
        fields = [getattr(message, name) for name in message.get_fields_and_field_types()]
        self.node.say(f"switch {self.node.switches} {self.name} {fields}")
        self.is_on = bool(fields[-1])
        self.is_closed = self.is_on and bool(self.objects) and self.objects.pop(0)

    def advance(self, _: float) -> None:
        """Publish the vacuum."""
        if self.node.is_lost:
            self.is_closed = False
        if not self.node.is_mute:
            self.publisher.publish(Bool(data=self.is_on and self.is_closed))


class StandIn(Node):
    """Controllers, joint states and the faults that are still to come."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__("controllers")
        self.factor, self.lag = settings.get("factor", 1.0), settings.get("lag", 0.01)
        self.has_tolerances = settings.get("tolerances", True)
        self.faults = list(settings.get("faults", ()))
        self.remaining = settings.get("ticks", 60_000)
        self.goals = self.hand_goals = self.switches = 0
        self.is_lost = self.is_mute = False
        self.is_silent = settings.get("silent", False)
        self.publisher = self.create_publisher(JointState, "/joint_states", 10)
        self.arms = [Arm(self, entry) for entry in settings.get("arms", ())]
        self.hands = [Hand(self, entry) for entry in settings.get("hands", ())]
        self.cups = [Cup(self, entry) for entry in settings.get("cups", ())]
        self.interference = None
        if "interference" in settings:
            self.interference = Interference(self, **settings["interference"])
        self.create_timer(PERIOD, self._tick)

    def begins(self, kind: str, goal: int, time: float) -> bool:
        """Return whether a fault begins now; each begins once."""
        for fault in self.faults:
            if fault["kind"] == kind and fault["goal"] == goal and time >= fault.get("time", 0.0):
                self.faults.remove(fault)
                self.say(f"fault {kind}")
                return True
        return False

    def say(self, text: str) -> None:
        """Print an event."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _tick(self) -> None:
        """Advance all by the period of a tick, and publish the joint states."""
        self.remaining -= 1
        for part in (*self.arms, *self.hands, *self.cups):
            part.advance(PERIOD * self.factor)
        if self.is_silent:
            return
        message = JointState()
        message.header.stamp = self.get_clock().now().to_msg()
        message.name = [name for arm in self.arms for name in arm.joints]
        message.name += [hand.joint for hand in self.hands]
        values = [value for arm in self.arms for value in arm.positions.tolist()]
        message.position = values + [hand.position for hand in self.hands]
        self.publisher.publish(message)


def main() -> None:
    """Run the controllers until a signal, or the number of ticks of the settings."""
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    node = StandIn(settings)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    node.say("ready")
    try:
        while node.remaining > 0:
            executor.spin_once(timeout_sec=1.0)
    except KeyboardInterrupt:
        pass
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
