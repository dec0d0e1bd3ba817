"""The task planners, built in and installed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.plug_ins import MakerGroup, PlugIn
from tmkit.task_planning.unified.registration import UNIFIED
from tmkit.task_planning.z3.registration import SMT

if TYPE_CHECKING:
    from tmkit.task_planning.protocol import TaskPlanner


def _make_satisficing() -> TaskPlanner[Any]:
    from tmkit.task_planning.fast_downward import FastDownward

    return FastDownward()


def _make_optimal() -> TaskPlanner[Any]:
    from tmkit.task_planning.fast_downward import FastDownward

    return FastDownward.optimal()


FAST_DOWNWARD: PlugIn[TaskPlanner[Any]] = PlugIn(
    "fast-downward", _make_satisficing, "Satisficing plans by Fast Downward; the default."
)
"""Fast Downward, satisficing."""

OPTIMAL: PlugIn[TaskPlanner[Any]] = PlugIn(
    "optimal", _make_optimal, "Cost-optimal plans by Fast Downward."
)
"""Fast Downward, cost-optimal."""


def _built_in() -> tuple[PlugIn[TaskPlanner[Any]], ...]:
    return (FAST_DOWNWARD, OPTIMAL, SMT, UNIFIED)


TASK_PLANNERS: MakerGroup[TaskPlanner[Any]] = MakerGroup(
    "tmkit.task_planners", "task planner", PlugIn, _built_in, methods=("prepare", "search")
)
"""The task planners."""


def find_task_planner(name: str) -> TaskPlanner[Any]:
    """Return a task planner by its name; plans of a plug-in are validated.

    Args:
        name: a built-in name such as ``smt`` or ``unified:aries``, or the name of a plug-in.

    Raises:
        UnknownNameError: if there is no such task planner.
        PlugInError: if the plug-in cannot be loaded or fails.
    """
    from tmkit.task_planning.protocol import CheckedTaskPlanner

    planner = TASK_PLANNERS.make(name)
    is_built_in = TASK_PLANNERS.find_built_in(name.partition(":")[0]) is not None
    return planner if is_built_in else CheckedTaskPlanner(planner)
