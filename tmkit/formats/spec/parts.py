"""Parts of a frame as a file has them: its pose, joint, shapes and mass; see :mod:`tmkit.formats.spec.model`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmkit._support.source_location import SourceLocation
from tmkit.formats.mesh.meshes import MeshSpec as MeshSpec, Triple as Triple

if TYPE_CHECKING:
    from tmkit.graph import Shape

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


JOINTS_WITHOUT_VALUE = ("fixed", "free", "unstated")
"""Types of joints without an entry in the configuration; ``unstated`` is a pose whose motion is unknown."""


@dataclass(frozen=True, slots=True)
class JointSpec:
    """How a frame moves relative to its parent."""

    type: str = "fixed"  # one of those above, revolute, continuous or prismatic
    name: str = ""  # empty means the name of the frame
    axis: Triple = (0.0, 0.0, 1.0)  # in the frame itself; not yet normalised
    lower: float = -math.inf  # radians or metres, -inf when unlimited; likewise upper
    upper: float = math.inf
    velocity: float = math.inf  # radians or metres a second
    effort: float = math.inf  # newton metres or newtons; inf when unlimited
    damping: float = 0.0  # N m s/rad or N s/m
    friction: float = 0.0  # N m or N
    # added to the joint's value wherever the frame stands; the pose of the built frame takes it up
    offset: float = 0.0
    mimic: MimicSpec | None = None
    place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class PrimitiveSpec:
    """A shape by its numbers: the core's kinds with the dimensions in the core's order, and one more.

    A ``frustum`` (radius at the base, radius at the top, height), centred like the others, has no
    kind of its own in the core; it is built as a convex mesh.
    """

    kind: str
    dimensions: tuple[float, ...]


PIECES = "pieces"  # the level of detail of a mesh that is cut in convex pieces when it is loaded


@dataclass(frozen=True, slots=True)
class GeometrySpec:
    """One shape on a frame."""

    # what it is; a reader that already holds the core's shape may give that
    shape: PrimitiveSpec | MeshSpec | Shape
    place: SourceLocation
    pose: PoseSpec = PoseSpec()  # frame_from_shape
    # red, green, blue, alpha from 0 to 1, or None when the file leaves it open
    color: Quadruple | None = None
    visual: bool = True  # whether it is drawn
    collision: bool = True  # whether it collides
    # kilograms of this solid, taken as uniformly dense; None when the file does not say
    mass: float | None = None
    # how much of it counts in collisions, :data:`PIECES` for a mesh in convex pieces; None when the
    # file leaves it open
    level: str | None = None
    # when it was attached or seen, seconds, None when the file does not say
    stamp: float | None = None
    # coefficient of friction of its surface, None where that of the frame counts
    friction: float | None = None


@dataclass(frozen=True, slots=True)
class InertiaSpec:
    """Mass properties of a frame's body as written."""

    mass: float  # kilograms
    place: SourceLocation
    origin: PoseSpec = PoseSpec()  # frame_from_inertial; the centre of mass is its translation
    # ixx, ixy, ixz, iyy, iyz, izz in kg m^2 about the centre of mass, in the axes of origin; None
    # means that the mass is spread evenly over the frame's shapes
    matrix: tuple[float, float, float, float, float, float] | None = None
