"""Ctrl-C while the command starts: exit code 130 and one line, during any import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.processes import run_process

SCRIPT = Path(sysconfig.get_path("scripts")) / "tmkit"
COMMANDS = {
    "script": [str(SCRIPT)],
    "python -m tmkit": [sys.executable, "-m", "tmkit"],
    "python -mtmkit": [sys.executable, "-mtmkit"],
    "python -m tmkit.cli": [sys.executable, "-m", "tmkit.cli"],
}
# Python imports this module when it starts. The first import of a module makes the process
# interrupt itself.
INTERRUPT_AT_IMPORT = """
import os, signal, sys

class InterruptingFinder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

if "INTERRUPT_AT" in os.environ:
    if os.environ.get("IGNORED"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.meta_path.insert(0, InterruptingFinder())
"""
MODULES = [
    "tmkit._core",
    "tmkit.errors",
    "tmkit._support",
    "inspect",
    "logging",
    "tmkit._support.results",
    "tmkit.cli",
    "tmkit.cli.signals",
    "tmkit.cli.streams",
    "tmkit.cli.commands",
    "typer",
    "tmkit.cli.planning",
]


def run(
    command: list[str], folder: Path, module: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that is interrupted when it imports a module."""
    (folder / "usercustomize.py").write_text("", encoding="ascii")
    (folder / "sitecustomize.py").write_text(INTERRUPT_AT_IMPORT, encoding="ascii")
    variables = {**os.environ, "PYTHONPATH": str(folder), "INTERRUPT_AT": module, **environment}
    return run_process(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("module", MODULES)
def test_an_interrupt_at_the_import_of_a_module(tmp_path: Path, command: str, module: str) -> None:
    """From the first import of tmkit on, an interrupt ends the command with 130 and one line."""
    if command == "script" and not SCRIPT.exists():
        pytest.skip("tmkit is used without being installed")
    ended = run([*COMMANDS[command], "list", "scenes"], tmp_path, module)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_an_interrupt_for_programs(tmp_path: Path) -> None:
    """With ``--json`` the standard error has the two events of every interrupted command."""
    ended = run([*COMMANDS["python -m tmkit"], "list", "scenes", "--json"], tmp_path, "tmkit._core")
    error, done = map(json.loads, ended.stderr.splitlines())
    assert error == {
        "event": "error",
        "type": "Interrupted",
        "message": "interrupted",
        "signal": "SIGINT",
    }
    assert done == {"event": "done", "exit_code": 130}
    assert ended.returncode == done["exit_code"]


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """The command runs to its end below ``nohup`` or in a background job."""
    ended = run([*COMMANDS["python -m tmkit"], "--version"], tmp_path, "tmkit._core", IGNORED="1")
    assert ended.returncode == 0
    assert ended.stdout.startswith("tmkit ")


def test_other_programs_keep_their_handler(tmp_path: Path) -> None:
    """In a program that imports tmkit, an interrupt is a ``KeyboardInterrupt``."""
    ended = run([sys.executable, "-c", "import tmkit"], tmp_path, "tmkit._core")
    assert ended.stderr.endswith("KeyboardInterrupt\n")
    program = (
        "import signal, tmkit.cli; print(signal.getsignal(signal.SIGINT) is"
        " signal.default_int_handler)"
    )
    ended = run([sys.executable, "-c", program], tmp_path, "no module")
    assert ended.stdout == "True\n"
