"""Path search on MotionBenchMaker's problems, beside vamp in the same run.

Run by hand: ``python tests/benchmarks/search_table.py RESOURCES [--robots panda,ur5,fetch,baxter]
[--sets cage,box] [--first 26] [--problems 100] [--rounds 3] [--out
docs/results/tables/search.md]``. RESOURCES is the folder ``resources`` of the source distribution
of ``vamp-planner``, with each ``problems.tar.bz2`` unpacked where it is. The Panda is tmkit's own;
the other robots are the URDFs and SRDFs of that folder. Where the package ``vamp`` is not installed
OMPL's RRT-Connect on our checker is the peer. Times are CPU times of calls from Python, the best of
several rounds in which the planners take turns.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison.motion_problems import MotionProblem, read_motion_problem
from benchmarks.tables import deliver, least_times, markdown_table, table_parser

import tmkit as tk
from tmkit.motion import (
    CollisionWorld,
    PathQuery,
    PathSettings,
    PathStatus,
    recheck_path,
    search_path,
)
from tmkit.motion.ompl.planner import OmplPlanner
from tmkit.robots.robot_files import find_manipulators

ARMS = {
    "ur5": (
        "shoulder_pan_joint shoulder_lift_joint elbow_joint wrist_1_joint wrist_2_joint"
        " wrist_3_joint"
    ),
    "fetch": (
        "torso_lift_joint shoulder_pan_joint shoulder_lift_joint upperarm_roll_joint"
        " elbow_flex_joint forearm_roll_joint wrist_flex_joint wrist_roll_joint"
    ),
    "baxter": " ".join(
        f"{side}_{joint}"
        for side in ("left", "right")
        for joint in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")
    ),
}
TOOLS = {"ur5": "ee_link", "fetch": "gripper_link", "baxter": "left_gripper"}
OURS: dict[str, dict[str, Any]] = {"proved": {"shortcut_iterations": 0}, "proved, simplified": {}}


@dataclass
class Runs:
    """Results of one planner on a set."""

    seconds: list[float] = field(default_factory=list)  # infinite without a path
    lengths: dict[int, float] = field(default_factory=dict)  # [rad], by the number of the problem
    valid: set[int] = field(default_factory=set)

    def spread(self) -> tuple[float, float]:
        """The median and 95 % in milliseconds."""
        median, most = np.percentile(self.seconds, [50, 95], method="higher")
        return 1e3 * float(median), 1e3 * float(most)


def robot_of(name: str, resources: Path) -> tuple[tk.SceneGraph, Any]:
    """Return the scene with the robot alone, and its joints that move and its tool."""
    if name == "panda":
        scene = tk.load_scene("panda_alone")
        return scene, find_manipulators(("panda",), scene)[0]
    folder = resources / name
    scene = tk.load_scene(str(folder / f"{name}.urdf"), str(folder / f"{name}.srdf"))
    return scene, SimpleNamespace(joints=tuple(ARMS[name].split()), tool=TOOLS[name])


def problems_of(
    folder: Path, scene: tk.SceneGraph, arm: Any, count: int, first: int = 1
) -> Iterator[MotionProblem]:
    """Read the problems of a set, from a number on up to another."""
    for file in sorted(folder.glob("scene[0-9]*.yaml"))[first - 1 : count]:
        request = file.with_name(file.name.replace("scene", "request"))
        yield read_motion_problem(file, request, scene=scene, arm=arm)


class Vamp:
    """vamp's planner for a robot, whose samples are the same for each problem."""

    name = "vamp"

    def __init__(self, robot: str) -> None:
        import vamp  # type: ignore[import-not-found]

        self._vamp = vamp
        configured = vamp.configure_robot_and_planner_with_kwargs(robot, "rrtc")
        self._robot, self._plan, self._settings, self._simplify = configured

    def is_valid(self, problem: MotionProblem, name: str) -> bool:
        """Return whether both ends are free by its spheres."""
        environment, indices = self._environment(problem, name), self._indices(problem)
        ends = (problem.start, *problem.goals)
        return all(self._robot.validate(end[indices], environment) for end in ends)

    def of(self, problem: MotionProblem, name: str) -> Callable[[bool], Any]:
        """Return its search of full configurations (k, n_joints)."""
        indices = self._indices(problem)
        start, goals = problem.start[indices], problem.goals[:, indices]
        environment = self._environment(problem, name)

        def plan(is_simplified: bool) -> Any:
            sampler = self._robot.halton()
            result = self._plan(start, goals, environment, self._settings, sampler)
            if result.solved and is_simplified:
                result = self._robot.simplify(result.path, environment, self._simplify, sampler)
            return result.path if result.solved else None

        return plan

    def path(self, result: Any, problem: MotionProblem) -> Any:
        """Return full configurations (k, n_joints) of the path."""
        rows = np.tile(problem.start, (len(result), 1))
        rows[:, self._indices(problem)] = result.numpy()
        return rows

    def _indices(self, problem: MotionProblem) -> list[int]:
        return [problem.scene.joint_names.index(joint) for joint in self._robot.joint_names()]

    def _environment(self, problem: MotionProblem, name: str) -> Any:
        """Return the objects as vamp's reader does: cylinders as capsules, boxes as cuboids."""
        environment, scene = self._vamp.Environment(), problem.scene
        for frame in scene.frame_names:
            for attached in scene.shapes(frame) if "/" in frame else ():
                shape, pose = attached.shape, scene.pose(frame, q=problem.start) @ attached.pose
                place, turn = pose.translation, Rotation.from_matrix(pose.rotation).as_euler("xyz")
                sizes = list(shape.dimensions)
                if shape.kind == "sphere":
                    environment.add_sphere(self._vamp.Sphere(place, sizes[0]))
                elif shape.kind == "box":
                    environment.add_cuboid(
                        self._vamp.Cuboid(place, turn, [0.5 * size for size in sizes])
                    )
                elif name.startswith("box"):
                    environment.add_cuboid(
                        self._vamp.Cuboid(place, turn, [sizes[0], sizes[0], 0.5 * sizes[1]])
                    )
                else:
                    environment.add_capsule(self._vamp.Cylinder(place, turn, sizes[0], sizes[1]))
        return environment


class Ompl:
    """OMPL's RRT-Connect on our checker, without validation of its paths."""

    name = "OMPL"

    def is_valid(self, problem: MotionProblem, _: str) -> bool:
        """Return whether there is a goal: its ends are checked already."""
        return len(problem.goals) > 0

    def of(self, problem: MotionProblem, _: str) -> Callable[[bool], Any]:
        """Return its search of full configurations (k, n_joints)."""
        world = CollisionWorld(problem.scene)
        query = PathQuery(world, problem.arm.joints, problem.start, problem.goals, resolution=0.02)
        planners = {
            choice: OmplPlanner("RRTConnect", shortcut_steps=100 * choice)
            for choice in (False, True)
        }

        def plan(is_simplified: bool) -> Any:
            result = planners[is_simplified].search(query)
            return result.path if result.status is PathStatus.SOLVED else None

        return plan

    def path(self, result: Any, _: MotionProblem) -> Any:
        """Return the path."""
        return result


def measure(
    name: str, problems: list[MotionProblem], peers: list[Any], rounds: int
) -> tuple[dict[str, Runs], int]:
    """Run all on the problems of a set; also return how many have ends that all take as valid."""
    runs: dict[str, Runs] = {}
    count = 0
    for problem in problems:
        world = CollisionWorld(problem.scene)

        def ours(
            options: dict[str, Any], problem: MotionProblem = problem, world: CollisionWorld = world
        ) -> Any:
            return search_path(
                world,
                problem.arm.joints,
                start=problem.start,
                goals=problem.goals,
                settings=PathSettings(**options),
            )

        first = ours({"max_iterations": 0})
        if first.status.name.startswith(("START", "GOAL")):
            continue
        if not all(peer.is_valid(problem, name) for peer in peers):
            continue
        count += 1
        solves: dict[str, Callable[[], Any]] = {
            label: partial(ours, options) for label, options in OURS.items()
        }
        owner: dict[str, Any] = {}
        for peer in peers:
            plan = peer.of(problem, name)
            solves |= {
                peer.name: partial(plan, False),
                f"{peer.name}, simplified": partial(plan, True),
            }
            owner |= dict.fromkeys((peer.name, f"{peer.name}, simplified"), peer)
        results = {label: solve() for label, solve in solves.items()}
        for label, result in results.items():
            if label in OURS:
                results[label] = result.path if result.status is PathStatus.SOLVED else None
            elif result is not None:
                results[label] = owner[label].path(result, problem)
        solved = {label: solve for label, solve in solves.items() if results[label] is not None}
        times = dict(zip(solved, least_times(list(solved.values()), rounds), strict=True))
        for label, result in results.items():
            label_runs = runs.setdefault(label, Runs())
            label_runs.seconds.append(times.get(label, math.inf))
            if result is None:
                print(
                    f"{name}: {label} finds no path from {problem.start.tolist()}", file=sys.stderr
                )
                continue
            label_runs.lengths[count] = float(np.linalg.norm(np.diff(result, axis=0), axis=1).sum())
            if recheck_path(world, result, resolution=0.003, tool_frame=problem.arm.tool).is_ok:
                label_runs.valid.add(count)
    return runs, count


def rows_of(name: str, runs: dict[str, Runs], count: int, peers: list[str]) -> Iterator[list[str]]:
    """The rows of a set in the table."""
    for label, label_runs in runs.items():
        if not label_runs.seconds:
            continue
        times = label_runs.spread()
        ratios = []
        lengths = [list(label_runs.lengths.values())]
        if peers:  # and where the path of the first of them is valid
            peer_runs = runs[f"{peers[0]}, simplified" if "simplified" in label else peers[0]]
            lengths += [
                [
                    label_runs.lengths[number]
                    for number in peer_runs.valid & label_runs.lengths.keys()
                ]
            ]
        for peer in peers if label in OURS else []:
            peer_runs = runs[f"{peer}, simplified" if "simplified" in label else peer]
            ratios.append(
                " / ".join(f"{a / b:.1f}" for a, b in zip(times, peer_runs.spread(), strict=True))
            )
        yield [
            name,
            label,
            " / ".join(f"{value:.2f}" for value in times),
            "; ".join(ratios),
            f"{len(label_runs.lengths)} of {count}",
            f"{len(label_runs.valid)} of {len(label_runs.lengths)}",
            "; ".join(f"{statistics.fmean(some):.2f}" for some in lengths if some),
        ]


def main() -> None:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("resources", type=Path)
    parser.add_argument("--robots", default="panda,ur5,fetch,baxter")
    parser.add_argument("--first", type=int, default=1, help="number of the first problem")
    parser.add_argument("--sets", default="", help="what the names of the sets begin with")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=["vamp", "ompl", "none"], default=None)
    arguments = parser.parse_args()
    chosen = arguments.peer or ("vamp" if importlib.util.find_spec("vamp") else "ompl")
    rows: list[list[str]] = []
    for robot in arguments.robots.split(","):
        peers: list[Any] = [] if chosen == "none" else [Ompl()]
        if chosen == "vamp":
            peers = [Vamp(robot)]
        scene, arm = robot_of(robot, arguments.resources)
        for folder in sorted((arguments.resources / robot / "problems").iterdir()):
            name = folder.name.removesuffix(f"_{robot}")
            if name.startswith(tuple(arguments.sets.split(","))):
                problems = list(
                    problems_of(folder, scene, arm, arguments.problems, arguments.first)
                )
                runs, count = measure(name, problems, peers, arguments.rounds)
                rows += rows_of(f"{robot} {name}", runs, count, [peer.name for peer in peers])
                print(*map(" | ".join, rows[-len(runs) :]), sep="\n", file=sys.stderr, flush=True)
    if not rows:
        parser.error(f"no problem of these sets in '{arguments.resources}' has valid ends")
    head = ["set", "by", "median / 95 % ms", "ratio", "solved", "valid", "length"]
    text = "\n".join([HEAD, "", *markdown_table(head, rows)]) + "\n"
    deliver(text, arguments.out)


HEAD = """# Path search on MotionBenchMaker

CPU times of calls from Python, the best of three rounds in which the planners take turns; made by
`python tests/benchmarks/search_table.py RESOURCES --first 26`, where RESOURCES is the folder
`resources` of the source distribution of vamp-planner 0.6.4, which vamp was built from. Problems 1
to 25 of each set served to choose the method. vamp runs with its own settings, for which it
allocates memory for 1,000,000 samples at each call. Our Panda is tmkit's own, the other robots are
the URDFs and SRDFs of that folder, and Baxter moves both arms (14 joints). *Ratio*: of our median
and 95 % to those of vamp, each without or with its simplification. *Solved*: of the problems whose
ends are valid by the geometry of both. *Valid*: by `recheck_path` at 0.003 rad and 1 mm of tool
travel, by our hulls; vamp's robots are spheres. Lengths are means, in radians: of all; and where
vamp's path is valid, since one that cuts through a hull is shorter."""


if __name__ == "__main__":
    main()
