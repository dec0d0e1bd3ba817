"""An executor receives all commands of a plan in order, within the limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.gantry import GANTRY, stacking_plan

from tmkit.errors import ArgumentError, ConfigurationError
from tmkit.graph import Prismatic, Revolute
from tmkit.plans import Executor, Plan, PlanStep, Segment, SegmentKind, execute
from tmkit.plans.execution import TimedMotion
from tmkit.robots import Manipulator


class Listener:
    """An executor that stores its commands."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.motions: list[TimedMotion] = []

    def begin(self, plan: Plan) -> None:
        """Keep that."""
        self.calls.append(f"begin {plan.robot.name}")

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Keep that."""
        self.calls.append(f"{number} {step.action.name}")

    def follow(self, motion: TimedMotion) -> None:
        """Keep that."""
        self.calls.append(motion.segment.kind.value)
        self.motions.append(motion)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Keep that."""
        self.calls.append(f"{arm.name} takes {segment.held}")

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Keep that."""
        self.calls.append(f"{arm.name} leaves {segment.held}")

    def end_step(self, number: int, step: PlanStep) -> None:
        """Keep that."""
        self.calls.append(f"{number} done, {step.scene.parent('red')}")

    def finish(self) -> None:
        """Keep that."""
        self.calls.append("finish")


def test_an_executor_receives_everything_in_order() -> None:
    """Each segment is one call between ``begin`` and ``finish``."""
    listener = Listener()
    assert isinstance(listener, Executor)
    execute(stacking_plan(), listener)
    assert listener.calls == [
        "begin gantry",
        "1 move",
        "transit",
        "approach",
        "gantry takes red",
        "lift",
        "transfer",
        "lower",
        "gantry leaves red",
        "retreat",
        "1 done, green",
        "finish",
    ]


def test_motions_are_timed_within_the_limits() -> None:
    """Each motion continues the previous one, near its segment and within the speed limits."""
    plan, slow, fast = stacking_plan(), Listener(), Listener()
    execute(plan, slow, rate=50.0)
    execute(plan, fast, rate=200.0)
    limits = GANTRY.velocity_limits(plan.scene)
    for motion, finer in zip(slow.motions, fast.motions, strict=True):
        assert motion.joint_names == GANTRY.joints
        assert np.allclose(motion.timed.positions[0], motion.segment.path[0], atol=0.06)
        assert np.allclose(motion.timed.positions[-1], motion.segment.path[-1], atol=0.06)
        assert np.all(np.abs(motion.timed.velocities) <= limits + 1e-9)
        assert finer.timed.duration == pytest.approx(motion.timed.duration, abs=0.03)
        assert len(finer.timed.positions) > 3 * len(motion.timed.positions)
    for before, motion in pairwise(slow.motions):
        for name in ("positions", "velocities", "accelerations"):
            assert np.array_equal(getattr(before.timed, name)[-1], getattr(motion.timed, name)[0])
    resting = {motion.segment.kind.value for motion in slow.motions if motion.is_stopping}
    assert resting == {"approach", "lower", "retreat"}
    for motion in slow.motions:
        if motion.is_stopping:
            assert np.array_equal(motion.timed.positions[-1], motion.segment.path[-1])


def test_rates_and_failures() -> None:
    """A rate must be positive; an exception of the executor ends the plan."""

    class Broken(Listener):
        def grasp(self, arm: Manipulator, segment: Segment) -> None:
            raise RuntimeError(f"the hand of {arm.name} is stuck at {segment.held}")

    with pytest.raises(ConfigurationError, match="rate must be positive"):
        execute(stacking_plan(), Listener(), rate=0.0)
    broken = Broken()
    with pytest.raises(RuntimeError, match="the hand of gantry is stuck at red"):
        execute(stacking_plan(), broken)
    assert broken.calls[-1] == "approach"


@pytest.mark.parametrize(("limit", "peak"), [(0.0, None), (0.05, 0.05), (5.0, None)])
@pytest.mark.parametrize(("slides", "own"), [(True, 0.15), (False, 0.6)])
def test_drawers_and_doors_are_moved_slowly(
    slides: bool, own: float, limit: float, peak: float | None
) -> None:
    """The joint behind a handle comes last, at most at 0.15 m/s or 0.6 rad/s and its limit."""
    plan = stacking_plan()
    kind = Prismatic if slides else Revolute
    drawer = kind((1, 0, 0), lower=0.0, upper=2.0, velocity=limit, name="drawer")
    scene = plan.scene.add_frame("front", "world", joint=drawer)
    path = np.repeat(plan.steps[0].segments[0].path[:1], 2, axis=0)
    path = np.insert(path, 1, [0.0, 2.0], axis=1)  # the second column, to be brought to the end
    names = (GANTRY.joints[0], "drawer", *GANTRY.joints[1:])
    opening = replace(
        plan.steps[0].segments[0], kind=SegmentKind.TRANSIT, joint_names=names, path=path
    )
    listener = Listener()
    q = scene.configuration({"drawer": 0.0}, base=[*plan.q, 0.0])
    execute(
        replace(plan, scene=scene, q=q, steps=(replace(plan.steps[0], segments=(opening,)),)),
        listener,
    )
    (motion,) = listener.motions
    assert motion.joint_names == (*GANTRY.joints, "drawer")
    assert motion.timed.positions[-1, -1] == 2.0
    speeds = np.abs(motion.timed.velocities)
    assert np.max(speeds[:, -1]) == pytest.approx(peak or own, rel=1e-3)
    assert np.max(speeds[:, :-1]) < 1e-9
    assert np.max(np.diff(speeds[:, -1])) <= 2.0 * (peak or own) / 100.0 * 1.001


def test_a_hand_that_moves_while_it_closes_is_followed_first() -> None:
    """A grasp of two or more rows is a motion before the fingers close."""
    plan, listener = stacking_plan(), Listener()
    segments = [segment for segment in plan.steps[0].segments if segment.kind is SegmentKind.GRASP]
    moving = replace(
        segments[0], path=np.array([segments[0].path[0], segments[0].path[0] + [0.01, 0, 0, 0]])
    )
    execute(
        replace(plan, steps=(replace(plan.steps[0], segments=(moving, segments[0])),)), listener
    )
    assert listener.calls[2:-2] == ["grasp", "gantry takes red", "gantry takes red"]
    assert listener.motions[0].timed.positions[-1, 0] == moving.path[-1, 0]
    assert listener.motions[0].timed.period == pytest.approx(0.01, rel=0.1)


class Lagging(Listener):
    """An executor that moves at the end of motions that blend, and stores its state at each end."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.names, self.q = plan.scene.joint_names, np.array(plan.q)
        self.batch: list[TimedMotion] = []
        self.ends: dict[int, tuple[bool, float]] = {}

    def follow(self, motion: TimedMotion) -> None:
        """Move when the arm stops."""
        super().follow(motion)
        previous = self.batch[-1] if self.batch else None
        expected = previous.start + previous.timed.duration if previous else 0.0
        assert motion.start == pytest.approx(expected)
        self.batch.append(motion)
        if motion.is_stopping:
            columns = [self.names.index(name) for name in motion.joint_names]
            self.q[columns] = motion.timed.positions[-1]
            self.batch = []

    def end_step(self, number: int, step: PlanStep) -> None:
        """Store whether motions wait, and the distance of the arm from the end of the step."""
        columns = [self.names.index(name) for name in GANTRY.joints]
        distance = float(np.max(np.abs(self.q[columns] - step.q[columns])))
        self.ends[number] = bool(self.batch), distance


def two_steps() -> Plan:
    """Return the plan for two blocks with the pick and the place as two steps."""
    plan = stacking_plan()
    (step,) = plan.steps
    scene, q = plan.scene, np.array(plan.q)
    kinds = [segment.kind for segment in step.segments]
    cut = kinds.index(SegmentKind.LIFT) + 1
    for segment in step.segments[:cut]:
        scene, q = segment.end(scene, q)
    pick = replace(step, segments=step.segments[:cut], scene=scene, q=q)
    return replace(plan, steps=(pick, replace(step, segments=step.segments[cut:])))


def test_a_step_ends_at_rest_where_it_is_required() -> None:
    """An executor that sends blended motions together is at the end of each step with a stop."""
    plan = two_steps()
    blended = Lagging(plan)
    execute(plan, blended)
    is_waiting, distance = blended.ends[1]
    assert is_waiting  # the lift blends with the transfer of the next step
    assert distance > 0.01
    assert blended.ends[2] == (False, pytest.approx(0.0, abs=1e-9))
    stopped = Lagging(plan)
    execute(plan, stopped, stops=[1])
    for number in (1, 2):
        assert stopped.ends[number] == (False, pytest.approx(0.0, abs=1e-9))
    for executor in (blended, stopped):
        for motion in executor.motions:
            assert motion.segment is plan.steps[motion.step - 1].segments[motion.index - 1]
        assert len(executor.motions) == 6
    lift = next(m for m in stopped.motions if m.segment.kind is SegmentKind.LIFT)
    assert lift.is_stopping
    assert (lift.step, lift.index, lift.start) == (1, 4, 0.0)


@pytest.mark.parametrize("number", [0, 3])
def test_stops_are_numbers_of_steps(number: int) -> None:
    """Nothing is executed otherwise."""
    listener = Listener()
    with pytest.raises(ArgumentError, match=f"the plan has steps 1 to 2, not {number}"):
        execute(two_steps(), listener, stops=[number])
    assert listener.calls == []
