"""Registration of the engines of unified-planning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.errors import TaskPlannerError
from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.task_planning.protocol import TaskPlanner


def _make(engine: str = "") -> TaskPlanner[Any]:
    from tmkit.task_planning.unified.planner import UnifiedPlanner

    if not engine:
        reason = f"give the engine after the name, as {UNIFIED.name}:aries"
        raise TaskPlannerError(reason, command=(), output="")
    return UnifiedPlanner(engine)


UNIFIED: PlugIn[TaskPlanner[Any]] = PlugIn(
    "unified",
    _make,
    "An engine of unified-planning, such as aries or tamer, for numbers and time.",
    argument="ENGINE",
    extra="planners",
    module="unified_planning",
)
"""The engines of unified-planning."""
