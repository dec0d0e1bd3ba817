"""Costs of plans: by their actions, by the length or duration of their motions, or by a function of the user.

A cost is a sum over the steps, and not negative. So the first steps of a plan cost no more than the
whole, and branches whose first steps cost as much as the best plan can be cut off. The makespan is
none: of its branches those are cut off in which one arm alone is busy for longer. Where two plans
cost the same, the one with the shorter paths is better; a *worth* is this pair.

Invariants: what a function of the user gives is checked; nonsense is a
:class:`~tmkit.errors.CostError` with its name and the action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypeAlias

from tmkit._support.argument_errors import callable_name
from tmkit.errors import CostError, MissingExtraError, TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.tamp.options import Cost, PlanningOptions

Worth: TypeAlias = tuple[float, float]


@dataclass(eq=False)
class StepCosts:
    """The costs of steps, each computed once.

    Attributes:
        stated: returns an action as the domain states it, which functions of the user receive.
        makespan: returns the seconds until the last of all steps of a plan ends.
    """

    cost: Cost
    scene: SceneGraph
    robots: tuple[Manipulator, ...]
    stated: Callable[[GroundAction], GroundAction] = lambda action: action
    makespan: Callable[[Sequence[PlanStep]], float] = lambda _: math.nan

    def __post_init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[PlanStep, Worth]] = {}

    def worth(self, step: PlanStep) -> Worth:
        """Return the cost of a step and the length of its path.

        Raises:
            CostError: a function of the user fails, or gives what is no cost.
        """
        key = step.action, step.segments, step.cost, id(step.scene)
        if key not in self._known:
            # the step keeps its scene, and so the id
            self._known[key] = step, (self._of(step), step.path_length)
        return self._known[key][1]

    def total(self, steps: Sequence[PlanStep]) -> Worth:
        """Return the cost of all steps of a plan and the length of their paths."""
        if self.cost == "makespan":
            return self.makespan(steps), sum(step.path_length for step in steps)
        return _sum(map(self.worth, steps))

    def forget(self) -> None:
        """Let go of the steps that were seen."""
        self._known.clear()

    def _of(self, step: PlanStep) -> float:
        if self.cost == "actions":
            return step.cost
        if self.cost == "path_length":
            return step.path_length
        if self.cost == "duration" or self.cost == "makespan":
            from tmkit.plans.execution import step_duration

            return step_duration(step, self.scene, robots=self.robots)
        return _checked(self.cost, replace(step, action=self.stated(step.action)))


def _checked(function: Callable[[PlanStep], float], step: PlanStep) -> float:
    """Return what a function of the user gives for a step, a finite number of at least 0; refuse anything else."""
    try:
        value = function(step)
    except (TimeLimitError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        raise _error(
            function, step, f"fails for {step.action}: {type(error).__name__}: {error}"
        ) from error
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= value < math.inf:
        raise _error(
            function,
            step,
            f"gives {repr(value)[:60]} for {step.action}, not a finite number of at least 0",
        )
    return float(value)


def _error(function: object, step: PlanStep, what: str) -> CostError:
    name = callable_name(function)
    return CostError(f"cost function '{name}' {what}", cost=name, action=str(step.action))


@dataclass(frozen=True, eq=False)
class CostBound:
    """What a plan must cost less than.

    Attributes:
        worth: returns the cost and the path length of the step with an index.
        limit: the cost and, where that is equal, the length that all steps together must stay
            below.
        is_of_each_arm: whether those of the steps of each arm must.
    """

    worth: Callable[[int, PlanStep], Worth]
    limit: Worth
    is_of_each_arm: bool = False

    def is_below(self, steps: Sequence[PlanStep]) -> bool:
        """Return whether the first steps of a plan are below the limit."""
        worths = [self.worth(index, step) for index, step in enumerate(steps)]
        return (busiest(steps, worths) if self.is_of_each_arm else _sum(worths)) < self.limit


def busiest(steps: Sequence[PlanStep], worths: Sequence[Worth]) -> Worth:
    """Return the worth of the steps of the arm whose steps cost most."""
    arms = [{segment.arm for segment in step.segments} for step in steps]
    return max(
        (
            _sum(w for w, own in zip(worths, arms, strict=True) if arm in own)
            for arm in set().union(*arms)
        ),
        default=(0.0, 0.0),
    )


def _sum(worths: Iterable[Worth]) -> Worth:
    pairs = list(worths)
    return sum(cost for cost, _ in pairs), sum(length for _, length in pairs)


def plan_cost(plan: Plan, cost: Cost = "actions") -> float:
    """Return what a plan costs.

    Args:
        plan: the plan.
        cost: as for :class:`PlanningOptions`: ``"actions"``, ``"path_length"`` in radians,
            ``"duration"`` or ``"makespan"`` in seconds, or a function of a step.

    Raises:
        ConfigurationError: another name.
        CostError: the function fails for a step, or gives no finite number of at least 0.
    """
    named = PlanningOptions(cost=cost).cost
    return StepCosts(
        named, plan.scene, plan.robots, makespan=lambda _: Schedule.of(plan).makespan
    ).total(plan.steps)[0]
