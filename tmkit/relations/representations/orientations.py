"""The representations of positions and orientations.

Mathematics of rotations is scipy's.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the same relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations.representation import (
    ROTATION_TOLERANCE,
    Numbers,
    Vector,
    array_of,
    frozen,
    rotation_of,
    rotations,
    trusted,
)
from tmkit.relations.representations.parts import Multiplied, Plain, unit_vector
from tmkit.relations.representations.vectors import Vector3
from tmkit.relations.violations import SemanticError, Violation


class PositionVector(Vector3):
    """A vector (3,) from the reference point to the point, metres. No constraint."""

    relation = "Position"
    unit = "m"
    called = "position vector"


@dataclass(frozen=True, eq=False)
class RotationMatrix(Multiplied):
    """A matrix (3, 3) whose columns are the axes in the reference frame."""

    matrix: Vector
    relation = "Orientation"
    is_settled = True
    dimensions = 2
    what = "a rotation matrix"

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "matrix", rotation_of(matrix, "rotation matrix"))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (self.matrix,)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return trusted(cls, matrix=numbers[0])


@dataclass(frozen=True, eq=False)
class UnitQuaternion(Multiplied):
    """A unit quaternion (4,), vector part first; its sign is kept. Of a matrix, its scalar part is not negative."""

    quat_xyzw: Vector
    relation = "Orientation"
    is_settled = True
    dimensions = 1
    what = "a unit quaternion that is multiplied"

    def __init__(self, quat_xyzw: ArrayLike) -> None:
        object.__setattr__(self, "quat_xyzw", unit_vector(quat_xyzw, 4, "unit quaternion"))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_quat(np.array(self.quat_xyzw)).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(rotations().from_matrix(np.array(numbers[0])).as_quat(canonical=True))


@dataclass(frozen=True, eq=False)
class EulerAngles(Multiplied):
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
        self.__dict__.update(angles=array_of(angles, (3,), "Euler angles", unit="rad"), sequence=sequence)

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_euler(self.sequence, np.array(self.angles)).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        sequence = like.sequence if like is not None else "ZYX"
        middle = _middle_angle(numbers[0], sequence)
        if abs(middle) < ROTATION_TOLERANCE:
            rule = "Euler angles are determined where no two of their axes coincide"
            broken = Violation(rule, "the first and the third axis coincide")
            raise SemanticError.of(f"Euler angles {sequence}", [broken])
        letters: Any = sequence
        return cls(rotations().from_matrix(np.array(numbers[0])).as_euler(letters), sequence)


class RotationVector(Vector3):
    """An axis times an angle in radians (3,), at most pi if made from a matrix. It may be expressed in any frame."""

    relation = "Orientation"
    is_settled = False
    unit = "rad"
    called = "rotation vector"

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_rotvec(np.array(self.vector)).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return cls(rotations().from_matrix(np.array(numbers[0])).as_rotvec())


@dataclass(frozen=True, eq=False)
class AxisAngle(Plain):
    """A unit axis (3,) and an angle in radians, at most pi if made from a matrix. It may be expressed in any frame.

    Args:
        axis: (3,) unit vector.
        angle: radians.
    """

    axis: Vector
    angle: float
    relation = "Orientation"

    def __init__(self, axis: ArrayLike, angle: float) -> None:
        self.__dict__.update(axis=unit_vector(axis, 3, "axis"), angle=float(array_of(angle, (), "angle", unit="rad")))

    @property
    def numbers(self) -> Numbers:
        """``(Q,)``."""
        return (frozen(rotations().from_rotvec(self.axis * self.angle).as_matrix()),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        vector = rotations().from_matrix(np.array(numbers[0])).as_rotvec()
        angle = float(np.linalg.norm(vector))
        if angle == 0.0:
            return cls(like.axis if like is not None else [1.0, 0.0, 0.0], 0.0)
        return cls(vector / angle, angle)


def _middle_angle(matrix: Vector, sequence: str) -> float:
    """Return the sine of the angle between the first and the third axis of a sequence at an orientation."""
    first, _, third = ("xyz".index(letter) for letter in sequence.lower())
    axes = np.eye(3)
    if sequence.islower():  # fixed axes are moving axes in the opposite order
        first, third = third, first
    # at this orientation the first axis is fixed in the reference frame, the third in the body
    return float(np.linalg.norm(np.cross(axes[first], matrix @ axes[third])))
