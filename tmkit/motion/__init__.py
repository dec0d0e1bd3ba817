"""Motion: manipulators, collision checks, inverse kinematics, path search, straight lines, timing.

Everything here works on one version of a scene and knows nothing of tasks. The searching and checking is done by the
compiled core and releases the interpreter; this room adds the descriptions of arms (:class:`Manipulator`), the rules
about what may touch what while an arm works (:class:`CollisionRules`), and the timing of paths.
"""

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
from tmkit.motion.collision_rules import CollisionRules, Exemption, movable_frames, pair_distance
from tmkit.motion.guessed_arm import guess_manipulator, write_manipulator
from tmkit.motion.inferred_arm import InferredArm, infer_arm
from tmkit.motion.manipulator import Manipulator
from tmkit.motion.motion_planner import (
    FoundPath,
    MotionPlanner,
    PathAnswer,
    PathCheck,
    PathQuery,
    RrtConnect,
    proved_search,
)
from tmkit.motion.reach_bound import ReachHeights, reach_excess, reach_heights
from tmkit.motion.reachable_region import ReachableRegion, reachable_region
from tmkit.motion.robot_chains import JointChain
from tmkit.motion.robot_check import Reach, RobotReport, check_robot
from tmkit.motion.robot_files import find_manipulator, load_manipulator
from tmkit.motion.robot_remarks import JointRow
from tmkit.motion.several_arms import Robots, find_manipulators, ready_together
from tmkit.motion.timing import TimedPath, time_path

__all__ = [
    "CollisionRules",
    "CollisionWorld",
    "Contact",
    "EdgeCollision",
    "Exemption",
    "FoundPath",
    "InferredArm",
    "InverseKinematicsResult",
    "InverseKinematicsSolutions",
    "InverseKinematicsStatus",
    "JointChain",
    "JointRow",
    "Manipulator",
    "MotionPlanner",
    "PathAnswer",
    "PathCheck",
    "PathQuery",
    "PathResult",
    "PathStatus",
    "Reach",
    "ReachHeights",
    "ReachableRegion",
    "RecheckResult",
    "RecheckStatus",
    "RobotReport",
    "Robots",
    "RrtConnect",
    "StraightLineResult",
    "StraightLineStatus",
    "TimedPath",
    "check_robot",
    "find_manipulator",
    "find_manipulators",
    "guess_manipulator",
    "infer_arm",
    "inverse_kinematics",
    "inverse_kinematics_solutions",
    "load_manipulator",
    "movable_frames",
    "pair_distance",
    "proved_search",
    "reach_excess",
    "reach_heights",
    "reachable_region",
    "ready_together",
    "recheck_path",
    "search_path",
    "straight_line",
    "time_path",
    "write_manipulator",
]
