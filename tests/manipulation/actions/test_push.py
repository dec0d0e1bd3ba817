"""Pushing: motions along a line, their validation, and their simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh

import tmkit as tk
from tmkit.errors import PlanFileError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, ActionMotion, MotionSettings, Push
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.manipulation.actions.push import push_faults
from tmkit.plans import Plan, SegmentKind, execute
from tmkit.plans.failures import MotionFailure
from tmkit.plans.timed_commands import RecordingExecutor
from tmkit.tamp import PlanStatus


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """Return the Panda at its table with a box and a plate."""
    return tk.load_scene("panda_push")


@pytest.fixture(scope="module")
def plan(scene: SceneGraph) -> Plan:
    """Return the plan that pushes the box to its goal, and the plate to the edge and the rack."""
    goal = tk.data_path("domains/push/problems/rack.pddl")
    result = tk.plan(scene, domain="push", goal=goal, seed=0).plan
    assert result is not None
    return result


def attempts(scene: SceneGraph, push: Push) -> list[ActionMotion | MotionFailure]:
    """Return all that comes of a push from the ready configuration."""
    arm = tk.load_manipulator("panda")
    q = np.array(arm.ready_configuration(scene))
    arms = arm_motion_planners([arm], budget=MotionSettings())
    context = ActionContext(scene, q, np.random.default_rng(0), arms=arms)
    return list(push.refine(arms["panda"], context, seed=0))


def motion(scene: SceneGraph, push: Push) -> ActionMotion:
    """Return the first motion of a push."""
    return next(result for result in attempts(scene, push) if isinstance(result, ActionMotion))


@pytest.mark.parametrize("turn", [0.0, 0.4])
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)])
def test_a_push_moves_the_object_along_its_own_axis(
    scene: SceneGraph, turn: float, direction: tuple[float, float, float]
) -> None:
    """The pose changes by the distance along the direction in the object's axes only."""
    before = scene.local_pose("box") @ tk.Pose.exp([0, 0, 0, 0, 0, turn])
    result = motion(scene.set_pose("box", before), Push("box", direction, 0.05))
    expected = before @ tk.Pose(0.05 * np.array(direction))
    assert result.scene.parent("box") == "table"
    assert result.scene.local_pose("box").is_close(
        expected, translation_tolerance=1e-9, rotation_tolerance=1e-9
    )
    assert [part.kind.value for part in result.segments] == [
        "transit",
        "approach",
        "push",
        "retreat",
    ]
    assert result.segments[2].reparenting is not None


def test_a_plate_is_pushed_to_the_edge_and_taken_from_there(plan: Plan, tmp_path: Path) -> None:
    """A flat plate is pushed before it is grasped; the plan is valid and agrees with physics."""
    actions = [str(step.action) for step in plan.steps]
    assert "(push plate table edge)" in actions
    assert actions[-2:] == ["(pick plate edge)", "(place plate rack)"]
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert tk.validate_plan(loaded).is_valid
    report = tk.simulate(loaded)
    assert report.is_successful
    assert report.worst_position < 0.003
    assert report.notes == ()


def test_an_object_to_be_kept_upright_can_be_pushed(scene: SceneGraph) -> None:
    """A push segment has the object's path constraint, and the plan is valid."""
    upright = scene.set_classes("box", (*scene.classes("box"), "upright"))
    plan = tk.plan(upright, domain="push", goal="(on box goal)", seed=0).plan
    assert plan is not None
    assert first_push(plan).constraints
    assert tk.validate_plan(plan).is_valid


def test_a_push_is_slow(plan: Plan) -> None:
    """In simulation the tool moves at less than 0.1 m/s along a push."""
    recorder = RecordingExecutor()
    execute(plan, recorder, rate=100.0)
    motions = [command.motion for command in recorder.commands if command.motion is not None]
    timed = next(motion.timed for motion in motions if motion.segment.kind is SegmentKind.PUSH)
    entries = [plan.scene.joint_names.index(name) for name in plan.robot.joints]
    points = []
    for row in timed.positions:
        q = np.array(plan.q)
        q[entries] = row
        points.append(plan.scene.pose(plan.robot.tool, q=q).translation)
    assert np.max(np.linalg.norm(np.diff(points, axis=0), axis=1)) * 100.0 < 0.15


def test_a_push_with_an_obstacle_is_explained(scene: SceneGraph) -> None:
    """If a wall keeps the plate from the edge, the explanation names it."""
    wall = [tk.AttachedShape(tk.Box([0.5, 0.01, 0.1]))]
    walled = scene.add_frame("wall", "table", pose=tk.Pose([-0.15, -0.29, 0.08]), shapes=wall)
    result = tk.plan(
        walled,
        domain="push",
        goal="(on plate edge)",
        seed=0,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    assert result.status is not PlanStatus.SOLVED
    assert "'wall'" in result.explanation
    failures = [
        attempted
        for attempted in attempts(walled, Push("plate", (0.0, -1.0, 0.0), 0.2))
        if isinstance(attempted, MotionFailure)
    ]
    assert any(set(pair) == {"plate", "wall"} for failure in failures for pair in failure.pairs)


@pytest.mark.parametrize(
    ("push", "edit", "cause"),
    [
        (
            Push("box", (1.0, 1.0, 0.0), 0.05),
            None,
            "does not push perpendicularly to a face of 'box'",
        ),
        (Push("plate", (0.0, -1.0, 0.0), 0.24), None, "'plate' would fall off 'table'"),
        (Push("box", (1.0, 0.0, 0.0), 0.05), (0.04, 0.2, 0.2), "'box' would tip: it is pushed"),
        (
            Push("plate", (0.0, -1.0, 0.0), 0.1),
            (0.16, 0.14, 0.005),
            "'plate' is too flat for the fingers",
        ),
    ],
)
def test_pushes_that_fail_say_why(
    scene: SceneGraph, push: Push, edit: tuple[float, float, float] | None, cause: str
) -> None:
    """A push off a face, off the table or over the top is rejected with its reason."""
    if edit is not None:
        pose = scene.local_pose(push.object).translation
        scene = scene.set_shapes(push.object, [tk.AttachedShape(tk.Box(edit))])
        scene = scene.set_inertia(push.object, None)
        scene = scene.set_pose(push.object, tk.Pose([pose[0], pose[1], 0.025 + edit[2] / 2]))
    assert any(cause in str(failure) for failure in attempts(scene, push)), [
        str(failure) for failure in attempts(scene, push)
    ]


def test_a_sloping_face_is_refused(scene: SceneGraph) -> None:
    """The fingers would slide up a face that leans back."""
    corners = np.array(
        [[x, y, z] for z, w in ((-0.05, 0.08), (0.05, 0.02)) for x in (-w, w) for y in (-w, w)]
    )
    hull = trimesh.convex.convex_hull(corners)
    frustum = scene.set_shapes(
        "box", [tk.AttachedShape(tk.Mesh(hull.vertices, hull.faces))]
    ).set_inertia("box", None)
    causes = {str(failure) for failure in attempts(frustum, Push("box", (1.0, 0.0, 0.0), 0.05))}
    assert "push: 'panda_leftfinger' does not push perpendicularly to a face of 'box'" in causes, (
        causes
    )


def test_a_line_beside_the_centre_of_mass_is_refused(scene: SceneGraph) -> None:
    """Moved by a centimetre sideways, the box is touched beside its centre, and would turn."""
    result = motion(scene, Push("box", (1.0, 0.0, 0.0), 0.05))
    arm = tk.load_manipulator("panda")
    part = result.segments[2]
    path = np.array(
        [scene.configuration(dict(zip(arm.joints, row, strict=True))) for row in part.path]
    )
    assert push_faults(scene, path, arm, object="box") == []
    shifted = scene.set_pose("box", scene.local_pose("box") @ tk.Pose([0, 0.01, 0]))
    assert push_faults(shifted, path, arm, object="box") == [
        "the line passes 10.0 mm beside the centre of mass of 'box', which would turn"
    ]
    ahead = scene.set_pose("box", scene.local_pose("box") @ tk.Pose([0.01, 0, 0]))
    assert (
        "'panda_leftfinger' is 10.1 mm away from 'box'"
        in push_faults(ahead, path, arm, object="box")[0]
    )


def pushed_pose(plan: Plan, **changes: object) -> Plan:
    """Return the plan with another first push."""
    step = plan.steps[0]
    index = next(k for k, part in enumerate(step.segments) if part.kind is SegmentKind.PUSH)
    segments = list(step.segments)
    segments[index] = replace(segments[index], **changes)  # type: ignore[arg-type]
    return replace(plan, steps=(replace(step, segments=tuple(segments)), *plan.steps[1:]))


def first_push(plan: Plan) -> tk.plans.Segment:
    """Return the first push of a plan."""
    return next(part for part in plan.steps[0].segments if part.kind is SegmentKind.PUSH)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: {"reparenting": None}, "'box' does not change its parent"),
        (
            lambda part: {
                "reparenting": replace(
                    part.reparenting, pose=part.reparenting.pose @ tk.Pose([0.01, 0, 0])
                )
            },
            "'box' moves by 10.00 mm",
        ),
        (
            lambda part: {"reparenting": replace(part.reparenting, parent="rack")},
            "pushes 'box' from 'table' to 'rack'",
        ),
        (lambda part: {"path": part.path[:-1]}, "'box' moves by"),
        (lambda part: {"path": part.path[1:]}, "it does not start at the configuration of the arm"),
        (
            lambda _: {"kind": SegmentKind.RETREAT},
            "it is not preceded by the release or push of 'box'",
        ),
        (lambda _: {"held": "plate"}, "it handles 'plate' but reparents 'box'"),
        (lambda _: {"allowed_contacts": ()}, "it lacks an allowed contact"),
    ],
)
def test_a_falsified_push_is_refused(
    plan: Plan, change: Callable[[tk.plans.Segment], dict[str, object]], problem: str
) -> None:
    """The checker reports each change in a push."""
    assert str(plan.steps[0].action) == "(push box table goal)"
    problems = tk.validate_plan(pushed_pose(plan, **change(first_push(plan)))).problems
    assert any(problem in text for text in problems), problems


def test_a_push_needs_free_space(plan: Plan) -> None:
    """A block in the way of the pushed box is a collision for the checker."""
    block = [tk.AttachedShape(tk.Box([0.03, 0.03, 0.03]))]
    blocked = plan.scene.add_frame(
        "block", "table", pose=tk.Pose([-0.03, 0.05, 0.04]), shapes=block
    )
    problems = tk.validate_plan(replace(plan, scene=blocked)).problems
    assert any("push: 'box' and 'block' collide" in text for text in problems), problems


def test_a_push_cannot_be_written_in_the_original_format(plan: Plan, tmp_path: Path) -> None:
    """The message names the feature that the format lacks."""
    with pytest.raises(
        PlanFileError,
        match=r"pushes 'box', which the format cannot express; save the plan as \.json",
    ):
        tk.save_plan(plan, tmp_path / "plan.tmp")
