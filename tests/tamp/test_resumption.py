"""Resumption of plans: from any stop the rest of the plan is valid and leads to the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.classic import problem_file
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import CollisionError, ConfigurationError
from tmkit.plans import ExecutionReport, ExecutionStatus, Plan, SegmentKind
from tmkit.plans.motion_timing import plan_motions
from tmkit.tamp import resume_plan
from tmkit.tamp.resumption import Resumption, ResumptionStatus

PROBLEMS = {
    "tower": (("panda_table", "blocks3"), "blocks", "(and (on a b) (on b c))", "panda"),
    "drawer": (("panda_drawer",), "drawer", problem_file("drawer", "empty"), "panda"),
    "push": (("panda_push",), "push", "(on plate rack)", "panda"),
    "small arm": (("so101_table",), "blocks", "(on a b)", "so101"),
}
"""Scenes, domain, goal and robot."""


@pytest.fixture(scope="module")
def plans() -> Any:
    """Function that returns a plan by name."""
    found: dict[str, Plan] = {}

    def get(name: str) -> Plan:
        if name not in found:
            scenes, domain, goal, robot = PROBLEMS[name]
            result = tk.plan(tk.load_scene(*scenes), domain=domain, goal=goal, robot=robot, seed=0)
            assert result.plan is not None, result.explanation
            found[name] = result.plan
        return found[name]

    return get


def stop_at(plan: Plan, share: float) -> tuple[ExecutionReport, dict[str, float]]:
    """Return the report of a stop at a share of the motion time, with the exact joint values."""
    motions = plan_motions(plan)
    total = sum(motion.blended.duration for motion in motions)
    time = share * total
    for motion in motions:
        if time <= motion.blended.duration:
            break
        time -= motion.blended.duration
    time = min(time, motion.blended.duration)
    index = min(int(np.searchsorted(motion.ends, time)), len(motion.ends) - 1)
    step, segment = motion.segments[index]
    part = plan.steps[step - 1].segments[segment - 1]
    values = motion.blended.sample(np.array([time]))[0][0].tolist()
    joints = plan.arm(part.arm).joints
    positions = dict(zip(joints, values, strict=False))  # a drawer's joint is not measured
    return report_of(plan, step, segment, positions), positions


def report_of(
    plan: Plan, step: int, segment: int, positions: Mapping[str, float]
) -> ExecutionReport:
    """Return the report of a stop in a segment."""
    return ExecutionReport(
        step - 1,
        len(plan.steps),
        ExecutionStatus.STOPPED,
        "stopped",
        step,
        segment,
        positions=dict(positions),
    )


def require_rest(plan: Plan, resumption: Resumption, positions: Mapping[str, float]) -> None:
    """Check that the rest begins at the arm, is valid with its past, and ends at the goal."""
    whole, rest = resumption.plan, resumption.remaining
    assert whole is not None
    assert rest is not None
    assert tk.validate_plan(whole).is_valid
    for joint, value in positions.items():
        assert abs(rest.q[rest.scene.joint_names.index(joint)] - value) <= 0.005
    scene, q = rest.scene, rest.q
    for step in rest.steps:
        columns = [scene.joint_names.index(joint) for joint in plan.robot.joints]
        for segment in step.segments:
            assert np.array_equal(segment.path[0][: len(columns)], q[columns])
            scene, q = segment.end(scene, q)
        assert np.array_equal(step.q, q)
        scene = step.scene
    assert scene == whole.final_scene
    for motion in plan_motions(rest):  # it can be timed within all limits
        assert motion.blended.duration > 0.0


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=scaled_examples(0.08), deadline=None)
@given(share=st.floats(0.0, 1.0), noise=st.sampled_from([0.0, 1e-3]), data=st.data())
def test_a_plan_goes_on_from_any_stop(
    name: str, share: float, noise: float, data: st.DataObject, plans: Any
) -> None:
    """The object stays in the hand, and the same actions remain."""
    plan = plans(name)
    report, positions = stop_at(plan, share)
    for joint in positions:
        positions[joint] += data.draw(st.floats(-noise, noise))
    resumption = resume_plan(plan, report, positions=positions)
    require_rest(plan, resumption, positions)
    rest = resumption.remaining
    assert rest is not None
    actions = plan.actions[report.step - 1 :]
    assert rest.actions == actions[len(actions) - len(rest.actions) :]
    held = plan.steps[report.step - 1].segments[report.segment - 1].held
    is_held = held is not None and rest.scene.parent(held) == plan.robot.tip
    first = plan.steps[report.step - 1].segments[report.segment - 1].kind
    loaded = (SegmentKind.LIFT, SegmentKind.TRANSFER, SegmentKind.LOWER)
    assert is_held == (first in loaded)
    if resumption.status is ResumptionStatus.REJOINED:
        assert (resumption.step, resumption.segment) == (report.step, report.segment)
        again = resume_plan(resumption.plan, report, positions=positions)
        assert again.status is ResumptionStatus.REJOINED


@settings(max_examples=scaled_examples(0.08), deadline=None)
@given(share=st.floats(0.0, 1.0), angle=st.floats(0.02, 0.3), joint=st.integers(0, 6))
def test_an_arm_that_was_moved_returns_or_has_a_new_plan(
    share: float, angle: float, joint: int, plans: Any
) -> None:
    """Each detour is checked; a start in a collision is an error."""
    plan = plans("tower")
    report, positions = stop_at(plan, share)
    positions[plan.robot.joints[joint]] += angle
    try:
        resumption = resume_plan(plan, report, positions=positions)
    except (CollisionError, ConfigurationError):
        assume(False)
    assert resumption.status is not ResumptionStatus.NO_PLAN
    require_rest(plan, resumption, positions)


def test_a_detour_of_a_detour_is_possible(plans: Any) -> None:
    """A resumed plan is stopped and resumed again."""
    plan = plans("tower")
    transit = plan.steps[0].segments[0]
    middle = dict(zip(plan.robot.joints, transit.path.mean(axis=0).tolist(), strict=True))
    whole, count = plan, len(transit.path)
    for offset in (0.02, -0.03):
        positions = middle | {"panda_joint1": middle["panda_joint1"] + offset}
        resumption = resume_plan(whole, report_of(whole, 1, 1, positions))
        assert resumption.status is ResumptionStatus.REJOINED, resumption.explanation
        require_rest(plan, resumption, positions)
        assert resumption.plan is not None
        whole = resumption.plan
    assert len(whole.steps[0].segments[0].path) > count + 3


def test_a_hand_repeats_its_motion(plans: Any) -> None:
    """A stop while the fingers close is a grasp to repeat; one while they open, a release."""
    plan = plans("tower")
    for step, kind in ((1, SegmentKind.GRASP), (2, SegmentKind.RELEASE)):
        kinds = [segment.kind for segment in plan.steps[step - 1].segments]
        number = kinds.index(kind) + 1
        path = plan.steps[step - 1].segments[number - 1].path[0].tolist()
        positions = dict(zip(plan.robot.joints, path, strict=True))
        positions["panda_finger_joint1"] = 0.031
        resumption = resume_plan(plan, report_of(plan, step, number, positions))
        assert resumption.status is ResumptionStatus.REJOINED
        rest = resumption.remaining
        assert rest is not None
        assert rest.q[rest.scene.joint_names.index("panda_finger_joint1")] == 0.031
        assert rest.steps[0].segments[0].kind is kind
        assert (rest.scene.parent("b") == plan.robot.tip) == (kind is SegmentKind.RELEASE)


def test_a_stop_between_steps_goes_on_with_the_next_one(plans: Any) -> None:
    """A report without a segment is of the arm at rest; at the end nothing remains."""
    plan = plans("tower")
    positions = dict(zip(plan.scene.joint_names, plan.steps[0].q.tolist(), strict=True))
    between = resume_plan(plan, ExecutionReport(1, 4, positions=positions))
    assert (between.step, between.segment) == (2, 1)
    assert between.remaining is not None
    assert between.remaining.actions == plan.actions[1:]
    unmeasured = resume_plan(plan, ExecutionReport(1, 4)).remaining
    assert unmeasured == between.remaining
    end = resume_plan(plan, ExecutionReport(4, 4))
    assert end.remaining is not None
    assert (end.remaining.steps, end.remaining.scene) == ((), plan.final_scene)


def test_lost_and_pushed_objects_and_other_reports_are_errors(plans: Any) -> None:
    """Nothing continues where the place of an object is unknown."""
    plan = plans("tower")
    report, positions = stop_at(plan, 0.0)
    lift = [segment.kind for segment in plan.steps[0].segments].index(SegmentKind.LIFT) + 1
    path = plan.steps[0].segments[lift - 1].path
    positions = dict(zip(plan.robot.joints, path[-1].tolist(), strict=True))
    positions["panda_finger_joint1"] = 0.0
    message = "does not hold 'b' any more: finger joint 'panda_finger_joint1' is at 0.0000"
    with pytest.raises(ConfigurationError, match=message):
        resume_plan(plan, report_of(plan, 1, lift, positions))
    with pytest.raises(ConfigurationError, match=r"step 5, segment 1, which the plan of 4 steps"):
        resume_plan(plan, report_of(plan, 5, 1, positions))
    with pytest.raises(ConfigurationError, match=r"step 1, segment 9, .* report of another plan"):
        resume_plan(plan, report_of(plan, 1, 9, positions))
    scheduled = replace(plan, starts=(0.0, 1.0, 2.0, 3.0))
    with pytest.raises(ConfigurationError, match="the arms of the plan move at the same time"):
        resume_plan(scheduled, report)


def test_a_push_goes_on_only_on_its_path(plans: Any) -> None:
    """The pose of an object that was pushed on a part of its path is unknown."""
    plan = plans("push")
    kinds = [segment.kind for segment in plan.steps[0].segments]
    number = kinds.index(SegmentKind.PUSH) + 1
    path = plan.steps[0].segments[number - 1].path
    middle = path[len(path) // 2].tolist()
    positions = dict(zip(plan.robot.joints, middle, strict=True))
    report = report_of(plan, 1, number, positions)
    assert resume_plan(plan, report).status is ResumptionStatus.REJOINED
    positions["panda_joint2"] -= 0.05
    with pytest.raises(ConfigurationError, match="the pose of 'plate' is unknown"):
        resume_plan(plan, report, positions=positions)


def test_without_a_plan_the_reason_is_reported(plans: Any) -> None:
    """A drawer that is half open has no state in its domain."""
    plan = plans("drawer")
    kinds = [segment.kind for segment in plan.steps[0].segments]
    number = kinds.index(SegmentKind.OPERATE) + 1
    path = plan.steps[0].segments[number - 1].path
    middle = path[len(path) // 2, :-1].tolist()
    positions = dict(zip(plan.robot.joints, middle, strict=True))
    report = report_of(plan, 1, number, positions)
    assert resume_plan(plan, report).status is ResumptionStatus.REJOINED
    positions["panda_joint1"] += 0.009
    resumption = resume_plan(plan, report, positions=positions)
    assert resumption.status is ResumptionStatus.NO_PLAN
    assert (resumption.plan, resumption.remaining) == (None, None)
    assert "no plan from the measured configuration: No sequence" in resumption.explanation


def test_whole_turns_of_a_continuous_joint_do_not_count(plans: Any) -> None:
    """A joint with limits is where it is."""
    plan = plans("tower")
    scene = plan.scene.set_joint(
        "panda_link1", tk.Continuous([0, 0, 1], velocity=2.1, name="panda_joint1")
    )
    turning = tk.plan(
        scene, plan.q, domain="blocks", goal=PROBLEMS["tower"][2], robot="panda", seed=0
    ).plan
    assert turning is not None
    for share in (0.1, 0.4, 0.7):
        report, positions = stop_at(turning, share)
        here = resume_plan(turning, report, positions=positions)
        away = {**positions, "panda_joint1": positions["panda_joint1"] - 4.0 * np.pi}
        there = resume_plan(turning, report, positions=away)
        assert (there.status, there.step, there.segment) == (here.status, here.step, here.segment)
        assert there.remaining is not None
        assert here.remaining is not None
        assert np.allclose(there.remaining.q, here.remaining.q, atol=1e-9)
    away = {**positions, "panda_joint7": positions["panda_joint7"] + 2.0 * np.pi}
    with pytest.raises(ConfigurationError, match="panda_joint7"):
        resume_plan(turning, report, positions=away)
