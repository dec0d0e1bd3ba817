"""Task planning of PDDL domains by ``tmkit task``, beside LAMA and engines of unified-planning.

Run by hand: ``python tests/benchmarks/ipc_table.py FOLDER... [--sizes 0 0.5] [--seconds 30]
[--planner NAME]... [--examples] [--out FILE]``. A folder holds PDDL files as the repository
aibasel/downward-benchmarks or the tests of unified-planning have them. Of each domain, the problems
at some quantiles of the file size are taken. ``--examples`` adds the example problems of
unified-planning, written as PDDL. Planners take turns on each problem, each in a process of its own
with the same limit of processor time. All plans are validated by tmkit.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pddl_table import Pair, pairs_under
from benchmarks.tables import deliver, markdown_table, table_parser

from tmkit.errors import TmkitError
from tmkit.pddl import GroundAction, load_domain, load_problem, validate_task_plan

LAMA = "lama-first"
"""Name of the first iteration of LAMA by the program of Fast Downward."""

_POLL = 0.05
"""Time between looks at a process [s]."""

_CLOCK_FACTOR = 30.0
"""Time limit of the clock that tmkit is given, in multiples of the limit of processor time."""

_REASON_LENGTH = 160
"""Most characters of a reason in the table."""


@dataclass(frozen=True)
class Task:
    """A problem with the collection and the domain that it is listed under."""

    collection: str
    domain: str
    name: str
    pair: Pair


@dataclass(frozen=True)
class Attempt:
    """The result of one planner on one problem.

    Attributes:
        status: ``solved``, ``unsolvable``, ``limit`` or ``rejected``.
        actions: number of actions of the plan.
        seconds: processor time of the process and its children [s].
        reason: why there is no plan.
    """

    status: str
    actions: int | None
    seconds: float
    reason: str = ""

    @property
    def cell(self) -> str:
        """The result in a table."""
        if self.status == "solved":
            return f"{self.actions} actions, {self.seconds:.3g} s"
        return f"{self.status}, {self.seconds:.3g} s"


def tasks_of(folder: Path, sizes: Iterable[float]) -> Iterator[Task]:
    """Yield the problems of the domains below a folder, at quantiles of the file size."""
    by_domain: dict[str, list[Pair]] = {}
    for pair in pairs_under(folder):
        by_domain.setdefault(str(pair.problem.parent.relative_to(folder)), []).append(pair)
    for domain, pairs in sorted(by_domain.items()):
        is_single = domain == "."
        collection, name = (folder.parent.name, folder.name) if is_single else (folder.name, domain)
        pairs.sort(key=lambda pair: (pair.problem.stat().st_size, str(pair.problem)))
        chosen = {round(size * (len(pairs) - 1)) for size in sizes}
        for pair in (pairs[number] for number in sorted(chosen)):
            yield Task(collection, name, pair.problem.stem, pair)


def example_tasks(folder: Path) -> Iterator[Task | tuple[str, str]]:
    """Yield the examples of unified-planning as PDDL, or the name with the writer's error."""
    from unified_planning.io import PDDLWriter
    from unified_planning.test.examples import get_example_problems

    for name, example in sorted(get_example_problems().items()):
        pair = Pair(folder / f"{name}_domain.pddl", folder / f"{name}_problem.pddl")
        try:
            writer = PDDLWriter(example.problem)
            writer.write_domain(str(pair.domain))
            writer.write_problem(str(pair.problem))
        except Exception as error:  # the writer has no common class of errors
            yield name, f"not PDDL: {error or type(error).__name__}"
            continue
        yield Task("unified-planning examples", name, name, pair)


def run_tmkit(pair: Pair, planner: str, seconds: float) -> Attempt:
    """Run ``tmkit task`` on a problem."""
    command = [sys.executable, "-m", "tmkit.cli", "task", str(pair.domain), str(pair.problem)]
    command += [
        "--planner",
        planner,
        "--time-limit",
        str(_CLOCK_FACTOR * seconds),
        "--json",
        "--quiet",
    ]
    code, out, errors, spent = _run(command, seconds)
    if code is None:
        return Attempt("limit", None, spent)
    try:
        result = json.loads(out)
    except json.JSONDecodeError:
        return Attempt("rejected", None, spent, _error_reason(errors))
    if result["status"] != "solved":
        return Attempt(result["status"], None, spent, result["message"] or "")
    return Attempt("solved", len(result["steps"]), spent)


def run_lama(pair: Pair, seconds: float) -> Attempt:
    """Run the first iteration of LAMA on a problem, and validate its plan."""
    import up_fast_downward

    program = Path(up_fast_downward.__file__).parent / "downward" / "fast-downward.py"
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan"
        command = [sys.executable, str(program), "--alias", LAMA, "--plan-file", str(plan)]
        command += [str(pair.domain.resolve()), str(pair.problem.resolve())]
        code, out, _, spent = _run(command, seconds, folder=folder)
        if not plan.exists():
            if code in (10, 11, 12):  # the program's codes of a proof, and of an empty search space
                status = "limit" if code == 12 else "unsolvable"
                return Attempt(status, None, spent)
            if code is None:
                return Attempt("limit", None, spent)
            return Attempt("rejected", None, spent, _translator_reason(out))
        lines = [line for line in plan.read_text().splitlines() if line.startswith("(")]
    try:
        problem = load_problem(pair.problem, load_domain(pair.domain))
        words = [line.strip("()").split() for line in lines]
        steps = [GroundAction(name, tuple(arguments)) for name, *arguments in words]
        checked = validate_task_plan(problem, steps)
    except TmkitError as error:
        return Attempt("solved", len(lines), spent, f"plan not validated: {error}")
    if not checked.is_valid:
        return Attempt("invalid", len(lines), spent, checked.message or "")
    return Attempt("solved", len(lines), spent)


def _run(
    command: list[str], seconds: float, folder: str | None = None
) -> tuple[int | None, str, str, float]:
    """Run a command within a limit of processor time of its session [s].

    Returns:
        Exit code, None if the limit ended it; output; errors; processor time [s].
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, cwd=folder, start_new_session=True
        )
        code = None
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            if (spent := _session_seconds(process.pid)) > seconds:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            time.sleep(_POLL)
        else:
            code = process.returncode = os.waitstatus_to_exitcode(ended[1])
            spent = ended[2].ru_utime + ended[2].ru_stime
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return code, texts[0], texts[1], spent


def _session_seconds(session: int) -> float:
    """Return the processor time of the processes of a session and their ended children [s]."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _error_reason(events: str) -> str:
    """Return the reason of the error among the events of a command with ``--json``."""
    for line in events.splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event.get("event") == "error":
            return str(event.get("reason") or event["message"])
    return events.strip()


def _translator_reason(text: str) -> str:
    """Return the reason of Fast Downward's translator, or the last line before its end."""
    lines = [line.strip() for line in text.partition("translate exit code")[0].splitlines()]
    lines = [line for line in lines if line]
    reasons = [line.removeprefix("Reason: ") for line in lines if line.startswith("Reason: ")]
    return (reasons or lines or [""])[-1]


def _page(
    rows: list[tuple[Task, dict[str, Attempt]]], not_pddl: list[tuple[str, str]], head: list[str]
) -> str:
    """Return the page: totals by collection, then one row for each problem."""
    planners = list(rows[0][1])
    totals: dict[str, Counter[str]] = {}
    for task, attempts in rows:
        count = totals.setdefault(task.collection, Counter())
        count["problems"] += 1
        count.update(name for name, attempt in attempts.items() if attempt.status == "solved")
        count.update(
            f"{name} proof" for name, attempt in attempts.items() if attempt.status == "unsolvable"
        )
    summary = markdown_table(
        ["collection", "problems", *planners],
        (
            [
                name,
                count["problems"],
                *(
                    f"{count[planner]} and {count[f'{planner} proof']} proofs"
                    for planner in planners
                ),
            ]
            for name, count in totals.items()
        ),
    )
    table = markdown_table(
        ["domain", "problem", *planners, "why not"],
        (
            [
                task.domain,
                task.name,
                *(attempt.cell for attempt in attempts.values()),
                _reasons(attempts),
            ]
            for task, attempts in rows
        ),
    )
    lines = [*head, "", *summary, "", *table]
    if not_pddl:
        lines += ["", "Examples of unified-planning that its writer cannot write as PDDL:", ""]
        lines += markdown_table(["example", "reason"], ([a, _short(b)] for a, b in not_pddl))
    return "\n".join(lines) + "\n"


def _reasons(attempts: dict[str, Attempt]) -> str:
    return "; ".join(
        f"{name}: {_short(attempt.reason)}" for name, attempt in attempts.items() if attempt.reason
    )


def _short(text: str) -> str:
    text = re.sub(r"\S*/(?=[^/\s]+\.pddl)", "", " ".join(text.split())).replace("|", "\\|")
    return text if len(text) <= _REASON_LENGTH else f"{text[: _REASON_LENGTH - 3]}..."


def main() -> None:
    """Print the table."""
    parser = table_parser(__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--sizes", nargs="+", type=float, default=[0.0, 0.5])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--planner", action="append")
    parser.add_argument("--examples", action="store_true")
    options = parser.parse_args()
    planners = options.planner or ["fast-downward", LAMA]
    with tempfile.TemporaryDirectory() as folder:
        tasks = [task for path in options.folders for task in tasks_of(path, options.sizes)]
        not_pddl: list[tuple[str, str]] = []
        for example in example_tasks(Path(folder)) if options.examples else ():
            if isinstance(example, Task):
                tasks.append(example)
            else:
                not_pddl.append(example)
        rows = []
        for task in tasks:
            attempts = {}
            for planner in planners:
                if planner == LAMA:
                    attempts[planner] = run_lama(task.pair, options.seconds)
                else:
                    attempts[planner] = run_tmkit(task.pair, planner, options.seconds)
            rows.append((task, attempts))
            cells = ", ".join(f"{name}: {attempt.cell}" for name, attempt in attempts.items())
            print(f"{task.domain}/{task.name}: {cells} {_reasons(attempts)}", file=sys.stderr)
    words = [Path(word).name if "/" in word else word for word in sys.argv]
    command = f"python tests/benchmarks/{' '.join(words).partition(' --out')[0]}"
    head = [
        "# PDDL domains by `tmkit task`",
        "",
        "Plans are validated by tmkit. Times are processor seconds of a process with its start. A"
        f" planner has {options.seconds:g} processor seconds for a problem.",
        "",
        f"`{command}`, {date.today():%d %B %Y}; tmkit {version('tmkit-robotics')}, up-fast-downward"
        f" {version('up-fast-downward')}, unified-planning {version('unified-planning')}",
    ]
    deliver(_page(rows, not_pddl, head), options.out)


if __name__ == "__main__":
    main()
