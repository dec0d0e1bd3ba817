"""Task-and-motion planning of a scene and a goal, or of a planning problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit.errors import ArgumentError
from tmkit.graph import SceneGraph
from tmkit.robots.robot_files import Robots
from tmkit.tamp.domains.loading import DomainSource
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.portfolio import plan_portfolio
from tmkit.tamp.problem import Goal, PlanningProblem
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.seed_run import run_seed


@with_keyword_hints
def plan(
    scene: SceneGraph,
    q: ArrayLike | None = None,
    *,
    goal: Goal | Sequence[Goal],
    domain: DomainSource = "blocks",
    robot: Robots = "panda",
    seed: int | None = None,
    options: PlanningOptions | None = None,
) -> PlanResult:
    """Plan actions and motions that reach a goal; return the plan, or an explanation.

    The function calls :func:`solve` with a :class:`~tmkit.tamp.PlanningProblem` of these arguments.
    Use :func:`solve` for progress reports and for domain semantics in another file.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start [rad, m]. Defaults to the ready configuration.
        goal: PDDL text, a formula, a pose, a region, a configuration, a scene, a sequence of these,
            or the path of a PDDL problem file; see :class:`~tmkit.tamp.PlanningProblem`.
        domain: planning domain: built-in name, folder or PDDL file, a domain built in Python, or a
            loaded one, whose arms ``robot`` must be.
        robot: one or more arms.
        seed: seed of all random numbers, at least 0. Defaults to that of the options.
        options: time limits, budgets, planners and samplers.

    Raises:
        ArgumentError: if an argument has another type.
        TmkitError: if :func:`solve` raises it.
    """
    options = _require_options(options, "plan")
    problem = PlanningProblem(scene, q, domain, goal, robot)
    return solve(problem, options if seed is None else replace(options, seed=seed))


@with_keyword_hints
def solve(
    problem: PlanningProblem,
    options: PlanningOptions | None = None,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Plan actions and motions that solve a problem; return the plan, or an explanation.

    Args:
        problem: planning problem.
        options: time limits, budgets, planners and samplers.
        on_progress: function that receives progress. It is called before each search of the task
            planner and after each newly refined action. With ``improve`` it receives the first plan
            and each better one (:class:`tmkit.tamp.ImprovementProgress`). It runs in the calling
            thread, also with several workers. An exception in it ends planning and propagates.

    Raises:
        ArgumentError: if an argument has another type.
        ConfigurationError: if ``q`` has the wrong length, a joint is past a limit by more than
            ``start_limit_tolerance``, or a hand that holds an object is open.
        CollisionError: if the start is in collision; the message has the pairs.
        TaskError: if the goal or problem file is invalid; the message has the place.
        SceneError: if the scene has no state in the domain.
        RobotError: if an arm does not fit the scene, or the domain takes another number of arms.
        MissingFileError: if a file does not exist.
        SemanticsMismatchError: if the domain's semantics contradict its PDDL.
        SamplerError: if a sampler raises an error or returns an invalid value.
    """
    hint = "plan a scene with tk.plan(scene, goal=...)" if isinstance(problem, SceneGraph) else ""
    check_argument(problem, PlanningProblem, "problem", function="solve", hint=hint)
    options = _require_options(options, "solve")
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError(
            f"solve(): on_progress must be a function, not {repr(on_progress)[:60]}",
            function="solve",
        )
    entries = list(options.each_seed())
    if len(entries) == 1:
        return run_seed(problem, entries[0], on_progress=on_progress)
    portfolio = plan_portfolio(problem, entries, workers=options.workers, on_progress=on_progress)
    return replace(portfolio.result, explanation=portfolio.explanation)


def _require_options(options: PlanningOptions | None, function: str) -> PlanningOptions:
    """Return the options or the default ones.

    Args:
        options: argument of the caller.
        function: name of the caller, for messages.

    Raises:
        ArgumentError: if the argument has another type.
    """
    if options is None:
        return PlanningOptions()
    check_argument(options, PlanningOptions, "options", function=function)
    return options
