"""Subprocesses that never outlive the calling process.

:class:`Program` kills its program on every exit of a block. If the calling process is killed, Linux
kills the program too, by its parent-death signal. Only the new process itself can request that
signal, and Python code between fork and exec is unsafe with threads. A small launcher therefore
requests the signal, and then executes the program. The launcher is ``setpriv`` with ``sh``, which
takes 1 ms, or Python, which takes 20 ms, if no suitable ``setpriv`` exists. It also checks that its
parent has not died before the request. Linux sends the signal when the *thread* that started the
program dies, which is the thread that waits for it. On other systems, and if the launcher fails,
the program ends some seconds of processor time after its time limit.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from tmkit._support.signals import defer_interrupts
from tmkit.errors import TaskPlannerError

_logger = logging.getLogger(__name__)

GRACE_SECONDS = 5
"""Processor time beyond the time limit after which the system ends a program [s]."""

_MAX_WAIT_MILLISECONDS = 2**31 - 1
"""Longest wait that the system accepts [ms]."""

_POLL_INTERVAL = 0.002
"""Time between two readings of a program's output, or of its state without notification [s]."""

_TAIL_LINES = 12
"""Number of the last lines of output in an error."""

_SHELL_LAUNCHER = 'test "$PPID" = "$1" || exit 1; shift; exec "$@"'
"""Script that executes a command unless its parent has died."""

_PYTHON_LAUNCHER = """\
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
"""Program that requests the parent-death signal, and executes a command unless its parent died."""


def end_with_parent(parent: int) -> None:
    """End the calling process, which was just forked, with its parent.

    On Linux, it ends when the parent dies; on other systems, only if the parent has died already.

    Args:
        parent: process identifier of the parent.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Outcome of a program.

    Attributes:
        command: program and arguments.
        code: exit code; negative after a signal, None if the time was up.
        output: standard output and error.
        seconds: wall-clock time of the run [s].
    """

    command: tuple[str, ...]
    code: int | None
    output: str
    seconds: float

    def error(self, what: str) -> TaskPlannerError:
        """Return the error of a failed program, with the end of its output.

        Args:
            what: start of the message.
        """
        match = re.search(r"^OSError: \[Errno \d+\] (.*)", self.output, re.MULTILINE)
        if match is not None:  # the reason of the system is complete
            message = f"{what}: {match[1]}"
        else:
            tail = "\n".join(self.output.strip().splitlines()[-_TAIL_LINES:])
            message = f"{what}; it wrote:\n{tail}"
        return TaskPlannerError(message, command=self.command, output=self.output)


class Program:
    """Program that runs during a block, and is killed at its end if it still runs.

    Args:
        command: absolute path of the program, and its arguments.
        folder: working directory, which also stores the output.
        environment: all environment variables.
        time_limit: expected longest run time [s]. Processor time is limited to
            :data:`GRACE_SECONDS` more.
        standard_input: file for stdin. By default, stdin is empty.
        memory_limit: largest address space [B]. By default, it is not limited.
        stop_at: text in the output at which the program is killed. By default, there is none.

    Raises:
        TaskPlannerError: if the program cannot be started, at the beginning of the block.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        time_limit: float,
        standard_input: Path | None = None,
        memory_limit: int | None = None,
        stop_at: str = "",
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._environment = dict(environment)
        self._time_limit = time_limit
        self._standard_input = standard_input
        self._memory_limit = memory_limit
        self._stop_at = stop_at
        self._process: subprocess.Popen[bytes] | None = None
        self._start_time = 0.0

    def __enter__(self) -> Self:
        command = self._command
        _logger.debug("running %s", " ".join(command))
        if not os.access(command[0], os.X_OK):
            raise self._cannot_run("it is not a program that may be run")
        self._start_time = time.monotonic()
        log_path = self._folder / "output.log"
        with log_path.open("wb") as log, open(self._standard_input or "/dev/null", "rb") as source:
            try:
                # An interrupt during the start would leave the program running.
                with defer_interrupts():
                    self._process = subprocess.Popen(
                        tie_to_parent(command),
                        cwd=self._folder,
                        env=self._environment,
                        stdin=source,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                _limit(self._process.pid, self._time_limit, self._memory_limit)
            except OSError as error:
                self._kill()
                raise self._cannot_run(str(error)) from error
            except BaseException:
                self._kill()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def _cannot_run(self, reason: str) -> TaskPlannerError:
        message = f"cannot run {self._command[0]}: {reason}"
        return TaskPlannerError(message, command=self._command, output="")

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the program has not been started")
        return self._process

    @property
    def has_ended(self) -> bool:
        """True after the end of the program, which ``stop_at`` in the output causes too."""
        if self._stop_at and self._running.poll() is None and self._stop_at in self.output():
            self._kill()
        return self._running.poll() is not None

    def output(self) -> str:
        """Return the output up to now."""
        return (self._folder / "output.log").read_text(encoding="utf-8", errors="replace")

    def wait(self, *, seconds: float) -> ProgramResult:
        """Wait for the end of the program, kill it when the time is up, and return its outcome.

        Args:
            seconds: longest time to wait [s].
        """
        wait_for_any([self], seconds=seconds)
        code = self._running.poll()
        self._kill()
        duration = time.monotonic() - self._start_time
        ending = "was stopped" if code is None else f"ended with {code}"
        _logger.debug("%s %s after %.2f s", Path(self._command[0]).name, ending, duration)
        return ProgramResult(self._command, code, self.output(), duration)


def wait_for_any(programs: Sequence[Program], *, seconds: float) -> Program | None:
    """Wait until one of several programs has ended, and return it; None if the time is up.

    Args:
        programs: running programs.
        seconds: longest time to wait [s].
    """
    deadline = time.monotonic() + seconds
    while True:
        for program in programs:
            if program.has_ended:
                return program
        wait = deadline - time.monotonic()
        if wait <= 0.0:
            return None
        if any(program._stop_at for program in programs):
            wait = min(wait, _POLL_INTERVAL)
        _sleep_until_any_ends([program._running.pid for program in programs], wait)


def _sleep_until_any_ends(identifiers: Sequence[int], seconds: float) -> None:
    """Sleep until the system signals the end of a program, or for a polling interval.

    The notification of the system is faster than that of :mod:`subprocess`.
    """
    descriptors: list[int] = []
    try:
        poller = select.poll()
        for identifier in identifiers:
            descriptors.append(os.pidfd_open(identifier))
            poller.register(descriptors[-1], select.POLLIN)
        poller.poll(min(1000.0 * seconds, _MAX_WAIT_MILLISECONDS))
    except (AttributeError, OSError):  # another system, or a sandbox forbids it
        time.sleep(min(seconds, _POLL_INTERVAL))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def tie_to_parent(command: Sequence[str]) -> list[str]:
    """Return a command that runs a program and ends it with this process.

    On systems other than Linux, it is the command itself.

    Args:
        command: absolute path of the program, and its arguments.
    """
    if sys.platform != "linux":
        return list(command)
    return [*_launcher(), str(os.getpid()), *command]


@cache
def _launcher() -> tuple[str, ...]:
    """Return the program that requests the parent-death signal.

    Its arguments are the process identifier of the parent, and the command to execute.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is not None and os.access("/bin/sh", os.X_OK):
        by_shell = (setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _SHELL_LAUNCHER, "sh")
        try:  # the setpriv of busybox lacks the option, and a sandbox may forbid it
            trial = subprocess.run(
                [*by_shell, str(os.getpid()), "/bin/sh", "-c", ":"], capture_output=True, timeout=5
            )
        except (OSError, subprocess.TimeoutExpired):
            trial = None
        if trial is not None and trial.returncode == 0:
            return by_shell
    return (sys.executable, "-I", "-S", "-c", _PYTHON_LAUNCHER)


def _limit(identifier: int, time_limit: float, memory_limit: int | None) -> None:
    """Limit the processor time and memory of a program, without an increase of existing limits."""
    seconds = math.ceil(min(max(0.0, time_limit), 1e6)) + GRACE_SECONDS
    try:
        for kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory_limit)):
            if limit is not None:
                hard_limit = resource.prlimit(identifier, kind)[1]
                soft = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
                resource.prlimit(identifier, kind, (soft, hard_limit))
    except (ProcessLookupError, PermissionError):
        # The program has ended already, or a sandbox forbids limits.
        return
