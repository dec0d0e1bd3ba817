"""Cache of the paths of an arm, which are proved again in changed scenes.

A stored path between equal ends is proved again only against the changes since its last proof. This
requires that an unchanged frame still blocks the straight motion. All other queries are searches
that start from stored paths near the query.

Invariants: every returned path is proved free in the scene of its query, as
:func:`~tmkit.motion.search_path` proves its paths. Equal sequences of queries return equal paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    CollisionWorld,
    PathResult,
    PathSettings,
    PathStatus,
    SceneGraph,
    search_path,
)
from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]

_MIN_NODES = 16
"""Smallest capacity of a roadmap in configurations."""

_MAX_CANDIDATES = 3
"""Largest number of stored paths that a query uses."""

_MAX_DETOUR_FRACTION = 0.5
"""Largest length of straight motions to a stored path, as a fraction of its length."""


@dataclass(slots=True)
class _StoredPath:
    """A stored path in one direction.

    Attributes:
        key: key of the path, equal in both directions.
        rows: (k, n) configurations of the moving joints.
        length: Euclidean length over the moving joints.
        result: last result with this path; None if it was only found in the other direction.
        proof_world: collision world of the last proof.
    """

    key: bytes
    rows: _Array
    length: float
    result: PathResult | None = None
    proof_world: CollisionWorld | None = None

    def record_proof(self, result: PathResult, world: CollisionWorld) -> None:
        """Record the result of the last proof and its collision world."""
        self.result, self.proof_world = result, world


@dataclass(frozen=True, slots=True, eq=False)
class _PathIndex:
    """All stored paths, in both directions.

    Attributes:
        paths: the paths.
        starts: (m, n) first configurations.
        ends: (m, n) last configurations.
        lengths: (m,) lengths.
    """

    paths: list[_StoredPath]
    starts: _Array
    ends: _Array
    lengths: _Array


class Roadmap:
    """Cache of the paths of one arm over queries and versions of a scene. Not thread-safe.

    The arguments other than ``joints`` and ``max_nodes`` are those of
    :class:`~tmkit.motion.CollisionWorld`. Their frames need not exist in every version.

    Args:
        joints: names of the moving joints.
        movable: names of frames whose edge may be changed later.
        margin: distance of all checked pairs [m].
        pair_margins: distance by pair of frames ``(frame_a, frame_b)`` [m].
        level: "hull", "exact" or "box".
        max_nodes: largest number of stored configurations, at least 16. Beyond it, the least
            recently used paths are dropped.

    Raises:
        ConfigurationError: if ``max_nodes`` is below 16.
    """

    def __init__(
        self,
        joints: Sequence[str],
        *,
        movable: Sequence[str] = (),
        margin: float = 0.0,
        pair_margins: Mapping[tuple[str, str], float] | None = None,
        level: str = "hull",
        max_nodes: int = 500,
    ) -> None:
        if max_nodes < _MIN_NODES:
            raise ConfigurationError(f"max_nodes must be at least {_MIN_NODES}, got {max_nodes}")
        self.joints = tuple(joints)
        self._movable, self._margin, self._level = tuple(movable), margin, level
        self._pair_margins = dict(pair_margins or {})
        self._max_nodes = max_nodes
        # Both directions of each path, the most recently used path last.
        self._paths: dict[bytes, tuple[_StoredPath, _StoredPath]] = {}
        self._paths_by_ends: dict[bytes, list[_StoredPath]] = {}
        self._index: _PathIndex | None = None
        # Collision world, joint names and indices of the moving joints of the last query.
        self._world: CollisionWorld | None = None
        self._names: Sequence[str] = ()
        self._joint_indices = np.zeros(0, np.intp)

    def __len__(self) -> int:
        """Return the number of stored configurations."""
        return sum(len(path.rows) for path, _ in self._paths.values())

    def search(
        self,
        scene: SceneGraph,
        *,
        start: ArrayLike,
        goals: ArrayLike,
        seed: int = 0,
        max_iterations: int = 250000,
        shortcut_iterations: int = 100,
    ) -> PathResult:
        """Return a free path in a version of the scene: straight, stored, or from a search.

        Args:
            scene: any version with the joints of this roadmap, in any order of versions.
            start: (n_joints,) full configuration.
            goals: (n_joints,) or (k, n_joints) full configurations, of which only the moving joints
                are used.
            seed: seed of a new search.
            max_iterations: largest number of iterations of a new search.
            shortcut_iterations: number of attempts to shorten a path that is new or has new ends.

        Returns:
            Result as of :func:`~tmkit.motion.search_path`. A stored path has 0 iterations. It may
            be longer than a new one: after an object is removed, only a straight motion to the goal
            replaces a path around it.

        Raises:
            UnknownNameError: if the scene does not have a joint of the roadmap.
            ConfigurationError: if a configuration has the wrong length, or a joint is a mimic
                joint.

        O(stored paths). A stored path with equal ends takes about 0.07 ms for a Panda among ten
        objects.
        """
        self._world = world = self._world_of(scene)
        q, targets = plain_numbers(start, "start"), np.atleast_2d(plain_numbers(goals, "goals"))
        if (names := scene.joint_names) != self._names:
            indices = [names.index(joint) for joint in self.joints if joint in names]
            self._names, self._joint_indices = names, np.array(indices, np.intp)
        known_paths: list[_Array] = []
        # The search raises the errors of invalid arguments.
        has_valid_shapes = q.shape == (len(names),) == targets.shape[1:]
        if self._paths and has_valid_shapes and len(self._joint_indices) == len(self.joints):
            candidates = self._paths_between(q, targets)
            if candidates and len(targets) == 1:
                result = self._prove_again(candidates[0], world, q)
                if result is not None:
                    return result
            candidates = candidates or self._paths_near(scene, q, targets)
            known_paths = [self._full_path(path, q) for path in candidates]
        result = search_path(
            world,
            self.joints,
            start=q,
            goals=targets,
            known=known_paths,
            settings=PathSettings(
                seed=seed, max_iterations=max_iterations, shortcut_iterations=shortcut_iterations
            ),
        )
        if result.status is PathStatus.SOLVED and len(path := result.path) > 2:
            self._store(path[:, self._joint_indices], result, world)
        return result

    def _world_of(self, scene: SceneGraph) -> CollisionWorld:
        """Return the collision world of a scene, updated from that of the last query."""
        if self._world is not None and not self._pair_margins and not self._movable:
            return self._world.moved_to(scene)
        margins = {
            (a, b): margin
            for (a, b), margin in self._pair_margins.items()
            if a in scene and b in scene
        }
        movable = [name for name in self._movable if name in scene]
        if self._world is not None:
            return self._world.moved_to(scene, movable=movable, pair_margins=margins)
        return CollisionWorld(
            scene, movable=movable, margin=self._margin, pair_margins=margins, level=self._level
        )

    def _prove_again(
        self, path: _StoredPath, world: CollisionWorld, q: _Array
    ) -> PathResult | None:
        """Return the result of a stored path if it is still valid, otherwise None.

        It is invalid if a changed frame collides with it, or blocked the straight motion.
        """
        result, proof_world = path.result, path.proof_world
        if result is None or proof_world is None:
            return None
        blocking_pair, rows = result.straight_pair, result.path
        if blocking_pair is None:
            return None
        changed_frames = world.changed_frames(proof_world)
        if changed_frames is None or not changed_frames.isdisjoint(blocking_pair):
            return None
        if not np.array_equal(rows[0], q) or not world.is_still_free(rows, proved_in=proof_world):
            return None
        self._paths[path.key] = self._paths.pop(path.key)
        if result.iterations:
            result = PathResult(result.status, rows, goal_index=0, straight_pair=blocking_pair)
        path.record_proof(result, world)
        return result

    def _paths_between(self, q: _Array, targets: _Array) -> list[_StoredPath]:
        """Return some paths from the start to a goal, the shortest first."""
        start, goals = q[self._joint_indices].tobytes(), targets[:, self._joint_indices]
        by_ends = self._paths_by_ends
        paths = [path for goal in goals for path in by_ends.get(start + goal.tobytes(), ())]
        return sorted(paths, key=lambda path: path.length)[:_MAX_CANDIDATES]

    def _paths_near(self, scene: SceneGraph, q: _Array, targets: _Array) -> list[_StoredPath]:
        """Return paths from near the start to near a goal, by total length with the detours."""
        start, goals = q[self._joint_indices], targets[:, self._joint_indices]
        if self._index is None:
            paths = list(chain.from_iterable(self._paths.values()))
            ends = np.array([path.rows[[0, -1]] for path in paths])
            lengths = np.array([path.length for path in paths])
            self._index = _PathIndex(paths, ends[:, 0], ends[:, 1], lengths)
        index = self._index
        is_continuous = np.isinf(scene.joint_limits[self._joint_indices, 0])

        def distances(a: _Array, b: _Array) -> _Array:
            change = a - b
            shortest = change - 2.0 * pi * np.round(change / (2.0 * pi))
            return norms(np.where(is_continuous, shortest, change))

        goal_distances = np.min([distances(index.ends, goal) for goal in goals], axis=0)
        detours = distances(index.starts, start) + goal_distances
        order = np.argsort(index.lengths + detours, kind="stable")
        is_near = detours[order] <= _MAX_DETOUR_FRACTION * index.lengths[order]
        return [index.paths[i] for i in order[is_near][:_MAX_CANDIDATES].tolist()]

    def _full_path(self, path: _StoredPath, q: _Array) -> _Array:
        """Return the full configurations (k, n_joints) of a path."""
        rows = np.empty((len(path.rows), len(q)))
        rows[:] = q
        rows[:, self._joint_indices] = path.rows
        return rows

    def _store(self, rows: _Array, result: PathResult, world: CollisionWorld) -> None:
        """Store a path as the most recently used one."""
        if len(rows) > self._max_nodes:
            return
        forward, backward = rows.tobytes(), rows[::-1].tobytes()
        key = min(forward, backward)
        directions = self._paths.pop(key, None)
        if directions is not None:
            self._paths[key] = directions
            path = directions[directions[0].rows.tobytes() != forward]
            path.record_proof(result, world)
            return
        length = float(norms(rows[1:] - rows[:-1]).sum())
        path = _StoredPath(key, rows, length, result, world)
        self._paths[key] = path, _StoredPath(key, rows[::-1], length)
        self._index = None
        new_paths = [self._paths[key]]
        if len(self) > self._max_nodes:
            while len(self) > self._max_nodes:
                del self._paths[next(iter(self._paths))]
            self._paths_by_ends, new_paths = {}, list(self._paths.values())
        for path in chain.from_iterable(new_paths):
            ends = path.rows[0].tobytes() + path.rows[-1].tobytes()
            self._paths_by_ends.setdefault(ends, []).append(path)
