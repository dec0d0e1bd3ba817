"""Timing of the motions of a plan, with rounded corners between contacts.

An arm is at rest only before and after each grasp, release, push, pour, line, observation and
motion of a handle. All other segments of a plan, also those of consecutive actions, form one path
with rounded corners (:mod:`tmkit.motion.timing`).

The rounding leaves the checked path, so the motion is checked again. The checks of each segment
cover collisions, path constraints, and the straight line within 2 cm of a contact. Where a check
fails, the rounding becomes smaller, and finally the arm stops at the corner.

Invariants: the timing depends only on the plan and the steps; the rate only affects the sampling.
Every sample is within the limits of speed, acceleration, jerk and torque, and satisfies the
conditions of the path of its segment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules, CollisionWorld, TorqueLimits, recheck_path
from tmkit.motion.collision_rules import TOUCH_TOLERANCE, AllowedContact
from tmkit.motion.path_constraints import interpolate_path
from tmkit.motion.timing import BlendedPath, TimedPath, blend_path
from tmkit.plans.values import Configuration, Plan, PlannedMotion, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames

_Array = NDArray[np.float64]

_SLIDE_SPEED = 0.15
"""Largest speed of a drawer [m/s]."""

_HINGE_SPEED = 0.6
"""Largest speed of a door [rad/s]."""

_SPEED_FRACTIONS = {SegmentKind.PUSH: 0.2, SegmentKind.POUR: 0.5}
"""Fraction of the arm's speed; a pushed object must stop with the hand."""

_TOUCH_SPEED_FRACTION = 0.2
"""Fraction of the arm's speed along a line that touches frames."""

_HAND_KINDS = (SegmentKind.GRASP, SegmentKind.RELEASE)
"""Kinds of segments in which a hand moves."""

_REST_KINDS = (
    *_HAND_KINDS,
    SegmentKind.PUSH,
    SegmentKind.OPERATE,
    SegmentKind.POUR,
    SegmentKind.LINE,
)
"""Kinds of segments that start and end at rest."""

_TO_CONTACT = (SegmentKind.APPROACH, SegmentKind.LOWER)
"""Kinds of segments that end at a contact."""

_FROM_CONTACT = (SegmentKind.LIFT, SegmentKind.RETREAT)
"""Kinds of segments that start at a contact."""

DEVIATION = 0.05
"""First deviation of a rounded corner from the path [rad]."""

_CONTACT_DEVIATION = 0.005
"""First deviation of a rounded corner near a contact [rad]."""

_DEVIATIONS = {
    SegmentKind.PUSH: 1e-3,
    SegmentKind.OPERATE: 1e-3,
    SegmentKind.LINE: 1e-3,
    SegmentKind.POUR: 5e-3,
}
"""First deviation of a rounded corner by kind of segment [rad]."""

_MIN_DEVIATION = 1e-3
"""Smallest deviation of a rounded corner, except 0 [rad]."""

_DEVIATION_FACTOR = 0.4
"""Factor of the next deviation after a failed check."""

_CONTACT_DISTANCE = 0.02
"""Distance from a contact within which the tool moves in a straight line [m]."""

_MAX_LINE_DEVIATION = 0.001
"""Largest distance of the tool from its straight line near a contact [m]."""

_MAX_LINE_ROTATION = 0.02
"""Largest rotation of the tool from the contact pose near a contact [rad]."""

_FAULT_REACH = 0.3
"""Distance along a path within which a corner may cause a failed check [rad]."""

_TIGHT_EFFORT = 0.97
"""Fraction of an effort limit due to gravity above which corners are hardly rounded."""

_MIN_CLEARANCE = 0.005
"""Clearance of a motion, or half the clearance of its path if smaller [m]."""

_CLEARANCE_SPACING = 0.02
"""Spacing of the configurations of a path whose clearance is measured [rad]."""

_CHECK_PERIOD = 0.02
"""Time between checked samples [s]."""

TIMING_RESOLUTION = 0.01
"""Joint motion between the configurations at which a timed motion is checked [rad]."""

TIMING_TRAVEL = 0.003
"""Travel of the tool between these configurations [m]."""

_CORNER_ATTEMPTS = 4
"""Number of attempts before the arm stops at the corner nearest to a failed check."""

_MAX_ATTEMPTS = 10
"""Number of attempts before the arm stops at each corner."""

_EQUAL_JOINTS = 1e-9
"""Difference of joint values that count as equal [rad or m]."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A moving segment and the state before it.

    Attributes:
        step: number of the step, from 1.
        index: index of the segment in the step, from 1.
        segment: segment of the plan.
        arm: arm that moves.
        scene: scene during the segment.
        q: (n_joints,) configuration before the segment.
        joint_names: k joints that move.
        path: (m, k) path of these joints [rad or m].
        speeds: (k,) speed limits [rad/s or m/s].
        accelerations: (k,) acceleration limits [rad/s^2 or m/s^2].
    """

    step: int
    index: int
    segment: Segment
    arm: Manipulator
    scene: SceneGraph
    q: Configuration
    joint_names: tuple[str, ...]
    path: _Array
    speeds: _Array
    accelerations: _Array

    @property
    def is_hand_constant(self) -> bool:
        """True if the fingers already have their final values."""
        names, fingers = self.scene.joint_names, self.segment.gripper.items()
        return all(
            abs(self.q[names.index(joint)] - value) < _EQUAL_JOINTS for joint, value in fingers
        )

    def configurations(self, rows: _Array) -> Configuration:
        """Return configurations (m, n_joints) for values (m, k) of the joints that move."""
        names = self.scene.joint_names
        base = self.scene.configuration(dict(self.segment.gripper), base=self.q)
        q = np.repeat(base[None], len(rows), axis=0)
        q[:, [names.index(name) for name in self.joint_names]] = rows
        return q


def plan_runs(
    plan: Plan,
    steps: Iterable[int],
    *,
    rests: Collection[SegmentKind] = (),
    stops: Collection[int] = (),
) -> Iterator[list[Piece]]:
    """Yield the pieces of each motion from rest to rest.

    Args:
        plan: plan of the steps.
        steps: numbers of consecutive steps, from 1.
        rests: further kinds of segments after which the arm is at rest.
        stops: numbers of further steps at whose end the arm is at rest.
    """
    return _group_runs(_plan_pieces(plan, steps, stops), rests)


def step_runs(
    step: PlanStep, scene: SceneGraph, *, robots: Iterable[Manipulator]
) -> Iterator[list[Piece]]:
    """Yield the pieces of each motion of a step from rest to rest.

    Args:
        step: step of a plan.
        scene: scene that replaces the one before the step, with the same joints.
        robots: arms of the plan.
    """
    arms = {arm.name: arm for arm in robots}
    pieces = (
        _make_piece(
            0, 0, segment, arms[segment.arm], scene, scene.configuration(dict(segment.gripper))
        )
        for segment in step.segments
    )
    return _group_runs(pieces, ())


def _plan_pieces(
    plan: Plan, steps: Iterable[int], stops: Collection[int]
) -> Iterator[Piece | None]:
    """Yield a piece for each segment, and None after a step at whose end the arm is at rest."""
    for number in steps:
        step, previous = plan.steps[number - 1], plan.steps[number - 2] if number > 1 else plan
        scene, q = previous.scene, np.asarray(previous.q)
        for index, segment in enumerate(step.segments, start=1):
            yield _make_piece(number, index, segment, plan.arm(segment.arm), scene, q)
            scene, q = segment.end(scene, q)
        if number in stops or step.observations or not step.segments:
            yield None


def _group_runs(
    pieces: Iterable[Piece | None], rests: Collection[SegmentKind]
) -> Iterator[list[Piece]]:
    """Yield the pieces of each motion from rest to rest; see :func:`plan_runs`."""
    run: list[Piece] = []
    for piece in pieces:
        if run and (piece is None or not _is_continued(run[-1], piece, rests)):
            yield run
            run = []
        if piece is not None and (piece.segment.kind not in _HAND_KINDS or len(piece.path) > 1):
            run.append(piece)
    if run:
        yield run


def _make_piece(
    step: int, index: int, segment: Segment, arm: Manipulator, scene: SceneGraph, q: Configuration
) -> Piece:
    """Return the piece of a segment; see :class:`Piece`."""
    mechanism_joints = [name for name in segment.joint_names if name not in arm.joints]
    names = (*arm.joints, *mechanism_joints)
    columns = [segment.joint_names.index(name) for name in names]
    fraction = _SPEED_FRACTIONS.get(segment.kind, 1.0)
    if segment.touching:
        fraction = _TOUCH_SPEED_FRACTION
    speeds = np.array([_mechanism_speed(scene, name) for name in mechanism_joints])
    return Piece(
        step,
        index,
        segment,
        arm,
        scene,
        np.asarray(q),
        names,
        path=np.asarray(segment.path, dtype=float)[:, columns],
        speeds=fraction * np.concatenate([arm.velocity_limits(scene), speeds]),
        accelerations=np.concatenate([arm.acceleration_limits(scene), 2.0 * speeds]),
    )


def _mechanism_speed(scene: SceneGraph, joint: str) -> float:
    """Return the speed limit of a joint that is moved by its handle [m/s or rad/s].

    It is the limit of the scene, but at most that of drawers or doors.
    """
    limit = float(scene.velocity_limits[scene.joint_names.index(joint)])
    is_slide = scene.joint(scene.joint_frame(joint)).type == "prismatic"
    max_speed = _SLIDE_SPEED if is_slide else _HINGE_SPEED
    return min(limit, max_speed) if limit > 0.0 else max_speed


def _is_continued(piece: Piece, next_piece: Piece, rests: Collection[SegmentKind]) -> bool:
    """Return whether an arm need not stop between consecutive pieces."""
    return (
        piece.arm.name == next_piece.arm.name
        and piece.segment.kind not in (*_REST_KINDS, *_TO_CONTACT, *rests)
        and next_piece.segment.kind not in (*_REST_KINDS, *_FROM_CONTACT)
        and piece.is_hand_constant
        and next_piece.is_hand_constant
        and bool(np.max(np.abs(piece.path[-1] - next_piece.path[0])) < _EQUAL_JOINTS)
    )


def blend_run(run: list[Piece], *, is_checked: bool = True) -> BlendedPath:
    """Return one motion along pieces, from rest to rest, that satisfies their conditions.

    Args:
        run: pieces of the motion.
        is_checked: whether to check collisions, path constraints and straight lines.

    Raises:
        ConfigurationError: if gravity alone exceeds an effort limit.
    """
    check, first = RunCheck(run), run[0]
    blended = _blend(check, None, is_checked)
    # The object in the hand is the same in all pieces, so one model of the torques suffices.
    torques = TorqueLimits(first.scene, first.arm, first.configurations(first.path[:1])[0])
    if not np.isfinite(torques.limits).any() or blended.torque_ratio(torques) <= 1.0:
        return blended
    for piece in run:
        if (fault := torques.gravity_fault(piece.path)) is not None:
            raise ConfigurationError(f"step {piece.step}, {piece.segment.kind.value}: {fault}")
    return _blend(check, torques, is_checked)


def _blend(check: RunCheck, torques: TorqueLimits | None, is_checked: bool) -> BlendedPath:
    """Return a motion whose corners are rounded as far as the checks permit.

    Args:
        check: path of the run and its conditions.
        torques: torque limits, if they restrict the motion.
        is_checked: whether the conditions are checked.
    """
    run, path = check.run, check.path
    deviations = _first_deviations(check, torques, is_checked)
    reach = _FAULT_REACH
    for attempt in range(_MAX_ATTEMPTS + 1):
        blended = blend_path(
            path,
            run[0].speeds,
            acceleration_limits=run[0].accelerations,
            deviation=deviations,
            torques=torques,
        )
        if not is_checked or attempt == _MAX_ATTEMPTS or len(path) <= 2:
            break
        faults = check.faults(blended)
        if not faults:
            break
        if attempt == _MAX_ATTEMPTS - 1:
            deviations[:] = 0.0
        for fault in faults:
            _reduce_deviations(
                deviations,
                np.abs(check.distances - fault)[1:-1],
                reach=reach,
                stops=attempt >= _CORNER_ATTEMPTS,
            )
        reach *= _DEVIATION_FACTOR
    return blended


def _first_deviations(check: RunCheck, torques: TorqueLimits | None, is_checked: bool) -> _Array:
    """Return the deviation (m,) of each corner for the first attempt [rad]; see :func:`_blend`."""
    deviations = np.full(len(check.path), DEVIATION)
    for piece, first, last in zip(check.run, check.rows[:-1], check.rows[1:], strict=True):
        piece_deviations = deviations[first : last + 1]
        limit = _DEVIATIONS.get(piece.segment.kind, DEVIATION)
        piece_deviations[:] = np.minimum(piece_deviations, limit)
        piece_deviations[check.is_near_contact(piece, piece.path)] = _CONTACT_DEVIATION
    if is_checked:
        for index, row in enumerate(check.rows[1:-1]):
            if check.is_narrow(index):
                deviations[row] = 0.0
    if torques is not None and torques.gravity_fault(check.path, fraction=_TIGHT_EFFORT):
        deviations = np.minimum(deviations, _MIN_DEVIATION)
    return deviations


def _reduce_deviations(deviations: _Array, distances: _Array, *, reach: float, stops: bool) -> None:
    """Reduce the deviations of the corners that may cause a failed check.

    Args:
        deviations: (m,) deviations to change [rad].
        distances: (m - 2,) distances of the corners from the failed check along the path [rad].
        reach: distance within which corners are changed; the nearest one always is [rad].
        stops: whether the arm stops at the nearest corner.
    """
    corners = 1 + np.flatnonzero(distances <= max(reach, float(np.min(distances))))
    reduced = np.maximum(deviations[corners] * _DEVIATION_FACTOR, _MIN_DEVIATION)
    deviations[corners] = np.where(deviations[corners] > 0.0, reduced, 0.0)
    if stops:
        deviations[1 + np.argmin(distances)] = 0.0


class RunCheck:
    """Path of a run, and checks of a motion against the conditions of its pieces.

    Attributes:
        run: pieces of the motion.
        path: (m, k) path [rad or m].
        rows: rows of the path at which pieces start and end.
        distances: (m,) distances along the path [rad].
        ends: distances at which pieces start and end [rad].
    """

    def __init__(self, run: list[Piece]) -> None:
        self.run = run
        self.path = np.concatenate([run[0].path, *(piece.path[1:] for piece in run[1:])])
        self.rows = [0, *np.cumsum([len(piece.path) - 1 for piece in run]).tolist()]
        lengths = norms(np.diff(self.path, axis=0))
        self.distances = np.concatenate([[0.0], np.cumsum(lengths)])
        self.ends = self.distances[self.rows]
        self._worlds: list[tuple[CollisionWorld, bool]] = []

    def faults(self, blended: BlendedPath) -> list[float]:
        """Return distances along the path at which a motion violates a condition [rad].

        They contain at least one distance for each piece that fails.
        """
        times = _sample_times(blended)
        end_times = np.interp(self.ends[1:-1], blended.sample(times)[3], times)
        q, _, _, distances = blended.sample(np.sort(np.concatenate([times, end_times])))
        faults = []
        for index, piece in enumerate(self.run):
            begin, end = self.ends[index] - 1e-3, self.ends[index + 1] + 1e-3
            rows = (distances >= begin) & (distances <= end)
            faults += self._piece_faults(index, piece, q[rows], distances[rows])
        return faults

    def _piece_faults(
        self, index: int, piece: Piece, values: _Array, distances: _Array
    ) -> list[float]:
        """Return the distances along the path at which a piece violates a condition [rad].

        Args:
            index: index of the piece.
            piece: piece to check.
            values: (m, k) values of the joints that move [rad or m].
            distances: (m,) distances of these values along the path [rad].
        """
        q = piece.configurations(values)
        if not len(q):
            return []
        has_fault = self.is_off_line(piece, q)
        for constraint in piece.segment.constraints:
            has_fault |= constraint.values(piece.scene, q) > constraint.tolerance
        result = recheck_path(
            self._world(index)[0],
            q,
            resolution=TIMING_RESOLUTION,
            tool_frame=piece.arm.tool,
            tool_travel=TIMING_TRAVEL,
        )
        if not result.is_ok and result.q is not None:
            has_fault[np.argmin(np.max(np.abs(q - result.q), axis=1))] = True
        return [float(distance) for distance in distances[has_fault]]

    def is_narrow(self, index: int) -> bool:
        """Return whether the clearance of the moving frames is small where a piece ends."""
        return self._world(index)[1]

    def _world(self, index: int) -> tuple[CollisionWorld, bool]:
        """Return the collision world of a piece, and whether the clearance at its end is small.

        The world requires a clearance of 5 mm, or half the clearance of the piece's path.
        """
        while len(self._worlds) <= index:
            source = self._worlds[-1][0] if self._worlds else None
            self._worlds.append(_make_world(self.run[len(self._worlds)], source))
        return self._worlds[index]

    def is_near_contact(self, piece: Piece, values: _Array) -> NDArray[np.bool_]:
        """Return whether the tool is near the contact of a piece (m,); false without a contact.

        Args:
            piece: piece with the joints.
            values: (m, k) values of the joints that move [rad or m].
        """
        poses, contact = self._tool_poses(piece, piece.configurations(values))
        is_near: NDArray[np.bool_] = np.zeros(len(poses), dtype=bool)
        if contact is None:
            return is_near
        return norms(poses[:, :3] - contact[:3]) <= _CONTACT_DISTANCE

    def contact_intervals(
        self, blended: BlendedPath, ends: Sequence[float]
    ) -> tuple[tuple[float, float] | None, ...]:
        """Return for each piece the interval in which the tool is near its contact [s], or None.

        Args:
            blended: motion along the pieces.
            ends: end of each piece [s].
        """
        times = _sample_times(blended)
        q = blended.sample(times)[0]
        intervals: list[tuple[float, float] | None] = []
        for piece, begin, end in zip(self.run, [0.0, *ends], ends, strict=False):
            rows = (times >= begin) & (times <= end)
            near_times = times[rows][self.is_near_contact(piece, q[rows])]
            if not len(near_times):
                intervals.append(None)
            elif piece.segment.kind in _TO_CONTACT:
                intervals.append((max(float(near_times.min()) - _CHECK_PERIOD, begin), end))
            else:
                intervals.append((begin, min(float(near_times.max()) + _CHECK_PERIOD, end)))
        return tuple(intervals)

    def is_off_line(self, piece: Piece, q: Configuration) -> NDArray[np.bool_]:
        """Return whether the tool is off its straight line near the contact of a piece (m,).

        Args:
            piece: piece with the contact.
            q: (m, n_joints) configurations.
        """
        poses, contact = self._tool_poses(piece, q)
        if contact is None:
            return np.zeros(len(q), dtype=bool)
        ends, _ = self._tool_poses(piece, piece.configurations(piece.path[[0, -1]]))
        line = ends[1, :3] - ends[0, :3]
        line = line / max(float(norms(line)), 1e-12)
        offset = poses[:, :3] - contact[:3]
        deviation = norms(offset - np.sum(offset * line, axis=1)[:, None] * line)
        half_angle_cosine = np.sum(poses[:, 3:] * contact[3:], axis=1)
        rotation = 2.0 * np.sqrt((1.0 - half_angle_cosine**2).clip(0.0))
        is_near = norms(offset) <= _CONTACT_DISTANCE
        is_off: NDArray[np.bool_] = is_near & (
            (deviation > _MAX_LINE_DEVIATION) | (rotation > _MAX_LINE_ROTATION)
        )
        return is_off

    def _tool_poses(self, piece: Piece, q: Configuration) -> tuple[_Array, _Array | None]:
        """Return poses (m, 7) of the tool, and its pose (7,) at the contact of a piece or None."""
        kind = piece.segment.kind
        if kind not in (*_TO_CONTACT, *_FROM_CONTACT):
            return np.zeros((len(q), 7)), None
        contact = piece.configurations(piece.path[[-1 if kind in _TO_CONTACT else 0]])
        poses = piece.scene.pose_batch(piece.arm.tool, q=np.concatenate([q, contact]))
        return poses[:-1], poses[-1]


def _make_world(piece: Piece, source: CollisionWorld | None) -> tuple[CollisionWorld, bool]:
    """Return the collision world of a piece, and whether the clearance at its end is small.

    Args:
        piece: piece to check.
        source: collision world of the previous piece, whose shapes are reused.
    """
    scene, segment = piece.scene, piece.segment
    if segment.kind is SegmentKind.PUSH and segment.held is not None:
        scene = scene.reparent(segment.held, piece.arm.tip, q=piece.q)
    rules, moving_frames = CollisionRules(piece.arm), moved_frames(scene, piece.arm)

    # Measure the clearance of the path.
    world = rules.world(scene, segment.allowed_contacts, margin=2.0 * _MIN_CLEARANCE, source=source)
    path = interpolate_path(piece.configurations(piece.path), _CLEARANCE_SPACING)
    contacts = world.contacts_batch(path)
    clearances: dict[tuple[str, str], float] = {}
    for contact in chain(*contacts):
        pair = contact.frame_a, contact.frame_b
        clearances[pair] = min(clearances.get(pair, np.inf), contact.distance)

    # Allow half of the clearance of the path.
    near_contacts = [
        AllowedContact.of(
            *pair,
            penetration=-0.5 * distance if distance > 0.0 else TOUCH_TOLERANCE,
            reason="it is near",
        )
        for pair, distance in clearances.items()
    ]
    allowed_contacts = (*segment.allowed_contacts, *near_contacts)
    world = rules.world(scene, allowed_contacts, margin=_MIN_CLEARANCE, source=world)
    is_narrow = any(
        contact.distance < _MIN_CLEARANCE
        and (contact.frame_a in moving_frames) != (contact.frame_b in moving_frames)
        for contact in contacts[-1]
    )
    return world, is_narrow


def _sample_times(blended: BlendedPath) -> _Array:
    """Return the times (m,) at which a motion is checked [s]."""
    count = max(3, int(blended.duration / _CHECK_PERIOD))
    return np.linspace(0.0, blended.duration, count)


def plan_tracks(plan: Plan) -> list[tuple[float, tuple[int, ...]]]:
    """Return the start [s] of each track of a plan, and the numbers of its steps, from 1."""
    numbers = range(1, len(plan.steps) + 1)
    if not plan.starts:
        return [(0.0, tuple(numbers))] if numbers else []
    groups: list[tuple[float, list[int]]] = []
    predecessors = plan.joined or (0,) * len(numbers)
    for number, predecessor in zip(numbers, predecessors, strict=True):
        matches = (group for _, group in groups if predecessor and group[-1] == predecessor)
        group = next(matches, None)
        if group is None:
            groups.append((plan.starts[number - 1], [number]))
        else:
            group.append(number)
    return [(start, tuple(group)) for start, group in groups]


def plan_motions(plan: Plan) -> tuple[PlannedMotion, ...]:
    """Return the motions of a plan from rest to rest, track by track.

    They are computed once for a plan, or read from its file.

    Raises:
        ConfigurationError: if gravity alone exceeds an effort limit of an arm.
    """
    return tuple(
        plan_motion(plan, run) for _, steps in plan_tracks(plan) for run in plan_runs(plan, steps)
    )


def plan_motion(plan: Plan, run: list[Piece]) -> PlannedMotion:
    """Return the motion of a run of a plan, which stores it."""
    segments = tuple((piece.step, piece.index) for piece in run)
    if segments not in plan._motions:
        plan._store_timing({segments: _compute_motion(segments, run)})
    return plan._motions[segments]


def _compute_motion(segments: tuple[tuple[int, int], ...], run: list[Piece]) -> PlannedMotion:
    """Return the motion of a run with the ends of its segments."""
    blended, check = blend_run(run), RunCheck(run)
    times = _sample_times(blended)
    inner_ends = np.interp(check.ends[1:-1], blended.sample(times)[3], times)
    ends = [*inner_ends.tolist(), blended.duration]
    return PlannedMotion(segments, blended, tuple(ends), check.contact_intervals(blended, ends))


def sample_run(plan: Plan, run: list[Piece], *, rate: float) -> list[TimedPath]:
    """Return the samples of each piece of a run; the last one is the first of the next piece.

    Args:
        plan: plan of the run.
        run: pieces of the motion.
        rate: samples per second [Hz].
    """
    motion = plan_motion(plan, run)
    timed = motion.blended.sample_at_rate(rate)
    edges = np.ceil(np.array([0.0, *motion.ends]) * rate - 1e-9).astype(int)
    bounds = edges.clip(0, len(timed.positions) - 1)
    return [
        TimedPath(
            timed.positions[first : last + 1],
            timed.velocities[first : last + 1],
            timed.accelerations[first : last + 1],
            timed.period,
        )
        for first, last in pairwise(bounds)
    ]
