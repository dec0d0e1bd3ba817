"""Uncertain poses with correlated errors, and samples of uncertain poses.

To first order all operations are linear in the stacked errors: a result is H times the errors, with
covariance H S H^T. For the pose of b relative to a, both from one origin, H = [-Ad(T_ab^-1), 1].
For a chain, H consists of the adjoints of the poses after each link (Sewtz et al. 2025, equations 4
to 7, without their independence). Covariances are symmetric positive semi-definite, and their
diagonal blocks are those of the marginals.

Samples measure the errors of the closed forms, down to the *sampling floor*,
:func:`sampling_floor`. n samples give a covariance to about ``sqrt((d + 1) / n)`` of its size in
d = 6 dimensions. Poses are arrays (n, 7): x, y, z and the quaternion x, y, z, w. Equal seeds give
equal samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, adjoint, compose_each, exp_each, log_each
from tmkit._support.initialization import initialize
from tmkit.errors import SceneError
from tmkit.spatial.covariances import check_covariance, covariance_root, symmetric_part
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointGaussianPose:
    """Several poses with one covariance of all their errors.

    Attributes:
        means: the n mean poses.
        covariance: (6 n, 6 n) of the errors ``xi_i = [rho, theta]``, stacked in order, each with
            ``T_i = means[i] @ Pose.exp(xi_i)``; read-only.

    Raises:
        SceneError: if the covariance has another size or is not symmetric positive semi-definite.
    """

    means: tuple[Pose, ...]
    covariance: Array

    def __init__(self, means: Sequence[Pose], covariance: ArrayLike) -> None:
        initialize(self, means=tuple(means))
        initialize(self, covariance=check_covariance(covariance, 6 * len(self.means)))

    @classmethod
    def _from_valid(cls, means: Sequence[Pose], covariance: Array) -> JointGaussianPose:
        """Return the poses with a covariance that is valid by construction, without a check."""
        poses = object.__new__(cls)
        covariance.flags.writeable = False
        initialize(poses, means=tuple(means), covariance=covariance)
        return poses

    @classmethod
    def independent(cls, poses: Sequence[GaussianPose]) -> JointGaussianPose:
        """Return poses with independent errors."""
        whole = np.zeros((6 * len(poses), 6 * len(poses)))
        for i, pose in enumerate(poses):
            whole[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = pose.covariance
        return cls._from_valid([pose.mean for pose in poses], whole)

    @classmethod
    def of_branches(
        cls, common: GaussianPose, branches: Sequence[GaussianPose]
    ) -> JointGaussianPose:
        """Return ``common @ branch`` for each branch, with only the error of ``common`` shared.

        Args:
            common: pose of the branches' common frame relative to the reference.
            branches: poses relative to that frame.
        """
        maps = (
            np.vstack([adjoint(branch.mean.inverse()) for branch in branches])
            if branches
            else np.zeros((0, 6))
        )
        whole = maps @ common.covariance @ maps.T
        for i, branch in enumerate(branches):
            whole[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] += branch.covariance
        return cls._from_valid(
            [common.mean @ branch.mean for branch in branches], symmetric_part(whole)
        )

    def __len__(self) -> int:
        return len(self.means)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JointGaussianPose):
            return NotImplemented
        return self.means == other.means and np.array_equal(self.covariance, other.covariance)

    def __hash__(self) -> int:
        return hash((self.means, self.covariance.tobytes()))

    def __repr__(self) -> str:
        return f"JointGaussianPose({len(self)} poses)"

    def cross(self, first: int, second: int) -> Array:
        """Return the cross-covariance (6, 6) of the errors of two poses.

        Args:
            first, second: positions of the poses.
        """
        i, j = self._resolve_index(first), self._resolve_index(second)
        return self.covariance[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]

    def marginal(self, index: int) -> GaussianPose:
        """Return the pose at a position, with its own covariance."""
        return GaussianPose(self.means[self._resolve_index(index)], self.cross(index, index))

    def marginals(self) -> tuple[GaussianPose, ...]:
        """Return all poses, each with its own covariance."""
        return tuple(self.marginal(i) for i in range(len(self)))

    def relative(self, index: int, *, relative_to: int) -> GaussianPose:
        """Return the pose a_from_b of two poses with a common origin, to first order.

        Shared errors cancel: the relative pose of two poses that differ by an exact pose is exact.

        Args:
            index: position of b.
            relative_to: position of a.
        """
        i, j = self._resolve_index(relative_to), self._resolve_index(index)
        mean = self.means[i].inverse() @ self.means[j]
        if i == j:
            return GaussianPose(mean)
        blocks = [*range(6 * i, 6 * i + 6), *range(6 * j, 6 * j + 6)]
        maps = np.hstack([-adjoint(mean.inverse()), np.eye(6)])
        return _map_errors(mean, maps, self.covariance[np.ix_(blocks, blocks)])

    def compose(self) -> GaussianPose:
        """Return the product of the poses, from left to right, to first order."""
        mean, maps = chain_maps(self.means)
        return _map_errors(mean, maps, self.covariance)

    def _resolve_index(self, index: int) -> int:
        """Return an index as a number from 0, with negative ones counted from the end."""
        if not -len(self) <= index < len(self):
            raise SceneError(
                f"there are {len(self)} poses, so a position is 0 to {len(self) - 1}, not {index}"
            )
        return index % len(self)


def joint_of_root(means: Sequence[Pose], root: Array) -> JointGaussianPose:
    """Return poses with the covariance ``root @ root.T`` of all [rho, theta], without a check."""
    return JointGaussianPose._from_valid(means, symmetric_part(root @ root.T))


def _map_errors(mean: Pose, maps: Array, errors: Array) -> GaussianPose:
    """Return the pose with a linear map of errors of the given covariance."""
    # Terms may cancel, so the rounding error is relative to the terms, not to their sum.
    covariance = symmetric_part(maps @ errors @ maps.T)
    rounding = (
        1e-14 * float(np.abs(maps).max(initial=0.0)) ** 2 * float(np.abs(errors).max(initial=0.0))
    )
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < 0.0 and values[0] > -rounding * 10:
        covariance = symmetric_part((vectors * np.maximum(values, 0.0)) @ vectors.T)
    return GaussianPose(mean, covariance)


def chain_maps(means: Sequence[Pose]) -> tuple[Pose, Array]:
    """Return the product of the means, and its derivative (6, 6 n) by the links' stacked errors."""
    product, maps = Pose(), np.zeros((6, 6 * len(means)))
    for i in range(len(means) - 1, -1, -1):
        maps[:, 6 * i : 6 * i + 6] = adjoint(product.inverse())
        product = means[i] @ product
    return product, maps


def _make_generator(seed: int | np.random.Generator) -> np.random.Generator:
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def sample(pose: GaussianPose, count: int, *, seed: int | np.random.Generator = 0) -> Array:
    """Sample an uncertain pose; the result is (count, 7), read-only.

    Args:
        pose: distribution.
        count: number of samples.
        seed: seed, or a generator, whose state advances.

    Raises:
        SceneError: if the count is negative.
    """
    return sample_jointly(JointGaussianPose.independent([pose]), count, seed=seed)[0]


def sample_jointly(
    poses: JointGaussianPose, count: int, *, seed: int | np.random.Generator = 0
) -> tuple[Array, ...]:
    """Sample correlated poses; the result has one array (count, 7) a pose, read-only.

    Equal rows of the arrays are one joint sample.

    Args:
        poses: the distribution.
        count: number of samples.
        seed: seed, or a generator, whose state advances.

    Raises:
        SceneError: if the count is negative.
    """
    if count < 0:
        raise SceneError(f"the number of samples must not be negative: {count}")
    root = covariance_root(poses.covariance)
    xi = _make_generator(seed).standard_normal((count, root.shape[1])) @ root.T
    return tuple(
        compose_each(mean.as_array()[None], exp_each(xi[:, 6 * i : 6 * i + 6]))
        for i, mean in enumerate(poses.means)
    )


def sample_chain(
    links: Sequence[GaussianPose] | JointGaussianPose,
    count: int,
    *,
    seed: int | np.random.Generator = 0,
) -> Array:
    """Sample the product of the links of a chain; the result is (count, 7), read-only.

    The samples have the exact distribution, without linearisation.

    Args:
        links: a_from_b, b_from_c, ...: independent, or with a joint covariance.
        count: number of products.
        seed: seed, or a generator, whose state advances.

    Raises:
        SceneError: if the count is negative.
    """
    generator = _make_generator(seed)
    if isinstance(links, JointGaussianPose):
        samples: Sequence[Array] = sample_jointly(links, count, seed=generator)
    else:
        samples = [sample(link, count, seed=generator) for link in links]
    product = exp_each(np.zeros((count, 6)))
    for poses in samples:
        product = compose_each(product, poses)
    return product


def fit_gaussian(
    samples: ArrayLike,
    *,
    mean: Pose | None = None,
    max_iterations: int = 50,
    tolerance: float = 1e-12,
) -> GaussianPose:
    """Fit an uncertain pose to samples.

    Args:
        samples: (n, 7), at least one, within half a turn of their mean.
        mean: mean, if it is known. The covariance is then the mean square of the errors about it.
            By default the mean is the pose about which the errors average to zero, and their sum
            of squares is divided by n - 1.
        max_iterations: largest number of steps to the mean.
        tolerance: length of the last step [rho, theta], in [m] and [rad].

    Raises:
        SceneError: if there are no samples, a number is not finite, or the samples are too
            scattered for a mean.
    """
    poses = plain_numbers(samples, "samples", "m m m 1 1 1 1")
    if poses.ndim != 2 or poses.shape[1] != 7 or not len(poses):
        raise SceneError(f"samples must have shape (n, 7) with n of at least 1, not {poses.shape}")
    is_mean_given = mean is not None
    centre = Pose.from_array(poses[0]) if mean is None else mean
    errors = _compute_errors(centre, poses)
    for _ in range(0 if is_mean_given else max_iterations):
        step = errors.mean(axis=0)
        centre = centre @ Pose.exp(step)
        errors = _compute_errors(centre, poses)
        if float(np.linalg.norm(step)) <= tolerance:
            break
    else:
        if not is_mean_given:
            raise SceneError(f"the samples are too scattered: no mean after {max_iterations} steps")
    divisor = len(poses) if is_mean_given else max(len(poses) - 1, 1)
    return GaussianPose(centre, errors.T @ errors / divisor)


def _compute_errors(mean: Pose, poses: Array) -> Array:
    """Return the errors (n, 6) of poses (n, 7) about a mean."""
    return log_each(compose_each(mean.inverse().as_array()[None], poses))


def sampling_floor(covariance: ArrayLike, count: int) -> float:
    """Return the expected relative error of a covariance of samples, in the Frobenius norm.

    For Gaussian samples the expected squared error is ``(tr(S)^2 + tr(S^2)) / n``. The floor is its
    root over the norm of S. A comparison with samples cannot resolve smaller differences.

    Args:
        covariance: (d, d) true covariance S.
        count: number of samples n.
    """
    matrix = plain_numbers(covariance, "covariance")
    square = float(np.sum(matrix * matrix))
    squared_error = float(np.trace(matrix)) ** 2 + square
    return float(np.sqrt(squared_error / (count * square))) if square else 0.0
