"""Executors: what a plan is executed on, and how to put one's own in the place of the simulator.

:func:`execute` walks through a plan, times each motion from rest to rest within the limits of its arm
(:mod:`tmkit.motion.timing`), and calls the :class:`Executor`, which needs to know neither about scenes nor about paths.
A drawer or a door that a hand moves limits the speed, too.

Invariants: an executor is told the same for the same plan and rate; ``begin`` comes first and ``finish`` last, once
each, unless the executor raises; what it raises is let through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.motion import TimedPath, path_duration, time_path
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator

_SLIDE_SPEED, _HINGE_SPEED = 0.15, 0.6  # m/s and rad/s at which drawers and doors are moved
_PUSH_SPEED = 0.2  # of the arm's speed: what is pushed stops with the hand


@dataclass(frozen=True, eq=False)
class TimedMotion:
    """A segment as a motion in time.

    Attributes:
        arm: the arm that moves.
        segment: what it moves for, with what it holds.
        joint_names: the joints, in the order of the columns: the arm's, then that of a drawer or door, if any.
        timed: samples at equal times, from rest to rest; a single one when nothing moves.
    """

    arm: Manipulator
    segment: Segment
    joint_names: tuple[str, ...]
    timed: TimedPath


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


def execute(plan: Plan, executor: Executor, *, rate: float = 100.0) -> None:
    """Execute a plan on an executor.

    Args:
        plan: the plan; it is not checked, see :func:`tmkit.tamp.validate_plan`.
        executor: executes the motions, e.g. a simulator or a robot driver.
        rate: samples of each motion per second.

    Raises:
        ConfigurationError: a rate that is not positive and finite.
    """
    executor.begin(plan)
    for number in range(1, len(plan.steps) + 1):
        execute_step(plan, number, executor, rate=rate)
    executor.finish()


def execute_step(
    plan: Plan, number: int, executor: Executor, *, rate: float = 100.0,
    on_segment: Callable[[int], bool] = lambda _: False,
) -> bool:  # fmt: skip
    """Execute one step of a plan on an executor that has begun with the plan and has executed the steps before.

    Args:
        plan: the plan.
        number: index of the step, from 1.
        executor: executes the motions.
        rate: samples of each motion per second.
        on_segment: called when a segment is executed and the arm stands, with its index, from 1; returns whether the
            step is to be broken off.

    Returns:
        Whether the step was completed; ``executor.end_step`` is not called for one that was broken off.

    Raises:
        ConfigurationError: a rate that is not positive and finite.
    """
    step = plan.steps[number - 1]
    executor.begin_step(number, step)
    for index, segment in enumerate(step.segments, start=1):
        arm = plan.arm(segment.arm)
        is_hand = segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
        if not is_hand or len(segment.path) > 1:
            executor.follow(_timed(segment, arm, plan.scene, rate))
        if segment.kind is SegmentKind.GRASP:
            executor.grasp(arm, segment)
        elif segment.kind is SegmentKind.RELEASE:
            executor.release(arm, segment)
        if on_segment(index):
            return False
    executor.end_step(number, step)
    return True


def step_duration(step: PlanStep, scene: SceneGraph, *, robots: Iterable[Manipulator], rate: float = 100.0) -> float:
    """Return how many seconds the arms of a step move when :func:`execute` times it.

    How long a hand takes to close or open is the executor's affair, and not counted.

    Args:
        step: the step.
        scene: a scene with its joints, such as the first of its plan.
        robots: the arms.
        rate: samples of each motion per second.

    Raises:
        ConfigurationError: a rate that is not positive and finite.
    """
    arms = {arm.name: arm for arm in robots}
    timings = (
        _timing(segment, arms[segment.arm], scene, rate)[1] for segment in step.segments if len(segment.path) > 1
    )
    return sum(path_duration(**timing) for timing in timings)


def _timed(segment: Segment, arm: Manipulator, scene: SceneGraph, rate: float) -> TimedMotion:
    names, timing = _timing(segment, arm, scene, rate)
    return TimedMotion(arm, segment, names, time_path(**timing))


def _timing(
    segment: Segment, arm: Manipulator, scene: SceneGraph, rate: float
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the joints of a segment, and its path with the limits within which it is timed."""
    others = [name for name in segment.joint_names if name not in arm.joints]
    names = (*arm.joints, *others)
    columns = [segment.joint_names.index(name) for name in names]
    share = _PUSH_SPEED if segment.kind is SegmentKind.PUSH else 1.0
    speeds = np.array([_mechanism_speed(scene, name) for name in others])
    return names, {
        "path": np.asarray(segment.path, dtype=float)[:, columns],
        "velocity_limits": share * np.concatenate([arm.velocity_limits(scene), speeds]),
        "acceleration_limits": np.concatenate([arm.acceleration_limits(scene), 2.0 * speeds]),
        "rate": rate,
    }


def _mechanism_speed(scene: SceneGraph, joint: str) -> float:
    """Return how fast a joint may be moved by its handle, m/s or rad/s: the scene's limit, but not faster than ours."""
    limit = float(scene.velocity_limits[scene.joint_names.index(joint)])
    own = _SLIDE_SPEED if scene.joint(scene.joint_frame(joint)).type == "prismatic" else _HINGE_SPEED
    return min(limit, own) if limit > 0.0 else own
