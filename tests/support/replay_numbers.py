"""Numbers of single operations, and of one thing in many representations, as cases give them: by the names of fields.

A case names its inputs: ``R_ba`` is the orientation of a relative to b, ``T`` a homogeneous matrix, ``p`` a position,
``linear`` and ``angular`` a twist, ``force`` and ``torque`` a wrench, ``d`` the way to a new point. The result is given
under the names that the case asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tmkit.relations import (
    AngularVelocityCoord,
    AxisAngle,
    EulerAngles,
    FiniteScrew,
    HomogeneousMatrix,
    InstantaneousScrewAxis,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    RotationVector,
    SemanticAngularVelocity,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticRelation,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    UnitQuaternion,
    WrenchAxis,
    WrenchCoord,
    apply,
)
from tmkit.relations import LinearVelocityCoord as LinearCoord

__all__ = ["replay_description", "replay_numbers"]

_ORIENTATION = OrientationCoord("[a]|C", "[b]|D", "[b]")
_POSE = PoseCoord("{g}|C", "{h}|D", "[h]")
_TWIST = TwistCoord("e|C", "D", "[r]")


def replay_numbers(case: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out an operation on numbers; ``result`` has what the case expects, under the same names."""
    given: Mapping[str, Any] = case["inputs"]
    relation, _, operation = case["op"].partition(".")
    operation = operation.split(" ")[0]
    if not operation:  # what stays the same under a change of the point
        operands = [_wrench(given), _twist(given)]
        step = [_step(given)] if _step(given) else []
        moved = [apply("changePoint", operand, *step) if step else operand for operand in operands]
        return _answer(case, apply("dot", *moved))
    if operation == "changeFrame":
        return _answer(case, _in_another_frame(_operands(relation, given)[0], given))
    operands = _operands(relation, given)
    if operation == "changePoint":
        operands = [operands[0], _step(given), *operands[1:]]
    elif operation == "changeCoordinateFrame":
        operands = [operands[0], SemanticOrientation(OrientationCoord("[r]|D", "[s]|D", "[s]"), given["R"])]
    elif operation in ("integrate", "differentiate"):
        operands.append(float(next(given[name] for name in ("t", "dt") if name in given)))
    return _answer(case, apply(operation, *operands))


def _operands(relation: str, given: Mapping[str, Any]) -> list[Any]:
    name = relation.lower()
    if name == "twist" or (name in ("linearvelocity", "angularvelocity") and "linear" in given):
        return [_twist(given)]
    if name in ("wrench", "torque", "force"):
        return [_wrench(given)]
    if name in ("orientation", "pose"):
        matrices = {key: np.array(value) for key, value in given.items() if np.shape(value) in ((3, 3), (4, 4))}
        return [_turned(key, value, len(matrices) - 1 - i) for i, (key, value) in enumerate(matrices.items())]
    vectors = [np.array(value) for value in given.values() if np.shape(value) == (3,)]
    return [_vector(name, value, i) for i, value in enumerate(vectors)]


def _turned(key: str, matrix: Any, place: int) -> SemanticRelation:
    """Return an orientation or pose; ``R_ba`` is that of a relative to b, without letters they stand in a chain."""
    letters = re.search(r"_(\w)(\w)$", key)
    reference, target = (letters[1], letters[2]) if letters else (f"f{place}", f"f{place + 1}")
    if matrix.shape == (4, 4):
        coord = PoseCoord(f"{{{target}}}|{target.upper()}", f"{{{reference}}}|{reference.upper()}", f"[{reference}]")
        return SemanticPose(coord, matrix)
    turned = OrientationCoord(f"[{target}]|{target.upper()}", f"[{reference}]|{reference.upper()}", f"[{reference}]")
    return SemanticOrientation(turned, matrix)


def _vector(relation: str, vector: Any, place: int) -> SemanticRelation:
    """Return the link of a chain of positions or velocities at its place."""
    here, there = f"B{place}", f"B{place + 1}"
    if relation == "position":
        return SemanticPosition(PositionCoord(f"e{place}|{here}", f"e{place + 1}|{there}", "[r]"), vector)
    if relation == "linearvelocity":
        return SemanticLinearVelocity(LinearCoord(f"e|{here}", there, "[r]"), vector)
    return SemanticAngularVelocity(AngularVelocityCoord(here, there, "[r]"), vector)


def _twist(given: Mapping[str, Any]) -> SemanticTwist:
    return SemanticTwist(_TWIST, [*given["linear"], *given["angular"]])


def _wrench(given: Mapping[str, Any]) -> SemanticWrench:
    return SemanticWrench(WrenchCoord("e|C", "D", "[r]"), [*given["force"], *given["torque"]])


def _step(given: Mapping[str, Any]) -> Any:
    way = next((given[name] for name in ("new_point_from_old", "d") if name in given), None)
    return None if way is None else SemanticPosition(PositionCoord("e2|C", "e|C", "[r]"), way)


def _in_another_frame(relation: Any, given: Mapping[str, Any]) -> Any:
    """Express a twist or wrench in another frame, about its origin: ``p`` is the old origin in the new frame."""
    turned = relation.change_coordinate_frame(
        SemanticOrientation(OrientationCoord("[r]|D", "[s]|D", "[s]"), given.get("R", np.eye(3)))
    )
    return turned.change_point(SemanticPosition(PositionCoord("n|C", "e|C", "[s]"), -np.array(given["p"], dtype=float)))


def _answer(case: Mapping[str, Any], made: Any) -> dict[str, Any]:
    known = _numbers_of(made) if isinstance(made, SemanticRelation) else {"power": made}
    result = {}
    for key in case["expected"]:
        plain = key.split("_")[0]
        result[key] = known[key] if key in known else known[plain]
    return {"accept": True, "result": result, "violated": None}


def _numbers_of(made: SemanticRelation) -> dict[str, Any]:
    relation, numbers = made.coord.relation, made.numbers
    names = {
        "Position": ("p",),
        "Orientation": ("R",),
        "Pose": ("p", "R"),
        "LinearVelocity": ("linear",),
        "AngularVelocity": ("angular",),
        "Twist": ("linear", "angular"),
        "Wrench": ("force", "torque"),
    }[relation]
    known: dict[str, Any] = dict(zip(names, numbers, strict=True))
    if relation in ("LinearVelocity", "AngularVelocity"):
        known |= {"v": numbers[0], "w": numbers[0], "omega": numbers[0]}
    if isinstance(made, SemanticPose):
        known["T"] = known["homogeneous"] = known["pose"] = made.in_representation(HomogeneousMatrix).matrix
    return known


def replay_description(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an orientation, a pose, a twist or a wrench in its representations, by their names."""
    if "rotation" in given:
        return _orientation(SemanticOrientation(_ORIENTATION, given["rotation"]), given)
    if "pose" in given:
        screw = SemanticPose(_POSE, given["pose"]).in_representation(FiniteScrew)
        names = {"direction": screw.direction, "moment": screw.moment, "angle": screw.angle}
        names |= {"displacement": screw.displacement, "point_on_axis": screw.point}
        return names | {"pose": SemanticPose(_POSE, screw).in_representation(HomogeneousMatrix).matrix}
    if "wrench" in given or "force" in given:
        wrench = _wrench(given.get("wrench", given))
        central = wrench.in_representation(WrenchAxis)
        return {"direction": central.direction, "moment": central.moment, **_intensities(central)} | _numbers_of(
            wrench.represented_by(WrenchAxis)
        )
    twist = _twist(given.get("twist", given))
    axis = twist.in_representation(InstantaneousScrewAxis)
    return {"direction": axis.direction, "moment": axis.moment, **_intensities(axis)} | _numbers_of(
        twist.represented_by(InstantaneousScrewAxis)
    )


def _intensities(axis: Any) -> dict[str, Any]:
    about, along = axis.about, axis.along
    named = {"omega": about, "angular_speed": about, "w": about, "v": along, "linear_speed": along}
    return named | {"about": about, "along": along, "point_on_axis": axis.point}


def _orientation(orientation: SemanticOrientation, given: Mapping[str, Any]) -> dict[str, Any]:
    vector = orientation.in_representation(RotationVector).vector
    axis = orientation.in_representation(AxisAngle)
    x, y, z, w = orientation.in_representation(UnitQuaternion).quat_xyzw
    moving, fixed = (
        orientation.in_representation(EulerAngles, like=EulerAngles([0.0] * 3, sequence)).angles
        for sequence in ("ZYX", "xyz")
    )
    said = {
        "rotation": orientation.numbers[0],
        "euler_zyx": moving,
        "rpy_fixed_xyz": fixed,
        "axis": axis.axis,
        "angle": axis.angle,
        "rotation_vector": vector,
        "quaternion_wxyz": [w, x, y, z],
    }
    elsewhere = given.get("rotation_vector_in_other_coord_frame")
    if elsewhere is not None:
        turned = SemanticOrientation(OrientationCoord("[b]|D", "[r]|D", "[r]"), elsewhere["R_r2_r"])
        free = orientation.represented_by(RotationVector).change_coordinate_frame(turned)
        said["rotation_vector_in_other_coord_frame"] = free.in_representation(RotationVector).vector
    return said
