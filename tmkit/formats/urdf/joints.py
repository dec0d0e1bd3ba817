"""Joints of robot descriptions.

A joint of one degree of freedom keeps its name, its axis, its limits, its dynamics and the joint it mimics.
``floating`` is a free edge, whose pose is scene data. A joint of several degrees of freedom is a chain of joints of
one, with frames between them, all named after it; so a configuration has one number a joint, whatever the file says:

* ``planar`` ``J``, with the normal ``axis``: ``J/x`` and ``J/y`` slide in the plane, ``J/theta`` turns about the
  normal. For the normal z, the directions are the x and y of the joint's origin; for another one they are those turned
  the short way that takes z to the normal. Without ``<axis>`` the normal is z, as everybody means it, although the
  letter of the format has x.
* ``spherical`` ``J``, an extension of Bullet: ``J/x``, ``J/y`` and ``J/z`` turn about those axes, in this order.

What other tools overlook is mended with a note: a revolute or prismatic joint without limits, or with the lower
above the upper (Bullet's way of saying so), is unlimited; of two limits, the one omitted is 0, as the format has it; a
joint that mimics one that is not there moves by itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from tmkit._support.source_location import did_you_mean
from tmkit._support.xml import XmlElement
from tmkit.formats.spec.model import JointSpec, MimicSpec, Triple

# The joint types of one degree of freedom, which are called the same here and there.
SINGLE_TYPES = ("continuous", "prismatic", "revolute")
# The types that move otherwise, or not at all.
OTHER_TYPES = ("fixed", "floating", "planar", "spherical")

ORTHOGONAL: Mapping[str, Triple] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class JointStep:
    """One joint of the chain that stands for a joint of the file.

    Attributes:
        joint: what it does.
        frame: the name of the frame that it moves; empty for the child link itself, which is the last step's.
    """

    joint: JointSpec
    frame: str = ""


def type_of(element: XmlElement) -> str:
    """Return the type of a joint element.

    Raises:
        FileFormatError: there is no such type.
    """
    written = element.text("type")
    known = (*SINGLE_TYPES, *OTHER_TYPES)
    if written not in known:
        name = element.text("name")
        reason = f"the joint '{name}' has the unknown type '{written}'{did_you_mean(written, known)}"
        raise element.place.error(f"{reason} (known: {', '.join(sorted(known))})")
    return written


def joint_steps(element: XmlElement, *, leaders: Collection[str]) -> tuple[JointStep, ...]:
    """Return the joints that stand for a joint element, from the parent link down; often one.

    Args:
        element: the joint.
        leaders: the joints that others may mimic.

    Raises:
        FileFormatError: the joint is wrong.
    """
    written = type_of(element)
    if written == "fixed":
        return (JointStep(JointSpec(place=element.place)),)
    if written == "floating":
        return (JointStep(JointSpec(type="free", place=element.place)),)
    if written == "planar":
        return _planar(element)
    if written == "spherical":
        return _spherical(element)
    joint = replace(
        _with_dynamics(JointSpec(type=written, name=element.text("name"), place=element.place), element),
        axis=_axis(element),
        mimic=_mimic(element, leaders),
    )
    return (JointStep(_limited(joint, element)),)


def _planar(element: XmlElement) -> tuple[JointStep, ...]:
    """Return two slides in the plane and a turn about its normal."""
    normal = _axis(element, otherwise=(0.0, 0.0, 1.0))
    if element.child("axis") is None:
        element.note(f"the planar joint '{element.text('name')}' has no <axis>; its plane is taken as that of x and y")
    along_x, along_y = _directions(normal)
    slide = _several(element, "prismatic")
    name = element.text("name")
    return (
        JointStep(replace(slide, name=f"{name}/x", axis=along_x), f"{name}/x"),
        JointStep(replace(slide, name=f"{name}/y", axis=along_y), f"{name}/y"),
        JointStep(replace(slide, name=f"{name}/theta", type="continuous", axis=normal)),
    )


def _spherical(element: XmlElement) -> tuple[JointStep, ...]:
    """Return three turns, about x, y and z."""
    name = element.text("name")
    element.note(f"the joint '{name}' is spherical, which is no URDF; it becomes three joints about x, y and z")
    turn = _several(element, "continuous")
    return (
        JointStep(replace(turn, name=f"{name}/x", axis=ORTHOGONAL["x"]), f"{name}/x"),
        JointStep(replace(turn, name=f"{name}/y", axis=ORTHOGONAL["y"]), f"{name}/y"),
        JointStep(replace(turn, name=f"{name}/z", axis=ORTHOGONAL["z"])),
    )


def _several(element: XmlElement, kind: str) -> JointSpec:
    """Return what the joints of one chain have in common; limits of position and a mimic say nothing about them."""
    for tag in ("limit", "mimic"):
        child = element.child(tag)
        if child is not None and (tag == "mimic" or child.get("lower") is not None or child.get("upper") is not None):
            child.note(f"<{tag}> of the {element.text('type')} joint '{element.text('name')}' is ignored")
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
        damping, friction = dynamics.not_negative("damping", 0.0), dynamics.not_negative("friction", 0.0)
        joint = replace(joint, damping=damping, friction=friction)
    if limit is not None:
        velocity = limit.not_negative("velocity", math.inf, infinite=True)
        joint = replace(joint, velocity=velocity, effort=limit.not_negative("effort", math.inf, infinite=True))
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
    """Return the joint with its limits of position, unlimited with a note when the file gives none that work."""
    if joint.type == "continuous":
        return joint
    which = f"the {joint.type} joint '{joint.name}'"
    limit = element.child("limit")
    missing = [name for name in ("lower", "upper") if limit is None or limit.get(name) is None]
    if limit is None or len(missing) == 2:
        (limit or element).note(f"{which} has no limits; it is taken as unlimited")
        return joint
    if missing:
        limit.note(f"{which} has no {missing[0]} limit; it is 0, the default of URDF")
    lower = limit.number("lower", 0.0, infinite=True)
    upper = limit.number("upper", 0.0, infinite=True)
    if lower > upper:
        limit.note(f"{which} has a lower limit {lower:g} above its upper limit {upper:g}; it is taken as unlimited")
        return joint
    return replace(joint, lower=lower, upper=upper)


def _mimic(element: XmlElement, leaders: Collection[str]) -> MimicSpec | None:
    """Return the rule of a joint that follows another."""
    mimic = element.child("mimic")
    if mimic is None:
        return None
    name, leader = element.text("name"), mimic.text("joint")
    if leader == name:
        mimic.note(f"the joint '{name}' mimics itself; it moves by itself")
        return None
    if leader not in leaders:
        hint = did_you_mean(leader, leaders)
        mimic.note(f"the joint to mimic, '{leader}', is not a joint that moves{hint}; '{name}' moves by itself")
        return None
    return MimicSpec(leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.place)
