"""Validating the timing of motions that a plan has: limits at 1 kHz, and all that paths have to keep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tmkit.motion import CollisionRules, TorqueLimits, recheck_path
from tmkit.motion.timing import JERK_TIME
from tmkit.plans.motion_timing import (
    DEVIATION,
    TIMING_RESOLUTION,
    TIMING_TRAVEL,
    Piece,
    RunCheck,
    plan_runs,
    plan_tracks,
)
from tmkit.plans.values import Plan, PlannedMotion, SegmentKind

_MOST = 200_000  # samples of a motion, 1 ms apart if that is enough
_COARSE, _TORQUES = 20, 4  # samples of which one is checked for collisions, and for torques
_EXCESS = 1.001  # of limits, between samples
_ALONG = 2e-3  # radians by which a segment may end elsewhere
_SECONDS = 0.05  # by which the time of a straight line may be off


def timing_faults(plan: Plan, rules: CollisionRules) -> Iterator[str]:
    """Yield what is wrong with the motions that a plan keeps; none where it keeps none.

    Args:
        plan: the plan, whose steps are valid one after the other.
        rules: what may touch in it.
    """
    for _, steps in plan_tracks(plan):
        for run in plan_runs(plan, steps):
            motion = plan._motions.get(tuple((piece.step, piece.index) for piece in run))
            if motion is not None:
                where = f"the motion from step {run[0].step}, {run[0].segment.kind.value}, on"
                yield from (f"{where}: {fault}" for fault in _motion_faults(run, motion, rules))


def _motion_faults(run: list[Piece], motion: PlannedMotion, rules: CollisionRules) -> Iterator[str]:
    blended, check, first = motion.blended, RunCheck(run), run[0]
    count = int(min(max(np.ceil(blended.duration * 1000.0), 2.0), _MOST)) + 1
    times = np.linspace(0.0, blended.duration, count)
    q, v, a, along = blended.sample(times)
    jerks = np.diff(a, axis=0) / max(times[1], 1e-9)
    torques = TorqueLimits(first.scene, first.arm, first.configurations(first.path[:1])[0])
    efforts = torques.torques(q[::_TORQUES], v[::_TORQUES], a[::_TORQUES])
    for name, rows, limits in (
        ("speed", v, first.speeds),
        ("acceleration", a, first.accelerations),
        ("jerk", jerks, first.accelerations / JERK_TIME),
        ("effort", efforts, torques.limits),
    ):
        shares = np.max(np.abs(rows), axis=0) / limits
        if not np.max(shares) <= _EXCESS:
            joint = first.joint_names[int(np.argmax(shares))]
            yield f"joint '{joint}' takes {np.max(shares):.4g} of its limit of {name}"
    line = np.stack(
        [np.interp(along, blended.distances, column) for column in blended.polyline.T], axis=1
    )
    if not np.max(np.sqrt(np.sum(np.square(q - line), axis=1))) <= _EXCESS * DEVIATION:
        yield "it leaves its path"
    ends = np.interp(motion.ends, times, along)
    if not np.max(np.abs(ends - check.ends[1:])) <= _ALONG:
        yield "segments do not end where its path has them"
    for piece, begin, end, said, near in zip(
        run,
        (0.0, *motion.ends),
        motion.ends,
        motion.straight,
        check.contact_intervals(blended, motion.ends),
        strict=False,
    ):
        if (said is None) != (near is None) or np.max(
            np.abs(np.subtract(said or 0.0, near or 0.0))
        ) > _SECONDS:
            yield (
                f"during {piece.segment.kind.value}, the tool is near a contact at other times than"
                " it has"
            )
        rows = piece.configurations(q[(times >= begin) & (times <= end)][::_COARSE])
        yield from (
            f"during {piece.segment.kind.value}, {fault}"
            for fault in _faults(piece, rows, check, rules)
        )


def _faults(
    piece: Piece, rows: np.ndarray, check: RunCheck, rules: CollisionRules
) -> Iterator[str]:
    scene, segment = piece.scene, piece.segment
    if not len(rows):
        return
    if np.any(check.is_off_line(piece, rows)):
        yield "the tool leaves its straight line near a contact"
    for constraint in segment.constraints:
        if np.max(constraint.values(scene, rows)) > constraint.tolerance:
            yield f"it violates a path constraint: {constraint}"
    if segment.kind is SegmentKind.PUSH and segment.held is not None:
        scene = scene.reparent(segment.held, piece.arm.tip, q=rows[0])
    world = rules.for_arm(segment.arm).check_world(scene, segment.allowed_contacts)
    found = recheck_path(
        world,
        rows,
        resolution=TIMING_RESOLUTION,
        tool_frame=piece.arm.tool,
        tool_travel=TIMING_TRAVEL,
    )
    if found.pair is not None:
        yield f"'{found.pair[0]}' and '{found.pair[1]}' collide"
    elif not found.is_ok:
        yield f"joint '{found.joint}' is outside its limits"
