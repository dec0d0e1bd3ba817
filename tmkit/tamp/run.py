"""One planning run: skeletons from the task planner, refined into motion, and what is learned in between.

A run goes in iterations (:mod:`tmkit.tamp.iteration`). In each the task planner gives skeletons; each is refined over
a refinement tree. Where that fails, its cause becomes a constraint on the translated task, and only the search half of
the task planner runs again. When an iteration finds no further skeleton, its constraints are lifted, since a motion
that was not found is no proof that there is none; the budgets double, and the next iteration continues where the tree
stands. So with enough iterations every choice of every skeleton is tried, however often: the whole is
probabilistically complete. Which task the next iteration searches, :mod:`tmkit.tamp.tracks` decides.

Two things are kept through all iterations: an action that its domain proved to be impossible, and a cause that is
proved for the poses at hand. When all that an iteration learned is proved, another would learn the same, and the run
ends. Otherwise it goes on until a limit on time or iterations ends it.

Part of the time is kept for the explanation: reasons, and what would help.

Invariants: equal arguments give equal results, unless the time limit ends the search; it only stops.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tmkit._support.time_limits import time_limit
from tmkit.errors import TaskError, TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotion, arm_motions
from tmkit.manipulation.actions.primitives import MotionBudget
from tmkit.manipulation.actions.timing_breakdown import PhaseClock, PlanningPhase
from tmkit.manipulation.samplers import Samplers, Sampling, sample_grasps
from tmkit.motion import CollisionRules, MotionPlanner
from tmkit.pddl import Fact, GroundAction, Problem, State
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.values import Configuration, Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.tamp.anytime import Improvement, with_costs
from tmkit.tamp.diagnosis.collect import diagnose_actions, find_goal_conflict, merged_constraints
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, LearnedConstraint, SearchEnd
from tmkit.tamp.diagnosis.explanation import explain
from tmkit.tamp.diagnosis.geometric_causes import find_reasons
from tmkit.tamp.diagnosis.suggestions import find_remedies
from tmkit.tamp.domains.infeasibility import Refutation, necessary_facts
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.problems import metric_of, replace_problem
from tmkit.tamp.domains.protocols import ProvingSemantics
from tmkit.tamp.goals.compilation import move_on
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.refinement_tree import FailureLog, RefinementNode, RefinementTree
from tmkit.tamp.result import PlanResult, PlanStatistics, PlanStatus
from tmkit.tamp.tracks import SearchTrack, search_tracks
from tmkit.tamp.validation.prune_observations import without_needless_looks
from tmkit.task_planning import FastDownward, PreparedTask, TaskPlanner, TaskPlanResult

__all__ = ["DEFAULT_TIME_LIMIT", "PlanningLimits", "PlanningRun"]

_logger = logging.getLogger(__name__)


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


DEFAULT_TIME_LIMIT = 30.0
"""Seconds after which planning stops, unless it is given a limit on time or iterations."""

_MOST_DOUBLINGS = 12  # of budgets: later iterations have those of this one


class PlanningRun:
    """One planning run: what it was given, and what it has found so far."""

    def __init__(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        manipulators: tuple[Manipulator, ...],
        domain: PlanningDomain,
        problem: Problem,
        seed: int,
        limits: PlanningLimits,
        on_progress: Callable[[PlanningProgress], None] | None,
        task_planner: TaskPlanner[Any] | None,
        samplers: Samplers | None = None,
        motion_planner: MotionPlanner | None = None,
        goal: str = "",
        continuous_goals: tuple[ContinuousGoal, ...] = (),
    ) -> None:
        self.scene, self.q, self.manipulators, self.domain, self.problem = scene, q, manipulators, domain, problem
        self.rules = CollisionRules.from_start(manipulators[0], scene, q=q, others=manipulators[1:])
        self.samplers = samplers or Samplers()
        self.sampling = Sampling(self.samplers, manipulators[0], seed)
        self.seed, self.limits, self.on_progress = seed, limits, on_progress
        self.began = time.monotonic()
        self.log, self.clock = FailureLog(), PhaseClock()
        self.roots: list[RefinementNode] = []  # of all trees
        self.gives_reasons = True
        self.skeletons = self.iterations = 0
        self.seconds_to_search = (1.0 - limits.explaining) * limits.seconds
        self.constraints: list[LearnedConstraint] = []
        self.refutations: tuple[Refutation, ...] = ()
        self.lessons: dict[GroundAction, list[frozenset[Fact]]] = {}  # of the last round
        self.motion_planner = motion_planner
        self.goal, self.continuous_goals = goal or str(problem.goal), continuous_goals
        self.planner: TaskPlanner[Any] = FastDownward() if task_planner is None else task_planner

    def with_question(self, scene: SceneGraph, problem: Problem, *, limits: PlanningLimits) -> PlanningRun:
        """Return a run with the same means for another scene, goal and limits, which tells nobody how far it is."""
        run = PlanningRun(
            scene,
            self.q,
            manipulators=self.manipulators,
            domain=self.domain,
            problem=problem,
            seed=self.seed,
            limits=replace(limits, improvements=0, explaining=0.0),
            on_progress=None,
            task_planner=self.planner,
            samplers=self.samplers,
            motion_planner=self.motion_planner,
            goal=self.goal,
            continuous_goals=self.continuous_goals,
        )
        run.gives_reasons = False
        return run

    def with_remedies(self, result: PlanResult) -> PlanResult:
        """Return an answer that is no with what would help, as far as the remaining time allows.

        A goal that was refuted needs none: the proof says what is too much, and is an answer at once.
        """
        if self.refutations:
            return result
        seconds = min(self.limits.explaining * self.limits.seconds, self.limits.seconds - self.seconds)
        remedies, replans = find_remedies(self, result.diagnosis, seconds=seconds)
        diagnosis = replace(result.diagnosis, remedies=remedies, replans=replans)
        explanation = explain(result.status, diagnosis, goal=self.goal_in_words, plan=None)
        return replace(result, diagnosis=diagnosis, explanation=explanation)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def is_over(self) -> bool:
        """Whether the time to search is up."""
        return self.seconds > self.seconds_to_search

    def is_at_limit(self) -> bool:
        """Whether a limit ends the search."""
        return self.is_over() or (self.limits.iterations is not None and self.iterations >= self.limits.iterations)

    def result(self) -> PlanResult:
        """Plan, first with the useful objects of the scene, then, should these not do, with all."""
        try:
            with time_limit(self.limits.seconds - self.seconds):
                status, steps = self._found()
        except TimeLimitError:
            status, steps = PlanStatus.NO_PLAN_WITHIN_LIMITS, None
        return self._answer(status, steps)

    def _found(self) -> tuple[PlanStatus, tuple[PlanStep, ...] | None]:
        with self.clock.phase(PlanningPhase.SEMANTICS):
            self.refutations = self._refutations()
            useful = self._restricted(self.domain.semantics.useful_objects(self.scene, self.q))
        if self.refutations:
            return PlanStatus.PROVED_UNSOLVABLE, None
        with time_limit(self.seconds_to_search - self.seconds):
            status, track, steps = search_tracks(self, useful)
        return status, None if track is None else self._finished(track, steps)

    def _refutations(self) -> tuple[Refutation, ...]:
        """Return why the goal is impossible, where the domain can prove that it is."""
        semantics = self.domain.semantics
        if not isinstance(semantics, ProvingSemantics):
            return ()
        found = semantics.refutations(necessary_facts(self.problem), self.scene)
        return tuple(refutation for refutation in found if not self._may_be_held(refutation.ungraspable))

    def _may_be_held(self, item: str | None) -> bool:
        """Tell whether a sampler of the user's proposes the grasps of an object, of which a proof knows nothing."""
        if item is None:
            return False
        return self.sampling.samplers.grasp_sampler(self.scene, item) is not sample_grasps

    def _restricted(self, useful: frozenset[str]) -> Problem | None:
        """Return the task without the objects that are of no use, unless its goal speaks of one."""
        if all(name in useful for name in self.problem.objects):
            return None
        objects = {name: types for name, types in self.problem.objects.items() if name in useful}
        init = State(fact for fact in self.problem.init if all(argument in objects for argument in fact.arguments))
        try:
            return replace_problem(self.problem, objects, init)
        except TaskError:
            return None

    def _finished(self, track: SearchTrack, steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
        """Return the steps of the plan: improved, without needless looks, and with the actions of the domain."""
        assert track.first is not None, "a track with a plan is prepared"
        self.seconds_to_search = self.limits.seconds
        steps = self._improved(track, track.first, steps)
        with suppress(TimeLimitError), self.clock.phase(PlanningPhase.SEMANTICS):
            steps = without_needless_looks(steps, self.scene, self.q, problem=track.problem, domain=track.domain)
        return self.plan_of(steps, track.domain).steps

    def _improved(self, track: SearchTrack, task: PreparedTask, steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
        steps, iterations = with_costs(track.problem, steps), self.limits.improvements
        if iterations == 0:
            return steps
        return Improvement(self, track.problem, track.domain, task, steps).improve(iterations)

    def tree(self, problem: Problem, domain: PlanningDomain, *, seed: int) -> RefinementTree:
        """Return an empty refinement tree."""
        sampling = self.sampling if seed == self.seed else Sampling(self.samplers, self.manipulators[0], seed)
        tree = RefinementTree(
            self.scene,
            self.q,
            problem=problem,
            domain=domain,
            arms=self.arms(0),
            seed=seed,
            log=self.log,
            clock=self.clock,
            sampling=sampling,
        )
        self.roots.append(tree.root)
        return tree

    @property
    def goal_in_words(self) -> str:
        """The goal for people: in PDDL, and what PDDL cannot say."""
        stated = [] if self.goal == "(and)" else [self.goal]  # with nothing but goals that PDDL cannot say
        return " and ".join([*stated, *map(str, self.continuous_goals)]) or self.goal

    @property
    def finish(self) -> Callable[[RefinementNode], PlanStep | None] | None:
        """What becomes of the last step, where there are goals of the arm."""
        goals = tuple(goal for goal in self.continuous_goals if isinstance(goal, ArmAt))
        return (lambda node: move_on(node, goals, self.arms(0), self.domain)) if goals else None

    def growth(self, number: int) -> int:
        """Return how many times the budgets of the first iteration those of another are."""
        return 1 << min(number, _MOST_DOUBLINGS)

    def arms(self, number: int) -> dict[str, ArmMotion]:
        """Return what works out the motions of the arms, with the budget of an iteration."""
        budget = MotionBudget(path_iterations=self.limits.path_iterations * self.growth(number))
        return arm_motions(
            self.manipulators, budget=budget, rules=self.rules, clock=self.clock, motion_planner=self.motion_planner
        )

    def search(self, task: PreparedTask) -> TaskPlanResult:
        """Ask the task planner for a skeleton."""
        self.report("task", 0, 0)
        with self.clock.phase(PlanningPhase.TASK):
            return self.planner.search(task, time_limit=self.seconds_left())

    def seconds_left(self) -> float:
        """Return the seconds that are left to search, never less than a task planner can stop after."""
        return max(0.1, self.seconds_to_search - self.seconds)

    def report(self, phase: str, step: int, steps: int) -> None:
        """Tell whoever wants to know how far planning is."""
        if self.on_progress is not None:
            skeleton = self.skeletons + (phase == "task")
            self.on_progress(PlanningProgress(phase, step, steps, self.seconds, skeleton))

    def _answer(self, status: PlanStatus, steps: tuple[PlanStep, ...] | None) -> PlanResult:
        total = self.seconds
        phases = self.clock.seconds
        task_seconds = phases[PlanningPhase.TASK.value]
        statistics = PlanStatistics(
            skeletons=self.skeletons,
            attempts=self.log.attempts,
            failures=self.log.most_common(),
            constraints=len(self.constraints),
            task_seconds=task_seconds,
            motion_seconds=total - task_seconds,
            total_seconds=total,
            phase_seconds={**phases, "bookkeeping": total - sum(phases.values())},
        )
        made = None if steps is None else self.plan_of(steps)
        diagnosis = self._diagnosis(status)
        explanation = explain(status, diagnosis, goal=self.goal_in_words, plan=made)
        return PlanResult(status, made, explanation, statistics, diagnosis)

    def plan_of(self, steps: tuple[PlanStep, ...], searched: PlanningDomain | None = None) -> Plan:
        """Return the plan with these steps, whose actions may be those of a domain that was searched in its place."""
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

    def _diagnosis(self, status: PlanStatus) -> Diagnosis:
        conflict = None
        ended_by, limit = self._ending(status)
        if status is PlanStatus.PROVED_UNSOLVABLE and not self.refutations:
            with suppress(TimeLimitError), time_limit(self.seconds_left()):
                conflict = find_goal_conflict(self.problem, time_limit=self.seconds_left())
        reasons: tuple[str, ...] = ()
        if status is PlanStatus.NO_PLAN_WITHIN_LIMITS and self.gives_reasons:
            arms, sampling = self.arms(0), self.sampling
            reasons = find_reasons(
                self.scene, self.q, log=self.log, roots=self.roots, arms=arms, sampling=sampling, seed=self.seed,
                is_over=lambda: self.seconds > self.limits.seconds,
            )  # fmt: skip
        return Diagnosis(
            actions=diagnose_actions(self.log, self.manipulators),
            constraints=merged_constraints(self.constraints),
            conflict=conflict,
            proofs=tuple(refutation.cause for refutation in self.refutations),
            iterations=self.iterations,
            skeletons=self.skeletons,
            attempts=self.log.attempts,
            reasons=reasons,
            ended_by=ended_by,
            limit=limit,
        )

    def _ending(self, status: PlanStatus) -> tuple[SearchEnd | None, float | None]:
        """Return what ended a search without an answer, with the limit where it was one."""
        if status is not PlanStatus.NO_PLAN_WITHIN_LIMITS:
            return None, None
        if self.is_over():
            return SearchEnd.TIME_LIMIT, self.limits.seconds
        if self.is_at_limit():
            return SearchEnd.ITERATION_LIMIT, self.limits.iterations
        return SearchEnd.EXHAUSTED, None
