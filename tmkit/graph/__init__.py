"""The scene graph: frames, joints, bodies and shapes as an immutable value.

Holding a :class:`SceneGraph` means holding one consistent version of the world. An edit returns a new version that
shares nearly everything with the old one; the old version stays valid and can be read from every thread.
``scene.at(q)`` is a :class:`Kinematics`: the scene at a configuration, with all poses computed. :class:`SceneArrays` is
the same world in preallocated arrays, edited in place: for control loops.

The compiled core implements these values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tmkit._core import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    EdgeNoise,
    Fixed,
    FrameDifference,
    FrameSpecification,
    Free,
    Group,
    HeightField,
    Inertia,
    Innovation,
    Joint,
    Kinematics,
    Measurement,
    Mesh,
    Mimic,
    NoiseSource,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneDifference,
    SceneEdit,
    SceneGraph,
    Shape,
    Sphere,
    StampedPoses,
    _register,
    common_ancestor,
    contributions,
    diff,
    frames_with_attribute,
    innovation,
    joint_gaussian,
    joints_between,
    path_noise,
    sample_poses,
    twist_covariance,
    twist_noise,
    twist_path,
)
from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.graph.attributes import attribute_map as attribute_map  # the core calls the two
    from tmkit.graph.attributes import attribute_text as attribute_text
    from tmkit.graph.display import tree_html, tree_svg, tree_text
    from tmkit.graph.folding import collapse_fixed_frames
    from tmkit.graph.history import HistoryEntry, SceneHistory
    from tmkit.graph.movement import moved_frames
    from tmkit.graph.patterns import find_structure
    from tmkit.graph.semantic_edges import (
        Node,
        add_edge,
        add_pose,
        add_twist,
        finite_difference,
        gaussian_twist,
        integrate,
        relate,
        transport,
        update_pose,
        update_twist,
    )
    from tmkit.graph.traversal import chain, walk
else:
    __getattr__, __dir__ = lazy_names(__name__)


def _imported_when_called(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        function = getattr(sys.modules[__name__], name)
        _register(**{name: function})  # the next call goes there directly
        return function(*arguments, **keywords)

    return call


# What the core's methods of these names call.
_METHODS = ("tree_html", "attribute_map", "attribute_text")
_register(**{name: _imported_when_called(name) for name in _METHODS})

__all__ = [
    "AttachedShape",
    "Box",
    "Capsule",
    "Cone",
    "Continuous",
    "Cylinder",
    "EdgeNoise",
    "Fixed",
    "FrameDifference",
    "FrameSpecification",
    "Free",
    "Group",
    "HeightField",
    "HistoryEntry",
    "Inertia",
    "Innovation",
    "Joint",
    "Kinematics",
    "Measurement",
    "Mesh",
    "Mimic",
    "Node",
    "NoiseSource",
    "Plane",
    "PointCloud",
    "Prismatic",
    "Revolute",
    "SceneArrays",
    "SceneDifference",
    "SceneEdit",
    "SceneGraph",
    "SceneHistory",
    "Shape",
    "Sphere",
    "StampedPoses",
    "add_edge",
    "add_pose",
    "add_twist",
    "chain",
    "collapse_fixed_frames",
    "common_ancestor",
    "contributions",
    "diff",
    "find_structure",
    "finite_difference",
    "frames_with_attribute",
    "gaussian_twist",
    "innovation",
    "integrate",
    "joint_gaussian",
    "joints_between",
    "moved_frames",
    "path_noise",
    "relate",
    "sample_poses",
    "transport",
    "tree_html",
    "tree_svg",
    "tree_text",
    "twist_covariance",
    "twist_noise",
    "twist_path",
    "update_pose",
    "update_twist",
    "walk",
]
