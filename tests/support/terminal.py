"""Commands of tmkit on a pseudo terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

from support.processes import Process

__all__ = ["OnTerminal", "on_terminal"]


@dataclass(frozen=True)
class OnTerminal:
    """End of a command, and all output on its terminal."""

    code: int
    text: str


def on_terminal(
    *arguments: str, folder: Path, answers: str = "", columns: int = 80, **environment: str
) -> OnTerminal:
    """Run ``tmkit`` with its three streams on a terminal, and type the input.

    Args:
        arguments: of the command.
        folder: where it runs.
        answers: lines of input.
        columns: the width of the terminal.
        environment: more variables.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    process = Process(
        [sys.executable, "-m", "tmkit.cli", *arguments],
        cwd=folder,
        env={**variables, "TERM": "xterm", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    os.write(master, answers.encode())
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the last process has closed the terminal
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    return OnTerminal(process.wait(), b"".join(parts).decode("utf-8", "replace"))
