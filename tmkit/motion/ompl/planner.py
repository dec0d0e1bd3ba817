"""Sampling-based motion planners of OMPL; requires the extra ``planners``.

The C++ core checks collisions. Each check crosses the language boundary twice, so a search takes
several times as long as with the core's own planner.

OMPL has one seed generator per process, which seeds every sampler at its construction.
:meth:`OmplPlanner.search` seeds the generator before it constructs samplers, so equal queries give
equal paths. This holds only while no other thread of the process uses OMPL. Later samplers of other
code continue with the sequence of this seed. Multithreaded OMPL planners are not available, since
their results depend on the clock.

OMPL's termination condition counts the iterations. Optimizing planners (names with ``star``) use
all iterations to shorten the path. All other planners end with the first path.

Invariants: OMPL prints no messages during a search. Its log level is restored afterwards.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from tmkit._core import PathResult, PathStatus
from tmkit._support.extras import importing
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.motion.motion_planner import PathQuery
from tmkit.motion.start_tolerances import clamp_to_limits
from tmkit.robots.manipulator import LIMIT_TOLERANCE

OMPL_PLANNERS = (
    "RRTConnect",
    "RRT",
    "KPIECE1",
    "BKPIECE1",
    "LBKPIECE1",
    "BITstar",
    "InformedRRTstar",
    "RRTstar",
)
"""Names of the available planners, all of which are repeatable."""


@dataclass(frozen=True)
class OmplPlanner:
    """OMPL planner as a :class:`~tmkit.motion.MotionPlanner`.

    Args:
        name: class of the planner in ``ompl.geometric``, one of :data:`OMPL_PLANNERS`.
        step: longest motion that is added to a tree [rad]. Ignored by planners without a range.
        shortcut_steps: number of attempts to shorten a path; 0 for none.

    Raises:
        UnknownNameError: if the planner is not available.
        ConfigurationError: if ``step`` is not positive or ``shortcut_steps`` is negative.
    """

    name: str = "RRTConnect"
    step: float = 0.5
    shortcut_steps: int = 100

    def __post_init__(self) -> None:
        if self.name not in OMPL_PLANNERS:
            raise UnknownNameError.of("planner of OMPL", self.name, OMPL_PLANNERS)
        if not (0.0 < self.step < math.inf) or self.shortcut_steps < 0:
            raise ConfigurationError("step must be positive, and shortcut_steps not negative")

    def search(self, query: PathQuery) -> PathResult:
        """Search for a path. The result has no path if the iterations do not suffice.

        Raises:
            MissingExtraError: if OMPL is not installed.
            ConfigurationError: if a joint has no limits, between which OMPL samples, or if the
                query has path constraints.
        """
        if query.constraints:
            raise ConfigurationError(
                "OMPL's planners keep no path constraints; tmkit.motion.RrtConnect does"
            )
        with importing("ompl", "planners", "OMPL's planners need"):
            from ompl import base, geometric, util
        query = replace(
            query,
            start=_clamp(query.start, query),
            goals=np.array([_clamp(goal, query) for goal in np.atleast_2d(query.goals)]),
        )
        start, goals = query.to_arm(query.start), query.to_arm(query.goals)
        failure = _check_ends(query, start, goals)
        if failure is not None:
            return failure
        goals = goals[[_is_within(goal, query) and query.is_free(goal) for goal in goals]]
        for goal in goals:
            if query.is_edge_free(start, goal):
                return query.path_result([start, goal])
        level = util.getLogLevel()
        util.setLogLevel(util.LOG_NONE)
        try:
            util.RNG.setSeed(query.seed % (2**31 - 1) + 1)  # 0 means "any" to OMPL
            path = _Search(query, base, geometric).run(self, start, goals)
        finally:
            util.setLogLevel(level)
        return query.no_path_result() if path is None else query.path_result(path)


class _Search:
    """OMPL problem of one path query."""

    def __init__(self, query: PathQuery, base: ModuleType, geometric: ModuleType) -> None:
        self.query, self.base, self.geometric = query, base, geometric
        self.count = len(query.joints)
        limits = query.limits
        if not np.all(np.isfinite(limits)):
            joint = query.joints[int(np.flatnonzero(~np.isfinite(limits).all(axis=1))[0])]
            raise ConfigurationError(f"OMPL samples between limits, and joint '{joint}' has none")
        bounds = base.RealVectorBounds(self.count)
        for i, (lower, upper) in enumerate(limits.tolist()):
            bounds.setLow(i, lower)
            bounds.setHigh(i, upper)
        self.space = base.RealVectorStateSpace(self.count)
        self.space.setBounds(bounds)

    def run(
        self, planner: OmplPlanner, start: NDArray[np.float64], goals: NDArray[np.float64]
    ) -> list[NDArray[np.float64]] | None:
        base, geometric = self.base, self.geometric
        information = base.SpaceInformation(self.space)
        information.setStateValidityChecker(lambda state: self.query.is_free(self._values(state)))
        information.setMotionValidator(self._motion_validator(information))
        information.setup()
        definition = base.ProblemDefinition(information)
        definition.addStartState(self._state(start))
        goal_states = base.GoalStates(information)
        for goal in goals:
            goal_states.addState(self._state(goal))
        definition.setGoal(goal_states)
        search = getattr(geometric, planner.name)(information)
        if hasattr(search, "setRange"):
            search.setRange(planner.step)
        search.setProblemDefinition(definition)
        search.setup()
        iterations = iter(range(self.query.max_iterations))
        search.solve(base.PlannerTerminationCondition(lambda: next(iterations, None) is None))
        if not definition.hasExactSolution():
            return None
        path = definition.getSolutionPath()
        if planner.shortcut_steps:
            simplifier = geometric.PathSimplifier(information)
            simplifier.reduceVertices(path, planner.shortcut_steps, planner.shortcut_steps)
            simplifier.partialShortcutPath(path, planner.shortcut_steps, planner.shortcut_steps)
        rows = [self._values(path.getState(i)) for i in range(path.getStateCount())]
        rows[0] = start
        rows[-1] = min(goals, key=lambda goal: float(np.max(np.abs(goal - rows[-1]))))
        return rows

    def _values(self, state: Sequence[float]) -> NDArray[np.float64]:
        return np.array(state[0 : self.count])

    def _state(self, values: NDArray[np.float64]) -> MutableSequence[float]:
        state: MutableSequence[float] = self.space.allocState()
        for i, value in enumerate(values.tolist()):
            state[i] = value
        return state

    def _motion_validator(self, information: object) -> object:
        """Return the OMPL validator of straight motions."""
        query, values = self.query, self._values

        # OMPL is imported at run time, so its base class has no type.
        class EdgeValidator(self.base.MotionValidator):  # type: ignore[misc, name-defined]
            def checkMotion(  # noqa: N802 (name of the method in OMPL)
                self, first: Sequence[float], second: Sequence[float], *_: object
            ) -> bool:
                return query.is_edge_free(values(first), values(second))

        return EdgeValidator(information)


def _check_ends(
    query: PathQuery, start: NDArray[np.float64], goals: NDArray[np.float64]
) -> PathResult | None:
    """Return the failure if the start, or every goal, collides or violates joint limits."""
    no_path = query.no_path_result().path
    for limit_status, collision_status, rows in (
        (PathStatus.START_OUT_OF_LIMITS, PathStatus.START_IN_COLLISION, start[None]),
        (PathStatus.GOAL_OUT_OF_LIMITS, PathStatus.GOAL_IN_COLLISION, goals),
    ):
        allowed_rows = [row for row in rows if _is_within(row, query)]
        if not allowed_rows:
            lower, upper = query.limits.T
            is_beyond = (rows[0] < lower - LIMIT_TOLERANCE) | (rows[0] > upper + LIMIT_TOLERANCE)
            return PathResult(
                limit_status, no_path, joint=query.joints[int(np.flatnonzero(is_beyond)[0])]
            )
        contacts = [query.world.find_collision(query.to_full(row)) for row in allowed_rows]
        if all(contact is not None for contact in contacts) and contacts[0] is not None:
            return PathResult(
                collision_status, no_path, pair=(contacts[0].frame_a, contacts[0].frame_b)
            )
    return None


def _clamp(q: NDArray[np.float64], query: PathQuery) -> NDArray[np.float64]:
    """Return a configuration whose joints slightly past a limit are at the limit."""
    try:
        return clamp_to_limits(query.world.scene, q, joints=query.joints)
    except ConfigurationError:  # the check of the ends returns the joint
        return q


def _is_within(row: NDArray[np.float64], query: PathQuery) -> bool:
    lower, upper = query.limits.T
    return bool(np.all((row >= lower - LIMIT_TOLERANCE) & (row <= upper + LIMIT_TOLERANCE)))
