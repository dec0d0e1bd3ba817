"""The translator's server: the same translation as by the program, whatever happens to it."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from support.task_problems import DATA, blocks_world

from tmkit.errors import TaskPlannerError
from tmkit.pddl import load_domain
from tmkit.task_planning import encoding as encodings, fast_downward_process as translator
from tmkit.task_planning.encoding import Encoding

PLACES = load_domain(DATA / "places" / "domain.pddl")


def _encoding(seed: int) -> Encoding:
    return encodings.encode(blocks_world(PLACES, blocks=3, places=5, seed=seed))


def _run_translator(monkeypatch: pytest.MonkeyPatch, encoding: Encoding) -> str | None:
    with monkeypatch.context() as patch:
        patch.setattr(translator._server, "translate", lambda *_: None)
        return translator.translate_text(encoding, 60.0)


def test_the_server_translates_as_the_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after other tasks, and after one that was wrong."""
    for seed in (1, 2, 1):
        assert translator.translate_text(_encoding(seed), 60.0) == _run_translator(
            monkeypatch, _encoding(seed)
        )
        with pytest.raises(TaskPlannerError, match="translator ended with exit code"):
            translator.translate_text(Encoding("(define (domain d) (:action", "(define)", {}), 60.0)


def test_a_killed_server_is_replaced(tmp_path: Path) -> None:
    """The task that finds it dead is translated by a program or a new server."""
    expected = translator.translate_text(_encoding(3), 60.0)
    process = translator._server._process
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert translator.translate_text(_encoding(3), 60.0) == expected
    assert translator.translate_text(_encoding(3), 60.0) == expected
    assert translator._server._process is not process


def test_threads_and_forks_do_not_share_a_task() -> None:
    """A busy server is not waited for, and a fork has none."""
    expected = [translator.translate_text(_encoding(seed), 60.0) for seed in range(4)]
    outputs: dict[int, str | None] = {}

    def translate(seed: int) -> None:
        outputs[seed] = translator.translate_text(_encoding(seed), 60.0)

    threads = [threading.Thread(target=translate, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outputs[seed] for seed in range(4)] == expected
    child = os.fork()
    if child == 0:
        os._exit(translator.translate_text(_encoding(0), 60.0) != expected[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert translator.translate_text(_encoding(0), 60.0) == expected[0]


def test_time_that_is_up_ends_the_server() -> None:
    """A task that is too large is given up, and the next one is translated."""
    large = encodings.encode(blocks_world(PLACES, blocks=12, places=20, seed=5))
    assert translator.translate_text(large, 0.001) is None
    assert translator._server._process is None
    assert translator.translate_text(_encoding(3), 60.0)
