"""Parts of a frame specification: pose, joint, shapes and mass.

Values have the representation of the file. See :mod:`tmkit.formats.spec.model` for frames.
"""

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
    """A rigid transform, with at most one representation of its rotation.

    Attributes:
        translation: translation [m].
        quat_xyzw: quaternion, or None.
        rpy: fixed-axis roll, pitch and yaw [rad], or None.
    """

    translation: Triple = (0.0, 0.0, 0.0)
    quat_xyzw: Quadruple | None = None
    rpy: Triple | None = None


@dataclass(frozen=True, slots=True)
class MimicSpec:
    """Rule of a joint that follows another: ``multiplier * leader + offset``.

    Attributes:
        joint: name of the leader.
        multiplier: factor of the leader's value.
        offset: value of the joint where the leader is at 0 [rad or m].
        place: location of the rule.
    """

    joint: str
    multiplier: float
    offset: float
    place: SourceLocation


JOINTS_WITHOUT_VALUE = ("fixed", "free", "unstated")
"""Joint types without a value in a configuration. The motion of ``unstated`` is unknown."""


@dataclass(frozen=True, slots=True)
class JointSpec:
    """A joint between a frame and its parent.

    Attributes:
        type: a type of :data:`JOINTS_WITHOUT_VALUE`, or revolute, continuous or prismatic.
        name: name, or "" for the name of the frame.
        axis: axis in the frame itself, not yet normalised.
        lower: lower limit [rad or m].
        upper: upper limit [rad or m].
        velocity: velocity limit [rad/s or m/s].
        effort: effort limit [N m or N].
        damping: damping [N m s/rad or N s/m].
        friction: friction [N m or N].
        offset: constant that is added to the joint's value wherever the frame is placed [rad or m].
            The built frame has it in its pose.
        mimic: rule of a joint that follows another, or None.
        place: location of the joint, or None for the location of the frame.
    """

    type: str = "fixed"
    name: str = ""
    axis: Triple = (0.0, 0.0, 1.0)
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    offset: float = 0.0
    mimic: MimicSpec | None = None
    place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class PrimitiveSpec:
    """A shape by kind and dimensions: a kind of the core, or a frustum.

    Dimensions have the order of the core. A ``frustum`` has the radius at the base, the radius at
    the top and the height. It is centred like the other kinds, and built as a convex mesh.
    """

    kind: str
    dimensions: tuple[float, ...]


PIECES = "pieces"
"""Collision level of a mesh that is split into convex pieces when it is loaded."""


@dataclass(frozen=True, slots=True)
class GeometrySpec:
    """A shape on a frame.

    Attributes:
        shape: the shape by its dimensions or its mesh file, or as a shape of the core.
        place: location of the shape.
        pose: frame_from_shape.
        color: red, green, blue and alpha in [0, 1], or None if the file has none.
        visual: whether the shape is drawn.
        collision: whether the shape collides.
        mass: mass of this shape, with uniform density [kg], or None if the file has none.
        level: collision level, which may be :data:`PIECES`, or None if the file has none.
        stamp: time at which the shape was attached or observed [s], or None.
        friction: coefficient of friction of the surface, or None for that of the frame.
    """

    shape: PrimitiveSpec | MeshSpec | Shape
    place: SourceLocation
    pose: PoseSpec = PoseSpec()
    color: Quadruple | None = None
    visual: bool = True
    collision: bool = True
    mass: float | None = None
    level: str | None = None
    stamp: float | None = None
    friction: float | None = None


@dataclass(frozen=True, slots=True)
class InertiaSpec:
    """Mass properties of the body of a frame.

    Attributes:
        mass: mass [kg].
        place: location of the mass.
        origin: frame_from_inertial, whose translation is the centre of mass.
        matrix: ixx, ixy, ixz, iyy, iyz and izz about the centre of mass, in the axes of ``origin``
            [kg m^2]. If None, the mass has uniform density in the shapes of the frame.
    """

    mass: float
    place: SourceLocation
    origin: PoseSpec = PoseSpec()
    matrix: tuple[float, float, float, float, float, float] | None = None
