"""Cached task plans from any state of a task, under learned constraints.

A task-and-motion search needs a task plan from each state that it reaches, thousands of times. Most
of these plans are suffixes of existing plans, or differ little from the plan of a neighbouring
state. :class:`TaskPlanSource` therefore tries four sources, the cheapest first:

1. the cache, which contains all suffixes of each plan;
2. the plan of the previous state: unchanged, without inapplicable actions, or with other arguments;
3. the core's search (:class:`tmkit._core.TaskSearch`);
4. Fast Downward.

A constraint (:class:`OperatorConstraint`) limits the number of facts from a set that hold before
operators. The capacity of a region, a set of blocking objects and an impossible action have this
form.

If the task has uncontrollable actions, each plan survives them
(:mod:`tmkit.task_planning.uncontrollable`).

Guarantees: each plan is valid from its values under all constraints. Plans depend on the task, the
constraints and the previous calls. They do not depend on a clock, except for the fallback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from tmkit._core import TaskSearch
from tmkit._support.time_limits import check_time
from tmkit.errors import ConfigurationError, TaskPlannerError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.state import State
from tmkit.task_planning.protocol import TaskPlanner, TaskPlanStatus
from tmkit.task_planning.sas import Pair, SasTask, Values
from tmkit.task_planning.spare_objects import ABSENT
from tmkit.task_planning.translated_task import TranslatedTask
from tmkit.task_planning.uncontrollable import Defeat, UncontrollableActions

_SEARCH_WORK = 150_000
"""Number of rule evaluations of the core's A* search; about 1.5 ms."""

_IMPROVEMENT_WORK = 200_000
"""Number of rule evaluations of the search for a cheaper plan."""

AGENDA_WORK = 5_000_000
"""Number of rule evaluations for each goal of the agenda."""

_TRIVIAL = "Atom dummy("
"""Prefix of the values of the variable in a task whose goal always or never holds."""

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
        """Return the constraint that at most ``count`` facts hold after operators that add one."""
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
        task: the task, complete. Plans reach its goal; its initial state is ignored.
        work: largest number of rule evaluations of the core's A* search; for large tasks, a goal
            agenda follows.
        agenda_work: the same for each goal of the agenda.
        fallback: planner for tasks without a plan of the core, such as
            ``FastDownward(core_work=0.0)``; disabled if None.

    Raises:
        ConfigurationError: if the task is not complete.
    """

    def __init__(
        self,
        task: SasTask,
        *,
        work: float = _SEARCH_WORK,
        agenda_work: float = AGENDA_WORK,
        fallback: TaskPlanner[TranslatedTask] | None = None,
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
        self._world = UncontrollableActions(task) if task.uncontrollable else None
        self._policy: dict[Values, int] = {}
        self.defeats: list[Defeat] = []
        """Uncontrollable actions without a plan after them, in the order of their discovery."""
        self.version = 0
        """The number of changes of the constraints; plans of another version may violate one."""
        self.counts: dict[str, int] = defaultdict(int)
        """Number of plans by their origin: cached, reused, adapted, searched, fallback, none."""

    @cached_property
    def actions(self) -> tuple[GroundAction, ...]:
        """Ground action of each operator."""
        return tuple(self.task.action_of(operator.name) for operator in self.task.operators)

    @property
    def constraints(self) -> tuple[OperatorConstraint, ...]:
        """Constraints, in the order in which they were learned."""
        return tuple(self._constraints)

    def values(self, state: State) -> Values:
        """Return the values of a state of basic facts; -1 for a variable without a value."""
        values = list(self._default_values)
        for fact in state:
            pair = self.task.value_of(fact)
            if pair is not None:
                values[pair[0]] = pair[1]
        return self._search.derive(values)

    @cached_property
    def _default_values(self) -> list[int]:
        """Value of each variable that represents none of its facts; -1 if there is none.

        A task whose goal always or never holds has one variable without facts of the problem.
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
        """Add a constraint and clear the cached plans; a known constraint has no effect.

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
        self._search = self._make_search(constraints)
        has_same_proofs = [c for c in constraints if c.is_proved] == [
            c for c in self._constraints if c.is_proved
        ]
        self._constraints = constraints
        self._plans.clear()
        self._policy.clear()
        if not has_same_proofs:
            self._unsolvable.clear()
        self.version += 1

    def _make_search(self, constraints: Iterable[OperatorConstraint]) -> TaskSearch:
        return self.task.search.with_constraints(
            [(c.facts, c.limit, c.operators) for c in constraints]
        )

    def plan(self, values: Values, *, hint: Sequence[int] = ()) -> tuple[int, ...] | None:
        """Return the operators of a plan under all constraints.

        The plan survives the uncontrollable actions of the task.

        Args:
            values: the state to begin in.
            hint: operators of a plan of a state nearby, which is adapted if that suffices.

        Returns:
            None if no plan was found; :meth:`is_unsolvable` returns whether that is a proof.

        Raises:
            ConfigurationError: if a variable has no such value, or there is no operator of the
                hint.
        """
        plan = self._find_plan(values, hint)
        while plan is not None and not self.survives(values, plan):
            plan = self._find_plan(values)
        return plan

    def _find_plan(self, values: Values, hint: Sequence[int] = ()) -> tuple[int, ...] | None:
        """Return a plan that may not survive the uncontrollable actions."""
        if values in self._plans:
            self.counts["cached"] += 1
            return self._plans[values]
        if hint and (plan := self._adapt_plan(values, hint)) is not None:
            return plan
        operators, is_unsolvable, _, _ = self._search.plan(
            values, self.task.goal, self._work, _IMPROVEMENT_WORK, self._agenda_work
        )
        if operators is not None:
            return self._cache_plan("searched", values, operators)
        if not is_unsolvable and (operators := self._fallback_plan(values)) is not None:
            return self._cache_plan("fallback", values, operators)
        if is_unsolvable and self._has_only_proofs():
            self._unsolvable[values] = True
        self.counts["none"] += 1
        self._plans[values] = None
        return None

    def survives(self, values: Values, plan: Sequence[int]) -> bool:
        """Return whether a plan survives the uncontrollable actions.

        If not, no later plan passes through the state in which the world defeats this one.

        Args:
            values: the state to begin in.
            plan: operators of a plan from it.
        """
        if self._world is None:
            return True
        policy: dict[Values, int] = {}
        pending: list[tuple[Values, Sequence[int]]] = [(values, plan)]
        while pending:
            state, operators = pending.pop()
            for operator in operators:
                if state in self._policy or state in policy:
                    break
                check_time()
                policy[state] = operator
                for number, after in self._world.successors(state):
                    recovery = self._find_plan(after)
                    if recovery is None:
                        self._learn_defeat(self._world, number, state, after)
                        return False
                    pending.append((after, recovery))
                state = self.apply(operator, state)
        self._policy |= policy
        return True

    def _learn_defeat(
        self, world: UncontrollableActions, number: int, before: Values, after: Values
    ) -> None:
        """Forbid all operators where an uncontrollable action defeats every plan."""
        defeat = world.defeat(number, before, after)
        is_proved = defeat.is_proved or self.is_unsolvable(after)
        self.defeats.append(defeat)
        reason = f"{defeat.action} leads to a state without a plan"
        context = set(defeat.context)
        impossible: list[int] = []
        possible: list[int] = []
        for operator, description in enumerate(self.task.operators):
            is_impossible = context.issubset(description.preconditions)
            (impossible if is_impossible else possible).append(operator)
        constraint = OperatorConstraint.context(
            defeat.context, possible, is_proved=is_proved, reason=reason
        )
        # Heuristics ignore contexts, but not operators that never apply.
        never = OperatorConstraint((), -1, tuple(impossible), is_proved=is_proved, reason=reason)
        self._constrain([*self._constraints, constraint, never])

    def is_unsolvable(self, values: Values) -> bool:
        """Return whether no plan from the values provably satisfies the proved constraints.

        False proves nothing.
        """
        if values not in self._unsolvable:
            search = self._make_search(c for c in self._constraints if c.is_proved)
            self._unsolvable[values] = search.plan(values, self.task.goal, self._work, 0)[1]
        return self._unsolvable[values]

    def _has_only_proofs(self) -> bool:
        return all(constraint.is_proved for constraint in self._constraints)

    def _cache_plan(self, origin: str, values: Values, plan: Sequence[int]) -> tuple[int, ...]:
        """Cache a plan and those of its suffixes that are shorter than the cached plans."""
        path = self._search.follow(values, self.task.goal, plan)
        if path is None:
            raise TaskPlannerError("a plan of the core is not valid", command=(), output="")
        self.counts[origin] += 1
        operators, states = tuple(path[0]), path[1]
        for index, state in enumerate(states):
            cached_plan = self._plans.get(state)
            if cached_plan is None or len(cached_plan) > len(operators) - index:
                self._plans[state] = operators[index:]
        best = self._plans[values]
        assert best is not None
        return best

    def _adapt_plan(self, values: Values, hint: Sequence[int]) -> tuple[int, ...] | None:
        """Return the hint unchanged, without inapplicable operators, or with other arguments."""
        for omits in (False, True):
            path = self._search.follow(values, self.task.goal, hint, omits)
            if path is not None:
                return self._cache_plan("reused", values, path[0])
        operators = self._replace_arguments(values, hint)
        return None if operators is None else self._cache_plan("adapted", values, operators)

    def _replace_arguments(self, values: Values, hint: Sequence[int]) -> list[int] | None:
        """Replace each inapplicable operator by one of its action with the same first argument."""
        operators: list[int] = []
        for number in hint:
            if self.is_goal(values):
                break
            if not self.is_applicable(number, values):
                similar = [
                    other
                    for other in self._similar_operators[self._key(number)]
                    if self.is_applicable(other, values)
                ]
                if not similar:
                    continue
                number = min(similar, key=partial(self._difference, number))
            operators.append(number)
            values = self.apply(number, values)
        return operators if self.is_goal(values) else None

    @cached_property
    def _similar_operators(self) -> dict[tuple[str, ...], list[int]]:
        """Operators by action name and first argument."""
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
        """Return a plan of Fast Downward if it satisfies all constraints, otherwise None."""
        task = self.task
        if self._fallback is None or not isinstance(task, TranslatedTask):
            return None
        rerooted = task.at_state(self._state(values))
        if rerooted is None:
            return None
        constrained = self._forbid_contexts(replace(rerooted, uncontrollable=()))
        result = self._fallback.search(constrained, time_limit=_FALLBACK_SECONDS)
        if result.status is TaskPlanStatus.UNSOLVABLE and self._has_only_proofs():
            self._unsolvable[values] = True
        if result.status is not TaskPlanStatus.SOLVED:
            return None
        operators: list[int] = []
        for action in result.steps:
            number = next(
                (k for k in self._operators_of_action[action] if self.is_applicable(k, values)),
                None,
            )
            if number is None:
                return None
            operators.append(number)
            values = self.apply(number, values)
        return operators if self.is_goal(values) else None

    @cached_property
    def _operators_of_action(self) -> dict[GroundAction, list[int]]:
        """Operators of each ground action."""
        numbers: dict[GroundAction, list[int]] = defaultdict(list)
        for number, action in enumerate(self.actions):
            numbers[action].append(number)
        return numbers

    def policy(self, values: Values, plan: Sequence[int]) -> dict[State, GroundAction]:
        """Return the action of each state that a plan and uncontrollable actions lead to.

        Args:
            values: the state to begin in.
            plan: the latest plan from it.
        """
        policy = dict(self._policy)
        for operator in plan:
            policy.setdefault(values, operator)
            values = self.apply(operator, values)
        return {self._state(state): self.actions[operator] for state, operator in policy.items()}

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

    def _forbid_contexts(self, task: TranslatedTask) -> TranslatedTask:
        """Return the task with the context constraints; capacities are checked afterwards."""
        for constraint in self._constraints:
            if constraint.limit != len(constraint.facts) - 1:
                continue
            facts = [fact for pair in constraint.facts if (fact := task.fact_of(pair)) is not None]
            if len(facts) == len(constraint.facts):
                for number in constraint.operators:
                    task = task.forbid(self.actions[number], facts)
        return task
