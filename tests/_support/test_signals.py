"""Interrupts that arrive while a library would swallow them are delivered afterwards."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.processes import Process

from tmkit._support import signals as interrupts
from tmkit._support.signals import defer_interrupts, temporary_folder
from tmkit.cli.signals import EndingSignals, Interrupted


def interrupt() -> None:
    """Send this process an interrupt, and wait until Python has seen it."""
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass


def swallow(done: list[str]) -> None:
    """Catch everything, as some libraries do, and go on."""
    with defer_interrupts():
        with suppress(BaseException):
            interrupt()
        done.append("all of it")


def test_a_swallowed_interrupt_is_delivered_at_the_end() -> None:
    """A block that catches everything does not lose the interrupt, and is done before it."""
    handler = signal.getsignal(signal.SIGINT)
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        swallow(done)
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_without_an_interrupt_nothing_happens() -> None:
    """The handler is the one that was there, also after an exception."""
    handler = signal.getsignal(signal.SIGINT)
    with defer_interrupts():
        pass
    with pytest.raises(ZeroDivisionError), defer_interrupts():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


GREEDY = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
except BaseException:
    swallowed = True
else:
    swallowed = False
"""


def test_a_command_is_not_interrupted_in_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that catches everything during import delays the interrupt, and loses nothing."""
    (tmp_path / "greedy_module_of_a_test.py").write_text(GREEDY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)]
    with EndingSignals() as signals:
        module = importlib.import_module("greedy_module_of_a_test")
        assert signals.received == signal.SIGINT
        with pytest.raises(Interrupted):
            time.sleep(10.0)
    assert not module.swallowed
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_command_whose_import_takes_long_is_interrupted_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that does not end is interrupted after a while."""
    monkeypatch.setattr("tmkit.cli.signals._MAX_IMPORT_SECONDS", 0.1)
    source = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20.0)\n"
    (tmp_path / "slow_module_of_a_test.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Interrupted), EndingSignals():
        importlib.import_module("slow_module_of_a_test")


def test_another_thread_may_enter() -> None:
    """Threads that get no signals pass through."""
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            with defer_interrupts():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not failed


def test_an_ignored_interrupt_stays_ignored() -> None:
    """If the process ignores interrupts, the block does too."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with defer_interrupts():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, handler)


# --- temporary folders

HOLDER = """
import sys
from tmkit._support.signals import temporary_folder
with temporary_folder("held") as folder:
    (folder / "work").mkdir()
    (folder / "work" / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give temporary folders a place of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    interrupts._remove_abandoned_folders.cache_clear()
    return tmp_path


def hold(parent: Path) -> tuple[Process, Path]:
    """Start a process that works in a temporary folder."""
    process = Process(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_temporary_folder_goes_with_its_block(parent: Path) -> None:
    """It is there within the block, and gone after it and after an exception."""
    with temporary_folder("a") as folder:
        assert folder.parent == parent
        assert folder.name.startswith("tmkit-a-")
        (folder / "file").write_text("x", encoding="ascii")
    with pytest.raises(ZeroDivisionError), temporary_folder("b"):
        raise ZeroDivisionError
    assert not list(parent.iterdir())


def test_what_a_killed_process_left_is_removed_and_nothing_else(parent: Path) -> None:
    """The next process removes the folders of dead ones; those of live and foreign ones stay."""
    living, its_folder = hold(parent)
    dead, left = hold(parent)
    dead.kill()
    dead.communicate()
    (parent / "tmkit-of-somebody-else").mkdir()
    (parent / "tmkit-link").symlink_to(its_folder)
    (parent / "tmkit-file").write_text("x", encoding="ascii")
    (parent / "other").mkdir()
    assert (left / "work" / "file").exists()
    with temporary_folder("a"):
        assert not left.exists()
        assert (its_folder / "work" / "file").exists()
    assert {path.name for path in parent.iterdir()} == {
        its_folder.name,
        "tmkit-of-somebody-else",
        "tmkit-link",
        "tmkit-file",
        "other",
    }
    living.communicate("")
    assert not its_folder.exists()
