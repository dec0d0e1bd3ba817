"""One orientation, pose, twist or wrench in all representations, under the names of the cases.

Where a representation has no numbers (Euler angles where two axes coincide) it is left out, unless
the case expects it: then the result is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmkit.relations import (
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.representations import (
    AxisAngle,
    DualQuaternion,
    EulerAngles,
    FiniteScrew,
    HomogeneousMatrix,
    InstantaneousScrewAxis,
    RotationVector,
    UnitQuaternion,
    WrenchAxis,
)
from tmkit.relations.semantic.base import SemanticRelation

__all__ = ["numbers_of", "orientation_said", "replay_description", "replay_moved"]

_ORIENTATION = OrientationCoord("[a]|C", "[b]|D", "[b]")
_POSE = PoseCoord("{g}|C", "{h}|D", "[h]")
_SEQUENCES = {
    "euler_zyx": "ZYX",
    "euler_zyz": "ZYZ",
    "euler_xyz": "XYZ",
    "rpy_fixed_xyz": "xyz",
    "rpy": "xyz",
}


def numbers_of(relation: SemanticRelation) -> dict[str, Any]:
    """Return the numbers of a relation by all names that cases give them."""
    names: dict[str, tuple[tuple[str, ...], ...]] = {
        "Position": (("p", "position", "vector", "translation"),),
        "Orientation": (("R", "Q", "rotation", "orientation", "matrix"),),
        "Pose": (("p", "position", "translation"), ("R", "rotation")),
        "LinearVelocity": (("linear", "v", "velocity", "vector"),),
        "AngularVelocity": (("angular", "w", "omega", "vector"),),
        "Twist": (("linear", "v"), ("angular", "w", "omega")),
        "Force": (("force", "f", "vector"),),
        "Torque": (("torque", "m", "moment", "t", "tau", "vector"),),
        "Wrench": (("force", "f"), ("torque", "m", "moment", "t", "tau")),
    }
    pairs = zip(names[relation.coord.relation], relation.numbers, strict=True)
    values = {name: number for group, number in pairs for name in group}
    if relation.coord.relation in ("LinearVelocity", "AngularVelocity"):
        values |= dict.fromkeys(("linear", "v", "angular", "w", "omega"), relation.numbers[0])
    if isinstance(relation, SemanticPose) and not HomogeneousMatrix.of(
        relation.numbers
    ).find_violations(relation.coord):
        matrix = relation.in_representation(HomogeneousMatrix).matrix
        values |= {"T": matrix, "homogeneous": matrix, "pose": matrix}
    return values


def orientation_said(
    orientation: SemanticOrientation, required: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an orientation in its representations, among them at least one of ``required``."""
    axis = orientation.in_representation(AxisAngle)
    vector = orientation.in_representation(RotationVector).vector
    result: dict[str, Any] = {"axis": axis.axis, "angle": axis.angle, "rotation_vector": vector}
    if orientation.coord.coord != orientation.coord.ref_ori:
        return result
    x, y, z, w = orientation.in_representation(UnitQuaternion).quat_xyzw
    result |= {
        "rotation": orientation.numbers[0],
        "quaternion_wxyz": [w, x, y, z],
        "quaternion_xyzw": [x, y, z, w],
    }
    for name, sequence in _SEQUENCES.items():
        try:
            result[name] = orientation.in_representation(
                EulerAngles, like=EulerAngles([0.0] * 3, sequence)
            ).angles
        except SemanticError as error:
            if name in required:
                result[name] = {"error": str(error)}
    return result


def replay_description(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an orientation, a pose, a twist or a wrench in its representations, by their names.

    Raises:
        LookupError: if the case describes none of these.
    """
    if "rotation" in fields:
        return _orientation(SemanticOrientation(_ORIENTATION, fields["rotation"]), fields)
    pose = next((fields[name] for name in ("pose", "homogeneous", "T") if name in fields), None)
    if pose is not None:
        return _pose(SemanticPose(_POSE, pose))
    inner = next(
        (fields[name] for name in ("wrench", "twist") if isinstance(fields.get(name), Mapping)),
        fields,
    )
    if "force" in inner:
        wrench = SemanticWrench(WrenchCoord("e|C", "D", "[r]"), [*inner["force"], *inner["torque"]])
        return numbers_of(wrench) | _axis(WrenchAxis.of(wrench.numbers), ("t", "f"))
    if "linear" not in inner:
        raise LookupError(
            f"an orientation, a pose, a twist or a wrench is described, not {', '.join(fields)}"
        )
    twist = SemanticTwist(TwistCoord("e|C", "D", "[r]"), [*inner["linear"], *inner["angular"]])
    axis = InstantaneousScrewAxis.of(twist.numbers)
    # the plain names of the numbers are those of the axis: v is the motion along it, w the turn
    # about it
    return numbers_of(twist) | _axis(axis, ("omega", "v")) | {"w": axis.about}


def _axis(axis: Any, plain: tuple[str, str]) -> dict[str, Any]:
    about, along = axis.about, axis.along
    result = {
        "direction": axis.direction,
        "moment": axis.moment,
        "point_on_axis": axis.point,
        "about": about,
    }
    result |= {
        "along": along,
        plain[0]: about,
        plain[1]: along,
        "angular_speed": about,
        "linear_speed": along,
    }
    first, second = (about, along) if plain[1] == "v" else (along, about)
    return result | ({"pitch": second / first} if first else {})


def _pose(pose: SemanticPose) -> dict[str, Any]:
    screw, dual = pose.in_representation(FiniteScrew), pose.in_representation(DualQuaternion)
    matrix = SemanticPose(_POSE, screw).in_representation(HomogeneousMatrix).matrix
    names = {"direction": screw.direction, "moment": screw.moment, "angle": screw.angle}
    names |= {"displacement": screw.displacement, "point_on_axis": screw.point}
    names |= {"pose": matrix, "homogeneous": matrix, "T": matrix, "translation": matrix[:3, 3]}
    return names | {
        "position": matrix[:3, 3],
        **orientation_said(pose.orientation, {}),
        "dual_quaternion": dual,
    }


def _orientation(orientation: SemanticOrientation, fields: Mapping[str, Any]) -> dict[str, Any]:
    result = orientation_said(orientation, fields)
    elsewhere = fields.get("rotation_vector_in_other_coord_frame")
    if elsewhere is not None:
        turned = SemanticOrientation(OrientationCoord("[b]|D", "[r]|D", "[r]"), elsewhere["R_r2_r"])
        free = orientation.with_representation(RotationVector).change_coordinate_frame(turned)
        result["rotation_vector_in_other_coord_frame"] = free.in_representation(
            RotationVector
        ).vector
    return result


def replay_moved(example: Mapping[str, Any]) -> dict[str, Any]:
    """Return a wrench and a twist in another frame about its origin, and their constant power.

    The old frame stands in the new one at ``p``, turned by ``rpy`` (fixed axes).
    """
    turn = SemanticOrientation(
        OrientationCoord("[r]|D", "[s]|D", "[s]"), EulerAngles(example["rpy"], "xyz")
    )
    displacement = SemanticPosition(
        PositionCoord("n|C", "e|C", "[s]"), -np.array(example["p"], dtype=float)
    )
    wrench = SemanticWrench(WrenchCoord("e|C", "D", "[r]"), [*example["force"], *example["torque"]])
    twist = SemanticTwist(TwistCoord("e|C", "D", "[r]"), [*example["linear"], *example["angular"]])
    moved_wrench, moved_twist = (
        x.change_coordinate_frame(turn).change_point(displacement) for x in (wrench, twist)
    )
    result = dict(zip(("force", "torque"), moved_wrench.numbers, strict=True))
    result |= zip(("linear", "angular"), moved_twist.numbers, strict=True)
    result["power"] = moved_wrench.dot(moved_twist)
    return {f"expected_{name}": value for name, value in result.items()}
