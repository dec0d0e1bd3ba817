"""Messages of the service, format 1: MessagePack arrays, each value checked when it is read.

A request is ``[format, token, session, number, body]``, an answer ``[format, number, body]``; a
body is an array that begins with its tag. The page on the wire format
(docs/reference/wire_format.md) lists them for other languages. Scenes and differences are records
of :mod:`tmkit.store.encoding`, shapes with arrays blobs of :mod:`tmkit.store.blobs`.

Invariant: reading a message runs no code and reads no file. What its values mean is checked by the
    core.
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
EMPTY = SceneGraph(root=None)
Seven = tuple[float, float, float, float, float, float, float]
Name = Annotated[str, msgspec.Meta(max_length=10_000)]
# 36 numbers, little-endian, row by row
Covariance = Annotated[bytes, msgspec.Meta(min_length=288, max_length=288)]
SessionId = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=60.0)]


class _Message(msgspec.Struct, array_like=True, gc=False):
    pass


class Prefix(_Message):
    """The one value that a request of any format begins with."""

    format: int


class Request(_Message):
    """What a client sends; ``number`` grows with each new request of a session, and stays when it is sent again."""

    format: int
    token: Annotated[str, msgspec.Meta(max_length=1000)]
    session: SessionId
    number: Annotated[int, msgspec.Meta(ge=0)]
    body: msgspec.Raw


class Answer(_Message):
    """What a server sends."""

    format: int
    number: int
    body: msgspec.Raw


class SetPose(_Message, tag="pose"):
    """As :meth:`~tmkit.graph.SceneGraph.set_pose`; the covariance stays when it is None."""

    frame: Name
    pose: Seven
    covariance: Covariance | None = None


class AddStampedPose(_Message, tag="stamped"):
    """As :meth:`~tmkit.graph.SceneGraph.add_stamped_pose`."""

    frame: Name
    pose: Seven
    stamp: float
    covariance: Covariance | None = None


class Reparent(_Message, tag="reparent"):
    """As :meth:`~tmkit.graph.SceneGraph.reparent`: without a pose the frame stays where it is."""

    frame: Name
    parent: Name
    pose: Seven | None = None
    q: list[float] | None = None


class RemoveFrame(_Message, tag="remove"):
    """As :meth:`~tmkit.graph.SceneGraph.remove_frame`."""

    frame: Name
    subtree: bool = False


class SetAttribute(_Message, tag="attribute"):
    """As :meth:`~tmkit.graph.SceneGraph.set_attribute`; None is a value, JSON's null; the stamp is in seconds."""

    frame: Name
    key: Name
    value: Any = None
    stamp: float | None = None


class Change(_Message, tag="change"):
    """Any edit: the difference to a version of the world, or with base -1 to the empty scene, such as new frames."""

    base: int
    record: bytes


Operation = SetPose | AddStampedPose | Reparent | RemoveFrame | SetAttribute | Change


class Edit(_Message, tag="edit"):
    """Operations that make one version, all or none; refused unless ``version``, if given, is that of now."""

    operations: list[Operation]
    world: bytes = b""
    version: int | None = None


class PutBlob(_Message, tag="put blob"):
    """A shape with arrays, sent before the change that names it."""

    data: bytes


class PoseQuery(_Message):
    """A pose of one frame relative to another one, or to its root."""

    frame: Name
    relative_to: Name | None = None
    covariance: bool = True
    q: list[float] | None = None
    stamp: float | None = None


class Poses(_Message, tag="poses"):
    """Poses in one version; answered by a list of (seven numbers, covariance or None)."""

    queries: list[PoseQuery]


class Look(_Message, tag="look"):
    """A question about the tree or a frame, by its name in :data:`tmkit.world.service.server.LOOKS`."""

    what: str
    name: Name = ""


class Frames(_Message, tag="frames"):
    """All that the world says of some frames; answered by a :class:`View`."""

    names: list[Name]


class Fetch(_Message, tag="fetch"):
    """A whole version, that of now by default."""

    version: int | None = None


class Filter(_Message):
    """Which frames a client follows: those for which all that is given holds."""

    subtree: Name | None = None  # the frame and all below it
    classes: list[Name] = []  # has one of them
    # its origin lies within this distance of the frame's, metres
    near: tuple[Name, float] | None = None
    q: list[float] | None = None  # the configuration at which; zero by default


class Follow(_Message, tag="follow"):
    """Changes since a version, as soon as there are some; those of the filter as a :class:`View`.

    ``delay`` has no effect: a client that wants fewer answers sends its next request later.
    """

    world: bytes
    since: int  # -1: nothing is known yet
    wait: Seconds = 10.0  # until the answer says that nothing is new
    delay: Seconds = 0.0
    filter: Filter | None = None


class GetBlob(_Message, tag="get blob"):
    """A shape with arrays, by digest."""

    digest: Annotated[str, msgspec.Meta(max_length=100)]


class GetStatus(_Message, tag="status"):
    """Version, fingerprint and counts of the server."""


Body = Edit | PutBlob | Poses | Look | Frames | Fetch | Follow | GetBlob | GetStatus


class Refused(_Message, tag="refused"):
    """Why a request had no effect."""

    kind: str
    reason: str


class Done(_Message, tag="done"):
    """The version in which an edit is."""

    world: bytes
    version: int


class Value(_Message, tag="value"):
    """The answer to :class:`Poses` and :class:`Look`."""

    value: Any


class Whole(_Message, tag="whole"):
    """A version as the difference to the empty scene."""

    world: bytes
    version: int
    record: bytes


class Changes(_Message, tag="changes"):
    """The difference of a version to the one that the client has; empty, with a fingerprint, when there is none."""

    version: int
    record: bytes
    fingerprint: str = ""


class View(_Message, tag="view"):
    """What is new of the frames that are followed: names of those that left, and whole the others."""

    world: bytes
    since: int  # the client's version; -1: it forgets what it knew
    version: int
    gone: list[str]
    record: bytes


class Blob(_Message, tag="blob"):
    """A shape with arrays."""

    data: bytes


class ServiceStatus(_Message, tag="status"):
    """What a server says of itself.

    Attributes:
        world: 16 bytes, its identity; a server that recovers from a log keeps it.
        version: number of the version of now.
        frames: how many it has.
        fingerprint: of its content.
        counts: messages, edits and refusals by kind, since the server began.
    """

    world: bytes
    version: int
    frames: int
    fingerprint: str
    counts: dict[str, int]


Reply = Refused | Done | Value | Whole | Changes | View | Blob | ServiceStatus
encode = msgspec.msgpack.Encoder().encode
_INTEGER = 1
"""Code of the extension type of integers beyond 64 bits."""


def sent(value: object) -> Any:
    """Return an attribute as it is sent: integers beyond 64 bits are decimal text of an extension type."""
    if isinstance(value, dict):
        return {key: sent(item) for key, item in value.items()}
    if isinstance(value, list):
        return [sent(item) for item in value]
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**64
    return msgspec.msgpack.Ext(_INTEGER, str(value).encode()) if is_long else value


def received(code: int, data: memoryview) -> int:
    """Return the value of an extension type; ValueError where it is none that :func:`sent` makes."""
    if code != _INTEGER:
        raise ValueError(f"there is no extension type {code}")
    return int(bytes(data[:1_000]))


bodies: msgspec.msgpack.Decoder[Body] = msgspec.msgpack.Decoder(Body, ext_hook=received)
replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, ext_hook=received)


def apply(
    operation: SetPose | AddStampedPose | Reparent | RemoveFrame | SetAttribute, edit: SceneEdit
) -> None:
    """Make an edit."""
    match operation:
        case SetPose(frame, pose):
            edit.set_pose(frame, Pose.from_array(pose))
        case AddStampedPose(frame, pose, stamp):
            edit.add_stamped_pose(frame, Pose.from_array(pose), stamp=stamp)
        case Reparent(frame, parent, pose, q):
            placed = None if pose is None else Pose.from_array(pose)
            edit.reparent(frame, parent, pose=placed, q=None if q is None else np.array(q))
        case RemoveFrame(frame, subtree):
            edit.remove_frame(frame, subtree=subtree)
        case SetAttribute(frame, key, value, stamp):
            edit.set_attribute(frame, key, value if stamp is None else Stamped(value, stamp))
    if isinstance(operation, SetPose | AddStampedPose) and operation.covariance is not None:
        edit.set_covariance(operation.frame, matrix(operation.covariance))


def matrix(data: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the (6, 6) matrix of a covariance."""
    return np.ndarray((6, 6), "<f8", data)


def record_of_frames(
    frames: Sequence[FrameSpecification], scene: SceneGraph, writer: DifferenceWriter
) -> bytes:
    """Return the record of frames alone, as if they were new."""
    difference = SceneDifference(
        [FrameDifference(k + 1, None, frame) for k, frame in enumerate(frames)]
    )
    return writer.encode(difference, scene) or b""


class SourceKeys:
    """Noise sources and their names on the wire: 16 bytes, unique in all processes, so that errors stay correlated."""

    def __init__(self) -> None:
        self._keys: dict[NoiseSource, bytes] = {}
        self._sources: dict[bytes, NoiseSource] = {}
        self._room = 10_000
        self._prefix, self._numbers = os.urandom(8), itertools.count()

    def key(self, source: NoiseSource, _place: int = 0) -> bytes:
        """Return the key of a source, a new one for a new source."""
        key = self._keys.get(source)
        if key is None:
            key = self._keys[source] = self._prefix + next(self._numbers).to_bytes(8, "little")
            self._sources[key] = source
        return key

    def source(self, key: bytes, dimension: int, label: str) -> NoiseSource:
        """Return the source of a key; ValueError where it is none, or that of a source of another dimension."""
        known = self._sources.get(key)
        if known is None:
            if len(key) != 16:
                raise ValueError("the key of a noise source has 16 bytes")
            known = self._sources[key] = NoiseSource(dimension, label[:1000])
            self._keys[known] = key
        if known.dimension != dimension:
            raise ValueError(f"noise source {key.hex()} has two dimensions")
        return known

    def forget(self, scene: SceneGraph) -> None:
        """Forget now and then the sources that a scene lacks: nothing else holds them for long. O(1) in the mean."""
        if len(self._keys) > self._room:
            noises = [noise for f in scene.noisy_frames if (noise := scene.noise(f)) is not None]
            noises += [
                f.twist_noise
                for n in scene.twist_frames
                if (f := scene.specification(n)).twist_noise
            ]
            self._keys = {
                s: self._keys[s] for noise in noises for s in noise.sources if s in self._keys
            }
            self._sources = {key: source for source, key in self._keys.items()}
            self._room = 10_000 + 2 * len(self._keys)


def shape_named(scene: SceneGraph, digest: str) -> Shape | None:
    """Return a shape of a scene by its digest. O(n)."""
    parts = (part for frame in scene.frame_names for part in scene.shapes(frame))
    return next((part.shape for part in parts if part.shape.digest == digest), None)
