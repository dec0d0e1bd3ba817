"""Task-and-motion planning: from a scene and a PDDL goal to a plan.

The loop has two halves. The task planner finds a *skeleton*, a sequence of actions that reaches the goal by the words
of the domain; :mod:`tmkit.tamp.refinement` tries to make it motion. Where that fails, the cause becomes a constraint
that speaks only of the facts it depends on (:mod:`tmkit.tamp.diagnosis.constraints`), and the search half of the task
planner runs again on the task so changed. :mod:`tmkit.tamp.run` tells how the two take turns. This module is the
door: it checks what it is given and gathers what a run needs.

Invariants: the same arguments and seed give the same plan, bit for bit, whatever runs beside, and the same words unless
the time limit ended the search; it only stops. ``PROVED_UNSOLVABLE`` rests on the task alone, before any constraint was
learned and with every object of the scene, or on an argument of the domain's
(:mod:`tmkit.tamp.domains.infeasibility`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit.errors import ConfigurationError, TaskError
from tmkit.formats import GoalScene
from tmkit.graph import SceneGraph
from tmkit.manipulation.samplers import Samplers
from tmkit.motion import MotionPlanner
from tmkit.pddl import Formula, Problem, validate_task_plan
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.values import Configuration
from tmkit.robots import Robots, find_manipulators
from tmkit.tamp import run
from tmkit.tamp.context import PlanningContext, PlanningLimits
from tmkit.tamp.domains.loading import PythonDomain, load_planning_domain
from tmkit.tamp.domains.problems import derive_problem
from tmkit.tamp.goals.compilation import extended_domain, extended_goal
from tmkit.tamp.goals.goal_scenes import goal_of_scene
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.start import check_start
from tmkit.task_planning import FastDownward, TaskPlanner

__all__ = ["plan"]

_SUGGESTING = 0.2  # share of the time that is kept for the explanation, with suggestions
_EXPLAINING = 0.05  # and without


def plan(
    scene: SceneGraph,
    q: ArrayLike | None = None,
    *,
    domain: str | Path | PythonDomain = "blocks",
    goal: str | ContinuousGoal | Sequence[str | ContinuousGoal] | None = None,
    problem: str | Path | None = None,
    goal_scene: SceneGraph | GoalScene | None = None,
    semantics: str | Path | None = None,
    robot: Robots = "panda",
    samplers: Samplers | None = None,
    seed: int = 0,
    task_planner: TaskPlanner[Any] | None = None,
    motion_planner: MotionPlanner | None = None,
    time_limit: float | None = None,
    max_iterations: int | None = None,
    improve: int | None = 0,
    suggest: bool = True,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Find actions and motions that bring about a goal.

    Args:
        scene: the world.
        q: (n_joints,) configuration at the start; the arm's ready configuration when left out.
        domain: name of a domain of ours, a folder, a PDDL file, or a domain built in Python.
        goal: the goal in PDDL, e.g. ``"(and (on a b) (on b c))"``; or what PDDL cannot say, as
            :class:`tmkit.plans.ObjectAt`; or several of both, which are all wanted.
        problem: a PDDL problem file instead, whose objects and initial facts, where it gives them, must be the scene's.
        goal_scene: a scene that shows the goal, instead or with the rest of it in ``goal``, or what
            :func:`tmkit.formats.load_goal_scene` gives; see :func:`tmkit.tamp.goal_of_scene`.
        semantics: whose meaning the words of the domain have, when it is not in the file beside it; see
            :func:`tmkit.tamp.load_planning_domain`.
        robot: name of an arm of ours, a TOML file, or a description; or a sequence of them, for a domain that uses
            several arms.
        samplers: who proposes grasps and placements; those of this package when left out.
        task_planner: what finds the sequences of actions; :class:`tmkit.task_planning.FastDownward` when left out.
        motion_planner: what finds paths between configurations; :class:`tmkit.motion.RrtConnect` when left out.
        seed: at least 0; makes the plan repeatable; another seed may give another plan.
        time_limit: seconds after which to stop. By default 30, or no limit where ``max_iterations`` is given;
            ``math.inf`` for no limit. The search uses all of it, but for a fifth that is kept for the explanation.
        max_iterations: iterations of the search after which to end, at least 1, each with budgets twice those of the
            one before; by default as many as the time allows. Results that do not depend on the clock need it: where
            the time limit ends the search, what was tried depends on the speed of the machine.
        suggest: whether to look for what would help, when there is no plan and time is left: for a fifth of the time
            limit and ten questions at most.
        improve: iterations after the first plan, in which it is made cheaper and shorter; None for as many as the time
            allows. Its value is told to ``on_progress`` whenever it gets better
            (:class:`tmkit.tamp.ImprovementProgress`).
        on_progress: called before each search of the task planner and whenever another action has been refined.

    Returns:
        The plan, or why there is none.

    Raises:
        ConfigurationError: ``q`` has the wrong length, is outside the limits of arm and hand, or leaves open the
            hand that holds an object; or a seed or time limit that is none.
        CollisionError: something collides at the start; the message names the pairs.
        TaskError: the goal or problem is wrong; the message says where.
        SceneError: the scene cannot be told in the words of the domain.
        RobotError: an arm does not fit the scene, or the domain takes another number of arms.
        MissingFileError: a name that is not there.
        SemanticsMismatchError: the domain's semantics contradict its PDDL.
        SamplerError: a sampler of yours fails or gives nonsense.
    """
    hint = f"load it first: tk.load_scene({scene!r})" if isinstance(scene, str) else ""
    check_argument(scene, SceneGraph, "scene", function="plan", hint=hint)
    if time_limit is not None and not (time_limit > 0.0):
        raise ConfigurationError(f"time_limit must be positive seconds, not {time_limit}")
    if max_iterations is not None and max_iterations < 1:
        raise ConfigurationError(f"max_iterations must be at least 1, not {max_iterations}")
    if improve is not None and improve < 0:
        raise ConfigurationError(f"improve must be at least 0, not {improve}")
    if operator.index(seed) < 0:
        raise ConfigurationError(f"seed must be at least 0, not {seed}")
    if (problem is None) is (goal is None and goal_scene is None):
        raise TaskError.at("goal", "give a goal, a goal scene or both, or else a problem file")
    manipulators = find_manipulators(robot, scene)
    loaded = load_planning_domain(domain, manipulator=manipulators, semantics=semantics)
    start = check_start(scene, q, *manipulators)
    formula: str | Formula | None = goal if isinstance(goal, str) else None
    goals: tuple[ContinuousGoal, ...] = ()
    stated = ""
    if goal_scene is not None:
        shown = goal_of_scene(goal_scene, scene, domain=loaded)
        more = [goal] if isinstance(goal, str) or not isinstance(goal, Sequence) else goal
        formula, goal = (shown, None) if goal is None else (None, [shown, *(part for part in more if part is not None)])
    if goal is not None and not isinstance(goal, str):
        wanted = goal if isinstance(goal, Sequence) else (goal,)
        goals = tuple(entry for entry in wanted if not isinstance(entry, str))
        loaded = extended_domain(loaded, goals, scene, q=start, manipulators=manipulators)
        formula, stated = extended_goal([entry for entry in wanted if isinstance(entry, str)], loaded, scene)
    task = derive_problem(scene, loaded, q=start, goal=formula, problem=problem)
    _refuse_goals_without_actions(task, goals, scene, start)
    context = PlanningContext(
        scene,
        start,
        manipulators=manipulators,
        domain=loaded,
        problem=task,
        seed=operator.index(seed),
        limits=_limits(time_limit, max_iterations, improve=improve, suggest=suggest),
        on_progress=on_progress,
        task_planner=FastDownward() if task_planner is None else task_planner,
        samplers=samplers or Samplers(),
        motion_planner=motion_planner,
        goal=stated or str(task.goal),
        continuous_goals=goals,
    )
    return run.run_search(context, suggest=suggest)


def _limits(seconds: float | None, iterations: int | None, *, improve: int | None, suggest: bool) -> PlanningLimits:
    """Return the limits of a run, with the defaults that :func:`plan` documents."""
    if seconds is None:
        seconds = run.DEFAULT_TIME_LIMIT if iterations is None else math.inf
    share = _SUGGESTING if suggest else _EXPLAINING
    return PlanningLimits(seconds, iterations, explaining=share, improvements=improve)


def _refuse_goals_without_actions(
    task: Problem, goals: Sequence[ContinuousGoal], scene: SceneGraph, q: Configuration
) -> None:
    """Refuse a goal of the arm where nothing else is to be done, since a plan's motions belong to its actions."""
    unmet = [goal for goal in goals if isinstance(goal, ArmAt) and goal.fault(scene, q) is not None]
    if unmet and validate_task_plan(task, []):
        what = (
            f"{unmet[0]} cannot be planned for: the rest of the goal holds already, and the arm moves by actions only"
        )
        raise TaskError.at("goal", what)
