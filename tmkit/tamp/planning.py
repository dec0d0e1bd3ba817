"""Task-and-motion planning: from a scene and a goal to a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Unpack, overload

from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit._support.options import unknown_option
from tmkit.errors import ArgumentError
from tmkit.graph import SceneGraph
from tmkit.robots.robot_files import Robots
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.options import PlanningKeywords, PlanningOptions
from tmkit.tamp.portfolio import plan_portfolio
from tmkit.tamp.problem import Goal, PlanningProblem
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.solve import solve


@overload
def plan(
    problem: PlanningProblem,
    options: PlanningOptions | None = None,
    /,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult: ...


@overload
def plan(
    scene: SceneGraph,
    /,
    q: ArrayLike | None = None,
    *,
    goal: Goal | Sequence[Goal],
    domain: str | Path | PythonDomain = "blocks",
    robot: Robots = "panda",
    semantics: str | Path | None = None,
    on_progress: Callable[[PlanningProgress], None] | None = None,
    **options: Unpack[PlanningKeywords],
) -> PlanResult: ...


def plan(
    problem: PlanningProblem | SceneGraph,
    options: Any = None,
    /,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
    **keywords: Any,
) -> PlanResult:
    """Find actions and motions that reach a goal; return the plan, or why there is none.

    ``plan(problem, options)`` plans a :class:`~tmkit.tamp.PlanningProblem` with
    :class:`~tmkit.tamp.PlanningOptions`. ``plan(scene, q, goal=..., domain=..., robot=..., ...)`` is the short form: it
    makes both from its keywords, which are the fields of the two classes.

    Args:
        problem: the problem.
        options: the options; the defaults if omitted.
        on_progress: called before each search of the task planner, whenever another action has been refined, and
            with ``improve`` with the first plan and each better one (:class:`tmkit.tamp.ImprovementProgress`). It is
            called in this thread, with several workers, too; what it raises ends planning and reaches the caller.
        scene: short form: the scene at the start.
        q: short form: (n_joints,) configuration at the start, in radians and metres; ready by default.
        goal: short form: PDDL text, a formula, poses and regions, a scene, several of these, or the path of a PDDL
            problem file; see :class:`~tmkit.tamp.PlanningProblem`.
        domain: short form: the domain, ``"blocks"`` by default.
        robot: short form: an arm or several, ``"panda"`` by default.
        semantics: short form: the domain semantics, if not beside the PDDL.
        keywords: short form: any field of the options, as ``seed=0``, ``time_limit=60.0``, ``improve=10``.

    Raises:
        ArgumentError: an unknown keyword, or an argument of another type; the message has the nearest valid name.
        ConfigurationError: ``q`` has the wrong length, is outside the limits of arm and hand, or leaves open the
            hand that holds an object; or an option is outside its range.
        CollisionError: the start is in collision; the message has the pairs.
        TaskError: the goal or problem file is wrong; the message has the place.
        SceneError: the scene has no state in the domain.
        RobotError: an arm does not fit the scene, or the domain takes another number of arms.
        MissingFileError: a name that is not there.
        SemanticsMismatchError: the domain's semantics contradict its PDDL.
        SamplerError: one of your samplers raises an error or returns an invalid value.
    """
    if not isinstance(problem, PlanningProblem):
        problem, options = _from_keywords(problem, options, keywords)
    elif keywords:
        hint = "only a scene takes keywords; set the fields of the problem and of the options instead"
        raise ArgumentError(f"plan(): unexpected keyword '{next(iter(keywords))}'; {hint}", function="plan")
    options = PlanningOptions() if options is None else options
    check_argument(options, PlanningOptions, "options", function="plan")
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError(f"plan(): on_progress must be a function, not {repr(on_progress)[:60]}", function="plan")
    entries = list(options.each_seed())
    if len(entries) == 1:
        return solve(problem, entries[0], on_progress=on_progress)
    answer = plan_portfolio(problem, entries, workers=options.workers, on_progress=on_progress)
    return replace(answer.result, explanation=answer.explanation)


_OF_PROBLEM = {"q": "q", "goal": "goal", "domain": "domain", "robot": "robots", "semantics": "semantics"}


def _from_keywords(scene: SceneGraph, q: Any, keywords: dict[str, Any]) -> tuple[PlanningProblem, PlanningOptions]:
    """Return the problem and options of the short form."""
    if isinstance(q, PlanningOptions):
        raise ArgumentError("plan(): options go with a PlanningProblem, a scene takes keywords", function="plan")
    known = [*_OF_PROBLEM, *(entry.name for entry in fields(PlanningOptions))]
    for name in keywords:
        if name not in known:
            raise ArgumentError(f"plan(): {unknown_option(name, known)}", function="plan", argument=name)
    if q is not None and "q" in keywords:
        raise ArgumentError("plan(): 'q' is given twice", function="plan", argument="q")
    given = {"q": q} | {_OF_PROBLEM[name]: value for name, value in keywords.items() if name in _OF_PROBLEM}
    options = {name: value for name, value in keywords.items() if name not in _OF_PROBLEM}
    return PlanningProblem(scene, **given), PlanningOptions(**options)


def _signature() -> inspect.Signature:
    """Return the signature of the short form, with each option, for ``help()``."""
    plain = inspect.signature(plan)
    problem, options, *others = plain.parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    of_problem = inspect.signature(PlanningProblem).parameters
    more = [(name, of_problem[of]) for name, of in _OF_PROBLEM.items() if name != "q"]
    more += list(inspect.signature(PlanningOptions.__init__).parameters.items())[1:]
    added = [parameter.replace(name=name, kind=keyword) for name, parameter in more]
    return plain.replace(parameters=[problem, options, *added, others[0]])


plan.__signature__ = _signature()  # type: ignore[attr-defined]  # what help() shows instead of **keywords
