"""Uncertain blocks: plans contain looks only where probabilities require them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.effort import in_long
from support.planning import solve_with
from support.unsure_blocks import ON_B, execute_looks, succeeds, unsure_blocks

import tmkit as tk
from tmkit._support.data import data_path
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.pddl import Fact
from tmkit.plans import Plan
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult, PlanStatus, load_planning_domain, sample_scene, stands_on


def solve(scene: SceneGraph, goal: str = ON_B, **options: Any) -> PlanResult:
    """Plan in the domain."""
    return solve_with(scene, goal, domain="blocks_uncertain", **options)


LITTLE: dict[str, Any] = {
    "suggest": False,
    "max_iterations": 1,
    "skeletons_per_iteration": next(iter(in_long(48)), 8),
}
"""Options of a search that fails."""


def looks(plan: Plan | None) -> list[str]:
    """Return the blocks that a plan looks at, in order."""
    assert plan is not None
    return [look.frame for step in plan.steps for look in step.observations]


def sure(scene: SceneGraph, *blocks: str, deviation: float = 0.002) -> SceneGraph:
    """Return the scene with some blocks known well."""
    for block in blocks:
        scene = scene.set_covariance(block, deviation**2 * np.diag([1.0, 1.0, 0, 0, 0, 25.0]))
    return scene


@pytest.fixture(scope="module")
def stacking_plan() -> Plan:
    """Return the plan that puts one uncertain block on another."""
    plan = solve(unsure_blocks()).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(("deviation", "expected"), [("abc", []), ("b", ["a"]), ("", ["a", "b"])])
def test_a_plan_looks_exactly_at_what_it_must(deviation: str, expected: list[str]) -> None:
    """A plan has one look for each handled block with an uncertain pose, and no others."""
    plan = solve(sure(unsure_blocks(), *deviation)).plan
    assert plan is not None
    assert sorted(looks(plan)) == expected
    assert [action.name for action in plan.actions] == ["look"] * len(expected) + [
        "pick-up",
        "stack",
    ]
    assert tk.validate_plan(plan).problems == ()
    assert stands_on(plan.final_scene, "a", "b", q=plan.final_q).is_at_least(0.95)


def test_a_plan_of_another_process_has_what_was_looked_at() -> None:
    """Scenes derived from the first one are equal in this and in the planning process."""
    plan = solve(unsure_blocks(), seeds=2, workers=2).plan
    assert looks(plan)
    assert plan is not None
    assert tk.validate_plan(plan).problems == ()


def test_the_state_is_that_of_the_scene(stacking_plan: Plan) -> None:
    """Located blocks depend on the scene version alone, before and after each step of a plan."""
    plan = stacking_plan
    domain = load_planning_domain("blocks_uncertain", robot=load_manipulator("panda"))
    located = [
        {fact.arguments[0] for fact in domain.state(scene, q) if fact.predicate == "located"}
        for scene, q in [(plan.scene, plan.q), *((step.scene, step.q) for step in plan.steps)]
    ]
    assert located == [set(), {"a"}, {"a", "b"}, {"a", "b"}, {"a", "b"}]
    assert Fact.of("surely-on", "a", "b") in domain.state(plan.final_scene, plan.final_q)


def test_one_look_tells_of_all_that_share_an_error(tmp_path: Path) -> None:
    """If only the table is uncertain, a look at one block also locates the other one."""
    table = np.diag([4e-4, 4e-4, 0, 0, 0, 1e-3])
    scene = sure(unsure_blocks(), "a", "b", "c", deviation=0.001).set_covariance("table", table)
    plan = solve(scene).plan
    assert plan is not None
    assert len(looks(plan)) == 1
    assert tk.validate_plan(plan).problems == ()
    tk.save_plan(plan, tmp_path / "plan.json")
    again = tk.load_plan(tmp_path / "plan.json")
    assert again.final_scene == plan.final_scene
    assert tk.validate_plan(again).problems == ()


def test_plans_repeat_themselves(stacking_plan: Plan, tmp_path: Path) -> None:
    """The same scene and seed give the same bytes."""
    tk.save_plan(stacking_plan, tmp_path / "one.json")
    again = solve(unsure_blocks()).plan
    assert again is not None
    tk.save_plan(again, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_the_answer_is_no_when_looking_does_not_do() -> None:
    """For an inaccurate camera the explanation has the reached and the required probability."""
    result = solve(unsure_blocks().set_attribute("eye", "position_deviation", 0.012), **LITTLE)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    cause = "P(the hand finds a) is 0.2316, and after a look from 'eye' 0.6297; 0.95 is required"
    assert cause in result.explanation
    narrow = solve(unsure_blocks().set_attribute("eye", "field_of_view", 0.2), **LITTLE)
    assert "'a' is out of sight of camera 'eye', 13 degrees off its axis" in narrow.explanation
    blind = solve(unsure_blocks().remove_frame("eye"), **LITTLE)
    assert (
        "P(the hand finds a) is 0.2316, and 0.95 is required; the scene has no camera"
        in blind.explanation
    )


def test_slips_alone_may_be_too_much() -> None:
    """Before the search, it is proved that nothing stands surely on a slim post."""
    scene = unsure_blocks().set_shapes("b", [AttachedShape(Box([0.006, 0.006, 0.05]))])
    result = solve(scene)
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "with no errors but the slips of the hand P(a is on b) is 0.9" in result.explanation
    assert "and 0.95 is required" in result.explanation


def test_looks_that_serve_a_place_alone() -> None:
    """A slim post requires a look at a located block; the explanation has its probability."""
    scene = unsure_blocks(0.0045)
    assert looks(solve(scene).plan) == []
    for width, count in ((0.026, 1), (0.018, 2)):
        plan = solve(scene.set_shapes("b", [AttachedShape(Box([width, width, 0.05]))])).plan
        assert plan is not None
        assert len(looks(plan)) == count
        assert tk.validate_plan(plan).problems == ()
    result = solve(scene.set_shapes("b", [AttachedShape(Box([0.01, 0.01, 0.05]))]), **LITTLE)
    assert result.plan is None
    assert "after looks P(a would be on b) is 0.8287" in result.explanation
    assert "and 0.95 is required" in result.explanation


def test_towers_need_one_look_a_block() -> None:
    """A block remains certain enough for another block on it after look, pick and place."""
    plan = solve(unsure_blocks(), "(and (surely-on a b) (surely-on b c))").plan
    assert plan is not None
    assert sorted(looks(plan)) == ["a", "b", "c"]
    assert tk.validate_plan(plan).problems == ()
    lonely = replace(plan, steps=plan.steps[1:])
    assert not tk.validate_plan(lonely).is_valid


def test_a_camera_on_the_hand_is_brought_to_views() -> None:
    """The arm moves before each look, and the checker finds that the block is seen from there."""
    seen = {
        "position_deviation": 0.002,
        "turn_deviation": 0.02,
        "field_of_view": 1.0,
        "nearest": 0.15,
        "farthest": 0.6,
    }
    scene = unsure_blocks().remove_frame("eye")
    scene = scene.add_frame("eye", "panda_hand", pose=Pose([0.06, 0.0, 0.03]), classes=["camera"])
    plan = solve(scene.set_attributes("eye", seen)).plan
    assert plan is not None
    assert sorted(looks(plan)) == ["a", "b"]
    assert [len(step.segments) for step in plan.steps] == [1, 1, 4, 4]
    assert tk.validate_plan(plan).problems == ()
    blinkered = plan.scene.set_attribute("eye", "nearest", 0.55)
    forged = replace(plan, scene=blinkered)
    assert any(
        "from camera 'eye', which sees from 0.55 to 0.6 m" in problem
        for problem in tk.validate_plan(forged).problems
    )


def test_goals_of_the_other_words() -> None:
    """The goal "located" requires a look, and the goal "surely at" requires a transfer."""
    only = solve(unsure_blocks(), "(located c)").plan
    assert looks(only) == ["c"]
    plan = solve(unsure_blocks(), "(surely-at a table__-1__-1)").plan
    assert looks(plan) == ["a"]
    problem = data_path("domains/blocks_uncertain/problems/tower.pddl")
    result = tk.plan(
        unsure_blocks(),
        domain="blocks_uncertain",
        goal=problem,
        options=tk.PlanningOptions(improve=2),
    ).plan
    assert sorted(looks(result)) == ["a", "b"]


def test_looking_makes_the_difference_in_physics(stacking_plan: Plan) -> None:
    """In a world sampled from the belief, the plan with looks succeeds; the one without fails."""
    scene = stacking_plan.scene
    blind = tk.plan(scene, domain="blocks", goal="(on a b)").plan
    assert blind is not None
    world = sample_scene(scene, seed=1)
    rest = solve(execute_looks(stacking_plan, world, seed=1)).plan
    assert looks(rest) == []
    assert rest is not None
    assert succeeds(rest, world)
    assert not succeeds(blind, world)
