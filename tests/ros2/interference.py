"""Other programs of a robot: one that publishes stops, and another client of the controllers."""

from __future__ import annotations

from typing import Any

from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

KINDS = ("stop", "cancel", "replace")
"""Kinds of faults."""

DISTANCE = 0.3
"""Motion of the first joint by the other client [rad]."""


class Interference:
    """Programs that interfere with a trajectory controller.

    Args:
        node: node of the clients.
        name: name of the controller.
        is_stopped: whether the topic for stops is true from the start, for subscribers that come
            later too.
    """

    def __init__(self, node: Any, name: str, is_stopped: bool) -> None:
        prefix = f"/{name}/follow_joint_trajectory"
        stored = DurabilityPolicy.TRANSIENT_LOCAL
        profile = QoSProfile(depth=1, durability=stored) if is_stopped else 1
        self.stops = node.create_publisher(Bool, "/stop", profile)
        self.client = ActionClient(node, FollowJointTrajectory, prefix)
        self.canceller = node.create_client(CancelGoal, f"{prefix}/_action/cancel_goal")
        if is_stopped:
            self.stops.publish(Bool(data=True))

    @property
    def is_ready(self) -> bool:
        """Whether a stop reaches a subscriber."""
        return self.stops.get_subscription_count() > 0

    def begin(self, kind: str, joints: list[str], positions: list[float]) -> None:
        """Interfere with an arm of some joints at their positions."""
        if kind == "stop":
            self.stops.publish(Bool(data=True))
        elif kind == "cancel":  # a request without an id is for all goals
            self.canceller.call_async(CancelGoal.Request())
        else:
            point = JointTrajectoryPoint(
                positions=[positions[0] + DISTANCE, *positions[1:]],
                velocities=[0.0] * len(joints),
                time_from_start=Duration(sec=2),
            )
            goal = FollowJointTrajectory.Goal(
                trajectory=JointTrajectory(joint_names=joints, points=[point])
            )
            self.client.send_goal_async(goal)


def end_as_replaced(handle: Any) -> None:
    """Set the status of a goal that another one replaces, as joint_trajectory_controller does."""
    handle._update_state(rclpy_implementation.GoalEvent.CANCEL_GOAL)
    handle.canceled()
