"""Success rate of stacking on a block of uncertain pose, with and without looks, in simulation.

Run by hand: ``python tests/benchmarks/look_table.py [--worlds 20] [--out FILE.md]``. Worlds are
drawn from the scene's distribution, seeded; looks have the errors of the camera. A run succeeds
when the block ends within 4 cm of its place: one that fell is at least 5 cm lower. Beside it stands
the probability that the domain gives.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import LiveTable, markdown_head, table_parser
from support.unsure_blocks import ON_B, execute_looks, succeeds, unsure_blocks

import tmkit as tk
from tmkit.pddl import Fact
from tmkit.robots import load_manipulator
from tmkit.tamp import load_planning_domain, sample_scene

DEVIATIONS = (0.002, 0.005, 0.01, 0.02)


def row(deviation: float, worlds: int) -> str:
    """Return the line of the table for one deviation of the blocks [m]."""
    scene = unsure_blocks(deviation)
    planned = tk.plan(scene, domain="blocks_uncertain", goal=ON_B).plan
    blind = tk.plan(scene, domain="blocks", goal="(on a b)").plan
    assert planned is not None
    assert blind is not None
    semantics = load_planning_domain("blocks_uncertain", robot=load_manipulator("panda")).semantics
    probability = semantics.probability(Fact.of("located", "a"), scene, planned.q)  # type: ignore[attr-defined]
    with_looks = without = 0
    for seed in range(worlds):
        world = sample_scene(scene, seed=seed)
        rest = tk.plan(
            execute_looks(planned, world, seed=seed), domain="blocks_uncertain", goal=ON_B
        ).plan
        assert rest is not None
        with_looks += succeeds(rest, world)
        without += succeeds(blind, world)
    looks = sum(len(step.observations) for step in planned.steps)
    return (
        f"| {deviation * 1000:g} mm | {probability.value:.3f} | {looks} | {without} of {worlds} |"
        f" {with_looks} of {worlds} |"
    )


def main() -> None:
    """Print the table."""
    parser = table_parser(__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--deviations", type=float, nargs="*", default=DEVIATIONS)
    options = parser.parse_args()
    lines = [
        *markdown_head(
            "deviation of each block | P(the hand finds a) | looks planned | without looks | as"
            " planned"
        )
    ]
    table = LiveTable(lines)
    for deviation in np.asarray(options.deviations).tolist():
        table.add(row(deviation, options.worlds))
    table.write(options.out)


if __name__ == "__main__":
    main()
