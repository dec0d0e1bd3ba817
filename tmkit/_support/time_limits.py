"""Time limits for computations in Python.

The time to evaluate a formula or to parse a task cannot be predicted. Functions whose time can grow
call :func:`check_time` at intervals, and a caller with a time limit runs them in a block of
:func:`time_limit`. Outside of all blocks the check has no effect.

Invariants: a time limit ends a computation by an error, and changes no result; in nested blocks,
the earliest end counts. A block applies to its thread, not to threads that are started in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tmkit.errors import TimeLimitError

_limit: ContextVar[tuple[float, Callable[[], float]] | None] = ContextVar("limit", default=None)
"""End of the innermost block [s], and its clock."""


@contextmanager
def time_limit(seconds: float, *, clock: Callable[[], float] | None = None) -> Iterator[None]:
    """Limit the time of a block, in which :func:`check_time` raises after the limit.

    Args:
        seconds: time limit [s].
        clock: function that returns the time [s]. Defaults to that of the enclosing block, or the
            monotonic clock.
    """
    outer_end, outer_clock = _limit.get() or (math.inf, time.monotonic)
    clock = clock or outer_clock
    token = _limit.set((min(clock() + seconds, outer_end), clock))
    try:
        yield
    finally:
        _limit.reset(token)


def check_time() -> None:
    """Check the time limit of the enclosing blocks, in about 0.1 us.

    Raises:
        TimeLimitError: if the time is up.
    """
    limit = _limit.get()
    if limit is not None and limit[1]() > limit[0]:
        raise TimeLimitError("the time is up")
