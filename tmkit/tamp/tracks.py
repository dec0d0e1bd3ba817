"""What a run searches: tracks, each one task over one refinement tree, advanced an iteration at a time.

A run has up to four tracks, and always advances the one whose turn is least:

* the task of the useful objects, from turn 0;
* the task of all objects, from turn 4: it is larger, and seldom needed;
* for either, once a movable object was in the way of an action, the same task with relocations
  (:mod:`tmkit.tamp.goals.relocations`), half a turn later.

Budgets double from iteration to iteration of a track, and every track that has not ended gets its turn again, so the
whole is probabilistically complete.

Invariants: the order of iterations follows from their results alone; the time limit only stops.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tmkit.manipulation.actions.timing_breakdown import PlanningPhase
from tmkit.pddl import And, Atom, Problem
from tmkit.plans.values import PlanStep
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.problems import replace_goal
from tmkit.tamp.goals.compilation import GoalDomain
from tmkit.tamp.goals.relocations import RelocationDomain, with_relocations
from tmkit.tamp.iteration import PlanningRound, RoundEnd
from tmkit.tamp.result import PlanStatus
from tmkit.task_planning import PreparedTask, ProvingTask, TaskPlanStatus

if TYPE_CHECKING:
    from tmkit.tamp.refinement_tree import RefinementTree
    from tmkit.tamp.run import PlanningRun

__all__ = ["SearchTrack", "search_tracks"]

_logger = logging.getLogger(__name__)

_ALL_OBJECTS_AFTER = 4  # iterations with the useful objects alone
_RELOCATIONS_AFTER = 0.5


def search_tracks(
    run: PlanningRun, useful: Problem | None
) -> tuple[PlanStatus, SearchTrack | None, tuple[PlanStep, ...]]:
    """Advance the tracks of a run until one has a plan, nothing is left to try or a limit is reached.

    Args:
        run: the run.
        useful: its task without objects of no use; None where all are.

    Returns:
        The status, and with a plan the track and the steps.
    """
    tracks = [] if useful is None else [SearchTrack(run, useful, run.domain)]
    tracks.append(SearchTrack(run, run.problem, run.domain, turn=_ALL_OBJECTS_AFTER if tracks else 0, is_whole=True))
    while tracks and not run.is_at_limit():
        track = min(tracks, key=lambda candidate: candidate.turn)
        if track.repeats_what_failed():
            if len(tracks) == 1:
                break
            track.turn += 1
            continue
        ended = track.advance()
        if ended.steps is not None:
            return PlanStatus.SOLVED, track, ended.steps
        if ended.status is not None:
            if track.is_whole:
                return _proved(run, ended.status), None, ()
            tracks.remove(track)
        relocating = track.with_relocations(ended)
        if relocating is not None:
            tracks.append(relocating)
    return PlanStatus.NO_PLAN_WITHIN_LIMITS, None, ()


def _proved(run: PlanningRun, status: PlanStatus) -> PlanStatus:
    """Return a verdict on the whole task, as far as it is proved where goals are poses or regions.

    The task knows poses by facts alone, and two poses in one cell exclude each other only in its words. So what is
    proved is what PDDL alone rules out.
    """
    if status is not PlanStatus.PROVED_UNSOLVABLE or not isinstance(run.domain, GoalDomain):
        return status
    met = {goal.met.predicate for goal in run.domain.goals}
    goal = run.problem.goal
    parts = goal.parts if isinstance(goal, And) else (goal,)
    stated = And(tuple(part for part in parts if not (isinstance(part, Atom) and part.predicate in met)))
    task = run.planner.prepare(replace_goal(run.problem, stated), time_limit=run.seconds_left())
    if run.planner.search(task, time_limit=run.seconds_left()).status is TaskPlanStatus.UNSOLVABLE:
        return status
    return PlanStatus.NO_PLAN_WITHIN_LIMITS


class SearchTrack:
    """One task that a run searches.

    Args:
        run: the run.
        problem: the task.
        domain: its domain.
        turn: when its first iteration is due.
        is_whole: whether it is the whole task, with all objects and nothing added, so that proofs count.

    Attributes:
        first: the prepared task, without constraints; None before the first iteration.
    """

    def __init__(
        self, run: PlanningRun, problem: Problem, domain: PlanningDomain, *, turn: float = 0.0, is_whole: bool = False
    ) -> None:
        self.run_, self.problem, self.domain, self.turn, self.is_whole = run, problem, domain, turn, is_whole
        self.number = 0
        self.first: PreparedTask | None = None
        self._task: PreparedTask | None = None
        self._tree: RefinementTree | None = None
        self._has_relocations = isinstance(domain, RelocationDomain)

    def advance(self) -> RoundEnd:
        """Carry out the next iteration."""
        run, number = self.run_, self.number
        task = self._prepared()
        if isinstance(task, ProvingTask) and number == 0 and task.goal_is_impossible():
            return RoundEnd(task, status=PlanStatus.PROVED_UNSOLVABLE)
        if self._tree is None:
            self._tree = run.tree(self.problem, self.domain, seed=run.seed)
        before = run.skeletons
        _logger.debug("iteration %d", number + 1)
        self._tree.arms = run.arms(number)
        round_ = PlanningRound(run, self._tree, task=task, number=number)
        ended = round_.run()
        if not self._has_relocations or ended.steps is not None:
            run.lessons = round_.forbidden
        if run.skeletons > before or ended.status is None:
            run.iterations += 1
        self._task = ended.kept
        self.number += 1
        self.turn += 1
        return ended

    def repeats_what_failed(self) -> bool:
        """Whether all objects would bring nothing, since the constraints learned with fewer leave no task plan."""
        run = self.run_
        if not (self.is_whole and self.number == 0 and run.lessons):
            return False
        with run.clock.phase(PlanningPhase.TASK):
            task = self._prepared()
            if isinstance(task, ProvingTask) and task.goal_is_impossible():
                return False
            for action, contexts in run.lessons.items():
                for context in contexts:
                    task = task.forbid(action, sorted(context))
            return run.planner.search(task, time_limit=run.seconds_left()).status is TaskPlanStatus.UNSOLVABLE

    def with_relocations(self, ended: RoundEnd) -> SearchTrack | None:
        """Return the track of the same task with relocations, once, when movable objects were in the way."""
        if self._has_relocations or not ended.is_blocked:
            return None
        run, self._has_relocations = self.run_, True
        with run.clock.phase(PlanningPhase.SEMANTICS):
            extended = with_relocations(self.domain, self.problem, run.scene, q=run.q)
        if extended is None:
            return None
        domain, problem = extended
        return SearchTrack(run, problem, domain, turn=self.turn - 1 + _RELOCATIONS_AFTER)

    def _prepared(self) -> PreparedTask:
        if self._task is None:
            with self.run_.clock.phase(PlanningPhase.TASK):
                planner = self.run_.planner
                self.first = self._task = planner.prepare(self.problem, time_limit=self.run_.seconds_left())
        return self._task
