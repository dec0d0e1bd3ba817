"""Subprocesses end with their parent process, however it ends, and their folders are removed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Process, run_process

from tmkit._support import subprocesses as processes
from tmkit.errors import TaskPlannerError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")

# Runs a program that sleeps, in a thread while others work, and prints its number; the argument
# chooses how it is tied.
RUNNER = """\
import sys, threading, time
from pathlib import Path
from tmkit._support.signals import temporary_folder
from tmkit._support import subprocesses as processes

if sys.argv[1] == "python":
    processes.shutil.which = lambda name: None

def work():
    while True:
        sum(range(1000))

def run():
    with temporary_folder("search") as folder:
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        command = [sys.executable, "-c", code]
        with processes.Program(command, folder=folder, environment={}, time_limit=600.0) as program:
            program.wait(seconds=600.0)

for task in (work, run):
    threading.Thread(target=task, daemon=True).start()
time.sleep(600)
"""


def wait_for(what: Callable[[], object], seconds: float = 300.0) -> object:
    """Return the result of a function once it is true, or its last result."""
    until = time.monotonic() + seconds
    while not (result := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return result


def is_running(process: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


@LINUX
@pytest.mark.parametrize("method", ["shell", "python"])
def test_a_program_dies_with_the_process_that_started_it(tmp_path: Path, method: str) -> None:
    """A SIGKILL ends the program too, and the next process removes its remains."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    runner = Process([sys.executable, "-c", RUNNER, method], env=environment)

    def told() -> int | None:
        texts = [
            log.read_text(encoding="ascii") for log in tmp_path.glob("tmkit-search-*/output.log")
        ]
        return int(texts[0]) if texts and texts[0].endswith("\n") else None

    started = wait_for(told)
    assert isinstance(started, int)
    assert is_running(started)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert wait_for(lambda: not is_running(started))
    assert list(tmp_path.iterdir())
    again = (
        "from tmkit._support.signals import temporary_folder\nwith temporary_folder('next'): pass"
    )
    run_process([sys.executable, "-c", again], env=environment, check=True)
    assert not list(tmp_path.iterdir())


@LINUX
@pytest.mark.parametrize(
    "method", [processes._SHELL_LAUNCHER, processes._PYTHON_LAUNCHER], ids=["shell", "python"]
)
def test_a_program_does_not_begin_when_its_starter_is_dead(tmp_path: Path, method: str) -> None:
    """If the starter dies before the signal is set, the program is not run."""
    begin = (
        ["/bin/sh", "-c", method, "sh"]
        if "PPID" in method
        else [sys.executable, "-I", "-S", "-c", method]
    )
    wrong = str(os.getpid() + 1)
    done = run_process([*begin, wrong, "/usr/bin/touch", str(tmp_path / "begun")], check=False)
    assert done.returncode != 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_found", [True, False], ids=["setpriv", "no-setpriv"])
def test_words_and_codes_arrive_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_found: bool
) -> None:
    """Arguments with blanks, quotes and stars, and the exit code, are those of the program."""
    if not is_found:
        monkeypatch.setattr(processes.shutil, "which", lambda _: None)
    words = ["a b", "'", '"', "*", "$PPID", "-x", "", "\n"]
    processes._launcher.cache_clear()
    try:
        command = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", *words]
        with processes.Program(
            command, folder=tmp_path, environment={"A": "b"}, time_limit=600.0
        ) as program:
            exit_code = program.wait(seconds=600.0)
    finally:
        processes._launcher.cache_clear()
    assert (exit_code.code, exit_code.output) == (7, f"{words}\n")


def test_a_program_is_killed_upon_what_it_writes(tmp_path: Path) -> None:
    """A program that would run for long is killed once the text is there, not before."""
    code = (
        "import time; print('begun', flush=True); time.sleep(0.1); print('enough', flush=True);"
        " time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    with processes.Program(
        command, folder=tmp_path, environment={}, time_limit=600.0, stop_at="enough"
    ) as program:
        exit_code = program.wait(seconds=600.0)
    assert (exit_code.code, exit_code.output) == (-signal.SIGKILL, "begun\nenough\n")


def test_what_is_no_program_is_said(tmp_path: Path) -> None:
    """A program that is missing, or may not be run, is named."""
    (tmp_path / "text").write_text("", encoding="ascii")
    for name in ("missing", "text"):
        program = processes.Program(
            [str(tmp_path / name)], folder=tmp_path, environment={}, time_limit=1.0
        )
        with pytest.raises(TaskPlannerError, match=f"cannot run .*{name}"), program:
            pass
