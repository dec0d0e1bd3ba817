"""The motions of a plan as plain values of its file.

A blended motion is a function of its path and a few numbers for each part from rest to rest. These
are the widths of its roundings, the speeds along its grid, and the seconds of its mean. These are
in the file, and what is read is the same motion to the bit, at every rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError, TmkitError
from tmkit.formats.json.reading import JsonNode
from tmkit.motion.timing import restored_path
from tmkit.plans.motion_timing import RunCheck, plan_motions, plan_runs, plan_tracks
from tmkit.plans.values import Plan, PlannedMotion

_Part = tuple[int, NDArray[np.float64], NDArray[np.float64], float]
_Segments = tuple[tuple[int, int], ...]
_Straight = tuple[tuple[float, float] | None, ...]

_SAME = 1e-6  # seconds by which the end of a motion may be off


def timing_to_list(plan: Plan) -> list[dict[str, Any]]:
    """Return the motions of a plan as plain values; none where an effort limit or a broken path allows no timing."""
    try:
        motions = plan_motions(plan)
    except (TmkitError, ValueError):
        return []
    return [
        {
            "segments": [list(segment) for segment in motion.segments],
            "parts": [
                {
                    "point": row,
                    "widths": part.widths.tolist(),
                    "speeds": part.speed.tolist(),
                    "mean": part.mean,
                }
                for row, part in zip(motion.blended.rows, motion.blended.parts, strict=True)
            ],
            "ends": list(motion.ends),
            "straight": [None if bounds is None else list(bounds) for bounds in motion.straight],
        }
        for motion in motions
    ]


def read_timing(node: JsonNode, plan: Plan) -> tuple[dict[_Segments, PlannedMotion], list[str]]:
    """Return the motions of a plan's file, and the reasons for which others do not fit its paths."""
    motions: dict[_Segments, PlannedMotion] = {}
    read = [_read_motion(item) for item in node.items()]
    try:
        runs = [run for _, steps in plan_tracks(plan) for run in plan_runs(plan, steps)]
        found = [tuple((piece.step, piece.index) for piece in run) for run in runs]
        if [segments for segments, *_ in read] != found:
            return motions, ["it has other motions from rest to rest than the steps"]
        for run, (segments, parts, ends, straight) in zip(runs, read, strict=True):
            blended = restored_path(RunCheck(run).path, parts)
            if abs(ends[-1] - blended.duration) > _SAME:
                raise ConfigurationError(
                    f"it ends at {ends[-1]} s, its speeds lead to {blended.duration}"
                )
            motions[segments] = PlannedMotion(segments, blended, ends, straight)
    except (TmkitError, ValueError) as error:
        return motions, [str(error)]
    return motions, []


def _read_motion(node: JsonNode) -> tuple[_Segments, list[_Part], tuple[float, ...], _Straight]:
    node.require_keys_among("ends", "parts", "segments", "straight")
    pairs = [[item.integer() for item in pair.items()] for pair in node.get("segments").items()]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise node.get("segments").error("expected pairs of a step and a segment")
    ends, count = tuple(end.number() for end in node.get("ends").items()), len(pairs)
    if len(ends) != count or [0.0, *ends] != sorted([0.0, *ends]):
        raise node.get("ends").error(f"expected {count} rising numbers")
    straight = [
        None if row.value is None else row.numbers(2) for row in node.get("straight").items()
    ]
    if len(straight) != count:
        raise node.get("straight").error(f"expected {count} items, received {len(straight)}")
    parts = [_read_part(part) for part in node.get("parts").items()]
    times = tuple(None if row is None else (row[0], row[1]) for row in straight)
    return tuple((step, index) for step, index in pairs), parts, ends, times


def _read_part(node: JsonNode) -> _Part:
    node.require_keys_among("mean", "point", "speeds", "widths")
    widths, speeds = (
        np.array([item.number() for item in node.get(key).items()]) for key in ("widths", "speeds")
    )
    return node.get("point").integer(), widths, speeds, node.get("mean").number()
