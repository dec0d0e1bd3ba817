"""Validate a task plan action by action.

:func:`validate_task_plan` applies the actions in order with :mod:`tmkit.pddl.evaluation`, which shares no code with any
planner. It returns how many actions were applied, which part of which precondition failed, and which part of the goal
does not hold at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tmkit._support.results import Result, ValidationStatus
from tmkit.errors import TaskError
from tmkit.pddl.evaluation import Interpretation, in_words
from tmkit.pddl.formulas import Formula, GroundAction
from tmkit.pddl.model import Metric, Problem
from tmkit.pddl.state import State


@dataclass(frozen=True)
class TaskPlanValidation(Result):
    """What came of executing a plan.

    Attributes:
        is_valid: every step was applicable and the goal holds at the end.
        steps: the plan.
        states: the initial state and the state after each step that could be executed.
        failed_step: the index of the first step that could not be executed, ``None`` when all could.
        failures: the ground parts of that step's precondition that did not hold; or, when all steps were executed, the
            ground parts of the goal that do not hold.
        message: why the plan is not valid, in words; empty when it is.
        cost: the cost of the executed steps by the problem's metric.
        costs: the same of each.
    """

    is_valid: bool
    steps: tuple[GroundAction, ...]
    states: tuple[State, ...]
    failed_step: int | None
    failures: tuple[Formula, ...]
    message: str
    cost: float
    costs: tuple[float, ...] = ()

    @property
    def status(self) -> ValidationStatus:
        """Whether the plan is valid."""
        return ValidationStatus.of(self.is_valid)

    def __repr__(self) -> str:
        reason = f", {self.message}" if self.message else ""
        return f"TaskPlanValidation({self.status.value}, {len(self.steps)} steps, cost {self.cost:g}{reason})"

    def to_dict(self) -> dict[str, Any]:
        """Return the validation without its states as plain values."""
        values = super().to_dict()
        del values["states"]
        return values

    @property
    def final_state(self) -> State:
        """The state after the last step that could be executed."""
        return self.states[-1]


def validate_task_plan(problem: Problem, steps: Iterable[GroundAction]) -> TaskPlanValidation:
    """Execute ``steps`` from the initial state of ``problem`` and tell what came of it.

    Args:
        problem: the task.
        steps: the plan. A step that the domain does not have, or with wrong arguments, is a failed step, no error.
    """
    plan, states = tuple(steps), [problem.init]
    costs: list[float] = []

    def ended(message: str, failures: tuple[Formula, ...], failed: int | None) -> TaskPlanValidation:
        return TaskPlanValidation(not message, plan, tuple(states), failed, failures, message, sum(costs), tuple(costs))

    for index, step in enumerate(plan):
        begin = f"step {index + 1} of {len(plan)}, {step}: "
        try:
            schema, binding = problem.binding_of(step)
        except TaskError as error:
            return ended(begin + error.data["reason"], (), index)
        interpretation = Interpretation(problem, states[-1])
        if failures := interpretation.failures(schema.precondition, binding):
            return ended(begin + "; ".join(map(in_words, failures)), failures, index)
        change = interpretation.change(schema.effect, binding)
        cost = change.cost if problem.metric is Metric.TOTAL_COST else 1.0
        if cost is None:
            return ended(f"{begin}its cost is not defined, because a function in it has no value", (), index)
        if (term := change.undefined()) is not None:
            return ended(f"{begin}it gives {term} no value", (), index)
        states.append(change.applied(states[-1]))
        costs.append(cost)
    failures = Interpretation(problem, states[-1]).failures(problem.goal)
    message = f"the goal is not reached: {'; '.join(map(in_words, failures))}" if failures else ""
    return ended(message, failures, None)
