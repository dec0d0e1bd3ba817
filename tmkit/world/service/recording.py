"""A transport that records: what it keeps is on disk before any answer that was given after it leaves.

It wraps another transport. Records are appended to one file. A thread writes all that waits, synchronises the file once
(``fdatasync``), and then sends the answers that waited for it: many edits share one synchronisation, and queries wait
only while records do. If the disk refuses, no answer leaves any more, and :attr:`RecordingTransport.failure` says why.

A record is a header of 21 bytes (magic ``tmkr``, length, CRC-32, size of the file that was synchronised when it was
written, flag) and its bytes. When the file is opened, all of it is checked. A record that is damaged while a later one
says that it had been synchronised is damage of what was acknowledged: an error that names the offset. Without such a
one it is what a killed process or a power cut left of records that nobody was told of: it is cut, with a note in the
log of the program. Invariant: what is read is what was kept, in order, and all of it that was acknowledged.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import stat
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from tmkit.errors import LogDamageError, OutputError, ServiceError
from tmkit.world.service.transports import Handler, Reply, Transport

_logger = logging.getLogger(__name__)
_MAGIC = b"tmkr"
_HEADER = struct.Struct("<4sIIQB")  # magic, length, checksum of what follows it, synchronised size, flag
_CHECKED = 12  # offset of what the checksum is of
_LARGEST = 2**30


class RecordingTransport(Transport):
    """Wraps a transport and keeps records in an append-only file, which one process at a time may use.

    Args:
        transport: the one that carries the messages.
        path: the file; made if it is missing.

    Attributes:
        failure: why the disk refused; None while it does not.
        notes: what was cut when the file was opened.

    Raises:
        ServiceError: another process uses the file, or it is no regular file.
        LogDamageError: a record that had been acknowledged is damaged.
        OutputError: the file cannot be opened.
    """

    def __init__(self, transport: Transport, path: str | os.PathLike[str]) -> None:
        self._transport, self._path = transport, Path(path)
        self.failure: str | None = None
        self.notes: tuple[str, ...] = ()
        self._changed = threading.Condition()
        self._waiting: list[bytes | tuple[Reply, bytes]] = []
        self._is_busy = self._is_closed = False
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
            self._file = os.open(self._path, flags, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(self._file).st_mode):
                    raise ServiceError(f"{path}: expected a regular file", kind="log")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        """Begin to hand requests to a server; its answers leave after the records before them are on disk.

        Args:
            handler: as of :meth:`Transport.serve`.
        """
        self._transport.serve(lambda message, reply: handler(message, lambda answer: self._answer(reply, answer)))

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request by the wrapped transport.

        Args:
            message: the request.
            timeout: seconds to wait.
        """
        return self._transport.request(message, timeout=timeout)

    def keep(self, record: bytes, *, is_restart: bool = False) -> None:
        """Append a record; answers that are given after this call wait until it is on disk.

        Args:
            record: bytes of the server's own.
            is_restart: a new server needs no records from before this one.
        """
        with self._changed:
            self._waiting.append(bytes([is_restart]) + record)
            self._changed.notify()

    def recorded(self) -> Iterator[bytes]:
        """Yield the records that were there when the file was opened, from the last restart on."""
        with self._mapped(self._size_at_opening) as data:
            at = self._restart
            while at < self._size_at_opening:
                length = _HEADER.unpack_from(data, at)[1]
                at += _HEADER.size + length
                yield data[at - length : at]

    def close(self) -> None:
        """Write what waits, send the answers, and close the file and the transport."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._transport.close()
        os.close(self._file)

    # --- inside -------------------------------------------------------------------------------------------------------

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
                    self._append(b"".join(self._framed(record) for record in records))
            except OSError as error:
                self.failure = f"{self._path}: {error.strerror}"
                _logger.error("the log cannot be written; no edit is acknowledged any more: %s", self.failure)
                return
            for one in taken:
                if not isinstance(one, bytes):
                    one[0](one[1])

    def _framed(self, record: bytes) -> bytes:
        checked = struct.pack("<QB", self._synchronised, record[0]) + record[1:]
        return struct.pack("<4sII", _MAGIC, len(record) - 1, zlib.crc32(checked)) + checked

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        os.fdatasync(self._file)
        self._synchronised += len(data)

    def _checked(self) -> int:
        """Check all records, cut a torn tail, and return the offset of the last restart."""
        size, restart, at = os.fstat(self._file).st_size, 0, 0
        with self._mapped(size) as data, memoryview(data) as view:
            while at < size and (end := _end_of_record(view, at, size)):
                if view[at + _HEADER.size - 1]:
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
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the name of a new file
        finally:
            os.close(folder)
        self._synchronised = self._size_at_opening = at
        return restart

    def _mapped(self, size: int) -> mmap.mmap:
        if size == 0:
            return mmap.mmap(-1, 1)
        return mmap.mmap(self._file, size, access=mmap.ACCESS_READ)


def _end_of_record(view: memoryview, at: int, size: int) -> int:
    """Return where a whole record at an offset ends; 0 where there is none."""
    if at + _HEADER.size > size:
        return 0
    magic, length, checksum, synchronised, _ = _HEADER.unpack_from(view, at)
    end: int = at + _HEADER.size + length
    if magic != _MAGIC or length > _LARGEST or end > size or synchronised > at:
        return 0
    return end if zlib.crc32(view[at + _CHECKED : end]) == checksum else 0
