"""Names exported by `tmkit.graph`."""

from tmkit._core import (
    AttachedShape as AttachedShape,
    Box as Box,
    Capsule as Capsule,
    Cone as Cone,
    Continuous as Continuous,
    Cylinder as Cylinder,
    EdgeNoise as EdgeNoise,
    Fixed as Fixed,
    FrameSpecification as FrameSpecification,
    Free as Free,
    HeightField as HeightField,
    Inertia as Inertia,
    Joint as Joint,
    Kinematics as Kinematics,
    Measurement as Measurement,
    Mesh as Mesh,
    Mimic as Mimic,
    NoiseSource as NoiseSource,
    Plane as Plane,
    PointCloud as PointCloud,
    Prismatic as Prismatic,
    Revolute as Revolute,
    SceneArrays as SceneArrays,
    SceneEdit as SceneEdit,
    SceneGraph as SceneGraph,
    Shape as Shape,
    Sphere as Sphere,
    StampedPoses as StampedPoses,
    Unstated as Unstated,
    diff as diff,
    innovation as innovation,
)
from tmkit.graph.display.outline import tree_text as tree_text
from tmkit.graph.display.svg import graph_svg as graph_svg, tree_svg as tree_svg
from tmkit.graph.history import SceneHistory as SceneHistory, moved_frames as moved_frames
from tmkit.graph.moments import (
    When as When,
    at_stamp as at_stamp,
    configuration as configuration,
    gaussian_pose as gaussian_pose,
    joint_velocities as joint_velocities,
)
from tmkit.graph.observation_frames import (
    Evidence as Evidence,
    add_observation as add_observation,
    observations as observations,
)
from tmkit.graph.patterns.pattern import find_structure as find_structure
from tmkit.graph.rigid import (
    collapse_fixed_frames as collapse_fixed_frames,
    is_rigid as is_rigid,
    rigid_frames as rigid_frames,
    rigid_inertia as rigid_inertia,
)
from tmkit.graph.semantic_edges.edges import (
    add_edge as add_edge,
    add_pose as add_pose,
    add_twist as add_twist,
    update_pose as update_pose,
)
from tmkit.graph.semantic_edges.facts import FactPolicy as FactPolicy, add_fact as add_fact
from tmkit.graph.semantic_edges.integration import integrate as integrate
from tmkit.graph.semantic_edges.queries import relate as relate
from tmkit.graph.semantic_edges.twists import (
    Expression as Expression,
    acceleration as acceleration,
    classical_acceleration as classical_acceleration,
    gaussian_twist as gaussian_twist,
    momentum as momentum,
    twist as twist,
)
from tmkit.graph.semantic_edges.wrenches import (
    payload_wrench as payload_wrench,
    set_wrench_bias as set_wrench_bias,
    transport as transport,
    wrench as wrench,
)
from tmkit.graph.task_facts import change_task_facts as change_task_facts, task_facts as task_facts
from tmkit.graph.traversal import (
    Stamped as Stamped,
    common_ancestor as common_ancestor,
    contributions as contributions,
    joint_gaussian as joint_gaussian,
    joints_between as joints_between,
    walk as walk,
)
