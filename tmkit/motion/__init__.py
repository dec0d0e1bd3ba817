"""Motion: collision rules, inverse kinematics, path search, straight lines, timing, regions.

All functions work on one version of a scene and do not depend on tasks. The compiled core searches and checks, and
releases the interpreter. :class:`CollisionRules` defines which contacts are allowed while an arm picks and places,
:class:`MotionPlanner` is the protocol of path planners, ``regions`` has the level surfaces of a scene. Arms are
described in :mod:`tmkit.robots`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._core import (
    CollisionWorld,
    Contact,
    EdgeCollision,
    InverseKinematicsResult,
    InverseKinematicsSolutions,
    InverseKinematicsStatus,
    PathResult,
    PathStatus,
    RecheckResult,
    RecheckStatus,
    StraightLineResult,
    StraightLineStatus,
    inverse_kinematics,
    inverse_kinematics_solutions,
    recheck_path,
    search_path,
    straight_line,
)
from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.motion.collision_rules import CollisionRules, Exemption
    from tmkit.motion.motion_planner import (
        MotionPlanner,
        PathCheck,
        PathQuery,
        RrtConnect,
        search_verified,
    )
    from tmkit.motion.reach_bound import ReachHeights, reach_excess, reach_heights
    from tmkit.motion.reachable_region import ReachableRegion, reachable_region
    from tmkit.motion.regions import SupportSurface, lies_in_region, region_surface, support_surfaces
    from tmkit.motion.timing import TimedPath, time_path
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CollisionRules",
    "CollisionWorld",
    "Contact",
    "EdgeCollision",
    "Exemption",
    "InverseKinematicsResult",
    "InverseKinematicsSolutions",
    "InverseKinematicsStatus",
    "MotionPlanner",
    "PathCheck",
    "PathQuery",
    "PathResult",
    "PathStatus",
    "ReachHeights",
    "ReachableRegion",
    "RecheckResult",
    "RecheckStatus",
    "RrtConnect",
    "StraightLineResult",
    "StraightLineStatus",
    "SupportSurface",
    "TimedPath",
    "inverse_kinematics",
    "inverse_kinematics_solutions",
    "lies_in_region",
    "reach_excess",
    "reach_heights",
    "reachable_region",
    "recheck_path",
    "region_surface",
    "search_path",
    "search_verified",
    "straight_line",
    "support_surfaces",
    "time_path",
]
