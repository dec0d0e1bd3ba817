"""Registration of the OMPL motion planners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.motion.motion_planner import MotionPlanner


def _make_ompl(planner: str = "RRTConnect") -> MotionPlanner:
    from tmkit.motion.ompl.planner import OmplPlanner

    return OmplPlanner(planner)


OMPL: PlugIn[MotionPlanner] = PlugIn(
    "ompl",
    _make_ompl,
    "A sampling-based planner of OMPL, RRTConnect by default.",
    argument="PLANNER",
    extra="planners",
    module="ompl",
)
"""Plug-in of the OMPL motion planners."""
