"""Commands of tmkit in processes of their own, such as a server."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from support.processes import Process


def free_address(protocol: str = "tcp") -> str:
    """Return an address of this machine that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"{protocol}/127.0.0.1:{found.getsockname()[1]}"


@contextmanager
def command(*arguments: object, within: Sequence[str] = (), **options: Any) -> Iterator[Process]:
    """Run ``tmkit`` in another process, which is killed at the end; ``within`` a command that runs others."""
    program = "import sys; from tmkit.cli import main; sys.argv[0] = 'tmkit'; main()"
    words = [*within, sys.executable, "-c", program, *map(str, arguments)]
    process = Process(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def serving(*arguments: object, within: Sequence[str] = ()) -> Iterator[tuple[Process, str]]:
    """Run ``tmkit serve`` in another process; yield it and the line that it prints."""
    with command("serve", *arguments, within=within) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
