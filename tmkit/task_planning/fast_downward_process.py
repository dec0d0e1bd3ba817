"""Running Fast Downward's search: several searches in one process, and what came of each.

A small task is searched in less than a millisecond, but starting the program takes ten. So searches
that follow one another are given to one process (by the program's ``iterated``). Each begins when
the one before has found a plan, and writes its plan if it is cheaper than all before; a search that
finds nothing ends the chain. None is told to find a cheaper plan only: where there is none, that
would be a long search.

Invariants: nothing is imported of Fast Downward, which is found through the import system. A
process lives no longer than the block that it was started in. Every plan has been executed by our
own semantics before anybody gets it.

Running Fast Downward's translator: by a server that has it loaded, or as a program of its own.
Starting the translator takes several times longer than translating a small task. So a server
(:mod:`tmkit.task_planning.translator_server`) is started with the first task, and forks for each.
One task is translated at a time; while the server is busy with that of another thread, or where it
cannot be had, the translator is started anew.

Invariants: the translation is the same either way; the server ends with the thread that started it.
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

_GAVE_UP = 12
LIMIT_CODES = frozenset({None, _GAVE_UP, 20, 21, 22, 23, 24, -9, -24})
"""Exit codes of programs that ran out of time or memory, or gave up."""

_UNSOLVABLE_CODES = frozenset({10, 11})
_SOLVED_CODES = frozenset({0, 1, 2, 3})
_PHASE, _SOLVED = "Starting search: ", "Plan length: "
_TIME_IS_UP = "Time limit reached"


@dataclass(frozen=True)
class Phase:
    """One search of a chain: states expanded and evaluated, and its plan, when it is cheaper than those before."""

    expanded: int
    evaluated: int
    plan: tuple[GroundAction, ...] | None


@dataclass(frozen=True)
class Outcome:
    """What came of a chain of searches; ``phases`` as far as they came."""

    task: TranslatedTask
    finished: ProgramResult
    phases: tuple[Phase, ...]

    @property
    def is_unsolvable(self) -> bool:
        """Whether it is proved that there is no plan: the program says so too where a search of a chain has no time."""
        return self.finished.code in _UNSOLVABLE_CODES and _TIME_IS_UP not in self.finished.output

    @property
    def has_given_up(self) -> bool:
        """Whether the first search came to its end without a plan or proof."""
        return self.finished.code in {_GAVE_UP, *_UNSOLVABLE_CODES} and not self.is_unsolvable

    @property
    def has_ended(self) -> bool:
        """Whether the process came to its end by itself."""
        return self.finished.code in _SOLVED_CODES or self.has_given_up

    @property
    def statistics(self) -> TaskPlanStatistics:
        """What all phases did together."""
        return TaskPlanStatistics(
            expanded=sum(phase.expanded for phase in self.phases),
            evaluated=sum(phase.evaluated for phase in self.phases),
            operators=len(self.task.operators),
            facts=self.task.fact_count,
            search_seconds=self.finished.seconds,
            search="fast_downward",
        )

    def first_result(self) -> TaskPlanResult:
        """Return the answer of the first search."""
        if self.phases and self.phases[0].plan is not None:
            return self._solved(self.phases[0].plan)
        if self.is_unsolvable:
            return TaskPlanResult(TaskPlanStatus.UNSOLVABLE, message="there is no plan")
        return TaskPlanResult(
            TaskPlanStatus.LIMIT, message="no plan was found within the time and memory given"
        )

    def results(self, work: float, *, skipped: int = 0) -> Iterator[TaskPlanResult]:
        """Yield the plans of searches, but the first few, that expanded at most ``work`` states times operators."""
        for phase in self.phases[skipped:]:
            if phase.plan is not None and self._counts(phase, work):
                yield self._solved(phase.plan)

    def is_settled(self, work: float) -> bool:
        """Whether the first search proved that there is no plan, or found one with so much work at most."""
        found = self.phases[:1]
        return self.is_unsolvable or any(
            phase.plan is not None and self._counts(phase, work) for phase in found
        )

    def _counts(self, phase: Phase, work: float) -> bool:
        return phase.expanded * len(self.task.operators) <= work

    def _solved(self, steps: tuple[GroundAction, ...]) -> TaskPlanResult:
        """Return a plan after executing it; a plan that fails then would be an error of a program, ours or theirs."""
        validation = validate_task_plan(self.task.problem, steps)
        if not validation.is_valid:
            raise self.finished.error(f"Fast Downward's plan is not valid: {validation.message}")
        return TaskPlanResult(TaskPlanStatus.SOLVED, steps, validation.cost, "a plan was found")


class RunningSearch:
    """A chain of searches, each a command line, that runs."""

    def __init__(self, searches: Searches, program: Program, folder: Path) -> None:
        self._searches, self._program, self._folder = searches, program, folder

    def ends_within(self, seconds: float) -> bool:
        """Wait so long, at most until the deadline; tell whether it has ended by then."""
        return (
            wait_for_any([self._program], seconds=min(seconds, self._searches.seconds_left))
            is not None
        )

    @property
    def has_plan(self) -> bool:
        """Whether one of the searches has found a plan by now."""
        return _SOLVED in self._program.output()

    def ends_after(self, other: RunningSearch) -> bool:
        """Wait for one of two; tell whether the other one has ended and this has not."""
        programs = [self._program, other._program]
        return wait_for_any(programs, seconds=self._searches.seconds_left) is other._program

    def outcome(self) -> Outcome:
        """Wait until it ends or the deadline is there, and tell what came of it."""
        finished = self._program.wait(seconds=self._searches.seconds_left)
        if finished.code not in _SOLVED_CODES | _UNSOLVABLE_CODES | LIMIT_CODES:
            raise finished.error(f"Fast Downward's search ended with exit code {finished.code}")
        phases = tuple(self._phases(finished))
        if finished.code == 0 and all(phase.plan is None for phase in phases):
            raise finished.error("Fast Downward found a plan and could not write it")
        return Outcome(self._searches.task, finished, phases)

    def _phases(self, finished: ProgramResult) -> Iterator[Phase]:
        plans = iter(sorted(self._folder.glob("plan*"), key=lambda path: int(path.suffix[1:] or 0)))
        parts = finished.output.split(_PHASE)[1:]
        # a search of its own; when it was killed, a plan may be cut off, or what it did not be
        # written
        if not parts:
            plan = self._plan(list(plans)[-1:]) if finished.code in _SOLVED_CODES else None
            yield Phase(
                _counted(finished.output, "Expanded"), _counted(finished.output, "Evaluated"), plan
            )
            return
        for part in parts:
            is_solved = _SOLVED in part
            plan = (
                self._plan([path for path in (next(plans, None),) if path is not None])
                if is_solved
                else None
            )
            yield Phase(_counted(part, "Expanded"), _counted(part, "Evaluated"), plan)

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
    """Searches of one task, in an empty folder, until one deadline of the monotonic clock."""

    def __init__(self, task: TranslatedTask, folder: Path, deadline: float) -> None:
        self.task, self.deadline = task, deadline
        self._folder = folder
        self._count = 0
        self._input = folder / "task.sas"
        self._input.write_text(task.to_text(), encoding="utf-8")

    @property
    def seconds_left(self) -> float:
        """How long it is until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def run(self, chain: Sequence[str]) -> Outcome:
        """Run a chain of searches until it ends or the deadline is there."""
        with self.started(chain) as running:
            return running.outcome()

    @contextmanager
    def started(
        self, chain: Sequence[str], *, memory_limit: int | None = None, stop_at: str = ""
    ) -> Iterator[RunningSearch]:
        """Start a chain of searches, of so many bytes at most, which is stopped when the block is left or by a text."""
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


def _counted(text: str, what: str) -> int:
    """Return the first number that a search printed after ``what``."""
    found = re.search(rf"{what} (\d+) state", text)
    return int(found[1]) if found else 0


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of the programs, without variables that could change what they do."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
        if name in os.environ
    }
    return {**kept, "LC_ALL": "C", **(extra or {})}


def _package_folder(name: str) -> Path:
    """Return where a package lies, without importing it."""
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
        TaskPlannerError: it cannot be run.
        MissingExtraError: it is not installed.
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
_MEMORY = 4 << 30  # bytes: a quantifier over a dozen variables takes all there is, and in seconds
_SERVER = Path(__file__).with_name("translator_server.py")


def translated(encoding: Encoding, time_limit: float) -> str | None:
    """Return what the translator makes of a problem, ``None`` when the time (seconds) or memory was not enough."""
    with temporary_folder("translate") as folder:
        (folder / "domain.pddl").write_text(encoding.domain_text, encoding="utf-8")
        (folder / "problem.pddl").write_text(encoding.problem_text, encoding="utf-8")
        finished = _server.translate(folder, time_limit) or _by_program(folder, time_limit)
        if finished.code in LIMIT_CODES:
            return None
        if finished.code != 0:
            raise finished.error(f"Fast Downward's translator ended with exit code {finished.code}")
        return (folder / "output.sas").read_text(encoding="utf-8")


def start_server() -> None:
    """Start the server, which then loads the translator while the caller does something else."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, TmkitError), _server.lock:
            _server.started()


def _environment() -> dict[str, str]:
    return environment(
        {"PYTHONPATH": str(translator_folder()), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    )


def _by_program(folder: Path, time_limit: float) -> ProgramResult:
    command = [sys.executable, "-S", "-m", "fast_downward.translate", *_ARGUMENTS]
    with Program(
        command,
        folder=folder,
        environment=_environment(),
        time_limit=time_limit,
        memory_limit=_MEMORY,
    ) as program:
        return program.wait(seconds=time_limit)


class _Server:
    """The server of this process, once there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def translate(self, folder: Path, time_limit: float) -> ProgramResult | None:
        """Translate the files in a folder; None where the server is busy or cannot be had."""
        if sys.platform != "linux" or not self.lock.acquire(blocking=False):
            return None
        try:
            return self._translate(folder, time_limit)
        except OSError as error:
            _logger.debug("the translator's server is lost: %s", error)
            self.close()
            return None
        except BaseException:  # what it does is not wanted any more
            self.close()
            raise
        finally:
            self.lock.release()

    def _translate(self, folder: Path, time_limit: float) -> ProgramResult | None:
        began = time.monotonic()
        process = self.started()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = math.ceil(min(max(0.0, time_limit), 1e6)) + GRACE_SECONDS
        task = {"folder": str(folder), "seconds": seconds, "memory": _MEMORY}
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        wait = select.poll()
        wait.register(process.stdout, select.POLLIN)
        if not wait.poll(1000.0 * min(max(0.0, time_limit), 1e6)):
            self.close()
            code = None
        else:
            answer = process.stdout.readline()
            if not answer:
                raise ConnectionError("it has ended")
            code = int(answer)
        log = folder / "output.log"
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return ProgramResult(
            ("fast_downward.translate", *_ARGUMENTS), code, output, time.monotonic() - began
        )

    def started(self) -> subprocess.Popen[bytes]:
        # the server of the process that forked
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
        """End the server, and what it does."""
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
