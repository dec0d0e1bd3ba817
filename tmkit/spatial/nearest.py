"""The rotation nearest to a matrix that is almost one, and how far away that is.

Matrices of files and of other programs are rotations to a few digits. Nothing here corrects one in passing: the library
refuses it, and this function is for whoever decides that the distance is small enough.

Source: the orthogonal Procrustes problem; Horn, Hilden, Negahdaripour, "Closed-form solution of absolute orientation
using orthonormal matrices", JOSA A, 1988.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SceneError
from tmkit.spatial.plain import plain_numbers, read_only


class NearestRotation(NamedTuple):
    """A rotation and how far it is from the matrix.

    Attributes:
        rotation: (3, 3), read-only.
        distance: Frobenius norm of the difference of the two.
    """

    rotation: NDArray[np.float64]
    distance: float


def nearest_rotation(matrix: ArrayLike, *, tolerance: float = 0.1) -> NearestRotation:
    """Return the rotation nearest to a matrix, by the Frobenius norm.

    Args:
        matrix: (3, 3).
        tolerance: the greatest distance that is accepted. A reflection is at least 2 away from every rotation.

    Raises:
        SceneError: another shape, numbers that are not finite, or a matrix farther away, which the message says.
    """
    given = plain_numbers(matrix, "a rotation matrix")
    if given.shape != (3, 3) or not np.isfinite(given).all():
        raise SceneError(f"a rotation matrix has shape (3, 3) and finite numbers, not shape {given.shape}: {given}")
    left, _, right = np.linalg.svd(given)
    side = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    rotation = (left * side) @ right
    distance = float(np.linalg.norm(given - rotation))
    if not distance <= tolerance:
        kind = "a reflection" if np.linalg.det(given) < 0.0 else "no rotation"
        raise SceneError(f"the matrix is {kind}: the nearest rotation is {distance:.3g} away, beyond {tolerance:g}")
    return NearestRotation(read_only(rotation), distance)
