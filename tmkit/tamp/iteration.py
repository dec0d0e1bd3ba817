"""One iteration of a planning run: task plans tried one after the other, and what is learned from those that fail.

Where refinement fails, its cause becomes a constraint on the translated task: what its domain proves to be impossible
is forbidden for good, all else in this iteration only (docs/concepts/planning_algorithm.md, *Shared refinement*). An
iteration ends with a plan, with its number of skeletons, or without a further skeleton. When all that it learned is
proved, the next one would learn the same, and that ends the run.

A failure speaks of frames, the task planner of facts: :func:`context_of` says in facts where the frames stand. Without
knowledge of the frames it is the whole state, which is always right and seldom useful again.

Invariants: an iteration changes the log alone, by what it counts and learns; the task that it was given stays as it is.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tmkit._support.elementary import norm
from tmkit.manipulation.actions.timing_breakdown import PlanningPhase
from tmkit.pddl import Fact, GroundAction, State
from tmkit.pddl.validation import by_turns, shared
from tmkit.plans.values import PlanStep
from tmkit.robots import movable_frames
from tmkit.tamp.context import PlanningContext, SearchLog, budget_growth
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint, PlanStatus
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.refinement import Cause, RefinementBudget, RefinementOutcome, refine_skeleton
from tmkit.tamp.refinement_tree import RefinementTree
from tmkit.task_planning import PreparedTask, TaskPlanStatus
from tmkit.task_planning.schedule import without_redundant_steps

_logger = logging.getLogger(__name__)

_ATTEMPTS_PER_ACTION = 10
_MOST_EQUIVALENT = 128  # constraints that follow from one


@dataclass(frozen=True, eq=False)
class IterationResult:
    """How an iteration ended: with a plan, with a status, or with the task for the next iteration.

    Attributes:
        is_blocked: whether a movable object was in the way of an action that does not name it.
        is_beside: whether the plan is that of the search beside.
    """

    kept: PreparedTask
    steps: tuple[PlanStep, ...] | None = None
    status: PlanStatus | None = None
    is_blocked: bool = False
    is_beside: bool = False


class PlanningIteration:
    """One iteration of a run: its constraints, and which of what it learned is proved.

    Args:
        tree: the tree that all its iterations refine over.
        task: the translated task, with what earlier iterations forbade for good.
        number: of the iteration, from 0; budgets double with it.
        beside: another search, told the attempts of a task plan that failed and :attr:`is_blocked`; it returns a plan
            or None.

    Attributes:
        forbidden: what may not be done any more: by action, the facts under which.
        is_blocked: whether a movable object was in the way of an action that does not name it.
    """

    def __init__(
        self, context: PlanningContext, log: SearchLog, tree: RefinementTree, *, task: PreparedTask, number: int,
        beside: Callable[[int, bool], tuple[PlanStep, ...] | None],
    ) -> None:  # fmt: skip
        self.context, self.log, self.tree, self.number, self.beside = context, log, tree, number, beside
        self.kept = self.task = task  # without, and with what holds in this iteration only
        self.all_proved, self.is_blocked = True, False
        self.forbidden: dict[GroundAction, list[frozenset[Fact]]] = {}

    def run(self) -> IterationResult:
        """Try task plans until one has motions, none is left, or there were enough."""
        context, log = self.context, self.log
        for _ in range(context.options.skeletons_per_iteration):
            found = context.search(log, self.task)
            if found.status is TaskPlanStatus.UNSOLVABLE and log.skeletons == 0:
                return IterationResult(self.kept, status=PlanStatus.PROVED_UNSOLVABLE)
            if found.status is not TaskPlanStatus.SOLVED:
                proved = found.status is TaskPlanStatus.UNSOLVABLE and self.all_proved
                return self._end(PlanStatus.NO_PLAN_WITHIN_LIMITS if proved else None)
            log.skeletons += 1
            steps = self._needed(found.steps)
            _logger.info("task plan %d: %s", log.skeletons, " ".join(map(str, steps)))
            before = log.failures.attempts
            outcome = self._refine(steps)
            if outcome.steps is not None:
                _logger.info("task plan %d has motions", log.skeletons)
                return IterationResult(self.kept, steps=outcome.steps)
            if log.is_over():
                break
            self._learn(outcome)
            found_beside = self.beside(log.failures.attempts - before, self.is_blocked)
            if found_beside is not None:
                return IterationResult(self.kept, steps=found_beside, is_beside=True)
        return self._end()

    def _end(self, status: PlanStatus | None = None) -> IterationResult:
        return IterationResult(self.kept, status=status, is_blocked=self.is_blocked)

    def _needed(self, steps: tuple[GroundAction, ...]) -> tuple[GroundAction, ...]:
        """Return a skeleton without the actions that serve nothing."""

        def is_allowed(action: GroundAction, state: State) -> bool:
            return not any(context <= state.facts for context in self.forbidden.get(action, ()))

        with self.log.clock.phase(PlanningPhase.TASK):
            needed = without_redundant_steps(self.tree.problem, steps, is_allowed=is_allowed)
            if not self.context.options.arms_at_once:
                return needed
            arms = [pddl_name(arm.name) for arm in self.context.manipulators]
            if self.number < 2:  # later, as the planner has it
                needed = shared(self.tree.problem, needed, arms, is_allowed=is_allowed, effort=self._effort)
            return by_turns(self.tree.problem, needed, arms, is_allowed=is_allowed)

    def _effort(self, actions: Sequence[GroundAction], arm: str) -> float:
        """Return how many metres what actions name is from the base of an arm at the start, in all."""
        scene, q = self.context.scene, self.context.q
        bases = {pddl_name(each.name): each.base for each in self.context.manipulators}
        named = {name for action in actions for name in action.arguments if name not in bases}
        frames = [frame for frame in scene.frame_names if pddl_name(frame) in named]
        return sum(round(norm(scene.pose(bases[arm], relative_to=frame, q=q).translation), 6) for frame in frames)

    def _refine(self, skeleton: tuple[GroundAction, ...]) -> RefinementOutcome:
        options, growth = self.context.options, budget_growth(self.number)
        budget = RefinementBudget(
            attempts_per_node=options.attempts_per_action * growth,
            attempts=max(options.attempts_per_skeleton, _ATTEMPTS_PER_ACTION * len(skeleton)) * growth,
            restarts=self.number,
            is_chronological=self.number >= 2,
        )
        return refine_skeleton(
            skeleton, self.tree, budget=budget, is_over=self.log.is_over,
            on_step=lambda step: self.context.report(self.log, "motion", step, len(skeleton)),
            finish=self.context.finish(self.log.clock),
        )  # fmt: skip

    def _learn(self, outcome: RefinementOutcome) -> None:
        """Turn why a skeleton failed into a constraint that excludes it."""
        constraints = self.log.constraints
        if outcome.impossible is not None:
            stated = self.tree.domain.stated(outcome.impossible)
            constraints.append(LearnedConstraint(str(stated), (), is_proved=True))
            _logger.info("forbidden in every state: %s", outcome.impossible)
            self.forbidden[outcome.impossible] = [frozenset()]
            self.kept, self.task = (task.forbid(outcome.impossible, ()) for task in (self.kept, self.task))
            return
        cause = outcome.cause
        assert cause is not None, "a skeleton that fails has a cause"
        context = context_of(cause, self.tree.domain)
        self.is_blocked |= _is_blocked(cause)
        _logger.info("forbidden: %s while %s", cause.action, " ".join(map(str, context)) or "anything")
        stated = self.tree.domain.stated(cause.action)
        constraints.append(LearnedConstraint(str(stated), tuple(map(str, context)), cause.is_proved))
        self.task = self._forbidden(cause, context)
        if not cause.is_proved:
            self.all_proved = False

    def _forbidden(self, cause: Cause, context: tuple[Fact, ...]) -> PreparedTask:
        """Return the task with a constraint, or with a narrower one where that would change nothing."""
        forbidden = [(cause.action, context), *with_equivalent(cause.action, context, cause, self.tree.domain)]
        task = self.task.forbid(*forbidden[0])
        if task is self.task:
            forbidden = [(cause.action, tuple(cause.node.state))]
            task = self.task.forbid(*forbidden[0])
        for action, facts in forbidden[1:]:
            task = task.forbid(action, facts)
        for action, facts in forbidden:
            self.forbidden.setdefault(action, []).append(frozenset(facts))
        return task


def _is_blocked(cause: Cause) -> bool:
    """Return whether a movable object was in the way of an action that does not name it."""
    scene = cause.node.scene
    blocking = (cause.frames or frozenset()).intersection(movable_frames(scene))
    return any(pddl_name(frame) not in cause.action.arguments for frame in blocking)


def context_of(cause: Cause, domain: PlanningDomain) -> tuple[Fact, ...]:
    """Return the facts on which a cause depends, sorted.

    Raises:
        SceneError: the domain's own method refuses the scene.
    """
    state, scene = cause.node.state, cause.node.scene
    if cause.frames is None:
        return tuple(state)
    names = {pddl_name(frame) for frame in cause.frames}
    placed = domain.semantics.placement_facts(cause.frames, state, scene)
    found = {fact for fact in placed if fact in state and fact.predicate not in domain.stored_predicates}
    names.update(fact.arguments[0] for fact in found if fact.arguments)
    return tuple(sorted(found.union(domain.places(names, state))))


def with_equivalent(
    action: GroundAction, context: Sequence[Fact], cause: Cause, domain: PlanningDomain
) -> tuple[tuple[GroundAction, tuple[Fact, ...]], ...]:
    """Return the constraints that follow by exchanging symmetric objects, without the given one, in fixed order.

    None follow when no object of the constraint has an equivalent, or when there would be too many.
    """
    named = {*action.arguments, *(name for fact in context for name in fact.arguments)}
    if domain.places(named, cause.node.state):
        return ()
    classes = domain.semantics.equivalence_classes(cause.node.scene)
    groups = [(own, sorted(group)) for group in map(set, classes) if (own := sorted(named & group))]
    if not groups or math.prod(math.perm(len(group), len(own)) for own, group in groups) > _MOST_EQUIVALENT:
        return ()
    found: dict[tuple[GroundAction, tuple[Fact, ...]], None] = {}
    for chosen in itertools.product(*(itertools.permutations(group, len(own)) for own, group in groups)):
        other: dict[str, str] = {}
        for (own, _), names in zip(groups, chosen, strict=True):
            other.update(zip(own, names, strict=True))
        changed = GroundAction(action.name, tuple(other.get(name, name) for name in action.arguments))
        facts = (Fact(fact.predicate, tuple(other.get(n, n) for n in fact.arguments)) for fact in context)
        found[changed, tuple(sorted(facts))] = None
    found.pop((action, tuple(sorted(context))), None)
    return tuple(found)
