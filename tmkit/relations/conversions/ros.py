"""Conversion of relations from and to messages of ROS: ``geometry_msgs`` and ``nav_msgs/Odometry``.

The frame ids of a message are compared with the coordinates of the relation:

=====================================  =============================================================
``header.frame_id``                    the axes; for a pose or a point also the reference frame
``child_frame_id``                     the frame of a transform; of an ``Odometry`` also point and
                                       axes of its twist
``body_frame_id``                      the point of a ``VelocityStamped``
=====================================  =============================================================

Messages of ROS 1 and ROS 2, and dictionaries of their form, are accepted, with or without a header
or a covariance, which is ignored.
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

_VECTOR = ("x", "y", "z")
_QUATERNION = ("x", "y", "z", "w")
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
    """Create a relation from a message.

    Args:
        message: message, with or without a header. A pose is a ``Pose`` or ``Transform``, a
            position a ``Point`` or ``Vector3``, another vector a ``Vector3``, an orientation a
            ``Quaternion``, and a wrench a ``Wrench``. A twist is a ``Twist``, ``VelocityStamped``
            or ``Odometry``.
        coord: coordinates of the relation.

    Raises:
        SemanticError: if the message is of another relation, has other frame ids, or its quaternion
            is zero.
    """
    what = "from_ros"
    relation = relation_class(coord, what)
    leaf, names = _find_numbers(message, coord.relation, what)
    if checks_are_on() and (violations := _find_frame_violations(message, coord)):
        raise SemanticError.of(f"{what}({coord!r})", violations)
    if relation is SemanticPose:
        position, rotation = (_get_field(leaf, name) for name in names)
        values = VectorAndQuaternion(
            _read_numbers(position, _VECTOR, what), _read_quaternion(rotation, what)
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
    """Write a relation into a message, and return the message.

    Args:
        relation: relation with numbers.
        message: message to fill, such as ``TwistStamped()``, or a dictionary with its fields.
            Existing frame ids are set; a time stamp and a covariance are unchanged. Defaults to a
            new dictionary in the form of the message with a header. The ``reference_frame_id`` of a
            ``VelocityStamped`` must be set.

    Raises:
        SemanticError: if the message cannot represent the relation. A pose or transform is between
            frames and expressed in its reference frame. The point of a ``WrenchStamped`` is the
            origin of its frame. The twist of an ``Odometry`` is in the axes and at the origin of
            its child frame.
    """
    what = "to_ros"
    if not isinstance(relation, SemanticRelation):
        raise rule_error(what, "the argument is a relation with numbers", repr(relation)[:80])
    require_one(relation, what)
    coord = relation.coord
    kind = coord.relation
    target = _make_message(kind) if message is None else message
    leaf, names = _find_numbers(target, kind, what)
    if checks_are_on() and (violations := _find_message_violations(target, coord)):
        raise SemanticError.of(f"{what}({coord!r})", violations)
    _set_frame_ids(target, coord)
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
    return target


def _find_frame_violations(message: Any, coord: Coord) -> list[Violation]:
    """Return the differences of the frame ids of a message from the coordinates."""
    violations = []

    def compare(rule: str, frame_id: str, field: str) -> None:
        name = getattr(coord, field)
        if frame_id != name:
            sides = f"it is '{frame_id}'", f"the {LABELS[field]} is '{name}'"
            violations.append(Violation(rule, *sides))

    header, child = _get_frame_id(message, "header"), _get_frame_id(message, "child_frame_id")
    if isinstance(coord, TwistCoord) and child is not None:
        for field in ("coord", "point"):
            compare(
                "the twist of an Odometry is that of its child_frame_id, in its axes", child, field
            )
        return violations
    if header is not None:
        compare("header.frame_id names the axes", header, "coord")
        if isinstance(coord, PoseCoord) or (
            isinstance(coord, PositionCoord) and _has_field(message, "point")
        ):
            compare(
                "header.frame_id names the frame whose origin is the reference point",
                header,
                "ref_point",
            )
    if isinstance(coord, PoseCoord) and child is not None:
        for field in ("ori", "point"):
            compare("child_frame_id names the frame of a pose", child, field)
    body = _get_frame_id(message, _VELOCITY_STAMPED)
    if isinstance(coord, TwistCoord) and body is not None:
        compare(
            "body_frame_id names the frame whose origin is the point of a velocity", body, "point"
        )
    return violations


def _find_message_violations(message: Any, coord: Coord) -> list[Violation]:
    """Return the reasons why a message cannot represent a relation."""
    violations = []

    def compare(rule: str, left: str, right: str, repair: str) -> None:
        if getattr(coord, left) != getattr(coord, right):
            first, second = (f"{LABELS[name]} {getattr(coord, name)}" for name in (left, right))
            violations.append(Violation(rule, first, second, repair))

    is_stamped = _has_field(message, "header")
    if isinstance(coord, PoseCoord):
        compare(
            "a pose in a message is that of a frame",
            "point",
            "ori",
            "change the point with change_point",
        )
        repair = "change the reference point with change_reference_point"
        compare("a pose in a message is relative to a frame", "ref_point", "ref_ori", repair)
        repair = "express it there with change_coordinate_frame"
        compare(
            "a pose in a message is expressed in its reference frame", "ref_ori", "coord", repair
        )
    elif isinstance(coord, PositionCoord) and is_stamped and _has_field(message, "point"):
        repair = "change the reference point with change_reference_point, or send a Vector3Stamped"
        compare(
            "a point in a message is relative to the origin of its frame",
            "ref_point",
            "coord",
            repair,
        )
    elif isinstance(coord, WrenchCoord) and is_stamped:
        repair = "change the point with change_point, or send a Wrench without a header"
        compare(
            "a wrench with a header is taken to act at the origin of its frame",
            "point",
            "coord",
            repair,
        )
    elif isinstance(coord, TwistCoord) and _has_field(message, "child_frame_id"):
        repair = "change the point with change_point, or the axes with change_coordinate_frame"
        compare(
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
        violations.append(
            Violation(
                rule, "reference_frame_id is empty", f"reference body {coord.ref_body}", repair
            )
        )
    return violations


def _set_frame_ids(message: Any, coord: Coord) -> None:
    """Set the frame ids of a message from the coordinates."""
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
    """Return a frame id, for ``header`` that of the header, or None if the member is missing."""
    if not _has_field(message, name):
        return None
    value = _get_field(message, name)
    if name == "header":
        value = _get_field(value, "frame_id") if _has_field(value, "frame_id") else ""
    return str(value)


def _find_numbers(message: Any, kind: str, what: str) -> tuple[Any, tuple[str, ...]]:
    """Return the part of a message with the numbers of a relation, and the names of its members."""
    leaves = _LEAVES.get(kind, (_VECTOR,))
    inner = _INNER.get(kind, ("vector",))
    part = message
    while True:
        for names in leaves:
            if all(_has_field(part, name) for name in names) and (
                names != _VECTOR or not _has_field(part, "w")
            ):
                return part, names
        inner_names = [name for name in inner if _has_field(part, name)]
        if not inner_names:
            members = " or ".join(", ".join(names) for names in leaves)
            rule = (
                f"a message of a {kind} has the members {members}, itself or in"
                f" {' or '.join(inner)}"
            )
            raise rule_error(what, rule, f"a {type(message).__name__} has not")
        part = _get_field(part, inner_names[0])


def _make_message(kind: str) -> dict[str, Any]:
    """Return a dictionary in the form of the message with a header for a relation."""
    content: dict[str, Any] = dict.fromkeys(_QUATERNION if kind == "Orientation" else _VECTOR, 0.0)
    if kind in ("Pose", "Twist", "Wrench"):
        content = {name: dict(content) for name in _LEAVES[kind][0]}
    return {"header": {"frame_id": ""}, _INNER.get(kind, ("vector",))[0]: content}


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
    quaternion = _read_numbers(part, _QUATERNION, what)
    if not np.any(quaternion):
        rule = "an orientation in a message is a unit quaternion"
        repair = "the sender did not set it; the identity is x=y=z=0, w=1"
        raise rule_error(what, rule, "all four numbers are 0", repair=repair)
    return quaternion
