"""Size limits for untrusted input.

:func:`read_bytes` rejects folders, pipes, devices and files above a size limit before it reads the
first byte. :class:`ReadingLimits` has the limits of all readers; for trusted files, a caller may
raise them.

Invariants: a reader reads no more than the limit of a file plus one byte.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tmkit.errors import FileFormatError

_BYTES_PER_MEGABYTE = 1_000_000
"""Size of a megabyte [B]."""

MAX_SOURCE_DIMENSION = 100_000
"""Limit of the dimension of a noise source in a file or a store."""

GREATEST_PORT = 65535
"""Greatest number of a port."""

_MAX_INCLUDE_DEPTH = 64
"""Largest depth of nested includes."""

Signature = tuple[int, int, int, int] | None
"""Size [B], change times of content and inode [ns], and inode of a file; None if missing."""

files_seen: ContextVar[dict[str, Signature] | None] = ContextVar("files_seen", default=None)
"""Signature before the first access of each file that a reader opens or tests, by path."""

checksums_read: ContextVar[dict[str, str] | None] = ContextVar("checksums_read", default=None)
"""SHA-256 of each file that a reader opens, in hexadecimal digits, by the path of the caller."""

BYTE_ORDER_MARK = "\ufeff"
"""Mark at the beginning of texts of Windows programs."""

_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # precedes UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and encodings of texts."""

_SYSTEM_ERRORS = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ESTALE)
"""Errors that are due to the disk or the system, not to the file."""


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Limits of the size and content of files.

    Attributes:
        text_bytes: size of a URDF or SRDF file, and of other texts [B].
        robray_bytes: size of a robray file with its includes [B]. Its reader takes some seconds a
            megabyte.
        toml_bytes: size of a robot description [B]. The time of its reader grows with the square
            of the length of a key.
        json_bytes: size of a JSON scene or plan, which may contain meshes [B].
        mesh_bytes: size of a file of a mesh, a point cloud or a height field [B].
        mesh_triangles: number of triangles of a mesh.
        points: number of points of a cloud, or of heights of a field.
        frames: number of frames of a scene, over all files of a load.
        includes: number of includes of a load, with repetitions.
    """

    text_bytes: int = 32 * _BYTES_PER_MEGABYTE
    robray_bytes: int = 4 * _BYTES_PER_MEGABYTE
    toml_bytes: int = 50_000
    json_bytes: int = 1000 * _BYTES_PER_MEGABYTE
    mesh_bytes: int = 200 * _BYTES_PER_MEGABYTE
    mesh_triangles: int = 2_000_000
    points: int = 2_000_000
    frames: int = 100_000
    includes: int = 5000

    def check_frame_count(self, count: int, error: Callable[[str], FileFormatError]) -> None:
        """Raise ``error`` for a scene of too many frames."""
        if count > self.frames:
            raise error(
                f"the scene has more than {self.frames} frames, which is the limit of a scene"
            )


@dataclass(slots=True)
class IncludeStack:
    """Includes of the files of one load.

    Attributes:
        count: number of includes so far.
        open: real paths of the open files, from the outermost inwards.
    """

    count: int = 0
    open: list[Path] = field(default_factory=list)

    def add(self, most: int, error: Callable[[str], FileFormatError]) -> None:
        """Count an include.

        Raises:
            FileFormatError: if there are more than ``most``.
        """
        self.count += 1
        if self.count > most:
            raise error(f"more than {most} files are included")

    @contextmanager
    def reading(self, path: Path, error: Callable[[str], FileFormatError]) -> Iterator[None]:
        """Mark an included file as open during a block.

        Raises:
            FileFormatError: if the file includes itself, directly or through other files, or
                includes are nested too deeply.
        """
        if path in self.open:
            cycle = [*self.open[self.open.index(path) :], path]
            raise error(f"the includes form a cycle: {' -> '.join(map(str, cycle))}")
        if len(self.open) >= _MAX_INCLUDE_DEPTH:
            raise error(f"includes are nested more than {_MAX_INCLUDE_DEPTH} deep")
        self.open.append(path)
        try:
            yield
        finally:
            self.open.pop()


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
"""Kinds of entries other than files."""


def file_signature(path: str) -> Signature:
    """Return a value that changes with a file; None if there is no file.

    It includes the time of the inode, which changes even if a program resets that of the content.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def record_access(path: Path) -> None:
    """Record that a result depends on a file or its absence."""
    signatures = files_seen.get()
    if signatures is not None and (name := os.path.abspath(path)) not in signatures:
        signatures[name] = file_signature(name)


def is_file(path: Path) -> bool:
    """Return whether there is a file at a path, and record the access."""
    record_access(path)
    return os.path.isfile(path)


def other_kind(path: Path) -> str | None:
    """Return the kind of an entry, as ``"a folder"``; None for a regular file or no entry."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "a device")


def read_bytes(
    path: Path, *, limit: int, error: Callable[[str], FileFormatError] | None = None
) -> bytes:
    """Return the content of a regular file.

    Args:
        path: file.
        limit: largest size [B].
        error: function that returns the error for a reason. Defaults to :meth:`FileFormatError.at`.

    Raises:
        FileFormatError: if the file cannot be read, is not regular, or is too large.
    """
    make_error = error or (lambda reason: FileFormatError.at(path, reason))
    record_access(path)
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kinds = {
                stat.S_IFDIR: "Is a directory",
                stat.S_IFIFO: "it is a pipe",
                stat.S_IFSOCK: "it is a socket",
            }
            raise OSError(kinds.get(stat.S_IFMT(mode), "it is a device"))
        # If a pipe has replaced the file since, O_NONBLOCK does not wait for a writer.
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            size = os.fstat(file.fileno()).st_size
            data = _read_up_to(file, limit + 1, size=size) if size <= limit else b""
    except OSError as failure:
        raise make_error(f"cannot be read: {failure.strerror or failure}") from failure
    except ValueError as failure:
        raise make_error(f"is not a file name: {failure}") from failure
    if max(size, len(data)) > limit:
        received = max(size, len(data)) / _BYTES_PER_MEGABYTE
        expected = limit / _BYTES_PER_MEGABYTE
        raise make_error(f"is too large: {received:.6g} MB, expected at most {expected:.6g} MB")
    if (checksums := checksums_read.get()) is not None:
        checksums[str(path)] = sha256_of(data)
    return data


def _read_up_to(file: BinaryIO, count: int, *, size: int) -> bytes:
    """Return at most ``count`` bytes, and reserve memory beyond ``size`` only as they arrive."""
    parts: list[bytes] = []
    while count > 0 and (part := file.read(min(count, max(size, _BYTES_PER_MEGABYTE) + 1))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of data in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def as_utf8(data: bytes, error: Callable[[str], Exception]) -> bytes:
    """Return a text in UTF-8, without a byte order mark.

    Args:
        data: text in UTF-8, or in UTF-16 or UTF-32 with a mark. Without a mark, it is unchanged.
        error: function that returns the error for a reason.

    Raises:
        Exception: if the text is not in the encoding of its mark.
    """
    encoding = next((name for mark, name in _ENCODINGS if data.startswith(mark)), None)
    if encoding is None:
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(encoding).encode("utf-8")
    except UnicodeError as failure:
        raise error(
            f"is not {encoding.upper()} text, of which it has the byte order mark: {failure}"
        ) from None


def is_system_error(error: BaseException) -> bool:
    """Return whether an error is due to the disk or the system, not to the file."""
    cause: BaseException | None = error
    while cause is not None:
        is_system = isinstance(cause, OSError) and cause.errno in _SYSTEM_ERRORS
        if is_system or isinstance(cause, MemoryError):
            return True
        cause = cause.__cause__
    return False
