"""Reader of URDF robot descriptions.

A link becomes a frame of the same name on a body of the same name, and a joint the edge between two
such frames. The root link is a fixed child of ``world``, unless its own name is ``world``. Joints
keep the order of the file. A ``floating`` joint is a free edge, whose pose is scene data.

A joint ``J`` with several degrees of freedom becomes a chain of joints with one each, and frames of
the same names between them:

* ``planar``: ``J/x`` and ``J/y`` are prismatic joints in the plane, and ``J/theta`` is a revolute
  joint about the normal ``<axis>``. For the normal z, the directions are x and y of the joint's
  origin. For other normals, these are rotated by the shortest rotation from z to the normal. The
  default normal is z, as files mean it, although the specification defaults to x.
* ``spherical``, an extension of Bullet: revolute joints ``J/x``, ``J/y``, ``J/z`` about these axes.

A link of mass 0 has no inertia. An ``<inertial>`` without a mass is omitted, and one without an
inertia matrix is a point mass, both with a note. Links that a joint connects may touch (reason
``adjacent``). Links without collision shapes between two others are skipped in this search.

Elements of other programs are ignored. Minor errors are corrected, each with a note
(:mod:`tmkit._support.source_location`):

* an inertia that no solid has becomes that of a point mass;
* an omitted limit of a revolute or prismatic joint is 0, as in the specification;
* a joint that mimics an unknown joint moves independently.

Every other error is rejected with file and line, such as a lower limit above the upper limit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tmkit._support.source_location import Note, did_you_mean, ignore_note
from tmkit._support.xml import XmlElement, read_xml
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import InertiaSpec, JointSpec, MimicSpec, PoseSpec, Triple
from tmkit.formats.urdf.shapes import (
    MIN_COS_SHORT_ROTATION,
    Materials,
    geometry_of,
    materials_of,
    origin_of,
)

SINGLE_TYPES = ("continuous", "prismatic", "revolute")
"""Joint types with one degree of freedom, whose names are the same in URDF and in scenes."""

OTHER_TYPES = ("fixed", "floating", "planar", "spherical")
"""Joint types with no or with several degrees of freedom."""

UNIT_AXES: Mapping[str, Triple] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
"""Unit vector by letter of the axis."""

Moments = tuple[float, float, float, float, float, float]
"""Inertia matrix as ixx, ixy, ixz, iyy, iyz, izz [kg m^2]."""

_POINT_MASS: Moments = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Inertia matrix of a point mass."""

MIN_AXIS_LENGTH = 1e-9
"""Length below which an axis has no direction."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """A joint element and the names of its links."""

    element: XmlElement
    name: str
    parent: str
    child: str


def read_urdf(
    path: Path, *, packages: PackageResolver, note: Note = ignore_note, data: bytes | None = None
) -> SceneSpecification:
    """Read a robot description.

    Args:
        path: the file.
        packages: resolver of mesh URIs, with the limits of the load.
        note: receiver of import notes.
        data: content of the file. Defaults to the content on disk.

    Raises:
        FileFormatError: if the description is invalid.
    """
    robot = read_xml(path, root="robot", note=note, data=data)
    robot.reject_xacro("URDF")
    links = _elements_by_name(robot, "link")
    packages.limits.check_frame_count(len(links), robot.place.error)
    if not links:
        has_macros = any("xacro" in uri for uri in robot.element.nsmap.values())
        hint = "; was the right xacro file expanded?" if has_macros else ""
        raise robot.place.error(f"the robot has no link{hint}")
    edges = _edges(robot, links)
    root = _root(links, edges)
    materials = materials_of(robot)
    leaders = [edge.name for edge in edges if _joint_type(edge.element) in SINGLE_TYPES]
    frames = [_frame(links[root], materials=materials, packages=packages)]
    for edge in edges:
        frame = _frame(links[edge.child], materials=materials, packages=packages)
        frames += _frames_on_joint(frame, edge, leaders=leaders)
    joints = {frame.joint.name: frame.joint for frame in frames}
    frames = [
        replace(frame, joint=_correct_mimic_sign(frame.joint, joints, note=note))
        for frame in frames
    ]
    return SceneSpecification(tuple(frames), adjacent_pairs(frames))


def _elements_by_name(robot: XmlElement, tag: str) -> dict[str, XmlElement]:
    """Return the links or joints by name.

    Raises:
        FileFormatError: if two elements have the same name.
    """
    elements: dict[str, XmlElement] = {}
    for element in robot.children(tag):
        name = element.text("name")
        if name in elements:
            raise element.place.error(
                f"the {tag} '{name}' is already declared at {elements[name].place}"
            )
        elements[name] = element
    return elements


def _edges(robot: XmlElement, links: Mapping[str, XmlElement]) -> list[_Edge]:
    """Return the joints with the links they connect.

    Raises:
        FileFormatError: if a joint names an unknown link, its parent is its child, its child is
            ``world``, or two joints have the same child.
    """
    edges: dict[str, _Edge] = {}
    for name, element in _elements_by_name(robot, "joint").items():
        parent, child = (_end_link(element, tag, links) for tag in ("parent", "child"))
        edge = _Edge(element, name, parent, child)
        if parent == child:
            reason = f"the links form a cycle, each the child of the next: {child} -> {child}"
            raise element.place.error(
                f"{reason}; the joint '{name}' has '{child}' as its parent and its child"
            )
        if child == "world":
            reason = f"the joint '{name}' has the child link 'world'"
            raise element.place.error(
                f"{reason}, which is the root of every scene; rename the link"
            )
        if child in edges:
            first = edges[child]
            reason = f"the link '{child}' is already the child of the joint '{first.name}'"
            raise element.place.error(f"{reason} at {first.element.place}")
        edges[child] = edge
    return list(edges.values())


def _end_link(joint: XmlElement, tag: str, links: Mapping[str, XmlElement]) -> str:
    """Return the link in the ``<parent>`` or ``<child>`` of a joint."""
    end = joint.required_child(tag)
    link = end.text("link")
    if link not in links:
        reason = f"the joint '{joint.text('name')}' names the unknown link '{link}'"
        raise end.place.error(f"{reason}{did_you_mean(link, links)}")
    return link


def _root(links: Mapping[str, XmlElement], edges: list[_Edge]) -> str:
    """Return the root link, the only link that is not a child of a joint.

    Raises:
        FileFormatError: if the links form a cycle or have several roots.
    """
    edge_above = {edge.child: edge for edge in edges}
    roots = [name for name in links if name not in edge_above]
    reached = set(roots)
    for name in links:
        path, link = {name: None}, name  # an ordered set
        while link not in reached:
            edge = edge_above[link]
            link = edge.parent
            if link in path:
                links_of_path = [*path]
                cycle = " -> ".join([*links_of_path[links_of_path.index(link) :], link])
                raise edge.element.place.error(
                    f"the links form a cycle, each the child of the next: {cycle}"
                )
            path[link] = None
        reached.update(path)
    if len(roots) > 1:
        names = ", ".join(f"'{name}'" for name in roots[:6]) + (", ..." if len(roots) > 6 else "")
        reason = f"the robot has {len(roots)} root links ({names})"
        raise links[roots[1]].place.error(
            f"{reason}, expected one that is the ancestor of all others"
        )
    return roots[0]


def _frame(link: XmlElement, *, materials: Materials, packages: PackageResolver) -> FrameSpec:
    """Return the frame of a link, as a child of ``world``."""
    name = link.text("name")
    inertial = link.child("inertial")
    return FrameSpec(
        name,
        None if name == "world" else "world",
        link.place,
        geometry=geometry_of(link, materials=materials, packages=packages),
        inertia=inertia_of(inertial) if inertial is not None else None,
    )


def _frames_on_joint(frame: FrameSpec, edge: _Edge, *, leaders: Collection[str]) -> list[FrameSpec]:
    """Return the intermediate frames of a joint, and the frame of the link below it.

    Args:
        frame: frame of the link.
        edge: joint above the link.
        leaders: names of the joints that others may mimic.
    """
    frames = []
    parent, pose, place = edge.parent, origin_of(edge.element), edge.element.place
    for step in _joint_steps(edge.element, leaders=leaders):
        link_frame = replace(frame, aliases=(edge.name,))
        child = FrameSpec(step.frame, None, place) if step.frame else link_frame
        frames.append(
            replace(child, parent=parent, pose=pose, joint=step.joint, parent_place=place)
        )
        parent, pose = step.frame, PoseSpec()
    return frames


def inertia_of(inertial: XmlElement) -> InertiaSpec | None:
    """Return the mass properties of a link, or None if the mass is missing or 0."""
    mass = inertial.optional_child("mass")
    if mass is None or mass.get("value") is None:
        (mass or inertial).note("<inertial> gives no mass; the link has none")
        return None
    value = mass.not_negative("value", math.nan)
    matrix = inertial.optional_child("inertia")
    missing = [name for name in ("ixx", "iyy", "izz") if matrix is None or matrix.get(name) is None]
    moments = _POINT_MASS if matrix is None or missing else _moments(matrix)
    if value == 0.0:
        return None
    if missing:
        (matrix or inertial).note(
            f"the inertia has no {missing[0]}; it is taken as that of a point mass"
        )
    return InertiaSpec(value, (matrix or inertial).place, origin_of(inertial), moments)


def _moments(matrix: XmlElement) -> Moments:
    """Return the six numbers of an inertia matrix. Omitted products of inertia are 0."""
    ixx, ixy, ixz = matrix.number("ixx"), matrix.number("ixy", 0.0), matrix.number("ixz", 0.0)
    return ixx, ixy, ixz, matrix.number("iyy"), matrix.number("iyz", 0.0), matrix.number("izz")


def adjacent_pairs(frames: list[FrameSpec]) -> tuple[AllowedPairSpec, ...]:
    """Return each collision link with the nearest collision link above it.

    Links without collision shapes are skipped. The search ends at parents that form a cycle, which
    the scene builder rejects.
    """
    frame_by_name = {frame.name: frame for frame in frames}
    solid = {frame.name for frame in frames if any(shape.collision for shape in frame.geometry)}
    nearest_solid: dict[str, str | None] = {}
    pairs = []
    for frame in frames:
        path, last = {frame.name}, frame
        while last.name not in nearest_solid:
            parent = frame_by_name.get(last.parent or "")
            if parent is None or parent.name in solid or parent.name in path:
                nearest_solid[last.name] = parent.name if parent is not None else None
            else:
                last = parent
                path.add(last.name)
        nearest = nearest_solid[last.name]
        nearest_solid.update(dict.fromkeys(path, nearest))
        if frame.name in solid and nearest is not None:
            place = frame.parent_place or frame.place
            pairs.append(AllowedPairSpec(nearest, frame.name, "adjacent", place))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class _JointStep:
    """A joint with at most one degree of freedom, as part of a joint of the file.

    Attributes:
        joint: the joint.
        frame: name of the intermediate frame below it, or "" if the child link is below it.
    """

    joint: JointSpec
    frame: str = ""


def _joint_type(element: XmlElement) -> str:
    """Return the type of a joint element.

    Raises:
        FileFormatError: if the type is unknown.
    """
    joint_type = element.text("type")
    known_types = (*SINGLE_TYPES, *OTHER_TYPES)
    if joint_type not in known_types:
        reason = f"the joint '{element.text('name')}' has the unknown type '{joint_type}'"
        hint = did_you_mean(joint_type, known_types)
        raise element.place.error(f"{reason}{hint} (known: {', '.join(sorted(known_types))})")
    return joint_type


def _joint_steps(element: XmlElement, *, leaders: Collection[str]) -> tuple[_JointStep, ...]:
    """Return the joints that represent a joint element, from the parent link to the child link."""
    joint_type = _joint_type(element)
    if joint_type == "fixed":
        return (_JointStep(JointSpec(place=element.place)),)
    if joint_type == "floating":
        return (_JointStep(JointSpec(type="free", place=element.place)),)
    if joint_type == "planar":
        return _planar_steps(element)
    if joint_type == "spherical":
        return _spherical_steps(element)
    joint = JointSpec(type=joint_type, name=element.text("name"), place=element.place)
    joint = _add_dynamics(joint, element)
    joint = replace(joint, axis=_axis(element), mimic=_mimic(element, leaders))
    return (_JointStep(_add_position_limits(joint, element)),)


def _planar_steps(element: XmlElement) -> tuple[_JointStep, ...]:
    """Return two prismatic joints in the plane and a revolute joint about its normal."""
    normal = _axis(element, otherwise=UNIT_AXES["z"])
    name = element.text("name")
    if element.child("axis") is None:
        element.note(f"the planar joint '{name}' has no <axis>; its plane defaults to x and y")
    along_x, along_y = _plane_directions(normal)
    slide = _common_properties(element, "prismatic")
    return (
        _JointStep(replace(slide, name=f"{name}/x", axis=along_x), f"{name}/x"),
        _JointStep(replace(slide, name=f"{name}/y", axis=along_y), f"{name}/y"),
        _JointStep(replace(slide, name=f"{name}/theta", type="continuous", axis=normal)),
    )


def _spherical_steps(element: XmlElement) -> tuple[_JointStep, ...]:
    """Return three revolute joints, about x, y and z."""
    name = element.text("name")
    element.note(
        f"the joint '{name}' is spherical, which URDF does not have; it becomes three joints about"
        " x, y and z"
    )
    turn = _common_properties(element, "continuous")
    return (
        _JointStep(replace(turn, name=f"{name}/x", axis=UNIT_AXES["x"]), f"{name}/x"),
        _JointStep(replace(turn, name=f"{name}/y", axis=UNIT_AXES["y"]), f"{name}/y"),
        _JointStep(replace(turn, name=f"{name}/z", axis=UNIT_AXES["z"])),
    )


def _common_properties(element: XmlElement, joint_type: str) -> JointSpec:
    """Return the common properties of the joints that represent one joint element.

    Position limits and mimic are ignored with a note, since they are undefined for such a joint.
    """
    limit, mimic = element.child("limit"), element.child("mimic")
    which = f"of the {element.text('type')} joint '{element.text('name')}' is ignored"
    if limit is not None and (limit.get("lower") is not None or limit.get("upper") is not None):
        limit.note(f"<limit> {which}")
    if mimic is not None:
        mimic.note(f"<mimic> {which}")
    return _add_dynamics(JointSpec(type=joint_type, place=element.place), element)


def _plane_directions(normal: Triple) -> tuple[Triple, Triple]:
    """Return x and y after the shortest rotation from z to the normal.

    For the normal -z this is a rotation about x.
    """
    length = math.hypot(*normal)
    a, b, c = (part / length for part in normal)
    if c <= MIN_COS_SHORT_ROTATION:
        return (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    k = 1.0 / (1.0 + c)
    return (1.0 - k * a * a, -k * a * b, -a), (-k * a * b, 1.0 - k * b * b, -b)


def _add_dynamics(joint: JointSpec, element: XmlElement) -> JointSpec:
    """Return the joint with damping, friction, and the limits of velocity and effort."""
    dynamics, limit = element.child("dynamics"), element.child("limit")
    if dynamics is not None:
        damping = dynamics.not_negative("damping", 0.0)
        friction = dynamics.not_negative("friction", 0.0)
        joint = replace(joint, damping=damping, friction=friction)
    if limit is not None:
        velocity = limit.not_negative("velocity", math.inf, infinite=True)
        effort = limit.not_negative("effort", math.inf, infinite=True)
        joint = replace(joint, velocity=velocity, effort=effort)
    return joint


def _axis(element: XmlElement, *, otherwise: Triple = UNIT_AXES["x"]) -> Triple:
    """Return the axis of a joint, which is x by default."""
    axis = element.child("axis")
    if axis is None:
        return otherwise
    xyz = axis.triple("xyz")
    if math.hypot(*xyz) < MIN_AXIS_LENGTH:
        raise axis.place.error("'xyz' of <axis>: expected a direction, received zeros")
    return xyz


def _add_position_limits(joint: JointSpec, element: XmlElement) -> JointSpec:
    """Return the joint with its position limits. An omitted limit is 0, with a note."""
    if joint.type == "continuous":
        return joint
    which = f"the {joint.type} joint '{joint.name}'"
    limit = element.child("limit") or element
    missing = [name for name in ("lower", "upper") if limit.get(name) is None]
    if len(missing) == 2:
        limit.note(f"{which} has no limits; both are 0, the default of URDF, and it cannot move")
    elif missing:
        limit.note(f"{which} has no {missing[0]} limit; it is 0, the default of URDF")
    lower = limit.number("lower", 0.0, infinite=True)
    upper = limit.number("upper", 0.0, infinite=True)
    if lower > upper:
        raise limit.place.error(inverted_limits_reason(which, lower, upper))
    return replace(joint, lower=lower, upper=upper)


def inverted_limits_reason(joint: str, lower: float, upper: float) -> str:
    """Return the reason to reject a joint, with its limits in the units of the file."""
    limits = f"a lower limit {lower:g} above its upper limit {upper:g}"
    return f"{joint} has {limits}; expected lower <= upper"


def _mimic(element: XmlElement, leaders: Collection[str]) -> MimicSpec | None:
    """Return the mimic rule of a joint, or None with a note if it has no other leader."""
    mimic = element.child("mimic")
    if mimic is None:
        return None
    name, leader = element.text("name"), mimic.text("joint")
    if leader == name:
        mimic.note(f"the joint '{name}' mimics itself; it moves independently")
        return None
    if leader not in leaders:
        reason = f"the joint to mimic, '{leader}', is not a joint that moves"
        hint = did_you_mean(leader, leaders)
        mimic.note(f"{reason}{hint}; '{name}' moves independently")
        return None
    return MimicSpec(
        leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.place
    )


def _correct_mimic_sign(
    joint: JointSpec, joints: Mapping[str, JointSpec], *, note: Note
) -> JointSpec:
    """Return the joint with its limits negated if they have the sign of the leader's values.

    Some files, such as the PR2's gripper, have this error. With a negative multiplier, limits of 0
    and 0.5 for both joints would only allow the value 0.
    """
    mimic = joint.mimic
    leader = None if mimic is None else joints.get(mimic.joint)
    if mimic is None or leader is None or mimic.multiplier >= 0.0 or mimic.offset != 0.0:
        return joint
    lower, upper = mimic.multiplier * leader.upper, mimic.multiplier * leader.lower
    has_sign_of_leader = -joint.upper <= lower < upper <= -joint.lower
    if not has_sign_of_leader or max(lower, joint.lower) < min(upper, joint.upper):
        return joint
    rule = f"mimics '{leader.name}' with multiplier {mimic.multiplier:g}"
    limits = f"its limits, {joint.lower:g} to {joint.upper:g}, have the other sign"
    note(mimic.place, f"the joint '{joint.name}' {rule}, but {limits}; their sign is changed")
    return replace(joint, lower=-joint.upper, upper=-joint.lower)
