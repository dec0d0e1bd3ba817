"""Writer of URDF robot descriptions.

The subtree below a frame becomes one robot: frames become links of the same names, and edges become
joints. :func:`tmkit.formats.load_scene` reads a scene with the same forward kinematics, limits and
inertias.

Meshes, and shapes that URDF lacks, are written as OBJ files, one for each content. These shapes are
cones, the surface of height fields, and a cube around each ball of a point cloud. Capsules and
planes use the elements of Bullet.

URDF stores less than a scene:

* Frames of one body become links with fixed joints between them. The first has the mass.
* A revolute joint without limits becomes continuous.
* Classes and allowed pairs are omitted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import atan2, cos, sin
from tmkit._support.output import write_files
from tmkit.errors import OutputError, SceneError, UnknownNameError
from tmkit.formats.mesh.solids import frustum, mesh_of_cloud, mesh_of_field
from tmkit.formats.spec.build import parents_first
from tmkit.graph import AttachedShape, Joint, SceneGraph, Shape
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from lxml.etree import _Element


@dataclass(frozen=True, slots=True)
class UrdfText:
    """Content of the files of a robot description.

    Attributes:
        text: the URDF, with mesh file names relative to itself.
        meshes: content of each OBJ file by file name.
    """

    text: str
    meshes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Scene and frames of a robot description, and the OBJ files so far, by file name."""

    scene: SceneGraph
    frames: Sequence[str]
    meshes: dict[str, str] = field(default_factory=dict)


def urdf_from_scene(
    scene: SceneGraph, root: str, *, name: str = "robot", exclude: Collection[str] = ()
) -> UrdfText:
    """Return the subtree below a frame as a robot description.

    Args:
        scene: the scene.
        root: frame that becomes the root link.
        name: name of the robot.
        exclude: frames that are omitted, each with its subtree.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if the root is excluded, a joint mimics a joint that is not written, or XML
            cannot store a name.
    """
    from lxml import etree

    for frame in (root, *exclude):
        if frame not in scene:
            raise UnknownNameError.of("frame", frame, scene.frame_names)
    if root in exclude:
        raise SceneError(f"the root '{root}' of the robot is excluded", frame=root)
    writer = _Writer(scene, _frames_in_order(scene, root, frozenset(exclude)))
    robot = etree.Element("robot", name=name)
    # The first written frame of each body has the mass.
    mass_frames = set({scene.body(frame): frame for frame in reversed(writer.frames)}.values())
    try:
        for frame in writer.frames:
            _add_link(robot, frame, writer, has_mass=frame in mass_frames)
        joint_names = {scene.joint(frame).name for frame in writer.frames}
        for frame in writer.frames[1:]:
            _add_joint(robot, frame, writer, joint_names)
    except SceneError:
        raise
    except ValueError as error:  # a name with characters that XML cannot store
        raise SceneError(f"a name does not fit into XML: {error}") from error
    data = etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8")
    return UrdfText(data.decode("utf-8"), writer.meshes)


def write_urdf(
    scene: SceneGraph,
    root: str,
    folder: str | os.PathLike[str],
    *,
    name: str = "robot",
    exclude: Collection[str] = (),
) -> Path:
    """Write the subtree below a frame as ``NAME.urdf`` with its meshes as OBJ files.

    Args:
        scene: the scene.
        root: frame that becomes the root link.
        folder: folder of the files, which is created if it is missing.
        name: name of the robot and of the file.
        exclude: frames that are omitted, each with its subtree.

    Returns:
        Path of the URDF file.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if the root is excluded, a joint mimics a joint that is not written, or XML
            cannot store a name.
        OutputError: if a file cannot be written.
    """
    urdf = urdf_from_scene(scene, root, name=name, exclude=exclude)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder '{target}': {error.strerror}"
        raise OutputError(message, path=str(target), reason=error.strerror) from error
    path = target / f"{name}.urdf"
    write_files({**{target / file: text for file, text in urdf.meshes.items()}, path: urdf.text})
    return path


def _frames_in_order(scene: SceneGraph, root: str, exclude: frozenset[str]) -> list[str]:
    """Return the frames below the root that are not excluded, parents first.

    The order of joints in the file determines the order in a configuration, so it is that of the
    scene. If a frame was reparented to a later frame, the later one must come first. If this
    changes the order of joints, the frames on joints are written first.
    """
    frames, stack = [], [root]
    while stack:
        frame = stack.pop()
        frames.append(frame)
        stack.extend(child for child in reversed(scene.children(frame)) if child not in exclude)
    rank = {frame: index for index, frame in enumerate(scene.frame_names)}
    frames.sort(key=rank.__getitem__)
    joint_frames = [frame for frame in frames if scene.joint(frame).is_actuated]

    def parent(frame: str) -> str | None:
        return scene.parent(frame) if frame != root else None

    ordered = parents_first(frames, parent)
    if [frame for frame in ordered if scene.joint(frame).is_actuated] != joint_frames:
        ordered = parents_first([*joint_frames, *frames], parent)
    return ordered


def add_element(
    parent: _Element, tag: str, attributes: Mapping[str, str] | None = None
) -> _Element:
    """Add a child element and return it."""
    from lxml import etree

    return etree.SubElement(parent, tag, dict(attributes or {}))


def _add_link(robot: _Element, frame: str, writer: _Writer, *, has_mass: bool) -> None:
    link = add_element(robot, "link", {"name": frame})
    inertia = writer.scene.inertia(frame) if has_mass else None
    if inertia is not None:
        inertial = add_element(link, "inertial")
        add_element(inertial, "origin", {"xyz": _numbers_text(inertia.center), "rpy": "0 0 0"})
        add_element(inertial, "mass", {"value": _number_text(inertia.mass)})
        m = inertia.matrix
        moments = {
            "ixx": m[0, 0],
            "ixy": m[0, 1],
            "ixz": m[0, 2],
            "iyy": m[1, 1],
            "iyz": m[1, 2],
            "izz": m[2, 2],
        }
        add_element(
            inertial, "inertia", {key: _number_text(value) for key, value in moments.items()}
        )
    for part in writer.scene.shapes(frame):
        for purpose, is_used in (("visual", part.visual), ("collision", part.collision)):
            if is_used:
                _add_shape(add_element(link, purpose), part, writer)


def _add_shape(purpose: _Element, part: AttachedShape, writer: _Writer) -> None:
    _add_origin(purpose, part.pose)
    geometry = add_element(purpose, "geometry")
    shape = part.shape
    if shape.kind == "box":
        add_element(geometry, "box", {"size": _numbers_text(shape.dimensions)})
    elif shape.kind == "sphere":
        add_element(geometry, "sphere", {"radius": _number_text(shape.dimensions[0])})
    elif shape.kind in ("cylinder", "capsule"):
        radius, length = map(_number_text, shape.dimensions)
        add_element(geometry, shape.kind, {"radius": radius, "length": length})
    elif shape.kind == "plane":
        add_element(geometry, "plane", {"normal": "0 0 1"})
    else:
        add_element(geometry, "mesh", {"filename": _mesh_file(shape, writer)})
    if purpose.tag == "visual" and part.color is not None:
        color = _numbers_text(part.color)
        material = add_element(purpose, "material", {"name": f"color {color}"})
        add_element(material, "color", {"rgba": color})


def _mesh(shape: Shape) -> Shape:
    """Return the mesh that represents a shape without an element in URDF."""
    if shape.kind == "cone":
        return frustum(shape.dimensions[0], 0.0, shape.dimensions[1])
    if shape.kind == "point_cloud":
        return mesh_of_cloud(shape)
    return mesh_of_field(shape) if shape.kind == "height_field" else shape


def _mesh_file(shape: Shape, writer: _Writer) -> str:
    """Return the name of the OBJ file of a shape, and add its text to the writer's meshes."""
    file = f"{shape.kind}_{shape.digest}.obj"
    if file not in writer.meshes:
        writer.meshes[file] = obj_text(_mesh(shape))
    return file


def obj_text(mesh: Shape) -> str:
    """Return a mesh as the text of an OBJ file, with numbers that read back exactly."""
    lines = [f"v {_numbers_text(vertex)}" for vertex in mesh.vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
    return "\n".join(lines) + "\n"


def _add_joint(robot: _Element, frame: str, writer: _Writer, names: set[str]) -> None:
    joint = writer.scene.joint(frame)
    kind = "floating" if joint.type == "free" else joint.type
    is_unlimited = math.isinf(joint.lower) and math.isinf(joint.upper)
    if kind == "revolute" and is_unlimited:
        kind = "continuous"
    name = joint.name if joint.is_actuated else _new_joint_name(frame, names)
    element = add_element(robot, "joint", {"name": name, "type": kind})
    _add_origin(element, writer.scene.local_pose(frame))
    add_element(element, "parent", {"link": str(writer.scene.parent(frame))})
    add_element(element, "child", {"link": frame})
    if joint.is_actuated:
        add_element(element, "axis", {"xyz": _numbers_text(joint.axis)})
        _add_motion(element, joint, kind, writer)


def _add_motion(element: _Element, joint: Joint, kind: str, writer: _Writer) -> None:
    """Add limits, dynamics and mimic rule of an actuated joint."""
    limits = {"effort": joint.effort, "velocity": joint.velocity}
    attributes = {key: _number_text(value) for key, value in limits.items() if math.isfinite(value)}
    if kind != "continuous":
        attributes |= {"lower": _number_text(joint.lower), "upper": _number_text(joint.upper)}
    if attributes:
        add_element(element, "limit", attributes)
    if joint.damping or joint.friction:
        dynamics = {
            "damping": _number_text(joint.damping),
            "friction": _number_text(joint.friction),
        }
        add_element(element, "dynamics", dynamics)
    rule = joint.mimic
    if rule is not None:
        if writer.scene.joint_frame(rule.joint) not in writer.frames:
            raise SceneError(
                f"the joint '{joint.name}' mimics '{rule.joint}', which is not part of the robot"
            )
        attributes = {
            "multiplier": _number_text(rule.multiplier),
            "offset": _number_text(rule.offset),
        }
        add_element(element, "mimic", {"joint": rule.joint, **attributes})


def _new_joint_name(frame: str, names: set[str]) -> str:
    """Return an unused joint name for an edge without one, and add it to the names."""
    name = f"{frame}_joint"
    while name in names:
        name += "_"
    names.add(name)
    return name


def _add_origin(element: _Element, pose: Pose) -> None:
    xyz, rpy = _numbers_text(pose.translation), _numbers_text(roll_pitch_yaw(pose.rotation))
    add_element(element, "origin", {"xyz": xyz, "rpy": rpy})


def roll_pitch_yaw(rotation: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return fixed-axis roll, pitch and yaw of a rotation [rad].

    They satisfy ``rotation = Rz(yaw) Ry(pitch) Rx(roll)``. If the pitch is a right angle, only
    roll - yaw or roll + yaw is determined. Then any yaw is valid, because roll and pitch are
    computed from ``Rz(yaw)^T rotation``.
    """
    yaw = atan2(rotation[1, 0], rotation[0, 0])
    s, c = sin(yaw), cos(yaw)
    pitch = atan2(-rotation[2, 0], c * rotation[0, 0] + s * rotation[1, 0])
    roll = atan2(s * rotation[0, 2] - c * rotation[1, 2], c * rotation[1, 1] - s * rotation[0, 1])
    return roll, pitch, yaw


def _number_text(value: float) -> str:
    """Return a number as text that reads back exactly."""
    return repr(float(value))


def _numbers_text(values: Sequence[float] | npt.NDArray[np.float64]) -> str:
    return " ".join(_number_text(value) for value in values)
