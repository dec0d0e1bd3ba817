"""What a planning run has found so far, counted and timed: handed down beside what it was given."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tmkit.manipulation.actions.timing_breakdown import PhaseClock
from tmkit.pddl import Fact, GroundAction
from tmkit.plans.values import PlanStep
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.domains.infeasibility import Infeasibility
from tmkit.tamp.refinement_tree import FailureLog, RefinementTree
from tmkit.tamp.search_tree import TransferVersion


@dataclass(eq=False)
class SearchLog:
    """What a run has found so far. It begins when it is made.

    Attributes:
        seconds_to_search: seconds from the beginning after which the search ends.
        began: when that was, by the monotonic clock.
        trees: all refinement trees of the search, in the order in which they were begun.
        infeasibilities: why the goal is impossible, where the domain proved it.
        transfers: the tree of the search over transfers; None before it begins.
        versions: its nodes, if the search tree is recorded.
        found: the steps of the plan that was found first.
        best: the cost of the best plan so far, in words; empty before there is one.
        forbidden: what the last iteration forbade: by action, the facts under which.
    """

    seconds_to_search: float
    began: float = field(default_factory=lambda: time.monotonic())
    clock: PhaseClock = field(default_factory=PhaseClock)
    failures: FailureLog = field(default_factory=FailureLog)
    trees: list[RefinementTree] = field(default_factory=list)
    skeletons: int = 0
    iterations: int = 0
    constraints: list[LearnedConstraint] = field(default_factory=list)
    infeasibilities: tuple[Infeasibility, ...] = ()
    transfers: RefinementTree | None = None
    versions: list[TransferVersion] = field(default_factory=list)
    found: tuple[PlanStep, ...] = ()
    best: str = ""
    forbidden: dict[GroundAction, list[frozenset[Fact]]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def is_over(self) -> bool:
        """Whether the time to search is up."""
        return self.seconds > self.seconds_to_search

    def seconds_left(self) -> float:
        """Return the seconds that are left to search, never less than a task planner can stop after."""
        return max(0.1, self.seconds_to_search - self.seconds)
