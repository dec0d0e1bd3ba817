"""Jobs over processes: results do not depend on them, and none outlives the call."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import Process, run_process
from support.worker_jobs import Unfit, do

from tmkit._support import job_pool as worker_processes, signals as interrupts
from tmkit._support.job_pool import first_in_order
from tmkit.errors import ConfigurationError, UnknownNameError, WorkerError

Job = tuple[str, Any]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give temporary folders a place of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    interrupts._remove_abandoned_folders.cache_clear()
    return tmp_path


def race(
    jobs: list[Job], *, processes: int = 2, on_message: Callable[[int, Any], None] | None = None
) -> tuple[Any, ...]:
    """Run jobs until one returns a positive value."""
    return first_in_order(
        do,
        jobs,
        decides=lambda answer: answer > 0,
        processes=processes,
        on_message=on_message or (lambda *_: None),
        name=lambda number: f"job {number}",
    )


def is_running(process: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


def all_gone(processes: list[int], seconds: float = 300.0) -> bool:
    """Return whether processes end within a few seconds."""
    until = time.monotonic() + seconds
    while any(map(is_running, processes)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_running, processes))


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_first_in_order_decides_however_long_it_takes(processes: int) -> None:
    """A later job that is quicker waits for the earlier ones, and loses to them."""
    jobs: list[Job] = [("answer", 0), ("slow", 1.0), ("answer", 7), ("answer", 8)]
    assert race(jobs, processes=processes) == (0, 1.0)
    assert race([("answer", 0), ("slow", 0.0)], processes=processes) == (0, 0.0)


def test_nothing_to_do_is_done_at_once() -> None:
    """Without jobs there are no results; a single one needs no process."""
    assert race([]) == ()
    here: list[Any] = []
    assert race([("answer", 3)], on_message=lambda *message: here.append(message)) == (3,)
    assert here == [(0, "about to answer 3")]


def test_no_processes_are_refused() -> None:
    """At least one is needed."""
    with pytest.raises(ConfigurationError, match="processes must be at least 1, not 0"):
        race([("answer", 1)], processes=0)


@LINUX
def test_later_jobs_end_when_an_earlier_one_decides(folder: Path) -> None:
    """They are ended with their programs, and no folders are left."""
    messages: list[tuple[int, Any]] = []
    sign = folder.parent / "sign"

    def tell(number: int, message: Any) -> None:
        messages.append((number, message))
        sign.touch()

    assert race([("when", str(sign)), ("sleep", None)], on_message=tell) == (1,)
    assert len(messages) == 1
    # the kernel ends the programs of a worker that had to be killed
    assert all_gone(list(messages[0][1]))
    assert not list(folder.iterdir())


@LINUX
def test_a_job_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that ignores termination is killed after a while."""
    monkeypatch.setattr(worker_processes, "_TERMINATION_TIMEOUT", 1.0)
    messages: list[Any] = []
    sign = tmp_path / "sign"

    def tell(_: int, message: Any) -> None:
        messages.append(message)
        sign.touch()

    assert race([("when", str(sign)), ("deaf", None)], on_message=tell) == (1,)
    assert all_gone(messages, 0.0)


@LINUX
def test_what_the_listener_raises_ends_all(folder: Path) -> None:
    """A listener may stop the work; nothing is left of it."""
    messages: list[int] = []

    def tell(_: int, message: Any) -> None:
        messages.extend(message)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        race([("sleep", None), ("sleep", None)], on_message=tell)
    assert all_gone(messages)
    assert not list(folder.iterdir())


def test_errors_are_raised_when_their_turn_comes() -> None:
    """An error counts as a result: only if no earlier job decides. Its message and facts remain."""
    error = UnknownNameError.of("frame", "cip", ["cup"])
    with pytest.raises(UnknownNameError, match="unknown frame 'cip'; did you mean 'cup'") as caught:
        race([("answer", 0), ("raise", error), ("answer", 1)])
    assert caught.value.data["nearest"] == "cup"
    assert "in a process of its own" in caught.value.__notes__[0]
    assert race([("slow", 2.0), ("raise", error)]) == (2.0,)
    with pytest.raises(WorkerError, match="UnfitError: ab"):
        race([("answer", 0), ("unfit error", None)])


def test_a_killed_worker_is_named() -> None:
    """The error has the job, its signal or exit code, and its output."""
    with pytest.raises(WorkerError, match="the process for job 1 was killed by SIGKILL"):
        race([("answer", 0), ("kill", signal.SIGKILL)])
    with pytest.raises(
        WorkerError,
        match="job 0 ended with exit code 5 without a result; it wrote:\nno more of this",
    ):
        race([("exit", 5), ("answer", 0)])


def test_what_cannot_travel_is_refused() -> None:
    """A job that cannot be pickled is named, with advice."""
    with pytest.raises(
        ConfigurationError,
        match=r"job 1 cannot be sent to another process: unfit for travel; .* use",
    ):
        race([("slow", 0.0), ("answer", Unfit())])


def test_prints_and_logs_of_jobs(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Output of a job is discarded, and its log records are logged here."""
    with caplog.at_level(logging.INFO, logger="tmkit"):
        assert race([("answer", 0), ("print", "five!")]) == (0, 5)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("tmkit.jobs", "said five!")
    ]
    assert capfd.readouterr() == ("", "")


STARTER = """\
import sys
from support.worker_jobs import do
from tmkit._support.job_pool import first_in_order

def tell(number, message):
    print(*message, flush=True)

first_in_order(do, [("sleep", None)] * 2, decides=bool, processes=2, on_message=tell, name=str)
"""


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_one_who_waits(folder: Path, number: signal.Signals) -> None:
    """Ctrl-C leaves nothing; a kill leaves no process, and the next run removes the folders."""
    environment = {
        **os.environ,
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        ),
    }
    starter = Process(
        [sys.executable, "-c", STARTER],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    lines = [starter.stdout.readline() for _ in range(2)]
    workers = [[int(word) for word in line.split()] for line in lines]
    assert all(len(pair) == 2 for pair in workers), starter.communicate()
    starter.send_signal(number)
    _, err = starter.communicate(timeout=300)
    processes = [worker for worker, _ in workers]
    if number == signal.SIGINT:
        assert err.rstrip().endswith("KeyboardInterrupt")
        assert all_gone(processes, 0.0)
        # the kernel ends those of a worker that had to be killed
        assert all_gone([program for _, program in workers])
    else:
        assert all_gone(processes)
        for _, program in workers:  # it was not tied to the worker
            os.kill(program, signal.SIGKILL)
        assert list(folder.iterdir())
        again = (
            "from tmkit._support.signals import temporary_folder\nwith temporary_folder('next'):"
            " pass"
        )
        run_process([sys.executable, "-c", again], env=environment, check=True)
    assert not list(folder.iterdir())
