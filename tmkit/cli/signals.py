"""Signals that end a command: Ctrl-C, a termination signal, a closed terminal.

Each signal raises :class:`Interrupted`, which unwinds every ``with`` and ``finally``. It derives
from ``KeyboardInterrupt`` because libraries do not catch that exception, with three exceptions:

* Python passes an exception from a destructor to ``sys.unraisablehook``. The hook raises it again.
* The import of a compiled module may turn it into an ``ImportError``. Therefore
  :attr:`EndingSignals.received` decides, not the exception that arrives.
* Some libraries catch ``BaseException`` around an import. Therefore no signal raises during an
  import. A timer repeats the attempt until the import ends or a time limit is reached.

Further signals within a second are ignored, so that a repeated Ctrl-C does not stop the cleanup. A
later signal raises again.

Invariants: a signal that was ignored at the start of the program (``nohup``) stays ignored. Outside
the block all handlers are the original ones. This module has few imports because it must be loaded
first.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from enum import IntEnum
from types import FrameType, TracebackType
from typing import Any

_MESSAGES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
"""Messages of the signals that end a command."""

_CLEANUP_SECONDS = 1.0
"""Time after a signal in which further signals are ignored [s]."""

_RETRY_SECONDS = 0.02
"""Time between two attempts to raise during an import [s]."""

_MAX_IMPORT_SECONDS = 3.0
"""Time after which a signal raises even during an import [s]."""


class ExitCode(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERNAL = 3
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class Interrupted(KeyboardInterrupt):
    """A signal ended the command."""


class EndingSignals:
    """A block in which the signals that end a command raise :class:`Interrupted`.

    Attributes:
        received: number of the last signal, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._raised_at = -_CLEANUP_SECONDS
        self._postponed_at: float | None = None
        self._previous: dict[int, Any] = {}
        self._previous_hook = sys.unraisablehook

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal, as in shells."""
        return 128 + (self.received or signal.SIGINT)

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.received or signal.SIGINT).name

    @property
    def message(self) -> str:
        """Message about the signal."""
        return _MESSAGES[signal.Signals(self.received or signal.SIGINT)]

    def __enter__(self) -> EndingSignals:
        self._previous_hook = sys.unraisablehook
        sys.unraisablehook = self._raise_again
        for number in _MESSAGES:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._retry)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if signal.SIGALRM in self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, previous in self._previous.items():
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        self._previous.clear()
        sys.unraisablehook = self._previous_hook

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Raise, or postpone a signal that arrives during an import.

        Raises:
            Interrupted: if the signal is neither ignored nor postponed.
        """
        now = time.monotonic()
        if now - self._raised_at < _CLEANUP_SECONDS:
            return
        self.received = number
        if _is_importing(frame):
            if self._postponed_at is None:
                self._postponed_at = now
            if now - self._postponed_at < _MAX_IMPORT_SECONDS:
                signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
                return
        self._postponed_at = None
        self._raised_at = now
        raise Interrupted

    def raise_postponed(self) -> None:
        """Raise the signal that arrived during an import, which has ended.

        Raises:
            Interrupted: if there is one.
        """
        if self._postponed_at is not None:
            self._postponed_at = None
            self._raised_at = time.monotonic()
            raise Interrupted

    def _retry(self, _: int, frame: FrameType | None) -> None:
        """Handle a postponed signal again."""
        if self.received is None or self._postponed_at is None:
            return
        if signal.getsignal(self.received) == self._handle:
            self._handle(self.received, frame)
        else:  # another block collects signals until its end
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)

    def _raise_again(self, unraisable: sys.UnraisableHookArgs, /) -> None:
        """Repeat a signal whose exception was raised in a destructor."""
        if not isinstance(unraisable.exc_value, Interrupted) or self.received is None:
            self._previous_hook(unraisable)
            return
        self._raised_at = -_CLEANUP_SECONDS
        _thread.interrupt_main(signal.Signals(self.received))


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a frame is inside the import of a module."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
