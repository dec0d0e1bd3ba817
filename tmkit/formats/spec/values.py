"""From specifications to the core's values, and from a finished scene back to a specification, to merge it with files.

A specification keeps the representation of its file: a quaternion or roll, pitch and yaw; a joint
whose value is counted from an offset; joints between links in any order and direction. Here each is
converted to the representation of the core, which checks it, and links and joints to frames with
one parent each. :mod:`tmkit.formats.spec.build` makes frames of a scene from specifications. A
specification of a scene builds to an equal scene, apart from the order of frames that stand before
their parents.
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
    """Return the core's pose."""
    if spec.quat_xyzw is not None:
        return Pose(spec.translation, spec.quat_xyzw)
    return (
        Pose.from_rpy(spec.translation, spec.rpy)
        if spec.rpy is not None
        else Pose(spec.translation)
    )


def spec_of_pose(pose: Pose) -> PoseSpec:
    """Return the specification of a pose, the default for the identity."""
    (x, y, z), (i, j, k, w) = pose.translation.tolist(), pose.quat_xyzw.tolist()
    return PoseSpec() if pose == Pose.identity() else PoseSpec((x, y, z), quat_xyzw=(i, j, k, w))


def joint_of(spec: JointSpec, *, mimic: graph.Mimic | None = None) -> graph.Joint:
    """Return the core's joint."""
    if spec.type in JOINTS_WITHOUT_VALUE:
        return {"fixed": graph.Fixed, "free": graph.Free, "unstated": graph.Unstated}[spec.type]()
    make = {
        "continuous": graph.Continuous,
        "revolute": graph.Revolute,
        "prismatic": graph.Prismatic,
    }[spec.type]
    keys = ("name", "velocity", "effort", "damping", "friction")
    limits = ("lower", "upper") if spec.type != "continuous" else ()
    return make([0, 0, 1]).replace(
        axis=spec.axis, mimic=mimic, **{key: getattr(spec, key) for key in (*keys, *limits)}
    )


def mesh_specification(path: Path, place: SourceLocation) -> SceneSpecification:
    """Return the scene of a mesh file: a frame of its name."""
    solid = GeometrySpec(MeshSpec(path), place)
    return SceneSpecification((FrameSpec(path.stem, "world", place, geometry=(solid,)),))


def completed(
    spec: FrameSpec,
    *,
    classes: Sequence[str],
    mass: float | None,
    friction: float | None,
    level: str | None,
    mass_place: SourceLocation,
) -> FrameSpec:
    """Return a frame of an included file with more classes, and with what is given for its shapes, which stay."""
    solids = [part for part in spec.geometry if part.collision]
    if mass is not None:
        if not solids:
            raise mass_place.error(
                "a mass is spread over the frame's geometry, and this frame has none"
            )
        spec = replace(spec, inertia=InertiaSpec(mass, mass_place))
    given = {
        key: value for key, value in (("friction", friction), ("level", level)) if value is not None
    }
    geometry = tuple(replace(part, **given) if part.collision else part for part in spec.geometry)  # type: ignore[arg-type]
    return replace(spec, classes=tuple(dict.fromkeys((*spec.classes, *classes))), geometry=geometry)


def zero_pose_of(spec: FrameSpec) -> Pose:
    """Return a frame's pose relative to its parent with its joint at zero."""
    pose = pose_of(spec.pose)
    if spec.joint.offset == 0.0:
        return pose
    motion, zero = spec.joint.offset * np.asarray(joint_of(spec.joint).axis), np.zeros(3)
    return pose @ Pose.exp(
        np.concatenate([motion, zero] if spec.joint.type == "prismatic" else [zero, motion])
    )


def primitive(kind: str, sizes: Sequence[float]) -> graph.Shape:
    """Return a box, sphere, cylinder, cone or capsule of dimensions in metres."""
    makers: dict[str, Callable[..., graph.Shape]] = {
        "sphere": graph.Sphere,
        "cylinder": graph.Cylinder,
        "cone": graph.Cone,
        "capsule": graph.Capsule,
    }
    return graph.Box(sizes) if kind == "box" else makers[kind](*sizes)


def specification_of_scene(scene: graph.SceneGraph, *, path: str) -> SceneSpecification:
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
                inertia=(
                    spec_of_inertia(frame.inertia, place) if frame.inertia is not None else None
                ),
                attributes=stamped_attributes(frame),
                twist=(
                    None
                    if frame.twist is None
                    else (frame.twist[0], tuple(map(float, frame.twist[1])))
                ),
                twist_noise=frame.twist_noise,
                stamps=frame.stamps,
                noise=frame.noise,
            )
        )
    allowed = [
        AllowedPairSpec(first, second, reason, SourceLocation(path))
        for first, second, reason in scene.allowed_pairs
    ]
    groups = [
        GroupSpec(
            g.name, g.frames, g.groups, SourceLocation(path), g.parents, stamped_attributes(g)
        )
        for g in map(scene.group, scene.group_names)
    ]
    return SceneSpecification(
        tuple(frames), tuple(allowed), tuple(groups), scene.bodies_without_frames
    )


def spec_of_joint(joint: graph.Joint, place: SourceLocation) -> JointSpec:
    """Return the specification of a joint; ``place`` is for messages."""
    if not joint.is_actuated:
        return JointSpec(type=joint.type if joint.is_stated else "unstated", place=place)
    x, y, z = (float(value) for value in joint.axis)
    rule = joint.mimic
    mimic = MimicSpec(rule.joint, rule.multiplier, rule.offset, place) if rule is not None else None
    same = ("name", "lower", "upper", "velocity", "effort", "damping", "friction")
    spec = JointSpec(joint.type, axis=(x, y, z), mimic=mimic, place=place)
    return replace(spec, **{key: getattr(joint, key) for key in same})


def _geometry(part: graph.AttachedShape, place: SourceLocation) -> GeometrySpec:
    spec = GeometrySpec(part.shape, place, spec_of_pose(part.pose))
    same = ("color", "visual", "collision", "level", "friction", "stamp")
    return replace(spec, **{key: getattr(part, key) for key in same})


def spec_of_inertia(inertia: graph.Inertia, place: SourceLocation) -> InertiaSpec:
    """Return the specification of mass properties; ``place`` is for messages."""
    x, y, z = (float(value) for value in inertia.center)
    m = inertia.matrix
    moments = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    ixx, ixy, ixz, iyy, iyz, izz = (float(value) for value in moments)
    return InertiaSpec(inertia.mass, place, PoseSpec((x, y, z)), (ixx, ixy, ixz, iyy, iyz, izz))


_CLOSE = 1e-12  # metres


@dataclass(slots=True, eq=False)
class JointEdge:
    """A joint between two links, of which the tree has ``above`` above: ``None`` for one that would close a loop."""

    top: Any = field(init=False)
    bottom: Any = field(init=False)
    above: Any = field(init=False, default=None)

    def hang_below(self, link: object) -> None:
        """Make a link the one above in the tree."""
        self.above = link

    @property
    def is_turned(self) -> bool:
        """Whether its child is above its parent."""
        return self.above is not None and self.above is not self.top


def grow(
    world: Any, links: Sequence[Any], static: Collection[Any], joints: Sequence[JointEdge]
) -> set[Any]:
    """Make joints a forest, each with its link above, and return the links that none moves.

    In their order, each joint that closes no loop is part of it; a tree hangs on the world, a
    static link or its first link.
    """
    tree = {link: link for link in (world, *links)}
    around: dict[Any, list[JointEdge]] = {link: [] for link in tree}
    for joint in joints:
        one, other = _representative(tree, joint.top), _representative(tree, joint.bottom)
        if one is not other:
            tree[other] = one
            around[joint.top].append(joint)
            around[joint.bottom].append(joint)
    children = {joint.bottom for joint in joints}
    roots, reached = set[Any](), set[Any]()
    for root in (world, *sorted(links, key=lambda link: (link not in static, link in children))):
        waiting = [] if root in reached else [root]
        roots.update(waiting)
        while waiting:
            link = waiting.pop()
            reached.add(link)
            for joint in (joint for joint in around[link] if joint.above is None):
                joint.hang_below(link)
                waiting.append(joint.top if joint.is_turned else joint.bottom)
    return roots


def _representative(tree: dict[Any, Any], link: Any) -> Any:
    while tree[link] is not link:
        tree[link] = tree[tree[link]]
        link = tree[link]
    return link


def hung(
    frame: FrameSpec,
    above: str,
    pose: Pose,
    rest: Pose,
    steps: Sequence[tuple[str, JointSpec]],
    *,
    is_turned: bool,
    place: SourceLocation,
) -> list[FrameSpec]:
    """Return a frame on the joints that move it, after the frames ``FRAME/JOINT`` between that these need.

    Args:
        above: name of the frame above; ``pose``: of the joint in it; ``rest``: of the frame in the
            joint's.
        steps: the joints of one degree of freedom, from the joint's parent on, with their names in
            frames; axes are in the frame of the joint.
        is_turned: whether ``above`` is the joint's child.
    """
    if is_turned:
        steps = [
            (name, replace(step, axis=(-step.axis[0], -step.axis[1], -step.axis[2])))
            for name, step in steps[::-1]
        ]
    is_centred = max(map(abs, rest.translation)) < _CLOSE
    frames = list[FrameSpec]()
    for number, (name, step) in enumerate(steps, start=1):
        if number == len(steps) and (is_centred or step.type in ("fixed", "prismatic")):
            x, y, z = rest.inverse().rotate(step.axis).tolist()
            moved = replace(frame, joint=replace(step, axis=(x, y, z)))
            pose = pose @ rest
        else:
            moved = FrameSpec(f"{frame.name}/{name}", None, place, joint=step)
        frames.append(replace(moved, parent=above, pose=spec_of_pose(pose), parent_place=place))
        above, pose = moved.name, Pose.identity()
    if above != frame.name:
        frames.append(replace(frame, parent=above, pose=spec_of_pose(rest), parent_place=place))
    return frames
