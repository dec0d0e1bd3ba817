"""Table of 50 blocks problems: planning, validation and simulation.

Run by hand: ``python tests/benchmarks/blocks_table.py [--out docs/results/tables/blocks.md]
[--blocks 1 2] [--seeds 0 1]``. N blocks go from the table to one tower, and to a row; every plan is
saved, loaded, validated and simulated with finger contacts. A block misses if it ends more than 15
mm or 5 degrees from its pose in the plan.
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

HEAD = """# Blocks: towers and rows

N blocks of 5 cm go from the table to one tower, or to a row of neighbouring locations, on the
Panda. *Valid*: the validator accepts the plan at finer resolution. *Simulated*: in pybullet, with
finger contacts, every block ends within 15 mm and 5 degrees of the plan. Planning time is the
median of the clock on two shared cores. Written by
`python tests/benchmarks/blocks_table.py --out docs/results/tables/blocks.md`.
"""
"""First lines of the table."""


@dataclass(frozen=True)
class Outcome:
    """Result of one problem."""

    goal: str
    blocks: int
    seed: int
    actions: int
    planning_seconds: float
    solved: bool
    valid: bool
    simulated: bool
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
    """Plan, save, load, validate and simulate one problem."""
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
        HEAD,
        *markdown_head(
            "goal | blocks | actions | planned | valid | simulated | worst error | median planning"
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
            for key in ("solved", "valid", "simulated")
        )
        lines.append(
            f"| {kind} | {blocks} | {actions} | {counts} | {worst} |"
            f" {times[len(times) // 2]:.2f} s |"
        )
    total = len(outcomes)
    sums = {key: sum(getattr(o, key) for o in outcomes) for key in ("solved", "valid", "simulated")}
    lines += [
        "",
        (
            f"In all: {sums['solved']} of {total} planned, {sums['valid']} of {total} valid, "
            f"{sums['simulated']} of {total} simulated."
        ),
    ]
    missed = [o for o in outcomes if not (o.solved and o.valid and o.simulated)]
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
    return 0 if all(o.solved and o.valid for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
