"""The scene graph: frames, joints, bodies and shapes as an immutable value.

Holding a :class:`SceneGraph` means holding one consistent version of the world. An edit returns a new version that
shares nearly everything with the old one; the old one goes on to answer, from every thread. ``scene.at(q)`` is a
:class:`Kinematics`: the scene at a configuration, with all poses computed. :class:`SceneArrays` is the same world in
preallocated arrays, edited in place: for control loops.

The work is done by the compiled core; this room names its values.
"""

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
    diff,
)
from tmkit.graph.display import tree_html, tree_svg, tree_text
from tmkit.graph.folding import consolidated
from tmkit.graph.history import HistoryEntry, SceneHistory
from tmkit.graph.movement import moved_frames
from tmkit.graph.observations import Observation, Observations
from tmkit.graph.opinion_policies import Fused, Newest, Opinion, ResolutionPolicy, Surest, Tagged
from tmkit.graph.opinions import Resolution, Verdict, resolve_observations
from tmkit.graph.relating import (
    Node,
    add_edge,
    add_pose,
    add_twist,
    differentiated,
    integrated,
    relate,
    set_pose,
    set_twist,
    transport,
)
from tmkit.graph.structure import find_structure
from tmkit.graph.traversal import chain, walk

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
    "Fused",
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
    "Newest",
    "Node",
    "NoiseSource",
    "Observation",
    "Observations",
    "Opinion",
    "Plane",
    "PointCloud",
    "Prismatic",
    "Resolution",
    "ResolutionPolicy",
    "Revolute",
    "SceneArrays",
    "SceneDifference",
    "SceneEdit",
    "SceneGraph",
    "SceneHistory",
    "Shape",
    "Sphere",
    "StampedPoses",
    "Surest",
    "Tagged",
    "Verdict",
    "add_edge",
    "add_pose",
    "add_twist",
    "chain",
    "consolidated",
    "diff",
    "differentiated",
    "find_structure",
    "integrated",
    "moved_frames",
    "relate",
    "resolve_observations",
    "set_pose",
    "set_twist",
    "transport",
    "tree_html",
    "tree_svg",
    "tree_text",
    "walk",
]
