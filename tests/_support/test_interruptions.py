"""An interrupt at any moment leaves neither files nor handlers behind."""

from __future__ import annotations

import dis
import gc
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tmkit._support import output, signals as interrupts
from tmkit._support.output import fill_new_folder, write_files
from tmkit._support.signals import defer_interrupts, temporary_folder

SOURCES = {interrupts.__file__, output.__file__}
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Exception of the handlers of these tests."""


def stop(*_: object) -> None:
    """Handle a signal as the command line does."""
    raise Stopped


CHECKS = {"RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}
"""Instructions at which the interpreter runs the handlers of signals."""


def interrupt_at(moment: int, number: signal.Signals, work: Callable[[], None]) -> bool:
    """Send a signal at check ``moment`` of the tested code; return whether it has that check."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in SOURCES:
            return None
        frame.f_trace_opcodes = True
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else "RESUME"
        if (event == "opcode" and name in CHECKS) or (event == "return" and name != "YIELD_VALUE"):
            count += 1
            if count == moment:
                signal.raise_signal(number)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Stopped:
        pass
    finally:
        sys.settrace(before)
    return count >= moment


def use_folder() -> None:
    """Work in a temporary folder."""
    with temporary_folder("work") as folder:
        (folder / "file").write_text("x", encoding="ascii")


def replace_files() -> None:
    """Replace two files of the folder for temporary files."""
    folder = Path(tempfile.gettempdir())
    write_files({folder / "kept" / "a": b"new", folder / "kept" / "b": b"new"})


def fill_folder() -> None:
    """Write a folder that must not be there half."""
    target = Path(tempfile.gettempdir()) / "kept" / "folder"
    fill_new_folder(target, lambda folder: (folder / "file").write_bytes(b"x") and None)


def defer() -> None:
    """Keep signals for a while."""
    with defer_interrupts():
        pass


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("work", [use_folder, replace_files, fill_folder, defer])
def test_a_signal_at_any_moment_leaves_nothing(
    work: Callable[[], None],
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Temporary files are gone, old files are whole, and the handlers are those from before."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "kept"
    folder.mkdir()
    previous = {each: signal.signal(each, stop) for each in ENDING}
    gc.collect()
    # hundreds of collections follow, which need not visit objects of earlier tests
    gc.freeze()
    try:
        moment = 1
        while interrupt_at(moment, number, work):
            gc.collect()
            moment += 1
            assert [signal.getsignal(each) for each in ENDING] == [stop] * 3, moment
            assert list(tmp_path.iterdir()) == [folder], moment
            assert {path.name for path in folder.iterdir()} <= {"a", "b", "folder"}, moment
            for path in folder.iterdir():
                if path.is_dir():
                    assert [*path.iterdir()] == [path / "file"], moment
                    (path / "file").unlink()
                    path.rmdir()
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
    assert moment > 20
