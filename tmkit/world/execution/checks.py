"""Comparisons of measured joint values with planned ones, and their messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Array = NDArray[np.float64]

REST_PERIOD = 0.1
"""Time in which the joints of an arm at rest keep their values [s]."""


def position_fault(
    joints: Sequence[str], positions: _Array, target: _Array, tolerances: ArrayLike
) -> str:
    """Return which joint is off its target the most; empty if all are within tolerances.

    Args:
        joints: names of n joints.
        positions: (n,) measured values [rad or m].
        target: (n,) planned values [rad or m].
        tolerances: (n,) largest differences [rad or m].
    """
    limits = np.asarray(tolerances, dtype=float)
    distances = np.abs(positions - target)
    worst = int(np.argmax(distances / limits))
    if distances[worst] <= limits[worst]:
        return ""
    return (
        f"joint '{joints[worst]}' is {distances[worst]:.4f} from {target[worst]:.4f}"
        f" (tolerance {limits[worst]:g})"
    )


def path_fault(joints: Sequence[str], distances: _Array, tolerance: float) -> str:
    """Return which joint is off its path the most; empty if all are within a tolerance.

    Args:
        joints: names of n joints.
        distances: (n,) differences from the nearest configuration of the path [rad or m].
        tolerance: largest difference [rad or m].
    """
    worst = int(np.argmax(distances))
    if distances[worst] <= tolerance:
        return ""
    return (
        f"joint '{joints[worst]}' is {distances[worst]:.4f} from its path (tolerance {tolerance:g})"
    )


def nearest_distances(path: _Array, positions: _Array) -> _Array:
    """Return the differences (n,) of joints from the nearest configuration of a path.

    Args:
        path: (k, n) configurations [rad or m].
        positions: (n,) measured values [rad or m].
    """
    differences = np.abs(path - positions)
    nearest: _Array = differences[np.max(differences, axis=1).argmin()]
    return nearest
