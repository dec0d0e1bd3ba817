"""Executors: what a plan is executed on, and how to put one's own in the place of the simulator.

:func:`execute` walks through a plan, times its motions within the limits of the arms
(:mod:`tmkit.plans.motion_timing`), and calls the :class:`Executor`, which needs to know neither
about scenes nor about paths. An arm need not stop between segments: one motion may begin at the
speed at which the one before ends.

Invariants: an executor is told the same for the same plan and rate; ``begin`` comes first and
``finish`` last, once each, unless the executor raises; what it raises is let through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.motion import TimedPath
from tmkit.plans.motion_timing import blend_run, plan_runs, step_runs, timed_run
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator


@dataclass(frozen=True, eq=False)
class TimedMotion:
    """A segment as a motion in time.

    Attributes:
        arm: the arm that moves.
        segment: what it moves for, with what it holds.
        joint_names: the joints, in the order of the columns: the arm's, then that of a drawer or
            door, if any.
        timed: samples at equal times; a single one when nothing moves. The last is the first of the
            next motion, which goes on from it at the same speed.
    """

    arm: Manipulator
    segment: Segment
    joint_names: tuple[str, ...]
    timed: TimedPath

    @property
    def is_stopping(self) -> bool:
        """Whether the arm stands at the end."""
        return not np.any(self.timed.velocities[-1])


@runtime_checkable
class Executor(Protocol):
    """Executes a plan; each method returns when its command is completed."""

    def begin(self, plan: Plan) -> None:
        """Get ready: the plan's arms are where its configuration ``q`` says."""
        ...

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Begin an action.

        Args:
            number: index of the step, from 1.
            step: the step.
        """
        ...

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm; then, unless it holds something, bring its fingers to ``motion.segment.gripper``."""
        ...

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close the gripper of an arm at rest on ``segment.held``, an object or a handle.

        Args:
            arm: the arm.
            segment: the grasp.
        """
        ...

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open the gripper of an arm at rest to ``segment.gripper``, or switch its vacuum off.

        Args:
            arm: the arm.
            segment: the release.
        """
        ...

    def end_step(self, number: int, step: PlanStep) -> None:
        """End an action; the world should be in the state ``step.scene`` at ``step.q``.

        Args:
            number: index of the step, from 1.
            step: the step.
        """
        ...

    def finish(self) -> None:
        """End the plan."""
        ...


@runtime_checkable
class ScheduleExecutor(Executor, Protocol):
    """An executor that moves several arms at once."""

    def follow_schedule(self, schedule: Schedule) -> None:
        """Execute all steps of a plan as its schedule has them; comes between ``begin`` and ``finish``."""
        ...


def execute(plan: Plan, executor: Executor, *, rate: float = 100.0) -> None:
    """Execute a plan on an executor.

    Args:
        plan: the plan; it is not checked, see :func:`tmkit.tamp.validate_plan`. One with a schedule
            is executed as that says by a :class:`ScheduleExecutor`, and one step after the other by
            others.
        executor: executes the motions, e.g. a simulator or a robot driver.
        rate: samples of each motion per second.

    Raises:
        ConfigurationError: a rate that is not positive and finite.
    """
    executor.begin(plan)
    if plan.starts and isinstance(executor, ScheduleExecutor):
        executor.follow_schedule(Schedule.of(plan))
        executor.finish()
        return
    steps = range(1, len(plan.steps) + 1)
    motions = _motions(plan, steps, rate=rate)
    for number in steps:
        _execute_step(plan, number, executor, motions, lambda _: False)
    executor.finish()


def execute_step(
    plan: Plan,
    number: int,
    executor: Executor,
    *,
    rate: float = 100.0,
    on_segment: Callable[[int], bool] = lambda _: False,
    rests: Collection[SegmentKind] = (),
) -> bool:
    """Execute one step of a plan, from rest to rest, on an executor that has executed the steps before.

    Args:
        plan: the plan.
        number: index of the step, from 1.
        executor: executes the motions.
        rate: samples of each motion per second.
        on_segment: called when a segment is executed, with its index, from 1; returns whether the
            step is to be broken off, which must not be after a motion that another goes on from.
        rests: kinds of segments after which the arm stands.

    Returns:
        Whether the step was completed; ``executor.end_step`` is not called for one that was broken
        off.

    Raises:
        ConfigurationError: a rate that is not positive and finite.
    """
    return _execute_step(
        plan, number, executor, _motions(plan, [number], rate=rate, rests=rests), on_segment
    )


def _execute_step(
    plan: Plan,
    number: int,
    executor: Executor,
    motions: Iterator[TimedMotion],
    on_segment: Callable[[int], bool],
) -> bool:
    step = plan.steps[number - 1]
    executor.begin_step(number, step)
    for index, segment in enumerate(step.segments, start=1):
        arm = plan.arm(segment.arm)
        is_hand = segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
        if not is_hand or len(segment.path) > 1:
            executor.follow(next(motions))
        if segment.kind is SegmentKind.GRASP:
            executor.grasp(arm, segment)
        elif segment.kind is SegmentKind.RELEASE:
            executor.release(arm, segment)
        if on_segment(index):
            return False
    executor.end_step(number, step)
    return True


def _motions(
    plan: Plan, steps: Collection[int], *, rate: float, rests: Collection[SegmentKind] = ()
) -> Iterator[TimedMotion]:
    """Yield the motions of steps in order; one run is timed when its first is wanted."""
    for run in plan_runs(plan, steps, rests=rests):
        for piece, timed in zip(run, timed_run(plan, run, rate=rate), strict=True):
            yield TimedMotion(piece.arm, piece.segment, piece.joint_names, timed)


def step_duration(step: PlanStep, scene: SceneGraph, *, robots: Iterable[Manipulator]) -> float:
    """Return how many seconds the arms of a step move, from rest to rest, if nothing is in the way of their corners.

    How long a hand takes to close or open is the executor's affair, and not counted.

    Args:
        step: the step.
        scene: a scene with its joints, such as the first of its plan.
        robots: the arms.
    """
    return sum(
        blend_run(run, is_checked=False).duration for run in step_runs(step, scene, robots=robots)
    )
