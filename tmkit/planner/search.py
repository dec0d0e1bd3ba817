"""Task-and-motion planning: from a scene and a PDDL goal to a plan.

The loop has two halves. The task planner finds a *skeleton*, a sequence of actions that reaches the goal by the words
of the domain; :mod:`tmkit.planner.refinement` tries to make it motion. Where that fails, the action that failed is
forbidden in the symbolic state in which it failed (in every state, where its failure says that no other would do), and
the search half of the task planner runs again on the task so changed. When no skeleton is left, what was learned about
single states is forgotten, the budgets grow, and another round begins: a motion that was not found is no proof that
there is none.

Invariants: the same arguments and seed give the same plan, bit for bit, whatever runs beside; the time limit only
stops. ``PROVED_UNSOLVABLE`` rests on the task alone, before any constraint was learned and with every object of the
scene.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tmkit.errors import ConfigurationError, TaskError, UnknownNameError
from tmkit.formats import GoalScene
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules, Manipulator, find_manipulator
from tmkit.planner.arm_motion import ArmMotion
from tmkit.planner.domains import PlanningDomain, load_planning_domain
from tmkit.planner.explanation import explain
from tmkit.planner.goals import goal_of_scene
from tmkit.planner.motion_pieces import MotionBudget
from tmkit.planner.progress import PlanningProgress
from tmkit.planner.refinement import FailureLog, RefinementBudget, RefinementOutcome, refine_skeleton
from tmkit.planner.start import check_start
from tmkit.planner.values import Configuration, Plan, PlanResult, PlanStatistics, PlanStatus, PlanStep
from tmkit.tasks import (
    FastDownward,
    Formula,
    GroundAction,
    PreparedTask,
    Problem,
    ProvingTask,
    State,
    TaskPlanner,
    TaskPlanResult,
    TaskPlanStatus,
    load_problem,
    parse_goal,
)

__all__ = ["plan"]

_logger = logging.getLogger(__name__)

_ROUNDS = 4
_SKELETONS_PER_ROUND = 24


def plan(
    scene: SceneGraph,
    q: ArrayLike | None = None,
    *,
    domain: str | Path = "blocks",
    goal: str | None = None,
    problem: str | Path | None = None,
    goal_scene: SceneGraph | GoalScene | None = None,
    semantics: str | Path | None = None,
    robot: str | Path | Manipulator = "panda",
    task_planner: TaskPlanner[Any] | None = None,
    seed: int = 0,
    time_limit: float = 30.0,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Find actions and motions that bring about a goal.

    Args:
        scene: the world.
        q: (n_joints,) configuration at the start; the arm's ready configuration when left out.
        domain: name of a domain of ours, a folder, or a PDDL file.
        goal: the goal in PDDL, e.g. ``"(and (on a b) (on b c))"``.
        problem: a PDDL problem file instead, whose objects and initial facts, where it gives them, must be the scene's.
        goal_scene: a scene that shows the goal instead, or what :func:`tmkit.formats.load_goal_scene` gives; see
            :func:`tmkit.planner.goal_of_scene`.
        semantics: whose meaning the words of the domain have, when it is not in the file beside it; see
            :func:`tmkit.planner.load_planning_domain`.
        robot: name of an arm of ours, a TOML file, or a description.
        task_planner: what finds the sequences of actions; :class:`tmkit.tasks.FastDownward` when left out.
        seed: at least 0; makes the plan repeatable; another seed may give another plan.
        time_limit: seconds after which to stop.
        on_progress: called before each search of the task planner and whenever another action has been refined.

    Returns:
        The plan, or why there is none.

    Raises:
        ConfigurationError: ``q`` has the wrong length, is outside the limits of arm and hand, or leaves open the
            hand that holds an object; or a seed or time limit that is none.
        CollisionError: something collides at the start; the message names the pairs.
        TaskError: the goal or problem is wrong; the message says where.
        SceneError: the scene cannot be told in the words of the domain.
        RobotError: the arm does not fit the scene.
        MissingFileError: a name that is not there.
        SemanticsMismatchError: the domain's semantics contradict its PDDL.
    """
    if not (time_limit > 0.0):
        raise ConfigurationError(f"time_limit must be positive seconds, not {time_limit}")
    if operator.index(seed) < 0:
        raise ConfigurationError(f"seed must be at least 0, not {seed}")
    if sum(given is not None for given in (goal, problem, goal_scene)) != 1:
        raise TaskError.at("goal", "give one of a goal, a problem file and a goal scene")
    manipulator = find_manipulator(robot, scene)
    start = check_start(scene, q, manipulator)
    loaded = load_planning_domain(domain, manipulator=manipulator, semantics=semantics)
    if goal_scene is not None:
        goal = goal_of_scene(goal_scene, scene, domain=loaded)
    task = derive_problem(scene, loaded, q=start, goal=goal, problem=problem)
    run = _Run(scene, start, manipulator, loaded, task, operator.index(seed), time_limit, on_progress, task_planner)
    return run.result()


def derive_problem(
    scene: SceneGraph,
    domain: PlanningDomain,
    *,
    q: Configuration | None = None,
    goal: str | Formula | None = None,
    problem: str | Path | None = None,
) -> Problem:
    """Return the task whose objects and initial facts are derived from the scene.

    Args:
        scene: the world.
        domain: the domain.
        q: (n_joints,) configuration at the start; zero when left out.
        goal: the goal, in PDDL or parsed.
        problem: a PDDL problem file instead.

    Raises:
        TaskError: the goal is wrong or missing, or the problem file contradicts the scene.
    """
    objects = domain.semantics.objects(scene)
    types = ["object", *(declared.name for declared in domain.domain.types)]
    for kind in objects.values():
        if kind not in types:
            raise TaskError.at(f"semantics of domain '{domain.name}'", UnknownNameError.of("type", kind, types).message)
    init = domain.state(scene, objects, scene.zero_configuration() if q is None else q)
    if problem is not None:
        given = load_problem(problem, domain.domain)
        _compare_with_scene(given, objects, init)
        formula, name = given.goal, given.name
    elif goal is not None:
        formula = parse_goal(goal, domain.domain, objects=objects) if isinstance(goal, str) else goal
        name = "from-scene"
    else:
        raise TaskError.at("goal", "give either a goal or a problem file")
    return Problem(name, domain.domain, objects=objects, init=init, goal=formula)


def _compare_with_scene(given: Problem, objects: Mapping[str, str], init: State) -> None:
    """Refuse a problem that speaks of other objects than the scene has, or of facts that do not hold in it."""
    for name, types in given.objects.items():
        if name not in objects:
            raise given.error(f"the scene has no such thing: {UnknownNameError.of('object', name, objects).message}")
        if objects[name] not in types:
            raise given.error(f"object '{name}' is of type {' '.join(types)}, but in the scene a {objects[name]}")
    contradicted = [str(fact) for fact in given.init if fact not in init]
    if contradicted:
        raise given.error(f"its initial facts do not hold in the scene: {', '.join(contradicted)}")


class _Run:
    """One planning run: what it was given, and what it has counted so far."""

    def __init__(
        self,
        scene: SceneGraph,
        q: Configuration,
        manipulator: Manipulator,
        domain: PlanningDomain,
        problem: Problem,
        seed: int,
        time_limit: float,
        on_progress: Callable[[PlanningProgress], None] | None,
        task_planner: TaskPlanner[Any] | None,
    ) -> None:
        self.scene, self.q, self.manipulator, self.domain, self.problem = scene, q, manipulator, domain, problem
        self.rules = CollisionRules.from_start(manipulator, scene, q=q)
        self.seed, self.time_limit, self.on_progress = seed, time_limit, on_progress
        self.began = time.monotonic()
        self.log = FailureLog()
        self.skeletons = 0
        self.task_seconds = self.motion_seconds = 0.0
        self.planner: TaskPlanner[Any] = FastDownward() if task_planner is None else task_planner

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def is_over(self) -> bool:
        return self.seconds > self.time_limit

    def result(self) -> PlanResult:
        """Plan, first with the useful objects of the scene, then, should these not do, with all."""
        useful = self._restricted(self.domain.semantics.useful_objects(self.scene, self.q))
        status = PlanStatus.NO_PLAN_WITHIN_LIMITS
        for problem in [useful, self.problem] if useful is not None else [self.problem]:
            status, steps = self._plan_for(problem)
            if steps is not None:
                return self._answer(PlanStatus.SOLVED, steps)
            if self.is_over():
                return self._answer(PlanStatus.NO_PLAN_WITHIN_LIMITS, None)
        return self._answer(status, None)

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
        began = time.monotonic()
        translated = self.planner.prepare(problem, time_limit=self._time_left())
        self.task_seconds += time.monotonic() - began
        if isinstance(translated, ProvingTask) and translated.goal_is_impossible():
            return PlanStatus.PROVED_UNSOLVABLE, None
        for round_number in range(_ROUNDS):
            if self.is_over():
                break
            _logger.debug("round %d", round_number + 1)
            task, learned = translated, 0
            for number in range(_SKELETONS_PER_ROUND):
                found = self._search(task)
                if found.status is TaskPlanStatus.UNSOLVABLE and round_number == number == 0:
                    return PlanStatus.PROVED_UNSOLVABLE, None
                if found.status is TaskPlanStatus.UNSOLVABLE and not learned:
                    return PlanStatus.NO_PLAN_WITHIN_LIMITS, None  # nothing to lift: another round is the same
                if found.status is not TaskPlanStatus.SOLVED:
                    break
                self.skeletons += 1
                _logger.info("task plan %d: %s", self.skeletons, " ".join(map(str, found.steps)))
                outcome = self._refine(found.steps, problem, round_number, number)
                if outcome.steps is not None:
                    _logger.info("task plan %d has motions", self.skeletons)
                    return PlanStatus.SOLVED, outcome.steps
                if self.is_over():
                    break
                failed = outcome.impossible or found.steps[outcome.failed_index]
                where = "in this state" if outcome.impossible is None else "in every state"
                _logger.info("task plan %d has no motion for %s; forbidden %s", self.skeletons, failed, where)
                if outcome.impossible is not None:
                    translated, task = (t.forbid(outcome.impossible, ()) for t in (translated, task))
                else:
                    state = self._state_before(found.steps, outcome.failed_index, problem)
                    task, learned = task.forbid(found.steps[outcome.failed_index], state), learned + 1
        return PlanStatus.NO_PLAN_WITHIN_LIMITS, None

    def _search(self, task: PreparedTask) -> TaskPlanResult:
        self._report("task", 0, 0)
        began = time.monotonic()
        found = self.planner.search(task, time_limit=self._time_left())
        self.task_seconds += time.monotonic() - began
        return found

    def _refine(
        self, skeleton: tuple[GroundAction, ...], problem: Problem, round_number: int, number: int
    ) -> RefinementOutcome:
        growth = 2**round_number
        began = time.monotonic()
        outcome = refine_skeleton(
            skeleton,
            scene=self.scene,
            q=self.q,
            problem=problem,
            domain=self.domain,
            arm=ArmMotion(self.manipulator, budget=MotionBudget(path_iterations=2000 * growth), rules=self.rules),
            budget=RefinementBudget(attempts_per_visit=16 * growth, attempts=200 * growth),
            seed=(self.seed, round_number, number),
            log=self.log,
            is_over=self.is_over,
            on_step=lambda step: self._report("motion", step, len(skeleton)),
        )
        self.motion_seconds += time.monotonic() - began
        return outcome

    @staticmethod
    def _state_before(skeleton: tuple[GroundAction, ...], index: int, problem: Problem) -> State:
        state = problem.init
        for action in skeleton[:index]:
            state = state.apply(action, problem)
        return state

    def _time_left(self) -> float:
        return max(0.1, self.time_limit - self.seconds)

    def _report(self, phase: str, step: int, steps: int) -> None:
        if self.on_progress is not None:
            skeleton = self.skeletons + (phase == "task")
            self.on_progress(PlanningProgress(phase, step, steps, self.seconds, skeleton))

    def _answer(self, status: PlanStatus, steps: tuple[PlanStep, ...] | None) -> PlanResult:
        statistics = PlanStatistics(
            self.skeletons,
            self.log.attempts,
            self.log.most_common(),
            self.task_seconds,
            self.motion_seconds,
            self.seconds,
        )
        made = None
        if steps is not None:
            domain = self.domain
            goal = str(self.problem.goal)
            made = Plan(
                scene=self.scene,
                q=self.q,
                robot=self.manipulator,
                domain=domain.name,
                domain_pddl=domain.pddl,
                domain_digest=domain.digest,
                semantics=domain.semantics_name,
                goal=goal,
                seed=self.seed,
                steps=steps,
            )
        explanation = explain(status, statistics, self.log, goal=str(self.problem.goal), plan=made)
        return PlanResult(status, made, explanation, statistics)


def replace_problem(problem: Problem, objects: dict[str, tuple[str, ...]], init: State) -> Problem:
    """Return a problem with other objects and initial facts.

    Raises:
        TaskError: the goal speaks of an object that is gone.
    """
    known = {*objects, *(constant.name for constant in problem.domain.constants)}
    return Problem(
        problem.name,
        problem.domain,
        objects=objects,
        init=init,
        goal=problem.goal,
        metric=problem.metric,
        values={term: value for term, value in problem.values.items() if set(term.arguments) <= known},
        source=problem.source,
    )
