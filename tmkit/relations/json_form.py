"""Relations as JSON: plain values with the fields of the semantics.

``{"rel": "Twist", "point": "e", "body": "C", "ref_body": "D", "coord": "r"}`` is a twist without numbers; without
``coord`` it is its semantics alone. Numbers stand in ``values``, with the name of their representation and what that
holds: ``"values": {"representation": "TwistVector", "vector": [...]}``.

Invariants: ``from_dict(to_dict(x))`` is ``x``, numbers included, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from tmkit.errors import UnknownNameError
from tmkit.relations import representations, semantic, semantics
from tmkit.relations.representation import Representation
from tmkit.relations.semantic import SemanticRelation
from tmkit.relations.semantics import Coord, Semantics
from tmkit.relations.violations import SemanticError, Violation

_RELATIONS = (
    "Position", "Orientation", "Pose", "LinearVelocity", "AngularVelocity", "Twist", "Force", "Torque", "Wrench",
)  # fmt: skip
_REPRESENTATIONS: dict[str, Any] = {name: getattr(representations, name) for name in dir(representations)}


def to_dict(relation: Semantics | SemanticRelation) -> dict[str, Any]:
    """Return a relation as plain values.

    Raises:
        SemanticError: a representation that is neither built-in nor a dataclass.
    """
    if isinstance(relation, SemanticRelation):
        return {**to_dict(relation.coord), "values": _values(relation.representation)}
    return {"rel": relation.relation, **{name: getattr(relation, name) for name in relation.fields}}


def from_dict(data: Mapping[str, Any]) -> Any:
    """Return the relation that plain values describe: its semantics, its coordinates, or these with numbers.

    Raises:
        SemanticError: a field is missing, is there though the relation has none of that name, or is no name.
        UnknownNameError: no such relation or representation.
    """
    if not isinstance(data, Mapping):
        rule = "a relation in JSON is an object with the name of the relation in 'rel'"
        raise SemanticError.of("from_dict", [Violation(rule, repr(data)[:80])])
    rel = data.get("rel")
    if rel not in _RELATIONS:
        raise UnknownNameError.of("relation", str(rel), _RELATIONS, where="rel")
    kind = "Coord" if "coord" in data else "Semantics"
    cls: type[Semantics] = getattr(semantics, f"{rel}{kind}")
    names = {name: value for name, value in data.items() if name not in ("rel", "values")}
    wrong = [Violation(f"a {rel} has the field {name}", "it is missing") for name in cls.fields if name not in names]
    wrong += [Violation(f"a {rel} has no field {name}", repr(names[name])) for name in names if name not in cls.fields]
    if wrong:
        raise SemanticError.of("from_dict", wrong)
    coord = cls.named(**names)
    if "values" not in data:
        return coord
    if not isinstance(coord, Coord):
        rule = "numbers are expressed in a frame"
        raise SemanticError.of("from_dict", [Violation(rule, "there are values, but no coord")])
    made: type[SemanticRelation] = getattr(semantic, f"Semantic{rel}")
    return made(coord, _representation(data["values"]))


def _values(representation: Any) -> dict[str, Any]:
    if not is_dataclass(representation):
        rule = "a representation is written by the fields of its dataclass"
        raise SemanticError.of("to_dict", [Violation(rule, type(representation).__name__)])
    values = {field.name: _plain(getattr(representation, field.name)) for field in fields(representation)}
    return {"representation": type(representation).__name__, **values}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Semantics):
        return to_dict(value)
    return _values(value) if isinstance(value, Representation) else value


def _representation(data: Any) -> Any:
    if not isinstance(data, Mapping) or "representation" not in data:
        rule = "values say which representation they are"
        raise SemanticError.of("from_dict", [Violation(rule, repr(data)[:80])])
    name = data["representation"]
    if name not in _REPRESENTATIONS:
        raise UnknownNameError.of("representation", str(name), _REPRESENTATIONS, where="values")
    cls = _REPRESENTATIONS[name]
    known = [field.name for field in fields(cls)]
    given = {key: _held(value) for key, value in data.items() if key != "representation"}
    unknown = [Violation(f"a {name} holds {', '.join(known)}", key) for key in given if key not in known]
    if unknown:
        raise SemanticError.of("from_dict", unknown)
    try:
        return cls(**given)
    except TypeError as error:
        raise SemanticError.of("from_dict", [Violation(f"a {name} holds {', '.join(known)}", str(error))]) from None


def _held(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _representation(value) if "representation" in value else from_dict(value)
    return value
