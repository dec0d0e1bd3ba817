"""Policies to resolve several estimates of one pose, and data association.

``docs/concepts/uncertainty.md`` describes the policies. Two estimates agree if their squared
Mahalanobis distance, with all correlations, is below a chi-square quantile. The estimate that
contradicts most others is rejected, until all others agree pairwise. A majority thus outvotes an
outlier, even if the outlier is the pose in the scene. If only two estimates contradict each other,
the pose in the scene is kept, or else the newer estimate.

The resolution is an ordinary edit. The frame keeps its parent, and its edge gets the pose and the
errors of the chosen path, by source.

Invariants: the edge does not depend on the order of the observations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.initialization import initialize
from tmkit.errors import SceneError
from tmkit.graph.observation_frames import Observation
from tmkit.spatial import GaussianPose
from tmkit.spatial.plain import convert_fields, plain_numbers


@dataclass(frozen=True)
class Estimate:
    """Estimate of the pose of a target frame by one path from a base frame.

    Attributes:
        observations: observations on the path, from the base to the target; none for the pose in
            the scene.
        pose: base_from_target.
        stamp: time of the oldest part [s]; None if a part has no time.
        newest: time of the newest part that has a time [s]; None if no part has one.
    """

    observations: tuple[Observation, ...]
    pose: GaussianPose
    stamp: float | None
    newest: float | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.observations)) or "the pose in the scene"


@runtime_checkable
class ResolutionPolicy(Protocol):
    """Interface of policies that select estimates."""

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the selected estimates: none, one, or several, which are fused.

        Args:
            estimates: at least one estimate, all of which agree. Their order does not depend on the
                order of the observations.
        """
        ...


@dataclass(frozen=True)
class Latest:
    """Policy that selects the newest path.

    Attributes:
        part: ``oldest`` compares the oldest parts of paths, and a part without a time is older than
            any other. ``newest`` compares the newest parts with a time, as in the robot scene
            graph.
    """

    part: Literal["oldest", "newest"] = "oldest"

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest estimate."""
        key = _oldest_time if self.part == "oldest" else _newest_time
        return [max(estimates, key=key)]


@dataclass(frozen=True)
class ByTag:
    """Policy that selects the newest path whose observations all have a tag.

    Attributes:
        tags: tags in the order of preference, of which the first with such a path is used.
    """

    tags: tuple[str, ...]

    def __init__(self, *tags: str) -> None:
        initialize(self, tags=tags)

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest estimate of the first tag that has any, or no estimate."""
        for tag in self.tags:
            candidates = [
                estimate
                for estimate in estimates
                if estimate.observations and all(tag in o.tags for o in estimate.observations)
            ]
            if candidates:
                return [max(candidates, key=_oldest_time)]
        return []


@dataclass(frozen=True)
class MinCovariance:
    """Policy that selects the path with the smallest covariance.

    The measure is the sum of the variances of the position, and of the orientation times the
    squared lever.

    Attributes:
        lever: distance from the origin of the frame at which errors are compared [m].
    """

    lever: float = field(default=0.1)

    def __post_init__(self) -> None:
        convert_fields(self, {"lever": "m"})

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the estimate with the smallest covariance."""
        return [min(estimates, key=self.spread)]

    def spread(self, estimate: Estimate) -> float:
        """Return the sum of the variances of an estimate [m^2]."""
        variances = np.diag(estimate.pose.covariance)
        return float(variances[:3].sum() + self.lever**2 * variances[3:].sum())


@dataclass(frozen=True)
class Fused:
    """Policy that fuses all paths to the most probable pose.

    The fusion also corrects every frame that shares an error with a path.
    """

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return all estimates."""
        return estimates


def _oldest_time(estimate: Estimate) -> float:
    return -math.inf if estimate.stamp is None else estimate.stamp


def _newest_time(estimate: Estimate) -> float:
    return -math.inf if estimate.newest is None else estimate.newest


_INFINITE_COST = 1e12
"""Cost from which a pair is impossible."""


def associate(costs: ArrayLike, *, gate: float = _INFINITE_COST) -> list[tuple[int, int]]:
    """Return the largest set of pairs (row, column) within a gate that has the smallest total cost.

    This is global nearest neighbour association (Bar-Shalom, Li and Kirubarajan, 2001) by the
    Hungarian method, O(n^3).

    Args:
        costs: (rows, columns) costs, such as squared Mahalanobis distances; infinite for an
            impossible pair.
        gate: largest cost of a pair.

    Raises:
        SceneError: if ``costs`` is not a matrix of numbers of at least 0.
    """
    from scipy.optimize import linear_sum_assignment

    matrix = plain_numbers(costs, "costs")
    if matrix.size == 0:
        return []
    if matrix.ndim != 2 or not (matrix >= 0.0).all():
        raise SceneError(f"costs are a matrix of numbers of at least 0, not {costs!r:.80}")
    is_possible = matrix <= min(gate, _INFINITE_COST)
    largest = float(np.max(matrix, where=is_possible, initial=0.0))
    forbidden = (largest + 1.0) * (min(matrix.shape) + 1)  # more than the sum of all other costs
    rows, columns = linear_sum_assignment(np.where(is_possible, matrix, forbidden))
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True) if is_possible[r, c]]
