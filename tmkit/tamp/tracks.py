"""What a run searches: tracks, each one task over one refinement tree, advanced an iteration at a time.

The track whose turn is least advances:

* the task of the useful objects, from turn 0;
* the task of all objects, from turn 4: it is larger, and seldom needed;
* for either, once a movable object was in the way of an action, the same task with relocations
  (:mod:`tmkit.tamp.goals.relocations`), half a turn later.

Beside them goes a search over transfers (:mod:`tmkit.tamp.transfers.search`), with attempts in proportion to theirs.

Invariants: the order of iterations follows from their results alone; the time limit only stops.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from tmkit.manipulation.actions.timing_breakdown import PlanningPhase
from tmkit.pddl import And, Atom, Problem
from tmkit.plans.values import PlanStep
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.diagnosis import PlanStatus
from tmkit.tamp.domains.infeasibility import Infeasibility, necessary_facts
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.separation import separated
from tmkit.tamp.goals.compilation import GOAL_MET, GoalDomain
from tmkit.tamp.goals.relocations import RelocationDomain, with_relocations
from tmkit.tamp.iteration import IterationResult, PlanningIteration
from tmkit.tamp.refinement_tree import FailureLog, RefinementTree
from tmkit.tamp.transfers.search import TransferSearch
from tmkit.task_planning import FastDownward, PreparedTask, ProvingTask, TaskPlanStatus

_logger = logging.getLogger(__name__)

_ALL_OBJECTS_AFTER = 4  # iterations with the useful objects alone
_RELOCATIONS_AFTER = 0.5
_TRANSFERS_AFTER = 64  # failed attempts after which the search over transfers begins
_ATTEMPTS_PER_MOVE = 3  # of task plans for each attempt of that search, which takes so much longer
_PATIENCE = 6  # by which both are multiplied while what is learned still leads to new task plans
_CHOICE = 16  # places aside that a domain lists at once for that search, which compares them itself
_LAST_MOVES = 96  # attempts of that search when the task plans have come to an end


def search_tracks(
    context: PlanningContext, log: SearchLog, useful: Problem | None
) -> tuple[PlanStatus, SearchTrack | None, tuple[PlanStep, ...]]:
    """Advance tracks until one has a plan, nothing is left or at a limit; return status, track and steps of the plan.

    Args:
        useful: its task without objects of no use; None where all are.
    """
    tracks = [] if useful is None else [SearchTrack(context, log, useful, context.domain)]
    tracks.append(
        SearchTrack(
            context, log, context.problem, context.domain, turn=_ALL_OBJECTS_AFTER if tracks else 0, is_whole=True
        )
    )
    beside, has_tried = _TransfersBeside(context, log), False
    while tracks and not context.is_at_limit(log):
        track = min(tracks, key=lambda candidate: candidate.turn)
        if track.repeats_what_failed():
            if len(tracks) == 1:
                break
            track.turn += 1
            continue
        ended = track.advance(beside.after)
        if ended.steps is not None:
            return PlanStatus.SOLVED, beside.track if ended.is_beside else track, ended.steps
        if not has_tried:
            has_tried = True
            with log.clock.phase(PlanningPhase.SEMANTICS):
                log.infeasibilities = _separations(context)
            if log.infeasibilities:
                return PlanStatus.PROVED_UNSOLVABLE, None, ()
        if ended.status is not None:
            if track.is_whole:
                status = _proved(context, log, ended.status)
                if status is PlanStatus.PROVED_UNSOLVABLE:
                    return status, None, ()
                break
            tracks.remove(track)
        relocating = track.with_relocations(ended)
        if relocating is not None:
            tracks.append(relocating)
    steps = None if context.is_at_limit(log) else beside.advance(_LAST_MOVES)
    if steps is not None:
        return PlanStatus.SOLVED, beside.track, steps
    return PlanStatus.NO_PLAN_WITHIN_LIMITS, None, ()


class _TransfersBeside:
    """The search over transfers of a run, which begins when it is first needed.

    ``track`` is the task that it searches; None before it begins, or where it cannot.
    """

    def __init__(self, context: PlanningContext, log: SearchLog) -> None:
        self.context, self.log = context, log
        self.track: SearchTrack | None = None
        self._search: TransferSearch | None = None
        self._has_begun = self._is_needed = False
        self._attempts = self._moves = 0

    def after(self, attempts: int, is_blocked: bool) -> tuple[PlanStep, ...] | None:
        """Advance after a task plan failed with so many attempts; return the steps of a plan, or None.

        Task plans do without it as long as each constraint leads to another one, and no movable object was in the way.
        """
        self._is_needed |= is_blocked or self.log.iterations > 0
        self._attempts += attempts
        patience = 1 if self._is_needed else _PATIENCE
        if self._attempts < patience * _TRANSFERS_AFTER and not self._has_begun:
            return None
        moves = self._attempts // (patience * _ATTEMPTS_PER_MOVE) - self._moves
        self._moves += moves
        return self.advance(moves)

    def advance(self, moves: int) -> tuple[PlanStep, ...] | None:
        """Make so many attempts at most; return the steps of a plan, or None."""
        if not self._has_begun:
            self._has_begun = True
            self._begin()
        steps = None if self._search is None else self._search.advance(moves)
        if steps is not None and self.track is not None:
            self.track.prepared()
        return steps

    def _begin(self) -> None:
        context, log = self.context, self.log
        if context.domain.probabilistic_predicates or len(context.manipulators) > 1:
            return  # its tables of free grasps take poses to be exact, and are of one hand
        with log.clock.phase(PlanningPhase.SEMANTICS):
            extended = with_relocations(context.domain, context.problem, context.scene, q=context.q)
        domain, problem = context.domain, context.problem
        if extended is not None:
            domain, problem = replace(extended[0], choice=_CHOICE), extended[1]
        with log.clock.phase(PlanningPhase.TASK):
            task = FastDownward().prepare(problem, time_limit=log.seconds_left())
        if not task.is_complete:
            return
        self.track = SearchTrack(context, log, problem, domain)
        own = replace(log, failures=FailureLog(), trees=[])  # explanations are about the task plans
        tree = log.transfers = context.tree(own, problem, domain, seed=context.options.seed)
        search = TransferSearch(context, own, tree, task, seed=context.options.seed)
        self._search = search if search.is_usable else None


def _separations(context: PlanningContext) -> tuple[Infeasibility, ...]:
    """Return why the hand cannot touch objects that it has to, where that is proved."""
    if len(context.manipulators) > 1:
        return ()
    arm, semantics = context.manipulators[0], context.domain.semantics
    handled = semantics.handled(necessary_facts(context.problem), context.scene)
    found = (separated(context.scene, one, q=context.q, manipulator=arm) for one in handled)
    return tuple(proof for proof in found if proof is not None)


def _proved(context: PlanningContext, log: SearchLog, status: PlanStatus) -> PlanStatus:
    """Return the status of the whole task, as far as it is proved where goals are poses or regions.

    The task represents poses by facts alone, and two poses in one cell exclude each other only in its facts. So what is
    proved is what PDDL alone rules out.
    """
    if status is not PlanStatus.PROVED_UNSOLVABLE or not isinstance(context.domain, GoalDomain):
        return status
    goal = context.problem.goal
    parts = goal.parts if isinstance(goal, And) else (goal,)
    stated = And(tuple(part for part in parts if not (isinstance(part, Atom) and part.predicate == GOAL_MET)))
    task = context.task_planner.prepare(replace(context.problem, goal=stated), time_limit=log.seconds_left())
    if context.task_planner.search(task, time_limit=log.seconds_left()).status is TaskPlanStatus.UNSOLVABLE:
        return status
    return PlanStatus.NO_PLAN_WITHIN_LIMITS


class SearchTrack:
    """One task that a run searches.

    Args:
        turn: when its first iteration is due.
        is_whole: whether it is the whole task, with all objects and nothing added: then proofs count.

    Attributes:
        first: the prepared task, without constraints; None before the first iteration.
    """

    def __init__(
        self, context: PlanningContext, log: SearchLog, problem: Problem, domain: PlanningDomain, *, turn: float = 0.0,
        is_whole: bool = False,
    ) -> None:  # fmt: skip
        self.context, self.log = context, log
        self.problem, self.domain, self.turn, self.is_whole = problem, domain, turn, is_whole
        self.number = 0
        self.first: PreparedTask | None = None
        self._task: PreparedTask | None = None
        self._tree: RefinementTree | None = None
        self._has_relocations = isinstance(domain, RelocationDomain)

    def advance(self, beside: Callable[[int, bool], tuple[PlanStep, ...] | None]) -> IterationResult:
        """Carry out the next iteration."""
        context, log, number = self.context, self.log, self.number
        task = self.prepared()
        if isinstance(task, ProvingTask) and number == 0 and task.is_goal_impossible():
            return IterationResult(task, status=PlanStatus.PROVED_UNSOLVABLE)
        if self._tree is None:
            self._tree = context.tree(log, self.problem, self.domain, seed=context.options.seed)
        before = log.skeletons
        _logger.debug("iteration %d", number + 1)
        self._tree.arms = context.arms(log.clock, number)
        iteration = PlanningIteration(context, log, self._tree, task=task, number=number, beside=beside)
        ended = iteration.run()
        if not self._has_relocations or ended.steps is not None:
            log.forbidden = iteration.forbidden
        if log.skeletons > before or ended.status is None:
            log.iterations += 1
        self._task = ended.kept
        self.number += 1
        self.turn += 1
        return ended

    def repeats_what_failed(self) -> bool:
        """Whether all objects would bring nothing, since the constraints learned with fewer leave no task plan."""
        context, log = self.context, self.log
        if not (self.is_whole and self.number == 0 and log.forbidden):
            return False
        with log.clock.phase(PlanningPhase.TASK):
            task = self.prepared()
            if isinstance(task, ProvingTask) and task.is_goal_impossible():
                return False
            for action, contexts in log.forbidden.items():
                for facts in contexts:
                    task = task.forbid(action, sorted(facts))
            return context.task_planner.search(task, time_limit=log.seconds_left()).status is TaskPlanStatus.UNSOLVABLE

    def with_relocations(self, ended: IterationResult) -> SearchTrack | None:
        """Return the track of the same task with relocations, once, when movable objects were in the way."""
        if self._has_relocations or not ended.is_blocked:
            return None
        context, log, self._has_relocations = self.context, self.log, True
        with log.clock.phase(PlanningPhase.SEMANTICS):
            extended = with_relocations(self.domain, self.problem, context.scene, q=context.q)
        if extended is None:
            return None
        domain, problem = extended
        return SearchTrack(context, log, problem, domain, turn=self.turn - 1 + _RELOCATIONS_AFTER)

    def prepared(self) -> PreparedTask:
        """Return the task translated, with what was forbidden for good."""
        if self._task is None:
            with self.log.clock.phase(PlanningPhase.TASK):
                planner = self.context.task_planner
                self.first = self._task = planner.prepare(self.problem, time_limit=self.log.seconds_left())
        return self._task
