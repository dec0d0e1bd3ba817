"""Sorting: semantics, and bricks in clutter, some of which must go before others can."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.classic import checked, classic_domain, facts_of, plan_problem, require_rest
from support.effort import in_long

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.spatial import Pose

DOMAIN = classic_domain("sorting")
AREAS = {"red": "red_area", "blue": "blue_area", "green": "green_area"}
HEIGHT = 0.031  # of a brick's middle over the middle of its area


def bricks(count: int = 8) -> SceneGraph:
    """Return an arm at a table with mixed bricks."""
    return tk.load_scene("panda_table", f"sort{count}")


def assert_sorted(plan: Plan) -> None:
    """Every brick stands in the area of its colour at the end."""
    scene = plan.final_scene
    for brick in scene.frames_of_class("movable"):
        (colour,) = set(scene.classes(brick)) & set(AREAS)
        assert scene.parent(brick) == AREAS[colour]


def test_the_state_says_where_bricks_are_and_belong() -> None:
    """Parents define the areas of bricks; common classes define their goal areas."""
    scene = bricks().reparent("b1", "red_area", pose=Pose([0.0, 0.0, HEIGHT]))
    facts = {fact for fact in facts_of(scene, DOMAIN) if " b1" in fact or " b2" in fact}
    assert facts == {
        "(in b1 red_area)",
        "(belongs b1 red_area)",
        "(sorted b1)",
        "(in b2 mixed)",
        "(belongs b2 blue_area)",
    }
    held = facts_of(scene.reparent("b1", "panda_hand", pose=Pose([0.0, 0.0, 0.1])), DOMAIN)
    assert "(holding b1)" in held
    assert not {"(handempty)", "(sorted b1)", "(in b1 red_area)"} & held


@pytest.mark.parametrize(
    ("parent", "position", "message"),
    [
        (
            "table",
            [0.0, 0.0, 0.1],
            "object 'b1' has parent 'table', expected a frame of class area",
        ),
        (
            "red_area",
            [0.15, 0.0, HEIGHT],
            "object 'b1' reaches 10 mm beyond the edge of 'red_area'",
        ),
        ("red_area", [0.0, 0.0, 0.06], "'b1' has its bottom 29 mm above the top of 'red_area'"),
    ],
)
def test_a_scene_that_the_words_cannot_tell_is_refused(
    parent: str, position: list[float], message: str
) -> None:
    """A brick in no area, over the edge, or in the air is named."""
    with pytest.raises(SceneError, match=message):
        require_rest(bricks().reparent("b1", parent, pose=Pose(position)), DOMAIN)


def test_the_middle_of_a_cluster_waits_for_its_neighbours() -> None:
    """An enclosed brick is picked after some of its neighbours, which PDDL does not state."""
    plan = checked(tk.plan(bricks(), domain="sorting", goal="(in b1 red_area)"))
    assert len(plan.steps) > 2
    assert str(plan.actions[-2]) == "(take b1 mixed)"
    moved = {action.arguments[0] for action in plan.actions[:-2]}
    assert moved <= {"b2", "b3", "b4", "b5"}


@pytest.mark.parametrize(
    ("count", "robot"), [(8, "panda"), (8, "iiwa"), (14, "panda"), (14, "iiwa")]
)
def test_bricks_are_sorted(count: int, robot: str) -> None:
    """Every brick ends where it belongs; at most one is moved twice."""
    plan = checked(plan_problem("sorting", f"sort{count}", scene=f"sort{count}", robot=robot))
    assert len(plan.steps) <= 2 * count + 2
    assert_sorted(plan)


@pytest.mark.parametrize("count", [4, *in_long(8)])
def test_bricks_are_sorted_in_physics(count: int) -> None:
    """In simulation, bricks come to the poses of the plan, held by friction."""
    plan = checked(plan_problem("sorting", "sort8", scene="sort8"))
    report = tk.simulate(replace(plan, steps=plan.steps[: 2 * count]))
    assert report.is_successful, report.notes


def test_a_goal_scene_says_in_which_area() -> None:
    """The position of a brick within its area does not count."""
    goal = bricks().reparent("b7", "blue_area", pose=Pose([0.05, 0.05, HEIGHT]))
    facts = DOMAIN.semantics.goal_facts(goal, DOMAIN.semantics.objects(goal), ("b7", "b1"))
    assert [str(fact) for fact in facts] == ["(in b7 blue_area)", "(in b1 mixed)"]
