"""Execution of batches: one row a problem in spite of killed processes, and equal tables."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.misbehaving import Misbehaving, tower_problem
from support.processes import Process

import tmkit as tk
from tmkit.batch import open_results, run_batch
from tmkit.batch.attempts import KILLED, AttemptServer, plan_row
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem
from tmkit.batch.results import TIMING_COLUMNS
from tmkit.batch.running import BatchProgress
from tmkit.errors import ConfigurationError, MissingFileError, OutputError, WorkerError

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def test_each_end_of_a_process_gives_a_row(tmp_path: Path) -> None:
    """The row of the next problem does not depend on it."""
    server, source = AttemptServer(), Misbehaving()
    limits = BatchOptions(seconds=2.0, memory_mib=1024)
    try:
        rows = [server.run(source.digest, pickle.dumps(source), seed, limits) for seed in range(5)]
        row = server.run(source.digest, b"not needed", 0, replace(limits, seconds=60.0))
    finally:
        server.close()
    assert [row["status"] for row in rows[1:]] == [KILLED, "timed out", "out of memory", "error"]
    assert rows[1]["explanation"] == "the process that plans was killed by SIGKILL"
    assert rows[4]["explanation"] == "RuntimeError: no such problem"
    expected_row = plan_row(tower_problem(), 0, BatchOptions())
    assert {name: value for name, value in row.items() if name not in TIMING_COLUMNS} == {
        name: value for name, value in expected_row.items() if name not in TIMING_COLUMNS
    }


@dataclass(frozen=True)
class _Processes:
    """Source whose rows contain the process identifier."""

    is_stateless: bool
    digest: str = "processes"

    def row(self, seed: int) -> dict[str, object]:
        """Return a row with the process identifier."""
        return {"status": "solved", "explanation": str(os.getpid()), "actions": [], "seed": seed}


@pytest.mark.parametrize("is_shared", [False, True])
def test_problems_with_user_code_have_separate_processes(is_shared: bool) -> None:
    """Problems of stateless sources share a process."""
    server, source = AttemptServer(), _Processes(is_shared)
    try:
        rows = [
            server.run("processes", pickle.dumps(source), seed, BatchOptions()) for seed in range(4)
        ]
    finally:
        server.close()
    assert len({row["explanation"] for row in rows}) == (1 if is_shared else 4)
    assert tower_problem().is_stateless
    problem = replace(tower_problem().task, domain=Path("blocks"))
    assert not FixedProblem(problem).is_stateless


def test_results_are_valid_and_reproducible(tmp_path: Path) -> None:
    """Plans in the results are valid. The number of workers does not change the table."""
    batch = Batch(
        (
            BatchEntry("tower", tower_problem(), range(3)),
            BatchEntry("impossible", tower_problem("(and (on a b) (on b a))")),
            BatchEntry("unknown", tower_problem("(on a zzz)")),
        )
    )
    reports: list[BatchProgress] = []
    summary = run_batch(batch, tmp_path / "one", workers=2, on_progress=reports.append)
    assert summary.statuses == {"error": 1, "proved unsolvable": 1, "solved": 3}
    assert (summary.tries, summary.resumed, reports[-1].step) == (5, 0, 5)
    results = open_results(tmp_path / "one")
    rows = list(results)
    assert [row["key"] for row in rows] == [job.key for job in batch.jobs()]
    assert [row["number"] for row in rows] == [*range(5)]
    for row in rows[:3]:
        assert tk.validate_plan(row.plan).is_valid
        assert [str(action) for action in row.plan.actions] == row["actions"]
        assert row.plan.seed == row["seed"]
    assert rows[3].plan is None
    assert "'zzz'" in rows[4]["explanation"]
    assert results.table("status").num_rows == 5
    repeated = run_batch(batch, tmp_path / "two", workers=1)
    assert repeated.digest == summary.digest == results.card["digest"]


def test_a_batch_continues_and_plans_changed_problems(tmp_path: Path) -> None:
    """No problem is planned twice, and rows of changed problems are removed."""

    class StopError(Exception):
        pass

    def stop(progress: BatchProgress) -> None:
        if progress.phase == "planning":
            raise StopError

    batch = Batch((BatchEntry("tower", tower_problem(), range(4)),))
    with pytest.raises(StopError):
        run_batch(batch, tmp_path, workers=1, on_progress=stop)
    with pytest.raises(MissingFileError, match="the batch has not ended"):
        open_results(tmp_path)
    summary = run_batch(batch, tmp_path, workers=1)
    assert (summary.resumed, summary.tries) == (1, 3)
    assert run_batch(batch, tmp_path).tries == 0
    changed_batch = Batch((BatchEntry("tower", tower_problem("(on b a)"), range(1)),))
    summary = run_batch(changed_batch, tmp_path, workers=1)
    assert (summary.resumed, summary.tries) == (0, 1)


def test_existing_results_are_kept_on_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files simulates the full disk."""
    batch = Batch((BatchEntry("tower", tower_problem(), range(8)),))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="existing results are kept"):
            run_batch(batch, tmp_path, workers=1, patience=0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    summary = run_batch(batch, tmp_path, workers=1)
    assert 0 < summary.resumed < 8
    assert summary.resumed + summary.tries == 8


def test_an_attempt_of_a_killed_process_is_repeated(tmp_path: Path) -> None:
    """A problem whose process is killed at each try has a row."""
    batch = Batch((BatchEntry("bad", Misbehaving(), [1, 4]),), BatchOptions(tries=2, seconds=60.0))
    summary = run_batch(batch, tmp_path, workers=1)
    assert summary.statuses == {"error": 1, KILLED: 1}
    assert [row["tries"] for row in open_results(tmp_path)] == [2, 1]


_ENDLESS = """
import signal, sys
from support.misbehaving import Misbehaving
from tmkit.batch import run_batch
from tmkit.batch.problems import Batch, BatchEntry
signal.signal(signal.SIGTERM, signal.default_int_handler)
run_batch(Batch((BatchEntry("endless", Misbehaving(), [2, 0]),)), sys.argv[1], workers=1)
"""


def _is_running(process: str) -> bool:
    try:
        return "(zombie)" not in Path("/proc", process, "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_batch(tmp_path: Path, signal_number: signal.Signals) -> None:
    """Each signal ends the batch and its planning process, and unlocks the journal."""
    note = tmp_path / "note"
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "TMKIT_TEST_NOTE": str(note)}
    batch = Process([sys.executable, "-c", _ENDLESS, str(tmp_path / "out")], env=environment)
    while not note.exists() or not note.read_text(encoding="utf-8").endswith("\n"):
        assert batch.poll() is None
        threading.Event().wait(0.05)
    batch.send_signal(signal_number)
    batch.wait()
    while _is_running(note.read_text(encoding="utf-8").strip()):
        threading.Event().wait(0.05)
    run_batch(Batch((BatchEntry("tower", tower_problem(), [0]),)), tmp_path / "out", workers=1)


def _dask(*arguments: str) -> Process:
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    return Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_batch_survives_killed_workers_and_schedulers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers and the scheduler are killed during planning and started again."""
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))  # for the workers
    file = tmp_path / "scheduler.json"
    scheduler = _dask("scheduler", "--port", "0", "--scheduler-file", str(file))
    processes = [scheduler]

    def start_worker() -> None:
        options = ("--nthreads", "1", "--no-nanny", "--death-timeout", "60")
        processes.append(_dask("worker", "--scheduler-file", str(file), *options))

    address: list[str] = []

    def on_progress(progress: BatchProgress) -> None:
        if progress.phase != "planning":
            return
        if progress.step in (2, 4):
            processes[-1].kill()
            start_worker()
        if progress.step == 3:
            scheduler.kill()
            scheduler.wait()
            host = address[0].rsplit(":", 1)
            processes.append(_dask("scheduler", "--port", host[1], "--scheduler-file", str(file)))
            start_worker()

    try:
        start_worker()
        while not file.exists() or not file.read_text(encoding="utf-8"):
            assert scheduler.poll() is None
            threading.Event().wait(0.05)
        address.append(json.loads(file.read_text(encoding="utf-8"))["address"])
        batch = Batch((BatchEntry("tower", tower_problem(), range(6)),), BatchOptions(tries=10))
        summary = run_batch(
            batch, tmp_path / "out", scheduler=address[0], patience=120.0, on_progress=on_progress
        )
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert summary.statuses == {"solved": 6}
    local_summary = run_batch(batch, tmp_path / "local", workers=1)
    assert local_summary.digest == summary.digest


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    """The error names the argument, folder, scheduler or entry."""
    batch = Batch((BatchEntry("tower", tower_problem()),))
    with pytest.raises(ConfigurationError, match="workers must be at least 1, not 0"):
        run_batch(batch, tmp_path, workers=0)
    with pytest.raises(WorkerError, match=r"the scheduler tcp://127\.0\.0\.1:9 is lost"):
        run_batch(batch, tmp_path / "out", scheduler="tcp://127.0.0.1:9", patience=0.5)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="file"):
        run_batch(batch, tmp_path / "file" / "out")

    class Unpicklable(Misbehaving):
        pass

    with pytest.raises(ConfigurationError, match="'local' cannot be sent to another process"):
        run_batch(Batch((BatchEntry("local", Unpicklable()),)), tmp_path / "local", workers=1)
