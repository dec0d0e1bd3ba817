"""Validating a schedule: the order of its steps, and the motion of all arms together in the scene of each moment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.motion import CollisionRules, CollisionWorld, recheck_path
from tmkit.motion.collision_rules import TOUCH_TOLERANCE, AllowedContact
from tmkit.pddl import Domain
from tmkit.pddl.validation import interference
from tmkit.plans.schedule import TICK, Moment, Schedule
from tmkit.plans.values import Configuration, Plan, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.tamp.validation.segment_rules import handling_supports, segment_allowed_contacts

_END = 1e-6  # radians or metres that joints may be off at the end
# seconds between configurations, between which is checked at the resolution of a validation
_CHECKED = 0.01
_SHOWN_COLLISIONS = 3  # collisions that are named


def schedule_faults(plan: Plan, domain: Domain) -> tuple[list[str], int]:
    """Return what is wrong with the schedule of a plan, and how many configurations were checked.

    Checked are the order of steps that interfere, that no arm does two things at once. The timed
    motion of all arms together is checked in the scene of each moment, as finely as any motion of a
    validation.
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
    if (
        scene != plan.final_scene
        or np.max(np.abs(schedule.q(np.array([math.inf]))[0] - plan.final_q)) > _END
    ):
        faults.append("it does not lead to the end of the plan")
    if not faults:
        found = (worlds.fault(schedule, moment) for moment in schedule.moments())
        faults += itertools.islice(
            (fault for fault in found if fault is not None), _SHOWN_COLLISIONS
        )
    return faults, worlds.checks


class ScheduleWorlds:
    """The collision worlds of the moments of schedules of a plan, by scene, segments and clearance."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        first, *others = plan.robots
        self.rules = CollisionRules.from_start(
            first, plan.scene, q=plan.q, other_arms=tuple(others)
        )
        self._known: dict[tuple[object, ...], CollisionWorld] = {}
        self._source: CollisionWorld | None = None
        self.checks = 0

    def hits(self, moment: Moment, q: Configuration, clearance: float) -> bool:
        """Return whether anything is hit, or arms are too near to each other, at configurations (m, n_joints)."""
        return any(self._world(moment, clearance, q[0]).contacts_batch(q))

    def fault(self, schedule: Schedule, moment: Moment) -> str | None:
        """Return what a moment of a schedule hits, checked as finely as in a validation, or None."""
        count = max(2, math.ceil((moment.end - moment.begin) / _CHECKED) + 1)
        times = np.linspace(moment.begin, moment.end, count)
        q = schedule.q(times)
        arms = [self.plan.arm(phase.segment.arm) for phase in moment.phases] or [self.plan.robot]
        world = self._world(moment, 0.0, q[0])
        for arm in arms:
            result = recheck_path(
                world, q, resolution=CHECK_RESOLUTION, tool_frame=arm.tool, tool_travel=CHECK_TRAVEL
            )
            self.checks += result.checks
            if not result.is_ok:
                at = (
                    times[0]
                    if result.q is None
                    else times[np.argmin(np.max(np.abs(q - result.q), axis=1))]
                )
                contacts = [] if result.q is None else world.contacts(result.q)
                what = (
                    f"'{contacts[0].frame_a}' and '{contacts[0].frame_b}' collide"
                    if contacts
                    else result.status.value
                )
                return f"at {at:.2f} s: {what}"
        return None

    def _world(self, moment: Moment, clearance: float, q: Configuration) -> CollisionWorld:
        scene, phases = moment.scene, moment.phases
        key = (scene.fingerprint, clearance, *((p.step, p.index) for p in phases))
        if key in self._known:
            return self._known[key]
        for phase in phases:
            if phase.segment.kind is SegmentKind.PUSH and phase.segment.held is not None:
                scene = scene.reparent(
                    phase.segment.held, self.plan.arm(phase.segment.arm).tip, q=q
                )
        margins: dict[tuple[str, str], float] = {}
        if clearance > 0.0:
            margins = {
                pair: clearance for a, b in self._apart(moment) for pair in _pairs(scene, a, b)
            }
        for exemption in self._allowed_contacts(moment, scene):
            margins[exemption.frame_a, exemption.frame_b] = -exemption.penetration
        movable = movable_frames(scene)
        if self._source is None:
            self._source = CollisionWorld(
                scene, movable=movable, margin=-TOUCH_TOLERANCE, pair_margins=margins
            )
        world = self._source.moved_to(
            scene, movable=movable, margin=-TOUCH_TOLERANCE, pair_margins=margins
        )
        self._known[key] = world
        return world

    def _apart(self, moment: Moment) -> Iterator[tuple[Manipulator, Manipulator]]:
        """Yield the pairs of arms that keep a clearance: all but those that act in one step."""
        for first, second in itertools.combinations(self.plan.robots, 2):
            if not any({first.name, second.name} <= track.arms for track in moment.tracks):
                yield first, second

    def _allowed_contacts(self, moment: Moment, scene: SceneGraph) -> set[AllowedContact]:
        tips = [arm.tip for arm in self.plan.robots]
        found = set(
            self.rules.allowed_contacts(scene, contact_object=self.rules.held_object(scene))
        )
        for phase in moment.phases:
            step, rules = self.plan.steps[phase.step - 1], self.rules.for_arm(phase.segment.arm)
            before = self.plan.steps[phase.step - 2].scene if phase.step > 1 else self.plan.scene
            support = handling_supports(step.segments, before, tips)[phase.index]
            found.update(
                segment_allowed_contacts(phase.segment, scene, rules=rules, support=support)
            )
        return found


def _pairs(scene: SceneGraph, first: Manipulator, second: Manipulator) -> Iterator[tuple[str, str]]:
    one, other = (
        {f for f in moved_frames(scene, arm) if scene.shapes(f)} for arm in (first, second)
    )
    yield from ((min(a, b), max(a, b)) for a in sorted(one) for b in sorted(other))
