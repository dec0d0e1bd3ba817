"""Paths that are kept for later queries, and proved again in changed scenes.

Invariants: every path that is returned is proved free in the version of its query, as
:func:`~tmkit.motion.search_path` proves its paths. The same queries in the same order give the same paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld, PathResult, PathStatus, SceneGraph, search_path
from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]
_LEAST_NODES = 16
_MOST_TRIES = 3  # known paths that are tried in a query
_MOST_DETOUR = 0.5  # of the length of a known path: straight motions from other ends to it


class Roadmap:
    """Paths of one arm, kept over queries and versions of a scene; for one thread at a time.

    The arguments other than ``joints`` and ``max_nodes`` are those of :class:`~tmkit.motion.CollisionWorld`. Frames
    that they name count in the versions that have them.

    Args:
        joints: names of the joints that move.
        movable: names of frames whose edge may be changed later.
        margin: metres.
        pair_margins: ``{(frame_a, frame_b): metres}``.
        level: "hull", "exact" or "box".
        max_nodes: configurations to keep, at least 16. Beyond, the paths that were used longest ago are dropped.

    Raises:
        ConfigurationError: ``max_nodes`` below 16.
    """

    def __init__(
        self, joints: Sequence[str], *, movable: Sequence[str] = (), margin: float = 0.0,
        pair_margins: Mapping[tuple[str, str], float] | None = None, level: str = "hull", max_nodes: int = 500,
    ) -> None:  # fmt: skip
        if max_nodes < _LEAST_NODES:
            raise ConfigurationError(f"max_nodes must be at least {_LEAST_NODES}, got {max_nodes}")
        self.joints = tuple(joints)
        self._movable, self._margin, self._level = tuple(movable), margin, level
        self._pair_margins = dict(pair_margins or {})
        self._max_nodes = max_nodes
        self._paths: dict[bytes, _Array] = {}  # (k, len(joints)), the one that was used last is last
        self._ways: list[_Array] = []  # the paths, and the same backwards
        self._between: dict[bytes, list[int]] = {}  # ways by their ends
        self._first, self._last, self._lengths = (np.zeros(0) for _ in range(3))  # of the ways
        self._world: CollisionWorld | None = None  # of the last query
        self._names: Sequence[str] = ()  # of its joints
        self._entries = np.zeros(0, np.intp)  # of those that move, among them

    def __len__(self) -> int:
        """Return the number of configurations that are kept."""
        return sum(map(len, self._paths.values()))

    def search(
        self, scene: SceneGraph, *, start: ArrayLike, goals: ArrayLike, seed: int = 0, max_iterations: int = 50000,
        shortcut_iterations: int = 100,
    ) -> PathResult:  # fmt: skip
        """Return a path that is free in a version of the scene: straight, one that is known, or from a new search.

        Args:
            scene: any version, with the joints of this roadmap; not necessarily newer than that of the last query.
            start: (n_joints,) full configuration.
            goals: (n_joints,) or (k, n_joints) full configurations; only the joints that move count.
            seed: of a new search.
            max_iterations: of a new search.
            shortcut_iterations: cuts that are tried on a path that is new, or that was joined to other ends.

        Returns:
            The result, as of :func:`~tmkit.motion.search_path`. A path that was known has 0 iterations. It may be
            longer than a new one: where an object has been removed, only a straight motion to the goal replaces the
            way around it.

        Raises:
            UnknownNameError: the scene does not have a joint of the roadmap, as that of another robot.
            ConfigurationError: a configuration of the wrong length, a mimic joint.

        Cost: where a path between these ends is free, some 0.2 ms of a Panda among ten objects; O(paths kept).
        """
        margins = {(a, b): margin for (a, b), margin in self._pair_margins.items() if a in scene and b in scene}
        movable = [name for name in self._movable if name in scene]
        if self._world is None:
            world = CollisionWorld(scene, movable=movable, margin=self._margin, pair_margins=margins, level=self._level)
        else:
            world = self._world.moved_to(scene, movable=movable, pair_margins=margins)
        self._world = world
        q, targets = plain_numbers(start, "start"), np.atleast_2d(plain_numbers(goals, "goals"))
        if (names := scene.joint_names) != self._names:
            self._names, self._entries = names, np.array([names.index(j) for j in self.joints if j in names], np.intp)
        known = self._known(scene, q, targets) if len(self._entries) == len(self.joints) else []
        found = search_path(
            world, self.joints, start=q, goals=targets, seed=seed, max_iterations=max_iterations,
            shortcut_iterations=shortcut_iterations, known=known,
        )  # fmt: skip
        if found.status is PathStatus.SOLVED and len(path := found.path) > 2:
            self._keep(path[:, self._entries])
        return found

    def _known(self, scene: SceneGraph, q: _Array, targets: _Array) -> list[_Array]:
        """Return full configurations of the paths that lead near to a goal from near the start, the shortest first."""
        if not self._paths or q.shape != (len(scene.joint_names),) or targets.shape[1:] != q.shape:
            return []  # nothing, or the search says what is wrong
        start, goals = q[self._entries], targets[:, self._entries]
        between = [i for goal in goals for i in self._between.get(start.tobytes() + goal.tobytes(), ())]
        if between:
            return [self._full(i, q) for i in sorted(between, key=self._lengths.__getitem__)[:_MOST_TRIES]]
        turning = np.isinf(scene.joint_limits[self._entries, 0])

        def distances(a: _Array, b: _Array) -> _Array:
            change = a - b
            return norms(np.where(turning, change - 2.0 * pi * np.round(change / (2.0 * pi)), change))

        detours = distances(self._first, start) + np.min([distances(self._last, goal) for goal in goals], axis=0)
        order = np.argsort(self._lengths + detours, kind="stable")
        near = order[detours[order] <= _MOST_DETOUR * self._lengths[order]]
        return [self._full(i, q) for i in near[:_MOST_TRIES].tolist()]

    def _full(self, way: int, q: _Array) -> _Array:
        """Return the full configurations of a way."""
        rows = np.empty((len(self._ways[way]), len(q)))
        rows[:] = q
        rows[:, self._entries] = self._ways[way]
        return rows

    def _keep(self, path: _Array) -> None:
        """Keep a path, as the one that was used last."""
        if len(path) > self._max_nodes:
            return
        key = min(path.tobytes(), path[::-1].tobytes())
        if is_new := key not in self._paths:
            self._paths[key] = path
            while len(self) > self._max_nodes:
                del self._paths[next(iter(self._paths))]
        self._paths[key] = self._paths.pop(key)
        if is_new:
            self._ways = list(chain.from_iterable((way, way[::-1]) for way in self._paths.values()))
            self._first, self._last = (np.array([way[end] for way in self._ways]) for end in (0, -1))
            self._lengths = np.array([norms(np.diff(way, axis=0)).sum() for way in self._ways])
            self._between = {}
            for i, way in enumerate(self._ways):
                self._between.setdefault(way[0].tobytes() + way[-1].tobytes(), []).append(i)
