"""Signals that end a program, while a library runs that would swallow them, and folders that are gone afterwards.

Some libraries catch everything where they try optional parts or several readers, Ctrl-C included: the interrupt is
lost, and what was half done stays half done. :func:`interrupts_kept` keeps an interrupt until they are done, and
delivers it then. The same holds for the other signals that a program may answer by an exception, as the ``tmkit``
command does. A signal that nobody answers ends the process at once, here as everywhere.

:func:`temporary_folder` is made under that protection, so that there is no moment at which the folder exists and nobody
knows that it has to go.

Invariants: outside the block everything is as before; in a thread other than the main one, which gets no signals, the
block changes nothing.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

__all__ = ["interrupts_kept", "temporary_folder"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Deliver a signal that arrives within the block (SIGINT, SIGTERM, SIGHUP) at its end, the first of several.

    Raises:
        KeyboardInterrupt: at the end of the block, or whatever else the handler that was there does.
    """
    previous = {number: handler for number in _ENDING if callable(handler := signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread():
        previous = {}
    kept: list[tuple[int, FrameType | None]] = []
    for number in previous:
        signal.signal(number, lambda number, frame: kept.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if kept:
            first, frame = kept[0]
            previous[signal.Signals(first)](first, frame)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that is removed, with all that is in it, when the block is left, however that happens.

    Args:
        prefix: how its name begins.
    """
    with interrupts_kept():
        folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    try:
        yield Path(folder.name)
    finally:
        with interrupts_kept():
            folder.cleanup()
