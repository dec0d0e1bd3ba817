"""Deferred delivery of signals, and temporary folders that are always removed.

Some libraries catch all exceptions, including Ctrl-C, while they try optional parts or several
readers. :func:`defer_interrupts` defers an interrupt to the end of a block. It also defers the
other signals that a program may convert to an exception, as the ``tmkit`` command does. A signal
without a handler ends the process at once.

:func:`temporary_folder` creates a folder under that protection. The next process removes the
folders of a killed one: each contains a file that its process locks, and the operating system
releases the lock when the process dies. Process identifiers do not suffice: they are reused, and
processes in containers share a folder for temporary files, but not their identifiers. A folder is
locked before it receives its name.

Invariants: a block restores the signal handlers. It has no effect in other threads than the main
one, which receive no signals. The folder of a running process is not removed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType

from tmkit.errors import OutputError, TmkitError

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that are deferred."""

_FOLDER_PREFIX = "tmkit-"
"""Prefix of the names of temporary folders."""

_LOCK_NAME = ".tmkit-lock"
"""Name of the locked file in a temporary folder."""


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Deliver the first SIGINT, SIGTERM or SIGHUP of a block at its end."""
    previous = {
        number: handler
        for number in _ENDING_SIGNALS
        if callable(handler := signal.getsignal(number))
    }
    if threading.current_thread() is not threading.main_thread():
        previous = {}
    deferred: list[tuple[int, FrameType | None]] = []
    try:
        for number in previous:
            signal.signal(number, lambda number, frame: deferred.append((number, frame)))
        yield
    finally:
        try:
            _restore(previous)
        except BaseException:  # another signal
            _restore(previous)
            raise
        if deferred:
            first, frame = deferred[0]
            previous[signal.Signals(first)](first, frame)


def _restore(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], object]]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Create a folder that is removed at the end of the block.

    The first call in a process also removes the folders of dead processes.

    Args:
        purpose: part of the name of the folder.

    Raises:
        OutputError: if the folder for temporary files cannot be used.
    """
    folders: list[tuple[Path, int]] = []
    try:
        with defer_interrupts():
            parent = Path(tempfile.gettempdir())
            _remove_abandoned_folders(parent)
            folders.append(_create_locked_folder(parent, purpose))
        yield folders[0][0]
    except OSError as error:
        if folders and (isinstance(error, TmkitError) or not _concerns(error, folders[0][0])):
            raise
        raise _output_error(error) from error
    finally:
        try:
            _remove(folders)
        except BaseException:  # a signal before _remove deferred signals
            _remove(folders)
            raise


def _remove(folders: list[tuple[Path, int]]) -> None:
    """Remove folders, and release their locks."""
    with defer_interrupts():
        while folders:
            folder, lock = folders.pop()
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _concerns(error: OSError, folder: Path) -> bool:
    """Return whether an error concerns a file in a folder, or an open file without a name."""
    name = error.filename
    return error.errno is not None and (
        name is None or (isinstance(name, str | Path) and folder in Path(name).parents)
    )


def _output_error(error: OSError) -> OutputError:
    parent = os.environ.get("TMPDIR") or "the folder for temporary files"
    reason = error.strerror or str(error)
    message = f"{parent}: cannot be used for temporary files: {reason} (TMPDIR)"
    return OutputError(message, path=parent, reason=reason)


def _create_locked_folder(parent: Path, purpose: str) -> tuple[Path, int]:
    """Return a new folder, and the descriptor of the locked file in it."""
    new = Path(tempfile.mkdtemp(prefix=".tmkit-new-", dir=parent))
    lock = -1
    try:
        lock = os.open(new / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # Without locks in the file system, no process removes the folder as abandoned.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = parent / f"{_FOLDER_PREFIX}{purpose}-{secrets.token_hex(8)}"
        new.rename(folder)
    except BaseException:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder, lock


@cache
def _remove_abandoned_folders(parent: Path) -> None:
    """Remove tmkit's folders in ``parent`` that no process uses."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_FOLDER_PREFIX):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of this user whose lock is free, or raise an OSError."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return
        lock = os.open(_LOCK_NAME, flags, dir_fd=descriptor)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
    finally:
        os.close(descriptor)
