"""Costs of plans: actions, path length, duration, makespan, or a function of the user.

A cost is a sum of non-negative costs of steps. The first steps of a plan therefore never cost more
than the whole plan, and branch and bound prunes a branch once they reach the cost of the best plan.
The makespan is not a sum. A branch is pruned if the busy time of one arm alone exceeds the bound.

Plans are compared by an *objective*, the pair of cost and path length, in lexicographic order: of
two plans of equal cost, the one with shorter paths is better.

The result of a user's function is checked. An invalid one raises a
:class:`~tmkit.errors.CostError` with the name of the function and the action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypeAlias

from tmkit._support.argument_errors import callable_name, check_argument, plan_hint
from tmkit.errors import CostError, MissingExtraError, TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.tamp.options import Cost, PlanningOptions

Objective: TypeAlias = tuple[float, float]
"""Cost and path length, compared in this order."""


@dataclass(eq=False)
class StepCosts:
    """Cached costs of steps.

    Attributes:
        cost: name of a cost, or function of the user.
        scene: scene at the start of the plan.
        robots: arms of the plan.
        domain_action: function that converts a searched action to one of the user's domain, for
            functions of the user.
        makespan: function that returns the end time of the last step [s].
    """

    cost: Cost
    scene: SceneGraph
    robots: tuple[Manipulator, ...]
    domain_action: Callable[[GroundAction], GroundAction] = lambda action: action
    makespan: Callable[[Sequence[PlanStep]], float] = lambda _: math.nan

    def __post_init__(self) -> None:
        self._cache: dict[tuple[object, ...], tuple[PlanStep, Objective]] = {}

    def objective(self, step: PlanStep) -> Objective:
        """Return the cost and the path length of a step.

        Raises:
            CostError: if a function of the user fails or returns an invalid cost.
        """
        key = step.action, step.segments, step.cost, step.value_cost, id(step.scene)
        if key not in self._cache:
            # the cached step keeps its scene alive, so the id stays unique
            self._cache[key] = step, (self._step_cost(step), step.path_length)
        return self._cache[key][1]

    def total(self, steps: Sequence[PlanStep]) -> Objective:
        """Return the cost and the path length of all steps of a plan."""
        if self.cost == "makespan":
            return self.makespan(steps), sum(step.path_length for step in steps)
        return _sum(map(self.objective, steps))

    def clear(self) -> None:
        """Clear the cache."""
        self._cache.clear()

    def _step_cost(self, step: PlanStep) -> float:
        if self.cost == "actions":
            return step.cost + step.value_cost
        if self.cost == "path_length":
            return step.path_length
        if self.cost == "duration" or self.cost == "makespan":
            from tmkit.plans.execution import step_duration

            return step_duration(step, self.scene, robots=self.robots)
        return _call_cost(self.cost, replace(step, action=self.domain_action(step.action)))


def _call_cost(function: Callable[[PlanStep], float], step: PlanStep) -> float:
    """Return the cost that a function of the user computes for a step.

    Raises:
        CostError: if the function fails, or its result is not a finite number of at least 0.
    """
    try:
        value = function(step)
    except (TimeLimitError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        reason = f"fails for {step.action}: {type(error).__name__}: {error}"
        raise _cost_error(function, step, reason) from error
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= value < math.inf:
        reason = f"returns {repr(value)[:60]} for {step.action}, not a finite number of at least 0"
        raise _cost_error(function, step, reason)
    return float(value)


def _cost_error(function: object, step: PlanStep, reason: str) -> CostError:
    """Return the error of a cost function; ``reason`` begins with a verb."""
    name = callable_name(function)
    return CostError(f"cost function '{name}' {reason}", cost=name, action=str(step.action))


@dataclass(frozen=True, eq=False)
class CostBound:
    """Upper bound of a branch-and-bound search.

    Attributes:
        objective: function that returns the cost and the path length of a step, from its index and
            the step.
        limit: exclusive upper bound of the sum over all steps.
        applies_per_arm: whether the bound applies to the steps of each arm instead.
    """

    objective: Callable[[int, PlanStep], Objective]
    limit: Objective
    applies_per_arm: bool = False

    def is_below(self, steps: Sequence[PlanStep]) -> bool:
        """Return whether the first steps of a plan are below the limit."""
        objectives = [self.objective(index, step) for index, step in enumerate(steps)]
        if self.applies_per_arm:
            return busiest_arm_objective(steps, objectives) < self.limit
        return _sum(objectives) < self.limit


def busiest_arm_objective(steps: Sequence[PlanStep], objectives: Sequence[Objective]) -> Objective:
    """Return the largest sum of objectives over the steps of one arm."""
    step_arms = [{segment.arm for segment in step.segments} for step in steps]
    pairs = list(zip(objectives, step_arms, strict=True))
    sums = (
        _sum(objective for objective, arms in pairs if arm in arms)
        for arm in set().union(*step_arms)
    )
    return max(sums, default=(0.0, 0.0))


def _sum(objectives: Iterable[Objective]) -> Objective:
    """Return the sums of costs and of path lengths."""
    pairs = list(objectives)
    return sum(cost for cost, _ in pairs), sum(length for _, length in pairs)


def plan_cost(plan: Plan, cost: Cost = "actions") -> float:
    """Return the cost of a plan.

    Args:
        plan: plan.
        cost: as in :class:`PlanningOptions`: ``"actions"``, ``"path_length"`` [rad],
            ``"duration"`` or ``"makespan"`` [s], or a function of a step.

    Raises:
        ConfigurationError: if the name is unknown.
        CostError: if the function fails for a step, or returns no finite number of at least 0.
    """
    check_argument(plan, Plan, "plan", function="plan_cost", hint=plan_hint(plan))
    valid_cost = PlanningOptions(cost=cost).cost
    costs = StepCosts(
        valid_cost, plan.scene, plan.robots, makespan=lambda _: Schedule.of(plan).makespan
    )
    return costs.total(plan.steps)[0]
