"""Covariance matrices of any size: what is one, its square root, the order of its parts; and uncertain twists.

Zero and rank-deficient covariances are ordinary: roots are taken by eigenvectors, and an inverse is
computed only after a test that it exists. What is let pass as rounding: entries that differ from
their mirror image by 1e-9 of the greatest entry, and eigenvalues down to -1e-9 of the greatest. All
else is refused, with the eigenvalues named.

A twist is six numbers [v, omega], m/s and rad/s, linear part first. Here v is the velocity of the
point of the body that is at the *origin* of the frame of expression, omega the turning rate, both
in its axes. Moving a twist to another frame is linear, so its covariance goes along exactly:

    another frame:   V_P = Ad(X_PC) V_C              both origin and axes change
    another point:   v' = v + omega x p              the origin moves by p, the axes stay
    other axes:      v' = R v, omega' = R omega      the axes turn, the origin stays

A body twist (in the frame that moves) that holds for dt moves the frame by T = exp(V dt) on the
right. With an error d of the twist,

* if d stays the same for all of dt (a bias), ``T = exp(V dt) exp(J_r(V dt) d dt)`` to first order;
* if d is white, with a spectral density Q, errors of instants are carried along and add up: ``S =
  integral over s of Ad(exp(-V s)) Q Ad(exp(-V s))^T``. It is computed exactly by one exponential of
  a matrix (Van Loan, "Computing integrals involving the matrix exponential", 1978).
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

_TOLERANCE = 1e-9  # of the greatest entry or eigenvalue
_NEGLIGIBLE = 1e-14  # of the greatest eigenvalue: no direction of its own
_SINGULAR = 1e-12  # of the greatest eigenvalue, each part scaled to unit variances
_FAR_APART = 1e-10  # of the greatest variance: one beside which it has few digits left
_ROUNDING = 1e-24  # of the greatest variance: what is left where there is none


def checked_covariance(
    covariance: ArrayLike, size: int | None = None, *, what: str = "covariance"
) -> Array:
    """Return a covariance as an exactly symmetric read-only array (n, n), after checking that it is one.

    Args:
        covariance: (n, n), symmetric positive semi-definite.
        size: the n that is expected, or None for any.
        what: what the message calls it.

    Raises:
        SceneError: another shape, numbers that are not finite, a matrix that is not symmetric
            within 1e-9 of its greatest entry, or with an eigenvalue below -1e-9 of it (attribute
            ``eigenvalues``, ascending).
    """
    if size == 6:  # the core's check says the same of a pose's, in a tenth of the time
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
        if defect > _TOLERANCE * float(np.abs(matrix).max()):
            raise SceneError(
                f"{what} is not symmetric: two entries that should be equal differ by {defect:.4g}"
            )
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

    Eigenvalues below 1e-14 of the greatest are taken for zero; of a zero covariance L has no
    columns. Variances that lie more than ten orders apart (a position that it is unknown, 1e9 m^2,
    beside an angle that is well known) are scaled to ones before, which keeps the small beside the
    great. What is below 1e-24 of the greatest is rounding.
    """
    covariance = plain_numbers(covariance, "covariance")
    scales = _comparable_scales(covariance)
    divisors = np.where(scales > 0.0, scales, np.inf)
    values, vectors = np.linalg.eigh(covariance / np.outer(divisors, divisors))
    kept = (
        values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
        if values.size
        else np.zeros(0, dtype=bool)
    )
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


@dataclass(frozen=True, eq=False)
class GaussianTwist:
    """A twist that is known up to a Gaussian error.

    Attributes:
        mean: (6,), [v, omega], m/s and rad/s; read-only.
        covariance: (6, 6) of the six numbers, symmetric positive semi-definite; read-only. Zero by
            default: exact.

    Raises:
        SceneError: numbers that are not six or not finite, or a matrix that is no covariance.
    """

    mean: Array
    covariance: Array

    def __init__(self, mean: ArrayLike, covariance: ArrayLike | None = None) -> None:
        vector = np.array(plain_numbers(mean, "mean"))
        if vector.shape != (6,) or not np.isfinite(vector).all():
            raise SceneError(
                "a twist is six finite numbers [v, omega], not"
                f" {np.array2string(vector, threshold=8)}"
            )
        vector.flags.writeable = False
        spread = checked_covariance(np.zeros((6, 6)) if covariance is None else covariance, 6)
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
        """Return the twist of the reference by the body."""
        return GaussianTwist(-self.mean, self.covariance)

    def transformed(self, parent_from_child: Pose | GaussianPose) -> GaussianTwist:
        """Express the twist, given in the child, in the parent: origin and axes change.

        If ``parent_from_child`` is uncertain, its independent error counts to first order.
        """
        if isinstance(parent_from_child, Pose):
            return self._mapped(adjoint(parent_from_child))
        there = self._mapped(adjoint(parent_from_child.mean))
        # Ad(X exp(xi)) V = Ad(X) (V + [xi, V]) and [xi, V] = -[V, xi]
        bend = adjoint(parent_from_child.mean) @ _bracket(self.mean)
        return GaussianTwist(
            there.mean, even(there.covariance + bend @ parent_from_child.covariance @ bend.T)
        )

    def moved_to(self, point: ArrayLike) -> GaussianTwist:
        """Return the twist at another point (3,) of the body, metres from the present one, in the axes of the twist."""
        x, y, z = plain_numbers(point, "point")
        maps = np.eye(6)
        maps[:3, 3:] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]  # omega x p
        return self._mapped(maps)

    def turned(self, orientation: Pose) -> GaussianTwist:
        """Express the twist in other axes, at the same point; of the pose only the rotation counts."""
        return self._mapped(adjoint(Pose([0.0, 0.0, 0.0], orientation.quat_xyzw)))

    def integrate(
        self, duration: float, *, noise: Literal["bias", "white"] = "bias"
    ) -> GaussianPose:
        """Return before_from_after of the frame in whose axes the twist is, when it holds for a time; to first order.

        Args:
            duration: seconds; may be negative for a bias.
            noise: ``bias`` when the error is one and the same all the time, and the covariance is
                that of the twist; ``white`` when errors of different instants are independent, and
                the covariance is their spectral density: (m/s)^2 s and (rad/s)^2 s.

        Raises:
            SceneError: a duration that is not finite, or negative with white noise; another noise.
        """
        duration = plain_number(duration, "duration")
        if (
            not np.isfinite(duration)
            or noise not in ("bias", "white")
            or (noise == "white" and duration < 0.0)
        ):
            given = f"{duration} and {noise}"
            raise SceneError(
                f"a twist is integrated over a finite time with bias or white noise, not {given}"
            )
        mean = Pose.exp(self.mean * duration)
        if noise == "bias":
            maps = duration * right_jacobian(self.mean * duration)
            return GaussianPose(mean, even(maps @ self.covariance @ maps.T))
        return GaussianPose(mean, self._diffused(duration))

    def _diffused(self, duration: float) -> Array:
        """Return the integral of what white noise adds, by Van Loan's exponential of a block matrix."""
        from scipy.linalg import expm

        bracket = _bracket(self.mean)  # Ad(exp(-V s)) = exp(-bracket s)
        blocks = np.block([[bracket, self.covariance], [np.zeros((6, 6)), -bracket.T]])
        whole = expm(blocks * duration)
        return even(whole[6:, 6:].T @ whole[:6, 6:]) if duration else np.zeros((6, 6))

    def _mapped(self, maps: Array) -> GaussianTwist:
        return GaussianTwist(maps @ self.mean, even(maps @ self.covariance @ maps.T))


def _bracket(twist: Array) -> Array:
    """Return the matrix (6, 6) of the Lie bracket with a twist: the derivative of the adjoint of its exponential."""
    vx, vy, vz, wx, wy, wz = twist
    linear = np.array([[0.0, -vz, vy], [vz, 0.0, -vx], [-vy, vx, 0.0]])
    angular = np.array([[0.0, -wz, wy], [wz, 0.0, -wx], [-wy, wx, 0.0]])
    return np.block([[angular, linear], [np.zeros((3, 3)), angular]])
