"""From a planning problem and its options to a run of the search, for one seed.

The search alternates two parts. The task planner finds a *skeleton*, a sequence of actions that reaches the goal in the
domain; :mod:`tmkit.tamp.refinement` computes its motions. If that fails, the cause becomes a constraint on the facts
that it depends on (:mod:`tmkit.tamp.diagnosis.constraints`), and the search half of the task planner runs again on the
constrained task (:mod:`tmkit.tamp.run`).

Invariants: the same problem and options give the same plan, bit for bit, whatever runs beside, and the same explanation
unless the time limit ended the search. ``PROVED_UNSOLVABLE`` rests on the task alone, before any constraint was learned
and with every object of the scene, or on an argument of the domain (:mod:`tmkit.tamp.domains.infeasibility`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

from tmkit.errors import TaskError
from tmkit.formats import GoalScene
from tmkit.graph import SceneGraph
from tmkit.pddl import Problem, validate_task_plan
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, find_manipulators
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.domains.loading import PlanningDomain, load_planning_domain
from tmkit.tamp.domains.problems import derive_problem, goal_of_scene
from tmkit.tamp.goals.compilation import extended_domain, extended_goal
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem, problem_file_of
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.run import run_search
from tmkit.tamp.start import check_start


def solve(
    problem: PlanningProblem, options: PlanningOptions, *, on_progress: Callable[[PlanningProgress], None] | None = None
) -> PlanResult:
    """Plan with the seed of the options; the result and the errors are those of :func:`tmkit.plan`.

    Args:
        problem: the problem.
        options: the options, of one seed.
        on_progress: as for :func:`tmkit.plan`.
    """
    manipulators = find_manipulators(problem.robots, problem.scene)
    domain = load_planning_domain(problem.domain, manipulator=manipulators, semantics=problem.semantics)
    with domain.blamed("planning", if_traced=True):
        return _solved(problem, options, domain, manipulators, on_progress)


def _solved(
    problem: PlanningProblem, options: PlanningOptions, domain: PlanningDomain,
    manipulators: tuple[Manipulator, ...], on_progress: Callable[[PlanningProgress], None] | None,
) -> PlanResult:  # fmt: skip
    start = check_start(problem.scene, problem.q, *manipulators)
    goals = tuple(goal for goal in problem.goals if isinstance(goal, get_args(ContinuousGoal)))
    texts = [
        goal_of_scene(goal, problem.scene, domain=domain) if isinstance(goal, SceneGraph | GoalScene) else str(goal)
        for goal in problem.goals
        if not isinstance(goal, get_args(ContinuousGoal))
    ]
    domain = extended_domain(domain, goals, problem.scene, q=start, manipulators=manipulators)
    if (file := problem_file_of(problem.goals[0])) is not None:
        task = derive_problem(problem.scene, domain, q=start, problem=file)
        stated = str(task.goal)
    else:
        formula, stated = extended_goal(texts, domain, problem.scene)
        task = derive_problem(problem.scene, domain, q=start, goal=formula)
    _refuse_goals_without_actions(task, goals, problem.scene, start)
    context = PlanningContext(
        problem.scene, start, manipulators=manipulators, domain=domain, problem=task, options=options,
        on_progress=on_progress, goal=stated, continuous_goals=goals,
    )  # fmt: skip
    return run_search(context)


def _refuse_goals_without_actions(
    task: Problem, goals: Sequence[ContinuousGoal], scene: SceneGraph, q: Configuration
) -> None:
    """Refuse a goal of the arm where nothing else is to be done, since a plan's motions belong to its actions."""
    unmet = [goal for goal in goals if isinstance(goal, ArmAt) and goal.fault(scene, q) is not None]
    if unmet and validate_task_plan(task, []).is_valid:
        what = (
            f"{unmet[0]} cannot be planned for: the rest of the goal holds already, and the arm moves by actions only"
        )
        raise TaskError.at("goal", what)
