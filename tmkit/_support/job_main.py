"""Worker process that reads one pickled job from stdin and writes its result to stdout.

Each message is a pickle behind its length in eight bytes. ``("message", value)`` and ``("log",
record)`` occur any number of times, then ``("result", value)`` or ``("error", (exception,
traceback))``. All other output of the job goes to stderr.

Invariants: SIGTERM ends the job like Ctrl-C, with its cleanup; a job without its parent process
    ends at its next message.
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
"""Size of the length before each message [B]."""


def main() -> None:
    """Do the job on stdin."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _do(sys.stdin.buffer, results)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)


def _do(source: BinaryIO, results: BinaryIO) -> None:
    try:
        level, work, job = pickle.loads(source.read())
        logger = logging.getLogger("tmkit")
        logger.setLevel(level)
        logger.addHandler(_Sender(results))
        result = work(job, lambda message: _send(results, "message", message))
        pickle.dumps(result)  # a value of the user may have no pickle
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        _send(results, "error", _portable(error))
        return
    _send(results, "result", result)


class _Sender(logging.handlers.QueueHandler):
    """Log handler that writes records to a stream; values without a pickle become text."""

    def __init__(self, results: BinaryIO) -> None:
        # The queue is used only by the overridden method.
        super().__init__(None)  # type: ignore[arg-type]
        self._results = results

    def enqueue(self, record: logging.LogRecord) -> None:
        _send(self._results, "log", record)


def _send(results: BinaryIO, kind: str, value: object) -> None:
    data = pickle.dumps((kind, value))
    results.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    results.flush()


def _portable(error: Exception) -> tuple[Exception, str]:
    """Return an error that survives a round trip through pickle, and its traceback."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # pickle raises errors of any type
        return WorkerError(f"{type(error).__name__}: {error}", output=trace), trace
    return copy, trace


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
