"""The representations of positions, orientations and poses; those of velocities and forces are beside it.

Which constraint each imposes is in the table of De Laet et al., part 1, 2013; :mod:`tmkit.relations.representation` has
the idea. Mathematics of rotations is scipy's.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the same relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations.representation import (
    ROTATION_TOLERANCE,
    Numbers,
    Vector,
    array_of,
    between_frames,
    frozen,
    in_reference,
    rotation_of,
    rotations,
    trusted,
)
from tmkit.relations.violations import SemanticError, Violation
from tmkit.spatial import Pose

__all__ = [
    "AxisAngle",
    "DualQuaternion",
    "EulerAngles",
    "FiniteScrew",
    "HomogeneousMatrix",
    "PositionVector",
    "RotationMatrix",
    "RotationVector",
    "UnitQuaternion",
    "VectorAndMatrix",
    "VectorAndQuaternion",
]


class _Plain:
    """What most representations share: no constraint, equality of their arrays."""

    relation: ClassVar[str]

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return nothing: any coordinates will do."""
        del coord
        return ()


@dataclass(frozen=True, eq=False)
class PositionVector(_Plain):
    """A vector (3,) from the reference point to the point, metres. No constraint."""

    vector: Vector
    relation = "Position"

    def __init__(self, vector: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (3,), "position vector", unit="m"))

    @property
    def numbers(self) -> Numbers:
        """``(p,)``."""
        return (self.vector,)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p,)``."""
        del like
        return trusted(cls, vector=numbers[0])


# -------------------------------------------------------------------------------------------------------- orientations


class _Matrix(_Plain):
    """What is used by multiplying has to be expressed in its reference orientation frame."""

    what: ClassVar[str]

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether the coordinate frame is not the reference orientation frame."""
        return in_reference(coord, self.what)


@dataclass(frozen=True, eq=False)
class RotationMatrix(_Matrix):
    """A matrix (3, 3) whose columns are the axes in the reference frame."""

    matrix: Vector
    relation = "Orientation"
    what = "a rotation matrix"

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "matrix", rotation_of(matrix, "rotation matrix"))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (self.matrix,)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(Q,)``, known to be a rotation."""
        del like
        return trusted(cls, matrix=numbers[0])


@dataclass(frozen=True, eq=False)
class UnitQuaternion(_Matrix):
    """A unit quaternion (4,), vector part first; its sign is kept."""

    quat_xyzw: Vector
    relation = "Orientation"
    what = "a unit quaternion that is multiplied"

    def __init__(self, quat_xyzw: ArrayLike) -> None:
        object.__setattr__(self, "quat_xyzw", _unit(quat_xyzw, 4, "unit quaternion"))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_quat(np.array(self.quat_xyzw)).as_matrix()),)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(Q,)``, its scalar part not negative."""
        del like
        return cls(rotations().from_matrix(np.array(numbers[0])).as_quat(canonical=True))


@dataclass(frozen=True, eq=False)
class EulerAngles(_Matrix):
    """Angles (3,) in radians about a sequence of axes.

    Attributes:
        angles: radians, in the order of the sequence.
        sequence: three of x, y, z: capital letters turn about the axes that move along (``"ZYX"``), small ones about
            the fixed axes of the reference frame (``"xyz"``: roll, pitch, yaw).
    """

    angles: Vector
    sequence: str
    relation = "Orientation"
    what = "a set of Euler angles"

    def __init__(self, angles: ArrayLike, sequence: str = "ZYX") -> None:
        letters = sequence.lower()
        is_one_case = sequence in (letters, letters.upper())
        ok = is_one_case and len(letters) == 3 and set(letters) <= set("xyz")
        if not ok or letters[0] == letters[1] or letters[1] == letters[2]:
            rule = "a sequence is three axes, no two neighbours alike, all capital or all small, as ZYX or xyz"
            raise SemanticError.of("Euler angles", [Violation(rule, repr(sequence))])
        object.__setattr__(self, "angles", array_of(angles, (3,), "Euler angles", unit="rad"))
        object.__setattr__(self, "sequence", sequence)

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_euler(self.sequence, np.array(self.angles)).as_matrix()),)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(Q,)``, in the sequence of ``like``, ZYX when left out.

        Raises:
            SemanticError: two of the axes coincide at this orientation, so that the angles are not determined.
        """
        sequence = like.sequence if like is not None else "ZYX"
        middle = _middle_angle(numbers[0], sequence)
        if abs(middle) < ROTATION_TOLERANCE:
            rule = "Euler angles are determined where no two of their axes coincide"
            raise SemanticError.of(
                f"Euler angles {sequence}", [Violation(rule, "the first and the third axis coincide")]
            )
        letters: Any = sequence
        return cls(rotations().from_matrix(np.array(numbers[0])).as_euler(letters), sequence)


@dataclass(frozen=True, eq=False)
class RotationVector(_Plain):
    """An axis times an angle in radians (3,). It may be expressed in any frame."""

    vector: Vector
    relation = "Orientation"

    def __init__(self, vector: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (3,), "rotation vector", unit="rad"))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_rotvec(np.array(self.vector)).as_matrix()),)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(Q,)``, its angle at most half a turn."""
        del like
        return cls(rotations().from_matrix(np.array(numbers[0])).as_rotvec())


@dataclass(frozen=True, eq=False)
class AxisAngle(_Plain):
    """A unit axis (3,) and an angle in radians. It may be expressed in any frame."""

    axis: Vector
    angle: float
    relation = "Orientation"

    def __init__(self, axis: ArrayLike, angle: float) -> None:
        object.__setattr__(self, "axis", _unit(axis, 3, "axis"))
        object.__setattr__(self, "angle", float(array_of(angle, (), "angle", unit="rad")))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_rotvec(self.axis * self.angle).as_matrix()),)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(Q,)``; of no rotation the axis is that of ``like``, or x."""
        vector = rotations().from_matrix(np.array(numbers[0])).as_rotvec()
        angle = float(np.linalg.norm(vector))
        if angle == 0.0:
            return cls(like.axis if like is not None else [1.0, 0.0, 0.0], 0.0)
        return cls(vector / angle, angle)


# --------------------------------------------------------------------------------------------------------------- poses


@dataclass(frozen=True, eq=False)
class HomogeneousMatrix(_Plain):
    """A matrix (4, 4) from one frame to another, expressed in the latter."""

    matrix: Vector
    relation = "Pose"

    def __init__(self, matrix: ArrayLike) -> None:
        made = array_of(matrix, (4, 4), "homogeneous matrix")
        rotation_of(made[:3, :3], "homogeneous matrix")
        if not np.array_equal(made[3], [0.0, 0.0, 0.0, 1.0]):
            row = np.array2string(made[3])
            raise SemanticError.of("homogeneous matrix", [Violation("its last row is 0 0 0 1", row)])
        object.__setattr__(self, "matrix", made)

    @property
    def numbers(self) -> Numbers:
        """``(p, Q)``."""
        return self.matrix[:3, 3], self.matrix[:3, :3]

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p, Q)``."""
        del like
        matrix = np.eye(4)
        matrix[:3, 3], matrix[:3, :3] = numbers
        return trusted(cls, matrix=frozen(matrix))

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame, expressed there."""
        what = "a homogeneous matrix"
        return [*between_frames(coord, what), *in_reference(coord, what)]


@dataclass(frozen=True, eq=False)
class VectorAndMatrix(_Matrix):
    """A position vector (3,) and a rotation matrix (3, 3); the points need not be those of the frames."""

    vector: Vector
    matrix: Vector
    relation = "Pose"
    what = "a rotation matrix"

    def __init__(self, vector: ArrayLike, matrix: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (3,), "position vector", unit="m"))
        object.__setattr__(self, "matrix", rotation_of(matrix, "rotation matrix"))

    @property
    def numbers(self) -> Numbers:
        """``(p, Q)``."""
        return self.vector, self.matrix

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p, Q)``, known to be a rotation."""
        del like
        return trusted(cls, vector=numbers[0], matrix=numbers[1])


@dataclass(frozen=True, eq=False)
class VectorAndQuaternion(_Matrix):
    """A position vector (3,) and a unit quaternion (4,), vector part first."""

    vector: Vector
    quat_xyzw: Vector
    relation = "Pose"
    what = "a unit quaternion that is multiplied"

    def __init__(self, vector: ArrayLike, quat_xyzw: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (3,), "position vector", unit="m"))
        object.__setattr__(self, "quat_xyzw", _unit(quat_xyzw, 4, "unit quaternion"))

    @classmethod
    def of_pose(cls, pose: Pose) -> Self:
        """Make one from a :class:`tmkit.Pose`."""
        return cls(pose.translation, pose.quat_xyzw)

    @property
    def pose(self) -> Pose:
        """The same as a :class:`tmkit.Pose`."""
        return Pose(self.vector, self.quat_xyzw)

    @property
    def numbers(self) -> Numbers:
        """``(p, Q)``."""
        return self.vector, frozen(rotations().from_quat(np.array(self.quat_xyzw)).as_matrix())

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p, Q)``, the scalar part of its quaternion not negative."""
        del like
        return cls(numbers[0], rotations().from_matrix(np.array(numbers[1])).as_quat(canonical=True))


@dataclass(frozen=True, eq=False)
class DualQuaternion(_Plain):
    """A unit dual quaternion from one frame to another: real and dual part (4,), vector part first."""

    real: Vector
    dual: Vector
    relation = "Pose"

    def __init__(self, real: ArrayLike, dual: ArrayLike) -> None:
        object.__setattr__(self, "real", _unit(real, 4, "real part of a dual quaternion"))
        object.__setattr__(self, "dual", array_of(dual, (4,), "dual part of a dual quaternion"))
        defect = abs(float(self.real @ self.dual))
        if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(self.dual))):
            rule = "real and dual part of a unit dual quaternion are orthogonal"
            raise SemanticError.of("dual quaternion", [Violation(rule, f"their product is {defect:.3g}")])

    @property
    def numbers(self) -> Numbers:
        """``(p, Q)``."""
        conjugate = self.real * [-1.0, -1.0, -1.0, 1.0]
        return frozen(2.0 * _product(self.dual, conjugate)[:3]), frozen(
            rotations().from_quat(np.array(self.real)).as_matrix()
        )

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p, Q)``."""
        del like
        real = rotations().from_matrix(np.array(numbers[1])).as_quat(canonical=True)
        return cls(real, 0.5 * _product(np.array([*numbers[0], 0.0]), real))

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame, expressed there."""
        what = "a dual quaternion"
        return [*between_frames(coord, what), *in_reference(coord, what)]


@dataclass(frozen=True, eq=False)
class FiniteScrew(_Plain):
    """A displacement about and along a line.

    It takes the reference frame to the frame, and may be expressed in any axes; moments are about the reference point.

    Attributes:
        direction: (3,) unit vector along the axis.
        moment: (3,) metres: a point of the axis, relative to the reference point, times the direction.
        angle: radians about the axis.
        displacement: metres along it.
    """

    direction: Vector
    moment: Vector
    angle: float
    displacement: float
    relation = "Pose"

    def __init__(self, direction: ArrayLike, moment: ArrayLike, angle: float, displacement: float) -> None:
        object.__setattr__(self, "direction", _unit(direction, 3, "direction of a screw axis"))
        object.__setattr__(self, "moment", array_of(moment, (3,), "moment of a screw axis", unit="m"))
        object.__setattr__(self, "angle", float(array_of(angle, (), "angle", unit="rad")))
        object.__setattr__(self, "displacement", float(array_of(displacement, (), "displacement", unit="m")))
        defect = abs(float(self.direction @ self.moment))
        if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(self.moment))):
            rule = "direction and moment of a line are orthogonal"
            raise SemanticError.of("screw axis", [Violation(rule, f"their product is {defect:.3g}")])

    @property
    def point(self) -> Vector:
        """The point (3,) of the axis that is nearest to the reference point."""
        return frozen(np.cross(self.direction, self.moment))

    @property
    def numbers(self) -> Numbers:
        """``(p, Q)``."""
        turned = rotations().from_rotvec(self.direction * self.angle).as_matrix()
        return frozen(self.point - turned @ self.point + self.displacement * self.direction), frozen(turned)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(p, Q)``.

        Without a rotation the axis goes through the reference point, along the displacement; without that, too, it is
        that of ``like``, or x.
        """
        p, turned = numbers
        vector = rotations().from_matrix(np.array(turned)).as_rotvec()
        angle, length = float(np.linalg.norm(vector)), float(np.linalg.norm(p))
        if angle < _NO_ANGLE:
            along = p / length if length > 0.0 else like.direction if like is not None else np.array([1.0, 0.0, 0.0])
            return cls(along, np.zeros(3), 0.0, length)
        direction = vector / angle
        displacement = float(direction @ p)
        across = p - displacement * direction
        point = 0.5 * (across + np.cross(direction, across) / np.tan(angle / 2))
        return cls(direction, np.cross(point, direction), angle, displacement)

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame; the axes are free."""
        return between_frames(coord, "a finite screw")


_NO_ANGLE = 1e-12  # radians below which a displacement is one without rotation


def _unit(values: ArrayLike, length: int, what: str) -> Vector:
    """Return a read-only unit vector.

    Raises:
        SemanticError: its norm is not 1.
    """
    made = array_of(values, (length,), what)
    norm = float(np.linalg.norm(made))
    if abs(norm - 1.0) > ROTATION_TOLERANCE:
        raise SemanticError.of(what, [Violation("its norm is 1", f"norm {norm:.9g}")])
    return made


def _product(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product of two quaternions (4,), vector part first."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])


def _middle_angle(matrix: Vector, sequence: str) -> float:
    """Return the sine of the angle between the first and the third axis of a sequence at an orientation."""
    first, _, third = ("xyz".index(letter) for letter in sequence.lower())
    axes = np.eye(3)
    if sequence.islower():  # fixed axes are moving axes in the opposite order
        first, third = third, first
    # at this orientation the first axis is fixed in the reference frame, the third in the body
    return float(np.linalg.norm(np.cross(axes[first], matrix @ axes[third])))
