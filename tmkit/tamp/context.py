"""Context of a planning run and log of its search.

A :class:`PlanningContext` is immutable. It contains the inputs of a run and the values that depend
on them alone. A :class:`SearchLog` contains the results, counts and times of one run. All parts of
the search receive both, so they do not depend on the code that runs them.
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
from tmkit.tamp.goals.compilation import append_arm_goals
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.search_tree import RecordedNode
from tmkit.tamp.version_tree import FailureLog, RefinementTask, SceneVersion, VersionTree
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult
from tmkit.task_planning.protocol import CheckedTaskPlanner, PreparedTask

_MAX_DOUBLINGS = 12
"""Doublings of the budgets over the iterations; later iterations have the same budgets."""

_MIN_TASK_PLANNER_SECONDS = 0.1
"""Shortest time limit of a task planner, which cannot stop earlier [s]."""


def budget_growth(iteration: int) -> int:
    """Return the factor of the budgets of an iteration, counted from 0, over those of the first."""
    return 1 << min(iteration, _MAX_DOUBLINGS)


@dataclass(eq=False)
class SearchLog:
    """Results, counts and times of a run. The run starts at construction.

    Attributes:
        seconds_to_search: duration from the start of the run to the end of the search [s].
        start_time: start of the run by the monotonic clock [s].
        clock: accumulates planning time by stage.
        failures: failed motions.
        trees: version trees of all searches, in the order of their start.
        skeletons: number of refined task plans.
        iterations: number of completed search iterations.
        constraints: constraints that the search learned.
        infeasibilities: proofs of the domain that the goal is impossible.
        nodes: nodes of the search, if the search tree is recorded.
        end: version in which the first plan ends; None without a plan.
        best: cost of the best plan, as text; empty without a plan.
        searches: names of the task planner's searches that found a task plan, if it has several.
    """

    seconds_to_search: float
    start_time: float = field(default_factory=lambda: time.monotonic())
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

    def extend_search(self, seconds: float) -> None:
        """Set the end of the search [s], to use the time reserved for the explanation."""
        self.seconds_to_search = seconds

    def note_proofs(self, proofs: tuple[Infeasibility, ...]) -> bool:
        """Record proofs that the goal is impossible; return True if there are any."""
        self.infeasibilities = proofs
        return bool(proofs)

    def note_best(self, text: str) -> None:
        """Record the cost of the best plan, as text."""
        self.best = text

    def count_task_plan(self) -> None:
        """Increment the number of refined task plans."""
        self.skeletons += 1

    def count_iteration(self) -> None:
        """Increment the number of completed search iterations."""
        self.iterations += 1

    def record(self, node: RecordedNode) -> None:
        """Record a node of the search."""
        self.nodes.append(node)

    def note_end(self, version: SceneVersion) -> None:
        """Record the version in which a plan ends."""
        self.end = version

    def note_tree(self, tree: VersionTree) -> None:
        """Record the version tree of a new search."""
        self.trees.append(tree)

    def note_constraint(self, constraint: LearnedConstraint) -> None:
        """Record a constraint that the search learned."""
        self.constraints.append(constraint)

    def note_search(self, name: str) -> None:
        """Record the name of the search that found a task plan."""
        self.searches[name] = None

    @property
    def seconds(self) -> float:
        """Time since the start of the run [s]."""
        return time.monotonic() - self.start_time

    def is_over(self) -> bool:
        """Return whether the search time has elapsed."""
        return self.seconds > self.seconds_to_search

    def seconds_left(self) -> float:
        """Return the remaining search time, at least the shortest limit of a task planner [s]."""
        return max(_MIN_TASK_PLANNER_SECONDS, self.seconds_to_search - self.seconds)


@dataclass(frozen=True, eq=False)
class PlanningContext:
    """Inputs of a run.

    Attributes:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        robots: arms, in the order of the problem.
        domain: planning domain with its semantics.
        problem: PDDL problem, derived from the scene.
        options: planning options.
        goal: goal in PDDL, as in the planning problem.
        continuous_goals: goals that PDDL cannot express: poses, regions and configurations.
        on_progress: function that receives progress.
        finds_causes: whether a run without a plan searches for geometric causes.
        run_data: data of other modules that live as long as the run and its runs for suggestions.
        rules: allowed contacts.
        sampling: samplers of grasps and placements, with the seed of the options.
        task_planner: task planner of the options, or Fast Downward.
    """

    scene: SceneGraph
    q: Configuration
    robots: tuple[Manipulator, ...]
    domain: PlanningDomain
    problem: Problem
    options: PlanningOptions
    goal: str
    continuous_goals: tuple[ContinuousGoal, ...] = ()
    on_progress: Callable[[PlanningProgress], None] | None = None
    finds_causes: bool = True
    run_data: dict[object, object] = field(default_factory=dict)
    rules: CollisionRules = field(init=False)
    sampling: SeededSamplers = field(init=False)
    task_planner: TaskPlanner[Any] = field(init=False)

    def __post_init__(self) -> None:
        first, *further = self.robots
        planner = self.options.task_planner or FastDownward()
        assert not isinstance(planner, str)  # options replace names at construction
        is_checked = type(planner) in (FastDownward, CheckedTaskPlanner)
        initialize(
            self,
            rules=CollisionRules.from_start(
                first,
                self.scene,
                q=self.q,
                other_arms=tuple(further),
                tolerances=self.options.start_tolerances,
            ),
            sampling=self._sampling(self.options.seed),
            task_planner=planner if is_checked else CheckedTaskPlanner(planner),
        )

    def _sampling(self, seed: int) -> SeededSamplers:
        """Return the samplers with a seed."""
        samplers = self.options.samplers or Samplers()
        return SeededSamplers(samplers, self.robots[0], seed, run_data=self.run_data)

    def with_problem(
        self, scene: SceneGraph, problem: Problem, *, options: PlanningOptions
    ) -> PlanningContext:
        """Return the context with another scene, problem and options, for a run without reports."""
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
        """Return a log, which starts the time of a run."""
        seconds = self.options.seconds
        if seconds < math.inf:
            seconds -= self.options.seconds_to_explain
        return SearchLog(seconds)

    @property
    def goal_text(self) -> str:
        """Goal in PDDL, joined with the text of the continuous goals."""
        # "(and)" is the PDDL goal of a problem with continuous goals alone
        pddl_goals = [] if self.goal == "(and)" else [self.goal]
        return " and ".join([*pddl_goals, *map(str, self.continuous_goals)]) or self.goal

    def is_at_limit(self, log: SearchLog) -> bool:
        """Return whether the time limit or the iteration limit ends the search."""
        limit = self.options.max_iterations
        return log.is_over() or (limit is not None and log.iterations >= limit)

    def report(self, log: SearchLog, phase: str, step: int, steps: int) -> None:
        """Report progress, if the caller receives it; ``steps`` is 0 if unknown."""
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
            result = self.task_planner.search(task, time_limit=log.seconds_left())
            if result.statistics.search:
                log.note_search(result.statistics.search)
            return result

    def arms(
        self,
        clock: StageClock,
        iteration: int,
        *,
        path_iterations: int | None = None,
        corridors: Sequence[Configuration] = (),
    ) -> dict[str, ArmMotionPlanner]:
        """Return the motion planners of the arms, with the budgets of an iteration.

        Args:
            clock: accumulates planning time by stage.
            iteration: index of the search iteration, from 0.
            path_iterations: iterations of one path search to any of several contact configurations.
                By default one path is searched to each contact configuration. It then has the
                iterations of the options, doubled with each search iteration.
            corridors: paths into narrow places; see :class:`MotionSettings`.
        """
        if path_iterations is None:
            growth = budget_growth(iteration)
            budget = MotionSettings(path_iterations=self.options.path_iterations * growth)
        else:
            budget = MotionSettings(
                8, path_iterations=path_iterations, is_multi_goal=True, corridors=corridors
            )
        planner = self.options.motion_planner
        assert not isinstance(planner, str)  # options replace names at construction
        return arm_motion_planners(
            self.robots, budget=budget, rules=self.rules, clock=clock, motion_planner=planner
        )

    def arm_goal_motion(self, clock: StageClock) -> ArmGoalMotion | None:
        """Return the motion to the goals of the arm after the last action, or None."""
        goals = tuple(goal for goal in self.continuous_goals if isinstance(goal, ArmAt))
        return ArmGoalMotion(self, clock, goals) if goals else None

    def tree(
        self, log: SearchLog, problem: Problem, domain: PlanningDomain, *, seed: int
    ) -> VersionTree:
        """Return an empty version tree, and record it in the log."""
        sampling = self.sampling if seed == self.options.seed else self._sampling(seed)
        tree = VersionTree(
            RefinementTask(self.scene, self.q, problem, domain),
            arms=self.arms(log.clock, 0),
            seed=seed,
            log=log.failures,
            clock=log.clock,
            sampling=sampling,
        )
        log.note_tree(tree)
        return tree

    def plan_of(
        self, steps: tuple[PlanStep, ...], searched_domain: PlanningDomain | None = None
    ) -> Plan:
        """Return the plan of some steps.

        Args:
            steps: steps of the plan.
            searched_domain: domain of their actions, which are converted to those of the planning
                domain. Defaults to the planning domain.
        """
        domain = self.domain
        if searched_domain is not None:
            convert = searched_domain.original_action
            steps = tuple(replace(step, action=convert(step.action)) for step in steps)
        return Plan(
            scene=self.scene,
            q=self.q,
            robots=self.robots,
            domain=domain.name,
            domain_pddl=domain.pddl,
            domain_digest=domain.digest,
            semantics=domain.semantics_name,
            goal=self.goal,
            seed=self.options.seed,
            steps=steps,
            continuous_goals=self.continuous_goals,
            metric=None if self.problem.metric is domain.metric else self.problem.metric,
            values=dict(self.problem.values),
        )


@dataclass(frozen=True, eq=False)
class ArmGoalMotion:
    """Motions to the goals of the arm, which extend the last step of a plan.

    Attributes:
        context: inputs of the run.
        clock: accumulates planning time by stage.
        goals: goal configurations of the arms.
    """

    context: PlanningContext
    clock: StageClock
    goals: tuple[ArmAt, ...]

    def __call__(self, node: SceneVersion) -> PlanStep | None:
        """Return the last step with the motions; None if a goal is not reached.

        Args:
            node: version after the last action.
        """
        arms = self.context.arms(self.clock, 0)
        return append_arm_goals(node, self.goals, arms, self.context.domain)
