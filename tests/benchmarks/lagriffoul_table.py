"""Problems of Lagriffoul et al. and random siblings of them, planned and validated; one table.

Run by hand: ``python tests/benchmarks/lagriffoul_table.py FILE.xml... [--siblings 1 3 5] [--seeds
1] [--seconds 60] [--workers 2] [--out FILE]``. The files are those of the repositories
wbthomason-robotics/planet (``clutter``) and caelan/pybullet-planning
(``problems/tmp-benchmark-data``). A file ``NAME_N.xml`` goes with the goal ``NAME_pbN.pddl`` beside
it. Siblings of problem 3 have sticks at random places: even numbers to tune, odd ones to report.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison.lagriffoul_problems import random_sorting
from benchmarks.comparison.lagriffoul_stacking import read_problem
from benchmarks.tables import deliver, markdown_table, table_parser

import tmkit as tk
from tmkit.errors import TmkitError

_REASON_LENGTH = 240
"""Most characters of a reason in the table."""


@dataclass(frozen=True)
class Row:
    """Results of one problem with several seeds.

    Attributes:
        name: file or sibling.
        solved: number of seeds with a valid plan.
        runs: number of seeds.
        actions: number of actions of the plans.
        seconds: processor time of each run [s].
        reason: why there is no plan.
    """

    name: str
    solved: int
    runs: int
    actions: tuple[int, ...]
    seconds: tuple[float, ...]
    reason: str = ""

    def cells(self) -> list[object]:
        """Return the cells of the table."""
        actions = f"{statistics.median(self.actions):g}" if self.actions else ""
        seconds = f"{statistics.median(self.seconds):.3g} s" if self.seconds else ""
        return [self.name, f"{self.solved} of {self.runs}", actions, seconds, self.reason]


def run_problem(name: str, seeds: int, seconds: float) -> Row:
    """Plan a problem with several seeds.

    Args:
        name: path of an XML file, or ``sibling NUMBER STICKS``.
        seeds: number of seeds.
        seconds: time limit of the clock for a plan [s].
    """
    label = name if name.startswith("sibling") else Path(name).name
    try:
        problem = _problem(name)
    except TmkitError as error:
        return Row(label, 0, seeds, (), (), _short(str(error)))
    actions: list[int] = []
    spent: list[float] = []
    reason = ""
    for seed in range(seeds):
        start = os.times()
        try:
            result = tk.solve(problem, tk.PlanningOptions(seed=seed, time_limit=seconds))
        except TmkitError as error:
            reason = _short(str(error))
            continue
        end = os.times()
        spent.append(sum(end[:4]) - sum(start[:4]))
        if result.plan is None:
            failures = result.statistics.failures
            commonest = "".join(f"; {a} {c}, {n} times" for a, c, n in failures[:1])
            reason = _short(f"{result.status.value}{commonest}")
        elif not (report := tk.validate_plan(result.plan, domain=problem.domain)).is_valid:
            reason = _short(f"invalid: {report.problems[0]}")
        else:
            actions.append(len(result.plan.steps))
    return Row(label, len(actions), seeds, tuple(actions), tuple(spent), reason)


def _problem(name: str) -> tk.PlanningProblem:
    if name.startswith("sibling"):
        number, count = map(int, name.split()[1:])
        return random_sorting(number, count)
    file = Path(name)
    numbered = re.fullmatch(r"(.*)_(\d+)", file.stem)
    goal = None if numbered is None else file.with_name(f"{numbered[1]}_pb{numbered[2]}.pddl")
    return read_problem(file, goal)


def _short(text: str) -> str:
    text = re.sub(r"\S*/(?=[^/\s]+\.(xml|pddl))", "", " ".join(text.split())).replace("|", "\\|")
    return text if len(text) <= _REASON_LENGTH else f"{text[: _REASON_LENGTH - 3]}..."


def _page(rows: Iterable[Row], head: list[str]) -> str:
    titles = ["problem", "solved and valid", "actions", "processor time", "why not"]
    return "\n".join([*head, "", *markdown_table(titles, (row.cells() for row in rows))]) + "\n"


def main() -> None:
    """Print the table."""
    parser = table_parser(__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--siblings", nargs="*", type=int, default=[])
    parser.add_argument("--sticks", nargs="*", type=int, default=[6, 10, 14])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    names = list(options.files)
    names += [f"sibling {k} {count}" for count in options.sticks for k in options.siblings]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context, max_tasks_per_child=1) as pool:
        jobs = [pool.submit(run_problem, name, options.seeds, options.seconds) for name in names]
        rows = []
        for job in jobs:
            rows.append(job.result())
            print(rows[-1], file=sys.stderr, flush=True)
    command = " ".join(re.sub(r".*/", "", word) for word in sys.argv).partition(" --out")[0]
    head = [
        "# Problems of Lagriffoul et al.",
        "",
        "The robot is the Panda on a base in place of the PR2. Times are medians of processor"
        f" seconds; a plan has {options.seconds:g} s of the clock. `sibling K N` has N sticks at"
        " random places on two tables.",
        "",
        f"`python tests/benchmarks/{command}`, {date.today():%d %B %Y}; tmkit"
        f" {version('tmkit-robotics')}",
    ]
    deliver(_page(rows, head), options.out)


if __name__ == "__main__":
    main()
