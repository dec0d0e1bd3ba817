"""The arena: planners on suites of problems, in one table.

A suite is a batch file; some are in the folder ``suites``. A planner is a function or an object
that can be called with a problem and options, and returns a :class:`tmkit.tamp.PlanResult`, a plan
or None; its plans are checked and simulated as ours are.

Invariants: planners get equal problems with equal seeds, limits and machines; a plan that is not
    valid counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from benchmarks.comparison.pddlstream import ALGORITHMS, PddlStream

from tmkit._support.data import is_bare
from tmkit._support.named_code import import_named_module
from tmkit._support.output import write_text
from tmkit._support.results import Displayed
from tmkit.batch.batch_files import load_batch
from tmkit.batch.problems import Batch, BatchEntry, ProblemSource
from tmkit.batch.results import open_results
from tmkit.batch.running import BatchProgress, run_batch
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.formats import ReadingOptions
from tmkit.plans import Plan
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.result import PlanResult

Answer: TypeAlias = PlanResult | Plan | None
OWN = "tmkit"
"""The name of this planner."""

SUITES = Path(__file__).parent / "suites"
ROOT = Path(__file__).resolve().parents[3]
"""The folder of the project, whose domains and scenes the suites name."""
"""The folder of the suites that have names."""

SOURCES = (
    "benchmarks.comparison.lagriffoul_problems:stick_source",
    "benchmarks.comparison.motion_problems:motion_source",
    "benchmarks.comparison.tamp_problems:carrying_source",
)
"""The problem sources that batch files may name here."""


class Planner(Protocol):
    """Planner of the arena, such as a function of a module."""

    def __call__(self, problem: PlanningProblem, options: PlanningOptions) -> Answer:
        """Return a plan, a result, or None; the options contain the seed and the limits."""


@dataclass(frozen=True, eq=False)
class _Contestant:
    """Problems of a source, for a planner that is looked up by name in the planning process."""

    source: ProblemSource
    planner: str

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        return self.source.problem(seed)

    def plan(self, problem: PlanningProblem, options: PlanningOptions) -> Answer:
        return find_planner(self.planner)(problem, options)

    @property
    def digest(self) -> str:
        return f"{self.source.digest}{self.planner}"


def find_planner(name: str) -> Planner:
    """Return the planner of a name ``MODULE:NAME`` or ``FILE.py:NAME``, whose code is run.

    ``pddlstream:FOLDER`` is PDDLStream from a checkout, ``pddlstream-focused:FOLDER`` with another
    algorithm, ``pddlstream-stock:FOLDER`` and ``pddlstream-stock-focused:FOLDER`` with few streams.

    Raises:
        ConfigurationError: if there is none.
    """
    if stream := re.fullmatch(r"pddlstream(-stock)?(?:-(\w+))?:(.+)", name):
        declaration = "stock" if stream[1] else "fair"
        return PddlStream(stream[3], stream[2] or ALGORITHMS[0], declaration)
    try:
        module, attribute = import_named_module(name)
        planner: Any = getattr(module, attribute)
    except (ConfigurationError, AttributeError) as error:
        raise ConfigurationError(f"there is no planner '{name}': {error}") from error
    if not callable(planner):
        raise ConfigurationError(
            f"the planner '{name}' cannot be called with a problem and options"
        )
    return planner  # type: ignore[no-any-return]  # it can be called


@dataclass(frozen=True)
class ArenaRow(Displayed):
    """Results of one planner on the problems of one entry.

    Attributes:
        suite: the suite.
        problem: the entry.
        planner: the planner.
        runs: how many problems.
        solved: how many plans; with a check, that are valid.
        invalid: how many plans were not valid.
        ends_well: of those simulated, how many end with every object within 1.5 cm; None where none
            was simulated.
        seconds: median processor seconds of the solved ones, of the process that plans; of a
            motion, of its search.
        slow_seconds: 95 % take no longer.
        actions: median length of their plans.
        path_length: median [rad] and [m].
        failure: of the first problem without a plan, how it ended; empty if all have one.
    """

    suite: str
    problem: str
    planner: str
    runs: int
    solved: int
    invalid: int
    ends_well: int | None
    seconds: float | None
    slow_seconds: float | None
    actions: float | None
    path_length: float | None
    failure: str


def suite_names() -> list[str]:
    """Return the names of the suites of this folder, in their order."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def load_suite(name: str | Path) -> Batch:
    """Return the problems of a suite.

    Args:
        name: one of :func:`suite_names`, or a batch file, which may name :data:`SOURCES`.

    Raises:
        UnknownNameError: if there is no suite of the name; the message has the nearest.
        MissingFileError: if there is no such file.
        FileFormatError: if the file is wrong.
    """
    if isinstance(name, str) and is_bare(name):
        if name not in suite_names():
            raise UnknownNameError.of("suite", name, suite_names())
        name = SUITES / f"{name}.toml"
    reading = ReadingOptions(allow_folders=(ROOT / "domains", ROOT / "scenes"))
    return load_batch(name, reading=reading, allow_sources=SOURCES)


def run_arena(
    suites: Mapping[str, Batch],
    folder: str | Path,
    *,
    planners: Sequence[str] = (OWN,),
    seeds: int | None = None,
    simulate: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> list[ArenaRow]:
    """Run planners on suites and write the table ``arena.md``, with one folder for each planner.

    Args:
        suites: the suites by name.
        folder: where the results are; a run that was stopped goes on there.
        planners: ``tmkit``, ``pddlstream:FOLDER``, or ``MODULE:NAME`` or ``FILE.py:NAME`` of
            others.
        seeds: problems of each entry, those with the first seeds; all by default.
        simulate: execute the plans in the simulator.
        scheduler: as for :func:`tmkit.batch.run_batch`.
        workers: as there.
        on_progress: as there.

    Raises:
        ConfigurationError: if a planner is unknown.
        OutputError: if a folder cannot be written.
    """
    for planner in planners:
        if planner != OWN:
            find_planner(planner)
    rows: list[ArenaRow] = []
    for suite, batch in suites.items():
        for planner in planners:
            entries = tuple(
                replace(entry, source=_plan_by(entry.source, planner), seeds=entry.seeds[:seeds])
                for entry in batch.entries
            )
            wanted = Batch(entries, replace(batch.options, check=True, simulate=simulate))
            results = Path(folder) / f"{suite}-{re.sub(r'[^A-Za-z0-9_.]+', '.', planner)}"
            run_batch(
                wanted, results, scheduler=scheduler, workers=workers, on_progress=on_progress
            )
            rows += _rows(suite, planner, entries, results)
    write_text(Path(folder) / "arena.md", arena_table(rows))
    return rows


def _plan_by(source: ProblemSource, planner: str) -> ProblemSource:
    if hasattr(source, "with_planner"):
        return source.with_planner(planner)  # type: ignore[no-any-return]
    return source if planner == OWN else _Contestant(source, planner)


def _rows(
    suite: str, planner: str, entries: Sequence[BatchEntry], folder: Path
) -> Iterator[ArenaRow]:
    names = (
        "status",
        "explanation",
        "is_valid",
        "ends_well",
        "cpu_seconds",
        "actions",
        "path_length",
    )
    runs = open_results(folder).table(*names).to_pylist()
    start = 0
    for entry in entries:
        mine, start = runs[start : start + len(entry.seeds)], start + len(entry.seeds)
        good = [run for run in mine if run["is_valid"]]
        failed = next((run for run in mine if run["is_valid"] is None), None)
        played = [run["ends_well"] for run in mine if run["ends_well"] is not None]
        yield ArenaRow(
            suite,
            entry.label,
            planner,
            len(mine),
            len(good),
            sum(run["is_valid"] is False for run in mine),
            sum(played) if played else None,
            _quantile([run["cpu_seconds"] for run in good], 0.5),
            _quantile([run["cpu_seconds"] for run in good], 0.95),
            _quantile([len(run["actions"]) for run in good if run["actions"]], 0.5),
            _quantile([run["path_length"] for run in good], 0.5),
            (
                ""
                if failed is None
                else ": ".join(filter(None, (failed["status"], failed["explanation"])))
            ),
        )


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


def arena_table(rows: Sequence[ArenaRow]) -> str:
    """Return rows as a table in Markdown."""
    lines = [
        (
            "| suite | problem | planner | solved, valid | invalid | simulated well | median s | 95"
            " % s | actions | path |"
        ),
        "|" + "---|" * 10,
    ]
    for row in rows:
        cells = [
            row.suite,
            row.problem,
            row.planner,
            f"{row.solved} of {row.runs}",
            str(row.invalid or ""),
            "" if row.ends_well is None else f"{row.ends_well} of {row.solved + row.invalid}",
            *(
                "" if value is None else f"{value:.3g}"
                for value in (row.seconds, row.slow_seconds, row.actions, row.path_length)
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
