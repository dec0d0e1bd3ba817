"""Plans that survive the uncontrollable actions of the world.

An uncontrollable action may happen in each state in which its preconditions hold, before the next
action of a plan. A plan survives it if there is again a plan to the goal from the state after it,
which survives too. Such plans form a strong cyclic policy: it reaches the goal if the world does
not repeat the same action forever. An execution ends at the goal, so actions of the world in goal
states are ignored.

The search repeats classical planning (NDP: Kuter, Nau, Reisner and Goldman, ICAPS 2008). It plans
again from each state to which the world may lead from a state of the plan. States without such a
plan are forbidden.

One proof forbids many states. Literals are removed from the forbidden state if delete relaxation
proves the same without them, as in PRP (Muise, McIlraith and Beck, ICAPS 2012).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from tmkit._support.time_limits import check_time
from tmkit.errors import TaskPlannerError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.task_planning.sas import Pair, SasOperator, SasTask, Values


def require_controllable(problem: Problem, planner: str) -> None:
    """Raise an error if a task has uncontrollable actions.

    Args:
        problem: the task.
        planner: name of a planner that does not plan against them.

    Raises:
        TaskPlannerError: if the domain has such actions.
    """
    names = [action.name for action in problem.domain.uncontrollable_actions]
    if names:
        message = (
            f"{planner} does not plan against uncontrollable actions, such as '{names[0]}';"
            " tmkit.task_planning.FastDownward does"
        )
        raise TaskPlannerError(message, command=(), output="")


@dataclass(frozen=True)
class Defeat:
    """An uncontrollable action after which there is no plan.

    Attributes:
        action: the ground action.
        context: the values at which it can happen and leads to a state without a plan.
        is_proved: whether delete relaxation proves that there is no plan after it.
    """

    action: GroundAction
    context: tuple[Pair, ...]
    is_proved: bool


class UncontrollableActions:
    """The uncontrollable actions of one task.

    Args:
        task: the task, complete.
    """

    def __init__(self, task: SasTask) -> None:
        self._task = task
        self._operators = task.uncontrollable
        self._search = replace(task, operators=self._operators).search
        self._basic = [number for number, var in enumerate(task.variables) if var.layer < 0]
        self.actions = tuple(task.action_of(operator.name) for operator in self._operators)
        """Ground action of each operator."""

    def successors(self, values: Values) -> list[tuple[int, Values]]:
        """Return the operators that can happen in a state, with the values after them."""
        return [
            (number, self._search.apply(number, values))
            for number in self._search.applicable(values)
        ]

    def defeat(self, number: int, before: Values, after: Values) -> Defeat:
        """Return the most general context that is known in which an operator defeats every plan.

        The time is linear in the variables times the operators of the task.

        Args:
            number: the operator.
            before: the values at which it happens.
            after: the values after it, from which there is no plan.
        """
        lost = {(variable, after[variable]) for variable in self._basic if after[variable] >= 0}
        is_proved = not self._is_relaxed_reachable(lost)
        operator = self._operators[number]
        if is_proved:
            lost = self._generalize(lost, {effect.variable for effect in operator.effects})
        return Defeat(self.actions[number], self._regress(operator, lost, before), is_proved)

    def _generalize(self, lost: set[Pair], changed: set[int]) -> set[Pair]:
        """Remove values as long as delete relaxation proves that the goal is unreachable.

        Args:
            lost: the values of a state without a plan.
            changed: variables whose values are not removed, because the operator sets them.
        """
        for pair in sorted(lost):
            if pair[0] not in changed and not self._is_relaxed_reachable(lost - {pair}):
                lost = lost - {pair}
        return lost

    def _is_relaxed_reachable(self, values: Iterable[Pair]) -> bool:
        """Return whether the goal is reachable if facts are never deleted.

        Variables without a given value have all values that do not imply the goal. The goal does
        not hold in the state before the operator, which does not change these variables. Derived
        variables have their default.
        """
        task = self._task
        fixed = {
            **dict(values),
            **{v: task.init[v] for v, var in enumerate(task.variables) if var.layer >= 0},
        }
        reached = {
            (variable, value)
            for variable, description in enumerate(task.variables)
            for value in range(len(description.values))
            if fixed.get(variable, value) == value
            and (variable in fixed or (variable, value) not in self._goal_values)
        }
        remaining = self._rules
        while not reached.issuperset(task.goal):
            check_time()
            waiting = []
            for conditions, added in remaining:
                if reached.issuperset(conditions):
                    reached.add(added)
                else:
                    waiting.append((conditions, added))
            if len(waiting) == len(remaining):
                return False
            remaining = waiting
        return True

    @cached_property
    def _rules(self) -> list[tuple[frozenset[Pair], Pair]]:
        """Conditions and effect of each rule of the relaxation, from operators and axioms."""
        rules = [
            (
                frozenset({*operator.preconditions, *effect.conditions}),
                (effect.variable, effect.after),
            )
            for operator in self._task.operators
            for effect in operator.effects
        ]
        rules += [
            (frozenset(axiom.conditions), (axiom.variable, axiom.after))
            for axiom in self._task.axioms
        ]
        return rules

    @cached_property
    def _goal_values(self) -> frozenset[Pair]:
        """Values of basic variables that imply the goal by axioms without negation."""
        axioms = [
            (frozenset(rule.conditions), (rule.variable, rule.after)) for rule in self._task.axioms
        ]

        def implies_goal(pair: Pair) -> bool:
            implied, size = {pair}, 0
            while len(implied) > size:
                size = len(implied)
                implied.update(fact for conditions, fact in axioms if conditions <= implied)
            return implied.issuperset(self._task.goal)

        return frozenset(
            (variable, value)
            for variable in self._basic
            for value in range(len(self._task.variables[variable].values))
            if implies_goal((variable, value))
        )

    def _regress(self, operator: SasOperator, lost: set[Pair], before: Values) -> tuple[Pair, ...]:
        """Return the values before an operator that imply the lost ones after it."""
        is_plain = not any(effect.conditions for effect in operator.effects) and all(
            self._task.variables[variable].layer < 0 for variable, _ in operator.preconditions
        )
        if not is_plain:
            return tuple((v, before[v]) for v in self._basic if before[v] >= 0)
        changed = {effect.variable for effect in operator.effects}
        unchanged = {pair for pair in lost if pair[0] not in changed}
        return tuple(sorted({*operator.preconditions, *unchanged}))
