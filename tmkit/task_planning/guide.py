"""Task plans from any state of a task, cached, under constraints that are learned.

A task-and-motion search needs a task plan from each state that it reaches, thousands of times. Most
of these plans are suffixes of plans that exist, or a plan of a neighbouring state with small
changes. So :class:`TaskPlanSource` looks for a plan in four places, the cheapest first. The first
is its cache, which has all suffixes of each plan. The second is the plan of the state before: as it
is, without the actions that cannot be applied, or with other arguments. The others are the core's
search (:class:`tmkit._core.TaskSearch`) and Fast Downward.

Constraints (:class:`OperatorConstraint`) have one form: operators apply only while at most so many
of some facts hold. The capacity of a region, a set of blocking objects and an impossible action are
of this form.

Invariants: all plans are valid from their values under all constraints; plans depend on the task,
the constraints and the calls before, never on a clock, unless the fallback is reached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from tmkit._core import TaskSearch
from tmkit.errors import ConfigurationError, TaskPlannerError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.state import State
from tmkit.task_planning.fast_downward import FastDownward
from tmkit.task_planning.protocol import TaskPlanStatus
from tmkit.task_planning.sas import Pair, SasTask
from tmkit.task_planning.spare_objects import ABSENT
from tmkit.task_planning.translated_task import TranslatedTask

Values = tuple[int, ...]
"""The value of each variable; -1 where a state has none."""

_SEARCH_WORK = 150_000
"""Looks at rules by the core's A* search; about 1.5 ms."""

_IMPROVEMENT_WORK = 200_000
"""Looks at rules for a cheaper plan."""

AGENDA_WORK = 5_000_000
"""Looks at rules for each goal of the agenda."""

_FALLBACK = FastDownward(core_work=0.0)
"""Planner of tasks for which the core finds no plan."""

_TRIVIAL = "Atom dummy("
"""Beginning of the values of the variable of a task whose goal holds always, or never."""

_FALLBACK_SECONDS = 10.0
"""Time limit of the fallback [s]."""


@dataclass(frozen=True)
class OperatorConstraint:
    """A bound on the number of facts that hold before operators.

    Attributes:
        facts: pairs (variable, value) of variables that are not derived.
        limit: the greatest number of these facts that may hold before an operator; -1 if it may
            never be applied.
        operators: numbers of the operators.
        is_proved: whether every executable plan satisfies it. Others are assumptions, which
            :meth:`TaskPlanSource.lift` removes.
        reason: the cause, for messages.
    """

    facts: tuple[Pair, ...]
    limit: int
    operators: tuple[int, ...]
    is_proved: bool = field(default=False, kw_only=True)
    reason: str = field(default="", kw_only=True)

    @classmethod
    def capacity(
        cls,
        facts: Iterable[Pair],
        count: int,
        operators: Iterable[int],
        *,
        is_proved: bool = False,
        reason: str = "",
    ) -> OperatorConstraint:
        """Return the constraint that at most ``count`` of the facts hold after operators that add one of them."""
        return cls(tuple(facts), count - 1, tuple(operators), is_proved=is_proved, reason=reason)

    @classmethod
    def context(
        cls,
        facts: Iterable[Pair],
        operators: Iterable[int],
        *,
        is_proved: bool = False,
        reason: str = "",
    ) -> OperatorConstraint:
        """Return the constraint that the operators never apply while all of the facts hold."""
        unique = tuple(dict.fromkeys(facts))
        return cls(unique, len(unique) - 1, tuple(operators), is_proved=is_proved, reason=reason)


class TaskPlanSource:
    """Task plans from any state of one task.

    Args:
        task: the task, complete. Its plans reach its goal, whatever its initial state.
        work: number of looks at rules that the core's A* search may take; for large tasks a goal
            agenda follows.
        agenda_work: the same for each goal of the agenda.
        fallback: the planner where the core finds no plan; None for none.

    Raises:
        ConfigurationError: if the task is not complete.
    """

    def __init__(
        self,
        task: SasTask,
        *,
        work: float = _SEARCH_WORK,
        agenda_work: float = AGENDA_WORK,
        fallback: FastDownward | None = _FALLBACK,
    ) -> None:
        if not task.is_complete:
            raise ConfigurationError(
                "the task is incomplete: its translation ran out of time or memory"
            )
        self.task = task
        self._work = int(work)
        self._agenda_work = int(agenda_work)
        self._fallback = fallback
        self._search = task.search
        self._constraints: list[OperatorConstraint] = []
        self._plans: dict[Values, tuple[int, ...] | None] = {}
        self._unsolvable: dict[Values, bool] = {}
        self.version = 0
        """The number of changes of the constraints; plans of another version may violate one."""
        self.counts: dict[str, int] = defaultdict(int)
        """The number of plans by their origin: cached, reused, adapted, searched, fallback, none."""

    @cached_property
    def actions(self) -> tuple[GroundAction, ...]:
        """The ground action of each operator."""
        return tuple(self.task.action_of(operator.name) for operator in self.task.operators)

    @property
    def constraints(self) -> tuple[OperatorConstraint, ...]:
        """The constraints, in the order in which they were learned."""
        return tuple(self._constraints)

    def values(self, state: State) -> Values:
        """Return the values of a state of basic facts; -1 for a variable of which the state has no value."""
        values = list(self._otherwise)
        for fact in state:
            pair = self.task.value_of(fact)
            if pair is not None:
                values[pair[0]] = pair[1]
        return self._search.derive(values)

    @cached_property
    def _otherwise(self) -> list[int]:
        """The value of each variable that stands for none of its facts; -1 if there is none.

        A task whose goal holds always, or never, has one variable whose values stand for no fact of
        the problem.
        """
        return [
            next(
                (k for k, meaning in enumerate(variable.values) if not meaning.startswith("Atom ")),
                initial if variable.values[0].startswith(_TRIVIAL) else -1,
            )
            for variable, initial in zip(self.task.variables, self.task.init, strict=True)
        ]

    def is_goal(self, values: Values) -> bool:
        """Return whether the goal holds."""
        return all(values[variable] == value for variable, value in self.task.goal)

    def is_applicable(self, operator: int, values: Values) -> bool:
        """Return whether an operator can be applied under all constraints."""
        return self._search.is_applicable(operator, values)

    def applicable(self, values: Values) -> list[int]:
        """Return the numbers of the operators that can be applied under all constraints."""
        return self._search.applicable(values)

    def apply(self, operator: int, values: Values) -> Values:
        """Return the values after an operator."""
        return self._search.apply(operator, values)

    def forbid(self, constraint: OperatorConstraint) -> None:
        """Add a constraint; the plans before are forgotten. One that is known already has no effect.

        Raises:
            ConfigurationError: if a variable, value or operator does not exist, or a fact is
                derived.
        """
        if constraint in self._constraints:
            return
        self._constrain([*self._constraints, constraint])

    def lift(self) -> bool:
        """Remove the constraints that are not proved; return whether there were any."""
        proved = [constraint for constraint in self._constraints if constraint.is_proved]
        if len(proved) == len(self._constraints):
            return False
        self._constrain(proved)
        return True

    def _constrain(self, constraints: list[OperatorConstraint]) -> None:
        self._search = self._searched_under(constraints)
        has_same_proofs = [c for c in constraints if c.is_proved] == [
            c for c in self._constraints if c.is_proved
        ]
        self._constraints = constraints
        self._plans.clear()
        if not has_same_proofs:
            self._unsolvable.clear()
        self.version += 1

    def _searched_under(self, constraints: Iterable[OperatorConstraint]) -> TaskSearch:
        return self.task.search.with_constraints(
            [(c.facts, c.limit, c.operators) for c in constraints]
        )

    def plan(self, values: Values, *, hint: Sequence[int] = ()) -> tuple[int, ...] | None:
        """Return the operators of a plan under all constraints.

        Args:
            values: the state to begin in.
            hint: operators of a plan of a state nearby, which is adapted if that suffices.

        Returns:
            None if no plan was found; :meth:`is_unsolvable` returns whether that is a proof.

        Raises:
            ConfigurationError: if a variable has no such value, or there is no operator of the
                hint.
        """
        if values in self._plans:
            self.counts["cached"] += 1
            return self._plans[values]
        if hint and (plan := self._adapted(values, hint)) is not None:
            return plan
        found, is_unsolvable, _, _ = self._search.plan(
            values, self.task.goal, self._work, _IMPROVEMENT_WORK, self._agenda_work
        )
        if found is not None:
            return self._keep("searched", values, found)
        if not is_unsolvable and (found := self._fallback_plan(values)) is not None:
            return self._keep("fallback", values, found)
        if is_unsolvable and all(constraint.is_proved for constraint in self._constraints):
            self._unsolvable[values] = True
        self.counts["none"] += 1
        self._plans[values] = None
        return None

    def is_unsolvable(self, values: Values) -> bool:
        """Return whether it is proved that no plan from the values satisfies the proved constraints.

        False proves nothing.
        """
        if values not in self._unsolvable:
            search = self._searched_under(c for c in self._constraints if c.is_proved)
            self._unsolvable[values] = search.plan(values, self.task.goal, self._work, 0)[1]
        return self._unsolvable[values]

    def _keep(self, origin: str, values: Values, plan: Sequence[int]) -> tuple[int, ...]:
        """Cache a plan with all its suffixes, where they are shorter than those that are known."""
        path = self._search.follow(values, self.task.goal, plan)
        if path is None:
            raise TaskPlannerError("a plan of the core is not valid", command=(), output="")
        self.counts[origin] += 1
        operators, states = tuple(path[0]), path[1]
        for index, state in enumerate(states):
            known = self._plans.get(state)
            if known is None or len(known) > len(operators) - index:
                self._plans[state] = operators[index:]
        best = self._plans[values]
        assert best is not None
        return best

    def _adapted(self, values: Values, hint: Sequence[int]) -> tuple[int, ...] | None:
        """Return the hint as it is, without what cannot be applied, or with other arguments."""
        for omits in (False, True):
            path = self._search.follow(values, self.task.goal, hint, omits)
            if path is not None:
                return self._keep("reused", values, path[0])
        operators = self._with_other_arguments(values, hint)
        return None if operators is None else self._keep("adapted", values, operators)

    def _with_other_arguments(self, values: Values, hint: Sequence[int]) -> list[int] | None:
        """Return the plan with each operator that cannot be applied replaced, by one with the same first argument."""
        operators: list[int] = []
        for number in hint:
            if self.is_goal(values):
                break
            if not self.is_applicable(number, values):
                similar = [
                    other
                    for other in self._similar[self._key(number)]
                    if self.is_applicable(other, values)
                ]
                if not similar:
                    continue
                number = min(similar, key=partial(self._difference, number))
            operators.append(number)
            values = self.apply(number, values)
        return operators if self.is_goal(values) else None

    @cached_property
    def _similar(self) -> dict[tuple[str, ...], list[int]]:
        """The operators of each action with the same first argument."""
        similar: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number in range(len(self.actions)):
            similar[self._key(number)].append(number)
        return similar

    def _key(self, number: int) -> tuple[str, ...]:
        action = self.actions[number]
        return (action.name, *action.arguments[:1])

    def _difference(self, a: int, b: int) -> int:
        """Return the number of arguments in which two operators of one action differ."""
        return sum(
            x != y
            for x, y in zip(self.actions[a].arguments, self.actions[b].arguments, strict=True)
        )

    def _fallback_plan(self, values: Values) -> list[int] | None:
        """Return a plan by Fast Downward, if it satisfies the constraints that it cannot be given."""
        task = self.task
        if self._fallback is None or not isinstance(task, TranslatedTask):
            return None
        moved = task.at_state(self._state(values))
        if moved is None:
            return None
        result = self._fallback.search(self._constrained(moved), time_limit=_FALLBACK_SECONDS)
        if result.status is not TaskPlanStatus.SOLVED:
            return None
        operators: list[int] = []
        for action in result.steps:
            number = next((k for k in self._numbers[action] if self.is_applicable(k, values)), None)
            if number is None:
                return None
            operators.append(number)
            values = self.apply(number, values)
        return operators if self.is_goal(values) else None

    @cached_property
    def _numbers(self) -> dict[GroundAction, list[int]]:
        """The operators of each ground action."""
        numbers: dict[GroundAction, list[int]] = defaultdict(list)
        for number, action in enumerate(self.actions):
            numbers[action].append(number)
        return numbers

    def _state(self, values: Values) -> State:
        """Return the facts that hold."""
        init = self.task.problem.init
        constant = [fact for fact in init if self.task.value_of(fact) is None]
        variable = [
            fact for pair in enumerate(values) if (fact := self.task.fact_of(pair)) is not None
        ]
        return State(
            [*constant, *(fact for fact in variable if fact.predicate != ABSENT)], init.values
        )

    def _constrained(self, task: TranslatedTask) -> TranslatedTask:
        """Return the task with the constraints that name a context; capacities are checked afterwards."""
        for constraint in self._constraints:
            if constraint.limit != len(constraint.facts) - 1:
                continue
            facts = [fact for pair in constraint.facts if (fact := task.fact_of(pair)) is not None]
            if len(facts) == len(constraint.facts):
                for number in constraint.operators:
                    task = task.forbid(self.actions[number], facts)
        return task
