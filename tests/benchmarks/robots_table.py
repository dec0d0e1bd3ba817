"""The demo goal, planned, validated and simulated with every built-in robot, as page and picture.

Run by hand: ``python tests/benchmarks/robots_table.py [--out docs/results/tables/robots.md]
[--picture docs/images/robots.jpg] [--robots panda iiwa] [--seeds 0 1 2]``. Three blocks go to a
tower; also towers and rows of one to four blocks are planned and checked.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_head, table_parser

import tmkit as tk

GOAL = "(and (on a b) (on b c))"

HEAD = """# Robots: one goal on each

Three blocks go to a tower, `(and (on a b) (on b c))`, from the same places on the table; only the
scene and `--robot` differ. Planning time is the median of the clock on two shared cores. Errors are
the largest of all blocks and seeds in pybullet. *Towers and rows*: goals of one to four blocks with
a valid plan. Written by
`python tests/benchmarks/robots_table.py --out docs/results/tables/robots.md`.
"""
"""First lines of the table."""
SOURCES = {
    "panda": ("Franka Emika Panda", "pybullet_data"),
    "iiwa": ("KUKA LBR iiwa", "pybullet_data"),
    "ur5": ("Universal Robots UR5", "example-robot-data"),
    "xarm": ("UFACTORY xArm 6", "pybullet_data"),
    "baxter": ("Rethink Baxter, right arm", "example-robot-data"),
}


@dataclass(frozen=True)
class Row:
    """Results of one robot on the demo and on the other problems."""

    robot: str
    hand: str
    joints: int
    seconds: list[float]
    planned: int
    checked: int
    played: int
    runs: int
    millimetres: float
    degrees: float
    others: int
    others_of: int


def goals(blocks: int) -> list[str]:
    """Return the goals of a tower and of a row."""
    names = "abcd"[:blocks]
    tower = [f"(on {a} {b})" for a, b in itertools.pairwise(names)] + [
        f"(ontable {names[-1]} table__0__0)"
    ]
    row = [f"(ontable {name} table__0__{i - blocks // 2})" for i, name in enumerate(names)]
    return [f"(and {' '.join(facts)})" for facts in (tower, row)]


def run(robot: str, seeds: list[int], picture: Path) -> Row:
    """Try one robot."""
    scene = tk.load_scene(f"{robot}_table", "blocks3")
    arm = tk.load_manipulator(robot)
    seconds, counts, worst = [], [0, 0, 0], [0.0, 0.0]
    for seed in seeds:
        began = time.perf_counter()
        result = tk.plan(scene, domain="blocks", goal=GOAL, robot=arm, seed=seed)
        seconds.append(time.perf_counter() - began)
        if result.plan is None:
            print(robot, seed, result.explanation, file=sys.stderr)
            continue
        check = tk.validate_plan(result.plan)
        report = tk.simulate(result.plan, picture=picture if seed == seeds[0] else None)
        counts = [counts[0] + 1, counts[1] + check.is_valid, counts[2] + report.is_successful]
        worst = [max(worst[0], report.worst_position), max(worst[1], report.worst_rotation)]
        for problem in (*check.problems, *report.notes):
            print(robot, seed, problem, file=sys.stderr)
    good = tried = 0
    for blocks, seed in itertools.product((1, 2, 3, 4), seeds):
        for goal in goals(blocks):
            tried += 1
            laid = tk.load_scene(f"{robot}_table", f"blocks{blocks}")
            plan = tk.plan(laid, domain="blocks", goal=goal, robot=arm, seed=seed).plan
            good += plan is not None and tk.validate_plan(plan).is_valid
    hand = "suction cup" if arm.gripper_kind == "suction" else "two fingers"
    return Row(
        robot,
        hand,
        len(arm.joints),
        seconds,
        *counts,
        len(seeds),
        1000 * worst[0],
        math.degrees(worst[1]),
        good,
        tried,
    )


def table_of(rows: list[Row]) -> str:
    """Return the results as a Markdown page."""
    lines = [
        HEAD,
        *markdown_head(
            "`--robot` | robot | described in | hand | joints | planning | planned | valid |"
            " simulated | worst error | towers and rows"
        ),
    ]
    for row in rows:
        name, source = SOURCES[row.robot]
        counts = " | ".join(
            f"{number} of {row.runs}" for number in (row.planned, row.checked, row.played)
        )
        lines.append(
            f"| `{row.robot}` | {name} | {source} | {row.hand} | {row.joints} |"
            f" {statistics.median(row.seconds):.2f} s | {counts} | {row.millimetres:.1f} mm,"
            f" {row.degrees:.1f}° | {row.others} of {row.others_of} |"
        )
    return "\n".join(lines) + "\n"


def grid_of(pictures: list[Path], file: Path) -> None:
    """Write the pictures side by side into one JPEG."""
    from PIL import Image

    width, height, columns = 480, 360, 3
    grid = Image.new("RGB", (width * columns, height * math.ceil(len(pictures) / columns)), "white")
    for number, path in enumerate(pictures):
        with Image.open(path) as picture:
            small = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
        grid.paste(small, (width * (number % columns), height * (number // columns)))
    grid.save(file, quality=85)


def main() -> int:
    """Run the table."""
    parser = table_parser(__doc__)
    parser.add_argument("--picture", type=Path, default=None, help="JPEG to write")
    parser.add_argument("--robots", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pictures = [Path(folder, f"{robot}.png") for robot in arguments.robots]
        rows = []
        for robot, picture in zip(arguments.robots, pictures, strict=True):
            rows.append(run(robot, arguments.seeds, picture))
            print(rows[-1], file=sys.stderr, flush=True)
        if arguments.picture is not None:
            grid_of([picture for picture in pictures if picture.exists()], arguments.picture)
    text = table_of(rows)
    deliver(text, arguments.out)
    return 0 if all(row.checked == row.runs and row.others == row.others_of for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
