"""Registration of the task planner with Z3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.task_planning.protocol import TaskPlanner


def _make() -> TaskPlanner[Any]:
    from tmkit.task_planning.z3.planner import Z3Planner

    return Z3Planner()


SMT: PlugIn[TaskPlanner[Any]] = PlugIn(
    "smt",
    _make,
    "Plans with the fewest actions, by the SMT solver Z3.",
    extra="planners",
    module="z3",
)
"""Task planner with Z3."""
