"""Context of a planning run and the log of its search.

A :class:`PlanningContext` has the question, the means and the limits, and what follows from these
alone; it never changes. What a run finds, counted and timed, is in its :class:`SearchLog`. Both are
handed down to all that searches, which so needs nothing of what drives it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tmkit._support.initialization import initialize
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner, arm_motion_planners
from tmkit.manipulation.actions.primitives import MotionSettings
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionRules
from tmkit.pddl import Problem
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.values import Configuration, Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.domains.infeasibility import Infeasibility
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import metric_of
from tmkit.tamp.goals.compilation import move_on
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.search_tree import RecordedNode
from tmkit.tamp.version_tree import FailureLog, SceneVersion, VersionTree
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult
from tmkit.task_planning.protocol import CheckedTaskPlanner, PreparedTask

_MOST_DOUBLINGS = 12  # of budgets: later iterations have those of this one


def budget_growth(number: int) -> int:
    """Return how many times the budgets of the first iteration those of another, from 0, are."""
    return 1 << min(number, _MOST_DOUBLINGS)


@dataclass(eq=False)
class SearchLog:
    """What a run has found so far. It begins when it is made.

    Attributes:
        seconds_to_search: seconds from the beginning after which the search ends.
        began: when that was, by the monotonic clock.
        trees: the version trees of all searches, in the order in which they were begun.
        infeasibilities: why the goal is impossible, where the domain proved it.
        nodes: the nodes of the search, if the search tree is recorded.
        end: the version in which the first plan ends; None before it is found.
        best: the cost of the best plan so far, in words; empty before there is one.
        searches: what searched for task plans, where the planner has several searches.
    """

    seconds_to_search: float
    began: float = field(default_factory=lambda: time.monotonic())
    clock: StageClock = field(default_factory=StageClock)
    failures: FailureLog = field(default_factory=FailureLog)
    trees: list[VersionTree] = field(default_factory=list)
    skeletons: int = 0
    iterations: int = 0
    constraints: list[LearnedConstraint] = field(default_factory=list)
    infeasibilities: tuple[Infeasibility, ...] = ()
    nodes: list[RecordedNode] = field(default_factory=list)
    end: SceneVersion | None = None
    best: str = ""
    searches: dict[str, None] = field(default_factory=dict)

    def use_all_time(self, seconds: float) -> None:
        """Search on for the seconds that were kept for the explanation, since there is a plan."""
        self.seconds_to_search = seconds

    def note_proofs(self, proofs: tuple[Infeasibility, ...]) -> bool:
        """Record proofs that the goal is impossible; return whether there are any."""
        self.infeasibilities = proofs
        return bool(proofs)

    def note_best(self, text: str) -> None:
        """Record the cost of the best plan so far."""
        self.best = text

    def count_task_plan(self) -> None:
        """Count a task plan that is refined."""
        self.skeletons += 1

    def count_round(self) -> None:
        """Count a round of the search that ended."""
        self.iterations += 1

    def record(self, node: RecordedNode) -> None:
        """Record a node of the search."""
        self.nodes.append(node)

    def end_at(self, version: SceneVersion) -> None:
        """Record the version in which a plan ends."""
        self.end = version

    def note_tree(self, tree: VersionTree) -> None:
        """Record the version tree of a search that begins."""
        self.trees.append(tree)

    def note_constraint(self, constraint: LearnedConstraint) -> None:
        """Record a constraint that the search learned."""
        self.constraints.append(constraint)

    def note_search(self, name: str) -> None:
        """Record which search found a task plan."""
        self.searches[name] = None

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


@dataclass(frozen=True, eq=False)
class PlanningContext:
    """What a run was given.

    Attributes:
        goal: the goal in PDDL as it was stated.
        finds_causes: whether a run without a plan looks for geometric causes.
    """

    scene: SceneGraph
    q: Configuration
    manipulators: tuple[Manipulator, ...]
    domain: PlanningDomain
    problem: Problem
    options: PlanningOptions
    goal: str
    continuous_goals: tuple[ContinuousGoal, ...] = ()
    on_progress: Callable[[PlanningProgress], None] | None = None
    finds_causes: bool = True
    rules: CollisionRules = field(init=False)
    sampling: SeededSamplers = field(init=False)
    task_planner: TaskPlanner[Any] = field(init=False)

    def __post_init__(self) -> None:
        first, *others = self.manipulators
        planner = self.options.task_planner or FastDownward()
        assert not isinstance(planner, str)  # options replace names at construction
        is_ours = type(planner) in (FastDownward, CheckedTaskPlanner)
        initialize(
            self,
            rules=CollisionRules.from_start(first, self.scene, q=self.q, others=tuple(others)),
            sampling=self._sampling(self.options.seed),
            task_planner=planner if is_ours else CheckedTaskPlanner(planner),
        )

    def _sampling(self, seed: int) -> SeededSamplers:
        return SeededSamplers(self.options.samplers or Samplers(), self.manipulators[0], seed)

    def with_problem(
        self, scene: SceneGraph, problem: Problem, *, options: PlanningOptions
    ) -> PlanningContext:
        """Return the context of another scene, goal and options, for a run that reports no progress."""
        options = replace(
            options, improve=0, suggest=False, record_tree=False, explanation_share=0.0
        )
        return replace(
            self,
            scene=scene,
            problem=problem,
            options=options,
            on_progress=None,
            finds_causes=False,
        )

    def new_log(self) -> SearchLog:
        """Return the log of a run that begins now."""
        seconds = self.options.seconds
        return SearchLog(
            seconds if seconds == math.inf else seconds - self.options.seconds_to_explain
        )

    @property
    def goal_in_words(self) -> str:
        """The goal for people: in PDDL, and what PDDL cannot say."""
        # with nothing but goals that PDDL cannot say
        stated = [] if self.goal == "(and)" else [self.goal]
        return " and ".join([*stated, *map(str, self.continuous_goals)]) or self.goal

    def is_at_limit(self, log: SearchLog) -> bool:
        """Whether a limit ends the search."""
        limit = self.options.max_iterations
        return log.is_over() or (limit is not None and log.iterations >= limit)

    def report(self, log: SearchLog, phase: str, step: int, steps: int) -> None:
        """Report progress, if requested; ``steps`` is 0 if unknown."""
        if self.on_progress is not None:
            skeleton = log.skeletons + (phase == "task")
            attempts = log.failures.attempts
            self.on_progress(
                PlanningProgress(phase, step, steps, log.seconds, skeleton, attempts, log.best)
            )

    def search(self, log: SearchLog, task: PreparedTask) -> TaskPlanResult:
        """Compute a skeleton with the task planner."""
        self.report(log, "task", 0, 0)
        with log.clock.phase(PlanningStage.TASK):
            found = self.task_planner.search(task, time_limit=log.seconds_left())
            if found.statistics.search:
                log.note_search(found.statistics.search)
            return found

    def arms(
        self,
        clock: StageClock,
        number: int,
        *,
        path_iterations: int | None = None,
        corridors: Sequence[Configuration] = (),
    ) -> dict[str, ArmMotionPlanner]:
        """Return the motion generators of the arms, with the budget of an iteration.

        Args:
            path_iterations: iterations of one path search to any configuration at a contact; by
                default one is searched to each, with those of the options, doubled with each
                iteration.
            corridors: paths that led into narrow places; see :class:`MotionSettings`.
        """
        if path_iterations is None:
            budget = MotionSettings(
                path_iterations=self.options.path_iterations * budget_growth(number)
            )
        else:
            budget = MotionSettings(
                8, path_iterations=path_iterations, is_multi_goal=True, corridors=corridors
            )
        planner = self.options.motion_planner
        assert not isinstance(planner, str)  # options replace names at construction
        return arm_motion_planners(
            self.manipulators, budget=budget, rules=self.rules, clock=clock, motion_planner=planner
        )

    def finish(self, clock: StageClock) -> Callable[[SceneVersion], PlanStep | None] | None:
        """Return what becomes of the last step, where there are goals of the arm."""
        goals = tuple(goal for goal in self.continuous_goals if isinstance(goal, ArmAt))
        return (
            (lambda node: move_on(node, goals, self.arms(clock, 0), self.domain)) if goals else None
        )

    def tree(
        self, log: SearchLog, problem: Problem, domain: PlanningDomain, *, seed: int
    ) -> VersionTree:
        """Return an empty version tree."""
        sampling = self.sampling if seed == self.options.seed else self._sampling(seed)
        tree = VersionTree(
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
        log.note_tree(tree)
        return tree

    def plan_of(self, steps: tuple[PlanStep, ...], searched: PlanningDomain | None = None) -> Plan:
        """Return the plan of some steps; ``searched`` is the domain of their actions, if it is not that of the plan."""
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
            seed=self.options.seed,
            steps=steps,
            continuous_goals=self.continuous_goals,
            metric=None if self.problem.metric is metric_of(domain.domain) else self.problem.metric,
            values=dict(self.problem.values),
        )
