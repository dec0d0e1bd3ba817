"""Running a program to its end, or ending it: it is killed on every way out of the call but the ordinary one.

In case the calling process itself is killed, Linux is asked to kill the program too (its
parent-death signal). That can only be asked from within the new process, and code of Python's
between fork and exec is not safe where there are threads. So a small program requests the signal,
and then becomes the wanted one: ``setpriv`` and ``sh``, which take a millisecond; or Python, which
takes twenty, where there is no ``setpriv`` that can. The program then checks that its parent is
still the one that started it, in case it died before. Linux sends the signal when the *thread* dies
that started the program, which is the one that waits for it here. On other systems, and should all
this fail, the program ends after a little more than the time limit of processor time.
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

from tmkit._support.signals import interrupts_kept
from tmkit.errors import TaskPlannerError

_logger = logging.getLogger(__name__)

GRACE_SECONDS = 5
"""Time that a program has beyond its limit before the system ends it [s]."""
_LONGEST_WAIT = 2**31 - 1  # milliseconds
# between looks at what a program wrote, and whether it has ended where the system does not tell
_LOOK_SECONDS = 0.002

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


def end_with_parent(parent: int) -> None:
    """In a process that was just forked: end when the parent does, on Linux; at once if it has ended."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its exit code, below zero by a signal, ``None`` when time was up; and wall clock seconds."""

    command: tuple[str, ...]
    code: int | None
    output: str
    seconds: float

    def error(self, what: str) -> TaskPlannerError:
        """Return the error that the program failed, with the end of what it wrote."""
        refused = re.search(r"^OSError: \[Errno \d+\] (.*)", self.output, re.MULTILINE)
        if refused is not None:  # what the system says is all there is to know
            return TaskPlannerError(
                f"{what}: {refused[1]}", command=self.command, output=self.output
            )
        tail = "\n".join(self.output.strip().splitlines()[-12:])
        return TaskPlannerError(
            f"{what}; it wrote:\n{tail}", command=self.command, output=self.output
        )


class Program:
    """A program that runs within a block, at the end of which it is killed, should it still run.

    Args:
        command: the program, by an absolute path, and its arguments.
        folder: where it runs, and where what it writes is kept until it has ended.
        environment: all its environment variables.
        time_limit: seconds that it is expected to run at most; processor time is limited to a
            little more.
        standard_input: a file that it reads, or nothing.
        memory_limit: bytes that it may have, or as many as there are.
        stop_at: a text that it writes, upon which it is killed; none by default.

    Raises:
        TaskPlannerError: the program could not be started; when the block is entered.
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
        self._command, self._folder, self._environment = tuple(command), folder, dict(environment)
        self._time_limit, self._standard_input, self._memory_limit = (
            time_limit,
            standard_input,
            memory_limit,
        )
        self._stop_at = stop_at
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def __enter__(self) -> Self:
        command = self._command
        _logger.debug("running %s", " ".join(command))
        if not os.access(command[0], os.X_OK):
            raise self._cannot_run("it is no program that may be run")
        self._started = time.monotonic()
        log_path, given_path = self._folder / "output.log", self._standard_input or "/dev/null"
        with log_path.open("wb") as log, open(given_path, "rb") as given:
            try:
                # an interrupt while the program starts would leave it running
                with interrupts_kept():
                    self._process = subprocess.Popen(
                        tied(command),
                        cwd=self._folder,
                        env=self._environment,
                        stdin=given,
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

    def _cannot_run(self, why: str) -> TaskPlannerError:
        return TaskPlannerError(
            f"cannot run {self._command[0]}: {why}", command=self._command, output=""
        )

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
        """Whether it runs no more; it is killed once it wrote the text at which it is stopped."""
        if self._stop_at and self._running.poll() is None and self._stop_at in self.output():
            self._kill()
        return self._running.poll() is not None

    def output(self) -> str:
        """Return what it has written so far."""
        return (self._folder / "output.log").read_text(encoding="utf-8", errors="replace")

    def finished(self, *, seconds: float) -> Finished:
        """Wait for it, kill it when the time is up, and tell how it ended."""
        wait_for_any([self], seconds=seconds)
        code = self._running.poll()
        self._kill()
        finished = Finished(self._command, code, self.output(), time.monotonic() - self._started)
        ending = "was stopped" if code is None else f"ended with {code}"
        _logger.debug("%s %s after %.2f s", Path(self._command[0]).name, ending, finished.seconds)
        return finished


def wait_for_any(programs: Sequence[Program], *, seconds: float) -> Program | None:
    """Wait until one of some programs has ended; return the first that has, ``None`` when the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        for program in programs:
            if program.has_ended:
                return program
        left = deadline - time.monotonic()
        if left <= 0.0:
            return None
        wait = min(left, _LOOK_SECONDS) if any(program._stop_at for program in programs) else left
        _sleep_until_any_ends([program._running.pid for program in programs], wait)


def _sleep_until_any_ends(identifiers: Sequence[int], seconds: float) -> None:
    """Sleep until the system says that a program ended, which :mod:`subprocess` sees late; else a little."""
    descriptors: list[int] = []
    try:
        waiting = select.poll()
        for identifier in identifiers:
            descriptors.append(os.pidfd_open(identifier))
            waiting.register(descriptors[-1], select.POLLIN)
        waiting.poll(min(1000.0 * seconds, _LONGEST_WAIT))
    except (AttributeError, OSError):  # another system, or a sandbox forbids it
        time.sleep(min(seconds, _LOOK_SECONDS))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def tied(command: Sequence[str]) -> list[str]:
    """Return the command by which a program runs that is killed when this process dies, where that can be had."""
    if sys.platform != "linux":
        return list(command)
    return [*_tie(), str(os.getpid()), *command]


@cache
def _tie() -> tuple[str, ...]:
    """Return the program that requests the parent-death signal; the parent's number and the wanted program follow."""
    found = shutil.which("setpriv")
    by_shell = (found or "", "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _TIED_BY_SHELL, "sh")
    if found is not None and os.access("/bin/sh", os.X_OK):
        try:  # that of busybox cannot, and a sandbox may forbid it
            tried = subprocess.run(
                [*by_shell, str(os.getpid()), "/bin/sh", "-c", ":"], capture_output=True, timeout=5
            )
        except (OSError, subprocess.TimeoutExpired):
            tried = None
        if tried is not None and tried.returncode == 0:
            return by_shell
    return (sys.executable, "-I", "-S", "-c", _TIED_BY_PYTHON)


def _limit(identifier: int, time_limit: float, memory_limit: int | None) -> None:
    """Limit the processor time and the memory of a program, by the limits that it has already if they are narrower."""
    seconds = math.ceil(min(max(0.0, time_limit), 1e6)) + GRACE_SECONDS
    try:
        for kind, wanted in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory_limit)):
            if wanted is not None:
                hard = resource.prlimit(identifier, kind)[1]
                allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.prlimit(identifier, kind, (allowed, hard))
    except (ProcessLookupError, PermissionError):
        # it has ended already, or a sandbox forbids limits
        return
