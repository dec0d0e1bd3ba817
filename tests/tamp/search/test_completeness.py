"""Completeness on small problems, compared with an exhaustive search over grasps and placements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.effort import scaled_examples
from support.exhaustive_transfers import SmallProblem, Spot, exhaustive_plan
from support.tamp_problems import CUBE, add_block, add_box, table_scene

import tmkit as tk
from tmkit.graph import SceneGraph


def table_spot(scene: SceneGraph, x: float, y: float, turn: float = 0.0) -> Spot:
    """Return the spot on the table at a point of the world."""
    x, y, _ = scene.pose("table", relative_to="world").inverse().apply([x, y, 0.0]).tolist()
    return Spot("table", x, y, turn)


def make_free_spots(scene: SceneGraph, rng: np.random.Generator) -> tuple[Spot, ...]:
    """Return two spots on the free side of the table."""
    return tuple(
        table_spot(scene, rng.uniform(0.35, 0.45), y, rng.uniform(0.0, math.pi))
        for y in (-0.02, 0.12)
    )


def make_well(seed: int) -> SmallProblem:
    """Return a problem with a box in a random well and a goal under a random roof."""
    rng = np.random.default_rng(seed)
    scene, (x, y) = table_scene(), (0.5 + rng.uniform(-0.05, 0.05), -0.32)
    size = (0.04, float(rng.uniform(0.04, 0.07)), float(rng.uniform(0.08, 0.11)))
    depth, clearance = float(rng.uniform(0.04, 0.13)), float(rng.uniform(0.03, 0.06))
    half = (size[0] / 2 + clearance + 0.01, size[1] / 2 + clearance + 0.04)
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene, f"well{k}", (0.02, 2 * half[1], depth), (x + side * half[0], y, depth / 2)
        )
        scene = add_box(
            scene,
            f"end{k}",
            (2 * half[0], 0.02, depth),
            (x, y + side * (half[1] + 0.01), depth / 2),
        )
    scene = add_block(scene, "a", x, y, size=size)
    gx, gy, roof_height = 0.55, 0.34, size[2] + float(rng.uniform(0.04, 0.14))
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene,
            f"post{k}",
            (0.2, 0.02, roof_height),
            (gx + 0.05, gy + side * 0.13, roof_height / 2),
        )
    scene = add_box(scene, "roof", (0.2, 0.28, 0.02), (gx + 0.05, gy, roof_height + 0.01))
    if rng.uniform() < 0.5:
        scene = add_block(scene, "b", 0.36, 0.34)
    return SmallProblem(scene, "a", table_spot(scene, gx, gy), make_free_spots(scene, rng), 2)


def make_blocker(seed: int) -> SmallProblem:
    """Return a problem with a block between close neighbours and a goal on a mat for one block."""
    rng = np.random.default_rng(seed)
    scene, (x, y), gap = table_scene(), (0.52, -0.3), float(rng.uniform(0.004, 0.025))
    mat = (0.45, 0.34)
    scene = add_box(scene, "mat", (0.09, 0.09, 0.002), (*mat, 0.001), ("region",))
    scene = add_block(scene, "a", x, y)
    sides = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    for k, side in enumerate(rng.permutation(4)[: rng.integers(1, 4)].tolist()):
        dx, dy = sides[side]
        height = float(rng.choice([CUBE, 0.08]))
        scene = add_block(
            scene, "bcd"[k], x + dx * (CUBE + gap), y + dy * (CUBE + gap), size=(CUBE, CUBE, height)
        )
    if rng.uniform() < 0.3:
        scene = add_box(scene, "wall", (0.02, 0.2, 0.1), (x + 0.13, y, 0.05))
    return SmallProblem(scene, "a", Spot("mat", 0.0, 0.0), make_free_spots(scene, rng), 3)


def make_shelf(seed: int) -> SmallProblem:
    """Return a problem with a goal at the back of a shelf, perhaps behind an obstacle."""
    rng = np.random.default_rng(seed)
    scene, x, y = table_scene(), 0.6, -0.32
    width, depth = 0.3, 0.26
    size = (CUBE, CUBE, float(rng.uniform(0.06, 0.12)))
    height = size[2] + float(rng.uniform(0.05, 0.14))
    scene = add_box(scene, "board", (depth, width, 0.02), (x, y, 0.01), ("region",))
    scene = add_box(
        scene, "back", (0.02, width, height), (x + depth / 2 - 0.01, y, 0.02 + height / 2)
    )
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene,
            f"side{k}",
            (depth, 0.02, height),
            (x, y + side * (width / 2 + 0.01), 0.02 + height / 2),
        )
    scene = add_box(scene, "top", (depth, width + 0.04, 0.02), (x, y, 0.03 + height))
    scene = add_block(scene, "a", 0.42, 0.3, size=size)
    goal = Spot("board", float(rng.uniform(0.0, 0.06)), float(rng.uniform(-0.04, 0.04)))
    if rng.uniform() < 0.5:
        scene = add_block(scene, "b", x + goal.x - 0.09, y + goal.y, size=size, support="board")
    return SmallProblem(scene, "a", goal, make_free_spots(scene, rng), 2)


KINDS: dict[str, Callable[[int], SmallProblem]] = {
    "well": make_well,
    "blocker": make_blocker,
    "shelf": make_shelf,
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_problems_with_an_exhaustive_solution_are_solved(kind: str) -> None:
    """If the oracle has a plan, planning finds one within eight iterations."""
    solved_count = 0
    for seed in range(scaled_examples(0.03)):
        problem = KINDS[kind](seed)
        if exhaustive_plan(problem) is None:
            continue
        solved_count += 1
        result = tk.plan(
            problem.scene,
            domain="kitchen",
            goal=problem.goal,
            seed=seed,
            options=tk.PlanningOptions(max_iterations=8, suggest=False),
        )
        assert result.plan is not None, (kind, seed, result.explanation)
        assert tk.validate_plan(result.plan).is_valid
    assert solved_count
