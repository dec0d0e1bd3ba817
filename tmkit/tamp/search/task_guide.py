"""Task plans for the search over versions, under learned constraints that may be removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from tmkit.pddl import GroundAction
from tmkit.task_planning.guide import AGENDA_WORK, OperatorConstraint, TaskPlanSource
from tmkit.task_planning.sas import Pair, SasTask, Values

_CONSTRAINED_AGENDA_WORK = 1_000_000
"""Rule lookups for each goal of the agenda under removable constraints; about 10 ms."""

_FIRST_WORK = 1_000_000
"""Rule lookups of A* for the first task plan; about 10 ms."""

_FIRST_IMPROVEMENT_WORK = 8_000_000
"""Rule lookups that shorten the first task plan, which later ones resemble; about 0.3 s."""

_PROOF_WORK = 1_000_000
"""Rule lookups of a proof that no plan exists; about 10 ms."""


class TaskGuide(TaskPlanSource):
    """Source of task plans under proved and removable constraints.

    Args:
        task: complete task.
    """

    def __init__(self, task: SasTask) -> None:
        super().__init__(task)
        self._under_proofs = TaskPlanSource(task)

    @cached_property
    def operators_by_name(self) -> dict[str, list[int]]:
        """Operators by name of the action."""
        operators: dict[str, list[int]] = defaultdict(list)
        for number, action in enumerate(self.actions):
            operators[action.name].append(number)
        return operators

    @cached_property
    def operators_by_action(self) -> dict[GroundAction, list[int]]:
        """Operators by ground action."""
        operators: dict[GroundAction, list[int]] = defaultdict(list)
        for number, action in enumerate(self.actions):
            operators[action].append(number)
        return operators

    def preconditions(self, operator: int) -> tuple[Pair, ...]:
        """Return the preconditions of an operator."""
        return self.task.operators[operator].preconditions

    def count(self, facts: Iterable[Pair], values: Values) -> int:
        """Return the number of facts that hold."""
        return sum(values[variable] == value for variable, value in facts)

    def forbid(self, constraint: OperatorConstraint) -> None:
        """Add a constraint; see :meth:`TaskPlanSource.forbid`."""
        super().forbid(constraint)
        if constraint.is_proved:
            self._under_proofs.forbid(constraint)

    def _constrain(self, constraints: list[OperatorConstraint]) -> None:
        super()._constrain(constraints)
        is_proved = all(constraint.is_proved for constraint in constraints)
        self._agenda_work = AGENDA_WORK if is_proved else _CONSTRAINED_AGENDA_WORK

    def remove(self, constraint: OperatorConstraint) -> None:
        """Remove a constraint."""
        self._constrain([other for other in self.constraints if other != constraint])

    def implies(self, constraint: OperatorConstraint) -> bool:
        """Return whether an existing constraint is at least as strict."""
        return any(
            other.facts == constraint.facts
            and other.limit <= constraint.limit
            and set(constraint.operators) <= set(other.operators)
            for other in self.constraints
        )

    def applicable_under_proofs(
        self, values: Values, candidates: Iterable[int] | None = None
    ) -> list[int]:
        """Return the operators that apply under the proved constraints.

        Args:
            values: state.
            candidates: operators to select from. Defaults to all.
        """
        if candidates is None:
            return self._under_proofs.applicable(values)
        return [number for number in candidates if self._under_proofs.is_applicable(number, values)]

    def first_plan(self, values: Values) -> tuple[int, ...] | None:
        """Return a plan from the start, with more work while there are no constraints."""
        if self.constraints:
            return self.plan(values)
        goal = self.task.goal
        plan, *_ = self._search.plan(
            values, goal, _FIRST_WORK, _FIRST_IMPROVEMENT_WORK, self._agenda_work
        )
        if plan is None:
            return None
        if not self.survives(values, plan):
            return self.plan(values)
        return self._cache_plan("searched", values, plan)

    def plan_or_relax(self, values: Values, *, hint: Sequence[int] = ()) -> tuple[int, ...] | None:
        """Return a plan under all constraints, otherwise under the proved ones, otherwise None."""
        plan = self.plan(values, hint=hint)
        return plan if plan is not None else self._under_proofs.plan(values, hint=hint)

    def is_unsolvable_under_constraints(self, values: Values) -> bool:
        """Return whether it is proved that no plan from a state satisfies all constraints."""
        return self._search.plan(values, self.task.goal, _PROOF_WORK, 0)[1]

    def reaches(self, values: Values, operators: Sequence[int]) -> bool:
        """Return whether operators lead to the goal."""
        return self._search.follow(values, self.task.goal, operators) is not None
