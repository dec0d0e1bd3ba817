"""The scene graph: frames, joints, bodies and shapes as an immutable value.

Holding a :class:`SceneGraph` means holding one consistent version of the world. An edit returns a new version that
shares nearly everything with the old one; the old version stays valid and can be read from every thread.
``scene.at(q)`` is a :class:`Kinematics`: the scene at a configuration, with all poses computed. :class:`SceneArrays` is
the same world in preallocated arrays, edited in place: for control loops.

The compiled core implements these values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._core import (
        AttachedShape as AttachedShape, Box as Box, Capsule as Capsule, Cone as Cone, Continuous as Continuous,
        Cylinder as Cylinder, EdgeNoise as EdgeNoise, Fixed as Fixed, FrameDifference as FrameDifference,
        FrameSpecification as FrameSpecification, Free as Free, Group as Group, HeightField as HeightField,
        Inertia as Inertia, Innovation as Innovation, Joint as Joint, Kinematics as Kinematics,
        Measurement as Measurement, Mesh as Mesh, Mimic as Mimic, NoiseSource as NoiseSource, Plane as Plane,
        PointCloud as PointCloud, Prismatic as Prismatic, Revolute as Revolute, SceneArrays as SceneArrays,
        SceneDifference as SceneDifference, SceneEdit as SceneEdit, SceneGraph as SceneGraph, Shape as Shape,
        Sphere as Sphere, StampedPoses as StampedPoses,
        common_stamps as common_stamps, diff as diff, innovation as innovation,
        joint_gaussian as joint_gaussian,
        path_noise as path_noise, sample_poses as sample_poses,
        twist_noise as twist_noise,
    )  # fmt: skip
    from tmkit.graph.display import (
        graph_svg as graph_svg,
        tree_html as tree_html,
        tree_svg as tree_svg,
        tree_text as tree_text,
    )
    from tmkit.graph.dynamics import acceleration as acceleration, momentum as momentum
    from tmkit.graph.error_queries import contributions as contributions, twist_covariance as twist_covariance
    from tmkit.graph.folding import collapse_fixed_frames as collapse_fixed_frames
    from tmkit.graph.history import HistoryEntry as HistoryEntry, SceneHistory as SceneHistory
    from tmkit.graph.joint_histories import (
        add_joint_values as add_joint_values, configuration as configuration, joint_history as joint_history,
        joint_velocities as joint_velocities,
    )  # fmt: skip
    from tmkit.graph.moments import at_stamp as at_stamp, gaussian_pose as gaussian_pose, pose_through as pose_through
    from tmkit.graph.movement import moved_frames as moved_frames
    from tmkit.graph.nodes import (
        nodes_with_attributes as nodes_with_attributes, paths_to as paths_to, remote_roots as remote_roots,
        remove_with_groups as remove_with_groups, uuid_of as uuid_of, walk_nodes as walk_nodes,
    )  # fmt: skip
    from tmkit.graph.observation_frames import (
        Observation as Observation, add_observation as add_observation, observations as observations,
        remove_observations as remove_observations,
    )  # fmt: skip
    from tmkit.graph.patterns import find_structure as find_structure
    from tmkit.graph.rigid import is_rigid as is_rigid, rigid_frames as rigid_frames, rigid_inertia as rigid_inertia
    from tmkit.graph.semantic_edges import (
        Node as Node, add_edge as add_edge, add_fact as add_fact, add_pose as add_pose, add_twist as add_twist,
        finite_difference as finite_difference, gaussian_twist as gaussian_twist, integrate as integrate,
        payload_wrench as payload_wrench, relate as relate, set_wrench_bias as set_wrench_bias, transport as transport,
        twist as twist, update_pose as update_pose, update_twist as update_twist, wrench as wrench,
        wrench_bias as wrench_bias,
    )  # fmt: skip
    from tmkit.graph.stamps import Stamped as Stamped, latest_common_stamp as latest_common_stamp
    from tmkit.graph.task_facts import change_task_facts as change_task_facts, task_facts as task_facts
    from tmkit.graph.traversal import (
        chain as chain, common_ancestor as common_ancestor, joints_between as joints_between,
        twist_path as twist_path, walk as walk,
    )  # fmt: skip
else:
    __getattr__, __dir__ = lazy_names(__name__)
