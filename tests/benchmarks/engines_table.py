"""Golden plans in both physics engines: ``python tests/benchmarks/engines_table.py [NAME ...]``.

One row a plan and engine: the outcome, the largest error of an object and of a joint at the end,
the largest slip in a hand, and the processor time a simulated second.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import markdown_head
from support.golden_plans import PLANS

import tmkit as tk

_ENGINES: tuple[Literal["pybullet", "mujoco"], ...] = ("pybullet", "mujoco")


def main(names: list[str]) -> None:
    """Print the table of some plans, or of all."""
    titles = (
        "plan | engine | outcome | objects end within | joints within | slip in the hand | CPU a"
        " second"
    )
    print("\n".join(markdown_head(titles)))
    for name in names or PLANS:
        plan = PLANS[name]().plan
        assert plan is not None
        for engine in _ENGINES:
            before = time.process_time()
            report = tk.simulate(plan, options=tk.SimulationOptions(engine=engine))
            share = (time.process_time() - before) / report.duration
            position, rotation = 1e3 * report.worst_position, math.degrees(report.worst_rotation)
            slips = [1e3 * slip.position for slip in report.slips]
            turns = [math.degrees(slip.rotation) for slip in report.slips]
            joints = max((str(error) for error in report.joints.values()), default="")
            slip = f"{max(slips, default=0.0):.1f} mm, {max(turns, default=0.0):.1f} deg"
            print(
                f"| {name} | {engine} | {report.status} | {position:.1f} mm, {rotation:.1f} deg |"
                f" {joints} | {slip} | {share:.2f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
