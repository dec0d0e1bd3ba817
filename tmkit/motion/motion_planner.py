"""Motion planners, their queries, and the check of their paths.

A :class:`MotionPlanner` has one method, which takes a :class:`PathQuery` and returns a
:class:`~tmkit.motion.PathResult`. The default is :class:`RrtConnect`, the RRT-Connect of the C++
core. :func:`search_verified` checks the paths of a user's planner.

Invariants of a planner, on which repeatable plans depend: equal queries, including the seed, give
equal paths. Previous and concurrent searches have no effect. The result depends on iteration
counts, and a time limit only ends the search.
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

_END_TOLERANCE = 1e-9
"""Largest difference of a joint value between equal configurations [rad or m]."""

_MAX_HALVINGS = 3
"""Number of times that the resolution is halved after a path fails the fine check."""


@dataclass(frozen=True, eq=False)
class PathCheck:
    """Final collision check of a path, at a fine resolution.

    Attributes:
        world: collision world, usually without a margin.
        resolution: largest step of any joint between two checked configurations [rad or m].
        tool_frame: frame that moves at most ``tool_travel`` between two checks. None for no such
            bound.
        tool_travel: largest distance that the tool frame moves between two checks [m].
    """

    world: CollisionWorld
    resolution: float = 0.003
    tool_frame: str | None = None
    tool_travel: float = 0.001

    def run(self, path: _Array) -> RecheckResult:
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
    """Query for a path in one version of a scene.

    Full configurations are (n_joints,), in the order of the scene's joints. *Arm* coordinates are
    the values (n,) of the moving joints, in the order of ``joints``.

    Attributes:
        world: collision world, including margins.
        joints: moving joints. All other joints keep their values at the start.
        start: (n_joints,) first configuration of the path.
        goals: (m, n_joints) allowed last configurations. Only their moving joints are used.
        seed: seed of all random numbers.
        max_iterations: search effort, in the planner's own unit.
        resolution: largest step of any joint between two configurations that the search checks [rad
            or m].
        check: final check of the path, in a world that is not stricter. :class:`RrtConnect` proves
            its paths free in ``world``, which implies this check.
        constraints: path constraints. A planner without support for them raises a
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
    def joint_indices(self) -> tuple[int, ...]:
        """Indices of the moving joints in a full configuration."""
        names = self.world.scene.joint_names
        return tuple(names.index(joint) for joint in self.joints)

    @property
    def limits(self) -> _Array:
        """(n, 2) smallest and largest values of the moving joints; infinite without a limit."""
        return np.array(self.world.scene.joint_limits[list(self.joint_indices)])

    def to_arm(self, q: ArrayLike) -> _Array:
        """Return the values (..., n) of the moving joints in configurations (..., n_joints)."""
        return np.array(plain_numbers(q, "q")[..., list(self.joint_indices)])

    def to_full(self, arm: ArrayLike) -> _Array:
        """Return configurations (..., n_joints) with values (..., n) of the moving joints."""
        values = plain_numbers(arm, "arm")
        full = np.broadcast_to(self.start, (*values.shape[:-1], len(self.start))).copy()
        full[..., list(self.joint_indices)] = values
        return full

    def is_free(self, arm: ArrayLike) -> bool:
        """Return whether an arm configuration (n,) is collision-free; joint limits are ignored."""
        return not self.world.is_in_collision(self.to_full(arm))

    def is_edge_free(self, first: ArrayLike, second: ArrayLike) -> bool:
        """Return whether a straight joint motion is collision-free, including both ends.

        Args:
            first: (n,) configuration of the moving joints.
            second: (n,) configuration of the moving joints.
        """
        return self.world.is_edge_free(
            self.to_full(first), self.to_full(second), resolution=self.resolution
        )

    def path_result(self, path: ArrayLike) -> PathResult:
        """Return the result of a successful search, from its path (k, n) in arm coordinates."""
        return PathResult(PathStatus.SOLVED, self.to_full(path))

    def no_path_result(self) -> PathResult:
        """Return the result of a search without a path within the iterations."""
        return PathResult(PathStatus.NO_PATH, self.to_full(np.empty((0, len(self.joints)))))


class MotionPlanner(Protocol):
    """Planner of collision-free paths between configurations."""

    def search(self, query: PathQuery) -> PathResult:
        """Search for a path. The result has no path if the iterations do not suffice."""
        ...


@dataclass(frozen=True)
class RrtConnect:
    """RRT-Connect of the C++ core with shortcuts; see :func:`tmkit.motion.search_path`.

    Args:
        step: longest edge of a tree, Euclidean over the joints [rad].
        shortcut_iterations: number of attempts to shorten a path.
    """

    step: float = 1.0
    shortcut_iterations: int = 100

    def search(self, query: PathQuery) -> PathResult:
        """Search for a path. A resulting path is proved collision-free."""
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

    A path that fails the check is searched again at half the resolution, up to three times.

    Args:
        planner: the planner.
        query: the query.

    Returns:
        The planner's result. Its status is ``RECHECK_FAILED`` instead if the path fails the fine
        check or violates a constraint.

    Raises:
        ConfigurationError: if the planner raises an error other than a TmkitError, or returns no
            PathResult. Also if its path does not connect the start to a goal, or moves other
            joints.
    """
    name = type(planner).__name__
    for halvings in range(_MAX_HALVINGS + 1):
        finer = replace(query, resolution=query.resolution / 2**halvings)
        try:
            result = planner.search(finer)
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            raise ConfigurationError(
                f"motion planner '{name}' fails: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(result, PathResult):
            raise ConfigurationError(
                f"motion planner '{name}' must return a PathResult, got {repr(result)[:60]}"
            )
        # The core has already proved its own paths free.
        if result.status is not PathStatus.SOLVED or type(planner) is RrtConnect:
            return result
        _require_path(result.path, query, name)
        check = None if query.check is None else query.check.run(result.path)
        is_accepted = check is None or check.is_ok
        if is_accepted and path_fault(query.world.scene, result.path, query.constraints) is None:
            return result
    pair, joint = (None, None) if check is None else (check.pair, check.joint)
    no_path = query.no_path_result().path
    return PathResult(PathStatus.RECHECK_FAILED, no_path, pair=pair, joint=joint)


def _require_path(path: _Array, query: PathQuery, planner: str) -> None:
    count = len(query.start)
    if path.shape[1] != count or not len(path):
        raise ConfigurationError(
            f"the path of {planner} must have shape (k, {count}), not {path.shape}"
        )
    if _differ(path[0], query.start):
        raise ConfigurationError(f"the path of {planner} does not begin at the start")
    indices = list(query.joint_indices)
    if _differ(np.delete(path, indices, axis=1), np.delete(query.start, indices)):
        raise ConfigurationError(f"the path of {planner} moves joints that are not in query.joints")
    if all(_differ(query.to_arm(path[-1]), query.to_arm(goal)) for goal in query.goals):
        raise ConfigurationError(f"the path of {planner} does not end at a goal")


def _differ(first: _Array, second: _Array) -> bool:
    return bool(np.max(np.abs(first - second), initial=0.0) > _END_TOLERANCE)
