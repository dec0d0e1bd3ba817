"""The names that `tmkit.motion` exports."""

from tmkit._core import (
    CollisionWorld as CollisionWorld,
    IkSettings as IkSettings,
    InverseKinematicsStatus as InverseKinematicsStatus,
    PathResult as PathResult,
    PathSettings as PathSettings,
    PathStatus as PathStatus,
    StraightLineSettings as StraightLineSettings,
    inverse_kinematics as inverse_kinematics,
    inverse_kinematics_solutions as inverse_kinematics_solutions,
    recheck_path as recheck_path,
    search_path as search_path,
    straight_line as straight_line,
)
from tmkit.motion.collision_rules import CollisionRules as CollisionRules
from tmkit.motion.dynamics import TorqueLimits as TorqueLimits
from tmkit.motion.motion_planner import (
    MotionPlanner as MotionPlanner,
    PathQuery as PathQuery,
    RrtConnect as RrtConnect,
)
from tmkit.motion.path_constraints import PathConstraint as PathConstraint, path_fault as path_fault
from tmkit.motion.reachable_region import reachable_region as reachable_region
from tmkit.motion.regions.surfaces import (
    lies_in_region as lies_in_region,
    support_surfaces as support_surfaces,
)
from tmkit.motion.roadmap import Roadmap as Roadmap
from tmkit.motion.start_tolerances import StartTolerances as StartTolerances
from tmkit.motion.timing import time_path as time_path
from tmkit.motion.velocity_ik import twist_jacobian as twist_jacobian, velocity_ik as velocity_ik
