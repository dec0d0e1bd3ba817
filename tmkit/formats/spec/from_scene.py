"""From a scene back to a specification, to merge a finished scene with files.

A specification of a scene builds to an equal scene, apart from the order of frames that stand before their parents.
"""

from __future__ import annotations

from dataclasses import replace

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
from tmkit.formats.spec.values import spec_of_pose
from tmkit.graph import AttachedShape, Inertia, Joint, SceneGraph


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
                pose=spec_of_pose(frame.pose),
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
    named = ((name, scene.group(name)) for name in scene.group_names)
    groups = [GroupSpec(name, group.frames, group.groups, SourceLocation(path)) for name, group in named]
    return SceneSpecification(tuple(frames), tuple(allowed), tuple(groups), scene.bodies_without_frames)


def _joint(joint: Joint, place: SourceLocation) -> JointSpec:
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
    same = ("color", "visual", "collision", "level", "friction")
    return replace(spec, **{key: getattr(part, key) for key in same})


def _inertia(inertia: Inertia, place: SourceLocation) -> InertiaSpec:
    x, y, z = (float(value) for value in inertia.center)
    m = inertia.matrix
    moments = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    ixx, ixy, ixz, iyy, iyz, izz = (float(value) for value in moments)
    return InertiaSpec(inertia.mass, place, PoseSpec((x, y, z)), (ixx, ixy, ixz, iyy, iyz, izz))
