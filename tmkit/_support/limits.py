"""Size limits for untrusted input.

:func:`read_bytes` refuses folders, pipes, devices and files that are too large before the first
byte is read. :class:`ReadingLimits` holds the limits of all readers; for a trusted file they may be
raised.

Invariants: no more than the limit of a file (plus one byte) is ever read.
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

_MEGABYTE = 1_000_000
MAX_SOURCE_DIMENSION = 100_000
"""Limit of the dimension of a noise source in a file or a store."""

GREATEST_PORT = 65535
"""Greatest number of a port."""

_DEEPEST_INCLUDE = 64
"""Number of included files that are read within each other."""

Signature = tuple[int, int, int, int] | None
"""Size, times of the last change of content and of inode [ns], and inode of a file; None: there is none."""

files_seen: ContextVar[dict[str, Signature] | None] = ContextVar("files_seen", default=None)
"""Collects the files that are read or looked for: signatures before the first reading, by absolute path."""

checksums_read: ContextVar[dict[str, str] | None] = ContextVar("checksums_read", default=None)
"""Collects the SHA-256 of each file that is read, in hexadecimal digits, by the path that was given."""

BYTE_ORDER_MARK = "\ufeff"
"""Mark that programs of Windows put at the beginning of texts."""

_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # which begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and encodings of texts."""

_SYSTEM = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ESTALE)


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How much a file may ask for."""

    text_bytes: int = 32 * _MEGABYTE  # size of a URDF or SRDF file, and of other texts
    # size of a robray file with all that it includes, whose reader takes some seconds a megabyte
    robray_bytes: int = 4 * _MEGABYTE
    # size of a robot description, whose reader takes time that grows with the square of a key's
    # length
    toml_bytes: int = 50_000
    json_bytes: int = 1000 * _MEGABYTE  # size of a JSON scene or plan, which may hold meshes
    mesh_bytes: int = 200 * _MEGABYTE  # size of a file of a mesh, of points or of heights
    mesh_triangles: int = 2_000_000  # triangles of one mesh
    points: int = 2_000_000  # points of one cloud, or heights of one field
    frames: int = 100_000  # frames of one scene, those of all files of a load together
    includes: int = 5000  # files that those of one load include, each as often as it is included

    def refuse_frames(self, count: int, error: Callable[[str], FileFormatError]) -> None:
        """Refuse a scene of too many frames."""
        if count > self.frames:
            raise error(
                f"the scene has more than {self.frames} frames, which is the limit of a scene"
            )


@dataclass(slots=True)
class IncludeStack:
    """Includes of the files of one load.

    Attributes:
        count: number of includes so far.
        open: real paths of the files that are being read, the outermost first.
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
        """Read an included file in a block.

        Raises:
            FileFormatError: if it includes itself, directly or through others, or includes are
                nested too deeply.
        """
        if path in self.open:
            around = [*self.open[self.open.index(path) :], path]
            raise error(f"the includes form a cycle: {' -> '.join(map(str, around))}")
        if len(self.open) >= _DEEPEST_INCLUDE:
            raise error(f"includes are nested more than {_DEEPEST_INCLUDE} deep")
        self.open.append(path)
        try:
            yield
        finally:
            self.open.pop()


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
"""Kinds of entries other than files."""


def file_signature(path: str) -> Signature:
    """Return what changes with a file; the time of the inode does even if that of the content is set back."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def see(path: Path) -> None:
    """Count a file as seen: a result depends on it, or on its absence."""
    if (seen := files_seen.get()) is not None and (name := os.path.abspath(path)) not in seen:
        seen[name] = file_signature(name)


def is_file(path: Path) -> bool:
    """Return whether there is a file at a path, which counts as seen."""
    see(path)
    return os.path.isfile(path)


def other_kind(path: Path) -> str | None:
    """Return what stands at a path in place of a regular file, as ``"a folder"``; ``None`` for a file or nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "a device")


def read_bytes(
    path: Path, *, limit: int, error: Callable[[str], FileFormatError] | None = None
) -> bytes:
    """Return what a regular file of at most ``limit`` bytes holds; ``error`` makes the error that says a reason."""
    refuse = error or (lambda reason: FileFormatError.at(path, reason))
    see(path)
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kinds = {
                stat.S_IFDIR: "Is a directory",
                stat.S_IFIFO: "it is a pipe",
                stat.S_IFSOCK: "it is a socket",
            }
            raise OSError(kinds.get(stat.S_IFMT(mode), "it is a device"))
        # Should a pipe come to stand there meanwhile, O_NONBLOCK does not wait for a writer.
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            size = os.fstat(file.fileno()).st_size
            data = _read_up_to(file, limit + 1, size=size) if size <= limit else b""
    except OSError as failure:
        raise refuse(f"cannot be read: {failure.strerror or failure}") from failure
    except ValueError as failure:
        raise refuse(f"is no name of a file: {failure}") from failure
    if max(size, len(data)) > limit:
        received = max(size, len(data)) / _MEGABYTE
        raise refuse(
            f"is too large: {received:.6g} MB, expected at most {limit / _MEGABYTE:.6g} MB"
        )
    if (checksums := checksums_read.get()) is not None:
        checksums[str(path)] = sha256_of(data)
    return data


def _read_up_to(file: BinaryIO, count: int, *, size: int) -> bytes:
    """Return at most ``count`` bytes; memory is reserved for ``size`` of them, and for more only as they come."""
    parts: list[bytes] = []
    while count > 0 and (part := file.read(min(count, max(size, _MEGABYTE) + 1))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def as_utf8(data: bytes, refuse: Callable[[str], Exception]) -> bytes:
    """Return a text in UTF-8, without a byte order mark, of one in UTF-8, or with the mark of UTF-16 or UTF-32.

    Args:
        data: the text; without a mark it stays as it is.
        refuse: makes the error of a reason.

    Raises:
        Exception: if the text is not in the encoding of its mark.
    """
    encoding = next((name for mark, name in _ENCODINGS if data.startswith(mark)), None)
    if encoding is None:
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(encoding).encode("utf-8")
    except UnicodeError as failure:
        raise refuse(
            f"is not {encoding.upper()} text, of which it has the byte order mark: {failure}"
        ) from None


def is_refused_by_system(error: BaseException) -> bool:
    """Return whether an error is due to the disk or the system, not to the file: a shape is no less there for it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (
            isinstance(cause, OSError) and cause.errno in _SYSTEM
        ):
            return True
        cause = cause.__cause__
    return False
