"""Validation of timed motions: joint limits at 1 kHz, and the conditions on paths."""

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

_MAX_MOTION_SAMPLES = 200_000
"""Largest number of samples of a motion, 1 ms apart if that is enough."""

_COLLISION_STRIDE = 20
"""Number of samples per collision check."""

_TORQUE_STRIDE = 4
"""Number of samples per torque check."""

_LIMIT_FACTOR = 1.001
"""Accepted fraction of a limit, which may be exceeded between the samples of the planner."""

_END_TOLERANCE = 2e-3
"""Largest distance along the path between the end of a segment and its time [rad]."""

_TIME_TOLERANCE = 0.05
"""Largest error of the times of a straight line [s]."""


def timing_faults(plan: Plan, rules: CollisionRules) -> Iterator[str]:
    """Yield the faults of the timed motions that a plan stores.

    Args:
        plan: plan whose steps are valid in sequence.
        rules: allowed contacts.
    """
    for _, steps in plan_tracks(plan):
        for run in plan_runs(plan, steps):
            motion = plan._motions.get(tuple((piece.step, piece.index) for piece in run))
            if motion is not None:
                name = f"the motion from step {run[0].step}, {run[0].segment.kind.value}, on"
                yield from (f"{name}: {fault}" for fault in _motion_faults(run, motion, rules))


def _motion_faults(run: list[Piece], motion: PlannedMotion, rules: CollisionRules) -> Iterator[str]:
    """Yield the faults of a timed motion: limits, path, times of its segments, and collisions."""
    blended, check, first = motion.blended, RunCheck(run), run[0]
    count = int(min(max(np.ceil(blended.duration * 1000.0), 2.0), _MAX_MOTION_SAMPLES)) + 1
    times = np.linspace(0.0, blended.duration, count)
    q, v, a, distances = blended.sample(times)
    jerks = np.diff(a, axis=0) / max(times[1], 1e-9)
    torques = TorqueLimits(first.scene, first.arm, first.configurations(first.path[:1])[0])
    stride = slice(None, None, _TORQUE_STRIDE)
    efforts = torques.torques(q[stride], v[stride], a[stride])
    for name, rows, limits in (
        ("speed", v, first.speeds),
        ("acceleration", a, first.accelerations),
        ("jerk", jerks, first.accelerations / JERK_TIME),
        ("effort", efforts, torques.limits),
    ):
        fractions = np.max(np.abs(rows), axis=0) / limits
        if not np.max(fractions) <= _LIMIT_FACTOR:
            joint = first.joint_names[int(np.argmax(fractions))]
            yield f"joint '{joint}' reaches {np.max(fractions):.4g} times its {name} limit"
    line = np.stack(
        [np.interp(distances, blended.distances, column) for column in blended.polyline.T], axis=1
    )
    if not np.max(np.sqrt(np.sum(np.square(q - line), axis=1))) <= _LIMIT_FACTOR * DEVIATION:
        yield "it deviates from its path"
    ends = np.interp(motion.ends, times, distances)
    if not np.max(np.abs(ends - check.ends[1:])) <= _END_TOLERANCE:
        yield "segments end at other points than on its path"
    for piece, begin, end, stored_interval, interval in zip(
        run,
        (0.0, *motion.ends),
        motion.ends,
        motion.straight,
        check.contact_intervals(blended, motion.ends),
        strict=False,
    ):
        error = np.max(np.abs(np.subtract(stored_interval or 0.0, interval or 0.0)))
        if (stored_interval is None) != (interval is None) or error > _TIME_TOLERANCE:
            yield (
                f"during {piece.segment.kind.value}, the tool is near a contact at other times than"
                " those in the plan"
            )
        rows = piece.configurations(q[(times >= begin) & (times <= end)][::_COLLISION_STRIDE])
        yield from (
            f"during {piece.segment.kind.value}, {fault}"
            for fault in _sample_faults(piece, rows, check, rules)
        )


def _sample_faults(
    piece: Piece, rows: np.ndarray, check: RunCheck, rules: CollisionRules
) -> Iterator[str]:
    """Yield the faults of sampled configurations (m, n_joints) of a segment."""
    scene, segment = piece.scene, piece.segment
    if not len(rows):
        return
    if np.any(check.is_off_line(piece, rows)):
        yield "the tool deviates from its straight line near a contact"
    for constraint in segment.constraints:
        if np.max(constraint.values(scene, rows)) > constraint.tolerance:
            yield f"it violates a path constraint: {constraint}"
    if segment.kind is SegmentKind.PUSH and segment.held is not None:
        scene = scene.reparent(segment.held, piece.arm.tip, q=rows[0])
    world = rules.for_arm(segment.arm).check_world(scene, segment.allowed_contacts)
    result = recheck_path(
        world,
        rows,
        resolution=TIMING_RESOLUTION,
        tool_frame=piece.arm.tool,
        tool_travel=TIMING_TRAVEL,
    )
    if result.pair is not None:
        yield f"'{result.pair[0]}' and '{result.pair[1]}' collide"
    elif not result.is_ok:
        yield f"joint '{result.joint}' is outside its limits"
