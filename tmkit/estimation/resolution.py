"""Resolution of several estimates of one pose by a policy.

Every path of observations is an estimate. It is added to a scratch copy of the scene as a separate
frame, a *ghost* of the observed frame. The parent of a ghost is the observer, or in a chain of
observations the ghost of the observer. Its edge has the pose and the noise source of the
observation.

Queries of the scratch scene then include all correlations. The pose of a ghost relative to the base
is that of the path. The pose of one ghost relative to another is the difference of two estimates.
The fusion of estimates conditions on the coincidence of ghosts.

Complexity: O(paths^2) pose queries to compare, O(paths) conditionings to fuse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import EdgeNoise, Measurement, SceneGraph, path_noise
from tmkit._support.argument_errors import check_argument
from tmkit._support.results import GateStatus, Result
from tmkit.errors import SceneError
from tmkit.estimation.policies import Estimate, ResolutionPolicy
from tmkit.graph import common_ancestor, joints_between, observations
from tmkit.graph.observation_frames import Observation, remove_observations
from tmkit.spatial import Pose, chi_square_quantile
from tmkit.spatial.consistency import mahalanobis_distance

_MAX_PATHS = 500
"""Largest number of paths of observations to a frame."""

_EDGE_TOLERANCE = 1e-9
"""Largest difference of an edge from the observation stored in it [m, rad, relative covariance]."""

_DISTANCE_DIGITS = 9
"""Significant digits of compared sums of squared distances, so rounding does not matter."""


@dataclass(frozen=True)
class GateResult(Result):
    """Gate result of an estimate.

    Attributes:
        estimate: the tested estimate.
        is_accepted: whether it agrees with all accepted estimates.
        is_used: whether it is in the new version, as the selected or as a fused estimate.
        squared_distance: squared Mahalanobis distance to the accepted estimate that it contradicts
            most, or zero.
        threshold: largest squared distance of two estimates that agree.
    """

    estimate: Estimate
    is_accepted: bool
    is_used: bool
    squared_distance: float
    threshold: float

    @property
    def status(self) -> GateStatus:
        """Gate status of the estimate."""
        return GateStatus.ACCEPTED if self.is_accepted else GateStatus.REJECTED

    def __repr__(self) -> str:
        numbers = f"squared distance {self.squared_distance:.4g} of {self.threshold:.4g}"
        return f"GateResult({self.status.value}, {numbers}{', used' if self.is_used else ''})"

    def __str__(self) -> str:
        beyond = f"squared distance {self.squared_distance:.4g} beyond {self.threshold:.4g}"
        accepted = "used" if self.is_used else "not needed"
        return f"{self.estimate}: {accepted if self.is_accepted else f'rejected, {beyond}'}"


class ResolutionStatus(StrEnum):
    """Status of a resolution."""

    RESOLVED = "resolved"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Resolution(Result):
    """New version of the scene, with the gate results of all estimates.

    Attributes:
        scene: version with the pose that the policy selects; the original scene if no observation
            is used.
        frame: the observed frame.
        gate_results: gate result of the pose in the scene, if uncertain, and of every path of
            observations.
    """

    scene: SceneGraph
    frame: str
    gate_results: tuple[GateResult, ...]

    @property
    def status(self) -> ResolutionStatus:
        """Status of the resolution, ``UNCHANGED`` if no observation is used."""
        return ResolutionStatus.RESOLVED if self.used else ResolutionStatus.UNCHANGED

    @property
    def used(self) -> tuple[Observation, ...]:
        """The observations in the new edge. Fused observations are removed from the new version."""
        used = (result.estimate.observations for result in self.gate_results if result.is_used)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(used)))

    @property
    def rejected(self) -> tuple[GateResult, ...]:
        """Gate results of the estimates that contradict the accepted ones."""
        return tuple(result for result in self.gate_results if not result.is_accepted)

    def __repr__(self) -> str:
        used = sum(result.is_used for result in self.gate_results)
        counts = f"{used} of {len(self.gate_results)} estimates used, {len(self.rejected)} rejected"
        return f"Resolution('{self.frame}', {self.status.value}, {counts})"

    def __str__(self) -> str:
        return "\n".join([f"'{self.frame}':", *(f"    {result}" for result in self.gate_results)])


def resolve_observations(
    scene: SceneGraph,
    frame: str,
    *,
    policy: ResolutionPolicy,
    base: str | None = None,
    probability: float | None = 0.997,
    q: ArrayLike | None = None,
) -> Resolution:
    """Return a version with the pose of a frame that a policy derives from its observations.

    Args:
        scene: scene with observations of this frame and of others (``graph.add_observation``).
        frame: observed frame.
        policy: selection of estimates: :class:`Latest`, :class:`ByTag`, :class:`MinCovariance`,
            :class:`Fused`, or another implementation of the interface.
        base: reference frame of the comparison. Paths begin at it or at an ancestor. Defaults to
            the parent.
        probability: probability that two correct estimates agree; None accepts all estimates.
        q: (n_joints,) configuration of the observations; optional if no joint is on a path.

    Raises:
        UnknownNameError: if a frame on a path is not in the scene.
        SceneError: if the frame is a root or an ancestor of the base, has more than 500 paths, or
            is on a joint without an uncertain edge. Also if fused estimates contradict each other
            in a direction in which both are exact.
        DisconnectedError: if an observer is in another tree.
        ConfigurationError: if a joint is on a path and q is missing.
    """
    expected = "a policy with choose(estimates), such as Latest()"
    check_argument(
        policy, ResolutionPolicy, "policy", function="resolve_observations", words=expected
    )
    base = _parent_of_body(scene, frame) if base is None else base
    if base is None:
        raise SceneError(f"frame '{frame}' is a root, of which there are no estimates")
    table = _Table(scene, frame, base=base, q=q)
    accepted, distances = _gate(table, probability)
    selected = list(policy.choose([table.estimates[k] for k in accepted])) if accepted else []
    members = [k for k in accepted if table.estimates[k] in selected]
    results = [
        GateResult(estimate, k in accepted, k in members, *distances[k])
        for k, estimate in enumerate(table.estimates)
    ]
    return Resolution(_combine(table, members), frame, tuple(results))


def _parent_of_body(scene: SceneGraph, frame: str) -> str | None:
    parent = scene.parent(frame)
    while parent is not None and scene.body(parent) == scene.body(frame):
        parent = scene.parent(parent)
    return parent


class _Sighting(NamedTuple):
    """Observation of the root frame of a rigid group, which is the seen frame's or the observer's.

    Attributes:
        observation: the observation.
        frame: root frame of the rigid group.
        relative_to: other frame of the observation.
        pose: pose of ``frame`` relative to ``relative_to``.
        noise: errors of the pose, None if it is exact.
        is_seen: True for the group of the seen frame, False for that of the observer.
    """

    observation: Observation
    frame: str
    relative_to: str
    pose: Pose
    noise: EdgeNoise | None
    is_seen: bool


_Path = tuple[_Sighting, ...]


class _Table:
    """All estimates in a scratch scene, in which ``frames[k]`` has the pose of ``estimates[k]``."""

    def __init__(self, scene: SceneGraph, target: str, *, base: str, q: ArrayLike | None) -> None:
        reason = f"is an ancestor of '{base}' or the same frame: it has no estimates relative to it"
        no_estimates_error = SceneError(f"frame '{target}' {reason}")
        self.scene = scene
        is_above = self._body_root(target) in (base, *scene.ancestors(base))
        if is_above and (
            scene.body(target) == scene.body(base) or joints_between(scene, base, scene.root(base))
        ):
            raise no_estimates_error
        self.scene = self.scratch = scene = scene.make_root(base) if is_above else scene
        self.q = q
        self.ghosts: dict[_Path, str] = {}
        seen = [observation for observation in observations(scene) if observation.kind == "pose"]
        sighted_frames = {
            self._body_root(end)
            for observation in seen
            for end in (observation.frame, observation.relative_to)
        }
        self.frame = self._body_root(target)  # the frame of the resolved edge
        chain = {base, *scene.ancestors(base)}
        while (
            self.frame not in sighted_frames
            and self._is_rigid(self.frame)
            and scene.parent(self.frame) not in chain
        ):
            self.frame = self._body_root(str(scene.parent(self.frame)))
        sightings = [
            sighting for observation in seen for sighting in self._sightings_of(observation)
        ]
        self.known_frames = {sighting.frame for sighting in sightings if self._is_edge(sighting)}
        chain, ancestor = {base}, base
        while ancestor not in self.known_frames and (parent := scene.parent(ancestor)) is not None:
            chain.add(parent)
            ancestor = parent
        paths = list(_paths(self, sightings, chain))
        paths.sort(key=lambda path: [_order(sighting.observation) for sighting in path])
        if is_above and not paths:
            raise no_estimates_error
        entries: list[tuple[_Path, str]] = [(path, self._ghost(path)) for path in paths]
        self.present = scene.noise(self.frame) is not None and self.frame not in self.known_frames
        if self.present:
            entries.insert(0, ((), self.frame))
        self.paths, self.frames = [path for path, _ in entries], [frame for _, frame in entries]
        self.estimates = [self._estimate(path, frame, target, base) for path, frame in entries]

    def _estimate(self, path: _Path, frame: str, target: str, base: str) -> Estimate:
        end = frame
        if target != self.frame:
            end = target if frame == self.frame else self._copy(target, self.frame, frame)
        pose = self.scratch.gaussian_pose(end, relative_to=base, q=self.q)
        return Estimate(
            tuple(sighting.observation for sighting in path), pose, *self._stamps(path, base)
        )

    def _body_root(self, frame: str) -> str:
        """Return the root frame of the rigid group, or the resolved frame if it is in the group."""
        while (parent := self.scene.parent(frame)) is not None and self.scene.body(
            parent
        ) == self.scene.body(frame):
            frame = parent
        lower = frame
        while lower != getattr(self, "frame", None) and self._is_rigid(lower):
            lower = str(self.scene.parent(lower))
        return lower if lower == getattr(self, "frame", None) else frame

    def _is_rigid(self, frame: str) -> bool:
        """Return whether a frame has an exact edge without a joint to its parent."""
        scene = self.scene
        return (
            scene.parent(frame) is not None
            and scene.noise(frame) is None
            and scene.joint(frame).type == "fixed"
        )

    def _sightings_of(self, observation: Observation) -> Iterator[_Sighting]:
        """Yield the sightings of both frames of an observation."""
        for end, other, name in (
            (observation.frame, observation.relative_to, observation.name),
            (observation.relative_to, observation.frame, None),
        ):
            frame = self._body_root(end)
            if frame == self._body_root(other):
                continue
            if frame == observation.frame:
                yield _Sighting(
                    observation,
                    frame,
                    other,
                    observation.pose.mean,
                    self.scene.noise(observation.name),
                    True,
                )
                continue
            ghost, reference = frame, observation.name
            if name is not None:
                ghost, reference = self._copy(frame, end, name), other
            pose = self.scratch.pose(ghost, relative_to=reference, q=self.q)
            noise = path_noise(self.scratch, ghost, relative_to=reference, q=self.q)
            yield _Sighting(observation, frame, other, pose, noise, name is not None)

    def _is_edge(self, sighting: _Sighting) -> bool:
        """Return whether the edge of the frame stores the observation itself, with its error."""
        scene = self.scene
        parent = scene.parent(sighting.frame)
        if parent is None or scene.body(parent) != scene.body(sighting.relative_to):
            return False
        saved = self.scratch
        ghost = self._add_ghost(
            sighting.frame, sighting.relative_to, sighting.pose, sighting.noise, None
        )
        difference_pose = self.scratch.gaussian_pose(ghost, relative_to=sighting.frame, q=self.q)
        self.scratch = saved
        spread = np.abs(sighting.observation.pose.covariance).max()
        has_pose = max(difference_pose.mean.distance(Pose())) < _EDGE_TOLERANCE
        return has_pose and bool(
            np.abs(difference_pose.covariance).max() <= _EDGE_TOLERANCE * spread
        )

    def _ghost(self, path: _Path) -> str:
        """Return the frame with the pose of a path, which is added on first use."""
        if path in self.ghosts:
            return self.ghosts[path]
        *previous, final = path
        if not previous and final.frame == final.observation.frame:
            return final.observation.name
        if not previous:
            return self._add_ghost(final.frame, final.relative_to, final.pose, final.noise, path)
        seen, upper = previous[-1].frame, self._ghost(tuple(previous))
        observer = (
            upper if final.relative_to == seen else self._copy(final.relative_to, seen, upper)
        )
        return self._add_ghost(final.frame, observer, final.pose, final.noise, path)

    def _copy(self, frame: str, seen: str, upper: str) -> str:
        """Return a ghost of a frame below a seen frame, with the pose that the observation implies.

        Args:
            frame: frame below the seen frame.
            seen: seen frame.
            upper: ghost of the seen frame.
        """
        pose = self.scene.pose(frame, relative_to=seen, q=self.q)
        noise = path_noise(self.scene, frame, relative_to=seen, q=self.q)
        return self._add_ghost(frame, upper, pose, noise, None)

    def _add_ghost(
        self, of: str, parent: str, pose: Pose, noise: EdgeNoise | None, path: _Path | None
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

    def _stamps(self, path: _Path, base: str) -> tuple[float | None, float | None]:
        """Return the times of the oldest and of the newest part of a path [s].

        Parts are observations, and edges with stamps.
        """
        if not path and self.scene.stamped_poses(self.frame) is None:
            return None, None
        times = [sighting.observation.stamp for sighting in path]
        below, edges = base, list[str]()
        for sighting in path:
            edges += _edges(self.scene, below, sighting.relative_to)
            below = sighting.frame
        for name in edges if path else _edges(self.scene, base, self.frame):
            history = self.scene.stamped_poses(name)
            times += [float(history.stamps[-1])] if history is not None else []
        stamps = [stamp for stamp in times if stamp is not None]
        return min(stamps) if len(stamps) == len(times) else None, max(stamps, default=None)

    def difference(self, a: int, b: int) -> tuple[float, int]:
        """Return the squared Mahalanobis distance of two estimates and its degrees of freedom."""
        difference_pose = self.scratch.gaussian_pose(
            self.frames[a], relative_to=self.frames[b], q=self.q
        )
        return mahalanobis_distance(difference_pose.mean.log(), difference_pose.covariance)


def _edges(scene: SceneGraph, start: str, end: str) -> list[str]:
    """Return the frames whose edges are on the path between two frames."""
    common = common_ancestor(scene, start, end)
    return [name for name in scene.path(start, end) if name != common]


def _paths(table: _Table, sightings: Iterable[_Sighting], chain: set[str]) -> Iterator[_Path]:
    """Yield the sightings of every path to the target that ends with a sighting of it."""
    scene, target = table.scene, table.frame
    root = scene.root(next(iter(chain)))
    frame_sightings: dict[str, list[_Sighting]] = {}
    # sightings of observers, used only for frames without a pose by other edges
    observer_sightings: dict[str, list[_Sighting]] = {}
    for sighting in sightings:
        is_direct = sighting.is_seen or sighting.frame == target
        by_frame = frame_sightings if is_direct else observer_sightings
        by_frame.setdefault(sighting.frame, []).append(sighting)

    def paths_to(frame: str, visited: frozenset[str]) -> Iterator[_Path]:
        if frame in chain:
            yield ()
            return
        has_path = frame not in table.known_frames and scene.parent(frame) is not None
        for group in (frame_sightings.get(frame, ()), observer_sightings.get(frame, ())):
            for final in group:
                if final.relative_to not in visited:
                    for previous in paths_to(final.relative_to, visited | {final.relative_to}):
                        has_path = True
                        yield (*previous, final)
            if has_path:
                break
        parent = None if frame in table.known_frames else scene.parent(frame)
        if parent is None and frame != target and scene.root(frame) != root:
            yield ()  # the root of another tree, for which the pose query raises DisconnectedError
        elif parent is not None and frame != target and parent not in visited:
            yield from paths_to(parent, visited | {parent})

    for count, path in enumerate(paths_to(target, frozenset({target}))):
        if count == _MAX_PATHS:
            reason = f"frame '{target}' has more than {_MAX_PATHS} paths of observations"
            raise SceneError(f"{reason}: remove old ones with remove_observations", frame=target)
        yield path


def _order(observation: Observation) -> tuple[object, ...]:
    stamp = -math.inf if observation.stamp is None else observation.stamp
    numbers = (
        *observation.pose.mean.as_array().tolist(),
        *observation.pose.covariance.ravel().tolist(),
    )
    return (-stamp, observation.relative_to, observation.frame, sorted(observation.tags), numbers)


def _gate(table: _Table, probability: float | None) -> tuple[list[int], list[tuple[float, float]]]:
    """Return the accepted estimates, and the largest contradiction of each estimate.

    Returns:
        Indices of estimates that agree pairwise, and for each estimate the squared distance to the
        accepted one that it contradicts most, with its threshold.
    """
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
    accepted = list(range(count))
    while True:
        conflicts = {
            k: [m for m in accepted if m != k and squared[k, m] > threshold[k, m]] for k in accepted
        }
        if not any(conflicts.values()):
            break
        # Reject the estimate with the most conflicts, then that with the largest distances, then
        # the oldest. The pose in the scene is the last.
        sums = {
            k: float(f"{sum(squared[k, m] for m in conflicts[k]):.{_DISTANCE_DIGITS}g}")
            for k in accepted
        }
        accepted.remove(max(accepted, key=lambda k: (len(conflicts[k]), sums[k], k)))
    distances = []
    for k in range(count):
        peers = [m for m in accepted if m != k]
        if not peers:
            distances.append((0.0, math.inf))
            continue
        worst = max(peers, key=lambda m: squared[k, m] - threshold[k, m])
        distances.append((float(squared[k, worst]), float(threshold[k, worst])))
    return accepted, distances


def _independent(table: _Table, members: Sequence[int]) -> list[int]:
    """Return the members that are not linear combinations of earlier ones."""
    parts = list(
        dict.fromkeys(sighting.observation for k in members for sighting in table.paths[k])
    )
    # columns: a coefficient for each observation, one for the edge in the scene, and a constant
    rows = np.zeros((len(members), len(parts) + 2))
    rows[:, -1] = 1.0
    independent_rows: list[int] = []
    for row, k in enumerate(members):
        rows[row, -2] = not table.paths[k]
        for sighting in table.paths[k]:
            rows[row, parts.index(sighting.observation)] += 1.0 if sighting.is_seen else -1.0
        # whether it has a part that no earlier member has
        is_new = not rows[:row, rows[row] != 0.0].any(axis=0).all()
        rank = len(independent_rows)
        if is_new or np.linalg.matrix_rank(rows[[*independent_rows, row]]) > rank:
            independent_rows.append(row)
    return [members[row] for row in independent_rows]


def _combine(table: _Table, members: Sequence[int]) -> SceneGraph:
    """Return the scene with the fusion of some estimates."""
    if all(not table.estimates[k].observations for k in members):
        return table.scene
    keeps_edge = table.present and members[0] == 0
    parent = str(table.scene.parent(table.frame))
    joint = table.scene.joint(table.frame).type
    if not keeps_edge and joint not in ("fixed", "free"):
        reason = (
            "whose value determines its pose: an observation can only be fused into an uncertain"
            " edge there"
        )
        raise SceneError(f"frame '{table.frame}' is on a {joint} joint, {reason}")
    anchor, q = table.frames[members[0]], table.q
    fused = table.scratch
    for k in _independent(table, members)[1:]:
        coincidence = Measurement.of_pose(
            table.frames[k], Pose(), relative_to=anchor, covariance=np.zeros((6, 6))
        )
        fused = fused.condition(coincidence, q=q)
    scene = table.scene if len(members) == 1 else fused
    used = (
        {observation for k in members for observation in table.estimates[k].observations}
        if len(members) > 1
        else ()
    )
    with scene.edit() as edit:
        if not keeps_edge:
            edit.set_pose(table.frame, fused.pose(anchor, relative_to=parent, q=q))
            edit.set_noise(table.frame, path_noise(fused, anchor, relative_to=parent, q=q))
        for name in reversed(scene.frame_names):
            if name not in table.scene:
                edit.remove_frame(name)
    return remove_observations(edit.finish(), used)
