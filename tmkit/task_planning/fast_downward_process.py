"""Processes of Fast Downward: chains of searches, and the translator.

A search of a small task takes less than a millisecond, but the start of the program takes ten.
Consecutive searches therefore run in one process (``iterated`` of the program). Each search starts
after the plan of the previous one, and writes its plan if it is cheaper than all previous plans. A
search without a plan ends the chain. No search is bounded by the best cost, because the proof that
no cheaper plan exists takes long.

Guarantees: Fast Downward is located through the import system, and none of its modules is imported.
A process ends with the block that started it. Every plan has passed the plan validation of tmkit.

Starting the translator takes several times longer than translating a small task. A server
(:mod:`tmkit.task_planning.translator_server`) therefore loads it once, with the first task, and
forks for each task. It translates one task at a time. If another thread uses the server, or it
cannot be started, the translator runs as a separate program.

Guarantees: both ways give the same translation; the server ends with the thread that started it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import logging
import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tmkit._support.signals import defer_interrupts, temporary_folder
from tmkit._support.subprocesses import (
    GRACE_SECONDS,
    Program,
    ProgramResult,
    tie_to_parent,
    wait_for_any,
)
from tmkit.errors import MissingExtraError, TaskPlannerError, TmkitError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.validation import validate_task_plan
from tmkit.task_planning.encoding import Encoding
from tmkit.task_planning.protocol import TaskPlanResult, TaskPlanStatistics, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask

_INCOMPLETE_CODE = 12
"""Exit code of a search that ended without a plan or proof."""

LIMIT_CODES = frozenset({None, _INCOMPLETE_CODE, 20, 21, 22, 23, 24, -9, -24})
"""Exit codes of programs that ran out of time or memory, or ended without a plan or proof."""

_UNSOLVABLE_CODES = frozenset({10, 11})
"""Exit codes of a search that proved unsolvability."""

_SOLVED_CODES = frozenset({0, 1, 2, 3})
"""Exit codes of a search with a plan."""

_PHASE_TEXT = "Starting search: "
"""Output at the start of each search of a chain."""

_PLAN_TEXT = "Plan length: "
"""Output of a search with a plan."""

_TIME_LIMIT_TEXT = "Time limit reached"
"""Output of a search that reached its time limit."""


@dataclass(frozen=True)
class Phase:
    """Result of one search of a chain.

    Attributes:
        expanded: number of expanded states.
        evaluated: number of evaluated states.
        plan: the plan, if it is cheaper than all previous ones.
    """

    expanded: int
    evaluated: int
    plan: tuple[GroundAction, ...] | None


@dataclass(frozen=True)
class Outcome:
    """Result of a chain of searches.

    Attributes:
        task: the task.
        process_result: exit code, output and duration of the process.
        phases: results of the searches that started.
    """

    task: TranslatedTask
    process_result: ProgramResult
    phases: tuple[Phase, ...]

    @property
    def is_unsolvable(self) -> bool:
        """Unsolvability is proved; the exit code is the same for a chain without time."""
        return (
            self.process_result.code in _UNSOLVABLE_CODES
            and _TIME_LIMIT_TEXT not in self.process_result.output
        )

    @property
    def has_given_up(self) -> bool:
        """The first search ended without a plan or proof."""
        return (
            self.process_result.code in {_INCOMPLETE_CODE, *_UNSOLVABLE_CODES}
            and not self.is_unsolvable
        )

    @property
    def has_ended(self) -> bool:
        """The process ended before any limit."""
        return self.process_result.code in _SOLVED_CODES or self.has_given_up

    @property
    def statistics(self) -> TaskPlanStatistics:
        """Statistics summed over all phases."""
        return TaskPlanStatistics(
            expanded=sum(phase.expanded for phase in self.phases),
            evaluated=sum(phase.evaluated for phase in self.phases),
            operators=len(self.task.operators),
            facts=self.task.fact_count,
            search_seconds=self.process_result.seconds,
            search="fast_downward",
        )

    def first_result(self) -> TaskPlanResult:
        """Return the result of the first search."""
        if self.phases and self.phases[0].plan is not None:
            return self._make_result(self.phases[0].plan)
        if self.is_unsolvable:
            return TaskPlanResult(TaskPlanStatus.UNSOLVABLE, message="there is no plan")
        return TaskPlanResult(
            TaskPlanStatus.LIMIT, message="no plan was found within the time and memory given"
        )

    def results(self, work: float, *, skipped: int = 0) -> Iterator[TaskPlanResult]:
        """Yield the plans found within a work limit.

        Args:
            work: largest number of expanded states times operators.
            skipped: number of searches to skip at the start of the chain.
        """
        for phase in self.phases[skipped:]:
            if phase.plan is not None and self._is_within_work(phase, work):
                yield self._make_result(phase.plan)

    def is_conclusive(self, work: float) -> bool:
        """Return whether the first search proved unsolvability, or found a plan within ``work``."""
        first_phases = self.phases[:1]
        return self.is_unsolvable or any(
            phase.plan is not None and self._is_within_work(phase, work) for phase in first_phases
        )

    def _is_within_work(self, phase: Phase, work: float) -> bool:
        return phase.expanded * len(self.task.operators) <= work

    def _make_result(self, steps: tuple[GroundAction, ...]) -> TaskPlanResult:
        """Return the result for a plan.

        Raises:
            TaskPlannerError: if the plan is invalid, which is an error of tmkit or Fast Downward.
        """
        validation = validate_task_plan(self.task.problem, steps)
        if not validation.is_valid:
            raise self.process_result.error(
                f"Fast Downward's plan is not valid: {validation.message}"
            )
        return TaskPlanResult(TaskPlanStatus.SOLVED, steps, validation.cost, "a plan was found")


class RunningSearch:
    """A chain of searches in a running process."""

    def __init__(self, searches: Searches, program: Program, folder: Path) -> None:
        self._searches, self._program, self._folder = searches, program, folder

    def ends_within(self, seconds: float) -> bool:
        """Wait for some time [s], at most until the deadline; return whether the process ended."""
        return (
            wait_for_any([self._program], seconds=min(seconds, self._searches.seconds_left))
            is not None
        )

    @property
    def has_plan(self) -> bool:
        """A search has found a plan."""
        return _PLAN_TEXT in self._program.output()

    def ends_after(self, other: RunningSearch) -> bool:
        """Wait until one of two processes ends; return whether it is the other one."""
        programs = [self._program, other._program]
        return wait_for_any(programs, seconds=self._searches.seconds_left) is other._program

    def outcome(self) -> Outcome:
        """Wait until the process ends or the deadline passes, and return the outcome."""
        process_result = self._program.wait(seconds=self._searches.seconds_left)
        if process_result.code not in _SOLVED_CODES | _UNSOLVABLE_CODES | LIMIT_CODES:
            raise process_result.error(
                f"Fast Downward's search ended with exit code {process_result.code}"
            )
        phases = tuple(self._phases(process_result))
        if process_result.code == 0 and all(phase.plan is None for phase in phases):
            raise process_result.error("Fast Downward found a plan and could not write it")
        return Outcome(self._searches.task, process_result, phases)

    def _phases(self, process_result: ProgramResult) -> Iterator[Phase]:
        plans = iter(sorted(self._folder.glob("plan*"), key=lambda path: int(path.suffix[1:] or 0)))
        parts = process_result.output.split(_PHASE_TEXT)[1:]
        # A single search prints no phases. If it was killed, its plan may be incomplete.
        if not parts:
            plan = self._plan(list(plans)[-1:]) if process_result.code in _SOLVED_CODES else None
            yield Phase(
                _read_count(process_result.output, "Expanded"),
                _read_count(process_result.output, "Evaluated"),
                plan,
            )
            return
        for part in parts:
            is_solved = _PLAN_TEXT in part
            plan = (
                self._plan([path for path in (next(plans, None),) if path is not None])
                if is_solved
                else None
            )
            yield Phase(_read_count(part, "Expanded"), _read_count(part, "Evaluated"), plan)

    def _plan(self, paths: Sequence[Path]) -> tuple[GroundAction, ...] | None:
        if not paths:
            return None
        text = paths[0].read_text(encoding="utf-8")
        if not re.search(r"^; cost = .*\n\Z", text, re.MULTILINE):
            raise TaskPlannerError("the plan of Fast Downward is cut off", command=(), output=text)
        lines = text.splitlines()
        return tuple(
            self._searches.task.action_of(line.strip("()"))
            for line in lines
            if line.startswith("(")
        )


class Searches:
    """Searches of one task, in an empty folder, with a common deadline of the monotonic clock."""

    def __init__(self, task: TranslatedTask, folder: Path, deadline: float) -> None:
        self.task, self.deadline = task, deadline
        self._folder = folder
        self._count = 0
        self._input = folder / "task.sas"
        self._input.write_text(task.to_text(), encoding="utf-8")

    @property
    def seconds_left(self) -> float:
        """Time until the deadline [s]."""
        return max(0.0, self.deadline - time.monotonic())

    def run(self, chain: Sequence[str]) -> Outcome:
        """Run a chain of searches until it ends or the deadline passes."""
        with self.start(chain) as running:
            return running.outcome()

    @contextmanager
    def start(
        self, chain: Sequence[str], *, memory_limit: int | None = None, stop_at: str = ""
    ) -> Iterator[RunningSearch]:
        """Start a chain of searches, which is stopped at the end of the block.

        Args:
            chain: searches, in this order.
            memory_limit: memory limit [bytes].
            stop_at: text in the output at which the process is stopped.
        """
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        search = (
            chain[0]
            if len(chain) == 1
            else f"iterated([{', '.join(chain)}], pass_bound=false, repeat_last=false)"
        )
        with Program(
            [str(search_program()), "--search", search, "--internal-plan-file", "plan"],
            folder=folder,
            environment=environment(),
            time_limit=self.seconds_left,
            standard_input=self._input,
            memory_limit=memory_limit,
            stop_at=stop_at,
        ) as program:
            yield RunningSearch(self, program, folder)


def _read_count(text: str, label: str) -> int:
    """Return the first number that a search printed after ``label``."""
    match = re.search(rf"{label} (\d+) state", text)
    return int(match[1]) if match else 0


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables of the programs, without those that change results."""
    variables = {
        name: os.environ[name]
        for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
        if name in os.environ
    }
    return {**variables, "LC_ALL": "C", **(extra or {})}


def _package_folder(name: str) -> Path:
    """Return the folder of a package without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        message = (
            f"Fast Downward is not installed: there is no package '{name}'; pip install"
            " up-fast-downward"
        )
        raise MissingExtraError(message, extra="up-fast-downward", module=name)
    return Path(next(iter(spec.submodule_search_locations)))


def translator_folder() -> Path:
    """Return the folder from which ``fast_downward.translate`` can be run."""
    return _package_folder("fast_downward").parent


@cache
def search_program() -> Path:
    """Return the search program.

    Raises:
        TaskPlannerError: if the program is missing or not executable.
        MissingExtraError: if Fast Downward is not installed.
    """
    program = (
        _package_folder("up_fast_downward") / "downward" / "builds" / "release" / "bin" / "downward"
    )
    if not os.access(program, os.X_OK):
        raise TaskPlannerError(f"there is no program {program}", command=(str(program),), output="")
    return program


_logger = logging.getLogger(__name__)

_ARGUMENTS = (
    "--keep-unimportant-variables",
    "--sas-file",
    "output.sas",
    "domain.pddl",
    "problem.pddl",
)
"""Command line arguments of the translator."""

_TRANSLATOR_MEMORY = 4 << 30
"""Memory limit of the translator [bytes]; a quantifier over a dozen variables needs more."""

_SERVER = Path(__file__).with_name("translator_server.py")
"""Program of the translator server."""


def translate_text(encoding: Encoding, time_limit: float) -> str | None:
    """Return the translator's output, or None if the time limit [s] or memory did not suffice."""
    with temporary_folder("translate") as folder:
        (folder / "domain.pddl").write_text(encoding.domain_text, encoding="utf-8")
        (folder / "problem.pddl").write_text(encoding.problem_text, encoding="utf-8")
        process_result = _server.translate(folder, time_limit) or _run_translator(
            folder, time_limit
        )
        if process_result.code in LIMIT_CODES:
            return None
        if process_result.code != 0:
            raise process_result.error(
                f"Fast Downward's translator ended with exit code {process_result.code}"
            )
        return (folder / "output.sas").read_text(encoding="utf-8")


def start_server() -> None:
    """Start the server, which loads the translator in the background."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, TmkitError), _server.lock:
            _server.ensure_process()


def _environment() -> dict[str, str]:
    return environment(
        {"PYTHONPATH": str(translator_folder()), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    )


def _run_translator(folder: Path, time_limit: float) -> ProgramResult:
    command = [sys.executable, "-S", "-m", "fast_downward.translate", *_ARGUMENTS]
    with Program(
        command,
        folder=folder,
        environment=_environment(),
        time_limit=time_limit,
        memory_limit=_TRANSLATOR_MEMORY,
    ) as program:
        return program.wait(seconds=time_limit)


class _Server:
    """Translator server of this process, started on first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def translate(self, folder: Path, time_limit: float) -> ProgramResult | None:
        """Translate the files in a folder; return None if the server is busy or unavailable."""
        if sys.platform != "linux" or not self.lock.acquire(blocking=False):
            return None
        try:
            return self._translate(folder, time_limit)
        except OSError as error:
            _logger.debug("the translator's server is lost: %s", error)
            self.close()
            return None
        except BaseException:  # the result is discarded
            self.close()
            raise
        finally:
            self.lock.release()

    def _translate(self, folder: Path, time_limit: float) -> ProgramResult | None:
        start_time = time.monotonic()
        process = self.ensure_process()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = math.ceil(min(max(0.0, time_limit), 1e6)) + GRACE_SECONDS
        task = {"folder": str(folder), "seconds": seconds, "memory": _TRANSLATOR_MEMORY}
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        wait = select.poll()
        wait.register(process.stdout, select.POLLIN)
        if not wait.poll(1000.0 * min(max(0.0, time_limit), 1e6)):
            self.close()
            code = None
        else:
            reply = process.stdout.readline()
            if not reply:
                raise ConnectionError("the server ended")
            code = int(reply)
        log = folder / "output.log"
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return ProgramResult(
            ("fast_downward.translate", *_ARGUMENTS), code, output, time.monotonic() - start_time
        )

    def ensure_process(self) -> subprocess.Popen[bytes]:
        # After a fork, the server belongs to the parent process.
        if self._process is not None and self._owner != os.getpid():
            self._process = None
        if self._process is None or self._process.poll() is not None:
            self.close()
            with defer_interrupts():
                self._process = subprocess.Popen(
                    tie_to_parent([sys.executable, "-S", "-P", str(_SERVER), *_ARGUMENTS]),
                    env=_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
                self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """End the server and its running translation."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # they are pipes


_server = _Server()
atexit.register(_server.close)
