"""Running Fast Downward's translator: by a server that has it loaded, or as a program of its own.

Starting the translator takes several times longer than translating a small task. So a server
(:mod:`tmkit.task_planning.translator_server`) is started with the first task, and forks for each. One task is
translated at a time; while the server is busy with that of another thread, or where it cannot be had, the translator is
started anew.

Invariants: the translation is the same either way; the server ends with the thread that started it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tmkit._support.signals import interrupts_kept, temporary_folder
from tmkit._support.subprocesses import Finished, Program, tied
from tmkit.errors import TmkitError
from tmkit.task_planning.encoding import Encoding
from tmkit.task_planning.fast_downward_process import LIMIT_CODES, environment, translator_folder

_logger = logging.getLogger(__name__)

_ARGUMENTS = ("--keep-unimportant-variables", "--sas-file", "output.sas", "domain.pddl", "problem.pddl")
_MEMORY = 4 << 30  # bytes: a quantifier over a dozen variables takes all there is, and in seconds
_GRACE_SECONDS = 5
_SERVER = Path(__file__).with_name("translator_server.py")


def translated(encoding: Encoding, time_limit: float) -> str | None:
    """Return what the translator makes of a problem, ``None`` when the time or memory was not enough.

    Args:
        encoding: the problem.
        time_limit: seconds.

    Raises:
        TaskPlannerError: the translator could not be run or broke, or the problem is beyond it.
    """
    with temporary_folder("translate") as folder:
        (folder / "domain.pddl").write_text(encoding.domain_text, encoding="utf-8")
        (folder / "problem.pddl").write_text(encoding.problem_text, encoding="utf-8")
        finished = _server.translate(folder, time_limit) or _by_program(folder, time_limit)
        if finished.code in LIMIT_CODES:
            return None
        if finished.code != 0:
            raise finished.error(f"Fast Downward's translator ended with exit code {finished.code}")
        return (folder / "output.sas").read_text(encoding="utf-8")


def start_server() -> None:
    """Start the server, which then loads the translator while the caller does something else."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, TmkitError), _server.lock:
            _server.started()


def _environment() -> dict[str, str]:
    return environment(PYTHONPATH=str(translator_folder()), PYTHONHASHSEED="0", PYTHONUTF8="1")


def _by_program(folder: Path, time_limit: float) -> Finished:
    command = [sys.executable, "-S", "-m", "fast_downward.translate", *_ARGUMENTS]
    with Program(
        command, folder=folder, environment=_environment(), time_limit=time_limit, memory_limit=_MEMORY
    ) as program:
        return program.finished(seconds=time_limit)


class _Server:
    """The server of this process, once there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def translate(self, folder: Path, time_limit: float) -> Finished | None:
        """Translate the files in a folder; None where the server is busy or cannot be had."""
        if sys.platform != "linux" or not self.lock.acquire(blocking=False):
            return None
        try:
            return self._translate(folder, time_limit)
        except OSError as error:
            _logger.debug("the translator's server is lost: %s", error)
            self.close()
            return None
        except BaseException:  # what it does is not wanted any more
            self.close()
            raise
        finally:
            self.lock.release()

    def _translate(self, folder: Path, time_limit: float) -> Finished | None:
        began = time.monotonic()
        process = self.started()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = math.ceil(min(max(0.0, time_limit), 1e6)) + _GRACE_SECONDS
        task = {"folder": str(folder), "seconds": seconds, "memory": _MEMORY}
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        wait = select.poll()
        wait.register(process.stdout, select.POLLIN)
        if not wait.poll(1000.0 * min(max(0.0, time_limit), 1e6)):
            self.close()
            code = None
        else:
            answer = process.stdout.readline()
            if not answer:
                raise ConnectionError("it has ended")
            code = int(answer)
        log = folder / "output.log"
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return Finished(("fast_downward.translate", *_ARGUMENTS), code, output, time.monotonic() - began)

    def started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner != os.getpid():  # the server of the process that forked
            self._process = None
        if self._process is None or self._process.poll() is not None:
            self.close()
            with interrupts_kept():
                self._process = subprocess.Popen(
                    tied([sys.executable, "-S", "-P", str(_SERVER), *_ARGUMENTS]), env=_environment(),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0,
                )  # fmt: skip
                self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """End the server, and what it does."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # they are pipes


_server = _Server()
atexit.register(_server.close)
