"""One pose out of several estimates: the paths of observations, which of them agree, and what a policy makes of them.

Every estimate is hung into a scratch copy of the scene as a frame of its own, a *ghost* of the observed frame: under
its observer, with the observation's pose and noise source; of a chain of observations, under the ghost of the observer.
Then the scene's own queries answer everything, with all correlations: the pose of a ghost relative to the base is what
that path says, that of one ghost relative to another is by how much two estimates differ, and fusing them is
conditioning on the fact that ghost and frame are at one place.

Complexity: O(paths^2) pose queries to compare, O(paths) conditionings to fuse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import EdgeNoise, Measurement, SceneGraph
from tmkit._support.results import GateStatus, Result
from tmkit.errors import SceneError
from tmkit.estimation.policies import Estimate, ResolutionPolicy
from tmkit.graph import Observation, common_ancestor, observations, path_noise, remove_observations
from tmkit.spatial import Pose, chi_square_quantile, mahalanobis_distance

_MOST_PATHS = 500
_DIGITS = 9  # of squared distances that are compared: what differs by rounding is equal


@dataclass(frozen=True)
class GateResult(Result):
    """The gate result of an estimate.

    Attributes:
        estimate: the estimate.
        is_accepted: whether it agrees with the others.
        is_used: whether it is in the new version: the one that was chosen, or all that were fused.
        squared_distance: squared Mahalanobis distance to the accepted estimate that it contradicts most; zero when
            there is no other.
        threshold: of that distance: beyond it the two contradict each other.
    """

    estimate: Estimate
    is_accepted: bool
    is_used: bool
    squared_distance: float
    threshold: float

    @property
    def status(self) -> GateStatus:
        """Whether the estimate is accepted."""
        return GateStatus.ACCEPTED if self.is_accepted else GateStatus.REJECTED

    def __repr__(self) -> str:
        numbers = f"squared distance {self.squared_distance:.4g} of {self.threshold:.4g}"
        return f"GateResult({self.status.value}, {numbers}{', used' if self.is_used else ''})"

    def __str__(self) -> str:
        if self.is_accepted:
            return f"{self.estimate}: {'used' if self.is_used else 'not needed'}"
        beyond = f"squared distance {self.squared_distance:.4g} beyond {self.threshold:.4g}"
        return f"{self.estimate}: rejected, {beyond}"


class ResolutionStatus(StrEnum):
    """What came of several estimates."""

    RESOLVED = "resolved"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Resolution(Result):
    """A new version of the scene, and why it is that.

    Attributes:
        scene: where the frame stands as the policy decides; the scene that was given when no observation was used.
        frame: the frame.
        gate_results: of every estimate: first the pose in the scene, if uncertain, then the paths of observations.
    """

    scene: SceneGraph
    frame: str
    gate_results: tuple[GateResult, ...]

    @property
    def status(self) -> ResolutionStatus:
        """Whether observations are in the new version; without any, the scene is unchanged."""
        return ResolutionStatus.RESOLVED if self.used else ResolutionStatus.UNCHANGED

    @property
    def used(self) -> tuple[Observation, ...]:
        """The observations in the new edge; those that were fused are no observations of the new version any more."""
        return tuple(
            dict.fromkeys(o for result in self.gate_results if result.is_used for o in result.estimate.observations)
        )

    @property
    def rejected(self) -> tuple[GateResult, ...]:
        """The estimates that contradict the others."""
        return tuple(result for result in self.gate_results if not result.is_accepted)

    def __repr__(self) -> str:
        used = sum(result.is_used for result in self.gate_results)
        counts = f"{used} of {len(self.gate_results)} estimates used, {len(self.rejected)} rejected"
        return f"Resolution('{self.frame}', {self.status.value}, {counts})"

    def __str__(self) -> str:
        return "\n".join([f"'{self.frame}':", *(f"    {result}" for result in self.gate_results)])


# ----------------------------------------------------------------------------------------------------------- resolving


def resolve_observations(
    scene: SceneGraph, frame: str, *, policy: ResolutionPolicy, base: str | None = None,
    probability: float | None = 0.997, q: ArrayLike | None = None,
) -> Resolution:  # fmt: skip
    """Return a version in which a frame stands as a policy makes of what was seen of it, with the gate result of each.

    Args:
        scene: the scene, with what was seen of this frame and of others (``graph.add_observation``).
        frame: the frame in question.
        policy: what becomes of several estimates: :class:`Latest`, :class:`ByTag`, :class:`MinCovariance`,
            :class:`Fused`, or one of your own.
        base: the frame relative to which paths are compared; the parent of the frame if omitted. Paths begin on the
            way from it to the root.
        probability: with which an estimate that is right agrees with another; None: no estimate is rejected.
        q: configuration (n_joints,) of the observations; may be omitted if no joint is on a path.

    Raises:
        UnknownNameError: a frame on a path that the scene does not have.
        SceneError: the frame is a root or above the base, is on a joint (then only fusing into an uncertain edge can
            be said), has more than 500 paths; estimates that contradict each other in what they know exactly are fused.
        DisconnectedError: an observer in another tree.
        ConfigurationError: a joint is on a path and q is missing.
    """
    parent = scene.parent(frame)
    if parent is None:
        raise SceneError(f"frame '{frame}' is a root, of which there are no estimates")
    table = _Table(scene, frame, base=parent if base is None else base, q=q)
    chosen_from, distances = _agreeing(table, probability)
    chosen = list(policy.choose([table.estimates[k] for k in chosen_from])) if chosen_from else []
    members = [k for k in chosen_from if table.estimates[k] in chosen]
    gate_results = tuple(
        GateResult(estimate, k in chosen_from, k in members, *distances[k])
        for k, estimate in enumerate(table.estimates)
    )
    return Resolution(_resolved(table, members, parent), frame, gate_results)


class _Table:
    """All estimates, hung into a scratch copy of the scene: ``frames[k]`` stands as ``estimates[k]`` says."""

    def __init__(self, scene: SceneGraph, target: str, *, base: str, q: ArrayLike | None) -> None:
        self.scene, self.scratch, self.frame, self.q = scene, scene, target, q
        self.ghosts: dict[tuple[Observation, ...], str] = {}
        chain = {base, *scene.ancestors(base)}
        if target in chain:
            raise SceneError(
                f"frame '{target}' is an ancestor of '{base}' or the same frame: it has no estimates relative to it"
            )
        paths = list(_paths(scene, target, chain))
        paths.sort(key=lambda path: [_order(observation) for observation in path])
        entries: list[tuple[tuple[Observation, ...], str]] = [(path, self._ghost(path)) for path in paths]
        self.present = scene.noise(target) is not None
        if self.present:
            entries.insert(0, ((), target))
        self.frames = [frame for _, frame in entries]
        self.estimates = [
            Estimate(path, self.scratch.gaussian_pose(frame, relative_to=base, q=q), *self._stamps(path, base))
            for path, frame in entries
        ]

    def _ghost(self, path: tuple[Observation, ...]) -> str:
        """Return the frame that stands as a path says, made when there is none."""
        if path in self.ghosts:
            return self.ghosts[path]
        *before, last = path
        if not before:
            return last.name
        seen, upper = before[-1].frame, self._ghost(tuple(before))
        observer = upper if last.relative_to == seen else self._copy(last.relative_to, seen, upper)
        return self._hang(last.frame, observer, last.pose.mean, self.scene.noise(last.name), path)

    def _copy(self, frame: str, seen: str, upper: str) -> str:
        """Return a ghost of a frame below one that was seen: where it is if the observation is right."""
        pose, noise = (
            self.scene.pose(frame, relative_to=seen, q=self.q),
            path_noise(self.scene, frame, relative_to=seen, q=self.q),
        )
        return self._hang(frame, upper, pose, noise, None)

    def _hang(
        self, of: str, parent: str, pose: Pose, noise: EdgeNoise | None, path: tuple[Observation, ...] | None
    ) -> str:
        number = 1
        while (name := f"{of} as observed ({number})") in self.scratch:
            number += 1
        self.scratch = self.scratch.add_frame(name, parent, pose=pose)
        if noise is not None:
            self.scratch = self.scratch.set_noise(name, noise)
        if path is not None:
            self.ghosts[path] = name
        return name

    def _stamps(self, path: tuple[Observation, ...], base: str) -> tuple[float | None, float | None]:
        """Return when the oldest and the newest part of a path were seen: observations, and edges that keep stamps."""
        if not path and self.scene.stamped_poses(self.frame) is None:
            return None, None
        found = [observation.stamp for observation in path]
        below, edges = base, list[str]()
        for observation in path:
            edges += _edges(self.scene, below, observation.relative_to)
            below = observation.frame
        for name in edges if path else _edges(self.scene, base, self.frame):
            history = self.scene.stamped_poses(name)
            found += [float(history.stamps[-1])] if history is not None else []
        known = [stamp for stamp in found if stamp is not None]
        return min(known) if len(known) == len(found) else None, max(known, default=None)

    def difference(self, a: int, b: int) -> tuple[float, int]:
        """Return the squared Mahalanobis distance between two estimates and its degrees of freedom."""
        apart = self.scratch.gaussian_pose(self.frames[a], relative_to=self.frames[b], q=self.q)
        return mahalanobis_distance(apart.mean.log(), apart.covariance)


def _edges(scene: SceneGraph, start: str, end: str) -> list[str]:
    """Return the frames whose edges are on the way between two frames."""
    common = common_ancestor(scene, start, end)
    return [name for name in scene.path(start, end) if name != common]


def _paths(scene: SceneGraph, target: str, chain: set[str]) -> Iterator[tuple[Observation, ...]]:
    """Yield the observations of every path to the target whose last part is an observation of it."""
    seen_as: dict[str, list[Observation]] = {}
    for one in observations(scene):
        if one.kind == "pose":
            seen_as.setdefault(one.frame, []).append(one)

    def to(frame: str, visited: frozenset[str]) -> Iterator[tuple[Observation, ...]]:
        if frame in chain:
            yield ()
            return
        for last in seen_as.get(frame, ()):
            if last.relative_to not in visited:
                for before in to(last.relative_to, visited | {last.relative_to}):
                    yield (*before, last)
        above = scene.parent(frame)
        if above is None and frame != target:
            yield ()  # the root of another tree: the query says that they are not connected
        elif above is not None and frame != target and above not in visited:
            yield from to(above, visited | {above})

    for count, path in enumerate(to(target, frozenset({target}))):
        if count == _MOST_PATHS:
            many = f"frame '{target}' has more than {_MOST_PATHS} paths of observations"
            raise SceneError(f"{many}: take out old ones with remove_observations", frame=target)
        yield path


def _order(observation: Observation) -> tuple[object, ...]:
    stamp = -math.inf if observation.stamp is None else observation.stamp
    numbers = (*observation.pose.mean.as_array().tolist(), *observation.pose.covariance.ravel().tolist())
    return (-stamp, observation.relative_to, sorted(observation.tags), numbers)


def _agreeing(table: _Table, probability: float | None) -> tuple[list[int], list[tuple[float, float]]]:
    """Return which estimates agree pairwise, and of each the distance to the one it contradicts most."""
    count = len(table.estimates)
    if probability is None:
        return list(range(count)), [(0.0, math.inf)] * count
    squared, threshold = np.zeros((count, count)), np.zeros((count, count))
    for a in range(count):
        for b in range(a):
            distance, degrees = table.difference(a, b)
            limit = chi_square_quantile(probability, degrees) if degrees else 0.0
            squared[a, b] = squared[b, a] = distance
            threshold[a, b] = threshold[b, a] = limit
    kept = list(range(count))
    while True:
        against = {k: [m for m in kept if m != k and squared[k, m] > threshold[k, m]] for k in kept}
        if not any(against.values()):
            break
        # The one that contradicts most others, then by most; in doubt the older, and last the pose in the scene.
        kept.remove(max(kept, key=lambda k: (len(against[k]), _rounded(sum(squared[k, m] for m in against[k])), k)))
    distances = []
    for k in range(count):
        others = [m for m in kept if m != k]
        worst = max(others, key=lambda m: squared[k, m] - threshold[k, m], default=None)
        distances.append((0.0, math.inf) if worst is None else (float(squared[k, worst]), float(threshold[k, worst])))
    return kept, distances


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _resolved(table: _Table, members: Sequence[int], parent: str) -> SceneGraph:
    """Return the scene with the combination of some estimates."""
    if all(not table.estimates[k].observations for k in members):
        return table.scene
    keeps_edge = table.present and members[0] == 0
    joint = table.scene.joint(table.frame).type
    if not keeps_edge and joint not in ("fixed", "free"):
        raise SceneError(
            f"frame '{table.frame}' is on a {joint} joint, whose value determines its pose: an observation can only be "
            "fused into an uncertain edge there"
        )
    anchor, q = table.frames[members[0]], table.q
    fused = table.scratch
    for k in members[1:]:
        together = Measurement.of_pose(table.frames[k], Pose(), relative_to=anchor, covariance=np.zeros((6, 6)))
        fused = fused.condition(together, q=q)
    scene = table.scene if len(members) == 1 else fused
    used = {one for k in members for one in table.estimates[k].observations} if len(members) > 1 else ()
    with scene.edit() as edit:
        if not keeps_edge:
            edit.set_pose(table.frame, fused.pose(anchor, relative_to=parent, q=q))
            edit.set_noise(table.frame, path_noise(fused, anchor, relative_to=parent, q=q))
        for name in reversed(scene.frame_names):
            if name not in table.scene:
                edit.remove_frame(name)
    return remove_observations(edit.finish(), used)
