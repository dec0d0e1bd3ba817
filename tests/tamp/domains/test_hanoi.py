"""Towers of Hanoi: semantics of the facts in a scene, and plans for three to six discs on rods."""

from __future__ import annotations

import numpy as np
import pytest
from support.classic import checked, classic_domain, facts_of, plan_problem, require_rest
from support.effort import in_long

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans import SegmentKind
from tmkit.spatial import Pose
from tmkit.tamp import PlanStatus

DOMAIN = classic_domain("hanoi")
TABLES = {"panda": "panda_table", "iiwa": "iiwa_nozzle"}


def discs(count: int = 3, *, robot: str = "panda") -> SceneGraph:
    """Return an arm at a table with discs on the left rod."""
    return tk.load_scene(TABLES[robot], f"hanoi{count}")


def test_the_state_says_what_lies_on_what_and_what_fits() -> None:
    """Facts follow from parents and widths; every disc fits on places."""
    scene = discs()
    assert dict(DOMAIN.semantics.objects(scene)) == {
        "d3": "disc",
        "d2": "disc",
        "d1": "disc",
        "left": "place",
        "middle": "place",
        "right": "place",
    }
    facts = facts_of(scene, DOMAIN)
    assert {fact for fact in facts if "fits" not in fact} == {
        "(on d1 d2)",
        "(on d2 d3)",
        "(on d3 left)",
        "(clear d1)",
        "(clear middle)",
        "(clear right)",
        "(handempty)",
    }
    fits = {
        f"(fits d{disc} {place})" for disc in (1, 2, 3) for place in ("left", "middle", "right")
    }
    assert {fact for fact in facts if "fits" in fact} == {
        *fits,
        "(fits d1 d2)",
        "(fits d1 d3)",
        "(fits d2 d3)",
    }


def test_a_disc_in_the_hand_is_held() -> None:
    """A held disc has no support and is not clear; two held discs are rejected."""
    held = discs().reparent("d1", "panda_hand", pose=Pose([0.0, 0.0, 0.1]))
    facts = facts_of(held, DOMAIN)
    assert {"(holding d1)", "(clear d2)"} <= facts
    assert not {"(handempty)", "(clear d1)"} & facts
    with pytest.raises(SceneError, match="'d2' and 'd1' are both in the hand"):
        facts_of(held.reparent("d2", "panda_hand", pose=Pose([0.0, 0.0, 0.1])), DOMAIN)


@pytest.mark.parametrize(
    ("frame", "parent", "pose", "message"),
    [
        (
            "d1",
            "table",
            Pose(),
            "disc 'd1' has parent 'table', expected .*place.*left, middle, right",
        ),
        ("d1", "d3", Pose([0.0, 0.0, 0.024]), "'d2' and 'd1' stand both on 'd3'"),
        (
            "d1",
            "right",
            Pose([0.0, 0.0, 0.02]),
            "'d1' has its bottom 18 mm above the top of 'right'",
        ),
        ("d1", "right", Pose([0.2, 0.0, 0.002]), "'d1' has parent 'right', but stands beside it"),
        (
            "d1",
            "right",
            Pose.from_rpy([0.0, 0.0, 0.01], [0.5, 0.0, 0.0]),
            "'d1' leans by 29 degrees on 'right'",
        ),
    ],
)
def test_a_scene_that_the_words_cannot_tell_is_refused(
    frame: str, parent: str, pose: Pose, message: str
) -> None:
    """A disc in the air, beside its place, leaning, or on a disc that is covered is named."""
    with pytest.raises(SceneError, match=message):
        require_rest(discs().reparent(frame, parent, pose=pose), DOMAIN)


def test_frames_of_one_name_are_refused() -> None:
    """Frames with equal PDDL names are an error."""
    with pytest.raises(
        SceneError, match="disc 'D1' and disc 'd1' have the same name in PDDL: 'd1'"
    ):
        facts_of(discs().rename_frame("d2", "D1"), DOMAIN)


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
@pytest.mark.parametrize("count", [3, *in_long(4, 5), 6])
def test_the_towers_are_moved(count: int, robot: str) -> None:
    """Problems of all sizes have optimal plans in which no disc lies on a smaller one."""
    plan = checked(
        plan_problem(
            "hanoi", f"hanoi{count}", scene=f"hanoi{count}", robot=robot, table=TABLES[robot]
        )
    )
    assert len(plan.steps) == 2 * (2**count - 1)
    assert [plan.final_scene.parent(f"d{disc}") for disc in range(1, count + 1)] == [
        *(f"d{disc}" for disc in range(2, count + 1)),
        "right",
    ]
    for step in plan.steps:
        for disc in range(1, count + 1):
            below = step.scene.parent(f"d{disc}")
            assert below is not None
            assert not below.startswith("d") or int(below[1:]) > disc


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
def test_discs_go_over_the_rods(robot: str) -> None:
    """A disc is lifted until its bottom is above the rod, and lowered straight over another."""
    plan = checked(
        tk.plan(
            discs(robot=robot),
            domain="hanoi",
            goal="(and (on d1 right) (on d2 middle))",
            robot=robot,
        )
    )
    scene, q = plan.scene, plan.q
    (rod,) = scene.shapes("left_rod")
    top = scene.pose("left_rod", relative_to="world", q=q).translation[2] + rod.shape.dimensions[1]
    for step in plan.steps:
        for segment in step.segments:
            before, q_before = scene, q
            scene, q = segment.end(scene, q)
            if segment.kind in (SegmentKind.LIFT, SegmentKind.LOWER):
                disc = str(segment.held)
                start, end = (
                    world.pose(disc, relative_to="world", q=configuration)
                    for world, configuration in ((before, q_before), (scene, q))
                )
                assert np.linalg.norm((end.translation - start.translation)[:2]) < 1e-4
                assert max(start.translation[2], end.translation[2]) > top + 0.01


def test_a_hand_from_above_would_meet_the_rod() -> None:
    """The lowest disc, alone on its rod, is not taken from straight above."""
    alone = discs().reparent("d2", "right", pose=Pose([0.0, 0.0, 0.002]))
    plan = checked(
        tk.plan(
            alone,
            domain="hanoi",
            goal="(on d3 middle)",
            options=tk.PlanningOptions(max_iterations=2),
        )
    )
    assert not plan.steps[0].choice.startswith("grasp from +z")


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
def test_a_disc_is_played(robot: str) -> None:
    """In simulation, fingers or a cup place a disc at the pose of the plan."""
    report = tk.simulate(
        checked(tk.plan(discs(robot=robot), domain="hanoi", goal="(on d1 right)", robot=robot))
    )
    assert report.is_successful, report.notes
    assert report.errors["d1"].position < 0.003


def test_the_goal_may_be_a_scene() -> None:
    """The goal of a goal scene contains the moved disc alone."""
    scene = discs()
    goal = scene.reparent("d1", "right", pose=Pose([0.0, 0.0, 0.002]))
    goals = [
        str(fact)
        for fact in DOMAIN.semantics.goal_facts(goal, DOMAIN.semantics.objects(goal), ("d1",))
    ]
    assert goals == ["(on d1 right)"]
    assert checked(tk.plan(scene, domain="hanoi", goal=goal)).final_scene.parent("d1") == "right"


def test_a_larger_disc_on_a_smaller_one_is_proved_impossible() -> None:
    """A disc that does not fit is never placed, so the task excludes the goal."""
    result = tk.plan(discs(), domain="hanoi", goal="(on d3 d1)")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "no action achieves (on d3 d1)" in result.explanation


def test_a_disc_wider_than_the_hand_is_explained() -> None:
    """A disc that no hand takes is found out at once, and named."""
    ring = [
        AttachedShape(
            Box([0.044, 0.1, 0.09]), pose=Pose([0.0, 0.0, 0.045]) @ turn @ Pose([0.028, 0.0, 0.0])
        )
        for turn in (Pose.from_rpy([0.0, 0.0, 0.0], [0.0, 0.0, 0.5 * np.pi * k]) for k in range(4))
    ]
    alone = discs().reparent("d2", "right", pose=Pose([0.0, 0.0, 0.002]))
    result = tk.plan(
        alone.set_shapes("d3", ring),
        domain="hanoi",
        goal="(on d3 middle)",
        options=tk.PlanningOptions(max_iterations=2),
    )
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "no grasp of 'd3' is known that fits the hand 'panda_hand'" in result.explanation
