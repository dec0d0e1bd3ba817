"""From specifications to the core's values: poses, joints, shapes, masses.

A specification keeps the representation of its file: a quaternion or roll, pitch and yaw; a joint whose value is
counted from an offset; a mass that is spread over shapes. Here each is converted to the one representation of the core.
:mod:`tmkit.formats.spec.build` makes frames of a scene from specifications.

The core checks values; its errors are reported at the source location of the specification (:func:`reported`).

Invariants: functions of their arguments, apart from meshes, which are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tmkit._support.elementary import product
from tmkit._support.source_location import reported
from tmkit.errors import ShapeError
from tmkit.formats.mesh.frustum import frustum
from tmkit.formats.mesh.inertias import united_inertia
from tmkit.formats.mesh.materials import OPEN, unpacked
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.spec.model import (
    FrameSpec,
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MeshSpec,
    PoseSpec,
    PrimitiveSpec,
    Quadruple,
)  # fmt: skip
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    Inertia,
    Joint,
    Mimic,
    Prismatic,
    Revolute,
    Shape,
    Sphere,
)
from tmkit.spatial import Pose


def pose_of(spec: PoseSpec) -> Pose:
    """Return the core's pose."""
    if spec.quat_xyzw is not None:
        return Pose(spec.translation, spec.quat_xyzw)
    return Pose.from_rpy(spec.translation, spec.rpy) if spec.rpy is not None else Pose(spec.translation)


def spec_of_pose(pose: Pose) -> PoseSpec:
    """Return the specification of a pose, the default for the identity."""
    (x, y, z), (i, j, k, w) = pose.translation.tolist(), pose.quat_xyzw.tolist()
    return PoseSpec() if pose == Pose.identity() else PoseSpec((x, y, z), quat_xyzw=(i, j, k, w))


def joint_of(spec: JointSpec, *, mimic: Mimic | None = None) -> Joint:
    """Return the core's joint.

    Args:
        spec: the joint.
        mimic: what it mimics, if anything.
    """
    if spec.type in ("fixed", "free"):
        return Fixed() if spec.type == "fixed" else Free()
    same: dict[str, Any] = {key: getattr(spec, key) for key in ("name", "velocity", "effort", "damping", "friction")}
    if spec.type == "continuous":
        return Continuous(spec.axis, mimic=mimic, **same)
    make = Revolute if spec.type == "revolute" else Prismatic
    return make(spec.axis, lower=spec.lower, upper=spec.upper, mimic=mimic, **same)


def zero_pose_of(spec: FrameSpec) -> Pose:
    """Return a frame's pose relative to its parent with its joint at zero."""
    return moved_by_offset(pose_of(spec.pose), joint_of(spec.joint), spec.joint.offset)


def moved_by_offset(pose: Pose, joint: Joint, offset: float) -> Pose:
    """Return the pose of a frame whose joint value is relative to an offset.

    Args:
        pose: pose at joint value 0.
        joint: its joint.
        offset: radians or metres.
    """
    if offset == 0.0:
        return pose
    motion = offset * np.asarray(joint.axis)
    zero = np.zeros(3)
    return pose @ Pose.exp(np.concatenate([motion, zero] if joint.type == "prismatic" else [zero, motion]))


def attached_of(spec: GeometrySpec, loader: MeshLoader, friction: float | None) -> AttachedShape:
    """Return a shape with its pose on the frame.

    Args:
        spec: the shape.
        loader: loader of meshes.
        friction: friction of the frame, used if the shape has none.
    """
    with reported(spec.place):
        shape = _shape(spec, loader)
        return AttachedShape(
            shape,
            pose_of(spec.pose),
            color=spec.color,
            visual=spec.visual,
            collision=spec.collision,
            friction=spec.friction if spec.friction is not None else friction if spec.collision else None,
            level=spec.level,
        )


def in_colors(spec: GeometrySpec, solid: AttachedShape, loader: MeshLoader) -> Iterator[AttachedShape]:
    """Yield a shape as it is, or one that is only drawn for each colour of its mesh file, and one that collides.

    Several colours of a file count more than the one colour of a description, which counts more than one of a file.

    Args:
        spec: the specified shape.
        solid: the built shape.
        loader: loader of meshes.
    """
    mesh = spec.shape if spec.visual and isinstance(spec.shape, MeshSpec) else None
    colors = [] if mesh is None else loader.colors(mesh)
    if mesh is None or len(colors) < 2:
        one = next((unpacked(color) for color in colors if color != OPEN), None)
        yield solid if one is None or spec.color is not None else _variant(solid, color=one)
        return
    for number, color in enumerate(colors):
        shape = loader.load(replace(mesh, part=number), place=spec.place)
        yield _variant(solid, shape=shape, color=spec.color if color == OPEN else unpacked(color), collision=False)
    if solid.collision:
        yield _variant(solid, visual=False)


def _variant(
    part: AttachedShape, *, shape: Shape | None = None, color: Quadruple | None = None, visual: bool = True,
    collision: bool | None = None,
) -> AttachedShape:  # fmt: skip
    """Return a shape with some of its properties changed; the colour is always."""
    return AttachedShape(
        part.shape if shape is None else shape, part.pose, color=color, visual=visual,
        collision=part.collision if collision is None else collision, friction=part.friction, level=part.level,
    )  # fmt: skip


def _shape(spec: GeometrySpec, loader: MeshLoader) -> Shape:
    """Return the core's shape."""
    if isinstance(spec.shape, MeshSpec):
        return loader.load(spec.shape, place=spec.place)
    if not isinstance(spec.shape, PrimitiveSpec):
        return spec.shape
    kind, sizes = spec.shape.kind, spec.shape.dimensions
    return frustum(*sizes) if kind == "frustum" else primitive(kind, sizes)


def primitive(kind: str, sizes: Sequence[float]) -> Shape:
    """Return a box, sphere, cylinder, cone or capsule.

    Args:
        kind: which.
        sizes: its dimensions, metres.
    """
    makers: dict[str, Callable[..., Shape]] = {"sphere": Sphere, "cylinder": Cylinder, "cone": Cone, "capsule": Capsule}
    return Box(sizes) if kind == "box" else makers[kind](*sizes)


def inertia_of(spec: InertiaSpec, geometry: Sequence[GeometrySpec], shapes: Sequence[AttachedShape]) -> Inertia:
    """Return the inertia of a frame: as specified, or of its solids with uniform density.

    Args:
        spec: mass, and the matrix if it is specified.
        geometry: specified shapes of the frame.
        shapes: the built shapes, in the same order.

    Raises:
        ShapeError: the solids enclose no volume, or the numbers are no inertia.
    """
    if spec.matrix is not None:
        origin = pose_of(spec.origin)
        ixx, ixy, ixz, iyy, iyz, izz = spec.matrix
        matrix = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        if spec.origin.quat_xyzw is not None or spec.origin.rpy not in (None, (0.0, 0.0, 0.0)):
            matrix = product(origin.rotation, matrix, origin.rotation.T)
            matrix = 0.5 * (matrix + matrix.T)
        return Inertia(spec.mass, origin.translation, matrix=matrix)
    own = [(shape, part.mass) for part, shape in zip(geometry, shapes, strict=True) if part.mass is not None]
    if own:
        return united_inertia([(shape.shape, shape.pose, mass) for shape, mass in own])
    solids = [shape for shape in shapes if shape.collision] or list(shapes)
    volume = sum(shape.shape.volume for shape in solids)
    if solids and not volume:
        raise ShapeError(
            "the shapes enclose no volume, or one too small for a number, that the mass could be spread over"
        )
    return united_inertia([(shape.shape, shape.pose, spec.mass * shape.shape.volume / volume) for shape in solids])
