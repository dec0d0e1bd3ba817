"""Explanations: the answer of the planner in words, made of the :class:`~tmkit.tamp.Diagnosis` and of nothing else.

The user learns what was tried, which action failed how often and why, what is proved and what is
not, and what would help. Where the time limit ended the search, counts depend on the speed of the
machine, and none are stated.

Invariants: the same diagnosis gives the same words, and the same cause has the same words wherever
    it comes up.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.plans.values import Plan
from tmkit.tamp.diagnosis.diagnosis import (
    ActionDiagnosis,
    Diagnosis,
    PlanStatus,
    SearchEnd,
    Suggestion,
    SuggestionKind,
    in_centimetres,
    listed,
)

_MOST = 3  # actions, causes of one, bodies and alternatives that are named


def explain(status: PlanStatus, diagnosis: Diagnosis, *, goal: str, plan: Plan | None) -> str:
    """Return the answer in a paragraph, or three: the likely cause, what was tried, and what would help."""
    if status is PlanStatus.SOLVED and plan is not None:
        if not plan.steps:
            return f"The goal {goal} holds already, so the plan is empty."
        motions = "their motions" if len(plan.steps) != 1 else "its motions"
        found = f"{_counted(len(plan.steps), 'action')} with {motions}"
        return f"Found {found} for {goal}, after {_counted(diagnosis.skeletons, 'task plan')}."
    cause = (
        [f"No plan found. Likely cause: {'; and '.join(diagnosis.causes[:_MOST])}."]
        if diagnosis.causes
        else []
    )
    paragraphs = (
        cause,
        _what_was_found(status, diagnosis, goal),
        map(_suggestion, diagnosis.suggestions[:_MOST]),
    )
    return "\n".join(filter(None, map(" ".join, paragraphs)))


def _what_was_found(status: PlanStatus, diagnosis: Diagnosis, goal: str) -> Iterator[str]:
    """Yield sentences: what was tried, and why it failed."""
    if diagnosis.proofs:
        yield (
            f"No plan leads to {goal}, whatever the actions and motions:"
            f" {'; and '.join(diagnosis.proofs[:_MOST])}."
        )
    elif status is PlanStatus.PROVED_UNSOLVABLE:
        start = (
            f"No sequence of the domain's actions leads from the state of the scene to {goal},"
            " whatever the motions"
        )
        yield f"{start}: {_conflict(diagnosis)}."
    elif not diagnosis.skeletons:
        yield (
            f"The task planner found no sequence of actions for {goal} within the limits; there may"
            " be one."
        )
        yield from _ending(diagnosis)
    else:
        counts = diagnosis.ended_by is not SearchEnd.TIME_LIMIT
        if counts:
            one = diagnosis.skeletons == 1
            tried = (
                f"{_counted(diagnosis.skeletons, 'task plan')} {'was' if one else 'were'} tried for"
                f" {goal}"
            )
            yield (
                f"{tried}, with {_counted(diagnosis.attempts, 'attempt')} at motions, and none"
                " could be carried out."
            )
        else:
            yield f"Task plans were tried for {goal}, and none could be carried out."
        yield from _ending(diagnosis)
        yield "Infeasibility is not proven."
        yield from (_action(action, counts=counts) for action in diagnosis.actions[:_MOST])
        if len(diagnosis.actions) > _MOST:
            others = (
                _counted(len(diagnosis.actions) - _MOST, "other action")
                if counts
                else "Other actions"
            )
            yield f"{others} failed too."
        yield from _what_is_proved(diagnosis)


def _ending(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a sentence about what ended the search, where that is known."""
    match diagnosis.ended_by, diagnosis.limit:
        case SearchEnd.TIME_LIMIT, float(seconds):
            yield f"The time limit of {seconds:g} s ended the search."
        case SearchEnd.ITERATION_LIMIT, int(iterations):
            yield f"The limit of {_counted(iterations, 'iteration')} ended the search."
        case SearchEnd.EXHAUSTED, _:
            yield "Further iterations would repeat these failures."


def _conflict(diagnosis: Diagnosis) -> str:
    """Return why the task alone has no solution."""
    if diagnosis.conflict is None:
        return "the goal contradicts itself, or contains a fact that no action achieves"
    facts = diagnosis.conflict.facts
    if len(facts) == 1:
        return f"no action achieves {facts[0]}"
    return f"{listed(facts)} {'exclude each other' if len(facts) == 2 else 'never hold together'}"


def _action(action: ActionDiagnosis, *, counts: bool) -> str:
    """Return the sentences about one action that failed."""
    times, told = _counted(action.failures, "time"), _summaries(action)
    if not counts:
        more = "; ..." if len(told) > _MOST else ""
        text = f"{action.action} failed, {'; '.join(words for words, _ in told[:_MOST])}{more}."
    elif len(told) == 1:
        text = f"{action.action} failed {times}, {told[0][0]}."
    else:
        causes = [f"{_counted(count, 'time')} {words}" for words, count in told[:_MOST]]
        if rest := sum(count for _, count in told[_MOST:]):
            causes.append(f"{_counted(rest, 'time')} from other causes")
        text = f"{action.action} failed {times}; {'; '.join(causes)}."
    if action.in_the_way:
        named = [
            f"'{body.frame}' ({_counted(body.count, 'time')})" if counts else f"'{body.frame}'"
            for body in action.in_the_way[:_MOST]
        ]
        text += f" In its way {'was' if len(named) == 1 else 'were'} {listed(named)}."
    return text


def _summaries(action: ActionDiagnosis) -> list[tuple[str, int]]:
    """Return the causes in words with counts, most often first; those that differ only in the pair of bodies as one."""
    counts: dict[tuple[str, str], int] = {}
    beyond: dict[tuple[str, str], float] = {}
    for cause in action.causes:
        key = cause.phase, cause.summary or cause.cause
        counts[key] = counts.get(key, 0) + cause.count
        beyond[key] = min(cause.excess, beyond.get(key, cause.excess))
    told = []
    for (phase, summary), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        excess = beyond[phase, summary]
        missing = f", by at least {in_centimetres(excess)}" if excess > 0.0 else ""
        told.append((f"{phase}: {summary}{missing}", count))
    return told


def _what_is_proved(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a sentence about what no longer trying would change."""
    impossible = [c.action for c in diagnosis.constraints if c.is_proved and not c.context]
    beyond = [c.action for c in diagnosis.constraints if c.is_proved and c.context]
    if impossible:
        yield f"It is proved that {listed(_first(impossible))} cannot be carried out in any state."
    if beyond:
        yield (
            f"It is proved that no pose tried for {listed(_first(beyond))} is within reach in that"
            " state."
        )


def _suggestion(suggestion: Suggestion) -> str:
    """Return a sentence about a change of the question with which there is a plan."""
    steps = f"there is a plan of {_counted(len(suggestion.actions), 'action')}"
    if suggestion.kind is SuggestionKind.WITHOUT_GOALS:
        return (
            f"Without the goal{'s' if len(suggestion.names) > 1 else ''} {listed(suggestion.names)}"
            f" {steps}."
        )
    bodies = [f"'{name}'" for name in suggestion.names]
    return f"With {listed(bodies)} out of the way {steps}."


def _first(names: list[str]) -> list[str]:
    """Return the first few of some names, each once."""
    return list(dict.fromkeys(names))[:_MOST]


def _counted(count: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{count} {what}{'s' if count != 1 else ''}"
