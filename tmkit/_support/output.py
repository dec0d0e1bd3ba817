"""Atomic writing of files.

A temporary file beside the target is written, synchronised with the disk, and renamed. An
interrupted process removes its temporary files. Those of a killed process are removed by the next
process that writes the same output, since no process locks them.

Symbolic links are followed. A replaced file passes on its mode and, if the system permits that, its
owner. Other targets (a device, a pipe, ``/dev/stdout``) are opened and written. Files that belong
together are all written to temporary files before the first is renamed, so a full disk keeps all
old files.

Invariants: a reader never reads a part of a regular file under its name; only temporary files of
    this module are removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from tmkit._support.signals import defer_interrupts
from tmkit.errors import OutputError

_NO_SYNC_ERRORS = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""Errors of a file system without synchronisation."""

_MAX_NAME_BYTES = 200
"""Length of a name up to which a temporary name repeats it [B]; file systems allow 255."""

_NAME_ATTEMPTS = 8
"""Number of temporary names that are tried."""


def write_text(path: Path, text: str) -> None:
    """Write one text file as UTF-8; see :func:`write_files`.

    Args:
        path: file; an existing file is replaced.
        text: content of the file.
    """
    write_files({path: text})


def write_files(files: Mapping[Path, str | bytes]) -> None:
    """Write files, each completely or not at all, and rename them in order.

    A regular file is replaced, and a symbolic link is followed. Any other entry is opened and
    written.

    Raises:
        OutputError: if writing fails; the earlier content is unchanged.
    """
    with contextlib.ExitStack() as temporary_files:
        renames = []
        for path, content in files.items():
            with _name_file_in_errors(path):
                data = content.encode() if isinstance(content, str) else content
                target = _rename_target(path)
                if target is None:
                    _write_directly(path, data)
                else:
                    temporary = temporary_files.enter_context(_temporary_file(target, data))
                    renames.append((path, target, temporary))
        for path, target, temporary in renames:
            with _name_file_in_errors(path):
                os.replace(temporary, target)
                _synchronise_folder(target.parent)


def fill_new_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Create a folder atomically.

    Args:
        target: path of the folder.
        write: function that writes the files of the folder into a temporary folder.

    Raises:
        OutputError: if ``target`` exists or cannot be written.
    """
    if os.path.lexists(target):
        raise OutputError(
            f"{target}: is there already", path=str(target), reason="is there already"
        )
    temporary_folders: list[str] = []
    try:
        with defer_interrupts():
            temporary_folders.append(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        folder = Path(temporary_folders[0]) / target.name
        folder.mkdir()
        write(folder)
        os.rename(folder, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{target}: cannot be written: {reason}", path=str(target), reason=reason
        ) from error
    finally:
        try:
            _remove_folders(temporary_folders)
        except BaseException:  # a signal
            _remove_folders(temporary_folders)
            raise


def _remove_folders(paths: Iterable[str]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Check before the work that an output can be written, without a change on the disk.

    Raises:
        OutputError: if it cannot be written.
    """
    if (reason := _obstacle(path)) is not None:
        raise OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)


def _obstacle(path: Path) -> str | None:
    """Return a reason why a file cannot be written; None if no obstacle is found."""
    try:
        if os.path.isdir(path):
            return "it is a folder"
        target = _rename_target(path)
        if target is not None and not os.path.isdir(target.parent):
            return f"there is no folder '{target.parent}'"
        is_writable = os.access(path if target is None else target.parent, os.W_OK)
        return None if is_writable else "permission denied"
    except (OSError, ValueError) as error:
        return _reason(error)


def _reason(error: OSError | ValueError) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return "permission denied" if isinstance(error, PermissionError) else strerror or str(error)


@contextlib.contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Convert errors of the system to an OutputError with the user's name of the file."""
    try:
        yield
    except OutputError:
        raise
    except (OSError, ValueError) as error:  # a name with a NUL character is a ValueError
        reason = _reason(error)
        raise OutputError(
            f"cannot write '{path}': {reason}", path=str(path), reason=reason
        ) from error


def _rename_target(path: Path) -> Path | None:
    """Return the regular file to replace; None for an entry that is written directly."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        return None
    while os.path.islink(path):
        if _descriptor(path) is not None:
            return None
        path = path.parent / os.readlink(path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor of a path such as ``/dev/fd/1``, if it is one of this process."""
    folder = os.path.realpath(path.parent)
    is_own = folder in (f"/proc/{os.getpid()}/fd", "/dev/fd")
    return int(path.name) if is_own and path.name.isdecimal() else None


def _write_directly(path: Path, data: bytes) -> None:
    """Write into a device, a pipe, or an open file of this process."""
    while (number := _descriptor(path)) is None and os.path.islink(path):
        path = path.parent / os.readlink(path)
    if number is not None:
        for stream in (sys.stdout, sys.stderr):  # keeps the order of earlier output
            if stream is not None:
                stream.flush()
    descriptor = os.dup(number) if number is not None else os.open(path, os.O_WRONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def _temporary_file(target: Path, data: bytes) -> Iterator[Path]:
    """Write a temporary file beside its target, and remove it at the end unless it was renamed."""
    _remove_abandoned_files(target)
    files: list[tuple[Path, BinaryIO]] = []
    try:
        with defer_interrupts():
            files.append(_new_file(target))
        temporary, file = files[0]
        with file:
            file.write(data)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                _keep_owner_and_mode(file, os.stat(target))
            _synchronise(file.fileno())
            yield temporary
    finally:
        try:
            _discard(files)
        except BaseException:  # a signal
            _discard(files)
            raise


def _discard(files: list[tuple[Path, BinaryIO]]) -> None:
    """Close temporary files, and remove those that were not renamed."""
    for path, file in files:
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new file beside another, locked so that no process removes it as abandoned."""
    for _ in range(_NAME_ATTEMPTS):
        temporary = target.with_name(_prefix(target) + secrets.token_hex(8))
        file = temporary.open("xb")
        if _lock(file.fileno()) and os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # a process removed it as abandoned before it was locked
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _prefix(target: Path) -> str:
    """Return the prefix of the temporary names of a file."""
    return f".{os.fsdecode(os.fsencode(target.name)[:_MAX_NAME_BYTES])}."


def _keep_owner_and_mode(file: BinaryIO, old: os.stat_result) -> None:
    """Copy owner and mode of an old file to a new one; a user without the right keeps the owner."""
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        with contextlib.suppress(PermissionError):
            os.fchown(file.fileno(), owner, group)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _synchronise(number: int) -> None:
    """Wait until the data are on the disk, if the file system supports that."""
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_SYNC_ERRORS:
            raise


def _synchronise_folder(folder: Path) -> None:
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder in which files can be created, but that cannot be read
        return
    try:
        _synchronise(number)
    finally:
        os.close(number)


def _lock(number: int) -> bool:
    """Lock an open file; return False if another process has the lock.

    Without locks in the file system, the result is True.
    """
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _remove_abandoned_files(path: Path) -> None:
    """Remove temporary files of dead processes that were writing a file."""
    pattern = re.compile(re.escape(_prefix(path)) + r"[0-9a-f]{16}")
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(path.parent)):
            with contextlib.suppress(OSError):
                _remove_unlocked(path.with_name(name))


def _remove_unlocked(path: Path) -> None:
    """Remove a file without a lock, or raise an OSError."""
    number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(number)
