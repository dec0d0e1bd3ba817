"""Relations in and out of objects of pinocchio, KDL and Drake, which are recognised by their members.

``docs/concepts/relations.md`` says what their numbers mean: pinocchio's ``LOCAL``, ``WORLD`` and
``LOCAL_WORLD_ALIGNED``, KDL's types, which keep neither frames nor reference points, and Drake's
monogram notation. ``Motion``, ``Force``, ``Twist`` and ``Wrench`` have the linear part first;
Drake's spatial vectors the rotational.
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
_Made = TypeVar("_Made")


def relation_class(coord: Coord, what: str) -> type[SemanticRelation]:
    """Return the class of the relation whose coordinates these are; ``what`` names the conversion in the error."""
    if not isinstance(coord, Coord):
        rule = "the coordinates say what the numbers mean, such as TwistCoord('e|C', 'D', '[r]')"
        raise rule_error(what, rule, repr(coord)[:80])
    found: type[SemanticRelation] = getattr(relations, f"Semantic{coord.relation}")
    return found


def make_relation(coord: Coord, numbers: Sequence[ArrayLike], what: str) -> Any:
    """Return the relation of coordinates and vectors (3,), a rotation matrix (3, 3), or both; SI units."""
    relation = relation_class(coord, what)
    values = [np.array(part, dtype=float) for part in numbers]
    if relation is SemanticPose:
        return SemanticPose(coord, VectorAndMatrix(*values))
    if relation is SemanticOrientation:
        return SemanticOrientation(coord, RotationMatrix(values[0]))
    return relation(coord, np.concatenate(values))


def _frame_matrix(pose: SemanticPose) -> Vector:
    """Return the pose of a frame relative to a frame, expressed there, as a matrix (4, 4)."""
    return pose.in_representation(HomogeneousMatrix).matrix


def _read_object(
    value: Any,
    coord: Coord,
    what: str,
    *,
    of: Mapping[str, Sequence[str]],
    number: Callable[[str, Any], ArrayLike] = lambda _, part: part,
) -> Any:
    """Return the relation that an object holds: by its members ``of`` the relation, or else its own numbers."""
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
    """Return what a velocity means that was asked for in one of pinocchio's reference frames.

    Args:
        reference_frame: ``pinocchio.LOCAL``, ``WORLD`` or ``LOCAL_WORLD_ALIGNED``, or its name.
        frame: the frame that was asked for, ``"{g}|C"``.
        world: the world's frame, ``"{h}|D"``.

    Raises:
        UnknownNameError: no such reference frame.
        SemanticError: a frame is not written so.
    """
    point, body, axes, world_body = _resolve_frames(reference_frame, frame, world)
    return TwistCoord.from_names(point=point, body=body, ref_body=world_body, coord=axes)


def pinocchio_wrench(reference_frame: object, *, frame: str, world: str, by: str) -> WrenchCoord:
    """Return what a force means that is given in one of pinocchio's reference frames.

    Args:
        reference_frame: ``pinocchio.LOCAL``, ``WORLD`` or ``LOCAL_WORLD_ALIGNED``, or its name.
        frame: the frame of the body that the force acts on, ``"{g}|C"``.
        world: the world's frame, ``"{h}|D"``.
        by: the body that exerts it; for ``data.f`` of a joint the body before the joint.

    Raises:
        UnknownNameError: no such reference frame.
        SemanticError: a frame is not written so.
    """
    point, body, axes, _ = _resolve_frames(reference_frame, frame, world)
    return WrenchCoord.from_names(point=point, body=body, ref_body=by, coord=axes)


def _resolve_frames(reference_frame: Any, frame: str, world: str) -> tuple[str, str, str, str]:
    """Return point, body, axes and the world's body."""
    name = str(getattr(reference_frame, "name", reference_frame))
    if name not in _REFERENCE_FRAMES:
        raise UnknownNameError.of("reference frame of pinocchio", name, _REFERENCE_FRAMES)
    (_, local, body), (_, aligned, world_body) = read_pose(frame), read_pose(world)
    point = aligned if name == "WORLD" else local
    return point, body, local if name == "LOCAL" else aligned, world_body


def from_pinocchio(value: object, coord: Coord) -> Any:
    """Return the relation that an object of pinocchio's holds.

    Args:
        value: ``SE3`` for a pose, ``Motion`` for a twist, ``Force`` for a wrench, else (3,);
            orientation (3, 3).
        coord: what it means; :func:`pinocchio_twist` and :func:`pinocchio_wrench` say it for the
            reference frames.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its
            numbers.
    """
    halves = ("linear", "angular")
    of = {"Pose": ("translation", "rotation"), "Twist": halves, "Wrench": halves}
    return _read_object(value, coord, "from_pinocchio", of=of)


def to_pinocchio(relation: SemanticRelation, into: Callable[[Vector, Vector], _Made]) -> _Made:
    """Return a pose, a twist or a wrench as an object of pinocchio's.

    Args:
        relation: the relation. An ``SE3`` relates a frame to a frame.
        into: ``pinocchio.SE3``, ``pinocchio.Motion`` or ``pinocchio.Force``.

    Raises:
        SemanticError: a pose that is not that of a frame relative to a frame; or another relation.
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
    raise _class_error("to_pinocchio", rule, relation, "numbers[0] is what pinocchio takes")


def from_kdl(value: object, coord: Coord) -> Any:
    """Return the relation that an object of KDL's holds.

    Args:
        value: ``Frame`` for a pose, ``Rotation`` for an orientation, ``Twist``, ``Wrench``,
            ``Vector`` for the others.
        coord: what it means.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its
            numbers.
    """
    of = {"Pose": ("p", "M"), "Twist": ("vel", "rot"), "Wrench": ("force", "torque")}
    return _read_object(value, coord, "from_kdl", of=of, number=_kdl_numbers)


def to_kdl(relation: SemanticRelation, kdl: Any) -> Any:
    """Return a relation as an object of KDL's.

    Args:
        relation: the relation. A ``Frame`` relates a frame to a frame, a ``Rotation`` is expressed
            in its reference.
        kdl: the module ``PyKDL``, or another with the same classes.

    Raises:
        SemanticError: the relation cannot be said so.
    """
    if not isinstance(relation, SemanticRelation):
        raise rule_error("to_kdl", "a relation with numbers goes out", repr(relation)[:80])
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
    """Return the name of a relation in the monogram notation: of ``TwistCoord("g|C", "D", "[r]")`` it is ``V_DCg_R``.

    Names of frames and bodies begin with a capital; a point of a body is the body's name and the
    point's in small letters (``Cg``), which names the body that moves. The body that exerts a force
    is not part of the notation.

    Raises:
        SemanticError: the notation has no name for it: a pose that does not relate a frame to a
            frame, or an orientation that is not expressed in its reference frame.
    """
    relation_class(coord, "drake_name")
    held = {"Pose": HomogeneousMatrix, "Orientation": RotationMatrix}.get(coord.relation)
    if broken := held.find_violations(coord) if held is not None else ():
        raise SemanticError.of(f"drake_name({coord!r})", broken)
    names = {field: str(getattr(coord, field)) for field in coord.fields}
    points = {
        field: name.lower() for field, name in names.items() if field in ("point", "ref_point")
    }
    return _MONOGRAMS[coord.relation].format(
        **{f: n[:1].upper() + n[1:] for f, n in names.items()} | points
    )


def from_drake(value: object, coord: Coord) -> Any:
    """Return the relation that an object of Drake's holds.

    Args:
        value: a ``RigidTransform`` for a pose, a ``RotationMatrix`` for an orientation, a
            ``SpatialVelocity`` for a twist, a ``SpatialForce`` for a wrench, an array (3,) for the
            others.
        coord: what it means.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its
            numbers.
    """
    halves = ("translational", "rotational")
    of = {
        "Pose": ("translation", "rotation"),
        "Orientation": ("matrix",),
        "Twist": halves,
        "Wrench": halves,
    }

    def number(name: str, value: Any) -> Any:
        held = value() if callable(value) else value
        return held.matrix() if name == "rotation" else held

    return _read_object(value, coord, "from_drake", of=of, number=number)


def to_drake(relation: SemanticRelation, into: Callable[..., _Made]) -> _Made:
    """Return a relation as an object of Drake's.

    Args:
        relation: a pose, an orientation, a twist or a wrench.
        into: ``RigidTransform``, ``RotationMatrix``, ``SpatialVelocity`` or ``SpatialForce``.

    Raises:
        SemanticError: the relation cannot be said so, or is another.
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
    raise _class_error("to_drake", rule, relation, "numbers[0] of a vector is what Drake takes")
