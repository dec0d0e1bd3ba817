"""Interrupts that arrive while a library would swallow them are delivered afterwards."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import pytest

from tmkit.interrupts import interrupts_kept


def interrupt() -> None:
    """Send this process an interrupt, and wait until Python has seen it."""
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass


def swallow(done: list[str]) -> None:
    """Catch everything, as some libraries do, and go on."""
    with interrupts_kept():
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
    with interrupts_kept():
        pass
    with pytest.raises(ZeroDivisionError), interrupts_kept():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_another_thread_may_enter() -> None:
    """Threads that get no signals pass through."""
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            with interrupts_kept():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not failed


def test_an_ignored_interrupt_stays_ignored() -> None:
    """Where the process ignores interrupts, the block does too."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_kept():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, handler)
