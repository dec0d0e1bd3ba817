"""Actions in time, and whether they may be done so.

Invariants: :func:`schedule_fault` follows PDDL 2.1 (M. Fox, D. Long, JAIR 2003) and shares nothing with what makes
schedules: it has each start and end happen in the order of time, on the parts of an action as they were written. What
happens at one instant sees the state before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tmkit.errors import TaskError
from tmkit.pddl.evaluation import Change, Interpretation, in_words
from tmkit.pddl.formulas import Formula, GroundAction, Number, Timing
from tmkit.pddl.model import Problem

SEPARATION = 0.001
"""Time by which what one action changes is before what another needs or changes."""


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


def action_timing(problem: Problem, action: GroundAction) -> tuple[Timing | None, dict[str, str], float]:
    """Return the timing of an action, the values of its parameters, and its duration, 0 if it has none.

    Args:
        problem: the task, whose values at first count.
        action: the action.

    Raises:
        TaskError: the action is not one of the domain, or its duration has no value or is below zero.
    """
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
    events: list[tuple[float, int]] = []  # the end of an action by its number, its start by the complement
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
        needed, effect = (timing.at_end, timing.end) if event >= 0 else (timing.at_start, timing.start)
        before = Interpretation(problem, state)
        if time - last >= 0.5 * SEPARATION:
            instant, changed, last = before, set(), time
        if failures := instant.failures(needed, binding) or before.failures(needed, binding):
            return f"{time:.3f}: {actions[number].action}: {_words(failures)}"
        change = before.change(effect, binding)
        touched = _touched(change)
        if touched & changed:
            return f"{time:.3f}: {actions[number].action} changes what another changes at the same time"
        changed |= touched
        state = change.applied(state)
        if event >= 0:
            running.pop(number, None)
        else:
            running[number] = None
        after = Interpretation(problem, state)
        for other in running if following - last >= 0.5 * SEPARATION else ():
            if failures := after.failures(parts[other][0].over_all, parts[other][1]):
                return f"{time:.3f}: {actions[number].action} during {actions[other].action}: {_words(failures)}"
    failures = Interpretation(problem, state).failures(problem.goal)
    return f"the goal is not reached: {_words(failures)}" if failures else ""


def _touched(change: Change) -> set[object]:
    return {*change.added, *change.deleted, *change.values}


def _words(failures: tuple[Formula, ...]) -> str:
    return "; ".join(map(in_words, failures))
