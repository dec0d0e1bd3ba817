"""Relations in and out of pinocchio's ``SE3``, ``Motion`` and ``Force``, and what its reference frames mean.

``Motion`` and ``Force`` have the linear part first, as everywhere here. In which axes and about which point their
numbers are is said by the ``ReferenceFrame`` with which they were asked for. For a frame g of body C and the world's
frame h of body D:

=======================  =================================  =========================================================
``LOCAL``                ``TwistCoord("g|C", "D", "[g]")``  body-fixed: at the frame, in its axes
``WORLD``                ``TwistCoord("h|C", "D", "[h]")``  spatial: of the point of C that is at the world's origin
``LOCAL_WORLD_ALIGNED``  ``TwistCoord("g|C", "D", "[h]")``  at the frame, in the axes of the world
=======================  =================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tmkit.errors import UnknownNameError
from tmkit.relations.conversions.parts import made_of, matrix_of, members, refusal, relation_of
from tmkit.relations.notation import read_pose
from tmkit.relations.representation import Vector
from tmkit.relations.semantic import SemanticPose, SemanticRelation, SemanticTwist, SemanticWrench
from tmkit.relations.semantics import Coord, TwistCoord, WrenchCoord

_REFERENCE_FRAMES = ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED")
_Made = TypeVar("_Made")


def pinocchio_twist(reference_frame: Any, *, frame: str, world: str) -> TwistCoord:
    """Return what a velocity means that was asked for in one of pinocchio's reference frames.

    Args:
        reference_frame: ``pinocchio.LOCAL``, ``WORLD`` or ``LOCAL_WORLD_ALIGNED``, or its name.
        frame: the frame that was asked for, ``"{g}|C"``.
        world: the world's frame, ``"{h}|D"``.

    Raises:
        UnknownNameError: no such reference frame.
        SemanticError: a frame is not written so.
    """
    point, body, axes, world_body = _at(reference_frame, frame, world)
    return TwistCoord.named(point=point, body=body, ref_body=world_body, coord=axes)


def pinocchio_wrench(reference_frame: Any, *, frame: str, world: str, by: str) -> WrenchCoord:
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
    point, body, axes, _ = _at(reference_frame, frame, world)
    return WrenchCoord.named(point=point, body=body, ref_body=by, coord=axes)


def _at(reference_frame: Any, frame: str, world: str) -> tuple[str, str, str, str]:
    """Return point, body, axes and the world's body."""
    name = str(getattr(reference_frame, "name", reference_frame))
    if name not in _REFERENCE_FRAMES:
        raise UnknownNameError.of("reference frame of pinocchio", name, _REFERENCE_FRAMES)
    (_, local, body), (_, aligned, world_body) = read_pose(frame), read_pose(world)
    point = aligned if name == "WORLD" else local
    return point, body, local if name == "LOCAL" else aligned, world_body


def from_pinocchio(value: Any, coord: Coord) -> Any:
    """Return the relation that an object of pinocchio's holds.

    Args:
        value: an ``SE3`` for a pose, a ``Motion`` for a twist, a ``Force`` for a wrench, an array (3,) for the others,
            (3, 3) for an orientation.
        coord: what it means; :func:`pinocchio_twist` and :func:`pinocchio_wrench` say it for the reference frames.

    Raises:
        SemanticError: the object is none of that relation, or the coordinates do not allow its numbers.
    """
    what = "from_pinocchio"
    relation = relation_of(coord, what)
    if relation is SemanticPose:
        return made_of(coord, members(value, ("translation", "rotation"), what), what)
    if relation in (SemanticTwist, SemanticWrench):
        return made_of(coord, members(value, ("linear", "angular"), what), what)
    return made_of(coord, [value], what)


def to_pinocchio(relation: SemanticRelation, into: Callable[[Vector, Vector], _Made]) -> _Made:
    """Return a pose, a twist or a wrench as an object of pinocchio's.

    Args:
        relation: the relation. An ``SE3`` relates a frame to a frame.
        into: ``pinocchio.SE3``, ``pinocchio.Motion`` or ``pinocchio.Force``.

    Raises:
        SemanticError: a pose that is not that of a frame relative to a frame; or another relation.
    """
    if isinstance(relation, SemanticPose):
        matrix = matrix_of(relation)
        return into(np.array(matrix[:3, :3]), np.array(matrix[:3, 3]))
    if isinstance(relation, (SemanticTwist, SemanticWrench)):
        first, second = relation.numbers
        return into(np.array(first), np.array(second))
    repair = "numbers[0] is what pinocchio takes" if isinstance(relation, SemanticRelation) else ""
    rule = "pinocchio has classes for poses, twists and wrenches"
    raise refusal("to_pinocchio", rule, f"a {type(relation).__name__}", repair=repair)
