"""Data association: which measurement is of which object."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tmkit.errors import SceneError
from tmkit.spatial.plain import plain_numbers

_LARGE = 1e12  # a cost that counts as infinite


def associate(costs: ArrayLike, *, gate: float = _LARGE) -> list[tuple[int, int]]:
    """Return pairs (row, column): as many as possible within a gate, and of these with the least sum of costs.

    It is global nearest neighbour association (Bar-Shalom, Li and Kirubarajan, 2001) by the Hungarian method, O(n^3).

    Args:
        costs: (rows, columns), such as squared Mahalanobis distances of measurements from objects; infinite where a
            pair is impossible.
        gate: the largest cost of a pair.

    Raises:
        SceneError: costs that are no matrix of numbers of at least 0.
    """
    from scipy.optimize import linear_sum_assignment

    matrix = plain_numbers(costs, "costs")
    if matrix.size == 0:
        return []
    if matrix.ndim != 2 or not (matrix >= 0.0).all():
        raise SceneError(f"costs are a matrix of numbers of at least 0, not {costs!r:.80}")
    is_possible = matrix <= min(gate, _LARGE)
    largest = float(np.max(matrix, where=is_possible, initial=0.0))
    forbidden = (largest + 1.0) * (min(matrix.shape) + 1)  # more than all others together
    rows, columns = linear_sum_assignment(np.where(is_possible, matrix, forbidden))
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True) if is_possible[r, c]]
