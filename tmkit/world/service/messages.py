"""Messages of the service, format 1: MessagePack arrays, with checked values.

A request is ``[format, token, session, number, body]``, a reply ``[format, number, body]``. A
body is an array that begins with its tag. The page on the wire format
(docs/reference/wire_format.md) lists the messages for other languages. Scenes and differences are
records of :mod:`tmkit.store.encoding`, shapes with arrays are blobs of :mod:`tmkit.store.blobs`.

Invariant: reading a message runs no code and reads no file. The core checks the meaning of its
    values.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tmkit._core import FrameDifference, SceneDifference
from tmkit._support.extras import importing
from tmkit.graph import FrameSpecification, NoiseSource, SceneEdit, SceneGraph, Shape
from tmkit.graph.traversal import Stamped
from tmkit.spatial import Pose
from tmkit.store.encoding import DifferenceWriter

with importing("msgspec", "world", "a served world needs"):
    import msgspec

FORMAT = 1
"""Format of the messages."""

EMPTY = SceneGraph(root=None)
"""Scene without frames, the base of whole scenes."""

PoseValues = tuple[float, float, float, float, float, float, float]
"""Translation [m] and quaternion (x, y, z, w)."""

Name = Annotated[str, msgspec.Meta(max_length=10_000)]
"""Name of a frame, class or attribute."""

Covariance = Annotated[bytes, msgspec.Meta(min_length=288, max_length=288)]
"""36 little-endian doubles, row by row."""

SessionId = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
"""Random identity of a client."""

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=60.0)]
"""Duration [s]."""


class _Message(msgspec.Struct, array_like=True, gc=False):
    """Message that is encoded as an array of its fields."""


class Prefix(_Message):
    """First value of a request of any format."""

    format: int


class Request(_Message):
    """Request of a client. A new request of a session has a greater number, a retry the same."""

    format: int
    token: Annotated[str, msgspec.Meta(max_length=1000)]
    session: SessionId
    number: Annotated[int, msgspec.Meta(ge=0)]
    body: msgspec.Raw


class Answer(_Message):
    """Answer of a server."""

    format: int
    number: int
    body: msgspec.Raw


class SetPose(_Message, tag="pose"):
    """Edit as :meth:`~tmkit.graph.SceneGraph.set_pose`. The covariance stays by default."""

    frame: Name
    pose: PoseValues
    covariance: Covariance | None = None


class AddStampedPose(_Message, tag="stamped"):
    """Edit as :meth:`~tmkit.graph.SceneGraph.add_stamped_pose`."""

    frame: Name
    pose: PoseValues
    stamp: float
    covariance: Covariance | None = None


class Reparent(_Message, tag="reparent"):
    """Edit as :meth:`~tmkit.graph.SceneGraph.reparent`. The frame stays in place by default."""

    frame: Name
    parent: Name
    pose: PoseValues | None = None
    q: list[float] | None = None


class RemoveFrame(_Message, tag="remove"):
    """Edit as :meth:`~tmkit.graph.SceneGraph.remove_frame`."""

    frame: Name
    subtree: bool = False


class SetAttribute(_Message, tag="attribute"):
    """Edit as :meth:`~tmkit.graph.SceneGraph.set_attribute`, with a stamp [s].

    The value None is JSON's null.
    """

    frame: Name
    key: Name
    value: Any = None
    stamp: float | None = None


class Change(_Message, tag="change"):
    """Any edit, as the difference to a version of the world.

    With base -1 it is the difference to the empty scene, as for new frames.
    """

    base: int
    record: bytes


Operation = SetPose | AddStampedPose | Reparent | RemoveFrame | SetAttribute | Change


class Edit(_Message, tag="edit"):
    """Operations that make one version, all or none.

    The edit is rejected if ``version`` is set and is not the present version.
    """

    operations: list[Operation]
    world: bytes = b""
    version: int | None = None


class PutBlob(_Message, tag="put blob"):
    """Shape with arrays, sent before the change that uses it."""

    data: bytes


class PoseQuery(_Message):
    """Pose of a frame relative to another one, or to its root."""

    frame: Name
    relative_to: Name | None = None
    covariance: bool = True
    q: list[float] | None = None
    stamp: float | None = None


class Poses(_Message, tag="poses"):
    """Query of poses in one version. The reply is a list of (seven numbers, covariance)."""

    queries: list[PoseQuery]


class Look(_Message, tag="look"):
    """Query of the tree or a frame, by its name in :data:`tmkit.world.service.server.LOOKS`."""

    what: str
    name: Name = ""


class Frames(_Message, tag="frames"):
    """Query of whole frames. The reply is a :class:`View`."""

    names: list[Name]


class Fetch(_Message, tag="fetch"):
    """Query of a whole version, by default the present one."""

    version: int | None = None


class Filter(_Message):
    """Selection of the frames that a client follows: those that meet all conditions.

    Attributes:
        subtree: root of the subtree of the frames.
        classes: classes, one of which each frame has.
        near: center frame, and largest distance between the origins [m].
        q: configuration of that distance. Zero by default.
    """

    subtree: Name | None = None
    classes: list[Name] = []
    near: tuple[Name, float] | None = None
    q: list[float] | None = None


class Follow(_Message, tag="follow"):
    """Query of the changes since a version, answered after the next change.

    With a filter, the reply is a :class:`View`.

    Attributes:
        world: identity of the world.
        since: version of the client, -1 for none.
        wait: time after which the reply is empty.
        delay: without effect. A client delays its next request in place of it.
        filter: selection of frames.
    """

    world: bytes
    since: int
    wait: Seconds = 10.0
    delay: Seconds = 0.0
    filter: Filter | None = None


class GetBlob(_Message, tag="get blob"):
    """Query of a shape with arrays, by digest."""

    digest: Annotated[str, msgspec.Meta(max_length=100)]


class GetStatus(_Message, tag="status"):
    """Query of the version, fingerprint and counts of the server."""


Body = Edit | PutBlob | Poses | Look | Frames | Fetch | Follow | GetBlob | GetStatus


class Rejected(_Message, tag="refused"):
    """Reason for which a request had no effect."""

    kind: str
    reason: str


class Done(_Message, tag="done"):
    """Version of an edit."""

    world: bytes
    version: int


class Value(_Message, tag="value"):
    """Answer to :class:`Poses` and :class:`Look`."""

    value: Any


class Whole(_Message, tag="whole"):
    """Version as the difference to the empty scene."""

    world: bytes
    version: int
    record: bytes


class Changes(_Message, tag="changes"):
    """Difference of a version to that of the client; empty, with a fingerprint, if unchanged."""

    version: int
    record: bytes
    fingerprint: str = ""


class View(_Message, tag="view"):
    """Changes of the frames that a client follows.

    Attributes:
        world: identity of the world.
        since: version of the client; -1 if earlier changes are void.
        version: version of the server.
        gone: names of frames that are removed or outside of the filter.
        record: record of the whole new and changed frames.
    """

    world: bytes
    since: int
    version: int
    gone: list[str]
    record: bytes


class Blob(_Message, tag="blob"):
    """Shape with arrays."""

    data: bytes


class ServiceStatus(_Message, tag="status"):
    """State of a server.

    Attributes:
        world: identity of the world (16 bytes), which a server restores from a log.
        version: number of the present version.
        frames: number of frames.
        fingerprint: fingerprint of the content.
        counts: messages, edits and rejections by kind, since the start of the server.
    """

    world: bytes
    version: int
    frames: int
    fingerprint: str
    counts: dict[str, int]


Reply = Rejected | Done | Value | Whole | Changes | View | Blob | ServiceStatus
encode = msgspec.msgpack.Encoder().encode
"""Encoder of messages."""

_LONG_INTEGER_CODE = 1
"""Code of the extension type of integers beyond 64 bits."""

_MIN_PRUNED_SOURCES = 10_000
"""Number of noise sources below which none are pruned."""


def encode_attribute(value: object) -> Any:
    """Return an attribute as it is sent, with integers beyond 64 bits as decimal text."""
    if isinstance(value, dict):
        return {key: encode_attribute(item) for key, item in value.items()}
    if isinstance(value, list):
        return [encode_attribute(item) for item in value]
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**64
    return msgspec.msgpack.Ext(_LONG_INTEGER_CODE, str(value).encode()) if is_long else value


def decode_extension(code: int, data: memoryview) -> int:
    """Return the value of an extension type.

    Raises:
        ValueError: if :func:`encode_attribute` does not create the type.
    """
    if code != _LONG_INTEGER_CODE:
        raise ValueError(f"there is no extension type {code}")
    return int(bytes(data[:1_000]))


bodies: msgspec.msgpack.Decoder[Body] = msgspec.msgpack.Decoder(Body, ext_hook=decode_extension)
replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, ext_hook=decode_extension)


def apply(
    operation: SetPose | AddStampedPose | Reparent | RemoveFrame | SetAttribute, edit: SceneEdit
) -> None:
    """Apply an operation to an edit of a scene."""
    match operation:
        case SetPose(frame, pose):
            edit.set_pose(frame, Pose.from_array(pose))
        case AddStampedPose(frame, pose, stamp, data):
            covariance = None if data is None else covariance_matrix(data)
            edit.add_stamped_pose(frame, Pose.from_array(pose), stamp=stamp, covariance=covariance)
        case Reparent(frame, parent, pose, q):
            edit.reparent(
                frame,
                parent,
                pose=None if pose is None else Pose.from_array(pose),
                q=None if q is None else np.array(q),
            )
        case RemoveFrame(frame, subtree):
            edit.remove_frame(frame, subtree=subtree)
        case SetAttribute(frame, key, value, stamp):
            edit.set_attribute(frame, key, value if stamp is None else Stamped(value, stamp))
    if isinstance(operation, SetPose) and operation.covariance is not None:
        edit.set_covariance(operation.frame, covariance_matrix(operation.covariance))


def covariance_matrix(data: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the (6, 6) matrix of a covariance."""
    return np.ndarray((6, 6), "<f8", data)


def encode_frames(
    frames: Sequence[FrameSpecification], scene: SceneGraph, writer: DifferenceWriter
) -> bytes:
    """Return the record of frames as if they were new."""
    difference = SceneDifference(
        [FrameDifference(number, None, frame) for number, frame in enumerate(frames, start=1)]
    )
    return writer.encode(difference, scene) or b""


class SourceKeys:
    """Keys of noise sources in messages: 16 bytes, unique in all processes.

    They keep errors correlated across processes.
    """

    def __init__(self) -> None:
        self._keys: dict[NoiseSource, bytes] = {}
        self._sources: dict[bytes, NoiseSource] = {}
        self._prune_size = _MIN_PRUNED_SOURCES
        self._prefix, self._numbers = os.urandom(8), itertools.count()

    def key(self, source: NoiseSource, _place: int = 0) -> bytes:
        """Return the key of a source, a new one for a new source."""
        key = self._keys.get(source)
        if key is None:
            key = self._keys[source] = self._prefix + next(self._numbers).to_bytes(8, "little")
            self._sources[key] = source
        return key

    def source(self, key: bytes, dimension: int, label: str) -> NoiseSource:
        """Return the source of a key, a new one for a new key.

        Raises:
            ValueError: if the key has not 16 bytes, or its source has another dimension.
        """
        source = self._sources.get(key)
        if source is None:
            if len(key) != 16:
                raise ValueError("the key of a noise source has 16 bytes")
            source = self._sources[key] = NoiseSource(dimension, label[:1000])
            self._keys[source] = key
        if source.dimension != dimension:
            raise ValueError(f"noise source {key.hex()} has two dimensions")
        return source

    def prune(self, scene: SceneGraph) -> None:
        """Remove the sources that a scene lacks, if there are many. O(1) amortized.

        Nothing else references these sources for long.
        """
        if len(self._keys) <= self._prune_size:
            return
        noises = [scene.noise(frame) for frame in scene.noisy_frames]
        noises += [scene.specification(frame).twist_noise for frame in scene.twist_frames]
        self._keys = {
            source: self._keys[source]
            for noise in noises
            if noise is not None
            for source in noise.sources
            if source in self._keys
        }
        self._sources = {key: source for source, key in self._keys.items()}
        self._prune_size = _MIN_PRUNED_SOURCES + 2 * len(self._keys)


def find_shape(scene: SceneGraph, digest: str) -> Shape | None:
    """Return a shape of a scene by its digest, None if it has none. O(n)."""
    parts = (part for frame in scene.frame_names for part in scene.shapes(frame))
    return next((part.shape for part in parts if part.shape.digest == digest), None)
