"""Transport with a log: records are on disk before any later reply is sent.

It wraps another transport. A record is appended to one file at once. If that fails, as on a full
disk, the written part is cut, and the caller receives the error. A thread synchronises the file
(``fdatasync``), and then sends the replies that waited for it. Many edits share one
synchronisation, and queries wait only while records do. If the synchronisation fails, no further
reply is sent, and :attr:`RecordingTransport.failure` has the reason.

A restart is a record that makes earlier ones needless. It begins a new file, which is written
beside the log and synchronised, and then renamed to it. After a kill there is the old or the new
file, complete. If the disk has no room for both, the record is appended like any other.

A record is a header of 21 bytes (magic ``tmkr``, length, CRC-32, synchronised size of the file at
the time of writing, flag) and its bytes. The last record of a new file is an empty mark that the
records before it are on disk.

All of a file is checked when it is opened. If a later record states that a damaged one was
synchronised, an acknowledged record is damaged, which is an error with the offset. Otherwise the
damage is the rest of unacknowledged records after a kill or a power cut. It is cut, with a note in
the log of the program.

Invariant: the records that are read are those since the last restart, in order, and include all
acknowledged ones.

:class:`WorldLog` stores the versions of a world in such a log, and their shapes with arrays in a
folder beside the file.
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
"""First bytes of a record."""

_HEADER = struct.Struct("<4sIIQB")
"""Header of a record: magic, length, checksum, synchronised size and flag."""

_CHECKSUM_START = 12
"""Offset in a record from which on bytes are part of the checksum."""

_MAX_RECORD_SIZE = 2**30
"""Largest size of a record [bytes]."""

_PLAIN_FLAG = 0
"""Flag of a record."""

_RESTART_FLAG = 1
"""Flag of a record that makes earlier ones needless."""

_MARK_FLAG = 2
"""Flag of an empty record that only states the synchronised size."""

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags with which the file is opened."""

_MIN_SNAPSHOT_RATIO = 8
"""Ratio of the versions' size to the snapshot's size before the next snapshot."""


class RecordingTransport(Transport):
    """Transport that wraps another one and appends records to a file of one process.

    Args:
        transport: transport of the messages.
        path: file. It is created if it is missing.

    Attributes:
        failure: reason for which the file cannot be synchronised. None without a failure.
        notes: records that were cut when the file was opened.
        restarts: number of restarts that began a new file.

    Raises:
        ServiceError: if another process uses the file, or it is not a regular file.
        LogDamageError: if an acknowledged record is damaged.
        OutputError: if the file cannot be opened.
    """

    def __init__(self, transport: Transport, path: str | os.PathLike[str]) -> None:
        self._transport, self._path = transport, Path(path)
        self.failure: str | None = None
        self.notes: tuple[str, ...] = ()
        self.restarts = 0
        # The lock of synchronisation and restarts is acquired before that of the state.
        self._disk = threading.Lock()
        self._changed = threading.Condition()
        self._pending_replies: list[tuple[Reply, bytes]] = []
        self._is_dirty = self._is_busy = self._is_closed = False
        self._cuts = 0  # number of truncations
        self._written = self._synchronised = 0  # sizes of the file
        try:
            self._file = os.open(self._path, _OPEN_FLAGS, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(self._file).st_mode):
                    raise ServiceError(f"{path}: expected a regular file", kind="log")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                    raise BlockingIOError  # another process has just restarted it
                if os.pread(self._file, 4, 0)[:4] != _MAGIC[: os.fstat(self._file).st_size]:
                    raise ServiceError(
                        f"{path}: not a log of a world; the file is unchanged", kind="log"
                    )
                self._restart_offset = self._check_records()
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
        """Pass requests to a server; replies are sent after earlier records are on disk."""
        self._transport.serve(
            lambda message, reply: handler(message, lambda answer: self._send_reply(reply, answer))
        )

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request by the wrapped transport."""
        return self._transport.request(message, timeout=timeout)

    def append(self, record: bytes, *, is_restart: bool = False) -> None:
        """Append a record. Answers after this call wait until it is on disk.

        Args:
            record: bytes of the record.
            is_restart: whether the record makes earlier ones needless, so that the file may begin
                with it.

        Raises:
            OutputError: if the record is too large or cannot be written. The file is unchanged.
        """
        if len(record) > _MAX_RECORD_SIZE:
            raise self._error(
                f"a record of {len(record):,} bytes; expected at most {_MAX_RECORD_SIZE:,}"
            )
        if self.failure is not None or self._is_closed:
            raise self._error(self.failure or "it is closed")
        data = bytes([_RESTART_FLAG if is_restart else _PLAIN_FLAG]) + record
        if is_restart:
            with self._disk, self._changed:
                try:
                    self._restart_file(data)
                    return
                except OSError as error:
                    _logger.warning("%s: cannot restart: %s", self._path, error.strerror)
        with self._changed:
            data = _frame_record(data, self._synchronised)
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
        """Size of the file with all records [bytes]."""
        return self._written

    def truncate(self, size: int) -> None:
        """Cut the file to an earlier size, before records of which no reply was given."""
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
        self._is_dirty = True  # replies also wait until the cut is on disk
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

    def read_records(self) -> Iterator[bytes]:
        """Yield the records of the file at its opening, from the last restart on."""
        with self._map_file(self._size_at_opening) as data:
            offset = self._restart_offset
            while offset < self._size_at_opening:
                _, length, _, _, flag = _HEADER.unpack_from(data, offset)
                offset += _HEADER.size + length
                if flag != _MARK_FLAG:
                    yield data[offset - length : offset]

    def close(self) -> None:
        """Write pending records, send the replies, and close the file and the transport."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._transport.close()
        os.close(self._file)

    def _send_reply(self, reply: Reply, answer: bytes) -> None:
        with self._changed:
            if self._is_dirty or self._is_busy or self.failure is not None:
                self._pending_replies.append((reply, answer))
                return
        reply(answer)

    def _synchronise(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                while not self._is_dirty and not self._pending_replies and not self._is_closed:
                    self._changed.wait()
                if self.failure is not None or not (self._is_dirty or self._pending_replies):
                    return
                self._is_busy = True
            with self._disk:
                with self._changed:
                    answers, self._pending_replies = self._pending_replies, []
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

    def _restart_file(self, record: bytes) -> None:
        """Replace the file by a new one that begins with a record; both locks are held."""
        path = os.path.realpath(self._path)
        new = f"{path}~tmkr"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)  # left by a killed process
        file = os.open(new, _OPEN_FLAGS | os.O_EXCL, 0o600)
        try:
            os.fchmod(file, stat.S_IMODE(os.fstat(self._file).st_mode))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = _frame_record(record, 0)
            data += _frame_record(bytes([_MARK_FLAG]), len(data))
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

    def _check_records(self) -> int:
        """Check all records, cut an incomplete tail, and return the offset of the last restart."""
        size, restart, valid_size = os.fstat(self._file).st_size, 0, 0
        with self._map_file(size) as data, memoryview(data) as view:
            while valid_size < size and (end := _end_of_record(view, valid_size, size)):
                if view[valid_size + _HEADER.size - 1] == _RESTART_FLAG:
                    restart = valid_size
                valid_size = end
            later = valid_size
            while (later := data.find(_MAGIC, later + 1)) >= 0:
                if _end_of_record(view, later, size):
                    synchronised = _HEADER.unpack_from(view, later)[3]
                    if synchronised > valid_size:
                        raise LogDamageError.of(self._path, valid_size)
        if valid_size < size:
            note = (
                f"{self._path}: {size - valid_size} bytes at offset {valid_size} were never"
                " acknowledged and are cut"
            )
            _logger.warning("%s", note)
            self.notes = (note,)
            os.ftruncate(self._file, valid_size)
        os.fsync(self._file)
        self._synchronise_folder()
        self._written = self._synchronised = self._size_at_opening = valid_size
        return restart

    def _synchronise_folder(self) -> None:
        """Synchronise the folder, which has the name of a new file."""
        folder = os.open(
            os.path.dirname(os.path.realpath(self._path)), os.O_RDONLY | os.O_DIRECTORY
        )
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _map_file(self, size: int) -> mmap.mmap:
        if size == 0:
            return mmap.mmap(-1, 1)
        data = mmap.mmap(self._file, size, access=mmap.ACCESS_READ)
        data.madvise(mmap.MADV_SEQUENTIAL)
        return data


def _frame_record(record: bytes, synchronised: int) -> bytes:
    """Return a record, whose first byte is the flag, with its header."""
    content = struct.pack("<QB", synchronised, record[0]) + record[1:]
    return struct.pack("<4sII", _MAGIC, len(record) - 1, zlib.crc32(content)) + content


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _end_of_record(view: memoryview, offset: int, size: int) -> int:
    """Return the end of a complete record at an offset; 0 without one."""
    if offset + _HEADER.size > size:
        return 0
    magic, length, checksum, synchronised, _ = _HEADER.unpack_from(view, offset)
    end: int = offset + _HEADER.size + length
    if magic != _MAGIC or length > _MAX_RECORD_SIZE or end > size or synchronised > offset:
        return 0
    return end if zlib.crc32(view[offset + _CHECKSUM_START : end]) == checksum else 0


class _Version(msgspec.Struct, array_like=True, tag="version", gc=False):
    """Log record of a version as its difference to the one before, or to the empty scene."""

    number: int
    session: bytes
    request: int
    is_whole: bool
    record: bytes


class _Snapshot(msgspec.Struct, array_like=True, tag="snapshot", gc=False):
    """Log record of a whole world, with the last request and version of each session."""

    world: bytes
    number: int
    sessions: list[tuple[bytes, int, int]]
    record: bytes


_log_records: msgspec.msgpack.Decoder[_Version | _Snapshot] = msgspec.msgpack.Decoder(
    _Version | _Snapshot
)


class RecoveredWorld(NamedTuple):
    """World of a log.

    Attributes:
        world: identity of the world.
        number: number of its version.
        scene: the version.
        sessions: last request of each session, with its reply.
    """

    world: bytes
    number: int
    scene: SceneGraph
    sessions: OrderedDict[bytes, tuple[int, m.Done | m.Rejected]]


class WorldLog:
    """Log of the versions of a world, with a folder of its name and ``.blobs`` for shapes."""

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
        self._bytes_until_snapshot = 0

    def store_shape(self, shape: Shape) -> None:
        """Store a shape with arrays."""
        with self._lock:
            self._blobs.put(shape)
            self._named.add(shape.digest)

    def find_shape(self, digest: str, source: str) -> Shape | None:
        """Return a shape of the folder; None if it is missing or damaged.

        A damaged shape is compared when it is sent again.
        """
        with contextlib.suppress(StoreDamageError):
            return self._blobs.get(digest, source)
        return None

    @property
    def is_snapshot_due(self) -> bool:
        """True if the versions since the last snapshot exceed their limit."""
        return self._bytes_until_snapshot < 0

    def append_version(
        self, number: int, session: bytes, request: int, record: bytes, *, is_whole: bool
    ) -> None:
        """Append a version.

        Raises:
            OutputError: if it cannot be written.
        """
        data = m.encode(_Version(number, session, request, is_whole, record))
        self._transport.append(data)
        self._bytes_until_snapshot -= len(data)

    @property
    def size(self) -> int:
        """Size of the file [bytes], for :meth:`truncate`."""
        return self._transport.size

    def truncate(self, size: int) -> None:
        """Remove the versions after a size of the file. No client has received them."""
        self._transport.truncate(size)

    def append_snapshot(
        self,
        world: bytes,
        number: int,
        sessions: Mapping[bytes, tuple[int, m.Done | m.Rejected]],
        encode: Callable[[], bytes],
    ) -> None:
        """Restart the log with a version, and remove the shapes that only older versions use.

        Args:
            world: identity of the world.
            number: number of the version.
            sessions: last request of each session, with its reply.
            encode: function that returns the record of the whole version.
        """
        self._bytes_until_snapshot = (
            self._limits.log_bytes
        )  # until the next attempt, if this one fails
        before, self._named = self._named, set()
        restarts, is_restarted = self._transport.restarts, False
        try:
            done = [
                (session, request, answer.version)
                for session, (request, answer) in sessions.items()
                if isinstance(answer, m.Done)
            ]
            data = m.encode(_Snapshot(world, number, done, encode()))
            self._transport.append(data, is_restart=True)
            is_restarted = self._transport.restarts > restarts
        finally:
            if not is_restarted:
                self._named |= before
        self._reset_snapshot_size(data)
        if is_restarted:
            with self._lock:
                self._blobs.remove_all_but(before | self._named)

    def _reset_snapshot_size(self, snapshot: bytes) -> None:
        """Set the size of the versions until the next snapshot."""
        size = _MIN_SNAPSHOT_RATIO * len(snapshot)
        self._bytes_until_snapshot = max(self._limits.log_bytes, size)

    def recover(self) -> RecoveredWorld | None:
        """Return the world of the log, None if it is new.

        Raises:
            ValueError: if the file is not a log of versions.
        """
        replay, world, number = None, b"", 0
        requests: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # with versions, by session
        for data in self._transport.read_records():
            record = _log_records.decode(data)
            if isinstance(record, _Snapshot):
                world = record.world
                requests.update(
                    (session, (request, version)) for session, request, version in record.sessions
                )
                self._reset_snapshot_size(data)
            elif replay is None or record.number != number + 1:
                raise ValueError(f"version {record.number} comes after version {number}")
            else:
                requests[record.session] = record.request, record.number
                self._bytes_until_snapshot -= len(data)
            if replay is None or isinstance(record, _Snapshot) or record.is_whole:
                replay = Replay(m.EMPTY, shape=self._load_shape, source=self._keys.source)
            replay.add(record.record)
            number = record.number
        requests.pop(b"", None)
        if replay is None:
            return None
        scene = replay.finish()
        self._keys.prune(scene)
        sessions: OrderedDict[bytes, tuple[int, m.Done | m.Rejected]] = OrderedDict(
            (session, (request, m.Done(world, version)))
            for session, (request, version) in requests.items()
        )
        return RecoveredWorld(world, number, scene, sessions)

    def _load_shape(self, scene: SceneGraph, digest: str, source: str) -> Shape:
        self._named.add(digest)
        return m.find_shape(scene, digest) or self._blobs.get(digest, source)
