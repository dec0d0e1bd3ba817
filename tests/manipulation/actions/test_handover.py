"""Plans of several arms with handovers between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY, gantry_scene
from support.robots import require_robot

import tmkit as tk
from tmkit.errors import RobotError, UnknownNameError
from tmkit.manipulation import ActionMotion, MotionSettings
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.motion import CollisionRules
from tmkit.plans import MotionFailure, Plan, Segment, SegmentKind
from tmkit.plans.plan_file import plan_to_dict
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import find_manipulators
from tmkit.tamp import load_planning_domain, load_tmp_plan

DATA = Path(__file__).parents[2] / "data"
ARMS = ("baxter", "baxter_left")
GOAL = "(at a left_tray)"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Return the plan in which a block goes from Baxter's right hand to its left one."""
    require_robot("baxter")
    scene = tk.load_scene("baxter_trays")
    problem = tk.data_path("domains/handover") / "problems" / "across.pddl"
    plan_or_none = tk.plan(scene, domain="handover", goal=problem, robot=ARMS, seed=0).plan
    assert plan_or_none is not None
    return plan_or_none


def kinds(segments: tuple[Segment, ...]) -> list[tuple[str, str]]:
    """Return who does what."""
    return [(segment.arm, segment.kind.value) for segment in segments]


def test_what_no_arm_can_carry_all_the_way_changes_hands(plan: Plan) -> None:
    """Neither arm reaches both trays, so the plan has a handover, and it is valid."""
    assert [action.name for action in plan.actions] == ["pick", "hand-over", "place"]
    assert [robot.name for robot in plan.robots] == list(ARMS)
    assert plan.robot is plan.robots[0]
    assert tk.validate_plan(plan).problems == ()


def test_a_handover_is_taking_then_letting_go(plan: Plan) -> None:
    """The segments of a handover are in order, and the parent changes once."""
    segments = plan.steps[1].segments
    assert kinds(segments) == [
        ("baxter", "transfer"),
        ("baxter_left", "transit"),
        ("baxter_left", "approach"),
        ("baxter_left", "grasp"),
        ("baxter", "release"),
        ("baxter", "retreat"),
    ]
    changes = [segment.reparenting for segment in segments if segment.reparenting is not None]
    assert [(change.frame, change.parent) for change in changes] == [("a", "left_endpoint")]


def test_both_hands_touch_only_while_it_changes_hands(plan: Plan) -> None:
    """Each hand may touch the block where it holds, takes or leaves it, and nowhere else."""
    touching = []
    for segment in plan.steps[1].segments:
        pairs = {
            frame
            for e in segment.allowed_contacts
            for frame in (e.frame_a, e.frame_b)
            if "a" in (e.frame_a, e.frame_b)
        }
        touching.append(sorted(pairs - {"a"}))
    right, left = "right_endpoint", "left_endpoint"
    assert touching == [
        [right],
        [right],
        [left, right],
        [left, right],
        [left, right],
        [left, right],
    ]
    carried = plan.steps[2].segments[0]
    assert right not in {
        frame for e in carried.allowed_contacts for frame in (e.frame_a, e.frame_b)
    }


def test_the_same_seed_gives_the_same_plan(plan: Plan) -> None:
    """A second run with the same seed writes the same bytes."""
    again = tk.plan(plan.scene, domain="handover", goal=GOAL, robot=ARMS, seed=0).plan
    assert again is not None
    assert plan_to_dict(again) == plan_to_dict(plan)


def test_plan_files_know_the_arms(plan: Plan, tmp_path: Path) -> None:
    """JSON files and plan files of the original format keep arms and segments."""
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert loaded.robots == plan.robots
    assert [kinds(step.segments) for step in loaded.steps] == [
        kinds(step.segments) for step in plan.steps
    ]
    assert tk.validate_plan(loaded).is_valid
    tk.save_plan(plan, tmp_path / "plan.tmp")
    read = load_tmp_plan(
        tmp_path / "plan.tmp", plan.scene, domain="handover", robot=ARMS, goal=GOAL
    )
    assert [kinds(step.segments) for step in read.steps] == [
        kinds(step.segments) for step in plan.steps
    ]
    assert tk.validate_plan(read).problems == ()


def without(plan: Plan, *dropped: int) -> Plan:
    """Return the plan without some segments of its handover."""
    step = plan.steps[1]
    segments = tuple(segment for index, segment in enumerate(step.segments) if index not in dropped)
    return replace(plan, steps=(plan.steps[0], replace(step, segments=segments), plan.steps[2]))


@pytest.mark.parametrize(
    ("dropped", "problem"),
    [
        ((4, 5), "grasp: it takes 'a' from the arm 'baxter', which does not release it next"),
        ((3,), "release: 'a' does not change its parent"),
        ((2,), "grasp: it does not start at the configuration of the arm"),
        ((5,), "its scene differs from the result of its motion"),
    ],
)
def test_half_a_handover_is_none(plan: Plan, dropped: tuple[int, ...], problem: str) -> None:
    """The validator detects a missing retreat, an early release, and gaps in the motion."""
    problems = tk.validate_plan(without(plan, *dropped)).problems
    assert any(text.startswith("step 2 ") and text.endswith(problem) for text in problems)


def test_an_arm_that_stands_keeps_what_it_holds(plan: Plan) -> None:
    """While the left arm moves home, the right one holds the block, which it may touch."""
    step = plan.steps[0]
    left = plan.robots[1]
    arms = arm_motion_planners(plan.robots, budget=MotionSettings())
    motion = next(
        arms["baxter_left"].move(
            step.scene, step.q, to={**left.ready, "left_w2": 0.5}, name="", seed=0
        )
    )
    assert isinstance(motion, ActionMotion), isinstance(motion, MotionFailure) and motion
    (segment,) = motion.segments
    assert (segment.arm, segment.kind) == ("baxter_left", SegmentKind.TRANSIT)
    assert any({e.frame_a, e.frame_b} == {"a", "right_endpoint"} for e in segment.allowed_contacts)
    assert motion.scene.parent("a") == "right_endpoint"


def test_a_segment_moves_its_own_arm_only(plan: Plan) -> None:
    """A segment in the name of one arm with the joints of the other is a problem."""
    step = plan.steps[0]
    wrong = replace(
        step, segments=(replace(step.segments[0], arm="baxter_left"), *step.segments[1:])
    )
    report = tk.validate_plan(replace(plan, steps=(wrong, *plan.steps[1:])))
    assert any("it moves other joints than the arm's" in problem for problem in report.problems)


def test_an_arm_that_nobody_knows(plan: Plan) -> None:
    """The name of an arm that takes no part is an error that lists those that do."""
    with pytest.raises(
        UnknownNameError, match="unknown arm 'baxter_lef'; did you mean 'baxter_left'"
    ):
        plan.arm("baxter_lef")
    with pytest.raises(UnknownNameError, match="unknown arm 'nobody'"):
        CollisionRules(plan.robot).for_arm("nobody")


def test_a_domain_of_one_arm_refuses_two() -> None:
    """The blocks domain takes one arm, and rejects others with their names."""
    other = Manipulator.from_dict({**GANTRY.to_dict(), "name": "other"})
    with pytest.raises(
        RobotError, match=r"semantics.py: the domain takes one arm only, received 2: gantry, other"
    ):
        load_planning_domain("blocks", robot=(GANTRY, other))


def test_arms_must_be_different() -> None:
    """Two arms of one name, two with a shared joint, and no arm are rejected."""
    scene = gantry_scene()
    twin = Manipulator.from_dict({**GANTRY.to_dict(), "name": "twin"})
    with pytest.raises(RobotError, match="two arms have the name 'gantry'"):
        find_manipulators((GANTRY, GANTRY), scene)
    with pytest.raises(RobotError, match="the arms 'gantry' and 'twin' both move joint 'x'"):
        find_manipulators((GANTRY, twin), scene)
    with pytest.raises(RobotError, match="give at least one arm"):
        find_manipulators((), scene)


def test_an_action_may_be_several_candidates() -> None:
    """Regrasping places an object and picks it by other sides in one valid action."""
    scene = blocks_scene({"a": (0, 0)})
    result = tk.plan(scene, domain=DATA / "domains" / "regrasp", goal="(across a)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert [action.name for action in result.plan.actions] == ["take", "regrasp"]
    assert [kind for _, kind in kinds(result.plan.steps[1].segments)] == [
        "transfer",
        "lower",
        "release",
        "retreat",
        "transit",
        "approach",
        "grasp",
        "lift",
    ]
    assert tk.validate_plan(result.plan, domain=DATA / "domains" / "regrasp").problems == ()


def test_the_handover_is_played(plan: Plan) -> None:
    """Two suction cups bring the block to the other side, within 5 mm, and nothing is noted."""
    report = tk.simulate(plan)
    assert report.notes == ()
    assert report.worst_position < 0.005
    assert [(slip.step, slip.lost) for slip in report.slips] == [(1, None), (2, None)]
    assert len(report.tracking) == 14
