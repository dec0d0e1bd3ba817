"""Goals of arms that act at the same time: their order, times and stops; without ROS."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples

from tmkit.plans import ExecutionStatus
from tmkit.world.execution import parallel
from tmkit.world.execution.controllers import Controller
from tmkit.world.execution.goal_run import GoalRun
from tmkit.world.execution.goals import Goal, GripperGoal, SegmentTime, TrajectoryGoal
from tmkit.world.execution.parallel import ScheduledGoal, ScheduleRun

TICK = 0.01
"""Time between two checks in the simulated time [s]."""


class _Run(GoalRun):
    """Execution of a goal in simulated time, slower than planned by a factor."""

    def __init__(self, goal: Goal, halt: threading.Event, duration: float, slowness: float) -> None:
        super().__init__()
        self.goal, self.halt = goal, halt
        self.duration, self.slowness = duration, slowness
        self.elapsed = 0.0

    def perform(self) -> None:
        """Do nothing: the time of the world passes in :meth:`advance`."""

    def place(self) -> tuple[SegmentTime, float]:
        """Return the segment of the goal."""
        if isinstance(self.goal, TrajectoryGoal):
            return self.goal.segments[0], self.elapsed
        return self.goal.place, self.elapsed

    def advance(self) -> None:
        """Advance by a tick."""
        if self.halt.is_set():
            self.fault = ExecutionStatus.STOPPED
            self.ended.set()
        self.elapsed += TICK / self.slowness
        if self.elapsed >= self.duration:
            self.ended.set()


class _World:
    """Arms whose joint is their progress, in simulated time."""

    def __init__(self, slowness: dict[int, float], entries: Sequence[ScheduledGoal]) -> None:
        self.runs: list[_Run] = []
        self.slowness, self.entries = slowness, list(entries)
        self.values: dict[str, float] = {}
        self.log: list[tuple[str, int]] = []
        self.gaps: list[float] = []
        self.turns = 0
        self.stop_at: float | None = None
        self.stop = threading.Event()
        self.time = 0.0

    def start(self, goal: Goal, halt: threading.Event) -> _Run:
        """Start a goal."""
        index = next(i for i, entry in enumerate(self.entries) if entry.goal is goal)
        entry = self.entries[index]
        run = _Run(goal, halt, entry.end - entry.begin, self.slowness.get(index, 1.0))
        self.runs.append(run)
        self.log.append(("begin", index))
        return run

    def sleep(self, _: float) -> None:
        """Advance all goals by a tick."""
        self.time += TICK
        if self.stop_at is not None and self.time > self.stop_at:
            self.stop.set()
        for run in [run for run in self.runs if not run.ended.is_set()]:
            run.advance()
            index = next(i for i, entry in enumerate(self.entries) if entry.goal is run.goal)
            if run.ended.is_set():
                self.log.append(("end" if run.fault is None else "cancel", index))
            if isinstance(run.goal, TrajectoryGoal):
                end = self.entries[index].end
                self.values[run.goal.arm] = min(self.entries[index].begin + run.elapsed, end)
        moving = [
            self.values[run.goal.arm]
            for run in self.runs
            if not run.ended.is_set() and isinstance(run.goal, TrajectoryGoal)
        ]
        if len(moving) > 1:
            self.gaps.append(max(moving) - min(moving))

    def positions(self, joints: Sequence[str]) -> NDArray[np.float64]:
        """Return the progress of an arm, which is the value of its joint, after some turns."""
        return np.array([self.values[joint] + self.turns * 2.0 * np.pi for joint in joints])


def _entries(durations: Sequence[Sequence[float]]) -> list[ScheduledGoal]:
    """Return the goals of one track for each arm: a motion, a hand, a motion and so on."""
    entries = []
    for track, times in enumerate(durations):
        arm, begin = f"arm{track}", 0.0
        for index, duration in enumerate(times):
            end = begin + duration
            place = SegmentTime(2 * track + index // 2 + 1, index % 2 + 1, "transit", 0.0)
            goal: Goal
            if index % 2:
                hand = Controller("hand", "GripperCommand", "/hand", ("finger",))
                goal = GripperGoal(arm, hand, place, {}, {}, None, 0.0)
            else:
                rows = np.linspace(0.0, duration, max(2, round(duration / TICK) + 1))
                values = (begin + rows)[:, None]
                still = np.zeros_like(values)
                controller = Controller(arm, "FollowJointTrajectory", f"/{arm}", (arm,))
                goal = TrajectoryGoal(arm, controller, (arm,), rows, values, still, still, (place,))
            entries.append(ScheduledGoal(goal, track, begin, end))
            begin = end
    return sorted(entries, key=lambda entry: entry.begin)


def _execute(
    monkeypatch: pytest.MonkeyPatch,
    entries: list[ScheduledGoal],
    slowness: dict[int, float],
    *,
    tolerance: float,
    stop_at: float | None = None,
    turns: int = 0,
) -> tuple[ScheduleRun, _World]:
    world = _World(slowness, entries)
    world.stop_at, world.turns = stop_at, turns
    world.values = {f"arm{track}": 0.0 for track in range(3)}
    run = ScheduleRun(
        entries, world.start, world.positions, speed=1.0, tolerance=tolerance, stop=world.stop
    )
    with monkeypatch.context() as patch:
        patch.setattr(parallel, "sleep", world.sleep)
        run.perform()
    assert run.ended.is_set()
    assert run.error is None
    assert all(active.ended.is_set() for active in world.runs)
    return run, world


DURATIONS = st.lists(
    st.lists(st.integers(5, 40).map(lambda n: n * TICK), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
)


@settings(max_examples=scaled_examples(1.0))
@given(durations=DURATIONS, data=st.data(), tolerance=st.sampled_from([0.05, 0.1, 0.3]))
def test_arms_keep_the_order_and_times_of_the_schedule(
    durations: list[list[float]], data: Any, tolerance: float
) -> None:
    """A goal begins after all that end before it; moving arms are never further apart."""
    entries = _entries(durations)
    slowness = {
        index: data.draw(st.sampled_from([0.5, 1.0, 1.2, 2.0, 6.0]))
        for index in range(len(entries))
    }
    run, world = _execute(pytest.MonkeyPatch(), entries, slowness, tolerance=tolerance)
    begun = [index for kind, index in world.log if kind == "begin"]
    assert begun == list(range(len(begun)))
    complete: set[int] = set()
    for kind, index in world.log:
        if kind == "begin":
            before = {i for i, e in enumerate(entries) if e.end <= entries[index].begin + 1e-9}
            before |= {i for i in range(index) if entries[i].track == entries[index].track}
            assert before <= complete
        elif kind == "end":
            complete.add(index)
    # An arm of half the duration gains a tick between two checks.
    assert max(world.gaps, default=0.0) <= tolerance + 4 * TICK
    if run.fault is None:
        assert complete == set(range(len(entries)))
    else:
        assert run.fault is ExecutionStatus.DEVIATION
        assert "in the schedule" in run.reason
        assert run.first_open_step() <= run.place()[0].step


@settings(max_examples=scaled_examples(0.5))
@given(durations=DURATIONS)
def test_a_schedule_on_time_is_executed(durations: list[list[float]]) -> None:
    """Without delays no tolerance is needed beyond the ticks of the checks."""
    entries = _entries(durations)
    run, world = _execute(pytest.MonkeyPatch(), entries, {}, tolerance=0.08)
    assert run.fault is None, run.reason
    assert sum(kind == "end" for kind, _ in world.log) == len(entries)


def test_a_stop_cancels_all_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    """No goal begins after a stop, and the report is of a goal that was cancelled."""
    entries = _entries([[0.5, 0.2, 0.5], [0.6, 0.2, 0.5]])
    run, world = _execute(monkeypatch, entries, {}, tolerance=0.2, stop_at=0.3)
    assert run.fault is ExecutionStatus.STOPPED
    assert [kind for kind, _ in world.log] == ["begin", "begin", "cancel", "cancel"]
    assert run.place()[0].step in (1, 3)
    assert run.first_open_step() == 1


def test_a_slow_simulation_is_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress of the arms counts, not a clock or whole turns."""
    entries = _entries([[0.5, 0.2, 0.5], [0.6, 0.2, 0.5]])
    slowness = dict.fromkeys(range(len(entries)), 5.0)
    run, world = _execute(monkeypatch, entries, slowness, tolerance=0.1, turns=-2)
    assert run.fault is None, run.reason
    assert world.time > 5.0
