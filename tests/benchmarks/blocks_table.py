"""Plan, check and play 50 blocks problems, and write the table of results into the docs.

Run by hand: ``python tests/benchmarks/blocks_table.py [--out docs/results/blocks_results.md]
[--blocks 1 2] [--seeds 0 1]``. N blocks go from the table to one tower, and to a row; every plan is
saved, loaded, checked and simulated with real fingers. A block misses when it ends more than 15 mm
or 5 degrees from where the plan puts it.
"""

from __future__ import annotations

import itertools
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_head, table_parser

import tmkit as tk

NAMES = "abcde"


@dataclass(frozen=True)
class Outcome:
    """Result of one problem."""

    goal: str
    blocks: int
    seed: int
    actions: int
    planning_seconds: float
    solved: bool
    checked: bool
    played: bool
    worst_millimetres: float
    worst_degrees: float
    note: str


def goal_of(kind: str, blocks: int) -> str:
    """Return the PDDL goal: a tower on one free location, or a row of adjacent free locations."""
    names = NAMES[:blocks]
    if kind == "tower":
        facts = [f"(on {upper} {lower})" for upper, lower in itertools.pairwise(names)]
        facts.append(f"(ontable {names[-1]} table__0__0)")
    else:
        facts = [f"(ontable {name} table__0__{i - blocks // 2})" for i, name in enumerate(names)]
    return f"(and {' '.join(facts)})"


def run(kind: str, blocks: int, seed: int, folder: Path) -> Outcome:
    """Plan, save, load, check and simulate one problem."""
    scene = tk.load_scene("panda_table", f"blocks{blocks}")
    began = time.perf_counter()
    result = tk.plan(scene, domain="blocks", goal=goal_of(kind, blocks), robot="panda", seed=seed)
    seconds = time.perf_counter() - began
    if result.plan is None:
        return Outcome(
            kind,
            blocks,
            seed,
            0,
            seconds,
            False,
            False,
            False,
            math.nan,
            math.nan,
            result.explanation,
        )
    path = folder / f"{kind}-{blocks}-{seed}.json"
    tk.save_plan(result.plan, path)
    plan = tk.load_plan(path)
    check = tk.validate_plan(plan)
    report = tk.simulate(plan)
    return Outcome(
        kind,
        blocks,
        seed,
        len(plan.steps),
        seconds,
        True,
        check.is_valid,
        report.is_successful,
        1000.0 * max((error.position for error in report.errors.values()), default=0.0),
        math.degrees(max((error.rotation for error in report.errors.values()), default=0.0)),
        "; ".join([*check.problems, *map(str, report.notes)]),
    )


def table_of(outcomes: list[Outcome]) -> str:
    """Return the results as a Markdown page."""
    lines = [
        "# Blocks: plan, check, play",
        "",
        (
            "N blocks of 5 cm go from the table to one tower, or to a row of neighbouring"
            " locations, on the Panda."
        ),
        (
            "Each line sums up one problem over all seeds: how many were planned, how many plans"
            " passed the check at finer"
        ),
        (
            "steps, how many were played in pybullet with every block within 15 mm and 5 degrees of"
            " the plan, held by"
        ),
        (
            "friction between real fingers. Made by `python tests/benchmarks/blocks_table.py`; the"
            " planning time is the"
        ),
        "median, on two shared cores.",
        "",
        *markdown_head(
            "goal | blocks | actions | planned | checked | played | worst error | median planning"
            " time"
        ),
    ]
    for kind, blocks in sorted(
        {(o.goal, o.blocks) for o in outcomes}, key=lambda key: (key[0] != "tower", key[1])
    ):
        rows = [o for o in outcomes if (o.goal, o.blocks) == (kind, blocks)]
        times = sorted(o.planning_seconds for o in rows)
        actions = "/".join(str(n) for n in sorted({o.actions for o in rows}))
        worst = (
            f"{max(o.worst_millimetres for o in rows):.1f} mm,"
            f" {max(o.worst_degrees for o in rows):.2f}°"
        )
        counts = " | ".join(
            f"{sum(getattr(o, key) for o in rows)} of {len(rows)}"
            for key in ("solved", "checked", "played")
        )
        lines.append(
            f"| {kind} | {blocks} | {actions} | {counts} | {worst} |"
            f" {times[len(times) // 2]:.2f} s |"
        )
    total = len(outcomes)
    sums = {key: sum(getattr(o, key) for o in outcomes) for key in ("solved", "checked", "played")}
    lines += [
        "",
        (
            f"In all: {sums['solved']} of {total} planned, {sums['checked']} of {total} checked, "
            f"{sums['played']} of {total} played."
        ),
    ]
    missed = [o for o in outcomes if not (o.solved and o.checked and o.played)]
    lines += ["", "Misses:" if missed else "No misses.", ""] if missed else ["", "No misses."]
    lines += [f"* {o.goal}, {o.blocks} blocks, seed {o.seed}: {o.note}" for o in missed]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the table."""
    parser = table_parser(__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    arguments = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("tower", "row"):
            for blocks in arguments.blocks:
                for seed in arguments.seeds:
                    outcome = run(kind, blocks, seed, Path(folder))
                    outcomes.append(outcome)
                    print(outcome, file=sys.stderr, flush=True)
    text = table_of(outcomes)
    deliver(text, arguments.out)
    return 0 if all(o.solved and o.checked for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
