"""Conversions between specifications and values of the core.

A specification keeps the representation of its file: a quaternion or roll, pitch and yaw, a joint
with an offset, or joints between links in any order and direction. This module converts them to
values of the core, which checks them, and links and joints to frames with one parent each.

It also converts a scene to a specification, to merge it with files. This specification builds to an
equal scene, except for the order of frames that precede their parents. The builder is
:mod:`tmkit.formats.spec.build`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tmkit import graph
from tmkit._support.source_location import SourceLocation
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, GroupSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    JOINTS_WITHOUT_VALUE,
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MeshSpec,
    MimicSpec,
    PoseSpec,
)
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import Pose


def pose_of(spec: PoseSpec) -> Pose:
    """Return the pose of a specification."""
    if spec.quat_xyzw is not None:
        return Pose(spec.translation, spec.quat_xyzw)
    if spec.rpy is not None:
        return Pose.from_rpy(spec.translation, spec.rpy)
    return Pose(spec.translation)


def spec_of_pose(pose: Pose) -> PoseSpec:
    """Return the specification of a pose, which is ``PoseSpec()`` for the identity."""
    if pose == Pose.identity():
        return PoseSpec()
    x, y, z = pose.translation.tolist()
    qx, qy, qz, qw = pose.quat_xyzw.tolist()
    return PoseSpec((x, y, z), quat_xyzw=(qx, qy, qz, qw))


def joint_of(spec: JointSpec, *, mimic: graph.Mimic | None = None) -> graph.Joint:
    """Return the joint of a specification, with a mimic rule of the core if there is one."""
    if spec.type in JOINTS_WITHOUT_VALUE:
        return {"fixed": graph.Fixed, "free": graph.Free, "unstated": graph.Unstated}[spec.type]()
    joint_class = {
        "continuous": graph.Continuous,
        "revolute": graph.Revolute,
        "prismatic": graph.Prismatic,
    }[spec.type]
    keys = ("name", "velocity", "effort", "damping", "friction")
    limits = ("lower", "upper") if spec.type != "continuous" else ()
    return joint_class([0, 0, 1]).replace(
        axis=spec.axis, mimic=mimic, **{key: getattr(spec, key) for key in (*keys, *limits)}
    )


def mesh_specification(path: Path, place: SourceLocation) -> SceneSpecification:
    """Return the specification of a mesh file: one frame with the name of the file."""
    solid = GeometrySpec(MeshSpec(path), place)
    return SceneSpecification((FrameSpec(path.stem, "world", place, geometry=(solid,)),))


def extend_frame(
    spec: FrameSpec,
    *,
    classes: Sequence[str],
    mass: float | None,
    friction: float | None,
    level: str | None,
    mass_place: SourceLocation,
) -> FrameSpec:
    """Return a frame of an included file with more classes and other properties of its shapes.

    Args:
        spec: the frame.
        classes: additional classes.
        mass: mass with uniform density in the shapes [kg], or None to keep that of the frame.
        friction: coefficient of friction of the collision shapes, or None to keep theirs.
        level: collision level of the collision shapes, or None to keep theirs.
        mass_place: location of the mass.

    Raises:
        FileFormatError: if the frame has a mass but no collision shape.
    """
    solids = [part for part in spec.geometry if part.collision]
    if mass is not None:
        if not solids:
            raise mass_place.error(
                "a mass is spread over the frame's geometry, and this frame has none"
            )
        spec = replace(spec, inertia=InertiaSpec(mass, mass_place))
    changes: dict[str, Any] = {"friction": friction, "level": level}
    changes = {key: value for key, value in changes.items() if value is not None}
    geometry = tuple(replace(part, **changes) if part.collision else part for part in spec.geometry)
    return replace(spec, classes=tuple(dict.fromkeys((*spec.classes, *classes))), geometry=geometry)


def zero_pose_of(spec: FrameSpec) -> Pose:
    """Return parent_from_frame with the joint of the frame at 0."""
    pose = pose_of(spec.pose)
    if spec.joint.offset == 0.0:
        return pose
    motion, zero = spec.joint.offset * np.asarray(joint_of(spec.joint).axis), np.zeros(3)
    twist = [motion, zero] if spec.joint.type == "prismatic" else [zero, motion]
    return pose @ Pose.exp(np.concatenate(twist))


def primitive(kind: str, sizes: Sequence[float]) -> graph.Shape:
    """Return a box, sphere, cylinder, cone or capsule by its dimensions [m]."""
    shape_classes: dict[str, Callable[..., graph.Shape]] = {
        "sphere": graph.Sphere,
        "cylinder": graph.Cylinder,
        "cone": graph.Cone,
        "capsule": graph.Capsule,
    }
    return graph.Box(sizes) if kind == "box" else shape_classes[kind](*sizes)


def specification_of_scene(scene: graph.SceneGraph, *, path: str) -> SceneSpecification:
    """Return the specification of a scene, with ``path`` in its locations."""
    place = SourceLocation(path)
    frames = [_frame_spec(scene, name, path) for name in scene.frame_names]
    allowed = [
        AllowedPairSpec(first, second, reason, place)
        for first, second, reason in scene.allowed_pairs
    ]
    groups = [
        GroupSpec(
            group.name, group.frames, group.groups, place, group.parents, stamped_attributes(group)
        )
        for group in map(scene.group, scene.group_names)
    ]
    return SceneSpecification(
        tuple(frames), tuple(allowed), tuple(groups), scene.bodies_without_frames
    )


def _frame_spec(scene: graph.SceneGraph, name: str, path: str) -> FrameSpec:
    """Return the specification of a frame of a scene, with ``path`` in its location."""
    place = SourceLocation(f"{path} (frame '{name}')")
    frame = scene.specification(name)
    inertia = None if frame.inertia is None else spec_of_inertia(frame.inertia, place)
    twist = None if frame.twist is None else (frame.twist[0], tuple(map(float, frame.twist[1])))
    return FrameSpec(
        name=name,
        parent=frame.parent,
        place=place,
        pose=spec_of_pose(frame.pose),
        joint=spec_of_joint(frame.joint, place),
        body=frame.body if frame.body != name else None,
        classes=tuple(frame.classes),
        geometry=tuple(_geometry(part, place) for part in frame.shapes),
        inertia=inertia,
        attributes=stamped_attributes(frame),
        twist=twist,
        twist_noise=frame.twist_noise,
        stamps=frame.stamps,
        noise=frame.noise,
    )


def spec_of_joint(joint: graph.Joint, place: SourceLocation) -> JointSpec:
    """Return the specification of a joint at a location."""
    if not joint.is_actuated:
        return JointSpec(type=joint.type if joint.is_stated else "unstated", place=place)
    x, y, z = (float(value) for value in joint.axis)
    rule = joint.mimic
    mimic = MimicSpec(rule.joint, rule.multiplier, rule.offset, place) if rule is not None else None
    keys = ("name", "lower", "upper", "velocity", "effort", "damping", "friction")
    spec = JointSpec(joint.type, axis=(x, y, z), mimic=mimic, place=place)
    return replace(spec, **{key: getattr(joint, key) for key in keys})


def _geometry(part: graph.AttachedShape, place: SourceLocation) -> GeometrySpec:
    spec = GeometrySpec(part.shape, place, spec_of_pose(part.pose))
    keys = ("color", "visual", "collision", "level", "friction", "stamp")
    return replace(spec, **{key: getattr(part, key) for key in keys})


def spec_of_inertia(inertia: graph.Inertia, place: SourceLocation) -> InertiaSpec:
    """Return the specification of mass properties at a location."""
    x, y, z = (float(value) for value in inertia.center)
    m = inertia.matrix
    moments = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    ixx, ixy, ixz, iyy, iyz, izz = (float(value) for value in moments)
    return InertiaSpec(inertia.mass, place, PoseSpec((x, y, z)), (ixx, ixy, ixz, iyy, iyz, izz))


_MAX_OFFSET = 1e-12
"""Largest distance from a joint to the frame that the joint moves about its origin [m]."""


@dataclass(slots=True, eq=False)
class JointEdge:
    """A joint between two links of a file, and its direction in the tree.

    Attributes:
        top: parent link in the file.
        bottom: child link in the file.
        above: link that is the parent in the tree, or None if the joint would close a loop.
    """

    top: Any = field(init=False)
    bottom: Any = field(init=False)
    above: Any = field(init=False, default=None)

    def set_above(self, link: object) -> None:
        """Set the link that is the parent in the tree."""
        self.above = link

    @property
    def is_reversed(self) -> bool:
        """True if the child link in the file is the parent in the tree."""
        return self.above is not None and self.above is not self.top


def build_forest(
    world: Any, links: Sequence[Any], static: Collection[Any], joints: Sequence[JointEdge]
) -> set[Any]:
    """Set the parent in the tree of each joint, and return the roots of the trees.

    The joints are added in order, except those that close a loop. The root of a tree is the world,
    a static link, or the first link that is not a child of a joint.

    Args:
        world: the world.
        links: links in the order of the file.
        static: links that do not move.
        joints: joints in the order of the file.
    """
    # Collect the joints of the forest by link, with a union-find structure.
    representatives = {link: link for link in (world, *links)}
    joints_at: dict[Any, list[JointEdge]] = {link: [] for link in representatives}
    for joint in joints:
        first = _representative(representatives, joint.top)
        second = _representative(representatives, joint.bottom)
        if first is not second:
            representatives[second] = first
            joints_at[joint.top].append(joint)
            joints_at[joint.bottom].append(joint)

    # Direct the joints away from the roots.
    children = {joint.bottom for joint in joints}
    roots, reached = set[Any](), set[Any]()
    for root in (world, *sorted(links, key=lambda link: (link not in static, link in children))):
        stack = [] if root in reached else [root]
        roots.update(stack)
        while stack:
            link = stack.pop()
            reached.add(link)
            for joint in (joint for joint in joints_at[link] if joint.above is None):
                joint.set_above(link)
                stack.append(joint.top if joint.is_reversed else joint.bottom)
    return roots


def _representative(representatives: dict[Any, Any], link: Any) -> Any:
    """Return the representative of a link's set, and shorten the path to it."""
    while representatives[link] is not link:
        representatives[link] = representatives[representatives[link]]
        link = representatives[link]
    return link


def frames_on_joint(
    frame: FrameSpec,
    above: str,
    above_from_joint: Pose,
    joint_from_frame: Pose,
    steps: Sequence[tuple[str, JointSpec]],
    *,
    is_reversed: bool,
    place: SourceLocation,
) -> list[FrameSpec]:
    """Return the intermediate frames ``FRAME/JOINT`` of a joint, and the frame below the joint.

    Args:
        frame: the frame below the joint.
        above: name of the frame above the joint.
        above_from_joint: pose of the joint relative to the frame above.
        joint_from_frame: pose of the frame relative to the joint.
        steps: joints with at most one degree of freedom, from the joint's parent to its child, by
            their names in intermediate frames. Axes are in the frame of the joint.
        is_reversed: whether the frame above is the joint's child.
        place: location of the joint.
    """
    if is_reversed:
        steps = [
            (name, replace(step, axis=(-step.axis[0], -step.axis[1], -step.axis[2])))
            for name, step in steps[::-1]
        ]
    is_at_joint = max(map(abs, joint_from_frame.translation)) < _MAX_OFFSET
    frames = list[FrameSpec]()
    pose = above_from_joint
    for number, (name, step) in enumerate(steps, start=1):
        if number == len(steps) and (is_at_joint or step.type in ("fixed", "prismatic")):
            x, y, z = joint_from_frame.inverse().rotate(step.axis).tolist()
            child = replace(frame, joint=replace(step, axis=(x, y, z)))
            pose = pose @ joint_from_frame
        else:
            child = FrameSpec(f"{frame.name}/{name}", None, place, joint=step)
        frames.append(replace(child, parent=above, pose=spec_of_pose(pose), parent_place=place))
        above, pose = child.name, Pose.identity()
    if above != frame.name:
        pose_spec = spec_of_pose(joint_from_frame)
        frames.append(replace(frame, parent=above, pose=pose_spec, parent_place=place))
    return frames
