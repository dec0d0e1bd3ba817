"""Handler of Ctrl-C during the start of the ``tmkit`` command: exit code 130, no traceback.

The compiled core is imported before ``tmkit.cli`` can set its own handlers. This module is the
first that tmkit imports, and changes nothing unless the program is the command.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from types import FrameType

_COMMAND = "tmkit"
"""File name of the command."""

_MODULES = ("tmkit", "tmkit.cli")
"""Packages that ``python -m`` runs as the command."""


def end_command_on_interrupt() -> None:
    """Install a handler that ends the process, if it is the command and has the default handler."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, _end)
        except ValueError:  # another thread than the main one, which receives no signals
            return


def _is_command() -> bool:
    """Return whether the program is the command, ``tmkit`` or ``python -m tmkit``."""
    first = next(iter(getattr(sys, "argv", ())), "")
    if first != "-m":  # the value before the module is located
        return os.path.basename(first) == _COMMAND
    words = sys.orig_argv
    return any(f"-m{module}" in words or ("-m", module) in pairwise(words) for module in _MODULES)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the process at once, since no command has started that needs cleanup."""
    if "--json" in sys.argv or "--json" in sys.orig_argv:
        message = (
            '{"event": "error", "type": "Interrupted", "message": "interrupted", "signal":'
            ' "SIGINT"}\n{"event": "done", "exit_code": 130}\n'
        )
    else:
        message = "interrupted\n"
    try:
        os.write(2, message.encode("ascii"))
    finally:
        os._exit(130)
