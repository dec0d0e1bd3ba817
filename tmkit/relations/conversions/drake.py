"""Relations in and out of Drake's ``RigidTransform``, ``SpatialVelocity`` and ``SpatialForce``, and their names there.

Drake's spatial vectors have the rotational part first, and give their parts by name. Its monogram notation puts the
reference before the target and the axes last: ``X_HG`` is the pose of g relative to h; ``V_DCg_R`` the spatial velocity
of body C at point g, measured in D, expressed in r. Axes that are omitted are those of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tmkit.relations.conversions.parts import made_of, matrix_of, members, refusal, relation_of
from tmkit.relations.representations import HomogeneousMatrix, RotationMatrix
from tmkit.relations.semantic import SemanticOrientation, SemanticPose, SemanticRelation, SemanticTwist, SemanticWrench
from tmkit.relations.semantics import (
    AngularVelocityCoord,
    Coord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.violations import SemanticError

_Made = TypeVar("_Made")


def drake_name(coord: Coord) -> str:
    """Return the name of a relation in the monogram notation.

    Names of frames and bodies begin with a capital; a point of a body is the body's name and the point's in small
    letters (``Cg``), which names the body that moves. The body that exerts a force is not part of the notation.

    Args:
        coord: the coordinates, e.g. ``TwistCoord("g|C", "D", "[r]")``: ``V_DCg_R``.

    Raises:
        SemanticError: the notation has no name for it: a pose that does not relate a frame to a frame, or an
            orientation that is not expressed in its reference frame.
    """
    relation_of(coord, "drake_name")
    if isinstance(coord, PoseCoord):
        _require(HomogeneousMatrix, coord)
        return f"X_{_capital(coord.ref_ori)}{_capital(coord.ori)}"
    if isinstance(coord, OrientationCoord):
        _require(RotationMatrix, coord)
        return f"R_{_capital(coord.ref_ori)}{_capital(coord.ori)}"
    axes = _capital(coord.coord)
    body, reference = _capital(coord.body), _capital(coord.ref_body)
    if isinstance(coord, PositionCoord):
        return f"p_{reference}{coord.ref_point.lower()}{body}{coord.point.lower()}_{axes}"
    if isinstance(coord, AngularVelocityCoord):
        return f"w_{reference}{body}_{axes}"
    if isinstance(coord, ForceCoord):
        return f"f_{body}_{axes}"
    at = f"{body}{coord.point.lower()}"
    if isinstance(coord, (LinearVelocityCoord, TwistCoord)):
        return f"{'V' if isinstance(coord, TwistCoord) else 'v'}_{reference}{at}_{axes}"
    kinds: dict[type, str] = {TorqueCoord: "t", WrenchCoord: "F"}
    return f"{kinds[type(coord)]}_{at}_{axes}"


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _require(representation: Any, coord: Coord) -> None:
    """Refuse coordinates that a representation cannot say."""
    numbers = (np.zeros(3), np.eye(3)) if representation is HomogeneousMatrix else (np.eye(3),)
    broken = representation.of(numbers).broken_by(coord)
    if broken:
        raise SemanticError.of(f"drake_name({coord!r})", broken)


def from_drake(value: Any, coord: Coord) -> Any:
    """Return the relation that an object of Drake's holds.

    Args:
        value: a ``RigidTransform`` for a pose, a ``RotationMatrix`` for an orientation, a ``SpatialVelocity`` for a
            twist, a ``SpatialForce`` for a wrench, an array (3,) for the others.
        coord: what it means.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its numbers.
    """
    what = "from_drake"
    relation = relation_of(coord, what)
    if relation is SemanticPose:
        translation, rotation = members(value, ("translation", "rotation"), what)
        return made_of(coord, [translation(), rotation().matrix()], what)
    if relation is SemanticOrientation:
        return made_of(coord, [members(value, ("matrix",), what)[0]()], what)
    if relation in (SemanticTwist, SemanticWrench):
        return made_of(coord, [half() for half in members(value, ("translational", "rotational"), what)], what)
    return made_of(coord, [value], what)


def to_drake(relation: SemanticRelation, into: Callable[..., _Made]) -> _Made:
    """Return a relation as an object of Drake's.

    Args:
        relation: a pose, an orientation, a twist or a wrench.
        into: ``RigidTransform``, ``RotationMatrix``, ``SpatialVelocity`` or ``SpatialForce``.

    Raises:
        SemanticError: the relation cannot be said so, or is another.
    """
    if isinstance(relation, SemanticPose):
        return into(np.array(matrix_of(relation)))
    if isinstance(relation, SemanticOrientation):
        return into(np.array(relation.in_representation(RotationMatrix).matrix))
    if isinstance(relation, (SemanticTwist, SemanticWrench)):
        linear, angular = relation.numbers
        return into(np.array(angular), np.array(linear))
    repair = "numbers[0] of a vector is what Drake takes" if isinstance(relation, SemanticRelation) else ""
    rule = "Drake has classes for poses, orientations, twists and wrenches"
    raise refusal("to_drake", rule, f"a {type(relation).__name__}", repair=repair)
