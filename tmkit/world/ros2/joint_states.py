"""Joint states of a topic, added to a buffer.

A message costs some 0.2 ms in a buffer, and controllers publish up to 1000 a second. Of each
publisher and set of joints, a message is added after each ``period``; the others cost a comparison.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.closing import Closing
from tmkit._support.source_location import did_you_mean
from tmkit.errors import UnknownNameError
from tmkit.world.buffer import Buffer
from tmkit.world.messages import JointState, TimeoutException
from tmkit.world.ros2.node import Delivery, RosNode

_FAULT_PERIOD = 0.005
"""Time between two comparisons of ages [s]."""

_MAX_NAMES = 10
"""Number of names in a message of an error."""


class JointStates(Closing):
    """Subscription that adds the joint states of a topic to a buffer.

    Use it as a context manager, or call :meth:`close`. Joints that the scene of the buffer lacks
    are skipped. A message that the buffer rejects is in :attr:`Buffer.rejections`.

    Args:
        buffer: buffer with the scene of the robot.
        topic: topic of ``sensor_msgs/JointState``.
        names: ROS names of joints by their names in the scene, where they differ.
        period: least time between two added messages of a publisher [s].
        use_sim_time: whether ages are on the clock of ``/clock``, as in a simulation.

    Raises:
        MissingExtraError: if rclpy or sensor_msgs of ROS 2 cannot be imported.
        UnknownNameError: if ``names`` has a joint that the scene lacks.
    """

    def __init__(
        self,
        buffer: Buffer,
        *,
        topic: str = "/joint_states",
        names: Mapping[str, str] | None = None,
        period: float = 0.02,
        use_sim_time: bool = False,
    ) -> None:
        joints = buffer.scene.joint_names
        for joint in names or ():
            if joint not in joints:
                raise UnknownNameError.of("joint", joint, joints)
        self._buffer, self._topic, self._period = buffer, topic, period
        self._ros_names = {joint: (names or {}).get(joint, joint) for joint in joints}
        self._scene_names = {name: joint for joint, name in self._ros_names.items()}
        self._added: dict[tuple[Any, ...], float] = {}
        self._publishers: dict[str, set[Any]] = {}
        self._ros = RosNode("tmkit_joint_states", use_sim_time=use_sim_time)
        self._ros.subscribe(
            "sensor_msgs.msg.JointState", topic, self._receive, delivery=Delivery.SENSOR
        )
        self._ros.start()

    def close(self) -> None:
        """End the subscription."""
        self._ros.close()

    def fault(self, joints: Collection[str] | None = None, *, max_age: float = 0.25) -> str:
        """Return why values of joints cannot be used; empty if they can.

        They cannot if one is missing, older than ``max_age`` by its stamp, or has several
        publishers.

        Args:
            joints: joints by their names in the scene. Defaults to all.
            max_age: largest age [s].

        Raises:
            UnknownNameError: if a joint is unknown.
        """
        latest = self._buffer.latest_configuration()
        names = latest.joint_names if joints is None else joints
        ages = {name: latest.age(self._ros.now(), [name]) for name in names}
        missing = [self._ros_names[name] for name, age in ages.items() if np.isinf(age)]
        if missing:
            return self._missing(missing)
        for name in names:
            if (count := len(self._publishers.get(self._ros_names[name], ()))) > 1:
                ros_name = self._ros_names[name]
                return f"topic '{self._topic}': {count} publishers send joint '{ros_name}'"
        oldest = max(ages, key=lambda name: abs(ages[name]), default=None)
        if oldest is None or abs(ages[oldest]) <= max_age:
            return ""
        age, ros_name = ages[oldest], self._ros_names[oldest]
        if age < 0.0:
            return (
                f"topic '{self._topic}': joint '{ros_name}' has a stamp {-age:.2f} s in the future;"
                " the clocks differ (see use_sim_time)"
            )
        return f"topic '{self._topic}': joint '{ros_name}' is {age:.2f} s old (limit {max_age:g} s)"

    def configuration(
        self, joints: Collection[str] | None = None, *, max_age: float = 0.25, timeout: float = 5.0
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) as soon as the values of joints can be used.

        Args:
            joints: joints by their names in the scene. Defaults to all. Others without a value are
                as in the zero configuration.
            max_age: largest age [s].
            timeout: longest wait [s].

        Raises:
            TimeoutException: if :meth:`fault` has a reason until the timeout.
            UnknownNameError: if a joint is unknown.
        """
        end = time.monotonic() + timeout
        while reason := self.fault(joints, max_age=max_age):
            if time.monotonic() > end:
                raise TimeoutException(reason)
            time.sleep(_FAULT_PERIOD)
        names, q, _ = self._buffer.latest_configuration()
        values = {
            name: float(value) for name, value in zip(names, q, strict=True) if np.isfinite(value)
        }
        return np.array(self._buffer.scene.configuration(values))

    def _missing(self, missing: list[str]) -> str:
        """Return the fault of joints without a value, by their ROS names."""
        received = sorted(self._publishers)
        text = f"topic '{self._topic}' has no state of {_list(missing)}"
        if not received:
            return f"{text}: it has no messages"
        hint = did_you_mean(missing[0], received)
        rejections = [line for line in self._buffer.rejections if line.startswith(self._topic)]
        reason = f"; {rejections[-1]}" if rejections else ""
        return f"{text}; it has {_list(received)}{hint}{reason}"

    def _receive(self, message: Any, information: Mapping[str, Any]) -> None:
        """Add a message of the topic, unless one of its publisher was added within the period."""
        now = time.monotonic()
        publisher = repr(information.get("publisher_gid"))
        key = (publisher, *message.name)
        if now - self._added.get(key, -np.inf) < self._period:
            return
        self._added[key] = now
        for name in message.name:
            self._publishers.setdefault(name, set()).add(publisher)
        joints = [self._scene_names.get(name) for name in message.name]
        chosen = [index for index, joint in enumerate(joints) if joint is not None]
        if not chosen:
            return
        state = message  # rejected by the buffer if the lengths differ
        if len(message.position) == len(joints):
            state = JointState(
                message.header,
                [str(joints[index]) for index in chosen],
                [message.position[index] for index in chosen],
            )
        self._buffer.set_joint_states(state, self._topic)


def _list(names: Collection[str]) -> str:
    """Return quoted names, at most ten."""
    shown = ", ".join(f"'{name}'" for name in [*names][:_MAX_NAMES])
    return shown + f" and {len(names) - _MAX_NAMES} more" * (len(names) > _MAX_NAMES)
