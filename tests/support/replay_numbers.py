"""Numbers of single operations, as cases give them: by the names of fields.

A case names its inputs: ``p`` is a position, ``R`` a rotation matrix, ``Q`` a rotation in the axes
of a third frame, ``T`` a homogeneous matrix, ``linear`` and ``angular`` (``v``, ``w``) a velocity,
``force`` and ``torque`` (``f``, ``m``) a wrench, ``d`` or a name with ``point`` or ``from`` the way
to a new point, ``t`` or ``dt`` a time. Suffixes distinguish operands of one kind: ``R_ba`` is the
orientation of a relative to b; ``linear1`` and ``angular1`` belong together. Without letters
operands form a chain, the first innermost. The result is given under the names of the case.

Invariant: every input is read. A name without a meaning here, an operation or a relation that is
unknown is a LookupError that names it, never a rejection by tmkit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.replay_representations import numbers_of, orientation_said
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord as LinearCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticAngularVelocity,
    SemanticForce,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTorque,
    SemanticTwist,
    SemanticWrench,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
    apply,
    differentiate,
)
from tmkit.relations.by_name import OPERATIONS
from tmkit.relations.representations import RotationVector, VectorAndMatrix
from tmkit.spatial import Pose

__all__ = ["replay_numbers"]

_SHAPES = {
    "p": (3,),
    "R": (3, 3),
    "Q": (3, 3),
    "T": (4, 4),
    "v": (3,),
    "w": (3,),
    "f": (3,),
    "m": (3,),
    "d": (3,),
}
_NAMES = {
    "p": {"p", "position", "translation", "vector"},
    "R": {"R", "rotation", "orientation", "matrix", "euler", "rpy", "quaternion", "quat"},
    "Q": {"Q"},
    "T": {"T", "pose", "homogeneous", "transform"},
    "v": {"v", "linear", "velocity"},
    "w": {"w", "angular", "omega"},
    "f": {"f", "force"},
    "m": {"m", "t", "torque", "moment", "tau"},
    "d": {"d", "a", "offset", "displacement", "shift", "way", "step", "new", "old"},
    "t": {"t", "dt", "time", "duration"},
}
_NEEDS = {  # of which quantities an operand of a relation is made
    "position": "p",
    "orientation": "R",
    "pose": "T",
    "linearvelocity": "v",
    "angularvelocity": "w",
    "twist": "vw",
    "force": "f",
    "torque": "m",
    "wrench": "fm",
}


@dataclass
class _Inputs:
    """Inputs of a case: labels and numbers of each quantity, in order; each is marked when read."""

    numbers: dict[str, dict[str, Any]]
    unread: set[tuple[str, str]]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> _Inputs:
        numbers: dict[str, dict[str, Any]] = {}
        for key, value in _flat(fields):
            quantity, label, array = _read(key, value)
            numbers.setdefault(quantity, {})[label] = array
        return cls(
            numbers, {(quantity, label) for quantity, labels in numbers.items() for label in labels}
        )

    def labels(self, quantity: str) -> list[str]:
        return list(self.numbers.get(quantity, {}))

    def has(self, quantity: str) -> bool:
        return quantity in self.numbers

    def take(self, quantity: str, label: str | None = None) -> Any:
        labels = self.numbers.get(quantity)
        if not labels or (label is not None and label not in labels):
            wanted = f"{quantity}, {label}" if label else quantity
            raise LookupError(
                f"the case has no input for {wanted}; it has {', '.join(self.numbers)}"
            )
        chosen = next(iter(labels)) if label is None else label
        self.unread.discard((quantity, chosen))
        return labels[chosen]

    def require_read(self) -> None:
        if self.unread:
            names = ", ".join("_".join(filter(None, pair)) for pair in sorted(self.unread))
            raise LookupError(f"the case has inputs that its operation does not use: {names}")


def _flat(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the inputs one by one, with nested operands named by their path, innermost first."""
    pairs: list[tuple[str, Any]] = []
    for key, value in fields.items():
        if isinstance(value, Mapping):
            number = re.search(r"\d+$", key)
            pairs += [
                (f"{inner}_{number[0] if number else key}", part) for inner, part in value.items()
            ]
        else:
            pairs.append((key, value))
    return pairs


def _read(key: str, value: Any) -> tuple[str, str, Any]:
    """Return the quantity of a field, its label and its numbers."""
    numbered = re.fullmatch(r"([A-Za-z]+)(\d\w*)", key)  # linear1 as linear_1
    head, label = numbered.groups() if numbered else key.partition("_")[::2]
    array = np.array(value, dtype=float)
    if array.shape == () and head in _NAMES["t"]:
        return "t", "", float(array)
    if array.shape == (3,) and {"from", "point"} & set(label.split("_")):
        return "d", "", array
    if array.shape in ((3,), (4,)) and head in ("euler", "rpy", "quaternion", "quat"):
        return "R", "", _rotation(key, array)
    if array.shape == (3,) and key.startswith("rotation_vector"):
        return (
            "R",
            key.removeprefix("rotation_vector").strip("_"),
            Pose.exp([0, 0, 0, *array]).rotation,
        )
    for quantity, shape in _SHAPES.items():
        if head in _NAMES[quantity] and array.shape == shape:
            return quantity, "" if quantity == "d" else label, array
    raise LookupError(f"what the input '{key}' of shape {array.shape} gives is not known")


def _rotation(key: str, numbers: Any) -> Any:
    if key.startswith("quat"):
        return Pose([0, 0, 0], np.roll(numbers, -1) if "wxyz" in key else numbers).rotation
    return Pose.from_rpy([0, 0, 0], numbers[::-1] if "zyx" in key else numbers).rotation


# ----------------------------------------------------------------------------------------- operands


def _frames(labels: list[str], place: int) -> tuple[str, str]:
    """Return target and reference of an operand: ``ba`` is a relative to b; others form a chain."""
    label = labels[place]
    words = label.split("_")
    if len(words) == 2 and all(words):
        return words[1], words[0]
    if len(label) == 2 and label.isalpha():
        return label[1], label[0]
    return f"f{place}", f"f{place + 1}"


def _operand(relation: str, inputs: _Inputs, labels: list[str], place: int, point: str) -> Any:
    """Return an operand of an operation in the axes r, or a matrix in the reference's axes."""
    label = labels[place]
    target, reference = _frames(labels, place)
    body, other = target.upper(), reference.upper()
    if relation == "position":
        coord = PositionCoord(f"{target}|{body}", f"{reference}|{other}", "[r]")
        return SemanticPosition(coord, inputs.take("p", label))
    if relation == "orientation":
        axes = "r" if inputs.has("Q") else reference
        coord_of = OrientationCoord(f"[{target}]|{body}", f"[{reference}]|{other}", f"[{axes}]")
        if inputs.has("Q"):
            return SemanticOrientation(coord_of, RotationVector.of((inputs.take("Q", label),)))
        return SemanticOrientation(coord_of, inputs.take("R", label))
    if relation == "pose":
        pose = PoseCoord(f"{{{target}}}|{body}", f"{{{reference}}}|{other}", f"[{reference}]")
        if inputs.has("T"):
            return SemanticPose(pose, inputs.take("T", label))
        return SemanticPose(pose, VectorAndMatrix(inputs.take("p", label), inputs.take("R", label)))
    bodies, axes = (f"{point}|{body}", other), f"[{'g' if point == 'g' else 'r'}]"
    if relation == "linearvelocity":
        return SemanticLinearVelocity(LinearCoord(*bodies, axes), inputs.take("v", label))
    if relation == "angularvelocity":
        return SemanticAngularVelocity(
            AngularVelocityCoord(body, other, axes), inputs.take("w", label)
        )
    if relation == "twist":
        return SemanticTwist(
            TwistCoord(*bodies, axes), [*inputs.take("v", label), *inputs.take("w", label)]
        )
    body, other = "C", "D"  # forces are added where they act, not chained
    if relation == "force":
        return SemanticForce(ForceCoord(body, other, axes), inputs.take("f", label))
    if relation == "torque":
        return SemanticTorque(TorqueCoord(f"{point}|{body}", other, axes), inputs.take("m", label))
    return SemanticWrench(
        WrenchCoord(f"{point}|{body}", other, axes),
        [*inputs.take("f", label), *inputs.take("m", label)],
    )


def _operands(relation: str, inputs: _Inputs, point: str = "e") -> list[Any]:
    labels = inputs.labels(_first(relation, inputs))
    if not labels:
        raise LookupError(
            f"a {relation} needs {_NEEDS[relation]}; the case has {', '.join(inputs.numbers)}"
        )
    return [_operand(relation, inputs, labels, place, point) for place in range(len(labels))]


def _displacement(inputs: _Inputs, begin: str, axes: str) -> SemanticPosition:
    """Return the position of a new point relative to an old one of the same body."""
    return SemanticPosition(
        PositionCoord("new|" + begin.split("|")[1], begin, axes), inputs.take("d")
    )


def _turn(inputs: _Inputs, old: str) -> SemanticOrientation:
    """Return the orientation of old axes relative to new ones."""
    label = inputs.labels("R")[-1] if inputs.labels("R") else None
    return SemanticOrientation(
        OrientationCoord(f"[{old}]|X", "[new]|Y", "[new]"), inputs.take("R", label)
    )


# --------------------------------------------------------------------------------------- operations


def replay_numbers(case: Mapping[str, Any]) -> dict[str, Any]:
    """Execute an operation on numbers; ``result`` has the names that the case expects.

    Raises:
        LookupError: if a relation, an operation, an input or an expected number is unknown, by
            its name.
    """
    inputs = _Inputs.of(case["inputs"])
    relation, operation = _required_names(str(case["op"]))
    result = (
        _power(inputs)
        if operation == "dot"
        else _build(relation, operation, inputs, is_screw="screw" in case["op"])
    )
    inputs.require_read()
    return {"accept": True, "result": _answer(case, result), "violated": None}


def _required_names(op: str) -> tuple[str, str]:
    """Return the relation, its words run together, and the operation."""
    words = op.split("(")[0].strip()
    relation, _, operation = words.partition(".")
    if not operation:
        if "power" in words.lower() or words.lower() == "dot":
            return "wrench", "dot"
        relation, _, operation = words.partition(" ")
    relation = re.sub(r"[\s_]", "", relation).lower()
    relation = {"rotation": "orientation", "transform": "pose", "moment": "torque"}.get(
        relation, relation
    )
    operation = "dot" if operation in ("power", "dot") else operation.split(" ")[0].strip()
    if relation not in _NEEDS:
        raise LookupError(
            f"the relation of the operation '{op}' is not known; known are {', '.join(_NEEDS)}"
        )
    return relation, operation


def _build(relation: str, operation: str, inputs: _Inputs, *, is_screw: bool) -> Any:
    """Carry out an operation other than a power."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation).lower().replace("_ref_", "_reference_")
    if name in ("change_frame", "change_both"):
        return _in_another_frame(_operands(relation, inputs)[0], inputs)
    if name in ("integrate", "differentiate"):
        time = inputs.take("t")
        if name == "integrate":
            return apply(name, _operands(relation, inputs, point="g")[0], time)
        before, later = _operands(relation, inputs)
        later = type(before)(before.coord, later.representation)
        return differentiate(
            before, later, time, **({"screw": is_screw} if relation == "pose" else {})
        )
    if name in ("change_coordinate_frame", "change_coord_frame"):
        x = _operand(relation, inputs, inputs.labels(_first(relation, inputs)), 0, "e")
        return x.change_coordinate_frame(_turn(inputs, x.coord.coord))
    if name in ("change_orientation_frame", "change_reference_orientation_frame"):
        return _reorient(relation, name, inputs)
    operands = _operands(relation, inputs)
    if name in (
        "change_point",
        "change_point_body",
        "change_reference_point",
        "change_reference_point_body",
    ):
        x, c = operands[0], operands[0].coord
        if "reference" in name:
            begin, end = f"{c.ref_point}|{c.ref_body}", f"new|{c.ref_body}"
            displacement = SemanticPosition(
                PositionCoord(begin, end, f"[{c.coord}]"), inputs.take("d")
            )
        else:
            displacement = _displacement(inputs, f"{c.point}|{c.body}", f"[{c.coord}]")
        free: list[Any] = []
        if relation == "linearvelocity":
            coord = AngularVelocityCoord(c.body, c.ref_body, f"[{c.coord}]")
            free = [SemanticAngularVelocity(coord, inputs.take("w"))]
        elif relation == "torque":
            free = [SemanticForce(ForceCoord(c.body, c.ref_body, f"[{c.coord}]"), inputs.take("f"))]
        return apply(name, x, displacement, *free)
    if name not in OPERATIONS:
        raise LookupError(
            f"the operation '{operation}' is not known; known are {', '.join(OPERATIONS)}"
        )
    return apply(name, *operands)


def _first(relation: str, inputs: _Inputs) -> str:
    """Return the quantity whose labels distinguish the operands."""
    if relation == "orientation" and inputs.has("Q"):
        return "Q"
    return "p" if relation == "pose" and not inputs.has("T") else _NEEDS[relation][0]


def _reorient(relation: str, name: str, inputs: _Inputs) -> Any:
    """Change the orientation frame of the first matrix, or its reference, by the last."""
    x = _operand(relation, inputs, inputs.labels(_first(relation, inputs)), 0, "e")
    c, turn = x.coord, inputs.take("R", inputs.labels("R")[-1])
    if name == "change_orientation_frame":
        coord = OrientationCoord(f"[new]|{c.body}", f"[{c.ori}]|{c.body}", f"[{c.ori}]")
    else:
        coord = OrientationCoord(f"[{c.ref_ori}]|{c.ref_body}", f"[new]|{c.ref_body}", "[new]")
    return apply(name, x, SemanticOrientation(coord, turn))


def _in_another_frame(relation: Any, inputs: _Inputs) -> Any:
    """Express a twist or wrench in another frame about its origin; ``p`` is the old origin."""
    turned = relation.change_coordinate_frame(_turn(inputs, "r")) if inputs.has("R") else relation
    c = turned.coord
    displacement = PositionCoord(f"new|{c.body}", f"{c.point}|{c.body}", f"[{c.coord}]")
    return turned.change_point(SemanticPosition(displacement, -inputs.take("p")))


def _power(inputs: _Inputs) -> float:
    """Return the power of a wrench on a twist, which is the same in the frame of the case."""
    wrench = _operands("wrench", inputs)[0]
    twist = SemanticTwist(TwistCoord("e|C", "D", "[r]"), [*inputs.take("v"), *inputs.take("w")])
    if inputs.has("p"):
        wrench, twist = _in_another_frame(wrench, inputs), _in_another_frame(twist, inputs)
    elif inputs.has("d"):
        wrench, twist = (
            x.change_point(_displacement(inputs, "e|C", "[r]")) for x in (wrench, twist)
        )
    return float(wrench.dot(twist))


# ------------------------------------------------------------------------------------------ results


def _answer(case: Mapping[str, Any], outcome: Any) -> dict[str, Any]:
    """Return the numbers under the names that the case expects, or else under tmkit's."""
    if isinstance(outcome, float):
        answers: dict[str, Any] = {"power": outcome}
    else:
        answers = numbers_of(outcome)
        if isinstance(outcome, SemanticOrientation):
            answers |= orientation_said(outcome, case.get("expected", answers))
    expected = case.get("expected")
    if not isinstance(expected, Mapping):
        return answers
    result: dict[str, Any] = {}
    for key in expected:
        plain = re.split(r"[_\d]", key)[0]
        if key not in answers and plain not in answers:
            raise LookupError(f"the case expects '{key}', which is none of {', '.join(answers)}")
        result[key] = answers[key] if key in answers else answers[plain]
    return result
