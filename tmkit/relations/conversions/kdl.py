"""Relations in and out of KDL's ``Frame``, ``Rotation``, ``Vector``, ``Twist`` and ``Wrench``, as ``PyKDL`` has them.

KDL's types are numbers alone: neither the frames nor the reference point of a twist are kept. Its ``Twist`` has ``vel``
and ``rot``, its ``Wrench`` ``force`` and ``torque``, the linear part first. ``twist.RefPoint(v)`` is ``change_point``
with the position of the new point relative to the old one; ``rotation * twist`` is ``change_coordinate_frame``;
``frame * twist`` is both at once, from the frame to its reference. The velocity solvers of chains give the twist of the
tip's origin in the axes of the base.
"""

from __future__ import annotations

from typing import Any

from tmkit.relations.conversions.parts import made_of, matrix_of, members, refusal, relation_of
from tmkit.relations.representation import Vector
from tmkit.relations.representations import RotationMatrix
from tmkit.relations.semantic import SemanticOrientation, SemanticPose, SemanticRelation, SemanticTwist, SemanticWrench
from tmkit.relations.semantics import Coord


def from_kdl(value: Any, coord: Coord) -> Any:
    """Return the relation that an object of KDL's holds.

    Args:
        value: a ``Frame`` for a pose, a ``Rotation`` for an orientation, a ``Twist``, a ``Wrench``, a ``Vector`` for
            the others.
        coord: what it means.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its numbers.
    """
    what = "from_kdl"
    relation = relation_of(coord, what)
    if relation is SemanticPose:
        p, turned = members(value, ("p", "M"), what)
        return made_of(coord, [_vector(p), _matrix(turned)], what)
    if relation is SemanticOrientation:
        return made_of(coord, [_matrix(value)], what)
    if relation is SemanticTwist:
        return made_of(coord, [_vector(half) for half in members(value, ("vel", "rot"), what)], what)
    if relation is SemanticWrench:
        return made_of(coord, [_vector(half) for half in members(value, ("force", "torque"), what)], what)
    return made_of(coord, [_vector(value)], what)


def to_kdl(relation: SemanticRelation, kdl: Any) -> Any:
    """Return a relation as an object of KDL's.

    Args:
        relation: the relation. A ``Frame`` relates a frame to a frame, a ``Rotation`` is expressed in its reference.
        kdl: the module ``PyKDL``, or another with the same classes.

    Raises:
        SemanticError: the relation cannot be said so.
    """
    if not isinstance(relation, SemanticRelation):
        raise refusal("to_kdl", "a relation with numbers goes out", repr(relation)[:80])
    if isinstance(relation, SemanticPose):
        matrix = matrix_of(relation)
        return kdl.Frame(_rotation(matrix[:3, :3], kdl), kdl.Vector(*matrix[:3, 3].tolist()))
    if isinstance(relation, SemanticOrientation):
        return _rotation(relation.in_representation(RotationMatrix).matrix, kdl)
    halves = [kdl.Vector(*number.tolist()) for number in relation.numbers]
    if isinstance(relation, SemanticTwist):
        return kdl.Twist(*halves)
    if isinstance(relation, SemanticWrench):
        return kdl.Wrench(*halves)
    return halves[0]


def _rotation(matrix: Vector, kdl: Any) -> Any:
    return kdl.Rotation(*matrix.ravel().tolist())  # row by row


def _vector(value: Any) -> list[float]:
    try:
        return [float(value[index]) for index in range(3)]
    except (TypeError, ValueError, IndexError, KeyError):
        raise refusal("from_kdl", "a vector has the elements 0, 1 and 2", f"a {type(value).__name__}") from None


def _matrix(value: Any) -> list[list[float]]:
    try:
        return [[float(value[row, column]) for column in range(3)] for row in range(3)]
    except (TypeError, ValueError, IndexError, KeyError):
        raise refusal("from_kdl", "a rotation has the elements [0, 0] to [2, 2]", f"a {type(value).__name__}") from None
