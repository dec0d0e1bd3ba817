"""Diagnosis of a planning run without a plan, as data.

:mod:`tmkit.tamp.diagnosis.explanation` derives its text from the diagnosis alone.

Invariants: plain values, equal for equal runs. They contain no times, and depend on a clock only if
the time limit ended the search (``ended_by``). Equality ignores scenes and configurations, which
are stored for pictures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.results import Displayed, to_html
from tmkit.graph import SceneGraph
from tmkit.plans.failures import FailureKind
from tmkit.tamp.streams.records import StreamUse

if TYPE_CHECKING:
    from tmkit.robots import Manipulator


@dataclass(frozen=True)
class BlockingBody:
    """A body that was in the way.

    Attributes:
        frame: frame of the body.
        count: number of failures in which it was in the way.
    """

    frame: str
    count: int


@dataclass(frozen=True, eq=False)
class FailureExample:
    """A failure of an action, with its scene and configuration.

    Attributes:
        scene: scene version of the failure.
        q: (n_joints,) configuration: the one in collision, the nearest to a pose out of reach, or
            the one at the start of the action.
        object: frame of the handled object, or None.
        pairs: pairs of colliding frames.
        in_the_way: frames of these pairs that neither the arm nor its hand moves.
        robot: arm that acts.
        choice: description of the rejected grasp or placement; empty if none.
    """

    scene: SceneGraph
    q: NDArray[np.float64]
    object: str | None
    pairs: tuple[tuple[str, str], ...]
    in_the_way: tuple[str, ...]
    robot: Manipulator
    choice: str = ""


@dataclass(frozen=True)
class FailureCause(Displayed):
    """A cause of failures of an action, with their count.

    Attributes:
        phase: phase of the action.
        cause: description of the cause; equal causes have equal descriptions.
        kind: kind of obstacle.
        count: number of failures.
        summary: the cause without its frames, if these are among the bodies in the way.
        excess: lower bound of the distance by which the nearest pose was out of reach, else 0 [m].
        in_the_way: bodies that were in the way, most frequent first.
        examples: first failures, one for each grasp or placement, for pictures.
    """

    phase: str
    cause: str
    kind: FailureKind
    count: int
    summary: str = ""
    excess: float = 0.0
    in_the_way: tuple[BlockingBody, ...] = ()
    examples: tuple[FailureExample, ...] = field(default=(), compare=False, repr=False)

    @property
    def example(self) -> FailureExample | None:
        """The first example; None in another process than that of the search."""
        return self.examples[0] if self.examples else None

    def to_dict(self) -> dict[str, Any]:
        """Return the cause as plain values, without the examples."""
        values = Displayed.to_dict(replace(self, examples=())) | {
            "in_the_way": _body_values(self.in_the_way)
        }
        del values["examples"]
        return values

    def __str__(self) -> str:
        beyond = f", by at least {format_length(self.excess)}" if self.excess > 0.0 else ""
        return f"{self.phase}: {self.cause}{beyond}"


@dataclass(frozen=True)
class ActionDiagnosis(Displayed):
    """Failures of the attempts at one action.

    Attributes:
        action: ground action.
        failures: number of failures.
        kinds: number of failures by kind, most frequent first.
        causes: causes of the failures, most frequent first.
        in_the_way: bodies that were in the way, most frequent first.
        excess: lower bound of the distance by which the nearest pose was out of reach, if all poses
            were, else 0 [m].
    """

    action: str
    failures: int
    kinds: tuple[tuple[FailureKind, int], ...]
    causes: tuple[FailureCause, ...]
    in_the_way: tuple[BlockingBody, ...] = ()
    excess: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the failures of the action as plain values."""
        kinds = {kind.value: count for kind, count in self.kinds}
        return Displayed.to_dict(self) | {
            "kinds": kinds,
            "in_the_way": _body_values(self.in_the_way),
        }


@dataclass(frozen=True)
class LearnedConstraint(Displayed):
    """A constraint that excludes an action from task plans.

    Attributes:
        action: ground action.
        context: facts under which the action is excluded; always excluded if empty.
        is_proved: whether every underlying failure is proved for the poses that were tried.
            Otherwise no motion was found within the budget of an iteration.
        count: number of times it was learned: once an iteration, if it is not proved.
    """

    action: str
    context: tuple[str, ...]
    is_proved: bool
    count: int = 1

    def __str__(self) -> str:
        return f"{self.action} while {' '.join(self.context)}" if self.context else self.action


@dataclass(frozen=True)
class GoalConflict:
    """Facts of a goal that the task alone excludes for all motions, by proof.

    Attributes:
        facts: in PDDL, one fact that never holds, or several that never hold together.
    """

    facts: tuple[str, ...]


class SuggestionKind(StrEnum):
    """Kind of a suggested change."""

    WITHOUT_GOALS = "without goals"
    """The goal omits some of its parts."""
    WITHOUT_BODIES = "without bodies"
    """Bodies are removed."""


@dataclass(frozen=True)
class Suggestion:
    """A change of the problem for which a plan was found.

    Attributes:
        kind: kind of the change.
        names: parts of the goal in PDDL, or frames.
        actions: plan after the change.
    """

    kind: SuggestionKind
    names: tuple[str, ...]
    actions: tuple[str, ...]


class PlanStatus(Enum):
    """Result of planning."""

    SOLVED = "solved"
    PROVED_UNSOLVABLE = "proved unsolvable"
    """No sequence of actions reaches the goal for any motions, by the task or by geometry."""
    NO_PLAN_WITHIN_LIMITS = "no plan within the limits"
    """No plan was found; one may exist."""


class SearchEnd(StrEnum):
    """Reason for the end of a search that found neither a plan nor a proof."""

    TIME_LIMIT = "time limit"
    ITERATION_LIMIT = "iteration limit"
    EXHAUSTED = "exhausted"
    """All failures are proved for the poses that were tried, so iterations would repeat them."""


@dataclass(frozen=True)
class Diagnosis(Displayed):
    """Results of a planning run beside its plan.

    Attributes:
        actions: failed actions, most frequent first.
        constraints: constraints learned from failed task plans, in order.
        conflict: facts of the goal that the task alone excludes, if any were found.
        proofs: arguments of the domain by which the goal is infeasible.
        suggestions: changes of the problem for which there is a plan.
        iterations: iterations of the search, each with twice the budgets of the previous one.
        skeletons: number of task plans that were tried.
        attempts: number of motions of single actions that were tried.
        replans: number of planning runs that searched for suggestions.
        causes: geometric causes that explain many failures at once.
        ended_by: reason for the end of the search, if it found neither a plan nor a proof.
        limit: the limit that ended the search: seconds or iterations.
        streams: counts of the domain's streams (:mod:`tmkit.tamp.streams`), in order of name.
    """

    actions: tuple[ActionDiagnosis, ...] = ()
    constraints: tuple[LearnedConstraint, ...] = ()
    conflict: GoalConflict | None = None
    proofs: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    iterations: int = 0
    skeletons: int = 0
    attempts: int = 0
    replans: int = 0
    causes: tuple[str, ...] = ()
    ended_by: SearchEnd | None = None
    limit: float | None = None
    streams: tuple[StreamUse, ...] = ()

    def __repr__(self) -> str:
        counts = (
            f"{self.skeletons} task plans, {self.attempts} attempts, {len(self.actions)} actions"
            " failed"
        )
        ended = f", ended by {self.ended_by.value}" if self.ended_by is not None else ""
        return (
            f"Diagnosis({self.iterations} iterations, {counts}, {len(self.proofs)} proofs{ended})"
        )

    def _repr_html_(self) -> str:
        return to_html(
            repr(self), self.to_dict() | {"actions": [action.action for action in self.actions]}
        )

    @property
    def in_the_way(self) -> tuple[BlockingBody, ...]:
        """Bodies that were in the way of any action, most frequent first."""
        return sum_counts(body for action in self.actions for body in action.in_the_way)

    def without_examples(self) -> Diagnosis:
        """Return the diagnosis without the scenes and configurations for pictures."""
        actions = (
            replace(action, causes=tuple(replace(cause, examples=()) for cause in action.causes))
            for action in self.actions
        )
        return replace(self, actions=tuple(actions))

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values, without scenes and configurations."""
        conflict = self.conflict.facts if self.conflict is not None else ()
        totals = {"in_the_way": _body_values(self.in_the_way), "conflict": list(conflict)}
        document = Displayed.to_dict(self) | totals
        if not self.streams:
            del document["streams"]
        return document


def format_length(length: float) -> str:
    """Return a length as text, rounded down to centimetres.

    Args:
        length: length [m].
    """
    if length < 0.01:
        return "less than 1 cm"
    return f"{int(100.0 * length + 1e-9)} cm"


def join_words(words: Sequence[str]) -> str:
    """Return words joined by commas, and the last by "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sum_counts(bodies: Iterable[BlockingBody]) -> tuple[BlockingBody, ...]:
    """Return bodies with the sum of their counts, most frequent first, ties in order of name."""
    counts = Counter[str]()
    for body in bodies:
        counts[body.frame] += body.count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(BlockingBody(frame, count) for frame, count in ordered)


def _body_values(bodies: Iterable[BlockingBody]) -> dict[str, int]:
    return {body.frame: body.count for body in bodies}
