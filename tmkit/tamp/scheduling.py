"""Arms at once: the steps of a plan as a schedule in which independent steps of different arms overlap.

Prioritised coordination on timed paths: the steps are placed one after the other in the order of
the plan, each as early as possible. A step waits for those before it with which it must not change
places, and for the one before it of the same arm. It waits until its timed motion is free of
everything that is already placed, at all times until the end, resting arms included. The motion is
checked in the scene version of each moment, with what the hands hold attached, and with a clearance
between the arms. At the latest it starts when all before it have ended, which is what the plan was
made for; so there always is a schedule.

Steps between which an arm holds something are one motion; where that leads to no schedule, each
step is its own.
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
from tmkit.plans.schedule import TICK, Schedule, Track, require_certain, with_starts
from tmkit.plans.values import Plan
from tmkit.robots.mechanisms import held_by
from tmkit.tamp.validation.schedule_check import ScheduleWorlds

CLEARANCE = 0.02
"""Metres that a schedule keeps between arms that move at once."""

_DELAY = 5  # ticks by which a step is tried later
_COARSE, _FINE = 0.1, 0.02  # seconds between configurations at which is looked first, and then


def schedule_plan(plan: Plan, *, clearance: float = CLEARANCE) -> Plan:
    """Return a plan with a schedule, in which independent steps of different arms overlap.

    The same plan gives the same schedule. O(steps * delays * configurations) collision checks.

    Args:
        plan: the plan.
        clearance: metres that arms which move at once keep from each other.

    Raises:
        ConfigurationError: a clearance that is negative, or a plan in an uncertain scene.
    """
    check_argument(plan, Plan, "plan", function="schedule_plan", hint=plan_hint(plan))
    if not 0.0 <= clearance < math.inf:
        raise ConfigurationError(
            f"clearance must be a finite number of at least 0, not {clearance}"
        )
    best = shortest_schedule(plan, clearance)
    previous = {b: a for _, track in best.tracks for a, b in itertools.pairwise(track.numbers)}
    starts = [begin for begin, _ in best.step_times()]
    return with_starts(
        plan, starts, [previous.get(number + 1, 0) for number in range(len(plan.steps))]
    )


def shortest_schedule(plan: Plan, clearance: float = CLEARANCE) -> Schedule:
    """Return the schedule of :func:`schedule_plan`."""
    require_certain(plan)
    before = interference(
        parse_domain(plan.domain_pddl, source=f"domain '{plan.domain}'"), plan.actions
    )
    singles = [[number] for number in range(1, len(plan.steps) + 1)]
    placement = _Placement(plan, before, clearance)
    found = [
        placed for placed in map(placement.run, _orders(plan, _joined(plan))) if placed is not None
    ]
    found = found or [placed for placed in [placement.run(singles)] if placed is not None]
    if not found:
        raise ConfigurationError(
            "the steps of the plan collide even one after the other; validate it"
        )
    return min(found, key=lambda schedule: round(schedule.makespan, 6))


def _orders(plan: Plan, groups: list[list[int]]) -> Iterator[list[list[int]]]:
    """Yield groups in the order of the plan, and with those of the arms by turns, either first."""
    yield groups
    ranks: dict[str, int] = {}
    keyed = []
    for group in groups:
        arms = sorted(
            {segment.arm for number in group for segment in plan.steps[number - 1].segments}
        )
        rank = max((ranks.get(arm, 0) for arm in arms), default=0) + 1
        ranks.update(dict.fromkeys(arms, rank))
        keyed.append(
            (rank, [robot.name for robot in plan.robots].index(arms[0]) if arms else 0, group)
        )
    for lag in (0.5, -0.5) if len(ranks) > 1 else ():
        turns = [group for *_, group in sorted(keyed, key=lambda item: item[0] + lag * item[1])]
        if turns != groups:
            yield turns


def _joined(plan: Plan) -> list[list[int]]:
    """Return the steps in groups between which an arm holds something."""
    groups: list[list[int]] = []
    last: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps, start=1):
        arms = {segment.arm for segment in step.segments}
        arm = next(iter(arms)) if len(arms) == 1 else None
        group = last.get(arm) if arm is not None else None
        if (
            group is not None
            and arm is not None
            and held_by(plan.steps[group[-1] - 1].scene, plan.arm(arm))
        ):
            group.append(number)
        else:
            groups.append([number])
        last.update(
            dict.fromkeys(arms, groups[-1] if group is None or number not in group else group)
        )
    return groups


class _Placement:
    """Tracks that are placed one after the other."""

    def __init__(self, plan: Plan, before: list[frozenset[int]], clearance: float) -> None:
        self.plan, self.before, self.clearance = plan, before, clearance
        self.worlds = ScheduleWorlds(plan)
        self.tracks: dict[tuple[int, ...], Track] = {}

    def run(self, groups: list[list[int]]) -> Schedule | None:
        """Return the schedule; None where there is none for these groups."""
        placed = Schedule(self.plan, ())
        for numbers in groups:
            whole = self._with(placed, [numbers])
            is_delayed = (
                whole is None
                or whole.tracks[-1][0] > self._earliest(placed, whole.tracks[-1][1]) + TICK
            )
            apart = (
                self._with(placed, [[number] for number in numbers])
                if len(numbers) > 1 and is_delayed
                else None
            )
            ends = [
                (round(one.ends()[numbers[-1]], 6), one)
                for one in (whole, apart)
                if one is not None
            ]
            if not ends:
                return None
            placed = min(ends, key=lambda item: item[0])[1]
        return placed

    def _with(self, placed: Schedule, groups: list[list[int]]) -> Schedule | None:
        """Return a schedule with more tracks, each as early as possible; None where one has no place."""
        for numbers in groups:
            key = tuple(numbers)
            track = self.tracks[key] = self.tracks.get(key) or Track(self.plan, key)
            if (
                math.isinf(self._earliest(placed, track))
                or (start := self._start(placed, track)) is None
            ):
                return None
            placed = Schedule(self.plan, (*placed.tracks, (start, track)))
        return placed

    def _start(self, placed: Schedule, track: Track) -> float | None:
        """Return the earliest start of a track, or None."""
        tick = math.ceil(self._earliest(placed, track) / TICK - 1e-6)
        last = max(tick, math.ceil(placed.makespan / TICK - 1e-6))
        for start in (*range(tick, last, _DELAY), last):
            tried = Schedule(self.plan, (*placed.tracks, (start * TICK, track)))
            if self._is_free(tried, start * TICK, track, self.clearance if start < last else 0.0):
                return float(start * TICK)
        return None

    def _earliest(self, placed: Schedule, track: Track) -> float:
        """Return when a track may start by its arms and by the steps before it; infinity if one has no place yet."""
        ends = placed.ends()
        waits = [
            ends.get(index + 1, math.inf) - begin
            for number, begin in zip(track.numbers, track.begins, strict=True)
            for index in self.before[number - 1]
            if index + 1 not in track.numbers
        ]
        return max(
            [
                0.0,
                *waits,
                *(s + other.duration for s, other in placed.tracks if other.arms & track.arms),
            ]
        )

    def _is_free(self, tried: Schedule, start: float, track: Track, clearance: float) -> bool:
        """Return whether everything is free from the start of a track on."""
        if not track.arms:
            return True
        moments = list(tried.moments(start))
        for period in (_COARSE, _FINE):
            for moment in moments:
                count = max(2, math.ceil((moment.end - moment.begin) / period) + 1)
                q = tried.q(np.linspace(moment.begin, moment.end, count))
                if self.worlds.hits(moment, q, clearance):
                    return False
        return all(self.worlds.fault(tried, moment) is None for moment in moments)
