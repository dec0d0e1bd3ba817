"""ROS 2 bags without ROS: a bag replays into a buffer, and versions of a world are recorded to a bag.

Read and written by ``rosbags`` (extra ``world``), with CDR messages of these types:
``tf2_msgs/TFMessage``, ``sensor_msgs/JointState`` and ``geometry_msgs/PoseWithCovarianceStamped``.
Definitions of messages in a bag are not used, since they would become code.
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

from tmkit._core import SceneGraph, diff
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
from tmkit.graph import joint_history
from tmkit.graph.moments import CLASS
from tmkit.spatial import GaussianPose, Pose, to_ros_pose
from tmkit.world.bag_checksums import LARGEST_METADATA, METADATA, check_files, write_checksums
from tmkit.world.buffer import Buffer
from tmkit.world.messages import seconds_and_nanoseconds, transform_message

_TF, _JOINTS, _POSE = (
    "tf2_msgs/msg/TFMessage",
    "sensor_msgs/msg/JointState",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
)
_FRAMES = "tmkit.frames"  # custom data of a bag: the frames of its topics of poses
_Message = tuple[int, str, str, Any]
_MOST_BYTES = 20_000_000_000


@dataclass(frozen=True)
class BagReplay:
    """What was replayed of a bag.

    Attributes:
        counts: messages that were replayed, by topic.
        refused: messages or transforms that the buffer refused, by topic; the reasons are in
            ``buffer.refusals``.
        skipped: topics of other types, or of poses whose frame is not known.
    """

    counts: Mapping[str, int]
    refused: Mapping[str, int]
    skipped: tuple[str, ...]


class BagTopic(NamedTuple):
    """A topic of a bag.

    Attributes:
        name, type: of the topic and of its messages.
        messages: how many.
        frame: the frame that poses with covariance are of, where the bag says so.
    """

    name: str
    type: str
    messages: int
    frame: str | None

    @property
    def is_replayed(self) -> bool:
        """Whether :func:`play_bag` replays it by default."""
        return self.type in (_TF, _JOINTS) or (self.type == _POSE and self.frame is not None)


class BagInfo(NamedTuple):
    """What is in a bag.

    Attributes:
        topics: in the order of the bag.
        start: seconds, when the first message was recorded; 0 if there is none.
        end: seconds, when the last one was.
    """

    topics: tuple[BagTopic, ...]
    start: float
    end: float


def read_bag_info(path: str | Path, *, max_bytes: int = _MOST_BYTES) -> BagInfo:
    """Return the topics and times of a bag, without its messages.

    Args:
        path: the folder of a bag, or a file ``.mcap`` or ``.db3``.
        max_bytes: of all files of the bag.

    Raises:
        MissingFileError: no such bag.
        FileFormatError: a bag that is broken or too large.
        MissingExtraError: ``rosbags`` is not installed.
    """
    path, (rosbag2, _) = Path(path), _rosbags()
    frames = _checked_files(path, max_bytes, is_info=True)
    with _reading(path), rosbag2.Reader(path) as reader:
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
    max_bytes: int = _MOST_BYTES,
    max_message: int = 20_000_000,
) -> BagReplay:
    """Replay a bag into a buffer, in the order of the times at which its messages were recorded.

    Transforms of topics that end in ``tf_static`` are for all time. Joints of joint states must be
    in the scene of the buffer. Chunks of an MCAP file are decompressed whole.

    Args:
        path: the folder of a bag, or a file ``.mcap`` or ``.db3``.
        buffer: what it is replayed into. After an error it has all that came before.
        topics: the topics that are replayed; by default all of the three types.
        poses: by topic of poses with covariance the frame that they are of, if :class:`BagRecorder`
            did not write it.
        wait_until: called with the time of each message, in seconds, before it is replayed, such as
            a function that waits until then; if omitted, as fast as possible.
        max_bytes: of all files of the bag.
        max_message: bytes of one message.

    Raises:
        MissingFileError: no such bag.
        FileFormatError: a bag or a message that is broken, too large, or of another type; the error
            names the topic.
        UnknownNameError: a topic that is not in the bag.
        MissingExtraError: ``rosbags`` is not installed.
    """
    rosbag2, store = _rosbags()
    path = Path(path)
    custom = _checked_files(path, max_bytes)
    with _reading(path), rosbag2.Reader(path) as reader:
        known = {**custom, **(poses or {})}
        chosen: list[Any] = []
        skipped: list[Any] = []
        for one in reader.connections:
            is_wanted = BagTopic(
                one.topic, one.msgtype, one.msgcount, known.get(one.topic)
            ).is_replayed
            if topics is not None and one.topic in topics and not is_wanted:
                why = (
                    "no frame is known of it; pass poses="
                    if one.msgtype == _POSE
                    else f"expected {_TF}, {_JOINTS}"
                )
                raise FileFormatError.at(
                    path,
                    f"topic '{one.topic}' is of type {one.msgtype}: {why}",
                    data={"topic": one.topic},
                )
            (chosen if is_wanted and (topics is None or one.topic in topics) else skipped).append(
                one
            )
        names = [one.topic for one in reader.connections]
        for topic in (*(topics or ()), *(poses or ())):
            if topic not in names:
                raise UnknownNameError.of("topic", topic, names, where=str(path))
        if not chosen:
            raise FileFormatError.at(
                path,
                f"has no topic of {_TF}, {_JOINTS} or of poses of a known frame, but "
                f"{', '.join(sorted(set(names))) or 'none at all'}",
            )
        counts, refused = Counter({one.topic: 0 for one in chosen}), Counter[str]()
        for connection, nanoseconds, raw in reader.messages(chosen):
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
            refused[topic] += sum(not taken for taken in _taken(buffer, connection, message, known))
    return BagReplay(
        dict(counts),
        {k: n for k, n in refused.items() if n},
        tuple(sorted({c.topic for c in skipped})),
    )


def _taken(
    buffer: Buffer, connection: Any, message: Any, frames: Mapping[str, str]
) -> Iterator[bool]:
    """Put a message into a buffer, and yield of each part whether it was taken."""
    topic = connection.topic
    if connection.msgtype == _POSE:
        yield buffer.set_pose(message, frames[topic], topic)
    elif connection.msgtype == _JOINTS:
        yield buffer.set_joint_states(message, topic)
    else:
        insert = (
            buffer.set_transform_static if topic.endswith("tf_static") else buffer.set_transform
        )
        for transform in message.transforms:
            yield insert(transform, topic)


def _checked_files(path: Path, max_bytes: int, *, is_info: bool = False) -> dict[str, str]:
    """Refuse files that are outside of the bag, too large, damaged or compressed; return frames by topic of poses."""
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
        raise FileFormatError.at(path, "is no bag that can be read: a folder without metadata.yaml")
    with _reading(path):
        check_files(path, files, is_info=is_info)
    if not path.is_dir():
        return {}
    with _reading(metadata):
        from ruamel.yaml import YAML

        data = read_bytes(metadata, limit=LARGEST_METADATA)
        text = as_utf8(data, partial(FileFormatError.at, metadata)).decode()
        known = YAML(typ="safe", pure=True).load(text)["rosbag2_bagfile_information"]
        if known.get("compression_format"):  # of files or messages, whose size is not known before
            reason = "is compressed: 'ros2 bag convert' makes one that is not, or compressed MCAP"
            raise FileFormatError.at(path, reason)
        frames = json.loads((known.get("custom_data") or {}).get(_FRAMES, "{}"))
        return {str(topic): str(frame) for topic, frame in frames.items()}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the bag in errors of its readers, which raise what they like."""
    try:
        yield
    except TmkitError:
        raise
    except Exception as error:
        raise FileFormatError.at(
            path, f"is no bag that can be read: {type(error).__name__}: {error}"
        ) from error


def _rosbags() -> tuple[Any, Any]:
    """Return the module for ROS 2 bags and the types of messages, those of ROS 2 Jazzy."""
    with importing("rosbags", "world", "bags need"):
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_typestore
    return rosbag2, get_typestore(Stores.ROS2_JAZZY)


class BagRecorder(Closing):
    """Records versions of a world to a bag: poses, static poses, covariances and values of joints.

    Stamped poses become ``/tf``, poses of fixed and free frames without stamps ``/tf_static``,
    histories of joints ``/joint_states``. Poses with a covariance also become a topic
    ``/poses/FRAME`` of ``PoseWithCovarianceStamped``, with stamp 0 where the pose is static. Joints
    themselves, shapes and attributes have no message. A context manager::

        with BagRecorder("run") as recorder:
            remove = buffer.on_change(recorder.record)

    Args:
        path: the folder that is made.
        storage: ``mcap`` or ``sqlite3``.

    Raises:
        OutputError: something is there, or cannot be written.
        MissingExtraError: ``rosbags`` is not installed.
    """

    def __init__(self, path: str | Path, *, storage: Literal["mcap", "sqlite3"] = "mcap") -> None:
        rosbag2, self._store = _rosbags()
        plugins = {plugin.name.lower(): plugin for plugin in rosbag2.StoragePlugin}
        if storage not in plugins:
            raise UnknownNameError.of("storage", storage, plugins)
        self._path, self._last = Path(path), SceneGraph(root=None)
        self._early: int | None = None  # the time of static messages: they come before all others
        self._held: list[_Message] = []
        self._topics: dict[str, Any] = {}
        self._frames: dict[str, str] = {}
        with self._writing():
            self._writer = rosbag2.Writer(self._path, version=9, storage_plugin=plugins[storage])
            self._writer.open()

    def close(self) -> None:
        """Write what remains, after which the bag can be read."""
        with self._writing():
            self._write([])
            self._writer.set_custom_data(_FRAMES, json.dumps(self._frames))
            self._writer.close()
            write_checksums(self._path)

    def record(self, scene: SceneGraph) -> None:
        """Write what is new in a version since the last that was recorded. O(changes).

        Raises:
            OutputError: it cannot be written.
        """
        new = list(self._messages(scene))
        self._last = scene
        timed = [message for message in new if message[0] >= 0]
        if timed:
            self._early = max(min(message[0] for message in timed) - 1, 0)
        self._held += [message for message in new if message[0] < 0]
        if self._early is not None:
            self._write(timed)

    def _write(self, timed: list[_Message]) -> None:
        """Write messages by time, after the static ones that were held back until a time was known."""
        early = self._early or 0
        messages = sorted(
            [*((early, *rest) for _, *rest in self._held), *timed], key=lambda message: message[:2]
        )
        self._held = []
        with self._writing():
            for nanoseconds, topic, kind, message in messages:
                if topic not in self._topics:
                    self._topics[topic] = self._connection(topic, kind)
                self._writer.write(
                    self._topics[topic], nanoseconds, self._store.serialize_cdr(message, kind)
                )

    def _messages(self, scene: SceneGraph) -> Iterator[_Message]:
        """Yield time in nanoseconds (-1 of what is static), topic, type and message of what is new."""
        types = self._store.types
        before, after = self._last, scene
        new = [
            frame
            for change in diff(before, after).frames
            if change.after
            for frame in [change.after.name]
        ]
        tf: list[tuple[tuple[int, int], str, Pose, bool]] = []
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
                known = after.stamped_poses(frame)
                if known is None:
                    tf.append(((0, 0), frame, after.local_pose(frame), True))
                    continue
                was = (
                    before.stamped_poses(frame)
                    if frame in before and before.parent(frame) == parent
                    else None
                )
                old = set() if was is None else {*was.stamps}
                if was is not None and not np.array_equal(
                    before.edge_covariance(frame), after.edge_covariance(frame)
                ):
                    old.difference_update(known.stamps[-1:])  # once more, with its covariance
                for stamp, pose in zip(known.stamps.tolist(), known.poses, strict=True):
                    if stamp not in old:
                        tf.append((seconds_and_nanoseconds(stamp), frame, pose, False))
        for stamp, frame, pose, is_static in tf:
            parent = str(after.parent(frame))
            when, topic = (-1, "/tf_static") if is_static else (_nanoseconds(stamp), "/tf")
            transform = transform_message(pose, parent, frame, stamp)
            made = self._made(transform, "geometry_msgs/msg/TransformStamped")
            yield when, topic, _TF, types[_TF](transforms=[made])
            covariance = after.edge_covariance(frame)
            if covariance.any():
                topic = self._topic_of(frame)
                ros = to_ros_pose(GaussianPose(pose, covariance))
                fields = {
                    "header": transform.header,
                    "pose": {**ros, "covariance": np.array(ros["covariance"])},
                }
                yield when, topic, _POSE, self._made(fields, _POSE)
        for time, values in joints.items():
            stamp = seconds_and_nanoseconds(time)
            header = {"stamp": {"sec": stamp[0], "nanosec": stamp[1]}, "frame_id": ""}
            fields = {"header": header, "name": [*values], "position": np.array([*values.values()])}
            fields |= dict.fromkeys(("velocity", "effort"), np.zeros(0))
            yield _nanoseconds(stamp), "/joint_states", _JOINTS, self._made(fields, _JOINTS)

    def _made(self, value: Any, kind: str) -> Any:
        """Return a message of rosbags with the fields of a message or a mapping, whatever their types are called."""
        made = self._store.types[kind]
        given = (
            value
            if isinstance(value, Mapping)
            else {name: getattr(value, name) for name in value.__slots__}
        )
        fields = {}
        for name, hint in made.__annotations__.items():
            if name in given:
                inner = str(hint).replace("__", "/")
                fields[name] = (
                    self._made(given[name], inner) if inner in self._store.types else given[name]
                )
        return made(**fields)

    def _topic_of(self, frame: str) -> str:
        """Return the topic of the poses of a frame; its name has letters, digits and underscores."""
        topic = plain = "/poses/" + re.sub(r"\W", "_", frame, flags=re.ASCII)
        if known := [topic for topic, other in self._frames.items() if other == frame]:
            return known[0]
        while topic in self._frames:
            topic = f"{plain}_{len(self._frames)}"
        self._frames[topic] = frame
        return topic

    def _connection(self, topic: str, kind: str) -> Any:
        from rosbags.interfaces import (
            Qos,
            QosDurability,
            QosHistory,
            QosLiveliness,
            QosReliability,
            QosTime,
        )

        last = QosDurability.TRANSIENT_LOCAL if topic == "/tf_static" else QosDurability.VOLATILE
        ever = QosTime(2147483647, 4294967295)
        qos = Qos(
            QosHistory.KEEP_LAST,
            100,
            QosReliability.RELIABLE,
            last,
            ever,
            ever,
            QosLiveliness.AUTOMATIC,
            ever,
            False,
        )
        return self._writer.add_connection(
            topic, kind, typestore=self._store, offered_qos_profiles=[qos]
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        from rosbags.rosbag2 import WriterError

        try:
            yield
        except (WriterError, OSError) as error:
            message = f"{self._path}: cannot be written: {error}"
            raise OutputError(message, path=str(self._path), reason=str(error)) from error


def _nanoseconds(stamp: tuple[int, int]) -> int:
    return stamp[0] * 1_000_000_000 + stamp[1]
