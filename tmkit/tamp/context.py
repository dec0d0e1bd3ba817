"""What a planning run was given: the question, the means and the limits, and what follows from these alone.

A :class:`PlanningContext` never changes; what a run finds is in its :class:`~tmkit.tamp.search_log.SearchLog`. Both are
handed down to all that searches, which so needs nothing of what drives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotion, arm_motions
from tmkit.manipulation.actions.primitives import MotionBudget
from tmkit.manipulation.actions.timing_breakdown import PhaseClock, PlanningPhase
from tmkit.manipulation.samplers import Samplers, Sampling
from tmkit.motion import CollisionRules, MotionPlanner
from tmkit.pddl import Problem
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.values import Configuration, Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.problems import metric_of
from tmkit.tamp.goals.compilation import move_on
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.refinement_tree import RefinementNode, RefinementTree
from tmkit.tamp.search_log import SearchLog
from tmkit.task_planning import PreparedTask, TaskPlanner, TaskPlanResult

__all__ = ["PlanningContext", "PlanningLimits", "budget_growth"]

_MOST_DOUBLINGS = 12  # of budgets: later iterations have those of this one


@dataclass(frozen=True)
class PlanningLimits:
    """How far a run goes.

    Attributes:
        seconds: time after which it stops; infinite for none.
        iterations: iterations after which the search ends; None for as many as the time allows.
        explaining: share of the time that is kept for the explanation, should there be no plan.
        skeletons_per_round: task plans tried in each iteration.
        attempts_per_node: motions tried of one action in one scene version, in the first iteration.
        attempts: motions tried for one skeleton in the first iteration, at least; long ones get more.
        path_iterations: iterations of one path search in the first iteration.
        improvements: iterations after the first plan, to make it better; None for as many as the time allows.
    """

    seconds: float = math.inf
    iterations: int | None = None
    explaining: float = 0.0
    skeletons_per_round: int = 48
    attempts_per_node: int = 16
    attempts: int = 200
    path_iterations: int = 2000
    improvements: int | None = 0


def budget_growth(number: int) -> int:
    """Return how many times the budgets of the first iteration those of another, from 0, are."""
    return 1 << min(number, _MOST_DOUBLINGS)


@dataclass(frozen=True, eq=False)
class PlanningContext:
    """What a run was given.

    Attributes:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start.
        manipulators: the arms.
        domain: the domain.
        problem: the task.
        seed: of everything random.
        limits: how far the run goes.
        task_planner: what finds sequences of actions.
        samplers: who proposes grasps and placements.
        motion_planner: what finds paths; that of the core when None.
        goal: the goal in PDDL as it was stated.
        continuous_goals: goals that PDDL cannot express.
        on_progress: who is told how far the run is.
        gives_reasons: whether a run without a plan looks for geometric reasons.
        rules: which collisions count.
        sampling: the samplers with the seed.
    """

    scene: SceneGraph
    q: Configuration
    manipulators: tuple[Manipulator, ...]
    domain: PlanningDomain
    problem: Problem
    seed: int
    limits: PlanningLimits
    task_planner: TaskPlanner[Any]
    samplers: Samplers
    motion_planner: MotionPlanner | None
    goal: str
    continuous_goals: tuple[ContinuousGoal, ...] = ()
    on_progress: Callable[[PlanningProgress], None] | None = None
    gives_reasons: bool = True
    rules: CollisionRules = field(init=False)
    sampling: Sampling = field(init=False)

    def __post_init__(self) -> None:
        first, *others = self.manipulators
        rules = CollisionRules.from_start(first, self.scene, q=self.q, others=tuple(others))
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "sampling", Sampling(self.samplers, first, self.seed))

    def with_question(self, scene: SceneGraph, problem: Problem, *, limits: PlanningLimits) -> PlanningContext:
        """Return the same context for another scene, goal and limits, without progress reports.

        Args:
            scene: the start scene.
            problem: the PDDL problem.
            limits: planning limits.
        """
        limits = replace(limits, improvements=0, explaining=0.0)
        return replace(self, scene=scene, problem=problem, limits=limits, on_progress=None, gives_reasons=False)

    def new_log(self) -> SearchLog:
        """Return the log of a run that begins now."""
        return SearchLog((1.0 - self.limits.explaining) * self.limits.seconds)

    @property
    def goal_in_words(self) -> str:
        """The goal for people: in PDDL, and what PDDL cannot say."""
        stated = [] if self.goal == "(and)" else [self.goal]  # with nothing but goals that PDDL cannot say
        return " and ".join([*stated, *map(str, self.continuous_goals)]) or self.goal

    def is_at_limit(self, log: SearchLog) -> bool:
        """Whether a limit ends the search."""
        return log.is_over() or (self.limits.iterations is not None and log.iterations >= self.limits.iterations)

    def report(self, log: SearchLog, phase: str, step: int, steps: int) -> None:
        """Report progress, if requested.

        Args:
            log: log of the run.
            phase: current phase.
            step: index of the current step.
            steps: number of steps; 0 if unknown.
        """
        if self.on_progress is not None:
            skeleton = log.skeletons + (phase == "task")
            self.on_progress(PlanningProgress(phase, step, steps, log.seconds, skeleton))

    def search(self, log: SearchLog, task: PreparedTask) -> TaskPlanResult:
        """Compute a skeleton with the task planner.

        Args:
            log: log of the run.
            task: the prepared task.
        """
        self.report(log, "task", 0, 0)
        with log.clock.phase(PlanningPhase.TASK):
            return self.task_planner.search(task, time_limit=log.seconds_left())

    def arms(self, clock: PhaseClock, number: int) -> dict[str, ArmMotion]:
        """Return the motion generators of the arms, with the budget of an iteration.

        Args:
            clock: times of phases.
            number: index of the iteration.
        """
        budget = MotionBudget(path_iterations=self.limits.path_iterations * budget_growth(number))
        return arm_motions(
            self.manipulators, budget=budget, rules=self.rules, clock=clock, motion_planner=self.motion_planner
        )

    def finish(self, clock: PhaseClock) -> Callable[[RefinementNode], PlanStep | None] | None:
        """Return what becomes of the last step, where there are goals of the arm."""
        goals = tuple(goal for goal in self.continuous_goals if isinstance(goal, ArmAt))
        return (lambda node: move_on(node, goals, self.arms(clock, 0), self.domain)) if goals else None

    def tree(self, log: SearchLog, problem: Problem, domain: PlanningDomain, *, seed: int) -> RefinementTree:
        """Return an empty refinement tree.

        Args:
            log: log of the run.
            problem: the PDDL problem.
            domain: the domain.
            seed: seed of samplers and motion planner.
        """
        sampling = self.sampling if seed == self.seed else Sampling(self.samplers, self.manipulators[0], seed)
        tree = RefinementTree(
            self.scene,
            self.q,
            problem=problem,
            domain=domain,
            arms=self.arms(log.clock, 0),
            seed=seed,
            log=log.failures,
            clock=log.clock,
            sampling=sampling,
        )
        log.roots.append(tree.root)
        return tree

    def plan_of(self, steps: tuple[PlanStep, ...], searched: PlanningDomain | None = None) -> Plan:
        """Return the plan of some steps.

        Args:
            steps: the steps.
            searched: domain of the steps' actions, if it is not that of the plan.
        """
        domain = self.domain
        if searched is not None:
            steps = tuple(replace(step, action=searched.stated(step.action)) for step in steps)
        return Plan(
            scene=self.scene,
            q=self.q,
            robots=self.manipulators,
            domain=domain.name,
            domain_pddl=domain.pddl,
            domain_digest=domain.digest,
            semantics=domain.semantics_name,
            goal=self.goal,
            seed=self.seed,
            steps=steps,
            continuous_goals=self.continuous_goals,
            metric=None if self.problem.metric is metric_of(domain.domain) else self.problem.metric,
            values=dict(self.problem.values),
        )
