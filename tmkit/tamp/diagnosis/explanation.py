"""Explanation of a planning result as text, from the :class:`~tmkit.tamp.Diagnosis` alone.

The text contains the attempts, the number and causes of the failures of each action, the facts that
are proved, and suggestions. If the time limit ended the search, counts depend on the speed of the
machine and are omitted.

Invariants: equal diagnoses have equal texts, and equal causes have equal descriptions.
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
    format_length,
    join_words,
)

_MAX_ITEMS = 3
"""Largest number of listed actions, causes of an action, bodies and suggestions."""


def explain(status: PlanStatus, diagnosis: Diagnosis, *, goal: str, plan: Plan | None) -> str:
    """Return the explanation as text.

    Args:
        status: result of planning.
        diagnosis: diagnosis of the run.
        goal: goal in PDDL.
        plan: plan, if one was found.

    Returns:
        One to three paragraphs: the likely cause, the attempts, and suggestions.
    """
    if status is PlanStatus.SOLVED and plan is not None:
        if not plan.steps:
            return f"The goal {goal} holds already, so the plan is empty."
        motions = "their motions" if len(plan.steps) != 1 else "its motions"
        actions = f"{_format_count(len(plan.steps), 'action')} with {motions}"
        task_plans = _format_count(diagnosis.skeletons, "task plan")
        return f"Found {actions} for {goal}, after {task_plans}."
    causes = "; and ".join(diagnosis.causes[:_MAX_ITEMS])
    paragraphs = (
        [f"No plan found. Likely cause: {causes}."] if diagnosis.causes else [],
        _result_sentences(status, diagnosis, goal),
        map(_suggestion_sentence, diagnosis.suggestions[:_MAX_ITEMS]),
    )
    return "\n".join(filter(None, map(" ".join, paragraphs)))


def _result_sentences(status: PlanStatus, diagnosis: Diagnosis, goal: str) -> Iterator[str]:
    """Yield sentences about the attempts and the causes of their failures."""
    if diagnosis.proofs:
        proofs = "; and ".join(diagnosis.proofs[:_MAX_ITEMS])
        yield f"No plan leads to {goal}, whatever the actions and motions: {proofs}."
    elif status is PlanStatus.PROVED_UNSOLVABLE:
        start = (
            f"No sequence of the domain's actions leads from the state of the scene to {goal},"
            " whatever the motions"
        )
        yield f"{start}: {_conflict_reason(diagnosis)}."
    elif not diagnosis.skeletons:
        yield (
            f"The task planner found no sequence of actions for {goal} within the limits; there may"
            " be one."
        )
        yield from _end_sentences(diagnosis)
    else:
        has_counts = diagnosis.ended_by is not SearchEnd.TIME_LIMIT
        if has_counts:
            task_plans = _format_count(diagnosis.skeletons, "task plan")
            verb = "was" if diagnosis.skeletons == 1 else "were"
            attempts = _format_count(diagnosis.attempts, "attempt")
            yield (
                f"{task_plans} {verb} tried for {goal}, with {attempts} at motions, and none could"
                " be carried out."
            )
        else:
            yield f"Task plans were tried for {goal}, and none could be carried out."
        yield from _end_sentences(diagnosis)
        yield "Infeasibility is not proven."
        for action in diagnosis.actions[:_MAX_ITEMS]:
            yield _action_sentence(action, has_counts=has_counts)
        n_further = len(diagnosis.actions) - _MAX_ITEMS
        if n_further > 0:
            further = _format_count(n_further, "other action") if has_counts else "Other actions"
            yield f"{further} failed too."
        yield from _proof_sentences(diagnosis)


def _end_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a sentence about the end of the search, if its reason is stored."""
    match diagnosis.ended_by, diagnosis.limit:
        case SearchEnd.TIME_LIMIT, float(seconds):
            yield f"The time limit of {seconds:g} s ended the search."
        case SearchEnd.ITERATION_LIMIT, int(iterations):
            yield f"The limit of {_format_count(iterations, 'iteration')} ended the search."
        case SearchEnd.EXHAUSTED, _:
            yield "Further iterations would repeat these failures."


def _conflict_reason(diagnosis: Diagnosis) -> str:
    """Return the reason why the task alone has no solution."""
    if diagnosis.conflict is None:
        return "the goal contradicts itself, or contains a fact that no action achieves"
    facts = diagnosis.conflict.facts
    if len(facts) == 1:
        return f"no action achieves {facts[0]}"
    return (
        f"{join_words(facts)} {'exclude each other' if len(facts) == 2 else 'never hold together'}"
    )


def _action_sentence(action: ActionDiagnosis, *, has_counts: bool) -> str:
    """Return the sentences about a failed action."""
    times, summaries = _format_count(action.failures, "time"), _summarize_causes(action)
    if not has_counts:
        causes = [summary for summary, _ in summaries[:_MAX_ITEMS]]
        ellipsis = "; ..." if len(summaries) > _MAX_ITEMS else ""
        text = f"{action.action} failed, {'; '.join(causes)}{ellipsis}."
    elif len(summaries) == 1:
        text = f"{action.action} failed {times}, {summaries[0][0]}."
    else:
        causes = [f"{_format_count(n, 'time')} {summary}" for summary, n in summaries[:_MAX_ITEMS]]
        n_further = sum(count for _, count in summaries[_MAX_ITEMS:])
        if n_further:
            causes.append(f"{_format_count(n_further, 'time')} from other causes")
        text = f"{action.action} failed {times}; {'; '.join(causes)}."
    if action.in_the_way:
        bodies = [
            f"'{body.frame}'" + (f" ({_format_count(body.count, 'time')})" if has_counts else "")
            for body in action.in_the_way[:_MAX_ITEMS]
        ]
        text += f" In its way {'was' if len(bodies) == 1 else 'were'} {join_words(bodies)}."
    return text


def _summarize_causes(action: ActionDiagnosis) -> list[tuple[str, int]]:
    """Return descriptions of the causes with counts, most frequent first.

    Causes that differ only in the pair of bodies are merged.
    """
    counts: dict[tuple[str, str], int] = {}
    excesses: dict[tuple[str, str], float] = {}
    for cause in action.causes:
        key = cause.phase, cause.summary or cause.cause
        counts[key] = counts.get(key, 0) + cause.count
        excesses[key] = min(cause.excess, excesses.get(key, cause.excess))
    summaries = []
    for (phase, summary), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        excess = excesses[phase, summary]
        distance = f", by at least {format_length(excess)}" if excess > 0.0 else ""
        summaries.append((f"{phase}: {summary}{distance}", count))
    return summaries


def _proof_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield sentences about actions whose infeasibility is proved."""
    impossible = [c.action for c in diagnosis.constraints if c.is_proved and not c.context]
    unreachable = [c.action for c in diagnosis.constraints if c.is_proved and c.context]
    if impossible:
        names = join_words(_first_names(impossible))
        yield f"It is proved that {names} cannot be carried out in any state."
    if unreachable:
        names = join_words(_first_names(unreachable))
        yield f"It is proved that no pose tried for {names} is within reach in that state."


def _suggestion_sentence(suggestion: Suggestion) -> str:
    """Return a sentence about a change of the problem for which there is a plan."""
    steps = f"there is a plan of {_format_count(len(suggestion.actions), 'action')}"
    if suggestion.kind is SuggestionKind.WITHOUT_GOALS:
        goals = "goals" if len(suggestion.names) > 1 else "goal"
        return f"Without the {goals} {join_words(suggestion.names)} {steps}."
    bodies = [f"'{name}'" for name in suggestion.names]
    return f"With {join_words(bodies)} out of the way {steps}."


def _first_names(names: list[str]) -> list[str]:
    """Return the first few of some names, without repetitions."""
    return list(dict.fromkeys(names))[:_MAX_ITEMS]


def _format_count(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count} {noun}{'s' if count != 1 else ''}"
