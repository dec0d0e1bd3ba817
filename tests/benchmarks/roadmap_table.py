"""Second queries of a roadmap, in changed scenes, beside searches anew.

Run by hand: ``python tests/benchmarks/roadmap_table.py RESOURCES [--robots built-in,panda,fetch]
[--problems 10] [--rounds 4] [--out docs/results/tables/roadmap.md]``. RESOURCES is the folder of
``search_table.py``. Times are CPU times of calls from Python, the best of several rounds in which
both take turns; each round begins with an empty roadmap.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.search_table import problems_of, robot_of
from benchmarks.tables import deliver, markdown_table, table_parser
from support.motion_scenes import ARM, NEVER, TIP, cubby_query, wall_query

import tmkit as tk
from tmkit.graph import Sphere
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    PathStatus,
    Roadmap,
    inverse_kinematics_solutions,
    recheck_path,
    search_path,
)

CHANGES = ("moved", "moved, other ends", "across")


@dataclass
class Setting:
    """A query, with objects that may be moved."""

    scene: tk.SceneGraph
    joints: tuple[str, ...]
    tool: str
    start: NDArray[np.float64]
    goal: NDArray[np.float64]
    objects: list[str]
    margins: dict[tuple[str, str], float]

    def world(self, scene: tk.SceneGraph) -> CollisionWorld:
        """Return the world of a version."""
        return CollisionWorld(scene, pair_margins=self.margins)

    def nearby(
        self, q: NDArray[np.float64], scenes: list[tk.SceneGraph], rng: Any
    ) -> NDArray[np.float64]:
        """Return a configuration near another, free in all versions; the same after 100 tries."""
        entries = [self.scene.joint_names.index(joint) for joint in self.joints]
        limits, worlds = self.scene.joint_limits[entries], [self.world(scene) for scene in scenes]
        for _ in range(100):
            perturbed = q.copy()
            perturbed[entries] = np.clip(q[entries] + rng.normal(0.0, 0.1, len(entries)), *limits.T)
            if not any(world.is_in_collision(perturbed) for world in worlds):
                return perturbed
        return q


def mbm(robot: str, resources: Path, count: int) -> Iterator[tuple[str, list[Setting]]]:
    """Read the sets of MotionBenchMaker for a robot."""
    scene, arm = robot_of(robot, resources)
    for folder in sorted((resources / robot / "problems").iterdir()):
        settings = []
        for problem in problems_of(folder, scene, arm, count):
            things = [
                name
                for name in problem.scene.frame_names
                if "/" in name and problem.scene.shapes(name)
            ]
            settings.append(
                Setting(
                    problem.scene,
                    tuple(arm.joints),
                    arm.tool,
                    problem.start,
                    problem.goals[0],
                    things,
                    {},
                )
            )
        yield folder.name, settings


def built_in(count: int) -> Iterator[tuple[str, list[Setting]]]:
    """Return queries in built-in scenes: blocks and a wall, a shelf, tall blocks in the kitchen."""
    rng = np.random.default_rng(0)
    for name, query in (("blocks and a wall", wall_query()), ("shelf", cubby_query())):
        blocks = [frame for frame in query.scene.frame_names if frame.startswith("block")]
        # support of a foot
        margins = {pair: margin for pair, margin in NEVER.items() if pair[1] in query.scene}
        setting = Setting(query.scene, tuple(ARM), TIP, query.start, query.goal, blocks, margins)
        ends = [
            [setting.nearby(q, [query.scene], rng) for q in (query.start, query.goal)]
            for _ in range(count)
        ]
        yield name, [replace(setting, start=start, goal=goal) for start, goal in ends]
    scene, arm = (
        tk.load_scene("iiwa_kitchen", "kitchen_blocks4"),
        tk.load_manipulator("iiwa_flange"),
    )
    ready, settings = arm.ready_configuration(scene), []
    while len(settings) < count:
        ends = []
        while len(ends) < 2:
            block = scene.local_pose(f"b{rng.integers(4)}").translation
            place = block + rng.uniform([-0.12, -0.12, -0.05], [0.12, 0.12, 0.1])
            ends += inverse_kinematics_solutions(
                CollisionWorld(scene),
                arm.tool,
                target_pose=tk.Pose(place, [1.0, 0.0, 0.0, 0.0]),
                joints=arm.joints,
                q=ready,
                relative_to="floor",
                settings=IkSettings(max_solutions=1),
            ).configurations.tolist()
        start, goal = np.array(ends)
        if not CollisionWorld(scene).is_edge_free(start, goal):
            things = ["b0", "b1", "b2", "b3"]
            settings.append(Setting(scene, tuple(arm.joints), arm.tool, start, goal, things, {}))
    yield "kitchen", settings


def change_scene(
    setting: Setting, change: str, path: NDArray[np.float64], rng: Any
) -> tk.SceneGraph:
    """Return the scene with an object moved by up to 10 cm an axis, or with a ball on the path."""
    scene = setting.scene
    if change == "across":
        index = int(rng.integers(len(path) - 1))
        place = scene.pose(
            setting.tool,
            relative_to=scene.root(setting.tool),
            q=path[index : index + 2].mean(axis=0),
        )
        return scene.add_frame(
            "ball", scene.root(setting.tool), pose=tk.Pose(place.translation), shapes=[Sphere(0.03)]
        )
    thing = setting.objects[int(rng.integers(len(setting.objects)))]
    return scene.set_pose(thing, tk.Pose(rng.uniform(-0.1, 0.1, 3)) @ scene.local_pose(thing))


def measure(setting: Setting, change: str, rounds: int, rng: Any) -> list[float] | None:
    """Return first, fresh and second search [ms], length ratio, whether known, whether valid."""

    def anew(scene: tk.SceneGraph, start: Any, goal: Any) -> Any:
        return search_path(setting.world(scene), setting.joints, start=start, goals=goal)

    first = anew(setting.scene, setting.start, setting.goal)
    if first.status is not PathStatus.SOLVED:
        return None
    scene = change_scene(setting, change, first.path, rng)
    start, goal = setting.start, setting.goal
    if "ends" in change:
        start, goal = (setting.nearby(q, [setting.scene, scene], rng) for q in (start, goal))
    new = anew(scene, start, goal)
    if new.status is not PathStatus.SOLVED:
        return None
    best = [np.inf] * 3
    for _ in range(rounds):
        roadmap = Roadmap(setting.joints, pair_margins=setting.margins)
        roadmap.search(setting.scene, start=setting.start, goals=setting.goal)
        second = partial(roadmap.search, scene, start=start, goals=goal)
        runs = (
            partial(anew, setting.scene, setting.start, setting.goal),
            partial(anew, scene, start, goal),
            second,
        )
        for i, run in enumerate(runs):
            began = time.process_time()
            result = run()
            best[i] = min(best[i], 1e3 * (time.process_time() - began))
    valid = recheck_path(
        setting.world(scene), result.path, resolution=0.003, tool_frame=setting.tool
    ).is_ok
    return [*best, result.length / new.length, result.iterations == 0, valid]


def main() -> None:
    """Print the table, or write it."""
    parser = table_parser(__doc__)
    parser.add_argument("resources", type=Path)
    parser.add_argument("--robots", default="built-in,panda")
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    sets: list[tuple[str, list[Setting]]] = []
    for robot in arguments.robots.split(","):
        ours = robot == "built-in"
        sets += (
            built_in(arguments.problems)
            if ours
            else mbm(robot, arguments.resources, arguments.problems)
        )
    text = HEAD
    for change in CHANGES:
        lines, ratios = [], []
        for name, settings in sets:
            rngs = map(np.random.default_rng, range(len(settings)))
            rows = [
                measure(setting, change, arguments.rounds, rng)
                for setting, rng in zip(settings, rngs, strict=True)
            ]
            rows = [row for row in rows if row is not None]
            if not rows:
                continue
            first, new, second, longer, is_known, valid = np.transpose(rows)
            ratios.append(
                [np.median(second) / np.median(first), np.median(second) / np.median(new)]
            )
            lines.append(
                [
                    name,
                    *(f"{np.median(column):.2f}" for column in (first, new, second)),
                    *(f"{ratio:.2f}" for ratio in ratios[-1]),
                    f"{int(is_known.sum())} of {len(rows)}",
                    f"{longer.mean():.2f}",
                    f"{int(valid.sum())} of {len(rows)}",
                ]
            )
            print(change, *lines[-1], sep=" | ", file=sys.stderr, flush=True)
        middle = [f"{ratio:.2f}" for ratio in np.median(ratios, axis=0)]
        lines.append(["*median of the sets*", "", "", "", *middle, "", "", ""])
        head = [
            "set",
            "first, ms",
            "new, ms",
            "second, ms",
            "to first",
            "to new",
            "known",
            "length",
            "valid",
        ]
        text += "\n".join(["", f"## {TITLES[change]}", "", *markdown_table(head, lines)]) + "\n"
    deliver(text, arguments.out)


HEAD = """# Roadmaps in changed scenes

CPU times of calls from Python on one core of a shared machine, medians over the queries of a set,
each the best of four rounds that take turns. Written by
`python tests/benchmarks/roadmap_table.py RESOURCES --out docs/results/tables/roadmap.md`, with the
folder that [the table of path search](search.md) names. Collision worlds are included. *First*:
`search_path` in the unchanged scene. *New*: `search_path` in the changed scene. *Second*:
`tmkit.motion.Roadmap` in the changed scene, with the first path in it. *Known*: solved without a
new search. *Length*: mean ratio to the path of the new search. *Valid*: by `recheck_path` at
0.003 rad and 1 mm of tool travel. A Panda with ten blocks and a wall, or a shelf behind it; a KUKA
iiwa among tall blocks of the kitchen; MotionBenchMaker's sets, with the first 10 problems of each.
"""

TITLES = {
    "moved": "An object moves by up to 10 cm along each axis",
    "moved, other ends": (
        "The same, with start and goal changed by 0.1 rad in each joint (standard deviation)"
    ),
    "across": "A ball of 3 cm is put where the tool was on the first path",
}


if __name__ == "__main__":
    main()
