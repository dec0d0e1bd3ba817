"""Timing of a plan's motions: what leads from one contact to the next is one motion with rounded corners.

An arm stops only where contact, a look or a hand demands it: before and after each grasp, release,
push, pour and movement of a handle. In between the segments of a plan, also of successive actions,
make one path, whose corners are rounded (:mod:`tmkit.motion.timing`). What leaves the checked path
is checked itself: each segment's part for collisions in its scene version with its exemptions, for
its constraints, and for its straight line within 2 cm of a contact. Where something is wrong the
rounding becomes smaller, and in the end a stop.

Invariants: the timing is a function of the plan and the steps alone, the rate only says where it is
sampled. Every sample keeps the limits of speed, acceleration, jerk and torque, and what a segment's
path keeps.
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
from tmkit.motion.collision_rules import TOUCHING, AllowedContact
from tmkit.motion.path_constraints import interpolated
from tmkit.motion.timing import BlendedPath, TimedPath, blend_path
from tmkit.plans.values import Configuration, Plan, PlannedMotion, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames

_Array = NDArray[np.float64]

_SLIDE_SPEED, _HINGE_SPEED = 0.15, 0.6  # m/s and rad/s at which drawers and doors are moved
# of the arm's speed: what is pushed stops with the hand
_SHARES = {SegmentKind.PUSH: 0.2, SegmentKind.POUR: 0.5}

_HAND = (SegmentKind.GRASP, SegmentKind.RELEASE)
_APART = (*_HAND, SegmentKind.PUSH, SegmentKind.OPERATE, SegmentKind.POUR)  # from rest to rest
_TO_CONTACT, _FROM_CONTACT = (
    (SegmentKind.APPROACH, SegmentKind.LOWER),
    (SegmentKind.LIFT, SegmentKind.RETREAT),
)

DEVIATION, _NEAR_DEVIATION = 0.05, 0.005  # radians at first, and where a contact is near
_DEVIATIONS = {SegmentKind.PUSH: 1e-3, SegmentKind.OPERATE: 1e-3, SegmentKind.POUR: 5e-3}
_NEAR = 0.02  # metres from a contact within which the tool moves straight
_STRAIGHT, _TURN = 0.001, 0.02  # metres and radians by which it may stray there
_REACH = 0.3  # radians along a path within which a corner may be to blame
_TIGHT = 0.97  # share of an effort limit that gravity takes, above which paths are followed closely
_LESS, _LEAST = 0.4, 1e-3  # part of a deviation that is tried next, and the least
_CLEARANCE = 0.005  # metres that a motion keeps, or half of what its path does
_SPACING = 0.02  # radians between configurations of the path of which that is measured
_PERIOD = 0.02  # seconds between samples that are checked
TIMING_RESOLUTION = 0.01
"""Joint motion between the configurations at which a timed motion is checked [rad]."""

TIMING_TRAVEL = 0.003
"""Travel of the tool between these [m]."""

# before an arm stops at the corner that is to blame, and before it stops at each
_TRIES, _ATTEMPTS = 4, 10


@dataclass(frozen=True, eq=False)
class Piece:
    """A segment that moves, in its place: step and index from 1, scene version and configuration before it."""

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
        """Whether the fingers are where they are to be."""
        names, fingers = self.scene.joint_names, self.segment.gripper.items()
        return all(abs(self.q[names.index(joint)] - value) < 1e-9 for joint, value in fingers)

    def full(self, rows: _Array) -> Configuration:
        """Return configurations (m, n_joints) with values of the joints that move."""
        names = self.scene.joint_names
        q = np.repeat(
            self.scene.configuration(dict(self.segment.gripper), base=self.q)[None],
            len(rows),
            axis=0,
        )
        q[:, [names.index(name) for name in self.joint_names]] = rows
        return q


def plan_runs(
    plan: Plan, steps: Iterable[int], *, rests: Collection[SegmentKind] = ()
) -> Iterator[list[Piece]]:
    """Yield the pieces of each motion from rest to rest.

    Args:
        plan: the plan.
        steps: indices of successive steps, from 1.
        rests: kinds of segments after which the arm rests anyway.
    """
    return _runs(_plan_pieces(plan, steps), rests)


def step_runs(
    step: PlanStep, scene: SceneGraph, *, robots: Iterable[Manipulator]
) -> Iterator[list[Piece]]:
    """Yield the pieces of each motion of a step from rest to rest, as if it began in a scene with the same joints."""
    arms = {arm.name: arm for arm in robots}
    return _runs(
        (
            _piece(0, 0, part, arms[part.arm], scene, scene.configuration(dict(part.gripper)))
            for part in step.segments
        ),
        (),
    )


def _plan_pieces(plan: Plan, steps: Iterable[int]) -> Iterator[Piece | None]:
    """Yield a piece for each segment, and None where no motion goes on."""
    for number in steps:
        step, before = plan.steps[number - 1], plan.steps[number - 2] if number > 1 else plan
        scene, q = before.scene, np.asarray(before.q)
        for index, segment in enumerate(step.segments, start=1):
            yield _piece(number, index, segment, plan.arm(segment.arm), scene, q)
            scene, q = segment.end(scene, q)
        if step.observations or not step.segments:
            yield None


def _runs(pieces: Iterable[Piece | None], rests: Collection[SegmentKind]) -> Iterator[list[Piece]]:
    run: list[Piece] = []
    for piece in pieces:
        if run and (piece is None or not _continues(run[-1], piece, rests)):
            yield run
            run = []
        if piece is not None and (piece.segment.kind not in _HAND or len(piece.path) > 1):
            run.append(piece)
    if run:
        yield run


def _piece(
    step: int, index: int, segment: Segment, arm: Manipulator, scene: SceneGraph, q: Configuration
) -> Piece:
    others = [name for name in segment.joint_names if name not in arm.joints]
    names = (*arm.joints, *others)
    share = _SHARES.get(segment.kind, 1.0)
    speeds = np.array([_mechanism_speed(scene, name) for name in others])
    return Piece(
        step,
        index,
        segment,
        arm,
        scene,
        np.asarray(q),
        names,
        np.asarray(segment.path, dtype=float)[
            :, [segment.joint_names.index(name) for name in names]
        ],
        share * np.concatenate([arm.velocity_limits(scene), speeds]),
        np.concatenate([arm.acceleration_limits(scene), 2.0 * speeds]),
    )


def _mechanism_speed(scene: SceneGraph, joint: str) -> float:
    """Return how fast a joint may be moved by its handle, m/s or rad/s: the scene's limit, but not faster than ours."""
    limit = float(scene.velocity_limits[scene.joint_names.index(joint)])
    own = (
        _SLIDE_SPEED if scene.joint(scene.joint_frame(joint)).type == "prismatic" else _HINGE_SPEED
    )
    return min(limit, own) if limit > 0.0 else own


def _continues(before: Piece, piece: Piece, rests: Collection[SegmentKind]) -> bool:
    """Return whether an arm need not stop between two successive pieces."""
    return (
        before.arm.name == piece.arm.name
        and before.segment.kind not in (*_APART, *_TO_CONTACT, *rests)
        and piece.segment.kind not in (*_APART, *_FROM_CONTACT)
        and before.is_hand_constant
        and piece.is_hand_constant
        and bool(np.max(np.abs(before.path[-1] - piece.path[0])) < 1e-9)
    )


def blend_run(run: list[Piece], *, is_checked: bool = True) -> BlendedPath:
    """Return one motion along pieces, from rest to rest, that keeps what each piece has to keep.

    Args:
        run: the pieces.
        is_checked: whether that is checked; if not, it is as if nothing were in the way.

    Raises:
        ConfigurationError: gravity alone exceeds an effort limit.
    """
    check, first = RunCheck(run), run[0]
    blended = _blended(check, None, is_checked)
    # it holds the same all along
    torques = TorqueLimits(first.scene, first.arm, first.full(first.path[:1])[0])
    if not np.isfinite(torques.limits).any() or blended.torque_share(torques) <= 1.0:
        return blended
    for piece in run:
        if (fault := torques.gravity_fault(piece.path)) is not None:
            raise ConfigurationError(f"step {piece.step}, {piece.segment.kind.value}: {fault}")
    return _blended(check, torques, is_checked)


def _blended(check: RunCheck, torques: TorqueLimits | None, is_checked: bool) -> BlendedPath:
    run, path, at, allowed = check.run, check.path, check.at, np.full(len(check.path), DEVIATION)
    for piece, first, last in zip(run, check.rows[:-1], check.rows[1:], strict=True):
        own = allowed[first : last + 1]
        own[:] = np.minimum(own, _DEVIATIONS.get(piece.segment.kind, DEVIATION))
        own[check.near(piece, piece.path)] = _NEAR_DEVIATION
    if is_checked:
        allowed[[row for number, row in enumerate(check.rows[1:-1]) if check.is_narrow(number)]] = (
            0.0
        )
    if torques is not None and torques.gravity_fault(path, share=_TIGHT):
        allowed = np.minimum(allowed, _LEAST)
    reach = _REACH
    for attempt in range(_ATTEMPTS + 1):
        blended = blend_path(
            path,
            run[0].speeds,
            acceleration_limits=run[0].accelerations,
            deviation=allowed,
            torques=torques,
        )
        faults = (
            check.faults(blended) if is_checked and attempt < _ATTEMPTS and len(path) > 2 else []
        )
        if not faults:
            break
        if attempt == _ATTEMPTS - 1:
            allowed[:] = 0.0
        for fault in faults:
            away = np.abs(at - fault)[1:-1]
            blamed = 1 + np.flatnonzero(away <= max(reach, float(np.min(away))))
            allowed[blamed] = np.where(
                allowed[blamed] > 0.0, np.maximum(allowed[blamed] * _LESS, _LEAST), 0.0
            )
            if attempt >= _TRIES:
                allowed[1 + np.argmin(away)] = 0.0
        reach *= _LESS
    return blended


class RunCheck:
    """The path of a run, and what its pieces have to keep."""

    def __init__(self, run: list[Piece]) -> None:
        self.run = run
        self.path = np.concatenate([run[0].path, *(piece.path[1:] for piece in run[1:])])
        # where pieces begin and end
        self.rows = [0, *np.cumsum([len(piece.path) - 1 for piece in run]).tolist()]
        self.at = np.concatenate([[0.0], np.cumsum(norms(np.diff(self.path, axis=0)))])
        self.ends = self.at[self.rows]
        self._worlds: list[tuple[CollisionWorld, bool]] = []

    def faults(self, blended: BlendedPath) -> list[float]:
        """Return where along the path a motion does not keep what it has to, at one place for each piece at least."""
        times = np.linspace(0.0, blended.duration, max(3, int(blended.duration / _PERIOD)))
        between = np.interp(self.ends[1:-1], blended.sample(times)[3], times)
        q, _, _, along = blended.sample(np.sort(np.concatenate([times, between])))
        found = []
        for number, piece in enumerate(self.run):
            rows = (along >= self.ends[number] - 1e-3) & (along <= self.ends[number + 1] + 1e-3)
            found += self._piece_faults(number, piece, q[rows], along[rows])
        return found

    def _piece_faults(self, number: int, piece: Piece, arm: _Array, along: _Array) -> list[float]:
        q = piece.full(arm)
        if not len(q):
            return []
        wrong = self.strays(piece, q)
        for constraint in piece.segment.constraints:
            wrong |= constraint.values(piece.scene, q) > constraint.tolerance
        result = recheck_path(
            self._world(number)[0],
            q,
            resolution=TIMING_RESOLUTION,
            tool_frame=piece.arm.tool,
            tool_travel=TIMING_TRAVEL,
        )
        if not result.is_ok and result.q is not None:
            wrong[np.argmin(np.max(np.abs(q - result.q), axis=1))] = True
        return [float(distance) for distance in along[wrong]]

    def is_narrow(self, number: int) -> bool:
        """Return whether what moves is near something else where a piece ends."""
        return self._world(number)[1]

    def _world(self, number: int) -> tuple[CollisionWorld, bool]:
        """Return what keeps a clearance, or half of that of the piece's path, and whether it ends near something."""
        while len(self._worlds) <= number:
            piece, source = (
                self.run[len(self._worlds)],
                self._worlds[-1][0] if self._worlds else None,
            )
            scene, segment = piece.scene, piece.segment
            if segment.kind is SegmentKind.PUSH and segment.held is not None:
                scene = scene.reparent(segment.held, piece.arm.tip, q=piece.q)
            rules, moved = CollisionRules(piece.arm), moved_frames(scene, piece.arm)
            world = rules.world(
                scene, segment.allowed_contacts, margin=2.0 * _CLEARANCE, source=source
            )
            contacts = world.contacts_batch(interpolated(piece.full(piece.path), _SPACING))
            least: dict[tuple[str, str], float] = {}
            for contact in chain(*contacts):
                pair = contact.frame_a, contact.frame_b
                least[pair] = min(least.get(pair, np.inf), contact.distance)
            near = [
                AllowedContact.of(
                    *pair,
                    penetration=-0.5 * distance if distance > 0.0 else TOUCHING,
                    reason="it is near",
                )
                for pair, distance in least.items()
            ]
            world = rules.world(
                scene, (*segment.allowed_contacts, *near), margin=_CLEARANCE, source=world
            )
            narrow = [contact for contact in contacts[-1] if contact.distance < _CLEARANCE]
            is_narrow = any(
                (contact.frame_a in moved) != (contact.frame_b in moved) for contact in narrow
            )
            self._worlds.append((world, is_narrow))
        return self._worlds[number]

    def near(self, piece: Piece, rows: _Array) -> NDArray[np.bool_]:
        """Return at which values (k, n) of its joints the tool is near the contact of a piece, if it has one."""
        poses, contact = self._tool(piece, piece.full(rows))
        near: NDArray[np.bool_] = np.zeros(len(poses), dtype=bool)
        return near if contact is None else norms(poses[:, :3] - contact[:3]) <= _NEAR

    def straight(
        self, blended: BlendedPath, ends: Sequence[float]
    ) -> tuple[tuple[float, float] | None, ...]:
        """Return for each piece the seconds between which the tool is near its contact, or None."""
        times = np.linspace(0.0, blended.duration, max(3, int(blended.duration / _PERIOD)))
        q, found = blended.sample(times)[0], list[tuple[float, float] | None]()
        for piece, begin, end in zip(self.run, [0.0, *ends], ends, strict=False):
            rows = (times >= begin) & (times <= end)
            near = times[rows][self.near(piece, q[rows])]
            parts = (
                (begin, float(near.max(initial=begin)) + _PERIOD),
                (float(near.min(initial=end)) - _PERIOD, end),
            )
            first, last = parts[piece.segment.kind in _TO_CONTACT]
            found.append((max(first, begin), min(last, end)) if len(near) else None)
        return tuple(found)

    def strays(self, piece: Piece, q: Configuration) -> NDArray[np.bool_]:
        """Return at which configurations near the contact of a piece the tool is off its straight line."""
        poses, contact = self._tool(piece, q)
        if contact is None:
            return np.zeros(len(q), dtype=bool)
        ends, _ = self._tool(piece, piece.full(piece.path[[0, -1]]))
        line = ends[1, :3] - ends[0, :3]
        line = line / max(float(norms(line)), 1e-12)
        offset = poses[:, :3] - contact[:3]
        stray = norms(offset - np.sum(offset * line, axis=1)[:, None] * line)
        cosine = np.sum(poses[:, 3:] * contact[3:], axis=1)  # of half of the angle
        turn = 2.0 * np.sqrt((1.0 - cosine**2).clip(0.0))
        result: NDArray[np.bool_] = (norms(offset) <= _NEAR) & (
            (stray > _STRAIGHT) | (turn > _TURN)
        )
        return result

    def _tool(self, piece: Piece, q: Configuration) -> tuple[_Array, _Array | None]:
        """Return the poses (m, 7) of the tool, and the one in contact of a piece that has one."""
        kind = piece.segment.kind
        if kind not in (*_TO_CONTACT, *_FROM_CONTACT):
            return np.zeros((len(q), 7)), None
        contact = piece.full(piece.path[[-1 if kind in _TO_CONTACT else 0]])
        poses = piece.scene.pose_batch(piece.arm.tool, q=np.concatenate([q, contact]))
        return poses[:-1], poses[-1]


def plan_tracks(plan: Plan) -> list[tuple[float, tuple[int, ...]]]:
    """Return which steps, from 1, make one motion after the other, and the second at which each such track starts."""
    numbers = range(1, len(plan.steps) + 1)
    if not plan.starts:
        return [(0.0, tuple(numbers))] if numbers else []
    groups: list[tuple[float, list[int]]] = []
    for number, joined in zip(numbers, plan.joined or (0,) * len(numbers), strict=True):
        owner = next((group for _, group in groups if joined and group[-1] == joined), None)
        if owner is None:
            groups.append((plan.starts[number - 1], [number]))
        else:
            owner.append(number)
    return [(start, tuple(group)) for start, group in groups]


def plan_motions(plan: Plan) -> tuple[PlannedMotion, ...]:
    """Return the motions of a plan from rest to rest; those of a schedule track by track.

    They are computed once for a plan, or read from its file.

    Raises:
        ConfigurationError: gravity alone exceeds an effort limit of an arm.
    """
    return tuple(
        planned_motion(plan, run)
        for _, steps in plan_tracks(plan)
        for run in plan_runs(plan, steps)
    )


def planned_motion(plan: Plan, run: list[Piece]) -> PlannedMotion:
    """Return the motion of a run of a plan, which keeps it."""
    segments = tuple((piece.step, piece.index) for piece in run)
    if segments not in plan._motions:
        plan._keep_timing({segments: _planned(segments, run)})
    return plan._motions[segments]


def _planned(segments: tuple[tuple[int, int], ...], run: list[Piece]) -> PlannedMotion:
    blended, check = blend_run(run), RunCheck(run)
    times = np.linspace(0.0, blended.duration, max(3, int(blended.duration / _PERIOD)))
    ends = [
        *np.interp(check.ends[1:-1], blended.sample(times)[3], times).tolist(),
        blended.duration,
    ]
    return PlannedMotion(segments, blended, tuple(ends), check.straight(blended, ends))


def timed_run(plan: Plan, run: list[Piece], *, rate: float) -> list[TimedPath]:
    """Return the samples of each piece of a run; the last of one is the first of the next."""
    motion = planned_motion(plan, run)
    timed = motion.blended.timed(rate)
    bounds = (
        np.ceil(np.array([0.0, *motion.ends]) * rate - 1e-9)
        .astype(int)
        .clip(0, len(timed.positions) - 1)
    )
    return [
        TimedPath(
            timed.positions[first : last + 1],
            timed.velocities[first : last + 1],
            timed.accelerations[first : last + 1],
            timed.period,
        )
        for first, last in pairwise(bounds)
    ]
