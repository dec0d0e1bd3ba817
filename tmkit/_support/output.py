"""Writing files: completely or not at all.

A file is written beside its place under another name, synchronised with the disk, and then takes
its place at once. An interrupted process removes what is half written; that of a process that was
killed is removed by the next one that writes the same output, which finds that no process locks it
any more.

Symbolic links are followed, and a file that is replaced hands its mode and, where the system
permits that, its owner on. What is no regular file (a device, a pipe, ``/dev/stdout``) is opened
and written. Files that belong together are all written to temporary files before the first is
renamed: a full disk leaves all the old ones.

Invariants: no reader ever sees half a regular file under its name; only files are removed that were
    written here.
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

from tmkit._support.signals import interrupts_kept
from tmkit.errors import OutputError

_UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # of a file system that cannot
_NAME_BYTES = 200  # bytes of a name that a temporary name repeats; file systems take 255
_NAME_ATTEMPTS = 8


def write_text(path: Path, text: str) -> None:
    """Write one text file as UTF-8; see :func:`write_files`.

    Args:
        path: the file; replaced if it exists.
        text: its content.
    """
    write_files({path: text})


def write_files(files: Mapping[Path, str | bytes]) -> None:
    """Write files, each completely or not at all; the last one takes its place last.

    A regular file is replaced, a symbolic link followed, anything else opened and written. If
    writing fails (``OutputError``), whatever was there before is still there.
    """
    with contextlib.ExitStack() as unplaced:
        waiting = []
        for path, content in files.items():
            with _named(path):
                data = content.encode() if isinstance(content, str) else content
                target = _replaced(path)
                if target is None:
                    _write_directly(path, data)
                else:
                    waiting.append(
                        (path, target, unplaced.enter_context(_written_beside(target, data)))
                    )
        for path, target, temporary in waiting:
            with _named(path):
                os.replace(temporary, target)
                _synchronise_folder(target.parent)


def in_new_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Let a function fill a folder, which takes its place ``target``, where none is, when all is written."""
    if os.path.lexists(target):
        raise OutputError(
            f"{target}: is there already", path=str(target), reason="is there already"
        )
    beside: list[str] = []
    try:
        with interrupts_kept():
            beside.append(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        folder = Path(beside[0]) / target.name
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
            _remove_folders(beside)
        except BaseException:  # a signal
            _remove_folders(beside)
            raise


def _remove_folders(paths: Iterable[str]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Refuse an output, by an :class:`OutputError`, before the work is done, without touching it."""
    if (reason := _refusal(path)) is not None:
        raise OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)


def _refusal(path: Path) -> str | None:
    """Return why a file could not be written, ``None`` if nothing is known against it."""
    try:
        if os.path.isdir(path):
            return "it is a folder"
        target = _replaced(path)
        if target is not None and not os.path.isdir(target.parent):
            return f"there is no folder '{target.parent}'"
        return (
            None
            if os.access(path if target is None else target.parent, os.W_OK)
            else "permission denied"
        )
    except (OSError, ValueError) as error:
        return _reason(error)


def _reason(error: OSError | ValueError) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return "permission denied" if isinstance(error, PermissionError) else strerror or str(error)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Raise what the system refuses as an error that names the file as the user does."""
    try:
        yield
    except OutputError:
        raise
    except (OSError, ValueError) as error:  # a name with a NUL character is a ValueError
        reason = _reason(error)
        raise OutputError(
            f"cannot write '{path}': {reason}", path=str(path), reason=reason
        ) from error


def _replaced(path: Path) -> Path | None:
    """Return the regular file that is replaced, None for what is written directly, such as links to no path."""
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
    """Return the open file of this process that a path such as ``/dev/fd/1`` stands for."""
    folder = os.path.realpath(path.parent)
    is_own = folder in (f"/proc/{os.getpid()}/fd", "/dev/fd")
    return int(path.name) if is_own and path.name.isdecimal() else None


def _write_directly(path: Path, data: bytes) -> None:
    """Write into a device, a pipe, or an open file of this process."""
    while (number := _descriptor(path)) is None and os.path.islink(path):
        path = path.parent / os.readlink(path)
    if number is not None:
        for stream in (sys.stdout, sys.stderr):  # what was printed before comes before
            if stream is not None:
                stream.flush()
    opened = os.dup(number) if number is not None else os.open(path, os.O_WRONLY)
    with os.fdopen(opened, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def _written_beside(target: Path, data: bytes) -> Iterator[Path]:
    """Write a temporary file, give its path, and remove it at the end unless it has got another name."""
    _remove_left_behind(target)
    made: list[tuple[Path, BinaryIO]] = []
    try:
        with interrupts_kept():
            made.append(_new_file(target))
        temporary, file = made[0]
        with file:
            file.write(data)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                _keep_owner_and_mode(file, os.stat(target))
            _synchronise(file.fileno())
            yield temporary
    finally:
        try:
            _discard(made)
        except BaseException:  # a signal
            _discard(made)
            raise


def _discard(made: list[tuple[Path, BinaryIO]]) -> None:
    """Close temporary files and remove them, unless they have got another name."""
    for path, file in made:
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new file in the folder of another, locked: no process takes it for an abandoned one."""
    for _ in range(_NAME_ATTEMPTS):
        temporary = target.with_name(_prefix(target) + secrets.token_hex(8))
        file = temporary.open("xb")
        if _lock(file.fileno()) and os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # a process removed it as abandoned before it was locked
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _prefix(target: Path) -> str:
    """Return how the temporary names of a file begin."""
    return f".{os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])}."


def _keep_owner_and_mode(file: BinaryIO, old: os.stat_result) -> None:
    """Give a new file what the old one has; a user who may not give files away keeps the new one."""
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        with contextlib.suppress(PermissionError):
            os.fchown(file.fileno(), owner, group)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _synchronise(number: int) -> None:
    """Wait until the disk has what was written, where the file system can say so."""
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise


def _synchronise_folder(folder: Path) -> None:
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # files may be made in it, but it may not be read
        return
    try:
        _synchronise(number)
    finally:
        os.close(number)


def _lock(number: int) -> bool:
    """Lock an open file; return whether no other process holds it, also True if the file system has no locks."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _remove_left_behind(path: Path) -> None:
    """Remove what dead processes have half written of a file."""
    ours = re.compile(re.escape(_prefix(path)) + r"[0-9a-f]{16}")
    with contextlib.suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(path.parent)):
            with contextlib.suppress(OSError):
                _remove_unlocked(path.with_name(name))


def _remove_unlocked(path: Path) -> None:
    """Remove a file that no process has locked, or raise an OSError."""
    number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(number)
