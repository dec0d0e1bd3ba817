"""Several uncertain poses whose errors belong together; samples of uncertain poses, and uncertain poses of samples.

To first order everything is linear in the stacked errors, so each answer is a matrix H times these,
with covariance H S H^T. For the pose of b relative to a, both from one origin, H = [-Ad(T_ab^-1),
1]. For a chain, the adjoints of what follows each link (Sewtz et al. 2025, equations 4 to 7,
without their independence). Invariant: the covariance is symmetric positive semi-definite, and its
diagonal blocks are those of the marginals.

Sampling answers what closed forms approximate, up to the *sampling floor*, :func:`sampling_floor`:
n samples give a covariance to about ``sqrt((d + 1) / n)`` of its size in d = 6 dimensions. Poses
travel as arrays (n, 7): x, y, z and the quaternion x, y, z, w. The same seed gives the same
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, adjoint, compose_each, exp_each, log_each
from tmkit._support.initialization import initialize
from tmkit.errors import SceneError
from tmkit.spatial.covariances import checked_covariance, covariance_root, even
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointGaussianPose:
    """Several poses with one covariance of all their errors.

    Attributes:
        means: the n means.
        covariance: (6 n, 6 n) of the errors ``xi_i = [rho, theta]`` one after the other, each with
            ``T_i = means[i] @ Pose.exp(xi_i)``; read-only.

    Raises:
        SceneError: a covariance of another size, or that is not symmetric positive semi-definite.
    """

    means: tuple[Pose, ...]
    covariance: Array

    def __init__(self, means: Sequence[Pose], covariance: ArrayLike) -> None:
        initialize(self, means=tuple(means))
        initialize(self, covariance=checked_covariance(covariance, 6 * len(self.means)))

    @classmethod
    def _trusted(cls, means: Sequence[Pose], covariance: Array) -> JointGaussianPose:
        """Return one of a covariance that is one by construction, without the check."""
        made = object.__new__(cls)
        covariance.flags.writeable = False
        initialize(made, means=tuple(means), covariance=covariance)
        return made

    @classmethod
    def independent(cls, poses: Sequence[GaussianPose]) -> JointGaussianPose:
        """Return poses whose errors have nothing in common."""
        whole = np.zeros((6 * len(poses), 6 * len(poses)))
        for i, pose in enumerate(poses):
            whole[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = pose.covariance
        return cls._trusted([pose.mean for pose in poses], whole)

    @classmethod
    def of_branches(
        cls, common: GaussianPose, branches: Sequence[GaussianPose]
    ) -> JointGaussianPose:
        """Return ``common @ branch`` for each branch; they share the error of ``common`` only.

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
        return cls._trusted([common.mean @ branch.mean for branch in branches], even(whole))

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
            first, second: indices of the poses.
        """
        i, j = self._position(first), self._position(second)
        return self.covariance[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]

    def marginal(self, which: int) -> GaussianPose:
        """Return one of the poses by itself, by position."""
        return GaussianPose(self.means[self._position(which)], self.cross(which, which))

    def marginals(self) -> tuple[GaussianPose, ...]:
        """Return all poses, each by itself."""
        return tuple(self.marginal(i) for i in range(len(self)))

    def relative(self, which: int, *, relative_to: int) -> GaussianPose:
        """Return the pose a_from_b of one relative to another, both being relative to one origin, to first order.

        What their errors have in common cancels: of two that differ by an exact pose it is exact.

        Args:
            which: the position of b.
            relative_to: the position of a.
        """
        i, j = self._position(relative_to), self._position(which)
        mean = self.means[i].inverse() @ self.means[j]
        if i == j:
            return GaussianPose(mean)
        two = [*range(6 * i, 6 * i + 6), *range(6 * j, 6 * j + 6)]
        return _mapped(
            mean,
            np.hstack([-adjoint(mean.inverse()), np.eye(6)]),
            self.covariance[np.ix_(two, two)],
        )

    def composed(self) -> GaussianPose:
        """Return the product of the poses as links of a chain, from left to right, to first order."""
        mean, maps = chain_maps(self.means)
        return _mapped(mean, maps, self.covariance)

    def _position(self, which: int) -> int:
        if not -len(self) <= which < len(self):
            raise SceneError(
                f"there are {len(self)} poses, so a position is 0 to {len(self) - 1}, not {which}"
            )
        return which % len(self)


def joint_of_root(means: Sequence[Pose], root: Array) -> JointGaussianPose:
    """Return poses with covariance ``root @ root.T`` in [rho, theta] of each, which is not checked."""
    return JointGaussianPose._trusted(means, even(root @ root.T))


def _mapped(mean: Pose, maps: Array, errors: Array) -> GaussianPose:
    """Return the pose whose error is a linear map of errors with that covariance."""
    # The sum may cancel; what rounding leaves is measured by what was summed, not by what remains.
    covariance = even(maps @ errors @ maps.T)
    rounding = (
        1e-14 * float(np.abs(maps).max(initial=0.0)) ** 2 * float(np.abs(errors).max(initial=0.0))
    )
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < 0.0 and values[0] > -rounding * 10:
        covariance = even((vectors * np.maximum(values, 0.0)) @ vectors.T)
    return GaussianPose(mean, covariance)


def chain_maps(means: Sequence[Pose]) -> tuple[Pose, Array]:
    """Return the product of the means, and the maps (6, 6 n) from the stacked errors of the links to its error."""
    rest, maps = Pose(), np.zeros((6, 6 * len(means)))
    for i in range(len(means) - 1, -1, -1):
        maps[:, 6 * i : 6 * i + 6] = adjoint(rest.inverse())
        rest = means[i] @ rest
    return rest, maps


def _generator(seed: int | np.random.Generator) -> np.random.Generator:
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def sample(pose: GaussianPose, count: int, *, seed: int | np.random.Generator = 0) -> Array:
    """Draw poses (count, 7), read-only, from an uncertain one.

    Args:
        pose: what is drawn from.
        count: how many.
        seed: a seed, or a generator to draw from.

    Raises:
        SceneError: a negative count.
    """
    return sample_jointly(JointGaussianPose.independent([pose]), count, seed=seed)[0]


def sample_jointly(
    poses: JointGaussianPose, count: int, *, seed: int | np.random.Generator = 0
) -> tuple[Array, ...]:
    """Sample poses with their correlations: for each (count, 7), read-only; rows of one number belong together.

    Args:
        poses: the distribution.
        count: number of samples.
        seed: seed, or a generator, whose state advances.

    Raises:
        SceneError: a negative count.
    """
    if count < 0:
        raise SceneError(f"the number of samples is not negative: {count}")
    root = covariance_root(poses.covariance)
    xi = _generator(seed).standard_normal((count, root.shape[1])) @ root.T
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
    """Draw the products (count, 7), read-only, of the links of a chain: exact, up to the number of samples.

    Args:
        links: a_from_b, b_from_c, ...: independent, or with a joint covariance.
        count: how many products.
        seed: a seed, or a generator to draw from.

    Raises:
        SceneError: a negative count.
    """
    generator = _generator(seed)
    if isinstance(links, JointGaussianPose):
        drawn: Sequence[Array] = sample_jointly(links, count, seed=generator)
    else:
        drawn = [sample(link, count, seed=generator) for link in links]
    product = exp_each(np.zeros((count, 6)))
    for poses in drawn:
        product = compose_each(product, poses)
    return product


def fit_gaussian(
    samples: ArrayLike,
    *,
    mean: Pose | None = None,
    max_iterations: int = 50,
    tolerance: float = 1e-12,
) -> GaussianPose:
    """Return the uncertain pose that fits samples.

    Args:
        samples: (n, 7), at least one; within half a turn of their mean.
        mean: the mean, when it is known: the covariance is then the mean square of the errors about
            it. Otherwise the mean is the pose about which the errors average to zero, and their sum
            of squares is divided by n - 1.
        max_iterations: the most steps to the mean.
        tolerance: on the length of the last step [rho, theta], metres and radians.

    Raises:
        SceneError: no samples, numbers that are not finite, or samples so wide that the mean is not
            found.
    """
    poses = plain_numbers(samples, "samples")
    if poses.ndim != 2 or poses.shape[1] != 7 or not len(poses):
        raise SceneError(f"samples must have shape (n, 7) with n of at least 1, not {poses.shape}")
    known, centre = mean is not None, Pose.from_array(poses[0]) if mean is None else mean
    errors = _errors(centre, poses)
    for _ in range(0 if known else max_iterations):
        step = errors.mean(axis=0)
        centre = centre @ Pose.exp(step)
        errors = _errors(centre, poses)
        if float(np.linalg.norm(step)) <= tolerance:
            break
    else:
        if not known:
            raise SceneError(
                f"no mean of the samples was found in {max_iterations} steps: they are too wide"
                " for one"
            )
    divisor = len(poses) if known else max(len(poses) - 1, 1)
    return GaussianPose(centre, errors.T @ errors / divisor)


def _errors(mean: Pose, poses: Array) -> Array:
    return log_each(compose_each(mean.inverse().as_array()[None], poses))


def sampling_floor(covariance: ArrayLike, count: int) -> float:
    """Return how far a covariance of samples is expected to be from the true one, relative, in the Frobenius norm.

    For Gaussian samples the expected square of the distance is ``(tr(S)^2 + tr(S^2)) / n``; the
    floor is the root of that over the norm of S. No comparison with samples can show less.

    Args:
        covariance: (d, d).
        count: n.
    """
    matrix = plain_numbers(covariance, "covariance")
    square = float(np.sum(matrix * matrix))
    both = float(np.trace(matrix)) ** 2 + square
    return float(np.sqrt(both / (count * square))) if square else 0.0
