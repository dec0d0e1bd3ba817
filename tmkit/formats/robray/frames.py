"""What the attributes of a robray frame come to: its pose, its joint, its mass, its friction.

Attributes were gathered already, one's own and those of classes, each with the place where it was written. Here they
are put together, by the original's rules: a quaternion beats angles; an axis need not be of unit length, and then
``offset`` is multiplied by its length; a mass belongs to the frame or to its shapes, not to both.

Invariants: functions of their arguments; what does not fit is refused at the value that does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tmkit._support.source_location import SourceLocation
from tmkit.formats.robray.values import Value
from tmkit.formats.spec.model import GeometrySpec, InertiaSpec, JointSpec, PoseSpec
from tmkit.formats.spec.values import pose_of, spec_of_pose


@dataclass(frozen=True, slots=True)
class Solid:
    """A shape of a frame with the names of its classes and all its attributes."""

    spec: GeometrySpec
    tags: tuple[str, ...]
    values: Mapping[str, Value]


def _triple(value: Value | None) -> tuple[float, float, float]:
    """Return the three numbers of a value, zeros when there is none."""
    if value is None:
        return 0.0, 0.0, 0.0
    x, y, z = value.numbers
    return x, y, z


def pose_in(values: Mapping[str, Value]) -> PoseSpec:
    """Return the pose of a frame; a quaternion beats angles."""
    translation = _triple(values.get("translation"))
    if "quaternion" in values:
        x, y, z, w = values["quaternion"].numbers
        return PoseSpec(translation, quat_xyzw=(x, y, z, w))
    return PoseSpec(translation, rpy=_triple(values["rpy"]) if "rpy" in values else None)


def composed(outer: PoseSpec, inner: PoseSpec) -> PoseSpec:
    """Return the composition of two poses; exactly the first if the second is the identity.

    Args:
        outer: pose of the first frame.
        inner: pose relative to that frame.
    """
    if inner == PoseSpec():
        return outer
    return spec_of_pose(pose_of(outer) @ pose_of(inner))


def joint_in(values: Mapping[str, Value], *, frame: str, place: SourceLocation) -> JointSpec:
    """Return the joint of a frame.

    Args:
        values: properties of the frame.
        frame: its name.
        place: its location, for messages.

    Raises:
        FileFormatError: limits of a fixed frame, a joint without an axis, or an upper limit below the lower one.
    """
    kind = values["type"].text if "type" in values else "fixed"
    if kind == "fixed":
        for name in ("lower", "upper"):
            if name in values:
                reason = f"'{name}' has no meaning for a fixed frame; write 'type revolute;' or 'type prismatic;'"
                raise values[name].place.error(reason)
        return JointSpec(place=place)
    if "axis" not in values:
        raise values["type"].place.error(f"the {kind} frame '{frame}' needs an axis")
    axis = _triple(values["axis"])
    limits = {name: values[name].number for name in ("lower", "upper", "offset") if name in values}
    if "lower" in limits and "upper" in limits and limits["lower"] > limits["upper"]:
        reason = f"the upper limit {limits['upper']:g} is below the lower limit {limits['lower']:g}"
        raise values["upper"].place.error(reason)
    return JointSpec(
        type=kind, name=values["variable"].text if "variable" in values else frame, axis=axis,
        lower=limits.get("lower", -math.inf), upper=limits.get("upper", math.inf),
        offset=limits.get("offset", 0.0) * math.hypot(*axis),
        place=values["variable"].place if "variable" in values else place,
    )  # fmt: skip


def inertia_in(
    values: Mapping[str, Value], solids: Sequence[Solid], *, place: SourceLocation
) -> tuple[InertiaSpec | None, tuple[GeometrySpec, ...]]:
    """Return the mass of a frame and its shapes; either the frame or its shapes have masses.

    Args:
        values: properties of the frame.
        solids: its geometry.
        place: its location, for messages.

    Raises:
        FileFormatError: a mass without shapes, or one of the frame and another of a shape.
    """
    geometry = tuple(solid.spec for solid in solids)
    masses = [solid.values["mass"] for solid in solids if "mass" in solid.values]
    if "mass" not in values:
        return (InertiaSpec(sum(mass.number for mass in masses), place) if masses else None), geometry
    mass = values["mass"]
    if not solids:
        raise mass.place.error("a mass is spread over the frame's geometry, and this frame has none")
    if any(other.place != mass.place for other in masses):
        raise mass.place.error("a mass is given for the frame and by a class of its geometry; give one of them")
    return InertiaSpec(mass.number, mass.place), tuple(replace(spec, mass=None) for spec in geometry)


def friction_in(values: Mapping[str, Value], solids: Sequence[Solid]) -> float | None:
    """Return the friction of a frame: its own, or else that of its geometry.

    Args:
        values: properties of the frame.
        solids: its geometry.

    Raises:
        FileFormatError: two shapes that differ, where the frame says nothing.
    """
    if "friction" in values:
        return values["friction"].number
    found = [solid.values["friction"] for solid in solids if "friction" in solid.values]
    if len({value.number for value in found}) > 1:
        raise found[-1].place.error("two shapes of one frame have different friction; give it for the frame")
    return found[0].number if found else None
