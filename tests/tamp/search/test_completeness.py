"""Completeness on small problems: what an exhaustive search over grasps and places solves, planning solves too."""

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


def on_table(scene: SceneGraph, x: float, y: float, turn: float = 0.0) -> Spot:
    """Return the place on the table at a point of the world."""
    x, y, _ = scene.pose("table", relative_to="world").inverse().apply([x, y, 0.0]).tolist()
    return Spot("table", x, y, turn)


def free_spots(scene: SceneGraph, rng: np.random.Generator) -> tuple[Spot, ...]:
    """Return two places on the free side of the table, where the problems have nothing."""
    return tuple(
        on_table(scene, rng.uniform(0.35, 0.45), y, rng.uniform(0.0, math.pi))
        for y in (-0.02, 0.12)
    )


def well(seed: int) -> SmallProblem:
    """A box in a well of random depth and width, wanted under a roof of random height: often a regrasp is needed."""
    rng = np.random.default_rng(seed)
    scene, (x, y) = table_scene(), (0.5 + rng.uniform(-0.05, 0.05), -0.32)
    size = (0.04, float(rng.uniform(0.04, 0.07)), float(rng.uniform(0.08, 0.11)))
    deep, around = float(rng.uniform(0.04, 0.13)), float(rng.uniform(0.03, 0.06))
    half = (size[0] / 2 + around + 0.01, size[1] / 2 + around + 0.04)
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene, f"well{k}", (0.02, 2 * half[1], deep), (x + side * half[0], y, deep / 2)
        )
        scene = add_box(
            scene, f"end{k}", (2 * half[0], 0.02, deep), (x, y + side * (half[1] + 0.01), deep / 2)
        )
    scene = add_block(scene, "a", x, y, size=size)
    gx, gy, roof = 0.55, 0.34, size[2] + float(rng.uniform(0.04, 0.14))
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene, f"post{k}", (0.2, 0.02, roof), (gx + 0.05, gy + side * 0.13, roof / 2)
        )
    scene = add_box(scene, "roof", (0.2, 0.28, 0.02), (gx + 0.05, gy, roof + 0.01))
    if rng.uniform() < 0.5:
        scene = add_block(scene, "b", 0.36, 0.34)
    return SmallProblem(scene, "a", on_table(scene, gx, gy), free_spots(scene, rng), 2)


def blocker(seed: int) -> SmallProblem:
    """A block with close neighbours on some sides, wanted on a mat for one block, or where a neighbour stands."""
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
    return SmallProblem(scene, "a", Spot("mat", 0.0, 0.0), free_spots(scene, rng), 3)


def shelf(seed: int) -> SmallProblem:
    """A block wanted at the back of a shelf of random height, perhaps with another in front of its place."""
    rng = np.random.default_rng(seed)
    scene, x, y, wide, deep = table_scene(), 0.6, -0.32, 0.3, 0.26
    size = (CUBE, CUBE, float(rng.uniform(0.06, 0.12)))
    high = size[2] + float(rng.uniform(0.05, 0.14))
    scene = add_box(scene, "board", (deep, wide, 0.02), (x, y, 0.01), ("region",))
    scene = add_box(scene, "back", (0.02, wide, high), (x + deep / 2 - 0.01, y, 0.02 + high / 2))
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene,
            f"side{k}",
            (deep, 0.02, high),
            (x, y + side * (wide / 2 + 0.01), 0.02 + high / 2),
        )
    scene = add_box(scene, "top", (deep, wide + 0.04, 0.02), (x, y, 0.03 + high))
    scene = add_block(scene, "a", 0.42, 0.3, size=size)
    wanted = Spot("board", float(rng.uniform(0.0, 0.06)), float(rng.uniform(-0.04, 0.04)))
    if rng.uniform() < 0.5:
        scene = add_block(scene, "b", x + wanted.x - 0.09, y + wanted.y, size=size, support="board")
    return SmallProblem(scene, "a", wanted, free_spots(scene, rng), 2)


KINDS: dict[str, Callable[[int], SmallProblem]] = {"well": well, "blocker": blocker, "shelf": shelf}


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_an_exhaustive_search_solves_is_planned(kind: str) -> None:
    """Where the oracle has a plan, planning has one within a few iterations."""
    solved = 0
    for seed in range(scaled_examples(0.03)):
        problem = KINDS[kind](seed)
        if exhaustive_plan(problem) is None:
            continue
        solved += 1
        result = tk.plan(
            problem.scene,
            domain="kitchen",
            goal=problem.goal,
            seed=seed,
            options=tk.PlanningOptions(max_iterations=8, suggest=False),
        )
        assert result.plan is not None, (kind, seed, result.explanation)
        assert tk.validate_plan(result.plan).is_valid
    assert solved
