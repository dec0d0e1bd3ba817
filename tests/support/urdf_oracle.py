"""Forward kinematics of robot descriptions by pinocchio, for comparison.

The oracle reads the URDF itself: pinocchio's parser builds the chain, and the rules of mimic
joints are taken from the XML here. If that parser rejects a file for mistakes that concern no
motion, or that its usual neighbours overlook (an unknown shape, commas between numbers, Bullet's
spherical joint), it gets a corrected copy; the copy is made here, without the tested code.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio
from numpy.typing import NDArray

__all__ = ["UrdfOracle"]

Values = Mapping[str, float]


class UrdfOracle:
    """A robot in pinocchio.

    Attributes:
        links: the links, in pinocchio's order.
        mended: whether pinocchio rejected the file and got a corrected copy.
    """

    def __init__(self, path: Path) -> None:
        """Read a robot description.

        Args:
            path: the file.

        Raises:
            ValueError: if pinocchio reads neither the file nor the corrected copy.
        """
        text = path.read_text(encoding="utf-8", errors="replace").strip("\ufeff\0 \n\r\t")
        robot = ElementTree.fromstring(
            re.sub(r"(</?)(?!\?xml)[\w-]+:|\s[\w-]+:[\w-]+=\"[^\"]*\"", r"\1", text)
        )
        self.mended = False
        try:
            self.model = pinocchio.buildModelFromUrdf(str(path))
        except ValueError:
            self.mended = True
            self.model = pinocchio.buildModelFromXML(_repair(robot))
        self.data = self.model.createData()
        self.links = tuple(frame.name for frame in self.model.frames if _is_link(frame))
        self._frames = [
            self.model.getFrameId(link, pinocchio.FrameType.BODY) for link in self.links
        ]
        self._rules = _mimics(robot)

    @property
    def free_joints(self) -> tuple[str, ...]:
        """The joints that move in all six directions."""
        return tuple(
            name
            for name, joint in zip(self.model.names, self.model.joints, strict=True)
            if joint.shortname() == FREE
        )

    def placements(
        self, values: Values, *, free: Mapping[str, NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return where the links stand, (n_links, 4, 4), relative to the root link.

        Args:
            values: of the leading joints [rad] or [m]; of a planar joint J as ``J/x``,
                ``J/y`` and ``J/theta``.
            free: where the free joints stand, xyz and quaternion xyzw relative to their origins.
        """
        q = np.zeros(self.model.nq)
        for name, joint in zip(self.model.names, self.model.joints, strict=True):
            if joint.nq > 0 and name != "universe":
                q[joint.idx_q : joint.idx_q + joint.nq] = self._entries(name, joint, values, free)
        pinocchio.framesForwardKinematics(self.model, self.data, q)
        return np.array([self.data.oMf[index].homogeneous for index in self._frames])

    def _entries(
        self,
        name: str,
        joint: pinocchio.JointModel,
        values: Values,
        free: Mapping[str, NDArray[np.float64]],
    ) -> list[float] | NDArray[np.float64]:
        """Return the part of pinocchio's configuration that belongs to one joint."""
        if joint.shortname() == FREE:
            return free[name]
        if joint.shortname() == "JointModelPlanar":
            theta = values[f"{name}/theta"]
            return [values[f"{name}/x"], values[f"{name}/y"], math.cos(theta), math.sin(theta)]
        value = self._value(name, values)
        return [math.cos(value), math.sin(value)] if joint.nq == 2 else [value]

    def _value(self, name: str, values: Values) -> float:
        """Return the value of a joint, that of a mimic joint by its rule."""
        if name in values:
            return values[name]
        leader, multiplier, offset = self._rules[name]
        return multiplier * self._value(leader, values) + offset


FREE = "JointModelFreeFlyer"
BETWEEN = " of the copy"  # ends the names of links that the file does not have


def _is_link(frame: pinocchio.Frame) -> bool:
    """Return whether a frame is a link of the file."""
    return bool(frame.type == pinocchio.FrameType.BODY) and not frame.name.endswith(BETWEEN)


def _mimics(robot: ElementTree.Element) -> dict[str, tuple[str, float, float]]:
    """Return the rules of the mimic joints of a description."""
    rules = {}
    for joint in robot.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            numbers = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
            rules[joint.get("name", "")] = (mimic.get("joint", ""), *numbers)
    return rules


def _repair(robot: ElementTree.Element) -> str:
    """Return a description with only links and joints, in the form of pinocchio's parser."""
    copy = ElementTree.Element("robot", name="copy")
    for link in robot.findall("link"):
        ElementTree.SubElement(copy, "link", name=link.get("name", ""))
    for joint in robot.findall("joint"):
        name, ends = (
            joint.get("name", ""),
            [joint.find(tag).get("link", "") for tag in ("parent", "child")],
        )  # type: ignore[union-attr]
        origin, axis = joint.find("origin"), joint.find("axis")
        poses = (
            {key: _three(origin.get(key, "0 0 0")) for key in ("xyz", "rpy")}
            if origin is not None
            else {}
        )
        if joint.get("type") == "spherical":
            between = [f"{name} {letter}{BETWEEN}" for letter in "xy"]
            for between_name in between:
                ElementTree.SubElement(copy, "link", name=between_name)
            chain = [ends[0], *between, ends[1]]
            for index, letter in enumerate("xyz"):
                direction = " ".join("1" if letter == other else "0" for other in "xyz")
                place = poses if index == 0 else {}
                _add_joint(
                    copy,
                    f"{name}/{letter}",
                    "continuous",
                    chain[index],
                    chain[index + 1],
                    place,
                    direction,
                )
        else:
            direction = _three(axis.get("xyz", "1 0 0")) if axis is not None else "1 0 0"
            _add_joint(copy, name, joint.get("type", ""), ends[0], ends[1], poses, direction)
    return ElementTree.tostring(copy, encoding="unicode")


def _add_joint(
    robot: ElementTree.Element,
    name: str,
    kind: str,
    parent: str,
    child: str,
    origin: Mapping[str, str],
    axis: str,
) -> None:
    """Add a joint; its limits do not matter here."""
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    ElementTree.SubElement(joint, "origin", dict(origin))
    ElementTree.SubElement(joint, "axis", xyz=axis)
    ElementTree.SubElement(joint, "limit", lower="-1", upper="1", effort="1", velocity="1")


def _three(text: str) -> str:
    """Return three numbers of an attribute without commas, with the value of ``$(optenv ...)``."""
    plain = re.sub(r"\$\(optenv \w+ ([^)]*)\)", r"\1", text).replace(",", " ")
    return " ".join(plain.split()[:3])
