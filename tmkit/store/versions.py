"""The versions of a store by id: headers and bodies, how they are written, and the scenes that they make.

A version is a header and a body. The body is the difference to its first parent
(:mod:`tmkit.store.encoding`), or to the empty scene. The difference to the empty scene is a
*snapshot*. It is written where there is no parent, where the differences since the last snapshot
would outweigh it, and after at most 1,000 of them. So a version that changes one frame takes some
hundred bytes, and reading any version takes no more than reading two scenes. The header lists the
parents, the message, the digest of the body, and the fingerprint of the content, with which the
scene that is read is compared. The id of a version is the SHA-256 of its header: it stands for the
content and for all of the history. No time and no author is kept, so the same edits have the same
ids everywhere.

Scenes that were put or read last are kept in memory, so the next version of one costs its
difference alone.
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
from tmkit.spatial.plain import check_fields
from tmkit.store.blobs import BlobFolder
from tmkit.store.database import STORE_FORMAT, Database
from tmkit.store.encoding import DifferenceWriter, blob_digests, decode_difference

with importing("msgspec", "world", "a store of scenes needs"):
    import msgspec

_MOST_DIFFERENCES = 1000  # since a snapshot
_LEAST_SNAPSHOT = 4096  # bytes that differences of a small scene may take, however small it is
_LONGEST_MESSAGE = 10_000
_EMPTY = SceneGraph(root=None)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much a store takes and gives.

    Attributes:
        blob_bytes: size of the arrays of one shape.
        version_bytes: size of the record of one version.
        frames: frames of one scene.
        cached_versions: scenes that are kept in memory.
        patience: seconds to wait for another process that writes.
    """

    blob_bytes: int = 200_000_000
    version_bytes: int = 100_000_000
    frames: int = 100_000
    cached_versions: int = 64
    patience: float = 60.0

    def __post_init__(self) -> None:
        check_fields(self)


class _Header(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What the id of a version is the digest of."""

    format: int
    parents: list[bytes]
    message: str
    fingerprint: bytes
    body: bytes  # SHA-256
    differences: int  # since the last snapshot; 0: this is one
    room: int  # bytes for more differences until they outweigh the snapshot


_headers = msgspec.msgpack.Decoder(_Header)


class VersionTable:
    """The versions in a database, with the blobs of their shapes; those used last are kept in memory."""

    def __init__(self, database: Database, blobs: BlobFolder, limits: StoreLimits) -> None:
        self._database, self._blobs, self._limits = database, blobs, limits
        self._scenes: OrderedDict[bytes, tuple[_Header, SceneGraph]] = OrderedDict()
        self._shapes: OrderedDict[tuple[str, str], Shape] = OrderedDict()
        self._source_keys: dict[NoiseSource, bytes] = {}
        self._sources: dict[bytes, NoiseSource] = {}

    def forget(self) -> None:
        """Forget the scenes in memory, which may be of versions that are not on disk."""
        self._scenes.clear()

    def number(self, version: bytes) -> int:
        """Return the number of a version, which grows from parents to children."""
        rows = self._database.query("SELECT number FROM versions WHERE id=?", version)
        if not rows:
            raise _damage(version, "it is missing")
        return int(rows[0][0])

    def header(self, version: bytes) -> _Header:
        """Return the header of a version."""
        known = self._scenes.get(version)
        return known[0] if known else self._read(version)[0]

    def blobs_of(self, version: bytes) -> list[str]:
        """Return the digests of the blobs that a version names."""
        header, body = self._read(version)
        return _explained(version, partial(_named_blobs, header, body))

    def _read(self, version: bytes) -> tuple[_Header, bytes]:
        """Return the header and the body of a version as they are on disk; the header is checked."""
        rows = self._database.query("SELECT header, body FROM versions WHERE id=?", version)
        if not rows:
            raise _damage(version, "it is missing")
        data, body = rows[0]
        if hashlib.sha256(data).digest() != version:
            raise _damage(version, "its header has another digest")
        header = _explained(version, partial(_headers.decode, data))
        if header.format != STORE_FORMAT or (header.differences and not header.parents):
            raise _damage(version, "its header says nonsense")
        return header, body

    def scene(self, version: bytes, *, anew: bool = False) -> SceneGraph:
        """Return the scene of an id, from memory or by the differences since the last one that is there."""
        with self._database.lock:
            if anew:
                self._scenes.pop(version, None)
            chain: list[tuple[bytes, _Header, bytes]] = []
            at = version
            while at not in self._scenes:
                header, body = self._read(at)
                chain.append((at, header, body))
                if not header.differences:
                    break
                if len(chain) > _MOST_DIFFERENCES:
                    raise _damage(version, "it has too many differences since a snapshot")
                at = header.parents[0]
            scene = _EMPTY
            if at in self._scenes:
                header, scene = self._scenes[at]
            for known, header, body in reversed(chain):
                scene = _explained(known, partial(self._applied, scene, header, body))
            if chain and scene.fingerprint != header.fingerprint.hex():
                raise _damage(version, "what it holds has another fingerprint")
            _keep_last(self._scenes, version, (header, scene), self._limits.cached_versions)
            return scene

    def _applied(self, scene: SceneGraph, header: _Header, body: bytes) -> SceneGraph:
        _check_body(header, body)
        scene = scene.apply(decode_difference(body, scene, shape=self._shape, source=self._source))
        if len(scene) > self._limits.frames:
            raise ValueError(f"it has more than {self._limits.frames} frames")
        return scene

    def _shape(self, digest: str, source: str) -> Shape:
        """Return the shape of a blob; scenes share it, and those used last stay in memory."""
        shape = self._shapes.get((digest, source)) or self._blobs.get(digest, source)
        _keep_last(self._shapes, (digest, source), shape, 16 * self._limits.cached_versions)
        return shape

    def _source(self, key: bytes, dimension: int, label: str) -> NoiseSource:
        if key not in self._sources:
            self._sources[key] = NoiseSource(dimension, label)
            self._source_keys[self._sources[key]] = key
        if self._sources[key].dimension != dimension:
            raise ValueError(f"noise source {key.hex()} has two dimensions")
        return self._sources[key]

    def insert(self, scene: SceneGraph, parents: list[bytes], message: str) -> bytes:
        """Write a version, unless it is there, and return its id."""
        if not isinstance(scene, SceneGraph):
            raise ArgumentError(
                f"a store keeps scenes: expected a SceneGraph, not {type(scene).__name__}"
            )
        if len(scene) > self._limits.frames:
            raise StoreError(
                f"the scene has {len(scene)} frames; a store takes at most {self._limits.frames}"
            )
        if len(message) > _LONGEST_MESSAGE:
            raise StoreError(
                f"the message has {len(message)} characters; a store takes at most"
                f" {_LONGEST_MESSAGE}"
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
            base, before = self.scene(parents[0]), self.header(parents[0])
            change = diff(base, scene)
            if not change and len(parents) == 1:
                return parents[0]
            scene = scene if change else base  # whose ids are those on disk
            if before.differences < _MOST_DIFFERENCES and len(change) <= len(scene):
                writer = DifferenceWriter(source_key)
                body = writer.encode(change, scene)
                count, room = before.differences + 1, before.room - len(body or b"")
        if body is None or room < 0:
            writer = DifferenceWriter(source_key)
            body = writer.encode(diff(_EMPTY, scene), scene) or b""
            count, room = 0, max(len(body), _LEAST_SNAPSHOT)
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
        _keep_last(self._scenes, version, (header, scene), self._limits.cached_versions)
        return version

    def merge_base(self, ours: bytes, theirs: bytes) -> bytes:
        """Return the version of greatest number from which both were made. O(versions since it)."""
        sides = {ours: 1}
        sides[theirs] = sides.get(theirs, 0) | 2
        waiting = [(-self.number(known), known) for known in sides]
        heapq.heapify(waiting)
        while waiting:
            known = heapq.heappop(waiting)[1]
            if sides[known] == 3:
                return known
            for parent in self.header(known).parents:
                if parent not in sides:
                    heapq.heappush(waiting, (-self.number(parent), parent))
                sides[parent] = sides.get(parent, 0) | sides[known]
        raise StoreError(
            f"versions {ours.hex()[:12]} and {theirs.hex()[:12]} have no version in common"
        )


def _keep_last(cache: OrderedDict[Any, Any], key: object, value: object, limit: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)


def _explained(version: bytes, read: Callable[[], Value]) -> Value:
    """Return what a function reads of a version; whatever is wrong with it is said of the version."""
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


def _named_blobs(header: _Header, body: bytes) -> list[str]:
    _check_body(header, body)
    return blob_digests(body)


def id_bytes(value: object) -> bytes:
    """Return an id from the database, which is checked."""
    if not isinstance(value, bytes) or len(value) != 32:
        raise StoreDamageError.of("table of branches", "an id is not 32 bytes")
    return value
