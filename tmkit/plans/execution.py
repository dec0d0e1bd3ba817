"""Execution of a plan on a robot or simulator, through the interface :class:`Executor`.

:func:`execute` iterates over a plan, computes the timing of its motions within the limits of the
arms (:mod:`tmkit.plans.motion_timing`), and calls the executor, which is independent of scenes and
paths. An arm does not always stop between segments: a motion may start at the speed at which the
previous one ends.

Invariants: the calls depend only on the plan, the rate and the stops. ``begin`` comes first and
``finish`` last, once each, unless the executor raises; its exceptions pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit.errors import ArgumentError
from tmkit.graph import SceneGraph
from tmkit.motion.timing import TimedPath
from tmkit.plans.motion_timing import Piece, blend_run, plan_runs, sample_run, step_runs
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator


@dataclass(frozen=True, eq=False)
class TimedMotion:
    """A segment as a motion in time.

    Attributes:
        arm: arm that moves.
        segment: segment of the plan, with the object in the hand.
        joint_names: joints by column: those of the arm, then that of a drawer or door, if any.
        timed: samples at a constant period; a single one without motion. The last sample is the
            first of the next motion, which continues at the same speed.
        step: number of the step, from 1.
        index: index of the segment in the step, from 1.
        start: time of the first sample since the arm was last at rest [s]. Motions that are sent to
            a controller together have their times from there.
    """

    arm: Manipulator
    segment: Segment
    joint_names: tuple[str, ...]
    timed: TimedPath
    step: int
    index: int
    start: float

    @property
    def is_stopping(self) -> bool:
        """True if the arm is at rest at the end."""
        return not np.any(self.timed.velocities[-1])


@runtime_checkable
class Executor(Protocol):
    """Receiver of the commands of a plan; each method returns when its command is complete."""

    def begin(self, plan: Plan) -> None:
        """Prepare for a plan whose arms are at its configuration ``q``."""
        ...

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Begin an action.

        Args:
            number: index of the step, from 1.
            step: step of the plan.
        """
        ...

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm, and then the fingers of an empty hand to ``motion.segment.gripper``."""
        ...

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close the gripper of an arm at rest on ``segment.held``, an object or a handle.

        Args:
            arm: arm of the gripper.
            segment: segment of the grasp.
        """
        ...

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open the gripper of an arm at rest to ``segment.gripper``, or switch off its vacuum.

        Args:
            arm: arm of the gripper.
            segment: segment of the release.
        """
        ...

    def end_step(self, number: int, step: PlanStep) -> None:
        """End an action, whose commands are all given.

        If its last motion :attr:`~TimedMotion.is_stopping`, the planned state is ``step.scene`` at
        ``step.q``. Otherwise the arm moves on with the next step. An executor that sends such
        motions together has not moved yet; ``stops`` of :func:`execute` ends steps at rest.

        Args:
            number: index of the step, from 1.
            step: step of the plan.
        """
        ...

    def finish(self) -> None:
        """End the plan."""
        ...


@runtime_checkable
class ScheduleExecutor(Executor, Protocol):
    """An executor that moves several arms at once."""

    def follow_schedule(self, schedule: Schedule, *, rate: float) -> None:
        """Execute all steps of a schedule; called between ``begin`` and ``finish``.

        Args:
            schedule: motions of all arms as functions of time.
            rate: samples of each motion per second [Hz].
        """
        ...


def execute(
    plan: Plan, executor: Executor, *, rate: float = 100.0, stops: Collection[int] = ()
) -> None:
    """Execute a plan on an executor.

    Args:
        plan: plan to execute, which is not validated; see :func:`tmkit.tamp.validate_plan`. A
            :class:`ScheduleExecutor` follows the schedule of a plan. Other executors execute one
            step after the other.
        executor: simulator, robot driver or another receiver of the commands.
        rate: samples of each motion per second [Hz].
        stops: numbers of steps, from 1, at whose end the arm is at rest at ``step.q`` before
            ``end_step`` is called. With stops, one step is executed after the other.

    Raises:
        ConfigurationError: if the rate is not positive and finite.
        ArgumentError: if the plan has no step of a number.
    """
    for number in stops:
        if not 1 <= number <= len(plan.steps):
            raise ArgumentError(f"stops: the plan has steps 1 to {len(plan.steps)}, not {number}")
    executor.begin(plan)
    if plan.starts and not stops and isinstance(executor, ScheduleExecutor):
        executor.follow_schedule(Schedule.of(plan), rate=rate)
        executor.finish()
        return
    execute_steps(plan, range(1, len(plan.steps) + 1), executor, rate=rate, stops=stops)
    executor.finish()


def execute_steps(
    plan: Plan,
    numbers: Sequence[int],
    executor: Executor,
    *,
    rate: float,
    stops: Collection[int] = (),
) -> None:
    """Execute consecutive steps of one arm, or of a whole plan, from rest to rest.

    Args:
        plan: plan of the steps.
        numbers: numbers of the steps, from 1, in order.
        executor: receiver of the commands.
        rate: samples of each motion per second [Hz].
        stops: numbers of steps at whose end the arm is at rest.

    Raises:
        ConfigurationError: if the rate is not positive and finite.
    """
    motions = _sample_motions(plan, plan_runs(plan, numbers, stops=stops), rate=rate)
    for number in numbers:
        _execute_step(plan, number, executor, motions, lambda _: False)


def execute_step(
    plan: Plan,
    number: int,
    executor: Executor,
    *,
    rate: float = 100.0,
    on_segment: Callable[[int], bool] = lambda _: False,
    rests: Collection[SegmentKind] = (),
) -> bool:
    """Execute one step of a plan, from rest to rest, after the previous steps.

    Args:
        plan: plan of the step.
        number: index of the step, from 1.
        executor: receiver of the commands, which has executed the previous steps.
        rate: samples of each motion per second [Hz].
        on_segment: called after each segment with its index, from 1. If it returns true, the step
            is aborted. It must not abort a motion that the next segment continues.
        rests: kinds of segments after which the arm is at rest.

    Returns:
        Whether the step is complete. ``executor.end_step`` is not called for an aborted step.

    Raises:
        ConfigurationError: if the rate is not positive and finite.
    """
    motions = _sample_motions(plan, plan_runs(plan, [number], rests=rests), rate=rate)
    return _execute_step(plan, number, executor, motions, on_segment)


def _execute_step(
    plan: Plan,
    number: int,
    executor: Executor,
    motions: Iterator[TimedMotion],
    on_segment: Callable[[int], bool],
) -> bool:
    """Execute one step whose motions come next; see :func:`execute_step`."""
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


def _sample_motions(
    plan: Plan, runs: Iterable[list[Piece]], *, rate: float
) -> Iterator[TimedMotion]:
    """Yield the motions of runs in order; timing is computed one run at a time."""
    for run in runs:
        start = 0.0
        for piece, timed in zip(run, sample_run(plan, run, rate=rate), strict=True):
            yield TimedMotion(
                piece.arm, piece.segment, piece.joint_names, timed, piece.step, piece.index, start
            )
            start += timed.duration


def step_duration(step: PlanStep, scene: SceneGraph, *, robots: Iterable[Manipulator]) -> float:
    """Return the time in which the arms of a step move from rest to rest [s].

    Rounded corners are not checked for collisions. The time of closing or opening a hand depends on
    the executor, and is not included.

    Args:
        step: step of a plan.
        scene: scene with the joints of the step, such as the first scene of its plan.
        robots: arms of the plan.
    """
    return sum(
        blend_run(run, is_checked=False).duration for run in step_runs(step, scene, robots=robots)
    )
