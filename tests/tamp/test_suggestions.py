"""Suggestions for problems without a plan: smallest changes first, equal for equal runs."""

from __future__ import annotations

from typing import Any

import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, with_block
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import ConfigurationError
from tmkit.graph import AttachedShape, Box, Revolute, SceneGraph
from tmkit.pddl.formulas import Atom
from tmkit.plans import ObjectAt
from tmkit.spatial import Pose
from tmkit.tamp import Diagnosis, PlanningProgress, PlanResult, PlanStatus
from tmkit.tamp.diagnosis.diagnosis import BlockingBody, Suggestion, SuggestionKind
from tmkit.tamp.suggestions import removable_bodies, without_bodies


def three_blocks() -> SceneGraph:
    """Return three blocks on a table of 25 locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)


def add_lid(scene: SceneGraph, name: str, height: float = 0.08) -> SceneGraph:
    """Return the scene with a lid over the middle."""
    return with_box(scene, name, (-0.05, -0.05, height), (0.05, 0.05, height + 0.01))


def solve(scene: SceneGraph, goal: str, **options: Any) -> PlanResult:
    """Plan with the gantry, for a few iterations."""
    return solve_with(scene, goal, **{"robot": GANTRY, "max_iterations": 2, **options})


def test_removing_an_obstacle_is_suggested() -> None:
    """The lid over the block is the only suggestion, with the plan without it."""
    result = solve(add_lid(three_blocks(), "lid"), "(on a b)")
    assert not result.is_solved
    actions = ("(pick-up a table__0__0)", "(stack a b)")
    assert result.diagnosis.suggestions == (
        Suggestion(SuggestionKind.WITHOUT_BODIES, ("lid",), actions),
    )
    assert result.explanation.endswith("With 'lid' out of the way there is a plan of 2 actions.")
    assert result.to_dict()["diagnosis"]["suggestions"] == [
        {"kind": "without bodies", "names": ["lid"], "actions": list(actions)}
    ]


def test_two_obstacles_are_suggested_if_one_does_not_suffice() -> None:
    """Both of two lids, one above the other, must be removed."""
    walls = add_lid(add_lid(three_blocks(), "low"), "high", 0.14)
    result = solve(walls, "(on a b)")
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, set(suggestion.names)) == (
        SuggestionKind.WITHOUT_BODIES,
        {"low", "high"},
    )
    assert "'low'" in result.explanation
    assert "out of the way there is a plan" in result.explanation


def test_omitting_an_infeasible_goal_is_suggested() -> None:
    """Of two goals only the one out of reach is omitted."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = three_blocks().add_frame(
        "shelf", "world", pose=Pose([3.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    scene = with_block(scene, "far", [3.0, 0.0, BLOCK / 2], parent="shelf")
    result = solve(scene, "(and (on a b) (on far c))")
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_GOALS, ("(on far c)",))
    assert result.explanation.endswith("Without the goal (on far c) there is a plan of 2 actions.")


def test_parts_that_exclude_each_other_are_alternatives() -> None:
    """Either of two contradicting facts may be omitted; an unrelated third one stays."""
    result = solve(three_blocks(), "(and (clear c) (on a b) (on b a))")
    assert [suggestion.names for suggestion in result.diagnosis.suggestions] == [
        ("(on a b)",),
        ("(on b a)",),
    ]
    assert "Without the goal (on a b) there is a plan" in result.explanation


def test_any_part_of_a_cycle_may_be_omitted() -> None:
    """Three blocks are on each other in a cycle."""
    result = solve(three_blocks(), "(and (on a b) (on b c) (on c a))")
    assert result.diagnosis.conflict is None
    assert {suggestion.names for suggestion in result.diagnosis.suggestions} == {
        ("(on a b)",),
        ("(on b c)",),
        ("(on c a)",),
    }


def test_two_goals_are_omitted_if_one_does_not_suffice() -> None:
    """Two of three goals are out of reach, and both are in one suggestion."""
    scene = blocks_scene({"b": (1, 1), "c": (-1, 1)}, table=0.4)
    for name, x in (("wide", 0.0), ("broad", -0.12)):
        scene = with_block(scene, name, [x, -0.1, 0.05], shape=Box([0.1] * 3))
    result = solve(scene, "(and (ontable wide table__2__2) (ontable broad table__-2__2) (clear b))")
    assert result.diagnosis.suggestions == ()  # without both the rest holds already
    result = solve(
        with_block(scene, "a", [0.1, 0.0, BLOCK / 2]),
        "(and (ontable wide table__2__2) (ontable broad table__-2__2) (holding a))",
    )
    [suggestion] = result.diagnosis.suggestions
    assert set(suggestion.names) == {"(ontable wide table__2__2)", "(ontable broad table__-2__2)"}
    assert "Without the goals (ontable " in result.explanation


def test_removing_an_immovable_block_is_suggested() -> None:
    """A block too wide for the hand occupies the goal of another block."""
    scene = with_block(three_blocks(), "wide", [0.1, -0.1, 0.05], shape=Box([0.1] * 3))
    [suggestion] = solve(scene, "(ontable a table__1__-1)").diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_BODIES, ("wide",))


def test_a_proof_names_the_immovable_block() -> None:
    """A block too wide for the hand is on the goal object, so no plan exists."""
    scene = with_block(
        three_blocks(), "wide", [0.0, 0.0, BLOCK + 0.05], parent="a", shape=Box([0.1] * 3)
    )
    result = solve(scene, "(on a b)")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "'wide'" in result.explanation


def test_replanning_requires_the_option_and_a_failure() -> None:
    """Without the option, or with a plan, nothing is planned again."""
    result = solve(add_lid(three_blocks(), "lid"), "(on a b)", suggest=False)
    assert (result.diagnosis.suggestions, result.diagnosis.replans) == ((), 0)
    assert "there is a plan" not in result.explanation
    assert solve(three_blocks(), "(on a b)").diagnosis.replans == 0
    with pytest.raises(ConfigurationError):
        solve(three_blocks(), "(on a b)", time_limit=0.0)


def test_equal_runs_have_equal_suggestions() -> None:
    """The changes depend on the diagnosis, and each result on its problem and the seed."""
    first, again = (solve(add_lid(three_blocks(), "lid"), "(on a b)", seed=2) for _ in range(2))
    assert first.diagnosis == again.diagnosis
    assert first.explanation == again.explanation


def test_suggestions_report_progress() -> None:
    """Their phase is ``suggestions``, with the number of the replan."""
    progress_reports: list[PlanningProgress] = []
    result = solve(add_lid(three_blocks(), "lid"), "(on a b)", on_progress=progress_reports.append)
    reports = [progress for progress in progress_reports if progress.phase == "suggestions"]
    assert [progress.step for progress in reports] == list(range(1, result.diagnosis.replans + 1))
    assert "no plan; trying suggestions, 1/10" in str(reports[0])


def test_removable_bodies() -> None:
    """Arms, surfaces, supports of objects and objects of the goal are not removable."""
    scene = blocks_scene({"a": (0, 0), "b": "a", "c": (2, 2)}, table=0.6)
    scene = with_box(scene, "wall", (0.3, 0.3, 0.0), (0.31, 0.4, 0.1))
    names = ("hand", "rail", "table", "a", "b", "c", "wall")
    diagnosis_ = Diagnosis(actions=(_obstacle_diagnosis(*names),))
    assert removable_bodies(scene, [GANTRY], Atom("on", ("c", "a")), diagnosis_) == ("b", "wall")


def _obstacle_diagnosis(*names: str) -> Any:
    from tmkit.tamp.diagnosis.diagnosis import ActionDiagnosis

    return ActionDiagnosis("(wait)", 1, (), (), tuple(BlockingBody(name, 1) for name in names))


def test_the_scene_without_bodies() -> None:
    """Movable bodies are removed with their subtrees; others and jointed ones lose shapes."""
    scene = with_box(three_blocks(), "wall", (0.3, 0.3, 0.0), (0.31, 0.4, 0.1))
    scene = scene.add_frame(
        "box", "table", classes=["movable"], shapes=[AttachedShape(Box([0.1] * 3))]
    )
    scene = scene.add_frame("flap", "box", joint=Revolute([0, 0, 1], lower=-1.0, upper=1.0))
    bare = without_bodies(scene, ["a", "wall", "box"])
    assert "a" not in bare
    assert (bare.shapes("wall"), bare.shapes("box")) == ((), ())
    assert bare.joint_names == scene.joint_names
    assert "flap" in bare


def test_a_continuous_goal_is_not_omitted() -> None:
    """A body that blocks the goal pose of an object is suggested."""
    wanted = ObjectAt("a", Pose([0.1, -0.1, 0.05 + BLOCK / 2]), relative_to="table")
    result = tk.plan(
        add_lid(three_blocks(), "lid"),
        goal=[wanted, "(clear b)"],
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=2),
    )
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_BODIES, ("lid",))
