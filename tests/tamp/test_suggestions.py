"""What would help when there is no plan: found by planning again, smallest first, the same for equal runs."""

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


def three() -> SceneGraph:
    """Return three blocks on a table of 25 locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)


def lid(scene: SceneGraph, name: str, height: float = 0.08) -> SceneGraph:
    """Return the scene with a lid over the middle."""
    return with_box(scene, name, (-0.05, -0.05, height), (0.05, 0.05, height + 0.01))


def solve(scene: SceneGraph, goal: str, **options: Any) -> PlanResult:
    """Plan with the gantry, for a few iterations."""
    return solve_with(scene, goal, **{"robot": GANTRY, "max_iterations": 2, **options})


def test_an_obstacle_out_of_the_way() -> None:
    """A lid over the block is the one thing to take away, and the plan that there is then is told."""
    result = solve(lid(three(), "lid"), "(on a b)")
    assert not result.is_solved
    actions = ("(pick-up a table__0__0)", "(stack a b)")
    assert result.diagnosis.suggestions == (
        Suggestion(SuggestionKind.WITHOUT_BODIES, ("lid",), actions),
    )
    assert result.explanation.endswith("With 'lid' out of the way there is a plan of 2 actions.")
    assert result.to_dict()["diagnosis"]["suggestions"] == [
        {"kind": "without bodies", "names": ["lid"], "actions": list(actions)}
    ]


def test_two_obstacles_only_when_one_is_not_enough() -> None:
    """Of two lids one above the other both have to go."""
    walls = lid(lid(three(), "low"), "high", 0.14)
    result = solve(walls, "(on a b)")
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, set(suggestion.names)) == (
        SuggestionKind.WITHOUT_BODIES,
        {"low", "high"},
    )
    assert "'low'" in result.explanation
    assert "out of the way there is a plan" in result.explanation


def test_a_part_of_the_goal_given_up() -> None:
    """Of two wishes the one that is out of reach is given up, and the other is not."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = three().add_frame(
        "shelf", "world", pose=Pose([3.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    scene = with_block(scene, "far", [3.0, 0.0, BLOCK / 2], parent="shelf")
    result = solve(scene, "(and (on a b) (on far c))")
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_GOALS, ("(on far c)",))
    assert result.explanation.endswith("Without the goal (on far c) there is a plan of 2 actions.")


def test_parts_that_exclude_each_other_are_alternatives() -> None:
    """Of two contradicting facts either may go; a third that is innocent stays."""
    result = solve(three(), "(and (clear c) (on a b) (on b a))")
    assert [suggestion.names for suggestion in result.diagnosis.suggestions] == [
        ("(on a b)",),
        ("(on b a)",),
    ]
    assert "Without the goal (on a b) there is a plan" in result.explanation


def test_a_circle_that_no_pair_explains() -> None:
    """Three blocks in a circle: each may be left out."""
    result = solve(three(), "(and (on a b) (on b c) (on c a))")
    assert result.diagnosis.conflict is None
    assert {suggestion.names for suggestion in result.diagnosis.suggestions} == {
        ("(on a b)",),
        ("(on b c)",),
        ("(on c a)",),
    }


def test_two_parts_only_when_one_is_not_enough() -> None:
    """Where both of three wishes are beyond the hand, both are named together."""
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


def test_what_cannot_be_moved_may_go() -> None:
    """A block too wide for the hand stands where another is wanted: without it there is a plan."""
    scene = with_block(three(), "wide", [0.1, -0.1, 0.05], shape=Box([0.1] * 3))
    [suggestion] = solve(scene, "(ontable a table__1__-1)").diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_BODIES, ("wide",))


def test_a_proof_names_what_cannot_be_moved() -> None:
    """A block too wide for the hand stands on the one that is wanted: no plan is possible, and the proof names it."""
    scene = with_block(three(), "wide", [0.0, 0.0, BLOCK + 0.05], parent="a", shape=Box([0.1] * 3))
    result = solve(scene, "(on a b)")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "'wide'" in result.explanation


def test_nobody_asked_and_no_time() -> None:
    """Without suggestions nothing is tried again; with a plan neither."""
    result = solve(lid(three(), "lid"), "(on a b)", suggest=False)
    assert (result.diagnosis.suggestions, result.diagnosis.replans) == ((), 0)
    assert "there is a plan" not in result.explanation
    assert solve(three(), "(on a b)").diagnosis.replans == 0
    with pytest.raises(ConfigurationError):
        solve(three(), "(on a b)", time_limit=0.0)


def test_equal_runs_have_equal_suggestions() -> None:
    """What is asked follows from the diagnosis, and each answer from the question and the seed."""
    first, again = (solve(lid(three(), "lid"), "(on a b)", seed=2) for _ in range(2))
    assert first.diagnosis == again.diagnosis
    assert first.explanation == again.explanation


def test_whoever_listens_hears_of_it() -> None:
    """Progress has a phase of its own, with the number of the question."""
    heard: list[PlanningProgress] = []
    result = solve(lid(three(), "lid"), "(on a b)", on_progress=heard.append)
    told = [progress for progress in heard if progress.phase == "suggestions"]
    assert [progress.step for progress in told] == list(range(1, result.diagnosis.replans + 1))
    assert "no plan; trying suggestions, 1/10" in str(told[0])


def test_what_may_be_taken_away_in_thought() -> None:
    """Not the arm, no surface, nothing that carries an object, and nothing that the goal speaks of."""
    scene = blocks_scene({"a": (0, 0), "b": "a", "c": (2, 2)}, table=0.6)
    scene = with_box(scene, "wall", (0.3, 0.3, 0.0), (0.31, 0.4, 0.1))
    names = ("hand", "rail", "table", "a", "b", "c", "wall")
    diagnosis_ = Diagnosis(actions=(_blocked_by(*names),))
    assert removable_bodies(scene, [GANTRY], Atom("on", ("c", "a")), diagnosis_) == ("b", "wall")


def _blocked_by(*names: str) -> Any:
    from tmkit.tamp.diagnosis.diagnosis import ActionDiagnosis

    return ActionDiagnosis("(wait)", 1, (), (), tuple(BlockingBody(name, 1) for name in names))


def test_the_scene_without_bodies() -> None:
    """Movable ones are gone with what hangs off them; of fixed ones, and of those with joints, the shapes are."""
    scene = with_box(three(), "wall", (0.3, 0.3, 0.0), (0.31, 0.4, 0.1))
    scene = scene.add_frame(
        "box", "table", classes=["movable"], shapes=[AttachedShape(Box([0.1] * 3))]
    )
    scene = scene.add_frame("flap", "box", joint=Revolute([0, 0, 1], lower=-1.0, upper=1.0))
    bare = without_bodies(scene, ["a", "wall", "box"])
    assert "a" not in bare
    assert (bare.shapes("wall"), bare.shapes("box")) == ((), ())
    assert bare.joint_names == scene.joint_names
    assert "flap" in bare


def test_a_goal_that_facts_cannot_say() -> None:
    """For an object at a pose a body in the way is a suggestion; such a goal is never taken apart."""
    wanted = ObjectAt("a", Pose([0.1, -0.1, 0.05 + BLOCK / 2]), relative_to="table")
    result = tk.plan(
        lid(three(), "lid"),
        goal=[wanted, "(clear b)"],
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=2),
    )
    [suggestion] = result.diagnosis.suggestions
    assert (suggestion.kind, suggestion.names) == (SuggestionKind.WITHOUT_BODIES, ("lid",))
