"""Running a program to its end, or ending it.

The idea: a planner is a separate program that must never outlive the call that started it: not when the time is up,
not when the user interrupts, not when an exception flies. So it is waited for in one place, and killed on every way
out but the ordinary one.

In case the calling process itself is killed, Linux is asked to kill the program too (its parent-death signal). That can
only be asked from within the new process, and code of Python's between fork and exec is not safe where there are
threads. So a small program asks, and then becomes the wanted one: ``setpriv`` and ``sh``, which take a millisecond; or
Python, which takes twenty, where there is no ``setpriv`` that can. Whoever asks looks afterwards whether the parent is
still the one that started it, in case it died before. Linux sends the signal when the *thread* dies that started the
program, which is the one that waits for it here. On other systems, and should all this fail, the program ends after a
little more than the time limit of processor time.
"""

from __future__ import annotations

import logging
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tmkit.errors import TaskPlannerError
from tmkit.interrupts import interrupts_kept

__all__ = ["Finished", "run", "tied"]

_logger = logging.getLogger(__name__)

_GRACE_SECONDS = 5

_TIED_BY_SHELL = 'test "$PPID" = "$1" || exit 1; shift; exec "$@"'
_TIED_BY_PYTHON = """\
import os, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


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
        command: the program, by an absolute path, and its arguments.
        folder: where it runs.
        environment: all its environment variables.
        time_limit: seconds after which it is killed.
        standard_input: a file that it reads, or nothing.

    Raises:
        TaskPlannerError: the program could not be started.
    """
    _logger.debug("running %s", " ".join(command))
    if not os.access(command[0], os.X_OK):
        message = f"cannot run {command[0]}: it is no program that may be run"
        raise TaskPlannerError(message, command=tuple(command), output="")
    started = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    with (folder / "output.log").open("wb") as log, open(standard_input or "/dev/null", "rb") as given:
        try:
            with interrupts_kept():  # an interrupt while the program starts would leave it running
                process = subprocess.Popen(
                    tied(command),
                    cwd=folder,
                    env=dict(environment),
                    stdin=given,
                    stdout=log,
                    stderr=subprocess.STDOUT,
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


def tied(command: Sequence[str]) -> list[str]:
    """Return the command by which a program runs that is killed when this process dies, where that can be had."""
    if sys.platform != "linux":
        return list(command)
    return [*_tie(), str(os.getpid()), *command]


@cache
def _tie() -> tuple[str, ...]:
    """Return the program that asks for the parent-death signal; the parent's number and the wanted program follow."""
    found = shutil.which("setpriv")
    by_shell = (found or "", "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _TIED_BY_SHELL, "sh")
    if found is not None and os.access("/bin/sh", os.X_OK):
        try:  # that of busybox cannot, and a sandbox may forbid it
            tried = subprocess.run([*by_shell, str(os.getpid()), "/bin/sh", "-c", ":"], capture_output=True, timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            tried = None
        if tried is not None and tried.returncode == 0:
            return by_shell
    return (sys.executable, "-I", "-S", "-c", _TIED_BY_PYTHON)


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
