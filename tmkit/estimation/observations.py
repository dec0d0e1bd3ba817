"""Several estimates about one pose, in a scene where every frame has one parent.

A tracker, a camera and the last plan may each say where a cup is. A tree holds one edge for the cup; the others stand
beside it as *observations*: reference frame, pose, covariance, stamp and kind. :class:`Observations` is an immutable
collection of them, keyed by the frame that is observed. It is a separate value that leaves the scene unchanged and
names the scene's frames.

``resolve_observations`` makes one edge of them by whole paths. An estimate about a frame is a path from a base to it:
along the tree to an observer, over its observation, perhaps from there to another observer that was itself observed,
and so on (:mod:`tmkit.estimation.resolution`). What the edge says now is an estimate too when it has an error; an exact
edge is a placeholder that yields to any observation. A *policy* says what becomes of them:

* :class:`Latest`: the path whose oldest part is the newest;
* :class:`ByTag`: the newest path all of whose observations have a tag, the first tag that has one;
* :class:`MinCovariance`: the path with the smallest covariance;
* :class:`Fused`: all of them, each conditioning the scene as ``scene.condition`` does.

Before that, estimates that contradict the others are rejected. Two estimates agree if the squared Mahalanobis distance
of them, under all their correlations, is below a chi-square quantile; the one that contradicts most others goes,
until those left agree pairwise. So a majority outvotes an outlier, also when that is what the scene said so far. Of
two that contradict only each other the pose in the scene stays, then the newer.

Resolving is an ordinary edit: the frame keeps its parent and gets pose and errors, source by source, such that it
stands as the chosen path says. Every observation is a noise source: used for two frames, its error is the same in both.

Invariants: the answer does not depend on the order in which observations were added; the scene that was given is
    untouched.

The idea of several estimates and a policy on paths is that of the Robot Scene Graph: Blumenthal, Bruyninckx, Nowak and
Prassler, "A scene graph based shared 3D world model for robotic applications", 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit._core import EdgeNoise, Measurement, NoiseSource
from tmkit.errors import SceneError
from tmkit.spatial import GaussianPose, covariance_root


@dataclass(frozen=True)
class Observation:
    """What was seen of one frame from another. Immutable.

    Attributes:
        frame: the frame that was seen.
        pose: relative_to_from_frame and its covariance, in the axes of the frame.
        relative_to: the frame from which it was seen.
        stamp: when, in seconds; None when it is unknown.
        tags: what kind of observation it is.
        noise: its error, from a source that belongs to this observation alone; None when it is exact. Copies by pickle
            have sources of their own.
    """

    frame: str
    pose: GaussianPose
    _: KW_ONLY
    relative_to: str
    stamp: float | None = None
    tags: frozenset[str] = frozenset()
    noise: EdgeNoise | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.frame == self.relative_to:
            raise SceneError(f"frame '{self.frame}' cannot be observed from itself")
        if self.stamp is not None and not np.isfinite(self.stamp):
            raise SceneError(f"the stamp of an observation must be a finite number or None, not {self.stamp}")
        if isinstance(self.tags, str):
            raise SceneError(f"tags are a set of texts, not the text '{self.tags}'")
        object.__setattr__(self, "tags", frozenset(self.tags))
        root = covariance_root(self.pose.covariance)
        noise = None
        if root.shape[1]:
            source = NoiseSource(root.shape[1], f"observation of {self.frame} in {self.relative_to}")
            noise = EdgeNoise({source: root}, covariance=self.pose.covariance)
        object.__setattr__(self, "noise", noise)

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(Observation, relative_to=self.relative_to, stamp=self.stamp, tags=self.tags)
        return make, (self.frame, self.pose)

    def measurement(self) -> Measurement:
        """Return it as ``scene.condition`` takes it."""
        return Measurement.of_pose(
            self.frame, self.pose.mean, relative_to=self.relative_to, covariance=self.pose.covariance
        )

    def __str__(self) -> str:
        when = "" if self.stamp is None else f" at {self.stamp:g} s"
        tags = f" ({', '.join(sorted(self.tags))})" if self.tags else ""
        return f"'{self.frame}' seen from '{self.relative_to}'{when}{tags}"


class Observations:
    """What was seen of the frames of a scene: an immutable collection.

    Equal collections hold the same observations; their order is that of addition and means nothing else.

    Args:
        observations: to begin with.
    """

    __slots__ = ("_all", "_by_frame")

    def __init__(self, observations: Iterable[Observation] = ()) -> None:
        self._all = tuple(dict.fromkeys(observations))
        by_frame: dict[str, list[Observation]] = {}
        for observation in self._all:
            by_frame.setdefault(observation.frame, []).append(observation)
        self._by_frame = {name: tuple(found) for name, found in by_frame.items()}

    def add(self, *observations: Observation) -> Observations:
        """Return the collection with more observations; those it has already are not taken twice."""
        return Observations((*self._all, *observations))

    def observe(
        self, frame: str, *, relative_to: str, pose: GaussianPose, stamp: float | None = None, tags: Iterable[str] = ()
    ) -> Observations:
        """Return the collection with one more observation.

        Args:
            frame: the frame that was seen.
            relative_to: the frame from which it was seen.
            pose: relative_to_from_frame and its covariance.
            stamp: when, in seconds.
            tags: what kind of observation it is.

        Raises:
            SceneError: a frame seen from itself, or a stamp that is not finite.
        """
        return self.add(Observation(frame, pose, relative_to=relative_to, stamp=stamp, tags=frozenset(tags)))

    def without(self, observations: Iterable[Observation]) -> Observations:
        """Return the collection without some, e.g. those already used, which must not count twice."""
        gone = set(observations)
        return Observations(each for each in self._all if each not in gone)

    def since(self, stamp: float) -> Observations:
        """Return the observations that are not older than a time; those without a stamp stay."""
        return Observations(each for each in self._all if each.stamp is None or each.stamp >= stamp)

    def of(self, frame: str) -> tuple[Observation, ...]:
        """Return what was seen of one frame; nothing for a frame that was never seen."""
        return self._by_frame.get(frame, ())

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames that were seen, in the order in which they were first."""
        return tuple(self._by_frame)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, observation: object) -> bool:
        return observation in self._all

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Observations) and set(self._all) == set(other._all)

    def __hash__(self) -> int:
        return hash(frozenset(self._all))

    def __repr__(self) -> str:
        return f"Observations({len(self._all)} of {len(self._by_frame)} frames)"


# ------------------------------------------------------------------------------------------------------------ policies


@dataclass(frozen=True)
class Estimate:
    """A whole path from the base to the frame in question.

    Attributes:
        observations: those on the path, from the base to the frame; none for the pose in the scene so far.
        pose: base_from_target.
        stamp: of the oldest part, in seconds; None when a part has none.
    """

    observations: tuple[Observation, ...]
    pose: GaussianPose
    stamp: float | None

    def __str__(self) -> str:
        return ", ".join(map(str, self.observations)) or "the pose in the scene"


@runtime_checkable
class ResolutionPolicy(Protocol):
    """Selects estimates. Your own policy is a class with this method."""

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return those that count: none, one, or several, which are fused.

        Args:
            estimates: those that agree, at least one; in an order that does not depend on that of addition.
        """
        ...


@dataclass(frozen=True)
class Latest:
    """The path whose oldest part is the newest. A path with a part without a time is older than all."""

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest."""
        return [max(estimates, key=_age)]


@dataclass(frozen=True)
class ByTag:
    """The newest path all of whose observations have a tag.

    Attributes:
        tags: in the order of preference; the first for which there is a path counts.
    """

    tags: tuple[str, ...]

    def __init__(self, *tags: str) -> None:
        object.__setattr__(self, "tags", tags)

    def choose(self, estimates: Sequence[Estimate]) -> Sequence[Estimate]:
        """Return the newest with the first tag that has one; nothing when none has any."""
        for tag in self.tags:
            found = [each for each in estimates if each.observations and all(tag in o.tags for o in each.observations)]
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
