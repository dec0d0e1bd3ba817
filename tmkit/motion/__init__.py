"""Motion: collision rules, inverse kinematics, path search, straight lines, timing, regions.

All functions work on one version of a scene and do not depend on tasks. The compiled core searches and checks, and
releases the interpreter. :class:`CollisionRules` defines which contacts are allowed while an arm picks and places,
:class:`MotionPlanner` is the protocol of path planners, ``regions`` has the level surfaces of a scene. Arms are
described in :mod:`tmkit.robots`.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._core import (
        CollisionWorld as CollisionWorld,
        Contact as Contact,
        EdgeCollision as EdgeCollision,
        InverseKinematicsResult as InverseKinematicsResult,
        InverseKinematicsSolutions as InverseKinematicsSolutions,
        InverseKinematicsStatus as InverseKinematicsStatus,
        PathResult as PathResult,
        PathStatus as PathStatus,
        RecheckResult as RecheckResult,
        RecheckStatus as RecheckStatus,
        StraightLineResult as StraightLineResult,
        StraightLineStatus as StraightLineStatus,
        inverse_kinematics as inverse_kinematics,
        inverse_kinematics_solutions as inverse_kinematics_solutions,
        recheck_path as recheck_path,
        search_path as search_path,
        straight_line as straight_line,
    )
    from tmkit.motion.collision_rules import CollisionRules as CollisionRules, Exemption as Exemption
    from tmkit.motion.dynamics import TorqueLimits as TorqueLimits
    from tmkit.motion.motion_planner import (
        MotionPlanner as MotionPlanner,
        PathCheck as PathCheck,
        PathQuery as PathQuery,
        RrtConnect as RrtConnect,
        search_verified as search_verified,
    )
    from tmkit.motion.path_constraints import (
        PathConstraint as PathConstraint,
        carrying_constraints as carrying_constraints,
        path_fault as path_fault,
    )
    from tmkit.motion.reach_bound import (
        ReachHeights as ReachHeights,
        WristBound as WristBound,
        reach_excess as reach_excess,
        wrist_bound as wrist_bound,
        reach_heights as reach_heights,
    )
    from tmkit.motion.reachable_region import ReachableRegion as ReachableRegion, reachable_region as reachable_region
    from tmkit.motion.regions.surfaces import (
        SupportSurface as SupportSurface,
        lies_in_region as lies_in_region,
        region_surface as region_surface,
        support_surfaces as support_surfaces,
    )
    from tmkit.motion.roadmap import Roadmap as Roadmap
    from tmkit.motion.timing import TimedPath as TimedPath, time_path as time_path
    from tmkit.motion.velocity_ik import (
        TwistJacobian as TwistJacobian,
        VelocityIkResult as VelocityIkResult,
        VelocityIkStatus as VelocityIkStatus,
        twist_jacobian as twist_jacobian,
        velocity_ik as velocity_ik,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
