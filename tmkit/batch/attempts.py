"""Attempts: one problem, planned in a process of its own that is bounded in time and memory.

A server process (:class:`AttemptServer`) keeps what the problems of an entry share, and forks to
plan. The new process has the scene, the domain and the imported modules already, and what it does
to itself ends with it. The server has one thread, so the fork is safe. It ends with the thread that
started it.

A source with code of the user's has a new process for each problem. Problems of built-in sources,
domains and planners (``source.is_stateless``) share one for five seconds, one after the other,
since copying memory after a fork takes a third of the time of a small problem. Each has the bounds
of an attempt of its own, and any end but that of a search ends the process.

Invariants: :meth:`AttemptServer.run` returns a row whatever happens to the process; what a row
says, but for times, does not depend on the problems before it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from tmkit._support.job_main import LENGTH_BYTES
from tmkit._support.signals import defer_interrupts
from tmkit._support.subprocesses import end_with_parent, tie_to_parent
from tmkit.batch.problems import BatchOptions, ProblemSource
from tmkit.plans import Plan
from tmkit.plans.plan_file import plan_to_dict
from tmkit.tamp import PlanStatus
from tmkit.tamp.result import PlanResult
from tmkit.task_planning.fast_downward import remember_translations, remembered_translations

# what is told of an attempt: columns of the results; see :mod:`tmkit.batch.results`
Row = dict[str, Any]
KILLED = "killed"  # the status of an attempt whose process was killed, which is tried again
_MAIN = "from tmkit.batch.attempts import main; main()"
_SEARCHED = frozenset(status.value for status in PlanStatus)
_KEPT_SOURCES = 16
_TOLERANCE = 0.015  # metres by which an object may miss its place in the simulation
_WARMING = 2.0  # seconds of planning before the first attempt
_SHARED_SECONDS = 5.0  # for which problems share a process
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class AttemptServer:
    """A process that plans one problem after the other; started at the first, and anew after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._loaded: set[str] = set()

    def run(self, digest: str, packed: bytes, seed: int, options: BatchOptions) -> Row:
        """Plan the problem of a seed and return its row; the pickled source is sent on if the server lacks it."""
        try:
            process = self._started()
            if digest not in self._loaded:
                _send(process.stdin, ("load", digest, packed))
                self._loaded.add(digest)
            _send(process.stdin, ("run", digest, seed, options))
            row = _receive(process.stdout)
        except OSError:
            row = None
        if row is None:
            self.close()
            return failed_row(KILLED, "the process that plans was killed")
        if row.get("status") == "unknown":
            self._loaded.discard(digest)
            return self.run(digest, packed, seed, options)
        return row  # type: ignore[no-any-return]  # a row, as the server sends

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            paths = os.pathsep.join(str(Path(path or ".").resolve()) for path in sys.path)
            environment = {
                **os.environ,
                "PYTHONPATH": paths,
                "PYTHONHASHSEED": "0",
                **dict.fromkeys(_ONE_THREAD, "1"),
            }
            with defer_interrupts():
                self._process = subprocess.Popen(
                    tie_to_parent([sys.executable, "-P", "-c", _MAIN]),
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
        return self._process

    def close(self) -> None:
        """End the process, and what it runs."""
        process = self._process  # its own thread may close it at the same time
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # they are pipes
        self._process = None
        self._loaded.clear()


def failed_row(status: str, explanation: str) -> Row:
    """Return the row of an attempt without a result."""
    return {"status": status, "explanation": explanation}


# --- in the server
# ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Serve attempts on the standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    given = sys.stdin.buffer
    sources: OrderedDict[str, ProblemSource] = OrderedDict()
    faults: dict[str, str] = {}
    fork: _Fork | None = None
    while (message := _receive(given)) is not None:
        kind, digest, *given_with = message
        if fork is not None and not (kind == "run" and fork.is_for(digest, given_with[1])):
            fork.end()
            fork = None
        if kind == "load":
            try:
                sources[digest] = pickle.loads(*given_with)
                _prepare(sources[digest])
            except Exception as error:  # code of the user's, and what it needs
                faults[digest] = f"{type(error).__name__}: {error}"
            while len(sources) > _KEPT_SOURCES:
                sources.popitem(last=False)
        elif digest in faults:
            _send(results, failed_row("error", faults[digest]))
        elif digest not in sources:
            _send(results, failed_row("unknown", ""))
        else:
            seed, options = given_with
            fork = fork or _Fork(digest, sources[digest], options)
            row = fork.attempt(seed)
            if not fork.is_reusable:
                fork.end()
                fork = None
            _send(results, row)


def _prepare(source: ProblemSource) -> None:
    """Plan for a moment: what problems of a source share is done once, and Python runs code faster then."""
    from tmkit.tamp.planning import solve

    if hasattr(source, "row"):
        return
    problem, options = source.problem(0)
    short = replace(
        options,
        seeds=None,
        workers=1,
        max_iterations=1,
        time_limit=_WARMING,
        improve=0,
        suggest=False,
    )
    with contextlib.suppress(Exception):  # which each attempt finds, and tells
        solve(problem, short)
    gc.collect()
    gc.freeze()  # so that collections in new processes touch no memory that they share


class _Fork:
    """A process forked from this one, which plans problems of a source in turn, while ``is_reusable``."""

    def __init__(self, digest: str, source: ProblemSource, options: BatchOptions) -> None:
        self._planned = (digest, options)
        self._began = time.monotonic()
        self.is_reusable: bool = getattr(source, "is_stateless", False)
        seeds, given = os.pipe()
        self._rows, rows = os.pipe()
        self._seeds = os.fdopen(given, "wb")
        server = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            end_with_parent(server)
            os.close(given)
            os.close(self._rows)
            _plan_and_exit(source, options, seeds, rows)
        os.close(seeds)
        os.close(rows)
        with contextlib.suppress(OSError):
            os.setpgid(self._process, self._process)

    def is_for(self, digest: str, options: BatchOptions) -> bool:
        """Whether it plans such problems, and has time left for others."""
        is_young = time.monotonic() < self._began + _SHARED_SECONDS
        return self.is_reusable and is_young and self._planned == (digest, options)

    def attempt(self, seed: int) -> Row:
        """Return the row of a seed; the process ends when its time is up."""
        began, options = time.monotonic(), self._planned[1]
        with contextlib.suppress(OSError):
            _send(self._seeds, seed)
        data, length = bytearray(), LENGTH_BYTES
        while len(data) < length:
            left = began + options.seconds - time.monotonic()
            if left <= 0 or not select.select([self._rows], [], [], left)[0]:
                self.is_reusable = False
                return failed_row("timed out", f"did not end within {options.seconds:g} s")
            if not (chunk := os.read(self._rows, 1 << 16)):
                return failed_row(KILLED, f"the process that plans {self._ended()}")
            data += chunk
            if length == LENGTH_BYTES <= len(data):
                length += int.from_bytes(data[:LENGTH_BYTES], "little")
        row, modules, translations = pickle.loads(bytes(data[LENGTH_BYTES:]))
        for name in modules:  # so that the next process has them from the start
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        remember_translations(translations)
        self.is_reusable &= row["status"] in _SEARCHED
        row["seconds"] = time.monotonic() - began
        return row  # type: ignore[no-any-return]

    def _ended(self) -> str:
        self.is_reusable = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        return (
            f"was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )

    def end(self) -> None:
        if self._process:
            self._ended()
        with contextlib.suppress(OSError):
            self._seeds.close()
        os.close(self._rows)


def _plan_and_exit(source: ProblemSource, options: BatchOptions, seeds: int, rows: int) -> NoReturn:
    """Plan, write rows, and end without what the server would do at its end."""
    code = 1
    try:
        os.setpgid(0, 0)
        modules, known = set(sys.modules), remembered_translations()
        with os.fdopen(seeds, "rb") as given, os.fdopen(rows, "wb") as results:
            while (seed := _receive(given)) is not None:
                _bound_memory(options.memory_mib << 20)
                row = plan_row(source, seed, options)
                translations = {
                    k: v for k, v in remembered_translations().items() if k not in known
                }
                _send(
                    results,
                    (row, [name for name in sys.modules if name not in modules], translations),
                )
                modules, known = set(sys.modules), remembered_translations()
        code = 0
    finally:
        os._exit(code)


def _bound_memory(more: int) -> None:
    """Let this process allocate so many bytes more than it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        had = int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = had + more if hard == resource.RLIM_INFINITY else min(had + more, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def plan_row(source: ProblemSource, seed: int, wanted: BatchOptions) -> Row:
    """Plan the problem of a seed, here, and return its row; all but the times depends on the arguments.

    A source with a method ``plan`` has a planner of its own: it is given the problem and the
    options, and returns a :class:`tmkit.tamp.PlanResult`, a plan or None. One with a method ``row``
    does all that itself.
    """
    from tmkit.tamp.planning import solve

    began = _cpu_seconds()
    try:
        if hasattr(source, "row"):
            return source.row(seed)  # type: ignore[no-any-return]
        problem, options = source.problem(seed)
        answer = getattr(source, "plan", solve)(problem, replace(options, workers=1))
        row = _row_of(answer)
        found = answer.plan if isinstance(answer, PlanResult) else answer
        row["cpu_seconds"] = _cpu_seconds() - began
        if found is not None and wanted.check:
            from tmkit.tamp.validation.check import validate_plan

            row["is_valid"] = validate_plan(found).is_valid
        if found is not None and wanted.simulate:
            from tmkit.simulation import SimulationOptions, simulate

            row["ends_well"] = simulate(
                found, options=SimulationOptions(position_tolerance=_TOLERANCE)
            ).is_successful
        return row
    except MemoryError:
        row = failed_row("out of memory", "the process that plans had no more memory")
    except Exception as error:
        # what planning refuses, and what code of the user's raises: a row says so
        row = failed_row("error", f"{type(error).__name__}: {error}")
    return {**row, "cpu_seconds": _cpu_seconds() - began}


def _cpu_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _row_of(answer: PlanResult | Plan | None) -> Row:
    if not isinstance(answer, PlanResult):
        found = answer
        row = failed_row("no plan" if answer is None else "solved", "")
        row["actions"] = [] if answer is None else [str(action) for action in answer.actions]
    else:
        found, told = answer.plan, answer.to_dict()
        row = {
            "status": answer.status.value,
            "explanation": answer.explanation,
            "actions": told["actions"],
            "diagnosis": json.dumps(told["diagnosis"], sort_keys=True),
            "skeletons": answer.statistics.skeletons,
            "attempts": answer.statistics.attempts,
            "constraints": answer.statistics.constraints,
            "task_seconds": answer.statistics.task_seconds,
        }
    if found is not None:
        document = plan_to_dict(found, with_scene=False, with_timing=False)
        row |= {
            "cost": float(found.cost),
            "path_length": float(found.path_length),
            "plan": json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False),
        }
    return row


def _send(pipe: BinaryIO | Any, value: object) -> None:
    data = pickle.dumps(value)
    pipe.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> Any:
    """Return the next value, None at the end or where it was cut off."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little") if len(head) == LENGTH_BYTES else -1
    data = pipe.read(length) if length >= 0 else b""
    return pickle.loads(data) if length >= 0 and len(data) == length else None
