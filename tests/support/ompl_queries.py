"""OMPL's RRT-Connect on tmkit's collision checks, for comparison; needs package ``ompl``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from ompl import base as ob, geometric as og, util as ou

from support.motion_scenes import ARM, Query
from tmkit.motion import CollisionWorld

__all__ = ["OmplPlanner"]


class OmplPlanner:
    """Query for OMPL over the arm's joints; ``CollisionWorld.is_edge_free`` checks its edges.

    The random numbers of OMPL are the process's: its runs are samples, not seeds.
    """

    def __init__(
        self, query: Query, world: CollisionWorld, *, step: float, resolution: float
    ) -> None:
        """Set up the space.

        Args:
            step: longest edge of a tree [rad].
            resolution: resolution of the edge checks [rad].
        """
        ou.setLogLevel(ou.LOG_NONE)
        names = query.scene.joint_names
        self._arm = [names.index(joint) for joint in ARM]
        self._query, self._world, self._step, self._resolution = query, world, step, resolution
        limits = query.scene.joint_limits[self._arm]
        self._space = ob.RealVectorStateSpace(len(ARM))
        bounds = ob.RealVectorBounds(len(ARM))
        for i, (lower, upper) in enumerate(limits):
            bounds.setLow(i, float(lower))
            bounds.setHigh(i, float(upper))
        self._space.setBounds(bounds)

    def _full(self, state: ob.State) -> NDArray[np.float64]:
        q = self._query.start.copy()
        q[self._arm] = state[0 : len(ARM)]
        return q

    def solve(self, *, simplify: bool, seconds: float = 10.0) -> NDArray[np.float64] | None:
        """Return a path (k, n_joints), or None."""
        planner = self

        class Edges(ob.MotionValidator):
            def checkMotion(self, first: ob.State, second: ob.State, *_: object) -> bool:  # noqa: N802 (its name in OMPL)
                return planner._world.is_edge_free(
                    planner._full(first), planner._full(second), resolution=planner._resolution
                )

        setup = og.SimpleSetup(self._space)
        setup.setStateValidityChecker(
            lambda state: not self._world.is_in_collision(self._full(state))
        )
        information = setup.getSpaceInformation()
        information.setMotionValidator(Edges(information))
        ends = []
        for q in (self._query.start, self._query.goal):
            state = self._space.allocState()
            for i, value in enumerate(q[self._arm]):
                state[i] = float(value)
            ends.append(state)
        setup.setStartAndGoalStates(*ends)
        tree = og.RRTConnect(information)
        tree.setRange(self._step)
        setup.setPlanner(tree)
        if not setup.solve(seconds) or not setup.haveExactSolutionPath():
            return None
        if simplify:
            setup.simplifySolution(seconds)
        path = setup.getSolutionPath()
        return np.array([self._full(path.getState(i)) for i in range(path.getStateCount())])
