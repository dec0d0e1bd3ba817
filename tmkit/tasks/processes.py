"""Running a program to its end, or ending it.

The idea: a planner is a separate program that must never outlive the call that started it: not when the time is up,
not when the user interrupts, not when an exception flies. So it is waited for in one place, and killed on every way
out but the ordinary one. In case the calling process itself is killed, the operating system ends the program after a
little more than the time limit of processor time.
"""

from __future__ import annotations

import logging
import math
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tmkit.errors import TaskPlannerError
from tmkit.interrupts import interrupts_kept

__all__ = ["Finished", "run"]

_logger = logging.getLogger(__name__)

_GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended.

    Attributes:
        command: the program and its arguments.
        code: its exit code; negative when a signal ended it; ``None`` when it was killed because the time was up.
        output: what it wrote to standard output and standard error, in one.
        seconds: how long it ran by the wall clock.
    """

    command: tuple[str, ...]
    code: int | None
    output: str
    seconds: float

    def error(self, what: str) -> TaskPlannerError:
        """Return the error that the program failed, with the end of what it wrote."""
        tail = "\n".join(self.output.strip().splitlines()[-12:])
        return TaskPlannerError(f"{what}; it wrote:\n{tail}", command=self.command, output=self.output)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    time_limit: float,
    standard_input: Path | None = None,
) -> Finished:
    """Run a program and wait for it; it is killed when the time is up or this function is left by an exception.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        environment: all its environment variables.
        time_limit: seconds after which it is killed.
        standard_input: a file that it reads, or nothing.

    Raises:
        TaskPlannerError: the program could not be started.
    """
    _logger.debug("running %s", " ".join(command))
    started = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    with (folder / "output.log").open("wb") as log, open(standard_input or "/dev/null", "rb") as given:
        try:
            with interrupts_kept():  # an interrupt while the program starts would leave it running
                process = subprocess.Popen(
                    command, cwd=folder, env=dict(environment), stdin=given, stdout=log, stderr=subprocess.STDOUT
                )
            code = _wait(process, time_limit)
        except OSError as error:
            message = f"cannot run {command[0]}: {error}"
            raise TaskPlannerError(message, command=tuple(command), output="") from error
        finally:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    output = (folder / "output.log").read_text(encoding="utf-8", errors="replace")
    finished = Finished(tuple(command), code, output, time.monotonic() - started)
    ending = "was stopped" if code is None else f"ended with {code}"
    _logger.debug("%s %s after %.2f s", Path(command[0]).name, ending, finished.seconds)
    return finished


def _wait(process: subprocess.Popen[bytes], time_limit: float) -> int | None:
    """Return the exit code of a program, or ``None`` when it still runs after the time."""
    try:
        _limit_processor_time(process.pid, time_limit)
        return process.wait(max(0.0, time_limit))
    except subprocess.TimeoutExpired:
        return None


def _limit_processor_time(identifier: int, time_limit: float) -> None:
    seconds = math.ceil(min(time_limit, 1e6)) + _GRACE_SECONDS
    try:
        hard = resource.prlimit(identifier, resource.RLIMIT_CPU)[1]
        allowed = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
        resource.prlimit(identifier, resource.RLIMIT_CPU, (allowed, hard))
    except (ProcessLookupError, PermissionError):  # it has ended already, or a sandbox forbids limits
        return
