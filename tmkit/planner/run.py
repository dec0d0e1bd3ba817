"""One planning run: skeletons from the task planner, refined into motion, and what is learned in between.

A run goes in rounds (:mod:`tmkit.planner.rounds`). In a round the task planner gives skeletons; each is refined over
the one refinement tree of the run. Where that fails, its cause becomes a constraint on the translated task, and only
the search half of the task planner runs again. When a round finds no further skeleton, its constraints are lifted,
since a motion that was not found is no proof that there is none; the budgets double, and the next round continues where
the tree stands. So with enough rounds every choice of every skeleton is tried, however often: the whole is
probabilistically complete.

The first rounds use the useful objects only. All objects are used when these do not do, unless what the last of those
rounds learned rules out every sequence of actions with all objects too: then they would only repeat it.

Two things are kept through all rounds: an action that its domain proved to be impossible, and a cause that is proved
for the poses at hand. When all that a round learned is proved, another round would learn the same, and the run ends.

Invariants: equal arguments give equal results; the time limit only stops.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tmkit.errors import TaskError, TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules, Manipulator, MotionPlanner
from tmkit.planner.actions.arm_motion import ArmMotion, arm_motions
from tmkit.planner.actions.motion_pieces import MotionBudget
from tmkit.planner.actions.phases import PhaseClock, PlanningPhase
from tmkit.planner.answers.diagnosing import diagnose_actions, find_goal_conflict, merged_constraints
from tmkit.planner.answers.explanation import explain
from tmkit.planner.answers.reasons import find_reasons
from tmkit.planner.answers.remedies import find_remedies
from tmkit.planner.domains.loading import PlanningDomain
from tmkit.planner.domains.problems import metric_of, replace_problem
from tmkit.planner.domains.refutations import Refutation, necessary_facts
from tmkit.planner.domains.semantics import ProvingSemantics
from tmkit.planner.domains.thinning import without_needless_looks
from tmkit.planner.goals.continuous_goals import ArmAt, ContinuousGoal
from tmkit.planner.goals.goal_domain import move_on
from tmkit.planner.improvement import Improvement, with_costs
from tmkit.planner.plans.diagnosis import Diagnosis, LearnedConstraint
from tmkit.planner.plans.results import PlanResult, PlanStatistics, PlanStatus
from tmkit.planner.plans.values import Configuration, Plan, PlanStep
from tmkit.planner.progress import PlanningProgress
from tmkit.planner.refinement_tree import FailureLog, RefinementNode, RefinementTree
from tmkit.planner.rounds import PlanningRound
from tmkit.planner.sampling.samplers import Samplers, Sampling, sample_grasps
from tmkit.tasks import (
    Fact,
    FastDownward,
    GroundAction,
    PreparedTask,
    Problem,
    ProvingTask,
    State,
    TaskPlanner,
    TaskPlanResult,
    TaskPlanStatus,
)
from tmkit.time_limits import time_limit

__all__ = ["PlanningLimits", "PlanningRun"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanningLimits:
    """How far a run goes.

    Attributes:
        seconds: time after which it stops.
        rounds: rounds after which it ends; None for as many as the time allows.
        skeletons_per_round: task plans tried in each round.
        attempts_per_node: motions tried of one action in one scene version, in the first round.
        attempts: motions tried for one skeleton in the first round, at least; long ones get more.
        path_iterations: iterations of one path search in the first round.
        improvements: iterations after the first plan, to make it better; None for as many as the time allows.
    """

    seconds: float = 30.0
    rounds: int | None = 4
    skeletons_per_round: int = 48
    attempts_per_node: int = 16
    attempts: int = 200
    path_iterations: int = 2000
    improvements: int | None = 0


REMEDY_SHARE = 0.2
"""Share of the time limit within which it is looked for what would help."""


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
        self.skeletons = self.rounds = 0
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
            limits=replace(limits, improvements=0),
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
        seconds = min(REMEDY_SHARE * self.limits.seconds, self.limits.seconds - self.seconds)
        remedies, replans = find_remedies(self, result.diagnosis, seconds=seconds)
        diagnosis = replace(result.diagnosis, remedies=remedies, replans=replans)
        explanation = explain(result.status, diagnosis, goal=self.goal_in_words, plan=None)
        return replace(result, diagnosis=diagnosis, explanation=explanation)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.seconds > self.limits.seconds

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
        status = PlanStatus.NO_PLAN_WITHIN_LIMITS
        for problem in [useful, self.problem] if useful is not None else [self.problem]:
            status, steps = self._plan_for(problem)
            if steps is not None:
                return PlanStatus.SOLVED, steps
            if self.is_over():
                return PlanStatus.NO_PLAN_WITHIN_LIMITS, None
        return status, None

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

    def _plan_for(self, problem: Problem) -> tuple[PlanStatus, tuple[PlanStep, ...] | None]:
        with self.clock.phase(PlanningPhase.TASK):
            translated = self.planner.prepare(problem, time_limit=self._time_left())
            if isinstance(translated, ProvingTask) and translated.goal_is_impossible():
                return PlanStatus.PROVED_UNSOLVABLE, None
            if self.lessons and self._is_ruled_out(translated):
                return PlanStatus.NO_PLAN_WITHIN_LIMITS, None
        tree, first = self.tree(problem, seed=self.seed), translated
        number = 0
        while (self.limits.rounds is None or number < self.limits.rounds) and not self.is_over():
            _logger.debug("round %d", number + 1)
            self.rounds += 1
            tree.arms = self.arms(number)
            round_ = PlanningRound(self, tree, task=translated, number=number)
            ended = round_.run()
            self.lessons = round_.forbidden
            if ended.steps is not None:
                return PlanStatus.SOLVED, self._thinned(problem, self._improved(problem, first, ended.steps))
            if ended.status is not None:
                return ended.status, None
            translated = ended.kept
            number += 1
        return PlanStatus.NO_PLAN_WITHIN_LIMITS, None

    def _improved(self, problem: Problem, task: PreparedTask, steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
        steps = with_costs(problem, steps)
        iterations = self.limits.improvements
        return steps if iterations == 0 else Improvement(self, problem, task, steps).improve(iterations)

    def _thinned(self, problem: Problem, steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
        """Return steps without looks that their scenes show to be needless."""
        with suppress(TimeLimitError), self.clock.phase(PlanningPhase.SEMANTICS):
            return without_needless_looks(steps, self.scene, self.q, problem=problem, domain=self.domain)
        return steps

    def tree(self, problem: Problem, *, seed: int) -> RefinementTree:
        """Return an empty refinement tree."""
        sampling = self.sampling if seed == self.seed else Sampling(self.samplers, self.manipulators[0], seed)
        tree = RefinementTree(
            self.scene,
            self.q,
            problem=problem,
            domain=self.domain,
            arms=self.arms(0),
            seed=seed,
            log=self.log,
            clock=self.clock,
            sampling=sampling,
        )
        self.roots.append(tree.root)
        return tree

    def _is_ruled_out(self, task: PreparedTask) -> bool:
        """Tell whether the last round's constraints leave no sequence of actions in a task."""
        for action, contexts in self.lessons.items():
            for context in contexts:
                task = task.forbid(action, sorted(context))
        return self.planner.search(task, time_limit=self._time_left()).status is TaskPlanStatus.UNSOLVABLE

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

    def arms(self, round_number: int) -> dict[str, ArmMotion]:
        """Return what works out the motions of the arms, with the budget of a round."""
        budget = MotionBudget(path_iterations=self.limits.path_iterations * 2**round_number)
        return arm_motions(
            self.manipulators, budget=budget, rules=self.rules, clock=self.clock, motion_planner=self.motion_planner
        )

    def search(self, task: PreparedTask) -> TaskPlanResult:
        """Ask the task planner for a skeleton."""
        self.report("task", 0, 0)
        with self.clock.phase(PlanningPhase.TASK):
            return self.planner.search(task, time_limit=self._time_left())

    def _time_left(self) -> float:
        return max(0.1, self.limits.seconds - self.seconds)

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

    def plan_of(self, steps: tuple[PlanStep, ...]) -> Plan:
        """Return the plan with these steps."""
        domain = self.domain
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
        if status is PlanStatus.PROVED_UNSOLVABLE and not self.refutations:
            with suppress(TimeLimitError), time_limit(self._time_left()):
                conflict = find_goal_conflict(self.problem, time_limit=self._time_left())
        reasons: tuple[str, ...] = ()
        if status is PlanStatus.NO_PLAN_WITHIN_LIMITS and self.gives_reasons:
            arms, sampling = self.arms(0), self.sampling
            reasons = find_reasons(
                self.scene, self.q, log=self.log, roots=self.roots, arms=arms, sampling=sampling, seed=self.seed,
                is_over=self.is_over,
            )  # fmt: skip
        return Diagnosis(
            actions=diagnose_actions(self.log, self.manipulators),
            constraints=merged_constraints(self.constraints),
            conflict=conflict,
            proofs=tuple(refutation.cause for refutation in self.refutations),
            rounds=self.rounds,
            skeletons=self.skeletons,
            attempts=self.log.attempts,
            reasons=reasons,
        )
