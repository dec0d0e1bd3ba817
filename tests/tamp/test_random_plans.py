"""Random blocks worlds: each plan is valid and reaches its goal."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.blocks import blocks_scene
from support.effort import scaled_examples
from support.gantry import BLOCK, GANTRY, with_block

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Free, SceneGraph
from tmkit.plans import Plan
from tmkit.spatial import Pose

CELLS = [(i, j) for i in range(-2, 3) for j in range(-2, 3)]
PANDA_CELLS = [(i, j) for i in (-2, -1, 0) for j in range(-2, 3)]


@st.composite
def arrangements(
    draw: st.DrawFn, cells: list[tuple[int, int]]
) -> list[tuple[str, tuple[float, float], float, str]]:
    """Up to 4 blocks as name, cell with offset, angle, and support ("" for the table)."""
    names = "abcd"[: draw(st.integers(1, 4))]
    places = draw(
        st.lists(st.sampled_from(cells), min_size=len(names), max_size=len(names), unique=True)
    )
    offset = st.floats(-0.1, 0.1).map(lambda number: round(number, 3))
    blocks: list[tuple[str, tuple[float, float], float, str]] = []
    for index, (name, cell) in enumerate(zip(names, places, strict=True)):
        tops = [n for n in names[:index] if n not in {below for *_, below in blocks}]
        below = draw(st.sampled_from(["", "", *tops]))
        position = (cell[0] + draw(offset), cell[1] + draw(offset))
        blocks.append((name, position, draw(st.floats(-0.3, 0.3)), below))
    return blocks


@st.composite
def goals(draw: st.DrawFn, names: str, cells: list[tuple[int, int]]) -> str:
    """A tower of some blocks in some order, or a row of them on neighbouring locations."""
    order = draw(st.permutations(names))
    count = draw(st.integers(1, len(names)))
    cell = draw(st.sampled_from(cells))
    if draw(st.booleans()):
        facts = [f"(on {upper} {lower})" for upper, lower in pairwise(order[:count])]
        facts.append(f"(ontable {order[count - 1]} table__{cell[0]}__{cell[1]})")
    else:
        row = [other for other in cells if other[0] == cell[0]][:count]
        facts = [
            f"(ontable {name} table__{i}__{j})" for name, (i, j) in zip(order, row, strict=False)
        ]
    return f"(and {' '.join(facts)})"


def check(plan: Plan | None) -> None:
    """Check that a plan exists and is valid, as a task plan and as motion."""
    assert plan is not None
    report = tk.validate_plan(plan)
    assert report.is_valid, report.problems


@settings(max_examples=scaled_examples(0.2), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_plan_of_the_gantry_is_valid(data: st.DataObject) -> None:
    """Any arrangement of blocks on 25 cells leads to any tower or row."""
    scene = blocks_scene({}, table=0.6)
    blocks = data.draw(arrangements(CELLS))
    for name, (x, y), turn, below in blocks:
        if below:
            position = [
                *scene.pose(below, relative_to="world").translation[:2],
                scene.pose(below, relative_to="world").translation[2] + BLOCK,
            ]
            scene = with_block(scene, name, position, turn=turn, parent=below)
        else:
            scene = with_block(scene, name, [0.1 * x, 0.1 * y, BLOCK / 2], turn=turn)
    goal = data.draw(goals("".join(name for name, *_ in blocks), CELLS))
    check(tk.plan(scene, goal=goal, robot=GANTRY, seed=data.draw(st.integers(0, 3))).plan)


@pytest.fixture(scope="module")
def panda_table() -> SceneGraph:
    """Return the Panda at its table."""
    return tk.load_scene("panda_table")


@settings(max_examples=scaled_examples(0.12), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_plan_of_the_panda_is_valid(panda_table: SceneGraph, data: st.DataObject) -> None:
    """The same holds for an arm with seven joints and meshes."""
    scene = panda_table
    blocks = data.draw(arrangements(PANDA_CELLS))
    for name, (x, y), turn, below in blocks:
        position = [0.0, 0.0, BLOCK] if below else [0.1 * x, 0.1 * y, 0.025 + BLOCK / 2]
        scene = scene.add_frame(
            name,
            below or "table",
            pose=Pose.from_rpy(position, [0.0, 0.0, math.remainder(turn, math.tau)]),
            joint=Free(),
            classes=["movable"],
            shapes=[AttachedShape(Box([BLOCK] * 3))],
        )
    goal = data.draw(goals("".join(name for name, *_ in blocks), PANDA_CELLS))
    check(tk.plan(scene, goal=goal, seed=data.draw(st.integers(0, 3))).plan)
