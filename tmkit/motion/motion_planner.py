"""Motion planners: their queries, their results, and the check of their paths.

A :class:`MotionPlanner` has one method, which takes a :class:`PathQuery` and returns a
:class:`~tmkit.motion.PathResult`. The core's RRT-Connect (:class:`RrtConnect`) is the default. The
paths of a user's planner are verified by :func:`search_verified`.

Invariants that a planner must keep, because plans are repeatable by them: the same query, seed
included, gives the same path, whatever was searched before or runs beside; iterations decide and
clocks only stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    CollisionWorld,
    PathResult,
    PathSettings,
    PathStatus,
    RecheckResult,
    recheck_path,
    search_path,
)
from tmkit.errors import ConfigurationError, TmkitError
from tmkit.motion.path_constraints import PathConstraint, path_fault
from tmkit.spatial.plain import plain_numbers

_Array = NDArray[np.float64]
_END_TOLERANCE = 1e-9  # radians or metres: paths of one motion share their ends
_HALVINGS = 3  # of the resolution, when a path fails the fine check


@dataclass(frozen=True, eq=False)
class PathCheck:
    """The fine check that a path must pass in the end.

    Attributes:
        world: what collides, usually without a margin.
        resolution: radians or metres of any joint between two checked configurations.
        tool_frame: frame that travels at most ``tool_travel`` between two checks; None for no such
            bound.
        tool_travel: metres.
    """

    world: CollisionWorld
    resolution: float = 0.003
    tool_frame: str | None = None
    tool_travel: float = 0.001

    def of(self, path: _Array) -> RecheckResult:
        """Check a path (k, n_joints)."""
        return recheck_path(
            self.world,
            path,
            resolution=self.resolution,
            tool_frame=self.tool_frame,
            tool_travel=self.tool_travel,
        )


@dataclass(frozen=True, eq=False)
class PathQuery:
    """A path to be found, in one version of a scene.

    Configurations are full, (n_joints,) in the order of the scene's joints; *arm* coordinates are
    those of the joints that move alone, (n,) in the order of ``joints``.

    Attributes:
        world: what collides, margins included.
        joints: the joints that may move; the others stay as at the start.
        start: (n_joints,) where the path begins.
        goals: (m, n_joints) where it may end; of each only the joints that move count.
        seed: seed of everything random.
        max_iterations: how long to search, in units of the planner's own that grow with its work.
        resolution: radians or metres of any joint between two configurations that are checked while
            searching.
        check: the fine check that the path must pass, in a world that is no stricter.
            (:class:`RrtConnect` proves its paths free in ``world``, which implies it.)
        constraints: what frames keep along the whole path. A planner that cannot raises a
            ConfigurationError.
    """

    world: CollisionWorld
    joints: tuple[str, ...]
    start: _Array
    goals: _Array
    seed: int = 0
    max_iterations: int = 2000
    resolution: float = 0.01
    check: PathCheck | None = None
    constraints: tuple[PathConstraint, ...] = ()

    @cached_property
    def entries(self) -> tuple[int, ...]:
        """Where the joints that move stand in a configuration."""
        names = self.world.scene.joint_names
        return tuple(names.index(joint) for joint in self.joints)

    @property
    def limits(self) -> _Array:
        """(n, 2) least and greatest values of the joints that move; infinite where there is no limit."""
        return np.array(self.world.scene.joint_limits[list(self.entries)])

    def to_arm(self, q: ArrayLike) -> _Array:
        """Return the values (..., n) of the joints that move, of configurations (..., n_joints)."""
        return np.array(plain_numbers(q, "q")[..., list(self.entries)])

    def to_full(self, arm: ArrayLike) -> _Array:
        """Return full configurations (..., n_joints) with the given values (..., n) of the joints that move."""
        values = plain_numbers(arm, "arm")
        full = np.broadcast_to(self.start, (*values.shape[:-1], len(self.start))).copy()
        full[..., list(self.entries)] = values
        return full

    def is_free(self, arm: ArrayLike) -> bool:
        """Return whether a configuration (n,) of the arm is free of collisions; limits are not looked at."""
        return not self.world.is_in_collision(self.to_full(arm))

    def is_edge_free(self, first: ArrayLike, second: ArrayLike) -> bool:
        """Return whether the straight motion between two configurations is collision-free, both ends included.

        Args:
            first: (n,) configuration of the moving joints.
            second: (n,) configuration of the moving joints.
        """
        return self.world.is_edge_free(
            self.to_full(first), self.to_full(second), resolution=self.resolution
        )

    def solved(self, path: ArrayLike) -> PathResult:
        """Return the result of a search that found a path, given in arm coordinates (k, n)."""
        return PathResult(PathStatus.SOLVED, self.to_full(path))

    def unsolved(self) -> PathResult:
        """Return the result of a search without a path within the iterations."""
        return PathResult(PathStatus.NO_PATH, self.to_full(np.empty((0, len(self.joints)))))


class MotionPlanner(Protocol):
    """Finds paths between configurations."""

    def search(self, query: PathQuery) -> PathResult:
        """Search for a path; the result may be that none was found within the iterations."""
        ...


@dataclass(frozen=True)
class RrtConnect:
    """The core's own search: RRT-Connect, then cuts of corners; see :func:`tmkit.motion.search_path`.

    Args:
        step: longest edge of a tree, in radians (Euclidean over the joints).
        shortcut_iterations: cuts that are tried to shorten a path.
    """

    step: float = 0.5
    shortcut_iterations: int = 100

    def search(self, query: PathQuery) -> PathResult:
        """Search for a path; one that is found is proved free."""
        return search_path(
            query.world,
            query.joints,
            start=query.start,
            goals=query.goals,
            constraints=query.constraints,
            settings=PathSettings(
                seed=query.seed,
                max_iterations=query.max_iterations,
                step=self.step,
                shortcut_iterations=self.shortcut_iterations,
            ),
        )


def search_verified(planner: MotionPlanner, query: PathQuery) -> PathResult:
    """Search with a planner and accept its path only after the fine check.

    Args:
        planner: the planner.
        query: what is wanted.

    Returns:
        The planner's result; with the status ``RECHECK_FAILED`` instead, where its path does not
        pass the fine check or leaves a constraint.

    Raises:
        ConfigurationError: the planner raises an error that is none of tmkit's, or returns no
            result. Also if its path does not lead from the start to a goal, or moves other joints:
            a mistake of the planner.
    """
    name = type(planner).__name__
    for halvings in range(_HALVINGS + 1):
        finer = replace(query, resolution=query.resolution / 2**halvings)
        try:
            found = planner.search(finer)
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            raise ConfigurationError(
                f"motion planner '{name}' fails: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, PathResult):
            raise ConfigurationError(
                f"motion planner '{name}' gives {repr(found)[:60]}, which is no PathResult"
            )
        # the core has proved its own
        if found.status is not PathStatus.SOLVED or type(planner) is RrtConnect:
            return found
        _require_path(found.path, query, name)
        result = None if query.check is None else query.check.of(found.path)
        if (result is None or result.is_ok) and path_fault(
            query.world.scene, found.path, query.constraints
        ) is None:
            return found
    pair, joint = (None, None) if result is None else (result.pair, result.joint)
    return PathResult(PathStatus.RECHECK_FAILED, query.unsolved().path, pair=pair, joint=joint)


def _require_path(path: _Array, query: PathQuery, planner: str) -> None:
    def differ(first: _Array, second: _Array) -> bool:
        return bool(np.max(np.abs(first - second), initial=0.0) > _END_TOLERANCE)

    count = len(query.start)
    if path.shape[1] != count or not len(path):
        raise ConfigurationError(
            f"the path of {planner} must have shape (k, {count}), not {path.shape}"
        )
    if differ(path[0], query.start):
        raise ConfigurationError(f"the path of {planner} does not begin at the start")
    still = np.delete(path, list(query.entries), axis=1)
    if differ(still, np.delete(query.start, list(query.entries))):
        raise ConfigurationError(f"the path of {planner} moves joints that are not in query.joints")
    if all(differ(query.to_arm(path[-1]), query.to_arm(goal)) for goal in query.goals):
        raise ConfigurationError(f"the path of {planner} does not end at a goal")
