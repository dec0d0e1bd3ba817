"""Plan, check and play the classic problems of task-and-motion planning, and write the table of results into the docs.

Run by hand: ``python tests/benchmarks/domains_table.py [--out docs/domains_results.md] [--quick] [--seeds 0 1 2 3 4]``.
Towers of Hanoi, towers where a ceiling is low, sorting in clutter, and items that come back to where they were; every
plan is saved, loaded and checked, and the small ones are played with the first seed. ``--quick`` leaves the large
problems out and takes the first seed alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tmkit as tk


@dataclass(frozen=True)
class Entry:
    """One problem of the table."""

    domain: str
    problem: str
    scenes: tuple[str, ...]
    robot: str
    is_large: bool = False
    is_played: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of one problem with one seed; ``is_played`` is None where it was not tried."""

    entry: Entry
    seed: int
    seconds: float
    actions: int
    task_plans: int
    is_checked: bool
    is_played: bool | None
    remark: str


def entries() -> list[Entry]:
    """Return the problems, smallest of a kind first."""
    found = [
        Entry("hanoi", f"hanoi{n}", (table, f"hanoi{n}"), robot, n > 4, n == 3)
        for robot, table in (("panda", "panda_table"), ("iiwa", "iiwa_nozzle"))
        for n in (3, 4, 5, 6)
    ]
    found += [
        Entry("blocks", f"ceiling{n}", ("panda_ceiling", f"ceiling{n}"), "panda", n > 4, n == 3) for n in range(3, 11)
    ]
    found += [
        Entry("sorting", f"sort{n}", (f"{robot}_table", f"sort{n}"), robot, n > 8, n == 8)
        for robot, n in (("panda", 8), ("panda", 14), ("panda", 28), ("iiwa", 8), ("iiwa", 14))
    ]
    found += [
        Entry("rearrangement", "swap", (f"{robot}_table", "rearrange_swap"), robot, is_played=True)
        for robot in ("panda", "iiwa")
    ]
    names = (("behind", "behind", False), ("deep_swap", "behind", True), ("row", "row", True))
    for problem, scene, is_large in names:
        scenes = ("panda_table", f"rearrange_{scene}")
        found.append(Entry("rearrangement", problem, scenes, "panda", is_large, not is_large))
    return found


def run(entry: Entry, seed: int, folder: Path, *, time_limit: float, play: bool) -> Outcome:
    """Plan, save, load, check and perhaps play one problem."""
    scene = tk.load_scene(*entry.scenes)
    problem = tk.data_path(f"domains/{entry.domain}/problems/{entry.problem}.pddl")
    began = time.perf_counter()
    result = tk.plan(
        scene, domain=entry.domain, problem=problem, robot=entry.robot, seed=seed, time_limit=time_limit
    )  # fmt: skip
    seconds, task_plans = time.perf_counter() - began, result.statistics.skeletons
    if result.plan is None:
        return Outcome(entry, seed, seconds, 0, task_plans, False, None, result.explanation)
    path = folder / f"{entry.robot}-{entry.problem}-{seed}.json"
    result.plan.save(path)
    plan = tk.Plan.load(path)
    check = plan.check()
    remarks, is_played = list(check.problems), None
    if play and entry.is_played:
        report = tk.simulate(plan)
        is_played = report.ok
        remarks += [] if report.ok else [f"played: {remark}" for remark in report.remarks[:3]]
    return Outcome(entry, seed, seconds, len(plan.steps), task_plans, check.ok, is_played, "; ".join(remarks))


def table_of(outcomes: list[Outcome], *, time_limit: float) -> str:
    """Return the results as a Markdown page."""
    lines = [
        "# Classic problems: plan, check, play",
        "",
        f"Each line sums up one problem over so many seeds as it says, with {time_limit:g} s each: how many were",
        "planned, how many plans passed the check at finer steps, and whether the first was played in pybullet to",
        "where it leads. A problem that is not in the table was not run. Made by",
        "`python tests/benchmarks/domains_table.py`. Times are medians over the plans found, on two cores shared with",
        "much else: they are for comparison within the table. What the problems are, [](classic_problems.md) tells.",
        "",
        "| domain | problem | arm | actions | task plans | planned | checked | played | median planning time |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(entry, [o for o in outcomes if o.entry == entry]) for entry in entries()]
    missed = [o for o in outcomes if not o.is_checked or o.is_played is False]
    lines += ["", "Misses:" if missed else "No misses."]
    lines += [""] if missed else []
    lines += [f"* {o.entry.problem}, {o.entry.robot}, seed {o.seed}: {_short(o.remark)}" for o in missed]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _line(entry: Entry, rows: list[Outcome]) -> str | None:
    if not rows:
        return None
    solved = [o for o in rows if o.actions]
    played = [o.is_played for o in rows if o.is_played is not None]
    cells = [
        entry.domain, entry.problem, entry.robot, _range([o.actions for o in solved]),
        _range([o.task_plans for o in solved]), f"{len(solved)} of {len(rows)}",
        f"{sum(o.is_checked for o in rows)} of {len(rows)}", f"{sum(played)} of {len(played)}" if played else "",
        f"{statistics.median(o.seconds for o in solved):.1f} s" if solved else "",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _range(numbers: list[int]) -> str:
    if not numbers:
        return ""
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)} to {max(numbers)}"


def _short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."


def main() -> int:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write; printed when left out")
    parser.add_argument("--quick", action="store_true", help="small problems and the first seed alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for one problem")
    arguments = parser.parse_args()
    seeds = arguments.seeds[:1] if arguments.quick else arguments.seeds
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in entries():
            for seed in seeds if not (arguments.quick and entry.is_large) else []:
                limit, play = arguments.time_limit, seed == seeds[0]
                outcome = run(entry, seed, Path(folder), time_limit=limit, play=play)
                outcomes.append(outcome)
                print(outcome, file=sys.stderr, flush=True)
    text = table_of(outcomes, time_limit=arguments.time_limit)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, encoding="utf-8")
    return 0 if all(o.is_checked for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
