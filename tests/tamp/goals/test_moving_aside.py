"""Plans move objects aside on their support: blocked poses, regions, grasps, exchanges."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene
from support.effort import in_long, scaled_examples
from support.gantry import BLOCK, GANTRY

import tmkit as tk
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans import ObjectAt, ObjectIn, Plan
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain

HEIGHT = 0.05 + BLOCK / 2  # of a block's centre on the table, in the table's frame


def goal_pose(name: str, x: float, y: float, turn: float = 0.0) -> ObjectAt:
    """Return the goal of a block at a point of the table, in cells of 0.1 m."""
    return ObjectAt(
        name, Pose.from_rpy([0.1 * x, 0.1 * y, HEIGHT], [0.0, 0.0, turn]), relative_to="table"
    )


def solve_goal(scene: SceneGraph, *goals: str | ContinuousGoal, domain: str = "kitchen") -> Plan:
    """Return a plan that passes its check, meets its goals and has actions of the domain alone."""
    result = tk.plan(
        scene,
        goal=list(goals),
        domain=domain,
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=6),
    )
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    for goal in goals:
        assert (
            isinstance(goal, str)
            or goal.fault(result.plan.final_scene, result.plan.final_q) is None
        )
    words = load_planning_domain(domain, robot=GANTRY).domain
    assert {action.name for action in result.plan.actions} <= {
        action.name for action in words.actions
    }
    return result.plan


def test_what_stands_at_a_goal_pose_is_moved_aside() -> None:
    """The block in the way stays on the table, elsewhere."""
    plan = solve_goal(blocks_scene({"a": (-1, -1), "b": (1, 1)}), goal_pose("a", 1, 1))
    assert [str(action) for action in plan.actions] == [
        "(pick b table)",
        "(place b table)",
        "(pick a table)",
        "(place a table)",
    ]
    assert plan.final_scene.parent("b") == "table"
    assert plan.final_scene.local_pose("b").distance(plan.scene.local_pose("b"))[0] > 0.04


def test_two_blocks_change_places() -> None:
    """Each exchange puts one object aside first, and moves it twice."""
    plan = solve_goal(
        blocks_scene({"a": (-1, 0), "b": (1, 0)}), goal_pose("a", 1, 0), goal_pose("b", -1, 0)
    )
    assert len(plan.steps) == 6


def test_a_region_that_is_taken_is_cleared() -> None:
    """A marked area of the table has room for one block, and another stands in it."""
    scene = blocks_scene({"a": (-1, -1), "b": (1, 1)})
    mark = AttachedShape(Box([0.08, 0.08, 0.002]), collision=False)
    scene = scene.add_frame("pad", "table", pose=Pose([0.1, 0.1, 0.049]), shapes=[mark])
    plan = solve_goal(scene, ObjectIn("a", "pad"))
    assert len(plan.steps) == 4


def test_neighbours_that_leave_no_grasp_are_moved_aside() -> None:
    """Four blocks at 1 cm around the one that is wanted: two opposite sides are freed."""
    step = 0.6  # cells of 0.1 m
    around = {"n": (step, 0), "s": (-step, 0), "e": (0, step), "w": (0, -step)}
    plan = solve_goal(blocks_scene({"a": (0, 0), **around}), goal_pose("a", 2, 2))
    assert plan.actions[-1] == GroundAction("place", ("a", "table"))
    assert len(plan.steps) == 6


@pytest.mark.parametrize(
    ("count", "domain"),
    [
        *((count, "kitchen") for count in (3, 5, 8)),
        (3, "sorting"),
        *in_long((5, "sorting"), (8, "sorting")),
    ],
)
def test_rearrangement_on_one_table(domain: str, count: int) -> None:
    """Blocks with a pose each, two of them exchanged, and one in a cycle through others' places."""
    cells = [(x, y) for x in (-2, -1, 0, 1) for y in (-2, 0)][:count]
    names = "abcdefgh"[:count]
    scene = blocks_scene(dict(zip(names, cells, strict=True)), table=0.7)
    if domain == "sorting":
        scene = scene.set_classes("table", ["surface", "area"])
    wanted = [cells[1], cells[0], *cells[3:], cells[2]] if count > 2 else cells[::-1]
    goals = [goal_pose(name, *cell) for name, cell in zip(names, wanted, strict=True)]
    plan = solve_goal(scene, *goals, domain=domain)
    assert len(plan.steps) >= 2 * (count + 1 if count > 3 else 3)


def test_an_exchange_is_simulated() -> None:
    """A Panda exchanges two blocks, in physics too."""
    scene = tk.load_scene("panda_table", "blocks2")
    goals = [
        ObjectAt(name, scene.pose(other, relative_to="table"), relative_to="table")
        for name, other in ("ab", "ba")
    ]
    result = tk.plan(
        scene, goal=goals, domain="kitchen", options=tk.PlanningOptions(max_iterations=6)
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert tk.simulate(result.plan).is_successful


def test_equal_runs_give_equal_plans() -> None:
    """Two runs that move objects aside give the same paths, bit for bit."""
    scene = blocks_scene({"a": (-1, 0), "b": (1, 0)})
    first, again = (
        solve_goal(scene, goal_pose("a", 1, 0), goal_pose("b", -1, 0)) for _ in range(2)
    )
    for step, repeated in zip(first.steps, again.steps, strict=True):
        assert [s.path.tobytes() for s in step.segments] == [
            s.path.tobytes() for s in repeated.segments
        ]


@given(
    cells=st.permutations([(x, y) for x in (-2, 0, 2) for y in (-2, 0, 2)]),
    count=st.integers(2, 4),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=scaled_examples(0.1), deadline=None)
def test_random_goal_poses_are_reached(
    cells: list[tuple[int, int]], count: int, order: random.Random
) -> None:
    """Blocks whose goal poses are occupied or free are each moved at least once."""
    names, starts = "abcd"[:count], cells[:count]
    wanted = order.sample(cells[: count + 2], count)
    scene = blocks_scene(dict(zip(names, starts, strict=True)), table=0.7)
    plan = solve_goal(
        scene, *(goal_pose(name, *cell) for name, cell in zip(names, wanted, strict=True))
    )
    wrong = {name for name, start, cell in zip(names, starts, wanted, strict=True) if start != cell}
    assert wrong <= {action.arguments[0] for action in plan.actions}
    assert len(plan.steps) >= 2 * len(wrong)
    # none is moved aside for nothing more than once
    assert len(plan.steps) <= 2 * (len(wrong) + count)


def test_a_goal_pose_may_be_left_for_a_while() -> None:
    """A block at its goal pose that obstructs another one is moved, and placed back."""
    around = {"n": (0.6, 0), "s": (-0.6, 0), "e": (0, 0.6), "w": (0, -0.6)}
    scene = blocks_scene({"a": (0, 0), **around})
    goals = [goal_pose("a", 2, 2), *(goal_pose(name, *cell) for name, cell in around.items())]
    plan = solve_goal(scene, *goals)
    moved = [action.arguments[0] for action in plan.actions if action.name == "place"]
    assert moved.count("a") == 1
    assert len(plan.steps) == 10
    assert sorted(moved.count(name) for name in around) == [0, 0, 2, 2]


def test_the_law_of_exchange_holds_for_any_order() -> None:
    """Three blocks in a cycle need one more move than there are blocks, whichever way round."""
    for order in ("abc", "acb", *in_long("bac", "bca", "cab", "cba")):
        cells = {
            name: (
                round(2 * math.cos(2 * math.pi * k / 3), 3),
                round(2 * math.sin(2 * math.pi * k / 3), 3),
            )
            for k, name in enumerate(order)
        }
        scene = blocks_scene(cells, table=0.6)
        goals = [goal_pose(name, *cells[order[(k + 1) % 3]]) for k, name in enumerate(order)]
        plan = solve_goal(scene, *goals)
        assert len(plan.steps) == 8
        assert np.allclose(
            plan.final_scene.local_pose(order[0]).translation[:2], 0.1 * np.array(cells[order[1]])
        )
