"""Timing of a plan in its file.

A blended motion depends on its path and on a few numbers for each part from rest to rest. These are
the widths of the rounded corners, the speeds along a grid, and the mean time. The file contains
these numbers, and reading them restores the same motion bit by bit, at every rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError, TmkitError
from tmkit.formats.json.reading import JsonNode
from tmkit.motion.timing import restore_path
from tmkit.plans.motion_timing import RunCheck, plan_motions, plan_runs, plan_tracks
from tmkit.plans.values import Plan, PlannedMotion

_Part = tuple[int, NDArray[np.float64], NDArray[np.float64], float]
"""Index of the first row, widths, speeds and mean of a part from rest to rest."""

_Segments = tuple[tuple[int, int], ...]
"""Step and index, from 1, of each segment of a motion."""

_Straight = tuple[tuple[float, float] | None, ...]
"""Interval near a contact for each segment of a motion [s]."""

_MAX_END_ERROR = 1e-6
"""Largest difference between the stored and the restored end of a motion [s]."""


def timing_to_list(plan: Plan) -> list[dict[str, Any]]:
    """Return the motions of a plan in types of JSON.

    The list is empty if an effort limit or an invalid path prevents the timing.
    """
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
                for row, part in zip(motion.blended.start_rows, motion.blended.parts, strict=True)
            ],
            "ends": list(motion.ends),
            "straight": [None if bounds is None else list(bounds) for bounds in motion.straight],
        }
        for motion in motions
    ]


def read_timing(node: JsonNode, plan: Plan) -> tuple[dict[_Segments, PlannedMotion], list[str]]:
    """Return the motions of a file, and the reasons why other motions do not fit the paths.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    motions: dict[_Segments, PlannedMotion] = {}
    stored_motions = [_read_motion(item) for item in node.items()]
    try:
        runs = [run for _, steps in plan_tracks(plan) for run in plan_runs(plan, steps)]
        run_segments = [tuple((piece.step, piece.index) for piece in run) for run in runs]
        if [segments for segments, *_ in stored_motions] != run_segments:
            return motions, ["it has other motions from rest to rest than the steps"]
        for run, stored in zip(runs, stored_motions, strict=True):
            segments, parts, ends, straight = stored
            blended = restore_path(RunCheck(run).path, parts)
            if abs(ends[-1] - blended.duration) > _MAX_END_ERROR:
                raise ConfigurationError(
                    f"it ends at {ends[-1]} s, its speeds lead to {blended.duration}"
                )
            motions[segments] = PlannedMotion(segments, blended, ends, straight)
    except (TmkitError, ValueError) as error:
        return motions, [str(error)]
    return motions, []


def _read_motion(node: JsonNode) -> tuple[_Segments, list[_Part], tuple[float, ...], _Straight]:
    """Return segments, parts, ends [s] and intervals near contacts of a motion.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    node.require_keys_among("ends", "parts", "segments", "straight")
    pairs = [[item.integer() for item in pair.items()] for pair in node.get("segments").items()]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise node.get("segments").error("expected pairs of a step and a segment")
    count = len(pairs)
    ends = tuple(end.number() for end in node.get("ends").items())
    if len(ends) != count or [0.0, *ends] != sorted([0.0, *ends]):
        raise node.get("ends").error(f"expected {count} rising numbers")
    straight = [
        None if row.value is None else row.numbers(2) for row in node.get("straight").items()
    ]
    if len(straight) != count:
        raise node.get("straight").error(f"expected {count} items, received {len(straight)}")
    parts = [_read_part(part) for part in node.get("parts").items()]
    intervals = tuple(None if row is None else (row[0], row[1]) for row in straight)
    segments = tuple((step, index) for step, index in pairs)
    return segments, parts, ends, intervals


def _read_part(node: JsonNode) -> _Part:
    """Return a part of a motion from rest to rest.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    node.require_keys_among("mean", "point", "speeds", "widths")
    widths = np.array([item.number() for item in node.get("widths").items()])
    speeds = np.array([item.number() for item in node.get("speeds").items()])
    return node.get("point").integer(), widths, speeds, node.get("mean").number()
