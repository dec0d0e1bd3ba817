"""Jobs for worker processes that need no planning: found by their names in another process."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import Process
from tmkit._support.signals import temporary_folder
from tmkit._support.subprocesses import tie_to_parent
from tmkit.motion import PathQuery, PathResult

__all__ = ["Lost", "Unfit", "UnfitError", "do"]

Job = tuple[str, Any]


@dataclass(frozen=True)
class Lost:
    """A motion planner that finds no path."""

    def search(self, query: PathQuery) -> PathResult:
        """Find none."""
        return query.no_path_result()


class UnfitError(Exception):
    """An error that cannot be read back from its pickle."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


class Unfit:
    """Value that cannot be pickled."""

    def __reduce__(self) -> str:
        raise TypeError("unfit for travel")


def do(job: Job, tell: Callable[[Any], None]) -> Any:
    """Run a job: a word with its arguments."""
    word, value = job
    if word == "answer":
        tell(f"about to answer {value}")
        return value
    if word == "slow":
        time.sleep(value)
        return value
    if word == "when":  # a file is there
        while not Path(value).exists():
            time.sleep(0.01)
        return 1
    # with a separate folder and program, which ends with it, until it is ended
    if word == "sleep":
        with temporary_folder("nap"):
            program = Process(tie_to_parent([sys.executable, "-c", "import time; time.sleep(600)"]))
            try:
                tell((os.getpid(), program.pid))
                time.sleep(600)
            finally:
                program.kill()
                program.wait()
    if word == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell(os.getpid())
        time.sleep(600)
    if word == "kill":
        os.kill(os.getpid(), value)
    if word == "exit":
        sys.stderr.write("no more of this\n")
        sys.stderr.flush()
        os._exit(value)
    if word == "print":
        sys.stdout.write(value)
        sys.stdout.flush()
        os.write(1, b"noise\n")
        logging.getLogger("tmkit.jobs").warning("said %s", value)
        return len(value)
    if word == "raise":
        raise value
    if word == "unfit error":
        raise UnfitError("a", "b")
    raise AssertionError(job)
