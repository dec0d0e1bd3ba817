"""Numbers of the Task-Motion Kit: figure 5, and the memory of versions in a search."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from benchmarks.scene_costs import allocated_bytes
from papers.rows import ROOT, Row, largest_difference
from support.processes import run_process

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain

__all__ = [
    "FIGURE_5",
    "Search",
    "bytes_of_versions",
    "measure_bytes",
    "number_of_arrangements",
    "rows",
    "search",
    "state_of_figure_5",
]

BLOCK = 0.05
"""Edge length of a block [m]."""

FIGURE_5 = ("holding a", "on b c", "ontable c table__0__0", "clear b")
"""Facts of figure 5d; its table has the location (0, 0)."""


def rows() -> list[Row]:
    """Return the rows of this paper."""
    return [*chains(), task_state(), versions(), memory()]


# --- figure 5


def chains() -> Iterator[Row]:
    """Yield the pose of each wrist of Baxter beside the product of the poses along its chain."""
    scene = tk.load_scene("baxter_table")
    q = tk.load_manipulator("baxter").ready_configuration(scene)
    q = tk.load_manipulator("baxter_left").ready_configuration(scene, base=q)
    for side, place in (("right", "5a"), ("left", "5b")):
        wrist = f"{side}_wrist"
        path = scene.path("world", wrist)
        edges = [
            scene.pose(child, relative_to=parent, q=q).as_matrix()
            for parent, child in itertools.pairwise(path)
        ]
        error = largest_difference(
            reduce(np.matmul, edges), scene.pose(wrist, relative_to="world", q=q).as_matrix()
        )
        yield Row(
            f"pose of the {side} wrist of Baxter (Fig. {place})",
            "product along the chain",
            f"product of {len(edges)} relative poses",
            error < 1e-12,
            f"{error:.0e} from numpy's product of matrices",
        )


def state_of_figure_5() -> set[str]:
    """Return the facts of the scene of figure 5c, but those about free locations."""
    scene = tk.load_scene("baxter_table", "blocks3")
    robot = tk.load_manipulator("baxter_left")
    q = robot.ready_configuration(scene)
    on_table = scene.local_pose("c").translation[2]
    scene = scene.reparent("c", "table", pose=Pose([0.0, 0.0, on_table]))
    scene = scene.reparent("b", "c", pose=Pose([0.0, 0.0, BLOCK]))
    tip_from_tool = scene.pose(robot.tool, relative_to=robot.tip)
    scene = scene.reparent("a", robot.tip, pose=tip_from_tool @ Pose([0.0, 0.0, BLOCK / 2]))
    semantics = load_planning_domain("blocks", robot=robot).semantics
    state = semantics.state(scene, semantics.objects(scene), q)
    return {str(fact).strip("()") for fact in state if "clear table" not in str(fact)}


def task_state() -> Row:
    """Return the row of figure 5d."""
    state = state_of_figure_5()
    return Row(
        "task state of the scene (Fig. 5d)",
        "holding(A), on(B,C), ontable(C,0,0), clear(B)",
        ", ".join(sorted(state)),
        state == set(FIGURE_5),
        "derived by the domain `blocks`",
    )


# --- versions


@dataclass(frozen=True)
class Search:
    """Exhaustive search over the arrangements of blocks, one version of the scene each.

    Attributes:
        edits: version, block, new parent and pose in it, by which each further version is made.
        versions: versions, of which the first is the start.
        arrangements: for each version, support of each block.
    """

    edits: tuple[tuple[int, str, str, Pose], ...]
    versions: tuple[SceneGraph, ...]
    arrangements: tuple[tuple[str, ...], ...]


def search(*, blocks: int = 4, locations: int = 5) -> Search:
    """Return all arrangements of blocks, by picks and places from the one in a row.

    Args:
        blocks: number of blocks, at most 5.
        locations: number of locations on the table, at least as many as blocks. With two blocks
            or more, all arrangements are reached by way of a third location.
    """
    scene = tk.load_scene("panda_table", f"blocks{blocks}")
    hand = tk.load_manipulator("panda").tip
    names = "abcde"[:blocks]
    places = {f"place {i}": Pose([0.0, 0.1 * i - 0.2, BLOCK / 2]) for i in range(locations)}
    with scene.edit() as edit:
        for name, pose in zip(names, places.values(), strict=False):
            edit.reparent(name, "table", pose=pose)
    versions, arrangements = [edit.finish()], [tuple(places)[:blocks]]
    edits: list[tuple[int, str, str, Pose]] = []
    visited = set(arrangements)
    for number, arrangement in enumerate(arrangements):  # grows while it is walked
        for block, support in moves(arrangement, names, tuple(places)):
            following = tuple(
                support if name == block else below
                for name, below in zip(names, arrangement, strict=True)
            )
            if following in visited:
                continue
            visited.add(following)
            arrangements.append(following)
            parent = {"hand": hand}.get(support, "table" if support in places else support)
            pose = places.get(support, Pose([0.0, 0.0, 0.0 if support == "hand" else BLOCK]))
            edits.append((number, block, parent, pose))
            versions.append(versions[number].reparent(block, parent, pose=pose))
    return Search(tuple(edits), tuple(versions), tuple(arrangements))


def moves(
    arrangement: tuple[str, ...], names: str, places: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield block and new support of each pick or place."""
    free = [name for name in names if name not in arrangement]
    if "hand" not in arrangement:
        for name in free:
            yield name, "hand"
        return
    held = names[arrangement.index("hand")]
    for support in (*free, *(place for place in places if place not in arrangement)):
        if support != held:
            yield held, support


def number_of_arrangements(blocks: int, locations: int) -> int:
    """Return the number of arrangements: n books in order on m shelves, and with one in the hand.

    Source: n distinct books stand in order on m shelves in m (m + 1) ... (m + n - 1) ways.
    """

    def on_shelves(count: int) -> int:
        return math.prod(range(locations, locations + count))

    return on_shelves(blocks) + blocks * on_shelves(blocks - 1)


def versions() -> Row:
    """Return the row of the number of versions, and of their independence."""
    blocks, locations = 4, 5
    tree = search(blocks=blocks, locations=locations)
    expected = number_of_arrangements(blocks, locations)
    hand = tk.load_manipulator("panda").tip
    is_kept = all(
        scene.parent(name) == {"hand": hand}.get(below, "table" if " " in below else below)
        for scene, arrangement in zip(tree.versions, tree.arrangements, strict=True)
        for name, below in zip("abcde"[:blocks], arrangement, strict=True)
    )
    return Row(
        f"search over {blocks} blocks and {locations} locations: versions",
        "backtracking to previous versions",
        f"{len(tree.versions):,} versions, all with their own state",
        is_kept and len(tree.versions) == expected,
        f"{expected:,} arrangements by counting",
    )


def measure_bytes() -> tuple[float, float]:
    """Return the memory of a further version of the search, and of a separate scene [bytes].

    Only correct if Python allocates by the C library (``PYTHONMALLOC=malloc``).
    """
    tree = search()
    edits, start = tree.edits, tree.versions[0]
    frames = [start.specification(name) for name in start.frame_names]
    del tree
    versions = [start] * (len(edits) + 1)
    before = allocated_bytes()
    for number, (version, block, parent, pose) in enumerate(edits, start=1):
        versions[number] = versions[version].reparent(block, parent, pose=pose)
    of_versions = (allocated_bytes() - before) / len(edits)
    scenes = [start] * 100
    before = allocated_bytes()
    for number in range(len(scenes)):
        scenes[number] = SceneGraph.from_frames(frames)
    return of_versions, (allocated_bytes() - before) / len(scenes)


def bytes_of_versions() -> tuple[float, float]:
    """Return what :func:`measure_bytes` does in a process with the C allocator alone."""
    program = "from papers.task_motion_kit import measure_bytes; print(*measure_bytes())"
    path = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
    run = run_process(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONMALLOC": "malloc", "PYTHONPATH": path},
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    of_version, of_scene = map(float, run.stdout.split())
    return of_version, of_scene


def memory() -> Row:
    """Return the row of the memory of a version."""
    of_version, of_scene = bytes_of_versions()
    return Row(
        "the same search: memory of a version",
        "partial copies of a weight-balanced tree",
        f"{of_version:,.0f} bytes",
        of_version < 0.5 * of_scene,
        f"an equal scene that shares its shapes alone: {of_scene:,.0f} bytes",
    )
