"""Fuzzing: readers of damaged files must return a value or raise an error that names the file.

Inputs are made one by one by a :class:`~mutations.Mutator`, written to a separate folder and read
by a worker, a forked process with bounded memory. A forbidden end of the worker is a *finding*:

========== ===============================================================================
crash      it dies: a segmentation fault, an abort, an exit
hang       it needs longer than the time-out
memory     it needs more memory than it has
exception  it raises anything but a :class:`~tmkit.errors.TmkitError`; a warning is an exception
nameless   it raises a TmkitError whose message names neither the input nor a file beside it
outside    it opens a connection, or a file outside Python, tmkit and the input's folders
========== ===============================================================================

Findings that agree in kind and in the place in the code are one; the first is made small and
written to a folder with a report. Inputs that end as none before (another error, names and numbers
omitted), or that reach lines of tmkit for the first time, join the pool, so that the search goes on
from them.

A harness is a script that calls :func:`main` with its :class:`Target` values. Runs of the same seed
and number of inputs make the same inputs, unless a time-out falls differently.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from mutations import Mutator

import tmkit
from tmkit.errors import TmkitError

__all__ = ["Outcome", "Target", "main"]

# then it is replaced, so that its leaks are not attributed to one input
_INPUTS_A_WORKER = 2000
_LONGEST_TRACED = 16384  # bytes
_MINIMISING_RUNS = 400
_MINIMISING_SECONDS = 30.0
_PATHS_OF_ITS_OWN = (
    "/proc/self",
    "/dev/null",
    "/dev/urandom",
    "/sys/",
    "/etc/localtime",
    "/proc/meminfo",
)


@dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes:
        name: of the target, for reports.
        file: name of the file that the input is written to.
        read: function that reads the file; its result is ignored.
        pool: whole inputs to begin with.
        tokens: words of the format.
        nestings: openings and ends of structures that can contain themselves.
        companions: contents of further files beside the input, by name.
        outside: contents of files two folders above, which must not be opened, by name.
        weight: share of the inputs when there are several targets.
    """

    name: str
    file: str
    read: Callable[[Path], object]
    pool: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    nestings: Sequence[tuple[bytes, bytes]] = ()
    companions: Mapping[str, bytes] = field(default_factory=dict)
    outside: Mapping[str, bytes] = field(default_factory=dict)
    weight: int = 1


@dataclass(frozen=True)
class Outcome:
    """End of the reading of one input.

    Attributes:
        kind: ``value``, ``error`` (a TmkitError, as it should be) or a kind of finding.
        signature: equal for outcomes that are the same for our purposes.
        report: readable description of the end.
        lines: lines of tmkit that ran and that this worker has not reported before.
    """

    kind: str
    signature: str
    report: str
    lines: frozenset[tuple[str, int]] = frozenset()

    @property
    def is_finding(self) -> bool:
        """Return whether the end is forbidden."""
        return self.kind not in ("value", "error")


@dataclass(frozen=True)
class Limits:
    """Limits of a worker: memory beyond that of Python and tmkit [bytes], and time [s]."""

    memory: int
    seconds: float


class Worker:
    """A process that reads inputs of one target, replaced when it dies."""

    def __init__(self, target: Target, limits: Limits) -> None:
        self._target = target
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="tmkit-fuzz-")
        self._inputs = Path(self._folder.name) / "project" / "inputs"
        self._inputs.mkdir(parents=True)
        for name, content in target.companions.items():
            (self._inputs / name).write_bytes(content)
        for name, content in target.outside.items():
            (Path(self._folder.name) / name).write_bytes(content)
        self._process: Any = None
        self._connection: Connection | None = None
        self._served = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, data: bytes) -> Outcome:
        """Return how reading an input ends."""
        folder = self._inputs
        (folder / self._target.file).write_bytes(data)
        if self._connection is None or self._served >= _INPUTS_A_WORKER:
            self._start(folder)
        assert self._connection is not None
        self._served += 1
        try:
            self._connection.send(True)
            if not self._connection.poll(self._limits.seconds):
                self._stop()
                return Outcome("hang", "hang", f"no answer within {self._limits.seconds:g} s")
            outcome: Outcome = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            printed = (folder.parent / "printed").read_bytes()[-2000:].decode(errors="replace")
            self._stop()
            return Outcome("crash", f"crash {code}", f"the process ended with {code}\n{printed}")
        if outcome.kind == "memory":
            self._stop()  # the remains may be inconsistent
        return outcome

    def _start(self, folder: Path) -> None:
        self._stop()
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._target, folder, self._limits), daemon=True
        )
        self._process.start()
        theirs.close()
        self._served = 0

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
        self._connection = None


def _serve(connection: Connection, target: Target, folder: Path, limits: Limits) -> None:
    """Read the input as often as the connection requests."""
    gc.freeze()  # a collection would copy the memory shared with the parent
    printed = os.open(folder.parent / "printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + limits.memory,) * 2)
    warnings.simplefilter("error")
    opened: list[str] = []
    allowed = _allowed_folders(folder)
    sys.addaudithook(lambda event, arguments: _audit(event, arguments, allowed, opened))
    lines = _Lines()
    while True:
        try:
            connection.recv()
        except EOFError:
            return
        opened.clear()
        path = folder / target.file
        # tracing takes its time, which must not make a hang
        if path.stat().st_size < _LONGEST_TRACED:
            sys.settrace(lines.trace)
        outcome = _outcome(target, path, opened)
        sys.settrace(None)
        connection.send(replace(outcome, lines=lines.new()))


class _Lines:
    """Recorder of the lines of tmkit that run."""

    def __init__(self) -> None:
        self._folder = f"{Path(tmkit.__file__).parent}{os.sep}"
        self._told: set[tuple[str, int]] = set()
        self._seen: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002 - what settrace calls
        """Follow frames of tmkit; for :func:`sys.settrace`."""
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002
        if event == "line":
            self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def new(self) -> frozenset[tuple[str, int]]:
        """Return the lines that ran and have not been returned before."""
        new = frozenset(self._seen - self._told)
        self._told |= new
        self._seen.clear()
        return new


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _allowed_folders(folder: Path) -> tuple[str, ...]:
    """Return the readable folders: the input's, Python's, tmkit's with its data."""
    places = [
        folder.parent,
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(tmkit.__file__).parents[1],
        Path(__file__).parent,
    ]
    places += [Path(entry) for entry in sys.path if entry]
    return (
        *(f"{place.resolve()}{os.sep}" for place in places),
        *(f"{place}{os.sep}" for place in places),
    )


def _audit(
    event: str, arguments: tuple[Any, ...], allowed: tuple[str, ...], opened: list[str]
) -> None:
    """Record a file opened outside of these folders, or a connection."""
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if not path.startswith(allowed) and not path.startswith(_PATHS_OF_ITS_OWN):
            opened.append(f"open {path}")
    elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
        opened.append(f"{event} {arguments[1:]}")


def _outcome(target: Target, path: Path, opened: list[str]) -> Outcome:
    try:
        target.read(path)
        outcome = Outcome("value", "value", "")
    except TmkitError as error:
        if _wants_memory(error):  # the message is good, but the request too large
            return Outcome("memory", f"memory {_place(error)}", _trace(error))
        message = str(error)
        kind = type(error).__name__
        if any(name in message for name in (target.file, *target.companions)):
            outcome = Outcome("error", f"{kind} {_plain(message)}", message)
        else:
            outcome = Outcome(
                "nameless",
                f"nameless {kind} {_plain(message)}",
                f"{kind}: {message}\n{_trace(error)}",
            )
    except MemoryError as error:
        outcome = Outcome("memory", f"memory {_place(error)}", _trace(error))
    except BaseException as error:
        kind = type(error).__name__
        outcome = Outcome("exception", f"exception {kind} {_place(error)}", _trace(error))
    if opened and not outcome.is_finding:
        return Outcome("outside", "outside", "\n".join(opened))
    return outcome


def _wants_memory(error: BaseException | None) -> bool:
    """Return whether an error was caused by lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _plain(message: str) -> str:
    """Return the first line of a message without the parts that vary between inputs."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|-?\d[\d.e+-]*", "_", message.split("\n")[0])[:160]


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-12))[-6000:]


def _place(error: BaseException) -> str:
    """Return the last place within tmkit that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "tmkit" in Path(frame.filename).parts]
    last = (own or frames)[-1]
    return f"{Path(last.filename).name}:{last.name}:{last.lineno}"


def minimise(
    data: bytes, worker: Worker, signature: str, *, seconds: float = _MINIMISING_SECONDS
) -> bytes:
    """Return a smaller input with the same outcome: lines, then bytes are removed in turn."""
    until = time.monotonic() + seconds
    runs = 0

    def same(candidate: bytes) -> bool:
        nonlocal runs
        runs += 1
        return worker.run(candidate).signature == signature

    for separator in (b"\n", b""):
        parts = data.split(separator) if separator else [data[i : i + 1] for i in range(len(data))]
        size = max(1, len(parts) // 2)
        while True:
            begin = 0
            while begin < len(parts):
                if runs > _MINIMISING_RUNS or time.monotonic() > until:
                    return separator.join(parts)
                rest = parts[:begin] + parts[begin + size :]
                if len(rest) < len(parts) and same(separator.join(rest)):
                    parts = rest
                else:
                    begin += size
            if size == 1:
                break
            size //= 2
        data = separator.join(parts)
    return data


@dataclass
class Report:
    """Counts of a run, and its findings by signature."""

    inputs: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Path] = field(default_factory=dict)
    outcomes: set[str] = field(default_factory=set)
    code: set[tuple[str, int]] = field(default_factory=set)

    def lines(self) -> list[str]:
        """Return the report for a person."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        inputs = ", ".join(f"{count} {name}" for name, count in sorted(self.inputs.items()))
        lines = [f"{self.inputs.total()} inputs ({inputs}): {kinds}"]
        lines += [
            f"{len(self.outcomes)} different outcomes, {len(self.code)} lines of tmkit reached"
        ]
        lines += [f"  {signature}: {path}" for signature, path in self.findings.items()]
        return [*lines, f"{len(self.findings)} findings"]


def fuzz(
    targets: Sequence[Target],
    *,
    seed: int,
    seconds: float,
    inputs: int,
    limits: Limits,
    folder: Path,
) -> Report:
    """Give damaged inputs to the targets in turn, up to a time or a number of inputs."""
    report = Report()
    until = time.monotonic() + seconds
    mutators = {
        target.name: Mutator(seed, pool=target.pool, tokens=target.tokens, nestings=target.nestings)
        for target in targets
    }
    workers = {target.name: Worker(target, limits) for target in targets}
    turns = [target for target in targets for _ in range(target.weight)]
    try:
        for target in targets:
            for data in target.pool:
                outcome = workers[target.name].run(data)
                if outcome.kind != "value":
                    raise SystemExit(f"{target.name}: a whole input is refused: {outcome.report}")
                _try(target, data, workers[target.name], mutators[target.name], report, folder)
        number = 0
        while time.monotonic() < until and number < inputs:
            target = turns[number % len(turns)]
            _try(
                target,
                mutators[target.name].next(),
                workers[target.name],
                mutators[target.name],
                report,
                folder,
            )
            number += 1
    finally:
        for worker in workers.values():
            worker.__exit__()
    return report


def _try(
    target: Target, data: bytes, worker: Worker, mutator: Mutator, report: Report, folder: Path
) -> None:
    """Run one input and record its end."""
    outcome = worker.run(data)
    report.inputs[target.name] += 1
    report.kinds[outcome.kind] += 1
    key = f"{target.name}: {outcome.signature}"
    is_new = key not in report.outcomes
    if (is_new or outcome.lines - report.code) and not outcome.is_finding and len(data) < 65536:
        mutator.keep(data, whole=outcome.kind == "value")
    report.outcomes.add(key)
    report.code |= outcome.lines
    if not (is_new and outcome.is_finding):
        return
    small = minimise(data, worker, outcome.signature)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{target.name}-{outcome.kind}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
    path = folder / f"{stem}{Path(target.file).suffix}"
    path.write_bytes(small)
    path.with_suffix(".txt").write_text(f"{key}\n{worker.run(small).report}\n", encoding="utf-8")
    report.findings[key] = path
    _say(f"found {key}: {path}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(targets: Sequence[Target], *, description: str) -> None:
    """Run a harness with its command line; exit with 1 if there are findings.

    Args:
        targets: readers to fuzz, in turn.
        description: one line on the harness.
    """
    os.environ["TMKIT_CACHE"] = "off"  # the cache is outside these folders
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60.0, help="stop after so many")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument(
        "--timeout", type=float, default=10.0, help="seconds for one input; longer is a hang"
    )
    parser.add_argument(
        "--memory", type=int, default=1024, help="megabytes for one input on top of the program"
    )
    parser.add_argument("--only", help="name of the one target to fuzz")
    parser.add_argument(
        "--findings", type=Path, default=Path("fuzz-findings"), help="folder for what is found"
    )
    parser.add_argument(
        "--replay", type=Path, nargs="+", help="read these files only and say how each ends"
    )
    options = parser.parse_args()
    chosen = [target for target in targets if options.only in (None, target.name)]
    if not chosen:
        parser.error(f"--only: expected one of {', '.join(target.name for target in targets)}")
    limits = Limits(options.memory << 20, options.timeout)
    if options.replay:
        sys.exit(_replay(chosen, options.replay, limits))
    report = fuzz(
        chosen,
        seed=options.seed,
        seconds=options.seconds,
        inputs=options.inputs,
        limits=limits,
        folder=options.findings,
    )
    for line in report.lines():
        _say(line)
    sys.exit(1 if report.findings else 0)


def _replay(targets: Sequence[Target], paths: Sequence[Path], limits: Limits) -> int:
    """Read files with the targets of their suffix; return 1 if any is a finding."""
    count = 0
    for target in targets:
        with Worker(target, limits) as worker:
            for path in paths:
                if path.suffix == Path(target.file).suffix:
                    outcome = worker.run(path.read_bytes())
                    count |= outcome.is_finding
                    _say(f"{path} ({target.name}): {outcome.kind}: {outcome.report}")
    return int(count)
