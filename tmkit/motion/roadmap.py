"""Paths that are kept for later queries, and proved again in changed scenes.

A path between the same ends is proved again by what has changed since it was proved last, if
something that has not changed is in the way of the straight motion. Everything else is a search, to
which paths that lead near are known.

Invariants: every path that is returned is proved free in the version of its query, as
:func:`~tmkit.motion.search_path` proves its paths. The same queries in the same order give the same
paths.
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
_LEAST_NODES = 16
_MOST_TRIES = 3  # known paths that are tried in a query
_MOST_DETOUR = 0.5  # of the length of a known path: straight motions from other ends to it


@dataclass(slots=True)
class _Way:
    """A path that is kept, in one of its directions."""

    key: bytes  # the same in both
    rows: _Array  # (k, len(joints))
    length: float
    found: PathResult | None = None  # the path, as it was found last; None in the other direction
    proved_in: CollisionWorld | None = None

    def prove(self, found: PathResult, world: CollisionWorld) -> None:
        """Record the result of the last proof and its collision world."""
        self.found, self.proved_in = found, world


class Roadmap:
    """Paths of one arm, kept over queries and versions of a scene; for one thread at a time.

    The arguments other than ``joints`` and ``max_nodes`` are those of
    :class:`~tmkit.motion.CollisionWorld`. Frames that they name count in the versions that have
    them.

    Args:
        joints: names of the joints that move.
        movable: names of frames whose edge may be changed later.
        margin: metres.
        pair_margins: ``{(frame_a, frame_b): metres}``.
        level: "hull", "exact" or "box".
        max_nodes: configurations to keep, at least 16. Beyond, the paths that were used longest ago
            are dropped.

    Raises:
        ConfigurationError: ``max_nodes`` below 16.
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
        if max_nodes < _LEAST_NODES:
            raise ConfigurationError(f"max_nodes must be at least {_LEAST_NODES}, got {max_nodes}")
        self.joints = tuple(joints)
        self._movable, self._margin, self._level = tuple(movable), margin, level
        self._pair_margins = dict(pair_margins or {})
        self._max_nodes = max_nodes
        # to and fro; the one that was used last is last
        self._paths: dict[bytes, tuple[_Way, _Way]] = {}
        self._between: dict[bytes, list[_Way]] = {}  # by their ends
        # see _ways_near(); made when needed
        self._ways: tuple[list[_Way], _Array, _Array, _Array] | None = None
        self._world: CollisionWorld | None = None  # of the last query
        self._names: Sequence[str] = ()  # of its joints
        self._entries = np.zeros(0, np.intp)  # of those that move, among them

    def __len__(self) -> int:
        """Return the number of configurations that are kept."""
        return sum(len(way.rows) for way, _ in self._paths.values())

    def search(
        self,
        scene: SceneGraph,
        *,
        start: ArrayLike,
        goals: ArrayLike,
        seed: int = 0,
        max_iterations: int = 50000,
        shortcut_iterations: int = 100,
    ) -> PathResult:
        """Return a path that is free in a version of the scene: straight, one that is known, or from a new search.

        Args:
            scene: any version, with the joints of this roadmap; not necessarily newer than that of
                the last query.
            start: (n_joints,) full configuration.
            goals: (n_joints,) or (k, n_joints) full configurations; only the joints that move
                count.
            seed: of a new search.
            max_iterations: of a new search.
            shortcut_iterations: cuts that are tried on a path that is new, or that was joined to
                other ends.

        Returns:
            The result, as of :func:`~tmkit.motion.search_path`. A path that was known has 0
            iterations. It may be longer than a new one: where an object has been removed, only a
            straight motion to the goal replaces the way around it.

        Raises:
            UnknownNameError: the scene does not have a joint of the roadmap, as that of another
                robot.
            ConfigurationError: a configuration of the wrong length, a mimic joint.

        Cost: where a path between these ends is free, some 0.07 ms of a Panda among ten objects;
            O(paths kept).
        """
        self._world = world = self._world_of(scene)
        q, targets = plain_numbers(start, "start"), np.atleast_2d(plain_numbers(goals, "goals"))
        if (names := scene.joint_names) != self._names:
            self._names, self._entries = (
                names,
                np.array([names.index(j) for j in self.joints if j in names], np.intp),
            )
        known: list[_Array] = []
        # Where there is nothing, or something is wrong, the search says what.
        if (
            self._paths
            and q.shape == (len(names),) == targets.shape[1:]
            and len(self._entries) == len(self.joints)
        ):
            between = self._ways_between(q, targets)
            if between and len(targets) == 1:
                again = self._still_free(between[0], world, q)
                if again is not None:
                    return again
            known = [self._full(way, q) for way in between or self._ways_near(scene, q, targets)]
        found = search_path(
            world,
            self.joints,
            start=q,
            goals=targets,
            known=known,
            settings=PathSettings(
                seed=seed, max_iterations=max_iterations, shortcut_iterations=shortcut_iterations
            ),
        )
        if found.status is PathStatus.SOLVED and len(path := found.path) > 2:
            self._keep(path[:, self._entries], found, world)
        return found

    def _world_of(self, scene: SceneGraph) -> CollisionWorld:
        """Return the world of a version, moved from that of the last query."""
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

    def _still_free(self, way: _Way, world: CollisionWorld, q: _Array) -> PathResult | None:
        """Return the path of a way where what has changed neither is in its way nor was in that of a straight one."""
        found, proved_in = way.found, way.proved_in
        if found is None or proved_in is None or (blocking := found.straight_pair) is None:
            return None
        path, changed = found.path, world.changed_frames(proved_in)
        if changed is None or not changed.isdisjoint(blocking) or not np.array_equal(path[0], q):
            return None
        if not world.is_still_free(path, proved_in=proved_in):
            return None
        self._paths[way.key] = self._paths.pop(way.key)
        if found.iterations:
            found = PathResult(found.status, path, goal_index=0, straight_pair=blocking)
        way.prove(found, world)
        return found

    def _ways_between(self, q: _Array, targets: _Array) -> list[_Way]:
        """Return some paths from the start to a goal, the shortest first."""
        start, goals = q[self._entries].tobytes(), targets[:, self._entries]
        ways = [way for goal in goals for way in self._between.get(start + goal.tobytes(), ())]
        return sorted(ways, key=lambda way: way.length)[:_MOST_TRIES]

    def _ways_near(self, scene: SceneGraph, q: _Array, targets: _Array) -> list[_Way]:
        """Return the paths that lead near to a goal from near the start, the shortest first."""
        start, goals = q[self._entries], targets[:, self._entries]
        if self._ways is None:
            ways = list(chain.from_iterable(self._paths.values()))
            ends, lengths = (
                np.array([way.rows[[0, -1]] for way in ways]),
                np.array([way.length for way in ways]),
            )
            self._ways = ways, ends[:, 0], ends[:, 1], lengths
        ways, first, last, lengths = self._ways
        turning = np.isinf(scene.joint_limits[self._entries, 0])

        def distances(a: _Array, b: _Array) -> _Array:
            change = a - b
            return norms(
                np.where(turning, change - 2.0 * pi * np.round(change / (2.0 * pi)), change)
            )

        detours = distances(first, start) + np.min(
            [distances(last, goal) for goal in goals], axis=0
        )
        order = np.argsort(lengths + detours, kind="stable")
        near = order[detours[order] <= _MOST_DETOUR * lengths[order]]
        return [ways[i] for i in near[:_MOST_TRIES].tolist()]

    def _full(self, way: _Way, q: _Array) -> _Array:
        """Return the full configurations of a way."""
        rows = np.empty((len(way.rows), len(q)))
        rows[:] = q
        rows[:, self._entries] = way.rows
        return rows

    def _keep(self, path: _Array, found: PathResult, world: CollisionWorld) -> None:
        """Keep a path, as the one that was used last."""
        if len(path) > self._max_nodes:
            return
        to, back = path.tobytes(), path[::-1].tobytes()
        key = min(to, back)
        kept = self._paths.pop(key, None)
        if kept is not None:
            self._paths[key] = kept
            way = kept[kept[0].rows.tobytes() != to]
            way.prove(found, world)
            return
        length = float(norms(path[1:] - path[:-1]).sum())
        self._paths[key] = _Way(key, path, length, found, world), _Way(key, path[::-1], length)
        self._ways = None
        added = [self._paths[key]]
        if len(self) > self._max_nodes:
            while len(self) > self._max_nodes:
                del self._paths[next(iter(self._paths))]
            self._between, added = {}, list(self._paths.values())
        for way in chain.from_iterable(added):
            self._between.setdefault(way.rows[0].tobytes() + way.rows[-1].tobytes(), []).append(way)
