"""Suction grippers, whose vacuum a service or a topic switches.

No standard interface exists: drivers have services or topics of their own types. A table of a TOML
file describes each by the fields of its messages. A message type is imported from a package of ROS
interfaces only. The key of the table is the name of the arm::

    [suction.ur5]
    service = "/io_and_status_controller/set_io"
    type = "ur_msgs/srv/SetIO"
    on = { fun = 1, pin = 0, state = 1.0 }
    off = { fun = 1, pin = 0, state = 0.0 }
    sensor = "/vacuum_present"
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmkit._support.source_location import did_you_mean
from tmkit.errors import ConfigurationError
from tmkit.formats.json.reading import JsonNode
from tmkit.world.execution.controllers import SuctionGripper

_TYPE = re.compile(r"([a-z][a-z0-9_]*)/(srv|msg)/([A-Z][A-Za-z0-9]*)")
"""Name of a message type: package, kind and name."""

_INTEGER = re.compile(r"(u?)int(8|16|32|64)")
"""Integer type of ROS."""

_DEFAULT_TYPES = {"srv": "std_srvs/srv/SetBool", "msg": "std_msgs/msg/Bool"}
"""Type of a service or a topic by default."""

_QUEUE_DEPTH = 10
"""Number of messages that a publisher keeps for its subscribers."""


def read_suction(arm: str, node: JsonNode) -> SuctionGripper:
    """Return the suction gripper of a table.

    Args:
        arm: name of the arm, the key of the table.
        node: table.

    Raises:
        FileFormatError: if a key is missing or unknown, or a value has another type.
    """
    table = node.table()
    keys = ("service", "topic", "type", "on", "off", "reply", "settling_time", "sensor")
    node.require_keys_among(*keys, "sensor_age")
    if ("service" in table) == ("topic" in table):
        raise node.error("expected a service or a topic that switches the vacuum")
    kind = "srv" if "service" in table else "msg"
    values: dict[str, Any] = {"type": _DEFAULT_TYPES[kind]}
    if "type" in table:
        values["type"] = node.get("type").name()
        match = _TYPE.fullmatch(values["type"])
        if match is None or match[2] != kind:
            raise node.get("type").error(
                f"expected a type such as '{_DEFAULT_TYPES[kind]}', received '{values['type']}'"
            )
    if values["type"] != _DEFAULT_TYPES[kind]:
        node.get("on"), node.get("off")  # no other type has fields by default
    for key in ("on", "off", "reply"):
        if key in table:
            values[f"{key}_fields"] = node.get(key).table()
    if "reply" in table and kind == "msg":
        raise node.get("reply").error("a topic has no reply")
    for key in ("settling_time", "sensor_age"):
        if key in table:
            values[key] = node.get(key).number()
            if values[key] < 0.0:
                raise node.get(key).error(f"expected at least 0, received {values[key]:g}")
    if "sensor" in table:
        values["sensor"] = node.get("sensor").name()
    return SuctionGripper(arm, node.get("service" if kind == "srv" else "topic").name(), **values)


class SuctionDriver:
    """Client or publisher that switches a vacuum, and the latest message of its sensor.

    Args:
        node: node of rclpy, whose thread has not started yet.
        gripper: gripper to switch.

    Raises:
        ConfigurationError: if the message type is unknown, or has other fields.
    """

    def __init__(self, node: Any, gripper: SuctionGripper) -> None:
        self.gripper = gripper
        self._node = node
        kind = self._load_type()
        make = kind.Request if gripper.is_service else kind
        self._messages = {
            is_on: self._fill(make(), fields, "on" if is_on else "off")
            for is_on, fields in ((True, gripper.on_fields), (False, gripper.off_fields))
        }
        if gripper.is_service:
            self._fill(kind.Response(), gripper.reply_fields, "reply")
            self._client = node.create_client(kind, gripper.name)
        else:
            self._publisher = node.create_publisher(kind, gripper.name, _QUEUE_DEPTH)
        self._vacuum: tuple[bool, float] | None = None
        if gripper.sensor:
            from rclpy.qos import qos_profile_sensor_data
            from std_msgs.msg import Bool

            node.create_subscription(Bool, gripper.sensor, self._receive, qos_profile_sensor_data)

    def server_fault(self) -> str:
        """Return why the vacuum cannot be switched; empty if it can."""
        name = self.gripper.name
        if not self.gripper.is_service:
            count = self._publisher.get_subscription_count()
            return "" if count else f"topic '{name}' has no subscriber"
        count = self._node.count_services(name)
        if count == 1 and not self._client.service_is_ready():
            count = 0
        return "" if count == 1 else f"{count or 'no'} servers have the service '{name}'"

    def switch(self, *, is_on: bool) -> Any:
        """Switch the vacuum; return the future of the reply, or None for a topic."""
        message = self._messages[is_on]
        if self.gripper.is_service:
            return self._client.call_async(message)
        return self._publisher.publish(message)

    def reply_fault(self, reply: object) -> str:
        """Return how a reply differs from the expected one; empty if it does not."""
        for key, expected in self.gripper.reply_fields.items():
            if (value := getattr(reply, key)) != expected:
                message = getattr(reply, "message", "")
                detail = f": {message}" if message else ""
                return f"service '{self.gripper.name}' replied {key} = {value}{detail}"
        return ""

    def sensor_fault(self, *, is_on: bool, since: float = 0.0) -> str:
        """Return how the sensor differs from an expected vacuum; empty if it does not.

        Args:
            is_on: whether a vacuum is expected.
            since: time of :func:`time.monotonic` after which the message was received [s].
        """
        topic = self.gripper.sensor
        if not topic:
            return ""
        if reason := self.silence(since=since):
            return reason
        assert self._vacuum is not None, "a sensor that is not silent has a message"
        if self._vacuum[0] == is_on:
            return ""
        return f"topic '{topic}' has {'no' if is_on else 'a'} vacuum"

    def silence(self, *, since: float = 0.0) -> str:
        """Return why the sensor has no fresh message since a time [s]; empty if it has one."""
        topic, limit = self.gripper.sensor, self.gripper.sensor_age
        if not topic:
            return ""
        if self._vacuum is None or self._vacuum[1] <= since:
            return f"topic '{topic}' has no message"
        age = time.monotonic() - self._vacuum[1]
        return "" if age <= limit else f"topic '{topic}' is {age:.2f} s old, more than {limit:g} s"

    def _receive(self, message: Any) -> None:
        """Store a message of the sensor."""
        self._vacuum = (bool(message.data), time.monotonic())

    def _load_type(self) -> Any:
        """Import the type of the service or topic.

        Raises:
            ConfigurationError: if no package of interfaces has it.
        """
        name = self.gripper.type
        package, kind, type_name = name.split("/")
        spec = importlib.util.find_spec(package)
        folders = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
        # Other packages are not imported, since that would run their code.
        if any((folder / kind / "__init__.py").is_file() for folder in folders):
            module = importlib.import_module(f"{package}.{kind}")
            if (message_type := getattr(module, type_name, None)) is not None:
                return message_type
            hint = did_you_mean(type_name, [entry for entry in vars(module) if entry[0].isupper()])
            raise self._error(f"package '{package}' has no type '{name}'{hint}")
        raise self._error(
            f"no package '{package}' with the type '{name}': source the ROS 2 workspace that has it"
        )

    def _fill(self, message: Any, fields: Mapping[str, object], key: str) -> Any:
        """Return a message after its fields are set.

        Raises:
            ConfigurationError: if the message has no such field, or a field has another type.
        """
        field_types = message.get_fields_and_field_types()
        for name, value in fields.items():
            if name not in field_types:
                hint = did_you_mean(name, field_types) or f": it has {', '.join(field_types)}"
                raise self._error(f"{key}: '{self.gripper.type}' has no field '{name}'{hint}")
            present = getattr(message, name)
            if isinstance(value, Mapping) and hasattr(present, "get_fields_and_field_types"):
                self._fill(present, value, f"{key}.{name}")
            elif _is_of_type(value, field_types[name]):
                setattr(message, name, type(present)(value))
            else:
                raise self._error(f"{key}.{name}: expected {field_types[name]}, received {value!r}")
        return message

    def _error(self, reason: str) -> ConfigurationError:
        """Return an error about the gripper."""
        return ConfigurationError(f"suction.{self.gripper.arm}: {reason}")


def _is_of_type(value: object, type_name: str) -> bool:
    """Return whether a value is of a scalar type of ROS; an integer is a number of any type."""
    if isinstance(value, bool) or type_name == "boolean":
        return isinstance(value, bool) and type_name == "boolean"
    if isinstance(value, int) and (match := _INTEGER.fullmatch(type_name)):
        is_signed = not match[1]
        limit: int = 1 << (int(match[2]) - is_signed)
        return -limit * is_signed <= value < limit
    if type_name in ("float", "double"):
        return isinstance(value, int | float)
    return isinstance(value, str) and type_name == "string"
