"""One pose out of several estimates: the paths of observations, which of them agree, and what a policy makes of them.

Every estimate is hung into a scratch copy of the scene as a frame of its own, a *ghost* of the
observed frame: under its observer, with the observation's pose and noise source. In a chain of
observations, it hangs under the ghost of the observer. Then the scene's own queries answer
everything, with all correlations. The pose of a ghost relative to the base is that of the path. The
pose of one ghost relative to another is the difference of two estimates. Fusing them is
conditioning on the fact that ghost and frame are at one place.

Complexity: O(paths^2) pose queries to compare, O(paths) conditionings to fuse.
"""

from __future__ import annotations

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

_MOST_PATHS = 500
_SAME_EDGE = 1e-9  # metres, radians, and of a covariance: by which an edge is what was seen
_DISTANCE_DIGITS = 9  # of squared distances that are compared: what differs by rounding is equal


@dataclass(frozen=True)
class GateResult(Result):
    """The gate result of an estimate.

    Attributes:
        estimate: the estimate.
        is_accepted: whether it agrees with the others.
        is_used: whether it is in the new version: the one that was chosen, or all that were fused.
        squared_distance: squared Mahalanobis distance to the accepted estimate that it contradicts
            most, or zero.
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
        beyond = f"squared distance {self.squared_distance:.4g} beyond {self.threshold:.4g}"
        accepted = "used" if self.is_used else "not needed"
        return f"{self.estimate}: {accepted if self.is_accepted else f'rejected, {beyond}'}"


class ResolutionStatus(StrEnum):
    """What came of several estimates."""

    RESOLVED = "resolved"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Resolution(Result):
    """A new version of the scene, and why it is that.

    Attributes:
        scene: where the frame stands as the policy decides; the scene that was given when no
            observation was used.
        frame: the frame.
        gate_results: of every estimate: first the pose in the scene, if uncertain, then the paths
            of observations.
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
        used = (result.estimate.observations for result in self.gate_results if result.is_used)
        return tuple(dict.fromkeys(one for seen in used for one in seen))

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


def resolve_observations(
    scene: SceneGraph,
    frame: str,
    *,
    policy: ResolutionPolicy,
    base: str | None = None,
    probability: float | None = 0.997,
    q: ArrayLike | None = None,
) -> Resolution:
    """Return a version in which a frame stands as a policy makes of what was seen of it, with the gate result of each.

    Args:
        scene: the scene, with what was seen of this frame and of others
            (``graph.add_observation``).
        frame: the frame in question.
        policy: what becomes of several estimates: :class:`Latest`, :class:`ByTag`,
            :class:`MinCovariance`, :class:`Fused`, or one of your own.
        base: the frame relative to which paths, from it or above, are compared; the parent if
            omitted.
        probability: with which an estimate that is right agrees with another; None: no estimate is
            rejected.
        q: configuration (n_joints,) of the observations; may be omitted if no joint is on a path.

    Raises:
        UnknownNameError: a frame on a path that the scene does not have.
        SceneError: the frame is a root or above the base, is on a joint (then only fusing into an
            uncertain edge can be said), has more than 500 paths. Estimates that contradict each
            other in what they know exactly are fused.
        DisconnectedError: an observer in another tree.
        ConfigurationError: a joint is on a path and q is missing.
    """
    words = "a policy with choose(estimates), such as Latest()"
    check_argument(policy, ResolutionPolicy, "policy", function="resolve_observations", words=words)
    base = _parent_of_body(scene, frame) if base is None else base
    if base is None:
        raise SceneError(f"frame '{frame}' is a root, of which there are no estimates")
    table = _Table(scene, frame, base=base, q=q)
    chosen_from, distances = _agreeing(table, probability)
    chosen = list(policy.choose([table.estimates[k] for k in chosen_from])) if chosen_from else []
    members = [k for k in chosen_from if table.estimates[k] in chosen]
    results = [
        GateResult(one, k in chosen_from, k in members, *distances[k])
        for k, one in enumerate(table.estimates)
    ]
    return Resolution(_resolved(table, members), frame, tuple(results))


def _parent_of_body(scene: SceneGraph, frame: str) -> str | None:
    above = scene.parent(frame)
    while above is not None and scene.body(above) == scene.body(frame):
        above = scene.parent(above)
    return above


class _Look(NamedTuple):
    """What an observation says of the topmost frame of a body: of the frame that it is of, or of the observer."""

    observation: Observation
    frame: str
    relative_to: str
    pose: Pose
    noise: EdgeNoise | None
    is_seen: bool  # else it is the observer's


_Path = tuple[_Look, ...]


class _Table:
    """All estimates, hung into a scratch copy: ``frames[k]`` stands as ``estimates[k]`` says."""

    def __init__(self, scene: SceneGraph, target: str, *, base: str, q: ArrayLike | None) -> None:
        what = f"is an ancestor of '{base}' or the same frame: it has no estimates relative to it"
        refusal = SceneError(f"frame '{target}' {what}")
        self.scene = scene
        is_above = self._top(target) in (base, *scene.ancestors(base))
        if is_above and (
            scene.body(target) == scene.body(base) or joints_between(scene, base, scene.root(base))
        ):
            raise refusal
        self.scene = self.scratch = scene = scene.make_root(base) if is_above else scene
        self.q = q
        self.ghosts: dict[_Path, str] = {}
        seen = [one for one in observations(scene) if one.kind == "pose"]
        looked = {self._top(end) for one in seen for end in (one.frame, one.relative_to)}
        self.frame = self._top(target)  # whose edge is in question
        chain = {base, *scene.ancestors(base)}
        while (
            self.frame not in looked
            and self._is_rigid(self.frame)
            and scene.parent(self.frame) not in chain
        ):
            self.frame = self._top(str(scene.parent(self.frame)))
        looks = [look for one in seen for look in self._looks(one)]
        self.told = {look.frame for look in looks if self._is_edge(look)}
        chain, above = {base}, base
        while above not in self.told and (higher := scene.parent(above)) is not None:
            chain.add(above := higher)
        paths = list(_paths(self, looks, chain))
        paths.sort(key=lambda path: [_order(look.observation) for look in path])
        if is_above and not paths:
            raise refusal
        entries: list[tuple[_Path, str]] = [(path, self._ghost(path)) for path in paths]
        self.present = scene.noise(self.frame) is not None and self.frame not in self.told
        if self.present:
            entries.insert(0, ((), self.frame))
        self.paths, self.frames = [path for path, _ in entries], [frame for _, frame in entries]
        self.estimates = [self._estimate(path, frame, target, base) for path, frame in entries]

    def _estimate(self, path: _Path, frame: str, target: str, base: str) -> Estimate:
        end = frame
        if target != self.frame:
            end = target if frame == self.frame else self._copy(target, self.frame, frame)
        pose = self.scratch.gaussian_pose(end, relative_to=base, q=self.q)
        return Estimate(tuple(look.observation for look in path), pose, *self._stamps(path, base))

    def _top(self, frame: str) -> str:
        """Return the topmost frame of the body of a frame, or the frame in question if it moves as one with that."""
        while (above := self.scene.parent(frame)) is not None and self.scene.body(
            above
        ) == self.scene.body(frame):
            frame = above
        lower = frame
        while lower != getattr(self, "frame", None) and self._is_rigid(lower):
            lower = str(self.scene.parent(lower))
        return lower if lower == getattr(self, "frame", None) else frame

    def _is_rigid(self, frame: str) -> bool:
        """Whether a frame is joined to its parent exactly, by no joint."""
        scene = self.scene
        return (
            scene.parent(frame) is not None
            and scene.noise(frame) is None
            and scene.joint(frame).type == "fixed"
        )

    def _looks(self, one: Observation) -> Iterator[_Look]:
        """Yield what an observation says of the two frames."""
        for end, other, name in (
            (one.frame, one.relative_to, one.name),
            (one.relative_to, one.frame, None),
        ):
            frame = self._top(end)
            if frame == self._top(other):
                continue
            if frame == one.frame:
                yield _Look(one, frame, other, one.pose.mean, self.scene.noise(one.name), True)
                continue
            ghost, far = (
                (self._copy(frame, end, name), other) if name is not None else (frame, one.name)
            )
            pose = self.scratch.pose(ghost, relative_to=far, q=self.q)
            noise = path_noise(self.scratch, ghost, relative_to=far, q=self.q)
            yield _Look(one, frame, other, pose, noise, name is not None)

    def _is_edge(self, look: _Look) -> bool:
        """Whether the edge between a frame and the observer's body is what was seen, with the same error."""
        scene = self.scene
        above = scene.parent(look.frame)
        if above is None or scene.body(above) != scene.body(look.relative_to):
            return False
        kept = self.scratch
        ghost = self._hang(look.frame, look.relative_to, look.pose, look.noise, None)
        apart = self.scratch.gaussian_pose(ghost, relative_to=look.frame, q=self.q)
        self.scratch = kept
        spread = np.abs(look.observation.pose.covariance).max()
        return max(apart.mean.distance(Pose())) < _SAME_EDGE and bool(
            np.abs(apart.covariance).max() <= _SAME_EDGE * spread
        )

    def _ghost(self, path: _Path) -> str:
        """Return the frame that stands as a path says, made when there is none."""
        if path in self.ghosts:
            return self.ghosts[path]
        *before, last = path
        if not before and last.frame == last.observation.frame:
            return last.observation.name
        if not before:
            return self._hang(last.frame, last.relative_to, last.pose, last.noise, path)
        seen, upper = before[-1].frame, self._ghost(tuple(before))
        observer = upper if last.relative_to == seen else self._copy(last.relative_to, seen, upper)
        return self._hang(last.frame, observer, last.pose, last.noise, path)

    def _copy(self, frame: str, seen: str, upper: str) -> str:
        """Return a ghost of a frame below one that was seen: where it is if the observation is right."""
        pose = self.scene.pose(frame, relative_to=seen, q=self.q)
        return self._hang(
            frame, upper, pose, path_noise(self.scene, frame, relative_to=seen, q=self.q), None
        )

    def _hang(
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
        """Return when the oldest and the newest part of a path were seen: observations, and edges that keep stamps."""
        if not path and self.scene.stamped_poses(self.frame) is None:
            return None, None
        found = [look.observation.stamp for look in path]
        below, edges = base, list[str]()
        for look in path:
            edges += _edges(self.scene, below, look.relative_to)
            below = look.frame
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


def _paths(table: _Table, looks: Iterable[_Look], chain: set[str]) -> Iterator[_Path]:
    """Yield the observations of every path to the target whose last part is an observation of it."""
    scene, target = table.scene, table.frame
    home = scene.root(next(iter(chain)))
    seen_as: dict[str, list[_Look]] = {}
    # of observers, that no edge but that of an observation places
    turned: dict[str, list[_Look]] = {}
    for look in looks:
        (seen_as if look.is_seen or look.frame == target else turned).setdefault(
            look.frame, []
        ).append(look)

    def to(frame: str, visited: frozenset[str]) -> Iterator[_Path]:
        if frame in chain:
            yield ()
            return
        is_found = frame not in table.told and scene.parent(frame) is not None
        for lasts in (seen_as.get(frame, ()), turned.get(frame, ())):
            for last in lasts:
                if last.relative_to not in visited:
                    for before in to(last.relative_to, visited | {last.relative_to}):
                        is_found = True
                        yield (*before, last)
            if is_found:
                break
        above = None if frame in table.told else scene.parent(frame)
        if above is None and frame != target and scene.root(frame) != home:
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
    numbers = (
        *observation.pose.mean.as_array().tolist(),
        *observation.pose.covariance.ravel().tolist(),
    )
    return (-stamp, observation.relative_to, observation.frame, sorted(observation.tags), numbers)


def _agreeing(
    table: _Table, probability: float | None
) -> tuple[list[int], list[tuple[float, float]]]:
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
        # The one that contradicts most others, then by most; in doubt the older, and last the pose
        # in the scene.
        sums = {
            k: float(f"{sum(squared[k, m] for m in against[k]):.{_DISTANCE_DIGITS}g}") for k in kept
        }
        kept.remove(max(kept, key=lambda k: (len(against[k]), sums[k], k)))
    distances = []
    for k in range(count):
        others = [m for m in kept if m != k]
        worst = max(others, key=lambda m: squared[k, m] - threshold[k, m], default=None)
        distances.append(
            (0.0, math.inf)
            if worst is None
            else (float(squared[k, worst]), float(threshold[k, worst]))
        )
    return kept, distances


def _independent(table: _Table, members: Sequence[int]) -> list[int]:
    """Return the estimates that do not follow from those before."""
    parts = list(dict.fromkeys(look.observation for k in members for look in table.paths[k]))
    # by observation; the edge in the scene; all differ from the first
    rows = np.zeros((len(members), len(parts) + 2))
    rows[:, -1] = 1.0
    kept: list[int] = []  # rows
    for row, k in enumerate(members):
        rows[row, -2] = not table.paths[k]
        for look in table.paths[k]:
            rows[row, parts.index(look.observation)] += 1.0 if look.is_seen else -1.0
        # it has a part that none before has
        is_new = not rows[:row, rows[row] != 0.0].any(axis=0).all()
        if is_new or np.linalg.matrix_rank(rows[[*kept, row]]) > len(kept):
            kept.append(row)
    return [members[row] for row in kept]


def _resolved(table: _Table, members: Sequence[int]) -> SceneGraph:
    """Return the scene with the combination of some estimates."""
    if all(not table.estimates[k].observations for k in members):
        return table.scene
    keeps_edge = table.present and members[0] == 0
    parent = str(table.scene.parent(table.frame))
    joint = table.scene.joint(table.frame).type
    if not keeps_edge and joint not in ("fixed", "free"):
        why = (
            "whose value determines its pose: an observation can only be fused into an uncertain"
            " edge there"
        )
        raise SceneError(f"frame '{table.frame}' is on a {joint} joint, {why}")
    anchor, q = table.frames[members[0]], table.q
    fused = table.scratch
    for k in _independent(table, members)[1:]:
        together = Measurement.of_pose(
            table.frames[k], Pose(), relative_to=anchor, covariance=np.zeros((6, 6))
        )
        fused = fused.condition(together, q=q)
    scene = table.scene if len(members) == 1 else fused
    used = (
        {one for k in members for one in table.estimates[k].observations}
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
