"""The exit codes of the ``tmkit`` command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERNAL = 3
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143
