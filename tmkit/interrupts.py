"""Interrupts while a library runs that would swallow them.

Some libraries catch everything where they try optional parts or several readers, Ctrl-C included: the interrupt is
lost, and what was half done stays half done. :func:`interrupts_kept` keeps an interrupt until they are done, and
delivers it then.

Invariants: outside the block everything is as before; in a thread other than the main one, which gets no signals, the
block changes nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_kept"]


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Deliver an interrupt (SIGINT) that arrives within the block at its end.

    Raises:
        KeyboardInterrupt: at the end of the block, or whatever else the handler that was there does.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    kept: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: kept.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if kept:
            previous(signal.SIGINT, kept[0])
