"""Bags of commands for controllers, and the checks of ``joint_trajectory_controller``.

The checks are those of ``validate_trajectory_msg`` in ros2_controllers (jazzy), with the default
parameters: no partial goals, no velocity at the end, no integration of velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

GRIPPER_TYPE = "control_msgs/msg/GripperCommand"
EPSILON = float(np.finfo(np.float32).eps)
"""Largest velocity of the last point [rad/s or m/s]."""


def messages_of(bag: Path) -> list[tuple[str, int, Any]]:
    """Return topic, time [ns] and message of a bag, with the definitions of ROS."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg("float64 position\nfloat64 max_effort\n", GRIPPER_TYPE))
    with AnyReader([bag], default_typestore=store) as reader:
        return [
            (c.topic, time, reader.deserialize(raw, c.msgtype))
            for c, time, raw in reader.messages()
        ]


def nanoseconds_of(time: Any) -> int:
    """Return a time or duration of ROS [ns]."""
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)


def rejection(message: Any, joints: Sequence[str], *, now: float) -> str | None:
    """Return the reason for which a controller rejects a trajectory, or None.

    Args:
        message: a ``JointTrajectory``.
        joints: joints of the controller.
        now: time of receipt since 1970 [s].
    """
    names, points = [*message.joint_names], message.points
    if sorted(names) != sorted(joints):
        return f"joints {names} are not those of the controller"
    if len(points) == 0:
        return "empty trajectory"
    times = [nanoseconds_of(point.time_from_start) for point in points]
    stamp = nanoseconds_of(message.header.stamp)
    if stamp != 0 and stamp + times[-1] < now * 1e9:
        return "non-zero start time and an end in the past"
    if len(points[-1].velocities) and np.max(np.abs(points[-1].velocities)) > EPSILON:
        return "velocity of the last point is not zero"
    for index, point in enumerate(points):
        if index > 0 and times[index] <= times[index - 1]:
            return f"time between points {index - 1} and {index} is not strictly increasing"
        if len(point.positions) != len(names):
            return f"point {index} has {len(point.positions)} positions"
        for field in ("velocities", "accelerations"):
            if len(getattr(point, field)) not in (0, len(names)):
                return f"point {index} has {len(getattr(point, field))} {field}"
        if len(point.effort):
            return f"point {index} has effort"
    return None
