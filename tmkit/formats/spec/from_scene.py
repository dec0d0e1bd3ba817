"""From a scene back to a specification, to merge a finished scene with files.

A specification of a scene builds to an equal scene, apart from the order of frames that stand before their parents.
"""

from __future__ import annotations

from typing import Any, cast

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
from tmkit.graph import AttachedShape, Group, Inertia, Joint, SceneGraph
from tmkit.spatial import Pose


def specification_of_scene(scene: SceneGraph, *, path: str) -> SceneSpecification:
    """Return what a file would say that declares this scene.

    Args:
        scene: the scene.
        path: the file it came from, for messages.
    """
    frames = []
    for name in scene.frame_names:
        place = SourceLocation(f"{path} (frame '{name}')")
        frame = scene.specification(name)
        frames.append(
            FrameSpec(
                name=name,
                parent=frame.parent,
                place=place,
                pose=_pose(frame.pose),
                joint=_joint(frame.joint, place),
                body=frame.body if frame.body != name else None,
                classes=tuple(frame.classes),
                geometry=tuple(_geometry(part, place) for part in frame.shapes),
                inertia=_inertia(frame.inertia, place) if frame.inertia is not None else None,
                attributes=frame.attributes,
                twist=None if frame.twist is None else (frame.twist[0], tuple(map(float, frame.twist[1]))),
                twist_noise=frame.twist_noise,
                stamps=frame.stamps,
                noise=frame.noise,
            )
        )
    allowed = [
        AllowedPairSpec(first, second, reason, SourceLocation(path)) for first, second, reason in scene.allowed_pairs
    ]
    groups = [GroupSpec(name, *_members(scene.group(name)), SourceLocation(path)) for name in scene.group_names]
    return SceneSpecification(tuple(frames), tuple(allowed), tuple(groups), scene.bodies_without_frames)


def _members(group: Group) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the frames and the groups of a group."""
    return group.frames, group.groups


def _pose(pose: Pose) -> PoseSpec:
    """Return a pose, the default for the identity."""
    x, y, z = (float(value) for value in pose.translation)
    a, b, c, w = (float(value) for value in pose.quat_xyzw)
    if pose == Pose.identity():
        return PoseSpec()
    return PoseSpec((x, y, z), quat_xyzw=(a, b, c, w))


def _joint(joint: Joint, place: SourceLocation) -> JointSpec:
    """Return a joint."""
    if not joint.is_actuated:
        return JointSpec(type=joint.type, place=place)
    x, y, z = (float(value) for value in joint.axis)
    rule = joint.mimic
    return JointSpec(
        type=joint.type,
        name=joint.name,
        axis=(x, y, z),
        lower=joint.lower,
        upper=joint.upper,
        velocity=joint.velocity,
        effort=joint.effort,
        damping=joint.damping,
        friction=joint.friction,
        mimic=MimicSpec(rule.joint, rule.multiplier, rule.offset, place) if rule is not None else None,
        place=place,
    )


def _geometry(part: AttachedShape, place: SourceLocation) -> GeometrySpec:
    """Return a shape."""
    color = cast(Any, part.color)
    return GeometrySpec(
        part.shape, place, _pose(part.pose), color, part.visual, part.collision, level=part.level,
        friction=part.friction,
    )  # fmt: skip


def _inertia(inertia: Inertia, place: SourceLocation) -> InertiaSpec:
    """Return an inertia."""
    x, y, z = (float(value) for value in inertia.center)
    m = inertia.matrix
    moments = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    ixx, ixy, ixz, iyy, iyz, izz = (float(value) for value in moments)
    return InertiaSpec(inertia.mass, place, PoseSpec((x, y, z)), (ixx, ixy, ixz, iyy, iyz, izz))
