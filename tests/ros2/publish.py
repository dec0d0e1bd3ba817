"""Publishes serialized messages: each line of the standard input has a topic, a type and the bytes.

Each message is sent when its topic has a subscriber. The end of the input ends the program.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

import rclpy

POLL_PERIOD = 0.02
"""Time between two looks for a subscriber [s]."""


def main() -> None:
    """Publish the messages of the standard input."""
    rclpy.init()
    node = rclpy.create_node("publisher")
    publishers: dict[str, Any] = {}
    for line in sys.stdin:
        topic, type_name, data = line.split()
        if topic not in publishers:
            package, kind, name = type_name.split("/")
            message = getattr(importlib.import_module(f"{package}.{kind}"), name)
            publishers[topic] = node.create_publisher(message, topic, 10)
        while not publishers[topic].get_subscription_count():
            time.sleep(POLL_PERIOD)
        publishers[topic].publish(bytes.fromhex(data))
    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
