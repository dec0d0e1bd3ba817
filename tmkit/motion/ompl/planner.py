"""OMPL's sampling-based planners as motion planners; wants the extra ``planners``.

The collision checks are the core's: each question passes through Python twice, so this costs
several times what the core's own search does.

OMPL has one generator of seeds in a process, from which every sampler takes its seed when it is
made. :meth:`OmplPlanner.search` sets it before it makes any: the same query gives the same path.
This holds only while no other thread of the process uses OMPL. Whatever else in the process draws
seeds from OMPL afterwards goes on from there. Planners of OMPL that run threads of their own are
not offered, as their answers depend on the clock.

Iterations are counted in OMPL's termination condition. OMPL's optimising planners (names with
``star``) use all of them and search for ever shorter paths; the others end with the first.

Invariants: OMPL's messages are silent while it searches, and its level of messages is as before
    afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import PathResult, PathStatus
from tmkit._support.extras import importing
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.motion.motion_planner import PathQuery
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
"""The planners that are offered: those that repeat themselves."""


@dataclass(frozen=True)
class OmplPlanner:
    """One of OMPL's planners.

    Args:
        name: the planner's class in ``ompl.geometric``, one of :data:`OMPL_PLANNERS`.
        step: longest motion that is added to a tree, in radians; planners without such a number do
            not look at it.
        shortcut_steps: attempts at a shorter path when one was found; 0 for none.

    Raises:
        UnknownNameError: a planner that is not offered.
        ConfigurationError: a number that is none.
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
        """Search for a path; the result may be that none was found within the iterations.

        Raises:
            MissingExtraError: OMPL is not installed.
            ConfigurationError: a joint without limits, in which OMPL cannot sample, or path
                constraints.
        """
        if query.constraints:
            raise ConfigurationError(
                "OMPL's planners keep no path constraints; tmkit.motion.RrtConnect does"
            )
        with importing("ompl", "planners", "OMPL's planners need"):
            from ompl import base, geometric, util
        start, goals = query.to_arm(query.start), query.to_arm(query.goals)
        ends = _unusable_ends(query, start, goals)
        if ends is not None:
            return ends
        goals = goals[[_is_within(goal, query) and query.is_free(goal) for goal in goals]]
        for goal in goals:
            if query.is_edge_free(start, goal):
                return query.solved([start, goal])
        level = util.getLogLevel()
        util.setLogLevel(util.LOG_NONE)
        try:
            util.RNG.setSeed(query.seed % (2**31 - 1) + 1)  # 0 means "any" to OMPL
            path = _Search(query, base, geometric).run(self, start, goals)
        finally:
            util.setLogLevel(level)
        return query.unsolved() if path is None else query.solved(path)


class _Search:
    """One query in OMPL's words."""

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
        information.setMotionValidator(self._edges(information))
        information.setup()
        definition = base.ProblemDefinition(information)
        definition.addStartState(self._state(start))
        wanted = base.GoalStates(information)
        for goal in goals:
            wanted.addState(self._state(goal))
        definition.setGoal(wanted)
        search = getattr(geometric, planner.name)(information)
        if hasattr(search, "setRange"):
            search.setRange(planner.step)
        search.setProblemDefinition(definition)
        search.setup()
        asked = iter(range(self.query.max_iterations))
        search.solve(base.PlannerTerminationCondition(lambda: next(asked, None) is None))
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

    def _values(self, state: Any) -> NDArray[np.float64]:
        return np.array(state[0 : self.count])

    def _state(self, values: NDArray[np.float64]) -> Any:
        state = self.space.allocState()
        for i, value in enumerate(values.tolist()):
            state[i] = value
        return state

    def _edges(self, information: Any) -> Any:
        """Return what tells OMPL whether straight motions are free."""
        query, values = self.query, self._values

        class Edges(self.base.MotionValidator):  # type: ignore[misc, name-defined]  # OMPL is imported when it is used
            def checkMotion(self, first: Any, second: Any, *_: object) -> bool:  # noqa: N802 (its name in OMPL)
                return query.is_edge_free(values(first), values(second))

        return Edges(information)


def _unusable_ends(
    query: PathQuery, start: NDArray[np.float64], goals: NDArray[np.float64]
) -> PathResult | None:
    """Return the result where the start, or every goal, collides or is outside the limits."""
    none = query.unsolved().path
    for status, colliding, rows in (
        (PathStatus.START_OUT_OF_LIMITS, PathStatus.START_IN_COLLISION, start[None]),
        (PathStatus.GOAL_OUT_OF_LIMITS, PathStatus.GOAL_IN_COLLISION, goals),
    ):
        within = [row for row in rows if _is_within(row, query)]
        if not within:
            lower, upper = query.limits.T
            beyond = (rows[0] < lower - LIMIT_TOLERANCE) | (rows[0] > upper + LIMIT_TOLERANCE)
            return PathResult(status, none, joint=query.joints[int(np.flatnonzero(beyond)[0])])
        contacts = [query.world.find_collision(query.to_full(row)) for row in within]
        if all(contact is not None for contact in contacts) and contacts[0] is not None:
            return PathResult(colliding, none, pair=(contacts[0].frame_a, contacts[0].frame_b))
    return None


def _is_within(row: NDArray[np.float64], query: PathQuery) -> bool:
    lower, upper = query.limits.T
    return bool(np.all((row >= lower - LIMIT_TOLERANCE) & (row <= upper + LIMIT_TOLERANCE)))
