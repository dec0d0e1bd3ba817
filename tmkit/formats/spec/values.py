"""From specifications to the core's values, and from a finished scene back to a specification, to merge it with files.

A specification keeps the representation of its file: a quaternion or roll, pitch and yaw; a joint whose value is
counted from an offset. Here each is converted to the one representation of the core, which checks it.
:mod:`tmkit.formats.spec.build` makes frames of a scene from specifications. A specification of a scene builds to an
equal scene, apart from the order of frames that stand before their parents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tmkit._support.source_location import SourceLocation
from tmkit.formats.spec.model import (
    AllowedPairSpec,
    FrameSpec,
    GeometrySpec,
    GroupSpec,
    InertiaSpec,
    JointSpec,
    MimicSpec,
    PoseSpec,
    SceneSpecification,
)
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
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.graph.stamps import stamped_attributes
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
    """Return the core's joint."""
    if spec.type in ("fixed", "free"):
        return Fixed() if spec.type == "fixed" else Free()
    same: dict[str, Any] = {key: getattr(spec, key) for key in ("name", "velocity", "effort", "damping", "friction")}
    if spec.type == "continuous":
        return Continuous(spec.axis, mimic=mimic, **same)
    make = Revolute if spec.type == "revolute" else Prismatic
    return make(spec.axis, lower=spec.lower, upper=spec.upper, mimic=mimic, **same)


def zero_pose_of(spec: FrameSpec) -> Pose:
    """Return a frame's pose relative to its parent with its joint at zero."""
    pose = pose_of(spec.pose)
    if spec.joint.offset == 0.0:
        return pose
    motion, zero = spec.joint.offset * np.asarray(joint_of(spec.joint).axis), np.zeros(3)
    return pose @ Pose.exp(np.concatenate([motion, zero] if spec.joint.type == "prismatic" else [zero, motion]))


def primitive(kind: str, sizes: Sequence[float]) -> Shape:
    """Return a box, sphere, cylinder, cone or capsule of dimensions in metres."""
    makers: dict[str, Callable[..., Shape]] = {"sphere": Sphere, "cylinder": Cylinder, "cone": Cone, "capsule": Capsule}
    return Box(sizes) if kind == "box" else makers[kind](*sizes)


def specification_of_scene(scene: SceneGraph, *, path: str) -> SceneSpecification:
    """Return what a file would say that declares this scene; ``path`` is for messages."""
    frames = []
    for name in scene.frame_names:
        place = SourceLocation(f"{path} (frame '{name}')")
        frame = scene.specification(name)
        frames.append(
            FrameSpec(
                name=name,
                parent=frame.parent,
                place=place,
                pose=spec_of_pose(frame.pose),
                joint=spec_of_joint(frame.joint, place),
                body=frame.body if frame.body != name else None,
                classes=tuple(frame.classes),
                geometry=tuple(_geometry(part, place) for part in frame.shapes),
                inertia=spec_of_inertia(frame.inertia, place) if frame.inertia is not None else None,
                attributes=stamped_attributes(frame),
                twist=None if frame.twist is None else (frame.twist[0], tuple(map(float, frame.twist[1]))),
                twist_noise=frame.twist_noise,
                stamps=frame.stamps,
                noise=frame.noise,
            )
        )
    allowed = [
        AllowedPairSpec(first, second, reason, SourceLocation(path)) for first, second, reason in scene.allowed_pairs
    ]
    groups = [
        GroupSpec(g.name, g.frames, g.groups, SourceLocation(path), g.parents, stamped_attributes(g))
        for g in map(scene.group, scene.group_names)
    ]
    return SceneSpecification(tuple(frames), tuple(allowed), tuple(groups), scene.bodies_without_frames)


def spec_of_joint(joint: Joint, place: SourceLocation) -> JointSpec:
    """Return the specification of a joint; ``place`` is for messages."""
    if not joint.is_actuated:
        return JointSpec(type=joint.type, place=place)
    x, y, z = (float(value) for value in joint.axis)
    rule = joint.mimic
    mimic = MimicSpec(rule.joint, rule.multiplier, rule.offset, place) if rule is not None else None
    same = ("name", "lower", "upper", "velocity", "effort", "damping", "friction")
    spec = JointSpec(joint.type, axis=(x, y, z), mimic=mimic, place=place)
    return replace(spec, **{key: getattr(joint, key) for key in same})


def _geometry(part: AttachedShape, place: SourceLocation) -> GeometrySpec:
    spec = GeometrySpec(part.shape, place, spec_of_pose(part.pose))
    same = ("color", "visual", "collision", "level", "friction", "stamp")
    return replace(spec, **{key: getattr(part, key) for key in same})


def spec_of_inertia(inertia: Inertia, place: SourceLocation) -> InertiaSpec:
    """Return the specification of mass properties; ``place`` is for messages."""
    x, y, z = (float(value) for value in inertia.center)
    m = inertia.matrix
    moments = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    ixx, ixy, ixz, iyy, iyz, izz = (float(value) for value in moments)
    return InertiaSpec(inertia.mass, place, PoseSpec((x, y, z)), (ixx, ixy, ixz, iyy, iyz, izz))
