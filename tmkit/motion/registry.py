"""Registry of built-in and installed motion planners, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit.motion.ompl.registration import OMPL
from tmkit.plug_ins import MakerGroup, PlugIn

if TYPE_CHECKING:
    from tmkit.motion.motion_planner import MotionPlanner


def _make_rrt_connect() -> MotionPlanner:
    from tmkit.motion.motion_planner import RrtConnect

    return RrtConnect()


RRT_CONNECT: PlugIn[MotionPlanner] = PlugIn(
    "rrt-connect", _make_rrt_connect, "RRT-Connect of the core, with path constraints; the default."
)
"""Plug-in of the RRT-Connect of the C++ core."""


def _built_in() -> tuple[PlugIn[MotionPlanner], ...]:
    return (RRT_CONNECT, OMPL)


MOTION_PLANNERS: MakerGroup[MotionPlanner] = MakerGroup(
    "tmkit.motion_planners", "motion planner", PlugIn, _built_in, methods=("search",)
)
"""Entry point group of motion planners."""
