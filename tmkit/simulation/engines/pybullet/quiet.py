"""Loading pybullet, and keeping what its C code prints away from the user's terminal.

Inside :func:`quiet_output` the file descriptors 1 and 2 point to a temporary file, and what was
written there goes to this module's logger at the level DEBUG.

Limits: a file descriptor belongs to the whole process, so what *other* threads print during these
moments (importing, building and closing a simulation, never stepping it) lands in the log as well.
One lock, the only state here, keeps two threads from swapping the descriptors at once.
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
_descriptor_lock = threading.RLock()  # guards file descriptor 1 of the process


@contextmanager
def quiet_output() -> Iterator[None]:
    """Send what C code prints to the log; what Python printed before is flushed first."""
    with _descriptor_lock, tempfile.TemporaryFile() as sink:
        _flush()
        saved = [
            (descriptor, copy) for descriptor in (1, 2) if (copy := _copy(descriptor)) is not None
        ]
        for descriptor, _ in saved:
            os.dup2(sink.fileno(), descriptor)
        try:
            yield
        finally:
            _flush()
            for descriptor, copy in saved:
                os.dup2(copy, descriptor)
                os.close(copy)
            sink.seek(0)
            text = sink.read().decode(errors="replace").strip()
            if text:
                _logger.debug("pybullet printed: %s", text)


def _copy(descriptor: int) -> int | None:
    try:
        return os.dup(descriptor)
    except OSError:  # it is closed: there is nothing that could be soiled
        return None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # a stream may be absent, closed or replaced
        with suppress(AttributeError, ValueError, OSError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def load_pybullet() -> Any:
    """Import pybullet (275 MB; hence only when a simulation is made) without its greeting, and return the module.

    Raises:
        MissingExtraError: pybullet is not installed.
    """
    # None stands for a module that must not be imported
    if sys.modules.get("pybullet") is not None:
        return sys.modules["pybullet"]
    with quiet_output():
        try:
            return importlib.import_module("pybullet")
        except ImportError as error:
            message = (
                "simulating needs pybullet: pip install 'pybullet>=3.2.7' (or a conda environment"
                " with pybullet)"
            )
            raise MissingExtraError(message, extra="pybullet", module="pybullet") from error
