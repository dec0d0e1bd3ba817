"""Writing files: completely or not at all.

A file is written beside its place under another name, and then takes its place at once. Who is interrupted meanwhile
removes what is half written. A process that is killed outright cannot; what it left is removed by the next that writes
the same file. A half-written file is locked by the process that writes it, and the operating system lets go of the lock
when the process dies, so the files of the living stay.

Invariants: no reader ever sees half a file under its name; only files are removed that were written here.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import BinaryIO

from tmkit.errors import OutputError

try:
    import fcntl
except ImportError:  # there are no such locks, and so nothing is removed for others
    fcntl = None  # type: ignore[assignment]  # the module is Unix's only

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file through a temporary file in the same folder, so that no reader sees half of it.

    Raises:
        OutputError: the file cannot be written; whatever was there before is still there.
    """
    _remove_left_behind(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            with temporary.open("xb") as file:
                _lock(file)
                file.write(data)
                file.flush()
                os.replace(temporary, path)
        except BaseException:  # an interruption, too, must leave nothing behind
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot write '{path}': {error.strerror}", path=str(path), reason=error.strerror) from error


def _lock(file: BinaryIO) -> bool:
    """Lock a file while it is open; return whether that could be done."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system knows no locks
        return False
    return True


def _remove_left_behind(path: Path) -> None:
    """Remove what dead processes have half written of a file."""
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}")
    with contextlib.suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(path.parent)):
            with contextlib.suppress(OSError), path.with_name(name).open("r+b") as file:
                if _lock(file):
                    path.with_name(name).unlink()
