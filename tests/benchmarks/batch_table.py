"""Costs of a batch, beside two processes in a loop, in memory, and with 64 workers.

Run by hand: ``python tests/benchmarks/batch_table.py [processes] [memory] [workers] [--out FILE]``.

* ``processes``: 500 problems of three blocks by ``run_batch`` with two workers, and the same
  problems in two processes of their own that call ``tk.plan`` one after the other, in turns of 250;
  problems a second, and processor time of all processes a problem, between the first and the last
  40 rows of the batch, and after the first problem of the loops.
* ``memory``: resident memory of the process that runs a batch of 5,000 problems of two blocks, of
  the servers from which those that plan are forked, and of the largest that plans, at each fifth of
  it, and by how much it grows after the first.
* ``workers``: 64 workers of dask, each a process, whose 12,800 problems only sleep; after all have
  started, how much longer a problem takes than it sleeps, and the processor time of the process
  that gives them out, with the scheduler.
* ``survival``: 500 problems while 24 workers are killed and the scheduler once; a disk that is full
  for a while, and stays full; a batch that is killed and goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.tables import LiveTable, table_parser
from distributed import Client, LocalCluster

import tmkit as tk
from tmkit.batch import run_batch
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem
from tmkit.batch.running import BatchProgress
from tmkit.errors import OutputError

WORKERS, SLEEP = 64, 0.1
_LOOP = """
import os, pickle, sys, time
import tmkit as tk
source, seeds = pickle.loads(sys.stdin.buffer.read())
tk.solve(*source.problem(seeds[0]))
began, used = time.monotonic(), sum(os.times()[:4])
assert all(tk.solve(*source.problem(seed)).plan is not None for seed in seeds)
print(time.monotonic() - began, sum(os.times()[:4]) - used)
"""
_WORKERS = """
import asyncio, os, sys
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], nthreads=1, memory_limit=0, dashboard=False) as worker:
        await worker.finished()
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        asyncio.run(main())
        os._exit(0)
os.wait()
"""
_EDGE = 40  # rows before and after the measured ones


def three_blocks() -> FixedProblem:
    """Return the problem of a tower of three blocks."""
    scene = tk.load_scene("panda_table", "blocks3")
    return FixedProblem(
        tk.PlanningProblem(scene, goal="(and (on a b) (on b c))"),
        tk.PlanningOptions(max_iterations=4, workers=1),
    )


def two_blocks() -> FixedProblem:
    """Return the problem of a block on another."""
    scene = tk.load_scene("panda_table", "blocks2")
    return FixedProblem(
        tk.PlanningProblem(scene, goal="(on a b)"), tk.PlanningOptions(max_iterations=2, workers=1)
    )


@dataclass(frozen=True)
class Sleeping:
    """Problems that are only waited for."""

    seconds: float
    digest: str = "sleeping"
    is_stateless: bool = True

    def problem(self, seed: int) -> tuple[tk.PlanningProblem, tk.PlanningOptions]:
        """Return a problem, which is not planned."""
        return three_blocks().problem(seed)

    def row(self, seed: int) -> dict[str, Any]:
        """Sleep."""
        del seed
        time.sleep(self.seconds)
        return {"status": "no plan within the limits", "explanation": "", "actions": []}


def _resident(process: int) -> float:
    return (
        int(Path(f"/proc/{process}/statm").read_text().split()[1])
        * os.sysconf("SC_PAGE_SIZE")
        / 2**20
    )


def _child_processes(process: int) -> list[int]:
    files = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process, of those it has waited for, and of all below it."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own + sum(map(_processor_seconds, _child_processes(process)))
    except OSError:  # it has ended
        return 0.0


def processes(count: int = 500, turn: int = 250) -> list[str]:
    """Return problems solved a second by a batch of two processes, and the CPU time of each [s]."""
    source, spent, used = three_blocks(), {"batch": 0.0, "loops": 0.0}, {"batch": 0.0, "loops": 0.0}
    for first in range(0, count, turn):
        seeds = range(first, first + turn)
        with tempfile.TemporaryDirectory() as folder:
            marks: list[tuple[float, float]] = []

            def on_progress(
                progress: BatchProgress, marks: list[tuple[float, float]] = marks
            ) -> None:
                if progress.phase == "planning":
                    is_edge = progress.step in (_EDGE, turn - _EDGE)
                    marks.append(
                        (time.monotonic(), _processor_seconds(os.getpid()) if is_edge else 0.0)
                    )

            summary = run_batch(
                Batch((BatchEntry("towers", source, seeds),)),
                folder,
                workers=2,
                on_progress=on_progress,
            )
            assert summary.statuses == {"solved": turn}, summary
            (began, before), (ended, after) = marks[_EDGE - 1], marks[-_EDGE - 1]
            spent["batch"] += (ended - began) * turn / (turn - 2 * _EDGE)
            used["batch"] += (after - before) * turn / (turn - 2 * _EDGE)
        halves = [pickle.dumps((source, list(seeds)[half::2])) for half in (0, 1)]
        loops = [
            subprocess.Popen(
                [sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            for _ in halves
        ]
        for loop, half in zip(loops, halves, strict=True):
            assert loop.stdin is not None
            loop.stdin.write(half)
            loop.stdin.close()
        progress_times = [
            [*map(float, loop.stdout.read().split())] for loop in loops if loop.stdout is not None
        ]
        spent["loops"] += max(seconds for seconds, _ in progress_times)
        used["loops"] += sum(seconds for _, seconds in progress_times)
    rates = {name: count / seconds for name, seconds in spent.items()}
    each = {name: 1e3 * seconds / count for name, seconds in used.items()}
    return [
        f"* {count} problems of three blocks: {rates['batch']:.1f} a second in a batch with two"
        f" workers, {rates['loops']:.1f} in two processes with a loop each"
        f" ({100.0 * rates['batch'] / rates['loops']:.0f} %); {each['batch']:.1f} and"
        f" {each['loops']:.1f} ms of processor time a problem, with the scheduler"
        f" ({100.0 * each['loops'] / each['batch']:.0f} %)."
    ]


def memory(count: int = 5000) -> list[str]:
    """Return the memory during a long batch."""
    seen: list[tuple[int, float, float, float]] = []

    def on_progress(progress: BatchProgress) -> None:
        if progress.phase == "planning" and progress.step % 50 == 0:
            servers = _child_processes(os.getpid())
            planning = [
                _resident(child) for server in servers for child in _child_processes(server)
            ]
            mine = [
                _resident(os.getpid()),
                max(map(_resident, servers), default=0.0),
                max(planning, default=0.0),
            ]
            seen.append((progress.step, *mine))

    with tempfile.TemporaryDirectory() as folder:
        summary = run_batch(
            Batch((BatchEntry("stack", two_blocks(), range(count)),)),
            folder,
            workers=2,
            on_progress=on_progress,
        )
    rate = summary.problems / summary.seconds
    table = np.array(seen)
    later = table[table[:, 0] >= count // 5]
    slopes = [1e3 * np.polyfit(later[:, 0], later[:, column], 1)[0] for column in (1, 2, 3)]
    fifths = [
        " + ".join(f"{value:.0f}" for value in row[1:])
        for row in table
        if row[0] % (count // 5) == 0
    ]
    return [
        f"* {count} problems, {summary.statuses}, {rate:.1f} a second; MiB of the batch, of the"
        " larger server and of the largest process that plans, after each fifth:"
        f" {', '.join(fifths)}; after the first they grow by"
        f" {', '.join(f'{slope:.2f}' for slope in slopes)} MiB in 1,000 problems."
    ]


@contextlib.contextmanager
def _workers(address: str, count: int) -> Iterator[None]:
    """Start workers, forked from one process, so that starting them takes little."""
    idle = {
        "WORKER__PROFILE__ENABLED": "False",
        "ADMIN__TICK__INTERVAL": "10s",
        "ADMIN__SYSTEM_MONITOR__INTERVAL": "1m",
    }
    started = subprocess.Popen(
        [sys.executable, "-c", _WORKERS, address, str(count)],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **{f"DASK_DISTRIBUTED__{name}": value for name, value in idle.items()}},
    )
    try:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=600)
        yield
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def workers(turns: int = 200) -> list[str]:
    """Return the costs of many workers."""
    count = WORKERS * turns
    options = {"dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(
            n_workers=0,
            silence_logs=50,
            protocol="tcp://",
            dashboard_address=None,
            scheduler_kwargs=options,
        ) as cluster,
        _workers(cluster.scheduler_address, WORKERS),
        tempfile.TemporaryDirectory() as folder,
    ):
        marks: list[tuple[float, float]] = []

        def on_progress(progress: BatchProgress) -> None:
            if progress.phase == "planning":
                marks.append((time.monotonic(), time.process_time()))

        batch = Batch((BatchEntry("sleeping", Sleeping(SLEEP), range(count)),))
        run_batch(batch, folder, scheduler=cluster.scheduler_address, on_progress=on_progress)
    first = WORKERS * turns // 2  # by then all servers have started
    seconds, processor = (last - begin for last, begin in zip(marks[-1], marks[first], strict=True))
    problems = len(marks) - 1 - first
    over = seconds - problems * SLEEP / WORKERS
    return [
        f"* {WORKERS} workers on this machine, {problems} problems that sleep for {SLEEP:g} s each:"
        f" {1e3 * processor / problems:.2f} ms of processor time a problem in the process that"
        f" gives them out, with the scheduler; in all {1e3 * over / problems:.2f} ms a problem more"
        " than they sleep."
    ]


def _dask(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _digest_after_kills(batch: Batch, folder: Path, kills: int) -> tuple[str, int]:
    """Return the digest and attempts of a batch in which workers and the scheduler are killed."""
    file = folder / "scheduler.json"
    processes = [_dask("scheduler", "--port", "0", "--scheduler-file", str(file))]

    def start_worker() -> None:
        processes.append(
            _dask("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
        )

    every, left = len(batch) // (kills + 1), [*range(kills)]

    def on_progress(progress: BatchProgress) -> None:
        if (
            progress.phase != "planning"
            or not left
            or progress.step < every * (kills - len(left) + 1)
        ):
            return
        if len(left) == kills // 2:
            processes[0].kill()
            processes[0].wait()
            port = address.rpartition(":")[2]
            processes[0] = _dask("scheduler", "--port", port, "--scheduler-file", str(file))
            start_worker()
        left.pop()
        workers = [process for process in processes[1:] if process.poll() is None]
        workers[0].kill()
        start_worker()

    try:
        start_worker()
        start_worker()
        while not file.exists() or not file.read_text(encoding="utf-8"):
            time.sleep(0.1)
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        summary = run_batch(
            batch, folder / "out", scheduler=address, patience=300.0, on_progress=on_progress
        )
        assert not left, left
        return summary.digest, summary.tries
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _digest_on_a_full_disk(batch: Batch, disk: Path) -> tuple[str, int]:
    """Return the digest of a batch with a full disk, resumed with room; and the rows kept."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    try:
        (disk / "filler").write_bytes(bytes(3_600_000))
        try:
            run_batch(batch, disk / "out", workers=2, patience=5.0)
        except OutputError:
            (disk / "filler").unlink()
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        else:
            raise AssertionError("the disk was not full")
        summary = run_batch(batch, disk / "out", workers=2)
        assert summary.resumed + summary.tries == len(batch), summary
        return summary.digest, summary.resumed
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _digest_after_a_kill(batch: Batch, folder: Path) -> tuple[str, int]:
    """Return the digest of a batch that is killed as a whole and resumed; and the rows kept."""
    child = os.fork()
    if child == 0:

        def on_progress(progress: BatchProgress) -> None:
            if progress.phase == "planning" and progress.step == len(batch) // 2:
                os.kill(os.getpid(), signal.SIGKILL)

        run_batch(batch, folder, workers=2, on_progress=on_progress)
    os.waitpid(child, 0)
    summary = run_batch(batch, folder, workers=2)
    assert summary.resumed + summary.tries == len(batch), summary
    return summary.digest, summary.resumed


def survival(count: int = 500, kills: int = 24) -> list[str]:
    """Return the results of batches whose workers, scheduler, disk and process failed."""
    batch = Batch((BatchEntry("stack", two_blocks(), range(count)),), BatchOptions(tries=10))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "disk").mkdir()
        kept_rows, resumed = _digest_after_a_kill(batch, folder / "killed")
        alone = run_batch(batch, folder / "alone", workers=2)
        killed, tries = _digest_after_kills(batch, folder, kills)
        full, before = _digest_on_a_full_disk(batch, folder / "disk")
        assert {alone.digest, killed, kept_rows, full} == {alone.digest}, (
            alone.digest,
            killed,
            kept_rows,
            full,
        )
    return [
        f"* {count} problems, {alone.statuses}: with {kills} kills of workers and a new scheduler"
        f" {tries} attempts came back; killed at half it went on from {resumed} rows; on a full"
        f" disk it was refused after 5 s with {before} rows, and went on from there. One row a"
        " problem and the same digest each time."
    ]


def main() -> None:
    """Run the selected measurements and write the page."""
    parts = {"processes": processes, "memory": memory, "workers": workers, "survival": survival}
    parser = table_parser(__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="; ".join(parts))
    arguments = parser.parse_args()
    table = LiveTable()
    for name in arguments.parts or parts:
        table.add(*parts[name]())
    table.write(arguments.out)


if __name__ == "__main__":
    main()
