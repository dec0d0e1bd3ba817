"""Running a batch over dask.distributed: on this machine, or by a scheduler that has workers elsewhere.

Problems are given out in parts, two for each worker. A worker returns the rows that it has after a
second, at least one; they are in the journal before their place is given to another part. So a
batch that is ended repeats what its workers did in their last second. What is lost with a worker,
with its machine or with the scheduler is given out again; only an attempt whose own process or
worker was killed counts as a try.

Invariants: each problem has one row at the end; what a row says, but for times, depends on the
    batch alone.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import secrets
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmkit._support.extras import require
from tmkit._support.progress import Progress
from tmkit._support.results import Displayed
from tmkit._support.signals import temporary_folder
from tmkit.batch.attempts import KILLED, AttemptServer, Row, failed_row
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem, Job
from tmkit.batch.results import STORE, Journal, arrow, write_results
from tmkit.errors import ConfigurationError, OutputError, WorkerError
from tmkit.tamp import PlanStatus

if TYPE_CHECKING:
    from tmkit.store import Store

_log = logging.getLogger(__name__)
_GIVEN_OUT = 2  # parts a worker
_PART, _PART_SECONDS = 32, 1.0  # problems, and seconds after which a worker returns what it has
_AGAIN_SECONDS = 2.0  # between attempts to reach a scheduler, or to write on a full disk
_PLANNED = {*(status.value for status in PlanStatus), "no plan"}
_here = threading.local()
_servers: list[AttemptServer] = []
_ending = threading.Event()  # while the worker on this machine ends, it takes no problem any more


@dataclass(frozen=True)
class BatchProgress(Progress):
    """Progress of a batch, counted in problems.

    Attributes:
        solved: problems with a plan.
        rate: problems a second since the call began.
    """

    solved: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        left = (self.steps - self.step) / self.rate if self.rate else 0.0
        return (
            f"{self.phase}: {self.step} of {self.steps} ({self.solved} solved), {self.rate:.1f}/s,"
            f" {left:.0f} s left"
        )


@dataclass(frozen=True)
class BatchSummary(Displayed):
    """Summary of a run of a batch.

    Attributes:
        problems: how many there are.
        resumed: how many had a row before.
        statuses: how many ended how: those of :class:`tmkit.tamp.PlanStatus`, and ``error``,
            ``timed out``, ``out of memory`` and ``killed``.
        tries: attempts in this run, killed ones among them.
        digest: of the table without the columns of timing.
        seconds: of this run.
    """

    problems: int
    resumed: int
    statuses: dict[str, int]
    tries: int
    digest: str
    seconds: float = field(compare=False)


def run_batch(
    batch: Batch,
    folder: str | Path,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    patience: float = 60.0,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> BatchSummary:
    """Solve the problems of a batch and write the results.

    Args:
        batch: the problems.
        folder: where the results are; a run that was stopped goes on there. See
            :func:`tmkit.batch.open_results`.
        scheduler: address of a scheduler of dask, as ``tcp://host:8786``, whose workers have tmkit;
            by default threads of this process hand problems to processes on this machine.
        workers: how many problems are solved at a time on this machine; by default as many as it
            has cores. A scheduler decides for itself.
        patience: seconds for which an unreachable scheduler and a full disk are waited for.
        on_progress: told after each problem.

    Raises:
        ConfigurationError: if ``workers`` is not positive, or a problem cannot be pickled.
        OutputError: if the folder cannot be written, or the disk stays full.
        WorkerError: if the scheduler cannot be reached; existing results are kept.
        MissingExtraError: if the extra ``learning`` is missing.
    """
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers must be at least 1, not {workers}")
    _require_dask()
    from tmkit.store import Store

    began = time.monotonic()
    with Journal(Path(folder)) as journal, Store(Path(folder) / STORE) as store:
        run = _Run(batch, journal, patience, on_progress, began)
        failing, done = began, -1
        while run.is_open:
            try:
                with _client(scheduler, workers or os.cpu_count() or 1, patience) as client:
                    run.go(client)
            except OutputError:  # an OSError, too
                raise
            except _lost_errors() as error:
                if len(run.done) > done:  # it worked in between
                    failing, done = time.monotonic(), len(run.done)
                if scheduler is None or time.monotonic() - failing > patience:
                    raise WorkerError(
                        f"the scheduler {scheduler or ''} is lost: {error}", output=""
                    ) from error
                run.tell("waiting for the scheduler")
                time.sleep(_AGAIN_SECONDS)
        run.tell("writing the results")
        card = write_results(Path(folder), batch, journal, _SceneVersions(store))
    seconds = time.monotonic() - began
    return BatchSummary(
        len(batch), run.resumed, card["statuses"], run.tries, card["digest"], seconds
    )


class _SceneVersions:
    """Keeps the scenes at the start as versions, where there was one to plan in."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.known: dict[int, str] = {}

    def __call__(self, job: Job, row: Row) -> str | None:
        source = job.entry.source
        if id(source) in self.known:
            return self.known[id(source)]
        if not isinstance(source, FixedProblem) and row["status"] not in _PLANNED:
            return None  # it may be that no scene could be made
        version = self.store.put(
            source.problem(job.seed)[0].scene, "problems", message=job.entry.label
        )
        if isinstance(source, FixedProblem):
            self.known[id(source)] = version
        return version


class _Run:
    """The state of one call: what is waiting, given out and done."""

    def __init__(
        self,
        batch: Batch,
        journal: Journal,
        patience: float,
        on_progress: Callable[[BatchProgress], None] | None,
        began: float,
    ) -> None:
        self.batch, self.journal, self.patience, self.on_progress, self.began = (
            batch,
            journal,
            patience,
            on_progress,
            began,
        )
        after = f"{batch.options.check}{batch.options.simulate}"
        self.digests = {id(entry): entry.source.digest + after for entry in batch.entries}
        self.packed: dict[int, bytes] = {}
        self.done = journal.keys({job.key: self.digests[id(job.entry)] for job in batch.jobs()})
        self.resumed = len(self.done)
        self.waiting = deque(job for job in batch.jobs() if job.key not in self.done)
        self.given: dict[Any, list[Job]] = {}  # by their futures
        # problems of a part whose worker was killed: which of them it was is unknown
        self.alone: set[str] = set()
        self.parts = 0
        self.payloads: dict[int, Any] = {}
        self.token, self.room = secrets.token_hex(8), 1
        self.kills: Counter[str] = Counter()
        self.tries = self.solved = 0

    @property
    def is_open(self) -> bool:
        """True while problems remain."""
        return bool(self.waiting or self.given)

    def go(self, client: Any) -> None:
        """Give problems out and take rows in until none are left, or the scheduler is lost (OSError)."""
        import distributed

        self.waiting = deque(
            sorted(itertools.chain(self.waiting, *self.given.values()), key=lambda job: job.number)
        )
        self.given.clear()
        self.payloads.clear()
        self.room = _GIVEN_OUT * max(1, sum(client.nthreads().values()))
        ended: Any = distributed.as_completed(loop=client.loop, raise_errors=False)  # type: ignore[no-untyped-call]
        self._give(client, ended)
        for future in ended:
            self._take(self.given.pop(future), future)
            self._give(client, ended)

    def _give(self, client: Any, ended: Any) -> None:
        while self.waiting and len(self.given) < self.room:
            jobs = self._part()
            entry, digest = jobs[0].entry, self.digests[id(jobs[0].entry)]
            if id(entry) not in self.payloads:
                self.payloads[id(entry)] = client.submit(
                    _same, self._pack(entry), key=f"problem-{digest}"
                )
            future = client.submit(
                _attempts,
                digest,
                self.payloads[id(entry)],
                [job.seed for job in jobs],
                self.batch.options,
                pure=False,
                retries=0,
                key=f"attempt-{self.token}-{jobs[0].number}-{self.parts}",
            )
            self.parts += 1
            self.given[future] = jobs
            ended.add(future)

    def _part(self) -> list[Job]:
        """Take problems of one entry off those waiting: fewer towards the end, so that workers end together."""
        jobs = [self.waiting.popleft()]
        most = min(_PART, 1 if jobs[0].key in self.alone else len(self.waiting) // (2 * self.room))
        while (
            len(jobs) < most
            and self.waiting[0].entry is jobs[0].entry
            and self.waiting[0].key not in self.alone
        ):
            jobs.append(self.waiting.popleft())
        return jobs

    def _pack(self, entry: BatchEntry) -> bytes:
        if id(entry) not in self.packed:
            try:
                self.packed[id(entry)] = pickle.dumps(entry.source)
            except Exception as error:  # pickle raises what it likes
                what = f"'{entry.label}' cannot be sent to another process: {error}"
                raise ConfigurationError(
                    f"{what}; functions and classes must be those of a module"
                ) from error
        return self.packed[id(entry)]

    def _take(self, jobs: list[Job], future: Any) -> None:
        """Put the rows of problems into the journal, and those without one back."""
        if future.status == "finished":
            rows: list[Row] = future.result()
        elif future.status == "error":
            error = future.exception()
            is_kill = type(error).__name__ == "KilledWorker"
            rows = [failed_row(KILLED if is_kill else "error", f"{type(error).__name__}: {error}")]
            if len(jobs) > 1:
                rows = []
                self.alone.update(job.key for job in jobs)
        else:
            self.waiting.extendleft(reversed(jobs))
            raise ConnectionError("the scheduler does not know the problems any more")
        self.tries += len(rows)
        again = jobs[len(rows) :]
        ended: list[tuple[Job, Row]] = []
        for job, row in zip(jobs, rows, strict=False):
            if row["status"] == KILLED:
                self.kills[job.key] += 1
                if self.kills[job.key] < self.batch.options.tries:
                    _log.warning("%s: %s; it is tried again", job.key, row["explanation"])
                    again.insert(0, job)
                    continue
            row["tries"] = self.kills[job.key] + (row["status"] != KILLED)
            ended.append((job, row))
        self.waiting.extendleft(reversed(again))
        self._keep(ended)
        for job, row in ended:
            self.done.add(job.key)
            self.solved += row["status"] == "solved"
            self.tell("planning")

    def _keep(self, ended: list[tuple[Job, Row]]) -> None:
        began = time.monotonic()
        while True:
            try:
                self.journal.add((job.key, self.digests[id(job.entry)], row) for job, row in ended)
            except sqlite3.OperationalError as error:
                if time.monotonic() - began > self.patience:
                    reason = f"{error}; what was found is kept, and the batch goes on from there"
                    raise OutputError(
                        f"{self.journal.folder}: {reason}", path=None, reason=reason
                    ) from error
                self.tell(f"waiting: {error}")
                time.sleep(_AGAIN_SECONDS)
            else:
                return

    def tell(self, phase: str) -> None:
        if self.on_progress is not None:
            seconds = time.monotonic() - self.began
            rate = (len(self.done) - self.resumed) / max(seconds, 1e-9)
            self.on_progress(
                BatchProgress(phase, len(self.done), len(self.batch), seconds, self.solved, rate)
            )


# --- dask
# -------------------------------------------------------------------------------------------------------------


def _require_dask() -> None:
    arrow()
    require("distributed", "learning", "batches need")


def _lost_errors() -> tuple[type[BaseException], ...]:
    from concurrent.futures import CancelledError

    return (OSError, CancelledError)


@contextlib.contextmanager
def _client(scheduler: str | None, workers: int, patience: float) -> Iterator[Any]:
    import dask
    import distributed

    Client: Any = distributed.Client
    LocalCluster: Any = distributed.LocalCluster
    # what matters of it reaches the user as an error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # no page of the scheduler's is served, and a second batch does not miss a port
    settings = {
        "distributed.worker.memory.terminate": False,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "10s",
        "distributed.admin.system-monitor.interval": "60s",
    }
    with dask.config.set(settings):
        if scheduler is not None:
            with Client(
                scheduler, timeout=patience, set_as_default=False, name="tmkit-batch"
            ) as client:
                client.wait_for_workers(1, timeout=patience)
                yield client
            return
        with contextlib.ExitStack() as ends:
            ends.callback(_ending.clear)
            folder = ends.enter_context(temporary_folder("batch"))  # dask leaves files of locks
            ends.enter_context(dask.config.set({"temporary-directory": str(folder)}))
            cluster = LocalCluster(
                n_workers=1,
                threads_per_worker=workers,
                processes=False,
                dashboard_address=None,
                memory_limit=0,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.ERROR,
            )
            client = ends.enter_context(Client(ends.enter_context(cluster), set_as_default=False))
            ends.callback(_end_servers)  # first of all, so that no thread waits for one
            yield client


def _same(packed: bytes) -> bytes:
    return packed


def _end_servers() -> None:
    """End the processes that belong to the threads of this process, and start no other."""
    _ending.set()
    while _servers:
        _servers.pop().close()


def _attempts(digest: str, packed: bytes, seeds: list[int], options: BatchOptions) -> list[Row]:
    """Plan in the process that belongs to this thread of a worker, for a moment; return the rows of the first seeds."""
    began = time.monotonic()
    rows: list[Row] = []
    for seed in seeds:
        if _ending.is_set():
            return [*rows, failed_row(KILLED, "the worker ends")]
        if rows and time.monotonic() > began + _PART_SECONDS:
            break
        server = getattr(_here, "server", None)
        if server is None:
            server = _here.server = AttemptServer()
            _servers.append(server)
        rows.append(server.run(digest, packed, seed, options))
    return rows
