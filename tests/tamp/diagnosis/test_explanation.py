"""Text of explanations: every sentence, from hand-made diagnoses."""

from __future__ import annotations

from typing import Any

import pytest

from tmkit.plans import FailureKind
from tmkit.tamp import Diagnosis, PlanStatus
from tmkit.tamp.diagnosis.diagnosis import (
    ActionDiagnosis,
    BlockingBody,
    FailureCause,
    GoalConflict,
    LearnedConstraint,
    Suggestion,
    SuggestionKind,
)
from tmkit.tamp.diagnosis.explanation import explain

NO, PROVED = PlanStatus.NO_PLAN_WITHIN_LIMITS, PlanStatus.PROVED_UNSOLVABLE


def cause(phase: str, words: str, count: int, **more: Any) -> FailureCause:
    """Return a cause of failures."""
    return FailureCause(phase, words, FailureKind.COLLISION, count, **more)


def action(
    name: str, *causes: FailureCause, bodies: tuple[BlockingBody, ...] = ()
) -> ActionDiagnosis:
    """Return the diagnosis of an action."""
    total = sum(each.count for each in causes)
    return ActionDiagnosis(name, total, ((FailureKind.COLLISION, total),), causes, bodies)


def explain_result(status: PlanStatus, **diagnosis: Any) -> str:
    """Return the explanation for the goal ``(g)``."""
    return explain(status, Diagnosis(**diagnosis), goal="(g)", plan=None)


def failed_result(*actions: ActionDiagnosis, **more: Any) -> str:
    """Return the sentences about actions."""
    text = explain_result(NO, actions=actions, skeletons=2, attempts=7, **more)
    start = (
        "2 task plans were tried for (g), with 7 attempts at motions, and none could be carried"
        " out. Infeasibility is not proven."
    )
    assert text.startswith(start)
    return text.removeprefix(start).strip()


def test_nothing_was_tried() -> None:
    """Without a task plan the explanation does not mention motions."""
    assert (
        explain_result(NO)
        == "The task planner found no sequence of actions for (g) within the limits; there may be"
        " one."
    )


def test_one_of_each_is_in_the_singular() -> None:
    """Numbers and nouns go together."""
    text = explain_result(
        NO, skeletons=1, attempts=1, actions=(action("(a)", cause("lift", "x", 1)),)
    )
    assert text.startswith(
        "1 task plan was tried for (g), with 1 attempt at motions, and none could be carried out."
    )
    assert text.endswith("(a) failed 1 time, lift: x.")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (("(f)",), "no action achieves (f)."),
        (("(f)", "(h)"), "(f) and (h) exclude each other."),
        (("(f)", "(h)", "(i)"), "(f), (h) and (i) never hold together."),
    ],
)
def test_conflicts_of_the_goal(facts: tuple[str, ...], words: str) -> None:
    """A conflict of one, two, or more facts."""
    text = explain_result(PROVED, conflict=GoalConflict(facts))
    assert text.startswith(
        "No sequence of the domain's actions leads from the state of the scene to (g), whatever"
    )
    assert text.endswith(words)


def test_proofs_come_before_everything_else() -> None:
    """The explanation has the first proofs of the domain."""
    text = explain_result(PROVED, proofs=("p", "q", "r", "s"), conflict=GoalConflict(("(f)",)))
    assert text == "No plan leads to (g), whatever the actions and motions: p; and q; and r."


def test_causes_that_differ_only_in_who_met_whom_are_one() -> None:
    """Failures of one cause are added up; obstacles are listed once, the most frequent first."""
    failures = [
        cause("lift", f"it collides, 'h' and '{name}'", 2, summary="it collides") for name in "ab"
    ]
    bodies = (BlockingBody("a", 2), BlockingBody("b", 2))
    text = failed_result(action("(u)", *failures, bodies=bodies))
    assert (
        text
        == "(u) failed 4 times, lift: it collides. In its way were 'a' (2 times) and 'b' (2 times)."
    )
    text = failed_result(
        action("(u)", cause("lift", "it collides, 'h' and 'i'", 2), bodies=bodies[:1])
    )
    assert (
        text == "(u) failed 2 times, lift: it collides, 'h' and 'i'. In its way was 'a' (2 times)."
    )


def test_the_most_frequent_causes_and_actions_are_named() -> None:
    """At most three of each are listed; further ones are mentioned."""
    causes = [
        cause("lift", words, count)
        for words, count in (("w", 1), ("x", 4), ("y", 3), ("z", 2), ("v", 1))
    ]
    actions = [action(f"({name})", cause("lift", "x", 1)) for name in "bcde"]
    text = failed_result(action("(a)", *causes), *actions)
    assert text.startswith(
        "(a) failed 11 times; 4 times lift: x; 3 times lift: y; 2 times lift: z; 2 times from other"
        " causes. (b) failed 1 time, lift: x."
    )
    assert text.endswith("(c) failed 1 time, lift: x. 2 other actions failed too.")


def test_the_nearest_pose_counts() -> None:
    """For poses out of reach, the smallest excess is stated."""
    beyond = [
        cause("grasp", words, 1, summary="out of reach", excess=excess)
        for words, excess in (("p", 0.5), ("q", 0.3))
    ]
    assert (
        failed_result(action("(a)", *beyond))
        == "(a) failed 2 times, grasp: out of reach, by at least 30 cm."
    )


def test_what_is_proved() -> None:
    """Proved constraints are stated once for each action; others are not."""
    constraints = (
        LearnedConstraint("(a)", (), is_proved=True),
        LearnedConstraint("(b)", ("(f)",), is_proved=True),
        LearnedConstraint("(b)", ("(h)",), is_proved=True),
        LearnedConstraint("(c)", ("(f)",), is_proved=False),
    )
    assert (
        failed_result(constraints=constraints)
        == "It is proved that (a) cannot be carried out in any state. "
        "It is proved that no pose tried for (b) is within reach in that state."
    )


def test_what_would_help() -> None:
    """Bodies are quoted, goals are not; one action has one."""
    suggestions = (
        Suggestion(SuggestionKind.WITHOUT_BODIES, ("lid",), ("(a)",)),
        Suggestion(SuggestionKind.WITHOUT_BODIES, ("lid", "pot"), ("(a)", "(b)")),
        Suggestion(SuggestionKind.WITHOUT_GOALS, ("(f)", "(h)"), ("(a)", "(b)")),
    )
    assert (
        failed_result(suggestions=suggestions)
        == "With 'lid' out of the way there is a plan of 1 action. "
        "With 'lid' and 'pot' out of the way there is a plan of 2 actions. "
        "Without the goals (f) and (h) there is a plan of 2 actions."
    )
