"""Plan validation: action by action, laid out in time, and in other orders.

* :func:`validate_task_plan` applies the actions in order, and tells how many were applied, which
  part of which precondition failed, and which part of the goal does not hold at the end.
* :func:`schedule_fault` follows PDDL 2.1 (M. Fox, D. Long, JAIR 2003): each start and end happens
  in the order of time, on the parts of an action as they were written; what happens at one instant
  sees the state before it.
* :func:`interference` tells which actions of a plan must not change places; :func:`by_turns` and
  :func:`shared` let agents take turns and do equally much.

Invariants: nothing is shared with what makes plans or schedules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tmkit._support.results import Result, ValidationStatus
from tmkit.errors import TaskError
from tmkit.pddl.evaluation import Interpretation, in_words
from tmkit.pddl.formulas import (
    Add,
    Atom,
    ChangeNumber,
    Delete,
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

SEPARATION = 0.001  # time by which what one action changes is before what another needs or changes


@dataclass(frozen=True, slots=True)
class TimedAction:
    """An action with the time of its start and its duration. ``str`` is ``0.000: (drive a b) [5.000]``."""

    start: float
    action: GroundAction
    duration: float

    @property
    def end(self) -> float:
        """The time of its end."""
        return self.start + self.duration

    def __str__(self) -> str:
        return f"{self.start:.3f}: {self.action} [{self.duration:.3f}]"


def action_timing(
    problem: Problem, action: GroundAction
) -> tuple[Timing | None, dict[str, str], float]:
    """Return an action's timing, its parameters' values, and its duration by the values at first, 0 if it has none."""
    schema, binding = problem.binding_of(action)
    if schema.timing is None:
        return None, binding, 0.0
    duration = Interpretation(problem, problem.init).value(schema.timing.duration, binding)
    if duration is None or duration < 0.0:
        what = "has no value" if duration is None else f"is below zero: {duration:g}"
        raise problem.error(f"the duration of {action} {what}")
    return schema.timing, binding, duration


def schedule_fault(problem: Problem, schedule: Iterable[TimedAction]) -> str:
    """Return why a schedule does not lead from the initial state to the goal, in words; empty if it does.

    Args:
        problem: the task.
        schedule: the actions, in any order.
    """
    actions = tuple(schedule)
    parts: list[tuple[Timing, dict[str, str]]] = []
    # the end of an action by its number, its start by the complement
    events: list[tuple[float, int]] = []
    try:
        for number, timed in enumerate(actions):
            timing, binding, duration = action_timing(problem, timed.action)
            if timed.start < 0.0 or abs(duration - timed.duration) > 1e-9:
                return f"{timed} does not begin at 0 or later, or does not take {duration:g}"
            if timing is None:
                schema, _ = problem.binding_of(timed.action)
                timing = Timing(Number(0.0), at_start=schema.precondition, start=schema.effect)
            parts.append((timing, binding))
            events += [(timed.start, ~number), (timed.end, number)]
    except TaskError as error:
        return str(error.data["reason"])
    state, running, last = problem.init, dict[int, None](), -1.0
    instant, changed = Interpretation(problem, state), set[object]()
    events.sort()
    for (time, event), (following, _) in zip(events, [*events[1:], (math.inf, 0)], strict=False):
        number = event if event >= 0 else ~event
        timing, binding = parts[number]
        needed, effect = (
            (timing.at_end, timing.end) if event >= 0 else (timing.at_start, timing.start)
        )
        before = Interpretation(problem, state)
        if time - last >= 0.5 * SEPARATION:
            instant, changed, last = before, set(), time
        if failures := instant.failures(needed, binding) or before.failures(needed, binding):
            return f"{time:.3f}: {actions[number].action}: {_words(failures)}"
        change = before.change(effect, binding)
        touched: set[object] = {*change.added, *change.deleted, *change.values}
        if touched & changed:
            return (
                f"{time:.3f}: {actions[number].action} changes what another changes at the same"
                " time"
            )
        changed |= touched
        state = change.applied(state)
        if event >= 0:
            running.pop(number, None)
        else:
            running[number] = None
        after = Interpretation(problem, state)
        for other in running if following - last >= 0.5 * SEPARATION else ():
            if failures := after.failures(parts[other][0].over_all, parts[other][1]):
                return (
                    f"{time:.3f}: {actions[number].action} during {actions[other].action}:"
                    f" {_words(failures)}"
                )
    failures = Interpretation(problem, state).failures(problem.goal)
    return f"the goal is not reached: {_words(failures)}" if failures else ""


def _words(failures: tuple[Formula, ...]) -> str:
    return "; ".join(map(in_words, failures))


def interference(domain: Domain, actions: Sequence[GroundAction]) -> list[frozenset[int]]:
    """Return for each action the indices of those before it with which it must not change places.

    One changes a fact that the other needs, or both change one. Derived predicates count as all
    predicates that they follow from, quantified variables as all objects.
    """
    below = {
        axiom.predicate: {a.predicate for a in _atoms(axiom.condition)} for axiom in domain.axioms
    }
    facts = [_touched(domain, action, below) for action in actions]
    return [
        frozenset(i for i in range(j) if _interferes(facts[i], facts[j]))
        for j in range(len(actions))
    ]


# what is needed; what is changed, and whether added
_Touched: TypeAlias = tuple[list[Atom], list[tuple[Atom, bool]]]


def _atoms(tree: object) -> Iterator[Atom]:
    yield from (part for part in subtrees(tree) if isinstance(part, Atom))  # type: ignore[arg-type]


def _touched(domain: Domain, action: GroundAction, below: dict[str, set[str]]) -> _Touched:
    schema = domain.action(action.name)
    binding = dict(zip((p.name for p in schema.parameters), action.arguments, strict=True))

    def ground(atom: Atom) -> Atom:
        return Atom(atom.predicate, tuple(binding.get(term, term) for term in atom.terms))

    timing = schema.timing
    needs, effects = [schema.precondition], [schema.effect]
    if timing is not None:
        needs, effects = (
            [timing.at_start, timing.over_all, timing.at_end],
            [timing.start, timing.end],
        )
    parts = [part for effect in effects for part in subtrees(effect)]
    conditions = [*needs, *(part.condition for part in parts if isinstance(part, When))]
    needed = [ground(atom) for condition in conditions for atom in _atoms(condition)]
    numbers = [*conditions, *(part for part in parts if isinstance(part, ChangeNumber))]
    needed += [
        Atom(f"={t.name}")
        for tree in numbers
        for t in subtrees(tree)
        if isinstance(t, FunctionTerm)
    ]
    for atom in needed:
        needed += [
            Atom(name) for name in sorted(below.get(atom.predicate, ())) if Atom(name) not in needed
        ]
    changed = [
        (ground(part.atom), isinstance(part, Add))
        for part in parts
        if isinstance(part, Add | Delete)
    ]
    changed += [
        (Atom(f"={p.term.name}"), is_more)
        for p in parts
        if isinstance(p, ChangeNumber)
        for is_more in (False, True)
    ]
    return needed, changed


def _interferes(first: _Touched, second: _Touched) -> bool:
    (needed, changed), (other_needed, other_changed) = first, second
    return (
        any(_same(atom, other) for atom in needed for other, _ in other_changed)
        or any(_same(atom, other) for atom, _ in changed for other in other_needed)
        or any(_same(a, b) and x != y for a, x in changed for b, y in other_changed)
    )


def _same(first: Atom, second: Atom) -> bool:
    """Return whether two atoms may be about one fact: a variable, or no terms of a predicate that has some, is any."""
    if first.predicate != second.predicate:
        return False
    pairs = zip(first.terms, second.terms, strict=False)
    return all(a == b or is_variable(a) or is_variable(b) for a, b in pairs)


# actions that pass from one agent to another
_Exchange: TypeAlias = tuple[tuple[list[int], str, str], ...]


def by_turns(
    problem: Problem,
    actions: Sequence[GroundAction],
    agents: Sequence[str],
    *,
    is_allowed: Callable[[GroundAction, State], bool] = lambda *_: True,
    ranks: Sequence[int] | None = None,
) -> tuple[GroundAction, ...]:
    """Return a plan in which agents take turns, in an order in which all is allowed; itself if there is none.

    An agent goes on as long as the facts about it are others than at the start: an arm, while it
    holds something. Of the actions that it may go on with, the one of the least of ``ranks`` is
    next; by default the first.
    """
    ranks = ranks or range(len(actions))
    before = interference(problem.domain, actions)
    own = [[agent for agent in agents if agent in action.arguments] for action in actions]

    def facts_of(agent: str, state: State) -> frozenset[Fact]:
        return frozenset(fact for fact in state if agent in fact.arguments)

    done: list[int] = []
    state, busy = problem.init, dict.fromkeys(agents, 0)
    while len(done) < len(actions):
        working = {
            agent for agent in agents if facts_of(agent, state) != facts_of(agent, problem.init)
        }
        ready = [
            (
                not working.intersection(own[i]),
                max((busy[agent] for agent in own[i]), default=0),
                ranks[i],
                i,
            )
            for i in range(len(actions))
            if i not in done and before[i] <= set(done) and is_allowed(actions[i], state)
        ]
        if not ready:
            return tuple(actions)
        chosen = min(ready)[-1]
        state = problem.apply(state, actions[chosen])
        busy.update({agent: busy[agent] + 1 for agent in own[chosen]})
        done.append(chosen)
    return tuple(actions[i] for i in done)


def shared(
    problem: Problem,
    actions: Sequence[GroundAction],
    agents: Sequence[str],
    *,
    is_allowed: Callable[[GroundAction, State], bool],
    effort: Callable[[Sequence[GroundAction], str], float],
) -> tuple[GroundAction, ...]:
    """Return a plan in which agents do equally many actions, as far as all is allowed and it costs no more.

    What an agent does alone until the facts about it are those of the start again may pass from the
    busiest to the idlest agent. The first is that of which ``effort``, a function of actions and an
    agent, falls most. Then two agents exchange what is equally long where that lessens the effort
    of both together.
    """
    found = list(actions)
    while True:
        now = validate_task_plan(problem, found)
        tours = {agent: _tours(found, now.states, agent, agents) for agent in agents}
        loads = {agent: sum(agent in action.arguments for action in found) for agent in agents}
        busy, idle = max(agents, key=loads.__getitem__), min(agents, key=loads.__getitem__)

        def gain(exchange: _Exchange, plan: list[GroundAction] = found) -> float:
            passed = (([plan[i] for i in tour], one, other) for tour, one, other in exchange)
            return sum(effort(tour, one) - effort(tour, other) for tour, one, other in passed)

        moves: list[_Exchange] = [
            ((tour, busy, idle),) for tour in tours[busy] if loads[busy] - loads[idle] > len(tour)
        ]
        swaps: list[_Exchange] = [
            ((tour, one, other), (back, other, one))
            for one, other in itertools.combinations(agents, 2)
            for tour in tours[one]
            for back in tours[other]
            if len(tour) == len(back)
        ]
        swaps = [swap for swap in swaps if gain(swap) > 1e-6]
        for exchange in [
            *sorted(moves, key=gain, reverse=True),
            *sorted(swaps, key=gain, reverse=True),
        ]:
            tried = list(found)
            for tour, one, other in exchange:
                for i in tour:
                    named = tuple(other if name == one else name for name in found[i].arguments)
                    tried[i] = GroundAction(found[i].name, named)
            checked = validate_task_plan(problem, tried)
            is_as_good = checked.is_valid and checked.cost <= now.cost
            if is_as_good and all(map(is_allowed, tried, checked.states)):
                found = tried
                break
        else:
            return tuple(found)


def _tours(
    actions: Sequence[GroundAction], states: Sequence[State], agent: str, agents: Sequence[str]
) -> list[list[int]]:
    """Return the indices of what an agent does alone, from one time that it is as at the start to the next."""
    about = [frozenset(fact for fact in state if agent in fact.arguments) for state in states]
    tours: list[list[int]] = []
    for i, action in enumerate(actions):
        if agent in action.arguments:
            if about[i] == about[0] or not tours:
                tours.append([])
            tours[-1].append(i)
    others = {other for other in agents if other != agent}
    return [tour for tour in tours if not any(others & set(actions[i].arguments) for i in tour)]


@dataclass(frozen=True)
class TaskPlanValidation(Result):
    """What came of executing a plan.

    Attributes:
        is_valid: every step was applicable and the goal holds at the end.
        steps: the plan.
        states: the initial state and the state after each step that could be executed.
        failed_step: the index of the first step that could not be executed, ``None`` when all
            could.
        failures: the ground parts of that step's precondition that did not hold; or, when all steps
            were executed, the ground parts of the goal that do not hold.
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
        return (
            f"TaskPlanValidation({self.status.value}, {len(self.steps)} steps, cost"
            f" {self.cost:g}{reason})"
        )

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
        steps: the plan. A step that the domain does not have, or with wrong arguments, is a failed
            step, no error.
    """
    plan, states = tuple(steps), [problem.init]
    costs: list[float] = []

    def ended(
        message: str, failures: tuple[Formula, ...], failed: int | None
    ) -> TaskPlanValidation:
        return TaskPlanValidation(
            not message, plan, tuple(states), failed, failures, message, sum(costs), tuple(costs)
        )

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
            return ended(
                f"{begin}its cost is not defined, because a function in it has no value", (), index
            )
        if (term := change.undefined()) is not None:
            return ended(f"{begin}it gives {term} no value", (), index)
        states.append(change.applied(states[-1]))
        costs.append(cost)
    failures = Interpretation(problem, states[-1]).failures(problem.goal)
    message = f"the goal is not reached: {'; '.join(map(in_words, failures))}" if failures else ""
    return ended(message, failures, None)
