"""Problems decided by geometry: success, actions and processor time of ``tk.plan``.

Run by hand: ``python tests/benchmarks/tamp_table.py [--out docs/results/tables/tamp.md] [--seeds 5]
[NAME ...]``. The scenes are those of ``tests/support/tamp_problems.py``, in which the seed also
varies where things stand. Times are processor seconds of this process and its children, without
imports. Each plan passes the checker, and the plans of every third run are simulated in pybullet,
where each object must end within 1.5 cm of where the plan puts it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import LiveTable, markdown_head, table_parser
from support.tamp_problems import PROBLEMS

import tmkit as tk
from tmkit.simulation import SimulationStatus
from tmkit.tamp import PlanStatus

AIMS = {
    "regrasp": 1.0,
    "blocked": 2.0,
    "swap2": 1.0,
    "swap4": 2.0,
    "swap8": 5.0,
    "swap16": 15.0,
    "shelf1": 1.0,
    "shelf3": 3.0,
    "shelf6": 5.0,
    "shelf_front": 3.0,
    "clutter9_3cm": 1.0,
    "clutter16_2cm": 1.0,
    "clutter25_2cm": 1.0,
    "handover1_20cm": 2.0,
    "handover1_40cm": 2.0,
    "handover2_20cm": 4.0,
    "handover2_40cm": 4.0,
    "handover4_20cm": 8.0,
    "handover4_40cm": 8.0,
    "towers15": 3.0,
    "towers20": 4.0,
    "towers25": 8.0,
    "lying6": 2.0,
    "cubby": 3.0,
    "tetromino": 5.0,
    "mobile": 3.0,
    "cook12": 2.0,
    "cook16": 3.0,
    "cook20": 6.0,
    "sussman4_baxter": 2.0,
    "sussman4_panda": 2.0,
    "sussman4_iiwa": 2.0,
}
WITHIN = 0.015  # tolerance of an object's place in the simulation [m]
TIME_LIMIT = 600.0  # of the clock, which a busy machine reaches soon


@dataclass
class Run:
    """A run: whether solved, valid and simulated (None if not simulated), actions, and times."""

    is_solved: bool
    is_valid: bool
    ends_well: bool | None
    actions: int
    seconds: float


def run(name: str, seed: int, *, simulated: bool) -> Run:
    """Plan one problem."""
    problem = PROBLEMS[name](seed)
    before = os.times()
    result = tk.plan(
        problem.scene,
        domain=problem.domain,
        goal=problem.goal,
        robot=problem.robot,
        seed=seed,
        options=tk.PlanningOptions(time_limit=TIME_LIMIT, suggest=False),
    )
    after = os.times()
    seconds = sum(after[:4]) - sum(before[:4])
    if result.status is not PlanStatus.SOLVED or result.plan is None:
        return Run(False, False, None, 0, seconds)
    plan = result.plan
    ends_well = None
    if simulated:
        ends_well = (
            tk.simulate(plan, options=tk.SimulationOptions(position_tolerance=WITHIN)).status
            is SimulationStatus.SUCCEEDED
        )
    return Run(True, tk.validate_plan(plan).is_valid, ends_well, len(plan.steps), seconds)


def row(name: str, seeds: int) -> str:
    """Return the line of one problem."""
    runs = [run(name, seed, simulated=(seed + len(name)) % 3 == 0) for seed in range(seeds)]
    solved = [trial for trial in runs if trial.is_solved]
    simulated = [trial for trial in runs if trial.ends_well is not None]
    times = sorted(trial.seconds for trial in runs)
    cells = [
        name,
        f"{len(solved)} of {seeds}",
        f"{sum(trial.is_valid for trial in runs)} of {len(solved)}",
        f"{sum(bool(trial.ends_well) for trial in simulated)} of {len(simulated)}",
        " ".join(str(trial.actions) if trial.is_solved else "-" for trial in runs),
        str(PROBLEMS[name](0).optimum or "unknown"),
        f"{times[len(times) // 2]:.2f}",
        f"{times[-1]:.2f}",
        f"{AIMS[name]:g}",
    ]
    return f"| {' | '.join(cells)} |"


TITLES = (
    "problem | solved | valid | simulated within 1.5 cm | actions | fewest | median s | longest s |"
    " aim s"
)
"""The titles of the table."""

HEAD = """# Problems decided by geometry

A Panda at a table, a Baxter for handovers and towers, a Panda on a mobile base, an iiwa that cooks;
the poses of the objects depend on the seed. Times are processor seconds of all processes, without
imports. *Valid*: the validator accepts the plan. *Simulated*: in pybullet, every object ends within
1.5 cm of the plan; every third run is simulated. *Fewest*: the least number of actions of any plan,
where it is known. Written by `python tests/benchmarks/tamp_table.py --out
docs/results/tables/tamp.md`.
"""
"""First lines of the table."""


def main() -> None:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("names", nargs="*", default=[*AIMS], help="problems; by default all")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    lines = [HEAD, *markdown_head(TITLES)]
    table = LiveTable(lines)
    run("shelf1", 0, simulated=False)  # imports on first use are not timed
    for name in options.names:
        table.add(row(name, options.seeds))
    table.write(options.out)


if __name__ == "__main__":
    main()
