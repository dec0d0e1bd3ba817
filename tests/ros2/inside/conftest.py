"""A robot that publishes, for the tests that run in the environment of ROS 2."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
from publishers import Robot


@pytest.fixture
def robot() -> Iterator[Robot]:
    """Node of a robot."""
    node = Robot()
    yield node
    node.close()


@pytest.fixture
def repeat() -> Iterator[Callable[[Callable[[int], None]], None]]:
    """Function that calls another every 20 ms in a thread until the end of the test."""
    threads, is_over = [], threading.Event()

    def start(call: Callable[[int], None]) -> None:
        def run() -> None:
            for number in itertools.count():
                if is_over.wait(0.02):
                    return
                call(number)

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    is_over.set()
    for thread in threads:
        thread.join()
