"""Publishers of a robot, for tests that run in the environment of ROS 2."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from tmkit.spatial import Pose

PATIENCE = 120.0
"""Time after which an event counts as missing, however busy the machine is [s]."""


class Robot:
    """Node that publishes what a robot and its cameras publish, in a context of its own."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("robot", context=self.context)
        self._publishers: dict[tuple[type, str, str], Any] = {}

    def close(self) -> None:
        """End the node."""
        self.node.destroy_node()
        self.context.try_shutdown()

    def now(self, shift: float = 0.0) -> Time:
        """Return the present time, shifted by seconds."""
        nanoseconds = self.node.get_clock().now().nanoseconds + round(shift * 1e9)
        return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)

    def publish(self, message: Any, topic: str, *, who: str = "", is_latched: bool = False) -> None:
        """Publish a message on a topic, as one of several publishers, after it has a reader."""
        key = type(message), topic, who
        if key not in self._publishers:
            durability = getattr(DurabilityPolicy, "TRANSIENT_LOCAL" if is_latched else "VOLATILE")
            profile = QoSProfile(depth=100, durability=durability)
            publisher = self.node.create_publisher(type(message), topic, profile)
            self._publishers[key] = publisher
            await_true(lambda: publisher.get_subscription_count() > 0)
        self._publishers[key].publish(message)

    def publish_joints(
        self, values: dict[str, float], *, who: str = "", shift: float = 0.0
    ) -> None:
        """Publish joint values with a stamp."""
        message = JointState(name=[*values], position=[*values.values()])
        message.header.stamp = self.now(shift)
        self.publish(message, "/joint_states", who=who)

    def publish_tf(
        self, parent: str, child: str, pose: Pose, *, shift: float = 0.0, is_static: bool = False
    ) -> None:
        """Publish the pose of a frame in its parent."""
        message = TransformStamped(child_frame_id=child)
        message.header.frame_id, message.header.stamp = parent, self.now(shift)
        x, y, z, *rotation = pose.as_array().tolist()
        translation, quaternion = message.transform.translation, message.transform.rotation
        translation.x, translation.y, translation.z = x, y, z
        quaternion.x, quaternion.y, quaternion.z, quaternion.w = rotation
        topic = "/tf_static" if is_static else "/tf"
        self.publish(TFMessage(transforms=[message]), topic, is_latched=is_static)


def await_true(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.005)
