"""Durations of motions in plans: with stops, with the former timing, and blended.

Run by hand: ``python tests/benchmarks/timing_table.py [--out docs/results/tables/timing.md] [--only
NAME ...]``. Durations are of the arms alone; every sample at 1 kHz is checked by
``tests/support/motion_limits.py``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_head, markdown_row, table_parser
from support.golden_plans import PLANS
from support.motion_limits import motions_of, plan_torque_shares, run_shares, with_mass

import tmkit as tk
from tmkit.plans import Plan
from tmkit.plans.motion_timing import Piece, blend_run, plan_runs
from tmkit.tamp import PlanResult

HEAD = (
    "problem",
    "actions",
    "segments / motions",
    "at rest",
    "before",
    "blended",
    "of at rest",
    "of before",
    "limits",
    "processor time",
)
SHARP_TURN = 0.1  # angle of a corner at which arms stopped formerly [rad]

PROBLEMS: dict[str, Callable[[], PlanResult]] = {
    "demo": lambda: tk.plan(
        tk.load_scene("panda_table", "blocks3"),
        domain="blocks",
        goal="(and (on a b) (on b c))",
        robot="panda",
        seed=0,
    ),
    "blocks5": lambda: tk.plan(
        tk.load_scene("panda_table", "blocks5"),
        domain="blocks",
        goal="(and (on a b) (on b c) (on c d) (on d e))",
    ),
    **PLANS,
    "push": lambda: tk.plan(
        tk.load_scene("panda_push"),
        domain="push",
        goal=tk.data_path("domains/push/problems/rack.pddl"),
        robot="panda",
    ),
    "mobile": lambda: tk.plan(
        tk.load_scene("mobile_panda", "three_tables"),
        domain="mobile_manipulation",
        goal=tk.data_path("domains/mobile_manipulation/problems/fetch3.pddl"),
        robot=("panda", "panda_base"),
    ),
    "stove4": lambda: tk.plan(
        tk.load_scene("iiwa_kitchen", "kitchen_blocks4"),
        domain="kitchen",
        goal=tk.data_path("domains/kitchen/problems/stove4.pddl"),
        robot="iiwa_flange",
    ),
}


def ramps(length: float, v: float, a: float, j: float) -> float:
    """Return the shortest rest-to-rest time over a length within speed, acceleration and jerk."""
    rise = v / a + a / j if v * j >= a * a else 2.0 * math.sqrt(v / j)
    if length >= v * rise:
        return length / v + rise
    peak = 0.5 * a * (math.sqrt((a / j) ** 2 + 4.0 * length / a) - a / j)
    return (
        2.0 * (peak / a + a / j) if peak >= a * a / j else 4.0 * (length / (2.0 * j)) ** (1.0 / 3.0)
    )


def before(piece: Piece) -> float:
    """Return the former duration of a segment: stops at ends and corners, steps at small ones."""
    legs = np.diff(piece.path, axis=0)
    lengths = np.linalg.norm(legs, axis=1)
    legs, lengths = legs[lengths > 1e-9], lengths[lengths > 1e-9]
    if not len(legs):
        return 0.0
    directions = legs / lengths[:, None]
    turns = np.arccos(np.clip(np.sum(directions[1:] * directions[:-1], axis=1), -1.0, 1.0))
    seconds = 0.0
    for first, last in pairwise([0, *(np.flatnonzero(turns > SHARP_TURN) + 1), len(legs)]):
        share = np.abs(directions[first:last]).max(axis=0).clip(1e-12)
        v, a = float(np.min(piece.speeds / share)), float(np.min(piece.accelerations / share))
        seconds += ramps(float(lengths[first:last].sum()), v, a, a / 0.1)
    return seconds


def line(name: str, plan: Plan) -> tuple[str, tuple[float, float, float]]:
    """Return a line of the table and the durations."""
    runs = list(plan_runs(plan, range(1, len(plan.steps) + 1)))
    began = time.process_time()
    blended = sum(blend_run(run).duration for run in runs)
    cpu = time.process_time() - began
    pieces = [piece for run in runs for piece in run]
    apart, old = sum(blend_run([piece]).duration for piece in pieces), sum(map(before, pieces))
    shares = np.max([run_shares(plan, run) for run in motions_of(plan).runs()], axis=0)
    rests = sum(len(blend_run(run).parts) for run in runs)
    cells = [
        name,
        len(plan.steps),
        f"{len(pieces)} / {rests}",
        *(f"{t:.2f} s" for t in (apart, old, blended)),
    ]
    cells += [
        f"{blended / apart:.2f}",
        f"{blended / old:.2f}",
        " ".join(f"{x:.4f}" for x in shares),
        f"{cpu:.2f} s",
    ]
    return markdown_row(cells), (apart, old, blended)


def loads(plan: Plan) -> str:
    """Return how long the motion with the first block takes by its mass, as a table."""
    rows = []
    for mass in (0.1, 1.0, 2.0, 2.5, 2.75, 3.0):
        log = motions_of(with_mass(plan, mass, effort=46.0))
        seconds = sum(motion.timed.duration for motion in log.runs()[1])
        rows.append(
            markdown_row((f"{mass} kg", f"{seconds:.2f} s", f"{plan_torque_shares(log)[1]:.3f}"))
        )
    return chr(10).join([*markdown_head("block | motion with it | of the limit"), *rows])


def main() -> None:
    """Write the table."""
    parser = table_parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=[*PROBLEMS, []], default=[])
    options = parser.parse_args()
    lines, durations, plans = [], [], {}
    for name in dict.fromkeys(["blocks-panda", *options.only]) if options.only else PROBLEMS:
        result = PROBLEMS[name]()
        assert result.plan is not None, f"{name}: {result.explanation}"
        plans[name] = result.plan
        row, numbers = line(name, result.plan)
        lines.append(row)
        durations.append(numbers)
        sys.stderr.write(f"{row}\n")
    apart, old, blended = np.array(durations).T
    text = f"""# Durations of motions

Durations of the arms in plans for the built-in problems, without the gripper. *At rest*: with a
stop after each segment, corners within segments rounded. *Before*: the former timing, with a stop
after each segment and at sharp corners, and a step of the velocity at small ones, which exceeds
limits of acceleration. *Blended*: the present timing ([motion
timing](../../concepts/arrays_and_time.md#timing-of-motions)). Motions are segments that move, and
the motions from rest to rest that they form. Limits: the largest fractions of the limits of speed,
acceleration and jerk, by differences of positions at 1 kHz. Processor time is that of rounding,
timing and checking the whole plan. Pours have the present speed in all columns. Written by `python
tests/benchmarks/timing_table.py --out docs/results/tables/timing.md`.

{chr(10).join([*markdown_head(" | ".join(HEAD)), *lines])}

Mean: {np.mean(blended / apart):.2f} of the durations at rest,
{np.mean(blended / old):.2f} of those before.

## Loads

The motion of `blocks-panda` that carries the first block, on a Panda whose second joint has a limit
of 46 N m, about half of its own, by the mass of the block; and the largest fraction of this limit,
by pinocchio from differences of positions at 1 kHz. In none of the problems above does a torque
exceed 0.65 of its limit, so none is slowed.

{loads(plans["blocks-panda"])}
"""
    deliver(text, options.out)


if __name__ == "__main__":
    main()
