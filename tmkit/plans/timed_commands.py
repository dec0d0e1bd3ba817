"""Commands of a plan with their times, recorded by an executor.

Commands follow each other without gaps: motions have the duration of their timing, and a hand takes
a constant time to open or close.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans.execution import Executor, TimedMotion
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator

_FINGER_TOLERANCE = 1e-9
"""Difference of finger joint values that count as equal [rad or m]."""


@dataclass(frozen=True, eq=False)
class TimedCommand:
    """Motion of an arm or of its hand.

    Attributes:
        begin: start, from the start of the plan [s].
        duration: duration [s].
        step: number of the action, from 1.
        arm: arm of the motion or of the hand.
        motion: motion of the arm; None for a motion of the hand.
        fingers: final finger joint values, by joint [rad or m].
        closes: whether the hand closes on an object, which stops the fingers.
        scene: scene during the motion, in which a pushed object is attached to the hand.
    """

    begin: float
    duration: float
    step: int
    arm: Manipulator
    motion: TimedMotion | None = None
    fingers: Mapping[str, float] = field(default_factory=dict)
    closes: bool = False
    scene: SceneGraph | None = None


class RecordingExecutor(Executor):
    """Executor that records the commands of a plan with their times.

    Args:
        gripper_seconds: time in which a hand opens or closes [s].

    Attributes:
        commands: consecutive commands, without gaps.
    """

    def __init__(self, *, gripper_seconds: float = 0.5) -> None:
        if not (gripper_seconds > 0.0 and math.isfinite(gripper_seconds)):
            raise ConfigurationError(
                f"gripper_seconds is positive and finite, not {gripper_seconds}"
            )
        self._gripper_seconds, self._step = gripper_seconds, 0
        self._fingers: dict[str, float] = {}
        self._held: dict[str, str] = {}
        self.commands: list[TimedCommand] = []

    @property
    def duration(self) -> float:
        """Duration of all commands [s]."""
        return self.commands[-1].begin + self.commands[-1].duration if self.commands else 0.0

    def begin(self, plan: Plan) -> None:
        """Store the state at the start of the plan."""
        self._state = plan.scene, np.asarray(plan.q)
        values = dict(zip(plan.scene.joint_names, plan.q, strict=True))
        fingers = [joint for arm in plan.robots for joint in arm.gripper_joints]
        self._fingers = {joint: float(values[joint]) for joint in fingers}

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Store the number of the action."""
        del step
        self._step = number

    def follow(self, motion: TimedMotion) -> None:
        """Record a motion, and one of an empty hand whose fingers change."""
        segment, (scene, q) = motion.segment, self._state
        if segment.kind is SegmentKind.PUSH and segment.held is not None:
            self._state = scene.reparent(segment.held, motion.arm.tip, q=q), q
        if motion.timed.duration > 0.0:
            self._add(motion.arm, motion.timed.duration, motion=motion)
        self._state = segment.end(*self._state)
        if motion.arm.name not in self._held:
            self._move_hand(motion.arm, motion.segment)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Record that a hand closes."""
        self._held[arm.name] = segment.held or ""
        self._move_hand(arm, segment, is_required=True, closes=True)
        self._state = segment.end(*self._state)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Record that a hand opens."""
        self._held.pop(arm.name, None)
        self._move_hand(arm, segment, is_required=True)
        self._state = segment.end(*self._state)

    def end_step(self, number: int, step: PlanStep) -> None:
        """Store the state after the action."""
        del number
        self._state = step.scene, np.asarray(step.q)

    def finish(self) -> None:
        """Do nothing."""

    def _move_hand(
        self, arm: Manipulator, segment: Segment, *, is_required: bool = False, closes: bool = False
    ) -> None:
        """Record a motion of the hand if it is required or the fingers change."""
        fingers = {
            joint: float(segment.gripper[joint])
            for joint in arm.gripper_joints
            if joint in segment.gripper
        }
        changes = [abs(value - self._fingers[joint]) for joint, value in fingers.items()]
        if is_required or any(change > _FINGER_TOLERANCE for change in changes):
            self._fingers.update(fingers)
            self._add(arm, self._gripper_seconds, fingers=fingers, closes=closes)

    def _add(self, arm: Manipulator, duration: float, **attributes: Any) -> None:
        """Append a command with some attributes of :class:`TimedCommand`."""
        scene, _ = self._state
        self.commands.append(
            TimedCommand(self.duration, duration, self._step, arm, scene=scene, **attributes)
        )
