"""Node with its own context and thread, from the ROS 2 installation of the user.

A program may use rclpy for other purposes, so each node has a context, an executor and a thread of
its own. Signal handlers of rclpy are not installed: they end the node before a goal is cancelled.
Clients and subscriptions are made before the thread starts, since their construction is not
thread-safe.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

from tmkit.errors import MissingExtraError

_SPIN_SECONDS = 0.5
"""Longest wait for a callback until the end is checked [s]."""

_JOIN_SECONDS = 5.0
"""Longest wait for the end of the thread [s]."""

_QUEUE_LENGTH = 100
"""Number of messages that wait for the thread; as for tf2."""


class Delivery(Enum):
    """Quality of service of a subscription."""

    SENSOR = "sensor"
    """Messages may be lost; matches all publishers."""
    RELIABLE = "reliable"
    """Messages are repeated until they arrive."""
    LATCHED = "latched"
    """The last messages from before the subscription arrive too."""


def import_ros(module: str) -> Any:
    """Import a module of ROS 2.

    Args:
        module: name of the module, such as ``sensor_msgs.msg``.

    Raises:
        MissingExtraError: if it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        debian_package = f"ros-DISTRO-{package.replace('_', '-')}"
        raise MissingExtraError(
            f"{module} of ROS 2 cannot be imported ({error}): source /opt/ros/DISTRO/setup.bash,"
            f" and install the package {debian_package}",
            extra=None,
            module=error.name or package,
        ) from error


class RosNode:
    """Node whose callbacks run in a thread after :meth:`start`.

    Args:
        name: name of the node.
        use_sim_time: whether its clock follows the topic ``/clock``, as in a simulation.

    Attributes:
        node: the ``rclpy.node.Node``.

    Raises:
        MissingExtraError: if rclpy cannot be imported.
    """

    def __init__(self, name: str, *, use_sim_time: bool = False) -> None:
        rclpy = import_ros("rclpy")
        no_handlers = import_ros("rclpy.signals").SignalHandlerOptions.NO
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=no_handlers)
        overrides = [rclpy.Parameter("use_sim_time", value=use_sim_time)]
        self.node = rclpy.create_node(name, context=self._context, parameter_overrides=overrides)
        executors = import_ros("rclpy.executors")
        self._spinner = executors.SingleThreadedExecutor(context=self._context)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._spin, name=name)

    def subscribe(
        self, kind: str, topic: str, callback: Callable[..., None], *, delivery: Delivery
    ) -> None:
        """Subscribe to a topic; call it before :meth:`start`.

        Args:
            kind: type of the messages, such as ``sensor_msgs.msg.JointState``.
            topic: name of the topic.
            callback: function of each message, and of its information if it has two parameters.
            delivery: quality of service.

        Raises:
            MissingExtraError: if the type cannot be imported.
        """
        module, _, name = kind.rpartition(".")
        qos = import_ros("rclpy.qos")
        profile = qos.QoSProfile(
            depth=_QUEUE_LENGTH,
            reliability=getattr(
                qos.ReliabilityPolicy, "BEST_EFFORT" if delivery is Delivery.SENSOR else "RELIABLE"
            ),
            durability=getattr(
                qos.DurabilityPolicy,
                "TRANSIENT_LOCAL" if delivery is Delivery.LATCHED else "VOLATILE",
            ),
        )
        message_type = getattr(import_ros(module), name)
        self.node.create_subscription(message_type, topic, callback, profile)

    def start(self) -> None:
        """Start the thread."""
        self._spinner.add_node(self.node)
        self._thread.start()

    def _spin(self) -> None:
        """Run the callbacks until the end; for the thread."""
        while not self._closing.is_set():
            self._spinner.spin_once(timeout_sec=_SPIN_SECONDS)

    def now(self) -> float:
        """Return the time of the clock of the node [s]."""
        return float(self.node.get_clock().now().nanoseconds) / 1e9

    def stop(self) -> None:
        """End the thread, so no callback runs any more."""
        self._closing.set()
        self._spinner.wake()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)
        self._spinner.shutdown(_JOIN_SECONDS)  # last, since it destroys handles of the thread

    def close(self) -> None:
        """End the thread and the node."""
        self.stop()
        self.node.destroy_node()
        self._context.try_shutdown()
