"""Goals of controllers that execute a plan, independent of the interface of a robot.

:class:`GoalExecutor` turns the calls of :func:`tmkit.plans.execute` into goals. Motions of an arm
that blend are one goal, from rest to rest. A hand has a goal for each grasp and release. It has
another where the fingers of an empty hand move.
::

    transit  approach | grasp | lift  transfer  lower | release | retreat
    ---- one goal ----  hand    ------ one goal -----   hand      goal

Invariants: goals depend only on the plan, the rate and the speed. Each is within the limits of the
arm before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.plans.execution import TimedMotion, execute, execute_step, execute_steps
from tmkit.plans.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.world.execution.checks import nearest_distances
from tmkit.world.execution.controllers import Controller, ControllerTable, SuctionGripper

_Array = NDArray[np.float64]

_EMPTY_HAND = (SegmentKind.TRANSIT, SegmentKind.APPROACH, SegmentKind.RETREAT, SegmentKind.PUSH)
"""Kinds of segments in which a hand holds nothing."""

_HAND_KINDS = (SegmentKind.GRASP, SegmentKind.RELEASE)
"""Kinds of segments that need the controller of a hand."""

_LIMIT_RATIO = 1.0 + 1e-3
"""Largest speed and acceleration of a sample relative to the limits."""

_LIMIT_DISTANCE = 1e-5
"""Largest distance of a sample past a position limit [rad or m]."""

_EQUAL_FINGERS = 1e-6
"""Difference of finger joint values that count as equal [rad or m]."""


@dataclass(frozen=True)
class SegmentTime:
    """Part of a trajectory that belongs to one segment.

    Attributes:
        step: number of the step, from 1.
        segment: index in the step, from 1.
        kind: kind of the segment.
        end: end of the segment, from the start of the trajectory [s].
    """

    step: int
    segment: int
    kind: str
    end: float


@dataclass(frozen=True, eq=False)
class TrajectoryGoal:
    """Goal of a trajectory controller, from rest to rest.

    Attributes:
        arm: name of the arm.
        controller: controller of the arm.
        joints: n joints in the order of the controller, by their names in the scene.
        times: (k,) times from the start, which is the first row [s].
        positions: (k, n) joint values [rad or m].
        velocities: (k, n) joint speeds [rad/s or m/s].
        accelerations: (k, n) joint accelerations [rad/s^2 or m/s^2].
        segments: segments in order.
    """

    arm: str
    controller: Controller
    joints: tuple[str, ...]
    times: _Array
    positions: _Array
    velocities: _Array
    accelerations: _Array
    segments: tuple[SegmentTime, ...]

    @property
    def duration(self) -> float:
        """Time from rest to rest [s]."""
        return float(self.times[-1])

    def locate(self, time: float) -> tuple[SegmentTime, float]:
        """Return the segment at a time, and the time since its start [s]."""
        begin = 0.0
        for part in self.segments:
            if time <= part.end:
                return part, max(0.0, time - begin)
            begin = part.end
        last = self.segments[-1]
        start = self.segments[-2].end if len(self.segments) > 1 else 0.0
        return last, last.end - start

    def distance(self, positions: _Array) -> _Array:
        """Return the distances (n,) of joints from the nearest configuration of the trajectory."""
        return nearest_distances(self.positions, positions)

    def to_dict(self) -> dict[str, object]:
        """Return the points of the goal as plain values for JSON."""
        first = self.segments[0]
        return {
            "controller": self.controller.name,
            "action": self.controller.action,
            "step": first.step,
            "segment": first.segment,
            "joints": list(self.controller.joints),
            "times": self.times.tolist(),
            "positions": self.positions.tolist(),
            "velocities": self.velocities.tolist(),
            "accelerations": self.accelerations.tolist(),
        }

    def __str__(self) -> str:
        end = ", ".join(f"{value:.4g}" for value in self.positions[-1])
        kinds = ", ".join(part.kind for part in self.segments)
        return (
            f"{self.controller.action}: {len(self.times) - 1} points in {self.duration:.2f} s to"
            f" [{end}] ({kinds})"
        )


@dataclass(frozen=True, eq=False)
class GripperGoal:
    """Goal of the controller of a hand.

    Attributes:
        arm: name of the arm.
        controller: controller of the hand.
        place: step and segment of the motion; its end is 0.
        values: commanded joint values, by the names in the scene [rad or m].
        planned: joint values of the plan at the end, by the names in the scene [rad or m].
        held: object or handle that is grasped, or None if the hand opens or is empty.
        force: force of each finger [N].
    """

    arm: str
    controller: Controller
    place: SegmentTime
    values: Mapping[str, float]
    planned: Mapping[str, float]
    held: str | None
    force: float

    def fault(self, values: Mapping[str, float], tolerance: float, *, is_stalled: bool) -> str:
        """Return why final finger joint values are not as planned; empty if they are.

        Args:
            values: measured joint values, by the names in the scene [rad or m].
            tolerance: largest difference from the planned values [rad or m].
            is_stalled: whether the fingers stalled, for the message.
        """
        for joint, value in values.items():
            planned, commanded = self.planned[joint], self.values[joint]
            fingers = f"finger joint '{joint}' is at {value:.4f}, expected {planned:.4f}"
            if self.held is not None and abs(value - commanded) < abs(value - planned):
                return f"the hand closed on nothing, not on '{self.held}': {fingers}"
            if abs(value - planned) > tolerance:
                purpose = f"the grasp of '{self.held}'" if self.held else "the motion of the hand"
                stall = " and stalled" if is_stalled else ""
                return f"{purpose} ended elsewhere{stall}: {fingers}"
        return ""

    def command(self, joint: str) -> float:
        """Return the command of a joint of the scene, in units of the controller."""
        return self.controller.scale * self.values[joint] + self.controller.offset

    def to_dict(self) -> dict[str, object]:
        """Return the goal as plain values for JSON."""
        return {
            "controller": self.controller.name,
            "action": self.controller.action,
            "step": self.place.step,
            "segment": self.place.segment,
            "positions": {joint: self.command(joint) for joint in self.values},
            "held": self.held,
            "force": self.force,
        }

    def __str__(self) -> str:
        values = ", ".join(f"{joint} to {self.command(joint):.4g}" for joint in self.values)
        purpose = f"grasp {self.held}" if self.held is not None else self.place.kind
        return f"{self.controller.action}: {values} ({purpose})"


@dataclass(frozen=True)
class SuctionGoal:
    """Switch of the vacuum of a suction gripper.

    Attributes:
        arm: name of the arm.
        controller: gripper.
        place: step and segment of the switch; its end is 0.
        is_on: whether the vacuum is switched on.
        held: object that is grasped or released.
    """

    arm: str
    controller: SuctionGripper
    place: SegmentTime
    is_on: bool
    held: str | None

    def to_dict(self) -> dict[str, object]:
        """Return the goal as plain values for JSON."""
        gripper = self.controller
        return {
            "service" if gripper.is_service else "topic": gripper.name,
            "step": self.place.step,
            "segment": self.place.segment,
            "fields": dict(gripper.on_fields if self.is_on else gripper.off_fields),
            "held": self.held,
        }

    def __str__(self) -> str:
        verb = "grasp" if self.is_on else "release"
        return f"{self.controller.name}: {'on' if self.is_on else 'off'} ({verb} {self.held})"


Goal = TrajectoryGoal | GripperGoal | SuctionGoal
"""Goal of a controller, or switch of a vacuum."""


class GoalExecutor:
    """An executor that makes goals of a plan and passes each to :meth:`send`.

    Args:
        settings: controllers of the robot.
        speed: speed relative to the plan, above 0 and at most 1.
        first: number of the first step of the plan, for the numbers of goals.
        first_segment: number of the first segment of this step.

    Raises:
        ConfigurationError: if the speed is outside of its range.
    """

    def __init__(
        self,
        settings: ControllerTable,
        *,
        speed: float = 1.0,
        first: int = 1,
        first_segment: int = 1,
    ) -> None:
        if not 0.0 < speed <= 1.0:
            raise ConfigurationError(f"the speed must be above 0 and at most 1, got {speed:g}")
        self.settings = settings
        self.speed = speed
        self._first, self._first_segment = first, first_segment
        self._step = self._segment = 0
        self._last_segment: Segment | None = None
        self._motions: list[tuple[TimedMotion, SegmentTime]] = []
        self._fingers: dict[str, float] = {}
        self._collected: list[Goal] | None = None

    def send(self, goal: Goal) -> None:
        """Execute a goal; the method of a subclass returns when it is complete."""
        raise NotImplementedError

    def begin(self, plan: Plan) -> None:
        """Find the controllers of all arms and hands that a plan moves.

        Args:
            plan: plan to execute.

        Raises:
            ConfigurationError: if an arm or hand has no controller.
        """
        self._plan = plan
        self._motions = []
        self._fingers = {
            joint: float(plan.q[plan.scene.joint_names.index(joint)])
            for arm in plan.robots
            for joint in arm.gripper_joints
        }
        self._arms: dict[str, Controller] = {}
        self._hands: dict[str, Controller] = {}
        self._cups: dict[str, SuctionGripper] = {}
        segments = [segment for step in plan.steps for segment in step.segments]
        for arm in plan.robots:
            own = [segment for segment in segments if segment.arm == arm.name]
            if own:
                self._arms[arm.name] = self.settings.arm_controller(arm.name, arm.joints)
            if not any(segment.kind in _HAND_KINDS for segment in own):
                continue
            if arm.gripper_joints:
                self._hands[arm.name] = self.settings.gripper_controller(
                    arm.name, arm.gripper_joints
                )
            else:
                self._cups[arm.name] = self.settings.suction_gripper(arm.name)

    def begin_step(self, number: int, step: PlanStep) -> None:  # noqa: ARG002
        """Begin a step.

        Args:
            number: number of the step in the executed plan, from 1.
            step: step of the plan.
        """
        self._step = number + self._first - 1
        self._segment = self._first_segment - 1 if number == 1 else 0
        self._last_segment = None

    def follow(self, motion: TimedMotion) -> None:
        """Add a motion to the goal, and send it if the arm is at rest at the end.

        Args:
            motion: next motion.

        Raises:
            ConfigurationError: if a sample exceeds a limit of the arm.
        """
        self._motions.append((motion, self._locate(motion.segment)))
        if not motion.is_stopping:
            return
        motions, self._motions = self._motions, []
        goal = self._join(motions)
        if goal.duration > 0.0:
            self._check_limits(goal, motion.arm)
            self._emit(goal)
        segment = motion.segment
        is_empty = segment.kind in _EMPTY_HAND or (
            segment.kind is SegmentKind.LINE and segment.held is None
        )
        if is_empty and motion.arm.gripper_joints:
            self._move_fingers(motion.arm, segment, segment.gripper)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Send the goal that closes a hand on an object, or switches its vacuum on.

        Args:
            arm: arm of the hand.
            segment: segment of the grasp.
        """
        if arm.gripper_joints:
            self._move_fingers(arm, segment, arm.gripper_closed, held=segment.held)
        else:
            self._switch_vacuum(arm, segment, is_on=True)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Send the goal that opens a hand, or switches its vacuum off.

        Args:
            arm: arm of the hand.
            segment: segment of the release.
        """
        if arm.gripper_joints:
            self._move_fingers(arm, segment, segment.gripper)
        else:
            self._switch_vacuum(arm, segment, is_on=False)

    def end_step(self, number: int, step: PlanStep) -> None:
        """End a step; a subclass may use it.

        Args:
            number: number of the step in the executed plan, from 1.
            step: step of the plan.
        """

    def finish(self) -> None:
        """End the plan; a subclass may use it."""

    def make_goals(self, numbers: Sequence[int], *, rate: float) -> list[Goal]:
        """Return the goals of consecutive steps of one arm, and send none; after :meth:`begin`.

        Args:
            numbers: numbers of the steps in the executed plan, from 1.
            rate: samples of each motion per second [Hz].

        Raises:
            ConfigurationError: if a sample exceeds a limit of the arm.
        """
        goals = self._collected = []
        try:
            execute_steps(self._plan, numbers, self, rate=rate)
        finally:
            self._collected = None
        return goals

    def _emit(self, goal: Goal) -> None:
        """Send a goal, or add it to those of :meth:`make_goals`."""
        if self._collected is None:
            self.send(goal)
        else:
            self._collected.append(goal)

    def _locate(self, segment: Segment) -> SegmentTime:
        """Return the place of a segment, whose calls come one after the other."""
        if segment is not self._last_segment:
            self._segment += 1
            self._last_segment = segment
        return SegmentTime(self._step, self._segment, segment.kind.value, 0.0)

    def _join(self, motions: list[tuple[TimedMotion, SegmentTime]]) -> TrajectoryGoal:
        """Return one goal of consecutive motions, scaled to the speed."""
        arm = motions[0][0].arm
        controller = self._arms[arm.name]
        names = self.settings.robot_names(arm.joints)
        # The joint of a drawer follows the hand, and is not commanded.
        columns = [names.index(joint) for joint in controller.joints]
        rows: list[tuple[_Array, ...]] = []
        segments, end = [], 0.0
        for motion, place in motions:
            timed = motion.timed
            skipped = 1 if rows else 0  # the last sample of a motion is the first of the next
            values = (timed.positions, timed.velocities, timed.accelerations)
            rows.append(
                (end + timed.times[skipped:], *(array[skipped:, columns] for array in values))
            )
            end += timed.duration
            segments.append(SegmentTime(place.step, place.segment, place.kind, end / self.speed))
        times, positions, velocities, accelerations = (
            np.concatenate(arrays) for arrays in zip(*rows, strict=True)
        )
        return TrajectoryGoal(
            arm.name,
            controller,
            tuple(arm.joints[column] for column in columns),
            times / self.speed,
            positions,
            velocities * self.speed,
            accelerations * self.speed**2,
            tuple(segments),
        )

    def _check_limits(self, goal: TrajectoryGoal, arm: Manipulator) -> None:
        """Check the samples of a goal.

        Raises:
            ConfigurationError: if a sample exceeds a limit of the arm.
        """
        scene = self._plan.scene
        order = [arm.joints.index(joint) for joint in goal.joints]
        indices = [scene.joint_names.index(joint) for joint in goal.joints]
        lower, upper = np.asarray(scene.joint_limits)[indices].T
        excess = np.maximum(lower - goal.positions, goal.positions - upper) / _LIMIT_DISTANCE
        speeds = np.abs(goal.velocities) / arm.velocity_limits(scene)[order] / _LIMIT_RATIO
        rates = np.abs(goal.accelerations) / arm.acceleration_limits(scene)[order] / _LIMIT_RATIO
        for quantity, ratio in (
            ("position", excess),
            ("velocity", speeds),
            ("acceleration", rates),
        ):
            row, column = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            if ratio[row, column] > 1.0:
                place, time = goal.locate(float(goal.times[row]))
                raise ConfigurationError(
                    f"step {place.step}, {place.kind} at {time:.2f} s: joint"
                    f" '{goal.joints[column]}' exceeds its {quantity} limit"
                )

    def _switch_vacuum(self, arm: Manipulator, segment: Segment, *, is_on: bool) -> None:
        """Send the switch of a vacuum."""
        place = self._locate(segment)
        self._emit(SuctionGoal(arm.name, self._cups[arm.name], place, is_on, segment.held))

    def _move_fingers(
        self,
        arm: Manipulator,
        segment: Segment,
        values: Mapping[str, float],
        *,
        held: str | None = None,
    ) -> None:
        """Send the goal of a hand, unless its fingers have these values by the plan."""
        planned = {joint: float(segment.gripper[joint]) for joint in segment.gripper}
        is_constant = all(
            abs(self._fingers[joint] - value) < _EQUAL_FINGERS for joint, value in planned.items()
        )
        place = self._locate(segment)
        if is_constant and held is None:
            return
        controller = self._hands.get(arm.name)
        if controller is None:
            controller = self.settings.gripper_controller(arm.name, arm.gripper_joints)
            self._hands[arm.name] = controller
        self._fingers.update(planned)
        chosen = {
            joint: float(values[joint])
            for joint in arm.gripper_joints
            if self.settings.names.get(joint, joint) in controller.joints
        }
        self._emit(
            GripperGoal(arm.name, controller, place, chosen, planned, held, float(arm.grip_force))
        )


class GoalList(GoalExecutor):
    """An executor that collects goals and sends none.

    Attributes:
        goals: goals in order.
    """

    def __init__(
        self,
        settings: ControllerTable,
        *,
        speed: float = 1.0,
        first: int = 1,
        first_segment: int = 1,
    ) -> None:
        super().__init__(settings, speed=speed, first=first, first_segment=first_segment)
        self.goals: list[Goal] = []

    def send(self, goal: Goal) -> None:
        """Add a goal to the list.

        Args:
            goal: next goal.
        """
        self.goals.append(goal)


def plan_part(plan: Plan, first: int, last: int) -> Plan:
    """Return the plan of some consecutive steps.

    Args:
        plan: whole plan.
        first: number of the first step, from 1.
        last: number of the last step.

    Raises:
        ConfigurationError: if the plan has no such steps.
    """
    count = len(plan.steps)
    if not 1 <= first <= last <= count:
        raise ConfigurationError(
            f"steps {first} to {last} are not in a plan of {count} step{'s' * (count != 1)}"
        )
    if (first, last) == (1, count):
        return plan
    scene, q = plan.scene, plan.q
    if first > 1:
        scene, q = plan.steps[first - 2].scene, plan.steps[first - 2].q
    return replace(plan, scene=scene, q=q, steps=plan.steps[first - 1 : last], starts=(), joined=())


def execute_with_pauses(
    plan: Plan,
    executor: GoalExecutor,
    *,
    rate: float,
    before_step: Callable[[int], bool] | None = None,
) -> int:
    """Execute a plan, with a rest and a call before each step if there is a function to call.

    Args:
        plan: plan to execute.
        executor: executor of the goals.
        rate: samples of each motion per second [Hz].
        before_step: function of the index of the next step, from 1. If it returns false, the
            execution ends.

    Returns:
        Number of executed steps.
    """
    count = len(plan.steps)
    if before_step is None:
        execute(plan, executor, rate=rate)
        return count
    executor.begin(plan)
    for number in range(1, count + 1):
        if not before_step(number):
            return number - 1
        execute_step(plan, number, executor, rate=rate)
    executor.finish()
    return count
