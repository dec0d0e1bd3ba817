"""Worker process: one pickled job from the standard input, its result on the standard output.

Messages are pickles, each behind its length in eight bytes: ``("told", value)`` and ``("log",
record)`` any number of times, then ``("result", value)`` or ``("error", (exception, traceback))``.
Whatever else is printed goes to the standard error.

Invariants: SIGTERM ends the job as Ctrl-C does: it cleans up. A job whose starter is gone ends at
    its next message.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import pickle
import signal
import sys
import traceback
from types import FrameType
from typing import BinaryIO

from tmkit.errors import WorkerError

LENGTH_BYTES = 8
"""Size of the length before each message."""


def main() -> None:
    """Do the job on the standard input."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _do(sys.stdin.buffer, results)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)


def _do(given: BinaryIO, results: BinaryIO) -> None:
    try:
        level, work, job = pickle.loads(given.read())
        logger = logging.getLogger("tmkit")
        logger.setLevel(level)
        logger.addHandler(_Sender(results))
        result = work(job, lambda message: _send(results, "told", message))
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        _send(results, "error", _portable(error))
        return
    _send(results, "result", result)


class _Sender(logging.handlers.QueueHandler):
    """Sends log records instead of putting them into a queue; what cannot be pickled is made text."""

    def __init__(self, results: BinaryIO) -> None:
        super().__init__(None)  # type: ignore[arg-type]  # the queue, which is only used in what is overridden
        self._results = results

    def enqueue(self, record: logging.LogRecord) -> None:
        _send(self._results, "log", record)


def _send(results: BinaryIO, kind: str, value: object) -> None:
    data = pickle.dumps((kind, value))
    results.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    results.flush()


def _portable(error: Exception) -> tuple[Exception, str]:
    """Return an error that can be pickled and read back, and its traceback."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # pickle raises what it likes
        return WorkerError(f"{type(error).__name__}: {error}", output=trace), trace
    return copy, trace


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
