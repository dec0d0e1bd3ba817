"""Several estimates about one pose, in a scene where every frame has one parent; data association.

``docs/concepts/uncertainty.md`` has the policies and says which estimates count. Two estimates
agree if the squared Mahalanobis distance of them, under all their correlations, is below a
chi-square quantile; the one that contradicts most others goes, until those left agree pairwise. So
a majority outvotes an outlier, also when that is what the scene said so far. Of two that contradict
only each other the pose in the scene stays, then the newer.

Resolving is an ordinary edit: the frame keeps its parent and gets pose and errors, source by
source, such that it stands as the chosen path says.

Invariants: the edge does not depend on the order in which observations were added.
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
    """A whole path from the base to the frame in question.

    Attributes:
        observations: those on the path, from the base to the frame; none for the pose in the scene
            so far.
        pose: base_from_target.
        stamp: of the oldest part, in seconds; None when a part has none.
        newest: of the newest part that has a stamp; None when none has.
    """

    observations: tuple[Observation, ...]
    pose: GaussianPose
    stamp: float | None
    newest: float | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.observations)) or "the pose in the scene"


@runtime_checkable
class ResolutionPolicy(Protocol):
    """Selects estimates. Your own policy is a class with this method."""

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return those that count: none, one, or several, which are fused.

        Of those that agree there is at least one; their order does not depend on that of addition.
        """
        ...


@dataclass(frozen=True)
class Latest:
    """The path whose oldest part is the newest. A path with a part without a time is older than all.

    Attributes:
        part: ``oldest``, or ``newest``: the path with the newest part that has a time, as in the
            robot scene graph.
    """

    part: Literal["oldest", "newest"] = "oldest"

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest."""
        if self.part == "oldest":
            return [max(estimates, key=_age)]
        return [max(estimates, key=lambda one: -math.inf if one.newest is None else one.newest)]


@dataclass(frozen=True)
class ByTag:
    """The newest path all of whose observations have a tag.

    Attributes:
        tags: in the order of preference; the first for which there is a path counts.
    """

    tags: tuple[str, ...]

    def __init__(self, *tags: str) -> None:
        initialize(self, tags=tags)

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest with the first tag that has one; nothing when none has any."""
        for tag in self.tags:
            found = [
                each
                for each in estimates
                if each.observations and all(tag in o.tags for o in each.observations)
            ]
            if found:
                return [max(found, key=_age)]
        return []


@dataclass(frozen=True)
class MinCovariance:
    """The path with the smallest covariance: variances of the position and, times a lever squared, of the orientation.

    Attributes:
        lever: metres; how far from its origin the frame's places matter.
    """

    lever: float = field(default=0.1)

    def __post_init__(self) -> None:
        convert_fields(self)

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the one of least covariance."""
        return [min(estimates, key=self.spread)]

    def spread(self, estimate: Estimate) -> float:
        """Return the sum of the variances, m^2."""
        variances = np.diag(estimate.pose.covariance)
        return float(variances[:3].sum() + self.lever**2 * variances[3:].sum())


@dataclass(frozen=True)
class Fused:
    """All of them together: the most probable pose, and what that says of every frame that shares an error."""

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return all."""
        return estimates


def _age(estimate: Estimate) -> float:
    return -math.inf if estimate.stamp is None else estimate.stamp


_LARGE = 1e12  # a cost that counts as infinite


def associate(costs: ArrayLike, *, gate: float = _LARGE) -> list[tuple[int, int]]:
    """Return pairs (row, column): as many as possible within a gate, and of these with the least sum of costs.

    It is global nearest neighbour association (Bar-Shalom, Li and Kirubarajan, 2001) by the
    Hungarian method, O(n^3).

    Args:
        costs: (rows, columns), such as squared Mahalanobis distances; infinite where a pair is
            impossible.
        gate: the largest cost of a pair.

    Raises:
        SceneError: costs that are no matrix of numbers of at least 0.
    """
    from scipy.optimize import linear_sum_assignment

    matrix = plain_numbers(costs, "costs")
    if matrix.size == 0:
        return []
    if matrix.ndim != 2 or not (matrix >= 0.0).all():
        raise SceneError(f"costs are a matrix of numbers of at least 0, not {costs!r:.80}")
    is_possible = matrix <= min(gate, _LARGE)
    largest = float(np.max(matrix, where=is_possible, initial=0.0))
    forbidden = (largest + 1.0) * (min(matrix.shape) + 1)  # more than all others together
    rows, columns = linear_sum_assignment(np.where(is_possible, matrix, forbidden))
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True) if is_possible[r, c]]
