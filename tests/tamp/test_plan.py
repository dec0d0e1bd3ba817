"""Planning as a whole: what is solved, what is refused, and what the answer says when there is none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
from tmkit.tamp import PlanningProgress, PlanResult, PlanStatus
from tmkit.tamp.diagnosis.diagnosis import SearchEnd


def two() -> SceneGraph:
    """Return two blocks on a table of 25 locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def solve(scene: SceneGraph, goal: Any, **options: Any) -> PlanResult:
    """Plan with the gantry."""
    return solve_with(scene, goal, **{"robot": GANTRY, **options})


def solved(scene: SceneGraph, goal: str, **options: Any) -> Plan:
    """Return a plan that there must be, and that must pass its check."""
    result = solve(scene, goal, **options)
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    return result.plan


# --- plans that there are
# ---------------------------------------------------------------------------------------------


def test_a_plan_reaches_the_goal_and_leaves_the_scene_alone() -> None:
    """The final scene has the goal; the first is the one given, as it was."""
    scene = two()
    copy = two()
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
    """A pick is transit, approach, grasp, lift; a place transfer, lower, release, retreat; each with its reason."""
    plan = solved(two(), "(on a b)")
    kinds = [[segment.kind for segment in step.segments] for step in plan.steps]
    kind = SegmentKind
    assert kinds == [
        [kind.TRANSIT, kind.APPROACH, kind.GRASP, kind.LIFT],
        [kind.TRANSFER, kind.LOWER, kind.RELEASE, kind.RETREAT],
    ]
    assert plan.steps[0].choice.startswith("grasp from +z")
    assert plan.steps[1].choice == "on b at (0.000, 0.000, 0.050)"


def test_a_goal_that_holds_already_needs_no_actions() -> None:
    """The plan is empty, says so, and passes its check."""
    result = solve(two(), "(and (ontable a table__0__0) (handempty))")
    assert result.plan is not None
    assert result.plan.steps == ()
    assert result.plan.final_scene is result.plan.scene
    assert tk.validate_plan(result.plan).is_valid
    assert "holds already, so the plan is empty" in result.explanation


def test_the_sussman_anomaly() -> None:
    """The tower that no order of subgoals builds, with the shortest plan."""
    plan = solved(blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}), SUSSMAN)
    assert len(plan.steps) == 6
    assert plan.final_scene.parent("a") == "b"
    assert plan.final_scene.parent("b") == "c"


def test_a_tower_is_turned_upside_down() -> None:
    """Four blocks change their order, which takes the whole tower apart."""
    plan = solved(
        blocks_scene({"a": (0, 0), "b": "a", "c": "b", "d": "c"}),
        "(and (on a b) (on b c) (on c d))",
    )
    assert [plan.final_scene.parent(name) for name in "abc"] == ["b", "c", "d"]


def test_the_panda_takes_a_tower_apart() -> None:
    """Our own arm solves the Sussman anomaly too."""
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
    plan = solved(two(), goal)
    assert plan.final_scene.parent("a") == "b"


def test_a_scene_with_other_joints_and_frames() -> None:
    """A door that nobody moves keeps its value, and is kept clear of."""
    scene = two().add_frame(
        "door",
        "world",
        pose=Pose([0.0, 0.5, 0.2]),
        joint=tk.Revolute([0, 0, 1], lower=-1.0, upper=1.0),
        shapes=[AttachedShape(Box([0.4, 0.02, 0.4]))],
    )
    q = GANTRY.ready_configuration(scene, base=scene.configuration({"door": 0.2}))
    plan = solved(scene, "(on a b)", q=q)
    assert all(step.q[scene.joint_names.index("door")] == 0.2 for step in plan.steps)


def test_another_action_is_found_where_the_first_cannot_be_done() -> None:
    """Where most locations lie under a lid, the planner learns from failures until it puts a block on a free one."""
    scene = blocks_scene({"b": (1, 1), "a": "b", "c": (2, 1)}, table=0.4)
    scene = with_box(scene, "lid", (-0.25, -0.25, 0.16), (0.25, 0.04, 0.17))
    result = solve(scene, "(on b c)")
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
    assert result.statistics.skeletons > 1
    assert any("lid" in cause for _, cause, _ in result.statistics.failures)


def test_the_nearest_of_several_ways_is_not_the_only_one() -> None:
    """A block between two walls is taken by the faces that are free."""
    scene = blocks_scene({"a": (0, 0), "b": (2, 2)}, table=0.6)
    for name, y in (("left", 0.034), ("right", -0.044)):
        scene = with_box(scene, name, (-0.1, y, 0.0), (0.1, y + 0.01, 0.06))
    plan = solved(scene, "(on a b)")
    assert "closing along +x" in plan.steps[0].choice or "closing along -x" in plan.steps[0].choice


@pytest.mark.parametrize(
    ("goal", "gap"), [("(on c a)", 0.0005), ("(on a c)", 0.0005), ("(on a c)", 1e-5)]
)
def test_blocks_side_by_side_hinder_nobody(goal: str, gap: float) -> None:
    """Two blocks nearer to each other than the planning margin can be planned with, also when one of them is taken."""
    solved(blocks_scene({"a": (0, 0), "b": (0, 0.5 + 10 * gap), "c": (2, 2)}), goal)


def test_an_arm_that_starts_near_something_gets_away() -> None:
    """A post a fraction of a millimetre beside the hand does not keep it from starting."""
    scene = two()
    x, y, z = scene.pose(
        "hand", relative_to="world", q=GANTRY.ready_configuration(scene)
    ).translation
    solved(
        with_box(scene, "post", (x + 0.0302, y - 0.1, z - 0.03), (x + 0.05, y + 0.1, z + 0.1)),
        "(on a b)",
    )


# --- where the plan starts
# --------------------------------------------------------------------------------------------


def test_the_start_is_the_ready_configuration_or_the_one_given() -> None:
    """Without a configuration the arm starts ready; with one, there."""
    scene = two()
    assert np.array_equal(solved(scene, "(on a b)").q, GANTRY.ready_configuration(scene))
    q = scene.configuration({"x": 0.3, "z": 0.2, "finger": 0.02})
    plan = solved(scene, "(on a b)", q=list(q))
    assert np.array_equal(plan.q, q)
    assert not plan.q.flags.writeable


@pytest.mark.parametrize("finger", [0.0, 0.013])
def test_a_hand_that_is_not_open_is_opened_first(finger: float) -> None:
    """The start may have a closed or half-open hand."""
    scene = two()
    q = np.array(GANTRY.ready_configuration(scene))
    q[scene.joint_names.index("finger")] = finger
    assert len(solved(scene, "(on a b)", q=q).steps) == 2


def test_a_hand_that_cannot_open_says_so() -> None:
    """Cheeks beside the closed fingers keep the hand from opening, and the explanation names them."""
    scene = two()
    q = scene.configuration({"x": 0.0, "y": -0.3, "z": 0.3, "finger": 0.0})
    x, y, z = scene.pose("tool", relative_to="world", q=q).translation
    scene = with_box(
        scene, "cheek", (x - 0.02, y + 0.015, z - 0.02), (x + 0.02, y + 0.025, z + 0.02)
    )
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
def test_a_start_that_is_none_is_refused(q: list[float], message: str) -> None:
    """A wrong length, a NaN, or a value outside the limits is named."""
    with pytest.raises(ConfigurationError, match=message):
        solve(two(), "(on a b)", q=q)


def test_a_start_in_collision_names_the_pairs() -> None:
    """All pairs are named with their depths, and are attributes of the error."""
    scene = with_block(two(), "c", [0.13, 0.1, BLOCK / 2])
    scene = with_box(scene, "post", (-0.01, -0.31, 0.3), (0.01, -0.29, 0.5))
    with pytest.raises(
        CollisionError, match=r"'b' and 'c' by 20.0 mm.*; move them apart, or allow the pair"
    ) as caught:
        solve(scene, "(on a b)")
    assert ("b", "c") in caught.value.data["pairs"]
    assert any("post" in pair for pair in caught.value.data["pairs"])


def test_an_allowed_pair_may_collide() -> None:
    """What the scene allows is no collision."""
    scene = with_box(two(), "sign", (-0.3, -0.3, -0.01), (-0.25, -0.25, 0.1))
    with pytest.raises(CollisionError, match=r"'table' and 'sign'|'sign' and 'table'"):
        solve(scene.reparent("sign", "beam", pose=Pose([-0.15, -0.15, -0.8])), "(on a b)")
    fixed = with_box(two(), "sign", (-0.3, -0.3, -0.01), (-0.1, -0.1, 0.1)).allow_collision(
        "sign", "table"
    )
    assert solve(fixed, "(on a b)").is_solved


def held(object: str = "a", *, robot: str = "hand") -> SceneGraph:
    """Return two blocks of which one hangs off the hand, between the fingers."""
    return two().reparent(object, robot, pose=Pose([0.0, 0.0, -0.12]))


def test_an_object_may_be_in_the_hand_at_the_start() -> None:
    """The default start closes the fingers on it; the plan begins by carrying it."""
    scene = held()
    plan = solved(scene, "(on a b)")
    assert plan.q[scene.joint_names.index("finger")] == pytest.approx(0.025, abs=1e-5)
    assert [str(action) for action in plan.actions] == ["(stack a b)"]
    assert plan.steps[0].segments[0].kind is SegmentKind.TRANSFER


def test_a_suction_cup_may_hold_at_the_start() -> None:
    """Where the hand has no fingers, there is nothing to close."""
    scene = two().reparent("a", "hand", pose=Pose([0.0, 0.0, -0.055]))
    robot = SUCKER.from_dict({**SUCKER.to_dict(), "tool": "cup"})
    scene = scene.add_frame(
        "cup", "hand", pose=Pose.from_rpy([0.0, 0.0, -0.03], [math.pi, 0.0, 0.0])
    )
    # narrower than a block
    scene = scene.set_shapes("hand", [AttachedShape(Box([0.03, 0.03, 0.06]))])
    for finger in ("left_finger", "right_finger"):
        scene = scene.set_shapes(finger, [])
    assert len(solved(scene, "(on a b)", robot=robot).steps) == 1
    assert len(solved(scene, "(and (on a b) (ontable b table__0__0))", robot=robot).steps) == 5


def test_an_open_hand_holds_nothing() -> None:
    """A start in which the fingers are not at the object held is refused."""
    scene = held()
    with pytest.raises(
        ConfigurationError,
        match=r"'a' is a child of the hand, but 'left_finger' is 15.0 mm away from 'a'",
    ):
        solve(scene, "(on a b)", q=GANTRY.ready_configuration(scene))
    with pytest.raises(CollisionError, match=r"'left_finger' and 'a' by 5.0 mm"):
        solve(scene, "(on a b)", q=GANTRY.ready_configuration(scene) * [1, 1, 1, 1, 0.5])


def test_an_object_out_of_the_fingers_reach_is_not_held() -> None:
    """Where no width of the hand brings the fingers to the object, the default start is refused too."""
    scene = two().reparent("a", "hand", pose=Pose([0.0, 0.0, -0.3]))
    with pytest.raises(
        ConfigurationError, match=r"'a' is a child of the hand, but 'left_finger' is .* mm away"
    ):
        solve(scene, "(on a b)")


# --- what is refused
# --------------------------------------------------------------------------------------------------


def test_an_arm_of_another_scene_is_refused() -> None:
    """A robot whose joints the scene lacks is named."""
    with pytest.raises(
        RobotError, match=r"robot 'panda': the scene has none of its joints \(panda_joint1"
    ):
        tk.plan(two(), goal="(on a b)", robot="panda")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"goal": None},
            TaskError,
            "give a goal: PDDL, a pose or region, a scene, or the path of a PDDL problem file",
        ),
        (
            {"goal": ["(on a b)", "x.pddl"]},
            TaskError,
            "the problem file 'x.pddl' contains the whole goal; give it alone",
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
def test_arguments_that_do_not_fit_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Each wrong argument is refused by name."""
    with pytest.raises(error, match=message):
        solve(two(), options.pop("goal", "(on a b)"), **options)


def test_a_scene_without_meaning_is_refused() -> None:
    """A scene that the domain cannot tell is an error that names the frame."""
    with pytest.raises(SceneError, match="stand both on 'table__0__0'"):
        solve(with_block(blocks_scene({"a": (0.3, 0)}), "b", [-0.03, 0.0, BLOCK / 2]), "(on a b)")


# --- problem files
# ----------------------------------------------------------------------------------------------------

PROBLEM = """\
(define (problem stack)
  (:domain blocks)
  (:objects a b - block table__0__0 - location)
  (:init (ontable a table__0__0) (handempty))
  (:goal (on a b)))
"""


def from_file(folder: Path, text: str) -> PlanResult:
    """Plan for the goal of a problem file."""
    path = folder / "problem.pddl"
    path.write_text(text, encoding="utf-8")
    return solve(two(), path)


@pytest.mark.parametrize("init", ["(ontable a table__0__0) (handempty)", ""])
def test_a_problem_file_gives_the_goal(tmp_path: Path, init: str) -> None:
    """Objects and facts that a problem gives are those of the scene; it need not give all."""
    result = from_file(tmp_path, PROBLEM.replace("(ontable a table__0__0) (handempty)", init))
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
def test_a_problem_that_contradicts_the_scene_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """What the scene does not have, and what does not hold in it, is named with the file."""
    assert PROBLEM.count(old) == 1
    with pytest.raises(TaskError, match=message):
        from_file(tmp_path, PROBLEM.replace(old, new))


def test_a_missing_problem_file_is_named(tmp_path: Path) -> None:
    """A problem file that is not there is named."""
    with pytest.raises(MissingFileError, match=r"no file '.*nothing.pddl'"):
        solve(two(), tmp_path / "nothing.pddl")


# --- plans that there are not
# -----------------------------------------------------------------------------------------


def test_a_goal_that_contradicts_itself_is_proved_unsolvable() -> None:
    """Where the task alone has no solution, that is proved, and said."""
    result = solve(blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.2), "(and (on a b) (on b a))")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.plan is None
    assert not result.is_solved
    assert result.explanation.startswith(
        "No sequence of the domain's actions leads from the state of the scene to"
    )
    assert repr(result) == "PlanResult(proved unsolvable, 0 attempts)"


def test_a_contradiction_is_proved_where_no_search_could() -> None:
    """Six blocks on 121 places have too many states to look at; that two of them stand on each other needs no look."""
    scene = blocks_scene({name: (index - 3, 0) for index, name in enumerate("abcdef")}, table=1.0)
    assert solve(scene, "(and (on a b) (on b a))").status is PlanStatus.PROVED_UNSOLVABLE


def test_a_block_out_of_reach_is_explained() -> None:
    """The answer names the action, how often it failed, and that the pose is out of reach; it claims no proof."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    scene = two().add_frame(
        "shelf", "world", pose=Pose([3.0, 3.0, -0.05]), classes=["surface"], shapes=shapes
    )
    scene = with_block(scene, "far", [3.0, 3.0, BLOCK / 2], parent="shelf")
    result = solve(scene, "(on far b)", max_iterations=1)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "(pick-up far shelf__0__0) failed" in result.explanation
    assert "reaching the grasp: the pose is out of the arm's reach" in result.explanation
    assert "Infeasibility is not proven." in result.explanation


def test_a_block_too_wide_is_explained_at_once() -> None:
    """What can never be done is tried once, and not for as long as there is time."""
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
    """The answer names the frame that is in the way."""
    scene = with_box(two(), "lid", (-0.05, -0.05, 0.08), (0.05, 0.05, 0.1))
    result = solve(scene, "(on a b)", max_iterations=1)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "(pick-up a table__0__0)" in result.explanation
    assert "'lid'" in result.explanation


def test_a_time_limit_stops_soon() -> None:
    """However small the limit, the answer says that it ended the search, before the first task plan."""
    result = solve(two(), "(on a b)", time_limit=1e-9)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert (result.diagnosis.ended_by, result.diagnosis.limit) == (SearchEnd.TIME_LIMIT, 1e-9)
    assert (result.diagnosis.iterations, result.statistics.skeletons) == (0, 0)
    assert (
        result.explanation
        == "The task planner found no sequence of actions for (on a b) within the limits; there may"
        " be one. The time limit of 1e-09 s ended the search."
    )


# --- repeatability and progress
# ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan() -> None:
    """Segments are equal bit for bit; another seed gives a valid plan too."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})
    first, again = (solved(scene, SUSSMAN, seed=3) for _ in range(2))
    for one, two_ in zip(first.steps, again.steps, strict=True):
        assert [s.path.tobytes() for s in one.segments] == [s.path.tobytes() for s in two_.segments]
        assert one.scene == two_.scene
    assert solved(scene, SUSSMAN, seed=np.int64(4)).seed == 4


def test_progress_is_told() -> None:
    """The callback hears of both phases, in order of time."""
    heard: list[PlanningProgress] = []
    solve(two(), "(on a b)", on_progress=heard.append)
    assert [p.phase for p in heard] == ["task", "motion", "motion", "motion"]
    assert [(p.step, p.steps, p.skeleton) for p in heard[1:]] == [(0, 2, 1), (1, 2, 1), (2, 2, 1)]
    assert [p.seconds for p in heard] == sorted(p.seconds for p in heard)


def test_an_exception_in_the_callback_travels_up() -> None:
    """Whoever listens may stop the run."""

    def stop(progress: PlanningProgress) -> None:
        raise InterruptedError(progress.phase)

    with pytest.raises(InterruptedError, match="task"):
        solve(two(), "(on a b)", on_progress=stop)
