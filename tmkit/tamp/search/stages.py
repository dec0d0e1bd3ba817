"""Searches of one run: first with the useful objects of the scene, later also with all objects.

Invariants: the order depends only on results; the time limit only ends the search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.pddl import And, Problem
from tmkit.pddl.formulas import Atom
from tmkit.plans.values import PlanStep
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.diagnosis import PlanStatus
from tmkit.tamp.domains.infeasibility import Infeasibility, necessary_facts
from tmkit.tamp.domains.separation import prove_separated
from tmkit.tamp.goals.compilation import GOAL_MET, GoalDomain
from tmkit.tamp.search.version_search import SearchStatus, VersionSearch
from tmkit.task_planning import TaskPlanStatus
from tmkit.task_planning.protocol import PreparedTask, UnsolvabilityTask


@dataclass(frozen=True, eq=False)
class FoundPlan:
    """A plan and the task that it solves.

    Attributes:
        steps: steps of the plan.
        problem: PDDL problem with all objects or the useful ones.
        task: the same problem, prepared by the task planner.
    """

    steps: tuple[PlanStep, ...]
    problem: Problem
    task: PreparedTask


class _Stage:
    """A search that is created at its first turn."""

    def __init__(self, context: PlanningContext, log: SearchLog, problem: Problem) -> None:
        self.context, self.log, self.problem = context, log, problem
        self.status, self.turns = SearchStatus.RUNNING, 0
        self._task: PreparedTask | None = None
        self._search: VersionSearch | None = None

    def advance(self) -> FoundPlan | None:
        """Search for one iteration."""
        context, log = self.context, self.log
        self.turns += 1
        if self._task is None:
            with log.clock.phase(PlanningStage.TASK):
                self._task = context.task_planner.prepare(
                    self.problem, time_limit=log.seconds_left()
                )
            if self._is_proved(self._task):
                self.status = SearchStatus.PROVED
                return None
        if self._search is None:
            self._search = VersionSearch(context, log, self.problem, self._task)
        steps = self._search.advance()
        self.status = self._search.status
        return None if steps is None else FoundPlan(steps, self.problem, self._task)

    def _is_proved(self, task: PreparedTask) -> bool:
        """Return whether the task planner proves that there is no plan before the search."""
        if isinstance(task, UnsolvabilityTask) and task.is_goal_impossible():
            return True
        if not self.problem.domain.uncontrollable_actions:
            return False
        result = self.context.task_planner.search(task, time_limit=self.log.seconds_left())
        return result.status is TaskPlanStatus.UNSOLVABLE


def find_plan(
    context: PlanningContext, log: SearchLog, reduced_problem: Problem | None
) -> tuple[PlanStatus, FoundPlan | None]:
    """Search for a plan or a proof until all searches end or a limit is reached.

    Args:
        context: settings of the run.
        log: log of the run, to which proofs are added.
        reduced_problem: problem without useless objects; None if all are useful.
    """
    full_stage = _Stage(context, log, context.problem)
    stages = {full_stage: 0}
    if reduced_problem is not None:
        delay = context.options.search.all_objects_after
        stages = {_Stage(context, log, reduced_problem): 0, full_stage: delay}
    has_tried_proofs = False
    while stages and not context.is_at_limit(log):
        stage = min(stages, key=lambda candidate: stages[candidate] + candidate.turns)
        plan = stage.advance()
        if plan is not None:
            return PlanStatus.SOLVED, plan
        if not has_tried_proofs:
            has_tried_proofs = True
            with log.clock.phase(PlanningStage.SEMANTICS):
                is_proved = log.note_proofs(_prove_separations(context))
            if is_proved:
                return PlanStatus.PROVED_UNSOLVABLE, None
        if stage.status is SearchStatus.RUNNING:
            continue
        if stage is full_stage:
            if stage.status is SearchStatus.PROVED and _is_proved(context, log):
                return PlanStatus.PROVED_UNSOLVABLE, None
            break
        del stages[stage]
    return PlanStatus.NO_PLAN_WITHIN_LIMITS, None


def _prove_separations(context: PlanningContext) -> tuple[Infeasibility, ...]:
    """Return proofs that the hand cannot touch objects that the goal requires."""
    if len(context.robots) > 1:
        return ()
    arm, semantics = context.robots[0], context.domain.semantics
    required_picks = semantics.objects_to_move(necessary_facts(context.problem), context.scene)
    proofs = (
        prove_separated(context.scene, target, q=context.q, robot=arm) for target in required_picks
    )
    return tuple(proof for proof in proofs if proof is not None)


def _is_proved(context: PlanningContext, log: SearchLog) -> bool:
    """Return whether PDDL alone proves that the task has no plan.

    A task with goal poses or regions represents them by facts. Two poses in one cell exclude each
    other in these facts only, so the task is searched again without them.
    """
    if not isinstance(context.domain, GoalDomain):
        return True
    goal = context.problem.goal
    parts = goal.parts if isinstance(goal, And) else (goal,)
    symbolic_goal = And(
        tuple(part for part in parts if not (isinstance(part, Atom) and part.predicate == GOAL_MET))
    )
    problem = replace(context.problem, goal=symbolic_goal)
    task = context.task_planner.prepare(problem, time_limit=log.seconds_left())
    result = context.task_planner.search(task, time_limit=log.seconds_left())
    return result.status is TaskPlanStatus.UNSOLVABLE
