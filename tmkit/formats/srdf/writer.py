"""Writing SRDF files: what :func:`~tmkit.formats.srdf.read_srdf` reads back is equal to the value that was written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit._support import write_text
from tmkit.errors import SceneError
from tmkit.formats.srdf.values import LinkPair, RobotSemantics, SrdfGroup
from tmkit.formats.urdf.writer import add_element

if TYPE_CHECKING:
    from lxml.etree import _Element


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
            add_element(robot, "disable_default_collisions", link=link)
        for pair in semantics.enabled:
            _add_pair(robot, "enable_collisions", pair)
        for pair in semantics.disabled:
            _add_pair(robot, "disable_collisions", pair)
    except ValueError as error:  # a name with characters that XML cannot hold
        raise SceneError(f"a name does not fit into XML: {error}") from error
    return etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8").decode("utf-8")


def _add_groups(robot: _Element, semantics: RobotSemantics) -> None:
    """Add groups, their states, and end effectors."""
    for group in semantics.groups:
        _add_group(robot, group)
    for state in semantics.states:
        element = add_element(robot, "group_state", name=state.name, **({"group": state.group} if state.group else {}))
        for joint, numbers in state.values:
            add_element(element, "joint", name=joint, value=" ".join(repr(float(number)) for number in numbers))
    for effector in semantics.end_effectors:
        carrier = {"parent_group": effector.parent_group} if effector.parent_group else {}
        add_element(
            robot, "end_effector", name=effector.name, parent_link=effector.parent_link, group=effector.group, **carrier
        )


def _add_group(robot: _Element, group: SrdfGroup) -> None:
    """Add a group."""
    element = add_element(robot, "group", name=group.name)
    for joint in group.joints:
        add_element(element, "joint", name=joint)
    for link in group.links:
        add_element(element, "link", name=link)
    for chain in group.chains:
        add_element(element, "chain", base_link=chain.base, tip_link=chain.tip)
    for name in group.subgroups:
        add_element(element, "group", name=name)


def _add_joints(robot: _Element, semantics: RobotSemantics) -> None:
    """Add virtual and passive joints."""
    for joint in semantics.virtual_joints:
        add_element(
            robot, "virtual_joint", name=joint.name, type=joint.type, parent_frame=joint.parent_frame,
            child_link=joint.child_link,
        )  # fmt: skip
    for name in semantics.passive_joints:
        add_element(robot, "passive_joint", name=name)


def _add_pair(robot: _Element, tag: str, pair: LinkPair) -> None:
    """Add a pair of links."""
    reason = {"reason": pair.reason} if pair.reason else {}
    add_element(robot, tag, link1=pair.link1, link2=pair.link2, **reason)
