"""Goals of several arms that act at the same time, by a schedule.

A goal of a schedule begins when its arm is at rest and the other arms have reached its time. The
time of an arm is its progress on its trajectory, by its joint states. Clocks are not compared, so
slow simulations and controllers with a speed scaling are executed too.
::

    arm A   |== goal ==|hand|== goal ==|            measured progress of A:  5.2 s
    arm B   |====== goal ======|hand|== goal ==|    measured progress of B:  5.1 s

Invariants: goals begin in the order of the schedule, each after all goals that end before it. Arms
that move are never further apart in time than the tolerance, up to which the schedule is free of
collisions; otherwise all are stopped.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.plans.execution_report import ExecutionStatus
from tmkit.plans.schedule import Phase, Schedule
from tmkit.plans.values import SegmentKind
from tmkit.tamp.validation.schedule_check import delay_fault
from tmkit.world.execution.goal_run import FailedGoalError, GoalRun
from tmkit.world.execution.goals import Goal, SegmentTime, TrajectoryGoal

_CHECK_PERIOD = 0.005
"""Time between two checks of the goals [s]."""

_EQUAL_TIMES = 1e-6
"""Difference of times of a schedule that count as equal [s]."""

_TURN = 2.0 * math.pi
"""Whole turn of a joint [rad]."""

_SEARCH_SECONDS = 0.5
"""Longest part of a trajectory in which the next progress is searched [s]."""


@dataclass(frozen=True, eq=False)
class ScheduledGoal:
    """Goal with its times in a schedule.

    Attributes:
        goal: goal of an arm or a hand.
        track: index of the track of the schedule.
        begin: planned start [s].
        end: planned end [s].
    """

    goal: Goal
    track: int
    begin: float
    end: float


def require_free_delays(schedule: Schedule, tolerance: float) -> None:
    """Check that a schedule is free of collisions if arms are late.

    Args:
        schedule: schedule to execute.
        tolerance: largest time by which an arm is behind another [s].

    Raises:
        ConfigurationError: if it is not.
    """
    if (fault := delay_fault(schedule, tolerance)) is not None:
        raise ConfigurationError(
            f"the arms cannot act at the same time: {fault}, and the schedule_tolerance is"
            f" {tolerance:g} s; execute one step after the other, or plan with a larger clearance"
        )


def place_goals(
    schedule: Schedule, goals_of: Callable[[Sequence[int]], Sequence[Goal]], *, first: int = 1
) -> list[ScheduledGoal]:
    """Return the goals of a schedule in the order of their starts.

    Args:
        schedule: schedule of a plan.
        goals_of: function of the numbers of the steps of a track that returns its goals.
        first: number of the first step of the plan in the goals.
    """
    entries: list[ScheduledGoal] = []
    order = sorted(range(len(schedule.tracks)), key=lambda index: schedule.tracks[index][0])
    for index in order:
        start, track = schedule.tracks[index]
        phases: dict[tuple[int, int], list[Phase]] = {}
        for phase in track.phases:
            key = (phase.step + first - 1, phase.index + 1)
            phases.setdefault(key, []).append(phase)
        for goal in goals_of(track.numbers):
            if isinstance(goal, TrajectoryGoal):
                places = goal.segments[0], goal.segments[-1]
                parts = [phases[place.step, place.segment][0] for place in places]
                begin, end = parts[0].begin, parts[1].end
            else:
                phase = phases[goal.place.step, goal.place.segment][-1]
                # The schedule has no time for the fingers of an empty hand.
                is_scheduled = phase.segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
                begin, end = phase.begin if is_scheduled else phase.end, phase.end
            entries.append(ScheduledGoal(goal, index, start + begin, start + end))
    return sorted(entries, key=lambda entry: entry.begin)


class ScheduleRun(GoalRun):
    """Execution of the goals of a schedule, which is stopped as a whole.

    Args:
        entries: goals in the order of their starts.
        start_run: function of a goal and an event that cancels it, which returns its execution.
        positions: function of joint names that returns their measured values.
        speed: speed relative to the plan.
        tolerance: largest time by which an arm is behind another [s].
        stop: event that stops all arms.
    """

    def __init__(
        self,
        entries: Sequence[ScheduledGoal],
        start_run: Callable[[Goal, threading.Event], GoalRun],
        positions: Callable[[Sequence[str]], NDArray[np.float64]],
        *,
        speed: float,
        tolerance: float,
        stop: threading.Event,
    ) -> None:
        super().__init__()
        self._failure: FailedGoalError | None = None
        self._waiting = list(entries)
        self._active: list[_ActiveGoal] = []
        self._start_run, self._positions = start_run, positions
        self._speed, self._tolerance, self._stop = speed, tolerance, stop
        self._halt = threading.Event()
        self._failed = entries[-1]
        self._place = _start_of(entries[-1].goal), 0.0
        self._interrupted: list[int] = []

    def place(self) -> tuple[SegmentTime, float]:
        """Return the segment of the failure, and the time since its start [s]."""
        return self._place

    def first_open_step(self) -> int:
        """Return the number of the first step that is not complete, after a failure."""
        waiting = [_start_of(entry.goal).step for entry in self._waiting]
        return min([self._place[0].step, *self._interrupted, *waiting])

    def execute(self) -> None:
        """Execute all goals.

        Raises:
            FailedGoalError: if one fails, or an arm is late. All arms were stopped.
        """
        try:
            while self._active or (self._waiting and not self._halt.is_set()):
                self._remove_ended()
                if not self._halt.is_set():
                    self._check_stop()
                    self._start_due()
                    self._check_times()
                sleep(_CHECK_PERIOD)
        finally:
            self._halt.set()
            for active in self._active:
                active.run.ended.wait()
        if self._failure is not None:
            raise self._failure

    def _remove_ended(self) -> None:
        """Remove goals that have ended; the first failure halts the others.

        Raises:
            Exception: if a goal ended with an error that is not a failure of the robot.
        """
        for active in [active for active in self._active if active.run.ended.is_set()]:
            self._active.remove(active)
            run = active.run
            if run.error is not None:
                raise run.error
            if run.fault is None:
                continue
            self._interrupted.append(run.place()[0].step)
            self._fail(run.fault, run.reason, active.entry)
            if active.entry is self._failed:
                self._place = run.place()

    def _fail(self, fault: ExecutionStatus, reason: str, entry: ScheduledGoal) -> None:
        """Store the first failure and halt all goals."""
        if self._failure is not None:
            return
        self._failure, self._failed = FailedGoalError(fault, reason), entry
        self._place = _start_of(entry.goal), 0.0
        self._halt.set()

    def _check_stop(self) -> None:
        """Halt all goals after a stop."""
        if self._stop.is_set() and (self._active or self._waiting):
            entry = self._active[0].entry if self._active else self._waiting[0]
            self._fail(ExecutionStatus.STOPPED, "stopped", entry)

    def _start_due(self) -> None:
        """Start the goals whose time has come, in order."""
        while self._waiting and not self._halt.is_set() and self._is_due(self._waiting[0]):
            entry = self._waiting.pop(0)
            run = self._start_run(entry.goal, self._halt)
            self._active.append(_ActiveGoal(entry, run))
            threading.Thread(target=run.perform, name="tmkit_goal").start()

    def _is_due(self, entry: ScheduledGoal) -> bool:
        """Return whether the previous goals have ended and moving arms are at the time of one."""
        return all(
            active.entry.track != entry.track
            and active.entry.end > entry.begin + _EQUAL_TIMES
            and (not active.is_moving or active.time >= entry.begin - _EQUAL_TIMES)
            for active in self._active
        )

    def _check_times(self) -> None:
        """Update the progress of all arms, and fail if one is too far behind another."""
        for active in self._active:
            active.update(self._positions, self._speed)
        moving = [active for active in self._active if active.is_moving]
        if not moving:
            return
        leader = max(moving, key=lambda active: active.time)
        last = min(moving, key=lambda active: active.time)
        late, entry = leader.time - last.time, last.entry
        if self._waiting and leader.time - self._waiting[0].begin > late:
            entry = self._waiting[0]
            late = leader.time - entry.begin
            previous = [active for active in self._active if active.entry.track == entry.track]
            entry = previous[0].entry if previous else entry
        if late > self._tolerance:
            self._fail(
                ExecutionStatus.DEVIATION,
                f"arm '{entry.goal.arm}' is {late:.2f} s behind arm '{leader.entry.goal.arm}' in"
                f" the schedule (tolerance {self._tolerance:g} s); a lower speed gives hands and"
                " controllers more time",
                entry,
            )


@dataclass(eq=False)
class _ActiveGoal:
    """Goal that is executed.

    Attributes:
        entry: goal with its times.
        run: its execution.
        row: row of the trajectory that is nearest to the measured joints.
        time: progress in the schedule [s].
    """

    entry: ScheduledGoal
    run: GoalRun
    row: int = 0

    def __post_init__(self) -> None:
        self.time = self.entry.begin

    @property
    def is_moving(self) -> bool:
        """True if an arm is on its way."""
        goal = self.entry.goal
        return isinstance(goal, TrajectoryGoal) and self.row < len(goal.times) - 1

    def update(
        self, positions: Callable[[Sequence[str]], NDArray[np.float64]], speed: float
    ) -> None:
        """Update the progress of an arm, which does not go back."""
        goal = self.entry.goal
        if not isinstance(goal, TrajectoryGoal):
            return
        limit = goal.times[self.row] + _SEARCH_SECONDS
        last = int(np.searchsorted(goal.times, limit, side="right"))
        offsets = goal.positions[self.row : last] - positions(goal.joints)
        # Whole turns of a continuous joint do not count.
        offsets -= _TURN * np.round(offsets / _TURN)
        self.row += int(np.abs(offsets).max(axis=1).argmin())
        self.time = self.entry.begin + float(goal.times[self.row]) * speed


def _start_of(goal: Goal) -> SegmentTime:
    """Return the first segment of a goal."""
    return goal.segments[0] if isinstance(goal, TrajectoryGoal) else goal.place
