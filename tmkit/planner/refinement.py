"""Refinement: from a task skeleton to motions, depth first over scene versions.

A skeleton is a sequence of actions. Each action is refined in the scene version that the previous one left; each has
candidates (grasps, placements), each candidate several motions (inverse kinematics solutions). When an action cannot be
refined, the search goes back to the previous one and takes its next motion. Going back costs nothing, since every scene
version still exists.

The numbers of attempts are bounded, per visit of an action and for the skeleton as a whole; the bounds grow from round
to round, so that what a round misses a later one may find. A failure within bounds is *soft*: it proves nothing.

Invariants: iterations decide, clocks only stop; equal arguments give equal results. After each action the state derived
from the new scene equals what PDDL predicts, or :class:`SemanticsMismatchError` names the facts that differ.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmkit.errors import SemanticsMismatchError
from tmkit.graph import SceneGraph
from tmkit.planner.arm_motion import ArmMotion, Refinement
from tmkit.planner.domains import PlanningDomain
from tmkit.planner.failures import FailureKind, MotionFailure
from tmkit.planner.semantics import ActionContext
from tmkit.planner.values import Configuration, PlanStep
from tmkit.tasks import GroundAction, Problem, State

__all__ = ["FailureLog", "RefinementBudget", "RefinementOutcome", "refine_skeleton"]


_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RefinementBudget:
    """How many attempts are made.

    Attributes:
        attempts_per_visit: motions tried each time the search comes to an action.
        attempts: motions tried for the skeleton as a whole.
    """

    attempts_per_visit: int = 16
    attempts: int = 200


@dataclass
class FailureLog:
    """What failed, how often: for the explanation.

    Attributes:
        counts: by (action, cause).
        pairs: frames in the way, by action.
        attempts: motions tried.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    pairs: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    attempts: int = 0

    def add(self, action: GroundAction, failure: MotionFailure) -> None:
        """Count one failure."""
        self.counts[str(action), str(failure)] += 1
        if failure.pairs:
            self.pairs.setdefault(str(action), Counter())[failure.pairs[0]] += 1

    def most_common(self) -> tuple[tuple[str, str, int], ...]:
        """Return (action, cause, count), most frequent first, ties in order of name."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple((action, cause, count) for (action, cause), count in ordered)


@dataclass(frozen=True, eq=False)
class RefinementOutcome:
    """What became of a skeleton.

    Attributes:
        steps: the refined steps when all succeeded, else None.
        failed_index: index of the deepest action that was reached and could not be refined, when ``steps`` is None.
        impossible: the action that can never be carried out, when that ended the search.
    """

    steps: tuple[PlanStep, ...] | None
    failed_index: int = -1
    impossible: GroundAction | None = None


class _StoppedError(Exception):
    """The clock or the attempts ran out, or an action turned out to be impossible."""


def refine_skeleton(
    skeleton: Sequence[GroundAction],
    *,
    scene: SceneGraph,
    q: Configuration,
    problem: Problem,
    domain: PlanningDomain,
    arm: ArmMotion,
    budget: RefinementBudget,
    seed: Sequence[int],
    log: FailureLog,
    is_over: Callable[[], bool],
    on_step: Callable[[int], None] = lambda _: None,
) -> RefinementOutcome:
    """Find motions for all actions of a skeleton.

    Args:
        skeleton: the actions.
        scene: the scene at the start.
        q: (n_joints,) configuration at the start.
        problem: the task, with the state derived from ``scene``.
        domain: the domain.
        arm: works out single actions.
        budget: bounds on attempts.
        seed: numbers that seed this refinement.
        log: where failures are counted.
        is_over: tells whether the time is up; asked before each attempt.
        on_step: told the number of steps refined so far, for progress.

    Raises:
        SemanticsMismatchError: a scene whose state differs from what PDDL predicts.
    """
    search = _Search(tuple(skeleton), problem, domain, arm, budget, tuple(seed), log, is_over, on_step)
    try:
        steps = search.descend(scene, q, problem.init, ())
    except _StoppedError:
        steps = None
    return RefinementOutcome(steps, search.deepest, search.impossible)


@dataclass
class _Search:
    skeleton: tuple[GroundAction, ...]
    problem: Problem
    domain: PlanningDomain
    arm: ArmMotion
    budget: RefinementBudget
    seed: tuple[int, ...]
    log: FailureLog
    is_over: Callable[[], bool]
    on_step: Callable[[int], None]
    deepest: int = 0
    attempts: int = 0
    visits: int = 0
    impossible: GroundAction | None = None

    def descend(
        self, scene: SceneGraph, q: Configuration, state: State, done: tuple[PlanStep, ...]
    ) -> tuple[PlanStep, ...] | None:
        """Refine the actions after ``done``; the recursion is as deep as the skeleton is long."""
        index = len(done)
        self.on_step(index)
        if index == len(self.skeleton):
            return done
        self.deepest = max(self.deepest, index)
        action = self.skeleton[index]
        predicted = state.apply(action, self.problem)
        for refinement in self._refinements(action, index, scene, q):
            self._compare(action, predicted, refinement)
            step = refinement.step(action)
            found = self.descend(refinement.scene, refinement.q, predicted, (*done, step))
            if found is not None:
                return found
        return None

    def _refinements(
        self, action: GroundAction, index: int, scene: SceneGraph, q: Configuration
    ) -> Iterator[Refinement]:
        """Yield motions for one action until the attempts of this visit are used up."""
        self.visits += 1
        visit_seed = (*self.seed, index, self.visits)
        context = ActionContext(scene, q, np.random.default_rng(visit_seed))
        left = self.budget.attempts_per_visit
        number, is_final = -1, True
        for number, candidate in enumerate(self.domain.semantics.candidates(action, context)):
            seed = int(np.random.SeedSequence((*visit_seed, number)).generate_state(1)[0])
            for attempt in candidate.refine(self.arm, context, seed=seed):
                self._count()
                if isinstance(attempt, MotionFailure):
                    _logger.debug("%s fails: %s", action, attempt)
                    self.log.add(action, attempt)
                    is_final = is_final and attempt.is_final
                else:
                    is_final = False
                    _logger.debug("%s refined: %s", action, attempt.choice)
                    yield attempt
                left -= 1
                if left <= 0:
                    return
        if number < 0:
            cause = "the domain's semantics knows no way to carry it out"
            self.log.add(action, MotionFailure("choosing", cause, kind=FailureKind.NO_CHOICE))
        elif is_final:
            self.impossible = action
            raise _StoppedError

    def _count(self) -> None:
        self.attempts += 1
        self.log.attempts += 1
        if self.attempts > self.budget.attempts or self.is_over():
            raise _StoppedError

    def _compare(self, action: GroundAction, predicted: State, refinement: Refinement) -> None:
        objects = {name: types[0] for name, types in self.problem.objects.items()}
        derived = self.domain.state(refinement.scene, objects, refinement.q)
        difference = predicted.difference(derived)
        if difference:
            raise SemanticsMismatchError(
                f"after {action} the scene does not say what domain '{self.domain.name}' predicts: {difference}",
                action=str(action),
                missing=tuple(str(fact) for fact in difference.missing),
                unexpected=tuple(str(fact) for fact in difference.unexpected),
            )
