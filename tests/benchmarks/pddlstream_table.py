"""Table of PDDLStream beside tmkit: small problems, random families and pybullet-planning's files.

Run by hand: ``TMKIT_PDDLSTREAM=FOLDER python tests/benchmarks/pddlstream_table.py [PROBLEM ...]
[--files FOLDER] [--planners fair:adaptive,stock:adaptive,tmkit] [--seeds 3] [--limit 10] [--results
runs.jsonl] [--out FILE]``. FOLDER is a checkout of PDDLStream with its submodule ``downward``, and
``--files`` the folder ``problems/json`` of pybullet-planning, without which its problems are left
out. Each run is a process of its own. Seconds and the limit are of the processor, of that process
and its children, with imports on first use; PDDLStream balances search and sampling by them too.
Runs that are in ``--results`` are not repeated.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison.arena import load_suite
from benchmarks.comparison.pddlstream import ALGORITHMS, DECLARATIONS, PddlStream
from benchmarks.comparison.tamp_problems import read_tamp_problem
from benchmarks.tables import LiveTable, markdown_head, markdown_row, table_parser
from support.families import FAMILIES
from support.processor_time import processor_seconds

import tmkit as tk

SUITE_PROBLEMS = (
    "kitchen/stove4",
    "kitchen/cook2",
    "hanoi/hanoi3",
    "rearrangement/swap",
    "rearrangement/behind",
    "kitchen/fetch3",
)
"""Problems of the suites of the arena."""

FAMILY_SIZES = {
    "towers10": 5,
    "cook16": 3,
    "fetch12": 4,
    "permute10": 3,
    "shelf4": 2,
    "mobile2": 2,
    "behind1": 1,
    "regrasp": 1,
    "shapes5": 2,
    "packing5": 2,
    "narrow3": 2,
}
"""Families of random problems, with smaller sizes than in their own table."""

FILES = (
    "simple",
    "distract_0",
    "distract_4",
    "move_several_4",
    "move_several_8",
    "blocked",
    "separate_2",
    "two_tables_1",
    "nonmonotonic_4_1",
    "rearrangement_4",
)
"""Files of pybullet-planning, which need ``--files``."""

INTRODUCTION = """# PDDLStream beside tmkit

PDDLStream {commit} above tmkit's grasps, placements, inverse kinematics and path search, as [the
adapter's description](../../../tests/benchmarks/comparison/README.md#pddlstream) says, beside
tmkit on the same problems. *fair* declares a problem as PDDLStream's own examples do; *stock* has
the fewest streams. Three seeds, of some rows fewer; of a family (`towers5`, `permute3`, ...), a
seed is also the number of the instance. Every plan is validated.

Seconds are of the processor, of the planning process and those it starts, {limit:g} s at most:
median and most of the solved runs. Paths are in radians and metres. tmkit {version}, Python
{python}, {day}. Written by

```bash
{command}
```
"""
"""Beginning of the page."""

OBJECTIONS = """
## What a sceptic would object

* **The samplers are tmkit's.** Both planners use the same, which were made for tmkit. The table
  compares what is above them. Samplers of PDDLStream's own examples, in pybullet, are not
  measured here.
* **tmkit learns more from a failure.** A stream that fails has no output and no reason, while
  tmkit's search gets the object that was in the way. That is a property of the two interfaces,
  not of the adapter.
* **Translation.** PDDLStream translates a task anew in every iteration, in Python, and starts
  Fast Downward for each search. tmkit has a search of its own in C++. How much of the difference
  is due to that is not measured.
* **Python.** PDDLStream's queues of bindings are in Python as well. How much faster they would be
  in C++ is not measured.
* **The clock.** PDDLStream balances search and sampling by time; here its clock is the
  processor's, so that a busy machine does not shift the balance. Imports on first use count for
  both, some 0.1 s.
* **Limits.** A run of `adaptive` without a plan ended at the limit, which is short. It proves
  nothing about more time. `focused` ended by itself in less than a second; why was not examined.
* **Settings.** Those of the example `pybullet/tamp`, for all problems alike. Settings tuned to
  one problem would do better there.
* **Seeds.** Three are few, and PDDLStream's runs differ even with one seed.
"""
"""End of the page."""

WALL_FACTOR = 40.0
"""Largest clock time of a run of tmkit, as a multiple of its limit of processor time."""


def all_problems(files: Path | None) -> list[str]:
    """Return the names of the problems."""
    names = ["tower of three", *SUITE_PROBLEMS]
    names += [f"{name.rstrip('0123456789')}{size}" for name, size in FAMILY_SIZES.items()]
    return names + ([] if files is None else [f"{name}.json" for name in FILES])


def make_problem(name: str, seed: int, files: Path | None) -> tk.PlanningProblem:
    """Return a problem of a name; a family has one for each seed.

    Raises:
        ConfigurationError: if the problem is unknown.
    """
    if name == "tower of three":
        scene = tk.load_scene("panda_table", "blocks3")
        return tk.PlanningProblem(scene, goal="(and (on a b) (on b c))")
    if name.endswith(".json") and files is not None:
        return read_tamp_problem(files / name)
    if "/" in name:
        suite, label = name.split("/")
        entry = next(entry for entry in load_suite(suite).entries if entry.label == label)
        return entry.source.problem(entry.seeds[0])[0]
    family = next(
        family
        for family in FAMILY_SIZES
        if f"{family.rstrip('0123456789')}{FAMILY_SIZES[family]}" == name
    )
    return replace(FAMILIES[family], size=FAMILY_SIZES[family]).instance(seed).problem()


def run(name: str, planner: str, seed: int, *, limit: float, files: Path | None) -> dict[str, Any]:
    """Return the result of one run.

    Args:
        name: one of :func:`all_problems`.
        planner: ``tmkit``, or ``DECLARATION:ALGORITHM`` of PDDLStream.
        seed: seed of the planner.
        limit: processor time [s].
        files: folder of pybullet-planning's files.
    """
    problem = make_problem(name, seed, files)
    checkout = os.environ.get("TMKIT_PDDLSTREAM", "")
    options = tk.PlanningOptions(seed=seed, time_limit=limit, suggest=False)
    if planner != "tmkit":
        declaration, algorithm = planner.split(":")
        contestant = PddlStream(checkout, algorithm, declaration, is_clock_processor=True)
    reason = "no plan within the limit"
    before = processor_seconds()
    if planner == "tmkit":
        result = tk.solve(problem, replace(options, time_limit=limit * WALL_FACTOR))
        plan, reason = result.plan, " ".join(result.explanation.split())[:200]
    else:
        plan = contestant(problem, options)
    seconds = processor_seconds() - before
    row = {"problem": name, "planner": planner, "seed": seed, "limit": limit, "seconds": seconds}
    if plan is None or seconds > 1.1 * limit:
        return {**row, "reason": reason if plan is None else "beyond the limit"}
    is_valid = tk.validate_plan(plan).is_valid
    return {**row, "steps": len(plan.steps), "is_valid": is_valid, "path": plan.path_length}


def run_apart(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the result of one run in a process of its own."""
    command = [sys.executable, __file__, "--run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        name, planner, seed, limit, *_ = arguments
        row = {"problem": name, "planner": planner, "seed": int(seed), "limit": float(limit)}
        return {**row, "seconds": 0.0, "reason": lines[-1] if lines else "ended"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def rows(runs: Sequence[dict[str, Any]], planners: Sequence[str]) -> Iterator[str]:
    """Yield a line for each problem and planner."""
    for problem in dict.fromkeys(each["problem"] for each in runs):
        for planner in planners:
            mine = [
                each for each in runs if each["problem"] == problem and each["planner"] == planner
            ]
            if not mine:
                continue
            good = [each for each in mine if each.get("is_valid")]
            cells = [problem, planner.replace(":", ", "), f"{len(good)} of {len(mine)}"]
            if good:
                cells += [
                    f"{statistics.median(each['seconds'] for each in good):.3g}",
                    f"{max(each['seconds'] for each in good):.3g}",
                    f"{statistics.median(each['steps'] for each in good):g}",
                    f"{statistics.median(each['path'] for each in good):.3g}",
                ]
            else:
                cells += [""] * 4
            yield markdown_row(cells)


def main() -> int:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("problems", nargs="*", help="names of problems; all by default")
    parser.add_argument("--files", type=Path, help="folder problems/json of pybullet-planning")
    parser.add_argument("--planners", default="fair:adaptive,stock:adaptive,tmkit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="processor time [s]")
    parser.add_argument("--commit", default="2c7d6f5", help="commit of PDDLStream, for the page")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path, help="file of the runs, one a line of JSON")
    parser.add_argument("--run", action="store_true", help="one run, for the processes started")
    options, rest = parser.parse_known_args()
    if options.run:
        name, planner, seed, limit, *files = options.problems + rest
        folder = Path(files[0]) if files else None
        print(json.dumps(run(name, planner, int(seed), limit=float(limit), files=folder)))
        return 0
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    checkout = os.environ.get("TMKIT_PDDLSTREAM", "")
    if not checkout:
        print("Skipped: TMKIT_PDDLSTREAM names no checkout of PDDLStream")
        return 0
    known_planners = ["tmkit", *(f"{kind}:{name}" for kind in DECLARATIONS for name in ALGORITHMS)]
    planners = options.planners.split(",")
    if unknown := [name for name in planners if name not in known_planners]:
        parser.error(f"unknown planner '{unknown[0]}': {', '.join(known_planners)}")
    names = all_problems(options.files)
    if unknown := [name for name in options.problems if name not in names]:
        parser.error(f"unknown problem '{unknown[0]}': {', '.join(names)}")
    runs: list[dict[str, Any]] = []
    if options.results is not None and options.results.exists():
        runs = [json.loads(line) for line in options.results.read_text().splitlines()]
    finished = {(each["problem"], each["planner"], each["seed"]) for each in runs}
    wanted = [
        [
            name,
            planner,
            str(seed),
            str(options.limit),
            *([str(options.files)] if options.files else []),
        ]
        for name in options.problems or names
        for seed in range(options.seeds)
        for planner in planners
        if (name, planner, seed) not in finished
    ]
    with ThreadPoolExecutor(options.workers) as pool:
        for future in as_completed([pool.submit(run_apart, arguments) for arguments in wanted]):
            result = future.result()
            runs.append(result)
            print(json.dumps(result), file=sys.stderr, flush=True)
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(result) + "\n")
    order = {name: number for number, name in enumerate(names)}
    runs.sort(key=lambda each: (order.get(each["problem"], len(order)), each["seed"]))
    command = "TMKIT_PDDLSTREAM=pddlstream python tests/benchmarks/pddlstream_table.py"
    introduction = INTRODUCTION.format(
        commit=options.commit,
        limit=options.limit,
        version=tk.__version__,
        python=sys.version.split()[0],
        day=f"{date.today():%-d %B %Y}",
        command=f"{command} --files problems/json --limit {options.limit:g}",
    )
    table = LiveTable([introduction])
    table.add(
        *markdown_head("problem | planner | solved, valid | median s | most s | actions | path"),
        *rows(runs, planners),
    )
    table.add(*OBJECTIONS.rstrip().split("\n"))
    table.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
