"""The task layer's costs: planning with its processes, replanning, states; one table of medians.

Run by hand: ``python tests/benchmarks/task_layer_table.py [--runs 15]``. Times of planning are of
the processor, of all processes, Fast Downward's and its translator's too; the translator is loaded,
each translation is made anew. Replanning is ``forbid`` and ``search`` after one learned constraint,
where the task is kept, and ``prepare`` and ``search`` where it is translated again. States are
those of 120 objects after one reparent: three blocks with the locations on a table, and 120 objects
on the table of a kitchen. Objects come to a task that was prepared with room for them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.kitchen import ROBOT, cook_goal, kitchen, stove_goal
from support.processor_time import processor_seconds

import tmkit as tk
from tmkit.graph import AttachedShape, Box
from tmkit.pddl import Fact, GroundAction
from tmkit.tamp import load_planning_domain
from tmkit.tamp.domains.state_derivation import StateDeriver
from tmkit.task_planning import FastDownward, fast_downward


def median(
    work: Callable[[], object], runs: int, clock: Callable[[], float] = processor_seconds
) -> float:
    """Return the median of the seconds that some work takes; the first two runs do not count."""
    taken = []
    for _ in range(runs + 2):
        fast_downward.clear_translation_cache()
        began = clock()
        work()
        taken.append(clock() - began)
    return statistics.median(taken[2:])


def planning(runs: int) -> None:
    """Print the costs of plans of the kitchen."""
    for name, blocks, goal in (("stove 4", 4, stove_goal(4)), ("cook 3", 3, cook_goal(3))):
        scene = kitchen(blocks)

        def plan(scene: tk.SceneGraph = scene, goal: str = goal) -> tk.PlanResult:
            return tk.plan(scene, domain="kitchen", goal=goal, robot=ROBOT)

        named = plan().statistics
        by = f"{named.task_planner} ({named.task_search})"
        print(f"{name} by {by}: {median(plan, runs) * 1000:.0f} ms of processor time")


def replanning(runs: int) -> None:
    """Print the cost of a search after one learned constraint."""
    robot = tk.load_manipulator(ROBOT)
    scene = kitchen(4)
    domain = load_planning_domain("kitchen", robot=robot)
    problem = domain.problem(scene, scene.zero_configuration(), stove_goal(4))
    planner = FastDownward()
    task = planner.prepare(problem)
    action = next(step for step in planner.search(task).steps if step.name == "pick")
    context = [fact for fact in problem.init if fact.arguments[:1] == action.arguments[:1]]

    def again(action: GroundAction = action) -> None:
        planner.search(task.forbid(action, context))

    print(
        "forbid:"
        f" {median(lambda: task.forbid(action, context), runs, time.process_time) * 1000:.2f} ms"
    )
    print(f"forbid and search: {median(again, runs) * 1000:.0f} ms of processor time", end=", ")
    print(f"{median(again, runs, time.perf_counter) * 1000:.0f} ms")
    print(
        "prepare and search:"
        f" {median(lambda: planner.search(planner.prepare(problem)), runs) * 1000:.0f} ms"
    )


def states(runs: int) -> None:
    """Print the cost of a state after one reparent."""
    robot = tk.load_manipulator("panda")
    crowd = tk.load_scene("panda_table")
    cube = [AttachedShape(Box([0.03, 0.03, 0.05]))]
    for k in range(120):
        pose = tk.Pose([(k % 12 - 5.5) * 0.05, (k // 12 - 4.5) * 0.09, 0.05])
        crowd = crowd.add_frame(
            f"o{k}", "table", pose=pose, joint=tk.Free(), classes=["movable"], shapes=cube
        )
    for name, scene, object in (
        ("blocks", tk.load_scene("panda_table", "blocks3"), "a"),
        ("kitchen", crowd, "o3"),
    ):
        q = robot.ready_configuration(scene)
        domain = load_planning_domain(name, robot=robot)
        deriver = StateDeriver(domain, domain.semantics.objects(scene))
        held = scene.reparent(object, "panda_hand", q=q)
        before = deriver.derive(scene, q)

        def derive(
            deriver: Any = deriver, held: Any = held, q: Any = q, before: Any = before
        ) -> None:
            for _ in range(100):
                deriver.derive(held, q, before)

        taken = median(derive, runs, time.process_time) * 10000
        print(f"state of {len(deriver.objects)} objects, {name}: {taken:.1f} us")


def objects(runs: int) -> None:
    """Print the cost of a new object."""
    robot = tk.load_manipulator("panda")
    scene = tk.load_scene("panda_table", "blocks3")
    domain = load_planning_domain("blocks", robot=robot)
    problem = domain.problem(scene, scene.zero_configuration(), "(on a b)")
    task = FastDownward().prepare(problem, spare={"block": 1})
    state = problem.init.change(
        add=[Fact.of("on", "d", "a"), Fact.of("clear", "d")], delete=[Fact.of("clear", "a")]
    )
    comes = median(lambda: task.with_object("d", "block", state), runs, time.process_time)
    anew = median(lambda: FastDownward().prepare(problem), runs)
    print(
        f"an object comes to {len(problem.objects)}: {comes * 1000:.1f} ms, prepared anew"
        f" {anew * 1000:.0f} ms"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    planning(runs)
    replanning(runs)
    states(runs)
    objects(runs)


if __name__ == "__main__":
    main()
