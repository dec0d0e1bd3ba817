"""Plans that ``tmkit plan --gui`` shows in a browser, until the test interrupts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.processes import Process

__all__ = ["plan_and_show"]


def plan_and_show(folder: Path, arguments: list[str], **environment: str) -> str:
    """Run ``tmkit plan`` in a folder until it shows its address, and return its output."""
    with Process(
        [sys.executable, "-m", "tmkit.cli", "plan", *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "BROWSER": "true", **environment},
    ) as process:
        lines: list[str] = []
        while not lines or "Showing at http://" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], (lines, process.stderr.read())
        process.send_signal(signal.SIGINT)
        process.communicate()
    return "".join(lines)
