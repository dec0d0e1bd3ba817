"""Conversion of relations from and to objects of pinocchio, KDL and Drake, by their members.

``docs/concepts/relations.md`` describes the semantics of their numbers: pinocchio's ``LOCAL``,
``WORLD`` and ``LOCAL_WORLD_ALIGNED``, KDL's types, which store neither frames nor reference points,
and Drake's monogram notation. ``Motion``, ``Force``, ``Twist`` and ``Wrench`` have the linear part
first. Drake's spatial vectors have the rotational part first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tmkit import relations
from tmkit.errors import UnknownNameError
from tmkit.relations.representation import Vector
from tmkit.relations.representations import HomogeneousMatrix, RotationMatrix, VectorAndMatrix
from tmkit.relations.semantic.base import SemanticRelation, require_one
from tmkit.relations.semantic.constant import SemanticOrientation, SemanticPose
from tmkit.relations.semantic.velocities_and_forces import SemanticTwist, SemanticWrench
from tmkit.relations.semantics import Coord, TwistCoord, WrenchCoord, read_pose
from tmkit.relations.violations import SemanticError, rule_error

_REFERENCE_FRAMES = ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED")
_MONOGRAMS = {
    "Position": "p_{ref_body}{ref_point}{body}{point}_{coord}",
    "Orientation": "R_{ref_ori}{ori}",
    "Pose": "X_{ref_ori}{ori}",
    "LinearVelocity": "v_{ref_body}{body}{point}_{coord}",
    "AngularVelocity": "w_{ref_body}{body}_{coord}",
    "Twist": "V_{ref_body}{body}{point}_{coord}",
    "Force": "f_{body}_{coord}",
    "Torque": "t_{body}{point}_{coord}",
    "Wrench": "F_{body}{point}_{coord}",
}
_Object = TypeVar("_Object")


def relation_class(coord: Coord, what: str) -> type[SemanticRelation]:
    """Return the class of the relation with the given coordinates.

    Args:
        coord: coordinates.
        what: name of the conversion in messages.

    Raises:
        SemanticError: if the argument is not coordinates.
    """
    if not isinstance(coord, Coord):
        rule = (
            "coordinates give the semantics of the numbers, such as TwistCoord('e|C', 'D', '[r]')"
        )
        raise rule_error(what, rule, repr(coord)[:80])
    relation: type[SemanticRelation] = getattr(relations, f"Semantic{coord.relation}")
    return relation


def make_relation(coord: Coord, numbers: Sequence[ArrayLike], what: str) -> Any:
    """Create a relation from coordinates and vectors (3,), a rotation matrix (3, 3), or both."""
    relation = relation_class(coord, what)
    values = [np.array(part, dtype=float) for part in numbers]
    if relation is SemanticPose:
        return SemanticPose(coord, VectorAndMatrix(*values))
    if relation is SemanticOrientation:
        return SemanticOrientation(coord, RotationMatrix(values[0]))
    return relation(coord, np.concatenate(values))


def _frame_matrix(pose: SemanticPose) -> Vector:
    """Return the matrix (4, 4) of a pose between frames, expressed in its reference frame."""
    return pose.in_representation(HomogeneousMatrix).matrix


def _read_object(
    value: Any,
    coord: Coord,
    what: str,
    *,
    of: Mapping[str, Sequence[str]],
    number: Callable[[str, Any], ArrayLike] = lambda _, part: part,
) -> Any:
    """Create a relation from the members of an object, or from the object as an array.

    Args:
        value: object of a library.
        coord: coordinates of the relation.
        what: name of the conversion in messages.
        of: names of the members by relation.
        number: function that converts a member with its name to numbers.
    """
    relation_class(coord, what)
    names = of.get(coord.relation, ())
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        raise rule_error(
            what,
            f"it has {' and '.join(names)}",
            f"a {type(value).__name__} has no {', no '.join(missing)}",
        )
    numbers = [number(name, getattr(value, name)) for name in names]
    return make_relation(coord, numbers or [number(coord.relation, value)], what)


def _class_error(operation: str, rule: str, relation: object, repair: str) -> SemanticError:
    repair = repair if isinstance(relation, SemanticRelation) else ""
    return rule_error(operation, rule, f"a {type(relation).__name__}", repair=repair)


def pinocchio_twist(reference_frame: object, *, frame: str, world: str) -> TwistCoord:
    """Return the coordinates of a velocity in one of pinocchio's reference frames.

    Args:
        reference_frame: ``pinocchio.LOCAL``, ``WORLD`` or ``LOCAL_WORLD_ALIGNED``, or its name.
        frame: requested frame, ``"{g}|C"``.
        world: frame of the world, ``"{h}|D"``.

    Raises:
        UnknownNameError: if the reference frame is unknown.
        SemanticError: if a frame has another notation.
    """
    point, body, axes, world_body = _resolve_frames(reference_frame, frame, world)
    return TwistCoord.from_names(point=point, body=body, ref_body=world_body, coord=axes)


def pinocchio_wrench(reference_frame: object, *, frame: str, world: str, by: str) -> WrenchCoord:
    """Return the coordinates of a force in one of pinocchio's reference frames.

    Args:
        reference_frame: ``pinocchio.LOCAL``, ``WORLD`` or ``LOCAL_WORLD_ALIGNED``, or its name.
        frame: frame of the body on which the force acts, ``"{g}|C"``.
        world: frame of the world, ``"{h}|D"``.
        by: body that exerts the force; for ``data.f`` of a joint the body before the joint.

    Raises:
        UnknownNameError: if the reference frame is unknown.
        SemanticError: if a frame has another notation.
    """
    point, body, axes, _ = _resolve_frames(reference_frame, frame, world)
    return WrenchCoord.from_names(point=point, body=body, ref_body=by, coord=axes)


def _resolve_frames(reference_frame: Any, frame: str, world: str) -> tuple[str, str, str, str]:
    """Return point, body, axes and the body of the world."""
    name = str(getattr(reference_frame, "name", reference_frame))
    if name not in _REFERENCE_FRAMES:
        raise UnknownNameError.of("reference frame of pinocchio", name, _REFERENCE_FRAMES)
    (_, local, body), (_, aligned, world_body) = read_pose(frame), read_pose(world)
    point = aligned if name == "WORLD" else local
    return point, body, local if name == "LOCAL" else aligned, world_body


def from_pinocchio(value: object, coord: Coord) -> Any:
    """Create a relation from an object of pinocchio.

    Args:
        value: ``SE3`` for a pose, ``Motion`` for a twist, ``Force`` for a wrench, an array (3, 3)
            for an orientation, an array (3,) for other relations.
        coord: coordinates of the relation; :func:`pinocchio_twist` and :func:`pinocchio_wrench`
            return them for the reference frames.

    Raises:
        SemanticError: if the object is of another relation, or the coordinates do not allow its
            numbers.
    """
    halves = ("linear", "angular")
    of = {"Pose": ("translation", "rotation"), "Twist": halves, "Wrench": halves}
    return _read_object(value, coord, "from_pinocchio", of=of)


def to_pinocchio(relation: SemanticRelation, into: Callable[[Vector, Vector], _Object]) -> _Object:
    """Return a pose, twist or wrench as an object of pinocchio.

    Args:
        relation: pose between frames, twist or wrench.
        into: ``pinocchio.SE3``, ``pinocchio.Motion`` or ``pinocchio.Force``.

    Raises:
        SemanticError: if the relation is a pose that is not between frames, or has another kind.
    """
    if isinstance(relation, SemanticRelation):
        require_one(relation, "to_pinocchio")
    if isinstance(relation, SemanticPose):
        matrix = _frame_matrix(relation)
        return into(np.array(matrix[:3, :3]), np.array(matrix[:3, 3]))
    if isinstance(relation, (SemanticTwist, SemanticWrench)):
        first, second = relation.numbers
        return into(np.array(first), np.array(second))
    rule = "pinocchio has classes for poses, twists and wrenches"
    raise _class_error("to_pinocchio", rule, relation, "use numbers[0] for pinocchio")


def from_kdl(value: object, coord: Coord) -> Any:
    """Create a relation from an object of KDL.

    Args:
        value: ``Frame`` for a pose, ``Rotation`` for an orientation, ``Twist``, ``Wrench``, or
            ``Vector`` for other relations.
        coord: coordinates of the relation.

    Raises:
        SemanticError: if the object is of another relation, or the coordinates do not allow its
            numbers.
    """
    of = {"Pose": ("p", "M"), "Twist": ("vel", "rot"), "Wrench": ("force", "torque")}
    return _read_object(value, coord, "from_kdl", of=of, number=_kdl_numbers)


def to_kdl(relation: SemanticRelation, kdl: Any) -> Any:
    """Return a relation as an object of KDL.

    Args:
        relation: relation with numbers. A pose is between frames; an orientation is expressed in
            its reference frame.
        kdl: module ``PyKDL``, or one with the same classes.

    Raises:
        SemanticError: if KDL cannot represent the relation.
    """
    if not isinstance(relation, SemanticRelation):
        raise rule_error("to_kdl", "the argument is a relation with numbers", repr(relation)[:80])
    require_one(relation, "to_kdl")
    if isinstance(relation, SemanticPose):
        matrix = _frame_matrix(relation)
        return kdl.Frame(_rotation(matrix[:3, :3], kdl), kdl.Vector(*matrix[:3, 3].tolist()))
    if isinstance(relation, SemanticOrientation):
        return _rotation(relation.in_representation(RotationMatrix).matrix, kdl)
    halves = [kdl.Vector(*number.tolist()) for number in relation.numbers]
    if isinstance(relation, SemanticTwist):
        return kdl.Twist(*halves)
    return kdl.Wrench(*halves) if isinstance(relation, SemanticWrench) else halves[0]


def _rotation(matrix: Vector, kdl: Any) -> Any:
    return kdl.Rotation(*matrix.ravel().tolist())  # row by row


def _kdl_numbers(name: str, value: Any) -> list[Any]:
    is_matrix = name in ("M", "Orientation")
    try:
        if is_matrix:
            return [[float(value[row, column]) for column in range(3)] for row in range(3)]
        return [float(value[index]) for index in range(3)]
    except (TypeError, ValueError, IndexError, KeyError):
        rule = (
            "a rotation has the elements [0, 0] to [2, 2]"
            if is_matrix
            else "a vector has the elements 0, 1 and 2"
        )
        raise rule_error("from_kdl", rule, f"a {type(value).__name__}") from None


def drake_name(coord: Coord) -> str:
    """Return the name of a relation in Drake's monogram notation.

    The name of ``TwistCoord("g|C", "D", "[r]")`` is ``V_DCg_R``. Names of frames and bodies begin
    with a capital. A point is the name of its body and its own name in small letters (``Cg``). The
    notation omits the body that exerts a force.

    Raises:
        SemanticError: if the notation has no name: for a pose that is not between frames, or an
            orientation that is not expressed in its reference frame.
    """
    relation_class(coord, "drake_name")
    classes = {"Pose": HomogeneousMatrix, "Orientation": RotationMatrix}
    representation = classes.get(coord.relation)
    if representation is not None and (violations := representation.find_violations(coord)):
        raise SemanticError.of(f"drake_name({coord!r})", violations)
    names = {field: str(getattr(coord, field)) for field in coord.fields}
    points = {
        field: name.lower() for field, name in names.items() if field in ("point", "ref_point")
    }
    return _MONOGRAMS[coord.relation].format(
        **{f: n[:1].upper() + n[1:] for f, n in names.items()} | points
    )


def from_drake(value: object, coord: Coord) -> Any:
    """Create a relation from an object of Drake.

    Args:
        value: ``RigidTransform`` for a pose, ``RotationMatrix`` for an orientation,
            ``SpatialVelocity`` for a twist, ``SpatialForce`` for a wrench, or an array (3,) for
            other relations.
        coord: coordinates of the relation.

    Raises:
        SemanticError: if the object is of another relation, or the coordinates do not allow its
            numbers.
    """
    halves = ("translational", "rotational")
    of = {
        "Pose": ("translation", "rotation"),
        "Orientation": ("matrix",),
        "Twist": halves,
        "Wrench": halves,
    }
    return _read_object(value, coord, "from_drake", of=of, number=_drake_numbers)


def _drake_numbers(name: str, value: Any) -> Any:
    """Return the numbers of a member of an object of Drake, which may be a method."""
    part = value() if callable(value) else value
    return part.matrix() if name == "rotation" else part


def to_drake(relation: SemanticRelation, into: Callable[..., _Object]) -> _Object:
    """Return a relation as an object of Drake.

    Args:
        relation: pose, orientation, twist or wrench.
        into: ``RigidTransform``, ``RotationMatrix``, ``SpatialVelocity`` or ``SpatialForce``.

    Raises:
        SemanticError: if Drake cannot represent the relation.
    """
    if isinstance(relation, SemanticRelation):
        require_one(relation, "to_drake")
    if isinstance(relation, SemanticPose):
        return into(np.array(_frame_matrix(relation)))
    if isinstance(relation, SemanticOrientation):
        return into(np.array(relation.in_representation(RotationMatrix).matrix))
    if isinstance(relation, (SemanticTwist, SemanticWrench)):
        linear, angular = relation.numbers
        return into(np.array(angular), np.array(linear))
    rule = "Drake has classes for poses, orientations, twists and wrenches"
    raise _class_error("to_drake", rule, relation, "use numbers[0] of a vector for Drake")
