"""Validation of schedules: order of steps, and simultaneous motion of all arms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.motion import CollisionRules, CollisionWorld, StartTolerances, recheck_path
from tmkit.motion.collision_rules import TOUCH_TOLERANCE, AllowedContact
from tmkit.pddl import Domain
from tmkit.pddl.validation import interference
from tmkit.plans.schedule import TICK, Moment, Schedule
from tmkit.plans.values import Configuration, Plan, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.tamp.validation.segment_rules import handling_supports, segment_allowed_contacts

_END_TOLERANCE = 1e-6
"""Largest deviation of a joint at the end [rad or m]."""

_SAMPLING_PERIOD = 0.01
"""Time between configurations, which are interpolated at the resolution of a validation [s]."""

_DELAY_STEP = 0.05
"""Step between the delays that are checked [s]."""

_TIME_TOLERANCE = 1e-6
"""Difference of times that count as equal [s]."""

_MAX_COLLISIONS = 3
"""Number of collisions in the faults."""


def schedule_faults(plan: Plan, domain: Domain) -> tuple[list[str], int]:
    """Return the faults of the schedule of a plan, and the number of checked configurations.

    The checks cover the order of interfering steps, and simultaneous steps of one arm. The timed
    motion of all arms is checked in the scene of each moment, at the resolution of a validation.
    """
    schedule, worlds = Schedule.of(plan), ScheduleWorlds(plan)
    times, steps, faults = schedule.step_times(), plan.steps, list[str]()
    before = interference(domain, plan.actions)
    arms = [{segment.arm for segment in step.segments} for step in steps]
    for j, (begin, _) in enumerate(times):
        if abs(begin - plan.starts[j]) > TICK / 2:
            faults.append(f"step {j + 1} starts at {begin:.2f} s, not {plan.starts[j]:.2f}")
        for i in range(j):
            if (i in before[j] or arms[i] & arms[j]) and times[i][1] > begin + TICK / 2:
                reason = (
                    "both move one arm" if arms[i] & arms[j] else "one changes what the other needs"
                )
                faults.append(f"step {j + 1} starts before step {i + 1} has ended, but {reason}")
    scene = plan.scene
    for change in schedule.changes():
        scene = schedule.apply_change(scene, *change[1:])
    end_q = schedule.q(np.array([math.inf]))[0]
    if scene != plan.final_scene or np.max(np.abs(end_q - plan.final_q)) > _END_TOLERANCE:
        faults.append("its end differs from the end of the plan")
    if not faults:
        results = (worlds.fault(schedule, moment) for moment in schedule.moments())
        collisions = (fault for fault in results if fault is not None)
        faults += itertools.islice(collisions, _MAX_COLLISIONS)
    return faults, worlds.checks


def delay_fault(schedule: Schedule, delay: float) -> str | None:
    """Return a collision of a schedule with a track that is late, or None.

    Each track in turn is late by each time up to the delay. Tracks that begin after its end wait
    for it; others do not. Configurations are checked each 0.02 s.

    Args:
        schedule: schedule whose motions are valid on time.
        delay: largest time by which a track is late [s].
    """
    worlds = ScheduleWorlds(schedule.plan)
    delays = np.linspace(0.0, delay, math.ceil(delay / _DELAY_STEP - _TIME_TOLERANCE) + 1)[1:]
    for index, late in itertools.product(range(len(schedule.tracks)), delays.tolist()):
        start, track = schedule.tracks[index]
        delayed = _delay_track(schedule, index, late)
        for moment in delayed.moments(start, start + late + track.duration):
            count = max(2, math.ceil((moment.end - moment.begin) / TICK) + 1)
            times = np.linspace(moment.begin, moment.end, count)
            if worlds.hits(moment, delayed.q(times), 0.0):
                arms = " and ".join(f"'{arm}'" for arm in sorted(track.arms))
                return f"arm {arms} collides at {moment.begin:.2f} s if it is {late:.2f} s late"
    return None


def _delay_track(schedule: Schedule, index: int, delay: float) -> Schedule:
    """Return a schedule with a late track; tracks that begin after its end wait for it.

    Args:
        schedule: schedule.
        index: index of the track.
        delay: time by which it is late [s].
    """
    tracks = schedule.tracks
    starts: dict[int, float] = {}
    for number in sorted(range(len(tracks)), key=lambda number: tracks[number][0]):
        start, _ = tracks[number]
        ends = (
            starts[other] + tracks[other][1].duration
            for other in starts
            if tracks[other][0] + tracks[other][1].duration <= start + _TIME_TOLERANCE
        )
        starts[number] = max([start + delay * (number == index), *ends])
    moved = tuple((starts[number], track) for number, (_, track) in enumerate(tracks))
    return Schedule(schedule.plan, moved)


class ScheduleWorlds:
    """Collision worlds of the moments of schedules of a plan, by scene, segments and clearance.

    Args:
        plan: plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        first, *other_arms = plan.robots
        self.rules = CollisionRules.from_start(
            first,
            plan.scene,
            q=plan.q,
            other_arms=tuple(other_arms),
            tolerances=StartTolerances(penetration=math.inf, sinking=math.inf),
        )
        self._worlds: dict[tuple[object, ...], CollisionWorld] = {}
        self._source: CollisionWorld | None = None
        self.checks = 0

    def hits(self, moment: Moment, q: Configuration, clearance: float) -> bool:
        """Return whether (m, n_joints) configurations collide or violate the clearance of arms."""
        return any(self._world(moment, clearance, q[0]).contacts_batch(q))

    def fault(self, schedule: Schedule, moment: Moment) -> str | None:
        """Return the first fault of a moment at the resolution of a validation, or None."""
        count = max(2, math.ceil((moment.end - moment.begin) / _SAMPLING_PERIOD) + 1)
        times = np.linspace(moment.begin, moment.end, count)
        q = schedule.q(times)
        arms = [self.plan.arm(phase.segment.arm) for phase in moment.phases] or [self.plan.robot]
        world = self._world(moment, 0.0, q[0])
        for arm in arms:
            result = recheck_path(
                world, q, resolution=CHECK_RESOLUTION, tool_frame=arm.tool, tool_travel=CHECK_TRAVEL
            )
            self.checks += result.checks
            if result.is_ok:
                continue
            moment_time, fault = times[0], str(result.status.value)
            if result.q is not None:
                moment_time = times[np.argmin(np.max(np.abs(q - result.q), axis=1))]
                if contacts := world.contacts(result.q):
                    fault = f"'{contacts[0].frame_a}' and '{contacts[0].frame_b}' collide"
            return f"at {moment_time:.2f} s: {fault}"
        return None

    def _world(self, moment: Moment, clearance: float, q: Configuration) -> CollisionWorld:
        """Return the collision world of a moment, in which a pushed object moves with the hand."""
        scene, phases = moment.scene, moment.phases
        key = (scene.fingerprint, clearance, *((p.step, p.index) for p in phases))
        if key in self._worlds:
            return self._worlds[key]
        for phase in phases:
            if phase.segment.kind is SegmentKind.PUSH and phase.segment.held is not None:
                scene = scene.reparent(
                    phase.segment.held, self.plan.arm(phase.segment.arm).tip, q=q
                )
        margins: dict[tuple[str, str], float] = {}
        if clearance > 0.0:
            for first, second in self._independent_arms(moment):
                margins |= dict.fromkeys(_frame_pairs(scene, first, second), clearance)
        for contact in self._find_allowed_contacts(moment, scene):
            margins[contact.frame_a, contact.frame_b] = -contact.penetration
        movable = movable_frames(scene)
        if self._source is None:
            self._source = CollisionWorld(
                scene, movable=movable, margin=-TOUCH_TOLERANCE, pair_margins=margins
            )
        world = self._source.moved_to(
            scene, movable=movable, margin=-TOUCH_TOLERANCE, pair_margins=margins
        )
        self._worlds[key] = world
        return world

    def _independent_arms(self, moment: Moment) -> Iterator[tuple[Manipulator, Manipulator]]:
        """Yield the pairs of arms that keep a clearance, which act in different steps."""
        for first, second in itertools.combinations(self.plan.robots, 2):
            if not any({first.name, second.name} <= track.arms for track in moment.tracks):
                yield first, second

    def _find_allowed_contacts(self, moment: Moment, scene: SceneGraph) -> set[AllowedContact]:
        """Return the contacts that the rules allow in any phase of a moment."""
        tips = [arm.tip for arm in self.plan.robots]
        contacts = set(
            self.rules.allowed_contacts(scene, contact_object=self.rules.held_object(scene))
        )
        for phase in moment.phases:
            step, rules = self.plan.steps[phase.step - 1], self.rules.for_arm(phase.segment.arm)
            before = self.plan.steps[phase.step - 2].scene if phase.step > 1 else self.plan.scene
            support = handling_supports(step.segments, before, tips)[phase.index]
            contacts.update(
                segment_allowed_contacts(phase.segment, scene, rules=rules, support=support)
            )
            contacts.update({*phase.segment.allowed_contacts} & {*self.rules.start_contacts})
        return contacts


def _frame_pairs(
    scene: SceneGraph, first: Manipulator, second: Manipulator
) -> Iterator[tuple[str, str]]:
    """Yield the sorted pairs of a frame of one arm and a frame of another, both with shapes."""
    frames_a = {frame for frame in moved_frames(scene, first) if scene.shapes(frame)}
    frames_b = {frame for frame in moved_frames(scene, second) if scene.shapes(frame)}
    yield from ((min(a, b), max(a, b)) for a in sorted(frames_a) for b in sorted(frames_b))
