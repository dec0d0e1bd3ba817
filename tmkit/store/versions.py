"""Versions of a store by id: their headers, their bodies and their scenes.

A version is a header and a body. The body is the difference to its first parent
(:mod:`tmkit.store.encoding`), or to the empty scene. The difference to the empty scene is a
*snapshot*. A snapshot is written for a version without a parent, if the differences since the last
snapshot would be larger than it, and after at most 1,000 differences. So a version that changes one
frame takes some hundred bytes, and reading any version costs at most as much as reading two scenes.

The header has the parents, the message, the digest of the body and the fingerprint of the content.
A scene that is read must have this fingerprint. The id of a version is the SHA-256 of its header,
and so it identifies the content and the history. There is no time and no author, so the same edits
have the same ids everywhere.

A cache contains the scenes of the last writes and reads, so the next version of one costs only its
difference.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tmkit._support.extras import importing
from tmkit.errors import ArgumentError, StoreDamageError, StoreError, TmkitError
from tmkit.graph import NoiseSource, SceneGraph, Shape, diff
from tmkit.spatial.plain import convert_fields
from tmkit.store.blobs import BlobFolder
from tmkit.store.database import STORE_FORMAT, Database
from tmkit.store.encoding import DifferenceWriter, blob_digests, decode_difference

with importing("msgspec", "world", "a store of scenes needs"):
    import msgspec

_MAX_DIFFERENCES = 1000
"""Limit of the differences since a snapshot."""

_MIN_DIFFERENCE_BYTES = 4096
"""Bytes that differences since a snapshot may take for a scene of any size."""

_MAX_MESSAGE_LENGTH = 10_000
"""Limit of the characters of a message."""

_CACHED_SHAPES_PER_SCENE = 16
"""Cached shapes for each cached scene."""

_EMPTY_SCENE = SceneGraph(root=None)
"""Scene without frames."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of a store.

    Attributes:
        blob_bytes: size of the arrays of one shape [bytes].
        version_bytes: size of the record of one version [bytes].
        frames: frames of one scene.
        cached_versions: scenes in memory.
        patience: time to wait for another process that writes [s].
    """

    blob_bytes: int = 200_000_000
    version_bytes: int = 100_000_000
    frames: int = 100_000
    cached_versions: int = 64
    patience: float = 60.0

    def __post_init__(self) -> None:
        convert_fields(self, {"patience": "s"})


class _Header(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Header of a version, whose SHA-256 is the id.

    Attributes:
        format: format of the store.
        parents: ids of the parents.
        message: message of the user.
        fingerprint: fingerprint of the content.
        body: SHA-256 of the body.
        differences: differences since the last snapshot; 0 for a snapshot.
        room: bytes until the differences are larger than the snapshot.
    """

    format: int
    parents: list[bytes]
    message: str
    fingerprint: bytes
    body: bytes
    differences: int
    room: int


_headers = msgspec.msgpack.Decoder(_Header)


class VersionTable:
    """Versions in a database with the blobs of their shapes, and a cache of the last ones.

    Args:
        database: database of the versions.
        blobs: folder of the blobs.
        limits: limits of the store.
    """

    def __init__(self, database: Database, blobs: BlobFolder, limits: StoreLimits) -> None:
        self._database = database
        self._blobs = blobs
        self._limits = limits
        self._scenes: OrderedDict[bytes, tuple[_Header, SceneGraph]] = OrderedDict()
        self._shapes: OrderedDict[tuple[str, str], Shape] = OrderedDict()
        self._source_keys: dict[NoiseSource, bytes] = {}
        self._sources: dict[bytes, NoiseSource] = {}

    def clear_cache(self) -> None:
        """Remove the scenes in memory, since their versions may not be on disk."""
        self._scenes.clear()

    def number(self, version: bytes) -> int:
        """Return the number of a version, which increases from parents to children.

        Raises:
            StoreDamageError: if the version is missing.
        """
        rows = self._database.query("SELECT number FROM versions WHERE id=?", version)
        if not rows:
            raise _damage(version, "it is missing")
        return int(rows[0][0])

    def header(self, version: bytes) -> _Header:
        """Return the header of a version.

        Raises:
            StoreDamageError: if the version is missing or damaged.
        """
        cached = self._scenes.get(version)
        return cached[0] if cached else self._read(version)[0]

    def blobs_of(self, version: bytes) -> list[str]:
        """Return the digests of the blobs of a version.

        Raises:
            StoreDamageError: if the version is missing or damaged.
        """
        header, body = self._read(version)
        return _read_checked(version, partial(_blobs_of_body, header, body))

    def _read(self, version: bytes) -> tuple[_Header, bytes]:
        """Return the checked header and the unchecked body of a version on disk."""
        rows = self._database.query("SELECT header, body FROM versions WHERE id=?", version)
        if not rows:
            raise _damage(version, "it is missing")
        data, body = rows[0]
        if hashlib.sha256(data).digest() != version:
            raise _damage(version, "its header has another digest")
        header = _read_checked(version, partial(_headers.decode, data))
        if header.format != STORE_FORMAT or (header.differences and not header.parents):
            raise _damage(version, "its header is invalid")
        return header, body

    def scene(self, version: bytes, *, is_reread: bool = False) -> SceneGraph:
        """Return the scene of a version.

        It is taken from memory, or computed by the differences since the last ancestor in memory
        or the last snapshot.

        Args:
            version: the id.
            is_reread: whether to read the version from the disk even if it is in memory.

        Raises:
            StoreDamageError: if the version, one of these ancestors or a blob is damaged.
        """
        with self._database.lock:
            if is_reread:
                self._scenes.pop(version, None)
            chain: list[tuple[bytes, _Header, bytes]] = []
            ancestor = version
            while ancestor not in self._scenes:
                header, body = self._read(ancestor)
                chain.append((ancestor, header, body))
                if not header.differences:
                    break
                if len(chain) > _MAX_DIFFERENCES:
                    raise _damage(version, "it has too many differences since a snapshot")
                ancestor = header.parents[0]
            scene = _EMPTY_SCENE
            if ancestor in self._scenes:
                header, scene = self._scenes[ancestor]
            for key, header, body in reversed(chain):
                scene = _read_checked(key, partial(self._apply, scene, header, body))
            if chain and scene.fingerprint != header.fingerprint.hex():
                raise _damage(version, "its content has another fingerprint")
            _cache(self._scenes, version, (header, scene), self._limits.cached_versions)
            return scene

    def _apply(self, scene: SceneGraph, header: _Header, body: bytes) -> SceneGraph:
        _check_body(header, body)
        scene = scene.apply(decode_difference(body, scene, shape=self._shape, source=self._source))
        if len(scene) > self._limits.frames:
            raise ValueError(f"it has more than {self._limits.frames} frames")
        return scene

    def _shape(self, digest: str, source: str) -> Shape:
        """Return the shape of a blob, shared between scenes."""
        shape = self._shapes.get((digest, source)) or self._blobs.get(digest, source)
        limit = _CACHED_SHAPES_PER_SCENE * self._limits.cached_versions
        _cache(self._shapes, (digest, source), shape, limit)
        return shape

    def _source(self, key: bytes, dimension: int, label: str) -> NoiseSource:
        if key not in self._sources:
            self._sources[key] = NoiseSource(dimension, label)
            self._source_keys[self._sources[key]] = key
        if self._sources[key].dimension != dimension:
            raise ValueError(f"noise source {key.hex()} has two dimensions")
        return self._sources[key]

    def insert(self, scene: SceneGraph, parents: list[bytes], message: str) -> bytes:
        """Write a version, unless it exists, and return its id.

        Args:
            scene: the scene.
            parents: ids of the parents.
            message: message of the user.

        Raises:
            ArgumentError: if the scene is not a SceneGraph.
            StoreError: if the scene or the message exceeds the limits.
        """
        if not isinstance(scene, SceneGraph):
            raise ArgumentError(f"expected a SceneGraph, not {type(scene).__name__}")
        if len(scene) > self._limits.frames:
            raise StoreError(
                f"the scene has {len(scene)} frames; a store takes at most {self._limits.frames}"
            )
        if len(message) > _MAX_MESSAGE_LENGTH:
            raise StoreError(
                f"the message has {len(message)} characters; a store takes at most"
                f" {_MAX_MESSAGE_LENGTH}"
            )
        fingerprint = bytes.fromhex(scene.fingerprint)
        sources: dict[NoiseSource, bytes] = {}

        def source_key(source: NoiseSource, place: int) -> bytes:
            if source not in self._source_keys:
                seed = b"".join([*parents, fingerprint, str(place).encode()])
                sources[source] = hashlib.sha256(seed).digest()[:16]
            return self._source_keys.get(source) or sources[source]

        body, count, room = None, 0, -1
        if parents:
            base = self.scene(parents[0])
            parent = self.header(parents[0])
            change = diff(base, scene)
            if not change and len(parents) == 1:
                return parents[0]
            scene = scene if change else base  # the base has the ids on disk
            if parent.differences < _MAX_DIFFERENCES and len(change) <= len(scene):
                writer = DifferenceWriter(source_key)
                body = writer.encode(change, scene)
                count = parent.differences + 1
                room = parent.room - len(body or b"")
        if body is None or room < 0:
            writer = DifferenceWriter(source_key)
            body = writer.encode(diff(_EMPTY_SCENE, scene), scene) or b""
            count = 0
            room = max(len(body), _MIN_DIFFERENCE_BYTES)
        if len(body) > self._limits.version_bytes:
            raise StoreError(
                f"the version takes {len(body)} bytes; a store takes at most"
                f" {self._limits.version_bytes}"
            )
        for shape in writer.blobs():
            self._blobs.put(shape)
        header = _Header(
            STORE_FORMAT, parents, message, fingerprint, hashlib.sha256(body).digest(), count, room
        )
        data = msgspec.msgpack.encode(header)
        version = hashlib.sha256(data).digest()
        self._database.insert(version, data, body)
        for source, key in sources.items():
            self._source_keys[source] = key
            self._sources.setdefault(key, source)
        _cache(self._scenes, version, (header, scene), self._limits.cached_versions)
        return version

    def merge_base(self, ours: bytes, theirs: bytes) -> bytes:
        """Return the common ancestor with the greatest number. O(versions since it).

        Raises:
            StoreError: if the versions have no common ancestor.
        """
        sides = {ours: 1}  # bit set of the sides whose ancestor a version is
        sides[theirs] = sides.get(theirs, 0) | 2
        queue = [(-self.number(version), version) for version in sides]
        heapq.heapify(queue)
        while queue:
            version = heapq.heappop(queue)[1]
            if sides[version] == 3:
                return version
            for parent in self.header(version).parents:
                if parent not in sides:
                    heapq.heappush(queue, (-self.number(parent), parent))
                sides[parent] = sides.get(parent, 0) | sides[version]
        raise StoreError(
            f"versions {ours.hex()[:12]} and {theirs.hex()[:12]} have no version in common"
        )


def _cache(cache: OrderedDict[Any, Any], key: object, value: object, limit: int) -> None:
    """Set the newest entry of a cache, and remove the oldest above a limit."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)


def _read_checked(version: bytes, read: Callable[[], Value]) -> Value:
    """Return the result of a function that reads a version.

    Raises:
        StoreDamageError: if the function raises an error, with the id of the version.
    """
    try:
        return read()
    except StoreDamageError:
        raise
    except (TmkitError, ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        reason = str(error).split("\n")[0][:300]
        raise _damage(version, f"it is damaged: {reason}") from error


def _damage(version: bytes, reason: str) -> StoreDamageError:
    return StoreDamageError.of(f"version {version.hex()}", reason)


def _check_body(header: _Header, body: bytes) -> None:
    if hashlib.sha256(body).digest() != header.body:
        raise ValueError("its body has another digest")


def _blobs_of_body(header: _Header, body: bytes) -> list[str]:
    _check_body(header, body)
    return blob_digests(body)


def id_bytes(value: object) -> bytes:
    """Return an id from the database.

    Raises:
        StoreDamageError: if the value is not an id.
    """
    if not isinstance(value, bytes) or len(value) != 32:
        raise StoreDamageError.of("table of branches", "an id is not 32 bytes")
    return value
