"""Signals that end a command: Ctrl-C, a polite kill, a terminal that is closed.

All three become one exception, which passes every ``with`` and ``finally`` on the way out.
:class:`Interrupted` derives from ``KeyboardInterrupt``, as that is what libraries let through. Some
do not: what is raised in a destructor goes to ``sys.unraisablehook``, and what is raised while a
compiled module is imported may come out as an ``ImportError``. So the hook raises again, and
:attr:`EndingSignals.received` is what counts, not the exception that arrives. Some libraries even
import others within ``except BaseException``, and go on. So nothing is raised in the midst of an
import. A timer tries again, every few hundredths of a second, until it is done, or has taken so
long that it is not one to wait for. Signals that follow within a second are dropped: whoever is
asked twice to end shall still tidy up; whoever does not answer is asked anew.

Invariants: a signal that was ignored when the program started (``nohup``) stays ignored; outside
the block everything is as it was before. This module imports next to nothing, since it must be
there before anything else is.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from enum import IntEnum
from types import FrameType, TracebackType
from typing import Any

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
_DEAF_SECONDS = 1.0
_ASK_AGAIN_SECONDS, _PATIENCE_SECONDS = 0.02, 3.0  # while something is imported


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERNAL = 3
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""


class EndingSignals:
    """A block in which signals that end a command raise :class:`Interrupted`; ``received`` is the last one's number."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._answering_since = -_DEAF_SECONDS
        self._put_off_since: float | None = None
        self._previous: dict[int, Any] = {}
        self._previous_hook = sys.unraisablehook

    @property
    def exit_code(self) -> int:
        """128 and the number of the signal, as shells have it."""
        return 128 + (self.received or signal.SIGINT)

    @property
    def name(self) -> str:
        """The name of the signal."""
        return signal.Signals(self.received or signal.SIGINT).name

    @property
    def message(self) -> str:
        """What happened, in a word."""
        return _WORDS[signal.Signals(self.received or signal.SIGINT)]

    def __enter__(self) -> EndingSignals:
        self._previous_hook = sys.unraisablehook
        sys.unraisablehook = self._raise_again
        for number in _WORDS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._answer)
        self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._ask_again)
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

    def _answer(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._answering_since < _DEAF_SECONDS:
            return
        self.received = number
        if _is_importing(frame):
            if self._put_off_since is None:
                self._put_off_since = now
            if now - self._put_off_since < _PATIENCE_SECONDS:
                signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN_SECONDS)
                return
        self._put_off_since = None
        self._answering_since = now
        raise Interrupted

    def _ask_again(self, _: int, frame: FrameType | None) -> None:
        if self.received is None or self._put_off_since is None:
            return
        if signal.getsignal(self.received) == self._answer:
            self._answer(self.received, frame)
        else:  # a block keeps signals for its end
            signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN_SECONDS)

    def _raise_again(self, what: sys.UnraisableHookArgs, /) -> None:
        if not isinstance(what.exc_value, Interrupted) or self.received is None:
            self._previous_hook(what)
            return
        self._answering_since = -_DEAF_SECONDS
        _thread.interrupt_main(signal.Signals(self.received))


def _is_importing(frame: FrameType | None) -> bool:
    """Set whether a module is being imported where a signal came."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
