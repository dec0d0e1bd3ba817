"""Motion measurements in one table: checks, versions, inverse kinematics and motion queries.

Run by hand: ``python tests/benchmarks/motion_table.py [--out docs/results/tables/motion.md]
[--quick]``. Times are CPU times, the best of several runs that take turns, so that other load on
the machine affects all alike; the results are ratios. pinocchio and OMPL run in the same process on
the same scenes; OMPL uses tmkit's checker, and is omitted if the ``ompl`` package is missing.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, least_times, markdown_table, table_parser
from support.motion_scenes import ARM, BOXES, TIP, Query, blocks_scene, cubby_query, wall_query
from support.pinocchio_oracle import PinocchioOracle

from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    PathSettings,
    inverse_kinematics,
    recheck_path,
    search_path,
)

STEP, RESOLUTION, MARGIN = 0.5, 0.01, 0.001
CHECK_RESOLUTION = 0.003


@dataclass(frozen=True)
class Effort:
    """Extent of a measurement: configurations, rounds (the best counts), seeds of a query."""

    configurations: int
    rounds: int
    seeds: int
    repeats: int


FULL, QUICK = Effort(10000, 25, 20, 5), Effort(200, 3, 3, 1)


def microseconds(seconds: float) -> str:
    """Return a short text."""
    return f"{1e6 * seconds:.2f}" if seconds < 1e-5 else f"{1e6 * seconds:.0f}"


def collision_rows(effort: Effort) -> list[str]:
    """Compare state checks and changes of versions with pinocchio."""
    scene = blocks_scene()
    world = CollisionWorld(scene, pair_margins={("panda_link0", name): -math.inf for name in BOXES})
    margins = {("panda_link0", name): -math.inf for name in BOXES}
    limits = scene.joint_limits
    matrix = np.random.default_rng(2).uniform(
        limits[:, 0], limits[:, 1], (effort.configurations, len(limits))
    )
    qs = list(matrix)
    oracle = PinocchioOracle("panda", BOXES, world)
    manager = oracle.broad_phase()
    theirs = [oracle.configuration(q) for q in qs]
    agree = sum(world.is_in_collision(q) == oracle.collides(q) for q in qs)
    versions = [scene.reparent(f"block{i % 10}", "panda_hand", q=q) for i, q in enumerate(qs)]
    held = world.moved_to(versions[0])
    held_anew = CollisionWorld(versions[0], pair_margins=margins)

    def rebuild() -> None:
        for _ in range(20):
            pinocchio.GeometryData(oracle.geometry)
            oracle.broad_phase()

    plain, batch, broad, all_pairs, first, later, later_anew, moving, anew, rebuilt = least_times(
        [
            lambda: [world.is_in_collision(q) for q in qs],
            lambda: world.in_collision_batch(matrix),
            lambda: [
                pinocchio.computeCollisions(oracle.model, oracle.data, manager, q, True)
                for q in theirs
            ],
            lambda: [
                pinocchio.computeCollisions(
                    oracle.model, oracle.data, oracle.geometry, oracle.geometry_data, q, True
                )
                for q in theirs[:200]
            ],
            lambda: [
                world.moved_to(version).is_in_collision(q)
                for version, q in zip(versions, qs, strict=True)
            ],
            lambda: [held.is_in_collision(q) for q in qs],
            lambda: [held_anew.is_in_collision(q) for q in qs],
            lambda: [world.moved_to(version) for version in versions],
            lambda: [CollisionWorld(scene, pair_margins=margins) for _ in range(100)],
            rebuild,
        ],
        effort.rounds,
    )
    count = len(qs)
    check, manager_check = plain / count, broad / count
    rows = [
        [
            "state check, one call each",
            check,
            f"{check / manager_check:.2f} of pinocchio's broad phase",
        ],
        [
            "state check, in a batch",
            batch / count,
            f"{batch / broad:.2f} of pinocchio's broad phase",
        ],
        ["pinocchio, broad phase", manager_check, ""],
        ["pinocchio, all pairs", all_pairs / len(theirs[:200]), ""],
        [
            "another version: the world moved, and its first check",
            first / count,
            f"{first / plain:.2f} plain checks",
        ],
        ["  of that, moving the world", moving / count, ""],
        [
            "another version: later checks",
            later / count,
            f"{later / plain:.2f} plain checks, {later / later_anew:.2f} of a world made anew",
        ],
        ["a world made anew", anew / 100, f"{anew / 100 / check:.1f} plain checks"],
        ["pinocchio, structures rebuilt", rebuilt / 20, f"{rebuilt / 20 / check:.0f} plain checks"],
    ]
    return [
        (
            f"A Panda, a table and ten blocks; {count} random configurations, of which {agree} are"
            " judged as by pinocchio"
        ),
        "testing all pairs. *Another version*: a block hangs off the hand.",
        "",
        *markdown_table(
            ["", "µs", ""], [[str(a), microseconds(float(b)), str(c)] for a, b, c in rows]
        ),
    ]


def kinematics_rows(effort: Effort) -> list[str]:
    """Solve 200 reachable poses to 1 mm and 5 mrad."""
    scene = blocks_scene()
    limits = scene.joint_limits
    qs = np.random.default_rng(3).uniform(limits[:, 0], limits[:, 1], (200, len(limits)))
    targets = [scene.pose(TIP, relative_to="world", q=q) for q in qs]
    middle = limits.mean(axis=1)

    def solve(target: Any, restarts: int) -> Any:
        return inverse_kinematics(
            scene,
            TIP,
            target_pose=target,
            joints=ARM,
            q=middle,
            settings=IkSettings(
                restarts=restarts, position_tolerance=0.001, rotation_tolerance=0.005
            ),
        )

    rows = []
    for restarts in (0, 25):
        runs = [
            lambda target=target, restarts=restarts: solve(target, restarts) for target in targets
        ]
        times = least_times(runs, effort.rounds)
        solved = sum(run().status.name == "SOLVED" for run in runs)
        spread = sorted(times)
        rows.append(
            [
                f"up to {restarts} restarts",
                f"{solved} of {len(targets)}",
                microseconds(statistics.fmean(times)),
                microseconds(spread[len(spread) // 2]),
                microseconds(spread[int(0.95 * len(spread))]),
            ]
        )
    return [
        (
            f"{len(targets)} poses of the Panda's tip at random configurations, to 1 mm and 5 mrad,"
            " from the middle of the"
        ),
        "limits.",
        "",
        *markdown_table(["", "solved", "mean µs", "median µs", "95 % µs"], rows),
    ]


@dataclass(frozen=True)
class Runs:
    """Runs of one method for a query."""

    seconds: list[float]
    solved: int
    valid: int
    lengths: list[float]

    def row(self, query: str, name: str) -> list[str]:
        """Return the row of the table."""
        spread = sorted(self.seconds)
        count = len(spread)
        return [
            query,
            name,
            f"{1e3 * statistics.median(spread):.2f}",
            f"{1e3 * spread[int(0.9 * (count - 1))]:.2f}",
            f"{self.solved} of {count}",
            f"{self.valid} of {count}",
            f"{statistics.median(self.lengths):.1f}" if self.lengths else "",
        ]


def run_query(query: Query, solve: Callable[[int], Any], effort: Effort, repeats: int) -> Runs:
    """Run a method for a query with each seed, and recheck its paths."""
    plain = query.world(0.0)
    seconds, lengths = [], []
    solved = valid = 0
    for seed in range(effort.seeds):
        seconds.append(least_times([lambda seed=seed: solve(seed)], repeats)[0])
        path = solve(seed)
        if path is None:
            continue
        solved += 1
        valid += recheck_path(plain, path, resolution=CHECK_RESOLUTION, tool_frame=TIP).is_ok
        lengths.append(float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()))
    return Runs(seconds, solved, valid, lengths)


def query_rows(effort: Effort) -> list[str]:
    """Answer the wall and cubby queries by our search, and by OMPL on our checks."""
    with_ompl = importlib.util.find_spec("ompl") is not None
    rows = []
    for query in (wall_query(), cubby_query()):
        world = query.world(MARGIN)

        def ours(
            seed: int, cuts: int, proved: bool, query: Query = query, world: CollisionWorld = world
        ) -> Any:
            result = search_path(
                world,
                ARM,
                start=query.start,
                goals=query.goal,
                settings=PathSettings(
                    seed=seed,
                    step=STEP,
                    resolution=RESOLUTION,
                    shortcut_iterations=cuts,
                    proved=proved,
                ),
            )
            return result.path if result.status.name == "SOLVED" else None

        for name, cuts, proved in (
            ("search", 0, False),
            ("search, proved", 0, True),
            ("search, 100 cuts", 100, False),
            ("search, 100 cuts, proved", 100, True),
        ):
            runs = run_query(
                query, lambda seed, c=cuts, p=proved: ours(seed, c, p), effort, effort.repeats
            )
            rows.append(runs.row(query.name, name))
        if with_ompl:
            from support.ompl_queries import OmplPlanner

            planner = OmplPlanner(query, world, step=STEP, resolution=RESOLUTION)
            for name, simplify in (
                ("OMPL RRT-Connect, our edges", False),
                ("the same, simplified", True),
            ):
                runs = run_query(
                    query, lambda _, p=planner, s=simplify: p.solve(simplify=s), effort, 1
                )
                rows.append(runs.row(query.name, name))
    about_ompl = (
        "OMPL's random numbers belong to its process, so its runs have no seeds, and each counts"
        " once."
        if with_ompl
        else "OMPL is not installed, and left out."
    )
    return [
        (
            f"{effort.seeds} seeds each. *Wall*: between grasps from above on both sides of a wall"
            " of 34 cm, among the ten"
        ),
        (
            "blocks. *Cubby*: over that wall into a box that is open towards the arm, grasping"
            " horizontally. Edges are"
        ),
        (
            f"checked at {RESOLUTION} rad with a margin of {1000 * MARGIN:g} mm; *valid* is what"
            " `recheck_path` says of"
        ),
        (
            f"the path at {CHECK_RESOLUTION} rad and 1 mm of tool travel, without the margin."
            " Lengths are in radians."
        ),
        about_ompl,
        "",
        *markdown_table(["", "by", "median ms", "90 % ms", "solved", "valid", "length"], rows),
    ]


def page(effort: Effort) -> str:
    """Measure everything and return it as a Markdown page."""
    sections = {
        "State checks and versions": collision_rows,
        "Inverse kinematics": kinematics_rows,
        "Motion queries": query_rows,
    }
    lines = [
        "# Motion: checks, inverse kinematics, queries",
        "",
        (
            "CPU times on one of two shared cores, the best of several: compare the ratios. Written"
            " by"
        ),
        "`python tests/benchmarks/motion_table.py --out docs/results/tables/motion.md`.",
    ]
    for title, measure in sections.items():
        lines += ["", f"## {title}", "", *measure(effort)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the page, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="few configurations, seeds and rounds")
    arguments = parser.parse_args()
    text = page(QUICK if arguments.quick else FULL)
    deliver(text, arguments.out)


if __name__ == "__main__":
    main()
