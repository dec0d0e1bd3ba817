"""Options of planning: seeds, limits and budgets of a search, and the planners and samplers that it uses.

:class:`PlanningOptions` is the one list of them. Problem files have the same names in the table
``[options]``, and ``tmkit plan`` has a flag for each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tmkit._support.options import CheckedOptions, option
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
"""What a plan costs: the name of a cost, or a function that returns the cost of a step."""

DEFAULT_TIME_LIMIT = 30.0
"""Seconds after which planning stops, unless it is given a limit on time or iterations."""

_METHODS = {
    "task_planner": ("prepare", "search"),
    "motion_planner": ("search",),
    "samplers": ("grasp_sampler", "placement_sampler"),
}
_SEARCH = SearchSettings()
"""The default settings of the search."""

_SUGGESTING = 0.2  # share of the time that is kept for the explanation, with suggestions
_EXPLAINING = 0.05  # and without


def _find_task_planner(name: str) -> TaskPlanner[Any]:
    from tmkit.task_planning.registry import find_task_planner

    return find_task_planner(name)


def _find_motion_planner(name: str) -> MotionPlanner:
    from tmkit.motion.registry import MOTION_PLANNERS

    return MOTION_PLANNERS.make(name)


@dataclass(frozen=True, repr=False)
class PlanningOptions(CheckedOptions):
    """How to plan: what may change the plan and the time it takes, but not the problem.

    Results are the same for equal options on any machine, unless a time limit ends the search.

    Attributes:
        seed: seed of all random numbers, at least 0; 0 by default.
        seeds: number of seeds to try, from ``seed`` on, at least 1; by default as many as
            ``workers``. The result is that of the first seed, in order, that has a plan or a proof
            that there is none.
        workers: processes that try seeds at a time, at least 1; 1 by default: no process is
            started. The result does not depend on it when ``seeds`` is given.
        time_limit: positive seconds after which each seed stops; by default 30, or no limit if
            ``max_iterations`` is given. ``math.inf`` for no limit. The search uses all of it but
            ``explanation_share``.
        max_iterations: search iterations after which each seed stops, at least 1, each with twice
            the budgets of the one before; by default as many as the time allows. Results that do
            not depend on the clock need it.
        improve: iterations after the first plan, at least 0, which make it cheaper and shorter; 0
            by default; None (``"all"`` in files and on the command line) for as many as the time
            allows.
        cost: what is to be small: ``"actions"`` (default), the cost of the actions by the problem's
            metric and then the length of the paths. ``"path_length"``, that length alone, in
            radians. ``"duration"``, the seconds that the arms move when each step is executed.
            ``"makespan"``, the seconds until the last step ends, of the schedule with
            ``arms_at_once``. A function returns the cost of a :class:`~tmkit.plans.PlanStep`, a
            finite number of at least 0, the same for equal steps. Only ``improve`` uses it.
        suggest: whether to search for changes that would help when there is no plan; True by
            default. It tries at most ten changes within ``explanation_share`` of the time limit.
        record_tree: whether the result has the search trees (:class:`tmkit.tamp.SearchTree`); False
            by default.
        explanation_share: share of the time limit reserved for the explanation if there is no plan,
            at least 0 and below 1; by default 0.2 with suggestions and 0.05 without.
        skeletons_per_iteration: task plans from the start that are refined in each iteration, at
            least 1; 48 by default.
        attempts_per_action: motions tried for one action in one scene version in the first
            iteration, at least 1; 16 by default.
        samples_per_skeleton: motions tried for one task plan in the first iteration, at least 1;
            200 by default. Long task plans get more.
        path_iterations: iterations of one path search in the first iteration, at least 1; 2000 by
            default.
        arms_at_once: whether independent steps of different arms overlap in time
            (:func:`tmkit.tamp.schedule_plan`); False by default. Arms then take turns in task
            plans.
        task_planner: finds sequences of actions; :class:`tmkit.task_planning.FastDownward` by
            default. A name, as ``"smt"`` or ``"unified:aries"``, becomes the planner; ``tmkit list
            planners`` has them.
        motion_planner: finds paths between configurations; :class:`tmkit.motion.RrtConnect` by
            default. A name, as ``"ompl"`` or ``"ompl:BITstar"``, becomes the planner.
        samplers: sample grasps and placements; the built-in ones by default.
        search: effort and order of the search (:class:`tmkit.tamp.SearchSettings`); in Python only.

    Raises:
        ConfigurationError: a value outside its range, or a planner or samplers without their
            methods; it has the attributes ``option`` and ``value``.
        ArgumentError: an unknown option; the message names the nearest.
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
    cost: Cost = option(  # noqa: RUF009  # as the others, a field
        "actions", "What --improve makes small.", type=str, choices=get_args(get_args(Cost)[0])
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
    arms_at_once: bool = option(
        False, "Let independent steps of different arms overlap in time.", type=bool
    )
    task_planner: TaskPlanner[Any] | str | None = option(  # noqa: RUF009  # as the others, a field
        None,
        "What finds sequences of actions, by name; see 'tmkit list planners'.",
        type=str,
        find=_find_task_planner,
    )
    motion_planner: MotionPlanner | str | None = option(  # noqa: RUF009  # as the others, a field
        None,
        "What finds paths between configurations, by name; see 'tmkit list planners'.",
        type=str,
        find=_find_motion_planner,
    )
    samplers: Samplers | None = None
    search: SearchSettings = _SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, methods in _METHODS.items():
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, type)
                or not all(callable(getattr(value, method, None)) for method in methods)
            ):
                hint = f"; call it: {value.__name__}()" if isinstance(value, type) else ""
                reason = (
                    f"{name} must have the methods {', '.join(methods)}, not"
                    f" {repr(value)[:60]}{hint}"
                )
                raise ConfigurationError(reason, option=name, value=value)
        if not isinstance(self.search, SearchSettings):
            reason = f"search must be a SearchSettings, not {repr(self.search)[:60]}"
            raise ConfigurationError(reason, option="search", value=self.search)

    @property
    def seconds(self) -> float:
        """The time limit with its default; infinite for none."""
        if self.time_limit is None:
            return DEFAULT_TIME_LIMIT if self.max_iterations is None else math.inf
        return self.time_limit

    @property
    def seconds_to_explain(self) -> float:
        """The part of the time that is reserved for the explanation; infinite where there is no limit."""
        default = _SUGGESTING if self.suggest else _EXPLAINING
        share = default if self.explanation_share is None else self.explanation_share
        return share * self.seconds if share else 0.0

    def each_seed(self) -> Iterator[PlanningOptions]:
        """Yield the options of each seed, alone and without further processes."""
        for number in range(self.workers if self.seeds is None else self.seeds):
            yield replace(self, seed=self.seed + number, seeds=None, workers=1)
