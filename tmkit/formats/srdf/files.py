"""Reader and writer of SRDF files. A value that is written reads back equal.

The reader supports ``<group>`` (of joints, links, chains and groups), ``<group_state>``,
``<end_effector>``, ``<virtual_joint>``, ``<passive_joint>``, ``<disable_collisions>``,
``<disable_default_collisions>`` and ``<enable_collisions>``. It omits elements of other programs
with a note, such as grippers of HPP, rotors of pinocchio, feet of humanoids and sphere
approximations. It also omits unknown elements, with the nearest known name in the note.

A missing attribute, an invalid number and two groups of one name are rejected with file and line.
Names of links and joints are not resolved here; see :mod:`tmkit.formats.srdf.values`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit._support.data import resolve_name
from tmkit._support.output import write_text
from tmkit._support.source_location import ImportLog, ImportNote, Note, SourceLocation, did_you_mean
from tmkit._support.xml import XmlElement, read_xml
from tmkit.errors import SceneError
from tmkit.formats.srdf.values import (
    Chain,
    EndEffector,
    GroupState,
    LinkPair,
    RobotSemantics,
    SrdfGroup,
    VirtualJoint,
)
from tmkit.formats.urdf.writer import add_element

if TYPE_CHECKING:
    from lxml.etree import _Element

KNOWN_TAGS = (
    "group",
    "group_state",
    "end_effector",
    "virtual_joint",
    "passive_joint",
    "disable_collisions",
    "disable_default_collisions",
    "enable_collisions",
)
"""Tags of the elements that are read."""

FOREIGN_TAGS = (
    "gripper",
    "handle",
    "contact",
    "rotor_params",
    "torque_constant",
    "specificities",
    "link_sphere_approximation",
    "joint_property",
)
"""Tags of elements of other programs, which are omitted without a suggestion."""

VIRTUAL_TYPES = ("fixed", "planar", "floating")
"""Types of virtual joints."""


def read_srdf(path: str | os.PathLike[str], *, note: Note | None = None) -> RobotSemantics:
    """Read an SRDF file.

    Args:
        path: the file.
        note: receiver of the notes on omitted elements. By default they are logged as warnings.

    Returns:
        The content of the file. Its ``notes`` list the omitted elements.

    Raises:
        MissingFileError: if there is no such file. The message has the nearest name.
        FileFormatError: if the file is neither XML nor SRDF, or has two declarations of one name.
    """
    file = resolve_name(Path(path), "scenes")
    return read_srdf_text(None, file, note=note)


def read_srdf_text(data: bytes | None, path: Path, *, note: Note | None = None) -> RobotSemantics:
    """Read the text of an SRDF file; the errors are those of :func:`read_srdf`.

    Args:
        data: content of the file, or None for the content on disk.
        path: path of the file, for messages.
        note: as for :func:`read_srdf`.
    """
    notes: list[ImportNote] = []
    forward = note if note is not None else ImportLog().note

    def collect(place: SourceLocation, text: str) -> None:
        notes.append(ImportNote(place.path, place.line, text))
        forward(place, text)

    robot = read_xml(path, root="robot", note=collect, data=data)
    robot.reject_xacro("SRDF")
    _note_ignored(robot, KNOWN_TAGS)
    return RobotSemantics(
        name=robot.get("name") or "",
        groups=tuple(_group(element) for element in robot.children("group")),
        states=tuple(_state(element) for element in robot.children("group_state")),
        end_effectors=tuple(_end_effector(element) for element in robot.children("end_effector")),
        virtual_joints=tuple(
            _virtual_joint(element) for element in robot.children("virtual_joint")
        ),
        passive_joints=tuple(element.text("name") for element in robot.children("passive_joint")),
        disabled=tuple(_pair(element) for element in robot.children("disable_collisions")),
        unchecked_links=tuple(
            element.text("link") for element in robot.children("disable_default_collisions")
        ),
        enabled=tuple(_pair(element) for element in robot.children("enable_collisions")),
        source=str(path),
        notes=tuple(notes),
    )


def _note_ignored(parent: XmlElement, known_tags: tuple[str, ...]) -> None:
    """Note each tag of ignored children once, at the first such child."""
    noted: set[str] = set()
    for child in parent.element:
        if not isinstance(child.tag, str) or child.tag in known_tags or child.tag in noted:
            continue
        noted.add(child.tag)
        count = len(parent.children(child.tag))
        element = f"<{child.tag}>" + (f" ({count} times)" if count > 1 else "")
        hint = "" if child.tag in FOREIGN_TAGS else did_you_mean(child.tag, known_tags)
        if child.tag in KNOWN_TAGS:
            hint = "; its place is directly in <robot>"
        parent.around(child).note(f"{element} in <{parent.tag}> is ignored{hint}")


def _group(element: XmlElement) -> SrdfGroup:
    _note_ignored(element, ("joint", "link", "chain", "group"))
    return SrdfGroup(
        name=element.text("name"),
        joints=tuple(child.text("name") for child in element.children("joint")),
        links=tuple(child.text("name") for child in element.children("link")),
        chains=tuple(
            Chain(child.text("base_link"), child.text("tip_link"))
            for child in element.children("chain")
        ),
        subgroups=tuple(child.text("name") for child in element.children("group")),
        place=element.place,
    )


def _state(element: XmlElement) -> GroupState:
    _note_ignored(element, ("joint",))
    values: dict[str, tuple[float, ...]] = {}
    name = element.text("name")
    for child in element.children("joint"):
        joint = child.text("name")
        if joint in values:
            raise child.place.error(f"the state '{name}' has the joint '{joint}' twice")
        values[joint] = child.numbers("value", [max(1, len(child.text("value").split()))])
    return GroupState(name, element.get("group") or "", tuple(values.items()), element.place)


def _end_effector(element: XmlElement) -> EndEffector:
    return EndEffector(
        element.text("name"),
        element.text("parent_link"),
        element.text("group"),
        element.get("parent_group") or "",
        element.place,
    )


def _virtual_joint(element: XmlElement) -> VirtualJoint:
    kind = element.text("type")
    if kind not in VIRTUAL_TYPES:
        hint = did_you_mean(kind, VIRTUAL_TYPES)
        raise element.place.error(
            f"unknown type '{kind}' of a virtual joint{hint} (known: {', '.join(VIRTUAL_TYPES)})"
        )
    return VirtualJoint(
        element.text("name"),
        kind,
        element.text("parent_frame"),
        element.text("child_link"),
        element.place,
    )


def _pair(element: XmlElement) -> LinkPair:
    first, second = element.text("link1"), element.text("link2")
    if first == second:
        raise element.place.error(
            f"<{element.tag}> names the link '{first}' twice, expected two different links"
        )
    return LinkPair(first, second, element.get("reason") or "", element.place)


def write_srdf(semantics: RobotSemantics, path: str | os.PathLike[str]) -> Path:
    """Write an SRDF file.

    Args:
        semantics: content of the file.
        path: the file. It is written completely or not at all.

    Returns:
        The path.

    Raises:
        SceneError: if XML cannot store a name.
        OutputError: if the file cannot be written.
    """
    target = Path(path)
    write_text(target, srdf_text(semantics))
    return target


def srdf_text(semantics: RobotSemantics) -> str:
    """Return the text of an SRDF file.

    Raises:
        SceneError: if XML cannot store a name.
    """
    from lxml import etree

    try:
        robot = etree.Element("robot", name=semantics.name)
        _add_groups(robot, semantics)
        _add_joints(robot, semantics)
        for link in semantics.unchecked_links:
            add_element(robot, "disable_default_collisions", {"link": link})
        for pair in semantics.enabled:
            _add_pair(robot, "enable_collisions", pair)
        for pair in semantics.disabled:
            _add_pair(robot, "disable_collisions", pair)
    except ValueError as error:  # a name with characters that XML cannot store
        raise SceneError(f"a name does not fit into XML: {error}") from error
    data = etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8")
    return data.decode("utf-8")


def _add_groups(robot: _Element, semantics: RobotSemantics) -> None:
    for group in semantics.groups:
        _add_group(robot, group)
    for state in semantics.states:
        attributes = {"name": state.name}
        if state.group:
            attributes["group"] = state.group
        element = add_element(robot, "group_state", attributes)
        for joint, numbers in state.values:
            value = " ".join(repr(float(number)) for number in numbers)
            add_element(element, "joint", {"name": joint, "value": value})
    for effector in semantics.end_effectors:
        attributes = {
            "name": effector.name,
            "parent_link": effector.parent_link,
            "group": effector.group,
        }
        if effector.parent_group:
            attributes["parent_group"] = effector.parent_group
        add_element(robot, "end_effector", attributes)


def _add_group(robot: _Element, group: SrdfGroup) -> None:
    element = add_element(robot, "group", {"name": group.name})
    for joint in group.joints:
        add_element(element, "joint", {"name": joint})
    for link in group.links:
        add_element(element, "link", {"name": link})
    for chain in group.chains:
        add_element(element, "chain", {"base_link": chain.base, "tip_link": chain.tip})
    for name in group.subgroups:
        add_element(element, "group", {"name": name})


def _add_joints(robot: _Element, semantics: RobotSemantics) -> None:
    for joint in semantics.virtual_joints:
        add_element(
            robot,
            "virtual_joint",
            {
                "name": joint.name,
                "type": joint.type,
                "parent_frame": joint.parent_frame,
                "child_link": joint.child_link,
            },
        )
    for name in semantics.passive_joints:
        add_element(robot, "passive_joint", {"name": name})


def _add_pair(robot: _Element, tag: str, pair: LinkPair) -> None:
    reason = {"reason": pair.reason} if pair.reason else {}
    add_element(robot, tag, {"link1": pair.link1, "link2": pair.link2, **reason})
