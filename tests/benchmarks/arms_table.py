"""Two Baxter arms sort eight objects at once: the makespan of schedules, and that of one arm alone.

``python tests/benchmarks/arms_table.py [--seeds K] [--improve N] [--simulate]`` prints a row for
each random scene: seconds of the right arm alone, of both arms one step after the other, and of
both at once; the part of the first that the last is; and the processor's seconds of planning and
scheduling. With ``--improve`` also the seconds of both at once after so many iterations that make
the makespan small, and the processor's seconds of these. Every schedule is validated.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

import tmkit as tk
from tmkit.plans import Plan, Schedule
from tmkit.spatial import Pose
from tmkit.tamp import parts, schedule_plan

__all__ = ["DOMAIN", "eight_objects", "make_plan"]

SIDES = {"right_tray": -0.36, "left_tray": 0.36}
_PROBLEM = """
(define (problem sort)
  (:domain sort)
  (:init {ways})
  (:goal (and {goal}))
  (:metric minimize (total-cost)))
"""


class Ways(parts.TwoArms):
    """Cost of the problem: an arm pays for a region that is nearer to the other arm."""

    pddl: ClassVar[str] = """
    (:requirements :typing :equality :negative-preconditions :action-costs)
    (:functions (total-cost) - number (way ?arm - arm ?r - region) - number)
    (:extend (place) :effect (increase (total-cost) (way ?arm ?r)))
    (:extend (hand-over) :effect (increase (total-cost) 100))
    """


DOMAIN = parts.compose_domain("sort", [Ways])


def eight_objects(seed: int) -> tk.SceneGraph:
    """Return Baxter before eight bricks on a table, with a tray on either side for each arm."""
    rng = np.random.default_rng(seed)
    scene = tk.load_scene("baxter_trays")
    for frame in ("a", "right_tray", "left_tray"):
        scene = scene.remove_frame(frame)
    for name, y, width in (("mixed", 0.0, 0.4), *((name, y, 0.24) for name, y in SIDES.items())):
        plate = tk.AttachedShape(tk.Box([0.24, width, 0.01]))
        scene = scene.add_frame(
            name, "table", pose=Pose([-0.1, y, 0.03]), classes=["surface"], shapes=[plate]
        )
    brick = tk.AttachedShape(tk.Box([0.04, 0.04, 0.06]))
    spots = [(x, y) for y in (-0.14, -0.05, 0.05, 0.14) for x in (-0.06, 0.06)]
    for number, spot in enumerate(rng.permutation(spots)):
        x, y = spot + rng.uniform(-0.01, 0.01, 2)
        pose = Pose.from_rpy([x, y, 0.035], [0.0, 0.0, rng.uniform(-0.3, 0.3)])
        scene = scene.add_frame(
            f"b{number}", "mixed", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[brick]
        )
    return scene


def make_plan(
    scene: tk.SceneGraph, arms: list[tk.Manipulator], seed: int, *, improve: int = 0
) -> tuple[Plan, float]:
    """Return a plan that puts four objects on each tray, and its processor time [s]."""
    q = scene.configuration({joint: value for arm in arms for joint, value in arm.ready.items()})
    nearest_trays = {"baxter": "right_tray", "baxter_left": "left_tray"}
    costs = " ".join(
        f"(= (way {a.name} {t}) {1 if nearest_trays[a.name] == t else 10})"
        for a in arms
        for t in (*SIDES, "mixed")
    )
    goal = " ".join(f"(on b{number} {list(SIDES)[number % 2]})" for number in range(8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sort.pddl"
        path.write_text(_PROBLEM.format(ways=costs, goal=goal), encoding="utf-8")
        began = time.process_time()
        result = tk.plan(
            scene,
            q,
            domain=DOMAIN,
            goal=path,
            robot=arms,
            seed=seed,
            options=tk.PlanningOptions(
                time_limit=1000.0, arms_at_once=len(arms) > 1, cost="makespan", improve=improve
            ),
        )
    assert result.plan is not None, result.explanation
    return result.plan, time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--improve", type=int, default=0)
    parser.add_argument("--simulate", action="store_true")
    options = parser.parse_args()
    arms = [tk.load_manipulator("baxter"), tk.load_manipulator("baxter_left")]
    print(
        "scene  one arm  both in turn  both at once  of one arm  planning s  scheduling s "
        " simulated  improved  s"
    )
    shares = []
    for seed in range(options.seeds):
        scene = eight_objects(seed)
        alone, _ = make_plan(scene, arms[:1], seed)
        both, planning = make_plan(scene, arms, seed)
        at_once, both = both, replace(both, starts=(), joined=())
        began = time.process_time()
        assert schedule_plan(both).starts == at_once.starts
        scheduling = time.process_time() - began
        report = tk.validate_plan(at_once, domain=DOMAIN)
        assert report.is_valid, report.problems
        seconds = [Schedule.of(plan).makespan for plan in (alone, both, at_once)]
        shares.append(seconds[2] / seconds[0])
        improved = "-"
        if options.improve:
            better, took = make_plan(scene, arms, seed, improve=options.improve)
            assert tk.validate_plan(better, domain=DOMAIN).is_valid
            improved = f"{Schedule.of(better).makespan:.1f}  {took:.0f}"
        simulated = tk.simulate(at_once).is_successful if options.simulate else "-"
        row = (
            f"{seed:5}  {seconds[0]:7.1f}  {seconds[1]:12.1f}  {seconds[2]:12.1f} "
            f" {shares[-1]:10.2f}"
        )
        print(f"{row}  {planning:10.2f}  {scheduling:12.2f}  {simulated}  {improved}", flush=True)
    print(f"mean {np.mean(shares):.2f}, worst {max(shares):.2f}")


if __name__ == "__main__":
    main()
