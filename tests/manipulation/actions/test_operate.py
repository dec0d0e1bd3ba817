"""Operation of drawers and doors by their handles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import ConfigurationError, PlanFileError, SceneError
from tmkit.graph import AttachedShape, Box, Revolute, SceneGraph
from tmkit.manipulation import ActionContext, MotionSettings, OperateJoint, grasps_of
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.plans import MotionFailure, Plan, SegmentKind
from tmkit.plans.plan_file import plan_to_dict
from tmkit.robots.mechanisms import closure_error, mechanism_joint
from tmkit.spatial import Pose

SLIDE = "drawer_slide"


def make_plan(problem: str) -> Plan:
    """Return the plan of a problem of the drawer domain."""
    scene = tk.load_scene("panda_drawer")
    path = tk.data_path("domains/drawer") / "problems" / f"{problem}.pddl"
    result = tk.plan(scene, domain="drawer", goal=path, robot="panda", seed=0)
    assert result.plan is not None, result.explanation
    return result.plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Return the plan that takes the block out of the drawer and closes it."""
    return make_plan("empty")


def test_a_block_comes_out_of_the_drawer(plan: Plan) -> None:
    """A drawer is opened, emptied and closed, and the plan is valid."""
    assert [action.name for action in plan.actions] == [
        "open-drawer",
        "take",
        "put",
        "close-drawer",
    ]
    entry = plan.scene.joint_names.index(SLIDE)
    assert [round(float(step.q[entry]), 6) for step in plan.steps] == [0.2, 0.2, 0.2, 0.0]
    assert tk.validate_plan(plan).problems == ()


def test_what_lies_in_the_drawer_comes_along(plan: Plan) -> None:
    """The block hangs off the drawer, so it moves with it, towards the arm."""
    step = plan.steps[0]
    moved = (
        step.scene.pose("a", relative_to="world", q=step.q).translation
        - plan.scene.pose("a", relative_to="world", q=plan.q).translation
    )
    assert moved == pytest.approx([-0.2, 0.0, 0.0], abs=1e-9)
    assert step.scene == plan.scene


def test_the_segments_of_an_operation(plan: Plan) -> None:
    """The segments of an operation are in order; only one moves the drawer's joint."""
    segments = plan.steps[0].segments
    assert [segment.kind.value for segment in segments] == [
        "transit",
        "approach",
        "grasp",
        "operate",
        "release",
        "retreat",
    ]
    assert [segment.held for segment in segments] == [None, *["drawer_handle"] * 5]
    assert [segment.joint_names[-1] == SLIDE for segment in segments] == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]
    assert all(segment.reparenting is None for segment in segments)


def test_the_tool_stays_at_the_handle(plan: Plan) -> None:
    """Between waypoints the tool's closure error is below half of the validator's tolerance."""
    step, operation = plan.steps[0], plan.steps[0].segments[3]
    entries = [plan.scene.joint_names.index(joint) for joint in operation.joint_names]
    path = np.repeat(step.q[None], len(operation.path), axis=0)
    path[:, entries] = operation.path
    metres, radians = closure_error(
        step.scene, path, tool=plan.robot.tool, handle="drawer_handle", steps=20
    )
    assert metres < 5e-5
    assert radians < 5e-4


def test_a_block_goes_in_and_another_comes_out() -> None:
    """Both blocks change places in one opening of the drawer; the same seed gives the same plan."""
    first, second = make_plan("swap"), make_plan("swap")
    assert first.actions[0].name == "open-drawer"
    assert first.actions[-1].name == "close-drawer"
    assert len(first.actions) == 6
    assert tk.validate_plan(first).problems == ()
    assert plan_to_dict(first) == plan_to_dict(second)


def test_files_keep_operations(plan: Plan, tmp_path: Path) -> None:
    """A plan file has the handle and the drawer's joint, and the loaded plan is valid."""
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert plan_to_dict(loaded) == plan_to_dict(plan)
    assert tk.validate_plan(loaded).is_valid


def edit_plan(plan: Plan, index: int, **changes: object) -> Plan:
    """Return the plan with one segment of its first step changed."""
    step = plan.steps[0]
    segments = list(step.segments)
    segments[index] = replace(segments[index], **changes)  # type: ignore[arg-type]  # any field of a segment
    return replace(plan, steps=(replace(step, segments=tuple(segments)), *plan.steps[1:]))


def stray(plan: Plan) -> Plan:
    """Return the plan with the arm ahead of the handle by 1 mm in the middle of the operation."""
    path = np.array(plan.steps[0].segments[3].path)
    path[len(path) // 2, -1] -= 0.001
    return edit_plan(plan, 3, path=path)


def without(plan: Plan, index: int) -> Plan:
    """Return the plan without a segment of its first step."""
    step = plan.steps[0]
    segments = tuple(segment for i, segment in enumerate(step.segments) if i != index)
    return replace(plan, steps=(replace(step, segments=segments), *plan.steps[1:]))


@pytest.mark.parametrize(
    ("falsify", "problem"),
    [
        (stray, "the tool moves by 1.0"),
        (lambda plan: edit_plan(plan, 3, held="a"), "it has no handle"),
        (
            lambda plan: edit_plan(plan, 3, held="cabinet_top"),
            "'cabinet_top' is neither a movable object nor a handle",
        ),
        (
            lambda plan: edit_plan(plan, 3, held="panda_hand"),
            "'panda_hand' is neither a movable object nor a handle",
        ),
        (
            lambda plan: edit_plan(plan, 3, kind=SegmentKind.TRANSFER),
            "it moves other joints than the arm's",
        ),
        (
            lambda plan: edit_plan(plan, 3, gripper={"panda_finger_joint1": 0.04}),
            "the fingers move while the hand holds",
        ),
        (
            lambda plan: without(plan, 2),
            "operate: it is not preceded by the grasp of 'drawer_handle'",
        ),
        (
            lambda plan: without(plan, 4),
            "operate: it is not followed by the release of 'drawer_handle'",
        ),
        (
            lambda plan: edit_plan(plan, 2, gripper={"panda_finger_joint1": 0.03}),
            "away from 'drawer_handle' after the grasp",
        ),
    ],
)
def test_false_operations_are_found(plan: Plan, falsify: object, problem: str) -> None:
    """A tool that strays, a handle that is none, fingers that open: the checker names each."""
    assert callable(falsify)
    problems = tk.validate_plan(falsify(plan)).problems
    assert any(problem in text for text in problems), problems


def attempt(**changes: object) -> object:
    """Return the result of opening the drawer with the first grasp of its handle."""
    scene = tk.load_scene("panda_drawer")
    arm = ArmMotionPlanner(tk.load_manipulator("panda"), budget=MotionSettings())
    q = arm.robot.ready_configuration(scene)
    grasp = grasps_of(scene, "drawer_handle", robot=arm.robot)[0]
    fields = {"handle": "drawer_handle", "to": 0.1, "grasp": grasp, **changes}
    context = ActionContext(scene, q, np.random.default_rng(0))
    return next(OperateJoint(**fields).refine(arm, context, seed=0))  # type: ignore[arg-type]  # any field of it


def test_where_a_joint_cannot_go() -> None:
    """Beyond its limits no joint goes, in no state; where it is already there is nothing to do."""
    beyond, unchanged = attempt(to=0.3), attempt(to=0.0)
    assert isinstance(beyond, MotionFailure)
    assert beyond.is_proved
    assert str(beyond) == "moving 'drawer_slide': 0.3 is outside its limits from 0 to 0.2"
    assert isinstance(unchanged, MotionFailure)
    assert not unchanged.is_proved
    assert "it is at 0 already" in str(unchanged)


def test_what_is_no_handle() -> None:
    """Frames that no joint carries, objects, and handles of another joint are rejected."""
    with pytest.raises(
        ConfigurationError, match="'cabinet_top' is not a handle of any joint but an arm's"
    ):
        attempt(handle="cabinet_top")
    with pytest.raises(ConfigurationError, match="'drawer_handle' is not a handle of joint 'door'"):
        attempt(joint="door")
    scene, arm = tk.load_scene("panda_drawer"), tk.load_manipulator("panda")
    assert mechanism_joint(scene, "drawer_front", arms=[arm]) == SLIDE
    assert mechanism_joint(scene, "a", arms=[arm]) is None
    assert mechanism_joint(scene, "panda_hand", arms=[arm]) is None


def test_drawers_need_joints_and_handles() -> None:
    """The domain names a drawer that cannot be opened."""
    scene = tk.load_scene("panda_drawer")
    with pytest.raises(SceneError, match="the drawer 'cabinet' has no joint of its own"):
        tk.plan(scene.set_classes("cabinet", ["drawer"]), domain="drawer", goal="(closed drawer)")
    with pytest.raises(SceneError, match="the drawer 'drawer' has no handle"):
        tk.plan(scene.set_classes("drawer_handle", []), domain="drawer", goal="(accessible drawer)")


def cupboard() -> SceneGraph:
    """Return a Panda in front of a cupboard with a hinged door and an upright handle."""
    scene = tk.load_scene("panda_table")
    hinge = Revolute([0, 0, -1], lower=0.0, upper=0.8, name="hinge")
    with scene.edit() as edit:
        edit.add_frame(
            "cupboard",
            "world",
            pose=Pose([0.8, 0.0, 0.2]),
            shapes=[AttachedShape(Box([0.2, 0.4, 0.4]))],
        )
        edit.add_frame(
            "door", "cupboard", pose=Pose([-0.115, 0.15, 0.0]), joint=hinge, classes=["drawer"]
        )
        edit.add_frame(
            "leaf",
            "door",
            pose=Pose([0.0, -0.15, 0.0]),
            shapes=[AttachedShape(Box([0.02, 0.3, 0.38]))],
        )
        bar = AttachedShape(Box([0.016, 0.016, 0.1]))
        edit.add_frame(
            "bar", "door", pose=Pose([-0.06, -0.26, 0.02]), shapes=[bar], classes=["handle"]
        )
    return edit.finish()


def test_a_door_turns() -> None:
    """A hand opens a door along its arc: planned, checked, and played to within a degree."""
    plan = tk.plan(
        cupboard(), domain="drawer", goal="(accessible door)", robot="panda", seed=0
    ).plan
    assert plan is not None
    assert tk.validate_plan(plan).problems == ()
    report = tk.simulate(plan)
    assert report.is_successful
    assert report.joints["hinge"].planned == pytest.approx(0.8)
    assert report.joints["hinge"].error < np.radians(1.0)


def test_the_original_format_has_no_word_for_it(plan: Plan, tmp_path: Path) -> None:
    """A plan that the original's format cannot express is not written in it."""
    with pytest.raises(
        PlanFileError,
        match=r"step 1 \(open-drawer .* moves joint 'drawer_slide' by its handle.* as .json",
    ):
        tk.save_plan(plan, tmp_path / "plan.tmp")
    assert list(tmp_path.iterdir()) == []


def test_the_drawer_is_played(plan: Plan) -> None:
    """In simulation fingers pull and push the drawer by friction, within 5 mm."""
    report = tk.simulate(plan)
    assert report.is_successful
    assert report.worst_position < 0.005
    assert list(report.joints) == [SLIDE]
    assert report.joints[SLIDE].error < 0.005
    assert [slip.object for slip in report.slips] == ["drawer_handle", "a", "drawer_handle"]
    assert not any("lost" in str(note) for note in report.notes)
