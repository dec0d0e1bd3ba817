"""Encoding of differences between versions as bytes, and merging of scenes.

A record is a MessagePack array of a difference between two versions. It has the new and changed
frames, whole and with their ids, and the names of the removed frames. It also has the changed
pairs, groups, and bodies without frames. Decoding needs the first version, so a record repeats
nothing of it. A whole scene is the difference to an empty scene.

A frame is an array of up to thirteen values, in the order of :class:`FrameRecord`, without the
empty values at the end. A pose has seven numbers, a number eight bytes, and a matrix has
little-endian bytes by rows. Each shape is listed once: a primitive by its kind and dimensions,
others by the digest of their blob (:mod:`tmkit.store.blobs`). Noise sources are listed by a key of
16 bytes, their identity in the store, so versions that share a source when stored share it when
read.

Invariants: decoding runs no code. It checks the form of a record, and the core checks its content.

:func:`merge_scenes` is a three-way merge by frames, over the difference of each side to the base. A
frame, allowed pair or group that only one side changed is taken from that side. If both sides
changed it equally, it is taken once. If they changed it differently, in whichever fields, this is a
*conflict*. Frames of the base are matched by identity, and new frames by name. The rest of their
difference is applied to our version. It is a conflict too if this fails, for example because a
parent is missing or a rule of scenes is violated. A merge is complete, or it raises an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tmkit import graph
from tmkit._core import EdgeNoise, FrameDifference, Group, SceneDifference, StampedPoses
from tmkit._support.extras import importing
from tmkit._support.limits import MAX_SOURCE_DIMENSION
from tmkit.errors import MergeConflictError, StoreError, TmkitError
from tmkit.graph import FrameSpecification, NoiseSource, SceneGraph, Shape, diff
from tmkit.spatial import Pose

with importing("msgspec", "world", "a store of scenes needs"):
    import msgspec

PoseRecord = tuple[float, float, float, float, float, float, float]
"""Position and quaternion (x, y, z, w)."""

Index = Annotated[int, msgspec.Meta(ge=0)]
"""Index into a list of the record."""

CovarianceRecord = Annotated[bytes, msgspec.Meta(min_length=288, max_length=288)]
"""Matrix (6, 6) by rows."""

NoiseRecord = tuple[bytes, list[tuple[Index, bytes]]]
"""Covariance; index and map of each source."""


class StampsRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Values of :class:`~tmkit.graph.StampedPoses`.

    Attributes:
        capacity: largest number of poses.
        window: largest time between the oldest and the newest [s].
        poses: stamp and pose.
        covariances: covariance of each pose; None: that of the edge. Empty if all are None.
    """

    capacity: int
    window: float
    poses: list[tuple[float, PoseRecord]]
    covariances: list[CovarianceRecord | None] = []


ShapeRecord = tuple[
    Index, PoseRecord, list[float] | None, bool, bool, float | None, str | None, float | None
]
"""Index of the shape, pose, color, visual, collision, friction, level, stamp."""

GroupRecord = tuple[list[str], list[str], list[str], str | None]
"""Frames, groups, parents, attributes."""

JointState = tuple[
    int,
    tuple[float, float, float],
    float,
    float,
    float,
    float,
    float,
    float,
    str,
    tuple[str, float, float] | None,
]
_PRIMITIVES: dict[str, Callable[..., Shape]] = {
    "box": lambda *size: graph.Box(size),
    "sphere": graph.Sphere,
    "cylinder": graph.Cylinder,
    "cone": graph.Cone,
    "capsule": graph.Capsule,
    "plane": graph.Plane,
}


class FrameRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Values of a :class:`~tmkit.graph.FrameSpecification`.

    Attributes:
        name: name of the frame.
        parent: name of the parent.
        pose: pose relative to the parent.
        body: name of the body; None for the name of the frame.
        joint: state of the joint; None for a fixed one.
        classes: names of the classes.
        shapes: attached shapes.
        inertia: mass, center and matrix.
        attributes: attributes and their stamps as JSON text.
        twist: representation and coordinates.
        stamps: capacity, window, pairs of stamp and pose, and the covariance of each pose if any
            has one.
        noise: noise of the pose.
        twist_noise: noise of the twist.
    """

    name: str
    parent: str | None
    pose: PoseRecord
    body: str | None = None
    joint: JointState | None = None
    classes: list[str] = []
    shapes: list[ShapeRecord] = []
    inertia: tuple[float, bytes, bytes] | None = None
    attributes: str | None = None
    twist: tuple[str, bytes] | None = None
    stamps: StampsRecord | None = None
    noise: NoiseRecord | None = None
    twist_noise: NoiseRecord | None = None


class DifferenceRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Values of a difference.

    Attributes:
        frames: id, previous name and new values of each changed frame.
        shapes: kind and dimensions, or digest and source label, of each shape.
        sources: key, dimension and label of each noise source.
        pairs: the two frames, previous and new reason of each changed pair.
        groups: name and new values of each changed group.
        bodies_before: removed bodies without frames.
        bodies_after: new bodies without frames.
    """

    frames: list[tuple[int, str | None, FrameRecord | None]]
    shapes: list[tuple[str, list[float] | str]] = []
    sources: list[tuple[bytes, int, str]] = []
    pairs: list[tuple[str, str, str | None, str | None]] = []
    groups: list[tuple[str, GroupRecord | None]] = []
    bodies_before: list[str] = []
    bodies_after: list[str] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(DifferenceRecord)


class DifferenceWriter:
    """Encoder of differences.

    Args:
        source_key: returns the key of a noise source, from the source and its index in the record.
    """

    def __init__(self, source_key: Callable[[NoiseSource, int], bytes] = lambda *_: b"") -> None:
        self._shapes: dict[Shape, int] = {}
        self._sources: dict[NoiseSource, int] = {}
        self._source_key = source_key

    def encode(self, difference: SceneDifference, after: SceneGraph) -> bytes | None:
        """Return the bytes of a difference, or None if a name moves to another frame.

        Such a difference has no order in which its edits apply.

        Args:
            difference: the difference.
            after: the second version.

        Raises:
            StoreError: if a noise source has too many dimensions.
        """
        frames = []
        removed_names = set()
        new_names = set()
        for frame in difference.frames:
            old_name = frame.before and frame.before.name
            new_name = frame.after and frame.after.name
            if old_name != new_name:
                removed_names.add(old_name)
                new_names.add(new_name)
            values = None if frame.after is None else self.frame(frame.after)
            frames.append((frame.frame_id, old_name, values))
        if removed_names & new_names - {None}:
            return None
        groups = [(name, group_record(after, name)) for name in difference.groups]
        # A pair is removed with its frames.
        pairs = [
            pair
            for pair in difference.pairs
            if pair[3] is not None or (pair[0] in after and pair[1] in after)
        ]
        shapes = [
            (s.kind, s.dimensions) if s.kind in _PRIMITIVES else (s.digest, s.source)
            for s in self._shapes
        ]
        for source in self._sources:
            if source.dimension > MAX_SOURCE_DIMENSION:
                reason = f"noise source '{source.label}' has {source.dimension:,} dimensions"
                raise StoreError(f"{reason}; a record has at most {MAX_SOURCE_DIMENSION:,}")
        sources = [
            (self._source_key(s, index), s.dimension, s.label) for s, index in self._sources.items()
        ]
        rest = [shapes, sources, pairs, groups, difference.bodies_before, difference.bodies_after]
        return _encoder.encode([frames, *_trim(rest)])

    def blobs(self) -> list[Shape]:
        """Return the shapes that the record refers to by digest."""
        return [shape for shape in self._shapes if shape.kind not in _PRIMITIVES]

    def frame(self, frame: FrameSpecification) -> list[Any]:
        """Return the values of a :class:`FrameRecord`."""
        inertia = frame.inertia
        twist = frame.twist
        optional_values = [
            None if frame.body == frame.name else frame.body,
            None if frame.joint == graph.Fixed() else _joint_state(frame.joint),
            frame.classes,
            [self._shape_values(part) for part in frame.shapes],
            inertia and (inertia.mass, _bytes(inertia.center), _bytes(inertia.matrix)),
            _attributes_text(frame) if frame.attributes else None,
            twist and (twist[0], _bytes(twist[1])),
            None if frame.stamps is None else _stamps_record(frame.stamps),
            frame.noise and self._noise_values(frame.noise),
            frame.twist_noise and self._noise_values(frame.twist_noise),
        ]
        pose = frame.pose.as_array().tolist()
        return [frame.name, frame.parent, pose, *_trim(optional_values)]

    def _shape_values(self, part: graph.AttachedShape) -> list[Any]:
        """Return the values of a :data:`ShapeRecord`."""
        index = self._shapes.setdefault(part.shape, len(self._shapes))
        color = None if part.color is None else np.asarray(part.color).tolist()
        pose = part.pose.as_array().tolist()
        return [
            index,
            pose,
            color,
            part.visual,
            part.collision,
            part.friction,
            part.level,
            part.stamp,
        ]

    def _noise_values(self, noise: EdgeNoise) -> tuple[bytes, list[Any]]:
        """Return the values of a :data:`NoiseRecord`."""
        maps = [
            (self._sources.setdefault(s, len(self._sources)), _bytes(noise.map(s)))
            for s in noise.sources
        ]
        return _bytes(noise.covariance), maps


def decode_difference(
    data: bytes,
    base: SceneGraph,
    *,
    shape: Callable[[str, str], Shape],
    source: Callable[[bytes, int, str], NoiseSource],
) -> SceneDifference:
    """Return the difference of a record.

    Args:
        data: bytes of the record.
        base: the first version.
        shape: function that returns the shape of a blob, by digest and source label.
        source: returns the noise source of a key, with its dimension and label.

    Raises:
        ValueError: if the bytes are not a record, or one that does not fit the version.
    """
    return _difference(_decoder.decode(data), base, shape, source)


class Replay:
    """Sequential application of records to a version.

    Consecutive records that only change frames are applied together, by the last values of each
    frame.

    Args:
        scene: the first version.
        shape: function that returns the shape of a blob, by the version before its record, digest
            and source label.
        source: as for :func:`decode_difference`.
    """

    def __init__(
        self,
        scene: SceneGraph,
        *,
        shape: Callable[[SceneGraph, str, str], Shape],
        source: Callable[[bytes, int, str], NoiseSource],
    ) -> None:
        self._scene = scene
        self._shape = shape
        self._source = source
        self._pending: dict[str, tuple[int, FrameRecord, list[tuple[bytes, int, str]]]] = {}

    def add(self, data: bytes) -> None:
        """Apply a record, at the latest at :meth:`finish`.

        Raises:
            ValueError: if the bytes are not a record, or one that does not fit the version.
        """
        record = _decoder.decode(data)
        has_frames_only = not (
            record.shapes
            or record.pairs
            or record.groups
            or record.bodies_before
            or record.bodies_after
        )
        if has_frames_only:
            changes = [
                (name, (frame_id, frame, record.sources))
                for frame_id, name, frame in record.frames
                if frame is not None and name == frame.name
            ]
            if len(changes) == len(record.frames):
                self._pending.update(changes)
                return
        scene = self.finish()
        self._scene = scene.apply(
            _difference(record, scene, partial(self._shape, scene), self._source)
        )

    def finish(self) -> SceneGraph:
        """Return the version after all records.

        Raises:
            ValueError: if a record does not fit the version.
        """
        if self._pending:
            scene = self._scene
            frames = []
            for name, (frame_id, record, source_records) in self._pending.items():
                indices = {
                    index
                    for noise in (record.noise, record.twist_noise)
                    if noise
                    for index, _ in noise[1]
                }
                sources = {index: _source(source_records[index], self._source) for index in indices}
                after = _frame_of(record, [], sources)
                frames.append(FrameDifference(frame_id, scene.specification(name), after))
            self._scene = scene.apply(SceneDifference(frames))
            self._pending.clear()
        return self._scene


def _difference(
    record: DifferenceRecord,
    base: SceneGraph,
    shape: Callable[[str, str], Shape],
    source: Callable[[bytes, int, str], NoiseSource],
) -> SceneDifference:
    shapes = [
        shape(kind, value) if isinstance(value, str) else _primitive(kind, value)
        for kind, value in record.shapes
    ]
    sources = [_source(values, source) for values in record.sources]
    frames = []
    for frame_id, name, values in record.frames:
        before = None if name is None else base.specification(name)
        after = None if values is None else _frame_of(values, shapes, sources)
        frames.append(FrameDifference(frame_id, before, after))
    return SceneDifference(
        frames,
        pairs=record.pairs,
        groups=[(name, group_content(group)) for name, group in record.groups],
        bodies_before=record.bodies_before,
        bodies_after=record.bodies_after,
    )


def blob_digests(data: bytes) -> list[str]:
    """Return the digests of the blobs of a record."""
    return [digest for digest, label in _decoder.decode(data).shapes if isinstance(label, str)]


def _source(
    values: tuple[bytes, int, str], source: Callable[[bytes, int, str], NoiseSource]
) -> NoiseSource:
    key, dimension, label = values
    if not 1 <= dimension <= MAX_SOURCE_DIMENSION:
        raise ValueError(f"a noise source has no dimension from 1 to {MAX_SOURCE_DIMENSION}")
    return source(key, dimension, label)


def _frame_of(
    record: FrameRecord,
    shapes: list[Shape],
    sources: Sequence[NoiseSource] | Mapping[int, NoiseSource],
) -> FrameSpecification:
    optional_values: dict[str, Any] = {}
    if record.joint is not None:
        *state, mimic = record.joint
        mimic = mimic and _restore(graph.Mimic, mimic)
        optional_values["joint"] = _restore(graph.Joint, (*state, mimic))
    if record.shapes:
        optional_values["shapes"] = [
            graph.AttachedShape(
                shapes[index],
                Pose.from_array(pose),
                color=color,
                visual=visual,
                collision=collision,
                friction=friction,
                level=level,
            ).replace(stamp=stamp)
            for index, pose, color, visual, collision, friction, level, stamp in record.shapes
        ]
    if record.inertia is not None:
        mass, center, matrix = record.inertia
        # The constructor rejects some inertias that earlier versions stored.
        inertia = graph.Inertia.__new__(graph.Inertia)
        inertia.__setstate__((mass, _numbers(center), _numbers(matrix, 3)))
        optional_values["inertia"] = inertia
    if record.attributes is not None:
        optional_values["attributes"] = _attributes_of(record.attributes)
    if record.twist is not None:
        optional_values["twist"] = (record.twist[0], _numbers(record.twist[1]))
    if record.stamps is not None:
        optional_values["stamps"] = _history_of(record.stamps)
    for key, noise in ("noise", record.noise), ("twist_noise", record.twist_noise):
        if noise is not None:
            maps = {
                sources[index]: _numbers(matrix, sources[index].dimension)
                for index, matrix in noise[1]
            }
            optional_values[key] = EdgeNoise(maps, covariance=_numbers(noise[0], 6))
    if record.classes:
        optional_values["classes"] = record.classes
    frame = FrameSpecification(
        record.name,
        record.parent,
        pose=Pose.from_array(record.pose),
        body=record.body or record.name,
    )
    return frame.replace(**optional_values)


def _trim(values: list[Any]) -> list[Any]:
    """Return values without the empty ones at the end."""
    while values and not values[-1]:
        values.pop()
    return values


def group_record(scene: SceneGraph, name: str) -> GroupRecord | None:
    """Return the record of a group, or None if there is no such group."""
    if name not in scene.group_names:
        return None
    group = scene.group(name)
    return (
        [*group.frames],
        [*group.groups],
        [*group.parents],
        _attributes_text(group) if group.attributes else None,
    )


def group_content(
    record: GroupRecord | None,
) -> tuple[list[str], list[str], list[str], dict[str, Any] | None] | None:
    """Return the content of a record of a group, for a ``SceneDifference``."""
    return record and (*record[:3], None if record[3] is None else _attributes_of(record[3]))


def _joint_state(joint: graph.Joint) -> list[Any]:
    *state, mimic = joint.__getstate__()
    return [*state, mimic and mimic.__getstate__()]


def _restore(cls: Any, state: tuple[Any, ...]) -> Any:
    value = cls.__new__(cls)
    value.__setstate__(state)  # checks the whole state
    return value


def _primitive(kind: str, dimensions: list[float]) -> Shape:
    if kind not in _PRIMITIVES:
        raise ValueError(f"there is no shape of kind '{kind}'")
    return _PRIMITIVES[kind](*dimensions)


def _stamps_record(stamps: StampedPoses) -> list[Any]:
    """Return the values of a :class:`StampsRecord`."""
    rows = zip(np.asarray(stamps.stamps).tolist(), stamps.poses, strict=True)
    poses = [(stamp, pose.as_array().tolist()) for stamp, pose in rows]
    covariances = [None if matrix is None else _bytes(matrix) for matrix in stamps.covariances]
    return _trim([stamps.capacity, stamps.window, poses, covariances if any(covariances) else []])


def _history_of(record: StampsRecord) -> StampedPoses:
    return StampedPoses(
        [stamp for stamp, _ in record.poses],
        [Pose.from_array(pose) for _, pose in record.poses],
        covariances=[data and _numbers(data, 6) for data in record.covariances] or None,
        capacity=record.capacity,
        window=record.window,
    )


def _attributes_text(owner: FrameSpecification | Group) -> str:
    # Imported here, since few scenes have attributes.
    from tmkit.graph.attributes import plain_attributes

    values = [plain_attributes(owner.attributes), plain_attributes(owner.attribute_stamps)]
    return json.dumps(values, separators=(",", ":"))


def _attributes_of(text: str) -> dict[str, Any]:
    values, stamps = json.loads(text)
    return {k: graph.Stamped(v, stamps[k]) if k in stamps else v for k, v in sorted(values.items())}


def _bytes(values: npt.ArrayLike) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def _numbers(data: bytes, columns: int = 0) -> npt.NDArray[np.float64]:
    values = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return values.reshape(-1, columns) if columns else values


_EDIT_KINDS = ("frame", "pair", "group")
"""Kinds of edits of a merge."""


class Conflict(NamedTuple):
    """Frame, pair or group that two versions change differently.

    Attributes:
        kind: ``frame``, ``new frame``, ``pair`` or ``group``; ``rule`` if their edits do not fit
            our version.
        name: name of the frame in the base, or of the new frame or group; ``a and b`` for a pair.
        ours: our edit, as text.
        theirs: their edit, as text.
    """

    kind: str
    name: str
    ours: str
    theirs: str


def merge_scenes(base: SceneGraph, ours: SceneGraph, theirs: SceneGraph) -> SceneGraph:
    """Return our scene with their changes since the base.

    Args:
        base: common ancestor of both versions.
        ours: one version; its new frames come first.
        theirs: the other version.

    Raises:
        MergeConflictError: if both change a frame, pair or group differently, or their edits do not
            fit our version. The error lists all conflicts.
    """
    writer = DifferenceWriter()  # shared, so that both sides number shapes and sources alike
    our_difference = diff(base, ours)
    their_difference = diff(base, theirs)
    our_edits = _edits(our_difference, ours, writer)
    their_edits = _edits(their_difference, theirs, writer)
    conflicts = [
        Conflict(*key, our_edits[key].text, edit.text)
        for key, edit in their_edits.items()
        if key in our_edits and our_edits[key].content != edit.content
    ]
    if conflicts:
        raise _error(conflicts)
    new_edits = {key: edit for key, edit in their_edits.items() if key not in our_edits}
    new = {
        kind: [edit.edit for key, edit in new_edits.items() if kind in key[0]]
        for kind in _EDIT_KINDS
    }
    difference = SceneDifference(
        new["frame"],
        pairs=new["pair"],
        groups=new["group"],
        bodies_before=_only_theirs(our_difference.bodies_before, their_difference.bodies_before),
        bodies_after=_only_theirs(our_difference.bodies_after, their_difference.bodies_after),
    )
    try:
        return ours.apply(difference)
    except TmkitError as error:
        names = (str(error.data[k]) for k in ("frame", "name", "group") if k in error.data)
        reason = f"{their_difference!r}: {error}"
        conflict = Conflict("rule", next(names, "scene"), repr(our_difference), reason)
        raise _error([conflict]) from error


def _only_theirs(ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    return [name for name in theirs if name not in ours]


class _Edit(NamedTuple):
    """Edit of one side.

    Attributes:
        content: resulting values, for comparison.
        text: description.
        edit: entry of a ``SceneDifference``.
    """

    content: Any
    text: str
    edit: Any


def _edits(
    difference: SceneDifference, after: SceneGraph, writer: DifferenceWriter
) -> dict[tuple[str, str], _Edit]:
    """Return the edits of a difference by kind and name."""
    edits = {}
    for frame in difference.frames:
        before, new = frame.before, frame.after
        key = ("frame", before.name) if before else ("new frame", new.name if new else "")
        text = repr(frame).removeprefix("FrameDifference(").removesuffix(")")
        edits[key] = _Edit(new and writer.frame(new), text, frame)
    for pair in difference.pairs:
        name = " and ".join(sorted(pair[:2]))
        edits["pair", name] = _Edit(pair[3], f"reason {pair[3]!r}", pair)
    for name in difference.groups:
        group = group_record(after, name)
        edits["group", name] = _Edit(group, repr(group), (name, group_content(group)))
    return edits


def _error(conflicts: list[Conflict]) -> MergeConflictError:
    lines = [f"{c.kind} '{c.name}': ours {c.ours}; theirs {c.theirs}" for c in conflicts]
    count = "1 conflict" if len(lines) == 1 else f"{len(lines)} conflicts"
    return MergeConflictError(
        f"the merge has {count}:\n" + "\n".join(lines), conflicts=tuple(conflicts)
    )
