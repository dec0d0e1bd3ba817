"""Operations by name, on relations with or without numbers, and the JSON form of relations.

The names of operations are those of the tables in the literature, ``changePoint`` as well as
``change_point``. Without numbers only the rules apply. They accept the same operands as with the
numbers of a matrix or vector.

``{"rel": "Twist", "point": "e", "body": "C", "ref_body": "D", "coord": "r"}`` is a twist without
numbers. Without ``coord`` it is semantics only. ``values`` has the numbers, with the name of the
representation and its fields: ``"values": {"representation": "TwistVector", "vector": [...]}``. A
``covariance`` has the frame of its axes.

Custom representations need their names: ``representations={"Cayley": Cayley}``. A dataclass is
written by its fields. Another class has ``to_json()``, which returns a dict, and a class method
``from_json(dict)``. ``from_dict(to_dict(x))`` equals ``x`` bitwise, numbers included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tmkit import relations
from tmkit.errors import UnknownNameError
from tmkit.relations import representations, rules, semantics
from tmkit.relations.representation import Representation
from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantic.constant import SemanticPose
from tmkit.relations.semantic.velocities_and_forces import (
    SemanticTwist,
    SemanticWrench,
    differentiate,
)
from tmkit.relations.semantics import Coord, PoseCoord, Semantics, WrenchCoord, quote_name
from tmkit.relations.violations import SemanticError, Violation, rule_error

_RULES: dict[str, Callable[..., Any]] = {
    "inverse": rules.inverse,
    "inverse2": rules.inverse2,
    "compose": lambda x, y: rules.compose(x, y)[0],
    "change_point": rules.change_point,
    "change_point_body": lambda x, by: rules.change_point(x, by, keeps_body=False),
    "change_reference_point": rules.change_ref_point,
    "change_reference_point_body": lambda x, by: rules.change_ref_point(x, by, keeps_body=False),
    "change_orientation_frame": rules.change_ori,
    "change_reference_orientation_frame": rules.change_ref_ori,
    "change_coordinate_frame": rules.change_coord,
    "change_reference_body": rules.change_ref_body,
    "change_body": rules.change_body,
    "integrate": rules.integrate,
    "differentiate": lambda x, y=None: rules.differentiate(x, y),
    "dot": rules.dot,
    "pose": rules.pose_of,
    "twist": rules.twist_of,
    "wrench": rules.wrench_of,
    "position": rules.position_of,
    "orientation": rules.orientation_of,
}
_ALIASES = {
    "change_ref_point": "change_reference_point",
    "change_ref_point_body": "change_reference_point_body",
    "change_orient_frame": "change_orientation_frame",
    "change_ori_frame": "change_orientation_frame",
    "change_ref_orientation_frame": "change_reference_orientation_frame",
    "change_ref_orient_frame": "change_reference_orientation_frame",
    "change_coord_frame": "change_coordinate_frame",
    "change_ref_body": "change_reference_body",
    "power": "dot",
}

_COMPOSED: dict[str, Any] = {"pose": SemanticPose, "twist": SemanticTwist, "wrench": SemanticWrench}
"""Relations of two parts, by the names of the operations that compose them."""

OPERATIONS = tuple(_RULES)
"""Names of all operations. Camel case and short forms (``changeRefPoint``) are also accepted."""


def apply(op: str, *relations: Any) -> Any:
    """Apply an operation by its name.

    The result has numbers if the operands have. ``dot`` returns the power [W].

    Args:
        op: operation, one of :data:`OPERATIONS` or its name in camel case.
        relations: operands, all with numbers or all without. ``integrate`` and ``differentiate`` of
            numbers also take a duration [s].

    Raises:
        UnknownNameError: if the operation is unknown.
        SemanticError: if a rule is violated, or the operation is undefined for these relations.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
    name = _ALIASES.get(name, name)
    if name not in _RULES:
        raise UnknownNameError.of("operation", op, OPERATIONS)
    with_numbers = [isinstance(relation, SemanticRelation) for relation in relations]
    if not with_numbers or not any(with_numbers):
        return _apply_rule(name, relations)
    if any(isinstance(relation, Coord) for relation in relations):
        rule = "the operands have numbers, all or none"
        kinds = " and ".join(type(relation).__name__ for relation in relations)
        repair = "add numbers to all operands, or pass .coord of each"
        raise rule_error(name, rule, kinds, repair=repair)
    if name == "dot" and getattr(relations[-1], "coord", None).__class__ is WrenchCoord:
        relations = relations[::-1]  # the power does not depend on the order
    first, *arguments = relations
    method: Any = (
        partial(differentiate, first) if name == "differentiate" else getattr(first, name, None)
    )
    if name in _COMPOSED:
        method, arguments = _COMPOSED[name].of, [*relations]
    if method is None or not isinstance(first, SemanticRelation):
        _raise_undefined(name, relations)
    if name in ("position", "orientation"):
        return method
    try:
        return method(*arguments)
    except (TypeError, AttributeError) as error:  # the wrong number or kind of operands
        if isinstance(error, SemanticError):
            raise
        _raise_undefined(name, relations)


def _apply_rule(name: str, relations: tuple[Any, ...]) -> Any:
    operands = [relation for relation in relations if not isinstance(relation, (int, float))]
    if (
        not operands
        or not isinstance(operands[0], Coord)
        or not all(isinstance(o, (Coord, str)) for o in operands)
    ):
        _raise_undefined(name, relations)
    if name in ("position", "orientation") and not isinstance(operands[0], PoseCoord):
        _raise_undefined(name, relations)
    try:
        return _RULES[name](*operands)
    except TypeError:  # the wrong number of operands
        _raise_undefined(name, relations)


def _raise_undefined(name: str, relations: tuple[Any, ...]) -> NoReturn:
    coords = [
        relation.coord if isinstance(relation, SemanticRelation) else relation
        for relation in relations
    ]
    kinds = [
        f"a {coord.relation}" if hasattr(coord, "relation") else repr(coord) for coord in coords
    ]
    raise rule_error(
        name, f"there is no {name} of these operands", " and ".join(kinds) or "nothing"
    )


_RELATIONS = (
    "Position",
    "Orientation",
    "Pose",
    "LinearVelocity",
    "AngularVelocity",
    "Twist",
    "Force",
    "Torque",
    "Wrench",
)
_REPRESENTATIONS: dict[str, Any] = {
    name: getattr(representations, name) for name in dir(representations)
}


Names = Mapping[str, Any]
"""Classes of representations by their names in JSON."""


def to_dict(
    relation: Semantics | SemanticRelation, *, representations: Names | None = None
) -> dict[str, Any]:
    """Return a relation as plain values.

    Args:
        relation: relation with or without numbers, or semantics.
        representations: custom classes of representations, by their names in JSON.

    Raises:
        SemanticError: if a representation is not a dataclass and has no ``to_json``, or a custom
            name is that of a built-in class.
    """
    if not isinstance(relation, SemanticRelation):
        return {
            "rel": relation.relation,
            **{name: quote_name(getattr(relation, name)) for name in relation.fields},
        }
    values = _representation_to_dict(
        relation.representation,
        {cls: name for name, cls in _representation_classes(representations).items()},
    )
    data = {**to_dict(relation.coord), "values": values}
    if relation.covariance is not None:
        data["covariance"] = {
            "axes": relation.covariance_axes,
            "matrix": relation.covariance.tolist(),
        }
    return data


def from_dict(data: Mapping[str, Any], *, representations: Names | None = None) -> Any:
    """Return the semantics, coordinates or relation of plain values.

    Args:
        data: plain values.
        representations: custom classes of representations, by their names in JSON.

    Raises:
        SemanticError: if a field is missing, unknown or no name.
        UnknownNameError: if the relation or representation is unknown.
    """
    if not isinstance(data, Mapping):
        rule = "a relation in JSON is an object with the name of the relation in 'rel'"
        raise rule_error("from_dict", rule, repr(data)[:80])
    rel = data.get("rel")
    if rel not in _RELATIONS:
        raise UnknownNameError.of("relation", str(rel), _RELATIONS, where="rel")
    kind = "Coord" if "coord" in data else "Semantics"
    cls: type[Semantics] = getattr(semantics, f"{rel}{kind}")
    names = {
        name: value for name, value in data.items() if name not in ("rel", "values", "covariance")
    }
    violations = [
        Violation(f"a {rel} has the field {name}", "it is missing")
        for name in cls.fields
        if name not in names
    ]
    violations += [
        Violation(f"a {rel} has no field {name}", repr(names[name]))
        for name in names
        if name not in cls.fields
    ]
    if violations:
        raise SemanticError.of("from_dict", violations)
    coord = cls.from_names(**names)
    if "values" not in data:
        return coord
    if not isinstance(coord, Coord):
        raise rule_error(
            "from_dict", "numbers are expressed in a frame", "there are values, but no coord"
        )
    relation_class: type[SemanticRelation] = getattr(relations, f"Semantic{rel}")
    classes = _representation_classes(representations)
    relation = relation_class(coord, _representation_from_dict(data["values"], classes))
    if "covariance" not in data:
        return relation
    spread = data["covariance"]
    if (
        not isinstance(spread, Mapping)
        or spread.get("axes") != relation.covariance_axes
        or "matrix" not in spread
    ):
        rule = f"a covariance has a matrix and the axes {relation.covariance_axes}"
        raise rule_error("from_dict", rule, repr(spread)[:80])
    return relation.with_covariance(spread["matrix"])


def _representation_classes(representations: Names | None) -> dict[str, Any]:
    conflicts = sorted(set(representations or ()) & set(_REPRESENTATIONS))
    if conflicts:
        rule = "the name of a custom representation is not built-in"
        raise rule_error("representations", rule, ", ".join(conflicts))
    return {**_REPRESENTATIONS, **(representations or {})}


def _representation_to_dict(representation: Any, names: Mapping[Any, str]) -> dict[str, Any]:
    name = names.get(type(representation), type(representation).__name__)
    if hasattr(representation, "to_json"):
        return {"representation": name, **representation.to_json()}
    if not is_dataclass(representation):
        rule = "a representation is written by the fields of its dataclass, or by its to_json()"
        raise rule_error("to_dict", rule, type(representation).__name__)
    values = {
        field.name: _to_plain(getattr(representation, field.name), names)
        for field in fields(representation)
    }
    return {"representation": name, **values}


def _to_plain(value: Any, names: Mapping[Any, str]) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Semantics):
        return to_dict(value)
    return _representation_to_dict(value, names) if isinstance(value, Representation) else value


def _representation_from_dict(data: Any, classes: Mapping[str, Any]) -> Any:
    if not isinstance(data, Mapping) or "representation" not in data:
        raise rule_error("from_dict", "values have a representation", repr(data)[:80])
    name = data["representation"]
    if name not in classes:
        raise UnknownNameError.of("representation", str(name), classes, where="values")
    cls = classes[name]
    values = {key: value for key, value in data.items() if key != "representation"}
    if hasattr(cls, "from_json"):
        return cls.from_json(values)
    names = [field.name for field in fields(cls)]
    arguments = {key: _field_from_dict(value, classes) for key, value in values.items()}
    rule = f"a {name} holds {', '.join(names)}"
    unknown = [Violation(rule, key) for key in arguments if key not in names]
    if unknown:
        raise SemanticError.of("from_dict", unknown)
    try:
        return cls(**arguments)
    except TypeError as error:
        raise rule_error("from_dict", rule, str(error)) from None


def _field_from_dict(value: Any, classes: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return (
        _representation_from_dict(value, classes) if "representation" in value else from_dict(value)
    )
