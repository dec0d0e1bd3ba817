"""Table of the problems of the built-in domains: planning, validation and simulation.

Run by hand: ``python tests/benchmarks/domains_table.py [--out docs/results/tables/domains.md]
[--quick] [--seeds 0 1 2 3 4] [--play-seeds 0 1 2] [--only DOMAIN/PROBLEM/ROBOT ...]``. Towers of
Hanoi, towers where a ceiling is low, sorting in clutter, objects that come back to where they were,
a drawer, a hand-over and a kitchen; every plan is saved, loaded and validated, and those of the
play seeds are simulated, except the longest. ``--quick`` runs the small problems with the first
seed.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_head, table_parser

import tmkit as tk
from tmkit.simulation import SimulationReport

HEAD = """# Problems of the built-in domains

A row sums up one problem over its seeds, with a time limit of {limit:g} s each. *Valid*: the
validator accepts the plan at finer resolution. *Simulated*: in pybullet, every object ends within
15 mm and 5 degrees of the plan; a row without an entry was not simulated. *Worst error*: the
largest at the end. *In the hand*: the largest displacement of a carried object. Planning times are
medians of the clock over the plans found, on two cores shared with other programs, for comparison
within the table. The problems are those of
[Built-in domains](../../howto/built_in_domains.md).
Written by `python tests/benchmarks/domains_table.py --out docs/results/tables/domains.md`.
"""
"""First lines of the table."""


@dataclass(frozen=True)
class Entry:
    """A problem of the table."""

    domain: str
    problem: str
    scenes: tuple[str, ...]
    robots: tuple[str, ...]
    is_large: bool = False
    is_played: bool = True

    @property
    def name(self) -> str:
        """Name on the command line and in the list of misses."""
        return f"{self.domain}/{self.problem}/{'+'.join(self.robots)}"


@dataclass(frozen=True)
class Outcome:
    """Result of one problem with one seed; ``report`` is None without simulation."""

    entry: Entry
    seed: int
    seconds: float
    actions: int
    task_plans: int
    is_checked: bool
    note: str
    report: SimulationReport | None = None

    def __str__(self) -> str:
        text = (
            f"{self.entry.name}, seed {self.seed}: {self.actions} actions in {self.seconds:.1f} s"
        )
        text += ", checked" if self.is_checked else ", NOT checked"
        if self.report is not None:
            text += (
                f", played {'well' if self.report.is_successful else 'BADLY'}:"
                f" {_errors([self.report])}"
            )
        return f"{text}; {self.note}" if self.note else text


def entries() -> list[Entry]:
    """Return the problems, smallest of a kind first."""
    entry = [
        Entry("hanoi", f"hanoi{n}", (table, f"hanoi{n}"), (robot,), n > 4, n == 3)
        for robot, table in (("panda", "panda_table"), ("iiwa", "iiwa_nozzle"))
        for n in (3, 4, 5, 6)
    ]
    entry += [
        Entry("blocks", f"ceiling{n}", ("panda_ceiling", f"ceiling{n}"), ("panda",), n > 4, n == 3)
        for n in range(3, 11)
    ]
    entry += [
        Entry("sorting", f"sort{n}", (f"{robot}_table", f"sort{n}"), (robot,), n > 8, n == 8)
        for robot, n in (("panda", 8), ("panda", 14), ("panda", 28), ("iiwa", 8), ("iiwa", 14))
    ]
    entry += [
        Entry("rearrangement", "swap", (f"{robot}_table", "rearrange_swap"), (robot,))
        for robot in ("panda", "iiwa")
    ]
    entry += [
        Entry("rearrangement", problem, ("panda_table", f"rearrange_{scene}"), ("panda",), is_large)
        for problem, scene, is_large in (
            ("behind", "behind", False),
            ("deep_swap", "behind", True),
            ("row", "row", True),
        )
    ]
    entry += [
        Entry("drawer", problem, ("panda_drawer",), ("panda",)) for problem in ("empty", "swap")
    ]
    entry.append(Entry("handover", "across", ("baxter_trays",), ("baxter", "baxter_left")))
    entry.append(Entry("push", "rack", ("panda_push",), ("panda",)))
    mobile = ("mobile_panda", "three_tables")
    entry.append(Entry("mobile_manipulation", "fetch3", mobile, ("panda", "panda_base")))
    kitchen = ("iiwa_kitchen", "kitchen_blocks4")
    entry += [
        Entry("kitchen", problem, kitchen, ("iiwa_flange",)) for problem in ("cook2", "stove4")
    ]
    return entry


def run(entry: Entry, seed: int, folder: Path, *, time_limit: float, play: bool) -> Outcome:
    """Plan, save, load, check and perhaps play one problem."""
    scene = tk.load_scene(*entry.scenes)
    problem = tk.data_path(f"domains/{entry.domain}/problems/{entry.problem}.pddl")
    began = time.perf_counter()
    result = tk.plan(
        scene,
        domain=entry.domain,
        goal=problem,
        robot=entry.robots,
        seed=seed,
        options=tk.PlanningOptions(time_limit=time_limit),
    )
    seconds, task_plans = time.perf_counter() - began, result.statistics.skeletons
    if result.plan is None:
        return Outcome(entry, seed, seconds, 0, task_plans, False, result.explanation)
    path = folder / f"{entry.name.replace('/', '-')}-{seed}.json"
    tk.save_plan(result.plan, path)
    plan = tk.load_plan(path)
    check = tk.validate_plan(plan)
    notes = list(check.problems)
    report = tk.simulate(plan) if play and entry.is_played else None
    notes += [] if report is None else [f"played: {note}" for note in report.notes[:3]]
    return Outcome(
        entry, seed, seconds, len(plan.steps), task_plans, check.is_valid, "; ".join(notes), report
    )


def table_of(outcomes: list[Outcome], *, time_limit: float) -> str:
    """Return the results as a Markdown page."""
    lines = [
        HEAD.format(limit=time_limit),
        *markdown_head(
            "domain | problem | arm | actions | task plans | planned | valid | simulated | worst"
            " error | in the hand | median planning time"
        ),
    ]
    lines += [
        line
        for entry in entries()
        for line in _line(entry, [o for o in outcomes if o.entry == entry])
    ]
    missed = [
        o
        for o in outcomes
        if not o.is_checked or (o.report is not None and not o.report.is_successful)
    ]
    lines += ["", "Misses:" if missed else "No misses."]
    lines += [""] if missed else []
    lines += [f"* {o.entry.name}, seed {o.seed}: {_short(o.note)}" for o in missed]
    return "\n".join(lines) + "\n"


def _line(entry: Entry, rows: list[Outcome]) -> list[str]:
    if not rows:
        return []
    solved = [o for o in rows if o.actions]
    played = [o.report for o in rows if o.report is not None]
    cells = [
        entry.domain,
        entry.problem,
        ", ".join(entry.robots),
        _range([o.actions for o in solved]),
        _range([o.task_plans for o in solved]),
        f"{len(solved)} of {len(rows)}",
        f"{sum(o.is_checked for o in rows)} of {len(rows)}",
        f"{sum(report.is_successful for report in played)} of {len(played)}" if played else "",
        _errors(played),
        _slips(played),
        f"{statistics.median(o.seconds for o in solved):.1f} s" if solved else "",
    ]
    return [f"| {' | '.join(cells)} |"]


def _errors(reports: list[SimulationReport]) -> str:
    """Return the largest errors at the end of executions, as text."""
    if not reports:
        return ""
    metres = max(report.worst_position for report in reports)
    return _distance(metres, max(report.worst_rotation for report in reports))


def _slips(reports: list[SimulationReport]) -> str:
    """Return the largest displacement of objects in the hand, as text."""
    slips = [slip for report in reports for slip in report.slips]
    if not slips:
        return ""
    return _distance(max(slip.position for slip in slips), max(slip.rotation for slip in slips))


def _distance(metres: float, radians: float) -> str:
    return f"{1000.0 * metres:.1f} mm, {math.degrees(radians):.1f}°"


def _range(numbers: list[int]) -> str:
    if not numbers:
        return ""
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)} to {max(numbers)}"


def _short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."


def main() -> int:
    """Run the table."""
    parser = table_parser(__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small problems and the first seed alone"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument(
        "--play-seeds", type=int, nargs="*", default=[0, 1, 2], help="those whose plans are played"
    )
    parser.add_argument(
        "--only", nargs="+", default=None, help="problems, such as rearrangement/behind/panda"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for one problem")
    arguments = parser.parse_args()
    seeds = arguments.seeds[:1] if arguments.quick else arguments.seeds
    chosen = [
        entry for entry in entries() if arguments.only is None or entry.name in arguments.only
    ]
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in chosen:
            for seed in seeds if not (arguments.quick and entry.is_large) else []:
                play = seed in arguments.play_seeds
                outcome = run(entry, seed, Path(folder), time_limit=arguments.time_limit, play=play)
                outcomes.append(outcome)
                print(outcome, file=sys.stderr, flush=True)
    text = table_of(outcomes, time_limit=arguments.time_limit)
    deliver(text, arguments.out)
    return 0 if all(o.is_checked for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
