"""Samples of uncertain poses, and uncertain poses of samples.

Sampling answers what closed forms approximate, up to the *sampling floor*, :func:`sampling_floor`: n samples give a
covariance to about ``sqrt((d + 1) / n)`` of its size in d = 6 dimensions.

Poses travel as arrays (n, 7): x, y, z and the quaternion x, y, z, w. The same seed gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose, compose_each, exp_each, log_each
from tmkit.errors import SceneError
from tmkit.spatial.covariances import covariance_root
from tmkit.spatial.joint_gaussian import JointGaussianPose
from tmkit.spatial.plain import plain_numbers

Array = NDArray[np.float64]


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


def sample_jointly(poses: JointGaussianPose, count: int, *, seed: int | np.random.Generator = 0) -> tuple[Array, ...]:
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
        compose_each(mean.as_array()[None], exp_each(xi[:, 6 * i : 6 * i + 6])) for i, mean in enumerate(poses.means)
    )


def sample_chain(
    links: Sequence[GaussianPose] | JointGaussianPose, count: int, *, seed: int | np.random.Generator = 0
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
    samples: ArrayLike, *, mean: Pose | None = None, max_iterations: int = 50, tolerance: float = 1e-12
) -> GaussianPose:
    """Return the uncertain pose that fits samples.

    Args:
        samples: (n, 7), at least one; within half a turn of their mean.
        mean: the mean, when it is known: the covariance is then the mean square of the errors about it. Otherwise the
            mean is the pose about which the errors average to zero, and their sum of squares is divided by n - 1.
        max_iterations: the most steps to the mean.
        tolerance: on the length of the last step [rho, theta], metres and radians.

    Raises:
        SceneError: no samples, numbers that are not finite, or samples so wide that the mean is not found.
    """
    poses = plain_numbers(samples, "samples")
    if poses.ndim != 2 or poses.shape[1] != 7 or not len(poses):
        raise SceneError(f"samples must have shape (n, 7) with n of at least 1, not {poses.shape}")
    known = mean is not None
    centre = mean if mean is not None else Pose.from_array(poses[0])
    errors = _errors(centre, poses)
    for _ in range(0 if known else max_iterations):
        step = errors.mean(axis=0)
        centre = centre @ Pose.exp(step)
        errors = _errors(centre, poses)
        if float(np.linalg.norm(step)) <= tolerance:
            break
    else:
        if not known:
            raise SceneError(f"no mean of the samples was found in {max_iterations} steps: they are too wide for one")
    divisor = len(poses) if known else max(len(poses) - 1, 1)
    return GaussianPose(centre, errors.T @ errors / divisor)


def _errors(mean: Pose, poses: Array) -> Array:
    return log_each(compose_each(mean.inverse().as_array()[None], poses))


def sampling_floor(covariance: ArrayLike, count: int) -> float:
    """Return how far a covariance of samples is expected to be from the true one, relative, in the Frobenius norm.

    For Gaussian samples the expected square of the distance is ``(tr(S)^2 + tr(S^2)) / n``; the floor is the root of
    that over the norm of S. No comparison with samples can show less.

    Args:
        covariance: (d, d).
        count: n.
    """
    matrix = plain_numbers(covariance, "covariance")
    square = float(np.sum(matrix * matrix))
    if square == 0.0:
        return 0.0
    return float(np.sqrt((float(np.trace(matrix)) ** 2 + square) / (count * square)))
