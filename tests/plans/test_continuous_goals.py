"""Poses, regions and configurations as goals: planning, validation and files."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import BLOCK, GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    PlanFileError,
    SceneError,
    TaskError,
    UnknownNameError,
)
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans import ArmAt, ObjectAt, ObjectIn, Plan
from tmkit.plans.continuous_goals import ContinuousGoal, goal_from_dict
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.spatial import Pose
from tmkit.tamp import PlanStatus

HEIGHT = 0.05 + BLOCK / 2  # of a block's centre on the table, in the table's frame


def two() -> SceneGraph:
    """Return two blocks on a small table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


def rotate_z(x: float, y: float, angle: float = 0.0, z: float = HEIGHT) -> Pose:
    """Return a pose rotated about z."""
    return Pose.from_rpy([x, y, z], [0.0, 0.0, angle])


def solve(scene: SceneGraph, *goals: str | ContinuousGoal, **options: Any) -> Plan:
    """Return a valid plan that reaches every goal."""
    result = solve_with(scene, list(goals), robot=GANTRY, **options)
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    for goal in goals:
        if not isinstance(goal, str):
            assert goal.fault(result.plan.final_scene, result.plan.final_q) is None
    return result.plan


# --- poses


def test_an_object_is_put_at_a_pose() -> None:
    """The plan reaches a rotated pose off the middle of a cell exactly."""
    goal = ObjectAt(
        "a", rotate_z(-0.12, 0.11, 0.4), relative_to="table", metres=0.001, radians=0.01
    )
    plan = solve(two(), goal)
    assert [action.name for action in plan.actions] == ["pick-up", "put-down"]
    assert plan.continuous_goals == (goal,)
    assert plan.goal == "(and)"
    pose = plan.final_scene.pose("a", relative_to="table")
    np.testing.assert_allclose(pose.translation[:2], [-0.12, 0.11], atol=1e-12)


@pytest.mark.parametrize(("region", "centre"), [("pad", (-0.08, 0.1)), ("table", (0.0, 0.0))])
def test_an_object_is_put_at_the_centre_of_an_area(
    region: str, centre: tuple[float, float]
) -> None:
    """Its centre of mass is over the middle of a region or surface, not in a corner."""
    scene = with_pad(two(), *centre) if region == "pad" else two()
    scene = scene.set_pose("a", rotate_z(0.1, -0.1))
    goal = ObjectAt("a", "center", relative_to=region)
    plan = solve(scene, goal)
    pose = plan.final_scene.pose("a", relative_to="table")
    np.testing.assert_allclose(pose.translation[:2], centre, atol=1e-9)
    assert str(goal) == f"'a' at the centre of '{region}'"


def test_an_object_is_put_at_the_centre_of_another() -> None:
    """The top of a block is an area, too."""
    plan = solve(two(), ObjectAt("a", "center", relative_to="b"))
    np.testing.assert_allclose(plan.final_scene.local_pose("a").translation[:2], 0.0, atol=1e-9)


def test_the_centre_of_mass_counts_at_a_centre() -> None:
    """The goal holds within the tolerance, on the right support, in any orientation."""
    heavy_side = tk.Inertia(0.1, [0.01, 0.0, 0.0], matrix=1e-4 * np.eye(3))
    scene = two().set_inertia("a", heavy_side)
    goal = ObjectAt("a", "center", relative_to="table", metres=0.002)
    assert goal.radians is None
    moved = scene.set_pose("a", rotate_z(0.0, -0.011, math.pi / 2))
    assert goal.fault(moved, moved.zero_configuration()) is None
    fault = goal.fault(scene, scene.zero_configuration())
    assert fault == "'a' is 10.0 mm from the centre of 'table', which may be 2 mm"
    held = scene.reparent("a", "hand", q=scene.zero_configuration())
    assert goal.fault(held, held.zero_configuration()) == "'a' does not stand on 'table'"


def test_a_centre_needs_a_level_area() -> None:
    """A frame without a surface has no centre, and another word is no pose."""
    scene = two().add_frame("mark", "table")
    with pytest.raises(SceneError, match="'mark' has no level box"):
        solve(scene, ObjectAt("a", "center", relative_to="mark"))
    with pytest.raises(TypeError, match=r"'pose' .* write tk.Pose\(...\) or 'center'"):
        ObjectAt("a", "middle", relative_to="table")  # type: ignore[arg-type]
    values = {"object": "a", "at": "table", "pose": "middle", "m": 0.01, "rad": None}
    with pytest.raises(FileFormatError, match=r"goal: pose: .*center"):
        goal_from_dict(values)


def test_an_object_is_moved_within_its_cell() -> None:
    """The object moves although the facts of start and goal are equal."""
    plan = solve(two(), ObjectAt("a", rotate_z(0.03, -0.02, 0.5), relative_to="table"))
    assert len(plan.steps) == 2
    assert str(plan.actions[1]) == "(put-down a table__0__0)"


def test_a_goal_that_holds_needs_no_actions() -> None:
    """An object at its goal pose is not moved."""
    assert (
        solve(
            two(),
            ObjectAt("a", rotate_z(0.0, 0.0, z=BLOCK / 2), relative_to="world"),
            "(handempty)",
        ).steps
        == ()
    )


def test_an_object_is_stacked_with_a_turn() -> None:
    """A pose relative to another object, on which it stands and which is moved first."""
    plan = solve(
        two(),
        ObjectAt("a", rotate_z(0.004, 0.0, 0.3, BLOCK), relative_to="b", radians=0.02),
        "(ontable b table__-1__-1)",
    )
    assert plan.final_scene.parent("a") == "b"
    assert plan.final_scene.pose("b", relative_to="table").translation[0] < -0.05


def test_the_orientation_may_be_free() -> None:
    """Without an angle only the position counts."""
    goal = ObjectAt("a", rotate_z(-0.1, 0.1, 1.0), relative_to="table", radians=None)
    assert solve(two(), goal).final_scene.parent("a") == "table"


def test_facts_and_poses_together() -> None:
    """Three goals at once: two poses and a fact."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": "a"}, table=0.4)
    plan = solve(
        scene,
        ObjectAt("a", rotate_z(-0.1, -0.1), relative_to="table", metres=0.01),
        ObjectAt("b", rotate_z(0.1, -0.11, 0.2), relative_to="table", metres=0.01),
        "(on c a)",
    )
    assert plan.final_scene.parent("c") == "a"
    assert plan.goal == "(on c a)"


def test_an_occupied_place_is_cleared() -> None:
    """An object at the goal position is moved away first."""
    plan = solve(
        two(),
        ObjectAt("a", rotate_z(0.11, 0.1), relative_to="table"),
        ObjectAt("b", rotate_z(0.01, 0.0, 0.2), relative_to="table"),
    )
    assert len(plan.steps) >= 6


# --- regions


def with_pad(scene: SceneGraph, x: float, y: float) -> SceneGraph:
    """Return the scene with an area of 12 cm marked on the table."""
    mark = AttachedShape(Box([0.12, 0.12, 0.002]), collision=False)
    return scene.add_frame("pad", "table", pose=Pose([x, y, 0.05 - 0.001]), shapes=[mark])


def test_an_object_is_put_in_a_region() -> None:
    """An area that is not part of the domain, across four of its cells."""
    plan = solve(with_pad(two(), -0.06, 0.06), ObjectIn("a", "pad"))
    x, y, _ = plan.final_scene.pose("a", relative_to="pad").translation
    assert max(abs(x), abs(y)) <= 0.06 - BLOCK / 2 + 0.002


def test_the_only_object_of_a_region_is_put_in_its_middle() -> None:
    """One object is over the middle; two share the region, and an obstacle moves one aside."""
    area = AttachedShape(Box([0.25, 0.25, 0.002]), collision=False)
    scene = tk.load_scene("panda_table", "blocks2").add_frame(
        "tray", "table", pose=Pose([-0.1, -0.3, 0.026]), classes=["region"], shapes=[area]
    )
    post = AttachedShape(Box([0.02, 0.02, 0.05]))
    blocked = scene.add_frame("post", "tray", pose=Pose([0.0, 0.0, 0.026]), shapes=[post])
    for version, names, is_middle in (
        (scene, "a", True),
        (scene, "ab", False),
        (blocked, "a", False),
    ):
        goals = [ObjectIn(name, "tray") for name in names]
        plan = tk.plan(version, domain="kitchen", robot="panda", goal=goals).plan
        assert plan is not None
        assert tk.validate_plan(plan).is_valid
        offsets = [
            np.hypot(*plan.final_scene.pose(name, relative_to="tray").translation[:2])
            for name in names
        ]
        assert (max(offsets) < 1e-6) == is_middle


def test_regions_of_the_kitchen() -> None:
    """A marked area within the kitchen's stove, beside a fact about the arm."""
    scene = tk.load_scene("iiwa_kitchen", "kitchen_blocks4")
    mark = AttachedShape(Box([0.12, 0.25, 0.002]), collision=False)
    scene = scene.add_frame("left", "stove", pose=Pose([-0.06, 0.0, 0.024]), shapes=[mark])
    item = scene.frames_of_class("movable")[0]
    goal = ObjectIn(item, "left")
    result = tk.plan(scene, domain="kitchen", robot="iiwa_flange", goal=[goal, "(athome)"])
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert goal.fault(result.plan.final_scene, result.plan.final_q) is None


# --- configurations


def test_the_arm_ends_at_a_configuration() -> None:
    """The last action has a further segment to the configuration."""
    goal = ArmAt({"x": 0.2, "y": 0.3})
    plan = solve(two(), "(on a b)", goal, improve=2)
    names = plan.scene.joint_names
    assert (plan.final_q[names.index("x")], plan.final_q[names.index("y")]) == (0.2, 0.3)
    assert [segment.kind.value for segment in plan.steps[-1].segments][-2:] == [
        "retreat",
        "transit",
    ]
    held = solve(two(), "(holding a)", goal)
    assert [segment.kind.value for segment in held.steps[-1].segments][-2:] == ["lift", "transfer"]


def test_the_arm_needs_an_action_to_move() -> None:
    """Without another goal the blocks domain has no action that moves the arm."""
    with pytest.raises(
        TaskError,
        match=r"the arm at x=0.2 cannot be planned for: the rest of the goal holds"
        r".*ready configuration, and plan for \(athome\) in a domain with the action move-home",
    ):
        tk.plan(two(), goal=[ArmAt({"x": 0.2})], robot=GANTRY)
    assert solve(two(), ArmAt({"x": 0.0})).steps == ()


def test_a_motion_alone_is_a_plan_for_another_ready_configuration() -> None:
    """The kitchen moves the arm to its ready configuration without another goal."""
    scene = two()
    arm = replace(GANTRY, ready={**GANTRY.ready, "x": 0.2})
    start = GANTRY.ready_configuration(scene)
    plan = tk.plan(scene, start, domain="kitchen", goal="(athome)", robot=arm).plan
    assert plan is not None
    assert [step.action.name for step in plan.steps] == ["move-home"]
    assert plan.final_q[scene.joint_names.index("x")] == 0.2


# --- files and the checker


def test_plan_files_contain_the_goals(tmp_path: Path) -> None:
    """Every kind of goal is restored to the same bytes and validated again."""
    goals = (
        ObjectAt("a", rotate_z(-0.1, 0.1, 0.4), relative_to="table", radians=None),
        ObjectAt("b", rotate_z(0.1, 0.1), relative_to="table"),
        ObjectIn("a", "pad"),
        ObjectAt("a", "center", relative_to="pad", metres=0.03),
        ArmAt({"x": 0.25}),
    )
    plan = solve(with_pad(two(), -0.1, 0.1), *goals)
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert loaded.continuous_goals == goals
    tk.save_plan(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
    assert tk.validate_plan(loaded).is_valid


AT = {"object": "a", "at": "table", "m": 0.01, "rad": 0.1}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            {"object": "a", "at": "table", "pose": [0, 0, 0, 0, 0, 0, 1], "m": 0.01, "rad": None},
            "'a' is .* from its place",
        ),
        (
            {
                "object": "a",
                "at": "table",
                "pose": [-0.1, 0.1, HEIGHT, 0, 0, 1, 0],
                "m": 0.01,
                "rad": 0.1,
            },
            "is turned by",
        ),
        ({"object": "b", "in": "pad"}, "'b' is not in 'pad'"),
        ({"joints": {"x": 0.4}, "tolerance": 0.01}, "joint 'x' is .* from 0.4, which may be 0.01"),
    ],
)
def test_the_validator_names_a_missed_goal(edit: dict[str, Any], message: str) -> None:
    """A goal that was added to a plan file fails its check, with numbers."""
    plan = solve(
        with_pad(two(), -0.1, 0.1), ObjectAt("a", rotate_z(-0.1, 0.1), relative_to="table")
    )
    document = copy.deepcopy(plan_to_dict(plan))
    document["goals"] = [edit]
    problems = tk.validate_plan(plan_from_dict(document)).problems
    assert len(problems) == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(problems[0])


def test_an_invalid_goal_in_a_file_is_rejected() -> None:
    """The message contains the place of a missing or invalid value."""
    plan = solve(two(), ArmAt({"x": 0.0}))
    for goal, message in (
        ({"joints": {"x": 0.0}}, r"goals\[0\].*tolerance"),
        (
            {"joints": {"x": "far"}, "tolerance": 1.0},
            r"goals\[0\].joints.x: expected a finite number",
        ),
        ({"object": "a", "at": "b", "pose": [0.0] * 6, "m": 1.0, "rad": None}, r"goals\[0\].pose"),
        ({"object": "a", "in": "b", "at": "c"}, r"unknown key 'at'"),
    ):
        document = {**plan_to_dict(plan), "goals": [goal]}
        with pytest.raises(PlanFileError, match=message):
            plan_from_dict(document)


# --- rejected goals


@pytest.mark.parametrize(
    ("goal", "error", "message"),
    [
        (
            ObjectAt("aa", Pose([0, 0, 0]), relative_to="table"),
            UnknownNameError,
            "unknown frame 'aa'; did you mean 'a'",
        ),
        (
            ObjectAt("a", Pose([0, 0, 0]), relative_to="tabel"),
            UnknownNameError,
            "did you mean 'table'",
        ),
        (
            ObjectAt("table", Pose([0, 0, 0]), relative_to="a"),
            ConfigurationError,
            "'table' is not movable, so a goal cannot give its pose .movable: a, b",
        ),
        (ObjectAt("a", Pose([0, 0, 0]), relative_to="a"), TaskError, "no place relative to itself"),
        (
            ObjectAt("a", rotate_z(0, 0, z=0.3), relative_to="table"),
            TaskError,
            "'blocks' has no predicates that describe 'a' at .*above the top",
        ),
        (
            ObjectAt("a", rotate_z(0.9, 0), relative_to="table"),
            TaskError,
            "'blocks' has no predicates that describe",
        ),
        (
            ObjectAt("a", rotate_z(0.1, 0, z=0.0), relative_to="b"),
            TaskError,
            "has no predicates that describe.*'a' has parent 'b', but stands beside it",
        ),
        (ObjectIn("a", "pod"), UnknownNameError, "unknown frame 'pod'"),
        (ObjectIn("a", "tool"), SceneError, "tool"),
        (ArmAt({"xx": 0.0}), UnknownNameError, "unknown joint 'xx'"),
        (
            ArmAt({"x": 9.0}),
            ConfigurationError,
            "joint 'x' is to be at 9, outside its limits from -0.5 to 0.5",
        ),
        (
            ArmAt({"finger": 0.01}),
            TaskError,
            "these are not all joints of one arm .*'gantry': x, y, z, turn",
        ),
    ],
)
def test_impossible_goals_are_rejected(
    goal: ContinuousGoal, error: type[Exception], message: str
) -> None:
    """Unknown names, unreachable regions and values out of limits are named."""
    with pytest.raises(error, match=message):
        tk.plan(two(), goal=goal, robot=GANTRY)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ObjectAt("a", Pose([0, 0, 0]), relative_to="b", metres=0.0),
            "metres of a goal must be positive, not 0.0",
        ),
        (
            lambda: ObjectAt("a", Pose([0, 0, 0]), relative_to="b", radians=math.nan),
            "radians of a goal must be positive, not nan",
        ),
        (lambda: ArmAt({}), "must name at least one joint"),
        (lambda: ArmAt({"x": math.inf}), "with finite values"),
        (lambda: ArmAt({"x": 0.0}, tolerance=-1.0), "tolerance of a goal must be positive"),
    ],
)
def test_invalid_goals_are_rejected(make: Any, message: str) -> None:
    """Tolerances are positive, values finite."""
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_an_invalid_fact_beside_a_pose_is_rejected() -> None:
    """PDDL in a list is parsed as elsewhere."""
    with pytest.raises(TaskError, match="unknown object 'zebra'"):
        tk.plan(two(), goal=["(on a zebra)", ArmAt({"x": 0.0})], robot=GANTRY)


def test_no_plan_names_the_goals() -> None:
    """The explanation contains the goals as text."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    goals = [
        ObjectAt("a", rotate_z(0.1, 0.1), relative_to="table", metres=0.001),
        ObjectAt("b", rotate_z(0.1, 0.12), relative_to="table"),
    ]
    result = tk.plan(scene, goal=goals, robot=GANTRY, options=tk.PlanningOptions(max_iterations=1))
    assert result.status is not PlanStatus.SOLVED
    assert "'a' at (0.100, 0.100, 0.075) in 'table'" in result.explanation


def test_two_poses_in_one_cell_are_not_proved_impossible() -> None:
    """The facts may be too coarse for poses 7 cm apart; a contradiction in PDDL is a proof."""
    poses = [
        ObjectAt(name, rotate_z(0.0, y), relative_to="table")
        for name, y in (("a", -0.03), ("b", 0.04))
    ]
    result = tk.plan(
        two(),
        goal=list(poses),
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "proved" not in result.explanation
    result = tk.plan(
        two(),
        goal=[poses[0], "(on a b)", "(on b a)"],
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    assert result.status is PlanStatus.PROVED_UNSOLVABLE


@pytest.mark.parametrize("count", [1, 2])
def test_grasps_that_are_sampled_prove_nothing(count: int) -> None:
    """A box wider than the hand is a proof, several shapes without a grasp are not."""
    wide = [
        AttachedShape(Box([0.2, 0.2, 0.2]), pose=Pose([0.001 * k, 0.0, 0.0])) for k in range(count)
    ]
    scene = blocks_scene({"a": (0, 0)}, table=0.6)
    scene = scene.set_shapes("a", wide).set_pose("a", Pose([0.0, 0.0, 0.15]))
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(holding a)",
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    assert (result.status is PlanStatus.PROVED_UNSOLVABLE) is (count == 1)
    assert not any(constraint.is_proved for constraint in result.diagnosis.constraints)
    assert "It is proved" not in result.explanation


@pytest.mark.parametrize(
    "goal",
    [
        ObjectAt("a", Pose([0.1, 0.2, 0.3]), relative_to="table", metres=0.01, radians=0.2),
        ObjectAt("a", Pose(), relative_to="table", radians=None),
        ObjectIn("a", "table"),
        ArmAt({"x": 0.5}),
    ],
)
def test_goals_survive_json(goal: ContinuousGoal) -> None:
    """Invalid values are rejected with their key."""
    assert goal_from_dict(json.loads(json.dumps(goal.to_dict()))) == goal
    with pytest.raises(FileFormatError, match=r"mine: .*unknown key 'extra'"):
        goal_from_dict({**goal.to_dict(), "extra": 1}, source="mine")
