"""Attempts at problems, each planned in a separate process with limits of time and memory.

A server process (:class:`AttemptServer`) stores the data that the problems of an entry share, and
forks to plan. The new process inherits the scene, the domain and the imported modules. Its changes
do not affect the server. The server has one thread, so the fork is safe. It ends with the thread
that started it.

A source with user code has a new process for each problem. Problems of built-in sources, domains
and planners (``source.is_stateless``) share a process for five seconds, since copying memory after
a fork takes a third of the time of a small problem. Each of them has the limits of an attempt. The
process ends after an attempt without a result of the search.

Invariants: :meth:`AttemptServer.run` always returns a row, even if the process dies; apart from
times, a row does not depend on earlier problems.
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
from tmkit.task_planning.fast_downward import copy_translation_cache, extend_translation_cache

Row = dict[str, Any]
"""Columns of the results of an attempt; see :mod:`tmkit.batch.results`."""

KILLED = "killed"
"""Status of an attempt whose process was killed, which is repeated."""

_MAIN = "from tmkit.batch.attempts import main; main()"
"""Program of a server process."""

_SEARCH_STATUSES = frozenset(status.value for status in PlanStatus)
"""Statuses after which the process of an attempt may plan another problem."""

_MAX_SOURCES = 16
"""Number of sources that a server keeps."""

_POSITION_TOLERANCE = 0.015
"""Distance of an object from its planned position that is accepted in the simulation [m]."""

_WARM_UP_SECONDS = 2.0
"""Time of planning before the first attempt [s]."""

_SHARED_SECONDS = 5.0
"""Time for which problems share a process [s]."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit libraries to one thread."""


class AttemptServer:
    """Server process that plans problems in turn.

    It starts with the first problem, and restarts after it was killed.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._loaded: set[str] = set()

    def run(self, digest: str, packed: bytes, seed: int, options: BatchOptions) -> Row:
        """Plan the problem of a seed and return its row.

        Args:
            digest: digest of the source.
            packed: pickled source, which is sent if the server lacks it.
            seed: seed of the problem.
            options: limits and checks of the attempt.
        """
        try:
            process = self._ensure_process()
            if digest not in self._loaded:
                _send(process.stdin, ("load", digest, packed))
                self._loaded.add(digest)
            _send(process.stdin, ("run", digest, seed, options))
            row = _receive(process.stdout)
        except OSError:
            row = None
        if row is None:
            self.close()
            return failure_row(KILLED, "the process that plans was killed")
        if row.get("status") == "unknown":
            self._loaded.discard(digest)
            return self.run(digest, packed, seed, options)
        return row  # type: ignore[no-any-return]  # the server sends rows

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            paths = os.pathsep.join(str(Path(path or ".").resolve()) for path in sys.path)
            environment = {
                **os.environ,
                "PYTHONPATH": paths,
                "PYTHONHASHSEED": "0",
                **dict.fromkeys(_THREAD_VARIABLES, "1"),
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
        """End the process and its child processes."""
        process = self._process  # a copy, since another thread may close it at the same time
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # they are pipes
        self._process = None
        self._loaded.clear()


def failure_row(status: str, explanation: str) -> Row:
    """Return the row of an attempt without a result."""
    return {"status": status, "explanation": explanation}


# Code of the server process
# ------------------------------------------------------------------------------------------------


def main() -> None:
    """Serve attempts on stdin until its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    sources: OrderedDict[str, ProblemSource] = OrderedDict()
    faults: dict[str, str] = {}
    fork: _Fork | None = None
    while (message := _receive(requests)) is not None:
        kind, digest, *arguments = message
        if fork is not None and not (kind == "run" and fork.is_for(digest, arguments[1])):
            fork.end()
            fork = None
        if kind == "load":
            try:
                sources[digest] = pickle.loads(*arguments)
                _prepare(sources[digest])
            except Exception as error:  # any error of user code and its imports
                faults[digest] = f"{type(error).__name__}: {error}"
            while len(sources) > _MAX_SOURCES:
                sources.popitem(last=False)
        elif digest in faults:
            _send(results, failure_row("error", faults[digest]))
        elif digest not in sources:
            _send(results, failure_row("unknown", ""))
        else:
            seed, options = arguments
            fork = fork or _Fork(digest, sources[digest], options)
            row = fork.attempt(seed)
            if not fork.is_reusable:
                fork.end()
                fork = None
            _send(results, row)


def _prepare(source: ProblemSource) -> None:
    """Plan for a short time, which computes the shared data of a source and fills the caches."""
    from tmkit.tamp.planning import solve

    if hasattr(source, "row"):
        return
    problem, options = source.problem(0)
    short = replace(
        options,
        seeds=None,
        workers=1,
        max_iterations=1,
        time_limit=_WARM_UP_SECONDS,
        improve=0,
        suggest=False,
    )
    with contextlib.suppress(Exception):  # each attempt has the same error in its row
        solve(problem, short)
    gc.collect()
    gc.freeze()  # collections in new processes then write to no shared memory


class _Fork:
    """Forked process that plans problems of a source in turn.

    Attributes:
        is_reusable: True while the process may plan a further problem.
    """

    def __init__(self, digest: str, source: ProblemSource, options: BatchOptions) -> None:
        self._key = (digest, options)
        self._start_time = time.monotonic()
        self.is_reusable: bool = getattr(source, "is_stateless", False)
        seeds, seed_writer = os.pipe()
        self._rows, rows = os.pipe()
        self._seeds = os.fdopen(seed_writer, "wb")
        server = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            end_with_parent(server)
            os.close(seed_writer)
            os.close(self._rows)
            _plan_and_exit(source, options, seeds, rows)
        os.close(seeds)
        os.close(rows)
        with contextlib.suppress(OSError):
            os.setpgid(self._process, self._process)

    def is_for(self, digest: str, options: BatchOptions) -> bool:
        """Return whether the process may plan a further problem of a source with these options."""
        is_young = time.monotonic() < self._start_time + _SHARED_SECONDS
        return self.is_reusable and is_young and self._key == (digest, options)

    def attempt(self, seed: int) -> Row:
        """Return the row of a seed; the process ends when its time is up."""
        start, options = time.monotonic(), self._key[1]
        with contextlib.suppress(OSError):
            _send(self._seeds, seed)
        data, length = bytearray(), LENGTH_BYTES
        while len(data) < length:
            remaining = start + options.seconds - time.monotonic()
            if remaining <= 0 or not select.select([self._rows], [], [], remaining)[0]:
                self.is_reusable = False
                return failure_row("timed out", f"did not end within {options.seconds:g} s")
            if not (chunk := os.read(self._rows, 1 << 16)):
                return failure_row(KILLED, f"the process that plans {self._kill()}")
            data += chunk
            if length == LENGTH_BYTES <= len(data):
                length += int.from_bytes(data[:LENGTH_BYTES], "little")
        row, modules, translations = pickle.loads(bytes(data[LENGTH_BYTES:]))
        for name in modules:  # the next process inherits them
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        extend_translation_cache(translations)
        self.is_reusable &= row["status"] in _SEARCH_STATUSES
        row["seconds"] = time.monotonic() - start
        return row  # type: ignore[no-any-return]

    def _kill(self) -> str:
        """End the process and return the description of its end."""
        self.is_reusable = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def end(self) -> None:
        if self._process:
            self._kill()
        with contextlib.suppress(OSError):
            self._seeds.close()
        os.close(self._rows)


def _plan_and_exit(source: ProblemSource, options: BatchOptions, seeds: int, rows: int) -> NoReturn:
    """Plan, write rows, and end without the exit handlers of the server."""
    code = 1
    try:
        os.setpgid(0, 0)
        modules, translations = set(sys.modules), copy_translation_cache()
        with os.fdopen(seeds, "rb") as requests, os.fdopen(rows, "wb") as results:
            while (seed := _receive(requests)) is not None:
                _limit_memory(options.memory_mib << 20)
                row = plan_row(source, seed, options)
                new_modules = [name for name in sys.modules if name not in modules]
                new_translations = {
                    k: v for k, v in copy_translation_cache().items() if k not in translations
                }
                _send(results, (row, new_modules, new_translations))
                modules, translations = set(sys.modules), copy_translation_cache()
        code = 0
    finally:
        os._exit(code)


def _limit_memory(additional_bytes: int) -> None:
    """Limit the memory of this process to its present size and some additional bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = size + additional_bytes
    if hard_limit != resource.RLIM_INFINITY:
        soft = min(soft, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard_limit))


def plan_row(source: ProblemSource, seed: int, batch_options: BatchOptions) -> Row:
    """Plan the problem of a seed in this process and return its row.

    Apart from times, the row depends on the arguments only. A method ``plan`` of the source
    replaces the planner: it receives the problem and the options, and returns a
    :class:`tmkit.tamp.PlanResult`, a plan or None. A method ``row`` of the source returns the row.

    Args:
        source: source of the problem.
        seed: seed of the problem.
        batch_options: checks of the plan.
    """
    from tmkit.tamp.planning import solve

    start = _cpu_seconds()
    try:
        if hasattr(source, "row"):
            return source.row(seed)  # type: ignore[no-any-return]
        problem, options = source.problem(seed)
        result = getattr(source, "plan", solve)(problem, replace(options, workers=1))
        row = _result_row(result)
        plan = result.plan if isinstance(result, PlanResult) else result
        row["cpu_seconds"] = _cpu_seconds() - start
        if plan is not None and batch_options.check:
            from tmkit.tamp.validation.check import validate_plan

            # A plan names only built-in domains; a planner of the source may use another domain.
            is_planned = isinstance(result, PlanResult)
            row["is_valid"] = validate_plan(
                plan,
                domain=problem.domain if is_planned else None,
                semantics=problem.semantics if is_planned else None,
                start_tolerances=options.start_tolerances,
            ).is_valid
        if plan is not None and batch_options.simulate:
            from tmkit.simulation import SimulationOptions, simulate

            simulation_options = SimulationOptions(position_tolerance=_POSITION_TOLERANCE)
            row["ends_well"] = simulate(plan, options=simulation_options).is_successful
        return row
    except MemoryError:
        row = failure_row("out of memory", "the process that plans had no more memory")
    except Exception as error:
        # Errors of planning and of user code become rows.
        row = failure_row("error", f"{type(error).__name__}: {error}")
    return {**row, "cpu_seconds": _cpu_seconds() - start}


def _cpu_seconds() -> float:
    """Return the processor time of this process and of its ended children [s]."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _result_row(result: PlanResult | Plan | None) -> Row:
    """Return the row of a result of the planner or of a user's planner."""
    if not isinstance(result, PlanResult):
        plan = result
        row = failure_row("no plan" if plan is None else "solved", "")
        row["actions"] = [] if plan is None else [str(action) for action in plan.actions]
    else:
        plan, values = result.plan, result.to_dict()
        row = {
            "status": result.status.value,
            "explanation": result.explanation,
            "actions": values["actions"],
            "diagnosis": json.dumps(values["diagnosis"], sort_keys=True),
            "skeletons": result.statistics.skeletons,
            "attempts": result.statistics.attempts,
            "constraints": result.statistics.constraints,
            "task_seconds": result.statistics.task_seconds,
        }
        if result.trials:
            trials = [trial.to_dict() for trial in result.trials]
            row["trials"] = json.dumps(trials, sort_keys=True, allow_nan=False)
    if plan is not None:
        document = plan_to_dict(plan, with_scene=False, with_timing=False)
        row |= {
            "cost": float(plan.cost),
            "path_length": float(plan.path_length),
            "plan": json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False),
        }
    return row


def _send(pipe: BinaryIO | Any, value: object) -> None:
    """Write a value to a pipe, as its length and its pickle."""
    data = pickle.dumps(value)
    pipe.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> Any:
    """Return the next value of a pipe; None at the end, or for an incomplete value."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little") if len(head) == LENGTH_BYTES else -1
    data = pipe.read(length) if length >= 0 else b""
    return pickle.loads(data) if length >= 0 and len(data) == length else None
