"""Scheduling of plans: independent steps of different arms overlap in time.

The scheduler is a prioritised coordination on timed paths. It adds the steps one by one in the
order of the plan, each at the earliest start that satisfies these conditions:

* The earlier steps of the same arm have ended.

* The earlier steps with which its order must not change have ended.

* From its start to the end of the schedule, its timed motion is free of collisions with all
  scheduled motions and with resting arms.

Each moment is checked in its scene version, with held objects attached to the hands and with a
clearance between the arms. The latest start of a step is the end of all earlier steps, as in the
plan. A schedule therefore always exists.

The steps between a grasp and a release of an arm form one group, which moves without a pause. If
the groups have no schedule, each step is a group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit.errors import ConfigurationError
from tmkit.pddl import parse_domain
from tmkit.pddl.validation import interference
from tmkit.plans.schedule import TICK, Schedule, Track, require_certain, set_starts
from tmkit.plans.values import Plan
from tmkit.robots.mechanisms import held_object
from tmkit.tamp.validation.schedule_check import ScheduleWorlds

CLEARANCE = 0.02
"""Default clearance between arms that move at the same time [m]."""

_DELAY_TICKS = 5
"""Step between the tried starts of a track [ticks]."""

_COARSE_PERIOD = 0.1
"""Sampling period of the first collision check of a motion, which finds most collisions [s]."""

_FINE_PERIOD = 0.02
"""Sampling period of the second collision check of a motion [s]."""


def schedule_plan(plan: Plan, *, clearance: float = CLEARANCE) -> Plan:
    """Return a plan with a schedule, in which independent steps of different arms overlap.

    Equal plans have equal schedules. O(steps * delays * configurations) collision checks.

    Args:
        plan: plan to schedule.
        clearance: clearance between arms that move at the same time [m].

    Raises:
        ConfigurationError: if the clearance is negative or not finite, the scene is uncertain, or
            the steps collide even one after the other.
    """
    check_argument(plan, Plan, "plan", function="schedule_plan", hint=plan_hint(plan))
    if not 0.0 <= clearance < math.inf:
        raise ConfigurationError(
            f"clearance must be a finite number of at least 0, not {clearance}"
        )
    schedule = shortest_schedule(plan, clearance)
    previous = {b: a for _, track in schedule.tracks for a, b in itertools.pairwise(track.numbers)}
    starts = [begin for begin, _ in schedule.step_times()]
    return set_starts(
        plan, starts, [previous.get(number + 1, 0) for number in range(len(plan.steps))]
    )


def shortest_schedule(plan: Plan, clearance: float = CLEARANCE) -> Schedule:
    """Return the schedule of :func:`schedule_plan`.

    Args:
        plan: plan to schedule.
        clearance: clearance between arms that move at the same time [m].
    """
    require_certain(plan)
    domain = parse_domain(plan.domain_pddl, source=f"domain '{plan.domain}'")
    scheduler = _Scheduler(plan, interference(domain, plan.actions), clearance)
    candidates = [scheduler.schedule(groups) for groups in _group_orders(plan, _group_steps(plan))]
    if all(candidate is None for candidate in candidates):
        candidates = [scheduler.schedule([[number] for number in range(1, len(plan.steps) + 1)])]
    schedules = [candidate for candidate in candidates if candidate is not None]
    if not schedules:
        raise ConfigurationError(
            "the steps of the plan collide even one after the other; validate it"
        )
    return min(schedules, key=lambda schedule: round(schedule.makespan, 6))


def _group_orders(plan: Plan, groups: list[list[int]]) -> Iterator[list[list[int]]]:
    """Yield groups of steps in the order of the plan, and in orders in which the arms take turns.

    In the further orders the k-th groups of all arms are adjacent, with the first or the last arm
    leading.

    Args:
        plan: plan to schedule.
        groups: step numbers of each group, from 1.
    """
    yield groups
    robot_names = [robot.name for robot in plan.robots]
    ranks: dict[str, int] = {}
    ranked_groups = []
    for group in groups:
        segments = (segment for number in group for segment in plan.steps[number - 1].segments)
        arms = sorted({segment.arm for segment in segments})
        rank = max((ranks.get(arm, 0) for arm in arms), default=0) + 1
        ranks.update(dict.fromkeys(arms, rank))
        arm_index = robot_names.index(arms[0]) if arms else 0
        ranked_groups.append((rank, arm_index, group))
    if len(ranks) < 2:
        return
    for lag in (0.5, -0.5):
        ordered = sorted(ranked_groups, key=lambda item: item[0] + lag * item[1])
        alternating = [group for *_, group in ordered]
        if alternating != groups:
            yield alternating


def _group_steps(plan: Plan) -> list[list[int]]:
    """Return the step numbers, from 1, grouped by the intervals in which an arm holds an object."""
    groups: list[list[int]] = []
    last_groups: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps, start=1):
        arms = {segment.arm for segment in step.segments}
        group: list[int] | None = None
        if len(arms) == 1:
            arm = next(iter(arms))
            last_group = last_groups.get(arm)
            if last_group and held_object(plan.steps[last_group[-1] - 1].scene, plan.arm(arm)):
                group = last_group
        if group is None:
            group = []
            groups.append(group)
        group.append(number)
        last_groups.update(dict.fromkeys(arms, group))
    return groups


class _Scheduler:
    """Prioritised scheduler, which adds tracks one by one.

    Args:
        plan: plan to schedule.
        predecessors: for each step, the indices of earlier steps that must end before it.
        clearance: clearance between arms that move at the same time [m].
    """

    def __init__(self, plan: Plan, predecessors: list[frozenset[int]], clearance: float) -> None:
        self.plan, self.predecessors, self.clearance = plan, predecessors, clearance
        self.worlds = ScheduleWorlds(plan)
        self.tracks: dict[tuple[int, ...], Track] = {}

    def schedule(self, groups: list[list[int]]) -> Schedule | None:
        """Return the schedule of groups of steps in the given order, or None.

        A group whose start is delayed is also split into single steps; the version that ends first
        is selected.
        """
        schedule = Schedule(self.plan, ())
        for numbers in groups:
            candidates = [self._add_groups(schedule, [numbers])]
            if len(numbers) > 1 and self._is_delayed(schedule, candidates[0]):
                singles = [[number] for number in numbers]
                candidates.append(self._add_groups(schedule, singles))
            extended = [candidate for candidate in candidates if candidate is not None]
            if not extended:
                return None
            schedule = min(extended, key=lambda s: round(s.ends()[numbers[-1]], 6))
        return schedule

    def _is_delayed(self, schedule: Schedule, extended: Schedule | None) -> bool:
        """Return whether the last track of an extended schedule must wait for free space."""
        if extended is None:
            return True
        start, track = extended.tracks[-1]
        return start > self._earliest_start(schedule, track) + TICK

    def _add_groups(self, schedule: Schedule, groups: list[list[int]]) -> Schedule | None:
        """Return a schedule with one more track for each group, or None if one has no start."""
        for numbers in groups:
            key = tuple(numbers)
            track = self.tracks[key] = self.tracks.get(key) or Track(self.plan, key)
            if math.isinf(self._earliest_start(schedule, track)):
                return None
            start = self._find_start(schedule, track)
            if start is None:
                return None
            schedule = Schedule(self.plan, (*schedule.tracks, (start, track)))
        return schedule

    def _find_start(self, schedule: Schedule, track: Track) -> float | None:
        """Return the earliest collision-free start of a track [s], or None."""
        first = math.ceil(self._earliest_start(schedule, track) / TICK - 1e-6)
        last = max(first, math.ceil(schedule.makespan / TICK - 1e-6))
        for tick in (*range(first, last, _DELAY_TICKS), last):
            candidate = Schedule(self.plan, (*schedule.tracks, (tick * TICK, track)))
            clearance = self.clearance if tick < last else 0.0
            if self._is_free(candidate, tick * TICK, track, clearance):
                return float(tick * TICK)
        return None

    def _earliest_start(self, schedule: Schedule, track: Track) -> float:
        """Return the earliest start of a track by its arms and its predecessors [s].

        The result is infinite if a predecessor is not scheduled yet.
        """
        ends = schedule.ends()
        predecessor_bounds = [
            ends.get(index + 1, math.inf) - begin
            for number, begin in zip(track.numbers, track.begins, strict=True)
            for index in self.predecessors[number - 1]
            if index + 1 not in track.numbers
        ]
        arm_bounds = [
            start + scheduled.duration
            for start, scheduled in schedule.tracks
            if scheduled.arms & track.arms
        ]
        return max([0.0, *predecessor_bounds, *arm_bounds])

    def _is_free(self, schedule: Schedule, start: float, track: Track, clearance: float) -> bool:
        """Return whether a schedule is free of collisions from the start of a track to its end.

        Args:
            schedule: schedule that contains the track.
            start: start of the track [s].
            track: motion of a group of steps.
            clearance: clearance between moving arms [m].
        """
        if not track.arms:
            return True
        moments = list(schedule.moments(start))
        for period in (_COARSE_PERIOD, _FINE_PERIOD):
            for moment in moments:
                count = max(2, math.ceil((moment.end - moment.begin) / period) + 1)
                q = schedule.q(np.linspace(moment.begin, moment.end, count))
                if self.worlds.hits(moment, q, clearance):
                    return False
        return all(self.worlds.fault(schedule, moment) is None for moment in moments)
