"""Uncertain poses over time in plain numpy: the oracle of the tests of stamped covariances.

Poses are 4x4 matrices, rotations are those of scipy, and derivatives are central differences, so
nothing is shared with the core.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from support.gaussian_poses import gaussian_poses
from tmkit.graph import StampedPoses
from tmkit.spatial import GaussianPose, Pose

Array = NDArray[np.float64]

_STEP = 1e-5
"""Step of central differences [m, rad]."""


def _shift(theta: Array) -> Array:
    """Return the matrix V of ``exp``: ``t = V rho``, the integral of the rotation."""
    (a, b, c), angle = theta, float(np.linalg.norm(theta))
    skew = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
    if angle < 1e-4:
        return np.eye(3) + skew / 2 + skew @ skew / 6
    second = (angle - np.sin(angle)) / angle**3
    return np.eye(3) + (1 - np.cos(angle)) / angle**2 * skew + second * skew @ skew


def exp(xi: Array) -> Array:
    """Return the matrix of a tangent vector [rho, theta]."""
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(xi[3:]).as_matrix()
    matrix[:3, 3] = _shift(xi[3:]) @ xi[:3]
    return matrix


def log(matrix: Array) -> Array:
    """Return the tangent vector [rho, theta] of a matrix."""
    theta = Rotation.from_matrix(matrix[:3, :3]).as_rotvec()
    return np.concatenate([np.linalg.solve(_shift(theta), matrix[:3, 3]), theta])


def interpolate(before: Array, after: Array, share: float, policy: str) -> Array:
    """Return the matrix between two others, by the policy ``screw`` or ``interpolated``."""
    relative = np.linalg.inv(before) @ after
    if policy == "screw":
        matrix: Array = before @ exp(share * log(relative))
        return matrix
    result = np.eye(4)
    turn = Rotation.from_rotvec(share * Rotation.from_matrix(relative[:3, :3]).as_rotvec())
    result[:3, :3] = before[:3, :3] @ turn.as_matrix()
    result[:3, 3] = (1.0 - share) * before[:3, 3] + share * after[:3, 3]
    return result


def jacobians(before: Array, after: Array, share: float, policy: str) -> tuple[Array, Array]:
    """Return the derivatives (6, 6) of an interpolated pose by the right errors of both ends."""
    inverse = np.linalg.inv(interpolate(before, after, share, policy))

    def error(first: Array, second: Array) -> Array:
        return log(inverse @ interpolate(before @ exp(first), after @ exp(second), share, policy))

    zero, steps = np.zeros(6), _STEP * np.eye(6)
    of_first = [error(d, zero) - error(-d, zero) for d in steps]
    of_second = [error(zero, d) - error(zero, -d) for d in steps]
    return np.transpose(of_first) / (2 * _STEP), np.transpose(of_second) / (2 * _STEP)


class StampedModel:
    """History of uncertain poses.

    Args:
        stamps: ascending stamps [s].
        poses: mean pose at each stamp.
        covariances: covariance (6, 6) of each pose, None for that of the edge.
        of_edge: covariance (6, 6) of the edge, whose error is one at all stamps.
    """

    def __init__(
        self,
        stamps: Sequence[float],
        poses: Sequence[Pose],
        covariances: Sequence[Array | None],
        of_edge: Array | None = None,
    ) -> None:
        self.stamps = list(stamps)
        self.matrices = [pose.as_matrix() for pose in poses]
        self.covariances = list(covariances)
        self.of_edge = np.zeros((6, 6)) if of_edge is None else of_edge
        # The newest pose with a covariance shares its error with the edge, if that is equal.
        newest = max((i for i, own in enumerate(self.covariances) if own is not None), default=0)
        if self.of_edge.any() and np.array_equal(self.covariances[newest], self.of_edge):
            self.covariances[newest] = None

    def gaussian(self, stamp: float, policy: str = "interpolated") -> tuple[Array, Array]:
        """Return the mean (4, 4) and the covariance (6, 6) at a time within the history."""
        after = next(i for i, t in enumerate(self.stamps) if t >= stamp)
        if self.stamps[after] == stamp:
            own = self.covariances[after]
            return self.matrices[after], self.of_edge if own is None else own
        before = after - 1
        start, end = self.stamps[before], self.stamps[after]
        share = (stamp - start) / (end - start)
        ends = self.matrices[before], self.matrices[after]
        mean = interpolate(*ends, share, policy)
        own = self.covariances[before], self.covariances[after]
        if own[0] is None and own[1] is None:
            return mean, self.of_edge
        pairs = zip(jacobians(*ends, share, policy), own, strict=True)
        parts = [m @ (self.of_edge if s is None else s) @ m.T for m, s in pairs]
        return mean, parts[0] + parts[1]

    def check(self, found: GaussianPose, stamp: float, policy: str = "interpolated") -> None:
        """Compare an uncertain pose with that of the model."""
        mean, covariance = self.gaussian(stamp, policy)
        np.testing.assert_allclose(found.mean.as_matrix(), mean, atol=1e-9)
        size = max(np.abs(covariance).max(), 1e-12)
        np.testing.assert_allclose(found.covariance, covariance, atol=1e-6 * size)


@st.composite
def histories(draw: st.DrawFn, *, smallest: int = 1, mixed: bool = True) -> StampedPoses:
    """Return random histories; some poses have no covariance if ``mixed``."""
    ticks = draw(st.lists(st.integers(0, 400), unique=True, min_size=smallest, max_size=5))
    estimates = [draw(gaussian_poses) for _ in ticks]
    has_own = [not mixed or draw(st.booleans()) for _ in ticks]
    return StampedPoses(
        [tick / 16 for tick in sorted(ticks)],
        [estimate.mean for estimate in estimates],
        covariances=[
            e.covariance if own else None for e, own in zip(estimates, has_own, strict=True)
        ],
    )


def model_of(history: StampedPoses, of_edge: Array | None = None) -> StampedModel:
    """Return the model of a history."""
    return StampedModel(history.stamps.tolist(), history.poses, history.covariances, of_edge)


def times_in(history: StampedPoses) -> st.SearchStrategy[float]:
    """Return times within a history."""
    return st.floats(history.stamps[0], history.stamps[-1])
