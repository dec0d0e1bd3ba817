"""Gaussian conditioning of the links of a chain on a measurement, by iteration.

A measurement compares a prediction from the pose ``T`` of a target relative to a reference with the
measured value. Its *error* e (m,) is predicted minus measured. H (m, 6) is the derivative by the
right error of T: ``e(T exp(xi)) = e(T) + H xi + ...``. Conditioning needs only e, H and the
covariance of the noise. A custom measurement is a class with the three members of
:class:`MeasurementModel`.

The errors of the links of T = T_1 ... T_n are L w, with w standard normal and L a root of their
covariance. Singular covariances therefore need no inverse. The most probable w minimises
``(|w|^2 + e^T R^-1 e) / 2``, where e is the error of the measurement at T(w). Each iteration
linearises e about the present w, with

    H = (de/dT) Ad(product of the links after i)^-1 J_r(xi_i) L_i

and updates w from its prior. This is the iterated extended Kalman filter, a Gauss-Newton method.
The update processes independent components of the measurement one at a time, with a square root of
the covariance (Potter's form). The covariance stays positive semi-definite, and exact measurements
(R singular or zero) are valid. Complexity O(iterations * (6 n)^2 m).

Source: Bell and Cathey, "The iterated Kalman filter update as a Gauss-Newton method", 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, Retraction
from tmkit._support.initialization import initialize
from tmkit._support.results import IteratedEstimate
from tmkit.errors import SceneError
from tmkit.spatial.covariances import check_covariance, covariance_root, rounding_distance
from tmkit.spatial.joint_gaussian import JointGaussianPose, chain_maps, joint_of_root
from tmkit.spatial.plain import plain_number, plain_numbers, read_only

Array = NDArray[np.float64]


@runtime_checkable
class MeasurementModel(Protocol):
    """Measurement of the pose of a target relative to a reference."""

    @property
    def noise(self) -> Array:
        """Covariance (m, m) of the noise, symmetric positive semi-definite."""
        ...

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the error (m,), predicted minus measured, and its derivative (m, 6).

        The derivative is by the right error of the pose.
        """
        ...


def _check_vector(values: ArrayLike, what: str, unit: str = "m") -> Array:
    """Return three finite numbers in a unit as a read-only array."""
    vector = np.array(plain_numbers(values, what, unit))
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise SceneError(
            f"{what} must be three finite numbers, not"
            f" {np.array2string(np.asarray(values), threshold=8)}"
        )
    vector.flags.writeable = False
    return vector


def _transform_point(pose: Pose, point: Array) -> tuple[Array, Array]:
    """Return a point (3,) of the target in the reference, and its derivative (3, 6).

    The derivative is by the right error of the pose.
    """
    x, y, z = point
    # rho + theta x point
    jacobian = np.hstack([np.eye(3), [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]])
    return pose.apply(point), pose.rotation @ jacobian


@dataclass(frozen=True, eq=False)
class PoseMeasurement:
    """Measurement of a pose, as by a camera with a fiducial marker.

    Attributes:
        pose: measured reference_from_target, with the covariance of its error in the target's axes.
    """

    pose: GaussianPose

    @property
    def noise(self) -> Array:
        """Covariance (6, 6) of the right error [rho, theta]."""
        return self.pose.covariance

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the error (6,) about the measured pose and its derivative (6, 6).

        See :class:`Retraction`.
        """
        return Retraction(self.pose.covariance).residual(self.pose.mean.inverse() @ pose)


@dataclass(frozen=True, eq=False)
class PositionMeasurement:
    """Measurement of the position of a point of the target, as by a laser tracker.

    Attributes:
        position: (3,) measured position, in the reference [m].
        covariance: (3, 3) covariance, in the reference's axes [m^2].
        point: (3,) point, in the target [m]; its origin by default.

    Raises:
        SceneError: if a vector is not three finite numbers, or the covariance is invalid.
    """

    position: Array
    covariance: Array
    point: Array

    def __init__(
        self, position: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        initialize(self, position=_check_vector(position, "position"))
        initialize(self, covariance=check_covariance(covariance, 3))
        initialize(self, point=_check_vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (3, 3)."""
        return self.covariance

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the error (3,) of the point's position [m], and its derivative (3, 6)."""
        predicted, derivative = _transform_point(pose, self.point)
        return predicted - self.position, derivative


@dataclass(frozen=True, eq=False)
class BearingMeasurement:
    """Measurement of the direction from the origin of the reference to a point of the target.

    The error is the rotation from the measured direction to the predicted one, as angles about the
    two :attr:`axes` perpendicular to the measured direction.

    Attributes:
        direction: (3,) unit vector, in the reference. The argument may have any length above zero.
        covariance: (2, 2) covariance of the angles along :attr:`axes` [rad^2]. The argument may be
            one number for both angles.
        point: (3,) point, in the target [m]; its origin by default.

    Raises:
        SceneError: if a vector is not three finite numbers, the direction is zero, or the
            covariance is invalid.
    """

    direction: Array
    covariance: Array
    point: Array

    def __init__(
        self, direction: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        vector = _check_vector(direction, "direction", "1")
        length = float(np.linalg.norm(vector))
        if length < 1e-9:
            raise SceneError("the direction must not be zero")
        unit = vector / length
        unit.flags.writeable = False
        matrix = plain_numbers(covariance, "covariance")
        spread = check_covariance(matrix * np.eye(2) if matrix.ndim == 0 else matrix, 2)
        initialize(self, direction=unit, covariance=spread, point=_check_vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (2, 2)."""
        return self.covariance

    @property
    def axes(self) -> Array:
        """(2, 3) orthonormal vectors in the reference, perpendicular to the direction."""
        helper = np.eye(3)[int(np.argmin(np.abs(self.direction)))]
        first = np.cross(helper, self.direction)
        first /= np.linalg.norm(first)
        return np.array([first, np.cross(self.direction, first)])

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the angles (2,) from the measured to the predicted direction; derivative (2, 6).

        The angles are along :attr:`axes` [rad].

        Raises:
            SceneError: if the point is at the origin of the reference, where the direction is
                undefined, or opposite to the measured direction, where the rotation is undefined.
        """
        predicted, derivative = _transform_point(pose, self.point)
        distance = float(np.linalg.norm(predicted))
        if distance < 1e-12:
            raise SceneError(
                "the measured point is at the origin of the reference, where its direction is"
                " undefined"
            )
        unit, axes = predicted / distance, self.axes
        across, along = axes @ unit, float(self.direction @ unit)
        sine = float(np.linalg.norm(across))
        angle = float(np.arctan2(sine, along))
        if np.pi - angle < 1e-6:
            raise SceneError(
                "the measured point is opposite to the measured direction, where the rotation is"
                " undefined"
            )
        unit_derivative = (derivative - np.outer(unit, unit @ derivative)) / distance
        if sine < 1e-8:
            return across, axes @ unit_derivative
        # error = angle * across / sine, with d angle = along d sine - sine d along
        unit_across = across / sine
        sine_rate = unit_across @ axes @ unit_derivative
        angle_rate = along * sine_rate - sine * (self.direction @ unit_derivative)
        scale = angle / sine
        rate = np.outer(unit_across, angle_rate) + scale * (
            axes @ unit_derivative - np.outer(unit_across, sine_rate)
        )
        return scale * across, rate


@dataclass(frozen=True, eq=False)
class RangeMeasurement:
    """Measurement of the distance of a point of the target from the origin of the reference.

    Attributes:
        distance: measured distance, not negative [m].
        variance: variance, not negative [m^2].
        point: (3,) point, in the target [m]; its origin by default.

    Raises:
        SceneError: if the distance or the variance is negative or not finite, or the point is not
            three finite numbers.
    """

    distance: float
    variance: float
    point: Array

    def __init__(
        self, distance: float, variance: float, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        for name, argument, unit in (("distance", distance, "m"), ("variance", variance, "m^2")):
            value = plain_number(argument, name, unit)
            if not (np.isfinite(value) and value >= 0.0):
                raise SceneError(
                    f"{name} must be a finite number that is not negative, not {value}"
                )
            initialize(self, **{name: value})
        initialize(self, point=_check_vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (1, 1)."""
        return np.array([[self.variance]])

    def compare(self, pose: Pose) -> tuple[Array, Array]:
        """Return the error (1,) of the distance [m], and its derivative (1, 6).

        Raises:
            SceneError: if the point is at the origin of the reference, where the distance has no
                derivative.
        """
        predicted, derivative = _transform_point(pose, self.point)
        length = float(np.linalg.norm(predicted))
        if length < 1e-12:
            raise SceneError(
                "the measured point is at the origin of the reference, where the distance has no"
                " derivative"
            )
        return np.array([length - self.distance]), (predicted / length @ derivative)[None]


_EXACT_FRACTION = 1e-27
"""Variance of a component, as a fraction of its prior variance, that rounding leaves of zero."""

_SMALL_NOISE_FRACTION = 1e-8
"""Noise, as a fraction of the measured variance, below which a linear solve loses digits."""

_SHORT_STEP = 1e-3
"""Length of a step [sigma] that may be caused by rounding, if the steps no longer shrink."""

_CONTRADICTION_TOLERANCE = 1e-8
"""Relative difference between an exact measurement and an exact prior that counts as equal."""


@dataclass(frozen=True, eq=False)
class ConditionedChain(IteratedEstimate):
    """Chain of poses after a measurement.

    Attributes:
        links: corrected links, with the joint covariance of their errors in the tangent spaces at
            the new means.
        correction: (6 n,) most probable errors of the links about their *former* means, in order.
        correction_covariance: (6 n, 6 n) covariance of the correction, in the tangent spaces at the
            former means.
        iterations: number of iterations.
        is_converged: True if the last iteration moved w by less than the tolerance.
        cost: half of the squared norms of w and of the measurement's error, each by its covariance.
            Twice the cost is chi-square distributed, with one degree of freedom a measured number.
    """

    links: JointGaussianPose
    correction: Array
    correction_covariance: Array
    iterations: int
    is_converged: bool
    cost: float

    @property
    def pose(self) -> GaussianPose:
        """Pose at the end of the chain, conditioned on the measurement."""
        return self.links.compose()

    def __repr__(self) -> str:
        status = "converged" if self.is_converged else "not converged"
        return (
            f"ConditionedChain({len(self.links)} links, {status} after {self.iterations}, cost"
            f" {self.cost:.4g})"
        )


def condition(
    links: JointGaussianPose | Sequence[GaussianPose],
    measurement: MeasurementModel,
    *,
    max_iterations: int = 50,
    tolerance: float = 1e-12,
) -> ConditionedChain:
    """Condition the links of a chain on a measurement of its product.

    The result has a flag for convergence; an iteration that does not converge raises no error.

    Args:
        links: poses from the reference to the target: independent, or with a joint covariance, as
            the ``links`` of an earlier result.
        measurement: measurement of the product of the links.
        max_iterations: largest number of iterations. 1 gives the extended Kalman filter.
        tolerance: length of the last step [sigma]. The iteration also ends at a step within the
            rounding error of the poses.

    Raises:
        SceneError: if there are no links or iterations, the measurement contradicts an exact prior,
            or a measured direction or distance is zero.
    """
    if isinstance(links, JointGaussianPose):
        prior, root = links, covariance_root(links.covariance)
    else:
        prior, root = JointGaussianPose.independent(links), _independent_root(links)
    if not len(prior) or max_iterations < 1:
        raise SceneError(
            f"conditioning needs at least one link and one iteration, not {len(prior)} and"
            f" {max_iterations}"
        )
    retractions = [Retraction(link.covariance) for link in prior.marginals()]
    noise, axes = np.linalg.eigh(measurement.noise)
    noise = np.maximum(noise, 0.0)  # a negative eigenvalue of a covariance is rounding
    w, step = np.zeros(root.shape[1]), 0.0
    iterations, is_converged = 0, False
    sensitivity, values = np.zeros((len(noise), root.shape[1])), np.zeros(len(noise))
    while iterations < max_iterations and not is_converged:
        xi = root @ w
        means = _retract(prior.means, retractions, xi)
        product, maps = chain_maps(means)
        error, derivative = measurement.compare(product)
        jacobians = _retraction_jacobians(retractions, xi)
        by_error = np.hstack(
            [
                derivative @ maps[:, 6 * i : 6 * i + 6] @ jacobian
                for i, jacobian in enumerate(jacobians)
            ]
        )
        sensitivity = axes.T @ by_error @ root
        values = sensitivity @ w - axes.T @ error
        w_new = _posterior_mean(sensitivity, values, noise)
        last_step, step = step, float(np.linalg.norm(w_new - w))
        is_converged = step <= tolerance or (
            0.1 * last_step < step < _SHORT_STEP
            and step <= _rounding_step(sensitivity, noise, [*means, product])
        )
        w, iterations = w_new, iterations + 1
    _, posterior_root, contradictions = _update(sensitivity, values, noise)
    if contradictions.size and is_converged:
        _check_contradictions(contradictions, prior)
    xi, posterior_root = root @ w, root @ posterior_root
    jacobians = _retraction_jacobians(retractions, xi)
    local_spread = np.vstack(
        [jacobian @ posterior_root[6 * i : 6 * i + 6] for i, jacobian in enumerate(jacobians)]
    )
    links = joint_of_root(_retract(prior.means, retractions, xi), local_spread)

    error, _ = measurement.compare(chain_maps(links.means)[0])
    inverse = np.linalg.pinv(measurement.noise, hermitian=True)
    covariance = posterior_root @ posterior_root.T
    return ConditionedChain(
        links=links,
        correction=read_only(xi),
        correction_covariance=read_only(covariance),
        iterations=iterations,
        is_converged=is_converged,
        cost=0.5 * float(w @ w + error @ inverse @ error),
    )


def _independent_root(links: Sequence[GaussianPose]) -> Array:
    """Return the root of a block-diagonal covariance, block by block."""
    roots = [covariance_root(link.covariance) for link in links]
    whole = np.zeros((6 * len(roots), sum(root.shape[1] for root in roots)))
    column = 0
    for i, root in enumerate(roots):
        whole[6 * i : 6 * i + 6, column : column + root.shape[1]] = root
        column += root.shape[1]
    return whole


def _retract(means: Sequence[Pose], retractions: Sequence[Retraction], xi: Array) -> list[Pose]:
    """Return the poses of the links with errors xi (6 n,)."""
    links = enumerate(zip(means, retractions, strict=True))
    return [mean @ retraction.pose(xi[6 * i : 6 * i + 6]) for i, (mean, retraction) in links]


def _retraction_jacobians(retractions: Sequence[Retraction], xi: Array) -> list[Array]:
    """Return the derivatives (6, 6) of the links' poses by their errors, in the children's axes."""
    return [retraction.jacobian(xi[6 * i : 6 * i + 6]) for i, retraction in enumerate(retractions)]


def _rounding_step(sensitivity: Array, noise: Array, poses: Sequence[Pose]) -> float:
    """Return the length of the step of w [sigma] that rounding of the poses causes."""
    reach = 1.0 + max(float(np.abs(pose.translation).max()) for pose in poses)
    return rounding_distance(sensitivity @ sensitivity.T + np.diag(noise), reach)


def _posterior_mean(sensitivity: Array, values: Array, noise: Array) -> Array:
    """Return the mean of :func:`_update`, by one linear solve where every component has noise."""
    total = sensitivity @ sensitivity.T + np.diag(noise)
    if float(noise.min()) <= _SMALL_NOISE_FRACTION * float(np.diag(total).max()):
        return _update(sensitivity, values, noise)[0]
    mean: Array = sensitivity.T @ np.linalg.solve(total, values)
    return mean


def _update(sensitivity: Array, values: Array, noise: Array) -> tuple[Array, Array, Array]:
    """Condition a standard normal w on ``values``, one component at a time.

    Returns:
        Mean of w, root of its covariance, and residuals of exact components.
    """
    size = sensitivity.shape[1]
    w, root, residuals = np.zeros(size), np.eye(size), []
    for row, value, variance in zip(sensitivity, values, noise, strict=True):
        weights = root.T @ row
        total = float(weights @ weights) + float(variance)
        if total <= _EXACT_FRACTION * float(row @ row):
            residuals.append(float(value - row @ w))
            continue
        gain = root @ weights / total
        w = w + gain * (value - row @ w)
        root = root - np.outer(gain, weights) / (1.0 + np.sqrt(variance / total))
    return w, root, np.array(residuals)


def _check_contradictions(residuals: Array, prior: JointGaussianPose) -> None:
    """Raise SceneError if an exact measurement contradicts an exact prior."""
    size = 1.0 + max(float(np.abs(mean.translation).max()) for mean in prior.means)
    worst = float(np.abs(residuals).max())
    if worst > _CONTRADICTION_TOLERANCE * size:
        raise SceneError(
            f"the measurement is exact and contradicts the exact prior by {worst:.4g}; "
            "give one of them a covariance"
        )
