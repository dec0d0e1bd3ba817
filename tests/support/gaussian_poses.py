"""Uncertain poses for tests: hypothesis strategies, and random poses of any size and rank."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tmkit.spatial import GaussianPose, Pose

__all__ = [
    "covariances",
    "gaussian_poses",
    "poses",
    "random_chain",
    "random_gaussian_pose",
    "relative_difference",
]

Array = NDArray[np.float64]


def _covariance(seed: int, rank: int, size: float) -> Array:
    root = np.random.default_rng(seed).normal(size=(6, rank)) * size
    covariance: Array = root @ root.T
    return covariance


# Covariances of every rank, the exact one included, of errors from tiny to large.
covariances = st.builds(
    _covariance, st.integers(0, 2**31), st.integers(0, 6), st.sampled_from([1e-6, 1e-3, 0.03, 0.3])
)

_coordinates = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
_turns = st.tuples(*[st.floats(-1.0, 1.0)] * 3).map(
    lambda v: tuple(2.5 * x / max(1.0, math.hypot(*v)) for x in v)
)
poses = st.builds(lambda rho, theta: Pose.exp([*rho, *theta]), _coordinates, _turns)
gaussian_poses = st.builds(GaussianPose, poses, covariances)


def random_gaussian_pose(
    rng: np.random.Generator, *, linear: float, angular: float, rank: int = 6
) -> GaussianPose:
    """Return a pose within 1 m and 1 rad, with standard deviations of these sizes [m, rad]."""
    root = (
        rng.normal(size=(6, rank))
        / math.sqrt(max(rank, 1))
        * np.repeat([[linear], [angular]], 3, axis=0)
    )
    return GaussianPose(Pose.exp(rng.normal(size=6) * 0.8), root @ root.T)


def random_chain(count: int, *, linear: float, angular: float, seed: int = 0) -> list[GaussianPose]:
    """Return independent links of a chain."""
    rng = np.random.default_rng(seed)
    return [random_gaussian_pose(rng, linear=linear, angular=angular) for _ in range(count)]


def relative_difference(actual: Array, expected: Array) -> float:
    """Return the relative size of the difference (Frobenius), or the absolute size if zero."""
    size = float(np.linalg.norm(expected))
    return float(np.linalg.norm(np.asarray(actual) - expected)) / (size or 1.0)
