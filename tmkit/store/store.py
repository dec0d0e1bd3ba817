"""Versions of scenes in a folder, with branches, history, merges and garbage collection.

A version is a header and a body. The body is the difference to its first parent (:mod:`tmkit.store.encoding`), or to
the empty scene: a *snapshot*, written where there is no parent, where the differences since the last snapshot would
outweigh it, and after at most 1,000 of them. So a version that changes one frame takes some hundred bytes, and reading
any version takes no more than reading two scenes. The header lists the parents, the message, the digest of the body,
and the fingerprint of the content, with which the scene that is read is compared. The id of a version is the SHA-256 of
its header: it stands for the content and for all of the history. No time and no author is kept, so the same edits have
the same ids everywhere.

Scenes that were put or read last are kept in memory, so the next version of one costs its difference alone.

Invariants: an id that a method returned is on disk, whole; damage is found by digest and named, never read over.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from tmkit.errors import ArgumentError, StoreDamageError, StoreError, TmkitError, UnknownNameError
from tmkit.graph import NoiseSource, SceneDifference, SceneGraph, Shape, diff
from tmkit.spatial.plain import check_fields
from tmkit.store.blobs import BlobFolder
from tmkit.store.database import FILE, FORMAT, Database
from tmkit.store.encoding import DifferenceWriter, blob_digests, decode_difference, merge_scenes

_MOST_DIFFERENCES = 1000  # since a snapshot
_LEAST_SNAPSHOT = 4096  # bytes that differences of a small scene may take, however small it is
_LONGEST_MESSAGE = 10_000
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")
_PREFIX = re.compile(r"[0-9a-f]{6,64}")
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


class Version(NamedTuple):
    """An entry of the history.

    Attributes:
        id: 64 hexadecimal digits.
        parents: ids; the first is the version that was the tip of the branch.
        message: of the user.
        fingerprint: of the content, as ``scene.fingerprint``.
    """

    id: str
    parents: tuple[str, ...]
    message: str
    fingerprint: str


class Collected(NamedTuple):
    """What a garbage collection removed: numbers of versions and of files of blobs, and bytes of these files."""

    versions: int
    blobs: int
    blob_bytes: int


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


class Store:
    """Versions of scenes in a folder. Threads and processes may share one; a fork may use its parent's.

    Args:
        path: the folder; made if it is missing or empty.
        limits: how much it takes.
        must_exist: refuse a folder that is no store.

    Raises:
        StoreError: the folder cannot be used, or something else is in it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limits: StoreLimits | None = None, must_exist: bool = False
    ) -> None:
        self.path = Path(path)
        self.limits = limits or StoreLimits()
        if not (self.path / FILE).exists() and (must_exist or not _is_free(self.path)):
            raise StoreError(f"{self.path}: there is no store in it")
        self._blobs = BlobFolder(self.path / "blobs", largest=self.limits.blob_bytes)
        self._database = Database(self.path, largest=self.limits.version_bytes, patience=self.limits.patience)
        self._scenes: OrderedDict[bytes, tuple[_Header, SceneGraph]] = OrderedDict()
        self._shapes: OrderedDict[tuple[str, str], Shape] = OrderedDict()
        self._source_keys: dict[NoiseSource, bytes] = {}
        self._sources: dict[bytes, NoiseSource] = {}

    def put(self, scene: SceneGraph, branch: str = "main", *, message: str = "", merges: Sequence[str] = ()) -> str:
        """Add a version to a branch and return its id; a scene equal to the tip makes none.

        O(changes) for a scene made from the tip, or from one of the versions in memory.

        Args:
            scene: the version.
            branch: its name; made if it is new.
            message: what was done.
            merges: ids of further parents, whose changes the scene holds.

        Raises:
            StoreError: a bad name, a scene or a message beyond the limits, or a busy database.
            UnknownNameError: a parent that is not in the store.
        """
        _check_branch(branch)
        with self._database:
            tip = self._tip(branch)
            parents = [] if tip is None else [tip]
            parents += [parent for name in merges if (parent := self._resolved(name)) not in parents]
            version = self._insert(scene, parents, message)
            if version != tip:
                self._database.set_tip(branch, version)
        return version.hex()

    def get(self, version: str) -> SceneGraph:
        """Return a scene. O(changes) where its parent is in memory, else the cost of reading two scenes at most.

        Args:
            version: a branch, an id, or at least the first six digits of one.

        Raises:
            UnknownNameError: there is none, or more than one.
            StoreDamageError: the version, one that it is made of, or a blob is damaged.
        """
        if len(version) != 64:
            return self._scene(self._resolved(version))
        try:
            known = bytes.fromhex(version)
            return self._scene(known)
        except (StoreDamageError, ValueError):
            return self._scene(self._resolved(version))  # and is unknown, or damaged

    def log(self, version: str = "main") -> Iterator[Version]:
        """Yield a version and all it was made from, the latest stored first.

        Args:
            version: as in :meth:`get`.
        """
        start = self._resolved(version)
        waiting, seen = [(-self._numbered(start)[0], start)], {start}
        while waiting:
            known = heapq.heappop(waiting)[1]
            header = self._header(known)
            parents = tuple(parent.hex() for parent in header.parents)
            yield Version(known.hex(), parents, header.message, header.fingerprint.hex())
            for parent in header.parents:
                if parent not in seen:
                    seen.add(parent)
                    heapq.heappush(waiting, (-self._numbered(parent)[0], parent))

    def diff(self, before: str, after: str) -> SceneDifference:
        """Return what differs between two versions.

        Args:
            before: the first, as in :meth:`get`.
            after: the second.
        """
        return diff(self.get(before), self.get(after))

    @contextlib.contextmanager
    def batch(self) -> Iterator[Self]:
        """Commit all that is put within it at once, or, after an exception, nothing; others wait to write meanwhile."""
        with self._database:
            yield self

    @property
    def branches(self) -> Mapping[str, str]:
        """Ids of the tips by name."""
        rows = self._database.query("SELECT name, id FROM branches ORDER BY name")
        return MappingProxyType({str(name): _id_bytes(known).hex() for name, known in rows})

    def set_branch(self, name: str, version: str) -> None:
        """Let a branch end at a version.

        Args:
            name: of the branch, new or not.
            version: as in :meth:`get`.
        """
        _check_branch(name)
        with self._database:
            self._database.set_tip(name, self._resolved(version))

    def delete_branch(self, name: str) -> None:
        """Delete a branch; its versions stay until :meth:`gc`.

        Raises:
            UnknownNameError: there is none of that name.
        """
        with self._database:
            if self._tip(name) is None:
                raise UnknownNameError.of("branch", name, self.branches)
            self._database.query("DELETE FROM branches WHERE name=?", name)

    def merge(self, version: str, *, into: str = "main", message: str = "") -> str:
        """Merge a version into a branch and return the new tip.

        A branch that has the version is left as it is; one that the version was made from is set to it. Else the scenes
        are merged frame by frame with the latest common version (:func:`~tmkit.store.merge_scenes`).

        Args:
            version: their version, as in :meth:`get`.
            into: our branch.
            message: what was done.

        Raises:
            MergeConflictError: both sides change the same thing differently; nothing is stored.
            StoreError: the two have no version in common.
        """
        with self._database:
            tip = self._tip(into)
            if tip is None:
                raise UnknownNameError.of("branch", into, self.branches)
            theirs = self._resolved(version)
            base = self._merge_base(tip, theirs)
            if base == theirs:
                return tip.hex()
            if base == tip:
                merged = theirs
            else:
                scene = merge_scenes(self._scene(base), self._scene(tip), self._scene(theirs))
                merged = self._insert(scene, [tip, theirs], message)
            self._database.set_tip(into, merged)
        return merged.hex()

    def gc(self) -> Collected:
        """Remove the versions that no branch leads to, the blobs that no version names, and half-written files."""
        with self._database:
            waiting = [_id_bytes(known) for (known,) in self._database.query("SELECT id FROM branches")]
            reached = set(waiting)
            while waiting:
                new = [parent for parent in self._header(waiting.pop()).parents if parent not in reached]
                reached.update(new)
                waiting += new
            garbage = {known for (known,) in self._database.query("SELECT id FROM versions")} - reached
            for known in garbage:
                self._database.query("DELETE FROM versions WHERE id=?", known)
        with self._database:  # anew: whoever wrote in between, its blobs are named by its rows
            named = set()
            for (known,) in self._database.query("SELECT id FROM versions"):
                ((header, body),) = self._database.query("SELECT header, body FROM versions WHERE id=?", known)
                named.update(_explained(known, partial(_named_blobs, self._checked(known, header), body)))
            removed, size = self._blobs.remove_all_but(named)
        self._database.query("VACUUM")
        return Collected(len(garbage), removed, size)

    def damaged(self) -> tuple[str, ...]:
        """Return what is damaged or missing, one line an entry, after reading everything. O(versions)."""
        found: dict[str, None] = {}
        for (known,) in self._database.query("SELECT id FROM versions ORDER BY number"):
            try:
                self._scenes.pop(known, None)
                self._scene(_id_bytes(known))
            except StoreDamageError as error:
                found[str(error)] = None
        for name, tip in self.branches.items():
            try:
                self._numbered(bytes.fromhex(tip))
            except (StoreDamageError, UnknownNameError) as error:
                found[f"branch '{name}': {error}"] = None
        return tuple(found)

    def close(self) -> None:
        """Close the files; a closed store refuses all operations."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _tip(self, branch: str) -> bytes | None:
        tip = self._database.tip(branch)
        return None if tip is None else _id_bytes(tip)

    def _numbered(self, version: bytes) -> tuple[int, bytes]:
        """Return a version with its number, which grows from parents to children."""
        rows = self._database.query("SELECT number FROM versions WHERE id=?", version)
        if not rows:
            raise _damage(version, "it is missing")
        return int(rows[0][0]), version

    def _resolved(self, name: str) -> bytes:
        """Return the id of a version by branch, id or prefix of an id; it is in the store."""
        if len(name) != 64 and (tip := self._tip(name)) is not None:
            return tip
        found: list[bytes] = []
        if _PREFIX.fullmatch(name):
            least, most = bytes.fromhex(name.ljust(64, "0")), bytes.fromhex(name.ljust(64, "f"))
            rows = self._database.query("SELECT id FROM versions WHERE id BETWEEN ? AND ? LIMIT 2", least, most)
            found = [_id_bytes(known) for (known,) in rows]
        if len(found) > 1:
            raise StoreError(f"'{name}' begins the ids of several versions")
        if not found:
            raise UnknownNameError.of("version", name, self.branches)
        return found[0]

    def _header(self, version: bytes) -> _Header:
        if known := self._scenes.get(version):
            return known[0]
        rows = self._database.query("SELECT header FROM versions WHERE id=?", version)
        return self._checked(version, rows[0][0] if rows else None)

    def _checked(self, version: bytes, data: bytes | None) -> _Header:
        if data is None:
            raise _damage(version, "it is missing")
        if hashlib.sha256(data).digest() != version:
            raise _damage(version, "its header has another digest")
        header = _explained(version, partial(_headers.decode, data))
        if header.format != FORMAT or (header.differences and not header.parents):
            raise _damage(version, "its header says nonsense")
        return header

    def _scene(self, version: bytes) -> SceneGraph:
        """Return the scene of an id, from memory or by the differences since the last one that is there."""
        with self._database.lock:
            chain: list[tuple[bytes, _Header, bytes]] = []
            at = version
            while at not in self._scenes:
                rows = self._database.query("SELECT header, body FROM versions WHERE id=?", at)
                header = self._checked(at, rows[0][0] if rows else None)
                chain.append((at, header, rows[0][1]))
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
            _keep_last(self._scenes, version, (header, scene), self.limits.cached_versions)
            return scene

    def _applied(self, scene: SceneGraph, header: _Header, body: bytes) -> SceneGraph:
        _check_body(header, body)
        scene = scene.apply(decode_difference(body, scene, shape=self._shape, source=self._source))
        if len(scene) > self.limits.frames:
            raise ValueError(f"it has more than {self.limits.frames} frames")
        return scene

    def _shape(self, digest: str, source: str) -> Shape:
        """Return the shape of a blob; scenes share it, and those used last stay in memory."""
        shape = self._shapes.get((digest, source)) or self._blobs.get(digest, source)
        _keep_last(self._shapes, (digest, source), shape, 16 * self.limits.cached_versions)
        return shape

    def _source(self, key: bytes, dimension: int, label: str) -> NoiseSource:
        if key not in self._sources:
            self._sources[key] = NoiseSource(dimension, label)
            self._source_keys[self._sources[key]] = key
        if self._sources[key].dimension != dimension:
            raise ValueError(f"noise source {key.hex()} has two dimensions")
        return self._sources[key]

    def _insert(self, scene: SceneGraph, parents: list[bytes], message: str) -> bytes:
        """Write a version, unless it is there, and return its id."""
        if not isinstance(scene, SceneGraph):
            raise ArgumentError(f"a store keeps scenes: expected a SceneGraph, not {type(scene).__name__}")
        if len(scene) > self.limits.frames:
            raise StoreError(f"the scene has {len(scene)} frames; a store takes at most {self.limits.frames}")
        if len(message) > _LONGEST_MESSAGE:
            raise StoreError(f"the message has {len(message)} characters; a store takes at most {_LONGEST_MESSAGE}")
        fingerprint = bytes.fromhex(scene.fingerprint)
        sources: dict[NoiseSource, bytes] = {}

        def source_key(source: NoiseSource, place: int) -> bytes:
            if source not in self._source_keys:
                seed = b"".join([*parents, fingerprint, str(place).encode()])
                sources[source] = hashlib.sha256(seed).digest()[:16]
            return self._source_keys.get(source) or sources[source]

        body, count, room = None, 0, -1
        if parents:
            base, before = self._scene(parents[0]), self._header(parents[0])
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
        if len(body) > self.limits.version_bytes:
            raise StoreError(f"the version takes {len(body)} bytes; a store takes at most {self.limits.version_bytes}")
        for shape in writer.blobs():
            self._blobs.put(shape)
        header = _Header(FORMAT, parents, message, fingerprint, hashlib.sha256(body).digest(), count, room)
        data = msgspec.msgpack.encode(header)
        version = hashlib.sha256(data).digest()
        self._database.insert(version, data, body)
        for source, key in sources.items():
            self._source_keys[source] = key
            self._sources.setdefault(key, source)
        _keep_last(self._scenes, version, (header, scene), self.limits.cached_versions)
        return version

    def _merge_base(self, ours: bytes, theirs: bytes) -> bytes:
        """Return the version of greatest number from which both were made. O(versions since it)."""
        sides = {ours: 1}
        sides[theirs] = sides.get(theirs, 0) | 2
        waiting = [(-self._numbered(known)[0], known) for known in sides]
        heapq.heapify(waiting)
        while waiting:
            known = heapq.heappop(waiting)[1]
            if sides[known] == 3:
                return known
            for parent in self._header(known).parents:
                if parent not in sides:
                    heapq.heappush(waiting, (-self._numbered(parent)[0], parent))
                sides[parent] = sides.get(parent, 0) | sides[known]
        raise StoreError(f"versions {ours.hex()[:12]} and {theirs.hex()[:12]} have no version in common")


def _keep_last(cache: OrderedDict[Any, Any], key: object, value: object, limit: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)


def _is_free(path: Path) -> bool:
    """Whether a store may be made there: nothing is there, or what a killed process had begun."""
    return not path.exists() or (path.is_dir() and {entry.name for entry in path.iterdir()} <= {"blobs"})


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


def _id_bytes(value: object) -> bytes:
    if not isinstance(value, bytes) or len(value) != 32:
        raise StoreDamageError.of("table of branches", "an id is not 32 bytes")
    return value


def _check_branch(name: str) -> None:
    if not _BRANCH.fullmatch(name):
        raise StoreError(f"{name[:80]!r} is no name of a branch: 1 to 200 of letters, digits and _ . / + -")
