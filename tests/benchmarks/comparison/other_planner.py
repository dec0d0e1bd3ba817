"""Planners for the arena: functions of a module, as another project would have them."""

from __future__ import annotations

import dataclasses

import numpy as np

import tmkit as tk
from tmkit.motion import PathQuery, PathResult
from tmkit.plans import Plan


def first_goal_only(problem: tk.PlanningProblem, options: tk.PlanningOptions) -> Plan | None:
    """Plan for even seeds and give up for odd ones."""
    return tk.solve(problem, options).plan if options.seed % 2 == 0 else None


def through_the_table(problem: tk.PlanningProblem, options: tk.PlanningOptions) -> Plan:
    """Give a plan whose first motion swings the shoulder down on its way, into the table."""
    plan = tk.solve(problem, options).plan
    assert plan is not None
    step = plan.steps[0]
    first = step.segments[0]
    waypoints = np.vstack(
        [
            first.path[:1],
            np.where(np.arange(first.path.shape[1]) == 1, 1.7, first.path[:1]),
            first.path[-1:],
        ]
    )
    segments = (dataclasses.replace(first, path=waypoints), *step.segments[1:])
    return dataclasses.replace(
        plan, steps=(dataclasses.replace(step, segments=segments), *plan.steps[1:])
    )


class StraightOnly:
    """A motion planner with one path."""

    def search(self, query: PathQuery) -> PathResult:
        """Go straight to the first goal, or give up."""
        start, goal = query.to_arm(query.start), query.to_arm(query.goals[0])
        return (
            query.path_result([start, goal])
            if query.is_edge_free(start, goal)
            else query.no_path_result()
        )


NO_PLANNER = 3
