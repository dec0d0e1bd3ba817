"""Replay of ROS 2 bags into a buffer and recording of world versions to bags, without ROS.

Bags are read and written by ``rosbags`` (extra ``world``), with CDR messages of these types:
``tf2_msgs/TFMessage``, ``sensor_msgs/JointState`` and ``geometry_msgs/PoseWithCovarianceStamped``.
``nav_msgs/Odometry`` is read from named topics, since odometry of several sources is often of the
same frame. Message definitions in a bag are not used, since they would become code.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from tmkit._core import SceneGraph, StampedPoses, diff
from tmkit._support.closing import Closing
from tmkit._support.extras import importing
from tmkit._support.limits import as_utf8, read_bytes
from tmkit.errors import (
    FileFormatError,
    MissingFileError,
    OutputError,
    TmkitError,
    UnknownNameError,
)
from tmkit.graph.moments import CLASS, joint_history
from tmkit.spatial import GaussianPose, Pose, to_ros_pose
from tmkit.world.bag_checksums import LARGEST_METADATA, METADATA, check_files, write_checksums
from tmkit.world.buffer import Buffer
from tmkit.world.messages import seconds_and_nanoseconds, transform_message

_TF_TYPE = "tf2_msgs/msg/TFMessage"
"""Message type of transforms."""

_JOINT_STATE_TYPE = "sensor_msgs/msg/JointState"
"""Message type of joint values."""

_POSE_TYPE = "geometry_msgs/msg/PoseWithCovarianceStamped"
"""Message type of poses with covariance."""

_ODOMETRY_TYPE = "nav_msgs/msg/Odometry"
"""Message type of poses with covariance that name their frame."""

_FRAMES_KEY = "tmkit.frames"
"""Key of a bag's custom data that has the frames of its pose topics."""

_MAX_BYTES = 20_000_000_000
"""Default limit of the size of a bag [bytes]."""

_Message = tuple[int, str, str, Any]
"""Time [ns] (-1 if static), topic, type and message."""


@dataclass(frozen=True)
class BagReplay:
    """Result of the replay of a bag.

    Attributes:
        counts: number of replayed messages by topic.
        rejected: number of messages or transforms that the buffer rejected, by topic. The reasons
            are in ``buffer.rejections``.
        skipped: topics of other types, and pose topics whose frame is unknown.
    """

    counts: Mapping[str, int]
    rejected: Mapping[str, int]
    skipped: tuple[str, ...]


class BagTopic(NamedTuple):
    """Topic of a bag.

    Attributes:
        name: name of the topic.
        type: type of its messages.
        messages: number of messages.
        frame: frame of the poses with covariance, if the bag stores it.
    """

    name: str
    type: str
    messages: int
    frame: str | None

    @property
    def is_replayed(self) -> bool:
        """True if :func:`play_bag` replays the topic by default."""
        return self.type in (_TF_TYPE, _JOINT_STATE_TYPE) or (
            self.type in (_POSE_TYPE, _ODOMETRY_TYPE) and self.frame is not None
        )


class BagInfo(NamedTuple):
    """Topics and time range of a bag.

    Attributes:
        topics: topics in the order of the bag.
        start: time at which the first message was recorded [s]. 0 without messages.
        end: time at which the last message was recorded [s]. 0 without messages.
    """

    topics: tuple[BagTopic, ...]
    start: float
    end: float


def read_bag_info(path: str | Path, *, max_bytes: int = _MAX_BYTES) -> BagInfo:
    """Return the topics and times of a bag, without its messages.

    Args:
        path: folder of a bag, or a file ``.mcap`` or ``.db3``.
        max_bytes: limit of the size of all files of the bag [bytes].

    Raises:
        MissingFileError: if there is no bag at the path.
        FileFormatError: if the bag is invalid or too large.
        MissingExtraError: if ``rosbags`` is not installed.
    """
    path, (rosbag2, _) = Path(path), _rosbags()
    frames = _check_bag(path, max_bytes, is_info=True)
    with _wrap_read_errors(path), rosbag2.Reader(path) as reader:
        topics = (
            BagTopic(c.topic, c.msgtype, c.msgcount, frames.get(c.topic))
            for c in reader.connections
        )
        times = (
            (reader.start_time / 1e9, reader.end_time / 1e9) if reader.message_count else (0.0, 0.0)
        )
        return BagInfo(tuple(topics), *times)


def play_bag(
    path: str | Path,
    buffer: Buffer,
    *,
    topics: tuple[str, ...] | None = None,
    poses: Mapping[str, str] | None = None,
    wait_until: Callable[[float], object] | None = None,
    max_bytes: int = _MAX_BYTES,
    max_message: int = 20_000_000,
) -> BagReplay:
    """Replay a bag into a buffer, in the order in which its messages were recorded.

    Transforms of topics that end in ``tf_static`` are valid at all times. Joints of joint states
    must be in the scene of the buffer. Chunks of an MCAP file are decompressed as a whole.

    Args:
        path: folder of a bag, or a file ``.mcap`` or ``.db3``.
        buffer: buffer that receives the messages. After an error it contains all earlier messages.
        topics: topics to replay. Defaults to all topics of the three types that are written, and
            those of ``poses``.
        poses: frame of each topic of poses with covariance, if :class:`BagRecorder` did not write
            it, or of odometry, if it is another than in the messages.
        wait_until: function that is called with the time of each message [s] before its replay.
            It may wait until then. If omitted, messages are replayed without waiting.
        max_bytes: limit of the size of all files of the bag [bytes].
        max_message: limit of the size of one message [bytes].

    Raises:
        MissingFileError: if there is no bag at the path.
        FileFormatError: if the bag or a message is invalid, too large or of another type. The error
            names the topic.
        UnknownNameError: if a topic is not in the bag.
        MissingExtraError: if ``rosbags`` is not installed.
    """
    rosbag2, store = _rosbags()
    path = Path(path)
    custom = _check_bag(path, max_bytes)
    with _wrap_read_errors(path), rosbag2.Reader(path) as reader:
        frames = {**custom, **(poses or {})}
        selection: list[Any] = []
        skipped: set[str] = set()
        for connection in reader.connections:
            topic, kind = connection.topic, connection.msgtype
            is_replayable = BagTopic(
                topic, kind, connection.msgcount, frames.get(topic)
            ).is_replayed
            is_selected = topics is None or topic in topics
            is_replayable |= kind == _ODOMETRY_TYPE and topics is not None
            if topics is not None and is_selected and not is_replayable:
                reason = (
                    "its frame is unknown; pass poses="
                    if kind == _POSE_TYPE
                    else f"expected {_TF_TYPE}, {_JOINT_STATE_TYPE} or {_ODOMETRY_TYPE}"
                )
                raise FileFormatError.at(
                    path, f"topic '{topic}' is of type {kind}: {reason}", data={"topic": topic}
                )
            if is_replayable and is_selected:
                selection.append(connection)
            else:
                skipped.add(topic)
        names = [connection.topic for connection in reader.connections]
        for topic in (*(topics or ()), *(poses or ())):
            if topic not in names:
                raise UnknownNameError.of("topic", topic, names, where=str(path))
        if not selection:
            odometry = [c.topic for c in reader.connections if c.msgtype == _ODOMETRY_TYPE]
            hint = f"; odometry is replayed if it is named, as topics={odometry}"
            raise FileFormatError.at(
                path,
                f"has no topic of {_TF_TYPE}, {_JOINT_STATE_TYPE} or of poses of a known frame, but"
                f" {', '.join(sorted(set(names))) or 'none at all'}{hint if odometry else ''}",
            )
        counts = Counter({connection.topic: 0 for connection in selection})
        rejected = Counter[str]()
        for connection, nanoseconds, raw in reader.messages(selection):
            topic, stamp = connection.topic, nanoseconds / 1e9
            if len(raw) > max_message:
                reason = f"a message of {len(raw):,} bytes, expected at most {max_message:,}"
                raise FileFormatError.at(
                    path, f"topic '{topic}' at {stamp:.9f} s: {reason}", data={"topic": topic}
                )
            try:
                message = store.deserialize_cdr(raw, connection.msgtype)
            except Exception as error:
                raise FileFormatError.at(
                    path, f"topic '{topic}' at {stamp:.9f} s: {error}", data={"topic": topic}
                ) from error
            if wait_until is not None:
                wait_until(stamp)
            counts[topic] += 1
            results = _insert_message(buffer, connection, message, frames)
            rejected[topic] += sum(not is_inserted for is_inserted in results)
    return BagReplay(
        dict(counts),
        {topic: count for topic, count in rejected.items() if count},
        tuple(sorted(skipped)),
    )


def _insert_message(
    buffer: Buffer, connection: Any, message: Any, frames: Mapping[str, str]
) -> Iterator[bool]:
    """Insert a message into a buffer, and yield for each part whether it was inserted."""
    topic = connection.topic
    if connection.msgtype in (_POSE_TYPE, _ODOMETRY_TYPE):
        yield buffer.set_pose(message, frames.get(topic), topic)
    elif connection.msgtype == _JOINT_STATE_TYPE:
        yield buffer.set_joint_states(message, topic)
    else:
        insert = (
            buffer.set_transform_static if topic.endswith("tf_static") else buffer.set_transform
        )
        for transform in message.transforms:
            yield insert(transform, topic)


def _check_bag(path: Path, max_bytes: int, *, is_info: bool = False) -> dict[str, str]:
    """Check the files of a bag, and return the frames of its pose topics by topic.

    Raises:
        MissingFileError: if there is no bag at the path.
        FileFormatError: if files are links out of the bag, too large, damaged or compressed.
    """
    if not path.exists():
        raise MissingFileError(f"no bag at {path}", path=str(path), nearest=None)
    files = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    for file in files:
        if path.is_dir() and file.resolve().parent != path.resolve():
            raise FileFormatError.at(file, "is a link out of the folder of the bag")
    size = sum(file.stat().st_size for file in files)
    if size > max_bytes:
        raise FileFormatError.at(
            path, f"is too large: {size:,} bytes, expected at most {max_bytes:,}"
        )
    metadata = path / METADATA
    if path.is_dir() and not metadata.exists():
        raise FileFormatError.at(path, "is not a readable bag: a folder without metadata.yaml")
    with _wrap_read_errors(path):
        check_files(path, files, is_info=is_info)
    if not path.is_dir():
        return {}
    with _wrap_read_errors(metadata):
        from ruamel.yaml import YAML

        data = read_bytes(metadata, limit=LARGEST_METADATA)
        text = as_utf8(data, partial(FileFormatError.at, metadata)).decode()
        info = YAML(typ="safe", pure=True).load(text)["rosbag2_bagfile_information"]
        # The size of compressed files or messages is unknown before they are decompressed.
        if info.get("compression_format"):
            reason = "is compressed: 'ros2 bag convert' makes one that is not, or compressed MCAP"
            raise FileFormatError.at(path, reason)
        frames = json.loads((info.get("custom_data") or {}).get(_FRAMES_KEY, "{}"))
        return {str(topic): str(frame) for topic, frame in frames.items()}


@contextmanager
def _wrap_read_errors(path: Path) -> Iterator[None]:
    """Raise any error of a bag reader as FileFormatError with the path."""
    try:
        yield
    except TmkitError:
        raise
    except Exception as error:
        raise FileFormatError.at(
            path, f"is not a readable bag: {type(error).__name__}: {error}"
        ) from error


def _rosbags() -> tuple[Any, Any]:
    """Return the module for ROS 2 bags and the message types of ROS 2 Jazzy."""
    with importing("rosbags", "world", "bags need"):
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_typestore
    return rosbag2, get_typestore(Stores.ROS2_JAZZY)


class BagRecorder(Closing):
    """Recorder of world versions to a bag: poses, static poses, covariances and joint values.

    Stamped poses become ``/tf``, poses of fixed and free frames without stamps ``/tf_static``,
    and joint histories ``/joint_states``. Poses with a covariance, of their own or of their edge,
    also become a topic ``/poses/FRAME`` of ``PoseWithCovarianceStamped``, with stamp 0 if the pose
    is static. Joints themselves, shapes and attributes have no message. A recorder is a context
    manager::

        with BagRecorder("run") as recorder:
            buffer.on_change(recorder.record)

    Args:
        path: folder to create.
        storage: ``mcap`` or ``sqlite3``.

    Raises:
        OutputError: if the folder exists or cannot be written.
        MissingExtraError: if ``rosbags`` is not installed.
    """

    def __init__(self, path: str | Path, *, storage: Literal["mcap", "sqlite3"] = "mcap") -> None:
        rosbag2, self._store = _rosbags()
        plugins = {plugin.name.lower(): plugin for plugin in rosbag2.StoragePlugin}
        if storage not in plugins:
            raise UnknownNameError.of("storage", storage, plugins)
        self._path, self._last = Path(path), SceneGraph(root=None)
        self._static_time: int | None = None  # [ns], before all other messages
        self._pending: list[_Message] = []
        self._topics: dict[str, Any] = {}
        self._frames: dict[str, str] = {}
        with self._wrap_write_errors():
            self._writer = rosbag2.Writer(self._path, version=9, storage_plugin=plugins[storage])
            self._writer.open()

    def close(self) -> None:
        """Write the remaining messages, after which the bag can be read."""
        with self._wrap_write_errors():
            self._write([])
            self._writer.set_custom_data(_FRAMES_KEY, json.dumps(self._frames))
            self._writer.close()
            write_checksums(self._path)

    def record(self, scene: SceneGraph) -> None:
        """Write the changes of a version since the last recorded one. O(changes).

        Raises:
            OutputError: if the changes cannot be written.
        """
        new = list(self._messages(scene))
        self._last = scene
        timed = [message for message in new if message[0] >= 0]
        if timed:
            self._static_time = max(min(message[0] for message in timed) - 1, 0)
        self._pending += [message for message in new if message[0] < 0]
        if self._static_time is not None:
            self._write(timed)

    def _write(self, timed: list[_Message]) -> None:
        """Write messages by time, after the static ones that waited for the first time."""
        static_time = self._static_time or 0
        static = [(static_time, *fields) for _, *fields in self._pending]
        messages = sorted([*static, *timed], key=lambda message: message[:2])
        self._pending = []
        with self._wrap_write_errors():
            for nanoseconds, topic, kind, message in messages:
                if topic not in self._topics:
                    self._topics[topic] = self._add_connection(topic, kind)
                self._writer.write(
                    self._topics[topic], nanoseconds, self._store.serialize_cdr(message, kind)
                )

    def _messages(self, scene: SceneGraph) -> Iterator[_Message]:
        """Yield time [ns] (-1 if static), topic, type and message of the changes of a version."""
        types = self._store.types
        before, after = self._last, scene
        new = [
            frame
            for change in diff(before, after).frames
            if change.after
            for frame in [change.after.name]
        ]
        tf: list[tuple[tuple[int, int], str, Pose, np.ndarray | None, bool]] = []
        joints: dict[float, dict[str, float]] = {}
        for frame in new:
            parent = after.parent(frame)
            if parent is None:
                continue
            if CLASS in after.classes(frame):
                joint = after.joint(parent).name
                old = {*joint_history(before, joint)[0]} if joint in before.joint_names else set()
                for stamp, value in zip(*joint_history(after, joint), strict=True):
                    if stamp not in old:
                        joints.setdefault(stamp, {})[joint] = value
            elif after.joint(frame).type in ("fixed", "free"):
                history, of_edge = after.stamped_poses(frame), after.edge_covariance(frame)
                default = of_edge if of_edge.any() else None
                if history is None:
                    tf.append(((0, 0), frame, after.local_pose(frame), default, True))
                    continue
                has_edge = frame in before and before.parent(frame) == parent
                old_history = before.stamped_poses(frame) if has_edge else None
                recorded = {} if old_history is None else _covariances(old_history)
                is_edge_changed = old_history is not None and not np.array_equal(
                    before.edge_covariance(frame), of_edge
                )
                newest = history.stamps[-1:]
                for (stamp, own), pose in zip(
                    _covariances(history).items(), history.poses, strict=True
                ):
                    is_recorded = stamp in recorded and _is_same(recorded[stamp], own)
                    if is_recorded and not (is_edge_changed and own is None and stamp in newest):
                        continue
                    covariance = default if own is None else own
                    tf.append((seconds_and_nanoseconds(stamp), frame, pose, covariance, False))
        for stamp, frame, pose, covariance, is_static in tf:
            parent = str(after.parent(frame))
            nanoseconds, topic = (-1, "/tf_static") if is_static else (_nanoseconds(stamp), "/tf")
            transform = transform_message(pose, parent, frame, stamp)
            message = self._build_message(transform, "geometry_msgs/msg/TransformStamped")
            yield nanoseconds, topic, _TF_TYPE, types[_TF_TYPE](transforms=[message])
            if covariance is not None:
                topic = self._pose_topic(frame)
                ros = to_ros_pose(GaussianPose(pose, covariance))
                fields = {
                    "header": transform.header,
                    "pose": {**ros, "covariance": np.array(ros["covariance"])},
                }
                yield nanoseconds, topic, _POSE_TYPE, self._build_message(fields, _POSE_TYPE)
        for time, values in joints.items():
            stamp = seconds_and_nanoseconds(time)
            header = {"stamp": {"sec": stamp[0], "nanosec": stamp[1]}, "frame_id": ""}
            fields = {"header": header, "name": [*values], "position": np.array([*values.values()])}
            fields |= dict.fromkeys(("velocity", "effort"), np.zeros(0))
            yield (
                _nanoseconds(stamp),
                "/joint_states",
                _JOINT_STATE_TYPE,
                self._build_message(fields, _JOINT_STATE_TYPE),
            )

    def _build_message(self, value: Any, kind: str) -> Any:
        """Return a message of ``rosbags`` with the fields of another message or of a mapping."""
        types = self._store.types
        message_type = types[kind]
        values = value
        if not isinstance(value, Mapping):
            values = {name: getattr(value, name) for name in value.__slots__}
        fields = {}
        for name, hint in message_type.__annotations__.items():
            if name in values:
                inner, field = str(hint).replace("__", "/"), values[name]
                fields[name] = self._build_message(field, inner) if inner in types else field
        return message_type(**fields)

    def _pose_topic(self, frame: str) -> str:
        """Return the topic of the poses of a frame, with letters, digits and underscores only."""
        topic = plain = "/poses/" + re.sub(r"\W", "_", frame, flags=re.ASCII)
        for used_topic, topic_frame in self._frames.items():
            if topic_frame == frame:
                return used_topic
        while topic in self._frames:
            topic = f"{plain}_{len(self._frames)}"
        self._frames[topic] = frame
        return topic

    def _add_connection(self, topic: str, kind: str) -> Any:
        from rosbags.interfaces import (
            Qos,
            QosDurability,
            QosHistory,
            QosLiveliness,
            QosReliability,
            QosTime,
        )

        is_static = topic == "/tf_static"
        infinite = QosTime(2147483647, 4294967295)
        qos = Qos(
            QosHistory.KEEP_LAST,
            100,
            QosReliability.RELIABLE,
            QosDurability.TRANSIENT_LOCAL if is_static else QosDurability.VOLATILE,
            infinite,
            infinite,
            QosLiveliness.AUTOMATIC,
            infinite,
            False,
        )
        return self._writer.add_connection(
            topic, kind, typestore=self._store, offered_qos_profiles=[qos]
        )

    @contextmanager
    def _wrap_write_errors(self) -> Iterator[None]:
        from rosbags.rosbag2 import WriterError

        try:
            yield
        except (WriterError, OSError) as error:
            message = f"{self._path}: cannot be written: {error}"
            raise OutputError(message, path=str(self._path), reason=str(error)) from error


def _covariances(history: StampedPoses) -> dict[float, np.ndarray | None]:
    """Return the covariance of each stamped pose by stamp, None for that of the edge."""
    return dict(zip(history.stamps.tolist(), history.covariances, strict=True))


def _is_same(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    """Return whether two covariances are equal, or both are those of the edge."""
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _nanoseconds(stamp: tuple[int, int]) -> int:
    return stamp[0] * 1_000_000_000 + stamp[1]
