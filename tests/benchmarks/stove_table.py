"""Stove tasks of an iiwa: planning times, success and simulation, in one table.

Run by hand: ``python tests/benchmarks/stove_table.py [--out docs/results/tables/stove.md] [--quick]
[--physics]``. The scene is the one on which PDDLStream was measured: blocks of 0.06 m x 0.06 m x
0.2 m on the floor around the arm, a stove and a sink of 0.25 m x 0.25 m, suction at the flange.
Times are wall times of ``tk.plan`` without imports, median over the seeds. Beside each stands the
time of Fast Downward alone (translator and search, as programs) on the first task, measured in the
same run before each seed, since it is most of it and drifts with the load of the machine does; and
the processor time of all processes, which drifts less. Every plan is checked; with ``--physics``
some are played in pybullet. At the end two workers plan at once, and their plans must have the same
bytes as those made alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, table_parser
from support.kitchen import ROBOT, cook_goal, kitchen, stove_goal
from support.processor_time import processor_seconds

import tmkit as tk
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.pddl import Problem
from tmkit.plans.plan_file import plan_to_dict
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult, PlanStatus, load_planning_domain
from tmkit.task_planning import FastDownward, fast_downward

T = TypeVar("T")
PHYSICS_SEEDS = 5  # of each problem that is played
POSITION_TOLERANCE = 0.005  # [m]
TIME_LIMIT = 120.0


@dataclass(frozen=True)
class Task:
    """A problem, its time aim beyond Fast Downward or in all, and the peer's time."""

    name: str
    kind: str
    blocks: int
    beyond: float | None
    aim: float | None
    peer: str

    @property
    def goal(self) -> str:
        """The goal in PDDL."""
        return stove_goal(self.blocks) if self.kind == "stove" else cook_goal(self.blocks)


TASKS = (
    Task("stove 1", "stove", 1, 0.05, None, "0.11 s, 10 of 10"),
    Task("stove 2", "stove", 2, 0.1, None, "0.26 s, 9 of 10"),
    Task("stove 3", "stove", 3, 0.15, None, "0.48 s, 10 of 10"),
    Task("stove 4", "stove", 4, 0.2, None, "2.9 s, 10 of 10"),
    Task("stove 5", "stove", 5, None, 0.6, "8.2 s, 2 of 5"),
    Task("stove 6", "stove", 6, None, 0.9, ""),
    Task("stove 8", "stove", 8, None, 2.0, ""),
    Task("cook 1", "cook", 1, None, 0.3, "0.20 s, 10 of 10"),
    Task("cook 2", "cook", 2, None, 0.6, "1.5 s, 5 of 5"),
    Task("cook 3", "cook", 3, None, 1.0, "3.2 s, 5 of 5"),
)


INTRODUCTION = """# Stove and sink: planning times

An iiwa with suction at its flange puts N blocks from the floor on a stove and goes home (*stove
N*), or washes N blocks on a sink, cooks them on the stove, and goes home (*cook N*); see
[Kitchen](../../howto/built_in_domains.md#kitchen). *Plan* is `tk.plan` without imports. *FD* is
Fast Downward's translator and first search alone, on the same task in the same run. Times are
medians in seconds.
About {load:.1f} processes compete for two processors, so the processor time of all processes says
more than the time of the clock (*wall*). *Met*: the aim is met by processor time, by wall time.
*Solved*: planned and valid. *Kept*: fraction of bookkeeping and of work outside the search, such as
loading the domain. The peer is PDDLStream (`adaptive`), by the clock, on this scene and machine
when that had less other work. Written by `python tests/benchmarks/stove_table.py --out
docs/results/tables/stove.md`.

| problem | solved | actions | plan, proc. | FD, proc. | plan, wall | FD, wall | slowest \
| aim | met | kept | peer |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Run:
    """A seed of one problem."""

    solved: bool
    checked: bool
    seconds: float
    alone: float
    processor: float
    processor_alone: float
    actions: int
    skeletons: int
    attempts: int
    phases: dict[str, float]
    digest: str
    note: str
    played: bool | None = None
    millimetres: float = math.nan


def digest_of(result: PlanResult) -> str:
    """Return the digest of a plan's file."""
    if result.plan is None:
        return ""
    text = json.dumps(plan_to_dict(result.plan), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def answer(task: Task, scene: SceneGraph, seed: int) -> PlanResult:
    """Plan one problem with one seed."""
    return tk.plan(
        scene,
        domain="kitchen",
        goal=task.goal,
        robot=ROBOT,
        seed=seed,
        options=tk.PlanningOptions(time_limit=TIME_LIMIT),
    )


def problem_of(scene: SceneGraph, goal: str) -> Problem:
    """Return the task that the task planner is given first."""
    arm = load_manipulator(ROBOT)
    domain = load_planning_domain("kitchen", robot=arm)
    return domain.problem(scene, arm.ready_configuration(scene), goal)


def measure_time(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result and the duration of some work [s]."""
    fast_downward.clear_translation_cache()  # each run is the first one of its task
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def run(task: Task, scene: SceneGraph, seed: int, *, play: bool) -> Run:
    """Plan, check, and if wanted play one problem with one seed."""
    planner, problem = FastDownward(follow_up_searches=()), problem_of(scene, task.goal)
    marks = [processor_seconds()]
    _, alone = measure_time(lambda: planner.solve(problem))
    marks.append(processor_seconds())
    result, seconds = measure_time(lambda: answer(task, scene, seed))
    marks.append(processor_seconds())
    processor_alone, processor = marks[1] - marks[0], marks[2] - marks[1]
    if result.plan is None:
        return Run(
            False,
            False,
            seconds,
            alone,
            processor,
            processor_alone,
            0,
            0,
            0,
            {},
            "",
            result.explanation,
        )
    report = tk.validate_plan(result.plan)
    played, millimetres, notes = None, math.nan, list(report.problems)
    if play:
        outcome = tk.simulate(
            result.plan, options=tk.SimulationOptions(position_tolerance=POSITION_TOLERANCE)
        )
        played = outcome.is_successful
        millimetres = 1000.0 * max(error.position for error in outcome.errors.values())
        notes += map(str, outcome.notes)
    counts = result.statistics
    return Run(
        True,
        report.is_valid,
        seconds,
        alone,
        processor,
        processor_alone,
        len(result.plan.steps),
        counts.skeletons,
        counts.attempts,
        {**counts.phase_seconds, "outside the run": seconds - counts.total_seconds},
        digest_of(result),
        "; ".join(notes),
        played,
        millimetres,
    )


def area_proof() -> tuple[float, str]:
    """Return the seconds and words of the proof that three blocks do not fit on a shelf for two."""
    scene = tk.load_scene("iiwa_kitchen")
    shelf = [AttachedShape(Box([0.2, 0.1, 0.02]))]
    scene = scene.add_frame(
        "shelf", "world", pose=Pose([0.0, 0.5, 0.01]), classes=["region"], shapes=shelf
    )
    for number in range(3):
        block = [AttachedShape(Box([0.1, 0.1, 0.1]))]
        pose = Pose([-0.6 + 0.15 * number, -0.5, 0.075])
        scene = scene.add_frame(f"b{number}", "floor", pose=pose, classes=["movable"], shapes=block)
    goal = "(and (on b0 shelf) (on b1 shelf) (on b2 shelf))"
    times = []
    for _ in range(5):
        result, seconds = measure_time(
            lambda: tk.plan(
                scene,
                domain="kitchen",
                goal=goal,
                robot=ROBOT,
                options=tk.PlanningOptions(suggest=False),
            )
        )
        assert result.status is PlanStatus.PROVED_UNSOLVABLE, result.explanation
        times.append(seconds)
    return statistics.median(times), result.explanation


def replanning(blocks: int) -> tuple[float, float]:
    """Return the seconds to plan a task anew, and after one constraint that was learned."""
    problem = problem_of(kitchen(blocks), stove_goal(blocks))
    planner = FastDownward()
    task, prepared = measure_time(lambda: planner.prepare(problem))
    task_plan, searched = measure_time(lambda: planner.search(task))
    again = []
    for step in task_plan.steps[:5]:
        state = [
            fact for fact in problem.init if step.arguments and step.arguments[0] in fact.arguments
        ]
        again.append(
            measure_time(lambda step=step, state=state: planner.search(task.forbid(step, state)))[1]
        )
    return prepared + searched, statistics.median(again)


def digests(work: tuple[Task, int]) -> str:
    """Return the digest of a plan made in a worker."""
    task, seed = work
    return digest_of(answer(task, kitchen(task.blocks), seed))


def same_bytes(wanted: Sequence[tuple[Task, int, str]]) -> int:
    """Return how many plans have other bytes when two workers make them at once."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        digests_by_run = list(pool.map(digests, [(task, seed) for task, seed, _ in wanted]))
    return sum(
        digest != other for (_, _, digest), other in zip(wanted, digests_by_run, strict=True)
    )


def row_of(task: Task, runs: Sequence[Run]) -> str:
    """Return the table's line of a problem."""
    solved = [trial for trial in runs if trial.solved and trial.checked]
    if not solved:
        return f"| {task.name} | 0 of {len(runs)} |{' |' * 8} {task.peer} |"
    seconds, processor, actions = (
        statistics.median([getattr(trial, key) for trial in solved])
        for key in ("seconds", "processor", "actions")
    )
    alone, processor_alone = (
        statistics.median([getattr(trial, key) for trial in runs])
        for key in ("alone", "processor_alone")
    )
    phases = {
        key: statistics.median([trial.phases[key] for trial in solved]) for key in solved[0].phases
    }
    bookkeeping = phases["bookkeeping"] + phases["outside the run"]
    aim = f"FD + {task.beyond:g}" if task.beyond is not None else f"{task.aim:g}"
    marks = [
        (
            "yes"
            if time <= (task.aim or base + (task.beyond or 0.0)) and len(solved) == len(runs)
            else "no"
        )
        for time, base in ((seconds, alone), (processor, processor_alone))
    ]
    worst = max(trial.seconds for trial in solved)
    return (
        f"| {task.name} | {len(solved)} of {len(runs)} | {actions:.0f} | {processor:.3f} |"
        f" {processor_alone:.3f} | {seconds:.3f} | {alone:.3f} | {worst:.2f} | {aim} | {marks[1]},"
        f" {marks[0]} | {bookkeeping / seconds:.0%} | {task.peer} |"
    )


def phases_of(runs: dict[Task, list[Run]]) -> list[str]:
    """Return the table of where the time goes, in milliseconds."""
    keys = next(
        (list(trial.phases) for trials in runs.values() for trial in trials if trial.solved), []
    )
    lines = [f"| problem | {' | '.join(keys)} |", f"|---|{'---|' * len(keys)}"]
    for task, trials in runs.items():
        solved = [trial for trial in trials if trial.solved]
        if solved:
            values = (
                1000.0 * statistics.median([trial.phases[key] for trial in solved]) for key in keys
            )
            lines.append(f"| {task.name} | {' | '.join(f'{value:.1f}' for value in values)} |")
    return lines


def page_of(runs: dict[Task, list[Run]], remarks: Sequence[str]) -> str:
    """Return the results as a Markdown page."""
    lines = [
        INTRODUCTION.format(load=os.getloadavg()[2]),
        *(row_of(task, trials) for task, trials in runs.items()),
        "",
        *(f"* {line}" for line in remarks),
        "",
        "Where the time goes, medians in milliseconds:",
        "",
        *phases_of(runs),
    ]
    missed = [
        f"* {task.name}, seed {seed}: {trial.note}"
        for task, trials in runs.items()
        for seed, trial in enumerate(trials)
        if trial.note and not (trial.solved and trial.checked and trial.played is not False)
    ]
    return "\n".join([*lines, *(["", "Misses:", "", *missed] if missed else [])]) + "\n"


def main() -> int:
    """Run the table."""
    parser = table_parser(__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="three seeds, without the largest problems"
    )
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds")
    parser.add_argument("--physics", action="store_true", help="play some plans of every problem")
    parser.add_argument("--only", nargs="+", default=None, help="names of problems")
    arguments = parser.parse_args()
    seeds = min(3, arguments.seeds) if arguments.quick else arguments.seeds
    tasks = [task for task in TASKS if not (arguments.quick and task.blocks > 4)]
    if arguments.only is not None:
        tasks = [task for task in tasks if task.name in arguments.only]
    answer(TASKS[0], kitchen(1), 0)  # does the imports on first use
    runs: dict[Task, list[Run]] = {task: [] for task in tasks}
    for seed in range(seeds):  # all problems in turn, so that other load affects all alike
        for task in tasks:
            play = arguments.physics and seed < PHYSICS_SEEDS
            trial = run(task, kitchen(task.blocks), seed, play=play)
            runs[task].append(trial)
            print(task.name, seed, trial, file=sys.stderr, flush=True)
    proof, words = area_proof()
    fresh, again = replanning(4)
    sample = [
        (task, seed, runs[task][seed].digest) for task in tasks for seed in range(min(2, seeds))
    ]
    changed = same_bytes(sample)
    played = [trial for trials in runs.values() for trial in trials if trial.played is not None]
    remarks = [
        (f"Three blocks of 0.1 m on 0.2 m x 0.1 m: proved impossible in {proof:.3f} s. “{words}”"),
        (
            f"A task plan of *stove 4* takes {fresh:.3f} s, and another after one learned"
            f" constraint in {again:.3f} s."
        ),
        (
            f"Two workers at once: {len(sample) - changed} of {len(sample)} plans have the same"
            " bytes as those made alone."
        ),
    ]
    if played:
        worst = max(trial.millimetres for trial in played)
        remarks.append(
            f"Played in pybullet: {sum(trial.played is True for trial in played)} of {len(played)}"
            f" plans with every block within {POSITION_TOLERANCE * 1000:.0f} mm of where the plan"
            f" puts it; the worst error is {worst:.2f} mm."
        )
    text = page_of(runs, remarks)
    deliver(text, arguments.out)
    everything = all(
        trial.solved and trial.checked and trial.played is not False
        for trials in runs.values()
        for trial in trials
    )
    return 0 if everything and not changed else 1


if __name__ == "__main__":
    sys.exit(main())
