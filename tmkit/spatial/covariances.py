"""Covariance matrices of any size: what is one, its square root, and the order of its parts.

Zero and rank-deficient covariances are ordinary: roots are taken by eigenvectors, and an inverse is computed only after
a test that it exists.

What is let pass as rounding: entries that differ from their mirror image by 1e-9 of the greatest entry, and eigenvalues
down to -1e-9 of the greatest. All else is refused, with the eigenvalues named.
"""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose
from tmkit.errors import SceneError
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]

_TOLERANCE = 1e-9  # of the greatest entry or eigenvalue
_NEGLIGIBLE = 1e-14  # of the greatest eigenvalue: no direction of its own
_SINGULAR = 1e-12  # of the greatest eigenvalue, each part scaled to unit variances
_FAR_APART = 1e-10  # of the greatest variance: one beside which it has few digits left
_ROUNDING = 1e-24  # of the greatest variance: what is left where there is none


def checked_covariance(covariance: ArrayLike, size: int | None = None, *, what: str = "covariance") -> Array:
    """Return a covariance as an exactly symmetric read-only array (n, n), after checking that it is one.

    Args:
        covariance: (n, n), symmetric positive semi-definite.
        size: the n that is expected, or None for any.
        what: what the message calls it.

    Raises:
        SceneError: another shape, numbers that are not finite, a matrix that is not symmetric within 1e-9 of its
            greatest entry, or with an eigenvalue below -1e-9 of the greatest. The last has the attribute
            ``eigenvalues``, ascending.
    """
    if size == 6:  # the core's check says the same of a pose's, in a tenth of the time
        with contextlib.suppress(SceneError):
            return GaussianPose(Pose(), covariance).covariance
    matrix = np.array(plain_numbers(covariance, "covariance"))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (size is not None and matrix.shape[0] != size):
        expected = "(n, n)" if size is None else f"({size}, {size})"
        raise SceneError(f"{what} must have shape {expected}, not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise SceneError(f"{what} must be finite numbers")
    if matrix.size:
        defect = float(np.abs(matrix - matrix.T).max())
        if defect > _TOLERANCE * float(np.abs(matrix).max()):
            raise SceneError(f"{what} is not symmetric: two entries that should be equal differ by {defect:.4g}")
        matrix = even(matrix)
        values = np.linalg.eigvalsh(matrix)
        if values[0] < -_TOLERANCE * max(abs(values[0]), values[-1]):
            listed = ", ".join(f"{value:.4g}" for value in values)
            message = f"{what} is not positive semi-definite: its eigenvalues are [{listed}]"
            raise SceneError(message, eigenvalues=tuple(map(float, values)))
    matrix.flags.writeable = False
    return matrix


def covariance_root(covariance: Array) -> Array:
    """Return L (n, rank) with ``L @ L.T`` the covariance: eigenvectors times roots of eigenvalues, the greatest first.

    Eigenvalues below 1e-14 of the greatest are taken for zero; of a zero covariance L has no columns. Variances that
    lie more than ten orders apart (a position that it is unknown, 1e9 m^2, beside an angle that is well known) are
    scaled to ones before, which keeps the small beside the great; what is below 1e-24 of the greatest is rounding.
    """
    covariance = plain_numbers(covariance, "covariance")
    scales = _comparable_scales(covariance)
    divisors = np.where(scales > 0.0, scales, np.inf)
    values, vectors = np.linalg.eigh(covariance / np.outer(divisors, divisors))
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 0.0) if values.size else np.zeros(0, dtype=bool)
    root: Array = scales[:, None] * (vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1]
    return root


def _comparable_scales(covariance: Array) -> Array:
    """Return by what rows (n,) are divided before eigenvalues are compared: ones where variances are alike."""
    variances = np.diag(covariance)
    known = variances <= _ROUNDING * float(variances.max(initial=0.0))
    if known.all() or float(variances[~known].min()) >= _FAR_APART * float(variances.max()):
        return np.ones(len(variances))
    return np.where(known, 0.0, np.sqrt(np.maximum(variances, 0.0)))


def swap_linear_angular(covariance: ArrayLike) -> Array:
    """Return the covariance of [theta, rho] for that of [rho, theta], or the other way; (6, 6) both."""
    order = [3, 4, 5, 0, 1, 2]
    swapped: Array = plain_numbers(covariance, "covariance")[np.ix_(order, order)]
    return swapped


def is_singular(covariance: Array) -> bool:
    """Return whether a direction is known exactly, metres and radians scaled to compare: (n, n) has no inverse."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not scale.all():
        return True
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] <= _SINGULAR * values[-1])


def inverse_covariance(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix (n, n), symmetric."""
    scale = 1.0 / np.sqrt(np.diag(matrix))  # keeps the digits, whatever the units
    inverse = np.linalg.inv(matrix * np.outer(scale, scale)) * np.outer(scale, scale)
    return even(inverse)


def whitened_rounding(spread: Array, reach: float) -> float:
    """Return how many standard deviations (``spread``) rounding of numbers of size ``reach``, metres, is worth."""
    scale = np.sqrt(np.maximum(np.diag(spread), 0.0))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    free = values > _SINGULAR * max(float(values[-1]), 0.0)
    white = (vectors[:, free] / np.sqrt(values[free])).T / scale
    rounding = 16.0 * float(np.finfo(float).eps) * reach
    return rounding * float(np.linalg.norm(np.abs(white).sum(axis=1)))


def even(matrix: Array) -> Array:
    """Return the symmetric part of a matrix (n, n)."""
    half: Array = 0.5 * (matrix + matrix.T)
    return half
