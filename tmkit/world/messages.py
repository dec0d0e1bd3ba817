"""Messages shaped like those of ROS 2's ``geometry_msgs``, ``std_msgs``, ``sensor_msgs`` and ``builtin_interfaces``.

Fields, names and defaults are those of the ROS messages. Functions that take a message read fields
only, so messages of ROS itself, or of ``rosbags``, are taken in their place. The errors of tf2 are
here by its names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tmkit.errors import TmkitError
from tmkit.spatial import Pose


class TransformException(TmkitError, RuntimeError):  # noqa: N818 - tf2's name
    """Base of all errors of a :class:`~tmkit.world.Buffer`. Attributes: ``target_frame``, ``source_frame``."""


class LookupException(TransformException):
    """A frame that is not in the buffer."""


class ConnectivityException(TransformException):
    """Two frames in different trees."""


class ExtrapolationException(TransformException):
    """A time outside of what is known of a frame on the way."""


class InvalidArgumentException(TransformException):
    """A name of a frame that is empty or begins with a slash, a message without what it needs, no time."""


class TimeoutException(TransformException):
    """A transform that did not become available in time."""


_NANO = 1_000_000_000
_NORM_TOLERANCE = 1e-2  # of the squared norm of a quaternion, as in tf2


@dataclass(slots=True)
class Time:
    """A time in seconds and nanoseconds (``builtin_interfaces/Time``)."""

    sec: int = 0
    nanosec: int = 0


@dataclass(slots=True)
class Header:
    """A time and a frame (``std_msgs/Header``)."""

    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass(slots=True)
class Vector3:
    """Three numbers, in metres (``geometry_msgs/Vector3``)."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(slots=True)
class Quaternion:
    """A unit quaternion (``geometry_msgs/Quaternion``)."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    w: float = 1.0


@dataclass(slots=True)
class Transform:
    """Translation and rotation: the pose of the child frame in its parent (``geometry_msgs/Transform``)."""

    translation: Vector3 = field(default_factory=Vector3)
    rotation: Quaternion = field(default_factory=Quaternion)


@dataclass(slots=True)
class TransformStamped:
    """The pose of the child frame in that of the header, at its time (``geometry_msgs/TransformStamped``)."""

    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    transform: Transform = field(default_factory=Transform)


@dataclass(slots=True)
class JointState:
    """Joint values of a time, radians or metres (``sensor_msgs/JointState``)."""

    header: Header = field(default_factory=Header)
    name: list[str] = field(default_factory=list)
    position: list[float] = field(default_factory=list)
    velocity: list[float] = field(default_factory=list)
    effort: list[float] = field(default_factory=list)


def seconds_and_nanoseconds(time: Any) -> tuple[int, int]:
    """Return seconds and nanoseconds of a message, of an object of ``rclpy`` or of a number."""
    if isinstance(time, (int, float)):
        if math.isfinite(time):
            sec = math.floor(time)
            return divmod(sec * _NANO + round((time - sec) * 1e9), _NANO)
    elif hasattr(time, "nanosec"):
        return int(time.sec), int(time.nanosec)
    elif hasattr(time, "nanoseconds"):
        return divmod(int(time.nanoseconds), _NANO)
    raise InvalidArgumentException(
        f"a time has sec and nanosec, or is a finite number of seconds, not {time!r:.80}"
    )


def seconds_of(time: object) -> float:
    """Return a time or a duration in seconds, to the nearest double: 0.24 us at the present Unix time."""
    sec, nanosec = seconds_and_nanoseconds(time)
    return sec + nanosec / 1e9


def pose_of(position: Any, orientation: Any) -> Pose:
    """Return the pose of a position and an orientation; InvalidArgumentException where it is none."""
    i, j, k, w = orientation.x, orientation.y, orientation.z, orientation.w
    x, y, z = position.x, position.y, position.z
    norm = i * i + j * j + k * k + w * w
    if not (abs(norm - 1.0) < _NORM_TOLERANCE and math.isfinite(x + y + z)):
        given = [x, y, z, i, j, k, w]
        raise InvalidArgumentException(
            f"a pose needs finite numbers and a quaternion of norm 1, not {given}"
        )
    return Pose.from_array((x, y, z, i, j, k, w))


def transform_message(
    pose: Pose, frame_id: str, child_frame_id: str, stamp: tuple[int, int]
) -> TransformStamped:
    """Return a pose as a message; the stamp is seconds and nanoseconds."""
    x, y, z, *rotation = pose.as_array().tolist()
    transform = Transform(Vector3(x, y, z), Quaternion(*rotation))
    return TransformStamped(Header(Time(*stamp), frame_id), child_frame_id, transform)
