"""Relations in and out of messages of ROS: ``geometry_msgs`` and ``nav_msgs/Odometry``, or dictionaries of that form.

A message says little of what its numbers mean; what it says is compared with the coordinates that
it is read by:

=====================================  ================================================================================
``header.frame_id``                    the axes; for a pose or a point also the reference frame
``child_frame_id``                     the frame of a transform; of an ``Odometry`` also point and axes of its twist
``body_frame_id``                      the point of a ``VelocityStamped``
=====================================  ================================================================================

Messages of ROS 1 and of ROS 2 are accepted, with or without a header or a covariance (which is left
alone).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

from tmkit.relations.conversions.libraries import make_relation, relation_class
from tmkit.relations.representations import UnitQuaternion, VectorAndQuaternion
from tmkit.relations.semantic.base import SemanticRelation, require_one
from tmkit.relations.semantic.constant import SemanticOrientation, SemanticPose
from tmkit.relations.semantics import (
    LABELS,
    Coord,
    PoseCoord,
    PositionCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.violations import SemanticError, Violation, checks_are_on, rule_error

_VECTOR, _QUATERNION = ("x", "y", "z"), ("x", "y", "z", "w")
_LEAVES = {
    "Pose": (("position", "orientation"), ("translation", "rotation")),
    "Twist": (("linear", "angular"),),
    "Wrench": (("force", "torque"),),
    "Orientation": (_QUATERNION,),
}
_INNER = {
    "Pose": ("pose", "transform"),
    "Twist": ("twist", "velocity"),
    "Wrench": ("wrench",),
    "Orientation": ("quaternion",),
    "Position": ("point", "vector"),
}
_VELOCITY_STAMPED = "body_frame_id"


def from_ros(message: object, coord: Coord) -> Any:
    """Return the relation that a message holds.

    Args:
        message: the message, with or without a header. A pose is a ``Pose`` or ``Transform``, a
            position a ``Point`` or ``Vector3``, another vector a ``Vector3``, an orientation a
            ``Quaternion``, and a wrench a ``Wrench``. A twist is a ``Twist``, ``VelocityStamped``
            or ``Odometry``.
        coord: what it means.

    Raises:
        SemanticError: the message is none of that relation, names other frames, or has a quaternion
            that was never set.
    """
    what = "from_ros"
    relation = relation_class(coord, what)
    leaf, names = _find_numbers(message, coord.relation, what)
    if checks_are_on() and (broken := _find_frame_violations(message, coord)):
        raise SemanticError.of(f"{what}({coord!r})", broken)
    if relation is SemanticPose:
        position, turned = (_get_field(leaf, name) for name in names)
        values = VectorAndQuaternion(
            _read_numbers(position, _VECTOR, what), _read_quaternion(turned, what)
        )
        return SemanticPose(coord, values)
    if relation is SemanticOrientation:
        return SemanticOrientation(coord, UnitQuaternion(_read_quaternion(leaf, what)))
    if names == _VECTOR:
        return make_relation(coord, [_read_numbers(leaf, _VECTOR, what)], what)
    return make_relation(
        coord, [_read_numbers(_get_field(leaf, name), _VECTOR, what) for name in names], what
    )


def to_ros(relation: SemanticRelation, message: object = None) -> Any:
    """Write a relation into a message, and return that.

    Args:
        relation: the relation.
        message: the message to fill, such as ``TwistStamped()``, or a dictionary that has its
            fields; frame ids that it has are set, a time stamp and a covariance are left alone. By
            default a new dictionary is made, in the form of the message with a header. A
            ``VelocityStamped`` has to name its ``reference_frame_id`` already.

    Raises:
        SemanticError: the relation is not what the message stands for. A pose or transform relates
            a frame to a frame and is expressed there. A ``WrenchStamped`` speaks of the origin of
            its frame, an ``Odometry`` has its twist in the axes and at the origin of its child
            frame.
    """
    what = "to_ros"
    if not isinstance(relation, SemanticRelation):
        raise rule_error(what, "a relation with numbers goes out", repr(relation)[:80])
    require_one(relation, what)
    coord = relation.coord
    kind = coord.relation
    filled = _make_message(kind) if message is None else message
    leaf, names = _find_numbers(filled, kind, what)
    if checks_are_on() and (broken := _find_message_violations(filled, coord)):
        raise SemanticError.of(f"{what}({coord!r})", broken)
    _name_frames(filled, coord)
    if isinstance(relation, SemanticPose):
        values = relation.in_representation(VectorAndQuaternion)
        _write_numbers(_get_field(leaf, names[0]), _VECTOR, values.vector)
        _write_numbers(_get_field(leaf, names[1]), _QUATERNION, values.quat_xyzw)
    elif isinstance(relation, SemanticOrientation):
        _write_numbers(leaf, _QUATERNION, relation.in_representation(UnitQuaternion).quat_xyzw)
    elif names == _VECTOR:
        _write_numbers(leaf, _VECTOR, relation.numbers[0])
    else:
        for name, half in zip(names, relation.numbers, strict=True):
            _write_numbers(_get_field(leaf, name), _VECTOR, half)
    return filled


def _find_frame_violations(message: Any, coord: Coord) -> list[Violation]:
    """Return where the frame ids of a message are not those of the coordinates."""
    broken = []

    def same(rule: str, said: str, field: str) -> None:
        wanted = getattr(coord, field)
        if said != wanted:
            broken.append(Violation(rule, f"it is '{said}'", f"the {LABELS[field]} is '{wanted}'"))

    header, child = _get_frame_id(message, "header"), _get_frame_id(message, "child_frame_id")
    if isinstance(coord, TwistCoord) and child is not None:
        for field in ("coord", "point"):
            same(
                "the twist of an Odometry is that of its child_frame_id, in its axes", child, field
            )
        return broken
    if header is not None:
        same("header.frame_id names the axes", header, "coord")
        if isinstance(coord, PoseCoord) or (
            isinstance(coord, PositionCoord) and _has_field(message, "point")
        ):
            same(
                "header.frame_id names the frame whose origin is the reference point",
                header,
                "ref_point",
            )
    if isinstance(coord, PoseCoord) and child is not None:
        for field in ("ori", "point"):
            same("child_frame_id names the frame of a pose", child, field)
    body = _get_frame_id(message, _VELOCITY_STAMPED)
    if isinstance(coord, TwistCoord) and body is not None:
        same("body_frame_id names the frame whose origin is the point of a velocity", body, "point")
    return broken


def _find_message_violations(message: Any, coord: Coord) -> list[Violation]:
    """Return why a message cannot say a relation."""
    broken = []

    def same(rule: str, left: str, right: str, repair: str) -> None:
        if getattr(coord, left) != getattr(coord, right):
            first, second = (f"{LABELS[name]} {getattr(coord, name)}" for name in (left, right))
            broken.append(Violation(rule, first, second, repair))

    is_stamped = _has_field(message, "header")
    if isinstance(coord, PoseCoord):
        same(
            "a pose in a message is that of a frame",
            "point",
            "ori",
            "change the point with change_point",
        )
        repair = "change the reference point with change_reference_point"
        same("a pose in a message is relative to a frame", "ref_point", "ref_ori", repair)
        repair = "express it there with change_coordinate_frame"
        same("a pose in a message is expressed in its reference frame", "ref_ori", "coord", repair)
    elif isinstance(coord, PositionCoord) and is_stamped and _has_field(message, "point"):
        repair = "change the reference point with change_reference_point, or send a Vector3Stamped"
        same(
            "a point in a message is relative to the origin of its frame",
            "ref_point",
            "coord",
            repair,
        )
    elif isinstance(coord, WrenchCoord) and is_stamped:
        repair = "change the point with change_point, or send a Wrench without a header"
        same(
            "a wrench with a header is taken to act at the origin of its frame",
            "point",
            "coord",
            repair,
        )
    elif isinstance(coord, TwistCoord) and _has_field(message, "child_frame_id"):
        repair = "change the point with change_point, or the axes with change_coordinate_frame"
        same(
            "the twist of an Odometry is that of its child_frame_id, in its axes",
            "point",
            "coord",
            repair,
        )
    elif (
        isinstance(coord, TwistCoord)
        and _has_field(message, _VELOCITY_STAMPED)
        and not _get_field(message, "reference_frame_id")
    ):
        repair = "set reference_frame_id to a frame of the reference body first"
        rule = "a VelocityStamped names the frame that it is relative to"
        broken.append(
            Violation(
                rule, "reference_frame_id is empty", f"reference body {coord.ref_body}", repair
            )
        )
    return broken


def _name_frames(message: Any, coord: Coord) -> None:
    """Set the frame ids that a message has, as far as the coordinates know them."""
    if isinstance(coord, TwistCoord) and _has_field(message, "child_frame_id"):
        _set_field(message, "child_frame_id", coord.coord)
        return
    if _has_field(message, "header"):
        _set_field(_get_field(message, "header"), "frame_id", coord.coord)
    if isinstance(coord, PoseCoord) and _has_field(message, "child_frame_id"):
        _set_field(message, "child_frame_id", coord.ori)
    if isinstance(coord, TwistCoord) and _has_field(message, _VELOCITY_STAMPED):
        _set_field(message, _VELOCITY_STAMPED, coord.point)


def _get_frame_id(message: Any, name: str) -> str | None:
    """Return a frame id, that of the header where that is asked for, or None where the message has no such member."""
    if not _has_field(message, name):
        return None
    found = _get_field(message, name)
    if name == "header":
        found = _get_field(found, "frame_id") if _has_field(found, "frame_id") else ""
    return str(found)


def _find_numbers(message: Any, kind: str, what: str) -> tuple[Any, tuple[str, ...]]:
    """Return the part of a message that holds the numbers of a relation, and the names of its members."""
    leaves = _LEAVES.get(kind, (_VECTOR,))
    inner = _INNER.get(kind, ("vector",))
    part = message
    while True:
        for names in leaves:
            if all(_has_field(part, name) for name in names) and (
                names != _VECTOR or not _has_field(part, "w")
            ):
                return part, names
        deeper = [name for name in inner if _has_field(part, name)]
        if not deeper:
            wanted = " or ".join(", ".join(names) for names in leaves)
            rule = (
                f"a message of a {kind} has the members {wanted}, itself or in {' or '.join(inner)}"
            )
            raise rule_error(what, rule, f"a {type(message).__name__} has not")
        part = _get_field(part, deeper[0])


def _make_message(kind: str) -> dict[str, Any]:
    """Return a dictionary in the form of the message with a header for a relation."""
    held: dict[str, Any] = dict.fromkeys(_QUATERNION if kind == "Orientation" else _VECTOR, 0.0)
    if kind in ("Pose", "Twist", "Wrench"):
        held = {name: dict(held) for name in _LEAVES[kind][0]}
    return {"header": {"frame_id": ""}, _INNER.get(kind, ("vector",))[0]: held}


def _has_field(part: Any, name: str) -> bool:
    return name in part if isinstance(part, Mapping) else hasattr(part, name)


def _get_field(part: Any, name: str) -> Any:
    return part[name] if isinstance(part, Mapping) else getattr(part, name)


def _set_field(part: Any, name: str, value: Any) -> None:
    if isinstance(part, MutableMapping):
        part[name] = value
    else:
        setattr(part, name, value)


def _write_numbers(part: Any, names: tuple[str, ...], values: Any) -> None:
    for name, value in zip(names, values, strict=True):
        _set_field(part, name, float(value))


def _read_numbers(part: Any, names: tuple[str, ...], what: str) -> list[float]:
    missing = [name for name in names if not _has_field(part, name)]
    if missing:
        lacks = f"a {type(part).__name__} has no {', no '.join(missing)}"
        raise rule_error(what, f"it has the members {', '.join(names)}", lacks)
    return [float(_get_field(part, name)) for name in names]


def _read_quaternion(part: Any, what: str) -> list[float]:
    found = _read_numbers(part, _QUATERNION, what)
    if not np.any(found):
        rule = "an orientation in a message is a unit quaternion"
        repair = "the sender never set it; no rotation is x=y=z=0, w=1"
        raise rule_error(what, rule, "all four numbers are 0", repair=repair)
    return found
