"""What a batch costs: beside two processes that plan in a loop, in memory, and with 64 workers.

Run by hand: ``python tests/benchmarks/batch_table.py [processes] [memory] [workers] [--out FILE]``.

* ``processes``: 500 problems of three blocks by ``run_batch`` with two workers, and the same problems in two processes
  of their own that call ``tk.plan`` one after the other, in turns of 250; problems a second, and processor time of all
  processes a problem, between the first and the last 40 rows of the batch, and after the first problem of the loops.
* ``memory``: resident memory of the process that runs a batch of 5,000 problems, and of the one that plans, at each
  fifth of it.
* ``workers``: 64 workers of dask, each a process, whose 1,280 problems only sleep; how much longer a problem takes than
  it sleeps, and the processor time of the process that gives them out, with the scheduler in it.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from distributed import LocalCluster

import tmkit as tk
from tmkit.batch import Batch, BatchEntry, BatchProgress, FixedProblem, run_batch

WORKERS, SLEEP = 64, 2.0
_LOOP = """
import os, pickle, sys, time
import tmkit as tk
source, seeds = pickle.loads(sys.stdin.buffer.read())
tk.plan(*source.problem(seeds[0]))
began, used = time.monotonic(), sum(os.times()[:4])
assert all(tk.plan(*source.problem(seed)).plan is not None for seed in seeds)
print(time.monotonic() - began, sum(os.times()[:4]) - used)
"""
_EDGE = 40  # rows before and after what is measured


def three_blocks() -> FixedProblem:
    """Return the problem of a tower of three blocks."""
    scene = tk.load_scene("panda_table", "blocks3")
    return FixedProblem(
        tk.PlanningProblem(scene, goal="(and (on a b) (on b c))"), tk.PlanningOptions(max_iterations=4, workers=1)
    )


@dataclass(frozen=True)
class Sleeping:
    """Problems that are only waited for."""

    seconds: float
    digest: str = "sleeping"

    def problem(self, seed: int) -> tuple[tk.PlanningProblem, tk.PlanningOptions]:
        """Return a problem, which is not planned."""
        return three_blocks().problem(seed)

    def row(self, seed: int) -> dict[str, Any]:
        """Sleep."""
        del seed
        time.sleep(self.seconds)
        return {"status": "no plan", "explanation": "", "actions": []}


def _resident(process: int) -> float:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process, of those it has waited for, and of all below it."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own + sum(map(_processor_seconds, _children(process)))
    except OSError:  # it has ended meanwhile
        return 0.0


def processes(count: int = 500, turn: int = 250) -> list[str]:
    """Return how many problems a second a batch and two processes solve, and the processor time of a problem."""
    source, spent, used = three_blocks(), {"batch": 0.0, "loops": 0.0}, {"batch": 0.0, "loops": 0.0}
    for first in range(0, count, turn):
        seeds = range(first, first + turn)
        with tempfile.TemporaryDirectory() as folder:
            marks: list[tuple[float, float]] = []

            def on_progress(progress: BatchProgress, marks: list[tuple[float, float]] = marks) -> None:
                if progress.phase == "planning":
                    at = progress.step in (_EDGE, turn - _EDGE)
                    marks.append((time.monotonic(), _processor_seconds(os.getpid()) if at else 0.0))

            summary = run_batch(
                Batch((BatchEntry("towers", source, seeds),)), folder, workers=2, on_progress=on_progress
            )
            assert summary.statuses == {"solved": turn}, summary
            (began, before), (ended, after) = marks[_EDGE - 1], marks[-_EDGE - 1]
            spent["batch"] += (ended - began) * turn / (turn - 2 * _EDGE)
            used["batch"] += (after - before) * turn / (turn - 2 * _EDGE)
        halves = [pickle.dumps((source, list(seeds)[half::2])) for half in (0, 1)]
        loops = [
            subprocess.Popen([sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in halves
        ]
        for loop, half in zip(loops, halves, strict=True):
            assert loop.stdin is not None
            loop.stdin.write(half)
            loop.stdin.close()
        told = [[*map(float, loop.stdout.read().split())] for loop in loops if loop.stdout is not None]
        spent["loops"] += max(seconds for seconds, _ in told)
        used["loops"] += sum(seconds for _, seconds in told)
    rates = {name: count / seconds for name, seconds in spent.items()}
    each = {name: 1e3 * seconds / count for name, seconds in used.items()}
    return [
        f"* {count} problems of three blocks: {rates['batch']:.1f} a second in a batch with two workers, "
        f"{rates['loops']:.1f} in two processes with a loop each ({100.0 * rates['batch'] / rates['loops']:.0f} %); "
        f"{each['batch']:.1f} and {each['loops']:.1f} ms of processor time a problem, with the scheduler "
        f"({100.0 * each['loops'] / each['batch']:.0f} %)."
    ]


def memory(count: int = 5000) -> list[str]:
    """Return the memory during a long batch."""
    seen: list[str] = []

    def on_progress(progress: BatchProgress) -> None:
        if (
            progress.phase == "planning"
            and progress.step % (count // 5) == 0
            and len(seen) < progress.step * 5 // count
        ):
            planning = [_resident(child) for child in _children(os.getpid())]
            seen.append(f"{_resident(os.getpid()):.0f} + {max(planning, default=0.0):.0f}")

    with tempfile.TemporaryDirectory() as folder:
        batch = Batch((BatchEntry("towers", three_blocks(), range(count)),))
        summary = run_batch(batch, folder, workers=2, on_progress=on_progress)
    rate = summary.problems / summary.seconds
    return [
        f"* {count} problems, {summary.statuses}, {rate:.1f} a second; MiB of the batch and of the process from "
        f"which those that plan are forked, after each fifth: {', '.join(seen)}."
    ]


def workers(turns: int = 20) -> list[str]:
    """Return what many workers cost."""
    count = WORKERS * turns
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):  # fmt: skip
        marks: list[tuple[float, float]] = []

        def on_progress(progress: BatchProgress) -> None:
            if progress.phase == "planning":
                marks.append((time.monotonic(), time.process_time()))

        batch = Batch((BatchEntry("sleeping", Sleeping(SLEEP), range(count)),))
        run_batch(batch, folder, scheduler=cluster.scheduler_address, on_progress=on_progress)
    first = WORKERS * turns // 2  # by then all workers have started
    seconds, processor = (last - begin for last, begin in zip(marks[-1], marks[first], strict=True))
    problems = len(marks) - 1 - first
    over = seconds - problems * SLEEP / WORKERS
    return [
        f"* {WORKERS} workers on this machine, {problems} problems that sleep for {SLEEP:g} s each: "
        f"{1e3 * processor / problems:.2f} ms of processor time a problem in the process that gives them out, with the "
        f"scheduler; in all {1e3 * over / problems:.2f} ms a problem more than they sleep."
    ]


def main() -> None:
    """Measure what is asked for and write it."""
    parts = {"processes": processes, "memory": memory, "workers": workers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="; ".join(parts))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = []
    for name in arguments.parts or parts:
        lines += parts[name]()
        print(lines[-1], flush=True)
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
