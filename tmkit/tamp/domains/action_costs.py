"""Costs of actions in the metric of a PDDL problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmkit.pddl import GroundAction, Problem, validate_task_plan
from tmkit.pddl.model import Metric
from tmkit.plans.values import PlanStep


def with_costs(problem: Problem, steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Return the steps with the costs of their actions in the problem's metric.

    The costs are known up to the first action that is not applicable; later steps are unchanged.
    """
    costs = action_costs(problem, [step.action for step in steps])
    costed_steps = (replace(step, cost=cost) for step, cost in zip(steps, costs, strict=False))
    return (*costed_steps, *steps[len(costs) :])


def action_costs(problem: Problem, actions: Sequence[GroundAction]) -> tuple[float, ...]:
    """Return the costs of actions in the problem's metric; 1 each without a metric.

    The result ends before the first action that is not applicable.
    """
    if problem.metric is not Metric.TOTAL_COST:
        return (1.0,) * len(actions)
    return validate_task_plan(problem, actions).costs
