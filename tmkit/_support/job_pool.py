"""Process pool that returns the first decisive result in the order of the jobs.

Job *i* decides if and only if all jobs before it have ended without a decision, as in a sequential
run. Later jobs start early, and end as soon as a job before them decides. Each job runs in a new
Python process, which reads the pickled job. No process is forked, and the caller's main module is
not run again. Results, messages and log records return through a pipe.

On every exit of :func:`first_in_order`, superfluous processes receive SIGTERM repeatedly, and
SIGKILL after some seconds. If this process is killed, Linux kills its workers
(:mod:`tmkit._support.subprocesses`). Workers create temporary folders inside one of this process,
which is removed at its end, or by the next run if it is killed. Workers have a separate process
group, so Ctrl-C reaches only the process that waits for them.

Invariants: the results do not depend on the number of processes; no worker outlives the call.
"""

from __future__ import annotations

import logging
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from tmkit._support.job_main import LENGTH_BYTES
from tmkit._support.signals import defer_interrupts, temporary_folder
from tmkit._support.subprocesses import tie_to_parent
from tmkit.errors import ConfigurationError, WorkerError

Job = TypeVar("Job")
Result = TypeVar("Result")
SendMessage = Callable[[Any], None]
"""Function that passes a message of a job to the calling process."""

_MAIN = "from tmkit._support.job_main import main; main()"
"""Program of a worker."""

_CHUNK_BYTES = 1 << 16
"""Largest number of bytes that one read from a worker returns."""

_TERMINATION_INTERVAL = 0.5
"""Time between two SIGTERM to a worker [s]."""

_TERMINATION_TIMEOUT = 6.0
"""Time after the first SIGTERM at which a worker is killed [s]."""

_TAIL_LINES = 8
"""Number of the last lines of a failed worker's output in the error."""


def first_in_order(
    work: Callable[[Job, SendMessage], Result],
    jobs: Sequence[Job],
    *,
    decides: Callable[[Result], bool],
    processes: int,
    on_message: Callable[[int, Any], None],
    name: Callable[[int], str],
) -> tuple[Result, ...]:
    """Do jobs in parallel until one decides, and return the results up to that one, in order.

    Args:
        work: function of a module that does a job and passes messages to its second argument.
        jobs: jobs, which are pickled, like their results.
        decides: function that returns whether a result ends the search.
        processes: number of jobs at a time.
        on_message: called in this thread with the number of a job and its message.
        name: function that returns the name of a job by its number, for errors.

    Raises:
        ConfigurationError: if a job cannot be pickled, or ``processes`` is below 1.
        WorkerError: if a worker is killed, and no job before it decides.
        Exception: if a job raises it, and no job before it decides.
    """
    if processes < 1:
        raise ConfigurationError(f"processes must be at least 1, not {processes}")
    if processes == 1 or len(jobs) <= 1:
        results: list[Result] = []
        for number, job in enumerate(jobs):
            results.append(work(job, partial(on_message, number)))
            if decides(results[-1]):
                break
        return tuple(results)
    with temporary_folder("workers") as folder:
        race = _Race(work, jobs, folder, decides, on_message, name)
        try:
            return race.run(processes)
        finally:
            with defer_interrupts():
                race.end_all()


def _pickle_job(work: Callable[..., Any], job: object, name: str) -> bytes:
    level = logging.getLogger("tmkit").getEffectiveLevel()
    try:
        return pickle.dumps((level, work, job))
    except Exception as error:  # pickle raises errors of any type
        raise ConfigurationError(
            f"{name} cannot be sent to another process: {error}; functions and classes must be"
            " those of a module, or use one process"
        ) from error


@dataclass
class _Worker:
    """Process that does one job.

    Attributes:
        number: number of the job.
        process: process.
        log: file of the output of the process.
        buffer: bytes of an incomplete message.
        outcome: kind and value of the last message, once it is received.
    """

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    buffer: bytearray = field(default_factory=bytearray)
    outcome: tuple[str, Any] | None = None

    def receive(self) -> tuple[bool, list[Any]]:
        """Read available output; return whether the pipe is open, and the messages."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), _CHUNK_BYTES)
        self.buffer += data
        messages: list[Any] = []
        while (message := self._next()) is not None:
            kind, value = message
            if kind == "message":
                messages.append(value)
            elif kind == "log":
                logging.getLogger(value.name).handle(value)
            else:
                self.outcome = message
        return bool(data), messages

    def _next(self) -> tuple[str, Any] | None:
        if len(self.buffer) < LENGTH_BYTES:
            return None
        end = LENGTH_BYTES + int.from_bytes(self.buffer[:LENGTH_BYTES], "little")
        if len(self.buffer) < end:
            return None
        message: tuple[str, Any] = pickle.loads(bytes(self.buffer[LENGTH_BYTES:end]))
        del self.buffer[:end]
        return message

    def terminate(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def end(self, *, is_terminated: bool = False) -> None:
        """End the process with SIGTERM, and SIGKILL after a timeout.

        ``is_terminated`` skips the first SIGTERM, which would interrupt the cleanup after an
        earlier one.
        """
        if not is_terminated:
            self.terminate()
        start = time.monotonic()
        while self.process.poll() is None:
            try:
                self.process.wait(_TERMINATION_INTERVAL)
            except subprocess.TimeoutExpired:
                is_late = time.monotonic() - start >= _TERMINATION_TIMEOUT
                self.process.send_signal(signal.SIGKILL if is_late else signal.SIGTERM)
        if self.process.stdout is not None:
            self.process.stdout.close()


class _Race(Generic[Job, Result]):
    """Parallel run of jobs, for the arguments of :func:`first_in_order`."""

    def __init__(
        self,
        work: Callable[[Job, SendMessage], Result],
        jobs: Sequence[Job],
        folder: Path,
        decides: Callable[[Result], bool],
        on_message: Callable[[int, Any], None],
        name: Callable[[int], str],
    ) -> None:
        self.work, self.jobs, self.folder = work, jobs, folder
        self.decides, self.on_message, self.name = decides, on_message, name
        self.running: dict[int, _Worker] = {}
        self.ended: dict[int, _Worker] = {}
        self.selector = selectors.DefaultSelector()
        # Jobs from this number on are superfluous, since an earlier job has decided.
        self.bound = len(jobs)

    def run(self, processes: int) -> tuple[Result, ...]:
        n_started = 0
        results: list[Result] = []
        while True:
            while len(results) in self.ended:  # the next job in order has ended
                results.append(self._result(self.ended[len(results)]))
                if len(results) == len(self.jobs) or self.decides(results[-1]):
                    return tuple(results)
            while n_started < self.bound and len(self.running) < processes:
                self._start(n_started)
                n_started += 1
            for key, _ in self.selector.select():
                if key.data.number in self.running:  # not ended by another job of this iteration
                    self._receive(key.data)

    def _start(self, number: int) -> None:
        job, log = self.folder / f"job-{number}", self.folder / f"log-{number}"
        job.write_bytes(_pickle_job(self.work, self.jobs[number], self.name(number)))
        paths = [str(Path(path or ".").resolve()) for path in sys.path]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(self.folder),
        }
        with defer_interrupts(), job.open("rb") as source, log.open("wb") as errors:
            try:
                process = subprocess.Popen(
                    tie_to_parent([sys.executable, "-P", "-c", _MAIN]),
                    env=environment,
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    process_group=0,
                )
            except OSError as error:
                raise WorkerError(
                    f"no process could be started for {self.name(number)}: {error}", output=""
                ) from error
            worker = self.running[number] = _Worker(number, process, log)
            assert process.stdout is not None
            self.selector.register(process.stdout, selectors.EVENT_READ, worker)

    def _receive(self, worker: _Worker) -> None:
        is_open, messages = worker.receive()
        for message in messages:
            self.on_message(worker.number, message)
        if is_open and worker.outcome is None:
            return
        self._unregister(worker)
        if worker.outcome is not None:
            worker.process.wait()
        worker.end()
        self.ended[worker.number] = self.running.pop(worker.number)
        kind, value = worker.outcome or ("broken", None)
        if kind != "result" or self.decides(cast(Result, value)):
            self._drop_after(worker.number)

    def _unregister(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        self.selector.unregister(worker.process.stdout)

    def _drop_after(self, number: int) -> None:
        """End the jobs after one that decides or raises."""
        self.bound = min(self.bound, number + 1)
        for later in [running for running in self.running if running > number]:
            worker = self.running[later]
            self._unregister(worker)
            worker.end()
            del self.running[later]

    def _result(self, worker: _Worker) -> Result:
        if worker.outcome is not None:
            kind, value = worker.outcome
            if kind == "result":
                return cast(Result, value)
            error, trace = value
            error.add_note(f"in a process of its own:\n{trace}")
            raise error
        output = worker.log.read_text(encoding="utf-8", errors="replace").strip()
        tail = "\n".join(output.splitlines()[-_TAIL_LINES:])
        last_lines = f"; it wrote:\n{tail}" if tail else ""
        code = worker.process.returncode
        ending = f"ended with exit code {code} without a result"
        if code < 0:
            ending = f"was killed by {signal.Signals(-code).name}"
        raise WorkerError(
            f"the process for {self.name(worker.number)} {ending}{last_lines}", output=output
        )

    def end_all(self) -> None:
        for worker in self.running.values():
            worker.terminate()
        for worker in self.running.values():
            worker.end(is_terminated=True)
        self.running.clear()
        self.selector.close()
