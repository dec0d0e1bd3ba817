"""Validation and reordering of task plans.

* :func:`validate_task_plan` applies the actions in order. The result has the applied steps, the
  unmet parts of a precondition, and the unmet parts of the goal.
* :func:`schedule_fault` follows PDDL 2.1 (M. Fox, D. Long, JAIR 2003). Starts and ends of actions
  are events in the order of time, with the timed conditions and effects as written. Events at one
  instant are evaluated in the state before it.
* :func:`interference` returns the pairs of actions whose order is fixed.
* :func:`interleave_agents` lets agents take turns, and :func:`balance_loads` distributes actions
  equally.

Invariants: validation shares nothing with planners and schedulers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tmkit._support.results import Result, ValidationStatus
from tmkit.errors import TaskError
from tmkit.pddl.evaluation import Interpretation, describe_failure
from tmkit.pddl.formulas import (
    Add,
    Atom,
    ChangeNumber,
    Delete,
    Effect,
    Fact,
    Formula,
    FunctionTerm,
    GroundAction,
    Number,
    Timing,
    When,
    is_variable,
)
from tmkit.pddl.model import Domain, Metric, Problem
from tmkit.pddl.state import State
from tmkit.pddl.substitution import subtrees

SEPARATION = 0.001
"""Time between a change by one action and the use or change of the same fact by another [s]."""

_MIN_SEPARATION = 0.5 * SEPARATION
"""Time from which two events are at different instants [s]."""

_DURATION_TOLERANCE = 1e-9
"""Largest error of a duration in a schedule [s]."""

_MIN_SAVING = 1e-6
"""Saving of effort from which agents exchange tours."""

_Timed = tuple[Timing, dict[str, str]]
"""Timing of a ground action, and the values of its parameters."""


@dataclass(frozen=True, slots=True)
class TimedAction:
    """Action with its start and its duration, as ``0.000: (drive a b) [5.000]``."""

    start: float
    action: GroundAction
    duration: float

    @property
    def end(self) -> float:
        """End of the action."""
        return self.start + self.duration

    def __str__(self) -> str:
        return f"{self.start:.3f}: {self.action} [{self.duration:.3f}]"


def action_timing(
    problem: Problem, action: GroundAction
) -> tuple[Timing | None, dict[str, str], float]:
    """Return the timing of a ground action, the values of its parameters, and its duration.

    Args:
        problem: task with the values of functions in the initial state.
        action: ground action.

    Returns:
        ``None`` and a duration of 0 in place of the timing for an action without one.

    Raises:
        TaskError: if the action is invalid, or its duration is undefined or negative.
    """
    schema, binding = problem.binding_of(action)
    if schema.timing is None:
        return None, binding, 0.0
    duration = Interpretation(problem, problem.init).value(schema.timing.duration, binding)
    if duration is None or duration < 0.0:
        reason = "has no value" if duration is None else f"is below zero: {duration:g}"
        raise problem.error(f"the duration of {action} {reason}")
    return schema.timing, binding, duration


def schedule_fault(problem: Problem, schedule: Iterable[TimedAction]) -> str:
    """Return the reason that a schedule does not lead to the goal, an empty string if it does.

    Args:
        problem: task with the initial state and the goal.
        schedule: actions in any order.
    """
    actions = tuple(schedule)
    try:
        parts = [_timed_parts_of(problem, action) for action in actions]
    except TaskError as error:
        return str(error.data["reason"])
    # an event is the end of an action by its number, or its start by the complement
    events: list[tuple[float, int]] = []
    for number, action in enumerate(actions):
        events += [(action.start, ~number), (action.end, number)]
    events.sort()
    next_times = [*(time for time, _ in events[1:]), math.inf]

    state, running = problem.init, dict[int, None]()
    instant_time = -1.0
    instant, changed = Interpretation(problem, state), set[object]()
    for (time, event), next_time in zip(events, next_times, strict=False):
        is_end = event >= 0
        number = event if is_end else ~event
        place = f"{time:.3f}: {actions[number].action}"
        timing, binding = parts[number]
        condition = timing.at_end if is_end else timing.at_start

        # Check the condition at the start of the instant and now.
        current = Interpretation(problem, state)
        if time - instant_time >= _MIN_SEPARATION:
            instant, changed, instant_time = current, set(), time
        if failures := instant.failures(condition, binding) or current.failures(condition, binding):
            return f"{place}: {_describe(failures)}"

        # Apply the effect.
        change = current.change(timing.end if is_end else timing.start, binding)
        keys: set[object] = {*change.added, *change.deleted, *change.values}
        if keys & changed:
            return f"{place} changes what another changes at the same time"
        changed |= keys
        state = change.apply_to(state)
        if is_end:
            running.pop(number, None)
        else:
            running[number] = None

        # Check the conditions of running actions at the end of the instant.
        if next_time - instant_time < _MIN_SEPARATION:
            continue
        result = Interpretation(problem, state)
        for other in running:
            other_timing, other_binding = parts[other]
            if failures := result.failures(other_timing.over_all, other_binding):
                return f"{place} during {actions[other].action}: {_describe(failures)}"
    failures = Interpretation(problem, state).failures(problem.goal)
    return f"the goal is not reached: {_describe(failures)}" if failures else ""


def _timed_parts_of(problem: Problem, timed_action: TimedAction) -> _Timed:
    """Return the timing of an action, with all parts at the start for one without a duration.

    Raises:
        TaskError: if the action is invalid, or its start or duration is wrong.
    """
    timing, binding, duration = action_timing(problem, timed_action.action)
    has_duration = abs(duration - timed_action.duration) <= _DURATION_TOLERANCE
    if timed_action.start < 0.0 or not has_duration:
        reason = f"{timed_action} does not begin at 0 or later, or does not take {duration:g}"
        raise problem.error(reason)
    if timing is None:
        schema, _ = problem.binding_of(timed_action.action)
        timing = Timing(Number(0.0), at_start=schema.precondition, start=schema.effect)
    return timing, binding


def _describe(failures: tuple[Formula, ...]) -> str:
    return "; ".join(map(describe_failure, failures))


def interference(domain: Domain, actions: Sequence[GroundAction]) -> list[frozenset[int]]:
    """Return the indices of earlier actions with which each action must not change places.

    Two actions interfere if one changes a fact that the other needs, or both change it in different
    ways. A derived predicate counts as all predicates that it follows from, and a quantified
    variable as all objects.
    """
    dependencies = {
        axiom.predicate: {atom.predicate for atom in _atoms(axiom.condition)}
        for axiom in domain.axioms
    }
    accesses = [_collect_accesses(domain, action, dependencies) for action in actions]
    return [
        frozenset(i for i in range(j) if _conflict(accesses[i], accesses[j]))
        for j in range(len(actions))
    ]


@dataclass(frozen=True)
class _Accesses:
    """Atoms that an action reads, and atoms that it changes, each with whether it is added."""

    reads: list[Atom]
    writes: list[tuple[Atom, bool]]


def _atoms(tree: object) -> Iterator[Atom]:
    yield from (part for part in subtrees(tree) if isinstance(part, Atom))  # type: ignore[arg-type]


def _function_terms(tree: object) -> Iterator[FunctionTerm]:
    yield from (part for part in subtrees(tree) if isinstance(part, FunctionTerm))  # type: ignore[arg-type]


def _collect_accesses(
    domain: Domain, action: GroundAction, dependencies: dict[str, set[str]]
) -> _Accesses:
    schema = domain.action(action.name)
    binding = dict(zip((p.name for p in schema.parameters), action.arguments, strict=True))

    def ground(atom: Atom) -> Atom:
        return Atom(atom.predicate, tuple(binding.get(term, term) for term in atom.terms))

    # Collect conditions and effects.
    conditions: list[Formula] = [schema.precondition]
    effects: list[Effect] = [schema.effect]
    timing = schema.timing
    if timing is not None:
        conditions = [timing.at_start, timing.over_all, timing.at_end]
        effects = [timing.start, timing.end]
    parts = [part for effect in effects for part in subtrees(effect)]
    conditions += [part.condition for part in parts if isinstance(part, When)]
    changes = [part for part in parts if isinstance(part, ChangeNumber)]

    # Collect the atoms that the action reads; "=NAME" stands for a numeric function.
    reads = [ground(atom) for condition in conditions for atom in _atoms(condition)]
    for tree in (*conditions, *changes):
        reads += [Atom(f"={term.name}") for term in _function_terms(tree)]
    for atom in reads:  # grows in the loop, until all dependencies are in it
        names = sorted(dependencies.get(atom.predicate, ()))
        reads += [Atom(name) for name in names if Atom(name) not in reads]

    # Collect the atoms that the action changes; a number counts as both added and deleted.
    writes = [
        (ground(part.atom), isinstance(part, Add))
        for part in parts
        if isinstance(part, Add | Delete)
    ]
    for change in changes:
        writes += [(Atom(f"={change.term.name}"), is_added) for is_added in (False, True)]
    return _Accesses(reads, writes)


def _conflict(first: _Accesses, second: _Accesses) -> bool:
    return (
        any(_may_unify(a, b) for a in first.reads for b, _ in second.writes)
        or any(_may_unify(a, b) for a, _ in first.writes for b in second.reads)
        or any(_may_unify(a, b) and x != y for a, x in first.writes for b, y in second.writes)
    )


def _may_unify(first: Atom, second: Atom) -> bool:
    """Return whether two atoms may stand for one fact.

    A variable stands for any object, and an atom without terms for any fact of its predicate.
    """
    if first.predicate != second.predicate:
        return False
    pairs = zip(first.terms, second.terms, strict=False)
    return all(a == b or is_variable(a) or is_variable(b) for a, b in pairs)


def interleave_agents(
    problem: Problem,
    actions: Sequence[GroundAction],
    agents: Sequence[str],
    *,
    is_allowed: Callable[[GroundAction, State], bool] = lambda *_: True,
    ranks: Sequence[int] | None = None,
) -> tuple[GroundAction, ...]:
    """Return a plan in which agents take turns, or the same plan if no such order is allowed.

    An agent continues while its facts differ from those of the initial state, as an arm that holds
    an object. The next action of an agent is the one of the smallest rank.

    Args:
        problem: task that the plan solves.
        actions: the plan.
        agents: objects that act.
        is_allowed: function that returns whether an action is allowed in a state.
        ranks: priorities of the actions. Defaults to their order.
    """
    ranks = ranks or range(len(actions))
    predecessors = interference(problem.domain, actions)
    agents_of = [[agent for agent in agents if agent in action.arguments] for action in actions]

    def is_working(agent: str, state: State) -> bool:
        return _facts_of(agent, state) != _facts_of(agent, problem.init)

    order: list[int] = []
    state, counts = problem.init, dict.fromkeys(agents, 0)
    while len(order) < len(actions):
        working = {agent for agent in agents if is_working(agent, state)}
        candidates = [
            (
                not working.intersection(agents_of[i]),
                max((counts[agent] for agent in agents_of[i]), default=0),
                ranks[i],
                i,
            )
            for i in range(len(actions))
            if i not in order and predecessors[i] <= set(order) and is_allowed(actions[i], state)
        ]
        if not candidates:
            return tuple(actions)
        index = min(candidates)[-1]
        state = problem.apply(state, actions[index])
        counts.update({agent: counts[agent] + 1 for agent in agents_of[index]})
        order.append(index)
    return tuple(actions[i] for i in order)


def _facts_of(agent: str, state: State) -> frozenset[Fact]:
    return frozenset(fact for fact in state if agent in fact.arguments)


@dataclass(frozen=True)
class _Transfer:
    """Transfer of a tour, which is a list of indices of actions, from one agent to another."""

    tour: list[int]
    giver: str
    taker: str


def balance_loads(
    problem: Problem,
    actions: Sequence[GroundAction],
    agents: Sequence[str],
    *,
    is_allowed: Callable[[GroundAction, State], bool],
    effort: Callable[[Sequence[GroundAction], str], float],
) -> tuple[GroundAction, ...]:
    """Return an allowed plan at no higher cost in which agents do equally many actions if possible.

    A *tour* is a sequence of actions of one agent alone, after which its facts are those of the
    initial state again. Tours move from the busiest to the idlest agent, the one with the largest
    saving of effort first. Then two agents exchange tours of equal length if that reduces their
    effort together.

    Args:
        problem: task that the plan solves.
        actions: the plan.
        agents: objects that act.
        is_allowed: function that returns whether an action is allowed in a state.
        effort: function that returns the effort of actions by an agent.
    """
    plan = list(actions)
    while True:
        improved = _transfer_tours(problem, plan, agents, is_allowed=is_allowed, effort=effort)
        if improved is None:
            return tuple(plan)
        plan = improved


def _transfer_tours(
    problem: Problem,
    plan: list[GroundAction],
    agents: Sequence[str],
    *,
    is_allowed: Callable[[GroundAction, State], bool],
    effort: Callable[[Sequence[GroundAction], str], float],
) -> list[GroundAction] | None:
    """Return the plan after the best transfer or exchange of tours, ``None`` if none is valid."""
    validation = validate_task_plan(problem, plan)
    tours = {agent: _tours(plan, validation.states, agent, agents) for agent in agents}
    loads = {agent: sum(agent in action.arguments for action in plan) for agent in agents}
    busiest, idlest = max(agents, key=loads.__getitem__), min(agents, key=loads.__getitem__)

    def saving(transfers: tuple[_Transfer, ...]) -> float:
        total = 0.0
        for transfer in transfers:
            tour = [plan[i] for i in transfer.tour]
            total += effort(tour, transfer.giver) - effort(tour, transfer.taker)
        return total

    moves = [
        (_Transfer(tour, busiest, idlest),)
        for tour in tours[busiest]
        if loads[busiest] - loads[idlest] > len(tour)
    ]
    exchanges = [
        (_Transfer(tour, first, second), _Transfer(other_tour, second, first))
        for first, second in itertools.combinations(agents, 2)
        for tour in tours[first]
        for other_tour in tours[second]
        if len(tour) == len(other_tour)
    ]
    exchanges = [exchange for exchange in exchanges if saving(exchange) > _MIN_SAVING]
    for transfers in (
        *sorted(moves, key=saving, reverse=True),
        *sorted(exchanges, key=saving, reverse=True),
    ):
        candidate = list(plan)
        for transfer in transfers:
            for i in transfer.tour:
                arguments = tuple(
                    transfer.taker if name == transfer.giver else name for name in plan[i].arguments
                )
                candidate[i] = GroundAction(plan[i].name, arguments)
        result = validate_task_plan(problem, candidate)
        is_as_good = result.is_valid and result.cost <= validation.cost
        if is_as_good and all(map(is_allowed, candidate, result.states)):
            return candidate
    return None


def _tours(
    actions: Sequence[GroundAction], states: Sequence[State], agent: str, agents: Sequence[str]
) -> list[list[int]]:
    """Return the tours of an agent alone, each as indices of actions.

    A tour begins where the facts of the agent are those of the initial state.
    """
    facts = [_facts_of(agent, state) for state in states]
    tours: list[list[int]] = []
    for i, action in enumerate(actions):
        if agent in action.arguments:
            if facts[i] == facts[0] or not tours:
                tours.append([])
            tours[-1].append(i)
    other_agents = set(agents) - {agent}
    return [
        tour for tour in tours if not any(other_agents & set(actions[i].arguments) for i in tour)
    ]


@dataclass(frozen=True)
class TaskPlanValidation(Result):
    """Result of the execution of a task plan.

    Attributes:
        is_valid: whether every step is applicable and the goal holds at the end.
        steps: the plan.
        states: initial state, and the state after each executed step.
        failed_step: index of the first step that is not applicable, ``None`` if all are.
        failures: ground parts of the precondition of that step that do not hold. If all steps are
            executed, ground parts of the goal that do not hold.
        message: reason that the plan is not valid, empty if it is.
        cost: cost of the executed steps by the metric of the problem.
        costs: cost of each executed step.
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
        """Validation status of the plan."""
        return ValidationStatus.of(self.is_valid)

    def __repr__(self) -> str:
        reason = f", {self.message}" if self.message else ""
        return (
            f"TaskPlanValidation({self.status.value}, {len(self.steps)} steps, cost"
            f" {self.cost:g}{reason})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the validation as plain values, without its states."""
        values = super().to_dict()
        del values["states"]
        return values

    @property
    def final_state(self) -> State:
        """State after the last executed step."""
        return self.states[-1]


def validate_task_plan(problem: Problem, steps: Iterable[GroundAction]) -> TaskPlanValidation:
    """Execute a plan from the initial state of a problem.

    Args:
        problem: task with the initial state and the goal.
        steps: the plan. An unknown action or wrong arguments fail the step, without an error.
    """
    plan, states = tuple(steps), [problem.init]
    costs: list[float] = []

    def make_result(
        message: str, failures: tuple[Formula, ...], failed_step: int | None
    ) -> TaskPlanValidation:
        return TaskPlanValidation(
            not message,
            plan,
            tuple(states),
            failed_step,
            failures,
            message,
            sum(costs),
            tuple(costs),
        )

    for index, step in enumerate(plan):
        place = f"step {index + 1} of {len(plan)}, {step}"
        try:
            schema, binding = problem.binding_of(step)
        except TaskError as error:
            return make_result(f"{place}: {error.data['reason']}", (), index)
        if problem.domain.is_uncontrollable(schema.name):
            return make_result(f"{place}: only the world performs this action", (), index)
        interpretation = Interpretation(problem, states[-1])
        if failures := interpretation.failures(schema.precondition, binding):
            return make_result(f"{place}: {_describe(failures)}", failures, index)
        change = interpretation.change(schema.effect, binding)
        cost = change.cost if problem.metric is Metric.TOTAL_COST else 1.0
        if cost is None:
            reason = "its cost is not defined, because a function in it has no value"
            return make_result(f"{place}: {reason}", (), index)
        if (term := change.find_undefined()) is not None:
            return make_result(f"{place}: it gives {term} no value", (), index)
        states.append(change.apply_to(states[-1]))
        costs.append(cost)
    failures = Interpretation(problem, states[-1]).failures(problem.goal)
    message = f"the goal is not reached: {_describe(failures)}" if failures else ""
    return make_result(message, failures, None)
