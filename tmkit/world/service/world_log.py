"""The versions of a world in a log, and in a folder beside it the shapes with arrays that they name."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tmkit.errors import StoreDamageError
from tmkit.graph import SceneGraph, Shape
from tmkit.store.blobs import BlobFolder
from tmkit.store.encoding import Replay
from tmkit.world.service import messages as m
from tmkit.world.service.access import ServiceLimits
from tmkit.world.service.recording import RecordingTransport


class _Version(msgspec.Struct, array_like=True, tag="version", gc=False):
    """A record of the log: a version as its difference to the one before, or to the empty scene."""

    number: int
    session: bytes
    request: int
    is_whole: bool
    record: bytes


class _Snapshot(msgspec.Struct, array_like=True, tag="snapshot", gc=False):
    """A record of the log from which a server starts: sessions with their last request and its version."""

    world: bytes
    number: int
    sessions: list[tuple[bytes, int, int]]
    record: bytes


_log_records: msgspec.msgpack.Decoder[_Version | _Snapshot] = msgspec.msgpack.Decoder(_Version | _Snapshot)


class Recovered(NamedTuple):
    """What a log holds: identity and version of the world, and of each session the last request with its answer."""

    world: bytes
    number: int
    scene: SceneGraph
    sessions: OrderedDict[bytes, tuple[int, m.Done | m.Refused]]


class WorldLog:
    """Writes versions to the log of a transport, and reads what it holds; its folder has its name and ``.blobs``."""

    def __init__(
        self, transport: RecordingTransport, path: str | os.PathLike[str], limits: ServiceLimits, keys: m.SourceKeys
    ) -> None:
        self._transport, self._limits, self._keys = transport, limits, keys
        self._blobs = BlobFolder(Path(f"{os.fspath(path)}.blobs"), largest=limits.message_bytes)
        self._lock = threading.Lock()  # of the folder
        self._named, self._snapshots = set[str](), 0  # digests since the last snapshot; how many were kept
        self._room = 0  # bytes until the next

    def store(self, shape: Shape) -> None:
        """Keep a shape with arrays."""
        with self._lock:
            self._blobs.put(shape)
            self._named.add(shape.digest)

    def stored(self, digest: str, source: str) -> Shape | None:
        """Return a shape; None where there is none, or a damaged one, which is compared when it is sent again."""
        with contextlib.suppress(StoreDamageError):
            return self._blobs.get(digest, source)
        return None

    def keep_version(self, number: int, session: bytes, request: int, record: bytes, *, is_whole: bool) -> bool:
        """Keep a version, and return whether a snapshot should follow."""
        data = m.encode(_Version(number, session, request, is_whole, record))
        self._transport.keep(data)
        self._room -= len(data)
        return self._room < 0

    def keep_snapshot(
        self, world: bytes, number: int, sessions: Mapping[bytes, tuple[int, m.Done | m.Refused]],
        encode: Callable[[], bytes],
    ) -> None:  # fmt: skip
        """Begin the log anew with a whole version, and remove the shapes that only older ones name.

        ``encode`` stores the shapes of the version and returns its record.
        """
        before, self._named = self._named, set()
        done = [(s, r, d.version) for s, (r, d) in sessions.items() if isinstance(d, m.Done)]
        data = m.encode(_Snapshot(world, number, done, encode()))
        self._transport.keep(data, is_restart=True)
        if number and self._transport.restarts == self._snapshots:
            with self._lock:  # what is on disk begins with the last snapshot
                self._blobs.remove_all_but(before | self._named)
        self._snapshots += 1
        self._room = max(self._limits.log_bytes, 8 * len(data))

    def recovered(self) -> Recovered | None:
        """Return what the log holds, None if it is new; ValueError where it is no log of versions."""
        replay, world, at = None, b"", 0
        last: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # requests of sessions and their versions
        decode, add = _log_records.decode, None
        for data in self._transport.recorded():
            record = decode(data)
            if isinstance(record, _Snapshot):
                world = record.world
                last.update((session, (request, version)) for session, request, version in record.sessions)
                self._room = max(self._limits.log_bytes, 8 * len(data))
            elif add is None or record.number != at + 1:
                raise ValueError(f"version {record.number} comes after version {at}")
            else:
                last[record.session] = record.request, record.number
                self._room -= len(data)
            if add is None or isinstance(record, _Snapshot) or record.is_whole:
                replay = Replay(m.EMPTY, shape=self._named_shape, source=self._keys.source)
                add = replay.add
            add(record.record)
            at = record.number
        last.pop(b"", None)
        if replay is None:
            return None
        scene = replay.finish()
        self._keys.forget(scene)
        done = [(session, (request, m.Done(world, version))) for session, (request, version) in last.items()]
        return Recovered(world, at, scene, OrderedDict(done))

    def _named_shape(self, scene: SceneGraph, digest: str, source: str) -> Shape:
        self._named.add(digest)
        return m.shape_named(scene, digest) or self._blobs.get(digest, source)
