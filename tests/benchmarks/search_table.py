"""Path search on MotionBenchMaker's problems, beside vamp in the same run.

Run by hand: ``python tests/benchmarks/search_table.py RESOURCES [--robots panda,ur5,fetch,baxter]
[--sets cage,box] [--problems 100] [--rounds 4] [--out docs/results/tables/search.md]``. RESOURCES
is the folder ``resources`` of the source distribution of ``vamp-planner``, with each
``problems.tar.bz2`` unpacked where it is. The Panda is tmkit's own, beside vamp; the other robots
are the URDFs and SRDFs of that folder, alone. Where the package ``vamp`` is not installed OMPL's
RRT-Connect on our checker is the peer. Times are CPU times of calls from Python, the best of
several rounds in which the planners take turns.
"""

from __future__ import annotations

import importlib.util
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
OURS: dict[str, dict[str, Any]] = {
    "search at 0.02": {"shortcut_iterations": 0, "proved": False},
    "proved": {"shortcut_iterations": 0},
    "proved, simplified": {},
}


@dataclass
class Runs:
    """Results of one planner on a set."""

    seconds: list[float] = field(default_factory=list)
    lengths: dict[int, float] = field(default_factory=dict)  # [rad], by the number of the problem
    valid: set[int] = field(default_factory=set)

    def spread(self) -> tuple[float, float]:
        """The median and 95 % in milliseconds."""
        return 1e3 * statistics.median(self.seconds), 1e3 * float(np.percentile(self.seconds, 95))


def robot_of(name: str, resources: Path) -> tuple[tk.SceneGraph, Any]:
    """Return the scene with the robot alone, and its joints that move and its tool."""
    if name == "panda":
        scene = tk.load_scene("panda_alone")
        return scene, find_manipulators(("panda",), scene)[0]
    folder = resources / name
    scene = tk.load_scene(str(folder / f"{name}.urdf"), str(folder / f"{name}.srdf"))
    return scene, SimpleNamespace(joints=tuple(ARMS[name].split()), tool=TOOLS[name])


def problems_of(
    folder: Path, scene: tk.SceneGraph, arm: Any, count: int
) -> Iterator[MotionProblem]:
    """Read the problems of a set."""
    for file in sorted(folder.glob("scene[0-9]*.yaml"))[:count]:
        request = file.with_name(file.name.replace("scene", "request"))
        yield read_motion_problem(file, request, scene=scene, arm=arm)


class Vamp:
    """vamp's planner for the Panda, whose samples are the same for each problem.

    Its memory for all samples that it may draw is allocated at each call: with its own settings for
    1,000,000, or for 50,000, as many as our default iterations.
    """

    def __init__(self, samples: int | None = None) -> None:
        import vamp  # type: ignore[import-not-found]

        self._vamp = vamp
        self.name = "vamp" if samples is None else f"vamp, {samples} samples"
        robot = vamp.configure_robot_and_planner_with_kwargs("panda", "rrtc")
        self._robot, self._plan, self._settings, self._simplify = robot
        if samples is not None:
            self._settings.max_iterations = self._settings.max_samples = samples

    def of(self, problem: MotionProblem, name: str) -> Callable[[bool], Any]:
        """Return its search of full configurations (k, n_joints)."""
        joints = [problem.scene.joint_names.index(joint) for joint in problem.arm.joints]
        start, goals = problem.start[joints], problem.goals[:, joints]
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
        rows[:, [problem.scene.joint_names.index(joint) for joint in problem.arm.joints]] = (
            result.numpy()
        )
        return rows

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
    """Run all on the problems of a set; also return how many have valid ends."""
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
        for (label, solve), seconds in zip(
            solves.items(), least_times(list(solves.values()), rounds), strict=True
        ):
            label_runs, result = runs.setdefault(label, Runs()), solve()
            if label in OURS:
                result = result.path if result.status is PathStatus.SOLVED else None
            elif result is not None:
                result = owner[label].path(result, problem)
            if result is None:
                print(
                    f"{name}: {label} finds no path from {problem.start.tolist()}", file=sys.stderr
                )
                continue
            label_runs.seconds.append(seconds)
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
            f"{len(label_runs.seconds)} of {count}",
            f"{len(label_runs.valid)} of {len(label_runs.seconds)}",
            "; ".join(f"{statistics.fmean(some):.2f}" for some in lengths if some),
        ]


def main() -> None:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("resources", type=Path)
    parser.add_argument("--robots", default="panda")
    parser.add_argument("--sets", default="", help="what the names of the sets begin with")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--peer", choices=["vamp", "ompl", "none"], default=None)
    arguments = parser.parse_args()
    chosen = arguments.peer or ("vamp" if importlib.util.find_spec("vamp") else "ompl")
    rows: list[list[str]] = []
    for robot in arguments.robots.split(","):
        is_panda = robot == "panda"
        peers: list[Any] = [] if chosen == "none" else [Ompl()] if chosen == "ompl" else []
        if chosen == "vamp" and is_panda:
            peers = [Vamp(), Vamp(50_000)]
        scene, arm = robot_of(robot, arguments.resources)
        for folder in sorted((arguments.resources / robot / "problems").iterdir()):
            name = folder.name if not is_panda else folder.name.removesuffix("_panda")
            if name.startswith(tuple(arguments.sets.split(","))):
                problems = list(problems_of(folder, scene, arm, arguments.problems))
                runs, count = measure(name, problems, peers, arguments.rounds)
                rows += rows_of(name, runs, count, [peer.name for peer in peers])
                print(*map(" | ".join, rows[-len(runs) :]), sep="\n", file=sys.stderr, flush=True)
    head = ["set", "by", "median / 95 % ms", "ratio", "solved", "valid", "length"]
    text = "\n".join([HEAD, "", *markdown_table(head, rows)]) + "\n"
    deliver(text, arguments.out)


HEAD = """# Path search on MotionBenchMaker

CPU times of calls from Python on one core, the best of four rounds in which the planners take
turns. Written by
`python tests/benchmarks/search_table.py RESOURCES --out docs/results/tables/search.md`, where
RESOURCES is the folder `resources` of the source distribution of vamp-planner 0.6.4, from which
vamp was built. vamp allocates memory for all samples that it may draw at each call: with its own
settings for 1,000,000, and in the rows that name them for 50,000, as many as tmkit's default
iterations. *Ratio*: to vamp with its own settings; to vamp with less memory. *Solved*: of the
problems whose start and goal are valid by tmkit's geometry. *Valid*: `recheck_path` accepts the
path at 0.003 rad and 1 mm of tool travel, by the hulls of tmkit's Panda; vamp's robot is 40
spheres. Lengths are means [rad]: of all paths; and of those where vamp's path is valid, since one
that cuts through a hull is shorter."""


if __name__ == "__main__":
    main()
