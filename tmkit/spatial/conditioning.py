"""What a measurement says about each link of a chain: Gaussian conditioning, iterated until it no longer moves.

The errors of the links of T = T_1 ... T_n are written as L w with w standard normal and L a root of their covariance:
singular covariances need no inverse. The most probable w minimises ``(|w|^2 + e^T R^-1 e) / 2``, with e the error of
the measurement at T(w) (:mod:`tmkit.spatial.measurement`). Each turn takes e as linear about the present w, with

    H = (de/dT) Ad(what follows link i)^-1 J_r(xi_i) L_i

and updates w from its prior: the iterated extended Kalman filter, which is Gauss and Newton's method. The update takes
the measurement's independent parts one at a time and keeps a square root of the covariance (Potter's form): it stays
positive semi-definite by construction, and exact measurements (R singular or zero) are ordinary. Cost O(turns * (6 n)^2
m).

Source: Bell and Cathey, "The iterated Kalman filter update as a Gauss-Newton method", 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._core import GaussianPose, Pose, right_jacobian
from tmkit._support.results import IteratedEstimate
from tmkit.errors import SceneError
from tmkit.spatial.covariances import covariance_root, whitened_rounding
from tmkit.spatial.joint_gaussian import JointGaussianPose, chain_maps, joint_of_root
from tmkit.spatial.measurement import MeasurementModel

Array = NDArray[np.float64]

_NOTHING_NEW = 1e-27  # of the prior variance of one measured number: less is what rounding left of zero
_NOT_MUCH = 1e-8  # of the variance of what is seen: noise beside which solving loses digits
_SHORT = 1e-3  # standard deviations: a step that may be one of rounding, when the steps shrink no more
_CONTRADICTION = 1e-8  # of the size of what was measured, which was known exactly


@dataclass(frozen=True, eq=False)
class ConditionedChain(IteratedEstimate):
    """A chain of poses after a measurement.

    Attributes:
        links: the links, corrected, with the covariance of all their errors in the tangent spaces at the new means.
        correction: (6 n,) the most probable errors of the links about their *former* means, one after the other.
        correction_covariance: (6 n, 6 n) of these errors, in the tangent spaces at the former means.
        iterations: how many turns were made.
        is_converged: whether the last one moved w by less than the tolerance.
        cost: half of the squared sizes of w and of the measurement's error, each by its covariance; twice the cost is
            chi-square distributed, with as many degrees of freedom as numbers were measured.
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
        return f"ConditionedChain({len(self.links)} links, {said} after {self.iterations}, cost {self.cost:.4g})"


def condition(
    links: JointGaussianPose | Sequence[GaussianPose], measurement: MeasurementModel, *, max_iterations: int = 50,
    tolerance: float = 1e-12,
) -> ConditionedChain:  # fmt: skip
    """Return a chain as it is known after a measurement of its whole pose; whether it converged is part of the answer.

    Args:
        links: the links from the reference to the target: independent poses, or poses with a joint covariance, as an
            earlier answer's ``links``.
        measurement: what was measured of the product of the links.
        max_iterations: the most turns; 1 is the extended Kalman filter, without iteration.
        tolerance: on the length of the last step, in standard deviations. A step that is no longer than what rounding
            of the poses makes of it is the last as well.

    Raises:
        SceneError: no links, no turns, a measurement that contradicts what is known exactly, or one that has no
            derivative (a direction or distance of zero).
    """
    if isinstance(links, JointGaussianPose):
        prior, root = links, covariance_root(links.covariance)
    else:
        prior, root = JointGaussianPose.independent(links), _independent_root(links)
    if not len(prior) or max_iterations < 1:
        raise SceneError(f"conditioning takes at least one link and one turn, not {len(prior)} and {max_iterations}")
    noise, turn = np.linalg.eigh(measurement.noise)
    noise = np.maximum(noise, 0.0)  # checked to be a covariance: what is negative is rounding
    w, turns, converged, step = np.zeros(root.shape[1]), 0, False, 0.0
    sensitivity, seen = np.zeros((len(noise), root.shape[1])), np.zeros(len(noise))
    while turns < max_iterations and not converged:
        xi = root @ w
        means = _moved(prior.means, xi)
        whole, maps = chain_maps(means)
        error, derivative = measurement.compared(whole)
        bends = [right_jacobian(xi[6 * i : 6 * i + 6]) for i in range(len(prior))]
        by_error = np.hstack([derivative @ maps[:, 6 * i : 6 * i + 6] @ bend for i, bend in enumerate(bends)])
        sensitivity = turn.T @ by_error @ root
        seen = sensitivity @ w - turn.T @ error
        moved = _mean(sensitivity, seen, noise)
        last, step = step, float(np.linalg.norm(moved - w))
        rests = 0.1 * last < step < _SHORT and step <= _rounding(sensitivity, noise, [*means, whole])
        converged = step <= tolerance or rests
        w, turns = moved, turns + 1
    _, spread, unmet = _updated(sensitivity, seen, noise)
    if unmet.size and converged:
        _refuse_contradiction(unmet, prior)
    return _chain_result(prior, measurement, root @ w, root @ spread, w=w, turns=turns, converged=converged)


def _chain_result(
    prior: JointGaussianPose, measurement: MeasurementModel, xi: Array, spread: Array, *, w: Array, turns: int,
    converged: bool,
) -> ConditionedChain:  # fmt: skip
    """Return the result: the spread is a root of the covariance at the former means."""
    local = np.vstack([right_jacobian(xi[i : i + 6]) @ spread[i : i + 6] for i in range(0, len(xi), 6)])
    means = _moved(prior.means, xi)
    error, _ = measurement.compared(chain_maps(means)[0])
    inverse = np.linalg.pinv(measurement.noise, hermitian=True)
    covariance = spread @ spread.T
    for array in (xi, covariance):
        array.flags.writeable = False
    return ConditionedChain(
        links=joint_of_root(means, local), correction=xi, correction_covariance=covariance, iterations=turns,
        is_converged=converged, cost=0.5 * float(w @ w + error @ inverse @ error),
    )  # fmt: skip


def _independent_root(links: Sequence[GaussianPose]) -> Array:
    """Return the root of a block-diagonal covariance, block by block."""
    roots = [covariance_root(link.covariance) for link in links]
    whole = np.zeros((6 * len(roots), sum(root.shape[1] for root in roots)))
    column = 0
    for i, root in enumerate(roots):
        whole[6 * i : 6 * i + 6, column : column + root.shape[1]] = root
        column += root.shape[1]
    return whole


def _moved(means: Sequence[Pose], xi: Array) -> list[Pose]:
    return [mean @ Pose.exp(xi[6 * i : 6 * i + 6]) for i, mean in enumerate(means)]


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
    """Condition a standard normal w on ``seen = sensitivity @ w`` plus independent noise of the given variances.

    Return the mean, a square root of the covariance, and what the numbers that were known exactly are off by.
    """
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
