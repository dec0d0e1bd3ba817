"""Table of random planning problems: success, steps and processor time of ``tk.plan``.

Run by hand: ``python tests/benchmarks/families_table.py [FAMILY ...] [--numbers 0:50] [--only
even|odd] [--limit 20] [--wall-limit 20] [--simulate-every 10] [--out FILE] [--verbose]``. The
instances are those of ``tests/support/families.py``. Seconds are of the processor, of this process
and its children, without imports. The planner stops after ``--wall-limit`` seconds of the clock. A
plan that took more processor time than a column allows does not count in it. The seed of the
planner is 0.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import LiveTable, table_parser
from support.families import FAMILIES, FamilyInstance
from support.processor_time import processor_seconds

import tmkit as tk
from tmkit.simulation import SimulationStatus

SHORT_LIMIT = 5.0
"""Processor time of the first column of solved instances [s]."""

POSITION_TOLERANCE = 0.015
"""Distance by which an object may miss its place in the simulation [m]."""

HEADER = (
    "| family | numbers | solved in {short:g} s | solved in {limit:g} s | median s | 90 % s | steps"
    " over known: mean | largest | valid | simulated |"
)


@dataclass(frozen=True)
class Run:
    """Run of the planner.

    Attributes:
        number: number of the instance.
        seconds: processor time [s].
        excess_steps: steps beyond the fewest known; None without a plan.
        is_valid: whether the plan is valid.
        is_simulated_well: whether the simulation ends as planned; None if it was not simulated.
        reason: first line of the explanation if there is no plan.
    """

    number: int
    seconds: float
    excess_steps: int | None
    is_valid: bool = False
    is_simulated_well: bool | None = None
    reason: str = ""

    def is_solved_within(self, limit: float) -> bool:
        """Return whether a plan was found in a processor time [s]."""
        return self.excess_steps is not None and self.seconds <= limit


def run(instance: FamilyInstance, *, limit: float, is_simulated: bool) -> Run:
    """Plan one instance.

    Args:
        instance: the instance.
        limit: time limit of the planner [s].
        is_simulated: whether to simulate the plan.
    """
    problem = instance.problem()
    before = processor_seconds()
    result = tk.solve(problem, tk.PlanningOptions(seed=0, time_limit=limit, suggest=False))
    seconds = processor_seconds() - before
    plan = result.plan
    if plan is None:
        reason = " ".join(result.explanation.split())[:200]
        return Run(instance.number, seconds, None, reason=reason)
    domain = None if isinstance(problem.domain, str) else problem.domain
    is_valid = tk.validate_plan(plan, domain=domain).is_valid
    is_simulated_well = None
    if is_simulated:
        report = tk.simulate(
            plan, options=tk.SimulationOptions(position_tolerance=POSITION_TOLERANCE)
        )
        is_simulated_well = report.status is SimulationStatus.SUCCEEDED
    excess = len(plan.steps) - instance.known_steps
    return Run(instance.number, seconds, excess, is_valid, is_simulated_well)


def row(family: str, numbers: str, runs: Sequence[Run], *, limit: float) -> str:
    """Return the line of some instances of a family."""
    solved = [each for each in runs if each.excess_steps is not None]
    simulated = [each for each in solved if each.is_simulated_well is not None]
    excess = [each.excess_steps for each in solved if each.excess_steps is not None]
    times = sorted(each.seconds if each.is_solved_within(limit) else limit for each in runs)
    cells = [
        family,
        numbers,
        f"{sum(each.is_solved_within(SHORT_LIMIT) for each in runs)} of {len(runs)}",
        f"{sum(each.is_solved_within(limit) for each in runs)} of {len(runs)}",
        f"{statistics.median(times):.2f}",
        f"{times[min(len(times) - 1, int(0.9 * len(times)))]:.2f}",
        f"{statistics.mean(excess):.1f}" if excess else "-",
        str(max(excess)) if excess else "-",
        f"{sum(each.is_valid for each in solved)} of {len(solved)}",
        f"{sum(bool(each.is_simulated_well) for each in simulated)} of {len(simulated)}",
    ]
    return f"| {' | '.join(cells)} |"


def describe_run(family: str, each: Run) -> str:
    """Return one line about a run."""
    if each.excess_steps is None:
        return f"{family} {each.number}: no plan, {each.seconds:.2f} s: {each.reason}"
    ending = {None: "", True: ", simulated", False: ", FAILED in simulation"}[
        each.is_simulated_well
    ]
    validity = "valid" if each.is_valid else "INVALID"
    return (
        f"{family} {each.number}: {each.seconds:.2f} s, steps {each.excess_steps:+d},"
        f" {validity}{ending}"
    )


def select_numbers(numbers: str, only: str | None) -> list[int]:
    """Return the numbers of a range ``START:STOP``, or those that are even or odd."""
    start, _, stop = numbers.partition(":")
    selected = range(int(start), int(stop) if stop else int(start) + 1)
    return [
        number for number in selected if only is None or number % 2 == ("even", "odd").index(only)
    ]


def main() -> None:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument(
        "families", nargs="*", choices=[[], *FAMILIES], help="families; by default all"
    )
    parser.add_argument("--numbers", default="0:50", metavar="START:STOP")
    parser.add_argument("--only", choices=["even", "odd"])
    parser.add_argument(
        "--limit", type=float, default=20.0, help="processor time of the second column [s]"
    )
    parser.add_argument(
        "--wall-limit", type=float, help="time limit of the planner [s]; as --limit by default"
    )
    parser.add_argument(
        "--simulate-every",
        type=int,
        default=10,
        help="one of so many instances is simulated; 0 for none",
    )
    parser.add_argument("--verbose", action="store_true", help="print a line for each instance")
    options = parser.parse_args()
    wall_limit = options.wall_limit or options.limit
    table = LiveTable([HEADER.format(short=SHORT_LIMIT, limit=options.limit), "|---" * 10 + "|"])
    # imports are not timed
    run(FAMILIES["towers10"].instance(0), limit=wall_limit, is_simulated=False)
    for name in options.families or FAMILIES:
        runs: list[Run] = []
        for index, number in enumerate(select_numbers(options.numbers, options.only)):
            is_simulated = options.simulate_every > 0 and index % options.simulate_every == 0
            runs.append(
                run(FAMILIES[name].instance(number), limit=wall_limit, is_simulated=is_simulated)
            )
            if options.verbose:
                print(describe_run(name, runs[-1]), file=sys.stderr, flush=True)
        for parity, kind in enumerate(("even", "odd")):
            group = [each for each in runs if each.number % 2 == parity]
            if group:
                table.add(row(name, kind, group, limit=options.limit))
    table.write(options.out)


if __name__ == "__main__":
    main()
