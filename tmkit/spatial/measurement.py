"""What may be measured of a pose: all of it, a position, a direction, a distance.

A measurement of the pose ``T`` of a target relative to a reference compares what ``T`` predicts with what was measured:
an *error* e (m,) that is zero when both agree, and its derivative H (m, 6) by the right error of T, so that

    e(T exp(xi)) = e(T) + H xi + ...

With the covariance of the noise that is all that conditioning needs (:mod:`tmkit.spatial.conditioning`); whoever
measures something else writes a class with these three members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, inverse_right_jacobian
from tmkit.errors import SceneError
from tmkit.spatial.covariances import checked_covariance
from tmkit.spatial.plain import plain_number, plain_numbers

Array = NDArray[np.float64]


@runtime_checkable
class MeasurementModel(Protocol):
    """Something measured of the pose of a target relative to a reference."""

    @property
    def noise(self) -> Array:
        """Covariance (m, m) of the noise, symmetric positive semi-definite."""
        ...

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return predicted minus measured (m,), and its derivative (m, 6) by the right error of the pose."""
        ...


def _vector(values: ArrayLike, what: str) -> Array:
    vector = np.array(plain_numbers(values, "values"))
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise SceneError(f"{what} must be three finite numbers, not {np.array2string(np.asarray(values), threshold=8)}")
    vector.flags.writeable = False
    return vector


def _at_point(pose: Pose, point: Array) -> tuple[Array, Array]:
    """Return a point of the target in the reference, and its derivative (3, 6) by the pose's right error."""
    x, y, z = point
    moved = np.hstack([np.eye(3), [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]])  # rho + theta x point
    return pose.apply(point), pose.rotation @ moved


@dataclass(frozen=True, eq=False)
class PoseMeasurement:
    """The whole pose, as a camera or a fiducial marker gives it.

    Attributes:
        pose: what was measured, reference_from_target, and the covariance of its error in the target's axes; a zero one
            makes it exact.
    """

    pose: GaussianPose

    @property
    def noise(self) -> Array:
        """Covariance (6, 6) of the right error [rho, theta]."""
        return self.pose.covariance

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return log(measured^-1 pose) (6,) and its derivative (6, 6), the inverse right Jacobian."""
        error = (self.pose.mean.inverse() @ pose).log()
        return error, inverse_right_jacobian(error)


@dataclass(frozen=True, eq=False)
class PositionMeasurement:
    """Where a point of the target is, as a laser tracker gives it.

    Attributes:
        position: (3,) metres, in the reference.
        covariance: (3, 3), m^2, in the reference's axes.
        point: (3,) metres, in the target; its origin by default.

    Raises:
        SceneError: numbers that are not three or not finite, or a matrix that is no covariance.
    """

    position: Array
    covariance: Array
    point: Array

    def __init__(self, position: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        object.__setattr__(self, "position", _vector(position, "position"))
        object.__setattr__(self, "covariance", checked_covariance(covariance, 3))
        object.__setattr__(self, "point", _vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (3, 3)."""
        return self.covariance

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return the position of the point minus the measured one, (3,) metres, and its derivative (3, 6)."""
        predicted, derivative = _at_point(pose, self.point)
        return predicted - self.position, derivative


@dataclass(frozen=True, eq=False)
class BearingMeasurement:
    """In which direction a point of the target is seen from the origin of the reference.

    The error is the turn that takes the measured direction to the predicted one, as two angles about two axes
    perpendicular to the measured direction, which :attr:`axes` names.

    Attributes:
        direction: (3,) unit vector, in the reference; given of any length above zero.
        covariance: (2, 2), rad^2, of the angles along :attr:`axes`; given as such, or as one number for both angles.
        point: (3,) metres, in the target; its origin by default.

    Raises:
        SceneError: numbers that are not three or not finite, a zero direction, or a matrix that is no covariance.
    """

    direction: Array
    covariance: Array
    point: Array

    def __init__(self, direction: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        vector = _vector(direction, "direction")
        length = float(np.linalg.norm(vector))
        if length < 1e-9:
            raise SceneError("direction is zero: it points nowhere")
        unit = vector / length
        unit.flags.writeable = False
        matrix = plain_numbers(covariance, "covariance")
        spread = checked_covariance(matrix * np.eye(2) if matrix.ndim == 0 else matrix, 2)
        self.__dict__.update(direction=unit, covariance=spread, point=_vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (2, 2)."""
        return self.covariance

    @property
    def axes(self) -> Array:
        """(2, 3), two unit vectors in the reference, perpendicular to the direction and to each other."""
        helper = np.eye(3)[int(np.argmin(np.abs(self.direction)))]
        first = np.cross(helper, self.direction)
        first /= np.linalg.norm(first)
        return np.array([first, np.cross(self.direction, first)])

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return the angles (2,) from the measured to the predicted direction along :attr:`axes`; derivative (2, 6).

        Raises:
            SceneError: the point is at the origin of the reference, where it has no direction, or opposite to the
                measured direction, where the turn is not determined.
        """
        predicted, derivative = _at_point(pose, self.point)
        distance = float(np.linalg.norm(predicted))
        if distance < 1e-12:
            raise SceneError("the point measured is at the origin of the reference, where it has no direction")
        unit, axes = predicted / distance, self.axes
        across, along = axes @ unit, float(self.direction @ unit)
        sine = float(np.linalg.norm(across))
        angle = float(np.arctan2(sine, along))
        if np.pi - angle < 1e-6:
            raise SceneError("the point measured is opposite to the measured direction: the turn is not determined")
        turned = (derivative - np.outer(unit, unit @ derivative)) / distance  # of the unit vector
        if sine < 1e-8:
            return across, axes @ turned
        # error = angle * across / sine, with d angle = along d sine - sine d along
        towards = across / sine
        sine_rate = towards @ axes @ turned
        angle_rate = along * sine_rate - sine * (self.direction @ turned)
        scale = angle / sine
        rate = np.outer(towards, angle_rate) + scale * (axes @ turned - np.outer(towards, sine_rate))
        return scale * across, rate


@dataclass(frozen=True, eq=False)
class RangeMeasurement:
    """How far a point of the target is from the origin of the reference.

    Attributes:
        distance: metres, not negative.
        variance: m^2, not negative.
        point: (3,) metres, in the target; its origin by default.

    Raises:
        SceneError: a distance or variance that is negative or not finite, or a point that is not three numbers.
    """

    distance: float
    variance: float
    point: Array

    def __init__(self, distance: float, variance: float, *, point: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        for given, what in ((distance, "distance"), (variance, "variance")):
            value = plain_number(given, what)
            if not (np.isfinite(value) and value >= 0.0):
                raise SceneError(f"{what} must be a finite number that is not negative, not {value}")
            object.__setattr__(self, what, value)
        object.__setattr__(self, "point", _vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (1, 1)."""
        return np.array([[self.variance]])

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return the predicted distance minus the measured one, (1,) metres, and its derivative (1, 6).

        Raises:
            SceneError: the point is at the origin of the reference, where the distance has no derivative.
        """
        predicted, derivative = _at_point(pose, self.point)
        length = float(np.linalg.norm(predicted))
        if length < 1e-12:
            raise SceneError(
                "the point measured is at the origin of the reference, where the distance has no derivative"
            )
        return np.array([length - self.distance]), (predicted / length @ derivative)[None]
