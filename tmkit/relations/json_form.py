"""Relations as JSON: plain values with the fields of the semantics.

``{"rel": "Twist", "point": "e", "body": "C", "ref_body": "D", "coord": "r"}`` is a twist without numbers; without
``coord`` it is its semantics alone. Numbers stand in ``values``, with the name of their representation and what that
holds: ``"values": {"representation": "TwistVector", "vector": [...]}``. A covariance stands in ``covariance``, with the
frame in whose axes it is.

Representations of one's own are read when their names are given: ``representations={"Cayley": Cayley}``. A dataclass is
written by its fields; another class has ``to_json()``, which returns a dict, and a class method ``from_json(dict)``.

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
from tmkit.relations.semantics import Coord, Semantics, written
from tmkit.relations.violations import SemanticError, Violation

_RELATIONS = (
    "Position", "Orientation", "Pose", "LinearVelocity", "AngularVelocity", "Twist", "Force", "Torque", "Wrench",
)  # fmt: skip
_REPRESENTATIONS: dict[str, Any] = {name: getattr(representations, name) for name in dir(representations)}


Names = Mapping[str, Any]
"""Classes of representations by the names that they have in JSON."""


def to_dict(relation: Semantics | SemanticRelation, *, representations: Names | None = None) -> dict[str, Any]:
    """Return a relation as plain values.

    Args:
        relation: the relation, or what is related to what.
        representations: classes of representations of one's own, by their names in JSON.

    Raises:
        SemanticError: a representation that is neither built-in nor a dataclass, nor has ``to_json``; or a name given
            that is that of a built-in one.
    """
    if not isinstance(relation, SemanticRelation):
        return {"rel": relation.relation, **{name: written(getattr(relation, name)) for name in relation.fields}}
    values = _values(relation.representation, {cls: name for name, cls in _known(representations).items()})
    made = {**to_dict(relation.coord), "values": values}
    if relation.covariance is not None:
        made["covariance"] = {"axes": relation.covariance_axes, "matrix": relation.covariance.tolist()}
    return made


def from_dict(data: Mapping[str, Any], *, representations: Names | None = None) -> Any:
    """Return the relation that plain values describe: its semantics, its coordinates, or these with numbers.

    Args:
        data: the plain values.
        representations: classes of representations of one's own, by their names in JSON.

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
    names = {name: value for name, value in data.items() if name not in ("rel", "values", "covariance")}
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
    relation = made(coord, _representation(data["values"], _known(representations)))
    if "covariance" not in data:
        return relation
    spread = data["covariance"]
    if not isinstance(spread, Mapping) or spread.get("axes") != relation.covariance_axes or "matrix" not in spread:
        rule = f"a covariance has a matrix and the axes {relation.covariance_axes}"
        raise SemanticError.of("from_dict", [Violation(rule, repr(spread)[:80])])
    return relation.with_covariance(spread["matrix"])


def _known(representations: Names | None) -> dict[str, Any]:
    """Return all representations by name."""
    taken = sorted(set(representations or ()) & set(_REPRESENTATIONS))
    if taken:
        raise SemanticError.of("representations", [Violation("a name of one's own is not built-in", ", ".join(taken))])
    return {**_REPRESENTATIONS, **(representations or {})}


def _values(representation: Any, names: Mapping[Any, str]) -> dict[str, Any]:
    name = names.get(type(representation), type(representation).__name__)
    if hasattr(representation, "to_json"):
        return {"representation": name, **representation.to_json()}
    if not is_dataclass(representation):
        rule = "a representation is written by the fields of its dataclass, or by its to_json()"
        raise SemanticError.of("to_dict", [Violation(rule, type(representation).__name__)])
    values = {field.name: _plain(getattr(representation, field.name), names) for field in fields(representation)}
    return {"representation": name, **values}


def _plain(value: Any, names: Mapping[Any, str]) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Semantics):
        return to_dict(value)
    return _values(value, names) if isinstance(value, Representation) else value


def _representation(data: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(data, Mapping) or "representation" not in data:
        rule = "values say which representation they are"
        raise SemanticError.of("from_dict", [Violation(rule, repr(data)[:80])])
    name = data["representation"]
    if name not in known:
        raise UnknownNameError.of("representation", str(name), known, where="values")
    cls = known[name]
    if hasattr(cls, "from_json"):
        return cls.from_json({key: value for key, value in data.items() if key != "representation"})
    holds = [field.name for field in fields(cls)]
    given = {key: _held(value, known) for key, value in data.items() if key != "representation"}
    unknown = [Violation(f"a {name} holds {', '.join(holds)}", key) for key in given if key not in holds]
    if unknown:
        raise SemanticError.of("from_dict", unknown)
    try:
        return cls(**given)
    except TypeError as error:
        raise SemanticError.of("from_dict", [Violation(f"a {name} holds {', '.join(holds)}", str(error))]) from None


def _held(value: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return _representation(value, known) if "representation" in value else from_dict(value)
