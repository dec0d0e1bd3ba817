"""Differences between versions: as bytes, each value checked when it is read, and merged with those of another side.

A record is a MessagePack array of what the second of two versions has that the first has not: the
frames that came or changed, whole, with their ids. The names of those that are gone. Pairs, groups
and bodies without frames that differ. Reading a record takes the first version, so it repeats
nothing of that, and a whole scene is the difference to an empty one.

A frame is an array of up to thirteen values, in the order of :class:`FrameRecord`; those at the end
that most frames lack are omitted. Poses are seven numbers, numbers eight bytes, matrices
little-endian bytes row by row. Shapes are listed once: primitives by their kind and dimensions,
those with arrays by the digest of their blob (:mod:`tmkit.store.blobs`). Noise sources are listed
by a key of 16 bytes, their identity in the store: two versions that a store gives have errors of
one source where the versions that were put had.

Invariant: what is read has run no code and was checked twice, its form here and its meaning by the
    core.

:func:`merge_scenes` merges three ways, frame by frame. What each side changed since the base is a
difference. A frame, an allowed pair or a group that one side alone changed is taken from that side.
One that both changed alike is taken once. One that both changed in different ways is a *conflict*,
whichever fields they changed. Frames of the base are matched by identity, new ones by name. What is
left of their difference is applied to our version; where it does not fit there (its parent is gone,
a rule of the scene would break), that is a conflict too. Nothing is merged halfway.
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
from tmkit.errors import MergeConflictError, StoreError, TmkitError
from tmkit.graph import FrameSpecification, NoiseSource, SceneGraph, Shape, diff
from tmkit.spatial import Pose

with importing("msgspec", "world", "a store of scenes needs"):
    import msgspec

Seven = tuple[float, float, float, float, float, float, float]
Place = Annotated[int, msgspec.Meta(ge=0)]  # in a list of the record
# covariance; source by its place in the list, and its map
Noise = tuple[bytes, list[tuple[Place, bytes]]]
AttachedRecord = tuple[
    Place, Seven, list[float] | None, bool, bool, float | None, str | None, float | None
]
# frames, groups, parents, attributes
GroupRecord = tuple[list[str], list[str], list[str], str | None]
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
_LARGEST_SOURCE = 100_000  # dimensions


class FrameRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A frame: what :class:`~tmkit.graph.FrameSpecification` says; attributes and their stamps as JSON text."""

    name: str
    parent: str | None
    pose: Seven
    body: str | None = None  # of the frame's own name
    joint: JointState | None = None  # fixed
    classes: list[str] = []
    shapes: list[AttachedRecord] = []
    inertia: tuple[float, bytes, bytes] | None = None
    attributes: str | None = None
    twist: tuple[str, bytes] | None = None
    stamps: tuple[int, float, list[tuple[float, Seven]]] | None = None  # capacity, window, poses
    noise: Noise | None = None
    twist_noise: Noise | None = None


class DifferenceRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A difference; shapes as (kind, dimensions) or (digest, source label), sources as (key, dimension, label)."""

    frames: list[tuple[int, str | None, FrameRecord | None]]  # id, name before, frame after
    shapes: list[tuple[str, list[float] | str]] = []
    sources: list[tuple[bytes, int, str]] = []
    pairs: list[tuple[str, str, str | None, str | None]] = []
    groups: list[tuple[str, GroupRecord | None]] = []
    bodies_before: list[str] = []
    bodies_after: list[str] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(DifferenceRecord)


class DifferenceWriter:
    """Makes the record of a difference; ``source_key`` gives the key of a noise source, given its place in it, too."""

    def __init__(self, source_key: Callable[[NoiseSource, int], bytes] = lambda *_: b"") -> None:
        self._shapes: dict[Shape, int] = {}
        self._sources: dict[NoiseSource, int] = {}
        self._source_key = source_key

    def encode(self, difference: SceneDifference, after: SceneGraph) -> bytes | None:
        """Return the bytes of a difference; None where a name comes to mean another frame (edits confuse it)."""
        frames, gone, came = [], set(), set()
        for frame in difference.frames:
            before, now = frame.before, frame.after
            old, new = before and before.name, now and now.name
            if old != new:
                gone.add(old)
                came.add(new)
            frames.append((frame.frame_id, old, None if now is None else self.frame(now)))
        if len(gone & came - {None}):
            return None
        groups = [(name, group_record(after, name)) for name in difference.groups]
        # A pair goes with its frames.
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
            if source.dimension > _LARGEST_SOURCE:
                reason = f"noise source '{source.label}' has {source.dimension:,} dimensions"
                raise StoreError(f"{reason}; a record has at most {_LARGEST_SOURCE:,}")
        sources = [
            (self._source_key(s, place), s.dimension, s.label) for s, place in self._sources.items()
        ]
        more = [shapes, sources, pairs, groups, difference.bodies_before, difference.bodies_after]
        return _encoder.encode([frames, *_trimmed(more)])

    def blobs(self) -> list[Shape]:
        """Return the shapes that the record names by digest."""
        return [shape for shape in self._shapes if shape.kind not in _PRIMITIVES]

    def frame(self, frame: FrameSpecification) -> list[Any]:
        """Return the values of a :class:`FrameRecord`."""
        name, joint, body, attributes = frame.name, frame.joint, frame.body, frame.attributes
        inertia, twist, stamps, noise = frame.inertia, frame.twist, frame.stamps, frame.noise
        more = [
            None if body == name else body,
            None if joint == graph.Fixed() else _joint_state(joint),
            frame.classes,
            [self._attached(part) for part in frame.shapes],
            inertia and (inertia.mass, _bytes(inertia.center), _bytes(inertia.matrix)),
            _attributes_text(frame) if attributes else None,
            twist and (twist[0], _bytes(twist[1])),
            None if stamps is None else _stamps_record(stamps),
            noise and self._noise(noise),
            frame.twist_noise and self._noise(frame.twist_noise),
        ]
        return [name, frame.parent, frame.pose.as_array().tolist(), *_trimmed(more)]

    def _attached(self, part: graph.AttachedShape) -> list[Any]:
        number = self._shapes.setdefault(part.shape, len(self._shapes))
        color = None if part.color is None else np.asarray(part.color).tolist()
        pose = part.pose.as_array().tolist()
        return [
            number,
            pose,
            color,
            part.visual,
            part.collision,
            part.friction,
            part.level,
            part.stamp,
        ]

    def _noise(self, noise: EdgeNoise) -> tuple[bytes, list[Any]]:
        numbers = [
            (self._sources.setdefault(s, len(self._sources)), _bytes(noise.map(s)))
            for s in noise.sources
        ]
        return _bytes(noise.covariance), numbers


def decode_difference(
    data: bytes,
    base: SceneGraph,
    *,
    shape: Callable[[str, str], Shape],
    source: Callable[[bytes, int, str], NoiseSource],
) -> SceneDifference:
    """Return the difference of a record to a version; ValueError where it is none (errors of the core are such, too).

    ``shape`` returns that of a blob by digest and label, ``source`` that of a key, with its
    dimension and label.
    """
    return _difference(_decoder.decode(data), base, shape, source)


class Replay:
    """Applies records to a version one after the other; of frames that only change, what the last says.

    ``shape`` and ``source`` are as for :func:`decode_difference`; ``shape`` is given the scene
    before its record, too.
    """

    def __init__(
        self,
        scene: SceneGraph,
        *,
        shape: Callable[[SceneGraph, str, str], Shape],
        source: Callable[[bytes, int, str], NoiseSource],
    ) -> None:
        self._scene, self._shape, self._source = scene, shape, source
        self._changed: dict[str, tuple[int, FrameRecord, list[tuple[bytes, int, str]]]] = {}

    def add(self, data: bytes) -> None:
        """Apply a record, perhaps later."""
        record = _decoder.decode(data)
        if not (
            record.shapes
            or record.pairs
            or record.groups
            or record.bodies_before
            or record.bodies_after
        ):
            frames = [
                (old, (k, f, record.sources))
                for k, old, f in record.frames
                if f is not None and old == f.name
            ]
            if len(frames) == len(record.frames):
                self._changed.update(frames)
                return
        scene = self.finish()
        self._scene = scene.apply(
            _difference(record, scene, partial(self._shape, scene), self._source)
        )

    def finish(self) -> SceneGraph:
        """Return the version after all records so far."""
        if self._changed:
            scene, frames = self._scene, []
            for name, (number, after, sources) in self._changed.items():
                used = {
                    number
                    for noise in (after.noise, after.twist_noise)
                    if noise
                    for number, _ in noise[1]
                }
                now = _frame_of(
                    after, [], {number: _source(sources[number], self._source) for number in used}
                )
                frames.append(FrameDifference(number, scene.specification(name), now))
            self._scene = scene.apply(SceneDifference(frames))
            self._changed.clear()
        return self._scene


def _difference(
    record: DifferenceRecord,
    base: SceneGraph,
    shape: Callable[[str, str], Shape],
    source: Callable[[bytes, int, str], NoiseSource],
) -> SceneDifference:
    shapes = [
        shape(kind, known) if isinstance(known, str) else _primitive(kind, known)
        for kind, known in record.shapes
    ]
    sources = [_source(known, source) for known in record.sources]
    frames = []
    for number, old, after in record.frames:
        before = None if old is None else base.specification(old)
        now = None if after is None else _frame_of(after, shapes, sources)
        frames.append(FrameDifference(number, before, now))
    return SceneDifference(
        frames,
        pairs=record.pairs,
        groups=[(name, group_content(group)) for name, group in record.groups],
        bodies_before=record.bodies_before,
        bodies_after=record.bodies_after,
    )


def blob_digests(data: bytes) -> list[str]:
    """Return the digests of the blobs that a record names."""
    return [kind for kind, known in _decoder.decode(data).shapes if isinstance(known, str)]


def _source(
    known: tuple[bytes, int, str], source: Callable[[bytes, int, str], NoiseSource]
) -> NoiseSource:
    if not 1 <= known[1] <= _LARGEST_SOURCE:
        raise ValueError(f"a noise source has no dimension from 1 to {_LARGEST_SOURCE}")
    return source(*known)


def _frame_of(
    record: FrameRecord,
    shapes: list[Shape],
    sources: Sequence[NoiseSource] | Mapping[int, NoiseSource],
) -> FrameSpecification:
    more: dict[str, Any] = {}  # what most frames lack
    if record.joint is not None:
        *state, mimic = record.joint
        more["joint"] = _restored(graph.Joint, (*state, mimic and _restored(graph.Mimic, mimic)))
    if record.shapes:
        more["shapes"] = [
            graph.AttachedShape(
                shapes[number],
                Pose.from_array(pose),
                color=color,
                visual=visual,
                collision=collision,
                friction=friction,
                level=level,
            ).replace(stamp=stamp)
            for number, pose, color, visual, collision, friction, level, stamp in record.shapes
        ]
    if record.inertia is not None:
        mass, center, matrix = record.inertia
        # The constructor rejects some inertias that earlier versions stored.
        more["inertia"] = inertia = graph.Inertia.__new__(graph.Inertia)
        inertia.__setstate__((mass, _numbers(center), _numbers(matrix, 3)))
    if record.attributes is not None:
        more["attributes"] = _attributes_of(record.attributes)
    if record.twist is not None:
        more["twist"] = (record.twist[0], _numbers(record.twist[1]))
    if record.stamps is not None:
        capacity, window, entries = record.stamps
        times, poses = (
            [stamp for stamp, _ in entries],
            [Pose.from_array(pose) for _, pose in entries],
        )
        more["stamps"] = StampedPoses(times, poses, capacity=capacity, window=window)
    for key, noise in ("noise", record.noise), ("twist_noise", record.twist_noise):
        if noise is not None:
            maps = {
                sources[number]: _numbers(matrix, sources[number].dimension)
                for number, matrix in noise[1]
            }
            more[key] = EdgeNoise(maps, covariance=_numbers(noise[0], 6))
    if record.classes:
        more["classes"] = record.classes
    frame = FrameSpecification(
        record.name,
        record.parent,
        pose=Pose.from_array(record.pose),
        body=record.body or record.name,
    )
    return frame.replace(**more)


def _trimmed(values: list[Any]) -> list[Any]:
    """Return values without the empty ones at the end."""
    while values and not values[-1]:
        values.pop()
    return values


def group_record(scene: SceneGraph, name: str) -> GroupRecord | None:
    """Return what is in a group, None when there is none."""
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
    """Return what a record of a group says, for a ``SceneDifference``."""
    return record and (*record[:3], None if record[3] is None else _attributes_of(record[3]))


def _joint_state(joint: graph.Joint) -> list[Any]:
    *state, mimic = joint.__getstate__()
    return [*state, mimic and mimic.__getstate__()]


def _restored(cls: Any, state: tuple[Any, ...]) -> Any:
    value = cls.__new__(cls)
    value.__setstate__(state)  # which checks all of it
    return value


def _primitive(kind: str, dimensions: list[float]) -> Shape:
    if kind not in _PRIMITIVES:
        raise ValueError(f"there is no shape of kind '{kind}'")
    return _PRIMITIVES[kind](*dimensions)


def _stamps_record(stamps: StampedPoses) -> tuple[int, float, list[tuple[float, Any]]]:
    rows = zip(np.asarray(stamps.stamps).tolist(), stamps.poses, strict=True)
    return (
        stamps.capacity,
        stamps.window,
        [(stamp, pose.as_array().tolist()) for stamp, pose in rows],
    )


def _attributes_text(owner: FrameSpecification | Group) -> str:
    from tmkit.graph.attributes import plain_attributes  # few scenes have attributes

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


_KINDS = ("frame", "pair", "group")


class Conflict(NamedTuple):
    """What two versions change differently.

    Attributes:
        kind: ``frame``, ``new frame``, ``pair`` or ``group``; ``rule`` where their edits do not fit
            our version.
        name: of a frame in the base, of a new one its own; ``a and b`` of a pair.
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
        base: the version from which both were made.
        ours: one version; what is new in it comes first.
        theirs: the other one.

    Raises:
        MergeConflictError: both change a frame, a pair or a group, differently; all conflicts are
            listed.
    """
    writer = DifferenceWriter()  # of both sides: shapes and sources have one numbering
    mine, other = diff(base, ours), diff(base, theirs)
    my_edits, their_edits = _edits(mine, ours, writer), _edits(other, theirs, writer)
    conflicts = [
        Conflict(*key, my_edits[key].text, edit.text)
        for key, edit in their_edits.items()
        if key in my_edits and my_edits[key].content != edit.content
    ]
    if conflicts:
        raise _error(conflicts)
    new = {
        kind: [e.edit for key, e in their_edits.items() if key not in my_edits and kind in key[0]]
        for kind in _KINDS
    }
    difference = SceneDifference(
        new["frame"],
        pairs=new["pair"],
        groups=new["group"],
        bodies_before=[name for name in other.bodies_before if name not in mine.bodies_before],
        bodies_after=[name for name in other.bodies_after if name not in mine.bodies_after],
    )
    try:
        return ours.apply(difference)
    except TmkitError as error:
        name = next(
            (str(error.data[k]) for k in ("frame", "name", "group") if k in error.data), "scene"
        )
        raise _error([Conflict("rule", name, repr(mine), f"{other!r}: {error}")]) from error


class _Edit(NamedTuple):
    content: Any  # that it leads to, to compare
    text: str
    edit: Any  # for a SceneDifference


def _edits(
    difference: SceneDifference, after: SceneGraph, writer: DifferenceWriter
) -> dict[tuple[str, str], _Edit]:
    found = {}
    for frame in difference.frames:
        old, new = frame.before, frame.after
        key = ("frame", old.name) if old else ("new frame", new.name if new else "")
        found[key] = _Edit(
            new and writer.frame(new), repr(frame)[len("FrameDifference(") : -1], frame
        )
    for pair in difference.pairs:
        found["pair", " and ".join(sorted(pair[:2]))] = _Edit(pair[3], f"reason {pair[3]!r}", pair)
    for name in difference.groups:
        group = group_record(after, name)
        found["group", name] = _Edit(group, repr(group), (name, group_content(group)))
    return found


def _error(conflicts: list[Conflict]) -> MergeConflictError:
    lines = [f"{c.kind} '{c.name}': ours {c.ours}; theirs {c.theirs}" for c in conflicts]
    count = "1 conflict" if len(lines) == 1 else f"{len(lines)} conflicts"
    return MergeConflictError(
        f"the merge has {count}:\n" + "\n".join(lines), conflicts=tuple(conflicts)
    )
