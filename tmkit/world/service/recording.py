"""A transport that records: what it keeps is on disk before any answer that was given after it leaves.

It wraps another transport. Records are appended to one file. A thread writes all that waits, synchronises the file once
(``fdatasync``), and then sends the answers that waited for it: many edits share one synchronisation, and queries wait
only while records do. If the disk refuses, no answer leaves any more, and :attr:`RecordingTransport.failure` says why.

A restart, a record that makes those before it needless, begins a new file, which is written beside the log and
synchronised, and then takes its name: a kill leaves the one or the other, whole. Where the disk has no room for both,
it is appended like any other.

A record is a header of 21 bytes (magic ``tmkr``, length, CRC-32, size of the file that was synchronised when it was
written, flag) and its bytes. The last record of a new file is empty and says that those before it are on disk. When the
file is opened, all of it is checked. A record that is damaged while a later one says that it had been synchronised is
damage of what was acknowledged: an error that names the offset. Without such a one it is what a killed process or a
power cut left of records that were never acknowledged: it is cut, with a note in the log of the program. Invariant:
what is read is what was kept since the last restart, in order, and all of it that was acknowledged.

:class:`WorldLog` keeps the versions of a world so, and in a folder beside the file the shapes with arrays that they
name.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import mmap
import os
import stat
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tmkit.errors import LogDamageError, OutputError, ServiceError, StoreDamageError
from tmkit.graph import SceneGraph, Shape
from tmkit.store.blobs import BlobFolder
from tmkit.store.encoding import Replay
from tmkit.world.service import messages as m
from tmkit.world.service.access import ServiceLimits
from tmkit.world.service.transports import Handler, Reply, Transport

_logger = logging.getLogger(__name__)
_MAGIC = b"tmkr"
_HEADER = struct.Struct("<4sIIQB")  # magic, length, checksum of what follows it, synchronised size, flag
_CHECKED = 12  # offset of what the checksum is of
_LARGEST = 2**30
_PLAIN, _RESTART, _MARK = 0, 1, 2  # flags; a mark only says what is synchronised
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK


class RecordingTransport(Transport):
    """Wraps a transport and keeps records in a file, which one process at a time may use.

    Args:
        transport: the one that carries the messages.
        path: the file; made if it is missing.

    Attributes:
        failure: why the disk refused; None while it does not.
        notes: what was cut when the file was opened.
        restarts: how many have become the beginning of the file since.

    Raises:
        ServiceError: another process uses the file, or it is no regular file.
        LogDamageError: a record that had been acknowledged is damaged.
        OutputError: the file cannot be opened.
    """

    def __init__(self, transport: Transport, path: str | os.PathLike[str]) -> None:
        self._transport, self._path = transport, Path(path)
        self.failure: str | None = None
        self.notes: tuple[str, ...] = ()
        self.restarts = 0
        self._changed = threading.Condition()
        self._waiting: list[bytes | tuple[Reply, bytes]] = []
        self._is_busy = self._is_closed = False
        try:
            self._file = os.open(self._path, _FLAGS, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(self._file).st_mode):
                    raise ServiceError(f"{path}: expected a regular file", kind="log")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                    raise BlockingIOError  # another process has just begun it anew
                if os.pread(self._file, 4, 0)[:4] != _MAGIC[: os.fstat(self._file).st_size]:
                    raise ServiceError(f"{path}: this is no log of a world; it is left as it is", kind="log")
                self._restart = self._checked()
            except BaseException:
                os.close(self._file)
                raise
        except BlockingIOError:
            raise ServiceError(f"{path}: another process uses the log", kind="log") from None
        except OSError as error:
            raise OutputError(f"{path}: {error.strerror}", path=str(path), reason=error.strerror) from None
        self._thread = threading.Thread(target=self._write_records, name="tmkit log", daemon=True)
        self._thread.start()

    def serve(self, handler: Handler) -> None:
        """Begin to hand requests to a server; its answers leave after the records before them are on disk."""
        self._transport.serve(lambda message, reply: handler(message, lambda answer: self._answer(reply, answer)))

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request by the wrapped transport."""
        return self._transport.request(message, timeout=timeout)

    def keep(self, record: bytes, *, is_restart: bool = False) -> None:
        """Append a record; answers that are given after this call wait until it is on disk.

        Args:
            record: bytes of the server's own.
            is_restart: a new server needs no records from before this one; the file begins anew with it.
        """
        with self._changed:
            self._waiting.append(bytes([_RESTART if is_restart else _PLAIN]) + record)
            self._changed.notify()

    def recorded(self) -> Iterator[bytes]:
        """Yield the records that were there when the file was opened, from the last restart on."""
        with self._mapped(self._size_at_opening) as data:
            at = self._restart
            while at < self._size_at_opening:
                _, length, _, _, flag = _HEADER.unpack_from(data, at)
                at += _HEADER.size + length
                if flag != _MARK:
                    yield data[at - length : at]

    def close(self) -> None:
        """Write what waits, send the answers, and close the file and the transport."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._transport.close()
        os.close(self._file)

    def _answer(self, reply: Reply, answer: bytes) -> None:
        with self._changed:
            if self._waiting or self._is_busy:  # for ever after a failure
                self._waiting.append((reply, answer))
                return
        reply(answer)

    def _write_records(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                taken, self._waiting, self._is_busy = self._waiting, [], True
            records = [one for one in taken if isinstance(one, bytes)]
            try:
                if records:
                    self._keep_all(records)
            except OSError as error:
                self.failure = f"{self._path}: {error.strerror}"
                _logger.error("the log cannot be written; no edit is acknowledged any more: %s", self.failure)
                return
            for one in taken:
                if not isinstance(one, bytes):
                    one[0](one[1])

    def _keep_all(self, records: list[bytes]) -> None:
        """Write records to the disk: into a new file from the last restart on, or, if that fails, to the end of this.

        Once the new file has the name, records may be in it twice, and still those from the last restart on count.
        """
        begin = max((k for k, record in enumerate(records) if record[0] == _RESTART), default=-1)
        if begin >= 0:
            try:
                self._begin_anew(records[begin:])
                return
            except OSError as error:
                _logger.warning("%s: cannot be shortened: %s", self._path, error.strerror)
        data = b"".join(_framed(record, self._synchronised) for record in records)
        _write(self._file, data)
        self._synchronised += len(data)

    def _begin_anew(self, records: list[bytes]) -> None:
        path = os.path.realpath(self._path)
        new = f"{path}~tmkr"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)  # of a process that was killed
        file = os.open(new, _FLAGS | os.O_EXCL, 0o600)
        try:
            os.fchmod(file, stat.S_IMODE(os.fstat(self._file).st_mode))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = b"".join(_framed(record, 0) for record in records)
            data += _framed(bytes([_MARK]), len(data))
            _write(file, data)
            os.rename(new, path)
        except OSError:
            os.close(file)
            os.unlink(new)
            raise
        os.close(self._file)
        self._file, self._synchronised = file, len(data)
        self._synchronise_folder()
        self.restarts += 1

    def _checked(self) -> int:
        """Check all records, cut a torn tail, and return the offset of the last restart."""
        size, restart, at = os.fstat(self._file).st_size, 0, 0
        with self._mapped(size) as data, memoryview(data) as view:
            while at < size and (end := _end_of_record(view, at, size)):
                if view[at + _HEADER.size - 1] == _RESTART:
                    restart = at
                at = end
            later = at
            while (later := data.find(_MAGIC, later + 1)) >= 0:
                if _end_of_record(view, later, size) and _HEADER.unpack_from(view, later)[3] > at:
                    raise LogDamageError.of(self._path, at)
        if at < size:
            note = f"{self._path}: {size - at} bytes at offset {at} were never acknowledged and are cut"
            _logger.warning("%s", note)
            self.notes = (note,)
            os.ftruncate(self._file, at)
        os.fsync(self._file)
        self._synchronise_folder()
        self._synchronised = self._size_at_opening = at
        return restart

    def _synchronise_folder(self) -> None:
        """Bring the name of a new file to the disk."""
        folder = os.open(os.path.dirname(os.path.realpath(self._path)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _mapped(self, size: int) -> mmap.mmap:
        if size == 0:
            return mmap.mmap(-1, 1)
        data = mmap.mmap(self._file, size, access=mmap.ACCESS_READ)
        data.madvise(mmap.MADV_SEQUENTIAL)
        return data


def _framed(record: bytes, synchronised: int) -> bytes:
    """Return a record, of which the first byte is the flag, with its header."""
    checked = struct.pack("<QB", synchronised, record[0]) + record[1:]
    return struct.pack("<4sII", _MAGIC, len(record) - 1, zlib.crc32(checked)) + checked


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.fdatasync(file)


def _end_of_record(view: memoryview, at: int, size: int) -> int:
    """Return where a whole record at an offset ends; 0 where there is none."""
    if at + _HEADER.size > size:
        return 0
    magic, length, checksum, synchronised, _ = _HEADER.unpack_from(view, at)
    end: int = at + _HEADER.size + length
    if magic != _MAGIC or length > _LARGEST or end > size or synchronised > at:
        return 0
    return end if zlib.crc32(view[at + _CHECKED : end]) == checksum else 0


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
        """Begin the log anew with a version that ``encode`` returns, without shapes of older ones only."""
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
