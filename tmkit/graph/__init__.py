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
        AttachedShape as AttachedShape,
        Box as Box,
        Capsule as Capsule,
        Cone as Cone,
        Continuous as Continuous,
        Cylinder as Cylinder,
        EdgeNoise as EdgeNoise,
        Fixed as Fixed,
        FrameDifference as FrameDifference,
        FrameSpecification as FrameSpecification,
        Free as Free,
        Group as Group,
        HeightField as HeightField,
        Inertia as Inertia,
        Innovation as Innovation,
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
        SceneDifference as SceneDifference,
        SceneEdit as SceneEdit,
        SceneGraph as SceneGraph,
        Shape as Shape,
        Sphere as Sphere,
        StampedPoses as StampedPoses,
        Unstated as Unstated,
        common_stamps as common_stamps,
        diff as diff,
        innovation as innovation,
        path_noise as path_noise,
        sample_poses as sample_poses,
        twist_noise as twist_noise,
    )
    from tmkit.graph.display.html import tree_html as tree_html
    from tmkit.graph.display.outline import tree_text as tree_text
    from tmkit.graph.display.svg import graph_svg as graph_svg, tree_svg as tree_svg
    from tmkit.graph.history import (
        HistoryEntry as HistoryEntry,
        SceneHistory as SceneHistory,
        moved_frames as moved_frames,
    )
    from tmkit.graph.moments import (
        add_joint_values as add_joint_values,
        at_stamp as at_stamp,
        configuration as configuration,
        gaussian_pose as gaussian_pose,
        joint_history as joint_history,
        joint_velocities as joint_velocities,
        pose_through as pose_through,
    )
    from tmkit.graph.nodes import (
        nodes_with_attributes as nodes_with_attributes,
        paths_to as paths_to,
        remote_roots as remote_roots,
        remove_with_groups as remove_with_groups,
        uuid_of as uuid_of,
        walk_nodes as walk_nodes,
    )
    from tmkit.graph.observation_frames import (
        Observation as Observation,
        add_observation as add_observation,
        observations as observations,
        remove_observations as remove_observations,
    )
    from tmkit.graph.patterns import find_structure as find_structure
    from tmkit.graph.rigid import (
        collapse_fixed_frames as collapse_fixed_frames,
        is_rigid as is_rigid,
        rigid_frames as rigid_frames,
        rigid_inertia as rigid_inertia,
    )
    from tmkit.graph.semantic_edges.edges import (
        Node as Node,
        add_edge as add_edge,
        add_pose as add_pose,
        add_twist as add_twist,
        update_pose as update_pose,
        update_twist as update_twist,
    )
    from tmkit.graph.semantic_edges.facts import add_fact as add_fact
    from tmkit.graph.semantic_edges.integration import finite_difference as finite_difference, integrate as integrate
    from tmkit.graph.semantic_edges.queries import relate as relate
    from tmkit.graph.semantic_edges.twists import (
        acceleration as acceleration,
        gaussian_twist as gaussian_twist,
        momentum as momentum,
        twist as twist,
    )
    from tmkit.graph.semantic_edges.wrenches import (
        payload_wrench as payload_wrench,
        set_wrench_bias as set_wrench_bias,
        transport as transport,
        wrench as wrench,
        wrench_bias as wrench_bias,
    )
    from tmkit.graph.task_facts import change_task_facts as change_task_facts, task_facts as task_facts
    from tmkit.graph.traversal import (
        Stamped as Stamped,
        chain as chain,
        common_ancestor as common_ancestor,
        contributions as contributions,
        joint_gaussian as joint_gaussian,
        joints_between as joints_between,
        latest_common_stamp as latest_common_stamp,
        twist_covariance as twist_covariance,
        twist_path as twist_path,
        walk as walk,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
