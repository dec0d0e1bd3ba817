"""Planning from scene to result: solved, rejected and unsolved problems."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.blocks import SUSSMAN, blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, SUCKER, with_block
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import (
    CollisionError,
    ConfigurationError,
    MissingFileError,
    RobotError,
    SceneError,
    TaskError,
)
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans import Plan, SegmentKind
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanningProgress, PlanResult, PlanStatus
from tmkit.tamp.diagnosis.diagnosis import SearchEnd


def two_blocks() -> SceneGraph:
    """Return two blocks on a table of 25 locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def solve(scene: SceneGraph, goal: Any, **options: Any) -> PlanResult:
    """Plan with the gantry."""
    return solve_with(scene, goal, **{"robot": GANTRY, **options})


def solve_valid(scene: SceneGraph, goal: str, **options: Any) -> Plan:
    """Return a valid plan, which must exist."""
    result = solve(scene, goal, **options)
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    return result.plan


# --- plans that there are ---


def test_a_plan_reaches_the_goal_and_keeps_the_start_scene() -> None:
    """The goal holds in the last scene; the first scene is unchanged."""
    scene = two_blocks()
    copy = two_blocks()
    result = solve(scene, "(on a b)")
    assert result.status is PlanStatus.SOLVED
    assert result.is_solved
    assert repr(result) == f"PlanResult(solved, 2 steps, {result.statistics.attempts} attempts)"
    assert result.plan is not None
    assert result.plan.final_scene.parent("a") == "b"
    assert result.plan.scene is scene
    assert scene == copy
    assert (
        result.explanation == "Found 2 actions with their motions for (on a b), after 1 task plan."
    )
    assert [str(action) for action in result.plan.actions] == [
        "(pick-up a table__0__0)",
        "(stack a b)",
    ]
    assert tk.validate_plan(result.plan).is_valid


def test_the_steps_of_a_pick_and_a_place() -> None:
    """The segments of a pick and of a place have fixed kinds, and each step has a choice."""
    plan = solve_valid(two_blocks(), "(on a b)")
    kinds = [[segment.kind for segment in step.segments] for step in plan.steps]
    kind = SegmentKind
    assert kinds == [
        [kind.TRANSIT, kind.APPROACH, kind.GRASP, kind.LIFT],
        [kind.TRANSFER, kind.LOWER, kind.RELEASE, kind.RETREAT],
    ]
    assert plan.steps[0].choice.startswith("grasp from +z")
    assert plan.steps[1].choice == "on b at (0.000, 0.000, 0.050)"


def test_a_goal_that_holds_already_needs_no_actions() -> None:
    """The plan is empty and valid, and the explanation has the reason."""
    result = solve(two_blocks(), "(and (ontable a table__0__0) (handempty))")
    assert result.plan is not None
    assert result.plan.steps == ()
    assert result.plan.final_scene is result.plan.scene
    assert tk.validate_plan(result.plan).is_valid
    assert "holds already, so the plan is empty" in result.explanation


def test_the_sussman_anomaly() -> None:
    """The plan of the anomaly, which no order of subgoals solves, is the shortest."""
    plan = solve_valid(blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}), SUSSMAN)
    assert len(plan.steps) == 6
    assert plan.final_scene.parent("a") == "b"
    assert plan.final_scene.parent("b") == "c"


def test_a_tower_is_turned_upside_down() -> None:
    """Reversing a tower of four blocks takes all of it apart."""
    plan = solve_valid(
        blocks_scene({"a": (0, 0), "b": "a", "c": "b", "d": "c"}),
        "(and (on a b) (on b c) (on c d))",
    )
    assert [plan.final_scene.parent(name) for name in "abc"] == ["b", "c", "d"]


def test_the_panda_takes_a_tower_apart() -> None:
    """The Panda solves the Sussman anomaly too."""
    scene = tk.load_scene("panda_table", "blocks2").add_frame(
        "c",
        "a",
        pose=Pose([0.0, 0.0, BLOCK]),
        joint=tk.Free(),
        classes=["movable"],
        shapes=[AttachedShape(Box([BLOCK] * 3))],
    )
    result = tk.plan(scene, goal=SUSSMAN)
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
    assert len(result.plan.steps) == 6


def test_goals_may_be_any_formula() -> None:
    """Disjunctions, quantifiers and negations are goals too."""
    goal = (
        "(and (or (on a b) (on b a)) (not (ontable b table__1__1)) (exists (?l - location) (ontable"
        " b ?l)))"
    )
    plan = solve_valid(two_blocks(), goal)
    assert plan.final_scene.parent("a") == "b"


def test_a_scene_with_other_joints_and_frames() -> None:
    """A door keeps its joint value and is avoided."""
    scene = two_blocks().add_frame(
        "door",
        "world",
        pose=Pose([0.0, 0.5, 0.2]),
        joint=tk.Revolute([0, 0, 1], lower=-1.0, upper=1.0),
        shapes=[AttachedShape(Box([0.4, 0.02, 0.4]))],
    )
    q = GANTRY.ready_configuration(scene, base=scene.configuration({"door": 0.2}))
    plan = solve_valid(scene, "(on a b)", q=q)
    assert all(step.q[scene.joint_names.index("door")] == 0.2 for step in plan.steps)


def test_another_action_replaces_an_infeasible_one() -> None:
    """Most locations are under a lid; the planner learns to use a free one."""
    scene = blocks_scene({"b": (1, 1), "a": "b", "c": (2, 1)}, table=0.4)
    scene = with_box(scene, "lid", (-0.25, -0.25, 0.16), (0.25, 0.04, 0.17))
    result = solve(scene, "(on b c)")
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
    assert result.statistics.skeletons > 1
    assert any("lid" in cause for _, cause, _ in result.statistics.failures)


def test_a_block_between_walls_is_grasped_at_its_free_faces() -> None:
    """Grasps at the blocked faces are skipped."""
    scene = blocks_scene({"a": (0, 0), "b": (2, 2)}, table=0.6)
    for name, y in (("left", 0.034), ("right", -0.044)):
        scene = with_box(scene, name, (-0.1, y, 0.0), (0.1, y + 0.01, 0.06))
    plan = solve_valid(scene, "(on a b)")
    assert "closing along +x" in plan.steps[0].choice or "closing along -x" in plan.steps[0].choice


@pytest.mark.parametrize(
    ("goal", "gap"), [("(on c a)", 0.0005), ("(on a c)", 0.0005), ("(on a c)", 1e-5)]
)
def test_blocks_side_by_side_are_planned(goal: str, gap: float) -> None:
    """Two blocks are closer than the planning margin, also while one of them is picked."""
    solve_valid(blocks_scene({"a": (0, 0), "b": (0, 0.5 + 10 * gap), "c": (2, 2)}), goal)


def test_an_arm_leaves_a_start_close_to_an_obstacle() -> None:
    """A post is a fraction of a millimetre beside the hand."""
    scene = two_blocks()
    x, y, z = scene.pose(
        "hand", relative_to="world", q=GANTRY.ready_configuration(scene)
    ).translation
    solve_valid(
        with_box(scene, "post", (x + 0.0302, y - 0.1, z - 0.03), (x + 0.05, y + 0.1, z + 0.1)),
        "(on a b)",
    )


# --- where the plan starts ---


def test_the_start_is_the_ready_configuration_or_the_one_given() -> None:
    """Without a configuration the arm starts at the ready configuration."""
    scene = two_blocks()
    assert np.array_equal(solve_valid(scene, "(on a b)").q, GANTRY.ready_configuration(scene))
    q = scene.configuration({"x": 0.3, "z": 0.2, "finger": 0.02})
    plan = solve_valid(scene, "(on a b)", q=list(q))
    assert np.array_equal(plan.q, q)
    assert not plan.q.flags.writeable


@pytest.mark.parametrize("finger", [0.0, 0.013])
def test_a_hand_that_is_not_open_is_opened_first(finger: float) -> None:
    """The hand may be closed or partly open at the start."""
    scene = two_blocks()
    q = np.array(GANTRY.ready_configuration(scene))
    q[scene.joint_names.index("finger")] = finger
    assert len(solve_valid(scene, "(on a b)", q=q).steps) == 2


def put_cheek(scene: SceneGraph, q: NDArray[np.float64], *, height: float) -> SceneGraph:
    """Return the scene with a box beside the closed fingers, up to a height above the tool [m]."""
    x, y, z = scene.pose("tool", relative_to="world", q=q).translation
    low, high = (x - 0.02, y + 0.015, z - 0.02), (x + 0.02, y + 0.025, z + height)
    return with_box(scene, "cheek", low, high)


def test_a_hand_leaves_what_is_beside_its_closed_fingers() -> None:
    """Where the hand cannot open, it moves straight back first, as after an empty grasp."""
    scene = two_blocks()
    q = scene.configuration({"x": 0.0, "y": -0.3, "z": 0.3, "finger": 0.0})
    plan = solve_valid(put_cheek(scene, q, height=0.02), "(on a b)", q=q)
    leaving, transit, approach, *_ = plan.steps[0].segments
    assert leaving.kind is transit.kind is SegmentKind.TRANSIT
    assert approach.kind is SegmentKind.APPROACH
    ends = [
        scene.pose("tool", relative_to="world", q=each).translation
        for each in (q, leaving.end(scene, q)[1])
    ]
    assert ends[1] - ends[0] == pytest.approx([0.0, 0.0, 0.08], abs=1e-6)


def test_a_hand_that_cannot_open_is_explained() -> None:
    """The explanation names the bodies beside the closed fingers."""
    scene = two_blocks()
    q = scene.configuration({"x": 0.0, "y": -0.3, "z": 0.3, "finger": 0.0})
    scene = put_cheek(scene, q, height=0.085)
    result = solve(scene, "(on a b)", q=q, max_iterations=1)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "opening the hand: the fingers cannot move" in result.explanation
    assert "cheek" in result.explanation


@pytest.mark.parametrize(
    ("q", "message"),
    [
        ([0.0] * 4, "4|5"),
        ([math.nan] * 5, "finite"),
        ([0.6, 0.0, 0.0, 0.0, 0.0], "joint 'x' starts at 0.6, outside its limits from -0.5 to 0.5"),
        (
            [0.0, 0.0, 0.0, 0.0, -0.001],
            "joint 'finger' starts at -0.001, outside its limits from 0 to 0.04",
        ),
    ],
)
def test_an_invalid_start_is_rejected(q: list[float], message: str) -> None:
    """The error names a wrong length, a NaN, or a value outside the limits."""
    with pytest.raises(ConfigurationError, match=message):
        solve(two_blocks(), "(on a b)", q=q)


def test_a_joint_slightly_past_its_limit_starts_at_the_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The plan starts at the limit, with a warning; it is valid."""
    scene = two_blocks()
    q = scene.configuration({"x": 0.5 + 9e-5, "finger": 0.04 + 1e-7}, base=np.zeros(5))
    plan = solve_valid(scene, "(on a b)", q=q)
    assert plan.q.tolist() == [0.5, 0.0, 0.0, 0.0, 0.04]
    assert caplog.messages == [
        "joint 'x' starts at 0.50009, outside its limits from -0.5 to 0.5 by 9e-05 m; it is moved"
        " to the limit"
    ]
    options = PlanningOptions(start_limit_tolerance=0.01)
    assert tk.plan(scene, q + 0.0005, goal="(and)", robot=GANTRY, options=options).is_solved


def test_a_start_in_collision_names_the_pairs() -> None:
    """The message has all pairs and depths, which are attributes of the error too."""
    scene = with_block(two_blocks(), "c", [0.13, 0.1, BLOCK / 2])
    scene = with_box(scene, "post", (-0.01, -0.31, 0.3), (0.01, -0.29, 0.5))
    with pytest.raises(
        CollisionError, match=r"'b' and 'c' by 20.0 mm.*; move them apart, or allow the pair"
    ) as caught:
        solve(scene, "(on a b)")
    assert ("b", "c") in caught.value.data["pairs"]
    assert any("post" in pair for pair in caught.value.data["pairs"])


def test_an_allowed_pair_may_collide() -> None:
    """A pair that the scene allows is not a collision."""
    scene = with_box(two_blocks(), "sign", (-0.3, -0.3, -0.01), (-0.25, -0.25, 0.1))
    with pytest.raises(CollisionError, match=r"'table' and 'sign'|'sign' and 'table'"):
        solve(scene.reparent("sign", "beam", pose=Pose([-0.15, -0.15, -0.8])), "(on a b)")
    fixed = with_box(two_blocks(), "sign", (-0.3, -0.3, -0.01), (-0.1, -0.1, 0.1)).allow_collision(
        "sign", "table"
    )
    assert solve(fixed, "(on a b)").is_solved


def scene_with_held_block(object: str = "a", *, robot: str = "hand") -> SceneGraph:
    """Return two blocks, one of which is in the hand between the fingers."""
    return two_blocks().reparent(object, robot, pose=Pose([0.0, 0.0, -0.12]))


def test_an_object_may_be_in_the_hand_at_the_start() -> None:
    """The default start closes the fingers on it, and the plan begins with a transfer."""
    scene = scene_with_held_block()
    plan = solve_valid(scene, "(on a b)")
    assert plan.q[scene.joint_names.index("finger")] == pytest.approx(0.025, abs=1e-5)
    assert [str(action) for action in plan.actions] == ["(stack a b)"]
    assert plan.steps[0].segments[0].kind is SegmentKind.TRANSFER


def test_a_suction_cup_may_hold_at_the_start() -> None:
    """A hand without fingers does not close."""
    scene = two_blocks().reparent("a", "hand", pose=Pose([0.0, 0.0, -0.055]))
    robot = SUCKER.from_dict({**SUCKER.to_dict(), "tool": "cup"})
    scene = scene.add_frame(
        "cup", "hand", pose=Pose.from_rpy([0.0, 0.0, -0.03], [math.pi, 0.0, 0.0])
    )
    # narrower than a block
    scene = scene.set_shapes("hand", [AttachedShape(Box([0.03, 0.03, 0.06]))])
    for finger in ("left_finger", "right_finger"):
        scene = scene.set_shapes(finger, [])
    assert len(solve_valid(scene, "(on a b)", robot=robot).steps) == 1
    assert len(solve_valid(scene, "(and (on a b) (ontable b table__0__0))", robot=robot).steps) == 5


def test_an_open_hand_holds_nothing() -> None:
    """A start whose fingers do not touch the held object is rejected."""
    scene = scene_with_held_block()
    with pytest.raises(
        ConfigurationError,
        match=r"'a' is a child of the hand, but 'left_finger' is 15.0 mm away from 'a'",
    ):
        solve(scene, "(on a b)", q=GANTRY.ready_configuration(scene))
    with pytest.raises(CollisionError, match=r"'left_finger' and 'a' by 5.0 mm"):
        solve(scene, "(on a b)", q=GANTRY.ready_configuration(scene) * [1, 1, 1, 1, 0.5])


def test_an_object_out_of_the_fingers_reach_is_not_held() -> None:
    """The default start is rejected if no gripper width touches the object."""
    scene = two_blocks().reparent("a", "hand", pose=Pose([0.0, 0.0, -0.3]))
    with pytest.raises(
        ConfigurationError, match=r"'a' is a child of the hand, but 'left_finger' is .* mm away"
    ):
        solve(scene, "(on a b)")


# --- rejected input ---


def test_an_arm_of_another_scene_is_rejected() -> None:
    """The error names an arm whose joints are not in the scene."""
    with pytest.raises(
        RobotError, match=r"robot 'panda': the scene has none of its joints \(panda_joint1"
    ):
        tk.plan(two_blocks(), goal="(on a b)", robot="panda")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"goal": None},
            TaskError,
            "give a goal: PDDL, a pose or region, a scene, or the path of a PDDL problem file",
        ),
        (
            {"goal": ["x.pddl", "y.pddl"]},
            TaskError,
            "one problem file at most, received 'x.pddl' and 'y.pddl'",
        ),
        ({"seed": -1}, ConfigurationError, "seed must be at least 0, not -1"),
        ({"time_limit": 0.0}, ConfigurationError, "time_limit must be positive seconds, not 0.0"),
        ({"max_iterations": 0}, ConfigurationError, "max_iterations must be at least 1, not 0"),
        (
            {"time_limit": math.nan},
            ConfigurationError,
            "time_limit must be positive seconds, not nan",
        ),
        ({"domain": "block"}, MissingFileError, "no 'block' in domains; did you mean 'blocks'"),
        ({"robot": "pand"}, MissingFileError, "no 'pand' in scenes/robots; did you mean 'panda'"),
        ({"goal": "(on a bb)"}, TaskError, "did you mean"),
    ],
)
def test_invalid_arguments_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The error names the invalid argument."""
    with pytest.raises(error, match=message):
        solve(two_blocks(), options.pop("goal", "(on a b)"), **options)


def test_a_scene_without_a_state_is_rejected() -> None:
    """The error names the frame for which the domain has no state."""
    with pytest.raises(SceneError, match="stand both on 'table__0__0'"):
        solve(with_block(blocks_scene({"a": (0.3, 0)}), "b", [-0.03, 0.0, BLOCK / 2]), "(on a b)")


# --- problem files ---

PROBLEM = """\
(define (problem stack)
  (:domain blocks)
  (:objects a b - block table__0__0 - location)
  (:init (ontable a table__0__0) (handempty))
  (:goal (on a b)))
"""


def plan_from_file(folder: Path, text: str) -> PlanResult:
    """Plan for the goal of a problem file."""
    path = folder / "problem.pddl"
    path.write_text(text, encoding="utf-8")
    return solve(two_blocks(), path)


@pytest.mark.parametrize("init", ["(ontable a table__0__0) (handempty)", ""])
def test_a_problem_file_gives_the_goal(tmp_path: Path, init: str) -> None:
    """Objects and facts of the problem must be in the scene; it may omit some."""
    result = plan_from_file(tmp_path, PROBLEM.replace("(ontable a table__0__0) (handempty)", init))
    assert result.plan is not None
    assert result.plan.goal == "(on a b)"
    assert tk.validate_plan(result.plan).is_valid


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "a b - block",
            "a b zebra - block",
            "problem.pddl: the scene has no such object: unknown object 'zebra'",
        ),
        ("a b - block", "a b c - block", "unknown object 'c'"),
        (
            "a b - block table__0__0",
            "a b - block table__1__1 b2 table__0__0",
            "is of type location, but .*a block|b2",
        ),
        (
            "(handempty)",
            "(holding b)",
            r"its initial facts do not hold in the scene: \(holding b\)",
        ),
        ("(ontable a table__0__0)", "(on a b)", r"do not hold in the scene: \(on a b\)"),
        ("(:domain blocks)", "(:domain bricks)", "problem.pddl.*bricks"),
        ("(:goal (on a b))", "(:goal (on a b)", "problem.pddl:"),
        ("(:goal (on a b))", "(:goal (on a))", "problem.pddl:5"),
        ("(:goal (on a b))", "(:goal (on a q))", "problem.pddl:5.*unknown .*'q'"),
    ],
)
def test_a_problem_that_contradicts_the_scene_is_rejected(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """The error names the file, and the object or fact that the scene lacks."""
    assert PROBLEM.count(old) == 1
    with pytest.raises(TaskError, match=message):
        plan_from_file(tmp_path, PROBLEM.replace(old, new))


def test_a_missing_problem_file_is_named(tmp_path: Path) -> None:
    """The error has the path."""
    with pytest.raises(MissingFileError, match=r"no file '.*nothing.pddl'"):
        solve(two_blocks(), tmp_path / "nothing.pddl")


# --- plans that there are not ---


def test_a_goal_that_contradicts_itself_is_proved_unsolvable() -> None:
    """The task without geometry has no solution, and the explanation has the proof."""
    result = solve(blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.2), "(and (on a b) (on b a))")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.plan is None
    assert not result.is_solved
    assert result.explanation.startswith(
        "No sequence of the domain's actions leads from the state of the scene to"
    )
    assert repr(result) == "PlanResult(proved unsolvable, 0 attempts)"


def test_a_contradiction_is_proved_without_a_search() -> None:
    """Six blocks on 121 places have too many states for a search."""
    scene = blocks_scene({name: (index - 3, 0) for index, name in enumerate("abcdef")}, table=1.0)
    assert solve(scene, "(and (on a b) (on b a))").status is PlanStatus.PROVED_UNSOLVABLE


def test_a_block_out_of_reach_is_explained() -> None:
    """The explanation has the action, the count and the cause, and claims no proof."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = two_blocks().add_frame(
        "shelf", "world", pose=Pose([3.0, 3.0, -0.05]), classes=["surface"], shapes=shapes
    )
    scene = with_block(scene, "far", [3.0, 3.0, BLOCK / 2], parent="shelf")
    result = solve(scene, "(on far b)", max_iterations=1)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "(pick-up far shelf__0__0) failed" in result.explanation
    assert "reaching the grasp: the pose is out of the arm's reach" in result.explanation
    assert "Infeasibility is not proven." in result.explanation


def test_a_block_too_wide_is_explained_at_once() -> None:
    """An impossible action is tried once, not until the time limit."""
    scene = with_block(
        blocks_scene({"b": (1, 1)}, table=0.4), "a", [0.0, 0.0, 0.05], shape=Box([0.1] * 3)
    )
    result = solve(scene, "(ontable a table__-1__1)", max_iterations=100)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert result.diagnosis.ended_by is SearchEnd.EXHAUSTED
    assert (result.statistics.skeletons, result.diagnosis.iterations) == (1, 1)
    assert (
        "(pick-up a table__0__0) failed 1 time, choosing: no two opposite sides of 'a' fit"
        in result.explanation
    )


def test_an_obstacle_is_explained() -> None:
    """The explanation names the frame that blocks the action."""
    scene = with_box(two_blocks(), "lid", (-0.05, -0.05, 0.08), (0.05, 0.05, 0.1))
    result = solve(scene, "(on a b)", max_iterations=1)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "(pick-up a table__0__0)" in result.explanation
    assert "'lid'" in result.explanation


def test_a_short_time_limit_ends_the_search() -> None:
    """The explanation names the limit, even before the first task plan."""
    result = solve(two_blocks(), "(on a b)", time_limit=1e-9)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert (result.diagnosis.ended_by, result.diagnosis.limit) == (SearchEnd.TIME_LIMIT, 1e-9)
    assert (result.diagnosis.iterations, result.statistics.skeletons) == (0, 0)
    assert (
        result.explanation
        == "The task planner found no sequence of actions for (on a b) within the limits; there may"
        " be one. The time limit of 1e-09 s ended the search."
    )


# --- repeatability and progress ---


def test_the_same_seed_gives_the_same_plan() -> None:
    """Segments are equal bit for bit; another seed gives a valid plan too."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})
    first, again = (solve_valid(scene, SUSSMAN, seed=3) for _ in range(2))
    for first_step, second_step in zip(first.steps, again.steps, strict=True):
        assert [s.path.tobytes() for s in first_step.segments] == [
            s.path.tobytes() for s in second_step.segments
        ]
        assert first_step.scene == second_step.scene
    assert solve_valid(scene, SUSSMAN, seed=np.int64(4)).seed == 4


def test_progress_is_reported() -> None:
    """The callback receives both phases, in order of time."""
    heard: list[PlanningProgress] = []
    solve(two_blocks(), "(on a b)", on_progress=heard.append)
    assert [p.phase for p in heard] == ["task", "motion", "motion", "motion"]
    assert [(p.step, p.steps, p.skeleton) for p in heard[1:]] == [(0, 2, 1), (1, 2, 1), (2, 2, 1)]
    assert [p.seconds for p in heard] == sorted(p.seconds for p in heard)


def test_an_exception_in_the_callback_propagates() -> None:
    """The callback may end planning."""

    def stop(progress: PlanningProgress) -> None:
        raise InterruptedError(progress.phase)

    with pytest.raises(InterruptedError, match="task"):
        solve(two_blocks(), "(on a b)", on_progress=stop)
