"""The motions of a plan as plain values of its file.

A blended motion is a function of its path and a few numbers for each part from rest to rest: the widths of its
roundings, the speeds along its grid, and the seconds of its mean. These are in the file, and what is read is the same
motion to the bit, at every rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError
from tmkit.formats.json.reading import JsonNode
from tmkit.motion.timing import restored_path
from tmkit.plans.motion_timing import RunCheck, plan_motions, plan_runs, plan_tracks
from tmkit.plans.values import Plan, PlannedMotion

_SAME = 1e-6  # seconds by which the end of a motion may be off


def timing_to_list(plan: Plan) -> list[dict[str, Any]]:
    """Return the motions of a plan as plain values; none where an effort limit allows no timing."""
    try:
        motions = plan_motions(plan)
    except ConfigurationError:
        return []
    return [
        {
            "segments": [list(segment) for segment in motion.segments],
            "parts": [
                {"point": row, "widths": part.widths.tolist(), "speeds": part.speed.tolist(), "mean": part.mean}
                for row, part in zip(motion.blended.rows, motion.blended.parts, strict=True)
            ],
            "ends": list(motion.ends),
            "straight": [None if bounds is None else list(bounds) for bounds in motion.straight],
        }
        for motion in motions
    ]


def read_timing(node: JsonNode, plan: Plan) -> None:
    """Give a plan the motions of its file."""
    runs = [run for _, steps in plan_tracks(plan) for run in plan_runs(plan, steps)]
    items = list(node.items())
    if len(items) != len(runs):
        raise node.error(f"expected {len(runs)} motions from rest to rest, received {len(items)}")
    for item, run in zip(items, runs, strict=True):
        item.only("ends", "parts", "segments", "straight")
        segments = tuple((piece.step, piece.index) for piece in run)
        if item.get("segments").value != [list(segment) for segment in segments]:
            raise item.get("segments").error(f"expected {[list(segment) for segment in segments]}")
        try:
            blended = restored_path(RunCheck(run).path, [_read_part(part) for part in item.get("parts").items()])
        except ConfigurationError as error:
            raise item.get("parts").error(str(error)) from None
        ends = tuple(end.number() for end in item.get("ends").items())
        is_rising = len(ends) == len(run) and [0.0, *ends] == sorted([0.0, *ends])
        if not is_rising or abs(ends[-1] - blended.duration) > _SAME:
            raise item.get("ends").error(f"expected {len(run)} rising numbers up to {blended.duration}")
        straight = [None if row.value is None else row.numbers(2) for row in item.get("straight").items()]
        if len(straight) != len(run):
            raise item.get("straight").error(f"expected {len(run)} items, received {len(straight)}")
        kept = tuple(None if bounds is None else (bounds[0], bounds[1]) for bounds in straight)
        plan._motions[segments] = PlannedMotion(segments, blended, ends, kept)


def _read_part(node: JsonNode) -> tuple[int, NDArray[np.float64], NDArray[np.float64], float]:
    node.only("mean", "point", "speeds", "widths")
    widths, speeds = (np.array([item.number() for item in node.get(key).items()]) for key in ("widths", "speeds"))
    return node.get("point").integer(), widths, speeds, node.get("mean").number()
