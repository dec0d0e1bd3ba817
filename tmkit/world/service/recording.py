"""A transport that records: what it keeps is on disk before any answer that was given after it leaves.

It wraps another transport. A record is appended to one file at once; if it cannot be, as on a full
disk, what was written of it is cut, and the caller receives the error. A thread synchronises the
file (``fdatasync``), and then sends the answers that waited for it: many edits share one
synchronisation, and queries wait only while records do. If the synchronisation fails, no answer
leaves any more, and :attr:`RecordingTransport.failure` is the reason.

A restart, a record that makes those before it needless, begins a new file, which is written beside
the log and synchronised, and then takes its name. A kill leaves the one or the other, whole. Where
the disk has no room for both, it is appended like any other.

A record is a header of 21 bytes (magic ``tmkr``, length, CRC-32, size of the file that was
synchronised when it was written, flag) and its bytes. The last record of a new file is empty and
says that those before it are on disk. When the file is opened, all of it is checked. A record that
is damaged while a later one says that it had been synchronised is damage of what was acknowledged:
an error that names the offset. Without such a one it is what a killed process or a power cut left
of records that were never acknowledged: it is cut, with a note in the log of the program.
Invariant: what is read is what was kept since the last restart, in order, and all of it that was
acknowledged.

:class:`WorldLog` keeps the versions of a world so, and in a folder beside the file the shapes with
arrays that they name.
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

from tmkit._support.extras import importing
from tmkit.errors import LogDamageError, OutputError, ServiceError, StoreDamageError
from tmkit.graph import SceneGraph, Shape
from tmkit.store.blobs import BlobFolder
from tmkit.store.encoding import Replay
from tmkit.world.service import messages as m
from tmkit.world.service.access import ServiceLimits
from tmkit.world.service.transports import Handler, Reply, Transport

with importing("msgspec", "world", "a served world needs"):
    import msgspec

_logger = logging.getLogger(__name__)
_MAGIC = b"tmkr"
# magic, length, checksum of what follows it, synchronised size, flag
_HEADER = struct.Struct("<4sIIQB")
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
        failure: why the file cannot be synchronised; None while it can.
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
        # of synchronisation, and of the file that is begun anew; before the next one
        self._disk = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: list[tuple[Reply, bytes]] = []
        self._is_dirty = self._is_busy = self._is_closed = False
        self._cuts = 0  # of records that were withdrawn
        self._written = self._synchronised = 0  # sizes of the file
        try:
            self._file = os.open(self._path, _FLAGS, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(self._file).st_mode):
                    raise ServiceError(f"{path}: expected a regular file", kind="log")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                    raise BlockingIOError  # another process has just begun it anew
                if os.pread(self._file, 4, 0)[:4] != _MAGIC[: os.fstat(self._file).st_size]:
                    raise ServiceError(
                        f"{path}: this is no log of a world; it is left as it is", kind="log"
                    )
                self._restart = self._checked()
            except BaseException:
                os.close(self._file)
                raise
        except BlockingIOError:
            raise ServiceError(f"{path}: another process uses the log", kind="log") from None
        except OSError as error:
            raise OutputError(
                f"{path}: {error.strerror}", path=str(path), reason=error.strerror
            ) from None
        self._thread = threading.Thread(target=self._synchronise, name="tmkit log", daemon=True)
        self._thread.start()

    def serve(self, handler: Handler) -> None:
        """Begin to hand requests to a server; its answers leave after the records before them are on disk."""
        self._transport.serve(
            lambda message, reply: handler(message, lambda answer: self._answer(reply, answer))
        )

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request by the wrapped transport."""
        return self._transport.request(message, timeout=timeout)

    def keep(self, record: bytes, *, is_restart: bool = False) -> None:
        """Append a record; answers that are given after this call wait until it is on disk.

        Args:
            record: bytes of the server's own.
            is_restart: a new server needs no records from before this one; the file begins anew
                with it.

        Raises:
            OutputError: if the record is too large or cannot be written; the file is as it was.
        """
        if len(record) > _LARGEST:
            raise self._error(f"a record of {len(record):,} bytes; expected at most {_LARGEST:,}")
        if self.failure is not None or self._is_closed:
            raise self._error(self.failure or "it is closed")
        flagged = bytes([_RESTART if is_restart else _PLAIN]) + record
        if is_restart:
            with self._disk, self._changed:
                try:
                    self._begin_anew(flagged)
                    return
                except OSError as error:
                    _logger.warning("%s: cannot be shortened: %s", self._path, error.strerror)
        with self._changed:
            data = _framed(flagged, self._synchronised)
            try:
                _write(self._file, data)
            except OSError as error:
                self._cut(self._written)
                raise self._error(error.strerror) from None
            self._written += len(data)
            self._is_dirty = True
            self._changed.notify()

    @property
    def size(self) -> int:
        """Size of the file with all records so far [bytes]."""
        return self._written

    def withdraw(self, size: int) -> None:
        """Cut the file to the size that it had before records of which no answer was given."""
        with self._changed:
            if self._written > size:
                self._cut(size)

    def _cut(self, size: int) -> None:
        """Cut the file; the lock is held."""
        try:
            os.ftruncate(self._file, size)
        except OSError as error:
            self._fail(error)
        self._written, self._synchronised = size, min(self._synchronised, size)
        self._cuts += 1
        self._is_dirty = True  # answers wait until the cut is on disk, too
        self._changed.notify()

    def _fail(self, error: OSError) -> None:
        self.failure = f"{self._path}: {error.strerror}"
        _logger.error(
            "the log cannot be written; no edit is acknowledged any more: %s", self.failure
        )

    def _error(self, reason: str | None) -> OutputError:
        reason = reason or "unknown reason"
        return OutputError(
            f"the log cannot be written: {reason}", path=str(self._path), reason=reason
        )

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
            if self._is_dirty or self._is_busy or self.failure is not None:
                self._waiting.append((reply, answer))
                return
        reply(answer)

    def _synchronise(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                while not self._is_dirty and not self._waiting and not self._is_closed:
                    self._changed.wait()
                if self.failure is not None or not (self._is_dirty or self._waiting):
                    return
                self._is_busy = True
            with self._disk:
                with self._changed:
                    answers, self._waiting = self._waiting, []
                    size, cuts = self._written, self._cuts
                    is_dirty, self._is_dirty = self._is_dirty, False
                try:
                    if is_dirty:
                        os.fdatasync(self._file)
                except OSError as error:
                    with self._changed:
                        self._fail(error)
                    return
                with self._changed:
                    if self._cuts == cuts:
                        self._synchronised = size
            for reply, answer in answers:
                reply(answer)

    def _begin_anew(self, record: bytes) -> None:
        """Write a file that begins with a record to the disk, and have it take the name; both locks are held."""
        path = os.path.realpath(self._path)
        new = f"{path}~tmkr"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)  # of a process that was killed
        file = os.open(new, _FLAGS | os.O_EXCL, 0o600)
        try:
            os.fchmod(file, stat.S_IMODE(os.fstat(self._file).st_mode))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = _framed(record, 0)
            data += _framed(bytes([_MARK]), len(data))
            _write(file, data)
            os.fdatasync(file)
            os.rename(new, path)
        except OSError:
            os.close(file)
            os.unlink(new)
            raise
        os.close(self._file)
        self._file = file
        self._written = self._synchronised = len(data)
        try:
            self._synchronise_folder()
        except OSError as error:
            self._fail(error)
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
            note = (
                f"{self._path}: {size - at} bytes at offset {at} were never acknowledged and"
                " are cut"
            )
            _logger.warning("%s", note)
            self.notes = (note,)
            os.ftruncate(self._file, at)
        os.fsync(self._file)
        self._synchronise_folder()
        self._written = self._synchronised = self._size_at_opening = at
        return restart

    def _synchronise_folder(self) -> None:
        """Bring the name of a new file to the disk."""
        folder = os.open(
            os.path.dirname(os.path.realpath(self._path)), os.O_RDONLY | os.O_DIRECTORY
        )
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


_log_records: msgspec.msgpack.Decoder[_Version | _Snapshot] = msgspec.msgpack.Decoder(
    _Version | _Snapshot
)


class Recovered(NamedTuple):
    """What a log holds: identity and version of the world, and of each session the last request with its answer."""

    world: bytes
    number: int
    scene: SceneGraph
    sessions: OrderedDict[bytes, tuple[int, m.Done | m.Refused]]


class WorldLog:
    """Writes versions to the log of a transport, and reads what it holds; its folder has its name and ``.blobs``."""

    def __init__(
        self,
        transport: RecordingTransport,
        path: str | os.PathLike[str],
        limits: ServiceLimits,
        keys: m.SourceKeys,
    ) -> None:
        self._transport, self._limits, self._keys = transport, limits, keys
        self._blobs = BlobFolder(Path(f"{os.fspath(path)}.blobs"), max_bytes=limits.message_bytes)
        self._lock = threading.Lock()  # of the folder
        self._named = set[str]()  # digests since the last snapshot
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

    @property
    def is_snapshot_due(self) -> bool:
        """Whether the versions since the last snapshot have outgrown it."""
        return self._room < 0

    def keep_version(
        self, number: int, session: bytes, request: int, record: bytes, *, is_whole: bool
    ) -> None:
        """Keep a version; OutputError where it cannot be written."""
        data = m.encode(_Version(number, session, request, is_whole, record))
        self._transport.keep(data)
        self._room -= len(data)

    @property
    def size(self) -> int:
        """Size of the file [bytes], for :meth:`withdraw`."""
        return self._transport.size

    def withdraw(self, size: int) -> None:
        """Remove the versions that were kept since the file had a size; no client has received them."""
        self._transport.withdraw(size)

    def keep_snapshot(
        self,
        world: bytes,
        number: int,
        sessions: Mapping[bytes, tuple[int, m.Done | m.Refused]],
        encode: Callable[[], bytes],
    ) -> None:
        """Begin the log anew with a version that ``encode`` returns, without shapes of older ones only."""
        self._room = self._limits.log_bytes  # until the next attempt, if this one fails
        before, self._named = self._named, set()
        restarts, is_begun = self._transport.restarts, False
        try:
            done = [(s, r, d.version) for s, (r, d) in sessions.items() if isinstance(d, m.Done)]
            data = m.encode(_Snapshot(world, number, done, encode()))
            self._transport.keep(data, is_restart=True)
            is_begun = self._transport.restarts > restarts
        finally:
            if not is_begun:
                self._named |= before
        self._room = max(self._limits.log_bytes, 8 * len(data))
        if is_begun:
            with self._lock:
                self._blobs.remove_all_but(before | self._named)

    def recovered(self) -> Recovered | None:
        """Return what the log holds, None if it is new; ValueError where it is no log of versions."""
        replay, world, at = None, b"", 0
        # requests of sessions and their versions
        last: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        decode, add = _log_records.decode, None
        for data in self._transport.recorded():
            record = decode(data)
            if isinstance(record, _Snapshot):
                world = record.world
                last.update(
                    (session, (request, version)) for session, request, version in record.sessions
                )
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
        done = [
            (session, (request, m.Done(world, version)))
            for session, (request, version) in last.items()
        ]
        return Recovered(world, at, scene, OrderedDict(done))

    def _named_shape(self, scene: SceneGraph, digest: str, source: str) -> Shape:
        self._named.add(digest)
        return m.shape_named(scene, digest) or self._blobs.get(digest, source)
