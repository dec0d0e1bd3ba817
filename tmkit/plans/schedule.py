"""Schedules: the steps of a plan as functions of time, with several arms at the same time.

A plan with :attr:`~tmkit.plans.Plan.starts` defines the start of each step. A *track* is the motion
of consecutive steps of one arm, from rest to rest, as a function of time. A *schedule* consists of
parallel tracks. At any time a joint has the value of the last track that moved it, and the scene is
the first scene with all changes up to that time.

Invariants: a schedule depends only on the plan and the times. A track starts and ends at rest.
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
from tmkit.plans.class_changes import apply_effects
from tmkit.plans.motion_timing import Piece, plan_motion, plan_runs, plan_tracks
from tmkit.plans.values import Configuration, Plan, Segment, SegmentKind

HAND_SECONDS = 0.8
"""Time in which a hand closes or opens while its arm is at rest [s]."""

SUCTION_SECONDS = 0.3
"""Time in which a vacuum is switched while its arm is at rest [s]."""

TICK = 0.02
"""Time of which each duration in a track is a multiple [s]."""

_TIME_TOLERANCE = 1e-9
"""Difference of times that count as equal [s]."""

_HAND_KINDS = (SegmentKind.GRASP, SegmentKind.RELEASE)
"""Kinds of segments in which a hand moves."""

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Phase:
    """A segment in time.

    Attributes:
        step: number of the step, from 1.
        index: index of the segment in its step, from 0.
        segment: segment of the plan.
        begin: start, from the start of the track [s].
        end: end, from the start of the track [s].
    """

    step: int
    index: int
    segment: Segment
    begin: float
    end: float


@dataclass(frozen=True, eq=False)
class Track:
    """Motion of consecutive steps of a plan, from rest to rest.

    Attributes:
        plan: plan of the steps.
        numbers: numbers of the steps, from 1, in order.
        phases: segments in order.
        begins: start of each step, from the start of the track [s].
        ends: end of each step, from the start of the track [s].
    """

    plan: Plan
    numbers: tuple[int, ...]
    phases: list[Phase] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    _moves: list[_ArmMove | _HandMove] = field(default_factory=list)

    def __post_init__(self) -> None:
        runs = plan_runs(self.plan, self.numbers)
        time = 0.0
        move: _ArmMove | None = None
        piece_index = 0
        for number in self.numbers:
            self.begins.append(time)
            for index, segment in enumerate(self.plan.steps[number - 1].segments):
                if segment.kind not in _HAND_KINDS or len(segment.path) > 1:
                    if move is None or piece_index == len(move.pieces):
                        move, piece_index = self._next_arm_move(runs, time), 0
                        self._moves.append(move)
                    end = move.ends[piece_index]
                    self.phases.append(Phase(number, index, segment, time, end))
                    time, piece_index = end, piece_index + 1
                if segment.kind in _HAND_KINDS:
                    seconds = HAND_SECONDS if segment.gripper else SUCTION_SECONDS
                    self.phases.append(Phase(number, index, segment, time, time + seconds))
                    self._moves.append(_HandMove(time, segment))
                    time = time + seconds
            self.ends.append(time)

    def _next_arm_move(self, runs: Iterator[list[Piece]], begin: float) -> _ArmMove:
        """Return the move of the next run, whose duration is rounded up to a tick."""
        run = next(runs)
        motion = plan_motion(self.plan, run)
        ends = [begin + end for end in motion.ends]
        ticks = math.ceil(motion.blended.duration / TICK - _TIME_TOLERANCE)
        ends[-1] = begin + TICK * ticks
        return _ArmMove(begin, motion.blended, tuple(run), tuple(ends))

    @property
    def duration(self) -> float:
        """Duration of the track [s]."""
        return self.ends[-1]

    @cached_property
    def arms(self) -> frozenset[str]:
        """Names of the arms that move."""
        return frozenset(phase.segment.arm for phase in self.phases)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """(k,) indices of the joints that move, in the configuration."""
        joints = {
            joint
            for phase in self.phases
            for joint in (*phase.segment.joint_names, *phase.segment.gripper)
        }
        return np.array(sorted(map(self.plan.scene.joint_names.index, joints)), dtype=np.intp)

    def sample(self, times: _Array) -> _Array:
        """Return values (m, k) of the joints in :attr:`columns`.

        Args:
            times: (m,) times from the start of the track [s].
        """
        names, first = self.plan.scene.joint_names, self.numbers[0]
        start_q = self.plan.steps[first - 2].q if first > 1 else self.plan.q
        q = np.repeat(np.asarray(start_q)[None], len(times), axis=0)
        for move in self._moves:
            if not (times >= move.begin).any():
                break
            move.apply(times, q, names)
        return q[:, self.columns]


@dataclass(frozen=True, eq=False)
class _ArmMove:
    """Motion of an arm from rest to rest.

    Attributes:
        begin: start, from the start of the track [s].
        blended: positions as functions of time.
        pieces: segments of the motion.
        ends: end of each segment, from the start of the track [s].
    """

    begin: float
    blended: BlendedPath
    pieces: tuple[Piece, ...]
    ends: tuple[float, ...]

    def apply(self, times: _Array, q: Configuration, names: Sequence[str]) -> None:
        """Set the joint values from the start of the move on.

        Args:
            times: (m,) times from the start of the track [s].
            q: (m, n_joints) configurations to change.
            names: names of the n_joints joints.
        """
        rows = times >= self.begin
        columns = np.array([names.index(joint) for joint in self.pieces[0].joint_names])
        elapsed = np.minimum(times[rows] - self.begin, self.blended.duration)
        q[np.ix_(rows, columns)] = self.blended.sample(elapsed)[0]
        for piece, start in zip(self.pieces, [self.begin, *self.ends], strict=False):
            for joint, value in piece.segment.gripper.items():
                q[times >= start, names.index(joint)] = value


@dataclass(frozen=True, eq=False)
class _HandMove:
    """Motion of a hand while its arm is at rest.

    Attributes:
        begin: start, from the start of the track [s].
        segment: grasp or release.
    """

    begin: float
    segment: Segment

    def apply(self, times: _Array, q: Configuration, names: Sequence[str]) -> None:
        """Set the finger joint values from the start of the move on; see :meth:`_ArmMove.apply`."""
        rows = times >= self.begin
        fraction = ((times[rows] - self.begin) / HAND_SECONDS).clip(0.0, 1.0)
        for joint, value in self.segment.gripper.items():
            column = names.index(joint)
            q[rows, column] += fraction * (value - q[rows, column])


@dataclass(frozen=True, eq=False)
class Moment:
    """An interval of time with constant segments and scene.

    Attributes:
        begin: start of the interval [s].
        end: end of the interval [s].
        scene: scene during the interval.
        phases: active segments, at most one of each arm.
        tracks: tracks of the segments.
    """

    begin: float
    end: float
    scene: SceneGraph
    phases: tuple[Phase, ...]
    tracks: tuple[Track, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Parallel tracks of a plan.

    Attributes:
        plan: plan of the tracks.
        tracks: start [s] and track.
    """

    plan: Plan
    tracks: tuple[tuple[float, Track], ...]

    @classmethod
    def of(cls, plan: Plan) -> Schedule:
        """Return the schedule of a plan; without starts, the steps are consecutive.

        Joined steps of one arm are one motion without a rest.

        Raises:
            ConfigurationError: if the scene of the plan is uncertain.
        """
        require_certain(plan)
        tracks = tuple((start, Track(plan, numbers)) for start, numbers in plan_tracks(plan))
        return cls(plan, tracks)

    @property
    def makespan(self) -> float:
        """End of the last track [s]."""
        return max((start + track.duration for start, track in self.tracks), default=0.0)

    def step_times(self) -> list[tuple[float, float]]:
        """Return the start and the end of each step [s]."""
        begins = {
            number: start + begin
            for start, track in self.tracks
            for number, begin in zip(track.numbers, track.begins, strict=True)
        }
        ends = self.ends()
        return [(begins[number], ends[number]) for number in range(1, len(self.plan.steps) + 1)]

    def ends(self) -> dict[int, float]:
        """Return the end of each step in a track [s], by its number."""
        return {
            number: start + end
            for start, track in self.tracks
            for number, end in zip(track.numbers, track.ends, strict=True)
        }

    def q(self, times: _Array) -> Configuration:
        """Return configurations (m, n_joints) at times (m,) [s]."""
        q = np.repeat(np.asarray(self.plan.q, dtype=float)[None], len(times), axis=0)
        for start, track in sorted(self.tracks, key=lambda item: item[0]):
            rows = np.flatnonzero(times >= start)
            if not len(rows):
                break
            elapsed = np.minimum(times[rows] - start, track.duration)
            q[np.ix_(rows, track.columns)] = track.sample(elapsed)
        return q

    def changes(self) -> list[tuple[float, int, int]]:
        """Return the changes of the scene in order: time [s], step and segment.

        The index of the segment equals the number of segments for a change after the last one.
        """
        changes = []
        for start, track in self.tracks:
            changes += [
                (start + phase.end, phase.step, phase.index)
                for phase in track.phases
                if phase.segment.reparenting is not None
            ]
            for number, end in zip(track.numbers, track.ends, strict=True):
                step = self.plan.steps[number - 1]
                if step.changes:
                    changes.append((start + end, number, len(step.segments)))
        return sorted(changes)

    def apply_change(self, scene: SceneGraph, number: int, index: int) -> SceneGraph:
        """Return the scene after one of :meth:`changes`.

        Args:
            scene: scene before the change.
            number: number of the step, from 1.
            index: index of the segment, as in :meth:`changes`.
        """
        step = self.plan.steps[number - 1]
        if index == len(step.segments):
            return apply_effects(scene, step.changes)
        change = step.segments[index].reparenting
        return scene if change is None else change.apply(scene, scene.zero_configuration())

    def moments(self, begin: float = 0.0, end: float = math.inf) -> Iterator[Moment]:
        """Yield the intervals between two times, in order.

        Args:
            begin: start of the first interval [s].
            end: end of the last interval, at most the makespan [s].
        """
        changes = self.changes()
        change_times = [time for time, *_ in changes]
        phases = [
            (start + phase.begin, start + phase.end, phase, track)
            for start, track in self.tracks
            for phase in track.phases
        ]
        end = min(end, self.makespan)
        bounds = {begin, end, *change_times}
        for phase_begin, phase_end, *_ in phases:
            bounds |= {phase_begin, phase_end}
        edges = sorted(time for time in bounds if begin <= time <= end)
        scene, change_index = self.plan.scene, 0
        for first, last in pairwise(edges):
            while change_index < bisect_right(change_times, first + _TIME_TOLERANCE):
                _, number, index = changes[change_index]
                scene = self.apply_change(scene, number, index)
                change_index += 1
            if last - first < _TIME_TOLERANCE:
                continue
            active = [
                (phase, track)
                for phase_begin, phase_end, phase, track in phases
                if phase_begin < last - _TIME_TOLERANCE and phase_end > first + _TIME_TOLERANCE
            ]
            active_phases = tuple(phase for phase, _ in active)
            active_tracks = tuple(track for _, track in active)
            yield Moment(first, last, scene, active_phases, active_tracks)


def require_certain(plan: Plan) -> None:
    """Check that the steps of a plan are functions of time, without observations.

    Raises:
        ConfigurationError: if the plan has observations or its scene has covariances.
    """
    if plan.scene.noisy_frames or any(step.observations for step in plan.steps):
        raise ConfigurationError(
            "a plan in an uncertain scene has no schedule: its steps depend on measurements"
        )


def set_starts(plan: Plan, starts: Sequence[float], joined: Sequence[int]) -> Plan:
    """Return a plan with a schedule; see :attr:`Plan.starts` and :attr:`Plan.joined`."""
    scheduled = replace(plan, starts=tuple(starts), joined=tuple(joined) if any(joined) else ())
    scheduled._store_timing(plan._motions)
    return scheduled
