"""The closed loop with an executor whose commands fail: events, replanning and its limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import ArgumentError, ExecutionError
from tmkit.plans import Plan, Segment, SegmentKind
from tmkit.plans.execution import TimedMotion
from tmkit.plans.execution_report import ExecutionReport, ExecutionStatus
from tmkit.robots import Manipulator
from tmkit.simulation import Detection
from tmkit.world import execute_closed_loop
from tmkit.world.closed_loop import ClosedLoopResult, ClosedLoopStatus, LoopOptions


class Faulty:
    """An executor without dynamics, whose commands of one kind fail some times.

    Attributes:
        q: (n_joints,) configuration, which an arm that fails leaves in the middle of a motion.
        starts: configuration at the start of each plan.
        slips: whether the object moves away when the hand closes.
        has_slipped: whether it has.
    """

    def __init__(
        self,
        kind: str,
        *,
        failures: int = 1,
        error: type[Exception] = ExecutionError,
        slips: bool = False,
        report: ExecutionReport | None = None,
    ) -> None:
        self.report, self.is_moved = report, False
        self.slips, self.has_slipped = slips, False
        self.kind, self.failures, self.error = kind, failures, error
        self.q: Any = None
        self.starts: list[Any] = []

    def _fail(self, kind: str, **data: Any) -> None:
        if kind == self.kind and self.failures > 0:
            self.failures -= 1
            self.slips = False
            if self.report is not None:
                data = {"report": self.report}
            if self.error is ExecutionError:
                raise ExecutionError(f"the {kind} is blocked", **data)
            raise self.error(kind)

    def begin(self, plan: Plan) -> None:
        """Start where the arm is."""
        self.names = plan.scene.joint_names
        self.q = np.array(plan.q) if self.q is None or self.is_moved else self.q
        assert np.allclose(self.q, plan.q, atol=0.011)
        self.starts.append(self.q.copy())
        self._fail("begin")

    def begin_step(self, number: int, step: Any) -> None:
        """Do nothing."""

    def follow(self, motion: TimedMotion) -> None:
        """Move to the end, or to the middle of a motion that fails."""
        columns = [self.names.index(name) for name in motion.joint_names]
        start = self.q.copy()
        self.q[columns] = motion.timed.positions[-1]
        if motion.segment.kind == self.kind and self.failures > 0:
            middle = motion.timed.positions[len(motion.timed.positions) // 2]
            self.q[columns] = middle
            assert not np.array_equal(start, self.q)
        self._fail(motion.segment.kind, step=motion.step, segment=motion.index)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close the fingers, unless it fails; they close completely if the object is away."""
        is_failing = self.kind == "grasp" and self.failures > 0
        for joint in arm.gripper_joints:
            if self.slips:
                self.q[self.names.index(joint)] = arm.gripper_closed[joint]
            elif not is_failing:
                self.q[self.names.index(joint)] = segment.gripper[joint]
        self.has_slipped |= self.slips
        self._fail("grasp")
        self.slips = False

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open the fingers, unless it fails."""
        self._fail("release")
        for joint in arm.gripper_joints:
            self.q[self.names.index(joint)] = segment.gripper[joint]

    def end_step(self, number: int, step: Any) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""
        self._fail("finish")


def run(executor: Any, *, max_plans: int = 4, sensors: Any = ()) -> ClosedLoopResult:
    """Stack a block; without sensors, objects are where the plan has them."""
    scene = tk.load_scene("panda_table", "blocks3")
    problem = tk.PlanningProblem(scene, domain="blocks", goal="(on b c)", robots="panda")
    return execute_closed_loop(
        problem,
        executor,
        sensors,
        options=tk.PlanningOptions(seed=0, max_iterations=4),
        loop=LoopOptions(max_plans=max_plans),
    )


@pytest.mark.parametrize(
    ("kind", "step", "segment"),
    [
        ("begin", 0, 0),
        ("transit", 0, 0),
        ("grasp", 0, 2),
        ("lift", 0, 3),
        ("transfer", 1, 0),
        ("retreat", 1, 3),
        ("finish", 2, 0),
    ],
)
def test_a_failed_command_is_an_event_and_the_goal_is_reached(
    kind: str, step: int, segment: int
) -> None:
    """The next plan starts from the measured configuration, with the block in the hand or not."""
    executor = Faulty(kind)
    result = run(executor)
    assert result.status is ClosedLoopStatus.REACHED, result
    (event,) = result.events
    assert (event.plan, event.step, event.segment) == (1, step, segment)
    assert event.text == f"the executor failed: the {kind} is blocked"
    assert result.scene.parent("b") == "c"
    is_held = kind in ("lift", "transfer")
    assert (event.scene.parent("b") == "panda_hand") == is_held
    if kind in ("retreat", "finish"):
        assert len(result.plans) == 1  # the goal holds
    else:
        second = result.plans[1]
        assert np.array_equal(second.q, event.q)
        assert tk.validate_plan(second).is_valid
        assert len(second.steps) == len(result.plans[0].steps) - is_held


def test_a_hand_that_closed_on_nothing_opens_and_grasps_the_object_where_it_is() -> None:
    """The fingers are measured as closed, and a sensor detects the block beside them."""
    executor = Faulty("grasp", slips=True)
    scene = tk.load_scene("panda_table", "blocks3")
    place = scene.pose("b", q=scene.zero_configuration()) @ tk.Pose([-0.12, 0.04, 0.0])

    class Camera:
        """Sensor that detects the block after it moved."""

        def look(self) -> list[Detection]:
            """Return the block at its new place."""
            covariance = np.diag([1e-6] * 3 + [1e-4] * 3)
            is_new = executor.has_slipped and len(executor.starts) == 1
            return [Detection("b", place, covariance)] if is_new else []

        def in_view(self, scene: tk.SceneGraph, q: Any) -> set[str]:
            """Return nothing: objects that are not detected are as planned."""
            del scene, q
            return set()

    result = run(executor, sensors=[Camera()])
    assert result.status is ClosedLoopStatus.REACHED, result
    failure, deviation = result.events
    assert failure.text == "the executor failed: the grasp is blocked"
    assert deviation.objects == ("b",)
    fingers = failure.scene.joint_names.index("panda_finger_joint1")
    assert failure.q[fingers] == 0.0
    assert deviation.scene.pose("b", q=deviation.q).distance(place)[0] < 2e-3


def test_the_failures_have_a_limit() -> None:
    """After the largest number of plans, the loop ends with the last failure."""
    executor = Faulty(SegmentKind.TRANSFER.value, failures=100)
    result = run(executor, max_plans=3)
    assert result.status is ClosedLoopStatus.EXECUTION
    assert (len(result.plans), len(executor.starts)) == (3, 3)
    failures = [event for event in result.events if "executor failed" in event.text]
    assert [event.plan for event in failures] == [1, 2, 3]
    assert result.explanation == "the goal does not hold after 3 plans"


def test_the_plan_is_used_without_measured_joints() -> None:
    """An executor without ``q``, or with joints that are not measured, is at the planned joints."""

    class Unmeasured(Faulty):
        @property
        def q(self) -> Any:
            return np.full_like(self.joints, np.nan)

        @q.setter
        def q(self, value: Any) -> None:
            self.joints = value

        def begin(self, plan: Plan) -> None:
            """Store the start."""
            self.names, self.joints = plan.scene.joint_names, np.array(plan.q)
            self.starts.append(self.joints)
            self._fail("begin")

        def follow(self, motion: TimedMotion) -> None:
            """Fail without a motion."""
            self._fail(motion.segment.kind, step=motion.step, segment=motion.index)

        def grasp(self, arm: Manipulator, segment: Segment) -> None:
            """Do nothing."""

        def release(self, arm: Manipulator, segment: Segment) -> None:
            """Do nothing."""

    executor = Unmeasured("transfer")
    result = run(executor)
    assert result.status is ClosedLoopStatus.REACHED
    assert np.array_equal(result.plans[1].q, result.plans[0].steps[0].q)


def test_other_exceptions_pass_through() -> None:
    """They are bugs, or leave the arms in an unknown state."""
    with pytest.raises(ZeroDivisionError, match="transit"):
        run(Faulty("transit", error=ZeroDivisionError))


@pytest.mark.parametrize("kind", ["lift", "retreat"])
def test_an_arm_that_is_elsewhere_is_noticed_without_an_error(kind: str) -> None:
    """The next plan starts from the measured configuration, also at the end."""

    class Drifting(Faulty):
        """An executor that returns with its arm elsewhere, once."""

        def follow(self, motion: TimedMotion) -> None:
            """Move, and then push the arm."""
            super().follow(motion)
            if motion.segment.kind == kind and not self.is_moved:
                self.is_moved = True
                self.q[self.names.index("panda_joint1")] += 0.1

    executor = Drifting("none")
    result = run(executor)
    assert result.status is ClosedLoopStatus.REACHED, result
    (event,) = result.events
    assert event.text.startswith("joint 'panda_joint1' is at ")
    assert "(tolerance 0.01)" in event.text
    is_end = kind == "retreat"
    assert (event.step, len(result.plans)) == ((2, 1) if is_end else (1, 2))
    if not is_end:
        assert np.array_equal(result.plans[1].q, event.q)
        assert tk.validate_plan(result.plans[1]).is_valid
    tolerant = Drifting("none")
    scene = tk.load_scene("panda_table", "blocks3")
    problem = tk.PlanningProblem(scene, domain="blocks", goal="(on b c)", robots="panda")
    options = tk.PlanningOptions(seed=0, max_iterations=4)
    loop = LoopOptions(start_tolerance=0.2)
    assert not execute_closed_loop(problem, tolerant, (), options=options, loop=loop).events
    with pytest.raises(ArgumentError, match="positive start_tolerance, not 0"):
        LoopOptions(start_tolerance=0.0)


@pytest.mark.parametrize(
    ("status", "is_at_rest"), [(ExecutionStatus.STOPPED, True), (ExecutionStatus.ABORTED, False)]
)
def test_nothing_moves_after_a_stop_or_while_an_arm_moves(
    status: ExecutionStatus, is_at_rest: bool
) -> None:
    """The error of a user's stop, or of an arm that is not at rest, passes through."""
    executor = Faulty("transit", report=ExecutionReport(0, 2, status, is_at_rest=is_at_rest))
    with pytest.raises(ExecutionError, match="the transit is blocked"):
        run(executor)
    assert len(executor.starts) == 1


def test_a_report_has_the_measured_joints_and_the_segment() -> None:
    """They precede those of the executor."""
    positions = {"panda_joint1": 0.3}
    report = ExecutionReport(0, 2, ExecutionStatus.ABORTED, step=1, segment=2, positions=positions)
    executor = Faulty("begin", report=report)
    executor.is_moved = True
    result = run(executor)
    assert result.status is ClosedLoopStatus.REACHED
    (event,) = result.events
    assert (event.step, event.segment) == (0, 1)
    joint = event.scene.joint_names.index("panda_joint1")
    assert event.q[joint] == 0.3
    assert np.array_equal(result.plans[1].q, event.q)
