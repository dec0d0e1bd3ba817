"""Planning options: seeds, limits and budgets of a search, planners and samplers.

:class:`PlanningOptions` lists all of them. Problem files have the same names in the table
``[options]``, and ``tmkit plan`` has a flag for each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tmkit._support.options import CheckedOptions, option
from tmkit._support.start_tolerances import START_LIMIT_TOLERANCE, StartTolerances
from tmkit.errors import ConfigurationError
from tmkit.tamp.search_settings import SearchSettings

if TYPE_CHECKING:
    from tmkit.manipulation.samplers import Samplers
    from tmkit.motion import MotionPlanner
    from tmkit.plans import PlanStep
    from tmkit.task_planning import TaskPlanner

Cost: TypeAlias = (
    Literal["actions", "path_length", "duration", "makespan"] | Callable[["PlanStep"], float]
)
"""Cost of a plan: the name of a cost, or a function that returns the cost of a step."""

DEFAULT_TIME_LIMIT = 30.0
"""Time limit of planning without a limit on time or iterations [s]."""

_REQUIRED_METHODS = {
    "task_planner": ("prepare", "search"),
    "motion_planner": ("search",),
    "samplers": ("grasp_sampler", "placement_sampler"),
}
"""Required methods of the objects that options contain, by option."""

_DEFAULT_SEARCH_SETTINGS = SearchSettings()
"""Default settings of the search."""

_START = StartTolerances()
"""Default tolerances of bodies at the start."""

_EXPLANATION_SHARE = 0.05
"""Fraction of the time limit reserved for an explanation without suggestions."""

_SUGGESTION_SHARE = 0.2
"""Fraction of the time limit reserved for an explanation with suggestions."""


def _find_task_planner(name: str) -> TaskPlanner[Any]:
    from tmkit.task_planning.registry import find_task_planner

    return find_task_planner(name)


def _find_motion_planner(name: str) -> MotionPlanner:
    from tmkit.motion.registry import MOTION_PLANNERS

    return MOTION_PLANNERS.make(name)


@dataclass(frozen=True, repr=False)
class PlanningOptions(CheckedOptions):
    """Planning options. They may change the plan and the planning time, but not the problem.

    Equal options give equal results on any machine, unless a time limit ends the search.

    Attributes:
        seed: seed of all random numbers, at least 0. Defaults to 0.
        seeds: number of seeds to try, from ``seed`` on, at least 1. Defaults to ``workers``. The
            result is that of the first seed, in order, with a plan or a proof of infeasibility.
        workers: number of processes that try seeds in parallel, at least 1. Defaults to 1, which
            starts no process. If ``seeds`` is given, the result does not depend on ``workers``.
        time_limit: positive time limit of each seed, or ``math.inf`` [s]. Defaults to 30, or to no
            limit if ``max_iterations`` is given. The search leaves ``explanation_share`` of it.
        max_iterations: number of search iterations of each seed, at least 1. Each has twice the
            budgets of the previous one. Defaults to no limit. Results that do not depend on the
            clock require it.
        improve: number of iterations after the first plan that reduce its cost and path length, at
            least 0. Defaults to 0. None (``"all"`` in files and on the command line) continues
            until the time limit.
        cost: cost that ``improve`` minimises, one of the names below or a function. Defaults to
            ``"actions"``. A function maps a :class:`~tmkit.plans.PlanStep` to a finite number of at
            least 0, which is equal for equal steps.

            * ``"actions"``: cost of the actions by the problem's metric, then the path length.
            * ``"path_length"``: length of the paths [rad].
            * ``"duration"``: motion time of the arms if the steps are executed one by one [s].
            * ``"makespan"``: end time of the last step, in the schedule with ``arms_at_once`` [s].
        suggest: whether to search for changes of the problem that have a plan, if it has none.
            Defaults to True. At most ten changes are tried, within ``explanation_share`` of the
            time limit.
        record_tree: whether the result contains the search trees (:class:`tmkit.tamp.SearchTree`).
            Defaults to False.
        explanation_share: fraction of the time limit reserved for the explanation if there is no
            plan, at least 0 and below 1. Defaults to 0.2 with suggestions and to 0.05 without.
        skeletons_per_iteration: number of task plans from the start that each iteration refines, at
            least 1. Defaults to 48.
        attempts_per_action: number of motions tried for one action in one scene version, in the
            first iteration, at least 1. Defaults to 16.
        samples_per_skeleton: number of motions tried for one task plan in the first iteration, at
            least 1. Defaults to 200. Long task plans get more.
        path_iterations: iterations of one path search in the first iteration, at least 1. Defaults
            to 2000.
        start_limit_tolerance: largest distance of a joint past a limit at the start [rad], a tenth
            of it for prismatic joints [m]. Such a joint is moved to the limit with a warning, and
            the plan starts there. Defaults to 0.001, since encoders and limits in files with few
            digits differ by less.
        start_penetration: depth of an overlap of bodies that may move, at the start [m]. Defaults
            to 0.001; see :class:`~tmkit.motion.StartTolerances`.
        start_floating: height of an object above its support at the start [m]. Defaults to 0.02.
        start_sinking: depth of an object in its support at the start [m]. Defaults to 0.005.
        arms_at_once: whether independent steps of different arms overlap in time
            (:func:`tmkit.tamp.schedule_plan`). Defaults to False. If True, the arms take turns in
            task plans.
        task_planner: planner of action sequences, or its name, such as ``"smt"`` or
            ``"unified:aries"``. ``tmkit list planners`` lists the names. Defaults to
            :class:`tmkit.task_planning.FastDownward`.
        motion_planner: planner of paths between configurations, or its name, such as ``"ompl"`` or
            ``"ompl:BITstar"``. Defaults to :class:`tmkit.motion.RrtConnect`.
        samplers: samplers of grasps and placements. Defaults to the built-in ones.
        search: effort and order of the search (:class:`tmkit.tamp.SearchSettings`), in Python only.

    Raises:
        ConfigurationError: if a value is outside its range, or a planner or the samplers lack a
            required method. The error has the attributes ``option`` and ``value``.
        ArgumentError: if an option is unknown. The message has the nearest name.
    """

    seed: int = option(0, "Seed of all random numbers.")
    seeds: int | None = option(
        None,
        "Seeds to try, from --seed on; the first in order with a plan. By default as many as"
        " workers.",
        least=1,
    )
    workers: int = option(1, "Processes that try seeds at a time.", least=1)
    time_limit: float | None = option(
        None,
        "Seconds after which each seed stops; by default 30, or no limit with --max-iterations.",
        type=float,
        unit="seconds",
        includes_least=False,
    )
    max_iterations: int | None = option(
        None, "Search iterations after which each seed stops.", least=1
    )
    improve: int | None = option(
        0, "Iterations that improve the plan, or all that time allows.", unlimited="all"
    )
    cost: Cost = option(  # noqa: RUF009  # returns a field
        "actions", "Cost that --improve minimises.", type=str, choices=get_args(get_args(Cost)[0])
    )
    suggest: bool = option(
        True, "Search for changes that would help when there is no plan.", type=bool
    )
    record_tree: bool = option(False, "Record the search tree, which --json shows.", type=bool)
    explanation_share: float | None = option(
        None, "Share of the time limit reserved for the explanation.", type=float, below=1.0
    )
    skeletons_per_iteration: int = option(48, "Task plans tried in each iteration.", least=1)
    attempts_per_action: int = option(
        16, "Motions tried for one action in the first iteration.", least=1
    )
    samples_per_skeleton: int = option(
        200, "Motions tried for one task plan in the first iteration.", least=1
    )
    path_iterations: int = option(
        2000, "Iterations of one path search in the first iteration.", least=1
    )
    start_limit_tolerance: float = option(
        START_LIMIT_TOLERANCE,
        "Distance of a joint past a limit at the start at which it is moved to the limit; a tenth"
        " of it in m for prismatic joints.",
        type=float,
        unit="rad",
    )
    start_penetration: float = option(
        _START.penetration,
        "Depth of an overlap at the start that motions may leave, but not deepen.",
        type=float,
        unit="m",
    )
    start_floating: float = option(
        _START.floating, "Height of an object above its support at the start.", type=float, unit="m"
    )
    start_sinking: float = option(
        _START.sinking, "Depth of an object in its support at the start.", type=float, unit="m"
    )
    arms_at_once: bool = option(
        False, "Let independent steps of different arms overlap in time.", type=bool
    )
    task_planner: TaskPlanner[Any] | str | None = option(  # noqa: RUF009  # returns a field
        None,
        "Name of the planner of action sequences; see 'tmkit list planners'.",
        type=str,
        find=_find_task_planner,
    )
    motion_planner: MotionPlanner | str | None = option(  # noqa: RUF009  # returns a field
        None,
        "Name of the planner of paths; see 'tmkit list planners'.",
        type=str,
        find=_find_motion_planner,
    )
    samplers: Samplers | None = None
    search: SearchSettings = _DEFAULT_SEARCH_SETTINGS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, methods in _REQUIRED_METHODS.items():
            value = getattr(self, name)
            if value is not None and not _has_methods(value, methods):
                hint = f"; call it: {value.__name__}()" if isinstance(value, type) else ""
                expected = f"{name} must have the methods {', '.join(methods)}"
                reason = f"{expected}, not {repr(value)[:60]}{hint}"
                raise ConfigurationError(reason, option=name, value=value)
        if not isinstance(self.search, SearchSettings):
            reason = f"search must be a SearchSettings, not {repr(self.search)[:60]}"
            raise ConfigurationError(reason, option="search", value=self.search)

    @property
    def start_tolerances(self) -> StartTolerances:
        """Tolerances of bodies at the start."""
        return StartTolerances(self.start_penetration, self.start_floating, self.start_sinking)

    @property
    def seconds(self) -> float:
        """Time limit, or its default; infinite for no limit [s]."""
        if self.time_limit is None:
            return DEFAULT_TIME_LIMIT if self.max_iterations is None else math.inf
        return self.time_limit

    @property
    def seconds_to_explain(self) -> float:
        """Time reserved for the explanation; infinite without a time limit [s]."""
        default = _SUGGESTION_SHARE if self.suggest else _EXPLANATION_SHARE
        share = default if self.explanation_share is None else self.explanation_share
        return share * self.seconds if share else 0.0

    def each_seed(self) -> Iterator[PlanningOptions]:
        """Yield the options of each seed, with a single worker."""
        for number in range(self.workers if self.seeds is None else self.seeds):
            yield replace(self, seed=self.seed + number, seeds=None, workers=1)


def _has_methods(value: object, methods: Sequence[str]) -> bool:
    """Return whether a value is an instance with the methods, and not a class."""
    is_class = isinstance(value, type)
    return not is_class and all(callable(getattr(value, method, None)) for method in methods)
