"""Writing files: completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from tmkit.errors import OutputError

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file through a temporary file in the same folder, so that no reader sees half of it.

    Raises:
        OutputError: the file cannot be written; whatever was there before is still there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            with temporary.open("xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:  # an interruption, too, must leave nothing behind
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot write '{path}': {error.strerror}", path=str(path), reason=error.strerror) from error
