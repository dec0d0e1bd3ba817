"""Plan validation: every falsification of a plan is rejected, and a correct plan is accepted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.blocks import SUSSMAN, blocks_scene, with_box
from support.gantry import GANTRY, HEIGHT, SUCKER
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans import Plan, SegmentKind
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.spatial import Pose
from tmkit.tamp import ValidationReport, validate_plan

KINDS = ("transit", "approach", "grasp", "lift", "transfer", "lower", "release", "retreat")


def make_plan(scene: SceneGraph, goal: str, **options: Any) -> Plan:
    """Return a plan of the gantry that must be found."""
    result = solve_with(scene, goal, **{"robot": GANTRY, **options})
    assert result.plan is not None, result.explanation
    return result.plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A pick and a place; segment k of KINDS is segment k % 4 of step k // 4."""
    return make_plan(blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4), "(on a b)")


@pytest.fixture(scope="module")
def tower() -> Plan:
    """A plan of six actions."""
    return make_plan(blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}), SUSSMAN)


def check_edited(plan: Plan, *edits: Callable[[Any], None]) -> ValidationReport:
    """Check the plan whose file was edited."""
    document = copy.deepcopy(plan_to_dict(plan))
    for edit in edits:
        edit(document)
    return tk.validate_plan(plan_from_dict(document))


def segment(document: Any, kind: str) -> Any:
    """Return the segment of a kind in the file of a pick and a place."""
    return document["steps"][KINDS.index(kind) // 4]["segments"][KINDS.index(kind) % 4]


def says(report: ValidationReport, message: str) -> bool:
    """Return whether a report rejects a plan for a given reason."""
    return not report.is_valid and any(message in problem for problem in report.problems)


# --- good plans


def test_good_plans_pass(plan: Plan, tower: Plan) -> None:
    """Plans of the planner pass, and the report counts its checks."""
    report = tk.validate_plan(plan)
    assert report.is_valid
    assert (report.actions, report.segments) == (2, 8)
    assert report.configurations > 500
    assert (
        repr(report)
        == f"ValidationReport(valid, 2 actions, {report.configurations} configurations)"
    )
    assert report.to_dict() == {
        "status": "valid",
        "ok": True,
        "problems": [],
        "actions": 2,
        "segments": 8,
        "configurations": report.configurations,
        "assumptions": list(report.assumptions),
    }
    assert len(report.assumptions) == 1
    assert validate_plan(tower).is_valid
    assert check_edited(plan).is_valid


def test_a_suction_plan_passes() -> None:
    """A cup that holds by one face passes too."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    scene = scene.add_frame("cup", "hand", pose=Pose.from_rpy([0.0, 0.0, -0.03], [np.pi, 0.0, 0.0]))
    # narrower than a block
    scene = scene.set_shapes("hand", [AttachedShape(Box([0.03, 0.03, 0.06]))])
    for finger in ("left_finger", "right_finger"):
        scene = scene.set_shapes(finger, [])
    robot = SUCKER.from_dict({**SUCKER.to_dict(), "tool": "cup"})
    assert tk.validate_plan(make_plan(scene, "(on a b)", robot=robot)).is_valid


@pytest.mark.parametrize(("gap", "ok"), [(1e-4, True), (-1e-4, False)])
def test_a_path_that_barely_passes_is_a_path(plan: Plan, gap: float, *, ok: bool) -> None:
    """A post 0.1 mm beside the path is accepted, and one inside is rejected: there is no margin."""
    path = np.array(plan.steps[0].segments[0].path)
    is_straight = np.allclose(np.sin(path[:, 3]), 0.0, atol=1e-6)
    assert is_straight or np.allclose(np.cos(path[:, 3]), 0.0, atol=1e-6)
    half = 0.03 if is_straight else 0.06  # the hand is 6 cm wide along its x axis, 12 cm along y
    side = path[:, 0].max() + half + gap
    scene = with_box(
        plan.scene,
        "post",
        (side, -0.5, HEIGHT - 0.45),
        (side + 0.01, path[:, 1].max() - 0.07, HEIGHT),
    )
    moved = plan_to_dict(replace(plan, scene=scene))
    report = tk.validate_plan(plan_from_dict(moved))
    assert report.is_valid is ok, report.problems
    if not ok:
        assert says(report, "'hand' and 'post' collide")


# --- falsified motions


@pytest.mark.parametrize("kind", ["transit", "transfer"])
def test_a_waypoint_in_a_collision(plan: Plan, kind: str) -> None:
    """A detour through the table is reported."""

    def edit(document: Any) -> None:
        path = segment(document, kind)["path"]
        path.insert(1, [0.1, -0.1, 0.75, 0.0])

    assert says(check_edited(plan, edit), "collide")


def test_a_collision_between_waypoints(plan: Plan) -> None:
    """A thin wall between two waypoints is reported, however far apart they are."""
    path = plan.steps[1].segments[0].path
    middle = (path[0] + path[-1]) / 2
    scene = with_box(
        plan.scene,
        "wall",
        (middle[0] - 0.2, middle[1] - 0.0005, 0.06),
        (middle[0] + 0.2, middle[1] + 0.0005, 0.5),
    )
    assert says(
        tk.validate_plan(plan_from_dict(plan_to_dict(replace(plan, scene=scene)))), "'wall'"
    )


@pytest.mark.parametrize("kind", ["transit", "transfer"])
@pytest.mark.parametrize(("joint", "value"), [(0, 0.51), (1, -0.6), (3, 3.1)])
def test_a_waypoint_beyond_a_limit(plan: Plan, kind: str, joint: int, value: float) -> None:
    """A waypoint outside the joint limits is reported."""

    def edit(document: Any) -> None:
        path = segment(document, kind)["path"]
        waypoint = list(path[0])
        waypoint[joint] = value
        path.insert(1, waypoint)

    assert says(check_edited(plan, edit), "is outside its limits")


@pytest.mark.parametrize("value", [0.05, -0.01])
def test_fingers_beyond_their_limits(plan: Plan, value: float) -> None:
    """Finger values outside the limits are reported."""
    report = check_edited(plan, lambda d: segment(d, "transit")["gripper"].update(finger=value))
    assert says(report, "joint 'finger' is outside its limits")


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_segment_that_is_missing(plan: Plan, kind: str) -> None:
    """Every segment is needed, except a last retreat."""

    def edit(document: Any) -> None:
        segments = document["steps"][KINDS.index(kind) // 4]["segments"]
        del segments[KINDS.index(kind) % 4]

    assert not check_edited(plan, edit).is_valid


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("step", [0, 1])
def test_segments_out_of_order(plan: Plan, step: int, number: int) -> None:
    """Adjacent segments cannot be swapped."""

    def edit(document: Any) -> None:
        segments = document["steps"][step]["segments"]
        segments[number], segments[number + 1] = segments[number + 1], segments[number]

    assert not check_edited(plan, edit).is_valid


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e-6, 1e-3])
def test_a_jump_between_segments(plan: Plan, kind: str, size: float) -> None:
    """Each segment begins at the end of the previous one, to 1e-6 m."""

    def edit(document: Any) -> None:
        for waypoint in segment(document, kind)["path"]:
            waypoint[0] += size

    assert says(check_edited(plan, edit), "it does not start at the configuration of the arm")


def test_a_start_elsewhere(plan: Plan) -> None:
    """The first segment begins at the start."""

    def edit(document: Any) -> None:
        document["q"][1] += 0.01

    assert says(
        check_edited(plan, edit), "transit: it does not start at the configuration of the arm"
    )


@pytest.mark.parametrize("kind", ["transit", "approach", "lift", "transfer", "lower", "retreat"])
def test_a_path_backwards(plan: Plan, kind: str) -> None:
    """A reversed segment does not fit its neighbours."""
    assert not check_edited(plan, lambda d: segment(d, kind)["path"].reverse()).is_valid


@pytest.mark.parametrize("kind", ["approach", "lift", "lower", "retreat"])
def test_a_straight_segment_that_is_bent(plan: Plan, kind: str) -> None:
    """In segments with allowed contact the tool moves along a line and does not rotate."""

    def bend(document: Any, joint: int, size: float) -> None:
        path = segment(document, kind)["path"]
        middle = [(a + b) / 2 for a, b in zip(path[0], path[-1], strict=True)]
        middle[joint] += size
        segment(document, kind)["path"] = [path[0], middle, path[-1]]

    for joint in (0, 1, 3):
        assert says(
            check_edited(plan, lambda d, j=joint: bend(d, j, 0.03)),
            "deviates from the straight line",
        )
    assert check_edited(plan, lambda d: bend(d, 0, 0.0)).is_valid


@pytest.mark.parametrize("kind", ["grasp", "release"])
def test_an_arm_that_moves_with_the_fingers(plan: Plan, kind: str) -> None:
    """While the hand closes or opens the arm does not move."""

    def edit(document: Any) -> None:
        path = segment(document, kind)["path"]
        path.append([path[0][0] + 0.001, *path[0][1:]])

    assert says(check_edited(plan, edit), "the arm moves while the hand does")


# --- falsified grasps


@pytest.mark.parametrize(
    ("finger", "message"), [(0.03, "mm away from 'a'"), (0.02, "overlaps with 'a'")]
)
def test_a_grasp_of_another_width(plan: Plan, finger: float, message: str) -> None:
    """Too wide a grasp holds nothing; too narrow a grasp penetrates the object."""

    def edit(document: Any) -> None:
        for kind in ("grasp", "lift", "transfer", "lower"):
            segment(document, kind)["gripper"]["finger"] = finger

    assert says(check_edited(plan, edit), message)


def test_an_approach_with_the_hand_closed(plan: Plan) -> None:
    """Fingers that pass through the object are reported, although they may touch it."""

    def edit(document: Any) -> None:
        segment(document, "approach")["gripper"]["finger"] = 0.01

    assert says(check_edited(plan, edit), "approach: 'right_finger' and 'a' collide")


@pytest.mark.parametrize("kind", ["lift", "transfer", "lower"])
def test_fingers_that_open_under_way(plan: Plan, kind: str) -> None:
    """The finger values stay constant while they hold something."""
    report = check_edited(plan, lambda d: segment(d, kind)["gripper"].update(finger=0.026))
    assert says(report, "the fingers move while the hand holds 'a'")


@pytest.mark.parametrize(
    ("kind", "size"), [("grasp", 2e-5), ("grasp", 0.01), ("release", 2e-4), ("release", 0.004)]
)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_object_that_jumps(plan: Plan, kind: str, size: float, axis: int) -> None:
    """An object keeps its position when its parent changes."""

    def edit(document: Any) -> None:
        segment(document, kind)["reparent"]["pose"][axis] += size

    assert says(check_edited(plan, edit), "'a' moves by")


def test_an_object_that_turns_in_the_hand(plan: Plan) -> None:
    """An object keeps its orientation when its parent changes."""
    for kind in ("grasp", "release"):

        def edit(document: Any, kind: str = kind) -> None:
            change = segment(document, kind)["reparent"]
            turned = Pose.from_array(change["pose"]) @ Pose.from_rpy(
                [0.0, 0.0, 0.0], [0.0, 0.0, 0.001]
            )
            change["pose"] = [float(number) for number in turned.as_array()]

        assert says(check_edited(plan, edit), "'a' moves by 0.00 mm and 0.057 degrees")


def test_an_object_let_go_in_the_air(plan: Plan) -> None:
    """A released object rests on its support."""

    def edit(document: Any) -> None:
        lower, release, retreat = (
            segment(document, kind) for kind in ("lower", "release", "retreat")
        )
        up = lower["path"][-3]
        rise = lower["path"][-1][2] - up[2]
        del lower["path"][-2:]
        release["path"] = [up]
        release["reparent"]["pose"][2] += rise
        for waypoint in retreat["path"]:
            waypoint[2] -= rise

    assert says(check_edited(plan, edit), "'a' is released 9.2 mm off 'b'") or says(
        check_edited(plan, edit), "mm off 'b'"
    )


# --- falsified words


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_segment_of_another_kind(plan: Plan, kind: str, other: str) -> None:
    """A segment of another kind is rejected."""
    report = check_edited(plan, lambda d: segment(d, kind).update(kind=other))
    assert report.is_valid is (kind == other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("object", ["b", None])
def test_another_object_handled(plan: Plan, kind: str, object: str | None) -> None:
    """A segment with another object is rejected."""
    if kind == "transit" and object is None:
        return
    assert not check_edited(plan, lambda d: segment(d, kind).update(held=object)).is_valid


@pytest.mark.parametrize("kind", ["grasp", "release"])
def test_another_object_reparented(plan: Plan, kind: str) -> None:
    """Only the handled object changes its parent."""
    report = check_edited(
        plan, lambda d: segment(d, kind)["reparent"].update(frame="b", parent="table")
    )
    assert says(report, "it handles 'a' but reparents 'b'")


@pytest.mark.parametrize(
    ("kind", "parent"), [("grasp", "tool"), ("grasp", "b"), ("release", "hand"), ("release", "a")]
)
def test_another_parent(plan: Plan, kind: str, parent: str) -> None:
    """A grasp attaches to the hand, and a release detaches from it."""
    if parent == "a":
        return
    assert not check_edited(
        plan, lambda d: segment(d, kind)["reparent"].update(parent=parent)
    ).is_valid


@pytest.mark.parametrize("kind", ["grasp", "release"])
def test_nothing_reparented(plan: Plan, kind: str) -> None:
    """A grasp without a change of parent is rejected."""
    assert says(
        check_edited(plan, lambda d: segment(d, kind).update(reparent=None)),
        "'a' does not change its parent",
    )


@pytest.mark.parametrize("kind", ["transit", "lift", "retreat"])
def test_a_change_where_there_is_none(plan: Plan, kind: str) -> None:
    """Only grasps and releases change the scene."""
    change = {"frame": "b", "parent": "world", "pose": [0.3, 0.3, 0.3, 0.0, 0.0, 0.0, 1.0]}
    report = check_edited(plan, lambda d: segment(d, kind).update(reparent=change))
    assert says(report, "it reparents 'b', which only a grasp, release or push does")


@pytest.mark.parametrize("kind", KINDS)
def test_exemptions_are_those_of_the_rules(plan: Plan, kind: str) -> None:
    """Contact that the rules forbid cannot be listed or deepened, and none can be omitted."""
    added = ["a", "table", 0.5, "because"]
    report = check_edited(plan, lambda d: segment(d, kind)["exemptions"].append(added))
    assert says(
        report,
        "it allows a contact that the rules do not allow: a and table: up to 500 mm (because)",
    )
    report = check_edited(plan, lambda d: segment(d, kind)["exemptions"][0].__setitem__(2, None))
    assert says(report, "it allows a contact that the rules do not allow")
    report = check_edited(plan, lambda d: segment(d, kind)["exemptions"].pop())
    assert says(report, "it lacks an allowed contact")


def test_steps_out_of_order(tower: Plan) -> None:
    """Actions are validated by the domain."""

    def edit(document: Any) -> None:
        steps = document["steps"]
        steps[0], steps[2] = steps[2], steps[0]

    report = check_edited(tower, edit)
    assert says(report, "by the domain: step 2 of 6, (put-down c")


@pytest.mark.parametrize("number", range(6))
def test_a_step_that_is_missing(tower: Plan, number: int) -> None:
    """Each step is needed."""
    assert not check_edited(tower, lambda d: d["steps"].pop(number)).is_valid


def test_a_step_said_twice(tower: Plan) -> None:
    """No step can be repeated."""
    assert not check_edited(
        tower, lambda d: d["steps"].insert(1, copy.deepcopy(d["steps"][0]))
    ).is_valid


@pytest.mark.parametrize(
    "action",
    [["pick-up", "b", "table__1__1"], ["pick-up", "a", "table__1__0"], ["fly"], ["pick-up", "a"]],
)
def test_another_action(plan: Plan, action: list[str]) -> None:
    """The motion of one action fits no other action."""
    assert says(
        check_edited(plan, lambda d: d["steps"][0].update(action=action)), "by the domain: step"
    )


def test_another_goal(plan: Plan) -> None:
    """The goal must be reached; a malformed goal is an error."""
    assert says(
        check_edited(plan, lambda d: d.update(goal="(on b a)")), "the goal is not reached: (on b a)"
    )
    assert check_edited(plan, lambda d: d.update(goal="(not (on b a))")).is_valid
    with pytest.raises(TaskError, match="zebra"):
        check_edited(plan, lambda d: d.update(goal="(on a zebra)"))


@pytest.mark.parametrize(("key", "value"), [("digest", "0" * 64), ("pddl", "; another text")])
def test_another_domain(plan: Plan, key: str, value: str) -> None:
    """A plan is rejected with another domain file or other semantics."""
    report = check_edited(plan, lambda d: d["domain"].update({key: value}))
    assert report.problems == ("domain 'blocks' differs from the plan's domain",)


@pytest.mark.parametrize(
    "changes",
    [
        {"contact_links": ["left_finger", "right_finger", "hand"]},
        {"contact_tolerance": 0.05},
        {"joints": ["y", "x", "z", "turn"]},
        {"tip": "column"},
        {"contact_links": ["left_finger"]},
    ],
)
def test_another_arm(plan: Plan, changes: dict[str, Any]) -> None:
    """An arm that allows more contradicts the plan's own arm."""
    if "tip" in changes:
        changes = {**changes, "joints": ["x", "y", "z"]}

    def edit(document: Any) -> None:
        robot = document["robots"][0]
        robot.update(changes)
        for key in ("ready", "velocity", "acceleration"):
            robot[key] = {k: v for k, v in robot[key].items() if k in robot["joints"]}

    assert not check_edited(plan, edit).is_valid


@pytest.mark.parametrize("size", [0.003, 0.02])
def test_an_object_elsewhere_at_the_start(plan: Plan, size: float) -> None:
    """A block that was moved is not at the grasp."""
    for axis in (0, 1):

        def edit(document: Any, axis: int = axis) -> None:
            frame = next(f for f in document["scene"]["frames"] if f["name"] == "a")
            frame["pose"][axis] += size

        assert not check_edited(plan, edit).is_valid


def test_an_obstacle_that_was_not_there(plan: Plan) -> None:
    """An obstacle in the way of the motion is reported, and a collision at rest."""
    scene = with_box(plan.scene, "lamp", (0.08, 0.08, 0.12), (0.12, 0.12, 0.3))
    assert says(
        tk.validate_plan(plan_from_dict(plan_to_dict(replace(plan, scene=scene)))), "'lamp'"
    )
    scene = with_box(plan.scene, "rock", (0.0, 0.0, 0.0), (0.02, 0.02, 0.03))
    report = tk.validate_plan(plan_from_dict(plan_to_dict(replace(plan, scene=scene))))
    assert says(report, "at the start: 'a' and 'rock' collide")


def test_a_scene_that_is_not_the_result(plan: Plan) -> None:
    """The scenes of a plan are the results of its motions."""
    step = replace(
        plan.steps[1], scene=plan.steps[1].scene.set_pose("b", Pose([0.1, 0.1001, 0.075]))
    )
    report = tk.validate_plan(replace(plan, steps=(plan.steps[0], step)))
    assert says(report, "its scene differs from the result of its motion")
    step = replace(plan.steps[1], q=plan.steps[1].q + 1e-6)
    report = tk.validate_plan(replace(plan, steps=(plan.steps[0], step)))
    assert says(report, "its scene differs from the result of its motion")


def test_names_that_are_not_there_are_problems(plan: Plan) -> None:
    """A plan with unknown names fails validation and raises nothing."""
    first, *remaining = plan.steps[0].segments
    wrong = replace(plan.steps[0], segments=(replace(first, gripper={"thumb": 0.0}), *remaining))
    assert says(tk.validate_plan(replace(plan, steps=(wrong, plan.steps[1]))), "thumb")
    wrong = replace(plan.steps[0], segments=(replace(first, held="zebra"), *remaining))
    assert says(tk.validate_plan(replace(plan, steps=(wrong, plan.steps[1]))), "zebra")
    wrong = replace(plan.steps[0], action=GroundAction("fly", ()))
    assert says(tk.validate_plan(replace(plan, steps=(wrong, plan.steps[1]))), "fly")


def test_an_empty_plan_is_checked_at_rest() -> None:
    """A plan without steps is checked for goal, collisions and limits at the start."""
    scene = blocks_scene({"a": (0, 0)}, table=0.2)
    empty = make_plan(scene, "(handempty)")
    assert tk.validate_plan(empty).is_valid
    assert says(tk.validate_plan(replace(empty, goal="(holding a)")), "the goal is not reached")
    wrong = np.array(empty.q)
    wrong[0] = 0.6
    assert says(
        tk.validate_plan(replace(empty, q=wrong)), "at the start: joint 'x' is outside its limits"
    )
    box = [AttachedShape(Box([0.2, 0.2, 0.2]))]
    blocked = scene.add_frame("rock", "world", pose=Pose([0.0, -0.3, 0.4]), shapes=box)
    assert says(
        tk.validate_plan(replace(empty, scene=blocked)),
        "at the start: 'left_finger' and 'rock' collide",
    )


def test_all_problems_are_listed(plan: Plan) -> None:
    """Several problems are all reported."""

    def edit(document: Any) -> None:
        segment(document, "transit")["path"].insert(1, [0.51, 0.0, 0.3, 0.0])
        segment(document, "transfer")["path"].insert(1, [0.51, 0.0, 0.3, 0.0])
        document["goal"] = "(on b a)"

    report = check_edited(plan, edit)
    assert len(report.problems) >= 3
    assert repr(report).startswith(f"ValidationReport({len(report.problems)} problems, 2 actions")
    assert SegmentKind.TRANSFER.value in " ".join(report.problems)
