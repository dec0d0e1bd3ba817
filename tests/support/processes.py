"""Programs that tests start, which are killed when they hang.

A wait within the test process is limited by ``faulthandler_timeout`` in ``pyproject.toml``, which
ends that process. It does not end the programs that the process has started, so
``tests/test_waits.py`` requires that this module starts them.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["HANG", "Process", "run_process"]

HANG = 600.0
"""Time after which a program counts as hanging, however busy the machine is [s]."""


class Process(subprocess.Popen[Any]):
    """A program that is killed :data:`HANG` after its start, and at the end of its block.

    A read of its pipes therefore ends too. Arguments are those of :class:`subprocess.Popen`.
    """

    def __init__(self, command: Sequence[str | Path], **options: Any) -> None:
        self._limit = threading.Timer(HANG, self.kill)
        self._limit.daemon = True
        super().__init__(command, **options)
        self._limit.start()

    def poll(self) -> int | None:
        """Return the exit code, or ``None`` while the program runs."""
        code = super().poll()
        if code is not None:
            self._limit.cancel()
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, which is ``-SIGKILL`` if the program hangs."""
        code = super().wait(timeout)
        self._limit.cancel()
        return code

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        super().__exit__(kind, error, trace)


def run_process(
    command: Sequence[str | Path], *, check: bool = False, timeout: float = HANG, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Return how a program ended, as :func:`subprocess.run`; it is killed after ``timeout`` [s]."""
    return subprocess.run(command, check=check, timeout=timeout, **options)
