"""Diagnosis of a planning run without a plan, as data.

The paragraph of :mod:`tmkit.tamp.diagnosis.explanation` is made of nothing else.

Invariants: plain values, equal for equal runs: no times, and nothing that depends on a clock unless
the time limit ended the search (``ended_by``). Scenes and configurations, which pictures need, are
no part of equality.
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

if TYPE_CHECKING:
    from tmkit.robots import Manipulator


@dataclass(frozen=True)
class BlockingBody:
    """A body that was in the way.

    Attributes:
        frame: its frame.
        count: failures in which it was.
    """

    frame: str
    count: int


@dataclass(frozen=True, eq=False)
class FailureExample:
    """A failure of an action from one cause: where everything was.

    Attributes:
        scene: the version in which it happened.
        q: (n_joints,) configuration: the one in collision, the nearest to a pose out of reach, or
            else that at the start of the action.
        object: frame of the object that was being handled; None when none was.
        pairs: frames that were in each other's way.
        in_the_way: of these, the bodies that neither the arm nor its hand moves.
        manipulator: the arm that acts.
        choice: the grasp or placement that was rejected, in words; empty if none.
    """

    scene: SceneGraph
    q: NDArray[np.float64]
    object: str | None
    pairs: tuple[tuple[str, str], ...]
    in_the_way: tuple[str, ...]
    manipulator: Manipulator
    choice: str = ""


@dataclass(frozen=True)
class FailureCause(Displayed):
    """Why an action failed, and how often for this reason.

    Attributes:
        phase: what was being tried.
        cause: why it failed, in words; the same cause has the same words.
        kind: the sort of obstacle.
        count: how often.
        summary: the cause without the frames that it names, when these are among the bodies in the
            way.
        excess: metres by which the nearest of the poses was out of reach, at least; else 0.
        in_the_way: the bodies that were in the way, most often first.
        examples: the first such failures, one for each grasp or placement, for pictures.
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
        beyond = f", by at least {in_centimetres(self.excess)}" if self.excess > 0.0 else ""
        return f"{self.phase}: {self.cause}{beyond}"


@dataclass(frozen=True)
class ActionDiagnosis(Displayed):
    """What became of the attempts at one action.

    Attributes:
        action: the ground action.
        failures: how often it failed.
        kinds: how often for each kind of failure, most often first.
        causes: why, most often first.
        in_the_way: the bodies that were in the way, most often first.
        excess: metres by which the nearest pose was out of reach, at least, when all were; else 0.
    """

    action: str
    failures: int
    kinds: tuple[tuple[FailureKind, int], ...]
    causes: tuple[FailureCause, ...]
    in_the_way: tuple[BlockingBody, ...] = ()
    excess: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the action's failures as plain values."""
        kinds = {kind.value: count for kind, count in self.kinds}
        return Displayed.to_dict(self) | {
            "kinds": kinds,
            "in_the_way": _body_values(self.in_the_way),
        }


@dataclass(frozen=True)
class LearnedConstraint(Displayed):
    """What the task planner was told not to try again.

    Attributes:
        action: the ground action.
        context: the facts while which it is not to be done; none means never.
        is_proved: whether every failure behind it is proved for the poses that were tried; else
            none was found within the budget of an iteration.
        count: how often it was learned: once an iteration, if it is not proved.
    """

    action: str
    context: tuple[str, ...]
    is_proved: bool
    count: int = 1

    def __str__(self) -> str:
        return f"{self.action} while {' '.join(self.context)}" if self.context else self.action


@dataclass(frozen=True)
class GoalConflict:
    """Facts of a goal that the task alone rules out, whatever the motions: proved.

    Attributes:
        facts: in PDDL: one that never holds, or several that never hold together.
    """

    facts: tuple[str, ...]


class SuggestionKind(StrEnum):
    """What sort of change would help."""

    WITHOUT_GOALS = "without goals"
    """Part of the goal is given up."""
    WITHOUT_BODIES = "without bodies"
    """Bodies are out of the way."""


@dataclass(frozen=True)
class Suggestion:
    """A change of the question to which there is a plan: it was found.

    Attributes:
        kind: what sort of change.
        names: parts of the goal in PDDL, or frames.
        actions: the plan that there is then.
    """

    kind: SuggestionKind
    names: tuple[str, ...]
    actions: tuple[str, ...]


class PlanStatus(Enum):
    """How planning ended."""

    SOLVED = "solved"
    PROVED_UNSOLVABLE = "proved unsolvable"
    """No sequence of actions reaches the goal, whatever the motions; or the domain proved it by geometry."""
    NO_PLAN_WITHIN_LIMITS = "no plan within the limits"
    """None was found; there may be one."""


class SearchEnd(StrEnum):
    """What ended a search that found neither a plan nor a proof."""

    TIME_LIMIT = "time limit"
    ITERATION_LIMIT = "iteration limit"
    EXHAUSTED = "exhausted"
    """Every failure is proved for the poses that were tried, so further iterations would repeat them."""


@dataclass(frozen=True)
class Diagnosis(Displayed):
    """What a planning run learned.

    Attributes:
        actions: those that failed, most often first.
        constraints: what was learned from failed task plans, in order.
        conflict: facts of the goal that the task alone rules out, where they were found.
        proofs: arguments of the domain by which the goal is impossible, in words.
        suggestions: changes of the question with which there is a plan.
        iterations: iterations of the search, each with budgets twice those of the one before.
        skeletons: task plans that were tried.
        attempts: motions of single actions that were tried.
        replans: how often planning was tried again to find suggestions.
        causes: geometric causes that explain many failures at once, in words.
        ended_by: what ended the search, when it found neither a plan nor a proof.
        limit: the limit that did: seconds or iterations.
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
        """The bodies that were in the way of any action, most often first."""
        return added_up(body for action in self.actions for body in action.in_the_way)

    def without_examples(self) -> Diagnosis:
        """Return the same diagnosis without the scenes and configurations that pictures need."""
        actions = (
            replace(action, causes=tuple(replace(cause, examples=()) for cause in action.causes))
            for action in self.actions
        )
        return replace(self, actions=tuple(actions))

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values, for programs; without scenes and configurations."""
        conflict = self.conflict.facts if self.conflict is not None else ()
        own = {"in_the_way": _body_values(self.in_the_way), "conflict": list(conflict)}
        return Displayed.to_dict(self) | own


def in_centimetres(metres: float) -> str:
    """Return a length in words, to the centimetre below."""
    if metres < 0.01:
        return "less than 1 cm"
    return f"{int(100.0 * metres + 1e-9)} cm"


def listed(words: Sequence[str]) -> str:
    """Return words joined by commas, the last by "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def added_up(bodies: Iterable[BlockingBody]) -> tuple[BlockingBody, ...]:
    """Return bodies with the counts of each added up, most often first, ties in order of name."""
    counts = Counter[str]()
    for body in bodies:
        counts[body.frame] += body.count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(BlockingBody(frame, count) for frame, count in ordered)


def _body_values(bodies: Iterable[BlockingBody]) -> dict[str, int]:
    return {body.frame: body.count for body in bodies}
