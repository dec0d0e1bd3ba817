"""Paths that are kept for later queries, and proved again only against what changed in the scene.

A :class:`Roadmap` is a graph of configurations. Its edges are straight joint motions, each with the version of the
scene in which it was last checked. A query takes the shortest way over edges that may be free, checks those that were
checked in other versions, and repeats this without those that are not free (after R. Bohlin, L. E. Kavraki, "Path
planning using lazy PRM", ICRA 2000). An edge that was free is proved against the frames alone that differ between the
two versions, as long as none of them moves with the arm.

Invariants: every edge of a path that is returned is proved free in the version of its query, as
:func:`~tmkit.motion.search_path` proves its paths. The same queries in the same order give the same paths.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from math import inf, pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld, PathResult, PathStatus, SceneGraph, diff, search_path
from tmkit._support.elementary import norms
from tmkit.errors import ConfigurationError
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]
_Margins = dict[tuple[str, str], float]
_LEAST_NODES = 16
_NEIGHBOURS = 6  # of a start or goal
_MOST_GOALS = 8  # that are connected, the nearest to the start
_MOST_BLOCKED = 16  # ways over the roadmap that turn out not to be free, before a path is searched anew
_CHECKS_OF_CUT = 300  # checks of the last search for each cut of a new corner
_LEAST_GAIN = 0.002  # of the length, for which a corner is cut
_WIDEST = 3.1  # radians that a continuous joint turns on an edge: less than half a turn


@dataclass(frozen=True, eq=False)
class _Version:
    """A scene in which edges were checked."""

    scene: SceneGraph
    rest: Mapping[str, float]  # values of the joints that stay
    moving: Collection[str]  # frames that move with the other joints
    margins: _Margins


@dataclass(eq=False)
class _Edge:
    length: float
    version: _Version | None = None  # in which it was last checked
    is_free: bool = False
    settled: set[int] = field(default_factory=set)  # nodes before and after it on paths that have been shortened


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
        max_nodes: configurations to keep, at least 16. Beyond, those that were on a path longest ago are dropped. Their
            edges, some ten for each, keep the versions of the scene in which they were last checked.

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
        self._points = np.zeros((max_nodes, len(self.joints)))
        self._keys = [b""] * max_nodes
        self._edges: list[dict[int, _Edge]] = [{} for _ in range(max_nodes)]
        self._nodes: dict[bytes, int] = {}  # by their keys; those that were on a path last are last
        self._last: list[int] = []  # nodes of the last path
        self._is_blocked = False  # whether an edge ever was: there may be a shorter path than the last
        self._work = 0  # checks of the last search
        self._version = _Version(SceneGraph(), {}, (), {})
        self._still: tuple[object, CollisionWorld] | None = None

    def __len__(self) -> int:
        """Return the number of configurations that are kept."""
        return len(self._nodes)

    def search(
        self, scene: SceneGraph, *, start: ArrayLike, goals: ArrayLike, seed: int = 0, max_iterations: int = 50000,
        shortcut_iterations: int = 100,
    ) -> PathResult:  # fmt: skip
        """Return a path that is free in a version of the scene: straight, over the roadmap, or from a new search.

        Args:
            scene: any version, with the joints of this roadmap; not necessarily newer than that of the last query.
            start: (n_joints,) full configuration.
            goals: (n_joints,) or (k, n_joints) full configurations; only the joints that move count.
            seed: of a new search.
            max_iterations: of a new search.
            shortcut_iterations: cuts that are tried on a path that is new, or on new corners of the roadmap.

        Returns:
            The result, as of :func:`~tmkit.motion.search_path`. A path over the roadmap has 0 iterations and the
            ``goal_index`` -1; its end is the goal. It may be longer than a new one: where an object has been removed,
            only a straight motion to the goal replaces the way around it.

        Raises:
            UnknownNameError: the scene does not have a joint of the roadmap, as that of another robot.
            ConfigurationError: a configuration of the wrong length, a mimic joint.

        Cost: where the last path between these ends is free, some 0.3 ms of a Panda among ten objects.
        """
        margins = {(a, b): margin for (a, b), margin in self._pair_margins.items() if a in scene and b in scene}
        movable = [name for name in self._movable if name in scene]
        world = CollisionWorld(scene, movable=movable, margin=self._margin, pair_margins=margins, level=self._level)
        q, targets = plain_numbers(start, "start"), plain_numbers(goals, "goals")
        found = self._search(world, q, targets)
        if found.status not in (PathStatus.NO_PATH, PathStatus.SOLVED):
            return found
        self._enter(world, q, margins)
        targets = np.atleast_2d(targets)
        if found.status is PathStatus.NO_PATH:
            path = self._over(targets[:, self._entries], shortcut_iterations)
            if path is not None:
                return PathResult(PathStatus.SOLVED, path)
            found = search_path(
                world, self.joints, start=q, goals=targets, seed=seed, max_iterations=max_iterations,
                shortcut_iterations=shortcut_iterations,
            )  # fmt: skip
            self._work = found.checks
        if found.status is PathStatus.SOLVED:
            self._keep(found.path[:, self._entries], targets[found.goal_index][self._entries])
        return found

    def _search(self, world: CollisionWorld, start: _Array, goals: _Array) -> PathResult:
        """Try straight motions."""
        return search_path(world, self.joints, start=start, goals=goals, max_iterations=0, shortcut_iterations=0)

    # --- versions ---

    def _enter(self, world: CollisionWorld, q: _Array, margins: _Margins) -> None:
        """Go to a version of the scene."""
        scene, self._world, self._q = world.scene, world, np.array(q)
        names = scene.joint_names
        self._entries = [names.index(joint) for joint in self.joints]
        rest = {name: value for name, value in zip(names, q.tolist(), strict=True) if name not in self.joints}
        if self._version.rest != rest or self._version.scene != scene:
            moving, turning = _moved_by(scene, self.joints)
            self._turning = [self.joints.index(joint) for joint in turning]
            self._version = _Version(scene, rest, moving, margins)
            self._changed: dict[_Version, CollisionWorld | None] = {}

    def _world_of_changes(self, before: _Version, now: _Version) -> CollisionWorld | None:
        """Return the world in which what was free in another version is to be proved; None if nothing is."""
        scene, change = now.scene, diff(before.scene, now.scene)
        names = [*change.changed, *change.added]
        names += [name for a, b, _, reason in change.pairs if reason is None for name in (a, b) if name in scene]
        joints = [joint for joint, value in now.rest.items() if before.rest.get(joint) != value]
        changed = {frame for name in names for frame in scene.subtree(name)} | _moved_by(scene, joints)[0]
        if not changed:
            return None
        if not changed.isdisjoint(now.moving):
            return self._world
        return self._world_of_still(now).moved_to(_only_shapes_of(scene, changed.union(now.moving)))

    def _world_of_still(self, version: _Version) -> CollisionWorld:
        """Return the world without the shapes of what does not move, and without the pairs of what does."""
        if self._still is None or self._still[0] != (version.moving, version.margins):
            bare = _only_shapes_of(version.scene, version.moving)
            margins = version.margins | {(a, b): -inf for a, b, _ in CollisionWorld(bare, level=self._level).pairs}
            world = CollisionWorld(bare, margin=self._margin, pair_margins=margins, level=self._level)
            self._still = (version.moving, version.margins), world
        return self._still[1]

    # --- paths ---

    def _over(self, goals: _Array, shortcuts: int) -> _Array | None:
        """Return a path (k, n_joints) over the roadmap, or None."""
        start = self._q[self._entries]
        if len(goals) > _MOST_GOALS:
            goals = goals[np.argsort(norms(self._turned(goals - start)), kind="stable")[:_MOST_GOALS]]
        ends = [self._joined(goal) for goal in goals]
        first = self._joined(start)
        for end in ends:  # the straight motion has been tried
            if end in self._edges[first]:
                self._block(first, end)
        is_known = not self._is_blocked and [first, *ends] == [*self._last[:1], *self._last[-1:]]
        route = self._last if is_known else self._shortest(first, ends)
        for _ in range(_MOST_BLOCKED):
            if route is None:
                return None
            edges = [self._edges[a][b] for a, b in pairwise(route)]
            rows = self._rows(route)
            order = sorted(range(len(edges)), key=lambda i: edges[i].is_free)  # first what may be blocked
            blocked = next((i for i in order if not self._is_free(edges[i], rows[i], rows[i + 1])), None)
            if blocked is None:
                return self._settled(route, rows, edges, shortcuts)
            self._block(route[blocked], route[blocked + 1])
            route = self._shortest(first, ends)
        return None

    def _settled(self, route: list[int], rows: _Array, edges: list[_Edge], shortcuts: int) -> _Array:
        """Return a path that is free, with those corners cut that are new."""
        new = [after not in edge.settled for edge, after in zip(edges, route[2:], strict=False)]
        if any(new):
            rows = self._shortened(rows, new, min(shortcuts, self._work // _CHECKS_OF_CUT))
            self._keep(rows[:, self._entries], self._points[route[-1]])
        else:
            for node in route:
                self._nodes[self._keys[node]] = self._nodes.pop(self._keys[node])
            self._last = route
        return rows

    def _shortened(self, rows: _Array, corners: Sequence[bool], tries: int) -> _Array:
        """Return a path with corners cut, each first as far as the path goes on either side, then half as far."""
        reach = np.where([False, *corners, False], inf, 0.0)
        for _ in range(tries):
            at = np.concatenate([[0.0], np.cumsum(norms(np.diff(rows, axis=0)))])
            reach = np.minimum(reach, np.minimum(at, at[-1] - at))
            places = np.concatenate([at - reach, at + reach])
            i = np.clip(np.searchsorted(at, places, side="right") - 1, 0, len(at) - 2)
            part = ((places - at[i]) / (at[i + 1] - at[i]))[:, None]
            starts, ends = np.split((1.0 - part) * rows[i] + part * rows[i + 1], 2)
            gains = 2.0 * reach - norms(ends - starts)
            best = int(np.argmax(gains))
            a, b, width = starts[best], ends[best], reach[best]
            if gains[best] < _LEAST_GAIN * at[-1]:
                break
            if self._is_wide((b - a)[self._entries]) or self._search(self._world, a, b).status is PathStatus.NO_PATH:
                reach[best] *= 0.5
                continue
            first, last = at < at[best] - width - 1e-9, at > at[best] + width + 1e-9
            rows = np.concatenate([rows[first], [a, b], rows[last]])
            reach = np.concatenate([reach[first], [width] * 2, reach[last]])
        return rows

    def _rows(self, route: list[int]) -> _Array:
        """Return the configurations (k, n_joints) of a route from the start."""
        points = self._points[route]
        points[0] = self._q[self._entries]
        for i in range(1, len(route)) if self._turning else ():
            points[i] = points[i - 1] + self._turned(points[i] - points[i - 1])
        rows = np.array([self._q] * len(route))
        rows[:, self._entries] = points
        return rows

    def _is_free(self, edge: _Edge, a: _Array, b: _Array) -> bool:
        """Return whether an edge, from one configuration (n_joints,) to another, is free in this version."""
        if edge.version is not self._version:
            world: CollisionWorld | None = self._world
            if edge.version is not None and edge.is_free:
                if edge.version not in self._changed:
                    self._changed[edge.version] = self._world_of_changes(edge.version, self._version)
                world = self._changed[edge.version]
            edge.is_free = world is None or self._search(world, a, b).status is PathStatus.SOLVED
            edge.version = self._version
        return edge.is_free

    # --- the graph ---

    def _turned(self, change: _Array) -> _Array:
        """Return changes (..., n) of the joints, those of continuous ones the shorter way."""
        if self._turning:
            change = change.copy()
            change[..., self._turning] -= 2.0 * pi * np.round(change[..., self._turning] / (2.0 * pi))
        return change

    def _is_wide(self, change: _Array) -> bool:
        return bool(self._turning) and bool(np.any(abs(change[..., self._turning]) > _WIDEST))

    def _node(self, point: _Array) -> int:
        """Return the node of a configuration, which becomes the last to be dropped."""
        point = self._turned(point) + 0.0  # no -0.0
        key = point.tobytes()
        node = self._nodes.pop(key, None)
        if node is None:
            node = len(self._nodes)
            if node == len(self._points):
                node = self._nodes.pop(next(iter(self._nodes)))
                for other in self._edges[node]:
                    del self._edges[other][node]
                self._edges[node], self._last = {}, []
            self._points[node], self._keys[node] = point, key
        self._nodes[key] = node
        return node

    def _joined(self, point: _Array) -> int:
        """Return the node of a configuration, which has edges to its neighbours if it is new."""
        node, count = self._node(point), len(self._nodes)
        if not self._edges[node]:
            changes = self._turned(self._points[:count] - self._points[node])
            distances = norms(changes)
            for other in np.argsort(distances, kind="stable")[: _NEIGHBOURS + 1].tolist():
                if other != node and not self._is_wide(changes[other]):
                    self._edges[node][other] = self._edges[other][node] = _Edge(float(distances[other]))
        return node

    def _block(self, a: int, b: int) -> None:
        """Mark an edge that is not free in this version, or drop it if it was on no path."""
        edge = self._edges[a][b]
        edge.version, edge.is_free = self._version, False
        if edge.settled:
            self._is_blocked = True
        else:
            del self._edges[a][b], self._edges[b][a]
            self._last = []

    def _keep(self, points: _Array, goal: _Array) -> None:
        """Add a path (k, n) that is free; its end is the goal up to whole turns."""
        changes = np.diff(points, axis=0)
        if len(points) > len(self._points) or self._is_wide(changes):
            return
        self._world_of_still(self._version)  # for the next query
        nodes = [self._node(point) for point in (*points[:-1], goal)]
        for (a, b), length in zip(pairwise(nodes), norms(changes).tolist(), strict=True):
            edge = self._edges[a].setdefault(b, _Edge(length))
            self._edges[b][a] = edge
            edge.version, edge.is_free = self._version, True
        for a, b, c in zip(nodes, nodes[1:], nodes[2:], strict=False):
            self._edges[a][b].settled.add(c)
            self._edges[b][c].settled.add(a)
        self._last = nodes

    def _shortest(self, start: int, goals: Sequence[int]) -> list[int] | None:
        """Return the shortest way over edges that may be free."""
        points = self._points[: len(self._nodes)]
        left = np.min([norms(self._turned(points - points[goal])) for goal in goals], axis=0).tolist()
        lengths, before = {start: 0.0}, {start: start}
        queue, done = [(left[start], start)], set()
        while queue:
            node = heappop(queue)[1]
            if node in goals:
                route = [node]
                while route[-1] != start:
                    route.append(before[route[-1]])
                return route[::-1]
            if node in done:
                continue
            done.add(node)
            for other, edge in self._edges[node].items():
                length = lengths[node] + edge.length
                if (edge.is_free or edge.version is not self._version) and length < lengths.get(other, inf):
                    lengths[other], before[other] = length, node
                    heappush(queue, (length + left[other], other))
        return None


def _moved_by(scene: SceneGraph, joints: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the frames that move with joints or with those that mimic them, and which joints are continuous."""
    moved: set[str] = set()
    turning = []
    for frame in scene.joint_frames if joints else ():
        joint = scene.joint(frame)
        if (joint.mimic.joint if joint.mimic else joint.name) in joints:
            if frame not in moved:
                moved.update(scene.subtree(frame))
            if joint.type == "continuous" and not joint.mimic:
                turning.append(joint.name)
    return moved, turning


def _only_shapes_of(scene: SceneGraph, frames: Collection[str]) -> SceneGraph:
    """Return the scene with the shapes of some frames alone."""
    for frame in scene.frame_names:
        if frame not in frames:
            scene = scene.set_shapes(frame, ())
    return scene
