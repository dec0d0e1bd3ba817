"""Diagnosis of a run without a plan, as data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, with_block
from support.kitchen import ROBOT, kitchen
from support.planning import solve_with

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Inertia, SceneGraph
from tmkit.plans import FailureKind
from tmkit.spatial import Pose
from tmkit.tamp import Diagnosis, PlanResult, PlanStatus
from tmkit.tamp.diagnosis.collect import bodies_in_the_way
from tmkit.tamp.diagnosis.diagnosis import (
    BlockingBody,
    GoalConflict,
    LearnedConstraint,
    format_length,
    sum_counts,
)


def two() -> SceneGraph:
    """Return two blocks on a table of 25 locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def under_a_lid() -> SceneGraph:
    """Return the two, the first under a lid."""
    return with_box(two(), "lid", (-0.05, -0.05, 0.08), (0.05, 0.05, 0.1))


def far_away() -> SceneGraph:
    """Return the two, and a third 3 m away."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = two().add_frame(
        "shelf", "world", pose=Pose([3.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    return with_block(scene, "far", [3.0, 0.0, BLOCK / 2], parent="shelf")


def solve(scene: SceneGraph, goal: str, **options: Any) -> PlanResult:
    """Plan with the gantry, for one iteration."""
    return solve_with(scene, goal, **{"robot": GANTRY, "max_iterations": 1, **options})


def test_bodies_in_the_way_are_counted() -> None:
    """For a block under a lid, the diagnosis counts the failures and names the lid."""
    diagnosis = solve(under_a_lid(), "(on a b)").diagnosis
    [action] = diagnosis.actions
    assert action.action == "(pick-up a table__0__0)"
    assert action.failures == sum(count for _, count in action.kinds)
    assert action.failures <= diagnosis.attempts
    assert action.failures == sum(cause.count for cause in action.causes)
    assert dict(action.kinds)[FailureKind.COLLISION] > 0
    assert [body.frame for body in action.in_the_way] == ["lid"]
    assert diagnosis.in_the_way == action.in_the_way
    assert action.excess == 0.0
    assert action.causes == tuple(sorted(action.causes, key=lambda cause: -cause.count))


def test_what_was_learned_is_told() -> None:
    """A failure within budgets is learned once a round, with its context, and claims no proof."""
    diagnosis = solve(under_a_lid(), "(on a b)", max_iterations=4).diagnosis
    assert diagnosis.iterations == 4
    [constraint] = diagnosis.constraints
    assert constraint.action == "(pick-up a table__0__0)"
    assert "(ontable a table__0__0)" in constraint.context
    assert not constraint.is_proved
    assert constraint.count == 4
    assert str(constraint).startswith("(pick-up a table__0__0) while (ontable")
    assert str(LearnedConstraint("(wait)", (), is_proved=True)) == "(wait)"


def test_an_example_says_where_everything_was() -> None:
    """The first failure of each cause has its scene, configuration, object and bodies."""
    scene = under_a_lid()
    [action] = solve(scene, "(on a b)").diagnosis.actions
    [blocked] = [cause for cause in action.causes if cause.in_the_way]
    example = blocked.example
    assert example is not None
    assert (example.object, example.in_the_way, example.scene) == ("a", ("lid",), scene)
    assert example.robot is GANTRY
    tool = scene.pose("tool", relative_to="world", q=example.q).translation
    assert np.linalg.norm(tool[:2]) < 0.02
    choices = [example.choice for example in blocked.examples]
    assert len(set(choices)) == len(choices) > 1
    assert all(choice.startswith("grasp from ") for choice in choices)


def test_metres_out_of_reach_are_worked_out() -> None:
    """A lower bound of the distance to a block 3 m away is proved."""
    result = solve(far_away(), "(on far b)")
    [action] = result.diagnosis.actions
    assert dict(action.kinds) == {FailureKind.OUT_OF_REACH: action.failures}
    assert 1.0 < action.excess < 2.5
    assert (
        f"the pose is out of the arm's reach, by at least {format_length(action.excess)}."
        in result.explanation
    )
    [constraint] = result.diagnosis.constraints
    assert constraint.is_proved
    assert (
        "It is proved that no pose tried for (pick-up far shelf__0__0) is within reach"
        in result.explanation
    )


def test_what_is_impossible_in_every_state_is_told() -> None:
    """A block wider than the hand opens is a proof that speaks of no state."""
    scene = with_block(
        blocks_scene({"b": (1, 1)}, table=0.4), "a", [0.0, 0.0, 0.05], shape=Box([0.1] * 3)
    )
    result = solve(scene, "(ontable a table__-1__1)")
    assert result.diagnosis.constraints == (
        LearnedConstraint("(pick-up a table__0__0)", (), is_proved=True),
    )
    assert (
        "It is proved that (pick-up a table__0__0) cannot be carried out in any state."
        in result.explanation
    )
    assert result.diagnosis.actions[0].kinds == ((FailureKind.NO_CHOICE, 1),)


def test_a_region_too_full_is_told_with_what_stands_there() -> None:
    """A pot on the stove is in the way of the block, and its removal is a suggestion."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    scene = scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.05]), classes=["movable"], shapes=shapes
    )
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(and (on b0 stove) (on pot stove))",
        robot=ROBOT,
        options=tk.PlanningOptions(max_iterations=1),
    )
    actions = {action.action: action for action in result.diagnosis.actions}
    full = actions["(place pot stove)"]
    assert full.kinds == ((FailureKind.NO_ROOM, full.failures),)
    assert full.in_the_way == (BlockingBody("b0", full.failures),)
    assert (
        f"failed {full.failures} times, choosing: no room was found for 'pot' on 'stove'."
        in result.explanation
    )
    assert [suggestion.names for suggestion in result.diagnosis.suggestions] == [
        ("(on pot stove)",)
    ]
    context = next(
        c.context for c in result.diagnosis.constraints if c.action == "(place pot stove)"
    )
    assert "(on b0 stove)" in context
    assert "(on pot stove)" not in context


def test_what_is_too_heavy_is_told() -> None:
    """For a pot of 8 kg, the cause has the force on the cup and the excess factor."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.2]))]
    scene = scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.1]), classes=["movable"], shapes=shapes
    )
    scene = scene.set_inertia("pot", Inertia(8.0))
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(on pot sink)",
        robot=ROBOT,
        options=tk.PlanningOptions(max_iterations=1),
    )
    force, vacuum = 1.25 * 9.81 * 8.0, tk.load_manipulator(ROBOT).grip_force
    words = (
        f"'pot' is too heavy for this grasp: it pulls with {force:.0f} N, {force / vacuum:.1f}"
        " times"
    )
    assert words in result.explanation


@pytest.mark.parametrize(
    ("goal", "facts", "words"),
    [
        (
            "(and (on a b) (on b a))",
            ("(on a b)", "(on b a)"),
            "(on a b) and (on b a) exclude each other.",
        ),
        ("(and (clear b) (on a a))", ("(on a a)",), "no action achieves (on a a)."),
        (
            "(and (clear b) (and (on a b) (not (handempty))))",
            ("(clear b)", "(on a b)"),
            "(clear b) and (on a b) exclude each other.",
        ),
        (
            "(and (on a b) (not (handempty)))",
            ("(on a b)", "(not (handempty))"),
            "(on a b) and (not (handempty)) exclude each other.",
        ),
    ],
)
def test_facts_that_exclude_each_other_are_named(
    goal: str, facts: tuple[str, ...], words: str
) -> None:
    """If the task alone has no solution, the diagnosis contains the conflicting facts."""
    result = solve(two(), goal)
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.diagnosis.conflict == GoalConflict(facts)
    assert words in result.explanation


def test_goals_of_which_pairs_say_nothing() -> None:
    """A problem that is proved impossible without a pair at fault has a general explanation."""
    result = solve(two(), "(exists (?x - block) (on ?x ?x))")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.diagnosis.conflict is None
    assert (
        "the goal contradicts itself, or contains a fact that no action achieves"
        in result.explanation
    )


def test_a_plan_has_a_diagnosis_too() -> None:
    """Failures are stored when a plan was found."""
    scene = blocks_scene({"b": (1, 1), "a": "b", "c": (2, 1)}, table=0.4)
    scene = with_box(scene, "lid", (-0.25, -0.25, 0.16), (0.25, 0.04, 0.17))
    result = solve(scene, "(on b c)")
    assert result.is_solved
    assert "lid" in [body.frame for body in result.diagnosis.in_the_way]
    assert result.diagnosis.iterations == 1
    assert solve(two(), "(on a b)").diagnosis == Diagnosis(iterations=1, skeletons=1, attempts=2)


def test_equal_runs_have_equal_diagnoses_and_words() -> None:
    """Neither clocks nor hash seeds are in them."""
    first, again = (solve(under_a_lid(), "(on a b)", seed=5) for _ in range(2))
    assert first.diagnosis == again.diagnosis
    assert first.explanation == again.explanation


def test_a_diagnosis_is_plain_values_for_programs() -> None:
    """The output of --json has all fields but scenes and configurations."""
    result = solve(under_a_lid(), "(on a b)")
    values = json.loads(json.dumps(result.to_dict()))["diagnosis"]
    diagnosis = result.diagnosis
    assert values["iterations"] == diagnosis.iterations
    assert values["in_the_way"] == {"lid": diagnosis.in_the_way[0].count}
    assert values["actions"][0]["kinds"] == {
        kind.value: count for kind, count in diagnosis.actions[0].kinds
    }
    assert [cause["count"] for cause in values["actions"][0]["causes"]] == [
        cause.count for cause in diagnosis.actions[0].causes
    ]
    assert values["constraints"][0]["context"] == list(diagnosis.constraints[0].context)
    assert values["conflict"] == values["proofs"] == []
    assert solve(two(), "(and (on a b) (on b a))").to_dict()["diagnosis"]["conflict"] == [
        "(on a b)",
        "(on b a)",
    ]


@pytest.mark.parametrize(
    ("pair", "object", "bodies"),
    [
        (("left", "wall"), None, ("wall",)),
        (("wall", "left"), "cup", ("wall",)),
        (("cup", "wall"), "cup", ("wall",)),
        (("left", "cup"), "cup", ("cup",)),
        (("left", "right"), "cup", ()),
        (("lid", "wall"), "cup", ("lid", "wall")),
        (("spoon", "wall"), "cup", ("wall",)),
        (("spoon", "cup"), "cup", ()),
    ],
)
def test_who_is_in_whose_way(
    pair: tuple[str, str], object: str | None, bodies: tuple[str, ...]
) -> None:
    """The frame that neither arm nor object moves is in the way, else the object."""
    scene = SceneGraph()
    for name in ("left", "right", "wall", "lid", "cup"):
        scene = scene.add_frame(name, "world")
    scene = scene.add_frame("spoon", "cup")
    assert (
        bodies_in_the_way((pair,), scene, moved=frozenset({"left", "right"}), object=object)
        == bodies
    )


def test_counts_of_bodies_are_added_up_in_order() -> None:
    """Most often first, ties by name."""
    bodies = [
        BlockingBody("b", 1),
        BlockingBody("c", 3),
        BlockingBody("a", 1),
        BlockingBody("b", 1),
    ]
    assert sum_counts(bodies) == (BlockingBody("c", 3), BlockingBody("b", 2), BlockingBody("a", 1))


def test_lengths_are_told_in_centimetres_below() -> None:
    """A lower bound stays one when it is rounded."""
    assert [format_length(value) for value in (0.004, 0.01, 0.019, 1.5)] == [
        "less than 1 cm",
        "1 cm",
        "1 cm",
        "150 cm",
    ]
