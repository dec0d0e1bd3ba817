"""Planners for the arena: functions of a module, as another project would have them."""

from __future__ import annotations

import dataclasses

import numpy as np

import tmkit as tk
from tmkit.plans import Plan


def first_goal_only(problem: tk.PlanningProblem, options: tk.PlanningOptions) -> Plan | None:
    """Plan for even seeds and give up for odd ones."""
    return tk.plan(problem, options).plan if options.seed % 2 == 0 else None


def through_the_table(problem: tk.PlanningProblem, options: tk.PlanningOptions) -> Plan:
    """Give a plan whose first motion swings the shoulder down on its way, into the table."""
    plan = tk.plan(problem, options).plan
    assert plan is not None
    step = plan.steps[0]
    first = step.segments[0]
    away = np.vstack(
        [first.path[:1], np.where(np.arange(first.path.shape[1]) == 1, 1.7, first.path[:1]), first.path[-1:]]
    )
    segments = (dataclasses.replace(first, path=away), *step.segments[1:])
    return dataclasses.replace(plan, steps=(dataclasses.replace(step, segments=segments), *plan.steps[1:]))


NO_PLANNER = 3
