"""What runs while files are edited: ``tmkit scene check --watch`` and ``tmkit lsp``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tmkit.cli.common import print_json, say
from tmkit.cli.events import error_fields
from tmkit.errors import TmkitError


def lsp() -> None:
    """Run the language server for editors on the standard streams: scene files and PDDL (extra 'lsp')."""
    from tmkit.lsp.server import serve

    serve()


def check_again(
    check: Callable[[Callable[[Path], None]], object], *, as_json: bool, pause: Callable[[float], None] = time.sleep
) -> None:
    """Check, and again whenever a file has changed, until Ctrl-C.

    Args:
        check: prints a check, and calls what it is given with each file before it is read.
        as_json: whether errors are printed as JSON.
        pause: waits for some seconds before the files are looked at again.
    """
    while True:
        seen: dict[Path, tuple[int, ...]] = {}

        def note(path: Path, seen: dict[Path, tuple[int, ...]] = seen) -> None:
            seen.setdefault(path, _mark(path))

        try:
            check(note)
        except TmkitError as error:
            if not seen:
                raise  # nothing to watch
            if as_json:
                print_json(error_fields(error))
            else:
                say(f"error: {error}")
        sys.stdout.flush()
        while all(_mark(path) == mark for path, mark in seen.items()):
            pause(0.3)


def _mark(path: Path) -> tuple[int, ...]:
    """Return what changes with a file; empty if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
