"""SRDF files, read and written: what is written reads back as an equal value.

Read are ``<group>`` (of joints, links, chains and groups), ``<group_state>``, ``<end_effector>``,
``<virtual_joint>``, ``<passive_joint>``, ``<disable_collisions>``, ``<disable_default_collisions>``
and ``<enable_collisions>``. What other programs put into these files (grippers of HPP, rotors of
pinocchio, feet of humanoids, sphere approximations) is omitted with a note. So is an unknown
element, with the nearest known name, since it may be a misspelling.

An attribute that is missing or no number is refused with file and line, and so are two groups of
one name. Names of links and joints are not looked up here; see :mod:`tmkit.formats.srdf.values`.
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

KNOWN = (
    "group",
    "group_state",
    "end_effector",
    "virtual_joint",
    "passive_joint",
    "disable_collisions",
    "disable_default_collisions",
    "enable_collisions",
)
# Elements of other programs, which say nothing that is asked for here.
FOREIGN = (
    "gripper",
    "handle",
    "contact",
    "rotor_params",
    "torque_constant",
    "specificities",
    "link_sphere_approximation",
    "joint_property",
)
VIRTUAL_TYPES = ("fixed", "planar", "floating")


def read_srdf(path: str | os.PathLike[str], *, note: Note | None = None) -> RobotSemantics:
    """Read an SRDF file; the ``notes`` of the value list what was omitted.

    Args:
        path: the file.
        note: takes the notes on what is omitted; without it, they are logged as warnings.

    Raises:
        MissingFileError: there is no such file; the nearest name is given.
        FileFormatError: the file is no XML, no SRDF, or declares something twice.
    """
    found = resolve_name(Path(path), "scenes")
    notes: list[ImportNote] = []
    hear = note if note is not None else ImportLog().note

    def keep(place: SourceLocation, text: str) -> None:
        notes.append(ImportNote(place.path, place.line, text))
        hear(place, text)

    robot = read_xml(found, root="robot", note=keep)
    robot.refuse_xacro("SRDF")
    _note_others(robot, KNOWN)
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
        source=str(found),
        notes=tuple(notes),
    )


def _note_others(parent: XmlElement, known: tuple[str, ...]) -> None:
    """Make a note on each kind of child element that is not read, at its first place."""
    seen: set[str] = set()
    for child in parent.element:
        if not isinstance(child.tag, str) or child.tag in known or child.tag in seen:
            continue
        seen.add(child.tag)
        count = len(parent.children(child.tag))
        what = f"<{child.tag}>" + (f" ({count} times)" if count > 1 else "")
        hint = "" if child.tag in FOREIGN else did_you_mean(child.tag, known)
        parent.around(child).note(f"{what} in <{parent.tag}> is ignored{hint}")


def _group(element: XmlElement) -> SrdfGroup:
    _note_others(element, ("joint", "link", "chain", "group"))
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
    _note_others(element, ("joint",))
    values: dict[str, tuple[float, ...]] = {}
    name = element.text("name")
    for child in element.children("joint"):
        joint = child.text("name")
        if joint in values:
            raise child.place.error(f"the state '{name}' gives the joint '{joint}' twice")
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
    """Write a value as an SRDF file; return the path.

    Args:
        semantics: what to write.
        path: the file; it is written as a whole or not at all.

    Raises:
        SceneError: a name that XML cannot hold.
        OutputError: the file cannot be written.
    """
    target = Path(path)
    write_text(target, srdf_text(semantics))
    return target


def srdf_text(semantics: RobotSemantics) -> str:
    """Return the text of the SRDF file.

    Raises:
        SceneError: a name that XML cannot hold.
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
    except ValueError as error:  # a name with characters that XML cannot hold
        raise SceneError(f"a name does not fit into XML: {error}") from error
    return etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8").decode(
        "utf-8"
    )


def _add_groups(robot: _Element, semantics: RobotSemantics) -> None:
    for group in semantics.groups:
        _add_group(robot, group)
    for state in semantics.states:
        of_group = {"group": state.group} if state.group else {}
        element = add_element(robot, "group_state", {"name": state.name, **of_group})
        for joint, numbers in state.values:
            add_element(
                element,
                "joint",
                {"name": joint, "value": " ".join(repr(float(number)) for number in numbers)},
            )
    for effector in semantics.end_effectors:
        carrier = {"parent_group": effector.parent_group} if effector.parent_group else {}
        add_element(
            robot,
            "end_effector",
            {
                "name": effector.name,
                "parent_link": effector.parent_link,
                "group": effector.group,
                **carrier,
            },
        )


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
