"""Robot descriptions in URDF.

A link becomes a frame of the same name on a body of the same name; a joint becomes the edge between two such frames
and keeps its name, its axis, its limits, its dynamics and the joint it mimics. The one root link hangs off ``world``
without moving, unless it is called ``world`` itself. Joints are in the order of the file. ``floating`` is a free
edge; ``planar`` has no counterpart and is refused.

What planning does not need is taken as it is found, with a warning in the log: a material that is defined nowhere
leaves the colour open, and an inertia that no solid can have becomes that of a point mass.

Shapes keep their origins; a visual and a collision shape that are the same thing in the same place become one shape
with both purposes. A link of mass 0 has no inertia at all: such numbers stand for "no mass given". Links that a joint
joins may touch (reason ``adjacent``), looking upwards through links that have no collision shape; see
:mod:`tmkit.formats.urdf_collisions` for the pairs that always collide.

What other programs read out of a URDF (transmissions, sensors, ``gazebo``, safety controllers, textures) is left alone.
Everything else that is wrong is refused with file and line: what a robot file means must not depend on luck. The XML
itself is read with care, see :mod:`tmkit.files.xml`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tmkit.files.places import did_you_mean
from tmkit.files.xml import XmlElement, read_xml
from tmkit.formats.drafts import (
    AllowedDraft,
    FrameDraft,
    GeometryDraft,
    InertiaDraft,
    JointDraft,
    MeshDraft,
    MimicDraft,
    PoseDraft,
    PrimitiveDraft,
    Quadruple,
    SceneDraft,
)
from tmkit.formats.packages import PackageResolver

__all__ = ["read_urdf"]

logger = logging.getLogger(__name__)

# URDF's joint types and ours; planar is known and refused.
JOINT_TYPES: Mapping[str, str] = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "free",
}

Materials = Mapping[str, Quadruple | None]


@dataclass(frozen=True, slots=True)
class _Edge:
    """A joint element with the links it names."""

    element: XmlElement
    name: str
    parent: str
    child: str


def read_urdf(path: Path, *, packages: PackageResolver) -> SceneDraft:
    """Read a robot description.

    Args:
        path: the file.
        packages: where ``package://`` URIs lead.

    Raises:
        FileFormatError: the description is wrong.
    """
    robot = read_xml(path, root="robot")
    for child in robot.element:
        if isinstance(child.tag, str) and child.tag.startswith("{") and "xacro" in child.tag:
            place = XmlElement(child, robot.path, robot.lines).place
            raise place.error("this is a xacro file; expand it to URDF first")
    links = _named(robot, "link")
    if not links:
        raise robot.place.error("the robot has no link")
    edges = _edges(robot, links)
    root = _root(links, edges)
    materials = _materials(robot)
    above = {edge.child: edge for edge in edges}
    names = [root, *(edge.child for edge in edges)]
    frames = [_frame(links[name], above.get(name), materials=materials, packages=packages) for name in names]
    return SceneDraft(tuple(frames), _adjacent(frames))


def _named(robot: XmlElement, tag: str) -> dict[str, XmlElement]:
    """Return the links or joints by name, each name once."""
    found: dict[str, XmlElement] = {}
    for element in robot.children(tag):
        name = element.text("name")
        if name in found:
            raise element.place.error(f"the {tag} '{name}' is already declared at {found[name].place}")
        found[name] = element
    return found


def _edges(robot: XmlElement, links: Mapping[str, XmlElement]) -> list[_Edge]:
    """Return the joints with the links they join; each link is the child of at most one."""
    edges: list[_Edge] = []
    above: dict[str, _Edge] = {}
    for name, element in _named(robot, "joint").items():
        ends = []
        for tag in ("parent", "child"):
            end = element.needed(tag)
            link = end.text("link")
            if link not in links:
                raise end.place.error(f"the joint '{name}' names the unknown link '{link}'{did_you_mean(link, links)}")
            ends.append(link)
        edge = _Edge(element, name, ends[0], ends[1])
        if edge.child in above:
            other = above[edge.child]
            reason = (
                f"the link '{edge.child}' is already the child of the joint '{other.name}' at {other.element.place}"
            )
            raise element.place.error(reason)
        above[edge.child] = edge
        edges.append(edge)
    return edges


def _root(links: Mapping[str, XmlElement], edges: list[_Edge]) -> str:
    """Return the link that no joint moves, the only one."""
    above = {edge.child: edge for edge in edges}
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        names = ", ".join(f"'{name}'" for name in roots[:6]) + (", ..." if len(roots) > 6 else "")
        reason = f"the robot has {len(roots)} root links ({names}), expected one that all others hang off"
        raise links[roots[1]].place.error(reason)
    reached = set(roots)
    for name in links:
        path = [name]
        while path[-1] not in reached:
            edge = above[path[-1]]
            if edge.parent in path:
                around = " -> ".join([*path[path.index(edge.parent) :], edge.parent])
                raise edge.element.place.error(f"the links go round in a circle, each the child of the next: {around}")
            path.append(edge.parent)
        reached.update(path)
    return roots[0]


def _materials(robot: XmlElement) -> dict[str, Quadruple | None]:
    """Return the colours of all materials, wherever they are defined; the first definition of a name counts."""
    materials: dict[str, Quadruple | None] = {}
    for element in robot.element.iter("material"):
        material = XmlElement(element, robot.path, robot.lines)
        name = material.get("name")
        if name and (material.child("color") is not None or material.child("texture") is not None):
            materials.setdefault(name, _color(material))
    return materials


def _color(material: XmlElement) -> Quadruple | None:
    """Return the colour of a material that defines one."""
    color = material.child("color")
    if color is None:
        return None
    red, green, blue, alpha = color.numbers("rgba", (4,))
    if not all(0.0 <= part <= 1.0 for part in (red, green, blue, alpha)):
        raise color.place.error(f"'rgba' of <color>: expected numbers from 0 to 1, received '{color.get('rgba')}'")
    return red, green, blue, alpha


def _frame(link: XmlElement, edge: _Edge | None, *, materials: Materials, packages: PackageResolver) -> FrameDraft:
    """Return the frame of a link."""
    name = link.text("name")
    geometry = _geometry(link, materials=materials, packages=packages)
    inertial = link.child("inertial")
    inertia = _inertia(inertial) if inertial is not None else None
    if edge is None:
        parent = None if name == "world" else "world"
        return FrameDraft(name, parent, link.place, geometry=geometry, inertia=inertia)
    return FrameDraft(
        name,
        edge.parent,
        link.place,
        pose=_origin(edge.element),
        joint=_joint(edge),
        geometry=geometry,
        inertia=inertia,
        parent_place=edge.element.place,
    )


def _origin(element: XmlElement) -> PoseDraft:
    """Return the pose in the ``<origin>`` of an element, the identity when there is none."""
    origin = element.child("origin")
    if origin is None:
        return PoseDraft()
    zero = (0.0, 0.0, 0.0)
    rpy = origin.triple("rpy", zero)
    return PoseDraft(origin.triple("xyz", zero), rpy=rpy if rpy != zero else None)


def _joint(edge: _Edge) -> JointDraft:
    """Return the motion of a joint."""
    element, place = edge.element, edge.element.place
    written = element.text("type")
    if written == "planar":
        raise place.error(f"the joint '{edge.name}' is planar, which is not supported; expected {_accepted()}")
    if written not in JOINT_TYPES:
        hint = did_you_mean(written, JOINT_TYPES)
        raise place.error(f"the joint '{edge.name}' has the unknown type '{written}'{hint} (known: {_accepted()})")
    kind = JOINT_TYPES[written]
    if kind in ("fixed", "free"):
        return JointDraft(type=kind, place=place)
    dynamics = element.child("dynamics")
    joint = JointDraft(
        type=kind,
        name=edge.name,
        axis=_axis(element),
        damping=dynamics.not_negative("damping", 0.0) if dynamics is not None else 0.0,
        friction=dynamics.not_negative("friction", 0.0) if dynamics is not None else 0.0,
        mimic=_mimic(element, edge.name),
        place=place,
    )
    return _limited(joint, element)


def _accepted() -> str:
    """Return the accepted joint types for a message."""
    return ", ".join(sorted(JOINT_TYPES))


def _axis(element: XmlElement) -> tuple[float, float, float]:
    """Return the axis of a joint; URDF's default is x."""
    axis = element.child("axis")
    if axis is None:
        return 1.0, 0.0, 0.0
    xyz = axis.triple("xyz")
    if math.hypot(*xyz) < 1e-9:
        raise axis.place.error("'xyz' of <axis>: expected a direction, received zeros")
    return xyz


def _limited(joint: JointDraft, element: XmlElement) -> JointDraft:
    """Return the joint with its limits, which a revolute or prismatic joint must have."""
    limit = element.child("limit")
    if limit is None:
        if joint.type == "continuous":
            return joint
        reason = f"the {joint.type} joint '{joint.name}' needs <limit> with lower and upper"
        raise element.place.error(
            reason + ("; a joint without limits is continuous" if joint.type == "revolute" else "")
        )
    joint = replace(
        joint,
        velocity=limit.not_negative("velocity", math.inf, infinite=True),
        effort=limit.not_negative("effort", math.inf, infinite=True),
    )
    if joint.type == "continuous":
        return joint
    if limit.get("lower") is None and limit.get("upper") is None:
        raise limit.place.error(f"<limit> of the {joint.type} joint '{joint.name}' needs lower and upper")
    lower = limit.number("lower", 0.0, infinite=True)  # 0 is URDF's default for the one that is left out
    upper = limit.number("upper", 0.0, infinite=True)
    if lower > upper:
        raise limit.place.error(f"the joint '{joint.name}' has a lower limit {lower:g} above its upper limit {upper:g}")
    return replace(joint, lower=lower, upper=upper)


def _mimic(element: XmlElement, name: str) -> MimicDraft | None:
    """Return the rule of a joint that follows another."""
    mimic = element.child("mimic")
    if mimic is None:
        return None
    leader = mimic.text("joint")
    if leader == name:
        raise mimic.place.error(f"the joint '{name}' mimics itself")
    return MimicDraft(leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.place)


def _inertia(inertial: XmlElement) -> InertiaDraft | None:
    """Return the mass of a link, ``None`` when it is written as 0."""
    mass = inertial.needed("mass")
    value = mass.not_negative("value", math.nan) if mass.get("value") is not None else mass.number("value")
    matrix = inertial.needed("inertia")
    ixx, ixy, ixz = matrix.number("ixx"), matrix.number("ixy", 0.0), matrix.number("ixz", 0.0)
    iyy, iyz, izz = matrix.number("iyy"), matrix.number("iyz", 0.0), matrix.number("izz")
    if value == 0.0:
        return None
    moments = (ixx, ixy, ixz, iyy, iyz, izz)
    if not _possible(moments):
        logger.warning("%s: no solid has such an inertia; it is taken as that of a point mass", matrix.place)
        moments = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return InertiaDraft(value, matrix.place, _origin(inertial), moments)


def _possible(moments: tuple[float, float, float, float, float, float]) -> bool:
    """Whether the matrix is positive semi-definite, up to rounding."""
    ixx, ixy, ixz, iyy, iyz, izz = moments
    smallest = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])[0]
    return bool(smallest >= -1e-9 * (ixx + iyy + izz))


def _geometry(link: XmlElement, *, materials: Materials, packages: PackageResolver) -> tuple[GeometryDraft, ...]:
    """Return the shapes of a link: its visuals, joined with equal collisions, then the other collisions."""
    found = []
    for visual in link.children("visual"):
        color = _visual_color(visual, materials)
        found.append(replace(_shape(visual, packages), color=color, visual=True, collision=False))
    for collision in link.children("collision"):
        draft = replace(_shape(collision, packages), visual=False, collision=True)
        for index, visual_draft in enumerate(found):
            same = visual_draft.shape == draft.shape and visual_draft.pose == draft.pose
            if same and visual_draft.visual and not visual_draft.collision:
                found[index] = replace(visual_draft, collision=True)
                break
        else:
            found.append(draft)
    return tuple(found)


def _visual_color(visual: XmlElement, materials: Materials) -> Quadruple | None:
    """Return the colour of a visual, its own or that of the material it names."""
    material = visual.child("material")
    if material is None:
        return None
    if material.child("color") is not None or material.child("texture") is not None:
        return _color(material)
    name = material.get("name")
    if not name:
        return None
    if name not in materials:
        logger.warning("%s: the material '%s' is defined nowhere", material.place, name)
    return materials.get(name)


def _shape(purpose: XmlElement, packages: PackageResolver) -> GeometryDraft:
    """Return the shape of a ``<visual>`` or ``<collision>`` in its place."""
    geometry = purpose.needed("geometry")
    readers: dict[str, Callable[[XmlElement, PackageResolver], PrimitiveDraft | MeshDraft]]
    readers = {"box": _box, "cylinder": _round, "capsule": _round, "sphere": _sphere, "mesh": _mesh}
    found = [(tag, element) for tag in readers for element in geometry.children(tag)]
    if len(found) != 1:
        inside = [str(child.tag) for child in geometry.element if isinstance(child.tag, str)]
        received = f"received <{'>, <'.join(inside)}>" if inside else "it is empty"
        hint = did_you_mean(inside[0], readers) if inside and not found else ""
        raise geometry.place.error(f"<geometry>: expected one of {', '.join(sorted(readers))}, {received}{hint}")
    tag, element = found[0]
    return GeometryDraft(readers[tag](element, packages), element.place, _origin(purpose))


def _box(element: XmlElement, packages: PackageResolver) -> PrimitiveDraft:
    """Return a box."""
    del packages
    size = element.triple("size")
    if min(size) <= 0.0:
        raise element.place.error(f"'size' of <box>: expected numbers above 0, received '{element.get('size')}'")
    return PrimitiveDraft("box", size)


def _sphere(element: XmlElement, packages: PackageResolver) -> PrimitiveDraft:
    """Return a sphere."""
    del packages
    return PrimitiveDraft("sphere", (element.positive("radius"),))


def _round(element: XmlElement, packages: PackageResolver) -> PrimitiveDraft:
    """Return a cylinder or a capsule, centred as in URDF."""
    del packages
    return PrimitiveDraft(element.tag, (element.positive("radius"), element.positive("length")))


def _mesh(element: XmlElement, packages: PackageResolver) -> MeshDraft:
    """Return a mesh."""
    path = packages.resolve_mesh(element.text("filename"), folder=element.path.parent, place=element.place)
    factors = element.numbers("scale", (1, 3)) if element.get("scale") is not None else (1.0,)
    if 0.0 in factors:
        raise element.place.error(
            f"'scale' of <mesh>: expected factors other than 0, received '{element.get('scale')}'"
        )
    x, y, z = factors * 3 if len(factors) == 1 else factors
    return MeshDraft(path.resolve(), (x, y, z))


def _adjacent(frames: list[FrameDraft]) -> tuple[AllowedDraft, ...]:
    """Return the pairs of links that joints join, looking upwards through links without a collision shape."""
    by_name = {frame.name: frame for frame in frames}
    solid = {frame.name for frame in frames if any(shape.collision for shape in frame.geometry)}
    pairs = []
    for frame in frames:
        above = by_name.get(frame.parent or "")
        while above is not None and above.name not in solid:
            above = by_name.get(above.parent or "")
        if frame.name in solid and above is not None:
            pairs.append(AllowedDraft(above.name, frame.name, "adjacent", frame.parent_place or frame.place))
    return tuple(pairs)
