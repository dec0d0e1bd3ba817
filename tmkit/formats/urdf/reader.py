"""Robot descriptions in URDF, and files of macros (xacro) that expand to it.

A link becomes a frame of the same name on a body of the same name; a joint becomes the edge between
two such frames. The one root link is a child of ``world`` without moving, unless it is called
``world`` itself. Joints are in the order of the file. ``floating`` is a free edge, whose pose is
scene data. A joint of several degrees of freedom is a chain of joints of one, with frames between
them, all named after it:

* ``planar`` ``J``, with the normal ``axis``: ``J/x`` and ``J/y`` slide in the plane, ``J/theta``
  turns about the normal. For the normal z, the directions are the x and y of the joint's origin;
  for another one they are those turned the short way that takes z to the normal. Without ``<axis>``
  the normal is z, as everybody means it, although the letter of the format has x.
* ``spherical`` ``J``, an extension of Bullet: ``J/x``, ``J/y`` and ``J/z`` turn about those axes,
  in this order.

A link of mass 0 has no inertia at all. An ``<inertial>`` without a mass is omitted, one without an
inertia matrix is a point mass, both with a note. Links that a joint joins may touch (reason
``adjacent``), looking upwards through links that have no collision shape.

What other programs read out of a URDF is left alone. Slips whose meaning is plain are mended, each
with a note (:mod:`tmkit._support.source_location`): an inertia that no solid has becomes that of a
point mass. A limit of a revolute or prismatic joint that is omitted is 0, as the format has it. A
joint that mimics one that is not there moves by itself. Everything else that is wrong is refused
with file and line, as a lower limit above the upper one.

Files of macros are expanded by xacrodoc (extra ``formats``), only those that the user names, and
only if that is allowed. Expressions of xacro are Python, and its includes read any file, so
expanding a file runs it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tmkit._support.extras import importing
from tmkit._support.source_location import Note, did_you_mean, unheard
from tmkit._support.xml import XmlElement, read_xml
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import InertiaSpec, JointSpec, MimicSpec, PoseSpec, Triple
from tmkit.formats.urdf.shapes import Materials, geometry_of, materials_of, origin_of

# The joint types of one degree of freedom, which are called the same here and there.
SINGLE_TYPES = ("continuous", "prismatic", "revolute")
# The types that move otherwise, or not at all.
OTHER_TYPES = ("fixed", "floating", "planar", "spherical")

ORTHOGONAL: Mapping[str, Triple] = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
}

Moments = tuple[float, float, float, float, float, float]
_POINT: Moments = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Edge:
    """A joint element with the links it names."""

    element: XmlElement
    name: str
    parent: str
    child: str


def read_urdf(
    path: Path, *, packages: PackageResolver, note: Note = unheard, data: bytes | None = None
) -> SceneSpecification:
    """Read a robot description; ``data`` is its content, if that is not on the disk."""
    robot = read_xml(path, root="robot", note=note, data=data)
    robot.refuse_xacro("URDF")
    links = _named(robot, "link")
    packages.limits.refuse_frames(len(links), robot.place.error)
    if not links:
        xacro = any("xacro" in uri for uri in robot.element.nsmap.values())
        raise robot.place.error(
            "the robot has no link" + ("; was the right xacro file expanded?" if xacro else "")
        )
    edges = _edges(robot, links)
    root = _root(links, edges)
    materials = materials_of(robot)
    leaders = [edge.name for edge in edges if _type_of(edge.element) in SINGLE_TYPES]
    frames = [_frame(links[root], materials=materials, packages=packages)]
    for edge in edges:
        frame = _frame(links[edge.child], materials=materials, packages=packages)
        frames += _hung(frame, edge, leaders=leaders)
    by_name = {frame.joint.name: frame.joint for frame in frames}
    frames = [
        replace(frame, joint=_with_sign_of_mimic(frame.joint, by_name, note=note))
        for frame in frames
    ]
    return SceneSpecification(tuple(frames), adjacent_pairs(frames))


def _named(robot: XmlElement, tag: str) -> dict[str, XmlElement]:
    """Return the links or joints by name, each name once."""
    found: dict[str, XmlElement] = {}
    for element in robot.children(tag):
        name = element.text("name")
        if name in found:
            raise element.place.error(
                f"the {tag} '{name}' is already declared at {found[name].place}"
            )
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
                raise end.place.error(
                    f"the joint '{name}' names the unknown link '{link}'{did_you_mean(link, links)}"
                )
            ends.append(link)
        edge = _Edge(element, name, ends[0], ends[1])
        if edge.parent == edge.child:
            around = (
                f"the links form a cycle, each the child of the next: {edge.child} -> {edge.child}"
            )
            raise element.place.error(
                f"{around}; the joint '{name}' has '{edge.child}' as its parent and its child"
            )
        if edge.child == "world":
            reason = (
                f"the joint '{name}' has the child link 'world', which is the root of every scene;"
                " rename the link"
            )
            raise element.place.error(reason)
        if edge.child in above:
            other = above[edge.child]
            reason = (
                f"the link '{edge.child}' is already the child of the joint '{other.name}' at"
                f" {other.element.place}"
            )
            raise element.place.error(reason)
        above[edge.child] = edge
        edges.append(edge)
    return edges


def _root(links: Mapping[str, XmlElement], edges: list[_Edge]) -> str:
    """Return the link that no joint moves, the only one."""
    above = {edge.child: edge for edge in edges}
    roots = [name for name in links if name not in above]
    reached = set(roots)
    for name in links:
        path, last = {name: None}, name  # a dictionary, since it is a set in order
        while last not in reached:
            edge = above[last]
            last = edge.parent
            if last in path:
                passed = [*path]
                around = " -> ".join([*passed[passed.index(last) :], last])
                raise edge.element.place.error(
                    f"the links form a cycle, each the child of the next: {around}"
                )
            path[last] = None
        reached.update(path)
    if len(roots) > 1:
        names = ", ".join(f"'{name}'" for name in roots[:6]) + (", ..." if len(roots) > 6 else "")
        reason = (
            f"the robot has {len(roots)} root links ({names}), expected one that is the ancestor of"
            " all others"
        )
        raise links[roots[1]].place.error(reason)
    return roots[0]


def _frame(link: XmlElement, *, materials: Materials, packages: PackageResolver) -> FrameSpec:
    """Return the frame of a link, on the world as long as no joint puts it elsewhere."""
    name = link.text("name")
    inertial = link.child("inertial")
    return FrameSpec(
        name,
        None if name == "world" else "world",
        link.place,
        geometry=geometry_of(link, materials=materials, packages=packages),
        inertia=inertia_of(inertial) if inertial is not None else None,
    )


def _hung(frame: FrameSpec, edge: _Edge, *, leaders: Collection[str]) -> list[FrameSpec]:
    """Return the frame of a link on the joint above it, after the frames between that the joint needs."""
    frames = []
    parent, pose, place = edge.parent, origin_of(edge.element), edge.element.place
    for step in _joint_steps(edge.element, leaders=leaders):
        moved = (
            FrameSpec(step.frame, None, place)
            if step.frame
            else replace(frame, aliases=(edge.name,))
        )
        frames.append(
            replace(moved, parent=parent, pose=pose, joint=step.joint, parent_place=place)
        )
        parent, pose = step.frame, PoseSpec()
    return frames


def inertia_of(inertial: XmlElement) -> InertiaSpec | None:
    """Return the mass of a link, ``None`` when there is none or it is written as 0."""
    mass = inertial.wanted("mass")
    if mass is None or mass.get("value") is None:
        (mass or inertial).note("<inertial> gives no mass; the link has none")
        return None
    value = mass.not_negative("value", math.nan)
    matrix = inertial.wanted("inertia")
    missing = [name for name in ("ixx", "iyy", "izz") if matrix is None or matrix.get(name) is None]
    moments = _POINT if matrix is None or missing else _moments(matrix)
    if value == 0.0:
        return None
    if missing:
        (matrix or inertial).note(
            f"the inertia has no {missing[0]}; it is taken as that of a point mass"
        )
    return InertiaSpec(value, (matrix or inertial).place, origin_of(inertial), moments)


def _moments(matrix: XmlElement) -> Moments:
    """Return the six numbers of an inertia matrix; those off its diagonal may be omitted."""
    ixx, ixy, ixz = matrix.number("ixx"), matrix.number("ixy", 0.0), matrix.number("ixz", 0.0)
    return ixx, ixy, ixz, matrix.number("iyy"), matrix.number("iyz", 0.0), matrix.number("izz")


def adjacent_pairs(frames: list[FrameSpec]) -> tuple[AllowedPairSpec, ...]:
    """Return the pairs of links that joints join, looking upwards through links without a collision shape.

    Parents that form a cycle, which is rejected when the scene is built, end the search.
    """
    by_name = {frame.name: frame for frame in frames}
    solid = {frame.name for frame in frames if any(shape.collision for shape in frame.geometry)}
    # the nearest solid link above, of the frames that have been asked for
    nearest: dict[str, str | None] = {}
    pairs = []
    for frame in frames:
        path, last = {frame.name}, frame
        while last.name not in nearest:
            above = by_name.get(last.parent or "")
            if above is None or above.name in solid or above.name in path:
                nearest[last.name] = above.name if above is not None else None
            else:
                last = above
                path.add(last.name)
        found = nearest[last.name]
        nearest.update((passed, found) for passed in path)
        if frame.name in solid and found is not None:
            pairs.append(
                AllowedPairSpec(found, frame.name, "adjacent", frame.parent_place or frame.place)
            )
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class _JointStep:
    """One joint of the chain that stands for a joint of the file, and the frame it moves: empty for the child link."""

    joint: JointSpec
    frame: str = ""


def _type_of(element: XmlElement) -> str:
    written = element.text("type")
    known = (*SINGLE_TYPES, *OTHER_TYPES)
    if written not in known:
        name = element.text("name")
        reason = (
            f"the joint '{name}' has the unknown type '{written}'{did_you_mean(written, known)}"
        )
        raise element.place.error(f"{reason} (known: {', '.join(sorted(known))})")
    return written


def _joint_steps(element: XmlElement, *, leaders: Collection[str]) -> tuple[_JointStep, ...]:
    """Return the joints that stand for a joint element, from the parent link down; often one."""
    written = _type_of(element)
    if written == "fixed":
        return (_JointStep(JointSpec(place=element.place)),)
    if written == "floating":
        return (_JointStep(JointSpec(type="free", place=element.place)),)
    if written == "planar":
        return _planar(element)
    if written == "spherical":
        return _spherical(element)
    joint = replace(
        _with_dynamics(
            JointSpec(type=written, name=element.text("name"), place=element.place), element
        ),
        axis=_axis(element),
        mimic=_mimic(element, leaders),
    )
    return (_JointStep(_limited(joint, element)),)


def _planar(element: XmlElement) -> tuple[_JointStep, ...]:
    """Return two slides in the plane and a turn about its normal."""
    normal = _axis(element, otherwise=(0.0, 0.0, 1.0))
    if element.child("axis") is None:
        element.note(
            f"the planar joint '{element.text('name')}' has no <axis>; its plane is taken as that"
            " of x and y"
        )
    along_x, along_y = _directions(normal)
    slide = _several(element, "prismatic")
    name = element.text("name")
    return (
        _JointStep(replace(slide, name=f"{name}/x", axis=along_x), f"{name}/x"),
        _JointStep(replace(slide, name=f"{name}/y", axis=along_y), f"{name}/y"),
        _JointStep(replace(slide, name=f"{name}/theta", type="continuous", axis=normal)),
    )


def _spherical(element: XmlElement) -> tuple[_JointStep, ...]:
    """Return three turns, about x, y and z."""
    name = element.text("name")
    element.note(
        f"the joint '{name}' is spherical, which is no URDF; it becomes three joints about x, y"
        " and z"
    )
    turn = _several(element, "continuous")
    return (
        _JointStep(replace(turn, name=f"{name}/x", axis=ORTHOGONAL["x"]), f"{name}/x"),
        _JointStep(replace(turn, name=f"{name}/y", axis=ORTHOGONAL["y"]), f"{name}/y"),
        _JointStep(replace(turn, name=f"{name}/z", axis=ORTHOGONAL["z"])),
    )


def _several(element: XmlElement, kind: str) -> JointSpec:
    """Return what the joints of one chain have in common; limits of position and a mimic say nothing about them."""
    for tag in ("limit", "mimic"):
        child = element.child(tag)
        if child is not None and (
            tag == "mimic" or child.get("lower") is not None or child.get("upper") is not None
        ):
            child.note(
                f"<{tag}> of the {element.text('type')} joint '{element.text('name')}' is ignored"
            )
    return _with_dynamics(JointSpec(type=kind, place=element.place), element)


def _directions(normal: Triple) -> tuple[Triple, Triple]:
    """Return x and y after the short turn that takes z to the normal; half a turn about x for -z."""
    length = math.hypot(*normal)
    a, b, c = (part / length for part in normal)
    if c <= -1.0 + 1e-12:
        return (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    k = 1.0 / (1.0 + c)
    return (1.0 - k * a * a, -k * a * b, -a), (-k * a * b, 1.0 - k * b * b, -b)


def _with_dynamics(joint: JointSpec, element: XmlElement) -> JointSpec:
    """Return the joint with damping, friction, and the limits of velocity and effort."""
    dynamics, limit = element.child("dynamics"), element.child("limit")
    if dynamics is not None:
        damping, friction = (
            dynamics.not_negative("damping", 0.0),
            dynamics.not_negative("friction", 0.0),
        )
        joint = replace(joint, damping=damping, friction=friction)
    if limit is not None:
        velocity = limit.not_negative("velocity", math.inf, infinite=True)
        joint = replace(
            joint, velocity=velocity, effort=limit.not_negative("effort", math.inf, infinite=True)
        )
    return joint


def _axis(element: XmlElement, *, otherwise: Triple = (1.0, 0.0, 0.0)) -> Triple:
    """Return the axis of a joint; URDF's default is x."""
    axis = element.child("axis")
    if axis is None:
        return otherwise
    xyz = axis.triple("xyz")
    if math.hypot(*xyz) < 1e-9:
        raise axis.place.error("'xyz' of <axis>: expected a direction, received zeros")
    return xyz


def _limited(joint: JointSpec, element: XmlElement) -> JointSpec:
    """Return the joint with its limits of position; each one omitted is 0, with a note."""
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
        raise limit.place.error(inverted_limits(which, lower, upper))
    return replace(joint, lower=lower, upper=upper)


def inverted_limits(joint: str, lower: float, upper: float) -> str:
    """Return the reason to reject a joint; limits are in radians or metres, or as the file has them."""
    return (
        f"{joint} has a lower limit {lower:g} above its upper limit {upper:g}; expected lower <="
        " upper"
    )


def _mimic(element: XmlElement, leaders: Collection[str]) -> MimicSpec | None:
    mimic = element.child("mimic")
    if mimic is None:
        return None
    name, leader = element.text("name"), mimic.text("joint")
    if leader == name:
        mimic.note(f"the joint '{name}' mimics itself; it moves by itself")
        return None
    if leader not in leaders:
        hint = did_you_mean(leader, leaders)
        mimic.note(
            f"the joint to mimic, '{leader}', is not a joint that moves{hint}; '{name}' moves by"
            " itself"
        )
        return None
    return MimicSpec(
        leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.place
    )


def _with_sign_of_mimic(
    joint: JointSpec, joints: Mapping[str, JointSpec], *, note: Note
) -> JointSpec:
    """Return a joint whose limits have the sign of its leader with that of its own values, as a gripper of the PR2.

    With a negative multiplier, limits of 0 to 0.5 for both joints would leave them the value 0
    only.
    """
    mimic, leader = joint.mimic, joints.get(joint.mimic.joint if joint.mimic is not None else "")
    if mimic is None or leader is None or mimic.multiplier >= 0.0 or mimic.offset != 0.0:
        return joint
    lower, upper = mimic.multiplier * leader.upper, mimic.multiplier * leader.lower
    has_sign_of_leader = -joint.upper <= lower < upper <= -joint.lower
    if not has_sign_of_leader or max(lower, joint.lower) < min(upper, joint.upper):
        return joint
    reason = (
        f"the joint '{joint.name}' mimics '{leader.name}' with multiplier {mimic.multiplier:g}, but"
        " its limits"
    )
    note(
        mimic.place,
        f"{reason}, {joint.lower:g} to {joint.upper:g}, have the other sign; their sign is changed",
    )
    return replace(joint, lower=-joint.upper, upper=-joint.lower)


def expanded(path: Path, arguments: Mapping[str, str], packages: PackageResolver) -> bytes:
    """Return the URDF that a file expands to with values of ``<xacro:arg>``; packages are found as in scene files."""
    with importing("xacrodoc", "formats", f"{path}: expanding xacro needs"):
        from xacrodoc import XacroDoc, packages as found

    found.reset()
    found.update_package_cache(packages.named)
    found.look_in([str(folder) for folder in (*packages.folders, *packages.ros_folders)])
    try:
        text: str = XacroDoc.from_file(
            path, subargs=dict(arguments), resolve_packages=False
        ).dom.toprettyxml(indent="  ")
    except Exception as error:  # whatever an expression raises
        raise FileFormatError.at(
            path, f"xacro refuses the file: {type(error).__name__}: {error}"
        ) from error
    finally:
        found.reset()
    return text.encode()
