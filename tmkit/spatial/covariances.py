"""Covariance matrices of any size, and uncertain twists.

Zero and rank-deficient covariances are valid: roots use eigenvectors, and an inverse is computed
only after a test for singularity. Two deviations count as rounding: entries that differ from their
mirror image by 1e-9 of the greatest entry, and eigenvalues down to -1e-9 of the greatest. Other
matrices are rejected, and the message lists the eigenvalues.

A twist is six numbers [v, omega] [m/s, rad/s], linear part first. The velocity v is that of the
point of the body at the *origin* of the frame of expression. The angular velocity omega and v are
in the axes of that frame. A change of frame is linear, so the covariance transforms exactly:

    another frame:   V_P = Ad(X_PC) V_C              both origin and axes change
    another point:   v' = v + omega x p              the origin moves by p, the axes stay
    other axes:      v' = R v, omega' = R omega      the axes rotate, the origin stays

A body twist (in the moving frame) that is constant for dt moves the frame by T = exp(V dt) on the
right. With an error d of the twist,

* if d is constant during dt (a bias), ``T = exp(V dt) exp(J_r(V dt) d dt)`` to first order;
* if d is white with a spectral density Q, the errors of all instants add up: ``S = integral over
  s of Ad(exp(-V s)) Q Ad(exp(-V s))^T``. One matrix exponential gives it exactly (Van Loan,
  "Computing integrals involving the matrix exponential", 1978).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, adjoint, right_jacobian
from tmkit._support.initialization import initialize
from tmkit.errors import SceneError
from tmkit.spatial.plain import plain_number, plain_numbers

Array = NDArray[np.float64]

_ASYMMETRY_TOLERANCE = 1e-9
"""Accepted defect of a covariance, as a fraction of its greatest entry or eigenvalue."""

_ZERO_FRACTION = 1e-14
"""Eigenvalue, as a fraction of the greatest, below which a root has no column for it."""

_SINGULAR_FRACTION = 1e-12
"""Eigenvalue, as a fraction of the greatest, of a singular matrix scaled to unit variances."""

_COMPARABLE_FRACTION = 1e-10
"""Variance, as a fraction of the greatest, below which it loses digits in an eigenvalue problem."""

_ROUNDING_FRACTION = 1e-24
"""Variance, as a fraction of the greatest, that rounding leaves in place of zero."""


def check_covariance(
    covariance: ArrayLike, size: int | None = None, *, what: str = "covariance"
) -> Array:
    """Return a covariance as an exactly symmetric read-only array (n, n), after a check.

    Args:
        covariance: (n, n), symmetric positive semi-definite.
        size: expected n, or None for any.
        what: name of the matrix in error messages.

    Raises:
        SceneError: if the shape differs, a number is not finite, the matrix is not symmetric
            within 1e-9 of its greatest entry, or an eigenvalue is below -1e-9 of the greatest.
            The attribute ``eigenvalues`` has them in ascending order.
    """
    if size == 6:  # the equivalent check of the core takes a tenth of the time
        with contextlib.suppress(SceneError):
            return GaussianPose(Pose(), covariance).covariance
    matrix = np.array(plain_numbers(covariance, "covariance"))
    if (
        matrix.ndim != 2
        or matrix.shape[0] != matrix.shape[1]
        or (size is not None and matrix.shape[0] != size)
    ):
        expected = "(n, n)" if size is None else f"({size}, {size})"
        raise SceneError(f"{what} must have shape {expected}, not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise SceneError(f"{what} must be finite numbers")
    if matrix.size:
        defect = float(np.abs(matrix - matrix.T).max())
        if defect > _ASYMMETRY_TOLERANCE * float(np.abs(matrix).max()):
            raise SceneError(
                f"{what} is not symmetric: two entries that should be equal differ by {defect:.4g}"
            )
        matrix = symmetric_part(matrix)
        values = np.linalg.eigvalsh(matrix)
        if values[0] < -_ASYMMETRY_TOLERANCE * max(abs(values[0]), values[-1]):
            listed = ", ".join(f"{value:.4g}" for value in values)
            message = f"{what} is not positive semi-definite: its eigenvalues are [{listed}]"
            raise SceneError(message, eigenvalues=tuple(map(float, values)))
    matrix.flags.writeable = False
    return matrix


def covariance_root(covariance: Array) -> Array:
    """Return L (n, rank) with ``L @ L.T`` equal to the covariance.

    The columns are eigenvectors times roots of eigenvalues, in descending order. Eigenvalues below
    1e-14 of the greatest count as zero, so the root of a zero covariance has no columns.

    Variances more than ten orders of magnitude apart are first scaled to one, which preserves the
    digits of the small ones. An example is an unknown position of 1e9 m^2 beside a well-known
    angle. Variances below 1e-24 of the greatest are rounding.
    """
    covariance = plain_numbers(covariance, "covariance")
    scales = _comparable_scales(covariance)
    divisors = np.where(scales > 0.0, scales, np.inf)
    values, vectors = np.linalg.eigh(covariance / np.outer(divisors, divisors))
    is_kept = (
        values > _ZERO_FRACTION * max(float(values[-1]), 0.0)
        if values.size
        else np.zeros(0, dtype=bool)
    )
    root: Array = scales[:, None] * (vectors[:, is_kept] * np.sqrt(values[is_kept]))[:, ::-1]
    return root


def _comparable_scales(covariance: Array) -> Array:
    """Return the scales (n,) by which rows are divided before eigenvalues are compared.

    They are ones if the variances are of similar size.
    """
    variances = np.diag(covariance)
    is_exact = variances <= _ROUNDING_FRACTION * float(variances.max(initial=0.0))
    if is_exact.all():
        return np.ones(len(variances))
    if float(variances[~is_exact].min()) >= _COMPARABLE_FRACTION * float(variances.max()):
        return np.ones(len(variances))
    return np.where(is_exact, 0.0, np.sqrt(np.maximum(variances, 0.0)))


def swap_linear_angular(covariance: ArrayLike) -> Array:
    """Return a covariance (6, 6) with its linear and angular parts swapped."""
    order = [3, 4, 5, 0, 1, 2]
    permuted_covariance: Array = plain_numbers(covariance, "covariance")[np.ix_(order, order)]
    return permuted_covariance


def is_singular(covariance: Array) -> bool:
    """Return whether a covariance (n, n), scaled to unit variances, is singular."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not scale.all():
        return True
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] <= _SINGULAR_FRACTION * values[-1])


def inverse_covariance(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix (n, n), symmetric."""
    scale = 1.0 / np.sqrt(np.diag(matrix))  # preserves digits in any units
    inverse = np.linalg.inv(matrix * np.outer(scale, scale)) * np.outer(scale, scale)
    return symmetric_part(inverse)


def rounding_distance(covariance: Array, reach: float) -> float:
    """Return the Mahalanobis distance of rounding errors of numbers of size ``reach`` [m]."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    has_variance = values > _SINGULAR_FRACTION * max(float(values[-1]), 0.0)
    white = (vectors[:, has_variance] / np.sqrt(values[has_variance])).T / scale
    rounding = 16.0 * float(np.finfo(float).eps) * reach
    return rounding * float(np.linalg.norm(np.abs(white).sum(axis=1)))


def symmetric_part(matrix: Array) -> Array:
    """Return the symmetric part of a matrix (n, n)."""
    half: Array = 0.5 * (matrix + matrix.T)
    return half


@dataclass(frozen=True, eq=False)
class GaussianTwist:
    """Twist with a Gaussian error.

    Attributes:
        mean: (6,) [v, omega] [m/s, rad/s], read-only.
        covariance: (6, 6) of the six numbers, symmetric positive semi-definite, read-only. Defaults
            to zero: exact.

    Raises:
        SceneError: if the mean is not six finite numbers, or the covariance is invalid.
    """

    mean: Array
    covariance: Array

    def __init__(self, mean: ArrayLike, covariance: ArrayLike | None = None) -> None:
        vector = np.array(plain_numbers(mean, "mean", "m/s m/s m/s rad/s rad/s rad/s"))
        if vector.shape != (6,) or not np.isfinite(vector).all():
            raise SceneError(
                "a twist is six finite numbers [v, omega], not"
                f" {np.array2string(vector, threshold=8)}"
            )
        vector.flags.writeable = False
        spread = check_covariance(np.zeros((6, 6)) if covariance is None else covariance, 6)
        initialize(self, mean=vector, covariance=spread)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianTwist):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and np.array_equal(
            self.covariance, other.covariance
        )

    def __hash__(self) -> int:
        return hash((self.mean.tobytes(), self.covariance.tobytes()))

    def __repr__(self) -> str:
        numbers = ", ".join(f"{value:.6g}" for value in self.mean)
        linear, angular = (
            float(np.sqrt(np.trace(self.covariance[i : i + 3, i : i + 3]))) for i in (0, 3)
        )
        return f"GaussianTwist([{numbers}], sigma {linear:.3g} m/s, {angular:.3g} rad/s)"

    def __add__(self, other: GaussianTwist) -> GaussianTwist:
        """Add a twist with an independent error, at the same point, in the same axes."""
        return GaussianTwist(self.mean + other.mean, self.covariance + other.covariance)

    def __neg__(self) -> GaussianTwist:
        """Return the twist of the reference relative to the body."""
        return GaussianTwist(-self.mean, self.covariance)

    def transform(self, parent_from_child: Pose | GaussianPose) -> GaussianTwist:
        """Return a twist that is expressed in the child, expressed in the parent.

        Origin and axes change. If ``parent_from_child`` is uncertain, its independent error
        contributes to first order.
        """
        if isinstance(parent_from_child, Pose):
            return self._map(adjoint(parent_from_child))
        twist = self._map(adjoint(parent_from_child.mean))
        # Ad(X exp(xi)) V = Ad(X) (V + [xi, V]) and [xi, V] = -[V, xi]
        jacobian = adjoint(parent_from_child.mean) @ _bracket(self.mean)
        return GaussianTwist(
            twist.mean,
            symmetric_part(twist.covariance + jacobian @ parent_from_child.covariance @ jacobian.T),
        )

    def shift(self, offset: ArrayLike) -> GaussianTwist:
        """Return the twist at a point of the body with an offset (3,), in the twist's axes [m]."""
        x, y, z = plain_numbers(offset, "offset", "m")
        maps = np.eye(6)
        maps[:3, 3:] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]  # omega x p
        return self._map(maps)

    def rotate(self, orientation: Pose) -> GaussianTwist:
        """Return the twist at the same point in other axes; only the pose's rotation is used."""
        return self._map(adjoint(Pose([0.0, 0.0, 0.0], orientation.quat_xyzw)))

    def integrate(
        self, duration: float, *, noise: Literal["bias", "white"] = "bias"
    ) -> GaussianPose:
        """Return before_from_after of the frame of expression for a constant twist.

        The covariance is exact to first order.

        Args:
            duration: duration [s]; may be negative for a bias.
            noise: ``bias`` for a constant error with the twist's covariance; ``white`` for
                independent errors, where the covariance is their spectral density
                [(m/s)^2 s, (rad/s)^2 s].

        Raises:
            SceneError: if the duration is not finite, or negative with white noise, or the noise
                is unknown.
        """
        duration = plain_number(duration, "duration", "s")
        if (
            not np.isfinite(duration)
            or noise not in ("bias", "white")
            or (noise == "white" and duration < 0.0)
        ):
            raise SceneError(
                "a twist is integrated over a finite time with bias or white noise, not"
                f" {duration} and {noise}"
            )
        mean = Pose.exp(self.mean * duration)
        if noise == "bias":
            maps = duration * right_jacobian(self.mean * duration)
            return GaussianPose(mean, symmetric_part(maps @ self.covariance @ maps.T))
        return GaussianPose(mean, self._integrate_white_noise(duration))

    def _integrate_white_noise(self, duration: float) -> Array:
        """Return the covariance (6, 6) of white noise, by Van Loan's block matrix exponential."""
        from scipy.linalg import expm

        bracket = _bracket(self.mean)  # Ad(exp(-V s)) = exp(-bracket s)
        blocks = np.block([[bracket, self.covariance], [np.zeros((6, 6)), -bracket.T]])
        whole = expm(blocks * duration)
        if not duration:
            return np.zeros((6, 6))
        return symmetric_part(whole[6:, 6:].T @ whole[:6, 6:])

    def _map(self, maps: Array) -> GaussianTwist:
        return GaussianTwist(maps @ self.mean, symmetric_part(maps @ self.covariance @ maps.T))


def _bracket(twist: Array) -> Array:
    """Return the matrix (6, 6) of the Lie bracket with a twist."""
    vx, vy, vz, wx, wy, wz = twist
    linear = np.array([[0.0, -vz, vy], [vz, 0.0, -vx], [-vy, vx, 0.0]])
    angular = np.array([[0.0, -wz, wy], [wz, 0.0, -wx], [-wy, wx, 0.0]])
    return np.block([[angular, linear], [np.zeros((3, 3)), angular]])
