"""The specification of a scene file, before it is a scene.

Every reader turns its text into a :class:`SceneSpecification`, and one builder (:mod:`tmkit.formats.spec.build`) turns
any number of them into one scene, whatever their formats and order. Every specification keeps its
:class:`~tmkit._support.source_location.SourceLocation`, where errors of the builder and the core are reported.

Invariants: specifications are immutable and hold finite numbers only; names are not yet resolved: a parent, a mimic
leader or an allowed pair may be wrong until the scene is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tmkit._support.source_location import SourceLocation
from tmkit.formats.mesh.meshes import MeshSpec as MeshSpec, Triple as Triple

if TYPE_CHECKING:
    from tmkit.graph import EdgeNoise, Shape, StampedPoses

Quadruple = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class PoseSpec:
    """A rigid transform as written: metres, and either a quaternion xyzw or fixed-axis roll, pitch, yaw in radians."""

    translation: Triple = (0.0, 0.0, 0.0)
    quat_xyzw: Quadruple | None = None
    rpy: Triple | None = None


@dataclass(frozen=True, slots=True)
class MimicSpec:
    """The joint follows another: ``multiplier * leader + offset``; ``place`` is where that is said."""

    joint: str
    multiplier: float
    offset: float
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class JointSpec:
    """How a frame moves relative to its parent."""

    type: str = "fixed"  # fixed, revolute, continuous, prismatic or free
    name: str = ""  # empty means the name of the frame
    axis: Triple = (0.0, 0.0, 1.0)  # in the frame itself; not yet normalised
    lower: float = -math.inf  # radians or metres, -inf when unlimited; likewise upper
    upper: float = math.inf
    velocity: float = math.inf  # radians or metres a second
    effort: float = math.inf  # newton metres or newtons; inf when unlimited
    damping: float = 0.0  # N m s/rad or N s/m
    friction: float = 0.0  # N m or N
    offset: float = 0.0  # added to the joint's value wherever the frame stands; the pose of the built frame takes it up
    mimic: MimicSpec | None = None
    place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class PrimitiveSpec:
    """A shape by its numbers: the core's kinds with the dimensions in the core's order, and one more.

    A ``frustum`` (radius at the base, radius at the top, height), centred like the others, has no kind of its own in
    the core; it is built as a convex mesh.
    """

    kind: str
    dimensions: tuple[float, ...]


PIECES = "pieces"  # the level of detail of a mesh that is cut in convex pieces when it is loaded


@dataclass(frozen=True, slots=True)
class GeometrySpec:
    """One shape on a frame."""

    shape: PrimitiveSpec | MeshSpec | Shape  # what it is; a reader that already holds the core's shape may give that
    place: SourceLocation
    pose: PoseSpec = PoseSpec()  # frame_from_shape
    color: Quadruple | None = None  # red, green, blue, alpha from 0 to 1, or None when the file leaves it open
    visual: bool = True  # whether it is drawn
    collision: bool = True  # whether it collides
    mass: float | None = None  # kilograms of this solid, taken as uniformly dense; None when the file does not say
    # how much of it counts in collisions, :data:`PIECES` for a mesh in convex pieces; None when the file leaves
    # it open
    level: str | None = None
    stamp: float | None = None  # when it was attached or seen, seconds, None when the file does not say
    friction: float | None = None  # coefficient of friction of its surface, None where that of the frame counts


@dataclass(frozen=True, slots=True)
class InertiaSpec:
    """Mass properties of a frame's body as written."""

    mass: float  # kilograms
    place: SourceLocation
    origin: PoseSpec = PoseSpec()  # frame_from_inertial; the centre of mass is its translation
    # ixx, ixy, ixz, iyy, iyz, izz in kg m^2 about the centre of mass, in the axes of origin; None means that the
    # mass is spread evenly over the frame's shapes
    matrix: tuple[float, float, float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """A frame as declared."""

    name: str
    parent: str | None  # the name of the parent, None for a root of its own
    place: SourceLocation
    pose: PoseSpec = PoseSpec()
    joint: JointSpec = JointSpec()
    body: str | None = None  # the body it sits on, None for one of its own name
    classes: tuple[str, ...] = ()  # what the frame is, in the order of mention
    geometry: tuple[GeometrySpec, ...] = ()
    inertia: InertiaSpec | None = None
    friction: float | None = None  # coefficient of friction of its surface, None when the file does not say
    parent_place: SourceLocation | None = None
    # other names by which a file may speak of this frame, where no frame is called so: the joint above a link,
    # after which the original TMKit names the link's frame
    aliases: tuple[str, ...] = ()
    # free tags, by key; a Stamped where the file says when it was set
    attributes: Mapping[str, object] = field(default_factory=dict)
    # name of a reference body, and the twist (6,) of the frame relative to it, at its origin and in its axes
    twist: tuple[str, tuple[float, ...]] | None = None
    twist_noise: EdgeNoise | None = None  # the error of the twist, None when it is exact
    stamps: StampedPoses | None = None
    noise: EdgeNoise | None = None  # the error of its pose relative to its parent, None when it is exact


@dataclass(frozen=True, slots=True)
class AllowedPairSpec:
    """Two frames that may touch, and why; ``second_place`` is where the second is named, if that is known."""

    first: str
    second: str
    reason: str
    place: SourceLocation
    second_place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group, with its frames, the groups in it and the frames that it is below.

    Those of one name in several files are one, with all that each has; of two values of an attribute the first counts.
    """

    name: str
    frames: tuple[str, ...]
    groups: tuple[str, ...]
    place: SourceLocation
    parents: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactSpec:
    """A geometric relation that holds: its kind (``Pose``, ...), notation (target, reference, axes) and numbers."""

    kind: str
    notation: tuple[str, ...]
    numbers: tuple[float, ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class StructureSpec:
    """A node of a structure that a function block reads or makes."""

    name: str
    kind: str  # of the node: Group, Transform, GeometricNode or Node
    place: SourceLocation
    content: str | None = None  # kind of its shape in lower case, such as point_cloud; None without one
    content_type: str | None = None  # name of the type that the content has, None without one
    cardinality: str = "1"  # how many there are: a number, or * for any
    attributes: Mapping[str, object] = field(default_factory=dict)  # those that each has
    children: tuple[StructureSpec, ...] = ()  # the nodes below it


@dataclass(frozen=True, slots=True)
class FunctionBlockSpec:
    """A computation as declared: what it reads and makes, and the nodes where that is at run time."""

    name: str
    place: SourceLocation
    input_structure: StructureSpec | None
    input_hook: str | None
    output_structure: StructureSpec | None
    output_hook: str | None
    # when it runs: onChange NODE, after BLOCK, or every SECONDS, as pairs
    triggers: tuple[tuple[str, str | float], ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SceneSpecification:
    """Everything that one file and what it includes say, in the order in which it is said."""

    frames: tuple[FrameSpec, ...] = ()
    allowed: tuple[AllowedPairSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    bodies_without_frames: tuple[str, ...] = ()
    facts: tuple[FactSpec, ...] = ()  # relations that hold beside what the frames say
    function_blocks: tuple[FunctionBlockSpec, ...] = ()  # computations, which are no part of a scene
    # whether it says all of a scene: its roots (there is no world that it does not declare), and the order of its
    # frames, in which a child may come before its parent
    is_whole: bool = False
