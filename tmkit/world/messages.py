"""Messages shaped like those of ROS 2, and the errors of tf2 by their names.

The packages are ``geometry_msgs``, ``std_msgs``, ``sensor_msgs`` and ``builtin_interfaces``.
Fields, names and defaults are those of the ROS messages. Functions with a message as argument only
read fields, so they also accept messages of ROS itself or of ``rosbags``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tmkit.errors import TmkitError
from tmkit.spatial import Pose


class TransformException(TmkitError, RuntimeError):  # noqa: N818 - tf2's name
    """Base of all errors of a :class:`~tmkit.world.Buffer`.

    Attributes: ``target_frame``, ``source_frame``.
    """


class LookupException(TransformException):
    """A frame is not in the buffer."""


class ConnectivityException(TransformException):
    """Two frames are in different trees."""


class ExtrapolationException(TransformException):
    """A time is outside of the history of a frame on the path."""


class InvalidArgumentException(TransformException):
    """A frame name, a message or a time is invalid."""


class TimeoutException(TransformException):
    """A transform did not become available before the timeout."""


_NANOSECONDS_PER_SECOND = 1_000_000_000
"""Number of nanoseconds in a second."""

_NORM_TOLERANCE = 1e-2
"""Tolerance of the squared norm of a quaternion, as in tf2."""


@dataclass(slots=True)
class Time:
    """Time in seconds and nanoseconds (``builtin_interfaces/Time``)."""

    sec: int = 0
    nanosec: int = 0


@dataclass(slots=True)
class Header:
    """Time and frame (``std_msgs/Header``)."""

    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass(slots=True)
class Vector3:
    """Vector [m] (``geometry_msgs/Vector3``)."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(slots=True)
class Quaternion:
    """Unit quaternion (``geometry_msgs/Quaternion``)."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    w: float = 1.0


@dataclass(slots=True)
class Transform:
    """Pose of the child frame in its parent (``geometry_msgs/Transform``)."""

    translation: Vector3 = field(default_factory=Vector3)
    rotation: Quaternion = field(default_factory=Quaternion)


@dataclass(slots=True)
class TransformStamped:
    """Pose of a child frame in the frame of the header (``geometry_msgs/TransformStamped``)."""

    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    transform: Transform = field(default_factory=Transform)


@dataclass(slots=True)
class JointState:
    """Joint values at a time [rad or m] (``sensor_msgs/JointState``)."""

    header: Header = field(default_factory=Header)
    name: list[str] = field(default_factory=list)
    position: list[float] = field(default_factory=list)
    velocity: list[float] = field(default_factory=list)
    effort: list[float] = field(default_factory=list)


def seconds_and_nanoseconds(time: object) -> tuple[int, int]:
    """Return the seconds and nanoseconds of a time.

    Args:
        time: message with ``sec`` and ``nanosec``, object of ``rclpy`` with ``nanoseconds``, or
            number [s].

    Raises:
        InvalidArgumentException: if the time is none of these, or not finite.
    """
    if isinstance(time, (int, float)):
        if math.isfinite(time):
            sec = math.floor(time)
            return divmod(
                sec * _NANOSECONDS_PER_SECOND + round((time - sec) * 1e9), _NANOSECONDS_PER_SECOND
            )
    elif hasattr(time, "sec") and hasattr(time, "nanosec"):
        return int(time.sec), int(time.nanosec)
    elif hasattr(time, "nanoseconds"):
        return divmod(int(time.nanoseconds), _NANOSECONDS_PER_SECOND)
    raise InvalidArgumentException(
        f"expected a time with sec and nanosec, or a finite number of seconds, got {time!r:.80}"
    )


def seconds_of(time: object) -> float:
    """Return a time or a duration [s] as the nearest double: 0.24 us at the present Unix time."""
    sec, nanosec = seconds_and_nanoseconds(time)
    return sec + nanosec / 1e9


def pose_of(position: Vector3, orientation: Quaternion) -> Pose:
    """Return the pose of a position and an orientation.

    Args:
        position: message with ``x``, ``y`` and ``z`` [m].
        orientation: message with ``x``, ``y``, ``z`` and ``w``.

    Raises:
        InvalidArgumentException: if a number is not finite, or the norm of the quaternion is not 1.
    """
    x, y, z = position.x, position.y, position.z
    quaternion = [orientation.x, orientation.y, orientation.z, orientation.w]
    norm = sum(value * value for value in quaternion)
    if not (abs(norm - 1.0) < _NORM_TOLERANCE and math.isfinite(x + y + z)):
        raise InvalidArgumentException(
            "expected finite numbers and a quaternion of norm 1 as a pose, got"
            f" {[x, y, z, *quaternion]}"
        )
    return Pose.from_array((x, y, z, *quaternion))


def transform_message(
    pose: Pose, frame_id: str, child_frame_id: str, stamp: tuple[int, int]
) -> TransformStamped:
    """Return a pose as a message.

    Args:
        pose: frame_from_child.
        frame_id: parent frame.
        child_frame_id: child frame.
        stamp: seconds and nanoseconds.
    """
    x, y, z, *rotation = pose.as_array().tolist()
    transform = Transform(Vector3(x, y, z), Quaternion(*rotation))
    return TransformStamped(Header(Time(*stamp), frame_id), child_frame_id, transform)
