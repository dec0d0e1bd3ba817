"""Gaussian conditioning of each link of a chain on a measurement, iterated until it no longer moves.

A measurement of the pose ``T`` of a target relative to a reference compares what ``T`` predicts
with what was measured. The result is an *error* e (m,) that is zero when both agree, and its
derivative H (m, 6) by the right error of T, so that ``e(T exp(xi)) = e(T) + H xi + ...``. With the
covariance of the noise that is all that conditioning needs; whoever measures something else writes
a class with the three members of :class:`MeasurementModel`.

The errors of the links of T = T_1 ... T_n are written as L w with w standard normal and L a root of
their covariance: singular covariances need no inverse. The most probable w minimises ``(|w|^2 + e^T
R^-1 e) / 2``, with e the error of the measurement at T(w). Each turn takes e as linear about the
present w, with

    H = (de/dT) Ad(what follows link i)^-1 J_r(xi_i) L_i

and updates w from its prior: the iterated extended Kalman filter, which is Gauss and Newton's
method. The update takes the measurement's independent parts one at a time and keeps a square root
of the covariance (Potter's form): it stays positive semi-definite, and exact measurements (R
singular or zero) are ordinary. Cost O(turns * (6 n)^2 m).

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
from tmkit.spatial.covariances import checked_covariance, covariance_root, whitened_rounding
from tmkit.spatial.joint_gaussian import JointGaussianPose, chain_maps, joint_of_root
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
        raise SceneError(
            f"{what} must be three finite numbers, not"
            f" {np.array2string(np.asarray(values), threshold=8)}"
        )
    vector.flags.writeable = False
    return vector


def _at_point(pose: Pose, point: Array) -> tuple[Array, Array]:
    """Return a point of the target in the reference, and its derivative (3, 6) by the pose's right error."""
    x, y, z = point
    # rho + theta x point
    moved = np.hstack([np.eye(3), [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]])
    return pose.apply(point), pose.rotation @ moved


@dataclass(frozen=True, eq=False)
class PoseMeasurement:
    """The whole pose, as a camera or a fiducial marker gives it.

    Attributes:
        pose: what was measured, reference_from_target, and the covariance of its error in the
            target's axes.
    """

    pose: GaussianPose

    @property
    def noise(self) -> Array:
        """Covariance (6, 6) of the right error [rho, theta]."""
        return self.pose.covariance

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return the error (6,) about the measured pose and its derivative (6, 6): see :class:`Retraction`."""
        return Retraction(self.pose.covariance).residual(self.pose.mean.inverse() @ pose)


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

    def __init__(
        self, position: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        initialize(self, position=_vector(position, "position"))
        initialize(self, covariance=checked_covariance(covariance, 3))
        initialize(self, point=_vector(point, "point"))

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

    The error is the turn that takes the measured direction to the predicted one, as two angles
    about two axes perpendicular to the measured direction, which :attr:`axes` names.

    Attributes:
        direction: (3,) unit vector, in the reference; given of any length above zero.
        covariance: (2, 2), rad^2, of the angles along :attr:`axes`; given as such, or as one number
            for both angles.
        point: (3,) metres, in the target; its origin by default.

    Raises:
        SceneError: numbers that are not three or not finite, a zero direction, or a matrix that is
            no covariance.
    """

    direction: Array
    covariance: Array
    point: Array

    def __init__(
        self, direction: ArrayLike, covariance: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        vector = _vector(direction, "direction")
        length = float(np.linalg.norm(vector))
        if length < 1e-9:
            raise SceneError("direction is zero: it points nowhere")
        unit = vector / length
        unit.flags.writeable = False
        matrix = plain_numbers(covariance, "covariance")
        spread = checked_covariance(matrix * np.eye(2) if matrix.ndim == 0 else matrix, 2)
        initialize(self, direction=unit, covariance=spread, point=_vector(point, "point"))

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
            SceneError: the point is at the origin of the reference, where it has no direction, or
                opposite to the measured direction, where the turn is not determined.
        """
        predicted, derivative = _at_point(pose, self.point)
        distance = float(np.linalg.norm(predicted))
        if distance < 1e-12:
            raise SceneError(
                "the point measured is at the origin of the reference, where it has no direction"
            )
        unit, axes = predicted / distance, self.axes
        across, along = axes @ unit, float(self.direction @ unit)
        sine = float(np.linalg.norm(across))
        angle = float(np.arctan2(sine, along))
        if np.pi - angle < 1e-6:
            raise SceneError(
                "the point measured is opposite to the measured direction: the turn is not"
                " determined"
            )
        turned = (derivative - np.outer(unit, unit @ derivative)) / distance  # of the unit vector
        if sine < 1e-8:
            return across, axes @ turned
        # error = angle * across / sine, with d angle = along d sine - sine d along
        towards = across / sine
        sine_rate = towards @ axes @ turned
        angle_rate = along * sine_rate - sine * (self.direction @ turned)
        scale = angle / sine
        rate = np.outer(towards, angle_rate) + scale * (
            axes @ turned - np.outer(towards, sine_rate)
        )
        return scale * across, rate


@dataclass(frozen=True, eq=False)
class RangeMeasurement:
    """How far a point of the target is from the origin of the reference.

    Attributes:
        distance: metres, not negative.
        variance: m^2, not negative.
        point: (3,) metres, in the target; its origin by default.

    Raises:
        SceneError: a distance or variance that is negative or not finite, or a point that is not
            three numbers.
    """

    distance: float
    variance: float
    point: Array

    def __init__(
        self, distance: float, variance: float, *, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        for given, what in ((distance, "distance"), (variance, "variance")):
            value = plain_number(given, what)
            if not (np.isfinite(value) and value >= 0.0):
                raise SceneError(
                    f"{what} must be a finite number that is not negative, not {value}"
                )
            initialize(self, **{what: value})
        initialize(self, point=_vector(point, "point"))

    @property
    def noise(self) -> Array:
        """Covariance (1, 1)."""
        return np.array([[self.variance]])

    def compared(self, pose: Pose) -> tuple[Array, Array]:
        """Return the predicted distance minus the measured one, (1,) metres, and its derivative (1, 6).

        Raises:
            SceneError: the point is at the origin of the reference, where the distance has no
                derivative.
        """
        predicted, derivative = _at_point(pose, self.point)
        length = float(np.linalg.norm(predicted))
        if length < 1e-12:
            where = "at the origin of the reference, where the distance has no derivative"
            raise SceneError(f"the point measured is {where}")
        return np.array([length - self.distance]), (predicted / length @ derivative)[None]


# of the prior variance of one measured number: less is what rounding left of zero
_NOTHING_NEW = 1e-27
_NOT_MUCH = 1e-8  # of the variance of what is seen: noise beside which solving loses digits
# standard deviations: a step that may be one of rounding, when the steps shrink no more
_SHORT_STEP = 1e-3
_CONTRADICTION = 1e-8  # of the size of what was measured, which was known exactly


@dataclass(frozen=True, eq=False)
class ConditionedChain(IteratedEstimate):
    """A chain of poses after a measurement.

    Attributes:
        links: the links, corrected, with the covariance of all their errors in the tangent spaces
            at the new means.
        correction: (6 n,) the most probable errors of the links about their *former* means, one
            after the other.
        correction_covariance: (6 n, 6 n) of these errors, in the tangent spaces at the former
            means.
        iterations: how many turns were made.
        is_converged: whether the last one moved w by less than the tolerance.
        cost: half of the squared sizes of w and of the measurement's error, each by its covariance;
            twice the cost is chi-square distributed, with as many degrees of freedom as numbers
            were measured.
    """

    links: JointGaussianPose
    correction: Array
    correction_covariance: Array
    iterations: int
    is_converged: bool
    cost: float

    @property
    def pose(self) -> GaussianPose:
        """The pose at the end of the chain, with what is now known of it."""
        return self.links.composed()

    def __repr__(self) -> str:
        said = "converged" if self.is_converged else "not converged"
        return (
            f"ConditionedChain({len(self.links)} links, {said} after {self.iterations}, cost"
            f" {self.cost:.4g})"
        )


def condition(
    links: JointGaussianPose | Sequence[GaussianPose],
    measurement: MeasurementModel,
    *,
    max_iterations: int = 50,
    tolerance: float = 1e-12,
) -> ConditionedChain:
    """Return a chain as it is known after a measurement of its whole pose; whether it converged is part of the answer.

    Args:
        links: from the reference to the target: independent poses, or with a joint covariance, as
            earlier ``links``.
        measurement: what was measured of the product of the links.
        max_iterations: the most turns; 1 is the extended Kalman filter, without iteration.
        tolerance: on the last step, in standard deviations; one no longer than rounding of poses is
            the last as well.

    Raises:
        SceneError: no links or turns, a measurement against what is exact, or of a direction or
            distance of zero.
    """
    if isinstance(links, JointGaussianPose):
        prior, root = links, covariance_root(links.covariance)
    else:
        prior, root = JointGaussianPose.independent(links), _independent_root(links)
    if not len(prior) or max_iterations < 1:
        raise SceneError(
            f"conditioning takes at least one link and one turn, not {len(prior)} and"
            f" {max_iterations}"
        )
    retractions = [Retraction(link.covariance) for link in prior.marginals()]
    noise, turn = np.linalg.eigh(measurement.noise)
    noise = np.maximum(noise, 0.0)  # checked to be a covariance: what is negative is rounding
    w, turns, converged, step = np.zeros(root.shape[1]), 0, False, 0.0
    sensitivity, seen = np.zeros((len(noise), root.shape[1])), np.zeros(len(noise))
    while turns < max_iterations and not converged:
        xi = root @ w
        means = _moved(prior.means, retractions, xi)
        whole, maps = chain_maps(means)
        error, derivative = measurement.compared(whole)
        bends = _bends(retractions, xi)
        by_error = np.hstack(
            [derivative @ maps[:, 6 * i : 6 * i + 6] @ bend for i, bend in enumerate(bends)]
        )
        sensitivity = turn.T @ by_error @ root
        seen = sensitivity @ w - turn.T @ error
        moved = _mean(sensitivity, seen, noise)
        last, step = step, float(np.linalg.norm(moved - w))
        rests = 0.1 * last < step < _SHORT_STEP and step <= _rounding(
            sensitivity, noise, [*means, whole]
        )
        converged = step <= tolerance or rests
        w, turns = moved, turns + 1
    _, spread, unmet = _updated(sensitivity, seen, noise)
    if unmet.size and converged:
        _refuse_contradiction(unmet, prior)
    xi, spread = root @ w, root @ spread
    bends = _bends(retractions, xi)
    local = np.vstack([bend @ spread[6 * i : 6 * i + 6] for i, bend in enumerate(bends)])
    links = joint_of_root(_moved(prior.means, retractions, xi), local)
    return _chain_result(links, measurement, xi, spread, w=w, turns=turns, converged=converged)


def _chain_result(
    links: JointGaussianPose,
    measurement: MeasurementModel,
    xi: Array,
    spread: Array,
    *,
    w: Array,
    turns: int,
    converged: bool,
) -> ConditionedChain:
    """Return the result: the spread is a root of the covariance at the former means."""
    error, _ = measurement.compared(chain_maps(links.means)[0])
    inverse = np.linalg.pinv(measurement.noise, hermitian=True)
    covariance = spread @ spread.T
    for array in (xi, covariance):
        array.flags.writeable = False
    return ConditionedChain(
        links=links,
        correction=xi,
        correction_covariance=covariance,
        iterations=turns,
        is_converged=converged,
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


def _moved(means: Sequence[Pose], retractions: Sequence[Retraction], xi: Array) -> list[Pose]:
    links = enumerate(zip(means, retractions, strict=True))
    return [mean @ retraction.pose(xi[6 * i : 6 * i + 6]) for i, (mean, retraction) in links]


def _bends(retractions: Sequence[Retraction], xi: Array) -> list[Array]:
    """Return the derivatives of the links' poses by their errors, in the axes of their children."""
    return [retraction.jacobian(xi[6 * i : 6 * i + 6]) for i, retraction in enumerate(retractions)]


def _rounding(sensitivity: Array, noise: Array, poses: Sequence[Pose]) -> float:
    """Return how far rounding of the poses moves w."""
    reach = 1.0 + max(float(np.abs(pose.translation).max()) for pose in poses)
    return whitened_rounding(sensitivity @ sensitivity.T + np.diag(noise), reach)


def _mean(sensitivity: Array, seen: Array, noise: Array) -> Array:
    """Return the mean that :func:`_updated` gives, at once where all that is seen has noise of its own."""
    total = sensitivity @ sensitivity.T + np.diag(noise)
    if float(noise.min()) <= _NOT_MUCH * float(np.diag(total).max()):
        return _updated(sensitivity, seen, noise)[0]
    mean: Array = sensitivity.T @ np.linalg.solve(total, seen)
    return mean


def _updated(sensitivity: Array, seen: Array, noise: Array) -> tuple[Array, Array, Array]:
    """Return mean and root of the covariance of standard normal w, given ``seen``; by what exact numbers are off."""
    w, root, unmet = np.zeros(sensitivity.shape[1]), np.eye(sensitivity.shape[1]), []
    for row, value, variance in zip(sensitivity, seen, noise, strict=True):
        weights = root.T @ row
        total = float(weights @ weights) + float(variance)
        if total <= _NOTHING_NEW * float(row @ row):
            unmet.append(float(value - row @ w))
            continue
        gain = root @ weights / total
        w = w + gain * (value - row @ w)
        root = root - np.outer(gain, weights) / (1.0 + np.sqrt(variance / total))
    return w, root, np.array(unmet)


def _refuse_contradiction(unmet: Array, prior: JointGaussianPose) -> None:
    """Raise when something measured exactly differs from what was known exactly."""
    size = 1.0 + max(float(np.abs(mean.translation).max()) for mean in prior.means)
    worst = float(np.abs(unmet).max())
    if worst > _CONTRADICTION * size:
        raise SceneError(
            f"the measurement is exact and contradicts what is known exactly, by {worst:.4g}; "
            "give one of them a covariance"
        )
