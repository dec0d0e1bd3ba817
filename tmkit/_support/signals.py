"""Signals that end a program, while a library runs that would swallow them, and folders that are gone afterwards.

Some libraries catch everything where they try optional parts or several readers, Ctrl-C included.
:func:`interrupts_kept` keeps an interrupt until they are done, and delivers it then; likewise the
other signals that a program may answer by an exception, as the ``tmkit`` command does. A signal
without a handler ends the process at once.

:func:`temporary_folder` is made under that protection. What a process that is killed outright
leaves, the next one removes: each folder has a file in it that its process holds locked. The
operating system lets go of the lock when the process dies. (Numbers of processes would not do: they
are given again, and processes in containers share a folder for temporary files, but not their
numbers.) A folder gets its name when it is locked already.

Invariants: outside the block everything is as before; in a thread other than the main one, which
gets no signals, the block changes nothing; no folder is removed that a living process works in.
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

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OURS = "tmkit-"  # how the names of our folders begin
_LOCK = ".tmkit-lock"


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Deliver a signal that arrives within the block (SIGINT, SIGTERM, SIGHUP) at its end, the first of several."""
    previous = {
        number: handler for number in _ENDING if callable(handler := signal.getsignal(number))
    }
    if threading.current_thread() is not threading.main_thread():
        previous = {}
    kept: list[tuple[int, FrameType | None]] = []
    try:
        for number in previous:
            signal.signal(number, lambda number, frame: kept.append((number, frame)))
        yield
    finally:
        try:
            _restore(previous)
        except BaseException:  # another signal
            _restore(previous)
            raise
        if kept:
            first, frame = kept[0]
            previous[signal.Signals(first)](first, frame)


def _restore(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], object]]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Make a folder that is removed with the block; once a process, so is what dead processes have left of such."""
    made: list[tuple[Path, int]] = []
    try:
        with interrupts_kept():
            parent = Path(tempfile.gettempdir())
            _remove_left_behind(parent)
            made.append(_locked_folder(parent, purpose))
        yield made[0][0]
    except OSError as error:
        if made and (isinstance(error, TmkitError) or not _is_about(error, made[0][0])):
            raise
        raise _unusable(error) from error
    finally:
        try:
            _remove(made)
        except BaseException:  # a signal before its interrupts were kept
            _remove(made)
            raise


def _remove(made: list[tuple[Path, int]]) -> None:
    """Remove folders, and let go of their locks."""
    with interrupts_kept():
        while made:
            folder, lock = made.pop()
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _is_about(error: OSError, folder: Path) -> bool:
    """Whether an error speaks of a file in a folder, or of none, as those of writing and reading do."""
    named = error.filename
    return error.errno is not None and (
        named is None or (isinstance(named, str | Path) and folder in Path(named).parents)
    )


def _unusable(error: OSError) -> OutputError:
    where = os.environ.get("TMPDIR") or "the folder for temporary files"
    reason = error.strerror or str(error)
    return OutputError(
        f"{where}: cannot be used for temporary files: {reason} (TMPDIR)", path=where, reason=reason
    )


def _locked_folder(parent: Path, purpose: str) -> tuple[Path, int]:
    """Return a new folder and the open file in it that is locked."""
    new = Path(tempfile.mkdtemp(prefix=".tmkit-new-", dir=parent))
    lock = -1
    try:
        lock = os.open(new / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # a file system without locks: no process can take the folder for an abandoned one
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = parent / f"{_OURS}{purpose}-{secrets.token_hex(8)}"
        new.rename(named)
    except BaseException:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(new, ignore_errors=True)
        raise
    return named, lock


@cache
def _remove_left_behind(parent: Path) -> None:
    """Remove tmkit's folders in ``parent`` that no process uses any more."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_OURS):
                with suppress(OSError):
                    _remove_if_left_behind(Path(entry.path))


def _remove_if_left_behind(folder: Path) -> None:
    """Remove a folder of this user whose lock is free, or raise an OSError."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(place).st_uid != os.getuid():
            return
        lock = os.open(_LOCK, flags, dir_fd=place)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
    finally:
        os.close(place)
