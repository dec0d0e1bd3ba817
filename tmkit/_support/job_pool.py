"""Jobs over several processes, of which the first good result *in order* counts.

Job *i* decides if and only if all jobs before it have ended without deciding: exactly what trying
one after the other would give. The jobs that follow are begun early, and ended as soon as a job
before them decides. Each job has a process of its own, a new Python that is handed the pickled job:
nothing is forked, and the caller's main module is not run again. What a job returns, tells
meanwhile and logs comes back through a pipe.

A process that is not needed any more gets SIGTERM, again and again, and SIGKILL after some seconds,
on every way out of :func:`first_in_order`. Should this process be killed itself, Linux kills its
workers (:mod:`tmkit._support.subprocesses`). Temporary folders of workers are made inside one of
this process, which goes with it, or, should it be killed, with the next run. Workers have a process
group of their own: Ctrl-C reaches only the process that waits for them.

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
from tmkit._support.signals import interrupts_kept, temporary_folder
from tmkit._support.subprocesses import tied
from tmkit.errors import ConfigurationError, WorkerError

Job = TypeVar("Job")
Result = TypeVar("Result")
Tell = Callable[[Any], None]

_MAIN = "from tmkit._support.job_main import main; main()"
_CHUNK = 1 << 16
_ASK_SECONDS = 0.5  # between two polite requests to end
_PATIENCE = 6.0  # seconds after which a worker that does not end is killed
_TAIL_LINES = 8


def first_in_order(
    work: Callable[[Job, Tell], Result],
    jobs: Sequence[Job],
    *,
    decides: Callable[[Result], bool],
    processes: int,
    on_message: Callable[[int, Any], None],
    name: Callable[[int], str],
) -> tuple[Result, ...]:
    """Do jobs until one decides, several at a time; return the results up to that one, in order, or all.

    Jobs, results and ``work``, which is a function of a module, are pickled. ``work`` passes
    messages to its second argument; ``on_message`` gets them in this thread with the number of the
    job. What a job raises is raised when none before it decides; a worker that is killed is a
    :class:`WorkerError`.
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
            with interrupts_kept():
                race.end_all()


def _packed(work: Callable[..., Any], job: object, name: str) -> bytes:
    level = logging.getLogger("tmkit").getEffectiveLevel()
    try:
        return pickle.dumps((level, work, job))
    except Exception as error:  # pickle raises what it likes
        what = (
            f"{name} cannot be sent to another process: {error}; functions and classes must be"
            " those of a module"
        )
        raise ConfigurationError(f"{what}, or use one process") from error


@dataclass
class _Worker:
    """A process that does one job, and what it has said so far."""

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    buffer: bytearray = field(default_factory=bytearray)
    outcome: tuple[str, Any] | None = None

    def receive(self) -> tuple[bool, list[Any]]:
        """Read what there is; return whether more may come, and what was told meanwhile."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), _CHUNK)
        self.buffer += data
        told: list[Any] = []
        while (message := self._next()) is not None:
            kind, value = message
            if kind == "told":
                told.append(value)
            elif kind == "log":
                logging.getLogger(value.name).handle(value)
            else:
                self.outcome = message
        return bool(data), told

    def _next(self) -> tuple[str, Any] | None:
        if len(self.buffer) < LENGTH_BYTES:
            return None
        end = LENGTH_BYTES + int.from_bytes(self.buffer[:LENGTH_BYTES], "little")
        if len(self.buffer) < end:
            return None
        message: tuple[str, Any] = pickle.loads(bytes(self.buffer[LENGTH_BYTES:end]))
        del self.buffer[:end]
        return message

    def ask(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def end(self, *, is_asked: bool = False) -> None:
        """Ask it to end, unless it has just been asked: a second request would reach it while it cleans up."""
        if not is_asked:
            self.ask()
        asked = time.monotonic()
        while self.process.poll() is None:
            try:
                self.process.wait(_ASK_SECONDS)
            except subprocess.TimeoutExpired:
                is_patient = time.monotonic() - asked < _PATIENCE
                self.process.send_signal(signal.SIGTERM if is_patient else signal.SIGKILL)
        if self.process.stdout is not None:
            self.process.stdout.close()


class _Race(Generic[Job, Result]):
    def __init__(
        self,
        work: Callable[[Job, Tell], Result],
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
        # jobs from here on are not needed, since one before them has decided
        self.bound = len(jobs)

    def run(self, processes: int) -> tuple[Result, ...]:
        begun = 0
        results: list[Result] = []
        while True:
            while len(results) in self.ended:  # the next in order has ended
                results.append(self._result(self.ended[len(results)]))
                if len(results) == len(self.jobs) or self.decides(results[-1]):
                    return tuple(results)
            while begun < self.bound and len(self.running) < processes:
                self._begin(begun)
                begun += 1
            for key, _ in self.selector.select():
                if key.data.number in self.running:  # another may have ended it in this very turn
                    self._receive(key.data)

    def _begin(self, number: int) -> None:
        job, log = self.folder / f"job-{number}", self.folder / f"log-{number}"
        job.write_bytes(_packed(self.work, self.jobs[number], self.name(number)))
        paths = [str(Path(path or ".").resolve()) for path in sys.path]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(self.folder),
        }
        with interrupts_kept(), job.open("rb") as given, log.open("wb") as errors:
            try:
                process = subprocess.Popen(
                    tied([sys.executable, "-P", "-c", _MAIN]),
                    env=environment,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    process_group=0,
                )
            except OSError as error:
                raise WorkerError(
                    f"no process could be started for {self.name(number)}: {error}", output=""
                ) from error
            worker = self.running[number] = _Worker(number, process, log)
            self.selector.register(process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]  # it is a pipe

    def _receive(self, worker: _Worker) -> None:
        is_open, told = worker.receive()
        for message in told:
            self.on_message(worker.number, message)
        if is_open and worker.outcome is None:
            return
        self.selector.unregister(worker.process.stdout)  # type: ignore[arg-type]  # it is a pipe
        if worker.outcome is not None:
            worker.process.wait()
        worker.end()
        self.ended[worker.number] = self.running.pop(worker.number)
        kind, value = worker.outcome or ("broken", None)
        if kind != "result" or self.decides(cast(Result, value)):
            self._drop_after(worker.number)

    def _drop_after(self, number: int) -> None:
        """End the jobs after one that decides, or would raise."""
        self.bound = min(self.bound, number + 1)
        for other in [other for other in self.running if other > number]:
            worker = self.running[other]
            self.selector.unregister(worker.process.stdout)  # type: ignore[arg-type]  # it is a pipe
            worker.end()
            del self.running[other]

    def _result(self, worker: _Worker) -> Result:
        if worker.outcome is not None:
            kind, value = worker.outcome
            if kind == "result":
                return cast(Result, value)
            error, trace = value
            error.add_note(f"in a process of its own:\n{trace}")
            raise error
        written = worker.log.read_text(encoding="utf-8", errors="replace").strip()
        tail = "\n".join(written.splitlines()[-_TAIL_LINES:])
        said = f"; it wrote:\n{tail}" if tail else ""
        code = worker.process.returncode
        ending = f"ended with exit code {code} without a result"
        if code < 0:
            ending = f"was killed by {signal.Signals(-code).name}"
        raise WorkerError(
            f"the process for {self.name(worker.number)} {ending}{said}", output=written
        )

    def end_all(self) -> None:
        for worker in self.running.values():
            worker.ask()
        for worker in self.running.values():
            worker.end(is_asked=True)
        self.running.clear()
        self.selector.close()
