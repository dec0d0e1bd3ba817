"""Import of pybullet, and redirection of the output of C code to the log.

Inside :func:`quiet_output`, the file descriptors 1 and 2 refer to a temporary file. Its content
goes to this module's logger at the level DEBUG.

Limits: a file descriptor belongs to the whole process. The output of *other* threads goes to the
log as well, during imports, and while a simulation is built or closed, but not in its steps. A
lock, the only state of this module, prevents two threads from replacing the descriptors at once.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tmkit.errors import MissingExtraError

_logger = logging.getLogger(__name__)
_descriptor_lock = threading.RLock()
"""Lock of file descriptor 1 of the process."""


@contextmanager
def quiet_output() -> Iterator[None]:
    """Redirect the output of C code to the log, after a flush of Python's output."""
    with _descriptor_lock, tempfile.TemporaryFile() as sink:
        _flush()
        copies = [
            (descriptor, copy) for descriptor in (1, 2) if (copy := _copy(descriptor)) is not None
        ]
        for descriptor, _ in copies:
            os.dup2(sink.fileno(), descriptor)
        try:
            yield
        finally:
            _flush()
            for descriptor, copy in copies:
                os.dup2(copy, descriptor)
                os.close(copy)
            sink.seek(0)
            text = sink.read().decode(errors="replace").strip()
            if text:
                _logger.debug("pybullet printed: %s", text)


def _copy(descriptor: int) -> int | None:
    """Return a copy of a file descriptor, or None if it is closed."""
    try:
        return os.dup(descriptor)
    except OSError:
        return None


def _flush() -> None:
    """Flush the output of Python and of C."""
    for stream in (sys.stdout, sys.stderr):
        # A stream can be absent, closed or replaced.
        with suppress(AttributeError, ValueError, OSError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def load_pybullet() -> Any:
    """Import pybullet without its startup message, and return the module.

    The import needs 275 MB of memory, so that it is delayed until a simulation is made.

    Raises:
        MissingExtraError: if pybullet is not installed.
    """
    # The entry None marks a module that must not be imported.
    if sys.modules.get("pybullet") is not None:
        return sys.modules["pybullet"]
    with quiet_output():
        try:
            return importlib.import_module("pybullet")
        except ImportError as error:
            message = (
                "simulating needs pybullet: pip install 'pybullet>=3.2.7' (wheels up to Python"
                " 3.11; else from conda), or the engine 'mujoco' of the extra 'engines'"
            )
            raise MissingExtraError(message, extra="pybullet", module="pybullet") from error
