"""Schedules: the steps of a plan as functions of time, those of different arms at once.

A plan with :attr:`~tmkit.plans.Plan.starts` says when each step starts. A *track* is the motion of
one step, or of successive steps of one arm, from rest to rest, as a function of time; a *schedule*
puts tracks side by side. At any time a joint is where the track that moved it last has it, and the
scene is the first one with all changes until then.

Invariants: everything is a function of the plan and the times; a track starts and ends at rest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.motion.timing import BlendedPath
from tmkit.plans.class_changes import with_class_changes
from tmkit.plans.motion_timing import Piece, plan_runs, plan_tracks, planned_motion
from tmkit.plans.values import Configuration, Plan, Segment, SegmentKind

HAND_SECONDS, SUCTION_SECONDS = 0.8, 0.3
"""Seconds for which an arm stands while its hand closes or opens, or a vacuum is switched."""

TICK = 0.02
"""Seconds of which every duration within a track is a multiple."""

_HAND = (SegmentKind.GRASP, SegmentKind.RELEASE)
_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Phase:
    """A segment in time: seconds from the start of its track to its end; step from 1, index within it from 0."""

    step: int
    index: int
    segment: Segment
    begin: float
    end: float


@dataclass(frozen=True, eq=False)
class Track:
    """The motion of steps of a plan, one after the other, from rest to rest.

    Attributes:
        plan: the plan.
        numbers: the steps, from 1, in order.
    """

    plan: Plan
    numbers: tuple[int, ...]
    phases: list[Phase] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)  # of the steps
    ends: list[float] = field(default_factory=list)
    _moves: list[tuple[float, BlendedPath | None, list[Piece | Phase], list[float]]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        runs, run, at, now = plan_runs(self.plan, self.numbers), list[Piece](), 0, 0.0
        ends: list[float] = []
        for number in self.numbers:
            self.begins.append(now)
            for index, segment in enumerate(self.plan.steps[number - 1].segments):
                if segment.kind not in _HAND or len(segment.path) > 1:
                    if at == len(run):
                        run, at = next(runs), 0
                        motion = planned_motion(self.plan, run)
                        blended, ends = motion.blended, [now + end for end in motion.ends]
                        ends[-1] = now + TICK * math.ceil(blended.duration / TICK - 1e-9)
                        self._moves.append((now, blended, list(run), ends))
                    self.phases.append(Phase(number, index, segment, now, ends[at]))
                    now, at = ends[at], at + 1
                if segment.kind in _HAND:
                    seconds = HAND_SECONDS if segment.gripper else SUCTION_SECONDS
                    phase = Phase(number, index, segment, now, now + seconds)
                    self.phases.append(phase)
                    self._moves.append((now, None, [phase], [phase.end]))
                    now = phase.end
            self.ends.append(now)

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.ends[-1]

    @cached_property
    def arms(self) -> frozenset[str]:
        """The names of the arms that move."""
        return frozenset(phase.segment.arm for phase in self.phases)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The entries of the configuration that change."""
        joints = {
            joint for p in self.phases for joint in (*p.segment.joint_names, *p.segment.gripper)
        }
        return np.array(sorted(map(self.plan.scene.joint_names.index, joints)), dtype=np.intp)

    def sample(self, times: _Array) -> _Array:
        """Return the values (m, k) of the joints in :attr:`columns` at times (m,) from the start of the track."""
        names, first = (
            self.plan.scene.joint_names,
            self.plan.steps[self.numbers[0] - 2] if self.numbers[0] > 1 else None,
        )
        q = np.repeat(np.asarray((first or self.plan).q)[None], len(times), axis=0)
        for begin, blended, parts, ends in self._moves:
            rows = times >= begin
            if not rows.any():
                break
            if blended is not None:
                piece = parts[0]
                assert isinstance(piece, Piece)
                q[np.ix_(rows, np.array([*map(names.index, piece.joint_names)]))] = blended.sample(
                    np.minimum(times[rows] - begin, blended.duration)
                )[0]
                for one, start in zip(parts, [begin, *ends], strict=False):
                    for joint, value in one.segment.gripper.items():
                        q[times >= start, names.index(joint)] = value
            else:
                for joint, value in parts[0].segment.gripper.items():
                    column = names.index(joint)
                    share = ((times[rows] - begin) / HAND_SECONDS).clip(0.0, 1.0)
                    q[rows, column] += share * (value - q[rows, column])
        return q[:, self.columns]


@dataclass(frozen=True, eq=False)
class Moment:
    """A stretch of time in which the same segments are carried out in one scene version.

    Attributes:
        begin, end: seconds.
        scene: the version.
        phases: the segments; of an arm one at most.
        tracks: the tracks to which they belong.
    """

    begin: float
    end: float
    scene: SceneGraph
    phases: tuple[Phase, ...]
    tracks: tuple[Track, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Tracks side by side, each with the second at which it starts."""

    plan: Plan
    tracks: tuple[tuple[float, Track], ...]

    @classmethod
    def of(cls, plan: Plan) -> Schedule:
        """Return the schedule of a plan; without starts, one step follows the other.

        Steps of one arm of which one starts when the other ends are one motion.

        Raises:
            ConfigurationError: the scene of the plan is uncertain, and looks decide what happens.
        """
        require_certain(plan)
        return cls(
            plan, tuple((start, Track(plan, numbers)) for start, numbers in plan_tracks(plan))
        )

    @property
    def makespan(self) -> float:
        """Seconds until the last track ends."""
        return max((start + track.duration for start, track in self.tracks), default=0.0)

    def step_times(self) -> list[tuple[float, float]]:
        """Return when each step begins and ends, in seconds."""
        begins = {
            n: start + at
            for start, track in self.tracks
            for n, at in zip(track.numbers, track.begins, strict=True)
        }
        ends = self.ends()
        return [(begins[number], ends[number]) for number in range(1, len(self.plan.steps) + 1)]

    def ends(self) -> dict[int, float]:
        """Return when the steps that there are end, in seconds, by their numbers."""
        return {
            n: start + at
            for start, track in self.tracks
            for n, at in zip(track.numbers, track.ends, strict=True)
        }

    def q(self, times: _Array) -> Configuration:
        """Return configurations (m, n_joints) at times (m,), in seconds."""
        found = np.repeat(np.asarray(self.plan.q, dtype=float)[None], len(times), axis=0)
        for start, track in sorted(self.tracks, key=lambda item: item[0]):
            rows = np.flatnonzero(times >= start)
            if not len(rows):
                break
            found[np.ix_(rows, track.columns)] = track.sample(
                np.minimum(times[rows] - start, track.duration)
            )
        return found

    def changes(self) -> list[tuple[float, int, int]]:
        """Return when the scene changes, in order: seconds, step, and index of the segment, or their number."""
        found = []
        for start, track in self.tracks:
            moved = (phase for phase in track.phases if phase.segment.reparenting is not None)
            found += [(start + phase.end, phase.step, phase.index) for phase in moved]
            for number, end in zip(track.numbers, track.ends, strict=True):
                if (step := self.plan.steps[number - 1]).changes:
                    found.append((start + end, number, len(step.segments)))
        return sorted(found)

    def changed(self, scene: SceneGraph, step: int, index: int) -> SceneGraph:
        """Return the scene after one of :meth:`changes`.

        Args:
            scene: the scene before it.
            step, index: as :meth:`changes` gives them.
        """
        planned = self.plan.steps[step - 1]
        if index == len(planned.segments):
            return with_class_changes(scene, planned.changes)
        change = planned.segments[index].reparenting
        return scene if change is None else change.applied(scene, scene.zero_configuration())

    def moments(self, begin: float = 0.0, end: float = math.inf) -> Iterator[Moment]:
        """Yield the stretches of time between two seconds, in order.

        Args:
            begin, end: seconds; the makespan at the latest.
        """
        changes = self.changes()
        phases = [
            (start + p.begin, start + p.end, p, track)
            for start, track in self.tracks
            for p in track.phases
        ]
        end = min(end, self.makespan)
        bounds = {
            begin,
            end,
            *(at for at, *_ in changes),
            *(t for a, b, *_ in phases for t in (a, b)),
        }
        edges = sorted(at for at in bounds if begin <= at <= end)
        scene, done, at_change = self.plan.scene, 0, [at for at, *_ in changes]
        for first, last in pairwise(edges):
            while done < bisect_right(at_change, first + 1e-9):
                scene = self.changed(scene, *changes[done][1:])
                done += 1
            if last - first < 1e-9:
                continue
            active = [
                (p, track) for a, b, p, track in phases if a < last - 1e-9 and b > first + 1e-9
            ]
            yield Moment(
                first, last, scene, tuple(p for p, _ in active), tuple(track for _, track in active)
            )


def require_certain(plan: Plan) -> None:
    """Refuse a plan of which the steps are no function of time: one that looks at things in an uncertain scene.

    Raises:
        ConfigurationError: it has observations, or its scene has covariances.
    """
    if plan.scene.noisy_frames or any(step.observations for step in plan.steps):
        raise ConfigurationError(
            "a plan in an uncertain scene has no schedule: what it sees decides what happens"
        )


def with_starts(plan: Plan, starts: Sequence[float], joined: Sequence[int]) -> Plan:
    """Return a plan with a schedule; see :attr:`Plan.starts` and :attr:`Plan.joined`."""
    made = replace(plan, starts=tuple(starts), joined=tuple(joined) if any(joined) else ())
    made._keep_timing(plan._motions)
    return made
