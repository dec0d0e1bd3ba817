"""Operations by name, on relations with numbers or without: :func:`apply`.

The names are those of the tables in the literature, ``changePoint`` as well as ``change_point``. Without numbers the
rules alone are asked.

Invariants: what is accepted without numbers is accepted with the numbers of a matrix or of a vector, and the other way
round.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from tmkit.errors import UnknownNameError
from tmkit.relations import rules
from tmkit.relations.semantic import SemanticPose, SemanticRelation, differentiate
from tmkit.relations.semantics import Coord, PoseCoord, WrenchCoord
from tmkit.relations.violations import SemanticError, Violation

_RULES: dict[str, Callable[..., Any]] = {
    "inverse": rules.inverse, "inverse2": rules.inverse2, "compose": lambda x, y: rules.compose(x, y)[0],
    "change_point": rules.change_point,
    "change_point_body": lambda x, by: rules.change_point(x, by, keeps_body=False),
    "change_reference_point": rules.change_ref_point,
    "change_reference_point_body": lambda x, by: rules.change_ref_point(x, by, keeps_body=False),
    "change_orientation_frame": rules.change_ori, "change_reference_orientation_frame": rules.change_ref_ori,
    "change_coordinate_frame": rules.change_coord, "change_reference_body": rules.change_ref_body,
    "change_body": rules.change_body, "integrate": rules.integrate,
    "differentiate": lambda x, y=None: rules.differentiate(x, y), "dot": rules.dot, "pose": rules.pose_of,
    "position": rules.position_of, "orientation": rules.orientation_of,
}  # fmt: skip
_ALIASES = {
    "change_ref_point": "change_reference_point", "change_ref_point_body": "change_reference_point_body",
    "change_orient_frame": "change_orientation_frame", "change_ori_frame": "change_orientation_frame",
    "change_ref_orientation_frame": "change_reference_orientation_frame",
    "change_ref_orient_frame": "change_reference_orientation_frame", "change_coord_frame": "change_coordinate_frame",
    "change_ref_body": "change_reference_body", "power": "dot",
}  # fmt: skip

OPERATIONS = tuple(_RULES)
"""Names of all operations; camel case and short forms (``changeRefPoint``) are understood as well."""


def apply(op: str, *relations: Any) -> Any:
    """Carry out an operation by its name; the result has numbers where the operands have. ``dot`` is the power in W.

    Args:
        op: the operation, one of :data:`OPERATIONS` or its name in camel case.
        relations: the operands: all with numbers, or all coordinates without; for ``integrate`` and ``differentiate``
            with numbers also the time in seconds.

    Raises:
        UnknownNameError: no such operation.
        SemanticError: a rule is broken, or the operation does not exist for these relations.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
    name = _ALIASES.get(name, name)
    if name not in _RULES:
        raise UnknownNameError.of("operation", op, OPERATIONS)
    with_numbers = [isinstance(relation, SemanticRelation) for relation in relations]
    if not with_numbers or not any(with_numbers):
        return _without_numbers(name, relations)
    if any(isinstance(relation, Coord) for relation in relations):
        rule = "the operands have numbers, all or none"
        kinds = " and ".join(type(relation).__name__ for relation in relations)
        repair = "give numbers to the others, or take .coord of these"
        raise SemanticError.of(name, [Violation(rule, kinds, repair=repair)])
    if name == "pose":
        return SemanticPose.of(*relations)
    if name == "dot" and getattr(relations[-1], "coord", None).__class__ is WrenchCoord:
        relations = relations[::-1]  # a power is that of either order
    first, *others = relations
    method: Any = partial(differentiate, first) if name == "differentiate" else getattr(first, name, None)
    if method is None or not isinstance(first, SemanticRelation):
        _refuse(name, relations)
    if name in ("position", "orientation"):
        return method
    try:
        return method(*others)
    except (TypeError, AttributeError) as error:  # the wrong number or kind of operands
        if isinstance(error, SemanticError):
            raise
        _refuse(name, relations)


def _without_numbers(name: str, relations: tuple[Any, ...]) -> Any:
    operands = [relation for relation in relations if not isinstance(relation, (int, float))]
    if not operands or not isinstance(operands[0], Coord) or not all(isinstance(o, (Coord, str)) for o in operands):
        _refuse(name, relations)
    if name in ("position", "orientation") and not isinstance(operands[0], PoseCoord):
        _refuse(name, relations)
    try:
        return _RULES[name](*operands)
    except TypeError:  # the wrong number of operands
        _refuse(name, relations)


def _refuse(name: str, relations: tuple[Any, ...]) -> NoReturn:
    coords = [one.coord if isinstance(one, SemanticRelation) else one for one in relations]
    kinds = [f"a {coord.relation}" if hasattr(coord, "relation") else repr(coord) for coord in coords]
    raise SemanticError.of(name, [Violation(f"there is no {name} of these operands", " and ".join(kinds) or "nothing")])
