"""Uncertain twists: added, moved to another point or frame, and integrated into uncertain poses.

A twist is six numbers [v, omega], m/s and rad/s, linear part first: v is the velocity of the point of the body that
is at the *origin* of the frame of expression, omega the turning rate, both in its axes. Moving a twist to another
frame is linear, so its covariance goes along exactly:

    another frame:   V_P = Ad(X_PC) V_C              both origin and axes change
    another point:   v' = v + omega x p              the origin moves by p, the axes stay
    other axes:      v' = R v, omega' = R omega      the axes turn, the origin stays

A body twist (in the frame that moves) that holds for dt moves the frame by T = exp(V dt) on the right. With an error d
of the twist,

* if d stays the same for all of dt (a bias), ``T = exp(V dt) exp(J_r(V dt) d dt)`` to first order;
* if d is white, with a spectral density Q, errors of instants are carried along and add up:
  ``S = integral over s of Ad(exp(-V s)) Q Ad(exp(-V s))^T``, computed exactly by one exponential of a matrix.

Source: Van Loan, "Computing integrals involving the matrix exponential", 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, adjoint, right_jacobian
from tmkit.errors import SceneError
from tmkit.spatial.covariances import checked_covariance, even
from tmkit.spatial.plain import plain_number, plain_numbers

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianTwist:
    """A twist that is known up to a Gaussian error.

    Attributes:
        mean: (6,), [v, omega], m/s and rad/s; read-only.
        covariance: (6, 6) of the six numbers, symmetric positive semi-definite; read-only. Zero by default: exact.

    Raises:
        SceneError: numbers that are not six or not finite, or a matrix that is no covariance.
    """

    mean: Array
    covariance: Array

    def __init__(self, mean: ArrayLike, covariance: ArrayLike | None = None) -> None:
        vector = np.array(plain_numbers(mean, "mean"))
        if vector.shape != (6,) or not np.isfinite(vector).all():
            raise SceneError(f"a twist is six finite numbers [v, omega], not {np.array2string(vector, threshold=8)}")
        vector.flags.writeable = False
        spread = checked_covariance(np.zeros((6, 6)) if covariance is None else covariance, 6)
        self.__dict__.update(mean=vector, covariance=spread)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianTwist):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and np.array_equal(self.covariance, other.covariance)

    def __hash__(self) -> int:
        return hash((self.mean.tobytes(), self.covariance.tobytes()))

    def __repr__(self) -> str:
        numbers = ", ".join(f"{value:.6g}" for value in self.mean)
        linear, angular = (float(np.sqrt(np.trace(self.covariance[i : i + 3, i : i + 3]))) for i in (0, 3))
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
        return GaussianTwist(there.mean, even(there.covariance + bend @ parent_from_child.covariance @ bend.T))

    def moved_to(self, point: ArrayLike) -> GaussianTwist:
        """Return the twist at another point (3,) of the body, metres from the present one, in the axes of the twist."""
        x, y, z = plain_numbers(point, "point")
        maps = np.eye(6)
        maps[:3, 3:] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]  # omega x p
        return self._mapped(maps)

    def turned(self, orientation: Pose) -> GaussianTwist:
        """Express the twist in other axes, at the same point; of the pose only the rotation counts."""
        return self._mapped(adjoint(Pose([0.0, 0.0, 0.0], orientation.quat_xyzw)))

    def integrate(self, duration: float, *, noise: Literal["bias", "white"] = "bias") -> GaussianPose:
        """Return before_from_after of the frame in whose axes the twist is, when it holds for a time; to first order.

        Args:
            duration: seconds; may be negative for a bias.
            noise: ``bias`` when the error is one and the same all the time, and the covariance is that of the twist;
                ``white`` when errors of different instants are independent, and the covariance is their spectral
                density: (m/s)^2 s and (rad/s)^2 s.

        Raises:
            SceneError: a duration that is not finite, or negative with white noise; another noise.
        """
        duration = plain_number(duration, "duration")
        if not np.isfinite(duration) or noise not in ("bias", "white") or (noise == "white" and duration < 0.0):
            given = f"{duration} and {noise}"
            raise SceneError(f"a twist is integrated over a finite time with bias or white noise, not {given}")
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
