"""Task-and-motion planning: from a scene and a goal, or a planning problem, to a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit.errors import ArgumentError
from tmkit.graph import SceneGraph
from tmkit.robots.robot_files import Robots
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.portfolio import plan_portfolio
from tmkit.tamp.problem import Goal, PlanningProblem
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.seed_run import run_seed


def plan(
    scene: SceneGraph,
    q: ArrayLike | None = None,
    *,
    goal: Goal | Sequence[Goal],
    domain: str | Path | PythonDomain = "blocks",
    robot: Robots = "panda",
    seed: int | None = None,
    options: PlanningOptions | None = None,
) -> PlanResult:
    """Find actions and motions that reach a goal; return the plan, or why there is none.

    Short for :func:`solve` with a :class:`~tmkit.tamp.PlanningProblem` of these arguments. Call
    that for progress and for domain semantics in another place.

    Args:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start, in radians and metres; the ready configuration by
            default.
        goal: PDDL text, a formula, poses and regions, a scene, several of these, or the path of a
            PDDL problem file; see :class:`~tmkit.tamp.PlanningProblem`.
        domain: the domain.
        robot: an arm or several.
        seed: seed of all random numbers, at least 0; that of the options by default.
        options: time limits, budgets, planners and samplers; the defaults if omitted.

    Raises:
        ArgumentError: if an argument has another type.
        TmkitError: as :func:`solve`.
    """
    options = _checked_options(options, "plan")
    problem = PlanningProblem(scene, q, domain, goal, robot)
    return solve(problem, options if seed is None else replace(options, seed=seed))


def solve(
    problem: PlanningProblem,
    options: PlanningOptions | None = None,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Find actions and motions that solve a planning problem; return the plan, or why there is none.

    Args:
        problem: the problem.
        options: the options; the defaults if omitted.
        on_progress: called before each search of the task planner, whenever another action has been
            refined, and with ``improve`` with the first plan and each better one
            (:class:`tmkit.tamp.ImprovementProgress`). It is called in this thread, with several
            workers, too; what it raises ends planning and reaches the caller.

    Raises:
        ArgumentError: if an argument has another type.
        ConfigurationError: if ``q`` has the wrong length, is outside the limits of arm and hand, or
            leaves open the hand that holds an object.
        CollisionError: if the start is in collision; the message has the pairs.
        TaskError: if the goal or problem file is wrong; the message has the place.
        SceneError: if the scene has no state in the domain.
        RobotError: if an arm does not fit the scene, or the domain takes another number of arms.
        MissingFileError: if there is no file of a name.
        SemanticsMismatchError: if the domain's semantics contradict its PDDL.
        SamplerError: if one of your samplers raises an error or returns an invalid value.
    """
    hint = "plan a scene with tk.plan(scene, goal=...)" if isinstance(problem, SceneGraph) else ""
    check_argument(problem, PlanningProblem, "problem", function="solve", hint=hint)
    options = _checked_options(options, "solve")
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError(
            f"solve(): on_progress must be a function, not {repr(on_progress)[:60]}",
            function="solve",
        )
    entries = list(options.each_seed())
    if len(entries) == 1:
        return run_seed(problem, entries[0], on_progress=on_progress)
    answer = plan_portfolio(problem, entries, workers=options.workers, on_progress=on_progress)
    return replace(answer.result, explanation=answer.explanation)


def _checked_options(options: PlanningOptions | None, function: str) -> PlanningOptions:
    if options is None:
        return PlanningOptions()
    check_argument(options, PlanningOptions, "options", function=function)
    return options
