"""Representations of positions, orientations and poses, with the rotations of scipy.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the
    same relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.initialization import initialize
from tmkit.relations.representation import (
    ROTATION_TOLERANCE,
    FrameToFrame,
    Multiplied,
    Numbers,
    OfFrames,
    Plain,
    Vector,
    Vector3,
    array_of,
    from_arrays,
    quaternion_product,
    require_orthogonal,
    rotation_class,
    rotation_of,
    unit_vector,
)
from tmkit.relations.violations import SemanticError, Violation, rule_error
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only


class PositionVector(Vector3):
    """Vector (3,) from the reference point to the point [m]. No constraint."""

    relation = "Position"
    unit = "m"
    label = "position vector"


@dataclass(frozen=True, eq=False)
class RotationMatrix(Multiplied):
    """Matrix (3, 3) whose columns are the axes in the reference frame."""

    matrix: Vector
    relation = "Orientation"
    is_settled = True
    dimensions = 2
    what = "a rotation matrix"

    def __init__(self, matrix: ArrayLike) -> None:
        initialize(self, matrix=rotation_of(matrix, "rotation matrix"))

    def _numbers(self) -> Numbers:
        return (self.matrix,)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return from_arrays(cls, {"matrix": numbers[0]})


@dataclass(frozen=True, eq=False)
class UnitQuaternion(Multiplied):
    """Unit quaternion (4,), vector part first.

    The sign of an argument is preserved. The scalar part of a conversion is not negative.
    """

    quat_xyzw: Vector
    relation = "Orientation"
    is_settled = True
    dimensions = 1
    what = "a unit quaternion that is multiplied"

    def __init__(self, quat_xyzw: ArrayLike) -> None:
        initialize(self, quat_xyzw=unit_vector(quat_xyzw, 4, "unit quaternion"))

    def _numbers(self) -> Numbers:
        return (read_only(rotation_class().from_quat(np.array(self.quat_xyzw)).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(rotation_class().from_matrix(np.array(numbers[0])).as_quat(canonical=True))


@dataclass(frozen=True, eq=False)
class EulerAngles(Multiplied):
    """Angles (3,) about a sequence of axes [rad].

    Attributes:
        angles: (3,) angles in the order of the sequence [rad].
        sequence: three of x, y, z. Capital letters are rotations about moving axes (``"ZYX"``),
            small ones about the fixed axes of the reference frame (``"xyz"``: roll, pitch, yaw).
    """

    angles: Vector
    sequence: str
    relation = "Orientation"
    what = "a set of Euler angles"

    def __init__(self, angles: ArrayLike, sequence: str = "ZYX") -> None:
        letters = sequence.lower()
        is_one_case = sequence in (letters, letters.upper())
        is_sequence = is_one_case and len(letters) == 3 and set(letters) <= set("xyz")
        if not is_sequence or letters[0] == letters[1] or letters[1] == letters[2]:
            rule = (
                "a sequence is three axes, no two neighbours alike, all capital or all small, as"
                " ZYX or xyz"
            )
            raise rule_error("Euler angles", rule, repr(sequence))
        initialize(
            self, angles=array_of(angles, (3,), "Euler angles", unit="rad"), sequence=sequence
        )

    def _numbers(self) -> Numbers:
        return (
            read_only(
                rotation_class().from_euler(self.sequence, np.array(self.angles)).as_matrix()
            ),
        )

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        sequence = like.sequence if like is not None else "ZYX"
        middle = _middle_angle(numbers[0], sequence)
        if abs(middle) < ROTATION_TOLERANCE:
            rule = "Euler angles are determined only if no two of their axes coincide"
            violation = Violation(rule, "the first and the third axis coincide")
            raise SemanticError.of(f"Euler angles {sequence}", [violation])
        letters: Any = sequence
        return cls(rotation_class().from_matrix(np.array(numbers[0])).as_euler(letters), sequence)


class RotationVector(Vector3):
    """Axis times angle (3,) [rad], expressed in any frame.

    The angle of a conversion from a matrix is at most pi.
    """

    relation = "Orientation"
    is_settled = False
    unit = "rad"
    label = "rotation vector"

    def _numbers(self) -> Numbers:
        return (read_only(rotation_class().from_rotvec(np.array(self.vector)).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(rotation_class().from_matrix(np.array(numbers[0])).as_rotvec())


@dataclass(frozen=True, eq=False)
class AxisAngle(Plain):
    """Unit axis (3,) and angle [rad], expressed in any frame.

    The angle of a conversion from a matrix is at most pi.

    Args:
        axis: (3,) unit vector.
        angle: angle [rad].
    """

    axis: Vector
    angle: float
    relation = "Orientation"

    def __init__(self, axis: ArrayLike, angle: float) -> None:
        initialize(
            self,
            axis=unit_vector(axis, 3, "axis"),
            angle=float(array_of(angle, (), "angle", unit="rad")),
        )

    def _numbers(self) -> Numbers:
        return (read_only(rotation_class().from_rotvec(self.axis * self.angle).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        vector = rotation_class().from_matrix(np.array(numbers[0])).as_rotvec()
        angle = float(np.linalg.norm(vector))
        if angle == 0.0:
            return cls(like.axis if like is not None else [1.0, 0.0, 0.0], 0.0)
        return cls(vector / angle, angle)


def _middle_angle(matrix: Vector, sequence: str) -> float:
    """Return the sine of the angle between the first and third axis of a sequence."""
    first, _, third = ("xyz".index(letter) for letter in sequence.lower())
    axes = np.eye(3)
    if sequence.islower():  # fixed axes are moving axes in the opposite order
        first, third = third, first
    # at this orientation the first axis is fixed in the reference frame, the third in the body
    return float(np.linalg.norm(np.cross(axes[first], matrix @ axes[third])))


_LAST_ROW = np.array([0.0, 0.0, 0.0, 1.0])
_LAST_ROW_ROUNDING = 1e-9
"""Accepted rounding in the last row, as from matrix exponentials and inverses."""

_MIN_ANGLE = 1e-12
"""Angle below which a displacement counts as a translation [rad]."""


def _require_equal_shapes(first: Vector, second: Vector) -> None:
    if first.shape[:-1] != second.shape[:-1]:
        rule = "position and rotation are both one, or batches of one length"
        raise rule_error("pose", rule, f"shapes {first.shape} and {second.shape}")


@dataclass(frozen=True, eq=False)
class HomogeneousMatrix(FrameToFrame):
    """Matrix (4, 4) from one frame to another, expressed in the latter."""

    matrix: Vector
    relation = "Pose"
    is_settled = True
    dimensions = 2
    what = "a homogeneous matrix"

    def __init__(self, matrix: ArrayLike) -> None:
        values = array_of(matrix, (4, 4), "homogeneous matrix", unit="1 1 1 m", is_batch=True)
        rotation_of(values[..., :3, :3], "homogeneous matrix")
        if np.abs(values[..., 3, :] - _LAST_ROW).max(initial=0.0) > _LAST_ROW_ROUNDING:
            row = np.array2string(values[..., 3, :])
            raise rule_error("homogeneous matrix", "its last row is 0 0 0 1", row)
        initialize(self, matrix=values)

    def _numbers(self) -> Numbers:
        return self.matrix[..., :3, 3], self.matrix[..., :3, :3]

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        matrix = np.empty((*numbers[0].shape[:-1], 4, 4))
        matrix[..., :3, 3], matrix[..., :3, :3] = numbers
        matrix[..., 3, :] = _LAST_ROW
        return from_arrays(cls, {"matrix": read_only(matrix)})


@dataclass(frozen=True, eq=False)
class VectorAndMatrix(Multiplied):
    """Position vector (3,) and rotation matrix (3, 3), for any points.

    Args:
        vector: (3,) position [m].
        matrix: (3, 3) rotation matrix.
    """

    vector: Vector
    matrix: Vector
    relation = "Pose"
    is_settled = True
    dimensions = 1
    what = "a rotation matrix"

    def __init__(self, vector: ArrayLike, matrix: ArrayLike) -> None:
        initialize(self, vector=array_of(vector, (3,), "position vector", unit="m", is_batch=True))
        initialize(self, matrix=rotation_of(matrix, "rotation matrix"))
        _require_equal_shapes(self.vector, self.matrix[..., 0])

    def _numbers(self) -> Numbers:
        return self.vector, self.matrix

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return from_arrays(cls, {"vector": numbers[0], "matrix": numbers[1]})


@dataclass(frozen=True, eq=False)
class VectorAndQuaternion(Multiplied):
    """Position vector (3,) and unit quaternion (4,), vector part first.

    The scalar part of a conversion from a matrix is not negative.

    Args:
        vector: (3,) position [m].
        quat_xyzw: (4,) unit quaternion [x, y, z, w].
    """

    vector: Vector
    quat_xyzw: Vector
    relation = "Pose"
    is_settled = True
    dimensions = 1
    what = "a unit quaternion that is multiplied"

    def __init__(self, vector: ArrayLike, quat_xyzw: ArrayLike) -> None:
        initialize(self, vector=array_of(vector, (3,), "position vector", unit="m", is_batch=True))
        initialize(self, quat_xyzw=unit_vector(quat_xyzw, 4, "unit quaternion"))
        _require_equal_shapes(self.vector, self.quat_xyzw)

    @classmethod
    def of_pose(cls, pose: Pose) -> Self:
        """Create the representation from a :class:`tmkit.Pose`."""
        return cls(pose.translation, pose.quat_xyzw)

    @classmethod
    def of_rows(cls, values: ArrayLike) -> Self:
        """Create a batch from rows (N, 7): x, y, z [m] and a unit quaternion x, y, z, w."""
        rows = array_of(values, (7,), "pose", unit="m m m 1 1 1 1", is_batch=True)
        return cls(rows[..., :3], rows[..., 3:])

    @property
    def pose(self) -> Pose:
        """Pose as a :class:`tmkit.Pose`."""
        return Pose(self.vector, self.quat_xyzw)

    def _numbers(self) -> Numbers:
        return self.vector, read_only(
            rotation_class().from_quat(np.array(self.quat_xyzw)).as_matrix()
        )

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(
            numbers[0], rotation_class().from_matrix(np.array(numbers[1])).as_quat(canonical=True)
        )


@dataclass(frozen=True, eq=False)
class VectorAndRotationVector(Plain):
    """Position vector (3,) and rotation vector (3,), for any points, in any axes.

    Args:
        vector: (3,) position [m].
        rotation: (3,) axis times angle [rad]; at most pi after a conversion from a matrix.
    """

    vector: Vector
    rotation: Vector
    relation = "Pose"

    def __init__(self, vector: ArrayLike, rotation: ArrayLike) -> None:
        initialize(self, vector=array_of(vector, (3,), "position vector", unit="m"))
        initialize(self, rotation=array_of(rotation, (3,), "rotation vector", unit="rad"))

    def _numbers(self) -> Numbers:
        return self.vector, read_only(
            rotation_class().from_rotvec(np.array(self.rotation)).as_matrix()
        )

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(numbers[0], rotation_class().from_matrix(np.array(numbers[1])).as_rotvec())


@dataclass(frozen=True, eq=False)
class DualQuaternion(FrameToFrame):
    """Unit dual quaternion from one frame to another: real and dual part (4,), vector part first.

    Args:
        real: (4,) unit quaternion [x, y, z, w] of the rotation.
        dual: (4,) [x, y, z, w] of half the translation times ``real`` [m], orthogonal to ``real``.
    """

    real: Vector
    dual: Vector
    relation = "Pose"
    what = "a dual quaternion"

    def __init__(self, real: ArrayLike, dual: ArrayLike) -> None:
        initialize(self, real=unit_vector(real, 4, "real part of a dual quaternion"))
        initialize(self, dual=array_of(dual, (4,), "dual part of a dual quaternion", unit="m"))
        pair = "real and dual part of a unit dual quaternion"
        require_orthogonal(self.real, self.dual, pair=pair, what="dual quaternion")

    def _numbers(self) -> Numbers:
        conjugate = self.real * [-1.0, -1.0, -1.0, 1.0]
        matrix = rotation_class().from_quat(np.array(self.real)).as_matrix()
        return read_only(2.0 * quaternion_product(self.dual, conjugate)[:3]), read_only(matrix)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        real = rotation_class().from_matrix(np.array(numbers[1])).as_quat(canonical=True)
        return cls(real, 0.5 * quaternion_product(np.array([*numbers[0], 0.0]), real))


@dataclass(frozen=True, eq=False)
class FiniteScrew(OfFrames):
    """Displacement about and along a line.

    It takes the reference frame to the frame, and may be expressed in any axes. Moments are about
    the reference point. The axis of a pure translation passes through the reference point, along
    the translation.

    Attributes:
        direction: (3,) unit vector along the axis.
        moment: (3,) cross product of a point of the axis, relative to the reference point, and the
            direction [m].
        angle: angle about the axis [rad].
        displacement: displacement along the axis [m].

    """

    direction: Vector
    moment: Vector
    angle: float
    displacement: float
    relation = "Pose"
    what = "a finite screw"

    def __init__(
        self, direction: ArrayLike, moment: ArrayLike, angle: float, displacement: float
    ) -> None:
        initialize(self, direction=unit_vector(direction, 3, "direction of a screw axis"))
        initialize(self, moment=array_of(moment, (3,), "moment of a screw axis", unit="m"))
        initialize(self, angle=float(array_of(angle, (), "angle", unit="rad")))
        initialize(self, displacement=float(array_of(displacement, (), "displacement", unit="m")))
        require_orthogonal(
            self.direction, self.moment, pair="direction and moment of a line", what="screw axis"
        )

    @property
    def point(self) -> Vector:
        """Point (3,) of the axis nearest to the reference point."""
        return read_only(np.cross(self.direction, self.moment))

    def _numbers(self) -> Numbers:
        matrix = rotation_class().from_rotvec(self.direction * self.angle).as_matrix()
        p = self.point - matrix @ self.point + self.displacement * self.direction
        return read_only(p), read_only(matrix)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        p, matrix = numbers
        vector = rotation_class().from_matrix(np.array(matrix)).as_rotvec()
        angle, length = float(np.linalg.norm(vector)), float(np.linalg.norm(p))
        if angle < _MIN_ANGLE:
            direction = np.array([1.0, 0.0, 0.0]) if like is None else like.direction
            if length > 0.0:
                direction = p / length
            return cls(direction, np.zeros(3), 0.0, length)
        direction = vector / angle
        displacement = float(direction @ p)
        across = p - displacement * direction
        point = 0.5 * (across + np.cross(direction, across) / np.tan(angle / 2))
        return cls(direction, np.cross(point, direction), angle, displacement)
