"""Covariance matrices of any size: what is one, its square root, and the order of its parts.

Every covariance of tmkit is symmetric positive semi-definite, and zero or rank-deficient ones are ordinary: an exact
pose has zero. So roots are taken by eigenvectors, which need no full rank, and who needs an inverse asks first
whether there is one.

What is let pass as rounding: entries that differ from their mirror image by 1e-9 of the greatest entry, and eigenvalues
down to -1e-9 of the greatest. All else is refused, with the eigenvalues named; a covariance from a file with six digits
that was rank-deficient may so have to be mended by whoever wrote it, as nothing here clamps silently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SceneError

__all__ = ["checked_covariance", "covariance_root", "inverse_covariance", "is_singular", "swapped_parts"]

Array = NDArray[np.float64]

_TOLERANCE = 1e-9  # of the greatest entry or eigenvalue
_NEGLIGIBLE = 1e-14  # of the greatest eigenvalue: no direction of its own
_SINGULAR = 1e-12  # of the greatest eigenvalue, each part scaled to unit variances


def checked_covariance(covariance: ArrayLike, size: int | None = None, *, what: str = "covariance") -> Array:
    """Return a covariance as a symmetric read-only array, after checking that it is one.

    Args:
        covariance: (n, n), symmetric positive semi-definite.
        size: the n that is expected, or None for any.
        what: what the message calls it.

    Returns:
        (n, n), exactly symmetric.

    Raises:
        SceneError: another shape, numbers that are not finite, a matrix that is not symmetric within 1e-9 of its
            greatest entry, or with an eigenvalue below -1e-9 of the greatest. The last has the attribute
            ``eigenvalues``, ascending.
    """
    matrix = np.array(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (size is not None and matrix.shape[0] != size):
        expected = "(n, n)" if size is None else f"({size}, {size})"
        raise SceneError(f"{what} must have shape {expected}, not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise SceneError(f"{what} must be finite numbers")
    if matrix.size:
        defect = float(np.abs(matrix - matrix.T).max())
        if defect > _TOLERANCE * float(np.abs(matrix).max()):
            message = f"{what} is not symmetric: two entries that should be equal differ by {defect:.4g}"
            raise SceneError(message)
        matrix = 0.5 * (matrix + matrix.T)
        values = np.linalg.eigvalsh(matrix)
        if values[0] < -_TOLERANCE * max(abs(values[0]), values[-1]):
            listed = ", ".join(f"{value:.4g}" for value in values)
            message = f"{what} is not positive semi-definite: its eigenvalues are [{listed}]"
            raise SceneError(message, eigenvalues=tuple(map(float, values)))
    matrix.flags.writeable = False
    return matrix


def covariance_root(covariance: Array) -> Array:
    """Return L (n, rank) with ``L @ L.T`` the covariance: eigenvectors times roots of eigenvalues, the greatest first.

    Eigenvalues below 1e-14 of the greatest are taken for zero; of a zero covariance L has no columns.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 0.0) if values.size else np.zeros(0, dtype=bool)
    root: Array = (vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1]
    return root


def swapped_parts(covariance: ArrayLike) -> Array:
    """Return the covariance of [theta, rho] for that of [rho, theta], or the other way; (6, 6) both."""
    order = [3, 4, 5, 0, 1, 2]
    swapped: Array = np.asarray(covariance, dtype=float)[np.ix_(order, order)]
    return swapped


def is_singular(covariance: Array) -> bool:
    """Return whether a direction is known exactly, so that a covariance (n, n) has no inverse.

    Metres and radians are scaled to compare.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not scale.all():
        return True
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] <= _SINGULAR * values[-1])


def inverse_covariance(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix (n, n), symmetric."""
    scale = 1.0 / np.sqrt(np.diag(matrix))  # so that units do not spoil the digits
    inverse = np.linalg.inv(matrix * np.outer(scale, scale)) * np.outer(scale, scale)
    even: Array = 0.5 * (inverse + inverse.T)
    return even
