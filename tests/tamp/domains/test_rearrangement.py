"""Rearrangement: semantics, swaps, and objects that must return to their places."""

from __future__ import annotations

import pytest
from support.classic import checked, classic_domain, facts_of, plan_problem, require_rest

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.formats import load_goal_scene
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans import Plan
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import PlanStatus
from tmkit.tamp.domains.tabletop import object_symmetries

DOMAIN = classic_domain("rearrangement")


def moves_of(plan: Plan, object: str) -> int:
    """Return how often a plan puts an object down."""
    return sum(action.name == "put" and action.arguments[0] == object for action in plan.actions)


def swap(robot: str = "panda") -> SceneGraph:
    """Return two objects at two of three places."""
    return tk.load_scene(f"{robot}_table", "rearrange_swap")


def test_the_state_says_where_objects_are() -> None:
    """Parents are places; a place without an object is free."""
    scene = swap()
    assert facts_of(scene, DOMAIN) == {
        "(at red_one left)",
        "(at blue_one right)",
        "(free middle)",
        "(handempty)",
    }
    held = scene.reparent("red_one", "panda_hand", pose=Pose([0.0, 0.0, 0.1]))
    assert facts_of(held, DOMAIN) == {
        "(holding red_one)",
        "(at blue_one right)",
        "(free middle)",
        "(free left)",
    }


@pytest.mark.parametrize(
    ("parent", "pose", "message"),
    [
        (
            "table",
            Pose(),
            "object 'red_one' has parent 'table', expected .*place.*left, middle, right",
        ),
        ("right", Pose([0.0, 0.0, 0.061]), "'red_one' and 'blue_one' stand both on 'right'"),
        ("left", Pose([0.0, 0.0, 0.1]), "'red_one' has its bottom 39 mm above the top of 'left'"),
    ],
)
def test_a_scene_that_the_words_cannot_tell_is_refused(
    parent: str, pose: Pose, message: str
) -> None:
    """An object at no place, in the air, or at a place that is taken is named."""
    with pytest.raises(SceneError, match=message):
        require_rest(swap().reparent("red_one", parent, pose=pose), DOMAIN)


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
def test_two_objects_change_places(robot: str) -> None:
    """With one free place a swap takes three moves, and holds in physics."""
    plan = checked(plan_problem("rearrangement", "swap", scene="rearrange_swap", robot=robot))
    assert len(plan.steps) == 6
    assert (plan.final_scene.parent("red_one"), plan.final_scene.parent("blue_one")) == (
        "right",
        "left",
    )
    report = tk.simulate(plan)
    assert report.is_successful, report.notes


def test_a_swap_may_be_shown_by_a_scene() -> None:
    """A goal scene has the same goal as the problem file."""
    scene = swap()
    plan = checked(
        tk.plan(scene, domain="rearrangement", goal=load_goal_scene(scene, "rearrange_swap_goal"))
    )
    assert plan.goal == "(and (at red_one right) (at blue_one left))"
    assert len(plan.steps) == 6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_object_in_front_is_where_it_was(seed: int) -> None:
    """An object in front, possibly in the way, ends at its place."""
    plan = checked(plan_problem("rearrangement", "behind", scene="rearrange_behind", seed=seed))
    assert plan.final_scene.parent("red_one") == "aside_left"
    assert plan.final_scene.parent("blue_one") == "front_middle"
    moves = moves_of(plan, "blue_one")
    assert moves in (0, 2)
    assert len(plan.steps) == 2 + 2 * moves


@pytest.mark.parametrize("seed", [0, 1])
def test_a_row_is_moved_aside_and_comes_back(seed: int) -> None:
    """Failures behind other objects are learned once for all equal objects."""
    plan = checked(plan_problem("rearrangement", "row", scene="rearrange_row", seed=seed))
    final = plan.final_scene
    wanted = {"red_left": "aside_left", "red_right": "aside_right", "blue_left": "front_left"}
    wanted |= {"blue_middle": "front_middle", "blue_right": "front_right"}
    assert {object: final.parent(object) for object in wanted} == wanted


def test_objects_of_one_shape_are_alike() -> None:
    """Whatever their colour; one of another size is not."""
    scene = tk.load_scene("panda_table", "rearrange_row")
    objects = movable_frames(scene)
    (group,) = object_symmetries(scene, objects)
    assert list(group) == [
        "red_left",
        "red_middle",
        "red_right",
        "blue_left",
        "blue_middle",
        "blue_right",
    ]
    taller = [AttachedShape(Box([0.04, 0.04, 0.13]))]
    changed = scene.set_shapes("red_middle", taller)
    assert [len(group) for group in object_symmetries(changed, objects)] == [5, 1]


def test_the_object_in_front_alone_needs_no_detour() -> None:
    """Nothing is moved that is in nobody's way."""
    scene = tk.load_scene("panda_table", "rearrange_behind")
    plan = checked(tk.plan(scene, domain="rearrangement", goal="(at blue_one aside_left)"))
    assert len(plan.steps) == 2


def test_a_swap_without_a_free_place_is_proved_impossible() -> None:
    """With two places and two objects nothing can be put anywhere else."""
    scene = swap().remove_frame("middle")
    result = tk.plan(
        scene, domain="rearrangement", goal="(and (at red_one right) (at blue_one left))"
    )
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
