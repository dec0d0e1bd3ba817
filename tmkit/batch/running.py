"""Execution of a batch with dask.distributed, on this machine or on the workers of a scheduler.

Problems are submitted in groups, two for each worker. A worker returns its rows after one second,
and at least one row. The rows enter the journal before the next group is submitted. After an
interruption, a batch therefore repeats only the attempts of the last second. Problems of a lost
worker, machine or scheduler are submitted again. Only an attempt whose process or worker was killed
counts as a try.

Invariants: each problem has one row at the end. Apart from times, the rows depend on the batch
only.
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
from tmkit.batch.attempts import KILLED, AttemptServer, Row, failure_row
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem, Job
from tmkit.batch.results import STORE, Journal, arrow, write_results
from tmkit.errors import ConfigurationError, OutputError, WorkerError
from tmkit.tamp import PlanStatus

if TYPE_CHECKING:
    from tmkit.store import Store

_log = logging.getLogger(__name__)

_GROUPS_PER_WORKER = 2
"""Number of submitted groups of problems for each worker."""

_MAX_GROUP_SIZE = 32
"""Largest number of problems in a group."""

_GROUP_SECONDS = 1.0
"""Time after which a worker returns its rows [s]."""

_RETRY_SECONDS = 2.0
"""Time between attempts to reach a scheduler, or to write to a full disk [s]."""

_SCENE_STATUSES = {*(status.value for status in PlanStatus), "no plan"}
"""Statuses of problems that certainly have a scene."""

_thread_data = threading.local()
"""Server process of each thread of a worker."""

_servers: list[AttemptServer] = []
"""Server processes of all threads of this process."""

_is_ending = threading.Event()
"""Set while the local worker ends, which then starts no attempt."""


@dataclass(frozen=True)
class BatchProgress(Progress):
    """Progress of a batch, counted in problems.

    Attributes:
        solved: number of problems with a plan.
        rate: finished problems per time since the start of the call [1/s].
    """

    solved: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        remaining = (self.steps - self.step) / self.rate if self.rate else 0.0
        return (
            f"{self.phase}: {self.step} of {self.steps} ({self.solved} solved), {self.rate:.1f}/s,"
            f" {remaining:.0f} s left"
        )


@dataclass(frozen=True)
class BatchSummary(Displayed):
    """Summary of a run of a batch.

    Attributes:
        problems: number of problems.
        resumed: number of problems that had a row before this run.
        statuses: number of problems by status: the values of :class:`tmkit.tamp.PlanStatus`,
            ``error``, ``timed out``, ``out of memory`` and ``killed``.
        tries: number of attempts in this run, including killed ones.
        digest: digest of the table without :data:`tmkit.batch.results.TIMING_COLUMNS`.
        seconds: duration of this run [s].
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
        batch: problems.
        folder: folder of the results, which :func:`tmkit.batch.open_results` reads. An interrupted
            run continues with the rows in it.
        scheduler: address of a dask scheduler, as ``tcp://host:8786``, whose workers have tmkit
            installed. By default, problems are solved in processes on this machine.
        workers: number of problems that are solved at the same time on this machine. Defaults to
            the number of cores. Ignored with a scheduler.
        patience: time to wait for an unreachable scheduler or a full disk [s].
        on_progress: called after each problem.

    Raises:
        ConfigurationError: if ``workers`` is not positive, or a problem cannot be pickled.
        OutputError: if the folder cannot be written, or the disk stays full.
        WorkerError: if the scheduler is unreachable; existing results are kept.
        MissingExtraError: if the extra ``learning`` is missing.
    """
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers must be at least 1, not {workers}")
    _require_dask()
    from tmkit.store import Store

    start_time = time.monotonic()
    with Journal(Path(folder)) as journal, Store(Path(folder) / STORE) as store:
        run = _BatchRun(batch, journal, patience, on_progress, start_time)
        failure_time, finished_before = start_time, -1
        while run.has_unfinished:
            try:
                with _open_client(scheduler, workers or os.cpu_count() or 1, patience) as client:
                    run.solve(client)
            except OutputError:  # an OSError, which does not concern the scheduler
                raise
            except _connection_errors() as error:
                # The patience starts again if a problem has been solved since the last failure.
                if len(run.finished) > finished_before:
                    failure_time, finished_before = time.monotonic(), len(run.finished)
                if scheduler is None or time.monotonic() - failure_time > patience:
                    raise WorkerError(
                        f"the scheduler {scheduler or ''} is lost: {error}", output=""
                    ) from error
                run.report_progress("waiting for the scheduler")
                time.sleep(_RETRY_SECONDS)
        run.report_progress("writing the results")
        card = write_results(Path(folder), batch, journal, _SceneVersions(store).version)
    seconds = time.monotonic() - start_time
    return BatchSummary(
        len(batch), run.resumed, card["statuses"], run.tries, card["digest"], seconds
    )


class _SceneVersions:
    """Versions of the scenes at the start in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._fixed_versions: dict[int, str] = {}

    def version(self, job: Job, row: Row) -> str | None:
        """Store the scene of a problem and return its version; None if the scene may not exist."""
        source = job.entry.source
        if id(source) in self._fixed_versions:
            return self._fixed_versions[id(source)]
        if not isinstance(source, FixedProblem) and row["status"] not in _SCENE_STATUSES:
            return None
        version = self._store.put(
            source.problem(job.seed)[0].scene, "problems", message=job.entry.label
        )
        if isinstance(source, FixedProblem):
            self._fixed_versions[id(source)] = version
        return version


class _BatchRun:
    """State of one call of :func:`run_batch`.

    Attributes:
        batch: problems.
        journal: rows of finished problems.
        patience: time to wait for a full disk [s].
        on_progress: called after each problem.
        start_time: start of the call [s].
        finished: keys of finished problems.
        resumed: number of problems that were finished before the call.
        tries: number of attempts.
        solved: number of problems solved in this call.
    """

    def __init__(
        self,
        batch: Batch,
        journal: Journal,
        patience: float,
        on_progress: Callable[[BatchProgress], None] | None,
        start_time: float,
    ) -> None:
        self.batch, self.journal = batch, journal
        self.patience, self.on_progress, self.start_time = patience, on_progress, start_time
        checks = f"{batch.options.check}{batch.options.simulate}"
        self._digests = {id(entry): entry.source.digest + checks for entry in batch.entries}
        self._pickles: dict[int, bytes] = {}
        self.finished = journal.keys(
            {job.key: self._digests[id(job.entry)] for job in batch.jobs()}
        )
        self.resumed = len(self.finished)
        self._queue = deque(job for job in batch.jobs() if job.key not in self.finished)
        self._submitted: dict[Any, list[Job]] = {}  # jobs by future
        # Problems of a group whose worker was killed. The cause is unknown, so each runs alone.
        self._single_keys: set[str] = set()
        self._group_count = 0
        self._sources: dict[int, Any] = {}  # futures of the pickled sources
        self._token, self._max_groups = secrets.token_hex(8), 1
        self._kills: Counter[str] = Counter()
        self.tries = self.solved = 0

    @property
    def has_unfinished(self) -> bool:
        """True while problems have no row."""
        return bool(self._queue or self._submitted)

    def solve(self, client: Any) -> None:
        """Submit problems and collect rows until all problems have a row.

        Args:
            client: client of a dask scheduler.

        Raises:
            OSError: if the scheduler is lost.
        """
        import distributed

        unfinished = itertools.chain(self._queue, *self._submitted.values())
        self._queue = deque(sorted(unfinished, key=lambda job: job.number))
        self._submitted.clear()
        self._sources.clear()
        self._max_groups = _GROUPS_PER_WORKER * max(1, sum(client.nthreads().values()))
        futures: Any = distributed.as_completed(loop=client.loop, raise_errors=False)  # type: ignore[no-untyped-call]
        self._submit_groups(client, futures)
        for future in futures:
            self._collect_rows(self._submitted.pop(future), future)
            self._submit_groups(client, futures)

    def _submit_groups(self, client: Any, futures: Any) -> None:
        """Submit groups of problems up to the largest number.

        Args:
            client: client of a dask scheduler.
            futures: iterator over finished futures, to which the new futures are added.
        """
        while self._queue and len(self._submitted) < self._max_groups:
            jobs = self._pop_group()
            entry, digest = jobs[0].entry, self._digests[id(jobs[0].entry)]
            if id(entry) not in self._sources:
                self._sources[id(entry)] = client.submit(
                    _identity, self._pickle_source(entry), key=f"problem-{digest}"
                )
            future = client.submit(
                _run_attempts,
                digest,
                self._sources[id(entry)],
                [job.seed for job in jobs],
                self.batch.options,
                pure=False,
                retries=0,
                key=f"attempt-{self._token}-{jobs[0].number}-{self._group_count}",
            )
            self._group_count += 1
            self._submitted[future] = jobs
            futures.add(future)

    def _pop_group(self) -> list[Job]:
        """Remove a group of problems of one entry from the queue and return it.

        Groups are smaller towards the end of the batch, which balances the load of the workers.
        """
        jobs = [self._queue.popleft()]
        size = min(_MAX_GROUP_SIZE, len(self._queue) // (2 * self._max_groups))
        if jobs[0].key in self._single_keys:
            size = 1
        while (
            len(jobs) < size
            and self._queue[0].entry is jobs[0].entry
            and self._queue[0].key not in self._single_keys
        ):
            jobs.append(self._queue.popleft())
        return jobs

    def _pickle_source(self, entry: BatchEntry) -> bytes:
        """Return the pickled source of an entry.

        Raises:
            ConfigurationError: if the source cannot be pickled.
        """
        if id(entry) not in self._pickles:
            try:
                self._pickles[id(entry)] = pickle.dumps(entry.source)
            except Exception as error:  # pickle raises errors of any class
                raise ConfigurationError(
                    f"'{entry.label}' cannot be sent to another process: {error}; functions and"
                    " classes must be those of a module"
                ) from error
        return self._pickles[id(entry)]

    def _collect_rows(self, jobs: list[Job], future: Any) -> None:
        """Add the rows of a group to the journal, and put problems without a row into the queue.

        Raises:
            ConnectionError: if the scheduler has lost the group.
        """
        if future.status == "finished":
            rows: list[Row] = future.result()
        elif future.status == "error":
            error = future.exception()
            is_kill = type(error).__name__ == "KilledWorker"
            rows = [failure_row(KILLED if is_kill else "error", f"{type(error).__name__}: {error}")]
            if len(jobs) > 1:
                rows = []
                self._single_keys.update(job.key for job in jobs)
        else:
            self._queue.extendleft(reversed(jobs))
            raise ConnectionError("the scheduler has lost the problems")
        self.tries += len(rows)
        retries = jobs[len(rows) :]
        results: list[tuple[Job, Row]] = []
        for job, row in zip(jobs, rows, strict=False):
            if row["status"] == KILLED:
                self._kills[job.key] += 1
                if self._kills[job.key] < self.batch.options.tries:
                    _log.warning("%s: %s; it is tried again", job.key, row["explanation"])
                    retries.insert(0, job)
                    continue
            row["tries"] = self._kills[job.key] + (row["status"] != KILLED)
            results.append((job, row))
        self._queue.extendleft(reversed(retries))
        self._add_to_journal(results)
        for job, row in results:
            self.finished.add(job.key)
            self.solved += row["status"] == "solved"
            self.report_progress("planning")

    def _add_to_journal(self, results: list[tuple[Job, Row]]) -> None:
        """Add rows to the journal, and retry for the time of ``patience``.

        Raises:
            OutputError: if the disk stays full.
        """
        first_try = time.monotonic()
        while True:
            try:
                self.journal.add(
                    (job.key, self._digests[id(job.entry)], row) for job, row in results
                )
            except sqlite3.OperationalError as error:
                if time.monotonic() - first_try > self.patience:
                    reason = (
                        f"{error}; existing results are kept, and a new run continues with them"
                    )
                    raise OutputError(
                        f"{self.journal.folder}: {reason}", path=None, reason=reason
                    ) from error
                self.report_progress(f"waiting: {error}")
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def report_progress(self, phase: str) -> None:
        """Pass the progress to the callback of the caller, if any."""
        if self.on_progress is not None:
            seconds = time.monotonic() - self.start_time
            count = len(self.finished)
            rate = (count - self.resumed) / max(seconds, 1e-9)
            self.on_progress(
                BatchProgress(phase, count, len(self.batch), seconds, self.solved, rate)
            )


# Dask
# ------------------------------------------------------------------------------------------------


def _require_dask() -> None:
    arrow()
    require("distributed", "learning", "batches need")


def _connection_errors() -> tuple[type[BaseException], ...]:
    """Return the classes of errors that a lost scheduler causes."""
    from concurrent.futures import CancelledError

    return (OSError, CancelledError)


@contextlib.contextmanager
def _open_client(scheduler: str | None, workers: int, patience: float) -> Iterator[Any]:
    """Return a client of a scheduler, by default a new one on this machine.

    Args:
        scheduler: address, or None.
        workers: number of threads of the worker on this machine.
        patience: time to wait for a scheduler and its first worker [s].
    """
    import dask
    import distributed

    Client: Any = distributed.Client
    LocalCluster: Any = distributed.LocalCluster
    # Failures reach the user as exceptions.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Without a web page, a second batch on this machine finds no port in use.
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
        with contextlib.ExitStack() as stack:
            stack.callback(_is_ending.clear)
            folder = stack.enter_context(temporary_folder("batch"))  # dask leaves lock files in it
            stack.enter_context(dask.config.set({"temporary-directory": str(folder)}))
            cluster = LocalCluster(
                n_workers=1,
                threads_per_worker=workers,
                processes=False,
                dashboard_address=None,
                memory_limit=0,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.ERROR,
            )
            client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
            # The servers end first, since threads of the worker may wait for them.
            stack.callback(_end_servers)
            yield client


def _identity(packed: bytes) -> bytes:
    return packed


def _end_servers() -> None:
    """End the server processes of the threads of this process, which start no further ones."""
    _is_ending.set()
    while _servers:
        _servers.pop().close()


def _run_attempts(digest: str, packed: bytes, seeds: list[int], options: BatchOptions) -> list[Row]:
    """Plan problems in the server process of this thread; return the rows of the first seeds.

    No attempt starts later than :data:`_GROUP_SECONDS` after the first.

    Args:
        digest: digest of the source.
        packed: pickled source.
        seeds: seeds of the problems.
        options: limits and checks of each attempt.
    """
    start_time = time.monotonic()
    rows: list[Row] = []
    for seed in seeds:
        if _is_ending.is_set():
            return [*rows, failure_row(KILLED, "the worker ends")]
        if rows and time.monotonic() > start_time + _GROUP_SECONDS:
            break
        server = getattr(_thread_data, "server", None)
        if server is None:
            server = _thread_data.server = AttemptServer()
            _servers.append(server)
        rows.append(server.run(digest, packed, seed, options))
    return rows
