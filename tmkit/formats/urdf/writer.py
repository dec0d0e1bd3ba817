"""Scenes, or parts of scenes, as robot descriptions in URDF.

The subtree below a frame becomes one robot: frames become links of the same names, edges become
joints. What reads back through :func:`tmkit.formats.load_scene` has the same forward kinematics,
limits and inertias. Meshes, and what URDF lacks, are written as OBJ files beside the description,
one file for each content: cones, height fields by their skin, point clouds by a cube around each
ball. Capsules and planes are written in Bullet's words.

URDF says less than a scene. Frames of one body become links that fixed joints join (the mass is on
the first of them), a revolute joint without any limit becomes continuous, and classes and allowed
pairs are omitted.
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
    """A robot description, not yet in files.

    Attributes:
        text: the URDF; it names its meshes by file name, relative to itself.
        meshes: the text of each OBJ file by its name.
    """

    text: str
    meshes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Writer:
    """The state of one writing: the scene, the frames that are written, and the meshes met so far."""

    scene: SceneGraph
    frames: Sequence[str]
    meshes: dict[str, str] = field(default_factory=dict)


def urdf_from_scene(
    scene: SceneGraph, root: str, *, name: str = "robot", exclude: Collection[str] = ()
) -> UrdfText:
    """Return the subtree below a frame as a robot description.

    Args:
        scene: the scene.
        root: the frame that becomes the root link.
        name: of the robot.
        exclude: frames that are omitted, each with its whole subtree.

    Raises:
        UnknownNameError: no such frame.
        SceneError: the root is excluded, or a joint mimics one that is not written.
    """
    from lxml import etree

    for frame in (root, *exclude):
        if frame not in scene:
            raise UnknownNameError.of("frame", frame, scene.frame_names)
    if root in exclude:
        raise SceneError(f"the root '{root}' of the robot is excluded", frame=root)
    writer = _Writer(scene, _kept(scene, root, frozenset(exclude)))
    robot = etree.Element("robot", name=name)
    # The first written frame of each body carries its mass.
    masses = set({scene.body(frame): frame for frame in reversed(writer.frames)}.values())
    try:
        for frame in writer.frames:
            _add_link(robot, frame, writer, has_mass=frame in masses)
        names = {scene.joint(frame).name for frame in writer.frames}
        for frame in writer.frames[1:]:
            _add_joint(robot, frame, writer, names)
    except ValueError as error:  # a name with characters that XML cannot hold
        raise (
            error
            if isinstance(error, SceneError)
            else SceneError(f"a name does not fit into XML: {error}")
        ) from error
    text = etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8").decode(
        "utf-8"
    )
    return UrdfText(text, writer.meshes)


def write_urdf(
    scene: SceneGraph,
    root: str,
    folder: str | os.PathLike[str],
    *,
    name: str = "robot",
    exclude: Collection[str] = (),
) -> Path:
    """Write the subtree below a frame as ``NAME.urdf``, and its meshes as OBJ files; return the path of the URDF file.

    Args:
        scene: the scene.
        root: the frame that becomes the root link.
        folder: where to write; it is made when it is not there.
        name: of the robot and of the file.
        exclude: frames that are omitted, each with its whole subtree.

    Raises:
        UnknownNameError: no such frame.
        SceneError: the root is excluded, or a joint mimics one that is not written.
        OutputError: a file cannot be written.
    """
    written = urdf_from_scene(scene, root, name=name, exclude=exclude)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder '{target}': {error.strerror}"
        raise OutputError(message, path=str(target), reason=error.strerror) from error
    path = target / f"{name}.urdf"
    write_files(
        {**{target / file: text for file, text in written.meshes.items()}, path: written.text}
    )
    return path


def _kept(scene: SceneGraph, root: str, exclude: frozenset[str]) -> list[str]:
    """Return the frames below the root that are not excluded, parents first."""
    kept, waiting = [], [root]
    while waiting:
        frame = waiting.pop()
        kept.append(frame)
        waiting.extend(child for child in reversed(scene.children(frame)) if child not in exclude)
    # The order of the joints in the file is that of the configuration, so it should be that of the
    # scene. A frame reparented to a later one pulls that one forward; when this disturbs the
    # joints, they are written first.
    rank = {frame: index for index, frame in enumerate(scene.frame_names)}
    in_order = sorted(kept, key=rank.__getitem__)
    moving = [frame for frame in in_order if scene.joint(frame).is_actuated]

    def parent(frame: str) -> str | None:
        return scene.parent(frame) if frame != root else None

    ordered = parents_first(in_order, parent)
    if [frame for frame in ordered if scene.joint(frame).is_actuated] != moving:
        ordered = parents_first([*moving, *in_order], parent)
    return ordered


def add_element(
    parent: _Element, tag: str, attributes: Mapping[str, str] | None = None
) -> _Element:
    """Add a child element."""
    from lxml import etree

    return etree.SubElement(parent, tag, dict(attributes or {}))


def _add_link(robot: _Element, frame: str, writer: _Writer, *, has_mass: bool) -> None:
    link = add_element(robot, "link", {"name": frame})
    inertia = writer.scene.inertia(frame) if has_mass else None
    if inertia is not None:
        inertial = add_element(link, "inertial")
        add_element(inertial, "origin", {"xyz": _words(inertia.center), "rpy": "0 0 0"})
        add_element(inertial, "mass", {"value": _word(inertia.mass)})
        m = inertia.matrix
        moments = {
            "ixx": m[0, 0],
            "ixy": m[0, 1],
            "ixz": m[0, 2],
            "iyy": m[1, 1],
            "iyz": m[1, 2],
            "izz": m[2, 2],
        }
        add_element(inertial, "inertia", {key: _word(value) for key, value in moments.items()})
    for part in writer.scene.shapes(frame):
        for purpose, wanted in (("visual", part.visual), ("collision", part.collision)):
            if wanted:
                _add_shape(add_element(link, purpose), part, writer)


def _add_shape(purpose: _Element, part: AttachedShape, writer: _Writer) -> None:
    _add_origin(purpose, part.pose)
    geometry = add_element(purpose, "geometry")
    shape = part.shape
    if shape.kind == "box":
        add_element(geometry, "box", {"size": _words(shape.dimensions)})
    elif shape.kind == "sphere":
        add_element(geometry, "sphere", {"radius": _word(shape.dimensions[0])})
    elif shape.kind in ("cylinder", "capsule"):
        add_element(
            geometry,
            shape.kind,
            {"radius": _word(shape.dimensions[0]), "length": _word(shape.dimensions[1])},
        )
    elif shape.kind == "plane":
        add_element(geometry, "plane", {"normal": "0 0 1"})
    else:
        add_element(geometry, "mesh", {"filename": _mesh_file(shape, writer)})
    if purpose.tag == "visual" and part.color is not None:
        color = _words(part.color)
        add_element(
            add_element(purpose, "material", {"name": f"color {color}"}), "color", {"rgba": color}
        )


def _mesh(shape: Shape) -> Shape:
    """Return a shape that URDF lacks as a mesh."""
    if shape.kind == "cone":
        return frustum(shape.dimensions[0], 0.0, shape.dimensions[1])
    makers = {"point_cloud": mesh_of_cloud, "height_field": mesh_of_field}
    return makers[shape.kind](shape) if shape.kind in makers else shape


def _mesh_file(shape: Shape, writer: _Writer) -> str:
    """Return the name of the OBJ file of a shape, and note its text."""
    file = f"{shape.kind}_{shape.digest}.obj"
    if file not in writer.meshes:
        writer.meshes[file] = obj_text(_mesh(shape))
    return file


def obj_text(mesh: Shape) -> str:
    """Return a mesh as the text of an OBJ file, which reads back to the same bits."""
    lines = [f"v {_words(vertex)}" for vertex in mesh.vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
    return "\n".join(lines) + "\n"


def _add_joint(robot: _Element, frame: str, writer: _Writer, names: set[str]) -> None:
    joint = writer.scene.joint(frame)
    kind = {"free": "floating"}.get(joint.type, joint.type)
    unlimited = math.isinf(joint.lower) and math.isinf(joint.upper)
    if kind == "revolute" and unlimited:
        kind = "continuous"
    name = joint.name if joint.is_actuated else _fixed_name(frame, names)
    element = add_element(robot, "joint", {"name": name, "type": kind})
    _add_origin(element, writer.scene.local_pose(frame))
    add_element(element, "parent", {"link": str(writer.scene.parent(frame))})
    add_element(element, "child", {"link": frame})
    if joint.is_actuated:
        add_element(element, "axis", {"xyz": _words(joint.axis)})
        _add_motion(element, joint, kind, writer)


def _add_motion(element: _Element, joint: Joint, kind: str, writer: _Writer) -> None:
    """Add limits, dynamics and the rule of a joint that moves."""
    limits = {"effort": joint.effort, "velocity": joint.velocity}
    written = {key: _word(value) for key, value in limits.items() if math.isfinite(value)}
    if kind != "continuous":
        written |= {"lower": _word(joint.lower), "upper": _word(joint.upper)}
    if written:
        add_element(element, "limit", written)
    if joint.damping or joint.friction:
        add_element(
            element,
            "dynamics",
            {"damping": _word(joint.damping), "friction": _word(joint.friction)},
        )
    rule = joint.mimic
    if rule is not None:
        if writer.scene.joint_frame(rule.joint) not in writer.frames:
            raise SceneError(
                f"the joint '{joint.name}' mimics '{rule.joint}', which is not part of the robot"
            )
        add_element(
            element,
            "mimic",
            {
                "joint": rule.joint,
                "multiplier": _word(rule.multiplier),
                "offset": _word(rule.offset),
            },
        )


def _fixed_name(frame: str, names: set[str]) -> str:
    """Return a name for an edge that has none in the scene, different from those of all joints."""
    name = f"{frame}_joint"
    while name in names:
        name += "_"
    names.add(name)
    return name


def _add_origin(element: _Element, pose: Pose) -> None:
    add_element(
        element,
        "origin",
        {"xyz": _words(pose.translation), "rpy": _words(roll_pitch_yaw(pose.rotation))},
    )


def roll_pitch_yaw(rotation: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return fixed-axis roll, pitch and yaw with ``rotation = Rz(yaw) Ry(pitch) Rx(roll)``, radians.

    Where pitch is a right angle only roll - yaw or roll + yaw is determined; then any yaw does,
    because roll and pitch are computed from what remains of the rotation after yaw has been undone.
    """
    yaw = atan2(rotation[1, 0], rotation[0, 0])
    s, c = sin(yaw), cos(yaw)
    pitch = atan2(-rotation[2, 0], c * rotation[0, 0] + s * rotation[1, 0])
    roll = atan2(s * rotation[0, 2] - c * rotation[1, 2], c * rotation[1, 1] - s * rotation[0, 1])
    return roll, pitch, yaw


def _word(value: float) -> str:
    """Return a number as text that reads back to the same bits."""
    return repr(float(value))


def _words(values: Sequence[float] | npt.NDArray[np.float64]) -> str:
    return " ".join(_word(value) for value in values)
