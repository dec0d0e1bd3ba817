"""Bounds of the time that work in Python takes.

How long it takes to evaluate a formula or to parse a task is not known before. So whatever can grow
calls :func:`check_time` now and then, and a caller with a time limit does the work within a block
of :func:`time_limit`. Outside of all blocks the check does nothing.

Invariants: a time limit only stops work, by an error, and changes no result; blocks may be nested,
and the earliest end counts. A block holds for its thread and what is called in it, not for threads
that are begun in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tmkit.errors import TimeLimitError

# When the time is up, and by what clock.
_limit: ContextVar[tuple[float, Callable[[], float]] | None] = ContextVar("limit", default=None)


@contextmanager
def time_limit(seconds: float, *, clock: Callable[[], float] | None = None) -> Iterator[None]:
    """Let :func:`check_time` raise after so many seconds of the clock, by default that of the block around."""
    end_around, clock_around = _limit.get() or (math.inf, time.monotonic)
    clock = clock or clock_around
    token = _limit.set((min(clock() + seconds, end_around), clock))
    try:
        yield
    finally:
        _limit.reset(token)


def check_time() -> None:
    """Raise a :class:`TimeLimitError` if the time of a block around the call is up. Takes a tenth of a microsecond."""
    limit = _limit.get()
    if limit is not None and limit[1]() > limit[0]:
        raise TimeLimitError("the time is up")
